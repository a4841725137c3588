// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of the language. [`crate::operators`] defines the results of operators on them.

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
    /// The type of erroneous expressions, compatible with every type.
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

    /// The type of the innermost elements.
    pub fn innermost(&self) -> &Ty {
        match self {
            Ty::List { elem, .. } => elem.innermost(),
            other => other,
        }
    }

    /// The number of scalars in it, if known.
    pub fn scalars(&self) -> Option<u64> {
        match self {
            Ty::List { elem, len } => Some(u64::from((*len)?).saturating_mul(elem.scalars()?)),
            _ => Some(1),
        }
    }

    /// Whether it is completely known.
    pub fn is_known(&self) -> bool {
        match self {
            Ty::List { elem, len } => len.is_some() && elem.is_known(),
            Ty::Unknown => false,
            _ => true,
        }
    }

    /// The type in the intermediate representation. Unknown types become a placeholder; such actors are never
    /// lowered.
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
}
