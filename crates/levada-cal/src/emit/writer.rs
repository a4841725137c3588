// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the text of a C file: indentation, `#line` directives, and valid C identifiers.

use crate::ir::{SourceFile, Span};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The starts of lines in the source files.
pub struct Lines<'a> {
    files: Vec<(&'a SourceFile, Vec<u32>)>,
}

impl<'a> Lines<'a> {
    pub fn new(files: &'a [SourceFile]) -> Lines<'a> {
        let starts = |text: &str| {
            let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
            std::iter::once(0)
                .chain(breaks.map(|(i, _)| i as u32 + 1))
                .collect()
        };
        Lines {
            files: files.iter().map(|f| (f, starts(&f.text))).collect(),
        }
    }

    /// The line of a span, counted from one; 0 if its file is not known.
    pub fn line(&self, span: Span) -> u32 {
        self.files.get(span.file as usize).map_or(0, |(_, starts)| {
            starts.partition_point(|s| *s <= span.start) as u32
        })
    }

    pub fn path(&self, span: Span) -> &'a str {
        let file = self.files.get(span.file as usize);
        file.map_or("", |f| f.0.path.as_str())
    }

    /// The first and the last column of a span in its first line, in characters, counted from one; 0 where
    /// the line is too long for columns to be of use.
    pub fn columns(&self, span: Span) -> (u32, u32) {
        let Some((file, starts)) = self.files.get(span.file as usize) else {
            return (0, 0);
        };
        let line = starts.partition_point(|s| *s <= span.start);
        let start = starts[line.saturating_sub(1)] as usize;
        let end = starts.get(line).map_or(file.text.len(), |&s| s as usize);
        if span.end as usize > start + LINE_BYTES_COUNTED_MAX {
            return (0, 0);
        }
        let text = file.text.get(start..end).unwrap_or("").trim_end();
        let before = |at: u32| {
            let places = text.char_indices().map(|(i, _)| start + i);
            places.take_while(|&place| place < at as usize).count() as u32
        };
        let first = before(span.start) + 1;
        (first, before(span.end).max(first))
    }
}

/// Maximum position in a line, in bytes, up to which columns are counted.
const LINE_BYTES_COUNTED_MAX: usize = u16::MAX as usize;

/// Maximum indentation in levels: rows of a long `elsif` chain would be mostly spaces.
const INDENT_LEVELS_MAX: usize = 40;

pub struct Writer<'a> {
    pub text: String,
    pub lines: &'a Lines<'a>,
    name: String,
    indent: usize,
    row: u32,
    /// The source line that the C compiler assigns to the next row.
    believed: Option<(u32, u32)>,
}

impl<'a> Writer<'a> {
    pub fn new(name: &str, lines: &'a Lines<'a>) -> Writer<'a> {
        Writer {
            text: String::new(),
            lines,
            name: name.to_string(),
            indent: 0,
            row: 1,
            believed: None,
        }
    }

    /// Writes rows. A row that begins with a closing brace is indented less, and the rows after an open brace more.
    pub fn put(&mut self, rows: &str) {
        for row in rows.lines() {
            let row = row.trim_end();
            if row.starts_with('}') {
                self.indent = self.indent.saturating_sub(1);
            }
            if !row.is_empty() && !row.starts_with('#') {
                let label = row.ends_with(':') || row.ends_with(": ;");
                let depth = if label {
                    self.indent.saturating_sub(1)
                } else {
                    self.indent
                };
                for _ in 0..depth.min(INDENT_LEVELS_MAX) {
                    self.text.push_str("  ");
                }
            }
            self.text.push_str(row);
            self.text.push('\n');
            self.row += 1;
            if let Some((_, line)) = &mut self.believed {
                *line += 1;
            }
            if row.ends_with('{') {
                self.indent += 1;
            }
        }
    }

    /// The next row comes from `span`.
    pub fn at(&mut self, span: Span) {
        let line = self.lines.line(span);
        if line == 0 || self.believed == Some((span.file, line)) {
            return;
        }
        let path = string_literal(self.lines.path(span));
        let _ = writeln!(self.text, "#line {line} {path}");
        self.row += 1;
        self.believed = Some((span.file, line));
    }

    /// The next row is the compiler's own.
    pub fn own(&mut self) {
        if self.believed.take().is_some() {
            let _ = writeln!(
                self.text,
                "#line {} {}",
                self.row + 1,
                string_literal(&self.name)
            );
            self.row += 1;
        }
    }
}

pub fn string_literal(s: &str) -> String {
    let mut out = String::from("\"");
    for b in s.bytes() {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            // Octal escapes end after three digits, whatever follows; "??" begins a trigraph.
            b' '..=b'~' if b != b'?' => out.push(b as char),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// A comment's text: nothing that ends the comment early.
pub fn comment(s: &str) -> String {
    s.replace("*/", "* /").replace(['\n', '\r'], " ")
}

const RESERVED: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "asm",
    "typeof",
    "bool",
    "true",
    "false",
    "NULL",
    "EOF",
    "BUFSIZ",
    "stdin",
    "stdout",
    "stderr",
    "offsetof",
    "errno",
    "unix",
    "linux",
    "self",
    "S",
    "R",
    "main",
    "i386",
    "nullptr",
    "constexpr",
    "alignas",
    "alignof",
    "thread_local",
];

/// Allocates names that differ from each other and from all names that C or the emitter uses.
#[derive(Default)]
pub struct Names {
    used: HashSet<String>,
    /// How often a name was requested again.
    again: HashMap<String, u32>,
}

impl Names {
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut base: String = wanted
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_ascii_digit() || c == '_') {
            base.insert(0, 'v');
        }
        let ours = [
            "in_", "out_", "lvd_", "LVD_", "levada_", "LEVADA_", "INT", "UINT",
        ];
        if RESERVED.contains(&base.as_str())
            || base.ends_with("_t")
            || ours.iter().any(|p| base.starts_with(p))
        {
            base.push('_');
        }
        let mut name = base.clone();
        while !self.used.insert(name.clone()) {
            let n = self.again.entry(base.clone()).or_insert(1);
            *n += 1;
            name = format!("{base}_{n}");
        }
        name
    }
}
