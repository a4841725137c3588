// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada check --explain`: types, rules and names at places.

use crate::common::Place;

const UNIT: &str = "package p;
unit Bits :
  int WIDTH = 12;
  function low (uint(size=16) v) --> uint(size=WIDTH) : v & 0xFFF end
end
";

const ACTOR: &str = "package p;
import p.Bits.*;
actor A () int(size=8) In ==> int(size=16) Out :
  uint(size=13) odd := 0;
  float f;
  List(type: int(size=4), size=3) l;

  go: action In:[x] ==> Out:[x * 3 + odd]
  var int(size=8) y = 5, int j
  do
    y := -odd;
    odd := low(odd) << 2;
    j := (if x > 0 then 1 else -300 end) mod y;
    l[1] := odd & ~7;
    f := f / x;
    j := p.Bits.WIDTH - 1;
  end

  stop: action ==> guard #l = 3 do end

  priority go > stop; end
end
";

/// The text of line so-and-so, the place in it where `part` begins, and what is said of that.
fn explain(place: &Place, part: &str, plus: usize) -> String {
    let (line, text) = ACTOR
        .lines()
        .enumerate()
        .find(|(_, l)| l.contains(part))
        .unwrap();
    let column = text.find(part).unwrap() + 1 + plus;
    let at = format!("p/A.cal:{}:{column}", line + 1);
    let run = place.run(&["check", "--explain", &at]);
    run.succeeds();
    run.out
}

#[test]
fn every_rule_is_said_with_the_type_it_gives() {
    let place = Place::new(&[("p/Bits.cal", UNIT), ("p/A.cal", ACTOR)]);
    let says = |part: &str, plus: usize, wanted: &[&str]| {
        let said = explain(&place, part, plus);
        for wanted in wanted {
            assert!(said.contains(wanted), "{part}: no {wanted:?} in\n{said}");
        }
    };
    // 8 and 2 bits make 10; with 13 unsigned ones the join has 14, and one more.
    says(
        "x * 3 + odd",
        2,
        &["x * 3\n", "type         int(size=10)", "at most 64"],
    );
    says(
        "x * 3 + odd",
        6,
        &[
            "x * 3 + odd\n",
            "type         int(size=15)",
            "computed in  int",
            "the join of int(size=10) and uint(size=13), which is int(size=14), and one bit more",
            "becomes      int(size=16): this port's element has it",
        ],
    );
    says(
        "x * 3 + odd",
        4,
        &["type         uint(size=2)", "value        3", "fewest bits"],
    );
    says(
        "-odd;",
        0,
        &["type         int(size=14)", "signed, with one bit more"],
    );
    says(
        "low(odd) << 2",
        0,
        &[
            "type         uint(size=12)",
            "`low(uint(size=16) v) --> uint(size=12)`",
        ],
    );
    says(
        "low(odd) << 2",
        9,
        &[
            "type         uint(size=15)",
            "2^min(w(b), 6)",
            "becomes      uint(size=13)",
        ],
    );
    says(
        "(if x > 0",
        1,
        &["type         int(size=10)", "join of its branches"],
    );
    says("if x > 0", 5, &["type         bool"]);
    says(
        "end) mod y",
        5,
        &["type         int(size=8)", "`a mod b` has the type of `b`"],
    );
    says(
        "odd & ~7",
        4,
        &["type         uint(size=3)", "the narrower of"],
    );
    says(
        "~7",
        0,
        &["type         uint(size=3)", "`~a` has the type of `a`"],
    );
    says("f / x", 2, &["type         float"]);
    says("#l = 3", 0, &["type         uint(size=2)", "`#a`"]);
    says(
        "p.Bits.WIDTH - 1",
        7,
        &[
            "value        12",
            "a constant, 12",
            "declared at p/Bits.cal:3:7",
        ],
    );
    says("p.Bits.WIDTH - 1", 2, &["`p.Bits`: a unit"]);
    says(
        "priority go",
        9,
        &["`go`: an action, declared at p/A.cal:8:3"],
    );
    says(
        "import p.Bits",
        9,
        &["`p.Bits`: a unit, declared at p/Bits.cal:2:6"],
    );
    says(
        "In:[x]",
        0,
        &["`int(size=8) In`: an input port, declared at p/A.cal:3:24"],
    );
    says(
        "l[1]",
        0,
        &["`List(type: int(size=4), size=3) l`: a state variable"],
    );
}

#[test]
fn json_says_the_same() {
    let place = Place::new(&[("p/Bits.cal", UNIT), ("p/A.cal", ACTOR)]);
    let said = place.run(&["check", "--json", "--explain", "p/A.cal:8:35"]);
    let said = said.succeeds().json();
    assert_eq!(said["expression"]["text"], "x * 3 + odd");
    assert_eq!(said["expression"]["type"], "int(size=15)");
    assert_eq!(said["expression"]["becomes"]["type"], "int(size=16)");
}

#[test]
fn places_where_nothing_is_and_files_with_errors() {
    let place = Place::new(&[("p/Bits.cal", UNIT), ("p/A.cal", ACTOR)]);
    let explain = |at: &str| place.run(&["check", "--explain", at]);
    explain("p/A.cal").refuses(2, &["FILE:LINE:COLUMN"]);
    explain("p/A.cal:0:1").refuses(2, &["FILE:LINE:COLUMN"]);
    explain("p/A.cal:99:1").refuses(1, &["no place 99:1"]);
    explain("p/A.cal:7:1").refuses(1, &["no expression and no name"]);
    explain("p/Not.cal:1:1").refuses(1, &["there is no file"]);
    explain("p:1:1").refuses(1, &["is a folder"]);
    place
        .run(&["check", "--explain", "p/A.cal:1:1", "p"])
        .refuses(2, &["cannot be used with"]);
    // What is right in a file with errors is still known.
    place.write(
        "q/B.cal",
        "package q;\nactor B () ==> :\n  int a := 2;\n  int b := a + nowhere;\n  \
         int c := (a + ;\nend\n",
    );
    let said = explain("q/B.cal:4:12");
    assert!(
        said.succeeds().out.contains("type         int"),
        "{said:#?}"
    );
}
