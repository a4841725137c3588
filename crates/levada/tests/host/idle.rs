// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that a host causes no wake-ups while all of its applications wait for input.

use crate::common::host::{Host, READ, compiled, held_pipe, sources};
use crate::common::network;
use std::time::Duration;

/// Computes for a while, by forks, and waits then.
const PROGRAM: &str = r#"
#include <levada/fork.h>
#include <levada/program.h>
static int fib(int n) {
  int a, b;
  if (n < 2) return n;
  a = fib(n - 1) !! { b = fib(n - 2); }
  return a + b;
}
int main(void) {
  int all = 0;
  for (int i = 0; i < 100; i++) all |= fib(22);
  while (!lvd_app_is_draining(lvd_current_app()) && lvd_fiber_sleep(3600000000000) == LVD_OK) {}
  return all == 0;
}
"#;

/// Applications that wait for their input cost nothing: no thread of the host wakes up for them, until something
/// comes. Then they are looked at, also where it comes again before they have been.
#[test]
fn a_host_sleeps_while_all_applications_wait() {
    let place = sources();
    place.write("src/p/Read.cal", READ);
    let top = network(
        &[("read", "p.Read", &[]), ("write", "p.Write", &[])],
        &[("read.Out", "write.In")],
    );
    place.write("src/p/Reads.xdf", &top.replace("\"Top\"", "\"Reads\""));
    compiled(&place, "computes", PROGRAM);
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let load = ["load", "src/p/Reads.xdf", "--name=a"];
    host.run(&[&load[..], &["--in=in.fifo", "--out=a.txt"]].concat())
        .succeeds();
    host.run(&["load", "computes.so", "--name=c"]).succeeds();
    let busy = || {
        let map = host.json(&["map"]);
        let all = map.as_array().unwrap().iter();
        let all = all.flat_map(|w| w["actor"].as_array().unwrap().clone());
        all.filter_map(|a| a["share"].as_f64()).sum::<f64>()
    };
    for _ in 0..2 {
        let sleeps = || host.sleeps(Duration::from_millis(2500)); // longer than what is looked at once a second
        assert!(
            (0..24).any(|_| sleeps()),
            "a thread of the host always wakes up"
        );
        assert_eq!(busy(), 0.0);
        let mut seen = || {
            std::io::Write::write_all(&mut input, b"1 2 3 4 5 6 ").unwrap();
            std::thread::sleep(Duration::from_millis(700));
            busy() > 0.0
        };
        assert!((0..60).any(|_| seen()), "no load was measured");
    }
}
