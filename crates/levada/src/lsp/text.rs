// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Positions and files as the protocol represents them: lines from 0, columns in UTF-16 units, URIs.

use levada_cal::ir::Span;
use lsp_types::{Position, Range, Uri};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The byte offset of a position; positions beyond the end of a line or of the text are clipped to it.
pub fn offset(text: &str, at: Position) -> u32 {
    let mut start = 0;
    for _ in 0..at.line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len() as u32,
        }
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut units = at.character;
    for (i, c) in line.char_indices() {
        if units < c.len_utf16() as u32 {
            return (start + i) as u32;
        }
        units -= c.len_utf16() as u32;
    }
    (start + line.len()) as u32
}

fn position(text: &str, offset: u32) -> Position {
    let mut offset = (offset as usize).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    Position {
        line: before.matches('\n').count() as u32,
        character: before[start..].encode_utf16().count() as u32,
    }
}

pub fn range(text: &str, span: Span) -> Range {
    Range::new(position(text, span.start), position(text, span.end))
}

/// The file of a URI, by its canonical path if it exists.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let rest = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(rest.len());
    let mut all = rest.bytes();
    while let Some(b) = all.next() {
        match b {
            b'%' => {
                let mut digit = || char::from(all.next()?).to_digit(16);
                bytes.push((digit()? * 16 + digit()?) as u8);
            }
            b => bytes.push(b),
        }
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    Some(path.canonicalize().unwrap_or(path))
}

pub fn uri_of(path: &Path) -> Option<Uri> {
    let mut text = String::from("file://");
    for &b in path.as_os_str().as_bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(b));
            }
            b => text += &format!("%{b:02X}"),
        }
    }
    Uri::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_in_utf16() {
        let text = "a\nü😀b\r\n";
        let at = |line, character| offset(text, Position { line, character });
        // ü is one unit and two bytes, the emoji two units and four bytes.
        assert_eq!([at(0, 0), at(1, 1), at(1, 3), at(1, 4)], [0, 4, 8, 9]);
        // A position inside a character is rounded down; beyond the end it is clipped.
        assert_eq!([at(1, 2), at(0, 9), at(9, 0)], [4, 1, text.len() as u32]);
        let face = Span {
            file: 0,
            start: 4,
            end: 8,
        };
        let range = range(text, face);
        assert_eq!((range.start.character, range.end.character), (1, 3));
    }

    #[test]
    fn files_become_uris_and_back() {
        let path = Path::new("/nowhere/a b/ü#%.cal");
        let uri = uri_of(path).unwrap();
        assert_eq!(uri.as_str(), "file:///nowhere/a%20b/%C3%BC%23%25.cal");
        assert_eq!(path_of(&uri).unwrap(), path);
        assert_eq!(path_of(&Uri::from_str("untitled:1").unwrap()), None);
    }
}
