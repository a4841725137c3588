// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Firing sequences, in an order known beforehand, and table-driven decoding of variable-length codes. Whatever
//! the channels hold, the output equals the interpreter's.
//!
//! Verified with faulty code: a sequence that continues where an element decides, one that skips an action about
//! which an element decides, one that ignores an action of higher priority, a walk that fires once too often, one
//! that does not count.

mod back_support;

use back_support::{Folder, network, runner, runtime};
use levada_cal::emit::{Options, emit};
use levada_cal::interp::{Machine, Options as Limits};
use std::path::Path;
use std::process::Command;

/// It tells what has come in which order.
const SINK: &str = "actor Sink () int(size=64) X ==> :
  int(size=64) sum := 0;
  int n := 0;
  take: action X:[x] ==>
  do
    sum := (sum * 31 + x) & 0xffffffff;
    n := n + 1;
    if (n & 15) = 0 then println(n + \" \" + sum); end
  end
end";

/// What the network with this C code prints.
fn compiled(folder: &Folder, runner: &Path, name: &str, text: &str) -> Vec<String> {
    let file = |end: &str| folder.0.join(format!("{name}.{end}"));
    std::fs::write(file("c"), text).unwrap();
    let made = Command::new("cc")
        .args(["-std=c17", "-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", "-I"])
        .arg(runtime().join("include"))
        .arg(file("c"))
        .arg("-o")
        .arg(file("so"))
        .status();
    assert!(made.unwrap().success(), "{text}");
    let out = Command::new(runner)
        .args(["1", "60000"])
        .arg(file("so"))
        .arg("levada_network")
        .output();
    let out = String::from_utf8_lossy(&out.unwrap().stdout).into_owned();
    let printed = out.lines().filter(|l| !l.starts_with(['=', '-']));
    printed.map(str::to_string).collect()
}

/// Runs `between`, which takes from X, of this type, and gives to Y, with channels of several sizes.
fn same_as_interpreted(
    (folder, runner, name): (&Folder, &Path, &str),
    ty: &str,
    between: &str,
    check: &dyn Fn(&str),
) {
    let element = if ty == "bool" {
        "((n * 7 ^ (n >> 2)) & 5) = 1"
    } else {
        "n * 7 ^ (n >> 2)"
    };
    let source = format!(
        "actor Source () ==> {ty} X : int n := 0;
           make: action ==> X:[{element}] guard n < 1200 do n := n + 1; end end"
    );
    let between = format!("actor Between () {ty} X ==> int(size=64) Y : {between} end");
    let classes = [
        ("Source", source.as_str()),
        ("Between", between.as_str()),
        ("Sink", SINK),
    ];
    let instances = [("s", "Source"), ("m", "Between"), ("t", "Sink")];
    for capacity in [3, 17, 1000] {
        let mut net = network(&classes, &instances, &["s.0 -> m.0", "m.0 -> t.0"]);
        for channel in &mut net.channels {
            channel.capacity = Some(capacity);
        }
        let limits = Limits {
            firings: 1_000_000,
            ..Limits::default()
        };
        let run = Machine::new(&net, limits).run().expect("no fault");
        let wanted = run.printed.concat();
        assert!(wanted.lines().count() > 10, "{between}");
        let text = emit(&net, &Options::default()).files.remove(0).text;
        check(&text);
        let printed = compiled(folder, runner, &format!("{name}-{capacity}"), &text);
        let wanted: Vec<_> = wanted.lines().collect();
        assert_eq!(printed, wanted, "{capacity}: {between}");
    }
}

#[test]
fn a_sequence_is_what_the_scheduler_would_choose() {
    // What is between, and the lengths of its courses, as the C tells them.
    let cases: [(&str, &[&str]); 13] = [
        // The bits of a byte: it comes again at once.
        (
            "int count := 0; int buf := 0;
             load: action X:[x] ==> guard count = 0 do buf := x; count := 8; end
             shift: action ==> Y:[buf & 1] guard count != 0 do buf := buf >> 1; count := count - 1; end",
            &["load, shift 8 times"],
        ),
        // Rows, and elements that are handed on from firing to firing.
        (
            "int x := 0; int y := 0; int d0 := 0; int d1 := 0; int d2 := 0;
             start: action X:[v] ==> do x := 0; y := 0; end
             done: action ==> guard y = 3 end
             edge: action X:[v] ==> guard x = 0 or y = 0
               do d2 := d1; d1 := d0; d0 := v; x := x + 1; if x = 4 then x := 0; y := y + 1; end end
             inner: action X:[v] ==> Y:[v * 3 + d0 * 5 + d1 * 7 - d2] guard x != 0, y != 0, y != 3
               do d2 := d1; d1 := d0; d0 := v; x := x + 1; if x = 4 then x := 0; y := y + 1; end end
             schedule fsm s : s (start) --> r; r (done) --> s; r (edge) --> r; r (inner) --> r; end
             priority done > edge > inner; end",
            &["start, edge 5 times, inner 3 times, edge, inner 3 times, done"],
        ),
        // The counter is set where the state is left, not where it is entered.
        (
            "int n := 1; int(size=8) sum := 0;
             skip: action X:[x] ==> guard (x & 3) = 0 do sum := sum + 1; end
             begin_: action X:[x] ==> guard (x & 3) != 0 do sum := x; end
             more: action X:[x] ==> Y:[x + sum] guard n < 6 do n := n + 1; sum := sum + x; end
             over: action ==> Y:[sum] guard n = 6 do n := 1; end
             schedule fsm a : a (skip) --> a; a (begin_) --> b; b (more) --> b; b (over) --> a; end
             priority skip > begin_; over > more; end",
            &["begin_, more 5 times, over"],
        ),
        // It ends where an element decides.
        (
            "int n := 0;
             head: action X:[x] ==> do n := 3; end
             tail: action X:[x] ==> Y:[x * n] guard n > 0 do n := n - 1; end
             yes: action X:[x] ==> Y:[0 - x] guard (x & 1) = 1 end
             no: action X:[x] ==> Y:[x] guard (x & 1) = 0 end
             schedule fsm a : a (head) --> b; b (tail) --> b; b (yes) --> a; b (no) --> a; end
             priority tail > yes; tail > no; end",
            &["yes, head, tail 3 times", "no, head, tail 3 times"],
        ),
        // An element decides about the action before the one that can fire for any input.
        (
            "int n := 0;
             head: action X:[x] ==> Y:[x] guard n = 0 do n := 6; end
             odd: action X:[x] ==> Y:[0 - x] guard n > 0, (x & 1) = 1 do n := n - 1; end
             step: action X:[x] ==> Y:[x + n] guard n > 0 do n := n - 1; end
             priority odd > step; end",
            &[],
        ),
        // What goes first could fire: then it does.
        (
            "int n := 0; int late := 0;
             first: action X:[x] ==> Y:[x] guard late = 1 do late := 0; n := n + 1; end
             one: action X:[x] ==> Y:[x + n] guard late = 0 do late := 1; end
             priority first > one; end",
            &["first, one"],
        ),
        // Through all states without a guard.
        (
            "int n := 0;
             a: action X:[x, y] ==> Y:[x + n] do n := y; end
             b: action X:[x] ==> Y:[x - n, n] do n := n + 1; end
             c: action ==> Y:[n] end
             schedule fsm s : s (a) --> t; t (b) --> u; u (c) --> s; end",
            &["a, b, c"],
        ),
        // With what is outside of the schedule, which is part of it.
        (
            "int due := 0; int got := 0;
             action X:[x] ==> guard due > 0 do due := due - 1; got := got * 3 + x; end
             ask: action X:[x] ==> do due := 4; got := x; end
             give: action ==> Y:[got] guard due = 0 end
             schedule fsm s : s (ask) --> t; t (give) --> s; end",
            &["ask, the action at line 2 4 times, give"],
        ),
        // A flag that is computed is not known.
        (
            "bool left := true; int n := 0; int s := 0;
             go: action X:[x] ==> Y:[x + s] guard left do n := n + 1; s := s + x; left := n != 40; end
             back: action ==> Y:[s] guard not left do n := 0; left := true; end",
            &[],
        ),
        // More than is taken from a channel at once, a flag that is set, and numbers that are not met.
        (
            "int n := 0; bool turn := false; int s := 0;
             go: action X:[x] ==> Y:[x + s] guard turn, n < 40 do n := n + 1; s := s + x; end
             back: action ==> Y:[s] guard not turn do n := 0; turn := true; end
             rest: action X:[x] ==> Y:[0 - x] guard turn, n >= 40 do turn := false; end",
            &["rest, back, go 40 times"],
        ),
        // One that asks a list cannot be part of it.
        (
            "int n := 0; List(type: int, size=4) l := [0, 0, 0, 1];
             go: action X:[x] ==> Y:[x + n] guard l[n & 3] = 0 do n := n + 1; end
             back: action X:[x] ==> Y:[x] guard l[n & 3] != 0 do n := 0; l[0] := x & 0; end",
            &[],
        ),
        // A function that is asked, and what it is given.
        (
            "int n := 0;
             function is(int k) --> bool : n = k end
             take: action X:[x] ==> guard is(0) do n := 5; end
             give: action X:[x] ==> Y:[x + n] guard not is(0) do n := n - 1; end",
            &["take, give 5 times"],
        ),
        // It begins with what an initialize action has left.
        (
            "int n := 0; int(size=8) wraps := 100;
             initialize ==> do n := 2; end
             down: action X:[x] ==> Y:[x + wraps] guard n > 0 do n := n - 1; wraps := wraps + 9; end
             up: action X:[x] ==> Y:[0 - x] guard n = 0 do n := 4; end
             priority down > up; end",
            &["up, down 4 times"],
        ),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (between, sequences)) in cases.into_iter().enumerate() {
        let name = format!("course-{k}");
        same_as_interpreted((&folder, &runner, &name), "int", between, &|text| {
            let told: Vec<&str> = text
                .lines()
                .filter_map(|l| l.trim().strip_prefix("/* Fires ")?.strip_suffix(". */"))
                .filter(|l| !l.contains("up to n times"))
                .collect();
            assert_eq!(told, sequences, "{between}");
        });
    }
}

#[test]
fn a_walk_takes_as_many_bits_as_there_are_of_the_code() {
    // What is between; whether it is a walk.
    let table = "List(type: int(size=12), size=14) codes =
        [10, 18, 4, 26, 8, 34, 42, 12, 50, 1, 16, 20, 24, 28];";
    let cases = [
        // A code table, outside of the schedule, that counts the bits.
        (
            "int(size=8) at := 0; int(size=12) code := 2; int(size=4) bits := 0;
             action X:[b] ==> guard (code & 3) = 2
               do code := codes[at + if b then 1 else 0 end]; at := code >> 2; bits := bits + 1; end
             give: action ==> Y:[code * 100 + bits] guard (code & 3) = 0 do at := 0; code := 2; end
             lost: action ==> Y:[0 - bits] guard (code & 1) = 1 do at := 0; code := 2; end
             schedule fsm s : s (give) --> s; s (lost) --> s; end",
            true,
        ),
        // In a state, with an action before it that looks elsewhere.
        (
            "int at := 0; int code := 2; int n := 0;
             full: action ==> Y:[1000 + n] guard n = 77 do n := 0; end
             next: action X:[b] ==> guard (code & 3) = 2
               do code := codes[at + if b then 1 else 0 end]; at := code >> 2; end
             give: action ==> Y:[code] guard (code & 3) != 2 do at := 0; code := 2; n := n + 7; end
             schedule fsm s : s (full) --> s; s (next) --> s; s (give) --> s; end
             priority full > next > give; end",
            true,
        ),
        // What goes before looks at what is counted.
        (
            "int at := 0; int code := 2; int n := 0;
             full: action ==> Y:[1000 + n] guard n > 9 do n := 0; end
             next: action X:[b] ==> guard (code & 3) = 2
               do code := codes[at + if b then 1 else 0 end]; at := code >> 2; n := n + 1; end
             give: action ==> Y:[code] guard (code & 3) != 2 do at := 0; code := 2; end
             schedule fsm s : s (full) --> s; s (next) --> s; s (give) --> s; end
             priority full > next > give; end",
            false,
        ),
        // Its value depends on more than the key.
        (
            "int at := 0; int code := 2; int more := 0;
             next: action X:[b] ==> guard (code & 3) = 2
               do code := codes[at + if b then 1 else 0 end]; at := (code >> 2) | (more & 0); end
             give: action ==> Y:[code] guard (code & 3) != 2 do at := 0; code := 2; more := more + 1; end
             schedule fsm s : s (next) --> s; s (give) --> s; end",
            false,
        ),
    ];
    let folder = Folder::new();
    let runner = runner();
    for (k, (between, walks)) in cases.into_iter().enumerate() {
        let between = format!("{table} {between}");
        let name = format!("walk-{k}");
        same_as_interpreted((&folder, &runner, &name), "bool", &between, &|text| {
            assert_eq!(text.contains("_walk[lvd_i].more"), walks, "{between}");
        });
    }
}
