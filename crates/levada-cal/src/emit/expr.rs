// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Emits expressions.
//!
//! An integer expression can be emitted in two forms:
//! * *full*: a C expression of the same value;
//! * *low k*: a C expression with equal lowest k bits, if the result is truncated to k bits anyway.
//!
//! Arithmetic uses `int32_t` where the ranges of operands and result allow it, else 64 bits. If a result may wrap,
//! unsigned types are used, so that the code has no undefined behaviour and needs no compiler flag.

use super::class::{Class, Home, is_concatenation};
use super::value::{
    Ct, X, cut, infix, narrow, negated, operator, pick, prec, rounds, scalar, shift, wide,
};
use super::writer::{Writer, string_literal};
use crate::c_types::c_type;
use crate::ir::*;
use crate::operators::types::compared_in;
use crate::operators::value::{Scalar, convert};
use crate::ranges::{Env, I32, I64, Range, U32, dimensions, exact, exact_unary, innermost, is_int};
use std::cell::OnceCell;
use std::collections::HashSet;

/// A local variable in C.
#[derive(Clone, Debug)]
pub struct LocalHome {
    pub name: String,
    /// The C type, if it differs from that of `ty`: for loop counters.
    pub ct: Option<Ct>,
    /// A list that must not be written, since it is in a channel's buffer.
    pub read_only: bool,
}

/// Emission of one body: `w` has the statements so far, `env` holds at this point.
pub struct Code<'a, 'w> {
    pub class: &'w Class<'a>,
    pub w: &'w mut Writer<'a>,
    pub body: &'a Body,
    pub locals: Vec<LocalHome>,
    pub env: Env,
    /// The procedure of this body, if it is a procedure's.
    pub proc: Option<usize>,
    /// The file to which the lines of faults refer.
    pub file: u32,
    /// Locals that are read after the statements: an action's outputs.
    pub read_after: HashSet<usize>,
    /// In a loop that only computes elements.
    pub in_map: bool,
    /// The number of uses of each local, computed on demand.
    pub mentioned: OnceCell<Vec<usize>>,
}

impl<'a, 'w> Code<'a, 'w> {
    pub fn full(&mut self, e: &Expr) -> X {
        if is_concatenation(e) {
            let text = format!("levada_keep(&S->lvd_kept, {})", self.addends(e));
            return X::primary(text, Ct::Str, Range::exactly(0));
        }
        let range = self.class.ranges.eval(&self.env, e);
        let ct = Ct::of(&e.ty);
        match &e.kind {
            ExprKind::Const(v) => self.constant(v, &e.ty),
            ExprKind::Load(p) => {
                let ct = match p.var {
                    VarRef::Local(l) => self.locals[l].ct.unwrap_or(ct),
                    VarRef::Global(_) => ct,
                };
                if let (VarRef::Global(g), []) = (p.var, &p.indices[..])
                    && let Home::Literal(v) = &self.class.homes[g]
                {
                    return self.constant(v, &e.ty);
                }
                X::primary(self.read_place(p), ct, range)
            }
            ExprKind::Unary(op, x) => self.unary(*op, x, &e.ty, range),
            ExprKind::Binary(op, a, b) => {
                if self.effects(a) && self.effects(b) && !matches!(op, BinOp::And | BinOp::Or) {
                    return self.in_order(e, *op, a, b);
                }
                self.binary(*op, a, b, e, range)
            }
            ExprKind::If(c, a, b) => {
                let cond = self.condition(c);
                let env = self.env.clone();
                self.class.ranges.assume(&mut self.env, c, true);
                let if_so = self.env.clone();
                let yes = self.convert(a, &e.ty);
                self.env = env.clone();
                self.class.ranges.assume(&mut self.env, c, false);
                let if_not = self.env.clone();
                let no = self.convert(b, &e.ty);
                self.env = env;
                let ct = if is_int(&e.ty) && yes.ct != no.ct {
                    pick(&[yes.range, no.range]).unwrap_or(ct)
                } else {
                    yes.ct
                };
                let masked = self.can_select_branchless(e, (&self.env, &if_so, &if_not));
                let (yes, no) = (yes.cast(ct), no.cast(ct));
                if masked {
                    let (c, y, n) = (cond.text, yes.text, no.text);
                    let text = format!("levada_choose_{}({c}, {y}, {n})", ct.name());
                    return X::primary(text, ct, range);
                }
                let (y, n) = (yes.at_least(prec::OR), no.at_least(prec::COND));
                let text = format!("{} ? {y} : {n}", cond.at_least(prec::OR));
                X::new(text, prec::COND, ct, range)
            }
            ExprKind::Call(p, args) => {
                let text = self.call(*p, args);
                X::primary(text, ct, range)
            }
            ExprKind::Cast(x) => self.convert(x, &e.ty),
        }
    }

    fn constant(&self, v: &Value, ty: &Type) -> X {
        let ct = Ct::of(ty);
        match v {
            Value::Bool(b) => X {
                literal: Some(i128::from(*b)),
                ..X::primary(b.to_string(), Ct::I32, Range::exactly(i128::from(*b)))
            },
            Value::Int(_) if is_int(ty) => {
                let exact = Scalar::of(v, ty).int();
                X::literal(exact, pick(&[Range::exactly(exact)]).unwrap_or(ct))
            }
            Value::Int(_) | Value::Float(_) => {
                X::new(scalar(v, ty), prec::UNARY, ct, Range::exactly(0))
            }
            Value::String(s) => X::primary(string_literal(s), Ct::Str, Range::exactly(0)),
            Value::List(_) => unreachable!("list constants are statements"),
        }
    }

    /// `e` with the value that conversion to `ty` gives it.
    pub fn convert(&mut self, e: &Expr, ty: &Type) -> X {
        let ct = Ct::of(ty);
        match (is_int(&e.ty), ty) {
            (_, Type::Float { .. }) if matches!(e.kind, ExprKind::Const(_)) => {
                let ExprKind::Const(v) = &e.kind else {
                    unreachable!("a constant");
                };
                let v = convert(Scalar::of(v, &e.ty), ty).constant(ty);
                self.constant(&v, ty)
            }
            (_, Type::Float { .. }) if rounds(&e.ty, ty) => {
                let x = self.full(e);
                X::primary(
                    format!("levada_half((float){})", x.at_least(prec::UNARY)),
                    ct,
                    Range::exactly(0),
                )
            }
            (true, Type::Float { .. }) => {
                let x = self.full(e);
                X::new(
                    format!("({}){}", ct.name(), x.at_least(prec::UNARY)),
                    prec::UNARY,
                    ct,
                    Range::exactly(0),
                )
            }
            (false, Type::Float { .. }) => {
                let x = self.full(e);
                if x.ct == ct {
                    return x;
                }
                X::new(
                    format!("({}){}", ct.name(), x.at_least(prec::UNARY)),
                    prec::UNARY,
                    ct,
                    Range::exactly(0),
                )
            }
            (false, Type::Int { .. } | Type::Bool) if e.ty != Type::String => {
                let x = self.full(e);
                let x = X::primary(format!("levada_truncate({})", x.text), Ct::I64, I64);
                cut(x, ty)
            }
            (true, Type::Int { .. } | Type::Bool) => {
                let r = self.class.ranges.eval(&self.env, e);
                if r.within(Range::of(ty)) {
                    self.full(e)
                } else {
                    let x = self.low(e, ty.container());
                    cut(x, ty)
                }
            }
            _ => self.full(e),
        }
    }

    /// `e` as something that may be stored in a variable of `ty`, which cuts it.
    pub fn stored(&mut self, e: &Expr, ty: &Type) -> X {
        if is_int(&e.ty) && matches!(ty, Type::Int { .. }) {
            self.low(e, ty.container())
        } else {
            self.convert(e, ty)
        }
    }

    fn unary(&mut self, op: UnOp, x: &Expr, ty: &Type, range: Range) -> X {
        let c = ty.container();
        if op == UnOp::Not {
            let x = self.condition(x);
            return X::new(
                format!("!{}", x.at_least(prec::UNARY)),
                prec::UNARY,
                Ct::I32,
                range,
            );
        }
        if !is_int(ty) {
            let x = self.convert(x, ty);
            return X::new(
                format!("-{}", x.at_least(prec::PRIMARY)),
                prec::UNARY,
                x.ct,
                range,
            );
        }
        let r = self.class.ranges.eval_as(&self.env, x, ty);
        let whole = exact_unary(op, r);
        if whole.within(Range::of(ty))
            && let Some(ct @ (Ct::I32 | Ct::I64)) = pick(&[r, whole])
        {
            let x = self.convert(x, ty).cast(ct);
            let sign = if op == UnOp::Neg { "-" } else { "~" };
            return X::new(
                format!("{sign}{}", x.at_least(prec::PRIMARY)),
                prec::UNARY,
                ct,
                range,
            );
        }
        let x = self.low(x, c);
        cut(negated(op, x, c), ty)
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr, range: Range) -> X {
        let ty = &e.ty;
        let (text, p) = operator(op);
        match op {
            BinOp::And | BinOp::Or => {
                let x = self.condition(a);
                let env = self.env.clone();
                self.class.ranges.assume(&mut self.env, a, op == BinOp::And);
                let y = self.condition(b);
                self.env = env;
                let (l, r) = (x.at_least(prec::BITS), y.at_least(prec::BITS));
                X::new(format!("{l} {text} {r}"), p, Ct::I32, range)
            }
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                self.comparison(op, a, b)
            }
            _ if !is_int(ty) => {
                let (x, y) = (self.convert(a, ty), self.convert(b, ty));
                let text = if op == BinOp::Mod {
                    let f = if x.ct == Ct::F64 { "fmod" } else { "fmodf" };
                    return X::primary(
                        format!("__builtin_{f}({}, {})", x.text, y.text),
                        x.ct,
                        range,
                    );
                } else {
                    format!("{} {text} {}", x.at_least(p), y.at_least(p + 1))
                };
                X::new(text, p, x.ct, range)
            }
            BinOp::Div | BinOp::Mod => self.division(op, a, b, e, range),
            BinOp::Shl => self.shift_left(a, b, ty, range),
            BinOp::Shr => self.shift_right(a, b, ty, range),
            _ => {
                let ra = self.class.ranges.eval_as(&self.env, a, ty);
                let rb = self.class.ranges.eval_as(&self.env, b, ty);
                let whole = exact(op, ra, rb, ty.container());
                if whole.within(Range::of(ty))
                    && let Some(ct) = pick(&[ra, rb, whole])
                {
                    if op == BinOp::BitAnd && !ra.within(I32) && rb.within(Range::new(0, I32.hi)) {
                        // The mask leaves only low bits: no more of the other side is needed.
                        let bits = (128 - rb.hi.leading_zeros()) as u8;
                        let x = self.low(a, bits.max(1)).cast(Ct::U32);
                        let y = self.convert(b, ty);
                        return infix(text, p, x, y, Ct::U32, range);
                    }
                    let (x, y) = (self.convert(a, ty), self.convert(b, ty));
                    return infix(text, p, x, y, ct, whole);
                }
                let x = self.arithmetic_low(op, a, b, ty.container());
                cut(x, ty)
            }
        }
    }

    /// Arithmetic of which only the lowest `k` bits count.
    fn arithmetic_low(&mut self, op: BinOp, a: &Expr, b: &Expr, k: u8) -> X {
        let (text, p) = operator(op);
        let (x, y) = (self.low(a, k), self.low(b, k));
        let whole = exact(op, x.range, y.range, 64);
        let all = [x.range, y.range, whole];
        let ct = match pick(&all) {
            Some(Ct::I32) => Ct::I32,
            _ if k <= 32 => Ct::U32,
            Some(Ct::I64) => Ct::I64,
            _ => Ct::U64,
        };
        let range = if whole.within(ct.range()) {
            whole
        } else {
            ct.range()
        };
        let (x, y) = if k <= 32 && ct == Ct::U32 {
            // 64-bit operands are cut first, so that the operation is narrow.
            (narrow(x), narrow(y))
        } else {
            (x, y)
        };
        infix(text, p, x, y, ct, range)
    }

    /// A C expression that agrees with `e` in the lowest `k` bits.
    pub fn low(&mut self, e: &Expr, k: u8) -> X {
        let c = e.ty.container();
        if !is_int(&e.ty) || e.ty == Type::Bool || k > c {
            return self.full(e);
        }
        match &e.kind {
            ExprKind::Binary(op, a, b) if !(self.effects(a) && self.effects(b)) => match op {
                BinOp::Add
                | BinOp::Sub
                | BinOp::Mul
                | BinOp::BitAnd
                | BinOp::BitOr
                | BinOp::BitXor
                    if is_int(&a.ty) && is_int(&b.ty) =>
                {
                    self.arithmetic_low(*op, a, b, k)
                }
                BinOp::Shl if k <= 32 && is_int(&a.ty) => {
                    let n = self.class.ranges.eval(&self.env, b);
                    if n.within(Range::new(0, 31)) {
                        let x = self.low(a, k);
                        let whole = exact(BinOp::Shl, x.range, n, 64);
                        let count = self.full(b);
                        if x.range.lo >= 0 && pick(&[x.range, whole]) == Some(Ct::I32) {
                            return shift("<<", x.cast(Ct::I32), count, whole);
                        }
                        return shift("<<", x.cast(Ct::U32), count, U32);
                    }
                    self.full(e)
                }
                BinOp::Shr if is_int(&a.ty) && a.ty.container() <= c => {
                    let n = self.class.ranges.eval(&self.env, b);
                    let ra = self.class.ranges.eval_as(&self.env, a, &e.ty);
                    if n.lo == n.hi
                        && n.lo >= 0
                        && n.lo + i128::from(k) <= 32
                        && !ra.within(I32)
                        && c == 64
                    {
                        // Only bits n to n + k - 1 count.
                        let x = self.low(a, (n.lo as u8) + k).cast(Ct::U32);
                        return shift(">>", x, X::literal(n.lo, Ct::I32), U32);
                    }
                    self.full(e)
                }
                _ => self.full(e),
            },
            ExprKind::Unary(op @ (UnOp::Neg | UnOp::BitNot), x) if is_int(&x.ty) => {
                let x = self.low(x, k);
                negated(*op, x, k)
            }
            ExprKind::Cast(x) if is_int(&x.ty) => self.low(x, k),
            _ => self.full(e),
        }
    }

    fn comparison(&mut self, op: BinOp, a: &Expr, b: &Expr) -> X {
        let (text, p) = operator(op);
        let join = compared_in(&a.ty, &b.ty);
        let both = Range::new(0, 1);
        if join == Type::String {
            let (x, y) = (self.full(a), self.full(b));
            return X::new(
                format!("strcmp({}, {}) {text} 0", x.text, y.text),
                p,
                Ct::I32,
                both,
            );
        }
        let (x, y) = (self.convert(a, &join), self.convert(b, &join));
        if is_int(&join) {
            let ct = pick(&[x.range, y.range]).unwrap_or(Ct::of(&join));
            let c = infix(text, p, x, y, ct, both);
            return X { ct: Ct::I32, ..c };
        }
        X::new(
            format!("{} {text} {}", x.at_least(p + 1), y.at_least(p + 1)),
            p,
            Ct::I32,
            both,
        )
    }

    fn division(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr, range: Range) -> X {
        let ty = &e.ty;
        let (text, p) = operator(op);
        let (x, mut y) = (self.convert(a, ty), self.convert(b, ty));
        let ct = pick(&[x.range, y.range]).unwrap_or(Ct::of(ty));
        if y.range.contains(0) && self.class.checks {
            let width = if matches!(ct, Ct::I32 | Ct::U32) {
                32
            } else {
                64
            };
            let u = if matches!(ct, Ct::U32 | Ct::U64) {
                "u"
            } else {
                ""
            };
            let text = match self.fault_place(e) {
                FaultPlace::Here(at) => {
                    format!("levada_divisor_{u}{width}(self, {}, {at})", y.text)
                }
                FaultPlace::Elsewhere(at) => {
                    format!("levada_divisor_at_{u}{width}(self, {}, {at})", y.text)
                }
            };
            y = X::primary(text, ct, y.range);
        }
        let least = ct.range().lo;
        if y.range.contains(-1) && x.range.contains(least) {
            let name = if op == BinOp::Div { "div" } else { "mod" };
            let width = if ct == Ct::I32 { 32 } else { 64 };
            let call = format!("levada_{name}_{width}({}, {})", x.text, y.text);
            return cut(X::primary(call, ct, ct.range()), ty);
        }
        let whole = exact(op, x.range, y.range, ty.container());
        let x = infix(text, p, x, y, ct, whole);
        if whole.within(Range::of(ty)) {
            X { range: whole, ..x }
        } else {
            X {
                range,
                ..cut(x, ty)
            }
        }
    }

    fn shift_left(&mut self, a: &Expr, b: &Expr, ty: &Type, range: Range) -> X {
        let c = ty.container();
        let n = self.class.ranges.eval(&self.env, b);
        let ra = self.class.ranges.eval_as(&self.env, a, ty);
        let whole = exact(BinOp::Shl, ra, n, c);
        let count = self.full(b);
        let small = n.within(Range::new(0, i128::from(c) - 1));
        if small && whole.within(Range::of(ty)) {
            match pick(&[ra, whole]) {
                // C leaves shifts of negative numbers undefined; a product is the same.
                Some(ct @ (Ct::I32 | Ct::I64)) if n.lo == n.hi && ra.lo < 0 && n.lo < 62 => {
                    let x = self.convert(a, ty);
                    return infix(
                        "*",
                        prec::MUL,
                        x,
                        X::literal(1 << n.lo, Ct::I64).shrunk(),
                        ct,
                        whole,
                    );
                }
                Some(ct) if ra.lo >= 0 => {
                    let width = if ct.rank() < 2 { 32 } else { 64 };
                    if n.hi < width {
                        let x = self.convert(a, ty).cast(ct);
                        return shift("<<", x, count, whole);
                    }
                }
                _ => {}
            }
        }
        let x = self.low(a, c);
        let (ct, width) = if c <= 32 {
            (Ct::U32, 32)
        } else {
            (Ct::U64, 64)
        };
        let x = x.cast(ct);
        let x = if n.within(Range::new(0, width - 1)) {
            shift("<<", x, count, ct.range())
        } else {
            let call = format!(
                "levada_shl_{width}({}, (uint64_t){})",
                x.text,
                count.at_least(prec::UNARY)
            );
            X::primary(call, ct, ct.range())
        };
        X {
            range,
            ..cut(x, ty)
        }
    }

    fn shift_right(&mut self, a: &Expr, b: &Expr, ty: &Type, range: Range) -> X {
        let n = self.class.ranges.eval(&self.env, b);
        let x = self.convert(a, ty);
        let count = self.full(b);
        let held = if x.ct.rank() < 2 { 32 } else { 64 };
        let width = ty.container().max(32);
        if n.within(Range::new(0, held.min(i128::from(width)) - 1)) {
            return shift(">>", x, count, range);
        }
        // The count is one of the whole width, of which `x` may be held in less.
        let x = match x.ct {
            Ct::I32 if width == 64 => x.cast(Ct::I64),
            Ct::U32 if width == 64 => x.cast(Ct::U64),
            _ => x,
        };
        let u = if matches!(x.ct, Ct::U32 | Ct::U64) {
            "u"
        } else {
            ""
        };
        let call = format!(
            "levada_shr_{u}{width}({}, (uint64_t){})",
            x.text,
            count.at_least(prec::UNARY)
        );
        X::primary(call, x.ct, range)
    }

    /// A Bool expression for `if`, `while`, `&&`.
    pub fn condition(&mut self, e: &Expr) -> X {
        self.full(e)
    }

    fn effects(&self, e: &Expr) -> bool {
        let mut found = false;
        crate::ir::visit::walk(e, &mut |e| {
            if let ExprKind::Call(p, _) = &e.kind {
                found |= self.class.actor.procs[*p].effects;
            }
        });
        found
    }

    /// C may evaluate operands in any order; if both have effects, they are emitted one after the other.
    fn in_order(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> X {
        let range = self.class.ranges.eval(&self.env, e);
        let (x, y) = (self.full(a), self.full(b));
        let (l, r) = (self.class.temporary(), self.class.temporary());
        // Both become locals that replace the operands.
        let at = self.locals.len();
        let local = |name: &str, ct: Ct| LocalHome {
            name: name.to_string(),
            ct: Some(ct),
            read_only: false,
        };
        self.locals.push(local(&l, x.ct));
        self.locals.push(local(&r, y.ct));
        self.env.locals.push(x.range);
        self.env.locals.push(y.range);
        let load = |i: usize, of: &Expr| Expr {
            kind: ExprKind::Load(Place {
                var: VarRef::Local(i),
                indices: Vec::new(),
                ty: of.ty.clone(),
                span: of.span,
            }),
            ty: of.ty.clone(),
            span: of.span,
        };
        let z = self.binary(op, &load(at, a), &load(at + 1, b), e, range);
        self.locals.truncate(at);
        self.env.locals.truncate(at);
        let text = format!(
            "__extension__({{ {} {l} = {}; {} {r} = {}; {}; }})",
            x.ct.name(),
            x.text,
            y.ct.name(),
            y.text,
            z.text
        );
        X::primary(text, z.ct, z.range)
    }

    /// The parts of a concatenation in C: a format and its arguments.
    fn addends(&mut self, e: &Expr) -> String {
        let mut parts = Vec::new();
        addends(e, &mut parts);
        let mut format = String::new();
        let mut values = String::new();
        for part in parts {
            let x = self.full(part);
            let (letters, value) = match &part.ty {
                Type::String => ("%s", x.text),
                Type::Bool => ("%s", format!("({}) ? \"true\" : \"false\"", x.text)),
                Type::Float { .. } => ("%f", format!("levada_shown({})", x.text)),
                _ if x.ct == Ct::U64 => ("%llu", format!("(unsigned long long)({})", x.text)),
                _ => ("%lld", format!("(long long)({})", x.text)),
            };
            format += letters;
            values += &format!(", {value}");
        }
        format!("\"{format}\"{values}")
    }

    /// A call's text; lists go by reference.
    pub fn call(&mut self, p: usize, args: &[Arg]) -> String {
        let class = self.class;
        let proc = &class.actor.procs[p];
        let mut texts = Vec::new();
        if !proc.native {
            texts.push("self".to_string());
            texts.push("S".to_string());
        }
        if class.uses_registers(p) {
            texts.push("R".to_string());
        }
        for (i, a) in args.iter().enumerate() {
            let want = &proc.body.locals[i].ty;
            texts.push(match a {
                // The string is not needed after the call.
                Arg::Value(e) if proc.native && is_concatenation(e) => {
                    let parts = self.addends(e);
                    format!("levada_put_together(&S->lvd_text[{i}], {parts})")
                }
                Arg::Value(e) => self.convert(e, want).text,
                Arg::List(place) => {
                    let text = self.place(place);
                    if class.writes(p, i) && self.is_const(place.var) {
                        format!("({} *)({text})", c_type(&place.ty))
                    } else {
                        text
                    }
                }
            });
        }
        let call = format!("{}({})", class.procs[p], texts.join(", "));
        let name = string_literal(&proc.name);
        match &proc.result {
            _ if !proc.native => call,
            None | Some(Type::List { .. }) => format!("LEVADA_NATIVE({name}, {call})"),
            Some(Type::Float { bits: 16 }) => {
                format!("levada_half(LEVADA_NATIVE_VALUE({name}, {call}))")
            }
            Some(_) => format!("LEVADA_NATIVE_VALUE({name}, {call})"),
        }
    }

    fn is_const(&self, v: VarRef) -> bool {
        match v {
            VarRef::Global(g) => matches!(self.class.homes[g], Home::Table(_)),
            VarRef::Local(l) => self.locals[l].read_only,
        }
    }

    pub fn var_type(&self, v: VarRef) -> &'a Type {
        match v {
            VarRef::Global(g) => &self.class.actor.globals[g].ty,
            VarRef::Local(l) => &self.body.locals[l].ty,
        }
    }

    /// A variable, an element, or a pointer to the first element of a list.
    pub fn place(&mut self, p: &Place) -> String {
        self.place_where(p, Outside::Fails)
    }

    /// Like `place`, for reading: with lenient bounds, an index out of bounds is clamped.
    fn read_place(&mut self, p: &Place) -> String {
        self.place_where(p, self.outside(Outside::IsNearest))
    }

    /// Like `place`, for writing. With lenient bounds, also the condition that the element exists, if it is not
    /// certain.
    pub fn written_place(&mut self, p: &Place) -> (Option<String>, String) {
        let lost = self.outside(Outside::IsAskedFor);
        let mut holds = Vec::new();
        if lost == Outside::IsAskedFor && self.class.checks {
            let dims = dimensions(self.var_type(p.var));
            for (i, n) in p.indices.iter().zip(dims) {
                let x = self.full(i);
                if !x.range.within(Range::new(0, i128::from(n) - 1)) {
                    self.class.count_check();
                    let at = self.place_of(i);
                    holds.push(format!("levada_holds({}, {n}u, {at})", wide(&x)));
                }
            }
        }
        let condition = (!holds.is_empty()).then(|| holds.join(" && "));
        (condition, self.place_where(p, lost))
    }

    /// How an index out of bounds is handled if it is not a fault.
    fn outside(&self, lenient: Outside) -> Outside {
        if self.class.lenient {
            lenient
        } else {
            Outside::Fails
        }
    }

    /// The source location of an expression, as a C string.
    fn place_of(&self, e: &Expr) -> String {
        let (lines, span) = (&self.w.lines, e.span);
        string_literal(&format!("{}:{}", lines.path(span), lines.line(span)))
    }

    /// The location of an expression that may fail, as C arguments.
    fn fault_place(&self, e: &Expr) -> FaultPlace {
        let (lines, span) = (&self.w.lines, e.span);
        let (line, (first, last)) = (lines.line(span), lines.columns(span));
        if span.file == self.file {
            // Two columns in one number.
            let columns = first | last << 16;
            return FaultPlace::Here(format!("{line}u, {columns:#x}u"));
        }
        let columns = match first {
            0 => String::new(),
            _ if first == last => format!(", column {first}"),
            _ => format!(", columns {first} to {last}"),
        };
        FaultPlace::Elsewhere(string_literal(&format!(
            "{}:{line}{columns}",
            lines.path(span)
        )))
    }

    fn place_where(&mut self, p: &Place, outside: Outside) -> String {
        let base = match p.var {
            VarRef::Global(g) => self.class.homes[g].text(),
            VarRef::Local(l) => self.locals[l].name.clone(),
        };
        if p.indices.is_empty() {
            return base;
        }
        let dims = dimensions(self.var_type(p.var));
        let whole = p.indices.len() == dims.len();
        let mut terms = Vec::new();
        for (d, i) in p.indices.iter().enumerate() {
            let stride: u64 = dims[d + 1..].iter().map(|n| u64::from(*n)).product();
            let x = self.index(i, dims[d], outside);
            if stride == 1 {
                terms.push(x.at_least(prec::ADD));
            } else if x.literal == Some(0) {
            } else {
                terms.push(format!("{} * {stride}", x.at_least(prec::MUL)));
            }
        }
        let sum = if terms.is_empty() {
            "0".to_string()
        } else {
            terms.join(" + ")
        };
        if whole {
            format!("{base}[{sum}]")
        } else {
            format!("&{base}[{sum}]")
        }
    }

    fn index(&mut self, i: &Expr, n: u32, outside: Outside) -> X {
        let x = self.full(i);
        let inside = Range::new(0, i128::from(n) - 1);
        if x.range.within(inside) || !self.class.checks || outside == Outside::IsAskedFor {
            return x;
        }
        self.class.count_check();
        let text = if outside == Outside::IsNearest {
            format!(
                "levada_near(self, {}, {n}u, {})",
                wide(&x),
                self.place_of(i)
            )
        } else {
            match self.fault_place(i) {
                FaultPlace::Here(at) => format!("levada_index(self, {}, {n}u, {at})", wide(&x)),
                FaultPlace::Elsewhere(at) => {
                    format!("levada_index_at(self, {}, {n}u, {at})", wide(&x))
                }
            }
        };
        X::primary(text, Ct::U64, inside)
    }

    /// The element type of a place, and how many elements of it there are.
    pub fn extent(&self, p: &Place) -> (&'a Type, u64) {
        let ty = self.var_type(p.var);
        let n = dimensions(&p.ty).iter().map(|n| u64::from(*n)).product();
        (innermost(ty), n)
    }
}

/// The place of a fault as arguments in C: a line and columns of the action's file, or a text.
enum FaultPlace {
    Here(String),
    Elsewhere(String),
}

/// How an index out of bounds is handled.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Fails,
    IsNearest,
    /// It was checked before.
    IsAskedFor,
}

/// The parts of a concatenation.
fn addends<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &e.kind {
        ExprKind::Binary(BinOp::Add, a, b) if is_concatenation(e) => {
            addends(a, out);
            addends(b, out);
        }
        _ => out.push(e),
    }
}
