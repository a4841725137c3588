// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of live upgrades: the state of actors, the contents of channels and files that natives hold open are
//! transferred; what cannot be transferred at the moment leaves the old version unchanged. Cases: actors in the
//! middle of a firing, changed classes, other actors and channels, a silent pipe, a pipe without a reader, versions
//! that replace one another before they have started, paused ones, actors that are fused differently, and
//! applications with a rate limit or quota, also when the next host restores them.

use crate::common;
use crate::common::Place;
use crate::common::host::{Host, held_pipe, pipe, sources};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Each group is a number, and as many numbers behind it, of which `Sums` writes the sum. Versions: `More`
/// has a variable more in the actor that sums up, `Other` another class of it, which also needs
/// each group from its beginning, `Longer` one actor more behind it.
fn sums() -> Place {
    let place = sources();
    place.write(
        "src/p/Read.cal",
        "package p;\nimport levada.io.*;\nactor Read () ==> int Out :\n  action ==> \
         Out:[io_read_number()] guard io_more() end\nend\n",
    );
    place.write(
        "src/p/Pass.cal",
        "package p;\nactor Pass () int In ==> int Out :\n  action In:[x] ==> Out:[x] end\nend\n",
    );
    for (class, more, count) in [
        ("Sum", "", ""),
        ("SumMore", "  int groups := 5;\n", "groups := groups + 1;"),
        ("Total", "", ""),
    ] {
        let text = format!(
            "package p;\nactor {} () int In ==> int Out :\n  int left := 0;\n  int sum := 0;\n{more}\
             \n  open: action In:[n] ==> do left := n; sum := 0; {count} end\n  add: action In:[x] ==> \
             guard left > 0 do sum := sum + x; left := left - 1; end\n  close: action ==> Out:[sum] \
             guard left = 0 end\n  schedule fsm idle:\n    idle (open) --> inside;\n    inside (add) --> \
             inside;\n    inside (close) --> idle;\n  end\nend\n",
            class.trim_end_matches("More"),
        );
        // A new version of a class has its name, in another folder.
        let folder = if class == "SumMore" { "more" } else { "src" };
        let name = class.trim_end_matches("More");
        place.write(&format!("{folder}/p/{name}.cal"), &text);
    }
    for file in ["Read", "Write", "Pass"] {
        let text = std::fs::read_to_string(place.path(&format!("src/p/{file}.cal"))).unwrap();
        place.write(&format!("more/p/{file}.cal"), &text);
    }
    let network = |class: &str, longer: bool| {
        let (read, write) = (("read", "p.Read", &[][..]), ("write", "p.Write", &[][..]));
        let sum = ("sum", class, &[][..]);
        let text = if longer {
            common::network(
                &[read, sum, ("pass", "p.Pass", &[]), write],
                &[
                    ("read.Out", "sum.In"),
                    ("sum.Out", "pass.In"),
                    ("pass.Out", "write.In"),
                ],
            )
        } else {
            common::network(
                &[read, sum, write],
                &[("read.Out", "sum.In"), ("sum.Out", "write.In")],
            )
        };
        text.replace("\"Top\"", "\"Sums\"")
    };
    place.write("src/p/Sums.xdf", &network("p.Sum", false));
    place.write("more/p/Sums.xdf", &network("p.Sum", false));
    place.write("src/p/Other.xdf", &network("p.Total", false));
    place.write("src/p/Longer.xdf", &network("p.Sum", true));
    place
}

const LOAD: [&str; 6] = ["load", "src/p/Sums.xdf", "--name", "a", "--in", "in.fifo"];

/// The numbers of a group, and their sum.
fn group(g: i64) -> (String, i64) {
    let n = g * 7 % 50;
    let numbers: Vec<i64> = (0..n).map(|i| g + i).collect();
    let text: String = numbers.iter().map(|x| format!("{x}\n")).collect();
    (format!("{n}\n{text}"), numbers.iter().sum())
}

fn written(place: &Place) -> Vec<i64> {
    let text = std::fs::read_to_string(place.path("out.txt")).unwrap();
    text.lines().map(|l| l.parse().unwrap()).collect()
}

/// Versions of each kind take over in the middle of groups, while numbers come.
#[test]
fn actor_state_is_transferred_to_a_new_version() {
    let place = sums();
    let path = pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    host.run(&[&LOAD[..], &["--out", "out.txt"]].concat())
        .succeeds();
    let stop = AtomicBool::new(false);
    let given = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            let mut g = 0;
            while !stop.load(Ordering::Relaxed) {
                file.write_all(group(g).0.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_micros(300));
                g += 1;
            }
            g
        });
        for version in [
            "more/p/Sums",
            "src/p/Other",
            "src/p/Longer",
            "more/p/Sums",
            "src/p/Sums",
        ] {
            host.until("a", |a| a["firings"].as_u64() > Some(300));
            let network = format!("{version}.xdf");
            host.run(&["replace", "a", &network]).succeeds();
            // And the next before this one has done anything.
            host.run(&["replace", "a", &network]).succeeds();
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let seen = host.until("a", |a| a["state"] == "ended" || a["state"] == "failed");
    assert_eq!(seen["outcome"], "done", "{seen}");
    let sums: Vec<i64> = (0..given).map(|g| group(g).1).collect();
    assert!(written(&host.place) == sums, "of {given} groups");
}

/// A counting actor continues to count, whichever actors it is fused with: none, one, two, another one.
#[test]
fn a_fused_actor_keeps_its_state() {
    let place = sums();
    place.write(
        "src/p/Count.cal",
        "package p;\nactor Count () ==> int Out :\n  int n := 7;\n  initialize ==> do n := 0; end\n  \
         action ==> Out:[n] do n := n + 1; end\nend\n",
    );
    let pass = std::fs::read_to_string(place.path("src/p/Pass.cal")).unwrap();
    place.write("src/p/Hand.cal", &pass.replace("Pass", "Hand"));
    for (name, between) in [
        ("Alone", &[][..]),
        ("One", &[("i", "p.Pass")]),
        ("Two", &[("i", "p.Pass"), ("j", "p.Pass")]),
        ("Another", &[("i", "p.Hand")]),
    ] {
        let ends = [("count", "p.Count"), ("write", "p.Write")];
        let all = [&ends[..1], between, &ends[1..]].concat();
        let instances: Vec<_> = all
            .iter()
            .map(|(name, class)| (*name, *class, &[][..]))
            .collect();
        let links: Vec<_> = all
            .windows(2)
            .map(|w| (format!("{}.Out", w[0].0), format!("{}.In", w[1].0)))
            .collect();
        let links: Vec<_> = links
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let text = common::network(&instances, &links);
        let text = text.replace("\"Top\"", &format!("\"{name}\""));
        place.write(&format!("src/p/{name}.xdf"), &text);
    }
    let host = Host::begin_in(place);
    let out = ["--name", "a", "--out", "out.txt", "--cpus", "0.05"];
    host.run(&[&["load", "src/p/Alone.xdf"][..], &out].concat())
        .succeeds();
    let mut joined = Vec::new();
    for (version, more) in [
        ("One", &[][..]),
        ("Two", &[]),
        ("Two", &["--no-fuse"]),
        ("Another", &[]),
        ("One", &[]),
        ("Alone", &[]),
        ("Two", &[]),
    ] {
        host.until("a", |a| a["firings"].as_u64() > Some(300));
        let network = format!("src/p/{version}.xdf");
        let replaced = host.run(&[&["replace", "a", &network], more].concat());
        let said = format!("{}{}", replaced.out, replaced.err);
        replaced.succeeds();
        assert!(!said.contains("count is reset"), "{said}");
        let shown = host.json(&["show", "a"]);
        let names = shown["actor"].as_array().unwrap().iter();
        joined.extend(names.filter_map(|a| a["name"].as_str()).map(str::to_string));
    }
    for name in ["count+i", "count+i+j", "count"] {
        assert!(joined.iter().any(|n| n == name), "{joined:?}");
    }
    host.until("a", |a| a["firings"].as_u64() > Some(300));
    host.run(&["unload", "a"]).succeeds();
    let written = written(&host.place);
    let breaks = written.iter().zip(1..).find(|(is, wanted)| **is != *wanted);
    assert_eq!(breaks, None, "of {}", written.len());
}

/// In the middle of a number and of a group, and nothing comes: it takes over all the same.
#[test]
fn a_quiet_pipe_holds_nothing_up() {
    let place = sums();
    let path = pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    host.run(&[&LOAD[..], &["--out", "out.txt"]].concat())
        .succeeds();
    // Its other end is not open yet.
    host.run(&["replace", "a", "src/p/Sums.xdf", "--timeout", "20"])
        .succeeds();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let give = |text: &str, firings: u64| {
        (&file).write_all(text.as_bytes()).unwrap();
        if firings > 0 {
            host.until("a", |a| a["firings"].as_u64() >= Some(firings));
        }
    };
    // Three of four, and the beginning of the last; then all of a comment but its end.
    give("4\n1 2 3 1", 8);
    host.run(&["replace", "a", "more/p/Sums.xdf", "--timeout", "20"])
        .succeeds();
    give("00\n2\n5 6 # 1 2", 7);
    host.run(&["replace", "a", "src/p/Sums.xdf", "--timeout", "20"])
        .succeeds();
    give("34 5\n1\n9\n", 0);
    // Paused, it stays so; and nothing of it is lost.
    host.run(&["pause", "a"]).succeeds();
    host.run(&["replace", "a", "more/p/Sums.xdf", "--timeout", "20"])
        .succeeds();
    assert_eq!(host.seen("a")["state"], "loaded");
    host.run(&["replace", "a", "src/p/Sums.xdf", "--timeout", "20"])
        .succeeds();
    assert_eq!(host.seen("a")["firings"], 0);
    host.run(&["resume", "a"]).succeeds();
    drop(file);
    host.until("a", |a| a["state"] == "ended");
    assert_eq!(written(&host.place), [106, 11, 9]);
}

/// An actor that writes to a pipe without a reader is in the middle of a firing: it continues unchanged.
#[test]
fn old_version_continues_if_the_new_one_cannot_take_over() {
    let place = sums();
    place.write("numbers.txt", &"1\n7\n".repeat(40_000));
    let mut output = held_pipe(&place, "out.fifo");
    let host = Host::begin_in(place);
    let args = [
        "load",
        "src/p/Sums.xdf",
        "--name",
        "a",
        "--in",
        "numbers.txt",
    ];
    host.run(&[&args[..], &["--out", "out.fifo"]].concat())
        .succeeds();
    let last = std::cell::Cell::new(0);
    host.until("a", |a| {
        let now = a["firings"].as_u64().unwrap_or_default();
        std::thread::sleep(Duration::from_millis(200));
        now == last.replace(now) && now > 1000
    });
    let number = host.seen("a")["number"].clone();
    let start = Instant::now();
    host.run(&["replace", "a", "more/p/Sums.xdf", "--timeout", "0.5"])
        .refuses(
            8,
            &[
                "a continues unchanged",
                "write is in the middle of a firing",
            ],
        );
    assert!(start.elapsed() < Duration::from_secs(300));
    assert_eq!(host.seen("a")["number"], number);
    assert_eq!(host.seen("a")["state"], "running");
    let (mut all, mut part) = (0, [0; 1 << 16]);
    while all < 40_000 * 2 {
        let n = output.read(&mut part).unwrap();
        assert!(part[..n].iter().all(|b| b"7\n".contains(b)));
        all += n;
    }
    assert_eq!(
        host.until("a", |a| a["state"] == "ended")["outcome"],
        "done"
    );
}

/// Networks that count ticks: `Quick` ones, and `Slow` ones of some milliseconds each. The actor of `Slow` leaves
/// its first state for good, so that none of another class (`Other`) ever takes over. `Longer` is `Quick` with
/// another channel.
fn ticking() -> Place {
    let place = sources();
    place.write(
        "src/p/Pass.cal",
        "package p;\nactor Pass () int In ==> int Out :\n  action In:[x] ==> Out:[x] end\nend\n",
    );
    place.write(
        "natives/tick.c",
        "#include <levada/native.h>\nvoid tick(int32_t x, int32_t work) {\n  volatile double sum = 0;\n  for \
         (int i = 0; i < work; i++) sum += i;\n  lvd_app_progress(lvd_current_app(), \"tick\", \
         (uint64_t)x);\n}\n",
    );
    for (class, work) in [("Tick", 100), ("Never", 2_000_000), ("Else", 100)] {
        let schedule = match class {
            "Never" => {
                "  schedule fsm first:\n    first (go) --> on;\n    on (go) --> on;\n  end\n"
            }
            _ => "",
        };
        let text = format!(
            "package p;\nactor {class} () int In ==> :\n  @native procedure tick(int x, int work) end\n  \
             go: action In:[x] ==> do tick(x, {work}); end\n{schedule}end\n"
        );
        place.write(&format!("src/p/{class}.cal"), &text);
    }
    let source = ("source", "p.Source", &[("n", "2000000000")][..]);
    for (name, class) in [
        ("Quick", "p.Tick"),
        ("Slow", "p.Never"),
        ("Other", "p.Else"),
    ] {
        let text = common::network(
            &[source, ("tick", class, &[])],
            &[("source.Out", "tick.In")],
        );
        let text = text.replace("\"Top\"", &format!("\"{name}\""));
        place.write(&format!("src/p/{name}.xdf"), &text);
    }
    let longer = common::network(
        &[source, ("pass", "p.Pass", &[]), ("tick", "p.Tick", &[])],
        &[("source.Out", "pass.In"), ("pass.Out", "tick.In")],
    );
    let longer = longer.replace("\"Top\"", "\"Longer\"");
    place.write("src/p/Longer.xdf", &longer);
    place
}

fn done(of: &serde_json::Value) -> u64 {
    of["progress"]["done"].as_u64().unwrap_or_default()
}

/// What an earlier version has counted, and quickly, is none of a new one's, which has a rate of its own.
#[test]
fn a_new_version_has_its_rate_from_its_beginning() {
    let host = Host::begin_in(ticking());
    host.run(&["load", "src/p/Quick.xdf", "--name", "a"])
        .succeeds();
    let before = done(&host.until("a", |a| done(a) > 200_000));
    host.run(&["replace", "a", "src/p/Quick.xdf", "--rate", "500"])
        .succeeds();
    let now = done(&host.until("a", |a| done(a) > before));
    host.until("a", |a| done(a) > now + 1000);
    host.run(&["replace", "a", "src/p/Quick.xdf"]).succeeds();
    assert_eq!(host.seen("a")["reserved_rate"], 500.0);
    host.until("a", |a| done(a) > now + 1500);
    // What is on its way comes out first, at its rate.
    host.run(&["replace", "a", "src/p/Longer.xdf", "--rate", "2000"])
        .succeeds();
    host.run(&["replace", "a", "src/p/Quick.xdf", "--timeout", "60"])
        .succeeds();
}

/// Nor does it do more while a new version waits for its moment, or stand still for it.
#[test]
fn limits_are_kept_while_a_new_version_waits_for_its_moment() {
    let host = Host::begin_in(ticking());
    let other = ["replace", "a", "src/p/Other.xdf", "--timeout"];
    let refused = |within| {
        let start = Instant::now();
        host.run(&[&other[..], &[within]].concat())
            .refuses(8, &["a continues unchanged"]);
        start.elapsed().as_secs_f64()
    };
    host.run(&["load", "src/p/Slow.xdf", "--name", "a", "--rate", "5"])
        .succeeds();
    let before = done(&host.until("a", |a| done(a) > 3));
    let seconds = refused("4");
    let after = done(&host.seen("a"));
    // Ten times what it may: a busy machine looks seldom. Without a limit it does hundreds a second.
    assert!(((after - before) as f64) < 50.0 * seconds + 20.0);
    host.until("a", |a| done(a) > after + 20);
    // What is paused is so again.
    host.run(&["pause", "a"]).succeeds();
    refused("0.5");
    let paused = host.seen("a");
    assert_eq!(paused["state"], "paused");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(host.seen("a")["firings"], paused["firings"]);
    host.run(&["resume", "a"]).succeeds();
    host.until("a", |a| a["firings"].as_u64() > paused["firings"].as_u64());
    host.run(&["unload", "a", "--now"]).succeeds();

    host.run(&["load", "src/p/Slow.xdf", "--name", "a", "--cpus", "0.05"])
        .succeeds();
    let busy = |a: &serde_json::Value| a["busy"].as_f64().unwrap_or_default();
    let before = busy(&host.until("a", |a| busy(a) > 0.1));
    let seconds = refused("4");
    let after = busy(&host.seen("a"));
    assert!(after - before < 0.3 * seconds + 0.2);
    host.until("a", |a| busy(a) > after + 0.1);
}

/// Wherever one looks, there is the old one as long as the new one waits for its moment; of one that never takes
/// over nothing is told.
#[test]
fn a_version_that_waits_is_not_seen() {
    let host = Host::begin_in(ticking());
    for network in ["src/p/Other.xdf", "src/p/Slow.xdf"] {
        host.run(&["load", network, "--name=a"]).succeeds();
        host.until("a", |a| done(a) > 3);
        if network.contains("Other") {
            host.run(&["unload", "a", "--now"]).succeeds();
        }
    }
    // But for where its actors are mapped to.
    let told = |line: &&str| {
        line.contains("\"application\":\"a\"") && !line.contains("\"event\":\"moved\"")
    };
    let events = || host.get("/events").lines().filter(told).count();
    let before = events();
    let (mut looked, number) = (0, host.seen("a")["number"].clone());
    let args = ["replace", "a", "src/p/Other.xdf", "--timeout=3"];
    std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&args));
        while !replaces.is_finished() {
            let all = host.json(&["list"]);
            assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
            let shown = host.json(&["show", "a"]);
            assert_eq!(shown["number"], number, "{shown}");
            let metrics = host.get("/metrics");
            let of_tick = "levada_actor_firings_total{application=\"a\",actor=\"tick\"";
            assert_eq!(metrics.matches(of_tick).count(), 1, "{metrics}");
            let map = host.run(&["map"]);
            assert_eq!(map.succeeds().out.matches("a.tick").count(), 1, "{map:?}");
            looked += 1;
        }
        replaces
            .join()
            .unwrap()
            .refuses(8, &["a continues unchanged"]);
    });
    assert!(looked > 5);
    assert_eq!(events(), before, "{}", host.get("/events"));
    // One that does is told of when it has its place.
    host.run(&["replace", "a", "src/p/Slow.xdf"]).succeeds();
    let told = host.get("/events");
    let of = |event: &str| told.rfind(&format!("\"event\":\"{event}\"")).unwrap();
    assert!(
        of("ended") < of("loaded") && of("loaded") < of("replaced"),
        "{told}"
    );
}

/// With other values of its parameters an actor knows what it has known, but for what has another type now.
#[test]
fn a_parameter_may_change() {
    let place = sources();
    place.write(
        "src/p/Adds.cal",
        "package p;\nactor Adds (int scale, int size) int In ==> int Out :\n  int sum := 0;\n  \
         List(type:int, size=4) table = [ i * scale : for int i in 0 .. 3 ];\n  \
         List(type:int, size=size) last;\n  action In:[x] ==> Out:[sum + table[1] + last[1]] do sum := sum + x; \
         last[1] := last[0]; last[0] := 1000; end\nend\n",
    );
    let version = |name: &str, scale: &str, size: &str| {
        let text = common::network(
            &[
                ("read", "p.Read", &[]),
                ("adds", "p.Adds", &[("scale", scale), ("size", size)]),
                ("write", "p.Write", &[]),
            ],
            &[("read.Out", "adds.In"), ("adds.Out", "write.In")],
        );
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    };
    place.write(
        "src/p/Read.cal",
        "package p;\nimport levada.io.*;\nactor Read () ==> int Out :\n  action ==> \
         Out:[io_read_number()] guard io_more() end\nend\n",
    );
    version("Tens", "10", "2");
    version("Negative", "-7", "2");
    version("Longer", "10", "3");
    let mut all = Vec::new();
    for isolate in [false, true] {
        all.push((isolate, pipe(&place, &format!("in-{isolate}.fifo"))));
    }
    let host = Host::begin_in(place);
    for (isolate, path) in all {
        let (name, out) = (format!("a-{isolate}"), format!("out-{isolate}.txt"));
        let input = format!("--in={}", path.display());
        let output = format!("--out={out}");
        let mut load = vec!["load", "src/p/Tens.xdf", "--name", &name, &input, &output];
        load.extend(isolate.then_some("--isolate"));
        host.run(&load).succeeds();
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut expect = Vec::new();
        let mut sum = 0;
        for (network, scale, last) in [
            ("", 10, 0),
            ("src/p/Negative.xdf", -7, 1000),
            ("src/p/Tens.xdf", 10, 1000),
            ("src/p/Longer.xdf", 10, 0),
        ] {
            if !network.is_empty() {
                let run = host.run(&["replace", &name, network]);
                let told = run.succeeds().err.clone();
                let reset = "note: last of adds is reset: its type is ";
                assert_eq!(told.contains(reset), last == 0, "{told}");
            }
            // Each is given its own, and has fired before the next one comes.
            file.write_all(b"1\n").unwrap();
            sum += 1;
            expect.push(sum + scale + last);
            let start = Instant::now();
            let fired = || {
                let seen = host.json(&["show", &name]);
                let all = seen["actor"].as_array().unwrap().clone();
                let adds = all.iter().find(|a| a["name"] == "adds").unwrap();
                adds["firings"].as_u64() >= Some(1)
            };
            while !fired() {
                assert!(start.elapsed() < Duration::from_secs(300), "{name}: {sum}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        drop(file);
        let seen = host.until(&name, |a| a["outcome"].is_string());
        assert_eq!(seen["outcome"], "done", "{seen}");
        let text = std::fs::read_to_string(host.place.path(&out)).unwrap();
        let written: Vec<i64> = text.lines().map(|l| l.parse().unwrap()).collect();
        assert_eq!(written, expect);
    }
}

/// What an application is allowed is not left behind by a new version: neither now, nor for the next host.
#[test]
fn a_new_version_has_the_limits_of_the_old_one() {
    let mut host = Host::begin_in(sources());
    let has = |host: &Host, name: &str| {
        let seen = host.seen(name);
        assert_eq!(
            (seen["cpus"].as_f64(), seen["priority"].as_i64()),
            (Some(0.1), Some(3)),
            "{seen}"
        );
    };
    for (name, isolate) in [("here", None), ("apart", Some("--isolate"))] {
        let load = [
            "load",
            "src/p/Many.xdf",
            "--out=/dev/null",
            "--cpus=0.1",
            "--priority=3",
            "--name",
            name,
        ];
        let load: Vec<&str> = load.into_iter().chain(isolate).collect();
        host.run(&load).succeeds();
        host.run(&["replace", name, "src/p/Many.xdf"]).succeeds();
        has(&host, name);
    }
    host = host.again(&["--restore"]);
    for name in ["here", "apart"] {
        host.until(name, |a| a["state"] == "running");
        has(&host, name);
    }
}
