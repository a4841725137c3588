// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translates forks, `f(x) !! { ... }`, into plain C.
//!
//! `) !! {` occurs in no C program, so [`lex`] finds forks by their tokens alone. [`parse`] reads from the preprocessed
//! text what the translation of a fork depends on: the types of the call, the statement that contains it, and the jumps
//! out of its block. [`emit`] makes edits of that: generated text, and copied parts of the user's text. The edits are
//! applied to the preprocessed text for the compiler ([`preprocessed`]), or to the file as written, for readers
//! ([`source`]).
//!
//! This crate starts no processes: the caller runs the preprocessor and passes its output.

pub mod emit;
mod fork_site;
pub mod lex;
pub mod lines;
pub mod parse;
pub mod preprocessed;
pub mod report;
pub mod source;
pub mod types;
