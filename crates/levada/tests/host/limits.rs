// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of time limits: what the host reports about a firing that does not end, and that no command waits for it
//! longer than its timeout.

use crate::common;
use crate::common::host::{ENDLESS, Host, compiled, pipe, sources};
use crate::common::network;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// `Long`: a source that says that it has begun, and fires until the file `go` is there.
fn host_with_long() -> Host {
    let host = host_that_knows_long(&[]);
    load_long(&host);
    host
}

fn host_that_knows_long(more: &[&str]) -> Host {
    let place = sources();
    place.write(
        "src/p/Long.cal",
        "package p;\nactor Long () ==> int Out :\n  @native function until_told(int n) --> int end\n  \
         int n := 0;\n  action ==> Out:[until_told(7)] guard n < 3 do n := n + 1; end\nend\n",
    );
    place.write(
        "natives/long.c",
        "#include <stdint.h>\n#include <stdio.h>\n#include <unistd.h>\nint32_t until_told(int32_t n);\n\
         int32_t until_told(int32_t n) {\n  FILE *begun = fopen(\"begun\", \"w\");\n  \
         if (begun) fclose(begun);\n  while (access(\"go\", F_OK)) usleep(1000);\n  return n;\n}\n",
    );
    let long = network(
        &[("long", "p.Long", &[]), ("write", "p.Write", &[])],
        &[("long.Out", "write.In")],
    );
    place.write("src/p/LongOne.xdf", &long.replace("\"Top\"", "\"LongOne\""));
    Host::begin_with(place, more)
}

fn load_long(host: &Host) {
    host.run(&["load", "src/p/LongOne.xdf", "--name=long", "--out=long.txt"])
        .succeeds();
    let start = Instant::now();
    while !host.place.exists("begun") {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "it does not fire"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_wait_for_a_long_firing_times_out_with_its_name() {
    let host = host_with_long();
    let state = || host.seen("long")["state"].as_str().unwrap().to_string();
    assert_eq!(state(), "running");
    // What it is in is told once others may wonder.
    let start = Instant::now();
    while !host
        .run(&["why", "long"])
        .out
        .contains("long has been in the native until_told for ")
    {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "the native is not reported"
        );
    }
    host.run(&["pause", "long", "--timeout=0.1"])
        .refuses(8, &["long is paused", "has not ended within 100ms"]);
    assert_eq!(state(), "paused");
    let why = host.run(&["why", "long"]);
    assert!(why.succeeds().out.contains("long is paused"), "{why:?}");
    host.run(&["resume", "long"]).succeeds();
    assert_eq!(state(), "running");
    host.run(&["unload", "long", "--timeout=0.1"])
        .refuses(8, &["long is draining still after 100ms"]);
    assert_eq!(state(), "draining");
    // To pause it and let it go on does not make a source of it again.
    host.run(&["pause", "long", "--timeout=0.1"])
        .refuses(8, &["long is paused"]);
    host.run(&["resume", "long"]).succeeds();
    assert_eq!(state(), "draining");
    // The one firing that lasts is the last, and nothing that it gives is lost.
    host.place.write("go", "");
    let ended = host.until("long", |a| a["state"] == "ended");
    assert_eq!(ended["outcome"], "done");
    let text = std::fs::read_to_string(host.place.path("long.txt")).unwrap();
    assert_eq!(text, "7\n");
}

#[test]
fn an_application_stopped_in_a_firing_is_never_reported_running() {
    let host = host_with_long();
    host.run(&["unload", "long", "--now", "--timeout=0.1"])
        .refuses(8, &["long is ending still after 100ms", "a firing of it"]);
    assert_eq!(host.seen("long")["state"], "ending");
    assert_eq!(host.json(&["show", "long"])["state"], "ending");
    assert_eq!(host.json(&["stats"])["application"][0]["state"], "ending");
    host.run(&["pause", "long"])
        .refuses(5, &["long cannot be paused"]);
    // Others come and go meanwhile, whatever waits.
    assert!(host.get("/host").starts_with("HTTP/1.1 200"));
    host.place.write("go", "");
    let ended = host.until("long", |a| a["state"] == "ended");
    assert_eq!(ended["outcome"], "stopped");
    host.run(&["unload", "long"]).succeeds();
}

fn endless() -> common::Place {
    let place = sources();
    place.write("src/p/Endless.cal", ENDLESS);
    place
}

/// An endless computation counts as busy while it runs, and is stopped; others continue then.
#[test]
fn an_action_that_does_not_end_is_stopped() {
    let host = Host::begin_with(endless(), &["--action-time-limit=2000"]);
    host.run(&["load", "src/p/Endless.cal", "--name=endless"])
        .succeeds();
    host.until("endless", |a| a["busy"].as_f64() > Some(0.1));
    assert_eq!(host.seen("endless")["firings"], 0);
    host.run(&["load", common::host::TOP, "--name=one", "--out=one.txt"])
        .succeeds();
    let ended = host.until("endless", |a| a["state"] == "failed");
    let why = ended["outcome"].to_string() + &ended["fault"].to_string();
    assert!(why.contains("2000 ms"), "{ended}");
    host.until("one", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("one.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
}

/// Other applications on its worker end while it computes.
#[test]
fn others_continue_next_to_an_endless_action() {
    let host = Host::begin_with(endless(), &["--action-time-limit=0"]);
    host.run(&["load", "src/p/Endless.cal", "--name=endless"])
        .succeeds();
    host.until("endless", |a| a["busy"].as_f64() > Some(0.2));
    let why = host.run(&["why", "endless"]);
    let (_, told) = why.succeeds().out.split_once(" has computed for ").unwrap();
    // It has no tag.
    assert!(told.contains(" s in the action at line 4\n"), "{why:?}");
    // Its worker is busy before the action has ended, and no more than it can be.
    let stats = host.json(&["stats"]);
    let (workers, up) = (&stats["worker"], stats["host"]["seconds"].as_f64().unwrap());
    let busy = |w: &serde_json::Value| w["busy"].as_f64().unwrap();
    assert!(workers.as_array().unwrap().iter().any(|w| busy(w) > 0.2));
    assert!(
        workers
            .as_array()
            .unwrap()
            .iter()
            .all(|w| busy(w) < up + 1.0)
    );
    for i in 0..6 {
        let (name, out) = (format!("--name=one{i}"), format!("--out=one{i}.txt"));
        host.run(&["load", common::host::TOP, &name, &out])
            .succeeds();
    }
    for i in 0..6 {
        host.until(&format!("one{i}"), |a| a["state"] == "ended");
        let text = std::fs::read_to_string(host.place.path(&format!("one{i}.txt"))).unwrap();
        assert_eq!(text, "1\n2\n3\n");
    }
    assert_eq!(host.seen("endless")["state"], "running");
    host.run(&["unload", "endless", "--now"]).succeeds();
}

/// A source with a native that waits in the system for what is written to a pipe, and tries again whatever interrupts
/// it.
fn sleepers() -> common::Place {
    let place = sources();
    place.write(
        "src/p/Sleeper.cal",
        "package p;\nactor Sleeper () ==> int Out :\n  @native function next_byte() --> int end\n  \
         action ==> Out:[next_byte()] end\nend\n",
    );
    let byte = "#include <errno.h>\n#include <fcntl.h>\n#include <stdint.h>\n#include <unistd.h>\n\
        int32_t next_byte(void);\n\
        int32_t next_byte(void) {\n  static int fd = -1;\n  if (fd < 0) fd = open(\"bytes\", O_RDWR);\n  \
        unsigned char c = 0;\n  ssize_t got;\n  while ((got = read(fd, &c, 1)) < 0 && errno == EINTR) continue;\n  \
        return got == 1 ? c : -1;\n}\n";
    place.write("natives/next_byte.c", byte);
    let top = network(
        &[("sleeper", "p.Sleeper", &[]), ("write", "p.Write", &[])],
        &[("sleeper.Out", "write.In")],
    );
    place.write(
        "src/p/SleeperOne.xdf",
        &top.replace("\"Top\"", "\"SleeperOne\""),
    );
    let pipe = std::ffi::CString::new(place.path("bytes").to_str().unwrap()).unwrap();
    // SAFETY: a path.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    place
}

/// What was there before it, and what comes after, goes on while it waits for its pipe, wherever it is put;
/// it counts as busy; and it goes on itself when its byte comes.
#[test]
fn others_continue_next_to_a_blocked_native() {
    let host = Host::begin_with(sleepers(), &[]);
    let sleeper = [
        "load",
        "src/p/SleeperOne.xdf",
        "--name=sleeper",
        "--out=s.txt",
    ];
    for round in 0..3 {
        let before = format!("before{round}");
        host.many(&before);
        host.run(&sleeper).succeeds();
        host.until("sleeper", |a| a["busy"].as_f64() > Some(0.2));
        for worker in ["0", "1"] {
            for actor in ["source", "write"] {
                host.run(&["move", &before, actor, worker]).succeeds();
            }
            let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap();
            let now = firings(&host.seen(&before));
            host.until(&before, |a| firings(a) > now + 1000);
        }
        host.run(&["load", common::host::TOP, "--name=after", "--out=after.txt"])
            .succeeds();
        host.until("after", |a| a["state"] == "ended");
        host.run(&["unload", "after"]).succeeds();
        host.run(&["unload", &before, "--now", "--timeout=10"])
            .succeeds();
        host.run(&["unload", "sleeper", "--now", "--timeout=0.1"])
            .refuses(8, &["sleeper is ending still"]);
        std::fs::write(host.place.path("bytes"), "x").unwrap();
        host.until("sleeper", |a| a["state"] == "ended");
        host.run(&["unload", "sleeper"]).succeeds();
    }
}

/// It has fired since this was asked.
fn goes_on(host: &Host, name: &str) {
    let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap();
    let now = firings(&host.seen(name));
    host.until(name, |a| firings(a) > now + 1000);
}

/// As many runaways as workers block no application: the others on these workers get their turns.
#[test]
fn others_go_on_where_every_worker_is_held_up() {
    let host = Host::begin_with(endless(), &["--workers=2", "--action-time-limit=0"]);
    host.many("before");
    for name in ["one", "two"] {
        let name_it = format!("--name={name}");
        host.run(&["load", "src/p/Endless.cal", &name_it])
            .succeeds();
        host.until(name, |a| a["busy"].as_f64() > Some(0.2));
    }
    host.many("late");
    for _ in 0..3 {
        goes_on(&host, "before");
        goes_on(&host, "late");
    }
    for name in ["one", "late", "before", "two"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
}

/// With one worker a relief takes what waits behind it. All of it can be paused and taken away
/// meanwhile, what has come since, too; and what is there still goes on when the worker is free.
#[test]
fn one_worker_that_is_held_up_answers_for_others() {
    let host = Host::begin_with(sleepers(), &["--workers=1", "--action-time-limit=0"]);
    host.place.write("src/p/Endless.cal", ENDLESS);
    let sleeper = ["load", "src/p/SleeperOne.xdf", "--out=/dev/null"];
    let endless = ["load", "src/p/Endless.cal"];
    for (load, told) in [
        (&sleeper[..], "has been in the native next_byte"),
        (&endless, "has computed for "),
    ] {
        host.many("before");
        host.run(&[load, &["--name=held"]].concat()).succeeds();
        host.until("held", |a| a["busy"].as_f64() > Some(0.2));
        let why = host.run(&["why", "held"]);
        assert!(why.succeeds().out.contains(told), "{why:?}");
        host.run(&["pause", "before"]).succeeds();
        host.run(&["resume", "before"]).succeeds();
        goes_on(&host, "before");
        host.many("late");
        goes_on(&host, "late");
        host.run(&["pause", "held", "--timeout=0.1"])
            .refuses(8, &["held is paused", "has not ended"]);
        host.run(&["resume", "held"]).succeeds();
        host.run(&["unload", "late", "--now"]).succeeds();
        let ended = if load == sleeper {
            host.run(&["unload", "held", "--now", "--timeout=0.1"])
                .refuses(8, &["held is ending still"]);
            std::fs::write(host.place.path("bytes"), "x").unwrap();
            host.until("held", |a| a["state"] == "ended")
        } else {
            host.json(&["unload", "held", "--now"])
        };
        assert_eq!(ended["outcome"], "stopped");
        goes_on(&host, "before");
        host.run(&["unload", "before", "--now"]).succeeds();
    }
}

fn signal(host: &Host, number: i32) {
    // SAFETY: a child of ours that has not been waited for.
    assert_eq!(unsafe { libc::kill(host.child.id() as i32, number) }, 0);
}

/// Its exit status; `None` while it runs.
fn ended(host: &mut Host, within: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    loop {
        let status = host.child.try_wait().unwrap();
        if status.is_some() || start.elapsed() > within {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nothing tells the firing to end.
#[test]
fn a_host_that_is_told_twice_ends_whatever_lasts() {
    let mut host = host_that_knows_long(&["--timeout=3600"]);
    load_long(&host);
    signal(&host, libc::SIGINT);
    // The first has been taken, and it waits.
    let start = Instant::now();
    while host.place.exists("h.sock") {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ended(&mut host, Duration::from_millis(200)), None);
    signal(&host, libc::SIGINT);
    let status = ended(&mut host, Duration::from_secs(60)).expect("it runs still");
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_host_does_not_wait_for_ever_for_a_firing() {
    let mut host = host_that_knows_long(&["--timeout=0.5"]);
    load_long(&host);
    signal(&host, libc::SIGTERM);
    let status = ended(&mut host, Duration::from_secs(60)).expect("it runs still");
    assert_eq!(status.code(), Some(1));
}

/// A compiler that does not come to an end is ended, and nothing is loaded.
#[test]
fn a_load_that_takes_too_long_leaves_nothing() {
    let host = Host::begin();
    let made = std::process::Command::new("mkfifo")
        .arg(host.place.path("pipe.h"))
        .status();
    assert!(made.unwrap().success());
    // The C compiler waits for a writer of the pipe.
    host.place.write("slow.c", "#include \"pipe.h\"\n");
    host.run(&["load", common::host::TOP, "--native=slow.c", "--timeout=1"])
        .refuses(8, &["has taken too long", "--timeout"]);
    assert!(host.json(&["list"]).as_array().unwrap().is_empty());
    host.run(&["load", common::host::TOP, "--name=a", "--out=a.txt"])
        .succeeds();
    host.until("a", |a| a["state"] == "ended");
}

/// What counts nothing is not late for ever, and is told so once: at once where none of its natives ever counts.
#[test]
fn a_rate_of_what_counts_nothing_is_told_to_mean_nothing() {
    let host = Host::begin();
    let load = |name: &str, more: &str| {
        let many = ["load", "src/p/Many.xdf", "--out=/dev/null", "--rate=25"];
        let loaded = host.run(&[&many[..], &["--name", name, more]].concat());
        loaded.succeeds().err.clone()
    };
    let events = || host.run(&["events"]).succeeds().out.clone();
    let told = |name: &str| {
        events()
            .matches(&format!("rate_unmeasurable {name}: "))
            .count()
    };
    let note = "has no units of which 25.0 a second could be reserved, and runs as if without";
    let said = load("many", "--no-fuse");
    assert!(said.contains(&format!("note: many {note}")), "{said}");
    assert_eq!(told("many"), 1);
    let metrics = host.get("/metrics");
    for line in [
        "levada_application_reserved_rate_units_per_second{application=\"many\"} 25",
        "levada_application_rate_misses_total{application=\"many\"} 0",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let shown = host.run(&["show", "many"]);
    let promise = "has reserved 25.0 units a second";
    assert!(shown.succeeds().out.contains(promise), "{shown:?}");
    let said = load("apart", "--isolate");
    assert!(said.contains(&format!("note: apart {note}")), "{said}");
    // An application that could report progress is given time.
    host.place.write(
        "never.c",
        "#include <levada/native.h>\nvoid never(void);\n\
         void never(void) { lvd_app_progress(lvd_current_app(), \"ticks\", 1); }\n",
    );
    let said = load("may", "--native=never.c");
    assert!(
        said.contains("may is not measured yet") && !said.contains(note),
        "{said}"
    );
    let start = Instant::now();
    let all = ["many", "apart", "may"];
    while all.iter().any(|name| told(name) == 0) {
        assert!(start.elapsed() < Duration::from_secs(300), "{}", events());
        std::thread::sleep(Duration::from_millis(50));
    }
    // By now the others have been judged, too.
    for name in all {
        assert_eq!(told(name), 1, "{name}: {}", events());
    }
    assert!(!events().contains("late"), "{}", events());
}

/// Followers of events occupy no slots of commands, however many there are; one too many gets an error.
#[test]
fn followers_leave_the_places_of_commands() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let host = Host::begin();
    let mut all = Vec::new();
    for _ in 0..130 {
        let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
        let request = b"GET /events?follow=true HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).unwrap();
        let limit = Some(std::time::Duration::from_secs(30));
        stream.set_read_timeout(limit).unwrap();
        let mut text = [0; 1024];
        let n = stream.read(&mut text).unwrap();
        all.push((stream, String::from_utf8_lossy(&text[..n]).to_lowercase()));
    }
    let refused: Vec<&String> = all
        .iter()
        .map(|f| &f.1)
        .filter(|t| !t.contains(" 200 ok"))
        .collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for text in refused {
        for part in [
            "http/1.1 503",
            "retry-after: ",
            "content-type: application/json",
            "follow",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    for _ in 0..3 {
        assert!(host.get("/host").starts_with("HTTP/1.1 200"));
    }
    // They hear what happens, and their places are free when they have gone.
    host.many("one");
    let mut text = [0; 1024];
    let n = all[0].0.read(&mut text).unwrap();
    let heard = String::from_utf8_lossy(&text[..n]).into_owned();
    assert!(heard.contains("\"loaded\""), "{heard}");
    drop(all);
    let start = std::time::Instant::now();
    loop {
        host.run(&["pause", "one"]).succeeds(); // Something is written to them.
        host.run(&["resume", "one"]).succeeds();
        let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
        let request = b"GET /events?follow=true HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).unwrap();
        let n = stream.read(&mut text).unwrap();
        if String::from_utf8_lossy(&text[..n]).starts_with("HTTP/1.1 200") {
            return;
        }
        assert!(start.elapsed().as_secs() < 300);
    }
}

/// What an application would find out only when it runs is said before it is loaded.
#[test]
fn files_that_cannot_be_used_are_refused_before() {
    let place = sources();
    place.write(
        "src/p/Read.cal",
        "package p;\nimport levada.io.*;\nactor Read () ==> int Out :\n  action ==> \
         Out:[io_read_number()] guard io_more() end\nend\n",
    );
    let text = network(
        &[("read", "p.Read", &[]), ("write", "p.Write", &[])],
        &[("read.Out", "write.In")],
    );
    place.write("src/p/Copy.xdf", &text.replace("\"Top\"", "\"Copy\""));
    place.write("folder/x", "");
    pipe(&place, "shared.fifo");
    let host = Host::begin_in(place);
    let many = "src/p/Many.xdf";
    // Once as it is compiled, and once as it is known already.
    for isolate in [&["--paused"][..], &["--isolate"]] {
        let refused = |args: &[&str], parts: &[&str]| {
            let run = host.run(&[&["load"], args, isolate].concat());
            run.refuses(1, parts);
            assert!(!run.err.contains("standard"), "{run:?}");
        };
        let copy = "src/p/Copy.xdf";
        refused(
            &[copy],
            &[
                "reads what --in names",
                "a pipe made with mkfifo, with --in",
            ],
        );
        refused(&[copy, "--in=,"], &["--in \",\" names no file", "mkfifo"]);
        refused(&[copy, "--in=none"], &["--in none: No such file"]);
        refused(
            &[many, "--out=folder"],
            &["--out folder: is a folder", "one file"],
        );
        assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(0));
    }
    host.run(&["load", many, "--name=a", "--out=a.txt"])
        .succeeds();
    std::os::unix::fs::symlink("folder", host.place.path("link")).unwrap();
    let other = ["load", many, "--name=b", "--out=folder/b.txt", "--isolate"];
    host.run(&other).succeeds();
    for (out, owner) in [("./a.txt", "a"), ("link/b.txt", "b")] {
        for isolate in [&[][..], &["--isolate"]] {
            let out = format!("--out={out}");
            let writes = format!("the application {owner} writes that file");
            host.run(&[&["load", many, &out], isolate].concat())
                .refuses(5, &[&writes, "unload"]);
        }
    }
    let twice: String = ["c", "d"]
        .map(|n| {
            format!("[[application]]\nnetwork = \"{many}\"\nname = \"{n}\"\nout = \"c.txt\"\n")
        })
        .concat();
    host.place.write("twice.toml", &twice);
    host.run(&["load", "twice.toml"])
        .refuses(3, &["c.txt: c and d are both to write that file"]);
    let unnamed =
        format!("[[application]]\nnetwork = \"{many}\"\n[[application]]\nin = \"a.txt\"\n");
    host.place.write("unnamed.toml", &unnamed);
    host.run(&["load", "unnamed.toml"])
        .refuses(3, &["application 2: it names no network"]);
    let usage = format!("[[application]]\nnetwork = \"{many}\"\ncore_usage_by_others = [0.5]\n");
    host.place.write("usage.toml", &usage);
    host.run(&["load", "usage.toml"]).refuses(
        3,
        &["core_usage_by_others is not for manifests", "leave it out"],
    );
    host.place
        .write("named.toml", &(unnamed + "name = \"radio\"\n"));
    host.run(&["load", "named.toml"])
        .refuses(3, &["radio: it names no network"]);
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(2));
    // A new version writes on; others may when it has gone; and what is no file has many writers.
    host.run(&["replace", "a", many]).succeeds();
    host.run(&["unload", "a", "--now"]).succeeds();
    host.run(&["load", many, "--name=e", "--out=a.txt"])
        .succeeds();
    for out in ["--out=/dev/null", "--out=shared.fifo"] {
        for _ in 0..2 {
            host.run(&["load", many, out, "--paused"]).succeeds();
        }
    }
}

/// How many files a process may open: the soft limit, and the hard one.
fn files_of(pid: u32) -> (String, String) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = text.lines().find(|l| l.starts_with("Max open files"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    (words[3].to_string(), words[4].to_string())
}

#[test]
fn a_host_opens_as_many_files_as_it_may_and_its_children_as_before() {
    let place = sources();
    let script = |name: &str, text: &str| {
        let path = place.path(name);
        common::write_script(&path, &format!("#!/bin/sh\n{text}\n"));
        path.to_str().unwrap().to_string()
    };
    let said = place.path("limit.txt");
    let cc = script(
        "cc",
        &format!("ulimit -Sn > {}; exec cc \"$@\"", said.display()),
    );
    let levada = env!("CARGO_BIN_EXE_levada");
    let limited = format!("ulimit -Sn 200; CC={cc}; export CC; exec {levada} \"$@\"");
    let limited = script("limited", &limited);
    let host = Host::begin_as(place, &limited, &[]);
    host.run(&[
        "load",
        "src/p/Many.xdf",
        "--name=a",
        "--out=/dev/null",
        "--isolate",
    ])
    .succeeds();
    assert_eq!(std::fs::read_to_string(said).unwrap(), "200\n");
    let apart = host.seen("a")["isolated"].as_u64().unwrap() as u32;
    for pid in [host.child.id(), apart] {
        let (soft, hard) = files_of(pid);
        assert_eq!(soft, hard);
    }
    let unit = include_str!("../../../levada-host/systemd/levada-host.service");
    assert!(unit.contains("\nLimitNOFILE=1024:"));
}

/// If the output is not a terminal, a line is printed periodically. The compiler waits for a pipe without a writer.
#[test]
fn a_wait_for_a_compiler_is_reported() {
    let place = sources();
    let path = |name: &str| place.path(name).to_str().unwrap().to_string();
    let (cc, slow, waits) = (path("cc"), path("slow"), pipe(&place, "waits"));
    let levada = env!("CARGO_BIN_EXE_levada");
    for (file, does) in [
        (&cc, format!("read line < {}", waits.display())),
        (&slow, format!("CC={cc}; export CC; exec {levada} \"$@\"")),
    ] {
        common::write_script(file, &format!("#!/bin/sh\n{does}\n"));
    }
    let host = Host::begin_as(place, &slow, &[]);
    let args = ["load", common::host::TOP, "--socket", "h.sock"];
    let mut command = host.place.command(&args);
    let mut waits = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut err = std::io::BufReader::new(waits.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut err, &mut said).unwrap();
    assert!(said.starts_with("checking and compiling for "), "{said}");
    let preparing = || {
        let seen = host.get("/host");
        let (_, body) = seen.split_once("\r\n\r\n").unwrap();
        let seen: serde_json::Value = serde_json::from_str(body).unwrap();
        seen["preparing"].as_u64().unwrap()
    };
    assert_eq!(preparing(), 1);
    waits.kill().unwrap();
    waits.wait().unwrap();
    let start = Instant::now();
    while preparing() > 0 {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// At a limit of the size of files, or the soft one of CPU time, no more ends than the application.
#[test]
fn limits_of_the_system_end_no_more_than_an_application() {
    let limit = libc::rlimit {
        rlim_cur: 1 << 20,
        rlim_max: 1 << 20,
    };
    let host = Host::begin_in(sources());
    host.many("other");
    // SAFETY: the child has not been waited for.
    let done = unsafe {
        libc::prlimit(
            host.child.id() as i32,
            libc::RLIMIT_FSIZE,
            &limit,
            std::ptr::null_mut(),
        )
    };
    assert_eq!(done, 0);
    let load = ["load", "src/p/Many.xdf"];
    for (name, more) in [
        ("here", &["--out=here.txt"][..]),
        ("apart", &["--out=apart.txt", "--isolate"]),
    ] {
        host.run(&[&load[..], &["--name", name], more].concat())
            .succeeds();
        let failed = host.until(name, |a| a["state"] == "failed");
        let outcome = failed["outcome"].as_str().unwrap();
        assert!(outcome.contains("File too large"), "{failed}");
    }
    for signal in [libc::SIGXCPU, libc::SIGXFSZ, libc::SIGPIPE, libc::SIGXCPU] {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(host.child.id() as i32, signal) }, 0);
    }
    let fired = host.seen("other")["firings"].as_u64();
    host.until("other", |a| a["firings"].as_u64() > fired);
    let start = Instant::now();
    while host.said().matches("limit of CPU time").count() != 1 {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "{}",
            host.said()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut run = host
        .place
        .command(&["run", "src/p/Many.xdf", "--out=run.txt"]);
    let limits = move || {
        // SAFETY: of the child alone.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: what it calls may be called there.
    let run = unsafe { run.pre_exec(limits) }.output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        run.status.code() == Some(1) && said.contains("File too large"),
        "{run:?}"
    );
}

/// What runs now is counted now: without a step back, also where others have most of the core, and of a C program
/// where it computes.
#[test]
fn long_firings_are_counted_while_they_run() {
    let place = sources();
    place.write("src/p/Endless.cal", ENDLESS);
    compiled(
        &place,
        "spins",
        "int main(void) { volatile unsigned x = 1; for (;;) x = x * 75 + 1; }\n",
    );
    let host = Host::begin_with(place, &["--action-time-limit=0"]);
    host.run(&["load", "src/p/Endless.cal", "--name=net"])
        .succeeds();
    host.run(&["load", "spins.so", "--name=program"]).succeeds();
    let busy = |name: &str| {
        let answer = host.get(&format!("/applications/{name}"));
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let details: serde_json::Value = serde_json::from_str(body).unwrap();
        (
            details["busy"].as_f64().unwrap(),
            details["actor"][0]["busy"].as_f64().unwrap(),
        )
    };
    for name in ["net", "program"] {
        let (start, mut before, mut rises) = (Instant::now(), (0.0, 0.0), 0);
        while before.1 < 0.3 || rises < 10 {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "{name}: {before:?}, {rises}"
            );
            let now = busy(name);
            assert!(
                now.0 >= before.0 && now.1 >= before.1,
                "{name}: {now:?} after {before:?}"
            );
            rises += u32::from(now.1 > before.1);
            before = now;
        }
    }
    // A run that is interrupted tells what it has computed, as the cores do.
    for name in ["net", "program"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    let run = host
        .place
        .command(&["run", "spins.so", "--json", "--stats"]);
    let run = { run }
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stat = format!("/proc/{}/stat", run.id());
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(&stat).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        fields.split_whitespace().nth(11).unwrap().parse().unwrap()
    };
    let start = Instant::now();
    while ticks() < 60 {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "it does not compute"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the child has not been waited for.
    assert_eq!(unsafe { libc::kill(run.id() as i32, libc::SIGINT) }, 0);
    let told = run.wait_with_output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let busy = told["actors"][0]["busy_seconds"].as_f64();
    let busy = busy.unwrap_or_else(|| panic!("{told}"));
    let cores = told["cores"].as_array().unwrap().iter();
    let cores: f64 = cores.map(|c| c["busy_seconds"].as_f64().unwrap()).sum();
    assert!(busy > 0.2 && busy > cores / 2.0, "{told}");
}
