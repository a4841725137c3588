// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the translator knows of one fork when it writes it: its names, and the types that file scope
//! needs, or why they cannot be named there.

use crate::parse::{Fork, Parsed, Range, Refusal};
use crate::types::{self, Function, Type, Unnamed};

/// A fork, ready to be written.
#[derive(Debug)]
pub struct Site {
    /// What its type, its function and its variables end with: `fib_1`, `1`.
    pub name: String,
    pub number: usize,
    /// The declarations of the members that hold the callee (through a pointer) and the arguments.
    pub members: Vec<String>,
    /// How the call names what it calls: by name, or None: through the member `call`.
    pub callee: Option<String>,
    pub args: usize,
    /// How `out` is declared; none for `void`.
    pub out: Option<String>,
    result: Type,
    /// Of a callee that is no name.
    pointer: Option<Type>,
    arg_types: Vec<Type>,
    /// For each argument: how a value `lvd_v` is declared that has constant members. No member of a record can
    /// be such a value, or the record could not be assigned to: it is kept as its bytes.
    constant: Vec<Option<String>>,
}

impl Site {
    /// Declares `name` with the type of the result.
    pub fn declare_result(&self, parsed: &Parsed, name: &str) -> String {
        let declared = types::declare(&parsed.tags, &self.result, name);
        declared.unwrap_or_else(|_| format!("__extension__ __auto_type {name}"))
    }

    /// Declares the variable that holds an argument of the serial call.
    pub fn declare_argument(&self, parsed: &Parsed, i: usize) -> String {
        let name = self.argument(i);
        let declared = field(parsed, &self.arg_types[i], &name);
        declared.unwrap_or_else(|_| format!("__extension__ __auto_type {name}"))
    }

    /// The same for what is called.
    pub fn declare_callee(&self, parsed: &Parsed) -> String {
        let name = format!("lvd_f{}", self.number);
        let ty = self.pointer.as_ref();
        let declared = ty.and_then(|ty| types::declare(&parsed.tags, ty, &name).ok());
        declared.unwrap_or_else(|| format!("__extension__ __auto_type {name}"))
    }

    fn argument(&self, i: usize) -> String {
        format!("lvd_a{}_{i}", self.number)
    }

    /// What begins and ends the statement that keeps an argument in the record `r`.
    pub fn keep_argument(&self, i: usize) -> (String, String) {
        let n = self.number;
        match &self.constant[i] {
            None => (format!("lvd_r{n}.in.a{i} = "), ";".into()),
            Some(v) => (
                format!("{{ {v} = "),
                format!("; __builtin_memcpy(lvd_r{n}.in.a{i}, &lvd_v, sizeof lvd_v); }}"),
            ),
        }
    }

    /// An argument, from a record.
    fn argument_of(&self, record: &str, i: usize) -> String {
        match &self.constant[i] {
            None => format!("{record}in.a{i}"),
            Some(v) => format!(
                "__extension__({{ union {{ unsigned char b[sizeof {record}in.a{i}]; {v}; }} lvd_u; \
                 __builtin_memcpy(lvd_u.b, {record}in.a{i}, sizeof lvd_u.b); lvd_u.lvd_v; }})"
            ),
        }
    }

    /// The call in serial C, from those variables.
    pub fn serial_call(&self) -> String {
        let args: Vec<String> = (0..self.args).map(|i| self.argument(i)).collect();
        let callee = match &self.callee {
            Some(name) => name.clone(),
            None => format!("lvd_f{}", self.number),
        };
        format!("{callee}({})", args.join(", "))
    }

    /// The direct call, from a record that is reached by `record` (`r.` or `r->`).
    pub fn call(&self, record: &str) -> String {
        let args = (0..self.args).map(|i| self.argument_of(record, i));
        let args: Vec<String> = args.collect();
        let callee = match &self.callee {
            Some(name) => name.clone(),
            None => format!("{record}in.call"),
        };
        format!("{callee}({})", args.join(", "))
    }

    /// The name of its type.
    pub fn record(&self) -> String {
        format!("lvd_fork_{}", self.name)
    }

    /// The name of the function that a thief runs.
    pub fn run(&self) -> String {
        format!("lvd_run_{}", self.name)
    }
}

/// Whether values of this type cannot be assigned, because of constant members.
pub fn has_constants(tags: &types::Tags, ty: &Type) -> bool {
    constants_within(tags, ty, 0)
}

/// No struct holds itself, but what is parsed may be wrong.
const DEEPEST: u32 = 64;

fn constants_within(tags: &types::Tags, ty: &Type, depth: u32) -> bool {
    if depth > DEEPEST {
        return false;
    }
    match &**types::resolve(ty) {
        types::Kind::Tag { tag, .. } => tags[*tag].members.iter().any(|m| {
            let element = element(&m.ty);
            types::is_constant(element) || constants_within(tags, element, depth + 1)
        }),
        types::Kind::Array { of, .. } => constants_within(tags, of, depth + 1),
        _ => false,
    }
}

fn element(ty: &Type) -> &Type {
    match &**types::resolve(ty) {
        types::Kind::Array { of, .. } => element(of),
        _ => ty,
    }
}

fn refusal(
    code: &'static str,
    at: Range,
    message: String,
    label: &str,
    help: String,
) -> Box<Refusal> {
    Box::new(Refusal {
        code,
        message,
        at,
        label: label.to_string(),
        also: None,
        help: Some(help),
    })
}

/// Why a type cannot be used, told of what it belongs to.
fn unnamed(why: Unnamed, what: &str, at: Range) -> Box<Refusal> {
    match why {
        Unnamed::Local(name) => refusal(
            "fork-local-type",
            at,
            format!("{what} has the type `{name}`, which is local to this function"),
            "the worker that takes the call cannot know this type",
            format!("declare `{name}` outside of the function"),
        ),
        Unnamed::Anonymous(word) => refusal(
            "fork-unnamed-type",
            at,
            format!("{what} has a type without a name"),
            "the worker that takes the call cannot name this type",
            format!("give the {word} a name"),
        ),
        Unnamed::Variable => refusal(
            "fork-variable-type",
            at,
            format!("{what} has a type whose size is computed when the program runs"),
            "the worker that takes the call cannot know this size",
            "hand over a pointer to the first element, and the size".into(),
        ),
        Unnamed::Unknown => refusal(
            "fork-unknown-type",
            at,
            format!("the type of {what} is not known"),
            "this has to be handed to another worker",
            "assign it to a variable first, or cast it to its type".into(),
        ),
    }
}

/// A member of a record, of the type of a value.
fn field(parsed: &Parsed, ty: &Type, name: &str) -> Result<String, Unnamed> {
    let ty = types::unqualified(&types::decayed(ty));
    match types::declare(&parsed.tags, &ty, name) {
        // A pointer to something of variable size is handed over as any pointer.
        Err(Unnamed::Variable) if types::pointed(&ty).is_some() => Ok(format!("void *{name}")),
        Err(Unnamed::Anonymous(_) | Unnamed::Local(_)) if pointer_to_data(&ty) => {
            Ok(format!("void *{name}"))
        }
        other => other,
    }
}

/// A pointer that converts to and from `void *` by itself.
fn pointer_to_data(ty: &Type) -> bool {
    types::pointed(ty).is_some_and(|to| types::called(&to).is_none())
}

/// Everything that a fork needs to be written.
pub fn site(
    parsed: &Parsed,
    fork: &Fork,
    number: usize,
    ordinal: usize,
) -> Result<Site, Box<Refusal>> {
    let tags = &parsed.tags;
    let Some(function) = types::called(&fork.callee_type) else {
        return Err(refusal(
            "fork-unknown-function",
            fork.callee,
            "it is not known what this function takes and gives".into(),
            "no declaration of this was seen",
            "declare the function with its prototype before it is forked".into(),
        ));
    };
    check_count(function, fork)?;
    let mut members = Vec::new();
    let (mut pointer, mut arg_types, mut constant) = (None, Vec::new(), Vec::new());
    if fork.name.is_none() {
        let ty = types::pointer(std::rc::Rc::new(types::Kind::Function(function.clone())));
        let declared = types::declare(tags, &ty, "call");
        members.push(declared.map_err(|why| unnamed(why, "the function", fork.callee))?);
        pointer = Some(ty);
    }
    for (i, &at) in fork.args.iter().enumerate() {
        let ty = match function.params.get(i) {
            Some(ty) if function.prototype => Some(ty.clone()),
            _ => fork.arg_types[i].as_ref().map(|t| types::promoted(tags, t)),
        };
        let what = "this argument";
        let ty = ty.ok_or_else(|| unnamed(Unnamed::Unknown, what, at))?;
        if has_constants(tags, &ty) {
            let v = field(parsed, &ty, "lvd_v").map_err(|why| unnamed(why, what, at))?;
            let named = field(parsed, &ty, "").map_err(|why| unnamed(why, what, at))?;
            let named = named.trim_end();
            members.push(format!(
                "unsigned char a{i}[sizeof({named})] __attribute__((__aligned__(__alignof__({named}))))"
            ));
            constant.push(Some(v));
            arg_types.push(ty);
            continue;
        }
        constant.push(None);
        let member = field(parsed, &ty, &format!("a{i}"));
        members.push(member.map_err(|why| unnamed(why, what, at))?);
        arg_types.push(ty);
    }
    if members.is_empty() {
        members.push("char none".into());
    }
    let mut result = types::unqualified(&function.result);
    let out = match types::is_void(&result) {
        true => None,
        false if has_constants(tags, &result) => {
            return Err(refusal(
                "fork-constant-members",
                fork.callee,
                "the result has members that are constant, so it cannot be copied".into(),
                "the call gives it by value",
                "let a function of your own make the call and give a pointer".into(),
            ));
        }
        false => {
            let declared = field(parsed, &result, "out");
            let declared = declared.map_err(|why| unnamed(why, "the result", fork.callee))?;
            if declared == "void *out" {
                result = types::pointer(types::plain("void"));
            }
            Some(declared)
        }
    };
    Ok(Site {
        name: format!("{}_{ordinal}", fork.function),
        number,
        members,
        callee: fork.name.clone(),
        args: fork.args.len(),
        out,
        result,
        pointer,
        arg_types,
        constant,
    })
}

fn check_count(function: &Function, fork: &Fork) -> Result<(), Box<Refusal>> {
    let (takes, given) = (function.params.len(), fork.args.len());
    let fits = match (function.prototype, function.variadic) {
        (false, _) => true,
        (true, true) => given >= takes,
        (true, false) => given == takes,
    };
    if fits {
        return Ok(());
    }
    let least = if function.variadic { "at least " } else { "" };
    Err(refusal(
        "fork-arguments",
        fork.callee,
        format!("this function takes {least}{takes} arguments, and is given {given}"),
        "called here",
        "see its declaration".into(),
    ))
}
