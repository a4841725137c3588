// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The abstract syntax tree: what the checker works on, without spaces and comments, with source spans.
//!
//! It is built from the lossless tree ([`build`]). Parts that the parser could not read are omitted, or are an
//! `Error` node, about which later stages report nothing.

mod build;

pub use crate::ir::Span;
pub use build::build;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub text: String,
    pub span: Span,
}

/// `a.b.c`, including the dots.
pub type Path = Ident;

#[derive(Debug, Default)]
pub struct File {
    pub package: Option<Path>,
    pub imports: Vec<Import>,
    /// All qualified names in expressions and statements, which may refer to units.
    pub qualified: Vec<String>,
    pub entity: Option<Entity>,
    /// Whether it has syntax errors, of which other errors may be consequences.
    pub broken: bool,
    /// Whether it has syntax errors, or invalid numbers or strings.
    pub flawed: bool,
}

/// `import a.b.Unit.name;` or `import a.b.Unit.*;`
#[derive(Debug)]
pub struct Import {
    /// Without the `.*`.
    pub path: Path,
    pub all: bool,
    pub span: Span,
}

/// An actor or a unit; a unit has no ports, actions and schedules.
#[derive(Debug)]
pub struct Entity {
    pub is_actor: bool,
    pub name: Ident,
    pub annotations: Vec<Annotation>,
    pub params: Vec<VarDecl>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub vars: Vec<VarDecl>,
    pub functions: Vec<Function>,
    pub procedures: Vec<Procedure>,
    pub actions: Vec<Action>,
    pub initializers: Vec<Action>,
    pub schedules: Vec<Schedule>,
    pub local_fsms: Vec<Fsm>,
    /// Each `a > b > c;`.
    pub priorities: Vec<Vec<Path>>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Annotation {
    pub name: Ident,
}

pub fn has_annotation(annotations: &[Annotation], name: &str) -> bool {
    annotations.iter().any(|a| a.name.text == name)
}

#[derive(Debug)]
pub struct Port {
    pub ty: Type,
    pub name: Ident,
}

#[derive(Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum TypeKind {
    Bool,
    Int {
        signed: bool,
        size: Option<Box<Expr>>,
    },
    Float {
        bits: u8,
    },
    String,
    List {
        elem: Box<Type>,
        size: Box<Expr>,
    },
    Error,
}

#[derive(Debug)]
pub struct VarDecl {
    pub ty: Type,
    pub name: Ident,
    /// The dimensions `[3][4]` after the name, outermost first.
    pub dims: Vec<Expr>,
    pub init: Option<Init>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Init {
    /// `=`, not `:=`.
    pub constant: bool,
    pub value: Expr,
}

#[derive(Debug)]
pub struct Function {
    pub native: bool,
    pub name: Ident,
    pub params: Vec<VarDecl>,
    pub result: Type,
    pub locals: Vec<VarDecl>,
    pub body: Option<Expr>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Procedure {
    pub native: bool,
    pub name: Ident,
    pub params: Vec<VarDecl>,
    pub locals: Vec<VarDecl>,
    pub body: Option<Vec<Stmt>>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Action {
    pub annotations: Vec<Annotation>,
    pub tag: Option<Path>,
    pub inputs: Vec<InputPattern>,
    pub outputs: Vec<OutputPattern>,
    pub guards: Vec<Expr>,
    pub locals: Vec<VarDecl>,
    pub body: Vec<Stmt>,
    pub span: Span,
    /// The tag, or the word `action`: where a message about the whole action points.
    pub head: Span,
}

#[derive(Debug)]
pub struct InputPattern {
    pub port: Ident,
    pub vars: Vec<Ident>,
    pub repeat: Option<Expr>,
    pub span: Span,
}

#[derive(Debug)]
pub struct OutputPattern {
    pub port: Ident,
    pub values: Vec<Expr>,
    pub repeat: Option<Expr>,
    pub span: Span,
}

#[derive(Debug)]
pub enum Schedule {
    Fsm(Fsm),
    RegExp { exp: RegExp, span: Span },
}

/// `name` is the initial state, or a local schedule's own name.
#[derive(Debug)]
pub struct Fsm {
    pub name: Ident,
    pub transitions: Vec<Transition>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Transition {
    pub from: Ident,
    pub tag: Path,
    pub to: Target,
    pub span: Span,
}

#[derive(Debug)]
pub enum Target {
    State(Ident),
    /// `fsm.state(from => to)`: into a local schedule.
    Local {
        span: Span,
    },
}

#[derive(Debug)]
pub enum RegExp {
    Tag(Path),
    Or(Vec<RegExp>),
    Seq(Vec<RegExp>),
    Star(Box<RegExp>),
    Optional(Box<RegExp>),
}

#[derive(Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum StmtKind {
    Assign {
        target: Path,
        indices: Vec<Expr>,
        value: Expr,
    },
    Call {
        name: Path,
        args: Vec<Expr>,
    },
    Foreach {
        var: Box<VarDecl>,
        from: Expr,
        to: Expr,
        body: Vec<Stmt>,
    },
    If {
        arms: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
    },
}

#[derive(Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum ExprKind {
    Bool(bool),
    Int(u64),
    Real(f64),
    Str(String),
    Var(Path),
    Index {
        base: Path,
        indices: Vec<Expr>,
    },
    Call {
        name: Path,
        args: Vec<Expr>,
    },
    Unary(UnOp, Box<Expr>),
    /// Operators of equal precedence, from left to right.
    Chain {
        first: Box<Expr>,
        rest: Vec<(BinOp, Span, Expr)>,
    },
    If {
        arms: Vec<(Expr, Expr)>,
        otherwise: Box<Expr>,
    },
    List {
        items: Vec<Expr>,
        generators: Vec<Generator>,
    },
    Error,
}

#[derive(Debug)]
pub struct Generator {
    pub var: VarDecl,
    pub from: Expr,
    pub to: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnOp {
    Neg,
    Not,
    BitNot,
    /// `#list`: the number of elements.
    Count,
}

/// The operators of the language; most are the representation's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    Op(crate::ir::BinOp),
    /// `**`
    Power,
}
