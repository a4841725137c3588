// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the language by the output of small programs: initial values, widths and overflow, order of actions,
//! patterns, guards, room for outputs, 16-bit floats. Each program runs with and without checks; networks also run
//! unfused on two workers and with channels of random sizes.

use crate::common::{Instance, Place, Run, network, skipped};
use std::process::Command;

const TOP: &str = "src/p/Top.cal";

/// What an actor `Top` without ports prints.
fn prints(text: &str, expected: &str) {
    let place = Place::new(&[(TOP, text)]);
    for more in [&[][..], &["--unchecked"]] {
        let run = place.run(&[&["run", TOP], more].concat());
        assert_eq!(run.succeeds().out, expected, "{more:?}");
    }
}

/// A network of these classes, in which each output of one goes to the input of that name.
fn place(classes: &[(&str, &str)], instances: &[Instance], wires: &[(&str, &str)]) -> Place {
    let place = Place::new(&[("src/p/Top.xdf", &network(instances, wires))]);
    for (name, text) in classes {
        place.write(&format!("src/p/{name}.cal"), text);
    }
    place
}

const WAYS: [&[&str]; 4] = [
    &["--workers", "1"],
    &["--workers", "2", "--no-fuse"],
    &["--unchecked"],
    &["--no-fuse", "--random-buffer-sizes", "3"],
];

/// What such a network prints, in whatever order.
fn network_prints(place: &Place, expected: &[&str]) {
    for more in WAYS {
        let run = place.run(&[&["run", "src/p/Top.xdf"], more].concat());
        let mut lines: Vec<&str> = run.succeeds().out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{more:?}");
    }
}

const COUNT: (&str, &str) = (
    "Count",
    "package p;\nactor Count (int last) ==> int Out :\n  int n := 0;\n  action ==> Out:[n] guard n < last \
     do n := n + 1; end\nend\n",
);

#[test]
fn variables_begin_with_zero_and_lists_are_values() {
    prints(
        "package p;
actor Top () ==> :
  int a;
  uint(size=64) b;
  bool c;
  float d;
  String e;
  int f[2][2];
  int v[4] := [1, 2, 3, 4];
  int(size=16) short[2] = [-5, 70000];
  bool done := false;
  action ==> guard not done do
    done := true;
    println(a + \" \" + b + \" \" + c + \" \" + d + \" [\" + e + \"] \" + f[1][1]);
    // A list may be given a shorter one, and keeps the rest.
    v := [8, 9];
    println(v[0] + \" \" + v[1] + \" \" + v[2] + \" \" + v[3]);
    v := short;
    println(v[0] + \" \" + v[1] + \" \" + v[2]);
    short2 := v;
    short2[0] := 7;
    println(v[0] + \" \" + short2[0]);
  end
  int short2[4];
end
",
        "0 0 false 0.000000 [] 0\n8 9 3 4\n-5 4464 3\n-5 7\n",
    );
}

/// `+` puts one list behind another, and a list is printed, or put into a string, with brackets.
#[test]
fn lists_are_joined_and_printed() {
    prints(
        "package p;
actor Top () ==> :
  int v[3] := [1, 2, 3];
  // Attributes stand in either order.
  List(size=4, type: int) fib := [0, 1] + [2, 3];
  int fixed[5] = [i : for int i in 1 .. 3] + [9, 10];
  float f[2] := [0.5, 2];
  int m[2][2] := [[1, 2], [3, 4]];
  String texts[2] := [\"a\", \"b\"];
  String s;
  bool done := false;
  function twice(int x) --> List(type: int, size=2) : [x, x * 2] end
  procedure show(int list[5]) begin println(list + [list[0]]); end
  action ==> guard not done, \"\" + v = \"[1, 2, 3]\" do
    done := true;
    println(v);
    println(\"v \" + v + \"!\" + fixed);
    print(m);
    println([true, v[0] > 1]);
    println(fib + v);
    println(f + v + [1.5]);
    println(m + [[7, 8]]);
    fib := twice(v[1]) + twice(v[2]);
    println(fib);
    fib := [fib[3]] + [fib[0], 7, 8];
    s := \"kept \" + fib + \".\";
    println(s + texts);
    v := [9] + [8];
    println(v);
    show(fib + [5]);
    println(#(v + fib));
  end
end
",
        "[1, 2, 3]\nv [1, 2, 3]![1, 2, 3, 9, 10]\n[[1, 2], [3, 4]][true, false]\n[0, 1, 2, 3, 1, 2, 3]\n\
         [0.500000, 2.000000, 1.000000, 2.000000, 3.000000, 1.500000]\n[[1, 2], [3, 4], [7, 8]]\n\
         [2, 4, 3, 6]\n[6, 2, 7, 8].[a, b]\n[9, 8, 3]\n[6, 2, 7, 8, 5, 6]\n7\n"
            .replace("[6, 2, 7, 8].", "kept [6, 2, 7, 8].")
            .as_str(),
    );
}

#[test]
fn joined_lists_are_sent() {
    let pair = "package p;
actor Pair () int In ==> int(size=8) Out :
  action In:[x] repeat 2 ==> Out:[[100] + x + [x[0] + 300]] repeat 4 end
end
";
    let show = "package p;\nactor Show () int(size=8) In ==> :\n  action In:[x] repeat 4 ==> do println(x); end\nend\n";
    let place = place(
        &[COUNT, ("Pair", pair), ("Show", show)],
        &[
            ("count", "p.Count", &[("last", "4")]),
            ("pair", "p.Pair", &[]),
            ("show", "p.Show", &[]),
        ],
        &[("count.Out", "pair.In"), ("pair.Out", "show.In")],
    );
    network_prints(&place, &["[100, 1, 2, 45]", "[100, 3, 4, 47]"]);
}

/// Generated programs have long sums, conditions and rows of `elsif`.
#[test]
fn long_expressions_are_computed() {
    let sum = |of: &str, sign: &str, n: usize| vec![of; n].join(sign);
    let taps: Vec<String> = (0..512).map(|i| format!("tap[{i}] * {i}")).collect();
    let elsif: String = (2..500)
        .map(|i| format!(" elsif x = {i} then println(\"is {i}\");"))
        .collect();
    let text = format!(
        "package p;
actor Top () ==> :
  int x := 1;
  int tap[512] := [i mod 7 : for int i in 0 .. 511];
  float f := 0.5;
  bool done := false;
  action ==> guard not done, {and} do
    done := true;
    println(({sum}) + \" \" + ({floats}) + \" \" + ({xor}) + \" \" + ({fir}));
    x := 499;
    if x = 1 then println(\"is 1\");{elsif} end
    println({texts});
  end
end
",
        and = sum("x = 1", " and ", 450),
        sum = sum("x", " + ", 1001),
        floats = sum("f", " + ", 500),
        xor = sum("x", " ^ ", 501),
        fir = taps.join(" + "),
        texts = sum("x", " + \"\" + ", 450),
    );
    let fir: i64 = (0..512).map(|i| i % 7 * i).sum();
    let expected = format!("1001 250.000000 1 {fir}\nis 499\n{}\n", "499".repeat(450));
    prints(&text, &expected);
    // Clang has a limit of its own for blocks in one another.
    let place = Place::new(&[(TOP, &text)]);
    for cc in ["gcc", "clang"] {
        if Command::new(cc).arg("--version").output().is_err() {
            skipped(cc, "it is not installed");
            continue;
        }
        let mut build = place.command(&["build", TOP, "-o", "top"]);
        let run = Run::new(build.env("CC", cc).output().unwrap());
        run.succeeds();
        let run = Run::new(Command::new(place.path("top")).output().unwrap());
        assert_eq!(run.succeeds().out, expected, "{cc}");
    }
}

#[test]
fn variables_wrap_in_the_bits_of_c_that_hold_them() {
    prints(
        "package p;
actor Top () ==> :
  uint(size=13) odd := 8191;
  uint(size=3) small := 255;
  int(size=9) signed := 255;
  int big := 2147483647;
  uint ubig := 4294967295;
  uint(size=64) most := 0xFFFFFFFFFFFFFFFF;
  int(size=8) byte := -128;
  uint(size=8) ubyte := 255;
  bool done := false;
  action ==> guard not done do
    done := true;
    // 13 bits are held in 16, 3 in 8, 9 in 16; nothing is cut to what is declared.
    odd := odd + 1;
    print(odd + \" \");
    odd := odd * 8;
    print(odd + \" \");
    small := small + 2;
    signed := signed * 129;
    println(small + \" \" + signed);
    // An expression has the bits that it needs, up to 64.
    println((big + 1) + \" \" + (ubig + 1) + \" \" + (most + 1) + \" \" + (big * big));
    big := big + 1;
    ubig := ubig + 1;
    byte := byte - 1;
    ubyte := ubyte + 1;
    println(big + \" \" + ubig + \" \" + byte + \" \" + ubyte);
  end
end
",
        "8192 0 1 -32641\n2147483648 4294967296 0 4611686014132420609\n-2147483648 0 127 0\n",
    );
}

/// 40 MB among the variables of an action, of a procedure and of a guard, which no stack has; each
/// begins with zero each time. A function that calls itself has a list for each call.
#[test]
fn lists_of_any_size_stand_among_the_variables() {
    let big = (
        "Big",
        "package p;
actor Big () int In ==> int Out :
  function deep(int n) --> int
  var int own[20000] := [ n : for int i in 0 .. 19999 ], int below := 0 :
    if n > 0 then deep(n - 1) + own[n] else own[0] end
  end

  procedure fill(int x)
  var
    int many[10000000]
  begin
    println(\"was \" + many[x] + many[9999999 - x]);
    many[x] := x;
    many[9999999 - x] := x + 1;
    println(\"is \" + many[x] + many[9999999 - x]);
  end

  function sum(int x) --> int
  var int all[10000000] :
    all[x] + x
  end

  large: action In:[x] ==> Out:[list[9999998] + list[x] + deep(3)]
  guard
    sum(x) = x
  var
    int list[10000000], String texts[100000]
  do
    println(\"began \" + list[9999998] + texts[x]);
    list[9999998] := x;
    list[x] := 10;
    texts[x] := \"written\";
    fill(x);
  end
end
",
    );
    let print = (
        "Print",
        "package p;\nactor Print () int In ==> :\n  action In:[x] ==> do println(\"gave \" + x); end\nend\n",
    );
    let instances = [
        ("count", "p.Count", &[("last", "2")][..]),
        ("big", "p.Big", &[]),
        ("print", "p.Print", &[]),
    ];
    let wires = [("count.Out", "big.In"), ("big.Out", "print.In")];
    let place = place(&[COUNT, big, print], &instances, &wires);
    let expected = [
        "began 0", "began 0", "gave 17", "gave 18", "is 12", "is 23", "was 00", "was 00",
    ];
    network_prints(&place, &expected);
}

#[test]
fn operators_give_what_their_widths_hold() {
    prints(
        "package p;
actor Top () ==> :
  uint ubig := 0;
  int(size=8) byte := 127;
  uint(size=8) ubyte := 0;
  bool done := false;
  action ==> guard not done do
    done := true;
    println((300 mod 7) + \" \" + (-7 mod 3) + \" \" + (7 mod -3) + \" \" + (-7 / 2) + \" \"
      + (-7 div 2) + \" \" + (-7 >> 1));
    println((0x12345678 & ~7) + \" \" + (ubyte - 1) + \" \" + (1 << 31) + \" \" + (ubig & -1));
    println((byte | 0x100) + \" \" + (byte ^ -1) + \" \" + ~0 + \" \" + 017 + \" \" + 0x1f);
    println((7 / 2.0) + \" \" + (1 = 1.0) + \" \" + (2 > 1.5 and not (3 < 3)));
  end
end
",
        "6 -1 1 -3 -3 -4\n305419896 -1 2147483648 0\n383 -128 -1 15 31\n3.500000 true true\n",
    );
}

#[test]
fn untagged_actions_are_tried_to_exhaustion_before_a_state_s_own() {
    prints(
        "package p;
actor Top () ==> :
  int left := 2;
  int n := 0;
  one: action ==> guard n < 6 do print(\" one\"); n := n + 1; left := 1; end
  two.a: action ==> guard n < 6 do print(\" a\"); n := n + 1; end
  two.b: action ==> guard n mod 4 = 1 do print(\" b\"); n := n + 1; left := 2; end
  stop: action ==> guard n >= 6 do println(\" stop\"); end
  never: action ==> guard false end
  action ==> guard left > 1 do print(\" first\"); left := left - 1; end
  action ==> guard left > 0 do print(\" second\"); left := left - 1; end
  schedule fsm s :
    s (one) --> t;
    t (two) --> s;
    s (stop) --> over;
    t (stop) --> over;
    over (never) --> over;
  end
  priority two.b > two.a; end
end
",
        " first second one second b first second one second a one second b first second stop\n",
    );
}

#[test]
fn without_a_schedule_the_untagged_go_first_and_the_rest_as_written() {
    prints(
        "package p;
actor Top () ==> :
  int n := 0;
  zeta: action ==> guard n < 3 do print(\"zeta \"); n := n + 1; end
  alpha: action ==> guard n < 5 do print(\"alpha \"); n := n + 1; end
  beta: action ==> guard n < 6 do print(\"beta \"); n := n + 1; end
  action ==> guard n = 1 do print(\"plain \"); n := n + 1; end
  action ==> guard n = 6 do println(\"end\"); n := n + 1; end
  priority beta > alpha; end
end
",
        "zeta plain zeta beta beta beta end\n",
    );
}

/// `repeat` deals the elements out by turns; a guard looks at them, a body may change what it has
/// taken, and outputs are computed behind it.
#[test]
fn patterns_deal_out_and_guards_only_look() {
    let pair = "package p;
actor Pair () int In ==> int A, int B, float F :
  same: action In:[x, y] repeat 2 ==> A:[y[0], x[1]], B:[x, y] repeat 2
  guard x[0] + 3 = y[1], x[0] < 5 do
    x[0] := -x[0];
  end
  rest: action In:[x] ==> F:[x / 2, x] end
  priority same > rest; end
end
";
    let show = "package p;
actor Show () int A, int B, float F ==> :
  action A:[a] ==> do println(\"A \" + a); end
  action B:[b] repeat 4 ==> do println(\"B \" + b[0] + \" \" + b[1] + \" \" + b[2] + \" \" + b[3]); end
  action F:[f] ==> do println(\"F \" + f); end
end
";
    let place = place(
        &[COUNT, ("Pair", pair), ("Show", show)],
        &[
            ("count", "p.Count", &[("last", "6")]),
            ("pair", "p.Pair", &[]),
            ("show", "p.Show", &[]),
        ],
        &[
            ("count.Out", "pair.In"),
            ("pair.A", "show.A"),
            ("pair.B", "show.B"),
            ("pair.F", "show.F"),
        ],
    );
    // Four elements may not all be there at once: then what is first of them goes alone.
    let run = place.run(&["run", "src/p/Top.xdf", "--workers", "1", "--no-fuse"]);
    let mut lines: Vec<&str> = run.succeeds().out.lines().collect();
    lines.sort_unstable();
    let expected = [
        "A 2",
        "A 3",
        "B -1 2 3 4",
        "F 2.000000",
        "F 3.000000",
        "F 5.000000",
        "F 6.000000",
    ];
    assert_eq!(lines, expected);
}

/// An action that is next waits for room; only `@schedule_outputs` lets another one pass.
#[test]
fn an_action_without_room_waits_or_is_skipped() {
    let choose = "package p;
actor Choose () int In ==> int Full, int Free :
  @schedule_outputs full: action In:[x] ==> Full:[x] end
  free: action In:[x] ==> Free:[x] end
  priority full > free; end
end
";
    let sink = "package p;
actor Sink () int Full, int Free ==> :
  int never := 0;
  action Full:[x] ==> guard never = 1 end
  action Free:[x] ==> do println(\"free\"); end
end
";
    let of = |text: &str| {
        let top = network(
            &[
                ("count", "p.Count", &[("last", "60")]),
                ("choose", "p.Choose", &[]),
                ("sink", "p.Sink", &[]),
            ],
            &[("count.Out", "choose.In"), ("choose.Free", "sink.Free")],
        );
        let narrow = "<Connection src=\"choose\" src-port=\"Full\" dst=\"sink\" dst-port=\"Full\">\
                      <Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Literal\" \
                      literal-kind=\"Integer\" value=\"16\"/></Attribute></Connection></XDF>";
        let place = place(&[COUNT, ("Choose", text), ("Sink", sink)], &[], &[]);
        place.write("src/p/Top.xdf", &top.replace("</XDF>", narrow));
        place
    };
    let passes = of(choose);
    let waits = of(&choose.replace("@schedule_outputs ", ""));
    for workers in ["1", "2"] {
        let args = ["run", "src/p/Top.xdf", "--workers", workers];
        assert_eq!(passes.run(&args).succeeds().out, "free\n".repeat(44));
        let run = waits.run(&[&args[..], &["--fixed-buffers"]].concat());
        run.refuses(1, &["choose waits for room for 1 on its output Full"]);
        assert_eq!(run.out, "");
        // With room for all of them nothing is skipped either.
        let run = waits.run(&args);
        assert_eq!(run.succeeds().out, "");
        assert!(
            run.err.contains("has grown from 16 elements to 64"),
            "{run:?}"
        );
    }
}

#[test]
fn each_reader_of_an_output_gets_each_element() {
    let show = "package p;
actor Show (int k) int In ==> :
  action In:[x] ==> do println(k + \" \" + x); end
end
";
    let place = place(
        &[COUNT, ("Show", show)],
        &[
            ("count", "p.Count", &[("last", "2")]),
            ("a", "p.Show", &[("k", "1")]),
            ("b", "p.Show", &[("k", "2")]),
            ("c", "p.Show", &[("k", "3")]),
        ],
        &[
            ("count.Out", "a.In"),
            ("count.Out", "b.In"),
            ("count.Out", "c.In"),
        ],
    );
    network_prints(&place, &["1 1", "1 2", "2 1", "2 2", "3 1", "3 2"]);
}

/// A `half` is rounded to IEEE's 16 bits where it is stored, and computed in more.
#[test]
fn halves_are_rounded_where_they_are_stored() {
    prints(
        "package p;
actor Top () ==> :
  half h;
  half many[3] := [1, 2049, 100000];
  int list[2] := [2051, 70000];
  bool done := false;
  function twice(half x) --> half : x + x end
  action ==> guard not done
  var
    half sum := many[1] + many[0]
  do
    done := true;
    h := 1;
    h := h / 3;
    println(h + \" \" + many[1] + \" \" + many[2] + \" \" + sum + \" \" + (h = 0.333251953125));
    println((h + h + h) + \" \" + twice(2047 + 2));
    // Halfway between two, the even one.
    many := [h + h + h, 4097, -65520];
    println(many[0] + \" \" + many[1] + \" \" + many[2]);
    many := list;
    println(many[0] + \" \" + many[1]);
    many := if done then [h + h + h, h] else many end;
    println(many[0]);
  end
end
",
        "0.333252 2048.000000 inf 2048.000000 true\n0.999756 4096.000000\n1.000000 4096.000000 -inf\n\
         2052.000000 inf\n1.000000\n",
    );
}

#[test]
fn halves_travel_and_come_out_of_natives_rounded() {
    let source = "package p;
actor Source () ==> half Out :
  @native function tenth(int k) --> half end
  int k := 0;
  action ==> Out:[tenth(k)] guard k < 3 do k := k + 1; end
end
";
    let twice = "package p;
actor Twice (half add) half In ==> half Out :
  action In:[x] ==> Out:[x + add] end
end
";
    let show = "package p;
actor Show () half In ==> :
  action In:[x] ==> do println(x * 100000); end
end
";
    let place = place(
        &[("Source", source), ("Twice", twice), ("Show", show)],
        &[
            ("source", "p.Source", &[]),
            ("twice", "p.Twice", &[("add", "2049")]),
            ("show", "p.Show", &[]),
        ],
        &[("source.Out", "twice.In"), ("twice.Out", "show.In")],
    );
    place.write(
        "natives/tenth.c",
        "#include <stdint.h>\nfloat tenth(int32_t k) { return (float)k / 10 + 0.33f; }\n",
    );
    // 2049 is 2048 in 16 bits, as is the sum with less than half of the distance to 2050.
    network_prints(&place, &["204800000.000000"; 3]);
}

#[test]
fn unspecified_behaviour_is_noted_on_request() {
    let place = Place::new(&[(
        TOP,
        "package p;
actor Top () int In, int B ==> uint(size=5) Out :
  uint(size=13) odd := 8191;
  uint(size=13) fine := 8191;
  int(size=16) whole := 0;
  a: action In:[x] ==> guard x > 3 end
  b: action In:[y] ==> guard y <= 3, odd = 2 end
  c: action In:[x] ==> Out:[x] guard x < 3, odd != 2, fine > whole do
    odd := odd + 1;
    fine := odd & 0xff;
    whole := odd + fine;
  end
  d: action B:[x] ==> guard x = 1 end
  e: action B:[x] ==> guard x = 2 end
  action B:[x] ==> end
  priority a > c; end
end
",
    )]);
    let run = place.run(&["check", "src"]);
    assert_eq!(run.succeeds().err, "");
    let run = place.run(&["check", "src", "--portability-notes"]);
    let notes: Vec<&str> = run
        .succeeds()
        .err
        .lines()
        .filter(|l| l.starts_with("note"))
        .collect();
    // a and b, b and c, d and e cannot both hold; d and e read another input than the others, and the
    // action without a tag is tried before all, and reads that of d and e.
    let expected = [
        "note[order]: nothing orders `a` and `d`",
        "note[order]: nothing orders `a` and `e`",
        "note[order]: nothing orders `b` and `d`",
        "note[order]: nothing orders `b` and `e`",
        "note[order]: nothing orders `c` and `d`",
        "note[order]: nothing orders `c` and `e`",
        "note[time]: whether `a` or `d` fires depends on when `In` comes",
        "note[time]: whether `a` or `e` fires depends on when `In` comes",
        "note[time]: whether `b` or `d` fires depends on when `In` comes",
        "note[time]: whether `b` or `e` fires depends on when `In` comes",
        "note[time]: whether `c` or `d` fires depends on when `In` comes",
        "note[time]: whether `c` or `e` fires depends on when `In` comes",
        "note[time]: whether an action without a tag or `a` fires depends on when `B` comes",
        "note[time]: whether an action without a tag or `b` fires depends on when `B` comes",
        "note[time]: whether an action without a tag or `c` fires depends on when `B` comes",
        "note[width]: this is int, and may not fit uint(size=5)",
        "note[width]: this is uint(size=14), and may not fit uint(size=13)",
    ];
    let mut sorted = notes.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected, "{run:#?}");
    let run = place.run(&["check", "src", "--portability-notes", "--json"]);
    assert_eq!(
        run.succeeds().json()["diagnostics"]
            .as_array()
            .unwrap()
            .len(),
        17
    );
    assert_eq!(run.json()["warnings"], 0);
}

/// A priority of two tags of which one names the other, too, orders more than these two actions, and a
/// tag that two actions share cannot order them.
#[test]
fn a_priority_is_proposed_only_where_it_orders_just_these_actions() {
    let place = Place::new(&[(
        TOP,
        "package p;
actor Top () int In ==> :
  b: action In:[x] ==> guard x > 3 end
  b: action In:[x] ==> end
  c.x: action In:[x] ==> end
  c.y: action In:[x] ==> end
  c: action In:[x] ==> end
  priority b > c; c.x > c.y; end
end
",
    )]);
    let run = place.run(&["check", "src", "--portability-notes"]);
    let err = &run.succeeds().err;
    let helps: Vec<&str> = err.lines().filter(|l| l.contains("help:")).collect();
    let tags =
        "  = help: give each a tag that names no other action, and order these by a `priority`";
    assert_eq!(helps, [tags; 3], "{run:#?}");
    place.write(
        TOP,
        "package p;\nactor Top () int In ==> :\n  a: action In:[x] ==> end\n  \
                      a.b: action In:[x] ==> end\nend\n",
    );
    let run = place.run(&["check", "src", "--portability-notes"]);
    assert!(
        run.succeeds()
            .err
            .contains("say so: `priority a > a.b; end`"),
        "{run:#?}"
    );
}

/// Which of two actions fires must not depend on what has come in time: where it does, it is told. An
/// action that needs what the next one does not need is found with a guard and without, on one input and
/// on several, where a schedule or `@schedule_outputs` is in the way; guards that exclude one another and
/// inputs that the next action needs as well are left out.
#[test]
fn time_dependence_is_noted_on_request() {
    let notes = |ports: &str, body: &str| {
        let text = format!("package p;\nactor Top () {ports} :\n{body}end\n");
        let place = Place::new(&[(TOP, &text)]);
        assert_eq!(place.run(&["check", "src"]).succeeds().err, "");
        let run = place.run(&["check", "src", "--portability-notes"]);
        let lines = run.succeeds().err.lines();
        let time = lines.filter_map(|l| l.strip_prefix("note[time]: whether "));
        time.map(str::to_owned).collect::<Vec<_>>()
    };
    let found = notes(
        "int Kind, int Data ==>",
        "  begin_: action Kind:[k], Data:[d] repeat 4 ==> guard k > 9 end
  other: action Kind:[k] ==> end
  fine: action Kind:[k] ==> guard k <= 9 end
  data: action Data:[d] ==> end
  both: action Kind:[k], Data:[d] repeat 4 ==> end
  any: action Kind:[k], Data:[d] ==> end
  more: action Kind:[k], Data:[d] repeat 5 ==> end
  priority begin_ > other; begin_ > fine; begin_ > data; begin_ > both > any; both > more; end
",
    );
    let of_begin =
        |b: &str, port: &str| format!("`begin_` or `{b}` fires depends on when `{port}` comes");
    let expected = [
        of_begin("other", "Data"),
        of_begin("any", "Data"),
        of_begin("data", "Kind"),
    ];
    for one in expected {
        assert!(found.contains(&one), "{one}: {found:#?}");
    }
    let both = "`both` or `any` fires depends on when `Data` comes";
    assert!(found.iter().any(|n| n == both), "{found:#?}");
    for never in [
        "`begin_` or `fine`",
        "`both` or `more`",
        "`begin_` or `both`",
    ] {
        assert!(!found.iter().any(|n| n.starts_with(never)), "{found:#?}");
    }

    let several = |body: &str| notes("int A, int B ==> int Out", body);
    let on_one = "  five: action A:[x] repeat 5 ==> end\n  one: action A:[x] ==> end\n  priority five > one; end\n";
    assert_eq!(
        several(on_one),
        ["`five` or `one` fires depends on when `A` comes"]
    );
    let on_two = "  two: action A:[x], B:[y] ==> end\n  one: action A:[x] ==> end\n  priority two > one; end\n";
    assert_eq!(
        several(on_two),
        ["`two` or `one` fires depends on when `B` comes"]
    );
    let merge = "  a: action A:[x] ==> end\n  b: action B:[x] ==> end\n";
    assert_eq!(
        several(merge),
        ["`a` or `b` fires depends on when `A` comes"]
    );
    // The one that is tried first needs less: the other never fires, at whatever time.
    let less = "  one: action A:[x] ==> end\n  five: action A:[x] repeat 5 ==> end\n  priority one > five; end\n";
    assert_eq!(several(less), [""; 0]);
    let in_turn = format!("{merge}  schedule fsm s: s (a) --> t; t (b) --> s; end\n");
    assert_eq!(several(&in_turn), [""; 0]);
    let outside = format!("{in_turn}  action B:[x] ==> end\n");
    assert_eq!(
        several(&outside),
        ["an action without a tag or `a` fires depends on when `B` comes"]
    );
    let room = "  @schedule_outputs full: action A:[x] ==> Out:[x] end\n  \
                free: action A:[x] ==> end\n  priority full > free; end\n";
    assert_eq!(
        several(room),
        ["`full` or `free` fires depends on when `Out` has room"]
    );
    assert_eq!(several(&room.replace("@schedule_outputs ", "")), [""; 0]);
}
