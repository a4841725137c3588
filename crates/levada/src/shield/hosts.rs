// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks hosts that use a core to vacate it for the shield. A host moves its actors away within the longest firing,
//! which a sweep over threads cannot do, and takes the core back when the shield is lowered.

use crate::common::output;
use levada_cores::CoreSet;
use levada_host::Kind;
use levada_host::client::{Client, Method};
use levada_host::http::socket::usual_path;
use levada_host::protocol::CoreReservation;
use levada_host::protocol::{HostInfo, Worker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout for a host to vacate a core: a firing may be in progress on it.
const VACATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for other requests to a host.
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// Reservations of cores, until this is dropped or the process ends.
pub struct VacatedCores {
    cores: Vec<(Client, u32)>,
    said: Vec<String>,
}

impl VacatedCores {
    /// Which hosts have vacated which cores, a sentence for each.
    pub fn said(&self) -> &[String] {
        &self.said
    }
}

/// A host with a worker on a core.
#[derive(Clone, Debug)]
pub struct CoreUse {
    pub process: u32,
    /// The number of its actors on the core.
    pub actors: usize,
}

/// By core: the hosts that have a worker there and have not vacated it.
pub fn at_work() -> BTreeMap<u32, CoreUse> {
    let mut all = BTreeMap::new();
    for socket in sockets() {
        let client = Client::new(&socket).timeout(REPLY_TIMEOUT);
        let (Ok(host), Ok(workers)) = (
            client.get::<HostInfo>("/host"),
            client.get::<Vec<Worker>>("/map"),
        ) else {
            continue;
        };
        for worker in workers
            .iter()
            .filter(|w| w.available || !w.actor.is_empty())
        {
            let works = CoreUse {
                process: host.pid,
                actors: worker.actor.len(),
            };
            if let Ok(core) = u32::try_from(worker.cpu) {
                all.insert(core, works);
            }
        }
    }
    all
}

fn at(core: u32) -> String {
    format!("/cores/{core}/reservation")
}

/// The socket of the user's own host; for root those of all users.
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

pub fn leave(cores: &CoreSet) -> VacatedCores {
    let mut left = Vec::new();
    let mut said = Vec::new();
    for socket in sockets() {
        let client = Client::new(&socket).timeout(VACATE_TIMEOUT + REPLY_TIMEOUT);
        for core in cores.iter() {
            let asked =
                json!({ "process": std::process::id(), "timeout": VACATE_TIMEOUT.as_secs_f64() });
            match client.call::<CoreReservation>(Method::POST, &at(core), &asked) {
                Ok(away) => {
                    left.push((client.clone(), core));
                    // The core is vacated even if this request fails.
                    let host: Option<HostInfo> = client.get("/host").ok();
                    let process = host.map(|h| format!(" (process {})", h.pid));
                    let (process, worker) = (process.unwrap_or_default(), away.worker);
                    said.push(format!(
                        "the host at {}{process} has left core {core}: what was on its worker {worker} is on \
                         its others, until the shield ends",
                        socket.display()
                    ));
                }
                // The host does not use this core.
                Err(e) if e.kind == Some(Kind::Unknown) => {}
                Err(e) => {
                    let what = format!("the host at {} stays: {}", socket.display(), e.error);
                    output::error(&what, e.help.as_deref());
                }
            }
        }
    }
    VacatedCores { cores: left, said }
}

impl Drop for VacatedCores {
    fn drop(&mut self) {
        for (client, core) in &self.cores {
            // An error means that the host is gone or another client holds the reservation; there is nothing to
            // release then.
            let _ = client.call::<CoreReservation>(Method::DELETE, &at(*core), &Value::Null);
        }
    }
}
