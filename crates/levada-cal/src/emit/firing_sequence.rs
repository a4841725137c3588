// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Firing sequences: firings in an order that is known beforehand, emitted as one function (static scheduling of a
//! part of the state space).
//!
//! Many actors count: nine rows of nine samples, 63 coefficients, the bits of a byte. Their guards depend only on
//! the counters, and the action that begins a sequence sets these to constants. So when it fires, all following
//! firings are known, until a guard reads an element or the first action is next again. If elements and room
//! suffice for the whole sequence, it runs as one function: no guard is evaluated and no cursor moved in between.
//! The C compiler then knows the counters at each firing, and values pass from firing to firing in registers.
//!
//! The sequence equals what the scheduler would choose: in each state the actions are tried in order, and one fires
//! if its guard is true for any input and the guards of those before it are false for any input. If elements or
//! room are missing, the firings are done one by one as usual.

use super::class::{Class, FiringSequence, Home};
use super::refire_loop::PREFETCH_ELEMENTS_MIN;
use super::value::scalar;
use super::writer::{Writer, comment};
use crate::c_types::{c_type, const_type};
use crate::ir::action::{consumed, produced};
use crate::ir::*;
use crate::ranges::{Globals, ways};

/// Maximum length of a sequence.
const FIRINGS_MAX: usize = 256;

/// Up to this weight all firings are written out; beyond it, runs of the same action become loops.
const UNROLLED_WEIGHT_MAX: usize = 12_000;

/// Maximum total weight of an actor's sequences, which limits the size of its C code.
const ACTOR_WEIGHT_MAX: usize = 40_000;

/// Maximum number of repetitions of a sequence before other actions are tried.
const REPEATS_MAX: u32 = 64;

/// Minimum length of a run that becomes a loop.
const LOOP_FIRINGS_MIN: usize = 4;

/// Actors with more actions are not analysed: they are parsers with actions that depend on their input, and the
/// analysis would take long.
const ACTOR_ACTIONS_MAX: usize = 64;

/// Minimum length of a sequence that does not repeat; shorter ones save too little.
const FIRINGS_MIN: usize = 4;

impl<'a> Class<'a> {
    /// The sequences of this actor, the longest first. None begins with a firing that is part of another.
    pub fn plan_sequences(&self) -> Vec<FiringSequence> {
        let a = self.actor;
        if self.may_wait() || a.native.is_some() || a.actions.len() > ACTOR_ACTIONS_MAX {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (s, globals) in self.ranges.at_states().iter().enumerate() {
            let Some(globals) = globals else { continue };
            for (id, to) in ways(a, s) {
                // With a schedule, actions outside of it fire in any state.
                if a.fsm.is_none() || !a.outside.contains(&id) {
                    found.extend(self.sequence(globals, (s, id), to));
                }
            }
        }
        let takes = |c: &FiringSequence| !a.actions[c.steps[0]].inputs.is_empty();
        found.sort_by_key(|(c, _)| std::cmp::Reverse((c.steps.len(), takes(c))));
        let (mut chosen, mut parts, mut weight) = (Vec::new(), Vec::new(), 0);
        for (sequence, firings) in found {
            if weight + sequence.weight <= ACTOR_WEIGHT_MAX && !parts.contains(&firings[0]) {
                weight += sequence.weight;
                parts.extend(firings);
                chosen.push(sequence);
            }
        }
        chosen
    }

    /// The sequence that follows this action in this state, and its firings with their states.
    fn sequence(
        &self,
        globals: &Globals,
        head: (usize, ActionId),
        to: usize,
    ) -> Option<(FiringSequence, Vec<(usize, ActionId)>)> {
        let a = self.actor;
        let (first, mut state) = (&a.actions[head.1], to);
        let held = self.ranges.holding(globals, first)?;
        let mut now = self.ranges.after(globals, first)?;
        let (mut firings, mut again) = (vec![head], false);
        if !self.is_light(first) {
            return None;
        }
        while firings.len() < FIRINGS_MAX {
            let Some((id, next)) = self.next(&now, state) else {
                break;
            };
            if (state, id) == head {
                again = true;
                break;
            }
            let Some(after) = self.ranges.after(&now, &a.actions[id]) else {
                break;
            };
            firings.push((state, id));
            (now, state) = (after, next);
        }
        let least = if again { 2 } else { FIRINGS_MIN };
        if firings.len() < least {
            return None;
        }
        let known = (0..a.globals.len())
            .filter(|g| matches!(self.homes[*g], Home::Register(_)))
            .filter_map(|g| Some((g, self.ranges.value(&held, g)?)));
        let steps: Vec<ActionId> = firings.iter().map(|f| f.1).collect();
        let sequence = FiringSequence {
            state: head.0,
            to: state,
            again,
            known: known.collect(),
            weight: steps.iter().map(|id| self.weight(&a.actions[*id])).sum(),
            steps,
        };
        Some((sequence, firings))
    }

    /// The action that fires next for any input, and the next state; `None` if that depends on input.
    fn next(&self, now: &Globals, state: usize) -> Option<(ActionId, usize)> {
        for (id, to) in ways(self.actor, state) {
            let action = &self.actor.actions[id];
            if !self.is_light(action) || self.may_fault(action) {
                return None;
            }
            match self.ranges.says(now, action) {
                Some(true) => return Some((id, to)),
                Some(false) => {}
                None => return None,
            }
        }
        None
    }

    /// The index of the sequence that begins with this action in this state.
    pub fn sequence_of(&self, state: usize, id: ActionId) -> Option<usize> {
        let begins = |c: &FiringSequence| c.state == state && c.steps[0] == id;
        self.sequences.iter().position(begins)
    }

    /// The total elements that a sequence consumes from each input, or produces for each output.
    fn total(
        &self,
        sequence: &FiringSequence,
        of: fn(&Action) -> Vec<(usize, u32)>,
        ports: usize,
    ) -> Vec<(usize, u32)> {
        let mut sums = vec![0; ports];
        for id in &sequence.steps {
            for (port, n) in of(&self.actor.actions[*id]) {
                sums[port] += n;
            }
        }
        let used = sums.into_iter().enumerate().filter(|(_, n)| *n > 0);
        used.collect()
    }

    /// Emits `P_sequence_K`, which runs the sequence `n` times.
    pub fn emit_sequences(&self, w: &mut Writer<'a>) {
        for (k, sequence) in self.sequences.iter().enumerate() {
            self.emit_sequence(w, k, sequence);
        }
    }

    fn emit_sequence(&self, w: &mut Writer<'a>, k: usize, sequence: &FiringSequence) {
        let a = self.actor;
        let takes = self.total(sequence, consumed, a.inputs.len());
        let gives = self.total(sequence, produced, a.outputs.len());
        let mut params = vec![
            "lvd_actor *self LEVADA_UNUSED".into(),
            format!("{}_state *S LEVADA_UNUSED", self.prefix),
        ];
        if self.has_registers() {
            params.push(format!("{}_registers *R", self.prefix));
        }
        params.push("uint32_t n".to_string());
        for (port, _) in &takes {
            let c = const_type(&a.inputs[*port].ty);
            params.push(format!("{c} *restrict {}", self.inputs[*port]));
        }
        for (port, _) in &gives {
            let c = c_type(&a.outputs[*port].ty);
            params.push(format!("{c} *restrict {}", self.outputs[*port]));
        }
        w.own();
        w.put(&format!("\n/* Fires {}. */", self.description(sequence)));
        w.put("static __attribute__((noinline))");
        let name = format!("{}_sequence_{k}", self.prefix);
        w.put(&format!("void {name}({}) {{", params.join(", ")));
        if self.has_registers() {
            w.put(&format!("{}_registers r = *R;", self.prefix));
        }
        w.put("for (; n > 0; n--) {");
        for (g, value) in &sequence.known {
            if let Home::Register(name) = &self.homes[*g] {
                let ty = &a.globals[*g].ty;
                let value = match ty {
                    Type::Bool => Value::Bool(*value != 0),
                    _ => Value::Int(*value as i64),
                };
                w.put(&format!("r.{name} = {};", scalar(&value, ty)));
            }
        }
        let mut at = (vec![0u32; a.inputs.len()], vec![0u32; a.outputs.len()]);
        let mut rest = &sequence.steps[..];
        let mut last = None;
        while let Some(id) = rest.first() {
            let run = rest.iter().take_while(|x| *x == id).count();
            let (action, name) = (&a.actions[*id], &self.actions[*id]);
            if last.is_some_and(|last| last != *id) || sequence.again {
                w.put(&format!("LEVADA_FIRES({id});"));
            }
            last = Some(*id);
            let turn = if sequence.weight > UNROLLED_WEIGHT_MAX && run >= LOOP_FIRINGS_MIN {
                w.put(&format!("for (uint32_t k = 0; k < {run}; k++)"));
                run
            } else {
                1
            };
            let args = self.arguments_in(action, &at, turn > 1);
            w.put(&format!("{name}({args});"));
            for (port, n) in consumed(action) {
                at.0[port] += n * turn as u32;
            }
            for (port, n) in produced(action) {
                at.1[port] += n * turn as u32;
            }
            rest = &rest[turn..];
        }
        for (port, n) in &takes {
            w.put(&format!("{} += {n};", self.inputs[*port]));
        }
        for (port, n) in &gives {
            w.put(&format!("{} += {n};", self.outputs[*port]));
        }
        w.put("}");
        if self.has_registers() {
            w.put("*R = r;");
        }
        w.put("}");
    }

    /// The arguments of an action with elements that start at offsets `at`; in a loop, after `k` previous firings.
    fn arguments_in(&self, action: &Action, at: &(Vec<u32>, Vec<u32>), in_loop: bool) -> String {
        let mut args = vec!["self".to_string(), "S".to_string()];
        if self.has_registers() {
            args.push("&r".to_string());
        }
        let place = |name: &str, from: u32, n: u32| match (in_loop, n) {
            (false, _) => format!("{name} + {from}"),
            (true, 1) => format!("{name} + {from} + k"),
            (true, n) => format!("{name} + {from} + (size_t)k * {n}"),
        };
        for (port, n) in consumed(action) {
            args.push(place(&self.inputs[port], at.0[port], n));
        }
        for (port, n) in produced(action) {
            args.push(place(&self.outputs[port], at.1[port], n));
        }
        args.join(", ")
    }

    /// Describes a sequence for a comment in the C code.
    fn description(&self, sequence: &FiringSequence) -> String {
        let mut parts = Vec::new();
        let mut rest = &sequence.steps[..];
        while let Some(id) = rest.first() {
            let run = rest.iter().take_while(|x| *x == id).count();
            let name = comment(&self.actor.actions[*id].name);
            parts.push(match run {
                1 => name,
                n => format!("{name} {n} times"),
            });
            rest = &rest[run..];
        }
        const RUNS_SHOWN_MAX: usize = 6;
        if parts.len() > RUNS_SHOWN_MAX {
            parts.truncate(RUNS_SHOWN_MAX);
            parts.push(format!("and so on, {} in all", sequence.steps.len()));
        }
        parts.join(", ")
    }

    /// Emits the call of a sequence if elements and room suffice, at a point where its first action can fire.
    pub fn call_sequence(&self, w: &mut Writer<'a>, k: usize, fired: &dyn Fn(&mut Writer<'a>)) {
        let (a, sequence) = (self.actor, &self.sequences[k]);
        let takes = self.total(sequence, consumed, a.inputs.len());
        let gives = self.total(sequence, produced, a.outputs.len());
        let sides = [
            (&takes, &self.inputs, "LEVADA_ELEMENTS"),
            (&gives, &self.outputs, "LEVADA_ROOM"),
        ];
        w.put(&format!("{{ /* {}, as one */", self.description(sequence)));
        let most = if sequence.again { REPEATS_MAX } else { 1 };
        w.put(&format!("uint32_t lvd_n = {most};"));
        for (rates, names, look) in sides {
            for (port, n) in rates {
                let name = &names[*port];
                w.put(&format!(
                    "if (lvd_n > 0 && {name}_n < {n}) {look}({name}, {port}, {n});"
                ));
                if sequence.again {
                    w.put(&format!(
                        "if ({name}_n / {n} < lvd_n) lvd_n = {name}_n / {n};"
                    ))
                } else {
                    w.put(&format!("if ({name}_n < {n}) lvd_n = 0;"))
                }
            }
        }
        w.put("if (lvd_n > 0) {");
        w.put(&format!("LEVADA_FIRES({});", sequence.steps[0]));
        for (port, n) in gives.iter().filter(|g| g.1 >= PREFETCH_ELEMENTS_MIN) {
            let name = &self.outputs[*port];
            w.put(&format!("levada_ahead({name}, {n} * sizeof *{name});"));
        }
        let mut args = vec!["self".to_string(), "S".to_string()];
        if self.has_registers() {
            // The copy is in memory, so that the original can stay in registers.
            w.put(&format!("{}_registers lvd_held = *R;", self.prefix));
            args.push("&lvd_held".to_string());
        }
        args.push("lvd_n".to_string());
        for (rates, names, _) in sides {
            args.extend(rates.iter().map(|(port, _)| names[*port].clone()));
        }
        w.put(&format!(
            "{}_sequence_{k}({});",
            self.prefix,
            args.join(", ")
        ));
        if self.has_registers() {
            w.put("*R = lvd_held;");
        }
        for (rates, names, _) in sides {
            for (port, n) in rates {
                let name = &names[*port];
                w.put(&format!("{name} += lvd_n * {n}, {name}_n -= lvd_n * {n};"));
            }
        }
        let mut counts: Vec<(ActionId, usize)> = Vec::new();
        for id in &sequence.steps {
            match counts.iter_mut().find(|c| c.0 == *id) {
                Some(c) => c.1 += 1,
                None => counts.push((*id, 1)),
            }
        }
        for (id, n) in counts {
            w.put(&format!("self->fired[{id}] += lvd_n * UINT64_C({n});"));
        }
        fired(w);
        w.put("}");
        w.put("}");
    }
}
