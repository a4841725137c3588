// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counted loops: if the guard compares a variable with a constant and the action adds a constant to this variable,
//! the number of firings is known beforehand. The loop then needs no guard, and the C compiler can vectorise it.

use super::class::{Class, Home};
use crate::ir::visit::mentions;
use crate::ir::*;
use crate::operators::types::compared_in;
use crate::ranges::Range;

/// An action that fires while `var` is less than `limit`, and adds `step` to it.
pub struct CountedLoop {
    pub var: usize,
    pub limit: i64,
    pub step: i64,
}

impl Class<'_> {
    pub fn counted_loop(&self, a: &Action) -> Option<CountedLoop> {
        let ([condition], true) = (&a.guard.conditions[..], a.guard.body.stmts.is_empty()) else {
            return None;
        };
        let ExprKind::Binary(op, left, right) = &condition.kind else {
            return None;
        };
        let (var, bound, more) = match op {
            BinOp::Lt => (left, right, 0),
            BinOp::Le => (left, right, 1),
            BinOp::Gt => (right, left, 0),
            BinOp::Ge => (right, left, 1),
            _ => return None,
        };
        let var = state_variable(var)?;
        let limit = self.known(bound)?.checked_add(more)?;
        let step = self.step(a, var)?;
        // The comparison and the variable must not wrap.
        let range = Range::of(&self.actor.globals[var].ty);
        if !range.within(Range::of(&compared_in(&left.ty, &right.ty))) {
            return None;
        }
        let last = i128::from(limit) + i128::from(step) - 1;
        (limit >= 0 && last <= range.hi).then_some(CountedLoop { var, limit, step })
    }

    fn known(&self, e: &Expr) -> Option<i64> {
        match &e.kind {
            ExprKind::Const(Value::Int(n)) => Some(*n),
            ExprKind::Load(_) => match &self.homes[state_variable(e)?] {
                Home::Literal(Value::Int(n)) => Some(*n),
                _ => None,
            },
            _ => None,
        }
    }

    /// The increment of the variable per firing, if the action does not write it otherwise.
    fn step(&self, a: &Action, var: usize) -> Option<i64> {
        let mut writes = 0;
        mentions(&a.body.stmts, &|p, i| self.writes(p, i), &mut |v, w| {
            writes += usize::from(w && v == VarRef::Global(var));
        });
        if writes != 1
            || a.body
                .stmts
                .iter()
                .any(|s| matches!(s.kind, StmtKind::Call(..)))
        {
            return None;
        }
        a.body.stmts.iter().find_map(|s| match &s.kind {
            StmtKind::Assign(place, e) if place.var == VarRef::Global(var) => match &e.kind {
                ExprKind::Binary(BinOp::Add, x, y) => {
                    let (x, y) = if state_variable(x) == Some(var) {
                        (x, y)
                    } else {
                        (y, x)
                    };
                    let step = self.known(y).filter(|n| *n > 0)?;
                    (state_variable(x) == Some(var)).then_some(step)
                }
                _ => None,
            },
            _ => None,
        })
    }
}

/// The scalar state variable, if the expression is just that.
pub fn state_variable(e: &Expr) -> Option<usize> {
    match &e.kind {
        ExprKind::Load(Place {
            var: VarRef::Global(g),
            indices,
            ..
        }) if indices.is_empty() => matches!(e.ty, Type::Int { .. }).then_some(*g),
        _ => None,
    }
}
