// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Embeds the runtime's public headers in the compiler, so that emitted code is compiled with the headers of the
//! runtime that will load it, wherever the command is installed.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("by cargo"))
        .join("../../runtime/include");
    let folder = folder.canonicalize().expect("runtime/include is there");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    gather(&folder, &mut files);
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&folder).expect("it lies below");
        writeln!(text, "    ({name:?}, include_str!({file:?})),").expect("memory");
    }
    text += "]\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("headers.rs"), text).expect("the folder can be written");
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|e| e == "h") {
            files.push(path);
        }
    }
}
