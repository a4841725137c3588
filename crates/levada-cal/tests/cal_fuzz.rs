// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fuzzing of the front end: random bytes, random tokens, and random changes of correct programs. Nothing may panic
//! or take long, the tree must hold the file byte for byte, every diagnostic must be printable, and a rejected file
//! must have an error.
//!
//! `LEVADA_FUZZ=n` tries n times as many files; `LEVADA_SEED=s` selects others.

use levada_cal::ast;
use levada_cal::check::{Checker, Library, Params};
use levada_cal::diag::{Diagnostics, Sources, render};
use levada_cal::ir::Span;
use levada_cal::lex;
use levada_cal::lower;
use levada_cal::parse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// xorshift64*: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n.max(1)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn times() -> u64 {
    number("LEVADA_FUZZ").unwrap_or(1)
}

fn seed(usual: u64) -> u64 {
    number("LEVADA_SEED").map_or(usual, |s| s.wrapping_mul(0x9e37_79b9_7f4a_7c15) | usual)
}

/// Enough of a text to know which one it was.
fn head(text: &str) -> String {
    format!("{:?}", text.chars().take(300).collect::<String>())
}

/// How long this thread has had a core: on a busy machine less than the time that has passed.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let first = text.split(' ').next().unwrap();
    Duration::from_nanos(first.parse().unwrap())
}

/// Everything the front does with a file, but for reading it.
fn front(text: &str) -> (Diagnostics, bool) {
    let started = worked();
    let tokens = lex::tokens(text);
    assert_eq!(
        tokens.iter().map(|(_, piece)| *piece).collect::<String>(),
        text
    );

    let mut sources = Sources::new();
    let file = sources.add("T.cal", text);
    let parse = parse::parse(file, text);
    let tree = parse.syntax();
    assert!(
        tree.text() == text,
        "the tree lost something of {}",
        head(text)
    );

    let mut found = parse.errors;
    let ast = ast::build(file, &tree, &mut found);
    let syntax_is_good = found.is_empty();
    let complete = ast.entity.is_some();
    let mut library = Library::new();
    library.insert("T".into(), Arc::new(ast));
    let class = library.keys().next().unwrap();
    let mut diags = Diagnostics::new();
    diags.extend(found);
    for open in [true, false] {
        let given = Params::Given {
            values: &[],
            at: Span::default(),
        };
        let mut checker = Checker::new(&library, if open { Params::Open } else { given });
        let actor = checker.actor(class);
        let good = !checker.diags.iter().any(|d| d.severity.name() == "error");
        if actor.is_none() {
            checker.unit(class);
        }
        diags.extend(checker.diags);
        if let Some(actor) = actor.filter(|_| !open && good && syntax_is_good) {
            lower::lower(&actor, "T".into(), &sources);
        }
    }
    assert!(
        complete || diags.has_errors(),
        "nothing read and nothing said of {}",
        head(text)
    );
    assert!(!render(&sources, &diags, false).is_empty() || diags.is_empty());
    for diag in diags.iter() {
        for label in &diag.labels {
            let at = sources.line_col(label.span);
            assert!(at.line >= 1 && at.column >= 1);
        }
    }
    let took = worked() - started;
    assert!(
        took < Duration::from_secs(10),
        "took {took:?} for {}",
        head(text)
    );
    (diags, complete)
}

/// The programs that the other tests know to be right.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cal/good");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "cal"))
        .collect();
    paths.sort();
    assert!(paths.len() > 20);
    paths
        .iter()
        .map(|p| std::fs::read_to_string(p).unwrap())
        .collect()
}

#[test]
fn random_bytes() {
    let mut random = Random(seed(1));
    for _ in 0..2000 * times() {
        let len = random.below(300);
        let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        front(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_tokens() {
    const WORDS: &[&str] = &[
        "package",
        "import",
        "actor",
        "unit",
        "end",
        "function",
        "procedure",
        "var",
        "begin",
        "action",
        "initialize",
        "guard",
        "do",
        "repeat",
        "priority",
        "schedule",
        "fsm",
        "regexp",
        "local",
        "if",
        "then",
        "elsif",
        "else",
        "while",
        "foreach",
        "for",
        "in",
        "true",
        "false",
        "bool",
        "int",
        "uint",
        "half",
        "float",
        "double",
        "String",
        "List",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        ":",
        "..",
        ".",
        "@",
        "==>",
        "-->",
        "=>",
        ":=",
        "=",
        "!=",
        "<",
        ">",
        "<<",
        ">>",
        "|",
        "^",
        "&",
        "+",
        "-",
        "*",
        "/",
        "**",
        "~",
        "not",
        "#",
        "or",
        "and",
        "div",
        "mod",
        "x",
        "y",
        "In",
        "Out",
        "T",
        "size",
        "type",
        "0",
        "1",
        "077",
        "0xFF",
        "1.5",
        "1..2",
        "\"s\"",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "\n",
        "$",
    ];
    let mut random = Random(seed(2));
    for _ in 0..2000 * times() {
        let mut text = String::new();
        if random.below(2) == 0 {
            text += "actor T() int In, bool B ==> int Out : ";
        }
        for _ in 0..random.below(80) {
            text += WORDS[random.below(WORDS.len())];
            text += if random.below(4) == 0 { "" } else { " " };
        }
        front(&text);
    }
}

#[test]
fn changed_programs() {
    let seeds = seeds();
    let mut random = Random(seed(3));
    for _ in 0..3000 * times() {
        let mut text = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(4) {
            let tokens = lex::tokens(&text);
            if tokens.is_empty() {
                break;
            }
            let at = random.below(tokens.len());
            let mut pieces: Vec<&str> = tokens.iter().map(|(_, piece)| *piece).collect();
            let other = pieces[random.below(pieces.len())];
            match random.below(6) {
                0 => drop(pieces.remove(at)),
                1 => pieces.insert(at, other),
                2 => pieces[at] = other,
                3 => pieces.truncate(at + 1),
                4 => {
                    let with = random.below(pieces.len());
                    pieces.swap(at, with);
                }
                _ => {
                    // A byte of the token is changed.
                    let mut bytes = pieces.concat().into_bytes();
                    let at = random.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random.below(128) as u8;
                    }
                    text = String::from_utf8_lossy(&bytes).into_owned();
                    continue;
                }
            }
            text = pieces.concat();
        }
        front(&text);
    }
}

#[test]
fn deep_nesting_and_long_chains() {
    let actor = |inner: &str| {
        format!("actor T() int In ==> int Out : action In:[x] ==> Out:[{inner}] end end")
    };
    let many = 20_000;
    let deep = [
        actor(&("(".repeat(many) + "x" + &")".repeat(many))),
        actor(&"(".repeat(many)),
        actor(&"[".repeat(many)),
        actor(&("-".repeat(many) + "x")),
        actor(&"if x > 0 then ".repeat(many)),
        actor(&("x[".repeat(many) + "0" + &"]".repeat(many))),
        actor(&("f(".repeat(many) + "0" + &")".repeat(many))),
        actor(&("x".to_owned() + &" + x".repeat(many))),
        actor(&("x".to_owned() + &" + x * x".repeat(many))),
        actor(
            &("if x = 0 then 0 ".to_owned() + &"elsif x = 1 then 1 ".repeat(many) + "else 2 end"),
        ),
        "actor T() ==> : action ==> do ".to_owned() + &"if true then ".repeat(many),
        "actor T() ==> : action ==> do if true then ".to_owned()
            + &"elsif true then ".repeat(many)
            + " end end end",
        "actor T() ==> : action ==> do ".to_owned()
            + &"while true do foreach int i in 0 .. 3 do ".repeat(many),
        "actor T() ".to_owned() + &"List(type: ".repeat(many),
        "actor T() ==> : schedule regexp ".to_owned() + &"(".repeat(many),
        "actor T() ==> : schedule regexp a".to_owned() + &"*".repeat(many) + " end end",
        "actor T() ==> : int x".to_owned() + &"[2]".repeat(many) + "; end",
        "/*".repeat(many),
        "\"".repeat(many),
        "@a ".repeat(many),
        "@a(".repeat(many),
        "a.".repeat(many),
        "actor T() ==> : ".to_owned() + &"@a(b ".repeat(many),
        "actor T() ==> : ".to_owned() + &"a: b: ".repeat(many),
        "actor T() ==> : action ==> do ".to_owned() + &"@a ".repeat(many),
    ];
    for text in &deep {
        let (diags, _) = front(text);
        assert!(
            diags.has_errors(),
            "accepted {}...",
            &text[..80.min(text.len())]
        );
    }
    // Within the limits, all is well.
    let fine = [
        actor(&("(".repeat(100) + "x" + &")".repeat(100))),
        actor(&("x".to_owned() + &" + x".repeat(300))),
        "actor T() ==> : a: action ==> end schedule regexp ".to_owned()
            + &"a? ".repeat(300)
            + " end end",
    ];
    for text in &fine {
        let (diags, _) = front(text);
        assert!(!diags.has_errors(), "refused {}...", &text[..80]);
    }
}

#[test]
fn work_at_compile_time_is_bounded() {
    let expensive = [
        // Doubles with each function: 2^40 calls.
        {
            let mut text = "actor T() ==> int Out : function f0(int x) --> int : x end\n".to_owned();
            for i in 1..40 {
                text += &format!("function f{i}(int x) --> int : f{0}(x) + f{0}(x + 1) end\n", i - 1);
            }
            text + "int v[f39(1)]; action ==> Out:[1] end end"
        },
        "actor T() ==> int Out : function f(int x) --> int : f(x) + f(x) end int v[f(1)]; \
         action ==> Out:[v[0]] end end"
            .to_owned(),
        "actor T() ==> int Out : int v[30000][30000] := [[i * j : for int i in 1 .. 30000] : \
         for int j in 1 .. 30000]; action ==> Out:[v[1][2]] end end"
            .to_owned(),
        "actor T() ==> int Out : int v[9] := [i : for int i in -9223372036854775808 .. \
         9223372036854775807]; action ==> Out:[1] end end"
            .to_owned(),
        "actor T() ==> int Out : action ==> Out:[[i : for int i in 0 .. 100000000]] repeat 100 end end".to_owned(),
    ];
    for text in &expensive {
        front(text);
    }
}
