// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C expressions as values: their text, precedence, C type and value range, and operations that combine them
//! without undefined behaviour.

use super::writer::string_literal;
use crate::c_types::c_type;
use crate::ir::*;
use crate::operators::Scalar;
use crate::ranges::{I32, I64, Range, U32, U64, exact_unary, innermost};

/// The C type of an expression, after promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ct {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Str,
}

impl Ct {
    pub fn name(self) -> &'static str {
        match self {
            Ct::I32 => "int32_t",
            Ct::U32 => "uint32_t",
            Ct::I64 => "int64_t",
            Ct::U64 => "uint64_t",
            Ct::F32 => "float",
            Ct::F64 => "double",
            Ct::Str => "const char *",
        }
    }

    pub fn range(self) -> Range {
        match self {
            Ct::I32 => I32,
            Ct::U32 => U32,
            Ct::I64 => I64,
            _ => U64,
        }
    }

    pub fn rank(self) -> u8 {
        match self {
            Ct::I32 => 0,
            Ct::U32 => 1,
            Ct::I64 => 2,
            Ct::U64 => 3,
            _ => 4,
        }
    }

    /// The C type of a variable of this type after promotion.
    pub fn of(ty: &Type) -> Ct {
        match ty {
            Type::Bool => Ct::I32,
            Type::Int { signed, .. } => match (ty.container(), signed) {
                (8 | 16, _) | (32, true) => Ct::I32,
                (32, false) => Ct::U32,
                (_, true) => Ct::I64,
                _ => Ct::U64,
            },
            Type::Float { bits: 64 } => Ct::F64,
            Type::Float { .. } => Ct::F32,
            Type::String => Ct::Str,
            Type::List { elem, .. } => Ct::of(elem),
        }
    }
}

/// Whether elements of both types have the same representation.
pub fn lie_alike(from: &Type, to: &Type) -> bool {
    c_type(from) == c_type(to) && !rounds(innermost(from), innermost(to))
}

/// Whether a number of type `from` must be rounded explicitly when it is stored as `to`, which C does not support.
pub fn rounds(from: &Type, to: &Type) -> bool {
    const HALF: Type = Type::Float { bits: 16 };
    *to == HALF && *from != HALF
}

/// Precedences of C operators.
pub mod prec {
    pub const COND: u8 = 3;
    pub const OR: u8 = 4;
    pub const AND: u8 = 5;
    pub const BITS: u8 = 6;
    pub const EQ: u8 = 9;
    pub const REL: u8 = 10;
    pub const SHIFT: u8 = 11;
    pub const ADD: u8 = 12;
    pub const MUL: u8 = 13;
    pub const UNARY: u8 = 14;
    pub const PRIMARY: u8 = 16;
}

/// A C expression: its text, type, and range of values.
#[derive(Clone, Debug)]
pub struct X {
    pub text: String,
    pub prec: u8,
    pub ct: Ct,
    pub range: Range,
    pub literal: Option<i128>,
}

impl X {
    pub fn new(text: String, prec: u8, ct: Ct, range: Range) -> X {
        X {
            text,
            prec,
            ct,
            range,
            literal: None,
        }
    }

    pub fn primary(text: String, ct: Ct, range: Range) -> X {
        X::new(text, prec::PRIMARY, ct, range)
    }

    /// An integer literal of a type.
    pub fn literal(v: i128, ct: Ct) -> X {
        let text = match ct {
            Ct::I32 if v == I32.lo => "(-2147483647 - 1)".to_string(),
            Ct::I32 => v.to_string(),
            Ct::U32 => format!("{v}u"),
            Ct::I64 if v == I64.lo => "(-INT64_C(9223372036854775807) - 1)".to_string(),
            Ct::I64 if v < 0 => format!("-INT64_C({})", -v),
            Ct::I64 => format!("INT64_C({v})"),
            _ => format!("UINT64_C({v})"),
        };
        let prec = if v < 0 { prec::UNARY } else { prec::PRIMARY };
        X {
            literal: Some(v),
            ..X::new(text, prec, ct, Range::exactly(v))
        }
    }

    pub fn is_literal(&self) -> bool {
        self.literal.is_some()
    }

    pub fn at_least(&self, prec: u8) -> String {
        if self.prec >= prec {
            self.text.clone()
        } else {
            format!("({})", self.text)
        }
    }

    /// Converted to another integer type, as C does: the low bits stay.
    pub fn cast(self, ct: Ct) -> X {
        if self.ct == ct {
            return self;
        }
        if let Some(v) = self.literal {
            let width = if ct.rank() < 2 { 32 } else { 64 };
            let low = v.rem_euclid(1i128 << width);
            let v = if low > ct.range().hi {
                low - (1i128 << width)
            } else {
                low
            };
            return X::literal(v, ct);
        }
        let range = if self.range.within(ct.range()) {
            self.range
        } else {
            ct.range()
        };
        let text = format!("({}){}", ct.name(), self.at_least(prec::UNARY));
        X::new(text, prec::UNARY, ct, range)
    }
}

pub fn pick(ranges: &[Range]) -> Option<Ct> {
    [Ct::I32, Ct::U32, Ct::I64, Ct::U64]
        .into_iter()
        .find(|ct| ranges.iter().all(|r| r.within(ct.range())))
}

/// `a op b` in the C type `ct`.
pub fn infix(op: &str, prec: u8, a: X, b: X, ct: Ct, range: Range) -> X {
    let fit = |x: X| {
        if x.ct.rank() > ct.rank() || ct == Ct::I32 {
            x.cast(ct)
        } else {
            x
        }
    };
    let (mut a, mut b) = (fit(a), fit(b));
    if a.ct != ct && b.ct != ct {
        // A literal takes the type without a cast.
        if b.literal.is_some() {
            b = b.cast(ct)
        } else {
            a = a.cast(ct)
        }
    }
    let bits = prec <= prec::BITS && prec > prec::AND || prec == prec::SHIFT;
    // Also adds parentheses that C does not need but readers do.
    let (left, right) = match prec {
        _ if bits => (prec::UNARY, prec::UNARY),
        prec::EQ | prec::REL => (prec::SHIFT, prec::SHIFT),
        p => (p, p + 1),
    };
    X::new(
        format!("{} {op} {}", a.at_least(left), b.at_least(right)),
        prec,
        ct,
        range,
    )
}

pub fn operator(op: BinOp) -> (&'static str, u8) {
    match op {
        BinOp::Add => ("+", prec::ADD),
        BinOp::Sub => ("-", prec::ADD),
        BinOp::Mul => ("*", prec::MUL),
        BinOp::Div => ("/", prec::MUL),
        BinOp::Mod => ("%", prec::MUL),
        BinOp::Shl => ("<<", prec::SHIFT),
        BinOp::Shr => (">>", prec::SHIFT),
        BinOp::BitAnd => ("&", prec::BITS),
        BinOp::BitOr => ("|", prec::BITS),
        BinOp::BitXor => ("^", prec::BITS),
        BinOp::Eq => ("==", prec::EQ),
        BinOp::Ne => ("!=", prec::EQ),
        BinOp::Lt => ("<", prec::REL),
        BinOp::Le => ("<=", prec::REL),
        BinOp::Gt => (">", prec::REL),
        BinOp::Ge => (">=", prec::REL),
        BinOp::And => ("&&", prec::AND),
        BinOp::Or => ("||", prec::OR),
    }
}

/// An unsigned 64-bit index keeps its bits as the check's signed argument.
pub fn wide(x: &X) -> String {
    if x.ct == Ct::U64 {
        format!("(int64_t){}", x.at_least(prec::UNARY))
    } else {
        x.text.clone()
    }
}

impl X {
    /// A 64-bit literal that fits is an `int`.
    pub fn shrunk(self) -> X {
        match self.literal {
            Some(v) if Range::exactly(v).within(I32) => X::literal(v, Ct::I32),
            _ => self,
        }
    }
}

pub fn narrow(x: X) -> X {
    if x.ct.rank() >= 2 { x.cast(Ct::U32) } else { x }
}

pub fn shift(op: &str, a: X, count: X, range: Range) -> X {
    let text = format!(
        "{} {op} {}",
        a.at_least(prec::UNARY),
        count.at_least(prec::UNARY)
    );
    X::new(text, prec::SHIFT, a.ct, range)
}

pub fn negated(op: UnOp, x: X, k: u8) -> X {
    let whole = exact_unary(op, x.range);
    let ct = match pick(&[x.range, whole]) {
        Some(Ct::I32) => Ct::I32,
        _ if k <= 32 => Ct::U32,
        _ => Ct::U64,
    };
    let x = x.cast(ct);
    let range = if ct == Ct::I32 { whole } else { ct.range() };
    if op == UnOp::BitNot {
        return X::new(
            format!("~{}", x.at_least(prec::PRIMARY)),
            prec::UNARY,
            ct,
            range,
        );
    }
    if ct == Ct::I32 {
        return X::new(
            format!("-{}", x.at_least(prec::PRIMARY)),
            prec::UNARY,
            ct,
            range,
        );
    }
    X::new(
        format!("0 - {}", x.at_least(prec::MUL)),
        prec::ADD,
        ct,
        range,
    )
}

/// Cut to the container of `ty` and read as its signedness says.
pub fn cut(x: X, ty: &Type) -> X {
    let all = Range::of(ty);
    let ct = Ct::of(ty);
    if x.range.within(all) {
        return x;
    }
    if let Some(v) = x.literal {
        let n = u32::from(ty.container());
        let low = v.rem_euclid(1i128 << n);
        let v = if low > all.hi {
            low - (1i128 << n)
        } else {
            low
        };
        return X::literal(v, ct);
    }
    X::new(
        format!("({}){}", c_type(ty), x.at_least(prec::UNARY)),
        prec::UNARY,
        ct,
        all,
    )
}

pub fn float_literal(v: f64, ct: Ct) -> String {
    let suffix = if ct == Ct::F32 { "f" } else { "" };
    if v.is_nan() {
        return "__builtin_nanf(\"\")".to_string();
    }
    let v = if ct == Ct::F32 {
        f64::from(v as f32)
    } else {
        v
    };
    if v.is_infinite() {
        return format!("{}__builtin_inff()", if v < 0.0 { "-" } else { "" });
    }
    let text = if ct == Ct::F32 {
        format!("{:?}", v as f32)
    } else {
        format!("{v:?}")
    };
    if text.contains(['.', 'e']) {
        format!("{text}{suffix}")
    } else {
        format!("{text}.0{suffix}")
    }
}

/// A list value as C initialisers, missing elements as zero.
pub fn flatten(v: &Value, dims: &[u32], ty: &Type, out: &mut Vec<String>) {
    match (v, dims) {
        (Value::List(vs), [n, rest @ ..]) => {
            for v in vs.iter().take(*n as usize) {
                flatten(v, rest, ty, out);
            }
            let each: u32 = rest.iter().product();
            for _ in 0..(*n as usize).saturating_sub(vs.len()) * each as usize {
                out.push(zero_of(ty).to_string());
            }
        }
        _ => out.push(scalar(v, ty)),
    }
}

/// The default value of a variable.
pub fn zero_of(ty: &Type) -> &'static str {
    match ty {
        Type::String => "\"\"",
        _ => "0",
    }
}

/// A scalar value in C, as a variable of `ty` holds it.
pub fn scalar(v: &Value, ty: &Type) -> String {
    match (v, ty) {
        (Value::List(_), _) => "0".to_string(),
        (Value::Bool(b), Type::Bool) => b.to_string(),
        (Value::String(s), _) => string_literal(s),
        _ => match Scalar::of(v, ty) {
            Scalar::Float(f) => float_literal(f, Ct::of(ty)),
            number => X::literal(number.int(), Ct::of(ty)).text,
        },
    }
}
