// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Emits `run`, which selects the next action to fire.
//!
//! Ports live in local variables (see the prelude). In a state the candidates are tried in order: enough elements,
//! then the guard, then room. What is missing is awaited: elements on one port for each action that lacks some, or
//! room for the action that could fire otherwise. Lack of room ends the scan, unless the action is marked
//! `@schedule_outputs`. A guard that is false with all its elements available can change only by a firing, so
//! nothing is awaited for it. In one scan each port is read once (`candidate_scan.rs`): otherwise an element that
//! arrives between two reads could let an action fire although one of higher priority could.
//!
//! If all guards of an actor are false with all their elements available, it will never fire again; nor if all its
//! consumers have closed and it has no other effect: it returns `LVD_RUN_DONE`.
//!
//! If one small action is the only candidate repeatedly, it fires in a loop of its own (`P_name_many`), as often as
//! elements and room allow, which the C compiler can vectorise. The loop runs in slices and prefetches for each
//! slice the cache lines that the slice after the next will write: with the consumer on a distant core this
//! increases throughput by a fifth, and on one worker it costs nothing. A counting guard is not evaluated in the
//! loop (`counted_loop.rs`). An action that calls a native, which may take long, checks after each firing whether
//! other actors want the worker.

use super::candidate_scan::CandidateScan;
use super::class::{Class, Home};
use super::refire_loop::{PREFETCH_ELEMENTS_MIN, guard_reads_state_only};
use super::writer::{Writer, comment};
use crate::c_types::{c_type, const_type, size_of};
use crate::ir::action::{asks_native, calls_native, consumed, produced};
use crate::ir::visit::{any_stmt, exprs_of, walk};
use crate::ir::*;
use std::collections::HashMap;

/// Bytes that a loop writes on a port between two prefetches: four cache lines.
const SLICE_BYTES: u32 = 256;

/// With more actions outside of the schedule, trying them before a jump to a state is no shortcut.
const OUTSIDE_ACTIONS_MAX: usize = 4;

/// The next step after a firing.
#[derive(Clone)]
enum Next {
    /// Jump to a state's label, with `lvd_state` set to this number.
    State(usize),
    /// Back to the top, where actions outside of the schedule are tried and the state is read; the state is given if
    /// it is known.
    Again(Option<usize>),
}

/// What is known at the point where an action is tried.
type Known<'k> = (
    &'k CandidateScan,
    // The available elements, by port.
    &'k HashMap<usize, u32>,
    // If it may fire again at once: the actions that are tried before it.
    Option<&'k [ActionId]>,
    // The sequence that begins with it, and the step after that.
    Option<(usize, Next)>,
);

impl<'a> Class<'a> {
    pub fn emit_run(&self, w: &mut Writer<'a>) {
        let a = self.actor;
        let starts = a.initializers.len();
        self.emit_loops(w);
        self.emit_sequences(w);
        self.emit_vlc_tables(w);
        w.own();
        w.put(&format!(
            "\nstatic lvd_run_result {}_run(lvd_actor *self) {{",
            self.prefix
        ));
        w.put(&format!(
            "{}_state *const S LEVADA_UNUSED = self->state;",
            self.prefix
        ));
        if self.has_registers() {
            w.put(&format!(
                "{0}_registers lvd_registers, *const R = &lvd_registers;",
                self.prefix
            ));
            for (name, _) in self.registers() {
                w.put(&format!("R->{name} = S->{name};"));
            }
        }
        for (i, port) in a.inputs.iter().enumerate() {
            let (c, name) = (const_type(&port.ty), &self.inputs[i]);
            w.put(&format!(
                "{c} *{name} LEVADA_UNUSED = lvd_get_span(&self->in[{i}]);"
            ));
            w.put(&format!("uint32_t {name}_n = 0, {name}_size = 0;"));
        }
        for (i, port) in a.outputs.iter().enumerate() {
            let (c, name) = (c_type(&port.ty), &self.outputs[i]);
            w.put(&format!(
                "{c} *{name} LEVADA_UNUSED = lvd_put_span(&self->out[{i}]);"
            ));
            w.put(&format!("uint32_t {name}_n = 0, {name}_size = 0;"));
        }
        for name in self.inputs.iter().chain(&self.outputs) {
            w.put(&format!("bool {name}_looked LEVADA_UNUSED = false;"));
        }
        w.put("bool lvd_waits LEVADA_UNUSED = false;");

        let states = a.fsm.as_ref().map_or(1, |f| f.states.len());
        // Actions outside of the schedule are tried first in every scan.
        let dispatch = a.fsm.is_some() && !a.outside.is_empty();
        let state_number = |s: usize| starts + s;
        let initial = a.fsm.as_ref().map_or(0, |f| f.initial);
        let (whole_scan, none) = (self.whole_scan(), HashMap::new());

        if starts > 0 || states > 1 || dispatch {
            w.put("");
            if dispatch {
                w.put("lvd_again: ;");
                self.begin(w, whole_scan);
            }
            w.put("switch (S->lvd_state) {");
            for i in 0..starts {
                w.put(&format!("case {i}: goto lvd_start_{i};"));
            }
            if !dispatch {
                for s in 0..states {
                    w.put(&format!(
                        "case {}: goto {};",
                        state_number(s),
                        self.label(s)
                    ));
                }
            }
            w.put("default: break;");
            w.put("}");
        }
        if !dispatch && states > 1 {
            w.put(&format!("goto {};", self.label(initial)));
        } else if starts > 0 {
            let to = if dispatch {
                "lvd_ready".to_string()
            } else {
                self.label(0)
            };
            w.put(&format!("goto {to};"));
        }

        for (i, init) in a.initializers.iter().enumerate() {
            w.put("");
            w.put(&format!(
                "lvd_start_{i}: ; /* initialize {} */",
                comment(&init.name)
            ));
            let last = i + 1 == starts;
            let (number, to) = if last {
                let to = if dispatch {
                    "lvd_again".to_string()
                } else {
                    self.label(initial)
                };
                (state_number(initial), to)
            } else {
                (i + 1, format!("lvd_start_{}", i + 1))
            };
            self.attempt_start(w, a.actions.len() + i, &format!("lvd_started_{i}"), &|w| {
                w.put(&format!("S->lvd_state = {number};"));
                w.put(&format!("goto {to};"));
            });
            // Its guard is false: the initializer is skipped.
            w.put(&format!("lvd_started_{i}: LEVADA_UNUSED;"));
            w.put(&format!("S->lvd_state = {number};"));
            w.put(&format!("goto {to};"));
        }

        if dispatch {
            let fsm = a.fsm.as_ref().expect("dispatch");
            w.put("");
            w.put("lvd_ready: LEVADA_UNUSED;");
            for (k, id) in a.outside.iter().enumerate() {
                let skip = format!("lvd_outside_{k}");
                let wait = |w: &mut Writer<'a>| w.put("goto lvd_wait;");
                // Actions after it in a state do not matter: the next scan also begins here.
                let before = &a.outside[..k];
                let again = self.can_refire(*id, before).then_some(before);
                self.attempt(
                    w,
                    *id,
                    (whole_scan, &none, again, None),
                    &skip,
                    &wait,
                    &|w| self.fired(w, *id, &Next::Again(None)),
                );
                w.put(&format!("{skip}: ;"));
            }
            w.put("switch (S->lvd_state) {");
            for s in 0..states {
                w.put(&format!(
                    "case {}: goto {};",
                    state_number(s),
                    self.label(s)
                ));
            }
            w.put(&format!("default: goto {};", self.label(initial)));
            w.put("}");
            for s in 0..states {
                let list: Vec<_> = fsm.transitions[s]
                    .iter()
                    .map(|t| (t.action, Next::Again(Some(t.to))))
                    .collect();
                self.emit_state_of(w, s, state_number(s), &list, Some(whole_scan));
            }
        } else if let Some(fsm) = &a.fsm {
            for s in 0..states {
                let list: Vec<_> = fsm.transitions[s]
                    .iter()
                    .map(|t| (t.action, Next::State(t.to)))
                    .collect();
                self.emit_state_of(w, s, state_number(s), &list, None);
            }
        } else {
            let list: Vec<_> = a.outside.iter().map(|id| (*id, Next::State(0))).collect();
            self.emit_state_of(w, 0, state_number(0), &list, None);
        }

        w.put("");
        w.put("lvd_wait: LEVADA_UNUSED;");
        self.leave(w);
        if self.prints() {
            w.put("levada_print_show();");
        }
        // There is nothing to wait for, and no native's result may change: it will never fire again.
        if self.all_actions().any(|x| asks_native(a, x)) {
            w.put("return LVD_RUN_WAIT;");
        } else {
            w.put("return lvd_waits ? LVD_RUN_WAIT : LVD_RUN_DONE;");
        }
        w.put("lvd_yield: LEVADA_UNUSED;");
        self.leave(w);
        w.put("return LVD_RUN_YIELD;");
        if self.is_pure() && !a.outputs.is_empty() {
            // No consumer will see its output any more.
            w.put("lvd_done: LEVADA_UNUSED;");
            self.leave(w);
            w.put("return LVD_RUN_DONE;");
        }
        w.put("}");
    }

    fn label(&self, s: usize) -> String {
        match &self.actor.fsm {
            Some(f) => {
                let clean: String = f.states[s]
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                    .collect();
                format!("s{s}_{clean}")
            }
            None => "s_fire".to_string(),
        }
    }

    fn number(&self, s: usize) -> usize {
        self.actor.initializers.len() + s
    }

    /// Stores local variables to where the runtime reads them.
    fn leave(&self, w: &mut Writer<'a>) {
        for (name, _) in self.registers() {
            w.put(&format!("S->{name} = R->{name};"));
        }
        for (i, name) in self.inputs.iter().enumerate() {
            w.put(&format!(
                "lvd_get_done(&self->in[{i}], {name}_size - {name}_n);"
            ));
        }
        for (i, name) in self.outputs.iter().enumerate() {
            w.put(&format!(
                "lvd_put_done(&self->out[{i}], {name}_size - {name}_n);"
            ));
        }
    }

    fn emit_state_of(
        &self,
        w: &mut Writer<'a>,
        s: usize,
        number: usize,
        list: &[(ActionId, Next)],
        // The scan that this state continues, if it does not begin one.
        begun: Option<&CandidateScan>,
    ) {
        let a = self.actor;
        w.put("");
        let name = a.fsm.as_ref().map_or("", |f| f.states[s].as_str());
        w.put(&format!(
            "{}: ; {}",
            self.label(s),
            if name.is_empty() {
                String::new()
            } else {
                format!("/* state {} */", comment(name))
            }
        ));
        let stay = if a.fsm.is_some() {
            format!("S->lvd_state = {number};")
        } else {
            String::new()
        };
        // While it waits for input, a new version may replace it.
        if !stay.is_empty() && self.restarts() {
            w.put(&stay);
        }
        let wait = |w: &mut Writer<'a>| {
            if !stay.is_empty() {
                w.put(&stay);
            }
            w.put("goto lvd_wait;");
        };

        let mut looped = false;
        if let [(id, Next::State(to)), rest @ ..] = list
            && *to == s
            && (rest.is_empty() || a.actions[*id].schedule_outputs)
            && self.loops(*id)
        {
            looped = true;
            self.call_loop(w, *id, number);
        }

        // Elements that all of them need are read once.
        let ids: Vec<_> = list.iter().map(|(id, _)| *id).collect();
        let mut common: Vec<(usize, u32)> = Vec::new();
        if let Some((first, rest)) = ids.split_first() {
            common = consumed(&a.actions[*first]);
            for id in rest {
                let needs: HashMap<usize, u32> = consumed(&a.actions[*id]).into_iter().collect();
                common.retain_mut(|(port, n)| match needs.get(port) {
                    Some(m) => {
                        *n = *m.min(n);
                        true
                    }
                    None => false,
                });
                if common.is_empty() {
                    break;
                }
            }
        }
        let there = common.iter().copied().collect();
        let own;
        let round = match begun {
            Some(round) => round,
            None => {
                own = CandidateScan::new(a, &ids, &common);
                self.begin(w, &own);
                &own
            }
        };
        for (port, n) in &common {
            self.look_for_elements(w, round, *port, *n, &wait);
        }
        for (k, (id, next)) in list.iter().enumerate() {
            let skip = format!("lvd_{s}_{k}");
            let before = &ids[..k];
            let again = matches!(next, Next::State(to) if *to == s)
                && !(k == 0 && looped)
                && self.can_refire(*id, before);
            let sequence = self.sequence_of(s, *id).map(|k| {
                let to = self.sequences[k].to;
                let end = match next {
                    Next::State(_) => Next::State(to),
                    Next::Again(_) => Next::Again(Some(to)),
                };
                (k, end)
            });
            let known = (round, &there, again.then_some(before), sequence);
            self.attempt(w, *id, known, &skip, &wait, &|w| self.fired(w, *id, next));
            w.put(&format!("{skip}: LEVADA_UNUSED;"));
        }
        wait(w);
    }

    /// Begins a new scan: no port has been read.
    fn begin(&self, w: &mut Writer<'a>, round: &CandidateScan) {
        let sides = [
            (&round.inputs, &self.inputs),
            (&round.outputs, &self.outputs),
        ];
        for (looks, names) in sides {
            for (look, name) in looks.iter().zip(names) {
                if look.is_some() {
                    w.put(&format!("{name}_looked = false;"));
                }
            }
        }
    }

    /// Reads port `name` with `how`, unless this scan has done so.
    fn look(w: &mut Writer<'a>, how: &str, look: Option<u32>, name: &str, port: usize, n: u32) {
        match look {
            Some(most) => {
                w.put(&format!("if (!{name}_looked) {{"));
                w.put(&format!("{how}({name}, {port}, {most});"));
                w.put(&format!("{name}_looked = true;"));
                w.put("}");
            }
            None => w.put(&format!("{how}({name}, {port}, {n});")),
        }
    }

    /// Continues if input `port` has `n` elements, else awaits them and does `otherwise`.
    fn look_for_elements(
        &self,
        w: &mut Writer<'a>,
        round: &CandidateScan,
        port: usize,
        n: u32,
        otherwise: &dyn Fn(&mut Writer<'a>),
    ) {
        let name = &self.inputs[port];
        w.put(&format!("if (LVD_UNLIKELY({name}_n < {n})) {{"));
        Self::look(w, "LEVADA_ELEMENTS", round.inputs[port], name, port, n);
        w.put(&format!("if ({name}_n < {n}) {{"));
        w.put(&format!("levada_await_elements(self, {port}, {n});"));
        w.put("lvd_waits = true;");
        otherwise(w);
        w.put("}");
        w.put("}");
    }

    /// Tries an initializer; if its elements are missing, nothing else is tried.
    fn attempt_start(
        &self,
        w: &mut Writer<'a>,
        id: usize,
        skip: &str,
        fired: &dyn Fn(&mut Writer<'a>),
    ) {
        let wait = |w: &mut Writer<'a>| w.put("goto lvd_wait;");
        let action = self.all_actions().nth(id).expect("an action");
        let round = CandidateScan::new(self.actor, &[], &[]);
        for (port, n) in consumed(action) {
            self.look_for_elements(w, &round, port, n, &wait);
        }
        let there = consumed(action).into_iter().collect();
        let known = (&round, &there, None, None);
        self.attempt(w, id, known, skip, &wait, fired);
    }

    /// Tries one action: jumps to `skip` if it cannot fire, does `wait` if only room is missing.
    fn attempt(
        &self,
        w: &mut Writer<'a>,
        id: usize,
        // The scan that it belongs to, and the elements that are known to be available.
        (round, known, before, sequence): Known,
        skip: &str,
        wait: &dyn Fn(&mut Writer<'a>),
        fired: &dyn Fn(&mut Writer<'a>),
    ) {
        let action = self.all_actions().nth(id).expect("an action");
        w.put(&format!("/* {} */", comment(&action.name)));
        for (port, n) in consumed(action) {
            if known.get(&port).is_none_or(|there| *there < n) {
                let skip = format!("goto {skip};");
                self.look_for_elements(w, round, port, n, &|w| w.put(&skip));
            }
        }
        if !action.guard.conditions.is_empty() {
            let args = self.arguments(action, false, "");
            if self.may_fault(action) {
                w.put(&format!("LEVADA_FIRES({id});"));
            }
            w.put(&format!(
                "if (!{}_guard({args})) goto {skip};",
                self.actions[id]
            ));
        }
        for (port, n) in produced(action) {
            let name = &self.outputs[port];
            w.put(&format!("if (LVD_UNLIKELY({name}_n < {n})) {{"));
            Self::look(w, "LEVADA_ROOM", round.outputs[port], name, port, n);
            if self.is_pure() {
                w.put("if (levada_consumers_closed(self)) goto lvd_done;");
            }
            w.put(&format!("if ({name}_n < {n}) {{"));
            w.put(&format!("levada_await_room(self, {port}, {n});"));
            w.put("lvd_waits = true;");
            if action.schedule_outputs {
                w.put(&format!("goto {skip};"));
            } else {
                wait(w);
            }
            w.put("}");
            w.put("}");
        }
        if let Some((k, end)) = sequence {
            self.call_sequence(w, k, &|w| self.fired(w, id, &end));
        }
        w.put(&format!("LEVADA_FIRES({id});"));
        for (port, n) in produced(action) {
            let name = &self.outputs[port];
            // Fewer are not worth a prefetch.
            if n >= PREFETCH_ELEMENTS_MIN {
                w.put(&format!("levada_ahead({name}, {n} * sizeof *{name});"));
            }
        }
        match before {
            Some(before) => self.emit_refire_loop(w, id, before),
            None => self.fire_once(w, id),
        }
        fired(w);
    }

    fn fire_once(&self, w: &mut Writer<'a>, id: usize) {
        let action = self.all_actions().nth(id).expect("an action");
        w.put(&format!(
            "{}({});",
            self.actions[id],
            self.arguments(action, true, "")
        ));
        w.put(&format!("self->fired[{id}]++;"));
        for (port, n) in consumed(action) {
            let name = &self.inputs[port];
            w.put(&format!("{name} += {n}, {name}_n -= {n};"));
        }
        for (port, n) in produced(action) {
            let name = &self.outputs[port];
            w.put(&format!("{name} += {n}, {name}_n -= {n};"));
            if self.may_wait() {
                w.put(&format!("LEVADA_PUT({name}, {port});"));
            }
        }
    }

    /// After a firing: await conditions of this scan are void, and other actors may want the worker.
    fn fired(&self, w: &mut Writer<'a>, id: usize, next: &Next) {
        let a = self.actor;
        let action = &a.actions[id];
        let (number, to) = match next {
            Next::State(s) => (a.fsm.is_some().then(|| self.number(*s)), self.label(*s)),
            Next::Again(s) => (s.map(|s| self.number(s)), "lvd_again".to_string()),
        };
        let several = a.actions.len() > 1;
        if several {
            w.put("if (LVD_UNLIKELY(lvd_waits)) levada_await_nothing(self), lvd_waits = false;");
        }
        let store = number.map(|n| format!("S->lvd_state = {n};"));
        if let (Next::Again(_), Some(store)) = (next, &store) {
            w.put(store);
        }
        // Small firings with ports end with the span, which is soon enough.
        let ports = !(action.inputs.is_empty() && action.outputs.is_empty());
        let soon = self.is_light(action) && ports && !calls_native(a, action);
        if !soon || matches!(next, Next::Again(_)) {
            match (&store, next) {
                (Some(store), Next::State(_)) => {
                    w.put("if (lvd_should_yield(self)) {");
                    w.put(store);
                    w.put("goto lvd_yield;");
                    w.put("}");
                }
                _ => w.put("if (lvd_should_yield(self)) goto lvd_yield;"),
            }
        }
        if let Next::Again(Some(s)) = next {
            self.go_past(w, *s);
        }
        w.put(&format!("goto {to};"));
    }

    /// Jumps to a state directly if no action outside of the schedule can fire.
    fn go_past(&self, w: &mut Writer<'a>, s: usize) {
        let a = self.actor;
        let outside = || a.outside.iter().map(|id| &a.actions[*id]);
        let seen = |x: &Action| {
            // Without a guard it fires as soon as its elements are available.
            !x.guard.conditions.is_empty() && self.is_light(x) && !self.may_fault(x)
        };
        if a.outside.len() > OUTSIDE_ACTIONS_MAX || !outside().all(seen) {
            return;
        }
        let mut rates: Vec<(usize, u32)> = Vec::new();
        // Guards that read no elements have the same value whatever arrives.
        let looking = outside().filter(|x| !guard_reads_state_only(x));
        for (port, n) in looking.flat_map(consumed) {
            match rates.iter_mut().find(|r| r.0 == port) {
                Some(r) => r.1 = r.1.max(n),
                None => rates.push((port, n)),
            }
        }
        let there = rates
            .iter()
            .map(|(p, n)| format!("{}_n >= {n}", self.inputs[*p]));
        let silent = a.outside.iter().map(|id| {
            let args = self.arguments(&a.actions[*id], false, "");
            format!("!{}_guard({args})", self.actions[*id])
        });
        let asked: Vec<_> = there.chain(silent).collect();
        w.put("/* Nothing outside of the schedule wants to fire. */");
        w.put(&format!("if ({}) {{", asked.join(" && ")));
        // This begins a new scan.
        self.begin(w, self.whole_scan());
        w.put(&format!("goto {};", self.label(s)));
        w.put("}");
    }

    /// With actions outside of the schedule, a scan covers these and then those of a state.
    fn whole_scan(&self) -> &CandidateScan {
        self.whole_scan.get_or_init(|| {
            let a = self.actor;
            let transitions = a.fsm.iter().flat_map(|f| f.transitions.iter().flatten());
            let ids: Vec<_> = (a.outside.iter().copied())
                .chain(transitions.map(|t| t.action))
                .collect();
            CandidateScan::new(a, &ids, &[])
        })
    }

    fn arguments(&self, action: &Action, outputs: bool, each: &str) -> String {
        let mut args = vec!["self".to_string(), "S".to_string()];
        if self.has_registers() {
            args.push(if each.is_empty() { "R" } else { "&r" }.to_string());
        }
        let at = |name: &str, n: u32| match (each, n) {
            ("", _) => name.to_string(),
            (k, 1) => format!("{name} + {k}"),
            (k, n) => format!("{name} + (size_t){k} * {n}"),
        };
        for (port, n) in consumed(action) {
            args.push(at(&self.inputs[port], n));
        }
        if outputs {
            for (port, n) in produced(action) {
                args.push(at(&self.outputs[port], n));
            }
        }
        args.join(", ")
    }

    /// Whether this action has a loop of its own.
    fn loops(&self, id: ActionId) -> bool {
        let a = self.actor;
        let action = &a.actions[id];
        if !self.is_light(action) || (action.inputs.is_empty() && action.outputs.is_empty()) {
            return false;
        }
        // Elements that it produced must be visible before it waits in a native.
        if self.may_wait() && !action.outputs.is_empty() {
            return false;
        }
        match &a.fsm {
            None => a.outside == [id],
            Some(f) => self.own_loops.get_or_init(|| self.looped(f))[id],
        }
    }

    /// The actions that are the first one of a state and lead back to it.
    fn looped(&self, fsm: &Fsm) -> Vec<bool> {
        let a = self.actor;
        let mut looped = vec![false; a.actions.len()];
        if !a.outside.is_empty() {
            return looped;
        }
        for (s, list) in fsm.transitions.iter().enumerate() {
            if let [t, rest @ ..] = &list[..]
                && t.to == s
            {
                // Another action may follow when this one stops for lack of room.
                looped[t.action] |= rest.is_empty() || a.actions[t.action].schedule_outputs;
            }
        }
        looped
    }

    fn emit_loops(&self, w: &mut Writer<'a>) {
        for id in 0..self.actor.actions.len() {
            if self.loops(id) {
                self.emit_loop(w, id);
            }
        }
    }

    /// The number of firings between two prefetches of a loop: small enough to spread the prefetches, large enough
    /// for the C compiler to vectorise the firings between. `None` if it writes nothing. The rest of a span is not
    /// prefetched.
    fn slice(&self, action: &Action) -> Option<u32> {
        let bytes = |(port, n): (usize, u32)| n * size_of(&self.actor.outputs[port].ty);
        let most = produced(action).into_iter().map(bytes).max()?;
        Some((SLICE_BYTES / most.max(1)).max(1))
    }

    fn emit_loop(&self, w: &mut Writer<'a>, id: ActionId) {
        let action = &self.actor.actions[id];
        let name = &self.actions[id];
        let mut params = vec![
            "lvd_actor *self LEVADA_UNUSED".into(),
            format!("{}_state *S LEVADA_UNUSED", self.prefix),
        ];
        if self.has_registers() {
            params.push(format!("{}_registers *R", self.prefix));
        }
        params.push("uint32_t n".to_string());
        for (port, _) in consumed(action) {
            let c = const_type(&self.actor.inputs[port].ty);
            params.push(format!("{c} *restrict {}", self.inputs[port]));
        }
        for (port, _) in produced(action) {
            let c = c_type(&self.actor.outputs[port].ty);
            params.push(format!("{c} *restrict {}", self.outputs[port]));
        }
        w.own();
        w.put(&format!(
            "\n/* Fires {} up to n times; how often it did. */",
            comment(&action.name)
        ));
        w.put("static __attribute__((noinline))");
        w.put(&format!("uint32_t {name}_many({}) {{", params.join(", ")));
        if self.has_registers() {
            w.put(&format!("{}_registers r = *R;", self.prefix));
        }
        w.put("uint32_t k = 0;");
        let counted_loop = self.counted_loop(action);
        let guarded = counted_loop.is_none() && !action.guard.conditions.is_empty();
        if let Some(c) = &counted_loop {
            let var = match &self.homes[c.var] {
                Home::Register(name) => format!("r.{name}"),
                home => home.text(),
            };
            let (limit, step) = (c.limit, c.step);
            w.put("/* As often as the guard will hold. */");
            w.put(&format!(
                "uint64_t left = {var} < {limit} ? (uint64_t){limit} - (uint64_t){var} : 0;"
            ));
            if step > 1 {
                w.put(&format!("left = left / {step} + (left % {step} != 0);"));
            }
            w.put("if (left < n) n = (uint32_t)left;");
        }
        let slice = self.slice(action);
        if let Some(slice) = slice {
            w.put("while (k < n) {");
            w.put(&format!(
                "uint32_t end = n - k < {slice} ? n : k + {slice};"
            ));
            w.put(&format!("if (end - k == {slice}) {{"));
            for (port, rate) in produced(action) {
                let (out, step) = (&self.outputs[port], rate * slice);
                let at = match rate {
                    1 => format!("{out} + k"),
                    rate => format!("{out} + (size_t)k * {rate}"),
                };
                w.put(&format!("levada_ahead({at}, {step} * sizeof *{out});"));
            }
            w.put("}");
        }
        let end = if slice.is_some() { "end" } else { "n" };
        w.put(&format!("for (; k < {end}; k++) {{"));
        if guarded {
            w.put(&format!(
                "if (!{name}_guard({})) break;",
                self.arguments(action, false, "k")
            ));
        }
        w.put(&format!("{name}({});", self.arguments(action, true, "k")));
        let native = calls_native(self.actor, action);
        if native {
            // Each firing may take long.
            w.put("if (lvd_should_yield(self)) {");
            w.put("k++;");
            w.put("break;");
            w.put("}");
        }
        w.put("}");
        if slice.is_some() {
            if guarded || native {
                w.put("if (k < end) break;");
            }
            w.put("}");
        }
        if self.has_registers() {
            w.put("*R = r;");
        }
        w.put("return k;");
        w.put("}");
    }

    fn call_loop(&self, w: &mut Writer<'a>, id: ActionId, number: usize) {
        let action = &self.actor.actions[id];
        w.put("{");
        w.put("uint32_t n = UINT32_MAX, k;");
        let sides = [
            (consumed(action), &self.inputs),
            (produced(action), &self.outputs),
        ];
        for (rates, names) in &sides {
            for (port, n) in rates {
                let name = &names[*port];
                let fit = if *n == 1 {
                    format!("{name}_n")
                } else {
                    format!("{name}_n / {n}")
                };
                w.put(&format!("if ({fit} < n) n = {fit};"));
            }
        }
        w.put("if (n > 0) {");
        w.put(&format!("LEVADA_FIRES({id});"));
        let mut args = vec!["self".to_string(), "S".to_string()];
        if self.has_registers() {
            args.push("R".to_string());
        }
        args.push("n".to_string());
        for (rates, names) in &sides {
            args.extend(rates.iter().map(|(port, _)| names[*port].clone()));
        }
        w.put(&format!(
            "k = {}_many({});",
            self.actions[id],
            args.join(", ")
        ));
        for (rates, names) in &sides {
            for (port, n) in rates {
                let name = &names[*port];
                let step = if *n == 1 {
                    "k".to_string()
                } else {
                    format!("k * {n}")
                };
                w.put(&format!("{name} += {step}, {name}_n -= {step};"));
            }
        }
        w.put(&format!("self->fired[{id}] += k;"));
        w.put("if (lvd_should_yield(self)) {");
        if self.actor.fsm.is_some() {
            w.put(&format!("S->lvd_state = {number};"));
        }
        w.put("goto lvd_yield;");
        w.put("}");
        w.put("}");
        w.put("}");
    }
}

impl Class<'_> {
    /// Whether the guard, or a native that it calls, may fail. The report must then name its action.
    pub(super) fn may_fault(&self, action: &Action) -> bool {
        let guard = &action.guard;
        let mut found = !guard.body.stmts.is_empty();
        for condition in &guard.conditions {
            walk(condition, &mut |e| {
                found |= match &e.kind {
                    // An inlined procedure calls no other inlined procedure.
                    ExprKind::Call(p, _) if self.inlined[*p] => {
                        any_stmt(&self.actor.procs[*p].body.stmts, &mut |s| {
                            let mut inner = matches!(s.kind, StmtKind::Call(..));
                            exprs_of(s, &mut |e| inner |= self.fails(e));
                            inner
                        })
                    }
                    _ => self.fails(e),
                }
            });
        }
        found
    }

    /// Whether this part of an expression may fail or is a call.
    pub(super) fn fails(&self, e: &Expr) -> bool {
        match &e.kind {
            // Otherwise the nearest element is read, which always exists.
            ExprKind::Load(place) => !place.indices.is_empty() && !self.lenient,
            ExprKind::Binary(op, ..) => matches!(op, BinOp::Div | BinOp::Mod),
            ExprKind::Call(..) => true,
            _ => false,
        }
    }
}
