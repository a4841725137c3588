// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads preprocessed C, as far as forks need it: which names are types, what functions take and
//! give, what members structs have; and, in the functions that hold a `!!`, every statement and
//! expression, since a fork must know what it is part of and which jumps leave its block.
//!
//! What holds no fork and cannot be understood is stepped over: the C compiler will judge it.

mod decl;
mod declarator;
mod expr;
mod order;
mod specifiers;
mod stmt;
mod typing;

use crate::lex::{Kind, Lexed, Token, forks, spelling};
use crate::types::{Tags, Type};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A range of tokens, by their indices: from the first to behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: usize,
    pub end: usize,
}

/// Something that cannot be done, or not be understood, and what to do about it.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// The tokens that are meant, and what is to be said of them.
    pub at: Range,
    pub label: String,
    /// A second place.
    pub also: Option<(Range, String)>,
    pub help: Option<String>,
}

/// `f(args) !! { ... }`.
#[derive(Clone, Debug)]
pub struct Fork {
    /// What is called.
    pub callee: Range,
    /// Its name where it is a function and no pointer.
    pub name: Option<String>,
    /// The name stands in brackets: it is a macro, too.
    pub bracketed: bool,
    pub callee_type: Type,
    pub args: Vec<Range>,
    /// The types of the arguments in the call; none where that is not known.
    pub arg_types: Vec<Option<Type>>,
    /// The arguments that are string literals, as they are written.
    pub literals: Vec<Option<String>>,
    /// The first `!`.
    pub bang: usize,
    /// From its `{` to behind its `}`.
    pub block: Range,
    pub form: Form,
    /// Where the external declaration begins that it stands in.
    pub external: usize,
    /// The function that it stands in.
    pub function: String,
    /// A jump leaves the block.
    pub left: bool,
    /// The names that mean something of the function's own where it stands.
    pub hidden: Rc<HashSet<String>>,
    /// Its block ends the statement, without a semicolon.
    pub closes: bool,
    /// It is an operand whose value nobody wants.
    pub unused: bool,
}

impl Fork {
    /// The whole `f(args) !! { ... }`.
    pub fn range(&self) -> Range {
        Range {
            start: self.callee.start,
            end: self.block.end,
        }
    }
}

/// What a fork is part of.
#[derive(Clone, Debug)]
pub enum Form {
    /// Of some expression.
    Operand,
    /// It is a statement: with its semicolon, if there is one.
    Statement(Range),
    /// `left op= fork`, in an expression or as the whole of a statement.
    Assignment {
        left: Range,
        /// How the left side is kept until the result is there.
        place: Place,
        op: usize,
        whole: Range,
        statement: Option<Range>,
    },
    /// `T a, x = fork`: the last declarator of a declaration in a block.
    Declaration {
        /// The `=`.
        assign: usize,
        name: String,
        whole: Range,
    },
    /// `return fork`.
    Return(Range),
}

/// How the left side of an assignment is evaluated once, before the fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Naming it has no effect and finds the same object later.
    Plain,
    /// Its address is kept.
    Address,
    /// The way from an object to a part of it that may have no address, or not one that all of its type
    /// have: a bit-field, an element of a vector or of what is packed. The address of the object is kept
    /// (the value, if it is a pointer to it), and the indices are.
    Path {
        base: Range,
        pointer: bool,
        steps: Vec<Access>,
    },
}

/// A step from an object to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The token of its name.
    Member(usize),
    Index(Range),
}

/// An expression whose parts are evaluated one after the other, since a fork is among them: each step
/// into a variable, in this order, which stands for it in what remains.
#[derive(Clone, Debug)]
pub struct Sequence {
    pub range: Range,
    /// It is a statement: with its semicolon, if there is one.
    pub statement: Option<Range>,
    /// It is an object that is assigned to, or whose part is.
    pub place: bool,
    pub steps: Vec<Step>,
    pub external: usize,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub range: Range,
    pub what: Kept,
}

/// How a step is kept.
#[derive(Clone, Debug)]
pub enum Kept {
    Value,
    /// Maybe that of a bit-field, which has no type to declare a variable with.
    Member {
        arithmetic: bool,
    },
    /// The address of an object that is not read yet.
    Object,
    /// The left side of an assignment.
    Place(Place),
    /// The result of a fork.
    Fork(usize),
}

/// A jump that leaves the blocks of forks.
#[derive(Clone, Debug)]
pub struct Jump {
    /// From the keyword to behind the semicolon.
    pub range: Range,
    /// What `return` gives.
    pub value: Option<Range>,
    /// It is `a, b`, which would be two in a declaration.
    pub comma: bool,
    /// `return` of an expression that has no value.
    pub void: bool,
    /// The forks that are left, the innermost first.
    pub forks: Vec<usize>,
    /// What the function returns.
    pub result: Option<Type>,
    /// Where the external declaration begins that it stands in.
    pub external: usize,
    /// The names that mean something of the function's own where it stands.
    pub hidden: Rc<HashSet<String>>,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Parsed {
    pub tags: Tags,
    /// In the order of their ends: one inside another comes before it.
    pub forks: Vec<Fork>,
    pub jumps: Vec<Jump>,
    pub sequences: Vec<Sequence>,
    pub refusals: Vec<Refusal>,
    /// The external declarations that hold forks: where each begins, and the declaration of the function
    /// that it defines (without its body), for calls of itself.
    pub externals: Vec<External>,
}

#[derive(Clone, Debug)]
pub struct External {
    pub start: usize,
    /// The head of the definition: specifiers and declarator.
    pub head: Range,
    pub name: String,
    /// It was declared before.
    pub known: bool,
    /// A definition in the old style: what declares it, since its head alone does not.
    pub old_style: Option<String>,
    /// Its head defines a struct, union or enum, so it cannot be repeated.
    pub defines: bool,
    /// The processor that it is compiled for, which changes how vectors are handed over: the attributes that
    /// say so, here or at a declaration before; empty: none do.
    pub target: String,
}

/// Why parsing cannot go on: what was expected at which token.
#[derive(Debug)]
struct Stop {
    at: usize,
    expected: String,
    /// It may be right, but is nested too deeply.
    deep: bool,
}

type Result<T> = std::result::Result<T, Stop>;

#[derive(Clone, Debug)]
enum Name {
    Typedef(Type),
    Value(Type),
    /// Its value, where that could be told.
    Enumerator(Option<i128>),
}

#[derive(Debug, Default)]
struct Scope {
    names: HashMap<String, Name>,
    tags: HashMap<String, usize>,
    /// Objects that others may change: static, external.
    shared: HashSet<String>,
}

/// What encloses a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Loop,
    Switch,
    /// The condition of a loop or switch, where compilers differ about what `break` leaves.
    Condition,
    /// The block of a fork; its number once it is known is its place in `open`.
    Fork(usize),
}

/// A jump that has been seen, before the labels of the function are known.
#[derive(Debug)]
struct Goto {
    label: String,
    range: Range,
    /// The blocks of forks around it, from the outside.
    forks: Vec<usize>,
    hidden: Rc<HashSet<String>>,
}

#[derive(Debug)]
struct Label {
    at: usize,
    forks: Vec<usize>,
    twice: bool,
}

/// What is known of the function whose body is being read.
#[derive(Debug, Default)]
struct Body {
    name: String,
    result: Option<Type>,
    around: Vec<Around>,
    gotos: Vec<Goto>,
    labels: HashMap<String, Label>,
    /// Labels whose address is taken.
    addressed: Vec<(String, usize)>,
    /// It is a function inside a function.
    nested: bool,
    /// Gotos of functions inside it, to labels that are not theirs.
    from_inside: Vec<(String, Range)>,
    /// How many forks there were before it.
    forks_before: usize,
    /// How many brackets are open around the expression that is read.
    around_parens: u32,
    /// The last statement of the block that is read is its value.
    valued: bool,
    /// Every `*` that stands behind the block of a fork.
    stars: Vec<usize>,
    /// Names that stand behind a `&` somewhere in the function, so that others may have their address.
    taken: HashSet<String>,
}

struct Parser<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
    at: usize,
    /// The first `!` of every fork.
    bangs: Vec<usize>,
    scopes: Vec<Scope>,
    body: Body,
    external: usize,
    /// Not zero: what is parsed is not evaluated.
    unevaluated: u32,
    /// Not zero: what is parsed must be constant.
    constant: u32,
    /// How deep the recursion is.
    nesting: u32,
    /// Numbers of forks in the order of their beginnings, to those in the order of their ends.
    opened: usize,
    numbers: HashMap<usize, usize>,
    /// The processors that functions are compiled for, where attributes say so.
    targets: HashMap<String, Vec<String>>,
    /// The names and types of the parameters of the declarator that was read last.
    params: Vec<(Option<String>, Type)>,
    out: Parsed,
}

/// Deeper than this nothing is read: the stack has an end.
const MAX_NESTING: u32 = 3000;
/// Bytes of stack for what is nested so deeply; they are taken from the system as they are touched.
pub(crate) const STACK: usize = 256 << 20;

/// Reads a preprocessed file.
pub fn parse(text: &[u8], lexed: &Lexed) -> Parsed {
    let mut parser = Parser {
        text,
        tokens: &lexed.tokens,
        at: 0,
        bangs: forks(&lexed.tokens),
        scopes: vec![Scope::default()],
        body: Body::default(),
        external: 0,
        unevaluated: 0,
        constant: 0,
        nesting: 0,
        opened: 0,
        numbers: HashMap::new(),
        targets: HashMap::new(),
        params: Vec::new(),
        out: Parsed::default(),
    };
    stacker::grow(STACK, || parser.unit());
    parser.finish()
}

impl Parser<'_> {
    // ---- tokens ----

    fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    /// What string literals and nothing else stand for.
    fn literal(&self, range: Range) -> Option<String> {
        let tokens = self.tokens.get(range.start..range.end)?;
        if !tokens.iter().all(|t| t.kind == Kind::String) {
            return None;
        }
        let spelled: Vec<String> = tokens.iter().map(|t| self.spelled(t)).collect();
        Some(spelled.join(" ")).filter(|s| !s.contains('\n'))
    }

    fn word_at(&self, i: usize) -> Option<String> {
        let t = self.tokens.get(i).filter(|t| t.kind == Kind::Word)?;
        Some(self.spelled(t))
    }

    fn spelled(&self, t: &Token) -> String {
        let bytes = spelling(&self.text[t.start as usize..t.end as usize]);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The tokens of a range, a blank between two.
    fn words(&self, range: Range) -> String {
        let words: Vec<String> = self.tokens[range.start..range.end]
            .iter()
            .map(|t| self.spelled(t))
            .collect();
        words.join(" ")
    }

    fn punct_at(&self, i: usize, p: &str) -> bool {
        matches!(self.kind(i), Some(Kind::Punct(q)) if q == p)
    }

    fn is(&self, p: &str) -> bool {
        self.punct_at(self.at, p)
    }

    fn is_word(&self, w: &str) -> bool {
        self.is_word_at(self.at, w)
    }

    fn is_word_at(&self, i: usize, w: &str) -> bool {
        match self.tokens.get(i) {
            Some(t) if t.kind == Kind::Word => {
                let bytes = &self.text[t.start as usize..t.end as usize];
                bytes == w.as_bytes() || (bytes.contains(&b'\\') && self.spelled(t) == w)
            }
            _ => false,
        }
    }

    fn one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|w| self.is_word(w))
    }

    fn eat(&mut self, p: &str) -> bool {
        let there = self.is(p);
        self.at += usize::from(there);
        there
    }

    fn eat_word(&mut self, w: &str) -> bool {
        let there = self.is_word(w);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, p: &str) -> Result<()> {
        if self.eat(p) {
            Ok(())
        } else {
            self.stop(format!("`{p}`"))
        }
    }

    fn stop<T>(&self, expected: impl Into<String>) -> Result<T> {
        Err(Stop {
            at: self.at,
            expected: expected.into(),
            deep: false,
        })
    }

    fn too_deep<T>(&self) -> Result<T> {
        Err(Stop {
            at: self.at,
            expected: String::new(),
            deep: true,
        })
    }

    /// From an opening bracket to behind its closing one.
    fn skip_group(&mut self) -> Result<()> {
        let mut depth = 0usize;
        while let Some(kind) = self.kind(self.at) {
            self.at += 1;
            match kind {
                Kind::Punct("(" | "[" | "{") => depth += 1,
                Kind::Punct(")" | "]" | "}") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        self.stop("a closing bracket")
    }

    fn holds_fork(&self, start: usize, end: usize) -> bool {
        let first = self.bangs.partition_point(|&b| b < start);
        self.bangs.get(first).is_some_and(|&b| b < end)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= MAX_NESTING {
            return self.too_deep();
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    // ---- names ----

    fn depth(&self) -> u32 {
        self.scopes.len() as u32 - 1
    }

    fn lookup(&self, name: &str) -> Option<(&Name, u32)> {
        let found = self.scopes.iter().enumerate().rev();
        found
            .filter_map(|(i, s)| s.names.get(name).map(|n| (n, i as u32)))
            .next()
    }

    fn define(&mut self, name: String, what: Name) {
        let scope = self.scopes.last_mut().expect("file scope stays");
        scope.names.insert(name, what);
    }

    /// All names of the function that is read, here.
    fn hidden(&self) -> Rc<HashSet<String>> {
        let inner = self.scopes[1..].iter();
        let names = inner.flat_map(|s| s.names.keys().chain(s.tags.keys()));
        Rc::new(names.cloned().collect())
    }

    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(Scope::default());
        let result = parse(self);
        self.scopes.pop();
        result
    }

    // ---- findings ----

    fn refuse(
        &mut self,
        code: &'static str,
        at: Range,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.out.refusals.push(Refusal {
            code,
            message: message.into(),
            at,
            label: label.into(),
            also: None,
            help: Some(help.into()),
        });
    }

    /// Everything that was found; forks that were stepped over are refused.
    fn finish(mut self) -> Parsed {
        let understood: Vec<usize> = self.out.forks.iter().map(|f| f.bang).collect();
        let failed = !self.out.refusals.is_empty();
        for bang in self.bangs.clone() {
            if !understood.contains(&bang) && !failed {
                self.refuse(
                    "fork-place",
                    Range {
                        start: bang,
                        end: bang + 2,
                    },
                    "a fork cannot stand here",
                    "what stands here is not run as part of a function",
                    "fork in a statement of a function, and use its result here",
                );
            }
        }
        // Numbers are given where a fork begins; from here on they are places in `forks`.
        let numbers = &self.numbers;
        for jump in &mut self.out.jumps {
            jump.forks.retain(|n| numbers.contains_key(n));
            for fork in &mut jump.forks {
                *fork = numbers[fork];
            }
        }
        for jump in &self.out.jumps {
            for &fork in &jump.forks {
                self.out.forks[fork].left = true;
            }
        }
        self.out
    }
}
