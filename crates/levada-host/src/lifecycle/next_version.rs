// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads the next version of an application, which then waits to take over.

use crate::app::HostedApp;
use crate::host::Host;
use crate::lifecycle::load::Load;
use crate::model::error::{Kind, Refusal};
use levada_sys::Network;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Next {
    pub old: Arc<HostedApp>,
    pub new: Arc<HostedApp>,
}

impl Host {
    /// Reserves a core for an exclusive next version, if its predecessor has none; done before the caller takes locks.
    pub(crate) fn reserve_core_for_next(&self, load: &mut Load) -> Result<(), Refusal> {
        let old = self.live(&load.name)?;
        if load.exclusive && old.exclusive.is_none() {
            load.reserved_core = Some(self.reserve_core_for(load, Some(&old))?);
        }
        Ok(())
    }

    /// Loads a new version of the application of its name.
    pub(crate) fn load_next(&self, mut load: Load) -> Result<Next, Refusal> {
        let old = self.live(&load.name)?;
        if self.successor(old.number).is_some() {
            let what = format!(
                "{} is replaced already: its new version begins when it has ended",
                old.name
            );
            return Err(Refusal::new(Kind::Conflict, what).help("try again then"));
        }
        check_replaceable(&old, &load)?;
        let mut pins = Vec::new();
        // Pins are inherited, unless a placement gives new ones.
        if load.pins.is_empty() && !load.exclusive {
            pins = inherited_pins(&load.network, &old);
            let open = self.shared.runtime.available_workers();
            let there = |pin: &Option<u32>| pin.filter(|core| open.contains(core));
            load.pins = pins.iter().map(there).collect();
        }
        let admission = self.admit(&[&load], Some(&old))?.pop().flatten();
        let new = self.load_admitted(load, Some(&old), admission)?;
        let reset = new.app.reset_report(&old.app);
        let _ = new
            .versions
            .state_reset
            .set(reset.lines().map(str::to_string).collect());
        for (actor, pin) in pins.into_iter().enumerate().filter(|p| p.1.is_some()) {
            new.placement.pin(actor, pin);
        }
        Ok(Next { old, new })
    }
}

/// Pins of a new version's actors, from those of the same name.
fn inherited_pins(network: &Network, old: &HostedApp) -> Vec<Option<u32>> {
    let (pins, names) = (old.placement.pins(), old.app.network().actor_names());
    let pin = |name: String| {
        let actor = names.iter().position(|n| *n == name)?;
        pins.get(actor).copied().flatten()
    };
    if pins.iter().any(Option::is_some) {
        network.actor_names().into_iter().map(pin).collect()
    } else {
        Vec::new()
    }
}

fn check_replaceable(old: &HostedApp, load: &Load) -> Result<(), Refusal> {
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
    if old.control.draining.load(Ordering::Relaxed) {
        return refuse(Kind::Conflict, format!("{name} is draining"));
    }
    Ok(())
}
