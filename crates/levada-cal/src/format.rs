// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formatter: normalises indentation and spacing of CAL.
//!
//! Line breaks and comments stay as they are. Each line is indented by two spaces for each enclosing construct that
//! began on an earlier line. Tokens are separated by one space or none, lines by at most one empty line. The
//! sequence of tokens does not change, and so neither does the program. The file's prevailing line ending and its
//! byte order mark are kept.

use crate::diag::Diagnostic;
use crate::encoding;
use crate::lex::{self, SyntaxKind as K};
use crate::parse;
use crate::syntax::{SyntaxElement, SyntaxNode, SyntaxToken};
use std::collections::BTreeSet;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The formatted text, or the errors if it cannot be parsed (as source file number `file`).
pub fn format(file: u32, text: &str) -> Result<String, Vec<Diagnostic>> {
    let end = encoding::line_end(text);
    let mark = text.starts_with(BYTE_ORDER_MARK);
    // Errors refer to the original text, with line feeds for lone carriage returns.
    let text = encoding::line_feeds(text.to_owned());
    let parsed = parse::parse(file, &text);
    if !parsed.errors.is_empty() {
        return Err(parsed.errors);
    }
    let (text, parsed) = if text.contains('\r') {
        let text = text.replace("\r\n", "\n");
        let parsed = parse::parse(file, &text);
        (text, parsed)
    } else {
        (text, parsed)
    };
    let mut formatted = Formatter::new(&text).all(&parsed.syntax());
    // The meaning of a program depends on its tokens: a result with other tokens is never returned.
    if words(&text) == words(&formatted) {
        if end != "\n" {
            formatted = formatted.replace('\n', end);
        }
        if mark {
            formatted.insert(0, BYTE_ORDER_MARK);
        }
        Ok(formatted)
    } else {
        Err(vec![Diagnostic::error(
            "format",
            "this file cannot be formatted without changing it",
        )])
    }
}

/// All tokens and comments, without the spaces at the ends of their lines.
pub fn words(text: &str) -> Vec<(K, String)> {
    let trimmed = |t: &str| t.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    lex::tokens(text)
        .into_iter()
        .filter(|(kind, _)| *kind != K::Space)
        .map(|(kind, text)| {
            if kind.is_trivia() {
                (kind, trimmed(text))
            } else {
                (kind, text.to_owned())
            }
        })
        .collect()
}

/// The role of a part of a construct for its indentation.
#[derive(PartialEq, Eq)]
enum Role {
    /// Inside, indented deeper.
    In,
    /// At the edge, indented like the line on which the construct began.
    Edge,
    /// Not affected by the construct.
    None,
}

fn role(node: &SyntaxNode, child: &SyntaxElement) -> Role {
    let part = child.kind();
    let edge = |is: bool| if is { Role::Edge } else { Role::In };
    match node.kind() {
        K::File | K::Block | K::Ports | K::Error => return Role::None,
        _ => {}
    }
    // What follows annotations is indented like them.
    let mut before = node.children_with_tokens().take_while(|e| e != child);
    if before.all(|e| e.kind() == K::Annotation || e.kind().is_trivia()) {
        return Role::Edge;
    }
    match node.kind() {
        K::Action | K::Initialize => edge(matches!(
            part,
            K::KwAction | K::KwInitialize | K::KwDo | K::KwEnd | K::Guard | K::Locals
        )),
        K::Function | K::Procedure => edge(matches!(
            part,
            K::KwFunction | K::KwProcedure | K::KwBegin | K::KwEnd | K::Colon | K::Locals
        )),
        K::IfStmt | K::IfExpr | K::ForeachStmt | K::WhileStmt => edge(matches!(
            part,
            K::KwThen | K::KwDo | K::KwElsif | K::KwElse | K::KwEnd | K::Elsif | K::Else
        )),
        K::Elsif => edge(part == K::KwThen),
        _ => edge(matches!(part, K::KwEnd | K::RParen | K::RBracket)),
    }
}

struct Formatter<'t> {
    /// The start of each line.
    starts: Vec<usize>,
    text: &'t str,
    out: String,
}

impl<'t> Formatter<'t> {
    fn new(text: &'t str) -> Formatter<'t> {
        let starts = [0]
            .into_iter()
            .chain(text.match_indices('\n').map(|(i, _)| i + 1));
        Formatter {
            starts: starts.collect(),
            text,
            out: String::with_capacity(text.len()),
        }
    }

    fn line(&self, range: rowan::TextRange) -> usize {
        let at = usize::from(range.start());
        self.starts.partition_point(|&s| s <= at)
    }

    /// The indentation of a line that begins with this token.
    fn depth(&self, token: &SyntaxToken) -> usize {
        let line = self.line(token.text_range());
        let mut lines = BTreeSet::new();
        let mut closes = None;
        let mut child = SyntaxElement::Token(token.clone());
        for node in token.parent_ancestors() {
            let start = self.line(node.text_range());
            if start < line {
                match role(&node, &child) {
                    Role::In => {
                        lines.insert(start);
                    }
                    Role::Edge if lines.is_empty() && closes.is_none() => closes = Some(start),
                    _ => {}
                }
            }
            child = SyntaxElement::Node(node);
        }
        // Closing tokens are indented like the line on which their construct began, however many began there.
        closes.map(|line| lines.remove(&line));
        lines.len()
    }

    fn all(mut self, root: &SyntaxNode) -> String {
        let all: Vec<SyntaxToken> = root
            .descendants_with_tokens()
            .filter_map(|e| e.into_token())
            .collect();
        // The next word of each token, itself included.
        let mut next: Vec<Option<&SyntaxToken>> = vec![None; all.len() + 1];
        for i in (0..all.len()).rev() {
            next[i] = if all[i].kind().is_trivia() {
                next[i + 1]
            } else {
                Some(&all[i])
            };
        }
        let mut breaks = 0;
        let mut before: Option<&SyntaxToken> = None;
        for (i, token) in all.iter().enumerate() {
            let kind = token.kind();
            if kind == K::Space {
                breaks += token.text().matches('\n').count();
                continue;
            }
            let begins = breaks > 0 || self.out.is_empty();
            self.break_lines(std::mem::take(&mut breaks));
            if begins {
                let mut depth = next[i].map_or(0, |t| self.depth(t));
                let closes = next[i].is_some_and(|t| {
                    matches!(
                        t.kind(),
                        K::KwEnd | K::KwElse | K::KwElsif | K::RParen | K::RBracket
                    )
                });
                depth += usize::from(kind.is_trivia() && closes);
                self.out.push_str(&"  ".repeat(depth));
            }
            if kind.is_trivia() {
                let ends = all.get(i + 1).is_none_or(|t| t.text().contains('\n'));
                self.comment(token, begins, ends);
            } else {
                let gap = match before {
                    Some(before)
                        if all[i - 1].kind() == K::Space || !all[i - 1].kind().is_trivia() =>
                    {
                        // A comment in between needs its space.
                        let comment = all[..i].iter().rev().find(|t| t.kind() != K::Space);
                        comment.is_some_and(|t| t.kind().is_trivia()) || spaced(before, token)
                    }
                    _ => !begins,
                };
                if !begins && gap {
                    self.out.push(' ');
                }
                self.out.push_str(token.text());
                before = Some(token);
            }
        }
        let length = self.out.trim_end().len();
        self.out.truncate(length);
        self.out.push('\n');
        self.out
    }

    fn break_lines(&mut self, breaks: usize) {
        if self.out.is_empty() {
            return;
        }
        for _ in 0..breaks.min(2) {
            self.out.push('\n');
        }
    }

    fn comment(&mut self, token: &SyntaxToken, begins: bool, ends: bool) {
        let at = usize::from(token.text_range().start());
        if !begins {
            let here = width(&self.out[self.out.rfind('\n').map_or(0, |i| i + 1)..]);
            let start = self.starts[self.line(token.text_range()) - 1];
            // A comment at the end of a line stays in its column, as do those around it.
            let column = if ends {
                width(&self.text[start..at])
            } else {
                0
            };
            let gap = column.saturating_sub(here).max(1);
            self.out.push_str(&" ".repeat(gap));
        }
        let column = width(&self.out[self.out.rfind('\n').map_or(0, |i| i + 1)..]);
        let mut lines = token.text().lines().map(str::trim_end);
        self.out.push_str(lines.next().unwrap_or_default());
        let rest: Vec<&str> = lines.collect();
        // Stars at the beginnings of lines are aligned below the first one.
        let stars = begins && rest.iter().all(|l| l.trim_start().starts_with('*'));
        for line in rest {
            self.out.push('\n');
            if stars {
                self.out.push_str(&" ".repeat(column + 1));
            }
            self.out
                .push_str(if stars { line.trim_start() } else { line });
        }
    }
}

/// The width of a piece of a line in columns; tab stops are every four columns.
fn width(text: &str) -> usize {
    text.chars().fold(0, |n, c| match c {
        '\t' => n / 4 * 4 + 4,
        _ => n + 1,
    })
}

/// Whether there is a space between two tokens of one line.
fn spaced(before: &SyntaxToken, token: &SyntaxToken) -> bool {
    let parent = |t: &SyntaxToken| t.parent().map_or(K::Error, |p| p.kind());
    let (left, right) = (parent(before), parent(token));
    match before.kind() {
        K::LParen | K::LBracket | K::Dot | K::At | K::Hash | K::Tilde => return false,
        // `^end` is a name.
        K::Caret if left != K::BinaryExpr => return false,
        K::Minus if left == K::UnaryExpr => return false,
        K::Eq if matches!(left, K::Type | K::AnnotationArg) => return false,
        K::Colon if matches!(left, K::InputPattern | K::OutputPattern) => return false,
        _ => {}
    }
    match token.kind() {
        K::RParen | K::RBracket | K::Comma | K::Semi | K::Dot => false,
        K::Star if right == K::Path => false,
        K::Star | K::Question if right == K::RegExpPost => false,
        K::LParen => match right {
            K::Type | K::Args | K::Annotation | K::ExternalTarget => false,
            K::Params => token
                .parent_ancestors()
                .nth(1)
                .is_some_and(|n| n.kind() == K::Actor),
            _ => true,
        },
        K::LBracket => !matches!(right, K::Dim | K::IndexExpr | K::AssignStmt),
        K::Eq => !matches!(right, K::Type | K::AnnotationArg),
        K::Colon => !matches!(
            right,
            K::Tag | K::Type | K::InputPattern | K::OutputPattern | K::Schedule | K::LocalFsm
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same text with spaces and empty lines removed or doubled.
    fn mangled(text: &str, wide: bool) -> String {
        let mut out = String::new();
        for (kind, piece) in lex::tokens(text) {
            match kind {
                K::Space if piece.contains('\n') => {
                    let breaks = piece.matches('\n').count();
                    let more = usize::from(wide && breaks > 1) * 3;
                    out.push_str(&"\n".repeat(breaks + more));
                    out.push_str(if wide { " \t     " } else { "" });
                }
                K::Space => out.push_str(if wide { "   " } else { " " }),
                _ => out.push_str(piece),
            }
        }
        out
    }

    const FORMATTED: &str = "\
// A file.
package p.q;

import p.q.Unit.*;
import p.q.Unit.name;

/* What it does,
 * in two lines. */
@inline(name=\"x\")
actor A (int n, List(type: int(size=8), size=3) l = [1, -2, 3])
  int(size=8) In, bool Go
  ==>
  int Out :

  int a := -1; // first
  List(type: List(type: int, size=2), size=N) b = [[1, 2], [3, 4]];
  int c[3][N + 1] := [
    [i * j : for int i in 0 .. N],
    #b
  ];

  @native procedure put(int x) end

  function f(int x) --> int(size=n + 1)
  var
    int y = x * 2
  :
    if x > ~y then
      -x
    elsif not (x = 1) then
      f(x) + b[1][x - 1] +
        3 ^ 4
    else
      y mod 2
    end
  end

  go.one: action In:[x, y] repeat 2, Go:[^end] ==> Out:[f(x[0]), y[1]] repeat 2
  guard
    x[0] > 0,
    ^end or // why
      not ^end
  var
    int k
  do
    foreach int i in 0 .. 7 do
      k := k + i;
      if k > 3 then put(k); else if k = 2 then
        put(2);
        // the last
      end
      end
    end
    while k < 10 do k := k + 1; end
    c[1][2] := p.q.Unit.g(k, /* here */ 2);
  end

  go.two: action ==> do println(\"a\" + a); end

  schedule fsm start:
    start (go.one) --> next;
    next (go) --> start;
  end

  priority
    go.one > go.two;
  end
end
";

    #[test]
    fn spaces_and_indents_are_normalised() {
        let formatted = FORMATTED;
        assert_eq!(format(0, formatted).unwrap(), formatted);
        for wide in [false, true] {
            let again = format(0, &mangled(formatted, wide)).unwrap();
            // Comments at the ends of lines keep their columns.
            let plain = |t: &str| {
                t.lines()
                    .map(|l| l.replace("  //", " //"))
                    .collect::<Vec<_>>()
            };
            let squeeze = |t: &str| {
                let words = |l: String| {
                    let indent = l.len() - l.trim_start().len();
                    (indent, l.split_whitespace().collect::<Vec<_>>().join(" "))
                };
                plain(t).into_iter().map(words).collect::<Vec<_>>()
            };
            assert_eq!(squeeze(&again), squeeze(formatted));
            assert_eq!(format(0, &again).unwrap(), again);
        }
        for end in ["\r\n", "\r"] {
            let text = formatted.replace('\n', end);
            assert_eq!(format(0, &text).unwrap(), text);
            let marked = format!("{BYTE_ORDER_MARK}{text}");
            assert_eq!(format(0, &marked).unwrap(), marked);
        }
        // The most frequent line ending.
        let mixed = formatted.replacen('\n', "\r\n", 3);
        assert_eq!(format(0, &mixed).unwrap(), formatted);
    }

    #[test]
    fn files_with_errors_are_left_alone() {
        let errors = format(0, "actor A () ==> :\n  int x := ;\nend\n").unwrap_err();
        assert_eq!(errors.len(), 1);
    }
}
