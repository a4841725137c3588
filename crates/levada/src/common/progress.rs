// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The progress line of a running application: elapsed time, work done, and how busy the cores are.

use crate::common::output::{grouped, unit_of};
use levada_sys::{App, Runtime};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    runtime: Runtime,
    start: Instant,
    last: Instant,
    busy: Vec<u64>,
    done: u64,
    /// On a terminal the line is updated; elsewhere another line is printed periodically.
    terminal: bool,
    shown: bool,
}

impl Progress {
    pub fn new(runtime: &Runtime) -> Progress {
        let now = Instant::now();
        let mut progress = Progress {
            runtime: runtime.clone(),
            start: now,
            last: now,
            busy: Vec::new(),
            done: 0,
            terminal: std::io::stderr().is_terminal(),
            shown: false,
        };
        progress.busy = progress.busy_now();
        progress
    }

    fn busy_now(&self) -> Vec<u64> {
        (0..self.runtime.workers())
            .map(|w| self.runtime.worker_counters(w).map_or(0, |c| c.busy_ns))
            .collect()
    }

    pub fn tick(&mut self, app: &App) {
        let every = if self.terminal {
            Duration::from_millis(190)
        } else {
            Duration::from_secs(1)
        };
        let elapsed = self.last.elapsed();
        if elapsed < every {
            return;
        }
        let mut line = format!("{:7.1} s", self.start.elapsed().as_secs_f64());
        if let Some((unit, done)) = app.progress() {
            let rate = done.saturating_sub(self.done) as f64 / elapsed.as_secs_f64();
            line += &format!("  {} {}  {rate:.1}/s", grouped(done), unit_of(done, &unit));
            self.done = done;
        }
        if let Some((taken, total)) = app.input_progress()
            && total > 0
        {
            let percent = 100.0 * taken as f64 / total as f64;
            line += &format!("  input {percent:3.0} %");
        }
        let busy = self.busy_now();
        line += "  cores";
        for (now, before) in busy.iter().zip(&self.busy).take(16) {
            let share = now.saturating_sub(*before) as f64 / elapsed.as_nanos() as f64;
            line += &format!(" {:3.0}%", (share * 100.0).min(100.0));
        }
        if busy.len() > 16 {
            line += " ...";
        }
        self.busy = busy;
        self.last = Instant::now();
        let mut err = std::io::stderr().lock();
        let _ = if self.terminal {
            write!(err, "\r{line}\x1b[K")
        } else {
            writeln!(err, "{line}")
        };
        let _ = err.flush();
        self.shown = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && self.shown {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[K");
            let _ = err.flush();
        }
    }
}
