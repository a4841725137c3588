// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses expressions into a tree, and the forks in them.

use super::{Access, Around, Fork, Form, Name, Parser, Place, Range, Result};
use crate::lex::{self, Kind};
use crate::types::{self, Type};

#[derive(Debug)]
pub(super) struct Expr {
    pub range: Range,
    pub kind: ExprKind,
}

/// The path from an object to a part of it: members and elements, the outermost first.
pub(super) struct Path<'e> {
    pub base: &'e Expr,
    /// The base is a pointer to the object.
    pub pointer: bool,
    pub parts: Vec<&'e Expr>,
}

/// Maximum number of operators of one chain, such as `a + b + c`: the tree is as deep, and is walked recursively.
const CHAIN_OPERATORS_MAX: u32 = 20_000;

/// The kinds of expressions, as far as forks need them.
#[derive(Debug)]
pub(super) enum ExprKind {
    Name(String),
    Number,
    String,
    Char,
    Paren(Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Member {
        of: Box<Expr>,
        arrow: bool,
        name: String,
    },
    Unary(&'static str, Box<Expr>),
    Postfix(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Assign {
        left: Box<Expr>,
        right: Box<Expr>,
        /// The token of the operator.
        op: usize,
    },
    /// The condition, the first branch (`None`: `a ?: b` of GNU C), and the second.
    Conditional(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Cast(Type, Box<Expr>),
    /// A compound literal, with its initialisers.
    Compound(Type, Vec<Expr>),
    /// `sizeof` and the like: a constant of the type of `sizeof`.
    Size,
    /// `({ ... })`.
    Block,
    /// A fork, by its index in `forks`.
    Fork(usize),
    Other,
}

impl Expr {
    fn new(start: usize, end: usize, kind: ExprKind) -> Expr {
        Expr {
            range: Range { start, end },
            kind,
        }
    }

    /// The index of the fork, if the whole expression is one.
    pub fn fork(&self) -> Option<usize> {
        match &self.kind {
            ExprKind::Fork(n) => Some(*n),
            _ => None,
        }
    }

    /// The expression without parentheses around it.
    pub fn bare(&self) -> &Expr {
        match &self.kind {
            ExprKind::Paren(e) => e.bare(),
            _ => self,
        }
    }
}

const ALIGNOF: &[&str] = &["_Alignof", "alignof", "__alignof", "__alignof__"];
const LONGJMP: &[&str] = &[
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__builtin_longjmp",
];

/// The precedence of a binary operator; a larger number binds more tightly.
fn binding(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

const ASSIGN: &[&str] = &[
    "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=",
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        let start = self.at;
        let mut left = self.assignment()?;
        let mut chain = 0;
        while self.eat(",") {
            self.chained(&mut chain)?;
            self.unused(&left);
            let right = self.assignment()?;
            let kind = ExprKind::Comma(Box::new(left), Box::new(right));
            left = Expr::new(start, self.at, kind);
        }
        Ok(left)
    }

    /// Marks the forks that give an expression its value, which is not used. They are written so that the compiler does
    /// not warn about an unused variable.
    pub(super) fn unused(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Fork(fork) => self.out.forks[*fork].unused = true,
            ExprKind::Paren(of) | ExprKind::Comma(_, of) | ExprKind::Binary("&&" | "||", _, of) => {
                self.unused(of);
            }
            ExprKind::Conditional(_, a, b) => {
                if let Some(a) = a {
                    self.unused(a);
                }
                self.unused(b);
            }
            _ => {}
        }
    }

    pub(super) fn assignment(&mut self) -> Result<Expr> {
        self.deeper(|p| {
            let start = p.at;
            let left = p.conditional()?;
            match p.kind(p.at) {
                Some(Kind::Punct(op)) if ASSIGN.contains(&op) => {}
                _ => return Ok(left),
            }
            let at = p.at;
            p.check_stars(left.range);
            p.at += 1;
            let right = p.assignment()?;
            let whole = Range { start, end: p.at };
            if let Some(fork) = right.fork() {
                let place = p.place(&left);
                p.out.forks[fork].form = Form::Assignment {
                    left: left.range,
                    place,
                    op: at,
                    whole,
                    statement: None,
                };
            }
            Ok(Expr {
                range: whole,
                kind: ExprKind::Assign {
                    left: Box::new(left),
                    right: Box::new(right),
                    op: at,
                },
            })
        })
    }

    fn is_vector(&self, e: &Expr) -> bool {
        self.type_of(e).is_some_and(|ty| types::is_vector(&ty))
    }

    fn is_array(&self, e: &Expr) -> bool {
        let array = |ty: Type| matches!(&**types::resolve(&ty), types::Kind::Array { .. });
        self.type_of(e).is_some_and(array)
    }

    /// How the left side of an assignment is stored before a fork.
    pub(super) fn place(&self, left: &Expr) -> Place {
        fn plain(e: &Expr) -> bool {
            match &e.bare().kind {
                ExprKind::Name(_) => true,
                ExprKind::Member {
                    of, arrow: false, ..
                } => plain(of),
                _ => false,
            }
        }
        if plain(left) {
            return Place::Plain;
        }
        let Some(path) = self.path(left) else {
            return Place::Address;
        };
        let access = |e: &&Expr| match &e.kind {
            ExprKind::Index(_, index) => Access::Index(index.range),
            _ => Access::Member(e.range.end - 1),
        };
        Place::Path {
            base: path.base.range,
            pointer: path.pointer,
            steps: path.parts.iter().map(access).collect(),
        }
    }

    /// The path to a part of a structure or vector, from the outermost object, or from a pointer to it. `None`: the
    /// expression has an address of its own.
    pub(super) fn path<'e>(&self, left: &'e Expr) -> Option<Path<'e>> {
        let mut parts = Vec::new();
        let (mut e, mut pointer, mut part) = (left.bare(), false, false);
        loop {
            let of = match &e.kind {
                ExprKind::Member { of, arrow, .. } => {
                    (pointer, part) = (*arrow, true);
                    of
                }
                ExprKind::Index(of, _) if self.is_vector(of) => {
                    part = true;
                    of
                }
                ExprKind::Index(of, _) if self.is_array(of) => of,
                _ => break,
            };
            parts.push(e);
            e = of.bare();
            if pointer {
                break;
            }
        }
        parts.reverse();
        part.then_some(Path {
            base: e,
            pointer,
            parts,
        })
    }

    pub(super) fn conditional(&mut self) -> Result<Expr> {
        let start = self.at;
        let condition = self.binary(0)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let then = if self.is(":") {
            None
        } else {
            Some(Box::new(self.deeper(Self::expression)?))
        };
        self.expect(":")?;
        let or = self.deeper(Self::conditional)?;
        let kind = ExprKind::Conditional(Box::new(condition), then, Box::new(or));
        Ok(Expr::new(start, self.at, kind))
    }

    fn binary(&mut self, tightest: u8) -> Result<Expr> {
        let start = self.at;
        let mut left = self.cast()?;
        let mut chain = 0;
        while let Some(Kind::Punct(op)) = self.kind(self.at)
            && let Some(binds) = binding(op)
            && binds > tightest
        {
            self.chained(&mut chain)?;
            // After the block of a fork, `*` could also begin the next statement: see check_stars.
            if op == "*" && self.behind_fork() && self.body.around_parens == 0 {
                self.body.stars.push(self.at);
            }
            self.at += 1;
            let right = self.binary(binds)?;
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
            left = Expr::new(start, self.at, kind);
        }
        Ok(left)
    }

    fn cast(&mut self) -> Result<Expr> {
        self.deeper(|p| {
            let start = p.at;
            if !p.is("(") || !p.is_type(p.at + 1) {
                return p.unary();
            }
            p.at += 1;
            let ty = p.type_name()?;
            p.expect(")")?;
            if p.is("{") {
                let mut elements = Vec::new();
                p.initializer(&mut elements)?;
                let e = Expr::new(start, p.at, ExprKind::Compound(ty, elements));
                return p.postfix(e);
            }
            let of = Box::new(p.cast()?);
            Ok(Expr::new(start, p.at, ExprKind::Cast(ty, of)))
        })
    }

    fn unary(&mut self) -> Result<Expr> {
        let start = self.at;
        if let Some(Kind::Punct(op)) = self.kind(self.at) {
            match op {
                "++" | "--" | "&" | "*" | "+" | "-" | "~" | "!" => {
                    self.at += 1;
                    let of = self.cast()?;
                    return Ok(Expr::new(start, self.at, ExprKind::Unary(op, Box::new(of))));
                }
                "&&" => {
                    self.at += 1;
                    let Some(label) = self.word_at(self.at) else {
                        return self.stop("a label");
                    };
                    self.body.addressed.push((label, self.at));
                    self.at += 1;
                    return Ok(Expr::new(start, self.at, ExprKind::Other));
                }
                _ => {}
            }
        }
        if self.is_word("sizeof") || self.one_of(ALIGNOF) || self.one_of(&["_Countof", "_Lengthof"])
        {
            self.at += 1;
            self.unevaluated += 1;
            if self.is("(") && self.is_type(self.at + 1) {
                self.at += 1;
                self.type_name()?;
                self.expect(")")?;
                if self.is("{") {
                    self.initializer(&mut Vec::new())?;
                    let literal = Expr::new(start, self.at, ExprKind::Other);
                    self.postfix(literal)?;
                }
            } else {
                self.cast()?;
            }
            self.unevaluated -= 1;
            return Ok(Expr::new(start, self.at, ExprKind::Size));
        }
        if self.one_of(&["__extension__", "__real__", "__imag__", "__real", "__imag"]) {
            let transparent = self.is_word("__extension__");
            self.at += 1;
            let of = Box::new(self.cast()?);
            let kind = if transparent {
                ExprKind::Paren(of)
            } else {
                ExprKind::Unary("__real__", of)
            };
            return Ok(Expr::new(start, self.at, kind));
        }
        let primary = self.primary()?;
        self.postfix(primary)
    }

    fn primary(&mut self) -> Result<Expr> {
        let start = self.at;
        let kind = match self.kind(start) {
            Some(Kind::Number) => {
                self.at += 1;
                ExprKind::Number
            }
            Some(Kind::Char) => {
                self.at += 1;
                ExprKind::Char
            }
            Some(Kind::String) => {
                while self.kind(self.at) == Some(Kind::String) {
                    self.at += 1;
                }
                ExprKind::String
            }
            Some(Kind::Punct("(")) if self.punct_at(start + 1, "{") => {
                self.at += 1;
                let outside = std::mem::take(&mut self.body.around_parens);
                self.block(true)?;
                self.body.around_parens = outside;
                self.expect(")")?;
                ExprKind::Block
            }
            Some(Kind::Punct("(")) => {
                self.at += 1;
                let inner = self.inside(Self::expression)?;
                self.expect(")")?;
                ExprKind::Paren(Box::new(inner))
            }
            Some(Kind::Word) => {
                let word = self.word_at(start).unwrap_or_default();
                match word.as_str() {
                    "_Generic" => {
                        self.at += 1;
                        self.inside(Self::generic)?;
                        ExprKind::Other
                    }
                    "__builtin_va_arg"
                    | "__builtin_offsetof"
                    | "__builtin_types_compatible_p"
                    | "__builtin_choose_expr"
                    | "__builtin_convertvector"
                    | "__builtin_bit_cast"
                        if self.punct_at(start + 1, "(") =>
                    {
                        self.at += 1;
                        self.inside(|p| p.builtin(&word))?
                    }
                    _ if self.is_type(start) => return self.stop("an expression"),
                    _ => {
                        self.at += 1;
                        ExprKind::Name(word)
                    }
                }
            }
            _ => return self.stop("an expression"),
        };
        Ok(Expr::new(start, self.at, kind))
    }

    /// Whether the block of a fork ends here.
    pub(super) fn behind_fork(&self) -> bool {
        let last = self.out.forks.last();
        last.is_some_and(|f| f.block.end == self.at)
    }

    /// Parses within brackets, where no statement can end.
    fn inside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.body.around_parens += 1;
        let result = parse(self);
        self.body.around_parens -= 1;
        result
    }

    /// Parses the operands of `_Generic`: `(e, type: e, default: e)`.
    fn generic(&mut self) -> Result<()> {
        self.expect("(")?;
        self.unevaluated += 1;
        if self.is_type(self.at) {
            self.type_name()?;
        } else {
            self.assignment()?;
        }
        while self.eat(",") {
            if !self.eat_word("default") {
                self.type_name()?;
            }
            self.expect(":")?;
            self.assignment()?;
        }
        self.unevaluated -= 1;
        self.expect(")")
    }

    /// Parses the arguments of a built-in function that takes types.
    fn builtin(&mut self, word: &str) -> Result<ExprKind> {
        self.expect("(")?;
        let (mut last, mut values) = (None, Vec::new());
        loop {
            if self.is_type(self.at) {
                last = Some(self.type_name()?)
            } else {
                values.push(self.conditional()?)
            }
            // The member in `offsetof(struct s, a[2].b)` is parsed as an expression as well.
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(match (word, last) {
            ("__builtin_va_arg" | "__builtin_convertvector" | "__builtin_bit_cast", Some(ty)) => {
                ExprKind::Compound(ty, values)
            }
            ("__builtin_offsetof", _) => ExprKind::Size,
            _ => ExprKind::Other,
        })
    }

    fn postfix(&mut self, mut e: Expr) -> Result<Expr> {
        let start = e.range.start;
        let mut chain = 0;
        loop {
            self.chained(&mut chain)?;
            let Some(Kind::Punct(op)) = self.kind(self.at) else {
                return Ok(e);
            };
            let ended = self.behind_fork() && self.body.around_parens == 0;
            let kind = match op {
                "[" if !(ended && self.punct_at(self.at + 1, "[")) => {
                    self.at += 1;
                    let index = self.inside(Self::expression)?;
                    self.expect("]")?;
                    ExprKind::Index(Box::new(e), Box::new(index))
                }
                "(" if !ended => {
                    let args = self.inside(Self::arguments)?;
                    let call = ExprKind::Call(Box::new(e), args);
                    let call = Expr::new(start, self.at, call);
                    if lex::is_fork(self.tokens, self.at) {
                        e = self.fork(call)?;
                        continue;
                    }
                    self.check_longjmp(&call);
                    call.kind
                }
                "." | "->" => {
                    self.at += 1;
                    let Some(name) = self.word_at(self.at) else {
                        return self.stop("the name of a member");
                    };
                    self.at += 1;
                    let arrow = op == "->";
                    let of = Box::new(e);
                    ExprKind::Member { of, arrow, name }
                }
                "++" | "--" if !ended => {
                    self.at += 1;
                    ExprKind::Postfix(Box::new(e))
                }
                "!" if lex::is_fork(self.tokens, self.at) => {
                    self.not_a_call(&e);
                    self.at += 2;
                    self.skip_group()?;
                    ExprKind::Other
                }
                _ => return Ok(e),
            };
            e = Expr::new(start, self.at, kind);
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.eat(")") {
            return Ok(args);
        }
        loop {
            args.push(self.assignment()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    /// Parses an initialiser and appends its expressions. Returns whether it has braces.
    pub(super) fn initializer(&mut self, elements: &mut Vec<Expr>) -> Result<bool> {
        if !self.is("{") {
            let e = self.assignment()?;
            elements.push(e);
            return Ok(false);
        }
        self.deeper(|p| {
            p.at += 1;
            while !p.eat("}") {
                p.inside(|p| p.designated(elements))?;
                if !p.eat(",") {
                    p.expect("}")?;
                    break;
                }
            }
            Ok(true)
        })
    }

    fn designated(&mut self, elements: &mut Vec<Expr>) -> Result<()> {
        if matches!(self.kind(self.at), Some(Kind::Word)) && self.punct_at(self.at + 1, ":") {
            self.at += 2;
        }
        let mut any = false;
        loop {
            if self.eat(".") {
                self.at += 1;
            } else if self.is("[") {
                self.at += 1;
                self.conditional()?;
                if self.eat("...") {
                    self.conditional()?;
                }
                self.expect("]")?;
            } else {
                break;
            }
            any = true;
        }
        if any {
            // Old GNU C allowed `[3] value` without `=`.
            self.eat("=");
        }
        self.initializer(elements).map(|_| ())
    }

    /// Counts an operator of a chain, and fails if there are too many.
    fn chained(&self, chain: &mut u32) -> Result<()> {
        *chain += 1;
        if *chain > CHAIN_OPERATORS_MAX {
            self.too_deep()
        } else {
            Ok(())
        }
    }

    // ---- forks ----

    fn not_a_call(&mut self, e: &Expr) {
        self.refuse(
            "fork-no-call",
            e.range,
            "`!!` must follow a call",
            "this is not a call",
            "write f(arguments) !! { ... }, or (f)(arguments) !! { ... } if f is also a macro",
        );
    }

    /// Parses `!! { ... }` after a call.
    fn fork(&mut self, call: Expr) -> Result<Expr> {
        let ExprKind::Call(callee, args) = call.kind else {
            return self.stop("a call");
        };
        let bang = self.at;
        let marks = Range {
            start: bang,
            end: bang + 2,
        };
        self.fork_can_stand(marks);
        let number = self.opened;
        self.opened += 1;
        self.at += 2;
        let open = self.at;
        self.body.around.push(Around::Fork(number));
        let outside = std::mem::take(&mut self.body.around_parens);
        let block = self.compound();
        self.body.around_parens = outside;
        self.body.around.pop();
        block?;

        self.in_order(&callee, None);
        for arg in &args {
            self.in_order(arg, None);
        }
        let callee_type = self.type_of(&callee).unwrap_or_else(types::unknown);
        let name = match &callee.bare().kind {
            ExprKind::Name(n) => match self.lookup(n) {
                Some((Name::Value(ty), depth))
                    if matches!(&**types::resolve(ty), types::Kind::Function(_)) =>
                {
                    // A prototype in a block is not visible at file scope.
                    (depth == 0 || self.lookup_file(n)).then(|| n.clone())
                }
                _ => None,
            },
            _ => None,
        };
        let fork = Fork {
            callee: callee.range,
            name,
            bracketed: matches!(callee.kind, ExprKind::Paren(_)),
            arg_types: args.iter().map(|a| self.type_of(a)).collect(),
            literals: args.iter().map(|a| self.literal(a.range)).collect(),
            args: args.iter().map(|a| a.range).collect(),
            callee_type,
            bang,
            block: Range {
                start: open,
                end: self.at,
            },
            form: Form::Operand,
            external: self.external,
            function: self.body.name.clone(),
            left: false,
            hidden: self.hidden(),
            closes: false,
            unused: false,
        };
        let range = fork.range();
        self.numbers.insert(number, self.out.forks.len());
        self.out.forks.push(fork);
        Ok(Expr {
            range,
            kind: ExprKind::Fork(self.out.forks.len() - 1),
        })
    }

    fn lookup_file(&self, name: &str) -> bool {
        self.scopes[0].names.contains_key(name)
    }

    /// Refuses a fork in a place that is not executed, or in a nested function.
    fn fork_can_stand(&mut self, at: Range) {
        if self.unevaluated > 0 {
            self.refuse(
                "fork-unevaluated",
                at,
                "this expression is not evaluated, so a fork in it cannot run",
                "a fork in sizeof, typeof or _Generic",
                "fork in a statement before, and use the result here",
            );
        } else if self.constant > 0 {
            self.refuse(
                "fork-constant",
                at,
                "this expression must be constant, so it cannot contain a fork",
                "a fork in an initialiser of a static object, an array length or a case",
                "fork in a statement, and assign the result",
            );
        }
        if self.body.nested {
            self.refuse(
                "fork-nested-function",
                at,
                "a nested function cannot fork",
                "another worker cannot run this call, which may use the outer function's variables",
                "move the function to file scope, and pass what it uses as arguments",
            );
        }
    }

    /// Refuses `longjmp` in the block of a fork, which would leave the block without a join.
    pub(super) fn check_longjmp(&mut self, e: &Expr) {
        let ExprKind::Call(callee, _) = &e.kind else {
            return;
        };
        let ExprKind::Name(name) = &callee.bare().kind else {
            return;
        };
        let inside = self
            .body
            .around
            .iter()
            .any(|a| matches!(a, Around::Fork(_)));
        if inside && LONGJMP.contains(&name.as_str()) {
            self.refuse(
                "fork-longjmp",
                e.range,
                format!("`{name}` out of the block of a fork would leave the call unjoined"),
                "the fork is still open here",
                "leave the block with return, break or goto, which join the fork, and jump after that",
            );
        }
    }
}
