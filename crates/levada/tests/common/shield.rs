// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bench for `levada shield` on this machine: as root on two cores or more, else skipped with the reason.
//! Each shield holds for moments only, and each test compares all masks, cpusets and interrupts before and
//! after.

use super::skipped;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Where the tool keeps what was before, as root.
pub const LEDGER: &str = "/run/levada/shield";
pub const LEVADA: &str = env!("CARGO_BIN_EXE_levada");
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub struct Bench {
    _alone: MutexGuard<'static, ()>,
    /// The one that is shielded.
    pub core: u32,
    /// All that there are, as a mask shows them.
    pub all: String,
    before: BTreeMap<String, String>,
}

pub fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_string()
}

pub fn numbers(path: &str) -> Vec<i32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect()
}

/// Fields of a stat line from the state on; the state is field 3.
pub fn stat(path: &str, field: usize) -> String {
    let line = text(path);
    let rest = line.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
        .nth(field - 3)
        .unwrap_or("")
        .to_string()
}

pub fn mask(id: i32) -> String {
    let status = text(format!("/proc/{id}/status"));
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or("").trim().to_string()
}

/// Masks and cpusets of all threads by id and start; interrupts, work queues, groups.
pub fn everything() -> BTreeMap<String, String> {
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
            // Threads that cannot be moved by users are moved by the kernel.
            let flags: u64 = stat(&format!("{at}/stat"), 9).parse().unwrap_or(0);
            if flags & 0x0400_0000 != 0 {
                continue;
            }
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

/// Whether this is a guard that lives.
fn is_guard(pid: i32) -> bool {
    let name = text(format!("/proc/{pid}/comm"));
    name == "levada-guard" && stat(&format!("/proc/{pid}/stat"), 3) != "Z"
}

impl Bench {
    /// None where a shield cannot be tried.
    pub fn new(test: &str) -> Option<Bench> {
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
        // The guard of the previous shield has a last sweep, which widens the masks of threads that were created
        // under it.
        let end = Instant::now() + Duration::from_secs(1);
        while Instant::now() < end && numbers("/proc").into_iter().any(is_guard) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Bench {
            _alone: alone,
            core,
            all: online,
            before: everything(),
        })
    }

    pub fn others(&self) -> String {
        match self.core {
            1 => "0".into(),
            n => format!("0-{}", n - 1),
        }
    }

    /// The methods that work here, of those that hold against all processes; those in LEVADA_WAYS must work.
    pub fn ways(&self) -> Vec<&'static str> {
        let must = std::env::var("LEVADA_WAYS").unwrap_or_default();
        let works = |way: &&str| {
            let done = self.run(&["--method", way], &["true"]);
            if !done.status.success() {
                let why = String::from_utf8_lossy(&done.stderr).into_owned();
                assert!(!must.split(',').any(|m| m == *way), "{way}: {why}");
                skipped(&format!("a shield by {way}"), why.trim());
            }
            done.status.success()
        };
        ["cgroup-v2-partition", "cpuset-v1", "affinity"]
            .into_iter()
            .filter(works)
            .collect()
    }

    pub fn shield(&self, options: &[&str], program: &[&str]) -> Command {
        self.shield_on(self.core, options, program)
    }

    pub fn shield_on(&self, core: u32, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(LEVADA);
        command.args(["shield", &core.to_string()]).args(options);
        if !program.is_empty() {
            command.arg("--").args(program);
        }
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, options: &[&str], program: &[&str]) -> Output {
        self.shield(options, program).output().unwrap()
    }

    /// Starts a shell in a shield and waits until it says that it runs; its id.
    pub fn start(&self, options: &[&str], script: &str) -> (Child, i32) {
        self.start_on(self.core, options, script)
    }

    pub fn start_on(&self, core: u32, options: &[&str], script: &str) -> (Child, i32) {
        // One that begins with a trap says so when it has set it: a signal may follow at once.
        let script = match script.split_once("; ") {
            Some((trap, rest)) if trap.starts_with("trap ") => format!("{trap}; echo $$; {rest}"),
            _ => format!("echo $$; {script}"),
        };
        let mut command = self.shield_on(core, options, &["sh", "-c", &script]);
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
    pub fn same(&self) {
        let end = Instant::now() + Duration::from_secs(2 * patience());
        loop {
            let now = everything();
            let differs = |(k, v): &(&String, &String)| now.get(*k).is_some_and(|n| n != *v);
            let different: Vec<_> = self.before.iter().filter(differs).collect();
            let left = Path::new(LEDGER).exists();
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
                let _ = levada_shield(&[word]);
            }
        }
    }
}

/// How much longer everything may take than on a machine of these days: where it is emulated.
fn patience() -> u64 {
    let text = std::env::var("LEVADA_PATIENCE").unwrap_or_default();
    text.parse().unwrap_or(1)
}

pub fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    let seconds = seconds * patience();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(seconds),
            "{what}: not within {seconds} s"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    began.elapsed()
}

pub fn out(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).trim().to_string()
}

pub fn err(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).trim().to_string()
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: has no preconditions.
    unsafe { libc::kill(pid, signal) };
}

/// A process of the test's, which ends with it.
pub struct Sleeper(pub Child);

impl Sleeper {
    pub fn new(command: &[&str]) -> Sleeper {
        let mut child = Command::new(command[0]);
        Sleeper(
            child
                .args(&command[1..])
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    pub fn id(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `levada shield` with these words.
pub fn levada_shield(words: &[&str]) -> Output {
    let mut command = Command::new(LEVADA);
    command.arg("shield").args(words).stdin(Stdio::null());
    command.output().unwrap()
}

pub fn status() -> serde_json::Value {
    serde_json::from_slice(&levada_shield(&["status", "--json"]).stdout).unwrap()
}

/// The masks that `grep Cpus_allowed_list` has found.
pub fn masks(done: &Output) -> Vec<String> {
    let said = out(done);
    let last = |l: &str| Some(l.split_whitespace().last()?.to_string());
    said.lines().filter_map(last).collect()
}

/// The guard of the shield that there is.
pub fn guard() -> i32 {
    let json = status();
    json["shields"][0]["guard"]
        .as_i64()
        .unwrap_or_else(|| panic!("{json}")) as i32
}
