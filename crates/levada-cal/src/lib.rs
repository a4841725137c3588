// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The CAL and XDF compiler: parse, check, elaborate, classify, fuse, emit C.

pub mod ast;
pub mod diag;
pub mod ir;
pub mod lex;
pub mod parse;
pub mod syntax;
pub mod workspace;
pub mod xdf;
