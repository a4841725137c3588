// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada shield` on this machine: as root on two cores or more, else skipped with the reason. Each shield
//! holds for moments only, and each test compares all masks, cpusets and interrupts before and after.
//!
//! Tried here: each way that works here; exit status, signals, arguments, input, process group, stopping;
//! the tool killed, the guard killed, both killed; a release; intruders, children born meanwhile, masks
//! changed meanwhile, fork storms; processes that run already; a user without rights; classes; no such
//! core, the last core, a core shielded already, no such program, no such process, wrong options.

mod common;

use common::skipped;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

const LEVADA: &str = env!("CARGO_BIN_EXE_levada");
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Bench {
    _alone: MutexGuard<'static, ()>,
    core: u32,
    all: String,
    before: BTreeMap<String, String>,
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_string()
}

fn numbers(path: &str) -> Vec<i32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect()
}

/// Fields of a stat line from the state on; the state is field 3.
fn stat(path: &str, field: usize) -> String {
    let line = text(path);
    let rest = line.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
        .nth(field - 3)
        .unwrap_or("")
        .to_string()
}

fn mask(id: i32) -> String {
    let status = text(format!("/proc/{id}/status"));
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or("").trim().to_string()
}

/// Masks and cpusets of all threads by id and start; interrupts, work queues, groups.
fn everything() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for pid in numbers("/proc") {
        for tid in numbers(&format!("/proc/{pid}/task")) {
            let at = format!("/proc/{pid}/task/{tid}");
            let groups = text(format!("{at}/cgroup"));
            let sets: Vec<&str> = groups
                .lines()
                .filter(|l| l.contains("cpuset") || l.starts_with("0::"))
                .collect();
            let start = stat(&format!("{at}/stat"), 22);
            all.insert(
                format!("{tid} of {start}"),
                format!("{} {}", mask(tid), sets.join(" ")),
            );
        }
    }
    for irq in numbers("/proc/irq") {
        let file = format!("/proc/irq/{irq}/smp_affinity_list");
        all.insert(file.clone(), text(file));
    }
    for file in [
        "/proc/irq/default_smp_affinity",
        "/proc/sys/kernel/watchdog_cpumask",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
        "/sys/fs/cgroup/cgroup.subtree_control",
    ] {
        all.insert(file.into(), text(file));
    }
    all
}

impl Bench {
    /// None where a shield cannot be tried.
    fn new(test: &str) -> Option<Bench> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        let online = mask(std::process::id() as i32);
        let last: Option<u32> = online
            .rsplit([',', '-'])
            .next()
            .and_then(|n| n.parse().ok());
        // SAFETY: has no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            skipped(test, "it needs root");
            return None;
        }
        let Some(core) = last.filter(|_| online.contains(['-', ','])) else {
            skipped(test, "it needs two cores");
            return None;
        };
        Some(Bench {
            _alone: alone,
            core,
            all: online,
            before: everything(),
        })
    }

    fn others(&self) -> String {
        match self.core {
            1 => "0".into(),
            n => format!("0-{}", n - 1),
        }
    }

    /// The ways that work here, of those that hold against everybody.
    fn ways(&self) -> Vec<&'static str> {
        let works = |way: &&str| {
            let done = self.shield(&["--by", way], &["true"]).output().unwrap();
            if !done.status.success() {
                let why = String::from_utf8_lossy(&done.stderr).into_owned();
                skipped(&format!("a shield by {way}"), why.trim());
            }
            done.status.success()
        };
        ["partition", "cpusets", "affinity"]
            .into_iter()
            .filter(works)
            .collect()
    }

    fn shield(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(LEVADA);
        command
            .args(["shield", &self.core.to_string()])
            .args(options);
        if !program.is_empty() {
            command.arg("--").args(program);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Starts a shell in a shield and waits until it says that it runs; its id.
    fn start(&self, options: &[&str], script: &str) -> (Child, i32) {
        let script = format!("echo $$; {script}");
        let mut command = self.shield(options, &["sh", "-c", &script]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let pid = line.trim().parse().unwrap_or(0);
        if pid == 0 {
            panic!("{line:?}, {:?}", child.wait_with_output());
        }
        (child, pid)
    }

    /// All is as it was: of what was there before, and is still.
    fn same(&self) {
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            let now = everything();
            let differs = |(k, v): &(&String, &String)| now.get(*k).is_some_and(|n| n != *v);
            let different: Vec<_> = self.before.iter().filter(differs).collect();
            let left = Path::new("/run/levada/shield").exists();
            if different.is_empty() && !left {
                return;
            }
            let now: Vec<_> = different.iter().map(|(k, _)| now.get(*k)).collect();
            assert!(
                Instant::now() < end,
                "ledger {left}; were {different:#?}, are {now:#?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Bench {
    /// A test that fails leaves no shield.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for word in ["release", "restore"] {
                let _ = Command::new(LEVADA).args(["shield", word]).output();
            }
        }
    }
}

fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(seconds),
            "{what}: not within {seconds} s"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    began.elapsed()
}

fn out(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).trim().to_string()
}

fn err(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).trim().to_string()
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: has no preconditions.
    unsafe { libc::kill(pid, signal) };
}

/// A process of the test's, which ends with it.
struct Sleeper(Child);

impl Sleeper {
    fn new(command: &[&str]) -> Sleeper {
        let mut child = Command::new(command[0]);
        Sleeper(
            child
                .args(&command[1..])
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    fn id(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The guard of the shield that there is.
fn guard() -> i32 {
    let done = Command::new(LEVADA)
        .args(["shield", "status", "--json"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    json["shields"][0]["guard"]
        .as_i64()
        .unwrap_or_else(|| panic!("{json}")) as i32
}

#[test]
fn a_program_is_alone_and_all_is_as_before_afterwards() {
    let Some(bench) = Bench::new("shields") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let script = format!(
            "grep Cpus_allowed_list /proc/$$/status /proc/{}/status; exit 7",
            other.id()
        );
        let done = bench
            .shield(&["--by", way], &["sh", "-c", &script])
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(7), "{done:?}");
        let said = out(&done);
        let masks: Vec<&str> = said
            .lines()
            .filter_map(|l| l.split_whitespace().last())
            .collect();
        assert_eq!(
            masks,
            [bench.core.to_string(), bench.others()],
            "{way}: {done:?}"
        );
        let said = err(&done);
        assert!(
            said.contains("of a core busy") && said.contains("went to core"),
            "{said}"
        );
        assert!(
            said.contains(&format!("core {} restored", bench.core)),
            "{said}"
        );
        assert_eq!(mask(other.id()), bench.all);
        bench.same();
    }
}

#[test]
fn status_signals_and_surroundings_are_as_if_started_plainly() {
    let Some(bench) = Bench::new("signals") else {
        return;
    };
    let quiet = &["-q"][..];
    let mut command = bench.shield(
        quiet,
        &["sh", "-c", "echo \"$0 $1 $LVD_TEST\"; cat", "a b", "c"],
    );
    let mut child = command
        .env("LVD_TEST", "kept")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"typed").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(out(&done), "a b c kept\ntyped");

    let done = bench
        .shield(quiet, &["sh", "-c", "kill -KILL $$"])
        .output()
        .unwrap();
    assert_eq!(done.status.signal(), Some(libc::SIGKILL), "{done:?}");
    assert_eq!(err(&done), "", "quiet is quiet");

    // A signal for the tool is the program's, and its end is the tool's.
    let (child, pid) = bench.start(quiet, "trap 'exit 3' USR1; while :; do sleep 0.02; done");
    let tool = child.id() as i32;
    assert_eq!(
        stat(&format!("/proc/{pid}/stat"), 5),
        stat(&format!("/proc/{tool}/stat"), 5),
        "one process group"
    );
    kill(tool, libc::SIGUSR1);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(3));

    // When the program is stopped, so is the tool; when that goes on, so does the program.
    let (child, pid) = bench.start(quiet, "exec sleep 30");
    let tool = child.id() as i32;
    kill(pid, libc::SIGSTOP);
    until("the tool stops, too", 2, || {
        stat(&format!("/proc/{tool}/stat"), 3) == "T"
    });
    kill(tool, libc::SIGCONT);
    until("the program goes on", 2, || {
        stat(&format!("/proc/{pid}/stat"), 3) == "S"
    });
    kill(tool, libc::SIGTERM);
    assert_eq!(
        child.wait_with_output().unwrap().status.signal(),
        Some(libc::SIGTERM)
    );

    // What was ignored or blocked before is so in the program, and nothing else.
    let plain = Command::new("sh")
        .args(["-c", "grep Sig[BI] /proc/self/status"])
        .output()
        .unwrap();
    let inside = bench
        .shield(quiet, &["sh", "-c", "grep Sig[BI] /proc/self/status"])
        .output()
        .unwrap();
    assert_eq!(out(&inside), out(&plain));
    bench.same();
}

#[test]
fn when_the_tool_is_killed_the_guard_restores() {
    let Some(bench) = Bench::new("the tool killed") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let (mut child, pid) = bench.start(&["--by", way], "exec sleep 20");
        assert_eq!(
            (mask(other.id()), mask(pid)),
            (bench.others(), bench.core.to_string()),
            "{way}"
        );
        kill(child.id() as i32, libc::SIGKILL);
        let took = until("restored", 2, || mask(other.id()) == bench.all);
        child.wait().unwrap();
        println!("restored {took:?} after the tool was killed ({way})");
        bench.same();
        assert_eq!(
            mask(pid),
            bench.all,
            "{way}: the program that is left has all cores again"
        );
        kill(pid, libc::SIGKILL);
    }
}

#[test]
fn when_both_are_killed_restore_does_it() {
    let Some(bench) = Bench::new("both killed") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let (mut child, pid) = bench.start(&["--by", way], "exec sleep 20");
        let still = Command::new(LEVADA)
            .args(["shield", "restore"])
            .output()
            .unwrap();
        assert_eq!(still.status.code(), Some(1));
        assert!(err(&still).contains("still holds"), "{still:?}");
        let guard = guard();
        // Stopped, so that neither can do anything for the other.
        kill(child.id() as i32, libc::SIGSTOP);
        kill(guard, libc::SIGKILL);
        kill(child.id() as i32, libc::SIGKILL);
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            mask(other.id()),
            bench.others(),
            "{way}: nobody was there to restore"
        );
        let status = Command::new(LEVADA)
            .args(["shield", "status"])
            .output()
            .unwrap();
        assert!(out(&status).contains("held by nobody"), "{status:?}");
        let done = Command::new(LEVADA)
            .args(["shield", "restore"])
            .output()
            .unwrap();
        assert!(
            out(&done).contains(&format!("core {} restored", bench.core)),
            "{done:?}"
        );
        bench.same();
        kill(pid, libc::SIGKILL);
        let again = Command::new(LEVADA)
            .args(["shield", "restore"])
            .output()
            .unwrap();
        assert_eq!(
            (again.status.code(), out(&again).as_str()),
            (Some(0), "nothing to restore")
        );
    }
}

#[test]
fn a_guard_that_is_killed_has_a_successor() {
    let Some(bench) = Bench::new("the guard killed") else {
        return;
    };
    let other = Sleeper::new(&["sleep", "20"]);
    let (mut child, pid) = bench.start(&["--by", "affinity"], "exec sleep 20");
    let first = guard();
    kill(first, libc::SIGKILL);
    until("another guard", 2, || guard() != first);
    // It watches ...
    let intruder = Sleeper::new(&["taskset", "-c", &bench.core.to_string(), "sleep", "20"]);
    until("evicted", 2, || mask(intruder.id()) == bench.others());
    // ... and restores.
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    until("restored", 2, || mask(other.id()) == bench.all);
    kill(pid, libc::SIGKILL);
    bench.same();
}

#[test]
fn a_shield_can_be_released_and_its_program_goes_on() {
    let Some(bench) = Bench::new("a release") else {
        return;
    };
    for way in bench.ways() {
        let (child, pid) = bench.start(&["--by", way], "exec sleep 20");
        let again = bench.shield(&[], &["true"]).output().unwrap();
        assert_eq!(again.status.code(), Some(125));
        assert!(
            err(&again).contains("is shielded already, by process"),
            "{again:?}"
        );
        let done = Command::new(LEVADA)
            .args(["shield", "release"])
            .output()
            .unwrap();
        assert_eq!(out(&done), format!("released core {}", bench.core));
        bench.same();
        assert_eq!(mask(pid), bench.all, "{way}");
        kill(pid, libc::SIGTERM);
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.signal(), Some(libc::SIGTERM));
        assert!(err(&done).contains("released"), "{done:?}");
    }
    let none = Command::new(LEVADA)
        .args(["shield", "release", "0"])
        .output()
        .unwrap();
    assert!(
        err(&none).contains("there is no shield on core 0"),
        "{none:?}"
    );
}

#[test]
fn who_comes_onto_the_core_is_kept_off() {
    let Some(bench) = Bench::new("intruders") else {
        return;
    };
    let core = bench.core.to_string();
    for way in bench.ways() {
        let (child, pid) = bench.start(&["--by", way], "sleep 20 & wait");
        let program = stat(&format!("/proc/{pid}/stat"), 4);
        assert_eq!(program, child.id().to_string());
        if way == "affinity" {
            // It may ask, and is moved.
            let intruder = Sleeper::new(&["taskset", "-c", &core, "sleep", "20"]);
            until("it was there", 2, || {
                text(format!("/proc/{}/comm", intruder.id())) == "sleep"
            });
            let took = until("evicted", 2, || mask(intruder.id()) == bench.others());
            println!("evicted within {took:?}");
        } else {
            let done = Command::new("taskset")
                .args(["-c", &core, "true"])
                .output()
                .unwrap();
            assert!(!done.status.success(), "{way}: {done:?}");
        }
        // Children of the program stay with it.
        let children = text(format!("/proc/{pid}/task/{pid}/children"));
        let grandchild: i32 = children.split(' ').next().unwrap().parse().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(mask(grandchild), core, "{way}");
        kill(grandchild, libc::SIGKILL);
        let done = child.wait_with_output().unwrap();
        assert_eq!(
            err(&done).contains("came onto it"),
            way == "affinity",
            "{done:?}"
        );
        bench.same();
    }
}

#[test]
fn children_born_meanwhile_get_all_cores_and_a_wish_of_one_s_own_is_left() {
    let Some(bench) = Bench::new("children") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "while [ ! -e {0} ]; do sleep 0.01; done; sleep 20 & echo $! > {0}.child; wait",
        go.display()
    );
    let parent = Sleeper::new(&["sh", "-c", &script]);
    let wishful = Sleeper::new(&["sleep", "20"]);
    let (child, pid) = bench.start(&["--by", "affinity"], "exec sleep 20");
    fs::write(&go, "").unwrap();
    let born = folder.path().join("go.child");
    until("a child", 2, || !text(&born).is_empty());
    let born: i32 = text(&born).parse().unwrap();
    assert_eq!(mask(born), bench.others());
    // 0 is what the shield itself gave on two cores: a wish can be seen where there are more.
    let wish = if bench.core > 1 {
        "0"
    } else {
        bench.all.as_str()
    };
    Command::new("taskset")
        .args(["-pc", wish, &wishful.id().to_string()])
        .output()
        .unwrap();
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    assert_eq!(
        (mask(parent.id()), mask(born)),
        (bench.all.clone(), bench.all.clone())
    );
    assert_eq!(mask(wishful.id()), wish);
    kill(born, libc::SIGKILL);
}

/// Shells that fork as fast as they can.
fn storm() -> Vec<Sleeper> {
    let script = "while :; do (:) & (exec true) & wait; done";
    (0..3)
        .map(|_| Sleeper::new(&["sh", "-c", script]))
        .collect()
}

#[test]
fn nothing_of_a_fork_storm_stays_on_the_core() {
    let Some(bench) = Bench::new("fork storms") else {
        return;
    };
    for way in bench.ways() {
        for _ in 0..4 {
            let storm = storm();
            let (child, pid) = bench.start(&["-q", "--by", way], "exec sleep 20");
            let mut seen: HashMap<(i32, String), Instant> = HashMap::new();
            let mut longest = Duration::ZERO;
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(150) {
                let here: Vec<i32> = numbers("/proc")
                    .into_iter()
                    .filter(|p| *p > 300 && *p != pid)
                    .collect();
                for id in here {
                    let at = format!("/proc/{id}/stat");
                    let key = (id, stat(&at, 22));
                    let mine = stat(&at, 4)
                        .parse()
                        .is_ok_and(|p: i32| storm.iter().any(|s| s.id() == p));
                    let may = mask(id);
                    if !mine || may != bench.all && may != bench.core.to_string() {
                        seen.remove(&key);
                        continue;
                    }
                    assert_eq!(way, "affinity", "{id} is on the core");
                    let first = seen.entry(key).or_insert_with(Instant::now);
                    longest = longest.max(first.elapsed());
                }
            }
            assert!(
                longest < Duration::from_millis(100),
                "{way}: on the core for {longest:?}"
            );
            kill(pid, libc::SIGTERM);
            child.wait_with_output().unwrap();
        }
        bench.same();
    }
}

#[test]
fn a_process_that_runs_gets_the_core_with_all_its_threads() {
    let Some(bench) = Bench::new("--pid") else {
        return;
    };
    for way in bench.ways() {
        let mut process = Sleeper::new(&["sleep", "20"]);
        let id = process.id().to_string();
        let mut command = bench.shield(&["--by", way, "--pid", &id], &[]);
        let tool = command.stderr(Stdio::piped()).spawn().unwrap();
        until("inside", 2, || mask(process.id()) == bench.core.to_string());
        // Ctrl-C ends the shield, not the process.
        std::thread::sleep(Duration::from_millis(30));
        kill(tool.id() as i32, libc::SIGINT);
        let done = tool.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{done:?}");
        assert_eq!(mask(process.id()), bench.all, "{way}");
        let tool = bench
            .shield(&["--by", way, "--pid", &id, "-q"], &[])
            .spawn()
            .unwrap();
        until("inside", 2, || mask(process.id()) == bench.core.to_string());
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        assert_eq!(tool.wait_with_output().unwrap().status.code(), Some(0));
        bench.same();
    }
}

#[test]
fn a_user_without_rights_moves_his_own() {
    let Some(bench) = Bench::new("a user without rights") else {
        return;
    };
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skipped("a user without rights", "there is no setpriv");
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let levada = folder.path().join("levada");
    fs::copy(LEVADA, &levada).unwrap();
    let nobody = |words: &[&str]| {
        let mut all = vec![
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        all.extend(words);
        all.iter().map(|w| w.to_string()).collect::<Vec<_>>()
    };
    let as_nobody = |words: &[&str]| {
        let words = nobody(words);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null());
        command.output().unwrap()
    };
    let words = nobody(&["sleep", "20"]);
    let own = Sleeper::new(&words.iter().map(String::as_str).collect::<Vec<_>>());
    until("his process", 2, || {
        text(format!("/proc/{}/comm", own.id())) == "sleep"
    });
    let foreign = Sleeper::new(&["sleep", "20"]);
    let core = bench.core.to_string();
    let show = format!(
        "grep Cpus_allowed_list /proc/$$/status /proc/{}/status /proc/{}/status",
        own.id(),
        foreign.id()
    );
    let levada = levada.to_str().unwrap();
    let done = as_nobody(&[levada, "shield", &core, "--", "sh", "-c", &show]);
    let said = out(&done);
    let masks: Vec<&str> = said
        .lines()
        .filter_map(|l| l.split_whitespace().last())
        .collect();
    assert_eq!(
        masks,
        [core.clone(), bench.others(), bench.all.clone()],
        "{done:?}"
    );
    assert!(err(&done).contains("your own processes only"), "{done:?}");
    assert_eq!(mask(own.id()), bench.all);
    for (options, said) in [
        (vec!["--by", "affinity"], "CAP_SYS_NICE"),
        (vec!["--fifo", "10"], "cannot have real-time priority"),
        (vec!["--weight", "1000"], "cannot have the weight"),
        (vec!["--deadline", "2ms/10ms"], "deadlines need"),
    ] {
        let mut words = vec![levada, "shield", &core, "-q"];
        words.extend(options);
        words.extend(["--", "true"]);
        let refused = as_nobody(&words);
        assert_eq!(refused.status.code(), Some(125), "{refused:?}");
        assert!(err(&refused).contains(said), "{refused:?}");
    }
    let id = foreign.id().to_string();
    let refused = as_nobody(&[levada, "shield", &core, "--pid", &id]);
    assert!(err(&refused).contains("another user's"), "{refused:?}");
    bench.same();
}

#[test]
fn classes_are_given() {
    let Some(bench) = Bench::new("classes") else {
        return;
    };
    // Class and priority of the program: fields 41 and 40; its nice value: 19.
    let fields = |options: &[&str]| {
        let script = "cut -d' ' -f19,40,41 /proc/self/stat; cat /proc/self/autogroup 2>/dev/null";
        let done = bench
            .shield(options, &["sh", "-c", script])
            .output()
            .unwrap();
        match done.status.success() {
            true => Ok(out(&done).lines().next().unwrap_or("").to_string()),
            false => Err(err(&done)),
        }
    };
    let group = text("/proc/self/autogroup");
    match fields(&["--fifo", "20"]) {
        Ok(got) => assert_eq!(got, "0 20 1"),
        Err(why) => assert!(why.contains("cpu.rt_runtime_us"), "{why}"),
    }
    assert_eq!(fields(&["--weight", "10000"]).unwrap(), "-20 0 0");
    assert_eq!(
        text("/proc/self/autogroup"),
        group,
        "the session's weight is as it was"
    );
    // The shell has the deadline; what it forks has not, so it is asked by a builtin.
    let script = "read -r line < /proc/$$/stat; echo ${line##*)}";
    let done = bench
        .shield(&["-q", "--deadline", "5ms/10ms"], &["sh", "-c", script])
        .output()
        .unwrap();
    match done.status.success() {
        true => assert_eq!(out(&done).split(' ').nth(41 - 3), Some("6"), "{done:?}"),
        false => assert!(err(&done).contains("deadline"), "{done:?}"),
    }
    bench.same();
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_changed() {
    let Some(bench) = Bench::new("wrong shields") else {
        return;
    };
    let core = bench.core.to_string();
    for (words, code, said) in [
        (vec!["4711", "--", "true"], 125, "there is no core 4711"),
        (
            vec![bench.all.as_str(), "--", "true"],
            125,
            "would leave no core",
        ),
        (
            vec!["--cores", "1000", "--", "true"],
            125,
            "one must remain",
        ),
        (vec!["--", "true"], 125, "which core?"),
        (vec!["x", "--", "true"], 2, "no list of cores"),
        (vec!["1-0", "--", "true"], 2, "no list of cores"),
        (vec![&core], 1, "what is to run there?"),
        (
            vec![&core, "--", "levada-no-such"],
            127,
            "there is no program levada-no-such",
        ),
        (
            vec![&core, "--", "/nowhere/x"],
            127,
            "there is no program /nowhere/x",
        ),
        (vec![&core, "--", "/etc/passwd"], 126, "may not be executed"),
        (vec![&core, "--", "/etc"], 126, "is a folder"),
        (vec![&core, "--pid", "4194304"], 1, "there is no process"),
        (vec![&core, "--pid", "2"], 1, "is a thread of the kernel"),
        (
            vec![&core, "--pid", "1", "--", "true"],
            2,
            "cannot be used with",
        ),
        (vec![&core, "--fifo", "100", "--", "true"], 2, "1..=99"),
        (
            vec![&core, "--deadline", "20ms/10ms", "--", "true"],
            2,
            "TIME/PERIOD",
        ),
        (
            vec![&core, "--by", "magic", "--", "true"],
            2,
            "invalid value",
        ),
        (vec!["status", "4711"], 1, "there is no core 4711"),
        (
            vec!["release", "4711"],
            1,
            "there is no shield on core 4711",
        ),
    ] {
        let done = Command::new(LEVADA)
            .arg("shield")
            .args(&words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(code), "{words:?}: {done:?}");
        assert!(err(&done).contains(said), "{words:?}: {done:?}");
        assert!(!err(&done).contains("panicked"), "{done:?}");
    }
    // Found, may be executed, and is none: the shield is up by then.
    let folder = tempfile::tempdir().unwrap();
    let rubbish = folder.path().join("rubbish");
    fs::write(&rubbish, b"\x7fELFrubbish").unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&rubbish, fs::Permissions::from_mode(0o755)).unwrap();
    let done = bench
        .shield(&["-q"], &[rubbish.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        matches!(done.status.code(), Some(126 | 127 | 2)),
        "{done:?}"
    );
    bench.same();
}

#[test]
fn status_shows_cores_and_load() {
    let Some(bench) = Bench::new("status") else {
        return;
    };
    let done = Command::new(LEVADA)
        .args(["shield", "status", &bench.core.to_string()])
        .output()
        .unwrap();
    let said = out(&done);
    for part in [
        "busy",
        "same cache",
        "cheapest to empty",
        "it would go to core",
        "no shield",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (child, pid) = bench.start(&["--cores", "1"][..0], "exec sleep 20");
    let json = Command::new(LEVADA)
        .args(["shield", "status", "--json"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["shields"][0]["cores"], bench.core.to_string());
    assert_eq!(json["shields"][0]["program"][0], pid);
    assert_eq!(json["shields"][0]["holder"], child.id());
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    bench.same();
}
