// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings for inconsistent rates: channels in which elements will accumulate or be missing, as far as this can be
//! determined before a network runs.
//!
//! * *Balance* (Lee and Messerschmitt 1987): connected actors of constant rates fire in constant proportions. If
//!   two paths between two actors require different proportions, the channels of one path fill up until they block
//!   the other.
//! * *Totals*: a source that ends after a known number of elements, and static and cyclo-static actors behind it,
//!   consume and produce known totals. What the last firing does not consume is lost.
//! * *Capacity*: a channel with a requested capacity of less than what one firing moves.
//!
//! Only certain faults are reported. Nothing is assumed about actors with firings that depend on values of elements,
//! actors in C, actors with guards and inputs, and what follows them.

use crate::classify::{Steps, most_firings, moved, rates, steps};
use crate::diag::Diagnostic;
use crate::emit::Bursts;
use crate::interp::{Machine, Options, Outcome};
use crate::ir::action::weight;
use crate::ir::visit::mentions;
use crate::ir::*;
use crate::ranges::{Range, dimensions};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of simulated firings of a source, and of all sources of a network.
const PLAYED: u64 = 4096;
const PLAYED_IN_ALL: u64 = 20_000;
/// Sources with more elements in their state variables are not simulated.
const LISTS: u64 = 1 << 16;

/// The total number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Total {
    Unknown,
    /// Unlimited.
    Endless,
    Elements(u64),
}

/// Facts about an actor.
struct Facts {
    bursts: Bursts,
    steps: Option<Steps>,
    /// The elements on each port in one cycle of its firings, if constant.
    round: Option<(Vec<u64>, Vec<u64>)>,
}

impl Facts {
    fn of(actor: &Actor) -> Facts {
        let steps = steps(actor);
        let round = match &steps {
            Some(steps) => Some(round(actor, steps)),
            None => constant(actor),
        };
        Facts {
            bursts: Bursts::of(actor),
            steps,
            round,
        }
    }
}

fn round(actor: &Actor, steps: &Steps) -> (Vec<u64>, Vec<u64>) {
    let cycle = &steps.list[steps.back..];
    let sum = |ports: usize, rate: &dyn Fn(usize, usize) -> u32| {
        let one = |port| (0..cycle.len()).map(|s| u64::from(rate(s, port))).sum();
        (0..ports).map(one).collect()
    };
    (
        sum(actor.inputs.len(), &|s, port| cycle[s].rates.inputs[port]),
        sum(actor.outputs.len(), &|s, port| cycle[s].rates.outputs[port]),
    )
}

/// The elements per firing of a source, also of one that may end, if all its actions have the same rates.
fn constant(actor: &Actor) -> Option<(Vec<u64>, Vec<u64>)> {
    let (first, rest) = actor.actions.split_first()?;
    let one = rates(actor, first);
    let same = rest.iter().all(|a| rates(actor, a) == one);
    let wide = |list: &[u32]| list.iter().map(|n| u64::from(*n)).collect();
    (actor.inputs.is_empty() && same).then(|| (wide(&one.inputs), wide(&one.outputs)))
}

/// The warnings for a network; `spans`: the connection of each input port.
pub fn warnings(net: &Network, spans: &HashMap<Endpoint, Span>) -> Vec<Diagnostic> {
    let facts = net.of_actors(Facts::of);
    let rates = Rates { net, facts, spans };
    let mut found = rates.small();
    let mut told = vec![false; net.instances.len()];
    found.extend(rates.unbalanced(&mut told));
    found.extend(rates.left_over(&told));
    found
}

struct Rates<'a> {
    net: &'a Network,
    /// By instance.
    facts: Vec<Rc<Facts>>,
    spans: &'a HashMap<Endpoint, Span>,
}

impl Rates<'_> {
    fn output(&self, e: Endpoint) -> String {
        let i = &self.net.instances[e.instance];
        format!("{}.{}", i.name, i.actor.outputs[e.port].name)
    }

    fn input(&self, e: Endpoint) -> String {
        let i = &self.net.instances[e.instance];
        format!("{}.{}", i.name, i.actor.inputs[e.port].name)
    }

    /// A warning with the connection of an input, and the pattern that consumes from it.
    fn told(&self, to: Endpoint, message: String, why: String) -> Diagnostic {
        let mut diag = Diagnostic::warning("rates", message);
        if let Some(span) = self.spans.get(&to) {
            diag = diag.label(*span, why);
        }
        let actor = &self.net.instances[to.instance].actor;
        let mut patterns = actor.actions.iter().flat_map(|a| &a.inputs);
        match patterns.find(|i| i.port == to.port) {
            Some(pattern) => diag.label(pattern.span, "here"),
            None => diag,
        }
    }

    fn small(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for c in &self.net.channels {
            let Some(n) = c.capacity else { continue };
            let puts = self.facts[c.from.instance].bursts.outputs[c.from.port];
            let takes = |e: &Endpoint| self.facts[e.instance].bursts.inputs[e.port];
            let most = c.to.iter().map(takes).chain([puts]).max().unwrap_or(0);
            if n >= most {
                continue;
            }
            let (from, which) = (self.output(c.from), c.to.iter().find(|e| takes(e) == most));
            let what = match which {
                Some(to) => format!("{} takes {most} at a time", self.input(*to)),
                None => format!("{from} puts {most} at a time"),
            };
            let message = format!(
                "the channel from {from} of {n} elements is too small for one firing, which moves \
                 {most}; it is made {most}"
            );
            let mut diag = Diagnostic::warning("small-channel", message);
            if let Some(span) = self.spans.get(which.unwrap_or(&c.to[0])) {
                diag = diag.label(*span, what);
            }
            found.push(diag.help(format!("give it a bufferSize of {most} or more")));
        }
        found
    }

    /// Channels between actors for which another path requires different proportions; the consumers are marked in
    /// `told`.
    fn unbalanced(&self, told: &mut [bool]) -> Vec<Diagnostic> {
        let n = self.net.instances.len();
        // The elements that each end moves in one cycle of its actor.
        let mut edges = Vec::new();
        let mut around = vec![Vec::new(); n];
        for (k, c) in self.net.channels.iter().enumerate() {
            let Some((_, puts)) = &self.facts[c.from.instance].round else {
                continue;
            };
            for to in &c.to {
                let Some((takes, _)) = &self.facts[to.instance].round else {
                    continue;
                };
                let (put, taken) = (puts[c.from.port], takes[to.port]);
                if put > 0 && taken > 0 {
                    around[c.from.instance].push(edges.len());
                    around[to.instance].push(edges.len());
                    edges.push((k, *to, put, taken));
                }
            }
        }
        // The cycles of each actor, relative to those of the first actor of its connected component.
        let mut rounds: Vec<Option<(u128, u128)>> = vec![None; n];
        for first in 0..n {
            if rounds[first].is_some() {
                continue;
            }
            rounds[first] = Some((1, 1));
            let mut open = vec![first];
            while let Some(i) = open.pop() {
                let Some((num, den)) = rounds[i] else {
                    continue;
                };
                for e in &around[i] {
                    let (k, to, put, taken) = edges[*e];
                    let from = self.net.channels[k].from.instance;
                    let (other, times, by) = if from == i {
                        (to.instance, put, taken)
                    } else {
                        (from, taken, put)
                    };
                    if rounds[other].is_none() {
                        rounds[other] = fraction(num, den, times, by);
                        open.extend(rounds[other].is_some().then_some(other));
                    }
                }
            }
        }
        let mut found = Vec::new();
        for (k, to, put, taken) in edges {
            let from = self.net.channels[k].from;
            let (Some(a), Some(b)) = (rounds[from.instance], rounds[to.instance]) else {
                continue;
            };
            let (Some(comes), Some(goes)) =
                (fraction(a.0, a.1, put, 1), fraction(b.0, b.1, taken, 1))
            else {
                continue;
            };
            if comes == goes {
                continue;
            }
            told[to.instance] = true;
            let (put, taken) = (comes.0 * goes.1, goes.0 * comes.1);
            let common = gcd(put, taken);
            let (put, taken) = (put / common, taken / common);
            let (output, input) = (self.output(from), self.input(to));
            let why = if put > taken {
                "it fills up, and then holds up all before it"
            } else {
                "elements are missing here, while other channels fill up"
            };
            let message = format!(
                "the rates of this channel cannot meet: {output} puts {put} while {input} takes {taken}, \
                 since both are connected by another way, too"
            );
            let help = "the rates on all paths between two actors must match";
            found.push(self.told(to, message, why.to_string()).help(help));
        }
        found
    }

    /// Elements that are left over after sources have ended.
    fn left_over(&self, told: &[bool]) -> Vec<Diagnostic> {
        let n = self.net.instances.len();
        let mut inputs: Vec<Vec<Option<usize>>> = Vec::new();
        let mut outputs: Vec<Vec<usize>> = vec![Vec::new(); n];
        for i in &self.net.instances {
            inputs.push(vec![None; i.actor.inputs.len()]);
        }
        for (k, c) in self.net.channels.iter().enumerate() {
            outputs[c.from.instance].push(k);
            for to in &c.to {
                inputs[to.instance][to.port] = Some(k);
            }
        }
        let mut totals = vec![Total::Unknown; self.net.channels.len()];
        let mut waits: Vec<usize> = inputs.iter().map(Vec::len).collect();
        let mut open: Vec<usize> = (0..n).filter(|i| waits[*i] == 0).rev().collect();
        let mut found = Vec::new();
        let mut sources = Sources::default();
        while let Some(i) = open.pop() {
            let actor = &self.net.instances[i].actor;
            let puts = if actor.inputs.is_empty() {
                sources.totals(&self.net.instances[i], self.facts[i].steps.is_some())
            } else {
                let channel = |k: &Option<usize>| k.map_or(Total::Unknown, |k| totals[k]);
                let comes: Vec<Total> = inputs[i].iter().map(channel).collect();
                self.pass(i, &comes, &inputs[i], told, &mut found)
            };
            for k in &outputs[i] {
                totals[*k] = puts[self.net.channels[*k].from.port];
                for to in &self.net.channels[*k].to {
                    waits[to.instance] -= 1;
                    if waits[to.instance] == 0 {
                        open.push(to.instance);
                    }
                }
            }
        }
        found
    }

    /// The elements that an actor produces from these inputs; what it does not consume is added to `found`.
    fn pass(
        &self,
        i: usize,
        comes: &[Total],
        channels: &[Option<usize>],
        told: &[bool],
        found: &mut Vec<Diagnostic>,
    ) -> Vec<Total> {
        let actor = &self.net.instances[i].actor;
        let unknown = vec![Total::Unknown; actor.outputs.len()];
        let Some(steps) = &self.facts[i].steps else {
            return unknown;
        };
        if comes.contains(&Total::Unknown) {
            return unknown;
        }
        let guarded = |a: &Action| !a.guard.conditions.is_empty();
        if actor.initializers.iter().any(guarded) {
            return unknown;
        }
        let mut first = (vec![0; actor.inputs.len()], vec![0; actor.outputs.len()]);
        for a in &actor.initializers {
            let moved = rates(actor, a);
            let add = |(sum, n): (&mut u64, &u32)| *sum += u64::from(*n);
            first.0.iter_mut().zip(&moved.inputs).for_each(add);
            first.1.iter_mut().zip(&moved.outputs).for_each(add);
        }
        let of =
            |rate: &dyn Fn(usize) -> u32| -> Vec<u32> { (0..steps.list.len()).map(rate).collect() };
        let takes = |port: usize| of(&|s| steps.list[s].rates.inputs[port]);
        let gives = |port: usize| of(&|s| steps.list[s].rates.outputs[port]);
        // The number of firings, limited by the input that ends first.
        let mut firings: Option<(u64, usize)> = None;
        for (port, total) in comes.iter().enumerate() {
            let Total::Elements(total) = total else {
                continue;
            };
            let Some(rest) = total.checked_sub(first.0[port]) else {
                return unknown;
            };
            let most = most_firings(&takes(port), steps.back, rest);
            if let Some(most) = most.filter(|n| firings.is_none_or(|(least, _)| *n < least)) {
                firings = Some((most, port));
            }
        }
        for (port, total) in comes.iter().enumerate() {
            let (Total::Elements(total), Some((fired, least))) = (total, firings) else {
                continue;
            };
            let taken = first.0[port] + moved(&takes(port), steps.back, fired);
            if takes(port).iter().all(|n| *n == 0) {
                continue;
            }
            let to = Endpoint { instance: i, port };
            if taken < *total && !told[i] {
                let how = (*total, taken, fired, least);
                found.push(self.left(to, channels[port], how, &takes(port)[steps.back..]));
            }
        }
        let put = |port: usize| match firings {
            Some((n, _)) => {
                let put = moved(&gives(port), steps.back, n);
                Total::Elements(put.saturating_add(first.1[port]))
            }
            None if gives(port)[steps.back..].iter().all(|n| *n == 0) => Total::Unknown,
            None => Total::Endless,
        };
        (0..actor.outputs.len()).map(put).collect()
    }

    fn left(
        &self,
        to: Endpoint,
        channel: Option<usize>,
        (total, taken, fired, least): (u64, u64, u64, usize),
        cycle: &[u32],
    ) -> Diagnostic {
        let from = channel.map_or(String::new(), |k| self.output(self.net.channels[k].from));
        let (name, input) = (&self.net.instances[to.instance].name, self.input(to));
        let takes = match cycle {
            [one, rest @ ..] if rest.iter().all(|n| n == one) => format!("{one} at a time"),
            _ => {
                let some: Vec<String> = cycle.iter().take(8).map(u32::to_string).collect();
                let more = if cycle.len() > 8 { ", ..." } else { "" };
                format!("{}{more} in turn", some.join(", "))
            }
        };
        let left = total - taken;
        let message = match fired {
            0 => {
                format!("{name} never fires: {from} puts {total} in all, and {input} takes {takes}")
            }
            _ => {
                format!("{left} of the {total} elements that {from} puts are left over at the end")
            }
        };
        if least != to.port {
            let other = self.input(Endpoint { port: least, ..to });
            let why = format!("{name} fires {fired} times, until {other} ends");
            return self.told(to, message, why);
        }
        let help = match cycle {
            [one] => format!("let a multiple of {one} come, or take fewer at a time"),
            _ => "let as many come as its firings take".to_string(),
        };
        self.told(to, message, format!("{input} takes {takes}"))
            .help(help)
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

/// `num / den * times / by`, reduced; `None` if the numbers become too large.
fn fraction(num: u128, den: u128, times: u64, by: u64) -> Option<(u128, u128)> {
    let (num, den) = (num * u128::from(times), den * u128::from(by));
    let common = gcd(num, den);
    let (num, den) = (num / common, den / common);
    let most = 1 << 48;
    (num <= most && den <= most).then_some((num, den))
}

/// The totals of sources.
#[derive(Default)]
struct Sources {
    known: HashMap<*const Actor, Vec<Total>>,
    played: u64,
}

impl Sources {
    fn totals(&mut self, instance: &Instance, always: bool) -> Vec<Total> {
        let key = Arc::as_ptr(&instance.actor);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let actor = &*instance.actor;
        let fired = if always {
            None
        } else {
            counted(actor).or_else(|| self.play(instance))
        };
        let all = || actor.actions.iter().chain(&actor.initializers);
        let puts = |port: usize| match &fired {
            None if always => Total::Endless,
            None => Total::Unknown,
            Some(fired) => {
                let one = |(a, n): (&Action, &u64)| {
                    u64::from(rates(actor, a).outputs[port]).saturating_mul(*n)
                };
                let each = all().zip(fired).map(one);
                Total::Elements(each.fold(0, u64::saturating_add))
            }
        };
        let totals: Vec<Total> = (0..actor.outputs.len()).map(puts).collect();
        self.known.insert(key, totals.clone());
        totals
    }

    /// Simulates a small source to find out whether it ends; returns the firings of each action.
    fn play(&mut self, instance: &Instance) -> Option<Vec<u64>> {
        let actor = &*instance.actor;
        let most = PLAYED.min(PLAYED_IN_ALL - self.played);
        let little = actor
            .actions
            .iter()
            .chain(&actor.initializers)
            .all(|a| weight(a) < 200);
        let plain = actor
            .globals
            .iter()
            .all(|g| !matches!(g.init, Init::Code(_)));
        let elements = |g: &Var| {
            dimensions(&g.ty)
                .iter()
                .map(|n| u64::from(*n))
                .product::<u64>()
        };
        let plain = plain && actor.globals.iter().map(elements).sum::<u64>() < LISTS;
        if most == 0
            || !little
            || !plain
            || actor.native.is_some()
            || actor.procs.iter().any(|p| p.native)
        {
            return None;
        }
        let net = Network {
            name: String::new(),
            files: Vec::new(),
            instances: vec![instance.clone()],
            channels: Vec::new(),
        };
        let options = Options {
            firings: most,
            ..Options::default()
        };
        let report = Machine::new(&net, options).run().ok()?;
        self.played += report.fired[0].iter().sum::<u64>();
        (report.outcome == Outcome::Ended).then(|| report.fired[0].clone())
    }
}

/// The number of firings of a source with only one action, which counts up to a constant.
fn counted(actor: &Actor) -> Option<Vec<u64>> {
    let ([action], true) = (&actor.actions[..], actor.initializers.is_empty()) else {
        return None;
    };
    let ([condition], true) = (
        &action.guard.conditions[..],
        action.guard.body.stmts.is_empty(),
    ) else {
        return None;
    };
    let ExprKind::Binary(op @ (BinOp::Lt | BinOp::Le), left, right) = &condition.kind else {
        return None;
    };
    let variable = |e: &Expr| match &e.kind {
        ExprKind::Load(p) if p.indices.is_empty() => match p.var {
            VarRef::Global(g) => Some(g),
            VarRef::Local(_) => None,
        },
        _ => None,
    };
    let var = variable(left)?;
    let whole = |e: &Expr| -> Option<i128> {
        let value = |v: &Value| match v {
            Value::Int(n) => Some(i128::from(*n)),
            _ => None,
        };
        match &e.kind {
            ExprKind::Const(v) => value(v),
            _ => match &actor.globals[variable(e)?] {
                Var {
                    constant: true,
                    init: Init::Value(v),
                    ..
                } => value(v),
                _ => None,
            },
        }
    };
    let limit = whole(right)? + i128::from(*op == BinOp::Le);
    let mut writes = 0;
    let any = |_, _| true;
    mentions(&action.body.stmts, &any, &mut |v, w| {
        writes += usize::from(w && v == VarRef::Global(var));
    });
    let calls = action
        .body
        .stmts
        .iter()
        .any(|s| matches!(s.kind, StmtKind::Call(..)));
    if writes != 1 || calls || actor.procs.iter().any(|p| p.effects || p.native) {
        return None;
    }
    let step = action.body.stmts.iter().find_map(|s| match &s.kind {
        StmtKind::Assign(p, e) if p.var == VarRef::Global(var) && p.indices.is_empty() => {
            let e = match &e.kind {
                ExprKind::Cast(inner) => inner,
                _ => e,
            };
            match &e.kind {
                ExprKind::Binary(BinOp::Add, x, y) if variable(x) == Some(var) => whole(y),
                ExprKind::Binary(BinOp::Add, x, y) if variable(y) == Some(var) => whole(x),
                _ => None,
            }
        }
        _ => None,
    })?;
    let from = match &actor.globals[var].init {
        Init::Zero => 0,
        Init::Value(Value::Int(n)) => i128::from(*n),
        _ => return None,
    };
    // The comparison is exact: the variable never wraps.
    let range = Range::of(&actor.globals[var].ty);
    if step <= 0 || limit + step - 1 > range.hi || from < range.lo {
        return None;
    }
    let n = (limit - from).max(0) as u128;
    let fired = n.div_ceil(step as u128);
    u64::try_from(fired).ok().map(|n| vec![n])
}
