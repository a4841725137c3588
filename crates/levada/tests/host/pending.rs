// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of requests that name a pending application (being loaded, or to be restored): they block until it has
//! started, and their timeout error states the reason.

use crate::common::host::{Host, compiled, pipe, sources};
use crate::common::{Place, Run, network};
use serde_json::Value;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// It takes as long to be opened as there is a file `shut`, and runs until it is asked to end.
const GATE: &str = r#"
#include <levada/fiber.h>
#include <levada/native.h>
#include <levada/program.h>
#include <unistd.h>
__attribute__((constructor)) static void gate(void) {
  while (access("shut", F_OK) == 0) usleep(1000);
}
int main(void) {
  while (!lvd_app_is_draining(lvd_current_app()) && lvd_fiber_sleep(1000000) == LVD_OK) {}
  return 0;
}
"#;

fn gated() -> Place {
    let place = sources();
    for (name, text) in [("gate", GATE), ("gate2", GATE)] {
        compiled(&place, name, text);
    }
    place
}

fn shut(host: &Host, shut: bool) {
    if shut {
        host.place.write("shut", "")
    } else {
        std::fs::remove_file(host.place.path("shut")).unwrap()
    }
}

fn runs(seen: &Value) -> bool {
    seen["state"] == "running"
}

const REPLACE: [&str; 3] = ["replace", "b", "src/p/Many.xdf"];

/// All that waits for `b`, which says so when it has waited for long enough.
fn refused(host: &Host, why: &str) {
    for what in [&REPLACE[..], &["pause", "b"]] {
        host.run(&[what, &["--timeout=0.1"]].concat())
            .refuses(8, &[why, "try again, or wait longer"]);
    }
}

/// The same, which have come before it could be done; `open` lets them.
fn waits(host: &Host, open: impl FnOnce()) {
    std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&REPLACE));
        let moves = scope.spawn(|| host.run(&["move", "b", "source", "1"]));
        open();
        replaces.join().unwrap().succeeds();
        moves.join().unwrap().succeeds();
    });
    host.until("b", runs);
}

/// `a`, which takes long, is restored before `b` and `c`. It has a process of its own: what opens code in the host
/// holds up there whatever begins a thread.
#[test]
fn requests_wait_for_an_application_that_is_to_be_restored() {
    let host = Host::begin_in(gated());
    host.run(&["load", "gate.so", "--name=a", "--isolate"])
        .succeeds();
    host.many("b");
    host.many("c");
    shut(&host, true);
    let host = host.again(&["--restore=all"]);
    let why = "b is not loaded yet: it is to be loaded again";
    refused(&host, why);
    host.run(&["pause", "b", "--timeout=0.1"])
        .refuses(8, &["levada resume b loads it at once"]);
    let said = host.run(&["why", "b"]);
    let said: &Run = said.succeeds();
    assert!(said.out.contains("b is not loaded: is to be"), "{said:?}");
    host.run(&["pause", "a", "--timeout=0.1"])
        .refuses(8, &["a is being loaded", "try again, or wait longer"]);
    // An application that is unloaded while pending is not loaded.
    host.run(&["unload", "c"]).succeeds();
    waits(&host, || shut(&host, false));
    host.until("a", runs);
    assert!(host.seen("c").is_null());
    host.run(&["pause", "c"])
        .refuses(4, &["no application c is loaded"]);
}

/// An application that is not restored is reported as such, and no request waits for it.
#[test]
fn an_application_that_is_not_restored_is_reported() {
    let host = Host::begin();
    host.many("b");
    let host = host.again(&[]);
    let why = "b is not loaded: the last host had loaded it";
    let commands: [&[&str]; 4] = [
        &REPLACE,
        &["pause", "b"],
        &["move", "b", "source", "1"],
        &["show", "b"],
    ];
    for command in commands {
        host.run(command).refuses(
            5,
            &[why, "levada resume b loads it, levada unload b forgets it"],
        );
    }
    assert!(host.run(&["why", "b"]).succeeds().out.contains(why));
    host.run(&["resume", "b"]).succeeds();
    host.run(&REPLACE).succeeds();
    host.until("b", runs);
}

/// Its timeout is that of the resume request. It is not blamed for an end of the host meanwhile, since none of its
/// code has run.
#[test]
fn a_resumed_unrestored_application_is_not_waited_for_and_not_blamed() {
    let host = Host::begin_in(gated());
    host.run(&["load", "gate.so", "--name=a"]).succeeds();
    host.run(&["load", "gate.so", "--name=apart", "--isolate"])
        .succeeds();
    let mut host = host.again(&[]);
    shut(&host, true);
    for (name, why) in [
        ("a", "has taken too long"),
        ("apart", "has not been loaded in the time that it has"),
    ] {
        host.run(&["resume", name, "--timeout=0.5"])
            .refuses(8, &[why, "--timeout"]);
    }
    let resume = host.place.command(&["resume", "a", "--socket", "h.sock"]);
    let mut resumes = { resume }
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while host.json(&["stats"])["host"]["preparing"] == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    host.child.kill().unwrap();
    resumes.wait().unwrap();
    shut(&host, false);
    let host = host.again(&["--restore"]);
    for name in ["a", "apart"] {
        host.until(name, runs);
    }
}

/// What is wrong with a load is told from what is wrong with the time that it had.
#[test]
fn a_timeout_is_no_invalid_request() {
    let host = Host::begin_in(gated());
    shut(&host, true);
    let directory = host.place.path("");
    let request = |within: f64| {
        let all =
            serde_json::json!({"network": "gate.so", "directory": directory, "timeout": within});
        host.post("/applications", &all.to_string())
    };
    let answer = request(0.5);
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(answer.contains("has taken too long"), "{answer}");
    let ended = std::thread::scope(|scope| {
        let loads = scope.spawn(|| request(60.0));
        while host.json(&["stats"])["host"]["preparing"] == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
        loads.join().unwrap()
    });
    assert!(!ended.starts_with("HTTP/1.1 400"), "{ended}");
}

/// Two that are begun together: `b` is there, and waits for the other one, which takes long.
fn begins(host: &Host, then: impl FnOnce()) -> Run {
    let text = "[[application]]\nnetwork = \"src/p/Many.xdf\"\nname = \"b\"\nout = \"/dev/null\"\n\
                [[application]]\nnetwork = \"gate.so\"\nname = \"a\"\nisolate = true\n";
    host.place.write("two.toml", text);
    // It is compiled already.
    host.many("b");
    host.run(&["unload", "b", "--now"]).succeeds();
    shut(host, true);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| host.run(&["load", "two.toml"]));
        let start = Instant::now();
        while host.run(&["show", "b"]).code != Some(0) {
            assert!(start.elapsed() < Duration::from_secs(300), "b is not there");
            std::thread::sleep(Duration::from_millis(10));
        }
        // A request that names it is told of it; a list has both or none.
        assert!(host.seen("b").is_null());
        then();
        load.join().unwrap()
    })
}

#[test]
fn a_replacement_waits_for_the_start() {
    let host = Host::begin_in(gated());
    let loaded = begins(&host, || {
        refused(&host, "b is being loaded");
        host.run(&["unload", "b", "--timeout=0.1"])
            .refuses(8, &["b is being loaded"]);
        waits(&host, || shut(&host, false));
    });
    loaded.succeeds();
    host.until("a", runs);
}

/// While a new version waits for its moment, it is the old one that runs.
#[test]
fn an_unload_during_a_replacement_ends_both_versions() {
    let place = sources();
    // It never asks whether it is to end.
    place.write(
        "b.c",
        "#include <levada/fiber.h>\nint main(void) {\n  while (lvd_fiber_sleep(1000000) == LVD_OK) {}\n  \
         return 0;\n}\n",
    );
    place
        .run(&["cc", "--plugin", "-O2", "b.c", "-o", "b.so"])
        .succeeds();
    let host = Host::begin_in(place);
    host.run(&["load", "b.so", "--name=b"]).succeeds();
    let replaced = std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&["replace", "b", "b.so"]));
        host.until("b", |b| b["state"] == "draining");
        for what in ["pause", "unload", "resume"] {
            host.run(&[what, "b", "--timeout=0.1"])
                .refuses(8, &["b is being replaced", "try again, or wait longer"]);
        }
        host.run(&["unload", "b", "--now"]).succeeds();
        replaces.join().unwrap()
    });
    replaced.refuses(5, &["b has ended before it was replaced"]);
    assert!(host.seen("b").is_null());
    assert!(!host.place.exists("state/b.json"));
}

/// A load that fails takes back what it has loaded, and not what has the name since.
#[test]
fn a_later_owner_of_the_name_is_not_unloaded() {
    let host = Host::begin_in(gated());
    let loaded = begins(&host, || {
        host.run(&["unload", "b", "--now"]).succeeds();
        host.many("b");
        assert_eq!(host.seen("b")["state"], "running");
        shut(&host, false);
    });
    loaded.refuses(5, &["b was unloaded before it started"]);
    assert!(host.seen("a").is_null());
    let number = host.until("b", runs)["number"].clone();
    host.run(&REPLACE).succeeds();
    assert!(host.until("b", runs)["number"].as_u64() > number.as_u64());
}

/// An application that is loaded paused is unloaded while the others of its manifest start, at once or when it is
/// stored for the next host: it is not loaded, so none is, and no host loads it again.
#[test]
fn a_paused_application_unloaded_with_its_manifest_pending_is_not_loaded() {
    let host = Host::begin_in(gated());
    host.many("b");
    host.run(&["unload", "b", "--now"]).succeeds();
    let mut text =
        "[[application]]\nnetwork = \"src/p/Many.xdf\"\nname = \"b\"\nout = \"/dev/null\"\npaused = true\n"
            .to_string();
    for name in ["c", "d", "e", "f"] {
        text += "[[application]]\nnetwork = \"gate.so\"\nisolate = true\n";
        text += &format!("name = \"{name}\"\n");
    }
    host.place.write("five.toml", &text);
    for settled in [false, true] {
        shut(&host, true);
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| host.run(&["load", "five.toml"]));
            let there = |path: &str| host.get(path).starts_with("HTTP/1.1 200");
            let start = Instant::now();
            while !there("/applications/b") || settled && !host.place.exists("state/b.json") {
                assert!(start.elapsed() < Duration::from_secs(300), "b is not there");
            }
            let delete =
                "DELETE /applications/b?now=true HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            let unloaded = host.raw(delete.as_bytes());
            assert!(unloaded.starts_with("HTTP/1.1 200"), "{unloaded}");
            shut(&host, false);
            load.join().unwrap()
        });
        loaded.refuses(5, &["b was unloaded before it started"]);
        assert_eq!(host.json(&["list"]), serde_json::json!([]));
        assert_eq!(kept(&host), [""; 0]);
    }
}

/// The applications that the next host loads.
fn kept(host: &Host) -> Vec<String> {
    let mut names = host.place.list("state");
    names.retain(|name| name.ends_with(".json"));
    names
}

/// A new version has what is promised and allowed to the version that it replaces: that may be another one than was
/// there when the new version was asked for.
#[test]
fn a_replacement_of_a_new_version_gets_its_files() {
    let host = Host::begin_in(slow_to_compile());
    for more in [&[][..], &["--isolate"]] {
        let load = ["load", "src/p/Many.xdf", "--name=b", "--out=/dev/null"];
        host.run(&[&load[..], more].concat()).succeeds();
        let second = std::thread::scope(|scope| {
            let (second, compile) = compiles(&host, scope, &[]);
            host.run(&[&REPLACE[..], &["--priority=3", "--out=other.txt"]].concat())
                .succeeds();
            compile();
            second.join().unwrap()
        });
        second.succeeds();
        assert_eq!(host.until("b", runs)["priority"], 3, "{more:?}");
        let why = "other.txt: the application b writes that file";
        host.run(&["load", "src/p/Many.xdf", "--name=c", "--out=other.txt"])
            .refuses(5, &[why]);
        host.run(&["unload", "b", "--now"]).succeeds();
    }
}

/// Another application is given the output file for which a replacement is requested, before the replacement is
/// processed.
#[test]
fn a_file_is_given_to_one_alone() {
    let host = Host::begin_in(slow_to_compile());
    for more in [&[][..], &["--isolate"]] {
        let load = ["load", "src/p/Stays.xdf", "--name=b", "--out=/dev/null"];
        host.run(&[&load[..], more].concat()).succeeds();
        host.until("b", |b| b["firings"].as_u64() > Some(100));
        let second = std::thread::scope(|scope| {
            let (second, compile) = compiles(&host, scope, &["--out=out.txt"]);
            let first = [&REPLACE[..], &["--timeout=5"]].concat();
            let host = &host;
            let first = scope.spawn(move || host.run(&first));
            let start = Instant::now();
            let waits = || host.run(&["resume", "b", "--timeout=0.05"]);
            while !waits().err.contains("b is being replaced") {
                assert!(start.elapsed() < Duration::from_secs(300), "{:?}", waits());
            }
            compile();
            // Until it waits for the first.
            std::thread::sleep(Duration::from_secs(2));
            let other = ["load", "src/p/Many.xdf", "--name=c", "--out=out.txt"];
            host.run(&other).succeeds();
            assert!(!first.is_finished() && !second.is_finished());
            first.join().unwrap().refuses(8, &["b continues unchanged"]);
            second.join().unwrap()
        });
        second.refuses(5, &["out.txt: the application c writes that file"]);
        for name in ["b", "c"] {
            host.run(&["unload", name, "--now"]).succeeds();
        }
    }
}

/// `Stays` has left its first state for good, so only a similar network can take over from it: `Lags`, which is
/// compiled for as long as a pipe has no writer.
fn slow_to_compile() -> Place {
    let place = sources();
    let schedule = "  schedule fsm first:\n    first (go) --> on;\n    on (go) --> on;\n  end\n";
    place.write(
        "src/p/Stay.cal",
        &format!(
            "package p;\nactor Stay () int In ==> int Out :\n  \
             go: action In:[x] ==> Out:[x] end\n{schedule}end\n"
        ),
    );
    place.write(
        "lag/src/p/Same.cal",
        "package p;\nactor Same () int In ==> int Out :\n  @native function same(int x) --> int end\n  \
         action In:[x] ==> Out:[same(x)] end\nend\n",
    );
    for file in ["Source", "Stay", "Write"] {
        let text = std::fs::read_to_string(place.path(&format!("src/p/{file}.cal"))).unwrap();
        place.write(&format!("lag/src/p/{file}.cal"), &text);
    }
    let source = ("source", "p.Source", &[("n", "2000000000")][..]);
    let [stay, same, write] = ["Stay", "Same", "Write"].map(|class| format!("p.{class}"));
    let stay = ("stay", stay.as_str(), &[][..]);
    let (same, write) = (
        ("same", same.as_str(), &[][..]),
        ("write", write.as_str(), &[][..]),
    );
    let text = network(
        &[source, stay, write],
        &[("source.Out", "stay.In"), ("stay.Out", "write.In")],
    );
    place.write("src/p/Stays.xdf", &text.replace("\"Top\"", "\"Stays\""));
    let text = network(
        &[source, stay, same, write],
        &[
            ("source.Out", "stay.In"),
            ("stay.Out", "same.In"),
            ("same.Out", "write.In"),
        ],
    );
    place.write("lag/src/p/Lags.xdf", &text.replace("\"Top\"", "\"Lags\""));
    place
}

/// A replace of `b` by `Lags`, which has begun, and what lets it go on.
fn compiles<'a, 'b>(
    host: &'a Host,
    scope: &'a std::thread::Scope<'a, 'b>,
    more: &[&str],
) -> (std::thread::ScopedJoinHandle<'a, Run>, impl FnOnce() + 'a) {
    let _ = std::fs::remove_file(host.place.path("gate.fifo"));
    let gate = pipe(&host.place, "gate.fifo");
    let text = "#include <stdint.h>\n#include GATE\nint32_t same(int32_t x) { return x; }\n";
    let text = text.replace("GATE", &format!("{gate:?}"));
    // Different each time.
    let nth = Instant::now();
    host.place
        .write("lag/natives/same.c", &format!("// {nth:?}\n{text}"));
    let args = [
        &["replace", "b", "lag/src/p/Lags.xdf", "--timeout=60"][..],
        more,
    ]
    .concat();
    let args: Vec<String> = args.into_iter().map(str::to_string).collect();
    let replaces = scope.spawn(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        host.run(&args)
    });
    // Until it is read there is no reader to write to.
    let open = || {
        let mut file = std::fs::File::options();
        file.write(true).custom_flags(libc::O_NONBLOCK).open(&gate)
    };
    let file = loop {
        match open() {
            Ok(file) => break file,
            Err(_) if replaces.is_finished() => panic!("{:?}", replaces.join().unwrap()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let go = move || {
        // It is read more than once.
        host.place.write("empty", "");
        std::fs::rename(host.place.path("empty"), gate).unwrap();
        drop(file);
    };
    (replaces, go)
}

/// An isolated one says nothing while the code of its new version is opened, for longer than it is waited for; and
/// takes over after all.
#[test]
fn a_late_replacement_is_recorded() {
    let host = Host::begin_in(gated());
    host.run(&["load", "gate.so", "--name=a", "--isolate"])
        .succeeds();
    let before = host.seen("a")["network"].clone();
    shut(&host, true);
    host.run(&["replace", "a", "gate2.so", "--priority=3", "--timeout=0.1"])
        .refuses(
            8,
            &["a continues unchanged: it was not replaced in the time that its process had"],
        );
    shut(&host, false);
    host.until("a", |a| a["network"] != before && runs(a));
    let start = Instant::now();
    let remembers = || std::fs::read_to_string(host.place.path("state/a.json")).unwrap();
    while !remembers().contains("gate2.so") {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "{}",
            remembers()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let host = host.again(&["--restore"]);
    let seen = host.until("a", runs);
    assert!(seen["network"] != before && seen["priority"] == 3, "{seen}");
}
