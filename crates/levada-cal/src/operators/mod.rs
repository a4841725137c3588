// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every operator means: the type, the width and the value of its result, defined here alone.
//!
//! * [`types`]: the rule type and the machine type of each operation, for the checker.
//! * [`value`]: what each operation and conversion computes, for the constant folder, the
//!   interpreter and the expressions of networks.
//! * [`range`]: the same on intervals, for the range analysis and so for the emitter.
//! * [`half`]: the rounding to numbers of 16 bits.
//!
//! No type depends on a value: an expression has the same types, and so the same result, whether its
//! operands are literals, constants, parameters, variables or elements of a channel. What the emitter
//! writes in C is compared with all of this by `tests/back_differential.rs`.

pub mod float16;
pub mod range;
pub mod types;
pub mod value;

pub use types::{
    binary, binary_machine, compared, converts, join, joined_machine, literal, smallest, unary,
    unary_machine,
};
pub use value::{DivisionByZero, Scalar};
