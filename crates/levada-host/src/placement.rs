// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A placement given back: the cores that a file gives to the actors of a network.

use levada_map::text::read_placement;
use levada_map::{Actor, App, Mix, Problem};
use levada_sys::Network;

/// The pins of the application `name`, by the text of a placement or of one of Orcc's mappings. What the
/// text says of others is theirs, if `others`; else it is a mistake.
pub fn pins(
    text: &str,
    name: &str,
    network: &Network,
    workers: usize,
    others: bool,
) -> Result<Vec<Option<u32>>, Problem> {
    let mut named = read_placement(text)?;
    if others && named.iter().any(|(app, _, _)| app.as_deref() == Some(name)) {
        named.retain(|(app, _, _)| app.as_deref().is_none_or(|app| app == name));
    }
    let actor = |name: String| Actor {
        name,
        time: 1.0,
        firings: 1.0,
        pin: None,
    };
    let mut mix = Mix {
        apps: vec![App {
            name: name.to_string(),
            unit: String::new(),
            priority: 0,
            promise: None,
            actors: network.actor_names().into_iter().map(actor).collect(),
            channels: Vec::new(),
            course: None,
        }],
        exclusive: Vec::new(),
    };
    mix.pin(&named, workers)?;
    Ok(mix.apps[0].actors.iter().map(|a| a.pin).collect())
}
