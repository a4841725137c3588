// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Large local lists: they are placed in the state of the instance, since they would overflow the stack. Pages that
//! are not touched use no memory. Actions of an instance do not overlap, so each list exists once. In a recursive
//! procedure they stay on the stack, since each of its activations needs its own.

use super::class::{Class, LargeLocal};
use super::writer::{Names, Writer};
use crate::c_types::{c_type, size_of};
use crate::components::components;
use crate::ir::visit::calls;
use crate::ir::*;
use crate::ranges::{dimensions, hidden_param};

/// Larger lists are moved to the state.
const ONE_LIST_BYTES_MAX: u64 = 64 << 10;
/// If the lists of a body exceed the first size in total, lists above the second size are moved.
const BODY_LISTS_BYTES_MAX: u64 = 256 << 10;
const LIST_IN_LARGE_BODY_BYTES_MAX: u64 = 4 << 10;

fn elements(ty: &Type) -> u64 {
    dimensions(ty).iter().map(|n| u64::from(*n)).product()
}

/// The large local lists of an actor. `members` assigns their names in the state.
pub fn large_locals<'a>(actor: &'a Actor, members: &mut Names) -> Vec<LargeLocal<'a>> {
    let mut found = Vec::new();
    let mut look = |body: &'a Body, first: usize| {
        let lists = || {
            let all = body.locals.iter().enumerate().skip(first);
            all.filter(|(_, l)| matches!(l.ty, Type::List { .. }))
                .map(|(i, l)| (i, l, elements(&l.ty) * u64::from(size_of(&l.ty))))
        };
        let most = if lists().map(|(_, _, bytes)| bytes).sum::<u64>() > BODY_LISTS_BYTES_MAX {
            LIST_IN_LARGE_BODY_BYTES_MAX
        } else {
            ONE_LIST_BYTES_MAX
        };
        for (local, l, _) in lists().filter(|(_, _, bytes)| *bytes > most) {
            let member = members.fresh(&format!("lvd_local_{}", l.name));
            let ty = &l.ty;
            found.push(LargeLocal {
                body,
                local,
                member,
                ty,
            });
        }
    };
    for a in actor.actions.iter().chain(&actor.initializers) {
        look(&a.guard.body, 0);
        look(&a.body, 0);
    }
    for g in &actor.globals {
        if let Init::Code(body) = &g.init {
            look(body, 0);
        }
    }
    let called: Vec<Vec<usize>> = (actor.procs.iter())
        .map(|p| {
            let mut all = Vec::new();
            calls(&p.body, &mut |q| all.push(q));
            all
        })
        .collect();
    let component = components(called.len(), |p| called[p].iter().copied());
    // Directly, or through other procedures of its component.
    let recurs = |p: usize| called[p].iter().any(|q| component[*q] == component[p]);
    for (i, p) in actor.procs.iter().enumerate() {
        if !p.native && !recurs(i) {
            // The caller owns the parameters and the list for the result.
            look(&p.body, p.params + usize::from(hidden_param(p)));
        }
    }
    found
}

impl<'a> Class<'a> {
    /// The member of the state that holds this local list, if it is large.
    pub fn member_of(&self, body: &Body, local: usize) -> Option<&str> {
        let mine = |l: &&LargeLocal| std::ptr::eq(l.body, body) && l.local == local;
        self.large_locals
            .iter()
            .find(mine)
            .map(|l| l.member.as_str())
    }

    pub fn emit_large_locals(&self, w: &mut Writer<'a>) {
        for l in self.large_locals.iter() {
            let n = elements(l.ty).max(1);
            w.put(&format!("{} {}[{n}];", c_type(l.ty), l.member));
        }
    }
}
