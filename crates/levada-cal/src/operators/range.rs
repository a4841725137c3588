// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intervals of integers and operations on them: for all values in the operands' intervals, the result of
//! [`super::value`] lies in the resulting interval.

use super::value::Scalar;
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

    /// The range after conversion to `ty`; the full range of `ty` if values may wrap.
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

    /// Widening: enlarges to one of few bounds, so that a growing range stops growing soon.
    pub fn widen(self, grown: Range, ty: &Type) -> Range {
        let all = Range::of(ty);
        let r = widen_untyped(self, grown);
        r.meet(all).unwrap_or(all)
    }
}

/// The result of `op` on exact integers, before it wraps.
pub fn exact_unary(op: UnOp, x: Range) -> Range {
    match op {
        UnOp::Neg => Range::new(-x.hi, -x.lo),
        UnOp::Not => Range::new(
            i128::from(x == Range::exactly(0)),
            i128::from(x.contains(0)),
        ),
        UnOp::BitNot => Range::new(!x.hi, !x.lo),
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
            // Zero divisors are excluded; the remaining divisors are on either side of zero.
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
        _ => match compare(op, a, b) {
            Some(known) => Range::exactly(i128::from(known)),
            None => Range::new(0, 1),
        },
    }
}

/// The result of a comparison for all values of the operands; `None` if it varies, or `op` is not a comparison.
pub fn compare(op: BinOp, a: Range, b: Range) -> Option<bool> {
    let less = |a: Range, b: Range| match () {
        () if a.hi < b.lo => Some(true),
        () if a.lo >= b.hi => Some(false),
        () => None,
    };
    let same = match () {
        () if a.meet(b).is_none() => Some(false),
        () if a.lo == a.hi && a == b => Some(true),
        () => None,
    };
    let not = |b: Option<bool>| b.map(|b| !b);
    match op {
        BinOp::Eq => same,
        BinOp::Ne => not(same),
        BinOp::Lt => less(a, b),
        BinOp::Ge => not(less(a, b)),
        BinOp::Gt => less(b, a),
        BinOp::Le => not(less(b, a)),
        _ => None,
    }
}

/// The range of a shift count, which is taken modulo the width.
fn shift_count(b: Range, container: u8) -> Range {
    let width = i128::from(container);
    if b.lo.div_euclid(width) == b.hi.div_euclid(width) {
        Range::new(b.lo.rem_euclid(width), b.hi.rem_euclid(width))
    } else {
        Range::new(0, width - 1)
    }
}

pub fn is_int(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. } | Type::Bool)
}

/// The range of a constant: an `i64` holds the bits of an unsigned 64-bit one.
pub fn constant(v: i64, ty: &Type) -> Range {
    let all = Range::of(ty);
    match Scalar::of(&Value::Int(v), ty) {
        Scalar::Int(v) => Range::exactly(v),
        _ => all,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::value;

    const BINARY: [BinOp; 16] = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Mod,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::Eq,
        BinOp::Ne,
        BinOp::Lt,
        BinOp::Le,
        BinOp::Gt,
        BinOp::Ge,
    ];

    fn intervals(lo: i128, hi: i128) -> Vec<Range> {
        let from = |a| (a..=hi).map(move |b| Range::new(a, b));
        (lo..=hi).flat_map(from).collect()
    }

    /// All operations on all intervals of small numbers, with shifts of 4 bits.
    #[test]
    fn results_of_all_values_lie_in_the_interval_of_the_result() {
        let all = intervals(-6, 9);
        for op in BINARY {
            for a in &all {
                for b in &all {
                    let range = exact(op, *a, *b, 4);
                    for x in a.lo..=a.hi {
                        for y in b.lo..=b.hi {
                            if let Some(v) = value::exact(op, x, y, 4) {
                                assert!(range.contains(v), "{x} {op:?} {y} of {a:?}, {b:?}");
                            }
                        }
                    }
                }
            }
        }
        for a in &all {
            for x in a.lo..=a.hi {
                for (op, v) in [(UnOp::Neg, -x), (UnOp::BitNot, !x)] {
                    assert!(exact_unary(op, *a).contains(v), "{op:?} {x} of {a:?}");
                }
            }
        }
        for (a, of) in [((0, 0), [0]), ((1, 1), [1])] {
            for x in of {
                let range = exact_unary(UnOp::Not, Range::new(a.0, a.1));
                assert_eq!(range, Range::exactly(1 - x));
            }
        }
        let both = exact_unary(UnOp::Not, Range::new(0, 1));
        assert_eq!(both, Range::new(0, 1));
    }

    /// The result of an operation lies in the interval also at the limits of the container widths, where results wrap.
    #[test]
    fn results_that_wrap_lie_in_the_interval_of_their_type() {
        let types = [(32, true), (32, false), (64, true), (64, false)];
        for (bits, signed) in types {
            let ty = Type::Int { bits, signed };
            let Range { lo, hi } = Range::of(&ty);
            let ends = [lo, lo + 1, lo / 2, 0, 1, 5, 31, 33, hi / 2, hi - 1, hi];
            let values = ends
                .into_iter()
                .chain([-1, -2])
                .filter(|v| (lo..=hi).contains(v));
            let values: Vec<i128> = values.collect();
            let range = |x: i128, y: i128| Range::new(x.min(y), x.max(y));
            for op in BINARY {
                for (i, x) in values.iter().enumerate() {
                    for y in &values {
                        let (a, b) = (range(*x, values[i / 2]), range(*y, values[i / 3]));
                        let whole = exact(op, a, b, bits).convert(&ty);
                        let (v, w) = (value::Scalar::Int(*x), value::Scalar::Int(*y));
                        if value::is_comparison(op) {
                            let holds = value::compare(op, &ty, v, w);
                            assert!(whole.contains(i128::from(holds)), "{x} {op:?} {y}");
                        } else if let Ok(v) = value::binary(op, &ty, (v, &ty), (w, &ty)) {
                            assert!(whole.contains(v.int()), "{x} {op:?} {y} of {a:?}, {b:?}");
                        }
                    }
                }
            }
        }
    }
}
