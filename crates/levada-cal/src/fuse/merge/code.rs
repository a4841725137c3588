// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the code of a merged action: its variables, statements and expressions.

use crate::ir::*;
use crate::ranges::innermost;

/// The code of an action under construction.
#[derive(Default)]
pub struct Code {
    pub locals: Vec<Local>,
    pub stmts: Vec<Stmt>,
}

/// The iteration of a loop: a number, or the loop's counter.
#[derive(Clone, Copy)]
pub enum Turn {
    Number(u32),
    Counter(usize),
}

pub const INT: Type = Type::Int {
    bits: 32,
    signed: true,
};

pub fn number(v: u32, span: Span) -> Expr {
    Expr {
        kind: ExprKind::Const(Value::Int(i64::from(v))),
        ty: INT,
        span,
    }
}

pub fn load(var: VarRef, indices: Vec<Expr>, ty: Type, span: Span) -> Expr {
    let place = Place {
        var,
        indices,
        ty: ty.clone(),
        span,
    };
    Expr {
        kind: ExprKind::Load(place),
        ty,
        span,
    }
}

pub fn list_of(elem: &Type, len: u32) -> Type {
    Type::List {
        elem: Box::new(elem.clone()),
        len,
    }
}

pub fn cast(e: Expr, ty: &Type) -> Expr {
    let span = e.span;
    Expr {
        kind: ExprKind::Cast(Box::new(e)),
        ty: ty.clone(),
        span,
    }
}

impl Code {
    pub fn local(&mut self, name: &str, ty: Type, span: Span) -> usize {
        self.locals.push(Local {
            name: name.to_string(),
            ty,
            span,
        });
        self.locals.len() - 1
    }

    pub fn take(&mut self) -> Vec<Stmt> {
        std::mem::take(&mut self.stmts)
    }

    pub fn put(&mut self, kind: StmtKind, span: Span) {
        self.stmts.push(Stmt { kind, span });
    }

    /// Emits code `n` times, as a loop if `n` is more than `most`.
    pub fn times(&mut self, n: u32, most: u32, span: Span, f: &mut dyn FnMut(&mut Code, Turn)) {
        if n <= most {
            (0..n).for_each(|k| f(self, Turn::Number(k)));
            return;
        }
        let var = self.local("i", INT, span);
        let outer = self.take();
        f(self, Turn::Counter(var));
        let body = std::mem::replace(&mut self.stmts, outer);
        let (from, to) = (number(0, span), number(n - 1, span));
        self.put(
            StmtKind::For {
                var,
                from,
                to,
                body,
            },
            span,
        );
    }

    /// Sets a variable to zero, its value at the start of an action.
    pub fn clear(&mut self, var: usize, span: Span) {
        let mut ty = self.locals[var].ty.clone();
        let dims = crate::ranges::dimensions(&ty);
        let mut counters = Vec::new();
        for _ in &dims {
            counters.push(self.local("i", INT, span));
        }
        ty = innermost(&ty).clone();
        let zero = match &ty {
            Type::Bool => Value::Bool(false),
            Type::Float { .. } => Value::Float(0.0),
            Type::String => Value::String(String::new()),
            _ => Value::Int(0),
        };
        let place = Place {
            var: VarRef::Local(var),
            indices: counters
                .iter()
                .map(|c| load(VarRef::Local(*c), vec![], INT, span))
                .collect(),
            ty: ty.clone(),
            span,
        };
        let value = Expr {
            kind: ExprKind::Const(zero),
            ty,
            span,
        };
        let mut stmt = Stmt {
            kind: StmtKind::Assign(place, value),
            span,
        };
        for (var, n) in counters.into_iter().zip(dims).rev() {
            let kind = StmtKind::For {
                var,
                from: number(0, span),
                to: number(n - 1, span),
                body: vec![stmt],
            };
            stmt = Stmt { kind, span };
        }
        self.stmts.push(stmt);
    }
}
