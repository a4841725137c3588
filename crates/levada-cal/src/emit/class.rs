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
    /// A scalar that only actions and inlined procedures use: in a register while the actor runs.
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
    /// The state in which it starts. It starts when the first of the actions is found to fire.
    pub state: usize,
    pub steps: Vec<ActionId>,
    /// The state in which it ends.
    pub to: usize,
    /// Whether the first action is next again after it.
    pub again: bool,
    /// The known values of state variables at its start.
    pub known: Vec<(usize, i128)>,
    pub weight: usize,
}

#[derive(Clone, Debug)]
pub struct VlcWalk {
    pub action: ActionId,
    pub key: usize,
    /// The variables that it assigns; and those that it increments, with the increments.
    pub vars: Vec<usize>,
    pub counts: Vec<(usize, i64)>,
    pub bits: u32,
    /// Indexed by the key followed by `bits` bits, the first bit highest.
    pub entries: Vec<VlcEntry>,
}

/// The state after `firings` firings; `more`: whether the guard is true then.
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
    /// The prefix of all names of this class.
    pub prefix: String,
    pub homes: Vec<Home>,
    pub procs: Vec<String>,
    /// Names of the functions that make up an action; initializers come after the actions.
    pub actions: Vec<String>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub ranges: Rc<Ranges<'a>>,
    /// Which procedures are inlined into the actions that call them.
    pub inlined: Vec<bool>,
    /// Sequences of firings that are emitted as one function.
    pub sequences: Rc<Vec<FiringSequence>>,
    /// Actions that decode by a table.
    pub walks: Rc<Vec<VlcWalk>>,
    /// Which list parameters each procedure writes.
    pub written: Vec<Vec<bool>>,
    pub prints: bool,
    /// The scan over all states of an actor with actions outside of the schedule.
    pub(super) whole_scan: Rc<OnceCell<CandidateScan>>,
    /// Which actions have a loop of their own, for a schedule.
    pub(super) own_loops: Rc<OnceCell<Vec<bool>>>,
    /// Local lists that are too large for a stack.
    pub large_locals: Rc<Vec<LargeLocal<'a>>>,
    pub temporaries: Rc<Cell<u32>>,
    pub checked: Rc<Cell<u32>>,
}

impl<'a> Class<'a> {
    /// The class without registers, for `init`.
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

    /// Whether its only effect is to produce elements.
    pub fn is_pure(&self) -> bool {
        !self.may_wait()
    }

    /// Whether it may block in the system: it calls a native function, or prints.
    pub fn may_wait(&self) -> bool {
        self.prints() || self.actor.procs.iter().any(|p| p.native)
    }

    pub fn prints(&self) -> bool {
        self.prints
    }

    /// The number of leading parameters of natives at which concatenated strings may be passed.
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

    /// Whether it concatenates strings, except for printing.
    pub fn has_concatenations(&self) -> bool {
        has_concatenations(self.actor)
    }

    /// Whether it needs an `end` function.
    pub fn ends(&self) -> bool {
        self.prints() || self.has_concatenations()
    }

    /// Whether procedure `p` writes the list passed as parameter `i`.
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

    /// Whether the registers are passed to procedure `p`.
    pub fn uses_registers(&self, p: usize) -> bool {
        self.inlined[p] && self.has_registers()
    }

    /// The number of index checks emitted so far.
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

/// Whether any part of an actor prints.
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

/// Whether the expression is a concatenation of strings.
pub fn is_concatenation(e: &Expr) -> bool {
    e.ty == Type::String && matches!(e.kind, ExprKind::Binary(BinOp::Add, ..))
}

/// Whether any part of an actor concatenates strings.
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
