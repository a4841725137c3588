// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that arrive while an actor selects its next action count for the next selection. Each actor here has a
//! slow guard between two actions on one port, and its peer is on another worker. So nearly all elements arrive
//! between the reads of these two actions.

mod back_support;

use back_support::{Folder, network, runner, runtime};
use levada_cal::emit::{Options, emit};
use levada_cal::ir::Network;
use std::process::Command;

/// As long as this goes through its list, the other side goes on.
const MIX: &str = "
  uint(size=32) h := 1;
  function mix(uint(size=32) s) --> uint(size=32)
    var List(type: uint(size=32), size=1000) l := [(s + i) * (s ^ i) : for uint(size=32) i in 0 .. 999]
  :
    l[s & 511]
  end";

/// What it prints on two workers.
fn printed(net: &Network) -> Vec<String> {
    let folder = Folder::new();
    let (c, so) = (folder.0.join("net.c"), folder.0.join("net.so"));
    let text = emit(net, &Options::default()).files.remove(0).text;
    std::fs::write(&c, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c17", "-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", "-I"]);
    cc.arg(runtime().join("include")).arg(&c).arg("-o").arg(&so);
    assert!(cc.status().unwrap().success());
    let out = Command::new(runner())
        .args(["2", "60000"])
        .arg(&so)
        .arg("levada_network")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("-- LVD_OK"), "{text}");
    (text.lines().filter(|l| !l.starts_with(['=', '-'])))
        .map(String::from)
        .collect()
}

fn wrong(source: &str, sink: &str) -> Vec<String> {
    let (source, sink) = (format!("{source} {MIX} end"), format!("{sink} {MIX} end"));
    let mut net = network(
        &[("Source", &source), ("Sink", &sink)],
        &[("s", "Source"), ("t", "Sink")],
        &["s.0 -> t.0"],
    );
    // Each element, and each place, is shown as soon as it is there.
    net.channels[0].capacity = Some(2);
    printed(&net)
}

#[test]
fn what_comes_between_two_looks_waits_for_the_next_choice() {
    let source = "actor Source () ==> int Y : int n := 0;
        make: action ==> Y:[n] guard n < 500 do n := n + 1; h := mix(h + n); end";
    let cases = [
        "first: action X:[x] ==> do took(x); end
         second: action X:[x] ==> do wrong := wrong + 1; took(x); end
         priority first > between > second; end",
        // The first is outside of the schedule.
        "action X:[x] ==> do took(x); end
         second: action X:[x] ==> do wrong := wrong + 1; took(x); end
         schedule fsm s : s (between) --> s; s (second) --> s; end
         priority between > second; end",
        // The last needs more than half of the channel, the first less.
        "first: action X:[x] ==> guard x < 0 do wrong := wrong + 1; end
         second: action X:[x] repeat 2 ==> do took(x[1]); end
         priority first > between > second; end",
    ];
    for case in cases {
        let sink = format!(
            "actor Sink () int X ==> : int wrong := 0;
               procedure took(int x) begin
                 h := h + 1;
                 if x = 500 then println(wrong); end
               end
               between: action ==> guard mix(h) = 77 end
               {case}"
        );
        assert_eq!(wrong(source, &sink), ["0"], "{case}");
    }
}

#[test]
fn room_that_comes_between_two_looks_waits_for_the_next_choice() {
    let source = "actor Source () ==> int Y : int n := 1;
        @schedule_outputs
        first: action ==> Y:[0] guard n <= 500 do n := n + 1; end
        between: action ==> guard mix(h + n) = 77 end
        second: action ==> Y:[1] guard n <= 500 do n := n + 1; end
        priority first > between > second; end";
    let sink = "actor Sink () int X ==> : int wrong := 0; int n := 1;
        take: action X:[x] ==> do
          wrong := wrong + x;
          h := mix(h + n);
          if n = 500 then println(wrong); end
          n := n + 1;
        end";
    assert_eq!(wrong(source, sink), ["0"]);
}
