// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Access to the kernel: its files under /proc and /sys, which a test may replace by folders of its
//! own, and the few system calls.

use crate::cpu_set::CoreSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The operations that change kernel state, and those that are not file reads.
pub trait Kernel {
    fn affinity(&self, tid: i32) -> io::Result<CoreSet>;
    fn set_affinity(&self, tid: i32, cores: &CoreSet) -> io::Result<()>;
    /// Writes to a file of the kernel in one call.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// The real kernel.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

/// The kernel's maximum number of cores, in words.
const MASK_WORDS: usize = 8192 / 64;

impl Kernel for Linux {
    fn affinity(&self, tid: i32) -> io::Result<CoreSet> {
        let mut words = [0u64; MASK_WORDS];
        // SAFETY: the call fills at most the size of the words.
        let got = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                tid,
                size_of_val(&words),
                words.as_mut_ptr(),
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let cores = (0..8 * got as u32).filter(|c| words[*c as usize / 64] >> (c % 64) & 1 == 1);
        Ok(cores.collect())
    }

    fn set_affinity(&self, tid: i32, cores: &CoreSet) -> io::Result<()> {
        let mut words = [0u64; MASK_WORDS];
        for core in cores.iter() {
            words[core as usize / 64] |= 1 << (core % 64);
        }
        // SAFETY: the call reads no more than the size of the words.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_setaffinity,
                tid,
                size_of_val(&words),
                words.as_ptr(),
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        use io::Write;
        fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(text.as_bytes())
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// The kernel's file systems, and its operations.
pub struct Machine<K: Kernel = Linux> {
    pub proc: PathBuf,
    pub sys: PathBuf,
    pub kernel: K,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn this() -> Machine {
        Machine {
            proc: "/proc".into(),
            sys: "/sys".into(),
            kernel: Linux,
        }
    }
}

/// The stat file of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub id: i32,
    pub name: String,
    pub state: char,
    pub parent: i32,
    pub session: i32,
    pub flags: u64,
    /// User and system time, in ticks.
    pub ticks: u64,
    /// Start time in ticks since boot; together with the id it identifies a process or thread
    /// uniquely.
    pub start: u64,
    /// The core that it ran on last.
    pub core: u32,
}

const KERNEL_THREAD: u64 = 0x0020_0000;
const NO_SET_AFFINITY: u64 = 0x0400_0000;

impl Stat {
    pub fn parse(text: &str) -> Option<Stat> {
        // The name may contain any characters, including parentheses.
        let (id, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Field numbers as in proc(5), where the state is field 3.
        let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
        Some(Stat {
            id: id.parse().ok()?,
            name: name.to_string(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            flags: field(9)?,
            ticks: field(14)? + field(15)?,
            start: field(22)?,
            core: field(39)? as u32,
        })
    }

    pub fn is_kernel(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// A kernel thread with a fixed affinity.
    pub fn is_bound(&self) -> bool {
        self.flags & NO_SET_AFFINITY != 0
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

impl<K: Kernel> Machine<K> {
    pub fn read(&self, path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    fn numbers_in(&self, folder: &Path) -> Vec<i32> {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<i32> = names
            .filter_map(|e| e.file_name().to_str()?.parse().ok())
            .collect();
        found.sort_unstable();
        found
    }

    /// The cores that are online.
    pub fn online(&self) -> CoreSet {
        let text = self.read(&self.sys.join("devices/system/cpu/online"));
        let listed = text.and_then(|t| t.parse().ok());
        listed
            .filter(|set: &CoreSet| !set.is_empty())
            .unwrap_or_else(|| self.kernel.affinity(0).unwrap_or_default())
    }

    pub fn processes(&self) -> Vec<i32> {
        self.numbers_in(&self.proc)
    }

    pub fn threads(&self, pid: i32) -> Vec<i32> {
        self.numbers_in(&self.proc.join(format!("{pid}/task")))
    }

    pub fn process(&self, pid: i32) -> Option<Stat> {
        Stat::parse(&self.read(&self.proc.join(format!("{pid}/stat")))?)
    }

    pub fn thread(&self, pid: i32, tid: i32) -> Option<Stat> {
        Stat::parse(&self.read(&self.proc.join(format!("{pid}/task/{tid}/stat")))?)
    }

    /// Whether the process with this id and start time is alive.
    pub fn lives(&self, pid: i32, start: u64) -> bool {
        self.process(pid)
            .is_some_and(|s| s.start == start && !s.is_dead())
    }

    /// The process that a thread belongs to.
    pub fn process_of(&self, tid: i32) -> i32 {
        let status = self.read(&self.proc.join(format!("{tid}/status")));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"));
        line.and_then(|l| l.trim().parse().ok()).unwrap_or(tid)
    }

    /// The user id of the process.
    pub fn owner(&self, pid: i32) -> Option<u32> {
        fs::metadata(self.proc.join(pid.to_string()))
            .ok()
            .map(|m| m.uid())
    }

    /// CPU time of a thread, in nanoseconds.
    pub fn run_time_ns(&self, pid: i32, tid: i32) -> Option<u64> {
        let text = self.read(&self.proc.join(format!("{pid}/task/{tid}/schedstat")))?;
        text.split_whitespace().next()?.parse().ok()
    }

    /// The current time in ticks since boot; later processes do not have a smaller start time.
    pub fn ticks_now(&self) -> u64 {
        // SAFETY: has no preconditions.
        let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let text = self.read(&self.proc.join("uptime")).unwrap_or_default();
        let seconds: Option<f64> = text.split(' ').next().and_then(|s| s.parse().ok());
        seconds.map_or(0, |s| (s * a_second) as u64)
    }

    /// Whether this process may set the affinity of other users' processes (CAP_SYS_NICE).
    pub fn may_move_all(&self) -> bool {
        const SYS_NICE: u64 = 23;
        let status = self
            .read(&self.proc.join("self/status"))
            .unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
        line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok())
            .is_some_and(|set| set >> SYS_NICE & 1 == 1)
    }

    /// The kernel's version, major and minor.
    pub fn release(&self) -> (u32, u32) {
        let text = self
            .read(&self.proc.join("sys/kernel/osrelease"))
            .unwrap_or_default();
        let mut parts = text
            .split(['.', '-'])
            .map(|p| p.trim().parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    /// The mount point of a cgroup hierarchy: of a version 1 controller, or of version 2 if none is
    /// given.
    pub fn cgroups(&self, controller: Option<&str>) -> Option<PathBuf> {
        let text = self.read(&self.proc.join("self/mounts"))?;
        text.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
            let options = words.next()?;
            let right = match controller {
                None => kind == "cgroup2",
                Some(c) => kind == "cgroup" && options.split(',').any(|o| o == c),
            };
            let at = at.strip_prefix("/sys/").map(|p| self.sys.join(p))?;
            right.then_some(at)
        })
    }

    /// The cgroup of a process, as a path below the root of its hierarchy.
    pub fn group_of(&self, pid: &str, controller: Option<&str>) -> Option<String> {
        let text = self.read(&self.proc.join(pid).join("cgroup"))?;
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let right = match controller {
                None => controllers.is_empty(),
                Some(c) => controllers.split(',').any(|o| o == c),
            };
            right.then(|| path.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let line = "71 (a) b (c) R 1 71 70 0 -1 4194560 7 0 0 0 12 3 0 0 20 0 1 0 4711 5 3 18 1 1 0 0 0 \
                    0 0 0 0 0 0 0 17 2 0 0 0 0 0 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            (stat.id, stat.name.as_str(), stat.state),
            (71, "a) b (c", 'R')
        );
        assert_eq!((stat.parent, stat.session), (1, 70));
        assert_eq!((stat.ticks, stat.start, stat.core), (15, 4711, 2));
        assert!(!stat.is_kernel() && !stat.is_bound() && !stat.is_dead());
        assert_eq!(Stat::parse("71 (a) R 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_machine_answers() {
        let machine = Machine::this();
        let me = std::process::id() as i32;
        let stat = machine.process(me).unwrap();
        assert_eq!(stat.id, me);
        assert!(machine.lives(me, stat.start) && !machine.lives(me, stat.start + 1));
        assert!(machine.processes().contains(&me));
        assert!(machine.threads(me).contains(&me));
        let mask = machine.kernel.affinity(0).unwrap();
        assert!(mask.has(stat.core) || !mask.is_empty());
        machine.kernel.set_affinity(0, &mask).unwrap();
        let none = machine.kernel.set_affinity(0, &CoreSet::default());
        assert_eq!(none.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(machine.release() > (3, 0));
    }
}
