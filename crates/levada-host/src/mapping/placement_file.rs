// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A placement given back: the cores that a file gives to the actors of a network.

use levada_map::io::{NamedPlacement, read_placement};
use levada_map::{Actor, App, Mix, Problem};
use levada_sys::Network;

/// The pins of the application `name`, by the text of a placement or of one of Orcc's mappings. Where the text does not
/// know that name, it may call it by its network, `class`, as one that a run has recorded does. What the
/// text says of others is theirs, if `others`; else it is a mistake.
pub fn pins(
    text: &str,
    name: &str,
    class: &str,
    network: &Network,
    workers: usize,
    others: bool,
) -> Result<Vec<Option<u32>>, Problem> {
    let mut named = read_placement(text)?;
    let knows =
        |named: &NamedPlacement, who| named.iter().any(|(app, ..)| app.as_deref() == Some(who));
    if !knows(&named, name) {
        for (app, ..) in &mut named {
            if app.as_deref() == Some(class) {
                *app = Some(name.to_string());
            }
        }
    }
    if others && knows(&named, name) {
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
            share: None,
            cost_profile: None,
        }],
        exclusive: Vec::new(),
    };
    mix.pin(&named, workers)?;
    Ok(mix.apps[0].actors.iter().map(|a| a.pin).collect())
}
