// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptions and placements: reading, writing, and error messages.

use crate::io::*;
use crate::random::{self, Random};
use crate::{CostProfile, Machine, Strategy, map};

const TWO: &str = r#"
[machine]
cores = 4
threads = 2

[[app]]
name = "radio"
instances = 2
unit = "blocks"
reserve_rate = 10
actor = [
  { name = "in", time_ns = 1e6, firings = 10 },
  { name = "out", time_ns = 2e6, firings = 10, pin = 1 },
]
channel = [{ from = "in", to = "out", elements = 1000, bytes = 4 }]
"#;

#[test]
fn a_description_is_read() {
    let read = read_description(TWO).unwrap();
    assert_eq!(read.machine, Machine::with_topology(4, 2, 4, 4));
    let names: Vec<&str> = read.mix.apps.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["radio-1", "radio-2"]);
    assert_eq!(read.mix.apps[1].reserved_rate, Some(10.0));
    assert_eq!(read.mix.apps[1].actors[1].pin, Some(1));
    assert_eq!(read.mix.apps[0].channels[0].elements, 1000.0);
    assert_eq!(read.placement, None);
}

#[test]
fn priorities_are_clamped() {
    for (written, is) in [(9, 3), (4, 3), (3, 3), (0, 0), (-4, -4), (-5, -4)] {
        let text = TWO.replace(
            "reserve_rate",
            &format!("priority = {written}\nreserve_rate"),
        );
        assert_eq!(read_description(&text).unwrap().mix.apps[0].priority, is);
    }
}

#[test]
fn a_description_is_read_back_unchanged() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (apps, actors) = (1 + random.below(5), 5 + random.below(30));
        let mut mix = random::mix(&mut random, apps, actors);
        mix.apps[0].name = "a \"name\" with = 's and\n\\ \u{7f}".to_string();
        mix.apps[0].reserved_rate = Some(2.5);
        mix.apps[0].cpus = Some(0.5);
        mix.exclusive = vec![(7, None), (6, Some(0))];
        let machine = Machine::with_topology(8, 2, 4, 8);
        let placement = map(&mix, &machine, Strategy::Glb).unwrap();
        let named = read_placement(&placement_text(&mix, &placement)).unwrap();
        assert_eq!(named.len(), placement.len());
        let rates = (0..mix.apps.len()).map(|i| Some(i as f64)).collect();
        let mut described = Description {
            machine,
            mix,
            placement: Some(placement),
            rates,
        };
        let back = read_description(&description_text(&described)).unwrap();
        // The order of exclusive cores has no meaning.
        described.mix.exclusive.sort();
        let mut sorted = back.clone();
        sorted.mix.exclusive.sort();
        assert_eq!(sorted, described);
    }
}

/// Instances start at different positions of the profile.
#[test]
fn a_profile_is_read_back_unchanged() {
    let text = with_profile("profile_units = 6", "[100, 0.5, 250]");
    let read = read_description(&text).unwrap();
    let profiles: Vec<&CostProfile> = read.mix.apps.iter().flat_map(|a| &a.cost_profile).collect();
    assert_eq!(profiles.len(), 2);
    for (profile, begin) in profiles.iter().zip([0.0, 3.0]) {
        assert_eq!((profile.units(), profile.start()), (6.0, begin));
        assert_eq!(profile.costs(0), [100.0, 0.5, 250.0]);
        assert!(profile.costs(1).is_empty());
    }
    let written = description_text(&read);
    assert!(
        written.contains("cost_profile = [100, 0.5, 250] }"),
        "{written}"
    );
    assert_eq!(read_description(&written).unwrap(), read);
    // From the middle, and across the end.
    let text = with_profile(
        "profile_units = 6\nprofile_start = 4\nprofile_spread = 0.5",
        "[1, 2]",
    );
    let read = read_description(&text).unwrap();
    let begins = read.mix.apps.iter().flat_map(|a| &a.cost_profile);
    let begins: Vec<f64> = begins.map(CostProfile::start).collect();
    assert_eq!(begins, [4.0, 1.0]);
    let mut profiles = read.mix.apps.iter().flat_map(|a| &a.cost_profile);
    assert!(profiles.all(|profile| profile.spread() == 0.5));
    assert_eq!(read_description(&description_text(&read)).unwrap(), read);
}

#[test]
fn an_invalid_profile_is_refused() {
    let units = "profile_units = 6";
    for (keys, costs, said) in [
        (
            "",
            "[1]",
            "radio has a cost profile without a number of units",
        ),
        ("profile_start = 1", "[]", "without a number of units"),
        ("profile_spread = 1", "[]", "without a number of units"),
        (
            "profile_units = 6\nprofile_spread = 1.5",
            "[1]",
            "profile_spread is 1.5",
        ),
        (
            "profile_units = 6\nprofile_spread = nan",
            "[1]",
            "profile_spread is NaN",
        ),
        (
            units,
            "[]",
            "radio: a cost profile of 6 units, and no actor has one",
        ),
        ("profile_units = 0", "[1]", "a cost profile of 0 units"),
        ("profile_units = inf", "[1]", "a cost profile of inf units"),
        (
            "profile_units = 6\nprofile_start = nan",
            "[1]",
            "profile_start is NaN",
        ),
        (
            "profile_units = 6\nprofile_start = -1",
            "[1]",
            "profile_start is -1",
        ),
        (
            units,
            "[1, -1]",
            "radio: in the cost profile of in a part costs -1",
        ),
        (units, "[nan]", "a part costs NaN"),
        (units, "[1, inf]", "a part costs inf"),
        (units, "[0, 0]", "the cost profile of in costs nothing"),
        (units, "[1], pin = 0, cuorse = 1", "unknown field"),
        (units, "[1], cost_profile = [1]", "duplicate key"),
        (units, "\"even\"", "invalid type"),
    ] {
        let said_is = read_description(&with_profile(keys, costs)).unwrap_err();
        assert!(
            said_is.what.contains(said),
            "{keys} {costs}: {}",
            said_is.what
        );
        assert!(!said_is.help.is_empty());
    }
    let other = with_profile(units, "[1, 2]").replace("pin = 1", "cost_profile = [1, 2, 3]");
    let said_is = read_description(&other).unwrap_err();
    assert!(
        said_is.what.contains("out has 3 parts, another 2"),
        "{}",
        said_is.what
    );
}

/// Of the first actor.
fn with_profile(keys: &str, costs: &str) -> String {
    let text = TWO.replace("reserve_rate = 10", keys);
    text.replace(
        "1e6, firings = 10 }",
        &format!("1e6, firings = 10, cost_profile = {costs} }}"),
    )
}

#[test]
fn a_placement_is_read_back_unchanged() {
    let mut read = read_description(TWO).unwrap();
    let placement = map(&read.mix, &read.machine, Strategy::Levada).unwrap();
    let text = placement_text(&read.mix, &placement);
    let named = read_placement(&text).unwrap();
    read.mix.pin(&named, 4).unwrap();
    for strategy in Strategy::ALL {
        assert_eq!(map(&read.mix, &read.machine, strategy).unwrap(), placement);
    }
    // Edited: one line is changed, the others are deleted.
    let mut edited = read_description(TWO).unwrap();
    let named = read_placement("[radio-2]\nin = 3\n").unwrap();
    edited.mix.pin(&named, 4).unwrap();
    assert_eq!(
        map(&edited.mix, &edited.machine, Strategy::Levada).unwrap()[2],
        3
    );
}

#[test]
fn mappings_of_orcc_are_read() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<Configuration>
  <Partitioning>
    <Partition id="proc_10"><Instance id="radio_out"/></Partition>
    <Partition id="proc_2"><Instance id="in"/><Instance id="mid"/></Partition>
  </Partitioning>
</Configuration>"#;
    let named = read_placement(text).unwrap();
    let cores: Vec<(&str, u32)> = named.iter().map(|n| (n.1.as_str(), n.2)).collect();
    assert_eq!(cores, [("in", 0), ("mid", 0), ("radio_out", 1)]);
    let mut mix = read_description(&TWO.replace("instances = 2", ""))
        .unwrap()
        .mix;
    mix.apps[0].actors[0].name = "in+mid".to_string();
    mix.apps[0].actors[1].name = "radio.out".to_string();
    mix.pin(&named, 2).unwrap();
    let pins: Vec<Option<u32>> = mix.apps[0].actors.iter().map(|a| a.pin).collect();
    assert_eq!(pins, [Some(0), Some(1)]);
}

/// A description is refused with this message and with help.
fn assert_refused(text: &str, said: &str) {
    let problem = read_description(text).unwrap_err();
    assert!(problem.what.contains(said), "{problem} has no {said}");
    assert!(!problem.help.is_empty());
}

#[test]
fn invalid_values_are_refused() {
    let with = |from: &str, to: &str| TWO.replace(from, to);
    for (text, said) in [
        ("".to_string(), "machine"),
        (with("cores = 4", "cores = 0"), "no cores"),
        (
            with("cores = 4", "cores = 1000000"),
            "more than 65536 cores",
        ),
        (with("time_ns = 1e6", "time_ns = nan"), ".in: time is NaN"),
        (with("time_ns = 1e6", "time_ns = -1.0"), "time is -1"),
        (with("time_ns = 1e6", "time_ns = 1e300"), "time is 1e300"),
        (with("time_ns = 1e6", "time = 3"), "unknown field"),
        (
            with("reserve_rate = 10", "course_begin = 6"),
            "unknown key `course_begin`; since 0.2 it is `profile_start`",
        ),
        (
            with("elements = 1000", "elements = inf"),
            "elements of channel 0 is inf",
        ),
        (with("to = \"out\"", "to = \"ouch\""), "ends at ouch"),
        (with("name = \"in\"", "name = \"out\""), "two actors out"),
        (with("reserve_rate = 10", "reserve_rate = 0"), "reserves 0"),
        (
            with("pin = 1", "pin = 4"),
            "pinned to core 4, and the cores are 0 to 3",
        ),
        (
            with("reserve_rate = 10", "exclusive = [2]"),
            "has other exclusive cores",
        ),
        (
            format!("reserved = [1]\n{TWO}"),
            "which is exclusive or reserved",
        ),
        (
            with("time_ns = 1e6", "time_ns = 0").replace("2e6", "0"),
            "no time at all",
        ),
        (
            format!(
                "{TWO}\n[[app]]\nname = \"radio-1\"\nactor = [{{ name = \"b\", time_ns = 1 }}]"
            ),
            "two applications radio-1",
        ),
    ] {
        assert_refused(&text, said);
    }
}

#[test]
fn invalid_descriptions_are_refused() {
    for (text, said) in [
        ("[machine]\ncores = 2\n", "nothing to map"),
        (
            "[machine]\ncores = 2\n[[app]]\nname = \"a\"\n",
            "a has no actors",
        ),
        // Refused before memory is allocated for the instances.
        (
            "[machine]\ncores = 2\n[[app]]\nname = \"a\"\ninstances = 10000000000\nactor = []",
            "a has no actors",
        ),
        (
            "[machine]\ncores = 2\n[[app]]\nname = \"a\"\ninstances = 10000000000\n\
         actor = [{ name = \"b\", time_ns = 1 }]",
            "more than 1048576 actors",
        ),
        (
            "[machine]\ncores = 2\n[[app]]\nname = \"app0\"\n\
         actor = [{ name = \"b\", time_ns = 1 }]\n[random]\napps = 2\nactors = 4",
            "two applications app0",
        ),
        (
            "[machine]\ncores = 2\n[random]\napps = 5\nactors = 2",
            "5 applications with 2",
        ),
        (
            "[machine]\ncores = 2\n[random]\napps = 0\nactors = 0",
            "0 applications with 0",
        ),
    ] {
        assert_refused(text, said);
    }
}

#[test]
fn a_valid_description_may_leave_no_core() {
    let text = "reserved = [0]\n[machine]\ncores = 1\n[[app]]\nname = \"a\"\n\
                actor = [{ name = \"b\", time_ns = 1 }]";
    let read = read_description(text).unwrap();
    let problem = map(&read.mix, &read.machine, Strategy::Levada).unwrap_err();
    assert_eq!(problem.what, "no core is left for a: all are reserved");
}

#[test]
fn invalid_placements_are_refused() {
    for (text, said) in [
        ("[a]\nb = -1", "invalid value"),
        ("b = 1", "invalid type"),
        ("<a", "no XML"),
        ("<Configuration/>", "no actor is mapped"),
        (
            "<C><Partition id='1'><Instance/></Partition></C>",
            "line 1: an Instance without an id",
        ),
    ] {
        let problem = read_placement(text).unwrap_err();
        assert!(problem.what.contains(said), "{problem} has no {said}");
    }
    let mut mix = read_description(TWO).unwrap().mix;
    for (text, said) in [
        ("[radio-3]\nin = 0", "application radio-3"),
        ("[radio-1]\nino = 0", "actor ino"),
        ("[radio-1]\nin = 9", "core 9, and the cores are 0 to 3"),
        ("[radio-1]\nout = 0", "placed on core 0, and its pin is 1"),
    ] {
        let named = read_placement(text).unwrap();
        let problem = mix.pin(&named, 4).unwrap_err();
        assert!(problem.what.contains(said), "{problem} has no {said}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let actors = r#"actor = [{ name = "in", time_ns = 1 }, { name = "out", time_ns = 1 }]"#;
    let other =
        format!("{TWO}\n[[app]]\nname = \"tv\"\nactor = [{{ name = \"in\", time_ns = 1 }}]");
    let alone = format!("[machine]\ncores = 4\n[[app]]\nname = \"a\"\n{actors}");
    let many = format!("{alone}\n[random]\napps = 30\nactors = 60");
    let orcc = "<C><Partition id='1'><Instance id='x'/></Partition></C>";
    for (there, text, what, help) in [
        (
            TWO,
            "[radio-2]\nx = 0",
            "actor x of radio-2",
            "it may name radio-2: in, out",
        ),
        (
            TWO,
            orcc,
            "actor x",
            "it may name radio-1, radio-2: in, out",
        ),
        (
            &other,
            orcc,
            "actor x",
            "it may name radio-1, radio-2: in, out; tv: in",
        ),
        (
            &other,
            "[b]\nx = 0",
            "application b",
            "it may name radio-1, radio-2, tv",
        ),
        (&alone, "[a]\nx = 0", "actor x", "it may name in, out"),
        (&many, "[b]\nx = 0", "application b", " and 11 more"),
    ] {
        let mut mix = read_description(there).unwrap().mix;
        let named = read_placement(text).unwrap();
        let problem = mix.pin(&named, 4).unwrap_err();
        let said = format!("the placement names {what}, which does not exist");
        assert_eq!(problem.what, said);
        assert!(problem.help.ends_with(help), "{problem}");
    }
}

/// A text of the maximum size that repeats the same actor and core.
#[test]
fn a_long_placement_takes_linear_time() {
    let start = std::time::Instant::now();
    let actors: Vec<String> = (0..1000)
        .map(|i| format!("{{ name = \"a{i}\", time_ns = 1 }}"))
        .collect();
    let actors = actors.join(", ");
    let cores = "0, ".repeat(500_000);
    let text = format!(
        "reserved = [{cores}]\n[machine]\ncores = 2\n[[app]]\nname = \"a\"\nactor = [{actors}]"
    );
    let mut mix = read_description(&text).unwrap().mix;
    assert_eq!(mix.exclusive.len(), 1);
    let instances = "<Instance id='a999'/>".repeat(700_000);
    let text = format!("<C><Partition id='0'/><Partition id='1'>{instances}</Partition></C>");
    mix.pin(&read_placement(&text).unwrap(), 2).unwrap();
    assert_eq!(mix.apps[0].actors[999].pin, Some(1));
    let took = start.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}
