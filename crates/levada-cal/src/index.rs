// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The index: what the checker found at each place of the text, for editors and `levada check --explain`. It is
//! filled only if [`crate::workspace::Workspace::index`] is set.

use crate::ir::{Span, Value};
use crate::types::Ty;

#[derive(Clone, Debug, Default)]
pub struct Index {
    pub types: Vec<Typed>,
    pub given: Vec<Given>,
    pub names: Vec<Named>,
}

/// An expression, its type, and the rule of the language that gave it.
#[derive(Clone, Debug)]
pub struct Typed {
    pub span: Span,
    pub ty: Ty,
    /// The machine type.
    pub machine: Ty,
    /// Its value, if known at compile time.
    pub value: Option<Value>,
    pub rule: String,
}

/// A conversion of a value to another type: an assignment, an argument or an output.
#[derive(Clone, Debug)]
pub struct Given {
    pub span: Span,
    pub to: Ty,
    /// The variable, parameter or port that has the type.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An actor, unit or network.
    Class,
    Port,
    Parameter,
    Variable,
    Local,
    Function,
    Procedure,
    Tag,
    State,
    Instance,
}

/// An occurrence of a name, and the place of its declaration (which is recorded as well).
#[derive(Clone, Debug)]
pub struct Named {
    pub span: Span,
    pub declared: Span,
    pub kind: Kind,
    /// A description, with its type.
    pub about: String,
}

/// How well a span matches a position: it contains the position, or else ends there; a shorter one is better.
fn fit(span: Span, file: u32, offset: u32) -> Option<(bool, u32)> {
    let there = span.file == file && (span.start..=span.end).contains(&offset);
    there.then(|| (offset == span.end, span.end - span.start))
}

impl Index {
    /// The smallest expression at a place.
    pub fn typed(&self, file: u32, offset: u32) -> Option<&Typed> {
        let all = self.types.iter();
        all.filter_map(|t| Some((fit(t.span, file, offset)?, t)))
            .min_by_key(|(fit, _)| *fit)
            .map(|(_, t)| t)
    }

    /// The conversion of the expression at `span`.
    pub fn given(&self, span: Span) -> Option<&Given> {
        self.given.iter().find(|g| g.span == span)
    }

    /// The declarations of the name at a place: several actions may have one tag.
    pub fn named(&self, file: u32, offset: u32) -> Vec<&Named> {
        let fits = |n: &&Named| fit(n.span, file, offset);
        let Some(best) = self.names.iter().filter_map(|n| fits(&n)).min() else {
            return Vec::new();
        };
        let mut found: Vec<&Named> = Vec::new();
        for named in self.names.iter().filter(|n| fits(n) == Some(best)) {
            if !found.iter().any(|n| n.declared == named.declared) {
                found.push(named);
            }
        }
        found
    }

    /// The description of the declaration at `declared`.
    pub fn about(&self, declared: Span) -> Option<&str> {
        let mut all = self.names.iter().filter(|n| n.span == declared);
        all.find(|n| n.declared == declared)
            .map(|n| n.about.as_str())
    }

    pub fn add(&mut self, other: Index) {
        self.types.extend(other.types);
        self.given.extend(other.given);
        self.names.extend(other.names);
    }

    /// All places of the names that are declared at `declared`, in order.
    pub fn uses(&self, declared: Span) -> Vec<Span> {
        let all = self.names.iter().filter(|n| n.declared == declared);
        let mut found: Vec<Span> = all.map(|n| n.span).collect();
        found.sort_by_key(|s| (s.file, s.start));
        found.dedup();
        found
    }
}
