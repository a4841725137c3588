// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fusion: chains of small static and cyclo-static actors become one actor each, and the channels
//! between them variables. Five actors that do one operation on each element become one loop;
//! actors of unequal rates become loops of a schedule that is known beforehand (`schedule`).
//!
//! A chain is a row of actors of which each feeds the next one alone and is fed by the one before
//! alone. It is merged where this changes nothing but speed:
//! * the rates of all are known (`classify::steps`); only the first may have a guard that can be
//!   false, if it is a single action's;
//! * no channel in it begins with elements, and each is large enough for the schedule (where one is
//!   too small the chain comes to a standstill, and has to);
//! * what the network has room for does not change where it matters: either nothing but the chain
//!   connects what is before it with what is behind it, so that neither side can tell how much room
//!   is between them (but for how far the first runs ahead of a standstill of the second), or the
//!   room that goes is given to the channel before the chain, element by element;
//! * it is on no loop;
//! * none prints or calls native functions;
//! * the result is still small: a large one gains nothing, and two large actors are better off on
//!   two workers.
//!
//! So a network prints the same, and ends or comes to a standstill the same, merged or not. An
//! actor that takes part only in some other way (it has a second consumer, or a second input that
//! another feeds) stays by itself: its waiting for room in a channel that is gone could not be seen.
//!
//! The merged instance is called `a+b`, its action `a.x+b.y`.

mod lasting;
mod merge;
mod moves;
mod schedule;

use crate::classify::{Step, Steps, rates, steps};
use crate::emit::{burst, default_capacity, is_light, size_of, weight};
use crate::ir::*;
use merge::merge;
use std::sync::Arc;

/// The network with its small static chains merged.
pub fn fuse(net: &Network) -> Network {
    let next = successors(net);
    let mut seen = vec![false; next.len()];
    let mut plans = Vec::new();
    // A row begins where nobody comes before; what is on a loop is left alone.
    for head in (0..next.len()).filter(|i| !next.contains(&Some(*i))) {
        let mut row = vec![head];
        while let Some(to) = next[row[row.len() - 1]].filter(|to| !seen[*to]) {
            seen[to] = true;
            row.push(to);
        }
        plans.extend(divide(net, &row));
    }
    replace(net, plans)
}

/// No chain is longer than this.
const LONGEST: usize = 16;

/// The chains of a row that leave the fewest actors.
fn divide(net: &Network, row: &[usize]) -> Vec<Plan> {
    // For what begins at each place of the row: how many actors it becomes, and its first chain.
    let mut best: Vec<(usize, Option<Plan>)> = vec![(0, None)];
    for at in (0..row.len()).rev() {
        let rest = |n: usize, best: &[(usize, Option<Plan>)]| best[row.len() - at - n].0 + 1;
        let mut mine = (rest(1, &best), None);
        for n in 2..=(row.len() - at).min(LONGEST) {
            if rest(n, &best) <= mine.0
                && let Some(plan) = plan(net, &row[at..at + n])
            {
                mine = (rest(n, &best), Some(plan));
            }
        }
        best.push(mine);
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

/// What merged actors of unequal rates may weigh together, each counted once, and how many elements
/// one round of theirs may move on a port.
const WEIGHT: usize = 160;
const ELEMENTS: u32 = 256;
/// What actors may weigh together that each fire once in a round: what they save at each firing is
/// little beside more.
const ONCE: usize = 2 * WEIGHT;
/// So many elements a round should take or give, so that its loops are worth it.
const ROUND: u32 = 64;

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
    steps: Steps,
    /// Its one action has a guard.
    guarded: bool,
    /// The links to the next member.
    links: Vec<Link>,
}

/// A chain and what it becomes.
struct Plan {
    chain: Vec<usize>,
    actor: Actor,
    /// The room that the channel before it gets.
    room: Option<(usize, u32)>,
}

/// The instance that each one feeds alone, if that is fed by it alone.
fn successors(net: &Network) -> Vec<Option<usize>> {
    (0..net.instances.len())
        .map(|i| {
            let mut out = net.channels.iter().filter(|c| c.from.instance == i);
            let only = |c: &Channel| match &c.to[..] {
                [to] => Some(to.instance),
                _ => None,
            };
            let to = only(out.next()?)?;
            let alone = out.all(|c| only(c) == Some(to));
            let into = net.channels.iter();
            let into = into.filter(|c| c.to.iter().any(|t| t.instance == to));
            let mut fed = 0;
            let fed_alone = into.inspect(|_| fed += 1).all(|c| c.from.instance == i);
            let (a, b) = (&net.instances[i].actor, &net.instances[to].actor);
            // Every port of both sides is connected.
            let all = fed == b.inputs.len() && fed == a.outputs.len();
            (alone && fed_alone && all && to != i).then_some(to)
        })
        .collect()
}

fn member<'a>(net: &'a Network, chain: &[usize], k: usize) -> Option<Member<'a>> {
    let i = chain[k];
    let actor = &*net.instances[i].actor;
    let guarded = k == 0
        && actor.fsm.is_none()
        && actor.outside == [0]
        && !actor.actions[0].guard.conditions.is_empty();
    let steps = if guarded {
        let list = vec![Step {
            candidates: vec![0],
            rates: rates(actor, &actor.actions[0]),
        }];
        Steps { list, back: 0 }
    } else {
        steps(actor)?
    };
    let used = steps.list.iter().flat_map(|s| &s.candidates);
    let plain = |id: &usize| {
        let a = &actor.actions[*id];
        weight(a) < 120 && !a.schedule_outputs
    };
    let (first, last) = (k == 0, k + 1 == chain.len());
    let starts = |a: &Action| {
        is_light(a) && (first || a.inputs.is_empty()) && (last || a.outputs.is_empty())
    };
    if !{ used }.all(plain)
        || actor.procs.iter().any(|p| p.effects || p.native)
        || crate::emit::prints(actor)
        || !actor.initializers.iter().all(starts)
    {
        return None;
    }
    let mut links = Vec::new();
    if !last {
        let channels = net.channels.iter().enumerate();
        for (channel, c) in channels.filter(|(_, c)| c.from.instance == i) {
            links.push(Link {
                channel,
                out_port: c.from.port,
                in_port: c.to[0].port,
            });
        }
    }
    Some(Member {
        name: &net.instances[i].name,
        actor,
        steps,
        guarded,
        links,
    })
}

/// The capacity that a channel will have.
fn capacity(net: &Network, c: &Channel) -> u32 {
    let from = &net.instances[c.from.instance].actor;
    let mut most = burst(from, c.from.port, false);
    for e in &c.to {
        most = most.max(burst(&net.instances[e.instance].actor, e.port, true));
    }
    let usual = default_capacity(size_of(&from.outputs[c.from.port].ty), most);
    c.capacity.map_or(usual, |n| n.max(most).max(1))
}

/// What this chain becomes, if it may be merged.
fn plan(net: &Network, chain: &[usize]) -> Option<Plan> {
    let members: Option<Vec<Member>> = (0..chain.len()).map(|k| member(net, chain, k)).collect();
    let members = members?;
    let (first, last) = (&members[0], members.last()?);
    // One that waits for its first elements must not keep another from giving its own.
    let waits = first
        .actor
        .initializers
        .iter()
        .any(|a| !a.inputs.is_empty());
    let gives = last
        .actor
        .initializers
        .iter()
        .any(|a| !a.outputs.is_empty());
    if waits && gives {
        return None;
    }
    let numbers: Vec<schedule::Member> = (0..members.len())
        .map(|k| {
            let before = if k > 0 {
                &members[k - 1].links[..]
            } else {
                &[]
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
        .map(|m| {
            let each = m.links.iter();
            each.map(|l| capacity(net, &net.channels[l.channel]))
                .collect()
        })
        .collect();
    let fits = schedule
        .links
        .iter()
        .flatten()
        .zip(capacities.iter().flatten());
    if !{ fits }.all(|(link, c)| link.most <= *c && link.length <= ELEMENTS) {
        return None;
    }
    let room = room(net, chain, &members, &numbers, &schedule, &capacities)?;

    // What a round may take from each port outside, and give to it.
    let outer = |end: fn(&Channel, usize) -> bool, i: usize| {
        let mine = net.channels.iter().filter(move |c| end(c, i));
        mine.map(|c| capacity(net, c)).min().unwrap_or(u32::MAX)
    };
    let enough = outer(|c, i| c.to.iter().any(|t| t.instance == i), chain[0]);
    let enough = enough.min(outer(|c, i| c.from.instance == i, *chain.last()?));
    let actor = merge(&members, &schedule, enough)?;
    let chain = chain.to_vec();
    Some(Plan { chain, actor, room })
}

/// Where the room goes that the channels of a chain have: `None` if it cannot be told.
fn room(
    net: &Network,
    chain: &[usize],
    members: &[Member],
    numbers: &[schedule::Member],
    schedule: &schedule::Schedule,
    capacities: &[Vec<u32>],
) -> Option<Option<(usize, u32)>> {
    if reach(net, *chain.last()?, chain[0]) {
        return None;
    }
    let side = before(net, chain);
    if side.as_ref().is_some_and(|side| is_quiet(net, side)) {
        return Some(None);
    }
    // One channel of one consumer whose every firing takes the same leaves no doubt, if it is large
    // enough for its two ends: then nothing but the chain's end can hold it up.
    let all = net.channels.iter().enumerate();
    let mut into = all.filter(|(_, c)| c.to.iter().any(|t| t.instance == chain[0]));
    if let (Some((channel, c)), None) = (into.next(), into.next())
        && let [to] = c.to[..]
    {
        let mut takes = members[0].steps.list.iter();
        let n = takes.next()?.rates.inputs[to.port];
        let from = &net.instances[c.from.instance].actor;
        let size = capacity(net, c);
        let least = burst(from, c.from.port, false) + burst(members[0].actor, to.port, true) - 1;
        if size >= least
            && takes.all(|s| s.rates.inputs[to.port] == n)
            && let Some(lead) = schedule::lead(numbers, schedule, capacities)
        {
            return Some(Some((channel, size + n * lead)));
        }
    }
    side.map(|_| None)
}

/// Does what these actors do show only in what they put? Reading a file does not show.
fn is_quiet(net: &Network, side: &[usize]) -> bool {
    side.iter().all(|i| {
        let actor = &net.instances[*i].actor;
        let native = actor.procs.iter().any(|p| p.native) && !actor.inputs.is_empty();
        !native && !crate::emit::prints(actor)
    })
}

/// Does a way lead from one instance to another?
fn reach(net: &Network, from: usize, to: usize) -> bool {
    let mut seen = vec![false; net.instances.len()];
    let mut open = vec![from];
    while let Some(i) = open.pop() {
        if i == to {
            return true;
        }
        if std::mem::replace(&mut seen[i], true) {
            continue;
        }
        let next = net.channels.iter().filter(|c| c.from.instance == i);
        open.extend(next.flat_map(|c| c.to.iter().map(|t| t.instance)));
    }
    false
}

/// All that is connected to the beginning of a chain, whichever way the elements go, if its end is
/// not among it.
fn before(net: &Network, chain: &[usize]) -> Option<Vec<usize>> {
    let mut side = vec![chain[0]];
    let mut at = 0;
    while at < side.len() {
        let i = side[at];
        for c in net.channels.iter().filter(|c| c.from.instance != chain[0]) {
            let ends = || std::iter::once(&c.from).chain(&c.to).map(|e| e.instance);
            if ends().any(|e| e == i) {
                let new: Vec<usize> = ends().filter(|e| !side.contains(e)).collect();
                side.extend(new);
            }
        }
        at += 1;
    }
    (!side.contains(&chain[1])).then_some(side)
}

/// The network with each chain as one instance, in the place of its first.
fn replace(net: &Network, plans: Vec<Plan>) -> Network {
    let mut channels = net.channels.clone();
    let mut instances: Vec<Option<Instance>> = net.instances.iter().cloned().map(Some).collect();
    // The instance that each one is part of now.
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
        // What is around keeps the size that it would have had.
        for (c, was) in channels.iter_mut().zip(&net.channels) {
            if c.from.instance == last || c.to.iter().any(|t| t.instance == head) {
                c.capacity.get_or_insert(capacity(net, was));
            }
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
    // Inside of a chain two instances have become one.
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
