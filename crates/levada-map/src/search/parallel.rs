// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A parallel map over the cores of this machine. The result does not depend on their number.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

/// Maps all items in order, in parallel or one after the other.
pub(crate) fn map_each<T: Send, R: Send>(
    all: Vec<T>,
    at_once: bool,
    look: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if at_once {
        parallel_map(all, look)
    } else {
        all.into_iter().map(look).collect()
    }
}

/// Maps all items in parallel and returns the results in order.
pub(crate) fn parallel_map<T: Send, R: Send>(all: Vec<T>, look: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(all.len());
    let waiting = Mutex::new(all.into_iter().enumerate());
    let next = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    };
    let looks = || -> Vec<(usize, R)> {
        std::iter::from_fn(next)
            .map(|(number, one)| (number, look(one)))
            .collect()
    };
    let mut seen = scope(|scope| {
        let begun: Vec<_> = (1..threads).map(|_| scope.spawn(looks)).collect();
        let mut seen = looks();
        for thread in begun {
            seen.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        seen
    });
    seen.sort_by_key(|(number, _)| *number);
    seen.into_iter().map(|(_, said)| said).collect()
}
