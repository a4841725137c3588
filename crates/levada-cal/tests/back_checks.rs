// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Index checks: omitted if the index is proven to be in range, emitted otherwise.

mod back_support;

use back_support::alone;
use levada_cal::emit::{Options, emit};
use levada_cal::interp::{FaultKind, Machine};

/// The checks that the C of an actor with this inside is left with.
fn checks(inside: &str) -> u32 {
    let text = format!("actor A () int X, uint(size=8) B ==> int Y :\n{inside}\nend");
    emit(&alone(&text), &Options::default()).checks
}

#[test]
fn masks_and_moduli_are_proof() {
    assert_eq!(
        checks("List(type: int, size=8) l; action X:[x] ==> Y:[l[x & 7]] end"),
        0
    );
    assert_eq!(
        checks("List(type: int, size=7) l; action X:[x] ==> Y:[l[x & 7]] end"),
        1
    );
    assert_eq!(
        checks("List(type: int, size=256) l; action B:[b] ==> Y:[l[b]] end"),
        0
    );
    assert_eq!(
        checks("List(type: int, size=255) l; action B:[b] ==> Y:[l[b]] end"),
        1
    );
    assert_eq!(
        checks("List(type: int, size=16) l; action B:[b] ==> Y:[l[b >> 4]] end"),
        0
    );
}

#[test]
fn loops_are_proof() {
    let sum = "List(type: int, size=64) l;
      action X:[x] ==> Y:[s] var int s := 0 do
        foreach int i in 0 .. 63 do s := s + l[i] * l[63 - i]; end
      end";
    assert_eq!(checks(sum), 0);
    assert_eq!(checks(&sum.replace("0 .. 63", "0 .. 64")), 2);
    let square = "List(type: List(type: int, size=8), size=8) l;
      action X:[x] ==> Y:[s] var int s := 0 do
        foreach int i in 0 .. 7 do foreach int j in i .. 7 do s := s + l[i][j]; end end
      end";
    assert_eq!(checks(square), 0);
}

#[test]
fn conditions_are_proof() {
    let guarded = "List(type: int, size=10) l;
      action X:[x] ==> Y:[l[x]] guard x >= 0, x < 10 end";
    assert_eq!(checks(guarded), 0);
    assert_eq!(checks(&guarded.replace("x < 10", "x < 11")), 1);
    let tested = "List(type: int, size=10) l;
      action X:[x] ==> Y:[y] var int y := 0 do
        if x > 2 and x <= 9 then y := l[x - 3]; else y := 1; end
      end";
    assert_eq!(checks(tested), 0);
    let chosen = "List(type: int, size=10) l;
      action X:[x] ==> Y:[if x < 0 or x > 9 then 0 else l[x] end] end";
    assert_eq!(checks(chosen), 0);
}

#[test]
fn what_the_state_can_be_is_proof() {
    let ring = "List(type: int, size=16) l; int at := 0;
      action X:[x] ==> Y:[l[at]] do at := (at + 1) & 15; end";
    assert_eq!(checks(ring), 0);
    let counter = "List(type: int, size=64) l; int n := 0;
      put: action X:[x] ==> guard n < 64 do l[n] := x; n := n + 1; end
      all: action ==> Y:[l[0]] guard n = 64 do n := 0; end";
    assert_eq!(checks(counter), 0);
    // Growing beyond is harmless while the guard looks; below zero it does not.
    let grows = format!("{counter} more: action B:[b] ==> guard n < 64 do n := n + b; end");
    assert_eq!(checks(&grows), 0);
    let any = format!("{counter} more: action X:[x] ==> guard n < 64 do n := x; end");
    assert_eq!(checks(&any), 1);
}

#[test]
fn tables_and_parameters_are_proof() {
    let zigzag = "List(type: uint(size=8), size=4) order = [0, 2, 1, 3];
      List(type: int, size=4) l;
      action X:[x] ==> Y:[l[order[x & 3]]] end";
    assert_eq!(checks(zigzag), 0);
    assert_eq!(checks(&zigzag.replace("1, 3]", "1, 4]")), 1);
    let function = "List(type: int, size=4) l;
      function at(int i) --> int : l[i] end
      action X:[x] ==> Y:[at(x & 3) + at(2)] end";
    assert_eq!(checks(function), 0);
    assert_eq!(checks(&function.replace("at(2)", "at(x)")), 1);
}

#[test]
fn a_checked_index_is_known_from_then_on() {
    let twice = "List(type: int, size=10) l; List(type: int, size=12) m;
      action X:[x] ==> Y:[y] var int y := 0 do
        y := l[x];
        y := y + m[x];
        y := y + m[x + 2];
      end";
    assert_eq!(checks(twice), 1);
}

#[test]
fn without_checks_there_are_none() {
    let text = "actor A () int X ==> int Y :
      List(type: int, size=8) l; action X:[x] ==> Y:[l[x] / x] end end";
    let options = Options {
        checks: false,
        ..Options::default()
    };
    let out = emit(&alone(text), &options);
    assert_eq!(out.checks, 0);
    let body = out.files[0].text.split("---- actor").nth(1).unwrap();
    assert!(!body.contains("levada_index") && !body.contains("levada_divisor"));
}

#[test]
fn the_interpreter_faults_where_a_check_would() {
    for (body, kind) in [
        ("l[n]", FaultKind::Index),
        ("10 / (2 - n)", FaultKind::Division),
    ] {
        let text = format!(
            "actor A () ==> int Y :\n  List(type: int, size=2) l;\n  int n := 0;\n  step: action ==> \
             Y:[{body}] guard n < 5 do n := n + 1; end\nend"
        );
        let net = alone(&text);
        let fault = Machine::new(&net, Default::default())
            .run()
            .expect_err("it faults");
        assert_eq!((fault.kind, fault.action.as_str()), (kind, "step"));
    }
}
