// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translation for readers (`levada translate`): turns a C file with forks into one without, and keeps its comments,
//! macros and layout.
//!
//! The file is parsed in preprocessed form. To map its tokens back to the file, the preprocessor gets the *spread*
//! file, which has one token per line. If the output for a line is the token of that line, the token is the same in the
//! file; otherwise it comes from a macro, and a fork with such a token is refused.

use crate::emit::{Edit, Macros, Piece, Style, edits};
use crate::lex::{Directive, Kind, Lexed, Token, lex, spelling};
use crate::lines::{Lines, unquoted};
use crate::parse::{Range, Refusal, parse};
use crate::preprocessed::asks_stolen;
use crate::report::{Places, diagnostics};
use levada_diag::{Diagnostic, Diagnostics, Sources, Span};
use std::collections::HashSet;

/// The file name in the line markers of a spread file.
const NAME: &str = "<levada spread>";

/// A file with one token per line.
#[derive(Debug)]
pub struct Spread {
    pub text: Vec<u8>,
    /// The content of each line, from line 1.
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug)]
enum Line {
    /// A token of the file, by its index.
    Token(usize),
    /// A directive, by its first byte in the file.
    Directive(u32),
}

/// Spreads a file. `local_include` maps the name in `#include "name"` to a path, if the file's folder has such a file:
/// the spread text is not in that folder.
pub fn spread(text: &[u8], local_include: &dyn Fn(&str) -> Option<String>) -> Spread {
    let lexed = lex(text);
    let mut out = format!("#line 1 \"{NAME}\"\n").into_bytes();
    let mut lines = Vec::new();
    let mut write = |bytes: &[u8], line: Line| {
        if matches!(line, Line::Token(_)) && (bytes.starts_with(b"#") || bytes.starts_with(b"%:")) {
            // Valid C has this token in directives only; at the beginning of a line it would make one.
            out.push(b'@');
        }
        out.extend_from_slice(bytes);
        if bytes.ends_with(b"\\") {
            // A backslash at the end of a line would join it with the next one.
            out.extend_from_slice(b"/**/");
        }
        out.push(b'\n');
        let count = 1 + bytes.iter().filter(|c| **c == b'\n').count();
        lines.extend(std::iter::repeat_n(line, count));
    };
    let mut directives = lexed.directives.iter().peekable();
    for (i, t) in lexed.tokens.iter().enumerate() {
        while let Some(d) = directives.next_if(|d| d.start < t.start) {
            write(&directive(text, d, local_include), Line::Directive(d.start));
        }
        write(&text[t.start as usize..t.end as usize], Line::Token(i));
    }
    for d in directives {
        write(&directive(text, d, local_include), Line::Directive(d.start));
    }
    Spread { text: out, lines }
}

/// A directive as it is written in the spread file.
fn directive(
    text: &[u8],
    d: &Directive,
    local_include: &dyn Fn(&str) -> Option<String>,
) -> Vec<u8> {
    let bytes = &text[d.start as usize..d.end as usize];
    if crate::lines::marker(bytes).is_some() {
        // A line marker would disturb the line numbers of the spread file.
        return Vec::new();
    }
    let words = String::from_utf8_lossy(bytes);
    let name = words.trim_start_matches(['#', ' ', '\t']);
    let name = name.strip_prefix("include").map(str::trim);
    let quoted = name.and_then(|n| n.strip_prefix('"')?.split('"').next());
    match quoted.and_then(local_include) {
        Some(path) => format!("#include \"{path}\"").into_bytes(),
        None => bytes.to_vec(),
    }
}

/// Maps the tokens of the preprocessed text to the file.
struct Origin<'a> {
    /// The file as it was written.
    text: &'a [u8],
    /// Tokens of the file.
    file: Lexed,
    /// Tokens of the preprocessed text.
    lexed: Lexed,
    lines: Lines,
    spread: &'a Spread,
    /// For each token of the preprocessed text: the same token in the file, or `None` if it comes from elsewhere.
    tokens: Vec<Option<usize>>,
    /// One step of the file's indentation.
    step: Vec<u8>,
    end_of_line: &'static [u8],
}

impl<'a> Origin<'a> {
    fn new(text: &'a [u8], spread: &'a Spread, preprocessed: &[u8]) -> Origin<'a> {
        let lexed = lex(preprocessed);
        let mut origin = Origin {
            text,
            file: lex(text),
            lines: Lines::new(preprocessed, &lexed.directives),
            tokens: vec![None; lexed.tokens.len()],
            step: step(text),
            end_of_line: end_of_line(text),
            spread,
            lexed,
        };
        let mut at = 0;
        while at < origin.lexed.tokens.len() {
            let line = origin.line(at);
            let mut end = at + 1;
            while end < origin.lexed.tokens.len() && line.is_some() && origin.line(end) == line {
                end += 1;
            }
            if let Some(line) = line
                && end == at + 1
                && let Some(Line::Token(i)) = origin.what(line)
            {
                let written = origin.file.tokens[i];
                let same = spelling(&text[written.start as usize..written.end as usize])
                    == spelled(preprocessed, &origin.lexed.tokens[at]);
                origin.tokens[at] = same.then_some(i);
            }
            at = end;
        }
        origin
    }

    /// The line of the spread file from which a token comes; `None`: it comes from an included file.
    fn line(&self, token: usize) -> Option<u32> {
        let start = self.lexed.tokens.get(token)?.start;
        let marker = self.lines.at(start);
        (unquoted(&marker.file) == NAME).then_some(marker.line)
    }

    fn what(&self, line: u32) -> Option<Line> {
        self.spread.lines.get(line as usize - 1).copied()
    }

    /// The index in the file of a token of the preprocessed text; the error is the token itself.
    fn index(&self, i: usize) -> Result<usize, usize> {
        self.tokens.get(i).copied().flatten().ok_or(i)
    }

    fn token(&self, i: usize) -> Result<Token, usize> {
        self.index(i).map(|i| self.file.tokens[i])
    }

    /// The bytes of the file that a piece copies. The error is a token that comes from a macro, so that it cannot be
    /// copied.
    fn bytes(&self, piece: &Piece) -> Result<(usize, usize), usize> {
        let &Piece::Copy {
            from,
            to,
            lead,
            gap,
        } = piece
        else {
            return Ok((0, 0));
        };
        // If a macro makes the first or last token, its name lies between the tokens on both sides.
        let start = if lead {
            self.token(from - 1)?.end
        } else {
            match (self.token(from), from.checked_sub(1).map(|b| self.index(b))) {
                (Err(_), Some(Ok(before))) => self.file.tokens[before + 1].start,
                (first, _) => first?.start,
            }
        };
        let end = if gap {
            self.token(to)?.start
        } else {
            match (self.token(to - 1), self.index(to)) {
                (Err(_), Ok(behind)) => self.file.tokens[behind - 1].end,
                (last, _) => last?.end,
            }
        };
        if start <= end {
            Ok((start as usize, end as usize))
        } else {
            Err(from)
        }
    }

    /// Copies a part of the file, and indents its lines after the first by `more`, except directives and the inner
    /// lines of comments and tokens.
    fn indented(&self, start: usize, end: usize, more: &[u8], out: &mut Vec<u8>) {
        let tokens = &self.file.tokens;
        let mut next = tokens.partition_point(|t| (t.end as usize) <= start);
        let mut comment: Option<&[u8]> = None;
        let mut at = start;
        while at < end {
            let rest = &self.text[at..end];
            if comment.is_none() && tokens.get(next).is_some_and(|t| t.start as usize == at) {
                let behind = (tokens[next].end as usize).min(end);
                out.extend_from_slice(&self.text[at..behind]);
                at = behind;
                next += 1;
                continue;
            }
            let mut length = 1;
            match comment {
                None if rest.starts_with(b"/*") || rest.starts_with(b"//") => {
                    comment = Some(if rest[1] == b'*' { b"*/" } else { b"\n" });
                    length = 2;
                }
                Some(close) if rest.starts_with(close) => {
                    comment = None;
                    length = close.len();
                }
                _ => {}
            }
            out.extend_from_slice(&rest[..length]);
            at += length;
            if self.text[at - 1] == b'\n' && comment.is_none() {
                let line = &self.text[at..end];
                let blanks = line
                    .iter()
                    .take_while(|c| matches!(c, b' ' | b'\t'))
                    .count();
                if !matches!(line.get(blanks), None | Some(b'\n' | b'\r' | b'#')) {
                    out.extend_from_slice(more);
                }
            }
        }
    }

    /// The byte at which text is inserted before an external declaration: before its comment.
    fn before(&self, token: usize) -> usize {
        // If the declaration begins with a macro, its first token in the file is the one after the last known token.
        let known = |i: &usize| self.tokens[*i].is_some();
        let index = match self.tokens.get(token).copied().flatten() {
            Some(i) => i,
            None => match (0..token.min(self.tokens.len())).rev().find(known) {
                Some(i) => self.tokens[i].map_or(0, |i| i + 1),
                None => 0,
            },
        };
        let end = self.file.tokens.get(index);
        let end = end.map_or(self.text.len(), |t| t.start as usize);
        let begin = if self.text.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let mut start = match index.checked_sub(1) {
            Some(before) => self.file.tokens[before].end as usize,
            None => begin,
        };
        for d in &self.file.directives {
            if (d.start as usize) < end {
                start = start.max(d.end as usize);
            }
        }
        // The last blank line that is followed by comments only.
        let gap = &self.text[start..end];
        let mut at = end;
        while at > start && matches!(self.text[at - 1], b' ' | b'\t') {
            at -= 1;
        }
        let blank = (1..gap.len()).rev().find(|&i| {
            let blank = gap[i] == b'\n' && gap[i - 1] == b'\n';
            let rest = lex(&gap[i..]);
            blank && rest.tokens.is_empty() && rest.directives.is_empty()
        });
        match blank {
            Some(i) => start + i + 1,
            None if start > begin && !gap.contains(&b'/') => at,
            None if gap.contains(&b'/') => {
                // Only comments: begin at the line after the previous declaration.
                let first = gap.iter().position(|&c| c == b'\n').map_or(0, |i| i + 1);
                let rest = lex(&gap[first..]);
                match start == begin || rest.tokens.is_empty() {
                    true if start == begin => begin,
                    true => start + first,
                    false => at,
                }
            }
            None => at,
        }
    }

    /// The place in the file of a range of tokens, for a diagnostic.
    fn span(&self, range: Range) -> Span {
        let whole = (
            self.tokens.get(range.start).copied().flatten(),
            self.tokens.get(range.end.max(1) - 1).copied().flatten(),
        );
        let (start, end) = match whole {
            (Some(a), Some(b)) if a <= b => (self.file.tokens[a].start, self.file.tokens[b].end),
            _ => match self.line(range.start).and_then(|l| self.what(l)) {
                Some(Line::Token(i)) => (self.file.tokens[i].start, self.file.tokens[i].end),
                Some(Line::Directive(byte)) => (byte, byte + 1),
                None => (0, 0),
            },
        };
        Span {
            file: 0,
            start,
            end,
        }
    }
}

fn spelled(text: &[u8], t: &Token) -> Vec<u8> {
    spelling(&text[t.start as usize..t.end as usize])
}

/// The result of a translation.
#[derive(Debug)]
pub enum Translated {
    /// The file has no forks.
    Same,
    Text(Vec<u8>),
    Refused(Sources, Diagnostics),
}

/// Translates a file. `preprocessed` is the preprocessor's output for `spread`; `path` is the file's name in
/// diagnostics.
pub fn translate(
    path: &str,
    text: &[u8],
    spread: &Spread,
    preprocessed: &[u8],
    style: Style,
) -> Translated {
    let origin = Origin::new(text, spread, preprocessed);
    if crate::lex::forks(&origin.lexed.tokens).is_empty() {
        return Translated::Same;
    }
    let parsed = parse(preprocessed, &origin.lexed);
    let asks = asks_stolen(preprocessed, &origin.lexed, &parsed);
    let made = if parsed.refusals.is_empty() {
        edits(&parsed, &Macros, style, &|e| asks.contains(&e.start))
    } else {
        Err(parsed.refusals)
    };
    let made = made.and_then(|made| write(&origin, &made, style).map_err(|r| vec![*r]));
    match made {
        Ok(out) => Translated::Text(out),
        Err(refusals) => {
            let mut sources = Sources::new();
            sources.add(path, String::from_utf8_lossy(text));
            let mut elsewhere = Places::new(preprocessed, &origin.lexed, None);
            let mut locate = |sources: &mut Sources, range: Range| match origin.line(range.start) {
                Some(_) => origin.span(range),
                None => elsewhere.find(sources, range), // in an included file
            };
            let found = diagnostics(&refusals, &mut sources, &mut locate);
            Translated::Refused(sources, found)
        }
    }
}

/// The refusal of a fork with a token that is not in the file: it comes from a macro or an included file.
fn from_elsewhere(origin: &Origin, token: usize) -> Box<Refusal> {
    let included = origin.line(token).is_none();
    let (message, label, help) = if included {
        (
            "an included file contains a fork",
            "the fork is here",
            "translate that file, too; levada cc compiles both as they are",
        )
    } else {
        (
            "a part of this fork comes from a macro",
            "the macro is expanded here",
            "write the expansion instead of the macro; levada cc compiles it as it is",
        )
    };
    Box::new(Refusal {
        code: if included {
            "fork-in-include"
        } else {
            "fork-in-macro"
        },
        message: message.into(),
        at: Range {
            start: token,
            end: token + 1,
        },
        label: label.into(),
        also: None,
        help: Some(help.into()),
    })
}

/// Warnings for the forks that the preprocessor removes, such as those in the other branch of an `#if`. They are not
/// parsed and remain as they were.
pub fn left_out(
    path: &str,
    text: &[u8],
    spread: &Spread,
    preprocessed: &[u8],
) -> (Sources, Diagnostics) {
    let origin = Origin::new(text, spread, preprocessed);
    let read: HashSet<usize> = origin.tokens.iter().copied().flatten().collect();
    let (mut sources, mut found) = (Sources::new(), Diagnostics::new());
    sources.add(path, String::from_utf8_lossy(text));
    for bang in crate::lex::forks(&origin.file.tokens) {
        if read.contains(&bang) {
            continue;
        }
        let span = Span {
            file: 0,
            start: origin.file.tokens[bang].start,
            end: origin.file.tokens[bang + 1].end,
        };
        let warning = Diagnostic::warning(
            "fork-left-out",
            "the preprocessor removes this fork, so it was not translated",
        );
        let help = "after `--`, define the macro that selects it, or remove the `#if`: a translation has one branch";
        found.push(warning.label(span, "this is unchanged").help(help));
    }
    (sources, found)
}

/// Whether an edit would drop a directive, or copy only a part of an `#if`. The error is a token that comes from a
/// macro.
fn loses_directive(origin: &Origin, edit: &Edit) -> Result<bool, usize> {
    let of = |start: usize, end: usize| {
        let all = &origin.file.directives;
        let first = all.partition_point(|d| (d.start as usize) < start);
        all[first..]
            .iter()
            .take_while(move |d| (d.start as usize) < end)
    };
    let mut copied = 0;
    for piece in &edit.pieces {
        let (start, end) = origin.bytes(piece)?;
        let mut open = 0;
        for d in of(start, end) {
            copied += 1;
            let words = String::from_utf8_lossy(&origin.text[d.start as usize..d.end as usize]);
            let name = words.trim_start_matches(['#', ' ', '\t']);
            match name {
                _ if name.starts_with("if") => open += 1,
                _ if name.starts_with("endif") => open -= 1,
                _ if name.starts_with("el") && open == 0 => return Ok(true),
                _ => {}
            }
            if open < 0 {
                return Ok(true);
            }
        }
        if open != 0 {
            return Ok(true);
        }
    }
    let whole = Piece::Copy {
        from: edit.range.start,
        to: edit.range.end,
        lead: false,
        gap: false,
    };
    if edit.range.start == edit.range.end {
        Ok(false)
    } else {
        let (start, end) = origin.bytes(&whole)?;
        Ok(copied < of(start, end).count())
    }
}

/// Applies the edits to the file, and includes `<levada/fork.h>` if it is needed.
fn write(origin: &Origin, made: &[Edit], style: Style) -> Result<Vec<u8>, Box<Refusal>> {
    let text = origin.text;
    // The range of bytes to replace, and the new text.
    let mut changes: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    let included = origin.file.directives.iter().any(|d| {
        let d = &text[d.start as usize..d.end as usize];
        d.windows(13).any(|w| w == b"levada/fork.h")
    });
    let mut needs_header = style == Style::Parallel && !included;
    for edit in made {
        let insertion = edit.range.start == edit.range.end;
        let (start, end) = match insertion {
            true if origin.line(edit.range.start).is_none() => {
                // Text before a function belongs to the forks in it: refuse at the first of these.
                let within = made.iter().map(|e| e.range);
                let mut within = within.filter(|r| r.end > r.start && r.start >= edit.range.start);
                let fork = within.next().map_or(edit.range.start, |r| r.start);
                return Err(from_elsewhere(origin, fork));
            }
            true => {
                let at = origin.before(edit.range.start);
                (at, at)
            }
            false => {
                let whole = Piece::Copy {
                    from: edit.range.start,
                    to: edit.range.end,
                    lead: false,
                    gap: false,
                };
                let (mut start, end) = origin
                    .bytes(&whole)
                    .map_err(|t| from_elsewhere(origin, t))?;
                if closes(edit.pieces.first()) {
                    start -= trailing_blanks(&text[..start]);
                }
                (start, end)
            }
        };
        if loses_directive(origin, edit).map_err(|t| from_elsewhere(origin, t))? {
            return Err(Box::new(Refusal {
                code: "fork-directive",
                message: "a directive among the parts of this fork would be lost".into(),
                at: edit.range,
                label: "there is an `#if` or another directive among its parts".into(),
                also: None,
                help: Some(
                    "let the `#if` define a macro or set a variable before the fork; levada cc compiles \
                     it as it is"
                        .into(),
                ),
            }));
        }
        let mut out = Vec::new();
        if insertion {
            let eol = origin.end_of_line;
            let line = &text[..start - trailing_blanks(&text[..start])];
            if !matches!(line.last(), None | Some(b'\n')) && line != BYTE_ORDER_MARK {
                out.extend_from_slice(eol);
            }
            if std::mem::take(&mut needs_header) {
                let header = b"#include <levada/fork.h>";
                match behind_includes(origin, start) {
                    Some(at) => changes.push((at, at, [eol, header].concat())),
                    None => {
                        let at = at_the_top(origin);
                        changes.push((at, at, [header, eol, eol].concat()));
                    }
                }
            }
        }
        let indent = if insertion {
            Vec::new()
        } else {
            indentation(text, start)
        };
        pieces(origin, &edit.pieces, &indent, &mut out)?;
        changes.push((start, end, out));
    }
    changes.sort_by_key(|c| (c.0, c.1));
    let mut out = Vec::with_capacity(text.len() * 2);
    let mut at = 0;
    for (start, end, new) in changes {
        if start < at {
            // Edits overlap only if one macro contains both.
            return Err(from_elsewhere(
                origin,
                made.first().map_or(0, |e| e.range.start),
            ));
        }
        out.extend_from_slice(&text[at..start]);
        out.extend_from_slice(&new);
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    Ok(out)
}

/// The end of the last `#include` before `end` that is not within an `#if` and not within a declaration (a list of
/// values may be included between braces).
fn behind_includes(origin: &Origin, end: usize) -> Option<usize> {
    let mut conditions = 0usize;
    let mut found = None;
    let mut tokens = origin.file.tokens.iter().peekable();
    let (mut depth, mut between) = (0usize, true);
    for d in origin
        .file
        .directives
        .iter()
        .filter(|d| (d.end as usize) < end)
    {
        while let Some(t) = tokens.next_if(|t| t.start < d.start) {
            match t.kind {
                Kind::Punct("(" | "[" | "{") => depth += 1,
                Kind::Punct(")" | "]" | "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            between = depth == 0 && matches!(t.kind, Kind::Punct(";" | "}"));
        }
        let words = String::from_utf8_lossy(&origin.text[d.start as usize..d.end as usize]);
        let name = words.trim_start_matches(['#', ' ', '\t']);
        if name.starts_with("if") {
            conditions += 1;
        } else if name.starts_with("endif") {
            conditions = conditions.saturating_sub(1);
        } else if name.starts_with("include") && conditions == 0 && between {
            found = Some(d.end as usize);
        }
    }
    found
}

/// The byte at which an `#include` is inserted in a file that has none: before the file's own macros, which could
/// change the header, but after those that configure the C library (they begin with an underscore).
fn at_the_top(origin: &Origin) -> usize {
    let first = origin.file.tokens.first();
    let first = first.map_or(origin.text.len(), |t| t.start as usize);
    let mut directives = origin.file.directives.iter();
    let found = directives.find(|d| {
        let words = String::from_utf8_lossy(&origin.text[d.start as usize..d.end as usize]);
        let words = words.trim_start_matches(['#', ' ', '\t']);
        let asked = words.strip_prefix("define").map(str::trim_start);
        !words.starts_with("pragma") && !asked.is_some_and(|name| name.starts_with('_'))
    });
    match found {
        Some(d) if (d.start as usize) < first => d.start as usize,
        _ => {
            let tokens = (0..origin.tokens.len()).find(|i| origin.tokens[*i].is_some());
            origin.before(tokens.unwrap_or(0))
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The end of line of a text; that of its first line is taken for all.
fn end_of_line(text: &[u8]) -> &'static [u8] {
    let first = text.iter().position(|&c| c == b'\n');
    match first.and_then(|i| i.checked_sub(1)) {
        Some(before) if text[before] == b'\r' => b"\r\n",
        _ => b"\n",
    }
}

/// One step of indentation: a tab if more lines begin with tabs than with two blanks, otherwise two blanks.
fn step(text: &[u8]) -> Vec<u8> {
    let begin = |with: &[u8]| text.windows(with.len()).filter(|w| *w == with).count();
    if begin(b"\n\t") > begin(b"\n  ") {
        b"\t".to_vec()
    } else {
        b"  ".to_vec()
    }
}

/// The blanks at the beginning of the line of a byte.
fn indentation(text: &[u8], byte: usize) -> Vec<u8> {
    let start = text[..byte]
        .iter()
        .rposition(|&c| c == b'\n')
        .map_or(0, |i| i + 1);
    let blank = |c: &&u8| matches!(**c, b' ' | b'\t');
    text[start..byte]
        .iter()
        .take_while(blank)
        .copied()
        .collect()
}

/// Whether a piece begins with a semicolon, before which blanks are removed.
fn closes(piece: Option<&Piece>) -> bool {
    matches!(piece, Some(Piece::Text(words)) if words.starts_with(';'))
}

fn trailing_blanks(text: &[u8]) -> usize {
    text.iter()
        .rev()
        .take_while(|c| matches!(c, b' ' | b'\t'))
        .count()
}

/// An indentation: the blanks of a line of the file, and additional steps.
struct Level {
    base: Vec<u8>,
    steps: usize,
}

/// Appends pieces to `out`; `indent` is the indentation of the line on which they begin.
fn pieces(
    origin: &Origin,
    pieces: &[Piece],
    indent: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Box<Refusal>> {
    let mut levels = vec![Level {
        base: indent.to_vec(),
        steps: 0,
    }];
    for piece in pieces {
        let level = levels.last_mut().expect("the first level is never removed");
        match piece {
            Piece::Indent(steps) => {
                level.steps = level.steps.saturating_add_signed(*steps as isize);
            }
            Piece::Begin(token) => {
                let more = origin.step.repeat(levels.iter().map(|l| l.steps).sum());
                let base = match origin.token(*token) {
                    Ok(t) => indentation(origin.text, t.start as usize),
                    Err(_) => Vec::new(),
                };
                levels.push(Level {
                    base: [base, more].concat(),
                    steps: 0,
                });
            }
            Piece::End => {
                levels.pop();
            }
            Piece::At(_) => {}
            Piece::Text(words) => {
                if closes(Some(piece)) {
                    out.truncate(out.len() - trailing_blanks(out));
                }
                let begin = [level.base.as_slice(), &origin.step.repeat(level.steps)].concat();
                for (i, line) in words.split('\n').enumerate() {
                    if i > 0 {
                        out.extend_from_slice(origin.end_of_line);
                        out.extend_from_slice(&begin);
                    }
                    out.extend_from_slice(line.as_bytes());
                }
            }
            copy => {
                let (start, end) = origin.bytes(copy).map_err(|t| from_elsewhere(origin, t))?;
                let more = origin.step.repeat(levels.iter().map(|l| l.steps).sum());
                origin.indented(start, end, &more, out);
            }
        }
    }
    Ok(())
}
