// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random typed expressions over all operators, hundreds of them in one actor.
//!
//! Each is written several times: with constants, which the checker folds; as a function of its
//! operands, which is evaluated when it is called with constants; with variables that are set from
//! channels, so that nothing is known of them; and with a mixture of both. All print the same.

use super::{ActorText, Program, Rng, Wire};
use std::fmt::Write;

/// How many values each operand takes.
pub const ROWS: usize = 4;

/// Elements that a loop computes.
const TURNS: usize = 2 * ROWS;

/// Operands of an actor.
const LEAVES: usize = 26;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ty {
    Bool,
    Int(u32),
    Uint(u32),
    Half,
    Float,
    Double,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bool,
    Int,
    Real,
}

impl Ty {
    fn text(self) -> String {
        match self {
            Ty::Bool => "bool".into(),
            Ty::Int(n) => format!("int(size={n})"),
            Ty::Uint(n) => format!("uint(size={n})"),
            Ty::Half => "half".into(),
            Ty::Float => "float".into(),
            Ty::Double => "double".into(),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Ty::Bool => Kind::Bool,
            Ty::Int(_) | Ty::Uint(_) => Kind::Int,
            _ => Kind::Real,
        }
    }
}

/// An operand: its type, and its values as they are written.
#[derive(Clone)]
struct Leaf {
    ty: Ty,
    values: Vec<String>,
    never_zero: bool,
}

#[derive(Clone)]
pub enum Expr {
    Leaf(usize),
    Literal(String, Kind),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// By anything: by 3 where that is 0.
    Divide(&'static str, Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A function that gives back what it is given.
    Through(usize, Box<Expr>),
}

/// What an operand is called where it is written.
type Naming<'n> = &'n mut dyn FnMut(usize) -> String;

pub struct Expressions {
    leaves: Vec<Leaf>,
    /// Types that expressions are converted to on the way.
    through: Vec<Ty>,
    pub all: Vec<(Expr, String)>,
    seed: u64,
}

impl Expr {
    fn text(&self, name: Naming) -> String {
        match self {
            Expr::Leaf(i) => name(*i),
            Expr::Literal(text, _) => text.clone(),
            Expr::Unary(op, a) => format!("({op} {})", a.text(name)),
            Expr::Binary(op, a, b) => {
                let a = a.text(name);
                format!("({a} {op} {})", b.text(name))
            }
            Expr::Divide(op, a, b) => {
                let (a, b) = (a.text(name), b.text(name));
                format!("({a} {op} (if {b} = 0 then 3 else {b} end))")
            }
            Expr::If(c, a, b) => {
                let (c, a) = (c.text(name), a.text(name));
                format!("(if {c} then {a} else {} end)", b.text(name))
            }
            Expr::Through(f, a) => format!("through{f}({})", a.text(name)),
        }
    }

    fn leaves(&self, out: &mut Vec<usize>) {
        match self {
            Expr::Leaf(i) if !out.contains(i) => out.push(*i),
            Expr::Leaf(_) | Expr::Literal(..) => {}
            Expr::Unary(_, a) | Expr::Through(_, a) => a.leaves(out),
            Expr::Binary(_, a, b) | Expr::Divide(_, a, b) => {
                a.leaves(out);
                b.leaves(out);
            }
            Expr::If(c, a, b) => {
                c.leaves(out);
                a.leaves(out);
                b.leaves(out);
            }
        }
    }

    fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Leaf(_) | Expr::Literal(..) => vec![],
            Expr::Unary(_, a) | Expr::Through(_, a) => vec![a],
            Expr::Binary(_, a, b) | Expr::Divide(_, a, b) => vec![a, b],
            Expr::If(c, a, b) => vec![c, a, b],
        }
    }
}

const SIZES: [u32; 14] = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64];

fn int_type(rng: &mut Rng) -> Ty {
    let bits = match rng.below(4) {
        0 => 1 + rng.below(64) as u32,
        1 => 32,
        _ => *rng.pick(&SIZES),
    };
    if rng.chance(55) {
        Ty::Int(bits)
    } else {
        Ty::Uint(bits)
    }
}

/// A value of an integer type, as it is written; 0 only if that is allowed. Some are more than the
/// type's width, but not more than what it is held in.
fn int_value(rng: &mut Rng, ty: Ty, may_be_zero: bool) -> String {
    let (bits, signed) = match ty {
        Ty::Int(n) => (n, true),
        Ty::Uint(n) => (n, false),
        _ => unreachable!("an integer type"),
    };
    let bits = if rng.chance(6) {
        bits.next_power_of_two().max(8)
    } else {
        bits
    };
    let (low, high) = if signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    let value = match rng.below(8) {
        0 => low,
        1 => high,
        2 => low + i128::from(rng.below(3)),
        3 => high - i128::from(rng.below(3)),
        4 | 5 => i128::from(rng.below(80)) - if signed { 40 } else { 0 },
        _ => low + (i128::from(rng.next()) % (high - low + 1)),
    };
    match value.clamp(low, high) {
        // One bit with a sign has 0 and -1 alone.
        0 if !may_be_zero => if high > 0 { 1 } else { -1 }.to_string(),
        value => value.to_string(),
    }
}

fn real_value(rng: &mut Rng, ty: Ty) -> String {
    let common = [
        "0.0", "1.0", "0.1", "1.5", "-2.75", "100.0", "-0.0", "0.333", "7.0", "1e-3",
    ];
    let own: &[&str] = match ty {
        Ty::Half => &[
            "65504.0",
            "6.1e-5",
            "5.96e-8",
            "-1024.5",
            "0.0009766",
            "2047.0",
        ],
        Ty::Float => &[
            "3.4e38",
            "1.2e-38",
            "16777217.0",
            "-1e10",
            "123456.789",
            "1e-20",
        ],
        _ => &[
            "1e300",
            "1e-300",
            "9007199254740993.0",
            "-1e18",
            "123456789.123",
            "4e15",
        ],
    };
    match rng.below(3) {
        0 => rng.pick(&common).to_string(),
        1 => rng.pick(own).to_string(),
        _ => format!("{}.{:04}", rng.below(2000) as i64 - 1000, rng.below(10000)),
    }
}

fn literal(rng: &mut Rng, kind: Kind) -> Expr {
    let text = match kind {
        Kind::Bool => rng.pick(&["true", "false"]).to_string(),
        Kind::Real => real_value(rng, Ty::Float),
        Kind::Int => match rng.below(5) {
            0 => rng.below(9).to_string(),
            1 => (1u64 << rng.below(64)).to_string(),
            2 => ((1u128 << (1 + rng.below(64))) - 1).to_string(),
            3 => format!("-{}", rng.below(1 << 40)),
            _ => (rng.next() >> rng.below(64)).to_string(),
        },
    };
    match text.strip_prefix('-') {
        Some(rest) => Expr::Unary("-", Box::new(Expr::Literal(rest.into(), kind))),
        None => Expr::Literal(text, kind),
    }
}

struct Maker<'m> {
    rng: &'m mut Rng,
    leaves: &'m [Leaf],
    through: &'m [Ty],
}

impl Maker<'_> {
    fn leaf(&mut self, wanted: &dyn Fn(&Leaf) -> bool) -> Option<Expr> {
        let fitting: Vec<usize> = (0..self.leaves.len())
            .filter(|i| wanted(&self.leaves[*i]))
            .collect();
        (!fitting.is_empty()).then(|| Expr::Leaf(*self.rng.pick(&fitting)))
    }

    fn make(&mut self, kind: Kind, depth: u32) -> Expr {
        if depth == 0 || self.rng.chance(8) {
            return if self.rng.chance(22) {
                literal(self.rng, kind)
            } else {
                self.leaf(&|l| l.ty.kind() == kind)
                    .unwrap_or_else(|| literal(self.rng, kind))
            };
        }
        let depth = depth - 1;
        if self.rng.chance(7) {
            let c = self.make(Kind::Bool, depth);
            // An integer operand of a real number becomes real.
            let other = match kind {
                Kind::Real if self.rng.chance(25) => Kind::Int,
                other => other,
            };
            let (a, b) = (self.make(kind, depth), self.make(other, depth));
            return Expr::If(Box::new(c), Box::new(a), Box::new(b));
        }
        match kind {
            Kind::Int => self.int(depth),
            Kind::Real => self.real(depth),
            Kind::Bool => self.truth(depth),
        }
    }

    fn int(&mut self, depth: u32) -> Expr {
        let op = *self.rng.pick(&[
            "+", "-", "*", "/", "mod", "<<", ">>", "&", "|", "^", "+", "-", "&", ">>", "~", "neg",
            "~", "through",
        ]);
        match op {
            "~" => Expr::Unary("~", Box::new(self.make(Kind::Int, depth))),
            "neg" => Expr::Unary("-", Box::new(self.make(Kind::Int, depth))),
            "through" => {
                let f = self.rng.below(self.through.len() as u64) as usize;
                Expr::Through(f, Box::new(self.make(Kind::Int, depth)))
            }
            "/" | "mod" => {
                let a = Box::new(self.make(Kind::Int, depth));
                let divisor = if self.rng.chance(50) {
                    self.leaf(&|l| l.never_zero)
                } else {
                    None
                };
                match divisor {
                    Some(b) => Expr::Binary(op, a, Box::new(b)),
                    None => Expr::Divide(op, a, Box::new(self.make(Kind::Int, depth.min(1)))),
                }
            }
            _ => {
                let (a, b) = (self.make(Kind::Int, depth), self.make(Kind::Int, depth));
                Expr::Binary(op, Box::new(a), Box::new(b))
            }
        }
    }

    fn real(&mut self, depth: u32) -> Expr {
        let op = *self.rng.pick(&["+", "-", "*", "/", "neg"]);
        if op == "neg" {
            return Expr::Unary("-", Box::new(self.make(Kind::Real, depth)));
        }
        let (mut a, mut b) = (self.make(Kind::Real, depth), self.make(Kind::Real, depth));
        match self.rng.below(8) {
            0 => a = self.make(Kind::Int, depth),
            1 => b = self.make(Kind::Int, depth),
            _ => {}
        }
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    fn truth(&mut self, depth: u32) -> Expr {
        let op = *self.rng.pick(&[
            "<", "<=", ">", ">=", "=", "!=", "<", ">", "and", "or", "not", "=b",
        ]);
        let both = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
        match op {
            "not" => Expr::Unary("not", Box::new(self.make(Kind::Bool, depth))),
            "and" | "or" => {
                let (a, b) = (self.make(Kind::Bool, depth), self.make(Kind::Bool, depth));
                both(op, a, b)
            }
            "=b" => {
                let (a, b) = (self.make(Kind::Bool, depth), self.make(Kind::Bool, depth));
                both("=", a, b)
            }
            _ => {
                let kind = |rng: &mut Rng| {
                    if rng.chance(25) {
                        Kind::Real
                    } else {
                        Kind::Int
                    }
                };
                let (k, l) = (kind(self.rng), kind(self.rng));
                let (a, b) = (self.make(k, depth), self.make(l, depth));
                both(op, a, b)
            }
        }
    }
}

/// What the function that stands for an expression gives back.
fn result_type(rng: &mut Rng, kind: Kind) -> String {
    match kind {
        Kind::Bool => Ty::Bool.text(),
        Kind::Real => Ty::Double.text(),
        Kind::Int => int_type(rng).text(),
    }
}

pub fn expressions(seed: u64, count: usize) -> Expressions {
    // Rows of numbers from seeds side by side are the same but for their beginnings.
    let mut rng = Rng::new(Rng::new(seed).next());
    let leaves: Vec<Leaf> = (0..LEAVES)
        .map(|i| {
            let ty = match i {
                0 | 1 => Ty::Bool,
                2 | 3 => Ty::Half,
                4 | 5 => Ty::Float,
                6 => Ty::Double,
                7 => Ty::Int(64),
                8 => Ty::Uint(64),
                9 => Ty::Int(32),
                10 => Ty::Uint(32),
                _ => int_type(&mut rng),
            };
            let never_zero = i > 15 && i % 2 == 0;
            let values = (0..ROWS)
                .map(|_| match ty.kind() {
                    Kind::Bool => rng.pick(&["true", "false"]).to_string(),
                    Kind::Real => real_value(&mut rng, ty),
                    Kind::Int => int_value(&mut rng, ty, !never_zero),
                })
                .collect();
            Leaf {
                ty,
                values,
                never_zero,
            }
        })
        .collect();
    let through: Vec<Ty> = (0..6).map(|_| int_type(&mut rng)).collect();
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = match rng.below(10) {
            0 | 1 => Kind::Bool,
            2 | 3 => Kind::Real,
            _ => Kind::Int,
        };
        let depth = 2 + rng.below(3) as u32;
        let expr = Maker {
            rng: &mut rng,
            leaves: &leaves,
            through: &through,
        }
        .make(kind, depth);
        all.push((expr, result_type(&mut rng, kind)));
    }
    Expressions {
        leaves,
        through,
        all,
        seed,
    }
}

impl Expressions {
    fn name(&self, what: &str) -> String {
        format!("{what}{}", self.seed)
    }

    /// All expressions within one, the smallest first, as a program of their own.
    pub fn parts_of(&self, at: usize) -> Expressions {
        let mut found = vec![self.all[at].0.clone()];
        let mut next = 0;
        while next < found.len() {
            let parts: Vec<Expr> = found[next].parts().into_iter().cloned().collect();
            found.extend(parts);
            next += 1;
        }
        found.reverse();
        let mut rng = Rng::new(self.seed);
        let mut all: Vec<(Expr, String)> = found
            .into_iter()
            .map(|e| {
                let ty = match self.kind(&e) {
                    Kind::Int => Ty::Int(64).text(),
                    kind => result_type(&mut rng, kind),
                };
                (e, ty)
            })
            .collect();
        all.push(self.all[at].clone());
        Expressions {
            leaves: self.leaves.clone(),
            through: self.through.clone(),
            all,
            seed: self.seed,
        }
    }

    fn kind(&self, e: &Expr) -> Kind {
        match e {
            Expr::Leaf(i) => self.leaves[*i].ty.kind(),
            Expr::Literal(_, kind) => *kind,
            Expr::Unary(_, a) => self.kind(a),
            Expr::Through(..) | Expr::Divide(..) => Kind::Int,
            Expr::If(_, a, b) => match (self.kind(a), self.kind(b)) {
                (Kind::Int, Kind::Real) => Kind::Real,
                (kind, _) => kind,
            },
            Expr::Binary(op, a, b) => match *op {
                "<" | "<=" | ">" | ">=" | "=" | "!=" | "and" | "or" => Kind::Bool,
                _ if self.kind(a) == Kind::Real || self.kind(b) == Kind::Real => Kind::Real,
                _ => Kind::Int,
            },
        }
    }

    /// An expression, and its operands in a row, for a message.
    pub fn shown(&self, at: usize, row: usize) -> String {
        let (e, ty) = &self.all[at];
        let mut used = Vec::new();
        e.leaves(&mut used);
        let mut text = format!("{} --> {ty}\n", e.text(&mut |i| format!("x{i}")));
        for i in used {
            let leaf = &self.leaves[i];
            let _ = writeln!(text, "  {} x{i} = {}", leaf.ty.text(), leaf.values[row]);
        }
        for (i, ty) in self.through.iter().enumerate() {
            let _ = writeln!(text, "  through{i}: {}", ty.text());
        }
        text
    }

    /// The functions, and the constants of each row.
    fn declarations(&self, rows: std::ops::Range<usize>) -> String {
        let mut out = String::new();
        for (i, ty) in self.through.iter().enumerate() {
            let ty = ty.text();
            let _ = writeln!(out, "  function through{i}({ty} a) --> {ty} : a end");
        }
        for (i, leaf) in self.leaves.iter().enumerate() {
            for row in rows.clone() {
                let (ty, value) = (leaf.ty.text(), &leaf.values[row]);
                let _ = writeln!(out, "  {ty} c{i}_{row} = {value};");
            }
        }
        for (k, (e, ty)) in self.all.iter().enumerate() {
            let mut used = Vec::new();
            e.leaves(&mut used);
            let params: Vec<String> = used
                .iter()
                .map(|i| format!("{} p{i}", self.leaves[*i].ty.text()))
                .collect();
            let _ = writeln!(
                out,
                "  function f{k}({}) --> {ty} :\n    {}\n  end",
                params.join(", "),
                e.text(&mut |i| format!("p{i}"))
            );
        }
        out
    }

    /// Those that loops compute, too, for the elements of a list, where masks may take the place of
    /// branches.
    fn in_loops(&self) -> Vec<usize> {
        let all = (0..self.all.len()).filter(|k| self.kind(&self.all[*k].0) == Kind::Int);
        all.step_by(6).collect()
    }

    fn call(&self, k: usize, name: Naming) -> String {
        let mut used = Vec::new();
        self.all[k].0.leaves(&mut used);
        let args: Vec<String> = used.into_iter().map(name).collect();
        format!("f{k}({})", args.join(", "))
    }

    /// All of constants. What it prints is known before it runs.
    pub fn folded(&self) -> Program {
        let name = self.name("Folded");
        let mut text = format!(
            "package random;\nactor {name} () ==> :\n  bool done := false;\n{}",
            self.declarations(0..ROWS)
        );
        text += "  action ==>\n  guard\n    not done\n  do\n";
        for row in 0..ROWS {
            for (k, (e, _)) in self.all.iter().enumerate() {
                let name = &mut |i: usize| format!("c{i}_{row}");
                let (folded, call) = (e.text(name), self.call(k, name));
                let _ = writeln!(text, "    println(\"E {k} \" + {folded} + \" \" + {call});");
                if row == 0 {
                    let same = match self.kind(e) {
                        Kind::Real => format!(" + \" \" + ({folded} = {folded})"),
                        _ => String::new(),
                    };
                    let _ = writeln!(text, "    println(\"M {k} \" + {folded}{same});");
                }
            }
        }
        for k in self.in_loops() {
            let call = |j: usize| self.call(k, &mut |i: usize| format!("c{i}_{}", j % ROWS));
            let values: Vec<String> = (0..TURNS).map(call).collect();
            let values = values.join(" + \" \" + ");
            let _ = writeln!(text, "    println(\"V {k} \" + {values});");
        }
        text += "    done := true;\n  end\nend\n";
        Program {
            actors: vec![ActorText { name, text }],
            wires: vec![],
        }
    }

    /// The same of variables; their values come from a channel.
    pub fn computed(&self) -> Program {
        let (source, main) = (self.name("Source"), self.name("Main"));
        let ports = |kind: &str| -> Vec<String> {
            let port = |(i, l): (usize, &Leaf)| match kind {
                "declared" => format!("{} P{i}", l.ty.text()),
                "taken" => format!("P{i}:[t{i}]"),
                _ => format!("P{i}:[l{i}[row]]"),
            };
            self.leaves.iter().enumerate().map(port).collect()
        };
        let declared = ports("declared").join(", ");
        let mut first =
            format!("package random;\nactor {source} () ==> {declared} :\n  int next := 0;\n");
        for (i, leaf) in self.leaves.iter().enumerate() {
            let (ty, values) = (leaf.ty.text(), leaf.values.join(", "));
            let _ = writeln!(first, "  {ty} l{i}[{ROWS}] = [{values}];");
        }
        let _ = writeln!(
            first,
            "  action ==> {}\n  guard\n    next < {ROWS}\n  var\n    int row := next\n  do\n    \
             next := next + 1;\n  end\nend",
            ports("given").join(", ")
        );
        let mut text = format!(
            "package random;\nactor {main} () {declared} ==> :\n  int row := 0;\n{}",
            self.declarations(0..1)
        );
        for (i, leaf) in self.leaves.iter().enumerate() {
            let ty = leaf.ty.text();
            let _ = writeln!(text, "  {ty} v{i};\n  {ty} m{i}[{TURNS}];");
        }
        for k in self.in_loops() {
            let (e, ty) = &self.all[k];
            let element = e.text(&mut |i| format!("m{i}[i]"));
            let shown: Vec<String> = (0..TURNS).map(|j| format!("o[{j}]")).collect();
            let _ = writeln!(
                text,
                "  procedure w{k}()\n  var\n    {ty} o[{TURNS}]\n  begin\n    foreach int i in 0 .. {} \
                 do o[i] := {element}; end\n    println(\"V {k} \" + {});\n  end",
                TURNS - 1,
                shown.join(" + \" \" + ")
            );
        }
        let mut rng = Rng::new(!self.seed);
        for (k, (e, _)) in self.all.iter().enumerate() {
            let variable = &mut |i: usize| format!("v{i}");
            let (all, call) = (e.text(variable), self.call(k, variable));
            let mixed = e.text(&mut |i| {
                if rng.chance(50) {
                    format!("v{i}")
                } else {
                    format!("c{i}_0")
                }
            });
            let same = match self.kind(e) {
                Kind::Real => {
                    let folded = e.text(&mut |i| format!("c{i}_0"));
                    format!(" + \" \" + ({all} = {folded})")
                }
                _ => String::new(),
            };
            let _ = writeln!(
                text,
                "  procedure e{k}()\n  begin\n    println(\"E {k} \" + {all} + \" \" + {call});\n    \
                 if row = 0 then println(\"M {k} \" + {mixed}{same}); end\n  end"
            );
        }
        let _ = writeln!(text, "  action {} ==>\n  do", ports("taken").join(", "));
        for i in 0..self.leaves.len() {
            let _ = writeln!(text, "    v{i} := t{i};");
        }
        for i in 0..self.leaves.len() {
            for j in 0..TURNS / ROWS {
                let _ = writeln!(text, "    m{i}[row + {}] := t{i};", j * ROWS);
            }
        }
        for k in 0..self.all.len() {
            let _ = writeln!(text, "    e{k}();");
        }
        let _ = writeln!(text, "    if row = {} then", ROWS - 1);
        for k in self.in_loops() {
            let _ = writeln!(text, "      w{k}();");
        }
        text += "    end\n    row := row + 1;\n  end\nend\n";
        let wires = (0..self.leaves.len())
            .map(|i| Wire {
                from: (0, i),
                to: vec![(1, i)],
                capacity: None,
            })
            .collect();
        let (first, text) = (
            ActorText {
                name: source,
                text: first,
            },
            ActorText { name: main, text },
        );
        Program {
            actors: vec![first, text],
            wires,
        }
    }
}
