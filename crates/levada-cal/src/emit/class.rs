// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An actor class in C: where its variables live, what its parts are called.

use super::Options;
use super::candidate_scan::Round;
use super::firing_sequence::Course;
use super::inline::inlined;
use super::large_locals::{Large, large};
use super::register_promotion;
use super::value::{c_type, const_type};
use super::vlc_walk::Walk;
use super::writer::Names;
use crate::ir::*;
use crate::ranges::{Ranges, hidden_param, walk};
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Where a state variable or constant lives.
#[derive(Clone, Debug)]
pub enum Home {
    /// A scalar constant: written out wherever it is used.
    Literal(Value),
    /// A constant list, shared by all instances.
    Table(String),
    /// A member of the instance's state.
    State(String),
    /// A scalar that only actions use, and what is written out in them: in a register while the actor runs.
    Register(String),
}

impl Home {
    pub fn text(&self) -> String {
        match self {
            Home::Literal(_) => unreachable!("literals are written by value"),
            Home::Table(name) => name.clone(),
            Home::State(name) => format!("S->{name}"),
            Home::Register(name) => format!("R->{name}"),
        }
    }
}

#[derive(Clone)]
pub struct Class<'a> {
    pub actor: &'a Actor,
    pub checks: bool,
    pub lenient: bool,
    /// Begins every name of this class.
    pub prefix: String,
    pub homes: Vec<Home>,
    pub procs: Vec<String>,
    /// Names of the functions that make up an action; initializers come after the actions.
    pub actions: Vec<String>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub ranges: Rc<Ranges<'a>>,
    /// Which procedures are written out in the actions that call them.
    pub inlined: Vec<bool>,
    /// Firings that are done as one.
    pub courses: Rc<Vec<Course>>,
    /// Actions that go through a table of codes.
    pub walks: Rc<Vec<Walk>>,
    /// Which list parameters each procedure writes.
    written: Vec<Vec<bool>>,
    prints: bool,
    /// The search through all states of an actor with actions outside of the schedule.
    pub(super) whole: Rc<OnceCell<Round>>,
    /// Which actions have a loop of their own, for a schedule.
    pub(super) own_loops: Rc<OnceCell<Vec<bool>>>,
    /// Lists among the variables of bodies that are too large for a stack.
    pub large: Rc<Vec<Large<'a>>>,
    temporaries: Rc<Cell<u32>>,
    checked: Rc<Cell<u32>>,
}

impl<'a> Class<'a> {
    pub fn new(actor: &'a Actor, prefix: String, options: &Options) -> Class<'a> {
        let mut members = Names::default();
        let mut globals = Names::default();
        // What every class has, whatever its author has named so.
        for own in [
            "run",
            "init",
            "end",
            "state",
            "registers",
            "class",
            "inputs",
            "outputs",
            "actions",
            "variables",
            "states",
            "memory",
            "texts",
        ] {
            globals.fresh(own);
        }
        let inlined = inlined(actor);
        let used = used_by_procs(actor, &inlined);
        let list = |g: &Var| matches!(g.ty, Type::List { .. });
        let may: Vec<bool> = (actor.globals.iter().zip(&used))
            .map(|(g, used)| !g.constant && !list(g) && !used)
            .collect();
        let mut registers = register_promotion::registers(actor, &inlined, &may);
        // What it has done is in the state while it waits for input: a new version may take over there.
        if actor.inputs.is_empty() && actor.procs.iter().any(|p| p.native) {
            registers.fill(false);
        }
        let homes = actor
            .globals
            .iter()
            .enumerate()
            .map(|(i, g)| {
                let list = list(g);
                match &g.init {
                    Init::Value(v) if g.constant && !list => Home::Literal(v.clone()),
                    Init::Zero if g.constant && !list => Home::Literal(zero(&g.ty)),
                    Init::Value(_) | Init::Zero if g.constant => {
                        Home::Table(format!("{prefix}_{}", globals.fresh(&g.name)))
                    }
                    _ if registers[i] => Home::Register(members.fresh(&g.name)),
                    _ => Home::State(members.fresh(&g.name)),
                }
            })
            .collect();
        let mut name = |n: &str| format!("{prefix}_{}", globals.fresh(n));
        let procs = actor.procs.iter().map(|p| name(&p.name)).collect();
        let all = actor.actions.iter().chain(&actor.initializers);
        let actions = all.map(|a| name(&a.name)).collect();
        let mut ports = Names::default();
        let inputs = actor
            .inputs
            .iter()
            .map(|p| format!("in_{}", ports.fresh(&p.name)))
            .collect();
        let mut ports = Names::default();
        let outputs = actor
            .outputs
            .iter()
            .map(|p| format!("out_{}", ports.fresh(&p.name)))
            .collect();
        let mut class = Class {
            actor,
            checks: options.checks,
            lenient: options.lenient,
            homes,
            procs,
            actions,
            inputs,
            outputs,
            ranges: Rc::new(Ranges::new(actor, options.checks, options.lenient)),
            inlined,
            courses: Rc::default(),
            walks: Rc::default(),
            written: written_params(actor),
            large: Rc::new(large(actor, &mut members)),
            temporaries: Rc::default(),
            checked: Rc::default(),
            prints: prints(actor),
            whole: Rc::default(),
            own_loops: Rc::default(),
            prefix,
        };
        class.courses = Rc::new(class.plan());
        class.walks = Rc::new(class.plan_walks());
        class
    }

    /// The same class where there are no registers: its `init`.
    pub fn without_registers(&self) -> Class<'a> {
        let mut c = self.clone();
        for h in &mut c.homes {
            if let Home::Register(name) = h {
                *h = Home::State(std::mem::take(name));
            }
        }
        c
    }

    pub fn has_registers(&self) -> bool {
        self.homes.iter().any(|h| matches!(h, Home::Register(_)))
    }

    /// Registers by name and type.
    pub fn registers(&self) -> impl Iterator<Item = (&str, &'a Type)> {
        self.homes
            .iter()
            .zip(&self.actor.globals)
            .filter_map(|(h, g)| match h {
                Home::Register(name) => Some((name.as_str(), &g.ty)),
                _ => None,
            })
    }

    /// Does it nothing but to put elements?
    pub fn is_pure(&self) -> bool {
        !self.may_wait()
    }

    /// Does it call what may wait in the system: a native function, or one that prints?
    pub fn may_wait(&self) -> bool {
        self.prints() || self.actor.procs.iter().any(|p| p.native)
    }

    pub fn prints(&self) -> bool {
        self.prints
    }

    /// At so many places among their parameters natives may be given strings that are put together.
    pub fn texts(&self) -> usize {
        if !self.sums() {
            return 0;
        }
        let natives = self.actor.procs.iter().filter(|p| p.native);
        let last = |p: &Proc| {
            let params = &p.body.locals[..p.params];
            params.iter().rposition(|l| l.ty == Type::String)
        };
        natives.filter_map(last).max().map_or(0, |i| i + 1)
    }

    /// Does it put strings together, other than to print them?
    pub fn sums(&self) -> bool {
        sums(self.actor)
    }

    /// Has it something to do at the end?
    pub fn ends(&self) -> bool {
        self.prints() || self.sums()
    }

    /// Does procedure `p` write the list it is given as parameter `i`?
    pub fn writes(&self, p: usize, i: usize) -> bool {
        self.written[p][i]
    }

    pub fn temporary(&self) -> String {
        self.temporaries.set(self.temporaries.get() + 1);
        format!("lvd_t{}", self.temporaries.get())
    }

    pub fn count_check(&self) {
        self.checked.set(self.checked.get() + 1);
    }

    /// Is procedure `p` given the registers?
    pub fn uses_registers(&self, p: usize) -> bool {
        self.inlined[p] && self.has_registers()
    }

    /// Index checks that could not be left out, so far.
    pub fn checks_emitted(&self) -> u32 {
        self.checked.get()
    }

    /// `int32_t P_name(lvd_actor *self, P_state *S, ...)`, with the names of its locals.
    pub fn prototype(&self, p: usize, locals: &[String]) -> String {
        let proc = &self.actor.procs[p];
        let mut params = Vec::new();
        if !proc.native {
            params.push("lvd_actor *self LEVADA_UNUSED".to_string());
            params.push(format!("{}_state *S LEVADA_UNUSED", self.prefix));
        }
        if self.uses_registers(p) {
            params.push(format!("{}_registers *R LEVADA_UNUSED", self.prefix));
        }
        let given = proc.params + usize::from(hidden_param(proc));
        for (i, name) in locals.iter().enumerate().take(given) {
            let ty = &proc.body.locals[i].ty;
            let c = c_type(ty);
            params.push(match ty {
                Type::List { .. } if proc.native || self.written[p][i] => format!("{c} *{name}"),
                Type::List { .. } => format!("{} *{name}", const_type(ty)),
                _ => format!("{c} {name}"),
            });
        }
        let result = match &proc.result {
            None | Some(Type::List { .. }) => "void",
            Some(ty) => c_type(ty),
        };
        let params = if params.is_empty() {
            "void".to_string()
        } else {
            params.join(", ")
        };
        format!("{result} {}({params})", self.procs[p])
    }
}

/// Does any part of an actor print?
pub fn prints(a: &Actor) -> bool {
    let in_body = |b: &Body| any_stmt(&b.stmts, &mut |s| matches!(s.kind, StmtKind::Print { .. }));
    a.procs.iter().any(|p| in_body(&p.body))
        || a.actions
            .iter()
            .chain(&a.initializers)
            .any(|x| in_body(&x.body) || in_body(&x.guard.body))
        || a.globals
            .iter()
            .any(|g| matches!(&g.init, Init::Code(b) if in_body(b)))
}

/// Strings put together?
pub fn is_sum(e: &Expr) -> bool {
    e.ty == Type::String && matches!(e.kind, ExprKind::Binary(BinOp::Add, ..))
}

/// Does any part of an actor put strings together?
fn sums(a: &Actor) -> bool {
    let sum = |e: &Expr| {
        let mut found = false;
        walk(e, &mut |e| found |= is_sum(e));
        found
    };
    let in_body = |b: &Body| {
        any_stmt(&b.stmts, &mut |s| {
            let mut found = false;
            exprs_of(s, &mut |e| found |= is_sum(e));
            found
        })
    };
    let in_action = |x: &Action| {
        let values = || x.outputs.iter().flat_map(|o| &o.values);
        in_body(&x.body)
            || in_body(&x.guard.body)
            || x.guard.conditions.iter().any(sum)
            || values().any(|v| matches!(v, OutputValue::Scalar(e) if sum(e)))
    };
    a.procs.iter().any(|p| in_body(&p.body))
        || (a.actions.iter().chain(&a.initializers)).any(in_action)
        || a.globals
            .iter()
            .any(|g| matches!(&g.init, Init::Code(b) if in_body(b)))
}

fn zero(ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(false),
        Type::Float { .. } => Value::Float(0.0),
        Type::String => Value::String(String::new()),
        _ => Value::Int(0),
    }
}

/// Is `f` true of any statement, at any depth?
pub fn any_stmt(stmts: &[Stmt], f: &mut dyn FnMut(&Stmt) -> bool) -> bool {
    stmts.iter().any(|s| {
        f(s) || match &s.kind {
            StmtKind::If(_, a, b) => any_stmt(a, f) || any_stmt(b, f),
            StmtKind::While(_, b) | StmtKind::For { body: b, .. } => any_stmt(b, f),
            _ => false,
        }
    })
}

/// Calls `f` for every expression that a statement itself has (not those of statements in it).
pub fn exprs_of(s: &Stmt, f: &mut dyn FnMut(&Expr)) {
    let place = |p: &Place, f: &mut dyn FnMut(&Expr)| p.indices.iter().for_each(|i| walk(i, f));
    match &s.kind {
        StmtKind::Assign(p, e) => {
            place(p, f);
            walk(e, f);
        }
        StmtKind::Copy { to, from } => {
            place(to, f);
            place(from, f);
        }
        StmtKind::Call(_, args) => args.iter().for_each(|a| match a {
            Arg::Value(e) => walk(e, f),
            Arg::List(p) => place(p, f),
        }),
        StmtKind::If(c, ..) | StmtKind::While(c, _) => walk(c, f),
        StmtKind::For { from, to, .. } => {
            walk(from, f);
            walk(to, f);
        }
        StmtKind::Return(e) => walk(e, f),
        StmtKind::Print { parts, .. } => parts.iter().for_each(|e| walk(e, f)),
    }
}

/// Calls `f` for every mention of a variable in these statements: the variable, and whether it may
/// be written there (`writes` tells of procedures' parameters).
pub fn mentions(
    stmts: &[Stmt],
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    for s in stmts {
        exprs_of(s, &mut |e| expr_mentions(e, writes, f));
        match &s.kind {
            StmtKind::Assign(p, _) => f(p.var, true),
            StmtKind::Copy { to, from } => {
                f(to.var, true);
                f(from.var, false);
            }
            StmtKind::Call(p, args) => args_mentions(*p, args, writes, f),
            StmtKind::If(_, a, b) => {
                mentions(a, writes, f);
                mentions(b, writes, f);
            }
            StmtKind::While(_, b) => mentions(b, writes, f),
            StmtKind::For { var, body, .. } => {
                f(VarRef::Local(*var), true);
                mentions(body, writes, f);
            }
            StmtKind::Return(_) | StmtKind::Print { .. } => {}
        }
    }
}

/// The variables that one expression mentions itself; `walk` finds the inner ones.
pub fn expr_mentions(
    e: &Expr,
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    match &e.kind {
        ExprKind::Load(p) => f(p.var, false),
        ExprKind::Call(p, args) => args_mentions(*p, args, writes, f),
        _ => {}
    }
}

fn args_mentions(
    p: usize,
    args: &[Arg],
    writes: &dyn Fn(usize, usize) -> bool,
    f: &mut dyn FnMut(VarRef, bool),
) {
    for (i, a) in args.iter().enumerate() {
        if let Arg::List(place) = a {
            f(place.var, writes(p, i));
        }
    }
}

fn written_params(actor: &Actor) -> Vec<Vec<bool>> {
    let mut written: Vec<Vec<bool>> = actor
        .procs
        .iter()
        .map(|p| vec![p.native; p.body.locals.len()])
        .collect();
    // Which lists each procedure writes itself, and those that it is given and hands on: by who takes them.
    let mut open = Vec::new();
    let mut given: HashMap<(usize, usize), Vec<(usize, usize)>> = HashMap::new();
    for (p, proc) in actor.procs.iter().enumerate() {
        let to = Cell::new(None);
        let hands_on = |q: usize, i: usize| {
            to.set(Some((q, i)));
            false
        };
        mentions(&proc.body.stmts, &hands_on, &mut |v, writes| {
            let to = to.take();
            let VarRef::Local(l) = v else { return };
            match to {
                Some((q, i)) if written[q][i] => open.push((p, l)),
                Some(to) => given.entry(to).or_default().push((p, l)),
                None if writes => open.push((p, l)),
                None => {}
            }
        });
    }
    while let Some((p, l)) = open.pop() {
        if !std::mem::replace(&mut written[p][l], true) {
            open.extend(given.get(&(p, l)).into_iter().flatten());
        }
    }
    written
}

/// The variables that procedures use which stay functions.
fn used_by_procs(actor: &Actor, inlined: &[bool]) -> Vec<bool> {
    let mut used = vec![false; actor.globals.len()];
    for (p, _) in actor.procs.iter().zip(inlined).filter(|(_, i)| !**i) {
        mentions(&p.body.stmts, &|_, _| false, &mut |v, _| {
            if let VarRef::Global(g) = v {
                used[g] = true;
            }
        });
    }
    used
}
