// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constant values of variables at each state of an actor's schedule, and the guards that they decide.
//!
//! [`Facts`](super::Ranges) hold at any time. The firings that lead to a state imply more: an action that ends a
//! loop has reset its counter, and the next action starts from there.

use super::slots::Slots;
use super::{Env, Range, Ranges, is_int};
use crate::ir::*;
use crate::operators::range::compare;
use crate::operators::types::compared_in;

/// The state variables at one point between two firings.
pub type Globals = Slots;

/// Rounds over all states before widening, and the maximum number of rounds.
const JOINS_BEFORE_WIDENING: usize = 3;
const ROUNDS_MAX: usize = 16;

impl Ranges<'_> {
    /// What holds at each state whenever it is reached; `None` if it is unreachable.
    pub fn at_states(&self) -> Vec<Option<Globals>> {
        let a = self.actor;
        let (states, first) = a
            .fsm
            .as_ref()
            .map_or((1, 0), |f| (f.states.len(), f.initial));
        let mut at: Vec<Option<Globals>> = vec![None; states];
        at[first] = Some(self.first());
        for round in 0.. {
            let mut next = at.clone();
            for (s, globals) in at.iter().enumerate() {
                let Some(globals) = globals else { continue };
                for (id, to) in ways(a, s) {
                    let Some(after) = self.after(globals, &a.actions[id]) else {
                        continue;
                    };
                    next[to] = Some(match &next[to] {
                        Some(known) => self.grown(known, &after, round >= JOINS_BEFORE_WIDENING),
                        None => after,
                    });
                }
            }
            if next == at {
                return at;
            }
            at = next;
            if round == ROUNDS_MAX {
                let always = |g: Option<Globals>| g.map(|_| self.facts.globals.clone());
                return at.into_iter().map(always).collect();
            }
        }
        unreachable!("the rounds end")
    }

    /// Before the first firing, all initializers done.
    fn first(&self) -> Globals {
        let a = self.actor;
        let mut globals: Globals = super::start(a).globals;
        for (i, g) in a.globals.iter().enumerate() {
            if matches!(g.init, Init::Code(_)) || !a.initializers.is_empty() {
                globals[i] = self.facts.globals[i];
            }
        }
        globals
    }

    fn grown(&self, known: &Globals, after: &Globals, widen: bool) -> Globals {
        let vars = self.actor.globals.iter().zip(self.facts.globals.iter());
        (known.iter().zip(after.iter()).zip(vars))
            .map(|((k, a), (g, fact))| {
                let r = if widen {
                    k.widen(k.join(*a), &g.ty)
                } else {
                    k.join(*a)
                };
                r.meet(*fact).unwrap_or(r)
            })
            .collect()
    }

    /// What holds after a firing of this action; `None` if its guard is false.
    pub fn after(&self, globals: &Globals, action: &Action) -> Option<Globals> {
        let holds = self.holding(globals, action)?;
        let mut env = self.enter(&action.body);
        env.globals = holds;
        self.open_inputs(action, &mut env, &action.body);
        self.exec(&mut env, &action.body.stmts, None);
        Some(env.globals)
    }

    /// What holds if the action's guard is true; `None` if it never is.
    pub fn holding(&self, globals: &Globals, action: &Action) -> Option<Globals> {
        let mut env = self.asked(globals, action);
        for c in &action.guard.conditions {
            self.assume(&mut env, c, true);
            if env.dead || self.truth(&env, c) == Some(false) {
                return None;
            }
        }
        Some(env.globals)
    }

    /// The value of the action's guard for any input, if known.
    pub fn says(&self, globals: &Globals, action: &Action) -> Option<bool> {
        let env = self.asked(globals, action);
        let mut all = Some(true);
        for c in &action.guard.conditions {
            match self.truth(&env, c) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
        }
        all
    }

    fn asked(&self, globals: &Globals, action: &Action) -> Env {
        let mut env = self.enter(&action.guard.body);
        env.globals = globals.clone();
        self.open_inputs(action, &mut env, &action.guard.body);
        self.exec(&mut env, &action.guard.body.stmts, None);
        env
    }

    /// The value of the condition, if it is the same for all values in `env`.
    pub fn truth(&self, env: &Env, e: &Expr) -> Option<bool> {
        match &e.kind {
            ExprKind::Const(Value::Bool(b)) => Some(*b),
            ExprKind::Unary(UnOp::Not, x) => self.truth(env, x).map(|b| !b),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let decides = *op == BinOp::Or;
                match (self.truth(env, a), self.truth(env, b)) {
                    (Some(x), _) | (_, Some(x)) if x == decides => Some(decides),
                    (Some(_), Some(_)) => Some(!decides),
                    _ => None,
                }
            }
            ExprKind::Binary(op, a, b) if is_int(&a.ty) && is_int(&b.ty) => {
                let ty = compared_in(&a.ty, &b.ty);
                let (a, b) = (self.eval_as(env, a, &ty), self.eval_as(env, b, &ty));
                compare(*op, a, b)
            }
            ExprKind::Call(p, args) => {
                let proc = &self.actor.procs[*p];
                let [
                    Stmt {
                        kind: StmtKind::Return(result),
                        ..
                    },
                ] = &proc.body.stmts[..]
                else {
                    return None;
                };
                if proc.native || proc.effects {
                    return None;
                }
                let mut inner = self.enter(&proc.body);
                inner.globals = env.globals.clone();
                for (i, arg) in args.iter().enumerate() {
                    let ty = &proc.body.locals[i].ty;
                    inner.locals[i] = match arg {
                        Arg::Value(e) => self.eval_as(env, e, ty),
                        Arg::List(_) => Range::of(ty),
                    };
                }
                self.truth(&inner, result)
            }
            ExprKind::Load(place) if place.indices.is_empty() && e.ty == Type::Bool => {
                let r = env.get(place.var);
                (r.lo == r.hi).then_some(r.lo != 0)
            }
            _ => None,
        }
    }

    /// The only value that a scalar variable can have here, if there is one.
    pub fn value(&self, globals: &Globals, var: usize) -> Option<i128> {
        let (g, r) = (&self.actor.globals[var], globals[var]);
        (is_int(&g.ty) && r.lo == r.hi).then_some(r.lo)
    }
}

/// The actions that may fire in a state, in the order in which they are tried, with their next states.
pub fn ways(a: &Actor, s: usize) -> Vec<(ActionId, usize)> {
    let outside = a.outside.iter().map(|id| (*id, s));
    let own = a.fsm.iter().flat_map(|f| f.transitions[s].iter());
    outside.chain(own.map(|t| (t.action, t.to))).collect()
}
