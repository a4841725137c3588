// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds one actor from a chain and its schedule.
//!
//! Each phase becomes an action, and the sequence of phases a schedule of states. If there are several phases, an
//! action for a whole *round* is tried first: it fires each member as often as a round needs, in a loop per member,
//! with local buffers between them. It fires only if all its elements and all its room are available; otherwise the
//! phases run one by one.
//!
//! `phase.rs` and `round.rs` build the two kinds of actions, `patterns.rs` their input patterns and outputs, `fire.rs`
//! the firings in them, with `code.rs` and `window.rs`; `actor.rs` puts the actions into an actor.

mod actor;
mod code;
mod fire;
mod patterns;
mod phase;
mod round;
mod window;

use super::schedule::{Firing, Schedule};
use super::{MERGED_WEIGHT_MAX, Member, SINGLE_RATE_WEIGHT_MAX};
use crate::classify::Step;
use crate::ir::action::{body_weight, is_light, weight};
use crate::ir::*;

/// The merged actor, if it is small; no round takes or gives more than `enough` on a port.
pub fn merge(members: &[Member], schedule: &Schedule, enough: u32) -> Option<Actor> {
    let merger = Merger::new(members, schedule);
    if merger.is_heavy() {
        return None;
    }
    let mut actions: Vec<Action> = schedule.phases.iter().map(|p| merger.phase(p)).collect();
    let mut fsm = None;
    if actions.len() == 1 {
        if !is_light(&actions[0]) && weight(&actions[0]) > SINGLE_RATE_WEIGHT_MAX {
            return None;
        }
    } else {
        let n = actions.len();
        let to = |k: usize| if k + 1 < n { k + 1 } else { schedule.back };
        let mut transitions: Vec<Vec<Transition>> = (0..n)
            .map(|k| {
                vec![Transition {
                    action: k,
                    to: to(k),
                }]
            })
            .collect();
        actions.push(merger.round(enough)?);
        let round = Transition {
            action: n,
            to: schedule.back,
        };
        transitions[schedule.back].insert(0, round);
        fsm = Some(Fsm {
            states: (0..n).map(|k| format!("phase{k}")).collect(),
            initial: 0,
            transitions,
        });
    }
    Some(merger.actor(actions, fsm))
}

struct Merger<'a> {
    members: &'a [Member<'a>],
    schedule: &'a Schedule,
    globals: Vec<usize>,
    procs: Vec<usize>,
    /// The state variable of each link, if it has one, by the member before it.
    buffers: Vec<Vec<Option<usize>>>,
}

impl<'a> Merger<'a> {
    fn new(members: &'a [Member<'a>], schedule: &'a Schedule) -> Merger<'a> {
        let before = |count: fn(&Actor) -> usize| -> Vec<usize> {
            let mut n = 0;
            let each = members.iter().map(|m| {
                n += count(m.actor);
                n - count(m.actor)
            });
            each.collect()
        };
        let mut next = members.iter().map(|m| m.actor.globals.len()).sum();
        let mut buffers = Vec::new();
        for links in &schedule.links {
            let mut list = Vec::new();
            for link in links {
                list.push(link.crosses.then_some(next));
                next += usize::from(link.crosses);
            }
            buffers.push(list);
        }
        Merger {
            members,
            schedule,
            globals: before(|a| a.globals.len()),
            procs: before(|a| a.procs.len()),
            buffers,
        }
    }

    /// Whether the result would certainly be too large. For several phases the total weight is exact; for a single
    /// phase the bodies are a lower bound.
    fn is_heavy(&self) -> bool {
        let used = |m: &'a Member<'a>| {
            let each = m.steps.list.iter().flat_map(|s| &s.candidates);
            each.map(|id| &m.actor.actions[*id])
        };
        match &self.schedule.phases[..] {
            [phase] => {
                let fired = phase.iter().flat_map(|f| {
                    let step = self.step(f).candidates.iter();
                    step.map(|id| &self.members[f.member].actor.actions[*id])
                });
                fired.map(body_weight).sum::<usize>() > SINGLE_RATE_WEIGHT_MAX
            }
            _ => {
                let all = self.members.iter().flat_map(used);
                all.map(weight).sum::<usize>() > MERGED_WEIGHT_MAX
            }
        }
    }

    fn last(&self) -> usize {
        self.members.len() - 1
    }

    fn step(&self, f: &Firing) -> &'a Step {
        &self.members[f.member].steps.list[f.step]
    }

    /// The type of the elements in a link.
    fn elem(&self, m: usize, link: usize) -> &'a Type {
        &self.members[m].actor.outputs[self.members[m].links[link].out_port].ty
    }
}
