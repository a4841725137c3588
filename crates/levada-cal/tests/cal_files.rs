// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One small CAL file for each feature and each rule, with the expected result in the same folder: in `cal/good` the
//! intermediate representation, in `cal/bad` the diagnostics. `LEVADA_UPDATE=1` rewrites the expected results.

mod support;

use levada_cal::diag::{self, Diagnostics};
use levada_cal::ir::Span;
use levada_cal::workspace::Workspace;
use std::path::{Path, PathBuf};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cal")
        .join(kind)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "cal"))
        .collect();
    found.sort();
    assert!(found.len() > 20, "where are the files?");
    found
}

/// Compares with the expected text in the file's folder; all differences are shown at the end.
fn compare(path: &Path, extension: &str, got: &str, wrong: &mut String) {
    let expected_file = path.with_extension(extension);
    let got = format!("{}\n", got.trim_end());
    if std::env::var_os("LEVADA_UPDATE").is_some() {
        std::fs::write(&expected_file, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&expected_file).unwrap_or_default();
    if want != got {
        let name = expected_file.file_name().unwrap().to_string_lossy();
        *wrong += &format!("== {name}: expected\n{want}== but got\n{got}\n");
    }
}

fn render(root: &Path, ws: &Workspace, diags: &Diagnostics) -> String {
    // Paths are shown from the folder that the tests run in.
    let text = diag::render(&ws.sources, diags, false);
    let shown = diag::Sources::display_path(root);
    text.replace(&format!("{shown}/"), "").trim_end().to_owned()
}

#[test]
fn good_files_become_what_they_should() {
    let root = folder("good");
    let mut wrong = String::new();
    for path in files(&root) {
        let mut ws = Workspace::new(vec![root.clone()]);
        let class = path.file_stem().unwrap().to_str().unwrap();
        let mut diags = Diagnostics::new();
        ws.check_file(&path, &mut diags);
        let actor = ws.instantiate(class, &[], Span::default(), &mut diags);
        let mut got = render(&root, &ws, &diags);
        if !got.is_empty() {
            got += "\n";
        }
        match actor {
            Some(actor) => got += &support::text(&actor),
            None => wrong += &format!("== {class}: not lowered\n"),
        }
        compare(&path, "txt", &got, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn bad_files_are_told_so() {
    let root = folder("bad");
    let mut wrong = String::new();
    for path in files(&root) {
        let mut ws = Workspace::new(vec![root.clone()]);
        let mut diags = Diagnostics::new();
        ws.check_file(&path, &mut diags);
        let class = path.file_stem().unwrap().to_str().unwrap();
        assert!(!diags.is_empty(), "{class}: nothing was said");
        let mut again = Diagnostics::new();
        if diags.has_errors() && class != "FileName" && class != "Imports" {
            let actor = ws.instantiate(class, &[], Span::default(), &mut again);
            assert!(actor.is_none(), "{class}: lowered in spite of its errors");
        }
        compare(&path, "txt", &render(&root, &ws, &diags), &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What is found in a class of this text, which may use the units of `good`.
fn found_in(class: &str, text: &str) -> (Workspace, Diagnostics) {
    let root = folder("good");
    let path = root.join(format!("{class}.cal"));
    let mut ws = Workspace::new(vec![root]);
    ws.set_text(path.clone(), text.into());
    let mut diags = Diagnostics::new();
    ws.check_file(&path, &mut diags);
    (ws, diags)
}

/// One mistake is one error, whatever depends on what is wrong, and nothing else is reported. Each text
/// has `$` where that error is: before its first character.
#[test]
fn one_mistake_is_one_error() {
    let header = |header: &str| {
        format!(
            "actor One {header} :\n  int v[n] := [i : for int i in 1 .. n];\n  int m = n + 1;\n  int w[m];\n  \
             function f(int x) --> int : x + n end\n  \
             a: action In:[x] repeat n ==> Out:[x] repeat n guard x[0] > n do v[0] := f(x[0]) + #w; end\n  \
             b: action In:[x] ==> Out:[f(x), v[n - 1]] end\n  \
             schedule fsm s: s (a) --> t; t (b) --> s; end\n  priority a > b; end\nend\n"
        )
    };
    let body = |members: &str| format!("actor One () int In ==> int Out :\n{members}\nend\n");
    let act = |stmts: &str| {
        body(&format!(
            "  int y; int v[4];\n  a: action In:[x] ==> Out:[x] var int k do {stmts} y := x; end\n  b: action \
             In:[x] ==> Out:[y] do k2 := v[0]; end\n  int k2;\n  priority a > b; end"
        ))
    };
    let long = |operand: &str, sign: &str, n: usize| vec![operand; n].join(sign);
    let cases: Vec<(&str, String)> = vec![
        // The header of a class.
        ("syntax", header("(int n = 3) $foo In ==> int Out")),
        ("syntax", header("(int n = 3) int In ==> $foo Out")),
        ("syntax", header("(int n = 3) int In, $string Text ==> int Out")),
        ("syntax", header("($foo n = 3) int In ==> int Out")),
        ("syntax", header("(int n = $) int In ==> int Out")),
        ("syntax", header("(int n$ 3) int In ==> int Out")),
        ("syntax", header("(int n = 3$ int In ==> int Out")),
        ("syntax", header("(int n = 3) int In$ int Out")),
        ("syntax", header("(int n = 3) int $1 ==> int Out")),
        ("syntax", header("(int n = 3) int(8) In ==> int Out").replace("(8)", "($8)")),
        ("size", header("(int n = 3) int(size=$0) In ==> int Out")),
        ("port", header("(int n = 3) $List(type: int, size=2) In ==> int Out")),
        ("type", header("(int n = $true) int In ==> int Out")),
        ("name", header("(int n = $N0) int In ==> int Out")),
        ("constant", header("(int n = $3 / 0) int In ==> int Out").replace("$3 / 0", "$3 mod 0")),
        ("duplicate", header("(int n = 3, int $n = 4) int In ==> int Out")),
        ("duplicate", header("(int n = 3) int In, int $In ==> int Out")),
        ("circular", header("(int $n = k, int k = n) int In ==> int Out")),
        ("port", header("(int n = 3) int Inn ==> int Out").replacen("In:[x]", "$In:[x]", 1)),
        ("arguments", header("(int n = $inc()) int In ==> int Out").replace("actor", "import lib.Consts.*;\nactor")),
        // Imports.
        ("import", "import $lib.Gone.*;\nactor One () int In ==> int Out :\n  int v[N];\n  action In:[x] ==> \
                    Out:[inc(x) + N + v[0]] do bump(v); end\nend\n".into()),
        ("import", "import $lib.Consts.gone;\nactor One () int In ==> int Out :\n  action In:[x] ==> Out:[gone(x) \
                    + gone(1)] end\nend\n".into()),
        ("import", "import $lib.Idle.*;\nactor One () int In ==> int Out :\n  int v[N];\n  action In:[x] ==> \
                    Out:[inc(x)] end\nend\n".into()),
        ("class", "package $wrong;\nimport wrong.Unit.*;\nactor One () int In ==> int Out :\n  int v[N];\n  action \
                   In:[x] ==> Out:[inc(x)] end\nend\n".into()),
        // What is declared.
        ("syntax", body("  $foo y := 1;\n  int z[y];\n  action In:[x] ==> Out:[x + y] do y := z[0]; end")),
        ("syntax", body("  int a$ 1;\n  int z[a];\n  action In:[x] ==> Out:[x + a] end")),
        ("constant", body("  int k = $7 / z0;\n  int z0 = 0;\n  int a[k]; int b = k + 1; int c[b];\n  action In:[x] \
                           ==> Out:[a[0] + c[k]] repeat k end").replace(" repeat k", "")),
        ("circular", body("  int $a = b; int b = c; int c = a; int v[a]; int w[b + 1];\n  action In:[x] ==> \
                           Out:[v[0] + w[c]] end")),
        ("circular", body("  int $s = f(3);\n  function f(int x) --> int : s + x end\n  int v[s];\n  action In:[x] ==> \
                           Out:[f(x) + v[0]] end")),
        ("size", body("  int v[$0];\n  int w[#v];\n  action In:[x] ==> Out:[v[0] + #v + w[1]] end")),
        ("size", body("  int v[$true];\n  int w[#v + 1];\n  action In:[x] ==> Out:[v[0]] end")),
        ("syntax", body("  function f(int) --> int : x end\n  action In:[x] ==> Out:[f(x)] end")
            .replace("(int)", "(int$)")),
        ("syntax", body("  function f(int x) --> $foo : x end\n  int v[f(2)];\n  action In:[x] ==> \
                         Out:[f(x) + v[0]] end")),
        ("body", body("  function $f(int x) --> int end\n  int v[f(2)];\n  action In:[x] ==> Out:[f(x) + v[0]] end")),
        ("name", body("  function f(int x) --> int : $y + x end\n  int v[f(2)];\n  action In:[x] ==> \
                       Out:[f(x) + v[0]] end")),
        ("name", body("  action In:[x] ==> Out:[$y + y] do y := y + 1; y2 := y; end\n  int y2;")),
        ("tag", body("  a: action In:[x] ==> Out:[x] end\n  b: action In:[x] ==> end\n  schedule fsm s: s (a) --> t; \
                      t ($c) --> u; u (c) --> s; u (b) --> s; end\n  priority a > c > b; end")),
        ("state", body("  a: action In:[x] ==> Out:[x] end\n  schedule fsm $r: s (a) --> t; t (a) --> s; end")),
        ("type", body("  action In:[x] ==> Out:[k + t[0]] var int k = $true, int t[k] end")),
        // Statements and expressions.
        ("syntax", act("y := x + $;")),
        ("syntax", act("y := (x + 1$;")),
        ("syntax", act("y := f(x$;")),
        ("syntax", act("y $= x;")),
        ("syntax", act("y := x$ v[0] := y;")),
        ("syntax", act("if x > 0$ y := 1; end").replace("$ y", " $y").replace("0 $y", "0$ y")),
        ("syntax", act("while x > 0$ y := 1; end")),
        ("syntax", act("foreach int i in 0 $, 3 do y := i; end").replace("0 $,", "0$ ,")),
        ("syntax", act("y := v[0$;")),
        ("syntax", act("y := [1, 2$;")),
        ("syntax", act("y $+ 1;")),
        ("syntax", act("if x $== 0 then y := 1; end")),
        ("syntax", act("$int q; q := 1;")),
        ("string", act("println($\"a\nb\");")),
        ("string", act("println(\"a$\0b\");")),
        ("character", act("y := x $\u{00f7} 2;")),
        ("character", act("println($gr\u{f6}\u{df}e + \" \" + gr\u{f6}\u{df}e);")),
        ("unsupported", act("y := x $** 2;")),
        ("number", act("y := $089;")),
        ("type", act("y := v $+ 1;")),
        ("type", act("y := if x > 0 then $v else 1 end;")),
        ("assign", act("$k3 := 1;").replace("int k2;", "int k2; int k3 = 3;")),
        // Structure.
        ("syntax", body("  action In:[x] ==> Out:[x] do if x > 0 then y := 1; end\n  $int y;\n  b: action In:[x] ==> \
                         Out:[y] end")),
        ("syntax", body("  action In:[x] ==> Out:[x] do if x > 0 then y := 1; end end end\n  int y;\n  \
                         b: action In:[x] ==> Out:[y] end\n").replace("  int y", "  $int y")),
        ("syntax", body("  b: $In:[x] ==> Out:[x] do if x > 0 then y := 1; end y := 2; y := 3; end\n  int y;")),
        ("syntax", body("  action In:[x]$ Out:[x] end\n  action In:[x] ==> Out:[x] end")),
        ("syntax", body("  int v[2]$\n  action In:[x] ==> Out:[v[0]] end")),
        ("syntax", body("  action In:[x] ==> Out:[x] end\n  $do y := 1; y := 2; end\n  int y;")),
        ("syntax", body("  a: action In:[x] ==> Out:[x] end\n  schedule fsm s: s (a) $-> s; s (a) --> t; \
                         t (a) --> s; end").replace(") $->", ")$ ->")),
        ("comment", body("  action In:[x] ==> Out:[x] end\n  $/* never closed\n  int y;")),
        ("comment", "$/* never closed\nactor One () ==> :\nend\n".into()),
        ("syntax", "$".into()),
        // Depth.
        ("nesting", act(&format!("y := {}${}x{};", "(".repeat(127), "(".repeat(90), ")".repeat(217)))),
        ("nesting", act(&format!("{}if x = $1 then {}y := 1;{}", "if x = 1 then ".repeat(126),
                                 "if x = 1 then ".repeat(80), " end".repeat(207)))),
        ("nesting", act(&format!("y := {} $+ {};", long("x", " + ", 4097), long("x", " + ", 9)))),
    ];
    let mut wrong = String::new();
    for (code, marked) in cases {
        let at = marked.find('$').unwrap();
        let text = marked.replacen('$', "", 1);
        let (ws, diags) = found_in("One", &text);
        let all: Vec<_> = diags.iter().collect();
        let good = match &all[..] {
            [one] => {
                one.code == code
                    && one.severity.name() == "error"
                    && one.labels[0].span.start as usize == at
            }
            _ => false,
        };
        if !good {
            let places: Vec<_> = all
                .iter()
                .map(|d| (d.code, d.labels[0].span.start))
                .collect();
            let shown: String = marked.chars().take(600).collect();
            let said: String = diag::render(&ws.sources, &diags, false)
                .chars()
                .take(1500)
                .collect();
            wrong += &format!("== {code} at {at}, but {places:?}:\n{shown}\n{said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What applies to one another's results may be as long as it is allowed to be, also where it is spread over
/// parentheses, and is refused beyond.
#[test]
fn long_expressions_are_compiled_or_refused() {
    for (levels, length, fits) in [
        (1, 512, true),
        (1, 4095, true),
        (8, 511, true),
        (8, 513, false),
        (90, 4000, false),
    ] {
        let mut sum = "x".to_owned();
        for _ in 0..levels {
            sum = format!("({sum}{})", " + x".repeat(length));
        }
        let elsif = "elsif x = 1 then y := 1; ".repeat(if fits { 1000 } else { 1 });
        let text = format!(
            "actor One () int In ==> int Out :\n  int y := 1;\n  action In:[x] ==> Out:[{sum} + y] guard {sum} > 0 do \
             if x = 0 then y := 1; {elsif} end end\nend\n"
        );
        let (_, diags) = found_in("One", &text);
        let codes: Vec<_> = diags.iter().map(|d| d.code).collect();
        let wanted: &[&str] = if fits { &[] } else { &["nesting"] };
        assert_eq!(codes, wanted, "{levels} times {length}");
    }
}

/// A token that is left out, doubled or replaced is one error nearly everywhere, and never many.
#[test]
fn one_wrong_token_is_one_error() {
    use levada_cal::lex;
    let (mut files_tried, mut one, mut more) = (0, 0, Vec::new());
    for path in files(&folder("good")) {
        let class = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let tokens = lex::tokens(&text);
        files_tried += 1;
        let solid = (0..tokens.len()).filter(|&i| !tokens[i].0.is_trivia());
        // Not all: a tenth finds what all do.
        for i in solid.skip(files_tried % 10).step_by(10) {
            let piece = tokens[i].1;
            for with in [String::new(), format!("{piece} {piece}"), "$".into()] {
                let pieces = tokens.iter().enumerate();
                let mutated: String = pieces
                    .map(|(j, (_, piece))| if j == i { with.as_str() } else { piece })
                    .collect();
                let (ws, diags) = found_in(class, &mutated);
                match diags.error_count() {
                    0 => {}
                    1 => one += 1,
                    n => more.push((n, render(&folder("good"), &ws, &diags))),
                }
            }
        }
    }
    let most = more.iter().map(|(n, _)| *n).max().unwrap_or(0);
    let shown: Vec<&str> = more.iter().map(|(_, text)| text.as_str()).collect();
    assert!(one > 900, "{one}");
    assert!(
        more.len() * 100 <= one && most <= 3,
        "{} of {one}, at most {most}:\n{}",
        more.len(),
        shown.join("\n")
    );
}
