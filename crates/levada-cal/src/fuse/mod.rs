// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fusion: merges chains of small static and cyclo-static actors to one actor each; the channels between them
//! become variables. Five actors that apply one operation to each element become one loop; actors of unequal rates
//! become loops of a static schedule (`schedule.rs`).
//!
//! A chain is a sequence of actors, each of which feeds only the next one and is fed only by the previous one. It
//! is merged if this changes nothing but speed:
//! * the rates of all members are known (`classify::steps`); only the first may have a guard that can be false, and
//!   only if it has a single action;
//! * no channel in it has initial elements, and each is large enough for the schedule (if one is too small, the
//!   chain deadlocks, and has to);
//! * the room that is removed from the network does not matter: either the chain is the only connection between the
//!   parts before and behind it, so that neither part can observe how much room lies between them (except by how
//!   far the first part runs ahead when the second stops), or the removed room is added to the channel before the
//!   chain;
//! * it is on no cycle;
//! * no member prints or calls native functions;
//! * the result is small: merging large actors gains nothing, and two large actors can run on two workers.
//!
//! So a network has the same output and ends or deadlocks in the same way, merged or not. An actor that is
//! connected in any other way (a second consumer, or a second input with another source) is not merged: the effect
//! of its waiting for room in a removed channel could not be reproduced.
//!
//! The merged instance is named `a+b`, its action `a.x+b.y`.

mod around;
mod long_running;
mod merge;
mod renumber;
mod schedule;

use crate::c_types::size_of;
use crate::classify::{Step, Steps};
use crate::emit::default_capacity;
use crate::ir::*;
use around::{Around, Facts};
use merge::merge;
use std::rc::Rc;
use std::sync::Arc;

/// Merges the small static chains of a network.
pub fn fuse(net: &Network) -> Network {
    let around = Around::new(net);
    let mut follows = vec![false; around.next.len()];
    for to in around.next.iter().flatten() {
        follows[*to] = true;
    }
    let mut seen = vec![false; around.next.len()];
    let mut plans = Vec::new();
    // A row begins with an actor that is not another's successor; cycles are not merged.
    for head in (0..around.next.len()).filter(|i| !follows[*i]) {
        let mut row = vec![head];
        while let Some(to) = around.next[row[row.len() - 1]].filter(|to| !seen[*to]) {
            seen[to] = true;
            row.push(to);
        }
        plans.extend(divide(&around, &row));
    }
    replace(&around, plans)
}

/// Maximum length of a chain.
const CHAIN_MEMBERS_MAX: usize = 16;

/// Divides a row into chains so that the fewest actors remain (dynamic programming).
fn divide(around: &Around, row: &[usize]) -> Vec<Plan> {
    // For each suffix of the row: the number of actors that it becomes, and its first chain.
    let mut best: Vec<(usize, Option<Plan>)> = vec![(0, None)];
    for at in (0..row.len()).rev() {
        let left = |n: usize| best[row.len() - at - n].0 + 1;
        // The best first, and of equal ones the longest; the first possible one is taken.
        let mut lengths: Vec<usize> = (2..=(row.len() - at).min(CHAIN_MEMBERS_MAX)).collect();
        lengths.retain(|n| left(*n) <= left(1));
        lengths.sort_by_key(|n| (left(*n), CHAIN_MEMBERS_MAX - n));
        let mut plans = lengths.iter().map(|n| plan(around, &row[at..at + n]));
        let first = plans.find_map(|plan| plan);
        let n = first.as_ref().map_or(1, |plan| plan.chain.len());
        best.push((left(n), first));
    }
    let mut plans = Vec::new();
    while let Some((_, plan)) = best.pop() {
        if let Some(plan) = plan {
            best.truncate(best.len() + 1 - plan.chain.len());
            plans.push(plan);
        }
    }
    plans
}

/// Maximum total weight of members of unequal rates, each counted once, and maximum number of elements that one round
/// moves on a port.
const MERGED_WEIGHT_MAX: usize = 160;
const ROUND_ELEMENTS_MAX: u32 = 256;
/// Maximum total weight of members that each fire once per round: for heavier ones the saving per firing is
/// negligible.
const SINGLE_RATE_WEIGHT_MAX: usize = 2 * MERGED_WEIGHT_MAX;
/// A round should move at least this many elements, so that its loops pay off.
const ROUND_ELEMENTS_MIN: u32 = 64;

/// The channel behind each member of a chain, by link.
struct Link {
    channel: usize,
    out_port: usize,
    in_port: usize,
}

/// An actor of a chain.
struct Member<'a> {
    name: &'a str,
    actor: &'a Actor,
    facts: &'a Facts,
    steps: &'a Steps,
    /// Its one action has a guard.
    guarded: bool,
    /// The links to the next member.
    links: &'a [Link],
}

/// A chain and the merged actor.
struct Plan {
    chain: Vec<usize>,
    actor: Actor,
    /// The additional room for the channel before it.
    room: Option<(usize, u32)>,
}

/// For each instance, the only instance that it feeds, if that has no other producer.
fn successors(net: &Network, outs: &[Vec<usize>], ins: &[Vec<usize>]) -> Vec<Option<usize>> {
    (0..net.instances.len())
        .map(|i| {
            let out = || outs[i].iter().map(|k| &net.channels[*k]);
            let only = |c: &Channel| match &c.to[..] {
                [to] => Some(to.instance),
                _ => None,
            };
            let to = only(out().next()?)?;
            let alone = out().all(|c| only(c) == Some(to));
            let mut into = ins[to].iter().map(|k| &net.channels[*k]);
            let fed_alone = into.all(|c| c.from.instance == i);
            let (a, b) = (&net.instances[i].actor, &net.instances[to].actor);
            // Every port of both sides is connected.
            let all = ins[to].len() == b.inputs.len() && outs[i].len() == a.outputs.len();
            (alone && fed_alone && all && to != i).then_some(to)
        })
        .collect()
}

fn member<'a>(around: &'a Around, chain: &[usize], k: usize) -> Option<Member<'a>> {
    let i = chain[k];
    let facts = &*around.facts[i];
    let (first, last) = (k == 0, k + 1 == chain.len());
    let (steps, guarded) = match &facts.guarded {
        Some(guarded) if first => (guarded, true),
        _ => (facts.steps.as_ref()?, false),
    };
    let starts = facts.starts
        && (first || !facts.starts_with_inputs)
        && (last || !facts.starts_with_outputs);
    starts.then_some(Member {
        name: &around.net.instances[i].name,
        actor: &around.net.instances[i].actor,
        facts,
        steps,
        guarded,
        links: if last { &[] } else { &around.links[i] },
    })
}

/// The capacity that a channel will have.
fn capacity_of(net: &Network, facts: &[Rc<Facts>], c: &Channel) -> u32 {
    let from = &net.instances[c.from.instance].actor;
    let mut most = facts[c.from.instance].bursts.outputs[c.from.port];
    for e in &c.to {
        most = most.max(facts[e.instance].bursts.inputs[e.port]);
    }
    let usual = default_capacity(size_of(&from.outputs[c.from.port].ty), most);
    c.capacity.map_or(usual, |n| n.max(most).max(1))
}

/// The plan for this chain, if it may be merged.
fn plan(around: &Around, chain: &[usize]) -> Option<Plan> {
    let head = chain[0];
    // It is on no cycle.
    if around.component[*chain.last()?] == around.component[head] {
        return None;
    }
    let members = (0..chain.len()).map(|k| member(around, chain, k));
    let members: Vec<Member> = members.collect::<Option<_>>()?;
    let (first, last) = (&members[0], members.last()?);
    // An actor that waits for its first elements must not delay another's initial elements.
    if first.facts.starts_with_inputs && last.facts.starts_with_outputs {
        return None;
    }
    let numbers: Vec<schedule::Member> = (0..members.len())
        .map(|k| {
            let before = match k {
                0 => &[],
                k => members[k - 1].links,
            };
            let list = &members[k].steps.list;
            let takes = |s: &Step| before.iter().map(|l| s.rates.inputs[l.in_port]).collect();
            let given = |s: &Step| {
                let behind = members[k].links.iter();
                behind.map(|l| s.rates.outputs[l.out_port]).collect()
            };
            schedule::Member {
                takes: list.iter().map(takes).collect(),
                gives: list.iter().map(given).collect(),
                back: members[k].steps.back,
            }
        })
        .collect();
    let schedule = schedule::schedule(&numbers)?;
    let capacities: Vec<Vec<u32>> = members
        .iter()
        .map(|m| m.links.iter().map(|l| around.capacity[l.channel]).collect())
        .collect();
    let fits = schedule
        .links
        .iter()
        .flatten()
        .zip(capacities.iter().flatten());
    if !{ fits }.all(|(link, c)| link.most <= *c && link.length <= ROUND_ELEMENTS_MAX) {
        return None;
    }
    let room = room(around, chain, &members, &numbers, &schedule, &capacities)?;

    // The maximum number of elements of a round on each outer port.
    let outer = |channels: &[usize]| {
        let mine = channels.iter().map(|k| around.capacity[*k]);
        mine.min().unwrap_or(u32::MAX)
    };
    let enough = outer(&around.ins[head]).min(outer(&around.outs[*chain.last()?]));
    let actor = merge(&members, &schedule, enough)?;
    let chain = chain.to_vec();
    Some(Plan { chain, actor, room })
}

/// Where the room of a chain's channels goes; `None` if it cannot be determined.
fn room(
    around: &Around,
    chain: &[usize],
    members: &[Member],
    numbers: &[schedule::Member],
    schedule: &schedule::Schedule,
    capacities: &[Vec<u32>],
) -> Option<Option<(usize, u32)>> {
    let quiet_before = around.quiet_before[chain[0]];
    if quiet_before == Some(true) {
        return Some(None);
    }
    // The room is determined if there is one channel, of one consumer with constant rates, and it is large enough for
    // both ends: then only the chain's end can block it.
    if let [channel] = around.ins[chain[0]][..]
        && let c = &around.net.channels[channel]
        && let [to] = c.to[..]
    {
        let mut takes = members[0].steps.list.iter();
        let n = takes.next()?.rates.inputs[to.port];
        let from = &around.facts[c.from.instance].bursts;
        let size = around.capacity[channel];
        let both = from.outputs[c.from.port] + members[0].facts.bursts.inputs[to.port];
        if size >= both.saturating_sub(1)
            && takes.all(|s| s.rates.inputs[to.port] == n)
            && let Some(lead) = schedule::lead(numbers, schedule, capacities)
            && let Some(size) = n.checked_mul(lead).and_then(|more| size.checked_add(more))
        {
            return Some(Some((channel, size)));
        }
    }
    quiet_before.map(|_| None)
}

/// Whether the actor has effects besides its outputs. Reading a file is not an effect.
fn is_noisy(actor: &Actor, prints: bool) -> bool {
    prints || actor.procs.iter().any(|p| p.native) && !actor.inputs.is_empty()
}

/// Replaces each chain by one instance at the position of its first member.
fn replace(around: &Around, plans: Vec<Plan>) -> Network {
    let net = around.net;
    let mut channels = net.channels.clone();
    let mut instances: Vec<Option<Instance>> = net.instances.iter().cloned().map(Some).collect();
    // The new instance of each old one.
    let mut home: Vec<usize> = (0..instances.len()).collect();
    for plan in plans {
        let (head, last) = (plan.chain[0], plan.chain[plan.chain.len() - 1]);
        let parts = plan.chain.iter().map(|i| &net.instances[*i]);
        let names: Vec<&str> = parts.clone().map(|i| i.name.as_str()).collect();
        for i in &plan.chain[1..] {
            (home[*i], instances[*i]) = (head, None);
        }
        instances[head] = Some(Instance {
            name: names.join("+"),
            actor: Arc::new(plan.actor),
            priority: parts.map(|i| i.priority).max().unwrap_or(0),
        });
        // Channels around the chain keep their size.
        for k in around.outs[last].iter().chain(&around.ins[head]) {
            channels[*k].capacity.get_or_insert(around.capacity[*k]);
        }
        if let Some((channel, n)) = plan.room {
            channels[channel].capacity = Some(n);
        }
    }
    let mut next = 0;
    let number: Vec<usize> = instances
        .iter()
        .map(|i| {
            next += usize::from(i.is_some());
            next.saturating_sub(1)
        })
        .collect();
    let moved = |e: &Endpoint| Endpoint {
        instance: number[home[e.instance]],
        port: e.port,
    };
    // Channels inside of a chain are removed.
    let stays = |c: &Channel| {
        c.to.iter()
            .any(|t| t.instance == c.from.instance || home[t.instance] != home[c.from.instance])
    };
    let channels = channels
        .iter()
        .filter(|c| stays(c))
        .map(|c| Channel {
            from: moved(&c.from),
            to: c.to.iter().map(moved).collect(),
            capacity: c.capacity,
        })
        .collect();
    Network {
        channels,
        instances: instances.into_iter().flatten().collect(),
        ..net.clone()
    }
}
