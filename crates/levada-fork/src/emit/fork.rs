// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code of a fork in its function: arguments, fork, block, join.

use super::{Piece, Style, Writer, text};
use crate::parse::Form;

impl Writer<'_> {
    pub(super) fn fork(&self, fork: usize, form: &Form, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let closing = self.closing(fork);
        let begin = |pieces: &mut Vec<Piece>, open: &str| {
            text(pieces, open);
            pieces.push(Piece::Indent(1));
        };
        let end = |pieces: &mut Vec<Piece>, close: &str| {
            pieces.push(Piece::Indent(-1));
            text(pieces, close);
        };
        match form {
            Form::Statement(_) => {
                begin(pieces, "{");
                self.open(fork, &[], pieces);
                self.join(fork, None, pieces);
                // The result, if any, is dropped.
                end(pieces, "\n}");
            }
            Form::Assignment {
                left,
                place,
                op,
                statement: Some(_),
                ..
            } => {
                let (before, mut after) = self.keep(*left, place, &format!("lvd_p{n}"));
                self.assign(*op, &mut after);
                begin(pieces, "{");
                self.open(fork, &before, pieces);
                self.join(fork, Some(&after), pieces);
                end(pieces, "\n}");
            }
            Form::Assignment {
                left, place, op, ..
            } => {
                let (before, mut after) = self.keep(*left, place, &format!("lvd_p{n}"));
                self.assign(*op, &mut after);
                begin(pieces, "__extension__({");
                self.value(fork, &before, pieces);
                text(pieces, "\n");
                pieces.extend(after);
                text(pieces, format!("lvd_v{n};"));
                end(pieces, &format!("\n}}){closing}"));
            }
            Form::Declaration { name, .. } => {
                begin(pieces, ";\n{");
                self.open(fork, &[], pieces);
                let keep = [Piece::Text(format!("{name} = "))];
                self.join(fork, Some(&keep), pieces);
                end(pieces, "\n}");
            }
            Form::Return(_) => {
                begin(pieces, "{");
                let value = self.value(fork, &[], pieces);
                let value = value.map_or(String::new(), |v| format!(" {v}"));
                text(pieces, format!("\nreturn{value};"));
                end(pieces, "\n}");
            }
            Form::Operand => {
                begin(pieces, "__extension__({");
                let value = self.value(fork, &[], pieces);
                // If the value is unused, an assignment avoids the compiler's warning about it.
                let value = value.map(|v| {
                    if self.parsed.forks[fork].unused {
                        format!("{v} = *&{v}")
                    } else {
                        v
                    }
                });
                text(pieces, format!("\n{};", value.unwrap_or("(void)0".into())));
                end(pieces, &format!("\n}}){closing}"));
            }
        }
    }

    /// Writes the arguments, the fork, and the block. `before` is written between the variables and the arguments.
    fn open(&self, fork: usize, before: &[Piece], pieces: &mut Vec<Piece>) {
        self.open_with(fork, None, before, pieces);
    }

    /// Writes the fork with its join, and returns the name of the variable that holds the result; `None`: no result.
    pub(super) fn value(
        &self,
        fork: usize,
        before: &[Piece],
        pieces: &mut Vec<Piece>,
    ) -> Option<String> {
        let site = &self.sites[fork];
        if site.out.is_none() {
            self.open(fork, before, pieces);
            self.join(fork, None, pieces);
            return None;
        }
        let name = format!("lvd_v{}", site.number);
        let declared = self.own(fork, site.type_of_result(), "result", &name);
        self.open_with(fork, Some(declared), before, pieces);
        self.join(fork, Some(&[Piece::Text(format!("{name} = "))]), pieces);
        Some(name)
    }

    fn open_with(
        &self,
        fork: usize,
        result: Option<String>,
        before: &[Piece],
        pieces: &mut Vec<Piece>,
    ) {
        let site = &self.sites[fork];
        let n = site.number;
        let of = &self.parsed.forks[fork];
        let serial = self.style == Style::Serial;
        text(pieces, "\n");
        if !serial {
            let record = site.record();
            text(pieces, format!("{record} lvd_r{n};\nlvd_fork *lvd_h{n};\n"));
        }
        if let Some(result) = result {
            text(pieces, format!("{result};\n"));
        }
        pieces.extend_from_slice(before);
        if !before.is_empty() {
            text(pieces, "\n");
        }
        if site.callee.is_none() {
            if serial {
                let name = format!("lvd_f{n}");
                let declared = self.own(fork, site.type_of_callee(), "callee", &name);
                text(pieces, format!("{declared} = "));
            } else {
                text(pieces, format!("lvd_r{n}.lvd_in.lvd_call = "))
            }
            self.copy(of.callee, pieces);
            text(pieces, ";\n");
        }
        for (i, &arg) in of.args.iter().enumerate().filter(|(i, _)| site.is_kept(*i)) {
            let (begin, end) = if serial {
                let (ty, kind) = (site.type_of_argument(i), format!("argument{i}"));
                let declared = self.own(fork, ty, &kind, &site.argument(i));
                (format!("{declared} = "), ";".into())
            } else {
                site.keep_argument(i)
            };
            text(pieces, begin);
            self.copy(arg, pieces);
            text(pieces, end + "\n");
        }
        if !serial {
            if site.keeps_nothing() {
                text(pieces, format!("lvd_r{n}.lvd_in.lvd_none = 0;\n"));
            }
            let (handle, variable) = (format!("lvd_h{n}"), format!("lvd_r{n}"));
            let push = self
                .words
                .push(&handle, &site.record(), &variable, &site.run());
            text(pieces, push + "\n");
        }
        self.copy(of.block, pieces);
    }

    /// Writes the join. `keep` is the beginning of the statement that stores the result, as `x = `.
    fn join(&self, fork: usize, keep: Option<&[Piece]>, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let keep = keep.filter(|_| site.out.is_some());
        if self.style == Style::Serial {
            text(pieces, "\n");
            pieces.extend_from_slice(keep.unwrap_or_default());
            pieces.push(self.called_at(fork));
            return text(pieces, format!("{};", self.call(fork)));
        }
        let (handle, variable) = (format!("lvd_h{n}"), format!("lvd_r{n}"));
        let asks = self.asks(fork);
        let taking = |value: &str, stolen: u32| {
            let mut body = keep.unwrap_or_default().to_vec();
            body.push(self.called_at(fork));
            text(&mut body, format!("{value};"));
            if asks {
                text(&mut body, format!("\nlvd_stolen_set({stolen});"));
            }
            body
        };
        let call = taking(&self.call(fork), 0);
        let pop = self.words.likely(&format!("lvd_fork_pop({handle})"));
        // The call is written twice: compilers then generate much better code for the common case.
        let mut branches = vec![
            (format!("if ({pop})"), call.clone()),
            (format!("else if (lvd_fork_join_slow({handle}))"), call),
        ];
        if keep.is_some() {
            let out = self.words.out(&handle, &site.record(), &variable);
            branches.push(("else".into(), taking(&format!("{out}->lvd_out"), 1)));
        } else if asks {
            let told = Piece::Text("lvd_stolen_set(1);".into());
            branches.push(("else".into(), vec![told]));
        }
        for (i, (head, body)) in branches.into_iter().enumerate() {
            let before = if asks && i > 0 { "\n} " } else { "\n" };
            text(
                pieces,
                format!("{before}{head}{}", if asks { " {" } else { "" }),
            );
            pieces.push(Piece::Indent(1));
            text(pieces, "\n");
            pieces.extend(body);
            pieces.push(Piece::Indent(-1));
        }
        if asks {
            text(pieces, "\n}");
        }
    }

    fn asks(&self, fork: usize) -> bool {
        let external = self.parsed.forks[fork].external;
        self.asks.get(&external).copied().unwrap_or(false)
    }

    /// Gives the following text the line of the user's call.
    pub(super) fn called_at(&self, fork: usize) -> Piece {
        Piece::At(self.parsed.forks[fork].callee.start)
    }

    /// The call, as it is written in the forking function.
    pub(super) fn call(&self, fork: usize) -> String {
        let site = &self.sites[fork];
        match self.style {
            Style::Parallel => site.call(&format!("lvd_r{}.", site.number)),
            Style::Serial => site.serial_call(),
        }
    }

    /// The semicolon after a fork that is a part of a statement and ends it without one; otherwise empty.
    fn closing(&self, fork: usize) -> &'static str {
        if self.parsed.forks[fork].closes && !self.closed.contains(&fork) {
            ";"
        } else {
            ""
        }
    }
}
