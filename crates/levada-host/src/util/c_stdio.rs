// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flushes standard output of the C library when an application has ended. A loaded program has no process that exits.
//!
//! The flush may block: the reader may not read, or a failed program may hold the stream's lock. So a separate
//! thread does it, and waits for it are short.

use crate::util::lock::lock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

unsafe extern "C" {
    /// The C library's standard output.
    static stdout: *mut libc::FILE;
}

/// The streams of the C library in this process.
#[derive(Debug, Default)]
pub struct CStdio {
    /// The process belongs to one application and is killed after its end: all streams are flushed.
    isolated: bool,
    turn: Arc<Flusher>,
}

#[derive(Debug, Default)]
struct Flusher {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of requests, and of those that are done.
    asked: u64,
    written: u64,
    /// A flush thread is running.
    writes: bool,
}

/// A requested flush.
#[derive(Clone, Copy, Debug)]
pub struct FlushRequest {
    number: u64,
    until: Instant,
}

impl Flusher {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Flushes until there are no more requests.
    fn write(&self, isolated: bool) {
        let mut state = self.state();
        while state.written < state.asked {
            let asked = state.asked;
            drop(state);
            // Flushing all streams locks the list of streams until the last one is written; not in a host of many
            // applications. SAFETY: the C library's stream lives as long as the process.
            unsafe {
                libc::fflush(if isolated {
                    std::ptr::null_mut()
                } else {
                    stdout
                })
            };
            state = self.state();
            state.written = asked;
            self.changed.notify_all();
        }
        state.writes = false;
    }
}

impl CStdio {
    pub fn new(isolated: bool) -> CStdio {
        let turn = Arc::default();
        CStdio { isolated, turn }
    }

    /// Requests a flush of everything printed until now.
    pub fn ask(&self) -> FlushRequest {
        let mut state = self.turn.state();
        state.asked += 1;
        if !state.writes {
            let (turn, isolated) = (self.turn.clone(), self.isolated);
            let thread = std::thread::Builder::new().name("levada/stdio".to_string());
            state.writes = thread.spawn(move || turn.write(isolated)).is_ok();
        }
        // The process of an isolated application ends soon after the report.
        let patience = Duration::from_millis(if self.isolated { 2000 } else { 100 });
        FlushRequest {
            number: state.asked,
            until: Instant::now() + patience,
        }
    }

    /// Whether the flush is done, or has taken too long.
    pub fn is_done(&self, asked: FlushRequest) -> bool {
        self.turn.state().written >= asked.number || Instant::now() >= asked.until
    }

    /// Flushes, if that does not block for long.
    pub fn flush(&self) {
        let asked = self.ask();
        let waits = |s: &mut State| s.written < asked.number;
        let left = asked.until.saturating_duration_since(Instant::now());
        let state = self.turn.state();
        drop(self.turn.changed.wait_timeout_while(state, left, waits));
    }
}
