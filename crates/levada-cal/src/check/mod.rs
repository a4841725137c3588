// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checker: from syntax trees to a checked actor or unit ([`crate::hir`]).
//!
//! A declaration is checked when it is first needed, so that a size may use a constant that is declared later, or a
//! function of another unit. Everything is checked once and every error is reported. An erroneous expression gets
//! the type `Unknown`, which causes no further errors.

mod actor;
mod declarations;
pub mod effects;
mod expr;
mod names;
pub mod note;
mod order;
mod scope;
mod stmt;
mod unspecified;
mod unused;

use crate::ast;
use crate::diag::Diagnostic;
use crate::eval::Evaluator;
use crate::hir::{self, GlobalId, LocalId, ProcId, Stop};
use crate::ir::{Span, Value};
use names::Names;
use scope::Scope;
use std::collections::HashMap;
use std::sync::Arc;

/// The files that an actor needs, by class name: its own and those of all units that it imports.
pub type Library = HashMap<String, Arc<ast::File>>;

/// The parameters of an actor.
pub enum Params<'a> {
    /// Each has a value or a default; `at` is where the actor is used.
    Given {
        values: &'a [(String, Value)],
        at: Span,
    },
    /// Not known yet: only code that does not depend on them is checked completely.
    Open,
}

type EntityId = usize;

pub struct Checker<'a> {
    known: &'a Library,
    pub diags: Vec<Diagnostic>,
    scopes: Vec<Scope<'a>>,
    by_class: HashMap<&'a str, EntityId>,
    globals: Vec<hir::Global>,
    procs: Vec<hir::Proc>,
    /// For each procedure or function, its calls and their places.
    calls: Vec<Vec<(ProcId, Span)>>,
    /// Bodies still to be checked.
    waiting: Vec<(EntityId, scope::Item, ProcId)>,
    depth: u32,
    mentioned: unused::Mentioned,
    /// Warnings about unused declarations, deferred until it is known that there are no errors.
    unused: Vec<Diagnostic>,
    given: HashMap<String, Value>,
    given_at: Span,
    /// Whether parameters without a value are permitted; what depends on them is unknown.
    open: bool,
    /// Whether the actor is checked but not run, so that unused declarations are reported.
    reviewing: bool,
    /// Whether the file is not in the folder of its package, so that imported units cannot be found.
    pub misplaced: bool,
    /// The number of unknown names.
    unknown: usize,
    /// What is recorded for the index, if one was requested.
    pub notes: Option<Box<note::Notes>>,
    /// Whether notes (`Severity::Note`) about unspecified behaviour were requested.
    pub remarks: bool,
}

/// A sequence of statements or an expression that is being checked: its entity and its visible names.
struct Body<'a> {
    entity: EntityId,
    locals: Vec<hir::Local>,
    names: Names<'a>,
    /// Inside of a size, where a variable means its initial value.
    in_size: bool,
    calls: Vec<(ProcId, Span)>,
    mentioned: unused::Mentioned,
}

impl<'a> Body<'a> {
    fn new(entity: EntityId) -> Body<'a> {
        Body {
            entity,
            locals: Vec::new(),
            names: Names::default(),
            in_size: false,
            calls: Vec::new(),
            mentioned: unused::Mentioned::default(),
        }
    }

    fn declare(&mut self, name: &'a str, local: hir::Local) -> LocalId {
        self.locals.push(local);
        let id = self.locals.len() - 1;
        self.names.push(name, id);
        id
    }
}

impl<'a> Checker<'a> {
    pub fn new(known: &'a Library, params: Params) -> Checker<'a> {
        let (given, at, open) = match params {
            Params::Given { values, at } => (values.iter().cloned().collect(), at, false),
            Params::Open => (HashMap::new(), Span::default(), true),
        };
        Checker {
            known,
            diags: Vec::new(),
            scopes: Vec::new(),
            by_class: HashMap::new(),
            globals: Vec::new(),
            procs: Vec::new(),
            calls: Vec::new(),
            waiting: Vec::new(),
            depth: 0,
            mentioned: unused::Mentioned::default(),
            unused: Vec::new(),
            given,
            given_at: at,
            open,
            reviewing: open,
            misplaced: false,
            unknown: 0,
            notes: None,
            remarks: false,
        }
    }

    fn error(&mut self, code: &'static str, span: Span, message: String, label: impl Into<String>) {
        self.diags
            .push(Diagnostic::error(code, message).label(span, label));
    }

    /// Checks everything in a unit.
    pub fn unit(&mut self, class: &'a str) {
        if let Some(entity) = self.entity(class) {
            self.members(entity);
            self.finish(&[]);
            self.needless_imports(entity);
            self.note_entity(self.scopes[entity].ast.name.span, entity);
            self.finish_notes();
        }
        self.only_syntax();
    }

    /// If a needed file has syntax errors, only those are reported: most other errors would be consequences, since
    /// declarations are missing.
    fn only_syntax(&mut self) {
        if self.known.values().any(|file| file.broken) {
            self.diags.clear();
        }
    }

    /// The parameters of an actor.
    pub fn params(&mut self, class: &str) -> Vec<hir::Global> {
        let Some(entity) = self.entity(class) else {
            return Vec::new();
        };
        let count = self.scopes[entity].ast.params.len();
        let ids: Vec<GlobalId> = (0..count)
            .filter_map(|i| self.global(entity, scope::Item::Param(i)))
            .collect();
        self.only_syntax();
        ids.into_iter().map(|id| self.globals[id].clone()).collect()
    }

    /// All variables, functions and procedures of an actor or unit, used or not.
    fn members(&mut self, entity: EntityId) {
        let ast = self.scopes[entity].ast;
        // With a default for each parameter, everything is known.
        self.open &= ast.params.iter().any(|p| p.init.is_none());
        for i in 0..ast.params.len() {
            self.global(entity, scope::Item::Param(i));
        }
        for i in 0..ast.vars.len() {
            self.global(entity, scope::Item::Var(i));
        }
        for i in 0..ast.functions.len() {
            self.proc(entity, scope::Item::Function(i));
        }
        for i in 0..ast.procedures.len() {
            self.proc(entity, scope::Item::Procedure(i));
        }
    }

    /// Checks the waiting bodies, then properties of all of them together.
    fn finish(&mut self, actions: &[hir::Action]) {
        while let Some((entity, item, id)) = self.waiting.pop() {
            self.proc_body(entity, item, id);
        }
        self.recursion();
        self.written_constants(actions);
    }

    /// Reports constants that are passed to procedures which write them.
    fn written_constants(&mut self, actions: &[hir::Action]) {
        let all = effects::of_all(&self.procs, &self.globals, false);
        let mut found = Vec::new();
        let mut look = |locals: &[hir::Local], stmts: &[hir::Stmt]| {
            effects::walk_stmts(stmts, &mut |event| {
                let effects::Event::Call(callee, args) = event else {
                    return;
                };
                for (var, arg) in effects::written_args(&all, callee, args) {
                    let (constant, name) = match var {
                        hir::Var::Local(id) => (locals[id].constant, &locals[id].name),
                        hir::Var::Global(id) => (self.globals[id].constant, &self.globals[id].name),
                    };
                    if constant {
                        found.push((arg.span, name.clone(), callee));
                    }
                }
            });
        };
        for proc in &self.procs {
            if let hir::ProcBody::Procedure(stmts) = &proc.body {
                look(&proc.locals, stmts);
            }
        }
        for action in actions {
            look(&action.locals, &action.body);
        }
        for (span, name, callee) in found {
            let diag = Diagnostic::error("assign", format!("`{name}` is a constant"))
                .label(span, "the procedure writes to it")
                .label(self.procs[callee].span, "this one")
                .help("hand it a variable, or copy the constant into one first");
            self.diags.push(diag);
        }
    }

    /// The value of a checked expression in a body with `locals` variables, if it is known; with `initial`, state
    /// variables have their initial values. `Err` only for an evaluation that would fail or not end.
    fn value(&self, expr: &hir::Expr, locals: usize, initial: bool) -> Result<Option<Value>, Stop> {
        let evaluator = Evaluator::new(&self.globals, &self.procs);
        let mut evaluator = if initial {
            evaluator.initial()
        } else {
            evaluator
        };
        match evaluator.run(expr, locals) {
            Ok(value) => Ok(Some(value)),
            Err(Stop::NotConstant(_)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Reports recursive functions and procedures.
    fn recursion(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut state = vec![State::New; self.procs.len()];
        for root in 0..self.procs.len() {
            if state[root] != State::New {
                continue;
            }
            // Depth-first search with an explicit stack of (procedure, index of its next call).
            let mut stack = vec![(root, 0)];
            state[root] = State::Open;
            while let Some((id, next)) = stack.last_mut() {
                let Some(&(callee, span)) = self.calls[*id].get(*next) else {
                    state[*id] = State::Done;
                    stack.pop();
                    continue;
                };
                *next += 1;
                match state[callee] {
                    State::New => {
                        state[callee] = State::Open;
                        stack.push((callee, 0));
                    }
                    State::Open => {
                        let name = &self.procs[callee].name;
                        let diag =
                            Diagnostic::warning("recursion", format!("`{name}` calls itself"))
                                .label(span, "by this call")
                                .label(self.procs[callee].span, "while it is being computed")
                                .help("the depth of a recursion is not checked: a loop is safer");
                        self.diags.push(diag);
                    }
                    State::Done => {}
                }
            }
        }
    }

    fn global_id(&mut self, global: hir::Global) -> GlobalId {
        self.globals.push(global);
        self.globals.len() - 1
    }
}
