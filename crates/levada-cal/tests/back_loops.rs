// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops of firings: an action with a counting guard fires exactly as often as its guard is true.

mod back_support;

use back_support::{Folder, alone, network, runner, runtime};
use levada_cal::emit::{Options, emit};
use levada_cal::interp::{FaultKind, Machine, Options as Limits};
use std::path::Path;
use std::process::Command;

/// It says how often it has fired, and a sum that tells what has come in which order.
const SINK: &str = "actor Sink () int(size=64) X ==> :
  int(size=64) sum := 0;
  int n := 0;
  take: action X:[x] ==>
  do
    sum := (sum * 31 + x) & 0xffffffff;
    n := n + 1;
    if n > 98 then println(n + \" \" + sum); end
  end
end";

/// What the network with this C code prints.
fn compiled(folder: &Folder, runner: &Path, name: &str, text: &str) -> String {
    let flags = ["-std=c17", "-O3", "-fPIC", "-shared", "-D_GNU_SOURCE"];
    let (c, so) = (
        folder.0.join(format!("{name}.c")),
        folder.0.join(format!("{name}.so")),
    );
    std::fs::write(&c, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(flags).arg("-I").arg(runtime().join("include"));
    assert!(cc.arg(&c).arg("-o").arg(&so).status().unwrap().success());
    let out = Command::new(runner)
        .args(["1", "60000"])
        .arg(&so)
        .arg("levada_network")
        .output();
    String::from_utf8_lossy(&out.unwrap().stdout).into_owned()
}

#[test]
fn a_counted_guard_holds_as_often_as_it_says() {
    // The variable's type and first value, the guard, the step; and whether it is counted.
    let cases = [
        ("int", "0", "n < 1000", "n + 1", true),
        ("int", "-20", "500 > n", "n + 7", true),
        ("int", "1", "n <= 1000", "3 + n", true),
        ("int", "2", "900 >= n", "n + 899", true),
        ("int", "1000", "n < 1000", "n + 1", true),
        ("uint(size=12)", "0", "n < 4000", "n + 5", true),
        ("uint(size=32)", "7", "n < 3000000000", "n + 30000000", true),
        (
            "int(size=64)",
            "-5000000000",
            "n < 5000000000",
            "n + 99999999",
            true,
        ),
        // It would wrap, or is not counted.
        ("uint(size=8)", "5", "n < 250", "n + 10", false),
        ("uint(size=8)", "250", "n < 255", "n + 1", true),
        ("int", "0", "n != 300", "n + 1", false),
        ("int", "1000", "n > 10", "n - 3", false),
        ("int", "1", "n < 100000", "n + n", false),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (ty, first, guard, step, counted)) in cases.into_iter().enumerate() {
        let source = format!(
            "actor Source () ==> int(size=64) Y : {ty} n := {first};
              make: action ==> Y:[n] guard {guard} do n := {step}; end end"
        );
        // What takes can count, too: here it leaves some over.
        let some = "actor Some () int(size=64) X ==> int(size=64) Y : int left := 0;
              pass: action X:[x] ==> Y:[x + left] guard left < 700 do left := left + 1; end end";
        let classes = [("Source", source.as_str()), ("Some", some), ("Sink", SINK)];
        let instances = [("s", "Source"), ("m", "Some"), ("t", "Sink")];
        let net = network(&classes, &instances, &["s.0 -> m.0", "m.0 -> t.0"]);
        let options = Limits {
            capacity: Some(512),
            firings: 1_000_000,
            ..Limits::default()
        };
        let wanted = Machine::new(&net, options)
            .run()
            .expect("no fault")
            .printed
            .concat();

        let text = emit(&net, &Options::default()).files.remove(0).text;
        let loops = text.matches("As often as the guard will hold").count();
        assert_eq!(loops, 1 + usize::from(counted), "{guard}, {step}");
        let out = compiled(&folder, &runner, &k.to_string(), &text);
        let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
        assert_eq!(
            printed,
            wanted.lines().collect::<Vec<_>>(),
            "{guard}, {step}: {out}"
        );
    }
}

#[test]
fn a_counter_begins_with_what_it_can_hold() {
    // The counter's type, the first value's type and it, the last; and what is counted.
    let cases = [
        ("int(size=16)", "uint(size=16)", "65535", "2", "-1 0 1 2 "),
        ("int(size=8)", "int", "254", "0", "-2 -1 0 "),
        ("uint(size=8)", "int", "257", "3", "1 2 3 "),
        ("uint", "int", "-1", "3", ""),
        ("int", "int", "-1", "1", "-1 0 1 "),
        ("uint(size=3)", "int", "6", "9", "6 7 8 9 "),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (ty, of, first, last, wanted)) in cases.into_iter().enumerate() {
        for change in ["", "i := i;"] {
            let net = alone(&format!(
                "actor A () ==> : {of} from := {first}; int to := {last}; bool done := false;
                  action ==> guard not done do
                    foreach {ty} i in from .. to do print(i + \" \"); {change} end
                    println(\"\"); done := true; from := from & {first};
                  end end"
            ));
            let run = Machine::new(&net, Limits::default())
                .run()
                .expect("no fault");
            assert_eq!(run.printed.concat(), format!("{wanted}\n"), "{ty} {change}");
            let text = emit(&net, &Options::default()).files.remove(0).text;
            let name = format!("{k}-{}", change.len());
            let out = compiled(&folder, &runner, &name, &text);
            assert!(out.lines().any(|l| l == wanted), "{ty} {change}: {out}");
        }
    }
}

#[test]
fn a_refire_loop_is_what_the_scheduler_would_choose() {
    // The actions between, how many of them are fired in a loop, and after how many firings a state is
    // gone to past what is outside of the schedule.
    let cases = [
        // Rows, the first element of each by another action.
        (
            "int i := 0; int last := 0;
             first: action X:[x] ==> Y:[x] guard i = 0 do i := 1; last := x; end
             rest: action X:[x] ==> Y:[x * 3 + last] guard i != 0
               do i := i + 1; last := x; if i = 9 then i := 0; end end
             priority first > rest; end",
            (2, 0),
        ),
        // What goes first looks at what comes.
        (
            "int kept := 0;
             odd: action X:[x] ==> Y:[x - 1] guard (x & 5) = 1 do kept := kept + x; end
             even: action X:[x] ==> Y:[x + kept] do kept := kept + 1; end
             priority odd > even; end",
            (2, 0),
        ),
        // More on one port than on the other; an action without ports goes first.
        (
            "int left := 5; int sum := 0;
             full: action ==> guard left = 0 do left := 7; sum := sum + 1; end
             take: action X:[a, b] ==> Y:[a + sum, b, left] guard left > 0 do left := left - 1; end
             priority full > take; end",
            (1, 0),
        ),
        // No elements: it goes on until something is due.
        (
            "int zeros := 0; int due := 0;
             fill: action ==> Y:[due] guard zeros > 0 do zeros := zeros - 1; due := due + 1; end
             read: action X:[x] ==> Y:[x] do zeros := x & 15; end
             priority fill > read; end",
            (2, 0),
        ),
        // In a state of a schedule, and out of it.
        (
            "int n := 0;
             go: action X:[x] ==> Y:[x + n] guard n < 12 do n := n + 1; end
             stop: action X:[x] ==> Y:[0 - x] do n := x & 7; end
             schedule fsm a : a (go) --> a; a (stop) --> b; b (go) --> b; b (stop) --> a; end
             priority go > stop; end",
            (2, 0),
        ),
        // What goes first needs more than there is for sure, or may fail.
        (
            "int n := 0;
             both: action X:[x, y] ==> Y:[x + y] guard n = 3, x != -1 do n := 0; end
             one: action X:[x] ==> Y:[x] guard n < 3 do n := n + 1; end
             priority both > one; end",
            (1, 0),
        ),
        (
            "int n := 0; List(type: int, size=4) l := [3, 1, 0, 2];
             here: action X:[x] ==> Y:[x] guard l[n] = 0 do n := 0; end
             else_: action X:[x] ==> Y:[n + x] guard l[n] != 0 do n := (n + 1) & 3; end
             priority here > else_; end",
            (0, 0),
        ),
        // Bit by bit outside of the schedule, which goes on when they are all there.
        (
            "int left := 0; int got := 0;
             function reading() --> bool : left > 0 end
             procedure want(int n) begin left := n; got := 0; end
             action X:[x] ==> guard reading() do got := got * 2 + (x & 1); left := left - 1; end
             start: action ==> guard not reading() do want(2); end
             put: action ==> Y:[got * 5] guard not reading() end
             schedule fsm a : a (start) --> b; b (put) --> a; end",
            (1, 2),
        ),
        // Two of them, one without elements, and states that need elements of their own.
        (
            "int due := 3; int n := 0;
             action ==> Y:[0 - n] guard due > 0 do due := due - 1; n := n + 1; end
             action X:[x] ==> guard due < 0 do due := due + 1; n := n + x; end
             up: action X:[x] ==> Y:[x] guard (x & 3) != 0 do due := x & 7; end
             down: action X:[x] ==> Y:[n] do due := 0 - (x & 3); end
             schedule fsm a : a (up) --> b; a (down) --> a; b (up) --> a; b (down) --> b; end
             priority up > down; end",
            (2, 4),
        ),
        // One that looks at what comes.
        (
            "int n := 0;
             action X:[x] ==> guard (x & 3) = 0 do n := n + 1; end
             take: action X:[x] ==> Y:[x + n] guard (x & 3) != 0 end
             schedule fsm a : a (take) --> a; end",
            (1, 1),
        ),
        // What goes first needs elements, but whether it wants them is known without.
        (
            "int count := 0; int buf := 0;
             load: action X:[x] ==> guard count = 0 do buf := x; count := 4; end
             shift: action ==> Y:[buf & 1] guard count != 0 do buf := buf >> 1; count := count - 1; end
             priority load > shift; end",
            (2, 0),
        ),
        // One that may fail is looked at in its turn.
        (
            "int n := 0; List(type: int, size=4) l := [3, 1, 0, 2];
             action X:[x] ==> guard l[n] = 0 do n := (n + x) & 3; end
             go: action X:[x] ==> Y:[x + n] guard l[n] != 0 do n := (n + 1) & 3; end
             schedule fsm a : a (go) --> a; end",
            (0, 0),
        ),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (between, (again, past))) in cases.into_iter().enumerate() {
        let source = "actor Source () ==> int X : int n := 0;
             make: action ==> X:[n * 7 ^ (n >> 2)] guard n < 1200 do n := n + 1; end end";
        let between = format!("actor Between () int X ==> int(size=64) Y : {between} end");
        let classes = [
            ("Source", source),
            ("Between", between.as_str()),
            ("Sink", SINK),
        ];
        let instances = [("s", "Source"), ("m", "Between"), ("t", "Sink")];
        for capacity in [3, 64] {
            let mut net = network(&classes, &instances, &["s.0 -> m.0", "m.0 -> t.0"]);
            for channel in &mut net.channels {
                channel.capacity = Some(capacity);
            }
            let options = Limits {
                firings: 1_000_000,
                ..Limits::default()
            };
            let run = Machine::new(&net, options).run().expect("no fault");
            let wanted = run.printed.concat();
            assert!(wanted.lines().count() > 300, "{between}");
            let text = emit(&net, &Options::default()).files.remove(0).text;
            let loops = text.matches("} while (++lvd_k < lvd_n").count();
            assert_eq!(loops, again, "{between}");
            let shortcuts = text.matches("/* Nothing outside of the schedule").count();
            assert_eq!(shortcuts, past, "{between}");
            let out = compiled(&folder, &runner, &format!("again-{k}-{capacity}"), &text);
            let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
            assert_eq!(
                printed,
                wanted.lines().collect::<Vec<_>>(),
                "{between}: {out}"
            );
        }
    }
}

#[test]
fn small_procedures_use_the_registers_of_their_actions() {
    // `n` is used by procedures: the small ones, one that has a loop, one that an initial value needs
    // (which the compiler may have computed itself).
    let cases = [
        (
            "function next(int by) --> int : n + by end
             procedure step(int by) begin n := next(by); end
             make: action ==> Y:[n ^ next(3)] guard n < 900 do n := n + 1; end",
            Some(true),
        ),
        (
            "procedure step(int by) begin if n > 40 then n := n + by; else n := n + 1; end end
             make: action ==> Y:[n] guard n < 1900 do step(2); end",
            Some(true),
        ),
        (
            "procedure step(int by) var int k := by begin while k > 0 do n := n + 1; k := k - 1; end end
             make: action ==> Y:[n] guard n < 1900 do step(2); end",
            Some(false),
        ),
        (
            "function first(int by) --> int : n + by end
             List(type: int, size=4) l := [first(i) : for int i in 0 .. 3];
             make: action ==> Y:[l[n & 3] + first(n)] guard n < 900 do n := n + 1; end",
            None,
        ),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (inside, register)) in cases.into_iter().enumerate() {
        let source = format!("actor Source () ==> int(size=64) Y : int n := 7; {inside} end");
        let classes = [("Source", source.as_str()), ("Sink", SINK)];
        let net = network(&classes, &[("s", "Source"), ("t", "Sink")], &["s.0 -> t.0"]);
        let run = Machine::new(&net, Limits::default()).run();
        let wanted = run.expect("no fault").printed.concat();
        assert!(wanted.lines().count() > 500, "{inside}");
        let text = emit(&net, &Options::default()).files.remove(0).text;
        if let Some(register) = register {
            assert_eq!(text.contains("Source_registers"), register, "{inside}");
        }
        let out = compiled(&folder, &runner, &format!("inline-{k}"), &text);
        let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
        assert_eq!(
            printed,
            wanted.lines().collect::<Vec<_>>(),
            "{inside}: {out}"
        );
    }
}

#[test]
fn a_loop_that_stays_within_its_lists_is_not_checked_at_each_turn() {
    // Where the counter, the other index and the end begin; whether a list is left.
    let cases = [
        (0, 0, 10, false),
        (3, 5, 10, false),
        (9, 19, 10, false),
        (4, 0, 4, false),
        (10, 20, 3, false),
        (-1, 0, -1, false),
        (8, 16, 10, false),
        // The last turns leave a list.
        (7, 18, 10, true),
        (4, 0, 12, true),
        (-2, 4, 3, true),
        (0, -1, 5, true),
        (0, 2_147_483_646, 10, true),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (from, at, end, leaves)) in cases.into_iter().enumerate() {
        let net = alone(&format!(
            "actor A () ==> : int from := {from}; int at := {at}; int end_ := {end}; bool done := false;
              List(type: int(size=16), size=10) l; List(type: int, size=20) m;
              action ==> guard not done var int i := from, int j := at, int e := end_, int s := 0 do
                foreach int k in 0 .. 19 do m[k] := 100 + k * k; end
                while i < e do l[i] := m[j]; i := i + 1; j := j + 1; end
                foreach int k in 0 .. 9 do s := s * 7 + l[k]; end
                println(i + \" \" + j + \" \" + s);
                done := true; from := from & {from}; at := at & {at}; end_ := end_ & {end};
              end end"
        ));
        let text = emit(&net, &Options::default()).files.remove(0).text;
        assert!(text.contains("S->l[i] = S->m[j];"), "{text}");
        let out = compiled(&folder, &runner, &format!("within-{k}"), &text);
        let run = Machine::new(&net, Limits::default()).run();
        if leaves {
            // A fault of an index, in the fifth line.
            let fault = run.expect_err("a fault");
            assert!(matches!(fault.kind, FaultKind::Index), "{fault:?}");
            let status = out.lines().find(|l| l.starts_with("-- ")).unwrap();
            assert!(status.ends_with(" 1 5"), "{out}");
        } else {
            let wanted = run.expect("no fault").printed.concat();
            assert!(
                out.lines().any(|l| l == wanted.trim_end()),
                "{wanted}: {out}"
            );
        }
    }
}

#[test]
fn loops_that_copy_move_any_number_of_elements() {
    // The types of the lists, and the loop; whether it is one move.
    let cases = [
        ("uint(size=8)", "uint(size=8)", "l[i] := m[j];", true),
        ("int(size=64)", "int(size=64)", "l[i] := m[j];", true),
        ("bool", "bool", "l[i] := m[j];", true),
        // Elements of other kinds, of the same list, or more than a copy.
        ("int(size=16)", "uint(size=8)", "l[i] := m[j];", false),
        ("uint(size=8)", "uint(size=8)", "m[i] := m[j];", false),
        ("int", "int", "l[i] := m[j]; sum := sum + i;", false),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (to, from, copy, moved)) in cases.into_iter().enumerate() {
        let value = if to == "bool" { "(k & 5) = 1" } else { "k * 3" };
        let print = |list: &str| match to {
            "bool" => format!("if {list}[k] then 1 else 0 end"),
            _ => format!("{list}[k]"),
        };
        let net = alone(&format!(
            "actor A () ==> : int n := 0; int sum := 0;
              List(type: {to}, size=64) l; List(type: {from}, size=64) m;
              action ==> guard n < 45 var int i := n & 7, int j := n & 3, int e := i + n do
                foreach int k in 0 .. 63 do m[k] := {value}; end
                while i < e do {copy} i := i + 1; j := j + 1; end
                foreach int k in 0 .. 63 do sum := (sum * 7 + {} + {} * 3) & 0xffffff; end
                println(i + \" \" + j + \" \" + sum);
                n := n + 1;
              end end",
            print("l"),
            print("m")
        ));
        let text = emit(&net, &Options::default()).files.remove(0).text;
        assert_eq!(text.contains("levada_copy(S->l + i"), moved, "{to} {copy}");
        let run = Machine::new(&net, Limits::default()).run();
        let wanted = run.expect("no fault").printed.concat();
        let out = compiled(&folder, &runner, &format!("copies-{k}"), &text);
        let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
        assert_eq!(printed, wanted.lines().collect::<Vec<_>>(), "{copy}: {out}");
    }
}

#[test]
fn the_variables_that_are_used_most_are_in_registers() {
    // More than there are registers for, and the busiest of them last.
    let many: String = (0..20).map(|i| format!("int once{i} := {i}; ")).collect();
    let sum: String = (0..20).map(|i| format!(" + once{i}")).collect();
    let more: String = (0..20)
        .map(|i| format!("once{i} := once{i} + {i}; "))
        .collect();
    let between = format!(
        "actor Between () int X ==> int(size=64) Y : {many}
         int left := 0; int got := 0; int all := 0;
         procedure add(int x) begin all := all + x; got := got + 1; end
         action X:[x] ==> guard left > 0 do left := left - 1; add(x); end
         put: action ==> Y:[got * all {sum}] guard left = 0 do left := 3; {more} end
         schedule fsm a : a (put) --> b; b (put) --> a; end end"
    );
    let source = "actor Source () ==> int X : int n := 0;
         make: action ==> X:[n] guard n < 1200 do n := n + 1; end end";
    let classes = [
        ("Source", source),
        ("Between", between.as_str()),
        ("Sink", SINK),
    ];
    let instances = [("s", "Source"), ("m", "Between"), ("t", "Sink")];
    let net = network(&classes, &instances, &["s.0 -> m.0", "m.0 -> t.0"]);
    let run = Machine::new(&net, Limits::default())
        .run()
        .expect("no fault");
    let wanted = run.printed.concat();
    let text = emit(&net, &Options::default()).files.remove(0).text;
    let registers = text
        .split("typedef struct Between_registers {")
        .nth(1)
        .unwrap();
    let registers: Vec<&str> = (registers.lines().skip(1))
        .take_while(|l| !l.starts_with('}'))
        .map(|l| {
            l.trim()
                .trim_start_matches("int32_t ")
                .trim_end_matches(';')
        })
        .collect();
    assert_eq!(registers.len(), 16, "{registers:?}");
    for name in ["left", "got", "all", "once0"] {
        assert!(registers.contains(&name), "{name}: {registers:?}");
    }
    let folder = Folder::new();
    let out = compiled(&folder, &runner(), "registers", &text);
    let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
    assert_eq!(printed, wanted.lines().collect::<Vec<_>>(), "{out}");
}

#[test]
fn masks_choose_only_where_both_sides_are_harmless() {
    // What an element is, and how many masks are in it.
    let cases = [
        // Choices in one another, and in what is written out.
        (
            "if i[k] = 0 then 0 else if i[k] < 0 then limit(0 - i[k] * 3) else limit(i[k] * 5) end end",
            2,
        ),
        // A plain one is left to the C compiler.
        ("if k > 3 then k else 3 - k end", 0),
        // Elements that are there in any case.
        ("if i[k] > 9 then m[k] else i[15 - k] end", 1),
        // One that is there only in some: not the outer choice, but the inner one.
        (
            "if k < 8 then if i[k] > 0 then l[k] else i[k] end else 7 end",
            1,
        ),
        ("if i[k] >= 0 and i[k] < 8 then l[i[k]] else i[k] end", 0),
        // A division by what may be zero.
        ("if i[k] = 0 then m[k] else 1000 / i[k] end", 0),
        // A product that fits into 32 bits only where it is taken.
        (
            "if k = 0 then m[k] else if k < 3 then k * 1000000000 else m[k] end end",
            0,
        ),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (element, masks)) in cases.into_iter().enumerate() {
        let source = "actor Source () ==> int(size=14) X : int n := 0;
             make: action ==> X:[(n * 7 ^ (n >> 2)) - 3000] guard n < 1200 do n := n + 1; end end";
        let between = format!(
            "actor Between () int(size=14) X ==> int(size=64) Y :
             List(type: int, size=8) l := [3, 1, 4, 1, 5, 9, 2, 6]; int off := 2;
             List(type: int, size=16) m := [n * n : for int n in 0 .. 15];
             function limit(int x) --> int : if x > 300 then 300 else x end end
             action X:[i] repeat 16 ==> Y:[o] repeat 16
             var List(type: int(size=64), size=16) o = [{element} : for int k in 0 .. 15]
             do off := off + 1; m[off & 15] := off; l[off & 7] := off; end end"
        );
        let classes = [
            ("Source", source),
            ("Between", between.as_str()),
            ("Sink", SINK),
        ];
        let instances = [("s", "Source"), ("m", "Between"), ("t", "Sink")];
        let net = network(&classes, &instances, &["s.0 -> m.0", "m.0 -> t.0"]);
        let run = (Machine::new(&net, Limits::default()).run()).expect("no fault");
        let wanted = run.printed.concat();
        assert!(wanted.lines().count() > 300, "{element}");
        let text = emit(&net, &Options::default()).files.remove(0).text;
        assert_eq!(
            text.matches("levada_choose_int").count(),
            masks,
            "{element}"
        );
        let out = compiled(&folder, &runner, &format!("masks-{k}"), &text);
        let printed: Vec<&str> = out.lines().filter(|l| !l.starts_with(['=', '-'])).collect();
        assert_eq!(
            printed,
            wanted.lines().collect::<Vec<_>>(),
            "{element}: {out}"
        );
    }
}
