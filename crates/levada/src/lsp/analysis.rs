// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analysis of files: the results of `levada check`, with the editor's unsaved texts in place of the files.

use super::text;
use crate::common::projects::Projects;
use levada_cal::check::note;
use levada_cal::diag::{self, Diagnostics, Severity, Sources};
use levada_cal::encoding;
use levada_cal::index::Index;
use levada_cal::ir::Span;
use levada_cal::types::Ty;
use levada_cal::workspace::{Workspace, read_source};
use levada_cal::xdf;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range,
    Uri,
};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The editor's open files, and results that are valid until the next change.
#[derive(Default)]
pub struct World {
    /// The editor's workspace folders.
    pub folders: Vec<PathBuf>,
    open: BTreeMap<PathBuf, (Uri, Arc<str>)>,
    projects: Projects,
    known: HashMap<PathBuf, Rc<Analysis>>,
}

impl World {
    pub fn open(&mut self, uri: &Uri, text: String) {
        self.close(uri);
        if let Some(path) = text::path_of(uri) {
            self.open.insert(path, (uri.clone(), text.into()));
        }
    }

    /// By its URI: the path may have changed since it was opened, if the file was new and has been saved since.
    pub fn close(&mut self, uri: &Uri) {
        self.open.retain(|_, (open, _)| open != uri);
        self.known.clear();
    }

    /// Files on disk may have changed.
    pub fn forget(&mut self) {
        for (path, (uri, text)) in std::mem::take(&mut self.open) {
            let path = text::path_of(&uri).unwrap_or(path);
            self.open.insert(path, (uri, text));
        }
        self.known.clear();
        self.projects = Projects::default();
    }

    pub fn opened(&self) -> impl Iterator<Item = &Path> {
        self.open.keys().map(PathBuf::as_path)
    }

    /// The text of a file: in the editor, or else on disk.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        match self.open.get(path) {
            Some((_, text)) => Some(text.clone()),
            None => read_source(path)
                .ok()
                .map(|bytes| encoding::line_feeds(encoding::decode(&bytes).0).into()),
        }
    }

    /// The editor's URI of a file.
    pub fn uri(&self, path: &Path) -> Option<Uri> {
        match self.open.get(path) {
            Some((uri, _)) => Some(uri.clone()),
            None => text::uri_of(path),
        }
    }

    /// The source roots for a file: those of its project, or the folder above its package.
    pub fn roots(&mut self, path: &Path) -> Result<Vec<PathBuf>, String> {
        let mut roots = self.projects.roots(path).map_err(|e| e.what)?;
        // A file that was never saved lies in no folder yet.
        if let Ok(found) = xdf::locate_in(path, &roots)
            && !roots.contains(&found.root)
        {
            roots.insert(0, found.root);
        }
        Ok(roots)
    }

    pub fn analyse(&mut self, path: &Path) -> Result<Rc<Analysis>, String> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let analysis = Rc::new(self.analyse_with(path, &HashMap::new())?);
        self.known.insert(path.to_owned(), analysis.clone());
        Ok(analysis)
    }

    /// Analyses with some files replaced by other texts.
    pub fn analyse_with(
        &mut self,
        path: &Path,
        changed: &HashMap<PathBuf, Arc<str>>,
    ) -> Result<Analysis, String> {
        let network = match path.extension().and_then(|e| e.to_str()) {
            Some("cal") => false,
            Some("xdf") => true,
            _ => return Err(format!("{} is neither CAL nor XDF", path.display())),
        };
        let mut workspace = Workspace::new(self.roots(path)?);
        for (path, (_, text)) in &self.open {
            workspace.set_text(path.clone(), text.clone());
        }
        for (path, text) in changed {
            workspace.set_text(path.clone(), text.clone());
        }
        workspace.index = Some(Index::default());
        let mut diags = Diagnostics::new();
        // A panic in the compiler must not end the server.
        let checked = catch_unwind(AssertUnwindSafe(|| {
            if network {
                xdf::check_xdf(&mut workspace, path, &mut diags)
            } else {
                workspace.check_file(path, &mut diags)
            }
        }));
        if checked.is_err() {
            return Err(format!("{} cannot be checked", path.display()));
        }
        Ok(Analysis {
            index: workspace.index.take().unwrap_or_default(),
            sources: workspace.sources,
            diags,
        })
    }
}

pub struct Analysis {
    pub index: Index,
    pub sources: Sources,
    pub diags: Diagnostics,
}

impl Analysis {
    /// The number of a file among the sources.
    pub fn file(&self, path: &Path) -> Option<u32> {
        self.sources.find(&Sources::display_path(path))
    }

    pub fn text(&self, file: u32) -> Arc<str> {
        self.sources.file(file).text.clone()
    }

    pub fn text_at(&self, span: Span) -> String {
        let text = self.text(span.file);
        text.get(span.start as usize..span.end as usize)
            .unwrap_or_default()
            .to_owned()
    }

    /// The full path of a source file; one of the units that come with the compiler is not on disk.
    pub fn path(&self, file: u32) -> Option<PathBuf> {
        let shown = Path::new(&self.sources.file(file).path);
        (!self.is_built_in(file)).then(|| shown.canonicalize().unwrap_or_else(|_| shown.to_owned()))
    }

    pub fn is_built_in(&self, file: u32) -> bool {
        self.sources.file(file).path.starts_with("<levada>")
    }

    pub fn location(&self, span: Span, world: &World) -> Option<Location> {
        let path = match self.path(span.file) {
            Some(path) => path,
            None => self.built_in(span.file)?,
        };
        let range = text::range(&self.text(span.file), span);
        Some(Location::new(world.uri(&path)?, range))
    }

    /// Writes a built-in unit to a file that the editor can show.
    fn built_in(&self, file: u32) -> Option<PathBuf> {
        let shown = self.sources.file(file).path.strip_prefix("<levada>/")?;
        let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|d| !d.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
        };
        let folder = format!("levada/units-{}", env!("CARGO_PKG_VERSION"));
        let path = cache.join(folder).join(shown);
        let text = self.text(file);
        if !std::fs::read(&path).is_ok_and(|t| t == text.as_bytes()) {
            std::fs::create_dir_all(path.parent()?).ok()?;
            crate::common::output::write_file(&path, text.as_bytes()).ok()?;
        }
        Some(path)
    }

    /// The hover text at a place, and its span.
    pub fn hover(&self, file: u32, offset: u32) -> Option<(Span, String)> {
        let typed = self.index.typed(file, offset);
        let mut names = self.index.named(file, offset);
        // A name that encloses the expression is something else.
        names.retain(|n| {
            typed.is_none_or(|t| n.span.end - n.span.start <= t.span.end - t.span.start)
        });
        let mut parts: Vec<String> = Vec::new();
        for named in &names {
            let about = self.index.about(named.declared).unwrap_or(&named.about);
            if !parts.iter().any(|p| p == about) {
                parts.push(about.to_owned());
            }
        }
        if let Some(typed) = typed {
            let mut said = format!("**type** `{}`", typed.ty);
            if let Some(value) = &typed.value {
                said += &format!(", **value** `{}`", note::shown(value, &typed.machine));
            } else if typed.machine != typed.ty && typed.ty != Ty::Unknown {
                said += &format!(", computed in `{}`", typed.machine);
            }
            said += &format!("\n\n{}", typed.rule);
            if let Some(given) = self.index.given(typed.span) {
                said += &format!("\n\nbecomes `{}`: {} has it", given.to, given.what);
            }
            parts.push(said);
        }
        let span = names.first().map(|n| n.span).or(typed.map(|t| t.span))?;
        Some((span, parts.join("\n\n---\n\n")))
    }

    /// The diagnostics with their files; those without a file are attributed to `checked`. The number is limited,
    /// separately for `checked` and for the files that it uses: a file with a megabyte of errors would block the
    /// editor.
    pub fn diagnostics(&self, checked: &Path, world: &World) -> Vec<(PathBuf, Diagnostic)> {
        let one = |diag: &diag::Diagnostic| {
            let first = diag.labels.first();
            let place = first.and_then(|l| Some((self.path(l.span.file)?, l.span)));
            let (path, range) = match place {
                Some((path, span)) => (path, text::range(&self.text(span.file), span)),
                None => (checked.to_owned(), Range::default()),
            };
            let mut message = diag.message.clone();
            if let Some(label) = first.filter(|l| !l.text.is_empty()) {
                message += &format!(": {}", label.text);
            }
            if let Some(help) = &diag.help {
                message += &format!("\nhelp: {help}");
            }
            let others = diag.labels.iter().skip(1).filter_map(|label| {
                Some(DiagnosticRelatedInformation {
                    location: self.location(label.span, world)?,
                    message: label.text.clone(),
                })
            });
            let others: Vec<_> = others.collect();
            let severity = match diag.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Note => DiagnosticSeverity::INFORMATION,
            };
            let diagnostic = Diagnostic {
                range,
                severity: Some(severity),
                code: Some(NumberOrString::String(diag.code.to_owned())),
                source: Some("levada".to_owned()),
                message,
                related_information: (!others.is_empty()).then_some(others),
                ..Diagnostic::default()
            };
            (path, diagnostic)
        };
        let elsewhere = |diag: &&diag::Diagnostic| {
            let file = diag.labels.first().and_then(|l| self.path(l.span.file));
            file.is_some_and(|path| path != checked)
        };
        let (theirs, own): (Vec<_>, Vec<_>) = self.diags.iter().partition(elsewhere);
        let shown = [own, theirs].map(|some| diag::to_show(some).0);
        shown.into_iter().flatten().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    /// In a folder that is a symbolic link, the path of a new file changes once it is saved.
    #[test]
    fn a_file_that_was_saved_is_closed_by_what_the_editor_calls_it() {
        let place = tempfile::tempdir().expect("a folder");
        let link = place.path().join("link");
        std::fs::create_dir(place.path().join("src")).expect("src");
        std::os::unix::fs::symlink(place.path().join("src"), &link).expect("a link");
        let uri = Uri::from_str(&format!("file://{}/New.cal", link.display())).expect("a URI");
        let mut world = World::default();
        world.open(&uri, "unsaved".into());
        let saved = place.path().join("src/New.cal");
        std::fs::write(&saved, "saved").expect("New.cal");
        let saved = saved.canonicalize().expect("New.cal");
        world.forget();
        assert_eq!(world.text(&saved).as_deref(), Some("unsaved"));
        world.close(&uri);
        assert_eq!(world.text(&saved).as_deref(), Some("saved"));
        assert!(world.open.is_empty());
    }
}
