// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The strategies: how a mix is put on a machine, and how it is put there anew.
//!
//! Levada's own makes the placements of all the others, and better ones, and lets the simulator say
//! which of them is best. So it is as good as the best of them for each mix, whatever that mix is.

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
    /// Actor by actor, core by core.
    RoundRobin,
    /// Section 3 of the paper: "the heuristics is applied iteratively to each application present,
    /// without taking into account any information about other applications". The heuristic is
    /// Orcc's: heaviest first, each to the core with the least load.
    Lb,
    /// Section 3: the same with "all the actors of all the applications present".
    Glb,
    /// Section 4: "each of the n applications considered is allocated to ⌊8/n⌋ cores"; where there
    /// are more applications than cores, each is kept on one.
    Partition,
    /// Levada's own, the default.
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

/// With very many actors, and a core for each application, partitions are evened out, too, until the busiest core is this close
/// to the bound. What is not is to be better by so much than what is; and by more where applications are alike and cores have so
/// many actors each: as few as may be evened out, and so few that it costs rates, in short looks more than after long.
const EVEN_RATIO: f64 = 1.095;
const UNEVEN_PENALTY: f64 = 0.005;
const FEW_ACTORS_PER_CORE: Range<usize> = 8..16;
const UNEVEN_FEW_PENALTY: f64 = 0.4;

/// A change is worth this much of the rates, and this much for moving all the work.
const GAIN_MIN: f64 = 0.05;
const MOVE_PENALTY: f64 = 0.20;

/// A core for each actor of the mix.
pub fn map(mix: &Mix, machine: &Machine, strategy: Strategy) -> Result<Placement, Problem> {
    solve_partitions(mix, machine, None, |part, machine, _| match strategy {
        Strategy::Levada => best_initial(part, machine, mix.actors()),
        other => paper_strategy(part, machine, other),
    })
}

/// A core for each actor when the mix has changed: `current` has none for those that are new. What
/// runs already is moved only as far as that is worth it, so the same mix again moves nothing.
pub fn remap(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Result<Placement, Problem> {
    solve_partitions(mix, machine, Some(current), |part, machine, current| {
        best(part, machine, current.unwrap_or_default())
    })
}

/// The same where nobody moves who is somewhere: what is new goes where least is to do.
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

/// How much the busiest core has to do, in shares of the least that it can be (1: no placement is better): among the cores
/// that are for all, and among those of each application that has some to itself, whichever is the worst.
pub fn load_to_lower_bound(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
) -> Result<f64, Problem> {
    let worst = core_partitions(mix, machine)?.into_iter().map(|part| {
        let own = machine.subset(&part.cores);
        let mut graph = part.mix.graph(&part.mix.targets(&own));
        let least = lower_bound(&graph, &own);
        // A placement that was recorded, or is given, may have put them elsewhere.
        graph.pins.clear();
        let seats: Placement = part.actors.iter().map(|&n| placement[n]).collect();
        bottleneck(&graph, machine, &seats) / least
    });
    Ok(worst.fold(0.0, f64::max))
}

/// Applications that have the same cores, and no others have these.
struct CorePartition {
    cores: Vec<u32>,
    /// With pins by their places among these cores.
    mix: Mix,
    /// Their numbers in the whole mix.
    actors: Vec<usize>,
}

/// Each application with exclusive cores has these, the others have what is left.
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
            actor.pin = actor.pin.and_then(|core| inside(&cores, core));
        }
        Ok(CorePartition {
            actors: apps.iter().flat_map(|&a| ranges[a].clone()).collect(),
            cores,
            mix: part,
        })
    };
    groups.into_iter().map(part).collect()
}

/// The place of a core among these.
fn inside(cores: &[u32], core: u32) -> Option<u32> {
    cores.iter().position(|&c| c == core).map(|c| c as u32)
}

/// Applications with exclusive cores are mapped onto these, the others onto what is left.
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
                core.and_then(|core| inside(&cores, core))
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

/// The weights that were measured, as the paper's strategies take them: a unit of each.
fn unit_graph(mix: &Mix) -> Graph {
    mix.graph(&vec![1.0; mix.apps.len()])
}

fn single_app(mix: &Mix, app: usize) -> Mix {
    Mix {
        apps: vec![mix.apps[app].clone()],
        exclusive: Vec::new(),
    }
}

fn balanced(graph: &Graph, machine: &Machine) -> Placement {
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
            .flat_map(|a| balanced(&unit_graph(&single_app(mix, a)), machine))
            .collect(),
        Strategy::Glb | Strategy::Levada => balanced(&unit_graph(mix), machine),
        Strategy::Partition => {
            let apps = mix.apps.len();
            let core_counts = vec![cores / apps; apps];
            place_per_app(mix, machine, &core_counts, false, balanced)
        }
    }
}

/// Each application on so many cores of its own, one after the other; where there are fewer cores
/// than applications, each on the one with the least to do. Applications are placed one by one, or several `at_once`.
fn place_per_app(
    mix: &Mix,
    machine: &Machine,
    core_counts: &[usize],
    at_once: bool,
    inside: impl Fn(&Graph, &Machine) -> Placement + Sync,
) -> Placement {
    if mix.apps.len() > machine.workers() {
        return whole(mix, machine, &vec![1.0; mix.apps.len()]);
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

/// Each application on one core, the one with the least to do, at these rates.
fn whole(mix: &Mix, machine: &Machine, rates: &[f64]) -> Placement {
    let apps = mix.apps.iter().zip(rates);
    let work = Graph {
        busy: apps.map(|(a, rate)| a.work() * rate).collect(),
        ..Graph::default()
    };
    let homes = balanced(&work, machine);
    let apps = mix.apps.iter().zip(homes);
    apps.flat_map(|(a, home)| with_pins(a, std::iter::repeat(home)))
        .collect()
}

/// There, but for those that must be elsewhere.
fn with_pins(app: &App, found: impl Iterator<Item = u32>) -> Placement {
    let actors = app.actors.iter().zip(found);
    let seats = actors.map(|(actor, core)| actor.pin.unwrap_or(core));
    seats.collect()
}

/// Cores for each application by the work it is to do: one at least, the rest where most is missing.
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

/// Nanoseconds that workers wait for their turn where other programs have the core, too: then who hands anything over to
/// another core waits that long.
const SHARED_CORE_WAKE_NS: f64 = 1e6;

/// The placements of all strategies, and better ones; with very many actors partitions that are evened out, too, and where there
/// is no partition, what is placed. `on_all_cores`: these are made side by side, and what runs meanwhile has less of all cores.
fn candidates(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    rates: &[f64],
    on_all_cores: bool,
) -> Vec<Placement> {
    let very_many = mix.actors() > ALL_STRATEGIES_MAX_ACTORS;
    // All cores for one application are no partition, and to place very many actors takes long.
    let apart = mix.apps.len() <= machine.workers() && (mix.apps.len() > 1 || !very_many);
    type Way<'a> = Box<dyn Fn() -> Placement + Send + Sync + 'a>;
    let at_once = very_many && on_all_cores;
    let mut ways: Vec<Way> = vec![Box::new(|| place(graph, machine))];
    if !very_many {
        ways.push(Box::new(|| place(&unit_graph(mix), machine)));
    }
    for &strategy in &Strategy::ALL[..4] {
        ways.push(Box::new(move || paper_strategy(mix, machine, strategy)));
    }
    if machine.costs.wake >= SHARED_CORE_WAKE_NS {
        ways.push(Box::new(|| whole(mix, machine, rates)));
    }
    let make = |ways: Vec<Way>| map_each(ways, at_once, |way| way());
    let mut found = make(ways);
    if apart {
        let core_counts = core_counts(mix, machine, rates);
        found.insert(1, place_per_app(mix, machine, &core_counts, at_once, place));
    }
    if very_many {
        let uneven = match apart {
            true => vec![
                found[1].clone(),
                paper_strategy(mix, machine, Strategy::Partition),
            ],
            false => vec![found[0].clone()],
        };
        let evened = uneven.into_iter().map(|placement| -> Way {
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

/// Where none of it runs yet. The whole mix, of which this may be a part, has so many actors.
fn best_initial(mix: &Mix, machine: &Machine, whole: usize) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let found = candidates(mix, machine, &graph, &rates, true);
    select(mix, machine, &graph, found, whole)
}

fn best(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let kept = keep_current(&graph, machine, current);
    let stays = quick_score(mix, machine, &kept);
    // Who is so well off is left alone at once: to look at all the others takes time from what runs.
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
        // What is new is nowhere yet.
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
    // Nobody is moved for what does not last.
    let lasts = |placement: &[u32]| steady_score(mix, machine, placement);
    match lasts(&found).beats(&lasts(&kept), GAIN_MIN + MOVE_PENALTY * moved) {
        true => found,
        false => kept,
    }
}

/// What is there stays; what is new goes where least is to do.
fn keep_current(graph: &Graph, machine: &Machine, current: &[Option<u32>]) -> Placement {
    let mut kept = graph.clone();
    for (pin, core) in kept.pins.iter_mut().zip(current) {
        *pin = pin.or(*core);
    }
    balanced(&kept, machine)
}

/// The best of these, mended where the whole mix has few actors. Else its parts have the time together that it has.
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
            let (is, best) = won.expect("who is first is never given up");
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

/// Of very many actors, by how much it has to be better than those that are even enough, to be preferred to them.
fn required_advantage(mix: &Mix, machine: &Machine, graph: &Graph, placement: &[u32]) -> f64 {
    let very_many = mix.actors() > ALL_STRATEGIES_MAX_ACTORS;
    let uneven =
        || bottleneck(graph, machine, placement) > EVEN_RATIO * lower_bound(graph, machine);
    let map_each = mix.actors() / machine.workers();
    let alike = |a: &App| a.promise.is_none() && a.priority == mix.apps[0].priority;
    let asked = mix.apps.len() <= machine.workers() && mix.apps.iter().all(alike);
    match very_many && uneven() {
        true if asked && FEW_ACTORS_PER_CORE.contains(&map_each) => UNEVEN_FEW_PENALTY,
        true => UNEVEN_PENALTY,
        false => 0.0,
    }
}

/// Each once.
fn deduplicated(found: Vec<Placement>) -> Vec<Placement> {
    let mut deduplicated: Vec<Placement> = Vec::new();
    for placement in found {
        if !deduplicated.contains(&placement) {
            deduplicated.push(placement);
        }
    }
    deduplicated
}

/// Mended until mending gains nothing: so what is mapped stays where it is.
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
