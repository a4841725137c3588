// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translation for the compiler: turns preprocessed C with forks into preprocessed C without. Line markers give the
//! origin of each part, so that errors and debug information refer to the user's lines.

use crate::emit::{Edit, Macros, Piece, Style, Words, edits};
use crate::lex::{Lexed, lex};
use crate::lines::Lines;
use crate::parse::{Parsed, Range, Refusal, parse};
use std::borrow::Cow;

/// The preprocessed `<levada/fork.h>`: its declarations, and the expansions of its macros. It is put in front of a
/// preprocessed text, which can no longer include the header.
#[derive(Clone, Debug)]
pub struct Prelude {
    /// Lines of C, each with the header from which it comes.
    lines: Vec<(String, String)>,
    push: String,
    record: String,
    out: String,
    likely: String,
}

/// A C file. Preprocessed with Levada's headers in the include path, it is the argument of [`Prelude::new`].
pub const PRELUDE: &str = "\
#include <levada/fork.h>
lvd_template_push LVD_FORK_PUSH(lvd_name_h, lvd_name_t, lvd_name_v, lvd_name_f);
lvd_template_record LVD_FORK_RECORD(lvd_name_h, lvd_name_t)
lvd_template_out LVD_FORK_OUT(lvd_name_h, lvd_name_t, lvd_name_v)
lvd_template_likely LVD_LIKELY(lvd_name_h)
";

impl Prelude {
    /// Makes a prelude of the preprocessed [`PRELUDE`]. The error is a sentence.
    pub fn new(text: &[u8]) -> Result<Prelude, String> {
        let text = String::from_utf8(text.to_vec()).map_err(|e| e.to_string())?;
        let mut prelude = Prelude {
            lines: Vec::new(),
            push: String::new(),
            record: String::new(),
            out: String::new(),
            likely: String::new(),
        };
        let mut file = String::new();
        for line in text.lines() {
            if let Some(m) = line
                .starts_with('#')
                .then(|| crate::lines::marker(line.as_bytes()))
                .flatten()
            {
                file = crate::lines::unquoted(&m.file);
                continue;
            }
            let template = line.strip_prefix("lvd_template_");
            match template.and_then(|t| t.split_once(' ')) {
                Some(("push", t)) => prelude.push = with_own_types(t),
                Some(("record", t)) => prelude.record = with_own_types(t),
                Some(("out", t)) => prelude.out = with_own_types(t),
                Some(("likely", t)) => prelude.likely = with_own_types(t),
                _ if line.trim().is_empty() => {}
                // Of the compiler's headers only the types that Levada's headers use: these are the same in every C
                // library.
                _ if own_header(&file).is_none() && !is_exact(line) => {}
                _ => prelude.lines.push((file.clone(), with_own_types(line))),
            }
        }
        let templates = [
            &prelude.push,
            &prelude.record,
            &prelude.out,
            &prelude.likely,
        ];
        if templates.iter().all(|t| t.contains("lvd_name_h")) {
            Ok(prelude)
        } else {
            Err("the <levada/fork.h> that was found lacks a macro of forks; is it of another version?".into())
        }
    }

    /// Puts these declarations in front of a preprocessed text, and removes their headers from it if it has them.
    fn before(&self, text: &[u8]) -> Vec<u8> {
        let lexed = lex(text);
        let lines = Lines::new(text, &lexed.directives);
        let mut out = Vec::with_capacity(text.len() * 2);
        // The first marker names the file and must remain the first line.
        let mut at = 0;
        if let Some(first) = lexed.directives.first().filter(|d| d.start == 0) {
            at = (first.end as usize + 1).min(text.len());
            out.extend_from_slice(&text[..at]);
        }
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        out.extend_from_slice(b"# 1 \"<levada/fork.h>\" 3\n");
        for (_, line) in &self.lines {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        let here = lines.at(at as u32);
        if !here.file.is_empty() {
            let marker = format!("# {} {} {}", here.line, here.file, here.kind);
            out.extend_from_slice(marker.trim_end().as_bytes());
            out.push(b'\n');
        }
        let mut dropped = false;
        for d in &lexed.directives {
            let (start, end) = (d.start as usize, d.end as usize);
            let Some(m) = crate::lines::marker(&text[start..end]).filter(|_| start >= at) else {
                continue;
            };
            if !dropped {
                out.extend_from_slice(&text[at..start]);
            }
            out.extend_from_slice(&text[start..end]);
            at = end;
            let file = crate::lines::unquoted(&m.file);
            let own = own_header(&file);
            dropped = own.is_some_and(|h| self.lines.iter().any(|(f, _)| own_header(f) == Some(h)));
            if dropped {
                out.push(b'\n');
            }
        }
        if !dropped {
            out.extend_from_slice(&text[at..]);
        }
        out
    }
}

/// The types that Levada's headers take from the compiler's headers.
const EXACT: [&str; 12] = [
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
];

/// Whether a line is the typedef of one of the `EXACT` types.
fn is_exact(line: &str) -> bool {
    let declared = line
        .trim()
        .strip_prefix("typedef ")
        .and_then(|l| l.strip_suffix(';'));
    declared.is_some_and(|d| EXACT.iter().any(|n| d.ends_with(&format!(" {n}"))))
}

/// The line with `lvd_` before the names of the `EXACT` types, since a file may define these names differently or not
/// at all.
fn with_own_types(line: &str) -> String {
    let lexed = lex(line.as_bytes());
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    for t in &lexed.tokens {
        let word = &line[t.start as usize..t.end as usize];
        if EXACT.contains(&word) {
            out.push_str(&line[at..t.start as usize]);
            out.push_str("lvd_");
            at = t.start as usize;
        }
    }
    out + &line[at..]
}

/// Replaces each `lvd_name_NAME` in a template by its value.
fn filled(template: &str, names: &[(&str, &str)]) -> String {
    let mut out = template.to_string();
    for (name, value) in names {
        out = out.replace(&format!("lvd_name_{name}"), value);
    }
    out
}

impl Words for Prelude {
    fn push(&self, handle: &str, record: &str, variable: &str, run: &str) -> String {
        let names = [("h", handle), ("t", record), ("v", variable), ("f", run)];
        filled(&self.push, &names)
    }

    fn record(&self, slot: &str, record: &str) -> String {
        filled(&self.record, &[("h", slot), ("t", record)])
    }

    fn out(&self, handle: &str, record: &str, variable: &str) -> String {
        filled(&self.out, &[("h", handle), ("t", record), ("v", variable)])
    }

    fn likely(&self, condition: &str) -> String {
        filled(&self.likely, &[("h", condition)])
    }
}

/// Whether a text contains a fork.
pub fn has_forks(text: &[u8]) -> bool {
    text.contains(&b'!') && !crate::lex::forks(&lex(text).tokens).is_empty()
}

/// Whether a preprocessed text includes a header of Levada, from any folder.
pub fn includes_ours(text: &[u8]) -> bool {
    let ours = |line: &[u8]| {
        let marker = crate::lines::marker(line)?;
        own_header(&crate::lines::unquoted(&marker.file)).map(|_| ())
    };
    text.split(|b| *b == b'\n')
        .filter(|line| line.starts_with(b"#"))
        .any(|line| ours(line).is_some())
}

/// Removes the line markers from a preprocessed text, as the compiler's option `-P` does.
pub fn without_markers(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for d in &lex(text).directives {
        let (start, end) = (d.start as usize, d.end as usize);
        if crate::lines::marker(&text[start..end]).is_some() {
            out.extend_from_slice(&text[at..start]);
            at = (end + 1).min(text.len());
        }
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// Refuses forks without a block; `None` if there are none. A text without `!!` is not lexed.
pub fn without_block(text: &[u8]) -> Option<Refused> {
    if !text.windows(2).any(|w| w == b"!!") {
        return None;
    }
    let lexed = lex(text);
    let found = crate::lex::forks_without_block(text, &lexed.tokens);
    let refusal = |&(callee, bang): &(usize, usize)| {
        let behind = lexed.tokens.get(bang + 2);
        let spelled = behind.map_or("", |t| {
            std::str::from_utf8(&text[t.start as usize..t.end as usize]).unwrap_or("")
        });
        let calls = behind.is_some_and(|t| t.kind == crate::lex::Kind::Word);
        let help = if calls {
            format!(
                "write the second call in a block, `!! {{ x = {spelled}...; }}`, where x is a variable for its \
                 value"
            )
        } else {
            "write f(arguments) !! { ... }: the block runs at the same time as the call".into()
        };
        Refusal {
            code: "fork-no-block",
            message: "`!!` forks a call and a block in braces, and the block is missing".into(),
            at: Range {
                start: bang,
                end: bang + 2,
            },
            label: "a block must follow".into(),
            also: Some((
                Range {
                    start: callee,
                    end: callee + 1,
                },
                "the forked call".into(),
            )),
            help: Some(help),
        }
    };
    let refusals: Vec<Refusal> = found.iter().map(refusal).collect();
    if refusals.is_empty() {
        None
    } else {
        Some(Refused {
            refusals,
            text: text.to_vec(),
            lexed,
        })
    }
}

/// The reasons for which a text was not translated, and the text that they refer to.
#[derive(Debug)]
pub struct Refused {
    pub refusals: Vec<Refusal>,
    /// The preprocessed text.
    pub text: Vec<u8>,
    /// The tokens to which the refusals refer.
    pub lexed: Lexed,
}

impl Refused {
    /// The lines of `file` on which a fork was refused since it calls no known function. There the function may have
    /// been replaced by a macro.
    pub fn lines_without_call(&self, file: &str) -> Vec<u32> {
        let lines = Lines::new(&self.text, &self.lexed.directives);
        let at = self
            .refusals
            .iter()
            .filter(|r| r.code == "fork-no-call" || r.code == "fork-unknown-function");
        let marker = |r: &Refusal| Some(lines.at(self.lexed.tokens.get(r.at.start)?.start));
        at.filter_map(marker)
            .filter(|m| crate::lines::unquoted(&m.file) == file)
            .map(|m| m.line)
            .collect()
    }
}

/// Puts the names of the functions that forks on these lines call into parentheses, so that a function-like macro of
/// the same name is not expanded. `None` if there are no such forks.
pub fn with_bracketed_calls(text: &[u8], lines: &[u32]) -> Option<Vec<u8>> {
    let lexed = lex(text);
    let tokens = &lexed.tokens;
    let line_of = |at: u32| 1 + text[..at as usize].iter().filter(|c| **c == b'\n').count() as u32;
    let mut names: Vec<usize> = Vec::new();
    for bang in crate::lex::forks(tokens) {
        let called = crate::lex::opening(tokens, bang - 1).and_then(|open| open.checked_sub(1));
        let Some(name) = called.filter(|&i| tokens[i].kind == crate::lex::Kind::Word) else {
            continue;
        };
        let (first, last) = (line_of(tokens[name].start), line_of(tokens[bang].start));
        if lines.iter().any(|l| (first..=last).contains(l)) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut out = Vec::with_capacity(text.len() + 2 * names.len());
    let mut at = 0;
    for &i in &names {
        let (start, end) = (tokens[i].start as usize, tokens[i].end as usize);
        out.extend_from_slice(&text[at..start]);
        out.push(b'(');
        out.extend_from_slice(&text[start..end]);
        out.push(b')');
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    (!names.is_empty()).then_some(out)
}

/// The name of a header of Levada, such as `levada/base.h`, from its path; `None` for other headers.
fn own_header(path: &str) -> Option<&str> {
    let at = path.rfind("levada/")?;
    let before = path[..at].chars().next_back();
    matches!(before, None | Some('/')).then(|| &path[at..])
}

/// Translates the forks of a preprocessed text; a text without forks is returned unchanged. `prelude` is called only if
/// the prelude is needed, and its error is returned. The inner error lists what was refused.
pub fn rewrite<'a, E>(
    text: &'a [u8],
    style: Style,
    prelude: impl FnOnce() -> Result<Prelude, E>,
) -> Result<Result<Cow<'a, [u8]>, Refused>, E> {
    if !has_forks(text) {
        return Ok(Ok(Cow::Borrowed(text)));
    }
    let done = match style {
        Style::Serial => written(text.to_vec(), style, &Macros),
        Style::Parallel => {
            let prelude = prelude()?;
            written(prelude.before(text), style, &prelude)
        }
    };
    Ok(done.map(Cow::Owned))
}

fn written(text: Vec<u8>, style: Style, words: &dyn Words) -> Result<Vec<u8>, Refused> {
    let lexed = lex(&text);
    let parsed = parse(&text, &lexed);
    let asks = asks_stolen(&text, &lexed, &parsed);
    let made = if parsed.refusals.is_empty() {
        edits(&parsed, words, style, &|e| asks.contains(&e.start))
    } else {
        Err(parsed.refusals)
    };
    let made = match made {
        Ok(made) => made,
        Err(refusals) => {
            return Err(Refused {
                refusals,
                text,
                lexed,
            });
        }
    };
    let mut output = Output {
        text: &text,
        lexed: &lexed,
        lines: &Lines::new(&text, &lexed.directives),
        out: Vec::with_capacity(text.len() * 2),
    };
    let mut at = 0;
    for edit in &made {
        let (from, to) = output.bytes(edit);
        output
            .out
            .extend_from_slice(&text[at as usize..from as usize]);
        output.pieces(&edit.pieces);
        output.resume(to);
        at = to;
    }
    output.out.extend_from_slice(&text[at as usize..]);
    Ok(output.out)
}

/// The first token of each external declaration that uses `lvd_stolen`.
pub fn asks_stolen(text: &[u8], lexed: &Lexed, parsed: &Parsed) -> Vec<usize> {
    let starts: Vec<usize> = parsed.externals.iter().map(|e| e.start).collect();
    let mut asks = Vec::new();
    for (i, t) in lexed.tokens.iter().enumerate() {
        if &text[t.start as usize..t.end as usize] == b"lvd_stolen" {
            // The last declaration that begins before the word.
            let before = starts.iter().copied().filter(|&s| s <= i).max();
            asks.extend(before);
        }
    }
    asks
}

/// Writes the translated text.
struct Output<'a> {
    text: &'a [u8],
    lexed: &'a Lexed,
    lines: &'a Lines,
    out: Vec<u8>,
}

impl Output<'_> {
    fn start(&self, token: usize) -> u32 {
        match self.lexed.tokens.get(token) {
            Some(t) => t.start,
            None => self.text.len() as u32,
        }
    }

    fn end(&self, token: usize) -> u32 {
        self.lexed.tokens[token - 1].end
    }

    fn bytes(&self, edit: &Edit) -> (u32, u32) {
        let start = self.start(edit.range.start);
        if edit.range.end > edit.range.start {
            (start, self.end(edit.range.end))
        } else {
            (start, start)
        }
    }

    /// Writes a line marker and blanks, so that what follows has the file, line and column of this byte.
    fn resume(&mut self, byte: u32) {
        let m = self.lines.at(byte);
        if !self.out.ends_with(b"\n") {
            self.out.push(b'\n');
        }
        if !m.file.is_empty() {
            let kind = if m.kind.is_empty() { "" } else { " " };
            let marker = format!("# {} {}{kind}{}\n", m.line, m.file, m.kind);
            self.out.extend_from_slice(marker.as_bytes());
        }
        let column = self.lines.column(byte) as usize;
        self.out.resize(self.out.len() + column, b' ');
    }

    fn pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Indent(_) | Piece::Begin(_) | Piece::End => {}
                Piece::At(token) => self.resume(self.start(*token)),
                Piece::Text(text) => {
                    let flat = text.replace('\n', " ");
                    self.out.extend_from_slice(flat.as_bytes());
                }
                &Piece::Copy {
                    from,
                    to,
                    lead,
                    gap,
                } => {
                    let start = if lead {
                        self.end(from)
                    } else {
                        self.start(from)
                    };
                    let end = if gap { self.start(to) } else { self.end(to) };
                    self.resume(start);
                    let text = self.text;
                    self.out
                        .extend_from_slice(&text[start as usize..end as usize]);
                }
            }
        }
    }
}
