// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that talk to a host. Each sends one or two requests over the host's socket and prints the reply as a
//! table, or unchanged with `--json`. This file has the request functions that they share.

mod control;
mod events;
mod format;
mod load;
mod manifest;
mod map;
mod show;
mod stats;

pub use control::{move_actor, pause, resume, unload};
pub use events::events;
pub use format::realtime;
pub use load::{load, replace};
pub use map::map;
pub use show::{list, show, why};
pub use stats::stats;

use crate::cli::AtArgs;
use crate::common::load_progress;
use crate::common::output::{self, Failure};
use levada_host::Kind;
use levada_host::client::{Client, Method, encoded};
use levada_host::http::socket;
use levada_host::protocol::{Failed, REQUEST_TIMEOUT_S};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

type CommandResult = Result<ExitCode, Failure>;

impl From<Failed> for Failure {
    /// Diagnostics of the sources are printed first.
    fn from(failed: Failed) -> Failure {
        say_on!("{}", failed.text);
        Failure {
            help: failed.help,
            admission: failed.admission.map(|a| Box::new(json!(a))),
            kind: failed.kind.unwrap_or(Kind::Internal),
            ..Failure::new(failed.error).found(failed.diagnostics)
        }
    }
}

/// Seconds that a client waits longer than the host does, to receive the host's timeout error; the second is for
/// loads and replacements, where an application may have to end first.
const REPLY_GRACE_S: f64 = 5.0;
const LOAD_GRACE_S: f64 = 15.0;

/// A client for requests that the host answers immediately.
pub fn client(at: &AtArgs) -> Result<Client, Failure> {
    client_with_timeout(at, at.timeout.unwrap_or(REQUEST_TIMEOUT_S))
}

/// A client for requests on which the host itself waits up to the given timeout; its timeout error names what it
/// waited for.
fn client_for_wait(at: &AtArgs) -> Result<Client, Failure> {
    client_with_timeout(at, at.timeout.unwrap_or(REQUEST_TIMEOUT_S) + REPLY_GRACE_S)
}

/// A client for requests that load an application first, which may take `seconds` by itself.
fn client_for_load(at: &AtArgs, seconds: f64) -> Result<Client, Failure> {
    client_with_timeout(at, seconds + LOAD_GRACE_S)
}

fn client_with_timeout(at: &AtArgs, seconds: f64) -> Result<Client, Failure> {
    let client = match &at.socket {
        Some(path) => Client::new(path),
        None => Client::new(&socket::usual_path()?),
    };
    Ok(client.timeout(Duration::from_secs_f64(seconds)))
}

/// Sends a request and prints the reply: as JSON, or formatted by `words`.
fn request<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    client: Client,
    method: Method,
    address: &str,
    body: &Value,
    words: impl FnOnce(&T) -> String,
) -> CommandResult {
    print_reply(at, &client.text(method, address, body)?, words)
}

/// Sends a request for which the host compiles first, and shows progress if this takes long and is not `quiet`.
fn request_load<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    quiet: bool,
    client: Client,
    address: &str,
    body: &Value,
    words: impl FnOnce(&T) -> String,
) -> CommandResult {
    let progress = if quiet {
        None
    } else {
        load_progress::start(&client)
    };
    let text = client.text(Method::POST, address, body);
    drop(progress);
    print_reply(at, &text?, words)
}

fn print_reply<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    text: &str,
    words: impl FnOnce(&T) -> String,
) -> CommandResult {
    if at.json {
        output::line(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer: T = serde_json::from_str(text).map_err(|e| {
        Failure::new(format!("the host sent a reply that cannot be parsed: {e}"))
            .help("is it of another version? --json shows what it says")
    })?;
    output::line(words(&answer).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The query string with the timeout; empty if none is given, so that the host uses its default.
fn timeout_query(at: &AtArgs) -> String {
    let timeout = at.timeout.map(|timeout| format!("?timeout={timeout}"));
    timeout.unwrap_or_default()
}

/// The path of an application, followed by `rest`.
pub fn application_path(name: &str, rest: &str) -> String {
    format!("/applications/{}{rest}", encoded(name))
}
