// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks declarations: types, sizes, variables, functions and procedures, and their initial values.

use super::scope::Item;
use super::{Body, Checker, EntityId};
use crate::ast::{self, TypeKind};
use crate::diag::Diagnostic;
use crate::hir::{self, GlobalId, LocalId, ProcBody, ProcId, Stop};
use crate::ir::{Span, Value};
use crate::operators::{self, types::given};
use crate::types::{self, Ty};
use crate::{eval, natives};

/// Maximum number of scalars of a list that is computed at compile time.
const CONSTANT_SCALARS_MAX: u64 = 1 << 20;
/// Maximum length of a list, in elements.
const LIST_ELEMENTS_MAX: i64 = 1 << 30;
/// Maximum depth of immediate checks of one body from another.
const CHECK_DEPTH_MAX: u32 = 24;

impl<'a> Checker<'a> {
    // Types.

    pub(super) fn ty(&mut self, body: &mut Body<'a>, ty: &'a ast::Type) -> Ty {
        match &ty.kind {
            TypeKind::Bool => Ty::Bool,
            TypeKind::Float { bits } => Ty::Float { bits: *bits },
            TypeKind::String => Ty::String,
            TypeKind::Error => Ty::Unknown,
            TypeKind::Int { signed, size: None } => Ty::Int {
                bits: 32,
                signed: *signed,
            },
            TypeKind::Int {
                signed,
                size: Some(size),
            } => {
                let what = "the size of a type";
                let bits = match self.constant_int(body, size, what) {
                    Some(bits) if bits > 64 => {
                        let diag = Diagnostic::warning("size", format!("{bits} bits become 64"))
                            .label(size.span, "no integer has more than 64 bits")
                            .help("what does not fit is lost");
                        self.diags.push(diag);
                        64
                    }
                    Some(bits) if bits < 1 => {
                        let message = format!("{what} is from 1 to 64, not {bits}");
                        self.error("size", size.span, message, format!("this is {bits}"));
                        32
                    }
                    Some(bits) => bits,
                    None => 32,
                };
                Ty::Int {
                    bits: bits as u8,
                    signed: *signed,
                }
            }
            TypeKind::List { elem, size } => {
                let elem = self.ty(body, elem);
                let len = self.size(body, size, "the size of a list", LIST_ELEMENTS_MAX);
                self.checked_list(elem, len, ty.span)
            }
        }
    }

    fn checked_list(&mut self, elem: Ty, len: Option<i64>, span: Span) -> Ty {
        let list = Ty::list(elem, len.map(|n| n as u32));
        if list.scalars().is_some_and(|n| n > LIST_ELEMENTS_MAX as u64) {
            let message = "this list is too large".to_string();
            self.error(
                "size",
                span,
                message,
                format!("more than {LIST_ELEMENTS_MAX} elements"),
            );
            return Ty::Unknown;
        }
        list
    }

    /// The type of `T x[3][4]`.
    pub(super) fn declared(&mut self, body: &mut Body<'a>, decl: &'a ast::VarDecl) -> Ty {
        let mut ty = self.ty(body, &decl.ty);
        for dim in decl.dims.iter().rev() {
            let len = self.size(body, dim, "the size of a list", LIST_ELEMENTS_MAX);
            ty = self.checked_list(ty, len, dim.span);
        }
        ty
    }

    /// A number from 1 to `max` that must be known at compile time. `None` after an error, or if it depends on a
    /// parameter without a value.
    pub(super) fn size(
        &mut self,
        body: &mut Body<'a>,
        expr: &'a ast::Expr,
        what: &str,
        max: i64,
    ) -> Option<i64> {
        let value = self.constant_int(body, expr, what)?;
        if (1..=max).contains(&value) {
            return Some(value);
        }
        let message = format!("{what} is from 1 to {max}, not {value}");
        self.error("size", expr.span, message, format!("this is {value}"));
        None
    }

    pub(super) fn constant_int(
        &mut self,
        body: &mut Body<'a>,
        expr: &'a ast::Expr,
        what: &str,
    ) -> Option<i64> {
        let outer = std::mem::replace(&mut body.in_size, true);
        let checked = self.expr(body, expr);
        body.in_size = outer;
        if !checked.ty.is_int() {
            let message = format!("{what} is an integer");
            self.error(
                "size",
                expr.span,
                message,
                format!("this is {}", checked.ty),
            );
            return None;
        }
        match self.value(&checked, body.locals.len(), true) {
            Ok(Some(Value::Int(value))) => Some(value),
            Ok(_) => {
                if !self.open && checked.ty != Ty::Unknown {
                    let message = format!("{what} must be known at compile time");
                    self.error(
                        "constant",
                        expr.span,
                        message,
                        "this depends on what happens later",
                    );
                }
                None
            }
            Err(stop) => {
                self.stopped(stop, expr.span, what);
                None
            }
        }
    }

    pub(super) fn stopped(&mut self, stop: Stop, at: Span, what: &str) {
        let diag = match stop {
            Stop::NotConstant(span) => {
                Diagnostic::error("constant", format!("{what} must be known at compile time"))
                    .label(span, "this is not known")
            }
            Stop::TooMuchWork(_) => {
                Diagnostic::error("constant", format!("{what} takes too long to compute")).label(
                    at,
                    "gave up after millions of steps, or calls that nest too deeply",
                )
            }
            Stop::Reported => return,
            Stop::Fault(span, why) => {
                let diag = Diagnostic::error("constant", format!("{what} cannot be computed"))
                    .label(span, why);
                let diag = if span == at {
                    diag
                } else {
                    diag.label(at, "needed here")
                };
                // A warning about the same replaces it.
                let within = |d: &&mut Diagnostic| {
                    let place = d.labels[0].span;
                    d.code == "zero"
                        && place.file == span.file
                        && place.start >= span.start
                        && place.end <= span.end
                };
                if let Some(warning) = self.diags.iter_mut().rev().find(within) {
                    *warning = diag;
                    return;
                }
                diag
            }
        };
        self.diags.push(diag);
    }

    // Variables of actors and units.

    /// The variable or parameter `item` of an actor or unit; `None` after an error.
    pub(super) fn global(&mut self, entity: EntityId, item: Item) -> Option<GlobalId> {
        if let Some(found) = self.scopes[entity].globals.get(&item) {
            if found.is_none() {
                let decl = self.var_decl(entity, item);
                let message = format!("`{}` is defined by itself", decl.name.text);
                let diag = Diagnostic::error("circular", message)
                    .label(decl.name.span, "its type or value needs its value")
                    .help("break the cycle");
                self.diags.push(diag);
            }
            return *found;
        }
        self.scopes[entity].globals.insert(item, None);
        let id = self.make_global(entity, item);
        self.scopes[entity].globals.insert(item, Some(id));
        self.note_global(self.globals[id].span, id);
        Some(id)
    }

    fn var_decl(&self, entity: EntityId, item: Item) -> &'a ast::VarDecl {
        match item {
            Item::Param(i) => &self.scopes[entity].ast.params[i],
            Item::Var(i) => &self.scopes[entity].ast.vars[i],
            _ => unreachable!("not a variable"),
        }
    }

    fn make_global(&mut self, entity: EntityId, item: Item) -> GlobalId {
        let decl = self.var_decl(entity, item);
        let is_param = matches!(item, Item::Param(_));
        let is_unit = !self.scopes[entity].ast.is_actor;
        let mut body = Body::new(entity);
        let ty = self.declared(&mut body, decl);
        let constant = is_param || is_unit || decl.init.as_ref().is_some_and(|i| i.constant);
        if is_unit && !decl.init.as_ref().is_some_and(|i| i.constant) {
            let message = format!("`{}` needs a constant value", decl.name.text);
            let diag = Diagnostic::error("constant", message)
                .label(decl.name.span, "variables of a unit are constants")
                .help("write `= value`; what changes belongs into an actor");
            self.diags.push(diag);
        }
        let mut global = hir::Global {
            name: decl.name.text.clone(),
            ty: ty.clone(),
            span: decl.name.span,
            constant,
            is_param,
            init: None,
            value: None,
            no_value: None,
        };
        if let Some(given) = is_param
            .then(|| self.given.get(&decl.name.text).cloned())
            .flatten()
        {
            let before = given.clone();
            match given_value(given, &ty) {
                Some(value) => {
                    if let (Value::Int(from), Value::Int(to)) = (&before, &value)
                        && from != to
                    {
                        self.parameter_cut(decl, *from, *to, &ty);
                    }
                    global.value = Some(value);
                }
                None => {
                    global.no_value = Some(Stop::Reported);
                    let message = format!("this value does not fit parameter `{}`", decl.name.text);
                    self.parameter_error(decl, message, format!("it wants {ty}"));
                }
            }
            return self.global_id(global);
        }
        if let Some(init) = &decl.init {
            let value = self.expr(&mut body, &init.value);
            let fits = self.wants(&value, &ty, "this variable");
            let small = ty.scalars().is_none_or(|n| n <= CONSTANT_SCALARS_MAX);
            if !fits || !value.ty.is_known() || !ty.is_known() {
                global.no_value = Some(Stop::Reported);
            } else if small {
                match self.value(&value, body.locals.len(), true) {
                    Ok(Some(got)) => {
                        global.value =
                            Some(eval::fit(eval::convert(got, &value.machine, &ty), &ty));
                    }
                    Ok(None) => {}
                    // It is computed when an instance is created instead, and may fail there.
                    Err(stop @ Stop::TooMuchWork(_)) => global.no_value = Some(stop),
                    Err(stop) => {
                        self.stopped(stop, init.value.span, "this value");
                        global.no_value = Some(Stop::Reported);
                    }
                }
            }
            self.unused_locals(&body, usize::MAX);
            global.init = Some(hir::GlobalInit {
                value,
                locals: body.locals,
            });
        } else if is_param && !self.open {
            global.no_value = Some(Stop::Reported);
            let message = format!("parameter `{}` needs a value", decl.name.text);
            self.parameter_error(decl, message, "it has no default".into());
        }
        self.global_id(global)
    }

    /// A complaint about a parameter points to where the actor is used, if that is known.
    /// What is said later about such a parameter speaks of another number than was given.
    fn parameter_cut(&mut self, decl: &ast::VarDecl, from: i64, to: i64, ty: &Ty) {
        let name = &decl.name.text;
        let message = format!("parameter `{name}` is given {from}, which does not fit {ty}");
        let mut diag = Diagnostic::warning("value-cut", message);
        if self.given_at != Span::default() {
            diag = diag.label(self.given_at, "the actor is used here");
        }
        self.diags
            .push(diag.label(decl.name.span, format!("it becomes {to} here")));
    }

    fn parameter_error(&mut self, decl: &ast::VarDecl, message: String, label: String) {
        let mut diag = Diagnostic::error("parameter", message);
        if self.given_at != Span::default() {
            diag = diag.label(self.given_at, "the actor is used here");
        }
        self.diags.push(diag.label(decl.name.span, label));
    }

    // Functions and procedures.

    fn formals(&mut self, body: &mut Body<'a>, params: &'a [ast::VarDecl]) {
        for decl in params {
            let ty = self.declared(body, decl);
            self.local(body, decl, ty, "a parameter");
        }
    }

    /// A parameter or variable of a body.
    pub(super) fn local(
        &mut self,
        body: &mut Body<'a>,
        decl: &'a ast::VarDecl,
        ty: Ty,
        what: &str,
    ) -> LocalId {
        let name = decl.name.text.as_str();
        let before = body.names.outermost(name).filter(|_| !name.is_empty());
        if let Some(id) = before {
            self.duplicate(&decl.name, body.locals[id].span);
        }
        let local = hir::Local {
            name: decl.name.text.clone(),
            ty,
            span: decl.name.span,
            constant: decl.init.as_ref().is_some_and(|i| i.constant),
            value: None,
        };
        self.note_local(&local, what);
        body.declare(&decl.name.text, local)
    }

    /// Local variables; each sees those before it.
    pub(super) fn locals(
        &mut self,
        body: &mut Body<'a>,
        decls: &'a [ast::VarDecl],
    ) -> Vec<(LocalId, hir::Expr)> {
        let mut inits = Vec::new();
        for decl in decls {
            let ty = self.declared(body, decl);
            let value = decl.init.as_ref().map(|init| {
                let value = self.expr(body, &init.value);
                let fits = self.wants(&value, &ty, "this variable");
                (value, init.constant && !fits)
            });
            let id = self.local(body, decl, ty.clone(), "a local variable");
            let Some((value, wrong)) = value else {
                continue;
            };
            let small = ty.scalars().is_some_and(|n| n <= 4096) && value.ty.is_known();
            let known = if small {
                self.value(&value, body.locals.len(), false)
            } else {
                Ok(None)
            };
            if wrong || value.ty == Ty::Unknown || matches!(known, Err(Stop::Reported)) {
                // Consequences are not reported.
                body.locals[id].ty = Ty::Unknown;
            } else if let Ok(Some(got)) = known {
                let got = eval::fit(eval::convert(got, &value.machine, &ty), &ty);
                body.locals[id].value = Some(got);
            }
            inits.push((id, value));
        }
        inits
    }

    /// The function or procedure `item`. Its body is checked immediately if that is not too deep, so that sizes can
    /// depend on it.
    pub(super) fn proc(&mut self, entity: EntityId, item: Item) -> ProcId {
        if let Some(&id) = self.scopes[entity].procs.get(&item) {
            return id;
        }
        let mut body = Body::new(entity);
        let ast = self.scopes[entity].ast;
        let (name, params, result, native, span) = match item {
            Item::Function(i) => {
                let f = &ast.functions[i];
                (&f.name, &f.params, Some(&f.result), f.native, f.span)
            }
            Item::Procedure(i) => {
                let p = &ast.procedures[i];
                (&p.name, &p.params, None, p.native, p.span)
            }
            _ => unreachable!("not a procedure"),
        };
        let id = self.procs.len();
        self.scopes[entity].procs.insert(item, id);
        self.calls.push(Vec::new());
        // Reserves its index first: its own types may call other functions.
        let unit = self.scopes[entity].class;
        self.procs.push(hir::Proc {
            name: name.text.clone(),
            symbol: native
                .then(|| natives::of_unit(unit, &name.text).unwrap_or_else(|| name.text.clone())),
            params: 0,
            locals: Vec::new(),
            result: result.map(|_| Ty::Unknown),
            native,
            body: ProcBody::None,
            span: if name.text.is_empty() {
                span
            } else {
                name.span
            },
        });
        let declared = self.procs[id].span;
        self.note_proc(declared, id);
        self.formals(&mut body, params);
        let result = result.map(|ty| self.ty(&mut body, ty));
        self.unused_locals(&body, usize::MAX);
        let proc = &mut self.procs[id];
        proc.params = params.len();
        proc.locals = body.locals;
        proc.result = result;
        if !native {
            if self.depth < CHECK_DEPTH_MAX {
                self.depth += 1;
                self.proc_body(entity, item, id);
                self.depth -= 1;
            } else {
                self.waiting.push((entity, item, id));
            }
        }
        id
    }

    pub(super) fn proc_body(&mut self, entity: EntityId, item: Item, id: ProcId) {
        let mut body = Body::new(entity);
        body.locals = self.procs[id].locals.clone();
        let ast = self.scopes[entity].ast;
        let params = match item {
            Item::Function(i) => &ast.functions[i].params,
            Item::Procedure(i) => &ast.procedures[i].params,
            _ => unreachable!("not a procedure"),
        };
        body.names = params
            .iter()
            .enumerate()
            .map(|(i, d)| (d.name.text.as_str(), i))
            .collect();
        let checked = match item {
            Item::Function(i) => {
                let function = &ast.functions[i];
                let inits = self.locals(&mut body, &function.locals);
                let Some(value) = &function.body else {
                    self.no_body(&function.name, "function", ": value");
                    self.procs[id].body = ProcBody::Function {
                        inits,
                        result: super::expr::error_expr(function.span),
                    };
                    return;
                };
                let value = self.expr(&mut body, value);
                let result = self.procs[id].result.clone().unwrap_or(Ty::Unknown);
                self.wants(&value, &result, "the result");
                ProcBody::Function {
                    inits,
                    result: value,
                }
            }
            Item::Procedure(i) => {
                let procedure = &ast.procedures[i];
                let inits = self.locals(&mut body, &procedure.locals);
                let Some(stmts) = &procedure.body else {
                    self.no_body(&procedure.name, "procedure", "begin ...");
                    return;
                };
                let mut out = super::stmt::assignments(&body, inits);
                self.stmts(&mut body, stmts, &mut out);
                ProcBody::Procedure(out)
            }
            _ => unreachable!("not a procedure"),
        };
        self.unused_locals(&body, self.procs[id].params);
        let proc = &mut self.procs[id];
        proc.locals = body.locals;
        proc.body = checked;
        self.calls[id] = body.calls;
    }

    fn no_body(&mut self, name: &ast::Ident, what: &str, write: &str) {
        let diag = Diagnostic::error("body", format!("{what} `{}` has no body", name.text))
            .label(name.span, "only a native one may leave it out")
            .help(format!(
                "write `{write}`, or `@native` before it if it is written in C"
            ));
        self.diags.push(diag);
    }

    // Conversions.

    /// Checks whether the value may be used where `ty` is expected.
    pub(super) fn wants(&mut self, value: &hir::Expr, ty: &Ty, what: &str) -> bool {
        if operators::converts(&given(&value.ty, &value.machine), ty) {
            self.note_given(value, ty, what);
            self.odd_width(value, ty);
            return true;
        }
        let message = format!("{what} is {ty}, and {} does not convert to it", value.ty);
        let mut diag =
            Diagnostic::error("type", message).label(value.span, format!("this is {}", value.ty));
        diag.help = match (&value.ty, ty) {
            (Ty::List { len: Some(m), .. }, Ty::List { len: Some(n), .. }) if m > n => {
                Some(format!("a list of {m} has no room in a list of {n}"))
            }
            (Ty::Int { .. }, Ty::Bool) => Some("compare it: `x != 0`".into()),
            (Ty::Bool, Ty::Int { .. }) => Some("write `if b then 1 else 0 end`".into()),
            (Ty::Float { bits: 64 }, Ty::Float { .. }) => Some("declare it `double`".into()),
            _ => None,
        };
        self.diags.push(diag);
        false
    }
}

/// Converts a parameter's value to its type; `None` if it is of another kind.
fn given_value(value: Value, ty: &Ty) -> Option<Value> {
    Some(match (value, ty) {
        (value, Ty::Unknown) => value,
        (value @ Value::Bool(_), Ty::Bool) | (value @ Value::String(_), Ty::String) => value,
        (value @ Value::Int(_), Ty::Int { .. } | Ty::Float { .. }) => {
            eval::convert(value, &types::int(64), ty)
        }
        (value @ Value::Float(_), Ty::Float { .. }) => {
            eval::convert(value, &Ty::Float { bits: 64 }, ty)
        }
        (Value::List(items), Ty::List { elem, len }) => {
            if len.is_some_and(|len| items.len() > len as usize) {
                return None;
            }
            let items = items.into_iter().map(|v| given_value(v, elem));
            eval::fit(Value::List(items.collect::<Option<_>>()?), ty)
        }
        _ => return None,
    })
}
