// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several that are loaded at once are mapped before they begin, with what runs, onto what others leave of the cores: each for itself would begin where it
//! were best alone, and be moved a moment later.

use crate::host::Host;
use crate::load::Load;
use crate::mapping::{self, patiently};
use crate::weights::{mapped, unmeasured};
use levada_map::App;

impl Host {
    /// Where the actors of each of these are to begin; `None`: each for itself. Takes as long as mapping does, some
    /// 0.5 s at the most.
    pub(crate) fn seats_together(&self, loads: &[&Load]) -> Option<Vec<Vec<u32>>> {
        let shared = &self.shared;
        if !shared.balance || loads.len() < 2 {
            return None;
        }
        let (mut apps, mut current) = (Vec::new(), Vec::new());
        for hosted in shared.sharing() {
            let counters = hosted.app.counters().unwrap_or_default();
            current.extend(counters.actors.iter().map(|a| Some(a.target)));
            apps.push(mapped(&hosted, &shared.machine, &counters));
        }
        let before = current.len();
        for load in loads {
            let known = load.object.as_deref();
            let known = known.and_then(|object| shared.known(object, &load.network));
            let (name, network) = (&load.name, &load.network);
            let app = unmeasured(name, network, known.as_ref(), &load.pins, load.limits);
            current.extend(app.actors.iter().map(|_| None));
            let priority = load.priority;
            apps.push(App { priority, ..app });
        }
        let mix = mapping::mix(shared, apps);
        let machine = shared.machine.left(&shared.left());
        let mapped = patiently(move || levada_map::remap(&mix, &machine, &current));
        let placement = mapped.ok()?;
        let mut rest = &placement[before..];
        let mut seats = Vec::new();
        for load in loads {
            let (own, others) = rest.split_at_checked(load.network.actors())?;
            seats.push(own.to_vec());
            rest = others;
        }
        Some(seats)
    }
}
