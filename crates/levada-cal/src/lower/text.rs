// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists as text: `[1, 2, 3]`, printed or concatenated to a string.

use super::expr::{int, load, printable, string};
use super::list::{element, for_each_index, len};
use super::{Build, Lowerer};
use crate::hir;
use crate::ir::{BinOp, Expr, ExprKind, Place, Span, StmtKind, Type};

impl<'a> Lowerer<'a> {
    /// Lowers `print` and `println`. A list is printed element by element, and the parts before and after it by
    /// statements of their own. All parts are computed before the first one is printed.
    pub(super) fn print(
        &mut self,
        build: &mut Build<'a>,
        parts: &'a [hir::Expr],
        newline: bool,
        span: Span,
    ) {
        enum Part {
            Scalar(Expr),
            List(Place),
        }
        let mut computed = Vec::with_capacity(parts.len());
        for part in parts {
            computed.push(if part.ty.is_list() {
                Part::List(self.list_place(build, part, None))
            } else {
                Part::Scalar(printable(self.scalar(build, part), part))
            });
        }
        let mut row = Vec::new();
        for part in computed {
            match part {
                Part::Scalar(value) => row.push(value),
                Part::List(list) => {
                    row.push(string("[", span));
                    print_row(build, std::mem::take(&mut row), false, span);
                    self.each(build, &list, span, &mut |build, value| {
                        print_row(build, vec![value], false, span);
                    });
                    row.push(string("]", span));
                }
            }
        }
        print_row(build, row, newline, span);
    }

    /// Converts a value to a part of a string.
    pub(super) fn text(&mut self, build: &mut Build<'a>, value: &'a hir::Expr) -> Expr {
        if !value.ty.is_list() {
            return printable(self.scalar(build, value), value);
        }
        let span = value.span;
        let list = self.list_place(build, value, None);
        let text = self.kept(build, "text", string("[", span));
        let ExprKind::Load(place) = &text.kind else {
            return text;
        };
        let append = |build: &mut Build<'a>, part: Expr| {
            let sum = Expr {
                kind: ExprKind::Binary(BinOp::Add, Box::new(text.clone()), Box::new(part)),
                ty: Type::String,
                span,
            };
            build.push(StmtKind::Assign(place.clone(), sum), span);
        };
        self.each(build, &list, span, &mut |build, part| append(build, part));
        append(build, string("]", span));
        text
    }

    /// Calls `put` for each element, with a comma before all but the first; inner lists have brackets.
    fn each(
        &mut self,
        build: &mut Build<'a>,
        list: &Place,
        span: Span,
        put: &mut dyn FnMut(&mut Build<'a>, Expr),
    ) {
        for_each_index(build, len(&list.ty), span, |build, counter| {
            let part = element(list, counter.clone());
            let ((), comma) = self.aside(build, |_, build| put(build, string(", ", span)));
            let later = Expr {
                kind: ExprKind::Binary(BinOp::Gt, Box::new(counter), Box::new(int(0, span))),
                ty: Type::Bool,
                span,
            };
            build.push(StmtKind::If(later, comma, Vec::new()), span);
            if let Type::List { .. } = part.ty {
                put(build, string("[", span));
                self.each(build, &part, span, put);
                put(build, string("]", span));
            } else {
                put(build, load(part));
            }
        });
    }
}

fn print_row(build: &mut Build, parts: Vec<Expr>, newline: bool, span: Span) {
    build.push(StmtKind::Print { parts, newline }, span);
}
