// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses statements: forks that are statements, and jumps that leave or enter the block of a fork.

use super::expr::ExprKind;
use super::specifiers::{ASM, STATIC_ASSERT};
use super::{Around, Form, Goto, Jump, Label, Parser, Range, Refusal, Result};
use crate::lex::Kind;
use crate::types;
use std::collections::HashSet;
use std::rc::Rc;

impl Parser<'_> {
    /// Parses a block with its braces, in a scope of its own.
    pub(super) fn compound(&mut self) -> Result<()> {
        self.block(false)
    }

    /// Parses a block. `valued`: the block has the value of its last statement, as in `({ ... })`.
    pub(super) fn block(&mut self, valued: bool) -> Result<()> {
        self.deeper(|p| {
            let outer = std::mem::replace(&mut p.body.valued, valued);
            let done = p.scoped(|p| {
                p.expect("{")?;
                p.block_items()?;
                p.expect("}")
            });
            p.body.valued = outer;
            done
        })
    }

    /// Parses declarations and statements up to the closing brace.
    pub(super) fn block_items(&mut self) -> Result<()> {
        while !self.is("}") {
            if self.at >= self.tokens.len() {
                return self.stop("`}`");
            }
            if self.is_word("__label__") {
                while !self.eat(";") {
                    if self.is("}") || self.at >= self.tokens.len() {
                        return self.stop("`;`");
                    }
                    self.at += 1;
                }
            } else if self.begins_declaration() {
                self.local_declaration(false)?;
            } else {
                self.statement()?;
            }
        }
        Ok(())
    }

    pub(super) fn begins_declaration(&self) -> bool {
        if self.one_of(STATIC_ASSERT) {
            return false;
        }
        let label = self.punct_at(self.at + 1, ":") && self.kind(self.at) == Some(Kind::Word);
        if self.is_attribute(self.at) {
            self.type_follows_attributes()
        } else {
            self.is_type(self.at) && !label
        }
    }

    /// Whether attributes of a statement begin here, such as `[[fallthrough]];`.
    fn is_attribute_statement(&self) -> bool {
        self.is_attribute(self.at) && !self.type_follows_attributes()
    }

    fn is_attribute(&self, i: usize) -> bool {
        self.is_word_at(i, "__attribute__")
            || self.is_word_at(i, "__attribute")
            || (self.punct_at(i, "[") && self.punct_at(i + 1, "["))
    }

    fn type_follows_attributes(&self) -> bool {
        let mut i = self.at;
        while self.is_attribute(i) {
            let mut depth = 0;
            i += usize::from(!self.punct_at(i, "["));
            loop {
                match self.kind(i) {
                    Some(Kind::Punct("(" | "[")) => depth += 1,
                    Some(Kind::Punct(")" | "]")) => depth -= 1,
                    None => return false,
                    _ => {}
                }
                i += 1;
                if depth == 0 {
                    break;
                }
            }
        }
        self.is_type(i)
    }

    pub(super) fn statement(&mut self) -> Result<()> {
        self.deeper(Self::statement_here)
    }

    fn statement_here(&mut self) -> Result<()> {
        let start = self.at;
        if self.is_attribute_statement() {
            self.attributes()?;
        }
        match self.kind(self.at) {
            Some(Kind::Punct("{")) => return self.compound(),
            Some(Kind::Punct(";")) => {
                self.at += 1;
                return Ok(());
            }
            Some(Kind::Word) => {}
            _ => return self.expression_statement(start),
        }
        let word = self.word_at(self.at).unwrap_or_default();
        match word.as_str() {
            "if" | "switch" | "while" | "for" | "do" => self.structured(&word),
            "case" | "default" => self.case(),
            "break" | "continue" => self.leave_loop(start, &word),
            "goto" => self.goto(start),
            "return" => self.return_statement(start),
            "_Static_assert" | "static_assert" => {
                self.at += 1;
                self.skip_group()?;
                self.expect(";")
            }
            w if ASM.contains(&w) => self.asm(),
            _ if self.punct_at(self.at + 1, ":") => self.label(word),
            _ => self.expression_statement(start),
        }
    }

    fn expression_statement(&mut self, start: usize) -> Result<()> {
        let e = self.expression()?;
        let mut end = self.at;
        if self.eat(";") {
            end = self.at;
        } else if !self.closed_by_fork() {
            return self.stop("`;`");
        }
        let range = Range { start, end };
        // The last statement of `({ ... })` has a value.
        let valued = self.body.valued && self.is("}");
        let statement = Some(range).filter(|_| !valued);
        self.in_order(&e, statement);
        if valued {
            return Ok(());
        }
        self.unused(&e);
        if matches!(e.kind, ExprKind::Binary(..)) {
            self.check_stars(e.range);
        }
        match &e.kind {
            ExprKind::Fork(fork) => self.out.forks[*fork].form = Form::Statement(range),
            ExprKind::Assign { right, .. } => {
                if let Some(fork) = right.fork()
                    && let Form::Assignment { statement, .. } = &mut self.out.forks[fork].form
                {
                    *statement = Some(range);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn around<T>(
        &mut self,
        around: Around,
        parse: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.body.around.push(around);
        let result = parse(self);
        self.body.around.pop();
        result
    }

    /// Parses `(condition)`. `breakable`: it is that of a loop or switch ([`Around::Condition`]).
    fn condition(&mut self, breakable: bool) -> Result<()> {
        self.expect("(")?;
        self.body.around_parens += 1;
        let e = if breakable {
            self.around(Around::Condition, Self::expression)?
        } else {
            self.expression()?
        };
        self.in_order(&e, None);
        self.body.around_parens -= 1;
        self.expect(")")
    }

    fn structured(&mut self, word: &str) -> Result<()> {
        self.at += 1;
        match word {
            "if" => {
                self.condition(false)?;
                self.statement()?;
                if self.eat_word("else") {
                    self.statement()?;
                }
                Ok(())
            }
            "switch" => {
                self.condition(true)?;
                self.around(Around::Switch, Self::statement)
            }
            "while" => {
                self.condition(true)?;
                self.around(Around::Loop, Self::statement)
            }
            "do" => {
                self.around(Around::Loop, Self::statement)?;
                if !self.eat_word("while") {
                    return self.stop("`while`");
                }
                self.condition(true)?;
                self.expect(";")
            }
            _ => self.scoped(|p| {
                p.expect("(")?;
                p.body.around_parens += 1;
                if p.is_type(p.at) {
                    p.local_declaration(true)?;
                } else if !p.eat(";") {
                    let e = p.expression()?;
                    p.in_order(&e, None);
                    p.unused(&e);
                    p.expect(";")?;
                }
                for close in [";", ")"] {
                    if !p.is(close) {
                        let e = p.around(Around::Condition, Self::expression)?;
                        p.in_order(&e, None);
                        if close == ")" {
                            p.unused(&e);
                        }
                    }
                    p.expect(close)?;
                }
                p.body.around_parens -= 1;
                p.around(Around::Loop, Self::statement)
            }),
        }
    }

    fn case(&mut self) -> Result<()> {
        let start = self.at;
        let is_case = self.is_word("case");
        self.at += 1;
        if is_case {
            self.constant += 1;
            self.conditional()?;
            if self.eat("...") {
                self.conditional()?;
            }
            self.constant -= 1;
        }
        self.expect(":")?;
        let outwards = self.body.around.iter().rev();
        let mut inside = outwards.take_while(|a| **a != Around::Switch);
        if inside.any(|a| matches!(a, Around::Fork(_))) {
            self.refuse(
                "fork-entered",
                Range {
                    start,
                    end: self.at,
                },
                "a jump into the block of a fork would run it without its call",
                "the switch jumps here from outside of the block",
                "put the switch into the block, or the fork into the case",
            );
        }
        self.after_label()
    }

    /// Parses what follows a label: a statement, or (in GNU C and C23) a declaration or nothing.
    fn after_label(&mut self) -> Result<()> {
        if self.is("}") {
            return Ok(());
        }
        if self.begins_declaration() {
            self.local_declaration(false)
        } else {
            self.statement()
        }
    }

    // ---- jumps ----

    fn forks_around(&self) -> Vec<usize> {
        let around = self.body.around.iter();
        around
            .filter_map(|a| match a {
                Around::Fork(n) => Some(*n),
                _ => None,
            })
            .collect()
    }

    fn jump(&mut self, range: Range, mut forks: Vec<usize>, hidden: Rc<HashSet<String>>) {
        forks.reverse();
        if !forks.is_empty() {
            self.out.jumps.push(Jump {
                range,
                value: None,
                comma: false,
                void: false,
                forks,
                result: None,
                external: self.external,
                hidden,
            });
        }
    }

    fn leave_loop(&mut self, start: usize, word: &str) -> Result<()> {
        self.at += 1;
        self.expect(";")?;
        let range = Range {
            start,
            end: self.at,
        };
        let mut left = Vec::new();
        for around in self.body.around.clone().iter().rev() {
            match around {
                Around::Fork(n) => left.push(*n),
                Around::Loop => break,
                Around::Switch if word == "break" => break,
                Around::Switch => {}
                Around::Condition => {
                    if !left.is_empty() {
                        self.refuse(
                            "fork-left-from-condition",
                            range,
                            format!("this `{word}` would leave a fork in the condition of a loop"),
                            "compilers disagree about which loop this leaves",
                            "fork in a statement of the loop, and test the result",
                        );
                    }
                    return Ok(());
                }
            }
        }
        left.reverse();
        let hidden = self.hidden();
        self.jump(range, left, hidden);
        Ok(())
    }

    fn goto(&mut self, start: usize) -> Result<()> {
        self.at += 1;
        let forks = self.forks_around();
        if self.eat("*") {
            self.expression()?;
            self.expect(";")?;
            if !forks.is_empty() {
                self.refuse(
                    "fork-computed-goto",
                    Range {
                        start,
                        end: self.at,
                    },
                    "a computed goto in the block of a fork may leave it unjoined",
                    "the target of this jump is not known",
                    "write a switch, or move the goto after the fork",
                );
            }
            return Ok(());
        }
        let Some(label) = self.word_at(self.at) else {
            return self.stop("a label");
        };
        self.at += 1;
        self.expect(";")?;
        let range = Range {
            start,
            end: self.at,
        };
        let hidden = self.hidden();
        self.body.gotos.push(Goto {
            label,
            range,
            forks,
            hidden,
        });
        Ok(())
    }

    fn return_statement(&mut self, start: usize) -> Result<()> {
        self.at += 1;
        let (mut value, mut comma) = (None, false);
        let mut end = self.at;
        if !self.eat(";") {
            let from = self.at;
            let e = self.expression()?;
            self.in_order(&e, None);
            comma = matches!(e.kind, ExprKind::Comma(..));
            value = Some(Range {
                start: from,
                end: self.at,
            });
            end = self.at;
            let whole = |end| Range { start, end };
            if self.eat(";") {
                end = self.at;
            } else if !self.closed_by_fork() {
                return self.stop("`;`");
            }
            if let Some(fork) = e.fork() {
                self.out.forks[fork].form = Form::Return(whole(end));
            }
        } else {
            end += 1;
        }
        let range = Range { start, end };
        let mut forks = self.forks_around();
        forks.reverse();
        if !forks.is_empty() {
            let result = self.body.result.clone();
            self.out.jumps.push(Jump {
                range,
                value,
                comma,
                void: result.as_ref().is_some_and(types::is_void),
                forks,
                result,
                external: self.external,
                hidden: self.hidden(),
            });
        }
        Ok(())
    }

    fn label(&mut self, name: String) -> Result<()> {
        let at = self.at;
        self.at += 2;
        let forks = self.forks_around();
        let label = Label {
            at,
            forks,
            twice: false,
        };
        if let Some(before) = self.body.labels.insert(name.clone(), label) {
            // Valid with __label__ in different blocks.
            let now = self.body.labels.get_mut(&name).expect("just inserted");
            now.twice = true;
            if now.forks.len() < before.forks.len() {
                now.forks = before.forks;
            }
        }
        self.attributes()?;
        self.after_label()
    }

    fn asm(&mut self) -> Result<()> {
        let start = self.at;
        self.at += 1;
        let mut jumps = false;
        while self.one_of(&["volatile", "__volatile__", "__volatile", "inline", "goto"]) {
            jumps |= self.is_word("goto");
            self.at += 1;
        }
        let open = self.at;
        self.skip_group()?;
        let range = Range {
            start,
            end: self.at,
        };
        if jumps {
            let forks = self.forks_around();
            if !forks.is_empty() {
                self.refuse(
                    "fork-asm-goto",
                    range,
                    "`asm goto` in the block of a fork may leave it unjoined",
                    "the fork is still open here",
                    "move the asm into a function that the block calls, or after the fork",
                );
            }
            // Its labels follow the last colon.
            let colon = (open..self.at).rev().find(|&i| self.punct_at(i, ":"));
            for i in colon.unwrap_or(self.at)..self.at {
                if let Some(label) = self.word_at(i) {
                    self.body.gotos.push(Goto {
                        label,
                        range,
                        forks: forks.clone(),
                        hidden: Rc::default(),
                    });
                }
            }
        }
        self.expect(";")
    }

    /// Resolves the gotos at the end of a function, when all its labels are known: which leave or enter the block of a
    /// fork.
    pub(super) fn end_of_body(&mut self) {
        let body = std::mem::take(&mut self.body);
        for goto in &body.gotos {
            let Some(label) = body.labels.get(&goto.label) else {
                // The C compiler reports a missing label.
                continue;
            };
            let shared = goto.forks.iter().zip(&label.forks);
            let shared = shared.take_while(|(a, b)| a == b).count();
            if label.forks.len() > shared {
                self.enters(goto.range, label.at);
            } else if label.twice && !goto.forks.is_empty() {
                self.refuse(
                    "fork-label-twice",
                    goto.range,
                    format!("there are several labels `{}`", goto.label),
                    "this goto may leave the block of a fork",
                    "give the labels different names",
                );
            }
            let forks = goto.forks[shared..].to_vec();
            self.jump(goto.range, forks, goto.hidden.clone());
        }
        let has_forks = self.out.forks.len() > body.forks_before;
        for (label, range) in body.from_inside.iter().filter(|_| has_forks) {
            self.refuse(
                "fork-left-from-inside",
                *range,
                format!("a goto to `{label}` in the outer function may leave the block of a fork"),
                "the fork would never be joined",
                "return a value that tells the caller to jump",
            );
        }
        for (name, at) in &body.addressed {
            let inside = body.labels.get(name).filter(|l| !l.forks.is_empty());
            if let Some(label) = inside {
                let here = Range {
                    start: *at,
                    end: at + 1,
                };
                self.enters(here, label.at);
            }
        }
    }

    fn enters(&mut self, from: Range, label: usize) {
        self.out.refusals.push(Refusal {
            code: "fork-entered",
            message: "a jump into the block of a fork would run it without its call".into(),
            at: from,
            label: "from here".into(),
            also: Some((
                Range {
                    start: label,
                    end: label + 1,
                },
                "into the block".into(),
            )),
            help: Some("jump to before the fork, or put the block's tail into a function".into()),
        });
    }
}
