// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of parameters: values that a network or the command line gives.
//!
//! Wrong input: parameters that are unknown, missing or given twice; values of a wrong type or out of range; unknown
//! names in expressions, division by zero, overflow; settings of the command line that name nothing or do not fit.

use crate::support::{
    instance, int, loads, refused, refused_files, sink, source, warned, wire, xdf,
};

#[test]
fn settings_replace_parameters_and_variables_of_the_top() {
    let decls = "<Decl kind=\"Param\" name=\"n\"><Type name=\"int\"/></Decl>\
                 <Decl kind=\"Variable\" name=\"size\"><Type name=\"int\"/>"
        .to_string()
        + &int(16)
        + "</Decl>";
    let size = "<Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Var\" name=\"size\"/>\
                </Attribute>";
    let body = decls
        + &instance(
            "source",
            "p.Source",
            &[("n", "<Expr kind=\"Var\" name=\"n\"/>".to_string())],
        )
        + &sink()
        + &wire("source.Out", "sink.In", size);
    let network = loads("set", &body, &[("n", "-0x10")]);
    assert_eq!(network.channels[0].capacity, Some(16));
    let network = loads("set2", &body, &[("n", "1"), ("size", "4096")]);
    assert_eq!(network.channels[0].capacity, Some(4096));
    refused("set3", &body, &[], &["no value", "--set n=VALUE"]);
    refused(
        "set4",
        &body,
        &[("n", "one"), ("m", "2")],
        &[
            "`one` is not an int(size=32)",
            "no parameter or variable `m`",
            "there are: n, size",
        ],
    );
    refused(
        "set5",
        &body,
        &[("n", "3000000000")],
        &["is not an int(size=32)"],
    );
    refused(
        "set6",
        &body,
        &[("n", "1"), ("size", "0")],
        &["bufferSize must be"],
    );
}

#[test]
fn a_parameter_that_is_cut_is_told_with_both_numbers() {
    let many = "package p;\nactor Many (uint n) ==> :\n  List(type: int, size=n) a;\n  \
                action ==> do a[0] := 1; end\nend\n";
    let body = instance("many", "p.Many", &[("n", int(-1))]);
    refused_files(
        "cut",
        &[("p/Many.cal", many), ("p/Top.xdf", &xdf(&body))],
        &[],
        &[
            "parameter `n` is given -1, which does not fit uint",
            "it becomes 4294967295 here",
            "the size of a list is from 1 to",
        ],
    );
}

#[test]
fn parameters_fit_their_declarations() {
    let gain = |params: &[(&str, String)]| {
        source()
            + &instance("gain", "p.Gain", params)
            + &sink()
            + &wire("source.Out", "gain.In", "")
            + &wire("gain.Out", "sink.In", "")
    };
    loads("defaults", &gain(&[]), &[]);
    warned(
        "unknown",
        &gain(&[("facto", int(1))]),
        &["p.Gain has no parameter `facto`", "did you mean `factor`?"],
    );
    refused(
        "given twice",
        &gain(&[("factor", int(1)), ("factor", int(2))]),
        &[],
        &["`factor` is given twice"],
    );
    warned(
        "missing",
        &(instance("s", "p.Source", &[]) + &sink() + &wire("s.Out", "sink.In", "")),
        &[
            "the instance s gives no value to the parameter `n` of p.Source: it is 0",
            "declared here, without a default",
        ],
    );
    // That a network has no value for is only wrong where it is read.
    let open = "<Decl kind=\"Param\" name=\"n\"><Type name=\"int\"/></Decl>".to_string();
    let read = "<Expr kind=\"Var\" name=\"n\"/>".to_string();
    loads("not read", &(open.clone() + &gain(&[])), &[]);
    refused(
        "read",
        &(open.clone() + &gain(&[("factor", read.clone())])),
        &[],
        &["the parameter `n` has no value", "--set n=VALUE"],
    );
    loads("set", &(open + &gain(&[("factor", read)])), &[("n", "3")]);
    refused("kind", &gain(&[("loud", int(1))]), &[], &["loud"]);
    refused(
        "name",
        &gain(&[(
            "factor",
            "<Expr kind=\"Var\" name=\"nowhere\"/>".to_string(),
        )]),
        &[],
        &["no parameter or variable `nowhere`"],
    );
    let divided = "<Expr kind=\"BinOpSeq\"><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                   value=\"1\"/><Op name=\"/\"/><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                   value=\"0\"/></Expr>";
    refused(
        "zero",
        &gain(&[("factor", divided.to_string())]),
        &[],
        &["division by zero"],
    );
    refused(
        "literal",
        &gain(&[(
            "factor",
            int(1).replace("\"1\"", "\"99999999999999999999\""),
        )]),
        &[],
        &["is not an integer of 64 bits"],
    );
}
