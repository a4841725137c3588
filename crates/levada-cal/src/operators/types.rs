// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of operations. They depend only on the types of the operands, never on their values.
//!
//! An expression has two types. Its *rule type* is defined by the language: `a + b` has one bit more than the wider
//! of `a` and `b`, `a mod b` has the type of `b`. Its *machine type* is what it is computed and held in: at least
//! as wide as the rule type, as the operands' machine types, and 32 bits. So no bit is lost that the rules keep,
//! and programs that rely on C's promotions, as many do that were written for compilers to C, get them.
//!
//! For a literal, a constant, a variable and a call, both types are the declared type. The exception is a literal
//! with a decimal point: its rule type is `float` and its machine type `double`, so that no digit is lost where a
//! `double` is wanted.

use crate::ir;
use crate::types::{INT32, Ty, int, uint};

/// The smallest type that holds a number: the type of its literal.
pub fn literal(value: u64) -> Ty {
    uint((64 - value.leading_zeros()).max(1))
}

/// The smallest type that holds a constant of type `ty`.
pub fn smallest(value: i64, ty: &Ty) -> Ty {
    match ty {
        Ty::Int { signed: true, .. } if value < 0 => int(65 - (!value).leading_zeros()),
        Ty::Int { .. } => literal(value as u64),
        other => other.clone(),
    }
}

/// The width and signedness that hold integers of both types: to become signed, an unsigned one needs one more bit.
/// The width is at most 64 bits: `int(size=64)` and `uint(size=64)` join to the former.
fn join_ints((m, s): (u8, bool), (n, t): (u8, bool)) -> (u8, bool) {
    let signed = s || t;
    let needs = |bits: u8, has_sign: bool| bits + u8::from(signed && !has_sign);
    (needs(m, s).max(needs(n, t)).min(64), signed)
}

/// The smallest type that holds both.
pub fn join(a: &Ty, b: &Ty) -> Option<Ty> {
    Some(match (a, b) {
        (Ty::Unknown, other) | (other, Ty::Unknown) => other.clone(),
        (Ty::Bool, Ty::Bool) => Ty::Bool,
        (Ty::String, Ty::String) => Ty::String,
        (Ty::Float { bits: m }, Ty::Float { bits: n }) => Ty::Float { bits: *m.max(n) },
        (Ty::Int { .. }, Ty::Float { bits }) | (Ty::Float { bits }, Ty::Int { .. }) => {
            Ty::Float { bits: *bits }
        }
        (Ty::Int { bits: m, signed: s }, Ty::Int { bits: n, signed: t }) => {
            let (bits, signed) = join_ints((*m, *s), (*n, *t));
            Ty::Int { bits, signed }
        }
        (Ty::List { elem: e, len: m }, Ty::List { elem: f, len: n }) => {
            let len = match (m, n) {
                (Some(m), Some(n)) => Some(*m.max(n)),
                _ => None,
            };
            Ty::list(join(e, f)?, len)
        }
        _ => return None,
    })
}

/// The greatest type that both hold: that of `&`.
fn meet(a: &Ty, b: &Ty) -> Option<Ty> {
    Some(match (a, b) {
        (Ty::Int { bits: m, signed: s }, Ty::Int { bits: n, signed: t }) => match (s, t) {
            (true, true) | (false, false) => Ty::Int {
                bits: *m.min(n),
                signed: *s,
            },
            (true, false) => int(u32::from(*m).min(u32::from(*n) + 1)),
            (false, true) => int(u32::from(*n).min(u32::from(*m) + 1)),
        },
        _ => return None,
    })
}

/// Whether a value of type `from` may be given where `to` is wanted. All integers convert to each
/// other and to floating point; lists convert to lists as long or longer.
pub fn converts(from: &Ty, to: &Ty) -> bool {
    match (from, to) {
        (Ty::Unknown, _) | (_, Ty::Unknown) => true,
        (Ty::Bool, Ty::Bool) | (Ty::String, Ty::String) => true,
        (Ty::Int { .. }, Ty::Int { .. } | Ty::Float { .. }) => true,
        (Ty::Float { bits: m }, Ty::Float { bits: n }) => m <= n,
        (Ty::List { elem: e, len: m }, Ty::List { elem: f, len: n }) => {
            converts(e, f) && m.zip(*n).is_none_or(|(m, n)| m <= n)
        }
        _ => false,
    }
}

/// The rule type of `a op b`; an error text if the operands do not fit.
pub fn binary(op: ir::BinOp, a: &Ty, b: &Ty) -> Result<Ty, String> {
    use ir::BinOp::*;
    if *a == Ty::Unknown || *b == Ty::Unknown {
        return Ok(match op {
            Eq | Ne | Lt | Le | Gt | Ge | And | Or => Ty::Bool,
            _ => Ty::Unknown,
        });
    }
    let want = |ok: fn(&Ty) -> bool, what: &str| {
        for ty in [a, b] {
            if !ok(ty) {
                return Err(format!("wants {what}, but this is {ty}"));
            }
        }
        Ok(())
    };
    let is_scalar_number: fn(&Ty) -> bool = Ty::is_number;
    let floats = matches!(a, Ty::Float { .. }) || matches!(b, Ty::Float { .. });
    let joined = || join(a, b).ok_or_else(|| format!("cannot take {a} and {b} together"));
    Ok(match op {
        And | Or => {
            want(Ty::is_bool, "bool")?;
            Ty::Bool
        }
        Eq | Ne | Lt | Le | Gt | Ge => {
            if a.is_list() || b.is_list() {
                return Err("compares no lists".into());
            }
            if matches!(op, Lt | Le | Gt | Ge) {
                want(Ty::is_number, "numbers")?;
            }
            joined()?;
            Ty::Bool
        }
        Add if *a == Ty::String || *b == Ty::String => Ty::String,
        // Concatenation of lists.
        Add if a.is_list() && b.is_list() => {
            chained(a, b).ok_or_else(|| format!("cannot join {a} and {b}"))?
        }
        Add | Sub | Mul | Div if floats => {
            want(is_scalar_number, "numbers")?;
            joined()?
        }
        _ => {
            match op {
                Add | Sub | Mul | Div => want(is_scalar_number, "numbers")?,
                _ => want(Ty::is_int, "integers")?,
            }
            let (Ty::Int { bits: m, .. }, Ty::Int { bits: n, .. }) = (a, b) else {
                return Ok(Ty::Unknown);
            };
            let (m, n) = (u32::from(*m), u32::from(*n));
            let sized = |bits: u32| match join(a, b) {
                Some(Ty::Int { signed, .. }) => Ty::Int {
                    bits: bits.min(64) as u8,
                    signed,
                },
                _ => Ty::Unknown,
            };
            match op {
                Add => match join(a, b) {
                    Some(Ty::Int { bits, .. }) => sized(u32::from(bits) + 1),
                    _ => Ty::Unknown,
                },
                Sub => match join(a, b) {
                    Some(Ty::Int {
                        bits,
                        signed: false,
                    }) => int(u32::from(bits) + 1),
                    other => other.unwrap_or(Ty::Unknown),
                },
                Mul => sized(m + n),
                Shl => sized(m + (1 << n.min(6)) - 1),
                Shr | Div => a.clone(),
                Mod => b.clone(),
                BitAnd => meet(a, b).unwrap_or(Ty::Unknown),
                _ => joined()?,
            }
        }
    })
}

/// The rule type of `op a`; an error text if the operand does not fit.
pub fn unary(op: ir::UnOp, a: &Ty) -> Result<Ty, String> {
    match op {
        ir::UnOp::Not if !a.is_bool() => Err(format!("wants bool, but this is {a}")),
        ir::UnOp::BitNot if !a.is_int() => Err(format!("wants an integer, but this is {a}")),
        ir::UnOp::Neg if !a.is_number() => Err(format!("wants a number, but this is {a}")),
        ir::UnOp::Neg => Ok(match a {
            Ty::Int {
                bits,
                signed: false,
            } => int(u32::from(*bits) + 1),
            other => other.clone(),
        }),
        _ => Ok(a.clone()),
    }
}

/// Promotion to at least 32 bits. Unsigned types stay unsigned, so that they can be joined with other unsigned types.
fn promoted(ty: Ty) -> Ty {
    match ty {
        Ty::Int { bits, signed } if bits < 32 => {
            if signed {
                INT32
            } else {
                uint(31)
            }
        }
        Ty::Float { bits: 16 } => Ty::Float { bits: 32 },
        other => other,
    }
}

/// Like `promoted`, for results that may be negative although their type is unsigned.
fn promoted_with_sign(ty: &Ty) -> Ty {
    match ty {
        Ty::Int { bits, .. } if *bits < 32 => INT32,
        other => promoted(other.clone()),
    }
}

/// The type of a concatenation of two lists.
fn chained(a: &Ty, b: &Ty) -> Option<Ty> {
    let (Ty::List { elem: e, len: m }, Ty::List { elem: f, len: n }) = (a, b) else {
        return None;
    };
    let len = match m.zip(*n) {
        Some((m, n)) => Some(m.checked_add(n)?),
        None => None,
    };
    Some(Ty::list(join(e, f)?, len))
}

/// The machine type of `a op b`: `rule` is its rule type, the others are machine types.
pub fn binary_machine(op: ir::BinOp, rule: &Ty, a: &Ty, b: &Ty) -> Ty {
    use ir::BinOp::*;
    if rule.is_list() {
        return chained(a, b).unwrap_or_else(|| rule.clone());
    }
    if let Ty::Float { .. } = rule {
        return promoted(rule.clone());
    }
    if *rule == Ty::Bool || *rule == Ty::String {
        return rule.clone();
    }
    let operands = match op {
        Shl | Shr => a.clone(),
        _ => match join(a, b) {
            Some(both) => both,
            None => return promoted(rule.clone()),
        },
    };
    // A remainder has the sign of the left side, and the type of the right one.
    let no_sign = |ty: &Ty| {
        matches!(
            ty,
            Ty::Int {
                bits: 0..32,
                signed: false
            }
        )
    };
    let least = match op {
        Mod if !no_sign(&operands) => promoted_with_sign(rule),
        _ => rule.clone(),
    };
    join(&least, &operands).map_or_else(|| promoted(rule.clone()), promoted)
}

/// The machine type of `op a`: `a` is that of the operand.
pub fn unary_machine(op: ir::UnOp, rule: &Ty, a: &Ty) -> Ty {
    let least = promoted_with_sign(rule);
    match (op, &least, a) {
        // The complement of an operand with an unsigned rule type is unsigned, even if its machine type is signed
        // because of its own operands.
        (
            ir::UnOp::BitNot,
            Ty::Int {
                bits: m,
                signed: false,
            },
            Ty::Int {
                bits: n,
                signed: true,
            },
        ) if *n <= m.saturating_add(1) => least,
        _ => join(&least, a).map_or(least.clone(), promoted),
    }
}

/// The type that both sides of a comparison are converted to; each comes as its rule type and its
/// machine type. `None`: there is none.
pub fn compared(a: (&Ty, &Ty), b: (&Ty, &Ty)) -> Option<Ty> {
    match join(a.0, b.0)? {
        // The precision of a literal beyond `float` matters only in an operation with a `double`.
        float @ Ty::Float { .. } => Some(promoted(float)),
        _ => join(a.1, b.1),
    }
}

/// The machine type of a conditional or of a list's elements: `rule` is the join of their rule types. It has the
/// precision of literals only if all are literals.
pub fn joined_machine<'t>(rule: &Ty, machines: impl Iterator<Item = &'t Ty> + Clone) -> Option<Ty> {
    let mut rest = machines.clone();
    let first = rest.next()?.clone();
    let joined = rest.try_fold(first, |all, one| join(&all, one))?;
    let all_double = machines
        .clone()
        .all(|m| *m.innermost() == Ty::Float { bits: 64 });
    Some(if all_double {
        joined
    } else {
        without_digits(rule, joined)
    })
}

/// A machine type without the additional precision of a literal.
fn without_digits(rule: &Ty, machine: Ty) -> Ty {
    match (rule, machine) {
        (Ty::List { elem: rule, .. }, Ty::List { elem, len }) => {
            Ty::list(without_digits(rule, *elem), len)
        }
        (rule @ Ty::Float { bits: 0..64 }, Ty::Float { bits: 64 }) => promoted(rule.clone()),
        (_, machine) => machine,
    }
}

/// The type for assignment checks: literals with a decimal point, and lists of only such literals, fit any
/// floating-point type.
pub fn given(rule: &Ty, machine: &Ty) -> Ty {
    match (rule, machine) {
        (Ty::List { elem: rule, len }, Ty::List { elem: machine, .. }) => {
            Ty::list(given(rule, machine), *len)
        }
        (Ty::Float { bits: 32 }, Ty::Float { bits: 64 }) => Ty::Float { bits: 16 },
        _ => rule.clone(),
    }
}

/// The type in which an operand is printed or concatenated.
pub fn printed(rule: &Ty, machine: &Ty) -> Ty {
    without_digits(rule, machine.clone())
}

/// A machine type rounded up to a width in which operations are computed.
pub fn held(machine: &Ty) -> Ty {
    match machine {
        Ty::Int { bits: 33.., signed } => Ty::Int {
            bits: 64,
            signed: *signed,
        },
        Ty::Int {
            bits: 31,
            signed: false,
        } => uint(32),
        Ty::List { elem, len } => Ty::list(held(elem), *len),
        other => other.clone(),
    }
}

/// The type that both sides of a comparison in the representation are converted to.
pub fn compared_in(a: &ir::Type, b: &ir::Type) -> ir::Type {
    use ir::Type::*;
    match (a, b) {
        (Float { bits: x }, Float { bits: y }) => Float { bits: *x.max(y) },
        (Float { .. }, _) => a.clone(),
        (_, Float { .. }) => b.clone(),
        (Int { bits: x, signed: s }, Int { bits: y, signed: t }) => {
            let (bits, signed) = join_ints((*x, *s), (*y, *t));
            Int { bits, signed }
        }
        (Bool, _) => b.clone(),
        _ => a.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{BinOp, UnOp};

    /// Rule and machine type of `a op b`, where each operand is a variable or a literal.
    fn of(op: BinOp, a: &Ty, b: &Ty) -> (Ty, Ty) {
        let rule = binary(op, a, b).expect("they go together");
        let machine = binary_machine(op, &rule, a, b);
        (rule, machine)
    }

    #[test]
    fn what_is_computed_in_has_room_for_the_rule_and_the_operands() {
        let (i32, u32, i64, u64) = (int(32), uint(32), int(64), uint(64));
        let (i8, u8) = (int(8), uint(8));
        let rows = [
            (BinOp::Add, &i32, &i32, int(33), int(33)),
            (BinOp::Add, &u8, &u8, uint(9), uint(31)),
            (BinOp::Sub, &u8, &u8, int(9), INT32),
            (BinOp::Mul, &i8, &u8, int(16), INT32),
            (BinOp::Mul, &u32, &u32, uint(64), uint(64)),
            (BinOp::Div, &u64, &u8, uint(64), uint(64)),
            (BinOp::Div, &u64, &i32, uint(64), int(64)),
            (BinOp::Mod, &i32, &u32, uint(32), int(33)),
            (BinOp::Mod, &i64, &u8, uint(8), int(64)),
            (BinOp::Mod, &u64, &u8, uint(8), int(64)),
            (BinOp::Mod, &u64, &u64, uint(64), uint(64)),
            (BinOp::Shr, &u8, &i64, uint(8), uint(31)),
            (BinOp::Shl, &i32, &u8, int(64), int(64)),
            (BinOp::BitAnd, &i64, &u8, int(9), int(64)),
            (BinOp::BitAnd, &u64, &u8, uint(8), uint(64)),
            (BinOp::BitOr, &u64, &i32, int(64), int(64)),
        ];
        for (op, a, b, rule, machine) in rows {
            assert_eq!(of(op, a, b), (rule, machine), "{a} {op:?} {b}");
        }
    }

    /// The results of Orcc's own test of its types (`TypesTester`).
    #[test]
    fn rule_types_are_those_of_orcc() {
        use BinOp::*;
        let (i32, i16, i4, i64, u32) = (int(32), int(16), int(4), int(64), uint(32));
        let (u16, u60, u1) = (uint(16), uint(60), uint(1));
        let float = |bits: u8| Ty::Float { bits };
        let (half, single, double) = (float(16), float(32), float(64));
        let rows = [
            (Add, &i32, &i32, int(33)),
            (Add, &u16, &u16, uint(17)),
            (Add, &i16, &u16, int(18)),
            (Add, &u60, &i16, int(62)),
            (Add, &i16, &single, single.clone()),
            (Add, &i32, &half, half.clone()),
            (Add, &u60, &double, double.clone()),
            (Sub, &i32, &literal(4), int(32)),
            (Sub, &i32, &i32, int(32)),
            (Sub, &u32, &i32, int(33)),
            (Sub, &i32, &single, single.clone()),
            (Div, &i32, &literal(3), int(32)),
            (Div, &u32, &i16, uint(32)),
            (Div, &i32, &half, half.clone()),
            (Div, &double, &i16, double.clone()),
            (Div, &i64, &u1, int(64)),
            (Div, &i4, &u1, int(4)),
            (Mul, &i32, &literal(20), int(37)),
            (Mul, &u16, &literal(62), uint(22)),
            (Mul, &i32, &u16, int(48)),
            (Mul, &i4, &u60, int(64)),
            (Mul, &u1, &i4, int(5)),
            (Mul, &half, &u16, half.clone()),
            (Shl, &i16, &literal(5), int(23)),
            (Shl, &u32, &i4, int(47)),
            (Shl, &i4, &i4, int(19)),
            (Shr, &i16, &literal(5), int(16)),
            (Shr, &u32, &i4, uint(32)),
            (Shr, &i4, &i4, int(4)),
        ];
        for (op, a, b, rule) in rows {
            assert_eq!(binary(op, a, b), Ok(rule), "{a} {op:?} {b}");
        }
    }

    #[test]
    fn a_complement_has_a_sign_unless_its_type_has_none_in_32_bits_or_more() {
        let rows = [
            (uint(8), uint(31), INT32),
            (uint(32), uint(32), uint(32)),
            // `a mod b` of an int and a uint.
            (uint(32), int(33), uint(32)),
            // `a mod b` of a 64-bit int and a uint: no bit is lost.
            (uint(32), int(64), int(64)),
            (uint(64), int(64), uint(64)),
            (int(9), int(64), int(64)),
        ];
        for (rule, operand, machine) in rows {
            let got = unary_machine(UnOp::BitNot, &rule, &operand);
            assert_eq!(got, machine, "~ of {rule} in {operand}");
        }
    }

    #[test]
    fn a_literal_with_a_point_keeps_its_digits_where_a_double_is_wanted() {
        let float = |bits: u8| Ty::Float { bits };
        let literal = (float(32), float(64));
        let variable = (float(32), float(32));
        let machines = |all: [&Ty; 2]| joined_machine(&float(32), all.into_iter());
        assert_eq!(given(&literal.0, &literal.1), float(16));
        assert_eq!(given(&variable.0, &variable.1), float(32));
        assert_eq!(machines([&literal.1, &literal.1]), Some(float(64)));
        assert_eq!(machines([&literal.1, &variable.1]), Some(float(32)));
        let sum = binary_machine(BinOp::Add, &float(32), &literal.1, &variable.1);
        assert_eq!(sum, float(32));
        let both = compared((&literal.0, &literal.1), (&variable.0, &variable.1));
        assert_eq!(both, Some(float(32)));
        let halves = compared((&float(16), &float(16)), (&int(32), &int(32)));
        assert_eq!(halves, Some(float(32)));
    }
}
