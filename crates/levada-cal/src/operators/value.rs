// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The values of operations: integers are computed exactly and then wrapped to the container of their type;
//! floating point is rounded to its type after each operation.

use super::float16;
use crate::ir::{BinOp, Type, UnOp, Value};
use std::cmp::Ordering;
use std::rc::Rc;

/// A scalar. Integers and Booleans are exact; floats of 16 and 32 bits have been rounded to that.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Int(i128),
    Float(f64),
    Text(Rc<str>),
}

/// The only failure of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisionByZero;

impl Scalar {
    /// A constant of a scalar type: an `i64` holds the bits of an unsigned 64-bit one.
    pub fn of(value: &Value, ty: &Type) -> Scalar {
        let exact = match value {
            Value::Bool(b) => Scalar::Int(i128::from(*b)),
            Value::Int(i) => match ty {
                Type::Int { signed: false, .. } => Scalar::Int(i128::from(*i as u64)),
                _ => Scalar::Int(i128::from(*i)),
            },
            Value::Float(f) => Scalar::Float(*f),
            Value::String(s) => Scalar::Text(s.as_str().into()),
            Value::List(_) => unreachable!("a list is no scalar"),
        };
        convert(exact, ty)
    }

    /// The scalar as a constant of its type.
    pub fn constant(&self, ty: &Type) -> Value {
        match (self, ty) {
            (Scalar::Int(i), Type::Bool) => Value::Bool(*i != 0),
            // The low 64 bits.
            (Scalar::Int(i), _) => Value::Int(*i as i64),
            (Scalar::Float(f), _) => Value::Float(*f),
            (Scalar::Text(s), _) => Value::String(s.to_string()),
        }
    }

    /// An integer or Boolean as a number.
    pub fn int(&self) -> i128 {
        match self {
            Scalar::Int(i) => *i,
            Scalar::Float(f) => *f as i128,
            Scalar::Text(_) => 0,
        }
    }

    /// The printed text. NaN has no sign, since processors choose it differently.
    pub fn text(&self, ty: &Type) -> String {
        match (self, ty) {
            (Scalar::Int(i), Type::Bool) => (*i != 0).to_string(),
            (Scalar::Int(i), _) => i.to_string(),
            (Scalar::Float(f), _) if f.is_nan() => "nan".to_string(),
            (Scalar::Float(f), _) => format!("{f:.6}"),
            (Scalar::Text(t), _) => t.to_string(),
        }
    }
}

/// The lowest `bits` of `v`, read as signed or not.
pub fn wrap(v: i128, bits: u8, signed: bool) -> i128 {
    let low = v.rem_euclid(1i128 << bits);
    if signed && low >= 1i128 << (bits - 1) {
        low - (1i128 << bits)
    } else {
        low
    }
}

/// An exact integer as a type's container holds it.
fn held(v: i128, ty: &Type) -> i128 {
    match ty {
        Type::Int { signed, .. } => wrap(v, ty.container(), *signed),
        Type::Bool => i128::from(v != 0),
        _ => v,
    }
}

/// A number as a floating-point type holds it.
pub fn round(v: f64, ty: &Type) -> f64 {
    match ty {
        Type::Float { bits: 64 } => v,
        Type::Float { bits: 16 } => f64::from(float16::nearest(v as f32)),
        _ => f64::from(v as f32),
    }
}

/// `v` converted to `to`: integers wrap; floating point is rounded to nearest. Floating point to integer truncates
/// toward zero, saturates at 64 bits, and then wraps; NaN becomes 0.
pub fn convert(v: Scalar, to: &Type) -> Scalar {
    match (v, to) {
        (Scalar::Int(i), Type::Float { bits: 64 }) => Scalar::Float(i as f64),
        // Rounded once: conversion by way of `double` would round twice.
        (Scalar::Int(i), Type::Float { .. }) => Scalar::Float(round(f64::from(i as f32), to)),
        (Scalar::Int(i), ty) => Scalar::Int(held(i, ty)),
        (Scalar::Float(f), Type::Float { .. }) => Scalar::Float(round(f, to)),
        (Scalar::Float(f), ty) => Scalar::Int(held(i128::from(f as i64), ty)),
        (text, _) => text,
    }
}

/// `op v`, computed in `ty`.
pub fn unary(op: UnOp, ty: &Type, v: Scalar) -> Scalar {
    match (op, convert(v, ty)) {
        (UnOp::Neg, Scalar::Float(f)) => Scalar::Float(-f),
        (UnOp::Neg, v) => Scalar::Int(held(-v.int(), ty)),
        (UnOp::Not, v) => Scalar::Int(i128::from(v.int() == 0)),
        (UnOp::BitNot, v) => Scalar::Int(held(!v.int(), ty)),
    }
}

/// The effective shift count in `bits` bits: the count modulo the width.
pub fn shift_count(count: i128, bits: u8) -> u32 {
    count.rem_euclid(i128::from(bits)) as u32
}

/// `x op y` for an operation on integers with an integer result, before it wraps; `bits` is the width for shifts.
/// `None` for a division by zero. A product is exact in its low 127 bits.
pub fn exact(op: BinOp, x: i128, y: i128, bits: u8) -> Option<i128> {
    Some(match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Div | BinOp::Mod if y == 0 => return None,
        BinOp::Div => x / y,
        BinOp::Mod => x % y,
        BinOp::Shl => x << shift_count(y, bits),
        BinOp::Shr => x >> shift_count(y, bits),
        BinOp::BitAnd => x & y,
        BinOp::BitOr => x | y,
        BinOp::BitXor => x ^ y,
        _ => i128::from(holds(op, Some(x.cmp(&y)))),
    })
}

/// Whether a comparison holds where the operands are in this order; `None`: in no order.
pub fn holds(op: BinOp, order: Option<Ordering>) -> bool {
    match op {
        BinOp::Eq => order.is_some_and(Ordering::is_eq),
        BinOp::Ne => order.is_none_or(Ordering::is_ne),
        BinOp::Lt => order.is_some_and(Ordering::is_lt),
        BinOp::Le => order.is_some_and(Ordering::is_le),
        BinOp::Gt => order.is_some_and(Ordering::is_gt),
        _ => order.is_some_and(Ordering::is_ge),
    }
}

pub fn is_comparison(op: BinOp) -> bool {
    use BinOp::*;
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// `a op b` of which both sides are converted to `ty`: the type of the comparison.
pub fn compare(op: BinOp, ty: &Type, a: Scalar, b: Scalar) -> bool {
    let order = match (convert(a, ty), convert(b, ty)) {
        (Scalar::Int(x), Scalar::Int(y)) => Some(x.cmp(&y)),
        (Scalar::Float(x), Scalar::Float(y)) => x.partial_cmp(&y),
        (Scalar::Text(x), Scalar::Text(y)) => Some(x.cmp(&y)),
        _ => None,
    };
    holds(op, order)
}

/// `a op b`, computed in `ty`, where it is neither a comparison nor lazy; each operand comes with its
/// own type.
pub fn binary(
    op: BinOp,
    ty: &Type,
    (a, a_ty): (Scalar, &Type),
    (b, b_ty): (Scalar, &Type),
) -> Result<Scalar, DivisionByZero> {
    if *ty == Type::String {
        return Ok(Scalar::Text((a.text(a_ty) + &b.text(b_ty)).as_str().into()));
    }
    if let Type::Float { .. } = ty {
        let (Scalar::Float(x), Scalar::Float(y)) = (convert(a, ty), convert(b, ty)) else {
            unreachable!("both are converted");
        };
        // For 32-bit operands, the 64-bit result rounded to 32 bits equals the 32-bit result.
        let v = match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x * y,
            BinOp::Div => x / y,
            _ => x % y,
        };
        return Ok(Scalar::Float(round(v, ty)));
    }
    // The count of a shift keeps its own type.
    let y = match op {
        BinOp::Shl | BinOp::Shr => b.int(),
        _ => convert(b, ty).int(),
    };
    match exact(op, convert(a, ty).int(), y, ty.container()) {
        Some(v) => Ok(Scalar::Int(held(v, ty))),
        None => Err(DivisionByZero),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn int(bits: u8) -> Type {
        Type::Int { bits, signed: true }
    }

    const fn uint(bits: u8) -> Type {
        Type::Int {
            bits,
            signed: false,
        }
    }

    fn of(op: BinOp, ty: &Type, x: i128, y: i128) -> Option<i128> {
        let (x, y) = ((Scalar::Int(x), ty), (Scalar::Int(y), &int(64)));
        binary(op, ty, x, y).ok().map(|v| v.int())
    }

    #[test]
    fn integers_wrap_where_they_do_not_fit() {
        let (min32, min64) = (i128::from(i32::MIN), i128::from(i64::MIN));
        let max64 = i128::from(u64::MAX);
        let rows = [
            (BinOp::Add, int(32), -min32 - 1, 1, Some(min32)),
            (BinOp::Sub, uint(32), 0, 1, Some(i128::from(u32::MAX))),
            (BinOp::Mul, int(64), -min64 - 1, -min64 - 1, Some(1)),
            (BinOp::Mul, uint(64), max64, max64, Some(1)),
            (BinOp::Div, int(32), min32, -1, Some(min32)),
            (BinOp::Div, int(64), min64, -1, Some(min64)),
            (BinOp::Mod, int(64), min64, -1, Some(0)),
            (BinOp::Mod, int(32), -7, 2, Some(-1)),
            (BinOp::Mod, int(32), 7, -2, Some(1)),
            (BinOp::Div, int(32), -7, 2, Some(-3)),
            (BinOp::Div, int(32), 7, 0, None),
            (BinOp::Mod, uint(64), 7, 0, None),
            (BinOp::Shl, int(32), 1, 33, Some(2)),
            (BinOp::Shl, uint(64), 1, -1, Some(1 << 63)),
            (BinOp::Shr, int(32), -8, 34, Some(-2)),
            (BinOp::Shr, int(64), -8, 64, Some(-8)),
            (BinOp::BitAnd, int(32), -1, 255, Some(255)),
            (
                BinOp::BitXor,
                uint(32),
                -1,
                1,
                Some(i128::from(u32::MAX) - 1),
            ),
        ];
        for (op, ty, x, y, wanted) in rows {
            assert_eq!(of(op, &ty, x, y), wanted, "{x} {op:?} {y} in {ty:?}");
        }
        // An odd width is held in the next larger container.
        assert_eq!(convert(Scalar::Int(32), &uint(5)), Scalar::Int(32));
        assert_eq!(convert(Scalar::Int(256), &uint(5)), Scalar::Int(0));
        assert_eq!(
            unary(UnOp::BitNot, &uint(32), Scalar::Int(5)).int(),
            4294967290
        );
        assert_eq!(unary(UnOp::Neg, &int(64), Scalar::Int(min64)).int(), min64);
    }

    #[test]
    fn floating_point_is_rounded_once_to_its_type() {
        let float = Type::Float { bits: 32 };
        // By way of a double this would be 9007199254740992.
        let v = (1i128 << 53) + (1 << 29) + 1;
        assert_eq!(
            convert(Scalar::Int(v), &float),
            Scalar::Float(9007200328482816.0f32.into())
        );
        let v = 0x4000_0040_0000_0001i128;
        assert_eq!(
            convert(Scalar::Int(v), &float),
            Scalar::Float(f64::from(v as f32))
        );
        let half = Type::Float { bits: 16 };
        assert_eq!(
            convert(Scalar::Int(70000), &half),
            Scalar::Float(f64::INFINITY)
        );
        assert_eq!(
            convert(Scalar::Float(0.1), &float),
            Scalar::Float(f64::from(0.1f32))
        );
        assert_eq!(
            convert(Scalar::Float(-1e30), &int(64)),
            Scalar::Int(i64::MIN.into())
        );
        assert_eq!(convert(Scalar::Float(f64::NAN), &int(8)), Scalar::Int(0));
        assert_eq!(Scalar::Float(-f64::NAN).text(&float), "nan");
        let nan = || Scalar::Float(f64::NAN);
        assert!(!compare(BinOp::Eq, &float, nan(), nan()));
        assert!(compare(BinOp::Ne, &float, nan(), nan()));
    }
}
