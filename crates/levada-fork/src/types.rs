// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C types, as far as forks need them: to name the types of arguments and results in code at file scope.

use std::rc::Rc;

/// The nesting of the scope that declares a name; 0 is file scope.
pub type Depth = u32;

/// Reference-counted, since all declarators of a declaration share it.
pub type Type = Rc<Kind>;

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An arithmetic type, `void`, or another type that is written as keywords only.
    Plain {
        quals: String,
        words: String,
    },
    /// `typeof(...)`, or a type with attributes: its text.
    Written {
        words: String,
        /// The text uses a name that file scope does not know.
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
        /// Attributes that select the calling convention of the function that it points to.
        convention: String,
        to: Type,
    },
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
    /// `[]`
    Open,
    /// The text of a constant expression that file scope knows.
    Constant(String),
    /// Computed at run time, or with a local name in it.
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
    /// `None`: it has no name.
    pub name: Option<String>,
    pub depth: Depth,
    /// Empty until it is defined.
    pub members: Vec<Member>,
    /// The values of an enum; `None` for a struct or union, and until it is defined.
    pub values: Option<Values>,
    /// The token after its first appearance.
    pub at: usize,
    /// `__attribute__((transparent_union))`.
    pub transparent: bool,
}

/// The values of an enum.
#[derive(Clone, Debug)]
pub enum Values {
    /// The enum has an explicit underlying type (C23).
    Of(Type),
    /// The smallest and the largest value, if all could be computed.
    Range(Option<(i128, i128)>),
}

#[derive(Clone, Debug)]
pub struct Member {
    /// `None`: an anonymous struct or union; its members are members of this one.
    pub name: Option<String>,
    pub ty: Type,
}

pub type Tags = Vec<Tag>;

/// Why a type cannot be named at file scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// This struct, union, enum or typedef is local to a function.
    Local(String),
    /// It is a struct, union or enum (the word) without a name.
    Anonymous(&'static str),
    /// Its size is computed at run time.
    Variable,
    /// The type could not be determined.
    Unknown,
}

pub fn plain(words: &str) -> Type {
    Rc::new(Kind::Plain {
        quals: String::new(),
        words: words.to_string(),
    })
}

/// The types of `sizeof` and of pointer differences, as expressions: which keywords name them depends on the target.
pub const SIZE: &str = "__typeof__(sizeof 0)";
pub const DIFFERENCE: &str = "__typeof__((char *)1 - (char *)1)";

pub fn pointer(to: Type) -> Type {
    pointer_called("", to)
}

/// A pointer to a function with a calling convention other than the default.
pub fn pointer_called(convention: &str, to: Type) -> Type {
    Rc::new(Kind::Pointer {
        quals: String::new(),
        convention: convention.into(),
        to,
    })
}

/// The attributes for the calling convention of a pointer to a function; empty: the default.
pub fn convention(ty: &Type) -> &str {
    match &**resolve(ty) {
        Kind::Pointer { convention, .. } => convention,
        _ => "",
    }
}

pub fn unknown() -> Type {
    Rc::new(Kind::Unknown)
}

/// The type for which a typedef, or a chain of typedefs, stands.
pub fn resolve(ty: &Type) -> &Type {
    match &**ty {
        Kind::Typedef { of, .. } => resolve(of),
        _ => ty,
    }
}

/// The type without its outermost qualifiers, as values have it.
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

/// Whether the type itself is `const`.
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

/// The type of a parameter or an operand of this type: arrays and functions become pointers.
pub fn decayed(ty: &Type) -> Type {
    match &**resolve(ty) {
        Kind::Array { of, .. } => pointer(of.clone()),
        Kind::Function(_) => pointer(ty.clone()),
        _ => ty.clone(),
    }
}

/// The type of a `va_list` as an argument, or `None` for other types. It is an array on some targets, so it is written
/// as an expression in which an array becomes a pointer.
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

/// The type of a vector's elements.
pub fn element(ty: &Type) -> Option<Type> {
    match &**resolve(ty) {
        Kind::Written { words, .. } if is_vector(ty) => {
            words.split_once(" __attribute").map(|(of, _)| plain(of))
        }
        _ => None,
    }
}

/// Whether it is a number or an enum. Vectors and unknown types are not.
pub fn is_arithmetic(tags: &Tags, ty: &Type) -> bool {
    match &**resolve(ty) {
        Kind::Plain { words, .. } => words != "void" && !words.contains("va_list"),
        Kind::Tag { tag, .. } => tags[*tag].word == "enum",
        _ => false,
    }
}

/// Whether two reads may give different values: `volatile` or `_Atomic`.
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

/// The type of `*p` and `p[i]`.
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

/// Maximum nesting of structs to search. No struct contains itself, but invalid C is parsed, too.
pub const MEMBER_DEPTH_MAX: u32 = 64;

fn member_within(tags: &Tags, ty: &Type, name: &str, depth: u32) -> Option<Type> {
    let Kind::Tag { tag, .. } = &**resolve(ty) else {
        return None;
    };
    if depth > MEMBER_DEPTH_MAX {
        return None;
    }
    let find = |m: &Member| match &m.name {
        Some(n) if n == name => Some(m.ty.clone()),
        Some(_) => None,
        None => member_within(tags, &m.ty, name, depth + 1),
    };
    tags[*tag].members.iter().find_map(find)
}

/// The type of an argument after the default argument promotions, as for `...` in a prototype.
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
                // The values are not known: unary plus lets the compiler promote it.
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

/// The promoted type of an enum with values from `least` to `greatest`.
pub fn integer(least: i128, greatest: i128) -> Type {
    let within = |min: i128, max: i128| least >= min && greatest <= max;
    plain(match () {
        () if within(i32::MIN.into(), i32::MAX.into()) => "int",
        () if within(0, u32::MAX.into()) => "unsigned int",
        () if within(0, u64::MAX.into()) => "unsigned long long",
        () => "long long",
    })
}

/// The declaration of `name` with the type `ty`, valid at file scope; with an empty name, the type alone.
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
