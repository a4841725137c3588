// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada cc` in place of a C compiler: command lines of all kinds, make, CMake.

use crate::common;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LEVADA: &str = env!("CARGO_BIN_EXE_levada");

const FORKS: &str = "\
#include \"fork_two.h\"
#include <stdio.h>
int main(void) {
  int b, a = two(20) !! { b = two(1); }
  printf(\"%d %d\\n\", a, b);
  return 0;
}
";
const TWO: &str = "#include \"fork_two.h\"\nint two(int x) { return 2 * x; }\n";

fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("fork main.c", FORKS);
    write("main.c", FORKS);
    write("two.c", TWO);
    write("inc/fork_two.h", "int two(int x);\n");
    write("wrong.c", "int main(void) { return x; }\n");
    folder
}

fn levada(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(LEVADA);
    command
        .args(words)
        .current_dir(folder)
        .env_remove("LEVADA_CC");
    command.output().expect("levada runs")
}

fn cc(words: &[&str], folder: &Path) -> String {
    let out = levada(&[&["cc"], words].concat(), folder);
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{words:?}: {err}");
    assert!(!err.contains("warning"), "{words:?}: {err}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn runs(program: &str, folder: &Path) {
    let out = Command::new(folder.join(program))
        .output()
        .expect("it is there");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "40 2\n");
}

/// By a program that knows nothing of forks.
#[test]
fn a_library_with_forks_is_loaded_late() {
    let folder = place();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write(
        "library.c",
        "int fib(int n) {\n  if (n < 2) return n;\n  int y, x = fib(n - 1) !! { y = fib(n - 2); }\n\
         \x20 return x + y;\n}\n",
    );
    write(
        "loads.c",
        "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n\
         \x20 void *library = dlopen(\"./library.so\", RTLD_NOW);\n\
         \x20 if (!library) return puts(dlerror()), 1;\n\
         \x20 int (*fib)(int) = (int (*)(int))dlsym(library, \"fib\");\n\
         \x20 printf(\"%d %d\\n\", fib(9) + 6, fib(3));\n  return 0;\n}\n",
    );
    cc(
        &["-O2", "-shared", "-fPIC", "-o", "library.so", "library.c"],
        folder,
    );
    let plain = Command::new("cc")
        .args(["-o", "loads", "loads.c", "-ldl"])
        .current_dir(folder)
        .status();
    assert!(plain.unwrap().success());
    let out = Command::new(folder.join("loads"))
        .current_dir(folder)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "40 2\n");
}

#[test]
fn everything_at_once_and_one_by_one() {
    let folder = place();
    let folder = folder.path();
    cc(&["-Iinc", "main.c", "two.c"], folder);
    runs("a.out", folder);
    cc(
        &["-I", "inc", "-O2", "-o", "all", "fork main.c", "two.c"],
        folder,
    );
    runs("all", folder);
    // Objects have the names that they always have.
    cc(&["-Iinc", "-c", "main.c", "two.c"], folder);
    assert!(folder.join("main.o").is_file() && folder.join("two.o").is_file());
    cc(&["main.o", "two.o", "-oone"], folder);
    runs("one", folder);
    cc(&["-Iinc", "-c", "fork main.c", "-o", "other.o"], folder);
    cc(&["other.o", "-Iinc", "two.c", "-o", "two"], folder);
    runs("two", folder);
    cc(&["-Iinc", "-S", "main.c"], folder);
    cc(
        &[
            "-x",
            "assembler",
            "main.s",
            "-x",
            "none",
            "two.o",
            "-o",
            "three",
        ],
        folder,
    );
    runs("three", folder);
    // Objects without forks, and with the linker's options.
    cc(
        &[
            "-Iinc",
            "main.o",
            "-Wl,--as-needed",
            "two.o",
            "-lm",
            "-o",
            "four",
        ],
        folder,
    );
    runs("four", folder);
}

#[test]
fn preprocessed_texts() {
    let folder = place();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let text = cc(&["-Iinc", "-E", "main.c"], folder);
    assert!(
        !text.contains("!! {") && text.contains("lvd_run_main_1"),
        "{text}"
    );
    assert!(text.contains("\"main.c\""));
    let own = levada(&["cc", "-Iinc", "-E", "main.c", "-o", "./main.c"], folder);
    assert!(!own.status.success() && read("main.c") == FORKS);
    cc(&["-Iinc", "-E", "main.c", "-o", "main.i"], folder);
    cc(&["main.i", "-Iinc", "two.c", "-o", "five"], folder);
    runs("five", folder);
    // Preprocessed by the C compiler, forks still in it.
    let mut command = Command::new("cc");
    command
        .args(["-Iinc", "-E", "main.c", "-o", "raw.i"])
        .current_dir(folder);
    assert!(command.status().unwrap().success());
    cc(&["raw.i", "-x", "c", "-Iinc", "two.c", "-o", "six"], folder);
    runs("six", folder);
    // Without lines, also where the file has Levada's headers itself.
    write("own.c", &format!("#include <levada/fork.h>\n{FORKS}"));
    let text = cc(&["-Iinc", "-E", "-P", "own.c", "-o", "own.i"], folder) + &read("own.i");
    assert!(
        !text.contains("\n# ") && text.contains("lvd_run_main_1"),
        "{text}"
    );
    cc(&["own.i", "-Iinc", "two.c", "-o", "seven"], folder);
    runs("seven", folder);
    // What stops the preprocessor is all that is said.
    write("stopped.c", &format!("#error stop here\n{FORKS}"));
    for words in [
        &["cc", "-Iinc", "-c", "stopped.c"],
        &["cc", "-Iinc", "-E", "stopped.c"],
    ] {
        let out = levada(words, folder);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1));
        assert_eq!(said.matches("error:").count(), 1, "{said}");
        assert!(said.contains("stop here"), "{said}");
    }
    // Macros as they are.
    assert!(cc(&["-Iinc", "-E", "-dM", "main.c"], folder).contains("#define __STDC__"));
}

#[test]
fn the_standard_input_and_response_files() {
    let folder = place();
    let folder = folder.path();
    for (text, program) in [(FORKS, "main_in.o"), (TWO, "two_in.o")] {
        let mut child = Command::new(LEVADA)
            .args(["cc", "-Iinc", "-x", "c", "-c", "-", "-o", program])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    }
    cc(&["main_in.o", "two_in.o", "-o", "in"], folder);
    runs("in", folder);
    std::fs::write(folder.join("words"), "-I 'inc' \"fork main.c\"\ntwo.c").unwrap();
    cc(&["@words", "-o", "response"], folder);
    runs("response", folder);
    // Our own word, too.
    std::fs::write(folder.join("serial"), "--serial -I inc -E main.c").unwrap();
    let text = cc(&["@serial"], folder);
    assert!(
        !text.contains("!! {") && !text.contains("lvd_fork"),
        "{text}"
    );
}

#[test]
fn databases_tell_how_the_users_file_is_compiled() {
    let folder = place();
    let folder = folder.path();
    let words = [
        "-Iinc",
        "-MMD",
        "-MJ",
        "part.json",
        "-c",
        "main.c",
        "-o",
        "x.o",
    ];
    cc(&words, folder);
    let part = std::fs::read_to_string(folder.join("part.json")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(part.trim_end_matches(",\n")).unwrap();
    assert_eq!(entry["file"], "main.c");
    let said: Vec<&str> = entry["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w.as_str().unwrap())
        .collect();
    assert_eq!(said[1..], ["cc", "-Iinc", "-c", "main.c", "-o", "x.o"]);
    // As it says.
    std::fs::remove_file(folder.join("x.o")).unwrap();
    cc(&said[2..], folder);
    assert!(folder.join("x.o").exists());
}

#[test]
fn dependencies_are_those_of_the_users_file() {
    let folder = place();
    let folder = folder.path();
    let rule = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    cc(&["-Iinc", "-MMD", "-c", "main.c"], folder);
    assert_eq!(rule("main.d"), "main.o: main.c inc/fork_two.h\n");
    cc(
        &[
            "-Iinc", "-MMD", "-MP", "-MF", "x.d", "-MT", "goal", "-c", "main.c", "-o", "y.o",
        ],
        folder,
    );
    assert!(rule("x.d").starts_with("goal: main.c inc/fork_two.h\n"));
    assert!(rule("x.d").contains("inc/fork_two.h:\n"));
    std::fs::create_dir(folder.join("out")).unwrap();
    cc(&["-Iinc", "-MD", "-c", "main.c", "-o", "out/z.o"], folder);
    assert!(
        rule("out/z.d").starts_with("out/z.o: main.c "),
        "{}",
        rule("out/z.d")
    );
    // Of a program at once, and of what is only preprocessed.
    cc(&["-Iinc", "-c", "two.c"], folder);
    cc(&["-Iinc", "-MMD", "main.c", "two.o", "-o", "all"], folder);
    assert_eq!(rule("all.d"), "all: main.c inc/fork_two.h\n");
    cc(&["-Iinc", "-MMD", "-E", "main.c", "-o", "pre.i"], folder);
    assert!(rule("pre.d").contains(": main.c inc/fork_two.h\n"));
    cc(&["-Iinc", "-Wp,-MMD,kernel.d", "-c", "main.c"], folder);
    assert!(rule("kernel.d").starts_with("main.o: main.c inc/fork_two.h\n"));
    assert!(cc(&["-Iinc", "-MM", "main.c"], folder).starts_with("main.o: main.c "));
}

#[test]
fn files_without_forks_are_compiled_unchanged() {
    let folder = place();
    let folder = folder.path();
    // A compiler that says how it was called.
    let script = folder.join("spy");
    let text = "#!/bin/sh\nfor w in \"$@\"; do printf '[%s]' \"$w\"; done >> called\necho >> called\n\
                exec cc \"$@\"\n";
    common::write_script(&script, text);
    let call = |words: &[&str]| {
        let _ = std::fs::remove_file(folder.join("called"));
        let mut command = Command::new(LEVADA);
        command
            .arg("cc")
            .args(words)
            .current_dir(folder)
            .env("CC", &script);
        let out = command.output().unwrap();
        let called = std::fs::read_to_string(folder.join("called")).unwrap();
        let last = called.lines().last().unwrap_or("").to_string();
        (out, last)
    };
    let (out, called) = call(&["-O1", "-Iinc", "-c", "two.c", "-o", "two.o"]);
    assert!(out.status.success());
    assert_eq!(called, "[-O1][-Iinc][-c][two.c][-o][two.o]");
    let (out, called) = call(&["wrong.c"]);
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(called, "[wrong.c]");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    let (out, called) = call(&["--version"]);
    assert!(out.status.success());
    assert_eq!(called, "[--version]");
    // With forks it sees another text, and the same options, behind the one for large frames.
    let (out, called) = call(&["-O1", "-Iinc", "-c", "main.c"]);
    assert!(out.status.success());
    let called = called.trim_start_matches("[-fstack-clash-protection]");
    assert!(called.starts_with("[-O1][-c][-x][cpp-output]["), "{called}");
}

/// Whatever the compiler is asked for besides, it gives the same program and says no more.
#[test]
fn options_of_all_kinds() {
    let folder = place();
    let folder = folder.path();
    for words in [
        &[
            "-std=c11",
            "-pedantic-errors",
            "-Wall",
            "-Wextra",
            "-Werror",
        ][..],
        &["-std=gnu89", "-O2"],
        &["-O2", "-flto"],
        &[
            "-O3",
            "-march=native",
            "-fno-strict-aliasing",
            "-ffunction-sections",
            "-Wl,--gc-sections",
        ],
        &["-g3", "-Og", "-fPIC", "-pie", "-rdynamic"],
        &["-save-temps"],
        &["--coverage", "-pipe"],
        &["-g", "-gsplit-dwarf"],
        &["-MMD"],
    ] {
        let all = [words, &["-Iinc", "main.c", "two.c", "-o", "with"]].concat();
        cc(&all, folder);
        runs("with", folder);
    }
    cc(
        &[
            "-Iinc", "-shared", "-fPIC", "main.c", "two.c", "-o", "with.so",
        ],
        folder,
    );
}

/// The compiler may be several words, the first of them a program that caches what others compile.
#[test]
fn a_compiler_of_several_words() {
    let folder = place();
    let folder = folder.path();
    for before in ["env A=1", "ccache"] {
        let first = before.split(' ').next().unwrap();
        if Command::new(first).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {before} on this machine");
            continue;
        }
        for _ in 0..2 {
            let mut command = Command::new(LEVADA);
            command.args(["cc", "-O1", "-Iinc", "main.c", "two.c", "-o", "with"]);
            command.env("CCACHE_DIR", folder.join("cache"));
            let out = command
                .env("CC", format!("{before} cc"))
                .current_dir(folder)
                .output();
            let out = out.unwrap();
            assert!(
                out.status.success(),
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
            runs("with", folder);
        }
    }
}

/// What only reads the file needs Levada's headers as what compiles it does.
#[test]
fn questions_about_a_file_that_asks_for_levadas_headers() {
    let folder = place();
    let folder = folder.path();
    let text = format!("#include <levada/fork.h>\n{FORKS}");
    std::fs::write(folder.join("own.c"), text).unwrap();
    let rule = cc(&["-Iinc", "-MM", "own.c"], folder);
    assert_eq!(rule, "own.o: own.c inc/fork_two.h\n");
    assert!(cc(&["-Iinc", "-M", "own.c"], folder).contains("levada/fork.h"));
    assert!(cc(&["-Iinc", "-E", "-dM", "own.c"], folder).contains("#define LVD_FORK_H"));
}

/// Headers of Levada that the program includes itself, before and after other things.
#[test]
fn levadas_own_headers() {
    let folder = place();
    let folder = folder.path();
    for (name, first) in [
        ("h1.c", "#include <levada/fork.h>\n#include <stdint.h>\n"),
        (
            "h2.c",
            "#define _GNU_SOURCE\n#include <levada/channel.h>\ntypedef int mine;\n",
        ),
        (
            "h3.c",
            "typedef int bool;\n#define inline_ 1\n#include <sched.h>\n",
        ),
    ] {
        let text = format!(
            "{first}#include <stdio.h>\nint two(int x) {{ return 2 * x; }}\nint main(void) {{\n  int b, \
             a = two(20) !! {{ b = 2; }}\n  printf(\"%d %d\\n\", a, b);\n  return 0;\n}}\n"
        );
        std::fs::write(folder.join(name), text).unwrap();
        // The others ask for headers that are C17.
        let old = if name == "h3.c" {
            "-std=gnu89"
        } else {
            "-std=gnu11"
        };
        for standard in ["-std=gnu17", "-std=c99", old] {
            cc(&[standard, "-O1", name, "-o", "headers"], folder);
            runs("headers", folder);
        }
    }
}

#[test]
fn works_as_the_compiler_of_a_makefile() {
    let folder = place();
    let folder = folder.path();
    std::fs::write(
        folder.join("Makefile"),
        "CFLAGS = -O2 -Iinc -MMD\nmain: main.o two.o\n\t$(CC) -o $@ $^\n-include main.d two.d\n",
    )
    .unwrap();
    let compiler = format!("CC={LEVADA} cc");
    let make = Command::new("make")
        .arg(&compiler)
        .current_dir(folder)
        .output();
    let Ok(out) = make else {
        return eprintln!("there is no make here");
    };
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    runs("main", folder);
    // A changed header is seen.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    std::fs::write(
        folder.join("inc/fork_two.h"),
        "int two(int x); /* changed */\n",
    )
    .unwrap();
    let again = Command::new("make")
        .arg(&compiler)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(said.contains("main.o") && said.contains("two.o"), "{said}");
}

#[test]
fn works_as_the_compiler_of_cmake() {
    let folder = place();
    let folder = folder.path();
    std::fs::write(
        folder.join("CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\ninclude_directories(inc)\n\
         add_library(two STATIC two.c)\nadd_executable(main main.c)\n\
         target_link_libraries(main two)\n",
    )
    .unwrap();
    // Under a name of one word, too.
    let link = folder.join("levada-cc");
    std::os::unix::fs::symlink(LEVADA, &link).unwrap();
    for (build, compiler) in [
        ("b1", format!("{LEVADA} cc")),
        ("b2", link.display().to_string()),
    ] {
        let made = Command::new("cmake")
            .args(["-S", ".", "-B", build, "-DCMAKE_BUILD_TYPE=Release"])
            .current_dir(folder)
            .env("CC", &compiler)
            .output();
        let Ok(made) = made else {
            return eprintln!("there is no CMake here");
        };
        let said = |out: &Output| {
            let out = [out.stdout.clone(), out.stderr.clone()].concat();
            String::from_utf8_lossy(&out).into_owned()
        };
        assert!(made.status.success(), "{}", said(&made));
        let mut command = Command::new("cmake");
        command
            .args(["--build", build])
            .current_dir(folder)
            .env("CC", &compiler);
        let built = command.output().unwrap();
        assert!(built.status.success(), "{}", said(&built));
        runs(&format!("{build}/main"), folder);
    }
}

/// The compiler named as CMake's list, precompiled headers, tests of the compiler, optimisation of the
/// whole program: whatever wraps what.
#[test]
fn cmakes_own_questions() {
    let folder = place();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\ninclude(CheckCSourceCompiles)\n\
         include(CheckIPOSupported)\ncheck_ipo_supported(RESULT whole)\n\
         check_c_source_compiles(\"int f(int x) { return x; }\n\
         int main(void) { int b, a = f(1) !! { b = 1; } return a - b; }\" FORKS)\n\
         if(NOT FORKS)\n  message(FATAL_ERROR \"no forks\")\nendif()\n\
         include_directories(inc)\nadd_library(two SHARED two.c)\nadd_executable(main main.c)\n\
         target_precompile_headers(main PRIVATE <stdlib.h> pre.h)\n\
         target_link_libraries(main two)\n\
         set_property(TARGET main PROPERTY INTERPROCEDURAL_OPTIMIZATION ${whole})\n",
    );
    write("pre.h", "#define TWENTY 20\n");
    write("main.c", &FORKS.replace("20", "TWENTY"));
    for cc in ["gcc", "clang", "clang-14"] {
        if Command::new(cc).arg("--version").output().is_err() {
            continue;
        }
        let said = |out: &Output| {
            let out = [out.stdout.clone(), out.stderr.clone()].concat();
            String::from_utf8_lossy(&out).into_owned()
        };
        let cmake = |words: &[&str]| {
            let mut command = Command::new("cmake");
            command.args(words).current_dir(folder).env("LEVADA_CC", cc);
            command.output()
        };
        let compiler = format!("-DCMAKE_C_COMPILER={LEVADA};cc");
        let Ok(made) = cmake(&["-S", ".", "-B", cc, &compiler]) else {
            return eprintln!("there is no CMake here");
        };
        assert!(made.status.success(), "{cc}: {}", said(&made));
        let id = if cc == "gcc" { "GNU" } else { "Clang" };
        assert!(said(&made).contains(&format!("identification is {id}")));
        let built = cmake(&["--build", cc]).unwrap();
        assert!(built.status.success(), "{cc}: {}", said(&built));
        runs(&format!("{cc}/main"), folder);
    }
}

/// What tools ask a compiler before they use it: the answers are the compiler's own.
#[test]
fn questions_about_the_compiler() {
    let folder = place();
    let folder = folder.path();
    for words in [
        &["--version"][..],
        &["-v"],
        &["-dumpmachine"],
        &["-dumpversion"],
        &["-print-prog-name=ld"],
        &["-print-search-dirs"],
        &["-print-file-name=libc.a"],
        &["-E", "-dM", "-x", "c", "/dev/null"],
        &["-v", "-E", "-x", "c", "/dev/null"],
        &["-fsyntax-only", "two.c", "-Iinc"],
        &["-M", "main.c", "-Iinc"],
        &["no-such-file.c"],
        &["-no-such-option", "-c", "wrong.c"],
        &[],
    ] {
        let ours = levada(&[&["cc"], words].concat(), folder);
        let mut plain = Command::new("cc");
        let plain = plain.args(words).current_dir(folder).output().unwrap();
        assert_eq!(ours.status.code(), plain.status.code(), "{words:?}");
        assert_eq!(ours.stdout, plain.stdout, "{words:?}");
        let said = |out: &Output| String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(said(&ours), said(&plain), "{words:?}");
    }
    // A file with forks is checked as any other.
    cc(&["-fsyntax-only", "main.c", "-Iinc"], folder);
    assert!(!folder.join("a.out").exists());
}

/// A debugger stops in the block, in the call, and knows the variables.
#[test]
fn debuggers_stop_at_the_users_lines() {
    let folder = place();
    let folder = folder.path();
    let text = "\
#include <stdio.h>
static int two(int x) {
  return 2 * x;
}
int main(void) {
  int b = 1;
  int a = two(20) !! {
    b = two(1);
    b += 40;
  }
  printf(\"%d %d\\n\", a, b);
  return 0;
}
";
    std::fs::write(folder.join("stops.c"), text).unwrap();
    cc(&["-g", "-O0", "stops.c", "-o", "stops"], folder);
    let gdb = |commands: [&str; 3]| {
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch"]);
        for command in commands {
            gdb.args(["-ex", command]);
        }
        gdb.arg("./stops").current_dir(folder);
        let said = gdb.env("LEVADA_WORKERS", "1").output().ok()?.stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        said.contains("Breakpoint 1, ").then_some(said)
    };
    let Some(block) = gdb(["break stops.c:9", "run", "print b + 100"]) else {
        // Not by a macro of printing: what passes keeps what it prints to itself.
        let why = b"skipped debuggers_stop_at_the_users_lines: no gdb, or it may not trace\n";
        return std::io::stderr().write_all(why).unwrap();
    };
    for part in ["main () at stops.c:9", "$1 = 102"] {
        assert!(block.contains(part), "{part} in {block}");
    }
    // The worker may have taken the call.
    let call = gdb(["break two if x == 20", "run", "backtrace"]).expect("it stops");
    assert!(call.contains("two (x=20) at stops.c:3"), "{call}");
    let taken = call.contains("\"levada/0\" hit");
    assert!(taken || call.contains("in main () at stops.c:7"), "{call}");
}

const BY_HAND: &str = "\
#include <levada/fork.h>
#include <stdio.h>
static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}
int main(void) {
  printf(\"%d\\n\", fib(20));
  return 0;
}
";

/// Wherever the compiler finds the headers: nowhere, in a folder that is named, in one that it knows.
#[test]
fn forks_by_hand_find_the_runtime() {
    let folder = place();
    std::fs::write(folder.path().join("byhand.c"), BY_HAND).unwrap();
    let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/include");
    for options in [&[][..], &["-I", headers], &["-isystem", headers]] {
        cc(
            &[options, &["-O2", "byhand.c", "-o", "byhand"]].concat(),
            folder.path(),
        );
        let out = Command::new(folder.path().join("byhand")).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            "6765\n",
            "{options:?}"
        );
    }
    let known = Command::new(LEVADA)
        .args(["cc", "-O2", "byhand.c", "-o", "byhand"])
        .env("C_INCLUDE_PATH", headers)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(known.status.success(), "{known:?}");
}

/// What the command says; whether it succeeds.
fn said(words: &[&str], folder: &Path) -> (bool, String) {
    let out = levada(&[&["cc"], words].concat(), folder);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.success(), err)
}

/// In C++ forks are macros, and `!!` wants a block.
#[test]
fn newcomers_are_told_what_to_write() {
    let folder = place();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write(
        "x.cpp",
        "int f(int);\nint g(int x) { int y = f(x) !! {}; return y; }\n",
    );
    write(
        "ok.cpp",
        "// f(x) !! {}\nint g(bool x) { return (int) !!x; }\n",
    );
    for words in [&["-c", "x.cpp"][..], &["-x", "c++", "-c", "x.cpp"]] {
        let (good, err) = said(words, folder);
        assert!(!good && err.contains("error[fork-cpp]"), "{err}");
        assert!(
            err.contains("x.cpp:2:29") && err.contains("LVD_FORK"),
            "{err}"
        );
    }
    assert_eq!(said(&["-c", "ok.cpp"], folder), (true, String::new()));

    write(
        "y.c",
        "int f(int);\nint main(void) {\n  int x = f(3) !! ;\n  int y = f(1) !! f(2);\n  return x + y;\n}\n",
    );
    for words in [&["-c", "y.c"][..], &["-O2", "--serial", "y.c"]] {
        let (good, err) = said(words, folder);
        assert!(!good, "{err}");
        assert_eq!(err.matches("error[fork-no-block]").count(), 2, "{err}");
        assert!(
            err.contains("y.c:3:16") && err.contains("y.c:4:16"),
            "{err}"
        );
        assert!(err.contains("!! { x = f...; }"), "{err}");
    }
}

/// Which functions of the C library are macros, too, depends on `-O`: what can be forked does not.
#[test]
fn the_same_forks_at_any_optimisation() {
    let folder = place();
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("sub/here.h", "#define HERE 40\n#define NONE(x) (x)\n");
    write(
        "sub/z.c",
        "#include <ctype.h>\n#include <stdio.h>\n#include \"here.h\"\n\
         int main(void) {\n  int b, a = toupper('a') !! { b = HERE; }\n\
         \x20 int c = isalpha(a) !! {\n    b += __LINE__ == 7;\n  }\n\
         \x20 printf(\"%c %d %d %s\\n\", a, b, c != 0, __FILE__);\n  return 0;\n}\n",
    );
    write(
        "sub/none.c",
        "#include \"here.h\"\nint main(void) {\n  return NONE(1) !! {};\n}\n",
    );
    for level in ["-O0", "-O1", "-O2", "-Os"] {
        cc(&[level, "-Wall", "-o", "z", "sub/z.c"], folder);
        let out = Command::new(folder.join("z")).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            "A 41 1 sub/z.c\n",
            "{level}"
        );
        let (good, err) = said(&[level, "-c", "sub/none.c"], folder);
        assert!(
            !good && err.contains("error[fork-no-call]"),
            "{level}: {err}"
        );
        assert!(err.contains("none.c:3:"), "{level}: {err}");
    }
}

/// The runtime that is linked is not built for the thread sanitizer.
#[test]
fn the_thread_sanitizer_is_told_of() {
    let folder = place();
    let folder = folder.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("plain.c", "int main(void) { return 0; }\n");
    cc(
        &["-Iinc", "-fsanitize=thread", "-c", "main.c", "two.c"],
        folder,
    );
    cc(&["-fsanitize=thread", "-c", "plain.c"], folder);
    let notes = |words: &[&str]| {
        let (good, err) = said(words, folder);
        assert!(good, "{words:?}: {err}");
        err.contains("note: the thread sanitizer does not see into the runtime")
    };
    assert!(notes(&["-fsanitize=thread", "-o", "a", "main.o", "two.o"]));
    assert!(notes(&[
        "-Iinc",
        "-fsanitize=thread",
        "-o",
        "a",
        "main.c",
        "two.c"
    ]));
    assert!(!notes(&["-fsanitize=thread", "-o", "a", "plain.o"]));
    assert!(!notes(&["-Iinc", "-o", "a", "main.c", "two.c"]));
    let off = ["-fsanitize=thread", "-fno-sanitize=thread"];
    assert!(!notes(
        &[&["-Iinc", "-o", "a", "main.c", "two.c"], &off[..]].concat()
    ));
    // Another one that is named.
    std::fs::write(folder.join("liblevada.a"), "!<arch>\n").unwrap();
    assert!(!notes(&[
        "-fsanitize=thread",
        "-o",
        "a",
        "main.o",
        "two.o",
        "liblevada.a",
        "-lpthread"
    ]));
}
