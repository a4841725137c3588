// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who prints without end: what comes of it, and how it ends. Networks, isolated and not, and C programs that are in a
//! library nearly all of their time.

mod common;

use common::host::{Host, sources};
use std::time::{Duration, Instant};

/// Two actors that print as fast as they can; another application beside them writes.
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
    let host = Host::begin_printing(place, &["--prints=100K"]);
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

/// The clock of its worker hardly ever meets it in code of its own.
#[test]
fn a_program_that_is_in_a_library_ends_at_once() {
    if !cfg!(target_arch = "x86_64") {
        return common::skipped(
            "the end of who is in a library",
            "it is not seen here where a call returns",
        );
    }
    const ROUNDS: usize = 3;
    let place = sources();
    place.write(
        "prints.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nstatic char text[100001];\n\
         int main(int argc, char **argv) {\n  const char *how = argc > 1 ? argv[1] : \"\";\n  \
         FILE *out = fopen(\"/dev/null\", \"w\");\n  if (!out) return 1;\n  \
         memset(text, 'x', sizeof text - 1);\n  \
         if (!strcmp(how, \"writes\")) setvbuf(out, NULL, _IONBF, 0);\n  \
         size_t (*volatile counts)(const char *) = strlen;\n  \
         while (!strcmp(how, \"counts\")) if (!counts(text)) return 2;\n  \
         for (int i = 0;; i++) if (fprintf(out, \"line %d\\n\", i) < 0) return 3;\n}\n",
    );
    place
        .run(&["cc", "--hosted", "-O2", "prints.c", "-o", "prints.so"])
        .succeeds();
    let host = Host::begin_in(place);
    host.many("net");
    for how in ["prints", "writes", "counts"] {
        for more in [&[][..], &["--share=0.3"]] {
            let mut longest = Duration::ZERO;
            for _ in 0..ROUNDS {
                let load = ["load", "prints.so", "--name=a", "--socket", "h.sock"];
                let all = [&load[..], more, &["--", how]].concat();
                host.place.run(&all).succeeds();
                std::thread::sleep(Duration::from_millis(300));
                let start = Instant::now();
                let ended = host.json(&["unload", "a", "--now"]);
                assert_eq!(ended["outcome"], "stopped", "{how}");
                longest = longest.max(start.elapsed());
            }
            println!("{how} {more:?}: {longest:?}");
            // With the time that others on the machine take.
            assert!(longest < Duration::from_secs(4), "{how}: {longest:?}");
        }
    }
    let fired = host.seen("net")["firings"].as_u64();
    host.until("net", |a| a["firings"].as_u64() > fired);
}
