// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run measured, kept beside the compiled network: where the next run of the same network
//! puts its actors at first, and what is expected of it beside others.
//!
//! Whatever is wrong with such a file is as if there were none.

use levada_files::read_private;
use levada_map::{Graph, Link};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Some bytes for each actor and channel.
const MAX_BYTES: u64 = 64 << 20;

/// A shorter run says too little.
const ENOUGH_NS: f64 = 20e6;

/// What a run did, as a whole or until it was stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub graph: Graph,
    /// Of each actor.
    pub firings: Vec<f64>,
    /// Of each link, in elements.
    pub capacity: Vec<f64>,
    /// What it counted, such as frames.
    pub done: Option<(String, f64)>,
    /// The cores that it took, where it did not go as fast as it could, and nothing but itself was why.
    pub paced: Option<f64>,
}

impl Measured {
    /// Whether that says anything: where nothing has fired, what it took was to wait for input.
    pub fn is_enough(&self) -> bool {
        let fired = self.firings.iter().any(|f| *f > 0.0);
        fired && self.graph.busy.iter().sum::<f64>() >= ENOUGH_NS
    }
}

fn file(object: &Path) -> PathBuf {
    object.with_extension("measured")
}

/// What is known of the compiled network `object` with these links, whose bytes are not looked at.
pub fn load(object: &Path, actors: usize, mut links: Vec<Link>) -> Option<Measured> {
    let text = String::from_utf8(read_private(&file(object), MAX_BYTES).ok()?).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let numbers = |name: &str| -> Option<Vec<f64>> {
        let all = value.get(name)?.as_array()?.iter();
        all.map(|x| x.as_f64().filter(|x| x.is_finite() && *x >= 0.0))
            .collect()
    };
    let (busy, firings) = (numbers("busy")?, numbers("firings")?);
    let (bytes, capacity) = (numbers("bytes")?, numbers("capacity")?);
    if [busy.len(), firings.len()] != [actors; 2]
        || [bytes.len(), capacity.len()] != [links.len(); 2]
    {
        return None;
    }
    for (link, bytes) in links.iter_mut().zip(bytes) {
        link.bytes = bytes;
    }
    let unit = value.get("unit").and_then(Value::as_str);
    let done = value.get("done").and_then(Value::as_f64);
    let done = done.filter(|d| d.is_finite() && *d > 0.0);
    let paced = value.get("paced").and_then(Value::as_f64);
    let measured = Measured {
        graph: Graph {
            busy,
            links,
            ..Graph::default()
        },
        firings,
        capacity,
        done: unit.map(str::to_string).zip(done),
        paced: paced.filter(|p| p.is_finite() && *p >= 0.0),
    };
    Some(measured).filter(Measured::is_enough)
}

/// Keeps what was measured, if it was long enough. One that has counted something knows more than one that was
/// stopped before it had. A cache that cannot be written is no failure.
pub fn save(object: &Path, all: &Measured) {
    let graph = &all.graph;
    if !all.is_enough() {
        return;
    }
    let there = || load(object, graph.busy.len(), graph.links.clone());
    if all.done.is_none() && there().is_some_and(|there| there.done.is_some()) {
        return;
    }
    let bytes: Vec<f64> = graph.links.iter().map(|l| l.bytes).collect();
    let (unit, done) = all.done.clone().unzip();
    let text = json!({
        "busy": graph.busy,
        "firings": all.firings,
        "bytes": bytes,
        "capacity": all.capacity,
        "unit": unit,
        "done": done,
        "paced": all.paced,
    });
    let text = text.to_string();
    let path = file(object);
    let new = path.with_extension(format!("measured-{}", std::process::id()));
    if std::fs::write(&new, text).is_err() || std::fs::rename(&new, &path).is_err() {
        let _ = std::fs::remove_file(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(bytes: f64) -> Vec<Link> {
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
                links: link(64.0),
                ..Graph::default()
            },
            firings: vec![9.0, 3.0],
            capacity: vec![16.0],
            done: Some(("frames".to_string(), 3.0)),
            paced: Some(0.25),
        };
        assert_eq!(load(&object, 2, link(0.0)), None);
        save(&object, &graph);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        assert_eq!(load(&object, 3, link(0.0)), None);
        assert_eq!(load(&object, 2, Vec::new()), None);
        // Too short a run leaves what there is.
        let short = Measured {
            graph: Graph {
                busy: vec![1.0, 2.0],
                links: link(1.0),
                ..Graph::default()
            },
            done: None,
            ..graph.clone()
        };
        save(&object, &short);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        // So does one in which nothing has fired.
        let mut waited = graph.clone();
        waited.firings = vec![0.0, 0.0];
        save(&object, &waited);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        // And one that was stopped before it had counted anything.
        let mut uncounted = graph.clone();
        uncounted.done = None;
        save(&object, &uncounted);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        uncounted.done = Some(("frames".to_string(), 1.0));
        save(&object, &uncounted);
        assert_eq!(load(&object, 2, link(0.0)), Some(uncounted));
        for bad in [
            "",
            "{",
            "[]",
            r#"{"busy":[3e7,-1],"bytes":[1],"firings":[1,1],"capacity":[1]}"#,
            r#"{"busy":[3e7,"x"],"bytes":[1],"firings":[1,1],"capacity":[1]}"#,
            r#"{"busy":[3e7,1],"bytes":[1],"firings":[1],"capacity":[1]}"#,
            r#"{"busy":[3e7,1],"bytes":[1]}"#,
        ] {
            std::fs::write(file(&object), bad).unwrap();
            assert_eq!(load(&object, 2, link(0.0)), None, "{bad}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
