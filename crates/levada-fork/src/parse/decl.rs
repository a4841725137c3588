// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses declarations: those of the file, with function definitions, and those in blocks.

use super::specifiers::{ASM, STATIC_ASSERT, Specs};
use super::{Body, External, Name, Parser, Range, Refusal, Result, Scope};
use crate::lex::Kind;
use crate::types::{self, Type};

impl Parser<'_> {
    // ---- file scope ----

    /// Parses the whole file. A declaration with an error is skipped, and refused if it has a fork.
    pub(super) fn unit(&mut self) {
        while self.at < self.tokens.len() {
            let start = self.at;
            self.external = start;
            self.nesting = 0;
            self.scopes.truncate(1);
            self.unevaluated = 0;
            self.constant = 0;
            let before = self.out.refusals.len();
            match self.external_declaration() {
                Ok(()) if self.at > start => {}
                Ok(()) => self.at += 1,
                Err(stop) => {
                    let stopped = stop.at.min(self.tokens.len().saturating_sub(1));
                    self.at = start;
                    self.skip_declaration();
                    // After a refusal the rest may be unparseable because of it: report only the first.
                    let holds = self.holds_fork(start, self.at);
                    let new = self.out.refusals.len() == before;
                    if holds && new && stop.deep {
                        self.refuse(
                            "nesting",
                            Range {
                                start: stopped,
                                end: stopped + 1,
                            },
                            "this is nested too deeply",
                            "there are too many brackets, blocks and operators around this",
                            "move a part of it into a function of its own",
                        );
                    } else if holds && new {
                        let what = match self.kind(stop.at) {
                            None => "the end of the file".to_string(),
                            Some(_) => format!("`{}`", self.spelled(&self.tokens[stop.at])),
                        };
                        self.refuse(
                            "not-understood",
                            Range {
                                start: stopped,
                                end: stopped + 1,
                            },
                            format!("expected {}, found {what}", stop.expected),
                            "this cannot be parsed, and the declaration contains forks",
                            "if the C compiler accepts this, move the forks into a function of \
                             their own",
                        );
                    }
                }
            }
        }
    }

    /// Skips to after the next semicolon outside of brackets, or after the next group in braces that ends a
    /// declaration.
    fn skip_declaration(&mut self) {
        while let Some(kind) = self.kind(self.at) {
            match kind {
                Kind::Punct("{") => {
                    let _ = self.skip_group();
                    if !self.is(";") && !self.is("=") && !self.is(",") {
                        let ends = !matches!(self.kind(self.at), Some(Kind::Word))
                            || self.is_type(self.at)
                            || !self.punct_at(self.at + 1, ";");
                        if ends {
                            return;
                        }
                    }
                }
                Kind::Punct("(" | "[") => {
                    if self.skip_group().is_err() {
                        return;
                    }
                }
                Kind::Punct(";") => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn external_declaration(&mut self) -> Result<()> {
        let start = self.at;
        self.attributes()?;
        if self.eat(";") {
            return Ok(());
        }
        if self.one_of(STATIC_ASSERT) || self.one_of(ASM) {
            self.skip_declaration();
            return Ok(());
        }
        let specs = self.specifiers()?;
        if self.eat(";") {
            return Ok(());
        }
        loop {
            self.params.clear();
            let (name, ty) = self.declarator(specs.ty.clone())?;
            let params = std::mem::take(&mut self.params);
            let head = Range {
                start,
                end: self.at,
            };
            let ty = self.attributes_of(ty)?;
            let Some(name) = name else {
                return self.stop("a name");
            };
            let targets = self.targets_in(start..self.at);
            if !targets.is_empty() {
                let known = self.targets.entry(name.clone()).or_default();
                known.extend(targets);
            }
            let is_function = matches!(&*ty, types::Kind::Function(_));
            if is_function && !specs.typedef && !(self.is(";") || self.is(",") || self.is("=")) {
                return self.definition(name, ty, head, params);
            }
            self.declare_name(name, &specs, ty);
            if self.eat("=") {
                self.constant += 1;
                self.initializer(&mut Vec::new())?;
                self.constant -= 1;
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn declare_name(&mut self, name: String, specs: &Specs, ty: Type) {
        let what = if specs.typedef {
            Name::Typedef(ty)
        } else {
            Name::Value(ty)
        };
        let scope = self.scopes.last_mut().expect("file scope is never removed");
        if specs.constant {
            scope.shared.insert(name.clone())
        } else {
            scope.shared.remove(&name)
        };
        self.define(name, what);
    }

    /// Parses the body of a function, after its head.
    fn definition(
        &mut self,
        name: String,
        ty: Type,
        head: Range,
        mut params: Vec<(Option<String>, Type)>,
    ) -> Result<()> {
        let known = self.lookup(&name).is_some();
        // A definition in the old style must not replace an earlier prototype, which has the parameters' types.
        let prototyped = matches!(&*ty, types::Kind::Function(f) if f.prototype);
        if prototyped || !known {
            self.define(name.clone(), Name::Value(ty.clone()));
        }
        let old_style = !self.is("{");
        self.scopes.push(Scope::default());
        while !self.is("{") {
            if !self.is_type(self.at) {
                return self.stop("`{`");
            }
            let specs = self.specifiers()?;
            loop {
                let (param, ty) = self.declarator(specs.ty.clone())?;
                params.push((param, types::decayed(&ty)));
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        let open = self.at;
        self.skip_group()?;
        let end = self.at;
        if !self.holds_fork(open, end) {
            self.scopes.pop();
            return Ok(());
        }
        self.at = open;
        for (param, ty) in params {
            if let Some(param) = param {
                self.define(param, Name::Value(ty));
            }
        }
        let result = match &*ty {
            types::Kind::Function(f) => Some(f.result.clone()),
            _ => None,
        };
        self.body = Body {
            name: name.clone(),
            result,
            taken: self.taken(open..end),
            forks_before: self.out.forks.len(),
            ..Body::default()
        };
        let mut words = head.start..head.end;
        let is_static = words.clone().any(|i| self.is_word_at(i, "static"));
        let declared = types::declare(&self.out.tags, &ty, &name).ok();
        let target = match self.targets.get(&name) {
            Some(targets) => format!("__attribute__(({})) ", targets.join(", ")),
            None => String::new(),
        };
        let old_style = declared.filter(|_| old_style);
        self.out.externals.push(External {
            start: self.external,
            head,
            name,
            known,
            old_style: old_style.map(|d| if is_static { format!("static {d}") } else { d }),
            defines: words.any(|i| self.punct_at(i, "{")),
            target,
        });
        // The body shares the scope of the parameters.
        self.at += 1;
        self.block_items()?;
        self.expect("}")?;
        self.scopes.pop();
        self.end_of_body();
        Ok(())
    }

    // ---- in blocks ----

    /// Parses a declaration in a block or in the head of a `for`, with its semicolon.
    pub(super) fn local_declaration(&mut self, in_for: bool) -> Result<()> {
        let start = self.at;
        self.attributes()?;
        let specs = self.specifiers()?;
        while !self.is(";") {
            self.params.clear();
            let (name, ty) = self.declarator(specs.ty.clone())?;
            let params = std::mem::take(&mut self.params);
            let ty = self.attributes_of(ty)?;
            let Some(name) = name else {
                return self.stop("a name");
            };
            if self.is("{") && matches!(&*ty, types::Kind::Function(_)) {
                return self.nested_function(name, ty, params);
            }
            self.declare_name(name.clone(), &specs, ty.clone());
            if self.is("=") {
                let assign = self.at;
                self.at += 1;
                self.constant += u32::from(specs.constant);
                let mut values = Vec::new();
                let braces = self.initializer(&mut values)?;
                self.constant -= u32::from(specs.constant);
                match values.as_slice() {
                    [value] if !braces => self.in_order(value, None),
                    _ => self.elements_in_order(&values),
                }
                let value = values.pop().filter(|_| !braces);
                let scalar = !matches!(
                    &**types::resolve(&ty),
                    types::Kind::Array { .. } | types::Kind::Unknown
                );
                // A variable with a cleanup function must not be in scope before it has its value, since a jump that
                // leaves the block would call the function. So it is not declared before the fork.
                let cleaned = (start..assign)
                    .any(|i| self.is_word_at(i, "cleanup") || self.is_word_at(i, "__cleanup__"));
                let free = types::unqualified(&ty) == ty && !specs.fixed && !cleaned;
                let ends = self.is(";") || (!self.is(",") && self.closed_by_fork());
                if let Some(fork) = value.and_then(|e| e.fork())
                    && scalar
                    && free
                    && ends
                    && !in_for
                    && !self.declarations_follow()
                {
                    let end = self.at + usize::from(self.is(";"));
                    self.out.forks[fork].form = super::Form::Declaration {
                        assign,
                        name,
                        whole: Range { start, end },
                    };
                }
                if !self.is(";") && !self.is(",") && ends {
                    return Ok(());
                }
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    /// Whether a declaration follows the one that ends here. In C90 the fork then cannot become a statement, since no
    /// statement may precede a declaration.
    fn declarations_follow(&mut self) -> bool {
        let here = self.at;
        self.at += usize::from(self.is(";"));
        let follow = self.begins_declaration();
        self.at = here;
        follow
    }

    /// Parses a nested function (GNU C). Its forks are refused, since code at file scope cannot call what it calls.
    fn nested_function(
        &mut self,
        name: String,
        ty: Type,
        params: Vec<(Option<String>, Type)>,
    ) -> Result<()> {
        // A fork of it is called through a pointer, since its name is unknown at file scope.
        self.define(name.clone(), Name::Value(types::pointer(ty.clone())));
        let result = match &*ty {
            types::Kind::Function(f) => Some(f.result.clone()),
            _ => None,
        };
        let inner = Body {
            name,
            result,
            nested: true,
            ..Body::default()
        };
        let outer = std::mem::replace(&mut self.body, inner);
        let start = self.at;
        let done = self.scoped(|p| {
            for (param, ty) in params {
                if let Some(param) = param {
                    p.define(param, Name::Value(ty));
                }
            }
            p.expect("{")?;
            p.block_items()?;
            p.expect("}")
        });
        let inner = std::mem::replace(&mut self.body, outer);
        let gotos = inner.gotos.into_iter().map(|g| (g.label, g.range));
        let leaving = gotos.chain(inner.from_inside);
        let leaving = leaving.filter(|(label, _)| !inner.labels.contains_key(label));
        self.body.from_inside.extend(leaving);
        // It may write to the outer function's variables whenever it is called.
        let written = self.touched(start..self.at);
        self.body.taken.extend(written);
        done
    }

    /// Whether the statement ends here without a semicolon, since the last thing read is the block of a fork. Marks
    /// that fork.
    pub(super) fn closed_by_fork(&mut self) -> bool {
        if !self.behind_fork() {
            return false;
        }
        if let Some(fork) = self.out.forks.last_mut() {
            fork.closes = true;
        }
        true
    }

    /// Refuses a `*` after the block of a fork in `product`. It multiplies, but the product is assigned to or dropped,
    /// so it was meant to begin the next statement.
    pub(super) fn check_stars(&mut self, product: Range) {
        let within = |at: &&usize| product.start <= **at && **at < product.end;
        let Some(at) = self.body.stars.iter().find(within).copied() else {
            return;
        };
        self.body.stars.retain(|&s| s != at);
        self.out.refusals.push(Refusal {
            code: "ambiguous-end",
            message: "this `*` multiplies the result of the fork".into(),
            at: Range {
                start: at,
                end: at + 1,
            },
            label: "does this begin the next statement?".into(),
            also: Some((
                Range {
                    start: at - 1,
                    end: at,
                },
                "the fork ends here, but the expression continues".into(),
            )),
            help: Some("write `;` after the block to end the statement".into()),
        });
    }
}
