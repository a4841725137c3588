// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions of networks: what `<Expr>` elements say, and their values.
//!
//! Networks compute little (a width, a capacity, a parameter handed down), so evaluation works on
//! [`Value`]s: integers are 64 bits wide and an overflow is an error, not a wrap.

use crate::ir::{BinOp, Span, Value};
use std::collections::HashMap;

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

    /// Higher binds tighter.
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
                Value::Int(i) => match i.checked_neg() {
                    Some(i) => Ok(Value::Int(i)),
                    None => overflow(*span),
                },
                Value::Float(f) => Ok(Value::Float(-f)),
                v => mismatch(*span, "-", &v),
            },
            Expr::Not(e, span) => match e.eval(env)? {
                Value::Bool(b) => Ok(Value::Bool(!b)),
                v => mismatch(*span, "not", &v),
            },
            Expr::BitNot(e, span) => match e.eval(env)? {
                Value::Int(i) => Ok(Value::Int(!i)),
                v => mismatch(*span, "~", &v),
            },
            Expr::Binary(op, a, b, span) => binary(*op, a.eval(env)?, b.eval(env)?, *span),
            Expr::List(list, _) => Ok(Value::List(
                list.iter().map(|e| e.eval(env)).collect::<Result<_, _>>()?,
            )),
        }
    }
}

fn overflow(span: Span) -> Result<Value, EvalError> {
    fail(span, "overflow", "the value does not fit into 64 bits")
}

/// What a value is called in messages.
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

fn text_of(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
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
    let shift = || u32::try_from(y).ok().filter(|s| *s < 63);
    let value = match op {
        Add => x.checked_add(y),
        Sub => x.checked_sub(y),
        Mul => x.checked_mul(y),
        Div | Mod if y == 0 => return fail(span, "division-by-zero", "division by zero"),
        Div => x.checked_div(y),
        Mod => x.checked_rem(y),
        Shl => shift().and_then(|s| x.checked_mul(1 << s)),
        Shr => match shift() {
            Some(s) => Some(x >> s),
            None => return fail(span, "range", "the shift count must lie between 0 and 62"),
        },
        BitAnd => Some(x & y),
        BitOr => Some(x | y),
        BitXor => Some(x ^ y),
        Eq => return Ok(Value::Bool(x == y)),
        Ne => return Ok(Value::Bool(x != y)),
        Lt => return Ok(Value::Bool(x < y)),
        Le => return Ok(Value::Bool(x <= y)),
        Gt => return Ok(Value::Bool(x > y)),
        Ge => return Ok(Value::Bool(x >= y)),
        And | Or => return fail(span, "type-mismatch", "`and` and `or` take bools"),
    };
    value.map_or(overflow(span), |v| Ok(Value::Int(v)))
}

fn floats(op: BinOp, x: f64, y: f64, span: Span) -> Result<Value, EvalError> {
    use BinOp::*;
    Ok(match op {
        Add => Value::Float(x + y),
        Sub => Value::Float(x - y),
        Mul => Value::Float(x * y),
        Div => Value::Float(x / y),
        Eq => Value::Bool(x == y),
        Ne => Value::Bool(x != y),
        Lt => Value::Bool(x < y),
        Le => Value::Bool(x <= y),
        Gt => Value::Bool(x > y),
        Ge => Value::Bool(x >= y),
        _ => return fail(span, "type-mismatch", "this operator does not take floats"),
    })
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
