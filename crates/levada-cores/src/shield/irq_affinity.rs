// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Affinity of interrupts and of unbound kernel work queues, the other sources of load on a core.
//! Each is a file that holds a set of cores.

use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::UndoLog;
use crate::undo_log::format::{Entry, KernelFile, LogState};
use std::io;
use std::path::{Component, Path, PathBuf};

/// What was moved to other cores, and what could not be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteeredInterrupts {
    pub interrupts: u64,
    /// Interrupts that could not be moved: number, name and error.
    pub stays: Vec<String>,
    pub work_queues: bool,
}

/// Files in mask format; the others contain lists.
fn is_mask(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    name == "default_smp_affinity" || path.ends_with("workqueue/cpumask")
}

fn parse(path: &Path, text: &str) -> Option<CoreSet> {
    if is_mask(path) {
        CoreSet::from_mask(text)
    } else {
        text.parse().ok()
    }
}

fn read_set<K: Kernel>(machine: &Machine<K>, path: &Path) -> Option<CoreSet> {
    parse(path, &machine.read(path)?)
}

fn show(path: &Path, set: &CoreSet) -> String {
    if is_mask(path) {
        set.to_mask()
    } else {
        set.to_string()
    }
}

/// Switches without a set: written once for all shields, and back after the last one.
fn is_switch(path: &Path) -> bool {
    path.ends_with("cgroup.subtree_control") || path.ends_with("cpuset.sched_load_balance")
}

/// The content of the file before all current shields.
fn original_mask(record: &LogState, path: &Path, now: &CoreSet) -> String {
    let of = record.kernel_files.iter().filter(|(_, k)| k.path == path);
    let of: Vec<&KernelFile> = of.map(|(_, k)| k).collect();
    match of.last() {
        Some(last) if of.iter().any(|k| parse(path, &k.new).as_ref() == Some(now)) => {
            last.old.clone()
        }
        _ => show(path, now),
    }
}

/// Removes the shield's cores from the set in a file.
fn narrow<K: Kernel>(
    machine: &Machine<K>,
    path: PathBuf,
    shield: &CoreSet,
    others: &CoreSet,
    (record, undo_log): (&LogState, &mut UndoLog),
) -> io::Result<bool> {
    let Some(old) = read_set(machine, &path).filter(|s| s.intersects(shield)) else {
        return Ok(false);
    };
    let rest = old.without(shield);
    let new = if rest.is_empty() {
        others.clone()
    } else {
        rest
    };
    let kernel_file = KernelFile {
        old: original_mask(record, &path, &old),
        new: show(&path, &new),
        path,
    };
    undo_log.add(&[Entry::KernelFile(kernel_file.clone())])?;
    machine.kernel.write(&kernel_file.path, &kernel_file.new)?;
    Ok(true)
}

pub fn steer_away<K: Kernel>(
    machine: &Machine<K>,
    shield: &CoreSet,
    others: &CoreSet,
    undo_log: &mut UndoLog,
) -> SteeredInterrupts {
    let mut steered = SteeredInterrupts::default();
    let record = LogState::read(&undo_log.path).unwrap_or_default();
    let folder = machine.proc.join("irq");
    let names = names(machine);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    for number in numbers {
        let path = folder.join(format!("{number}/smp_affinity_list"));
        let effective = folder.join(format!("{number}/effective_affinity_list"));
        match narrow(machine, path, shield, others, (&record, undo_log)) {
            Ok(true) => steered.interrupts += 1,
            Ok(false) => {}
            // Refused, but the interrupt is not delivered to the shield's cores.
            Err(_) if read_set(machine, &effective).is_some_and(|e| !e.intersects(shield)) => {}
            Err(e) => {
                let name = names.iter().find(|(n, _)| *n == number);
                let name = name.map_or("?", |(_, name)| name);
                let why = match e.raw_os_error() {
                    // Bound to the core by its driver or the kernel.
                    Some(libc::EIO | libc::EINVAL | libc::EPERM) => "bound".into(),
                    _ => e.to_string(),
                };
                steered.stays.push(format!("{number} ({name}): {why}"));
            }
        }
    }
    let _ = narrow(
        machine,
        folder.join("default_smp_affinity"),
        shield,
        others,
        (&record, undo_log),
    );
    let queues = machine.sys.join("devices/virtual/workqueue/cpumask");
    steered.work_queues =
        narrow(machine, queues, shield, others, (&record, undo_log)).unwrap_or(false);
    let watchdog = machine.proc.join("sys/kernel/watchdog_cpumask");
    let _ = narrow(machine, watchdog, shield, others, (&record, undo_log));
    steered
}

/// Interrupt numbers and names: the last word of each line of /proc/interrupts.
fn names<K: Kernel>(machine: &Machine<K>) -> Vec<(u32, String)> {
    let text = machine
        .read(&machine.proc.join("interrupts"))
        .unwrap_or_default();
    let line = |l: &str| {
        let (number, rest) = l.trim().split_once(':')?;
        Some((
            number.parse().ok()?,
            rest.split_whitespace().last()?.to_string(),
        ))
    };
    text.lines().filter_map(line).collect()
}

/// Whether a path is inside the folders of the kernel that a shield changes.
pub fn is_kernel_path<K: Kernel>(machine: &Machine<K>, path: &Path) -> bool {
    let plain = path.components().all(|c| c != Component::ParentDir);
    let below = [
        machine.proc.join("irq"),
        machine.proc.join("sys"),
        machine.sys.clone(),
    ];
    plain && below.iter().any(|folder| path.starts_with(folder))
}

/// A set without the shielded cores; if nothing remains, all other cores.
pub fn without(original_set: &CoreSet, shields: &CoreSet, online: &CoreSet) -> CoreSet {
    let rest = original_set.without(shields);
    if rest.is_empty() && !shields.is_empty() {
        online.without(shields)
    } else {
        rest
    }
}

/// Restores a file with this history to its original content, without the cores of the remaining
/// shields, unless some other program has changed it since. `note` gets the entry that the
/// remaining shields need, before the change.
pub fn restore_file<K: Kernel>(
    machine: &Machine<K>,
    history: &[&KernelFile],
    shields: &CoreSet,
    online: &CoreSet,
    note: &mut dyn FnMut(KernelFile) -> io::Result<()>,
) -> io::Result<()> {
    let Some(last) = history.last() else {
        return Ok(());
    };
    let path = &last.path;
    if !is_kernel_path(machine, path) {
        let what = "it is not a file that a shield changes, and was left unchanged";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    if is_switch(path) {
        return if shields.is_empty() {
            machine.kernel.write(path, &last.old)
        } else {
            note(KernelFile::clone(last))
        };
    }
    let now = read_set(machine, path).filter(|now| !now.is_empty());
    let is_given = history.iter().any(|k| parse(path, &k.new) == now);
    let (Some(now), Some(old), true) = (now, parse(path, &last.old), is_given) else {
        return Ok(());
    };
    let back = without(&old, shields, online);
    if back != old {
        note(KernelFile {
            new: show(path, &back),
            ..KernelFile::clone(last)
        })?;
    }
    if now == back {
        Ok(())
    } else {
        machine.kernel.write(path, &show(path, &back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{TestMachine, set};

    #[test]
    fn interrupts_and_work_are_steered_away_and_back() {
        let fake = TestMachine::new("0-3");
        fake.proc(
            "interrupts",
            "      CPU0\n 7:  1 2 PCI-MSI 3 virtio0-input\n 8: 0 0 X disk\n",
        );
        fake.proc("irq/default_smp_affinity", "f\n");
        fake.proc("sys/kernel/watchdog_cpumask", "0-3\n");
        for (irq, mask) in [(7, "0-3"), (8, "3"), (9, "0"), (10, "3")] {
            fake.proc(&format!("irq/{irq}/smp_affinity_list"), mask);
        }
        fake.sys("devices/virtual/workqueue/cpumask", "f\n");
        fake.refuses("proc/irq/8/smp_affinity_list", libc::EIO);
        let before = fake.everything();
        let mut undo_log = fake.undo_log();
        let steered = steer_away(&fake.machine, &set("3"), &set("0-2"), &mut undo_log);
        assert_eq!(steered.interrupts, 2);
        assert_eq!(steered.stays, ["8 (disk): bound"]);
        assert!(steered.work_queues);
        assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-2");
        assert_eq!(fake.text("proc/irq/10/smp_affinity_list"), "0-2");
        assert_eq!(fake.text("proc/irq/default_smp_affinity"), "7");
        assert_eq!(fake.text("proc/sys/kernel/watchdog_cpumask"), "0-2");
        assert_eq!(fake.text("sys/devices/virtual/workqueue/cpumask"), "7");
        for (_, kernel_file) in &fake.record(&undo_log).kernel_files {
            let (none, all) = (CoreSet::default(), set("0-3"));
            restore_file(&fake.machine, &[kernel_file], &none, &all, &mut |_| Ok(())).unwrap();
        }
        assert_eq!(fake.everything(), before);
    }

    #[test]
    fn a_later_change_by_another_program_is_kept() {
        let fake = TestMachine::new("0-3");
        fake.proc("irq/7/smp_affinity_list", "0-3");
        let mut undo_log = fake.undo_log();
        steer_away(&fake.machine, &set("3"), &set("0-2"), &mut undo_log);
        fake.proc("irq/7/smp_affinity_list", "1");
        let kernel_file = &fake.record(&undo_log).kernel_files[0].1;
        let (none, all) = (CoreSet::default(), set("0-3"));
        restore_file(&fake.machine, &[kernel_file], &none, &all, &mut |_| Ok(())).unwrap();
        assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "1");
    }
}
