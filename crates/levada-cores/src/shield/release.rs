// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowering shields.

use super::list::{taken, there_are};
use super::request::{Error, cores};
use super::restore::{self, Restored};
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::format::Record;
use crate::undo_log::{Ledger, Locked, own_place};
use std::io;
use std::time::{Duration, Instant};

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
