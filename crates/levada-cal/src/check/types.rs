// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of the language and its width rules.
//!
//! Two types belong to an expression. Its *rule type* is what the language says: `a + b` has a bit
//! more than the wider of `a` and `b`, `a mod b` has the type of `b`. Its *machine type* is what
//! it is computed in: never fewer than 32 bits, never fewer than its operands are held in, and as
//! many as the rule type asks for, up to 64. So no bit is lost that the rules keep, and programs
//! which count on C's promotions, as many do that were written for compilers to C, get them.

use crate::ir;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    Bool,
    Int {
        bits: u8,
        signed: bool,
    },
    Float {
        bits: u8,
    },
    String,
    /// The length is not known while a parameter it depends on has no value.
    List {
        elem: Box<Ty>,
        len: Option<u32>,
    },
    /// Of what has been complained about already. Goes with everything.
    Unknown,
}

pub const INT32: Ty = Ty::Int {
    bits: 32,
    signed: true,
};

fn clip(bits: u32) -> u8 {
    bits.min(64) as u8
}

pub fn int(bits: u32) -> Ty {
    Ty::Int {
        bits: clip(bits),
        signed: true,
    }
}

pub fn uint(bits: u32) -> Ty {
    Ty::Int {
        bits: clip(bits),
        signed: false,
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Ty::Bool => f.write_str("bool"),
            Ty::Int { bits, signed } => {
                f.write_str(if *signed { "int" } else { "uint" })?;
                if *bits == 32 {
                    Ok(())
                } else {
                    write!(f, "(size={bits})")
                }
            }
            Ty::Float { bits: 16 } => f.write_str("half"),
            Ty::Float { bits: 64 } => f.write_str("double"),
            Ty::Float { .. } => f.write_str("float"),
            Ty::String => f.write_str("String"),
            Ty::List {
                elem,
                len: Some(len),
            } => write!(f, "List(type: {elem}, size={len})"),
            Ty::List { elem, len: None } => write!(f, "List(type: {elem}, size=?)"),
            Ty::Unknown => f.write_str("?"),
        }
    }
}

impl Ty {
    pub fn is_list(&self) -> bool {
        matches!(self, Ty::List { .. })
    }

    pub fn is_int(&self) -> bool {
        matches!(self, Ty::Int { .. } | Ty::Unknown)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Ty::Int { .. } | Ty::Float { .. } | Ty::Unknown)
    }

    pub fn is_bool(&self) -> bool {
        matches!(self, Ty::Bool | Ty::Unknown)
    }

    pub fn list(elem: Ty, len: Option<u32>) -> Ty {
        Ty::List {
            elem: Box::new(elem),
            len,
        }
    }

    /// What the list's lists' ... elements are.
    pub fn innermost(&self) -> &Ty {
        match self {
            Ty::List { elem, .. } => elem.innermost(),
            other => other,
        }
    }

    /// How many scalars it holds, if that is known.
    pub fn scalars(&self) -> Option<u64> {
        match self {
            Ty::List { elem, len } => Some(u64::from((*len)?).saturating_mul(elem.scalars()?)),
            _ => Some(1),
        }
    }

    /// Whether nothing in it is unknown.
    pub fn is_known(&self) -> bool {
        match self {
            Ty::List { elem, len } => len.is_some() && elem.is_known(),
            Ty::Unknown => false,
            _ => true,
        }
    }

    /// As the representation has it. What is not known becomes something small; such actors are
    /// never lowered.
    pub fn to_ir(&self) -> ir::Type {
        match self {
            Ty::Bool | Ty::Unknown => ir::Type::Bool,
            Ty::Int { bits, signed } => ir::Type::Int {
                bits: *bits,
                signed: *signed,
            },
            Ty::Float { bits } => ir::Type::Float { bits: *bits },
            Ty::String => ir::Type::String,
            Ty::List { elem, len } => ir::Type::List {
                elem: Box::new(elem.to_ir()),
                len: len.unwrap_or(1),
            },
        }
    }

    /// The type that arithmetic with this rule type needs at least.
    fn promoted(&self) -> Ty {
        match self {
            Ty::Int { bits, signed } if *bits > 32 => Ty::Int {
                bits: 64,
                signed: *signed,
            },
            Ty::Int {
                bits: 32,
                signed: false,
            } => uint(32),
            Ty::Int { .. } => INT32,
            Ty::Float { bits: 16 } => Ty::Float { bits: 32 },
            other => other.clone(),
        }
    }
}

/// The smallest type that holds a number: the type of its literal.
pub fn literal(value: u64) -> Ty {
    uint((64 - value.leading_zeros()).max(1))
}

/// The smallest type that holds a constant of type `ty`.
pub fn constant(value: i64, ty: &Ty) -> Ty {
    match ty {
        Ty::Int { signed: true, .. } if value < 0 => int(65 - (!value).leading_zeros()),
        Ty::Int { .. } => literal(value as u64),
        other => other.clone(),
    }
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
        (Ty::Int { bits: m, signed: s }, Ty::Int { bits: n, signed: t }) => match (s, t) {
            (true, true) | (false, false) => Ty::Int {
                bits: *m.max(n),
                signed: *s,
            },
            (true, false) => int(u32::from(*m).max(u32::from(*n) + 1)),
            (false, true) => int(u32::from(*n).max(u32::from(*m) + 1)),
        },
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

/// The rule type of `a op b`, or what is wrong with the operands in words.
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
        Add if *a == Ty::String && !b.is_list() || *b == Ty::String && !a.is_list() => Ty::String,
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
                    bits: clip(bits),
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

/// The rule type of `op a`, or what is wrong with the operand in words.
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

/// The machine type of `a op b`: `rule` is its rule type, the others are machine types.
pub fn binary_machine(op: ir::BinOp, rule: &Ty, a: &Ty, b: &Ty) -> Ty {
    use ir::BinOp::*;
    if *rule == Ty::Bool || *rule == Ty::String {
        return rule.clone();
    }
    let least = rule.promoted();
    let operands = match op {
        Shl | Shr => Some(a.clone()),
        _ => join(a, b),
    };
    operands
        .and_then(|ty| join(&least, &ty))
        .map_or(least, |ty| ty.promoted())
}

/// The machine type of `op a`.
pub fn unary_machine(rule: &Ty, a: &Ty) -> Ty {
    let least = rule.promoted();
    join(&least, a).map_or(least, |ty| ty.promoted())
}
