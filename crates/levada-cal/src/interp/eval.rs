// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements and expressions, one after the other as they are written.

use super::{Fault, FaultKind, Instance, Native, NativeArg, Scalar, Slot, fresh};
use crate::half;
use crate::ir::*;
use crate::ranges::{dimensions, hidden_param, innermost, join_type};
use std::collections::HashMap;

/// The lowest `bits` of `v`, read as signed or not.
fn wrap(v: i128, bits: u8, signed: bool) -> i128 {
    let low = v.rem_euclid(1i128 << bits);
    if signed && low >= 1i128 << (bits - 1) {
        low - (1i128 << bits)
    } else {
        low
    }
}

fn fit(v: i128, ty: &Type) -> i128 {
    match ty {
        Type::Int { signed, .. } => wrap(v, ty.container(), *signed),
        Type::Bool => i128::from(v != 0),
        _ => v,
    }
}

fn round(v: f64, ty: &Type) -> f64 {
    match ty {
        Type::Float { bits: 64 } => v,
        Type::Float { bits: 16 } => f64::from(half::nearest(v as f32)),
        _ => f64::from(v as f32),
    }
}

/// `v`, of type `from`, converted to `to`.
pub fn convert(v: Scalar, from: &Type, to: &Type) -> Scalar {
    let _ = from;
    match (v, to) {
        (Scalar::Int(i), Type::Float { bits: 64 }) => Scalar::Float(i as f64),
        (Scalar::Int(i), Type::Float { .. }) => Scalar::Float(round(f64::from(i as f32), to)),
        (Scalar::Int(i), ty) => Scalar::Int(fit(i, ty)),
        (Scalar::Float(f), Type::Float { .. }) => Scalar::Float(round(f, to)),
        // Toward zero, and to the nearest that 64 bits hold.
        (Scalar::Float(f), ty) => Scalar::Int(fit(i128::from(f as i64), ty)),
        (text, _) => text,
    }
}

pub fn constant(v: &Value, ty: &Type) -> Scalar {
    match v {
        Value::Bool(b) => Scalar::Int(i128::from(*b)),
        Value::Int(i) => convert(Scalar::Int(i128::from(*i)), ty, ty),
        Value::Float(f) => convert(Scalar::Float(*f), ty, ty),
        Value::String(s) => Scalar::Text(s.as_str().into()),
        Value::List(_) => unreachable!("lists are filled"),
    }
}

/// As it is printed.
fn written(v: Scalar, ty: &Type) -> String {
    match (v, ty) {
        (Scalar::Int(i), Type::Bool) => ["false", "true"][i as usize].to_string(),
        (Scalar::Int(i), _) => i.to_string(),
        (Scalar::Float(f), _) => format!("{f:.6}"),
        (Scalar::Text(t), _) => t.to_string(),
    }
}

fn int(v: Scalar) -> i128 {
    match v {
        Scalar::Int(i) => i,
        Scalar::Float(f) => f as i128,
        Scalar::Text(_) => 0,
    }
}

/// One body at work.
pub(crate) struct Frame<'m, 'a> {
    pub body: &'a Body,
    pub locals: Vec<Slot>,
    pub instance: &'m mut Instance<'a>,
    pub natives: &'m mut HashMap<String, Native>,
    pub action: &'m str,
}

impl<'a> Frame<'_, 'a> {
    pub fn set(&mut self, locals: Vec<(usize, Slot)>) {
        for (l, slot) in locals {
            self.locals[l] = slot;
        }
    }

    fn fault<T>(&self, kind: FaultKind, span: Span, message: String) -> Result<T, Fault> {
        Err(Fault {
            kind,
            actor: self.instance.name.to_string(),
            action: self.action.to_string(),
            span,
            message,
        })
    }

    pub fn slot(&self, v: VarRef) -> Slot {
        match v {
            VarRef::Global(g) => self.instance.globals[g].clone(),
            VarRef::Local(l) => self.locals[l].clone(),
        }
    }

    pub fn var_type(&self, v: VarRef) -> &'a Type {
        match v {
            VarRef::Global(g) => &self.instance.actor.globals[g].ty,
            VarRef::Local(l) => &self.body.locals[l].ty,
        }
    }

    /// The variable's storage from the element on that a place means.
    fn place(&mut self, p: &Place) -> Result<Slot, Fault> {
        let dims = dimensions(self.var_type(p.var));
        let mut slot = self.slot(p.var);
        for (d, i) in p.indices.iter().enumerate() {
            let at = int(self.eval(i)?);
            if at < 0 || at >= i128::from(dims[d]) {
                let text = format!("index {at} of a list of {}", dims[d]);
                return self.fault(FaultKind::Index, i.span, text);
            }
            let stride: usize = dims[d + 1..].iter().map(|n| *n as usize).product();
            slot.offset += at as usize * stride;
        }
        Ok(slot)
    }

    pub fn eval(&mut self, e: &Expr) -> Result<Scalar, Fault> {
        match &e.kind {
            ExprKind::Const(v) => Ok(constant(v, &e.ty)),
            ExprKind::Load(p) => {
                let slot = self.place(p)?;
                let v = slot.data.borrow()[slot.offset].clone();
                Ok(v)
            }
            ExprKind::Unary(op, x) => {
                let v = self.eval_as(x, &e.ty)?;
                Ok(match (op, v) {
                    (UnOp::Neg, Scalar::Float(f)) => Scalar::Float(-f),
                    (UnOp::Neg, v) => Scalar::Int(fit(-int(v), &e.ty)),
                    (UnOp::Not, v) => Scalar::Int(i128::from(int(v) == 0)),
                    (UnOp::BitNot, v) => Scalar::Int(fit(!int(v), &e.ty)),
                })
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e),
            ExprKind::If(c, a, b) => {
                let taken = if int(self.eval(c)?) != 0 { a } else { b };
                self.eval_as(taken, &e.ty)
            }
            ExprKind::Call(p, args) => {
                let v = self.call(*p, args, e.span)?;
                Ok(v.unwrap_or(Scalar::Int(0)))
            }
            ExprKind::Cast(x) => self.eval_as(x, &e.ty),
        }
    }

    fn eval_as(&mut self, e: &Expr, ty: &Type) -> Result<Scalar, Fault> {
        let v = self.eval(e)?;
        Ok(convert(v, &e.ty, ty))
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr) -> Result<Scalar, Fault> {
        let truth = |b: bool| Ok(Scalar::Int(i128::from(b)));
        match op {
            BinOp::And => {
                let both = int(self.eval(a)?) != 0 && int(self.eval(b)?) != 0;
                truth(both)
            }
            BinOp::Or => {
                let any = int(self.eval(a)?) != 0 || int(self.eval(b)?) != 0;
                truth(any)
            }
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                let ty = join_type(&a.ty, &b.ty);
                let (x, y) = (self.eval_as(a, &ty)?, self.eval_as(b, &ty)?);
                let order = match (&x, &y) {
                    (Scalar::Int(x), Scalar::Int(y)) => Some(x.cmp(y)),
                    (Scalar::Float(x), Scalar::Float(y)) => x.partial_cmp(y),
                    (Scalar::Text(x), Scalar::Text(y)) => Some(x.cmp(y)),
                    _ => None,
                };
                truth(match op {
                    BinOp::Eq => order.is_some_and(|o| o.is_eq()),
                    BinOp::Ne => order.is_none_or(|o| o.is_ne()),
                    BinOp::Lt => order.is_some_and(|o| o.is_lt()),
                    BinOp::Le => order.is_some_and(|o| o.is_le()),
                    BinOp::Gt => order.is_some_and(|o| o.is_gt()),
                    _ => order.is_some_and(|o| o.is_ge()),
                })
            }
            BinOp::Shl | BinOp::Shr => {
                let v = int(self.eval_as(a, &e.ty)?);
                let n = int(self.eval(b)?);
                let n = n.rem_euclid(i128::from(e.ty.container()));
                let v = match op {
                    BinOp::Shl => fit(v << n, &e.ty),
                    _ => v >> n,
                };
                Ok(Scalar::Int(v))
            }
            _ if e.ty == Type::String => {
                let left = written(self.eval(a)?, &a.ty);
                let right = written(self.eval(b)?, &b.ty);
                Ok(Scalar::Text((left + &right).as_str().into()))
            }
            _ => {
                let (x, y) = (self.eval_as(a, &e.ty)?, self.eval_as(b, &e.ty)?);
                match (x, y) {
                    (Scalar::Float(x), Scalar::Float(y)) => {
                        // Of 32-bit operands the exact result, rounded once, is the same.
                        let v = match op {
                            BinOp::Add => x + y,
                            BinOp::Sub => x - y,
                            BinOp::Mul => x * y,
                            BinOp::Div => x / y,
                            _ => x % y,
                        };
                        Ok(Scalar::Float(round(v, &e.ty)))
                    }
                    (x, y) => {
                        let (x, y) = (int(x), int(y));
                        let v = match op {
                            BinOp::Add => x + y,
                            BinOp::Sub => x - y,
                            BinOp::Mul => x.wrapping_mul(y),
                            BinOp::BitAnd => x & y,
                            BinOp::BitOr => x | y,
                            BinOp::BitXor => x ^ y,
                            _ if y == 0 => {
                                let text = "division by zero".to_string();
                                return self.fault(FaultKind::Division, e.span, text);
                            }
                            BinOp::Div => x / y,
                            _ => x % y,
                        };
                        Ok(Scalar::Int(fit(v, &e.ty)))
                    }
                }
            }
        }
    }

    fn call(&mut self, p: usize, args: &[Arg], span: Span) -> Result<Option<Scalar>, Fault> {
        let proc = &self.instance.actor.procs[p];
        let mut given = Vec::new();
        for (i, a) in args.iter().enumerate() {
            given.push(match a {
                Arg::Value(e) => {
                    let v = self.eval_as(e, &proc.body.locals[i].ty)?;
                    NativeArg::Value(v)
                }
                Arg::List(place) => NativeArg::List(self.place(place)?),
            });
        }
        if proc.native {
            let Some(f) = self.natives.get_mut(&proc.name) else {
                let text = format!("the native {} is not there", proc.name);
                return self.fault(FaultKind::Native, span, text);
            };
            let v = f(&given);
            return Ok(proc.result.as_ref().map(|ty| convert(v, ty, ty)));
        }
        let mut locals: Vec<Slot> = Vec::new();
        for (i, l) in proc.body.locals.iter().enumerate() {
            locals.push(match given.get(i) {
                Some(NativeArg::Value(v)) => {
                    let slot = fresh(&l.ty);
                    slot.data.borrow_mut()[0] = v.clone();
                    slot
                }
                Some(NativeArg::List(slot)) => slot.clone(),
                None => fresh(&l.ty),
            });
        }
        debug_assert!(given.len() == proc.params + usize::from(hidden_param(proc)));
        let mut frame = Frame {
            body: &proc.body,
            locals,
            instance: self.instance,
            natives: self.natives,
            action: self.action,
        };
        let v = frame.exec(&proc.body.stmts)?;
        Ok(v.map(|(v, from)| match &proc.result {
            Some(ty) => convert(v, &from, ty),
            None => v,
        }))
    }

    /// Runs the statements; what they return, if they do.
    pub fn exec(&mut self, stmts: &[Stmt]) -> Result<Option<(Scalar, Type)>, Fault> {
        for s in stmts {
            if let Some(v) = self.exec_one(s)? {
                return Ok(Some(v));
            }
        }
        Ok(None)
    }

    fn exec_one(&mut self, s: &Stmt) -> Result<Option<(Scalar, Type)>, Fault> {
        match &s.kind {
            StmtKind::Assign(p, e) => {
                let v = self.eval_as(e, &p.ty)?;
                let slot = self.place(p)?;
                slot.data.borrow_mut()[slot.offset] = v;
            }
            StmtKind::Copy { to, from } => {
                let source = self.place(from)?;
                let target = self.place(to)?;
                let (ft, tt) = (innermost(&from.ty), innermost(&to.ty));
                let (fd, td) = (dimensions(&from.ty), dimensions(&to.ty));
                let n: usize = fd.iter().map(|n| *n as usize).product();
                let values: Vec<Scalar> =
                    source.data.borrow()[source.offset..source.offset + n].to_vec();
                let mut data = target.data.borrow_mut();
                for (k, v) in values.into_iter().enumerate() {
                    // The same position in a list with longer rows.
                    let (mut rest, mut at, mut stride) = (k, 0, 1);
                    for (f, t) in fd.iter().zip(&td).rev() {
                        at += rest % *f as usize * stride;
                        rest /= *f as usize;
                        stride *= *t as usize;
                    }
                    data[target.offset + at] = convert(v, ft, tt);
                }
            }
            StmtKind::Call(p, args) => {
                self.call(*p, args, s.span)?;
            }
            StmtKind::If(c, yes, no) => {
                let taken = if int(self.eval(c)?) != 0 { yes } else { no };
                return self.exec(taken);
            }
            StmtKind::While(c, body) => {
                while int(self.eval(c)?) != 0 {
                    if let Some(v) = self.exec(body)? {
                        return Ok(Some(v));
                    }
                }
            }
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => {
                let (first, last) = (int(self.eval(from)?), int(self.eval(to)?));
                let ty = self.body.locals[*var].ty.clone();
                let mut k = first;
                while k <= last {
                    self.locals[*var].data.borrow_mut()[0] = Scalar::Int(fit(k, &ty));
                    if let Some(v) = self.exec(body)? {
                        return Ok(Some(v));
                    }
                    k += 1;
                }
            }
            StmtKind::Return(e) => {
                let v = self.eval(e)?;
                return Ok(Some((v, e.ty.clone())));
            }
            StmtKind::Print { parts, newline } => {
                for e in parts {
                    let v = self.eval(e)?;
                    self.instance.printed.push_str(&written(v, &e.ty));
                }
                if *newline {
                    self.instance.printed.push('\n');
                }
            }
        }
        Ok(None)
    }
}
