// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of forks in natives of CAL: `levada run` and `levada build` translate `!!`.

use crate::common::Place;
use std::process::Command;

const TOP: &str = "src/p/Top.cal";

fn place(native: &str) -> Place {
    Place::new(&[
        (
            TOP,
            "package p;\nactor Top () ==> :\n  @native function fib(int n) --> int end\n  int n := 0;\n  \
             action ==> guard n < 3 do\n    println(\"fib \" + fib(15 + n));\n    n := n + 1;\n  end\nend\n",
        ),
        ("natives/number.h", "typedef int32_t number;\n"),
        ("natives/fib.c", native),
    ])
}

const FIB: &str = "\
#include <stdint.h>
#include \"number.h\"
int32_t fib(int32_t n);
int32_t fib(int32_t n) {
  if (n < 2) return n;
  number y, x = fib(n - 1) !! { y = fib(n - 2); }
  return x + y;
}
";

#[test]
fn natives_fork() {
    let place = place(FIB);
    let printed = "fib 610\nfib 987\nfib 1597\n";
    for workers in ["1", "2"] {
        let run = place.run(&["run", TOP, "--workers", workers]);
        assert_eq!(run.succeeds().out, printed);
    }
    place.run(&["build", TOP, "-o", "program"]).succeeds();
    let out = Command::new(place.path("program")).output().unwrap();
    assert!(out.status.success());
    assert_eq!(String::from_utf8_lossy(&out.stdout), printed);
}

/// What was made of a native is not taken again when a file has changed that it includes.
#[test]
fn a_changed_header_counts() {
    let place = place(&FIB.replace("return x + y", "return x + y + MORE"));
    for (more, printed) in [("0", "fib 610\n"), ("1", "fib 1596\n")] {
        let header = format!("typedef int32_t number;\n#define MORE {more}\n");
        place.write("natives/number.h", &header);
        let run = place.run(&["run", TOP]).succeeds().out.clone();
        assert!(run.starts_with(printed), "{run}");
    }
}

/// What cannot be done is said of the native's own line.
#[test]
fn refusals_in_natives() {
    let wrong = FIB
        .replace("{ y = fib(n - 2); }", "{\n    inside: y = fib(n - 2);\n  }")
        .replace("return x", "if (n == 7) goto inside;\n  return x");
    let place = place(&wrong);
    let run = place.run(&["run", TOP]);
    run.refuses(1, &["error[fork-entered]", "fib.c:9:15", "goto inside"]);
}
