// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A line on standard error that says what a long operation is doing, printed by a thread until it is dropped. On a
//! terminal the line is updated in place and erased at the end; elsewhere it is printed again from time to time.

use crate::common::output::plain;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub struct Intervals {
    /// Nothing is printed for an operation that is faster.
    pub silent_first: Duration,
    pub on_terminal: Duration,
    /// Elsewhere; `None`: nothing is printed there.
    pub in_log: Option<Duration>,
}

pub struct StatusLine {
    end: Option<Sender<()>>,
    printer: Option<JoinHandle<()>>,
}

impl StatusLine {
    /// `line` gets the time since the start. `None`: nothing is to be printed here, or there is no thread for it.
    pub fn start(
        intervals: Intervals,
        line: impl Fn(Duration) -> String + Send + 'static,
    ) -> Option<StatusLine> {
        let terminal = std::io::stderr().is_terminal();
        let interval = if terminal {
            intervals.on_terminal
        } else {
            intervals.in_log?
        };
        let (end, ended) = mpsc::channel();
        let printer = std::thread::Builder::new().spawn(move || {
            let (began, mut err) = (Instant::now(), std::io::stderr());
            let (mut pause, mut printed) = (intervals.silent_first, false);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = line(began.elapsed());
                let line = plain(&line);
                let _ = if terminal {
                    write!(err, "\r{line}\x1b[K")
                } else {
                    writeln!(err, "{line}")
                };
                let _ = err.flush();
                (pause, printed) = (interval, true);
            }
            if terminal && printed {
                let _ = write!(err, "\r\x1b[K");
                let _ = err.flush();
            }
        });
        Some(StatusLine {
            end: Some(end),
            printer: Some(printer.ok()?),
        })
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(printer) = self.printer.take() {
            let _ = printer.join();
        }
    }
}
