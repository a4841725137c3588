// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C++ support: which of the given files are C++, the compiler for them, and the libraries that their objects need.

use std::path::Path;
use std::process::Command;

pub fn is_cpp(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("cpp" | "cc" | "cxx"))
}

/// `$CXX`, else `c++`.
pub fn compiler() -> Command {
    let set = std::env::var("CXX").ok().filter(|c| !c.trim().is_empty());
    let set = set.unwrap_or_else(|| "c++".to_string());
    let mut words = set.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words);
    command
}

pub const STANDARD: &str = "-std=c++17";

/// The network is linked by the C compiler, which does not add this library.
pub const LIBRARY: &str = "-lstdc++";
