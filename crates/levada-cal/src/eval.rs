// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation at compile time: sizes, parameters, initial values, constants in expressions.
//!
//! It computes exactly what the compiled program would: in machine types, wrapping where they do.

use crate::check::hir::{Expr, ExprKind, Generator, Global, Place, Proc, ProcBody, Var};
use crate::check::types::{self, Ty};
use crate::half;
use crate::ir::{BinOp, Span, UnOp, Value};

/// How much work one evaluation may be.
const MAX_STEPS: u64 = 8_000_000;
const MAX_DEPTH: u32 = 100;

#[derive(Clone, Debug)]
pub enum Stop {
    /// It depends on what is not known at compile time: a state variable, a native function, a
    /// parameter without a value.
    NotConstant(Span),
    TooMuchWork(Span),
    /// It would fail when run.
    Fault(Span, String),
}

pub struct Evaluator<'a> {
    globals: &'a [Global],
    procs: &'a [Proc],
    steps: u64,
    depth: u32,
    initial: bool,
}

type Env = Vec<Option<Value>>;

impl<'a> Evaluator<'a> {
    pub fn new(globals: &'a [Global], procs: &'a [Proc]) -> Evaluator<'a> {
        Evaluator {
            globals,
            procs,
            steps: 0,
            depth: 0,
            initial: false,
        }
    }

    /// State variables stand for their initial values.
    pub fn initial(self) -> Evaluator<'a> {
        Evaluator {
            initial: true,
            ..self
        }
    }

    /// The value of an expression that stands in a body with `locals` variables.
    pub fn run(&mut self, expr: &Expr, locals: usize) -> Result<Value, Stop> {
        let mut env = vec![None; locals];
        self.expr(expr, &mut env)
    }

    /// The same for an expression without variables, giving up early.
    pub fn cheaply(&mut self, expr: &Expr) -> Result<Value, Stop> {
        self.steps = MAX_STEPS - MAX_STEPS.min(20_000);
        self.run(expr, 0)
    }

    /// The same in a body with `locals` variables, none of them known.
    pub fn moderately(&mut self, expr: &Expr, locals: usize) -> Result<Value, Stop> {
        self.steps = MAX_STEPS - MAX_STEPS.min(500_000);
        self.run(expr, locals)
    }

    fn step(&mut self, span: Span) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            Err(Stop::TooMuchWork(span))
        } else {
            Ok(())
        }
    }

    fn expr(&mut self, expr: &Expr, env: &mut Env) -> Result<Value, Stop> {
        self.step(expr.span)?;
        match &expr.kind {
            ExprKind::Const(value) => Ok(value.clone()),
            ExprKind::Load(place) => self.load(place, env),
            ExprKind::Unary(op, a) => {
                let value = self.expr(a, env)?;
                Ok(unary(
                    *op,
                    &expr.machine,
                    convert(value, &a.machine, &expr.machine),
                ))
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let left = self.expr(a, env)?;
                match (op, &left) {
                    (BinOp::And, Value::Bool(false)) | (BinOp::Or, Value::Bool(true)) => Ok(left),
                    _ => self.expr(b, env),
                }
            }
            ExprKind::Binary(op, a, b) => {
                let left = self.expr(a, env)?;
                let right = self.expr(b, env)?;
                binary(*op, &expr.machine, (left, &a.machine), (right, &b.machine))
                    .map_err(|message| Stop::Fault(expr.span, message))
            }
            ExprKind::If { arms, otherwise } => {
                for (cond, value) in arms {
                    if let Value::Bool(true) = self.expr(cond, env)? {
                        let got = self.expr(value, env)?;
                        return Ok(convert(got, &value.machine, &expr.machine));
                    }
                }
                let got = self.expr(otherwise, env)?;
                Ok(convert(got, &otherwise.machine, &expr.machine))
            }
            ExprKind::Call(id, args) => self.call(*id, args, expr, env),
            ExprKind::List { items, generators } => {
                let mut out = Vec::new();
                let elem = match &expr.machine {
                    Ty::List { elem, .. } => elem.as_ref().clone(),
                    _ => Ty::Unknown,
                };
                self.list(items, generators, &elem, env, &mut out)?;
                Ok(Value::List(out))
            }
            ExprKind::Error => Err(Stop::NotConstant(expr.span)),
        }
    }

    fn list(
        &mut self,
        items: &[Expr],
        generators: &[Generator],
        elem: &Ty,
        env: &mut Env,
        out: &mut Vec<Value>,
    ) -> Result<(), Stop> {
        match generators.split_first() {
            Some((first, rest)) => {
                for i in first.from..=first.to {
                    env[first.var] = Some(Value::Int(i));
                    self.list(items, rest, elem, env, out)?;
                }
            }
            None => {
                for item in items {
                    let value = self.expr(item, env)?;
                    out.push(convert(value, &item.machine, elem));
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, place: &Place, env: &mut Env) -> Result<Value, Stop> {
        let mut indices = Vec::with_capacity(place.indices.len());
        for index in &place.indices {
            match self.expr(index, env)? {
                Value::Int(i) => indices.push((i, index.span)),
                _ => return Err(Stop::NotConstant(index.span)),
            }
        }
        let unknown = || Stop::NotConstant(place.span);
        let mut value = match place.var {
            Var::Global(id) => {
                let global = &self.globals[id];
                global
                    .value
                    .as_ref()
                    .filter(|_| global.constant || self.initial)
                    .ok_or_else(unknown)?
            }
            Var::Local(id) => env[id].as_ref().ok_or_else(unknown)?,
        };
        for (i, span) in indices {
            let Value::List(items) = value else {
                return Err(unknown());
            };
            value = usize::try_from(i)
                .ok()
                .and_then(|i| items.get(i))
                .ok_or_else(|| {
                    Stop::Fault(
                        span,
                        format!("index {i} is outside of the list of {}", items.len()),
                    )
                })?;
        }
        if let Value::List(items) = value {
            self.steps += items.len() as u64;
        }
        Ok(value.clone())
    }

    fn call(&mut self, id: usize, args: &[Expr], at: &Expr, env: &mut Env) -> Result<Value, Stop> {
        let proc = &self.procs[id];
        let ProcBody::Function { inits, result } = &proc.body else {
            return Err(Stop::NotConstant(at.span));
        };
        if self.depth >= MAX_DEPTH {
            return Err(Stop::TooMuchWork(at.span));
        }
        let mut inner: Env = vec![None; proc.locals.len()];
        for (i, arg) in args.iter().enumerate() {
            let value = self.expr(arg, env)?;
            inner[i] = Some(fit(
                convert(value, &arg.machine, &proc.locals[i].ty),
                &proc.locals[i].ty,
            ));
        }
        self.depth += 1;
        for (local, init) in inits {
            let value = self.expr(init, &mut inner)?;
            let ty = &proc.locals[*local].ty;
            inner[*local] = Some(fit(convert(value, &init.machine, ty), ty));
        }
        let value = self.expr(result, &mut inner)?;
        self.depth -= 1;
        let ty = proc.result.as_ref().expect("a function has a result");
        Ok(fit(convert(value, &result.machine, ty), ty))
    }
}

/// All bits zero.
pub fn zero(ty: &Ty) -> Value {
    match ty {
        Ty::Bool | Ty::Unknown => Value::Bool(false),
        Ty::Int { .. } => Value::Int(0),
        Ty::Float { .. } => Value::Float(0.0),
        Ty::String => Value::String(String::new()),
        Ty::List { elem, len } => Value::List(vec![zero(elem); len.unwrap_or(0) as usize]),
    }
}

/// A shorter list, filled up with zeros to the length of `ty`.
pub fn fit(value: Value, ty: &Ty) -> Value {
    match (value, ty) {
        (Value::List(items), Ty::List { elem, len }) => {
            let mut items: Vec<Value> = items.into_iter().map(|v| fit(v, elem)).collect();
            if let Some(len) = len
                && items.len() < *len as usize
            {
                items.resize(*len as usize, zero(elem));
            }
            Value::List(items)
        }
        (value, _) => value,
    }
}

/// An integer as a number: 64-bit unsigned ones are kept by their bits.
pub fn number(value: i64, ty: &Ty) -> i128 {
    match ty {
        Ty::Int { signed: false, .. } => i128::from(value as u64),
        _ => i128::from(value),
    }
}

/// `value` as the container of `ty` holds it.
fn wrap(value: i128, ty: &Ty) -> i64 {
    let Ty::Int { signed, .. } = ty else {
        return value as i64;
    };
    match (ty.to_ir().container(), signed) {
        (8, true) => i64::from(value as i8),
        (8, false) => i64::from(value as u8),
        (16, true) => i64::from(value as i16),
        (16, false) => i64::from(value as u16),
        (32, true) => i64::from(value as i32),
        (32, false) => i64::from(value as u32),
        _ => value as i64,
    }
}

fn round(value: f64, ty: &Ty) -> f64 {
    match ty {
        Ty::Float { bits: 64 } => value,
        Ty::Float { bits: 16 } => f64::from(half::nearest(value as f32)),
        _ => f64::from(value as f32),
    }
}

/// A value of type `from` as one of type `to`.
pub fn convert(value: Value, from: &Ty, to: &Ty) -> Value {
    match (value, from, to) {
        (value, _, Ty::Unknown) => value,
        (Value::Int(v), from, Ty::Int { .. }) => Value::Int(wrap(number(v, from), to)),
        (Value::Int(v), from, Ty::Float { .. }) => Value::Float(round(number(v, from) as f64, to)),
        (Value::Float(v), _, Ty::Float { .. }) => Value::Float(round(v, to)),
        (Value::Float(v), _, Ty::Int { .. }) => Value::Int(wrap(v as i128, to)),
        (Value::List(items), Ty::List { elem: from, .. }, Ty::List { elem: to, .. }) => {
            Value::List(items.into_iter().map(|v| convert(v, from, to)).collect())
        }
        (value, _, _) => value,
    }
}

pub fn unary(op: UnOp, machine: &Ty, value: Value) -> Value {
    match (op, value) {
        (UnOp::Not, Value::Bool(b)) => Value::Bool(!b),
        (UnOp::BitNot, Value::Int(v)) => Value::Int(wrap(!number(v, machine), machine)),
        (UnOp::Neg, Value::Int(v)) => Value::Int(wrap(-number(v, machine), machine)),
        (UnOp::Neg, Value::Float(v)) => Value::Float(-v),
        (_, value) => value,
    }
}

/// `a op b`, computed in `machine`; each operand comes with its own type.
pub fn binary(
    op: BinOp,
    machine: &Ty,
    (a, a_ty): (Value, &Ty),
    (b, b_ty): (Value, &Ty),
) -> Result<Value, String> {
    use BinOp::*;
    if let Eq | Ne | Lt | Le | Gt | Ge = op {
        return compare(op, (a, a_ty), (b, b_ty)).ok_or_else(|| "cannot be compared".into());
    }
    match (&a, &b) {
        (Value::Bool(x), Value::Bool(y)) => match op {
            And => return Ok(Value::Bool(*x && *y)),
            Or => return Ok(Value::Bool(*x || *y)),
            _ => {}
        },
        (Value::String(_), _) | (_, Value::String(_)) if op == Add => {
            return Ok(Value::String(text(&a, a_ty) + &text(&b, b_ty)));
        }
        _ => {}
    }
    let count = match &b {
        Value::Int(v) => number(*v, b_ty),
        _ => 0,
    };
    let a = convert(a, a_ty, machine);
    let b = convert(b, b_ty, machine);
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(round(
            match op {
                Add => x + y,
                Sub => x - y,
                Mul => x * y,
                Div => x / y,
                _ => return Err("is not for floating point".into()),
            },
            machine,
        ))),
        (Value::Int(x), Value::Int(y)) => {
            let (x, y) = (number(x, machine), number(y, machine));
            let bits = i128::from(machine.to_ir().container());
            let result = match op {
                Add => x + y,
                Sub => x - y,
                Mul => x.wrapping_mul(y),
                Div | Mod if y == 0 => return Err("divides by zero".into()),
                Div => x / y,
                Mod => x % y,
                Shl => x << count.rem_euclid(bits),
                Shr => x >> count.rem_euclid(bits),
                BitAnd => x & y,
                BitOr => x | y,
                BitXor => x ^ y,
                _ => return Err("is not for integers".into()),
            };
            Ok(Value::Int(wrap(result, machine)))
        }
        _ => Err("cannot be computed".into()),
    }
}

fn compare(op: BinOp, (a, a_ty): (Value, &Ty), (b, b_ty): (Value, &Ty)) -> Option<Value> {
    use std::cmp::Ordering;
    let both = types::join(a_ty, b_ty)?;
    let (a, b) = (convert(a, a_ty, &both), convert(b, b_ty, &both));
    let order = match (&a, &b) {
        (Value::Int(x), Value::Int(y)) => Some(number(*x, &both).cmp(&number(*y, &both))),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
        (Value::String(x), Value::String(y)) => Some(x.cmp(y)),
        (Value::Float(x), Value::Float(y)) => x.partial_cmp(y),
        _ => return None,
    };
    Some(Value::Bool(match op {
        BinOp::Eq => order == Some(Ordering::Equal),
        BinOp::Ne => order != Some(Ordering::Equal),
        BinOp::Lt => order == Some(Ordering::Less),
        BinOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        BinOp::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }))
}

/// As `print` would show it.
fn text(value: &Value, ty: &Ty) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(v) => number(*v, ty).to_string(),
        Value::Float(v) => format!("{v:.6}"),
        Value::String(s) => s.clone(),
        Value::List(_) => String::new(),
    }
}
