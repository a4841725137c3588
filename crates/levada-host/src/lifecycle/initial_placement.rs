// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the actors of a new application begin: on the cores that are for all, by what is known of it, and by what is left
//! of each. Several that are loaded at once are mapped before they begin, with what runs: each for itself would begin where
//! it were best alone, and be moved a moment later.

use crate::context::Sharing;
use crate::host::Host;
use crate::lifecycle::load::Load;
use crate::mapping;
use crate::mapping::patiently;
use crate::mapping::weights::{mapped, unmeasured};
use crate::model::error::{Kind, Refusal};
use levada_map::{Graph, Machine, Placement, place};

impl Host {
    pub(crate) fn are_open(&self, workers: &[u32]) -> bool {
        let open = self.shared.runtime.open();
        workers.iter().all(|worker| open.contains(worker))
    }

    /// Where the actors of a new one begin: on cores that are for all, by what is left of them. `beside` is what programs
    /// beside this host are said to take of each.
    pub(crate) fn seats_of_one(
        &self,
        mut graph: Graph,
        known: bool,
        beside: &[f64],
    ) -> Result<Vec<u32>, Refusal> {
        let (machine, open) = (&self.shared.machine, self.shared.runtime.open());
        let inside = |core: u32| open.iter().position(|&c| c == core).map(|c| c as u32);
        for pin in &mut graph.pins {
            if let Some(core) = pin.filter(|&core| inside(core).is_none()) {
                let what =
                    format!("worker {core}, which an actor is pinned to, is not for all now");
                return Err(Refusal::new(Kind::Conflict, what).help("see levada map"));
            }
            *pin = pin.and_then(inside);
        }
        let (loads, left) = (self.shared.loads(), self.shared.left());
        let more = |core: u32| {
            let share = beside.get(core as usize).filter(|s| s.is_finite());
            let taken = 1.0 - left[core as usize];
            (share.map_or(0.0, |s| s.clamp(0.0, 1e3)) + taken) * A_CORE
        };
        let loads = open.iter().map(|&c| loads[c as usize] + more(c));
        let loads: Vec<f64> = loads.collect();
        let left: Vec<f64> = open.iter().map(|&c| left[c as usize]).collect();
        let machine = machine.subset(&open).with_available(&left);
        // Which part of it is heavy is not known. In the host itself all are mapped when that has been measured; of
        // what others do nobody knows more later.
        let found = match known || beside.is_empty() {
            true => place_beside(&graph, &machine, &loads),
            false => place_among(&graph, &machine, &loads),
        };
        Ok(found.into_iter().map(|c| open[c as usize]).collect())
    }

    /// Where the actors of each of these are to begin; `None`: each for itself. Takes as long as mapping does, some
    /// 0.5 s at the most.
    pub(crate) fn seats_together(&self, loads: &[&Load]) -> Option<Vec<Vec<u32>>> {
        let shared = &self.shared;
        if !shared.balance || loads.len() < 2 {
            return None;
        }
        let (mut apps, mut current) = (Vec::new(), Vec::new());
        for Sharing { hosted, promised } in shared.sharing() {
            let counters = hosted.app.counters().unwrap_or_default();
            current.extend(counters.actors.iter().map(|a| Some(a.target)));
            apps.push(mapped(&hosted, promised, &shared.machine, &counters));
        }
        let before = current.len();
        for load in loads {
            let known = self.known(load);
            let (name, network) = (&load.name, &load.network);
            let (limits, priority) = (load.limits, load.priority);
            let app = unmeasured(name, network, known.as_ref(), &load.pins, limits, priority);
            current.extend(app.actors.iter().map(|_| None));
            apps.push(app);
        }
        let mix = mapping::mix(shared, apps);
        let machine = shared.machine.with_available(&shared.left());
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

/// Places a new application beside others: as if it were alone, and then its heaviest part where there
/// is most room, what is pinned apart. `loads` is how busy each worker is with the others.
fn place_beside(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
    let alone = place(graph, machine);
    let mut parts = vec![0.0; machine.workers()];
    for (worker, busy) in alone.iter().zip(&graph.busy) {
        parts[*worker as usize] += busy;
    }
    let load = |w: usize| loads.get(w).copied().unwrap_or(0.0);
    let (mut heaviest, mut emptiest): (Vec<usize>, Vec<usize>) =
        ((0..parts.len()).collect(), (0..parts.len()).collect());
    heaviest.sort_by(|a, b| parts[*b].total_cmp(&parts[*a]));
    emptiest.sort_by(|a, b| load(*a).total_cmp(&load(*b)));
    let mut name = vec![0; parts.len()];
    for (part, worker) in heaviest.into_iter().zip(emptiest) {
        name[part] = worker as u32;
    }
    let seat = |(actor, part): (usize, u32)| graph.pin(actor).unwrap_or(name[part as usize]);
    alone.into_iter().enumerate().map(seat).collect()
}

/// What one takes who has a core for itself, in nanoseconds of a second.
const A_CORE: f64 = 1e9;

/// Places a new application of which nothing is known beside others, as one that takes a core, each actor as much of
/// it as any other.
fn place_among(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
    let actors = graph.busy.len();
    let whole: f64 = graph.busy.iter().sum();
    let mut all = graph.clone();
    all.pins.resize(actors, None);
    for (worker, load) in loads.iter().enumerate() {
        all.busy.push(load / A_CORE * whole);
        all.pins.push(Some(worker as u32));
    }
    let mut placement = place(&all, machine);
    placement.truncate(actors);
    placement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(busy: &[f64]) -> Graph {
        Graph {
            busy: busy.to_vec(),
            ..Graph::default()
        }
    }

    #[test]
    fn the_heaviest_part_goes_where_there_is_most_room() {
        let machine = Machine::new(2);
        let loads = [5.0, 1.0];
        assert_eq!(place_beside(&alone(&[3.0, 1.0]), &machine, &loads), [1, 0]);
        assert_eq!(place_beside(&alone(&[1.0]), &machine, &loads), [1]);
        assert_eq!(place_beside(&alone(&[1.0]), &machine, &[1.0, 5.0]), [0]);
        // What is pinned stays.
        let mut graph = alone(&[3.0, 1.0]);
        graph.pins = vec![Some(0), None];
        assert_eq!(place_beside(&graph, &machine, &loads)[0], 0);
        // As it was, where nobody else is.
        let graph = alone(&[1.0, 3.0]);
        let placed = place_beside(&graph, &machine, &[]);
        assert_ne!(placed[0], placed[1]);
    }

    #[test]
    fn who_is_not_known_begins_where_others_leave_most() {
        let machine = Machine::new(2);
        let three = alone(&[1.0; 3]);
        assert_eq!(place_among(&three, &machine, &[A_CORE, 0.0]), [1; 3]);
        assert_eq!(place_among(&three, &machine, &[0.0, A_CORE]), [0; 3]);
        let one = alone(&[1.0]);
        assert_eq!(place_among(&one, &machine, &[1e6, 0.0]), [1]);
        assert_eq!(place_among(&one, &machine, &[0.0, 1e6]), [0]);
        let even = place_among(&alone(&[1.0; 4]), &machine, &[A_CORE / 2.0; 2]);
        assert_eq!(even.iter().sum::<u32>(), 2);
        // What is pinned stays.
        let mut pinned = alone(&[1.0]);
        pinned.pins = vec![Some(0)];
        assert_eq!(place_among(&pinned, &machine, &[A_CORE, 0.0]), [0]);
    }
}
