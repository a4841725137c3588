// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of many applications in one host: hundreds that wait, versions that replace one another, and random
//! sequences of operations, which must not change the output of any application.

use crate::common;
use crate::common::host::{ENDLESS, Host, READ, compiled, held_pipe, pipe, sources};
use crate::common::{Place, Run};
use std::io::Write;
use std::time::{Duration, Instant};

/// Numbers that are read, and written: as they are (`Copy`), or below zero (`Minus`).
fn readers() -> Place {
    let place = sources();
    place.write("src/p/Read.cal", READ);
    for (name, sign) in [("Copy", "x"), ("Minus", "-x")] {
        place.write(
            &format!("src/p/{name}Sign.cal"),
            &format!(
                "package p;\nactor {name}Sign () int In ==> int Out :\n  action In:[x] ==> \
                 Out:[{sign}] end\nend\n"
            ),
        );
        let text = common::network(
            &[
                ("read", "p.Read", &[]),
                ("sign", &format!("p.{name}Sign"), &[]),
                ("write", "p.Write", &[]),
            ],
            &[("read.Out", "sign.In"), ("sign.Out", "write.In")],
        );
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    place
}

/// The memory of a process, in bytes.
fn memory(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    // SAFETY: has no preconditions.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

/// CPU seconds of a host until now, without what it has started, and without the thread that looks at all applications
/// from time to time: that takes a part of the time that goes by, and not of each load.
fn cpu_seconds(pid: u32) -> f64 {
    let ticks = |of: &str| -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/{of}stat")).ok()?;
        let (_, behind) = stat.rsplit_once(')')?;
        let times = behind.split_whitespace().skip(11).take(2);
        Some(times.map(|n| n.parse::<f64>().unwrap()).sum())
    };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let watches = threads.map(Result::unwrap).find(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm"));
        name.is_ok_and(|name| name == "levada/watch\n")
    });
    let watch = format!("task/{}/", watches.unwrap().file_name().display());
    // SAFETY: has no preconditions.
    (ticks("").unwrap() - ticks(&watch).unwrap())
        / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// What the host computes for ten loads of one application, when it does nothing else meanwhile: the least of some.
fn cost_of_ten_loads(host: &Host) -> f64 {
    let costs = (0..4).map(|_| cost_of_loads(host, 10));
    costs.fold(f64::INFINITY, f64::min)
}

fn cost_of_loads(host: &Host, many: usize) -> f64 {
    let directory = host.place.path("");
    let before = cpu_seconds(host.child.id());
    for _ in 0..many {
        let load = serde_json::json!({"network": "src/p/Copy.xdf", "directory": directory, "name": "one",
            "in": "in.fifo", "out": "/dev/null"});
        let loaded = host.post("/applications", &load.to_string());
        assert!(loaded.contains(" 201 "), "{loaded}");
        host.run(&["unload", "one", "--now"]).succeeds();
    }
    cpu_seconds(host.child.id()) - before
}

#[test]
fn five_hundred_that_wait_take_little_memory_and_no_time() {
    const APPLICATIONS: usize = 500;
    let place = readers();
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let load = |names: std::ops::Range<usize>| {
        let one = |i| {
            format!(
                "[[application]]\nnetwork = \"src/p/Copy.xdf\"\nname = \"a{i}\"\nin = \
                 \"in.fifo\"\nout = \"/dev/null\"\n"
            )
        };
        let text: String = names.map(one).collect();
        host.place.write("many.toml", &text);
        host.run(&["load", "many.toml"]).succeeds();
    };
    load(0..1);
    let before = memory(host.child.id());
    load(1..51);
    let few = cost_of_ten_loads(&host);
    for part in 1..10 {
        load(1 + part * 50..1 + (part + 1) * 50);
    }
    // With ten times as many applications a load costs about the same: it spends little time on each.
    let many = cost_of_ten_loads(&host);
    println!("10 loads: {few} s next to 51, {many} s next to {APPLICATIONS}");
    assert!(many < 4.0 * few + 0.1, "{few} s, and then {many} s");
    let all = host.json(&["list"]);
    assert_eq!(all.as_array().unwrap().len(), APPLICATIONS + 1);
    let claimed = all[0]["memory"].as_u64().unwrap();
    let after = memory(host.child.id());
    let each = (after.saturating_sub(before)) / APPLICATIONS as u64;
    assert!(
        each < claimed + (1 << 20),
        "{each} bytes each, {claimed} of them claimed"
    );
    // When all is placed and measured nothing happens any more.
    let sleeps = || host.sleeps(Duration::from_millis(2500));
    assert!(
        (0..24).any(|_| sleeps()),
        "a thread of the host always wakes up"
    );
    println!("{APPLICATIONS} applications: {each} bytes each");
    // They live.
    let word: Vec<u8> = "7 ".repeat(100_000).into_bytes();
    input.write_all(&word).unwrap();
    let start = Instant::now();
    let fired = || -> u64 {
        let all = host.json(&["list"]);
        let all = all.as_array().unwrap().iter();
        all.map(|a| a["firings"].as_u64().unwrap()).sum()
    };
    while fired() < 100_000 {
        let all = fired();
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "{all} firings of 100,000 words"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_new_version_takes_over_between_two_elements() {
    let place = readers();
    let path = pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let load = ["load", "src/p/Copy.xdf", "--name", "a", "--in", "in.fifo"];
    host.run(&[&load[..], &["--out", "out.txt"]].concat())
        .succeeds();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let given = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            let mut next = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let part: String = (next + 1..=next + 200).map(|i| format!("{i}\n")).collect();
                file.write_all(part.as_bytes()).unwrap();
                next += 200;
                std::thread::sleep(Duration::from_millis(1));
            }
            next
        });
        for version in ["Minus", "Copy", "Minus", "Copy", "Minus"] {
            let before = host.seen("a")["number"].as_u64();
            host.until("a", |a| a["firings"].as_u64() > Some(500));
            let network = format!("src/p/{version}.xdf");
            let said = host.run(&["replace", "a", &network]);
            assert!(
                said.succeeds().out.starts_with("replaced a (p."),
                "{said:?}"
            );
            assert!(host.seen("a")["number"].as_u64() > before);
        }
        // What is wrong with a new version leaves the old one alone.
        let wrong = host.run(&["replace", "a", "src/p/None.xdf"]);
        wrong.refuses(1, &["there is no file"]);
        host.run(&["replace", "none", "src/p/Copy.xdf"])
            .refuses(4, &["no application none"]);
        host.until("a", |a| a["firings"].as_u64() > Some(500));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap()
    });
    let seen = host.until("a", |a| a["state"] == "ended" || a["state"] == "failed");
    assert_eq!(seen["outcome"], "done");
    let text = std::fs::read_to_string(host.place.path("out.txt")).unwrap();
    let numbers: Vec<i64> = text.lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(numbers.len(), given as usize);
    let turns = numbers
        .windows(2)
        .filter(|w| (w[0] < 0) != (w[1] < 0))
        .count();
    assert_eq!(turns, 5);
    for (i, number) in numbers.iter().enumerate() {
        assert_eq!(number.unsigned_abs(), i as u64 + 1);
    }
    let left = host.place.list(".");
    assert!(!left.iter().any(|f| f.contains(".part-")), "{left:?}");
}

/// The pipe is silent and stays open: what has arrived before is written, wherever more is requested. `Bytes` reads
/// in its action, `Pairs` in its guard, and then twice.
#[test]
fn a_silent_pipe_does_not_prevent_draining() {
    let place = readers();
    place.write(
        "src/p/ReadBytes.cal",
        "package p;\nimport levada.io.*;\nactor ReadBytes () ==> int Out :\n  List(type: uint(size=8), \
         size=4096) bytes; List(type: int, size=1) got;\n  action ==> Out:[got[0]] do io_read(bytes, \
         got); end\nend\n",
    );
    place.write(
        "src/p/ReadPairs.cal",
        "package p;\nimport levada.io.*;\nactor ReadPairs () ==> int Out :\n  action ==> Out:[10 * a + b] \
         guard io_more() var int a, int b do a := io_read_number(); b := io_read_number(); end\nend\n",
    );
    for name in ["Bytes", "Pairs"] {
        let text = common::network(
            &[
                ("read", &format!("p.Read{name}"), &[]),
                ("write", "p.Write", &[]),
            ],
            &[("read.Out", "write.In")],
        );
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    // What the last has of a number is dropped.
    let cases = [
        ("Copy", "1\n2\n", 6, "1\n2\n"),
        ("Bytes", "1\n2\n", 2, "4\n"),
        ("Pairs", "1 2 3 4\n", 4, "12\n34\n"),
        ("Minus", "", 0, ""),
        ("Minus", "1\n2", 3, "-1\n"),
    ];
    for (i, (network, given, firings, written)) in cases.into_iter().enumerate() {
        for isolated in [false, true] {
            let (name, out) = (format!("a{i}{isolated}"), format!("out{i}{isolated}.txt"));
            let file = format!("src/p/{network}.xdf");
            let mut load = vec!["load", &file, "--name", &name, "--in", "in.fifo"];
            load.extend(["--out", &out]);
            if isolated {
                load.push("--isolate");
            }
            host.run(&load).succeeds();
            input.write_all(given.as_bytes()).unwrap();
            host.until(&name, |a| a["firings"].as_u64() >= Some(firings));
            let ended = host.json(&["unload", &name, "--timeout", "60"]);
            assert_eq!(ended["outcome"], "done", "{network}: {ended}");
            let text = std::fs::read_to_string(host.place.path(&out)).unwrap_or_default();
            assert_eq!(text, written, "{network}");
        }
    }
}

/// Where something comes all the time it ends as well, and not when the pipe does.
#[test]
fn a_reader_of_a_slow_pipe_drains() {
    let place = readers();
    let path = pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let load = ["load", "src/p/Copy.xdf", "--name", "a", "--in", "in.fifo"];
    host.run(&[&load[..], &["--out", "out.txt"]].concat())
        .succeeds();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut given = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            let mut next = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                next += 1;
                // Once it is unloaded the pipe has no reader.
                if writeln!(file, "{next}").is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            next
        });
        for version in ["Minus", "Copy"] {
            host.until("a", |a| a["firings"].as_u64() > Some(100));
            let network = format!("src/p/{version}.xdf");
            host.run(&["replace", "a", &network]).succeeds();
        }
        host.until("a", |a| a["firings"].as_u64() > Some(100));
        let ended = host.json(&["unload", "a", "--timeout", "60"]);
        assert_eq!(ended["outcome"], "done");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        given = writer.join().unwrap();
    });
    let text = std::fs::read_to_string(host.place.path("out.txt")).unwrap();
    let numbers: Vec<i64> = text.lines().map(|l| l.parse().unwrap()).collect();
    assert!(numbers.len() > 60 && numbers.len() <= given);
    for (i, number) in numbers.iter().enumerate() {
        assert_eq!(number.unsigned_abs(), i as u64 + 1);
    }
    assert!(numbers.iter().any(|n| *n < 0) && *numbers.last().unwrap() > 0);
}

/// Numbers that look random, the same for a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Copies the lines of the file of its first argument to that of its second, with forks; how far it has come is its
/// persistent block.
const COPIES: &str = r#"
#include <levada/fork.h>
#include <levada/native.h>
#include <levada/program.h>
#include <stdio.h>
#include <stdlib.h>
struct kept { long at, versions; };
static const char key;
static int same(int x) { return x; }
int main(int argc, char **argv) {
  struct kept *k = lvd_app_persistent_data(lvd_current_app(), "kept", &key, sizeof *k, NULL);
  FILE *in = argc > 2 ? fopen(argv[1], "r") : NULL, *out = in ? fopen(argv[2], k->versions++ ? "a" : "w") : NULL;
  if (!out || fseek(in, k->at, SEEK_SET) != 0) return 1;
  char line[32];
  while (!lvd_app_is_draining(lvd_current_app()) && fgets(line, sizeof line, in)) {
    int a, b, x = atoi(line);
    a = same(x) !! { b = same(-x); }
    if (a + b != 0) return 2;
    fprintf(out, "%d\n", a);
  }
  k->at = ftell(in);
  fclose(in);
  return fclose(out) != 0;
}
"#;

/// One that fails, does not come to the end of its first firing, is killed in a process of its own, or is promised
/// more than there is.
fn fails(host: &Host, name: &str, how: u64) {
    let load = |args: &[&str]| {
        let usual = ["load", "--name", name, "--out=/dev/null"];
        host.run(&[&usual[..], args].concat()).succeeds();
    };
    match how {
        0 => drop(host.bad(name)),
        1 => {
            load(&["src/p/Endless.cal"]);
            host.until(name, |a| a["state"] == "failed");
        }
        2 => {
            load(&["src/p/Many.xdf", "--isolate"]);
            let process = host.seen(name)["isolated"].as_u64().unwrap();
            // SAFETY: what the host has told, which waits for it.
            assert_eq!(unsafe { libc::kill(process as i32, libc::SIGKILL) }, 0);
            host.until(name, |a| a["state"] == "failed");
        }
        _ => load(&["src/p/Many.xdf", "--rate=1000000000", "--force"]),
    }
}

/// Random loads, unloads, pauses, moves, replacements and failures of networks and C programs, and a host that is
/// killed and followed by one that restores what ran. An application that ends has the output of an undisturbed run;
/// one that is drained has a prefix of it, with everything that its source had produced. LEVADA_LIFE=1000 makes it
/// longer.
#[test]
fn a_random_life_changes_no_output() {
    let steps = std::env::var("LEVADA_LIFE").ok();
    let steps: u64 = steps.and_then(|s| s.parse().ok()).unwrap_or(150);
    let seed = std::env::var("LEVADA_SEED").ok();
    let seed: u64 = seed.and_then(|s| s.parse().ok()).unwrap_or(7);
    let place = readers();
    let numbers: String = (1..=400_000).map(|i| format!("{i}\n")).collect();
    place.write("numbers.txt", &numbers);
    compiled(&place, "copies", COPIES);
    place.write("src/p/Endless.cal", ENDLESS);
    let limit = "--action-time-limit=2000";
    let mut host = Host::begin_with(place, &[limit]);
    let is_program = |name: &str| name.starts_with('c');
    let mut paused: Vec<String> = Vec::new();
    // They may have ended meanwhile: what is refused then is no error.
    let done_or_over = |run: &Run| {
        let done = run.code == Some(0);
        let over = run.err.contains("has ended");
        assert!(done || over, "seed {seed}: {run:#?}");
        done
    };
    let go_on = |host: &Host, paused: &mut Vec<String>, name: &str| {
        if let Some(at) = paused.iter().position(|p| p == name) {
            // What ran when it was paused has come to its end, and may have been the last of it.
            done_or_over(&host.run(&["resume", name]));
            paused.swap_remove(at);
        }
    };
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut last, mut compared, mut drained, mut kept) = (0, 0, 0, 0);
    let (mut replaced, mut restored) = (0, 0);
    let mut live: Vec<String> = Vec::new();
    let is_beginning = |text: &str| numbers.starts_with(&text.replace('-', ""));
    // The number of elements that its source has produced at least, in its present version: none of them may be lost.
    let given = |host: &Host, name: &str| -> u64 {
        let shown = host.run(&["show", name, "--json"]);
        let Some(0) = shown.code else { return 0 };
        let shown = shown.json();
        let all = shown["channel"].as_array().into_iter().flatten();
        let put = all
            .filter(|c| {
                c["from"]
                    .as_str()
                    .is_some_and(|from| from.starts_with("read"))
            })
            .filter_map(|c| c["put"].as_u64());
        put.max().unwrap_or_default()
    };
    let compare = |host: &Host, name: &str| {
        let text = std::fs::read_to_string(host.place.path(&format!("{name}.txt")));
        let text = text.unwrap_or_else(|e| panic!("seed {seed}: {name}: {e}: {}", host.said()));
        // A new version may have taken over anywhere: without their signs the numbers are as they were.
        let good = text.replace('-', "") == numbers;
        assert!(good, "seed {seed}: {name} has written something else");
        std::fs::remove_file(host.place.path(&format!("{name}.txt"))).unwrap();
    };
    for step in 0..steps {
        let (what, which) = (dice.roll(13), dice.roll(live.len().max(1) as u64) as usize);
        let name = live.get(which).cloned();
        match (what, name) {
            (3, _) => {
                last += 1;
                let (name, out) = (format!("c{last}"), format!("c{last}.txt"));
                let load = ["load", "copies.so", "--name", &name, "--socket", "h.sock"];
                host.place
                    .run(&[&load[..], &["--", "numbers.txt", &out]].concat())
                    .succeeds();
                live.push(name);
            }
            (0..4, _) | (_, None) => {
                last += 1;
                let (name, share) = (
                    format!("a{last}"),
                    format!("{:.2}", 0.1 + dice.roll(10) as f64 / 10.0),
                );
                let out = format!("{name}.txt");
                let mut args = vec![
                    "load",
                    "src/p/Copy.xdf",
                    "--in",
                    "numbers.txt",
                    "--out",
                    &out,
                ];
                args.extend(["--name", &name, "--cpus", &share]);
                let priority = format!("--priority={}", dice.roll(4) as i32 - 1);
                args.push(&priority);
                if dice.roll(2) == 0 {
                    args.push("--no-fuse");
                }
                if dice.roll(4) == 0 {
                    args.push("--isolate");
                }
                host.run(&args).succeeds();
                live.push(name);
            }
            (4, Some(name)) => {
                if paused.contains(&name) {
                    go_on(&host, &mut paused, &name);
                } else if done_or_over(&host.run(&["pause", &name])) {
                    paused.push(name.clone());
                    host.run(&["list"]).succeeds();
                    if dice.roll(2) == 0 {
                        go_on(&host, &mut paused, &name);
                    }
                }
            }
            (5, Some(name)) if !is_program(&name) => {
                let worker = dice.roll(2).to_string();
                let actor = host.run(&["show", &name, "--json"]).json()["actor"][0]["name"].clone();
                if let Some(actor) = actor.as_str() {
                    done_or_over(&host.run(&["move", &name, actor, &worker]));
                }
            }
            (6..8, Some(name)) if is_program(&name) => {
                go_on(&host, &mut paused, &name);
                let out = format!("{name}.txt");
                let replace = ["replace", &name, "copies.so", "--socket", "h.sock"];
                let new = [&replace[..], &["--", "numbers.txt", &out]].concat();
                replaced += usize::from(done_or_over(&host.place.run(&new)));
            }
            (6..8, Some(name)) => {
                go_on(&host, &mut paused, &name);
                let version = ["src/p/Copy.xdf", "src/p/Minus.xdf"][dice.roll(2) as usize];
                replaced += usize::from(done_or_over(&host.run(&["replace", &name, version])));
            }
            (8, Some(_)) => {
                last += 1;
                let name = format!("bad{last}");
                fails(&host, &name, dice.roll(4));
                host.run(&["unload", &name, "--now"]).succeeds();
            }
            (9, Some(name)) => {
                host.run(&["unload", &name, "--now"]).succeeds();
                live.swap_remove(which);
                paused.retain(|p| p != &name);
                // A network leaves nothing then, but for one that had ended; a program what it had written.
                let file = host.place.path(&format!("{name}.txt"));
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let good = is_beginning(&text)
                    && (is_program(&name)
                        || [0, numbers.len()].contains(&text.replace('-', "").len()));
                assert!(good, "seed {seed}, step {step}: {name} left something else");
                let _ = std::fs::remove_file(file);
            }
            (10, Some(name)) => {
                go_on(&host, &mut paused, &name);
                host.until(&name, |a| a["state"] == "ended");
                compare(&host, &name);
                compared += 1;
                live.swap_remove(which);
            }
            (12, Some(name)) => {
                go_on(&host, &mut paused, &name);
                let given = given(&host, &name);
                let ended = host.json(&["unload", &name, "--timeout", "60"]);
                // What was still to be restored is not loaded for that: its file is as the killed host left it.
                let loaded = ended["outcome"] != "forgotten";
                let done = !loaded || ended["outcome"] == "done";
                assert!(done, "seed {seed}, step {step}: {ended}");
                let file = host.place.path(&format!("{name}.txt"));
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let whole = !loaded || text.is_empty() || text.ends_with('\n');
                let good = whole && is_beginning(&text);
                assert!(good, "seed {seed}: {name} was drained of something else");
                let has = text.lines().count() as u64;
                assert!(
                    !loaded || has >= given,
                    "seed {seed}, step {step}: {name} was drained of {has} numbers, and had {given}"
                );
                kept += given;
                let _ = std::fs::remove_file(file);
                live.swap_remove(which);
                drained += 1;
            }
            _ if dice.roll(4) == 0 => {
                host.child.kill().unwrap();
                host.child.wait().unwrap();
                let place = std::mem::replace(&mut host.place, Place::new(&[]));
                // Applications that are not in the state had ended, and have their file; the others run again.
                let (again, over): (Vec<_>, Vec<_>) = live
                    .drain(..)
                    .partition(|name| place.exists(&format!("state/{name}.json")));
                // Those that had just begun have not ended it.
                host = Host::begin_with(place, &["--restore=all", limit]);
                for name in over {
                    compare(&host, &name);
                    compared += 1;
                }
                for name in &again {
                    host.until(name, |a| !a.is_null());
                }
                restored += again.len();
                live = again;
            }
            _ => {}
        }
    }
    for name in live {
        go_on(&host, &mut paused, &name);
        host.until(&name, |a| a["state"] == "ended");
        compare(&host, &name);
        compared += 1;
    }
    println!(
        "seed {seed}: {steps} steps, {last} loads, {replaced} replaced, {compared} outputs compared, {drained} \
         drained of {kept} numbers, {restored} restored"
    );
    assert!(![replaced, compared, drained].contains(&0));
    assert!(restored > 0 || steps < 1000);
}

/// Clients that load, pause, resume and unload the same application at once are told in words what has come between.
#[test]
fn a_conflicting_request_gets_a_clear_error() {
    let host = Host::begin();
    let load = |more: &[&str]| {
        let args = ["load", "src/p/Many.xdf", "--name=x", "--out=/dev/null"];
        host.run(&[&args[..], more].concat())
    };
    load(&["--paused"]).succeeds();
    host.run(&["pause", "x"]).refuses(
        5,
        &[
            "x cannot be paused: x has not started yet",
            "levada resume x",
        ],
    );
    host.run(&["unload", "x", "--now"]).succeeds();
    std::thread::scope(|scope| {
        for what in ["load", "pause", "resume", "unload", "drain"] {
            let (host, load) = (&host, &load);
            scope.spawn(move || {
                for i in 0..20 {
                    let run = match what {
                        "load" if i % 2 == 0 => load(&["--paused"]),
                        "load" => load(&[]),
                        "unload" => host.run(&["unload", "x", "--now"]),
                        "drain" => host.run(&["unload", "x"]),
                        what => host.run(&[what, "x"]),
                    };
                    assert!(!run.err.contains("LVD_E_"), "{what}: {}", run.err);
                }
            });
        }
    });
    assert!(!host.said().contains("LVD_E_"), "{}", host.said());
}
