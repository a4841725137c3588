// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Natives of the user's own that are no C file but a shared object.

mod common;

use common::Place;
use std::process::Command;

const TOP: &str = "src/p/Top.cal";

/// Only the names of its functions can be known.
#[test]
fn natives_may_be_a_shared_object() {
    let place = Place::new(&[
        (
            TOP,
            "package p;
actor Top () ==> :
  @native function twice(int x) --> int end
  int n := 0;
  action ==> guard n < 3 do n := n + 1; println(twice(n)); end
end
",
        ),
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
