// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops with index checks that are hoisted in front of them.
//!
//! `while i < end do l[i] := m[k]; i := i + 1; k := k + 1; end` cannot be proven to stay within its lists, since
//! `i`, `k` and `end` come from elsewhere. But when the loop begins, the number of iterations and the final value
//! of each index are known. If all accesses are within bounds, a copy of the loop without checks runs, which the C
//! compiler can vectorise. Otherwise the original loop runs, which reports the access that is out of bounds.
//!
//! If such a loop only copies, a loop of moves is emitted: rows of pictures are a few elements long, for which the
//! call of `memmove` that the C compiler would generate takes longer than the copy.

use super::expr::Code;
use super::value::lie_alike;
use crate::c_types::c_type;
use crate::ir::visit::{exprs_of, mentions};
use crate::ir::*;
use crate::ranges::{Range, dimensions, is_int};

/// The condition in C at the start of the loop, and upper bounds of locals that hold inside it.
pub struct HoistedCheck {
    pub holds: String,
    pub limits: Vec<(usize, Range)>,
    /// Equivalent code, if the loop only copies.
    pub copy: Option<Vec<String>>,
}

impl Code<'_, '_> {
    /// `None` if the loop is not of this form, or if nothing is gained.
    pub fn within(&self, condition: &Expr, body: &[Stmt]) -> Option<HoistedCheck> {
        if !self.class.checks {
            return None;
        }
        let ExprKind::Binary(BinOp::Lt, counter, end) = &condition.kind else {
            return None;
        };
        let counter = local(counter)?;
        let steps = steps(body)?;
        let step_of = |l: usize| steps.iter().find(|s| s.0 == l).map(|s| s.1);
        if step_of(counter) != Some(1) {
            return None;
        }
        // The counter itself reaches this value, too.
        let most = Range::of(&self.body.locals[counter].ty).hi;
        let end = match &end.kind {
            ExprKind::Const(Value::Int(n)) if i128::from(*n) <= most => n.to_string(),
            _ => {
                let end = local(end).filter(|l| !written(body, *l))?;
                if Range::of(&self.body.locals[end].ty).hi > most {
                    return None;
                }
                self.locals[end].name.clone()
            }
        };
        let mut limits: Vec<(usize, u32, i64)> = Vec::new();
        for (index, n) in self.indices(body) {
            // Other indices are checked as usual.
            let Some(x) = local(index) else { continue };
            let Some(step) = step_of(x) else { continue };
            match limits.iter_mut().find(|l| l.0 == x) {
                Some(limit) => limit.1 = limit.1.min(n),
                None => limits.push((x, n, step)),
            }
        }
        let known = |l: &(usize, u32, i64)| {
            (self.env.locals[l.0]).within(Range::new(0, i128::from(l.1) - 1))
        };
        limits.retain(|l| !known(l));
        let fits = |l: &(usize, u32, i64)| {
            let ty = &self.body.locals[l.0].ty;
            l.1 > 0 && Range::of(ty).contains(i128::from(l.1) - 1)
        };
        if limits.is_empty() || !limits.iter().all(fits) {
            return None;
        }
        let name = |l: usize| &self.locals[l].name;
        let copy = self.copies(body, &steps, &format!("(int64_t){end} - {}", name(counter)));
        let turns = format!("((int64_t){end} - {} - 1)", name(counter));
        let holds = limits.iter().map(|(x, n, step)| {
            let x = name(*x);
            let last = match step {
                1 => turns.clone(),
                step => format!("{turns} * {step}"),
            };
            format!("{x} >= 0 && {x} + {last} < {n}")
        });
        Some(HoistedCheck {
            holds: holds.collect::<Vec<_>>().join(" && "),
            limits: (limits.iter())
                .map(|(x, n, _)| (*x, Range::new(0, i128::from(*n) - 1)))
                .collect(),
            copy,
        })
    }

    /// A loop that copies one element per iteration from one list to another, as one block copy.
    fn copies(&self, body: &[Stmt], steps: &[(usize, i64)], turns: &str) -> Option<Vec<String>> {
        let [first, rest @ ..] = body else {
            return None;
        };
        let StmtKind::Assign(to, e) = &first.kind else {
            return None;
        };
        let ExprKind::Load(from) = &e.kind else {
            return None;
        };
        let only_steps = steps.len() == rest.len() && steps.iter().all(|s| s.1 == 1);
        // Two list arguments of one call may be the same list.
        let own = |var: VarRef| match (var, self.proc) {
            (VarRef::Local(l), Some(p)) => l >= self.class.actor.procs[p].params,
            _ => true,
        };
        let apart = to.var != from.var && own(to.var) && own(from.var);
        let alike = lie_alike(&from.ty, &to.ty);
        if !only_steps || !apart || !alike || to.ty == Type::String {
            return None;
        }
        let (to_at, from_at) = (
            self.counted_place(to, steps)?,
            self.counted_place(from, steps)?,
        );
        let (n, c) = (self.class.temporary(), c_type(&to.ty));
        let mut lines = vec![
            format!("const int64_t {n} = {turns};"),
            format!("if ({n} > 0) {{"),
            format!("levada_copy({to_at}, {from_at}, (size_t){n} * sizeof({c}));"),
        ];
        for (l, _) in steps {
            let (name, c) = (&self.locals[*l].name, c_type(&self.body.locals[*l].ty));
            lines.push(format!("{name} = ({c})({name} + {n});"));
        }
        lines.push("}".to_string());
        Some(lines)
    }

    /// The address of an element with a counter as its only index.
    fn counted_place(&self, p: &Place, steps: &[(usize, i64)]) -> Option<String> {
        let [index] = &p.indices[..] else { return None };
        let x = local(index).filter(|x| steps.iter().any(|s| s.0 == *x))?;
        if dimensions(self.var_type(p.var)).len() != 1 {
            return None;
        }
        let base = match p.var {
            VarRef::Global(g) => self.class.homes[g].text(),
            VarRef::Local(l) => self.locals[l].name.clone(),
        };
        Some(format!("{base} + {}", self.locals[x].name))
    }

    /// Every index in the body's own accesses, and the length of its dimension.
    fn indices<'b>(&self, body: &'b [Stmt]) -> Vec<(&'b Expr, u32)> {
        let mut found = Vec::new();
        let mut add = |p: &'b Place| {
            let dims = dimensions(self.var_type(p.var));
            found.extend(p.indices.iter().zip(dims));
        };
        for s in body {
            if let StmtKind::Assign(to, e) = &s.kind {
                add(to);
                // Accesses inside of an index are checked as usual.
                match &e.kind {
                    ExprKind::Load(from) => add(from),
                    ExprKind::Binary(_, a, b) => {
                        for e in [a, b] {
                            if let ExprKind::Load(from) = &e.kind {
                                add(from);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// The local integer variable, if the expression is just that. Not of 64 bits, since the sums here would wrap.
fn local(e: &Expr) -> Option<usize> {
    match &e.kind {
        ExprKind::Load(Place {
            var: VarRef::Local(l),
            indices,
            ty,
            ..
        }) if indices.is_empty() && is_int(ty) => {
            let i32s = Range::new(i128::from(i32::MIN), i128::from(i32::MAX));
            Range::of(ty).within(i32s).then_some(*l)
        }
        _ => None,
    }
}

/// The locals that each iteration changes by a constant, if the loop only assigns.
fn steps(body: &[Stmt]) -> Option<Vec<(usize, i64)>> {
    let mut steps = Vec::new();
    for s in body {
        let StmtKind::Assign(to, e) = &s.kind else {
            return None;
        };
        let mut calls = false;
        exprs_of(s, &mut |e| calls |= matches!(e.kind, ExprKind::Call(..)));
        if calls {
            return None;
        }
        if let (VarRef::Local(l), true) = (to.var, to.indices.is_empty())
            && let ExprKind::Binary(BinOp::Add, a, b) = &e.kind
            && local(a) == Some(l)
            && let ExprKind::Const(Value::Int(n @ 1..=64)) = b.kind
        {
            steps.push((l, n));
        }
    }
    // A local that is assigned again is not a counter.
    let once = |l: usize| {
        let to = |s: &&Stmt| matches!(&s.kind, StmtKind::Assign(p, _) if p.var == VarRef::Local(l));
        body.iter().filter(to).count() == 1
    };
    steps.retain(|(l, _)| once(*l));
    Some(steps)
}

fn written(body: &[Stmt], l: usize) -> bool {
    let mut found = false;
    mentions(body, &|_, _| true, &mut |v, writes| {
        found |= writes && v == VarRef::Local(l)
    });
    found
}
