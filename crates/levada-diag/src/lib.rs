// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Diagnostics: what a compiler has to say about a source file, and how it is shown. The compilers
//! of this project (CAL, and C with forks) share them.
//!
//! Every stage pushes [`Diagnostic`]s into one [`Diagnostics`] and goes on, so that a run reports
//! every error. [`Sources`] holds the text of all files read; a [`Span`] points into it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use levada_text::{escaped, escaped_but, escaped_line};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// A byte range in a source file; `file` indexes the table of files that it goes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub file: u32,
    pub start: u32,
    pub end: u32,
}

/// A source file that spans point into.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// As a user would type it: relative where possible.
    pub path: String,
    pub text: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A place in a source file and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A short name that stays the same when the wording changes, such as `type-mismatch`.
    pub code: &'static str,
    pub message: String,
    /// The first one is the primary place. Without labels the message belongs to no file.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// What is only told to whoever asks for it.
    pub fn note(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::error(code, message)
        }
    }

    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// The same is found at another place: it is shown, too, unless there are many. The first label is the
    /// place that comes first.
    pub fn also_at(&mut self, span: Span) {
        let Some(first) = self.labels.first_mut() else {
            return;
        };
        let mut later = span;
        if first.span.file == span.file && span.start < first.span.start {
            later = std::mem::replace(&mut first.span, span);
        }
        if self.labels.len() <= MAX_ALSO {
            self.labels.push(Label {
                span: later,
                text: "and here".into(),
            });
        }
    }

    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }
}

/// So many findings are compared with a new one that may be the same.
const MAX_COMPARED: usize = 1000;

/// A finding that is made at many places shows at most so many of them beside the first.
const MAX_ALSO: usize = 3;

/// Where a diagnostic sorts: by its first label, those without a place first.
fn sort_key(diag: &Diagnostic) -> (u32, u32, u32) {
    diag.labels
        .first()
        .map_or((0, 0, 0), |l| (l.span.file + 1, l.span.start, l.span.end))
}

/// What has been found so far. The same finding is kept once: an actor that is specialised several
/// times would otherwise repeat itself.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    seen: HashSet<(Severity, &'static str, String, Option<Span>)>,
    errors: usize,
    notes: bool,
}

impl Diagnostics {
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// From now on notes are kept, too.
    pub fn keep_notes(&mut self) {
        self.notes = true;
    }

    /// Whether notes are kept: else none need be looked for.
    pub fn keeps_notes(&self) -> bool {
        self.notes
    }

    pub fn push(&mut self, diag: Diagnostic) {
        if diag.severity == Severity::Note && !self.notes {
            return;
        }
        let place = diag.labels.first().map(|l| l.span);
        if self
            .seen
            .insert((diag.severity, diag.code, diag.message.clone(), place))
        {
            self.errors += usize::from(diag.severity == Severity::Error);
            self.found.push(diag);
        }
    }

    /// The same, but where the same was found elsewhere in this file, it is one finding with several places.
    pub fn push_once(&mut self, diag: Diagnostic) {
        let Some(place) = diag.labels.first().map(|l| l.span) else {
            return self.push(diag);
        };
        let same = |d: &&mut Diagnostic| {
            let file = d.labels.first().map(|l| l.span.file);
            d.code == diag.code && d.message == diag.message && file == Some(place.file)
        };
        let before = self.found.iter_mut().take(MAX_COMPARED).find(same);
        match before {
            // It may be checked again.
            Some(before) if before.labels.iter().any(|l| l.span == place) => {}
            Some(before) => before.also_at(place),
            None => self.push(diag),
        }
    }

    pub fn extend(&mut self, diags: impl IntoIterator<Item = Diagnostic>) {
        for diag in diags {
            self.push(diag);
        }
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub fn error_count(&self) -> usize {
        self.errors
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Sorted by file and position.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.found.iter().collect();
        sorted.sort_by_key(|d| sort_key(d));
        sorted.into_iter()
    }

    /// Sorted by file and position.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(sort_key);
        self.found
    }
}

/// A position as people count: lines and columns (in characters) from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCol {
    pub line: u32,
    pub column: u32,
}

/// All files read; `Span::file` indexes it.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    line_starts: Vec<Vec<u32>>,
}

impl Sources {
    pub fn new() -> Sources {
        Sources::default()
    }

    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> u32 {
        let text = text.into();
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(i, _)| i as u32 + 1));
        self.line_starts.push(starts);
        self.files.push(SourceFile {
            path: path.into(),
            text,
        });
        self.files.len() as u32 - 1
    }

    pub fn file(&self, file: u32) -> &SourceFile {
        &self.files[file as usize]
    }

    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The line and column where `span` starts.
    pub fn line_col(&self, span: Span) -> LineCol {
        let starts = &self.line_starts[span.file as usize];
        let line = starts.partition_point(|&s| s <= span.start) - 1;
        let text = &self.files[span.file as usize].text;
        let before = text
            .get(starts[line] as usize..span.start as usize)
            .unwrap_or("");
        LineCol {
            line: line as u32 + 1,
            column: before.chars().count() as u32 + 1,
        }
    }

    /// The file that is shown as `path`; the last one, where it was read again.
    pub fn find(&self, path: &str) -> Option<u32> {
        let found = self.files.iter().rposition(|f| f.path == path)?;
        Some(found as u32)
    }

    /// Where a line and a column are in the text, if they are in it; both count from 1.
    pub fn offset(&self, file: u32, at: LineCol) -> Option<u32> {
        let starts = &self.line_starts[file as usize];
        let text = &self.files[file as usize].text;
        let start = *starts.get(at.line.checked_sub(1)? as usize)? as usize;
        let line = text[start..].split('\n').next()?;
        let column = at.column.checked_sub(1)? as usize;
        let mut ends = line.char_indices().map(|(i, _)| i).chain([line.len()]);
        Some((start + ends.nth(column)?) as u32)
    }

    /// A path as a user would type it: relative to the current folder where it lies below it.
    pub fn display_path(path: &Path) -> String {
        let here = std::env::current_dir().ok();
        let shown = here.and_then(|h| path.strip_prefix(h).ok()).unwrap_or(path);
        let text = shown.display().to_string();
        text.strip_prefix("./").map_or(text.clone(), str::to_owned)
    }
}

/// `span` as a byte range that lies within the text and on character boundaries.
fn clamp(text: &str, span: Span) -> std::ops::Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Nobody reads more than this at once.
const MAX_SHOWN: usize = 200;

/// Those of `all` to show, in the same order, and for the others, what and how many they are. Where there are
/// too many, errors come before warnings and notes, and what is rare before what is said everywhere: the few
/// that matter would drown else.
pub fn to_show(all: Vec<&Diagnostic>) -> (Vec<&Diagnostic>, String) {
    if all.len() <= MAX_SHOWN {
        return (all, String::new());
    }
    let kind = |d: &Diagnostic| (d.severity, d.code);
    let mut left: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
    for diag in &all {
        *left.entry(kind(diag)).or_default() += 1;
    }
    let mut chosen: Vec<usize> = (0..all.len()).collect();
    chosen.sort_by_key(|&i| (all[i].severity, left[&kind(all[i])], all[i].code, i));
    chosen.truncate(MAX_SHOWN);
    chosen.sort_unstable();
    for &i in &chosen {
        *left.get_mut(&kind(all[i])).expect("it was counted") -= 1;
    }
    let of: Vec<String> = left
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|((severity, code), n)| format!("{n} {}[{code}]", severity.name()))
        .collect();
    let more = format!(
        "... and {} more: {}\n\n",
        all.len() - MAX_SHOWN,
        of.join(", ")
    );
    (chosen.iter().map(|&i| all[i]).collect(), more)
}

/// `diags` as text, each with its line shown.
pub fn render(sources: &Sources, diags: &Diagnostics, color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    // Names, paths and lines come from outside. The renderer replaces some of their control characters, in titles and
    // lines; what it writes itself is newlines and, for colours, escape characters.
    let mut out = String::new();
    let (shown, more) = to_show(diags.iter().collect());
    for diag in shown {
        let level = match diag.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(escaped(&diag.message)).id(diag.code);
        // One snippet a file, in the order in which the labels name the files.
        let mut files: Vec<u32> = Vec::new();
        for label in &diag.labels {
            if !files.contains(&label.span.file) {
                files.push(label.span.file);
            }
        }
        // Without a line to show there is nothing but the words.
        if files.is_empty() {
            let mut say = |title| {
                out.push_str(&renderer.render(&[Group::with_title(title)]));
                out.push('\n');
            };
            say(title);
            if let Some(help) = &diag.help {
                say(Level::HELP.primary_title(escaped(help)));
            }
            out.push('\n');
            continue;
        }
        let mut group = title.elements(files.iter().map(|&file| {
            let source = sources.file(file);
            let mut snippet = Snippet::source(source.text.as_ref())
                .path(escaped_line(&source.path))
                .fold(true);
            for (i, label) in diag.labels.iter().enumerate() {
                if label.span.file == file {
                    let kind = match i {
                        0 => AnnotationKind::Primary,
                        _ => AnnotationKind::Context,
                    };
                    let mark = kind.span(clamp(&source.text, label.span));
                    snippet = snippet.annotation(if label.text.is_empty() {
                        mark
                    } else {
                        mark.label(escaped(&label.text))
                    });
                }
            }
            snippet
        }));
        if let Some(help) = &diag.help {
            group = group.element(Level::HELP.message(escaped(help)));
        }
        out.push_str(&renderer.render(&[group]));
        out.push_str("\n\n");
    }
    out += &more;
    escaped_but(&out, |c| matches!(c, '\n' | '\t' | '\x1b')).into_owned()
}

/// All of `diags` as an array of objects.
pub fn to_json(sources: &Sources, diags: &Diagnostics) -> serde_json::Value {
    let one = |diag: &Diagnostic| {
        let mut object = serde_json::json!({
            "severity": diag.severity.name(),
            "code": diag.code,
            "message": diag.message,
            "help": diag.help,
        });
        if let Some(label) = diag.labels.first() {
            let at = sources.line_col(label.span);
            object["file"] = sources.file(label.span.file).path.as_str().into();
            object["line"] = at.line.into();
            object["column"] = at.column.into();
            object["label"] = label.text.as_str().into();
        }
        object
    };
    diags.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_is_shown_where_all_is_too_much() {
        let mut diags = Diagnostics::new();
        diags.keep_notes();
        let note = |code, i: usize| Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::error(code, format!("{code} {i}"))
        };
        diags.extend((0..MAX_SHOWN + 20).map(|i| note("often", i)));
        diags.extend((0..2).map(|i| note("seldom", i)));
        diags.push(Diagnostic::error("wrong", "an error"));
        let text = render(&Sources::new(), &diags, false);
        assert!(
            text.contains("error[wrong]") && text.contains("note[seldom]: seldom 1"),
            "{text}"
        );
        assert!(
            text.contains("note[often]: often 196\n") && !text.contains("often 197"),
            "{text}"
        );
        assert!(
            text.ends_with("... and 23 more: 23 note[often]\n\n"),
            "{text}"
        );
        assert_eq!(diags.len(), MAX_SHOWN + 23);
    }

    /// In each place where text from outside is shown, in colour or without.
    #[test]
    fn what_would_control_a_terminal_is_escaped() {
        const OUTSIDE: &str = "a\x1b[31m\u{9b}31m\r\u{202e}z";
        let mut sources = Sources::new();
        let file = sources.add(format!("{OUTSIDE}.cal"), OUTSIDE);
        let span = |end| Span {
            file,
            start: 0,
            end,
        };
        let mut diags = Diagnostics::new();
        let wrong = Diagnostic::error("wrong", OUTSIDE).label(span(1), OUTSIDE);
        diags.push(wrong.help(OUTSIDE));
        diags.push(Diagnostic::error("alone", OUTSIDE).help(OUTSIDE));
        for color in [false, true] {
            let text = render(&sources, &diags, color);
            // Colours of its own it begins with another word.
            assert!(!text.contains("a\x1b[31m"), "{text:?}");
            assert!(!text.contains(['\u{9b}', '\r', '\u{202e}']), "{text:?}");
            assert!(color || !text.contains('\x1b'), "{text:?}");
            assert!(text.contains("a\\u001b[31m"), "{text:?}");
        }
    }
}
