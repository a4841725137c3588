// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Initial placement of a new application: on the cores that are not reserved, by its profile and by the capacity
//! that each core has left. Applications that are loaded together are mapped together with those that run; placed
//! one by one, they would be moved a moment later.

use crate::context::SharingApp;
use crate::host::Host;
use crate::lifecycle::load::Load;
use crate::mapping;
use crate::mapping::run_when_idle;
use crate::mapping::weights::{app_for_mapper, app_from_profile};
use crate::model::error::{Kind, Refusal};
use levada_map::{Graph, Machine, Placement, place};

impl Host {
    pub(crate) fn are_available(&self, workers: &[u32]) -> bool {
        let open = self.shared.runtime.available_workers();
        workers.iter().all(|worker| open.contains(worker))
    }

    /// The initial workers of one application: on cores that are not reserved, by their remaining capacity.
    /// `load_by_others` is the reported load of other programs on each core.
    pub(crate) fn initial_placement(
        &self,
        mut graph: Graph,
        known: bool,
        load_by_others: &[f64],
    ) -> Result<Vec<u32>, Refusal> {
        let (machine, open) = (
            &self.shared.machine,
            self.shared.runtime.available_workers(),
        );
        let inside = |core: u32| open.iter().position(|&c| c == core).map(|c| c as u32);
        for pin in &mut graph.pins {
            if let Some(core) = pin.filter(|&core| inside(core).is_none()) {
                let what = format!(
                    "worker {core}, to which an actor is pinned, is reserved or exclusive now"
                );
                return Err(Refusal::new(Kind::Conflict, what).help("see levada map"));
            }
            *pin = pin.and_then(inside);
        }
        let (loads, left) = (self.shared.loads(), self.shared.available());
        let more = |core: u32| {
            let share = load_by_others.get(core as usize).filter(|s| s.is_finite());
            let taken = 1.0 - left[core as usize];
            (share.map_or(0.0, |s| s.clamp(0.0, 1e3)) + taken) * CORE_NS_PER_S
        };
        let loads = open.iter().map(|&c| loads[c as usize] + more(c));
        let loads: Vec<f64> = loads.collect();
        let left: Vec<f64> = open.iter().map(|&c| left[c as usize]).collect();
        let machine = machine.subset(&open).with_available(&left);
        // Which part of the application is heavy is unknown. In a host, all are mapped again after it has been
        // measured; the load of other programs does not become known later.
        let found = if known || load_by_others.is_empty() {
            place_where_least_loaded(&graph, &machine, &loads)
        } else {
            place_as_full_load(&graph, &machine, &loads)
        };
        Ok(found.into_iter().map(|c| open[c as usize]).collect())
    }

    /// The initial workers of several applications; `None`: each is placed by itself. Takes as long as mapping, at
    /// most about 0.5 s.
    pub(crate) fn initial_placements(&self, loads: &[&Load]) -> Option<Vec<Vec<u32>>> {
        let shared = &self.shared;
        if !shared.balance || loads.len() < 2 {
            return None;
        }
        let (mut apps, mut current) = (Vec::new(), Vec::new());
        for SharingApp {
            hosted,
            reserved_rate: reserved,
        } in shared.apps_sharing_cores()
        {
            let counters = hosted.app.counters().unwrap_or_default();
            current.extend(counters.actors.iter().map(|a| Some(a.target)));
            apps.push(app_for_mapper(
                &hosted,
                reserved,
                &shared.machine,
                &counters,
            ));
        }
        let before = current.len();
        for load in loads {
            let known = self.known(load);
            let (name, network) = (&load.name, &load.network);
            let (limits, priority) = (load.limits, load.priority);
            let app = app_from_profile(name, network, known.as_ref(), &load.pins, limits, priority);
            current.extend(app.actors.iter().map(|_| None));
            apps.push(app);
        }
        let mix = mapping::mix(shared, apps);
        let machine = shared.machine.with_available(&shared.available());
        let mapped = run_when_idle(move || levada_map::remap(&mix, &machine, &current));
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

/// Places a new application as if it were alone, and then assigns its heaviest part to the least loaded worker, and so
/// on, except pinned actors. `loads` is the load of each worker by others, in nanoseconds per second.
fn place_where_least_loaded(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
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

/// The load of a fully used core, in nanoseconds per second.
const CORE_NS_PER_S: f64 = 1e9;

/// Places a new application of unknown cost as if it used one core, divided equally among its actors.
fn place_as_full_load(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
    let actors = graph.busy.len();
    let whole: f64 = graph.busy.iter().sum();
    let mut all = graph.clone();
    all.pins.resize(actors, None);
    for (worker, load) in loads.iter().enumerate() {
        all.busy.push(load / CORE_NS_PER_S * whole);
        all.pins.push(Some(worker as u32));
    }
    let mut placement = place(&all, machine);
    placement.truncate(actors);
    placement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::graph::tests::alone;

    #[test]
    fn the_heaviest_part_goes_where_there_is_most_room() {
        let machine = Machine::new(2);
        let loads = [5.0, 1.0];
        assert_eq!(
            place_where_least_loaded(&alone(&[3.0, 1.0]), &machine, &loads),
            [1, 0]
        );
        assert_eq!(
            place_where_least_loaded(&alone(&[1.0]), &machine, &loads),
            [1]
        );
        assert_eq!(
            place_where_least_loaded(&alone(&[1.0]), &machine, &[1.0, 5.0]),
            [0]
        );
        // A pinned actor stays.
        let mut graph = alone(&[3.0, 1.0]);
        graph.pins = vec![Some(0), None];
        assert_eq!(place_where_least_loaded(&graph, &machine, &loads)[0], 0);
        // Unchanged if there are no others.
        let graph = alone(&[1.0, 3.0]);
        let placed = place_where_least_loaded(&graph, &machine, &[]);
        assert_ne!(placed[0], placed[1]);
    }

    #[test]
    fn an_application_without_profile_starts_where_most_is_left() {
        let machine = Machine::new(2);
        let three = alone(&[1.0; 3]);
        assert_eq!(
            place_as_full_load(&three, &machine, &[CORE_NS_PER_S, 0.0]),
            [1; 3]
        );
        assert_eq!(
            place_as_full_load(&three, &machine, &[0.0, CORE_NS_PER_S]),
            [0; 3]
        );
        let one = alone(&[1.0]);
        assert_eq!(place_as_full_load(&one, &machine, &[1e6, 0.0]), [1]);
        assert_eq!(place_as_full_load(&one, &machine, &[0.0, 1e6]), [0]);
        let even = place_as_full_load(&alone(&[1.0; 4]), &machine, &[CORE_NS_PER_S / 2.0; 2]);
        assert_eq!(even.iter().sum::<u32>(), 2);
        // A pinned actor stays.
        let mut pinned = alone(&[1.0]);
        pinned.pins = vec![Some(0)];
        assert_eq!(
            place_as_full_load(&pinned, &machine, &[CORE_NS_PER_S, 0.0]),
            [0]
        );
    }
}
