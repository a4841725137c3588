// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random C programs with forks, whose result does not depend on who runs what: functions use their
//! arguments and locals alone, numbers are unsigned, and no expression reads what another part of it
//! writes.

use std::fmt::Write;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next(n) == 0
    }
}

const FUNCTIONS: u64 = 5;
const VARIABLES: u64 = 4;

struct Program {
    random: Random,
    text: String,
    indent: usize,
    /// Forks that this function may still have: the calls multiply.
    forks: u32,
    /// Variables of blocks in this function so far.
    fresh: u32,
    /// How many loops and switches are around, and forks.
    loops: u32,
    switches: u32,
}

/// A whole program.
pub fn program(seed: u64) -> String {
    let mut p = Program {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        text: String::new(),
        indent: 0,
        forks: 0,
        fresh: 0,
        loops: 0,
        switches: 0,
    };
    p.line("#include <stdio.h>");
    p.line("typedef unsigned long word;");
    p.line("struct pair { word a; unsigned char b; };");
    p.line("struct wide { word a[9]; };");
    for f in 0..FUNCTIONS {
        p.line(&format!("static word f{f}(unsigned n, word x);"));
    }
    p.line("static struct pair twin(unsigned n, struct pair p) {");
    p.line("  return (struct pair){f0(n, p.a), (unsigned char)(p.b + n)};");
    p.line("}");
    p.line("static struct wide spread(unsigned n, struct wide w, const word *more) {");
    p.line("  w.a[n % 9] += f1(n, w.a[0]) + *more;");
    p.line("  return w;");
    p.line("}");
    p.line("static void put(unsigned n, word *to, word x) { *to = f2(n, x); }");
    p.line("static word (*const table[])(unsigned, word) = {f0, f1, f2, f3, f4};");
    for f in 0..FUNCTIONS {
        p.function(f);
    }
    p.line("int main(void) {");
    for f in 0..FUNCTIONS {
        let x = p.random.next(1000);
        p.line(&format!("  printf(\"%lu\\n\", f{f}(4, {x}));"));
    }
    p.line("  return 0;");
    p.line("}");
    p.text
}

impl Program {
    fn line(&mut self, words: &str) {
        let indent = self.indent * 2;
        writeln!(self.text, "{:indent$}{words}", "").unwrap();
    }

    fn function(&mut self, f: u64) {
        self.forks = 4;
        self.fresh = 0;
        self.line(&format!("static word f{f}(unsigned n, word x) {{"));
        self.indent += 1;
        let c = self.random.next(100);
        self.line(&format!("if (n == 0) return x * 3 + {c};"));
        self.line("word v0 = x, v1 = n, v2 = 7, v3 = x ^ 5, arr[4] = {x, 1, 2, 3};");
        self.line("struct pair pr = {x, 1}, *pp = &pr;");
        self.line("struct wide wd = {{x, n}};");
        for _ in 0..5 {
            self.statement(3);
        }
        self.line("goto end;");
        self.line("end:");
        self.line(
            "return v0 + 3 * v1 + 5 * v2 + 7 * v3 + arr[0] + arr[n % 4] + pp->a + pr.b + wd.a[3];",
        );
        self.indent -= 1;
        self.line("}");
    }

    fn variable(&mut self) -> String {
        format!("v{}", self.random.next(VARIABLES))
    }

    /// Without effects.
    fn value(&mut self, depth: u32) -> String {
        match self.random.next(if depth == 0 { 3 } else { 6 }) {
            0 => self.random.next(50).to_string(),
            1 => self.variable(),
            2 => ["x", "arr[n % 4]", "pr.a", "(word)pp->b", "wd.a[2]"]
                [self.random.next(5) as usize]
                .into(),
            3 => format!("({} + {})", self.value(depth - 1), self.value(depth - 1)),
            4 => format!("({} * {})", self.value(depth - 1), self.value(depth - 1)),
            _ => format!(
                "({} ^ ({} >> 3))",
                self.value(depth - 1),
                self.value(depth - 1)
            ),
        }
    }

    /// A call that can be forked.
    fn call(&mut self) -> String {
        let value = self.value(2);
        let f = self.random.next(FUNCTIONS);
        match self.random.next(4) {
            0 => format!("table[{f}](n - 1, {value})"),
            1 => format!("(*table[{f}])(n - 1, {value})"),
            _ => format!("f{f}(n - 1, {value})"),
        }
    }

    fn statement(&mut self, depth: u32) {
        let choice = self.random.next(12);
        match choice {
            0..=6 if self.forks > 0 => self.fork(depth),
            7 if depth > 0 => {
                let value = self.value(1);
                self.line(&format!("if ({value} & 1) {{"));
                self.block(depth - 1);
                self.line("} else {");
                self.block(depth - 1);
                self.line("}");
            }
            8 if depth > 0 => {
                self.fresh += 1;
                let i = format!("i{}", self.fresh);
                self.line(&format!("for (int {i} = 0; {i} < 2; {i}++) {{"));
                self.loops += 1;
                let outside = std::mem::take(&mut self.switches);
                self.block(depth - 1);
                self.switches = outside;
                self.loops -= 1;
                self.line("}");
            }
            9 if depth > 0 => {
                let value = self.value(1);
                self.line(&format!("switch ({value} % 3) {{"));
                self.switches += 1;
                for case in ["case 0:;", "case 1:;", "default:;"] {
                    self.line(case);
                    self.block(depth - 1);
                    if self.random.one_in(2) {
                        self.line("  break;");
                    }
                }
                self.switches -= 1;
                self.line("}");
            }
            _ => {
                let (to, value) = (self.variable(), self.value(2));
                let op = ["=", "+=", "^=", "-="][self.random.next(4) as usize];
                self.line(&format!("{to} {op} {value};"));
            }
        }
    }

    fn block(&mut self, depth: u32) {
        self.indent += 1;
        for _ in 0..=self.random.next(2) {
            self.statement(depth);
        }
        self.indent -= 1;
    }

    /// The block of a fork, from its brace; with a jump out of it now and then.
    fn forked(&mut self, depth: u32, may_leave: bool) {
        self.indent += 1;
        for _ in 0..self.random.next(3) {
            if depth > 0 {
                self.statement(depth - 1);
            }
        }
        if may_leave && self.random.one_in(3) {
            let value = self.value(1);
            let jump = match self.random.next(4) {
                0 if self.loops > 0 => "continue;".to_string(),
                1 if self.loops > 0 || self.switches > 0 => "break;".to_string(),
                2 => "goto end;".to_string(),
                _ => format!("return {};", self.value(2)),
            };
            self.line(&format!("if ({value} % 5 == 1) {jump}"));
        }
        self.indent -= 1;
    }

    fn fork(&mut self, depth: u32) {
        self.forks -= 1;
        let end = if self.random.one_in(2) { "}" } else { "};" };
        let call = self.call();
        match self.random.next(11) {
            0 => {
                let to = self.variable();
                let op = ["=", "+=", "*=", "^="][self.random.next(4) as usize];
                self.line(&format!("{to} {op} {call} !! {{"));
                self.forked(depth, true);
            }
            1 => {
                self.fresh += 1;
                let name = format!("w{}", self.fresh);
                self.line("{");
                self.line(&format!("word {name} = {call} !! {{"));
                self.forked(depth, true);
                self.line(end);
                let to = self.variable();
                self.line(&format!("{to} += {name};"));
                return self.line("}");
            }
            2 => {
                self.line(&format!("arr[v1++ % 4] += {call} !! {{"));
                self.forked(depth, true);
            }
            3 => {
                self.line(&format!("(&pr)->b = (unsigned char){call} !! {{"));
                self.forked(depth, false);
                return self.line("};");
            }
            4 => {
                let value = self.value(1);
                self.line(&format!("if ({value} % 7 == 2) return {call} !! {{"));
                self.forked(depth, true);
            }
            5 => {
                // An operand; its block changes nothing that the expression reads.
                self.fresh += 1;
                let (k, to) = (format!("k{}", self.fresh), self.variable());
                let (value, inner) = (self.value(1), self.value(1));
                self.line(&format!("word {k} = 0;"));
                self.line(&format!(
                    "{to} = {value} + ({call} !! {{ {k} = {inner}; }}) * 3;"
                ));
                let other = self.variable();
                return self.line(&format!("{other} ^= {k};"));
            }
            6 => {
                let value = self.value(1);
                self.line(&format!("put(n - 1, &arr[2], {value}) !! {{"));
                // It must not touch the array; a jump and a sum do not.
                self.line("  v2 += 3;");
                if self.loops > 0 {
                    self.line("  if (v2 % 4 == 0) continue;");
                }
            }
            7 => {
                let value = self.value(1);
                self.line(&format!(
                    "pr = twin(n - 1, (struct pair){{{value}, 3}}) !! {{"
                ));
                self.forked(depth, true);
            }
            8 => {
                self.line("wd = spread(n - 1, wd, &(const word){n}) !! {");
                self.forked(depth, true);
            }
            9 => {
                let to = self.variable();
                self.line(&format!("if (v0 & 1) {to} = {call} !! {{"));
                self.forked(depth, true);
                self.line("} else");
                return self.line("  v3 += 1;");
            }
            _ => {
                self.line(&format!("{call} !! {{"));
                self.forked(depth, true);
            }
        }
        self.line(end);
    }
}
