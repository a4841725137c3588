// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The translator of `f(x) !! { ... }`, from C to C.
//!
//! `) !! {` occurs in no C, so finding a fork takes the tokens alone ([`lex`]). What a fork needs to
//! know of its surroundings (the types of the call, what it is part of, the jumps out of its block) is
//! read from the preprocessed text ([`parse`]). From that come edits ([`emit`]): pieces of new text
//! between pieces of the user's, which are applied to the preprocessed text for the compiler
//! ([`preprocessed`]), or to the file as it was written for people ([`source`]).
//!
//! Nothing here starts a program: who uses this brings the preprocessor's output.

pub mod emit;
pub mod lex;
pub mod lines;
pub mod parse;
pub mod preprocessed;
pub mod report;
mod site;
pub mod source;
pub mod types;
