// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code at file scope before a function with forks: their records, the functions that a thief runs, and names for
//! types.

use super::{Edit, Piece, Style, Writer, text};
use crate::fork_site::declared;
use crate::parse::{External, Range};
use crate::types::Type;
use std::collections::HashSet;

impl Writer<'_> {
    /// The edit that inserts the types and functions of its forks before a function; `None` if there are none.
    pub(super) fn file_scope(&self, external: &External, order: &[usize]) -> Option<Edit> {
        let mut pieces = Vec::new();
        let needs = self.needs.borrow_mut().remove(&external.start);
        if self.style == Style::Serial && needs.is_none() {
            return None;
        }
        let here = order.iter().map(|&i| (i, &self.parsed.forks[i]));
        let here: Vec<_> = here.filter(|(_, f)| f.external == external.start).collect();
        let calls_itself = here
            .iter()
            .any(|(_, f)| f.name.as_ref() == Some(&external.name));
        if calls_itself && !external.known {
            match &external.old_style {
                Some(declaration) => text(&mut pieces, declaration),
                None => pieces.push(Piece::Copy {
                    from: external.head.start,
                    to: external.head.end,
                    lead: false,
                    gap: false,
                }),
            }
            text(&mut pieces, ";\n");
        }
        for (i, _) in here {
            let site = &self.sites[i];
            if self.style == Style::Serial {
                continue;
            }
            text(&mut pieces, site.typedefs.concat());
            let (record, run) = (site.record(), site.run());
            let members: Vec<String> = site.members.iter().map(|m| format!("{m}; ")).collect();
            let out = match &site.out {
                Some(out) => format!(" {out};"),
                None => String::new(),
            };
            text(
                &mut pieces,
                format!(
                    "typedef union {record} {{ struct {{ {}}} lvd_in;{out} }} {record};\n",
                    members.concat()
                ),
            );
            let target = &external.target;
            let head = format!("static {target}void {run}(lvd_fork *lvd_slot) {{");
            let call = site.call("lvd_r->");
            let keep = if site.out.is_some() {
                "lvd_r->lvd_out = "
            } else {
                ""
            };
            text(&mut pieces, head);
            pieces.push(Piece::Indent(1));
            let named = if site.args == 0 && site.callee.is_some() && site.out.is_none() {
                "\n(void)lvd_slot;".to_string()
            } else {
                let from = self.words.record("lvd_slot", &record);
                format!("\n{record} *lvd_r = {from};")
            };
            text(&mut pieces, format!("{named}\n{keep}"));
            pieces.push(self.called_at(i));
            text(&mut pieces, format!("{call};"));
            pieces.push(Piece::Indent(-1));
            text(&mut pieces, "\n}\n");
        }
        pieces.extend(needs.into_iter().flatten().flat_map(|(_, pieces)| pieces));
        text(&mut pieces, "\n");
        Some(Edit {
            range: Range {
                start: external.start,
                end: external.start,
            },
            pieces,
        })
    }

    /// Adds a generated type or function to those that stand before an external declaration, unless it has one of that
    /// name.
    pub(super) fn need(&self, external: usize, name: String, pieces: impl FnOnce() -> Vec<Piece>) {
        let mut needs = self.needs.borrow_mut();
        let of = needs.entry(external).or_default();
        of.entry(name).or_insert_with(pieces);
    }

    /// The declaration of a variable in a function. If a local name in `hidden` occurs in its type, a typedef named
    /// `type_name` is added before the function. With no type it is `__auto_type`.
    pub(super) fn variable(
        &self,
        external: usize,
        hidden: &HashSet<String>,
        ty: Option<&Type>,
        type_name: String,
        name: &str,
    ) -> String {
        let Some(ty) = ty else {
            return format!("__extension__ __auto_type {name}");
        };
        let words = declared(self.parsed, ty, name);
        let identifiers = words.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        if !identifiers.into_iter().any(|w| hidden.contains(w)) {
            return words;
        }
        let named = format!("{type_name} {name}");
        let declaration = format!("typedef {};\n", declared(self.parsed, ty, &type_name));
        self.need(external, type_name, || vec![Piece::Text(declaration)]);
        named
    }

    /// The declaration of a variable for a fork, in the scope that contains its block.
    pub(super) fn own(&self, fork: usize, ty: Option<&Type>, kind: &str, name: &str) -> String {
        let of = &self.parsed.forks[fork];
        let type_name = format!("lvd_{kind}_{}", self.sites[fork].name);
        self.variable(of.external, &of.hidden, ty, type_name, name)
    }
}
