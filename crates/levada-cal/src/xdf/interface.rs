// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a class: the ports and parameters of an actor or network.

use super::read::Xdf;
use crate::ir::Span;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// An actor or a network as its users see it.
#[derive(Debug)]
pub struct ClassInterface {
    pub class: String,
    /// Of its name, where it is declared.
    pub span: Span,
    /// Where it is, for networks.
    pub network: Option<(PathBuf, Rc<Xdf>)>,
    pub inputs: NameTable<(String, Span)>,
    pub outputs: NameTable<(String, Span)>,
    /// Name, whether it may be left out, place.
    pub params: NameTable<(String, bool, Span)>,
    /// Ports and parameters may be missing, for errors that have been reported.
    pub broken: bool,
}

impl ClassInterface {
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.position(name)
    }

    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.position(name)
    }
}

/// A list whose items are found by name in constant time; of two of one name the first.
#[derive(Debug)]
pub struct NameTable<T> {
    list: Vec<T>,
    at: HashMap<String, usize>,
}

impl<T> NameTable<T> {
    pub fn new(list: Vec<T>, name: impl Fn(&T) -> &String) -> NameTable<T> {
        let mut at = HashMap::new();
        for (i, item) in list.iter().enumerate() {
            at.entry(name(item).clone()).or_insert(i);
        }
        NameTable { list, at }
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.at.get(name).copied()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.at.contains_key(name)
    }

    pub fn find(&self, name: &str) -> Option<&T> {
        Some(&self.list[self.position(name)?])
    }
}

impl<T> std::ops::Deref for NameTable<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.list
    }
}
