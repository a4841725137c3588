// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real-time priorities: what of the system stands in their way, and what they leave of a core all the same.

use crate::machine::Machine;
use std::io;
use std::path::PathBuf;

/// Gives a process a real-time priority: it goes before all of the usual class, until it sleeps.
pub fn give(pid: i32, priority: u32) -> io::Result<()> {
    let parameter = libc::sched_param {
        sched_priority: priority as i32,
    };
    // SAFETY: the parameter is of this frame.
    match unsafe { libc::sched_setscheduler(pid, libc::SCHED_FIFO, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Why a process was refused a real-time priority, if something but its own rights is the reason; and what to do, which
/// is `else_help` if it is those.
pub fn refused(machine: &Machine, pid: i32, else_help: &str) -> (Option<&'static str>, String) {
    match group_without(machine, pid) {
        Some(file) => (
            Some("its group of processes may run none"),
            format!(
                "write a number of microseconds into {}, such as 100000",
                file.display()
            ),
        ),
        None => (None, else_help.to_string()),
    }
}

/// The file that keeps a process's group from real-time priorities (cgroup version 1).
fn group_without(machine: &Machine, pid: i32) -> Option<PathBuf> {
    let group = machine.group_of(&pid.to_string(), Some("cpu"))?;
    let base = machine.cgroups(Some("cpu"))?;
    let file = base
        .join(group.trim_start_matches('/'))
        .join("cpu.rt_runtime_us");
    (machine.read(&file)?.trim() == "0").then_some(file)
}

/// Real-time programs do not get all of their core, unless somebody has said so.
pub fn throttle(machine: &Machine) -> Option<String> {
    let number = |name: &str| -> Option<i64> {
        let text = machine.read(&machine.proc.join("sys/kernel").join(name))?;
        text.trim().parse().ok()
    };
    let (runtime, period) = (
        number("sched_rt_runtime_us")?,
        number("sched_rt_period_us")?,
    );
    (0..period).contains(&runtime).then(|| {
        format!(
            "real-time programs may get {} of each {} ms only (kernel.sched_rt_runtime_us; -1 is all)",
            runtime / 1000,
            period / 1000
        )
    })
}
