// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowers lists: decides where they are stored, and generates the statements that fill them.

use super::expr::{coerce, int, load, same_storage};
use super::{Build, Lowerer};
use crate::check::effects::{self, Event};
use crate::eval::{self, Evaluator};
use crate::hir::{self, ExprKind, Var};
use crate::ir::{self, Arg, BinOp, Expr, Place, Span, Stmt, StmtKind, Type, Value, VarRef};
use crate::operators::types::held;
use crate::types::Ty;

/// A constant list up to this size is stored element by element rather than copied from a table.
const UNROLLED_ELEMENTS_MAX: usize = 4;

pub(super) fn whole(var: VarRef, ty: Type, span: Span) -> Place {
    Place {
        var,
        indices: Vec::new(),
        ty,
        span,
    }
}

pub(super) fn element(list: &Place, index: Expr) -> Place {
    let ty = match &list.ty {
        Type::List { elem, .. } => elem.as_ref().clone(),
        other => other.clone(),
    };
    let mut indices = list.indices.clone();
    indices.push(index);
    Place {
        var: list.var,
        indices,
        ty,
        span: list.span,
    }
}

pub(super) fn len(ty: &Type) -> u32 {
    match ty {
        Type::List { len, .. } => *len,
        _ => 1,
    }
}

fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    if let (ir::ExprKind::Const(Value::Int(x)), ir::ExprKind::Const(Value::Int(y))) =
        (&a.kind, &b.kind)
    {
        let value = match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            _ => x * y,
        };
        return int(value, a.span);
    }
    let neutral = i64::from(op == BinOp::Mul);
    if matches!(&b.kind, ir::ExprKind::Const(Value::Int(v)) if *v == neutral) {
        return a;
    }
    let span = a.span;
    let ty = Type::Int {
        bits: 32,
        signed: true,
    };
    Expr {
        kind: ir::ExprKind::Binary(op, Box::new(a), Box::new(b)),
        ty,
        span,
    }
}

impl<'a> Lowerer<'a> {
    /// The place of a list: its own if it is a variable, else that of a new variable, with elements of type `elem` if
    /// given.
    pub(super) fn list_place(
        &mut self,
        build: &mut Build<'a>,
        expr: &'a hir::Expr,
        elem: Option<&Ty>,
    ) -> Place {
        if let ExprKind::Load(place) = &expr.kind {
            return self.place(build, place);
        }
        let is_call = matches!(expr.kind, ExprKind::Call(..));
        let ty = match (&expr.machine, elem.filter(|_| !is_call)) {
            (Ty::List { len, elem: inner }, Some(elem)) if !inner.is_list() => {
                Ty::list(elem.clone(), *len)
            }
            (other, _) => held(other),
        };
        if let Some(value) = self.constant_list(expr) {
            let value = eval::fit(eval::convert(value, &expr.machine, &ty), &ty);
            let var = self.table("table", ty.to_ir(), value, expr.span);
            return whole(var, ty.to_ir(), expr.span);
        }
        let made = build.temporary("list", ty.to_ir(), expr.span);
        let place = whole(VarRef::Local(made), ty.to_ir(), expr.span);
        self.assign(build, place.clone(), &ty, expr, expr.span);
        place
    }

    /// The value of a list that is constant.
    fn constant_list(&self, expr: &hir::Expr) -> Option<Value> {
        match &expr.kind {
            ExprKind::Const(value) => Some(value.clone()),
            ExprKind::List { .. } | ExprKind::Binary(BinOp::Add, ..) => {
                let mut most = 0;
                effects::walk_expr(expr, &mut |event| {
                    if let Event::Read(Var::Local(id)) = event {
                        most = most.max(id + 1);
                    }
                });
                let nested = nested_locals(expr).max(most);
                let globals = &self.actor.globals;
                Evaluator::new(globals, &self.actor.procs)
                    .moderately(expr, nested)
                    .ok()
            }
            _ => None,
        }
    }

    /// `to := value`, whatever the types are.
    pub(super) fn assign(
        &mut self,
        build: &mut Build<'a>,
        to: Place,
        ty: &Ty,
        value: &'a hir::Expr,
        span: Span,
    ) {
        if !ty.is_list() {
            let value = match &value.kind {
                // The only call of the statement needs no variable of its own.
                ExprKind::Call(id, args) => self.call(build, *id, args, value.span),
                _ => self.scalar(build, value),
            };
            build.push(StmtKind::Assign(to, value), span);
            return;
        }
        if self.reads(build, value, to.var) && !matches!(value.kind, ExprKind::Load(_)) {
            // The source must not change during the copy.
            let made = build.temporary("list", held(&value.machine).to_ir(), span);
            let kept = whole(VarRef::Local(made), held(&value.machine).to_ir(), span);
            self.fill(build, kept.clone(), value);
            build.push(StmtKind::Copy { to, from: kept }, span);
            return;
        }
        self.fill(build, to, value);
    }

    /// Whether `value` might read `var`.
    fn reads(&self, build: &Build, value: &hir::Expr, var: VarRef) -> bool {
        if matches!(value.kind, ExprKind::Const(_)) {
            return false;
        }
        let mut found = false;
        let global = |id: &hir::GlobalId| self.global_ids.get(id).map(|&at| VarRef::Global(at));
        effects::walk_expr(value, &mut |event| match event {
            Event::Read(Var::Local(id)) => found |= build.places.get(&id) == Some(&var),
            Event::Read(Var::Global(id)) => found |= global(&id) == Some(var),
            Event::Call(id, _) => {
                found |= self.effects[id].reads_state && matches!(var, VarRef::Global(_));
            }
            _ => {}
        });
        found
    }

    /// Fills a list that `value` does not read.
    fn fill(&mut self, build: &mut Build<'a>, to: Place, value: &'a hir::Expr) {
        let span = value.span;
        match &value.kind {
            ExprKind::Load(from) => {
                let from = self.place(build, from);
                build.push(StmtKind::Copy { to, from }, span);
            }
            ExprKind::Const(Value::List(items)) if items.len() > UNROLLED_ELEMENTS_MAX => {
                let var = self.table(
                    "table",
                    held(&value.machine).to_ir(),
                    Value::List(items.clone()),
                    span,
                );
                build.push(
                    StmtKind::Copy {
                        to,
                        from: whole(var, held(&value.machine).to_ir(), span),
                    },
                    span,
                );
            }
            ExprKind::Const(constant) => fill_constant(build, to, constant, &value.machine, span),
            ExprKind::List { items, generators } => {
                let long = value
                    .ty
                    .scalars()
                    .is_some_and(|n| n > UNROLLED_ELEMENTS_MAX as u64);
                if long && let Some(constant) = self.constant_list(value) {
                    let ty = held(&value.machine).to_ir();
                    let var = self.table("table", ty.clone(), constant, span);
                    build.push(
                        StmtKind::Copy {
                            to,
                            from: whole(var, ty, span),
                        },
                        span,
                    );
                    return;
                }
                self.generate(build, &to, items, generators, int(0, span), span);
            }
            ExprKind::If { arms, otherwise } => self.fill_choice(build, to, arms, otherwise, span),
            ExprKind::Call(id, args) => self.fill_call(build, to, *id, args, span),
            ExprKind::Binary(BinOp::Add, a, b) => {
                if let Some(constant) = self.constant_list(value) {
                    let ty = value.machine.to_ir();
                    let var = self.table("table", ty.clone(), constant, span);
                    let from = whole(var, ty, span);
                    build.push(StmtKind::Copy { to, from }, span);
                    return;
                }
                self.fill(build, to.clone(), a);
                self.fill_behind(build, &to, len(&a.machine.to_ir()), b);
            }
            _ => {}
        }
    }

    /// The loops of the generators, outermost first, then the elements; `at` is the number of preceding iterations.
    fn generate(
        &mut self,
        build: &mut Build<'a>,
        to: &Place,
        items: &'a [hir::Expr],
        generators: &'a [hir::Generator],
        at: Expr,
        span: Span,
    ) {
        let Some((first, rest)) = generators.split_first() else {
            let start = binary(BinOp::Mul, at, int(items.len() as i64, span));
            for (i, item) in items.iter().enumerate() {
                let place = element(to, binary(BinOp::Add, start.clone(), int(i as i64, span)));
                if item.ty.is_list() {
                    self.fill(build, place, item);
                } else {
                    let value = self.scalar(build, item);
                    build.push(StmtKind::Assign(place, value), item.span);
                }
            }
            return;
        };
        let VarRef::Local(var) = build.local(first.var) else {
            return;
        };
        let counter = load(whole(
            VarRef::Local(var),
            build.locals[var].ty.clone(),
            span,
        ));
        let step = binary(BinOp::Sub, counter, int(first.from, span));
        let count = int(first.to - first.from + 1, span);
        let at = match &at.kind {
            ir::ExprKind::Const(Value::Int(0)) => step,
            _ => binary(BinOp::Add, binary(BinOp::Mul, at, count), step),
        };
        let ((), body) = self.aside(build, |me, build| {
            me.generate(build, to, items, rest, at, span)
        });
        let bound = |value: i64| {
            let ty = if i32::try_from(value).is_ok() { 32 } else { 64 };
            Expr {
                ty: Type::Int {
                    bits: ty,
                    signed: true,
                },
                ..int(value, span)
            }
        };
        let kind = StmtKind::For {
            var,
            from: bound(first.from),
            to: bound(first.to),
            body,
        };
        build.push(kind, span);
    }

    /// Stores the list `value` after the first `before` elements of `to`.
    fn fill_behind(
        &mut self,
        build: &mut Build<'a>,
        to: &Place,
        before: u32,
        value: &'a hir::Expr,
    ) {
        let span = value.span;
        let from = self.list_place(build, value, None);
        let ty = Type::Int {
            bits: 32,
            signed: true,
        };
        let var = build.temporary("i", ty.clone(), span);
        let counter = load(whole(VarRef::Local(var), ty, span));
        let behind = binary(BinOp::Add, counter.clone(), int(i64::from(before), span));
        let (to, from) = (element(to, behind), element(&from, counter));
        let kind = match &from.ty {
            Type::List { .. } => StmtKind::Copy { to, from },
            _ => StmtKind::Assign(to, load(from)),
        };
        let last = int(i64::from(len(&value.machine.to_ir())) - 1, span);
        let body = vec![Stmt { kind, span }];
        let from = int(0, span);
        build.push(
            StmtKind::For {
                var,
                from,
                to: last,
                body,
            },
            span,
        );
    }

    fn fill_choice(
        &mut self,
        build: &mut Build<'a>,
        to: Place,
        arms: &'a [(hir::Expr, hir::Expr)],
        otherwise: &'a hir::Expr,
        span: Span,
    ) {
        let Some(((cond, value), rest)) = arms.split_first() else {
            self.fill(build, to, otherwise);
            return;
        };
        let cond = self.scalar(build, cond);
        let ((), on_true) = self.aside(build, |me, build| me.fill(build, to.clone(), value));
        let ((), on_false) = self.aside(build, |me, build| {
            me.fill_choice(build, to, rest, otherwise, span)
        });
        build.push(StmtKind::If(cond, on_true, on_false), span);
    }

    fn fill_call(
        &mut self,
        build: &mut Build<'a>,
        to: Place,
        id: hir::ProcId,
        args: &'a [hir::Expr],
        span: Span,
    ) {
        let ty = self.actor.procs[id]
            .result
            .as_ref()
            .map_or(Type::Bool, Ty::to_ir);
        let (mut args, _) = self.args(build, id, args);
        let proc = self.proc_ids[&id];
        if same_storage(&to.ty, &ty) {
            args.push(Arg::List(to));
            build.push(StmtKind::Call(proc, args), span);
            return;
        }
        let made = build.temporary("list", ty.clone(), span);
        let from = whole(VarRef::Local(made), ty, span);
        args.push(Arg::List(from.clone()));
        build.push(StmtKind::Call(proc, args), span);
        build.push(StmtKind::Copy { to, from }, span);
    }

    /// The arguments of a call, and the code after it: lists that were passed as copies are copied back if the callee
    /// changes them.
    pub(super) fn args(
        &mut self,
        build: &mut Build<'a>,
        id: hir::ProcId,
        args: &'a [hir::Expr],
    ) -> (Vec<Arg>, Vec<Stmt>) {
        let proc = &self.actor.procs[id];
        let mut out = Vec::with_capacity(args.len());
        let mut after = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let wanted = proc.locals[i].ty.to_ir();
            if !arg.ty.is_list() {
                let value = self.scalar(build, arg);
                out.push(Arg::Value(coerce(value, &wanted)));
                continue;
            }
            let elem = proc.locals[i].ty.innermost().clone();
            let place = self.list_place(build, arg, Some(&elem));
            // A native gets a pointer to the list, and does not know its length.
            let as_it_is = proc.native && same_storage(innermost(&place.ty), innermost(&wanted));
            if as_it_is || same_storage(&place.ty, &wanted) {
                out.push(Arg::List(place));
                continue;
            }
            let made = build.temporary("argument", wanted.clone(), arg.span);
            let copy = whole(VarRef::Local(made), wanted, arg.span);
            build.push(
                StmtKind::Copy {
                    to: copy.clone(),
                    from: place.clone(),
                },
                arg.span,
            );
            out.push(Arg::List(copy.clone()));
            if self.effects[id].writes[i] && matches!(arg.kind, ExprKind::Load(_)) {
                let ((), stmts) =
                    self.aside(build, |_, build| copy_first(build, &place, &copy, arg.span));
                after.extend(stmts);
            }
        }
        (out, after)
    }
}

/// Copies element by element, as many as `to` has; `from` may have more.
fn copy_first(build: &mut Build, to: &Place, from: &Place, span: Span) {
    if !matches!(to.ty, Type::List { .. }) {
        build.push(StmtKind::Assign(to.clone(), load(from.clone())), span);
        return;
    }
    if len(&to.ty) == len(&from.ty) && !matches!(element(to, int(0, span)).ty, Type::List { .. }) {
        build.push(
            StmtKind::Copy {
                to: to.clone(),
                from: from.clone(),
            },
            span,
        );
        return;
    }
    for_each_index(build, len(&to.ty), span, |build, counter| {
        let (to, from) = (element(to, counter.clone()), element(from, counter));
        copy_first(build, &to, &from, span);
    });
}

/// A loop from 0 to `count` - 1 with the statements that `body` makes.
pub(super) fn for_each_index<'a>(
    build: &mut Build<'a>,
    count: u32,
    span: Span,
    body: impl FnOnce(&mut Build<'a>, Expr),
) {
    let ty = Type::Int {
        bits: 32,
        signed: true,
    };
    let var = build.temporary("i", ty.clone(), span);
    let counter = load(whole(VarRef::Local(var), ty, span));
    let outer = std::mem::take(&mut build.out);
    body(build, counter);
    let body = std::mem::replace(&mut build.out, outer);
    let (from, to) = (int(0, span), int(i64::from(count) - 1, span));
    let kind = StmtKind::For {
        var,
        from,
        to,
        body,
    };
    build.push(kind, span);
}

/// The type of the innermost elements.
fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::List { elem, .. } => innermost(elem),
        other => other,
    }
}

fn fill_constant(build: &mut Build, to: Place, value: &Value, ty: &Ty, span: Span) {
    match (value, ty) {
        (Value::List(items), Ty::List { elem, .. }) => {
            for (i, item) in items.iter().enumerate() {
                fill_constant(build, element(&to, int(i as i64, span)), item, elem, span);
            }
        }
        (scalar, ty) => {
            let kind = ir::ExprKind::Const(scalar.clone());
            let ty = ty.to_ir();
            let value = coerce(Expr { kind, ty, span }, &to.ty);
            build.push(StmtKind::Assign(to, value), span);
        }
    }
}

/// The number of variables up to those of the generators within `expr`.
fn nested_locals(expr: &hir::Expr) -> usize {
    match &expr.kind {
        ExprKind::List { items, generators } => {
            let own = generators.iter().map(|g| g.var + 1).max().unwrap_or(0);
            items.iter().map(nested_locals).max().unwrap_or(0).max(own)
        }
        ExprKind::Unary(_, a) => nested_locals(a),
        ExprKind::Binary(_, a, b) => nested_locals(a).max(nested_locals(b)),
        ExprKind::If { arms, otherwise } => {
            let arms = arms
                .iter()
                .map(|(c, v)| nested_locals(c).max(nested_locals(v)));
            arms.max().unwrap_or(0).max(nested_locals(otherwise))
        }
        ExprKind::Call(_, args) => args.iter().map(nested_locals).max().unwrap_or(0),
        ExprKind::Load(place) => place.indices.iter().map(nested_locals).max().unwrap_or(0),
        _ => 0,
    }
}
