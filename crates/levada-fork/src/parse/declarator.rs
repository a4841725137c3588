// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses declarators: pointers, arrays and functions around a name, or without a name.

use super::specifiers::{ASM, ATTRIBUTE, QUALIFIERS};
use super::{Name, Parser, Range, Result};
use crate::lex::Kind;
use crate::types::{self, Function, Length, Type};
use std::rc::Rc;

impl Parser<'_> {
    /// Parses a type without a name, as in a cast.
    pub(super) fn type_name(&mut self) -> Result<Type> {
        let specs = self.deeper(Self::specifiers)?;
        Ok(self.declarator(specs.ty)?.1)
    }

    /// Parses a declarator and returns its name, if it has one, and its type.
    pub(super) fn declarator(&mut self, base: Type) -> Result<(Option<String>, Type)> {
        self.deeper(|p| p.declarator_here(base))
    }

    fn declarator_here(&mut self, mut base: Type) -> Result<(Option<String>, Type)> {
        let start = self.at;
        self.attributes()?;
        let mut convention = self.convention(start..self.at);
        while self.is("*") || self.is("^") {
            self.at += 1;
            let mut quals = Vec::new();
            loop {
                if self.one_of(ATTRIBUTE) {
                    let start = self.at;
                    self.attributes()?;
                    convention += &self.convention(start..self.at);
                } else if self.one_of(QUALIFIERS) || self.is_word("_Atomic") {
                    let word = self.word_at(self.at).unwrap_or_default();
                    match word.trim_matches('_') {
                        q @ ("const" | "volatile") => quals.push(q.to_string()),
                        "Atomic" => quals.push("_Atomic".to_string()),
                        "restrict" => quals.push("__restrict".to_string()),
                        _ => {}
                    }
                    self.at += 1;
                } else {
                    break;
                }
            }
            base = Rc::new(types::Kind::Pointer {
                quals: quals.join(" "),
                convention: std::mem::take(&mut convention),
                to: base,
            });
        }
        self.attributes()?;
        if self.is("(") && self.is_nested_declarator() {
            let inside = self.at + 1;
            self.skip_group()?;
            let ty = self.suffixes(base)?;
            let after = self.at;
            let outer = std::mem::take(&mut self.params);
            self.at = inside;
            let found = self.declarator(ty)?;
            self.expect(")")?;
            self.at = after;
            if self.params.is_empty() {
                self.params = outer;
            }
            return Ok(found);
        }
        let name = self.word_at(self.at).filter(|w| {
            !QUALIFIERS.contains(&w.as_str()) && !self.one_of(ATTRIBUTE) && !self.one_of(ASM)
        });
        self.at += usize::from(name.is_some());
        let ty = self.suffixes(base)?;
        Ok((name, ty))
    }

    /// Whether the parenthesis here contains a declarator, and not parameters.
    fn is_nested_declarator(&self) -> bool {
        let next = self.at + 1;
        match self.kind(next) {
            Some(Kind::Punct("*" | "^" | "(" | "[")) => true,
            Some(Kind::Word) => {
                let word = self.word_at(next).unwrap_or_default();
                ATTRIBUTE.contains(&word.as_str()) || !self.is_type(next)
            }
            _ => false,
        }
    }

    fn suffixes(&mut self, base: Type) -> Result<Type> {
        if self.is("[") && !self.punct_at(self.at + 1, "[") {
            let start = self.at;
            self.skip_group()?;
            let inside = Range {
                start: start + 1,
                end: self.at - 1,
            };
            let length = self.length(inside);
            let of = self.suffixes(base)?;
            return Ok(Rc::new(types::Kind::Array { of, length }));
        }
        if self.is("(") {
            self.at += 1;
            let (params, variadic, prototype) = self.parameters()?;
            let named = params.clone();
            let result = self.suffixes(base)?;
            self.params = named;
            let params = params.into_iter().map(|p| p.1).collect();
            return Ok(Rc::new(types::Kind::Function(Function {
                result,
                params,
                variadic,
                prototype,
            })));
        }
        Ok(base)
    }

    /// The length of an array from the tokens between its brackets.
    fn length(&self, inside: Range) -> Length {
        let word = |i: usize| self.word_at(i).unwrap_or_default();
        let mut range = inside;
        while range.start < range.end {
            let w = word(range.start);
            if w != "static" && !QUALIFIERS.contains(&w.as_str()) {
                break;
            }
            range.start += 1;
        }
        if range.start == range.end {
            return Length::Open;
        }
        let local = (range.start..range.end).any(|i| {
            let w = word(i);
            self.punct_at(i, "*") && range.end - range.start == 1
                || matches!(self.lookup(&w), Some((Name::Value(_), _)))
                || self.lookup(&w).is_some_and(|(_, depth)| depth > 0)
        });
        if local {
            Length::Variable
        } else {
            Length::Constant(self.words(range))
        }
    }

    /// Parses the parameters after `(`. Returns them, whether `...` ends them, and whether they form a prototype.
    #[allow(clippy::type_complexity)]
    fn parameters(&mut self) -> Result<(Vec<(Option<String>, Type)>, bool, bool)> {
        if self.eat(")") {
            return Ok((Vec::new(), false, false));
        }
        if self.is_word("void") && self.punct_at(self.at + 1, ")") {
            self.at += 2;
            return Ok((Vec::new(), false, true));
        }
        // Only names: the old style, in which the types follow the head.
        if !self.is_type(self.at) && matches!(self.kind(self.at), Some(Kind::Word)) {
            while self.kind(self.at) == Some(Kind::Word) && !self.is_type(self.at) {
                self.at += 1;
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
            return Ok((Vec::new(), false, false));
        }
        self.scoped(|p| {
            let mut params = Vec::new();
            let mut variadic = false;
            loop {
                if p.eat("...") {
                    variadic = true;
                    break;
                }
                p.attributes()?;
                let specs = p.deeper(Self::specifiers)?;
                let (name, ty) = p.declarator(specs.ty)?;
                p.attributes()?;
                let ty = types::decayed(&ty);
                if let Some(name) = &name {
                    p.define(name.clone(), Name::Value(ty.clone()));
                }
                params.push((name, ty));
                if !p.eat(",") {
                    break;
                }
            }
            p.expect(")")?;
            Ok((params, variadic, true))
        })
    }
}
