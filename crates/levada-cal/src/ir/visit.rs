// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Visitors of expressions and statements.

use super::*;

/// Calls `f` for every expression in `e`, including `e` itself, which comes first.
pub fn walk(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    f(e);
    match &e.kind {
        ExprKind::Const(_) => {}
        ExprKind::Load(p) => p.indices.iter().for_each(|i| walk(i, f)),
        ExprKind::Unary(_, x) | ExprKind::Cast(x) => walk(x, f),
        ExprKind::Binary(_, a, b) => {
            walk(a, f);
            walk(b, f);
        }
        ExprKind::If(c, a, b) => {
            walk(c, f);
            walk(a, f);
            walk(b, f);
        }
        ExprKind::Call(_, args) => args.iter().for_each(|a| match a {
            Arg::Value(e) => walk(e, f),
            Arg::List(p) => p.indices.iter().for_each(|i| walk(i, f)),
        }),
    }
}

/// Whether `f` is true for any statement, at any depth.
pub fn any_stmt(stmts: &[Stmt], f: &mut dyn FnMut(&Stmt) -> bool) -> bool {
    stmts.iter().any(|s| {
        f(s) || match &s.kind {
            StmtKind::If(_, a, b) => any_stmt(a, f) || any_stmt(b, f),
            StmtKind::While(_, b) | StmtKind::For { body: b, .. } => any_stmt(b, f),
            _ => false,
        }
    })
}

/// Calls `f` for the expressions of a statement itself, not for those of nested statements.
pub fn exprs_of(s: &Stmt, f: &mut dyn FnMut(&Expr)) {
    let place = |p: &Place, f: &mut dyn FnMut(&Expr)| p.indices.iter().for_each(|i| walk(i, f));
    match &s.kind {
        StmtKind::Assign(p, e) => {
            place(p, f);
            walk(e, f);
        }
        StmtKind::Copy { to, from } => {
            place(to, f);
            place(from, f);
        }
        StmtKind::Call(_, args) => args.iter().for_each(|a| match a {
            Arg::Value(e) => walk(e, f),
            Arg::List(p) => place(p, f),
        }),
        StmtKind::If(c, ..) | StmtKind::While(c, _) => walk(c, f),
        StmtKind::For { from, to, .. } => {
            walk(from, f);
            walk(to, f);
        }
        StmtKind::Return(e) => walk(e, f),
        StmtKind::Print { parts, .. } => parts.iter().for_each(|e| walk(e, f)),
    }
}

/// Calls `f` for every use of a variable in these statements: the variable, and whether the use may write it.
/// `writes` tells whether a procedure writes a parameter.
pub fn mentions(
    stmts: &[Stmt],
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    for s in stmts {
        exprs_of(s, &mut |e| expr_mentions(e, writes, f));
        match &s.kind {
            StmtKind::Assign(p, _) => f(p.var, true),
            StmtKind::Copy { to, from } => {
                f(to.var, true);
                f(from.var, false);
            }
            StmtKind::Call(p, args) => args_mentions(*p, args, writes, f),
            StmtKind::If(_, a, b) => {
                mentions(a, writes, f);
                mentions(b, writes, f);
            }
            StmtKind::While(_, b) => mentions(b, writes, f),
            StmtKind::For { var, body, .. } => {
                f(VarRef::Local(*var), true);
                mentions(body, writes, f);
            }
            StmtKind::Return(_) | StmtKind::Print { .. } => {}
        }
    }
}

/// Calls `f` for the variables of an expression itself; use `walk` for those of inner expressions.
pub fn expr_mentions(
    e: &Expr,
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    match &e.kind {
        ExprKind::Load(p) => f(p.var, false),
        ExprKind::Call(p, args) => args_mentions(*p, args, writes, f),
        _ => {}
    }
}

fn args_mentions(
    p: usize,
    args: &[Arg],
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    for (i, a) in args.iter().enumerate() {
        if let Arg::List(place) = a {
            f(place.var, writes(p, i));
        }
    }
}

/// Calls `f` for every procedure that the body calls.
pub fn calls(body: &Body, f: &mut dyn FnMut(usize)) {
    any_stmt(&body.stmts, &mut |s| {
        if let StmtKind::Call(p, _) = s.kind {
            f(p);
        }
        exprs_of(s, &mut |e| {
            if let ExprKind::Call(p, _) = e.kind {
                f(p);
            }
        });
        false
    });
}
