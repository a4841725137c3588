// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A fork, ready to be written: its generated names and the types of its call, as file scope can name them. The
//! function that a thief runs is at file scope, so a fork with a type that has no name there is refused.

use crate::parse::{Fork, Parsed, Range, Refusal};
use crate::types::{self, Function, Type, Unnamed};

/// A fork, ready to be written. Its record is the union that holds the arguments (`lvd_in`), and later the result
/// (`lvd_out`).
#[derive(Debug)]
pub struct Site {
    /// Suffix of the names at file scope, as in `lvd_fork_fib_1`: the function, and the number of the fork in it.
    pub name: String,
    /// Suffix of the names in the function, as in `lvd_r1`: the number of the fork in the file.
    pub number: usize,
    /// Declarations of the members of `lvd_in`: the called pointer, if any, and the arguments.
    pub members: Vec<String>,
    /// The name of the called function; `None`: the call is made through the member `lvd_call`.
    pub callee: Option<String>,
    bracketed: bool,
    /// Number of arguments.
    pub args: usize,
    /// The declaration of `lvd_out`; `None` for `void`.
    pub out: Option<String>,
    result: Type,
    /// The type of the called pointer, if `callee` is `None`.
    pointer: Option<Type>,
    arg_types: Vec<Type>,
    /// For each argument that is a string literal: the literal. It is written in the call instead of stored in the
    /// record, since compilers check format strings only there.
    literals: Vec<Option<String>>,
    /// For each argument of a type with constant members: a name for that type. Such a value is stored as bytes, since
    /// a record with a member of that type could not be assigned to.
    constant: Vec<Option<String>>,
    /// The typedefs of these names.
    pub typedefs: Vec<String>,
}

impl Site {
    /// The type of the result, for a variable in the forking function.
    pub fn type_of_result(&self) -> Option<&Type> {
        Some(&self.result)
    }

    /// The type of an argument, for a variable in the forking function.
    pub fn type_of_argument(&self, i: usize) -> Option<&Type> {
        self.arg_types.get(i)
    }

    /// The type of the called pointer; `None` if a function is called by name.
    pub fn type_of_callee(&self) -> Option<&Type> {
        self.pointer.as_ref()
    }

    /// A function at file scope that makes the call, for blocks in which a local name hides the function's: its head
    /// and its body.
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

    /// The name of that function.
    pub fn called_elsewhere(&self) -> String {
        format!("lvd_call_{}", self.name)
    }

    /// Whether an argument is stored before the fork; string literals are not.
    pub fn is_kept(&self, i: usize) -> bool {
        self.literals[i].is_none()
    }

    /// Whether `lvd_in` has no members of its own.
    pub fn keeps_nothing(&self) -> bool {
        self.callee.is_some() && !(0..self.args).any(|i| self.is_kept(i))
    }

    /// The variable of an argument, in serial C.
    pub fn argument(&self, i: usize) -> String {
        format!("lvd_a{}_{i}", self.number)
    }

    /// The arguments of the call: string literals, and for each other argument what `kept` gives.
    fn arguments(&self, kept: impl Fn(usize) -> String) -> String {
        let args = (0..self.args).map(|i| self.literals[i].clone().unwrap_or_else(|| kept(i)));
        args.collect::<Vec<String>>().join(", ")
    }

    /// The arguments of the call of [`Site::elsewhere`]: as above, without the string literals.
    fn kept_arguments(&self, kept: impl Fn(usize) -> String) -> String {
        let args = (0..self.args).filter(|i| self.is_kept(*i)).map(kept);
        args.collect::<Vec<String>>().join(", ")
    }

    /// The beginning and the end of the statement that stores an argument in the record.
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

    /// An expression for an argument that is stored in a record.
    fn argument_of(&self, record: &str, i: usize) -> String {
        match &self.constant[i] {
            None => format!("{record}lvd_in.lvd_a{i}"),
            Some(ty) => format!(
                "__extension__({{ union {{ unsigned char lvd_b[sizeof {record}lvd_in.lvd_a{i}]; {ty} lvd_v; }} lvd_u; \
                 __builtin_memcpy(lvd_u.lvd_b, {record}lvd_in.lvd_a{i}, sizeof lvd_u.lvd_b); lvd_u.lvd_v; }})"
            ),
        }
    }

    /// The call in serial C, with the variables of the arguments.
    pub fn serial_call(&self) -> String {
        let callee = match &self.callee {
            Some(name) => self.called(name),
            None => format!("lvd_f{}", self.number),
        };
        format!("{callee}({})", self.arguments(|i| self.argument(i)))
    }

    /// The call with the arguments of a record; `record` is the prefix of its members, such as `lvd_r->`.
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

    /// The call through [`Site::elsewhere`], with the arguments of a record.
    pub fn call_elsewhere(&self, record: &str) -> String {
        let args = self.kept_arguments(|i| self.argument_of(record, i));
        format!("{}({args})", self.called_elsewhere())
    }

    /// The call through [`Site::elsewhere`] in serial C.
    pub fn serial_call_elsewhere(&self) -> String {
        let args = self.kept_arguments(|i| self.argument(i));
        format!("{}({args})", self.called_elsewhere())
    }

    /// The name of the record's type.
    pub fn record(&self) -> String {
        format!("lvd_fork_{}", self.name)
    }

    /// The name of the function that a thief runs.
    pub fn run(&self) -> String {
        format!("lvd_run_{}", self.name)
    }
}

/// The declaration of a variable, with `__auto_type` if its type cannot be named.
pub fn declared(parsed: &Parsed, ty: &Type, name: &str) -> String {
    field(parsed, ty, name).unwrap_or_else(|_| format!("__extension__ __auto_type {name}"))
}

/// Whether values of this type cannot be assigned, since they have constant members.
pub fn has_constants(tags: &types::Tags, ty: &Type) -> bool {
    constants_within(tags, ty, 0)
}

fn constants_within(tags: &types::Tags, ty: &Type, depth: u32) -> bool {
    if depth > types::MEMBER_DEPTH_MAX {
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

/// The refusal of a fork since the type of `what` (an argument, the result) cannot be named at file scope.
fn unnamed(why: Unnamed, what: &str, at: Range) -> Box<Refusal> {
    match why {
        Unnamed::Local(name) => refusal(
            "fork-local-type",
            at,
            format!("{what} has the type `{name}`, which is local to this function"),
            "the function that another worker runs is at file scope, where this type is unknown",
            format!("declare `{name}` outside of the function"),
        ),
        Unnamed::Anonymous(word) => refusal(
            "fork-unnamed-type",
            at,
            format!("{what} has a type without a name"),
            "the function that another worker runs cannot name this type",
            format!("give the {word} a name"),
        ),
        Unnamed::Variable => refusal(
            "fork-variable-type",
            at,
            format!("{what} has a type with a size that is computed at run time"),
            "the function that another worker runs cannot know this size",
            "pass a pointer to the first element, and the size".into(),
        ),
        Unnamed::Unknown => refusal(
            "fork-unknown-type",
            at,
            format!("the type of {what} cannot be determined"),
            "this value is passed to another worker",
            "assign it to a variable first, or cast it to its type".into(),
        ),
    }
}

/// The declaration of a member of a record that holds a value of this type.
fn field(parsed: &Parsed, ty: &Type, name: &str) -> Result<String, Unnamed> {
    types::declare(&parsed.tags, &nameable(&parsed.tags, ty), name)
}

/// A type that file scope can name, to which values of `ty` convert and back. It is `ty` itself if that has a name
/// there; otherwise an integer for an enum, and `void *` for a pointer to data.
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

/// Whether a pointer converts to and from `void *` implicitly.
fn pointer_to_data(ty: &Type) -> bool {
    types::pointed(ty).is_some_and(|to| types::called(&to).is_none())
}

/// Prepares a fork for writing, or refuses it. `number` counts the forks of the file, `ordinal` those of the function,
/// from 1.
pub fn site(
    parsed: &Parsed,
    fork: &Fork,
    number: usize,
    ordinal: usize,
) -> Result<Site, Box<Refusal>> {
    let tags = &parsed.tags;
    let Some(function) = types::called(&fork.callee_type) else {
        // A declaration helps only if the callee is a name; it may be an expression, such as `_Generic`.
        let (label, help) = if fork.callee.end - fork.callee.start == 1 {
            (
                "this function is not declared",
                "declare the function with its prototype before the fork; if it is also a macro, \
                 put its name in parentheses: (f)(x)",
            )
        } else {
            (
                "the type of this expression cannot be determined",
                "name the function itself, or call it through a pointer declared with its type",
            )
        };
        return Err(refusal(
            "fork-unknown-function",
            fork.callee,
            "the parameters and the result of this function are not known".into(),
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
                "the result has constant members, so it cannot be assigned".into(),
                "the call returns it by value",
                "write a function that makes the call and returns a pointer".into(),
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

/// The type in which an argument is stored: the parameter's. A transparent union (as for socket addresses) accepts what
/// any of its members does: there it is the argument's type if that is a pointer, or the first member's.
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

/// Refuses types that the head of the forking function declares, since generated code stands before that function. A
/// function that forks itself needs a declaration there, too, and its head must not define a type.
fn check_head(parsed: &Parsed, function: &Function, fork: &Fork) -> Result<(), Box<Refusal>> {
    let mut itself = parsed.externals.iter();
    let itself = itself.find(|e| e.start == fork.external && fork.name.as_ref() == Some(&e.name));
    if itself.is_some_and(|e| e.defines && !e.known) {
        return Err(refusal(
            "fork-local-type",
            fork.callee,
            "the head of this function defines a type, and the function forks itself".into(),
            "the function that another worker runs is generated before this one",
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
                "the function that another worker runs is generated before this one",
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
    let at_least = if function.variadic { "at least " } else { "" };
    Err(refusal(
        "fork-arguments",
        fork.callee,
        format!("this function takes {at_least}{takes} arguments, and {given} are passed"),
        "called here",
        "pass the arguments that its declaration requires".into(),
    ))
}
