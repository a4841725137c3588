// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single firings of one action, to find its effect on the state variables.

use super::eval::Frame;
use super::{Instance, Native, Scalar, fill, fresh};
use crate::ir::*;
use crate::ranges::{dimensions, innermost};
use std::collections::HashMap;

pub struct Trial<'a> {
    instance: Instance<'a>,
    natives: HashMap<String, Native>,
}

impl<'a> Trial<'a> {
    /// State variables have their declared or zero values until they are set.
    pub fn new(actor: &'a Actor) -> Trial<'a> {
        let globals: Vec<_> = actor.globals.iter().map(|g| fresh(&g.ty)).collect();
        for (slot, g) in globals.iter().zip(&actor.globals) {
            if let Init::Value(v) = &g.init {
                let mut data = slot.data.borrow_mut();
                fill(&mut data, v, &dimensions(&g.ty), innermost(&g.ty));
            }
        }
        Trial {
            instance: Instance {
                name: &actor.name,
                actor,
                globals,
                state: 0,
                started: 0,
                printed: String::new(),
                fired: Vec::new(),
                done: false,
            },
            natives: HashMap::new(),
        }
    }

    /// Sets a scalar integer or Boolean variable.
    pub fn set(&mut self, var: usize, value: i64) {
        let ty = &self.instance.actor.globals[var].ty;
        self.instance.globals[var].data.borrow_mut()[0] = Scalar::of(&Value::Int(value), ty);
    }

    pub fn get(&self, var: usize) -> Option<i128> {
        match self.instance.globals[var].data.borrow()[0] {
            Scalar::Int(i) => Some(i),
            _ => None,
        }
    }

    /// Runs the action's body with this as its only element; `None` if it fails.
    pub fn fire(&mut self, action: &'a Action, element: bool) -> Option<()> {
        let mut frame = self.frame(&action.body, &action.name);
        for l in action.inputs.iter().flat_map(|i| &i.vars) {
            frame.locals[*l].data.borrow_mut()[0] = Scalar::Int(i128::from(element));
        }
        frame.exec(&action.body.stmts).ok().map(|_| ())
    }

    /// The value of the action's guard, which reads no elements; `None` if it fails.
    pub fn holds(&mut self, action: &'a Action) -> Option<bool> {
        let mut frame = self.frame(&action.guard.body, &action.name);
        for c in &action.guard.conditions {
            if frame.eval(c).ok()? == Scalar::Int(0) {
                return Some(false);
            }
        }
        Some(true)
    }

    fn frame<'m>(&'m mut self, body: &'a Body, action: &'m str) -> Frame<'m, 'a> {
        Frame {
            locals: body.locals.iter().map(|l| fresh(&l.ty)).collect(),
            body,
            instance: &mut self.instance,
            natives: &mut self.natives,
            action,
        }
    }
}
