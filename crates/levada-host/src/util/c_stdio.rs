// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What C code has printed, and the C library has not written yet: it writes that at the end of a process, and a
//! program that is loaded into a host has no process that ends. So it is written when its application has ended.
//!
//! Who reads it may not read, or a program may have failed with the stream in hand: then to write it lasts. So a
//! thread of its own does that, and nobody waits for it for long.

use crate::util::lock::lock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

unsafe extern "C" {
    /// The C library's.
    static stdout: *mut libc::FILE;
}

/// The streams of the C library in this process.
#[derive(Debug, Default)]
pub struct Stdio {
    /// This process is one application's, and is killed when that has ended: all of its streams count.
    isolated: bool,
    turn: Arc<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How often it was asked to write, and which of these has been done.
    asked: u64,
    written: u64,
    /// A thread does it.
    writes: bool,
}

/// What somebody has asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    number: u64,
    until: Instant,
}

impl Turn {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Until nobody asks any more.
    fn write(&self, isolated: bool) {
        let mut state = self.state();
        while state.written < state.asked {
            let asked = state.asked;
            drop(state);
            // All at once keeps everybody from opening a file until the last is written: not in a host of many.
            // SAFETY: the C library's own stream lives as long as the process.
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

impl Stdio {
    pub fn new(isolated: bool) -> Stdio {
        let turn = Arc::default();
        Stdio { isolated, turn }
    }

    /// Asks that all that has been printed be written.
    pub fn ask(&self) -> Asked {
        let mut state = self.turn.state();
        state.asked += 1;
        if !state.writes {
            let (turn, isolated) = (self.turn.clone(), self.isolated);
            let thread = std::thread::Builder::new().name("levada/stdio".to_string());
            state.writes = thread.spawn(move || turn.write(isolated)).is_ok();
        }
        // An application's own process goes as soon as its end is told.
        let patience = Duration::from_millis(if self.isolated { 2000 } else { 100 });
        Asked {
            number: state.asked,
            until: Instant::now() + patience,
        }
    }

    /// Whether it has been, or that takes longer than anybody waits for it.
    pub fn is_done(&self, asked: Asked) -> bool {
        self.turn.state().written >= asked.number || Instant::now() >= asked.until
    }

    /// Has all written, if that does not last.
    pub fn flush(&self) {
        let asked = self.ask();
        let waits = |s: &mut State| s.written < asked.number;
        let left = asked.until.saturating_duration_since(Instant::now());
        let state = self.turn.state();
        drop(self.turn.changed.wait_timeout_while(state, left, waits));
    }
}
