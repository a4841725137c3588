// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of a host's applications: loaded, paused, drained, stopped and failing next to others; and failing
//! requests: no such host, names that are taken or invalid, networks with errors, limits.

use crate::common;
use crate::common::host::{Host, READ, TOP, compiled, held_pipe, sources};
use crate::common::{Place, network, without};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The numbers from 1 on, in order, none missing; how many.
fn counted(text: &str) -> usize {
    for (i, line) in text.lines().enumerate() {
        assert_eq!(line, (i + 1).to_string());
    }
    text.lines().count()
}

#[test]
fn an_application_is_loaded_runs_and_ends_and_the_next_one_too() {
    let host = Host::begin();
    for name in ["Top", "second"] {
        let out = format!("{name}.txt");
        let mut args = vec!["load", TOP, "--out", &out];
        if name != "Top" {
            args.extend(["--name", name, "--priority", "-2"]);
        }
        let loaded = host.run(&args);
        let said = format!("loaded {name} (p.Top): ");
        assert!(loaded.succeeds().out.starts_with(&said), "{loaded:?}");
        let seen = host.until(name, |a| a["state"] == "ended");
        assert_eq!(seen["outcome"], "done");
        let text = std::fs::read_to_string(host.place.path(&out)).unwrap();
        assert_eq!(text, "1\n2\n3\n");
    }
    let events = host.run(&["events", "--json"]);
    let kinds: Vec<Value> = events
        .succeeds()
        .out
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["event"].clone())
        .collect();
    assert_eq!(kinds, ["loaded", "ended", "loaded", "ended"]);
    assert!(
        host.run(&["unload", "second"])
            .succeeds()
            .out
            .contains("done after")
    );
    host.run(&["unload", "second"])
        .refuses(4, &["no application second", "there are Top"]);
    // One of the same name takes the place of what has ended.
    host.run(&["load", TOP, "--out", "x.txt"]).succeeds();
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_host_without_standard_streams_puts_nothing_in_their_place() {
    for closed in 1..8 {
        let place = sources();
        let args = ["host", "--socket", "h.sock", "--workers", "2"];
        let mut command = place.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        without(&mut command, closed);
        let child = command.spawn().unwrap();
        let host = Host::of(place, child);
        host.run(&["load", TOP, "--out", "n.txt"]).succeeds();
        host.until("Top", |a| a["state"] == "ended");
        let numbers = std::fs::read_to_string(host.place.path("n.txt"));
        assert_eq!(numbers.unwrap(), "1\n2\n3\n");
        for stream in 0..=2 {
            let link = format!("/proc/{}/fd/{stream}", host.child.id());
            let file = std::fs::read_link(link).unwrap();
            let file = file.to_string_lossy();
            assert!(
                ["/dev/null", "/dev/full"].contains(&&*file),
                "{closed}: {file}"
            );
        }
    }
}

#[test]
fn all_that_have_ended_are_unloaded_and_nothing_that_runs() {
    let host = Host::begin();
    host.run(&["unload", "--ended"]).succeeds();
    host.many("runs");
    host.many("paused");
    host.run(&["pause", "paused"]).succeeds();
    for (name, how) in [("here", "--paused"), ("apart", "--isolate")] {
        let out = format!("{name}.txt");
        let load = ["load", TOP, "--name", name, "--out", &out, how];
        host.run(&load).succeeds();
    }
    host.run(&["resume", "here"]).succeeds();
    for name in ["here", "apart"] {
        host.until(name, |a| a["state"] == "ended");
    }
    host.bad("bad");
    let said = host.run(&["unload", "--ended"]).succeeds().out.clone();
    for line in [
        "unloaded here: done",
        "unloaded apart: done",
        "unloaded bad: ",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let left = host.json(&["list"]);
    let left: Vec<&Value> = left
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["name"])
        .collect();
    assert_eq!(left, ["runs", "paused"]);
    assert_eq!(host.json(&["unload", "--ended"]), serde_json::json!([]));
    host.run(&["unload", "runs", "--ended"])
        .refuses(2, &["--ended"]);
    host.run(&["unload"]).refuses(2, &["NAME"]);
}

#[test]
fn what_is_in_flight_comes_out_of_what_is_unloaded() {
    let host = Host::begin();
    for (name, how) in [("a", "--within=60"), ("b", "--now")] {
        let out = format!("{name}.txt");
        host.run(&[
            "load",
            "src/p/Many.xdf",
            "--name",
            name,
            "--out",
            &out,
            "--no-fuse",
        ])
        .succeeds();
        host.until(name, |a| a["firings"].as_u64() > Some(10_000));
        let unloaded = host.json(&["unload", name, how]);
        let text = std::fs::read_to_string(host.place.path(&out)).unwrap_or_default();
        let outcome = unloaded["outcome"].as_str().unwrap();
        match name {
            "a" => {
                // Each number was fired for twice: given, and written.
                assert_eq!(outcome, "done");
                assert_eq!(
                    counted(&text) as u64 * 2,
                    unloaded["firings"].as_u64().unwrap()
                );
            }
            _ => assert_eq!(outcome, "stopped"),
        }
        assert!(host.seen(name).is_null());
    }
}

#[test]
fn a_paused_application_stands_still_and_the_others_do_not() {
    let host = Host::begin();
    for name in ["a", "b"] {
        host.many(name);
    }
    // Whether a busy fraction of a worker is reported for the application.
    let computes = |name: &str| {
        let stats = host.json(&["stats"]);
        let workers = stats["worker"].as_array().unwrap().iter();
        let mut actors = workers.flat_map(|w| w["actor"].as_array().unwrap().clone());
        actors.any(|actor| actor["application"] == name && !actor["share"].is_null())
    };
    while !(computes("a") && computes("b")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let paused = host.json(&["pause", "a"]);
    assert_eq!(paused["state"], "paused");
    assert!(!computes("a") && computes("b"));
    let (a, b) = (
        host.seen("a")["firings"].clone(),
        host.seen("b")["firings"].as_u64(),
    );
    host.until("b", |x| x["firings"].as_u64() > b);
    assert_eq!(host.seen("a")["firings"], a);
    assert!(
        host.run(&["why", "a"])
            .succeeds()
            .out
            .contains("a is paused")
    );
    host.run(&["resume", "a"]).succeeds();
    host.until("a", |x| x["firings"].as_u64() > a.as_u64());
    let actor = host.json(&["show", "a"])["actor"][0]["name"]
        .as_str()
        .unwrap()
        .to_string();
    host.run(&["move", "a", &actor, "1"]).succeeds();
    host.run(&["move", "a", &actor, "2"])
        .refuses(4, &["no worker 2", "from 0 to 1"]);
    host.run(&["move", "a", "nobody", "1"])
        .refuses(4, &["a has no actor nobody"]);
    let map = host.json(&["map"]);
    let placed: usize = map
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["actor"].as_array().unwrap().len())
        .sum();
    assert_eq!(
        placed,
        2 * host.json(&["show", "b"])["actor"].as_array().unwrap().len()
    );
    // Paused, it can be drained still.
    host.run(&["pause", "b"]).succeeds();
    host.run(&["unload", "b", "--within", "60"]).succeeds();
    let table = host.run(&["stats"]);
    assert!(
        table.succeeds().out.contains("1 application loaded"),
        "{table:?}"
    );
}

#[test]
fn a_failure_affects_no_other_application() {
    let host = Host::begin();
    host.many("good");
    for i in 0..3 {
        let seen = host.bad(&format!("bad{i}"));
        let outcome = seen["outcome"].as_str().unwrap();
        assert!(
            outcome.contains("division by zero") && outcome.contains("Fail.cal:3"),
            "{outcome}"
        );
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}

/// Where Orcc's applications end their process, here only they end: well or not.
#[test]
fn source_exit_ends_one_application() {
    let place = sources();
    for (name, code) in [("Leave", 0), ("Quit", 3)] {
        let text = format!(
            "package p;\nimport std.stdio.Source.*;\nactor {name} () int In ==> :\n  action In:[x] ==> \
             guard x < 1000 end\n  action In:[x] ==> guard x = 1000 do source_exit({code}); end\n  \
             action In:[x] ==> guard x > 1000 end\nend\n"
        );
        place.write(&format!("src/p/{name}.cal"), &text);
        let top = network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("end", &format!("p.{name}"), &[]),
            ],
            &[("source.Out", "end.In")],
        );
        place.write(&format!("src/p/{name}s.xdf"), &top);
    }
    let host = Host::begin_in(place);
    host.many("good");
    for (network, state, said) in [
        ("Leaves", "ended", ""),
        ("Quits", "failed", "source_exit(3)"),
    ] {
        let file = format!("src/p/{network}.xdf");
        host.run(&["load", &file, "--name", network]).succeeds();
        let seen = host.until(network, |a| a["state"] == state);
        assert!(seen["outcome"].to_string().contains(said), "{seen}");
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}

#[test]
fn what_cannot_be_loaded_is_said_before_anything_is_touched() {
    let host = Host::begin();
    host.run(&["load", TOP, "--name", "a", "--paused"])
        .succeeds();
    host.place.write(
        "src/p/Odd.cal",
        "package p;\nactor Odd () ==> :\n  action ==> do y := 1; end\nend\n",
    );
    host.place.write("prog.c", "int main(void) { return 0; }\n");
    let odd = host.run(&["load", "src/p/Odd.cal"]);
    odd.refuses(1, &["Odd.cal:3", "y := 1", "1 error"]);
    let json = host.run(&["load", "src/p/Odd.cal", "--json"]);
    json.refuses(1, &[]);
    assert_eq!(json.json()["diagnostics"][0]["severity"], "error");
    for (args, parts) in [
        (
            vec!["src/p/None.xdf"],
            &["there is no file src/p/None.xdf"][..],
        ),
        (vec![TOP, "--name", "a"], &["a is loaded already", "--name"]),
        (vec![TOP, "--name", "../a"], &["is no name"]),
        (vec![TOP, "--in", "none.txt"], &["--in none.txt"]),
        (vec![TOP, "--out", "none/x"], &["there is no folder"]),
        (
            vec![TOP, "--out", "-"],
            &["has no input or output of yours"],
        ),
        (
            vec![TOP, "--option", "out=-"],
            &["--option out=-", "write --out"],
        ),
        (vec![TOP, "--option", "in=none.txt"], &["write --in"]),
        (
            vec![TOP, "--option", "x=1"],
            &["nothing in this network asks for x"],
        ),
        (vec![TOP, "--memory", "4K"], &["claims", "may have 4096"]),
        (vec!["--", "--help"], &["names no network"]),
        (
            vec!["prog.c"],
            &[
                "prog.c is a C source",
                "levada cc --hosted -O2 prog.c -o prog.so",
            ],
        ),
    ] {
        let mut all = vec!["load", "--socket", "h.sock"];
        all.extend(args);
        let run = host.place.run(&all);
        // Wrong by itself, not to be asked for, taken, or too large.
        assert!(matches!(run.code, Some(1 | 3 | 5 | 6)), "{run:#?}");
        run.refuses(run.code.unwrap(), parts);
    }
    let all = host.json(&["list"]);
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(all[0]["state"], "loaded");
    host.run(&["unload", "a"]).succeeds();
}

/// Killed while three applications run, a fourth has ended and a fifth is unloaded: the three are known
/// to the next host, and run again when that is asked for.
#[test]
fn a_killed_host_is_followed_by_one_that_knows_what_ran() {
    let mut host = Host::begin();
    host.run(&["load", TOP, "--name", "ended"]).succeeds();
    host.until("ended", |a| a["state"] == "ended");
    for name in ["a", "b", "c", "gone"] {
        host.many(name);
    }
    host.run(&["unload", "gone", "--now"]).succeeds();
    // At once: whatever happens now, it does not come again.
    assert!(!host.place.exists("state/gone.json"));
    let start = Instant::now();
    while host.place.exists("state/ended.json") {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(5));
    }
    let kept = [".journal", ".lock", "a.json", "b.json", "c.json"];
    assert_eq!(host.place.list("state"), kept);
    // A folder is one host's, whatever its socket.
    host.place
        .run(&["host", "--socket", "other.sock", "--state", "state"])
        .refuses(5, &["state: another host", "--state DIR"]);
    assert_eq!(host.place.list("state"), kept);
    let again = |mut host: Host, more: &[&str]| {
        host.child.kill().unwrap();
        host.child.wait().unwrap();
        let place = std::mem::replace(&mut host.place, Place::new(&[]));
        Host::begin_with(place, more)
    };
    host = again(host, &[]);
    assert_eq!(
        host.json(&["stats"])["host"]["left"],
        serde_json::json!(["a", "b", "c"])
    );
    assert!(host.json(&["list"]).as_array().unwrap().is_empty());
    let said = host.run(&["list"]).succeeds().out.clone();
    let left =
        "3 applications of the last host not loaded again: a, b, c (levada resume NAME loads it";
    assert!(
        said.contains("no application is loaded") && said.contains(left),
        "{said}"
    );
    // The numbers of events start from one with each host.
    let said = host.run(&["events", "--since=1000"]).succeeds().out.clone();
    assert!(said.contains("numbers have begun anew"), "{said}");
    assert!(
        host.run(&["unload", "b"])
            .succeeds()
            .out
            .contains("forgotten")
    );
    host.place.write("state/bad.json", "{");
    host = again(host, &["--restore"]);
    for name in ["a", "c"] {
        host.until(name, |a| a["firings"].as_u64() > Some(1000));
    }
    let events = host.run(&["events"]);
    assert!(
        events
            .succeeds()
            .out
            .contains("bad: cannot be loaded again"),
        "{events:?}"
    );
    let states = host.json(&["list"]);
    let states = states.as_array().unwrap().iter().map(|a| &a["state"]);
    assert_eq!(states.collect::<Vec<_>>(), ["running", "running", "held"]);
    // Told to end, it remembers, too.
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    assert!(host.child.wait().unwrap().success());
    let kept = [".lock", "a.json", "bad.json", "c.json"];
    assert_eq!(host.place.list("state"), kept);
}

/// Where a name stands in a manifest, an option gives no other one.
#[test]
fn a_taken_name_is_refused_with_help() {
    let host = Host::begin();
    host.many("a");
    let many = "[[application]]\nnetwork = \"p/Many.xdf\"\nout = \"/dev/null\"\n";
    for names in [&["a"][..], &["b", "a"]] {
        let named = names
            .iter()
            .map(|name| format!("{many}name = \"{name}\"\n"));
        host.place
            .write("src/apps.toml", &named.collect::<String>());
        host.run(&["load", "src/apps.toml"]).refuses(
            5,
            &[
                "a is loaded already",
                "name = \"NAME\" in a manifest",
                "unload that one",
            ],
        );
        assert_eq!(host.json(&["list"]).as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_manifest_is_loaded_whole_or_not_at_all() {
    let host = Host::begin();
    let manifest = |last: &str| {
        format!(
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"one\"\nout = \"one.txt\"\n\n\
             [[application]]\nnetwork = \"p/Many.xdf\"\nname = \"two\"\nout = \"/dev/null\"\n\
             priority = \"-1\"\n{last}"
        )
    };
    for (last, parts) in [
        (
            "[[application]]\nnetwork = \"p/None.xdf\"\n",
            &["p/None.xdf: there is no file p/None.xdf"][..],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"one\"\n",
            &["two of these applications are named one"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"three\"\nin = \"none\"\n",
            &["three: --in none: No such file"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nmemory = 10\n",
            &["p.Top claims ", "may have 10"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"three\"\nmemory = \"1K\"\n",
            &["three claims ", "may have 1024"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nrate = nan\n",
            &["apps.toml: rate is NaN"],
        ),
        ("oops = 1\n", &["apps.toml", "unknown field", "oops"]),
        ("[[application]\n", &["apps.toml", "[[application]]"]),
    ] {
        host.place.write("src/apps.toml", &manifest(last));
        let run = host.run(&["load", "src/apps.toml"]);
        assert!(matches!(run.code, Some(1 | 3 | 6)), "{run:#?}");
        run.refuses(run.code.unwrap(), parts);
        assert!(host.json(&["list"]).as_array().unwrap().is_empty());
    }
    host.place
        .write("src/apps.toml", &format!("x = {}", "[".repeat(2_000_000)));
    let long = host.run(&["load", "src/apps.toml"]);
    long.refuses(1, &["apps.toml", "..."]);
    assert!(long.err.len() < 10_000, "{}", long.err.len());
    host.place.write("src/apps.toml", &manifest(""));
    for option in [
        "--name=x",
        "--priority=1",
        "--memory=1G",
        "--path=src",
        "--unchecked",
        "--no-fuse",
        "--outside=nearest",
        "--any-sizes=1",
    ] {
        let name = option.split('=').next().unwrap();
        host.run(&["load", "src/apps.toml", option])
            .refuses(1, &[name, "says itself"]);
    }
    let loaded = host.run(&["load", "src/apps.toml"]);
    assert_eq!(loaded.succeeds().out.lines().count(), 2, "{loaded:?}");
    host.until("one", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("src/one.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
    assert_eq!(
        host.until("two", |a| a["firings"].as_u64() > Some(0))["priority"],
        -1
    );
    host.run(&["load", "src/none.toml"])
        .refuses(1, &["none.toml"]);
    host.place.write("src/empty.toml", "# None yet.\n");
    host.run(&["load", "src/empty.toml"])
        .refuses(3, &["there is no application in the manifest"]);
    host.run(&["replace", "two", "src/apps.toml"]).refuses(
        1,
        &["a manifest may hold several", "replace each by itself"],
    );
}

#[test]
fn what_is_documented_is_there() {
    let host = Host::begin();
    host.many("one");
    let answer = host.get("/openapi.json");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 11, "{paths:?}");
    for (path, methods) in paths {
        let real = path.replace("{name}", "one");
        for method in methods
            .as_object()
            .unwrap()
            .keys()
            .filter(|m| *m != "parameters")
        {
            let method = method.to_uppercase();
            if method == "DELETE" {
                continue; // It would be gone.
            }
            let request = format!(
                "{method} {real} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = host.raw(request.as_bytes());
            for none in ["HTTP/1.1 404", "HTTP/1.1 405", "HTTP/1.1 5"] {
                assert!(!answer.starts_with(none), "{method} {path}: {answer}");
            }
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    // Every schema that is referred to is there, and what a request answers has its fields.
    for name in body.split("#/components/schemas/").skip(1) {
        let name = name.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let answer = host.get("/applications");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let all: Value = serde_json::from_str(body).unwrap();
    let documented = schemas["Application"]["properties"].as_object().unwrap();
    for field in all[0].as_object().unwrap().keys() {
        assert!(documented.contains_key(field), "{field}");
    }
    // A line of events is one, or says how many were missed.
    let line = schemas["Line"].to_string();
    assert!(
        line.contains("/Event\"") && line.contains("/Missed\""),
        "{line}"
    );
    assert_eq!(schemas["MissedWord"]["enum"][0], "missed");
    let metrics = host.get("/metrics");
    let answers = &document["paths"]["/metrics"]["get"]["responses"]["200"];
    for kind in answers["content"].as_object().unwrap().keys() {
        let (head, _) = metrics.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-type: {kind}\r\n")),
            "{head}"
        );
    }
    assert!(
        metrics.contains("levada_actor_firings_total{application=\"one\",actor="),
        "{metrics}"
    );
    for line in metrics
        .split("\r\n\r\n")
        .nth(1)
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let value = line.rsplit_once(' ').map(|l| l.1.parse::<f64>());
        assert!(matches!(value, Some(Ok(_))), "{line}");
    }
}

#[test]
fn an_application_loaded_paused_starts_when_resumed() {
    let host = Host::begin();
    host.run(&["load", TOP, "--name", "a", "--out", "a.txt", "--paused"])
        .succeeds();
    assert_eq!(host.seen("a")["state"], "loaded");
    let resumed = host.json(&["resume", "a"]);
    assert_ne!(resumed["state"], "loaded");
    let seen = host.until("a", |a| a["state"] == "ended");
    assert_eq!(seen["outcome"], "done");
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
}

#[test]
fn what_is_said_of_compiling_reaches_the_compiler() {
    let host = Host::begin();
    host.place.write(
        "src/p/Far.cal",
        "package p;\nactor Far () int In ==> int Out :\n  List(type: int, size=2) a := [7, 8];\n  \
         action In:[x] ==> Out:[a[x + 4]] end\nend\n",
    );
    let far = network(
        &[
            ("source", "p.Source", &[("n", "3")]),
            ("far", "p.Far", &[]),
            ("write", "p.Write", &[]),
        ],
        &[("source.Out", "far.In"), ("far.Out", "write.In")],
    );
    host.place
        .write("src/p/Far1.xdf", &far.replace("\"Top\"", "\"Far1\""));
    for (outside, state) in [("fault", "failed"), ("nearest", "ended")] {
        let outside = format!("--outside={outside}");
        let seed = "--any-sizes=7";
        host.run(&[
            "load",
            "src/p/Far1.xdf",
            "--name=a",
            "--out=a.txt",
            &outside,
            seed,
        ])
        .succeeds();
        let seen = host.until("a", |a| a["state"] == "ended" || a["state"] == "failed");
        assert_eq!(seen["state"], state, "{seen}");
    }
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "8\n8\n8\n");
    let directory = host.place.path("");
    let body = serde_json::json!({"network": TOP, "directory": directory, "outside": "sideways"});
    let answer = host.post("/applications", &body.to_string());
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("sideways"),
        "{answer}"
    );
}

#[test]
fn an_unnamed_application_gets_a_unique_name() {
    let host = Host::begin();
    let load = ["load", "src/p/Many.xdf", "--out", "/dev/null"];
    host.run(&load).succeeds();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| host.run(&load).succeeds().out.clone());
        }
    });
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(6));
    let one = |name: &str| {
        format!("[[application]]\nnetwork = \"src/p/Top.xdf\"\nout = \"/dev/null\"\n{name}\n")
    };
    let both = one("") + &one("name = \"Top\"");
    host.place.write("both.toml", &both);
    host.run(&["load", "both.toml"]).succeeds();
    for name in ["Top", "Top-2"] {
        host.until(name, |a| a["state"] == "ended");
    }
}

/// After an upgrade the host is one whose file is gone: natives that fork are compiled by it still.
#[test]
fn a_host_whose_file_is_gone_compiles_all() {
    let place = sources();
    place.write(
        "src/p/Fib.cal",
        "package p;\nactor Fib () ==> int Out :\n  @native function fib_of_old(int n) --> int end\n  \
         int n := 0;\n  action ==> Out:[fib_of_old(20)] guard n < 1 do n := n + 1; end\nend\n",
    );
    place.write(
        "natives/fib.c",
        "#include <stdint.h>\nint32_t fib_of_old(int32_t n);\nint32_t fib_of_old(int32_t n) {\n  \
         if (n < 2) return n;\n  int32_t y, x = fib_of_old(n - 1) !! { y = fib_of_old(n - 2); }\n  \
         return x + y;\n}\n",
    );
    let fib = network(
        &[("fib", "p.Fib", &[]), ("write", "p.Write", &[])],
        &[("fib.Out", "write.In")],
    );
    place.write("src/p/Old.xdf", &fib.replace("\"Top\"", "\"Old\""));
    let old = place.path("old");
    common::copy_program(env!("CARGO_BIN_EXE_levada"), &old);
    let program = old.to_str().unwrap().to_string();
    let host = Host::begin_as(place, &program, &[]);
    std::fs::remove_file(&old).unwrap();
    // What an earlier run has compiled must not be taken.
    let salt = format!("\n/* {old:?} */\n");
    let path = host.place.path("natives/fib.c");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + &salt).unwrap();
    host.run(&["load", "src/p/Old.xdf", "--name=a", "--out=a.txt"])
        .succeeds();
    host.until("a", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "6765\n");
}

/// Its memory has been given back, and all else is known of it.
#[test]
fn what_has_ended_is_told_as_it_was_and_claims_nothing() {
    let host = Host::begin();
    for (name, more) in [("here", &[][..]), ("apart", &["--isolate"])] {
        let load = ["load", TOP, "--name", name, "--out=/dev/null"];
        let loaded = host.json(&[&load[..], more].concat());
        assert!(loaded["memory"].as_u64() > Some(0), "{loaded}");
        host.until(name, |a| a["state"] == "ended");
        let shown = host.json(&["show", name]);
        assert_eq!(shown["memory"], 0, "{shown}");
        let classes = shown["actor"].as_array().unwrap().iter();
        let classes: Vec<&str> = classes.filter_map(|a| a["class"].as_str()).collect();
        assert!(classes.iter().all(|c| c.contains("p.")), "{shown}");
        let channel = &shown["channel"][0];
        assert_eq!(
            (&channel["from"], &channel["to"]),
            (&"source.Out".into(), &"write.In".into())
        );
    }
    let metrics = host.get("/metrics");
    let memory = "levada_application_memory_bytes{application=\"here\"} 0\n";
    assert!(metrics.contains(memory), "{metrics}");
}

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
fn a_host_whose_applications_all_wait_sleeps() {
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
        assert!((0..24).any(|_| sleeps()), "somebody wakes up always");
        assert_eq!(busy(), 0.0);
        let mut seen = || {
            std::io::Write::write_all(&mut input, b"1 2 3 4 5 6 ").unwrap();
            std::thread::sleep(Duration::from_millis(700));
            busy() > 0.0
        };
        assert!((0..60).any(|_| seen()), "nobody looks");
    }
}

/// What a command that fails says with --json, and its status.
fn code(run: &common::Run) -> (Option<i32>, Value) {
    (run.code, run.json()["code"].clone())
}

#[test]
fn errors_have_codes_and_exit_statuses() {
    let host = Host::begin();
    host.many("a");
    let fails = |args: &[&str]| code(&host.run(&[args, &["--json"]].concat()));
    let none = host.place.run(&["list", "--json", "--socket", "none.sock"]);
    assert_eq!(code(&none), (Some(10), "no_host".into()));
    let wrong = host.place.run(&["pause", "--json"]);
    assert_eq!(code(&wrong), (Some(2), "usage".into()));
    for (args, status, name) in [
        (&["show", "b"][..], 4, "not_found"),
        (&["move", "a", "nobody", "0"], 4, "not_found"),
        (&["load", TOP, "--name=a", "--out=x"], 5, "conflict"),
        (&["load", TOP, "--name=..", "--out=x"], 3, "invalid"),
        (&["load", TOP, "--memory=1K", "--out=x"], 6, "limit"),
        (&["load", "none.xdf"], 1, "failed"),
    ] {
        assert_eq!(fails(args), (Some(status), name.into()), "{args:?}");
    }
    for (path, status, name) in [
        ("/applications/b", "404", "not_found"),
        ("/x", "404", "not_found"),
    ] {
        let said = host.get(path);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        assert!(said.contains(&format!("\"code\":\"{name}\"")), "{said}");
    }
    let said = host.post("/applications", "{\"x\": 1}");
    assert!(said.contains("\"code\":\"invalid\""), "{said}");
    // A host that is stopped is told to be.
    // SAFETY: the child has not been waited for.
    let kill = |signal| unsafe { libc::kill(host.child.id() as i32, signal) };
    kill(libc::SIGSTOP);
    let silent = host.run(&["list", "--within=0.3"]);
    kill(libc::SIGCONT);
    let stopped = format!("its process {} is stopped", host.child.id());
    silent.refuses(8, &["has not answered within", &stopped, "kill -CONT"]);
    // The names that there are, wherever they run.
    let args = ["load", TOP, "--name=apart", "--isolate", "--out=y"];
    host.run(&args).succeeds();
    host.run(&["show", "b"]).refuses(4, &["there are a, apart"]);
    host.run(&["load", TOP, "--name=-x", "--out=x"])
        .refuses(3, &["a letter, digit or underscore first"]);
}

/// As on a disk that is full: a folder lies in the way.
#[test]
fn what_cannot_be_saved_is_told_and_tried_again() {
    let host = Host::begin();
    for name in ["a", "b", "c"] {
        host.many(name);
    }
    let state = |name: &str| host.place.path(&format!("state/{name}"));
    let block = |name: &str| {
        let _ = std::fs::remove_file(state(name));
        std::fs::create_dir(state(name)).unwrap();
    };
    block("a.json");
    block(".b.json.new");
    host.run(&["unload", "a", "--now"]).refuses(
        9,
        &[
            "a is unloaded, but that could not be saved",
            "when this host ends",
        ],
    );
    let paused = host.run(&["pause", "b", "--json"]);
    assert_eq!(code(&paused), (Some(9), "not_saved".into()));
    assert!(host.seen("a").is_null() && host.seen("b")["state"] == "paused");
    assert!(host.said().contains("the state cannot be written"));
    // It cannot at the end, and the host says so.
    let mut host = host;
    let end = |host: &mut Host| {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
        host.until_dead();
        host.child.wait().unwrap().code()
    };
    let place = |host: &Host| host.place.path("state");
    assert_eq!(end(&mut host), Some(9));
    assert!(
        host.said().contains("not saved as it is: "),
        "{}",
        host.said()
    );
    // Where it can be written until then, all is well.
    let folder = place(&host);
    for name in ["a.json", ".b.json.new"] {
        std::fs::remove_dir(folder.join(name)).unwrap();
    }
    let mut host = host.again(&["--restore"]);
    host.until("b", |a| a["state"] == "running");
    host.until("c", |a| a["state"] == "running");
    let text = std::fs::read(folder.join("b.json")).unwrap();
    std::fs::remove_file(folder.join("b.json")).unwrap();
    std::fs::create_dir(folder.join("b.json")).unwrap();
    host.run(&["unload", "b", "--now"])
        .refuses(9, &["could not be saved"]);
    std::fs::remove_dir(folder.join("b.json")).unwrap();
    std::fs::write(folder.join("b.json"), text).unwrap();
    assert_eq!(end(&mut host), Some(0));
    assert!(!folder.join("b.json").exists() && folder.join("c.json").exists());
}

/// Renamed, as a file system that is unmounted: nothing of it is found, and that is not to have been removed.
#[test]
fn a_state_folder_that_is_away_is_told_and_changed_when_it_is_back() {
    let mut host = Host::begin();
    for name in ["a", "b", "c", "d"] {
        host.many(name);
    }
    let load = ["load", "src/p/Many.xdf", "--out=/dev/null", "--isolate"];
    host.run(&[&load[..], &["--name", "iso"]].concat())
        .succeeds();
    let (state, away) = (host.place.path("state"), host.place.path("away"));
    std::fs::rename(&state, &away).unwrap();
    let not_saved = |args: &[&str]| {
        let run = host.run(&[args, &["--json"]].concat());
        assert_eq!(code(&run), (Some(9), "not_saved".into()), "{args:?}");
    };
    not_saved(&["unload", "a", "--now"]);
    not_saved(&["unload", "iso", "--now"]);
    for _ in 0..2 {
        not_saved(&["pause", "b"]);
    }
    assert!(host.seen("a").is_null() && host.seen("b")["state"] == "paused");
    std::fs::rename(&away, &state).unwrap();
    // All is written with the next change that can be.
    host.run(&["pause", "c"]).succeeds();
    let names = |host: &Host| {
        let entries = std::fs::read_dir(host.place.path("state")).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    };
    assert_eq!(names(&host), ["b.json", "c.json", "d.json"]);
    // Or when the host ends.
    std::fs::rename(&state, &away).unwrap();
    host.run(&["unload", "d", "--now"])
        .refuses(9, &["could not be saved", "renamed, removed or unmounted"]);
    std::fs::rename(&away, &state).unwrap();
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    assert_eq!(host.child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&host), ["b.json", "c.json"]);
    let host = host.again(&["--restore"]);
    for name in ["b", "c"] {
        host.until(name, |a| a["state"] == "loaded");
    }
}

/// As a program does that cleans folders of temporary files.
#[test]
fn a_socket_that_is_removed_is_made_again() {
    let host = Host::begin();
    host.many("a");
    let answers = || host.run(&["list"]).code == Some(0);
    for names in [&["h.sock"][..], &["h.sock", "h.sock.lock"]] {
        for name in names {
            std::fs::remove_file(host.place.path(name)).unwrap();
        }
        let start = Instant::now();
        while !answers() || !host.place.exists("h.sock.lock") {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "no command finds it"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(host.seen("a")["state"], "running");
    assert!(
        host.said()
            .contains("h.sock was removed: this host listens there again")
    );
    // It is one host's still.
    let second = host
        .place
        .run(&["host", "--socket=h.sock", "--state=other"]);
    second.refuses(5, &["another host lives there"]);
    // Where something else is, the host ends and says so.
    let mut host = host;
    host.place.write("h.new", "");
    std::fs::rename(host.place.path("h.new"), host.place.path("h.sock")).unwrap();
    host.until_dead();
    assert!(
        host.said().contains("no command can find this host"),
        "{}",
        host.said()
    );
    assert!(host.place.exists("h.sock"));
}

#[test]
fn a_follower_of_events_gets_the_end_and_the_log_names_what_failed() {
    let mut host = Host::begin();
    let follow = host
        .place
        .command(&["events", "--follow", "--socket", "h.sock"]);
    let mut follow = { follow }
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(follow.stdout.take().unwrap());
    host.bad("bad");
    let mut line = String::new();
    while !line.contains("failed") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0);
    }
    let said = host.said();
    assert!(said.contains("bad has failed: division by zero"), "{said}");
    assert!(
        host.run(&["why", "bad"])
            .succeeds()
            .out
            .contains("bad has failed: ")
    );
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    let ended = follow.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the host has ended"));
}

#[test]
fn state_that_others_can_change_is_refused_and_what_it_says_is_escaped() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::begin();
    host.many("a");
    let mut host = host;
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    let folder = host.place.path("state");
    let mode =
        |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o720);
    let second = host
        .place
        .run(&["host", "--socket=h.sock", "--state=state"]);
    second.refuses(5, &["others can write there, too; make it yours alone"]);
    mode(0o700);
    host.place.write("state/a.held", "\u{1b}[2Jcleared\u{9b}1m");
    host.place.write("state/\u{1b}[31m.json", "{}");
    let host = host.again(&["--restore"]);
    for args in [
        &["list"][..],
        &["why", "a"],
        &["events"],
        &["list", "--json"],
    ] {
        let out = host.run(args).succeeds().out.clone();
        assert!(
            out.contains("\\u001b[2Jcleared\\u009b1m"),
            "{args:?}: {out}"
        );
    }
    let said = host.said();
    assert!(said.contains("\\u001b[2Jcleared\\u009b1m"), "{said}");
    assert!(
        said.contains("\\u001b[31m.json, which no host has made"),
        "{said}"
    );
    assert!(
        !said.contains('\u{1b}') && !said.contains('\u{9b}'),
        "{said:?}"
    );
    // A message about a file of one line stays short.
    host.place
        .write("deep.toml", &format!("a={}", "[".repeat(50_000)));
    let deep = host.run(&["load", "deep.toml"]);
    deep.refuses(1, &["deep.toml"]);
    assert!(deep.err.len() < 4000, "{}", deep.err.len());
}
