// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares the CAL declaration of a native function with its definition in C: a list for a number, or a missing
//! parameter, would corrupt memory, and an integer that is narrower in C loses a part of each value. An integer of
//! up to 32 bits may be wider in C, and of any sign, since C converts it; a type that the file itself names is not
//! checked.
//!
//! The text is read, not compiled, so the effect of the preprocessor is unknown. If there are several definitions,
//! or one in an `#if`, nothing is reported.

use crate::c_types::c_type;
use crate::ir::{Proc, Type};
use crate::natives;

/// A native function as CAL declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeSignature {
    pub name: String,
    params: Vec<Type>,
    result: Option<Type>,
}

/// A parameter or result in C, as far as its text tells.
#[derive(Clone, Copy, Debug, PartialEq)]
enum C {
    Void,
    Int(u8),
    Float(u8),
    /// A pointer to elements of this many bits, if known.
    Pointer(Option<u8>),
    Unknown,
}

impl NativeSignature {
    pub fn of(proc: &Proc) -> NativeSignature {
        let locals = proc.body.locals.iter().map(|l| l.ty.clone());
        let mut params: Vec<Type> = locals.take(proc.params).collect();
        let (list, result) = match proc.result.clone() {
            Some(ty @ Type::List { .. }) => (Some(ty), None),
            other => (None, other),
        };
        // A list is given back in a last parameter.
        params.extend(list);
        NativeSignature {
            name: proc.name.clone(),
            params,
            result,
        }
    }

    /// As a declaration in C.
    pub fn declaration(&self) -> String {
        let param = |ty: &Type| match ty {
            Type::List { .. } => format!("{} *", c_type(ty)),
            _ => c_type(ty).to_string(),
        };
        let params: Vec<_> = self.params.iter().map(param).collect();
        let result = self.result.as_ref().map_or("void", c_type);
        let given = if params.is_empty() {
            "void".to_string()
        } else {
            params.join(", ")
        };
        let gap = if result.ends_with('*') { "" } else { " " };
        format!("{result}{gap}{}({given})", self.name)
    }

    /// What is wrong with the definition in this C text, if it has one, and in which line.
    pub fn wrong_in(&self, text: &str) -> Option<(usize, String)> {
        let (line, result, params) = definition(text, &self.name)?;
        if params.iter().any(|p| p == "...") {
            return None;
        }
        let why = |text: String| Some((line, text));
        if params.len() != self.params.len() {
            let s = if params.len() == 1 { "" } else { "s" };
            return why(format!(
                "`{}` has {} parameter{s}, and {} in CAL",
                self.name,
                params.len(),
                self.params.len()
            ));
        }
        for (i, (ty, param)) in self.params.iter().zip(&params).enumerate() {
            if !fits(ty, kind(param)) {
                return why(format!(
                    "parameter {} of `{}` is `{param}`, and {} in CAL",
                    i + 1,
                    self.name,
                    words(ty)
                ));
            }
        }
        match &self.result {
            Some(ty) if !fits(ty, kind(&result)) => why(format!(
                "`{}` returns `{result}`, and {} in CAL",
                self.name,
                words(ty)
            )),
            _ => None,
        }
    }
}

fn words(ty: &Type) -> String {
    match ty {
        Type::Bool => "a bool".to_string(),
        Type::Int { .. } => format!("an integer of {} bits", ty.container()),
        Type::Float { bits: 64 } => "a double".to_string(),
        Type::Float { .. } => "a float".to_string(),
        Type::String => "a String".to_string(),
        Type::List { .. } => format!("a list of `{}`", c_type(ty)),
    }
}

fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::List { elem, .. } => innermost(elem),
        other => other,
    }
}

/// The bits that an element of this type is held in.
fn bits(ty: &Type) -> u8 {
    match ty {
        Type::Bool => 8,
        Type::Float { bits: 64 } => 64,
        Type::Float { .. } => 32,
        Type::Int { .. } => ty.container(),
        _ => 64,
    }
}

fn fits(ty: &Type, c: C) -> bool {
    match (ty, c) {
        (_, C::Unknown) => true,
        (Type::List { .. }, C::Pointer(n)) => n.is_none_or(|n| n == bits(innermost(ty))),
        (Type::String, C::Pointer(n)) => n.is_none_or(|n| n == 8),
        (Type::Float { .. }, C::Float(n)) => n == bits(ty),
        (Type::Int { .. } | Type::Bool, C::Int(n)) => {
            n >= bits(ty) && (n == 64) == (bits(ty) == 64)
        }
        _ => false,
    }
}

/// A function's definition: its line, from 1, and how its result and parameters are written.
type Definition = (usize, String, Vec<String>);

/// The definition that the program gets, where the text tells which that is.
fn definition(text: &str, name: &str) -> Option<Definition> {
    let text = blanked(text);
    let (mut from, mut conditions, mut in_directive) = (0, 0, false);
    let mut found = None;
    for (i, row) in text.split_inclusive('\n').enumerate() {
        let directive = row.trim_start().strip_prefix('#').map(str::trim_start);
        if let Some(directive) = directive {
            conditions += i32::from(directive.starts_with("if"));
            conditions -= i32::from(directive.starts_with("endif"));
        } else if !in_directive
            && let Some(at) = natives::defined_at(row, name)
            && let Some((result, params)) = parts(&text, from + at, name)
        {
            if conditions > 0 || found.is_some() {
                return None;
            }
            found = Some((i + 1, result, params));
        }
        in_directive = (in_directive || directive.is_some()) && row.trim_end().ends_with('\\');
        from += row.len();
    }
    found
}

/// Result and parameters of the function named at `at`, if it is defined there, and not for its file alone.
fn parts(text: &str, at: usize, name: &str) -> Option<(String, Vec<String>)> {
    let before = text[..at].rsplit([';', '{', '}']).next()?;
    let rows = before.rsplit('\n');
    let rows: Vec<&str> = rows
        .take_while(|r| !r.trim_start().starts_with('#'))
        .collect();
    let words = rows.iter().rev().flat_map(|row| row.split_whitespace());
    let result = words.collect::<Vec<_>>().join(" ");
    if result.split(' ').any(|word| word == "static") {
        return None;
    }
    let open = at + name.len() + text[at + name.len()..].find('(')? + 1;
    let (mut depth, mut params, mut param) = (1, Vec::new(), String::new());
    let mut rest = text[open..].chars();
    while depth > 0 {
        let c = rest.next()?;
        depth += i32::from(c == '(') - i32::from(c == ')');
        match c {
            ',' if depth == 1 => params.push(std::mem::take(&mut param)),
            ')' if depth == 0 => params.push(std::mem::take(&mut param)),
            _ => param.push(if c.is_whitespace() { ' ' } else { c }),
        }
    }
    if rest.as_str().trim_start().starts_with([';', ',']) {
        return None;
    }
    let mut params: Vec<String> = params.iter().map(|p| p.trim().to_string()).collect();
    if let [one] = params.as_slice()
        && (one.is_empty() || one == "void")
    {
        params.clear();
    }
    Some((result, params))
}

/// The text with spaces in the place of comments and of what literals hold: all else stays where it
/// is.
fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = |from: usize, what: &str| rest[from..].find(what).map(|at| from + at);
        let length = match c {
            '/' if rest.starts_with("/*") => end(2, "*/").map_or(rest.len(), |at| at + 2),
            '/' if rest.starts_with("//") => end(2, "\n").unwrap_or(rest.len()),
            '"' | '\'' => literal(rest, c),
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let blank = |b| if b == b'\n' { '\n' } else { ' ' };
        out.extend(rest.bytes().take(length).map(blank));
        rest = &rest[length..];
    }
    out
}

/// How long the literal is that the text begins with; it ends with its row at the latest.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '\n' if !escaped => return i,
            c if c == quote && !escaped => return i + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

fn kind(text: &str) -> C {
    let list: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let has = |words: &[&str]| list.iter().any(|w| words.contains(w));
    let pointers = text.matches(['*', '[']).count();
    let base = if text.contains('(') || has(&["struct", "union", "enum", "__attribute__"]) {
        C::Unknown
    } else if has(&["double"]) {
        if has(&["long"]) {
            C::Unknown
        } else {
            C::Float(64)
        }
    } else if has(&["float"]) {
        C::Float(32)
    } else if has(&["char", "int8_t", "uint8_t", "i8", "u8", "bool", "_Bool"]) {
        C::Int(8)
    } else if has(&["short", "int16_t", "uint16_t", "i16", "u16"]) {
        C::Int(16)
    } else if has(&["long", "int64_t", "uint64_t", "i64", "u64", "size_t"]) {
        C::Int(64)
    } else if has(&[
        "int", "unsigned", "signed", "int32_t", "uint32_t", "i32", "u32",
    ]) {
        C::Int(32)
    } else if has(&["void"]) {
        C::Void
    } else {
        C::Unknown
    };
    match (pointers, base) {
        (0, base) => base,
        (1, C::Int(n) | C::Float(n)) => C::Pointer(Some(n)),
        _ if text.contains('(') => C::Unknown,
        _ => C::Pointer(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(bits: u8) -> Type {
        Type::Int { bits, signed: true }
    }

    fn list(elem: Type) -> Type {
        Type::List {
            elem: Box::new(elem),
            len: 4,
        }
    }

    fn wrong(params: &[Type], result: Option<Type>, text: &str) -> Option<String> {
        let name = "f".to_string();
        let params = params.to_vec();
        let is = NativeSignature {
            name,
            params,
            result,
        };
        is.wrong_in(text).map(|(_, why)| why)
    }

    #[test]
    fn what_c_converts_is_right() {
        for text in [
            "int f(int a, unsigned char b) {",
            "int32_t f(const uint32_t a,\n          short /* any */ b)\n{",
            "static inline u32 f(bool a, my_type b) {",
            "int f(int a, ...) {",
            "other f(unsigned a, char b) {",
            "int g(int a) {",
            "int f(int a);",
        ] {
            assert_eq!(
                wrong(&[int(32), int(8)], Some(int(13)), text),
                None,
                "{text}"
            );
        }
        for text in [
            "void f(short *a, const char *s, double x, long long n) {",
            "void f(int16_t a[4], char s[], double x, int64_t) {",
            "int f(void *a, char const *s, double x, unsigned long n) {",
        ] {
            let float = Type::Float { bits: 64 };
            let params = [list(list(int(9))), Type::String, float, int(64)];
            assert_eq!(wrong(&params, None, text), None, "{text}");
        }
        assert_eq!(
            wrong(
                &[],
                Some(Type::Bool),
                "#include <x.h>\nstatic int n;\nbool\nf(void) {"
            ),
            None
        );
        assert_eq!(wrong(&[], None, "void f() {"), None);
        assert_eq!(wrong(&[], None, "void f(void) {"), None);
    }

    /// Functions of another file, another branch, or that are not called.
    #[test]
    fn what_may_be_no_definition_is_right() {
        for text in [
            "/*\nvoid f(float a) {\n*/\nvoid f(int a) {",
            "#ifdef FLOAT\nvoid f(float a) {\n#else\nvoid f(int a) {\n#endif\n}",
            "#if 0\nvoid f(float a) {}\n#endif\nvoid f(int a) {}",
            "static void f(float a) {}",
            "static inline\nvoid f(float a) {}",
            "void f(float a); // of another\n",
            "void f(float a,\n       int b);\nvoid f(int a) {",
            "#define DEFINE \\\nvoid f(float a) {\n",
            "const char *s = \"\\\"/*\";\nvoid f(int a) {",
            "char q = '\"';\nvoid f(int a) {",
        ] {
            assert_eq!(wrong(&[int(32)], None, text), None, "{text}");
        }
    }

    #[test]
    fn what_would_spoil_memory_is_wrong() {
        for (params, result, text, said) in [
            (vec![int(32)], None, "void f(void) {", "0 parameters, and 1"),
            (vec![], None, "void f(int a) {", "1 parameter, and 0"),
            (
                vec![list(int(8))],
                None,
                "void f(int *a) {",
                "`int *a`, and a list of `int8_t`",
            ),
            (vec![list(int(8))], None, "void f(char a) {", "`char a`"),
            (
                vec![int(32)],
                None,
                "void f(int *a) {",
                "and an integer of 32 bits",
            ),
            (vec![int(32)], None, "void f(float a) {", "`float a`"),
            (
                vec![int(64)],
                None,
                "void f(int a) {",
                "an integer of 64 bits",
            ),
            (vec![int(32)], None, "void f(long a) {", "`long a`"),
            (
                vec![int(32)],
                None,
                "void f(int8_t a) {",
                "`int8_t a`, and an integer of 32 bits",
            ),
            (
                vec![int(9)],
                None,
                "void f(unsigned char a) {",
                "an integer of 16 bits",
            ),
            (vec![int(32)], None, "void f(bool a) {", "`bool a`"),
            (vec![], Some(int(32)), "short f(void) {", "returns `short`"),
            (
                vec![Type::Float { bits: 32 }],
                None,
                "void f(double a) {",
                "a float",
            ),
            (vec![], Some(int(32)), "void f(void) {", "returns `void`"),
            (vec![], Some(Type::Bool), "double f(void) {", "and a bool"),
            (vec![], Some(int(32)), "float f(void) {", "returns `float`"),
            (
                vec![],
                Some(int(32)),
                "double\nf(void) {",
                "returns `double`",
            ),
            (
                vec![int(32)],
                None,
                "static float g(void) {}\n// f\nvoid f(float a) {}\nint main(void) { return f(1); }",
                "`float a`",
            ),
            (
                vec![int(32)],
                None,
                "const char *s = \"/*\";\nvoid f(float a) {}",
                "`float a`",
            ),
        ] {
            let why = wrong(&params, result, text).unwrap_or_default();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn the_line_and_the_declaration_are_told() {
        let is = NativeSignature {
            name: "f".to_string(),
            params: vec![list(int(8)), Type::String],
            result: Some(Type::Bool),
        };
        let (line, _) = is.wrong_in("\n// f\nint f(void) {\n").unwrap();
        assert_eq!(line, 3);
        assert_eq!(is.declaration(), "bool f(int8_t *, const char *)");
    }
}
