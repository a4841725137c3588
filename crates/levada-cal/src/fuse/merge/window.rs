// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Windows: the elements of a firing, as consecutive elements of a list, and the statements that copy them from and to
//! the variables of an action.

use super::super::renumber::Renumbering;
use super::code::{Code, INT, Turn, cast, load, number};
use crate::ir::*;
use crate::ranges::innermost;

/// Consecutive elements of a list, starting at `at` plus multiples of counters.
#[derive(Clone)]
pub struct Window {
    pub var: VarRef,
    pub elem: Type,
    pub counters: Vec<(usize, u32)>,
    pub at: u32,
}

impl Window {
    pub fn new(var: VarRef, elem: &Type, at: u32) -> Window {
        Window {
            var,
            elem: elem.clone(),
            counters: Vec::new(),
            at,
        }
    }

    /// The window moved by `at` elements, and by `step` more per iteration.
    pub fn moved(&self, at: u32, turn: Turn, step: u32) -> Window {
        let mut w = self.clone();
        w.at += at;
        match turn {
            Turn::Number(k) => w.at += k * step,
            Turn::Counter(c) => w.counters.push((c, step)),
        }
        w
    }

    pub fn place(&self, span: Span) -> Place {
        let binary = |op, a, b| Expr {
            kind: ExprKind::Binary(op, Box::new(a), Box::new(b)),
            ty: INT,
            span,
        };
        let mut terms = Vec::new();
        for (var, step) in &self.counters {
            let counter = load(VarRef::Local(*var), vec![], INT, span);
            terms.push(match step {
                1 => counter,
                n => binary(BinOp::Mul, counter, number(*n, span)),
            });
        }
        if self.at > 0 || terms.is_empty() {
            terms.push(number(self.at, span));
        }
        let index = terms.into_iter().reduce(|a, b| binary(BinOp::Add, a, b));
        Place {
            var: self.var,
            indices: index.into_iter().collect(),
            ty: self.elem.clone(),
            span,
        }
    }

    pub fn value(&self, span: Span) -> Expr {
        Expr {
            ty: self.elem.clone(),
            kind: ExprKind::Load(self.place(span)),
            span,
        }
    }
}

/// Loops over at most this many elements are unrolled.
pub const UNROLLED_ELEMENTS_MAX: u32 = 8;

/// Assigns the elements of the windows to the variables of an action's input patterns.
pub fn hand_over(
    code: &mut Code,
    y: &Action,
    actor: &Actor,
    from: &[Option<Window>],
    moves: &Renumbering,
) {
    let mut offset = vec![0u32; from.len()];
    for input in &y.inputs {
        let (Some(window), stride) = (&from[input.port], input.vars.len() as u32) else {
            continue;
        };
        let port = &actor.inputs[input.port].ty;
        for (j, var) in input.vars.iter().enumerate() {
            let to = moves.locals[*var];
            let at = offset[input.port] + j as u32;
            let elem = innermost(&code.locals[to].ty).clone();
            let target = Window::new(VarRef::Local(to), &elem, 0);
            code.times(
                input.repeat,
                UNROLLED_ELEMENTS_MAX,
                input.span,
                &mut |code, turn| {
                    let value = window.moved(at, turn, stride);
                    let value = cast(value.value(input.span), port);
                    let mut place = target.moved(0, turn, 1).place(input.span);
                    if !input.is_list {
                        place.indices.clear();
                    }
                    code.put(StmtKind::Assign(place, value), input.span);
                },
            );
        }
        offset[input.port] += input.count();
    }
}

/// Stores an action's outputs in the windows; returns the outputs without one.
pub fn leave(
    code: &mut Code,
    y: &Action,
    actor: &Actor,
    to: &[Option<Window>],
    moves: &Renumbering,
) -> Vec<Output> {
    let mut outside = Vec::new();
    let mut offset = vec![0u32; actor.outputs.len()];
    for o in &y.outputs {
        let Some(window) = &to[o.port] else {
            let given = |v: &OutputValue| match v {
                OutputValue::Scalar(e) => OutputValue::Scalar(moves.expr(e)),
                OutputValue::List(v) => OutputValue::List(moves.var(*v)),
            };
            outside.push(Output {
                values: o.values.iter().map(given).collect(),
                ..o.clone()
            });
            continue;
        };
        let (port, stride) = (&actor.outputs[o.port].ty, o.values.len() as u32);
        for (j, value) in o.values.iter().enumerate() {
            let at = offset[o.port] + j as u32;
            match value {
                OutputValue::Scalar(e) => {
                    for k in 0..o.repeat {
                        let place = window.moved(at, Turn::Number(k), stride).place(o.span);
                        code.put(StmtKind::Assign(place, cast(moves.expr(e), port)), o.span);
                    }
                }
                OutputValue::List(v) => {
                    let list = match v {
                        VarRef::Local(l) => &y.body.locals[*l].ty,
                        VarRef::Global(g) => &actor.globals[*g].ty,
                    };
                    let from = Window::new(moves.var(*v), innermost(list), 0);
                    code.times(
                        o.repeat,
                        UNROLLED_ELEMENTS_MAX,
                        o.span,
                        &mut |code, turn| {
                            let value = from.moved(0, turn, 1).value(o.span);
                            let place = window.moved(at, turn, stride).place(o.span);
                            code.put(StmtKind::Assign(place, cast(value, port)), o.span);
                        },
                    );
                }
            }
        }
        offset[o.port] += o.count();
    }
    outside
}
