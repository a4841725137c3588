// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that rate limits and CPU quotas are kept next to applications that flood channels or compute without end,
//! and by all versions of an application together.

use crate::common;
use crate::common::Place;
use crate::common::host::{Host, READ, pipe, sources};
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Counts what it does, as decoders count frames.
fn counting() -> Place {
    let place = sources();
    place.write(
        "src/p/Tick.cal",
        "package p;\nactor Tick (int work) int In ==> :\n  @native procedure tick(int x, int work) end\n  \
         action In:[x] ==> do tick(x, work); end\nend\n",
    );
    place.write(
        "natives/tick.c",
        "#include <levada/native.h>\nvoid tick(int32_t x, int32_t work) {\n  volatile double sum = 0;\n  for \
         (int i = 0; i < work; i++) sum += i;\n  lvd_app_progress(lvd_current_app(), \"tick\", \
         (uint64_t)x);\n}\n",
    );
    // A frame is some milliseconds of work, a block less, a tick much less.
    let all = [
        ("Few", "3000", "20000"),
        ("Ticks", "2000000000", "20000"),
        ("Blocks", "2000000000", "200000"),
        ("Frames", "2000000000", "2000000"),
    ];
    for (name, n, work) in all {
        let text = common::network(
            &[
                ("source", "p.Source", &[("n", n)]),
                ("tick", "p.Tick", &[("work", work)]),
            ],
            &[("source.Out", "tick.In")],
        );
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    let waits = common::network(
        &[
            ("read", "p.Read", &[]),
            ("tick", "p.Tick", &[("work", "20000")]),
        ],
        &[("read.Out", "tick.In")],
    );
    place.write("src/p/Waits.xdf", &waits.replace("\"Top\"", "\"Waits\""));
    place.write("src/p/Read.cal", READ);
    place
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_default()
}

/// Waits until an application makes progress at a rate within `bounds` for four seconds; `what` is the count, per
/// second. Next to other programs that compute, that may take a while.
fn has_come_within(
    host: &Host,
    from: &Value,
    what: impl Fn(&Value) -> f64,
    bounds: std::ops::RangeInclusive<f64>,
) {
    const WINDOW_S: f64 = 4.0;
    const LIMIT_S: f64 = 300.0;
    let name = from["name"].as_str().unwrap();
    let mut window = from.clone();
    loop {
        let now = host.seen(name);
        let since = |then: &Value| number(&now["seconds"]) - number(&then["seconds"]);
        let seconds = since(&window);
        if seconds >= WINDOW_S {
            let pace = (what(&now) - what(&window)) / seconds;
            println!("{name}: {pace:.3} a second, after {:.0} s", since(from));
            if bounds.contains(&pace) {
                return;
            }
            window = now.clone();
        }
        assert!(
            since(from) < LIMIT_S,
            "the rate never comes within {bounds:?}: {now}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn rates_and_shares_are_kept_and_lateness_is_reported() {
    let host = Host::begin_in(counting());
    host.run(&["load", "src/p/Frames.xdf", "--name", "even", "--rate", "50"])
        .succeeds();
    host.run(&[
        "load",
        "src/p/Ticks.xdf",
        "--name",
        "little",
        "--cpus",
        "0.1",
    ])
    .succeeds();
    // Where the machine is busy, some have been measured by then, and are dear.
    let args = ["--name", "hasty", "--rate=1000000", "--cpus=0.1", "--force"];
    host.run(&[&["load", "src/p/Ticks.xdf"][..], &args].concat())
        .succeeds();
    // It does ten a second, because no more come: that is not late.
    let input = pipe(&host.place, "numbers");
    let input_of_it = format!("--in={}", input.display());
    let load = [
        "load",
        "src/p/Waits.xdf",
        "--name=waits",
        "--rate=200",
        &input_of_it,
    ];
    host.run(&load).succeeds();
    let mut numbers = std::fs::File::create(&input).unwrap();
    let (even, little) = (host.seen("even"), host.seen("little"));
    for i in 0..40 {
        writeln!(numbers, "{}", i + 1).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(number(&host.seen("waits")["progress"]["done"]) > 30.0);
    let done = |a: &Value| number(&a["progress"]["done"]);
    has_come_within(&host, &even, done, 15.0..=55.0);
    let even = host.seen("even");
    let for_ = number(&even["seconds"]);
    assert!(done(&even) <= 50.0 * for_ + 20.0, "{even}");
    assert_eq!(even["reserved_rate"], 50.0);
    has_come_within(&host, &little, |a| number(&a["busy"]), 0.01..=0.14);
    let events = host.run(&["events", "--json"]);
    let late = events.out.lines().any(|l| {
        let e: Value = serde_json::from_str(l).unwrap();
        let text = e["detail"].as_str().unwrap_or_default();
        e["event"] == "rate_missed"
            && e["application"] == "hasty"
            && text.contains("of 1000000.0 tick")
    });
    assert!(late, "{events:?}");
    let of_it = |l: &&str| l.contains("\"waits\"") && l.contains("\"rate_missed\"");
    assert_eq!(events.out.lines().find(of_it), None);
    assert_eq!(host.seen("waits")["rate_missed"], false);
    drop(numbers);
    host.until("waits", |a| a["state"] == "ended");
    // A throttled application can be paused, resumed and drained.
    let paused = host.json(&["pause", "little"]);
    assert_eq!(paused["state"], "paused");
    let before = host.seen("little")["firings"].clone();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(host.seen("little")["firings"], before);
    // A new version is held to the same, and what holds the old one does not keep it from draining.
    // What is in flight takes some milliseconds each.
    let replace = ["replace", "even", "src/p/Frames.xdf", "--timeout", "300"];
    host.run(&[&replace[..], &["--force"]].concat()).succeeds();
    assert_eq!(host.seen("even")["reserved_rate"], 50.0);
    host.run(&["resume", "little"]).succeeds();
    host.until("little", |a| number(&a["firings"]) > number(&before));
    host.run(&["unload", "little", "--timeout", "60"])
        .succeeds();
    for wrong in ["0", "-1", "x", "1e99"] {
        let args = ["load", "src/p/Ticks.xdf", "--socket", "h.sock"];
        let rate = format!("--rate={wrong}");
        host.place
            .run(&[&args[..], &[&rate]].concat())
            .refuses(2, &["--rate"]);
    }
}

#[test]
fn a_promise_that_cannot_be_kept_is_refused_with_the_numbers() {
    let host = Host::begin_in(counting());
    // How long each takes is known when one has run.
    host.run(&["load", "src/p/Few.xdf", "--name", "few"])
        .succeeds();
    host.until("few", |a| a["state"] == "ended");
    let load = ["load", "src/p/Few.xdf", "--name", "more"];
    let much = [&load[..], &["--rate", "10000000"]].concat();
    host.run(&much).refuses(
        7,
        &[
            "a reserved rate would be broken",
            "10000000.0 tick/s",
            "--force",
        ],
    );
    host.run(&[&load[..], &["--rate", "10"]].concat())
        .succeeds();
    host.run(&["unload", "more", "--now"]).succeeds();
    host.run(&[&much[..], &["--force"]].concat()).succeeds();
}

/// Next to an endless action, a source and a printer at full speed, and a producer for a slow consumer.
#[test]
fn rates_are_kept_next_to_harmful_applications() {
    let place = counting();
    for (name, text) in [
        (
            "Endless",
            "actor Endless () ==> :\n  int n := 1;\n  action ==> do while n > 0 do \
             n := if n = 7 then 1 else n + 1 end; end end",
        ),
        (
            "Says",
            "actor Says () ==> :\n  int n := 0;\n  action ==> do println(\"line \" + n); n := n + 1; end",
        ),
        (
            "Hardly",
            "actor Hardly () int In ==> :\n  int n := 0;\n  action In:[x] repeat 100 ==> do \
             foreach int i in 1 .. 2000000 do n := (n * 75 + x[i mod 100]) mod 65537; end end",
        ),
    ] {
        let file = format!("src/p/{name}.cal");
        place.write(&file, &format!("package p;\n{text}\nend\n"));
    }
    let floods = common::network(
        &[
            ("source", "p.Source", &[("n", "2000000000")]),
            ("hardly", "p.Hardly", &[]),
        ],
        &[("source.Out", "hardly.In")],
    );
    let floods = floods.replace("\"Top\"", "\"Floods\"");
    place.write("src/p/Floods.xdf", &floods);
    let host = Host::begin_with(place, &["--action-time-limit=0", "--output-rate=100K"]);
    let even = ["load", "src/p/Frames.xdf", "--name=even", "--rate=50"];
    host.run(&even).succeeds();
    let done = |a: &Value| number(&a["progress"]["done"]);
    for harm in ["Endless.cal", "Many.xdf", "Says.cal", "Floods.xdf"] {
        let file = format!("src/p/{harm}");
        let load = ["load", &file, "--name=harm", "--force"];
        host.run(&load).succeeds();
        host.until("harm", |a| number(&a["seconds"]) > 0.5);
        println!("{harm}:");
        has_come_within(&host, &host.seen("even"), done, 40.0..=55.0);
        assert_eq!(host.seen("harm")["state"], "running");
        host.run(&["unload", "harm", "--now"]).succeeds();
    }
}

/// A reserved rate that is not kept is reported, whatever else is loaded and unloaded.
#[test]
fn lateness_is_reported_while_others_come_and_go() {
    let host = Host::begin_in(counting());
    let hasty = ["load", "src/p/Ticks.xdf", "--name=hasty"];
    let never = ["--rate=1000000", "--cpus=0.1", "--force"];
    host.run(&[&hasty[..], &never].concat()).succeeds();
    let start = std::time::Instant::now();
    while host.seen("hasty")["rate_missed"] != true {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "no rate is missed"
        );
        host.many("other");
        host.run(&["unload", "other", "--now"]).succeeds();
        std::thread::sleep(Duration::from_millis(200));
    }
    let events = host.run(&["events"]).succeeds().out.clone();
    assert!(events.contains("rate_missed hasty"), "{events}");
}

/// A new version goes on with what the old one has left of its rate: however often it is replaced, all of them together
/// have no more than one would, those also of which each could do much before it is looked at.
#[test]
fn a_rate_is_kept_by_all_versions_together() {
    let host = Host::begin_in(counting());
    for (file, rate) in [("src/p/Frames.xdf", 20.0), ("src/p/Ticks.xdf", 1000.0)] {
        let promised = format!("--rate={rate}");
        // What a busy machine has measured is not what is tested.
        host.run(&["load", file, "--name=one", &promised, "--force"])
            .succeeds();
        let done = |a: &Value| number(&a["progress"]["done"]);
        let before = done(&host.until("one", |a| done(a) > 0.0));
        let start = Instant::now();
        for _ in 0..60 {
            host.run(&["replace", "one", file, "--force"]).succeeds();
            // What has been counted is known before the new version has counted.
            assert!(done(&host.seen("one")) >= before);
        }
        // It may have saved half a second's worth, and is held a little later than it should be.
        let more = done(&host.seen("one")) - before;
        let most = rate * (start.elapsed().as_secs_f64() + 1.0) + 5.0;
        println!("{file}: {more} of {most}");
        assert!(more <= most, "{more} of {most}");
        // And it has not stopped.
        let before = done(&host.seen("one"));
        host.until("one", |a| done(a) > before + 10.0);
        host.run(&["unload", "one", "--now"]).succeeds();
    }
}

/// Whatever is done to it meanwhile, by commands or by requests, it has no more than its rate; and a resume of what
/// runs, or a pause of what is paused, is no event. On a busy machine an application is held late and has more than its
/// rate; so it is compared with one of the same rate that is left alone.
#[test]
fn a_rate_is_kept_across_pauses_and_resumes() {
    let host = Host::begin_in(counting());
    let rate = 50.0;
    for name in ["--name=one", "--name=alone"] {
        host.run(&["load", "src/p/Blocks.xdf", name, "--rate=50", "--force"])
            .succeeds();
    }
    let done = |a: &Value| number(&a["progress"]["done"]);
    let before = ["one", "alone"].map(|name| done(&host.until(name, |a| done(a) > 0.0)));
    let start = Instant::now();
    let post = |what: &str| {
        let answer = host.post(&format!("/applications/one/{what}"), "");
        assert!(answer.contains(" 200 "), "{answer}");
    };
    for i in 0..120 {
        match i % 4 {
            0 => post("resume"),
            1 => {
                post("pause");
                post("pause");
                post("resume");
            }
            2 => drop(host.run(&["pause", "one"]).succeeds()),
            _ => drop(host.run(&["resume", "one"]).succeeds()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // It may have saved half a second's worth, and owes no more than one of a second: what it has beyond that is lost.
    // Without a bucket that outlives pauses it would have half a second's worth after each.
    let more = |i: usize, name| done(&host.seen(name)) - before[i];
    let (one, alone) = (more(0, "one"), more(1, "alone"));
    let of_rate = rate * (start.elapsed().as_secs_f64() + 2.0);
    println!("{one}, and {alone} of the one left alone; by the rate {of_rate}");
    assert!(one <= 3.0 * (of_rate + alone), "{one}, {alone}, {of_rate}");
    let events = host.run(&["events", "--json"]).succeeds().out.clone();
    let count = |what: &str| {
        let event = format!("\"event\":\"{what}\"");
        events.lines().filter(|l| l.contains(&event)).count()
    };
    assert_eq!((count("paused"), count("resumed")), (60, 60), "{events}");
    // And it has not stopped.
    let before = done(&host.seen("one"));
    host.until("one", |a| done(a) > before + 10.0);
}
