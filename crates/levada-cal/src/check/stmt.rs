// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks statements.

use super::scope::{Found, Item};
use super::{Body, Checker};
use crate::ast;
use crate::diag::Diagnostic;
use crate::hir::{Expr, ExprKind, LocalId, Place, Stmt, StmtKind, Var};
use crate::ir::{BinOp, Span, Value};
use crate::types::Ty;

/// The initial values of variables, as assignments.
pub(super) fn assignments(body: &Body, inits: Vec<(LocalId, Expr)>) -> Vec<Stmt> {
    let assign = |(id, value): (LocalId, Expr)| {
        let local = &body.locals[id];
        let place = Place {
            var: Var::Local(id),
            indices: Vec::new(),
            ty: local.ty.clone(),
            span: local.span,
        };
        Stmt {
            span: local.span,
            kind: StmtKind::Assign(place, value),
        }
    };
    inits.into_iter().map(assign).collect()
}

impl<'a> Checker<'a> {
    pub(super) fn stmts(
        &mut self,
        body: &mut Body<'a>,
        stmts: &'a [ast::Stmt],
        out: &mut Vec<Stmt>,
    ) {
        for stmt in stmts {
            self.stmt(body, stmt, out);
        }
    }

    fn block(&mut self, body: &mut Body<'a>, stmts: &'a [ast::Stmt]) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(stmts.len());
        self.stmts(body, stmts, &mut out);
        out
    }

    fn stmt(&mut self, body: &mut Body<'a>, stmt: &'a ast::Stmt, out: &mut Vec<Stmt>) {
        let span = stmt.span;
        let kind = match &stmt.kind {
            ast::StmtKind::Assign {
                target,
                indices,
                value,
            } => match self.assign(body, target, indices, value) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::Call { name, args } => match self.call(body, name, args) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::Foreach {
                var,
                from,
                to,
                body: inner,
            } => {
                let ty = self.declared(body, var);
                if !ty.is_int() {
                    let message = format!("`foreach` counts with integers, not {ty}");
                    self.error("type", var.span, message, "");
                }
                let from = self.expr(body, from);
                let to = self.expr(body, to);
                for bound in [&from, &to] {
                    if !bound.ty.is_int() {
                        let message = format!("a range is of integers, not {}", bound.ty);
                        self.error("type", bound.span, message, format!("this is {}", bound.ty));
                    }
                }
                let visible = body.names.len();
                let var = self.inner_local(body, var, ty);
                let inner = self.block(body, inner);
                body.names.truncate(visible);
                StmtKind::Foreach {
                    var,
                    from,
                    to,
                    body: inner,
                }
            }
            ast::StmtKind::If { arms, otherwise } => {
                let mut kept = Vec::with_capacity(arms.len());
                let mut last = None;
                for (cond, inner) in arms {
                    let cond = self.condition(body, cond);
                    let inner = self.block(body, inner);
                    // Branches that are never taken are removed.
                    match cond.kind {
                        _ if last.is_some() => {}
                        ExprKind::Const(Value::Bool(false)) => {}
                        ExprKind::Const(Value::Bool(true)) => last = Some(inner),
                        _ => kept.push((cond, inner)),
                    }
                }
                let otherwise = self.block(body, otherwise);
                let otherwise = last.unwrap_or(otherwise);
                if kept.is_empty() {
                    out.extend(otherwise);
                    return;
                }
                StmtKind::If {
                    arms: kept,
                    otherwise,
                }
            }
            ast::StmtKind::While { cond, body: inner } => {
                let cond = self.condition(body, cond);
                let inner = self.block(body, inner);
                if let ExprKind::Const(Value::Bool(false)) = cond.kind {
                    return;
                }
                StmtKind::While(cond, inner)
            }
        };
        out.push(Stmt { kind, span });
    }

    fn assign(
        &mut self,
        body: &mut Body<'a>,
        target: &'a ast::Path,
        indices: &'a [ast::Expr],
        value: &'a ast::Expr,
    ) -> Option<StmtKind> {
        let span = indices.last().map_or(target.span, |last| Span {
            end: last.span.end + 1,
            ..target.span
        });
        let place = self.place(body, target, indices, span);
        let value = self.expr(body, value);
        let (place, assignable) = place?;
        if !assignable {
            self.constant_target(body, target, place.var);
            return None;
        }
        body.mentioned.written.insert(place.var);
        let what = format!("`{}`", target.text);
        self.wants(&value, &place.ty, &what);
        Some(StmtKind::Assign(place, value))
    }

    fn constant_target(&mut self, body: &Body<'a>, target: &ast::Path, var: Var) {
        let (declared, is_param) = match var {
            Var::Local(id) => (body.locals[id].span, false),
            Var::Global(id) => (self.globals[id].span, self.globals[id].is_param),
        };
        let diag = Diagnostic::error("assign", format!("`{}` is a constant", target.text))
            .label(target.span, "it cannot be assigned to")
            .label(declared, "declared here")
            .help(if is_param {
                "a parameter keeps its value: copy it into a variable"
            } else {
                "declare it with `:=` instead of `=` if it is to change"
            });
        self.diags.push(diag);
    }

    fn call(
        &mut self,
        body: &mut Body<'a>,
        name: &'a ast::Path,
        args: &'a [ast::Expr],
    ) -> Option<StmtKind> {
        let found = self.lookup(body, name);
        self.note_unit_of(name, found.as_ref());
        let builtin = found.is_none() && matches!(name.text.as_str(), "print" | "println");
        let args: Vec<Expr> = args.iter().map(|arg| self.expr(body, arg)).collect();
        if builtin {
            return self.print(name, args);
        }
        let id = match found {
            Some(Found::Item(entity, item @ Item::Procedure(_))) => self.proc(entity, item),
            Some(Found::Item(_, Item::Function(_))) => {
                let diag = Diagnostic::error("name", format!("`{}` is a function", name.text))
                    .label(name.span, "its value goes nowhere")
                    .help("assign it: `x := f(y);`");
                self.diags.push(diag);
                return None;
            }
            Some(_) => {
                let message = format!("`{}` is a variable", name.text);
                self.error("name", name.span, message, "it cannot be called");
                return None;
            }
            None => {
                self.unknown_name(body, name, "procedure");
                return None;
            }
        };
        body.calls.push((id, name.span));
        self.note_call(name, id);
        body.mentioned.called.insert(id);
        if !self.arguments(id, &args, name.span) {
            return None;
        }
        Some(StmtKind::Call(id, args))
    }

    fn print(&mut self, name: &ast::Path, args: Vec<Expr>) -> Option<StmtKind> {
        let newline = name.text == "println";
        let mut parts = Vec::new();
        for arg in args {
            flatten(arg, &mut parts);
        }
        Some(StmtKind::Print { parts, newline })
    }
}

/// `"a" + b + c` as the parts to be printed, in order.
fn flatten(expr: Expr, out: &mut Vec<Expr>) {
    match expr.kind {
        ExprKind::Binary(BinOp::Add, left, right) if expr.ty == Ty::String => {
            flatten(*left, out);
            flatten(*right, out);
        }
        _ => out.push(expr),
    }
}
