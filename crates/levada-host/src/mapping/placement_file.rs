// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a placement file (TOML, or an XML mapping of Orcc) as pins of a network's actors.

use levada_map::io::{NamedPlacement, read_placement};
use levada_map::{Actor, App, Mix, Problem};
use levada_sys::Network;

/// The pins of the application `name`, from the text of a placement or of a mapping of Orcc. If the text does not
/// contain that name, the application may stand there by its network's class name, as in a recorded placement. Entries
/// of other applications are ignored if `others`, else they are an error.
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
        |named: &NamedPlacement, owner| named.iter().any(|(app, ..)| app.as_deref() == Some(owner));
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
            reserved_rate: None,
            actors: network.actor_names().into_iter().map(actor).collect(),
            channels: Vec::new(),
            cpus: None,
            cost_profile: None,
        }],
        exclusive: Vec::new(),
    };
    mix.pin(&named, workers)?;
    Ok(mix.apps[0].actors.iter().map(|a| a.pin).collect())
}
