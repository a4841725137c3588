// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executes statements and expressions.

use super::{Fault, FaultKind, Instance, Native, NativeArg, Slot, fresh};
use crate::ir::*;
use crate::operators::types::compared_in;
use crate::operators::value::{self, Scalar, convert};
use crate::ranges::{dimensions, hidden_param, innermost};
use std::collections::HashMap;

/// The execution of one body.
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

    /// The storage of a variable, starting at the element that a place denotes.
    fn place(&mut self, p: &Place) -> Result<Slot, Fault> {
        let dims = dimensions(self.var_type(p.var));
        let mut slot = self.slot(p.var);
        for (d, i) in p.indices.iter().enumerate() {
            let at = self.eval(i)?.int();
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
            ExprKind::Const(v) => Ok(Scalar::of(v, &e.ty)),
            ExprKind::Load(p) => {
                let slot = self.place(p)?;
                let v = slot.data.borrow()[slot.offset].clone();
                Ok(v)
            }
            ExprKind::Unary(op, x) => {
                let v = self.eval(x)?;
                Ok(value::unary(*op, &e.ty, v))
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, e),
            ExprKind::If(c, a, b) => {
                let taken = if self.eval(c)?.int() != 0 { a } else { b };
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
        Ok(convert(v, ty))
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr) -> Result<Scalar, Fault> {
        let truth = |b: bool| Ok(Scalar::Int(i128::from(b)));
        match op {
            BinOp::And => {
                let both = self.eval(a)?.int() != 0 && self.eval(b)?.int() != 0;
                truth(both)
            }
            BinOp::Or => {
                let any = self.eval(a)?.int() != 0 || self.eval(b)?.int() != 0;
                truth(any)
            }
            _ if value::is_comparison(op) => {
                let ty = compared_in(&a.ty, &b.ty);
                let (x, y) = (self.eval(a)?, self.eval(b)?);
                truth(value::compare(op, &ty, x, y))
            }
            _ => {
                let (x, y) = (self.eval(a)?, self.eval(b)?);
                match value::binary(op, &e.ty, (x, &a.ty), (y, &b.ty)) {
                    Ok(v) => Ok(v),
                    Err(value::DivisionByZero) => {
                        let text = "division by zero".to_string();
                        self.fault(FaultKind::Division, e.span, text)
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
            return Ok(proc.result.as_ref().map(|ty| convert(v, ty)));
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
        Ok(v.map(|v| match &proc.result {
            Some(ty) => convert(v, ty),
            None => v,
        }))
    }

    /// Executes statements; returns the value of a `return`, if any.
    pub fn exec(&mut self, stmts: &[Stmt]) -> Result<Option<Scalar>, Fault> {
        for s in stmts {
            if let Some(v) = self.exec_one(s)? {
                return Ok(Some(v));
            }
        }
        Ok(None)
    }

    fn exec_one(&mut self, s: &Stmt) -> Result<Option<Scalar>, Fault> {
        match &s.kind {
            StmtKind::Assign(p, e) => {
                let v = self.eval_as(e, &p.ty)?;
                let slot = self.place(p)?;
                slot.data.borrow_mut()[slot.offset] = v;
            }
            StmtKind::Copy { to, from } => {
                let source = self.place(from)?;
                let target = self.place(to)?;
                let tt = innermost(&to.ty);
                let (fd, td) = (dimensions(&from.ty), dimensions(&to.ty));
                let n: usize = fd.iter().map(|n| *n as usize).product();
                let values: Vec<Scalar> =
                    source.data.borrow()[source.offset..source.offset + n].to_vec();
                let mut data = target.data.borrow_mut();
                for (k, v) in values.into_iter().enumerate() {
                    // The same position in the target; its rows may be longer.
                    let (mut rest, mut at, mut stride) = (k, 0, 1);
                    for (f, t) in fd.iter().zip(&td).rev() {
                        at += rest % *f as usize * stride;
                        rest /= *f as usize;
                        stride *= *t as usize;
                    }
                    data[target.offset + at] = convert(v, tt);
                }
            }
            StmtKind::Call(p, args) => {
                self.call(*p, args, s.span)?;
            }
            StmtKind::If(c, yes, no) => {
                let taken = if self.eval(c)?.int() != 0 { yes } else { no };
                return self.exec(taken);
            }
            StmtKind::While(c, body) => {
                while self.eval(c)?.int() != 0 {
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
                let (first, last) = (self.eval(from)?.int(), self.eval(to)?.int());
                let ty = self.body.locals[*var].ty.clone();
                let mut k = first;
                while k <= last {
                    self.locals[*var].data.borrow_mut()[0] = convert(Scalar::Int(k), &ty);
                    if let Some(v) = self.exec(body)? {
                        return Ok(Some(v));
                    }
                    k += 1;
                }
            }
            StmtKind::Return(e) => return Ok(Some(self.eval(e)?)),
            StmtKind::Print { parts, newline } => {
                for e in parts {
                    let v = self.eval(e)?;
                    self.instance.printed.push_str(&v.text(&e.ty));
                }
                if *newline {
                    self.instance.printed.push('\n');
                }
            }
        }
        Ok(None)
    }
}
