// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `--realtime`: the scheduling class of each thread; processes that the host starts have the usual class;
//! a runaway program is ended whatever its priority; the errors if the system permits no real-time class; other
//! programs get CPU time. Cases: no privileges, a limit that is one too low, a control group without real-time
//! bandwidth, priorities that do not exist.

use crate::common;
use crate::common::host::{ENDLESS, Host, TOP, held_pipe, rogues, sources};
use crate::common::{Place, Run, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LEVADA: &str = env!("CARGO_BIN_EXE_levada");

/// How a thread is scheduled: the kernel's number of its class, and its real-time priority.
type Class = (u32, u32);
const USUAL: Class = (libc::SCHED_OTHER as u32, 0);
const fn realtime(priority: u32) -> Class {
    (libc::SCHED_RR as u32, priority)
}

fn class(stat: &str) -> Option<Class> {
    let text = fs::read_to_string(stat).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some((fields[38].parse().ok()?, fields[37].parse().ok()?))
}

/// Of all threads of a process that bear a name.
fn classes(process: u32) -> BTreeMap<String, Vec<Class>> {
    let mut all: BTreeMap<String, Vec<Class>> = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let at = thread.unwrap().path();
        let name = fs::read_to_string(at.join("comm")).unwrap_or_default();
        if let Some(class) = class(at.join("stat").to_str().unwrap()) {
            all.entry(name.trim().to_string()).or_default().push(class);
        }
    }
    all
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// May this process have the class?
fn allowed(what: &str) -> bool {
    let tried = std::thread::spawn(|| {
        let most = libc::sched_param { sched_priority: 9 };
        // SAFETY: about the calling thread, which ends then.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &most) == 0 }
    });
    let allowed = tried.join().unwrap();
    if !allowed {
        skipped(what, "this user may have no real-time priority");
    }
    allowed
}

/// What it has at once is no more than it may have, though what is started takes the cores from the thread that
/// starts it.
#[test]
fn limits_are_kept_from_the_beginning() {
    if !allowed("limits of what takes all cores at once") {
        return;
    }
    let host = Host::begin_with(rogues(), &["--realtime=3"]);
    for name in ["one", "two"] {
        host.many(name);
    }
    let load = ["load", "src/p/Many.xdf", "--out=/dev/null", "--cpus=0.05"];
    for i in 0..2 {
        let name = format!("a{i}");
        let start = Instant::now();
        host.run(&[&load[..], &["--name", &name]].concat())
            .succeeds();
        std::thread::sleep(Duration::from_millis(300));
        let busy = host.seen(&name)["busy"].as_f64().unwrap();
        let most = 0.05 * start.elapsed().as_secs_f64() + 0.05;
        assert!(busy < most, "{busy} s of {most}");
        host.run(&["unload", &name, "--now"]).succeeds();
    }
}

#[test]
fn each_thread_has_the_class_of_what_it_does() {
    if !allowed("classes of threads") {
        return;
    }
    let host = Host::begin_with(rogues(), &["--realtime=3"]);
    let args = [
        "load",
        "src/p/Many.xdf",
        "--name=many",
        "--out=/dev/null",
        "--cpus=0.2",
    ];
    host.run(&args).succeeds();
    let (works, serves) = (vec![realtime(3)], vec![realtime(5)]);
    let expected = [
        ("levada/0", &works),
        ("levada/1", &works),
        ("levada/watchdog", &serves),
        ("levada/watch", &serves),
        ("levada/limits", &serves),
        ("signals", &serves),
    ];
    let process = host.child.id();
    for (name, class) in expected {
        until(name, || {
            (classes(process).get(name) == Some(class)).then_some(())
        });
    }
    let all = classes(process);
    let first = class(&format!("/proc/{process}/task/{process}/stat"));
    assert_eq!(first, Some(realtime(5)), "the thread that serves: {all:?}");
    // Applications' natives end on these, in turns with the workers.
    assert!(
        all["levada/reaper"].iter().all(|c| *c == realtime(3)),
        "{all:?}"
    );
    // Long requests let the workers run first, such as waiting for an application that drains into a pipe without a
    // reader.
    let unread = held_pipe(&host.place, "unread");
    let held = [
        "load",
        "src/p/Many.xdf",
        "--name=held",
        "--out=unread",
        "--cpus=0.2",
    ];
    host.run(&held).succeeds();
    until("it is full", || {
        let mut pipe = libc::pollfd {
            fd: unread.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open.
        (unsafe { libc::poll(&mut pipe, 1, 0) } == 0).then_some(())
    });
    let mut drains = host.place.command(&["unload", "held", "--socket=h.sock"]);
    drains.stdout(Stdio::null()).stderr(Stdio::null());
    let mut drains = drains.spawn().unwrap();
    let all = until("levada/request", || {
        let all = classes(process);
        all.contains_key("levada/request").then_some(all)
    });
    let usual = |c: &Class| c.1 == 0 && c.0 != libc::SCHED_RR as u32;
    for name in ["levada/request", "levada/map"] {
        assert!(
            all.get(name).into_iter().flatten().all(usual),
            "{name}: {all:?}"
        );
    }
    host.run(&["unload", "held", "--now"]); // the first of both takes it away
    drains.wait().unwrap();
    // It is said.
    assert!(
        host.said().contains("at real-time priority 3 on "),
        "{}",
        host.said()
    );
    let at = host.json(&["stats"])["host"]["realtime"].clone();
    assert_eq!(at, 3);
    let metrics = host.get("/metrics");
    assert!(
        metrics.contains("\nlevada_host_realtime_priority 3\n"),
        "{metrics}"
    );
    let stats = host.run(&["stats"]);
    assert!(
        stats
            .succeeds()
            .out
            .contains("workers at real-time priority 3"),
        "{stats:?}"
    );
    // A process that a native forks.
    host.run(&[
        "load",
        "src/p/Rogue7.xdf",
        "--name=forks",
        "--out=/dev/null",
    ])
    .succeeds();
    let left = until("it has forked", || {
        let bytes = fs::read(host.place.path("left")).ok()?;
        Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
    });
    let its = class(&format!("/proc/{left}/stat"));
    // SAFETY: a process of this test, which waits for nothing but that.
    unsafe { libc::kill(left, libc::SIGKILL) };
    assert_eq!(its, Some(USUAL));
    // A process of its own.
    host.run(&[
        "load",
        "src/p/Many.xdf",
        "--name=apart",
        "--isolate",
        "--out=/dev/null",
        "--cpus=0.1",
    ])
    .succeeds();
    let apart = host.seen("apart")["isolated"].as_u64().unwrap() as u32;
    for (name, its) in classes(apart) {
        assert!(its.iter().all(usual), "{name}: {its:?}");
    }
}

/// Endless actions on all workers, at a priority at which nothing else runs, are stopped; applications that are
/// loaded then compute correctly.
#[test]
fn a_program_that_runs_away_is_ended() {
    if !allowed("a program that runs away at real-time priority") {
        return;
    }
    let place = sources();
    place.write("src/p/Endless.cal", ENDLESS);
    let host = Host::begin_with(place, &["--realtime", "--action-time-limit=500"]);
    // Compiled while all is quiet.
    host.run(&["load", TOP, "--name=before", "--out=before.txt"])
        .succeeds();
    host.place.write(
        "all.toml",
        "[[application]]\nnetwork = \"src/p/Endless.cal\"\nname = \"a\"\n\
         [[application]]\nnetwork = \"src/p/Endless.cal\"\nname = \"b\"\n",
    );
    host.run(&["load", "all.toml"]).succeeds();
    for name in ["a", "b"] {
        let failed = host.until(name, |a| a["state"] == "failed");
        let why = failed["outcome"].to_string() + &failed["fault"].to_string();
        assert!(why.contains("500 ms"), "{failed}");
    }
    host.run(&["load", TOP, "--name=after", "--out=after.txt"])
        .succeeds();
    for name in ["before", "after"] {
        host.until(name, |a| a["state"] == "ended");
        let text = fs::read_to_string(host.place.path(&format!("{name}.txt"))).unwrap();
        assert_eq!(text, "1\n2\n3\n");
    }
}

/// Another process waits no longer than for its turn.
#[test]
fn a_program_next_to_it_gets_its_turns() {
    if !allowed("a program next to a host at real-time priority") {
        return;
    }
    let host = Host::begin_with(sources(), &["--realtime"]);
    host.many("busy");
    let other = host.place.run(&["run", TOP, "--out=other.txt"]);
    other.succeeds();
    let text = fs::read_to_string(host.place.path("other.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
    assert_eq!(host.seen("busy")["state"], "running");
}

#[test]
fn levada_run_has_real_time_priority_too() {
    if !allowed("levada run --realtime") {
        return;
    }
    let place = sources();
    let run = place.run(&["run", TOP, "--out=out.txt", "--realtime=97"]);
    run.succeeds();
    let text = fs::read_to_string(place.path("out.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
}

/// The system ends a process that computes longer than such a limit, so the limit is lifted where that is allowed.
#[test]
fn a_limit_of_the_system_ends_no_application() {
    use std::os::unix::process::CommandExt;
    if !allowed("a limit of how long may be computed") {
        return;
    }
    let place = sources();
    place.write("src/p/Endless.cal", ENDLESS);
    let args = [
        "run",
        "src/p/Endless.cal",
        "--realtime",
        "--action-time-limit=300",
    ];
    let mut run = place.command(&args);
    // SAFETY: between fork and exec only a call of the system, about a value of its own.
    unsafe {
        run.pre_exec(|| {
            let limit = libc::rlimit {
                rlim_cur: 100_000,
                rlim_max: libc::RLIM_INFINITY,
            };
            match libc::setrlimit(libc::RLIMIT_RTTIME, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    Run::new(run.output().unwrap()).refuses(1, &["300 ms"]);
}

#[test]
fn wrong_priorities_are_refused() {
    let place = sources();
    for wrong in ["0", "98", "-1", "high"] {
        let option = format!("--realtime={wrong}");
        for args in [&["host"][..], &["run", TOP]] {
            let run = place.run(&[args, &[&option]].concat());
            run.refuses(2, &["--realtime"]);
        }
    }
}

/// Runs `levada host` as a user without rights and with this real-time limit, until it refuses or says that it is
/// there.
fn as_unprivileged_user(place: &Place, levada: &str, limit: &str, option: &str) -> Run {
    let said = place.path("said");
    let mut child = Command::new("prlimit")
        .args([&format!("--rtprio={limit}"), "setpriv"])
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([levada, "host", option, "--workers=2"])
        .args(["--socket=unprivileged/h.sock", "--state=unprivileged/state"])
        .current_dir(place.path(""))
        .env("LEVADA_LEASES", "off")
        .stderr(fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    until("it refuses, or is there", || {
        let ended = child.try_wait().unwrap().is_some();
        let said = fs::read_to_string(&said).unwrap();
        (ended || said.contains("Ctrl-C ends it")).then_some(())
    });
    if child.try_wait().unwrap().is_none() {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    }
    let mut run = Run::new(child.wait_with_output().unwrap());
    run.err = fs::read_to_string(&said).unwrap();
    run
}

#[test]
fn a_user_without_rights_is_told_what_to_do() {
    let what = "a user without rights";
    let probe = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "prlimit",
        "true",
    ];
    let probed = Command::new("setpriv").args(probe).output();
    if !probed.is_ok_and(|done| done.status.success()) {
        return skipped(
            what,
            "there is no setpriv that changes users, or no prlimit",
        );
    }
    let place = sources();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let levada = place.path("levada");
    common::copy_program(LEVADA, &levada);
    fs::create_dir(place.path("unprivileged")).unwrap();
    std::os::unix::fs::chown(place.path("unprivileged"), Some(65534), Some(65534)).unwrap();
    let levada = levada.to_str().unwrap();
    let none = as_unprivileged_user(&place, levada, "0", "--realtime");
    let says = "error: the workers cannot have real-time priority 1: the system does not allow it";
    none.refuses(1, &[says, "ulimit -r 3", "LimitRTPRIO=3"]);
    let raised = Command::new("prlimit")
        .args(["--rtprio=4", "true"])
        .output();
    if !raised.is_ok_and(|done| done.status.success()) {
        return skipped("a user with a limit", "this user may not raise it");
    }
    let less = as_unprivileged_user(&place, levada, "3", "--realtime=2");
    less.refuses(1, &["real-time priority 2", "ulimit -r 4"]);
    as_unprivileged_user(&place, levada, "4", "--realtime=2").succeeds();
}

/// A group of processes that may run no real-time programs, where there are such groups (cgroup version 1).
struct Group(std::path::PathBuf);

impl Group {
    fn new() -> Option<Group> {
        let at = format!("/sys/fs/cgroup/cpu/levada-test-{}", std::process::id());
        fs::create_dir(&at).ok()?;
        let group = Group(at.into());
        let runtime = fs::read_to_string(group.0.join("cpu.rt_runtime_us")).ok()?;
        (runtime.trim() == "0").then_some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_without_real_time_is_named() {
    let Some(group) = Group::new() else {
        return skipped(
            "a group without real-time programs",
            "there are none to be made here",
        );
    };
    let place = sources();
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec \"$@\"",
        group.0.display()
    );
    let host = ["host", "--realtime", "--socket=h.sock", "--state=state"];
    let done = Command::new("sh")
        .args(["-c", &enter, "sh", LEVADA])
        .args(host)
        .current_dir(place.path(""))
        .output();
    let file = group.0.join("cpu.rt_runtime_us");
    let says = ["its cgroup has no real-time budget", file.to_str().unwrap()];
    Run::new(done.unwrap()).refuses(1, &says);
}
