// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes diagnostics of refusals, with places in the user's files instead of the preprocessed text.

use crate::lex::{Lexed, lex};
use crate::lines::{Lines, unquoted};
use crate::parse::{Range, Refusal};
use crate::preprocessed::Refused;
use levada_diag::{Diagnostic, Diagnostics, Sources, Span};
use std::collections::HashMap;
use std::path::Path;

/// Finds the place in a source file of a range of tokens of the preprocessed text.
pub type Locate<'a> = dyn FnMut(&mut Sources, Range) -> Span + 'a;

/// The refusals as diagnostics.
pub fn diagnostics(
    refusals: &[Refusal],
    sources: &mut Sources,
    locate: &mut Locate,
) -> Diagnostics {
    let mut found = Diagnostics::new();
    for r in refusals {
        let at = locate(sources, r.at);
        let mut d = Diagnostic::error(r.code, r.message.as_str()).label(at, r.label.as_str());
        if let Some((also, label)) = &r.also {
            d = d.label(locate(sources, *also), label.as_str());
        }
        if let Some(help) = &r.help {
            d = d.help(help.as_str());
        }
        found.push(d);
    }
    found
}

/// The refusals of a preprocessed text as diagnostics, and the source files that they refer to. `input`: the name that
/// the preprocessor uses for the standard input, and the text of that.
pub fn of_preprocessed(refused: &Refused, input: Option<(&str, &[u8])>) -> (Sources, Diagnostics) {
    let mut sources = Sources::new();
    let mut places = Places::new(&refused.text, &refused.lexed, input);
    let mut locate = |sources: &mut Sources, range: Range| places.find(sources, range);
    let found = diagnostics(&refused.refusals, &mut sources, &mut locate);
    (sources, found)
}

/// Maps tokens of a preprocessed text to places in the source files.
pub struct Places<'a> {
    text: &'a [u8],
    lexed: &'a Lexed,
    lines: Lines,
    /// The preprocessor's name for the standard input, and the text of that.
    input: Option<(&'a str, &'a [u8])>,
    /// For each file name: the index in `Sources`, and the tokens if the file can be read.
    files: HashMap<String, (u32, Option<Lexed>)>,
}

impl<'a> Places<'a> {
    pub fn new(text: &'a [u8], lexed: &'a Lexed, input: Option<(&'a str, &'a [u8])>) -> Self {
        Places {
            text,
            lexed,
            lines: Lines::new(text, &lexed.directives),
            input,
            files: HashMap::new(),
        }
    }

    /// The place of a range of tokens; adds its file to `sources`. The result is the whole line where the tokens come
    /// from a macro, and the beginning of the file where that cannot be read.
    pub fn find(&mut self, sources: &mut Sources, range: Range) -> Span {
        let token = self.lexed.tokens.get(range.start);
        let byte = token.map_or(self.text.len() as u32, |t| t.start);
        let marker = self.lines.at(byte);
        let name = unquoted(&marker.file);
        let (file, lexed) = self.files.entry(name.clone()).or_insert_with(|| {
            let bytes = match self.input {
                Some((stands_for, text)) if stands_for == name => Some(text.to_vec()),
                _ => std::fs::read(&name).ok(),
            };
            let text = bytes.map(|b| String::from_utf8_lossy(&b).into_owned());
            let lexed = text.as_ref().map(|t| lex(t.as_bytes()));
            let shown = Sources::display_path(Path::new(&name));
            let file = sources.add(shown, text.unwrap_or_default());
            (file, lexed)
        });
        let text = sources.file(*file).text.clone();
        let Some(lexed) = lexed else {
            return Span {
                file: *file,
                start: 0,
                end: 0,
            };
        };
        let (start, end) = line_of(text.as_bytes(), marker.line);
        // The same token on that line of the file. If the line has the token several times, it is the one with as
        // many equal tokens before it as in the preprocessed text.
        let here = token.and_then(|t| {
            let spelled = |t: &crate::lex::Token| &self.text[t.start as usize..t.end as usize];
            let wanted = spelled(t);
            let same_line = |i: &usize| {
                let t = &self.lexed.tokens[*i];
                let m = self.lines.at(t.start);
                m.line == marker.line && m.file == marker.file
            };
            let before = (0..range.start).rev().take_while(same_line);
            let nth = before
                .filter(|&i| spelled(&self.lexed.tokens[i]) == wanted)
                .count();
            let on_line = lexed.tokens.iter().enumerate();
            let mut on_line = on_line.filter(|(_, t)| (start..end).contains(&t.start));
            on_line
                .by_ref()
                .filter(|(_, t)| &text.as_bytes()[t.start as usize..t.end as usize] == wanted)
                .nth(nth)
                .map(|(i, _)| i)
        });
        let Some(first) = here else {
            let blanks = text[start as usize..end as usize].len()
                - text[start as usize..end as usize].trim_start().len();
            return Span {
                file: *file,
                start: start + blanks as u32,
                end: end.max(start + blanks as u32),
            };
        };
        // Extend the span while the tokens of both texts are equal.
        let mut last = first;
        for i in 0..(range.end - range.start) {
            let (Some(a), Some(b)) = (
                self.lexed.tokens.get(range.start + i),
                lexed.tokens.get(first + i),
            ) else {
                break;
            };
            let a = &self.text[a.start as usize..a.end as usize];
            if a != &text.as_bytes()[b.start as usize..b.end as usize] {
                break;
            }
            last = first + i;
        }
        Span {
            file: *file,
            start: lexed.tokens[first].start,
            end: lexed.tokens[last].end,
        }
    }
}

/// The bytes of a line, counted from 1, without its end of line.
fn line_of(text: &[u8], line: u32) -> (u32, u32) {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].iter().position(|&c| c == b'\n') {
            Some(n) => start += n + 1,
            None => break,
        }
    }
    let end = text[start..].iter().position(|&c| c == b'\n');
    (start as u32, end.map_or(text.len(), |n| start + n) as u32)
}
