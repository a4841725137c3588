// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The CAL and XDF compiler: parse, check, elaborate, classify, fuse, emit C.

pub mod ast;
pub mod c_types;
pub mod check;
pub mod classify;
pub mod compile;
mod components;
pub mod cpp;
pub mod emit;
pub mod encoding;
pub mod eval;
pub mod format;
pub mod fs_deps;
pub mod fuse;
pub mod graph;
pub mod headers;
pub mod hir;
mod includes;
pub mod index;
pub mod interp;
pub mod ir;
pub mod lex;
mod library;
pub mod lower;
pub mod native_signature;
pub mod natives;
pub mod operators;
pub mod parse;
pub mod project;
pub mod ranges;
mod rates;
pub mod syntax;
pub mod types;
pub mod workspace;
pub mod xdf;

/// Stack for recursion over the deepest nesting that the parser accepts. Pages are allocated only when touched.
const STACK_BYTES: usize = 128 << 20;

/// Runs `work` with a stack that holds the recursion over the deepest program that the parser accepts.
pub(crate) fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_BYTES / 2, STACK_BYTES, work)
}

pub use levada_diag as diag;
