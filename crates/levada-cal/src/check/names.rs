// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The variables that are visible at a point of a body.

use crate::hir::LocalId;
use std::collections::HashMap;

/// A stack of names; each lookup takes constant time.
#[derive(Default)]
pub struct Names<'a> {
    stack: Vec<(&'a str, LocalId)>,
    /// The variables of each name, the innermost last.
    of_name: HashMap<&'a str, Vec<LocalId>>,
}

impl<'a> Names<'a> {
    pub fn push(&mut self, name: &'a str, id: LocalId) {
        self.stack.push((name, id));
        self.of_name.entry(name).or_default().push(id);
    }

    pub fn len(&self) -> usize {
        self.stack.len()
    }

    pub fn truncate(&mut self, len: usize) {
        for (name, _) in self.stack.drain(len..) {
            if let Some(ids) = self.of_name.get_mut(name) {
                ids.pop();
            }
        }
    }

    pub fn outermost(&self, name: &str) -> Option<LocalId> {
        self.of_name.get(name)?.first().copied()
    }

    pub fn innermost(&self, name: &str) -> Option<LocalId> {
        self.of_name.get(name)?.last().copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.stack.iter().map(|(name, _)| *name)
    }
}

impl<'a> FromIterator<(&'a str, LocalId)> for Names<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, LocalId)>>(all: I) -> Names<'a> {
        let mut names = Names::default();
        all.into_iter().for_each(|(name, id)| names.push(name, id));
        names
    }
}
