// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the action of one phase: the firings of the schedule between two of its states, one after another.

use super::super::schedule::Firing;
use super::Merger;
use super::code::{Code, list_of};
use crate::ir::*;

impl Merger<'_> {
    pub fn phase(&self, firings: &[Firing]) -> Action {
        let mut action = self.empty(firings);
        let mut code = Code::default();
        let (mut inputs, mut own) = (Vec::new(), false);
        if let [first, ..] = firings
            && first.member == 0
        {
            let step = self.step(first);
            own = self.own_patterns(&mut code, &mut action, step);
            inputs = vec![None; step.rates.inputs.len()];
            if !own {
                inputs = self.lists_in(&mut code, &mut action, &step.rates.inputs);
            }
        }
        let buffers = self.buffers(&mut code);
        for f in firings {
            let step = self.step(f);
            let mut ends = self.ends(f, &buffers);
            if f.member == 0 {
                ends.own = own;
                ends.inputs.clone_from(&inputs);
            }
            let many = step.candidates.len() > 1;
            if f.member == self.last() && many {
                ends.outputs = self.lists_out(&mut code, &mut action, &step.rates.outputs);
            }
            let outputs = self.fire(&mut code, f.member, &step.candidates, &ends);
            action.outputs.extend(outputs);
        }
        action.body = Body {
            locals: code.locals,
            stmts: code.stmts,
        };
        action
    }

    /// The variables between the members: state variables if elements remain in them between phases.
    pub fn buffers(&self, code: &mut Code) -> Vec<Vec<VarRef>> {
        let lists = (0..self.members.len()).map(|m| {
            let links = self.schedule.links[m].iter().enumerate();
            let each = links.map(|(l, link)| match self.buffers[m][l] {
                Some(g) => VarRef::Global(g),
                None => VarRef::Local(self.local_buffer(code, m, l, link.length)),
            });
            each.collect()
        });
        lists.collect()
    }

    pub fn local_buffer(&self, code: &mut Code, m: usize, link: usize, n: u32) -> usize {
        let port = &self.members[m].actor.outputs[self.members[m].links[link].out_port];
        code.local(&port.name, list_of(&port.ty, n.max(1)), port.span)
    }
}
