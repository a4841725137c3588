// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code of a jump out of the blocks of forks: it joins these forks first.

use super::{Piece, Style, What, Writer, text};
use crate::parse::{Form, Jump};
use crate::types;

impl Writer<'_> {
    /// Writes a jump. Its value, if any, is computed first; then the forks are joined, and their results dropped.
    pub(super) fn jump(&self, number: usize, pieces: &mut Vec<Piece>) {
        let jump = &self.parsed.jumps[number];
        let variable = format!("lvd_back{}", number + 1);
        text(pieces, "{");
        pieces.push(Piece::Indent(1));
        let mut back = None;
        if let Some(value) = jump.value {
            let ty = jump.result.as_ref().map(types::unqualified);
            let here = self.parsed.externals.iter();
            let here = here.filter(|e| e.start == jump.external).map(|e| &e.name);
            let type_name = format!("lvd_back_{}", here.cloned().collect::<String>());
            let (external, hidden) = (jump.external, &jump.hidden);
            let declared = self.variable(external, hidden, ty.as_ref(), type_name, &variable);
            if jump.void {
                text(pieces, "\n")
            } else {
                text(pieces, format!("\n{declared} = "));
                text(pieces, if jump.comma { "(" } else { "" });
                back = Some(&variable);
            }
            // If the whole value is a fork, it is written as an operand instead of a `return` of its own.
            let whole = |w: &What| match w {
                What::Fork(i) => self.parsed.forks[*i].range() == value,
                What::Jump(_) | What::Sequence(_) => false,
            };
            match self.constructs.iter().find(|(_, w)| whole(w)) {
                Some((_, what)) => self.construct(*what, Some(&Form::Operand), pieces),
                None => self.copy(value, pieces),
            }
            text(
                pieces,
                if jump.comma && back.is_some() {
                    ");"
                } else {
                    ";"
                },
            );
        }
        for &fork in &jump.forks {
            let site = &self.sites[fork];
            let keep = Piece::Text(format!("lvd_r{}.lvd_out = ", site.number));
            self.leave(fork, jump, &keep, pieces);
        }
        text(pieces, "\n");
        match (jump.value, back) {
            (Some(_), Some(back)) => text(pieces, format!("return {back};")),
            (Some(_), None) => text(pieces, "return;"),
            (None, _) => pieces.push(Piece::Copy {
                from: jump.range.start,
                to: jump.range.end,
                lead: false,
                gap: false,
            }),
        }
        pieces.push(Piece::Indent(-1));
        text(pieces, "\n}");
    }

    /// Writes the join of a fork that is left; its result is dropped.
    fn leave(&self, fork: usize, jump: &Jump, keep: &Piece, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let call = self.call_from(fork, jump);
        if self.style == Style::Serial {
            text(pieces, if site.out.is_some() { "\n(void)" } else { "\n" });
            pieces.push(self.called_at(fork));
            return text(pieces, format!("{call};"));
        }
        let join = self.words.likely(&format!("lvd_fork_join(lvd_h{n})"));
        text(pieces, format!("\nif ({join}) {{"));
        pieces.push(Piece::Indent(1));
        text(pieces, "\n");
        if site.out.is_some() {
            pieces.push(keep.clone());
        }
        pieces.push(self.called_at(fork));
        text(pieces, format!("{call};"));
        pieces.push(Piece::Indent(-1));
        text(pieces, "\n}");
    }

    /// The call, as it is written in the block; through a function at file scope if a local name hides the function's.
    fn call_from(&self, fork: usize, jump: &Jump) -> String {
        let site = &self.sites[fork];
        let hidden = site
            .callee
            .as_ref()
            .is_some_and(|n| jump.hidden.contains(n));
        if !hidden {
            return self.call(fork);
        }
        let name = site.called_elsewhere();
        self.need(self.parsed.forks[fork].external, name.clone(), || {
            let (head, call) = site.elsewhere(self.parsed);
            let mut pieces = Vec::new();
            let external = self.parsed.forks[fork].external;
            let mut externals = self.parsed.externals.iter();
            let target = externals
                .find(|e| e.start == external)
                .map_or("", |e| e.target.as_str());
            text(&mut pieces, format!("{target}{head} {{"));
            pieces.push(Piece::Indent(1));
            text(&mut pieces, "\n");
            pieces.push(self.called_at(fork));
            text(&mut pieces, format!("{call};"));
            pieces.push(Piece::Indent(-1));
            text(&mut pieces, "\n}\n");
            pieces
        });
        match self.style {
            Style::Parallel => site.call_elsewhere(&format!("lvd_r{}.", site.number)),
            Style::Serial => site.serial_call_elsewhere(),
        }
    }
}
