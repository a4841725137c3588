// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that a key sends to the host, and the messages that report their results.

use crate::client::application_path;
use levada_host::State;
use levada_host::client::{Client, Method};
use levada_host::protocol::{Application, Failed, MoveRequest, Unloaded};
use serde_json::{Value, json};

/// A request that a key sends.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Pause or resume.
    Turn(String, State),
    /// Move an actor to a worker and pin it; without a worker, unpin it.
    Move(String, String, Option<u32>),
    /// Unload; whether at once.
    Unload(String, bool),
}

impl Action {
    /// The text until the reply arrives.
    pub fn words(&self) -> String {
        match self {
            Action::Turn(name, state) if goes_on(*state) => format!("{name} is to go on"),
            Action::Turn(name, _) => format!("{name} is to be paused"),
            Action::Move(name, actor, Some(worker)) => {
                format!("{name}.{actor} is to be on worker {worker}")
            }
            Action::Move(name, actor, None) => format!("{name}.{actor} is to be free"),
            Action::Unload(name, _) => format!("{name} is to be unloaded"),
        }
    }

    /// The text of its result.
    pub fn done(&self, client: &Client) -> String {
        match self.ask(client) {
            Ok(said) => said,
            Err(failed) => match failed.help {
                Some(help) => format!("{}\nhelp: {help}", failed.error),
                None => failed.error,
            },
        }
    }

    fn ask(&self, client: &Client) -> Result<String, Failed> {
        let post = |address: String, body: &Value| -> Result<Application, Failed> {
            client.call(Method::POST, &address, body)
        };
        Ok(match self {
            Action::Turn(name, state) if goes_on(*state) => {
                post(application_path(name, "/resume?timeout=1"), &Value::Null)?;
                format!("{name} goes on")
            }
            Action::Turn(name, _) => {
                post(application_path(name, "/pause?timeout=1"), &Value::Null)?;
                format!("{name} is paused")
            }
            Action::Move(name, actor, worker) => {
                let to = MoveRequest {
                    actor: actor.clone(),
                    worker: *worker,
                    unpin: worker.is_none(),
                };
                post(application_path(name, "/move"), &json!(to))?;
                match worker {
                    Some(worker) => {
                        format!("{name}.{actor} is on worker {worker}, and stays there")
                    }
                    None => format!("{name}.{actor} is where the mapper puts it"),
                }
            }
            Action::Unload(name, now) => {
                // A longer operation continues in the host.
                let how = if *now {
                    "?now=true&timeout=1"
                } else {
                    "?timeout=0.2"
                };
                let gone: Unloaded =
                    client.call(Method::DELETE, &application_path(name, how), &Value::Null)?;
                format!("{} is unloaded: {}", gone.name, gone.outcome)
            }
        })
    }
}

fn goes_on(state: State) -> bool {
    matches!(state, State::Paused | State::Loaded | State::Quarantined)
}
