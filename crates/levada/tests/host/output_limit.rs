// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of applications that print without end, isolated and not.

use crate::common;
use crate::common::host::{Host, sources};
use std::time::{Duration, Instant};

/// Two actors that print as fast as they can, while another application writes.
#[test]
fn a_network_prints_no_more_than_it_may() {
    const SECONDS: f64 = 2.0;
    let place = sources();
    place.write(
        "src/p/Says.cal",
        "package p;\nactor Says () ==> :\n  int n := 0;\n  action ==> do println(\"line \" + n + \" of many\"); n \
         := n + 1; end\nend\n",
    );
    let says = [("a", "p.Says", &[][..]), ("b", "p.Says", &[])];
    let text = common::network(&says, &[]);
    place.write("src/p/All.xdf", &text.replace("\"Top\"", "\"All\""));
    let host = Host::begin_printing(place, &["--output-rate=100K"]);
    host.many("net");
    for more in [&[][..], &["--isolate"]] {
        let before = host.printed().len();
        let load = ["load", "src/p/All.xdf", "--name=all"];
        host.run(&[&load[..], more].concat()).succeeds();
        let start = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(SECONDS));
        host.run(&["unload", "all", "--now"]).succeeds();
        let most = 102_400.0 * (start.elapsed().as_secs_f64() + 3.0);
        let printed = host.printed();
        let bytes = (printed.len() - before) as f64;
        assert!(bytes < most && bytes > 100e3 * SECONDS, "{bytes} of {most}");
        // No half of a line: none is dropped or broken.
        let lines: Vec<&str> = printed[before..].split_inclusive('\n').collect();
        let whole = |l: &&str| l.starts_with("line ") && l.ends_with(" of many\n");
        assert_eq!(lines.iter().filter(|l| !whole(l)).count(), 0);
    }
    let fired = host.seen("net")["firings"].as_u64();
    host.until("net", |a| a["firings"].as_u64() > fired);
}
