// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checked program (high-level intermediate representation): names resolved, types known, parameters bound.
//!
//! It lies between the syntax tree and [`crate::ir`]: expressions may still be lists, and are not yet split into
//! pure expressions and statements.

use crate::ir::{self, BinOp, Span, UnOp, Value};
use crate::types::Ty;

pub type GlobalId = usize;
pub type ProcId = usize;
pub type LocalId = usize;

/// Why an expression has no value at compile time.
#[derive(Clone, Debug)]
pub enum Stop {
    /// It depends on something that is not known at compile time: a state variable, a native function, or a parameter
    /// without a value.
    NotConstant(Span),
    TooMuchWork(Span),
    /// It depends on an error that was reported.
    Reported,
    /// Its evaluation would fail at run time.
    Fault(Span, String),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    /// The type by the language's rules.
    pub ty: Ty,
    /// The machine type; see [`crate::operators::types`].
    pub machine: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Const(Value),
    Load(Place),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    If {
        arms: Vec<(Expr, Expr)>,
        otherwise: Box<Expr>,
    },
    Call(ProcId, Vec<Expr>),
    List {
        items: Vec<Expr>,
        generators: Vec<Generator>,
    },
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Var {
    Global(GlobalId),
    Local(LocalId),
}

#[derive(Clone, Debug)]
pub struct Place {
    pub var: Var,
    pub indices: Vec<Expr>,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Generator {
    pub var: LocalId,
    /// Inclusive, known at compile time.
    pub from: i64,
    pub to: i64,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    Assign(Place, Expr),
    Call(ProcId, Vec<Expr>),
    Foreach {
        var: LocalId,
        from: Expr,
        to: Expr,
        body: Vec<Stmt>,
    },
    If {
        arms: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    While(Expr, Vec<Stmt>),
    Print {
        parts: Vec<Expr>,
        newline: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
    /// Declared with `=`.
    pub constant: bool,
    /// Its initial value, where that is known at compile time.
    pub value: Option<Value>,
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
    /// A parameter, a unit's variable, or declared with `=`.
    pub constant: bool,
    pub is_param: bool,
    pub init: Option<GlobalInit>,
    pub value: Option<Value>,
    /// Why a constant has no value: an error that was reported, or too much work at compile time.
    pub no_value: Option<Stop>,
}

#[derive(Clone, Debug)]
pub struct GlobalInit {
    pub value: Expr,
    /// Of generators in it.
    pub locals: Vec<Local>,
}

#[derive(Clone, Debug)]
pub struct Proc {
    pub name: String,
    /// The first of `locals`.
    pub params: usize,
    pub locals: Vec<Local>,
    pub result: Option<Ty>,
    pub native: bool,
    /// The C function that a native one is.
    pub symbol: Option<String>,
    pub body: ProcBody,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ProcBody {
    /// Native, or not checked yet.
    None,
    /// The local variables' values in order, then the result.
    Function {
        inits: Vec<(LocalId, Expr)>,
        result: Expr,
    },
    /// The local variables' values are assignments at its head.
    Procedure(Vec<Stmt>),
}

#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Action {
    /// `None` for an action without a tag.
    pub tag: Option<String>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub guards: Vec<Expr>,
    /// The variables of the guards: the input variables, then those of generators.
    pub guard_locals: Vec<Local>,
    /// The input variables first, in order.
    pub locals: Vec<Local>,
    pub tokens: usize,
    pub body: Vec<Stmt>,
    pub schedule_outputs: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub port: usize,
    pub vars: Vec<LocalId>,
    pub repeat: u32,
    pub is_list: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Output {
    pub port: usize,
    pub values: Vec<Expr>,
    pub repeat: u32,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Actor {
    pub name: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub globals: Vec<Global>,
    pub procs: Vec<Proc>,
    pub actions: Vec<Action>,
    pub initializers: Vec<Action>,
    pub outside: Vec<usize>,
    pub fsm: Option<ir::Fsm>,
    pub native: Option<ir::NativeActor>,
    pub span: Span,
}
