// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of C, as far as a fork needs them: to name the type of a parameter or a result where
//! the call itself cannot be seen, at file scope.

use std::rc::Rc;

/// Where a name was declared: at file scope (zero) or in a block.
pub type Depth = u32;

/// Shared, since every declarator of a declaration holds the same.
pub type Type = Rc<Kind>;

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An arithmetic type, `void`, or what else is only a few words: how it is written.
    Plain {
        quals: String,
        words: String,
    },
    /// `typeof(...)` and the like: how it is written, and whether file scope knows its names.
    Written {
        words: String,
        local: bool,
    },
    Typedef {
        quals: String,
        name: String,
        depth: Depth,
        of: Type,
    },
    /// A struct, union or enum, by its index in [`Tags`].
    Tag {
        quals: String,
        tag: usize,
    },
    Pointer {
        quals: String,
        /// Attributes of the function that it points to, which change how that is called.
        convention: String,
        to: Type,
    },
    /// An array; what stands between its brackets, if that is a constant that file scope knows.
    Array {
        of: Type,
        length: Length,
    },
    Function(Function),
    /// The declaration could not be understood.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    Open,
    Constant(String),
    /// It is computed, or names something local.
    Variable,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub result: Type,
    pub params: Vec<Type>,
    pub variadic: bool,
    /// False for `f()` and the old style: the parameters are not known.
    pub prototype: bool,
}

/// A struct, union or enum.
#[derive(Clone, Debug)]
pub struct Tag {
    /// `struct`, `union` or `enum`.
    pub word: &'static str,
    /// None: it has no name.
    pub name: Option<String>,
    pub depth: Depth,
    /// Empty until it is defined.
    pub members: Vec<Member>,
    /// What the enumerators of an enum are.
    pub values: Option<Values>,
    /// Behind which token it was seen first.
    pub at: usize,
    /// `__attribute__((transparent_union))`.
    pub transparent: bool,
}

#[derive(Clone, Debug)]
pub enum Values {
    /// The type is written there.
    Of(Type),
    /// The least and the greatest, where all of them could be told.
    Range(Option<(i128, i128)>),
}

#[derive(Clone, Debug)]
pub struct Member {
    /// None: an anonymous struct or union, whose members are members here.
    pub name: Option<String>,
    pub ty: Type,
}

pub type Tags = Vec<Tag>;

/// Why a type cannot be named at file scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// This struct, union, enum or typedef is local to a function.
    Local(String),
    /// It is a struct, union or enum without a name.
    Anonymous(&'static str),
    /// Its size is computed when the program runs.
    Variable,
    Unknown,
}

pub fn plain(words: &str) -> Type {
    Rc::new(Kind::Plain {
        quals: String::new(),
        words: words.to_string(),
    })
}

/// The types of `sizeof` and of differences of pointers: no words stand for them everywhere.
pub const SIZE: &str = "__typeof__(sizeof 0)";
pub const DIFFERENCE: &str = "__typeof__((char *)1 - (char *)1)";

pub fn pointer(to: Type) -> Type {
    pointer_called("", to)
}

/// To a function that is called in another way than usual.
pub fn pointer_called(convention: &str, to: Type) -> Type {
    Rc::new(Kind::Pointer {
        quals: String::new(),
        convention: convention.into(),
        to,
    })
}

/// How what a pointer points to is called; empty: as usual.
pub fn convention(ty: &Type) -> &str {
    match &**resolve(ty) {
        Kind::Pointer { convention, .. } => convention,
        _ => "",
    }
}

pub fn unknown() -> Type {
    Rc::new(Kind::Unknown)
}

/// What a typedef stands for, all the way.
pub fn resolve(ty: &Type) -> &Type {
    match &**ty {
        Kind::Typedef { of, .. } => resolve(of),
        _ => ty,
    }
}

/// Without its outermost qualifiers: the type of a value.
pub fn unqualified(ty: &Type) -> Type {
    let none = String::new();
    match &**ty {
        Kind::Plain { quals, words } if !quals.is_empty() => plain(words),
        Kind::Typedef { of, .. } if is_qualified(of) => unqualified(of),
        Kind::Typedef {
            quals,
            name,
            depth,
            of,
        } if !quals.is_empty() => Rc::new(Kind::Typedef {
            quals: none,
            name: name.clone(),
            depth: *depth,
            of: of.clone(),
        }),
        Kind::Tag { quals, tag } if !quals.is_empty() => Rc::new(Kind::Tag {
            quals: none,
            tag: *tag,
        }),
        Kind::Pointer {
            quals,
            convention,
            to,
        } if !quals.is_empty() => pointer_called(convention, to.clone()),
        _ => ty.clone(),
    }
}

fn is_qualified(ty: &Type) -> bool {
    match &**ty {
        Kind::Typedef { quals, of, .. } => !quals.is_empty() || is_qualified(of),
        Kind::Plain { quals, .. } | Kind::Tag { quals, .. } | Kind::Pointer { quals, .. } => {
            !quals.is_empty()
        }
        _ => false,
    }
}

/// Whether it is `const` itself.
pub fn is_constant(ty: &Type) -> bool {
    let has = |quals: &str| quals.split(' ').any(|q| q == "const");
    match &**ty {
        Kind::Typedef { quals, of, .. } => has(quals) || is_constant(of),
        Kind::Plain { quals, .. } | Kind::Tag { quals, .. } | Kind::Pointer { quals, .. } => {
            has(quals)
        }
        _ => false,
    }
}

/// What a parameter or an operand of this type becomes: arrays and functions become pointers.
pub fn decayed(ty: &Type) -> Type {
    match &**resolve(ty) {
        Kind::Array { of, .. } => pointer(of.clone()),
        Kind::Function(_) => pointer(ty.clone()),
        _ => ty.clone(),
    }
}

/// What a `va_list` becomes as an argument: it is an array on some machines, and no word says so.
pub fn argument_list(ty: &Type) -> Option<Type> {
    match &**resolve(ty) {
        Kind::Plain { words, .. } if words.ends_with("va_list") => Some(Rc::new(Kind::Written {
            words: format!("__typeof__(1 ? *({words} *)0 : *({words} *)0)"),
            local: false,
        })),
        _ => None,
    }
}

pub fn is_void(ty: &Type) -> bool {
    matches!(&**resolve(ty), Kind::Plain { words, .. } if words == "void")
}

pub fn is_vector(ty: &Type) -> bool {
    matches!(&**resolve(ty), Kind::Written { words, .. } if words.contains("vector_"))
}

/// What a vector is made of.
pub fn element(ty: &Type) -> Option<Type> {
    match &**resolve(ty) {
        Kind::Written { words, .. } if is_vector(ty) => {
            words.split_once(" __attribute").map(|(of, _)| plain(of))
        }
        _ => None,
    }
}

/// Numbers, enumerations included; not vectors, nor what is not known.
pub fn is_arithmetic(tags: &Tags, ty: &Type) -> bool {
    match &**resolve(ty) {
        Kind::Plain { words, .. } => words != "void" && !words.contains("va_list"),
        Kind::Tag { tag, .. } => tags[*tag].word == "enum",
        _ => false,
    }
}

/// Reading it twice may give different values.
pub fn is_volatile(ty: &Type) -> bool {
    let has = |quals: &str| quals.split(' ').any(|q| q == "volatile" || q == "_Atomic");
    match &**ty {
        Kind::Typedef { quals, of, .. } => has(quals) || is_volatile(of),
        Kind::Plain { quals, .. } | Kind::Tag { quals, .. } | Kind::Pointer { quals, .. } => {
            has(quals)
        }
        _ => false,
    }
}

/// The function that a call of a value of this type calls.
pub fn called(ty: &Type) -> Option<&Function> {
    match &**resolve(ty) {
        Kind::Function(f) => Some(f),
        Kind::Pointer { to, .. } => match &**resolve(to) {
            Kind::Function(f) => Some(f),
            _ => None,
        },
        _ => None,
    }
}

/// What `*p` and `p[i]` have.
pub fn pointed(ty: &Type) -> Option<Type> {
    match &**resolve(ty) {
        Kind::Pointer { to, .. } => Some(to.clone()),
        Kind::Array { of, .. } => Some(of.clone()),
        Kind::Function(_) => Some(ty.clone()),
        _ => None,
    }
}

pub fn member(tags: &Tags, ty: &Type, name: &str) -> Option<Type> {
    member_within(tags, ty, name, 0)
}

fn member_within(tags: &Tags, ty: &Type, name: &str, depth: u32) -> Option<Type> {
    let Kind::Tag { tag, .. } = &**resolve(ty) else {
        return None;
    };
    // No struct holds itself, but what is parsed may be wrong.
    if depth > 64 {
        return None;
    }
    let find = |m: &Member| match &m.name {
        Some(n) if n == name => Some(m.ty.clone()),
        Some(_) => None,
        None => member_within(tags, &m.ty, name, depth + 1),
    };
    tags[*tag].members.iter().find_map(find)
}

/// What an argument of this type becomes where the prototype says `...`.
pub fn promoted(tags: &Tags, ty: &Type) -> Type {
    let ty = unqualified(&decayed(ty));
    match &**resolve(&ty) {
        Kind::Plain { words, .. } => {
            let has = |w| words.split(' ').any(|x| x == w);
            match () {
                () if words == "float" => plain("double"),
                () if has("char") || has("short") || has("_Bool") => plain("int"),
                () => unqualified(resolve(&ty)),
            }
        }
        Kind::Tag { tag, .. } if tags[*tag].word == "enum" => match &tags[*tag].values {
            Some(Values::Of(ty)) => promoted(tags, ty),
            Some(Values::Range(Some((0, greatest)))) if *greatest <= u32::MAX.into() => {
                plain("unsigned int")
            }
            Some(Values::Range(Some((least, greatest)))) => integer(*least, *greatest),
            _ => match declare(tags, &ty, "") {
                // The compiler knows.
                Ok(words) => Rc::new(Kind::Written {
                    words: format!("__typeof__(+({words})0)"),
                    local: false,
                }),
                Err(_) => unknown(),
            },
        },
        _ => ty,
    }
}

/// The type that an enumeration of such values has, as an argument.
pub fn integer(least: i128, greatest: i128) -> Type {
    let within = |min: i128, max: i128| least >= min && greatest <= max;
    plain(match () {
        () if within(i32::MIN.into(), i32::MAX.into()) => "int",
        () if within(0, u32::MAX.into()) => "unsigned int",
        () if within(0, u64::MAX.into()) => "unsigned long long",
        () => "long long",
    })
}

/// Declares `name` with the type `ty`, in words that file scope knows.
pub fn declare(tags: &Tags, ty: &Type, name: &str) -> Result<String, Unnamed> {
    let join = |quals: &str, words: &str| {
        let head = match quals {
            "" => words.to_string(),
            q => format!("{q} {words}"),
        };
        match name {
            "" => head,
            n => format!("{head} {n}"),
        }
    };
    match &**ty {
        Kind::Plain { quals, words } => Ok(join(quals, words)),
        Kind::Written {
            words,
            local: false,
        } => Ok(join("", words)),
        Kind::Written { words, .. } => Err(Unnamed::Local(words.clone())),
        Kind::Typedef {
            quals,
            name: word,
            depth: 0,
            ..
        } => Ok(join(quals, word)),
        Kind::Typedef { quals, of, .. } if quals.is_empty() => declare(tags, of, name),
        Kind::Typedef { name: word, of, .. } => match declare(tags, of, "") {
            Ok(_) => Err(Unnamed::Local(word.clone())),
            Err(why) => Err(why),
        },
        Kind::Tag { quals, tag } => {
            let tag = &tags[*tag];
            match &tag.name {
                None => Err(Unnamed::Anonymous(tag.word)),
                Some(n) if tag.depth > 0 => Err(Unnamed::Local(format!("{} {n}", tag.word))),
                Some(n) => Ok(join(quals, &format!("{} {n}", tag.word))),
            }
        }
        Kind::Pointer {
            quals,
            convention,
            to,
        } => {
            let inner = match [convention.as_str(), quals].concat().as_str() {
                "" => format!("*{name}"),
                _ => format!("*{convention} {quals} {name}"),
            };
            match &**to {
                Kind::Array { .. } | Kind::Function(_) => {
                    declare(tags, to, &format!("({})", inner.trim_end()))
                }
                _ => declare(tags, to, inner.trim_end()),
            }
        }
        Kind::Array { of, length } => match length {
            Length::Open => declare(tags, of, &format!("{name}[]")),
            Length::Constant(n) => declare(tags, of, &format!("{name}[{n}]")),
            Length::Variable => Err(Unnamed::Variable),
        },
        Kind::Function(f) => {
            let mut params = Vec::new();
            for p in &f.params {
                params.push(declare(tags, p, "")?);
            }
            if f.variadic {
                params.push("...".to_string());
            }
            if f.prototype && params.is_empty() {
                params.push("void".to_string());
            }
            declare(tags, &f.result, &format!("{name}({})", params.join(", ")))
        }
        Kind::Unknown => Err(Unnamed::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarators_nest() {
        let f = |params: Vec<Type>, result| {
            Rc::new(Kind::Function(Function {
                result,
                params,
                variadic: false,
                prototype: true,
            }))
        };
        let int = plain("int");
        let row = Rc::new(Kind::Array {
            of: int.clone(),
            length: Length::Constant("3".into()),
        });
        let none = Tags::new();
        let of = |ty: &Type| declare(&none, ty, "x").unwrap();
        assert_eq!(of(&pointer(pointer(int.clone()))), "int **x");
        assert_eq!(of(&pointer(row.clone())), "int (*x)[3]");
        let compare = f(vec![int.clone(), pointer(int.clone())], int.clone());
        assert_eq!(of(&pointer(compare.clone())), "int (*x)(int, int *)");
        let chooser = f(vec![], pointer(compare));
        assert_eq!(of(&pointer(chooser)), "int (*(*x)(void))(int, int *)");
    }
}
