// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Line markers of preprocessed text: the file and line from which each byte comes.

use crate::lex::Directive;

/// A line marker: `# 12 "file.c" 3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The number of the line that follows.
    pub line: u32,
    /// The file name as written, with quotes and escapes; empty if the marker has none.
    pub file: String,
    /// The flags for the kind of file, separated by blanks (3: system header, 4: C that C++ includes).
    pub kind: String,
    /// Flag 1: the text of an included file begins here.
    pub enters: bool,
}

/// The lines of a preprocessed text, and its line markers.
#[derive(Debug)]
pub struct Lines {
    /// The byte at which each line begins.
    starts: Vec<u32>,
    /// For each marker: the index in `starts` of the first line after it, and its content.
    markers: Vec<(usize, Marker)>,
}

/// Reads a directive as a line marker or `#line`; `None` if it is neither.
pub fn marker(directive: &[u8]) -> Option<Marker> {
    let text = String::from_utf8_lossy(directive);
    let rest = text.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line: u32 = rest[..digits].parse().ok()?;
    let rest = rest[digits..].trim_start();
    let (mut file, mut flags) = (String::new(), rest);
    if rest.starts_with('"') {
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end?.0 + 1;
        file = rest[..end].to_string();
        flags = &rest[end..];
    }
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let kind: Vec<&str> = flags
        .iter()
        .copied()
        .filter(|f| matches!(*f, "3" | "4"))
        .collect();
    Some(Marker {
        line,
        file,
        kind: kind.join(" "),
        enters: flags.contains(&"1"),
    })
}

impl Lines {
    pub fn new(text: &[u8], directives: &[Directive]) -> Lines {
        let mut starts = vec![0u32];
        let ends = text.iter().enumerate().filter(|(_, c)| **c == b'\n');
        starts.extend(ends.map(|(i, _)| i as u32 + 1));
        let mut markers = Vec::new();
        for d in directives {
            if let Some(mut m) = marker(&text[d.start as usize..d.end as usize]) {
                if m.file.is_empty()
                    && let Some((_, before)) = markers.last()
                {
                    let before: &Marker = before;
                    m.file = before.file.clone();
                    m.kind = before.kind.clone();
                }
                markers.push((starts.partition_point(|&s| s <= d.end), m));
            }
        }
        Lines { starts, markers }
    }

    /// The marker that applies to a byte, with `line` set to the number of that byte's line.
    pub fn at(&self, byte: u32) -> Marker {
        let line = self.starts.partition_point(|&s| s <= byte) - 1;
        let after = self.markers.partition_point(|(first, _)| *first <= line);
        match after.checked_sub(1).map(|i| &self.markers[i]) {
            Some((first, m)) => Marker {
                line: m.line + (line - first) as u32,
                ..m.clone()
            },
            None => Marker {
                line: line as u32 + 1,
                file: String::new(),
                kind: String::new(),
                enters: false,
            },
        }
    }

    /// Number of bytes before this one on its line.
    pub fn column(&self, byte: u32) -> u32 {
        byte - self.starts[self.starts.partition_point(|&s| s <= byte) - 1]
    }

    pub fn line_start(&self, byte: u32) -> u32 {
        byte - self.column(byte)
    }
}

/// A file name of a marker, without quotes and escapes.
pub fn unquoted(file: &str) -> String {
    let inner = file.strip_prefix('"').and_then(|f| f.strip_suffix('"'));
    let mut out = String::new();
    let mut chars = inner.unwrap_or(file).chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::lex;

    #[test]
    fn markers_are_followed() {
        let text = b"# 0 \"a \\\"b\\\".c\"\n# 5 \"x.h\" 1 3 4\nint a;\n\nint b;\n#line 9\nint c;\n";
        let lines = Lines::new(text, &lex(text).directives);
        let at = |needle: &str| {
            let text = std::str::from_utf8(text).unwrap();
            let m = lines.at(text.find(needle).unwrap() as u32);
            (m.line, unquoted(&m.file), m.kind)
        };
        assert_eq!(at("int a"), (5, "x.h".into(), "3 4".into()));
        assert_eq!(at("int b"), (7, "x.h".into(), "3 4".into()));
        assert_eq!(at("int c"), (9, "x.h".into(), "3 4".into()));
        assert_eq!(unquoted("\"a \\\"b\\\".c\""), "a \"b\".c");
    }
}
