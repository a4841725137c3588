// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run measured, kept beside the compiled network: where the next run of the same network
//! puts its actors at first.
//!
//! Only a first guess is at stake, so whatever is wrong with such a file is as if there were none.

use levada_map::{Graph, Link};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A shorter run says too little.
const ENOUGH_NS: f64 = 20e6;

/// What a whole run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub graph: Graph,
    /// What it counted, such as frames.
    pub done: Option<(String, f64)>,
}

fn file(object: &Path) -> PathBuf {
    object.with_extension("measured")
}

/// What is known of the compiled network `object` with these links, whose bytes are not looked at.
pub fn load(object: &Path, actors: usize, mut links: Vec<Link>) -> Option<Measured> {
    let text = std::fs::read_to_string(file(object)).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let numbers = |name: &str| -> Option<Vec<f64>> {
        let all = value.get(name)?.as_array()?.iter();
        all.map(|x| x.as_f64().filter(|x| x.is_finite() && *x >= 0.0))
            .collect()
    };
    let (busy, bytes) = (numbers("busy")?, numbers("bytes")?);
    if busy.len() != actors || bytes.len() != links.len() || busy.iter().sum::<f64>() < ENOUGH_NS {
        return None;
    }
    for (link, bytes) in links.iter_mut().zip(bytes) {
        link.bytes = bytes;
    }
    let unit = value.get("unit").and_then(Value::as_str);
    let done = value.get("done").and_then(Value::as_f64);
    let done = done.filter(|d| d.is_finite() && *d > 0.0);
    Some(Measured {
        graph: Graph {
            busy,
            links,
            ..Graph::default()
        },
        done: unit.map(str::to_string).zip(done),
    })
}

/// Keeps what was measured, if it was long enough. A cache that cannot be written is no failure.
pub fn save(object: &Path, all: &Measured) {
    let graph = &all.graph;
    if graph.busy.iter().sum::<f64>() < ENOUGH_NS {
        return;
    }
    let bytes: Vec<f64> = graph.links.iter().map(|l| l.bytes).collect();
    let (unit, done) = all.done.clone().unzip();
    let text = json!({"busy": graph.busy, "bytes": bytes, "unit": unit, "done": done}).to_string();
    let path = file(object);
    let new = path.with_extension(format!("measured-{}", std::process::id()));
    if std::fs::write(&new, text).is_err() || std::fs::rename(&new, &path).is_err() {
        let _ = std::fs::remove_file(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(bytes: f64) -> Vec<Link> {
        vec![Link {
            from: 0,
            to: 1,
            bytes,
        }]
    }

    #[test]
    fn what_was_measured_is_found_again_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("levada-measured-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let object = folder.join("network.so");
        let graph = Measured {
            graph: Graph {
                busy: vec![3e7, 1e7],
                links: links(64.0),
                ..Graph::default()
            },
            done: Some(("frames".to_string(), 3.0)),
        };
        assert_eq!(load(&object, 2, links(0.0)), None);
        save(&object, &graph);
        assert_eq!(load(&object, 2, links(0.0)), Some(graph.clone()));
        assert_eq!(load(&object, 3, links(0.0)), None);
        assert_eq!(load(&object, 2, Vec::new()), None);
        // Too short a run leaves what there is.
        let short = Measured {
            graph: Graph {
                busy: vec![1.0, 2.0],
                links: links(1.0),
                ..Graph::default()
            },
            done: None,
        };
        save(&object, &short);
        assert_eq!(load(&object, 2, links(0.0)), Some(graph));
        for bad in [
            "",
            "{",
            "[]",
            r#"{"busy":[3e7,-1],"bytes":[1]}"#,
            r#"{"busy":[3e7,"x"],"bytes":[1]}"#,
        ] {
            std::fs::write(file(&object), bad).unwrap();
            assert_eq!(load(&object, 2, links(0.0)), None, "{bad}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
