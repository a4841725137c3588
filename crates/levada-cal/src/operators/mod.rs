// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The semantics of operators: type, width and value of every result. They are defined here only.
//!
//! * [`types`]: the rule type and the machine type of each operation, for the checker.
//! * [`value`]: the value of each operation and conversion, for the constant folder, the interpreter and the
//!   expressions of networks.
//! * [`range`]: the same on intervals, for the range analysis and so for the emitter.
//! * [`float16`]: rounding to 16-bit floating point.
//!
//! No type depends on a value: an expression has the same types, and so the same result, whether its operands are
//! literals, constants, parameters, variables or elements of a channel. `tests/back_differential.rs` compares the
//! emitted C with these definitions.

pub mod float16;
pub mod range;
pub mod types;
pub mod value;

pub use types::{
    binary, binary_machine, compared, converts, join, joined_machine, literal, smallest, unary,
    unary_machine,
};
pub use value::{DivisionByZero, Scalar};
