// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Differential tests: random CAL programs must print the same in the interpreter and as compiled code on one and two
//! workers, and random expressions over all operators the same as the constant folder computes.
//!
//! `LEVADA_RANDOM=n` runs n programs instead of the usual number, `LEVADA_EXPRESSIONS=n` n expressions. `LEVADA_SEED=s`
//! begins at seed s, so `LEVADA_SEED=s LEVADA_RANDOM=1` repeats one program. `LEVADA_KEEP=dir` keeps its files. A
//! failing program is shrunk before it is shown. `LEVADA_SANITIZE=address,undefined` (or `thread`) compiles the
//! programs and the runtime with these sanitizers.

mod back_support;
mod random;

use back_support::{runner, runtime, sanitizers};
use levada_cal::diag::{Diagnostics, render};
use levada_cal::emit;
use levada_cal::interp::{FaultKind, Machine, Native, NativeArg, Options, Outcome, Scalar, Slot};
use levada_cal::ir::{Channel, Endpoint, ExprKind, Instance, Network, Span, StmtKind};
use levada_cal::workspace::Workspace;
use random::expressions::{self, Expressions};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program as a network, its text written below `dir`; or what is wrong with it.
fn network(program: &random::Program, name: &str, dir: &Path) -> Result<Network, String> {
    let root = dir.join(name);
    let package = root.join("random");
    std::fs::create_dir_all(&package).unwrap();
    for a in &program.actors {
        std::fs::write(package.join(format!("{}.cal", a.name)), &a.text).unwrap();
    }
    let mut ws = Workspace::new(vec![root]);
    let mut diags = Diagnostics::new();
    let mut instances = Vec::new();
    for a in &program.actors {
        let class = format!("random.{}", a.name);
        let actor = ws.instantiate(&class, &[], Span::default(), &mut diags);
        let (Some(actor), false) = (actor, diags.has_errors()) else {
            let text = render(&ws.sources, &diags, false);
            return Err(format!("{text}\n{}", a.text));
        };
        instances.push(Instance {
            name: a.name.clone(),
            actor,
            priority: 0,
        });
    }
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
        name: name.to_string(),
        files: ws.sources.files().to_vec(),
        instances,
        channels,
    };
    // The emitter would do so with a warning; the interpreter must see the same sizes.
    for c in &mut net.channels {
        let from = &net.instances[c.from.instance].actor;
        let mut most = emit::Bursts::of(from).outputs[c.from.port];
        for e in &c.to {
            most = most.max(emit::Bursts::of(&net.instances[e.instance].actor).inputs[e.port]);
        }
        let size = levada_cal::c_types::size_of(&from.outputs[c.from.port].ty);
        let usual = emit::default_capacity(size, most);
        c.capacity = Some(c.capacity.map_or(usual, |n| n.max(most)));
    }
    Ok(net)
}

/// What `natives.c` does, for the interpreter.
fn natives() -> HashMap<String, Native> {
    fn number(a: &NativeArg) -> i128 {
        match a {
            NativeArg::Value(Scalar::Int(n)) => *n,
            other => panic!("{other:?} is no number"),
        }
    }
    fn list(a: &NativeArg) -> Slot {
        match a {
            NativeArg::List(slot) => slot.clone(),
            other => panic!("{other:?} is no list"),
        }
    }
    let mix = |args: &[NativeArg]| {
        let (a, b) = (number(&args[0]) as u32, number(&args[1]) as u32);
        Scalar::Int(i128::from((a.wrapping_mul(31) ^ b) as i32))
    };
    let sum = |args: &[NativeArg]| {
        let slot = list(&args[0]);
        let mut sum = 0i128;
        for x in &slot.data.borrow()[slot.offset..slot.offset + 8] {
            sum = sum * 3 + number(&NativeArg::Value(x.clone()));
        }
        Scalar::Int(i128::from(sum as i32))
    };
    let fill = |args: &[NativeArg]| {
        let (slot, n) = (list(&args[0]), number(&args[1]) as i32);
        for i in 0..8 {
            let x = &mut slot.data.borrow_mut()[slot.offset + i];
            let new = number(&NativeArg::Value(x.clone())) as i16 ^ (n >> i) as i16;
            *x = Scalar::Int(i128::from(new));
        }
        Scalar::Int(0)
    };
    let mut map: HashMap<String, Native> = HashMap::new();
    map.insert("random_mix".into(), Box::new(mix));
    map.insert("random_sum".into(), Box::new(sum));
    map.insert("random_fill".into(), Box::new(fill));
    map
}

/// The result of a run: its status, and the rows that each actor printed.
#[derive(Debug, PartialEq, Clone)]
struct Ending {
    status: String,
    printed: HashMap<String, Vec<String>>,
}

fn by_actor(text: &str) -> HashMap<String, Vec<String>> {
    let mut map: HashMap<String, Vec<String>> = HashMap::new();
    for row in text.lines() {
        let actor = row.split(' ').next().unwrap_or("");
        map.entry(actor.to_string())
            .or_default()
            .push(row.to_string());
    }
    map
}

/// With the channels' capacities, or with unbounded ones.
fn interpret(net: &Network, bounded: bool) -> Ending {
    let options = Options {
        capacity: bounded.then_some(0),
        firings: 1_000_000,
        natives: natives(),
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

/// A way to compile: `fuse`, `checks`, the C compiler's flag. `grows`: channels have small capacities and grow.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    checks: bool,
    fuse: bool,
    grows: bool,
    flags: &'static [&'static str],
}

/// Most programs go these two ways, which compile fast.
const FAST: &[Way] = &[
    Way {
        name: "plain",
        checks: true,
        fuse: false,
        grows: false,
        flags: &["-O0"],
    },
    Way {
        name: "fused",
        checks: true,
        fuse: true,
        grows: false,
        flags: &["-O0"],
    },
];

/// Every second batch also begins with small channels.
const GROWING: Way = Way {
    name: "growing",
    checks: true,
    fuse: false,
    grows: true,
    flags: &["-O0"],
};

/// Every n-th batch is compiled like users' programs.
const THOROUGH_EVERY: u64 = 6;
const THOROUGH: &[Way] = &[
    Way {
        name: "optimised",
        checks: true,
        fuse: true,
        grows: false,
        flags: &["-O2", "-march=native"],
    },
    Way {
        name: "unchecked",
        checks: false,
        fuse: false,
        grows: false,
        flags: &["-O3", "-march=native"],
    },
];

fn compile(nets: &[(u64, Network)], way: Way, dir: &Path) -> Result<PathBuf, String> {
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
            random_buffer_sizes: way.grows.then_some(*seed),
            ..emit::Options::default()
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
        .args(sanitizers())
        .args(&files)
        .arg("-o")
        .arg(&out)
        .output()
        .expect("cc runs");
    let text = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() {
        return Err(format!("{text} in {}", dir.display()));
    }
    Ok(out)
}

/// How the programs in a shared object end; those that are missing did not.
fn run(
    runner: &Path,
    way: Way,
    workers: u32,
    object: &Path,
    seeds: &[u64],
    patience: u32,
) -> Result<HashMap<u64, Ending>, String> {
    let mut command = Command::new(runner);
    if !way.grows {
        command.env("FIXED_BUFFERS", "");
    }
    let out = command
        .args([workers.to_string(), patience.to_string()])
        .arg(object)
        .args(seeds.iter().map(|s| format!("net_{s}")))
        .output()
        .expect("the runner runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        let last: Vec<&str> = text.lines().filter(|l| l.starts_with("==")).collect();
        let error = String::from_utf8_lossy(&out.stderr);
        let last = last.last().unwrap_or(&"");
        return Err(format!(
            "the runner ended with {} in {last}: {error}",
            out.status
        ));
    }
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
    Ok(endings)
}

/// How two runs differ, in words.
fn difference(want: &Ending, got: &Ending, fused: bool) -> Option<String> {
    let failed = |e: &Ending| e.status.starts_with("LVD_E_FAULT");
    if failed(want) && failed(got) {
        // Two actors may both be about to fail; which one is first, and what others do until then, is not determined.
        return None;
    }
    // Fused actors have no channel between them: where a network comes to a standstill, those before
    // it may have got less far. What was printed by both must still agree; and what would have failed
    // on the way may not have been reached.
    let standstill = fused && got.status == "LVD_E_DEADLOCK";
    if standstill && failed(want) {
        return None;
    }
    if want.status != got.status {
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

/// A program that does not do one way what the interpreter does.
struct Wrong {
    seed: u64,
    way: Way,
    workers: u32,
    text: String,
}

/// What the interpreter says of a program that can be run this way; with the network.
fn judge(program: &random::Program, name: &str, way: Way, dir: &Path) -> Option<(Network, Ending)> {
    let net = network(program, name, dir).ok()?;
    let want = interpret(&net, true);
    let fits = (way.checks || !want.status.starts_with("LVD_E_FAULT"))
        && !(way.grows && want.status == "LVD_E_DEADLOCK");
    (want.status != "limit" && fits).then_some((net, want))
}

/// The same program, smaller.
fn smaller(wrong: &Wrong, runner: &Path, dir: &Path) -> random::Program {
    let dir = dir.join("smaller");
    std::fs::create_dir_all(&dir).unwrap();
    let fails = |p: &random::Program| {
        let Some((net, want)) = judge(p, "smaller", wrong.way, &dir) else {
            return false;
        };
        let Ok(object) = compile(&[(0, net)], wrong.way, &dir) else {
            return wrong.text.contains("cc: ");
        };
        // What depends on the order of actors may need several runs to show.
        (0..if wrong.workers > 1 { 4 } else { 1 }).any(|_| {
            match run(runner, wrong.way, wrong.workers, &object, &[0], 3000) {
                Err(_) => true,
                Ok(got) => got
                    .get(&0)
                    .is_none_or(|g| difference(&want, g, wrong.way.fuse).is_some()),
            }
        })
    };
    let program = random::program(wrong.seed);
    random::shrink::shrink(&program, Duration::from_secs(60), &fails)
}

/// Runs these programs these ways; returns what differs, rows printed and faults.
fn compare(seeds: &[u64], ways: &[Way], runner: &Path, dir: &Path) -> (Vec<Wrong>, usize, usize) {
    let (mut rows, mut faults) = (0, 0);
    let mut wanted = HashMap::new();
    let mut nets = Vec::new();
    for s in seeds {
        let net = network(&random::program(*s), &format!("p{s}"), dir);
        let net = net.unwrap_or_else(|why| panic!("seed {s}:\n{why}"));
        let ending = interpret(&net, true);
        assert_ne!(ending.status, "limit", "seed {s} does not end");
        rows += ending.printed.values().map(Vec::len).sum::<usize>();
        faults += usize::from(ending.status.starts_with("LVD_E_FAULT"));
        wanted.insert(*s, ending);
        nets.push((*s, net));
    }
    let (nets, wanted) = (&nets, &wanted);
    let check = |way: Way| -> Vec<Wrong> {
        // Small channels that grow: where the usual ones are enough the end is the same. Else it is that of unbounded
        // ones, if these come to an end, or another deadlock on the way there.
        let unbounded: HashMap<u64, Ending>;
        let is_stuck = |s: &u64| way.grows && wanted[s].status == "LVD_E_DEADLOCK";
        let wanted = if way.grows {
            let want = |(s, net): &(u64, Network)| match wanted[s].status.as_str() {
                "LVD_E_DEADLOCK" => (*s, interpret(net, false)),
                _ => (*s, wanted[s].clone()),
            };
            let all = nets.iter().map(want);
            unbounded = all.filter(|(_, e)| e.status != "limit").collect();
            &unbounded
        } else {
            wanted
        };
        // Without checks a wrong index may do anything.
        let safe = |s: &u64| {
            let want = wanted.get(s);
            want.is_some_and(|e| way.checks || !e.status.starts_with("LVD_E_FAULT"))
        };
        let mine: Vec<_> = nets.iter().filter(|(s, _)| safe(s)).cloned().collect();
        let seeds: Vec<u64> = mine.iter().map(|(s, _)| *s).collect();
        let object = compile(&mine, way, dir).unwrap_or_else(|why| panic!("{why}"));
        let differs = |s: &u64, got: &Ending| {
            let mut want = wanted[s].clone();
            let deadlock = is_stuck(s) && got.status == "LVD_E_DEADLOCK";
            if deadlock {
                want.status.clone_from(&got.status);
            }
            difference(&want, got, way.fuse || deadlock)
        };
        let mut wrong = Vec::new();
        for workers in [1, 2] {
            // Where the runner itself ends, each is run alone to find out which.
            let got = run(runner, way, workers, &object, &seeds, 60_000).unwrap_or_default();
            for s in &seeds {
                let text = match got.get(s) {
                    Some(g) => differs(s, g),
                    None => match run(runner, way, workers, &object, &[*s], 60_000) {
                        Err(why) => Some(why),
                        Ok(got) => got
                            .get(s)
                            .map_or(Some("does not end".to_string()), |g| differs(s, g)),
                    },
                };
                let seed = *s;
                wrong.extend(text.map(|text| Wrong {
                    seed,
                    way,
                    workers,
                    text,
                }));
            }
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let threads: Vec<_> = ways.iter().map(|way| scope.spawn(|| check(*way))).collect();
        let each = threads.into_iter().map(|t| t.join().unwrap());
        each.flatten().collect()
    });
    (wrong, rows, faults)
}

#[test]
fn compiled_code_does_what_the_interpreter_does() {
    let number = |name: &str, usual: u64| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(usual)
    };
    let (first, count) = (number("LEVADA_SEED", 1), number("LEVADA_RANDOM", 120));
    let keep = std::env::var_os("LEVADA_KEEP").map(PathBuf::from);
    let dir = keep.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("levada-random-{}", std::process::id()))
    });
    std::fs::create_dir_all(&dir).unwrap();
    let runner = runner();
    let mut wrong = Vec::new();
    let (mut rows, mut faults, mut merged) = (0, 0, 0);
    let seeds: Vec<u64> = (first..first + count).collect();
    for batch in seeds.chunks(24) {
        let place = dir.join(format!("b{}", batch[0]));
        std::fs::create_dir_all(&place).unwrap();
        let thorough = (batch[0] / 24).is_multiple_of(THOROUGH_EVERY);
        let mut ways = if thorough { THOROUGH } else { FAST }.to_vec();
        if count == 1 {
            ways = [FAST, THOROUGH].concat();
        }
        if count == 1 || !(batch[0] / 24).is_multiple_of(2) {
            ways.push(GROWING);
        }
        let (bad, r, f) = compare(batch, &ways, &runner, &place);
        for s in batch {
            let net = network(&random::program(*s), &format!("p{s}"), &place).unwrap();
            let after = levada_cal::fuse::fuse(&net);
            merged += net.instances.len() - after.instances.len();
        }
        // A soak says so at once.
        for w in &bad {
            eprintln!(
                "seed {}, {}, {} workers: {}",
                w.seed, w.way.name, w.workers, w.text
            );
        }
        wrong.extend(bad);
        rows += r;
        faults += f;
        if keep.is_none() {
            let _ = std::fs::remove_dir_all(&place);
        }
        if wrong.len() > 8 {
            break;
        }
    }
    println!("{count} programs, {rows} rows, {faults} faults, {merged} actors merged");
    if let Some(w) = wrong.first() {
        let list: Vec<String> = wrong
            .iter()
            .map(|w| {
                format!(
                    "seed {}, {}, {} workers: {}",
                    w.seed, w.way.name, w.workers, w.text
                )
            })
            .collect();
        panic!(
            "{}\n\nthe first one, as small as it gets:\n\n{}",
            list.join("\n"),
            smaller(w, &runner, &dir)
        );
    }
    assert!(
        count < 36 || rows > 1000 && merged > 20,
        "the programs do next to nothing: {rows} rows, {merged} actors merged"
    );
    if keep.is_none() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// How expressions are compiled; a soak has some optimised, too.
const PLAIN: &[Way] = &[
    FAST[0],
    FAST[1],
    Way {
        name: "unchecked",
        checks: false,
        fuse: false,
        grows: false,
        flags: &["-O1"],
    },
];
const OPTIMISED: &[Way] = &[
    Way {
        name: "optimised",
        checks: true,
        fuse: true,
        grows: false,
        flags: &["-O2", "-march=native"],
    },
    Way {
        name: "unchecked fused",
        checks: false,
        fuse: true,
        grows: false,
        flags: &["-O3", "-march=native"],
    },
];

/// The lines of a run, those of each kind in their order.
fn lines(of: &Ending) -> Vec<&str> {
    let mut kinds: Vec<_> = of.printed.iter().collect();
    kinds.sort();
    let rows = kinds.into_iter().flat_map(|(_, rows)| rows);
    rows.map(String::as_str).collect()
}

/// What is not as the constant folder has it: how it was run, which expression, in which row, the line.
type Unlike = (&'static str, usize, usize, String);

/// Runs the expressions folded, interpreted and compiled these ways; what differs, and the lines.
fn unlike(
    all: &[Expressions],
    ways: &[Way],
    runner: &Path,
    dir: &Path,
) -> (Vec<Vec<Unlike>>, usize) {
    let mut found: Vec<Vec<Unlike>> = vec![Vec::new(); all.len()];
    let mut wanted = Vec::new();
    let mut nets = Vec::new();
    let compare = |way: &'static str, want: &Ending, got: &Ending| -> Vec<Unlike> {
        if got.status != want.status {
            return vec![(way, 0, 0, format!("ends with {}", got.status))];
        }
        let (want, got) = (lines(want), lines(got));
        if want.len() != got.len() {
            return vec![(
                way,
                0,
                0,
                format!("{} lines, not {}", got.len(), want.len()),
            )];
        }
        let expression = |line: &str| line.split(' ').nth(1).and_then(|k| k.parse().ok()).unwrap();
        let count = want.iter().map(|w| expression(w)).max().unwrap_or(0) + 1;
        let differ = want
            .iter()
            .zip(&got)
            .enumerate()
            .filter(|(_, (w, g))| w != g);
        differ
            .map(|(at, (w, g))| {
                let row = (at / count).min(expressions::ROWS) % expressions::ROWS;
                (way, expression(w), row, format!("{g:?}, not {w:?}"))
            })
            .collect()
    };
    for (i, one) in all.iter().enumerate() {
        let net = |program, name: &str| {
            network(&program, &format!("{name}{i}"), dir).unwrap_or_else(|why| panic!("{why}"))
        };
        let (folded, computed) = (net(one.folded(), "f"), net(one.computed(), "c"));
        assert!(
            is_folded(&folded),
            "something is not folded in {}",
            dir.display()
        );
        let want = interpret(&folded, true);
        assert_eq!(want.status, "LVD_OK");
        found[i].extend(compare("interpreted", &want, &interpret(&computed, true)));
        wanted.push(want);
        nets.push((i as u64, computed));
    }
    let seeds: Vec<u64> = (0..all.len() as u64).collect();
    let compiled = |way: &Way| -> Vec<Vec<Unlike>> {
        let object = compile(&nets, *way, dir).unwrap_or_else(|why| panic!("{why}"));
        let got =
            run(runner, *way, 1, &object, &seeds, 60_000).unwrap_or_else(|why| panic!("{why}"));
        let each = wanted.iter().zip(&seeds);
        each.map(|(want, seed)| compare(way.name, want, &got[seed]))
            .collect()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (ways.iter())
            .map(|way| scope.spawn(|| compiled(way)))
            .collect();
        for thread in threads {
            let each = thread.join().expect("it compares");
            for (all, of_this) in found.iter_mut().zip(each) {
                all.extend(of_this);
            }
        }
    });
    (found, wanted.iter().map(|w| lines(w).len()).sum())
}

/// Whether the actor prints nothing but what was known when it was checked.
fn is_folded(net: &Network) -> bool {
    let actor = &net.instances[0].actor;
    let known = |e: &levada_cal::ir::Expr| matches!(e.kind, ExprKind::Const(_));
    actor.actions[0].body.stmts.iter().all(|s| match &s.kind {
        StmtKind::Print { parts, .. } => parts.iter().all(known),
        _ => true,
    })
}

/// Each operator means the same in the constant folder, in the interpreter and in compiled code of each
/// kind, whatever the types and values of its operands are.
#[test]
fn operators_mean_the_same_wherever_they_are_computed() {
    let number = |name: &str, usual: u64| {
        let given = std::env::var(name).ok();
        given.and_then(|v| v.parse().ok()).unwrap_or(usual)
    };
    let (first, count) = (number("LEVADA_SEED", 1), number("LEVADA_EXPRESSIONS", 2000));
    // The number of expressions in one actor, and of actors in one shared object.
    const IN_ONE: u64 = 250;
    const ACTORS: usize = 4;
    let dir = back_support::Folder::new();
    let runner = runner();
    let seeds: Vec<u64> = (first..first + count.div_ceil(IN_ONE)).collect();
    let mut compared = 0;
    for (at, batch) in seeds.chunks(ACTORS).enumerate() {
        let ways = if count > 10_000 && at.is_multiple_of(8) {
            [PLAIN, OPTIMISED].concat()
        } else {
            PLAIN.to_vec()
        };
        let place = dir.0.join(format!("e{}", batch[0]));
        std::fs::create_dir_all(&place).unwrap();
        let made = |seed: &u64| expressions::expressions(*seed, count.min(IN_ONE) as usize);
        let all: Vec<Expressions> = batch.iter().map(made).collect();
        let (found, lines) = unlike(&all, &ways, &runner, &place);
        compared += lines;
        for (i, list) in found.iter().enumerate() {
            let Some((way, k, row, line)) = list.first() else {
                continue;
            };
            let few: Vec<String> = (list.iter().take(12))
                .map(|(way, k, _, line)| format!("{way}: {line}\n  {}", all[i].shown(*k, 0)))
                .collect();
            let (parts, _) = unlike(&[all[i].parts_of(*k)], &ways, &runner, &place);
            let smallest = parts[0]
                .first()
                .map_or(String::new(), |(way, part, row, line)| {
                    format!("{way}: {line}\n{}", all[i].parts_of(*k).shown(*part, *row))
                });
            panic!(
                "seed {}, {way}: {line}\n{}\n{} differ:\n{}\nthe smallest part of the first:\n{smallest}",
                batch[i],
                all[i].shown(*k, *row),
                list.len(),
                few.join("\n")
            );
        }
        let _ = std::fs::remove_dir_all(&place);
    }
    println!("{count} expressions, {compared} lines of results");
    let least = count * (expressions::ROWS as u64 + 1);
    assert!(
        compared as u64 >= least,
        "{compared} lines of {count} expressions"
    );
}

/// Expressions with known results. Their operands are constants, parameters that have a default, and variables, of
/// which some never change.
#[test]
fn constants_and_parameters_give_what_variables_do() {
    let rows = [
        ("~(a mod b)", "4294967290"),
        ("(~(a mod b)) / 2", "2147483645"),
        ("~(a mod b) > 0", "true"),
        ("~(a / b & b) > 0", "false"),
        ("(w & 255) >> n", "0"),
        ("(w mod 1000) >> n", "0"),
        ("(w & 255) >> 36", "0"),
        ("a >> 33", "2"),
        ("least / m", "-2147483648"),
        ("least mod m", "0"),
        ("m < b", "true"),
        ("most / 10", "1844674407370955161"),
        ("most / (2 * 5)", "1844674407370955161"),
        ("(most | 1) > 5", "true"),
        ("d + 0.1 = 0.2", "true"),
        ("-d = -0.1", "true"),
        ("f = 0.1", "true"),
        ("d * 1000000000000.0", "100000000000.000000"),
        ("f * 0.0 / 0.0", "nan"),
        ("(h + a) * 1000", "5099.975586"),
        // Rounded once: by way of a double it would be 2^62.
        ("big", "4611686568183201792.000000"),
    ];
    let operands = [
        ("int", "a", "5"),
        ("uint", "b", "7"),
        ("int(size=64)", "w", "1234567890123"),
        ("int", "n", "36"),
        ("int", "least", "-2147483647 - 1"),
        ("int", "m", "-1"),
        ("uint(size=64)", "most", "18446744073709551615"),
        ("double", "d", "0.1"),
        ("float", "f", "0.1"),
        ("half", "h", "0.1"),
        ("float", "big", "4611686293305294849"),
    ];
    let declared = |sign: &str| -> Vec<String> {
        let one = |(ty, name, value): &(&str, &str, &str)| format!("{ty} {name} {sign} {value}");
        operands.iter().map(one).collect()
    };
    let printed: String = (rows.iter().enumerate())
        .map(|(k, (e, _))| format!("      println(\"A{k} \" + ({e}));\n"))
        .collect();
    let body = format!(
        "  bool done := false;\n  action ==>\n  guard\n    not done\n  do\n{printed}    done := \
         true;\n  end\nend\n"
    );
    let set: String = (operands.iter())
        .map(|(_, name, value)| format!("    {name} := {value};\n"))
        .collect();
    let texts = [
        format!(
            "actor A () ==> :\n  {};\n{body}",
            declared("=").join(";\n  ")
        ),
        format!(
            "actor A () ==> :\n  {};\n{body}",
            declared(":=").join(";\n  ")
        ),
        format!("actor A ({}) ==> :\n{body}", declared("=").join(", ")),
        format!(
            "actor A () ==> :\n  {};\n{}",
            declared(":=").join(";\n  "),
            body.replace("  do\n", &format!("  do\n{set}"))
        ),
    ];
    let dir = back_support::Folder::new();
    let nets: Vec<(u64, Network)> = (0..)
        .zip(texts.iter().map(|t| back_support::alone(t)))
        .collect();
    let seeds: Vec<u64> = nets.iter().map(|n| n.0).collect();
    let object = compile(&nets, FAST[0], &dir.0).unwrap();
    let compiled = run(&runner(), FAST[0], 1, &object, &seeds, 60_000).unwrap();
    for (k, net) in &nets {
        for ending in [&interpret(net, true), &compiled[k]] {
            assert_eq!(ending.status, "LVD_OK");
            for (i, (e, wanted)) in rows.iter().enumerate() {
                let got = &ending.printed[&format!("A{i}")];
                assert_eq!(
                    got,
                    &[format!("A{i} {wanted}")],
                    "{e} in\n{}",
                    texts[*k as usize]
                );
            }
        }
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
    let runner = runner();
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
    let object = compile(&nets, FAST[0], &dir.0).unwrap();
    let got = run(
        &runner,
        FAST[0],
        1,
        &object,
        &(0..nets.len() as u64).collect::<Vec<_>>(),
        60_000,
    )
    .unwrap();
    for (k, net) in &nets {
        let want = interpret(net, true);
        assert!(
            want.status.starts_with("LVD_E_FAULT"),
            "{}",
            bodies[*k as usize]
        );
        assert_eq!(want.status, got[k].status, "{}", bodies[*k as usize]);
    }
}
