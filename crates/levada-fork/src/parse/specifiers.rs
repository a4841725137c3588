// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the specifiers of declarations, with attributes, structs, unions and enums.

use super::{Name, Parser, Range, Result};
use crate::lex::Kind;
use crate::types::{self, Member, Tag, Type};
use std::rc::Rc;

/// The specifiers of a declaration.
#[derive(Debug)]
pub(super) struct Specs {
    pub ty: Type,
    pub typedef: bool,
    /// `static`, `extern`, `_Thread_local`, `constexpr`: the initialiser must be constant.
    pub constant: bool,
    /// The declaration cannot be separated from its initialiser: that determines the type, or the object cannot be
    /// assigned to.
    pub fixed: bool,
}

pub(super) const QUALIFIERS: &[&str] = &[
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

/// Types that the compiler predefines by name.
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
pub(super) const ATTRIBUTE: &[&str] = &["__attribute__", "__attribute", "__declspec"];
pub(super) const ASM: &[&str] = &["asm", "__asm", "__asm__"];
const ALIGNAS: &[&str] = &["_Alignas", "alignas"];
pub(super) const STATIC_ASSERT: &[&str] = &["_Static_assert", "static_assert"];

impl Parser<'_> {
    /// Whether a type or the specifiers of a declaration begin at this token.
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

    /// Skips attributes, `asm` names and alignments, which may stand between the parts of a declaration.
    pub(super) fn attributes(&mut self) -> Result<()> {
        loop {
            let asm = self.one_of(ASM) && self.punct_at(self.at + 1, "(");
            if self.one_of(ATTRIBUTE) || self.one_of(ALIGNAS) || asm {
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
        let mut inferred = false;
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
                shape = self.shape(range).or(shape);
                if let Some(ty) = &found {
                    self.mark_transparent(ty, range);
                }
            } else if ALIGNAS.contains(&w) || w == "__extension__" {
                self.attributes()?;
            } else if STORAGE.contains(&w) {
                self.at += 1;
                inferred |= w == "auto";
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
        if inferred && words.is_empty() && found.is_none() {
            // `auto x = ...` takes its type from the initialiser in C23, and is an `int` in earlier C.
            specs.fixed = true;
            found = Some(types::unknown());
        }
        let quals = quals.join(" ");
        let ty = match found {
            Some(ty) => requalified(&ty, &quals),
            None => Rc::new(types::Kind::Plain {
                quals,
                words: if words.is_empty() {
                    "int".into()
                } else {
                    words.join(" ")
                },
            }),
        };
        if specs.fixed && specs.constant && quals_are_none(&ty) {
            specs.ty = ty;
            return Ok(specs);
        }
        specs.ty = match shape {
            None => ty,
            Some(shape) => self.shaped(&ty, &shape),
        };
        Ok(specs)
    }

    /// The attributes as text, if they make a different type of a type, such as a vector.
    fn shape(&self, attributes: Range) -> Option<String> {
        const SHAPES: [&str; 4] = ["vector_size", "ext_vector_type", "__mode__", "mode ("];
        let text = self.words(attributes);
        SHAPES.iter().any(|a| text.contains(a)).then_some(text)
    }

    /// The attributes as text, if they select a calling convention; otherwise empty.
    pub(super) fn convention(&self, attributes: std::ops::Range<usize>) -> String {
        const CONVENTIONS: [&str; 14] = [
            "ms_abi",
            "sysv_abi",
            "regparm",
            "stdcall",
            "cdecl",
            "fastcall",
            "thiscall",
            "vectorcall",
            "regcall",
            "pcs",
            "aarch64_vector_pcs",
            "riscv_vector_cc",
            "preserve_most",
            "preserve_all",
        ];
        let changes = |i: usize| {
            let word = self.word_at(i);
            word.is_some_and(|w| CONVENTIONS.contains(&w.trim_matches('_')))
        };
        if attributes.clone().any(changes) {
            self.words(Range {
                start: attributes.start,
                end: attributes.end,
            })
        } else {
            String::new()
        }
    }

    /// The attributes `target("...")` of a declaration, as text.
    pub(super) fn targets_in(&self, declaration: std::ops::Range<usize>) -> Vec<String> {
        let begins = |i: &usize| {
            let named = self.is_word_at(*i, "target") || self.is_word_at(*i, "__target__");
            named && self.punct_at(i + 1, "(") && self.kind(i + 2) == Some(Kind::String)
        };
        let written = |start: usize| {
            let behind = (start..declaration.end).find(|i| self.punct_at(*i, ")"))?;
            let end = behind + 1;
            Some(self.words(Range { start, end }))
        };
        declaration
            .clone()
            .filter(begins)
            .filter_map(written)
            .collect()
    }

    /// Marks a union as transparent if `__attribute__((transparent_union))` follows it or a typedef of it.
    fn mark_transparent(&mut self, ty: &Type, attributes: Range) {
        let found = (attributes.start..attributes.end).any(|i| {
            self.is_word_at(i, "transparent_union") || self.is_word_at(i, "__transparent_union__")
        });
        if found && let types::Kind::Tag { tag, .. } = &**types::resolve(ty) {
            self.out.tags[*tag].transparent = true;
        }
    }

    fn shaped(&self, ty: &Type, shape: &str) -> Type {
        match types::declare(&self.out.tags, ty, "") {
            Ok(words) => Rc::new(types::Kind::Written {
                words: format!("{words} {shape}"),
                local: false,
            }),
            Err(_) => types::unknown(),
        }
    }

    /// Parses the attributes after a declarator, and returns the type with them.
    pub(super) fn attributes_of(&mut self, ty: Type) -> Result<Type> {
        let start = self.at;
        self.attributes()?;
        let range = Range {
            start,
            end: self.at,
        };
        self.mark_transparent(&ty, range);
        if let types::Kind::Pointer { quals, to, .. } = &*ty
            && let convention = self.convention(start..self.at)
            && !convention.is_empty()
        {
            return Ok(Rc::new(types::Kind::Pointer {
                quals: quals.clone(),
                convention,
                to: to.clone(),
            }));
        }
        Ok(match self.shape(range) {
            Some(shape) if types::called(&ty).is_none() => self.shaped(&ty, &shape),
            _ => ty,
        })
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
                    local: self.names_local(start..end),
                })
            })
        };
        self.unevaluated -= 1;
        self.at = end;
        Ok(ty)
    }

    /// Whether one of these tokens is a name that is local to a function.
    fn names_local(&self, mut tokens: std::ops::Range<usize>) -> bool {
        let inner = &self.scopes[1..];
        let local = |name: String| {
            self.lookup(&name).is_some_and(|(_, depth)| depth > 0)
                || inner.iter().any(|s| s.tags.contains_key(&name))
        };
        tokens.any(|i| self.word_at(i).is_some_and(local))
    }

    /// The index of the tag of a struct, union or enum; adds it if it is new.
    fn tag(&mut self, word: &'static str, name: Option<String>, defines: bool) -> usize {
        if let Some(n) = &name {
            let here = self.scopes.last().and_then(|s| s.tags.get(n).copied());
            let seen = if defines || self.is(";") {
                here
            } else {
                let mut scopes = self.scopes.iter().rev();
                scopes.find_map(|s| s.tags.get(n).copied())
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
            values: None,
            at: self.at,
            transparent: false,
        });
        let made = self.out.tags.len() - 1;
        if let Some(n) = name {
            let scope = self.scopes.last_mut().expect("file scope stays");
            scope.tags.insert(n, made);
        }
        made
    }

    fn struct_specifier(&mut self) -> Result<Type> {
        let word = if self.is_word("union") {
            "union"
        } else {
            "struct"
        };
        self.at += 1;
        let start = self.at;
        self.attributes()?;
        let before = Range {
            start,
            end: self.at,
        };
        let name = self.word_at(self.at);
        self.at += usize::from(name.is_some());
        self.attributes()?;
        let defines = self.is("{");
        let tag = self.tag(word, name, defines);
        let found = Rc::new(types::Kind::Tag {
            quals: String::new(),
            tag,
        });
        self.mark_transparent(&found, before);
        if defines {
            self.at += 1;
            let mut members = Vec::new();
            while !self.eat("}") {
                self.members(&mut members)?;
            }
            self.out.tags[tag].members = members;
        }
        Ok(found)
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
            let (name, ty) = if self.is(":") {
                (None, types::unknown())
            } else {
                self.declarator(specs.ty.clone())?
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
        let mut fixed = None;
        if self.is(":") && self.is_type(self.at + 1) {
            self.at += 1;
            fixed = Some(self.type_name()?);
        }
        let defines = self.is("{");
        let tag = self.tag("enum", name, defines);
        let mut range = Some((0, 0));
        let mut next = Some(0);
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
                    let value = self.conditional()?;
                    next = self.value_of(&value);
                    self.constant -= 1;
                }
                self.define(name, Name::Enumerator(next));
                range = range.zip(next).map(|((a, b), v)| (v.min(a), v.max(b)));
                next = next.map(|v| v + 1);
                if !self.eat(",") {
                    self.expect("}")?;
                    break;
                }
            }
            self.out.tags[tag].values = Some(match fixed {
                Some(ty) => types::Values::Of(ty),
                None => types::Values::Range(range),
            });
        } else if let Some(ty) = fixed {
            self.out.tags[tag].values = Some(types::Values::Of(ty));
        }
        Ok(Rc::new(types::Kind::Tag {
            quals: String::new(),
            tag,
        }))
    }
}

fn quals_are_none(ty: &Type) -> bool {
    types::unqualified(ty) == *ty
}

/// A type with additional qualifiers.
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
        types::Kind::Pointer {
            quals,
            convention,
            to,
        } => types::Kind::Pointer {
            convention: convention.clone(),
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
