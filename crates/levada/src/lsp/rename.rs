// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds all uses of a name, and renames it.
//!
//! Local names are searched in their file only. Ports, parameters and names that units declare can be used in any
//! file of the project: each file that contains the name is checked. If a file has errors, some uses may be missing;
//! the found ones are listed, but a rename is refused. A rename is verified before it is returned: it must cause no
//! error and must not change what any other name refers to.

use super::analysis::{Analysis, World};
use super::{Cursor, Refusal, refuse, text};
use levada_cal::diag::{Diagnostic, Severity};
use levada_cal::index::{Kind, Named};
use levada_cal::ir::Span;
use levada_cal::lex;
use lsp_types::{TextEdit, Uri, WorkspaceEdit};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The uses of a name in one file, and the file's text.
pub type Uses = (PathBuf, Arc<str>, Vec<Span>);

/// The uses that were found.
#[derive(Default)]
pub struct Found {
    pub uses: Vec<Uses>,
    /// Why the uses may be incomplete.
    doubt: Option<String>,
}

/// Where spans begin and end, each once and in order.
type Places = BTreeSet<(u32, u32)>;

/// Maximum number of files that are searched.
const FILES_MAX: usize = 20_000;

fn name_at(at: &Cursor, offset: u32) -> Result<&Named, Refusal> {
    match at.analysis.index.named(at.file, offset).first() {
        Some(named) => Ok(named),
        None => refuse("no name stands here"),
    }
}

/// One part of a tag: its number, and all up to it.
fn tag_part(text: &str, within: u32) -> (usize, Vec<&str>) {
    let part = text[..(within as usize).min(text.len())]
        .matches('.')
        .count();
    (part, text.split('.').take(part + 1).collect())
}

/// Where part number `part` of the tag at `span` stands.
fn part_span(tag: &str, span: Span, part: usize) -> Span {
    let before: usize = tag.split('.').take(part).map(|p| p.len() + 1).sum();
    let length = tag.split('.').nth(part).map_or(0, str::len);
    let start = span.start + before as u32;
    Span {
        file: span.file,
        start,
        end: start + length as u32,
    }
}

/// The span that would be renamed at a place; an error if it cannot be renamed.
pub fn target(at: &Cursor, offset: u32) -> Result<Span, Refusal> {
    let named = name_at(at, offset)?;
    let about = at
        .analysis
        .index
        .about(named.declared)
        .unwrap_or(&named.about);
    if named.kind == Kind::Class {
        return refuse("a class has the name of its file: rename the file, and then what names it");
    }
    if at.analysis.is_built_in(named.declared.file) {
        return refuse("this comes with the compiler");
    }
    if about.contains("`: a native ") {
        return refuse("a native has the name of its C function, which is not looked for here");
    }
    if named.kind == Kind::Tag {
        let tag = at.analysis.text_at(named.span);
        let (part, _) = tag_part(&tag, offset - named.span.start);
        return Ok(part_span(&tag, named.span, part));
    }
    Ok(named.span)
}

/// All places of the name at a place.
pub fn uses(world: &mut World, at: &Cursor, offset: u32) -> Result<Found, Refusal> {
    let named = name_at(at, offset)?;
    if named.kind == Kind::Tag {
        let tag = at.analysis.text_at(named.span);
        let (part, prefix) = tag_part(&tag, offset - named.span.start);
        let spans = tags(&at.analysis, at.file)
            .into_iter()
            .filter(|(text, _)| {
                let mut parts = text.split('.');
                prefix.iter().all(|p| parts.next() == Some(*p))
            })
            .map(|(text, span)| part_span(&text, span, part))
            .collect();
        return Ok(in_its_file(at, prefix[part], spans));
    }
    let declared = named.declared;
    let name = at.analysis.text_at(declared);
    let name = name.trim_start_matches('^');
    let local = matches!(named.kind, Kind::Local | Kind::State | Kind::Instance);
    let Some(home) = at.analysis.path(declared.file).filter(|_| !local) else {
        let spans = at.analysis.index.uses(declared);
        let spans = spans.into_iter().filter(|s| s.file == at.file).collect();
        return Ok(in_its_file(at, name, spans));
    };
    let mut found: BTreeMap<PathBuf, (Arc<str>, Places)> = BTreeMap::new();
    let (files, mut doubt) = candidates(world, &[&home, &at.path], name);
    for path in files {
        let analysis = match world.analyse(&path) {
            Ok(analysis) => analysis,
            Err(why) => {
                doubt.get_or_insert(format!("{} has it, too: {why}", path.display()));
                continue;
            }
        };
        doubt = doubt.or_else(|| not_understood(&analysis, &path, name));
        for (path, text, spans) in uses_in(&analysis, &home, declared) {
            let entry = found.entry(path).or_insert_with(|| (text, Places::new()));
            entry.1.extend(spans.into_iter().map(|s| (s.start, s.end)));
        }
    }
    let list = found.into_iter().map(|(path, (text, spans))| {
        let span = |(start, end)| Span {
            file: 0,
            start,
            end,
        };
        (path, text, spans.into_iter().map(span).collect())
    });
    let uses = list.collect();
    Ok(Found { uses, doubt })
}

/// The uses of a name that no other file can have.
fn in_its_file(at: &Cursor, name: &str, spans: Vec<Span>) -> Found {
    Found {
        uses: vec![(at.path.clone(), at.analysis.text(at.file), spans)],
        doubt: not_understood(&at.analysis, &at.path, name),
    }
}

/// A place in a file with errors at which the name occurs and could not be resolved.
fn not_understood(analysis: &Analysis, path: &Path, name: &str) -> Option<String> {
    let file = analysis.file(path)?;
    let of_file = |d: &&Diagnostic| {
        let first = d.labels.first();
        d.severity == Severity::Error && first.is_none_or(|l| l.span.file == file)
    };
    let error = &analysis.diags.iter().find(of_file)?.message;
    let text = analysis.text(file);
    let network = path.extension().is_some_and(|e| e == "xdf");
    let mut start = 0;
    for (kind, token) in lex::tokens(&text) {
        let at = start;
        start += token.len();
        // In a network names stand in strings.
        let here = match kind {
            lex::SyntaxKind::Ident => token.trim_start_matches('^') == name,
            lex::SyntaxKind::Str if network => token.trim_matches('"') == name,
            _ => false,
        };
        if here && analysis.index.named(file, at as u32).is_empty() {
            let line = text[..at].matches('\n').count() + 1;
            return Some(format!(
                "{}:{line}: `{name}` is not understood here: {error}",
                path.display()
            ));
        }
    }
    None
}

/// The uses in one analysis of the name declared at `declared` in the file `home`.
fn uses_in(analysis: &Analysis, home: &Path, declared: Span) -> Vec<Uses> {
    let Some(file) = analysis.file(home) else {
        return Vec::new();
    };
    let mut by_file: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for span in analysis.index.uses(Span { file, ..declared }) {
        by_file.entry(span.file).or_default().push(span);
    }
    by_file
        .into_iter()
        .filter_map(|(file, spans)| Some((analysis.path(file)?, analysis.text(file), spans)))
        .collect()
}

/// The tags in a file, each place once.
fn tags(analysis: &Analysis, file: u32) -> Vec<(String, Span)> {
    let all = analysis.index.names.iter();
    let mut found: Vec<(String, Span)> = all
        .filter(|n| n.kind == Kind::Tag && n.span.file == file)
        .map(|n| (analysis.text_at(n.span), n.span))
        .collect();
    found.sort_by_key(|(_, span)| span.start);
    found.dedup_by_key(|(_, span)| span.start);
    found
}

/// The files that may use a name: those of the projects and of the editor's folders that contain it; and why they may
/// be incomplete.
fn candidates(
    world: &mut World,
    near: &[&Path],
    name: &str,
) -> (BTreeSet<PathBuf>, Option<String>) {
    let mut folders: Vec<PathBuf> = world.folders.clone();
    for path in near {
        folders.extend(world.roots(path).unwrap_or_default());
    }
    let mut files: BTreeSet<PathBuf> = near.iter().map(|p| p.to_path_buf()).collect();
    files.extend(world.opened().map(Path::to_owned));
    let (mut seen, mut doubt) = (BTreeSet::new(), None);
    while let Some(folder) = folders.pop() {
        if seen.len().max(files.len()) > FILES_MAX {
            doubt = Some(format!("there are more than {FILES_MAX} files or folders"));
            break;
        }
        if !seen.insert(folder.clone()) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !hidden => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    let source = path.extension().and_then(|e| e.to_str());
                    if matches!(source, Some("cal" | "xdf")) {
                        files.insert(path.canonicalize().unwrap_or(path));
                    }
                }
                _ => {}
            }
        }
    }
    files.retain(|path| match world.text(path) {
        Some(text) => text.contains(name),
        None => {
            doubt.get_or_insert(format!("{} cannot be read", path.display()));
            false
        }
    });
    (files, doubt)
}

/// The edits that rename what is at a place.
pub fn rename(
    world: &mut World,
    at: &Cursor,
    offset: u32,
    new: &str,
) -> Result<WorkspaceEdit, Refusal> {
    let old = at.analysis.text_at(target(at, offset)?);
    let old = old.trim_start_matches('^');
    let word = lex::tokens(new);
    if !matches!(word.as_slice(), [(lex::SyntaxKind::Ident, _)]) {
        return refuse(format!("`{new}` is no name of the language"));
    }
    let kind = name_at(at, offset)?.kind;
    free(at, kind, new)?;
    let Found { uses, doubt } = uses(world, at, offset)?;
    if let Some(doubt) = doubt {
        return refuse(format!("not all places of `{old}` can be found: {doubt}"));
    }
    // The protocol's own type; the mutable part of a URI does not affect comparison.
    #[allow(clippy::mutable_key_type)]
    let mut edits: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    let mut changed: HashMap<PathBuf, Arc<str>> = HashMap::new();
    for (path, text, spans) in &uses {
        let mut after = text.to_string();
        let mut list = Vec::new();
        for span in spans.iter().rev() {
            let place = span.start as usize..span.end as usize;
            let there = text.get(place.clone()).unwrap_or_default();
            if there.trim_start_matches('^') != old {
                let shown = path.display();
                return refuse(format!(
                    "{shown} has `{there}` where it should have `{old}`"
                ));
            }
            after.replace_range(place, new);
            list.push(TextEdit::new(text::range(text, *span), new.to_owned()));
        }
        list.reverse();
        changed.insert(path.clone(), after.into());
        edits.extend(world.uri(path).map(|uri| (uri, list)));
    }
    same_meaning(world, at, offset, &uses, &changed, new)?;
    Ok(WorkspaceEdit::new(edits))
}

/// Whether a tag or state may have the new name: two actions of one tag are no error, but change the program.
fn free(at: &Cursor, kind: Kind, new: &str) -> Result<(), Refusal> {
    let taken = at
        .analysis
        .index
        .names
        .iter()
        .filter(|n| n.kind == kind && n.span.file == at.file)
        .any(|n| at.analysis.text_at(n.span).split('.').any(|p| p == new));
    if matches!(kind, Kind::Tag | Kind::State) && taken {
        refuse(format!("there is a `{new}` already"))
    } else {
        Ok(())
    }
}

/// Verifies a rename: there must be no new error, and each place must still refer to the same declaration.
fn same_meaning(
    world: &mut World,
    at: &Cursor,
    offset: u32,
    uses: &[Uses],
    changed: &HashMap<PathBuf, Arc<str>>,
    new: &str,
) -> Result<(), Refusal> {
    let named = name_at(at, offset)?;
    let home = at.analysis.path(named.declared.file);
    for (path, _, spans) in uses {
        let before = world.analyse(path).or_else(refuse)?;
        let after = world.analyse_with(path, changed).or_else(refuse)?;
        if after.diags.error_count() > before.diags.error_count() {
            let error = after.diags.iter().find(|d| {
                d.severity == Severity::Error
                    && !before.diags.iter().any(|b| b.message == d.message)
            });
            let why = error.map_or("an error", |d| d.message.as_str());
            return refuse(format!("with the name `{new}` this comes: {why}"));
        }
        let Some(home) = home.as_ref().filter(|_| named.kind != Kind::Tag) else {
            continue;
        };
        // The new position of the declaration, after the edits before it.
        let at_home = uses.iter().find(|(p, ..)| p == home);
        let grown = at_home.map_or(0, |(.., spans)| {
            let before = spans.iter().filter(|s| s.start < named.declared.start);
            before
                .map(|s| new.len() as i64 - i64::from(s.end - s.start))
                .sum()
        });
        let start = (i64::from(named.declared.start) + grown) as u32;
        let declared = Span {
            file: 0,
            start,
            end: start + new.len() as u32,
        };
        let now: usize = uses_in(&after, home, declared)
            .iter()
            .filter(|(p, ..)| p == path)
            .map(|(.., spans)| spans.len())
            .sum();
        if now != spans.len() {
            return refuse(format!(
                "in {} the name `{new}` means something else already",
                path.display()
            ));
        }
    }
    Ok(())
}
