// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a class: the ports and parameters of an actor or network.

use super::read::Xdf;
use crate::ir::Span;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// The interface of an actor or a network.
#[derive(Debug)]
pub struct ClassInterface {
    pub class: String,
    /// The place where its name is declared.
    pub span: Span,
    /// Path and content, for networks.
    pub network: Option<(PathBuf, Rc<Xdf>)>,
    pub inputs: NameTable<(String, Span)>,
    pub outputs: NameTable<(String, Span)>,
    /// Name, whether it is optional, place.
    pub params: NameTable<(String, bool, Span)>,
    /// Whether ports and parameters may be missing because of errors that were reported.
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

/// A list with lookup by name in constant time; of several items with one name the first is found.
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
