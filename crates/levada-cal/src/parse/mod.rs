// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parser: from tokens to a lossless tree, by recursive descent.
//!
//! It recovers from every error: unexpected tokens become a [`SyntaxKind::Error`] node, one error is reported, and
//! the parser resumes at the next statement, action or declaration. Until then it reports nothing ("panic mode"),
//! since further errors would be consequences of the first.

mod decl;
mod expr;
mod stmt;

use crate::diag::Diagnostic;
use crate::ir::Span;
use crate::lex::{self, SyntaxKind};
use crate::syntax::{Cal, SyntaxNode};
use SyntaxKind as K;
use rowan::{Checkpoint, GreenNode, GreenNodeBuilder, Language};
use std::collections::HashSet;

/// Maximum nesting of expressions and statements.
pub const NESTING_MAX: u32 = 128;
/// Maximum number of chained operators, as in a sum, and of branches of an `if`. Generated code has long chains; the
/// stack of [`crate::on_large_stack`] is sufficient for them.
pub const CHAIN_PARTS_MAX: u32 = 4096;

pub struct Parse {
    green: GreenNode,
    pub errors: Vec<Diagnostic>,
}

impl Parse {
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }
}

/// Parses the text of source file number `file`.
pub fn parse(file: u32, text: &str) -> Parse {
    let tokens = lex::tokens(text);
    let mut starts = Vec::with_capacity(tokens.len() + 1);
    let mut at = 0;
    for (_, piece) in &tokens {
        starts.push(at);
        at += piece.len() as u32;
    }
    starts.push(at);
    let solid = (0..tokens.len())
        .filter(|&i| !tokens[i].0.is_trivia())
        .collect();
    let mut parser = Parser {
        file,
        tokens,
        starts,
        solid,
        at: 0,
        emitted: 0,
        builder: GreenNodeBuilder::new(),
        errors: Vec::new(),
        depth: 0,
        quiet: false,
        hopeless: false,
        ends_in_comment: false,
        height: 0,
        peak: 0,
        foreign: HashSet::new(),
    };
    let last = parser.tokens.len().checked_sub(1);
    if let Some(diag) = last.and_then(|i| parser.bad_token(i).filter(|d| d.code == "comment")) {
        parser.errors.push(diag);
        parser.ends_in_comment = true;
    }
    parser.file();
    Parse {
        green: parser.builder.finish(),
        errors: parser.errors,
    }
}

struct Parser<'t> {
    file: u32,
    tokens: Vec<(K, &'t str)>,
    /// The start of each token, and the end of the file.
    starts: Vec<u32>,
    /// The tokens without spaces and comments.
    solid: Vec<usize>,
    /// The index of the next token in `solid`.
    at: usize,
    /// The number of tokens that are in the tree.
    emitted: usize,
    builder: GreenNodeBuilder<'static>,
    errors: Vec<Diagnostic>,
    depth: u32,
    /// Panic mode: an error was reported, and further errors may be consequences.
    quiet: bool,
    /// The nesting was too deep, so the rest of the file is out of context.
    hopeless: bool,
    ends_in_comment: bool,
    /// The height of the operator chain of the last expression, and the maximum over the expressions in the same
    /// list, call or similar.
    height: u32,
    peak: u32,
    /// Words with letters that names cannot have, which were reported.
    foreign: HashSet<&'t str>,
}

impl<'t> Parser<'t> {
    // Looking.

    fn nth(&self, n: usize) -> K {
        match self.solid.get(self.at + n).map(|&i| self.tokens[i].0) {
            None => K::Eof,
            // It is in the place of a name.
            Some(K::ForeignIdent) => K::Ident,
            Some(kind) => kind,
        }
    }

    fn current(&self) -> K {
        self.nth(0)
    }

    fn at(&self, kind: K) -> bool {
        self.current() == kind
    }

    fn current_text(&self) -> &'t str {
        self.solid.get(self.at).map_or("", |&i| self.tokens[i].1)
    }

    /// Whether the next token is this contextual keyword.
    fn at_word(&self, word: &str) -> bool {
        self.at(K::Ident) && self.current_text() == word
    }

    fn current_span(&self) -> Span {
        match self.solid.get(self.at) {
            Some(&i) => self.span(self.starts[i], self.starts[i + 1]),
            None => self.after_previous(),
        }
    }

    /// The position right after the last consumed token.
    fn after_previous(&self) -> Span {
        let end = match self.at.checked_sub(1).and_then(|i| self.solid.get(i)) {
            Some(&i) => self.starts[i + 1],
            None => 0,
        };
        self.span(end, end)
    }

    fn span(&self, start: u32, end: u32) -> Span {
        Span {
            file: self.file,
            start,
            end,
        }
    }

    // Building.

    /// Puts spaces and comments before the next token into the tree.
    fn flush(&mut self) {
        let next = self
            .solid
            .get(self.at)
            .copied()
            .unwrap_or(self.tokens.len());
        while self.emitted < next {
            let (kind, text) = self.tokens[self.emitted];
            self.builder.token(Cal::kind_to_raw(kind), text);
            self.emitted += 1;
        }
    }

    fn start(&mut self, kind: K) {
        self.flush();
        self.builder.start_node(Cal::kind_to_raw(kind));
    }

    fn mark(&mut self) -> Checkpoint {
        self.flush();
        self.builder.checkpoint()
    }

    fn start_at(&mut self, mark: Checkpoint, kind: K) {
        self.builder.start_node_at(mark, Cal::kind_to_raw(kind));
    }

    fn finish(&mut self) {
        self.builder.finish_node();
    }

    fn bump(&mut self) {
        if self.at >= self.solid.len() {
            return;
        }
        self.flush();
        self.check_token(self.emitted);
        let (kind, text) = match self.tokens[self.emitted] {
            (K::ForeignIdent, text) => (K::Ident, text),
            token => token,
        };
        self.builder.token(Cal::kind_to_raw(kind), text);
        self.emitted += 1;
        self.at += 1;
    }

    fn eat(&mut self, kind: K) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    // Complaining.

    /// Reports an error, unless it may be a consequence of a reported one (until [`Parser::settle`]). If the next
    /// token is invalid by itself, that is reported instead.
    fn report(&mut self, diag: Diagnostic) {
        let open_comment = self.at(K::Eof) && self.ends_in_comment;
        if self.quiet || self.hopeless || open_comment {
            return;
        }
        self.quiet = true;
        let next = self.solid.get(self.at).filter(|_| diag.code == "syntax");
        let bad = next.and_then(|&i| self.bad_token(i));
        self.errors.push(bad.unwrap_or(diag));
    }

    /// The token before the next one.
    fn previous(&self) -> K {
        let before = self.at.checked_sub(1).and_then(|i| self.solid.get(i));
        before.map_or(K::Eof, |&i| self.tokens[i].0)
    }

    fn previous_text(&self) -> &'t str {
        let before = self.at.checked_sub(1).and_then(|i| self.solid.get(i));
        before.map_or("", |&i| self.tokens[i].1)
    }

    /// Leaves panic mode at the start of a statement or similar: after the end of the previous one, an error is not a
    /// consequence of earlier ones.
    fn settle(&mut self) {
        let clean = matches!(
            self.previous(),
            K::Semi | K::KwEnd | K::KwDo | K::KwThen | K::KwElse | K::KwBegin | K::KwPriority
        );
        if clean || self.at_declaration() {
            self.quiet = false;
        }
    }

    /// Skips tokens up to the next declaration, to an `end`, `else` or `elsif` of an enclosing construct, or until
    /// `stop` holds.
    fn skip_to_declaration(&mut self, stop: impl Fn(&Parser<'t>) -> bool) {
        self.start(K::Error);
        let mut open = 0;
        while !self.at(K::Eof) && !self.at_declaration() && !stop(self) {
            match self.current() {
                K::KwIf | K::KwForeach | K::KwWhile => open += 1,
                K::KwEnd | K::KwElse | K::KwElsif if open == 0 => break,
                K::KwEnd => open -= 1,
                _ => {}
            }
            self.bump();
        }
        self.finish();
    }

    /// The text of the next token in messages.
    fn found(&self) -> String {
        let kind = self.current();
        match kind {
            K::Eof => "the end of the file".into(),
            K::Ident | K::ForeignIdent => format!("the name `{}`", self.current_text()),
            K::Int | K::Real => format!("the number `{}`", self.current_text()),
            K::Str | K::OpenStr => "a string".into(),
            _ if kind.is_keyword() => format!("the keyword `{}`", self.current_text()),
            _ => format!("`{}`", self.current_text()),
        }
    }

    /// Reports the next token as unexpected.
    fn unexpected(&mut self, expected: &str, help: Option<&str>) {
        let mut diag = Diagnostic::error(
            "syntax",
            format!("expected {expected}, found {}", self.found()),
        )
        .label(self.current_span(), format!("expected {expected}"));
        diag.help = help.map(str::to_owned);
        self.report(diag);
    }

    /// Consumes `kind`, or reports an error right after the previous token.
    fn expect(&mut self, kind: K) -> bool {
        self.expect_for(kind, None)
    }

    fn expect_for(&mut self, kind: K, help: Option<&str>) -> bool {
        if self.eat(kind) {
            return true;
        }
        let what = kind.describe();
        let mut diag =
            Diagnostic::error("syntax", format!("expected {what}, found {}", self.found()))
                .label(self.after_previous(), format!("expected {what} here"));
        diag.help = help.map(str::to_owned);
        self.report(diag);
        false
    }

    /// Puts tokens into an error node until `stop` holds. Consumes at least one token, unless `stop` holds at once or
    /// the file ends.
    fn skip_until(&mut self, stop: impl Fn(&Parser<'t>) -> bool) {
        if self.at(K::Eof) || stop(self) {
            return;
        }
        self.start(K::Error);
        while !self.at(K::Eof) && !stop(self) {
            self.bump();
        }
        self.finish();
    }

    /// Runs `inner` one level deeper, or skips to the end of the statement if the nesting is too deep.
    fn nested(&mut self, inner: impl FnOnce(&mut Self)) {
        if self.depth >= NESTING_MAX {
            if !self.hopeless {
                let diag = Diagnostic::error("nesting", "this is nested too deeply")
                    .label(
                        self.current_span(),
                        format!("more than {NESTING_MAX} levels deep"),
                    )
                    .help("name parts of it with variables, functions or procedures");
                self.errors.push(diag);
            }
            self.hopeless = true;
            self.skip_until(|p| matches!(p.current(), K::Semi) || p.at_declaration());
            return;
        }
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    /// Whether a chain of operators or branches is too long. If so, the rest is skipped, since later stages could not
    /// process it.
    fn too_long(&mut self, length: u32, what: &str) -> bool {
        if length <= CHAIN_PARTS_MAX {
            return false;
        }
        if !self.hopeless {
            let diag = Diagnostic::error("nesting", format!("this {what} is too long"))
                .label(
                    self.current_span(),
                    format!("more than {CHAIN_PARTS_MAX} parts"),
                )
                .help("split it into several");
            self.errors.push(diag);
        }
        self.hopeless = true;
        self.skip_until(|p| p.at(K::Semi) || p.at_declaration());
        true
    }

    /// The error of token `i` by itself, if any.
    fn bad_token(&self, i: usize) -> Option<Diagnostic> {
        let (kind, text) = self.tokens[i];
        let span = self.span(self.starts[i], self.starts[i + 1]);
        Some(match kind {
            K::OpenComment => Diagnostic::error("comment", "this comment never ends")
                .label(self.span(span.start, span.start + 2), "it starts here")
                .help("close it with `*/`"),
            K::OpenStr => Diagnostic::error("string", "this string never ends")
                .label(span, "it ends with its line")
                .help("close it with the quote it starts with; a new line is written `\\n`"),
            K::ForeignIdent => {
                let message = format!("the name `{text}` has letters that no name can have");
                Diagnostic::error("character", message)
                    .label(span, "names consist of A to Z, a to z, 0 to 9 and _")
            }
            K::Unknown => Diagnostic::error(
                "character",
                format!("CAL has no use for `{}`", text.escape_debug()),
            )
            .label(span, "remove this"),
            _ => return None,
        })
    }

    /// Reports an error of the next token by itself. A word with foreign letters is then treated as a name, and is
    /// reported once.
    fn check_token(&mut self, i: usize) {
        let foreign = self.tokens[i].0 == K::ForeignIdent;
        let known = foreign && !self.foreign.insert(self.tokens[i].1);
        if let Some(diag) = self.bad_token(i).filter(|_| !known) {
            self.report(diag);
        }
        self.quiet |= matches!(self.tokens[i].0, K::OpenStr | K::Unknown);
    }

    // Names.

    /// A name. `^end` is the name `end`.
    fn ident(&mut self, help: Option<&str>) -> bool {
        if self.at(K::Caret) && (self.nth(1) == K::Ident || self.nth(1).is_keyword()) {
            self.bump();
            self.bump();
            return true;
        }
        if self.eat(K::Ident) {
            return true;
        }
        if self.current().is_keyword() {
            let text = self.current_text();
            let diag = Diagnostic::error(
                "syntax",
                format!("expected a name, found the keyword `{text}`"),
            )
            .label(self.current_span(), "this word is part of the language")
            .help(help.map_or(
                format!("to use it as a name all the same, write `^{text}`"),
                str::to_owned,
            ));
            self.report(diag);
            // It is taken as a name if it is in the place of one.
            let like_a_name = matches!(
                self.nth(1),
                K::Assign | K::Eq | K::Semi | K::Comma | K::LBracket | K::RBracket | K::RParen
            );
            if like_a_name {
                self.bump();
            }
        } else {
            self.unexpected("a name", help);
        }
        false
    }

    /// The name of a declaration, in a node of its own.
    fn name(&mut self) -> bool {
        self.start(K::Name);
        let ok = self.ident(None);
        self.finish();
        ok
    }

    /// `a.b.c`
    fn path(&mut self) {
        self.start(K::Path);
        if self.ident(None) {
            while self.at(K::Dot) && matches!(self.nth(1), K::Ident | K::Caret) {
                self.bump();
                self.ident(None);
            }
        }
        self.finish();
    }
}
