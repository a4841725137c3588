// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parser: tokens to a lossless tree, by recursive descent.
//!
//! It never gives up: what does not fit becomes an [`SyntaxKind::Error`] node, is reported once,
//! and the parser goes on at the next statement, action or declaration.

mod decl;
mod expr;
mod stmt;

use crate::diag::Diagnostic;
use crate::ir::Span;
use crate::lex::{self, SyntaxKind};
use crate::syntax::{Cal, SyntaxNode};
use SyntaxKind as K;
use rowan::{Checkpoint, GreenNode, GreenNodeBuilder, Language};

/// How deeply expressions and statements may nest.
pub const MAX_NESTING: u32 = 128;
/// How many operands a chain of operators, or branches an `if`, may have.
pub const MAX_CHAIN: u32 = 400;

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
        last_error: None,
        depth: 0,
        gave_up: false,
    };
    parser.complain_about_tokens();
    parser.file();
    Parse {
        green: parser.builder.finish(),
        errors: parser.errors,
    }
}

struct Parser<'t> {
    file: u32,
    tokens: Vec<(K, &'t str)>,
    /// Where each token starts; one more for the end of the file.
    starts: Vec<u32>,
    /// The tokens that are neither space nor comment.
    solid: Vec<usize>,
    /// The next one of `solid`.
    at: usize,
    /// Tokens that are in the tree already.
    emitted: usize,
    builder: GreenNodeBuilder<'static>,
    errors: Vec<Diagnostic>,
    last_error: Option<usize>,
    depth: u32,
    gave_up: bool,
}

impl<'t> Parser<'t> {
    // Looking.

    fn nth(&self, n: usize) -> K {
        self.solid
            .get(self.at + n)
            .map_or(K::Eof, |&i| self.tokens[i].0)
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

    /// Whether a word is next that means something here and is a name elsewhere.
    fn at_word(&self, word: &str) -> bool {
        self.at(K::Ident) && self.current_text() == word
    }

    fn current_span(&self) -> Span {
        match self.solid.get(self.at) {
            Some(&i) => self.span(self.starts[i], self.starts[i + 1]),
            None => self.after_previous(),
        }
    }

    /// The place just behind the last token that was used.
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
        let (kind, text) = self.tokens[self.emitted];
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

    /// One complaint a token is enough.
    fn report(&mut self, diag: Diagnostic) {
        if self.last_error != Some(self.at) {
            self.last_error = Some(self.at);
            self.errors.push(diag);
        }
    }

    /// How the next token reads in a message.
    fn found(&self) -> String {
        let kind = self.current();
        match kind {
            K::Eof => "the end of the file".into(),
            K::Ident => format!("the name `{}`", self.current_text()),
            K::Int | K::Real => format!("the number `{}`", self.current_text()),
            K::Str | K::OpenStr => "a string".into(),
            _ if kind.is_keyword() => format!("the keyword `{}`", self.current_text()),
            _ => format!("`{}`", self.current_text()),
        }
    }

    /// Complains about the next token.
    fn unexpected(&mut self, expected: &str, help: Option<&str>) {
        let mut diag = Diagnostic::error(
            "syntax",
            format!("expected {expected}, found {}", self.found()),
        )
        .label(self.current_span(), format!("expected {expected}"));
        diag.help = help.map(str::to_owned);
        self.report(diag);
    }

    /// `kind`, or a complaint just behind the token before.
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

    /// Puts tokens into an error node until `stop` says so. Takes at least one token unless `stop`
    /// holds at once or the file ends.
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

    /// Runs `inner` one level deeper, or skips to the end of the statement when it is too deep.
    fn nested(&mut self, inner: impl FnOnce(&mut Self)) {
        if self.depth >= MAX_NESTING {
            if !self.gave_up {
                self.gave_up = true;
                let diag = Diagnostic::error("nesting", "this is nested too deeply")
                    .label(
                        self.current_span(),
                        format!("more than {MAX_NESTING} levels deep"),
                    )
                    .help("name parts of it with variables, functions or procedures");
                self.errors.push(diag);
            }
            self.last_error = Some(self.at);
            self.skip_until(|p| matches!(p.current(), K::Semi) || p.at_declaration());
            self.last_error = Some(self.at);
            return;
        }
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    /// A chain of operators or branches that grows past all use.
    fn check_chain(&mut self, length: u32, what: &str) {
        if length == MAX_CHAIN + 1 {
            let diag = Diagnostic::error("nesting", format!("this {what} is too long"))
                .label(self.current_span(), format!("more than {MAX_CHAIN} parts"))
                .help("split it into several");
            self.errors.push(diag);
        }
    }

    /// Pieces that are no tokens of the language at all.
    fn complain_about_tokens(&mut self) {
        for (i, &(kind, text)) in self.tokens.iter().enumerate() {
            let span = self.span(self.starts[i], self.starts[i + 1]);
            let diag = match kind {
                K::OpenComment => Diagnostic::error("comment", "this comment never ends")
                    .label(self.span(span.start, span.start + 2), "it starts here")
                    .help("close it with `*/`"),
                K::OpenStr => Diagnostic::error("string", "this string never ends")
                    .label(span, "it ends with its line")
                    .help("close it with the quote it starts with; a new line is written `\\n`"),
                K::Unknown => Diagnostic::error(
                    "character",
                    format!("CAL has no use for `{}`", text.escape_debug()),
                )
                .label(span, "remove this"),
                _ => continue,
            };
            self.errors.push(diag);
        }
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
            // It was meant as a name if it stands where one would.
            let like_a_name = matches!(
                self.nth(1),
                K::Assign | K::Eq | K::Semi | K::Comma | K::LBracket | K::RBracket | K::RParen
            );
            if like_a_name {
                self.bump();
                self.last_error = Some(self.at);
            }
        } else {
            self.unexpected("a name", help);
        }
        false
    }

    /// A name that is being declared, in a node of its own.
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
