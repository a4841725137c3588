// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada map`, and of recording and placement by `levada run`. Wrong input: files that do not exist or
//! have other content, unknown actors, cores and strategies, rates that are not numbers.

use crate::common::{Place, network, numbers};

const TOP: &str = "src/p/Top.xdf";

const MIX: &str = r#"
[machine]
cores = 4

[[app]]
name = "radio"
instances = 3
unit = "blocks"
reserve_rate = 20
actor = [
  { name = "in", time_ns = 1e6 },
  { name = "out", time_ns = 3e6 },
]
channel = [{ from = "in", to = "out", elements = 1000, bytes = 4 }]
"#;

fn mix() -> Place {
    Place::new(&[("mix.toml", MIX)])
}

#[test]
fn a_mix_is_mapped_by_every_strategy() {
    let place = mix();
    let run = place.run(&["map", "--simulate", "mix.toml", "--strategy", "all"]);
    run.succeeds();
    for part in [
        "3 applications on 4 cores",
        "round-robin",
        "radio-3",
        "blocks/s",
        "20.00",
    ] {
        assert!(run.out.contains(part), "no {part} in {run:#?}");
    }
    // A reserved rate that the machine cannot keep is marked in the same way.
    let much = MIX.replace("reserve_rate = 20", "reserve_rate = 2000");
    place.write("much.toml", &much);
    let text = place.run(&["map", "--simulate", "much.toml"]);
    let json = place
        .run(&["map", "--simulate", "much.toml", "--json"])
        .succeeds()
        .json();
    let all = json["mapped"][0]["applications"].as_array().unwrap();
    assert!(all.iter().any(|a| a["broken"] == true), "{json}");
    let marked = text.succeeds().out.matches("(broken)").count();
    assert_eq!(all.iter().filter(|a| a["broken"] == true).count(), marked);
    for strategy in ["levada", "partition", "glb", "lb", "round-robin"] {
        let args = [
            "map",
            "--simulate",
            "mix.toml",
            "--json",
            "--strategy",
            strategy,
        ];
        let run = place.run(&args);
        let json = run.succeeds().json();
        let mapped = &json["mapped"][0];
        assert_eq!(mapped["strategy"], strategy);
        assert_eq!(mapped["applications"][0]["broken"], false);
        let rate = mapped["applications"][0]["rate"].as_f64().unwrap();
        // One core would make 250 in a second, and they get the reserved rates.
        assert!((rate / 20.0 - 1.0).abs() < 0.02, "{strategy}: {rate}");
        assert!(mapped["load_to_lower_bound"].as_f64().unwrap() >= 0.999);
    }
    let polling = place.run(&["map", "--simulate", "mix.toml", "--round-robin"]);
    polling.succeeds();
}

#[test]
fn a_placement_is_written_edited_and_given_back() {
    let place = mix();
    place
        .run(&["map", "--simulate", "mix.toml", "--write", "p.toml"])
        .succeeds();
    let text = std::fs::read_to_string(place.path("p.toml")).unwrap();
    assert!(text.contains("[\"radio-2\"]\n\"in\" = "), "{text}");
    place.write("p.toml", "[radio-2]\nin = 3\nout = 3\n");
    let args = [
        "map",
        "--simulate",
        "mix.toml",
        "--placement",
        "p.toml",
        "--json",
    ];
    let json = place.run(&args).succeeds().json();
    let cores = &json["mapped"][0]["applications"][1]["cores"];
    assert_eq!((&cores["in"], &cores["out"]), (&3.into(), &3.into()));
}

#[test]
fn a_run_is_told_where_actors_sit_and_is_recorded() {
    let place = numbers();
    place.write("p.toml", "[\"p.Top\"]\nsource = 1\nprint = 0\n");
    place.write(
        "p.xcf",
        "<Configuration><Partitioning><Partition id=\"0\"><Instance id=\"print\"/></Partition>\
         <Partition id=\"1\"><Instance id=\"source\"/></Partition></Partitioning></Configuration>",
    );
    for file in ["p.toml", "p.xcf"] {
        let args = [
            "run",
            TOP,
            "--no-fuse",
            "--workers",
            "2",
            "--placement",
            file,
        ];
        let run = place.run(&[&args[..], &["--record", "run.toml"]].concat());
        assert_eq!(run.succeeds().out, "1\n2\n3\n");
        let text = std::fs::read_to_string(place.path("run.toml")).unwrap();
        let core = |name: &str| {
            let line = text
                .lines()
                .find(|l| l.contains(&format!("\"{name}\", time")));
            line.unwrap().split("core = ").nth(1).unwrap()[..1].to_string()
        };
        assert_eq!((core("source"), core("print")), ("1".into(), "0".into()));
        assert!(text.contains("elements = 3.0, bytes = 4.0"), "{text}");
        assert!(!text.contains("pin = "), "it could go anywhere: {text}");
        let args = [
            "map",
            "--simulate",
            "run.toml",
            "--strategy",
            "recorded",
            "--json",
        ];
        let json = place.run(&args).succeeds().json();
        let app = &json["mapped"][0]["applications"][0];
        assert_eq!(
            (&app["name"], &app["cores"]["source"]),
            (&"p.Top".into(), &1.into())
        );
        assert!(app["recorded"].as_f64().unwrap() > 0.0);
    }
}

/// The first half of the numbers costs the first actor more, the second half the other one.
#[test]
fn a_recorded_run_says_how_costs_vary_along_the_way() {
    let work = |name: &str, first: u32, then: u32| {
        format!(
            "package p;\n\nactor {name} () uint(size=32) In ==> uint(size=32) Out :\n  int n := 0;\n  \
             action In:[x] ==> Out:[y]\n  var uint(size=32) y := x, int i := 0\n  do\n    \
             while i < (if n < 100000 then {first} else {then} end) do\n      \
             y := y * 1664525 + 1013904223;\n      i := i + 1;\n    end\n    n := n + 1;\n  end\nend\n"
        )
    };
    let source = "package p;\n\nactor Source (int n) ==> uint(size=32) Out :\n  int i := 0;\n  \
                  action ==> Out:[i]\n  guard i < n\n  do\n    i := i + 1;\n  end\nend\n";
    let sink = "package p;\n\nactor Sink () uint(size=32) In ==> :\n  uint(size=32) sum := 0;\n  \
                action In:[x] ==>\n  do\n    sum := sum + x;\n  end\nend\n";
    let top = network(
        &[
            ("source", "p.Source", &[("n", "200000")]),
            ("one", "p.One", &[]),
            ("other", "p.Other", &[]),
            ("sink", "p.Sink", &[]),
        ],
        &[
            ("source.Out", "one.In"),
            ("one.Out", "other.In"),
            ("other.Out", "sink.In"),
        ],
    );
    let place = Place::new(&[
        ("src/p/Source.cal", source),
        ("src/p/One.cal", &work("One", 600, 200)),
        ("src/p/Other.cal", &work("Other", 200, 600)),
        ("src/p/Sink.cal", sink),
        (TOP, &top),
    ]);
    let args = [
        "run",
        TOP,
        "--no-fuse",
        "--workers",
        "2",
        "--record",
        "run.toml",
    ];
    place.run(&args).succeeds();
    let text = std::fs::read_to_string(place.path("run.toml")).unwrap();
    let read: toml::Table = text.parse().unwrap();
    let app = &read["app"][0];
    assert_eq!(app["profile_units"].as_float(), Some(1.0), "{text}");
    let parts = |actor: &toml::Value| {
        actor
            .get("cost_profile")
            .map(|c| c.as_array().unwrap().len())
    };
    let parts: Vec<Option<usize>> = app["actor"].as_array().unwrap().iter().map(parts).collect();
    assert_eq!(parts.len(), 4);
    assert!(
        parts[1].is_some_and(|p| p >= 8) && parts[1] == parts[2],
        "{parts:?}"
    );
    let args = [
        "map",
        "--simulate",
        "run.toml",
        "--strategy",
        "all",
        "--json",
    ];
    let json = place.run(&args).succeeds().json();
    for mapped in json["mapped"].as_array().unwrap() {
        assert!(mapped["applications"][0]["rate"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn errors_of_descriptions_are_reported() {
    let place = mix();
    let with = |from: &str, to: &str| place.write("bad.toml", &MIX.replace(from, to));
    for (from, to, said) in [
        ("cores = 4", "cores = 0", "the machine has no cores"),
        ("cores = 4", "corse = 4", "unknown field `corse`"),
        (
            "reserve_rate = 20",
            "promise = 20",
            "unknown key `promise`; since 0.2 it is `reserve_rate`",
        ),
        ("time_ns = 1e6", "time_ns = nan", "radio-1.in: time is NaN"),
        ("reserve_rate = 20", "reserve_rate = -1", "reserves -1"),
        (
            "reserve_rate = 20",
            "exclusive = [0, 1]",
            "exclusive to two",
        ),
        ("to = \"out\"", "to = \"none\"", "ends at none"),
    ] {
        with(from, to);
        place
            .run(&["map", "--simulate", "bad.toml"])
            .refuses(1, &["bad.toml", said]);
    }
    let map = |args: &[&str]| place.run(&[&["map", "--simulate", "mix.toml"], args].concat());
    map(&["--strategy", "best"]).refuses(1, &["no strategy best", "there are levada"]);
    map(&["--strategy", "recorded"]).refuses(1, &["no placement", "--record"]);
    map(&["--placement", "none.toml"]).refuses(1, &["--placement none.toml"]);
    place.write("p.toml", "[radio-1]\nin = 4\n");
    map(&["--placement", "p.toml"]).refuses(1, &["p.toml: ", "core 4, and the cores are 0 to 3"]);
    place.write("p.toml", "[radio-1\n");
    map(&["--placement", "p.toml"]).refuses(1, &["p.toml: "]);
    // What has no end is not read for ever; what an editor marks as UTF-8 is read.
    map(&["--placement", "/dev/zero"]).refuses(1, &["--placement /dev/zero", "16 MiB"]);
    place
        .run(&["map", "--simulate", "/dev/zero"])
        .refuses(1, &["--simulate /dev/zero", "16 MiB"]);
    let text = std::fs::read_to_string(place.path("mix.toml")).unwrap();
    let pinned = text.replacen("name = \"in\",", "name = \"in\", pin = 2,", 1);
    assert_ne!(pinned, text);
    place.write("pinned.toml", &pinned);
    place.write("p.toml", "[radio-1]\nin = 3\n");
    let args = ["map", "--simulate", "pinned.toml", "--placement", "p.toml"];
    place.run(&args).refuses(
        1,
        &["in is placed on core 3, and its pin is 2", "remove the pin"],
    );
    place.write("p.toml", "\u{feff}[radio-1]\nin = 3\n");
    map(&["--placement", "p.toml"]).succeeds();
    let orcc = "<Configuration><Partitioning><Partition id=\"proc_3\"><Instance id=\"in\"/></Partition>\
                </Partitioning></Configuration>";
    for mark in ["", "\u{feff}"] {
        place.write("p.xcf", &format!("{mark}{orcc}"));
        let told = map(&["--placement", "p.xcf"]);
        assert!(
            told.code == Some(0) || told.err.contains("p.xcf: "),
            "{told:?}"
        );
        assert!(!told.err.contains("a placement holds a table"), "{told:?}");
    }
    place
        .run(&["map", "--simulate", "none.toml"])
        .refuses(1, &["--simulate none.toml"]);
    place
        .run(&["map", "--strategy", "lb"])
        .refuses(2, &["--simulate"]);
    let json = map(&["--strategy", "best", "--json"]).json();
    assert_eq!(json["outcome"], "refused");

    let place = numbers();
    place.write("p.toml", "[\"p.Top\"]\nsauce = 0\n");
    let args = ["run", TOP, "--no-fuse", "--placement", "p.toml"];
    place.run(&args).refuses(1, &["actor sauce", "source"]);
    place.write("p.toml", "[\"p.Top\"]\nsource = 2\n");
    let run = place.run(&[&args[..], &["--workers", "2"]].concat());
    run.refuses(1, &["core 2, and the cores are 0 to 1"]);
}
