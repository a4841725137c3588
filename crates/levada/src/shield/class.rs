// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scheduling classes for the program in a shield, and the settings of the system that prevent them: autogroups,
//! which make nice values ineffective, control groups without real-time bandwidth, and deadline scheduling, which
//! needs cores of an exclusive partition.

use crate::cli::RaiseArgs;
use crate::common::output::{DIM, Failure, failure_with, paint, plain};
use levada_cores::undo_log::format::Entry;
use levada_cores::{Machine, Shield, realtime};
use std::io;

/// Sets the scheduling class of the process, which waits to be started; returns a note if the class is limited.
pub fn give(args: &RaiseArgs, shield: &mut Shield, pid: i32) -> Result<(), Failure> {
    let machine = Machine::this();
    let mut notes = Vec::new();
    if let Some(priority) = args.fifo {
        fifo(&machine, pid, priority)?;
        notes.extend(realtime::throttle(&machine));
    }
    if let Some(weight) = args.weight {
        notes.extend(weigh(&machine, shield, pid, weight)?);
    }
    if let Some((runtime, period)) = args.deadline {
        deadline(pid, runtime, period)?;
        notes.push(
            "children of the program have the normal class: none may inherit a deadline".into(),
        );
    }
    if !args.quiet {
        for note in notes {
            say_painted!("{} {}", paint(DIM, "shield:"), plain(&note));
        }
    }
    Ok(())
}

fn fifo(machine: &Machine, pid: i32, priority: u32) -> Result<(), Failure> {
    let Err(e) = realtime::give(pid, priority) else {
        return Ok(());
    };
    let what = format!("the program cannot have real-time priority {priority}: {e}");
    let help = "be root, or have a higher limit (ulimit -r)";
    match realtime::refused(machine, pid, help) {
        (Some(why), help) => failure_with(format!("{what}: {why}"), help),
        (None, help) => failure_with(what, help),
    }
}

/// The nice value with the closest weight: each step is a quarter more.
fn nice_of(weight: u32) -> i32 {
    let steps = (f64::from(weight) / 100.0).ln() / 1.25f64.ln();
    (-steps.round() as i32).clamp(-20, 19)
}

fn weigh(
    machine: &Machine,
    shield: &mut Shield,
    pid: i32,
    weight: u32,
) -> Result<Option<String>, Failure> {
    let nice = nice_of(weight);
    // SAFETY: no memory is passed.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as libc::id_t, nice) } != 0 {
        let e = io::Error::last_os_error();
        return failure_with(
            format!("the program cannot have the weight {weight} (nice {nice}): {e}"),
            "be root, or have a higher limit (ulimit -e)",
        );
    }
    if let Some(file) = shield.group_file("cpu.weight") {
        let written = std::fs::write(&file, weight.to_string());
        return match written {
            Ok(()) => Ok(None),
            Err(e) => failure_with(format!("{}: {e}", file.display()), ""),
        };
    }
    // With autogroups the nice value counts within the session only.
    let enabled = machine.read(&machine.proc.join("sys/kernel/sched_autogroup_enabled"));
    let file = machine.proc.join(format!("{pid}/autogroup"));
    let text = machine.read(&file).unwrap_or_default();
    let old = text
        .trim()
        .rsplit("nice ")
        .next()
        .and_then(|n| n.parse::<i32>().ok());
    let (Some(old), true) = (old, enabled.is_some_and(|t| t.trim() == "1")) else {
        return Ok(None);
    };
    let session = machine.process(pid).map_or(0, |s| s.session);
    shield.note(Entry::Session(session, old, nice))?;
    match std::fs::write(&file, nice.to_string()) {
        Ok(()) => Ok(Some(format!(
            "all of session {session} has this weight meanwhile: sessions are weighed as wholes here"
        ))),
        Err(e) => failure_with(
            format!(
                "the weight would count within this session only: {}: {e}",
                file.display()
            ),
            "be root, or switch that off: sysctl kernel.sched_autogroup_enabled=0",
        ),
    }
}

/// The argument of sched_setattr, which the C library does not declare.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn deadline(pid: i32, runtime: u64, period: u64) -> Result<(), Failure> {
    const DEADLINE: u32 = 6;
    const RESET_ON_FORK: u64 = 1;
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: DEADLINE,
        flags: RESET_ON_FORK,
        nice: 0,
        priority: 0,
        runtime,
        deadline: period,
        period,
    };
    // SAFETY: the attributes are a local variable and contain their size.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &attributes, 0) } == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    let what = format!("the program cannot have a deadline: {e}");
    match e.raw_os_error() {
        Some(libc::EBUSY) => failure_with(
            what,
            "the core has not so much time left for deadlines: ask for less",
        ),
        Some(libc::EPERM) => failure_with(
            what,
            "it needs root, and cores that are apart: a partition is best",
        ),
        _ => failure_with(what, "the kernel takes periods up to 4 s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_nice_values() {
        for (weight, nice) in [
            (100, 0),
            (125, -1),
            (80, 1),
            (10000, -20),
            (1, 19),
            (1000, -10),
        ] {
            assert_eq!(nice_of(weight), nice, "{weight}");
        }
    }
}
