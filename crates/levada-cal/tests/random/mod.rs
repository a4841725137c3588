// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random CAL programs, as source text, well-typed and deterministic by construction.
//!
//! They are deterministic since the choice of an action never depends on which elements have arrived: in each state
//! either all actions consume the same elements, or their guards depend only on the state and exclude each other. So
//! the output does not depend on scheduling.

pub mod expressions;
mod features;
pub mod shrink;
mod text;

use std::fmt::Write;

/// SplitMix64: small, and the same everywhere.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ty {
    Bool,
    Int(u8),
    Uint(u8),
    Text,
}

impl Ty {
    fn text(self) -> String {
        match self {
            Ty::Bool => "bool".into(),
            Ty::Text => "String".into(),
            Ty::Int(32) => "int".into(),
            Ty::Uint(32) => "uint".into(),
            Ty::Int(n) => format!("int(size={n})"),
            Ty::Uint(n) => format!("uint(size={n})"),
        }
    }
}

#[derive(Clone)]
struct Var {
    name: String,
    ty: Ty,
    /// A list with this number of elements.
    len: Option<u64>,
    writable: bool,
    /// Known to be at most this, from a loop.
    at_most: Option<u64>,
}

pub struct Port {
    pub name: String,
    pub ty: Ty,
}

#[derive(Clone)]
pub struct ActorText {
    pub name: String,
    pub text: String,
}

#[derive(Clone)]
pub struct Wire {
    pub from: (usize, usize),
    pub to: Vec<(usize, usize)>,
    pub capacity: Option<u32>,
}

#[derive(Clone)]
pub struct Program {
    pub actors: Vec<ActorText>,
    pub wires: Vec<Wire>,
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        for a in &self.actors {
            writeln!(f, "{}", a.text)?;
        }
        for w in &self.wires {
            let name = |e: &(usize, usize)| format!("{}.{}", self.actors[e.0].name, e.1);
            let to: Vec<String> = w.to.iter().map(name).collect();
            writeln!(f, "{} -> {}, {:?}", name(&w.from), to.join(" "), w.capacity)?;
        }
        Ok(())
    }
}

pub fn program(seed: u64) -> Program {
    Maker {
        rng: Rng::new(seed),
        names: 0,
        vars: vec![],
        functions: vec![],
        procedures: vec![],
        grid: None,
        float: None,
        loops: 0,
        unsafe_index: false,
        features: features::Features::default(),
        actor: String::new(),
        light: false,
    }
    .network()
}

/// A way an action meets one port: the pattern's variables, and the repeat if it has one.
#[derive(Clone)]
struct Pattern {
    port: usize,
    vars: usize,
    repeat: Option<u64>,
}

struct Maker {
    rng: Rng,
    names: u32,
    /// What is in scope.
    vars: Vec<Var>,
    /// Name, parameters, result.
    functions: Vec<(String, Vec<Ty>, Ty)>,
    /// Name, length of the list it is given.
    procedures: Vec<(String, u64)>,
    loops: u32,
    /// A two-dimensional list with its dimensions, and a float, if the actor has them.
    grid: Option<(String, u64, u64)>,
    float: Option<String>,
    /// Now and then an index or a divisor that may be wrong.
    unsafe_index: bool,
    features: features::Features,
    /// The actor's name, with which all that it prints begins.
    actor: String,
    /// Only little is to be done.
    light: bool,
}

impl Maker {
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn int_type(&mut self) -> Ty {
        let sizes = [
            1, 3, 7, 8, 9, 12, 16, 17, 24, 31, 32, 32, 32, 33, 48, 63, 64,
        ];
        let n = *self.rng.pick(&sizes);
        // One bit with a sign holds only 0 and -1; two are less odd.
        if self.rng.chance(55) {
            Ty::Int(n.max(2))
        } else {
            Ty::Uint(n)
        }
    }

    fn any_type(&mut self) -> Ty {
        if self.rng.chance(8) {
            Ty::Bool
        } else {
            self.int_type()
        }
    }

    /// State variables, functions and procedures.
    fn declarations(&mut self, out: &mut String) {
        let _ = writeln!(out, "  int wa;\n  int wb;");
        for _ in 0..1 + self.rng.below(4) {
            let (name, ty) = (self.name("s"), self.any_type());
            let writable = !self.rng.chance(20);
            let (assign, init) = match self.rng.below(3) {
                0 if writable => ("", String::new()),
                _ if ty == Ty::Bool => (if writable { " := " } else { " = " }, "true".into()),
                _ => {
                    let n = if let Ty::Int(b) | Ty::Uint(b) = ty {
                        b.min(20)
                    } else {
                        1
                    };
                    let v = self.rng.below(1 << (n - 1).min(16));
                    (if writable { " := " } else { " = " }, v.to_string())
                }
            };
            let _ = writeln!(out, "  {} {name}{assign}{init};", ty.text());
            self.vars.push(Var {
                name,
                ty,
                len: None,
                writable,
                at_most: None,
            });
        }
        for _ in 0..self.rng.below(3) {
            let (name, ty) = (self.name("l"), self.int_type());
            let len = *self.rng.pick(&[1u64, 2, 4, 5, 8, 16]);
            let (init, writable) = match self.rng.below(4) {
                0 => (String::new(), true),
                1 => {
                    let i = self.name("g");
                    (
                        format!(" := [ ({i} * {i}) & 63 : for int {i} in 0 .. {} ]", len - 1),
                        true,
                    )
                }
                n => {
                    let items: Vec<String> =
                        (0..len).map(|_| self.rng.below(2).to_string()).collect();
                    (
                        format!(
                            " {} [{}]",
                            if n == 2 { ":=" } else { "=" },
                            items.join(", ")
                        ),
                        n == 2,
                    )
                }
            };
            let _ = writeln!(out, "  List(type: {}, size={len}) {name}{init};", ty.text());
            self.vars.push(Var {
                name,
                ty,
                len: Some(len),
                writable,
                at_most: None,
            });
        }
        if self.rng.chance(30) {
            let (name, ty) = (self.name("m"), self.int_type());
            let size = |rng: &mut Rng| 1 << rng.below(4);
            let (rows, columns) = (size(&mut self.rng), size(&mut self.rng));
            let _ = writeln!(
                out,
                "  List(type: List(type: {}, size={columns}), size={rows}) {name};",
                ty.text()
            );
            self.grid = Some((name, rows, columns));
        }
        if self.rng.chance(20) {
            let name = self.name("r");
            let ty = *self.rng.pick(&["float", "double"]);
            let _ = writeln!(out, "  {ty} {name} := 1.5;");
            self.float = Some(name);
        }
        self.features(out);
        if self.rng.chance(40) {
            let (name, ty) = (self.name("f"), self.int_type());
            let params: Vec<Ty> = (0..1 + self.rng.below(2))
                .map(|_| self.int_type())
                .collect();
            let outer = self.vars.clone();
            self.vars.retain(|v| !v.writable);
            let mut list = Vec::new();
            for t in &params {
                let p = self.name("p");
                list.push(format!("{} {p}", t.text()));
                self.vars.push(Var {
                    name: p,
                    ty: *t,
                    len: None,
                    writable: false,
                    at_most: None,
                });
            }
            let e = self.int(3);
            let _ = writeln!(
                out,
                "  function {name}({}) --> {} : {e} end",
                list.join(", "),
                ty.text()
            );
            self.vars = outer;
            self.functions.push((name, params, ty));
        }
        if self.rng.chance(30) {
            let (name, list, v) = (self.name("q"), self.name("l"), self.name("p"));
            let state = self.name("l");
            let _ = writeln!(out, "  List(type: int(size=16), size=8) {state};");
            let _ = writeln!(
                out,
                "  procedure {name}(List(type: int(size=16), size=8) {list}, int {v})"
            );
            let _ = writeln!(out, "  begin");
            let outer = self.vars.clone();
            self.vars.push(Var {
                name: list,
                ty: Ty::Int(16),
                len: Some(8),
                writable: true,
                at_most: None,
            });
            self.vars.push(Var {
                name: v,
                ty: Ty::Int(32),
                len: None,
                writable: false,
                at_most: None,
            });
            self.stmts(out, 2, 4);
            self.vars = outer;
            let _ = writeln!(out, "  end");
            self.vars.push(Var {
                name: state,
                ty: Ty::Int(16),
                len: Some(8),
                writable: true,
                at_most: None,
            });
            self.procedures.push((name, 8));
        }
    }

    fn pattern(&mut self, port: usize) -> Pattern {
        match self.rng.below(5) {
            0 | 1 => Pattern {
                port,
                vars: 1,
                repeat: None,
            },
            2 => Pattern {
                port,
                vars: 1 + self.rng.below(4) as usize,
                repeat: None,
            },
            3 => Pattern {
                port,
                vars: 1,
                repeat: Some(1 + self.rng.below(8)),
            },
            _ => Pattern {
                port,
                vars: 1 + self.rng.below(3) as usize,
                repeat: Some(1 + self.rng.below(4)),
            },
        }
    }

    /// One action. `guard` is text, or made when `Some(true)` is in `choose`.
    #[allow(clippy::too_many_arguments)]
    fn action(
        &mut self,
        out: &mut String,
        tag: &str,
        inputs: &[Port],
        outputs: &[Port],
        takes: &[Pattern],
        gives: &[Pattern],
        guard: Option<String>,
        choose: bool,
        after: &str,
    ) {
        let scope = self.vars.len();
        let mut heads = Vec::new();
        for p in takes {
            let names: Vec<String> = (0..p.vars).map(|_| self.name("x")).collect();
            for n in &names {
                self.vars.push(Var {
                    name: n.clone(),
                    ty: inputs[p.port].ty,
                    len: p.repeat,
                    writable: false,
                    at_most: None,
                });
            }
            let repeat = p.repeat.map_or(String::new(), |r| format!(" repeat {r}"));
            heads.push(format!(
                "{}:[{}]{repeat}",
                inputs[p.port].name,
                names.join(", ")
            ));
        }
        let mut guards: Vec<String> = guard.into_iter().collect();
        if choose {
            let depth = if self.light { 1 } else { 2 };
            guards.push(self.bool(depth));
        }
        // Locals: some plain, and the lists that leave.
        let mut locals = Vec::new();
        let mut leaving = Vec::new();
        for p in gives {
            for _ in 0..p.vars {
                if let Some(r) = p.repeat {
                    let (name, ty) = (self.name("o"), outputs[p.port].ty);
                    locals.push(format!("List(type: {}, size={r}) {name}", ty.text()));
                    leaving.push((name, ty, r));
                }
            }
        }
        let mut later = Vec::new();
        for _ in 0..self.rng.below(if self.light { 2 } else { 3 }) {
            let (name, ty) = (self.name("v"), self.int_type());
            let init = if self.rng.chance(60) {
                format!(" := {}", self.int(2))
            } else {
                String::new()
            };
            locals.push(format!("{} {name}{init}", ty.text()));
            later.push(Var {
                name,
                ty,
                len: None,
                writable: true,
                at_most: None,
            });
        }
        self.vars.extend(later);
        for (name, ty, r) in &leaving {
            self.vars.push(Var {
                name: name.clone(),
                ty: *ty,
                len: Some(*r),
                writable: true,
                at_most: None,
            });
        }
        let mut body = String::new();
        for (name, ty, r) in &leaving {
            if self.rng.chance(80) {
                let i = self.name("i");
                let at = self.vars.len();
                let _ = writeln!(body, "    foreach int {i} in 0 .. {} do", r - 1);
                self.vars.push(Var {
                    name: i.clone(),
                    ty: Ty::Int(32),
                    len: None,
                    writable: false,
                    at_most: Some(r - 1),
                });
                let e = self.value(*ty, if self.light { 1 } else { 3 });
                self.vars.truncate(at);
                let _ = writeln!(body, "      {name}[{i}] := {e};");
                let _ = writeln!(body, "    end");
            }
        }
        if !self.light {
            self.stmts(&mut body, 2, 4);
        } else if self.rng.chance(60) {
            self.stmt(&mut body, 0, 4);
        }
        body += after;
        let mut tails = Vec::new();
        let mut lists = leaving.iter();
        for p in gives {
            let values: Vec<String> = (0..p.vars)
                .map(|_| match p.repeat {
                    Some(_) => lists.next().map(|l| l.0.clone()).unwrap_or_default(),
                    None => self.value(outputs[p.port].ty, if self.light { 1 } else { 2 }),
                })
                .collect();
            let repeat = p.repeat.map_or(String::new(), |r| format!(" repeat {r}"));
            tails.push(format!(
                "{}:[{}]{repeat}",
                outputs[p.port].name,
                values.join(", ")
            ));
        }
        self.vars.truncate(scope);
        let _ = writeln!(
            out,
            "  {tag}: action {} ==> {}",
            heads.join(", "),
            tails.join(", ")
        );
        if !guards.is_empty() {
            let _ = writeln!(out, "  guard {}", guards.join(", "));
        }
        if !locals.is_empty() {
            let _ = writeln!(out, "  var {}", locals.join(", "));
        }
        let _ = writeln!(out, "  do\n{body}  end\n");
    }

    fn some_patterns(&mut self, ports: usize, all: bool) -> Vec<Pattern> {
        let mut list = Vec::new();
        for p in 0..ports {
            if all || self.rng.chance(75) {
                list.push(self.pattern(p));
            }
        }
        list
    }

    fn begin(&mut self, name: &str, inputs: &[Port], outputs: &[Port]) -> String {
        self.vars.clear();
        self.functions.clear();
        self.grid = None;
        self.float = None;
        self.procedures.clear();
        self.features = features::Features::default();
        self.actor = name.to_string();
        let ports = |list: &[Port]| -> String {
            let each: Vec<String> = list
                .iter()
                .map(|p| format!("{} {}", p.ty.text(), p.name))
                .collect();
            each.join(", ")
        };
        format!(
            "package random;\n\nactor {name} () {} ==> {} :\n\n",
            ports(inputs),
            ports(outputs)
        )
    }

    fn middle(&mut self, name: &str, inputs: &[Port], outputs: &[Port]) -> String {
        let mut out = self.begin(name, inputs, outputs);
        self.declarations(&mut out);
        if self.rng.chance(20) && !outputs.is_empty() {
            let p = &outputs[0];
            let e = self.value(p.ty, 2);
            let _ = writeln!(out, "  initialize ==> {}:[{e}] end\n", p.name);
        }
        match self.rng.below(5) {
            0 | 1 => {
                let takes = self.some_patterns(inputs.len(), true);
                let gives = self.some_patterns(outputs.len(), true);
                self.action(
                    &mut out, "work", inputs, outputs, &takes, &gives, None, false, "",
                );
            }
            2 => {
                let takes = self.some_patterns(inputs.len(), true);
                self.choice(&mut out, "c", inputs, outputs, &takes);
            }
            3 => {
                // Modes: guards on a state variable exclude each other.
                let modes = 2 + self.rng.below(2);
                let _ = writeln!(out, "  uint(size=4) mode := 0;\n");
                for m in 0..modes {
                    let takes = self.some_patterns(inputs.len(), m == 0);
                    let gives = self.some_patterns(outputs.len(), false);
                    let after = format!("    mode := {};\n", (m + 1) % modes);
                    let guard = Some(format!("mode = {m}"));
                    let tag = format!("m{m}");
                    self.action(
                        &mut out, &tag, inputs, outputs, &takes, &gives, guard, false, &after,
                    );
                }
            }
            _ => {
                let states = 2 + self.rng.below(2);
                let mut moves = String::new();
                let mut order = String::new();
                for s in 0..states {
                    let takes = self.some_patterns(inputs.len(), s == 0);
                    let tag = format!("t{s}");
                    if takes.is_empty() || self.rng.chance(50) {
                        let gives = self.some_patterns(outputs.len(), false);
                        self.action(
                            &mut out, &tag, inputs, outputs, &takes, &gives, None, false, "",
                        );
                        let _ = writeln!(moves, "    z{s} ({tag}) --> z{};", (s + 1) % states);
                    } else {
                        let n = self.choices(&mut out, &tag, inputs, outputs, &takes);
                        for k in 0..n {
                            let to = if k == 0 {
                                (s + 1) % states
                            } else {
                                self.rng.below(states)
                            };
                            let _ = writeln!(moves, "    z{s} ({tag}.a{k}) --> z{to};");
                        }
                        let chain: Vec<String> = (0..n).map(|k| format!("{tag}.a{k}")).collect();
                        let _ = writeln!(order, "    {};", chain.join(" > "));
                    }
                }
                let _ = writeln!(out, "  schedule fsm z0 :\n{moves}  end\n");
                if !order.is_empty() {
                    let _ = writeln!(out, "  priority\n{order}  end\n");
                }
            }
        }
        out + "end\n"
    }

    fn choices(
        &mut self,
        out: &mut String,
        tag: &str,
        inputs: &[Port],
        outputs: &[Port],
        takes: &[Pattern],
    ) -> u64 {
        let n = 2 + self.rng.below(3);
        for k in 0..n {
            let gives = self.some_patterns(outputs.len(), false);
            let name = format!("{tag}.a{k}");
            self.action(
                out,
                &name,
                inputs,
                outputs,
                takes,
                &gives,
                None,
                k + 1 < n,
                "",
            );
        }
        n
    }

    fn choice(
        &mut self,
        out: &mut String,
        tag: &str,
        inputs: &[Port],
        outputs: &[Port],
        takes: &[Pattern],
    ) {
        let n = self.choices(out, tag, inputs, outputs, takes);
        let chain: Vec<String> = (0..n).map(|k| format!("{tag}.a{k}")).collect();
        let _ = writeln!(out, "  priority {}; end\n", chain.join(" > "));
    }

    fn source(&mut self, name: &str, outputs: &[Port]) -> String {
        let mut out = self.begin(name, &[], outputs);
        let n = 10 + self.rng.below(120);
        let _ = writeln!(out, "  int count := 0;\n");
        self.declarations(&mut out);
        self.vars.push(Var {
            name: "count".into(),
            ty: Ty::Int(32),
            len: None,
            writable: false,
            at_most: None,
        });
        let gives = self.some_patterns(outputs.len(), true);
        let (guard, after) = (Some(format!("count < {n}")), "    count := count + 1;\n");
        self.action(
            &mut out,
            "emit",
            &[],
            outputs,
            &[],
            &gives,
            guard,
            false,
            after,
        );
        out + "end\n"
    }

    fn sink(&mut self, name: &str, input: &Port) -> String {
        let mut out = self.begin(name, &[], &[]);
        let _ = write!(out, "");
        out.clear();
        let _ = writeln!(
            out,
            "package random;\n\nactor {name} () {} {} ==> :\n",
            input.ty.text(),
            input.name
        );
        let _ = writeln!(
            out,
            "  take: action {}:[x] ==>\n  do\n    println(\"{name} \" + x);\n  end\n\nend",
            input.name
        );
        out
    }

    /// The delay that makes a feedback loop go: it begins with some elements of its own.
    fn delay(&mut self, name: &str, ty: Ty, n: u64) -> String {
        let zero = if ty == Ty::Bool { "false" } else { "0" };
        let first = vec![zero; n as usize].join(", ");
        format!(
            "package random;\n\nactor {name} () {0} X ==> {0} Y :\n\n  initialize ==> Y:[{first}] \
             end\n\n  pass: action X:[x] ==> Y:[x] end\n\nend\n",
            ty.text()
        )
    }

    fn network(&mut self) -> Program {
        self.unsafe_index = self.rng.chance(10);
        let mut actors: Vec<ActorText> = Vec::new();
        let mut wires: Vec<Wire> = Vec::new();
        // Outputs that may be connected: actor, port, type.
        let mut open: Vec<(usize, usize, Ty)> = Vec::new();
        for _ in 0..1 + self.rng.below(2) {
            let name = format!("A{}", actors.len());
            let outputs = self.ports("Y", 2);
            let text = self.source(&name, &outputs);
            open.extend(
                outputs
                    .iter()
                    .enumerate()
                    .map(|(p, o)| (actors.len(), p, o.ty)),
            );
            actors.push(ActorText { name, text });
        }
        for _ in 0..1 + self.rng.below(4) {
            let me = actors.len();
            let name = format!("A{me}");
            if self.rng.chance(50) {
                self.chain(&mut actors, &mut wires, &mut open);
                continue;
            }
            if self.rng.chance(12) {
                let (a, p, ty) = *self.rng.pick(&open);
                let name_of = "X0".to_string();
                let text = self.namer(&name, &Port { name: name_of, ty });
                connect(&mut wires, (a, p), (me, 0));
                open.push((me, 0, Ty::Text));
                actors.push(ActorText { name, text });
                continue;
            }
            let numbers: Vec<(usize, usize, Ty)> =
                open.iter().filter(|o| o.2 != Ty::Text).copied().collect();
            let mut inputs = Vec::new();
            let wanted = 1 + self.rng.below(2) as usize;
            for _ in 0..wanted {
                let (a, p, ty) = *self.rng.pick(&numbers);
                connect(&mut wires, (a, p), (me, inputs.len()));
                inputs.push(Port {
                    name: format!("X{}", inputs.len()),
                    ty,
                });
            }
            if self.rng.chance(20) {
                // A loop: this actor, then a delay that leads back to it.
                let (ty, n) = (self.any_type(), 1 + self.rng.below(3));
                let mut outputs = self.ports("Y", 1);
                inputs.push(Port {
                    name: "F".into(),
                    ty,
                });
                outputs.push(Port {
                    name: "B".into(),
                    ty,
                });
                let mut text = self.begin(&name, &inputs, &outputs);
                self.declarations(&mut text);
                let takes: Vec<Pattern> = (0..inputs.len())
                    .map(|p| {
                        let n = if inputs[p].name == "F" { n as usize } else { 1 };
                        Pattern {
                            port: p,
                            vars: n,
                            repeat: None,
                        }
                    })
                    .collect();
                let gives = vec![
                    Pattern {
                        port: 0,
                        vars: 1,
                        repeat: None,
                    },
                    Pattern {
                        port: 1,
                        vars: n as usize,
                        repeat: None,
                    },
                ];
                self.action(
                    &mut text, "turn", &inputs, &outputs, &takes, &gives, None, false, "",
                );
                text += "end\n";
                let delay = format!("A{}", me + 1);
                connect(&mut wires, (me, 1), (me + 1, 0));
                connect(&mut wires, (me + 1, 0), (me, inputs.len() - 1));
                open.push((me, 0, outputs[0].ty));
                actors.push(ActorText { name, text });
                let text = self.delay(&delay, ty, n);
                actors.push(ActorText { name: delay, text });
                continue;
            }
            let outputs = self.ports("Y", 2);
            let text = self.middle(&name, &inputs, &outputs);
            open.extend(outputs.iter().enumerate().map(|(p, o)| (me, p, o.ty)));
            actors.push(ActorText { name, text });
        }
        for (a, p, ty) in open {
            if wires.iter().any(|w| w.from == (a, p)) && self.rng.chance(60) {
                continue;
            }
            let me = actors.len();
            let name = format!("A{me}");
            let text = self.sink(
                &name,
                &Port {
                    name: "X".into(),
                    ty,
                },
            );
            connect(&mut wires, (a, p), (me, 0));
            actors.push(ActorText { name, text });
        }
        for w in &mut wires {
            w.capacity = match self.rng.below(4) {
                0 => None,
                1 => Some(1 + self.rng.below(16) as u32),
                2 => Some(1 + self.rng.below(100) as u32),
                _ => Some(1 << self.rng.below(12)),
            };
        }
        Program { actors, wires }
    }

    /// A few small actors in a row.
    fn chain(
        &mut self,
        actors: &mut Vec<ActorText>,
        wires: &mut Vec<Wire>,
        open: &mut Vec<(usize, usize, Ty)>,
    ) {
        let numbers: Vec<(usize, usize, Ty)> =
            open.iter().filter(|o| o.2 != Ty::Text).copied().collect();
        // From an unconnected output, if there is one: its actor may extend the chain.
        let free = |o: &&(usize, usize, Ty)| !wires.iter().any(|w| w.from == (o.0, o.1));
        let mut from = *numbers
            .iter()
            .find(free)
            .unwrap_or_else(|| self.rng.pick(&numbers));
        for _ in 0..1 + self.rng.below(4) {
            let me = actors.len();
            let name = format!("A{me}");
            let ty = self.any_type();
            let port = |name: &str, ty| Port {
                name: name.to_string(),
                ty,
            };
            let text = self.small(&name, &port("X0", from.2), &port("Y0", ty));
            connect(wires, (from.0, from.1), (me, 0));
            from = (me, 0, ty);
            actors.push(ActorText { name, text });
        }
        open.push(from);
    }

    fn ports(&mut self, prefix: &str, most: u64) -> Vec<Port> {
        (0..1 + self.rng.below(most))
            .map(|i| Port {
                name: format!("{prefix}{i}"),
                ty: self.any_type(),
            })
            .collect()
    }
}

fn connect(wires: &mut Vec<Wire>, from: (usize, usize), to: (usize, usize)) {
    match wires.iter_mut().find(|w| w.from == from) {
        Some(w) => w.to.push(to),
        None => wires.push(Wire {
            from,
            to: vec![to],
            capacity: None,
        }),
    }
}
