// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shield: cores that one program has to itself. It is raised in the first way that works, held while
//! the program runs, and lowered: then all is as before. There can be several at a time, of which each has
//! cores of its own; they hold in one way, since each way undoes what another has moved.

pub mod cgroups;
pub mod granted_masks;
pub mod guard;
pub mod irq_affinity;
mod method;
pub mod restore;
pub mod sweep;

use crate::core_load::Load;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::topology::Topology;
use crate::undo_log::format::{Entry, Held, Record, Task, Who};
use crate::undo_log::{Ledger, Locked, own_place, places};
use granted_masks::Given;
use guard::{Guard, News, Urgent};
use irq_affinity::Steered;
pub use method::Rung;
use restore::Restored;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sweep::{Broom, Swept};

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

fn are(set: &CoreSet) -> String {
    let verb = if set.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", cores(set))
}

/// Whether these cores can be shielded at all, beside those that are shielded already; the cores that remain.
pub fn check(wanted: &CoreSet, topology: &Topology, shielded: &CoreSet) -> Result<CoreSet, Error> {
    let unknown = wanted.without(&topology.online);
    let others = topology.online.without(wanted).without(shielded);
    let forbidden = wanted.without(&topology.allowed);
    if wanted.is_empty() {
        return Err(Error::new(
            "no core is named",
            "name one, as in: levada shield 3 -- ./program",
        ));
    }
    if !unknown.is_empty() {
        let what = format!(
            "there {} no {}: this machine has {}",
            if unknown.len() == 1 { "is" } else { "are" },
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
        let what = match shielded.is_empty() {
            true => what,
            false => format!("{what}: {} shielded already", are(shielded)),
        };
        return Err(Error::new(what, "one core must remain"));
    }
    Ok(others)
}

/// The shields that there are, as far as this user may see them, with where each one's ledger lies.
pub fn there_are() -> Vec<(PathBuf, Held)> {
    let read = |path: PathBuf| {
        let record = Record::read(&path).unwrap_or_default();
        let shields = record.shields.into_iter();
        shields.map(|held| (path.clone(), held)).collect::<Vec<_>>()
    };
    places().into_iter().flat_map(read).collect()
}

/// The cores that are shielded.
pub fn shielded(there: &[(PathBuf, Held)]) -> CoreSet {
    let cores = there.iter().map(|(_, held)| &held.cores);
    cores.fold(CoreSet::default(), |all, cores| all.or(cores))
}

/// Each of this user's shields is lowered that nobody holds any more.
pub fn restore_left<K: Kernel>(machine: &Machine<K>) -> io::Result<Vec<Restored>> {
    let mut restored = Vec::new();
    let Ok(own) = own_place() else {
        return Ok(restored);
    };
    let record = match Record::read(&own) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(restored),
        read => read?,
    };
    if record.shields.is_empty() {
        // Whoever was to write the first line was killed before.
        let locked = Locked::open(&own)?;
        if let Some(record) = locked.read()? {
            locked.replace(&record)?;
        }
    }
    for held in &record.shields {
        if held.holder(machine).is_none() {
            let ledger = Ledger::of(&own, held.number, held.tool);
            restored.extend(restore::settle(machine, &ledger)?);
        }
    }
    Ok(restored)
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
    let there = Record::read(&ledger.path).unwrap_or_default();
    let on_them = match request.lightest {
        Some(_) => threads_on(machine, &request.cores, &there.cores_but(ledger.number)),
        None => Vec::new(),
    };
    let other = there.but(ledger.number).next();
    for rung in Rung::ALL {
        if request.by.is_some_and(|by| by != rung) {
            continue;
        }
        if other.is_some_and(|other| other.rung != rung.name()) {
            continue;
        }
        match climb(machine, request, others, ledger, rung, &on_them) {
            Ok((inside, swept)) => {
                let failed = |e: io::Error| Error::new(format!("cannot write the ledger: {e}"), "");
                let steered = match rung {
                    Rung::Own => Steered::default(),
                    _ => irq_affinity::steer(machine, &request.cores, others, ledger),
                };
                // Last: the next one is raised when this stands, and must find all that we narrowed.
                ledger
                    .add(&[Entry::Rung(rung.name().into())])
                    .map_err(failed)?;
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
                if let Ok(record) = Record::read(&ledger.path)
                    && let Some(held) = record.shield(ledger.number)
                {
                    let _ = cgroups::dissolve(machine, &record, held);
                }
                reasons.push((rung, why));
            }
        }
    }
    let mut why: Vec<String> = reasons
        .iter()
        .map(|(r, why)| format!("{}: {why}", r.name()))
        .collect();
    let one_way = other.map(|o| format!("that on {} holds by {}", cores(&o.cores), o.rung));
    if why.is_empty() {
        why.extend(one_way.clone());
    }
    Err(Error::new(
        format!(
            "{} cannot be shielded: {}",
            cores(&request.cores),
            why.join("; ")
        ),
        &one_way.map_or(String::new(), |way| {
            format!("all shields hold in one way, and {way}")
        }),
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
                Some(cgroups::partition(machine, &broom, ledger)?),
                Swept::default(),
            )
        }
        Rung::Cpusets => {
            told(ledger, home(Some("cpuset")))?;
            let (inside, swept) = cgroups::cpusets(machine, &broom, ledger)?;
            if request.apart {
                cgroups::split(machine, ledger)?;
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
            told(ledger, request.lightest.map(Entry::Lightest))?;
            let swept = broom.clean(machine, ledger);
            (None, swept.map_err(|e| e.to_string())?)
        }
    };
    // With groups the mask that is asked for narrows further.
    if let (Some(lightest), Some(_)) = (request.lightest, &climbed.0) {
        told(ledger, Some(Entry::Lightest(lightest)))?;
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

/// The threads that ran last on these cores and may be moved. What the kernel has taken from all by now is
/// no wish of theirs.
fn threads_on<K: Kernel>(machine: &Machine<K>, on: &CoreSet, shielded: &CoreSet) -> Vec<Task> {
    let mut found = Vec::new();
    let online = machine.online();
    let usual = online.without(shielded);
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
                    old: if old == usual { online.clone() } else { old },
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
        let record = Record::read(&ledger.path)?;
        let given = Given::all(&record);
        for tid in all.filter(|t| thread.is_none_or(|one| one == *t)) {
            let now = machine.kernel.affinity(tid)?;
            let Some(stat) = machine.thread(pid, tid).filter(|_| now != *shield) else {
                continue;
            };
            ledger.add(&[Entry::Task(Task {
                pid,
                tid,
                start: stat.start,
                old: match plain {
                    Some(plain) => plain.clone(),
                    None => given.wish(machine, pid, (tid, stat.start), &now),
                },
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
        if let Some(pid) = request.pid {
            check_process(&machine, pid)?;
            check_thread(&machine, pid, request.thread)?;
        }
        let (mut ledger, others) = begin(&machine, &request)?;
        let guard = Guard::start(&mut ledger, &request, &others).map_err(|e| {
            let _ = restore::settle(&machine, &ledger);
            Error::new(format!("cannot start the guard: {e}"), "")
        })?;
        // From here on, whatever happens to this process, the guard restores.
        let plain = own_wish(&machine, &ledger);
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
                let _ = restore::settle(&machine, &ledger);
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
        self.ledger.own().map_or(0, |own| own.evicted)
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
                if self.ledger.own().is_none() {
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
        let restored = restore::settle(&self.machine, &self.ledger);
        if let Some(guard) = guard {
            guard.end();
        }
        Ok(restored?.unwrap_or_default())
    }
}

/// The shield's place in the ledger, and the cores that remain. One is raised at a time: what each finds is
/// what the one before has left.
fn begin(machine: &Machine, request: &Request) -> Result<(Ledger, CoreSet), Error> {
    /// So long another one may take to be raised.
    const PATIENCE: Duration = Duration::from_secs(5);
    let unkept = |e: io::Error| {
        let help = "what was before is written there, to be restored after a crash";
        Error::new(format!("cannot keep a record: {e}"), help)
    };
    let path = own_place().map_err(unkept)?;
    let pid = std::process::id() as i32;
    let start = machine.process(pid).map_or(0, |s| s.start);
    let me = Who { pid, start };
    let number = request.cores.first().unwrap_or(0);
    let until = Instant::now() + PATIENCE;
    loop {
        let locked = Locked::open(&path).map_err(unkept)?;
        let record = locked.read().map_err(unkept)?.unwrap_or_default();
        let rising = |held: &Held| held.rung.is_empty() && held.holder(machine).is_some();
        let Some(other) = record.shields.iter().find(|held| rising(held)) else {
            for held in &record.shields {
                taken(machine, held, &request.cores)?;
            }
            let topology = Topology::of(machine);
            let others = check(&request.cores, &topology, &shielded(&there_are()))?;
            let begin = [
                Entry::Shield(request.cores.clone(), machine.ticks_now()),
                Entry::Tool(me),
            ];
            let text: String = begin.iter().map(|e| e.line(number)).collect();
            locked.begin(&text).map_err(unkept)?;
            return Ok((Ledger::of(&path, number, Some(me)), others));
        };
        if Instant::now() > until {
            return Err(Error::new(
                format!(
                    "the shield on {} is still being raised",
                    cores(&other.cores)
                ),
                "wait for it, or see: levada shield status",
            ));
        }
        drop(locked);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The mask that this process would have if there were no shields.
fn own_wish(machine: &Machine, ledger: &Ledger) -> CoreSet {
    let mask = machine.kernel.affinity(0).unwrap_or_default();
    let me = std::process::id() as i32;
    let record = Record::read(&ledger.path).unwrap_or_default();
    match machine.process(me) {
        Some(own) => Given::all(&record).wish(machine, me, (me, own.start), &mask),
        None => mask,
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
    let own = own_place().ok();
    for (path, held) in there_are() {
        taken(machine, &held, wanted)?;
        // What this one moved, ours would take for a wish, and leave it so.
        if Some(path) != own && held.holder(machine).is_some() {
            let what = format!("there is a shield of root's, on {}", cores(&held.cores));
            return Err(Error::new(what, "beside it only root can have another"));
        }
    }
    Ok(())
}

fn taken<K: Kernel>(machine: &Machine<K>, held: &Held, wanted: &CoreSet) -> Result<(), Error> {
    let both = held.cores.and(wanted);
    if both.is_empty() {
        return Ok(());
    }
    let holder = held.holder(machine).or(held.tool).map_or(0, |w| w.pid);
    Err(Error::new(
        format!("{} shielded already, by process {holder}", are(&both)),
        &format!("levada shield release {} ends that", held.cores),
    ))
}

/// Ends the shields on these cores, or every one; the programs go on without. Says which it ended.
pub fn release(wanted: Option<&CoreSet>) -> Result<Vec<CoreSet>, Error> {
    let machine = Machine::this();
    let mut released = Vec::new();
    for (path, held) in there_are() {
        if wanted.is_some_and(|w| !w.meets(&held.cores)) {
            continue;
        }
        let ledger = Ledger::of(&path, held.number, held.tool);
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut told = None;
        // Its guard may have been replaced a moment ago.
        while let Some(now) = ledger.own().filter(|_| Instant::now() < deadline) {
            let guard = now.guard.filter(|g| machine.lives(g.pid, g.start));
            match guard {
                Some(guard) if told != Some(guard) => {
                    // SAFETY: has no preconditions.
                    if unsafe { libc::kill(guard.pid, libc::SIGTERM) } != 0 {
                        let e = io::Error::last_os_error();
                        return Err(Error::new(
                            format!("cannot end the shield on {}: {e}", cores(&held.cores)),
                            "it is another user's",
                        ));
                    }
                    told = Some(guard);
                }
                None if now.holder(&machine).is_none() => {
                    let settled = restore::settle(&machine, &ledger);
                    settled.map_err(|e| {
                        Error::new(format!("cannot restore by {}: {e}", path.display()), "")
                    })?;
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if ledger.own().is_some() {
            return Err(Error::new(
                format!("the shield on {} does not end", cores(&held.cores)),
                "",
            ));
        }
        released.push(held.cores);
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
    let first = crate::core_load::Look::now(&machine);
    std::thread::sleep(moment);
    Load::between(&first, &crate::core_load::Look::now(&machine))
}

#[cfg(test)]
mod tests;
