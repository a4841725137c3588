// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simulated machine for tests: /proc and /sys in a temporary folder, threads with affinity
//! masks, and cgroups that behave like the kernel's as far as shields need it.

use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::shield::sweep::Sweeper;
use crate::undo_log::format::{Entry, LogState};
use crate::undo_log::{LockedLog, UndoLog};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub fn set(text: &str) -> CoreSet {
    text.parse().unwrap()
}

/// For core 3 of 4.
pub fn sweeper() -> Sweeper {
    Sweeper {
        shield: set("3"),
        others: set("0-2"),
        ..Sweeper::default()
    }
}

fn refused(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

#[derive(Clone, Debug)]
struct TestTask {
    pid: i32,
    parent: i32,
    name: String,
    flags: u64,
    core: u32,
    state: char,
    start: u64,
    /// The requested mask, which a cpuset only narrows (Linux 6.2 and later).
    original: CoreSet,
    /// The folder of its cpuset.
    group: PathBuf,
}

/// The state of the simulated kernel.
pub struct TestKernel {
    root: PathBuf,
    cores: CoreSet,
    tasks: RefCell<BTreeMap<i32, TestTask>>,
    forks: RefCell<BTreeMap<i32, i32>>,
    /// Files that fail to be written, with the error number.
    refuses: RefCell<BTreeMap<PathBuf, i32>>,
    /// Threads that cannot be moved.
    frozen: RefCell<BTreeSet<i32>>,
    /// Threads that can be moved only by their mask.
    settled: RefCell<BTreeSet<i32>>,
    /// The state that a partition reports, if not the requested one.
    pub partition_says: RefCell<Option<String>>,
    clock: Cell<u64>,
}

pub struct TestMachine {
    pub machine: Machine<TestKernel>,
    folder: tempfile::TempDir,
}

impl TestKernel {
    fn show(&self, tid: i32, task: &TestTask) {
        let folder = self.root.join(format!("proc/{}", task.pid));
        let line = format!(
            "{tid} ({}) {} {} 1 1 0 -1 {} 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {} 0 0 \
             0 0 0 0 0\n",
            task.name, task.state, task.parent, task.flags, task.start, task.core
        );
        let thread = folder.join(format!("task/{tid}"));
        fs::create_dir_all(&thread).unwrap();
        fs::write(thread.join("stat"), &line).unwrap();
        fs::write(thread.join("schedstat"), "0 0 0\n").unwrap();
        if tid == task.pid {
            fs::write(folder.join("stat"), &line).unwrap();
        }
    }

    fn allowed(&self, task: &TestTask) -> CoreSet {
        let file = task.group.join("cpuset.cpus");
        let text = fs::read_to_string(file).unwrap_or_default();
        let own = Some(set(text.trim())).filter(|s| !s.is_empty());
        own.unwrap_or_else(|| self.cores.without(&self.partitions(&task.group)))
    }

    /// The cores of the partitions below a group.
    fn partitions(&self, group: &Path) -> CoreSet {
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let below = fs::read_dir(group).into_iter().flatten().flatten();
        let valid = below.map(|e| e.path()).filter(|folder| {
            let kind = text(folder.join("cpuset.cpus.partition"));
            ["isolated", "root"].contains(&kind.trim())
        });
        valid.fold(CoreSet::default(), |all, folder| {
            all.or(&set(text(folder.join("cpuset.cpus")).trim()))
        })
    }

    fn mask(&self, task: &TestTask) -> CoreSet {
        let allowed = self.allowed(task);
        let both = task.original.and(&allowed);
        if both.is_empty() { allowed } else { both }
    }

    fn list_groups(&self) {
        let mut groups: BTreeMap<PathBuf, [BTreeSet<i32>; 2]> = BTreeMap::new();
        for (tid, task) in self.tasks.borrow().iter() {
            let [threads, processes] = groups.entry(task.group.clone()).or_default();
            threads.insert(*tid);
            processes.insert(task.pid);
        }
        let Ok(text) = fs::read_to_string(self.root.join("proc/self/mounts")) else {
            return;
        };
        for base in text.lines().filter_map(|l| l.split(' ').nth(1)) {
            let base = self.root.join(base.trim_start_matches('/'));
            let below = fs::read_dir(&base).into_iter().flatten().flatten();
            let mut folders = vec![base.clone()];
            folders.extend(below.map(|e| e.path()).filter(|p| p.is_dir()));
            for folder in folders {
                let inside = groups.get(&folder).cloned().unwrap_or_default();
                for (name, ids) in ["tasks", "cgroup.procs"].iter().zip(inside) {
                    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
                    fs::write(folder.join(name), &text).unwrap();
                }
            }
        }
    }
}

impl Kernel for TestKernel {
    fn affinity(&self, tid: i32) -> io::Result<CoreSet> {
        if tid == 0 {
            return Ok(self.cores.clone());
        }
        let tasks = self.tasks.borrow();
        let task = tasks.get(&tid).ok_or_else(|| refused(libc::ESRCH))?;
        Ok(self.mask(task))
    }

    fn set_affinity(&self, tid: i32, cores: &CoreSet) -> io::Result<()> {
        if self.frozen.borrow().contains(&tid) {
            return Err(refused(libc::EPERM));
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            let task = tasks.get_mut(&tid).ok_or_else(|| refused(libc::ESRCH))?;
            if task.flags & 0x0400_0000 != 0 || !cores.intersects(&self.allowed(task)) {
                return Err(refused(libc::EINVAL));
            }
            let child = self.forks.borrow_mut().remove(&tid);
            if let Some(child) = child {
                let mut born = task.clone();
                (born.pid, born.parent) = (child, task.pid);
                self.clock.set(self.clock.get() + 1);
                born.start = self.clock.get();
                self.show(child, &born);
                tasks.get_mut(&tid).unwrap().original = cores.clone();
                tasks.insert(child, born);
            } else {
                task.original = cores.clone();
            }
        }
        self.list_groups();
        Ok(())
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(number) = self.refuses.borrow().get(path) {
            return Err(refused(*number));
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        match name {
            "tasks" | "cgroup.procs" => {
                let id: i32 = text.trim().parse().unwrap();
                let group = path.parent().unwrap();
                {
                    let mut tasks = self.tasks.borrow_mut();
                    let task = tasks.get_mut(&id).ok_or_else(|| refused(libc::ESRCH))?;
                    if task.flags & 0x0400_0000 != 0 || self.settled.borrow().contains(&id) {
                        return Err(refused(libc::EINVAL));
                    }
                    let pid = task.pid;
                    for (tid, task) in tasks.iter_mut() {
                        if *tid == id || name == "cgroup.procs" && task.pid == pid {
                            task.group = group.to_path_buf();
                        }
                    }
                }
                self.list_groups();
                Ok(())
            }
            "cpuset.cpus.partition" => {
                let says = self.partition_says.borrow().clone();
                fs::write(path, says.unwrap_or_else(|| text.to_string()))
            }
            _ if path.exists() || path.parent().is_some_and(|p| p.join("tasks").exists()) => {
                fs::write(path, text)
            }
            _ => Err(refused(libc::ENOENT)),
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        if let Some(number) = self.refuses.borrow().get(path) {
            return Err(refused(*number));
        }
        fs::create_dir(path)?;
        for name in [
            "cpuset.cpus",
            "cpuset.mems",
            "cpuset.cpu_exclusive",
            "cpuset.sched_load_balance",
        ] {
            fs::write(path.join(name), "").unwrap();
        }
        self.list_groups();
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if self.tasks.borrow().values().any(|t| t.group == *path) {
            return Err(refused(libc::EBUSY));
        }
        fs::remove_dir_all(path)
    }
}

impl TestMachine {
    /// A machine with these cores and no processes.
    pub fn new(cores: &str) -> TestMachine {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        let fake = TestMachine {
            machine: Machine {
                proc: root.join("proc"),
                sys: root.join("sys"),
                kernel: TestKernel {
                    root,
                    cores: set(cores),
                    tasks: RefCell::default(),
                    forks: RefCell::default(),
                    refuses: RefCell::default(),
                    frozen: RefCell::default(),
                    settled: RefCell::default(),
                    partition_says: RefCell::default(),
                    clock: Cell::new(1000),
                },
            },
            folder,
        };
        fake.sys("devices/system/cpu/online", cores);
        fake.proc("sys/kernel/osrelease", "6.12.1-fake\n");
        fake.proc("self/status", "CapEff:\t000001ffffffffff\n");
        fake.proc("self/cgroup", "3:cpuset:/\n0::/\n");
        fake.proc("uptime", "10.00 20.00\n");
        fake
    }

    fn write(&self, path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn proc(&self, path: &str, text: &str) {
        self.write(self.machine.proc.join(path), text);
    }

    pub fn sys(&self, path: &str, text: &str) {
        self.write(self.machine.sys.join(path), text);
    }

    pub fn text(&self, path: &str) -> String {
        let text = fs::read_to_string(self.folder.path().join(path)).unwrap();
        text.trim().to_string()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.folder.path().join(path).exists()
    }

    /// Mounts cpusets (version 1).
    pub fn with_cpusets(&self) {
        self.proc(
            "self/mounts",
            "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n",
        );
        let cores = self.machine.kernel.cores.to_string();
        self.sys("fs/cgroup/cpuset/cpuset.cpus", &cores);
        self.sys("fs/cgroup/cpuset/cpuset.mems", "0\n");
        self.sys("fs/cgroup/cpuset/cpuset.cpu_exclusive", "1\n");
        self.sys("fs/cgroup/cpuset/cpuset.sched_load_balance", "1\n");
        self.home("fs/cgroup/cpuset");
    }

    /// Mounts version 2 with these controllers.
    pub fn with_version_2(&self, controllers: &str) {
        self.proc("self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        self.sys("fs/cgroup/cgroup.controllers", controllers);
        self.sys("fs/cgroup/cgroup.subtree_control", "cpu\n");
        self.home("fs/cgroup");
    }

    fn home(&self, path: &str) {
        for task in self.machine.kernel.tasks.borrow_mut().values_mut() {
            task.group = self.machine.sys.join(path);
        }
        self.machine.kernel.list_groups();
    }

    fn base(&self) -> PathBuf {
        let text = fs::read_to_string(self.machine.proc.join("self/mounts")).unwrap_or_default();
        match text.split(' ').nth(1) {
            Some(at) => self.folder.path().join(at.trim_start_matches('/')),
            None => PathBuf::new(),
        }
    }

    fn add(&self, tid: i32, task: TestTask) {
        let kernel = &self.machine.kernel;
        kernel.show(tid, &task);
        kernel.tasks.borrow_mut().insert(tid, task);
        kernel.list_groups();
    }

    pub fn task(&self, pid: i32, tid: i32, parent: i32, name: &str, mask: &str) {
        let kernel = &self.machine.kernel;
        kernel.clock.set(kernel.clock.get() + 1);
        let task = TestTask {
            pid,
            parent,
            name: name.into(),
            flags: 0,
            core: 0,
            state: 'S',
            start: kernel.clock.get(),
            original: set(mask),
            group: self.base(),
        };
        self.add(tid, task);
    }

    pub fn kernel_thread(&self, pid: i32, name: &str, mask: &str, movable: bool) {
        self.task(pid, pid, 2, name, mask);
        let mut task = self.machine.kernel.tasks.borrow()[&pid].clone();
        task.flags = 0x0020_0000 | if movable { 0 } else { 0x0400_0000 };
        self.add(pid, task);
    }

    fn change(&self, tid: i32, change: impl FnOnce(&mut TestTask)) {
        let mut task = self.machine.kernel.tasks.borrow()[&tid].clone();
        change(&mut task);
        self.add(tid, task);
    }

    pub fn last_core(&self, tid: i32, core: u32) {
        self.change(tid, |t| t.core = core);
    }

    pub fn reparent(&self, tid: i32, parent: i32) {
        self.change(tid, |t| t.parent = parent);
    }

    pub fn set_mask(&self, tid: i32, mask: &str) {
        self.change(tid, |t| t.original = set(mask));
    }

    /// The process ends; its id may be reused.
    pub fn end(&self, pid: i32) {
        let kernel = &self.machine.kernel;
        kernel.tasks.borrow_mut().retain(|_, t| t.pid != pid);
        fs::remove_dir_all(self.machine.proc.join(pid.to_string())).unwrap();
        kernel.list_groups();
    }

    pub fn mask(&self, tid: i32) -> CoreSet {
        self.machine.kernel.affinity(tid).unwrap()
    }

    pub fn group(&self, tid: i32) -> String {
        let group = self.machine.kernel.tasks.borrow()[&tid].group.clone();
        let below = group.strip_prefix(self.folder.path()).unwrap();
        below.display().to_string()
    }

    pub fn start(&self, tid: i32) -> u64 {
        self.machine.kernel.tasks.borrow()[&tid].start
    }

    pub fn forks_when_moved(&self, parent: i32, child: i32) {
        self.machine.kernel.forks.borrow_mut().insert(parent, child);
    }

    pub fn stays_in_its_group(&self, tid: i32) {
        self.machine.kernel.settled.borrow_mut().insert(tid);
    }

    pub fn refuses_moves(&self, tid: i32) {
        self.machine.kernel.frozen.borrow_mut().insert(tid);
    }

    pub fn refuses(&self, path: &str, number: i32) {
        let path = self.folder.path().join(path);
        self.machine
            .kernel
            .refuses
            .borrow_mut()
            .insert(path, number);
    }

    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("run/shield")
    }

    /// A new log with a shield on core 3.
    pub fn undo_log(&self) -> UndoLog {
        let _ = fs::remove_file(self.log_path());
        self.log_of("3")
    }

    /// The log of a shield on these cores, in addition to existing shields.
    pub fn log_of(&self, cores: &str) -> UndoLog {
        let number = set(cores).first().unwrap();
        let locked = LockedLog::open(&self.log_path()).unwrap();
        locked
            .begin(&Entry::Shield(set(cores), 0).line(number))
            .unwrap();
        UndoLog::of(&self.log_path(), number, None)
    }

    pub fn record(&self, undo_log: &UndoLog) -> LogState {
        LogState::read(&undo_log.path).unwrap()
    }

    /// All masks, groups and files that a shield changes, for comparison.
    pub fn everything(&self) -> String {
        let mut text = String::new();
        for (tid, task) in self.machine.kernel.tasks.borrow().iter() {
            let mask = self.machine.kernel.mask(task);
            text += &format!("{tid} {} {mask} {}\n", task.name, task.group.display());
        }
        let mut folders = vec![self.machine.sys.clone(), self.machine.proc.join("irq")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path())
                } else {
                    files.push(entry.path())
                }
            }
        }
        files.sort();
        for file in files {
            let content = fs::read_to_string(&file).unwrap();
            text += &format!("{} {}\n", file.display(), content.trim());
        }
        text
    }
}
