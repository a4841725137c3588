// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the action of one or more whole rounds: each member fires as often as a round needs, in a loop, with local
//! buffers between the members.

use super::super::schedule::Firing;
use super::super::{ROUND_ELEMENTS_MAX, ROUND_ELEMENTS_MIN};
use super::Merger;
use super::code::{Code, Turn};
use super::window::Window;
use crate::classify::Step;
use crate::ir::*;

impl Merger<'_> {
    /// All firings of several rounds, limited by `enough`, if a round is possible.
    pub fn round(&self, enough: u32) -> Option<Action> {
        let firings: Vec<&Firing> = self.schedule.phases[self.schedule.back..]
            .iter()
            .flatten()
            .collect();
        let of = |m: usize| -> Vec<&Firing> {
            firings.iter().filter(|f| f.member == m).copied().collect()
        };
        let sum = |list: &[&Firing], ports: usize, rate: fn(&Step) -> &Vec<u32>| -> Vec<u32> {
            let one = |p| list.iter().map(|f| rate(self.step(f))[p]).sum();
            (0..ports).map(one).collect()
        };
        let (first, last) = (of(0), of(self.last()));
        let (head, tail) = (self.members[0].actor, self.members[self.last()].actor);
        let takes = sum(&first, head.inputs.len(), |s| &s.rates.inputs);
        let gives = sum(&last, tail.outputs.len(), |s| &s.rates.outputs);
        let most = *takes.iter().chain(&gives).max()?;
        if most == 0
            || most > enough.min(ROUND_ELEMENTS_MAX)
            || self.members[0].guarded && first.len() > 1
        {
            return None;
        }
        let rounds = if self.members[0].guarded {
            1
        } else {
            (ROUND_ELEMENTS_MIN / most).min(enough / 2 / most).max(1)
        };
        let all: Vec<Firing> = firings.iter().map(|f| (*f).clone()).collect();
        let mut action = self.empty(&all);
        action.schedule_outputs = true;
        let mut code = Code::default();
        let one = rounds == 1 && first.len() == 1;
        let scaled = |counts: &[u32]| -> Vec<u32> { counts.iter().map(|n| n * rounds).collect() };
        let own = one && self.own_patterns(&mut code, &mut action, self.step(first[0]));
        let inputs = if own {
            vec![None; head.inputs.len()]
        } else {
            self.lists_in(&mut code, &mut action, &scaled(&takes))
        };
        let outputs = self.lists_out(&mut code, &mut action, &scaled(&gives));
        let buffers: Vec<Vec<VarRef>> = (0..self.members.len())
            .map(|m| {
                let ports = self.members[m].actor.outputs.len();
                let given = scaled(&sum(&of(m), ports, |s| &s.rates.outputs));
                let links = self.members[m].links.iter().enumerate();
                let each = links.map(|(l, link)| {
                    VarRef::Local(self.local_buffer(&mut code, m, l, given[link.out_port]))
                });
                each.collect()
            })
            .collect();
        for m in 0..self.members.len() {
            self.turns(
                &mut code,
                &of(m),
                rounds,
                &buffers,
                (&inputs, &outputs),
                own,
            );
        }
        action.body = Body {
            locals: code.locals,
            stmts: code.stmts,
        };
        Some(action)
    }

    /// All firings of one member in a number of rounds, as a loop over its own cycle.
    fn turns(
        &self,
        code: &mut Code,
        firings: &[&Firing],
        rounds: u32,
        buffers: &[Vec<VarRef>],
        (inputs, outputs): (&[Option<Window>], &[Option<Window>]),
        own: bool,
    ) {
        let m = firings[0].member;
        // The period of its steps, in firings.
        let member = &self.members[m];
        let cycle = member.steps.list.len() - member.steps.back;
        let turns = firings.len() / cycle * rounds as usize;
        let list = &firings[..cycle];
        let total = |port: usize, rate: fn(&Step) -> &Vec<u32>| -> u32 {
            list.iter().map(|f| rate(self.step(f))[port]).sum()
        };
        let span = member.actor.actions[self.step(list[0]).candidates[0]].span;
        code.times(turns as u32, 1, span, &mut |code, turn| {
            let mut ends = self.ends(
                &Firing {
                    reads: vec![0; firings[0].reads.len()],
                    writes: vec![0; firings[0].writes.len()],
                    ..firings[0].clone()
                },
                buffers,
            );
            if m == 0 {
                ends.own = own;
                ends.inputs = inputs.to_vec();
            }
            if m == self.last() {
                ends.outputs = outputs.to_vec();
            }
            ends.again = matches!(turn, Turn::Counter(_));
            for (port, w) in ends.inputs.iter_mut().enumerate() {
                if let Some(w) = w {
                    *w = w.moved(0, turn, total(port, |s| &s.rates.inputs));
                }
            }
            for (port, w) in ends.outputs.iter_mut().enumerate() {
                if let Some(w) = w {
                    *w = w.moved(0, turn, total(port, |s| &s.rates.outputs));
                }
            }
            for f in list {
                let step = self.step(f);
                self.fire_last(code, m, &step.candidates, &ends);
                for (w, n) in ends.inputs.iter_mut().zip(&step.rates.inputs) {
                    if let Some(w) = w {
                        w.at += n;
                    }
                }
                for (w, n) in ends.outputs.iter_mut().zip(&step.rates.outputs) {
                    if let Some(w) = w {
                        w.at += n;
                    }
                }
            }
        });
    }
}
