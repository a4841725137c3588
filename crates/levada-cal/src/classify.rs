// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classification of actors by their rates, as far as these are known before they run:
//!
//! * *static*: each firing consumes and produces the same numbers of elements, whichever action fires;
//! * *cyclo-static*: the numbers follow a fixed cycle;
//! * *dynamic*: they depend on values or on state.
//!
//! Guards are not interpreted. An actor is static if one of its actions can always fire (the last candidate has no
//! guard) and all candidates have the same rates.

use crate::ir::action::{consumed, produced};
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

/// One firing of an actor, known except for the choice among some actions of equal rates.
#[derive(Clone, Debug)]
pub struct Step {
    /// Best first; the last one can always fire.
    pub candidates: Vec<ActionId>,
    pub rates: Rates,
}

/// The steps of an actor in order; after the last one it continues at `back`.
#[derive(Clone, Debug)]
pub struct Steps {
    pub list: Vec<Step>,
    pub back: usize,
}

/// The total of `n` firings with these rates, which continue at `back` after the last one.
pub fn moved(rates: &[u32], back: usize, n: u64) -> u64 {
    let sum = |rates: &[u32]| rates.iter().map(|r| u64::from(*r)).sum::<u64>();
    match usize::try_from(n) {
        Ok(n) if n <= rates.len() => sum(&rates[..n]),
        _ => {
            let cycle = (rates.len() - back) as u64;
            let (rounds, rest) = ((n - back as u64) / cycle, (n - back as u64) % cycle);
            let whole = sum(&rates[back..]).saturating_mul(rounds);
            whole.saturating_add(sum(&rates[..back]) + sum(&rates[back..back + rest as usize]))
        }
    }
}

/// The maximum number of firings that move at most `room` elements; `None`: unlimited.
pub fn most_firings(rates: &[u32], back: usize, room: u64) -> Option<u64> {
    let before = moved(rates, back, back as u64);
    let cycle = moved(&rates[back..], 0, (rates.len() - back) as u64);
    let mut n = match room.checked_sub(before) {
        Some(_) if cycle == 0 => return None,
        Some(rest) => back as u64 + rest / cycle * (rates.len() - back) as u64,
        None => 0,
    };
    while moved(rates, back, n + 1) <= room {
        n += 1;
    }
    Some(n)
}

/// The steps of a static or cyclo-static actor.
pub fn steps(actor: &Actor) -> Option<Steps> {
    let Some(fsm) = &actor.fsm else {
        let list = vec![Step {
            candidates: actor.outside.clone(),
            rates: common(actor, &actor.outside)?,
        }];
        return Some(Steps { list, back: 0 });
    };
    if !actor.outside.is_empty() {
        return None;
    }
    let mut list = Vec::new();
    let mut visited = vec![None; fsm.states.len()];
    let mut state = fsm.initial;
    loop {
        if let Some(back) = visited[state] {
            return Some(Steps { list, back });
        }
        visited[state] = Some(list.len());
        let ways = &fsm.transitions[state];
        let candidates: Vec<ActionId> = ways.iter().map(|t| t.action).collect();
        let rates = common(actor, &candidates)?;
        state = ways[0].to;
        if ways.iter().any(|t| t.to != state) {
            return None;
        }
        list.push(Step { candidates, rates });
    }
}

pub fn classify(actor: &Actor) -> Class {
    let Some(steps) = steps(actor) else {
        return Class::Dynamic;
    };
    let mut before: Vec<Rates> = steps.list.into_iter().map(|s| s.rates).collect();
    let cycle = before.split_off(steps.back);
    match &cycle[..] {
        [one] if before.iter().all(|p| p == one) => Class::Static(one.clone()),
        _ => Class::CycloStatic { before, cycle },
    }
}
