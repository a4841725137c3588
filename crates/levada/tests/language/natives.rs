// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the user's natives: C files in all styles of definition, shared objects, actors in C and C++, and
//! natives that do not return.

use crate::common;
use crate::common::{Place, Run};
use std::process::Command;

const TOP: &str = "src/p/Top.cal";

/// Prints 2, 4 and 6, if its native doubles.
const DOUBLES: &str = "package p;
actor Top () ==> :
  @native function twice(int x) --> int end
  int n := 0;
  action ==> guard n < 3 do n := n + 1; println(twice(n)); end
end
";

/// Only the names of its functions can be known.
#[test]
fn natives_may_be_a_shared_object() {
    let place = Place::new(&[
        (TOP, DOUBLES),
        ("twice.c", "int twice(int x) { return 2 * x; }\n"),
        ("thrice.c", "int thrice(int x) { return 3 * x; }\n"),
    ]);
    for name in ["twice", "thrice"] {
        let soname = format!("-Wl,-soname,lib{name}.so");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", &soname, "-o"])
            .arg(place.path(&format!("lib{name}.so")))
            .arg(place.path(&format!("{name}.c")))
            .status();
        assert!(made.unwrap().success());
    }
    place
        .run(&["run", TOP, "--native", "libthrice.so"])
        .refuses(1, &["native function twice"]);
    let run = place.run(&["run", TOP, "--native", "libtwice.so"]);
    assert_eq!(run.succeeds().out, "2\n4\n6\n");
    place
        .run(&["build", TOP, "--native", "libtwice.so", "-o", "program"])
        .succeeds();
    let out = Command::new(place.path("program")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "2\n4\n6\n");
}

/// ISO C leaves all names but its own to the program: what comes along does not call these.
#[test]
fn natives_may_have_the_names_of_system_calls() {
    let text = "package p;
import levada.io.*;
actor Top () ==> :
  @native function read(int(size=64) x) --> int(size=64) end
  @native function write(int(size=64) x) --> int(size=64) end
  action ==> guard io_more() do io_write_number(write(read(io_read_number()))); end
end
";
    let others = "access close fcntl flock fstat ftruncate getpid kill lstat mkdir open opendir readdir stat unlink";
    let others: String = others
        .split(' ')
        .map(|name| format!("void {name}(void) {{ abort(); }}\n"))
        .collect();
    let natives = format!(
        "#include <stdint.h>\n#include <stdlib.h>\nint64_t read(int64_t x) {{ return 2 * x; }}\n\
         int64_t write(int64_t x) {{ return x + 1; }}\n{others}"
    );
    let place = Place::new(&[(TOP, text), ("names.c", &natives), ("in.txt", "1 2 3\n")]);
    let files = ["--in", "in.txt", "--out", "out.txt"];
    let native = ["--native", "names.c"];
    place
        .run(&[&["run", TOP], &native[..], &files].concat())
        .succeeds();
    let written = || std::fs::read_to_string(place.path("out.txt")).unwrap();
    assert_eq!(written(), "3\n5\n7\n");
    std::fs::remove_file(place.path("out.txt")).unwrap();
    place
        .run(&[&["build", TOP, "-o", "program"], &native[..]].concat())
        .succeeds();
    let mut program = Command::new(place.path("program"));
    let run = Run::new(
        program
            .args(files)
            .current_dir(place.path(""))
            .output()
            .unwrap(),
    );
    run.succeeds();
    assert_eq!(written(), "3\n5\n7\n");
}

/// The compiler knows what a row of the text does not tell.
#[test]
fn natives_are_found_however_they_are_defined() {
    let place = Place::new(&[(TOP, DOUBLES)]);
    place.write("twice.h", "int twice(int x) { return 2 * x; }\n");
    for text in [
        "int (twice)(int x) { return 2 * x; }\n",
        "long q; int /* doubled */ twice(int x) { return 2 * x; }\n",
        "#define FN(type, name) type name\nFN(int, twice)(int x) { return 2 * x; }\n",
        "#include \"twice.h\"\n",
        "static int once(int x) { return x; }\nint twice(int x) { return once(x) + once(x); }\n",
    ] {
        place.write("twice.c", text);
        let run = place.run(&["run", TOP, "--native", "twice.c"]);
        assert_eq!(run.succeeds().out, "2\n4\n6\n", "{text}");
    }
    for (text, said) in [
        (
            "static int twice(int x) { return 2 * x; }\n",
            "no C file defines",
        ),
        ("int thrice(int x) { return 3 * x; }\n", "no C file defines"),
        (
            "int thrice(int x) { return 3 * }\n",
            "the C compiler refuses this file",
        ),
        (
            "short twice(int x) { return 2 * x; }\n",
            "returns `short`, and an integer of 32 bits in CAL",
        ),
        (
            "int twice(unsigned char x) { return 2 * x; }\n",
            "parameter 1 of `twice` is `unsigned char x`",
        ),
    ] {
        place.write("twice.c", text);
        let run = place.run(&["run", TOP, "--native", "twice.c"]);
        run.refuses(1, &[said]);
    }
}

/// It is told with its place, also where it was compiled before, and by a host.
#[test]
fn a_function_that_nothing_declares_is_told() {
    let place = Place::new(&[(TOP, DOUBLES)]);
    place.write(
        "twice.c",
        "int twice(int x) {\n  return half(4 * x);\n}\nint half(int x) { return x / 2; }\n",
    );
    let args = ["run", TOP, "--native", "twice.c"];
    // A compiler that refuses it tells that.
    let first = place.run(&args);
    if !first.err.contains("the C compiler refuses this file") {
        for run in [first, place.run(&args)] {
            assert_eq!(run.succeeds().out, "2\n4\n6\n");
            for said in [
                "undeclared-native",
                "`half`",
                "twice.c:2:10",
                "return half(4 * x)",
            ] {
                assert!(run.err.contains(said), "{said}: {run:?}");
            }
        }
        let host = common::host::Host::begin_in(place);
        let loaded = host.json(&["load", TOP, "--native", "twice.c"]);
        let told = &loaded["diagnostics"][0];
        assert_eq!(
            (&told["code"], &told["line"]),
            (&"undeclared-native".into(), &2.into())
        );
        return;
    }
    for said in ["half", "twice.c:2"] {
        assert!(first.err.contains(said), "{first:?}");
    }
}

/// The process can be ended, and nothing less.
#[test]
fn a_native_that_does_not_come_back_is_told() {
    let place = Place::new(&[(TOP, DOUBLES)]);
    place.write(
        "twice.c",
        "int twice(int x) { for (volatile int i = 0;; i = 0) x += i; }\n",
    );
    let args = ["run", TOP, "--native", "twice.c", "--no-progress"];
    let run = place.run(&[&args[..], &["--action-time-limit", "100"]].concat());
    run.refuses(
        1,
        &["Top has been in native code for", "does not come back"],
    );
    // One signal is enough.
    let running = place
        .command(&args)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let began = format!("/proc/{}/task", running.id());
    let busy = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let mut fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let ticks = fields.nth(11).and_then(|t| t.parse::<u64>().ok());
        stat.contains("(levada/") && ticks > Some(20)
    };
    while !std::fs::read_dir(&began).unwrap().flatten().any(busy) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a child of ours that has not been waited for.
    assert_eq!(unsafe { libc::kill(running.id() as i32, libc::SIGTERM) }, 0);
    let run = common::Run::new(running.wait_with_output().unwrap());
    run.refuses(128 + libc::SIGTERM, &["does not come back"]);
}

/// A folder's name tells nothing of the files in it, and may have a comma.
/// A C++ file may define a function of the name, and yet not what CAL calls.
#[test]
fn what_the_natives_lack_is_told_before_anything_runs() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;\nactor Top () ==> :\n  @native function twice(int x) --> int end\n  action ==> do \
         println(\"begun\"); println(twice(4)); end\nend\n",
    )]);
    place.write(
        "twice.cpp",
        "#include <cstdint>\nint32_t twice(int32_t x) { return 2 * x; }\n",
    );
    let run = place.run(&["run", "src/p/Top.cal", "--native", "twice.cpp"]);
    let missing = [
        "native function twice (src/p/Top.cal:3)",
        "extern \"C\"",
        "int32_t twice(int32_t);",
    ];
    run.refuses(1, &missing);
    assert_eq!(run.out, "");
    // Nor what is left out of the text.
    place.write(
        "twice.c",
        "#if 0\nint twice(int x) { return 2 * x; }\n#endif\n",
    );
    let run = place.run(&["run", "src/p/Top.cal", "--native", "twice.c"]);
    run.refuses(1, &missing);
    assert_eq!(run.out, "");
    // The same of one that a function in C calls.
    place.write(
        "twice.c",
        "#include <stdint.h>\nint32_t once(int32_t x);\nint32_t twice(int32_t x) { return once(x) + \
         once(x); }\n",
    );
    let run = place.run(&["run", "src/p/Top.cal", "--native", "twice.c"]);
    run.refuses(1, &["nothing defines once"]);
    assert_eq!(run.out, "");
}

#[test]
fn natives_may_lie_in_any_folder() {
    let place = Place::new(&[
        (TOP, DOUBLES),
        ("x.so.d/twice.c", "int twice(int x) { return 2 * x; }\n"),
        ("one, two/none", ""),
    ]);
    let run = place.run(&["run", TOP, "--native", "x.so.d/twice.c"]);
    assert_eq!(run.succeeds().out, "2\n4\n6\n");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libtwice.so.1", "-o"])
        .arg(place.path("one, two/libtwice.so.1"))
        .arg(place.path("x.so.d/twice.c"))
        .status();
    assert!(made.unwrap().success());
    let run = place.run(&["run", TOP, "--native", "one, two/libtwice.so.1"]);
    assert_eq!(run.succeeds().out, "2\n4\n6\n");
}

/// Functions of the C library are not natives, even if their names agree, nor are those of a shared object that another
/// one needs.
#[test]
fn functions_of_the_c_library_are_no_natives() {
    let place = Place::new(&[("twice.c", "int twice(int x) { return 2 * x; }\n")]);
    compiled_alone(&place, "libtwice.so", "twice.c");
    for name in ["time", "write", "getpid", "cos"] {
        let text = DOUBLES.replace("twice", name);
        place.write(TOP, &text);
        let said = format!("no C file defines the native function {name} ");
        for more in [&[][..], &["--native=libtwice.so"]] {
            for what in [&["run"][..], &["build", "-o", "program"]] {
                let run = place.run(&[what, &[TOP], more].concat());
                run.refuses(1, &[&said, &format!("int32_t {name}(int32_t);")]);
            }
        }
    }
}

fn compiled_alone(place: &Place, object: &str, file: &str) {
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(place.path(object))
        .arg(place.path(file))
        .status();
    assert!(made.unwrap().success());
}

/// One in a C file is called whatever the C library has; that of a shared object would not be, and that is said.
#[test]
fn natives_with_names_of_the_c_library_are_the_users_or_refused() {
    let place = Place::new(&[
        (TOP, &DOUBLES.replace("twice", "link")),
        ("link.c", "int link(int x) { return 2 * x; }\n"),
        (
            "shown.c",
            "__attribute__((visibility(\"default\"))) int link(int x) { return 2 * x; }\n",
        ),
    ]);
    for file in ["link.c", "shown.c"] {
        let run = place.run(&["run", TOP, "--native", file]);
        assert_eq!(run.succeeds().out, "2\n4\n6\n", "{file}");
    }
    compiled_alone(&place, "liblink.so", "link.c");
    place.run(&["run", TOP, "--native", "liblink.so"]).refuses(
        1,
        &["the native function link of a shared object would not be called"],
    );
}

/// Functions with names of the C library, of the host (`kill`), and a variable: each is what the program itself uses.
const NAMED_AS_OTHERS: &str = "#include <stdio.h>\n\
    int kill(int x);\nint link(int x, int y, int z);\nint pipe(void);\nlong timezone = 7;\n\
    int kill(int x) { return x + 1; }\nint link(int x, int y, int z) { return x + y + z; }\n\
    int pipe(void) { return 5; }\nint (*by_address)(void) = pipe;\n\
    int main(void) {\n  printf(\"%d %d %d %d %ld\\n\", kill(1), link(1, 2, 3), pipe(), by_address(), timezone);\n  \
    return 0;\n}\n";

/// The loader resolves a name in the process first. A program that is a shared object still calls its own functions, or
/// is refused if it was not linked so.
#[test]
fn a_hosted_program_calls_its_own_functions() {
    let place = Place::new(&[("program.c", NAMED_AS_OTHERS)]);
    let flags = ["-O2", "-fno-builtin", "program.c", "-o", "program.so"];
    place
        .run(&[&["cc", "--plugin"][..], &flags].concat())
        .succeeds();
    let run = place.run(&["run", "program.so"]);
    assert_eq!(run.succeeds().out, "2 6 5 5 7\n");
    for name in ["kill", "pipe", "link"] {
        let text = format!(
            "int {name}(void);\nint {name}(void) {{ return 0; }}\nint main(void) {{ return {name}(); }}\n"
        );
        place.write("one.c", &text);
        place
            .run(&[
                "cc",
                "-shared",
                "-fPIC",
                "-O0",
                "-fno-builtin",
                "one.c",
                "-o",
                "one.so",
            ])
            .succeeds();
        let said = format!("its own `{name}` would not be used");
        place
            .run(&["run", "one.so"])
            .refuses(1, &[&said, "link it with -Wl,-Bsymbolic"]);
    }
    // What it does not define itself is the C library's, and a weak one may be replaced.
    let text = "#include <unistd.h>\n__attribute__((weak)) int pipe(int fd[2]) { (void)fd; return 0; }\n\
                int main(void) { int fd[2]; return pipe(fd) || getpid() < 1; }\n";
    place.write("one.c", text);
    place
        .run(&["cc", "-shared", "-fPIC", "-O0", "one.c", "-o", "one.so"])
        .succeeds();
    place.run(&["run", "one.so"]).succeeds();
}

/// The paper's own listing has a procedure `pipe`: it is started as that, and not the C library's function.
#[test]
fn a_hosted_program_starts_its_own_procedure() {
    let text = r#"#include <levada/srpc.h>
#include <stdio.h>
static void transmitter(void *unused) {
  (void)unused;
  stream_create(0);
  for (u32 i = 1; i <= 100; i++) {
    stream_put(0, i);
    stream_push(0);
  }
}
void pipe(void) {
  u32 a;
  stream_create(0);
  stream_create(1);
  while (stream_get(0, a) == LVD_OK) {
    stream_pop(0);
    a *= 2;
    stream_put(1, a);
    stream_push(1);
  }
}
PB_PROCEDURE(pipe)
static void sum(void) {
  u32 a, all = 0;
  stream_create(1);
  while (stream_get(1, a) == LVD_OK) {
    stream_pop(1);
    all += a;
  }
  printf("%u\n", all);
}
PB_PROCEDURE(sum)
int main(void) {
  pb_load(NULL);
  pb_boot();
  TASKID doubles = pb_create("pipe", 0), sums = pb_create("sum", 0);
  pb_rpc(sums);
  stream_rpc(doubles, transmitter);
  pb_wait(sums);
  return pb_finish() != LVD_OK;
}
"#;
    let place = Place::new(&[("pipe.c", text)]);
    place
        .run(&["cc", "--plugin", "pipe.c", "-o", "pipe.so"])
        .succeeds();
    let run = place.run(&["run", "pipe.so"]);
    assert_eq!(run.succeeds().out, "10100\n");
}

/// Multiplies, in C: `factor` is the actor's parameter.
const GAIN: &str = r#"#include <levada/actor.h>

typedef struct gain_params {
  int32_t factor;
  uint8_t add[2];
} gain_params;

static lvd_run_result run(lvd_actor *self) {
  const gain_params *params = (const gain_params *)self->params;
  while (lvd_elements(&self->in[0], 1)) {
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    int32_t x = LVD_GET(&self->in[0], int32_t);
    LVD_PUT(&self->out[0], int32_t, x * params->factor + params->add[1]);
  }
  if (lvd_ended(&self->in[0]) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

static const lvd_port_class in[] = {{"In", 4}};
static const lvd_port_class out[] = {{"Out", 4}};
"#;

const CLASS: &str =
    "const lvd_actor_class Gain = {\"Gain\", \"gain\", 0, 0, 1, 1, 0, in, out, 0, 0, run, 0};\n";

/// Numbers through the actor in C twice, with two factors.
fn gains() -> Place {
    let place = Place::new(&[
        common::SOURCE,
        common::PRINT,
        (
            "src/p/Gain.cal",
            "package p;\n\n@native actor Gain (int factor, List(type: uint(size=8), size=2) add = \
             [7, 1]) int In ==> int Out :\nend\n",
        ),
    ]);
    let top = common::network(
        &[
            ("source", "p.Source", &[("n", "3")]),
            ("ten", "p.Gain", &[("factor", "10")]),
            ("minus", "p.Gain", &[("factor", "-1")]),
            ("print", "p.Print", &[]),
        ],
        &[
            ("source.Out", "ten.In"),
            ("ten.Out", "minus.In"),
            ("minus.Out", "print.In"),
        ],
    );
    place.write("src/p/Top.xdf", &top);
    place
}

#[test]
fn actors_may_be_written_in_c_or_cpp() {
    let cpp = format!("#include <vector>\n{GAIN}\nextern \"C\" {CLASS}");
    for (name, text) in [
        ("gain.c", format!("{GAIN}{CLASS}")),
        (
            "gain.cpp",
            cpp.replace(
                "int32_t x =",
                "std::vector<int32_t> v(1);\n    int32_t x = v[0] +",
            ),
        ),
    ] {
        let place = gains();
        let top = "src/p/Top.xdf";
        // Nothing defines it yet.
        place
            .run(&["run", top])
            .refuses(1, &["the native actor Gain", "lvd_actor_class Gain"]);
        place.write(name, &text);
        for more in [vec!["--workers", "1"], vec!["--workers", "2", "--no-fuse"]] {
            let run = place.run(&[vec!["run", top, "--native", name], more].concat());
            assert_eq!(run.succeeds().out, "-10\n-20\n-30\n");
        }
        place
            .run(&["build", top, "--native", name, "-o", "program"])
            .succeeds();
        let out = Command::new(place.path("program")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "-10\n-20\n-30\n");
        // In the folder `natives` it is found by itself.
        place.write(&format!("natives/{name}"), &text);
        assert_eq!(place.run(&["run", top]).succeeds().out, "-10\n-20\n-30\n");
        place.write(
            &format!("natives/{name}"),
            &text.replace("{\"In\", 4}", "{\"In\", 8}"),
        );
        place.run(&["run", top]).refuses(1, &["In", "8", "4"]);
        place.run(&["check", "src"]).succeeds();
    }
}

/// Orcc's applications have native actors for which there is no C code: the applications run without these.
#[test]
fn in_a_project_a_native_actor_may_be_nowhere() {
    let place = gains();
    place.write(
        ".project",
        "<projectDescription><name>P</name></projectDescription>",
    );
    place.write(
        ".classpath",
        "<classpath><classpathentry kind=\"src\" path=\"src\"/></classpath>",
    );
    let run = place.run(&["run", "src/p/Top.xdf"]);
    assert_eq!(run.succeeds().out, "");
    assert!(
        run.err.contains("native actor Gain: ten never fires"),
        "{run:#?}"
    );
}
