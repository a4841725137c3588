// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The workspace: finds classes, and holds what has been read, checked and specialised.

use crate::ast;
use crate::check::{Checker, Library, Params};
use crate::diag::{Diagnostic, Diagnostics, Sources};
use crate::index::Index;
use crate::{encoding, fs_deps, ir, library, lower, on_large_stack, parse};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a class lives. A path that begins with `<levada>/` is of the built-in library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassFile {
    Cal(PathBuf),
    Xdf(PathBuf),
}

/// What a network needs to know of an actor class before its parameters have values. (The types of
/// ports may depend on them: they are in [`ir::Actor`].)
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub inputs: Vec<PortDecl>,
    pub outputs: Vec<PortDecl>,
    pub params: Vec<ParamDecl>,
    pub span: ir::Span,
    /// Its file has syntax errors: ports and parameters may be missing.
    pub broken: bool,
}

#[derive(Clone, Debug)]
pub struct PortDecl {
    pub name: String,
    pub span: ir::Span,
}

#[derive(Clone, Debug)]
pub struct ParamDecl {
    pub name: String,
    /// `None` when the type depends on another parameter.
    pub ty: Option<ir::Type>,
    /// Whether it may be left out.
    pub has_default: bool,
    /// The default, where it does not depend on another parameter.
    pub default: Option<ir::Value>,
    pub span: ir::Span,
}

/// A file that has been read.
struct Loaded {
    ast: Arc<ast::File>,
    /// The syntax errors of the file.
    diags: Vec<Diagnostic>,
}

pub struct Workspace {
    pub sources: Sources,
    roots: Vec<PathBuf>,
    files: HashMap<PathBuf, Arc<Loaded>>,
    actors: HashMap<String, Option<Arc<ir::Actor>>>,
    names: HashSet<String>,
    /// Texts that replace the content of files: those of an editor, not saved yet.
    texts: HashMap<PathBuf, Arc<str>>,
    /// Filled by [`Workspace::check_file`] and the check of networks, if it is set.
    pub index: Option<Index>,
}

impl Workspace {
    /// Source roots in order of preference; the built-in library comes after them.
    pub fn new(roots: Vec<PathBuf>) -> Workspace {
        Workspace {
            sources: Sources::new(),
            roots,
            files: HashMap::new(),
            actors: HashMap::new(),
            names: HashSet::new(),
            texts: HashMap::new(),
            index: None,
        }
    }

    /// From now on this is what the file at `path` says.
    pub fn set_text(&mut self, path: PathBuf, text: Arc<str>) {
        self.texts.insert(path, text);
    }

    pub(crate) fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.texts.get(path).cloned()
    }

    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The file of class `a.b.C`: in the first root that has a/b/C.cal or a/b/C.xdf. If both exist, the actor is
    /// returned; callers that may mean the network call [`Workspace::rivals`] first.
    pub fn find(&self, class: &str) -> Option<ClassFile> {
        find_in(&self.roots, class)
    }

    /// What is wrong when the name `class` could mean an actor or a network of the same root.
    pub fn rivals(&self, class: &str) -> Option<Diagnostic> {
        match self.find(class)? {
            ClassFile::Cal(path) => rivals_of(&path),
            ClassFile::Xdf(_) => None,
        }
    }

    fn load(&mut self, path: &Path, diags: &mut Diagnostics) -> Option<Arc<Loaded>> {
        if let Some(loaded) = self.files.get(path) {
            diags.extend(loaded.diags.iter().cloned());
            return Some(loaded.clone());
        }
        let text: Arc<str> = match self.text(path).map_or_else(|| source_text(path), Ok) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("cannot read {}: {error}", Sources::display_path(path));
                diags.push(Diagnostic::error("read", message));
                return None;
            }
        };
        let file = self.sources.add(Sources::display_path(path), text.clone());
        let parse = parse::parse(file, &text);
        let tree = parse.syntax();
        let mut found = parse.errors;
        let ast = Arc::new(ast::build(file, &tree, &mut found));
        diags.extend(found.iter().cloned());
        let loaded = Arc::new(Loaded { ast, diags: found });
        self.files.insert(path.to_owned(), loaded.clone());
        Some(loaded)
    }

    /// The file of `class` and of all units that it imports, directly or not.
    fn closure(
        &mut self,
        roots: &[PathBuf],
        class: &str,
        file: Arc<ast::File>,
        diags: &mut Diagnostics,
    ) -> Library {
        let mut library = Library::new();
        let mut waiting = vec![(class.to_owned(), file)];
        while let Some((class, file)) = waiting.pop() {
            let mut wanted: Vec<String> = Vec::new();
            for import in &file.imports {
                let path = import.path.text.as_str();
                if !import.all
                    && let Some((unit, _)) = path.rsplit_once('.')
                {
                    wanted.push(unit.to_owned());
                }
                wanted.push(path.to_owned());
            }
            for path in &file.qualified {
                let Some((unit, _)) = path.rsplit_once('.') else {
                    continue;
                };
                wanted.push(unit.to_owned());
                if let Some(package) = &file.package {
                    wanted.push(format!("{}.{unit}", package.text));
                }
            }
            library.insert(class, file);
            for class in wanted {
                if library.contains_key(&class) {
                    continue;
                }
                if let Some(ClassFile::Cal(path)) = find_in(roots, &class)
                    && let Some(loaded) = self.load(&path, diags)
                {
                    waiting.push((class, loaded.ast.clone()));
                }
            }
        }
        library
    }

    /// Parse and type-check one file (without parameter values); reports every error. A file that
    /// lies below no source root brings its own: the folder that its package says it is in.
    pub fn check_file(&mut self, path: &Path, diags: &mut Diagnostics) {
        on_large_stack(|| self.check_one(path, diags));
    }

    fn check_one(&mut self, path: &Path, diags: &mut Diagnostics) {
        diags.extend(rivals_of(path));
        let Some(loaded) = self.load(path, diags) else {
            return;
        };
        let file = loaded.ast.clone();
        let Some(entity) = &file.entity else { return };
        let package = file.package.as_ref().map_or("", |p| p.text.as_str());
        let class = match package {
            "" => entity.name.text.clone(),
            package => format!("{package}.{}", entity.name.text),
        };
        let misplaced = !check_place(path, &file, entity, diags);
        let mut roots = self.roots.clone();
        if !roots.iter().any(|root| path.starts_with(root)) {
            roots.extend(root_of(path, package));
        }
        let library = self.closure(&roots, &class, file.clone(), diags);
        let mut checker = Checker::new(&library, Params::Open);
        checker.notes = self.index.as_ref().map(|_| Box::default());
        checker.misplaced = misplaced;
        checker.remarks = diags.keeps_notes();
        match library.get_key_value(&class) {
            Some((class, _)) if entity.is_actor => {
                checker.actor(class);
            }
            Some((class, _)) => checker.unit(class),
            None => {}
        }
        if let (Some(index), Some(found)) = (&mut self.index, checker.take_index()) {
            index.add(found);
        }
        diags.extend(checker.diags);
    }

    /// The actor's file and its units; `None` when there is no such actor.
    fn actor_library(
        &mut self,
        class: &str,
        at: ir::Span,
        diags: &mut Diagnostics,
    ) -> Option<Library> {
        let place = |diag: Diagnostic| {
            if at == ir::Span::default() {
                diag
            } else {
                diag.label(at, "used here")
            }
        };
        let path = match self.find(class) {
            Some(ClassFile::Cal(path)) => path,
            Some(ClassFile::Xdf(_)) => {
                let message = format!("`{class}` is a network, not an actor");
                diags.push(place(Diagnostic::error("class", message)));
                return None;
            }
            None => {
                let help = "a class a.b.C lives in a/b/C.cal below a source root";
                let message = format!("there is no class `{class}`");
                diags.push(place(Diagnostic::error("class", message).help(help)));
                return None;
            }
        };
        let loaded = self.load(&path, diags)?;
        let entity = loaded.ast.entity.as_ref()?;
        if !entity.is_actor {
            let message = format!("`{class}` is a unit, not an actor");
            diags.push(place(Diagnostic::error("class", message)));
            return None;
        }
        let roots = self.roots.clone();
        Some(self.closure(&roots, class, loaded.ast.clone(), diags))
    }

    /// Ports and parameters of an actor class.
    pub fn interface(&mut self, class: &str, diags: &mut Diagnostics) -> Option<Interface> {
        on_large_stack(|| self.interface_of(class, diags))
    }

    fn interface_of(&mut self, class: &str, diags: &mut Diagnostics) -> Option<Interface> {
        let library = self.actor_library(class, ir::Span::default(), diags)?;
        let file = library.get(class)?;
        let entity = file.entity.as_ref()?;
        let port = |p: &ast::Port| PortDecl {
            name: p.name.text.clone(),
            span: p.name.span,
        };
        let mut checker = Checker::new(&library, Params::Open);
        let params = checker.params(class);
        Some(Interface {
            name: class.to_owned(),
            inputs: entity.inputs.iter().map(port).collect(),
            outputs: entity.outputs.iter().map(port).collect(),
            params: params
                .into_iter()
                .map(|p| ParamDecl {
                    ty: p.ty.is_known().then(|| p.ty.to_ir()),
                    has_default: p.init.is_some(),
                    default: p.value,
                    name: p.name,
                    span: p.span,
                })
                .collect(),
            span: entity.name.span,
            broken: file.broken,
        })
    }

    /// The actor with these parameter values, lowered; equal parameters share one `Arc`. Values are
    /// converted to the parameters' types. `at` is where the instance is asked for.
    pub fn instantiate(
        &mut self,
        class: &str,
        params: &[(String, ir::Value)],
        at: ir::Span,
        diags: &mut Diagnostics,
    ) -> Option<Arc<ir::Actor>> {
        on_large_stack(|| self.instance(class, params, at, diags))
    }

    fn instance(
        &mut self,
        class: &str,
        params: &[(String, ir::Value)],
        at: ir::Span,
        diags: &mut Diagnostics,
    ) -> Option<Arc<ir::Actor>> {
        let mut params = params.to_vec();
        params.sort_by(|a, b| a.0.cmp(&b.0));
        let key = format!("{class} {params:?}");
        if let Some(Some(actor)) = self.actors.get(&key) {
            return Some(actor.clone());
        }
        let library = self.actor_library(class, at, diags)?;
        let mut own = Diagnostics::new();
        let checked = self.specialise(&library, class, &params, at, &mut own);
        let actor = checked
            .filter(|_| !own.has_errors() && !self.broken(&library))
            .map(|checked| {
                let name = self.specialised_name(class, &checked);
                Arc::new(lower::lower(&checked, name, &self.sources))
            });
        diags.extend(own.into_vec());
        self.actors.insert(key, actor.clone());
        actor
    }

    fn specialise(
        &mut self,
        library: &Library,
        class: &str,
        params: &[(String, ir::Value)],
        at: ir::Span,
        diags: &mut Diagnostics,
    ) -> Option<crate::hir::Actor> {
        let (class, file) = library.get_key_value(class)?;
        let entity = file.entity.as_ref()?;
        let known: HashSet<&str> = entity.params.iter().map(|p| p.name.text.as_str()).collect();
        for (name, _) in params {
            if !known.contains(name.as_str()) {
                let names: Vec<&str> = entity.params.iter().map(|p| p.name.text.as_str()).collect();
                let help = if names.is_empty() {
                    format!("`{class}` has no parameters")
                } else {
                    format!("its parameters are {}", names.join(", "))
                };
                let mut diag =
                    Diagnostic::error("parameter", format!("`{class}` has no parameter `{name}`"))
                        .help(help);
                if at != ir::Span::default() {
                    diag = diag.label(at, "given here");
                }
                diags.push(diag);
            }
        }
        let mut checker = Checker::new(library, Params::Given { values: params, at });
        checker.remarks = diags.keeps_notes();
        let actor = checker.actor(class);
        diags.extend(checker.diags);
        actor
    }

    /// Whether a file that the actor needs has errors of its own.
    fn broken(&self, library: &Library) -> bool {
        self.files.values().any(|loaded| {
            loaded
                .diags
                .iter()
                .any(|d| d.severity == crate::diag::Severity::Error)
                && library.values().any(|file| Arc::ptr_eq(file, &loaded.ast))
        })
    }

    /// `fir.Mac__3`: the class, and the parameters' values if they are few and short.
    fn specialised_name(&mut self, class: &str, actor: &crate::hir::Actor) -> String {
        let mut suffix = String::new();
        for global in actor.globals.iter().filter(|g| g.is_param) {
            match &global.value {
                Some(ir::Value::Int(v)) if *v < 0 => suffix += &format!("_m{}", v.unsigned_abs()),
                Some(ir::Value::Int(v)) => suffix += &format!("_{v}"),
                Some(ir::Value::Bool(v)) => suffix += &format!("_{v}"),
                _ => suffix += "_x",
            }
        }
        let mut name = class.to_owned();
        if !suffix.is_empty() && suffix.len() <= 32 {
            name = format!("{class}_{suffix}");
        }
        let mut unique = name.clone();
        let mut n = 1;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}__{n}");
        }
        unique
    }
}

/// Maximum size of a source file. Real files have a thousandth of it.
const SOURCE_BYTES_MAX: u64 = 64 << 20;

fn too_large() -> io::Error {
    io::Error::other(format!(
        "it is too large: a source file has at most {} MiB",
        SOURCE_BYTES_MAX >> 20
    ))
}

/// The text of a source file, or of a unit that comes with the compiler, as the compiler takes it.
pub fn source_text(path: &Path) -> io::Result<Arc<str>> {
    if let Some(text) = library::text(path) {
        return Ok(text.into());
    }
    let bytes = read_source(path)?;
    Ok(encoding::line_feeds(encoding::decode(&bytes).0).into())
}

/// The bytes of a source file; files that are too large are not read.
pub fn read_source(path: &Path) -> io::Result<Vec<u8>> {
    fs_deps::content(path);
    let file = fs::File::open(path)?;
    if file.metadata()?.len() > SOURCE_BYTES_MAX {
        Err(too_large())
    } else {
        // The file may grow meanwhile.
        read_all(file)
    }
}

/// The bytes of a source that comes from anywhere.
pub fn read_all(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SOURCE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SOURCE_BYTES_MAX {
        Err(too_large())
    } else {
        Ok(bytes)
    }
}

fn find_in(roots: &[PathBuf], class: &str) -> Option<ClassFile> {
    if class.is_empty()
        || class
            .split('.')
            .any(|part| part.is_empty() || part.contains(['/', '\\']))
    {
        return None;
    }
    let relative: PathBuf = class.split('.').collect();
    for root in roots {
        let cal = root.join(&relative).with_extension("cal");
        if fs_deps::is_file(&cal) {
            return Some(ClassFile::Cal(cal));
        }
        let xdf = root.join(&relative).with_extension("xdf");
        if fs_deps::is_file(&xdf) {
            return Some(ClassFile::Xdf(xdf));
        }
    }
    library::find(class).map(ClassFile::Cal)
}

/// An error if an actor and a network of the same name lie in one folder; `path` is one of them.
pub(crate) fn rivals_of(path: &Path) -> Option<Diagnostic> {
    let (cal, xdf) = (path.with_extension("cal"), path.with_extension("xdf"));
    if !fs_deps::is_file(&cal) || !fs_deps::is_file(&xdf) {
        return None;
    }
    let name = path.file_stem()?.to_string_lossy();
    let message = format!(
        "the class `{name}` is both {} and {}",
        Sources::display_path(&cal),
        Sources::display_path(&xdf)
    );
    let help = "an actor and a network of one folder need two names: rename one of the files";
    Some(Diagnostic::error("ambiguous-class", message).help(help))
}

/// The root for which the folder of `path` matches its package, if there is one.
fn root_of(path: &Path, package: &str) -> Option<PathBuf> {
    let mut folder = path.parent()?;
    for part in package.split('.').rev().filter(|part| !part.is_empty()) {
        if folder.file_name()?.to_str()? != part {
            return None;
        }
        folder = folder.parent()?;
    }
    Some(folder.to_owned())
}

/// A class is found by its name, so the file and its folder must match it. Checks the folder.
fn check_place(
    path: &Path,
    file: &ast::File,
    entity: &ast::Entity,
    diags: &mut Diagnostics,
) -> bool {
    let stem = path
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    if !entity.name.text.is_empty() && entity.name.text != stem && !file.broken {
        let message = format!("`{}` is in a file named {stem}.cal", entity.name.text);
        let diag = Diagnostic::error("class", message)
            .label(entity.name.span, "this name")
            .help("name both alike, or it will not be found");
        diags.push(diag);
    }
    if let Some(package) = &file.package
        && !package.text.is_empty()
        && root_of(path, &package.text).is_none()
    {
        let message = format!("package `{}` is not where this file is", package.text);
        let folder = package.text.replace('.', "/");
        let diag = Diagnostic::error("class", message)
            .label(package.span, "this package")
            .help(format!("the file belongs into a folder {folder}"));
        diags.push(diag);
        return false;
    }
    true
}
