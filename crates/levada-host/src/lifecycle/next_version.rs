// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The next version of an application, which is loaded and waits for its moment to take over.

use crate::app::Hosted;
use crate::host::Host;
use crate::lifecycle::load::Load;
use crate::model::error::{Kind, Refusal};
use levada_sys::Network;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Next {
    pub old: Arc<Hosted>,
    pub new: Arc<Hosted>,
}

impl Host {
    /// One that is to have a core to itself, as the one in whose place it comes has not, has it emptied: before anybody waits
    /// for anything else of it.
    pub(crate) fn empty_for_next(&self, load: &mut Load) -> Result<(), Refusal> {
        let old = self.live(&load.name)?;
        if load.exclusive && old.exclusive.is_none() {
            load.core = Some(self.empty_for(load, Some(&old))?);
        }
        Ok(())
    }

    /// Loads a new version of the application of its name.
    pub(crate) fn load_next(&self, mut load: Load) -> Result<Next, Refusal> {
        let old = self.live(&load.name)?;
        if self.next(old.number).is_some() {
            let what = format!(
                "{} is replaced already: its new version begins when it has ended",
                old.name
            );
            return Err(Refusal::new(Kind::Conflict, what).help("try again then"));
        }
        can_be_replaced(&old, &load)?;
        let mut pins = Vec::new();
        // Who must stay where he is stays, unless a placement says anew who must.
        if load.pins.is_empty() && !load.exclusive {
            pins = pins_for(&load.network, &old);
            let open = self.shared.runtime.open();
            let there = |pin: &Option<u32>| pin.filter(|core| open.contains(core));
            load.pins = pins.iter().map(there).collect();
        }
        let admission = self.admit(&[&load], Some(&old))?.pop().flatten();
        let new = self.load_admitted(load, Some(&old), admission)?;
        let anew = new.app.anew(&old.app);
        let _ = new
            .lineage
            .anew
            .set(anew.lines().map(str::to_string).collect());
        for (actor, pin) in pins.into_iter().enumerate().filter(|p| p.1.is_some()) {
            new.seats.pin(actor, pin);
        }
        Ok(Next { old, new })
    }
}

/// Where actors of a new version must stay, since those of the same name must.
fn pins_for(network: &Network, old: &Hosted) -> Vec<Option<u32>> {
    let (pins, names) = (old.seats.pins(), old.app.network().actor_names());
    let pin = |name: String| {
        let actor = names.iter().position(|n| *n == name)?;
        pins.get(actor).copied().flatten()
    };
    match pins.iter().any(Option::is_some) {
        true => network.actor_names().into_iter().map(pin).collect(),
        false => Vec::new(),
    }
}

fn can_be_replaced(old: &Hosted, load: &Load) -> Result<(), Refusal> {
    let name = &old.name;
    let refuse = |kind, what: String| {
        Err(Refusal::new(kind, what).help("unload it, and load the new version"))
    };
    match (old.app.network().is_program(), load.network.is_program()) {
        (true, false) => {
            let what = format!("{name} is a C program, and its new version would be a network");
            return refuse(Kind::Wrong, what);
        }
        (false, true) => {
            let what = format!("{name} is a network, and its new version would be a C program");
            return refuse(Kind::Wrong, what);
        }
        _ => {}
    }
    if old.told.drains.load(Ordering::Relaxed) {
        return refuse(Kind::Conflict, format!("{name} is draining"));
    }
    Ok(())
}
