// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who prints without end, and how it ends: C programs that are in a library nearly all of their time.

mod common;

use common::host::{Host, sources};
use std::time::{Duration, Instant};

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
