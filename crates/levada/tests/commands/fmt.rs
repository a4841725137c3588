// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada fmt`.

use crate::common;
use crate::common::Place;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const UGLY: &str = "package p;\nactor A( )  int In==>int Out:\n\n\n\n\x20   \
                    action In:[ x ]==>Out : [x+1]\n do   println ( x ) ;  // said\nend\n  end";
const NICE: &str = "package p;
actor A () int In ==> int Out :

  action In:[x] ==> Out:[x + 1]
  do println(x);       // said
  end
end
";

#[test]
fn files_are_formatted_in_their_place() {
    let place = Place::new(&[
        ("s/p/A.cal", UGLY),
        ("s/p/B.cal", NICE),
        ("s/p/notes.txt", UGLY),
    ]);
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("s/p/A.cal"), mode).unwrap();
    let check = place.run(&["fmt", "--check", "s"]);
    assert_eq!(check.code, Some(1), "{check:#?}");
    assert_eq!(check.out, "s/p/A.cal\n2 files: 1 not formatted\n");
    assert_eq!(
        std::fs::read_to_string(place.path("s/p/A.cal")).unwrap(),
        UGLY
    );

    let run = place.run(&["fmt", "s"]);
    assert_eq!(run.succeeds().out, "s/p/A.cal\n2 files: 1 reformatted\n");
    assert_eq!(
        std::fs::read_to_string(place.path("s/p/A.cal")).unwrap(),
        NICE
    );
    let mode = std::fs::metadata(place.path("s/p/A.cal"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(
        std::fs::read_to_string(place.path("s/p/notes.txt")).unwrap(),
        UGLY
    );
    assert_eq!(place.list("s/p"), ["A.cal", "B.cal", "notes.txt"]);
    place.run(&["fmt", "--check", "s"]).succeeds();
}

#[test]
fn the_input_goes_to_the_output() {
    let place = Place::new(&[]);
    let run = |args: &[&str], text: &str| {
        let mut command = place.command(args);
        let command = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        (
            done.status.code().unwrap(),
            String::from_utf8(done.stdout).unwrap(),
            said,
        )
    };
    assert_eq!(
        run(&["fmt", "-"], UGLY),
        (0, NICE.to_owned(), String::new())
    );
    assert_eq!(run(&["fmt", "--check", "-"], UGLY).0, 1);
    assert_eq!(run(&["fmt", "--check", "-"], NICE).0, 0);
    let (code, out, said) = run(&["fmt", "-"], "actor A (");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(said.contains("<stdin>:1:"), "{said}");
}

/// A file keeps its encoding, its byte order mark and the ends of its lines.
#[test]
fn files_stay_as_they_are_stored() {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    type Store<'a> = &'a dyn Fn(&str) -> Vec<u8>;
    let ways: [Store; 5] = [
        &|text| text.replace('\n', "\r\n").into_bytes(),
        &|text| text.replace('\n', "\r").into_bytes(),
        &|text| format!("\u{feff}{text}").into_bytes(),
        &|text| utf16(&format!("\u{feff}{}", text.replace('\n', "\r\n"))),
        &|text| {
            text.replace("said", "s\u{e4}id")
                .chars()
                .map(|c| c as u8)
                .collect()
        },
    ];
    for (i, store) in ways.iter().enumerate() {
        let place = Place::new(&[("p/A.cal", "")]);
        std::fs::write(place.path("p/A.cal"), store(UGLY)).unwrap();
        place.run(&["fmt", "p/A.cal"]).succeeds();
        assert_eq!(
            std::fs::read(place.path("p/A.cal")).unwrap(),
            store(NICE),
            "{i}"
        );
        place.run(&["fmt", "--check", "p/A.cal"]).succeeds();
        place.run(&["check", "p/A.cal"]).succeeds();
    }
    // A line that ends with a carriage return is a line of its own in what is reported.
    let place = Place::new(&[("A.cal", "actor A () ==> :\r  // first\r  int x := ;\rend\r")]);
    for command in ["fmt", "check"] {
        place.run(&[command, "A.cal"]).refuses(1, &["A.cal:3:12"]);
    }
}

#[test]
fn files_that_cannot_be_are_left_alone() {
    let bad = "actor  A () ==> :\n int x := ;\nend\n";
    let place = Place::new(&[("A.cal", bad), ("B.cal", UGLY), ("C.xdf", "<XDF/>")]);
    let run = place.run(&["fmt", "."]);
    run.refuses(1, &["A.cal:2:11"]);
    assert!(
        run.out
            .ends_with("2 files: 1 reformatted, 1 file left alone for errors\n"),
        "{run:#?}"
    );
    assert_eq!(std::fs::read_to_string(place.path("A.cal")).unwrap(), bad);
    assert_eq!(std::fs::read_to_string(place.path("B.cal")).unwrap(), NICE);
    place
        .run(&["fmt", "C.xdf"])
        .refuses(1, &["is no .cal file"]);
    place
        .run(&["fmt", "D.cal"])
        .refuses(1, &["there is no file"]);
    place
        .run(&["fmt", "-", "A.cal"])
        .refuses(1, &["- stands alone"]);
    place.run(&["fmt"]).refuses(2, &[]);
}

#[test]
fn files_that_are_too_large_are_not_read() {
    let place = Place::new(&[("A.cal", "")]);
    let huge = std::fs::File::create(place.path("A.cal")).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    let said = "too large: a source file has at most 64 MiB";
    place.run(&["fmt", "--check", "A.cal"]).refuses(1, &[said]);
    let mut command = place.command(&["fmt", "-"]);
    let input = std::fs::File::open(place.path("A.cal")).unwrap();
    let done = command.stdin(input).output().unwrap();
    common::Run::new(done).refuses(1, &["cannot read the input", said]);
}

#[test]
fn latin_1_stays_latin_1() {
    let place = Place::new(&[]);
    let text = b"// K\xf6ln\nunit  U :  end\n";
    std::fs::write(place.path("U.cal"), text).unwrap();
    place.run(&["fmt", "U.cal"]).succeeds();
    let after = std::fs::read(place.path("U.cal")).unwrap();
    assert_eq!(after, b"// K\xf6ln\nunit U : end\n");
}
