// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of expressions, as far as forks need them: of called expressions, and of arguments without a prototype.
//! `None` is an unknown type.

use super::expr::{Expr, ExprKind};
use super::{Name, Parser};
use crate::types::{self, Kind, Type};

impl Parser<'_> {
    pub(super) fn type_of(&self, e: &Expr) -> Option<Type> {
        let ty = self.typed(e)?;
        match &*ty {
            Kind::Unknown => None,
            _ => Some(ty),
        }
    }

    fn typed(&self, e: &Expr) -> Option<Type> {
        match &e.kind {
            ExprKind::Name(name) => match self.lookup(name)?.0 {
                Name::Value(ty) => Some(ty.clone()),
                Name::Enumerator(value) => value.map(|v| types::integer(v, v)),
                Name::Typedef(_) => None,
            },
            ExprKind::Number => self.number(e.range.start),
            ExprKind::Char => {
                let token = &self.tokens[e.range.start];
                let plain = self.text[token.start as usize] == b'\'';
                plain.then(|| types::plain("int"))
            }
            ExprKind::String => {
                let token = &self.tokens[e.range.start];
                let plain = self.text[token.start as usize] == b'"';
                plain.then(|| types::pointer(types::plain("char")))
            }
            ExprKind::Paren(e) | ExprKind::Postfix(e) | ExprKind::Comma(_, e) => self.type_of(e),
            ExprKind::Call(callee, _) => {
                let ty = self.type_of(callee)?;
                types::called(&ty).map(|f| f.result.clone())
            }
            ExprKind::Index(a, i) => {
                let of = |e: &Expr| {
                    let ty = self.type_of(e)?;
                    types::pointed(&ty).or_else(|| types::element(&ty))
                };
                of(a).or_else(|| of(i))
            }
            ExprKind::Member { of, arrow, name } => {
                let mut ty = self.type_of(of)?;
                if *arrow {
                    ty = types::pointed(&ty)?;
                }
                types::member(&self.out.tags, &ty, name)
            }
            ExprKind::Unary("*", e) => types::pointed(&self.type_of(e)?),
            ExprKind::Unary("&", e) => Some(types::pointer(self.type_of(e)?)),
            ExprKind::Unary("!", _) => Some(types::plain("int")),
            ExprKind::Unary("++" | "--", e) => self.type_of(e),
            ExprKind::Unary("__real__", _) => None,
            ExprKind::Unary(_, e) => Some(types::promoted(&self.out.tags, &self.type_of(e)?)),
            ExprKind::Binary(op, a, b) => self.binary_type(op, a, b),
            ExprKind::Assign { left, .. } => self.type_of(left),
            ExprKind::Conditional(c, a, b) => {
                let a = a.as_ref().unwrap_or(c);
                let (a, b) = (self.type_of(a)?, self.type_of(b)?);
                if types::decayed(&a) == types::decayed(&b) {
                    Some(a)
                } else {
                    self.common(&a, &b)
                }
            }
            ExprKind::Cast(ty, _) | ExprKind::Compound(ty, _) => Some(ty.clone()),
            ExprKind::Size => Some(types::plain(types::SIZE)),
            ExprKind::Fork(n) => {
                let fork = &self.out.forks[*n];
                types::called(&fork.callee_type).map(|f| f.result.clone())
            }
            ExprKind::Block | ExprKind::Other => None,
        }
    }

    fn binary_type(&self, op: &str, a: &Expr, b: &Expr) -> Option<Type> {
        if matches!(op, "||" | "&&" | "==" | "!=" | "<" | ">" | "<=" | ">=") {
            return Some(types::plain("int"));
        }
        let (a, b) = (self.type_of(a)?, self.type_of(b)?);
        let is_pointer = |t: &Type| types::pointed(t).is_some();
        match op {
            "<<" | ">>" => Some(types::promoted(&self.out.tags, &a)),
            "-" if is_pointer(&a) && is_pointer(&b) => Some(types::plain(types::DIFFERENCE)),
            "+" | "-" if is_pointer(&a) => Some(types::decayed(&a)),
            "+" if is_pointer(&b) => Some(types::decayed(&b)),
            _ => self.common(&a, &b),
        }
    }

    /// The value of a constant integer expression; `None` if it cannot be computed here.
    pub(super) fn value_of(&self, e: &Expr) -> Option<i128> {
        match &e.kind {
            ExprKind::Number => self.integer_value(e.range.start),
            ExprKind::Char => {
                let token = &self.tokens[e.range.start];
                match &self.text[token.start as usize..token.end as usize] {
                    [b'\'', c @ (b' '..=b'~'), b'\''] => Some((*c).into()),
                    _ => None,
                }
            }
            ExprKind::Name(name) => match self.lookup(name)?.0 {
                Name::Enumerator(value) => *value,
                _ => None,
            },
            ExprKind::Paren(e) => self.value_of(e),
            ExprKind::Unary("-", e) => {
                let value = self.value_of(e)?.checked_neg()?;
                (value >= 0 || !self.is_unsigned(e)).then_some(value)
            }
            ExprKind::Unary("+", e) => self.value_of(e),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.value_of(a)?, self.value_of(b)?);
                let value = match *op {
                    "+" => a.checked_add(b),
                    "-" if a < b && self.is_unsigned(e) => None,
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    "/" => a.checked_div(b),
                    "|" => Some(a | b),
                    "&" => Some(a & b),
                    "<<" if (0..63).contains(&b) && a >= 0 => a.checked_mul(1 << b),
                    ">>" if (0..63).contains(&b) && a >= 0 => Some(a >> b),
                    _ => None,
                };
                // The compiler computes in at most 64 bits: a wider value is not the one that it would have.
                value.filter(|v| *v >= i64::MIN.into() && *v <= u64::MAX.into())
            }
            _ => None,
        }
    }

    /// The usual arithmetic conversions, for the standard types.
    fn common(&self, a: &Type, b: &Type) -> Option<Type> {
        const RANKS: [&str; 9] = [
            "int",
            "unsigned",
            "long",
            "unsigned long",
            "long long",
            "unsigned long long",
            "float",
            "double",
            "long double",
        ];
        let rank = |t: &Type| {
            let t = match &**types::resolve(t) {
                Kind::Plain { words, .. } if words == "float" => t.clone(),
                _ => types::promoted(&self.out.tags, t),
            };
            let Kind::Plain { words, .. } = &**types::resolve(&t) else {
                return None;
            };
            let name = canonical(words)?;
            RANKS.iter().position(|r| *r == name)
        };
        let (a, b) = (rank(a)?, rank(b)?);
        Some(types::plain(RANKS[a.max(b)]))
    }

    /// Whether the expression contains a number with the suffix `u`.
    fn is_unsigned(&self, e: &Expr) -> bool {
        let mut tokens = self.tokens[e.range.start..e.range.end].iter();
        tokens.any(|t| t.kind == crate::lex::Kind::Number && self.spelled(t).contains(['u', 'U']))
    }

    fn integer_value(&self, i: usize) -> Option<i128> {
        let text = self.spelled(&self.tokens[i]).to_ascii_lowercase();
        let digits = text.trim_end_matches(['u', 'l']).replace('\'', "");
        let value = if let Some(hex) = digits.strip_prefix("0x") {
            u64::from_str_radix(hex, 16)
        } else if let Some(binary) = digits.strip_prefix("0b") {
            u64::from_str_radix(binary, 2)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(&digits, 8)
        } else {
            digits.parse()
        };
        value.ok().map(i128::from)
    }

    fn number(&self, i: usize) -> Option<Type> {
        let text = self.spelled(&self.tokens[i]).to_ascii_lowercase();
        let hex = text.starts_with("0x");
        let floating = if hex {
            text.contains('p') || text.contains('.')
        } else {
            text.contains('.') || (text.contains('e') && !text.starts_with("0b"))
        };
        if floating {
            let last = text.chars().last()?;
            return Some(types::plain(match last {
                'f' => "float",
                'l' => "long double",
                '0'..='9' | '.' => "double",
                _ => return None,
            }));
        }
        let digits = text.trim_end_matches(['u', 'l']);
        let suffix = &text[digits.len()..];
        let value = u64::try_from(self.integer_value(i)?).ok()?;
        let decimal = !digits.starts_with('0');
        let unsigned = suffix.contains('u');
        let longs = suffix.matches('l').count();
        let fits = |max: u64| value <= max;
        Some(types::plain(match (longs, unsigned) {
            (0, false) if fits(i32::MAX as u64) => "int",
            (0, _) if fits(u32::MAX.into()) && (unsigned || !decimal) => "unsigned",
            (0 | 1, false) if fits(i64::MAX as u64) => "long",
            (0 | 1, _) => "unsigned long",
            (_, false) if fits(i64::MAX as u64) => "long long",
            _ => "unsigned long long",
        }))
    }
}

/// The name in [`Parser::common`] of an arithmetic type that is written with these words.
fn canonical(words: &str) -> Option<&'static str> {
    let count = |w| words.split(' ').filter(|x| *x == w).count();
    let known = ["int", "long", "unsigned", "signed", "float", "double"];
    if words == types::SIZE {
        return Some("unsigned long");
    }
    if words == types::DIFFERENCE {
        return Some("long");
    }
    if !words.split(' ').all(|w| known.contains(&w)) {
        return None;
    }
    Some(match (count("long"), count("unsigned") > 0) {
        (1, _) if count("double") > 0 => "long double",
        (0, _) if count("double") > 0 => "double",
        (0, _) if count("float") > 0 => "float",
        (0, false) => "int",
        (0, true) => "unsigned",
        (1, false) => "long",
        (1, true) => "unsigned long",
        (_, false) => "long long",
        (_, true) => "unsigned long long",
    })
}
