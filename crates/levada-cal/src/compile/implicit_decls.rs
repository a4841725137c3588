// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that a native file calls without a declaration. Many C compilers accept this with a warning and assume
//! that the function returns `int`, so that a wider or non-integer result is corrupted.
//!
//! The compiler's messages are stored with the object, so that the warning is also given when the object is found in
//! the cache.

use std::path::{Path, PathBuf};

/// A call of an undeclared function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImplicitDecl {
    pub name: String,
    pub path: PathBuf,
    /// Counted from 1.
    pub line: u32,
}

/// The name of the warning in GCC and Clang.
const FLAG: &str = "[-Wimplicit-function-declaration]";

/// Parses one line of a compiler's messages.
fn read(line: &str) -> Option<ImplicitDecl> {
    let (place, what) = line
        .trim_end()
        .strip_suffix(FLAG)?
        .split_once(": warning: ")?;
    let mut place = place.rsplitn(3, ':');
    let (_column, line) = (
        place.next()?.parse::<u32>().ok()?,
        place.next()?.parse().ok()?,
    );
    // ‘name’ or 'name', in any language.
    let quote = |c| matches!(c, '\'' | '\u{2018}' | '\u{2019}');
    Some(ImplicitDecl {
        name: what.split(quote).nth(1)?.to_string(),
        path: PathBuf::from(place.next()?),
        line,
    })
}

/// All such warnings in a compiler's messages.
pub fn all(said: &str) -> Vec<ImplicitDecl> {
    let mut all: Vec<ImplicitDecl> = said.lines().filter_map(read).collect();
    all.dedup();
    all
}

fn kept(object: &Path) -> PathBuf {
    object.with_extension("undeclared")
}

/// Stores the messages with the object, for later uses of it from the cache. Errors are ignored; the warning is then
/// not repeated.
pub fn keep(object: &Path, said: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| read(line).is_some()).collect();
    let file = kept(object);
    let _ = if lines.is_empty() {
        std::fs::remove_file(file)
    } else {
        std::fs::write(file, lines.join("\n"))
    };
}

/// The stored warnings of this object.
pub fn again(object: &Path) -> Vec<ImplicitDecl> {
    let said = std::fs::read(kept(object)).unwrap_or_default();
    all(&String::from_utf8_lossy(&said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_compilers_are_understood() {
        let said = "/a:b/x.c: In function \u{2018}twice\u{2019}:\n\
            /a:b/x.c:12:27: warning: implicit declaration of function \u{2018}helper\u{2019} \
            [-Wimplicit-function-declaration]\n   12 | int twice(int x) { return helper(x); }\n\
            y.c:3:1: warning: call to undeclared function 'floor'; ISO C99 and later do not support implicit function \
            declarations [-Wimplicit-function-declaration]\n\
            y.c:3:1: warning: unused variable \u{2018}z\u{2019} [-Wunused-variable]\n\
            y.c:3: warning: [-Wimplicit-function-declaration]\n[-Wimplicit-function-declaration]\n";
        let is = |name: &str, path: &str, line| ImplicitDecl {
            name: name.to_string(),
            path: PathBuf::from(path),
            line,
        };
        let both = vec![is("helper", "/a:b/x.c", 12), is("floor", "y.c", 3)];
        assert_eq!(all(said), both);
        let object = std::env::temp_dir().join(format!("undeclared-{}.so", std::process::id()));
        keep(&object, said);
        assert_eq!(again(&object), both);
        keep(&object, "");
        assert_eq!(again(&object), []);
    }
}
