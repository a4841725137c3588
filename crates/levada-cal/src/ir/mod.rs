// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The intermediate representation: one elaborated network of specialised actors.
//!
//! It sits between checking and code: everything before it knows CAL's syntax and types, everything
//! after it (classification, fusion, the C emitter, the interpreter) knows only this file.
//!
//! * A [`Network`] is flat: hierarchy, parameters and ports of sub-networks are gone.
//! * An [`Actor`] is specialised: its parameters are constants, every width is a number, every
//!   repeat count is known. Two instances with equal parameters share one actor.
//! * Expressions are **scalar and pure** and carry their type; whatever yields a list, or needs a
//!   statement to be computed (generators, list literals, list-valued `if`), has been turned into
//!   statements that fill a variable. Calls in expressions are of functions, which may not write
//!   state variables (natives may do what they like and are called exactly where they are written).
//! * Widths follow the rules of the language (`docs/decisions/widths.md`), and [`crate::operators`]
//!   defines what operators compute: an [`Expr::ty`] is what its value is computed in, at least 32
//!   bits for arithmetic whatever the rules say; arithmetic is carried out in the smallest of 8, 16,
//!   32 and 64 bits that holds the type, two's complement, and wraps there ([`Type::container`]).
//!   Loads and constants have the narrow types they have.
//! * Control is structured: no gotos, no SSA. The C compiler does the low-level work; what we need
//!   to see (ports, rates, guards, state) is explicit.

pub mod action;
pub mod visit;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// [`Span::file`] indexes [`Network::files`] (or the actor's own table).
pub use levada_diag::{SourceFile, Span};

#[derive(Clone, Debug)]
pub struct Network {
    pub name: String,
    pub files: Vec<SourceFile>,
    pub instances: Vec<Instance>,
    pub channels: Vec<Channel>,
}

impl Network {
    /// What `of` finds in the actor of each instance; it is asked once for each actor.
    pub fn of_actors<T>(&self, of: impl Fn(&Actor) -> T) -> Vec<Rc<T>> {
        let mut known: HashMap<*const Actor, Rc<T>> = HashMap::new();
        let each = self.instances.iter().map(|i| {
            let found = known.entry(Arc::as_ptr(&i.actor));
            found.or_insert_with(|| Rc::new(of(&i.actor))).clone()
        });
        each.collect()
    }
}

#[derive(Clone, Debug)]
pub struct Instance {
    /// The path of instance names from the top, joined by `.`; unique in the network.
    pub name: String,
    pub actor: Arc<Actor>,
    pub priority: i32,
}

/// From one output port to one or more input ports; every consumer sees every element.
#[derive(Clone, Debug)]
pub struct Channel {
    pub from: Endpoint,
    pub to: Vec<Endpoint>,
    /// In elements, as the network asks for; `None` leaves it to the emitter.
    pub capacity: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub instance: usize,
    pub port: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int {
        bits: u8,
        signed: bool,
    },
    /// 16 (`half`, held and computed as 32 and rounded when it is stored), 32 or 64.
    Float {
        bits: u8,
    },
    String,
    List {
        elem: Box<Type>,
        len: u32,
    },
}

impl Type {
    /// The width arithmetic on this type is done in: 8, 16, 32 or 64 bits.
    pub fn container(&self) -> u8 {
        match self {
            Type::Int { bits, .. } => match bits {
                0..=8 => 8,
                9..=16 => 16,
                17..=32 => 32,
                _ => 64,
            },
            Type::Float { bits } => *bits,
            _ => 8,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    List(Vec<Value>),
}

#[derive(Clone, Debug)]
pub struct Actor {
    /// The qualified class name, with a suffix when it is specialised: `jpeg.Idct`, `fir.Mac__3`.
    pub name: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// State variables and constants of the actor and of the units it imports (used ones only).
    pub globals: Vec<Var>,
    pub procs: Vec<Proc>,
    pub actions: Vec<Action>,
    /// Run once, in order, before anything fires; their guards are tested like any action's.
    pub initializers: Vec<Action>,
    /// Actions to try, best first, in every state and before the state's own transitions.
    /// Without a schedule this is the whole scheduling.
    pub outside: Vec<ActionId>,
    pub fsm: Option<Fsm>,
    /// `@native`: the actor is written in C or C++, and the parts that are empty here are in its code.
    pub native: Option<NativeActor>,
    pub span: Span,
}

/// An actor that is written in C: its name there, and the values of its parameters.
#[derive(Clone, Debug)]
pub struct NativeActor {
    /// The name of its `lvd_actor_class`.
    pub class: String,
    pub params: Vec<NativeParam>,
}

#[derive(Clone, Debug)]
pub struct NativeParam {
    pub name: String,
    pub ty: Type,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub ty: Type,
    pub init: Init,
    /// Never written after initialisation.
    pub constant: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Init {
    /// All bits zero.
    Zero,
    Value(Value),
    /// Statements that fill the variable (they refer to it as a global); run in order of
    /// declaration when an instance is made.
    Code(Body),
}

/// A function, a procedure, or a native one.
#[derive(Clone, Debug)]
pub struct Proc {
    pub name: String,
    /// Indices into `body.locals`: the first ones are the parameters.
    pub params: usize,
    pub result: Option<Type>,
    /// Lists are passed by reference; a list result is passed as a last, hidden parameter
    /// (`body.locals[params]`) which the body fills.
    pub body: Body,
    /// `@native`: no body; called in C by `name`.
    pub native: bool,
    /// Calls a native, directly or not, or writes global state: never duplicated, moved or dropped.
    pub effects: bool,
    pub span: Span,
}

/// Statements and the local variables they use. Variables of nested blocks are renamed apart.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub locals: Vec<Local>,
    pub stmts: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Type,
    pub span: Span,
}

pub type ActionId = usize;

#[derive(Clone, Debug)]
pub struct Action {
    /// The tag, dots kept (`decode.ac`); `the action at line 12` where it has none.
    pub name: String,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    /// All must hold. They may read the pattern's variables, which only peek.
    /// `guard.locals` starts with the locals that input patterns bind; `body.locals` starts with
    /// the same ones. Statements in it only compute what `conditions` read.
    pub guard: Guard,
    /// The input variables first (in the order of `inputs`, then of `Input::vars`).
    pub body: Body,
    /// `@schedule_outputs`: room for the outputs is part of the firing condition.
    pub schedule_outputs: bool,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub body: Body,
    pub conditions: Vec<Expr>,
}

/// `P:[a, b] repeat r`: consumes `vars.len() * repeat` elements; with `repeat` > 1 (or written
/// `repeat`, even of 1) each variable is a list of `repeat` elements, element i of variable j being
/// token `i * vars.len() + j`.
#[derive(Clone, Debug)]
pub struct Input {
    pub port: usize,
    /// Indices into the locals of guard and body alike.
    pub vars: Vec<usize>,
    pub repeat: u32,
    pub is_list: bool,
    pub span: Span,
}

impl Input {
    pub fn count(&self) -> u32 {
        self.vars.len() as u32 * self.repeat
    }
}

/// `P:[e, f] repeat r`: produced after the body has run, from these expressions or, when
/// `is_list`, from these whole list variables (of at least `repeat` elements): local ones, or the
/// actor's own where no conversion is needed.
#[derive(Clone, Debug)]
pub struct Output {
    pub port: usize,
    pub values: Vec<OutputValue>,
    pub repeat: u32,
    pub span: Span,
}

impl Output {
    pub fn count(&self) -> u32 {
        self.values.len() as u32 * self.repeat
    }
}

#[derive(Clone, Debug)]
pub enum OutputValue {
    Scalar(Expr),
    List(VarRef),
}

#[derive(Clone, Debug)]
pub struct Fsm {
    pub states: Vec<String>,
    pub initial: usize,
    /// For each state, its transitions in the order they are to be tried.
    pub transitions: Vec<Vec<Transition>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Transition {
    pub action: ActionId,
    pub to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarRef {
    Global(usize),
    Local(usize),
}

/// A variable, or an element or sub-list of one. `indices` may be fewer than the dimensions where
/// a whole sub-list is meant ([`Stmt::Copy`], list arguments).
#[derive(Clone, Debug)]
pub struct Place {
    pub var: VarRef,
    pub indices: Vec<Expr>,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Const(Value),
    Load(Place),
    Unary(UnOp, Box<Expr>),
    /// Operands are converted to the operation's type first ([`BinOp`] says which).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Only the taken branch is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A scalar result.
    Call(usize, Vec<Arg>),
    /// An explicit conversion to `ty`: integers wrap in the container, float to integer truncates.
    Cast(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnOp {
    Neg,
    /// Logical `not`.
    Not,
    /// Bitwise `~`.
    BitNot,
}

/// Arithmetic and bitwise operations convert both operands to the expression's type; comparisons convert both to
/// the join of their types and yield Bool; shifts convert the left operand to the expression's type and take the
/// count modulo the width of its container; `And` and `Or` do not evaluate the right side needlessly. `Div`
/// truncates toward zero; `Mod` has the sign of the dividend; zero divisors are a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub enum Arg {
    Value(Expr),
    /// A list, by reference.
    List(Place),
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    /// The value is converted to the place's type.
    Assign(Place, Expr),
    /// Whole lists; the source's length is at most the destination's; elements are converted.
    /// The two never overlap in part (a front end copies through a temporary where they might).
    Copy {
        to: Place,
        from: Place,
    },
    /// A procedure, or a function for its list result: then the last argument is the destination.
    Call(usize, Vec<Arg>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    /// `var` (a local) takes every value from `from` to `to` inclusive; none if `to < from`.
    /// Neither bound is evaluated again.
    For {
        var: usize,
        from: Expr,
        to: Expr,
        body: Vec<Stmt>,
    },
    /// Only as the last statement of a function's body (front ends turn early exits around).
    Return(Expr),
    /// `print` and `println`: strings and scalars, one after the other.
    Print {
        parts: Vec<Expr>,
        newline: bool,
    },
}

/// A type as CAL writes it.
pub fn type_name(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_string(),
        Type::Int { bits, signed } => {
            let base = if *signed { "int" } else { "uint" };
            format!("{base}(size={bits})")
        }
        Type::Float { bits: 16 } => "half".to_string(),
        Type::Float { bits: 64 } => "double".to_string(),
        Type::Float { .. } => "float".to_string(),
        Type::String => "String".to_string(),
        Type::List { elem, len } => format!("List(type: {}, size={len})", type_name(elem)),
    }
}
