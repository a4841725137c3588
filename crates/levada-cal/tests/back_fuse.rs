// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which actors are static, which are merged, and that merging changes nothing.

mod back_support;

use back_support::{alone, network};
use levada_cal::classify::{Class, classify};
use levada_cal::fuse::fuse;
use levada_cal::interp::{Machine, Options};
use levada_cal::ir::Network;

const SOURCE: &str = "actor Source () ==> int Y :
  int n := 0;
  emit: action ==> Y:[n] guard n < 50 do n := n + 1; end
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
const SINK: &str = "actor Sink () int X ==> :
  show: action X:[x] ==> do println(\"got \" + x); end
end";

const CLASSES: &[(&str, &str)] = &[
    ("Source", SOURCE),
    ("Double", DOUBLE),
    ("Pairs", PAIRS),
    ("Lists", LISTS),
    ("Split", SPLIT),
    ("Join", JOIN),
    ("Delay", DELAY),
    ("Sink", SINK),
];

fn printed(net: &Network) -> Vec<String> {
    let report = Machine::new(net, Options::default())
        .run()
        .expect("no fault");
    let mut lines: Vec<String> = report
        .printed
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    lines.sort();
    lines
}

/// The names of the instances after merging; what is printed must stay.
fn merged(instances: &[(&str, &str)], wires: &[&str]) -> Vec<String> {
    let net = network(CLASSES, instances, wires);
    let after = fuse(&net);
    let text = printed(&net);
    assert!(!text.is_empty());
    assert_eq!(text, printed(&after));
    after.instances.into_iter().map(|i| i.name).collect()
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
    // The source may join the loop; what is on it does not become one.
    assert_eq!(names, ["s+j", "p", "d", "t"]);
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
