// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops that fire the same action repeatedly. After a firing that leaves the state unchanged, the same action is
//! often next: the rest of a row, zeros up to the next coefficient. While the known elements and room suffice and
//! the guards choose it again, it fires in a loop with one counter; the general scheduler would update the cursors
//! of all ports and the firing count in memory each time.
//!
//! The loop chooses the same actions as the scheduler. The guards of actions with higher priority are evaluated in
//! the loop, so these actions may need only elements that the looping action needs too, unless their guards depend
//! on the state alone: such a guard that is false stays false whatever arrives. If one of these actions can fire,
//! the loop ends and the scheduler fires it.

use super::class::Class;
use super::writer::Writer;
use crate::ir::action::{calls_native, consumed, produced};
use crate::ir::visit::{expr_mentions, walk};
use crate::ir::*;

/// A firing that produces at least this many elements on a port prefetches the cache lines first.
pub const PREFETCH_ELEMENTS_MIN: u32 = 16;
/// With more prior actions a scan from the start is no slower, and the code would grow quadratically.
const PRIOR_ACTIONS_MAX: usize = 16;

impl<'a> Class<'a> {
    /// Whether the action can fire in a loop, if the actions `before` are tried before it.
    pub fn can_refire(&self, id: ActionId, before: &[ActionId]) -> bool {
        let a = self.actor;
        let action = &a.actions[id];
        let (has, puts) = (consumed(action), produced(action));
        let there = |h: &Action| {
            let needs = consumed(h);
            guard_reads_state_only(h)
                || (needs.iter()).all(|(port, n)| has.iter().any(|(p, m)| p == port && m >= n))
        };
        let mut before = before.iter().map(|id| &a.actions[*id]);
        let some = !has.is_empty() || !puts.is_empty();
        let waits = self.may_wait() || calls_native(a, action);
        let simple = self.is_light(action) && some && !waits;
        simple
            && before.len() <= PRIOR_ACTIONS_MAX
            && puts.iter().all(|(_, n)| *n < PREFETCH_ELEMENTS_MIN)
            && !self.may_fault(action)
            && before.all(|h| {
                // An action without a guard lacks elements, which may arrive.
                there(h)
                    && !h.guard.conditions.is_empty()
                    && !self.may_fault(h)
                    && !calls_native(a, h)
            })
    }

    /// Emits a loop that fires the action, which can fire, while it is the next one.
    pub fn emit_refire_loop(&self, w: &mut Writer<'a>, id: ActionId, before: &[ActionId]) {
        let action = &self.actor.actions[id];
        let rates = consumed(action);
        let sides = [(&rates, &self.inputs), (&produced(action), &self.outputs)];
        w.put("{");
        w.put("uint32_t lvd_n = UINT32_MAX, lvd_k = 0;");
        for (rates, names) in sides {
            for (port, n) in rates {
                let name = &names[*port];
                let fit = match n {
                    1 => format!("{name}_n"),
                    n => format!("{name}_n / {n}"),
                };
                w.put(&format!("if ({fit} < lvd_n) lvd_n = {fit};"));
            }
        }
        let fire = format!(
            "{}({});",
            self.actions[id],
            self.arguments_at(action, true, &rates)
        );
        let mut chosen = Vec::new();
        for h in before {
            let args = self.arguments_at(&self.actor.actions[*h], false, &rates);
            chosen.push(format!("!{}_guard({args})", self.actions[*h]));
        }
        if !action.guard.conditions.is_empty() {
            let args = self.arguments_at(action, false, &rates);
            chosen.push(format!("{}_guard({args})", self.actions[id]));
        }
        match self.walk_of(id, before) {
            Some(walk) => self.emit_vlc_walk(w, walk, &fire, &chosen.join(" && ")),
            None => {
                chosen.insert(0, "++lvd_k < lvd_n".to_string());
                w.put("do {");
                w.put(&fire);
                w.put(&format!("}} while ({});", chosen.join(" && ")));
            }
        }
        w.put(&format!("self->fired[{id}] += lvd_k;"));
        for (rates, names) in sides {
            for (port, n) in rates {
                let (name, step) = (&names[*port], times(*n));
                w.put(&format!("{name} += {step}, {name}_n -= {step};"));
            }
        }
        w.put("}");
    }

    /// The arguments of an action in the loop; its inputs advance by `rates`.
    fn arguments_at(&self, action: &Action, outputs: bool, rates: &[(usize, u32)]) -> String {
        let mut args = vec!["self".to_string(), "S".to_string()];
        if self.has_registers() {
            args.push("R".to_string());
        }
        for (port, _) in consumed(action) {
            let name = &self.inputs[port];
            args.push(match rates.iter().find(|r| r.0 == port) {
                Some((_, n)) => format!("{name} + {}", times(*n)),
                // A guard that does not read this port.
                None => name.clone(),
            });
        }
        if outputs {
            for (port, n) in produced(action) {
                args.push(format!("{} + {}", self.outputs[port], times(n)));
            }
        }
        args.join(", ")
    }
}

/// Whether it has a guard that reads no elements.
pub fn guard_reads_state_only(h: &Action) -> bool {
    let mut only = h.guard.body.stmts.is_empty() && !h.guard.conditions.is_empty();
    for c in &h.guard.conditions {
        walk(c, &mut |e| {
            expr_mentions(e, &|_, _| false, &mut |v, _| {
                only &= matches!(v, VarRef::Global(_));
            });
        });
    }
    only
}

fn times(n: u32) -> String {
    match n {
        1 => "lvd_k".to_string(),
        n => format!("(size_t)lvd_k * {n}"),
    }
}
