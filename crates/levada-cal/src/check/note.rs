// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records for the [`Index`] what the checker finds: expressions with the rules that gave their types, and names
//! with their declarations.

use super::scope::Found;
use super::{Body, Checker, EntityId};
use crate::ast;
use crate::hir::{Expr, ExprKind, Local, ProcId};
use crate::index::{Given, Index, Kind, Named, Typed};
use crate::ir::{BinOp, Span};
use crate::operators;
use crate::types::Ty;

/// The index under construction, and what can be completed only after the check.
#[derive(Default)]
pub struct Notes {
    index: Index,
    /// Names of procedures and functions; their types may still be unknown when they are called.
    procs: Vec<(usize, ProcId)>,
}

/// The spans of the last part of `a.b.c`, and of the parts before it.
fn parts(path: &ast::Path) -> (Span, Option<Span>) {
    let Some((_, last)) = path.text.rsplit_once('.') else {
        return (path.span, None);
    };
    let start = path.span.end.saturating_sub(last.len() as u32);
    let (whole, last) = (path.span, Span { start, ..path.span });
    let before = Span {
        end: start.saturating_sub(1).max(whole.start),
        ..whole
    };
    (last, Some(before))
}

impl<'a> Checker<'a> {
    /// The recorded index; `None` if none was requested.
    pub fn take_index(&mut self) -> Option<Index> {
        self.notes.take().map(|notes| notes.index)
    }

    /// Procedures are described when all is checked.
    pub(super) fn finish_notes(&mut self) {
        let Some(notes) = &mut self.notes else { return };
        for (name, id) in std::mem::take(&mut notes.procs) {
            let proc = &self.procs[id];
            let params: Vec<String> = proc.locals[..proc.params.min(proc.locals.len())]
                .iter()
                .map(|p| format!("{} {}", p.ty, p.name))
                .collect();
            let mut about = format!("`{}({})", proc.name, params.join(", "));
            if let Some(result) = &proc.result {
                about += &format!(" --> {result}");
            }
            about += "`: a ";
            about += if proc.native { "native " } else { "" };
            about += match proc.result {
                Some(_) => "function",
                None => "procedure",
            };
            notes.index.names[name].about = about;
        }
    }

    /// Records a name and returns its number; names that are missing in the text are not recorded.
    fn note(
        &mut self,
        span: Span,
        declared: Span,
        kind: Kind,
        about: impl FnOnce() -> String,
    ) -> Option<usize> {
        let notes = self.notes.as_mut().filter(|_| span.start < span.end)?;
        notes.index.names.push(Named {
            span,
            declared,
            kind,
            about: about(),
        });
        Some(notes.index.names.len() - 1)
    }

    /// Records the declaration of a local variable; `what` is its kind.
    pub(super) fn note_local(&mut self, local: &Local, what: &str) {
        let about = || about_local(local, what);
        self.note(local.span, local.span, Kind::Local, about);
    }

    /// Records a use of a local variable.
    pub(super) fn note_local_use(&mut self, path: &ast::Path, local: &Local) {
        let what = if local.constant {
            "a local constant"
        } else {
            "a local variable"
        };
        self.note(path.span, local.span, Kind::Local, || {
            about_local(local, what)
        });
    }

    pub(super) fn note_global(&mut self, span: Span, id: crate::hir::GlobalId) {
        if self.notes.is_none() {
            return;
        }
        let global = &self.globals[id];
        let (kind, what) = match (global.is_param, global.constant) {
            (true, _) => (Kind::Parameter, "a parameter"),
            (false, true) => (Kind::Variable, "a constant"),
            (false, false) => (Kind::Variable, "a state variable"),
        };
        let mut about = format!("`{} {}`: {what}", global.ty, global.name);
        if let (true, Some(value)) = (global.constant, &global.value)
            && !global.ty.is_list()
        {
            about += &format!(", {}", shown(value, &global.ty));
        }
        let declared = global.span;
        self.note(span, declared, kind, || about);
    }

    pub(super) fn note_global_use(&mut self, path: &ast::Path, id: crate::hir::GlobalId) {
        self.note_global(parts(path).0, id);
    }

    pub(super) fn note_proc(&mut self, span: Span, id: ProcId) {
        let proc = &self.procs[id];
        let kind = match proc.result {
            Some(_) => Kind::Function,
            None => Kind::Procedure,
        };
        let declared = proc.span;
        let noted = self.note(span, declared, kind, String::new);
        if let (Some(name), Some(notes)) = (noted, &mut self.notes) {
            notes.procs.push((name, id));
        }
    }

    pub(super) fn note_call(&mut self, path: &ast::Path, id: ProcId) {
        self.note_proc(parts(path).0, id);
    }

    /// Records the unit in `a.b.Unit.name`.
    pub(super) fn note_unit_of(&mut self, path: &ast::Path, found: Option<&Found>) {
        if let (Some(before), Some(Found::Item(unit, _))) = (parts(path).1, found) {
            self.note_entity(before, *unit);
        }
    }

    /// Records an actor or unit where it is declared or named.
    pub(super) fn note_entity(&mut self, span: Span, entity: EntityId) {
        let scope = &self.scopes[entity];
        let what = if scope.ast.is_actor { "actor" } else { "unit" };
        let (class, declared) = (scope.class, scope.ast.name.span);
        self.note(span, declared, Kind::Class, || {
            format!("`{class}`: {} {what}", article(what))
        });
    }

    pub(super) fn note_import(&mut self, import: &ast::Import, unit: EntityId, name: Option<&str>) {
        let (last, before) = parts(&import.path);
        match name {
            // `import a.b.Unit.*;` has the star at the end of its span.
            None => self.note_entity(
                Span {
                    end: import.path.span.end.saturating_sub(2),
                    ..import.path.span
                },
                unit,
            ),
            Some(name) => {
                if let Some(before) = before {
                    self.note_entity(before, unit);
                }
                let ast = self.scopes[unit].ast;
                let vars = ast.vars.iter().map(|d| (&d.name, Kind::Variable));
                let functions = ast.functions.iter().map(|d| (&d.name, Kind::Function));
                let procedures = ast.procedures.iter().map(|d| (&d.name, Kind::Procedure));
                let mut all = vars.chain(functions).chain(procedures);
                if let Some((ident, kind)) = all.find(|(n, _)| n.text == name) {
                    let class = self.scopes[unit].class;
                    self.note(last, ident.span, kind, || format!("`{name}` of `{class}`"));
                }
            }
        }
    }

    pub(super) fn note_port(&mut self, span: Span, port: &crate::hir::Port, kind: &str) {
        let about = || format!("`{} {}`: {} {kind} port", port.ty, port.name, article(kind));
        self.note(span, port.span, Kind::Port, about);
    }

    /// Records tags and states.
    pub(super) fn note_order(&mut self, ast: &'a ast::Entity) {
        if self.notes.is_none() {
            return;
        }
        let mut tags: Vec<&'a ast::Path> = ast.priorities.iter().flatten().collect();
        for schedule in &ast.schedules {
            match schedule {
                ast::Schedule::Fsm(fsm) => {
                    tags.extend(fsm.transitions.iter().map(|t| &t.tag));
                    self.note_states(fsm);
                }
                ast::Schedule::RegExp { exp, .. } => tags_of(exp, &mut tags),
            }
        }
        for action in &ast.actions {
            let Some(full) = &action.tag else { continue };
            let about = || format!("`{}`: an action", full.text);
            self.note(full.span, full.span, Kind::Tag, about);
            for tag in &tags {
                if super::order::matches(&tag.text, &full.text) {
                    self.note(tag.span, full.span, Kind::Tag, about);
                }
            }
        }
    }

    /// A state is declared by the first transition from it, else by its first occurrence.
    fn note_states(&mut self, fsm: &ast::Fsm) {
        let mut named: Vec<&ast::Ident> = vec![&fsm.name];
        for transition in &fsm.transitions {
            named.push(&transition.from);
            if let ast::Target::State(to) = &transition.to {
                named.push(to);
            }
        }
        for state in &named {
            let from = fsm.transitions.iter().find(|t| t.from.text == state.text);
            let first = named.iter().find(|n| n.text == state.text);
            let Some(declared) = from.map(|t| t.from.span).or(first.map(|n| n.span)) else {
                continue;
            };
            self.note(state.span, declared, Kind::State, || {
                format!("`{}`: a state of the schedule", state.text)
            });
        }
    }

    // Expressions.

    fn note_type(&mut self, checked: &Expr, rule: impl FnOnce() -> String) {
        let Some(notes) = &mut self.notes else { return };
        let value = match &checked.kind {
            ExprKind::Const(value) => Some(value.clone()),
            _ => None,
        };
        notes.index.types.push(Typed {
            span: checked.span,
            ty: checked.ty.clone(),
            machine: match checked.kind {
                ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::If { .. } => {
                    operators::types::held(&checked.machine)
                }
                _ => checked.machine.clone(),
            },
            value,
            rule: rule(),
        });
    }

    /// Records all expressions except binary operations.
    pub(super) fn note_expr(&mut self, body: &Body<'a>, expr: &ast::Expr, checked: &Expr) {
        use ast::ExprKind as E;
        if self.notes.is_none() {
            return;
        }
        let rule = match &expr.kind {
            E::Chain { .. } | E::Error => return,
            E::Bool(_) => "`true` and `false` are bool".into(),
            E::Int(_) => "a literal has the fewest bits that hold it, unsigned".into(),
            E::Real(_) => "a literal with a point is float".into(),
            E::Str(_) => "a text in quotes is a String".into(),
            E::Var(path) if checked.ty.is_list() => {
                format!("`{}` has the type that it is declared with", path.text)
            }
            E::Var(path) => match (body.in_size, &checked.kind) {
                (true, ExprKind::Const(_)) => format!(
                    "`{}` has the type that it is declared with; within a size it stands for its \
                     first value",
                    path.text
                ),
                _ => format!("`{}` has the type that it is declared with", path.text),
            },
            E::Index { base, .. } => format!("an element of the list `{}`", base.text),
            E::Call { name, .. } => format!("what the function `{}` is declared to give", name.text),
            E::Unary(ast::UnOp::Neg, _) => {
                "`-a` is signed, with one bit more if `a` is unsigned".into()
            }
            E::Unary(ast::UnOp::Not, _) => "`not a` is bool".into(),
            E::Unary(ast::UnOp::BitNot, _) => "`~a` has the type of `a`".into(),
            E::Unary(ast::UnOp::Count, _) => {
                "`#a` is the length of a list: a literal, with the fewest bits that hold it".into()
            }
            E::If { .. } => {
                "an `if` has the join of its branches: the smallest type that holds all of them".into()
            }
            E::List { .. } => {
                "a list's elements have the join of all that stand in it: the smallest type that holds \
                 all of them"
                    .into()
            }
        };
        self.note_type(checked, || rule);
    }

    pub(super) fn note_binary(&mut self, op: ast::BinOp, operands: &(Ty, Ty), checked: &Expr) {
        if let ast::BinOp::Op(op) = op {
            let (a, b) = operands;
            self.note_type(checked, || binary_rule(op, a, b));
        }
    }

    pub(super) fn note_given(&mut self, value: &Expr, to: &Ty, what: &str) {
        if let Some(notes) = &mut self.notes {
            notes.index.given.push(Given {
                span: value.span,
                to: to.clone(),
                what: what.to_owned(),
            });
        }
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'i', 'o']) {
        "an"
    } else {
        "a"
    }
}

fn about_local(local: &Local, what: &str) -> String {
    let mut about = format!("`{} {}`: {what}", local.ty, local.name);
    if let (true, Some(value)) = (local.constant, &local.value)
        && !local.ty.is_list()
    {
        about += &format!(", {}", shown(value, &local.ty));
    }
    about
}

/// A value of a type as source text; long ones are shortened.
pub fn shown(value: &crate::ir::Value, ty: &Ty) -> String {
    use crate::ir::Value;
    match (value, ty) {
        (Value::Int(_), ty) if ty.is_int() => {
            let ty = ty.to_ir();
            operators::Scalar::of(value, &ty).text(&ty)
        }
        (Value::Int(v), _) => v.to_string(),
        (Value::Bool(v), _) => v.to_string(),
        (Value::Float(v), _) => format!("{v:?}"),
        (Value::String(v), _) => format!("{v:?}"),
        (Value::List(items), ty) => {
            let elem = match ty {
                Ty::List { elem, .. } => elem,
                other => other,
            };
            let shown = |item| shown(item, elem);
            let mut parts: Vec<String> = items.iter().take(8).map(shown).collect();
            if items.len() > 8 {
                parts.push("...".into());
            }
            format!("[{}]", parts.join(", "))
        }
    }
}

fn tags_of<'a>(exp: &'a ast::RegExp, out: &mut Vec<&'a ast::Path>) {
    match exp {
        ast::RegExp::Tag(tag) => out.push(tag),
        ast::RegExp::Or(all) | ast::RegExp::Seq(all) => {
            all.iter().for_each(|e| tags_of(e, out));
        }
        ast::RegExp::Star(inner) | ast::RegExp::Optional(inner) => tags_of(inner, out),
    }
}

/// The rule of an operation, with its result for these operands.
fn binary_rule(op: BinOp, a: &Ty, b: &Ty) -> String {
    use BinOp::*;
    let sign = super::expr::sign(op);
    let form = format!("`a {sign} b`");
    let joined = match operators::join(a, b) {
        Some(join) => format!("the join of {a} and {b}, which is {join}"),
        None => format!("the join of {a} and {b}"),
    };
    let is_float = |t: &Ty| matches!(t, Ty::Float { .. });
    match op {
        And | Or | Eq | Ne | Lt | Le | Gt | Ge => format!("{form} is bool"),
        Add if *a == Ty::String || *b == Ty::String => {
            format!("{form} with a String is a String")
        }
        Add | Sub | Mul | Div if is_float(a) || is_float(b) => {
            format!("{form} has {joined}")
        }
        Add if a.is_list() => format!("{form} is one list behind the other"),
        Add => format!("{form} has {joined}, and one bit more"),
        Sub => match operators::join(a, b) {
            Some(Ty::Int { signed: false, .. }) => {
                format!("{form} has {joined}; of unsigned ones it is signed, with one bit more")
            }
            _ => format!("{form} has {joined}"),
        },
        Mul => format!(
            "{form} has as many bits as both together ({a} and {b}), at most 64, and is signed if one \
             of them is"
        ),
        Div | Shr => format!("{form} has the type of `a`, which is {a}"),
        Mod => format!("{form} has the type of `b`, which is {b}"),
        Shl => format!(
            "{form} has w(a) + 2^min(w(b), 6) - 1 bits, at most 64, where w is the width: of {a} and {b}"
        ),
        BitAnd => format!("{form} has the narrower of {a} and {b}"),
        BitOr | BitXor => format!("{form} has {joined}"),
    }
}
