// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects the state variables that are kept in registers while an actor runs. A large actor has more variables
//! than there are registers, so the most used variables are chosen. Actions that fire often (those outside of the
//! schedule, and those that leave the state unchanged) have a higher weight.

use crate::ir::visit::{any_stmt, expr_mentions, exprs_of, mentions, walk};
use crate::ir::*;
use std::collections::BTreeMap;

/// With more variables, copying them in and out costs more than it saves.
const REGISTERS_MAX: usize = 16;

/// Weight of an action that is likely to fire repeatedly.
const REFIRING_ACTION_FACTOR: usize = 8;

/// For each variable, whether it gets a register: the most used of the candidates `may`.
pub fn registers(actor: &Actor, inlined: &[bool], may: &[bool]) -> Vec<bool> {
    let uses = uses(actor, inlined);
    let mut order: Vec<usize> = (0..may.len()).filter(|g| may[*g]).collect();
    // The sort is stable: equal variables stay in the order of declaration.
    order.sort_by_key(|g| std::cmp::Reverse(uses[*g]));
    let mut chosen = vec![false; may.len()];
    for g in order.into_iter().take(REGISTERS_MAX) {
        chosen[g] = true;
    }
    chosen
}

/// The number of uses of each variable that is used.
type Uses = BTreeMap<usize, usize>;

fn uses(actor: &Actor, inlined: &[bool]) -> Vec<usize> {
    // The uses in a procedure count for the action into which it is inlined.
    let in_procs: Vec<Uses> = (actor.procs.iter())
        .map(|p| {
            let mut own = Uses::new();
            in_stmts(&p.body.stmts, &mut own, &[]);
            own
        })
        .collect();
    let calls: Vec<Option<&Uses>> = (in_procs.iter().zip(inlined))
        .map(|(uses, inlined)| inlined.then_some(uses))
        .collect();
    let again = refiring_actions(actor);
    let mut all = vec![0; actor.globals.len()];
    for (id, action) in actor.actions.iter().enumerate() {
        let mut own = Uses::new();
        in_stmts(&action.guard.body.stmts, &mut own, &calls);
        in_stmts(&action.body.stmts, &mut own, &calls);
        let values = action.outputs.iter().flat_map(|o| &o.values);
        let scalars = values.filter_map(|v| match v {
            OutputValue::Scalar(e) => Some(e),
            OutputValue::List(_) => None,
        });
        for e in scalars.chain(&action.guard.conditions) {
            walk(e, &mut |e| in_expr(e, &mut own, &calls));
        }
        let times = if again[id] { REFIRING_ACTION_FACTOR } else { 1 };
        for (g, own) in own {
            all[g] += own * times;
        }
    }
    all
}

/// The actions that are outside of the schedule, or leave a state as it is.
fn refiring_actions(actor: &Actor) -> Vec<bool> {
    let mut again = vec![false; actor.actions.len()];
    for id in &actor.outside {
        again[*id] = true;
    }
    let states = actor
        .fsm
        .iter()
        .flat_map(|f| f.transitions.iter().enumerate());
    for (s, list) in states {
        for t in list.iter().filter(|t| t.to == s) {
            again[t.action] = true;
        }
    }
    again
}

fn in_stmts(stmts: &[Stmt], uses: &mut Uses, calls: &[Option<&Uses>]) {
    mentions(stmts, &|_, _| false, &mut |v, _| {
        if let VarRef::Global(g) = v {
            *uses.entry(g).or_default() += 1;
        }
    });
    any_stmt(stmts, &mut |s| {
        if let StmtKind::Call(p, _) = s.kind {
            in_proc(p, uses, calls);
        }
        exprs_of(s, &mut |e| {
            if let ExprKind::Call(p, _) = e.kind {
                in_proc(p, uses, calls);
            }
        });
        false
    });
}

fn in_expr(e: &Expr, uses: &mut Uses, calls: &[Option<&Uses>]) {
    expr_mentions(e, &|_, _| false, &mut |v, _| {
        if let VarRef::Global(g) = v {
            *uses.entry(g).or_default() += 1;
        }
    });
    if let ExprKind::Call(p, _) = e.kind {
        in_proc(p, uses, calls);
    }
}

fn in_proc(p: usize, uses: &mut Uses, calls: &[Option<&Uses>]) {
    for (g, more) in calls.get(p).copied().flatten().into_iter().flatten() {
        *uses.entry(*g).or_default() += more;
    }
}
