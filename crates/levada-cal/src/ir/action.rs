// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of actions: the elements that they move, an estimate of their work, and calls of native functions.

use super::visit::{any_stmt, exprs_of, walk};
use super::*;
use std::collections::BTreeMap;

/// The elements that an action consumes or produces on each of its ports, in the order of the patterns.
pub fn rates(patterns: impl Iterator<Item = (usize, u32)>) -> Vec<(usize, u32)> {
    let mut rates: Vec<(usize, u32)> = Vec::new();
    let mut at = BTreeMap::new();
    for (port, n) in patterns {
        let at = *at.entry(port).or_insert(rates.len());
        match rates.get_mut(at) {
            Some(rate) => rate.1 += n,
            None => rates.push((port, n)),
        }
    }
    rates
}

pub fn consumed(a: &Action) -> Vec<(usize, u32)> {
    rates(a.inputs.iter().map(|i| (i.port, i.count())))
}

pub fn produced(a: &Action) -> Vec<(usize, u32)> {
    rates(a.outputs.iter().map(|o| (o.port, o.count())))
}

/// Whether an action is small enough to be inlined wherever it is used.
pub fn is_light(a: &Action) -> bool {
    is_light_with(a, &|_| UNKNOWN_WEIGHT)
}

pub fn is_light_with(a: &Action, call: &dyn Fn(usize) -> usize) -> bool {
    let loops = |b: &Body| any_stmt(&b.stmts, &mut |s| matches!(s.kind, StmtKind::For { .. }));
    let tokens: u32 = a.inputs.iter().map(Input::count).sum::<u32>()
        + a.outputs.iter().map(Output::count).sum::<u32>();
    !loops(&a.body) && !loops(&a.guard.body) && weight_with(a, call) < 120 && tokens <= 16
}

/// The weight of a call, and of a loop with an unknown number of iterations.
pub const UNKNOWN_WEIGHT: usize = 1000;

/// Iterations that the C compiler executes at once of a loop that only computes elements.
const VECTOR_LANES: usize = 8;

/// An estimate of the work of an action: a loop counts once per iteration. Calls and loops with an unknown number of
/// iterations count as [`UNKNOWN_WEIGHT`].
pub fn weight(a: &Action) -> usize {
    weight_with(a, &|_| UNKNOWN_WEIGHT)
}

/// The weight of the statements of the body only.
pub fn body_weight(a: &Action) -> usize {
    size(&a.body.stmts, &|_| UNKNOWN_WEIGHT)
}

pub fn weight_with(a: &Action, call: &dyn Fn(usize) -> usize) -> usize {
    let body = |b: &Body| size(&b.stmts, call);
    let mut n = body(&a.body) + body(&a.guard.body);
    let scalars = a
        .outputs
        .iter()
        .flat_map(|o| &o.values)
        .filter_map(|v| match v {
            OutputValue::Scalar(e) => Some(e),
            OutputValue::List(_) => None,
        });
    for e in scalars.chain(&a.guard.conditions) {
        walk(e, &mut |_| n += 1);
    }
    n
}

/// The weight of statements.
pub fn size(stmts: &[Stmt], call: &dyn Fn(usize) -> usize) -> usize {
    fn turns(from: &Expr, to: &Expr) -> Option<usize> {
        match (&from.kind, &to.kind) {
            (ExprKind::Const(Value::Int(a)), ExprKind::Const(Value::Int(b))) => {
                usize::try_from((b - a).max(-1) + 1).ok()
            }
            _ => None,
        }
    }
    let computes = |body: &[Stmt]| {
        body.iter().all(|s| {
            let mut plain = matches!(s.kind, StmtKind::Assign(..));
            exprs_of(s, &mut |e| plain &= !matches!(e.kind, ExprKind::Call(..)));
            plain
        })
    };
    let mut n = 0usize;
    for s in stmts {
        exprs_of(s, &mut |_| n += 1);
        n += match &s.kind {
            StmtKind::If(_, a, b) => size(a, call) + size(b, call),
            StmtKind::For { from, to, body, .. } => turns(from, to).map_or(UNKNOWN_WEIGHT, |t| {
                let lanes = if computes(body) { VECTOR_LANES } else { 1 };
                (t * size(body, call)).div_ceil(lanes).min(UNKNOWN_WEIGHT)
            }),
            StmtKind::Call(p, _) => call(*p),
            StmtKind::While(..) | StmtKind::Print { .. } => UNKNOWN_WEIGHT,
            _ => 1,
        };
    }
    n
}

/// Whether the guard calls a native function. Its result may then change without a firing.
pub fn asks_native(actor: &Actor, a: &Action) -> bool {
    has_effects(actor, &a.guard.body) || a.guard.conditions.iter().any(|e| effects_of(actor, e))
}

/// Whether an action calls a native function, or may do so.
pub fn calls_native(actor: &Actor, a: &Action) -> bool {
    let value = |v: &OutputValue| matches!(v, OutputValue::Scalar(e) if effects_of(actor, e));
    asks_native(actor, a)
        || has_effects(actor, &a.body)
        || a.outputs.iter().flat_map(|o| &o.values).any(value)
}

fn effects_of(actor: &Actor, e: &Expr) -> bool {
    let mut found = false;
    walk(e, &mut |e| {
        if let ExprKind::Call(p, _) = &e.kind {
            found |= actor.procs[*p].effects;
        }
    });
    found
}

fn has_effects(actor: &Actor, b: &Body) -> bool {
    any_stmt(&b.stmts, &mut |s| {
        let mut found = matches!(s.kind, StmtKind::Call(p, _) if actor.procs[p].effects);
        exprs_of(s, &mut |e| found |= effects_of(actor, e));
        found
    })
}
