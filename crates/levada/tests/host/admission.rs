// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of admission next to applications with reserved rates. Cases: networks that were measured to their end,
//! until they were stopped, until their host ended, or run under another name; networks that were never measured;
//! applications that have not reported progress; paused ones; A reserved rate that cannot be kept, and loads next to
//! it; long firings that delay an application with a reserved rate; isolated applications, and loads next to them; C
//! programs; a second host on the same cores; a restored host; manifests that are admitted as a whole; priorities
//! beyond those that workers distinguish; a higher priority with a CPU quota, and one that is driven by a clock.

use crate::common;
use crate::common::host::{Host, sources};
use crate::common::{Place, Run};
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Networks that count ticks, for ever: `Short` in some microseconds of CPU time for each, `Middle` in a millisecond,
/// `Long` in more than half a second. As long as there is a file `mute` they count nothing.
fn counting() -> Place {
    let place = sources();
    place.write(
        "src/p/Tick.cal",
        "package p;\nactor Tick (int work) int In ==> :\n  @native procedure tick(int x, int work) end\n  \
         action In:[x] ==> do tick(x, work); end\nend\n",
    );
    place.write(
        "natives/tick.c",
        "#include <levada/native.h>\n#include <time.h>\n#include <unistd.h>\n\
         static double now(void) {\n  struct timespec t;\n  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);\n  \
         return t.tv_sec * 1e6 + t.tv_nsec / 1e3;\n}\n\
         void tick(int32_t x, int32_t work) {\n  for (double end = now() + work; now() < end;) {}\n  \
         if (access(\"mute\", F_OK) != 0) lvd_app_progress(lvd_current_app(), \"tick\", (uint64_t)x);\n}\n",
    );
    for (name, us) in [
        ("Short", "20"),
        ("Other", "30"),
        ("Middle", "1100"),
        ("Long", "600000"),
    ] {
        let text = common::network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("tick", "p.Tick", &[("work", us)]),
            ],
            &[("source.Out", "tick.In")],
        );
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    place
}

fn load(host: &Host, network: &str, name: &str, more: &[&str]) -> Run {
    let network = format!("src/p/{network}.xdf");
    let args = ["load", &network, "--name", name];
    host.run(&[&args[..], more].concat())
}

/// Until it has done so much, of which enough was measured.
fn until_measured(host: &Host, name: &str, ticks: f64) {
    host.until(name, |a| {
        let done = a["progress"]["done"].as_f64().unwrap_or_default();
        done >= ticks && a["busy"].as_f64().unwrap_or_default() > 0.1
    });
}

/// Each on a worker of its own.
const PLACES: &str = "[one]\nsource = 0\ntick = 0\n[two]\nsource = 1\ntick = 1\n";

/// More than one core can do of `Short`.
const HOPELESS: [&str; 2] = ["--rate", "1000000"];

fn is_refused(run: &Run) {
    let numbers = "is to reserve 1000000.0 tick/s and would get ";
    run.refuses(7, &["a reserved rate would be broken", numbers, "--force"]);
}

#[test]
fn what_was_measured_is_known_however_that_ended() {
    let host = Host::begin_in(counting());
    load(&host, "Short", "first", &[]).succeeds();
    until_measured(&host, "first", 100.0);
    // It runs under another name.
    is_refused(&load(&host, "Short", "second", &HOPELESS));
    // It was stopped.
    host.run(&["unload", "first", "--now"]).succeeds();
    is_refused(&load(&host, "Short", "second", &HOPELESS));
    // Its host has ended, as it ran.
    load(&host, "Other", "other", &[]).succeeds();
    until_measured(&host, "other", 100.0);
    let host = host.again(&[]);
    is_refused(&load(&host, "Other", "second", &HOPELESS));
    let fine = load(&host, "Other", "second", &["--rate", "50", "--json"]);
    let admission = &fine.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{fine:?}");
    assert_eq!(
        admission["rate_reservations"][0]["reserved_rate"], 50.0,
        "{fine:?}"
    );
    assert_eq!(
        admission["rate_reservations"][0]["expected_after"], 50.0,
        "{fine:?}"
    );
    assert_eq!(
        admission["rate_reservations"][0]["expected_before"],
        Value::Null,
        "{fine:?}"
    );
}

/// Others have reserved something since it was there.
#[test]
fn a_resumed_unrestored_application_is_admitted_like_a_load() {
    const PART: [&str; 2] = ["--rate", "30000"];
    let host = Host::begin_in(counting());
    load(&host, "Short", "first", &[]).succeeds();
    until_measured(&host, "first", 100.0);
    host.run(&["unload", "first", "--now"]).succeeds();
    load(&host, "Short", "left", &PART).succeeds();
    let host = host.again(&[]);
    for name in ["a", "b"] {
        load(&host, "Short", name, &PART).succeeds();
    }
    let numbers = "left is to reserve 30000.0 tick/s and would get ";
    host.run(&["resume", "left"])
        .refuses(7, &["a reserved rate would be broken", numbers]);
    assert_eq!(host.seen("left")["state"], "quarantined");
    host.run(&["unload", "b", "--now"]).succeeds();
    host.run(&["resume", "left"]).succeeds();
    // A restore loads all applications that ran together.
    load(&host, "Short", "b", &[&PART[..], &["--force"]].concat()).succeeds();
    let host = host.again(&["--restore"]);
    for name in ["a", "b", "left"] {
        host.until(name, |a| a["state"] == "running");
    }
}

/// A second host on the same cores.
struct Second(Child);

impl Second {
    fn begin(host: &Host) -> Second {
        let args = ["host", "--workers", "2", "--socket", "second.sock"];
        let mut command = host
            .place
            .command(&[&args[..], &["--state", "second"]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let second = Second(command.spawn().unwrap());
        let start = Instant::now();
        while UnixStream::connect(host.place.path("second.sock")).is_err() {
            assert!(start.elapsed() < Duration::from_secs(300), "no second host");
            std::thread::sleep(Duration::from_millis(5));
        }
        second
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The measured cost of an actor excludes time in which its thread waits for a core: a load that fits is admitted by
/// costs that were measured next to a process with an equal share of the core.
#[test]
fn admission_uses_own_costs_and_not_those_of_neighbors() {
    let host = Host::begin_in(counting());
    let _second = Second::begin(&host);
    for (name, network) in [("a", "Short"), ("b", "Short")] {
        let network = format!("src/p/{network}.xdf");
        let args = ["load", &network, "--name", name, "--socket", "second.sock"];
        host.place.run(&args).succeeds();
    }
    let waits = || {
        let workers = host.json(&["stats"])["worker"].as_array().unwrap().clone();
        let waits = workers.iter().filter_map(|w| w["lease"]["waits"].as_u64());
        waits.sum::<u64>()
    };
    let before = waits();
    load(&host, "Middle", "first", &[]).succeeds();
    until_measured(&host, "first", 300.0);
    assert!(waits() > before + 10, "no other process uses the cores");
    host.run(&["unload", "first", "--now"]).succeeds();
    // 0.6 of what a core can do.
    let fits = load(&host, "Middle", "second", &["--rate", "545", "--json"]);
    let admission = &fits.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{fits:?}");
}

/// Of cores on which isolated applications compute all the time, those of the host have half: what needs more is
/// refused, as long as they are there.
#[test]
fn what_isolated_applications_take_is_not_promised_to_others() {
    let host = Host::begin_in(counting());
    load(&host, "Middle", "first", &[]).succeeds();
    until_measured(&host, "first", 300.0);
    host.run(&["unload", "first", "--now"]).succeeds();
    for (name, worker) in [("a", "0"), ("b", "1")] {
        load(&host, "Short", name, &["--isolate"]).succeeds();
        for actor in ["source", "tick"] {
            host.run(&["move", name, actor, worker]).succeeds();
        }
    }
    // 0.8 of what a core can do; they have to be seen at work before.
    let most = ["--rate", "730"];
    let start = Instant::now();
    let refused = loop {
        let told = load(&host, "Middle", "second", &most);
        if told.code != Some(0) {
            break told;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{told:?}");
        host.run(&["unload", "second", "--now"]).succeeds();
        std::thread::sleep(Duration::from_millis(600));
    };
    let numbers = "is to reserve 730.0 tick/s and would get ";
    refused.refuses(7, &[numbers, "(isolated applications leave", "of 2 cores)"]);
    for name in ["a", "b"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    let fits = load(&host, "Middle", "second", &["--rate", "730", "--json"]);
    let admission = &fits.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{fits:?}");
}

/// What is not known is said, and found out when it runs.
#[test]
fn unmeasured_applications_are_loaded_and_reported_so() {
    let host = Host::begin_in(counting());
    let plain = load(&host, "Other", "plain", &["--json"]);
    assert_eq!(plain.succeeds().json()["admission"], Value::Null);
    until_measured(&host, "plain", 100.0);
    let hasty = load(&host, "Short", "hasty", &HOPELESS);
    let unknown = "note: whether reserved rates can be kept is not known: ";
    hasty.succeeds();
    assert!(hasty.err.contains(unknown), "{hasty:?}");
    assert!(hasty.err.contains("hasty is not measured yet"), "{hasty:?}");
    let isolated = load(&host, "Other", "apart", &["--isolate", "--json"]);
    let admission = &isolated.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "unknown", "{isolated:?}");
    let text = admission["text"].as_str().unwrap();
    assert!(text.contains("apart is isolated"), "{isolated:?}");
    host.run(&["unload", "apart", "--now"]).succeeds();
    // A C program next to a reserved rate.
    host.place.write("p.c", "int main(void) { return 0; }\n");
    host.place
        .run(&["cc", "--plugin", "p.c", "-o", "p.so"])
        .succeeds();
    let program = host.run(&["load", "p.so", "--name", "program"]);
    program.succeeds();
    assert!(
        program.err.contains("program is a C program"),
        "{program:?}"
    );
    // And it is late.
    host.until("hasty", |a| {
        a["measured_rate"].as_f64().is_some_and(|p| p < 900_000.0)
    });
    let late = || {
        let events = host.run(&["events", "--json"]);
        let mut lines = events.out.lines();
        lines.any(|l| l.contains("\"rate_missed\"") && l.contains("\"hasty\""))
    };
    let start = Instant::now();
    while !late() {
        assert!(start.elapsed() < Duration::from_secs(300), "not late");
        std::thread::sleep(Duration::from_millis(20));
    }
    host.until("hasty", |a| a["rate_missed"] == true);
    // What is paused is not; nor does it begin to be.
    let paused = host.json(&["pause", "hasty"]);
    assert_eq!(paused["rate_missed"], false);
    let late = host.seen("hasty")["rate_miss_count"].clone();
    std::thread::sleep(Duration::from_millis(2500));
    let hasty = host.seen("hasty");
    assert_eq!(
        (&hasty["rate_missed"], &hasty["rate_miss_count"]),
        (&Value::Bool(false), &late)
    );
}

#[test]
fn an_impossible_promise_refuses_no_other_load() {
    let host = Host::begin_in(counting());
    for (network, name) in [("Short", "first"), ("Other", "other")] {
        load(&host, network, name, &[]).succeeds();
        until_measured(&host, name, 100.0);
        host.run(&["unload", name, "--now"]).succeeds();
    }
    let hasty = load(
        &host,
        "Short",
        "hasty",
        &[&HOPELESS[..], &["--force"]].concat(),
    );
    hasty.succeeds();
    let numbers =
        "note: a reserved rate is broken: hasty is to reserve 1000000.0 tick/s and would get ";
    assert!(hasty.err.contains(numbers), "{hasty:?}");
    let low = load(&host, "Other", "low", &["--priority=-1", "--json"]);
    let admission = &low.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{low:?}");
    let promise = &admission["rate_reservations"][0];
    let number = |what: &str| promise[what].as_f64().unwrap();
    assert!(
        number("expected_before") < 900_000.0 && number("expected_after") < 900_000.0,
        "{low:?}"
    );
    load(&host, "Other", "even", &["--rate", "20"]).succeeds();
    // A load with an impossible rate is refused all the same, and so is one that breaks another's reserved rate.
    is_refused(&load(&host, "Other", "hasty-too", &HOPELESS));
    let numbers = load(
        &host,
        "Other",
        "hasty-too",
        &[&HOPELESS[..], &["--json"]].concat(),
    )
    .json();
    let promises = numbers["admission"]["rate_reservations"]
        .as_array()
        .unwrap();
    let it = promises.iter().find(|p| p["application"] == "hasty-too");
    let it = it.unwrap_or_else(|| panic!("{numbers}"));
    assert_eq!(it["reserved_rate"], 1_000_000.0);
    assert!(it["expected_after"].as_f64() < Some(900_000.0), "{it}");
    host.place.write("places.toml", PLACES);
    let both = ["--priority", "1", "--placement", "places.toml"];
    let firsts = [
        load(&host, "Other", "one", &both),
        load(&host, "Other", "two", &both),
    ];
    let refused = firsts.iter().find(|run| run.code == Some(7));
    let refused = refused.unwrap_or_else(|| panic!("{firsts:?}"));
    refused.refuses(
        7,
        &["a reserved rate would be broken: ", " now, and would get "],
    );
    // The next host loads again what this one had accepted.
    let host = host.again(&["--restore"]);
    host.until("hasty", |a| a["state"] == "running");
    host.until("even", |a| a["state"] == "running");
}

#[test]
fn firings_that_hold_up_a_promise_are_named() {
    let host = Host::begin_in(counting());
    load(&host, "Short", "first", &[]).succeeds();
    until_measured(&host, "first", 100.0);
    host.run(&["unload", "first", "--now"]).succeeds();
    // One on each of two workers.
    host.place.write("places.toml", PLACES);
    for name in ["one", "two"] {
        load(&host, "Long", name, &["--placement", "places.toml"]).succeeds();
    }
    for name in ["one", "two"] {
        until_measured(&host, name, 2.0);
    }
    let short = load(&host, "Short", "short", &["--rate", "60"]);
    short.refuses(
        7,
        &[
            "short is to reserve 60.0 tick/s",
            "the firings of ",
            "no firing is interrupted",
        ],
    );
    let short = load(&host, "Short", "short", &["--rate", "60", "--force"]);
    assert!(
        short.succeeds().err.contains("no firing is interrupted"),
        "{short:?}"
    );
}

/// What a unit takes is known by an earlier run as long as the first has not been counted: the reservation is judged by
/// that. Where no run has counted any, that is said, and not that it is measured.
#[test]
fn reserved_rate_is_kept_before_units_were_counted() {
    let host = Host::begin_in(counting());
    let place = |name: &str| format!("[{name}]\nsource = 0\ntick = 0\n");
    let places = ["one", "two"].map(place).concat();
    host.place.write("places.toml", &places);
    for (network, name) in [("Middle", "first"), ("Short", "other")] {
        load(&host, network, name, &[]).succeeds();
        until_measured(&host, name, 100.0);
        host.run(&["unload", name, "--now"]).succeeds();
    }
    host.place.write("mute", "");
    let works = |name: &str| {
        host.until(name, |a| a["busy"].as_f64().unwrap_or_default() > 0.01);
        assert_eq!(host.seen(name)["progress"], Value::Null);
    };
    // Of the core that both must be on each takes more than half.
    let most = ["--placement", "places.toml", "--rate", "530", "--json"];
    load(&host, "Middle", "one", &most).succeeds();
    works("one");
    load(&host, "Middle", "two", &most)
        .refuses(7, &["a reserved rate would be broken", "530.0 tick/s"]);
    let short = load(&host, "Short", "short", &["--priority=-1", "--json"]);
    let admission = &short.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{short:?}");
    for name in ["one", "short"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    // Of this one nothing is known.
    load(&host, "Other", "one", &["--rate", "1", "--json"]).succeeds();
    works("one");
    let short = load(&host, "Short", "short", &["--json"]);
    let admission = &short.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "unknown", "{short:?}");
    let text = admission["text"].as_str().unwrap();
    let says = "is not known: one has counted no units yet; ";
    assert!(text.contains(says), "{short:?}");
}

/// What is paused has its reserved rate still, and would not find it kept if it went on.
#[test]
fn paused_applications_keep_their_reserved_rate() {
    let host = Host::begin_in(counting());
    let place = |name: &str| format!("[{name}]\nsource = 0\ntick = 0\n");
    let places = ["measured", "one", "two"].map(place).concat();
    host.place.write("places.toml", &places);
    let alone = ["--placement", "places.toml"];
    load(&host, "Long", "measured", &alone).succeeds();
    until_measured(&host, "measured", 3.0);
    host.run(&["unload", "measured", "--now"]).succeeds();
    // Of the core that both must be on each takes more than half.
    let promised = [&alone[..], &["--rate", "0.95", "--json"]].concat();
    let kept = |run: &Run| {
        let admission = &run.succeeds().json()["admission"];
        assert_eq!(admission["verdict"], "kept", "{run:?}");
    };
    kept(&load(&host, "Long", "one", &promised));
    host.run(&["pause", "one"]).succeeds();
    load(&host, "Long", "two", &promised[..4])
        .refuses(7, &["a reserved rate would be broken", "0.950 tick/s"]);
    host.run(&["unload", "one", "--now"]).succeeds();
    kept(&load(&host, "Long", "two", &promised));
}

/// Of a version that runs and the next one, which waits for its moment, one will stay: they need no more than that one.
#[test]
fn a_waiting_replacement_reserves_nothing_in_addition() {
    let place = counting();
    // It has left its first state for good, so no actor of another class takes over.
    let tick = std::fs::read_to_string(place.path("src/p/Tick.cal")).unwrap();
    let stay = tick
        .replace("actor Tick", "actor Stay")
        .replace("  action", "  go: action")
        .trim_end()
        .trim_end_matches("end")
        .to_string();
    let schedule =
        "  schedule fsm first:\n    first (go) --> on;\n    on (go) --> on;\n  end\nend\n";
    place.write("src/p/Stay.cal", &(stay + schedule));
    let middle = std::fs::read_to_string(place.path("src/p/Middle.xdf")).unwrap();
    let stays = middle
        .replace("p.Tick", "p.Stay")
        .replace("\"Middle\"", "\"Stays\"");
    place.write("src/p/Stays.xdf", &stays);
    // One that is never measured, and one that counts nothing.
    place.write(
        "src/p/Quiet.cal",
        "package p;\nactor Quiet (int work) int In ==> :\n  action In:[x] ==> end\nend\n",
    );
    let new = |name: &str| middle.replace("\"Middle\"", &format!("\"{name}\""));
    place.write("src/p/Fresh.xdf", &new("Fresh"));
    place.write("src/p/Mute.xdf", &new("Mute").replace("p.Tick", "p.Quiet"));
    let host = Host::begin_in(place);
    for network in ["Middle", "Stays"] {
        load(&host, network, "first", &[]).succeeds();
        until_measured(&host, "first", 300.0);
        host.run(&["unload", "first", "--now"]).succeeds();
    }
    load(&host, "Stays", "one", &["--rate", "700"]).succeeds();
    host.until("one", |a| a["progress"]["done"].as_u64() > Some(3));
    // The two cores can do some 1800 a second.
    let loads = |rate| load(&host, "Middle", "two", &["--rate", rate, "--json"]);
    let is_waiting = |network: &str, rate: &str, then: &dyn Fn()| {
        let (network, rate) = (format!("src/p/{network}.xdf"), format!("--rate={rate}"));
        let args = ["replace", "one", &network, "--timeout=6", &rate];
        std::thread::scope(|scope| {
            let replaces = scope.spawn(|| host.run(&args));
            let start = Instant::now();
            let resumes = || host.run(&["resume", "one", "--timeout=0.05"]);
            while !resumes().err.contains("one is being replaced") {
                assert!(
                    start.elapsed() < Duration::from_secs(300),
                    "{:?}",
                    resumes()
                );
            }
            std::thread::sleep(Duration::from_secs(1));
            then();
            assert!(!replaces.is_finished());
            let refused = replaces.join().unwrap();
            refused.refuses(8, &["one continues unchanged"]);
        });
    };
    is_waiting("Middle", "700", &|| {
        let admission = &loads("700").succeeds().json()["admission"];
        assert_eq!(admission["verdict"], "kept", "{admission}");
        host.run(&["unload", "two", "--now"]).succeeds();
    });
    // It will have the rate that it reserves, if it is more than the old one has.
    host.run(&["unload", "one", "--now"]).succeeds();
    load(&host, "Stays", "one", &["--rate", "5"]).succeeds();
    host.until("one", |a| a["progress"]["done"].as_u64() > Some(3));
    load(&host, "Middle", "other", &["--rate", "700"]).succeeds();
    is_waiting("Middle", "700", &|| {
        loads("700").refuses(7, &["a reserved rate would be broken"]);
    });
    loads("700").succeeds();
    // What is reserved for the old one stays so, whatever the new one is.
    for name in ["one", "two"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    load(&host, "Stays", "one", &["--rate", "600"]).succeeds();
    host.until("one", |a| a["progress"]["done"].as_u64() > Some(3));
    for network in ["Fresh", "Mute"] {
        is_waiting(network, "700", &|| {
            loads("700").refuses(7, &["a reserved rate would be broken"]);
        });
    }
}

/// Of `Middle` two cores can do some 1800 a second.
fn manifest(host: &Host, each: &[(&str, f64, &str)]) -> Run {
    let one = |(n, (network, rate, more)): (usize, &(&str, f64, &str))| {
        format!(
            "[[application]]\nnetwork = \"src/p/{network}.xdf\"\nname = \"a{n}\"\nrate = {rate}\n{more}\n"
        )
    };
    let text: String = each.iter().enumerate().map(one).collect();
    host.place.write("all.toml", &text);
    host.run(&["load", "all.toml", "--json"])
}

/// What is told of each, and that it is the same of all.
fn told_of_all(run: &Run) -> Value {
    let all = run.succeeds().json();
    let all = all.as_array().unwrap();
    let first = &all[0]["admission"];
    assert!(all.iter().all(|one| one["admission"] == *first), "{run:?}");
    first.clone()
}

/// Applications of a manifest are not admitted one by one, but by the effect of all together.
#[test]
fn a_manifest_is_judged_as_one() {
    let host = Host::begin_in(counting());
    load(&host, "Middle", "first", &[]).succeeds();
    until_measured(&host, "first", 300.0);
    host.run(&["unload", "first", "--now"]).succeeds();
    load(&host, "Middle", "radio", &["--rate", "100"]).succeeds();
    let radio = "radio has reserved 100.0 tick/s, can have 100.0 tick/s now, and would get ";
    // Two and a half cores.
    let refused = manifest(&host, &[("Middle", 220.0, ""); 10]);
    refused.refuses(7, &["error: a reserved rate would be broken: ", "--force"]);
    let own = refused
        .err
        .matches(" is to reserve 220.0 tick/s and would get ");
    assert!(own.count() > 3, "{refused:?}");
    assert_eq!(refused.err.matches(" has reserved 220.0 ").count(), 0);
    assert_eq!(host.json(&["list"]).as_array().unwrap().len(), 1);
    // Those that go before it take it from another.
    let refused = manifest(&host, &[("Middle", 850.0, "priority = 1"); 2]);
    refused.refuses(7, &["error: a reserved rate would be broken: ", radio]);
    // One is forced: the other is judged by its effect in addition to that.
    let hopeless = ("Middle", 5000.0, "force = true\npriority = -1");
    let refused = manifest(&host, &[hopeless, ("Middle", 5000.0, "priority = -2")]);
    refused.refuses(
        7,
        &["error: a reserved rate would be broken: a1 is to reserve 5000.0 "],
    );
    let broken = told_of_all(&manifest(&host, &[hopeless, ("Middle", 100.0, "")]));
    assert_eq!(broken["verdict"], "broken");
    let text = broken["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "a reserved rate is broken: a0 is to reserve 5000.0 tick/s and would get "
        )
    );
    assert!(!text.contains("a1"), "{text}");
    for name in ["a0", "a1"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    // Of one nothing is known, and all else is told.
    let unknown = told_of_all(&manifest(
        &host,
        &[("Middle", 50.0, ""), ("Other", 50.0, "")],
    ));
    assert_eq!(unknown["verdict"], "unknown");
    assert!(
        unknown["text"]
            .as_str()
            .unwrap()
            .contains("a1 is not measured yet"),
        "{unknown}"
    );
    assert_eq!(
        unknown["rate_reservations"].as_array().unwrap().len(),
        2,
        "{unknown}"
    );
    for name in ["a0", "a1"] {
        host.run(&["unload", name, "--now"]).succeeds();
    }
    // One core and a bit.
    let kept = told_of_all(&manifest(&host, &[("Middle", 90.0, ""); 10]));
    assert_eq!(kept["verdict"], "kept");
    let promises = kept["rate_reservations"].as_array().unwrap();
    assert_eq!(promises.len(), 11, "{kept}");
    for promise in promises {
        let radio = promise["application"] == "radio";
        assert_eq!(promise["expected_before"].is_null(), !radio, "{kept}");
        assert!(promise["expected_after"].as_f64() >= Some(88.0), "{kept}");
    }
}

/// Workers have eight priorities: a priority beyond them equals the last one, both in the admission test and at run
/// time.
#[test]
fn priorities_beyond_those_of_workers_are_the_nearest() {
    let host = Host::begin_in(counting());
    let place = |name: &str| format!("[{name}]\nsource = 0\ntick = 0\n");
    let places = ["high", "low", "lower"].map(place).concat();
    host.place.write("places.toml", &places);
    let on_one = ["--placement", "places.toml"];
    load(&host, "Short", "high", &on_one).succeeds();
    until_measured(&host, "high", 100.0);
    host.run(&["unload", "high", "--now"]).succeeds();
    let all = [&on_one[..], &HOPELESS, &["--force", "--priority", "9"]].concat();
    load(&host, "Short", "high", &all).succeeds();
    let with = |name: &str, priority: &str| {
        let promised = ["--rate", "50", "--priority", priority, "--json"];
        load(&host, "Short", name, &[&on_one[..], &promised].concat())
    };
    let nothing = "lower is to reserve 50.0 tick/s and would get 0.000 tick/s";
    with("lower", "2").refuses(7, &[nothing]);
    let low = with("low", "3");
    let admission = &low.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{low:?}");
    host.until("low", |a| {
        a["measured_rate"].as_f64().is_some_and(|pace| pace > 40.0)
    });
}

/// A higher priority that may have but a part of the core leaves the rest.
#[test]
fn a_quota_leaves_the_rest_to_promised_rates() {
    let host = Host::begin_in(counting());
    let place = |name: &str| format!("[{name}]\nsource = 0\ntick = 0\n");
    let places = ["high", "low", "lower"].map(place).concat();
    host.place.write("places.toml", &places);
    let on_one = ["--placement", "places.toml", "--json"];
    load(&host, "Middle", "high", &on_one).succeeds();
    until_measured(&host, "high", 100.0);
    host.run(&["unload", "high", "--now"]).succeeds();
    let held = ["--cpus", "0.4", "--priority", "1"];
    load(&host, "Middle", "high", &[&on_one[..], &held].concat()).succeeds();
    // Of some 900 that the core can do, 540 are left.
    let with = |name: &str, rate: &str| {
        let promised = ["--rate", rate];
        load(&host, "Middle", name, &[&on_one[..], &promised].concat())
    };
    with("lower", "750").refuses(7, &["lower is to reserve 750.0 tick/s and would get "]);
    let low = with("low", "300");
    let admission = &low.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{low:?}");
    host.until("low", |a| {
        a["measured_rate"].as_f64().is_some_and(|pace| pace > 100.0)
    });
}

/// An application of highest priority that is driven by a clock leaves the rest to the reserved rate; in simulation,
/// too, where it could run without end.
#[test]
fn clock_driven_application_is_admitted_by_its_measured_use() {
    let place = counting();
    place.write(
        "src/p/Clock.cal",
        "package p;\nactor Clock () ==> int Out :\n  int given := 0;\n  \
         @native function next_time(int given) --> int end\n  \
         action ==> Out:[next_time(given)] do given := given + 1; end\nend\n",
    );
    place.write(
        "natives/clock.c",
        "#include <levada/native.h>\n#include <time.h>\n\
         int32_t next_time(int32_t given) {\n  struct timespec t;\n  \
         clock_gettime(CLOCK_MONOTONIC, &t);\n  \
         lvd_wait_until((int64_t)t.tv_sec * 1000000000 + t.tv_nsec + 20000000);\n  \
         return given;\n}\n",
    );
    let beat = common::network(
        &[
            ("source", "p.Clock", &[]),
            ("tick", "p.Tick", &[("work", "4000")]),
        ],
        &[("source.Out", "tick.In")],
    );
    place.write("src/p/Beat.xdf", &beat.replace("\"Top\"", "\"Beat\""));
    let on_one = |name: &str| format!("[{name}]\nsource = 0\ntick = 0\n");
    place.write("places.toml", &["high", "low", "more"].map(on_one).concat());
    let host = Host::begin_in(place);
    let on_one = ["--placement", "places.toml", "--json"];
    load(&host, "Middle", "low", &on_one).succeeds();
    until_measured(&host, "low", 300.0);
    host.run(&["unload", "low", "--now"]).succeeds();
    // A sixth of the core.
    load(
        &host,
        "Beat",
        "high",
        &[&on_one[..], &["--priority", "2"]].concat(),
    )
    .succeeds();
    until_measured(&host, "high", 100.0);
    let with = |name: &str, rate: &str| {
        let promised = ["--rate", rate];
        load(&host, "Middle", name, &[&on_one[..], &promised].concat())
    };
    // Of some 900 that the core can do there are about 700 left, and no more.
    let low = with("low", "300");
    let admission = &low.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{low:?}");
    with("more", "600").refuses(7, &["a reserved rate would be broken"]);
    // So it is with a new version of it, and as long as it is paused.
    host.run(&["replace", "high", "src/p/Beat.xdf"]).succeeds();
    host.run(&["pause", "high"]).succeeds();
    std::thread::sleep(Duration::from_millis(1500));
    with("more", "600").refuses(7, &["a reserved rate would be broken"]);
    host.run(&["resume", "high"]).succeeds();
    host.until("low", |a| {
        a["measured_rate"].as_f64().is_some_and(|pace| pace > 100.0)
    });
    // And with another run of it, which has its clock, too.
    host.run(&["unload", "high", "--now"]).succeeds();
    let again = [&on_one[..], &["--priority", "2"]].concat();
    let again = load(&host, "Beat", "high", &again);
    let admission = &again.succeeds().json()["admission"];
    assert_eq!(admission["verdict"], "kept", "{again:?}");
}
