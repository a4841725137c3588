// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The runtime's public headers, embedded when this crate was built. Emitted code is compiled with them, so that it
//! always fits the runtime that loads it.

use std::io;
use std::path::Path;

/// Paths as in `#include`, and contents.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// Writes the headers below `folder`.
pub fn write(folder: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}
