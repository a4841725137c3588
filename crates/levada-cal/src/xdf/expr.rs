// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions of networks: `<Expr>` elements and their values.
//!
//! Networks compute little (a width, a capacity, a parameter passed down). Operators have the meaning that they
//! have in CAL ([`crate::operators`]), on numbers without a declared width: integers are exact, and a result beyond
//! 64 bits is an error instead of wrapping; floating point is `double`.

use crate::ir::{BinOp, Span, Type, UnOp, Value};
use crate::operators::value::{self, Scalar, is_comparison};
use std::collections::HashMap;

/// The types that networks compute in.
pub const INT64: Type = Type::Int {
    bits: 64,
    signed: true,
};
pub const DOUBLE: Type = Type::Float { bits: 64 };

#[derive(Clone, Debug)]
pub enum Expr {
    Literal(Value, Span),
    Var(String, Span),
    Neg(Box<Expr>, Span),
    Not(Box<Expr>, Span),
    BitNot(Box<Expr>, Span),
    Binary(Op, Box<Expr>, Box<Expr>, Span),
    List(Vec<Expr>, Span),
}

/// The operators that networks know: those of CAL and the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Cal(BinOp),
    Pow,
}

impl Op {
    pub fn from_name(name: &str) -> Option<Op> {
        Some(Op::Cal(match name {
            "+" => BinOp::Add,
            "-" => BinOp::Sub,
            "*" => BinOp::Mul,
            "/" | "div" => BinOp::Div,
            "mod" | "%" => BinOp::Mod,
            "<<" => BinOp::Shl,
            ">>" => BinOp::Shr,
            "&" => BinOp::BitAnd,
            "|" => BinOp::BitOr,
            "^" => BinOp::BitXor,
            "=" | "==" => BinOp::Eq,
            "!=" => BinOp::Ne,
            "<" => BinOp::Lt,
            "<=" => BinOp::Le,
            ">" => BinOp::Gt,
            ">=" => BinOp::Ge,
            "and" | "&&" => BinOp::And,
            "or" | "||" => BinOp::Or,
            "**" => return Some(Op::Pow),
            _ => return None,
        }))
    }

    /// The precedence; higher binds tighter.
    pub fn precedence(self) -> u8 {
        match self {
            Op::Cal(BinOp::Or) => 1,
            Op::Cal(BinOp::And) => 2,
            Op::Cal(BinOp::BitOr) => 3,
            Op::Cal(BinOp::BitXor) => 4,
            Op::Cal(BinOp::BitAnd) => 5,
            Op::Cal(BinOp::Eq | BinOp::Ne) => 6,
            Op::Cal(BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge) => 7,
            Op::Cal(BinOp::Shl | BinOp::Shr) => 8,
            Op::Cal(BinOp::Add | BinOp::Sub) => 9,
            Op::Cal(BinOp::Mul | BinOp::Div | BinOp::Mod) => 10,
            Op::Pow => 11,
        }
    }
}

/// Builds the tree of `first op e op e ...` by precedence; equal operators group to the left.
pub fn by_precedence(first: Expr, rest: Vec<(Op, Expr)>, span: Span) -> Expr {
    let mut operands = vec![first];
    let mut operators: Vec<Op> = Vec::new();
    fn reduce(operands: &mut Vec<Expr>, operators: &mut Vec<Op>, span: Span) {
        if let (Some(op), Some(right), Some(left)) =
            (operators.pop(), operands.pop(), operands.pop())
        {
            operands.push(Expr::Binary(op, Box::new(left), Box::new(right), span));
        }
    }
    for (op, operand) in rest {
        while operators
            .last()
            .is_some_and(|top| top.precedence() >= op.precedence())
        {
            reduce(&mut operands, &mut operators, span);
        }
        operators.push(op);
        operands.push(operand);
    }
    while !operators.is_empty() {
        reduce(&mut operands, &mut operators, span);
    }
    operands.swap_remove(0)
}

/// Why an expression has no value, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    pub span: Span,
    pub code: &'static str,
    pub message: String,
}

fn fail<T>(span: Span, code: &'static str, message: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError {
        span,
        code,
        message: message.into(),
    })
}

pub type Env = HashMap<String, Value>;

impl Expr {
    pub fn span(&self) -> Span {
        match self {
            Expr::Literal(_, s)
            | Expr::Var(_, s)
            | Expr::Neg(_, s)
            | Expr::Not(_, s)
            | Expr::BitNot(_, s)
            | Expr::Binary(_, _, _, s)
            | Expr::List(_, s) => *s,
        }
    }

    /// The names that the expression reads, with their places.
    pub fn names(&self, out: &mut Vec<(String, Span)>) {
        match self {
            Expr::Literal(..) => {}
            Expr::Var(name, span) => out.push((name.clone(), *span)),
            Expr::Neg(e, _) | Expr::Not(e, _) | Expr::BitNot(e, _) => e.names(out),
            Expr::Binary(_, a, b, _) => {
                a.names(out);
                b.names(out);
            }
            Expr::List(list, _) => list.iter().for_each(|e| e.names(out)),
        }
    }

    pub fn eval(&self, env: &Env) -> Result<Value, EvalError> {
        match self {
            Expr::Literal(value, _) => Ok(value.clone()),
            Expr::Var(name, span) => match env.get(name) {
                Some(value) => Ok(value.clone()),
                None => fail(
                    *span,
                    "unknown-name",
                    format!("no parameter or variable `{name}` in this network"),
                ),
            },
            Expr::Neg(e, span) => match e.eval(env)? {
                Value::Int(i) => ints(BinOp::Sub, 0, i, *span),
                v @ Value::Float(_) => Ok(unary(UnOp::Neg, &v, &DOUBLE)),
                v => mismatch(*span, "-", &v),
            },
            Expr::Not(e, span) => match e.eval(env)? {
                Value::Bool(b) => Ok(Value::Bool(!b)),
                v => mismatch(*span, "not", &v),
            },
            Expr::BitNot(e, span) => match e.eval(env)? {
                v @ Value::Int(_) => Ok(unary(UnOp::BitNot, &v, &INT64)),
                v => mismatch(*span, "~", &v),
            },
            Expr::Binary(op, a, b, span) => binary(*op, a.eval(env)?, b.eval(env)?, *span),
            Expr::List(list, _) => Ok(Value::List(
                list.iter().map(|e| e.eval(env)).collect::<Result<_, _>>()?,
            )),
        }
    }
}

fn unary(op: UnOp, v: &Value, ty: &Type) -> Value {
    value::unary(op, ty, Scalar::of(v, ty)).constant(ty)
}

fn overflow(span: Span) -> Result<Value, EvalError> {
    fail(span, "overflow", "the value does not fit into 64 bits")
}

/// The name of a value's kind in messages.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "a bool",
        Value::Int(_) => "an integer",
        Value::Float(_) => "a float",
        Value::String(_) => "a String",
        Value::List(_) => "a List",
    }
}

fn mismatch(span: Span, op: &str, value: &Value) -> Result<Value, EvalError> {
    fail(
        span,
        "type-mismatch",
        format!("`{op}` cannot be applied to {}", kind_of(value)),
    )
}

/// The text of a value as `print` in CAL shows it.
fn text_of(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(_) => Scalar::of(value, &INT64).text(&INT64),
        Value::Float(_) => Scalar::of(value, &DOUBLE).text(&DOUBLE),
        Value::String(s) => s.clone(),
        Value::List(list) => {
            let parts: Vec<String> = list.iter().map(text_of).collect();
            format!("[{}]", parts.join(", "))
        }
    }
}

fn binary(op: Op, a: Value, b: Value, span: Span) -> Result<Value, EvalError> {
    use BinOp::*;
    let Op::Cal(cal) = op else {
        return match (&a, &b) {
            (Value::Int(x), Value::Int(y)) => match u32::try_from(*y) {
                Ok(y) => x
                    .checked_pow(y)
                    .map_or(overflow(span), |v| Ok(Value::Int(v))),
                Err(_) => fail(span, "range", "the exponent must be 0 or more and small"),
            },
            _ => fail(span, "type-mismatch", "`**` takes two integers"),
        };
    };
    match (a, b) {
        (Value::Bool(x), Value::Bool(y)) => Ok(Value::Bool(match cal {
            And => x && y,
            Or => x || y,
            Eq => x == y,
            Ne => x != y,
            _ => return fail(span, "type-mismatch", "this operator does not take bools"),
        })),
        (Value::Int(x), Value::Int(y)) => ints(cal, x, y, span),
        (Value::Float(x), Value::Float(y)) => floats(cal, x, y, span),
        (Value::Int(x), Value::Float(y)) => floats(cal, x as f64, y, span),
        (Value::Float(x), Value::Int(y)) => floats(cal, x, y as f64, span),
        (Value::String(x), y) if cal == Add => Ok(Value::String(x + &text_of(&y))),
        (x, Value::String(y)) if cal == Add => Ok(Value::String(text_of(&x) + &y)),
        (Value::String(x), Value::String(y)) if cal == Eq => Ok(Value::Bool(x == y)),
        (Value::String(x), Value::String(y)) if cal == Ne => Ok(Value::Bool(x != y)),
        (x, y) => fail(
            span,
            "type-mismatch",
            format!("no such operation on {} and {}", kind_of(&x), kind_of(&y)),
        ),
    }
}

fn ints(op: BinOp, x: i64, y: i64, span: Span) -> Result<Value, EvalError> {
    use BinOp::*;
    let (left, right) = (i128::from(x), i128::from(y));
    match op {
        And | Or => return fail(span, "type-mismatch", "`and` and `or` take bools"),
        // There is no width for taking the count modulo.
        Shl if !(0..64).contains(&y) => return overflow(span),
        Shr if !(0..64).contains(&y) => {
            return fail(span, "range", "the shift count must lie between 0 and 63");
        }
        _ if is_comparison(op) => {
            return Ok(Value::Bool(value::holds(op, Some(left.cmp(&right)))));
        }
        _ => {}
    }
    match value::exact(op, left, right, 64) {
        Some(exact) => i64::try_from(exact).map_or(overflow(span), |v| Ok(Value::Int(v))),
        None => fail(span, "division-by-zero", "division by zero"),
    }
}

fn floats(op: BinOp, x: f64, y: f64, span: Span) -> Result<Value, EvalError> {
    use BinOp::*;
    let (a, b) = (Scalar::Float(x), Scalar::Float(y));
    if is_comparison(op) {
        return Ok(Value::Bool(value::compare(op, &DOUBLE, a, b)));
    }
    if !matches!(op, Add | Sub | Mul | Div) {
        return fail(span, "type-mismatch", "this operator does not take floats");
    }
    let result = value::binary(op, &DOUBLE, (a, &DOUBLE), (b, &DOUBLE));
    Ok(result.expect("no integers are divided").constant(&DOUBLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(i: i64) -> Expr {
        Expr::Literal(Value::Int(i), Span::default())
    }

    fn int(e: &Expr) -> i64 {
        match e.eval(&Env::new()) {
            Ok(Value::Int(i)) => i,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn products_bind_tighter_than_sums_and_group_to_the_left() {
        let op = |n: &str| Op::from_name(n).unwrap();
        let e = by_precedence(
            lit(2),
            vec![(op("+"), lit(3)), (op("*"), lit(4)), (op("-"), lit(1))],
            Span::default(),
        );
        assert_eq!(int(&e), 13);
        let e = by_precedence(
            lit(100),
            vec![(op("/"), lit(5)), (op("/"), lit(2))],
            Span::default(),
        );
        assert_eq!(int(&e), 10);
    }

    #[test]
    fn what_has_no_value_says_why() {
        let sum = |a: Expr, op: &str, b: Expr| {
            by_precedence(a, vec![(Op::from_name(op).unwrap(), b)], Span::default())
                .eval(&Env::new())
                .map_err(|e| e.code)
        };
        assert!(matches!(sum(lit(1), "/", lit(0)), Err("division-by-zero")));
        assert!(matches!(sum(lit(i64::MIN), "/", lit(-1)), Err("overflow")));
        assert!(matches!(sum(lit(i64::MAX), "+", lit(1)), Err("overflow")));
        assert!(matches!(sum(lit(1), "<<", lit(64)), Err("overflow")));
        assert!(matches!(sum(lit(2), "**", lit(99)), Err("overflow")));
        assert!(matches!(sum(lit(1), "and", lit(1)), Err("type-mismatch")));
        let text = Expr::Literal(Value::String("n".into()), Span::default());
        assert!(matches!(sum(text, "+", lit(7)), Ok(Value::String(s)) if s == "n7"));
    }
}
