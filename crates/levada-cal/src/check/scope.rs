// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scopes: the names that an actor or unit declares, and those that it imports.

use super::{Body, Checker, EntityId};
use crate::ast;
use crate::diag::{Diagnostic, Severity};
use crate::hir;
use crate::ir::Span;
use std::collections::HashMap;

/// A declaration in an actor or unit, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    Param(usize),
    Var(usize),
    Function(usize),
    Procedure(usize),
}

pub struct Scope<'a> {
    pub class: &'a str,
    pub ast: &'a ast::Entity,
    pub package: &'a str,
    names: HashMap<&'a str, Item>,
    /// `import unit.name;`
    imported: HashMap<&'a str, EntityId>,
    /// `import unit.*;`
    units: Vec<EntityId>,
    /// All names of those units, each with the first unit that declares it.
    of_units: HashMap<&'a str, EntityId>,
    /// Whether an import failed, so that a missing name may come from it.
    incomplete: bool,
    /// Problems of imports, which become errors as soon as a name is missing.
    failed: Vec<Diagnostic>,
    /// Missing names that were reported, with the index of their diagnostic, so that each is reported once.
    missing: HashMap<String, usize>,
    pub globals: HashMap<Item, Option<hir::GlobalId>>,
    pub procs: HashMap<Item, hir::ProcId>,
}

impl Scope<'_> {
    fn failed(&mut self, diag: Diagnostic) {
        self.incomplete = true;
        self.failed.push(diag);
    }
}

pub enum Found {
    Local(hir::LocalId),
    Item(EntityId, Item),
}

impl<'a> Checker<'a> {
    /// The actor or unit of this class, its names collected and its imports followed.
    pub(super) fn entity(&mut self, class: &str) -> Option<EntityId> {
        if let Some(&id) = self.by_class.get(class) {
            return Some(id);
        }
        let (class, file) = self.known.get_key_value(class)?;
        let file: &'a ast::File = file;
        let ast = file.entity.as_ref()?;
        let id = self.scopes.len();
        self.by_class.insert(class, id);
        let package = file.package.as_ref().map_or("", |p| p.text.as_str());
        let names = self.names(ast);
        self.scopes.push(Scope {
            class,
            ast,
            package,
            names,
            imported: HashMap::new(),
            units: Vec::new(),
            of_units: HashMap::new(),
            incomplete: false,
            failed: Vec::new(),
            missing: HashMap::new(),
            globals: HashMap::new(),
            procs: HashMap::new(),
        });
        for import in &file.imports {
            self.import(id, import);
        }
        Some(id)
    }

    fn names(&mut self, ast: &'a ast::Entity) -> HashMap<&'a str, Item> {
        let params = ast
            .params
            .iter()
            .enumerate()
            .map(|(i, d)| (&d.name, Item::Param(i)));
        let vars = ast
            .vars
            .iter()
            .enumerate()
            .map(|(i, d)| (&d.name, Item::Var(i)));
        let functions = ast.functions.iter().enumerate();
        let functions = functions.map(|(i, d)| (&d.name, Item::Function(i)));
        let procedures = ast.procedures.iter().enumerate();
        let procedures = procedures.map(|(i, d)| (&d.name, Item::Procedure(i)));
        let all = params.chain(vars).chain(functions).chain(procedures);
        let mut names = HashMap::new();
        let mut first: HashMap<&str, Span> = HashMap::new();
        for (name, item) in all.filter(|(name, _)| !name.text.is_empty()) {
            match first.get(name.text.as_str()) {
                Some(&before) => self.duplicate(name, before),
                None => {
                    first.insert(&name.text, name.span);
                    names.insert(name.text.as_str(), item);
                }
            }
        }
        names
    }

    pub(super) fn duplicate(&mut self, name: &ast::Ident, before: Span) {
        let message = format!("`{}` is declared twice", name.text);
        let diag = Diagnostic::error("duplicate", message)
            .label(name.span, "the second time")
            .label(before, "the first time")
            .help("give one of them another name");
        self.diags.push(diag);
    }

    fn import(&mut self, into: EntityId, import: &'a ast::Import) {
        let path = import.path.text.as_str();
        let (class, name) = if import.all {
            (path, None)
        } else {
            match path.rsplit_once('.') {
                Some((class, name)) => (class, Some(name)),
                None => (path, None),
            }
        };
        if path.is_empty() {
            return;
        }
        let Some(unit) = self.entity(class) else {
            // An unreadable file was already reported, and from a wrong folder no unit can be found.
            if self.known.contains_key(class) || self.misplaced {
                self.scopes[into].incomplete = true;
            } else {
                let mut diag = Diagnostic::error("import", format!("there is no unit `{class}`"))
                    .label(import.path.span, "not found in any source root");
                diag.help = Some(if self.known.contains_key(path) {
                    format!("write `import {path}.*;`")
                } else {
                    "a unit a.b.U lives in a/b/U.cal below a source root".into()
                });
                self.scopes[into].failed(diag);
            }
            return;
        };
        let scope = &self.scopes[unit];
        if scope.ast.is_actor {
            let diag = Diagnostic::error("import", format!("`{class}` is an actor"))
                .label(import.path.span, "only units can be imported")
                .help("move what both need into a unit");
            self.scopes[into].failed(diag);
            return;
        }
        match name {
            None => {
                self.note_import(import, unit, None);
                if !self.scopes[into].units.contains(&unit) {
                    let names: Vec<&str> = self.scopes[unit].names.keys().copied().collect();
                    let scope = &mut self.scopes[into];
                    scope.units.push(unit);
                    for name in names {
                        scope.of_units.entry(name).or_insert(unit);
                    }
                }
            }
            Some(name) if scope.names.contains_key(name) => {
                self.note_import(import, unit, Some(name));
                self.scopes[into].imported.insert(name, unit);
            }
            Some(name) => {
                let diag = Diagnostic::error("import", format!("`{class}` has no `{name}`"))
                    .label(import.path.span, "not declared there")
                    .label(self.scopes[unit].ast.name.span, "in this unit");
                self.scopes[into].failed(diag);
            }
        }
    }

    /// Reports failed imports of which nothing was used. Units that are checked only in part may use them elsewhere.
    pub(super) fn needless_imports(&mut self, entity: EntityId) {
        for mut diag in self.scopes[entity].failed.drain(..) {
            diag.severity = Severity::Warning;
            diag.help = Some("nothing of it is used: leave this line out".into());
            self.diags.push(diag);
        }
    }

    /// The meaning of a name in `body`.
    pub(super) fn lookup(&mut self, body: &Body<'a>, path: &ast::Path) -> Option<Found> {
        let name = path.text.as_str();
        if let Some((class, name)) = name.rsplit_once('.') {
            return self.lookup_qualified(body.entity, class, name);
        }
        if let Some(id) = body.names.innermost(name) {
            return Some(Found::Local(id));
        }
        let scope = &self.scopes[body.entity];
        if let Some(&item) = scope.names.get(name) {
            return Some(Found::Item(body.entity, item));
        }
        let from_unit =
            |&unit: &EntityId| Some(Found::Item(unit, *self.scopes[unit].names.get(name)?));
        scope
            .imported
            .get(name)
            .and_then(from_unit)
            .or_else(|| scope.of_units.get(name).and_then(from_unit))
    }

    /// `a.b.Unit.name`, or `Unit.name` of the same package or of an import.
    fn lookup_qualified(&mut self, from: EntityId, class: &str, name: &str) -> Option<Found> {
        let scope = &self.scopes[from];
        let local = format!("{}.{class}", scope.package);
        let suffix = format!(".{class}");
        let known =
            scope.units.iter().copied().find(|&u| {
                self.scopes[u].class == class || self.scopes[u].class.ends_with(&suffix)
            });
        let unit = known
            .or_else(|| self.entity(class))
            .or_else(|| self.entity(&local))?;
        let scope = &self.scopes[unit];
        if scope.ast.is_actor && unit != from {
            return None;
        }
        Some(Found::Item(unit, *scope.names.get(name)?))
    }

    /// All names that are visible in `body`, for suggestions.
    fn visible(&self, body: &Body<'a>) -> Vec<&'a str> {
        let scope = &self.scopes[body.entity];
        let mut names: Vec<&str> = body.names.iter().collect();
        names.extend(scope.names.keys());
        names.extend(scope.imported.keys());
        for &unit in &scope.units {
            names.extend(self.scopes[unit].names.keys());
        }
        names.sort_unstable();
        names
    }

    pub(super) fn unknown_name(&mut self, body: &Body<'a>, path: &ast::Path, what: &str) {
        if path.text.is_empty() {
            return;
        }
        let scope = &mut self.scopes[body.entity];
        self.diags.append(&mut scope.failed);
        if scope.incomplete {
            return;
        }
        let mut diag = Diagnostic::error("name", format!("there is no {what} `{}`", path.text))
            .label(path.span, "not declared");
        // With this many unknown names the cause is not a typing error.
        self.unknown += 1;
        if self.unknown <= SUGGESTIONS_MAX {
            let near = self
                .visible(body)
                .into_iter()
                .filter_map(|n| Some((distance(n, &path.text)?, n)))
                .filter(|&(d, n)| d < n.len().min(path.text.len()))
                .min();
            if let Some((_, near)) = near {
                diag = diag.help(format!("did you mean `{near}`?"));
            }
        }
        self.missing(body.entity, what, path, diag);
    }

    /// Reports a missing name. A name that is missing in several places is one error.
    pub(super) fn missing(
        &mut self,
        entity: EntityId,
        what: &str,
        name: &ast::Ident,
        diag: Diagnostic,
    ) {
        let scope = &mut self.scopes[entity];
        if name.text.is_empty() {
            return;
        }
        let key = format!("{what} {}", name.text);
        match scope.missing.get(&key) {
            None => {
                scope.missing.insert(key, self.diags.len());
                self.diags.push(diag);
            }
            Some(&before) => self.diags[before].also_at(name.span),
        }
    }
}

/// Maximum number of unknown names for which a similar name is suggested.
const SUGGESTIONS_MAX: usize = 50;

/// The edit distance of two words (Levenshtein 1966); `None` if more than two.
fn distance(a: &str, b: &str) -> Option<usize> {
    if a.len().abs_diff(b.len()) > 2 {
        return None;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = corner + usize::from(!x.eq_ignore_ascii_case(&y));
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
        if row.iter().all(|&d| d > 2) {
            return None;
        }
    }
    Some(row[b.len()]).filter(|&d| d <= 2)
}
