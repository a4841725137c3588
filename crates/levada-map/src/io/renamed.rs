// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of Levada 0.1 that have another name now. They are refused, and the error says the present name.

/// The error of serde about an unknown key; if the key is one of `renamed` (old name, present name), the present name
/// stands in place of the list of all keys.
pub fn with_present_key(error: &str, renamed: &[(&str, &str)]) -> String {
    let unknown = |(old, new): &(&str, &str)| {
        let at = error.find(&format!("unknown field `{old}`"))?;
        let rest = error[at..].find('\n').map_or("", |end| &error[at + end..]);
        let before = &error[..at];
        Some(format!(
            "{before}unknown key `{old}`; since 0.2 it is `{new}`{rest}"
        ))
    };
    let found = renamed.iter().find_map(unknown);
    found.unwrap_or_else(|| error.to_string())
}

#[test]
fn a_renamed_key_is_named() {
    let error = "line 3\nunknown field `old`, expected one of `a`, `b`\nand more";
    let said = with_present_key(error, &[("other", "x"), ("old", "new")]);
    assert_eq!(
        said,
        "line 3\nunknown key `old`; since 0.2 it is `new`\nand more"
    );
    assert_eq!(with_present_key(error, &[("other", "x")]), error);
}
