// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which actors are static, which are merged, and that merging does not change the output.

mod back_support;

use back_support::{alone, network};
use levada_cal::classify::{Class, classify};
use levada_cal::emit::Bursts;
use levada_cal::fuse::fuse;
use levada_cal::interp::{Machine, Options, Outcome};
use levada_cal::ir::Network;

const SOURCE: &str = "actor Source () ==> int Y :
  int n := 0;
  emit: action ==> Y:[n] guard n < 50 do n := n + 1; end
end";
const LOUD: &str = "actor Loud () ==> int Y :
  int n := 0;
  emit: action ==> Y:[n] guard n < 50 do println(\"gave \" + n); n := n + 1; end
end";
const DOUBLE: &str = "actor Double () int X ==> int Y :
  int last := 7;
  twice: action X:[x] ==> Y:[2 * x + last] do last := x; end
end";
const PAIRS: &str = "actor Pairs () int X ==> int Y :
  swap: action X:[a, b] ==> Y:[b, a] end
end";
const LISTS: &str = "actor Lists () int X ==> int Y :
  turn: action X:[x] repeat 2 ==> Y:[y] repeat 2
  var List(type: int, size=2) y := [x[1], x[0] + 1]
  do
  end
end";
const SPLIT: &str = "actor Split () int X ==> int Y, int Z :
  both: action X:[x] ==> Y:[x + 1], Z:[x - 1] end
end";
const JOIN: &str = "actor Join () int X, int Y ==> int Z :
  sum: action X:[x], Y:[y] ==> Z:[x * y] end
end";
const DELAY: &str = "actor Delay () int X ==> int Y :
  initialize ==> Y:[5] end
  pass: action X:[x] ==> Y:[x] end
end";
const THREE: &str = "actor Three () int X ==> int Y :
  int sum := 0;
  add: action X:[a, b, c] ==> Y:[sum] do sum := sum + a * b - c; end
end";
const FOUR: &str = "actor Four () int X ==> int Y :
  up: action X:[x] ==> Y:[y] repeat 4
  var List(type: int, size=4) y := [ x + i : for int i in 0 .. 3 ]
  do
  end
end";
const TWICE: &str = "actor Twice () int X ==> int Y :
  up: action X:[x] ==> Y:[x, -x] end
end";
const CHOICE: &str = "actor Choice () int X ==> int Y :
  int odd := 0;
  high: action X:[a, b] ==> Y:[a - b, t, odd]
  guard a > 20, b mod 3 = 1
  var int t := 5
  do odd := odd + t; t := a; end
  low: action X:[x] repeat 2 ==> Y:[x[1], u, x[0]]
  var int u
  do if x[0] > 10 then u := 7; end end
  priority high > low; end
end";
const PHASES: &str = "actor Phases () int X ==> int Y :
  int kept;
  one: action X:[x] ==> do kept := x; end
  two: action X:[x, y] ==> Y:[x + kept] do kept := kept - y; end
  three: action ==> Y:[kept] end
  schedule fsm first : first (one) --> second; second (two) --> third; third (three) --> first; end
end";
const FIRST: &str = "actor First () int X ==> int Y :
  begin_: action ==> Y:[100] end
  go: action X:[x] ==> Y:[x] end
  schedule fsm start : start (begin_) --> on; on (go) --> on; end
end";
const TWO_IN: &str = "actor TwoIn () int X, int Y ==> int Z :
  sum: action X:[x], Y:[y] ==> Z:[x + y] end
end";
const GUARDED: &str = "actor Guarded () int X ==> int Y :
  few: action X:[x] ==> Y:[x] guard x < 30 end
end";
const BLOCKED: &str = "actor Blocked () int X, int Z ==> :
  both: action X:[x], Z:[z] ==> do println(\"both \" + x + \" \" + z); end
end";
const SHORT_CAL: &str = "actor Short () ==> int Y :
  int n := 0;
  emit: action ==> Y:[n] guard n < 7 do n := n + 1; end
end";
const SINK: &str = "actor Sink () int X ==> :
  show: action X:[x] ==> do println(\"got \" + x); end
end";

const CLASSES: &[(&str, &str)] = &[
    ("Source", SOURCE),
    ("Loud", LOUD),
    ("Double", DOUBLE),
    ("Pairs", PAIRS),
    ("Lists", LISTS),
    ("Split", SPLIT),
    ("Join", JOIN),
    ("Delay", DELAY),
    ("Three", THREE),
    ("Four", FOUR),
    ("Twice", TWICE),
    ("Choice", CHOICE),
    ("Phases", PHASES),
    ("First", FIRST),
    ("TwoIn", TWO_IN),
    ("Guarded", GUARDED),
    ("Blocked", BLOCKED),
    ("Short", SHORT_CAL),
    ("Sink", SINK),
];

/// How it ends, and what each actor prints.
fn ending(net: &Network) -> (Outcome, Vec<String>) {
    let options = Options {
        capacity: Some(4096),
        firings: 1_000_000,
        ..Options::default()
    };
    let report = Machine::new(net, options).run().expect("no fault");
    let mut lines: Vec<String> = report
        .printed
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    lines.sort();
    (report.outcome, lines)
}

/// The names of the instances after merging, which changes neither what is printed nor the end.
fn names_after(net: &Network) -> Vec<String> {
    let after = fuse(net);
    assert_eq!(ending(net), ending(&after));
    after.instances.into_iter().map(|i| i.name).collect()
}

fn merged(instances: &[(&str, &str)], wires: &[&str]) -> Vec<String> {
    let net = network(CLASSES, instances, wires);
    let (outcome, text) = ending(&net);
    assert!(outcome == Outcome::Ended && !text.is_empty());
    names_after(&net)
}

/// A row of actors `a`, `b`, ... of these classes between a source that prints and a sink.
fn row(classes: &[&str]) -> Network {
    row_from("Loud", classes)
}

fn row_from(source: &str, classes: &[&str]) -> Network {
    let names: Vec<String> = (0..classes.len())
        .map(|i| char::from(b'a' + i as u8).to_string())
        .collect();
    let mut instances = vec![("s", source)];
    instances.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(classes.iter().copied()),
    );
    instances.push(("t", "Sink"));
    let wires: Vec<String> = instances
        .windows(2)
        .map(|w| format!("{}.0 -> {}.0", w[0].0, w[1].0))
        .collect();
    let wires: Vec<&str> = wires.iter().map(String::as_str).collect();
    network(CLASSES, &instances, &wires)
}

#[test]
fn a_chain_becomes_one_actor() {
    let names = merged(
        &[
            ("s", "Source"),
            ("a", "Double"),
            ("b", "Double"),
            ("c", "Double"),
            ("t", "Sink"),
        ],
        &["s.0 -> a.0", "a.0 -> b.0", "b.0 -> c.0", "c.0 -> t.0"],
    );
    // The sink prints, so it stays.
    assert_eq!(names, ["s+a+b+c", "t"]);
}

#[test]
fn the_action_keeps_the_names_of_its_parts() {
    let net = network(
        CLASSES,
        &[
            ("s", "Source"),
            ("a", "Double"),
            ("b", "Double"),
            ("t", "Sink"),
        ],
        &["s.0 -> a.0", "a.0 -> b.0", "b.0 -> t.0"],
    );
    assert_eq!(
        fuse(&net).instances[0].actor.actions[0].name,
        "s.emit+a.twice+b.twice"
    );
}

#[test]
fn patterns_of_equal_size_meet_in_variables() {
    let names = merged(
        &[
            ("s", "Source"),
            ("a", "Pairs"),
            ("b", "Lists"),
            ("c", "Pairs"),
            ("t", "Sink"),
        ],
        &["s.0 -> a.0", "a.0 -> b.0", "b.0 -> c.0", "c.0 -> t.0"],
    );
    // The source gives one at a time, the pairs take two: that stays a channel.
    assert_eq!(names, ["s", "a+b+c", "t"]);
}

#[test]
fn a_way_around_forbids_merging() {
    let names = merged(
        &[
            ("s", "Source"),
            ("p", "Split"),
            ("d", "Delay"),
            ("j", "Join"),
            ("t", "Sink"),
        ],
        &[
            "s.0 -> p.0",
            "p.0 -> j.0",
            "p.1 -> d.0",
            "d.0 -> j.1",
            "j.0 -> t.0",
        ],
    );
    // Split and join must not become one: what the delay needs comes out of the first.
    assert!(
        !names.iter().any(|n| n.contains('p') && n.contains('j')),
        "{names:?}"
    );
}

#[test]
fn both_ways_of_a_split_may_lead_to_the_same_actor() {
    let names = merged(
        &[
            ("s", "Source"),
            ("p", "Split"),
            ("j", "Join"),
            ("t", "Sink"),
        ],
        &["s.0 -> p.0", "p.0 -> j.0", "p.1 -> j.1", "j.0 -> t.0"],
    );
    assert_eq!(names, ["s+p+j", "t"]);
}

#[test]
fn a_loop_stays() {
    let names = merged(
        &[
            ("s", "Source"),
            ("j", "Join"),
            ("p", "Split"),
            ("d", "Delay"),
            ("t", "Sink"),
        ],
        &[
            "s.0 -> j.0",
            "j.0 -> p.0",
            "p.0 -> t.0",
            "p.1 -> d.0",
            "d.0 -> j.1",
        ],
    );
    assert_eq!(names, ["s", "j", "p", "d", "t"]);
}

#[test]
fn an_actor_that_several_consume_keeps_its_channel() {
    let names = merged(
        &[
            ("s", "Source"),
            ("a", "Double"),
            ("b", "Double"),
            ("t", "Sink"),
            ("u", "Sink"),
        ],
        &["s.0 -> a.0 b.0", "a.0 -> t.0", "b.0 -> u.0"],
    );
    assert_eq!(names, ["s", "a", "b", "t", "u"]);
}

#[test]
fn actors_of_unequal_rates_become_one() {
    // 50 elements are no multiple of what a round takes: the rest is not lost.
    for (classes, whole) in [
        (&["Double", "Three"][..], "a+b"),
        (&["Four", "Three"], "a+b"),
        (&["Double", "Twice", "Pairs", "Three", "Four"], "a+b+c+d+e"),
        (&["Double", "Choice", "Double"], "a+b+c"),
        (&["Choice", "Choice"], "a+b"),
        (&["Double", "Phases"], "a+b"),
        (&["Twice", "Phases", "Lists"], "a+b+c"),
        (&["Phases", "Phases"], "a+b"),
        (&["Double", "First"], "a+b"),
        (&["Double", "First", "Twice"], "a+b+c"),
        (&["Twice", "Delay"], "a+b"),
    ] {
        let names = names_after(&row(classes));
        assert_eq!(names, ["s", whole, "t"]);
    }
}

#[test]
fn a_source_joins_where_a_round_begins_with_it() {
    let names = names_after(&row_from("Source", &["Four", "Double"]));
    assert_eq!(names, ["s+a+b", "t"]);
}

/// Every row of two and of three, between channels of every small size.
#[test]
fn no_row_is_changed_whatever_room_there_is() {
    let kinds = [
        "Double", "Pairs", "Lists", "Three", "Four", "Twice", "Choice", "Phases", "First", "Delay",
        "Guarded",
    ];
    let mut fused = 0;
    let mut check = |classes: &[&str], sizes: &[u32]| {
        let mut net = row(classes);
        for size in sizes {
            for (k, c) in net.channels.iter_mut().enumerate() {
                // As the emitter would make it: never less than one firing moves.
                let ends = [c.from, c.to[0]];
                let ports = ends.iter().zip([false, true]);
                let most = ports
                    .map(|(e, to)| {
                        let bursts = Bursts::of(&net.instances[e.instance].actor);
                        if to {
                            bursts.inputs[e.port]
                        } else {
                            bursts.outputs[e.port]
                        }
                    })
                    .max();
                c.capacity = Some((size + k as u32 % 3).max(most.unwrap_or(1)));
            }
            let after = fuse(&net);
            fused += usize::from(after.instances.len() < net.instances.len());
            assert_eq!(ending(&net), ending(&after), "{classes:?}, {size}");
        }
    };
    for a in kinds {
        for b in kinds {
            check(&[a, b], &[1, 2, 3, 4, 5, 6, 7, 8, 11, 16]);
            for c in ["Three", "Four", "Choice", "Phases"] {
                check(&[a, b, c], &[2, 5, 9]);
            }
        }
    }
    assert!(fused > 1000, "{fused}");
}

/// A network where one of two ways to a join ends early comes to a standstill if the other way is
/// full, and to an end if it is not: the room in the channels decides, merged or not.
#[test]
fn a_standstill_stays_one() {
    let mut seen = [0; 2];
    for middle in [
        &["Double", "Double"][..],
        &["Pairs", "Three"],
        &["Four", "Double"],
        &["Double", "Twice", "Pairs"],
    ] {
        for size in 1..60 {
            let mut instances = vec![("s", "Loud"), ("g", "Short"), ("z", "Blocked")];
            let names = ["a", "b", "c"];
            instances.extend(names.into_iter().zip(middle.iter().copied()));
            let mut wires = vec![format!("s.0 -> a.0")];
            for w in names[..middle.len()].windows(2) {
                wires.push(format!("{}.0 -> {}.0", w[0], w[1]));
            }
            wires.push(format!("{}.0 -> z.0", names[middle.len() - 1]));
            wires.push("g.0 -> z.1".to_string());
            let wires: Vec<&str> = wires.iter().map(String::as_str).collect();
            let mut net = network(CLASSES, &instances, &wires);
            for c in &mut net.channels {
                c.capacity = Some(size.max(6));
            }
            let (outcome, _) = ending(&net);
            seen[usize::from(outcome == Outcome::Ended)] += 1;
            let after = fuse(&net);
            assert!(after.instances.len() < net.instances.len());
            let (before, after) = (ending(&net), ending(&after));
            assert_eq!(before.0, after.0, "{middle:?}, {size}");
            // How far those before it run ahead of a standstill is all that may differ.
            for (a, b) in before.1.iter().zip(&after.1) {
                let equal =
                    a == b || a.starts_with("gave") && (a.starts_with(b) || b.starts_with(a));
                assert!(equal, "{middle:?}, {size}: {a}{b}");
            }
        }
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
}

/// An actor with a second input that ends does not wait for room, but its producer does. If they were merged, none
/// would.
#[test]
fn one_that_waits_for_another_stays_by_itself() {
    let mut net = network(
        CLASSES,
        &[
            ("s", "Source"),
            ("a", "Double"),
            ("g", "Short"),
            ("b", "TwoIn"),
            ("t", "Sink"),
        ],
        &["s.0 -> a.0", "a.0 -> b.0", "g.0 -> b.1", "b.0 -> t.0"],
    );
    for c in &mut net.channels {
        c.capacity = Some(4);
    }
    net.channels[0].capacity = Some(100);
    assert_eq!(ending(&net).0, Outcome::Deadlock);
    let names = names_after(&net);
    assert!(!names.iter().any(|n| n.ends_with("+b")), "{names:?}");
}

/// A channel that is too small for two rates to meet stops the network; it must not start to run.
#[test]
fn rates_that_cannot_meet_are_left_alone() {
    let mut net = row(&["Lists", "Three"]);
    net.channels[1].capacity = Some(3);
    assert_eq!(ending(&net).0, Outcome::Deadlock);
    let names = names_after(&net);
    assert!(!names.iter().any(|n| n.contains("a+b")), "{names:?}");
}

/// Nothing may be drawn from a loop that begins with nothing.
#[test]
fn a_loop_without_elements_gives_nothing_merged_or_not() {
    let net = network(
        CLASSES,
        &[
            ("s", "Source"),
            ("j", "TwoIn"),
            ("p", "Split"),
            ("d", "Double"),
            ("e", "Double"),
            ("t", "Sink"),
        ],
        &[
            "s.0 -> j.0",
            "j.0 -> p.0",
            "p.0 -> t.0",
            "p.1 -> d.0",
            "d.0 -> e.0",
            "e.0 -> j.1",
        ],
    );
    names_after(&net);
}

fn class(text: &str) -> Class {
    classify(&alone(text).instances[0].actor)
}

#[test]
fn classes_of_actors() {
    let one = "actor A () int X ==> int Y : action X:[x, y] ==> Y:[x + y] end end";
    let Class::Static(rates) = class(one) else {
        panic!("static")
    };
    assert_eq!((rates.inputs, rates.outputs), (vec![2], vec![1]));

    // Which action fires depends on the value; how much it moves does not.
    let choice = "actor A () int X ==> int Y :
      a: action X:[x] ==> Y:[1] guard x > 0 end
      b: action X:[x] ==> Y:[2] end
      priority a > b; end
    end";
    assert!(matches!(class(choice), Class::Static(_)));

    let guarded = "actor A () int X ==> int Y : action X:[x] ==> Y:[1] guard x > 0 end end";
    assert_eq!(class(guarded), Class::Dynamic);

    let cycle = "actor A () int X ==> int Y :
      a: action X:[x] ==> end
      b: action X:[x] ==> Y:[x] end
      c: action ==> Y:[0] end
      schedule fsm start : start (c) --> one; one (a) --> two; two (b) --> one; end
    end";
    let Class::CycloStatic { before, cycle } = class(cycle) else {
        panic!("cyclo-static")
    };
    assert_eq!((before.len(), cycle.len()), (1, 2));
    assert_eq!(cycle[1].outputs, [1]);

    let data = "actor A () int X ==> int Y :
      a: action X:[x] ==> guard x > 0 end
      b: action X:[x] ==> Y:[x] end
      schedule fsm s : s (a) --> s; s (b) --> s; end
      priority a > b; end
    end";
    assert_eq!(class(data), Class::Dynamic);
}
