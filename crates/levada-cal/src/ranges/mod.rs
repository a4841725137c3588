// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Range analysis: which integers each variable and expression of an actor can hold.
//!
//! The emitter uses it to omit checks that cannot fail and to compute in fewer bits. The analysis has two levels:
//! * [`Facts`] hold at any time: the ranges of state variables, of parameters, of elements stored through a list
//!   parameter, and of function results, for any order of firings. They are a fixed point over all actions and
//!   procedures (with widening to terminate, then two narrowing steps).
//! * An [`Env`] holds at one point of one body: assignments replace ranges, branches join, conditions and checked
//!   indices narrow. Loops compute their own fixed point.
//!
//! A list has one range for all its elements. Floats and strings have none.

mod known;
mod slots;

pub use crate::operators::range::{
    I32, I64, Range, U32, U64, constant, exact, exact_unary, is_int,
};
pub use known::{Globals, ways};

use crate::ir::visit::walk;
use crate::ir::*;
use crate::operators::range::widen_untyped;
use crate::operators::types::compared_in;
use slots::Slots;
use std::cell::RefCell;
use std::rc::Rc;

/// The ranges of the variables at one point of a body.
#[derive(Clone, Debug)]
pub struct Env {
    pub locals: Slots,
    pub globals: Slots,
    /// The point is not reachable.
    pub dead: bool,
    /// The lengths of the local lists.
    dims: Rc<[Vec<u32>]>,
}

/// Compares environments at two points of one body.
impl PartialEq for Env {
    fn eq(&self, o: &Env) -> bool {
        self.dead == o.dead && self.locals == o.locals && self.globals == o.globals
    }
}

impl Env {
    pub fn get(&self, v: VarRef) -> Range {
        match v {
            VarRef::Global(i) => self.globals[i],
            VarRef::Local(i) => self.locals[i],
        }
    }

    fn slot(&mut self, v: VarRef) -> &mut Range {
        match v {
            VarRef::Global(i) => &mut self.globals[i],
            VarRef::Local(i) => &mut self.locals[i],
        }
    }

    fn join(&mut self, o: &Env) {
        if o.dead {
            return;
        }
        if self.dead {
            *self = o.clone();
            return;
        }
        self.locals.merge(&o.locals, &Range::join);
        self.globals.merge(&o.globals, &Range::join);
    }
}

/// What holds at any time. `None`: no value was found (yet).
#[derive(Clone, Debug, PartialEq)]
struct Facts {
    globals: Slots,
    params: Vec<Vec<Option<Range>>>,
    /// What procedures store into the lists they are given.
    stores: Vec<Vec<Option<Range>>>,
    results: Vec<Option<Range>>,
}

fn add(slot: &mut Option<Range>, r: Range) {
    *slot = Some(slot.map_or(r, |s| s.join(r)));
}

pub struct Ranges<'a> {
    actor: &'a Actor,
    facts: Facts,
    /// During the fixed-point iteration: the facts of the current round.
    seen: RefCell<Option<Facts>>,
    /// Whether indices are checked, so that they are in range after an access.
    checks: bool,
    /// Whether reads out of bounds are permitted, so that only writes imply ranges.
    lenient: bool,
}

/// Rounds with plain joins before widening, and the maximum number of rounds.
const JOINS_BEFORE_WIDENING: usize = 3;
const ROUNDS_MAX: usize = 24;

impl<'a> Ranges<'a> {
    pub fn new(actor: &'a Actor, checks: bool, lenient: bool) -> Ranges<'a> {
        let mut this = Ranges {
            actor,
            facts: start(actor),
            seen: RefCell::new(None),
            checks,
            lenient,
        };
        let mut stable = false;
        for round in 0..ROUNDS_MAX {
            let seen = this.round();
            let next = this.grow(&seen, round >= JOINS_BEFORE_WIDENING);
            if next == this.facts {
                stable = true;
                break;
            }
            this.facts = next;
        }
        if !stable {
            this.facts = this.anything();
        }
        // Narrowing: another iteration from the start may give a tighter fixed point that still holds.
        for _ in 0..2 {
            this.facts = this.round();
        }
        this
    }

    /// The facts that follow from the types only.
    fn anything(&self) -> Facts {
        let a = self.actor;
        let of_params = |p: &Proc| -> Vec<_> {
            p.body
                .locals
                .iter()
                .map(|l| Some(Range::of(&l.ty)))
                .collect()
        };
        Facts {
            globals: a.globals.iter().map(|g| Range::of(&g.ty)).collect(),
            params: a.procs.iter().map(of_params).collect(),
            stores: a.procs.iter().map(of_params).collect(),
            results: a
                .procs
                .iter()
                .map(|p| p.result.as_ref().map(Range::of))
                .collect(),
        }
    }

    fn grow(&self, seen: &Facts, widen: bool) -> Facts {
        let a = self.actor;
        let mut next = self.facts.clone();
        for (i, g) in a.globals.iter().enumerate() {
            let (old, new) = (self.facts.globals[i], seen.globals[i]);
            next.globals[i] = if widen {
                old.widen(new, &g.ty)
            } else {
                old.join(new)
            };
        }
        let one = |old: Option<Range>, new: Option<Range>, ty: &Type| match (old, new) {
            (Some(o), Some(n)) if widen => Some(o.widen(n, ty)),
            (Some(o), Some(n)) => Some(o.join(n)),
            (o, n) => o.or(n),
        };
        for (p, proc) in a.procs.iter().enumerate() {
            for (i, local) in proc.body.locals.iter().enumerate() {
                next.params[p][i] = one(self.facts.params[p][i], seen.params[p][i], &local.ty);
                next.stores[p][i] = one(self.facts.stores[p][i], seen.stores[p][i], &local.ty);
            }
            if let Some(ty) = &proc.result {
                next.results[p] = one(self.facts.results[p], seen.results[p], ty);
            }
        }
        next
    }

    /// Analyses everything once with the present facts; returns the new facts, joined with the start.
    fn round(&self) -> Facts {
        *self.seen.borrow_mut() = Some(start(self.actor));
        for g in &self.actor.globals {
            if let Init::Code(body) = &g.init {
                let mut env = self.enter(body);
                self.exec(&mut env, &body.stmts, None);
            }
        }
        for (p, proc) in self.actor.procs.iter().enumerate() {
            if let (false, Some(mut env)) = (proc.native, self.enter_proc(p)) {
                self.exec(&mut env, &proc.body.stmts, Some(p));
            }
        }
        let a = self.actor;
        for action in a.initializers.iter().chain(&a.actions) {
            let mut env = self.enter_guard(action);
            self.exec(&mut env, &action.guard.body.stmts, None);
            for c in &action.guard.conditions {
                self.note(&env, c);
            }
            let mut env = self.enter_body(action);
            self.exec(&mut env, &action.body.stmts, None);
            for v in action.outputs.iter().flat_map(|o| &o.values) {
                if let OutputValue::Scalar(e) = v {
                    self.note(&env, e);
                }
            }
        }
        self.seen.borrow_mut().take().expect("this round's")
    }

    /// The environment at the start of a body, with all locals zero.
    pub fn enter(&self, body: &Body) -> Env {
        Env {
            locals: Slots::filled(Range::exactly(0), body.locals.len()),
            globals: self.facts.globals.clone(),
            dead: false,
            dims: body.locals.iter().map(|l| dimensions(&l.ty)).collect(),
        }
    }

    /// `None` if it is never called.
    pub fn enter_proc(&self, p: usize) -> Option<Env> {
        let proc = &self.actor.procs[p];
        let mut env = self.enter(&proc.body);
        let hidden = hidden_param(proc);
        let given = proc.params + usize::from(hidden);
        // Lists passed to one call may be the same list: stored values may appear in any of them.
        let stored = (0..given)
            .filter_map(|i| self.facts.stores[p][i])
            .reduce(Range::join);
        for i in 0..given {
            let ty = &proc.body.locals[i].ty;
            let mut r = self.facts.params[p][i]?;
            if let (Type::List { .. }, Some(s)) = (ty, stored) {
                r = r.join(s);
            }
            env.locals[i] = r.convert(ty);
        }
        Some(env)
    }

    pub fn enter_guard(&self, action: &Action) -> Env {
        let mut env = self.enter(&action.guard.body);
        self.open_inputs(action, &mut env, &action.guard.body);
        env
    }

    /// The start of an action's body: its guard holds.
    pub fn enter_body(&self, action: &Action) -> Env {
        let mut guard = self.enter_guard(action);
        let quiet = self.seen.borrow_mut().take();
        self.exec(&mut guard, &action.guard.body.stmts, None);
        *self.seen.borrow_mut() = quiet;
        for c in &action.guard.conditions {
            self.assume(&mut guard, c, true);
        }
        let mut env = self.enter(&action.body);
        env.globals = guard.globals.clone();
        self.open_inputs(action, &mut env, &action.body);
        for i in action.inputs.iter().flat_map(|i| &i.vars) {
            if let Some(r) = guard.locals.get(*i) {
                env.locals[*i] = *r;
            }
        }
        env
    }

    fn open_inputs(&self, action: &Action, env: &mut Env, body: &Body) {
        for i in action.inputs.iter().flat_map(|i| &i.vars) {
            if let Some(slot) = env.locals.get_mut(*i) {
                *slot = Range::of(&body.locals[*i].ty);
            }
        }
    }

    pub fn eval(&self, env: &Env, e: &Expr) -> Range {
        if !is_int(&e.ty) {
            return Range::exactly(0);
        }
        match &e.kind {
            ExprKind::Const(Value::Int(v)) => constant(*v, &e.ty),
            ExprKind::Const(Value::Bool(v)) => Range::exactly(i128::from(*v)),
            ExprKind::Const(_) => Range::of(&e.ty),
            ExprKind::Load(p) => env.get(p.var).convert(&e.ty),
            ExprKind::Unary(op, x) => exact_unary(*op, self.eval_as(env, x, &e.ty)).convert(&e.ty),
            ExprKind::Binary(op, a, b) => match op {
                BinOp::Eq
                | BinOp::Ne
                | BinOp::Lt
                | BinOp::Le
                | BinOp::Gt
                | BinOp::Ge
                | BinOp::And
                | BinOp::Or => Range::new(0, 1),
                BinOp::Shl | BinOp::Shr => {
                    let (a, b) = (self.eval_as(env, a, &e.ty), self.eval(env, b));
                    exact(*op, a, b, e.ty.container()).convert(&e.ty)
                }
                _ => {
                    let (a, b) = (self.eval_as(env, a, &e.ty), self.eval_as(env, b, &e.ty));
                    exact(*op, a, b, e.ty.container()).convert(&e.ty)
                }
            },
            ExprKind::If(c, a, b) => {
                let mut yes = env.clone();
                self.assume(&mut yes, c, true);
                let mut no = env.clone();
                self.assume(&mut no, c, false);
                match (yes.dead, no.dead) {
                    (true, false) => self.eval_as(&no, b, &e.ty),
                    (false, true) => self.eval_as(&yes, a, &e.ty),
                    _ => self
                        .eval_as(&yes, a, &e.ty)
                        .join(self.eval_as(&no, b, &e.ty)),
                }
            }
            ExprKind::Call(p, _) if self.actor.procs[*p].native => Range::of(&e.ty),
            ExprKind::Call(p, _) => self.facts.results[*p]
                .unwrap_or(Range::exactly(0))
                .convert(&e.ty),
            ExprKind::Cast(x) => self.eval_as(env, x, &e.ty),
        }
    }

    /// The range of `e` converted to `ty`.
    pub fn eval_as(&self, env: &Env, e: &Expr, ty: &Type) -> Range {
        if !is_int(&e.ty) {
            return Range::of(ty);
        }
        self.eval(env, e).convert(ty)
    }

    /// Narrows `env` to where `cond` is `truth`.
    pub fn assume(&self, env: &mut Env, cond: &Expr, truth: bool) {
        match &cond.kind {
            ExprKind::Const(Value::Bool(b)) => env.dead |= *b != truth,
            ExprKind::Unary(UnOp::Not, x) => self.assume(env, x, !truth),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                if (*op == BinOp::And) == truth {
                    self.assume(env, a, truth);
                    self.assume(env, b, truth);
                } else {
                    let mut second = env.clone();
                    self.assume(env, a, truth);
                    self.assume(&mut second, a, !truth);
                    self.assume(&mut second, b, truth);
                    env.join(&second);
                }
            }
            ExprKind::Binary(op, a, b) if is_int(&a.ty) && is_int(&b.ty) => {
                let join = compared_in(&a.ty, &b.ty);
                let (ra, rb) = (self.eval(env, a), self.eval(env, b));
                // A comparison of wrapped values gives no information.
                if !ra.within(Range::of(&join)) || !rb.within(Range::of(&join)) {
                    return;
                }
                let op = match (op, truth) {
                    (op, true) => *op,
                    (BinOp::Eq, _) => BinOp::Ne,
                    (BinOp::Ne, _) => BinOp::Eq,
                    (BinOp::Lt, _) => BinOp::Ge,
                    (BinOp::Le, _) => BinOp::Gt,
                    (BinOp::Gt, _) => BinOp::Le,
                    (BinOp::Ge, _) => BinOp::Lt,
                    _ => return,
                };
                let (min, max) = (i128::MIN / 4, i128::MAX / 4);
                let (fa, fb) = match op {
                    BinOp::Eq => (rb, ra),
                    BinOp::Lt => (Range::new(min, rb.hi - 1), Range::new(ra.lo + 1, max)),
                    BinOp::Le => (Range::new(min, rb.hi), Range::new(ra.lo, max)),
                    BinOp::Gt => (Range::new(rb.lo + 1, max), Range::new(min, ra.hi - 1)),
                    BinOp::Ge => (Range::new(rb.lo, max), Range::new(min, ra.hi)),
                    BinOp::Ne => {
                        let cut = |r: Range, v: Range| {
                            if v.lo != v.hi {
                                Range::new(min, max)
                            } else if r.lo == v.lo {
                                Range::new(r.lo + 1, max)
                            } else if r.hi == v.lo {
                                Range::new(min, r.hi - 1)
                            } else {
                                Range::new(min, max)
                            }
                        };
                        (cut(ra, rb), cut(rb, ra))
                    }
                    _ => return,
                };
                self.refine(env, a, fa);
                self.refine(env, b, fb);
            }
            ExprKind::Load(p) if p.indices.is_empty() => {
                self.refine(env, cond, Range::exactly(i128::from(truth)));
            }
            _ => {}
        }
    }

    /// `e` is known to lie in `r`: so does the variable in it.
    fn refine(&self, env: &mut Env, e: &Expr, r: Range) {
        match &e.kind {
            ExprKind::Load(p) if p.indices.is_empty() && is_int(&e.ty) => {
                let now = env.get(p.var);
                if !now.within(Range::of(&e.ty)) {
                    return;
                }
                match now.meet(r) {
                    Some(m) => *env.slot(p.var) = m,
                    None => env.dead = true,
                }
            }
            ExprKind::Cast(x) if is_int(&x.ty) && self.eval(env, x).within(Range::of(&e.ty)) => {
                self.refine(env, x, r);
            }
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) if is_int(&e.ty) => {
                let (ra, rb) = (self.eval(env, a), self.eval(env, b));
                let all = Range::of(&e.ty);
                let whole = exact(*op, ra, rb, e.ty.container());
                if !(ra.within(all) && rb.within(all) && whole.within(all)) {
                    return;
                }
                if *op == BinOp::Add {
                    self.refine(env, a, Range::new(r.lo - rb.hi, r.hi - rb.lo));
                    self.refine(env, b, Range::new(r.lo - ra.hi, r.hi - ra.lo));
                } else {
                    self.refine(env, a, Range::new(r.lo + rb.lo, r.hi + rb.hi));
                    self.refine(env, b, Range::new(ra.lo - r.hi, ra.hi - r.lo));
                }
            }
            _ => {}
        }
    }

    /// Propagates `env` through the statements. `proc`: the procedure, if they are a procedure's body.
    pub fn exec(&self, env: &mut Env, stmts: &[Stmt], proc: Option<usize>) {
        for s in stmts {
            self.exec_one(env, s, proc);
        }
    }

    pub fn exec_one(&self, env: &mut Env, s: &Stmt, proc: Option<usize>) {
        match &s.kind {
            StmtKind::Assign(place, e) => {
                self.note(env, e);
                self.note_place(env, place);
                let r = self.eval_as(env, e, &place.ty);
                self.trust(env, e);
                if !self.lenient {
                    self.trust_place(env, place);
                }
                self.store(env, place, r, proc);
            }
            StmtKind::Copy { to, from } => {
                self.note_place(env, to);
                self.note_place(env, from);
                let source = env.get(from.var);
                let r = if is_int(innermost(&from.ty)) {
                    source.convert(innermost(&to.ty))
                } else {
                    Range::of(&to.ty)
                };
                self.trust_place(env, to);
                self.trust_place(env, from);
                self.store(env, to, r, proc);
            }
            StmtKind::Call(p, args) => {
                self.call(env, *p, args);
                self.after_call(env, *p, args, proc);
            }
            StmtKind::If(c, yes, no) => {
                self.note(env, c);
                self.trust(env, c);
                let mut other = env.clone();
                self.assume(env, c, true);
                self.exec(env, yes, proc);
                self.assume(&mut other, c, false);
                self.exec(&mut other, no, proc);
                env.join(&other);
            }
            StmtKind::While(c, body) => {
                let head = self.loop_head(env, s, proc);
                let mut inside = head.clone();
                self.note(&inside, c);
                self.assume(&mut inside, c, true);
                self.exec(&mut inside, body, proc);
                *env = head;
                self.assume(env, c, false);
            }
            StmtKind::For { from, to, body, .. } => {
                self.note(env, from);
                self.note(env, to);
                let head = self.loop_head(env, s, proc);
                let mut inside = self.inside(&head, s);
                self.exec(&mut inside, body, proc);
                *env = head;
            }
            StmtKind::Return(e) => {
                self.note(env, e);
                if let (Some(p), Some(seen)) = (proc, self.seen.borrow_mut().as_mut())
                    && !env.dead
                {
                    let ty = self.actor.procs[p].result.as_ref().unwrap_or(&e.ty);
                    add(&mut seen.results[p], self.eval_as(env, e, ty));
                }
            }
            StmtKind::Print { parts, .. } => {
                for e in parts {
                    self.note(env, e);
                }
            }
        }
    }

    /// What holds whenever a loop's condition is evaluated (`For`: before and after each iteration).
    pub fn loop_head(&self, entry: &Env, s: &Stmt, proc: Option<usize>) -> Env {
        let quiet = self.seen.borrow_mut().take();
        let mut head = entry.clone();
        let body = match &s.kind {
            StmtKind::While(_, body) | StmtKind::For { body, .. } => body,
            _ => unreachable!("a loop"),
        };
        let step = |head: &Env| {
            let mut inside = self.inside(head, s);
            self.exec(&mut inside, body, proc);
            let mut next = entry.clone();
            next.join(&inside);
            next
        };
        for round in 0.. {
            let mut next = step(&head);
            if round >= 2 {
                let widen = |new, old| widen_untyped(old, new);
                next.locals.merge(&head.locals, &widen);
                next.globals.merge(&head.globals, &widen);
            } else {
                next.join(&head);
            }
            if next == head {
                break;
            }
            head = next;
        }
        // Another iteration from the entry may be tighter and still holds.
        let tight = step(&head);
        *self.seen.borrow_mut() = quiet;
        tight
    }

    /// The environment at the start of a loop's body, from that at its head.
    pub fn inside(&self, head: &Env, s: &Stmt) -> Env {
        let mut env = head.clone();
        match &s.kind {
            StmtKind::While(c, _) => self.assume(&mut env, c, true),
            StmtKind::For { var, from, to, .. } => {
                let (f, t) = (self.eval(head, from), self.eval(head, to));
                match Range::new(f.lo, i128::MAX).meet(Range::new(i128::MIN, t.hi)) {
                    Some(r) => env.locals[*var] = r,
                    None => env.dead = true,
                }
            }
            _ => unreachable!("a loop"),
        }
        env
    }

    fn store(&self, env: &mut Env, place: &Place, r: Range, proc: Option<usize>) {
        if let (VarRef::Global(g), Some(seen)) = (place.var, self.seen.borrow_mut().as_mut())
            && !env.dead
        {
            seen.globals[g] = seen.globals[g].join(r);
        }
        if let (VarRef::Local(l), Some(p)) = (place.var, proc)
            && let Some(seen) = self.seen.borrow_mut().as_mut()
            && !env.dead
        {
            add(&mut seen.stores[p][l], r);
        }
        let whole = place.indices.is_empty() && !matches!(place.ty, Type::List { .. });
        let slot = env.slot(place.var);
        *slot = if whole { r } else { slot.join(r) };
        // A list passed by reference may be a state variable, which has then changed.
        if let VarRef::Global(g) = place.var
            && !whole
        {
            env.globals[g] = env.globals[g].join(self.facts.globals[g]);
        }
        if let (VarRef::Local(_), Some(p)) = (place.var, proc)
            && !whole
        {
            let proc = &self.actor.procs[p];
            for i in 0..proc.params + usize::from(hidden_param(proc)) {
                if matches!(proc.body.locals[i].ty, Type::List { .. }) {
                    env.locals[i] = env.locals[i].join(r.convert(&proc.body.locals[i].ty));
                }
            }
        }
    }

    /// Records the arguments of a call.
    fn call(&self, env: &Env, p: usize, args: &[Arg]) {
        for a in args {
            match a {
                Arg::Value(e) => self.note(env, e),
                Arg::List(place) => self.note_place(env, place),
            }
        }
        if env.dead {
            return;
        }
        let proc = &self.actor.procs[p];
        let given: Vec<Range> = args
            .iter()
            .zip(&proc.body.locals)
            .map(|(a, l)| match a {
                Arg::Value(e) => self.eval_as(env, e, &l.ty),
                Arg::List(place) => env.get(place.var),
            })
            .collect();
        if let Some(seen) = self.seen.borrow_mut().as_mut() {
            for (i, r) in given.into_iter().enumerate() {
                add(&mut seen.params[p][i], r);
            }
        }
    }

    /// The effects of a call: stores into lists and state variables.
    fn after_call(&self, env: &mut Env, p: usize, args: &[Arg], within: Option<usize>) {
        let proc = &self.actor.procs[p];
        for (i, a) in args.iter().enumerate() {
            let Arg::List(place) = a else { continue };
            let stored = if proc.native {
                Some(Range::of(&place.ty))
            } else {
                self.facts.stores[p].get(i).copied().flatten()
            };
            if let Some(r) = stored {
                self.store(env, place, r, within);
            }
        }
        if proc.effects {
            for (g, fact) in self.facts.globals.iter().enumerate() {
                if !self.actor.globals[g].constant {
                    env.globals[g] = *fact;
                }
            }
        }
    }

    /// Records the calls in an expression.
    fn note(&self, env: &Env, e: &Expr) {
        if self.seen.borrow().is_none() {
            return;
        }
        walk(e, &mut |e| {
            if let ExprKind::Call(p, args) = &e.kind {
                self.call(env, *p, args);
            }
        });
    }

    fn note_place(&self, env: &Env, p: &Place) {
        for i in &p.indices {
            self.note(env, i);
        }
    }

    /// Every index that was certainly evaluated was in range.
    fn trust(&self, env: &mut Env, e: &Expr) {
        if !self.checks || self.lenient {
            return;
        }
        match &e.kind {
            ExprKind::Load(p) => self.trust_place(env, p),
            ExprKind::Unary(_, x) | ExprKind::Cast(x) => self.trust(env, x),
            ExprKind::Binary(BinOp::And | BinOp::Or, a, _) => self.trust(env, a),
            ExprKind::Binary(_, a, b) => {
                self.trust(env, a);
                self.trust(env, b);
            }
            ExprKind::If(c, _, _) => self.trust(env, c),
            _ => {}
        }
    }

    fn trust_place(&self, env: &mut Env, p: &Place) {
        if !self.checks {
            return;
        }
        let dims = match p.var {
            VarRef::Global(g) => dimensions(&self.actor.globals[g].ty),
            VarRef::Local(l) => env.dims[l].clone(),
        };
        for (i, n) in p.indices.iter().zip(dims) {
            self.refine(env, i, Range::new(0, i128::from(n) - 1));
        }
    }
}

/// The initial values of variables.
fn start(a: &Actor) -> Facts {
    let nothing = |p: &Proc| vec![None; p.body.locals.len()];
    Facts {
        globals: a
            .globals
            .iter()
            .map(|g| match &g.init {
                Init::Value(v) => value_range(v, innermost(&g.ty)),
                Init::Zero | Init::Code(_) => Range::exactly(0),
            })
            .collect(),
        params: a.procs.iter().map(nothing).collect(),
        stores: a.procs.iter().map(nothing).collect(),
        results: vec![None; a.procs.len()],
    }
}

fn value_range(v: &Value, ty: &Type) -> Range {
    match v {
        Value::Int(i) => constant(*i, ty),
        Value::Bool(b) => Range::exactly(i128::from(*b)),
        Value::List(vs) => vs
            .iter()
            .map(|v| value_range(v, ty))
            // Missing elements are zero.
            .fold(Range::exactly(0), Range::join),
        Value::Float(_) | Value::String(_) => Range::exactly(0),
    }
}

/// Whether `body.locals[params]` is the list that the function returns, which the caller passes as a hidden parameter.
pub fn hidden_param(p: &Proc) -> bool {
    matches!(p.result, Some(Type::List { .. }))
}

pub fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::List { elem, .. } => innermost(elem),
        t => t,
    }
}

/// The lengths of a list type, outermost first.
pub fn dimensions(ty: &Type) -> Vec<u32> {
    let mut dims = Vec::new();
    let mut t = ty;
    while let Type::List { elem, len } = t {
        dims.push(*len);
        t = elem;
    }
    dims
}
