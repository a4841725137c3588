// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the runtime's lock-free protocols under a model checker: the C that ships, unchanged.
//!
//! First every check on the sources as they are; then, for every memory order in them, the checks on
//! a copy in which that one order is weaker, until one fails. README.md tells how to read it.

mod app;
mod call;
mod channel;
mod check;
mod docs;
mod fiber;
mod fork;
mod inbox;
mod lease;
mod library;
mod link;
mod lock;
mod mcapi;
mod mutate;
mod shadow;
mod steal;
mod suite;
mod visit;
mod worker;
mod world;

use check::{Check, Failure, Way};
use library::Library;
use mutate::Mutant;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use suite::{ELSEWHERE, KEPT_ORDERS, SUITES, Suite};

const USAGE: &str = "usage: levada-model [--docs] [--soak] [--checks-only] [--trace] [--only TEXT]

  --soak         also the long checks (LVD_MODEL_SOAK=1)
  --checks-only  no mutants
  --docs         update the table of the checks in README.md, and run nothing
  --trace        show what happened in executions that fail
  --only TEXT    checks, or mutants by file and function, with TEXT in their names (several: A|B)";

/// Number of processes that share the work. (Threads would contend: every execution maps and unmaps
/// the stacks of its coroutines.)
const PROCESSES: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Checks,
    Mutants,
}

struct Options {
    soak: bool,
    mutants: bool,
    trace: bool,
    docs: bool,
    only: Option<String>,
    /// In a process that does a share of the work: which phase, and which share.
    share: Option<(Phase, usize)>,
    /// What was compiled of the sources as they are.
    whole: PathBuf,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        soak: std::env::var("LVD_MODEL_SOAK").is_ok_and(|v| v != "0" && !v.is_empty()),
        mutants: true,
        trace: false,
        docs: false,
        only: None,
        share: None,
        whole: PathBuf::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--soak" => options.soak = true,
            "--checks-only" => options.mutants = false,
            "--docs" => options.docs = true,
            "--trace" => options.trace = true,
            "--only" => options.only = Some(args.next().ok_or(USAGE)?),
            "--whole" => options.whole = args.next().ok_or(USAGE)?.into(),
            "--share-of-checks" | "--share-of-mutants" => {
                let phase = match arg.as_str() {
                    "--share-of-checks" => Phase::Checks,
                    _ => Phase::Mutants,
                };
                let number = args.next().and_then(|n| n.parse().ok()).ok_or(USAGE)?;
                options.share = Some((phase, number));
            }
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(options)
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|texts| texts.split('|').any(|text| name.contains(text)))
    }

    /// The checks of a suite that were asked for.
    fn checks_of<'s>(&self, suite: &'s Suite) -> Vec<&'s Check> {
        let mut checks = self.checks(suite);
        checks.retain(|c| self.wants(&format!("{}: {}", suite.name, c.name)));
        checks
    }

    fn checks<'s>(&self, suite: &'s Suite) -> Vec<&'s Check> {
        let checks = suite.checks.iter();
        checks.filter(|c| self.soak || !c.soak).collect()
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let result = match options.share {
        Some((phase, number)) => share(&options, phase, number),
        None if options.docs => docs::renew().map(|()| 0),
        None => whole(&options),
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// Checks and mutants, each phase shared by several processes; how many went wrong.
fn whole(options: &Options) -> Result<usize, String> {
    let folder = std::env::temp_dir().join(format!("levada-model-{}", std::process::id()));
    let result = compile(options, &folder).and_then(|()| run(options, &folder));
    // Left behind only when it is killed.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// All suites that are wanted, from the sources as they are.
fn compile(options: &Options, folder: &Path) -> Result<(), String> {
    mutate::copy_tree(&library::runtime(), folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?;
    for s in SUITES {
        if options.mutants || !options.checks_of(s).is_empty() {
            let object = folder.join(format!("{}.so", s.name));
            library::compile(s.compiled, folder, &object, None)?;
        }
    }
    Ok(())
}

fn run(options: &Options, folder: &Path) -> Result<usize, String> {
    let start = Instant::now();
    let mut wrong = strays(&library::runtime()) + docs::stale();
    println!("{} {:>8}", docs::heading(), "seconds");
    let (checks, failed) = phase("--share-of-checks", folder)?;
    wrong += failed;
    let mut mutants = 0;
    if options.mutants && wrong == 0 {
        println!("\n{:<60} {:<18} found by", "order", "weaker");
        (mutants, wrong) = phase("--share-of-mutants", folder)?;
        wrong += stale();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\n{checks} checks and {mutants} mutants in {seconds:.0} s");
    println!(
        "{} passed, {wrong} failed",
        (checks + mutants).saturating_sub(wrong)
    );
    if checks + mutants == 0 {
        return Err("nothing was run".to_string());
    }
    Ok(wrong)
}

/// Runs a phase in its processes; how many things it did, and how many went wrong.
fn phase(which: &str, folder: &Path) -> Result<(usize, usize), String> {
    let (done, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = AtomicUsize::new(0);
    let program = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let mut command = Command::new(&program);
            command
                .args(std::env::args().skip(1))
                .args([which, &number.to_string()])
                .arg("--whole")
                .arg(folder);
            command.stdout(Stdio::piped());
            let (done, wrong, failed) = (&done, &wrong, &failed);
            scope.spawn(move || {
                let Ok(mut child) = command.spawn() else {
                    failed.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
                for line in lines.map_while(Result::ok) {
                    // Each result ends with a line of its own: '+' or '-'.
                    match line.as_str() {
                        "+" => {}
                        "-" => _ = wrong.fetch_add(1, Ordering::Relaxed),
                        _ => {
                            println!("{line}");
                            continue;
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                let status = child.wait().ok().and_then(|s| s.code());
                if !matches!(status, Some(0 | 1)) {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    if failed.into_inner() != 0 {
        return Err("a process of the checker failed".to_string());
    }
    Ok((done.into_inner(), wrong.into_inner()))
}

/// One process's share of a phase; how many went wrong.
fn share(options: &Options, phase: Phase, number: usize) -> Result<usize, String> {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !check::inside() {
            usual(info);
        }
    }));
    match phase {
        Phase::Checks => checks(options, number),
        Phase::Mutants => mutants(options, number),
    }
}

fn report((text, good): (String, bool)) -> usize {
    println!("{text}\n{}", if good { '+' } else { '-' });
    !good as usize
}

fn checks(options: &Options, number: usize) -> Result<usize, String> {
    let (mut wrong, mut n) = (0, 0);
    for s in SUITES {
        let wanted = options.checks_of(s);
        if wanted.is_empty() {
            continue;
        }
        let library = Arc::new(Library::load(&options.whole.join(format!("{}.so", s.name))));
        for c in wanted {
            if n % PROCESSES == number {
                wrong += report(one_check(options, s, c, &library));
            }
            n += 1;
        }
    }
    Ok(wrong)
}

/// Each order of each source once, with the suites that name it.
fn all_mutants() -> impl Iterator<Item = (Vec<&'static Suite>, Mutant)> {
    let mut files: Vec<&'static str> = vec![];
    for f in SUITES.iter().flat_map(|s| s.sources) {
        if !files.contains(f) {
            files.push(f);
        }
    }
    files.into_iter().flat_map(|f| {
        let suites: Vec<_> = SUITES.iter().filter(|s| s.sources.contains(&f)).collect();
        let mutants = mutate::of_file(&library::runtime(), f);
        mutants.into_iter().map(move |m| (suites.clone(), m))
    })
}

fn mutants(options: &Options, number: usize) -> Result<usize, String> {
    Ok(all_mutants()
        .filter(|(_, m)| options.wants(&format!("{}: {}", m.file, m.function)))
        .enumerate()
        .filter(|(n, _)| n % PROCESSES == number)
        .map(|(n, (s, m))| report(one_mutant(options, n, &s, &m)))
        .sum())
}

fn one_check(options: &Options, s: &Suite, c: &Check, library: &Arc<Library>) -> (String, bool) {
    let outcome = check::run(c, library, 5_000_000);
    let seconds = outcome.time.as_secs_f64();
    let mut text = docs::row(s, c, outcome.executions) + &format!(" {seconds:>8.1}");
    if let Some(f) = outcome.failure {
        text += &format!("\n  FAILS ({:?}): {}", f.way, f.message.trim_end());
        if options.trace {
            text += &format!("\n{}", f.trace);
        }
        return (text, false);
    }
    // Fewer: part of what was searched is not any more, and a check that finds nothing says less.
    if outcome.executions < c.executions {
        text += &format!(
            "\n  ONLY {} executions were {} before: the protocol or the check changed, or loom did; \
             see README.md",
            outcome.executions, c.executions
        );
        return (text, false);
    }
    if outcome.executions > c.executions {
        text += &format!("  (was {})", c.executions);
    }
    (text, true)
}

fn one_mutant(
    options: &Options,
    n: usize,
    suites: &[&'static Suite],
    m: &Mutant,
) -> (String, bool) {
    let place = format!("{}:{} {} {}", m.file, m.line, m.function, m.call);
    let text = |found: &str| format!("{place:<60} {:<18} {found}", m.weaker);
    let kept = KEPT_ORDERS.iter().find(|k| k.covers(m));
    if let Some(k) = kept.filter(|_| !options.soak) {
        return (text(&format!("kept: {}", k.why)), true); // the soak form tries it all the same
    }
    let tree = options.whole.join(format!("mutant-{n}"));
    if let Err(e) = m.write(&library::runtime(), &tree) {
        return (text(&format!("CANNOT BE WRITTEN: {e}")), false);
    }
    let tried = try_mutant(options, suites, m, &tree);
    // The loaded libraries stay mapped. What is left behind is removed with `whole`.
    let _ = std::fs::remove_dir_all(&tree);
    let (c, executions, f) = match tried {
        Ok(Some(found)) => found,
        Ok(None) => {
            return match kept {
                Some(k) => (text(&format!("kept: {}", k.why)), true),
                None => (
                    text("SURVIVES: relax it, or say in suite.rs why it is kept"),
                    false,
                ),
            };
        }
        Err(e) => return (text(&format!("DOES NOT COMPILE: {e}")), false),
    };
    let way = match f.way {
        Way::Race => "race",
        Way::Asleep => "lost wake-up",
        Way::Endless => "never ends",
        _ => "wrong value",
    };
    let found = format!(
        "{} ({:?}): {way}, {executions} executions",
        c.name, c.barrier
    );
    let mut text = text(&found);
    if options.trace {
        text += &format!("\n{}\n{}", f.message, f.trace);
    }
    if kept.is_some() {
        text += "\n  BUT suite.rs says that no check needs it";
    }
    (text, kept.is_none())
}

/// Runs the checks on a mutant until one fails. Its sources are in `tree`.
fn try_mutant(
    options: &Options,
    suites: &[&'static Suite],
    m: &Mutant,
    tree: &Path,
) -> Result<Option<(&'static Check, u64, Failure)>, String> {
    // The short ones first: most mutants are found at once.
    let mut checks: Vec<_> = suites
        .iter()
        .enumerate()
        .flat_map(|(n, s)| options.checks(s).into_iter().map(move |c| (n, c)))
        .collect();
    checks.sort_by_key(|(_, c)| c.executions);
    let mut libraries: Vec<Option<Arc<Library>>> = suites.iter().map(|_| None).collect();
    for (n, c) in checks {
        let library = match &libraries[n] {
            Some(library) => library,
            None => {
                let object = tree.join(format!("{}.so", suites[n].name));
                let mutant = Some((m.file, options.whole.as_path()));
                library::compile(suites[n].compiled, tree, &object, mutant)?;
                libraries[n].insert(Arc::new(Library::load(&object)))
            }
        };
        let outcome = check::run(c, library, c.executions * 4 + 20_000);
        match outcome.failure {
            Some(f) if f.way != Way::Unfinished => return Ok(Some((c, outcome.executions, f))),
            _ => {}
        }
    }
    Ok(None)
}

/// Sources with orders that no suite knows, and atomics that go without a named order.
fn strays(runtime: &Path) -> usize {
    let mut wrong = 0;
    for folder in ["include/levada", "src", "platform"] {
        for path in mutate::sources(&runtime.join(folder)) {
            let name = path.strip_prefix(runtime).expect("a file of the runtime");
            let name = name.to_string_lossy().into_owned();
            if name == "include/levada/atomic.h" {
                continue;
            }
            if let Some(what) = mutate::unnamed(&path) {
                println!("{name}: {what}: reach atomics through levada/atomic.h");
                wrong += 1;
            }
            let mutated = SUITES.iter().any(|s| s.sources.contains(&name.as_str()));
            let compiled = SUITES
                .iter()
                .any(|s| s.compiled.concat().contains(&name.as_str()));
            let excused = ELSEWHERE.iter().any(|e| e.0 == name);
            let why = match (mutate::has_orders(&path), mutated, excused) {
                (true, false, false) => "memory orders that no suite checks",
                (true, false, true) if compiled => "a suite compiles it, and none weakens it",
                (_, true, true) | (false, _, true) => "no need to excuse it",
                _ => continue,
            };
            println!("{name}: {why}; see suite.rs");
            wrong += 1;
        }
    }
    wrong
}

/// Entries of the table of kept orders that do not speak of what there is: each names how many
/// places it excuses, so that no other order hides behind it.
fn stale() -> usize {
    let mut wrong = 0;
    for k in KEPT_ORDERS {
        let places = all_mutants().filter(|(_, m)| k.covers(m)).count();
        if places != k.places {
            println!(
                "suite.rs keeps {} times, and there are {places}: {} {} {} to {}",
                k.places, k.file, k.function, k.call, k.weaker
            );
            wrong += 1;
        }
    }
    wrong
}
