// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ending shields: abandoned ones, and those that the user releases.

use super::list::{check_unshielded, list_shields};
use super::request::{Error, cores};
use super::restore::{self, Restored};
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::format::LogState;
use crate::undo_log::{LockedLog, UndoLog, own_log_path};
use std::io;
use std::time::{Duration, Instant};

/// Lowers this user's shields without a living holder.
pub fn restore_abandoned<K: Kernel>(machine: &Machine<K>) -> io::Result<Vec<Restored>> {
    let mut restored = Vec::new();
    let Ok(own) = own_log_path() else {
        return Ok(restored);
    };
    let record = match LogState::read(&own) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(restored),
        read => read?,
    };
    if record.shields.is_empty() {
        // A process was killed before it wrote the first line.
        let locked = LockedLog::open(&own)?;
        if let Some(record) = locked.read()? {
            locked.replace(&record)?;
        }
    }
    for held in &record.shields {
        if held.holder(machine).is_none() {
            let undo_log = UndoLog::of(&own, held.number, held.tool);
            restored.extend(restore::restore_shield(machine, &undo_log)?);
        }
    }
    Ok(restored)
}

/// Checks whether these cores are free, after lowering abandoned shields.
pub fn check_available<K: Kernel>(machine: &Machine<K>, wanted: &CoreSet) -> Result<(), Error> {
    restore_abandoned(machine)
        .map_err(|e| Error::new(format!("cannot clean up after an earlier shield: {e}"), ""))?;
    let own = own_log_path().ok();
    for (path, held) in list_shields() {
        check_unshielded(machine, &held, wanted)?;
        // A shield of root's has set masks that this one would take for original masks.
        if Some(path) != own && held.holder(machine).is_some() {
            let what = format!("there is a shield of root's on {}", cores(&held.cores));
            return Err(Error::new(what, "only root can raise another one"));
        }
    }
    Ok(())
}

/// Ends the shields on these cores, or all; their programs keep running. Returns the cores.
pub fn release(wanted: Option<&CoreSet>) -> Result<Vec<CoreSet>, Error> {
    let machine = Machine::this();
    let mut released = Vec::new();
    for (path, held) in list_shields() {
        if wanted.is_some_and(|w| !w.intersects(&held.cores)) {
            continue;
        }
        let undo_log = UndoLog::of(&path, held.number, held.tool);
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut told = None;
        // The guard may have been replaced since the last check.
        while let Some(now) = undo_log.own().filter(|_| Instant::now() < deadline) {
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
                    let settled = restore::restore_shield(&machine, &undo_log);
                    settled.map_err(|e| {
                        Error::new(format!("cannot restore by {}: {e}", path.display()), "")
                    })?;
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if undo_log.own().is_some() {
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
            "levada shield status lists the shields",
        ));
    }
    Ok(released)
}
