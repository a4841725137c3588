// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random expressions and statements with the variables in scope, as text.

use super::{Maker, Ty, Var};
use std::fmt::Write;

impl Maker {
    pub fn literal(&mut self) -> String {
        match self.rng.below(7) {
            0..=2 => self.rng.below(10).to_string(),
            3 => self.rng.below(300).to_string(),
            4 => self.rng.below(70_000).to_string(),
            5 => format!("0x{:x}", self.rng.below(1 << 33)),
            _ => (1u64 << self.rng.below(40)).to_string(),
        }
    }

    pub fn scalar(&mut self, want_bool: bool) -> Option<String> {
        let fit: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.len.is_none() && (v.ty == Ty::Bool) == want_bool)
            .map(|v| v.name.clone())
            .collect();
        if fit.is_empty() {
            None
        } else {
            Some(self.rng.pick(&fit).clone())
        }
    }

    pub fn index(&mut self, len: u64, depth: u32) -> String {
        if self.unsafe_index && self.rng.chance(3) {
            return self.int(depth);
        }
        let counters: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.at_most.is_some_and(|m| m < len))
            .map(|v| v.name.clone())
            .collect();
        if !counters.is_empty() && self.rng.chance(70) {
            return self.rng.pick(&counters).clone();
        }
        match self.rng.below(3) {
            0 => self.rng.below(len).to_string(),
            1 if len.is_power_of_two() => format!("({}) & {}", self.int(depth), len - 1),
            _ if len.is_power_of_two() => format!("(({}) >> 3) & {}", self.int(depth), len - 1),
            _ => self.rng.below(len).to_string(),
        }
    }

    fn cell(&mut self, depth: u32) -> Option<String> {
        let (name, rows, columns) = self.grid.clone()?;
        let (i, j) = (self.index(rows, depth), self.index(columns, depth));
        Some(format!("{name}[{i}][{j}]"))
    }

    pub fn element(&mut self, want_bool: bool, depth: u32) -> Option<String> {
        if !want_bool && self.rng.chance(25) && self.grid.is_some() {
            return self.cell(depth.saturating_sub(1));
        }
        let fit: Vec<Var> = self
            .vars
            .iter()
            .filter(|v| v.len.is_some() && (v.ty == Ty::Bool) == want_bool)
            .cloned()
            .collect();
        if fit.is_empty() {
            return None;
        }
        let v = self.rng.pick(&fit).clone();
        let i = self.index(v.len?, depth.saturating_sub(1));
        Some(format!("{}[{i}]", v.name))
    }

    pub fn leaf(&mut self) -> String {
        if self.rng.chance(75)
            && let Some(v) = self.scalar(false)
        {
            return v;
        }
        if self.rng.chance(30)
            && let Some(v) = self.element(false, 0)
        {
            return v;
        }
        self.literal()
    }

    /// An integer expression.
    pub fn int(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let d = depth - 1;
        match self.rng.below(22) {
            0..=3 => format!("({} + {})", self.int(d), self.int(d)),
            4..=6 => format!("({} - {})", self.int(d), self.int(d)),
            7..=8 => format!("({} * {})", self.int(d), self.int(d)),
            9 => format!("({} & {})", self.int(d), self.int(d)),
            10 => format!("({} | {})", self.int(d), self.int(d)),
            11 => format!("({} ^ {})", self.int(d), self.int(d)),
            12 => format!("({} >> {})", self.int(d), self.rng.below(20)),
            13 => format!("({} >> ({} & 31))", self.int(d), self.int(d.min(1))),
            14 => format!("({} << {})", self.int(d), self.rng.below(12)),
            15 => format!("({} << ({} & 15))", self.int(d), self.int(d.min(1))),
            16 => {
                let op = *self.rng.pick(&["/", "mod"]);
                if self.unsafe_index && self.rng.chance(10) {
                    return format!("({} {op} {})", self.int(d), self.int(d));
                }
                if self.rng.chance(50) {
                    let by = self.rng.below(200) + 1;
                    format!("({} {op} {by})", self.int(d))
                } else {
                    format!("({} {op} (({} & 7) + 1))", self.int(d), self.int(d.min(1)))
                }
            }
            17 => format!("(-{})", self.int(d)),
            18 => format!("(~{})", self.int(d)),
            19 => format!(
                "(if {} then {} else {} end)",
                self.bool(d),
                self.int(d),
                self.int(d)
            ),
            20 if self.rng.chance(40) => self.fold(d).unwrap_or_else(|| self.leaf()),
            20 if !self.functions.is_empty() => {
                let (name, params, _) = self.rng.pick(&self.functions.clone()).clone();
                let args: Vec<String> = params
                    .iter()
                    .map(|t| {
                        if *t == Ty::Bool {
                            self.bool(d)
                        } else {
                            self.int(d)
                        }
                    })
                    .collect();
                format!("{name}({})", args.join(", "))
            }
            _ => self.element(false, d).unwrap_or_else(|| self.leaf()),
        }
    }

    pub fn bool(&mut self, depth: u32) -> String {
        if depth == 0 {
            if self.rng.chance(50)
                && let Some(v) = self.scalar(true)
            {
                return v;
            }
            return if self.rng.chance(50) {
                "true".into()
            } else {
                "false".into()
            };
        }
        let d = depth - 1;
        match self.rng.below(10) {
            0..=4 => {
                let op = *self.rng.pick(&["=", "!=", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.int(d), self.int(d))
            }
            5 if self.float.is_some() => {
                let limit = self.rng.below(900);
                format!("({} < {limit}.25)", self.float.clone().unwrap_or_default())
            }
            5 => self.compare_text().unwrap_or_else(|| self.bool(0)),
            6 => format!("({} and {})", self.bool(d), self.bool(d)),
            7 => format!("({} or {})", self.bool(d), self.bool(d)),
            8 => format!("(not {})", self.bool(d)),
            _ => self.element(true, d).unwrap_or_else(|| self.bool(0)),
        }
    }

    pub fn value(&mut self, ty: Ty, depth: u32) -> String {
        if ty == Ty::Bool {
            self.bool(depth)
        } else {
            self.int(depth)
        }
    }

    /// Statements, each on a row of its own.
    pub fn stmts(&mut self, out: &mut String, depth: u32, indent: usize) {
        for _ in 0..1 + self.rng.below(3) {
            self.stmt(out, depth, indent);
        }
    }

    pub fn stmt(&mut self, out: &mut String, depth: u32, indent: usize) {
        let pad = " ".repeat(indent);
        let scope = self.vars.len();
        let targets: Vec<Var> = self.vars.iter().filter(|v| v.writable).cloned().collect();
        if targets.is_empty() {
            return;
        }
        if self.rng.chance(6)
            && let Some(cell) = self.cell(1)
        {
            let e = self.int(3);
            let _ = writeln!(out, "{pad}{cell} := {e};");
            return;
        }
        if !self.light && self.rng.chance(30) && self.feature(out, &pad) {
            return;
        }
        if self.rng.chance(6)
            && let Some(r) = self.float.clone()
        {
            let (x, by) = (self.leaf(), self.rng.below(60));
            let _ = writeln!(out, "{pad}{r} := {r} * 0.{by} + ({x} & 1023);");
            return;
        }
        let simple = depth == 0 || self.rng.chance(60);
        let kind = if simple { 0 } else { 1 + self.rng.below(5) };
        match kind {
            0 => {
                let v = self.rng.pick(&targets).clone();
                let to = match v.len {
                    Some(n) => format!("{}[{}]", v.name, self.index(n, 1)),
                    None => v.name.clone(),
                };
                let e = self.value(v.ty, if self.light { 2 } else { 3 });
                let _ = writeln!(out, "{pad}{to} := {e};");
            }
            1 => {
                let c = self.bool(2);
                let _ = writeln!(out, "{pad}if {c} then");
                self.stmts(out, depth - 1, indent + 2);
                if self.rng.chance(50) {
                    let _ = writeln!(out, "{pad}else");
                    self.stmts(out, depth - 1, indent + 2);
                }
                let _ = writeln!(out, "{pad}end");
            }
            2 if self.loops < 2 => {
                let (name, last) = (self.name("i"), self.rng.below(9));
                let ty = if self.rng.chance(70) {
                    Ty::Int(32)
                } else {
                    Ty::Uint(8)
                };
                // Sometimes the end depends on a value.
                let end = if self.rng.chance(30) {
                    format!("(({}) & {last})", self.int(1))
                } else {
                    last.to_string()
                };
                let _ = writeln!(out, "{pad}foreach {} {name} in 0 .. {end} do", ty.text());
                self.vars.push(Var {
                    name,
                    ty,
                    len: None,
                    writable: false,
                    at_most: Some(last),
                });
                self.loops += 1;
                self.stmts(out, depth - 1, indent + 2);
                self.loops -= 1;
                self.vars.truncate(scope);
                let _ = writeln!(out, "{pad}end");
            }
            3 if self.loops < 2 => {
                // Counters of the actor, one for each depth.
                let (name, n) = (["wa", "wb"][self.loops as usize], 1 + self.rng.below(6));
                let _ = writeln!(out, "{pad}{name} := {n};");
                let _ = writeln!(out, "{pad}while {name} > 0 do");
                self.vars.push(Var {
                    name: name.to_string(),
                    ty: Ty::Int(32),
                    len: None,
                    writable: false,
                    at_most: None,
                });
                self.loops += 1;
                self.stmts(out, depth - 1, indent + 2);
                self.loops -= 1;
                self.vars.truncate(scope);
                let _ = writeln!(out, "{pad}  {name} := {name} - 1;");
                let _ = writeln!(out, "{pad}end");
            }
            4 => {
                let lists: Vec<Var> = targets
                    .iter()
                    .filter(|v| v.len.is_some())
                    .cloned()
                    .collect();
                let Some(to) = lists.first() else { return };
                let fits = |v: &&Var| {
                    v.len.is_some_and(|n| Some(n) <= to.len) && v.ty == to.ty && v.name != to.name
                };
                let from: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
                if let Some(from) = from.first() {
                    let _ = writeln!(out, "{pad}{} := {};", to.name, from.name);
                } else if to.ty != Ty::Bool {
                    let (n, i) = (to.len.unwrap_or(1), self.name("g"));
                    self.vars.push(Var {
                        name: i.clone(),
                        ty: Ty::Int(32),
                        len: None,
                        writable: false,
                        at_most: Some(n - 1),
                    });
                    let e = self.int(2);
                    self.vars.truncate(scope);
                    let _ = writeln!(
                        out,
                        "{pad}{} := [ {e} : for int {i} in 0 .. {} ];",
                        to.name,
                        n - 1
                    );
                }
            }
            _ => {
                let Some((p, n)) = self.procedures.first().cloned() else {
                    return;
                };
                let fits: Vec<Var> = targets
                    .iter()
                    .filter(|v| v.len == Some(n) && v.ty == Ty::Int(16))
                    .cloned()
                    .collect();
                if let Some(v) = fits.first() {
                    let e = self.int(2);
                    let _ = writeln!(out, "{pad}{p}({}, {e});", v.name);
                }
            }
        }
    }
}
