// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Raising a shield.

use super::cgroups;
use super::granted_masks::GrantedMasks;
use super::irq_affinity::{self, SteeredInterrupts};
use super::list::{check, check_unshielded, list_shields, shielded_cores};
use super::method::Method;
use super::request::{Error, Request, cores, sweeper_for};
use super::sweep::SweepReport;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::topology::Topology;
use crate::undo_log::format::{Entry, LogState, ProcessId, ShieldRecord, ThreadMove};
use crate::undo_log::{LockedLog, UndoLog, own_log_path};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How a shield was raised.
#[derive(Clone, Debug)]
pub struct Raised {
    pub method: Method,
    /// The better methods, and why they do not work here.
    pub reasons: Vec<(Method, String)>,
    pub others: CoreSet,
    pub swept: SweepReport,
    pub steered: SteeredInterrupts,
    pub took: Duration,
    pub(super) inside: Option<PathBuf>,
}

/// Raises the shield by the first method that works. Changes are logged before they are made.
pub fn raise_with<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    undo_log: &mut UndoLog,
) -> Result<Raised, Error> {
    let began = Instant::now();
    let mut reasons = Vec::new();
    let there = LogState::read(&undo_log.path).unwrap_or_default();
    let on_them = match request.lightest {
        Some(_) => threads_on(
            machine,
            &request.cores,
            &there.cores_of_others(undo_log.number),
        ),
        None => Vec::new(),
    };
    let other = there.others(undo_log.number).next();
    for method in Method::ALL {
        if request.method.is_some_and(|by| by != method) {
            continue;
        }
        if other.is_some_and(|other| other.method != method.name()) {
            continue;
        }
        match try_method(machine, request, others, undo_log, method, &on_them) {
            Ok((inside, swept)) => {
                let failed =
                    |e: io::Error| Error::new(format!("cannot write the undo log: {e}"), "");
                let steered = match method {
                    Method::Own => SteeredInterrupts::default(),
                    _ => irq_affinity::steer_away(machine, &request.cores, others, undo_log),
                };
                // Last, since the next shield may be raised from here on and must find all masks
                // narrowed.
                undo_log
                    .add(&[Entry::Method(method.name().into())])
                    .map_err(failed)?;
                return Ok(Raised {
                    method,
                    reasons,
                    others: others.clone(),
                    swept,
                    steered,
                    took: began.elapsed(),
                    inside,
                });
            }
            Err(why) => {
                // Nothing of the failed attempt may remain for the next method.
                if let Ok(record) = LogState::read(&undo_log.path)
                    && let Some(held) = record.shield(undo_log.number)
                {
                    let _ = cgroups::remove_groups(machine, &record, held);
                }
                reasons.push((method, why));
            }
        }
    }
    let mut why: Vec<String> = reasons
        .iter()
        .map(|(r, why)| format!("{}: {why}", r.name()))
        .collect();
    let one_way = other.map(|o| format!("that on {} holds by {}", cores(&o.cores), o.method));
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

type MethodAttempt = (Option<PathBuf>, SweepReport);

fn try_method<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    undo_log: &mut UndoLog,
    method: Method,
    on_them: &[ThreadMove],
) -> Result<MethodAttempt, String> {
    let mut sweeper = sweeper_for(machine, request, others, method, std::process::id() as i32);
    let own = std::process::id().to_string();
    let pid = request.pid.map_or(own, |p| p.to_string());
    let home = |controller: Option<&str>| -> Option<Entry> {
        let group = machine.group_of(&pid, controller)?;
        let base = machine.cgroups(controller)?;
        Some(Entry::Home(base.join(group.trim_start_matches('/'))))
    };
    let told = |undo_log: &mut UndoLog, entry: Option<Entry>| {
        let lines: Vec<Entry> = entry.into_iter().collect();
        undo_log.add(&lines).map_err(|e| e.to_string())
    };
    let mut attempt = match method {
        Method::Partition if request.thread.is_some() => {
            return Err("it takes whole processes, not one thread".into());
        }
        Method::Partition => {
            told(undo_log, home(None))?;
            (
                Some(cgroups::raise_partition(machine, &sweeper, undo_log)?),
                SweepReport::default(),
            )
        }
        Method::Cpusets => {
            told(undo_log, home(Some("cpuset")))?;
            let (inside, swept) = cgroups::raise_cpusets(machine, &sweeper, undo_log)?;
            if request.apart {
                cgroups::disable_load_balance(machine, undo_log)?;
            }
            (Some(inside), swept)
        }
        Method::Affinity if request.apart => {
            return Err("deadlines need a scheduling domain, not only masks".into());
        }
        Method::Own if request.apart => return Err("deadlines need privileges".into()),
        Method::Affinity if !machine.may_move_all() => {
            return Err("other users' processes need CAP_SYS_NICE".into());
        }
        Method::Affinity | Method::Own => {
            told(undo_log, request.lightest.map(Entry::Lightest))?;
            let swept = sweeper.clean(machine, undo_log);
            (None, swept.map_err(|e| e.to_string())?)
        }
    };
    // With cgroups, a requested target core narrows the masks further.
    if let (Some(lightest), Some(_)) = (request.lightest, &attempt.0) {
        told(undo_log, Some(Entry::Lightest(lightest)))?;
        let narrowed = on_them.iter().map(|t| ThreadMove {
            new: CoreSet::one(lightest),
            ..t.clone()
        });
        let narrowed: Vec<ThreadMove> = narrowed
            .filter(|t| match request.thread {
                Some(tid) => t.tid != tid,
                None => Some(t.pid) != request.pid,
            })
            .filter(|t| {
                machine
                    .process(t.pid)
                    .is_some_and(|s| !sweeper.protects(&s))
            })
            .collect();
        let lines: Vec<Entry> = narrowed.iter().cloned().map(Entry::ThreadMove).collect();
        undo_log.add(&lines).map_err(|e| e.to_string())?;
        for task in narrowed {
            if machine.kernel.set_affinity(task.tid, &task.new).is_ok() {
                attempt.1.threads += 1;
            }
        }
    }
    Ok(attempt)
}

/// The movable threads that ran last on these cores. A mask without the shielded cores is that of
/// an unrestricted thread.
fn threads_on<K: Kernel>(
    machine: &Machine<K>,
    on: &CoreSet,
    shielded_cores: &CoreSet,
) -> Vec<ThreadMove> {
    let mut found = Vec::new();
    let online = machine.online();
    let usual = online.without(shielded_cores);
    for pid in machine.processes() {
        for tid in machine.threads(pid) {
            let stat = machine.thread(pid, tid);
            let stat = stat.filter(|s| on.has(s.core) && !s.is_bound() && !s.is_dead());
            if let (Some(stat), Ok(old)) = (stat, machine.kernel.affinity(tid)) {
                found.push(ThreadMove {
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

/// Moves the program with all its threads onto its cores.
pub fn take_in<K: Kernel>(
    machine: &Machine<K>,
    undo_log: &mut UndoLog,
    inside: Option<&PathBuf>,
    shield: &CoreSet,
    pid: i32,
    thread: Option<i32>,
    plain: Option<&CoreSet>,
) -> io::Result<()> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let start = machine.process(pid).ok_or_else(gone)?.start;
    undo_log.add(&[Entry::Critical(ProcessId { pid, start })])?;
    if let Some(inside) = inside {
        let (file, id) = match thread {
            Some(tid) => ("tasks", tid),
            None => ("cgroup.procs", pid),
        };
        return machine.kernel.write(&inside.join(file), &id.to_string());
    }
    // Repeated for threads created meanwhile, which have the old mask.
    for _ in 0..50 {
        let mut moved = 0;
        let all = machine.threads(pid).into_iter();
        let record = LogState::read(&undo_log.path)?;
        let granted = GrantedMasks::all(&record);
        for tid in all.filter(|t| thread.is_none_or(|one| one == *t)) {
            let now = machine.kernel.affinity(tid)?;
            let Some(stat) = machine.thread(pid, tid).filter(|_| now != *shield) else {
                continue;
            };
            undo_log.add(&[Entry::ThreadMove(ThreadMove {
                pid,
                tid,
                start: stat.start,
                old: match plain {
                    Some(plain) => plain.clone(),
                    None => granted.original_mask(machine, pid, (tid, stat.start), &now),
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

/// Registers the shield in the log and returns the remaining cores. Shields are raised one at a
/// time, since each must find the complete state of the one before.
pub(super) fn begin(machine: &Machine, request: &Request) -> Result<(UndoLog, CoreSet), Error> {
    /// How long another shield may take to be raised.
    const RAISE_TIMEOUT: Duration = Duration::from_secs(5);
    let unkept = |e: io::Error| {
        let help = "the state before is written there, to be restored after a crash";
        Error::new(format!("cannot open the undo log: {e}"), help)
    };
    let path = own_log_path().map_err(unkept)?;
    let pid = std::process::id() as i32;
    let start = machine.process(pid).map_or(0, |s| s.start);
    let me = ProcessId { pid, start };
    let number = request.cores.first().unwrap_or(0);
    let until = Instant::now() + RAISE_TIMEOUT;
    loop {
        let locked = LockedLog::open(&path).map_err(unkept)?;
        let record = locked.read().map_err(unkept)?.unwrap_or_default();
        let rising = |held: &ShieldRecord| held.method.is_empty() && held.holder(machine).is_some();
        let Some(other) = record.shields.iter().find(|held| rising(held)) else {
            for held in &record.shields {
                check_unshielded(machine, held, &request.cores)?;
            }
            let topology = Topology::of(machine);
            let others = check(&request.cores, &topology, &shielded_cores(&list_shields()))?;
            let begin = [
                Entry::Shield(request.cores.clone(), machine.ticks_now()),
                Entry::Tool(me),
            ];
            let text: String = begin.iter().map(|e| e.line(number)).collect();
            locked.begin(&text).map_err(unkept)?;
            return Ok((UndoLog::of(&path, number, Some(me)), others));
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

/// The affinity mask of this process without shields.
pub(super) fn own_original_mask(machine: &Machine, undo_log: &UndoLog) -> CoreSet {
    let mask = machine.kernel.affinity(0).unwrap_or_default();
    let me = std::process::id() as i32;
    let record = LogState::read(&undo_log.path).unwrap_or_default();
    match machine.process(me) {
        Some(own) => GrantedMasks::all(&record).original_mask(machine, me, (me, own.start), &mask),
        None => mask,
    }
}

pub(super) fn check_process(machine: &Machine, pid: i32) -> Result<(), Error> {
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

pub(super) fn check_thread(machine: &Machine, pid: i32, thread: Option<i32>) -> Result<(), Error> {
    match thread.filter(|tid| machine.thread(pid, *tid).is_none()) {
        None => Ok(()),
        Some(tid) => {
            let what = format!("process {pid} has no thread {tid}");
            Err(Error::new(what, "ls /proc/PID/task lists its threads"))
        }
    }
}
