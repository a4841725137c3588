// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada doctor`: checks what this machine supports, what is missing, and how to fix it; with `--pid`, shows what
//! a running process does.

mod finding;
mod mcapi_limits;
mod process;

use crate::cli::DoctorArgs;
use crate::common::output::{self, Failure, GREEN, RED, YELLOW, paint, plain};
use crate::common::realtime;
use finding::{Finding, State, ok, problem};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    if let Some(pid) = args.pid {
        return process::look(pid);
    }
    let findings = vec![
        cores(),
        compiler(),
        cache(),
        barrier(),
        memory_files(),
        mcapi_limits::shared_memory(),
        mcapi_limits::message_queues(),
        map_count(),
        guards(),
        urgent(),
        real_time(realtime::usable(), realtime::throttled()),
        pinning(),
        timer(),
        perf(),
        tool("ffmpeg", &["-version"], "plays and converts .y4m video"),
        tool(
            "rsvg-convert",
            &["--version"],
            "turns levada graph's SVG into PNG",
        ),
        tool("dot", &["-V"], "draws levada graph's DOT"),
        tool(
            "gdb",
            &["--version"],
            "debugs compiled actors line by line, looks into processes (--pid)",
        ),
    ];
    let missing = findings.iter().any(|f| f.state == State::Missing);
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| {
                let state = match f.state {
                    State::Ok => "ok",
                    State::Advice => "advice",
                    State::Missing => "missing",
                };
                json!({"what": f.what, "state": state, "found": f.found, "help": f.help})
            })
            .collect();
        output::report(json!({"ready": !missing, "findings": list}), missing)?;
    } else {
        for f in &findings {
            let mark = match f.state {
                State::Ok => paint(GREEN, "ok     "),
                State::Advice => paint(YELLOW, "advice "),
                State::Missing => paint(RED, "missing"),
            };
            output::raw_line(&format!("{mark}  {:<14} {}", f.what, plain(&f.found)))?;
            if let Some(help) = &f.help {
                output::line(&format!("{:25}{help}", ""))?;
            }
        }
        output::line(if missing {
            "\nnot ready: see what is missing above"
        } else {
            "\nready to run networks"
        })?;
    }
    Ok(if missing {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The cores of the affinity mask, and the CPU quota of the container, in cores.
fn cores() -> Finding {
    let online = std::fs::read_to_string("/proc/cpuinfo").map_or(0, |t| {
        t.lines().filter(|l| l.starts_with("processor")).count()
    });
    let affinity = affinity();
    let quota = quota();
    let limit = quota.map_or(affinity, |q| affinity.min(q.ceil().max(1.0) as usize));
    let mut found = format!("{limit} of {}", online.max(affinity));
    if affinity < online {
        found += &format!("; affinity leaves {affinity}");
    }
    if let Some(quota) = quota {
        found += &format!("; the container's quota is {quota:.2} cores");
    }
    match limit {
        0 | 1 => problem(
            State::Advice,
            "cores",
            found,
            "with one core, networks run, but no two actors run at the same time",
        ),
        _ => ok("cores", found),
    }
}

fn affinity() -> usize {
    // SAFETY: a zeroed set is valid, and the call fills no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) {
            0 => libc::CPU_COUNT(&set) as usize,
            // The set is too small for the number of cores.
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The smallest CPU quota of the cgroups that hold this process, versions 2 and 1.
fn quota() -> Option<f64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut least: Option<f64> = None;
    let mut note = |quota: Option<f64>| {
        if let Some(q) = quota {
            least = Some(least.map_or(q, |l: f64| l.min(q)));
        }
    };
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next()?, parts.next()?);
        let (base, v2) = match controllers {
            "" => (PathBuf::from("/sys/fs/cgroup"), true),
            c if c.split(',').any(|c| c == "cpu") => (Path::new("/sys/fs/cgroup").join(c), false),
            _ => continue,
        };
        // The group and all above it; inside a container the path may not be visible.
        let mut folder = Some(base.join(path.trim_start_matches('/')));
        while let Some(at) = folder.filter(|f| f.starts_with(&base)) {
            note(if v2 { read_v2(&at) } else { read_v1(&at) });
            folder = at.parent().map(Path::to_path_buf);
        }
    }
    least
}

fn read_v2(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn read_v1(folder: &Path) -> Option<f64> {
    let number = |name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let quota = number("cpu.cfs_quota_us")?;
    (quota > 0.0).then_some(quota / number("cpu.cfs_period_us")?)
}

/// The first line that a command prints.
fn first_line(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    text.lines().next().map(str::to_string)
}

/// The line that installs a package with this machine's package manager.
fn install_line(package: &str) -> String {
    let managers = [
        ("apt-get", "apt-get install -y"),
        ("dnf", "dnf install -y"),
        ("pacman", "pacman -S --noconfirm"),
        ("apk", "apk add"),
        ("brew", "brew install"),
    ];
    let found = managers.iter().find(|(m, _)| on_path(m).is_some());
    match found {
        Some((_, line)) => format!("{line} {package}"),
        None => format!("install {package}"),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
}

/// The C compiler must support what networks need, not only exist.
fn compiler() -> Finding {
    use levada_cal::compile::{CompileError, Options, probe};
    let why = match probe(&Options::default()) {
        Ok(found) => return ok("C compiler", found),
        // The cache is reported in a line of its own.
        Err(CompileError::Cache { path, why }) => {
            let found = format!("not tried: {}: {why}", path.display());
            return problem(State::Missing, "C compiler", found, "see the cache below");
        }
        Err(e) => e.to_string(),
    };
    let mut lines = why.lines();
    let found = lines.next().unwrap_or("").to_string();
    let help = match std::env::var("CC").ok().filter(|c| !c.trim().is_empty()) {
        Some(cc) => format!("unset CC (it is {cc:?}), or name another"),
        None => format!(
            "networks are compiled through C: {}",
            install_line(c_packages())
        ),
    };
    problem(State::Missing, "C compiler", found, help)
}

/// The compiler and the C library's headers.
fn c_packages() -> &'static str {
    match (on_path("apt-get"), on_path("apk")) {
        (Some(_), _) => "gcc libc6-dev",
        (_, Some(_)) => "gcc musl-dev",
        _ => "gcc",
    }
}

fn cache() -> Finding {
    let folder = levada_cal::compile::cache_dir();
    let shown = folder.display().to_string();
    let probe = folder.join("probe");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| crate::common::output::partial(&probe))
        .and_then(|(mut file, probe)| {
            let written = file.write_all(b"x");
            let _ = std::fs::remove_file(probe);
            written
        });
    let used = levada_cal::compile::cache_size(&folder);
    match (written, levada_cal::compile::size_limit()) {
        (Ok(()), Ok(limit)) => {
            let (used, limit) = (output::bytes(used), output::bytes(limit));
            ok("cache", format!("{shown}, {used} of {limit}"))
        }
        (Ok(()), Err(why)) => problem(
            State::Missing,
            "cache",
            why,
            "unset it, or set it to a size: until then nothing is removed from the cache",
        ),
        (Err(e), _) => problem(
            State::Missing,
            "cache",
            format!("{shown}: {e}"),
            "compiled networks are kept there: make it writable, or set LEVADA_CACHE to a folder \
             that is",
        ),
    }
}

fn barrier() -> Finding {
    const QUERY: libc::c_long = 0;
    const PRIVATE_EXPEDITED: libc::c_long = 1 << 3;
    // SAFETY: a query has no effects.
    let offered = unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) };
    if offered > 0 && offered & PRIVATE_EXPEDITED != 0 {
        ok("membarrier", "the sleeping side pays for wake-ups")
    } else {
        problem(
            State::Advice,
            "membarrier",
            "not offered",
            "every push pays for a fence instead; Linux 4.14 and later offer it, unless a \
             container's filter forbids it",
        )
    }
}

fn memory_files() -> Finding {
    // SAFETY: the name is terminated; the descriptor is closed at once.
    let made = unsafe {
        let fd = libc::memfd_create(c"levada-doctor".as_ptr(), 0);
        if fd >= 0 {
            libc::close(fd);
        }
        fd >= 0
    };
    if made {
        ok("memfd", "rings are mapped twice: spans never wrap")
    } else {
        problem(
            State::Advice,
            "memfd",
            "not offered",
            "spans end at the edge of the ring; Linux 3.17 and later offer it",
        )
    }
}

fn map_count() -> Finding {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|t| t.trim().parse::<u64>().ok());
    match limit {
        Some(n) if n >= 65530 => ok("max_map_count", format!("{n} mappings")),
        Some(n) => problem(
            State::Advice,
            "max_map_count",
            format!("{n} mappings"),
            "each channel takes up to three: sysctl vm.max_map_count=65530",
        ),
        None => ok("max_map_count", "no limit found"),
    }
}

/// The maximum number of mappings of a process; Linux's default if it cannot be read.
fn most_mappings() -> u64 {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|t| t.trim().parse().ok())
        .unwrap_or(65530)
}

/// The cost of the guard page below a fiber's stack. As in the runtime, the advice is tested by an access, since
/// emulators accept any advice and do nothing.
fn guards() -> Finding {
    const GUARD_INSTALL: libc::c_int = 102;
    // SAFETY: the page and the pipe are ours, and given back; only the system call reads the page.
    let light = unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let (rights, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let at = libc::mmap(std::ptr::null_mut(), page, rights, flags, -1, 0);
        let mut ends = [0; 2];
        let mut light = false;
        if at != libc::MAP_FAILED {
            if libc::madvise(at, page, GUARD_INSTALL) == 0 && libc::pipe(ends.as_mut_ptr()) == 0 {
                light = libc::write(ends[1], at, 1) < 0
                    && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT);
                libc::close(ends[0]);
                libc::close(ends[1]);
            }
            libc::munmap(at, page);
        }
        light
    };
    guards_found(light, most_mappings())
}

fn guards_found(light: bool, mappings: u64) -> Finding {
    if light {
        return ok(
            "fibers",
            "their stacks' guards cost no mapping: memory is the limit",
        );
    }
    // A guard splits the mapping that its stack lies in.
    let found = format!("two mappings each: at most about {} fibers", mappings / 2);
    problem(
        State::Advice,
        "fibers",
        found,
        "for more: Linux 6.13 and later (light guards), or sysctl vm.max_map_count=1048576",
    )
}

/// The scheduling class that the thread of urgent fibers gets: the two that the runtime tries, on a thread that ends
/// at once.
fn urgent() -> Finding {
    let tried = std::thread::spawn(|| {
        // SAFETY: both change the calling thread alone, which does nothing else.
        unsafe {
            let mut param: libc::sched_param = std::mem::zeroed();
            param.sched_priority = libc::sched_get_priority_min(libc::SCHED_FIFO);
            let real_time = libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) == 0;
            let thread = libc::syscall(libc::SYS_gettid) as libc::id_t;
            let nice = !real_time && libc::setpriority(libc::PRIO_PROCESS, thread, -20) == 0;
            (real_time, nice)
        }
    });
    let (real_time, nice) = tried.join().unwrap_or((false, false));
    urgent_found(real_time, nice)
}

/// Whether workers can have a real-time class.
fn real_time(usable: Result<(), (String, String)>, throttled: Option<String>) -> Finding {
    match usable {
        Ok(()) => {
            let limit = throttled.map_or_else(String::new, |t| format!("; {t}"));
            let found = format!("workers can go before all else: levada host --realtime{limit}");
            ok("real time", found)
        }
        Err((why, help)) => {
            let found = format!("levada host --realtime cannot be used: {why}");
            problem(State::Advice, "real time", found, &help)
        }
    }
}

fn urgent_found(real_time: bool, nice: bool) -> Finding {
    const HELP: &str = "for the real-time class: run as root, or setcap cap_sys_nice+ep PROGRAM, or \
                        ulimit -r 1 (limits.conf: rtprio)";
    match (real_time, nice) {
        (true, _) => ok(
            "urgent fibers",
            "have the real-time class: they take the core from whatever runs",
        ),
        (_, true) => problem(
            State::Advice,
            "urgent fibers",
            "have no real-time class, only the lowest niceness: they come soon, not at once",
            HELP,
        ),
        _ => problem(
            State::Advice,
            "urgent fibers",
            "have no higher class: they share the core with what runs there",
            HELP,
        ),
    }
}

fn pinning() -> Finding {
    // SAFETY: reads the affinity and sets it to what it is.
    let may = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size, &mut set) == 0
            && libc::sched_setaffinity(0, size, &set) == 0
    };
    if may {
        ok("pinning", "workers can be pinned to cores")
    } else {
        problem(
            State::Advice,
            "pinning",
            "not allowed",
            "workers may be moved from core to core; allow sched_setaffinity",
        )
    }
}

fn timer() -> Finding {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(source).map(|s| s.trim().to_string()) {
        Ok(s)
            if ["tsc", "arch_sys_counter", "riscv_clocksource", "kvm-clock"]
                .contains(&s.as_str()) =>
        {
            ok("clock", format!("{s}, read without a system call"))
        }
        Ok(s) => problem(
            State::Advice,
            "clock",
            s,
            "reading the time takes a system call here, which makes counters dearer",
        ),
        Err(_) => ok("clock", "not known"),
    }
}

fn perf() -> Finding {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .ok()
        .and_then(|t| t.trim().parse::<i32>().ok());
    match level {
        Some(level) if level <= 2 => ok("perf", format!("perf_event_paranoid is {level}")),
        Some(level) => problem(
            State::Advice,
            "perf",
            format!("perf_event_paranoid is {level}"),
            "to profile actors with perf: sysctl kernel.perf_event_paranoid=2",
        ),
        None => problem(
            State::Advice,
            "perf",
            "not offered",
            "profiling with perf does not work here; levada run --stats does",
        ),
    }
}

fn tool(name: &'static str, version: &[&str], use_: &str) -> Finding {
    match first_line(name, version) {
        Some(line) => {
            let line: String = line.chars().take(60).collect();
            ok(name, line)
        }
        None => {
            let package = match name {
                "rsvg-convert" => "librsvg2-bin",
                "dot" => "graphviz",
                other => other,
            };
            problem(
                State::Advice,
                name,
                format!("not found (optional: {use_})"),
                install_line(package),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibers_cost_mappings_without_light_guards() {
        let heavy = guards_found(false, 65530);
        assert_eq!(heavy.state, State::Advice);
        assert!(heavy.found.contains("32765 fibers"), "{heavy:?}");
        assert!(heavy.help.unwrap().contains("vm.max_map_count"));
        let light = guards_found(true, 65530);
        assert_eq!(light.state, State::Ok);
        assert!(light.help.is_none());
    }

    #[test]
    fn whether_workers_can_go_first_is_said() {
        let usable = real_time(Ok(()), Some("950 of 1000 ms".to_string()));
        assert_eq!(usable.state, State::Ok);
        assert!(usable.found.contains("--realtime; 950 of"), "{usable:?}");
        let wants = ("no rights".to_string(), "ulimit -r 3".to_string());
        let not = real_time(Err(wants), None);
        assert_eq!(not.state, State::Advice);
        assert!(not.found.ends_with(": no rights"), "{not:?}");
        assert_eq!(not.help.as_deref(), Some("ulimit -r 3"));
    }

    #[test]
    fn urgent_fibers_have_what_the_system_gives() {
        assert_eq!(urgent_found(true, false).state, State::Ok);
        for nice in [true, false] {
            let without = urgent_found(false, nice);
            assert_eq!(without.state, State::Advice);
            assert!(without.help.unwrap().contains("rtprio"));
        }
        assert_ne!(
            urgent_found(false, true).found,
            urgent_found(false, false).found
        );
    }
}
