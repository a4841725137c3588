// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of random programs: strings, functions of lists, natives, and small actors of unequal rates for fusion to
//! merge.

use super::{Maker, Pattern, Port, Ty, Var};
use std::fmt::Write;

/// A function that returns a list: of which elements, and how many.
#[derive(Clone)]
pub struct ListFunction {
    name: String,
    elem: Ty,
    len: u64,
}

/// What an actor has of these.
#[derive(Clone, Default)]
pub struct Features {
    /// String variables, and the size of a table of strings.
    strings: Vec<String>,
    table: Option<(String, u64)>,
    makers: Vec<ListFunction>,
    /// Functions of one list, and the list's elements and length.
    folds: Vec<ListFunction>,
    natives: bool,
}

/// The natives that programs call; `natives.c` has them for the compiled code.
const NATIVES: &str = "  @native function random_mix(int a, int b) --> int end
  @native function random_sum(int(size=16) l[8]) --> int end
  @native procedure random_fill(int(size=16) l[8], int n) end
";

impl Maker {
    pub fn features(&mut self, out: &mut String) {
        if self.rng.chance(25) {
            for _ in 0..1 + self.rng.below(2) {
                let name = self.name("t");
                let init = if self.rng.chance(70) {
                    " := \"begin\""
                } else {
                    ""
                };
                let _ = writeln!(out, "  String {name}{init};");
                self.features.strings.push(name);
            }
        }
        if self.rng.chance(20) {
            let (name, n) = (self.name("w"), 1 << self.rng.below(3));
            let words: Vec<String> = (0..n).map(|i| format!("\"word{i} %d\"")).collect();
            let _ = writeln!(out, "  String {name}[{n}] = [{}];", words.join(", "));
            self.features.table = Some((name, n));
        }
        if self.rng.chance(20) {
            *out += NATIVES;
            self.features.natives = true;
            let name = self.name("l");
            let _ = writeln!(out, "  List(type: int(size=16), size=8) {name};");
            self.vars.push(Var {
                name,
                ty: Ty::Int(16),
                len: Some(8),
                writable: true,
                at_most: None,
            });
        }
        if self.rng.chance(25) {
            let (name, p, i) = (self.name("f"), self.name("p"), self.name("g"));
            let (elem, len) = (self.int_type(), 1 << self.rng.below(4));
            let outer = self.vars.clone();
            self.vars.retain(|v| !v.writable);
            for (name, at_most) in [(&p, None), (&i, Some(len - 1))] {
                self.vars.push(Var {
                    name: name.clone(),
                    ty: Ty::Int(32),
                    len: None,
                    writable: false,
                    at_most,
                });
            }
            let e = self.int(2);
            self.vars = outer;
            let _ = writeln!(
                out,
                "  function {name}(int {p}) --> List(type: {}, size={len}) : [ {e} : for int {i} in \
                 0 .. {} ] end",
                elem.text(),
                len - 1
            );
            self.features.makers.push(ListFunction { name, elem, len });
        }
        if self.rng.chance(25) {
            let (name, p) = (self.name("f"), self.name("p"));
            // Of what another function makes, if there is one.
            let maker = self.features.makers.first();
            let (elem, len) = maker.map_or((Ty::Int(32), 4), |m| (m.elem, m.len));
            let outer = self.vars.clone();
            self.vars.retain(|v| !v.writable);
            self.vars.push(Var {
                name: p.clone(),
                ty: elem,
                len: Some(len),
                writable: false,
                at_most: None,
            });
            let e = self.int(2);
            self.vars = outer;
            let _ = writeln!(
                out,
                "  function {name}(List(type: {}, size={len}) {p}) --> int : {e} + {p}[{}] end",
                elem.text(),
                len - 1
            );
            self.features.folds.push(ListFunction { name, elem, len });
        }
    }

    /// A string expression.
    pub fn text(&mut self, depth: u32) -> String {
        let depth = depth.saturating_sub(1);
        match self.rng.below(4) {
            0 if !self.features.strings.is_empty() => self.rng.pick(&self.features.strings).clone(),
            1 if self.features.table.is_some() => {
                let (name, n) = self.features.table.clone().unwrap_or_default();
                format!("{name}[{}]", self.index(n, depth))
            }
            2 if depth > 0 => format!(
                "if {} then {} else {} end",
                self.bool(depth),
                self.text(depth),
                self.text(depth)
            ),
            _ => format!("\"s{}\"", self.rng.below(9)),
        }
    }

    pub fn compare_text(&mut self) -> Option<String> {
        let name = self.features.strings.first()?.clone();
        let op = *self.rng.pick(&["=", "!="]);
        Some(format!("({name} {op} \"s{}\")", self.rng.below(4)))
    }

    /// A function of a list: of a variable, of what another function makes, or of one written out.
    pub fn fold(&mut self, depth: u32) -> Option<String> {
        let f = self.features.folds.first()?.clone();
        let fits: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.len == Some(f.len) && v.ty == f.elem)
            .map(|v| v.name.clone())
            .collect();
        let maker = self.features.makers.first().cloned();
        let maker = maker.filter(|m| m.len == f.len && m.elem == f.elem);
        Some(match maker {
            _ if !fits.is_empty() && self.rng.chance(60) => {
                format!("{}({})", f.name, self.rng.pick(&fits))
            }
            Some(m) => format!("{}({}({}))", f.name, m.name, self.int(depth)),
            None => {
                let items: Vec<String> = (0..f.len).map(|_| self.int(0)).collect();
                format!("{}([{}])", f.name, items.join(", "))
            }
        })
    }

    /// A statement that uses one of the features; `false` if none is there to be used.
    pub fn feature(&mut self, out: &mut String, pad: &str) -> bool {
        let writable: Vec<Var> = self.vars.iter().filter(|v| v.writable).cloned().collect();
        let bytes = |v: &&Var| v.len == Some(8) && v.ty == Ty::Int(16);
        let native = self.features.natives && self.rng.chance(50);
        let kind = self.rng.below(6);
        match if native { 2 + kind % 2 } else { kind } {
            0 if !self.features.strings.is_empty() => {
                let t = self.rng.pick(&self.features.strings).clone();
                let e = self.text(2);
                let _ = writeln!(out, "{pad}{t} := {e};");
            }
            1 if self.loops == 0 && self.rng.chance(50) => {
                let (me, e) = (self.actor.clone(), self.int(2));
                let t = self.text(1);
                // It comes to its end at once: many actors print into one row otherwise.
                let _ = match self.rng.below(3) {
                    0 => writeln!(out, "{pad}println(\"{me} \" + ({e}) + \" ; \");"),
                    1 => writeln!(out, "{pad}println(\"{me} \" + ({t}) + ({e}));"),
                    _ => writeln!(out, "{pad}println(\"{me} \" + {});", self.bool(1)),
                };
            }
            2 if self.features.natives => {
                let ints: Vec<&Var> = writable
                    .iter()
                    .filter(|v| v.len.is_none() && v.ty != Ty::Bool)
                    .collect();
                if ints.is_empty() {
                    return false;
                }
                let to = self.rng.pick(&ints).name.clone();
                let (a, b) = (self.int(2), self.int(1));
                let _ = writeln!(out, "{pad}{to} := random_mix({a}, {b});");
            }
            3 if self.features.natives => {
                let lists: Vec<&Var> = writable.iter().filter(bytes).collect();
                if lists.is_empty() {
                    return false;
                }
                let list = self.rng.pick(&lists).name.clone();
                let ints = writable
                    .iter()
                    .find(|v| v.len.is_none() && v.ty != Ty::Bool);
                match ints {
                    Some(v) if self.rng.chance(50) => {
                        let _ = writeln!(out, "{pad}{} := random_sum({list});", v.name);
                    }
                    _ => {
                        let e = self.int(1);
                        let _ = writeln!(out, "{pad}random_fill({list}, {e});");
                    }
                }
            }
            4 if !self.features.makers.is_empty() => {
                let f = self.features.makers[0].clone();
                let lists: Vec<&Var> = writable
                    .iter()
                    .filter(|v| v.len.is_some_and(|n| n >= f.len) && v.ty != Ty::Bool)
                    .collect();
                if lists.is_empty() {
                    return false;
                }
                let to = self.rng.pick(&lists).name.clone();
                let e = self.int(1);
                let _ = writeln!(out, "{pad}{to} := {}({e});", f.name);
            }
            5 => {
                // A list by choice.
                let lists: Vec<&Var> = writable.iter().filter(|v| v.len.is_some()).collect();
                if lists.is_empty() {
                    return false;
                }
                let to = (*self.rng.pick(&lists)).clone();
                let same: Vec<String> = self
                    .vars
                    .iter()
                    .filter(|v| v.len == to.len && v.ty == to.ty && v.name != to.name)
                    .map(|v| v.name.clone())
                    .collect();
                if same.is_empty() {
                    return false;
                }
                let (a, b) = (self.rng.pick(&same).clone(), self.rng.pick(&same).clone());
                let c = self.bool(1);
                let _ = writeln!(out, "{pad}{} := if {c} then {a} else {b} end;", to.name);
            }
            _ => return false,
        }
        true
    }

    /// A small actor of one way in and one way out, with known rates.
    pub fn small(&mut self, name: &str, input: &Port, output: &Port) -> String {
        let (inputs, outputs) = (std::slice::from_ref(input), std::slice::from_ref(output));
        let mut out = self.begin(name, inputs, outputs);
        self.light = true;
        let state = self.name("s");
        let ty = self.int_type();
        let _ = writeln!(out, "  {} {state} := 1;", ty.text());
        self.vars.push(Var {
            name: state,
            ty,
            len: None,
            writable: true,
            at_most: None,
        });
        let few = |me: &mut Maker| match me.rng.below(4) {
            0 => Pattern {
                port: 0,
                vars: 1,
                repeat: Some(1 + me.rng.below(6)),
            },
            1 => Pattern {
                port: 0,
                vars: 2,
                repeat: Some(1 + me.rng.below(2)),
            },
            _ => Pattern {
                port: 0,
                vars: 1 + me.rng.below(4) as usize,
                repeat: None,
            },
        };
        match self.rng.below(6) {
            0 => {
                // A choice by values, of equal rates.
                let (takes, gives) = (few(self), few(self));
                let n = takes.vars as u64 * takes.repeat.unwrap_or(1);
                let one = Pattern {
                    port: 0,
                    vars: n as usize,
                    repeat: None,
                };
                for (tag, takes, choose) in [("c.a0", &takes, true), ("c.a1", &one, false)] {
                    let (takes, gives) =
                        (std::slice::from_ref(takes), std::slice::from_ref(&gives));
                    self.action(
                        &mut out, tag, inputs, outputs, takes, gives, None, choose, "",
                    );
                }
                out += "  priority c.a0 > c.a1; end\n";
            }
            1 | 2 => {
                // A cycle, perhaps after a beginning of its own.
                let states = 2 + self.rng.below(2);
                let again = self.rng.below(2);
                let mut moves = String::new();
                for s in 0..states {
                    let on = s == again || self.rng.chance(60);
                    let takes: Vec<Pattern> = on.then(|| few(self)).into_iter().collect();
                    let on = s + 1 == states || self.rng.chance(60);
                    let gives: Vec<Pattern> = on.then(|| few(self)).into_iter().collect();
                    let tag = format!("t{s}");
                    self.action(
                        &mut out, &tag, inputs, outputs, &takes, &gives, None, false, "",
                    );
                    let to = if s + 1 == states { again } else { s + 1 };
                    let _ = writeln!(moves, "    z{s} ({tag}) --> z{to};");
                }
                let _ = writeln!(out, "  schedule fsm z0 :\n{moves}  end\n");
            }
            _ => {
                let (takes, gives) = ([few(self)], [few(self)]);
                self.action(
                    &mut out, "work", inputs, outputs, &takes, &gives, None, false, "",
                );
            }
        }
        self.light = false;
        out + "end\n"
    }

    /// One that gives strings for numbers, or strings for strings.
    pub fn namer(&mut self, name: &str, input: &Port) -> String {
        let words = "[\"zero\", \"one\", \"two\\t2\", \"a \\\"quote\\\"\"]";
        let value = if input.ty == Ty::Text {
            "if x = \"one\" then \"uno\" else x end".to_string()
        } else if input.ty == Ty::Bool {
            "if x then words[1] else words[2] end".to_string()
        } else {
            "words[x & 3]".to_string()
        };
        format!(
            "package random;\n\nactor {name} () {} {} ==> String Y0 :\n\n  String words[4] = \
             {words};\n\n  say: action {}:[x] ==> Y0:[{value}] end\n\nend\n",
            input.ty.text(),
            input.name,
            input.name
        )
    }
}
