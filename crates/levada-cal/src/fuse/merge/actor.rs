// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completes a merged actor: adds the ports, variables, procedures and initializers of its members to its actions.

use super::super::renumber::Renumbering;
use super::Merger;
use super::code::list_of;
use super::patterns::{own, qualified};
use crate::ir::*;

impl Merger<'_> {
    /// The merged actor with these actions, and its members' variables and procedures.
    pub fn actor(&self, actions: Vec<Action>, fsm: Option<Fsm>) -> Actor {
        let mut globals = Vec::new();
        let mut procs = Vec::new();
        let mut initializers = Vec::new();
        for (m, member) in self.members.iter().enumerate() {
            let moves = |locals: usize| Renumbering {
                locals: (0..locals).collect(),
                globals: self.globals[m],
                procs: self.procs[m],
            };
            for g in &member.actor.globals {
                let init = match &g.init {
                    Init::Code(body) => Init::Code(moves(0).body_of_its_own(body)),
                    other => other.clone(),
                };
                globals.push(Var {
                    name: own(member.name, &g.name),
                    init,
                    ..g.clone()
                });
            }
            for p in &member.actor.procs {
                procs.push(Proc {
                    name: own(member.name, &p.name),
                    body: moves(0).body_of_its_own(&p.body),
                    ..p.clone()
                });
            }
            for i in &member.actor.initializers {
                let (guard, body) = (moves(i.guard.body.locals.len()), moves(i.body.locals.len()));
                let given = |v: &OutputValue| match v {
                    OutputValue::Scalar(e) => OutputValue::Scalar(body.expr(e)),
                    OutputValue::List(v) => OutputValue::List(body.var(*v)),
                };
                let outputs = i.outputs.iter().map(|o| Output {
                    values: o.values.iter().map(given).collect(),
                    ..o.clone()
                });
                initializers.push(Action {
                    name: qualified(member.name, i),
                    outputs: outputs.collect(),
                    guard: Guard {
                        body: guard.body(&i.guard.body),
                        conditions: i.guard.conditions.iter().map(|e| guard.expr(e)).collect(),
                    },
                    body: body.body(&i.body),
                    ..i.clone()
                });
            }
        }
        for (m, links) in self.buffers.iter().enumerate() {
            for (l, buffer) in links.iter().enumerate().filter(|(_, b)| b.is_some()) {
                debug_assert_eq!(*buffer, Some(globals.len()));
                let port = &self.members[m].actor.outputs[self.members[m].links[l].out_port];
                globals.push(Var {
                    name: own(self.members[m].name, &port.name),
                    ty: list_of(&port.ty, self.schedule.links[m][l].length),
                    init: Init::Zero,
                    constant: false,
                    span: port.span,
                });
            }
        }
        let ports = |m: usize, list: &[Port]| -> Vec<Port> {
            let name = self.members[m].name;
            let each = list.iter().map(|p| Port {
                name: own(name, &p.name),
                ..p.clone()
            });
            each.collect()
        };
        let names: Vec<&str> = self.members.iter().map(|m| m.actor.name.as_str()).collect();
        Actor {
            name: names.join("+"),
            inputs: ports(0, &self.members[0].actor.inputs),
            outputs: ports(self.last(), &self.members[self.last()].actor.outputs),
            globals,
            procs,
            outside: if fsm.is_none() { vec![0] } else { Vec::new() },
            actions,
            initializers,
            fsm,
            native: None,
            span: self.members[0].actor.span,
        }
    }
}
