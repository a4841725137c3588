// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts that work on a core leave it to the shield: what runs there moves away within its longest firing,
//! which no sweep of threads can do, and comes back with the core.

use crate::output;
use levada_cores::CoreSet;
use levada_host::Kind;
use levada_host::api::away::Away;
use levada_host::api::serve::usual_path;
use levada_host::client::{Client, Method};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// So long a host may take: what it has there may be in a firing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Until this goes, or the process ends.
pub struct Left(Vec<(Client, u32)>);

fn at(core: u32) -> String {
    format!("/cores/{core}/away")
}

/// The caller's own host; for root everybody's.
fn sockets() -> Vec<PathBuf> {
    let named = std::env::var_os("LEVADA_HOST").map(PathBuf::from);
    let mut all: Vec<PathBuf> = named.or_else(|| usual_path().ok()).into_iter().collect();
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } == 0 {
        let users = std::fs::read_dir("/run/user")
            .into_iter()
            .flatten()
            .flatten();
        all.extend(users.map(|user| user.path().join("levada/host.sock")));
    }
    all.retain(|socket| socket.exists());
    all
}

pub fn leave(cores: &CoreSet) -> Left {
    let mut left = Vec::new();
    for socket in sockets() {
        let client = Client::new(&socket).within(PATIENCE);
        for core in cores.iter() {
            let asked = json!({ "process": std::process::id() });
            match client.call::<Away>(Method::POST, &at(core), &asked) {
                Ok(_) => left.push((client.clone(), core)),
                // It is not there.
                Err(e) if e.kind == Some(Kind::Unknown) => {}
                Err(e) => {
                    let what = format!("the host at {} stays: {}", socket.display(), e.error);
                    output::error(&what, e.help.as_deref());
                }
            }
        }
    }
    Left(left)
}

impl Drop for Left {
    fn drop(&mut self) {
        for (client, core) in &self.0 {
            // Gone, or somebody else has asked for it: then there is nothing to be taken back.
            let _ = client.call::<Away>(Method::DELETE, &at(*core), &Value::Null);
        }
    }
}
