// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code that keeps the order of evaluation: the steps of sequences are computed into variables, and the addresses
//! of left sides of assignments are computed before the fork.

use super::{Instead, Piece, What, Writer, text};
use crate::parse::{Access, Kept, Place, Range};

impl Writer<'_> {
    /// Writes a sequence: its steps in order, and then the expression with the variables of the steps.
    pub(super) fn sequence(&self, number: usize, pieces: &mut Vec<Piece>) {
        let sequence = &self.parsed.sequences[number];
        let statement = sequence.statement.is_some();
        let open = match (statement, sequence.place) {
            (true, _) => "{",
            (false, false) => "__extension__({",
            (false, true) => "(*__extension__({",
        };
        text(pieces, open);
        pieces.push(Piece::Indent(1));
        let mut instead: Vec<Instead> = Vec::new();
        // Blocks opened after joins: in C90 no declaration may follow a statement, as a join is one.
        let mut deeper = 0;
        for (i, step) in sequence.steps.iter().enumerate() {
            let name = format!("lvd_o{}_{}", number + 1, i + 1);
            let before = i.checked_sub(1).map(|i| &sequence.steps[i].what);
            if matches!(before, Some(Kept::Fork(_))) {
                text(
                    pieces,
                    if statement {
                        "\n{"
                    } else {
                        "\n__extension__({"
                    },
                );
                pieces.push(Piece::Indent(1));
                deeper += 1;
            }
            let mut keep = |begin: &str, end: &str| {
                text(
                    pieces,
                    format!("\n__extension__ __auto_type {name} = {begin}"),
                );
                self.copy(step.range, pieces);
                text(pieces, format!("{end};"));
                vec![Piece::Text(name.clone())]
            };
            let kept = match &step.what {
                Kept::Value => keep("", ""),
                Kept::Member { arithmetic: true } => keep("+(", ")"),
                Kept::Member { .. } => keep("((void)0, ", ")"),
                Kept::Object => {
                    keep("&(", ")");
                    vec![Piece::Text(format!("(*{name})"))]
                }
                Kept::Place(place) => {
                    let (before, after) = self.keep(step.range, place, &name);
                    text(pieces, "\n");
                    pieces.extend(before);
                    after
                }
                Kept::Fork(fork) => {
                    let value = self.value(*fork, &[], pieces);
                    vec![Piece::Text(value.unwrap_or("(void)0".into()))]
                }
            };
            instead.push((step.range, kept));
        }
        text(pieces, if sequence.place { "\n&(" } else { "\n" });
        self.copy_instead(sequence.range, What::Sequence(number), &instead, pieces);
        text(pieces, if sequence.place { ");" } else { ";" });
        for _ in 0..deeper {
            pieces.push(Piece::Indent(-1));
            text(pieces, if statement { "\n}" } else { "\n});" });
        }
        pieces.push(Piece::Indent(-1));
        let close = match statement {
            true => "\n}",
            false if sequence.place => "\n}))",
            false if self.closing.contains(&number) => "\n});",
            false => "\n})",
        };
        text(pieces, close);
    }

    /// The left side of an assignment, evaluated once: the pieces that compute addresses and indices before the fork,
    /// and those that stand for the left side after it. `name` is the name of the variable.
    pub(super) fn keep(&self, left: Range, place: &Place, name: &str) -> (Vec<Piece>, Vec<Piece>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut keep = |name: &str, address: &str, of: Range| {
            if !before.is_empty() {
                text(&mut before, "\n");
            }
            let declared = format!("__extension__ __auto_type {name} = {address}(");
            text(&mut before, declared);
            self.copy(of, &mut before);
            text(&mut before, ");");
        };
        match place {
            Place::Plain => self.copy(left, &mut after),
            Place::Address => {
                keep(name, "&", left);
                text(&mut after, format!("*{name}"));
            }
            Place::Path {
                base,
                pointer,
                steps,
            } => {
                let mut before_member = "->";
                if !pointer && base.end == base.start + 1 {
                    // A variable is the same object after the fork, and it may have no address (`register`).
                    self.copy(*base, &mut after);
                    before_member = ".";
                } else {
                    keep(name, if *pointer { "" } else { "&" }, *base);
                    match steps.first() {
                        Some(Access::Index(_)) => text(&mut after, format!("(*{name})")),
                        _ => text(&mut after, name),
                    }
                }
                for (i, step) in steps.iter().enumerate() {
                    match *step {
                        Access::Member(member) => {
                            text(&mut after, before_member);
                            let (start, end) = (member, member + 1);
                            self.copy(Range { start, end }, &mut after);
                        }
                        Access::Index(index) => {
                            let at = format!("{name}_i{i}");
                            keep(&at, "+", index); // unary plus, since a bit-field has no `__auto_type`
                            text(&mut after, format!("[{at}]"));
                        }
                    }
                    before_member = ".";
                }
            }
        }
        (before, after)
    }

    pub(super) fn assign(&self, op: usize, after: &mut Vec<Piece>) {
        text(after, " ");
        after.push(Piece::Copy {
            from: op,
            to: op + 1,
            lead: false,
            gap: false,
        });
        text(after, " ");
    }
}
