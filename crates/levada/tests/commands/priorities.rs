// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of action priorities under concurrency: no action fires for an element that an action of higher priority
//! could have consumed, even if the element arrives between the reads of the two.

use crate::common::{Instance, Place, network};

const ELEMENTS: u32 = 1_000_000;
const OTHERS: u32 = 40;

/// Actions that all may fire, behind one that needs nothing and never does.
fn chooser() -> String {
    let body = "seen := seen + 1; if seen = total then println(\"wrong \" + wrong); end";
    let mut text = format!(
        "package p;\nactor Chooser (int total) int X ==> :\n  int never := 0;\n  int wrong := 0;\n  int seen := 0;\n\
         \x20 done: action ==> guard never = 9 end\n\
         \x20 first: action X:[x] ==> guard x < 5 do {body} end\n"
    );
    let names: Vec<String> = (0..OTHERS).map(|i| format!("later{i}")).collect();
    for name in &names {
        text +=
            &format!("  {name}: action X:[x] ==> guard x < 5 do wrong := wrong + 1; {body} end\n");
    }
    text + &format!(
        "  priority done > first > {}; end\nend\n",
        names.join(" > ")
    )
}

const SOURCE: &str = "package p;\nactor Source (int total) ==> int X :\n  int n := 0;\n  int x := 1;\n\
    \x20 action ==> X:[x mod 5] guard n < total do n := n + 1; x := (x * 75 + 74) mod 65537; end\nend\n";

#[test]
fn elements_between_two_reads_go_to_the_higher_priority() {
    let total = ELEMENTS.to_string();
    let params: &[(&str, &str)] = &[("total", &total)];
    let instances: &[Instance] = &[
        ("source", "p.Source", params),
        ("chooser", "p.Chooser", params),
    ];
    let top = network(instances, &[("source.X", "chooser.X")]);
    let place = Place::new(&[
        ("src/p/Source.cal", SOURCE),
        ("src/p/Chooser.cal", &chooser()),
        ("src/p/Top.xdf", &top),
    ]);
    // On two workers elements come at any moment. One round would often be without such a moment.
    for _ in 0..10 {
        let run = place.run(&["run", "src/p/Top.xdf", "--workers", "2", "--no-balance"]);
        assert_eq!(run.succeeds().out, "wrong 0\n", "{run:?}");
    }
}
