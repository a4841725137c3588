// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random C programs with forks and a result that does not depend on scheduling: functions use only their arguments
//! and locals, and numbers are unsigned. Blocks shadow the names of functions and types, and expressions read what the
//! blocks in them write; both mean the same in serial C.

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
    /// What the blocks around declare over names of the file.
    hides: Vec<String>,
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
        hides: Vec::new(),
    };
    p.line("#include <stdio.h>");
    p.line("typedef unsigned long word;");
    p.line("struct pair { word a; unsigned char b; };");
    p.line("struct wide { word a[9]; };");
    p.line("typedef enum { SMALL = 3, FAR = 0x100000000LL } far;");
    p.line("enum near { NEAR = 40, NEARER };");
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
    p.line("static enum near step(enum near x, far y) { return x == NEAR && y ? NEARER : NEAR; }");
    p.line("static word total(unsigned n, ...) {");
    p.line("  __builtin_va_list list;");
    p.line("  __builtin_va_start(list, n);");
    p.line("  word s = n + __builtin_va_arg(list, long);");
    p.line("  s += __builtin_va_arg(list, int);");
    p.line("  s ^= (word)__builtin_va_arg(list, double);");
    p.line("  s += __builtin_va_arg(list, struct pair).a;");
    p.line("  __builtin_va_end(list);");
    p.line("  return s;");
    p.line("}");
    p.line("static word three(word a, word b, word c) { return a + 3 * b + 7 * c; }");
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
        self.line("struct pair pr = {x, 1}, *pp = &pr, prs[3] = {{x, 2}}, *qp = prs + 1;");
        self.line("word *pa = arr;");
        self.line("far fr = x & 1 ? FAR : SMALL;");
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
        if self.random.one_in(3) {
            self.hide();
        }
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
                3 if self.random.one_in(3) => {
                    let counted = self.variable();
                    format!("return {counted}++, {};", self.value(2))
                }
                _ => format!("return {};", self.value(2)),
            };
            self.line(&format!("if ({value} % 5 == 1) {jump}"));
        }
        self.indent -= 1;
    }

    /// Names of the file that mean something else from here on, in this block.
    fn hide(&mut self) {
        let k = self.random.next(FUNCTIONS);
        let other = (k + 1 + self.random.next(FUNCTIONS - 1)) % FUNCTIONS;
        let hidden = match self.random.next(10) {
            0 => "int twin = 1, spread = 2;".to_string(),
            1 => "enum { put, three, total };".into(),
            2 => "typedef char step;".into(),
            3 => "struct pair { char c; } hidden = {1};".into(),
            4 => "struct wide { int w; };".into(),
            5 => "enum near { OTHER };".into(),
            6 | 7 => "typedef unsigned char word;".into(),
            // What the block calls by this name is another function; what leaves it is not.
            _ => format!("unsigned long (*const f{k})(unsigned, unsigned long) = f{other};"),
        };
        self.line(&hidden);
        self.hides.push(hidden);
    }

    /// Parts that read and write the same, in a row between two forks: these make their order that of the
    /// text, while C alone would leave it open.
    fn sum(&mut self, depth: u32) -> String {
        if self.forks < 2 {
            return self.value(1);
        }
        self.forks -= 2;
        let mut sum = format!("({})", self.changing());
        for _ in 0..=self.random.next(2) {
            let sign = ["+", "*", "^", "-"][self.random.next(4) as usize];
            sum = format!("({sum}) {sign} {}", self.operand(depth));
        }
        format!("({sum}) + {}", self.changing())
    }

    /// A part of that.
    fn operand(&mut self, depth: u32) -> String {
        let to = self.variable();
        match self.random.next(10) {
            0 => self.variable(),
            1 => format!("{to}++"),
            2 => format!("({to} += {})", self.value(1)),
            3 => "arr[n % 4]".into(),
            4 => format!("(pp->b ^ wd.a[{}])", self.random.next(9)),
            5 | 6 if depth > 0 => {
                let (a, b) = (self.operand(depth - 1), self.operand(depth - 1));
                match self.random.next(6) {
                    0 => format!("({a} && {b})"),
                    1 => format!("({a} || {b})"),
                    2 => format!("({a} ? {b} : {})", self.operand(depth - 1)),
                    3 => format!("({a}, {b})"),
                    4 => format!("({{ {to} ^= {a}; {b}; }})"),
                    _ => format!("({})", self.sum(depth - 1)),
                }
            }
            7 | 8 if self.forks > 0 => {
                self.forks -= 1;
                format!("({})", self.changing())
            }
            _ => self.value(1),
        }
    }

    /// A fork with a block that writes what others read.
    fn changing(&mut self) -> String {
        let (call, value) = (self.call(), self.value(1));
        let what = match self.random.next(5) {
            0 => "arr[n % 4]".to_string(),
            1 => "pp->b".to_string(),
            2 => format!("wd.a[{}]", self.random.next(9)),
            _ => self.variable(),
        };
        format!("{call} !! {{ {what} += {value}; }}")
    }

    fn fork(&mut self, depth: u32) {
        let hides = self.hides.len();
        self.fork_here(depth);
        self.hides.truncate(hides);
    }

    fn fork_here(&mut self, depth: u32) {
        self.forks -= 1;
        let end = if self.random.one_in(2) { "}" } else { "};" };
        let call = self.call();
        // What a block around hides cannot be called in it.
        let seen = |name: &str| !self.hides.iter().any(|h| h.contains(name));
        let (twin, put, pair) = (seen("twin"), seen("put"), seen("pair"));
        let (three, step) = (put, seen("step"));
        match self.random.next(18) {
            16 | 17 => {
                // An element of what a pointer points to, which the block moves: too late.
                let (op, value) = (
                    ["=", "+=", "^="][self.random.next(3) as usize],
                    self.value(1),
                );
                let changed = self.variable();
                let left = match self.random.next(4) {
                    0 => format!("pa[({call} !! {{ pa = arr + 1; {changed}++; }}) % 3]"),
                    1 => format!("(*(pa + ({call} !! {{ pa = arr + 1; {changed}++; }}) % 3))"),
                    2 => format!("qp[({call} !! {{ qp = prs; {changed}++; }}) % 2].a"),
                    _ => format!("qp[({call} !! {{ qp = prs; {changed}++; }}) % 2].b"),
                };
                let way = match self.random.next(4) {
                    0 => format!("{left}++"),
                    1 if self.forks > 0 => {
                        self.forks -= 1;
                        let second = self.call();
                        format!("{left} {op} {second} !! {{ v2 ^= 5; }}")
                    }
                    2 => format!("{changed} += ({left} {op} {value})"),
                    _ => format!("{left} {op} {value}"),
                };
                self.line(&format!("{way};"));
                return self.line(
                    "v3 ^= arr[0] + arr[1] * 3 + prs[1].a + prs[2].b; pa = arr; qp = prs + 1;",
                );
            }
            11 | 12 => {
                // Operands that write to what others read: from left to right.
                self.forks += 2;
                let to = ["v2", "arr[v1++ % 4]", "wd.a[3]", "pp->a"][self.random.next(4) as usize];
                let op = ["=", "+=", "^="][self.random.next(3) as usize];
                let mut sum = self.sum(2);
                if three && self.forks > 0 && self.random.one_in(3) {
                    self.forks -= 1;
                    let a = self.operand(1);
                    sum = format!("three({sum}, {a}, {})", self.changing());
                }
                return self.line(&format!("{to} {op} {sum};"));
            }
            13 if put => {
                let value = self.value(1);
                let kind = ["fr", "FAR"][self.random.next(2) as usize];
                self.line(&format!(
                    "v3 += total(n, {kind}, SMALL, (double)({value} % 100), pr) !! {{"
                ));
                self.forked(depth, true);
                self.line("  fr = FAR; pr.a += n;");
            }
            14 if step => {
                self.line("v2 += step(v0 & 1 ? NEAR : NEARER, fr) !! {");
                self.forked(depth, true);
            }
            15 => {
                // The value of a block is that of the fork at its end.
                let to = self.variable();
                self.line(&format!("v1 += ({{ {to}++; {call} !! {{"));
                self.forked(depth, true);
                return self.line("}; });");
            }
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
            6 if put => {
                let value = self.value(1);
                self.line(&format!("put(n - 1, &arr[2], {value}) !! {{"));
                // It must not touch the array; a jump and a sum do not.
                self.line("  v2 += 3;");
                if self.loops > 0 {
                    self.line("  if (v2 % 4 == 0) continue;");
                }
            }
            7 if twin && pair => {
                let value = self.value(1);
                self.line(&format!(
                    "pr = twin(n - 1, (struct pair){{{value}, 3}}) !! {{"
                ));
                self.forked(depth, true);
            }
            8 if twin => {
                self.line("wd = spread(n - 1, wd, &(const unsigned long){n}) !! {");
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
