// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the text that `levada cc` and `levada translate` process: what a translation must not change,
//! constructs around forks (macros, attributes, comments, line endings of other editors), and what is refused.

use crate::support::{LEVADA, compilers, levada, run, said, sources, works};
use std::path::Path;
use std::process::Command;

const STRICT: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wconversion",
    "-Werror",
];

/// The macros of <levada/fork.h> in the user's files, for C and C++.
#[test]
fn forks_by_hand_are_silent() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = sources().join("byhand.c");
    let source = source.to_str().unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let headers = format!("-I{}", headers.display());
    for cc in compilers() {
        let plus = cc.replace("gcc", "g++").replace("clang", "clang++");
        for (compiler, standard, language) in [
            (cc, "-std=c11", "c"),
            (cc, "-std=c17", "c"),
            (cc, "-std=c2x", "c"),
            (plus.as_str(), "-std=c++17", "c++"),
        ] {
            let mut command = Command::new(compiler);
            command.args(STRICT).args([
                &headers,
                standard,
                "-fsyntax-only",
                "-x",
                language,
                source,
            ]);
            let Ok(out) = command.output() else {
                continue; // no C++ here
            };
            assert!(
                out.status.success(),
                "{compiler} {standard}: {}",
                said(&out)
            );
        }
        works(cc, &["cc", "-O2", source, "-o", "byhand"], folder);
        assert_eq!(run(&folder.join("byhand"), 2), "6765 5 16 8 129 33\n");
    }
}

const COLLIDING: &str = "\
#define _GNU_SOURCE
/* Words that a header might use, too. */
#define in 5
#define out 6
#define run 7
#define head 8
#define limit 9
#define record 10
#define state 11
#define h 12
#define slot 13
#define a0 14
#define twice(x) wrong
extern int printf(const char *, ...);
int (twice)(int x) { return 2 * x; }
int main(void) {
  int y = 0;
  if (y == 0) y = (twice)(in) !! { y = out; };
  else return (twice)(y) !! {};
  printf(\"%d\\n\", y + run + head + limit + record + state + h + slot + a0);
  if (y) return (twice)(0) !! { y++; };
  return 1;
}
";

/// What is written for people is silent, too, and has no names that the file's macros could have.
#[test]
fn macros_of_the_file_do_not_meet_ours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("x.c"), COLLIDING).unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let headers = format!("-I{}", headers.display());
    for style in [&[][..], &["--serial"]] {
        let words = [&["translate", "x.c", "-o", "y.c"][..], style].concat();
        works("cc", &words, folder);
        for cc in compilers() {
            let mut command = Command::new(cc);
            command
                .args(STRICT)
                .args([&headers, "-std=c11", "-fsyntax-only", "y.c"]);
            command.arg("-Wno-missing-prototypes").current_dir(folder);
            let out = command.output().unwrap();
            assert!(out.status.success(), "{cc}: {}", said(&out));
            works(cc, &["cc", "y.c", "-o", "y"], folder);
            assert_eq!(run(&folder.join("y"), 2), "94\n");
        }
    }
}

const COMMENTED: &str = "\
/* A file. */
#include <stdio.h>   // with comments
#define N 10 /* and macros */

static int f(int x) { return x; }

/* This one forks. */
int main(void)
{
\tint a, b; // a tab before
\ta = f(N + /* why */ 1) !! {
\t\tb = N;    // odd   blanks
#ifdef NEVER
\t\tb = f(3) !! { };
#endif
\t}
\tprintf(\"%d %d\\n\", a, b);
\treturn 0;
}
";

#[test]
fn translation_keeps_what_it_does_not_need_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("x.c"), COMMENTED).unwrap();
    let out = works("cc", &["translate", "x.c"], folder);
    // The block is indented deeper; that is all.
    let mut lines = out.lines();
    for line in COMMENTED.lines().filter(|l| !l.contains("a = f(N")) {
        let same = |l: &str| l == line || l == format!("\t{line}");
        assert!(lines.any(same), "{line:?} is missing in:\n{out}");
    }
    assert!(out.contains("N + /* why */ 1"), "{out}");
    let serial = works("cc", &["translate", "--serial", "x.c"], folder);
    assert!(!serial.contains("lvd_fork"), "{serial}");
    // Without forks: the same bytes.
    std::fs::write(folder.join("y.c"), COMMENTED.replace("!!", "; ")).unwrap();
    let same = works("cc", &["translate", "y.c"], folder);
    assert_eq!(same, COMMENTED.replace("!!", "; "));
    // Without forks nothing has to be understood.
    let odd = "#include <no/such/header.h>\nint x = !!1; @ \\u `\n";
    std::fs::write(folder.join("z.c"), odd).unwrap();
    assert_eq!(works("cc", &["translate", "z.c"], folder), odd);
    // From the input.
    let mut child = Command::new(LEVADA);
    child
        .args(["translate", "-"])
        .stdin(std::fs::File::open(folder.join("x.c")).unwrap());
    assert_eq!(
        String::from_utf8_lossy(&child.output().unwrap().stdout),
        out
    );
}

/// The header that a translated file needs is not put where an include is a part of something else.
#[test]
fn the_header_stands_between_declarations() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("list.h", "ONE = 1,\nTWO,\n");
    for first in ["", "#include <stdio.h>\n"] {
        let text = format!(
            "{first}enum {{\n#include \"list.h\"\n}};\nstatic int two(int x) {{ return TWO * x; }}\n\
             int main(void) {{\n  int b, a = two(3) !! {{ b = ONE; }}\n  return a + b;\n}}\n"
        );
        write("x.c", &text);
        works("cc", &["translate", "x.c", "-o", "y.c"], folder);
        works("cc", &["cc", "y.c", "-o", "y"], folder);
        let done = Command::new(folder.join("y")).status().unwrap();
        assert_eq!(done.code(), Some(7));
    }
}

/// Byte order marks, ends of lines as others write them, and several things on a line.
#[test]
fn texts_of_other_editors() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = "int two(int x) { return 2 * x; } int main(void) { int b, a = two(2) !! { b = 3; } return a + b; }\n";
    let lines = line
        .replace("; ", ";\n  ")
        .replace("} int", "}\nint")
        .replace("{ b", "{ \\\nb");
    let marked = format!("\u{feff}{lines}");
    let begins =
        "\u{feff}int two(int), main(void) { int b, a = two(2) !! { b = 3; } return a + b; }\n";
    let begins =
        begins.replace("int two(int), main", "int main") + "int two(int x) { return 2 * x; }\n";
    let begins = begins.replace("int main", "extern int two(int);\nint main");
    for text in [line, &lines, &marked, &begins] {
        for end in ["\n", "\r\n"] {
            let text = text.replace('\n', end);
            std::fs::write(folder.join("x.c"), &text).unwrap();
            let out = works("cc", &["translate", "x.c"], folder);
            assert_eq!(
                out.starts_with('\u{feff}'),
                text.starts_with('\u{feff}'),
                "{out}"
            );
            let alike = out.matches('\n').count() == out.matches("\r\n").count();
            assert_eq!(alike, end == "\r\n", "{out:?}");
            std::fs::write(folder.join("y.c"), &out).unwrap();
            for cc in compilers() {
                for name in ["x.c", "y.c"] {
                    works(cc, &["cc", name, "-o", "xy"], folder);
                    let done = Command::new(folder.join("xy")).status().unwrap();
                    assert_eq!(done.code(), Some(7), "{cc} {name}:\n{out}");
                }
            }
        }
    }
}

/// Constructs of later C standards near forks.
#[test]
fn attributes_and_other_words_of_c23() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "\
#include <stdio.h>
[[nodiscard]] static long two([[maybe_unused]] int x, int) { return 2L * x; }
typeof(int) t(typeof(1L) x) { return (int)x; }
int main() {
  int b, a = two(3, 1000) !! { [[maybe_unused]] int u = 3; b = 0b11; }
  auto q = two(4, 1) !! { b++; }
  switch (b) {
    case 4: b++; [[fallthrough]];
    default: { [[maybe_unused]] int w = t(b) !! { a++; } }
  }
  printf(\"%d %d %ld %zu\\n\", a, b, (long)q, sizeof(int) * 0);
}
";
    std::fs::write(folder.join("c23.c"), text).unwrap();
    for cc in compilers() {
        for style in [&[][..], &["--serial"]] {
            let words = [
                &["cc", "-std=gnu2x", "-Wno-all", "c23.c", "-o", "c23"][..],
                style,
            ]
            .concat();
            let out = levada(cc, &words, folder);
            if said(&out).contains("unrecognized") {
                continue; // of the compiler's own time
            }
            assert!(out.status.success(), "{}", said(&out));
            assert_eq!(run(&folder.join("c23"), 2), "7 5 8 0\n");
        }
    }
    // Words that this machine's compilers may not know yet.
    let later = "\
enum color : unsigned char { RED, BLUE };
constexpr int K = 3;
static enum color other(enum color c) { return c == RED ? BLUE : RED; }
[[gnu::noinline]] static bool flip(bool b) { return !b; }
static void *none(typeof(nullptr) p) { return p; }
static unsigned _BitInt(7) seven(unsigned _BitInt(7) x) { return x; }
int main() {
  enum color c = other(RED) !! { static_assert(true); }
  bool f = flip(true) !! { thread_local static int u = 0x1'0; u++; }
  void *p = none(nullptr) !! { alignas(16) char x[K] = {}; x[0] = 1; }
  unsigned _BitInt(7) s = seven(3) !! { unreachable: }
  return c + f + !!p + (int)s;
}
";
    std::fs::write(folder.join("later.c"), later).unwrap();
    let text = works("cc", &["cc", "-E", "-std=gnu2x", "later.c"], folder);
    assert!(
        !text.contains("!! {") && text.contains("lvd_run_main_4"),
        "{text}"
    );
}

#[test]
fn errors_and_debug_information_point_at_the_users_lines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "int f(int x) { return x; }\nint g(int n) {\n  int y;\n  int x = f(n) !! {\n    y = 2;\n    \
                yy = 3;\n  }\n  return x + y +\n    zz;\n}\nint h(void) {\n  return ww;\n}\n";
    std::fs::write(folder.join("wrong.c"), text).unwrap();
    for cc in compilers() {
        let out = levada(cc, &["cc", "-c", "wrong.c"], folder);
        assert!(!out.status.success());
        let said = said(&out);
        for place in ["wrong.c:6:", "wrong.c:9:", "wrong.c:12:"] {
            assert!(said.contains(place), "{place} in {said}");
        }
        assert!(!folder.join("wrong.o").exists());
        let right = text
            .replace("yy = 3;", "")
            .replace("zz", "0")
            .replace("ww", "0");
        std::fs::write(folder.join("right.c"), right).unwrap();
        works(cc, &["cc", "-g", "-c", "right.c"], folder);
        let Ok(out) = Command::new("readelf")
            .args(["--debug-dump=decodedline", "right.o"])
            .current_dir(folder)
            .output()
        else {
            continue;
        };
        let lines = String::from_utf8_lossy(&out.stdout).into_owned();
        for line in [1, 4, 5, 8, 12] {
            let there = lines.lines().any(|l| {
                let mut words = l.split_whitespace();
                words.next() == Some("right.c") && words.next() == Some(&line.to_string())
            });
            assert!(there, "line {line} in {lines}");
        }
        assert!(!lines.contains("/tmp/levada-cc"), "{lines}");
    }
}

/// What cannot be written out for people, where it stands; the compiler takes it as it is.
#[test]
fn what_only_the_preprocessor_sees() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let g = "static int g(int x) { return x; }\n";
    write(
        "impl.h",
        &format!("{g}\nint k(int n) {{\n  int b, a = g(n) !! {{ b = 2; }}\n  return a + b;\n}}\n"),
    );
    write(
        "x.c",
        "#include \"impl.h\"\nint main(void) { return k(2); }\n",
    );
    let both = "#define BOTH(a) int a = g(2) !! { b = 2; }\n";
    write(
        "y.c",
        &format!("{both}{g}int main(void) {{\n  int b;\n  BOTH(a)\n  return a + b;\n}}\n"),
    );
    for (name, place, code) in [
        ("x.c", "impl.h:4:12", "fork-in-include"),
        ("y.c", "y.c:5:3", "fork-in-macro"),
    ] {
        let out = levada("cc", &["translate", name], folder);
        assert_eq!(out.status.code(), Some(1));
        let said = said(&out);
        assert!(said.contains(&format!("error[{code}]")), "{said}");
        assert!(said.contains(place), "{said}");
        for cc in compilers() {
            works(cc, &["cc", name, "-o", "both"], folder);
            let done = Command::new(folder.join("both")).status().unwrap();
            assert_eq!(done.code(), Some(4));
        }
    }
    // What the preprocessor chooses between the parts of a fork, and forks that it does not choose.
    let chosen = "#ifdef ODD\n      1\n#else\n      2\n#endif\n";
    let text = format!(
        "{g}int main(void) {{\n  int b, a = g(\n{chosen}      ) !! {{ b = 2; }}\n  return a + b;\n}}\n"
    );
    write("a.c", &text);
    let tail = "#if 1\n  b = 2; }\n#else\n  b = 3; }\n#endif\n";
    write(
        "b.c",
        &format!(
            "{g}int main(void) {{\n  int b, a;\n  a = g(2) !! {{\n{tail}  return a + b;\n}}\n"
        ),
    );
    for (name, place) in [("a.c", "a.c:3:12"), ("b.c", "b.c:4:3")] {
        let out = levada("cc", &["translate", name], folder);
        let said = said(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("error[fork-directive]"), "{said}");
        assert!(said.contains(place), "{said}");
        for cc in compilers() {
            works(cc, &["cc", name, "-o", "chosen"], folder);
            let done = Command::new(folder.join("chosen")).status().unwrap();
            assert_eq!(done.code(), Some(4));
        }
    }
    let whole = "#if 1\n  a = g(2) !! {\n#if 1\n    b = 2;\n#else\n    b = 3;\n#endif\n  }\n\
                 #else\n  a = g(3) !! { b = 2; }\n#endif\n";
    write(
        "c.c",
        &format!("{g}int main(void) {{\n  int b, a;\n{whole}  return a + b;\n}}\n"),
    );
    let out = levada("cc", &["translate", "c.c", "-o", "out.c"], folder);
    assert_eq!(out.status.code(), Some(0));
    let warned = said(&out);
    assert!(warned.contains("warning[fork-left-out]"), "{warned}");
    assert!(warned.contains("c.c:13:12"), "{warned}");
    works("cc", &["cc", "out.c", "-o", "out"], folder);
    let done = Command::new(folder.join("out")).status().unwrap();
    assert_eq!(done.code(), Some(4));
    // A type that depends on a variable.
    let text = "static int sum(int n, int rows[][n]) { return rows[0][n - 1]; }\n\
                int main(void) {\n  int n = 3, m[2][n];\n  int (*f)(int, int (*)[n]) = sum;\n  m[0][2] = 5;\n  \
                return f(n, m) !! { m[1][0] = 1; };\n}\n";
    write("z.c", text);
    let out = levada("cc", &["cc", "-c", "z.c"], folder);
    assert!(!out.status.success());
    let said = said(&out);
    assert!(said.contains("error[fork-variable-type]"), "{said}");
    assert!(said.contains("z.c:6:10"), "{said}");
    write("z.c", &text.replace("return f(", "return sum("));
    works("cc", &["cc", "z.c", "-o", "z"], folder);
    let done = Command::new(folder.join("z")).status().unwrap();
    assert_eq!(done.code(), Some(5));
}

#[test]
fn refusals_show_the_line_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "#define TWO 2\nint f(int);\nvoid g(int x) {\n  if (x == TWO) goto in;\n  f(1) !! { in: x = 2; }\n}\n";
    std::fs::write(folder.join("x.c"), text).unwrap();
    for words in [&["cc", "-c", "x.c"][..], &["translate", "x.c", "-o", "x.o"]] {
        let out = levada("cc", words, folder);
        assert_eq!(out.status.code(), Some(1));
        let said = said(&out);
        for part in [
            "error[fork-entered]",
            "x.c:4:17",
            "goto in;",
            "into the block",
            "help",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(!folder.join("x.o").exists());
    }
}
