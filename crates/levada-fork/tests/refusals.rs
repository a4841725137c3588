// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Refusals: each names the line, the reason and a remedy.

use levada_fork::emit::Style;
use levada_fork::preprocessed::{Prelude, rewrite, without_block};
use levada_fork::report::of_preprocessed;

const HEAD: &str = "int f(int); void g(void); void longjmp(long *, int); long jump[8];\n";

/// The refusals of a text: code, line, message and help.
fn refused(text: &str) -> Vec<(String, u32, String, String)> {
    let text = format!("# 1 \"<stdin>\"\n{HEAD}{text}");
    let none = || -> Result<Prelude, ()> { Err(()) };
    let done = rewrite(text.as_bytes(), Style::Serial, none).expect("serial C needs no prelude");
    let Err(why) = done else {
        return Vec::new();
    };
    let body = text.split_once('\n').unwrap().1;
    let (sources, found) = of_preprocessed(&why, Some(("<stdin>", body.as_bytes())));
    let one = |d: &levada_diag::Diagnostic| {
        let at = sources.line_col(d.labels[0].span);
        let help = d.help.clone().unwrap_or_default();
        (d.code.to_string(), at.line, d.message.clone(), help)
    };
    found.iter().map(one).collect()
}

fn expect(code: &str, line: u32, text: &str) {
    let found = refused(text);
    assert!(
        found.iter().any(|(c, l, message, help)| {
            c == code && *l == line + 1 && !message.is_empty() && !help.is_empty()
        }),
        "expected {code} in line {line} of:\n{text}\nfound {found:?}"
    );
}

#[test]
fn jumps_into_the_block() {
    expect(
        "fork-entered",
        2,
        "void t(int x) {\n if (x) goto in;\n f(1) !! { in: g(); }\n}",
    );
    expect(
        "fork-entered",
        3,
        "void t(int x) {\n f(1) !! { in: g(); }\n goto in;\n}",
    );
    expect(
        "fork-entered",
        4,
        "void t(int x) {\n switch (x) {\n  case 1: f(1) !! {\n  case 2: g();\n } }\n}",
    );
    expect(
        "fork-entered",
        3,
        "void t(int x) { switch (x) {\n  f(1) !! {\n  default: g();\n } }\n}",
    );
    expect(
        "fork-entered",
        2,
        "void t(void) {\n void *p = &&in; goto *p;\n f(1) !! { in: g(); }\n}",
    );
    // From one block into another.
    expect(
        "fork-entered",
        2,
        "void t(void) {\n f(1) !! { goto in; }\n f(2) !! { in: g(); }\n}",
    );
}

#[test]
fn ways_out_that_cannot_be_joined() {
    expect(
        "fork-computed-goto",
        2,
        "void t(void *p) { f(1) !! {\n goto *p;\n } }",
    );
    expect(
        "fork-asm-goto",
        2,
        "void t(void) { f(1) !! {\n asm goto (\"\" : : : : out);\n } out:; }",
    );
    expect(
        "fork-longjmp",
        2,
        "void t(void) { f(1) !! {\n longjmp(jump, 1);\n } }",
    );
    expect(
        "fork-left-from-condition",
        2,
        "void t(void) { while (f(1) !! {\n break;\n }) g(); }",
    );
    expect(
        "fork-left-from-inside",
        3,
        "void t(void) { __label__ out; f(1) !! {\n void inner(void) {\n goto out; }\n inner(); } out:; }",
    );
    expect(
        "fork-left-from-inside",
        2,
        "void t(void) { __label__ out; void a(void) { void b(void) {\n goto out; } b(); }\n f(1) !! { a(); } out:; }",
    );
    expect(
        "fork-label-twice",
        3,
        "void t(void) { f(1) !! { { __label__ a; a: g(); }\n\
         { __label__ a; a: g();\n goto a; } } }",
    );
}

#[test]
fn places_that_do_not_run() {
    expect("fork-constant", 1, "int x = f(1) !! { };");
    expect(
        "fork-constant",
        2,
        "void t(void) {\n static int x = f(1) !! { }\n}",
    );
    expect(
        "fork-constant",
        2,
        "void t(int x) { switch (x) {\n case f(1) !! { }: g(); } }",
    );
    expect(
        "fork-unevaluated",
        2,
        "void t(void) {\n int x = sizeof(f(1) !! { });\n}",
    );
    expect(
        "fork-unevaluated",
        2,
        "void t(void) {\n __typeof__(f(1) !! { }) x;\n}",
    );
    expect("fork-place", 2, "void t(void) {\n int x[f(1) !! { }];\n}");
    expect("fork-place", 1, "int x[(f(1) !! { })];");
}

#[test]
fn forks_without_a_block() {
    let refused = |text: &str| {
        let text = format!("# 1 \"<stdin>\"\n{HEAD}{text}");
        let why = without_block(text.as_bytes())?;
        let body = text.split_once('\n').unwrap().1.to_string();
        let (sources, found) = of_preprocessed(&why, Some(("<stdin>", body.as_bytes())));
        let d = found.iter().next().unwrap();
        let line = sources.line_col(d.labels[0].span).line - 1;
        Some((d.code, line, d.help.clone().unwrap()))
    };
    let (code, line, help) = refused("int t(int x) {\n x = f(3) !! ;\n return x;\n}").unwrap();
    assert_eq!((code, line), ("fork-no-block", 2));
    assert!(help.contains("f(arguments) !! { ... }"), "{help}");
    let (code, line, help) = refused("int t(int x) {\n return f(1)\n !! f(2);\n}").unwrap();
    assert_eq!((code, line), ("fork-no-block", 3));
    assert!(help.contains("!! { x = f...; }"), "{help}");
    for text in [
        "int t(int x) { return (int) !!x; }",
        "void t(int x) { if (f(x)) !!x; }",
        "int t(int x) { return f(!!x) !! { g(); }; }",
    ] {
        assert!(refused(text).is_none(), "{text}");
    }
}

#[test]
fn forks_of_no_call() {
    expect("fork-no-call", 2, "void t(int x) {\n (x) !! { }\n}");
    for what in ["x", "1", "a[1]", "x++", "f(x) + x", "\"text\"", "'c'"] {
        let text = format!("int f(int);\nvoid t(int x, int *a) {{\n x = {what} !! {{ }}\n}}");
        expect("fork-no-call", 3, &text);
    }
    expect(
        "not-understood",
        2,
        "void t(int x) {\n f(x) !! { } !! { };\n}",
    );
}

#[test]
fn types_that_file_scope_cannot_name() {
    expect(
        "fork-local-type",
        3,
        "void t(void) { struct s { int x; } v;\n int (*p)(struct s) = 0;\n p(v) !! { }\n}",
    );
    expect(
        "fork-local-type",
        3,
        "void t(void) { enum e { A }; \n enum e (*p)(void) = 0;\n p() !! { }\n}",
    );
    expect(
        "fork-local-type",
        2,
        "struct r { int x; } t(int n) {\n struct r x = t(n - 1) !! { }\n return x; }",
    );
    for head in [
        "enum e { A } t(int n)",
        "enum { A } t(int n)",
        "int t(enum { A } e, int n)",
    ] {
        let given = if head.contains("(enum") { "A, n" } else { "n" };
        expect(
            "fork-local-type",
            2,
            &format!("static {head} {{\n t({given}) !! {{ }}\n return A; }}"),
        );
    }
    expect(
        "fork-unnamed-type",
        2,
        "typedef struct { int x; } *at; struct { int y; } h(int); void t(void) {\n h(1) !! { }\n}",
    );
    expect(
        "fork-unknown-function",
        2,
        "void t(void) {\n undeclared(1) !! { }\n}",
    );
    expect(
        "fork-unknown-type",
        2,
        "int v(int, ...); void t(void) {\n v(1, ({ 2.0; })) !! { }\n}",
    );
    expect(
        "fork-constant-members",
        2,
        "struct c { const int x; }; struct c c(int); void t(void) {\n c(1) !! { }\n}",
    );
    expect("fork-arguments", 2, "void t(void) {\n f(1, 2) !! { }\n}");
}

#[test]
fn the_rest() {
    expect(
        "ambiguous-end",
        3,
        "void t(int x, int *p) {\n x = f(1) !! { }\n *p = 3;\n}",
    );
    for text in [
        "void t(int x, int *p) {\n f(1) !! { }\n *p = 3;\n}",
        "void t(int x, int *p) {\n f(1) !! { }\n *p++;\n}",
        "void t(int x, int *p) {\n int y = f(1) !! { }\n *p += x;\n}",
    ] {
        expect("ambiguous-end", 3, text);
    }
    expect(
        "fork-order",
        2,
        "int i; void t(void) {\n int a[2] = { i, f(1) !! { i++; } };\n}",
    );
    expect(
        "fork-order",
        2,
        "void t(int x) {\n struct { int a, b; } s = { .b = f(1) !! { }, .a = f(2) !! { } };\n}",
    );
    let deep = format!(
        "void t(void) {{\n f({}1{}) !! {{ }}\n}}",
        "(".repeat(9999),
        ")".repeat(9999)
    );
    expect("nesting", 2, &deep);
    let long = format!(
        "void t(void) {{\n f(1{}) !! {{ }}\n}}",
        " + 1".repeat(99_999)
    );
    expect("nesting", 2, &long);
    expect(
        "fork-nested-function",
        2,
        "void t(void) { void inner(void) {\n f(1) !! { }\n } inner(); }",
    );
    expect("not-understood", 2, "void t(void) {\n f(1 2) !! { }\n}");
}

/// The object of a compound literal ends with the block that a sequence becomes.
#[test]
fn objects_that_would_end_too_early() {
    for text in [
        "void t(int x) {\n int *p = (int[]){x, f(1) !! { x = 5; }}; }",
        "void t(int x) { int *p;\n p = (int[]){x, f(1) !! { x = 5; }}; }",
        "struct s { int a; }; struct s *id(struct s *, int); void t(int x) {\n \
         struct s *q = id(&(struct s){x}, f(x) !! { x = 9; }); }",
        "struct s { int a, *p; }; void t(int x) {\n struct s v = (struct s){x, (int[]){f(x) !! { x = 9; }}}; }",
        "int h(int *, int); void t(int x) { int *p;\n x = h(p = &(int){x}, f(x) !! { x = 9; }); }",
    ] {
        expect("fork-literal", 2, text);
    }
}

/// The help suggests a declaration only if the called expression is a name.
#[test]
fn help_fits_what_is_called() {
    for (text, word) in [
        ("void t(int x) { _Generic(x, int: f)(1) !! { } }", "pointer"),
        ("void t(void) { nowhere(1) !! { } }", "prototype"),
    ] {
        let found = refused(text);
        let fits = |(code, _, _, help): &(String, u32, String, String)| {
            code == "fork-unknown-function" && help.contains(word)
        };
        assert!(found.iter().any(fits), "{text}\n{found:?}");
    }
}

#[test]
fn valid_forks_are_not_refused() {
    for text in [
        "void t(int x, int *p) { x = (f(1) !! { }) * 2; x = f(1) !! { };\n *p = 3; }",
        "void t(int x) { x = f(1) !! { } * x; x = 1 + f(1) !! { } * f(2); }",
        "int v(int, ...); void t(void) { enum { A, B = 'b' } a = A; v(A, a, B | 1) !! { } }",
        "void t(int n) { int a[3] = { n, f(n) !! { }, 1 + n }; }",
        "void t(void) { f(1) !! { goto in; in: g(); } }",
        "void t(int x) { f(1) !! { switch (x) { case 1: g(); default: break; } } }",
        "void t(void) { f(1) !! { while (1) { break; } for (;;) { continue; } do break; while (0); } }",
        "void t(void) { for (;;) f(1) !! { if (f(2)) break; continue; } }",
        "void t(void *p) { f(1) !! { } goto *p; }",
        "int x = sizeof(int) + !!3; void t(int x) { if (x) !!x; f(1) !! { x = !!x; } }",
        "void t(void) { f(1) !! { } if (f(2)) longjmp(jump, 1); }",
        "typedef int f_t(int); void t(f_t *p) { p(1) !! { } }",
        "void t(int f(int)) { f(1) !! { } }",
        "void t(void) { int h(int); h(1) !! { } }",
        "struct s { int a; }; int h(struct s *, int); void t(int x) { x = h(&(struct s){x}, f(x) !! { x = 9; }); }",
        "struct s { int a, b; }; void t(int x) { struct s v = (struct s){x, f(x) !! { x = 9; }}; }",
        "void t(int x) { x = ((int[]){x, f(x) !! { x = 9; }})[1]; }",
        "struct s { int (*m[2])(int); }; void t(struct s *s) { s->m[1](2) !! { } s[1].m[0](1) !! { } }",
    ] {
        assert!(refused(text).is_empty(), "{text}\n{:?}", refused(text));
    }
}
