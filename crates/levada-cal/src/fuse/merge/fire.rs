// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the firings of one member within a merged action: selects its action, and copies the body with the windows of
//! the elements that it consumes and produces.

use super::super::renumber::Renumbering;
use super::super::schedule::Firing;
use super::Merger;
use super::code::Code;
use super::window::{Window, hand_over, leave};
use crate::emit::needs_zero;
use crate::ir::*;

/// The windows of a firing's elements, by port. A port without a window is a pattern of the merged action itself.
#[derive(Default)]
pub struct Ends {
    pub inputs: Vec<Option<Window>>,
    pub outputs: Vec<Option<Window>>,
    /// Whether the input patterns are the merged action's own, with its first variables.
    pub own: bool,
    /// Whether it is one of several firings in a loop: its variables have the values of the previous one.
    pub again: bool,
}

impl Merger<'_> {
    /// The windows of a firing on inner links.
    pub fn ends(&self, f: &Firing, buffers: &[Vec<VarRef>]) -> Ends {
        let me = &self.members[f.member];
        let mut ends = Ends {
            inputs: vec![None; me.actor.inputs.len()],
            outputs: vec![None; me.actor.outputs.len()],
            own: false,
            again: false,
        };
        if f.member > 0 {
            let m = f.member - 1;
            for (l, link) in self.members[m].links.iter().enumerate() {
                let w = Window::new(buffers[m][l], self.elem(m, l), f.reads[l]);
                ends.inputs[link.in_port] = Some(w);
            }
        }
        for (l, link) in me.links.iter().enumerate() {
            let w = Window::new(buffers[f.member][l], self.elem(f.member, l), f.writes[l]);
            ends.outputs[link.out_port] = Some(w);
        }
        ends
    }

    /// Emits the firing of the first candidate that can fire; returns outputs without a window.
    pub fn fire(
        &self,
        code: &mut Code,
        m: usize,
        candidates: &[ActionId],
        ends: &Ends,
    ) -> Vec<Output> {
        let member = &self.members[m];
        let y = &member.actor.actions[candidates[0]];
        let bound: usize = y.inputs.iter().map(|i| i.vars.len()).sum();
        let mut moves = Renumbering {
            locals: Vec::new(),
            globals: self.globals[m],
            procs: self.procs[m],
        };
        if ends.own {
            moves.locals = (0..y.body.locals.len()).collect();
        } else {
            for local in &y.body.locals {
                moves
                    .locals
                    .push(code.local(&local.name, local.ty.clone(), local.span));
            }
            hand_over(code, y, member.actor, &ends.inputs, &moves);
        }
        if ends.again {
            clear_locals(code, y, bound, &moves);
        }
        if candidates.len() == 1 {
            code.stmts.extend(moves.stmts(&y.body.stmts));
            return leave(code, y, member.actor, &ends.outputs, &moves);
        }
        // The guard's variables: those of the patterns, and its own.
        let guard = &y.guard;
        let mut in_guard = Renumbering {
            locals: moves.locals[..bound.min(guard.body.locals.len())].to_vec(),
            ..moves
        };
        for (l, local) in guard.body.locals.iter().enumerate().skip(bound) {
            in_guard
                .locals
                .push(code.local(&local.name, local.ty.clone(), local.span));
            if ends.again {
                code.clear(in_guard.locals[l], y.span);
            }
        }
        code.stmts.extend(in_guard.stmts(&guard.body.stmts));
        let condition = guard
            .conditions
            .iter()
            .map(|e| in_guard.expr(e))
            .reduce(|a, b| Expr {
                span: a.span,
                ty: Type::Bool,
                kind: ExprKind::Binary(BinOp::And, Box::new(a), Box::new(b)),
            });
        let outer = code.take();
        code.stmts.extend(moves.stmts(&y.body.stmts));
        leave(code, y, member.actor, &ends.outputs, &moves);
        let yes = code.take();
        let Some(condition) = condition else {
            // The others can never fire.
            code.stmts = outer;
            code.stmts.extend(yes);
            return Vec::new();
        };
        self.fire_last(code, m, &candidates[1..], ends);
        let no = std::mem::replace(&mut code.stmts, outer);
        code.put(StmtKind::If(condition, yes, no), y.span);
        Vec::new()
    }

    /// Like `fire`, if all outputs have windows.
    pub fn fire_last(&self, code: &mut Code, m: usize, candidates: &[ActionId], ends: &Ends) {
        let rest = self.fire(code, m, candidates, ends);
        debug_assert!(rest.is_empty(), "a choice gives to windows");
    }
}

/// Sets the variables of an action, from the one with the number `bound` on, to zero, unless they are lists that are
/// written before they are read.
fn clear_locals(code: &mut Code, y: &Action, bound: usize, moves: &Renumbering) {
    let read = |l: &usize| {
        y.outputs.iter().flat_map(|o| &o.values).any(|v| match v {
            OutputValue::List(v) => *v == VarRef::Local(*l),
            OutputValue::Scalar(_) => false,
        })
    };
    for l in bound..y.body.locals.len() {
        let list = matches!(y.body.locals[l].ty, Type::List { .. });
        if !list || needs_zero(&y.body, l, read(&l)) {
            code.clear(moves.locals[l], y.span);
        }
    }
}
