// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mapping strategies, for a new mix and for a mix that has changed.
//!
//! Levada's strategy generates the placements of all other strategies and refined ones, and chooses
//! by simulation. Its result is therefore as good as the best of them for every mix.

use super::parallel::map_each;
use super::score::Score;
use super::screening::best_screened;
use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;
use crate::model::mix::{App, Mix};
use crate::model::problem::Problem;
use crate::place::bounds::{lower_bound, mean_log_rate_bound_anywhere};
use crate::place::heuristics::{bottleneck, heaviest_first, place, relabel_workers};
use crate::place::loads::Loads;
use crate::search::evaluate::{
    ALL_STRATEGIES_MAX_ACTORS, LOCAL_SEARCH_MAX_ACTORS, quick_score, steady_score, steps_of_part,
    successive_elimination,
};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Actors in order, to cores in order.
    RoundRobin,
    /// Section 3 of the paper: "the heuristics is applied iteratively to each application present,
    /// without taking into account any information about other applications". The heuristic is
    /// Orcc's: heaviest first, each to the core with the least load.
    Lb,
    /// Section 3: the same with "all the actors of all the applications present".
    Glb,
    /// Section 4: "each of the n applications considered is allocated to ⌊8/n⌋ cores". With more
    /// applications than cores, each stays on one core.
    Partition,
    /// Levada's own strategy, the default.
    Levada,
}

impl Strategy {
    pub const ALL: [Strategy; 5] = [
        Strategy::RoundRobin,
        Strategy::Lb,
        Strategy::Glb,
        Strategy::Partition,
        Strategy::Levada,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Strategy::RoundRobin => "round-robin",
            Strategy::Lb => "lb",
            Strategy::Glb => "glb",
            Strategy::Partition => "partition",
            Strategy::Levada => "levada",
        }
    }

    pub fn named(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// For very many actors: partitions are evened out until the busiest core is within `EVEN_RATIO` of
/// the lower bound. Candidates that are less even need an advantage of `UNEVEN_PENALTY` in the mean
/// log rate, or of `UNEVEN_FEW_PENALTY` if the applications are equivalent and the number of actors
/// per core is in `FEW_ACTORS_PER_CORE`: there, short simulations overrate uneven placements.
const EVEN_RATIO: f64 = 1.095;
const UNEVEN_PENALTY: f64 = 0.005;
const FEW_ACTORS_PER_CORE: Range<usize> = 8..16;
const UNEVEN_FEW_PENALTY: f64 = 0.4;

/// Minimum gain of a change in the mean log rate, and the additional gain required for moving all
/// the work.
const GAIN_MIN: f64 = 0.05;
const MOVE_PENALTY: f64 = 0.20;

/// A core for each actor of a new mix.
pub fn map(mix: &Mix, machine: &Machine, strategy: Strategy) -> Result<Placement, Problem> {
    solve_partitions(mix, machine, None, |part, machine, _| match strategy {
        Strategy::Levada => best_initial(part, machine, mix.actors()),
        other => paper_strategy(part, machine, other),
    })
}

/// A core for each actor of a mix that has changed; `current` is none for new actors. Running
/// actors move only if the gain is sufficient, so an unchanged mix stays in place.
pub fn remap(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Result<Placement, Problem> {
    solve_partitions(mix, machine, Some(current), |part, machine, current| {
        best_change(part, machine, current.unwrap_or_default())
    })
}

/// Keeps running actors in place and puts new ones on the least loaded cores.
pub(crate) fn place_new_only(
    mix: &Mix,
    machine: &Machine,
    current: &[Option<u32>],
) -> Result<Placement, Problem> {
    solve_partitions(mix, machine, Some(current), |part, machine, current| {
        let graph = part.graph(&part.targets(machine));
        keep_current(&graph, machine, current.unwrap_or_default())
    })
}

/// The load of the busiest core relative to the lower bound (1: optimal), the worst over the shared
/// cores and the exclusive cores of each application.
pub fn load_to_lower_bound(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
) -> Result<f64, Problem> {
    let worst = core_partitions(mix, machine)?.into_iter().map(|part| {
        let own = machine.subset(&part.cores);
        let mut graph = part.mix.graph(&part.mix.targets(&own));
        let least = lower_bound(&graph, &own);
        // A recorded placement may violate the pins.
        graph.pins.clear();
        let seats: Placement = part.actors.iter().map(|&n| placement[n]).collect();
        bottleneck(&graph, machine, &seats) / least
    });
    Ok(worst.fold(0.0, f64::max))
}

/// Applications that share a set of cores exclusively.
struct CorePartition {
    cores: Vec<u32>,
    /// Pins are indices into `cores`.
    mix: Mix,
    /// Their numbers in the whole mix.
    actors: Vec<usize>,
}

/// One partition per application with exclusive cores, and one for all others.
fn core_partitions(mix: &Mix, machine: &Machine) -> Result<Vec<CorePartition>, Problem> {
    mix.check(machine)?;
    let owners: BTreeMap<u32, Option<usize>> = mix.exclusive.iter().copied().collect();
    let (mut own, mut left) = (BTreeMap::<usize, Vec<u32>>::new(), Vec::new());
    for core in 0..machine.workers() as u32 {
        match owners.get(&core) {
            Some(Some(app)) => own.entry(*app).or_default().push(core),
            Some(None) => {}
            None => left.push(core),
        }
    }
    let rest: Vec<usize> = (0..mix.apps.len())
        .filter(|a| !own.contains_key(a))
        .collect();
    let alone = own.into_iter().map(|(app, cores)| (vec![app], cores));
    let mut groups: Vec<(Vec<usize>, Vec<u32>)> = alone.collect();
    if !rest.is_empty() {
        groups.push((rest, left));
    }
    let ranges = mix.ranges();
    let part = |(apps, cores): (Vec<usize>, Vec<u32>)| {
        if cores.is_empty() {
            let of = |owned: bool| mix.exclusive.iter().any(|e| e.1.is_some() == owned);
            let all = match (of(true), of(false)) {
                (true, true) => "exclusive or reserved",
                (true, false) => "exclusive",
                (false, _) => "reserved",
            };
            let name = &mix.apps[apps[0]].name;
            return Err(Problem::new(
                format!("no core is left for {name}: all are {all}"),
                "leave one to all",
            ));
        }
        let mut part = Mix {
            apps: apps.iter().map(|&a| mix.apps[a].clone()).collect(),
            exclusive: Vec::new(),
        };
        for actor in part.apps.iter_mut().flat_map(|a| &mut a.actors) {
            actor.pin = actor.pin.and_then(|core| index_among(&cores, core));
        }
        Ok(CorePartition {
            actors: apps.iter().flat_map(|&a| ranges[a].clone()).collect(),
            cores,
            mix: part,
        })
    };
    groups.into_iter().map(part).collect()
}

/// The index of a core in the list.
fn index_among(cores: &[u32], core: u32) -> Option<u32> {
    cores.iter().position(|&c| c == core).map(|c| c as u32)
}

/// Maps each partition separately.
fn solve_partitions(
    mix: &Mix,
    machine: &Machine,
    current: Option<&[Option<u32>]>,
    mut solve: impl FnMut(&Mix, &Machine, Option<&[Option<u32>]>) -> Placement,
) -> Result<Placement, Problem> {
    let mut placement = vec![0; mix.actors()];
    for CorePartition { cores, mix, actors } in core_partitions(mix, machine)? {
        let current: Option<Vec<Option<u32>>> = current.map(|c| {
            let at = |&n: &usize| {
                let core = c.get(n).copied().flatten();
                core.and_then(|core| index_among(&cores, core))
            };
            actors.iter().map(at).collect()
        });
        let found = solve(&mix, &machine.subset(&cores), current.as_deref());
        for (number, core) in actors.into_iter().zip(found) {
            placement[number] = cores[core as usize];
        }
    }
    Ok(placement)
}

/// The measured weights as the paper's strategies take them: one unit of each application.
fn unit_graph(mix: &Mix) -> Graph {
    mix.graph(&vec![1.0; mix.apps.len()])
}

fn single_app(mix: &Mix, app: usize) -> Mix {
    Mix {
        apps: vec![mix.apps[app].clone()],
        exclusive: Vec::new(),
    }
}

fn longest_first(graph: &Graph, machine: &Machine) -> Placement {
    let alone: Vec<usize> = (0..graph.busy.len()).collect();
    heaviest_first(graph, machine, &alone)
}

fn paper_strategy(mix: &Mix, machine: &Machine, strategy: Strategy) -> Placement {
    let cores = machine.workers();
    match strategy {
        Strategy::RoundRobin => {
            let pins = unit_graph(mix).pins;
            let turn = |(i, pin): (usize, Option<u32>)| pin.unwrap_or((i % cores) as u32);
            pins.into_iter().enumerate().map(turn).collect()
        }
        Strategy::Lb => (0..mix.apps.len())
            .flat_map(|a| longest_first(&unit_graph(&single_app(mix, a)), machine))
            .collect(),
        Strategy::Glb | Strategy::Levada => longest_first(&unit_graph(mix), machine),
        Strategy::Partition => {
            let apps = mix.apps.len();
            let core_counts = vec![cores / apps; apps];
            place_per_app(mix, machine, &core_counts, false, longest_first)
        }
    }
}

/// Gives each application a number of cores of its own, in order. With fewer cores than
/// applications, each goes to the least loaded core. Applications are placed in parallel if
/// `at_once`.
fn place_per_app(
    mix: &Mix,
    machine: &Machine,
    core_counts: &[usize],
    at_once: bool,
    inside: impl Fn(&Graph, &Machine) -> Placement + Sync,
) -> Placement {
    if mix.apps.len() > machine.workers() {
        return one_core_per_app(mix, machine, &vec![1.0; mix.apps.len()]);
    }
    let mut first = 0;
    let cores = core_counts.iter().map(|&share| {
        first += share;
        (first - share) as u32..first as u32
    });
    let apps = cores.enumerate().collect();
    let placed = map_each(apps, at_once, |(a, cores): (usize, Range<u32>)| {
        let cores: Vec<u32> = cores.collect();
        let mut graph = unit_graph(&single_app(mix, a));
        graph.pins.clear();
        let found = inside(&graph, &machine.subset(&cores));
        let found = found.into_iter().map(|c| cores[c as usize]);
        with_pins(&mix.apps[a], found)
    });
    placed.concat()
}

/// Each application on the least loaded core, at these rates.
fn one_core_per_app(mix: &Mix, machine: &Machine, rates: &[f64]) -> Placement {
    let apps = mix.apps.iter().zip(rates);
    let work = Graph {
        busy: apps.map(|(a, rate)| a.work() * rate).collect(),
        ..Graph::default()
    };
    let homes = longest_first(&work, machine);
    let apps = mix.apps.iter().zip(homes);
    apps.flat_map(|(a, home)| with_pins(a, std::iter::repeat(home)))
        .collect()
}

/// The placement with pins applied.
fn with_pins(app: &App, found: impl Iterator<Item = u32>) -> Placement {
    let actors = app.actors.iter().zip(found);
    let seats = actors.map(|(actor, core)| actor.pin.unwrap_or(core));
    seats.collect()
}

/// The number of cores of each application by its work: at least one, the others where the work per
/// core is largest.
fn core_counts(mix: &Mix, machine: &Machine, rates: &[f64]) -> Vec<usize> {
    let apps = mix.apps.iter().zip(rates);
    let wanted: Vec<f64> = apps.map(|(a, r)| a.work() * r / 1e9).collect();
    let mut core_counts = vec![1; wanted.len()];
    for _ in wanted.len()..machine.workers() {
        let missing = |i: usize| wanted[i] / core_counts[i] as f64;
        let most = (0..wanted.len()).max_by(|&a, &b| missing(a).total_cmp(&missing(b)));
        core_counts[most.unwrap_or(0)] += 1;
    }
    core_counts
}

/// Wake-up latency (nanoseconds) from which cores count as shared with other programs: there,
/// handing work to another core waits that long.
const SHARED_CORE_WAKE_NS: f64 = 1e6;

/// The placements of all strategies, and refined ones. For very many actors, evened-out partitions
/// as well. `on_all_cores`: generates them in parallel, at the expense of what runs meanwhile.
fn candidates(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    rates: &[f64],
    on_all_cores: bool,
) -> Vec<Placement> {
    let very_many = mix.actors() > ALL_STRATEGIES_MAX_ACTORS;
    // One application on all cores is no partition, and placing very many actors takes long.
    let apart = mix.apps.len() <= machine.workers() && (mix.apps.len() > 1 || !very_many);
    type Generator<'a> = Box<dyn Fn() -> Placement + Send + Sync + 'a>;
    let at_once = very_many && on_all_cores;
    let mut generators: Vec<Generator> = vec![Box::new(|| place(graph, machine))];
    if !very_many {
        generators.push(Box::new(|| place(&unit_graph(mix), machine)));
    }
    for &strategy in &Strategy::ALL[..4] {
        generators.push(Box::new(move || paper_strategy(mix, machine, strategy)));
    }
    if machine.costs.wake >= SHARED_CORE_WAKE_NS {
        generators.push(Box::new(|| one_core_per_app(mix, machine, rates)));
    }
    let make = |generators: Vec<Generator>| map_each(generators, at_once, |generate| generate());
    let mut found = make(generators);
    if apart {
        let core_counts = core_counts(mix, machine, rates);
        found.insert(1, place_per_app(mix, machine, &core_counts, at_once, place));
    }
    if very_many {
        let uneven = if apart {
            vec![
                found[1].clone(),
                paper_strategy(mix, machine, Strategy::Partition),
            ]
        } else {
            vec![found[0].clone()]
        };
        let evened = uneven.into_iter().map(|placement| -> Generator {
            Box::new(move || {
                let mut loads = Loads::new(graph, machine, placement.clone());
                loads.even_out(EVEN_RATIO);
                loads.into_placement()
            })
        });
        found.extend(make(evened.collect()));
    }
    found
}

/// The best placement of a mix of which nothing runs yet. `whole` is the number of actors of the
/// entire mix, of which this may be a part.
fn best_initial(mix: &Mix, machine: &Machine, whole: usize) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let found = candidates(mix, machine, &graph, &rates, true);
    select(mix, machine, &graph, found, whole)
}

fn best_change(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let kept = keep_current(&graph, machine, current);
    let stays = quick_score(mix, machine, &kept);
    // No search if it cannot gain enough: it would take time from what runs.
    if stays.meets_all_reservations()
        && mean_log_rate_bound_anywhere(mix, machine) <= stays.mean_log_rate + GAIN_MIN
    {
        return kept;
    }
    let mut found = candidates(mix, machine, &graph, &rates, false);
    let mut refined = Loads::new(&graph, machine, kept.clone());
    refined.refine();
    found.push(refined.into_placement());
    let work: f64 = graph.busy.iter().sum();
    let moved = |placement: &[u32]| -> f64 {
        // New actors have no core yet.
        let there = current.iter().zip(&graph.busy);
        let away = placement
            .iter()
            .zip(there)
            .filter(|(new, (old, _))| old.is_some_and(|old| old != **new));
        away.map(|(_, (_, busy))| busy / work).sum()
    };
    let mut best = (stays.clone(), kept.clone(), 0.0);
    for placement in found {
        let placement = relabel_workers(&graph, machine, placement, &kept);
        let (score, moved) = (quick_score(mix, machine, &placement), moved(&placement));
        let dearer = MOVE_PENALTY * (moved - best.2);
        if score.beats(&stays, GAIN_MIN + MOVE_PENALTY * moved) && score.beats(&best.0, dearer) {
            best = (score, placement, moved);
        }
    }
    let (_, found, moved) = best;
    if found == kept {
        return kept;
    }
    // Confirmed in the steady state before anything is moved.
    let lasts = |placement: &[u32]| steady_score(mix, machine, placement);
    if lasts(&found).beats(&lasts(&kept), GAIN_MIN + MOVE_PENALTY * moved) {
        found
    } else {
        kept
    }
}

/// Keeps running actors in place; new ones go to the least loaded cores.
fn keep_current(graph: &Graph, machine: &Machine, current: &[Option<u32>]) -> Placement {
    let mut kept = graph.clone();
    for (pin, core) in kept.pins.iter_mut().zip(current) {
        *pin = pin.or(*core);
    }
    longest_first(&kept, machine)
}

/// The best candidate: by successive elimination and local search if the entire mix is small,
/// otherwise by screening with a share of the total steps.
fn select(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    found: Vec<Placement>,
    whole: usize,
) -> Placement {
    match whole {
        0..=LOCAL_SEARCH_MAX_ACTORS => {
            let found = deduplicated(found);
            let won = successive_elimination(mix, machine, &found, None);
            let (is, best) = won.expect("the best candidate is never eliminated");
            local_search(mix, machine, graph, is, best.clone())
        }
        _ => {
            let asked = |placement: Placement| {
                let by = required_advantage(mix, machine, graph, &placement);
                (placement, by)
            };
            let found = deduplicated(found).into_iter().map(asked).collect();
            best_screened(mix, machine, found, steps_of_part(mix.actors(), whole))
        }
    }
}

/// The advantage that an uneven placement of very many actors needs over an even one.
fn required_advantage(mix: &Mix, machine: &Machine, graph: &Graph, placement: &[u32]) -> f64 {
    let very_many = mix.actors() > ALL_STRATEGIES_MAX_ACTORS;
    let uneven =
        || bottleneck(graph, machine, placement) > EVEN_RATIO * lower_bound(graph, machine);
    let per_core = mix.actors() / machine.workers();
    let alike = |a: &App| a.reserved_rate.is_none() && a.priority == mix.apps[0].priority;
    let asked = mix.apps.len() <= machine.workers() && mix.apps.iter().all(alike);
    match very_many && uneven() {
        true if asked && FEW_ACTORS_PER_CORE.contains(&per_core) => UNEVEN_FEW_PENALTY,
        true => UNEVEN_PENALTY,
        false => 0.0,
    }
}

/// Without duplicates.
fn deduplicated(found: Vec<Placement>) -> Vec<Placement> {
    let mut deduplicated: Vec<Placement> = Vec::new();
    for placement in found {
        if !deduplicated.contains(&placement) {
            deduplicated.push(placement);
        }
    }
    deduplicated
}

/// Local search by steady scores until it gains nothing, so that mapping again moves nothing.
fn local_search(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    mut is: Score,
    mut placement: Placement,
) -> Placement {
    loop {
        let mut refined = Loads::new(graph, machine, placement.clone());
        refined.refine();
        let refined = refined.into_placement();
        if refined == placement {
            return placement;
        }
        match successive_elimination(mix, machine, std::slice::from_ref(&refined), Some(&is)) {
            Some((then, _)) if then.beats(&is, 1e-6) => (is, placement) = (then, refined),
            _ => return placement,
        }
    }
}

#[cfg(test)]
pub(crate) fn all_candidates(mix: &Mix, machine: &Machine) -> Vec<Placement> {
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    deduplicated(candidates(mix, machine, &graph, &rates, true))
}
