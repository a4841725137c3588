// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of natives that block in the system when their application is to end at once: the system call is
//! interrupted, and other applications are not affected.

use crate::common;
use crate::common::host::{Host, sources};
use crate::common::{Place, network};

/// What a native may wait in, by number; from `ENDED_BY_ANY` on it is what goes on after most signals.
const CALLS: [&str; 6] = [
    "nanosleep(&t, &t);",
    "sleep(1000);",
    "poll(0, 0, -1);",
    "pause();",
    "pipe(fd); read(fd[0], &byte, 1);",
    "sem_init(&never, 0, 0); sem_wait(&never);",
];
const ENDED_BY_ANY: usize = 4;

fn calls() -> usize {
    if cfg!(target_arch = "x86_64") {
        CALLS.len()
    } else {
        common::skipped(
            "reads of a pipe, and semaphores",
            "they go on here after a signal",
        );
        ENDED_BY_ANY
    }
}

/// `SleeperN`: its source's native waits in the call of that number, and its writer writes what that says.
fn sleepers() -> Place {
    let place = sources();
    place.write(
        "src/p/Sleeper.cal",
        "package p;\nactor Sleeper (int how) ==> int Out :\n  @native function asleep(int how) --> int end\n  \
         action ==> Out:[asleep(how)] end\nend\n",
    );
    let mut native = String::from(
        "#include <poll.h>\n#include <semaphore.h>\n#include <stdint.h>\n#include <time.h>\n#include <unistd.h>\n\
         int32_t asleep(int32_t how);\nint32_t asleep(int32_t how) {\n  struct timespec t = {1000, 0};\n  \
         int fd[2];\n  char byte;\n  sem_t never;\n  switch (how) {\n",
    );
    for (i, call) in CALLS.iter().enumerate() {
        native += &format!("  case {i}: {call} break;\n");
    }
    place.write("natives/asleep.c", &(native + "  }\n  return 7;\n}\n"));
    for i in 0..CALLS.len() {
        let how = i.to_string();
        let sleeper = ("sleeper", "p.Sleeper", &[("how", how.as_str())][..]);
        let top = network(
            &[sleeper, ("write", "p.Write", &[])],
            &[("sleeper.Out", "write.In")],
        );
        let name = format!("Sleeper{i}");
        place.write(
            &format!("src/p/{name}.xdf"),
            &top.replace("\"Top\"", &format!("\"{name}\"")),
        );
    }
    place
}

fn load(host: &Host, call: usize) {
    let top = format!("src/p/Sleeper{call}.xdf");
    host.run(&["load", &top, "--name=asleep", "--out=asleep.txt"])
        .succeeds();
    host.until("asleep", |a| a["busy"].as_f64() > Some(0.2));
}

/// With one worker all others wait for it until then.
#[test]
fn a_blocked_native_can_be_ended() {
    for workers in [&[][..], &["--workers=1"]] {
        let host = Host::begin_with(sleepers(), workers);
        host.many("net");
        for (call, what) in CALLS.iter().enumerate().take(calls()) {
            load(&host, call);
            let ended = host.json(&["unload", "asleep", "--now"]);
            assert_eq!(ended["outcome"], "stopped", "{what}");
            let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap();
            let now = firings(&host.seen("net"));
            host.until("net", |a| firings(a) > now + 1000);
            // What the native has said then is written nowhere.
            if cfg!(target_arch = "x86_64") {
                assert!(!host.place.exists("asleep.txt"), "{what}");
            }
        }
    }
}

/// So are all when the host is to end, which does not wait for as long as it would for a firing that lasts.
#[test]
fn a_host_ends_with_a_blocked_native() {
    let mut host = Host::begin_with(sleepers(), &["--timeout=3600"]);
    load(&host, 1);
    // SAFETY: a child of ours that has not been waited for.
    assert_eq!(
        unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) },
        0
    );
    host.until_dead();
}

/// An isolated application that asks its own process to end and waits for this has ended: at once, or, if it never
/// returns, when the host's timeout is over.
#[test]
fn an_isolated_application_can_end_itself_by_a_signal() {
    for (waits, within) in [
        ("pause()", "--timeout=3600"),
        ("for (;;) pause()", "--timeout=1"),
    ] {
        let place = sleepers();
        place.write(
            "natives/asleep.c",
            &format!(
                "#include <signal.h>\n#include <stdint.h>\n#include <unistd.h>\nint32_t asleep(int32_t how);\n\
                 int32_t asleep(int32_t how) {{\n  kill(getpid(), SIGTERM);\n  {waits};\n  return how;\n}}\n"
            ),
        );
        let host = Host::begin_with(place, &[within]);
        host.many("net");
        host.run(&["load", "src/p/Sleeper0.xdf", "--isolate", "--name=asleep"])
            .succeeds();
        let failed = host.until("asleep", |a| a["state"] == "failed");
        let how = failed["outcome"].as_str().unwrap();
        assert!(how.contains("signal 15"), "{waits}: {how}");
        assert_eq!(host.seen("net")["state"], "running");
    }
}
