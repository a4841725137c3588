// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada cc` and `levada translate`: every form of a fork and every exit of its block, with the
//! compilers of this machine, with and without optimisation, compared with the sequential program.
//!
//! `LEVADA_FUZZ=20` generates twenty times as many random programs; `LEVADA_SEED=s` selects others.
//! `LEVADA_SANITIZE=thread` (or `address,undefined`) compiles the parallel programs with these sanitizers;
//! `RUNTIME` is then the folder of a liblevada.a that was compiled with them.

use crate::random_c;
use crate::support::{compilers, levada, run, said, sources, works};
use std::path::Path;
use std::process::Command;

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
fn other_forms_of_c_agree_with_the_serial_program() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&sources().join("other_forms.c"), folder.path(), &[]);
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

/// `lvd_stolen` is true for a call that the block of its fork waits for, and false for one that could not be stolen.
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
    // A worker may be without its core for that long; then the large call is not stolen. Calls for which no worker
    // was woken are never stolen.
    let stolen: u32 = run(&folder.join("large"), 2).trim().parse().unwrap();
    assert!(stolen >= 6, "{stolen} of 40");
}

/// Forks are translated in files that include any of the system's headers.
#[test]
fn forks_with_all_headers_of_the_c_library() {
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
        "forms",
        "types",
        "ways_out",
        "names",
        "order",
        "places",
        "other_forms",
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
