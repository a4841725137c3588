// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shields: cores reserved for one program. A shield is raised by the first method that works, held
//! while the program runs, and lowered, which restores the state before. Several shields may exist
//! at a time, with disjoint cores and the same method, since each method undoes the changes of
//! others.
//!
//! Modules, each of which may use those before it: `method`, `granted_masks`, `irq_affinity`,
//! `sweep`, `cgroups`, `restore`, `request`, `guard`, `list`, `raise`, `release`.

pub mod cgroups;
pub mod granted_masks;
pub mod guard;
pub mod irq_affinity;
mod list;
mod method;
mod raise;
mod release;
mod request;
pub mod restore;
pub mod sweep;

use crate::cpu_set::CoreSet;
use crate::machine::Machine;
use crate::undo_log::UndoLog;
use crate::undo_log::format::Entry;
use guard::{Guard, GuardMessage, RealtimeScope};
pub use list::{check, list_shields, shielded_cores};
pub use method::Method;
pub use raise::{Raised, raise_with, take_in};
use raise::{begin, check_process, check_thread, own_original_mask};
pub use release::{check_available, release, restore_abandoned};
pub use request::{Error, Request, cores, sweeper_for};
use restore::Restored;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// A shield of this machine. If its holder dies, the guard lowers it.
pub struct Shield {
    pub raised: Raised,
    machine: Machine,
    undo_log: UndoLog,
    guard: Option<Guard>,
    request: Request,
    /// The original affinity mask of this process.
    plain: CoreSet,
    /// The program that was started; a new guard needs it.
    program: Option<i32>,
}

impl Shield {
    /// Raises a shield. The process must have only one thread, since the guard is forked from it.
    pub fn raise(request: Request) -> Result<Shield, Error> {
        let machine = Machine::this();
        let _urgent = RealtimeScope::now();
        check_available(&machine, &request.cores)?;
        if let Some(pid) = request.pid {
            check_process(&machine, pid)?;
            check_thread(&machine, pid, request.thread)?;
        }
        let (mut undo_log, others) = begin(&machine, &request)?;
        let guard = Guard::start(&mut undo_log, &request, &others).map_err(|e| {
            let _ = restore::restore_shield(&machine, &undo_log);
            Error::new(format!("cannot start the guard: {e}"), "")
        })?;
        // From here on the guard restores the state if this process ends.
        let plain = own_original_mask(&machine, &undo_log);
        let raised = raise_with(&machine, &request, &others, &mut undo_log);
        let mut shield = match raised {
            Ok(raised) => Shield {
                raised,
                machine,
                undo_log,
                guard: Some(guard),
                request,
                plain,
                program: None,
            },
            Err(e) => {
                guard.stop();
                let _ = restore::restore_shield(&machine, &undo_log);
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
            &mut self.undo_log,
            inside,
            &self.request.cores,
            pid,
            self.request
                .thread
                .filter(|_| self.request.pid == Some(pid)),
            plain,
        )
    }

    /// Adds a process that was forked for the shield and waits.
    pub fn take_in(&mut self, pid: i32) -> io::Result<()> {
        let plain = self.plain.clone();
        self.admit(pid, Some(&plain))?;
        self.program = Some(pid);
        self.watch();
        Ok(())
    }

    fn watch(&mut self) {
        if let Some(guard) = &self.guard {
            guard.watch(self.raised.method, self.program.is_some());
        }
    }

    /// A file in the cgroup of the program, if it exists.
    pub fn group_file(&self, name: &str) -> Option<PathBuf> {
        let file = self.raised.inside.as_ref()?.join(name);
        file.exists().then_some(file)
    }

    /// Adds an entry about a change made by the caller to the undo log.
    pub fn note(&mut self, entry: Entry) -> io::Result<()> {
        self.undo_log.add(&[entry])
    }

    /// A descriptor that is readable when the guard has sent a message.
    pub fn guard_descriptor(&self) -> Option<RawFd> {
        self.guard.as_ref().map(Guard::descriptor)
    }

    /// Number of threads that came onto the cores and were moved away.
    pub fn evicted(&self) -> u64 {
        self.undo_log.own().map_or(0, |own| own.evicted)
    }

    pub fn guard(&self) -> Option<i32> {
        self.guard.as_ref().map(|g| g.process.pid)
    }

    /// Receives the next message of the guard. A guard that was killed is replaced, without a
    /// message.
    pub fn receive_guard_message(&mut self) -> GuardMessage {
        let Some(guard) = &self.guard else {
            return GuardMessage::Released;
        };
        match guard.receive() {
            GuardMessage::Released => {
                self.guard = None;
                GuardMessage::Released
            }
            GuardMessage::Dead => {
                let others = self.raised.others.clone();
                self.guard = None;
                if self.undo_log.own().is_none() {
                    return GuardMessage::Released;
                }
                self.guard = Guard::start(&mut self.undo_log, &self.request, &others).ok();
                self.watch();
                GuardMessage::None
            }
            news => news,
        }
    }

    /// Lowers the shield: restores the state before it.
    pub fn lower(mut self) -> io::Result<Restored> {
        let _urgent = RealtimeScope::now();
        let guard = self.guard.take();
        if let Some(guard) = &guard {
            guard.stop();
        }
        let restored = restore::restore_shield(&self.machine, &self.undo_log);
        if let Some(guard) = guard {
            guard.end();
        }
        Ok(restored?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
