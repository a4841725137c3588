// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of networks: conversion from the file to [`ir::Type`], and which element types are compatible.

use super::expr::{DOUBLE, Env, EvalError, INT64, kind_of};
use super::read::{Type, TypeKind};
use crate::ir::{self, Span, Value, type_name};
use crate::operators::value::{self, Scalar};

pub fn fits(value: i64, ty: &ir::Type) -> bool {
    match ty {
        ir::Type::Int { bits, signed: true } => {
            *bits >= 64 || (-(1i64 << (bits - 1)) <= value && value < 1i64 << (bits - 1))
        }
        ir::Type::Int { bits, .. } => value >= 0 && (*bits >= 63 || value < 1i64 << bits),
        _ => true,
    }
}

pub fn type_of(ty: &Type, env: &Env) -> Result<ir::Type, EvalError> {
    let size = |usual: i64, range: std::ops::RangeInclusive<i64>| match &ty.size {
        None => Ok(usual),
        Some(e) => match e.eval(env)? {
            Value::Int(i) if range.contains(&i) => Ok(i),
            Value::Int(i) => Err(EvalError {
                span: e.span(),
                code: "range",
                message: format!(
                    "a size of {i}; it must lie between {} and {}",
                    range.start(),
                    range.end()
                ),
            }),
            other => Err(EvalError {
                span: e.span(),
                code: "type-mismatch",
                message: format!("a size must be an integer, not {}", kind_of(&other)),
            }),
        },
    };
    let float = |usual: i64| {
        Ok(ir::Type::Float {
            bits: match size(usual, 16..=64)? {
                16 => 16,
                17..=32 => 32,
                _ => 64,
            },
        })
    };
    let int = |signed: bool| {
        Ok(ir::Type::Int {
            bits: size(32, 1..=64)? as u8,
            signed,
        })
    };
    match &ty.kind {
        TypeKind::Bool => Ok(ir::Type::Bool),
        TypeKind::Int => int(true),
        TypeKind::Uint => int(false),
        TypeKind::Half => float(16),
        TypeKind::Float => float(32),
        TypeKind::Double => float(64),
        TypeKind::String => Ok(ir::Type::String),
        TypeKind::List(elem) => Ok(ir::Type::List {
            elem: Box::new(type_of(elem, env)?),
            len: size(0, 0..=i64::from(u32::MAX))? as u32,
        }),
    }
}

fn converted(value: &Value, from: &ir::Type, to: &ir::Type) -> Value {
    value::convert(Scalar::of(value, from), to).constant(to)
}

/// Converts a value to the type of a declaration.
pub fn convert(value: Value, ty: &ir::Type) -> Result<Value, String> {
    match (ty, value) {
        (ir::Type::Bool, v @ Value::Bool(_)) | (ir::Type::String, v @ Value::String(_)) => Ok(v),
        // As an assignment would.
        (ir::Type::Int { .. }, v @ Value::Int(_)) => Ok(converted(&v, &INT64, ty)),
        (ir::Type::Float { .. }, v @ Value::Int(_)) => Ok(converted(&v, &INT64, ty)),
        (ir::Type::Float { .. }, v @ Value::Float(_)) => Ok(converted(&v, &DOUBLE, ty)),
        (ir::Type::List { elem, .. }, Value::List(list)) => Ok(Value::List(
            list.into_iter()
                .map(|v| convert(v, elem))
                .collect::<Result<_, _>>()?,
        )),
        (ty, v) => Err(format!("{} is no {}", kind_of(&v), type_name(ty))),
    }
}

/// Whether elements of one type may be used as the other without conversion: the same kind in the same container, so
/// that the bytes have the same meaning at both ends. Odd widths and signedness may differ within a container, as in
/// an assignment.
pub fn same_element(a: &ir::Type, b: &ir::Type) -> bool {
    use ir::Type::*;
    match (a, b) {
        (Int { .. }, Int { .. }) => a.container() == b.container(),
        (Bool, Bool) | (String, String) => true,
        (Float { bits: x }, Float { bits: y }) => x == y,
        _ => false,
    }
}

/// Whether the elements can be converted on their way, as an assignment would.
pub fn convertible(a: &ir::Type, b: &ir::Type) -> bool {
    use ir::Type::*;
    matches!(
        (a, b),
        (Int { .. }, Int { .. }) | (Float { .. }, Float { .. })
    )
}

/// An actor that converts elements from one type to another.
pub fn converter(from: &ir::Type, to: &ir::Type, span: Span) -> ir::Actor {
    let short = |ty: &ir::Type| match ty {
        ir::Type::Int { bits, signed } => format!("{}int{bits}", if *signed { "" } else { "u" }),
        ir::Type::Float { bits } => format!("float{bits}"),
        _ => String::new(),
    };
    let port = |name: &str, ty: &ir::Type| ir::Port {
        name: name.to_string(),
        ty: ty.clone(),
        span,
    };
    let local = ir::Body {
        locals: vec![ir::Local {
            name: "x".to_string(),
            ty: from.clone(),
            span,
        }],
        stmts: Vec::new(),
    };
    let x = ir::Expr {
        kind: ir::ExprKind::Load(ir::Place {
            var: ir::VarRef::Local(0),
            indices: Vec::new(),
            ty: from.clone(),
            span,
        }),
        ty: from.clone(),
        span,
    };
    let value = ir::Expr {
        kind: ir::ExprKind::Cast(Box::new(x)),
        ty: to.clone(),
        span,
    };
    let action = ir::Action {
        name: "convert".to_string(),
        inputs: vec![ir::Input {
            port: 0,
            vars: vec![0],
            repeat: 1,
            is_list: false,
            span,
        }],
        outputs: vec![ir::Output {
            port: 0,
            values: vec![ir::OutputValue::Scalar(value)],
            repeat: 1,
            span,
        }],
        guard: ir::Guard {
            body: local.clone(),
            conditions: Vec::new(),
        },
        body: local,
        schedule_outputs: false,
        span,
    };
    ir::Actor {
        name: format!("levada.Convert_{}_{}", short(from), short(to)),
        inputs: vec![port("In", from)],
        outputs: vec![port("Out", to)],
        globals: Vec::new(),
        procs: Vec::new(),
        actions: vec![action],
        initializers: Vec::new(),
        outside: vec![0],
        fsm: None,
        native: None,
        span,
    }
}
