// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter: executes a network from its intermediate representation. It is the reference for compiled code,
//! and tests compare the two.
//!
//! It takes no shortcuts: integers are exact and wrap by the rules of the representation, every index and divisor
//! is checked, actors fire in turn, and channels are queues with or without a bound.

mod eval;
mod trial;

pub use crate::operators::Scalar;
pub use trial::Trial;

use crate::ir::*;
use crate::operators::value::convert;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    Index,
    Division,
    /// A native function that was not provided.
    Native,
}

#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub actor: String,
    pub action: String,
    pub span: Span,
    pub message: String,
}

/// A list, from an element on; lists are passed by reference.
#[derive(Clone, Debug)]
pub struct Slot {
    pub data: Rc<RefCell<Vec<Scalar>>>,
    pub offset: usize,
}

#[derive(Debug)]
pub enum NativeArg {
    Value(Scalar),
    List(Slot),
}

/// The implementation of a native function.
pub type Native = Box<dyn FnMut(&[NativeArg]) -> Scalar>;

#[derive(Default)]
pub struct Options {
    /// The default capacity of channels; `None`: unbounded.
    pub capacity: Option<usize>,
    /// Maximum number of firings; 0: unlimited.
    pub firings: u64,
    pub natives: HashMap<String, Native>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing can fire any more.
    Ended,
    /// Nothing can fire, and an actor waits for room.
    Deadlock,
    /// The limit on firings was reached.
    Limit,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    /// The output of each instance.
    pub printed: Vec<String>,
    /// Firings of each action of each instance, initializers last.
    pub fired: Vec<Vec<u64>>,
    /// Remaining elements of each channel, for each consumer.
    pub left: Vec<Vec<usize>>,
}

pub(crate) struct Instance<'a> {
    name: &'a str,
    actor: &'a Actor,
    globals: Vec<Slot>,
    state: usize,
    /// The number of initializers that have fired.
    started: usize,
    printed: String,
    fired: Vec<u64>,
    /// It can never fire again.
    done: bool,
}

struct Queue {
    elements: Vec<VecDeque<Scalar>>,
    /// Consumers that can never fire again; producers do not wait for them.
    left: Vec<bool>,
    capacity: Option<usize>,
}

enum Step {
    Fired,
    /// It lacks elements.
    Idle,
    /// It lacks only room.
    Full,
    /// Its guards are false, and only a firing could change that.
    Done,
}

pub struct Machine<'a> {
    instances: Vec<Instance<'a>>,
    queues: Vec<Queue>,
    /// The channel (and which of its consumers) at each input port, the channel at each output.
    inputs: Vec<Vec<Option<(usize, usize)>>>,
    outputs: Vec<Vec<Option<usize>>>,
    options: Options,
}

pub fn zero_of(ty: &Type) -> Scalar {
    match ty {
        Type::Float { .. } => Scalar::Float(0.0),
        Type::String => Scalar::Text("".into()),
        Type::List { elem, .. } => zero_of(elem),
        _ => Scalar::Int(0),
    }
}

/// A variable of `ty`, all zero.
pub fn fresh(ty: &Type) -> Slot {
    let n: usize = crate::ranges::dimensions(ty)
        .iter()
        .map(|n| *n as usize)
        .product();
    Slot {
        data: Rc::new(RefCell::new(vec![zero_of(ty); n])),
        offset: 0,
    }
}

fn fill(slot: &mut [Scalar], v: &Value, dims: &[u32], ty: &Type) {
    match (v, dims) {
        (Value::List(vs), [_, rest @ ..]) => {
            let each: usize = rest.iter().map(|n| *n as usize).product();
            for (part, v) in slot.chunks_mut(each.max(1)).zip(vs) {
                fill(part, v, rest, ty);
            }
        }
        _ => slot[0] = Scalar::of(v, ty),
    }
}

impl<'a> Machine<'a> {
    pub fn new(net: &'a Network, options: Options) -> Machine<'a> {
        let instances: Vec<Instance> = net
            .instances
            .iter()
            .map(|i| Instance {
                name: &i.name,
                actor: &i.actor,
                globals: i.actor.globals.iter().map(|g| fresh(&g.ty)).collect(),
                state: i.actor.fsm.as_ref().map_or(0, |f| f.initial),
                started: 0,
                printed: String::new(),
                fired: vec![0; i.actor.actions.len() + i.actor.initializers.len()],
                done: false,
            })
            .collect();
        let mut inputs: Vec<Vec<_>> = instances
            .iter()
            .map(|i| vec![None; i.actor.inputs.len()])
            .collect();
        let mut outputs: Vec<Vec<_>> = instances
            .iter()
            .map(|i| vec![None; i.actor.outputs.len()])
            .collect();
        let mut queues = Vec::new();
        for (k, c) in net.channels.iter().enumerate() {
            outputs[c.from.instance][c.from.port] = Some(k);
            for (j, e) in c.to.iter().enumerate() {
                inputs[e.instance][e.port] = Some((k, j));
            }
            let asked = c.capacity.map(|n| n as usize);
            let capacity = options.capacity.map(|n| asked.unwrap_or(n));
            let n = c.to.len();
            queues.push(Queue {
                elements: vec![VecDeque::new(); n],
                left: vec![false; n],
                capacity,
            });
        }
        Machine {
            instances,
            queues,
            inputs,
            outputs,
            options,
        }
    }

    /// Runs until nothing can fire.
    pub fn run(mut self) -> Result<Report, Fault> {
        for i in 0..self.instances.len() {
            self.make_state(i)?;
        }
        let mut left = if self.options.firings == 0 {
            u64::MAX
        } else {
            self.options.firings
        };
        let outcome = loop {
            let (mut fired, mut full) = (false, false);
            for i in 0..self.instances.len() {
                loop {
                    match self.step(i)? {
                        Step::Fired => fired = true,
                        Step::Idle => break,
                        Step::Full => {
                            full = true;
                            break;
                        }
                        Step::Done => {
                            fired |= self.leave(i);
                            break;
                        }
                    }
                    left -= 1;
                    if left == 0 {
                        return Ok(self.report(Outcome::Limit));
                    }
                }
            }
            if !fired {
                break if full {
                    Outcome::Deadlock
                } else {
                    Outcome::Ended
                };
            }
        };
        Ok(self.report(outcome))
    }

    /// Marks instance `i` as done; returns whether that is new.
    fn leave(&mut self, i: usize) -> bool {
        for (q, c) in self.inputs[i].iter().flatten() {
            self.queues[*q].elements[*c].clear();
            self.queues[*q].left[*c] = true;
        }
        !std::mem::replace(&mut self.instances[i].done, true)
    }

    fn report(self, outcome: Outcome) -> Report {
        let queue = |q: Queue| q.elements.iter().map(VecDeque::len).collect();
        let (mut printed, mut fired) = (Vec::new(), Vec::new());
        for i in self.instances {
            printed.push(i.printed);
            fired.push(i.fired);
        }
        Report {
            outcome,
            printed,
            fired,
            left: self.queues.into_iter().map(queue).collect(),
        }
    }

    fn make_state(&mut self, i: usize) -> Result<(), Fault> {
        let actor = self.instances[i].actor;
        for (g, var) in actor.globals.iter().enumerate() {
            match &var.init {
                Init::Zero => {}
                Init::Value(v) => {
                    let dims = crate::ranges::dimensions(&var.ty);
                    let ty = crate::ranges::innermost(&var.ty);
                    fill(
                        &mut self.instances[i].globals[g].data.borrow_mut(),
                        v,
                        &dims,
                        ty,
                    );
                }
                Init::Code(body) => {
                    let mut frame = self.frame(i, "the initial state", body);
                    frame.exec(&body.stmts)?;
                }
            }
        }
        Ok(())
    }

    fn frame<'m>(&'m mut self, i: usize, action: &'m str, body: &'a Body) -> eval::Frame<'m, 'a> {
        eval::Frame {
            locals: body.locals.iter().map(|l| fresh(&l.ty)).collect(),
            body,
            instance: &mut self.instances[i],
            natives: &mut self.options.natives,
            action,
        }
    }

    /// Fires one action of instance `i`, if possible.
    fn step(&mut self, i: usize) -> Result<Step, Fault> {
        let actor = self.instances[i].actor;
        while let Some(init) = actor.initializers.get(self.instances[i].started) {
            let id = actor.actions.len() + self.instances[i].started;
            match self.attempt(i, init, id)? {
                Try::Fired => {
                    self.instances[i].started += 1;
                    return Ok(Step::Fired);
                }
                Try::NoElements => return Ok(Step::Idle),
                Try::NoRoom => return Ok(Step::Full),
                Try::False => self.instances[i].started += 1,
            }
        }
        let outside = actor.outside.iter().map(|id| (*id, None));
        let transitions = actor.fsm.iter().flat_map(|f| {
            f.transitions[self.instances[i].state]
                .iter()
                .map(|t| (t.action, Some(t.to)))
        });
        let candidates: Vec<_> = outside.chain(transitions).collect();
        let (mut full, mut lacking) = (false, false);
        for (id, to) in candidates {
            let action = &actor.actions[id];
            match self.attempt(i, action, id)? {
                Try::Fired => {
                    if let Some(to) = to {
                        self.instances[i].state = to;
                    }
                    return Ok(Step::Fired);
                }
                Try::NoRoom => {
                    full = true;
                    if !action.schedule_outputs {
                        break;
                    }
                }
                Try::NoElements => lacking = true,
                Try::False => {}
            }
        }
        let mut all = actor.actions.iter().chain(&actor.initializers);
        let fickle = all.any(|a| crate::ir::action::asks_native(actor, a));
        Ok(match (full, lacking || fickle) {
            (true, _) => Step::Full,
            (_, true) => Step::Idle,
            _ => Step::Done,
        })
    }

    fn attempt(&mut self, i: usize, action: &'a Action, id: usize) -> Result<Try, Fault> {
        for (port, n) in crate::ir::action::consumed(action) {
            let has = self.inputs[i][port].map_or(0, |(q, c)| self.queues[q].elements[c].len());
            if has < n as usize {
                return Ok(Try::NoElements);
            }
        }
        let inputs = self.bind(i, action, &action.guard.body);
        let mut frame = self.frame(i, &action.name, &action.guard.body);
        frame.set(inputs);
        frame.exec(&action.guard.body.stmts)?;
        for c in &action.guard.conditions {
            if frame.eval(c)? == Scalar::Int(0) {
                return Ok(Try::False);
            }
        }
        for (port, n) in crate::ir::action::produced(action) {
            if let Some(q) = self.outputs[i][port] {
                let q = &self.queues[q];
                let used = q.elements.iter().map(VecDeque::len).max().unwrap_or(0);
                if q.capacity.is_some_and(|c| used + n as usize > c) {
                    return Ok(Try::NoRoom);
                }
            }
        }
        let inputs = self.bind(i, action, &action.body);
        for (port, n) in crate::ir::action::consumed(action) {
            if let Some((q, c)) = self.inputs[i][port] {
                self.queues[q].elements[c].drain(..n as usize);
            }
        }
        let mut frame = self.frame(i, &action.name, &action.body);
        frame.set(inputs);
        frame.exec(&action.body.stmts)?;
        let mut out = Vec::new();
        for o in &action.outputs {
            let ty = &frame.instance.actor.outputs[o.port].ty;
            for k in 0..o.repeat as usize {
                for v in &o.values {
                    let element = match v {
                        OutputValue::Scalar(e) => {
                            let x = frame.eval(e)?;
                            convert(x, ty)
                        }
                        OutputValue::List(var) => {
                            let slot = frame.slot(*var);
                            let x = slot.data.borrow()[slot.offset + k].clone();
                            convert(x, ty)
                        }
                    };
                    out.push((o.port, element));
                }
            }
        }
        self.instances[i].fired[id] += 1;
        for (port, element) in out {
            if let Some(q) = self.outputs[i][port] {
                let Queue { elements, left, .. } = &mut self.queues[q];
                for (c, _) in elements.iter_mut().zip(left).filter(|(_, left)| !**left) {
                    c.push_back(element.clone());
                }
            }
        }
        Ok(Try::Fired)
    }

    /// The values of the input patterns' variables, without consuming the elements.
    fn bind(&self, i: usize, action: &Action, body: &Body) -> Vec<(usize, Slot)> {
        let mut offset = vec![0usize; self.inputs[i].len()];
        let mut bound = Vec::new();
        for input in &action.inputs {
            let Some((q, c)) = self.inputs[i][input.port] else {
                continue;
            };
            let elements = &self.queues[q].elements[c];
            let n = input.vars.len();
            for (j, l) in input.vars.iter().enumerate() {
                let Some(local) = body.locals.get(*l) else {
                    continue;
                };
                let ty = crate::ranges::innermost(&local.ty);
                let count = if input.is_list {
                    input.repeat as usize
                } else {
                    1
                };
                let data = (0..count)
                    .map(|k| &elements[offset[input.port] + k * n + j])
                    .map(|x| convert(x.clone(), ty))
                    .collect();
                bound.push((
                    *l,
                    Slot {
                        data: Rc::new(RefCell::new(data)),
                        offset: 0,
                    },
                ));
            }
            offset[input.port] += input.count() as usize;
        }
        bound
    }
}

enum Try {
    Fired,
    NoElements,
    False,
    NoRoom,
}
