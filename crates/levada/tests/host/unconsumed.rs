// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of what an application that is done has left in its channels.

use crate::common::host::{Host, sources};
use crate::common::network;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Prints the first of 2,048 elements that it takes at a time.
const BLOCKS: &str = "package p;\nactor Blocks () int In ==> :\n  action In:[x] repeat 2048 ==> do println(x[0]); \
                      end\nend\n";
const LEFT: &str = "elements in source.Out -> sink.In: sink waits for 2048 there";

/// `Left` leaves 384 elements, `Even` leaves nothing, and `Wide` leaves 384 in each of 70 channels.
fn host() -> Host {
    let place = sources();
    place.write("src/p/Blocks.cal", BLOCKS);
    let sinks: Vec<String> = (0..70).map(|i| format!("sink{i}")).collect();
    for (name, elements, sinks) in [
        ("Left", "4480", &["sink".to_string()][..]),
        ("Even", "4096", &["sink".to_string()]),
        ("Wide", "4480", &sinks),
    ] {
        let parameters = [("n", elements)];
        let mut instances = vec![("source", "p.Source", &parameters[..])];
        instances.extend(sinks.iter().map(|sink| (&**sink, "p.Blocks", &[][..])));
        let inputs: Vec<String> = sinks.iter().map(|sink| format!("{sink}.In")).collect();
        let wires: Vec<_> = inputs
            .iter()
            .map(|input| ("source.Out", &**input))
            .collect();
        let text = network(&instances, &wires);
        let text = text.replace("\"Top\"", &format!("\"{name}\""));
        place.write(&format!("src/p/{name}.xdf"), &text);
    }
    Host::begin_in(place)
}

/// Loads a network under this name, and waits until it is done.
fn done(host: &Host, network: &str, name: &str, options: &[&str]) -> Value {
    let file = format!("src/p/{network}.xdf");
    let load = ["load", &file, "--name", name, "--no-fuse"];
    host.run(&[&load, options].concat()).succeeds();
    let seen = host.until(name, |a| {
        ["ended", "failed"].map(Value::from).contains(&a["state"])
    });
    assert_eq!(seen["outcome"], "done");
    seen
}

/// The event of its end: in JSON, and as a line of text. It follows the change of state.
fn end_event(host: &Host, name: &str) -> (Value, String) {
    let start = Instant::now();
    let end = loop {
        let events = host.run(&["events", "--json"]).succeeds().out.clone();
        let mut events = events
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap());
        let end = events.find(|e| e["event"] == "ended" && e["application"] == name);
        if end.is_some() {
            break end;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "no event");
    };
    let text = host.run(&["events"]).succeeds().out.clone();
    let line = text
        .lines()
        .find(|l| l.split_whitespace().any(|w| w == "ended") && l.contains(&format!(" {name}")));
    (end.unwrap(), line.unwrap().to_string())
}

#[test]
fn what_a_hosted_or_isolated_application_leaves_is_told() {
    let host = host();
    for (name, options) in [("hosted", &[][..]), ("isolated", &["--isolate"])] {
        let seen = done(&host, "Left", name, options);
        let unconsumed = json!([{
            "from": "source", "from_port": "Out", "to": "sink", "to_port": "In", "elements": 384,
            "reason": "sink waits for 2048 there",
        }]);
        assert_eq!(seen["unconsumed"], unconsumed);
        assert_eq!(seen["unconsumed_omitted"], Value::Null);
        assert_eq!(host.json(&["show", name])["unconsumed"], unconsumed);
        let (event, line) = end_event(&host, name);
        assert_eq!(event["unconsumed"], unconsumed);
        assert_eq!(event["detail"], "done");
        let brief =
            "384 elements were left over in source.Out -> sink.In (sink waits for 2048 there)";
        assert!(line.ends_with(&format!("{name}: done; {brief}")), "{line}");
        let list = host.run(&["list"]).succeeds().out.clone();
        let line = format!("\n  {name}: {brief}\n");
        assert!(list.contains(&line), "{list}");
        let show = host.run(&["show", name]).succeeds().out.clone();
        let lines = format!("\n  done\n\n  elements were left over\n    384 {LEFT}\n");
        assert!(show.contains(&lines), "{show}");
        let unloaded = host.json(&["unload", name]);
        assert_eq!(unloaded["unconsumed"], unconsumed);
    }
}

#[test]
fn an_application_that_leaves_nothing_says_nothing() {
    let host = host();
    for (name, options) in [("hosted", &[][..]), ("isolated", &["--isolate"])] {
        let seen = done(&host, "Even", name, options);
        assert_eq!(seen["unconsumed"], Value::Null);
        let (event, line) = end_event(&host, name);
        assert_eq!(event["unconsumed"], Value::Null);
        assert!(line.ends_with(&format!("{name}: done")), "{line}");
        for shown in [&["list"][..], &["show", name], &["unload", name]] {
            let said = host.run(shown).succeeds().out.clone();
            assert!(!said.contains("left over"), "{said}");
        }
    }
    // What is stopped leaves elements in any case.
    host.many("stopped");
    let unloaded = host.json(&["unload", "stopped", "--now"]);
    assert_eq!(unloaded["outcome"], "stopped");
    assert_eq!(unloaded["unconsumed"], Value::Null);
}

#[test]
fn at_most_sixty_four_channels_are_listed_and_the_others_counted() {
    let host = host();
    for (name, options) in [("hosted", &[][..]), ("isolated", &["--isolate"])] {
        let seen = done(&host, "Wide", name, options);
        let (event, line) = end_event(&host, name);
        for told in [seen, event, host.json(&["show", name])] {
            assert_eq!(told["unconsumed"].as_array().map(Vec::len), Some(64));
            assert_eq!(told["unconsumed_omitted"], 6);
        }
        assert!(line.ends_with(", and more in 69 other channels"), "{line}");
        let show = host.run(&["show", name]).succeeds().out.clone();
        assert_eq!(
            show.matches("    384 elements in source.Out -> ").count(),
            64
        );
        assert!(
            show.contains("    and more in 6 other channels\n"),
            "{show}"
        );
    }
}

#[test]
fn the_description_of_the_interface_has_unconsumed_elements() {
    let host = host();
    let response = host.get("/openapi.json");
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let described: Value = serde_json::from_str(body).unwrap();
    let schemas = &described["components"]["schemas"];
    for name in ["Application", "Event", "Unloaded"] {
        let properties = &schemas[name]["properties"];
        let items = &properties["unconsumed"]["items"]["$ref"];
        assert_eq!(items, "#/components/schemas/UnconsumedChannel");
        assert_eq!(properties["unconsumed_omitted"]["type"], "integer");
    }
    let details = schemas["Details"].to_string();
    assert!(details.contains("schemas/Application\""), "{details}");
    let channel = &schemas["UnconsumedChannel"]["properties"];
    assert!(channel["reason"].is_object() && channel["elements"].is_object());
}
