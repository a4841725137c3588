// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order in which actions are tried: tags, priorities and schedules.

use super::{Checker, EntityId};
use crate::ast;
use crate::diag::Diagnostic;
use crate::hir;
use crate::ir;
use std::collections::{BTreeSet, HashMap};

/// The actions that each tag names: those with this tag, and those of which it is the first part.
type Tags = HashMap<String, Vec<usize>>;

fn tags(actor: &hir::Actor) -> Tags {
    let mut tags = Tags::new();
    for (i, action) in actor.actions.iter().enumerate() {
        let Some(full) = &action.tag else { continue };
        let ends = full.match_indices('.').map(|(at, _)| at);
        for end in ends.chain([full.len()]) {
            tags.entry(full[..end].to_string()).or_default().push(i);
        }
    }
    tags
}

/// Whether `tag` names an action tagged `full`: it is the same or its first part.
pub(super) fn matches(tag: &str, full: &str) -> bool {
    full.strip_prefix(tag)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The reachable states.
fn reached(transitions: &[Vec<ir::Transition>], initial: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut left = vec![initial];
    while let Some(state) = left.pop() {
        if state < transitions.len() && reached.insert(state) {
            left.extend(transitions[state].iter().map(|t| t.to));
        }
    }
    reached
}

impl<'a> Checker<'a> {
    pub(super) fn order(&mut self, entity: EntityId, actor: &mut hir::Actor) {
        let ast = self.scopes[entity].ast;
        let tags = tags(actor);
        let (sorted, below) = self.by_priority(entity, actor, &tags);
        let mut rank = vec![0; actor.actions.len()];
        for (i, &action) in sorted.iter().enumerate() {
            rank[action] = i;
        }
        if let Some(second) = ast.schedules.get(1) {
            let span = match second {
                ast::Schedule::Fsm(fsm) => fsm.span,
                ast::Schedule::RegExp { span, .. } => *span,
            };
            let diag = Diagnostic::error("schedule", "an actor has one schedule")
                .label(span, "a second one")
                .help("put all transitions into one");
            self.diags.push(diag);
        }
        actor.fsm = match ast.schedules.first() {
            None => None,
            Some(ast::Schedule::Fsm(fsm)) => Some(self.fsm(entity, fsm, actor, &tags, &rank)),
            Some(ast::Schedule::RegExp { exp, .. }) => {
                Some(self.regexp(entity, exp, actor, &tags, &rank))
            }
        };
        // These notes compare all pairs of actions.
        if self.remarks {
            self.unordered(actor, &below);
            self.time_dependent(actor, &sorted);
        }
        actor.outside = match actor.fsm {
            None => sorted,
            Some(_) => sorted
                .into_iter()
                .filter(|&a| actor.actions[a].tag.is_none())
                .collect(),
        };
        for fsm in &ast.local_fsms {
            let diag =
                Diagnostic::error("unsupported", "local schedules have no meaning yet in CAL")
                    .label(fsm.name.span, "the grammar has them, the language does not")
                    .help("write their transitions into the schedule");
            self.diags.push(diag);
        }
    }

    /// The actions that a tag names; an error if there are none.
    fn tagged(
        &mut self,
        entity: EntityId,
        actor: &hir::Actor,
        tags: &Tags,
        tag: &ast::Path,
    ) -> Vec<usize> {
        let found = tags.get(tag.text.as_str()).cloned().unwrap_or_default();
        if found.is_empty() && !tag.text.is_empty() {
            let mut diag = Diagnostic::error("tag", format!("there is no action `{}`", tag.text))
                .label(tag.span, "no action has this tag");
            let first = actor.initializers.iter().find(|a| {
                let full = a.tag.as_ref();
                full.is_some_and(|full| matches(&tag.text, full))
            });
            if let Some(first) = first {
                diag = diag
                    .label(first.span, "this one fires before the schedule begins")
                    .help("an `initialize` action has no part in schedules and priorities");
            }
            self.missing(entity, "action", tag, diag);
        }
        found
    }

    /// The order of actions: those without a tag first, then by priorities, else in source order. Also the actions
    /// over which each one has priority, directly or indirectly.
    fn by_priority(
        &mut self,
        entity: EntityId,
        actor: &hir::Actor,
        tags: &Tags,
    ) -> (Vec<usize>, Vec<BTreeSet<usize>>) {
        let ast = self.scopes[entity].ast;
        let count = actor.actions.len();
        let mut below: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
        for row in &ast.priorities {
            let groups: Vec<Vec<usize>> = row
                .iter()
                .map(|tag| self.tagged(entity, actor, tags, tag))
                .collect();
            for tags in row.windows(2).filter(|t| t[0].text == t[1].text) {
                let diag = Diagnostic::error("priority", "the priorities go in a cycle")
                    .label(tags[1].span, "this tag would come before itself")
                    .help(format!("{0} > {0}: take it out", tags[0].text));
                self.diags.push(diag);
            }
            for pair in groups.windows(2) {
                for &high in &pair[0] {
                    // `a.b > a` orders `a.b` before the others of `a`, not before itself.
                    below[high].extend(pair[1].iter().filter(|&&low| low != high));
                }
            }
        }
        let mut above = vec![0; count];
        for low in below.iter().flatten() {
            above[*low] += 1;
        }
        let (untagged, tagged): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&a| actor.actions[a].tag.is_none());
        let mut out = untagged;
        let mut ready: BTreeSet<usize> = tagged.into_iter().filter(|&a| above[a] == 0).collect();
        while let Some(action) = ready.pop_first() {
            out.push(action);
            for &low in &below[action] {
                above[low] -= 1;
                if above[low] == 0 {
                    ready.insert(low);
                }
            }
        }
        if out.len() < count {
            self.priority_cycle(actor, &below, &above);
            out.extend((0..count).filter(|&a| above[a] > 0));
        }
        (out, below)
    }

    fn priority_cycle(&mut self, actor: &hir::Actor, below: &[BTreeSet<usize>], above: &[usize]) {
        // Every remaining action has a remaining one above it, so going up finds a cycle.
        let left = |a: usize| above[a] > 0;
        let Some(mut at) = (0..above.len()).find(|&a| left(a)) else {
            return;
        };
        let mut path = vec![at];
        loop {
            let Some(up) = (0..below.len()).find(|&a| left(a) && below[a].contains(&at)) else {
                return;
            };
            if let Some(start) = path.iter().position(|&a| a == up) {
                path.drain(..start);
                break;
            }
            path.push(up);
            at = up;
        }
        path.reverse();
        let name = |a: &usize| actor.actions[*a].tag.clone().unwrap_or_default();
        let mut names: Vec<String> = path.iter().map(name).collect();
        names.push(name(&path[0]));
        let diag = Diagnostic::error("priority", "the priorities go in a cycle")
            .label(
                actor.actions[path[0]].span,
                "this action would come before itself",
            )
            .help(format!("{}: take one of these out", names.join(" > ")));
        self.diags.push(diag);
    }

    fn fsm(
        &mut self,
        entity: EntityId,
        fsm: &'a ast::Fsm,
        actor: &hir::Actor,
        tags: &Tags,
        rank: &[usize],
    ) -> ir::Fsm {
        // An error here may be the reason why an action or a state seems unused.
        let mut unclear = false;
        let mut unused = Vec::new();
        let mut states: Vec<String> = Vec::new();
        let mut number: HashMap<&str, usize> = HashMap::new();
        for transition in &fsm.transitions {
            let name = transition.from.text.as_str();
            number.entry(name).or_insert_with(|| {
                states.push(name.to_owned());
                states.len() - 1
            });
        }
        let mut transitions: Vec<Vec<ir::Transition>> = vec![Vec::new(); states.len()];
        let mut taken: HashMap<(usize, usize), ir::Span> = HashMap::new();
        let mut in_use = vec![false; actor.actions.len()];
        for transition in &fsm.transitions {
            let from = number[transition.from.text.as_str()];
            let to = match &transition.to {
                ast::Target::State(state) => match number.get(state.text.as_str()) {
                    Some(&to) => to,
                    None => {
                        // A state without transitions: the actor ends there.
                        states.push(state.text.clone());
                        transitions.push(Vec::new());
                        number.insert(&state.text, states.len() - 1);
                        let message = format!("nothing leaves state `{}`", state.text);
                        let diag = Diagnostic::warning("state", message)
                            .label(state.span, "the actor stops here for good")
                            .help("is the name spelled right?");
                        unused.push(diag);
                        states.len() - 1
                    }
                },
                ast::Target::Local { span } => {
                    let message = "local schedules have no meaning yet in CAL";
                    let diag = Diagnostic::error("unsupported", message)
                        .label(*span, "the grammar has them, the language does not")
                        .help("write their transitions into the schedule");
                    self.diags.push(diag);
                    from
                }
            };
            let tagged = self.tagged(entity, actor, tags, &transition.tag);
            unclear |= tagged.is_empty();
            for action in tagged {
                in_use[action] = true;
                if let Some(before) = taken.insert((from, action), transition.tag.span) {
                    let message = format!(
                        "state `{}` has two transitions with action `{}`",
                        transition.from.text,
                        actor.actions[action].tag.as_deref().unwrap_or_default(),
                    );
                    let diag = Diagnostic::error("state", message)
                        .label(transition.tag.span, "the second one")
                        .label(before, "the first one")
                        .help("an action leads to one state");
                    self.diags.push(diag);
                } else {
                    transitions[from].push(ir::Transition { action, to });
                }
            }
        }
        let initial = number
            .get(fsm.name.text.as_str())
            .copied()
            .unwrap_or_else(|| {
                if !fsm.name.text.is_empty() {
                    let message = format!("there is no state `{}`", fsm.name.text);
                    let diag = Diagnostic::error("state", message)
                        .label(fsm.name.span, "no transition leaves it")
                        .help("a schedule begins in one of its states");
                    self.missing(entity, "state", &fsm.name, diag);
                }
                unclear = true;
                0
            });
        let reached = reached(&transitions, initial);
        let mut fires = vec![false; actor.actions.len()];
        for transition in reached.iter().flat_map(|&state| &transitions[state]) {
            fires[transition.action] = true;
        }
        for (action, checked) in actor.actions.iter().enumerate() {
            let Some(tag) = checked.tag.as_ref().filter(|_| !fires[action]) else {
                continue;
            };
            let why = if in_use[action] {
                "the schedule never comes to a state with a transition of it"
            } else {
                "no transition of the schedule names it"
            };
            let diag = Diagnostic::warning("unused", format!("action `{tag}` never fires"))
                .label(checked.span, why);
            unused.push(diag);
        }
        if !unclear {
            self.diags.extend(unused);
        }
        for row in &mut transitions {
            row.sort_by_key(|t| rank[t.action]);
        }
        ir::Fsm {
            states,
            initial,
            transitions,
        }
    }

    /// Converts a regular expression over tags to a state machine (position automaton of Glushkov 1961, with the
    /// subset construction). A state is the set of positions that may have been matched last.
    fn regexp(
        &mut self,
        entity: EntityId,
        exp: &'a ast::RegExp,
        actor: &hir::Actor,
        tags: &Tags,
        rank: &[usize],
    ) -> ir::Fsm {
        let mut places = Places::default();
        let whole = places.add(exp);
        let actions: Vec<Vec<usize>> = places
            .tags
            .iter()
            .map(|tag| self.tagged(entity, actor, tags, tag))
            .collect();
        let mut states: Vec<(String, BTreeSet<usize>)> = vec![("start".into(), whole.first)];
        let mut known: HashMap<BTreeSet<usize>, usize> = HashMap::new();
        let mut transitions: Vec<Vec<ir::Transition>> = Vec::new();
        while let Some((_, next)) = states.get(transitions.len()) {
            let mut matched: HashMap<usize, BTreeSet<usize>> = HashMap::new();
            for &place in next {
                for &action in &actions[place] {
                    matched.entry(action).or_default().insert(place);
                }
            }
            let mut row = Vec::new();
            let mut matched: Vec<_> = matched.into_iter().collect();
            matched.sort_by_key(|(action, _)| rank[*action]);
            for (action, at) in matched {
                let to = *known.entry(at.clone()).or_insert_with(|| {
                    let next = at
                        .iter()
                        .flat_map(|&p| places.follow[p].iter().copied())
                        .collect();
                    let name = actor.actions[action].tag.as_deref().unwrap_or("action");
                    states.push((format!("after_{name}_{}", states.len()), next));
                    states.len() - 1
                });
                row.push(ir::Transition { action, to });
            }
            transitions.push(row);
            if states.len() > 10_000 {
                let diag = Diagnostic::error("schedule", "this schedule has too many states")
                    .label(actor.span, "more than 10000")
                    .help("simplify the expression, or write a `schedule fsm`");
                self.diags.push(diag);
                transitions.resize(states.len(), Vec::new());
                break;
            }
        }
        ir::Fsm {
            states: states.into_iter().map(|(n, _)| n).collect(),
            initial: 0,
            transitions,
        }
    }
}

/// The positions of tags in a regular expression, and which may follow which.
#[derive(Default)]
struct Places<'a> {
    tags: Vec<&'a ast::Path>,
    follow: Vec<BTreeSet<usize>>,
}

/// A part of the expression: its first and last positions, and whether it may be empty.
struct Part {
    first: BTreeSet<usize>,
    last: BTreeSet<usize>,
    empty: bool,
}

impl<'a> Places<'a> {
    fn add(&mut self, exp: &'a ast::RegExp) -> Part {
        match exp {
            ast::RegExp::Tag(tag) => {
                self.tags.push(tag);
                self.follow.push(BTreeSet::new());
                let place = BTreeSet::from([self.tags.len() - 1]);
                Part {
                    first: place.clone(),
                    last: place,
                    empty: false,
                }
            }
            ast::RegExp::Or(parts) => {
                let mut out = Part {
                    first: BTreeSet::new(),
                    last: BTreeSet::new(),
                    empty: false,
                };
                for part in parts {
                    let part = self.add(part);
                    out.first.extend(part.first);
                    out.last.extend(part.last);
                    out.empty |= part.empty;
                }
                out
            }
            ast::RegExp::Seq(parts) => {
                let mut out = Part {
                    first: BTreeSet::new(),
                    last: BTreeSet::new(),
                    empty: true,
                };
                for part in parts {
                    let part = self.add(part);
                    for &last in &out.last {
                        self.follow[last].extend(&part.first);
                    }
                    if out.empty {
                        out.first.extend(&part.first);
                    }
                    if !part.empty {
                        out.last.clear();
                    }
                    out.last.extend(part.last);
                    out.empty &= part.empty;
                }
                out
            }
            ast::RegExp::Star(inner) => {
                let part = self.add(inner);
                for &last in &part.last {
                    self.follow[last].extend(&part.first);
                }
                Part {
                    empty: true,
                    ..part
                }
            }
            ast::RegExp::Optional(inner) => Part {
                empty: true,
                ..self.add(inner)
            },
        }
    }
}
