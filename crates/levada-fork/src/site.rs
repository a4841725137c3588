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
    bracketed: bool,
    pub args: usize,
    /// How `out` is declared; none for `void`.
    pub out: Option<String>,
    result: Type,
    /// Of a callee that is no name.
    pointer: Option<Type>,
    arg_types: Vec<Type>,
    /// For each argument: the string literal that it is. The call itself has it then, and nobody keeps it:
    /// compilers want to see formats.
    literals: Vec<Option<String>>,
    /// For each argument: the name that a type with constant members is given. No member of a record can
    /// be such a value, or the record could not be assigned to: it is kept as its bytes.
    constant: Vec<Option<String>>,
    /// The declarations of those names.
    pub typedefs: Vec<String>,
}

impl Site {
    /// What the variables of the function are that takes a fork: the result, an argument of the serial
    /// call, and what it calls.
    pub fn type_of_result(&self) -> Option<&Type> {
        Some(&self.result)
    }

    pub fn type_of_argument(&self, i: usize) -> Option<&Type> {
        self.arg_types.get(i)
    }

    pub fn type_of_callee(&self) -> Option<&Type> {
        self.pointer.as_ref()
    }

    /// A function that makes the call, for where its name means something else: its head, and its body.
    pub fn elsewhere(&self, parsed: &Parsed) -> (String, String) {
        let kept = (0..self.args).filter(|i| self.is_kept(*i));
        let params = kept.map(|i| declared(parsed, &self.arg_types[i], &self.argument(i)));
        let params: Vec<String> = params.collect();
        let params = if params.is_empty() {
            "void".to_string()
        } else {
            params.join(", ")
        };
        let head = format!("{}({params})", self.called_elsewhere());
        let give = if self.out.is_some() { "return " } else { "" };
        (
            format!("static {}", declared(parsed, &self.result, &head)),
            format!("{give}{}", self.serial_call()),
        )
    }

    pub fn called_elsewhere(&self) -> String {
        format!("lvd_call_{}", self.name)
    }

    /// Whether an argument is computed before the fork.
    pub fn is_kept(&self, i: usize) -> bool {
        self.literals[i].is_none()
    }

    pub fn keeps_nothing(&self) -> bool {
        self.callee.is_some() && !(0..self.args).any(|i| self.is_kept(i))
    }

    pub fn argument(&self, i: usize) -> String {
        format!("lvd_a{}_{i}", self.number)
    }

    /// All arguments of a call, each as it is, or as what it was kept as.
    fn arguments(&self, kept: impl Fn(usize) -> String) -> String {
        let args = (0..self.args).map(|i| self.literals[i].clone().unwrap_or_else(|| kept(i)));
        args.collect::<Vec<String>>().join(", ")
    }

    /// The same without those that the called function has itself.
    fn kept_arguments(&self, kept: impl Fn(usize) -> String) -> String {
        let args = (0..self.args).filter(|i| self.is_kept(*i)).map(kept);
        args.collect::<Vec<String>>().join(", ")
    }

    /// What begins and ends the statement that keeps an argument in the record `r`.
    pub fn keep_argument(&self, i: usize) -> (String, String) {
        let n = self.number;
        match &self.constant[i] {
            None => (format!("lvd_r{n}.lvd_in.lvd_a{i} = "), ";".into()),
            Some(ty) => (
                format!("{{ {ty} lvd_v = "),
                format!("; __builtin_memcpy(lvd_r{n}.lvd_in.lvd_a{i}, &lvd_v, sizeof lvd_v); }}"),
            ),
        }
    }

    /// An argument, from a record.
    fn argument_of(&self, record: &str, i: usize) -> String {
        match &self.constant[i] {
            None => format!("{record}lvd_in.lvd_a{i}"),
            Some(ty) => format!(
                "__extension__({{ union {{ unsigned char lvd_b[sizeof {record}lvd_in.lvd_a{i}]; {ty} lvd_v; }} lvd_u; \
                 __builtin_memcpy(lvd_u.lvd_b, {record}lvd_in.lvd_a{i}, sizeof lvd_u.lvd_b); lvd_u.lvd_v; }})"
            ),
        }
    }

    /// The call in serial C, from those variables.
    pub fn serial_call(&self) -> String {
        let callee = match &self.callee {
            Some(name) => self.called(name),
            None => format!("lvd_f{}", self.number),
        };
        format!("{callee}({})", self.arguments(|i| self.argument(i)))
    }

    /// The direct call, from a record that is reached by `record` (`r.` or `r->`).
    pub fn call(&self, record: &str) -> String {
        let callee = match &self.callee {
            Some(name) => self.called(name),
            None => format!("{record}lvd_in.lvd_call"),
        };
        let args = self.arguments(|i| self.argument_of(record, i));
        format!("{callee}({args})")
    }

    fn called(&self, name: &str) -> String {
        if self.bracketed {
            format!("({name})")
        } else {
            name.to_string()
        }
    }

    /// A call of the function that makes it elsewhere.
    pub fn call_elsewhere(&self, record: &str) -> String {
        let args = self.kept_arguments(|i| self.argument_of(record, i));
        format!("{}({args})", self.called_elsewhere())
    }

    /// The same in serial C.
    pub fn serial_call_elsewhere(&self) -> String {
        let args = self.kept_arguments(|i| self.argument(i));
        format!("{}({args})", self.called_elsewhere())
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

/// The declaration of a variable; without a type where that cannot be named.
pub fn declared(parsed: &Parsed, ty: &Type, name: &str) -> String {
    field(parsed, ty, name).unwrap_or_else(|_| format!("__extension__ __auto_type {name}"))
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
    types::declare(&parsed.tags, &nameable(&parsed.tags, ty), name)
}

/// A type that file scope can name, for values that convert to it and back: where the type itself has no
/// name there, but is an enum, or points to data.
fn nameable(tags: &types::Tags, ty: &Type) -> Type {
    let ty = types::unqualified(&types::decayed(ty));
    if let Some(list) = types::argument_list(&ty) {
        return list;
    }
    match types::declare(tags, &ty, "") {
        Err(Unnamed::Variable) if types::pointed(&ty).is_some() => {
            types::pointer(types::plain("void"))
        }
        Err(Unnamed::Anonymous(_) | Unnamed::Local(_)) => match &**types::resolve(&ty) {
            types::Kind::Tag { tag, .. } if tags[*tag].word == "enum" => types::promoted(tags, &ty),
            _ if pointer_to_data(&ty) => types::pointer(types::plain("void")),
            _ => ty,
        },
        _ => ty,
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
        // What `_Generic` chooses, for one, has no name that a declaration could help.
        let (label, help) = if fork.callee.end - fork.callee.start == 1 {
            (
                "no declaration of this was seen",
                "declare the function with its prototype before it is forked; where a macro stands \
                 for it, put its name in brackets: (f)(x)",
            )
        } else {
            (
                "the type of this expression is not known",
                "name the function itself, or call it through a pointer declared with its type",
            )
        };
        return Err(refusal(
            "fork-unknown-function",
            fork.callee,
            "it is not known what this function takes and gives".into(),
            label,
            help.into(),
        ));
    };
    check_count(function, fork)?;
    check_head(parsed, function, fork)?;
    let mut members = Vec::new();
    let name = format!("{}_{ordinal}", fork.function);
    let (mut pointer, mut arg_types, mut constant) = (None, Vec::new(), Vec::new());
    let mut typedefs = Vec::new();
    if fork.name.is_none() {
        let to = std::rc::Rc::new(types::Kind::Function(function.clone()));
        let ty = types::pointer_called(types::convention(&fork.callee_type), to);
        let declared = types::declare(tags, &ty, "lvd_call");
        members.push(declared.map_err(|why| unnamed(why, "the function", fork.callee))?);
        pointer = Some(ty);
    }
    for (i, &at) in fork.args.iter().enumerate() {
        if fork.literals[i].is_some() {
            constant.push(None);
            arg_types.push(types::unknown());
            continue;
        }
        let ty = match function.params.get(i) {
            Some(ty) if function.prototype => Some(taken(tags, ty, fork.arg_types[i].as_ref())),
            _ => fork.arg_types[i].as_ref().map(|t| types::promoted(tags, t)),
        };
        let what = "this argument";
        let ty = ty.ok_or_else(|| unnamed(Unnamed::Unknown, what, at))?;
        if has_constants(tags, &ty) {
            let named = format!("lvd_type_{name}_{i}");
            let declared = field(parsed, &ty, &named).map_err(|why| unnamed(why, what, at))?;
            typedefs.push(format!("typedef {declared};\n"));
            members.push(format!(
                "unsigned char lvd_a{i}[sizeof({named})] __attribute__((__aligned__(__alignof__({named}))))"
            ));
            constant.push(Some(named));
            arg_types.push(ty);
            continue;
        }
        constant.push(None);
        let member = field(parsed, &ty, &format!("lvd_a{i}"));
        members.push(member.map_err(|why| unnamed(why, what, at))?);
        arg_types.push(ty);
    }
    if members.is_empty() {
        members.push("char lvd_none".into());
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
            let declared = field(parsed, &result, "lvd_out");
            let declared = declared.map_err(|why| unnamed(why, "the result", fork.callee))?;
            result = nameable(tags, &result);
            Some(declared)
        }
    };
    Ok(Site {
        name,
        number,
        members,
        callee: fork.name.clone(),
        bracketed: fork.bracketed,
        args: fork.args.len(),
        out,
        result,
        pointer,
        arg_types,
        literals: fork.literals.clone(),
        constant,
        typedefs,
    })
}

/// What a parameter takes. A union that is transparent (the addresses of sockets) takes what any of its
/// members would: then it is the pointer that is given, or the first member.
fn taken(tags: &types::Tags, param: &Type, given: Option<&Type>) -> Type {
    let types::Kind::Tag { tag, .. } = &**types::resolve(param) else {
        return param.clone();
    };
    let given = given.map(types::decayed);
    match (&tags[*tag], given) {
        (tag, _) if !tag.transparent => param.clone(),
        (_, Some(ty))
            if types::pointed(&ty).is_some() || *types::resolve(&ty) == *types::resolve(param) =>
        {
            ty
        }
        (tag, _) => tag.members.first().map_or(param.clone(), |m| m.ty.clone()),
    }
}

/// A struct that the head of the forking function declares is not known before it. Nor can a function
/// be declared before itself by a head that does so.
fn check_head(parsed: &Parsed, function: &Function, fork: &Fork) -> Result<(), Box<Refusal>> {
    let mut itself = parsed.externals.iter();
    let itself = itself.find(|e| e.start == fork.external && fork.name.as_ref() == Some(&e.name));
    if itself.is_some_and(|e| e.defines && !e.known) {
        return Err(refusal(
            "fork-local-type",
            fork.callee,
            "the head of this function defines a type, and the function forks itself".into(),
            "what another worker runs stands before this function",
            "define the type before the function".into(),
        ));
    }
    for ty in function.params.iter().chain([&function.result]) {
        let types::Kind::Tag { tag, .. } = &**types::resolve(element(ty)) else {
            continue;
        };
        let tag = &parsed.tags[*tag];
        if tag.depth == 0 && tag.at > fork.external && tag.name.is_some() {
            let name = tag.name.clone().unwrap_or_default();
            return Err(refusal(
                "fork-local-type",
                fork.callee,
                format!(
                    "`{} {name}` is declared by the function that forks",
                    tag.word
                ),
                "what another worker runs stands before this function",
                format!("declare the {} before the function", tag.word),
            ));
        }
    }
    Ok(())
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
