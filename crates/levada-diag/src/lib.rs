// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Diagnostics of the compilers of this project (CAL, and C with forks): errors, warnings and notes about source files,
//! as text with the source lines, or as JSON.
//!
//! Every stage pushes [`Diagnostic`]s into one [`Diagnostics`] and continues, so that a run reports all errors.
//! [`Sources`] has the text of all files read; a [`Span`] is a range in it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use levada_text::{escaped, escaped_but, escaped_line};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// A byte range in a source file; `file` is an index in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub file: u32,
    pub start: u32,
    pub end: u32,
}

/// A source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path as shown to users: relative if possible.
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

/// A range in a source file with a text about it.
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
    /// The first label is the primary place. Without labels the message belongs to no file.
    pub labels: Vec<Label>,
    /// A remedy.
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

    /// A note, which is kept only after [`Diagnostics::keep_notes`].
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

    /// Adds a place with the same finding, unless there are [`OTHER_PLACES_MAX`] already. The first label remains the
    /// first place in the file.
    pub fn also_at(&mut self, span: Span) {
        let Some(first) = self.labels.first_mut() else {
            return;
        };
        let mut later = span;
        if first.span.file == span.file && span.start < first.span.start {
            later = std::mem::replace(&mut first.span, span);
        }
        if self.labels.len() <= OTHER_PLACES_MAX {
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

/// Maximum number of diagnostics that are compared with a new one to find the same.
const COMPARED_MAX: usize = 1000;

/// Maximum number of places of a diagnostic, in addition to the first.
const OTHER_PLACES_MAX: usize = 3;

/// The order of diagnostics: by the first label; those without a place come first.
fn sort_key(diag: &Diagnostic) -> (u32, u32, u32) {
    diag.labels
        .first()
        .map_or((0, 0, 0), |l| (l.span.file + 1, l.span.start, l.span.end))
}

/// The diagnostics of a run, each of them once: an actor that is specialised several times gives the same ones.
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

    /// Keeps notes from now on.
    pub fn keep_notes(&mut self) {
        self.notes = true;
    }

    /// Whether notes are kept; otherwise a stage need not compute any.
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

    /// Like `push`, but if the file has the same diagnostic elsewhere, adds the place to that one.
    pub fn push_once(&mut self, diag: Diagnostic) {
        let Some(place) = diag.labels.first().map(|l| l.span) else {
            return self.push(diag);
        };
        let same = |d: &&mut Diagnostic| {
            let file = d.labels.first().map(|l| l.span.file);
            d.code == diag.code && d.message == diag.message && file == Some(place.file)
        };
        let before = self.found.iter_mut().take(COMPARED_MAX).find(same);
        match before {
            // The same place is checked again.
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

/// A position in a text: line, and column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCol {
    pub line: u32,
    pub column: u32,
}

/// All files that were read, by the index `Span::file`.
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

    /// The line and column at which `span` begins.
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

    /// The file that is shown as `path`; the last one if it was read several times.
    pub fn find(&self, path: &str) -> Option<u32> {
        let found = self.files.iter().rposition(|f| f.path == path)?;
        Some(found as u32)
    }

    /// The byte offset of a line and column; `None` if the text has no such place.
    pub fn offset(&self, file: u32, at: LineCol) -> Option<u32> {
        let starts = &self.line_starts[file as usize];
        let text = &self.files[file as usize].text;
        let start = *starts.get(at.line.checked_sub(1)? as usize)? as usize;
        let line = text[start..].split('\n').next()?;
        let column = at.column.checked_sub(1)? as usize;
        let mut ends = line.char_indices().map(|(i, _)| i).chain([line.len()]);
        Some((start + ends.nth(column)?) as u32)
    }

    /// A path as shown to users: relative to the current folder if it is below that.
    pub fn display_path(path: &Path) -> String {
        let here = std::env::current_dir().ok();
        let shown = here.and_then(|h| path.strip_prefix(h).ok()).unwrap_or(path);
        let text = shown.display().to_string();
        text.strip_prefix("./").map_or(text.clone(), str::to_owned)
    }
}

/// `span` as a byte range within the text and on character boundaries.
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

/// Maximum number of diagnostics that are shown.
const SHOWN_MAX: usize = 200;

/// Selects the diagnostics to show, in the order of `all`, and summarises the others as text. If there are too many,
/// errors precede warnings and notes, and rare kinds precede frequent ones.
pub fn to_show(all: Vec<&Diagnostic>) -> (Vec<&Diagnostic>, String) {
    if all.len() <= SHOWN_MAX {
        return (all, String::new());
    }
    let kind = |d: &Diagnostic| (d.severity, d.code);
    let mut left: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
    for diag in &all {
        *left.entry(kind(diag)).or_default() += 1;
    }
    let mut chosen: Vec<usize> = (0..all.len()).collect();
    chosen.sort_by_key(|&i| (all[i].severity, left[&kind(all[i])], all[i].code, i));
    chosen.truncate(SHOWN_MAX);
    chosen.sort_unstable();
    for &i in &chosen {
        *left.get_mut(&kind(all[i])).expect("counted above") -= 1;
    }
    let of: Vec<String> = left
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|((severity, code), n)| format!("{n} {}[{code}]", severity.name()))
        .collect();
    let more = format!(
        "... and {} more: {}\n\n",
        all.len() - SHOWN_MAX,
        of.join(", ")
    );
    (chosen.iter().map(|&i| all[i]).collect(), more)
}

/// The diagnostics as text, each with its source lines.
pub fn render(sources: &Sources, diags: &Diagnostics, color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    // Names, paths and lines are untrusted, and the renderer does not replace all control characters in them. So they
    // are escaped here, and the output again; it keeps the newlines and the escape characters of colours.
    let mut out = String::new();
    let (shown, more) = to_show(diags.iter().collect());
    for diag in shown {
        let level = match diag.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(escaped(&diag.message)).id(diag.code);
        // One snippet per file, in the order of the labels.
        let mut files: Vec<u32> = Vec::new();
        for label in &diag.labels {
            if !files.contains(&label.span.file) {
                files.push(label.span.file);
            }
        }
        // Without labels there is no line to show.
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

/// The diagnostics as a JSON array of objects.
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
    fn rare_diagnostics_are_shown_if_there_are_too_many() {
        let mut diags = Diagnostics::new();
        diags.keep_notes();
        let note = |code, i: usize| Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::error(code, format!("{code} {i}"))
        };
        diags.extend((0..SHOWN_MAX + 20).map(|i| note("often", i)));
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
        assert_eq!(diags.len(), SHOWN_MAX + 23);
    }

    /// Untrusted text is escaped in every place, with colours and without.
    #[test]
    fn control_characters_are_escaped() {
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
            // The renderer's own colour codes do not follow an `a`.
            assert!(!text.contains("a\x1b[31m"), "{text:?}");
            assert!(!text.contains(['\u{9b}', '\r', '\u{202e}']), "{text:?}");
            assert!(color || !text.contains('\x1b'), "{text:?}");
            assert!(text.contains("a\\u001b[31m"), "{text:?}");
        }
    }
}
