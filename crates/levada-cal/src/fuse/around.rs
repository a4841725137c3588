// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about a network and its actors that fusion needs, computed once for all chains in time linear in the
//! network's size.
//!
//! * Cycles: a chain is on a cycle if its two ends are in one strongly connected component.
//! * Separation: the bridges of the undirected graph of instances and channels (Tarjan 1974). What is before a
//!   chain is separate from what is behind it if the link behind the chain's first member is a bridge.

use super::{Link, capacity_of, is_noisy, successors};
use crate::classify::{Step, Steps, rates, steps};
use crate::components::components;
use crate::emit::Bursts;
use crate::ir::action::{is_light, weight};
use crate::ir::*;
use std::rc::Rc;

/// Facts about an actor that do not depend on its position in a chain.
pub struct Facts {
    pub steps: Option<Steps>,
    /// The guarded action, if its only action has a guard: it can be a first member.
    pub guarded: Option<Steps>,
    pub bursts: Bursts,
    /// Whether its initial actions are small; those with elements are allowed for the first or the last member only.
    pub starts: bool,
    pub starts_with_inputs: bool,
    pub starts_with_outputs: bool,
    /// Whether it has effects besides the elements that it produces.
    pub noisy: bool,
}

impl Facts {
    fn of(actor: &Actor) -> Facts {
        let effects = actor.procs.iter().any(|p| p.effects || p.native);
        let prints = crate::emit::prints(actor);
        let plain = |steps: &Steps| {
            let mut used = steps.list.iter().flat_map(|s| &s.candidates);
            let plain = used.all(|id| {
                let a = &actor.actions[*id];
                weight(a) < 120 && !a.schedule_outputs
            });
            plain && !effects && !prints
        };
        let guarded = actor.fsm.is_none()
            && actor.outside == [0]
            && !actor.actions[0].guard.conditions.is_empty();
        let one = || {
            let list = vec![Step {
                candidates: vec![0],
                rates: rates(actor, &actor.actions[0]),
            }];
            Steps { list, back: 0 }
        };
        let initial = || actor.initializers.iter();
        Facts {
            steps: steps(actor).filter(plain),
            guarded: guarded.then(one).filter(plain),
            bursts: Bursts::of(actor),
            starts: initial().all(is_light),
            starts_with_inputs: initial().any(|a| !a.inputs.is_empty()),
            starts_with_outputs: initial().any(|a| !a.outputs.is_empty()),
            noisy: is_noisy(actor, prints),
        }
    }
}

/// A network with the facts about it.
pub struct Around<'a> {
    pub net: &'a Network,
    /// The channels that each instance puts to, and gets from.
    pub outs: Vec<Vec<usize>>,
    pub ins: Vec<Vec<usize>>,
    /// By instance.
    pub facts: Vec<Rc<Facts>>,
    /// The capacity that each channel will have.
    pub capacity: Vec<u32>,
    /// For each instance, the only instance that it feeds, if that has no other producer, and the links to it.
    pub next: Vec<Option<usize>>,
    pub links: Vec<Vec<Link>>,
    /// The number of its strongly connected component.
    pub component: Vec<usize>,
    /// If the link to the next one separates the network: whether the part before it has no effects except elements.
    pub quiet_before: Vec<Option<bool>>,
}

impl<'a> Around<'a> {
    pub fn new(net: &'a Network) -> Around<'a> {
        let n = net.instances.len();
        let (mut outs, mut ins) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for (k, c) in net.channels.iter().enumerate() {
            outs[c.from.instance].push(k);
            for to in &c.to {
                // A channel may lead to several ports of one instance.
                if ins[to.instance].last() != Some(&k) {
                    ins[to.instance].push(k);
                }
            }
        }
        let facts = net.of_actors(Facts::of);
        let capacity = net.channels.iter();
        let capacity = capacity.map(|c| capacity_of(net, &facts, c)).collect();
        let next = successors(net, &outs, &ins);
        let links = |i: usize| {
            let each = outs[i].iter().filter(|_| next[i].is_some());
            let link = |k: &usize| Link {
                channel: *k,
                out_port: net.channels[*k].from.port,
                in_port: net.channels[*k].to[0].port,
            };
            each.map(link).collect()
        };
        let links = (0..n).map(links).collect();
        let component = components(n, |i| {
            let channels = outs[i].iter().map(|k| &net.channels[*k]);
            channels.flat_map(|c| c.to.iter().map(|t| t.instance))
        });
        let quiet_before = separated(net, (&outs, &ins), &next, &facts);
        Around {
            net,
            outs,
            ins,
            facts,
            capacity,
            next,
            links,
            component,
            quiet_before,
        }
    }
}

/// For each link to a next instance: if it is the only connection of its two sides, whether the first side is quiet.
fn separated(
    net: &Network,
    (outs, ins): (&[Vec<usize>], &[Vec<usize>]),
    next: &[Option<usize>],
    facts: &[Rc<Facts>],
) -> Vec<Option<bool>> {
    const NONE: usize = usize::MAX;
    // Nodes: instances, then channels. The first channel of a link represents all of them.
    let n = next.len();
    let size = n + net.channels.len();
    let neighbours = |v: usize| -> Vec<usize> {
        if v >= n {
            let c = &net.channels[v - n];
            let ends = std::iter::once(&c.from).chain(&c.to);
            return ends.map(|e| e.instance).collect();
        }
        let stands = |k: &&usize| {
            let from = net.channels[**k].from.instance;
            next[from].is_none() || outs[from].first() == Some(*k)
        };
        let all = outs[v].iter().chain(&ins[v]).filter(stands);
        all.map(|k| k + n).collect()
    };
    let noisy = |v: usize| usize::from(v < n && facts[v].noisy);
    let (mut order, mut low) = (vec![NONE; size], vec![0; size]);
    // The noisy instances of what was first visited from each one on; and the root of each.
    let (mut below, mut root_of) = (vec![0; size], vec![NONE; size]);
    let mut parent = vec![NONE; size];
    let mut visited = 0;
    for root in 0..n {
        if order[root] != NONE {
            continue;
        }
        let mut path = vec![(root, neighbours(root).into_iter())];
        (order[root], low[root]) = (visited, visited);
        (below[root], root_of[root]) = (noisy(root), root);
        visited += 1;
        while let Some((v, ways)) = path.last_mut() {
            let v = *v;
            match ways.next() {
                Some(w) if order[w] == NONE => {
                    (order[w], low[w]) = (visited, visited);
                    (below[w], root_of[w], parent[w]) = (noisy(w), root, v);
                    visited += 1;
                    path.push((w, neighbours(w).into_iter()));
                }
                Some(w) if w != parent[v] => low[v] = low[v].min(order[w]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((p, _)) = path.last() {
                        low[*p] = low[*p].min(low[v]);
                        below[*p] += below[v];
                    }
                }
            }
        }
    }
    let side = |i: usize| {
        let to = next[i]?;
        let link = n + outs[i][0];
        let bridge = low[link] > order[parent[link]];
        let noisy = if parent[link] == i {
            below[root_of[i]] - below[to]
        } else {
            below[i]
        };
        bridge.then_some(noisy == 0)
    };
    (0..n).map(side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn actor(inputs: usize, outputs: usize) -> Arc<Actor> {
        let port = |_| Port {
            name: String::new(),
            ty: Type::Bool,
            span: Span::default(),
        };
        Arc::new(Actor {
            name: String::new(),
            inputs: (0..inputs).map(port).collect(),
            outputs: (0..outputs).map(port).collect(),
            globals: Vec::new(),
            procs: Vec::new(),
            actions: Vec::new(),
            initializers: Vec::new(),
            outside: Vec::new(),
            fsm: None,
            native: None,
            span: Span::default(),
        })
    }

    /// A random network; each channel of its own port.
    fn network(mut random: impl FnMut(usize) -> usize) -> Network {
        let n = 2 + random(7);
        let (mut inputs, mut outputs) = (vec![0; n], vec![0; n]);
        let mut channels = Vec::new();
        for _ in 0..random(2 * n) {
            let mut end = |ports: &mut Vec<usize>| {
                let instance = random(n);
                ports[instance] += 1;
                let port = ports[instance] - 1;
                Endpoint { instance, port }
            };
            let from = end(&mut outputs);
            let mut to = vec![end(&mut inputs)];
            if to[0].instance % 3 == 0 {
                to.push(end(&mut inputs));
            }
            let capacity = None;
            channels.push(Channel { from, to, capacity });
        }
        let instance = |i: usize| Instance {
            name: String::new(),
            actor: actor(inputs[i], outputs[i]),
            priority: 0,
        };
        Network {
            name: String::new(),
            files: Vec::new(),
            instances: (0..n).map(instance).collect(),
            channels,
        }
    }

    /// All that can be reached from an instance, along the channels or both ways, without those from `but`.
    fn reached(net: &Network, from: usize, directed: bool, but: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; net.instances.len()];
        seen[from] = true;
        for _ in 0..net.instances.len() {
            for c in net.channels.iter().filter(|c| Some(c.from.instance) != but) {
                let mut ends = std::iter::once(&c.from).chain(&c.to);
                if seen[c.from.instance] || !directed && ends.any(|e| seen[e.instance]) {
                    c.to.iter().for_each(|t| seen[t.instance] = true);
                    seen[c.from.instance] = true;
                }
            }
        }
        seen
    }

    #[test]
    fn cycles_and_sides_are_those_of_a_plain_search() {
        let mut seed = 1u64;
        let mut random = |n: usize| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        let (mut links, mut bridges) = (0, 0);
        for _ in 0..2000 {
            let mut net = network(&mut random);
            let loud = random(net.instances.len());
            let mut actor = (*net.instances[loud].actor).clone();
            let parts = Vec::new();
            let kind = StmtKind::Print {
                parts,
                newline: true,
            };
            let span = Span::default();
            let locals = Vec::new();
            let body = Body {
                locals,
                stmts: vec![Stmt { kind, span }],
            };
            let name = String::new();
            let proc = Proc {
                name,
                params: 0,
                result: None,
                body,
                native: false,
                effects: true,
                span,
            };
            actor.procs.push(proc);
            net.instances[loud].actor = Arc::new(actor);
            let around = Around::new(&net);
            let n = net.instances.len();
            for a in 0..n {
                let from_a = reached(&net, a, true, None);
                for (b, there) in from_a.iter().enumerate() {
                    let both = *there && reached(&net, b, true, None)[a];
                    assert_eq!(around.component[a] == around.component[b], both);
                }
                if let Some(to) = around.next[a] {
                    let side = reached(&net, a, false, Some(a));
                    let quiet = (!side[to]).then_some(!side[loud]);
                    assert_eq!(around.quiet_before[a], quiet, "{net:?}");
                    links += 1;
                    bridges += usize::from(quiet.is_some());
                }
            }
        }
        assert!(links > 500 && bridges > 100, "{links} {bridges}");
    }
}
