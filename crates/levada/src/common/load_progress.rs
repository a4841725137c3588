// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress messages while a host checks and compiles what it is to load. The compiler gets only the CPU time that
//! the workers leave, so on a busy host this can take long.

use crate::common::status_line::{Intervals, StatusLine};
use levada_host::client::Client;
use levada_host::protocol::HostInfo;
use std::time::Duration;

const INTERVALS: Intervals = Intervals {
    silent_first: Duration::from_secs(3),
    on_terminal: Duration::from_secs(1),
    in_log: Some(Duration::from_secs(30)),
};
/// Timeout for the status request to the host.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Shows the messages until the result is dropped.
pub fn start(client: &Client) -> Option<StatusLine> {
    let client = client.clone().timeout(REPLY_TIMEOUT);
    StatusLine::start(INTERVALS, move |since| line(&client, since))
}

fn line(client: &Client, since: Duration) -> String {
    let seconds = since.as_secs();
    match client.get::<HostInfo>("/host").map(|host| host.preparing) {
        Ok(1..) => format!(
            "checking and compiling for {seconds} s: the compiler gets the CPU time that the workers leave, and \
             constructors of a C program must return"
        ),
        Ok(0) => {
            format!("waiting for {seconds} s: the application is compiled and is being loaded")
        }
        Err(_) => format!("waiting for {seconds} s: the host does not reply"),
    }
}
