// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks actors: ports, actions, patterns and guards.

use super::{Body, Checker, EntityId, stmt};
use crate::ast;
use crate::diag::Diagnostic;
use crate::hir::{self, Action, Expr, Input, Output};
use crate::ir::{self, Span};
use crate::operators::{self, types::given};
use crate::types::Ty;
use std::collections::HashMap;

/// Maximum number of elements of one port in an action.
const REPEAT_ELEMENTS_MAX: i64 = 1 << 24;

impl<'a> Checker<'a> {
    /// Checks an actor; `None` if the class does not exist or is not an actor.
    pub fn actor(&mut self, class: &'a str) -> Option<hir::Actor> {
        let entity = self.entity(class)?;
        let ast = self.scopes[entity].ast;
        if !ast.is_actor {
            return None;
        }
        self.members(entity);
        let inputs = self.ports(entity, &ast.inputs, "input");
        let outputs = self.ports(entity, &ast.outputs, "output");
        self.distinct_ports(ast);
        let mut actor = hir::Actor {
            name: class.to_owned(),
            inputs,
            outputs,
            globals: Vec::new(),
            procs: Vec::new(),
            actions: Vec::new(),
            initializers: Vec::new(),
            outside: Vec::new(),
            fsm: None,
            native: None,
            span: ast.name.span,
        };
        for action in &ast.actions {
            let checked = self.action(entity, &actor, action);
            actor.actions.push(checked);
        }
        for action in &ast.initializers {
            let checked = self.action(entity, &actor, action);
            actor.initializers.push(checked);
        }
        self.order(entity, &mut actor);
        if ast::has_annotation(&ast.annotations, "native") {
            actor.native = Some(self.native(class, ast));
        }
        self.finish(&actor.actions);
        self.needless_imports(entity);
        self.unused(entity);
        self.note_entity(ast.name.span, entity);
        self.note_order(ast);
        self.finish_notes();
        self.only_syntax();
        actor.globals = std::mem::take(&mut self.globals);
        actor.procs = std::mem::take(&mut self.procs);
        Some(actor)
    }

    /// An actor with a body in C: here are only its ports and parameters.
    fn native(&mut self, class: &str, ast: &'a ast::Entity) -> ir::NativeActor {
        let body = ast.actions.first().map(|a| a.head);
        let body = body.or_else(|| Some(ast.vars.first()?.span));
        if let Some(span) = body {
            let diag = Diagnostic::warning("native", "the body of a native actor is not used")
                .label(span, "what it does is written in C")
                .help("leave out `@native`, or leave the body empty");
            self.diags.push(diag);
        }
        let mut params = Vec::new();
        for decl in &ast.params {
            let mut all = self.globals.iter();
            let global = all.find(|g| g.is_param && g.name == decl.name.text);
            match global.and_then(|g| Some((g.ty.to_ir(), g.value.clone()?))) {
                Some((ty, value)) => params.push(ir::NativeParam {
                    name: decl.name.text.clone(),
                    ty,
                    value,
                }),
                None if self.open => {}
                None => {
                    let message = format!("the value of `{}` is not known here", decl.name.text);
                    let diag = Diagnostic::error("parameter", message)
                        .label(decl.name.span, "it is handed to C as a constant");
                    self.diags.push(diag);
                }
            }
        }
        ir::NativeActor {
            class: class.rsplit('.').next().unwrap_or(class).to_owned(),
            params,
        }
    }

    fn ports(&mut self, entity: EntityId, ports: &'a [ast::Port], kind: &str) -> Vec<hir::Port> {
        let mut out = Vec::with_capacity(ports.len());
        for port in ports {
            let mut body = Body::new(entity);
            let mut ty = self.ty(&mut body, &port.ty);
            self.unused_locals(&body, usize::MAX);
            if ty.is_list() {
                let diag = Diagnostic::error("port", format!("a channel carries no {ty}"))
                    .label(port.ty.span, "elements are numbers or bool")
                    .help("send the elements of a list one by one, with `repeat`");
                self.diags.push(diag);
                ty = Ty::Unknown;
            }
            let port = hir::Port {
                name: port.name.text.clone(),
                ty,
                span: port.name.span,
            };
            self.note_port(port.span, &port, kind);
            out.push(port);
        }
        out
    }

    fn distinct_ports(&mut self, ast: &'a ast::Entity) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let ports = ast.inputs.iter().chain(&ast.outputs).map(|p| &p.name);
        for name in ports.filter(|n| !n.text.is_empty()) {
            match seen.get(name.text.as_str()) {
                Some(&before) => self.duplicate(name, before),
                None => {
                    seen.insert(&name.text, name.span);
                }
            }
        }
    }

    fn action(&mut self, entity: EntityId, actor: &hir::Actor, action: &'a ast::Action) -> Action {
        let mut body = Body::new(entity);
        self.distinct_tag(entity, action);
        let inputs = self.inputs(&mut body, actor, &action.inputs);
        let tokens = body.locals.len();

        // A guard sees the input variables only; the counters of its generators are its own.
        let mut guards = Vec::with_capacity(action.guards.len());
        for guard in &action.guards {
            let cond = self.condition(&mut body, guard);
            guards.push(cond);
        }
        let guard_locals = body.locals.clone();
        body.locals.truncate(tokens);

        let inits = self.locals(&mut body, &action.locals);
        let mut stmts = stmt::assignments(&body, inits);
        self.stmts(&mut body, &action.body, &mut stmts);
        let outputs = self.outputs(&mut body, actor, &action.outputs);
        self.unused_locals(&body, tokens);
        Action {
            tag: action.tag.as_ref().map(|t| t.text.clone()),
            inputs,
            outputs,
            guards,
            guard_locals,
            locals: body.locals,
            tokens,
            body: stmts,
            schedule_outputs: ast::has_annotation(&action.annotations, "schedule_outputs"),
            span: action.head,
        }
    }

    /// A tag may not be the name of a port or a variable.
    fn distinct_tag(&mut self, entity: EntityId, action: &'a ast::Action) {
        let Some(tag) = &action.tag else { return };
        let ast = self.scopes[entity].ast;
        let ports = ast
            .inputs
            .iter()
            .chain(&ast.outputs)
            .map(|p| (&p.name, "port"));
        let vars = ast.vars.iter().map(|v| (&v.name, "variable"));
        if let Some((other, what)) = ports.chain(vars).find(|(n, _)| n.text == tag.text) {
            let message = format!("action `{}` has the name of a {what}", tag.text);
            let diag = Diagnostic::error("tag", message)
                .label(tag.span, "this tag")
                .label(other.span, format!("this {what}"))
                .help("give the action another tag");
            self.diags.push(diag);
        }
    }

    /// The port that a pattern names; an error if there is none, or if it is named twice.
    fn port(
        &mut self,
        entity: EntityId,
        ports: &[hir::Port],
        others: &[hir::Port],
        name: &ast::Ident,
        seen: &mut HashMap<usize, Span>,
        kind: &str,
    ) -> Option<usize> {
        let Some(port) = ports.iter().position(|p| p.name == name.text) else {
            if !name.text.is_empty() {
                let message = format!("there is no {kind} port `{}`", name.text);
                let mut diag = Diagnostic::error("port", message).label(name.span, "not declared");
                if let Some(other) = others.iter().find(|p| p.name == name.text) {
                    diag = diag.label(other.span, format!("this is no {kind} port"));
                } else if !ports.is_empty() {
                    let names: Vec<String> =
                        ports.iter().map(|p| format!("`{}`", p.name)).collect();
                    diag = diag.help(format!("the {kind} ports are {}", names.join(", ")));
                }
                self.missing(entity, kind, name, diag);
            }
            return None;
        };
        self.note_port(name.span, &ports[port], kind);
        if let Some(before) = seen.insert(port, name.span) {
            let message = format!("port `{}` stands in two patterns", name.text);
            let diag = Diagnostic::error("port", message)
                .label(name.span, "the second one")
                .label(before, "the first one")
                .help("put both into one pattern: `P:[a, b]`");
            self.diags.push(diag);
            return None;
        }
        Some(port)
    }

    /// The count, and whether it is unknown: it depends on a parameter, or is an error that was reported.
    fn repeat(&mut self, body: &mut Body<'a>, repeat: Option<&'a ast::Expr>) -> (u32, bool) {
        let Some(expr) = repeat else {
            return (1, false);
        };
        let count = self.size(body, expr, "the count of `repeat`", REPEAT_ELEMENTS_MAX);
        (count.map_or(1, |n| n as u32), self.open || count.is_none())
    }

    fn inputs(
        &mut self,
        body: &mut Body<'a>,
        actor: &hir::Actor,
        patterns: &'a [ast::InputPattern],
    ) -> Vec<Input> {
        let mut seen = HashMap::new();
        let mut out = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            // A count cannot depend on input variables.
            let mut outside = Body::new(body.entity);
            let (repeat, open) = self.repeat(&mut outside, pattern.repeat.as_ref());
            self.unused_locals(&outside, usize::MAX);
            let port = self.port(
                body.entity,
                &actor.inputs,
                &actor.outputs,
                &pattern.port,
                &mut seen,
                "input",
            );
            let elem = port.map_or(Ty::Unknown, |p| actor.inputs[p].ty.clone());
            let ty = match (&pattern.repeat, &elem) {
                (None, _) | (_, Ty::Unknown) => elem,
                (Some(_), _) => Ty::list(elem, if open { None } else { Some(repeat) }),
            };
            let mut vars = Vec::with_capacity(pattern.vars.len());
            for name in &pattern.vars {
                if let Some(id) = body.names.outermost(&name.text) {
                    self.duplicate(name, body.locals[id].span);
                }
                let local = hir::Local {
                    name: name.text.clone(),
                    ty: ty.clone(),
                    span: name.span,
                    constant: false,
                    value: None,
                };
                self.note_local(&local, "elements that the action takes");
                vars.push(body.declare(&name.text, local));
            }
            if let Some(port) = port {
                let is_list = pattern.repeat.is_some();
                out.push(Input {
                    port,
                    vars,
                    repeat,
                    is_list,
                    span: pattern.span,
                });
            }
        }
        out
    }

    fn outputs(
        &mut self,
        body: &mut Body<'a>,
        actor: &hir::Actor,
        patterns: &'a [ast::OutputPattern],
    ) -> Vec<Output> {
        let mut seen = HashMap::new();
        let mut out = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let (repeat, open) = self.repeat(body, pattern.repeat.as_ref());
            let port = self.port(
                body.entity,
                &actor.outputs,
                &actor.inputs,
                &pattern.port,
                &mut seen,
                "output",
            );
            let elem = port.map_or(Ty::Unknown, |p| actor.outputs[p].ty.clone());
            let values: Vec<Expr> = pattern.values.iter().map(|v| self.expr(body, v)).collect();
            for value in &values {
                self.output_value(value, &elem, pattern.repeat.is_some(), repeat, open);
            }
            if let Some(port) = port {
                out.push(Output {
                    port,
                    values,
                    repeat,
                    span: pattern.span,
                });
            }
        }
        out
    }

    fn output_value(&mut self, value: &Expr, elem: &Ty, repeated: bool, repeat: u32, open: bool) {
        if !repeated {
            self.wants(value, elem, "this port's element");
            return;
        }
        match &given(&value.ty, &value.machine) {
            Ty::Unknown => {}
            Ty::List { elem: from, len } => {
                if !operators::converts(from, elem) {
                    let message = format!("the port's elements are {elem}, not {from}");
                    self.error("type", value.span, message, format!("this is {}", value.ty));
                } else if let Some(len) = len
                    && *len < repeat
                    && !open
                {
                    let message = format!("`repeat {repeat}` needs a list of {repeat}");
                    self.error(
                        "type",
                        value.span,
                        message,
                        format!("this has {len} elements"),
                    );
                }
            }
            // `repeat 1` with a plain value.
            _ if repeat == 1 => {
                self.wants(value, elem, "this port's element");
            }
            other => {
                let message = format!("`repeat {repeat}` needs a list of {repeat}");
                self.error("type", value.span, message, format!("this is {other}"));
            }
        }
    }
}
