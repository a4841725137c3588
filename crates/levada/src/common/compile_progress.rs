// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The progress line of a compilation, on a terminal: how many C files are compiled, and for how long it has run.

use crate::common::status_line::{Intervals, StatusLine};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const INTERVALS: Intervals = Intervals {
    silent_first: Duration::from_millis(300),
    on_terminal: Duration::from_millis(200),
    in_log: None,
};

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

/// Shows the line until the result is dropped.
pub fn start() -> Option<StatusLine> {
    report(0, 0);
    StatusLine::start(INTERVALS, line)
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
