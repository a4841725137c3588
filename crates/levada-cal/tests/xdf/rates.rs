// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of warnings about rates: elements that are left over at the end, rates that cannot be balanced, and channels
//! that are too small.

use crate::support::{ACTORS, buffer, instance, int, load, sink, wire, xdf};

/// Actors of constant rates: `Take N`, `Give N`, and one that joins two.
const RATED: &[(&str, &str)] = &[
    (
        "p/Take.cal",
        "package p;\nactor Take (int n) int(size=8) In ==> :\n  action In:[x] repeat n ==> end\nend\n",
    ),
    (
        "p/Give.cal",
        "package p;\nactor Give (int n) int(size=8) In ==> int(size=8) Out :\n  \
         action In:[x] ==> Out:[[x : for int i in 1 .. n]] repeat n end\nend\n",
    ),
    (
        "p/Join.cal",
        "package p;\nactor Join () int(size=8) A, int(size=8) B ==> int(size=8) Out :\n  \
         action A:[a], B:[b] ==> Out:[a + b] end\nend\n",
    ),
    (
        "p/Turns.cal",
        "package p;\nactor Turns () int(size=8) In ==> :\n  a: action In:[x] ==> end\n  \
         b: action In:[x] repeat 3 ==> end\n  schedule fsm s : s (a) --> t; t (b) --> s; end\nend\n",
    ),
    (
        "p/Block.cal",
        "package p;\nactor Block () ==> int(size=8) Out :\n  int i := 0;\n  \
         action ==> Out:[1, 2, 3] guard i < 4 do i := i + 1; end\n  \
         action ==> Out:[4] guard i = 4 do i := 5; end\nend\n",
    ),
    (
        "p/Picky.cal",
        "package p;\nactor Picky () int(size=8) In ==> :\n  action In:[x, y] ==> guard x > y end\n  \
         action In:[x] ==> end\nend\n",
    ),
    (
        "p/Delay.cal",
        "package p;\nactor Delay () int(size=8) In ==> int(size=8) Out :\n  \
         initialize ==> Out:[0, 0] end\n  action In:[x] ==> Out:[x] end\nend\n",
    ),
];

/// What is said of a network of these actors that loads.
fn of_rates(name: &str, body: &str) -> String {
    let top = xdf(body);
    let files: Vec<(&str, &str)> = [ACTORS, RATED, &[("p/Top.xdf", &*top)]].concat();
    let (network, said) = load(name, &files, &[]);
    assert!(network.is_some(), "{name}: {said}");
    said
}

fn count_to(id: &str, n: i64) -> String {
    instance(id, "p.Source", &[("n", int(n))])
}

#[test]
fn what_a_known_total_leaves_over_is_told() {
    let take = |n: i64| instance("take", "p.Take", &[("n", int(n))]);
    let direct = |total: i64, n: i64| {
        of_rates(
            "total",
            &[
                count_to("source", total),
                take(n),
                wire("source.Out", "take.In", ""),
            ]
            .concat(),
        )
    };
    let said = direct(100, 48);
    for part in [
        "warning[rates]: 4 of the 100 elements that source.Out puts are left over at the end",
        "take.In takes 48 at a time",
        "Top.xdf:",
        "<Connection dst=\"take\"",
        "Take.cal:3:",
        "let a multiple of 48 come",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(
        direct(40, 48)
            .contains("take never fires: source.Out puts 40 in all, and take.In takes 48")
    );
    assert_eq!(direct(96, 48), "");
    assert_eq!(direct(0, 48), "");
    // Behind others: 7 times 3, by 4 and by 1 and 3 in turn, with the two that a delay puts first.
    let give = || instance("give", "p.Give", &[("n", int(3))]);
    let behind = |total: i64, rest: &str| {
        let front = [
            count_to("source", total),
            give(),
            wire("source.Out", "give.In", ""),
        ]
        .concat();
        of_rates("behind", &(front + rest))
    };
    let four = take(4) + &wire("give.Out", "take.In", "");
    assert!(behind(7, &four).contains("1 of the 21 elements that give.Out puts are left over"));
    assert_eq!(behind(8, &four), "");
    let turns = instance("turns", "p.Turns", &[]) + &wire("give.Out", "turns.In", "");
    let said = behind(6, &turns);
    for part in [
        "1 of the 18 elements that give.Out puts",
        "turns.In takes 1, 3 in turn",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert_eq!(behind(7, &turns), "");
    let delay = instance("delay", "p.Delay", &[])
        + &wire("give.Out", "delay.In", "")
        + &take(4)
        + &wire("delay.Out", "take.In", "");
    assert!(behind(7, &delay).contains("3 of the 23 elements that delay.Out puts"));
    assert_eq!(behind(6, &delay), "");
    // A source with several actions is played: 4 times 3 and 1.
    let block = |n: i64| {
        let body = [
            instance("block", "p.Block", &[]),
            take(n),
            wire("block.Out", "take.In", ""),
        ];
        of_rates("block", &body.concat())
    };
    let said = block(5);
    assert!(
        said.contains("3 of the 13 elements that block.Out puts"),
        "{said}"
    );
    assert_eq!(block(13), "");
    // Of two sources one may end first.
    let join = |a: i64, b: i64| {
        let parts = [
            count_to("one", a),
            count_to("two", b),
            instance("join", "p.Join", &[]),
            sink(),
            wire("one.Out", "join.A", ""),
            wire("two.Out", "join.B", ""),
            wire("join.Out", "sink.In", ""),
        ];
        of_rates("join", &parts.concat())
    };
    let said = join(10, 12);
    for part in [
        "2 of the 12 elements that two.Out puts",
        "join fires 10 times, until join.A ends",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert_eq!(join(12, 12), "");
    // What depends on values is not known, and nothing is said of what is behind it.
    let picky = [
        count_to("source", 5),
        instance("picky", "p.Picky", &[]),
        wire("source.Out", "picky.In", ""),
    ];
    assert_eq!(of_rates("picky", &picky.concat()), "");
}

#[test]
fn rates_that_cannot_be_balanced_are_told() {
    let ways = |first: i64, second: i64| {
        let parts = [
            count_to("source", 30),
            instance("a", "p.Give", &[("n", int(first))]),
            instance("b", "p.Give", &[("n", int(second))]),
            instance("join", "p.Join", &[]),
            sink(),
            wire("source.Out", "a.In", ""),
            wire("source.Out", "b.In", ""),
            wire("a.Out", "join.A", ""),
            wire("b.Out", "join.B", ""),
            wire("join.Out", "sink.In", ""),
        ];
        of_rates("ways", &parts.concat())
    };
    assert_eq!(ways(2, 2), "");
    let said = ways(2, 3);
    for part in [
        "warning[rates]: the rates of this channel cannot meet",
        "<Connection",
        "Join.cal:3:",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    // Around a cycle, too, whatever is in it at first.
    let around = |n: i64| {
        let parts = [
            count_to("source", 30),
            instance("join", "p.Join", &[]),
            instance("delay", "p.Delay", &[]),
            instance("give", "p.Give", &[("n", int(n))]),
            wire("source.Out", "join.A", ""),
            wire("join.Out", "delay.In", ""),
            wire("delay.Out", "give.In", ""),
            wire("give.Out", "join.B", ""),
        ];
        of_rates("around", &parts.concat())
    };
    assert_eq!(around(1), "");
    let said = around(2);
    assert!(
        said.contains("cannot meet") && !said.contains("left over"),
        "{said}"
    );
}

#[test]
fn a_channel_that_is_too_small_is_told_with_its_place() {
    let body = |n: i64| {
        let parts = [
            count_to("source", 16),
            instance("take", "p.Take", &[("n", int(8))]),
            wire("source.Out", "take.In", &buffer(n)),
        ];
        of_rates("small", &parts.concat())
    };
    assert_eq!(body(8), "");
    let said = body(7);
    for part in [
        "warning[small-channel]",
        "take.In takes 8 at a time",
        "<Connection",
        "a bufferSize of 8",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}
