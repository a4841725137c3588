// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real-time priorities, and the system settings that limit them.

use crate::machine::Machine;
use std::io;
use std::path::PathBuf;

/// Gives a process the real-time policy SCHED_FIFO with this priority.
pub fn give(pid: i32, priority: u32) -> io::Result<()> {
    let parameter = libc::sched_param {
        sched_priority: priority as i32,
    };
    // SAFETY: the parameter is a local variable.
    match unsafe { libc::sched_setscheduler(pid, libc::SCHED_FIFO, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Explains why a process was refused a real-time priority, if the reason is not only a lack of
/// privileges, and what to do; `else_help` is the advice for missing privileges.
pub fn refused(machine: &Machine, pid: i32, else_help: &str) -> (Option<&'static str>, String) {
    match group_without(machine, pid) {
        Some(file) => (
            Some("its cgroup has no real-time budget"),
            format!(
                "write a number of microseconds into {}, such as 100000",
                file.display()
            ),
        ),
        None => (None, else_help.to_string()),
    }
}

/// The file that denies real-time priorities to the cgroup of a process (version 1).
fn group_without(machine: &Machine, pid: i32) -> Option<PathBuf> {
    let group = machine.group_of(&pid.to_string(), Some("cpu"))?;
    let base = machine.cgroups(Some("cpu"))?;
    let file = base
        .join(group.trim_start_matches('/'))
        .join("cpu.rt_runtime_us");
    (machine.read(&file)?.trim() == "0").then_some(file)
}

/// A message if the kernel limits the CPU time of real-time programs.
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
