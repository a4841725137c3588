// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declarations: specifiers, declarators, structs and enums, at file scope and in blocks.

use super::{Body, External, Name, Parser, Range, Refusal, Result, Scope};
use crate::lex::Kind;
use crate::types::{self, Function, Length, Member, Tag, Type};
use std::rc::Rc;

/// The specifiers of a declaration.
#[derive(Debug)]
pub(super) struct Specs {
    pub ty: Type,
    pub typedef: bool,
    /// `static`, `extern`, `_Thread_local`, `constexpr`: initialised before the program runs.
    pub constant: bool,
    /// The type comes from the initialiser, or the object cannot be assigned to.
    pub fixed: bool,
}

const QUALIFIERS: &[&str] = &[
    "const",
    "volatile",
    "restrict",
    "__const",
    "__const__",
    "__volatile",
    "__volatile__",
    "__restrict",
    "__restrict__",
    "_Nonnull",
    "_Nullable",
    "_Null_unspecified",
    "__unaligned",
];

const PLAIN: &[&str] = &[
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "__signed",
    "__signed__",
    "unsigned",
    "_Bool",
    "bool",
    "_Complex",
    "__complex__",
    "__complex",
    "_Imaginary",
    "__int128",
    "_Float16",
    "_Float32",
    "_Float64",
    "_Float128",
    "_Float32x",
    "_Float64x",
    "_Decimal32",
    "_Decimal64",
    "_Decimal128",
    "__float128",
    "__float80",
    "__ibm128",
    "__fp16",
    "__bf16",
    "_Sat",
    "_Fract",
    "_Accum",
];

/// Words of the compiler that name a type, as typedefs would.
const BUILTIN: &[&str] = &[
    "__builtin_va_list",
    "__int128_t",
    "__uint128_t",
    "__builtin_ms_va_list",
    "__builtin_sysv_va_list",
];

const STORAGE: &[&str] = &[
    "typedef",
    "extern",
    "static",
    "register",
    "auto",
    "inline",
    "__inline",
    "__inline__",
    "_Noreturn",
    "_Thread_local",
    "thread_local",
    "__thread",
    "constexpr",
    "__auto_type",
];

const TYPEOF: &[&str] = &["typeof", "__typeof", "__typeof__", "typeof_unqual"];
const ATTRIBUTE: &[&str] = &["__attribute__", "__attribute", "__declspec"];
const ASM: &[&str] = &["asm", "__asm", "__asm__"];
const ALIGNAS: &[&str] = &["_Alignas", "alignas"];
const STATIC_ASSERT: &[&str] = &["_Static_assert", "static_assert"];

impl Parser<'_> {
    // ---- the file ----

    pub(super) fn unit(&mut self) {
        while self.at < self.tokens.len() {
            let start = self.at;
            self.external = start;
            self.nesting = 0;
            self.scopes.truncate(1);
            self.unevaluated = 0;
            self.constant = 0;
            match self.external_declaration() {
                Ok(()) if self.at > start => {}
                Ok(()) => self.at += 1,
                Err(stop) => {
                    let stopped = stop.at.min(self.tokens.len().saturating_sub(1));
                    self.at = start;
                    self.skip_declaration();
                    if self.holds_fork(start, self.at) {
                        let what = match self.kind(stop.at) {
                            None => "the file ends".to_string(),
                            Some(_) => format!("`{}`", self.spelled(&self.tokens[stop.at])),
                        };
                        self.refuse(
                            "not-understood",
                            Range {
                                start: stopped,
                                end: stopped + 1,
                            },
                            format!("expected {} where {what} stands", stop.expected),
                            "this is not understood, and there are forks in this declaration",
                            "if this is right without the forks, put them into a function of \
                             their own",
                        );
                    }
                }
            }
        }
    }

    /// To the next semicolon, or behind the next group in braces, outside of brackets.
    fn skip_declaration(&mut self) {
        while let Some(kind) = self.kind(self.at) {
            match kind {
                Kind::Punct("{") => {
                    let _ = self.skip_group();
                    if !self.is(";") && !self.is("=") && !self.is(",") {
                        let ends = !matches!(self.kind(self.at), Some(Kind::Word))
                            || self.is_type(self.at)
                            || !self.punct_at(self.at + 1, ";");
                        if ends {
                            return;
                        }
                    }
                }
                Kind::Punct("(" | "[") => {
                    if self.skip_group().is_err() {
                        return;
                    }
                }
                Kind::Punct(";") => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn external_declaration(&mut self) -> Result<()> {
        let start = self.at;
        self.attributes()?;
        if self.eat(";") {
            return Ok(());
        }
        if self.one_of(STATIC_ASSERT) || self.one_of(ASM) {
            self.skip_declaration();
            return Ok(());
        }
        let specs = self.specifiers()?;
        if self.eat(";") {
            return Ok(());
        }
        loop {
            self.params.clear();
            let (name, ty) = self.declarator(specs.ty.clone())?;
            let params = std::mem::take(&mut self.params);
            let head = Range {
                start,
                end: self.at,
            };
            self.attributes()?;
            let Some(name) = name else {
                return self.stop("a name");
            };
            let is_function = matches!(&*ty, types::Kind::Function(_));
            if is_function && !specs.typedef && !(self.is(";") || self.is(",") || self.is("=")) {
                return self.definition(name, ty, head, params);
            }
            self.declare_name(name, &specs, ty);
            if self.eat("=") {
                self.constant += 1;
                self.initializer()?;
                self.constant -= 1;
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn declare_name(&mut self, name: String, specs: &Specs, ty: Type) {
        let what = match specs.typedef {
            true => Name::Typedef(ty),
            false => Name::Value(ty),
        };
        self.define(name, what);
    }

    /// A function with its body; its head has been read.
    fn definition(
        &mut self,
        name: String,
        ty: Type,
        head: Range,
        mut params: Vec<(Option<String>, Type)>,
    ) -> Result<()> {
        let known = self.lookup(&name).is_some();
        // A definition in the old style does not say more than the prototype before it.
        let prototyped = matches!(&*ty, types::Kind::Function(f) if f.prototype);
        if prototyped || !known {
            self.define(name.clone(), Name::Value(ty.clone()));
        }
        self.scopes.push(Scope::default());
        while !self.is("{") {
            if !self.is_type(self.at) {
                return self.stop("`{`");
            }
            let specs = self.specifiers()?;
            loop {
                let (param, ty) = self.declarator(specs.ty.clone())?;
                params.push((param, types::decayed(&ty)));
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        let open = self.at;
        self.skip_group()?;
        let end = self.at;
        if !self.holds_fork(open, end) {
            self.scopes.pop();
            return Ok(());
        }
        self.at = open;
        for (param, ty) in params {
            if let Some(param) = param {
                self.define(param, Name::Value(ty));
            }
        }
        let result = match &*ty {
            types::Kind::Function(f) => Some(f.result.clone()),
            _ => None,
        };
        self.body = Body {
            name: name.clone(),
            result,
            ..Body::default()
        };
        self.out.externals.push(External {
            start: self.external,
            head,
            name,
            known,
        });
        // The outermost block shares the parameters' scope.
        self.at += 1;
        self.block_items()?;
        self.expect("}")?;
        self.scopes.pop();
        self.end_of_body();
        Ok(())
    }

    // ---- in blocks ----

    /// A declaration in a block, with its semicolon.
    pub(super) fn local_declaration(&mut self, in_for: bool) -> Result<()> {
        let start = self.at;
        self.attributes()?;
        let specs = self.specifiers()?;
        while !self.is(";") {
            self.params.clear();
            let (name, ty) = self.declarator(specs.ty.clone())?;
            let params = std::mem::take(&mut self.params);
            self.attributes()?;
            let Some(name) = name else {
                return self.stop("a name");
            };
            if self.is("{") && matches!(&*ty, types::Kind::Function(_)) {
                return self.nested_function(name, ty, params);
            }
            self.declare_name(name.clone(), &specs, ty.clone());
            if self.is("=") {
                let assign = self.at;
                self.at += 1;
                self.constant += u32::from(specs.constant);
                let value = self.initializer()?;
                self.constant -= u32::from(specs.constant);
                let scalar = !matches!(
                    &**types::resolve(&ty),
                    types::Kind::Array { .. } | types::Kind::Unknown
                );
                let free = types::unqualified(&ty) == ty && !specs.fixed;
                let ends = self.is(";") || (!self.is(",") && self.closed_by_fork());
                if let Some(fork) = value.and_then(|e| e.fork())
                    && scalar
                    && free
                    && ends
                    && !in_for
                {
                    let end = self.at + usize::from(self.is(";"));
                    self.out.forks[fork].form = super::Form::Declaration {
                        assign,
                        name,
                        whole: Range { start, end },
                    };
                }
                if !self.is(";") && !self.is(",") && ends {
                    return Ok(());
                }
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    /// GNU C's functions in functions: their forks are refused, since nothing at file scope can call
    /// what they call.
    fn nested_function(
        &mut self,
        name: String,
        ty: Type,
        params: Vec<(Option<String>, Type)>,
    ) -> Result<()> {
        self.define(name.clone(), Name::Value(ty.clone()));
        let result = match &*ty {
            types::Kind::Function(f) => Some(f.result.clone()),
            _ => None,
        };
        let inner = Body {
            name,
            result,
            nested: true,
            ..Body::default()
        };
        let outer = std::mem::replace(&mut self.body, inner);
        let done = self.scoped(|p| {
            for (param, ty) in params {
                if let Some(param) = param {
                    p.define(param, Name::Value(ty));
                }
            }
            p.expect("{")?;
            p.block_items()?;
            p.expect("}")
        });
        self.body = outer;
        done
    }

    /// The statement may end here without a semicolon: what was read last is the block of a fork, and
    /// what follows begins something new.
    pub(super) fn closed_by_fork(&mut self) -> bool {
        let last = self.at - 1;
        if !self.behind_fork() {
            return false;
        }
        if let Some(fork) = self.out.forks.last_mut() {
            fork.closes = true;
        }
        if self.is("*") {
            let (at, also) = (self.at, last);
            self.out.refusals.push(Refusal {
                code: "ambiguous-end",
                message: "this `*` may multiply the result, or begin the next statement".into(),
                at: Range {
                    start: at,
                    end: at + 1,
                },
                label: "which one is meant?".into(),
                also: Some((
                    Range {
                        start: also,
                        end: also + 1,
                    },
                    "the fork ends here".into(),
                )),
                help: Some(
                    "write `;` behind the block to end the statement, or put the fork into \
                     parentheses to multiply"
                        .into(),
                ),
            });
        }
        true
    }

    // ---- specifiers ----

    /// Whether a type, or the specifiers of a declaration, begin at this token.
    pub(super) fn is_type(&self, i: usize) -> bool {
        let Some(word) = self.word_at(i) else {
            return false;
        };
        let w = word.as_str();
        let lists: [&[&str]; 7] = [
            QUALIFIERS, PLAIN, BUILTIN, STORAGE, TYPEOF, ALIGNAS, ATTRIBUTE,
        ];
        if lists.iter().any(|l| l.contains(&w)) || matches!(w, "struct" | "union" | "enum") {
            return self
                .lookup(w)
                .is_none_or(|(n, _)| matches!(n, Name::Typedef(_)));
        }
        match w {
            "_Atomic" | "_BitInt" => true,
            "__extension__" => self.is_type(i + 1),
            _ => matches!(self.lookup(w), Some((Name::Typedef(_), _))),
        }
    }

    /// Attributes, `asm` names, alignments: what may stand between the parts of a declaration.
    pub(super) fn attributes(&mut self) -> Result<()> {
        loop {
            if self.one_of(ATTRIBUTE) || self.one_of(ALIGNAS) {
                self.at += 1;
                self.skip_group()?;
            } else if self.one_of(ASM) && self.punct_at(self.at + 1, "(") {
                self.at += 1;
                self.skip_group()?;
            } else if self.is("[") && self.punct_at(self.at + 1, "[") {
                self.skip_group()?;
            } else if !self.eat_word("__extension__") {
                return Ok(());
            }
        }
    }

    pub(super) fn specifiers(&mut self) -> Result<Specs> {
        let mut words: Vec<String> = Vec::new();
        let mut quals: Vec<String> = Vec::new();
        let mut found: Option<Type> = None;
        let mut shape: Option<String> = None;
        let mut specs = Specs {
            ty: types::unknown(),
            typedef: false,
            constant: false,
            fixed: false,
        };
        let start = self.at;
        while let Some(word) = self.word_at(self.at) {
            let w = word.as_str();
            let bare = words.is_empty() && found.is_none();
            if ATTRIBUTE.contains(&w) {
                let from = self.at;
                self.attributes()?;
                let range = Range {
                    start: from,
                    end: self.at,
                };
                let text = self.words(range);
                if ["vector_size", "__mode__", "mode ("]
                    .iter()
                    .any(|a| text.contains(a))
                {
                    shape = Some(text);
                }
            } else if ALIGNAS.contains(&w) || w == "__extension__" {
                self.attributes()?;
            } else if STORAGE.contains(&w) {
                self.at += 1;
                match w {
                    "typedef" => specs.typedef = true,
                    "static" | "extern" | "_Thread_local" | "thread_local" | "__thread" => {
                        specs.constant = true;
                    }
                    "constexpr" => {
                        specs.constant = true;
                        specs.fixed = true;
                    }
                    "__auto_type" => {
                        specs.fixed = true;
                        found = Some(types::unknown());
                    }
                    _ => {}
                }
            } else if QUALIFIERS.contains(&w) {
                self.at += 1;
                match w.trim_matches('_') {
                    q @ ("const" | "volatile") if !quals.iter().any(|x| x == q) => {
                        quals.push(q.to_string());
                    }
                    _ => {}
                }
            } else if w == "_Atomic" {
                self.at += 1;
                quals.push("_Atomic".into());
                if self.is("(") {
                    self.at += 1;
                    found = Some(self.type_name()?);
                    self.expect(")")?;
                }
            } else if w == "_BitInt" {
                let from = self.at;
                self.at += 1;
                self.skip_group()?;
                words.push(self.words(Range {
                    start: from,
                    end: self.at,
                }));
            } else if matches!(w, "struct" | "union") && bare {
                found = Some(self.struct_specifier()?);
            } else if w == "enum" && bare {
                found = Some(self.enum_specifier()?);
            } else if TYPEOF.contains(&w) && bare {
                found = Some(self.typeof_specifier()?);
            } else if PLAIN.contains(&w) && found.is_none() && self.lookup(w).is_none() {
                self.at += 1;
                words.push(match w {
                    "__signed" | "__signed__" => "signed".into(),
                    "__complex" | "__complex__" => "_Complex".into(),
                    "bool" => "_Bool".into(),
                    _ => word,
                });
            } else if bare && BUILTIN.contains(&w) {
                self.at += 1;
                words.push(word);
            } else if bare && let Some((Name::Typedef(of), depth)) = self.lookup(w) {
                found = Some(Rc::new(types::Kind::Typedef {
                    quals: String::new(),
                    name: word.clone(),
                    depth,
                    of: of.clone(),
                }));
                self.at += 1;
            } else {
                break;
            }
        }
        if self.at == start {
            return self.stop("a declaration");
        }
        let quals = quals.join(" ");
        let ty = match found {
            Some(ty) => requalified(&ty, &quals),
            None => Rc::new(types::Kind::Plain {
                quals,
                words: match words.is_empty() {
                    true => "int".into(),
                    false => words.join(" "),
                },
            }),
        };
        if specs.fixed && specs.constant && quals_are_none(&ty) {
            specs.ty = ty;
            return Ok(specs);
        }
        specs.ty = match shape {
            None => ty,
            Some(shape) => match types::declare(&self.out.tags, &ty, "") {
                Ok(words) => Rc::new(types::Kind::Written {
                    words: format!("{words} {shape}"),
                    local: false,
                }),
                Err(_) => types::unknown(),
            },
        };
        Ok(specs)
    }

    fn typeof_specifier(&mut self) -> Result<Type> {
        self.at += 1;
        let start = self.at;
        self.skip_group()?;
        let end = self.at;
        self.at = start + 1;
        self.unevaluated += 1;
        let ty = if self.is_type(self.at) {
            self.type_name()?
        } else {
            let e = self.expression()?;
            self.type_of(&e).unwrap_or_else(|| {
                Rc::new(types::Kind::Written {
                    words: format!("__typeof__{}", self.words(Range { start, end })),
                    local: self.depth() > 0,
                })
            })
        };
        self.unevaluated -= 1;
        self.at = end;
        Ok(ty)
    }

    /// The tag of a struct, union or enum: found, or made.
    fn tag(&mut self, word: &'static str, name: Option<String>, defines: bool) -> usize {
        if let Some(n) = &name {
            let here = self.scopes.last().and_then(|s| s.tags.get(n).copied());
            let seen = match defines || self.is(";") {
                true => here,
                false => {
                    let mut scopes = self.scopes.iter().rev();
                    scopes.find_map(|s| s.tags.get(n).copied())
                }
            };
            if let Some(found) = seen {
                return found;
            }
        }
        self.out.tags.push(Tag {
            word,
            name: name.clone(),
            depth: self.depth(),
            members: Vec::new(),
        });
        let made = self.out.tags.len() - 1;
        if let Some(n) = name {
            let scope = self.scopes.last_mut().expect("file scope stays");
            scope.tags.insert(n, made);
        }
        made
    }

    fn struct_specifier(&mut self) -> Result<Type> {
        let word = match self.is_word("union") {
            true => "union",
            false => "struct",
        };
        self.at += 1;
        self.attributes()?;
        let name = self.word_at(self.at);
        self.at += usize::from(name.is_some());
        self.attributes()?;
        let defines = self.is("{");
        let tag = self.tag(word, name, defines);
        if defines {
            self.at += 1;
            let mut members = Vec::new();
            while !self.eat("}") {
                self.members(&mut members)?;
            }
            self.out.tags[tag].members = members;
        }
        Ok(Rc::new(types::Kind::Tag {
            quals: String::new(),
            tag,
        }))
    }

    fn members(&mut self, members: &mut Vec<Member>) -> Result<()> {
        self.attributes()?;
        if self.eat(";") {
            return Ok(());
        }
        if self.one_of(STATIC_ASSERT) {
            self.at += 1;
            self.skip_group()?;
            return self.expect(";");
        }
        let specs = self.deeper(Self::specifiers)?;
        if self.eat(";") {
            members.push(Member {
                name: None,
                ty: specs.ty,
            });
            return Ok(());
        }
        loop {
            let (name, ty) = match self.is(":") {
                true => (None, types::unknown()),
                false => self.declarator(specs.ty.clone())?,
            };
            if self.eat(":") {
                self.constant += 1;
                self.conditional()?;
                self.constant -= 1;
            }
            self.attributes()?;
            members.push(Member { name, ty });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn enum_specifier(&mut self) -> Result<Type> {
        self.at += 1;
        self.attributes()?;
        let name = self.word_at(self.at);
        self.at += usize::from(name.is_some());
        self.attributes()?;
        if self.is(":") && self.is_type(self.at + 1) {
            self.at += 1;
            self.type_name()?;
        }
        let defines = self.is("{");
        let tag = self.tag("enum", name, defines);
        if defines {
            self.at += 1;
            while !self.eat("}") {
                let Some(name) = self.word_at(self.at) else {
                    return self.stop("a name");
                };
                self.at += 1;
                self.attributes()?;
                if self.eat("=") {
                    self.constant += 1;
                    self.conditional()?;
                    self.constant -= 1;
                }
                self.define(name, Name::Enumerator);
                if !self.eat(",") {
                    self.expect("}")?;
                    break;
                }
            }
        }
        Ok(Rc::new(types::Kind::Tag {
            quals: String::new(),
            tag,
        }))
    }

    // ---- declarators ----

    /// A type alone, as in a cast.
    pub(super) fn type_name(&mut self) -> Result<Type> {
        let specs = self.deeper(Self::specifiers)?;
        Ok(self.declarator(specs.ty)?.1)
    }

    /// A declarator, with a name or without one: the name, and its type.
    pub(super) fn declarator(&mut self, base: Type) -> Result<(Option<String>, Type)> {
        self.deeper(|p| p.declarator_here(base))
    }

    fn declarator_here(&mut self, mut base: Type) -> Result<(Option<String>, Type)> {
        self.attributes()?;
        while self.is("*") || self.is("^") {
            self.at += 1;
            let mut quals = Vec::new();
            loop {
                if self.one_of(ATTRIBUTE) {
                    self.attributes()?;
                } else if self.one_of(QUALIFIERS) || self.is_word("_Atomic") {
                    let word = self.word_at(self.at).unwrap_or_default();
                    match word.trim_matches('_') {
                        q @ ("const" | "volatile") => quals.push(q.to_string()),
                        "Atomic" => quals.push("_Atomic".to_string()),
                        "restrict" => quals.push("__restrict".to_string()),
                        _ => {}
                    }
                    self.at += 1;
                } else {
                    break;
                }
            }
            base = Rc::new(types::Kind::Pointer {
                quals: quals.join(" "),
                to: base,
            });
        }
        self.attributes()?;
        if self.is("(") && self.is_nested_declarator() {
            let inside = self.at + 1;
            self.skip_group()?;
            let ty = self.suffixes(base)?;
            let after = self.at;
            let outer = std::mem::take(&mut self.params);
            self.at = inside;
            let found = self.declarator(ty)?;
            self.expect(")")?;
            self.at = after;
            if self.params.is_empty() {
                self.params = outer;
            }
            return Ok(found);
        }
        let name = self.word_at(self.at).filter(|w| {
            !QUALIFIERS.contains(&w.as_str()) && !self.one_of(ATTRIBUTE) && !self.one_of(ASM)
        });
        self.at += usize::from(name.is_some());
        let ty = self.suffixes(base)?;
        Ok((name, ty))
    }

    /// Whether a parenthesis holds a declarator, and not parameters.
    fn is_nested_declarator(&self) -> bool {
        let next = self.at + 1;
        match self.kind(next) {
            Some(Kind::Punct("*" | "^" | "(" | "[")) => true,
            Some(Kind::Word) => {
                let word = self.word_at(next).unwrap_or_default();
                ATTRIBUTE.contains(&word.as_str()) || !self.is_type(next)
            }
            _ => false,
        }
    }

    fn suffixes(&mut self, base: Type) -> Result<Type> {
        if self.is("[") && !self.punct_at(self.at + 1, "[") {
            let start = self.at;
            self.skip_group()?;
            let inside = Range {
                start: start + 1,
                end: self.at - 1,
            };
            let length = self.length(inside);
            let of = self.suffixes(base)?;
            return Ok(Rc::new(types::Kind::Array { of, length }));
        }
        if self.is("(") {
            self.at += 1;
            let (params, variadic, prototype) = self.parameters()?;
            let named = params.clone();
            let result = self.suffixes(base)?;
            self.params = named;
            let params = params.into_iter().map(|p| p.1).collect();
            return Ok(Rc::new(types::Kind::Function(Function {
                result,
                params,
                variadic,
                prototype,
            })));
        }
        Ok(base)
    }

    /// What stands between the brackets of an array.
    fn length(&self, inside: Range) -> Length {
        let word = |i: usize| self.word_at(i).unwrap_or_default();
        let mut range = inside;
        while range.start < range.end {
            let w = word(range.start);
            if w != "static" && !QUALIFIERS.contains(&w.as_str()) {
                break;
            }
            range.start += 1;
        }
        if range.start == range.end {
            return Length::Open;
        }
        let local = (range.start..range.end).any(|i| {
            let w = word(i);
            self.punct_at(i, "*") && range.end - range.start == 1
                || matches!(self.lookup(&w), Some((Name::Value(_), _)))
                || self.lookup(&w).is_some_and(|(_, depth)| depth > 0)
        });
        match local {
            true => Length::Variable,
            false => Length::Constant(self.words(range)),
        }
    }

    /// Behind the `(`: the parameters, whether `...` ends them, whether they are a prototype.
    #[allow(clippy::type_complexity)]
    fn parameters(&mut self) -> Result<(Vec<(Option<String>, Type)>, bool, bool)> {
        if self.eat(")") {
            return Ok((Vec::new(), false, false));
        }
        if self.is_word("void") && self.punct_at(self.at + 1, ")") {
            self.at += 2;
            return Ok((Vec::new(), false, true));
        }
        // Names alone: the old style. Their types follow the head.
        if !self.is_type(self.at) && matches!(self.kind(self.at), Some(Kind::Word)) {
            while self.kind(self.at) == Some(Kind::Word) && !self.is_type(self.at) {
                self.at += 1;
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
            return Ok((Vec::new(), false, false));
        }
        self.scoped(|p| {
            let mut params = Vec::new();
            let mut variadic = false;
            loop {
                if p.eat("...") {
                    variadic = true;
                    break;
                }
                p.attributes()?;
                let specs = p.deeper(Self::specifiers)?;
                let (name, ty) = p.declarator(specs.ty)?;
                p.attributes()?;
                let ty = types::decayed(&ty);
                if let Some(name) = &name {
                    p.define(name.clone(), Name::Value(ty.clone()));
                }
                params.push((name, ty));
                if !p.eat(",") {
                    break;
                }
            }
            p.expect(")")?;
            Ok((params, variadic, true))
        })
    }
}

fn quals_are_none(ty: &Type) -> bool {
    types::unqualified(ty) == *ty
}

/// A type with more qualifiers.
fn requalified(ty: &Type, more: &str) -> Type {
    if more.is_empty() {
        return ty.clone();
    }
    let both = |quals: &str| match quals {
        "" => more.to_string(),
        q => format!("{more} {q}"),
    };
    Rc::new(match &**ty {
        types::Kind::Plain { quals, words } => types::Kind::Plain {
            quals: both(quals),
            words: words.clone(),
        },
        types::Kind::Typedef {
            quals,
            name,
            depth,
            of,
        } => types::Kind::Typedef {
            quals: both(quals),
            name: name.clone(),
            depth: *depth,
            of: of.clone(),
        },
        types::Kind::Tag { quals, tag } => types::Kind::Tag {
            quals: both(quals),
            tag: *tag,
        },
        types::Kind::Pointer { quals, to } => types::Kind::Pointer {
            quals: both(quals),
            to: to.clone(),
        },
        types::Kind::Written { words, local } => types::Kind::Written {
            words: format!("{more} {words}"),
            local: *local,
        },
        other => other.clone(),
    })
}
