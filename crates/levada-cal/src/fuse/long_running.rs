// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions that call functions which may run long or without end. These are not merged: if such a function does not
//! return, the report must name the one action that called it.

use crate::ir::visit::{any_stmt, exprs_of, walk};
use crate::ir::*;

/// A loop with more iterations is long-running.
const ITERATIONS_MAX: i128 = 1 << 16;

/// Whether a firing of this action may run long.
pub fn is_long_running(actor: &Actor, action: &Action) -> bool {
    let mut called = Vec::new();
    for body in [&action.body, &action.guard.body] {
        calls(&body.stmts, &mut called);
    }
    let values = action.outputs.iter().flat_map(|o| &o.values);
    let scalars = values.filter_map(|v| match v {
        OutputValue::Scalar(e) => Some(e),
        OutputValue::List(_) => None,
    });
    for e in scalars.chain(&action.guard.conditions) {
        calls_in(e, &mut called);
    }
    let mut known = vec![None; actor.procs.len()];
    called
        .into_iter()
        .any(|p| proc_is_long_running(actor, p, &mut known))
}

fn calls_in(e: &Expr, called: &mut Vec<usize>) {
    walk(e, &mut |e| {
        if let ExprKind::Call(p, _) = &e.kind {
            called.push(*p);
        }
    });
}

fn calls(stmts: &[Stmt], called: &mut Vec<usize>) {
    any_stmt(stmts, &mut |s| {
        exprs_of(s, &mut |e| {
            if let ExprKind::Call(p, _) = &e.kind {
                called.push(*p);
            }
        });
        if let StmtKind::Call(p, _) = &s.kind {
            called.push(*p);
        }
        false
    });
}

/// `known`: results so far; a procedure in progress is recursive, and therefore long-running.
fn proc_is_long_running(actor: &Actor, p: usize, known: &mut [Option<bool>]) -> bool {
    if let Some(is_long_running) = known[p] {
        return is_long_running;
    }
    known[p] = Some(true);
    let body = &actor.procs[p].body.stmts;
    let mut called = Vec::new();
    calls(body, &mut called);
    let is_long_running = any_stmt(body, &mut |s| loops(s))
        || called
            .into_iter()
            .any(|p| proc_is_long_running(actor, p, known));
    known[p] = Some(is_long_running);
    is_long_running
}

fn loops(s: &Stmt) -> bool {
    match &s.kind {
        StmtKind::While(..) => true,
        StmtKind::For { from, to, .. } => match (&from.kind, &to.kind) {
            (ExprKind::Const(Value::Int(a)), ExprKind::Const(Value::Int(b))) => {
                i128::from(*b) - i128::from(*a) >= ITERATIONS_MAX
            }
            _ => true,
        },
        _ => false,
    }
}
