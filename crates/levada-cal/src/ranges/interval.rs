// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intervals of integers, and what the language's operations make of them.

use crate::ir::*;

/// All integers from `lo` to `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub lo: i128,
    pub hi: i128,
}

pub const I32: Range = Range::new(i32::MIN as i128, i32::MAX as i128);
pub const U32: Range = Range::new(0, u32::MAX as i128);
pub const I64: Range = Range::new(i64::MIN as i128, i64::MAX as i128);
pub const U64: Range = Range::new(0, u64::MAX as i128);

impl Range {
    pub const fn new(lo: i128, hi: i128) -> Range {
        Range { lo, hi }
    }

    pub const fn exactly(v: i128) -> Range {
        Range { lo: v, hi: v }
    }

    /// Everything a variable of this type (or an element of this list) can hold.
    pub fn of(ty: &Type) -> Range {
        match ty {
            Type::Bool => Range::new(0, 1),
            Type::Int { signed, .. } => {
                let n = ty.container() as u32;
                if *signed {
                    Range::new(-(1i128 << (n - 1)), (1i128 << (n - 1)) - 1)
                } else {
                    Range::new(0, (1i128 << n) - 1)
                }
            }
            Type::List { elem, .. } => Range::of(elem),
            Type::Float { .. } | Type::String => Range::exactly(0),
        }
    }

    pub fn join(self, o: Range) -> Range {
        Range::new(self.lo.min(o.lo), self.hi.max(o.hi))
    }

    pub fn meet(self, o: Range) -> Option<Range> {
        let r = Range::new(self.lo.max(o.lo), self.hi.min(o.hi));
        (r.lo <= r.hi).then_some(r)
    }

    pub fn within(self, o: Range) -> bool {
        o.lo <= self.lo && self.hi <= o.hi
    }

    pub fn contains(self, v: i128) -> bool {
        self.lo <= v && v <= self.hi
    }

    /// After conversion to `ty`: wraps to anything where it does not fit.
    pub fn convert(self, ty: &Type) -> Range {
        let all = Range::of(ty);
        if self.within(all) { self } else { all }
    }

    fn of_corners(values: [i128; 4]) -> Range {
        Range::new(
            *values.iter().min().expect("four values"),
            *values.iter().max().expect("four values"),
        )
    }

    /// The smallest `-2^k ..= 2^k - 1` that holds both.
    fn around(a: Range, b: Range) -> Range {
        let far = |v: i128| if v < 0 { !v } else { v };
        let m = far(a.lo).max(far(a.hi)).max(far(b.lo)).max(far(b.hi));
        let k = 128 - m.leading_zeros();
        Range::new(-(1i128 << k), (1i128 << k) - 1)
    }

    /// Widened to a bound that recurs seldom, so that a growing range stops growing soon.
    pub fn widen(self, grown: Range, ty: &Type) -> Range {
        let all = Range::of(ty);
        let r = widen_untyped(self, grown);
        r.meet(all).unwrap_or(all)
    }
}

/// The result of an operation on exact integers, before it wraps in its type of `container` bits.
pub fn exact(op: BinOp, a: Range, b: Range, container: u8) -> Range {
    match op {
        BinOp::Add => Range::new(a.lo + b.lo, a.hi + b.hi),
        BinOp::Sub => Range::new(a.lo - b.hi, a.hi - b.lo),
        BinOp::Mul => Range::of_corners([
            a.lo.saturating_mul(b.lo),
            a.lo.saturating_mul(b.hi),
            a.hi.saturating_mul(b.lo),
            a.hi.saturating_mul(b.hi),
        ]),
        BinOp::Div => {
            // Zero divisors never get here; what is left of the divisor lies on either side.
            let parts = [
                b.meet(Range::new(i128::MIN, -1)),
                b.meet(Range::new(1, i128::MAX)),
            ];
            parts
                .into_iter()
                .flatten()
                .map(|b| Range::of_corners([a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi]))
                .reduce(Range::join)
                .unwrap_or(a)
        }
        BinOp::Mod => {
            let m = (b.lo.abs().max(b.hi.abs()) - 1).max(0);
            Range::new(a.lo.min(0).max(-m), a.hi.max(0).min(m))
        }
        BinOp::Shl => {
            let times = |v: i128, n: i128| v.saturating_mul(1i128 << n);
            let n = shift_count(b, container);
            Range::of_corners([
                times(a.lo, n.lo),
                times(a.lo, n.hi),
                times(a.hi, n.lo),
                times(a.hi, n.hi),
            ])
        }
        BinOp::Shr => {
            let n = shift_count(b, container);
            Range::of_corners([a.lo >> n.lo, a.lo >> n.hi, a.hi >> n.lo, a.hi >> n.hi])
        }
        BinOp::BitAnd => match (a.lo >= 0, b.lo >= 0) {
            (true, true) => Range::new(0, a.hi.min(b.hi)),
            (true, false) => Range::new(0, a.hi),
            (false, true) => Range::new(0, b.hi),
            (false, false) => Range::around(a, b),
        },
        BinOp::BitOr | BinOp::BitXor => {
            let around = Range::around(a, b);
            if a.lo >= 0 && b.lo >= 0 {
                let lo = if op == BinOp::BitOr {
                    a.lo.max(b.lo)
                } else {
                    0
                };
                Range::new(lo, around.hi)
            } else {
                around
            }
        }
        _ => Range::new(0, 1),
    }
}

/// What is left of the count of a shift, which is taken modulo the width.
fn shift_count(b: Range, container: u8) -> Range {
    let width = i128::from(container);
    if b.lo.div_euclid(width) == b.hi.div_euclid(width) {
        Range::new(b.lo.rem_euclid(width), b.hi.rem_euclid(width))
    } else {
        Range::new(0, width - 1)
    }
}

/// The type both sides of a comparison are converted to.
pub fn join_type(a: &Type, b: &Type) -> Type {
    match (a, b) {
        (Type::Float { bits: x }, Type::Float { bits: y }) => Type::Float { bits: *x.max(y) },
        (Type::Float { .. }, _) => a.clone(),
        (_, Type::Float { .. }) => b.clone(),
        (Type::Int { bits: x, signed: s }, Type::Int { bits: y, signed: t }) => match (s, t) {
            (true, false) => Type::Int {
                bits: *x.max(&y.saturating_add(1)),
                signed: true,
            },
            (false, true) => Type::Int {
                bits: *y.max(&x.saturating_add(1)),
                signed: true,
            },
            _ => Type::Int {
                bits: *x.max(y),
                signed: *s,
            },
        },
        (Type::Bool, _) => b.clone(),
        _ => a.clone(),
    }
}

pub fn is_int(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. } | Type::Bool)
}

/// A constant as its type holds it: an `i64` stands for the bits of an unsigned 64-bit one.
pub fn constant(v: i64, ty: &Type) -> Range {
    let all = Range::of(ty);
    let v = if all.lo == 0 && all.hi > I64.hi {
        i128::from(v as u64)
    } else {
        i128::from(v)
    };
    Range::exactly(v).convert(ty)
}

pub fn widen_untyped(old: Range, new: Range) -> Range {
    let mut r = old.join(new);
    if r.lo < old.lo {
        let steps = [0, -1, -128, -32768, I32.lo];
        r.lo = steps.into_iter().find(|s| *s <= r.lo).unwrap_or(I64.lo);
    }
    if r.hi > old.hi {
        let steps = [63, 127, 255, 1023, 32767, 65535, I32.hi, U32.hi, I64.hi];
        r.hi = steps.into_iter().find(|s| *s >= r.hi).unwrap_or(U64.hi);
    }
    r
}
