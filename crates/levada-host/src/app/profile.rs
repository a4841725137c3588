// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The profile of a compiled network: what a run measured, stored next to the object file. The next run of the same
//! network uses it for its initial placement and for admission. A damaged file is treated as missing.

use levada_files::read_private;
use levada_map::{Graph, Link};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Maximum size of a file: some bytes for each actor and channel.
const MAX_BYTES: u64 = 64 << 20;

/// A profile with less CPU time is not significant.
const ENOUGH_NS: f64 = 20e6;

/// Measurements of a run, until its end or until now.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub graph: Graph,
    /// Of each actor.
    pub firings: Vec<f64>,
    /// Of each link, in elements.
    pub capacity: Vec<f64>,
    /// The unit and number of units it has counted, such as frames.
    pub units_done: Option<(String, f64)>,
    /// CPU demand in cores of a self-timed application.
    pub self_paced_demand: Option<f64>,
}

impl Profile {
    /// Whether the profile is significant. If nothing has fired, the CPU time was spent waiting for input.
    pub fn is_enough(&self) -> bool {
        let fired = self.firings.iter().any(|f| *f > 0.0);
        fired && self.graph.busy.iter().sum::<f64>() >= ENOUGH_NS
    }
}

fn file(object: &Path) -> PathBuf {
    object.with_extension("measured")
}

/// The stored profile of the compiled network `object` with these links; their bytes are ignored.
pub fn load(object: &Path, actors: usize, mut links: Vec<Link>) -> Option<Profile> {
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
    let measured = Profile {
        graph: Graph {
            busy,
            links,
            ..Graph::default()
        },
        firings,
        capacity,
        units_done: unit.map(str::to_string).zip(done),
        self_paced_demand: paced.filter(|p| p.is_finite() && *p >= 0.0),
    };
    Some(measured).filter(Profile::is_enough)
}

/// Stores a profile if it is significant. One with counted units is not overwritten by one without. A failed write is
/// ignored: this is a cache.
pub fn save(object: &Path, all: &Profile) {
    let graph = &all.graph;
    if !all.is_enough() {
        return;
    }
    let there = || load(object, graph.busy.len(), graph.links.clone());
    if all.units_done.is_none() && there().is_some_and(|there| there.units_done.is_some()) {
        return;
    }
    let bytes: Vec<f64> = graph.links.iter().map(|l| l.bytes).collect();
    let (unit, done) = all.units_done.clone().unzip();
    let text = json!({
        "busy": graph.busy,
        "firings": all.firings,
        "bytes": bytes,
        "capacity": all.capacity,
        "unit": unit,
        "done": done,
        "paced": all.self_paced_demand,
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
    fn stored_measurements_are_read_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("levada-measured-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let object = folder.join("network.so");
        let graph = Profile {
            graph: Graph {
                busy: vec![3e7, 1e7],
                links: link(64.0),
                ..Graph::default()
            },
            firings: vec![9.0, 3.0],
            capacity: vec![16.0],
            units_done: Some(("frames".to_string(), 3.0)),
            self_paced_demand: Some(0.25),
        };
        assert_eq!(load(&object, 2, link(0.0)), None);
        save(&object, &graph);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        assert_eq!(load(&object, 3, link(0.0)), None);
        assert_eq!(load(&object, 2, Vec::new()), None);
        // A run that is too short leaves the stored profile.
        let short = Profile {
            graph: Graph {
                busy: vec![1.0, 2.0],
                links: link(1.0),
                ..Graph::default()
            },
            units_done: None,
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
        uncounted.units_done = None;
        save(&object, &uncounted);
        assert_eq!(load(&object, 2, link(0.0)), Some(graph.clone()));
        uncounted.units_done = Some(("frames".to_string(), 1.0));
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
