// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ctrl-C and its kin: the first one asks the application to stop, the second one ends the process.
//! So does a reader of the output that has gone: what is half written beside it is removed, too.

use levada_sys::App;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

#[derive(Debug)]
pub struct Interrupt {
    signal: Arc<AtomicI32>,
    handle: Handle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Interrupt {
    /// Stops `app` when a signal comes.
    pub fn watch(app: Arc<App>) -> std::io::Result<Interrupt> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGPIPE])?;
        let handle = signals.handle();
        let signal = Arc::new(AtomicI32::new(0));
        let seen = signal.clone();
        let thread = std::thread::Builder::new()
            .name("signals".to_string())
            .spawn(move || {
                let mut stopping = None;
                for number in signals.forever() {
                    if seen.swap(number, Ordering::Relaxed) != 0 {
                        if number == SIGPIPE {
                            continue; // Each print to nobody brings another.
                        }
                        // Asked twice: whatever hangs, hangs no longer.
                        std::process::exit(128 + number);
                    }
                    // Stopping waits for the actions that run; the next signal must not.
                    let app = app.clone();
                    stopping = Some(std::thread::spawn(move || app.stop()));
                }
                // The application is let go by all before its natives finish their files.
                if let Some(thread) = stopping {
                    let _ = thread.join();
                }
            })?;
        Ok(Interrupt {
            signal,
            handle,
            thread: Some(thread),
        })
    }

    /// The signal that came, if any.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|s| *s != 0)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // SAFETY: as it was before; nothing of the application runs any more.
        unsafe { libc::signal(SIGPIPE, libc::SIG_DFL) };
    }
}
