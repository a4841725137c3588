// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Escapes untrusted text (state files, manifests, messages of applications, file names) before it is shown. Control
//! characters could command the terminal, and characters that change the writing direction could disguise the text.
//! Each is replaced by `\u` and four hexadecimal digits, as in JSON, so a JSON text keeps its value.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character can control a terminal or change the order in which text is shown.
fn controls(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes all such characters except those for which `stays` is true.
pub fn escaped_but(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    let controls = |c: char| controls(c) && !stays(c);
    if !text.contains(controls) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if controls(c) {
            // All of them are below U+10000, and writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c)
        }
    }
    Cow::Owned(out)
}

/// Escapes a text of one or more lines; newlines and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_but(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes a name or another text that must remain on one line.
pub fn escaped_line(text: &str) -> Cow<'_, str> {
    escaped_but(text, |_| false)
}

/// "1 error", "2 errors".
pub fn plural(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// A number of bytes, such as 500000, 64K, 10M or 1G (powers of 1024); `None` if it is not one, or 2^64 or more.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let all = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("3k", Some(3 << 10)),
            ("800M", Some(800 << 20)),
            ("2G", Some(2 << 30)),
            ("", None),
            ("M", None),
            ("-1", None),
            ("1.5G", None),
            ("2GB", None),
            ("99999999999G", None),
        ];
        for (text, bytes) in all {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let outside = "\x1b[31mred\x1b]0;title\x07\r\u{9b}2J\x7f\u{202e}\u{2066}\n\tline";
        let shown = escaped(outside);
        assert_eq!(
            shown,
            "\\u001b[31mred\\u001b]0;title\\u0007\\u000d\\u009b2J\\u007f\\u202e\\u2066\n\tline"
        );
        assert_eq!(escaped_line("a\nb\tc"), "a\\u000ab\\u0009c");
        assert!(matches!(escaped("a\u{fc}\u{20ac}\\"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_the_same_value() {
        // JSON does not require these characters to be escaped, but a terminal interprets them.
        let json = "{\"name\": \"a\u{9b}31m\u{202e}b\"}";
        assert_eq!(escaped(json), r#"{"name": "a\u009b31m\u202eb"}"#);
    }
}
