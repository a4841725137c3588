// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of natives and of the C compiler.
//!
//! Wrong input: native files that are missing, do not compile, or do not define what is called; shared objects that are
//! none or truncated; a native that fails; a C compiler that does not run, fails, or produces nothing.

use crate::common::host::TOP;
use crate::common::{Place, numbers};

#[test]
fn natives_that_are_missing_or_wrong() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;\nactor Top () ==> :\n  @native procedure shout(int x) end\n  bool done := \
         false;\n  action ==> guard not done do shout(1); done := true; end\nend\n",
    )]);
    let top = "src/p/Top.cal";
    place
        .run(&["run", top])
        .refuses(1, &["native function shout", "--native FILE"]);
    place.write("broken.c", "void shout(int x) { return x }\n");
    place
        .run(&["run", top, "--native", "broken.c"])
        .refuses(1, &["broken.c", "error"]);
    // What CAL takes them for is what they have to be.
    for (definition, said) in [
        ("void shout(int x, int y) {}", "2 parameters, and 1 in CAL"),
        (
            "void shout(char *x) {}",
            "parameter 1 of `shout` is `char *x`",
        ),
        (
            "void shout(\n  double x) {}",
            "and an integer of 32 bits in CAL",
        ),
    ] {
        place.write("other.c", &format!("\n{definition}\n"));
        for what in ["run", "build"] {
            place
                .run(&[what, top, "--native", "other.c"])
                .refuses(1, &["other.c:2: ", said, "void shout(int32_t);"]);
        }
    }
    place.write("other.so", "no shared object\n");
    place.run(&["run", top, "--native", "other.so"]).refuses(
        1,
        &[
            "other.so",
            "no shared object that can be loaded",
            "too short",
        ],
    );
    let text = "#include <stdint.h>\nvoid shout(int32_t);\nvoid shout(int32_t x) { (void)x; }\n";
    place.write("whole.c", text);
    place
        .run(&["cc", "-shared", "-fPIC", "whole.c", "-o", "whole.so"])
        .succeeds();
    let whole = std::fs::read(place.path("whole.so")).unwrap();
    for part in [0.01, 0.1, 0.5, 0.9] {
        let cut = &whole[..(whole.len() as f64 * part) as usize];
        std::fs::write(place.path("cut.so"), cut).unwrap();
        place
            .run(&["run", top, "--native", "cut.so"])
            .refuses(1, &["cut.so: the file is truncated"]);
    }
    place.run(&["run", top, "--native", "whole.so"]).succeeds();
    place.write(
        "natives/shout.c",
        "#include <levada/native.h>\n#include <stdint.h>\nvoid shout(int32_t x);\n\
         void shout(int32_t x) {\n  lvd_native_fail(\"%d is too loud\", x);\n}\n",
    );
    place
        .run(&["run", top])
        .refuses(1, &["1 is too loud", "src/p/Top.cal:5"]);
}

#[test]
fn a_compiler_that_does_not_run_is_named() {
    let place = numbers();
    // Half of it is not installed.
    place.write(
        "cc.sh",
        "test \"$1\" = --version && exec echo cc 1\n\
         echo \"cc: fatal error: cannot execute 'cc1': execvp: No such file or directory\" >&2\nexit 1\n",
    );
    let half = format!("sh {}", place.path("cc.sh").display());
    for (cc, said) in [
        ("/nowhere/cc", "cannot run the C compiler `/nowhere/cc`"),
        (
            &half,
            "fails with status 1:\n  cc: fatal error: cannot execute",
        ),
        (
            "/bin/false",
            "the C compiler `/bin/false` fails with status 1",
        ),
        (
            "/bin/true",
            "the C compiler `/bin/true` ends well, and makes nothing",
        ),
    ] {
        for what in ["run", "build"] {
            let mut command = place.command(&[what, TOP]);
            let output = command
                .env("CC", cc)
                .env("XDG_CACHE_HOME", place.path("cache"))
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(1));
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(said) && text.contains("CC"), "{text}");
            assert!(!text.contains("error in Levada"), "{text}");
        }
        let mut doctor = place.command(&["doctor"]);
        let output = doctor.env("CC", cc).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
    }
    assert_eq!(place.list("."), ["cache", "cc.sh", "src"]);
}
