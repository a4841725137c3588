// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parser: reads preprocessed C, as far as forks need it. Of every file-scope declaration it reads the types:
//! names, parameters, results, members. In a function with a `!!` it reads every statement and expression, to find the
//! expression that contains a fork, and the jumps that leave its block.
//!
//! A declaration that it cannot parse is skipped if it has no fork, and left to the C compiler.

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

/// A range of tokens: the index of the first, and of the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: usize,
    pub end: usize,
}

/// A fork that cannot be translated, with the reason and a remedy.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// The tokens to mark, and the text of the mark.
    pub at: Range,
    pub label: String,
    /// A second mark.
    pub also: Option<(Range, String)>,
    pub help: Option<String>,
}

/// `f(args) !! { ... }`.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The called expression.
    pub callee: Range,
    /// The name of the called function; `None`: the call is through a pointer.
    pub name: Option<String>,
    /// The name is in parentheses, since it is a macro as well.
    pub bracketed: bool,
    pub callee_type: Type,
    pub args: Vec<Range>,
    /// The types of the arguments in the call; `None` where unknown.
    pub arg_types: Vec<Option<Type>>,
    /// For each argument that is a string literal: its text.
    pub literals: Vec<Option<String>>,
    /// The first `!`.
    pub bang: usize,
    /// The block with its braces.
    pub block: Range,
    pub form: Form,
    /// The first token of the external declaration that contains the fork.
    pub external: usize,
    /// The name of the function that contains the fork.
    pub function: String,
    /// A jump leaves the block.
    pub left: bool,
    /// The names that are local to the function at the fork, so that they may hide names of file scope.
    pub hidden: Rc<HashSet<String>>,
    /// The statement ends with the block, without a semicolon.
    pub closes: bool,
    /// The fork is an operand, and its value is not used.
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

/// The statement or expression that contains a fork.
#[derive(Clone, Debug)]
pub enum Form {
    /// The fork is an operand of an expression.
    Operand,
    /// The fork is a statement: with its semicolon, if it has one.
    Statement(Range),
    /// `left op= fork`, in an expression or as a statement.
    Assignment {
        left: Range,
        /// How the left side is kept until the result is known.
        place: Place,
        /// The operator.
        op: usize,
        whole: Range,
        /// The statement with its semicolon, if the assignment is one.
        statement: Option<Range>,
    },
    /// `T a, x = fork`: the fork initialises the last variable of a declaration in a block.
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
    /// It has no side effect and names the same object later, so nothing is stored.
    Plain,
    /// Its address is stored.
    Address,
    /// A part of an object that may have no address, or a misaligned one: a bit-field, an element of a vector or of a
    /// packed object. Stored are the address of the object and the indices.
    Path {
        base: Range,
        /// The base is a pointer to the object, so its value is stored.
        pointer: bool,
        steps: Vec<Access>,
    },
}

/// A step from an object to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A member, by the token of its name.
    Member(usize),
    Index(Range),
}

/// An expression with a fork, in which the order of evaluation matters. Its steps are computed into variables, in this
/// order; then the expression is evaluated with the variables in their place.
#[derive(Clone, Debug)]
pub struct Sequence {
    pub range: Range,
    /// The statement with its semicolon, if the expression is one.
    pub statement: Option<Range>,
    /// The expression is an lvalue: it, or a part of it, is assigned to.
    pub place: bool,
    pub steps: Vec<Step>,
    /// The first token of the external declaration that contains it.
    pub external: usize,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub range: Range,
    pub what: Kept,
}

/// How a step is stored.
#[derive(Clone, Debug)]
pub enum Kept {
    /// The value, in a variable of its type.
    Value,
    /// The value, which may be that of a bit-field, so that its type cannot declare a variable.
    Member { arithmetic: bool },
    /// The address of an object that is read later.
    Object,
    /// The left side of an assignment.
    Place(Place),
    /// The result of a fork.
    Fork(usize),
}

/// A jump that leaves the blocks of forks.
#[derive(Clone, Debug)]
pub struct Jump {
    /// The statement with its semicolon.
    pub range: Range,
    /// The value of a `return`.
    pub value: Option<Range>,
    /// The value is a comma expression, which needs parentheses in an initialiser.
    pub comma: bool,
    /// `return` with an expression, in a function without a result.
    pub void: bool,
    /// The forks of the blocks that are left, the innermost first.
    pub forks: Vec<usize>,
    /// The result type of the function.
    pub result: Option<Type>,
    /// The first token of the external declaration that contains the jump.
    pub external: usize,
    /// The names that are local to the function at the jump.
    pub hidden: Rc<HashSet<String>>,
}

/// The content of a file, as far as forks need it.
#[derive(Debug, Default)]
pub struct Parsed {
    pub tags: Tags,
    /// Sorted by their ends: an inner fork comes before the outer one.
    pub forks: Vec<Fork>,
    pub jumps: Vec<Jump>,
    pub sequences: Vec<Sequence>,
    pub refusals: Vec<Refusal>,
    /// The functions with forks.
    pub externals: Vec<External>,
}

/// A function with forks.
#[derive(Clone, Debug)]
pub struct External {
    /// The first token of the definition.
    pub start: usize,
    /// The head of the definition: specifiers and declarator.
    pub head: Range,
    pub name: String,
    /// The function was declared before.
    pub known: bool,
    /// For a definition in the old style: a declaration of the function, since the head alone is none.
    pub old_style: Option<String>,
    /// The head defines a struct, union or enum, so it cannot be repeated.
    pub defines: bool,
    /// The `target` attributes of the function and of earlier declarations, since they change how vectors are passed;
    /// empty: none.
    pub target: String,
}

/// A parse error: what was expected at which token.
#[derive(Debug)]
struct Stop {
    at: usize,
    expected: String,
    /// The nesting is too deep; the text may be correct.
    deep: bool,
}

type Result<T> = std::result::Result<T, Stop>;

#[derive(Clone, Debug)]
enum Name {
    Typedef(Type),
    Value(Type),
    /// An enumerator, and its value if that could be computed.
    Enumerator(Option<i128>),
}

#[derive(Debug, Default)]
struct Scope {
    names: HashMap<String, Name>,
    tags: HashMap<String, usize>,
    /// Static and external objects, which other functions may change.
    shared: HashSet<String>,
}

/// A construct that encloses the statement being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Loop,
    Switch,
    /// The condition of a loop or switch, in which `break` differs between compilers.
    Condition,
    /// The block of a fork, by its number in the order of beginnings.
    Fork(usize),
}

/// A `goto`, resolved when all labels of the function are known.
#[derive(Debug)]
struct Goto {
    label: String,
    range: Range,
    /// The forks of the blocks that contain it, the outermost first.
    forks: Vec<usize>,
    hidden: Rc<HashSet<String>>,
}

#[derive(Debug)]
struct Label {
    at: usize,
    /// The forks of the blocks that contain it, the outermost first.
    forks: Vec<usize>,
    /// Several blocks have a local label of this name.
    twice: bool,
}

/// The function, while its body is being read.
#[derive(Debug, Default)]
struct Body {
    name: String,
    result: Option<Type>,
    around: Vec<Around>,
    gotos: Vec<Goto>,
    labels: HashMap<String, Label>,
    /// Labels of which the address is taken, and the token where it is.
    addressed: Vec<(String, usize)>,
    /// The function is nested in another one.
    nested: bool,
    /// Gotos in nested functions to labels that these do not have.
    from_inside: Vec<(String, Range)>,
    /// Number of forks in the file before the function.
    forks_before: usize,
    /// Number of open brackets around the expression being read.
    around_parens: u32,
    /// The block being read has a value, that of its last statement.
    valued: bool,
    /// Each `*` that follows the block of a fork.
    stars: Vec<usize>,
    /// Variables of which the address is taken somewhere in the function.
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
    /// Number of enclosing constructs that are not evaluated, such as `sizeof`.
    unevaluated: u32,
    /// Number of enclosing constructs that must be constant.
    constant: u32,
    /// Depth of the recursion.
    nesting: u32,
    /// Number of forks begun, which numbers them in the order of beginnings.
    opened: usize,
    /// For each such number, the index in `forks`, which is in the order of ends.
    numbers: HashMap<usize, usize>,
    /// The `target` attributes of functions, by name.
    targets: HashMap<String, Vec<String>>,
    /// The names and types of the parameters of the last declarator.
    params: Vec<(Option<String>, Type)>,
    out: Parsed,
}

/// Maximum depth of the recursion; a declaration that is nested more deeply is refused.
const NESTING_MAX: u32 = 3000;
/// Stack in bytes for that recursion; the system provides its memory as it is touched.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Parses a preprocessed file, given its tokens.
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
    stacker::grow(STACK_BYTES, || parser.unit());
    parser.finish()
}

impl Parser<'_> {
    // ---- tokens ----

    fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    /// The text of a range that consists of string literals only; `None` for others.
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

    /// The tokens of a range as text, separated by blanks.
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

    /// Skips from an opening bracket to after the matching closing one.
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
        if self.nesting >= NESTING_MAX {
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
        let scope = self.scopes.last_mut().expect("file scope is never removed");
        scope.names.insert(name, what);
    }

    /// All names that are local to the function at this place.
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

    /// Returns the result, and refuses the forks that were skipped.
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
                    "this is not executed as a part of a function",
                    "fork in a statement of a function, and use the result here",
                );
            }
        }
        // Replace numbers in the order of beginnings by indices in `forks`.
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
