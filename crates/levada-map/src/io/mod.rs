// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text formats: descriptions, placements and Orcc's mapping files. The functions convert between
//! texts and values; the caller reads and writes the files.

mod description;
mod orcc;
mod placement;
mod renamed;

pub use description::{Description, description_text, read_description};
pub use placement::{NamedPlacement, placement_text, read_placement};
pub use renamed::with_present_key;

/// A TOML string on one line, as keys require.
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
