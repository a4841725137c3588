// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Notes on behaviour that the language does not specify and Levada defines. Programs that were tested with another
//! compiler may rely on a different choice.

use super::{Checker, order};
use crate::diag::Diagnostic;
use crate::hir::{Action, Actor, Expr, ExprKind, LocalId, Place, Var};
use crate::ir::{BinOp, UnOp, Value};
use crate::operators::smallest;
use crate::types::Ty;
use std::collections::BTreeSet;

impl Checker<'_> {
    /// Notes pairs of tagged actions that may both fire without a priority between them. `below`: the actions over
    /// which each one has priority, directly or indirectly.
    pub(super) fn unordered<'a>(&mut self, actor: &'a Actor, below: &[BTreeSet<usize>]) {
        let mut told = BTreeSet::new();
        let before: Vec<BTreeSet<usize>> = (0..below.len()).map(|a| reached(a, below)).collect();
        for group in &groups(actor) {
            let mut tagged: Vec<usize> = group.clone();
            tagged.retain(|&a| actor.actions[a].tag.is_some());
            tagged.sort_unstable();
            for (i, &a) in tagged.iter().enumerate() {
                for &b in &tagged[i + 1..] {
                    let ordered = before[a].contains(&b) || before[b].contains(&a);
                    let (first, second) = (&actor.actions[a], &actor.actions[b]);
                    if ordered || exclude(first, second) || !told.insert((a, b)) {
                        continue;
                    }
                    let tag = |x: &'a Action| x.tag.as_deref().unwrap_or_default();
                    let (x, y) = (tag(first), tag(second));
                    let diag = Diagnostic::note("order", format!("nothing orders `{x}` and `{y}`"))
                        .label(
                            second.span,
                            "where both may fire, the one that is written first does",
                        )
                        .label(first.span, "this one")
                        .help(if orders_only(actor, a, b) {
                            format!("say so: `priority {x} > {y}; end`")
                        } else {
                            "give each a tag that names no other action, and order these by a \
                                      `priority`"
                                .into()
                        });
                    self.diags.push(diag);
                }
            }
        }
    }

    /// Two actions of which the first that is tried needs elements, or room, that the second does not:
    /// while they are missing the second fires. Which of the two fires depends on the time at which they
    /// come, so the actor's result may differ from run to run. `tried` are the actions in the order in
    /// which they are tried, without a schedule.
    pub(super) fn time_dependent(&mut self, actor: &Actor, tried: &[usize]) {
        let mut told = BTreeSet::new();
        for group in &tried_groups(actor, tried) {
            for (i, &a) in group.iter().enumerate() {
                for &b in &group[i + 1..] {
                    let (first, second) = (&actor.actions[a], &actor.actions[b]);
                    let Some(lack) = lacks(actor, first, second) else {
                        continue;
                    };
                    if exclude(first, second) || !told.insert((a, b)) {
                        continue;
                    }
                    let (x, y) = (named(first), named(second));
                    let (when, missing) = match lack {
                        Lack::Elements(port) => (
                            format!("`{port}` comes"),
                            format!("this one fires while {x} lacks elements of `{port}`"),
                        ),
                        Lack::Room(port) => (
                            format!("`{port}` has room"),
                            format!("this one fires while {x} lacks room on `{port}`"),
                        ),
                    };
                    let message = format!("whether {x} or {y} fires depends on when {when}");
                    let diag = Diagnostic::note("time", message)
                        .label(second.span, missing)
                        .label(first.span, "though this one is tried first")
                        .help(format!("give {y} a guard that excludes that of {x}"));
                    self.diags.push(diag);
                }
            }
        }
    }

    /// A value that may not fit a type with a width that C does not have: it is held in more bits, and not truncated.
    pub(super) fn odd_width(&mut self, value: &Expr, ty: &Ty) {
        let least = match value.kind {
            ExprKind::Const(Value::Int(v)) => smallest(v, &value.ty),
            _ => value.ty.clone(),
        };
        let (
            Ty::Int { bits, signed },
            Ty::Int {
                bits: has,
                signed: negative,
            },
        ) = (ty, &least)
        else {
            return;
        };
        let held = match bits {
            8 | 16 | 32 | 64 => return,
            0..=7 => 8,
            9..=15 => 16,
            17..=31 => 32,
            _ => 64,
        };
        // An unsigned value needs one more bit in a signed type, and a negative value never fits an unsigned type.
        let needs = has + u8::from(*signed && !negative);
        if needs <= *bits && (*signed || !negative) {
            return;
        }
        let diag = Diagnostic::note("width", format!("this is {least}, and may not fit {ty}"))
            .label(
                value.span,
                format!("it is held in {held} bits, and not cut to {bits}"),
            )
            .help("if more can come, say what is to become of it, as in `x & 7`");
        self.diags.push(diag);
    }
}

/// Whether a priority of the tags of `a` over `b` orders these two and no others.
fn orders_only(actor: &Actor, a: usize, b: usize) -> bool {
    let tag = |x: usize| actor.actions[x].tag.as_deref().unwrap_or_default();
    let count = |of: &str, but: usize| {
        let others = (0..actor.actions.len()).filter(|&x| x != but);
        others.filter(|&x| order::matches(of, tag(x))).count()
    };
    // `a.b > a` orders no action before itself.
    tag(a) != tag(b) && count(tag(a), b) == 1 && count(tag(b), a) == 1
}

/// The candidate actions of each state.
fn groups(actor: &Actor) -> Vec<Vec<usize>> {
    let Some(fsm) = &actor.fsm else {
        return vec![(0..actor.actions.len()).collect()];
    };
    let rows = fsm.transitions.iter();
    rows.map(|row| row.iter().map(|t| t.action).collect())
        .collect()
}

/// The candidate actions of each state in the order in which they are tried, beginning with those outside of the
/// schedule.
fn tried_groups(actor: &Actor, tried: &[usize]) -> Vec<Vec<usize>> {
    if actor.fsm.is_none() {
        return vec![tried.to_vec()];
    }
    let untagged = |a: &&usize| actor.actions[**a].tag.is_none();
    let outside: Vec<usize> = tried.iter().filter(untagged).copied().collect();
    let rows = groups(actor).into_iter();
    rows.map(|row| outside.iter().copied().chain(row).collect())
        .collect()
}

/// The name of an action in messages.
fn named(action: &Action) -> String {
    match &action.tag {
        Some(tag) => format!("`{tag}`"),
        None => "an action without a tag".into(),
    }
}

/// The name of a port on which an action may lack elements while another one fires.
enum Lack<'a> {
    Elements(&'a str),
    Room(&'a str),
}

/// What `a` may lack while `b` can fire. Room is part of the firing condition only with `@schedule_outputs`.
fn lacks<'a>(actor: &'a Actor, a: &Action, b: &Action) -> Option<Lack<'a>> {
    let takes = |x: &Action, port: usize| {
        let of = x.inputs.iter().filter(|i| i.port == port);
        of.map(|i| i.vars.len() * i.repeat as usize).sum::<usize>()
    };
    let mut ports = a.inputs.iter().map(|i| i.port);
    if let Some(port) = ports.find(|&p| takes(b, p) < takes(a, p)) {
        return Some(Lack::Elements(&actor.inputs[port].name));
    }
    let output = a.outputs.first().filter(|_| a.schedule_outputs)?;
    Some(Lack::Room(&actor.outputs[output.port].name))
}

/// All actions over which `from` has priority.
fn reached(from: usize, below: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut out, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(a) = next.pop() {
        next.extend(below[a].iter().filter(|&&b| out.insert(b)));
    }
    out
}

/// Whether the guards of both obviously exclude each other.
fn exclude(a: &Action, b: &Action) -> bool {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    a.guards.iter().for_each(|g| conjuncts(g, &mut left));
    b.guards.iter().for_each(|g| conjuncts(g, &mut right));
    let pair = Pair { a, b };
    let any = |x: &&Expr| right.iter().any(|y| pair.contradict(x, y));
    left.iter().any(any) || left.iter().chain(&right).any(|g| is_false(g))
}

fn conjuncts<'e>(guard: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &guard.kind {
        ExprKind::Binary(BinOp::And, x, y) => {
            conjuncts(x, out);
            conjuncts(y, out);
        }
        _ => out.push(guard),
    }
}

fn is_false(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Const(Value::Bool(false)))
}

/// Compares an expression of one action with one of another.
struct Pair<'a> {
    a: &'a Action,
    b: &'a Action,
}

impl Pair<'_> {
    fn contradict(&self, x: &Expr, y: &Expr) -> bool {
        use ExprKind::{Binary, Unary};
        match (&x.kind, &y.kind) {
            (Unary(UnOp::Not, inner), _) if self.same(inner, y) => true,
            (_, Unary(UnOp::Not, inner)) if self.same(x, inner) => true,
            (Binary(f, p, q), Binary(g, r, s)) if self.same(p, r) => match (known(q), known(s)) {
                (Some(m), Some(n)) => apart((*f, m), (*g, n)),
                _ => self.same(q, s) && opposite(*f) == Some(*g),
            },
            _ => false,
        }
    }

    /// Whether both have the same value while nothing fires.
    fn same(&self, x: &Expr, y: &Expr) -> bool {
        use ExprKind::{Binary, Const, Load, Unary};
        match (&x.kind, &y.kind) {
            (Const(m), Const(n)) => format!("{m:?}") == format!("{n:?}"),
            (Load(p), Load(q)) => self.same_place(p, q),
            (Unary(f, p), Unary(g, q)) => f == g && self.same(p, q),
            (Binary(f, p, q), Binary(g, r, s)) => f == g && self.same(p, r) && self.same(q, s),
            _ => false,
        }
    }

    fn same_place(&self, p: &Place, q: &Place) -> bool {
        let var = match (p.var, q.var) {
            (Var::Global(m), Var::Global(n)) => m == n,
            (Var::Local(m), Var::Local(n)) => {
                let taken = element(self.a, m);
                taken.is_some() && taken == element(self.b, n)
            }
            _ => false,
        };
        let mut indices = p.indices.iter().zip(&q.indices);
        var && p.indices.len() == q.indices.len() && indices.all(|(x, y)| self.same(x, y))
    }
}

/// The element of an input variable: its port, index, and pattern length.
fn element(action: &Action, local: LocalId) -> Option<(usize, usize, usize, bool)> {
    action.inputs.iter().find_map(|input| {
        let at = input.vars.iter().position(|&v| v == local)?;
        let stride = if input.is_list { input.vars.len() } else { 0 };
        Some((input.port, at, stride, input.is_list))
    })
}

fn known(e: &Expr) -> Option<i64> {
    match e.kind {
        ExprKind::Const(Value::Int(v)) => Some(v),
        ExprKind::Const(Value::Bool(v)) => Some(i64::from(v)),
        _ => None,
    }
}

/// Whether no number satisfies both comparisons.
fn apart((f, m): (BinOp, i64), (g, n): (BinOp, i64)) -> bool {
    let range = |op, v: i64| match op {
        BinOp::Eq => Some((v, v)),
        BinOp::Lt => Some((i64::MIN, v.saturating_sub(1))),
        BinOp::Le => Some((i64::MIN, v)),
        BinOp::Gt => Some((v.saturating_add(1), i64::MAX)),
        BinOp::Ge => Some((v, i64::MAX)),
        _ => None,
    };
    match (range(f, m), range(g, n)) {
        (Some((a, b)), Some((c, d))) => b < c || d < a,
        _ => m == n && opposite(f) == Some(g),
    }
}

fn opposite(op: BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        BinOp::Lt => BinOp::Ge,
        BinOp::Ge => BinOp::Lt,
        BinOp::Gt => BinOp::Le,
        BinOp::Le => BinOp::Gt,
        _ => return None,
    })
}
