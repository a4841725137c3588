// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data of an actor class in C: where its variables live, the names of its parts, and the results of the
//! passes.

use super::candidate_scan::CandidateScan;
use crate::c_types::{c_type, const_type};
use crate::ir::visit::{any_stmt, exprs_of, walk};
use crate::ir::*;
use crate::ranges::{Ranges, hidden_param};
use std::cell::{Cell, OnceCell};
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

#[derive(Clone, Debug)]
pub struct FiringSequence {
    /// Where it begins: the state, and the first of these actions has been found to fire.
    pub state: usize,
    pub steps: Vec<ActionId>,
    /// The state where it ends.
    pub to: usize,
    /// Is it the first action's turn again then?
    pub again: bool,
    /// What state variables hold where it begins.
    pub known: Vec<(usize, i128)>,
    pub weight: usize,
}

#[derive(Clone, Debug)]
pub struct VlcWalk {
    pub action: ActionId,
    pub key: usize,
    /// What it assigns, but for what it counts, and by how much.
    pub vars: Vec<usize>,
    pub counts: Vec<(usize, i64)>,
    pub bits: u32,
    /// For each key and so many bits, the first one highest.
    pub entries: Vec<VlcEntry>,
}

/// Where the walk is after `firings`; does the guard hold then?
#[derive(Clone, Debug)]
pub struct VlcEntry {
    pub values: Vec<i64>,
    pub firings: u32,
    pub more: bool,
}

#[derive(Clone)]
pub struct LargeLocal<'a> {
    pub body: *const Body,
    pub local: usize,
    pub member: String,
    pub ty: &'a Type,
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
    pub sequences: Rc<Vec<FiringSequence>>,
    /// Actions that go through a table of codes.
    pub walks: Rc<Vec<VlcWalk>>,
    /// Which list parameters each procedure writes.
    pub written: Vec<Vec<bool>>,
    pub prints: bool,
    /// The search through all states of an actor with actions outside of the schedule.
    pub(super) whole_scan: Rc<OnceCell<CandidateScan>>,
    /// Which actions have a loop of their own, for a schedule.
    pub(super) own_loops: Rc<OnceCell<Vec<bool>>>,
    /// Lists among the variables of bodies that are too large for a stack.
    pub large_locals: Rc<Vec<LargeLocal<'a>>>,
    pub temporaries: Rc<Cell<u32>>,
    pub checked: Rc<Cell<u32>>,
}

impl<'a> Class<'a> {
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
        if !self.has_concatenations() {
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
    pub fn has_concatenations(&self) -> bool {
        has_concatenations(self.actor)
    }

    /// Has it something to do at the end?
    pub fn ends(&self) -> bool {
        self.prints() || self.has_concatenations()
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
pub fn is_concatenation(e: &Expr) -> bool {
    e.ty == Type::String && matches!(e.kind, ExprKind::Binary(BinOp::Add, ..))
}

/// Does any part of an actor put strings together?
fn has_concatenations(a: &Actor) -> bool {
    let sum = |e: &Expr| {
        let mut found = false;
        walk(e, &mut |e| found |= is_concatenation(e));
        found
    };
    let in_body = |b: &Body| {
        any_stmt(&b.stmts, &mut |s| {
            let mut found = false;
            exprs_of(s, &mut |e| found |= is_concatenation(e));
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
