// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditional expressions without branches. In a loop that computes the elements of a list one by one, the C
//! compiler vectorises a simple `if a then b else c`. Nested conditionals it turns into control flow before it
//! looks for loops, so the loop remains scalar, with unpredictable branches for each element. For these, both sides
//! are computed and a mask selects one.
//!
//! Both sides must be free of effects when not selected: no checks, no division, no calls except of inlined
//! procedures. Nothing may be known about the ranges of their variables only because a side is selected, since the
//! C code for it might then use narrower types.

use super::expr::Code;
use crate::ir::visit::{any_stmt, exprs_of, walk};
use crate::ir::*;
use crate::ranges::{Env, is_int};

/// Loops with fewer iterations are not worth vectorising.
const ITERATIONS_MIN: i128 = 8;

/// A larger side costs more than a branch.
const SIDE_WEIGHT_MAX: usize = 40;

impl Code<'_, '_> {
    /// Whether this is a loop that only computes elements.
    pub fn maps(&self, from: &Expr, to: &Expr, body: &[Stmt]) -> bool {
        let constant = |e: &Expr| match e.kind {
            ExprKind::Const(Value::Int(n)) => Some(i128::from(n)),
            _ => None,
        };
        let turns = match (constant(from), constant(to)) {
            (Some(from), Some(to)) => to - from + 1,
            _ => return false,
        };
        let element = |s: &Stmt| matches!(&s.kind, StmtKind::Assign(to, _) if !to.indices.is_empty() && is_int(&to.ty));
        turns >= ITERATIONS_MIN && body.iter().all(element)
    }

    /// Whether a mask may select between these instead of a branch on `c`. `env` holds here, `yes` and `no` hold in
    /// the two sides.
    pub fn can_select_branchless(&self, e: &Expr, (env, yes, no): (&Env, &Env, &Env)) -> bool {
        let ExprKind::If(_, a, b) = &e.kind else {
            return false;
        };
        self.in_map && is_int(&e.ty) && (nested(a) || nested(b)) && {
            let harmless = |side: &Expr, there: &Env| {
                let mut size = 0;
                let mut fine = !there.dead;
                walk(side, &mut |e| {
                    size += 1;
                    fine &= self.harmless(e)
                        && self.class.ranges.eval(env, e) == self.class.ranges.eval(there, e);
                });
                fine && size <= SIDE_WEIGHT_MAX
            };
            harmless(a, yes) && harmless(b, no)
        }
    }

    fn harmless(&self, e: &Expr) -> bool {
        let class = self.class;
        match &e.kind {
            ExprKind::Binary(op, ..) => !matches!(op, BinOp::Div | BinOp::Mod),
            ExprKind::Call(p, _) => {
                let proc = &class.actor.procs[*p];
                class.inlined[*p]
                    && !any_stmt(&proc.body.stmts, &mut |s| {
                        let written = match &s.kind {
                            StmtKind::Assign(to, _) => {
                                matches!(to.var, VarRef::Global(_)) || !to.indices.is_empty()
                            }
                            StmtKind::If(..) | StmtKind::Return(_) => false,
                            _ => true,
                        };
                        let mut fails = false;
                        exprs_of(s, &mut |e| fails |= class.fails(e));
                        written || fails
                    })
            }
            // The index is a separate expression; the access must be proven or checked.
            ExprKind::Load(place) => place.indices.is_empty() || self.is_inside(place),
            ExprKind::Const(_) | ExprKind::Unary(..) | ExprKind::If(..) | ExprKind::Cast(_) => true,
        }
    }

    /// Whether every index is proven to be within its list.
    fn is_inside(&self, place: &Place) -> bool {
        let dims = crate::ranges::dimensions(self.var_type(place.var));
        dims.len() == place.indices.len()
            && (place.indices.iter().zip(dims)).all(|(i, n)| {
                let inside = crate::ranges::Range::new(0, i128::from(n) - 1);
                self.class.ranges.eval(&self.env, i).within(inside)
            })
    }
}

/// Whether it contains a conditional, or an element that is loaded only here.
fn nested(e: &Expr) -> bool {
    let mut found = false;
    walk(e, &mut |e| {
        found |= match &e.kind {
            ExprKind::If(..) | ExprKind::Call(..) => true,
            ExprKind::Load(place) => !place.indices.is_empty(),
            _ => false,
        }
    });
    found
}
