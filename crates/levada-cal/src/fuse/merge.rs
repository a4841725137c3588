// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds one actor from a chain and its schedule.
//!
//! Each phase becomes an action, and the sequence of phases a schedule of states. If there are several phases, an
//! action for a whole *round* is tried first: it fires each member as often as a round needs, in a loop per member,
//! with local buffers between them. It fires only if all its elements and all its room are available; otherwise the
//! phases run one by one.

use super::long_running::is_long_running;
use super::renumber::Renumbering;
use super::schedule::{Firing, Schedule};
use super::{
    MERGED_WEIGHT_MAX, Member, ROUND_ELEMENTS_MAX, ROUND_ELEMENTS_MIN, SINGLE_RATE_WEIGHT_MAX,
};
use crate::classify::Step;
use crate::emit::needs_zero;
use crate::ir::action::{body_weight, is_light, weight};
use crate::ir::*;
use crate::ranges::innermost;

/// The merged actor, if it is small; no round takes or gives more than `enough` on a port.
pub fn merge(members: &[Member], schedule: &Schedule, enough: u32) -> Option<Actor> {
    let merger = Merger::new(members, schedule);
    if merger.is_heavy() {
        return None;
    }
    let mut actions: Vec<Action> = schedule.phases.iter().map(|p| merger.phase(p)).collect();
    let mut fsm = None;
    if actions.len() == 1 {
        if !is_light(&actions[0]) && weight(&actions[0]) > SINGLE_RATE_WEIGHT_MAX {
            return None;
        }
    } else {
        let n = actions.len();
        let to = |k: usize| if k + 1 < n { k + 1 } else { schedule.back };
        let mut transitions: Vec<Vec<Transition>> = (0..n)
            .map(|k| {
                vec![Transition {
                    action: k,
                    to: to(k),
                }]
            })
            .collect();
        actions.push(merger.round(enough)?);
        let round = Transition {
            action: n,
            to: schedule.back,
        };
        transitions[schedule.back].insert(0, round);
        fsm = Some(Fsm {
            states: (0..n).map(|k| format!("phase{k}")).collect(),
            initial: 0,
            transitions,
        });
    }
    Some(merger.actor(actions, fsm))
}

/// Consecutive elements of a list, starting at `at` plus multiples of counters.
#[derive(Clone)]
struct Window {
    var: VarRef,
    elem: Type,
    counters: Vec<(usize, u32)>,
    at: u32,
}

/// The iteration of a loop: a number, or the loop's counter.
#[derive(Clone, Copy)]
enum Turn {
    Number(u32),
    Counter(usize),
}

/// Loops over at most this many elements are unrolled.
const UNROLLED_ELEMENTS_MAX: u32 = 8;

/// The code of an action under construction.
#[derive(Default)]
struct Code {
    locals: Vec<Local>,
    stmts: Vec<Stmt>,
}

/// The windows of a firing's elements, by port. A port without a window is a pattern of the merged action itself.
#[derive(Default)]
struct Ends {
    inputs: Vec<Option<Window>>,
    outputs: Vec<Option<Window>>,
    /// Whether the input patterns are the merged action's own, with its first variables.
    own: bool,
    /// Whether it is one of several firings in a loop: its variables have the values of the previous one.
    again: bool,
}

struct Merger<'a> {
    members: &'a [Member<'a>],
    schedule: &'a Schedule,
    globals: Vec<usize>,
    procs: Vec<usize>,
    /// The state variable of each link, if it has one, by the member before it.
    buffers: Vec<Vec<Option<usize>>>,
}

const INT: Type = Type::Int {
    bits: 32,
    signed: true,
};

fn number(v: u32, span: Span) -> Expr {
    Expr {
        kind: ExprKind::Const(Value::Int(i64::from(v))),
        ty: INT,
        span,
    }
}

fn load(var: VarRef, indices: Vec<Expr>, ty: Type, span: Span) -> Expr {
    let place = Place {
        var,
        indices,
        ty: ty.clone(),
        span,
    };
    Expr {
        kind: ExprKind::Load(place),
        ty,
        span,
    }
}

fn list_of(elem: &Type, len: u32) -> Type {
    Type::List {
        elem: Box::new(elem.clone()),
        len,
    }
}

fn cast(e: Expr, ty: &Type) -> Expr {
    let span = e.span;
    Expr {
        kind: ExprKind::Cast(Box::new(e)),
        ty: ty.clone(),
        span,
    }
}

impl Code {
    fn local(&mut self, name: &str, ty: Type, span: Span) -> usize {
        self.locals.push(Local {
            name: name.to_string(),
            ty,
            span,
        });
        self.locals.len() - 1
    }

    fn take(&mut self) -> Vec<Stmt> {
        std::mem::take(&mut self.stmts)
    }

    fn put(&mut self, kind: StmtKind, span: Span) {
        self.stmts.push(Stmt { kind, span });
    }

    /// Emits code `n` times, as a loop if `n` is more than `most`.
    fn times(&mut self, n: u32, most: u32, span: Span, f: &mut dyn FnMut(&mut Code, Turn)) {
        if n <= most {
            (0..n).for_each(|k| f(self, Turn::Number(k)));
            return;
        }
        let var = self.local("i", INT, span);
        let outer = self.take();
        f(self, Turn::Counter(var));
        let body = std::mem::replace(&mut self.stmts, outer);
        let (from, to) = (number(0, span), number(n - 1, span));
        self.put(
            StmtKind::For {
                var,
                from,
                to,
                body,
            },
            span,
        );
    }

    /// Sets a variable to zero, its value at the start of an action.
    fn clear(&mut self, var: usize, span: Span) {
        let mut ty = self.locals[var].ty.clone();
        let dims = crate::ranges::dimensions(&ty);
        let mut counters = Vec::new();
        for _ in &dims {
            counters.push(self.local("i", INT, span));
        }
        ty = innermost(&ty).clone();
        let zero = match &ty {
            Type::Bool => Value::Bool(false),
            Type::Float { .. } => Value::Float(0.0),
            Type::String => Value::String(String::new()),
            _ => Value::Int(0),
        };
        let place = Place {
            var: VarRef::Local(var),
            indices: counters
                .iter()
                .map(|c| load(VarRef::Local(*c), vec![], INT, span))
                .collect(),
            ty: ty.clone(),
            span,
        };
        let value = Expr {
            kind: ExprKind::Const(zero),
            ty,
            span,
        };
        let mut stmt = Stmt {
            kind: StmtKind::Assign(place, value),
            span,
        };
        for (var, n) in counters.into_iter().zip(dims).rev() {
            let kind = StmtKind::For {
                var,
                from: number(0, span),
                to: number(n - 1, span),
                body: vec![stmt],
            };
            stmt = Stmt { kind, span };
        }
        self.stmts.push(stmt);
    }
}

impl Window {
    fn new(var: VarRef, elem: &Type, at: u32) -> Window {
        Window {
            var,
            elem: elem.clone(),
            counters: Vec::new(),
            at,
        }
    }

    /// The window moved by `at` elements, and by `step` more per iteration.
    fn moved(&self, at: u32, turn: Turn, step: u32) -> Window {
        let mut w = self.clone();
        w.at += at;
        match turn {
            Turn::Number(k) => w.at += k * step,
            Turn::Counter(c) => w.counters.push((c, step)),
        }
        w
    }

    fn place(&self, span: Span) -> Place {
        let binary = |op, a, b| Expr {
            kind: ExprKind::Binary(op, Box::new(a), Box::new(b)),
            ty: INT,
            span,
        };
        let mut terms = Vec::new();
        for (var, step) in &self.counters {
            let counter = load(VarRef::Local(*var), vec![], INT, span);
            terms.push(match step {
                1 => counter,
                n => binary(BinOp::Mul, counter, number(*n, span)),
            });
        }
        if self.at > 0 || terms.is_empty() {
            terms.push(number(self.at, span));
        }
        let index = terms.into_iter().reduce(|a, b| binary(BinOp::Add, a, b));
        Place {
            var: self.var,
            indices: index.into_iter().collect(),
            ty: self.elem.clone(),
            span,
        }
    }

    fn value(&self, span: Span) -> Expr {
        Expr {
            ty: self.elem.clone(),
            kind: ExprKind::Load(self.place(span)),
            span,
        }
    }
}

impl<'a> Merger<'a> {
    fn new(members: &'a [Member<'a>], schedule: &'a Schedule) -> Merger<'a> {
        let before = |count: fn(&Actor) -> usize| -> Vec<usize> {
            let mut n = 0;
            let each = members.iter().map(|m| {
                n += count(m.actor);
                n - count(m.actor)
            });
            each.collect()
        };
        let mut next = members.iter().map(|m| m.actor.globals.len()).sum();
        let mut buffers = Vec::new();
        for links in &schedule.links {
            let mut list = Vec::new();
            for link in links {
                list.push(link.crosses.then_some(next));
                next += usize::from(link.crosses);
            }
            buffers.push(list);
        }
        Merger {
            members,
            schedule,
            globals: before(|a| a.globals.len()),
            procs: before(|a| a.procs.len()),
            buffers,
        }
    }

    /// Whether the result would certainly be too large. For several phases the total weight is exact; for a single
    /// phase the bodies are a lower bound.
    fn is_heavy(&self) -> bool {
        let used = |m: &'a Member<'a>| {
            let each = m.steps.list.iter().flat_map(|s| &s.candidates);
            each.map(|id| &m.actor.actions[*id])
        };
        match &self.schedule.phases[..] {
            [phase] => {
                let fired = phase.iter().flat_map(|f| {
                    let step = self.step(f).candidates.iter();
                    step.map(|id| &self.members[f.member].actor.actions[*id])
                });
                fired.map(body_weight).sum::<usize>() > SINGLE_RATE_WEIGHT_MAX
            }
            _ => {
                let all = self.members.iter().flat_map(used);
                all.map(weight).sum::<usize>() > MERGED_WEIGHT_MAX
            }
        }
    }

    fn last(&self) -> usize {
        self.members.len() - 1
    }

    fn step(&self, f: &Firing) -> &'a Step {
        &self.members[f.member].steps.list[f.step]
    }

    /// The type of the elements in a link.
    fn elem(&self, m: usize, link: usize) -> &'a Type {
        &self.members[m].actor.outputs[self.members[m].links[link].out_port].ty
    }

    /// An action of its own pattern, guard and variables for a firing of the first member, if that
    /// can be.
    fn own_patterns(&self, code: &mut Code, action: &mut Action, step: &Step) -> bool {
        let [id] = step.candidates[..] else {
            return false;
        };
        let x = &self.members[0].actor.actions[id];
        action.inputs = x.inputs.clone();
        if self.members[0].guarded {
            action.guard = x.guard.clone();
        }
        code.locals = x.body.locals.clone();
        true
    }

    /// Lists that take all that a port of the first member is given.
    fn lists_in(
        &self,
        code: &mut Code,
        action: &mut Action,
        counts: &[u32],
    ) -> Vec<Option<Window>> {
        let actor = self.members[0].actor;
        let each = counts.iter().enumerate().map(|(port, n)| {
            if *n == 0 {
                return None;
            }
            let Port { name, ty, span } = &actor.inputs[port];
            let var = code.local(name, list_of(ty, *n), *span);
            action.inputs.push(Input {
                port,
                vars: vec![var],
                repeat: *n,
                is_list: true,
                span: *span,
            });
            Some(Window::new(VarRef::Local(var), ty, 0))
        });
        each.collect()
    }

    fn lists_out(
        &self,
        code: &mut Code,
        action: &mut Action,
        counts: &[u32],
    ) -> Vec<Option<Window>> {
        let actor = self.members[self.last()].actor;
        let each = counts.iter().enumerate().map(|(port, n)| {
            if *n == 0 {
                return None;
            }
            let Port { name, ty, span } = &actor.outputs[port];
            let var = VarRef::Local(code.local(name, list_of(ty, *n), *span));
            action.outputs.push(Output {
                port,
                values: vec![OutputValue::List(var)],
                repeat: *n,
                span: *span,
            });
            Some(Window::new(var, ty, 0))
        });
        each.collect()
    }

    fn empty(&self, firings: &[Firing]) -> Action {
        let mut names: Vec<String> = Vec::new();
        let mut span = Span::default();
        for f in firings {
            let (m, id) = (&self.members[f.member], self.step(f).candidates[0]);
            // Of the long-running actions, usually one, the last is reported when a time limit is exceeded.
            if names.is_empty() || is_long_running(m.actor, &m.actor.actions[id]) {
                span = m.actor.actions[id].span;
            }
            let name = qualified(m.name, &m.actor.actions[id]);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Action {
            name: names.join("+"),
            inputs: Vec::new(),
            outputs: Vec::new(),
            guard: Guard::default(),
            body: Body::default(),
            schedule_outputs: false,
            span,
        }
    }

    fn phase(&self, firings: &[Firing]) -> Action {
        let mut action = self.empty(firings);
        let mut code = Code::default();
        let (mut inputs, mut own) = (Vec::new(), false);
        if let [first, ..] = firings
            && first.member == 0
        {
            let step = self.step(first);
            own = self.own_patterns(&mut code, &mut action, step);
            inputs = vec![None; step.rates.inputs.len()];
            if !own {
                inputs = self.lists_in(&mut code, &mut action, &step.rates.inputs);
            }
        }
        let buffers = self.buffers(&mut code);
        for f in firings {
            let step = self.step(f);
            let mut ends = self.ends(f, &buffers);
            if f.member == 0 {
                ends.own = own;
                ends.inputs.clone_from(&inputs);
            }
            let many = step.candidates.len() > 1;
            if f.member == self.last() && many {
                ends.outputs = self.lists_out(&mut code, &mut action, &step.rates.outputs);
            }
            let outputs = self.fire(&mut code, f.member, &step.candidates, &ends);
            action.outputs.extend(outputs);
        }
        action.body = Body {
            locals: code.locals,
            stmts: code.stmts,
        };
        action
    }

    /// The variables between the members: state variables if elements remain in them between phases.
    fn buffers(&self, code: &mut Code) -> Vec<Vec<VarRef>> {
        let lists = (0..self.members.len()).map(|m| {
            let links = self.schedule.links[m].iter().enumerate();
            let each = links.map(|(l, link)| match self.buffers[m][l] {
                Some(g) => VarRef::Global(g),
                None => VarRef::Local(self.local_buffer(code, m, l, link.length)),
            });
            each.collect()
        });
        lists.collect()
    }

    fn local_buffer(&self, code: &mut Code, m: usize, link: usize, n: u32) -> usize {
        let port = &self.members[m].actor.outputs[self.members[m].links[link].out_port];
        code.local(&port.name, list_of(&port.ty, n.max(1)), port.span)
    }

    /// The windows of a firing on inner links.
    fn ends(&self, f: &Firing, buffers: &[Vec<VarRef>]) -> Ends {
        let me = &self.members[f.member];
        let mut ends = Ends {
            inputs: vec![None; me.actor.inputs.len()],
            outputs: vec![None; me.actor.outputs.len()],
            own: false,
            again: false,
        };
        if f.member > 0 {
            let m = f.member - 1;
            for (l, link) in self.members[m].links.iter().enumerate() {
                let w = Window::new(buffers[m][l], self.elem(m, l), f.reads[l]);
                ends.inputs[link.in_port] = Some(w);
            }
        }
        for (l, link) in me.links.iter().enumerate() {
            let w = Window::new(buffers[f.member][l], self.elem(f.member, l), f.writes[l]);
            ends.outputs[link.out_port] = Some(w);
        }
        ends
    }

    /// Emits the firing of the first candidate that can fire; returns outputs without a window.
    fn fire(&self, code: &mut Code, m: usize, candidates: &[ActionId], ends: &Ends) -> Vec<Output> {
        let member = &self.members[m];
        let y = &member.actor.actions[candidates[0]];
        let bound: usize = y.inputs.iter().map(|i| i.vars.len()).sum();
        let mut moves = Renumbering {
            locals: Vec::new(),
            globals: self.globals[m],
            procs: self.procs[m],
        };
        if ends.own {
            moves.locals = (0..y.body.locals.len()).collect();
        } else {
            for local in &y.body.locals {
                moves
                    .locals
                    .push(code.local(&local.name, local.ty.clone(), local.span));
            }
            hand_over(code, y, member.actor, &ends.inputs, &moves);
        }
        if ends.again {
            let read = |l: &usize| {
                y.outputs.iter().flat_map(|o| &o.values).any(|v| match v {
                    OutputValue::List(v) => *v == VarRef::Local(*l),
                    OutputValue::Scalar(_) => false,
                })
            };
            for l in bound..y.body.locals.len() {
                let list = matches!(y.body.locals[l].ty, Type::List { .. });
                if !list || needs_zero(&y.body, l, read(&l)) {
                    code.clear(moves.locals[l], y.span);
                }
            }
        }
        if candidates.len() == 1 {
            code.stmts.extend(moves.stmts(&y.body.stmts));
            return leave(code, y, member.actor, &ends.outputs, &moves);
        }
        // The guard's variables: those of the patterns, and its own.
        let guard = &y.guard;
        let mut in_guard = Renumbering {
            locals: moves.locals[..bound.min(guard.body.locals.len())].to_vec(),
            ..moves
        };
        for (l, local) in guard.body.locals.iter().enumerate().skip(bound) {
            in_guard
                .locals
                .push(code.local(&local.name, local.ty.clone(), local.span));
            if ends.again {
                code.clear(in_guard.locals[l], y.span);
            }
        }
        code.stmts.extend(in_guard.stmts(&guard.body.stmts));
        let condition = guard
            .conditions
            .iter()
            .map(|e| in_guard.expr(e))
            .reduce(|a, b| Expr {
                span: a.span,
                ty: Type::Bool,
                kind: ExprKind::Binary(BinOp::And, Box::new(a), Box::new(b)),
            });
        let outer = code.take();
        code.stmts.extend(moves.stmts(&y.body.stmts));
        leave(code, y, member.actor, &ends.outputs, &moves);
        let yes = code.take();
        let Some(condition) = condition else {
            // The others can never fire.
            code.stmts = outer;
            code.stmts.extend(yes);
            return Vec::new();
        };
        self.fire_last(code, m, &candidates[1..], ends);
        let no = std::mem::replace(&mut code.stmts, outer);
        code.put(StmtKind::If(condition, yes, no), y.span);
        Vec::new()
    }

    /// Like `fire`, if all outputs have windows.
    fn fire_last(&self, code: &mut Code, m: usize, candidates: &[ActionId], ends: &Ends) {
        let rest = self.fire(code, m, candidates, ends);
        debug_assert!(rest.is_empty(), "a choice gives to windows");
    }

    /// All firings of several rounds, limited by `enough`, if a round is possible.
    fn round(&self, enough: u32) -> Option<Action> {
        let firings: Vec<&Firing> = self.schedule.phases[self.schedule.back..]
            .iter()
            .flatten()
            .collect();
        let of = |m: usize| -> Vec<&Firing> {
            firings.iter().filter(|f| f.member == m).copied().collect()
        };
        let sum = |list: &[&Firing], ports: usize, rate: fn(&Step) -> &Vec<u32>| -> Vec<u32> {
            let one = |p| list.iter().map(|f| rate(self.step(f))[p]).sum();
            (0..ports).map(one).collect()
        };
        let (first, last) = (of(0), of(self.last()));
        let (head, tail) = (self.members[0].actor, self.members[self.last()].actor);
        let takes = sum(&first, head.inputs.len(), |s| &s.rates.inputs);
        let gives = sum(&last, tail.outputs.len(), |s| &s.rates.outputs);
        let most = *takes.iter().chain(&gives).max()?;
        if most == 0
            || most > enough.min(ROUND_ELEMENTS_MAX)
            || self.members[0].guarded && first.len() > 1
        {
            return None;
        }
        let rounds = match self.members[0].guarded {
            true => 1,
            false => (ROUND_ELEMENTS_MIN / most).min(enough / 2 / most).max(1),
        };
        let all: Vec<Firing> = firings.iter().map(|f| (*f).clone()).collect();
        let mut action = self.empty(&all);
        action.schedule_outputs = true;
        let mut code = Code::default();
        let one = rounds == 1 && first.len() == 1;
        let scaled = |counts: &[u32]| -> Vec<u32> { counts.iter().map(|n| n * rounds).collect() };
        let own = one && self.own_patterns(&mut code, &mut action, self.step(first[0]));
        let inputs = if own {
            vec![None; head.inputs.len()]
        } else {
            self.lists_in(&mut code, &mut action, &scaled(&takes))
        };
        let outputs = self.lists_out(&mut code, &mut action, &scaled(&gives));
        let buffers: Vec<Vec<VarRef>> = (0..self.members.len())
            .map(|m| {
                let ports = self.members[m].actor.outputs.len();
                let given = scaled(&sum(&of(m), ports, |s| &s.rates.outputs));
                let links = self.members[m].links.iter().enumerate();
                let each = links.map(|(l, link)| {
                    VarRef::Local(self.local_buffer(&mut code, m, l, given[link.out_port]))
                });
                each.collect()
            })
            .collect();
        for m in 0..self.members.len() {
            self.turns(
                &mut code,
                &of(m),
                rounds,
                &buffers,
                (&inputs, &outputs),
                own,
            );
        }
        action.body = Body {
            locals: code.locals,
            stmts: code.stmts,
        };
        Some(action)
    }

    /// All firings of one member in a number of rounds, as a loop over its own cycle.
    fn turns(
        &self,
        code: &mut Code,
        firings: &[&Firing],
        rounds: u32,
        buffers: &[Vec<VarRef>],
        (inputs, outputs): (&[Option<Window>], &[Option<Window>]),
        own: bool,
    ) {
        let m = firings[0].member;
        // The period of its steps, in firings.
        let member = &self.members[m];
        let cycle = member.steps.list.len() - member.steps.back;
        let turns = firings.len() / cycle * rounds as usize;
        let list = &firings[..cycle];
        let total = |port: usize, rate: fn(&Step) -> &Vec<u32>| -> u32 {
            list.iter().map(|f| rate(self.step(f))[port]).sum()
        };
        let span = member.actor.actions[self.step(list[0]).candidates[0]].span;
        code.times(turns as u32, 1, span, &mut |code, turn| {
            let mut ends = self.ends(
                &Firing {
                    reads: vec![0; firings[0].reads.len()],
                    writes: vec![0; firings[0].writes.len()],
                    ..firings[0].clone()
                },
                buffers,
            );
            if m == 0 {
                ends.own = own;
                ends.inputs = inputs.to_vec();
            }
            if m == self.last() {
                ends.outputs = outputs.to_vec();
            }
            ends.again = matches!(turn, Turn::Counter(_));
            for (port, w) in ends.inputs.iter_mut().enumerate() {
                if let Some(w) = w {
                    *w = w.moved(0, turn, total(port, |s| &s.rates.inputs));
                }
            }
            for (port, w) in ends.outputs.iter_mut().enumerate() {
                if let Some(w) = w {
                    *w = w.moved(0, turn, total(port, |s| &s.rates.outputs));
                }
            }
            for f in list {
                let step = self.step(f);
                self.fire_last(code, m, &step.candidates, &ends);
                for (w, n) in ends.inputs.iter_mut().zip(&step.rates.inputs) {
                    if let Some(w) = w {
                        w.at += n;
                    }
                }
                for (w, n) in ends.outputs.iter_mut().zip(&step.rates.outputs) {
                    if let Some(w) = w {
                        w.at += n;
                    }
                }
            }
        });
    }

    /// The merged actor with these actions, and its members' variables and procedures.
    fn actor(&self, actions: Vec<Action>, fsm: Option<Fsm>) -> Actor {
        let mut globals = Vec::new();
        let mut procs = Vec::new();
        let mut initializers = Vec::new();
        for (m, member) in self.members.iter().enumerate() {
            let moves = |locals: usize| Renumbering {
                locals: (0..locals).collect(),
                globals: self.globals[m],
                procs: self.procs[m],
            };
            for g in &member.actor.globals {
                let init = match &g.init {
                    Init::Code(body) => Init::Code(moves(0).body_of_its_own(body)),
                    other => other.clone(),
                };
                globals.push(Var {
                    name: own(member.name, &g.name),
                    init,
                    ..g.clone()
                });
            }
            for p in &member.actor.procs {
                procs.push(Proc {
                    name: own(member.name, &p.name),
                    body: moves(0).body_of_its_own(&p.body),
                    ..p.clone()
                });
            }
            for i in &member.actor.initializers {
                let (guard, body) = (moves(i.guard.body.locals.len()), moves(i.body.locals.len()));
                let given = |v: &OutputValue| match v {
                    OutputValue::Scalar(e) => OutputValue::Scalar(body.expr(e)),
                    OutputValue::List(v) => OutputValue::List(body.var(*v)),
                };
                let outputs = i.outputs.iter().map(|o| Output {
                    values: o.values.iter().map(given).collect(),
                    ..o.clone()
                });
                initializers.push(Action {
                    name: qualified(member.name, i),
                    outputs: outputs.collect(),
                    guard: Guard {
                        body: guard.body(&i.guard.body),
                        conditions: i.guard.conditions.iter().map(|e| guard.expr(e)).collect(),
                    },
                    body: body.body(&i.body),
                    ..i.clone()
                });
            }
        }
        for (m, links) in self.buffers.iter().enumerate() {
            for (l, buffer) in links.iter().enumerate().filter(|(_, b)| b.is_some()) {
                debug_assert_eq!(*buffer, Some(globals.len()));
                let port = &self.members[m].actor.outputs[self.members[m].links[l].out_port];
                globals.push(Var {
                    name: own(self.members[m].name, &port.name),
                    ty: list_of(&port.ty, self.schedule.links[m][l].length),
                    init: Init::Zero,
                    constant: false,
                    span: port.span,
                });
            }
        }
        let ports = |m: usize, list: &[Port]| -> Vec<Port> {
            let name = self.members[m].name;
            let each = list.iter().map(|p| Port {
                name: own(name, &p.name),
                ..p.clone()
            });
            each.collect()
        };
        let names: Vec<&str> = self.members.iter().map(|m| m.actor.name.as_str()).collect();
        Actor {
            name: names.join("+"),
            inputs: ports(0, &self.members[0].actor.inputs),
            outputs: ports(self.last(), &self.members[self.last()].actor.outputs),
            globals,
            procs,
            outside: if fsm.is_none() { vec![0] } else { Vec::new() },
            actions,
            initializers,
            fsm,
            native: None,
            span: self.members[0].actor.span,
        }
    }
}

fn own(instance: &str, name: &str) -> String {
    format!("{}.{name}", instance.rsplit('.').next().unwrap_or(instance))
}

/// `a.x`: an action of an instance.
fn qualified(instance: &str, action: &Action) -> String {
    match action.name.strip_prefix("the ") {
        // It has no tag; its name says where it is.
        Some(place) => own(instance, place),
        None => own(instance, &action.name),
    }
}

/// Assigns the elements of the windows to the variables of an action's input patterns.
fn hand_over(
    code: &mut Code,
    y: &Action,
    actor: &Actor,
    from: &[Option<Window>],
    moves: &Renumbering,
) {
    let mut offset = vec![0u32; from.len()];
    for input in &y.inputs {
        let (Some(window), stride) = (&from[input.port], input.vars.len() as u32) else {
            continue;
        };
        let port = &actor.inputs[input.port].ty;
        for (j, var) in input.vars.iter().enumerate() {
            let to = moves.locals[*var];
            let at = offset[input.port] + j as u32;
            let elem = innermost(&code.locals[to].ty).clone();
            let target = Window::new(VarRef::Local(to), &elem, 0);
            code.times(
                input.repeat,
                UNROLLED_ELEMENTS_MAX,
                input.span,
                &mut |code, turn| {
                    let value = window.moved(at, turn, stride);
                    let value = cast(value.value(input.span), port);
                    let mut place = target.moved(0, turn, 1).place(input.span);
                    if !input.is_list {
                        place.indices.clear();
                    }
                    code.put(StmtKind::Assign(place, value), input.span);
                },
            );
        }
        offset[input.port] += input.count();
    }
}

/// Stores an action's outputs in the windows; returns the outputs without one.
fn leave(
    code: &mut Code,
    y: &Action,
    actor: &Actor,
    to: &[Option<Window>],
    moves: &Renumbering,
) -> Vec<Output> {
    let mut outside = Vec::new();
    let mut offset = vec![0u32; actor.outputs.len()];
    for o in &y.outputs {
        let Some(window) = &to[o.port] else {
            let given = |v: &OutputValue| match v {
                OutputValue::Scalar(e) => OutputValue::Scalar(moves.expr(e)),
                OutputValue::List(v) => OutputValue::List(moves.var(*v)),
            };
            outside.push(Output {
                values: o.values.iter().map(given).collect(),
                ..o.clone()
            });
            continue;
        };
        let (port, stride) = (&actor.outputs[o.port].ty, o.values.len() as u32);
        for (j, value) in o.values.iter().enumerate() {
            let at = offset[o.port] + j as u32;
            match value {
                OutputValue::Scalar(e) => {
                    for k in 0..o.repeat {
                        let place = window.moved(at, Turn::Number(k), stride).place(o.span);
                        code.put(StmtKind::Assign(place, cast(moves.expr(e), port)), o.span);
                    }
                }
                OutputValue::List(v) => {
                    let list = match v {
                        VarRef::Local(l) => &y.body.locals[*l].ty,
                        VarRef::Global(g) => &actor.globals[*g].ty,
                    };
                    let from = Window::new(moves.var(*v), innermost(list), 0);
                    code.times(
                        o.repeat,
                        UNROLLED_ELEMENTS_MAX,
                        o.span,
                        &mut |code, turn| {
                            let value = from.moved(0, turn, 1).value(o.span);
                            let place = window.moved(at, turn, stride).place(o.span);
                            code.put(StmtKind::Assign(place, cast(value, port)), o.span);
                        },
                    );
                }
            }
        }
        offset[o.port] += o.count();
    }
    outside
}
