// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of evaluation of an expression with forks: from left to right, and a fork with its block is complete
//! before an operand to the right of it begins. C leaves the order of most operands to the compiler, so the result
//! would otherwise be unspecified if a block changes what another operand reads.
//!
//! If no other operand depends on the order, the expression is left as it is. Otherwise its parts become the steps of a
//! [`Sequence`].

use super::expr::{Expr, ExprKind};
use super::{Kept, Name, Parser, Range, Refusal, Sequence, Step};
use crate::lex::Kind;
use crate::types;
use std::collections::HashSet;

/// A part of an expression, in the order of evaluation.
struct Part {
    step: Step,
    /// The part contains a fork.
    forks: bool,
}

/// The operators that write to their operand.
const WRITES: &[&str] = &[
    "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", "++", "--",
];

impl Parser<'_> {
    /// Orders a whole expression. `statement`: the statement with its semicolon, if the expression is one.
    pub(super) fn in_order(&mut self, e: &Expr, statement: Option<Range>) {
        if !self.holds(e) || self.unevaluated > 0 || self.constant > 0 {
            return;
        }
        if let ExprKind::Assign { left, right, op } = &e.bare().kind {
            return self.assignment_in_order(e.bare().range, left, right, *op, statement);
        }
        let touched = self.touched(e.range.start..e.range.end);
        let mut parts = Vec::new();
        self.parts(e, &touched, &mut parts);
        let made = self.sequence(e.range, parts, statement);
        if made && statement.is_none() {
            self.check_literals(e);
        }
    }

    /// Refuses an expression if its value may be the address of a compound literal in it. A sequence is a block, and
    /// the literal's object ends with the block.
    fn check_literals(&mut self, e: &Expr) {
        if let Some(literal) = self.literal_given(e) {
            self.refuse_literal(literal);
        }
    }

    fn refuse_literal(&mut self, literal: Range) {
        self.out.refusals.push(Refusal {
            code: "fork-literal",
            message:
                "the address of this object would outlive it: the object ends with the expression, \
                      which has to be ordered because of a fork"
                    .into(),
            at: literal,
            label: "its address may become the expression's value".into(),
            also: None,
            help: Some("declare it as a variable before the statement".into()),
        });
    }

    /// The compound literal of which the address may be the value of an expression, or a part of the value.
    fn literal_given(&self, e: &Expr) -> Option<Range> {
        match &e.kind {
            ExprKind::Compound(ty, elements) => match &**types::resolve(ty) {
                types::Kind::Array { .. } => Some(e.range),
                _ => elements.iter().find_map(|e| self.literal_given(e)),
            },
            ExprKind::Unary("&", of) => literal_named(of),
            ExprKind::Cast(ty, of) if types::is_arithmetic(&self.out.tags, ty) => {
                self.literal_assigned(of)
            }
            ExprKind::Paren(of) | ExprKind::Cast(_, of) => self.literal_given(of),
            ExprKind::Member {
                of, arrow: false, ..
            } => self.literal_given(of),
            ExprKind::Binary("+" | "-", a, b) => {
                self.literal_given(a).or_else(|| self.literal_given(b))
            }
            ExprKind::Conditional(_, a, b) => {
                let first = a.as_ref().and_then(|a| self.literal_given(a));
                first.or_else(|| self.literal_given(b))
            }
            ExprKind::Comma(a, b) => self.literal_assigned(a).or_else(|| self.literal_given(b)),
            ExprKind::Assign { right, .. } => self.literal_given(right),
            ExprKind::Call(_, args) => {
                let ty = self.type_of(e);
                let number = ty.is_some_and(|ty| {
                    types::is_void(&ty) || types::is_arithmetic(&self.out.tags, &ty)
                });
                let given = |arg: &Expr| {
                    if number {
                        self.literal_assigned(arg)
                    } else {
                        self.literal_given(arg)
                    }
                };
                args.iter().find_map(given)
            }
            _ => None,
        }
    }

    /// The compound literal of which an expression may assign the address to a variable.
    fn literal_assigned(&self, e: &Expr) -> Option<Range> {
        match &e.bare().kind {
            ExprKind::Assign { right, .. } => self.literal_given(right),
            ExprKind::Comma(a, b) => self
                .literal_assigned(a)
                .or_else(|| self.literal_assigned(b)),
            _ => None,
        }
    }

    /// Checks initialisers in braces. They cannot become steps, so they are refused if their values depend on the
    /// order.
    pub(super) fn elements_in_order(&mut self, elements: &[Expr]) {
        if self.unevaluated > 0 || self.constant > 0 || !elements.iter().any(|e| self.holds(e)) {
            return;
        }
        let whole = Range {
            start: elements[0].range.start,
            end: elements[elements.len() - 1].range.end,
        };
        let touched = self.touched(whole.start..whole.end);
        let mut fork = None;
        let mut other = None;
        for e in elements {
            let forks = self.holds(e);
            if forks {
                self.in_order(e, None);
            }
            if forks && fork.is_none() {
                fork = Some(e.range);
            } else if forks || !self.steady(e, &touched) {
                other.get_or_insert(e.range);
            }
        }
        if let (Some(fork), Some(other)) = (fork, other) {
            self.out.refusals.push(Refusal {
                code: "fork-order",
                message: "the values in these braces depend on their order of evaluation, which C leaves open"
                    .into(),
                at: fork,
                label: "the fork and the other value may affect each other".into(),
                also: Some((other, "the other value".into())),
                help: Some(
                    "compute the values into variables before, in the intended order".into(),
                ),
            });
        }
    }

    fn holds(&self, e: &Expr) -> bool {
        self.holds_fork(e.range.start, e.range.end)
    }

    fn assignment_in_order(
        &mut self,
        whole: Range,
        left: &Expr,
        right: &Expr,
        op: usize,
        statement: Option<Range>,
    ) {
        if self.holds(left) {
            self.place_in_order(left);
        }
        if right.fork().is_some() {
            // `Form::Assignment` keeps the order.
            return;
        }
        let mut touched = self.touched(right.range.start..right.range.end);
        if self.holds(left) {
            touched.extend(self.touched(left.range.start..left.range.end));
        }
        let mut parts = Vec::new();
        if self.holds(left) || !self.steady_place(left, &touched) {
            parts.push(Part {
                step: Step {
                    range: left.range,
                    what: Kept::Place(self.place(left)),
                },
                forks: self.holds(left),
            });
        }
        self.part(right, &touched, &mut parts);
        if !self.punct_at(op, "=") && parts.last().is_some_and(|p| p.forks) {
            // `op=` reads the left side after the fork.
            parts.push(Part {
                step: Step {
                    range: Range { start: op, end: op },
                    what: Kept::Value,
                },
                forks: false,
            });
        }
        if self.sequence(whole, parts, statement)
            && let Some(literal) = self.literal_given(right)
        {
            self.refuse_literal(literal);
        }
    }

    /// Orders the forks in the left side of an assignment.
    fn place_in_order(&mut self, left: &Expr) {
        let Some(path) = self.path(left) else {
            return match &left.bare().kind {
                ExprKind::Unary("*", of) => self.in_order(of, None),
                ExprKind::Index(..) if self.holds(left) => self.element_in_order(left),
                _ => self.in_order(left, None),
            };
        };
        if path.pointer {
            self.in_order(path.base, None)
        } else {
            self.place_in_order(path.base)
        }
        for part in path.parts {
            if let ExprKind::Index(_, index) = &part.kind {
                self.in_order(index, None);
            }
        }
    }

    /// Orders `p[i]` as an lvalue.
    fn element_in_order(&mut self, e: &Expr) {
        let touched = self.touched(e.range.start..e.range.end);
        let mut parts = Vec::new();
        self.parts(e, &touched, &mut parts);
        let before = self.out.sequences.len();
        self.sequence(e.range, parts, None);
        if let Some(made) = self
            .out
            .sequences
            .get_mut(before..)
            .and_then(|s| s.last_mut())
        {
            made.place = true;
        }
    }

    /// Makes a sequence of the parts if the order matters, and returns whether it does.
    fn sequence(&mut self, range: Range, parts: Vec<Part>, statement: Option<Range>) -> bool {
        let Some(last) = parts.iter().rposition(|p| p.forks) else {
            return false;
        };
        if parts.len() < 2 {
            return false;
        }
        // Parts to the right of the last fork stay in the expression, which is evaluated after all steps.
        let ends = last + 1 == parts.len() && !matches!(parts[last].step.what, Kept::Fork(_));
        let count = if ends { last } else { last + 1 };
        let steps = parts.into_iter().take(count).map(|p| p.step).collect();
        self.out.sequences.push(Sequence {
            range,
            statement,
            place: false,
            steps,
            external: self.external,
        });
        true
    }

    /// Appends the parts of an expression that contains a fork. `touched`: the variables that the expression may write.
    fn parts(&mut self, e: &Expr, touched: &HashSet<String>, parts: &mut Vec<Part>) {
        let unit = |what| Part {
            step: Step {
                range: e.range,
                what,
            },
            forks: true,
        };
        match &e.kind {
            ExprKind::Fork(n) => parts.push(unit(Kept::Fork(*n))),
            ExprKind::Paren(of) => {
                let before = parts.len();
                self.parts(of, touched, parts);
                if let [one] = &mut parts[before..]
                    && one.step.range == of.range
                {
                    one.step.range = e.range;
                }
            }
            ExprKind::Unary(_, of)
            | ExprKind::Postfix(of)
            | ExprKind::Cast(_, of)
            | ExprKind::Member { of, .. } => self.parts(of, touched, parts),
            ExprKind::Binary("&&" | "||", a, b) | ExprKind::Comma(a, b) => {
                parts.push(unit(self.kept(e)));
                self.in_order(a, None);
                self.in_order(b, None);
            }
            ExprKind::Conditional(c, a, b) => {
                parts.push(unit(Kept::Value));
                self.in_order(c, None);
                if let Some(a) = a {
                    self.in_order(a, None);
                }
                self.in_order(b, None);
            }
            ExprKind::Binary(_, a, b) => {
                self.part(a, touched, parts);
                self.part(b, touched, parts);
            }
            ExprKind::Index(a, i) => {
                self.indexed(a, touched, parts);
                self.part(i, touched, parts);
            }
            ExprKind::Call(callee, args) => {
                // An undeclared name is a built-in function, which has no value to store.
                let named = matches!(&callee.kind, ExprKind::Name(n) if self.lookup(n).is_none());
                if !named {
                    self.part(callee, touched, parts);
                }
                for arg in args {
                    self.part(arg, touched, parts);
                }
            }
            ExprKind::Compound(_, elements) => {
                for element in elements {
                    self.part(element, touched, parts);
                }
            }
            ExprKind::Assign { .. } => {
                parts.push(unit(self.kept(e)));
                self.in_order(e, None);
            }
            _ => parts.push(unit(Kept::Value)),
        }
    }

    fn part(&mut self, e: &Expr, touched: &HashSet<String>, parts: &mut Vec<Part>) {
        if self.holds(e) {
            return self.parts(e, touched, parts);
        }
        if self.steady(e, touched) {
            return;
        }
        let what = match &e.bare().kind {
            // A member array of a call's result ends with the expression: store the whole result.
            ExprKind::Member {
                of, arrow: false, ..
            } if !is_place(of) => return self.part(of, touched, parts),
            _ => self.kept(e),
        };
        parts.push(Part {
            step: Step {
                range: e.range,
                what,
            },
            forks: false,
        });
    }

    /// How the value of an expression is stored: as a member if it may be a bit-field.
    fn kept(&self, e: &Expr) -> Kept {
        match &e.bare().kind {
            ExprKind::Member { .. }
            | ExprKind::Assign { .. }
            | ExprKind::Comma(..)
            | ExprKind::Postfix(_)
            | ExprKind::Unary("++" | "--", _) => Kept::Member {
                arithmetic: self
                    .type_of(e)
                    .is_some_and(|ty| types::is_arithmetic(&self.out.tags, &ty)),
            },
            _ => Kept::Value,
        }
    }

    /// Appends the operand before `[`: a pointer, or an object of which an element may be used as an lvalue.
    fn indexed(&mut self, e: &Expr, touched: &HashSet<String>, parts: &mut Vec<Part>) {
        let pointer = self
            .type_of(e)
            .is_some_and(|t| types::pointed(&t).is_some());
        if pointer || self.holds(e) || !is_place(e) {
            return self.part(e, touched, parts);
        }
        if !self.steady_place(e, touched) || !matches!(e.bare().kind, ExprKind::Name(_)) {
            parts.push(Part {
                step: Step {
                    range: e.range,
                    what: Kept::Object,
                },
                forks: false,
            });
        }
    }

    /// Whether an expression without forks has no side effect, and the same value whenever it is evaluated.
    fn steady(&self, e: &Expr, touched: &HashSet<String>) -> bool {
        match &e.kind {
            ExprKind::Number | ExprKind::Char | ExprKind::String | ExprKind::Size => true,
            ExprKind::Paren(of) | ExprKind::Cast(_, of) => self.steady(of, touched),
            ExprKind::Unary("+" | "-" | "~" | "!", of) => self.steady(of, touched),
            ExprKind::Unary("&", of) => self.steady_place(of, touched),
            ExprKind::Binary(_, a, b) => self.steady(a, touched) && self.steady(b, touched),
            ExprKind::Conditional(c, a, b) => {
                let then = a.as_ref().is_none_or(|a| self.steady(a, touched));
                then && self.steady(c, touched) && self.steady(b, touched)
            }
            ExprKind::Name(name) => self.steady_name(name, touched),
            _ => false,
        }
    }

    fn steady_name(&self, name: &str, touched: &HashSet<String>) -> bool {
        let ty = match self.lookup(name) {
            Some((Name::Enumerator(_), _)) => return true,
            Some((Name::Value(ty), _)) => ty,
            _ => return false,
        };
        let scope = self.scopes.iter().rev();
        let scope = scope.take(self.scopes.len() - 1);
        let own = scope.into_iter().find(|s| s.names.contains_key(name));
        match &**types::resolve(ty) {
            types::Kind::Function(_) | types::Kind::Array { .. } => return true,
            types::Kind::Pointer { .. } => {}
            _ if types::is_arithmetic(&self.out.tags, ty) => {}
            _ => return false,
        }
        // A local variable that no other code can change.
        own.is_some_and(|s| !s.shared.contains(name))
            && !types::is_volatile(ty)
            && !self.body.taken.contains(name)
            && !touched.contains(name)
    }

    /// Whether an lvalue names the same object whenever it is evaluated.
    fn steady_place(&self, e: &Expr, touched: &HashSet<String>) -> bool {
        match &e.kind {
            ExprKind::Name(_) => true,
            ExprKind::Paren(of) => self.steady_place(of, touched),
            ExprKind::Member {
                of, arrow: false, ..
            } => self.steady_place(of, touched),
            ExprKind::Member {
                of, arrow: true, ..
            }
            | ExprKind::Unary("*", of) => self.steady(of, touched),
            ExprKind::Index(a, i) => {
                let base = match self.type_of(a).as_ref().map(types::resolve) {
                    Some(ty) if matches!(**ty, types::Kind::Array { .. }) => {
                        self.steady_place(a, touched)
                    }
                    _ => self.steady(a, touched),
                };
                base && self.steady(i, touched)
            }
            _ => false,
        }
    }

    /// The names that these tokens may write to. There may be too many.
    pub(super) fn touched(&self, tokens: std::ops::Range<usize>) -> HashSet<String> {
        self.names_where(tokens, |p, before, behind| {
            let writes = |i: usize| WRITES.iter().any(|w| p.punct_at(i, w));
            writes(behind) || before.is_some_and(|b| p.punct_at(b, "++") || p.punct_at(b, "--"))
        })
    }

    /// The names of which these tokens may take the address. There may be too many.
    pub(super) fn taken(&self, tokens: std::ops::Range<usize>) -> HashSet<String> {
        self.names_where(tokens, |p, before, _| {
            before.is_some_and(|b| p.punct_at(b, "&"))
        })
    }

    /// The words for which `holds` is true of the tokens before and after them, with parentheses around the word
    /// skipped. If there is inline assembly, all words, since it may write to any operand.
    fn names_where(
        &self,
        tokens: std::ops::Range<usize>,
        holds: impl Fn(&Self, Option<usize>, usize) -> bool,
    ) -> HashSet<String> {
        let asm = tokens
            .clone()
            .any(|i| super::specifiers::ASM.iter().any(|w| self.is_word_at(i, w)));
        let mut found = HashSet::new();
        for i in tokens.clone() {
            if self.kind(i) != Some(Kind::Word) {
                continue;
            }
            let (mut before, mut behind) = (i, i + 1);
            while before > tokens.start && self.punct_at(before - 1, "(") {
                before -= 1;
            }
            while self.punct_at(behind, ")") {
                behind += 1;
            }
            let before = before.checked_sub(1).filter(|b| *b >= tokens.start);
            // Also test the adjacent tokens. Unbalanced parentheses are skipped as well, which may find too many words.
            let bare = i.checked_sub(1).filter(|b| *b >= tokens.start);
            if asm || holds(self, before, behind) || holds(self, bare, i + 1) {
                found.extend(self.word_at(i));
            }
        }
        found
    }
}

/// The compound literal that an lvalue names, or of which it names a part.
fn literal_named(e: &Expr) -> Option<Range> {
    match &e.bare().kind {
        ExprKind::Compound(..) => Some(e.range),
        ExprKind::Member {
            of, arrow: false, ..
        }
        | ExprKind::Index(of, _) => literal_named(of),
        _ => None,
    }
}

/// Whether an expression is an lvalue.
fn is_place(e: &Expr) -> bool {
    match &e.bare().kind {
        ExprKind::Name(_)
        | ExprKind::Index(..)
        | ExprKind::Unary("*", _)
        | ExprKind::Compound(..)
        | ExprKind::String => true,
        ExprKind::Member { of, arrow, .. } => *arrow || is_place(of),
        _ => false,
    }
}
