// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The strategies: how a mix is put on a machine, and how it is put there anew.
//!
//! Levada's own makes the placements of all the others, and better ones, and lets the simulator say
//! which of them is best. So it is as good as the best of them for each mix, whatever that mix is.

use super::parallel::each;
use super::score::Score;
use super::screening::best_looking;
use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;
use crate::model::mix::{App, Mix};
use crate::model::problem::Problem;
use crate::place::bounds::{lower_bound, most_anywhere};
use crate::place::heuristics::{bottleneck, heaviest_first, place, renamed};
use crate::place::loads::Loads;
use crate::search::evaluate::{ALL_TRIED, MENDED, glance, race, steps_of_part, verdict};
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
const EVEN_ENOUGH: f64 = 1.095;
const UNEVEN: f64 = 0.005;
const FEW_EACH: Range<usize> = 8..16;
const UNEVEN_FEW: f64 = 0.4;

/// A change is worth this much of the rates, and this much for moving all the work.
const WORTH: f64 = 0.05;
const MOVING: f64 = 0.20;

/// A core for each actor of the mix.
pub fn map(mix: &Mix, machine: &Machine, strategy: Strategy) -> Result<Placement, Problem> {
    each_part(mix, machine, None, |part, machine, _| match strategy {
        Strategy::Levada => best_of_new(part, machine, mix.actors()),
        other => simple(part, machine, other),
    })
}

/// A core for each actor when the mix has changed: `current` has none for those that are new. What
/// runs already is moved only as far as that is worth it, so the same mix again moves nothing.
pub fn remap(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Result<Placement, Problem> {
    each_part(mix, machine, Some(current), |part, machine, current| {
        best(part, machine, current.unwrap_or_default())
    })
}

/// The same where nobody moves who is somewhere: what is new goes where least is to do.
pub(crate) fn joined(
    mix: &Mix,
    machine: &Machine,
    current: &[Option<u32>],
) -> Result<Placement, Problem> {
    each_part(mix, machine, Some(current), |part, machine, current| {
        let graph = part.graph(&part.targets(machine));
        staying(&graph, machine, current.unwrap_or_default())
    })
}

/// How much the busiest core has to do, in shares of the least that it can be (1: no placement is better): among the cores
/// that are for all, and among those of each application that has some to itself, whichever is the worst.
pub fn busiest_to_bound(mix: &Mix, machine: &Machine, placement: &[u32]) -> Result<f64, Problem> {
    let worst = parts(mix, machine)?.into_iter().map(|part| {
        let own = machine.part(&part.cores);
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
struct Part {
    cores: Vec<u32>,
    /// With pins by their places among these cores.
    mix: Mix,
    /// Their numbers in the whole mix.
    actors: Vec<usize>,
}

/// Each application with exclusive cores has these, the others have what is left.
fn parts(mix: &Mix, machine: &Machine) -> Result<Vec<Part>, Problem> {
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
    let mut parts: Vec<(Vec<usize>, Vec<u32>)> = alone.collect();
    if !rest.is_empty() {
        parts.push((rest, left));
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
        Ok(Part {
            actors: apps.iter().flat_map(|&a| ranges[a].clone()).collect(),
            cores,
            mix: part,
        })
    };
    parts.into_iter().map(part).collect()
}

/// The place of a core among these.
fn inside(cores: &[u32], core: u32) -> Option<u32> {
    cores.iter().position(|&c| c == core).map(|c| c as u32)
}

/// Applications with exclusive cores are mapped onto these, the others onto what is left.
fn each_part(
    mix: &Mix,
    machine: &Machine,
    current: Option<&[Option<u32>]>,
    mut solve: impl FnMut(&Mix, &Machine, Option<&[Option<u32>]>) -> Placement,
) -> Result<Placement, Problem> {
    let mut placement = vec![0; mix.actors()];
    for Part { cores, mix, actors } in parts(mix, machine)? {
        let current: Option<Vec<Option<u32>>> = current.map(|c| {
            let at = |&n: &usize| {
                let core = c.get(n).copied().flatten();
                core.and_then(|core| inside(&cores, core))
            };
            actors.iter().map(at).collect()
        });
        let found = solve(&mix, &machine.part(&cores), current.as_deref());
        for (number, core) in actors.into_iter().zip(found) {
            placement[number] = cores[core as usize];
        }
    }
    Ok(placement)
}

/// The weights that were measured, as the paper's strategies take them: a unit of each.
fn measured(mix: &Mix) -> Graph {
    mix.graph(&vec![1.0; mix.apps.len()])
}

fn only(mix: &Mix, app: usize) -> Mix {
    Mix {
        apps: vec![mix.apps[app].clone()],
        exclusive: Vec::new(),
    }
}

fn balanced(graph: &Graph, machine: &Machine) -> Placement {
    let alone: Vec<usize> = (0..graph.busy.len()).collect();
    heaviest_first(graph, machine, &alone)
}

fn simple(mix: &Mix, machine: &Machine, strategy: Strategy) -> Placement {
    let cores = machine.workers();
    match strategy {
        Strategy::RoundRobin => {
            let pins = measured(mix).pins;
            let turn = |(i, pin): (usize, Option<u32>)| pin.unwrap_or((i % cores) as u32);
            pins.into_iter().enumerate().map(turn).collect()
        }
        Strategy::Lb => (0..mix.apps.len())
            .flat_map(|a| balanced(&measured(&only(mix, a)), machine))
            .collect(),
        Strategy::Glb | Strategy::Levada => balanced(&measured(mix), machine),
        Strategy::Partition => {
            let apps = mix.apps.len();
            let shares = vec![cores / apps; apps];
            parted(mix, machine, &shares, false, balanced)
        }
    }
}

/// Each application on so many cores of its own, one after the other; where there are fewer cores
/// than applications, each on the one with the least to do. Applications are placed one by one, or several `at_once`.
fn parted(
    mix: &Mix,
    machine: &Machine,
    shares: &[usize],
    at_once: bool,
    inside: impl Fn(&Graph, &Machine) -> Placement + Sync,
) -> Placement {
    if mix.apps.len() > machine.workers() {
        return whole(mix, machine, &vec![1.0; mix.apps.len()]);
    }
    let mut first = 0;
    let cores = shares.iter().map(|&share| {
        first += share;
        (first - share) as u32..first as u32
    });
    let apps = cores.enumerate().collect();
    let placed = each(apps, at_once, |(a, cores): (usize, Range<u32>)| {
        let cores: Vec<u32> = cores.collect();
        let mut graph = measured(&only(mix, a));
        graph.pins.clear();
        let found = inside(&graph, &machine.part(&cores));
        let found = found.into_iter().map(|c| cores[c as usize]);
        pinned(&mix.apps[a], found)
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
    apps.flat_map(|(a, home)| pinned(a, std::iter::repeat(home)))
        .collect()
}

/// There, but for those that must be elsewhere.
fn pinned(app: &App, found: impl Iterator<Item = u32>) -> Placement {
    let actors = app.actors.iter().zip(found);
    let seats = actors.map(|(actor, core)| actor.pin.unwrap_or(core));
    seats.collect()
}

/// Cores for each application by the work it is to do: one at least, the rest where most is missing.
fn shares(mix: &Mix, machine: &Machine, rates: &[f64]) -> Vec<usize> {
    let apps = mix.apps.iter().zip(rates);
    let wanted: Vec<f64> = apps.map(|(a, r)| a.work() * r / 1e9).collect();
    let mut shares = vec![1; wanted.len()];
    for _ in wanted.len()..machine.workers() {
        let missing = |i: usize| wanted[i] / shares[i] as f64;
        let most = (0..wanted.len()).max_by(|&a, &b| missing(a).total_cmp(&missing(b)));
        shares[most.unwrap_or(0)] += 1;
    }
    shares
}

/// Nanoseconds that workers wait for their turn where other programs have the core, too: then who hands anything over to
/// another core waits that long.
const LONG_WAITS: f64 = 1e6;

/// The placements of all strategies, and better ones; with very many actors partitions that are evened out, too, and where there
/// is no partition, what is placed. `on_all_cores`: these are made side by side, and what runs meanwhile has less of all cores.
fn candidates(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    rates: &[f64],
    on_all_cores: bool,
) -> Vec<Placement> {
    let very_many = mix.actors() > ALL_TRIED;
    // All cores for one application are no partition, and to place very many actors takes long.
    let apart = mix.apps.len() <= machine.workers() && (mix.apps.len() > 1 || !very_many);
    type Way<'a> = Box<dyn Fn() -> Placement + Send + Sync + 'a>;
    let at_once = very_many && on_all_cores;
    let mut ways: Vec<Way> = vec![Box::new(|| place(graph, machine))];
    if !very_many {
        ways.push(Box::new(|| place(&measured(mix), machine)));
    }
    for &strategy in &Strategy::ALL[..4] {
        ways.push(Box::new(move || simple(mix, machine, strategy)));
    }
    if machine.costs.wake >= LONG_WAITS {
        ways.push(Box::new(|| whole(mix, machine, rates)));
    }
    let make = |ways: Vec<Way>| each(ways, at_once, |way| way());
    let mut found = make(ways);
    if apart {
        let shares = shares(mix, machine, rates);
        found.insert(1, parted(mix, machine, &shares, at_once, place));
    }
    if very_many {
        let uneven = match apart {
            true => vec![found[1].clone(), simple(mix, machine, Strategy::Partition)],
            false => vec![found[0].clone()],
        };
        let evened = uneven.into_iter().map(|placement| -> Way {
            Box::new(move || {
                let mut loads = Loads::new(graph, machine, placement.clone());
                loads.even_out(EVEN_ENOUGH);
                loads.into_placement()
            })
        });
        found.extend(make(evened.collect()));
    }
    found
}

/// Where none of it runs yet. The whole mix, of which this may be a part, has so many actors.
fn best_of_new(mix: &Mix, machine: &Machine, whole: usize) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let found = candidates(mix, machine, &graph, &rates, true);
    lasting(mix, machine, &graph, found, whole)
}

fn best(mix: &Mix, machine: &Machine, current: &[Option<u32>]) -> Placement {
    if machine.workers() == 1 {
        return vec![0; mix.actors()];
    }
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    let kept = staying(&graph, machine, current);
    let stays = glance(mix, machine, &kept);
    // Who is so well off is left alone at once: to look at all the others takes time from what runs.
    if stays.keeps_all() && most_anywhere(mix, machine) <= stays.mean + WORTH {
        return kept;
    }
    let mut found = candidates(mix, machine, &graph, &rates, false);
    let mut mended = Loads::new(&graph, machine, kept.clone());
    mended.refine();
    found.push(mended.into_placement());
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
        let placement = renamed(&graph, machine, placement, &kept);
        let (score, moved) = (glance(mix, machine, &placement), moved(&placement));
        let dearer = MOVING * (moved - best.2);
        if score.beats(&stays, WORTH + MOVING * moved) && score.beats(&best.0, dearer) {
            best = (score, placement, moved);
        }
    }
    let (_, found, moved) = best;
    if found == kept {
        return kept;
    }
    // Nobody is moved for what does not last.
    let lasts = |placement: &[u32]| verdict(mix, machine, placement);
    match lasts(&found).beats(&lasts(&kept), WORTH + MOVING * moved) {
        true => found,
        false => kept,
    }
}

/// What is there stays; what is new goes where least is to do.
fn staying(graph: &Graph, machine: &Machine, current: &[Option<u32>]) -> Placement {
    let mut kept = graph.clone();
    for (pin, core) in kept.pins.iter_mut().zip(current) {
        *pin = pin.or(*core);
    }
    balanced(&kept, machine)
}

/// The best of these, mended where the whole mix has few actors. Else its parts have the time together that it has.
fn lasting(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    found: Vec<Placement>,
    whole: usize,
) -> Placement {
    match whole {
        0..=MENDED => {
            let found = different(found);
            let won = race(mix, machine, &found, None);
            let (is, best) = won.expect("who is first is never given up");
            settled(mix, machine, graph, is, best.clone())
        }
        _ => {
            let asked = |placement: Placement| {
                let by = advance(mix, machine, graph, &placement);
                (placement, by)
            };
            let found = different(found).into_iter().map(asked).collect();
            best_looking(mix, machine, found, steps_of_part(mix.actors(), whole))
        }
    }
}

/// Of very many actors, by how much it has to be better than those that are even enough, to be preferred to them.
fn advance(mix: &Mix, machine: &Machine, graph: &Graph, placement: &[u32]) -> f64 {
    let very_many = mix.actors() > ALL_TRIED;
    let uneven =
        || bottleneck(graph, machine, placement) > EVEN_ENOUGH * lower_bound(graph, machine);
    let each = mix.actors() / machine.workers();
    let alike = |a: &App| a.promise.is_none() && a.priority == mix.apps[0].priority;
    let asked = mix.apps.len() <= machine.workers() && mix.apps.iter().all(alike);
    match very_many && uneven() {
        true if asked && FEW_EACH.contains(&each) => UNEVEN_FEW,
        true => UNEVEN,
        false => 0.0,
    }
}

/// Each once.
fn different(found: Vec<Placement>) -> Vec<Placement> {
    let mut different: Vec<Placement> = Vec::new();
    for placement in found {
        if !different.contains(&placement) {
            different.push(placement);
        }
    }
    different
}

/// Mended until mending gains nothing: so what is mapped stays where it is.
fn settled(
    mix: &Mix,
    machine: &Machine,
    graph: &Graph,
    mut is: Score,
    mut placement: Placement,
) -> Placement {
    loop {
        let mut mended = Loads::new(graph, machine, placement.clone());
        mended.refine();
        let mended = mended.into_placement();
        if mended == placement {
            return placement;
        }
        match race(mix, machine, std::slice::from_ref(&mended), Some(&is)) {
            Some((then, _)) if then.beats(&is, 1e-6) => (is, placement) = (then, mended),
            _ => return placement,
        }
    }
}

#[cfg(test)]
pub(crate) fn all_candidates(mix: &Mix, machine: &Machine) -> Vec<Placement> {
    let rates = mix.targets(machine);
    let graph = mix.graph(&rates);
    different(candidates(mix, machine, &graph, &rates, true))
}
