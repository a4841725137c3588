// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress messages while a host checks and compiles what it is to load. The compiler gets only the CPU time that
//! the workers leave, so on a busy host this can take long.

use crate::common::output::plain;
use levada_host::client::Client;
use levada_host::protocol::HostInfo;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing is said of what takes no longer than this.
const SOON: Duration = Duration::from_secs(3);
/// On a terminal the line is written anew so often, elsewhere another one.
const ON_TERMINAL: Duration = Duration::from_secs(1);
const ELSEWHERE: Duration = Duration::from_secs(30);
/// So long the host may take to say what it does.
const ANSWERS: Duration = Duration::from_secs(1);

/// Until it is dropped.
pub struct Waiting {
    over: Option<Sender<()>>,
    says: Option<JoinHandle<()>>,
}

impl Waiting {
    pub fn for_a_load(client: &Client) -> Waiting {
        let client = client.clone().within(ANSWERS);
        let (over, is_over) = mpsc::channel();
        let says = std::thread::Builder::new().spawn(move || {
            let (began, mut err) = (Instant::now(), std::io::stderr());
            let terminal = err.is_terminal();
            let mut pause = SOON;
            while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = line(&client, began.elapsed());
                let line = plain(&line);
                let _ = match terminal {
                    true => write!(err, "\r{line}\x1b[K"),
                    false => writeln!(err, "{line}"),
                };
                let _ = err.flush();
                pause = if terminal { ON_TERMINAL } else { ELSEWHERE };
            }
            if terminal && began.elapsed() >= SOON {
                let _ = write!(err, "\r\x1b[K");
                let _ = err.flush();
            }
        });
        Waiting {
            over: Some(over),
            // Who has no thread for it waits in silence.
            says: says.ok(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(says) = self.says.take() {
            let _ = says.join();
        }
    }
}

fn line(client: &Client, since: Duration) -> String {
    let seconds = since.as_secs();
    match client.get::<HostInfo>("/host").map(|host| host.preparing) {
        Ok(1..) => format!(
            "checked and compiled for {seconds} s: a compiler has what the workers leave of the cores, and constructors of a C program are waited for"
        ),
        Ok(0) => format!("waiting for {seconds} s: it is compiled, and is being loaded"),
        Err(_) => format!("waiting for {seconds} s: the host does not say what it does"),
    }
}
