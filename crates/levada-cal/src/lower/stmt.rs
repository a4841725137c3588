// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowers statements.

use super::expr::{coerce, int, load};
use super::{Build, Lowerer};
use crate::check::effects;
use crate::hir::{self, Var};
use crate::ir::{self, BinOp, Expr, Place, Span, StmtKind, Type, VarRef};

impl<'a> Lowerer<'a> {
    pub(super) fn stmts(&mut self, build: &mut Build<'a>, stmts: &'a [hir::Stmt]) {
        for stmt in stmts {
            self.stmt(build, stmt);
        }
    }

    /// The initial value of a variable.
    pub(super) fn init_local(
        &mut self,
        build: &mut Build<'a>,
        id: hir::LocalId,
        value: &'a hir::Expr,
    ) {
        let local = &build.source[id];
        if local.constant && local.value.is_some() {
            // Its value is known wherever it is read.
            return;
        }
        let place = Place {
            var: build.local(id),
            indices: Vec::new(),
            ty: local.ty.to_ir(),
            span: local.span,
        };
        self.assign(build, place, &local.ty, value, local.span);
    }

    fn stmt(&mut self, build: &mut Build<'a>, stmt: &'a hir::Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            hir::StmtKind::Assign(place, value) => {
                if let Var::Local(id) = place.var
                    && build.source[id].constant
                {
                    return self.init_local(build, id, value);
                }
                let to = self.place(build, place);
                self.assign(build, to, &place.ty, value, span);
            }
            hir::StmtKind::Call(id, args) => {
                let (args, after) = self.args(build, *id, args);
                build.push(StmtKind::Call(self.proc_ids[id], args), span);
                build.out.extend(after);
            }
            hir::StmtKind::Foreach {
                var,
                from,
                to,
                body,
            } => {
                self.foreach(build, *var, from, to, body, span);
            }
            hir::StmtKind::If { arms, otherwise } => self.choose(build, arms, otherwise, span),
            hir::StmtKind::While(cond, body) => self.while_(build, cond, body, span),
            hir::StmtKind::Print { parts, newline } => {
                self.print(build, parts, *newline, span);
            }
        }
    }

    fn choose(
        &mut self,
        build: &mut Build<'a>,
        arms: &'a [(hir::Expr, Vec<hir::Stmt>)],
        otherwise: &'a [hir::Stmt],
        span: Span,
    ) {
        let Some(((cond, body), rest)) = arms.split_first() else {
            return self.stmts(build, otherwise);
        };
        let cond = self.scalar(build, cond);
        let ((), on_true) = self.aside(build, |me, build| me.stmts(build, body));
        let ((), on_false) = self.aside(build, |me, build| me.choose(build, rest, otherwise, span));
        build.push(StmtKind::If(cond, on_true, on_false), span);
    }

    fn while_(
        &mut self,
        build: &mut Build<'a>,
        cond: &'a hir::Expr,
        body: &'a [hir::Stmt],
        span: Span,
    ) {
        let (value, before) = self.aside(build, |me, build| me.scalar(build, cond));
        let ((), mut inner) = self.aside(build, |me, build| me.stmts(build, body));
        if before.is_empty() {
            build.push(StmtKind::While(value, inner), span);
            return;
        }
        // The condition needs statements: they run before each test.
        let made = build.temporary("go_on", Type::Bool, cond.span);
        let go_on = Place {
            var: VarRef::Local(made),
            indices: Vec::new(),
            ty: Type::Bool,
            span: cond.span,
        };
        let test = |stmts: &mut Vec<ir::Stmt>| {
            stmts.extend(before.iter().cloned());
            let kind = StmtKind::Assign(go_on.clone(), value.clone());
            stmts.push(ir::Stmt {
                kind,
                span: cond.span,
            });
        };
        test(&mut build.out);
        test(&mut inner);
        build.push(StmtKind::While(load(go_on.clone()), inner), span);
    }

    fn foreach(
        &mut self,
        build: &mut Build<'a>,
        var: hir::LocalId,
        from: &'a hir::Expr,
        to: &'a hir::Expr,
        body: &'a [hir::Stmt],
        span: Span,
    ) {
        let VarRef::Local(made) = build.local(var) else {
            return;
        };
        let ty = build.locals[made].ty.clone();
        // The counter starts with the first value converted to its type: 65535 in an int(size=16) is -1. The last
        // value is only compared.
        let from = coerce(self.scalar(build, from), &ty);
        let to = self.scalar(build, to);
        let ((), mut inner) = self.aside(build, |me, build| me.stmts(build, body));
        if !effects::changes(&self.effects, body, Var::Local(var)) {
            build.push(
                StmtKind::For {
                    var: made,
                    from,
                    to,
                    body: inner,
                },
                span,
            );
            return;
        }
        // The body changes the counter, so it becomes a `while` loop. It counts in 64 bits, so that the last value of
        // a narrow type does not wrap.
        let wide = Type::Int {
            bits: 64,
            signed: true,
        };
        let place = |var: usize, ty: &Type| Place {
            var: VarRef::Local(var),
            indices: Vec::new(),
            ty: ty.clone(),
            span,
        };
        let last = build.temporary("last", wide.clone(), span);
        let next = build.temporary("next", wide.clone(), span);
        build.push(
            StmtKind::Assign(place(next, &wide), coerce(from, &wide)),
            span,
        );
        build.push(
            StmtKind::Assign(place(last, &wide), coerce(to, &wide)),
            span,
        );
        let compute = |op, a: Expr, b: Expr, ty: Type| Expr {
            kind: ir::ExprKind::Binary(op, Box::new(a), Box::new(b)),
            ty,
            span,
        };
        let cond = compute(
            BinOp::Le,
            load(place(next, &wide)),
            load(place(last, &wide)),
            Type::Bool,
        );
        let enter = StmtKind::Assign(place(made, &ty), load(place(next, &wide)));
        inner.insert(0, ir::Stmt { kind: enter, span });
        let one = Expr {
            ty: wide.clone(),
            ..int(1, span)
        };
        let step = compute(
            BinOp::Add,
            coerce(load(place(made, &ty)), &wide),
            one,
            wide.clone(),
        );
        inner.push(ir::Stmt {
            kind: StmtKind::Assign(place(next, &wide), step),
            span,
        });
        build.push(StmtKind::While(cond, inner), span);
    }
}
