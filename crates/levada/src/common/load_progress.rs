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

/// Nothing is printed for a load that is faster.
const SILENT_FIRST: Duration = Duration::from_secs(3);
/// Interval at which the line is updated on a terminal, and at which another line is printed elsewhere.
const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(30);
/// Timeout for the status request to the host.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints progress until it is dropped.
pub struct LoadProgress {
    end: Option<Sender<()>>,
    printer: Option<JoinHandle<()>>,
}

impl LoadProgress {
    pub fn start(client: &Client) -> LoadProgress {
        let client = client.clone().timeout(REPLY_TIMEOUT);
        let (end, ended) = mpsc::channel();
        let printer = std::thread::Builder::new().spawn(move || {
            let (began, mut err) = (Instant::now(), std::io::stderr());
            let terminal = err.is_terminal();
            let mut pause = SILENT_FIRST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = line(&client, began.elapsed());
                let line = plain(&line);
                let _ = if terminal {
                    write!(err, "\r{line}\x1b[K")
                } else {
                    writeln!(err, "{line}")
                };
                let _ = err.flush();
                pause = if terminal {
                    TERMINAL_INTERVAL
                } else {
                    LOG_INTERVAL
                };
            }
            if terminal && began.elapsed() >= SILENT_FIRST {
                let _ = write!(err, "\r\x1b[K");
                let _ = err.flush();
            }
        });
        LoadProgress {
            end: Some(end),
            // Without a thread nothing is printed.
            printer: printer.ok(),
        }
    }
}

impl Drop for LoadProgress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(printer) = self.printer.take() {
            let _ = printer.join();
        }
    }
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
