// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One search through the actions that may fire next.
//!
//! The other sides of channels go on meanwhile. If each action looked for itself, elements that come
//! between two looks would let an action fire although one that goes first could, too; how often
//! would depend on the workers. So what a first look has found counts until something fires. It
//! looks for as many as any action needs, since at most half a channel is taken otherwise, and one
//! that needs more than that would never see them.

use crate::ir::action::{consumed, produced};
use crate::ir::{ActionId, Actor};

pub struct Round {
    /// For each port that several may look at, what the first looks for.
    pub inputs: Vec<Option<u32>>,
    pub outputs: Vec<Option<u32>>,
}

impl Round {
    /// A search through these, in this order, after a look for what all of them need.
    pub fn new(actor: &Actor, ids: &[ActionId], common: &[(usize, u32)]) -> Round {
        let mut looks = vec![0; actor.inputs.len()];
        let mut shared = vec![None; actor.inputs.len()];
        for (port, n) in common {
            (looks[*port], shared[*port]) = (1, Some(*n));
        }
        // An action without room ends the search, except with `@schedule_outputs`.
        let (mut again, mut goes_on) = (
            vec![false; actor.outputs.len()],
            vec![false; actor.outputs.len()],
        );
        let (mut takes, mut puts) = (vec![0; actor.inputs.len()], vec![0; actor.outputs.len()]);
        for id in ids {
            let action = &actor.actions[*id];
            for (port, n) in consumed(action) {
                looks[port] += u32::from(shared[port].is_none_or(|s| n > s));
                takes[port] = n.max(takes[port]);
            }
            for (port, n) in produced(action) {
                again[port] |= goes_on[port];
                goes_on[port] |= action.schedule_outputs;
                puts[port] = n.max(puts[port]);
            }
        }
        let inputs = looks.iter().zip(takes);
        let outputs = again.iter().zip(puts);
        Round {
            inputs: inputs
                .map(|(looks, most)| (*looks > 1).then_some(most))
                .collect(),
            outputs: outputs.map(|(again, most)| again.then_some(most)).collect(),
        }
    }
}
