// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The progress line of a compilation, on a terminal: how many C files are compiled, and for how long it has run.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing is shown for a compilation that is faster.
const SILENT_FIRST: Duration = Duration::from_millis(300);
/// Interval at which the line is updated.
const INTERVAL: Duration = Duration::from_millis(200);

static DONE: AtomicUsize = AtomicUsize::new(0);
static ALL: AtomicUsize = AtomicUsize::new(0);

/// For `levada_cal::compile::Options::progress`.
pub fn report(done: usize, all: usize) {
    ALL.store(all, Ordering::Relaxed);
    // Several threads report, in any order.
    match done {
        0 => DONE.store(0, Ordering::Relaxed),
        _ => drop(DONE.fetch_max(done, Ordering::Relaxed)),
    }
}

/// Shows the line until it is dropped, and then erases it.
pub struct CompileProgress {
    end: Option<Sender<()>>,
    printer: Option<JoinHandle<()>>,
}

impl CompileProgress {
    /// None if standard error is no terminal.
    pub fn start() -> Option<CompileProgress> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        report(0, 0);
        let (end, ended) = mpsc::channel();
        let printer = std::thread::Builder::new().spawn(move || {
            let (began, mut err) = (Instant::now(), std::io::stderr());
            let mut pause = SILENT_FIRST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let _ = write!(err, "\r{}\x1b[K", line(began.elapsed()));
                let _ = err.flush();
                pause = INTERVAL;
            }
            if pause == INTERVAL {
                let _ = write!(err, "\r\x1b[K");
                let _ = err.flush();
            }
        });
        Some(CompileProgress {
            end: Some(end),
            // Without a thread nothing is shown.
            printer: printer.ok(),
        })
    }
}

impl Drop for CompileProgress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(printer) = self.printer.take() {
            let _ = printer.join();
        }
    }
}

fn line(since: Duration) -> String {
    let (done, all) = (DONE.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed));
    let what = match all {
        0 => "making C".to_string(),
        _ if done == all => "linking".to_string(),
        _ => format!("compiling, {done} of {all} C files"),
    };
    format!("{:7.1} s  {what}", since.as_secs_f64())
}
