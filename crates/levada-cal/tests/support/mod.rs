// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared by the tests of the front end: a workspace on temporary files, and the intermediate representation as text.
#![allow(dead_code)]

use levada_cal::diag::{self, Diagnostics};
use levada_cal::ir::*;
use levada_cal::workspace::Workspace;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with CAL files that is gone at the end.
pub struct Files {
    pub root: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Files {
    pub fn new(files: &[(&str, &str)]) -> Files {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("levada-front-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Files { root }
    }

    pub fn workspace(&self) -> Workspace {
        Workspace::new(vec![self.root.clone()])
    }
}

/// Diagnostics as text, without the name of the folder.
pub fn shown(files: &Files, ws: &Workspace, diags: &Diagnostics) -> String {
    let text = diag::render(&ws.sources, diags, false);
    let text = text.replace(&format!("{}/", files.root.display()), "");
    text.trim_end().to_owned()
}

/// Checks `T.cal` with this text and gives back what there is to say about it.
pub fn check(text: &str) -> String {
    let files = Files::new(&[("T.cal", text)]);
    let mut ws = files.workspace();
    let mut diags = Diagnostics::new();
    ws.check_file(&files.root.join("T.cal"), &mut diags);
    shown(&files, &ws, &diags)
}

/// The actor `T` with this text and these parameters, lowered.
pub fn lower_with(text: &str, params: &[(&str, Value)]) -> Result<Arc<Actor>, String> {
    let files = Files::new(&[("T.cal", text)]);
    let mut ws = files.workspace();
    let mut diags = Diagnostics::new();
    let params: Vec<(String, Value)> = params
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect();
    let actor = ws.instantiate("T", &params, Span::default(), &mut diags);
    actor.ok_or_else(|| shown(&files, &ws, &diags))
}

pub fn lower(text: &str) -> Arc<Actor> {
    lower_with(text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The lowered actor as text.
pub fn text(actor: &Actor) -> String {
    let mut out = String::new();
    for var in &actor.globals {
        let word = if var.constant { "const" } else { "var" };
        out += &format!("{word} {} {}", ty(&var.ty), var.name);
        match &var.init {
            Init::Zero => out += "\n",
            Init::Value(v) => out += &format!(" = {}\n", value(v)),
            Init::Code(body) => out += &format!(" by\n{}", Names::new(actor, body).body(body, 1)),
        }
    }
    for proc in &actor.procs {
        let params: Vec<String> = proc.body.locals[..proc.params]
            .iter()
            .map(|l| format!("{} {}", ty(&l.ty), l.name))
            .collect();
        out += &format!("proc {}({})", proc.name, params.join(", "));
        out += &proc
            .result
            .as_ref()
            .map_or(String::new(), |t| format!(" -> {}", ty(t)));
        out += if proc.native { " native" } else { "" };
        out += if proc.effects { " effects\n" } else { "\n" };
        out += &Names::new(actor, &proc.body).stmts(&proc.body.stmts, 1);
    }
    let all = actor.initializers.iter().map(|a| ("initialize", a));
    for (word, action) in all.chain(actor.actions.iter().map(|a| ("action", a))) {
        out += &format!("{word} {}", action.name);
        out += if action.schedule_outputs {
            " schedule_outputs\n"
        } else {
            "\n"
        };
        for input in &action.inputs {
            let vars: Vec<&str> = input
                .vars
                .iter()
                .map(|&v| action.body.locals[v].name.as_str())
                .collect();
            out += &format!(
                "  in {}:[{}]",
                actor.inputs[input.port].name,
                vars.join(", ")
            );
            out += &if input.is_list {
                format!(" repeat {}\n", input.repeat)
            } else {
                "\n".into()
            };
        }
        let guard = Names::new(actor, &action.guard.body);
        out += &guard.stmts(&action.guard.body.stmts, 1);
        for condition in &action.guard.conditions {
            out += &format!("  guard {}\n", guard.expr(condition));
        }
        let names = Names::new(actor, &action.body);
        out += &names.stmts(&action.body.stmts, 1);
        for output in &action.outputs {
            let values: Vec<String> = output
                .values
                .iter()
                .map(|v| match v {
                    OutputValue::Scalar(e) => names.expr(e),
                    OutputValue::List(var) => names.var(*var),
                })
                .collect();
            out += &format!(
                "  out {}:[{}] repeat {}\n",
                actor.outputs[output.port].name,
                values.join(", "),
                output.repeat
            );
        }
    }
    let name = |a: &ActionId| actor.actions[*a].name.clone();
    if !actor.outside.is_empty() {
        out += &format!(
            "try {}\n",
            actor
                .outside
                .iter()
                .map(name)
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    if let Some(fsm) = &actor.fsm {
        out += &format!("fsm {}\n", fsm.states[fsm.initial]);
        for (state, row) in fsm.states.iter().zip(&fsm.transitions) {
            let row: Vec<String> = row
                .iter()
                .map(|t| format!("{} --> {}", name(&t.action), fsm.states[t.to]))
                .collect();
            out += &format!("  {state}: {}\n", row.join(", "));
        }
    }
    out
}

pub fn ty(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int { bits, signed: true } => format!("i{bits}"),
        Type::Int {
            bits,
            signed: false,
        } => format!("u{bits}"),
        Type::Float { bits } => format!("f{bits}"),
        Type::String => "string".into(),
        Type::List { elem, len } => format!("{}[{len}]", self::ty(elem)),
    }
}

pub fn value(v: &Value) -> String {
    match v {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => format!("{f:?}"),
        Value::String(s) => format!("{s:?}"),
        Value::List(items) => {
            format!(
                "[{}]",
                items.iter().map(value).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

struct Names<'a> {
    actor: &'a Actor,
    body: &'a Body,
}

impl<'a> Names<'a> {
    fn new(actor: &'a Actor, body: &'a Body) -> Names<'a> {
        Names { actor, body }
    }

    fn var(&self, var: VarRef) -> String {
        match var {
            VarRef::Global(g) => self.actor.globals[g].name.clone(),
            VarRef::Local(l) => self.body.locals[l].name.clone(),
        }
    }

    fn place(&self, place: &Place) -> String {
        let indices = place.indices.iter().map(|i| format!("[{}]", self.expr(i)));
        self.var(place.var) + &indices.collect::<String>()
    }

    fn args(&self, args: &[Arg]) -> String {
        let one = |arg: &Arg| match arg {
            Arg::Value(e) => self.expr(e),
            Arg::List(p) => format!("&{}", self.place(p)),
        };
        args.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn expr(&self, e: &Expr) -> String {
        match &e.kind {
            ExprKind::Const(v) => value(v),
            ExprKind::Load(p) => self.place(p),
            ExprKind::Unary(op, a) => format!("{op:?}.{}({})", ty(&e.ty), self.expr(a)),
            ExprKind::Binary(op, a, b) => {
                format!("{op:?}.{}({}, {})", ty(&e.ty), self.expr(a), self.expr(b))
            }
            ExprKind::If(c, a, b) => {
                format!("If({}, {}, {})", self.expr(c), self.expr(a), self.expr(b))
            }
            ExprKind::Call(p, args) => {
                format!("{}({})", self.actor.procs[*p].name, self.args(args))
            }
            ExprKind::Cast(a) => format!("{}({})", ty(&e.ty), self.expr(a)),
        }
    }

    fn body(&self, body: &Body, depth: usize) -> String {
        self.stmts(&body.stmts, depth)
    }

    fn stmts(&self, stmts: &[Stmt], depth: usize) -> String {
        stmts.iter().map(|s| self.stmt(s, depth)).collect()
    }

    fn stmt(&self, stmt: &Stmt, depth: usize) -> String {
        let pad = "  ".repeat(depth);
        let inner = |stmts: &[Stmt]| self.stmts(stmts, depth + 1);
        match &stmt.kind {
            StmtKind::Assign(p, e) => {
                format!("{pad}{} {} := {}\n", ty(&p.ty), self.place(p), self.expr(e))
            }
            StmtKind::Copy { to, from } => {
                let (to_ty, from_ty) = (ty(&to.ty), ty(&from.ty));
                format!(
                    "{pad}{to_ty} {} <- {from_ty} {}\n",
                    self.place(to),
                    self.place(from)
                )
            }
            StmtKind::Call(p, args) => {
                format!("{pad}{}({})\n", self.actor.procs[*p].name, self.args(args))
            }
            StmtKind::If(c, a, b) => {
                let mut out = format!("{pad}if {}\n{}", self.expr(c), inner(a));
                if !b.is_empty() {
                    out += &format!("{pad}else\n{}", inner(b));
                }
                out
            }
            StmtKind::While(c, b) => format!("{pad}while {}\n{}", self.expr(c), inner(b)),
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => format!(
                "{pad}for {} {} in {} .. {}\n{}",
                ty(&self.body.locals[*var].ty),
                self.body.locals[*var].name,
                self.expr(from),
                self.expr(to),
                inner(body)
            ),
            StmtKind::Return(e) => format!("{pad}return {}\n", self.expr(e)),
            StmtKind::Print { parts, newline } => {
                let parts: Vec<String> = parts.iter().map(|p| self.expr(p)).collect();
                format!(
                    "{pad}print{} {}\n",
                    if *newline { "ln" } else { "" },
                    parts.join(", ")
                )
            }
        }
    }
}
