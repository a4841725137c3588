// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation at compile time: sizes, parameters, initial values, constants in expressions.
//!
//! It computes exactly what the compiled program would, in machine types, by [`crate::operators`].

use crate::hir::{Expr, ExprKind, Generator, Global, Place, Proc, ProcBody, Stop, Var};
use crate::ir::{BinOp, Span, UnOp, Value};
use crate::operators::types::{compared, printed};
use crate::operators::value::{self, DivisionByZero, Scalar};
use crate::types::Ty;

/// Maximum number of steps of one evaluation.
const STEPS_MAX: u64 = 8_000_000;
/// Maximum number of steps of `Evaluator::cheaply`.
const CHEAP_STEPS_MAX: u64 = 20_000;
/// Maximum number of steps of `Evaluator::moderately`.
const MODERATE_STEPS_MAX: u64 = 500_000;
/// Maximum depth of calls.
const DEPTH_MAX: u32 = 100;

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

    /// State variables have their initial values.
    pub fn initial(self) -> Evaluator<'a> {
        Evaluator {
            initial: true,
            ..self
        }
    }

    /// Evaluates an expression of a body with `locals` variables, none of them known.
    pub fn run(&mut self, expr: &Expr, locals: usize) -> Result<Value, Stop> {
        let mut env = vec![None; locals];
        self.expr(expr, &mut env)
    }

    /// Evaluates an expression without variables, with a limit of `CHEAP_STEPS_MAX`.
    pub fn cheaply(&mut self, expr: &Expr) -> Result<Value, Stop> {
        self.steps = STEPS_MAX - CHEAP_STEPS_MAX;
        self.run(expr, 0)
    }

    /// Like `run`, with a limit of `MODERATE_STEPS_MAX`.
    pub fn moderately(&mut self, expr: &Expr, locals: usize) -> Result<Value, Stop> {
        self.steps = STEPS_MAX - MODERATE_STEPS_MAX;
        self.run(expr, locals)
    }

    fn step(&mut self, span: Span) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
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
                Ok(unary(*op, &expr.machine, (value, &a.machine)))
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
                binary(*op, &expr.machine, (left, a), (right, b)).map_err(|why| match why {
                    NoValue::DivisionByZero => {
                        Stop::Fault(expr.span, "divides by zero".to_string())
                    }
                    NoValue::NotScalars => Stop::NotConstant(expr.span),
                })
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
            ExprKind::Error => Err(Stop::Reported),
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
                if let Some(stop) = &global.no_value {
                    return Err(stop.clone());
                }
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
        if self.depth >= DEPTH_MAX {
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

/// A value of type `from` as one of type `to`.
pub fn convert(value: Value, from: &Ty, to: &Ty) -> Value {
    match (value, from, to) {
        (value, _, Ty::Unknown) => value,
        (Value::List(items), Ty::List { elem: from, .. }, Ty::List { elem: to, .. }) => {
            Value::List(items.into_iter().map(|v| convert(v, from, to)).collect())
        }
        (value @ (Value::Int(_) | Value::Float(_)), from, to) if to.is_number() => {
            let to = to.to_ir();
            value::convert(Scalar::of(&value, &from.to_ir()), &to).constant(&to)
        }
        (value, _, _) => value,
    }
}

/// `op value`, computed in `machine`; the operand comes with its machine type.
pub fn unary(op: UnOp, machine: &Ty, (value, ty): (Value, &Ty)) -> Value {
    if let Value::List(_) = value {
        return value;
    }
    let machine = machine.to_ir();
    value::unary(op, &machine, Scalar::of(&value, &ty.to_ir())).constant(&machine)
}

/// Why an operation has no value at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    DivisionByZero,
    NotScalars,
}

/// `a op b`, computed in `machine`; each value comes with the expression that it is the value of.
pub fn binary(
    op: BinOp,
    machine: &Ty,
    (a, left): (Value, &Expr),
    (b, right): (Value, &Expr),
) -> Result<Value, NoValue> {
    if let (BinOp::Add, Value::List(_), Value::List(_)) = (op, &a, &b) {
        let behind = (
            convert(a, &left.machine, machine),
            convert(b, &right.machine, machine),
        );
        let (Value::List(mut all), Value::List(more)) = behind else {
            return Err(NoValue::NotScalars);
        };
        all.extend(more);
        return Ok(Value::List(all));
    }
    if matches!(a, Value::List(_)) || matches!(b, Value::List(_)) {
        return Err(NoValue::NotScalars);
    }
    match (op, &a, &b) {
        (BinOp::And, Value::Bool(x), Value::Bool(y)) => return Ok(Value::Bool(*x && *y)),
        (BinOp::Or, Value::Bool(x), Value::Bool(y)) => return Ok(Value::Bool(*x || *y)),
        _ => {}
    }
    let (a, b) = match machine {
        Ty::String => {
            let shown = |v, e: &Expr| convert(v, &e.machine, &printed(&e.ty, &e.machine));
            (shown(a, left), shown(b, right))
        }
        _ => (a, b),
    };
    let (left_ty, right_ty) = (left.machine.to_ir(), right.machine.to_ir());
    let (a, b) = (Scalar::of(&a, &left_ty), Scalar::of(&b, &right_ty));
    if value::is_comparison(op) {
        let ty = compared((&left.ty, &left.machine), (&right.ty, &right.machine));
        let ty = ty.ok_or(NoValue::NotScalars)?.to_ir();
        return Ok(Value::Bool(value::compare(op, &ty, a, b)));
    }
    let ty = machine.to_ir();
    match value::binary(op, &ty, (a, &left_ty), (b, &right_ty)) {
        Ok(value) => Ok(value.constant(&ty)),
        Err(DivisionByZero) => Err(NoValue::DivisionByZero),
    }
}
