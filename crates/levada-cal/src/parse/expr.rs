// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses expressions.

use super::{K, Parser};
use crate::diag::Diagnostic;

/// The precedence of a binary operator; the lowest is 1. All are left-associative.
fn precedence(kind: K) -> Option<u8> {
    Some(match kind {
        K::Or => 1,
        K::And => 2,
        K::Pipe => 3,
        K::Caret => 4,
        K::Amp => 5,
        K::Eq | K::Ne | K::EqEq => 6,
        K::Lt | K::Le | K::Gt | K::Ge => 7,
        K::Shl | K::Shr => 8,
        K::Plus | K::Minus => 9,
        K::Star | K::Slash | K::Div | K::Mod => 10,
        K::Power => 11,
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) {
        let outer_peak = std::mem::take(&mut self.peak);
        self.nested(|p| p.binary(1));
        self.peak = outer_peak.max(self.height);
    }

    /// Operators with a precedence of at least `min`. A sequence of equal precedence is one flat node: operand,
    /// operator, operand, operator, operand...
    fn binary(&mut self, min: u8) {
        let mark = self.mark();
        self.unary();
        let mut height = self.height;
        // Each iteration wraps the expression in an operator of lower precedence, so their number is bounded.
        let mut level = u8::MAX;
        while let Some(found) = precedence(self.current()).filter(|&p| p >= min && p < level) {
            level = found;
            self.start_at(mark, K::BinaryExpr);
            while precedence(self.current()) == Some(level) {
                if self.at(K::EqEq) {
                    let diag = Diagnostic::error("syntax", "CAL compares with one `=`")
                        .label(self.current_span(), "write `=`")
                        .help("assignment is `:=`, so `=` cannot be mistaken for it");
                    self.report(diag);
                }
                if self.too_long(height + 1, "expression") {
                    break;
                }
                self.bump();
                self.nested(|p| p.binary(level + 1));
                height = height.max(self.height) + 1;
            }
            self.finish();
        }
        self.height = height;
    }

    fn unary(&mut self) {
        if matches!(self.current(), K::Tilde | K::Not | K::Minus | K::Hash) {
            self.start(K::UnaryExpr);
            self.bump();
            self.nested(|p| p.unary());
            self.finish();
        } else {
            self.primary();
        }
    }

    fn primary(&mut self) {
        let outer_peak = std::mem::take(&mut self.peak);
        self.primary_of();
        self.height = std::mem::replace(&mut self.peak, outer_peak);
    }

    fn primary_of(&mut self) {
        match self.current() {
            K::Int | K::Real | K::Str | K::OpenStr | K::KwTrue | K::KwFalse => {
                self.start(K::Literal);
                self.bump();
                self.finish();
            }
            K::LParen => {
                self.start(K::ParenExpr);
                self.bump();
                self.expression();
                self.expect(K::RParen);
                self.finish();
            }
            K::LBracket => self.list(),
            K::KwIf => self.if_expr(),
            K::At => {
                let mark = self.mark();
                self.annotations();
                self.start_at(mark, K::CallExpr);
                self.path();
                self.args();
                self.finish();
            }
            K::Ident | K::Caret => {
                let mark = self.mark();
                self.path();
                match self.current() {
                    K::LParen => {
                        self.start_at(mark, K::CallExpr);
                        self.args();
                    }
                    K::LBracket => {
                        self.start_at(mark, K::IndexExpr);
                        self.indices();
                    }
                    _ => self.start_at(mark, K::NameExpr),
                }
                self.finish();
                if self.at(K::LBracket) {
                    let diag = Diagnostic::error("syntax", "only a variable can be indexed")
                        .label(self.current_span(), "this indexes the result of a call")
                        .help("put the result into a variable first");
                    self.report(diag);
                    self.start(K::Error);
                    self.indices();
                    self.finish();
                }
            }
            _ => {
                self.unexpected("an expression", None);
                // Tokens that may end or follow the expression are left to the caller.
                if matches!(
                    self.current(),
                    K::Unknown | K::Question | K::Power | K::Star | K::Slash
                ) {
                    self.start(K::Error);
                    self.bump();
                    self.finish();
                }
            }
        }
    }

    /// `[a][b]...`
    pub(super) fn indices(&mut self) {
        while self.at(K::LBracket) {
            self.start(K::Dim);
            self.bump();
            self.expression();
            if self.at(K::Comma) {
                let diag = Diagnostic::error("syntax", "each index has brackets of its own")
                    .label(self.current_span(), "a comma does not belong here")
                    .help("write `a[i][j]`");
                self.report(diag);
                self.skip_until(|p| {
                    matches!(p.current(), K::RBracket | K::Semi) || p.at_declaration()
                });
            }
            self.expect(K::RBracket);
            self.finish();
        }
    }

    /// `(a, b)`
    pub(super) fn args(&mut self) {
        self.start(K::Args);
        if self.expect(K::LParen) {
            if !self.at(K::RParen) {
                self.expression_list();
            }
            self.expect(K::RParen);
        }
        self.finish();
    }

    pub(super) fn expression_list(&mut self) {
        self.expression();
        while self.eat(K::Comma) {
            self.expression();
        }
    }

    fn if_expr(&mut self) {
        self.start(K::IfExpr);
        self.bump();
        self.expression();
        self.expect(K::KwThen);
        self.expression();
        let mut length = 1;
        while self.at(K::KwElsif) {
            length += 1;
            if self.too_long(length, "row of `elsif`") {
                break;
            }
            self.bump();
            self.expression();
            self.expect(K::KwThen);
            self.expression();
        }
        if self.expect_for(
            K::KwElse,
            Some("an `if` that gives a value needs an `else`"),
        ) {
            self.expression();
        }
        self.expect(K::KwEnd);
        self.finish();
    }

    fn list(&mut self) {
        self.start(K::ListExpr);
        self.bump();
        if self.at(K::RBracket) {
            let diag = Diagnostic::error("syntax", "a list has at least one element")
                .label(self.current_span(), "expected an expression");
            self.report(diag);
        } else {
            self.expression_list();
        }
        if self.eat(K::Colon) {
            self.generator();
            while self.eat(K::Comma) {
                self.generator();
            }
        }
        self.expect(K::RBracket);
        self.finish();
    }

    fn generator(&mut self) {
        self.start(K::Generator);
        self.expect_generator_for();
        self.var_decl();
        self.expect(K::KwIn);
        self.expression();
        self.expect(K::DotDot);
        self.expression();
        self.finish();
    }

    fn expect_generator_for(&mut self) {
        if !self.eat(K::KwFor) {
            self.unexpected("`for`", Some("a generator reads `for int i in 0 .. 7`"));
        }
    }
}
