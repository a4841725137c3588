// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the interface of a merged action: its name, its input patterns and outputs, and the lists for their elements.

use super::super::long_running::is_long_running;
use super::super::schedule::Firing;
use super::Merger;
use super::code::{Code, list_of};
use super::window::Window;
use crate::classify::Step;
use crate::ir::*;

impl Merger<'_> {
    pub fn empty(&self, firings: &[Firing]) -> Action {
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

    /// An action of its own pattern, guard and variables for a firing of the first member, if that
    /// can be.
    pub fn own_patterns(&self, code: &mut Code, action: &mut Action, step: &Step) -> bool {
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
    pub fn lists_in(
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

    pub fn lists_out(
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
}

pub fn own(instance: &str, name: &str) -> String {
    format!("{}.{name}", instance.rsplit('.').next().unwrap_or(instance))
}

/// `a.x`: an action of an instance.
pub fn qualified(instance: &str, action: &Action) -> String {
    match action.name.strip_prefix("the ") {
        // It has no tag; its name says where it is.
        Some(place) => own(instance, place),
        None => own(instance, &action.name),
    }
}
