// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The native functions that come with Levada, as C text that is compiled into the networks which
//! use them.

/// File names and texts.
pub const BUILT_IN: &[(&str, &str)] =
    &[("levada_io.c", include_str!("../lib/natives/levada_io.c"))];

/// Does this C text define a function of that name? (It is found at the start of a definition: the
/// name, an open parenthesis, and before it on the row a type.)
pub fn defines(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.lines().any(|row| {
        let Some(at) = row.find(name) else {
            return false;
        };
        let (before, after) = (&row[..at], &row[at + name.len()..]);
        after.trim_start().starts_with('(')
            && !before.ends_with(word)
            && (before.trim_end().ends_with(|c: char| word(c) || c == '*') || before.is_empty())
            && !row.starts_with([' ', '\t', '#', '/'])
            && !row.trim_end().ends_with(';')
    })
}
