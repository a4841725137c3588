// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Emits statements, one source statement per line.

use super::expr::{Code, LocalHome};
use super::value::{Ct, lie_alike, rounds};
use crate::c_types::{c_type, size_of};
use crate::ir::visit::{any_stmt, expr_mentions, exprs_of, mentions};
use crate::ir::*;
use crate::ranges::{I32, I64, Range, dimensions, innermost, is_int};
use std::collections::HashSet;

impl<'a, 'w> Code<'a, 'w> {
    pub fn stmts(&mut self, stmts: &'a [Stmt]) {
        for s in stmts {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &'a Stmt) {
        self.w.at(s.span);
        match &s.kind {
            StmtKind::Assign(p, e) => {
                let value = self.stored(e, &p.ty);
                let (holds, place) = self.written_place(p);
                let text = format!("{place} = {};", value.text);
                match holds {
                    Some(holds) => self.w.put(&format!("if ({holds}) {text}")),
                    None => self.w.put(&text),
                }
            }
            StmtKind::Copy { to, from } => self.copy(to, from),
            StmtKind::Call(p, args) => {
                let text = self.call(*p, args);
                self.w.put(&format!("{text};"));
            }
            StmtKind::If(c, yes, no) => {
                let cond = self.condition(c).text;
                self.w.put(&format!("if ({cond}) {{"));
                let env = self.env.clone();
                self.class.ranges.assume(&mut self.env, c, true);
                self.stmts(yes);
                self.env = env.clone();
                self.class.ranges.assume(&mut self.env, c, false);
                if !no.is_empty() {
                    // "} else {" steps out and in.
                    self.w.put("} else {");
                    self.stmts(no);
                }
                self.w.put("}");
                self.env = env;
            }
            StmtKind::While(c, body) => {
                let env = self.env.clone();
                self.env = self.class.ranges.loop_head(&env, s, self.proc);
                match self.within(c, body) {
                    Some(within) => {
                        self.w.put(&format!("if ({}) {{", within.holds));
                        match &within.copy {
                            Some(lines) => lines.iter().for_each(|l| self.w.put(l)),
                            None => self.while_loop(s, c, body, &within.limits),
                        }
                        self.w.put("} else {");
                        self.while_loop(s, c, body, &[]);
                        self.w.put("}");
                    }
                    None => self.while_loop(s, c, body, &[]),
                }
                self.env = env;
            }
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => self.for_loop(s, *var, from, to, body),
            StmtKind::Return(e) => {
                let ty = self
                    .proc
                    .and_then(|p| self.class.actor.procs[p].result.as_ref());
                let value = self.stored(e, ty.unwrap_or(&e.ty));
                self.w.put(&format!("return {};", value.text));
            }
            StmtKind::Print { parts, newline } => self.print(parts, *newline),
        }
        self.class.ranges.exec_one(&mut self.env, s, self.proc);
    }

    /// Emits a loop with the environment at its head; `limits`: additional bounds of locals inside it.
    fn while_loop(
        &mut self,
        s: &'a Stmt,
        c: &'a Expr,
        body: &'a [Stmt],
        limits: &[(usize, Range)],
    ) {
        let head = self.env.clone();
        let cond = self.condition(c).text;
        self.w.put(&format!("while ({cond}) {{"));
        self.env = self.class.ranges.inside(&head, s);
        for (local, limit) in limits {
            let known = self.env.locals[*local];
            self.env.locals[*local] = known.meet(*limit).unwrap_or(*limit);
        }
        self.stmts(body);
        self.w.put("}");
        self.env = head;
    }

    fn copy(&mut self, to: &'a Place, from: &'a Place) {
        let (dst_ty, _) = self.extent(to);
        let (src_ty, _) = self.extent(from);
        let (dst, src) = (self.place(to), self.place(from));
        let (dt, st) = (dimensions(&to.ty), dimensions(&from.ty));
        let same = lie_alike(src_ty, dst_ty);
        // Rows of equal length are contiguous.
        if same && dt[1..] == st[1..] {
            let n: u64 = st.iter().map(|n| u64::from(*n)).product();
            let f = if to.var == from.var {
                "memmove"
            } else {
                "memcpy"
            };
            let bytes = n * u64::from(size_of(src_ty));
            self.w.put(&format!("{f}({dst}, {src}, {bytes});"));
            return;
        }
        let stride = |dims: &[u32], d: usize| -> u64 {
            dims[d + 1..].iter().map(|n| u64::from(*n)).product()
        };
        let index = |dims: &[u32], names: &[String]| {
            let terms = names
                .iter()
                .enumerate()
                .map(|(d, n)| match stride(dims, d) {
                    1 => n.clone(),
                    s => format!("{n} * {s}"),
                });
            terms.collect::<Vec<_>>().join(" + ")
        };
        let mut names = Vec::new();
        let (d, e) = (self.class.temporary(), self.class.temporary());
        self.w.put("{");
        self.w.put(&format!("{} *{d} = {dst};", c_type(dst_ty)));
        self.w
            .put(&format!("const {} *{e} = {src};", c_type(src_ty)));
        for n in &st {
            let k = self.class.temporary();
            self.w
                .put(&format!("for (size_t {k} = 0; {k} < {n}; {k}++)"));
            names.push(k);
        }
        let value = format!("{e}[{}]", index(&st, &names));
        let value = convert_text(&value, src_ty, dst_ty);
        self.w
            .put(&format!("  {d}[{}] = {value};", index(&dt, &names)));
        self.w.put("}");
    }

    fn for_loop(
        &mut self,
        s: &'a Stmt,
        var: usize,
        from: &'a Expr,
        to: &'a Expr,
        body: &'a [Stmt],
    ) {
        let entry = self.env.clone();
        let ty = &self.body.locals[var].ty;
        let (rf, rt) = (
            self.class.ranges.eval(&self.env, from),
            self.class.ranges.eval(&self.env, to),
        );
        let (first, last) = (self.convert(from, &from.ty), self.convert(to, &to.ty));
        let counts = Range::new(rf.lo, rt.hi.max(rf.hi));
        // One more than the last value must fit, too, since the counter reaches it.
        let beyond = Range::new(counts.lo.min(rt.lo), counts.hi + 1);
        let ct = if beyond.within(I32) { Ct::I32 } else { Ct::I64 };
        let head = self.class.ranges.loop_head(&entry, s, self.proc);
        let fits = Range::new(rf.lo, rt.hi);
        let scoped = beyond.within(I64)
            && (fits.lo > fits.hi || fits.within(Range::of(ty)))
            && self.only_in(var, s);
        let end = if last.is_literal() {
            (String::new(), last.text.clone())
        } else {
            let end = self.class.temporary();
            (format!(", {end} = {}", last.text), end)
        };
        self.env = self.class.ranges.inside(&head, s);
        let around = self.in_map;
        self.in_map = self.maps(from, to, body);
        if scoped {
            let name = self.locals[var].name.clone();
            self.w.put(&format!(
                "for ({} {name} = {}{}; {name} <= {}; {name}++) {{",
                ct.name(),
                first.text,
                end.0,
                end.1
            ));
            let before = self.locals[var].ct.replace(ct);
            self.stmts(body);
            self.locals[var].ct = before;
        } else {
            // The variable cannot hold the counter's values, or is read afterwards.
            let k = self.class.temporary();
            self.w.put(&format!(
                "for (int64_t {k} = {}{}; {k} <= {}; {k}++) {{",
                first.text, end.0, end.1
            ));
            let c = c_type(ty);
            self.w
                .put(&format!("{} = ({c}){k};", self.locals[var].name));
            self.stmts(body);
        }
        self.w.put("}");
        self.in_map = around;
        self.env = entry;
    }

    /// Whether the variable is used only in this loop.
    fn only_in(&self, var: usize, s: &Stmt) -> bool {
        let count = |stmts: &[Stmt], counts: &mut dyn FnMut(usize)| {
            mentions(stmts, &|_, _| false, &mut |v, _| {
                if let VarRef::Local(l) = v {
                    counts(l);
                }
            });
        };
        let in_body = self.mentioned.get_or_init(|| {
            let mut all = vec![0; self.body.locals.len()];
            count(&self.body.stmts, &mut |l| all[l] += 1);
            all
        });
        let mut here = 0;
        count(std::slice::from_ref(s), &mut |l| {
            here += usize::from(l == var)
        });
        in_body[var] == here && !self.locals[var].read_only
    }

    /// All parts are computed before any is printed, so that a fault leaves no partial line.
    fn print(&mut self, parts: &'a [Expr], newline: bool) {
        self.w.put("{");
        let mut calls = Vec::new();
        for e in parts {
            let x = self.full(e);
            let mut value = x.text;
            if !matches!(e.kind, ExprKind::Const(_)) {
                let computed = self.class.temporary();
                self.w
                    .put(&format!("{} {computed} = {value};", x.ct.name()));
                value = computed;
            }
            calls.push(match &e.ty {
                Type::String => format!("levada_print_text(&S->lvd_wait_info, {value});"),
                Type::Bool => {
                    format!(
                        "levada_print_text(&S->lvd_wait_info, ({value}) ? \"true\" : \"false\");"
                    )
                }
                Type::Float { .. } => format!("levada_print_real(&S->lvd_wait_info, {value});"),
                _ if x.ct == Ct::U64 => format!("levada_print_uint(&S->lvd_wait_info, {value});"),
                _ => format!("levada_print_int(&S->lvd_wait_info, {value});"),
            });
        }
        self.w
            .put("const char *levada_outer = levada_in_native(self, \"print\");");
        for call in &calls {
            self.w.put(call);
        }
        if newline {
            self.w.put("levada_print_end(&S->lvd_wait_info);");
        }
        self.w.put("levada_in_native(self, levada_outer);");
        self.w.put("}");
    }

    /// Whether a local list must be initialised to zero.
    pub fn needs_zero(&self, l: usize) -> bool {
        needs_zero(self.body, l, self.read_after.contains(&l))
    }

    /// Declares a list that is stored in the state.
    pub fn in_state(&mut self, c: &str, name: &str, member: &str, n: u64, zero: bool, text: bool) {
        self.w.put(&format!("{c} *const {name} = S->{member};"));
        if zero && text {
            let k = self.class.temporary();
            self.w.put(&format!(
                "for (size_t {k} = 0; {k} < {n}; {k}++) {name}[{k}] = \"\";"
            ));
        } else if zero {
            self.w
                .put(&format!("memset({name}, 0, {n} * sizeof *{name});"));
        }
    }

    /// Declares the locals from `first` on, except those in `placed`, which are declared already.
    pub fn declare(&mut self, first: usize, placed: &[usize]) {
        let used = used_locals(self.body);
        let placed: HashSet<usize> = placed.iter().copied().collect();
        let counts = loop_vars(self.body);
        let spans = use_spans(self.body);
        for (l, used) in used.iter().enumerate().skip(first) {
            if placed.contains(&l) || !used {
                continue;
            }
            let local = &self.body.locals[l];
            let (c, name) = (c_type(&local.ty), self.locals[l].name.clone());
            let text = match &local.ty {
                Type::List { .. } => {
                    let n: u64 = dimensions(&local.ty)
                        .iter()
                        .map(|n| u64::from(*n))
                        .product();
                    let uses = spans[l].map_or(&[][..], |(from, to)| &self.body.stmts[from..=to]);
                    let read = self.read_after.contains(&l);
                    let zero = needs_zero_for(uses, self.body, l, read);
                    if let Some(member) = self.class.member_of(self.body, l) {
                        let text = *innermost(&local.ty) == Type::String;
                        self.in_state(c, &name, member, n, zero, text);
                        continue;
                    }
                    let zero = if !zero {
                        String::new()
                    } else if *innermost(&local.ty) == Type::String {
                        format!(" = {{[0 ... {}] = \"\"}}", n.max(1) - 1)
                    } else {
                        " = {0}".to_string()
                    };
                    format!("{c} {name}[{}]{zero};", n.max(1))
                }
                Type::String => format!("{c}{name} = \"\";"),
                _ if counts.contains(&l) => format!("{c} {name} LEVADA_UNUSED = 0;"),
                _ => format!("{c} {name} = 0;"),
            };
            self.w.put(&text);
        }
    }
}

/// Whether a local list must be initialised to zero, or is completely written before it is read. `read_after`: code
/// after the body may read it.
pub fn needs_zero(body: &Body, l: usize, read_after: bool) -> bool {
    needs_zero_for(&body.stmts, body, l, read_after)
}

/// Like `needs_zero`, for a list that only these statements of the body use.
fn needs_zero_for(stmts: &[Stmt], body: &Body, l: usize, read_after: bool) -> bool {
    let search = Search {
        local: l,
        dims: dimensions(&body.locals[l].ty),
        read_after,
    };
    match search.first_use(stmts, &mut Vec::new()) {
        Use::None => search.read_after,
        Use::Fills => false,
        Use::Reads => true,
    }
}

/// The C text that converts one element between two declared types.
pub fn convert_text(value: &str, from: &Type, to: &Type) -> String {
    if is_int(innermost(to)) && matches!(innermost(from), Type::Float { .. }) {
        format!("({})levada_truncate({value})", c_type(to))
    } else if rounds(innermost(from), innermost(to)) {
        format!("levada_half((float){value})")
    } else if c_type(from) == c_type(to) {
        value.to_string()
    } else {
        format!("({}){value}", c_type(to))
    }
}

pub fn locals_of(names: Vec<String>) -> Vec<LocalHome> {
    let home = |name| LocalHome {
        name,
        ct: None,
        read_only: false,
    };
    names.into_iter().map(home).collect()
}

/// The counters of loops.
fn loop_vars(body: &Body) -> HashSet<usize> {
    let mut vars = HashSet::new();
    any_stmt(&body.stmts, &mut |s| {
        if let StmtKind::For { var, .. } = s.kind {
            vars.insert(var);
        }
        false
    });
    vars
}

/// The first and the last statement of the body that use each local.
fn use_spans(body: &Body) -> Vec<Option<(usize, usize)>> {
    let mut spans = vec![None; body.locals.len()];
    for (at, s) in body.stmts.iter().enumerate() {
        mentions(std::slice::from_ref(s), &|_, _| false, &mut |v, _| {
            if let VarRef::Local(l) = v {
                spans[l].get_or_insert((at, at)).1 = at;
            }
        });
    }
    spans
}

pub fn used_locals(body: &Body) -> Vec<bool> {
    let mut used = vec![false; body.locals.len()];
    mentions(&body.stmts, &|_, _| false, &mut |v, _| {
        if let VarRef::Local(l) = v {
            used[l] = true;
        }
    });
    used
}

enum Use {
    None,
    Fills,
    Reads,
}

fn mentions_local(stmts: &[Stmt], l: usize) -> bool {
    let mut found = false;
    mentions(stmts, &|_, _| false, &mut |v, _| {
        found |= v == VarRef::Local(l)
    });
    found
}

/// Finds how the first statement that uses a list uses it.
struct Search {
    local: usize,
    dims: Vec<u32>,
    /// Whether code after the body reads it.
    read_after: bool,
}

impl Search {
    /// `counters`: the variables of the enclosing loops, each of which runs over a whole dimension.
    fn first_use(&self, stmts: &[Stmt], counters: &mut Vec<(usize, u32)>) -> Use {
        let me = VarRef::Local(self.local);
        let mine = |s: &&Stmt| mentions_local(std::slice::from_ref(*s), self.local);
        let Some((at, s)) = stmts.iter().enumerate().find(|(_, s)| mine(s)) else {
            return Use::None;
        };
        let mut read = false;
        exprs_of(s, &mut |e| {
            expr_mentions(e, &|_, _| false, &mut |v, _| read |= v == me);
        });
        if read {
            return Use::Reads;
        }
        // A list that only one block uses must be filled only there, whenever it is entered.
        let alone = !self.read_after && !mentions_local(&stmts[at + 1..], self.local);
        let fresh = |body: &[Stmt]| {
            if alone {
                self.first_use(body, &mut Vec::new())
            } else {
                Use::Reads
            }
        };
        match &s.kind {
            StmtKind::Assign(p, _) if p.var == me => self.fills(p, counters),
            StmtKind::Copy { to, from } if to.var == me && from.var != me => {
                if dimensions(&from.ty) == dimensions(&to.ty) {
                    self.fills(to, counters)
                } else {
                    Use::Reads
                }
            }
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => {
                let constant = |e: &Expr| match e.kind {
                    ExprKind::Const(Value::Int(v)) => Some(v),
                    _ => None,
                };
                if let (Some(0), Some(t @ 0..)) = (constant(from), constant(to)) {
                    counters.push((*var, t as u32 + 1));
                    let inner = self.first_use(body, counters);
                    counters.pop();
                    if let Use::Fills = inner {
                        return inner;
                    }
                }
                fresh(body)
            }
            StmtKind::While(_, body) => fresh(body),
            StmtKind::If(_, yes, no) => {
                if let (Use::Fills, Use::Fills) =
                    (self.first_use(yes, counters), self.first_use(no, counters))
                {
                    return Use::Fills;
                }
                match (fresh(yes), fresh(no)) {
                    (Use::Reads, _) | (_, Use::Reads) => Use::Reads,
                    _ => Use::Fills,
                }
            }
            _ => Use::Reads,
        }
    }

    /// A store fills the list if its indices run over all of it.
    fn fills(&self, p: &Place, counters: &[(usize, u32)]) -> Use {
        let mut vars = Vec::new();
        for (i, n) in p.indices.iter().zip(&self.dims) {
            match &i.kind {
                ExprKind::Load(v) if v.indices.is_empty() && !vars.contains(&v.var) => {
                    if !counters
                        .iter()
                        .any(|(c, m)| VarRef::Local(*c) == v.var && m == n)
                    {
                        return Use::Reads;
                    }
                    vars.push(v.var);
                }
                _ => return Use::Reads,
            }
        }
        Use::Fills
    }
}
