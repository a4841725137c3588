// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classification: what is known beforehand of how many elements an actor moves.
//!
//! * *static*: each firing takes and gives the same numbers, whichever action it is;
//! * *cyclo-static*: the numbers follow a fixed cycle;
//! * *dynamic*: they depend on values or on state.
//!
//! Guards are not interpreted. An actor is static where one of its actions can always fire (the
//! last candidate has no guard) and all candidates have the same rates.

use crate::emit::{consumed, produced};
use crate::ir::*;

/// Elements that one firing takes from each input and puts to each output, by port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    Static(Rates),
    /// The phases of one cycle, and how many of `before` come first, once.
    CycloStatic {
        before: Vec<Rates>,
        cycle: Vec<Rates>,
    },
    Dynamic,
}

impl Class {
    pub fn name(&self) -> &'static str {
        match self {
            Class::Static(_) => "static",
            Class::CycloStatic { .. } => "cyclo-static",
            Class::Dynamic => "dynamic",
        }
    }
}

pub fn rates(actor: &Actor, action: &Action) -> Rates {
    let mut r = Rates {
        inputs: vec![0; actor.inputs.len()],
        outputs: vec![0; actor.outputs.len()],
    };
    for (port, n) in consumed(action) {
        r.inputs[port] = n;
    }
    for (port, n) in produced(action) {
        r.outputs[port] = n;
    }
    r
}

/// The rates that all candidates share, if one of them can always fire.
fn common(actor: &Actor, candidates: &[ActionId]) -> Option<Rates> {
    let (last, _) = candidates.split_last()?;
    if !actor.actions[*last].guard.conditions.is_empty() {
        return None;
    }
    let r = rates(actor, &actor.actions[*last]);
    candidates
        .iter()
        .all(|id| rates(actor, &actor.actions[*id]) == r)
        .then_some(r)
}

pub fn classify(actor: &Actor) -> Class {
    let Some(fsm) = &actor.fsm else {
        return common(actor, &actor.outside).map_or(Class::Dynamic, Class::Static);
    };
    if !actor.outside.is_empty() {
        return Class::Dynamic;
    }
    let mut phases = Vec::new();
    let mut visited = vec![None; fsm.states.len()];
    let mut state = fsm.initial;
    loop {
        if let Some(at) = visited[state] {
            let cycle: Vec<Rates> = phases.split_off(at);
            return match &cycle[..] {
                [one] if phases.iter().all(|p| p == one) => Class::Static(one.clone()),
                _ => Class::CycloStatic {
                    before: phases,
                    cycle,
                },
            };
        }
        visited[state] = Some(phases.len());
        let list = &fsm.transitions[state];
        let ids: Vec<ActionId> = list.iter().map(|t| t.action).collect();
        let Some(r) = common(actor, &ids) else {
            return Class::Dynamic;
        };
        let to = list[0].to;
        if list.iter().any(|t| t.to != to) {
            return Class::Dynamic;
        }
        phases.push(r);
        state = to;
    }
}
