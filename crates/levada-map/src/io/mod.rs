// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written to files, and read back: texts only, whoever calls has the files.

mod description;
mod orcc;
mod placement;

pub use description::{Description, description_text, read_description};
pub use placement::{NamedPlacement, placement_text, read_placement};

/// A string as TOML writes it, on one line: a key has to be.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_string();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}
