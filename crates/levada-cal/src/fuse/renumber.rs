// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Renumbers the variables and procedures of an actor when its code becomes a part of another actor.

use crate::ir::*;

/// How one actor's indices change in the merged one.
pub struct Renumbering {
    pub locals: Vec<usize>,
    pub globals: usize,
    pub procs: usize,
}

impl Renumbering {
    pub fn var(&self, v: VarRef) -> VarRef {
        match v {
            VarRef::Local(l) => VarRef::Local(self.locals[l]),
            VarRef::Global(g) => VarRef::Global(g + self.globals),
        }
    }

    pub fn place(&self, p: &Place) -> Place {
        Place {
            var: self.var(p.var),
            indices: p.indices.iter().map(|i| self.expr(i)).collect(),
            ..p.clone()
        }
    }

    fn args(&self, args: &[Arg]) -> Vec<Arg> {
        args.iter()
            .map(|a| match a {
                Arg::Value(e) => Arg::Value(self.expr(e)),
                Arg::List(p) => Arg::List(self.place(p)),
            })
            .collect()
    }

    pub fn expr(&self, e: &Expr) -> Expr {
        let boxed = |e: &Expr| Box::new(self.expr(e));
        let kind = match &e.kind {
            ExprKind::Const(v) => ExprKind::Const(v.clone()),
            ExprKind::Load(p) => ExprKind::Load(self.place(p)),
            ExprKind::Unary(op, x) => ExprKind::Unary(*op, boxed(x)),
            ExprKind::Binary(op, x, y) => ExprKind::Binary(*op, boxed(x), boxed(y)),
            ExprKind::If(c, x, y) => ExprKind::If(boxed(c), boxed(x), boxed(y)),
            ExprKind::Call(p, args) => ExprKind::Call(p + self.procs, self.args(args)),
            ExprKind::Cast(x) => ExprKind::Cast(boxed(x)),
        };
        Expr { kind, ..e.clone() }
    }

    pub fn stmts(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().map(|s| self.stmt(s)).collect()
    }

    pub fn stmt(&self, s: &Stmt) -> Stmt {
        let kind = match &s.kind {
            StmtKind::Assign(p, e) => StmtKind::Assign(self.place(p), self.expr(e)),
            StmtKind::Copy { to, from } => StmtKind::Copy {
                to: self.place(to),
                from: self.place(from),
            },
            StmtKind::Call(p, args) => StmtKind::Call(p + self.procs, self.args(args)),
            StmtKind::If(c, yes, no) => StmtKind::If(self.expr(c), self.stmts(yes), self.stmts(no)),
            StmtKind::While(c, body) => StmtKind::While(self.expr(c), self.stmts(body)),
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => StmtKind::For {
                var: self.locals[*var],
                from: self.expr(from),
                to: self.expr(to),
                body: self.stmts(body),
            },
            StmtKind::Return(e) => StmtKind::Return(self.expr(e)),
            StmtKind::Print { parts, newline } => StmtKind::Print {
                parts: parts.iter().map(|e| self.expr(e)).collect(),
                newline: *newline,
            },
        };
        Stmt { kind, span: s.span }
    }

    /// A body that keeps the numbers of its locals.
    pub fn body(&self, b: &Body) -> Body {
        Body {
            locals: b.locals.clone(),
            stmts: self.stmts(&b.stmts),
        }
    }

    pub fn body_of_its_own(&self, b: &Body) -> Body {
        Renumbering {
            locals: (0..b.locals.len()).collect(),
            ..*self
        }
        .body(b)
    }
}
