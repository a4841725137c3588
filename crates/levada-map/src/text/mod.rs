// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written to files, and read back: texts only, whoever calls has the files.

mod description;
mod orcc;
mod placement;

pub use description::{Described, describe, read_description};
pub use placement::{Named, placement_text, read_placement};

/// A string as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

#[cfg(test)]
mod tests;
