// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shields by cgroups, which the kernel enforces without polling: a partition (version 2), which
//! takes the cores away from all other groups, or cpusets (version 1), one for each program and one
//! into which all other processes are moved.

use super::granted_masks::GrantedMasks;
use super::irq_affinity::is_kernel_path;
use super::sweep::{KERNEL_BOUND, PROTECTED, REFUSED, SweepReport, Sweeper};
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine, Stat};
use crate::undo_log::UndoLog;
use crate::undo_log::format::{Entry, KernelFile, LogState, ShieldRecord, ThreadMove};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a method does not work on this machine.
pub type Reason = String;

const PROGRAM_GROUP_PREFIX: &str = "levada-shield-";
const OTHERS_GROUP: &str = "levada-others";

/// The group of the program on these cores.
fn program_group(base: &Path, cores: &CoreSet) -> PathBuf {
    base.join(format!("{PROGRAM_GROUP_PREFIX}{cores}"))
}

/// Whether a folder has the name of a group of a shield.
fn is_shield_group(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or("");
    name == OTHERS_GROUP || name.starts_with(PROGRAM_GROUP_PREFIX)
}

fn with_context(what: &str, e: io::Error) -> Reason {
    format!("{what}: {e}")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Creates a partition (version 2). The kernel itself moves other threads away from the cores.
pub fn raise_partition<K: Kernel>(
    machine: &Machine<K>,
    sweeper: &Sweeper,
    undo_log: &mut UndoLog,
) -> Result<PathBuf, Reason> {
    let base = machine
        .cgroups(None)
        .ok_or("cgroups of version 2 are not mounted")?;
    let controllers = machine.read(&base.join("cgroup.controllers"));
    if !words(&controllers.unwrap_or_default()).any(|c| c == "cpuset") {
        return Err(match machine.cgroups(Some("cpuset")) {
            Some(_) => "version 1 has the cpusets here".into(),
            None => "version 2 has no cpusets here".into(),
        });
    }
    if !sweeper.exclude.is_empty() {
        return Err("it would move protected processes, too".into());
    }
    let record = |undo_log: &mut UndoLog, entry| {
        undo_log
            .add(&[entry])
            .map_err(|e| with_context("undo log", e))
    };
    let control = base.join("cgroup.subtree_control");
    let there = machine.read(&control).unwrap_or_default();
    if !words(&there).any(|c| c == "cpuset") {
        let kernel_file = KernelFile {
            path: control.clone(),
            old: "-cpuset".into(),
            new: "+cpuset".into(),
        };
        record(undo_log, Entry::KernelFile(kernel_file))?;
        let written = machine.kernel.write(&control, "+cpuset");
        written.map_err(|e| with_context("cpusets of version 2 cannot be used", e))?;
    }
    let lost = masks_the_kernel_forgets(machine, sweeper, undo_log)
        .map_err(|e| with_context("undo log", e))?;
    undo_log
        .add(&lost)
        .map_err(|e| with_context("undo log", e))?;
    let inside = program_group(&base, &sweeper.shield);
    record(undo_log, Entry::Inside(inside.clone()))?;
    let made = machine.kernel.make_dir(&inside);
    made.map_err(|e| with_context("no cgroup can be made", e))?;
    // An isolated partition does not balance load between its cores, which programs with several
    // threads need.
    let kind = match sweeper.shield.len() {
        1 => "isolated",
        _ => "root",
    };
    let put = |file: &str, text: &str| {
        let written = machine.kernel.write(&inside.join(file), text);
        written.map_err(|e| with_context(file, e))
    };
    put("cpuset.cpus", &sweeper.shield.to_string())?;
    put("cpuset.cpus.partition", kind)?;
    let is = machine.read(&inside.join("cpuset.cpus.partition"));
    match is.unwrap_or_default().trim() {
        is if is == kind => Ok(inside),
        is => Err(format!("the partition is {is}")),
    }
}

/// The affinity masks that the kernel discards when cores become a partition: before Linux 6.2 all
/// masks, and in every version those of kernel threads.
fn masks_the_kernel_forgets<K: Kernel>(
    machine: &Machine<K>,
    sweeper: &Sweeper,
    undo_log: &UndoLog,
) -> io::Result<Vec<Entry>> {
    let forgets = machine.release() < (6, 2);
    let shielded_cores = LogState::read(&undo_log.path)?.cores_of_others(undo_log.number);
    let usual = sweeper.shield.or(&sweeper.others);
    let all = usual.or(&shielded_cores);
    let mut lost = Vec::new();
    for pid in machine.processes() {
        let Some(process) = machine.process(pid).filter(|p| forgets || p.is_kernel()) else {
            continue;
        };
        for tid in machine.threads(pid) {
            let mask = machine.kernel.affinity(tid).unwrap_or_default();
            let own = mask != usual && !mask.intersects(&shielded_cores) && !mask.is_empty();
            let thread = machine
                .thread(pid, tid)
                .filter(|_| own && !process.is_bound());
            lost.extend(thread.map(|thread| {
                Entry::ThreadMove(ThreadMove {
                    pid,
                    tid,
                    start: thread.start,
                    old: mask,
                    new: all.clone(),
                })
            }));
        }
    }
    Ok(lost)
}

/// Creates the cpusets (version 1).
pub fn raise_cpusets<K: Kernel>(
    machine: &Machine<K>,
    sweeper: &Sweeper,
    undo_log: &mut UndoLog,
) -> Result<(PathBuf, SweepReport), Reason> {
    let base = machine
        .cgroups(Some("cpuset"))
        .ok_or("cpusets of version 1 are not mounted")?;
    let list = |folder: &Path, name: &str| -> Option<CoreSet> {
        machine.read(&folder.join(name))?.parse().ok()
    };
    let all = list(&base, "cpuset.cpus").ok_or("cpuset.cpus cannot be read")?;
    if !sweeper.shield.is_subset(&all) {
        return Err(format!("the cpuset of this container has only cores {all}"));
    }
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        if !is_shield_group(&entry.path())
            && list(&entry.path(), "cpuset.cpus").is_some_and(|c| c.intersects(&sweeper.shield))
        {
            let name = entry.file_name().display().to_string();
            return Err(format!("the cpuset {name} includes the core"));
        }
    }
    let memory = machine.read(&base.join("cpuset.mems")).unwrap_or_default();
    let (inside, outside) = (
        program_group(&base, &sweeper.shield),
        base.join(OTHERS_GROUP),
    );
    let record = LogState::read(&undo_log.path).map_err(|e| with_context("undo log", e))?;
    let shielded_cores = sweeper.shield.or(&record.cores_of_others(undo_log.number));
    let marks = [
        Entry::Inside(inside.clone()),
        Entry::Outside(outside.clone()),
    ];
    undo_log
        .add(&marks)
        .map_err(|e| with_context("undo log", e))?;
    for (folder, cores) in [
        // The group of all others comes first: it must lose these cores before the program's group
        // gets them.
        (&outside, all.without(&shielded_cores)),
        (&inside, sweeper.shield.clone()),
    ] {
        match machine.kernel.make_dir(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists || folder == &inside => {
                return Err(with_context("no cpuset can be made", e));
            }
            _ => {}
        }
        // cpuset.mems first: processes cannot be added without it.
        let files = [
            ("cpuset.mems", memory.trim().to_string()),
            ("cpuset.cpus", cores.to_string()),
        ];
        for (file, text) in files {
            let written = machine.kernel.write(&folder.join(file), &text);
            written.map_err(|e| with_context(file, e))?;
        }
    }
    let swept = move_processes_out(machine, sweeper, undo_log, &base, &outside, &all)?;
    for folder in [&outside, &inside] {
        // Prevents other groups from using the cores. Fails harmlessly if some process could not be
        // moved.
        let _ = machine
            .kernel
            .write(&folder.join("cpuset.cpu_exclusive"), "1");
    }
    Ok((inside, swept))
}

/// Moves all processes from the root group to the group of all others, repeatedly until no movable
/// process is left.
pub fn move_processes_out<K: Kernel>(
    machine: &Machine<K>,
    sweeper: &Sweeper,
    undo_log: &mut UndoLog,
    base: &Path,
    outside: &Path,
    all: &CoreSet,
) -> Result<SweepReport, Reason> {
    let mut swept = SweepReport::default();
    let record = LogState::read(&undo_log.path).map_err(|e| with_context("undo log", e))?;
    let granted = GrantedMasks::all(&record);
    // Moving an exiting process succeeds without an effect, so the attempts are counted.
    let mut tried: HashMap<i32, u32> = HashMap::new();
    // Before Linux 6.2 the kernel discards the affinity mask.
    let forgets = machine.release() < (6, 2);
    for round in 0..50 {
        // First whole processes, with one write each; then also threads in other groups than their
        // process.
        let list = if round == 0 { "cgroup.procs" } else { "tasks" };
        let text = machine.read(&base.join(list)).unwrap_or_default();
        let (mut moves, mut again) = (Vec::new(), false);
        let mut lines = Vec::new();
        for id in words(&text).filter_map(|w| w.parse::<i32>().ok()) {
            let tries = tried.entry(id).or_default();
            *tries += 1;
            if *tries > 3 {
                continue;
            }
            let Some(stat) = machine.process(id).filter(|s| !s.is_dead()) else {
                // Before it ended it may have forked a child in this group.
                again = true;
                continue;
            };
            let mask = machine.kernel.affinity(id).unwrap_or_default();
            if stat.is_bound() {
                if mask.is_subset(&sweeper.shield) {
                    swept.stay(KERNEL_BOUND, format!("{} ({id})", stat.name));
                }
                continue;
            }
            // From the second round on, the ids are thread ids.
            let leader = match round {
                0 => Some(stat.clone()),
                _ => machine.process(machine.process_of(id)),
            };
            if leader.is_some_and(|l| sweeper.protects(&l)) {
                swept.stay(PROTECTED, format!("{} ({id})", stat.name));
                continue;
            }
            // New processes are moved as a whole: the kernel then excludes concurrent forks, which
            // would add children to the root group after the last check.
            let whole = round == 0 || machine.process_of(id) == id;
            let threads = if whole { machine.threads(id) } else { vec![id] };
            for tid in &threads {
                let mask = machine.kernel.affinity(*tid).unwrap_or_default();
                let thread = machine.thread(id, *tid).or_else(|| machine.process(*tid));
                let Some(thread) = thread else { continue };
                // For kernel threads the mask is discarded by all versions.
                let mask = granted.original_mask(machine, id, (*tid, thread.start), &mask);
                if !(forgets || stat.is_kernel()) || mask == *all {
                    continue;
                }
                lines.push(Entry::ThreadMove(ThreadMove {
                    pid: id,
                    tid: *tid,
                    start: thread.start,
                    old: mask,
                    new: all.clone(),
                }));
            }
            // An exiting process cannot be moved between groups and would end on the core; it is
            // moved by its mask.
            if *tries > 1 && !stat.is_kernel() {
                let mut last = Vec::new();
                for tid in &threads {
                    last.extend(machine.thread(id, *tid).or_else(|| machine.process(*tid)));
                }
                for thread in last {
                    by_mask(machine, sweeper, &granted, undo_log, &thread);
                }
            }
            moves.push((id, whole, threads.len() as u64, stat));
        }
        undo_log
            .add(&lines)
            .map_err(|e| with_context("undo log", e))?;
        again |= !moves.is_empty();
        for (id, whole, threads, stat) in moves {
            let file = if whole { "cgroup.procs" } else { "tasks" };
            match machine.kernel.write(&outside.join(file), &id.to_string()) {
                Ok(()) if stat.is_kernel() => swept.kernel_threads += 1,
                Ok(()) => swept.threads += threads,
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => continue,
                // Some kernel threads cannot leave their group; they are moved by their mask.
                Err(_)
                    if stat.is_kernel() && by_mask(machine, sweeper, &granted, undo_log, &stat) =>
                {
                    swept.kernel_threads += 1;
                    tried.insert(id, u32::MAX / 2);
                    continue;
                }
                Err(_) => {
                    swept.stay(REFUSED, format!("{} ({id})", stat.name));
                    tried.insert(id, u32::MAX / 2);
                }
            }
        }
        swept.rounds += 1;
        if !again && round > 0 {
            break;
        }
    }
    Ok(swept)
}

fn by_mask<K: Kernel>(
    machine: &Machine<K>,
    sweeper: &Sweeper,
    granted: &GrantedMasks,
    undo_log: &mut UndoLog,
    stat: &Stat,
) -> bool {
    let Ok(now) = machine.kernel.affinity(stat.id) else {
        return false;
    };
    let rest = now.without(&sweeper.shield);
    let new = if rest.is_empty() {
        sweeper.others.clone()
    } else {
        rest
    };
    let task = ThreadMove {
        pid: stat.id,
        tid: stat.id,
        start: stat.start,
        old: granted.original_mask(machine, stat.id, (stat.id, stat.start), &now),
        new: new.clone(),
    };
    undo_log.add(&[Entry::ThreadMove(task)]).is_ok()
        && machine.kernel.set_affinity(stat.id, &new).is_ok()
}

/// Splits the scheduling domains along the cpusets; SCHED_DEADLINE requires it.
pub fn disable_load_balance<K: Kernel>(
    machine: &Machine<K>,
    undo_log: &mut UndoLog,
) -> Result<(), Reason> {
    let base = machine.cgroups(Some("cpuset")).ok_or("no cpusets")?;
    let kernel_file = KernelFile {
        path: base.join("cpuset.sched_load_balance"),
        old: "1".into(),
        new: "0".into(),
    };
    if machine
        .read(&kernel_file.path)
        .is_some_and(|t| t.trim() == "1")
    {
        let line = Entry::KernelFile(kernel_file.clone());
        undo_log
            .add(&[line])
            .map_err(|e| with_context("undo log", e))?;
        let written = machine.kernel.write(&kernel_file.path, "0");
        written.map_err(|e| with_context("cpuset.sched_load_balance", e))?;
    }
    Ok(())
}

/// Removes the groups of a shield. Processes return to their original group; while other shields
/// exist, to the group of all others, which gets the cores. Returns errors, and the processes that
/// were moved.
pub fn remove_groups<K: Kernel>(
    machine: &Machine<K>,
    record: &LogState,
    held: &ShieldRecord,
) -> (Vec<String>, Vec<i32>) {
    let (mut failed, mut came) = (Vec::new(), Vec::new());
    let outside = record.outside.as_ref().filter(|f| f.exists());
    let is_last = record.others(held.number).next().is_none();
    let home = match outside.filter(|_| !is_last) {
        Some(outside) => Some(outside.clone()),
        None => held.home.clone(),
    };
    if let Some(inside) = held.inside.as_ref().filter(|f| f.exists()) {
        // The partition releases its cores first, so that the returning processes may use them.
        let kind = inside.join("cpuset.cpus.partition");
        if kind.exists() && is_shield_group(inside) && is_kernel_path(machine, inside) {
            let _ = machine.kernel.write(&kind, "member");
        }
        failed.extend(remove_group(machine, inside, home, &mut came));
    }
    let Some(outside) = outside else {
        return (failed, came);
    };
    if is_last {
        failed.extend(remove_group(machine, outside, None, &mut Vec::new()));
    } else if is_shield_group(outside) && is_kernel_path(machine, outside) {
        let base = outside.parent().unwrap_or(outside);
        let all = machine.read(&base.join("cpuset.cpus"));
        let all: CoreSet = all.and_then(|t| t.parse().ok()).unwrap_or_default();
        let cores = all.without(&record.cores_of_others(held.number));
        let file = outside.join("cpuset.cpus");
        let written = machine.kernel.write(&file, &cores.to_string());
        failed.extend(written.err().map(|e| format!("{}: {e}", file.display())));
    }
    (failed, came)
}

/// Moves all processes to `home`, or else to the parent group, and removes the group.
fn remove_group<K: Kernel>(
    machine: &Machine<K>,
    folder: &Path,
    home: Option<PathBuf>,
    came: &mut Vec<i32>,
) -> Option<String> {
    if !is_shield_group(folder) || !is_kernel_path(machine, folder) {
        return Some(format!("{}: not a group of a shield", folder.display()));
    }
    let base = folder.parent().map(Path::to_path_buf).unwrap_or_default();
    let home = home
        .filter(|h| h.exists() && is_kernel_path(machine, h))
        .unwrap_or_else(|| base.clone());
    let mut last = Ok(());
    for round in 0..100 {
        let listed = |file: &str| -> Vec<i32> {
            let text = machine.read(&folder.join(file)).unwrap_or_default();
            words(&text).filter_map(|w| w.parse().ok()).collect()
        };
        let threads = listed("tasks");
        // A process with threads in other groups stays with them; version 2 has only whole
        // processes.
        let is_whole = |pid: &i32| {
            threads.is_empty() || machine.threads(*pid).iter().all(|t| threads.contains(t))
        };
        let processes = listed("cgroup.procs").into_iter().filter(is_whole);
        let processes: Vec<i32> = processes.collect();
        came.extend(&processes);
        for (file, ids) in [("cgroup.procs", processes), ("tasks", threads)] {
            for id in ids {
                let moved = machine.kernel.write(&home.join(file), &id.to_string());
                if moved.is_err() && home != base {
                    let _ = machine.kernel.write(&base.join(file), &id.to_string());
                }
            }
        }
        last = machine.kernel.remove_dir(folder);
        if last.is_ok() {
            break;
        }
        if round > 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    last.err().map(|e| format!("{}: {e}", folder.display()))
}
