// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shield: cores that one program has to itself. It is raised in the first way that works, held while
//! the program runs, and lowered: then all is as before.

use crate::groups;
use crate::guard::{Guard, News, Urgent};
use crate::knobs::{self, Steered};
use crate::ledger::{Entry, Ledger, Record, Task, Who, own_place, places};
use crate::load::Load;
use crate::machine::{Kernel, Machine};
use crate::restore::{self, Restored};
use crate::set::CoreSet;
use crate::sweep::{Broom, Swept};
use crate::topology::Topology;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The ways to hold a shield, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// A cgroup of version 2 that is a partition.
    Partition,
    /// Two cpusets of version 1.
    Cpusets,
    /// Masks of all threads, watched.
    Affinity,
    /// The same for the user's own processes only.
    Own,
}

impl Rung {
    pub const ALL: [Rung; 4] = [Rung::Partition, Rung::Cpusets, Rung::Affinity, Rung::Own];

    pub fn name(self) -> &'static str {
        match self {
            Rung::Partition => "partition",
            Rung::Cpusets => "cpusets",
            Rung::Affinity => "affinity",
            Rung::Own => "own",
        }
    }

    pub fn from_name(name: &str) -> Option<Rung> {
        Rung::ALL.into_iter().find(|r| r.name() == name)
    }

    /// What holds the shield, in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Rung::Partition => "a partition (cgroup version 2)",
            Rung::Cpusets => "a pair of cpusets (cgroup version 1)",
            Rung::Affinity => "affinities, watched",
            Rung::Own => "affinities of your own processes only, watched",
        }
    }

    /// Whether somebody must look again and again.
    pub fn is_watched(self) -> bool {
        matches!(self, Rung::Affinity | Rung::Own)
    }
}

/// Why there is no shield, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    pub help: Option<String>,
}

impl Error {
    pub fn new(what: impl Into<String>, help: &str) -> Error {
        Error {
            what: what.into(),
            help: Some(help.to_string()).filter(|h| !h.is_empty()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.what)
    }
}

impl std::error::Error for Error {}

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub cores: CoreSet,
    /// Only in this way.
    pub by: Option<Rung>,
    /// What is on the cores goes to this one alone.
    pub lightest: Option<u32>,
    /// Names or ids of processes that stay where they are.
    pub protect: Vec<String>,
    /// A process that runs already and is to be alone.
    pub pid: Option<i32>,
    /// Of that process this thread only.
    pub thread: Option<i32>,
    /// The cores must be apart for the scheduler, too: deadlines need that.
    pub apart: bool,
}

/// How a shield was raised.
#[derive(Clone, Debug)]
pub struct Raised {
    pub rung: Rung,
    /// The better ways, and why they do not work here.
    pub reasons: Vec<(Rung, String)>,
    pub others: CoreSet,
    pub swept: Swept,
    pub steered: Steered,
    pub took: Duration,
    inside: Option<PathBuf>,
}

/// Cores as a sentence has them: "core 3", "cores 2-3".
pub fn cores(set: &CoreSet) -> String {
    let s = if set.len() == 1 { "" } else { "s" };
    format!("core{s} {set}")
}

/// Whether these cores can be shielded at all; the cores that remain.
pub fn check(wanted: &CoreSet, topology: &Topology) -> Result<CoreSet, Error> {
    let unknown = wanted.without(&topology.online);
    let others = topology.online.without(wanted);
    let forbidden = wanted.without(&topology.allowed);
    if wanted.is_empty() {
        return Err(Error::new(
            "no core is named",
            "name one, as in: levada shield 3 -- ./program",
        ));
    }
    if !unknown.is_empty() {
        let what = format!(
            "there is no {}: this machine has {}",
            cores(&unknown),
            cores(&topology.online)
        );
        return Err(Error::new(what, ""));
    }
    if !forbidden.is_empty() {
        return Err(Error::new(
            format!(
                "this process may not use {}: it may use {}",
                cores(&forbidden),
                cores(&topology.allowed)
            ),
            "a container or taskset has narrowed it",
        ));
    }
    if others.is_empty() || topology.allowed.without(wanted).is_empty() {
        let what = match topology.online.len() {
            1 => format!("{} is the only one", cores(wanted)),
            _ => format!("{} would leave no core for everything else", cores(wanted)),
        };
        return Err(Error::new(what, "one core must remain"));
    }
    Ok(others)
}

/// The shields that there are, as far as this user may see them, with where each ledger lies.
pub fn there_are() -> Vec<(PathBuf, Record)> {
    let read = |path: PathBuf| Record::read(&path).ok().map(|record| (path, record));
    places().into_iter().filter_map(read).collect()
}

/// This user's shield is lowered if nobody holds it any more.
pub fn restore_left<K: Kernel>(machine: &Machine<K>) -> io::Result<Option<Restored>> {
    let Ok(own) = own_place() else {
        return Ok(None);
    };
    match Record::read(&own) {
        Ok(record) if !record.is_held(machine) => restore::settle(machine, &own),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(None),
    }
}

/// The broom of a request; `holder` is the process that holds the shield.
pub fn broom<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    rung: Rung,
    holder: i32,
) -> Broom {
    Broom {
        shield: request.cores.clone(),
        others: others.clone(),
        lightest: request.lightest,
        protect: request.protect.clone(),
        user: match rung {
            Rung::Own => machine.owner(std::process::id() as i32),
            _ => None,
        },
        inside: request
            .pid
            .filter(|_| request.thread.is_none())
            .into_iter()
            .collect(),
        threads: request.thread.into_iter().collect(),
        holder: request.pid.map_or(0, |_| holder),
        ..Broom::default()
    }
}

/// Raises by the first way that works. What it changes is in the ledger before.
pub fn raise_with<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    ledger: &mut Ledger,
) -> Result<Raised, Error> {
    let began = Instant::now();
    let mut reasons = Vec::new();
    let on_them = match request.lightest {
        Some(_) => threads_on(machine, &request.cores),
        None => Vec::new(),
    };
    for rung in Rung::ALL {
        if request.by.is_some_and(|by| by != rung) {
            continue;
        }
        match climb(machine, request, others, ledger, rung, &on_them) {
            Ok((inside, swept)) => {
                let failed = |e: io::Error| Error::new(format!("cannot write the ledger: {e}"), "");
                ledger
                    .add(&[Entry::Rung(rung.name().into())])
                    .map_err(failed)?;
                let steered = match rung {
                    Rung::Own => Steered::default(),
                    _ => knobs::steer(machine, &request.cores, others, ledger),
                };
                return Ok(Raised {
                    rung,
                    reasons,
                    others: others.clone(),
                    swept,
                    steered,
                    took: began.elapsed(),
                    inside,
                });
            }
            Err(why) => {
                // Nothing of it stays for the next one.
                if let Ok(record) = Record::read(&ledger.path) {
                    groups::dissolve(machine, &record);
                }
                reasons.push((rung, why));
            }
        }
    }
    let why: Vec<String> = reasons
        .iter()
        .map(|(r, why)| format!("{}: {why}", r.name()))
        .collect();
    Err(Error::new(
        format!(
            "{} cannot be shielded: {}",
            cores(&request.cores),
            why.join("; ")
        ),
        "",
    ))
}

type Climbed = (Option<PathBuf>, Swept);

fn climb<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    ledger: &mut Ledger,
    rung: Rung,
    on_them: &[Task],
) -> Result<Climbed, String> {
    let mut broom = broom(machine, request, others, rung, std::process::id() as i32);
    let own = std::process::id().to_string();
    let pid = request.pid.map_or(own, |p| p.to_string());
    let home = |controller: Option<&str>| -> Option<Entry> {
        let group = machine.group_of(&pid, controller)?;
        let base = machine.cgroups(controller)?;
        Some(Entry::Home(base.join(group.trim_start_matches('/'))))
    };
    let told = |ledger: &mut Ledger, entry: Option<Entry>| {
        let lines: Vec<Entry> = entry.into_iter().collect();
        ledger.add(&lines).map_err(|e| e.to_string())
    };
    let mut climbed = match rung {
        Rung::Partition if request.thread.is_some() => {
            return Err("it takes whole processes, not one thread".into());
        }
        Rung::Partition => {
            told(ledger, home(None))?;
            (
                Some(groups::partition(machine, &broom, ledger)?),
                Swept::default(),
            )
        }
        Rung::Cpusets => {
            told(ledger, home(Some("cpuset")))?;
            let (inside, swept) = groups::cpusets(machine, &broom, ledger)?;
            if request.apart {
                groups::split(machine, ledger)?;
            }
            (Some(inside), swept)
        }
        Rung::Affinity if request.apart => {
            return Err("deadlines need cores that are apart, not only masks".into());
        }
        Rung::Own if request.apart => return Err("deadlines need privileges".into()),
        Rung::Affinity if !machine.may_move_all() => {
            return Err("other users' processes need CAP_SYS_NICE".into());
        }
        Rung::Affinity | Rung::Own => {
            let swept = broom.clean(machine, ledger);
            (None, swept.map_err(|e| e.to_string())?)
        }
    };
    // With groups the mask that is asked for narrows further.
    if let (Some(lightest), Some(_)) = (request.lightest, &climbed.0) {
        let narrowed = on_them.iter().map(|t| Task {
            new: CoreSet::one(lightest),
            ..t.clone()
        });
        let narrowed: Vec<Task> = narrowed
            .filter(|t| match request.thread {
                Some(tid) => t.tid != tid,
                None => Some(t.pid) != request.pid,
            })
            .filter(|t| machine.process(t.pid).is_some_and(|s| !broom.protects(&s)))
            .collect();
        let lines: Vec<Entry> = narrowed.iter().cloned().map(Entry::Task).collect();
        ledger.add(&lines).map_err(|e| e.to_string())?;
        for task in narrowed {
            if machine.kernel.set_affinity(task.tid, &task.new).is_ok() {
                climbed.1.threads += 1;
            }
        }
    }
    Ok(climbed)
}

/// The threads that ran last on these cores and may be moved.
fn threads_on<K: Kernel>(machine: &Machine<K>, on: &CoreSet) -> Vec<Task> {
    let mut found = Vec::new();
    for pid in machine.processes() {
        for tid in machine.threads(pid) {
            let stat = machine.thread(pid, tid);
            let stat = stat.filter(|s| on.has(s.core) && !s.is_bound() && !s.is_dead());
            if let (Some(stat), Ok(old)) = (stat, machine.kernel.affinity(tid)) {
                found.push(Task {
                    pid,
                    tid,
                    start: stat.start,
                    new: old.clone(),
                    old,
                });
            }
        }
    }
    found
}

/// The program onto its cores, with all its threads.
pub fn take_in<K: Kernel>(
    machine: &Machine<K>,
    ledger: &mut Ledger,
    inside: Option<&PathBuf>,
    shield: &CoreSet,
    pid: i32,
    thread: Option<i32>,
    plain: Option<&CoreSet>,
) -> io::Result<()> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let start = machine.process(pid).ok_or_else(gone)?.start;
    ledger.add(&[Entry::Critical(Who { pid, start })])?;
    if let Some(inside) = inside {
        let (file, id) = match thread {
            Some(tid) => ("tasks", tid),
            None => ("cgroup.procs", pid),
        };
        return machine.kernel.write(&inside.join(file), &id.to_string());
    }
    // Threads that are born meanwhile have the old mask.
    for _ in 0..50 {
        let mut moved = 0;
        let all = machine.threads(pid).into_iter();
        for tid in all.filter(|t| thread.is_none_or(|one| one == *t)) {
            let now = machine.kernel.affinity(tid)?;
            let Some(stat) = machine.thread(pid, tid).filter(|_| now != *shield) else {
                continue;
            };
            ledger.add(&[Entry::Task(Task {
                pid,
                tid,
                start: stat.start,
                old: plain.unwrap_or(&now).clone(),
                new: shield.clone(),
            })])?;
            machine.kernel.set_affinity(tid, shield)?;
            moved += 1;
        }
        if moved == 0 {
            break;
        }
    }
    Ok(())
}

/// A shield of this machine, while it holds. When its holder dies, its guard lowers it.
pub struct Shield {
    pub raised: Raised,
    machine: Machine,
    ledger: Ledger,
    guard: Option<Guard>,
    request: Request,
    /// The mask that this process had.
    plain: CoreSet,
    /// The program that was started, for a new guard.
    program: Option<i32>,
}

impl Shield {
    /// Raises it. Call this while the process has one thread: the guard is a fork of it.
    pub fn raise(request: Request) -> Result<Shield, Error> {
        let machine = Machine::this();
        let _urgent = Urgent::now();
        free(&machine, &request.cores)?;
        let topology = Topology::of(&machine);
        let others = check(&request.cores, &topology)?;
        if let Some(pid) = request.pid {
            check_process(&machine, pid)?;
            check_thread(&machine, pid, request.thread)?;
        }
        let unkept = |e: io::Error| {
            let help = "what was before is written there, to be restored after a crash";
            Error::new(format!("cannot keep a record: {e}"), help)
        };
        let path = own_place().map_err(unkept)?;
        let me = std::process::id() as i32;
        let start = machine.process(me).map_or(0, |s| s.start);
        let begin = [
            Entry::Shield(request.cores.clone(), machine.ticks_now()),
            Entry::Tool(Who { pid: me, start }),
        ];
        let mut ledger = match Ledger::create(&path, &begin) {
            Ok(ledger) => ledger,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::new(
                    "another shield is being raised",
                    "wait for it, or see: levada shield status",
                ));
            }
            Err(e) => return Err(unkept(e)),
        };
        let undone = |what: &str, e: io::Error| {
            let _ = restore::settle(&Machine::this(), &path);
            Error::new(format!("{what}: {e}"), "")
        };
        let guard = Guard::start(&mut ledger, &request, &others);
        let guard = guard.map_err(|e| undone("cannot start the guard", e))?;
        // From here on, whatever happens to this process, the guard restores.
        let plain = topology.allowed.clone();
        let raised = raise_with(&machine, &request, &others, &mut ledger);
        let mut shield = match raised {
            Ok(raised) => Shield {
                raised,
                machine,
                ledger,
                guard: Some(guard),
                request,
                plain,
                program: None,
            },
            Err(e) => {
                guard.stop();
                let _ = restore::settle(&machine, &path);
                guard.end();
                return Err(e);
            }
        };
        if let Some(pid) = shield.request.pid {
            if let Err(e) = shield.admit(pid, None) {
                let what = format!("process {pid} cannot be moved: {e}");
                let _ = shield.lower();
                return Err(Error::new(what, "it must be yours, or you must be root"));
            }
            shield.watch();
        }
        Ok(shield)
    }

    fn admit(&mut self, pid: i32, plain: Option<&CoreSet>) -> io::Result<()> {
        let inside = self.raised.inside.as_ref();
        take_in(
            &self.machine,
            &mut self.ledger,
            inside,
            &self.request.cores,
            pid,
            self.request
                .thread
                .filter(|_| self.request.pid == Some(pid)),
            plain,
        )
    }

    /// Takes a process in that was forked for it and waits.
    pub fn take_in(&mut self, pid: i32) -> io::Result<()> {
        let plain = self.plain.clone();
        self.admit(pid, Some(&plain))?;
        self.program = Some(pid);
        self.watch();
        Ok(())
    }

    fn watch(&mut self) {
        if let Some(guard) = &self.guard {
            guard.watch(self.raised.rung, self.program.is_some());
        }
    }

    /// A file of the group that was made for the program, if there is one that has it.
    pub fn group_file(&self, name: &str) -> Option<PathBuf> {
        let file = self.raised.inside.as_ref()?.join(name);
        file.exists().then_some(file)
    }

    /// More of what was before, for the one who restores.
    pub fn note(&mut self, entry: Entry) -> io::Result<()> {
        self.ledger.add(&[entry])
    }

    /// To wait for news of the guard: readable when there are some.
    pub fn guard_descriptor(&self) -> Option<RawFd> {
        self.guard.as_ref().map(Guard::descriptor)
    }

    /// How many have come onto the cores and were sent away.
    pub fn evicted(&self) -> u64 {
        Record::read(&self.ledger.path).map_or(0, |r| r.evicted)
    }

    pub fn guard(&self) -> Option<i32> {
        self.guard.as_ref().map(|g| g.who.pid)
    }

    /// Call it when the guard has news. One that was killed gets a successor, and that is no news.
    pub fn hear_guard(&mut self) -> News {
        let Some(guard) = &self.guard else {
            return News::Released;
        };
        match guard.hear() {
            News::Released => {
                self.guard = None;
                News::Released
            }
            News::Dead => {
                let others = self.raised.others.clone();
                self.guard = None;
                if !self.ledger.path.exists() {
                    return News::Released;
                }
                self.guard = Guard::start(&mut self.ledger, &self.request, &others).ok();
                self.watch();
                News::None
            }
            news => news,
        }
    }

    /// All as it was before.
    pub fn lower(mut self) -> io::Result<Restored> {
        let _urgent = Urgent::now();
        let guard = self.guard.take();
        if let Some(guard) = &guard {
            guard.stop();
        }
        let restored = restore::settle(&self.machine, &self.ledger.path);
        if let Some(guard) = guard {
            guard.end();
        }
        Ok(restored?.unwrap_or_default())
    }
}

fn check_process(machine: &Machine, pid: i32) -> Result<(), Error> {
    match machine.process(pid).filter(|s| !s.is_dead()) {
        None => Err(Error::new(format!("there is no process {pid}"), "")),
        Some(s) if s.is_kernel() => Err(Error::new(
            format!("{pid} ({}) is a thread of the kernel", s.name),
            "",
        )),
        // SAFETY: has no preconditions.
        Some(s)
            if !machine.may_move_all()
                && machine.owner(pid) != Some(unsafe { libc::geteuid() }) =>
        {
            Err(Error::new(
                format!("process {pid} ({}) is another user's", s.name),
                "be root to move it",
            ))
        }
        Some(_) => Ok(()),
    }
}

fn check_thread(machine: &Machine, pid: i32, thread: Option<i32>) -> Result<(), Error> {
    match thread.filter(|tid| machine.thread(pid, *tid).is_none()) {
        None => Ok(()),
        Some(tid) => {
            let what = format!("process {pid} has no thread {tid}");
            Err(Error::new(
                what,
                "ls /proc/PID/task shows those that it has",
            ))
        }
    }
}

/// Whether there is room for a shield. What one left that nobody holds any more is restored first.
pub fn free<K: Kernel>(machine: &Machine<K>, wanted: &CoreSet) -> Result<(), Error> {
    restore_left(machine)
        .map_err(|e| Error::new(format!("cannot clean up after an earlier shield: {e}"), ""))?;
    there_are()
        .iter()
        .try_for_each(|(_, record)| taken(machine, record, wanted))
}

fn taken<K: Kernel>(machine: &Machine<K>, record: &Record, wanted: &CoreSet) -> Result<(), Error> {
    if !record.is_held(machine) && !record.cores.meets(wanted) {
        return Ok(());
    }
    let both = record.cores.and(wanted);
    let holder = record.tool.or(record.guard).map_or(0, |w| w.pid);
    let (what, help) = match both.is_empty() {
        false => (
            format!("{} is shielded already, by process {holder}", cores(&both)),
            format!("levada shield release {} ends that", record.cores),
        ),
        true => (
            format!(
                "there is a shield on {} already, by process {holder}, and there can be one at a time",
                cores(&record.cores)
            ),
            format!(
                "levada shield release {} ends that; one shield can have several cores",
                record.cores
            ),
        ),
    };
    Err(Error::new(what, &help))
}

/// Ends the shield on these cores, or every one; the program goes on without. Says which it ended.
pub fn release(wanted: Option<&CoreSet>) -> Result<Vec<CoreSet>, Error> {
    let machine = Machine::this();
    let mut released = Vec::new();
    for (path, record) in there_are() {
        if wanted.is_some_and(|w| !w.meets(&record.cores)) {
            continue;
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut told = None;
        // Its guard may have been replaced a moment ago.
        while path.exists() && Instant::now() < deadline {
            let Ok(now) = Record::read(&path) else { break };
            if now.since != record.since {
                break;
            }
            let guard = now.guard.filter(|g| machine.lives(g.pid, g.start));
            match guard {
                Some(guard) if told != Some(guard) => {
                    // SAFETY: has no preconditions.
                    if unsafe { libc::kill(guard.pid, libc::SIGTERM) } != 0 {
                        let e = io::Error::last_os_error();
                        return Err(Error::new(
                            format!("cannot end the shield on {}: {e}", cores(&record.cores)),
                            "it is another user's",
                        ));
                    }
                    told = Some(guard);
                }
                None if !now.is_held(&machine) => {
                    let settled = restore::settle(&machine, &path);
                    settled.map_err(|e| {
                        Error::new(format!("cannot restore by {}: {e}", path.display()), "")
                    })?;
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if Record::read(&path).is_ok_and(|now| now.since == record.since) {
            return Err(Error::new(
                format!("the shield on {} does not end", cores(&record.cores)),
                "",
            ));
        }
        released.push(record.cores);
    }
    if let (Some(wanted), true) = (wanted, released.is_empty()) {
        return Err(Error::new(
            format!("there is no shield on {}", cores(wanted)),
            "levada shield status shows those that there are",
        ));
    }
    Ok(released)
}

/// What a moment of this machine's load says.
pub fn look(moment: Duration) -> Load {
    let machine = Machine::this();
    let first = crate::load::Look::now(&machine);
    std::thread::sleep(moment);
    Load::between(&first, &crate::load::Look::now(&machine))
}

#[cfg(test)]
#[path = "shield_tests.rs"]
mod tests;
