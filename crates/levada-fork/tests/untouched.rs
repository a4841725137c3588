// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A text without forks is returned byte for byte, whatever it contains, and the translator terminates for every text.
//! `LEVADA_FUZZ=20` runs twenty times as many cases, and reads all C files of the machine.

use levada_fork::emit::Style;
use levada_fork::lex::{forks, forks_without_block, lex};
use levada_fork::parse::parse;
use levada_fork::preprocessed::{Prelude, rewrite};
use levada_fork::source::{Translated, spread, translate};
use proptest::prelude::*;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The factor for the number of cases.
fn times() -> u32 {
    let asked = std::env::var("LEVADA_FUZZ").ok();
    asked.and_then(|t| t.parse().ok()).unwrap_or(1)
}

fn no_prelude() -> Result<Prelude, String> {
    Err("there are forks".into())
}

/// Asserts that both translations leave the text as it is.
fn untouched(text: &[u8]) {
    let done = rewrite(text, Style::Parallel, no_prelude).expect("no forks, so no prelude");
    assert!(matches!(done.unwrap(), Cow::Borrowed(same) if same == text));
    let spread = spread(text, &|_| None);
    let done = translate("x.c", text, &spread, &spread.text, Style::Parallel);
    assert!(matches!(done, Translated::Same));
}

/// Asserts that tokens are in order, do not overlap, and are not within directives.
fn tokens_cover(text: &[u8]) {
    let lexed = lex(text);
    let mut at = 0;
    for t in &lexed.tokens {
        assert!(at <= t.start && t.start < t.end && t.end as usize <= text.len());
        at = t.end;
    }
    for d in &lexed.directives {
        assert!(d.start < d.end && d.end as usize <= text.len());
        let next = lexed.tokens.partition_point(|t| t.end <= d.start);
        let inside = lexed.tokens.get(next).is_some_and(|t| t.start < d.end);
        assert!(!inside, "a token in a directive");
    }
}

fn files(folder: &Path, ends: &[&str], out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            files(&path, ends, out);
        } else if path
            .extension()
            .is_some_and(|e| ends.iter().any(|x| e == *x))
        {
            out.push(path);
        }
    }
}

#[test]
fn c_of_this_machine() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime");
    let mut found = Vec::new();
    files(&runtime.join("src"), &["c", "h"], &mut found);
    files(&runtime.join("platform"), &["c", "h"], &mut found);
    files(&runtime.join("include"), &["h"], &mut found);
    assert!(found.len() > 40, "the runtime's sources are there");
    files(Path::new("/usr/include"), &["h"], &mut found);
    files(Path::new("/usr/lib/gcc"), &["h"], &mut found);
    files(Path::new("/usr/src"), &["c", "h"], &mut found);
    // C sources in cargo's registry.
    let home = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    files(
        &cargo.unwrap_or_default().join("registry/src"),
        &["c", "h"],
        &mut found,
    );
    // A limited number is enough: files of a large folder are alike.
    let some = if times() > 1 { found.len() } else { 1500 };
    for path in found.iter().take(some) {
        let Ok(text) = std::fs::read(path) else {
            continue;
        };
        tokens_cover(&text);
        let lexed = lex(&text);
        assert!(forks(&lexed.tokens).is_empty(), "{}", path.display());
        let bare = forks_without_block(&text, &lexed.tokens);
        assert!(bare.is_empty(), "{}", path.display());
        untouched(&text);
        // The files are not preprocessed, so they are not all valid C: they must not be refused for that.
        let parsed = parse(&text, &lexed);
        assert!(parsed.refusals.is_empty(), "{}", path.display());
    }
}

/// Random sequences of tokens of C and of forks.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "int",
        "f",
        "x",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "!!",
        "!! {",
        ") !! {",
        "=",
        "*",
        "&",
        "&&",
        "return",
        "goto",
        "a:",
        "case 1:",
        "default:",
        "if",
        "else",
        "while",
        "do",
        "for",
        "switch",
        "break;",
        "continue;",
        "struct s",
        "typedef",
        "enum",
        "1",
        "1.5",
        "\"s\"",
        "'c'",
        "sizeof",
        "...",
        ".",
        "->",
        "?",
        ":",
        "+",
        "-",
        "\n",
        "# 3 \"x\"\n",
        "/*",
        "*/",
        "//",
        "__attribute__((x))",
        "asm",
        "typeof",
        "_Generic",
        "({",
        "})",
        "static",
        "const",
        "void",
        "int f(int x)",
        "f(x) !! { }",
        "y = f(x) !! { }",
        "\\\n",
        "__label__",
        "__extension__",
        "int (*p)(int)",
        "_Atomic",
        "_Static_assert",
    ]);
    prop::collection::vec(word, 0..60).prop_map(|w| w.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000 * times(), ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_any_kind(text in prop::collection::vec(any::<u8>(), 0..400)) {
        tokens_cover(&text);
        if forks(&lex(&text).tokens).is_empty() {
            untouched(&text);
        }
    }

    #[test]
    fn bytes_of_c(text in "[ \\n\\\\\"'/*#a-c(){};!<%:>.0-9+L-]{0,300}") {
        tokens_cover(text.as_bytes());
        if forks(&lex(text.as_bytes()).tokens).is_empty() {
            untouched(text.as_bytes());
        }
    }

    #[test]
    fn words_of_c(text in words()) {
        let text = text.as_bytes();
        tokens_cover(text);
        let none = || Err::<Prelude, ()>(());
        if forks(&lex(text).tokens).is_empty() {
untouched(text)
} else {
// The result does not matter: the call must return.
drop(rewrite(text, Style::Serial, none))
}
        let spread = spread(text, &|_| None);
        drop(translate("x.c", text, &spread, &spread.text, Style::Parallel));
    }
}

/// Cases that the fuzzer has found.
#[test]
fn odd_texts() {
    for text in [
        ")!!\\{",
        "f() !! \\ {",
        "\\",
        "f() !! \"\\",
        "!#!{",
        "f() !%:! {",
    ] {
        tokens_cover(text.as_bytes());
        untouched(text.as_bytes());
    }
}

#[test]
fn deep_nesting_ends() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("[", "]"),
        ("f(", ")"),
        ("*", ""),
        ("({", "})"),
    ] {
        let text = format!(
            "int f(int); void t(void) {{ int x = {}1{}; f(1) !! {{ }} }}",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        let none = || Err::<Prelude, ()>(());
        drop(rewrite(text.as_bytes(), Style::Serial, none));
    }
    let structs = format!(
        "{} int x; {} f(1) !! {{ }}",
        "struct {".repeat(9_000),
        "};".repeat(9_000)
    );
    drop(parse(structs.as_bytes(), &lex(structs.as_bytes())));
}
