// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks expressions: resolves names, assigns types, folds constants.

use super::scope::{Found, Item};
use super::{Body, Checker};
use crate::ast;
use crate::diag::Diagnostic;
use crate::eval::{self, Evaluator};
use crate::hir::{self, Expr, ExprKind, Place, ProcId, Var};
use crate::ir::{BinOp, Span, UnOp, Value};
use crate::operators;
use crate::types::Ty;

/// Maximum number of elements of a constant list that is copied to evaluate a size.
const CONSTANT_LIST_ELEMENTS_MAX: usize = 1 << 16;

pub(super) fn error_expr(span: Span) -> Expr {
    Expr {
        kind: ExprKind::Error,
        ty: Ty::Unknown,
        machine: Ty::Unknown,
        span,
    }
}

/// A constant of this type, which is also its machine type.
pub(super) fn constant(value: Value, ty: Ty, span: Span) -> Expr {
    Expr {
        kind: ExprKind::Const(value),
        machine: ty.clone(),
        ty,
        span,
    }
}

fn as_const(expr: &Expr) -> Option<&Value> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    pub(super) fn expr(&mut self, body: &mut Body<'a>, expr: &'a ast::Expr) -> Expr {
        let checked = self.expr_of(body, expr);
        self.note_expr(body, expr, &checked);
        checked
    }

    fn expr_of(&mut self, body: &mut Body<'a>, expr: &'a ast::Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Bool(b) => constant(Value::Bool(*b), Ty::Bool, span),
            ast::ExprKind::Int(v) => constant(Value::Int(*v as i64), operators::literal(*v), span),
            ast::ExprKind::Real(v) => Expr {
                machine: Ty::Float { bits: 64 },
                ..constant(Value::Float(*v), Ty::Float { bits: 32 }, span)
            },
            ast::ExprKind::Str(s) => constant(Value::String(s.clone()), Ty::String, span),
            ast::ExprKind::Error => error_expr(span),
            ast::ExprKind::Var(path) => self.load(body, path, &[], span),
            ast::ExprKind::Index { base, indices } => self.load(body, base, indices, span),
            ast::ExprKind::Call { name, args } => self.function_call(body, name, args, span),
            ast::ExprKind::Unary(op, inner) => {
                let inner = self.expr(body, inner);
                self.unary(*op, inner, span)
            }
            ast::ExprKind::Chain { first, rest } => {
                let mut left = self.expr(body, first);
                for (op, at, right) in rest {
                    let right = self.expr(body, right);
                    let operands = (left.ty.clone(), right.ty.clone());
                    left = self.binary(*op, *at, left, right);
                    self.note_binary(*op, &operands, &left);
                }
                // Includes the parentheses around it.
                Expr { span, ..left }
            }
            ast::ExprKind::If { arms, otherwise } => self.if_expr(body, arms, otherwise, span),
            ast::ExprKind::List { items, generators } => self.list(body, items, generators, span),
        }
    }

    /// Checks an expression that must be of type bool.
    pub(super) fn condition(&mut self, body: &mut Body<'a>, expr: &'a ast::Expr) -> Expr {
        let cond = self.expr(body, expr);
        self.wants(&cond, &Ty::Bool, "a condition");
        cond
    }

    // Variables.

    /// The variable of a name, its type, and whether it may be assigned.
    pub(super) fn variable(
        &mut self,
        body: &mut Body<'a>,
        path: &ast::Path,
    ) -> Option<(Var, Ty, bool)> {
        let found = self.lookup(body, path);
        self.note_unit_of(path, found.as_ref());
        match found {
            Some(Found::Local(id)) => {
                let local = &body.locals[id];
                self.note_local_use(path, local);
                Some((Var::Local(id), local.ty.clone(), !local.constant))
            }
            Some(Found::Item(entity, item @ (Item::Param(_) | Item::Var(_)))) => {
                let id = self.global(entity, item)?;
                self.note_global_use(path, id);
                let global = &self.globals[id];
                Some((Var::Global(id), global.ty.clone(), !global.constant))
            }
            Some(Found::Item(..)) => {
                let message = format!("`{}` is no variable", path.text);
                let diag = Diagnostic::error("name", message)
                    .label(path.span, "this is a function or procedure")
                    .help("a call has parentheses: `f(x)`");
                self.diags.push(diag);
                None
            }
            None => {
                self.unknown_name(body, path, "variable");
                None
            }
        }
    }

    /// What `base[i][j]` refers to.
    pub(super) fn place(
        &mut self,
        body: &mut Body<'a>,
        base: &ast::Path,
        indices: &'a [ast::Expr],
        span: Span,
    ) -> Option<(Place, bool)> {
        let variable = self.variable(body, base);
        let mut checked = Vec::with_capacity(indices.len());
        for index in indices {
            let index = self.expr(body, index);
            if !index.ty.is_int() {
                let message = format!("an index is an integer, not {}", index.ty);
                self.error("type", index.span, message, format!("this is {}", index.ty));
            }
            checked.push(index);
        }
        let (var, mut ty, assignable) = variable?;
        for index in &checked {
            match ty {
                Ty::List { elem, len } => {
                    if let (Some(Value::Int(i)), Some(len)) = (as_const(index), len)
                        && !(0..i64::from(len)).contains(i)
                    {
                        let message = format!("index {i} is outside of the list");
                        let diag = Diagnostic::warning("index", message).label(
                            index.span,
                            format!("the list has {len} elements, 0 to {}", len - 1),
                        );
                        self.diags.push(diag);
                    }
                    ty = *elem;
                }
                Ty::Unknown => return None,
                other => {
                    let message = format!("only lists are indexed, and this is {other}");
                    self.error("type", index.span, message, "this index is one too many");
                    return None;
                }
            }
        }
        Some((
            Place {
                var,
                indices: checked,
                ty,
                span,
            },
            assignable,
        ))
    }

    fn load(
        &mut self,
        body: &mut Body<'a>,
        base: &ast::Path,
        indices: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let Some((place, _)) = self.place(body, base, indices, span) else {
            return error_expr(span);
        };
        body.mentioned.read.insert(place.var);
        if let Some(value) = self.known(body, &place) {
            return constant(value, place.ty, span);
        }
        let ty = place.ty.clone();
        Expr {
            kind: ExprKind::Load(place),
            machine: ty.clone(),
            ty,
            span,
        }
    }

    /// The value of a place, if it is known and not a list (lists stay in place, unless they are needed for a size).
    fn known(&self, body: &Body<'a>, place: &Place) -> Option<Value> {
        let mut value = match place.var {
            Var::Local(id) => {
                let local = &body.locals[id];
                local
                    .value
                    .as_ref()
                    .filter(|_| local.constant || body.in_size)?
            }
            Var::Global(id) => {
                let global = &self.globals[id];
                global
                    .value
                    .as_ref()
                    .filter(|_| global.constant || body.in_size)?
            }
        };
        for index in &place.indices {
            let (Value::List(items), Some(Value::Int(i))) = (value, as_const(index)) else {
                return None;
            };
            value = items.get(usize::try_from(*i).ok()?)?;
        }
        match value {
            Value::List(items) if !body.in_size || items.len() > CONSTANT_LIST_ELEMENTS_MAX => None,
            value => Some(value.clone()),
        }
    }

    // Operators.

    fn unary(&mut self, op: ast::UnOp, inner: Expr, span: Span) -> Expr {
        let op = match op {
            ast::UnOp::Neg => UnOp::Neg,
            ast::UnOp::Not => UnOp::Not,
            ast::UnOp::BitNot => UnOp::BitNot,
            ast::UnOp::Count => return self.count(inner, span),
        };
        let ty = match operators::unary(op, &inner.ty) {
            Ok(ty) => ty,
            Err(why) => {
                let sign = match op {
                    UnOp::Neg => "-",
                    UnOp::Not => "not",
                    UnOp::BitNot => "~",
                };
                self.error(
                    "type",
                    inner.span,
                    format!("`{sign}` {why}"),
                    format!("this is {}", inner.ty),
                );
                return error_expr(span);
            }
        };
        let machine = operators::unary_machine(op, &ty, &inner.machine);
        if let Some(value) = as_const(&inner) {
            let value = eval::unary(op, &machine, (value.clone(), &inner.machine));
            return Expr {
                machine,
                ..constant(value, ty, span)
            };
        }
        Expr {
            kind: ExprKind::Unary(op, Box::new(inner)),
            ty,
            machine,
            span,
        }
    }

    fn count(&mut self, inner: Expr, span: Span) -> Expr {
        match &inner.ty {
            Ty::List { len: Some(len), .. } => constant(
                Value::Int(i64::from(*len)),
                operators::literal(u64::from(*len)),
                span,
            ),
            Ty::List { len: None, .. } | Ty::Unknown => error_expr(span),
            other => {
                let message = format!("`#` counts the elements of a list, and this is {other}");
                self.error("type", inner.span, message, format!("this is {other}"));
                error_expr(span)
            }
        }
    }

    fn binary(&mut self, op: ast::BinOp, at: Span, left: Expr, right: Expr) -> Expr {
        let span = Span {
            file: left.span.file,
            start: left.span.start,
            end: right.span.end,
        };
        let op = match op {
            ast::BinOp::Op(op) => op,
            ast::BinOp::Power => {
                let diag = Diagnostic::error("unsupported", "`**` has no meaning yet in CAL")
                    .label(at, "in the grammar but not in CAL")
                    .help("write a function with a loop, or `1 << n` for powers of two");
                self.diags.push(diag);
                return error_expr(span);
            }
        };
        let ty = match operators::binary(op, &left.ty, &right.ty) {
            Ok(ty) => ty,
            Err(why) => {
                let diag = Diagnostic::error("type", format!("`{}` {why}", sign(op)))
                    .label(at, "in this operation")
                    .label(left.span, format!("this is {}", left.ty))
                    .label(right.span, format!("this is {}", right.ty));
                self.diags.push(diag);
                let ty = match op {
                    BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                        Ty::Bool
                    }
                    BinOp::And | BinOp::Or => Ty::Bool,
                    _ => Ty::Unknown,
                };
                return Expr {
                    ty,
                    ..error_expr(span)
                };
            }
        };
        let machine = operators::binary_machine(op, &ty, &left.machine, &right.machine);
        match (op, as_const(&left), as_const(&right)) {
            // An operand that is not evaluated at run time is removed.
            (BinOp::And, Some(Value::Bool(false)), _) | (BinOp::Or, Some(Value::Bool(true)), _) => {
                return Expr { span, ..left };
            }
            (BinOp::And, Some(Value::Bool(true)), _) | (BinOp::Or, Some(Value::Bool(false)), _) => {
                return Expr { span, ..right };
            }
            (_, Some(a), Some(b)) => {
                // An operation that would fail is kept, and fails at run time.
                let (a, b) = ((a.clone(), &left), (b.clone(), &right));
                if let Ok(value) = eval::binary(op, &machine, a, b) {
                    return Expr {
                        machine,
                        ..constant(value, ty, span)
                    };
                }
            }
            _ => {}
        }
        if let (BinOp::Div | BinOp::Mod, Some(Value::Int(0))) = (op, as_const(&right)) {
            let diag =
                Diagnostic::warning("zero", "this divides by zero").label(right.span, "always 0");
            self.diags.push(diag);
        }
        Expr {
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty,
            machine,
            span,
        }
    }

    fn if_expr(
        &mut self,
        body: &mut Body<'a>,
        arms: &'a [(ast::Expr, ast::Expr)],
        otherwise: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let mut checked = Vec::with_capacity(arms.len());
        for (cond, value) in arms {
            checked.push((self.condition(body, cond), self.expr(body, value)));
        }
        let otherwise = self.expr(body, otherwise);
        let mut ty = otherwise.ty.clone();
        for (_, value) in &checked {
            let Some(both) = operators::join(&value.ty, &ty) else {
                let message = format!("the branches have no type in common: {} and {ty}", value.ty);
                let diag = Diagnostic::error("type", message)
                    .label(value.span, format!("this is {}", value.ty))
                    .label(otherwise.span, format!("this is {}", otherwise.ty));
                self.diags.push(diag);
                return error_expr(span);
            };
            ty = both;
        }
        let values = checked.iter().map(|(_, value)| value);
        let machines = values.chain([&otherwise]).map(|value| &value.machine);
        let Some(machine) = operators::joined_machine(&ty, machines) else {
            return error_expr(span);
        };
        // Branches that are never taken are removed.
        let mut arms = Vec::with_capacity(checked.len());
        let mut last = otherwise;
        for (cond, value) in checked {
            match as_const(&cond) {
                Some(Value::Bool(false)) => {}
                Some(Value::Bool(true)) => {
                    last = value;
                    break;
                }
                _ => arms.push((cond, value)),
            }
        }
        if arms.is_empty() && !ty.is_list() {
            // The remaining branch is converted like the conditional.
            if let Some(value) = as_const(&last) {
                let value = eval::convert(value.clone(), &last.machine, &machine);
                return Expr {
                    machine,
                    ..constant(value, ty, span)
                };
            }
            if last.machine == machine {
                return Expr { ty, span, ..last };
            }
        }
        Expr {
            kind: ExprKind::If {
                arms,
                otherwise: Box::new(last),
            },
            ty,
            machine,
            span,
        }
    }

    // Lists.

    fn list(
        &mut self,
        body: &mut Body<'a>,
        items: &'a [ast::Expr],
        generators: &'a [ast::Generator],
        span: Span,
    ) -> Expr {
        let visible = body.names.len();
        let mut checked = Vec::with_capacity(generators.len());
        let mut times = Some(1u64);
        for generator in generators {
            let ty = self.declared(body, &generator.var);
            if !ty.is_int() {
                let message = format!("a generator counts with integers, not {ty}");
                self.error("type", generator.var.span, message, "");
            }
            let from = self.constant_int(body, &generator.from, "the first value of a generator");
            let to = self.constant_int(body, &generator.to, "the last value of a generator");
            if let (Some(from), Some(to)) = (from, to)
                && to < from
            {
                let message = format!("this generator runs from {from} to {to}: it makes nothing");
                self.error(
                    "size",
                    generator.to.span,
                    message,
                    "less than the first value",
                );
            }
            let range = from.zip(to).filter(|(from, to)| from <= to);
            times = times.zip(range).map(|(n, (from, to))| {
                n.saturating_mul(to.wrapping_sub(from).cast_unsigned().saturating_add(1))
            });
            let var = self.inner_local(body, &generator.var, ty);
            let (from, to) = range.unwrap_or((0, 0));
            checked.push(hir::Generator { var, from, to });
        }
        let items: Vec<Expr> = items.iter().map(|item| self.expr(body, item)).collect();
        body.names.truncate(visible);

        let mut elem: Option<Ty> = None;
        for item in &items {
            let Some(ty) = &elem else {
                elem = Some(item.ty.clone());
                continue;
            };
            match operators::join(ty, &item.ty) {
                Some(joined) => elem = Some(joined),
                None => {
                    let message =
                        format!("the elements have no type in common: {ty} and {}", item.ty);
                    let diag = Diagnostic::error("type", message)
                        .label(item.span, format!("this is {}", item.ty))
                        .label(items[0].span, "unlike those before it");
                    self.diags.push(diag);
                    return error_expr(span);
                }
            }
        }
        let Some((ty, machine)) = elem.and_then(|ty| {
            let machines = items.iter().map(|item| &item.machine);
            let machine = operators::joined_machine(&ty, machines)?;
            Some((ty, machine))
        }) else {
            return error_expr(span);
        };
        let len = times.map(|n| n.saturating_mul(items.len() as u64));
        if len.is_some_and(|n| n > 1 << 30) {
            let message = "this list is too large".to_string();
            self.error("size", span, message, "more than 1073741824 elements");
            return error_expr(span);
        }
        let len = len.map(|n| n as u32);
        Expr {
            kind: ExprKind::List {
                items,
                generators: checked,
            },
            ty: Ty::list(ty, len),
            machine: Ty::list(machine, len),
            span,
        }
    }

    /// The variable of a generator or `foreach`.
    pub(super) fn inner_local(
        &mut self,
        body: &mut Body<'a>,
        decl: &'a ast::VarDecl,
        ty: Ty,
    ) -> hir::LocalId {
        let name = decl.name.text.as_str();
        let before = body.names.innermost(name).filter(|_| !name.is_empty());
        if let Some(id) = before {
            let diag = Diagnostic::warning("shadow", format!("`{name}` hides another `{name}`"))
                .label(decl.name.span, "within this loop")
                .label(body.locals[id].span, "the other one");
            self.diags.push(diag);
        }
        let (name_text, span) = (decl.name.text.clone(), decl.name.span);
        let local = hir::Local {
            name: name_text,
            ty,
            span,
            constant: false,
            value: None,
        };
        self.note_local(&local, "a loop's variable");
        body.declare(name, local)
    }

    // Calls.

    fn function_call(
        &mut self,
        body: &mut Body<'a>,
        name: &ast::Path,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let found = self.lookup(body, name);
        self.note_unit_of(name, found.as_ref());
        let id = match found {
            Some(Found::Item(entity, item @ Item::Function(_))) => Some(self.proc(entity, item)),
            Some(Found::Item(_, Item::Procedure(_))) => {
                let diag = Diagnostic::error("name", format!("`{}` is a procedure", name.text))
                    .label(name.span, "it gives no value")
                    .help("call it as a statement");
                self.diags.push(diag);
                None
            }
            Some(_) => {
                let diag = Diagnostic::error("name", format!("`{}` is a variable", name.text))
                    .label(name.span, "it cannot be called")
                    .help("an index is written in brackets: `a[i]`");
                self.diags.push(diag);
                None
            }
            None => {
                self.unknown_name(body, name, "function");
                None
            }
        };
        let args: Vec<Expr> = args.iter().map(|arg| self.expr(body, arg)).collect();
        let Some(id) = id else {
            return error_expr(span);
        };
        body.calls.push((id, name.span));
        self.note_call(name, id);
        body.mentioned.called.insert(id);
        if !self.arguments(id, &args, name.span) {
            return error_expr(span);
        }
        let ty = self.procs[id].result.clone().unwrap_or(Ty::Unknown);
        let call = Expr {
            kind: ExprKind::Call(id, args),
            ty: ty.clone(),
            machine: ty.clone(),
            span,
        };
        self.fold_call(call)
    }

    /// A call with constant arguments and a scalar result is a constant.
    fn fold_call(&mut self, call: Expr) -> Expr {
        let ExprKind::Call(_, args) = &call.kind else {
            return call;
        };
        if call.ty.is_list() || !args.iter().all(|a| as_const(a).is_some()) {
            return call;
        }
        match Evaluator::new(&self.globals, &self.procs).cheaply(&call) {
            Ok(value) => constant(value, call.ty, call.span),
            Err(_) => call,
        }
    }

    /// Checks the number and types of arguments.
    pub(super) fn arguments(&mut self, id: ProcId, args: &[Expr], at: Span) -> bool {
        let proc = &self.procs[id];
        if proc.params != args.len() {
            let count = |n: usize| match n {
                0 => "no arguments".to_string(),
                1 => "1 argument".to_string(),
                n => format!("{n} arguments"),
            };
            let message = format!("`{}` takes {}", proc.name, count(proc.params));
            let diag = Diagnostic::error("arguments", message)
                .label(at, format!("called with {}", count(args.len())))
                .label(proc.span, "declared here");
            self.diags.push(diag);
            return false;
        }
        for (i, arg) in args.iter().enumerate() {
            let local = &self.procs[id].locals[i];
            let (ty, what) = (local.ty.clone(), format!("parameter `{}`", local.name));
            self.wants(arg, &ty, &what);
        }
        true
    }
}

pub(super) fn sign(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Mod => "mod",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Eq => "=",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::And => "and",
        BinOp::Or => "or",
    }
}
