// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada cc` where a C compiler stands: command lines of all kinds, make, CMake.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
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
    let text = cc(&["-Iinc", "-E", "main.c"], folder);
    assert!(
        !text.contains("!! {") && text.contains("lvd_run_main_1"),
        "{text}"
    );
    assert!(text.contains("\"main.c\""));
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
    cc(&["-Iinc", "-Wp,-MMD,kernel.d", "-c", "main.c"], folder);
    assert!(rule("kernel.d").starts_with("main.o: main.c inc/fork_two.h\n"));
    assert!(cc(&["-Iinc", "-MM", "main.c"], folder).starts_with("main.o: main.c "));
}

#[test]
fn what_has_no_forks_is_compiled_as_it_is() {
    let folder = place();
    let folder = folder.path();
    // A compiler that says how it was called.
    let script = folder.join("spy");
    let text = "#!/bin/sh\nfor w in \"$@\"; do printf '[%s]' \"$w\"; done >> called\necho >> called\n\
                exec cc \"$@\"\n";
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
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
    // With forks it sees another text, and the same options.
    let (out, called) = call(&["-O1", "-Iinc", "-c", "main.c"]);
    assert!(out.status.success());
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
fn as_the_compiler_of_a_makefile() {
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
fn as_the_compiler_of_cmake() {
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
