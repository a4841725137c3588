// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada cc` and `levada translate`: every form of a fork, every way out of its block, on the
//! compilers of this machine, with and without optimisation, against the sequential program.
//! `LEVADA_FUZZ=20` makes twenty times as many random programs; `LEVADA_SEED=s` others.
//! `LEVADA_SANITIZE=thread` (or `address,undefined`) compiles the parallel ones with these, and
//! `RUNTIME` is where a liblevada.a lies that was.

mod random_c;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LEVADA: &str = env!("CARGO_BIN_EXE_levada");

/// The compilers of this machine.
fn compilers() -> Vec<&'static str> {
    let there = |cc: &&str| Command::new(cc).arg("--version").output().is_ok();
    let gcc = ["gcc", "cc"].into_iter().find(there);
    let clang = ["clang", "clang-19", "clang-16", "clang-14"]
        .into_iter()
        .find(there);
    let found: Vec<&str> = gcc.into_iter().chain(clang).collect();
    assert!(!found.is_empty(), "there is a C compiler");
    if found.len() == 1 {
        eprintln!("skipped: with clang, which this machine has not, or with gcc");
    }
    found
}

fn levada(cc: &str, words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(LEVADA);
    command.args(words).current_dir(folder).env("CC", cc);
    command
        .env_remove("LEVADA_CC")
        .output()
        .expect("levada runs")
}

fn said(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

fn works(cc: &str, words: &[&str], folder: &Path) -> String {
    let out = levada(cc, words, folder);
    assert!(out.status.success(), "{cc} {words:?}: {}", said(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// What a program prints, on so many workers.
fn run(program: &Path, workers: u32) -> String {
    let out = Command::new("timeout")
        .arg("60")
        .arg(program)
        .env("LEVADA_WORKERS", workers.to_string())
        .output()
        .expect("it runs");
    assert!(
        out.status.success(),
        "{}: {:?}\n{}",
        program.display(),
        out.status,
        said(&out)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fork")
}

/// Compiles a file with and without `!!`, in every way, and compares what the programs print.
fn agrees(source: &Path, folder: &Path, warnings: &[&str]) {
    let source = source.to_str().expect("a name");
    if let Ok(kinds) = std::env::var("LEVADA_SANITIZE") {
        return agrees_sanitized(source, folder, &kinds);
    }
    for cc in compilers() {
        let mut expected = None;
        for level in ["-O0", "-O3"] {
            let mut words = vec!["cc", level, source, "-o", "serial", "--serial"];
            works(cc, &words, folder);
            let serial = run(&folder.join("serial"), 1);
            assert!(!serial.is_empty());
            let expected = expected.get_or_insert(serial.clone());
            assert_eq!(*expected, serial, "{cc} {level} --serial {source}");
            words = vec!["cc", level, source, "-o", "parallel"];
            words.extend(warnings);
            works(cc, &words, folder);
            for workers in [1, 2] {
                let parallel = run(&folder.join("parallel"), workers);
                assert_eq!(*expected, parallel, "{cc} {level} {source}");
            }
        }
    }
}

/// The same of what is written for people, under a sanitizer.
fn agrees_sanitized(source: &str, folder: &Path, kinds: &str) {
    let runtime = std::env::var("RUNTIME").expect("RUNTIME is where liblevada.a lies");
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let define = "-DWRITTEN_OUT";
    works(
        "cc",
        &["cc", "--serial", define, source, "-o", "serial"],
        folder,
    );
    let expected = run(&folder.join("serial"), 1);
    works(
        "cc",
        &["translate", source, "-o", "out.c", "--", define],
        folder,
    );
    let mut command = Command::new("cc");
    command.args([
        define,
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "out.c",
        "-o",
        "program",
    ]);
    command
        .arg(format!("-fsanitize={kinds}"))
        .arg("-I")
        .arg(headers);
    command
        .arg(format!("{runtime}/liblevada.a"))
        .args(["-lpthread", "-lm"]);
    let out = command.current_dir(folder).output().expect("cc runs");
    assert!(out.status.success(), "{source}: {}", said(&out));
    for workers in [1, 2] {
        assert_eq!(expected, run(&folder.join("program"), workers), "{source}");
    }
}

#[test]
fn forms_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    agrees(
        &sources().join("forms.c"),
        folder.path(),
        &["-Wall", "-Wextra", "-Werror"],
    );
}

#[test]
fn types_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("types.c"), folder.path(), &[]);
}

#[test]
fn names_that_mean_something_else_in_the_block() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("names.c"), folder.path(), &[]);
    assert_eq!(run(&folder.path().join("parallel"), 2), "right\n");
}

#[test]
fn the_order_of_evaluation_is_from_left_to_right() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("order.c"), folder.path(), &[]);
    assert_eq!(run(&folder.path().join("parallel"), 2), "right\n");
}

#[test]
fn ways_out_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("ways_out.c"), folder.path(), &[]);
}

#[test]
fn random_programs_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let first = number("LEVADA_SEED").unwrap_or(1);
    for seed in first..first + 4 * number("LEVADA_FUZZ").unwrap_or(1) {
        let path = folder.path().join(format!("random{seed}.c"));
        std::fs::write(&path, random_c::program(seed)).unwrap();
        agrees(&path, folder.path(), &[]);
        // What is printed for people is the same program.
        let path = path.to_str().unwrap();
        works("cc", &["translate", path, "-o", "written.c"], folder.path());
        works(
            "cc",
            &["cc", "-O1", "written.c", "-o", "written"],
            folder.path(),
        );
        let written = run(&folder.path().join("written"), 2);
        assert_eq!(written, run(&folder.path().join("serial"), 1), "{path}");
    }
}

#[test]
fn parts_of_objects_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    let strict = ["-Wall", "-Wextra", "-Werror"];
    agrees(&sources().join("places.c"), folder.path(), &strict);
}

#[test]
fn what_else_c_has_agrees_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("beside.c"), folder.path(), &[]);
}

/// Declarations stay before statements.
#[test]
fn c_of_1990() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "\
extern int printf(const char *, ...);
static int f(int x) { return x + 1; }
int main(void) {
  int c = 0;
  int a = f(1) !! { c = 3; }
  int b = f(2) !! { c++; };
  int d[2], sum = f(c) + f(c) !! { d[0] = 1; } + f(3);
  for (d[1] = 0; d[1] < 3; d[1]++) {
    int e = f(b) !! { if (d[1] == 1) break; }
    c += e;
  }
  b += d[0] + f(1) !! { d[0] = 5; } + d[0] + f(2) !! { d[0] = 6; } + d[0];
  a = f(b) !! { c++; } + f(c) !! { c--; };
  printf(\"%d %d %d %d\\n\", a, b, c, sum);
  return f(c) !! { c = 1; };
}
";
    std::fs::write(folder.join("c90.c"), text).unwrap();
    let strict = [
        "-Wall",
        "-pedantic-errors",
        "-Werror=declaration-after-statement",
    ];
    for cc in compilers() {
        for style in [&[][..], &["--serial"]] {
            let words = [
                &["cc", "-std=c90", "c90.c", "-o", "c90"][..],
                &strict,
                style,
            ]
            .concat();
            works(cc, &words, folder);
            let out = Command::new(folder.join("c90")).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), "31 20 8 14\n");
            assert_eq!(out.status.code(), Some(9));
        }
    }
}

/// Who asks is told: a call that its fork's block waits for was stolen, and one that nobody could steal
/// was not.
#[test]
fn whether_a_call_was_stolen() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "\
#include <levada/fork.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int done;
static int call(int x) { done = 1; return x; }
static void nothing(void) { done = 1; }
static int one(void) { return 1; }
int main(int count, char **words) {
  int block = 0;
  (void)words;
  int r = call(7) !! { while (count > 1 && !done) block += one() !! {}; }
  int first = lvd_stolen();
  done = 0;
  nothing() !! { while (count > 1 && !done) block += one() !! {}; }
  printf(\"%d %d %d\\n\", r, first, lvd_stolen());
  return 0;
}
";
    std::fs::write(folder.join("stolen.c"), text).unwrap();
    for cc in compilers() {
        works(cc, &["cc", "-O2", "stolen.c", "-o", "stolen"], folder);
        let told = |workers: &str, words: &[&str]| {
            let mut command = Command::new("timeout");
            command
                .args(["60", "./stolen"])
                .args(words)
                .current_dir(folder);
            let out = command.env("LEVADA_WORKERS", workers).output().unwrap();
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        assert_eq!(told("1", &[]), "7 0 0\n");
        assert_eq!(told("2", &["wait"]), "7 1 1\n");
        works(cc, &["cc", "--serial", "stolen.c", "-o", "stolen"], folder);
        assert_eq!(told("2", &[]), "7 0 0\n");
    }
}

/// A function that is compiled for another processor is called by a thief as it is by its owner: so vectors
/// are handed over in the same registers.
#[test]
fn functions_for_other_processors() {
    if !cfg!(target_arch = "x86_64") || !is_x86_feature_detected("avx2") {
        eprintln!("skipped: this processor has no AVX2");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "\
#include <immintrin.h>
#include <stdio.h>
#define WIDE __attribute__((target(\"avx2\"), noinline))
static volatile int began;
WIDE static __m256 sum(__m256 a, __m256 b) { began = 1; return _mm256_add_ps(a, b); }
static int one(void) { return 1; }
static int before(float x);
WIDE static int before(float x);
static int before(float x) {
  __m256 r = sum(_mm256_set1_ps(x), _mm256_set1_ps(2)) !! { while (!began) one() !! {} };
  float v[8];
  _mm256_storeu_ps(v, r);
  int right = 0;
  for (int i = 0; i < 8; i++) right += v[i] == 3;
  return right;
}
int main(void) { printf(\"%d\\n\", before(1)); return 0; }
";
    std::fs::write(folder.join("wide.c"), text).unwrap();
    for cc in compilers() {
        works(cc, &["cc", "-O2", "wide.c", "-o", "wide"], folder);
        assert_eq!(run(&folder.join("wide"), 2), "8\n", "{cc}");
        works("cc", &["translate", "wide.c", "-o", "out.c"], folder);
        works(cc, &["cc", "-O2", "out.c", "-o", "wide"], folder);
        assert_eq!(run(&folder.join("wide"), 2), "8\n", "{cc}, translated");
    }
}

#[cfg(target_arch = "x86_64")]
fn is_x86_feature_detected(_: &str) -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}
#[cfg(not(target_arch = "x86_64"))]
fn is_x86_feature_detected(_: &str) -> bool {
    false
}

/// A large call that is forked right behind a small one, which has woken a worker, is there for it when it
/// comes; and so is the next one, when it has made the first.
#[test]
fn large_forks_behind_small_ones_are_stolen() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The block has no fork in it, so nothing is made public while it runs. It goes on until the call has
    // begun, or for as long as a machine that is not ours may keep the other worker from its core.
    let text = "\
#include <levada/fork.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile int began;
static int small(int x) { return x; }
static int large(int x) { began = 1; return x; }
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
int main(void) {
  int stolen = 0;
  for (int i = 0; i < 40 && stolen < 6; i++) {
    int r = small(1) !! {}
    began = 0;
    if (i % 2) usleep(3000);
    r += small(2) !! {}
    r += large(i) !! {
      double end = now() + 0.3;
      while (!began && now() < end) usleep(100);
    }
    stolen += lvd_stolen();
    if (r != i + 3) return 1;
  }
  printf(\"%d\\n\", stolen);
  return 0;
}
";
    std::fs::write(folder.join("large.c"), text).unwrap();
    works("cc", &["cc", "-O2", "large.c", "-o", "large"], folder);
    // A worker may be kept from its core for as long, and then the large one stays where it is; of those that
    // nobody was woken for, none is stolen.
    let stolen: u32 = run(&folder.join("large"), 2).trim().parse().unwrap();
    assert!(stolen >= 6, "{stolen} of 40");
}

/// Whatever the system's headers declare, a fork beside it is understood.
#[test]
fn forks_beside_all_headers_of_the_c_library() {
    const HEADERS: &str = "aio alloca arpa/inet assert complex cpio ctype dirent dlfcn endian errno fcntl fenv \
        float fnmatch ftw getopt glob grp iconv ifaddrs inttypes iso646 langinfo limits locale malloc \
        math monetary mqueue net/if netdb netinet/in netinet/tcp nl_types poll pthread pwd regex sched \
        search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio \
        stdlib stdnoreturn string strings sys/epoll sys/eventfd sys/ioctl sys/ipc sys/mman sys/msg \
        sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/syscall sys/time \
        sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios tgmath threads time \
        uchar unistd utime utmpx wchar wctype wordexp";
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let there = |h: &&str| Path::new("/usr/include").join(format!("{h}.h")).is_file();
    let mut text: String = "#define _GNU_SOURCE\n".into();
    for header in HEADERS.split_whitespace() {
        let everywhere = [
            "float",
            "iso646",
            "limits",
            "stdalign",
            "stdarg",
            "stdatomic",
        ];
        if everywhere.contains(&header) || there(&header) {
            text += &format!("#include <{header}.h>\n");
        }
    }
    text += "static int two(int x) { return 2 * x; }\nint main(void) {\n  int b, a = two(20) !! { b = 2; }\n  \
             printf(\"%d %d\\n\", a, b);\n  return 0;\n}\n";
    std::fs::write(folder.join("all.c"), text).unwrap();
    for cc in compilers() {
        for standard in ["-std=gnu11", "-std=gnu2x", "-D_FORTIFY_SOURCE=2"] {
            works(cc, &["cc", standard, "-O1", "all.c", "-o", "all"], folder);
            assert_eq!(run(&folder.join("all"), 1), "40 2\n");
        }
    }
}

/// A format is one for the compiler, too, in all that a fork becomes.
#[test]
fn formats_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "#include <stdio.h>\nint main(void) {\n  int b, n = printf(\"hel\" \"lo\\n\") !! { b = 1; }\n  \
                printf(\"%d %d\\n\", n, b) !! { b = 2; }\n  \
                { int printf = 3; printf += puts(\"all\") !! { b += printf; } }\n  return b != 5;\n}\n";
    std::fs::write(folder.join("right.c"), text).unwrap();
    let wrong = text.replace("%d %d", "%d %s");
    std::fs::write(folder.join("wrong.c"), wrong).unwrap();
    for cc in compilers() {
        for more in ["--serial", "-O2"] {
            let mut words = vec!["cc", more, "-Wall", "-Wextra", "-Wformat=2", "-Werror"];
            words.extend(["right.c", "-o", "right"]);
            works(cc, &words, folder);
            assert_eq!(run(&folder.join("right"), 2), "hello\n6 1\nall\n");
        }
        let out = levada(cc, &["cc", "-Wall", "-Werror", "-c", "wrong.c"], folder);
        assert!(said(&out).contains("wrong.c:4"), "{}", said(&out));
        works(cc, &["translate", "right.c", "-o", "out.c"], folder);
        works(
            cc,
            &["cc", "-Wall", "-Wformat=2", "-Werror", "out.c", "-o", "out"],
            folder,
        );
        assert_eq!(run(&folder.join("out"), 1), "hello\n6 1\nall\n");
    }
}

/// What is printed for people compiles to the same program.
#[test]
fn translated_sources_agree() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in [
        "forms", "types", "ways_out", "names", "order", "places", "beside",
    ] {
        let source = sources().join(format!("{name}.c"));
        let source = source.to_str().unwrap();
        let options: &[&str] = match name {
            "forms" => &["--", "-DWRITTEN_OUT"],
            _ => &[],
        };
        works(
            "cc",
            &["cc", "--serial", "-DWRITTEN_OUT", source, "-o", "serial"],
            folder,
        );
        let expected = run(&folder.join("serial"), 1);
        for style in [&[][..], &["--serial"]] {
            let words = [&["translate", source, "-o", "out.c"], style, options].concat();
            works("cc", &words, folder);
            let text = std::fs::read_to_string(folder.join("out.c")).unwrap();
            let forks = |l: &&str| l.contains("!! {") && !l.starts_with('#');
            assert_eq!(text.lines().filter(forks).count(), 0, "{text}");
            // No help from the translator: the C compiler alone reads it.
            works(
                "cc",
                &["cc", "-DWRITTEN_OUT", "-O2", "out.c", "-o", "program"],
                folder,
            );
            assert_eq!(
                expected,
                run(&folder.join("program"), 2),
                "{name} {style:?}"
            );
        }
    }
}

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

/// What later C has, as far as it stands beside forks.
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
    let whole = "#if 1\n  a = g(2) !! {\n#if 1\n    b = 2;\n#else\n    b = 3;\n#endif\n  }\n#else\n  a = g(3) !! { b = 2; }\n#endif\n";
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
    let text = "static int sum(int n, int rows[][n]) { return rows[0][n - 1]; }\nint main(void) {\n  int n = 3, m[2][n];\n  \
                int (*f)(int, int (*)[n]) = sum;\n  m[0][2] = 5;\n  return f(n, m) !! { m[1][0] = 1; };\n}\n";
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
