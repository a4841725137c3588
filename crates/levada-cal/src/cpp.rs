// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C++ support: which of the given files are C++, the compiler for them, and the libraries that their objects need.

use crate::fs_deps;
use std::path::Path;
use std::process::{Command, Stdio};

pub fn is_cpp(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("cpp" | "cc" | "cxx"))
}

/// `$CXX`, else `c++`; it may have arguments.
fn words() -> Vec<String> {
    let set = std::env::var("CXX").ok().filter(|c| !c.trim().is_empty());
    let set = set.unwrap_or_else(|| "c++".to_string());
    set.split_whitespace().map(str::to_string).collect()
}

pub fn compiler() -> Command {
    let words = words();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The version that the compiler prints; empty if it cannot be run, which its use reports.
pub fn version() -> String {
    words().iter().for_each(|word| fs_deps::program(word));
    let out = compiler().arg("--version").stdin(Stdio::null()).output();
    let text = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    text.unwrap_or_default()
}

pub const STANDARD: &str = "-std=c++17";

/// The network is linked by the C compiler, which does not add this library.
pub const LIBRARY: &str = "-lstdc++";
