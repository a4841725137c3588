// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowers scalar expressions.

use super::{Build, Lowerer};
use crate::eval;
use crate::hir::{self, ExprKind, Var};
use crate::ir::{self, BinOp, Expr, Place, Span, Type, Value, VarRef};
use crate::operators::{self, types::held, value::is_comparison};
use crate::types::Ty;

/// Maximum number of chained operations in one expression.
const CHAIN_OPERATIONS_MAX: u32 = 64;

pub(super) fn load(place: Place) -> Expr {
    Expr {
        ty: place.ty.clone(),
        span: place.span,
        kind: ir::ExprKind::Load(place),
    }
}

pub(super) fn string(text: &str, span: Span) -> Expr {
    Expr {
        kind: ir::ExprKind::Const(Value::String(text.into())),
        ty: Type::String,
        span,
    }
}

pub(super) fn int(value: i64, span: Span) -> Expr {
    let ty = Type::Int {
        bits: 32,
        signed: true,
    };
    Expr {
        kind: ir::ExprKind::Const(Value::Int(value)),
        ty,
        span,
    }
}

/// Whether values of both types have the same representation in memory.
pub(super) fn same_storage(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Int { signed: s, .. }, Type::Int { signed: t, .. }) => {
            s == t && a.container() == b.container()
        }
        (Type::List { elem: e, len: m }, Type::List { elem: f, len: n }) => {
            m == n && same_storage(e, f)
        }
        _ => a == b,
    }
}

fn to_ty(ty: &Type) -> Ty {
    match ty {
        Type::Bool => Ty::Bool,
        Type::Int { bits, signed } => Ty::Int {
            bits: *bits,
            signed: *signed,
        },
        Type::Float { bits } => Ty::Float { bits: *bits },
        Type::String => Ty::String,
        Type::List { elem, len } => Ty::list(to_ty(elem), Some(*len)),
    }
}

/// `expr` as a value of type `ty`.
pub(super) fn coerce(expr: Expr, ty: &Type) -> Expr {
    if same_storage(&expr.ty, ty) {
        return expr;
    }
    if let ir::ExprKind::Const(value) = &expr.kind {
        let value = eval::convert(value.clone(), &to_ty(&expr.ty), &to_ty(ty));
        return Expr {
            kind: ir::ExprKind::Const(value),
            ty: ty.clone(),
            span: expr.span,
        };
    }
    Expr {
        ty: ty.clone(),
        span: expr.span,
        kind: ir::ExprKind::Cast(Box::new(expr)),
    }
}

impl<'a> Lowerer<'a> {
    /// A scalar's value; statements that it needs first go to `build`.
    pub(super) fn scalar(&mut self, build: &mut Build<'a>, expr: &'a hir::Expr) -> Expr {
        let span = expr.span;
        let ty = match &expr.kind {
            ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::If { .. } => {
                held(&expr.machine).to_ir()
            }
            _ => expr.machine.to_ir(),
        };
        let kind = match &expr.kind {
            ExprKind::Const(value) => ir::ExprKind::Const(value.clone()),
            ExprKind::Load(place) => {
                if let Var::Global(id) = place.var
                    && let Some(value) = self.constant_scalar(id)
                {
                    return Expr {
                        kind: ir::ExprKind::Const(value.clone()),
                        ty,
                        span,
                    };
                }
                ir::ExprKind::Load(self.place(build, place))
            }
            ExprKind::Unary(op, a) => ir::ExprKind::Unary(*op, Box::new(self.scalar(build, a))),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                return self.lazy(build, *op, a, b, span);
            }
            ExprKind::Binary(BinOp::Add, a, b) if a.ty.is_list() || b.ty.is_list() => {
                let left = self.text(build, a);
                let right = self.text(build, b);
                ir::ExprKind::Binary(BinOp::Add, Box::new(left), Box::new(right))
            }
            ExprKind::Binary(op, a, b) => {
                let (left, length) = self.chained(build, a);
                let right = self.scalar(build, b);
                self.length = length + 1;
                let (left, right) = match &ty {
                    // Constants are rounded to the machine type.
                    Type::Float { .. } => (constant_as(left, &ty), constant_as(right, &ty)),
                    Type::String => (printable(left, a), printable(right, b)),
                    _ if is_comparison(*op) => compared(left, a, right, b),
                    _ => (left, right),
                };
                ir::ExprKind::Binary(*op, Box::new(left), Box::new(right))
            }
            ExprKind::If { arms, otherwise } => {
                return self.choice(build, arms, otherwise, &ty, span);
            }
            ExprKind::Call(id, args) => {
                let call = self.call(build, *id, args, span);
                if !self.effects[*id].effects {
                    return call;
                }
                // It runs exactly here, before later code.
                return self.kept(build, "value", call);
            }
            // Errors were reported before, and such an actor is never lowered.
            ExprKind::List { .. } | ExprKind::Error => ir::ExprKind::Const(Value::Int(0)),
        };
        Expr { kind, ty, span }
    }

    /// The left side of an operation, and of how many operations, each with the one before it on its left,
    /// its value is the result. Many are computed in parts, each kept in a variable: C compilers limit the
    /// depth of parentheses.
    fn chained(&mut self, build: &mut Build<'a>, left: &'a hir::Expr) -> (Expr, u32) {
        let value = self.scalar(build, left);
        match &left.kind {
            ExprKind::Binary(..) if left.ty == Ty::String || self.length < CHAIN_OPERATIONS_MAX => {
                (value, self.length)
            }
            ExprKind::Binary(..) => (self.kept(build, "part", value), 0),
            _ => (value, 0),
        }
    }

    /// Computes a value now and stores it in a variable; returns a load of that.
    pub(super) fn kept(&mut self, build: &mut Build<'a>, name: &str, value: Expr) -> Expr {
        let made = build.temporary(name, value.ty.clone(), value.span);
        let place = Place {
            var: VarRef::Local(made),
            indices: Vec::new(),
            ty: value.ty.clone(),
            span: value.span,
        };
        let span = value.span;
        build.push(ir::StmtKind::Assign(place.clone(), value), span);
        load(place)
    }

    /// Runs `inner` with an empty list of statements, and returns the statements that it has added.
    pub(super) fn aside<T>(
        &mut self,
        build: &mut Build<'a>,
        inner: impl FnOnce(&mut Self, &mut Build<'a>) -> T,
    ) -> (T, Vec<ir::Stmt>) {
        let outer = std::mem::take(&mut build.out);
        let value = inner(self, build);
        (value, std::mem::replace(&mut build.out, outer))
    }

    /// `and` and `or`: what the right side needs is done only if it is evaluated.
    fn lazy(
        &mut self,
        build: &mut Build<'a>,
        op: BinOp,
        a: &'a hir::Expr,
        b: &'a hir::Expr,
        span: Span,
    ) -> Expr {
        let (left, length) = self.chained(build, a);
        let (right, stmts) = self.aside(build, |me, build| me.scalar(build, b));
        self.length = length + 1;
        if stmts.is_empty() {
            let kind = ir::ExprKind::Binary(op, Box::new(left), Box::new(right));
            return Expr {
                kind,
                ty: Type::Bool,
                span,
            };
        }
        let holds = self.kept(build, "holds", left);
        let ir::ExprKind::Load(place) = holds.kind.clone() else {
            return holds;
        };
        let mut more = stmts;
        more.push(ir::Stmt {
            kind: ir::StmtKind::Assign(place, right),
            span,
        });
        let kind = match op {
            BinOp::And => ir::StmtKind::If(holds.clone(), more, Vec::new()),
            _ => ir::StmtKind::If(holds.clone(), Vec::new(), more),
        };
        build.push(kind, span);
        holds
    }

    /// `if` as an expression where it can be one, else as statements.
    fn choice(
        &mut self,
        build: &mut Build<'a>,
        arms: &'a [(hir::Expr, hir::Expr)],
        otherwise: &'a hir::Expr,
        ty: &Type,
        span: Span,
    ) -> Expr {
        let Some(((cond, value), rest)) = arms.split_first() else {
            return coerce(self.scalar(build, otherwise), ty);
        };
        let cond = self.scalar(build, cond);
        let (value, on_true) = self.aside(build, |me, build| coerce(me.scalar(build, value), ty));
        let (other, on_false) = self.aside(build, |me, build| {
            me.choice(build, rest, otherwise, ty, span)
        });
        if on_true.is_empty() && on_false.is_empty() {
            let kind = ir::ExprKind::If(Box::new(cond), Box::new(value), Box::new(other));
            return Expr {
                kind,
                ty: ty.clone(),
                span,
            };
        }
        let made = build.temporary("choice", ty.clone(), span);
        let place = Place {
            var: VarRef::Local(made),
            indices: Vec::new(),
            ty: ty.clone(),
            span,
        };
        let branch = |mut stmts: Vec<ir::Stmt>, value: Expr| {
            stmts.push(ir::Stmt {
                kind: ir::StmtKind::Assign(place.clone(), value),
                span,
            });
            stmts
        };
        let (on_true, on_false) = (branch(on_true, value), branch(on_false, other));
        build.push(ir::StmtKind::If(cond, on_true, on_false), span);
        load(place)
    }

    /// A variable, or a part of it.
    pub(super) fn place(&mut self, build: &mut Build<'a>, place: &'a hir::Place) -> Place {
        let var = match place.var {
            Var::Local(id) => self.local(build, id),
            Var::Global(id) => VarRef::Global(self.global_ids[&id]),
        };
        let indices = place
            .indices
            .iter()
            .map(|index| self.scalar(build, index))
            .collect();
        Place {
            var,
            indices,
            ty: place.ty.to_ir(),
            span: place.span,
        }
    }

    /// A variable of the body. A list that is a constant is one of the actor's instead.
    fn local(&mut self, build: &mut Build<'a>, id: hir::LocalId) -> VarRef {
        if !build.places.contains_key(&id)
            && let hir::Local {
                constant: true,
                value: Some(value @ Value::List(_)),
                ..
            } = &build.source[id]
        {
            let local = &build.source[id];
            let made = self.table(&local.name, local.ty.to_ir(), value.clone(), local.span);
            build.places.insert(id, made);
        }
        build.local(id)
    }

    /// A constant list of the actor.
    pub(super) fn table(&mut self, name: &str, ty: Type, value: Value, span: Span) -> VarRef {
        let name = self.global_names.name(name);
        self.globals.push(ir::Var {
            name,
            ty,
            init: ir::Init::Value(value),
            constant: true,
            span,
        });
        VarRef::Global(self.globals.len() - 1)
    }

    /// A call of a function with a scalar result.
    pub(super) fn call(
        &mut self,
        build: &mut Build<'a>,
        id: hir::ProcId,
        args: &'a [hir::Expr],
        span: Span,
    ) -> Expr {
        let (args, after) = self.args(build, id, args);
        debug_assert!(after.is_empty(), "functions do not write their arguments");
        let ty = self.actor.procs[id]
            .result
            .as_ref()
            .map_or(Type::Bool, Ty::to_ir);
        Expr {
            kind: ir::ExprKind::Call(self.proc_ids[&id], args),
            ty,
            span,
        }
    }
}

/// Both sides of a comparison, converted to the type of the comparison if that is floating point.
fn compared(left: Expr, a: &hir::Expr, right: Expr, b: &hir::Expr) -> (Expr, Expr) {
    match operators::compared((&a.ty, &a.machine), (&b.ty, &b.machine)) {
        Some(ty @ Ty::Float { .. }) => {
            let ty = ty.to_ir();
            (coerce(left, &ty), coerce(right, &ty))
        }
        _ => (left, right),
    }
}

fn constant_as(expr: Expr, ty: &Type) -> Expr {
    match expr.kind {
        ir::ExprKind::Const(_) => coerce(expr, ty),
        _ => expr,
    }
}

/// Converts `expr`, the lowered `of`, to the type in which it is printed.
pub(super) fn printable(expr: Expr, of: &hir::Expr) -> Expr {
    coerce(
        expr,
        &operators::types::printed(&of.ty, &of.machine).to_ir(),
    )
}
