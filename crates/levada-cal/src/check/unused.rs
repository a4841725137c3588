// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings for declarations of an actor that are never used.

use super::scope::Item;
use super::{Body, Checker, EntityId};
use crate::diag::{Diagnostic, Severity};
use crate::hir::{self, Var};
use crate::ir::Span;
use std::collections::HashSet;

/// The names that were used so far in the source text, including those in folded constants.
#[derive(Default)]
pub(super) struct Mentioned {
    pub read: HashSet<Var>,
    pub written: HashSet<Var>,
    pub called: HashSet<hir::ProcId>,
}

impl Mentioned {
    fn lost(&self, var: Var) -> bool {
        self.written.contains(&var) && !self.read.contains(&var)
    }
}

fn never_read(name: &str, span: Span) -> Diagnostic {
    Diagnostic::warning("unused", format!("`{name}` is never read"))
        .label(span, "what it is given is lost")
}

impl Checker<'_> {
    /// Reports variables of a body that are only written; other uses count for the actor.
    pub(super) fn unused_locals(&mut self, body: &Body, from: usize) {
        for (id, local) in body.locals.iter().enumerate().skip(from) {
            if body.mentioned.lost(Var::Local(id)) {
                self.unused.push(never_read(&local.name, local.span));
            }
        }
        let global = |var: &&Var| matches!(var, Var::Global(_));
        self.mentioned
            .read
            .extend(body.mentioned.read.iter().filter(global));
        self.mentioned
            .written
            .extend(body.mentioned.written.iter().filter(global));
        self.mentioned.called.extend(&body.mentioned.called);
    }

    /// Warns about unused variables, functions and procedures of an actor; those of units are for other files to use.
    /// Nothing is reported if there are errors, since the use of a name may have a typing error.
    pub(super) fn unused(&mut self, entity: EntityId) {
        let mut found = std::mem::take(&mut self.unused);
        let flawed = self.known.values().any(|file| file.flawed);
        if !self.reviewing || flawed || self.diags.iter().any(|d| d.severity == Severity::Error) {
            return;
        }
        let scope = &self.scopes[entity];
        for (item, id) in &scope.procs {
            let proc = &self.procs[*id];
            if !self.mentioned.called.contains(id) && !proc.native {
                let what = match item {
                    Item::Function(_) => "function",
                    _ => "procedure",
                };
                let message = format!("{what} `{}` is never called", proc.name);
                let diag = Diagnostic::warning("unused", message).label(proc.span, "declared here");
                found.push(diag);
            }
        }
        for id in scope.globals.values().flatten() {
            if self.mentioned.lost(Var::Global(*id)) {
                let global = &self.globals[*id];
                found.push(never_read(&global.name, global.span));
            }
        }
        found.sort_by_key(|diag| diag.labels[0].span.start);
        self.diags.extend(found);
    }
}
