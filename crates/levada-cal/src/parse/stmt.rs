// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses statements.

use super::{K, Parser};
use crate::diag::Diagnostic;

impl Parser<'_> {
    fn at_statement(&self) -> bool {
        match self.current() {
            K::KwForeach | K::KwIf | K::KwWhile | K::At => true,
            K::Ident | K::Caret => !self.at_declaration(),
            _ => false,
        }
    }

    /// Whether the next token ends a sequence of statements.
    fn at_block_end(&self) -> bool {
        matches!(self.current(), K::KwEnd | K::KwElse | K::KwElsif | K::Eof)
            || self.at_declaration()
    }

    pub(super) fn block(&mut self) {
        self.start(K::Block);
        while !self.at_block_end() {
            self.settle();
            if self.at_statement() {
                self.nested(|p| p.statement());
            } else {
                self.misplaced_statement();
            }
        }
        self.finish();
    }

    fn misplaced_statement(&mut self) {
        let help = match self.current() {
            K::KwVar => Some("variables are declared before the statements, at `var`"),
            kind if kind.is_keyword() => {
                Some("variables are declared before the statements, at `var`, split by commas")
            }
            _ => None,
        };
        self.unexpected("a statement", help);
        if self.current().is_keyword() {
            // Probably a declaration, no part of which is a statement.
            self.skip_until(|p| p.at(K::Semi) || p.at_block_end());
            self.eat(K::Semi);
            return;
        }
        self.skip_to_declaration(|p| p.at(K::Semi));
        self.eat(K::Semi);
    }

    fn statement(&mut self) {
        let mark = self.mark();
        self.annotations();
        match self.current() {
            K::KwForeach => self.foreach(mark),
            K::KwIf => self.if_stmt(mark),
            K::KwWhile => {
                self.start_at(mark, K::WhileStmt);
                self.bump();
                self.expression();
                self.expect(K::KwDo);
                self.block();
                self.expect(K::KwEnd);
                self.finish();
            }
            K::Ident | K::Caret => self.assign_or_call(mark),
            _ => self.unexpected("a statement", None),
        }
    }

    fn assign_or_call(&mut self, mark: rowan::Checkpoint) {
        self.path();
        if self.at(K::LParen) {
            self.start_at(mark, K::CallStmt);
            self.args();
            self.end_statement();
            self.finish();
            return;
        }
        self.start_at(mark, K::AssignStmt);
        self.indices();
        if matches!(self.current(), K::Eq | K::EqEq) {
            let diag = Diagnostic::error("syntax", "an assignment is written `:=`")
                .label(self.current_span(), "write `:=`")
                .help("`=` compares");
            self.report(diag);
            self.bump();
            self.expression();
        } else if self.eat(K::Assign) {
            self.expression();
        } else {
            let help = "a statement assigns (`x := 1;`) or calls (`p(x);`)";
            self.unexpected("`:=` or `(`", Some(help));
            self.skip_to_declaration(|p| p.at(K::Semi));
            self.eat(K::Semi);
            self.finish();
            return;
        }
        self.end_statement();
        self.finish();
    }

    /// The `;` after a statement; if it is missing, skips to the next statement.
    fn end_statement(&mut self) {
        if self.eat(K::Semi) {
            return;
        }
        self.expect(K::Semi);
        if self.at_statement() || self.at_block_end() {
            return;
        }
        self.skip_until(|p| {
            p.at(K::Semi)
                || p.at_block_end()
                || matches!(p.current(), K::KwForeach | K::KwIf | K::KwWhile)
        });
        self.eat(K::Semi);
    }

    fn foreach(&mut self, mark: rowan::Checkpoint) {
        self.start_at(mark, K::ForeachStmt);
        self.bump();
        self.var_decl();
        self.expect(K::KwIn);
        self.expression();
        self.expect_for(K::DotDot, Some("a range reads `0 .. 7`"));
        self.expression();
        self.expect(K::KwDo);
        self.block();
        self.expect(K::KwEnd);
        self.finish();
    }

    fn if_stmt(&mut self, mark: rowan::Checkpoint) {
        self.start_at(mark, K::IfStmt);
        self.bump();
        self.expression();
        self.expect(K::KwThen);
        self.block();
        let mut length = 1;
        while self.at(K::KwElsif) {
            length += 1;
            if self.too_long(length, "row of `elsif`") {
                break;
            }
            self.start(K::Elsif);
            self.bump();
            self.expression();
            self.expect(K::KwThen);
            self.block();
            self.finish();
        }
        if self.at(K::KwElse) {
            self.start(K::Else);
            self.bump();
            self.block();
            self.finish();
        }
        self.expect_for(
            K::KwEnd,
            Some("every `if` needs an `end`; `else if` opens a second one, `elsif` does not"),
        );
        self.finish();
    }
}
