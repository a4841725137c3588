// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowering: from a checked actor to the intermediate representation.
//!
//! Lists in expressions become variables and statements that fill them. Calls with side effects become statements
//! of their own, in source order. Unused declarations are omitted.

mod expr;
mod list;
mod stmt;
mod text;

use crate::check::effects::{self, Effects, Event};
use crate::diag::Sources;
use crate::hir::{self, ProcBody, Var};
use crate::ir::{self, Span, Value};
use crate::types::Ty;
use std::collections::{HashMap, HashSet};

/// Lowers an actor that was checked without errors; `name` is its new name.
pub fn lower(actor: &hir::Actor, name: String, sources: &Sources) -> ir::Actor {
    let effects = effects::of_all(&actor.procs, &actor.globals, true);
    let mut lowerer = Lowerer {
        actor,
        changed: changed_globals(actor, &effects),
        effects,
        globals: Vec::new(),
        global_ids: HashMap::new(),
        proc_ids: HashMap::new(),
        procs: Vec::new(),
        global_names: Unique::default(),
        length: 0,
    };
    lowerer.keep_used();
    let actions = lowerer.actions(&actor.actions, "action", sources);
    let initializers = lowerer.actions(&actor.initializers, "initialize action", sources);
    let port = |p: &hir::Port| ir::Port {
        name: p.name.clone(),
        ty: p.ty.to_ir(),
        span: p.span,
    };
    ir::Actor {
        name,
        inputs: actor.inputs.iter().map(port).collect(),
        outputs: actor.outputs.iter().map(port).collect(),
        globals: lowerer.globals,
        procs: lowerer.procs,
        actions,
        initializers,
        outside: actor.outside.clone(),
        fsm: actor.fsm.clone(),
        native: actor.native.clone(),
        span: actor.span,
    }
}

struct Lowerer<'a> {
    actor: &'a hir::Actor,
    effects: Vec<Effects>,
    /// The variables that are written anywhere.
    changed: HashSet<hir::GlobalId>,
    globals: Vec<ir::Var>,
    global_ids: HashMap<hir::GlobalId, usize>,
    proc_ids: HashMap<hir::ProcId, usize>,
    procs: Vec<ir::Proc>,
    global_names: Unique,
    /// The number of chained operations in the last expression.
    length: u32,
}

/// A body under construction: its variables, and its statements so far.
struct Build<'a> {
    source: &'a [hir::Local],
    locals: Vec<ir::Local>,
    names: Unique,
    /// The current variable for each variable of the source.
    places: HashMap<hir::LocalId, ir::VarRef>,
    out: Vec<ir::Stmt>,
}

impl<'a> Build<'a> {
    fn new(source: &'a [hir::Local]) -> Build<'a> {
        Build {
            source,
            locals: Vec::new(),
            names: Unique::default(),
            places: HashMap::new(),
            out: Vec::new(),
        }
    }

    fn temporary(&mut self, name: &str, ty: ir::Type, span: Span) -> usize {
        let name = self.names.name(name);
        self.locals.push(ir::Local { name, ty, span });
        self.locals.len() - 1
    }

    /// The variable of the source, declared at its first use.
    fn local(&mut self, id: hir::LocalId) -> ir::VarRef {
        if let Some(&place) = self.places.get(&id) {
            return place;
        }
        let local = &self.source[id];
        let made = self.temporary(&local.name, local.ty.to_ir(), local.span);
        self.places.insert(id, ir::VarRef::Local(made));
        ir::VarRef::Local(made)
    }

    fn push(&mut self, kind: ir::StmtKind, span: Span) {
        self.out.push(ir::Stmt { kind, span });
    }

    fn body(self) -> ir::Body {
        ir::Body {
            locals: self.locals,
            stmts: self.out,
        }
    }
}

/// Allocates unique names.
#[derive(Default)]
struct Unique {
    taken: HashSet<String>,
    /// How often a name was requested again.
    again: HashMap<String, u32>,
}

impl Unique {
    fn name(&mut self, name: &str) -> String {
        let mut out = name.to_owned();
        while !self.taken.insert(out.clone()) {
            let n = self.again.entry(name.to_owned()).or_insert(1);
            *n += 1;
            out = format!("{name}_{n}");
        }
        out
    }
}

fn changed_globals(actor: &hir::Actor, all: &[Effects]) -> HashSet<hir::GlobalId> {
    let mut changed = HashSet::new();
    let mut visit = |event: Event| match event {
        Event::Write(Var::Global(id)) => {
            changed.insert(id);
        }
        Event::Call(callee, args) => {
            for (var, _) in effects::written_args(all, callee, args) {
                if let Var::Global(id) = var {
                    changed.insert(id);
                }
            }
        }
        _ => {}
    };
    for proc in &actor.procs {
        effects::walk_proc(proc, &mut visit);
    }
    for action in actor.actions.iter().chain(&actor.initializers) {
        effects::walk_stmts(&action.body, &mut visit);
    }
    changed
}

/// Variables and procedures reached from the actions.
#[derive(Default)]
struct Used {
    globals: HashSet<hir::GlobalId>,
    procs: HashSet<hir::ProcId>,
}

impl Used {
    fn visit(&mut self, event: Event, more: &mut Vec<Var>, procs: &mut Vec<hir::ProcId>) {
        match event {
            Event::Read(var @ Var::Global(id)) | Event::Write(var @ Var::Global(id))
                if self.globals.insert(id) =>
            {
                more.push(var);
            }
            Event::Call(id, _) if self.procs.insert(id) => procs.push(id),
            _ => {}
        }
    }
}

impl<'a> Lowerer<'a> {
    /// Declares the variables and procedures that the actions reach, in their order.
    fn keep_used(&mut self) {
        let actor = self.actor;
        let mut used = Used::default();
        let (mut vars, mut procs) = (Vec::new(), Vec::new());
        for action in actor.actions.iter().chain(&actor.initializers) {
            let mut visit = |event: Event| used.visit(event, &mut vars, &mut procs);
            action
                .guards
                .iter()
                .for_each(|guard| effects::walk_expr(guard, &mut visit));
            effects::walk_stmts(&action.body, &mut visit);
            let values = action.outputs.iter().flat_map(|output| &output.values);
            values.for_each(|value| effects::walk_expr(value, &mut visit));
        }
        loop {
            let (mut more_vars, mut more_procs) = (Vec::new(), Vec::new());
            let mut visit = |event: Event| used.visit(event, &mut more_vars, &mut more_procs);
            for id in procs.drain(..) {
                effects::walk_proc(&actor.procs[id], &mut visit);
            }
            for var in vars.drain(..) {
                let Var::Global(id) = var else { continue };
                let global = &actor.globals[id];
                if let (None, Some(init)) = (&global.value, &global.init) {
                    effects::walk_expr(&init.value, &mut visit);
                }
            }
            if more_vars.is_empty() && more_procs.is_empty() {
                break;
            }
            (vars, procs) = (more_vars, more_procs);
        }

        // Natives keep their names; others are renamed.
        let mut names = Unique::default();
        let mut ids: Vec<hir::ProcId> = used.procs.into_iter().collect();
        ids.sort_unstable();
        names
            .taken
            .extend(ids.iter().filter_map(|&id| actor.procs[id].symbol.clone()));
        let mut proc_names = Vec::with_capacity(ids.len());
        for &id in &ids {
            self.proc_ids.insert(id, self.proc_ids.len());
            let proc = &actor.procs[id];
            proc_names.push(match &proc.symbol {
                Some(symbol) => symbol.clone(),
                None => names.name(&proc.name),
            });
        }
        let mut globals: Vec<hir::GlobalId> = used.globals.into_iter().collect();
        globals.sort_unstable();
        // A scalar that never changes is a constant wherever it is read.
        globals.retain(|&id| self.constant_scalar(id).is_none());
        for &id in &globals {
            let global = &actor.globals[id];
            self.global_ids.insert(id, self.globals.len());
            let name = self.global_names.name(&global.name);
            self.globals.push(ir::Var {
                name,
                ty: global.ty.to_ir(),
                init: ir::Init::Zero,
                constant: !self.changed.contains(&id),
                span: global.span,
            });
        }
        for &id in &globals {
            let global = &actor.globals[id];
            let at = self.global_ids[&id];
            self.globals[at].init = match (&global.value, &global.init) {
                (Some(value), _) => ir::Init::Value(value.clone()),
                (None, Some(init)) => ir::Init::Code(self.init_code(at, global, init)),
                (None, None) => ir::Init::Zero,
            };
        }
        for (&id, name) in ids.iter().zip(proc_names) {
            let proc = self.proc(id, name);
            self.procs.push(proc);
        }
    }

    /// The value of a scalar variable that never changes.
    fn constant_scalar(&self, id: hir::GlobalId) -> Option<&'a Value> {
        let global = &self.actor.globals[id];
        let value = global.value.as_ref()?;
        let fixed = !self.changed.contains(&id) && !matches!(value, Value::List(_));
        fixed.then_some(value)
    }

    fn init_code(
        &mut self,
        at: usize,
        global: &'a hir::Global,
        init: &'a hir::GlobalInit,
    ) -> ir::Body {
        let mut build = Build::new(&init.locals);
        let place = ir::Place {
            var: ir::VarRef::Global(at),
            indices: Vec::new(),
            ty: global.ty.to_ir(),
            span: global.span,
        };
        self.assign(&mut build, place, &global.ty, &init.value, global.span);
        build.body()
    }

    fn proc(&mut self, id: hir::ProcId, name: String) -> ir::Proc {
        let proc = &self.actor.procs[id];
        let mut build = Build::new(&proc.locals);
        for param in 0..proc.params {
            build.local(param);
        }
        match &proc.body {
            ProcBody::None => {}
            ProcBody::Procedure(stmts) => self.stmts(&mut build, stmts),
            ProcBody::Function { inits, result } => {
                let ty = proc.result.clone().unwrap_or(Ty::Unknown);
                let hidden = ty.is_list().then(|| {
                    let made = build.temporary("result", ty.to_ir(), result.span);
                    ir::Place {
                        var: ir::VarRef::Local(made),
                        indices: Vec::new(),
                        ty: ty.to_ir(),
                        span: result.span,
                    }
                });
                for (local, value) in inits {
                    self.init_local(&mut build, *local, value);
                }
                match hidden {
                    Some(place) => self.assign(&mut build, place, &ty, result, result.span),
                    None => {
                        let value = self.scalar(&mut build, result);
                        let value = expr::coerce(value, &ty.to_ir());
                        build.push(ir::StmtKind::Return(value), result.span);
                    }
                }
            }
        }
        if proc.native
            && let Some(ty @ Ty::List { .. }) = &proc.result
        {
            build.temporary("result", ty.to_ir(), proc.span);
        }
        ir::Proc {
            name,
            params: proc.params,
            result: proc.result.as_ref().map(Ty::to_ir),
            body: build.body(),
            native: proc.native,
            effects: self.effects[id].effects,
            span: proc.span,
        }
    }

    // Actions.

    /// An action without a tag is called by its place, as `the action at line 12`.
    fn actions(
        &mut self,
        actions: &'a [hir::Action],
        kind: &str,
        sources: &Sources,
    ) -> Vec<ir::Action> {
        let mut names = Unique::default();
        let mut out = Vec::with_capacity(actions.len());
        for action in actions {
            let name = match &action.tag {
                Some(tag) => names.name(tag),
                None => {
                    let at = sources.line_col(action.span);
                    let name = format!("the {kind} at line {}", at.line);
                    if names.taken.insert(name.clone()) {
                        name
                    } else {
                        format!("{name}, column {}", at.column)
                    }
                }
            };
            out.push(self.action(action, name));
        }
        out
    }

    fn action(&mut self, action: &'a hir::Action, name: String) -> ir::Action {
        let mut guard = Build::new(&action.guard_locals);
        let mut body = Build::new(&action.locals);
        for token in 0..action.tokens {
            guard.local(token);
            body.local(token);
        }
        let conditions = action
            .guards
            .iter()
            .map(|cond| self.scalar(&mut guard, cond))
            .collect::<Vec<_>>();
        let input = |input: &hir::Input| ir::Input {
            port: input.port,
            vars: input.vars.clone(),
            repeat: input.repeat,
            is_list: input.is_list,
            span: input.span,
        };
        self.copy_changed_tokens(&mut body, action);
        self.stmts(&mut body, &action.body);
        let outputs = self.outputs(&mut body, action);
        ir::Action {
            name,
            inputs: action.inputs.iter().map(input).collect(),
            outputs,
            guard: ir::Guard {
                body: guard.body(),
                conditions,
            },
            body: body.body(),
            schedule_outputs: action.schedule_outputs,
            span: action.span,
        }
    }

    /// Input variables may be in the channel's buffer, which other consumers read too, so those that the body changes
    /// are copied first.
    fn copy_changed_tokens(&mut self, body: &mut Build<'a>, action: &'a hir::Action) {
        for token in 0..action.tokens {
            if !effects::changes(&self.effects, &action.body, Var::Local(token)) {
                continue;
            }
            let local = &action.locals[token];
            let ty = local.ty.to_ir();
            let place = |var| ir::Place {
                var,
                indices: Vec::new(),
                ty: ty.clone(),
                span: local.span,
            };
            let from = place(body.local(token));
            let made = body.temporary(&local.name, ty.clone(), local.span);
            let to = place(ir::VarRef::Local(made));
            body.places.insert(token, ir::VarRef::Local(made));
            let kind = if local.ty.is_list() {
                ir::StmtKind::Copy { to, from }
            } else {
                ir::StmtKind::Assign(to, expr::load(from))
            };
            body.push(kind, local.span);
        }
    }

    fn outputs(&mut self, body: &mut Build<'a>, action: &'a hir::Action) -> Vec<ir::Output> {
        let mut out = Vec::with_capacity(action.outputs.len());
        for output in &action.outputs {
            let elem = &self.actor.outputs[output.port].ty;
            let mut values = Vec::with_capacity(output.values.len());
            for value in &output.values {
                values.push(if value.ty.is_list() {
                    ir::OutputValue::List(self.output_list(body, value, elem))
                } else {
                    let value = self.scalar(body, value);
                    ir::OutputValue::Scalar(expr::coerce(value, &elem.to_ir()))
                });
            }
            out.push(ir::Output {
                port: output.port,
                values,
                repeat: output.repeat,
                span: output.span,
            });
        }
        out
    }

    /// A list variable with the value: an existing one, or a new one.
    fn output_list(&mut self, body: &mut Build<'a>, value: &'a hir::Expr, elem: &Ty) -> ir::VarRef {
        let wanted = elem.to_ir();
        let place = self.list_place(body, value, Some(elem));
        if let ir::Type::List { elem, .. } = &place.ty
            && expr::same_storage(elem, &wanted)
            && place.indices.is_empty()
        {
            return place.var;
        }
        let len = match &place.ty {
            ir::Type::List { len, .. } => *len,
            _ => 1,
        };
        let ty = ir::Type::List {
            elem: Box::new(wanted),
            len,
        };
        let made = body.temporary("out", ty.clone(), value.span);
        let var = ir::VarRef::Local(made);
        let to = ir::Place {
            var,
            indices: Vec::new(),
            ty,
            span: value.span,
        };
        body.push(ir::StmtKind::Copy { to, from: place }, value.span);
        var
    }
}
