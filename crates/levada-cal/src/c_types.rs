// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C types that represent the types of CAL.

use crate::ir::Type;

/// The C type that a variable of this type (or an element of this list) is declared with.
pub fn c_type(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int { signed, .. } => match (ty.container(), signed) {
            (8, true) => "int8_t",
            (8, false) => "uint8_t",
            (16, true) => "int16_t",
            (16, false) => "uint16_t",
            (32, true) => "int32_t",
            (32, false) => "uint32_t",
            (_, true) => "int64_t",
            _ => "uint64_t",
        },
        Type::Float { bits: 64 } => "double",
        Type::Float { .. } => "float",
        Type::String => "const char *",
        Type::List { elem, .. } => c_type(elem),
    }
}

/// The C type of a constant.
pub fn const_type(ty: &Type) -> String {
    match c_type(ty) {
        pointer if pointer.ends_with('*') => format!("{pointer}const"),
        scalar => format!("const {scalar}"),
    }
}

pub fn size_of(ty: &Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Int { .. } => u32::from(ty.container()) / 8,
        Type::Float { bits: 64 } | Type::String => 8,
        Type::Float { .. } => 4,
        Type::List { elem, .. } => size_of(elem),
    }
}
