// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network or C program that is ready to run: what compiling a network and opening a C program both produce.

use crate::common::prepare_cache::CompiledSources;
use levada_sys::Network;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A network or C program that is ready to run.
pub struct Runnable {
    pub name: String,
    pub network: Arc<Network>,
    pub sources: CompiledSources,
    /// The compiled object; measured actor weights are stored in its folder. `None` for a C program.
    pub object: Option<PathBuf>,
    /// Diagnostics of the compiler as JSON; they were already printed.
    pub diagnostics: Vec<Value>,
}
