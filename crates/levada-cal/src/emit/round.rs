// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One search through the actions that may fire next.
//!
//! The other sides of channels go on meanwhile. If each action looked for itself, elements that come
//! between two looks would let an action fire although one that goes first could, too; how often
//! would depend on the workers. So what a first look has found counts until something fires. It
//! looks for as many as any action needs, since at most half a channel is taken otherwise, and one
//! that needs more than that would never see them.

use super::actor::{consumed, produced};
use crate::ir::{ActionId, Actor};

pub struct Round {
    /// For each port that several may look at, what the first looks for.
    pub inputs: Vec<Option<u32>>,
    pub outputs: Vec<Option<u32>>,
}

impl Round {
    /// A search through these, in this order, after a look for what all of them need.
    pub fn new(actor: &Actor, ids: &[ActionId], common: &[(usize, u32)]) -> Round {
        let inputs = (0..actor.inputs.len()).map(|port| {
            let shared = common.iter().find(|c| c.0 == port).map(|c| c.1);
            let mut looks = u32::from(shared.is_some());
            let mut most = 0;
            for id in ids {
                for (_, n) in consumed(&actor.actions[*id]).iter().filter(|c| c.0 == port) {
                    looks += u32::from(shared.is_none_or(|s| *n > s));
                    most = most.max(*n);
                }
            }
            (looks > 1).then_some(most)
        });
        // An action without room ends the search, except with `@schedule_outputs`.
        let outputs = (0..actor.outputs.len()).map(|port| {
            let (mut again, mut goes_on, mut most) = (false, false, 0);
            for id in ids {
                let action = &actor.actions[*id];
                for (_, n) in produced(action).iter().filter(|p| p.0 == port) {
                    again |= goes_on;
                    goes_on |= action.schedule_outputs;
                    most = most.max(*n);
                }
            }
            again.then_some(most)
        });
        Round {
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }
}
