// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One scan over the actions that may fire next.
//!
//! The other ends of the channels continue to run meanwhile. If each action read the channel state itself, elements
//! that arrive between two reads could let an action fire although an action of higher priority could fire too; how
//! often that happens would depend on the timing of the workers. So the first read of a port counts for the whole
//! scan, until something fires. It asks for as many elements as any action needs, since otherwise at most half a
//! channel is taken, and an action that needs more would never fire.

use crate::ir::action::{consumed, produced};
use crate::ir::{ActionId, Actor};

pub struct CandidateScan {
    /// For each port that several actions may read, the number of elements or room that the first read asks for.
    pub inputs: Vec<Option<u32>>,
    pub outputs: Vec<Option<u32>>,
}

impl CandidateScan {
    /// A scan over `ids` in this order, after the elements `common` to all of them have been read.
    pub fn new(actor: &Actor, ids: &[ActionId], common: &[(usize, u32)]) -> CandidateScan {
        let mut looks = vec![0; actor.inputs.len()];
        let mut shared = vec![None; actor.inputs.len()];
        for (port, n) in common {
            (looks[*port], shared[*port]) = (1, Some(*n));
        }
        // An action without room ends the scan, except with `@schedule_outputs`.
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
        CandidateScan {
            inputs: inputs
                .map(|(looks, most)| (*looks > 1).then_some(most))
                .collect(),
            outputs: outputs.map(|(again, most)| again.then_some(most)).collect(),
        }
    }
}
