// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random CAL programs, run by the interpreter and by the compiled code on one and two workers,
//! print the same.
//!
//! `LEVADA_RANDOM=n` runs n programs in place of the usual number, `LEVADA_SEED=s` begins at seed
//! s, so that `LEVADA_SEED=s LEVADA_RANDOM=1` shows one again; `LEVADA_KEEP=dir` leaves its files.

mod back_support;
mod random;

use levada_cal::diag::{Diagnostics, render};
use levada_cal::emit;
use levada_cal::interp::{FaultKind, Machine, Options, Outcome};
use levada_cal::ir::{Channel, Endpoint, Instance, Network, Span};
use levada_cal::workspace::Workspace;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime")
}

/// The runner with the runtime in it, built once.
fn runner(dir: &Path) -> PathBuf {
    let out = dir.join("runner");
    let mut sources = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random/runner.c")];
    for folder in ["src", "port"] {
        for e in std::fs::read_dir(runtime().join(folder)).unwrap() {
            let path = e.unwrap().path();
            if path.extension().is_some_and(|x| x == "c") {
                sources.push(path);
            }
        }
    }
    let built = Command::new("cc")
        .args([
            "-std=c17",
            "-O2",
            "-D_GNU_SOURCE",
            "-rdynamic",
            "-pthread",
            "-I",
        ])
        .arg(runtime().join("include"))
        .args(&sources)
        .args(["-ldl", "-o"])
        .arg(&out)
        .output()
        .expect("cc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    out
}

/// The program of a seed as a network, its text written below `dir`.
fn network(seed: u64, dir: &Path) -> Network {
    let program = random::program(seed);
    let root = dir.join(format!("p{seed}"));
    let package = root.join("random");
    std::fs::create_dir_all(&package).unwrap();
    for a in &program.actors {
        std::fs::write(package.join(format!("{}.cal", a.name)), &a.text).unwrap();
    }
    let mut ws = Workspace::new(vec![root]);
    let mut diags = Diagnostics::new();
    let instances: Vec<Instance> = program
        .actors
        .iter()
        .map(|a| {
            let class = format!("random.{}", a.name);
            let actor = ws.instantiate(&class, &[], Span::default(), &mut diags);
            let Some(actor) = actor else {
                panic!(
                    "seed {seed}:\n{}\n{}",
                    render(&ws.sources, &diags, false),
                    a.text
                );
            };
            Instance {
                name: a.name.clone(),
                actor,
                priority: 0,
            }
        })
        .collect();
    assert!(
        !diags.has_errors(),
        "seed {seed}:\n{}",
        render(&ws.sources, &diags, false)
    );
    let end = |(instance, port): (usize, usize)| Endpoint { instance, port };
    let channels = program
        .wires
        .iter()
        .map(|w| Channel {
            from: end(w.from),
            to: w.to.iter().map(|t| end(*t)).collect(),
            capacity: w.capacity,
        })
        .collect();
    let mut net = Network {
        name: format!("random{seed}"),
        files: ws.sources.files().to_vec(),
        instances,
        channels,
    };
    // The emitter would do so with a warning; the interpreter must see the same sizes.
    for c in &mut net.channels {
        let from = &net.instances[c.from.instance].actor;
        let mut most = emit::burst(from, c.from.port, false);
        for e in &c.to {
            most = most.max(emit::burst(&net.instances[e.instance].actor, e.port, true));
        }
        let size = emit::size_of(&from.outputs[c.from.port].ty);
        let usual = emit::default_capacity(size, most);
        c.capacity = Some(c.capacity.map_or(usual, |n| n.max(most)));
    }
    net
}

/// What a run came to: how it ended, and what each actor printed.
#[derive(Debug, PartialEq, Clone)]
struct Ending {
    status: String,
    printed: HashMap<String, Vec<String>>,
}

fn by_actor(text: &str) -> HashMap<String, Vec<String>> {
    let mut map: HashMap<String, Vec<String>> = HashMap::new();
    for row in text.lines() {
        let who = row.split(' ').next().unwrap_or("");
        map.entry(who.to_string())
            .or_default()
            .push(row.to_string());
    }
    map
}

fn interpret(net: &Network) -> Ending {
    let options = Options {
        capacity: Some(0),
        firings: 3_000_000,
        ..Options::default()
    };
    match Machine::new(net, options).run() {
        Ok(report) => {
            let status = match report.outcome {
                Outcome::Ended => "LVD_OK".to_string(),
                Outcome::Deadlock => "LVD_E_DEADLOCK".to_string(),
                Outcome::Limit => "limit".to_string(),
            };
            Ending {
                status,
                printed: by_actor(&report.printed.concat()),
            }
        }
        Err(fault) => {
            let kind = match fault.kind {
                FaultKind::Index => 1,
                FaultKind::Division => 2,
                FaultKind::Native => 7,
            };
            let (text, at) = (
                &net.files[fault.span.file as usize].text,
                fault.span.start as usize,
            );
            let line = text[..at].matches('\n').count() + 1;
            Ending {
                status: format!("LVD_E_FAULT {kind} {line}"),
                printed: HashMap::new(),
            }
        }
    }
}

/// A way to compile: `fuse`, `checks`, the C compiler's flag.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    checks: bool,
    fuse: bool,
    flags: &'static [&'static str],
}

const WAYS: &[Way] = &[
    Way {
        name: "plain",
        checks: true,
        fuse: false,
        flags: &["-O1"],
    },
    Way {
        name: "fused",
        checks: true,
        fuse: true,
        flags: &["-O2", "-march=native"],
    },
    Way {
        name: "unchecked",
        checks: false,
        fuse: false,
        flags: &["-O3", "-march=native"],
    },
];

fn compile(nets: &[(u64, Network)], way: Way, dir: &Path) -> PathBuf {
    let out = dir.join(format!("{}.so", way.name));
    let mut files = Vec::new();
    for (seed, net) in nets {
        let fused;
        let net = if way.fuse {
            fused = levada_cal::fuse::fuse(net);
            &fused
        } else {
            net
        };
        let symbol = format!("net_{seed}");
        let options = emit::Options {
            checks: way.checks,
            symbol,
            split: usize::MAX,
        };
        let emitted = emit::emit(net, &options);
        let path = dir.join(format!("{}-{seed}.c", way.name));
        std::fs::write(&path, &emitted.files[0].text).unwrap();
        files.push(path);
    }
    let built = Command::new("cc")
        .args(["-std=c17", "-fPIC", "-shared", "-ffp-contract=off"])
        // Random programs deserve many warnings; these would be ours.
        .args([
            "-Werror=implicit-function-declaration",
            "-Werror=incompatible-pointer-types",
        ])
        .args(["-Werror=int-conversion", "-Werror=discarded-qualifiers"])
        .args(["-fvisibility=hidden", "-D_GNU_SOURCE", "-I"])
        .arg(runtime().join("include"))
        .args(way.flags)
        .args(&files)
        .arg("-o")
        .arg(&out)
        .output()
        .expect("cc runs");
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{} in {}", text, dir.display());
    out
}

fn run(runner: &Path, workers: u32, object: &Path, seeds: &[u64]) -> HashMap<u64, Ending> {
    let out = Command::new(runner)
        .arg(workers.to_string())
        .arg(object)
        .args(seeds.iter().map(|s| format!("net_{s}")))
        .output()
        .expect("the runner runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success(),
        "the runner ended with {}; the last rows:\n{}\n{}",
        out.status,
        text.lines().rev().take(5).collect::<Vec<_>>().join("\n"),
        String::from_utf8_lossy(&out.stderr)
    );
    let mut endings = HashMap::new();
    let (mut seed, mut printed) = (0, String::new());
    for row in text.lines() {
        if let Some(symbol) = row.strip_prefix("== net_") {
            seed = symbol.parse().unwrap();
            printed.clear();
        } else if let Some(status) = row.strip_prefix("-- ") {
            let printed = by_actor(&printed);
            endings.insert(
                seed,
                Ending {
                    status: status.to_string(),
                    printed,
                },
            );
        } else {
            printed += row;
            printed.push('\n');
        }
    }
    endings
}

/// How two runs differ, in words.
fn difference(want: &Ending, got: &Ending, fused: bool) -> Option<String> {
    if want.status.starts_with("LVD_E_FAULT") && got.status.starts_with("LVD_E_FAULT") {
        // Two actors may both be about to fail; who is first, and what others do until then, is open.
        return None;
    }
    // Fused actors have no channel between them that could be full: where a network comes to a
    // standstill, they may stand elsewhere and wait for something else. What was printed by both
    // must still agree.
    let standstill = fused && want.status == "LVD_E_DEADLOCK";
    if want.status != got.status && !(standstill && got.status == "LVD_OK") {
        return Some(format!(
            "ends with {}, not with {}",
            got.status, want.status
        ));
    }
    let mut names: Vec<&String> = want.printed.keys().chain(got.printed.keys()).collect();
    names.sort();
    let none = Vec::new();
    for name in names {
        let (w, g) = (want.printed.get(name), got.printed.get(name));
        let (w, g) = (w.unwrap_or(&none), g.unwrap_or(&none));
        let rows = if standstill {
            w.len().min(g.len())
        } else {
            w.len().max(g.len())
        };
        for i in 0..rows {
            let (a, b) = (w.get(i), g.get(i));
            if a != b {
                return Some(format!("row {i} of {name} is {b:?}, not {a:?}"));
            }
        }
    }
    None
}

#[test]
fn compiled_code_does_what_the_interpreter_does() {
    let number = |name: &str, usual: u64| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(usual)
    };
    let (first, count) = (number("LEVADA_SEED", 1), number("LEVADA_RANDOM", 36));
    let keep = std::env::var_os("LEVADA_KEEP").map(PathBuf::from);
    let dir = keep.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("levada-random-{}", std::process::id()))
    });
    std::fs::create_dir_all(&dir).unwrap();
    let runner = runner(&dir);
    let mut wrong = Vec::new();
    let (mut rows, mut faults) = (0, 0);
    let mut seed = first;
    while seed < first + count {
        let batch: Vec<u64> = (seed..(seed + 12).min(first + count)).collect();
        seed += 12;
        let mut nets = Vec::new();
        let mut wanted = HashMap::new();
        for s in batch {
            let net = network(s, &dir);
            let ending = interpret(&net);
            assert_ne!(ending.status, "limit", "seed {s} does not end");
            rows += ending.printed.values().map(Vec::len).sum::<usize>();
            faults += usize::from(ending.status.starts_with("LVD_E_FAULT"));
            wanted.insert(s, ending);
            nets.push((s, net));
        }
        // Without checks a wrong index may do anything.
        let fit = |way: &Way| -> Vec<(u64, Network)> {
            let safe = |s: &u64| !wanted[s].status.starts_with("LVD_E_FAULT");
            let mine = nets.iter().filter(|(s, _)| way.checks || safe(s));
            mine.cloned().collect()
        };
        let objects: Vec<(Vec<u64>, PathBuf)> = std::thread::scope(|scope| {
            let one = |way: &'static Way| {
                let (mine, dir) = (fit(way), &dir);
                let seeds = mine.iter().map(|(s, _)| *s).collect();
                scope.spawn(move || (seeds, compile(&mine, *way, dir)))
            };
            let threads: Vec<_> = WAYS.iter().map(one).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for (way, (seeds, object)) in WAYS.iter().zip(objects) {
            for workers in [1, 2] {
                let got = run(&runner, workers, &object, &seeds);
                for s in &seeds {
                    let text = match got.get(s) {
                        None => Some("does not end".to_string()),
                        Some(g) => difference(&wanted[s], g, way.fuse),
                    };
                    if let Some(text) = text {
                        wrong.push(format!("seed {s}, {}, {workers} workers: {text}", way.name));
                    }
                }
            }
        }
    }
    println!("{count} programs, {rows} rows, {faults} faults");
    assert!(
        wrong.is_empty(),
        "in {}:\n{}",
        dir.display(),
        wrong.join("\n")
    );
    assert!(
        count < 36 || rows > 1000,
        "the programs print next to nothing: {rows} rows"
    );
    if keep.is_none() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// A fault stops the application, and says of what kind it was and in which line.
#[test]
fn faults_are_the_same_and_in_the_same_line() {
    let bodies = [
        "x := l[n];",
        "x := 100 / (2 - n);",
        "x := 100 mod (2 - n);",
        "l[\n  n] := 1;",
        "foreach int i in 0 .. n do\n  l[i] := i;\n end",
        "if n > 2 then\n  x := at(n);\n end",
        "x := m[1][\n  n];",
    ];
    let dir = back_support::Folder::new();
    let runner = runner(&dir.0);
    let mut nets = Vec::new();
    for (k, body) in bodies.iter().enumerate() {
        let text = format!(
            "actor A () ==> :\n int n := 0;\n int x;\n List(type: int, size=3) l;\n List(type: \
             List(type: int, size=3), size=2) m;\n function at(int i) --> int :\n  l[i]\n end\n \
             step: action ==>\n guard n < 9\n do\n {body}\n n := n + 1;\n println(\"A \" + x);\n \
             end\nend\n"
        );
        nets.push((k as u64, back_support::alone(&text)));
    }
    let object = compile(&nets, WAYS[0], &dir.0);
    let got = run(
        &runner,
        1,
        &object,
        &(0..nets.len() as u64).collect::<Vec<_>>(),
    );
    for (k, net) in &nets {
        let want = interpret(net);
        assert!(
            want.status.starts_with("LVD_E_FAULT"),
            "{}",
            bodies[*k as usize]
        );
        assert_eq!(want.status, got[k].status, "{}", bodies[*k as usize]);
    }
}
