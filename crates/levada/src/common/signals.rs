// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals that end a run (SIGINT and similar): the first one asks the application to stop, the second one ends the
//! process. A closed reader of standard output counts as such a signal. Partial output files are removed.

use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXCPU};
use signal_hook::iterator::{Handle, Signals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Turns an exceeded file size limit (`ulimit -f`) into a write error, like a full disk, instead of the end of the
/// process. This uses a handler, which child processes do not inherit, so they have the default action.
pub fn survive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    handle(libc::SIGXFSZ, nothing);
}

/// Ignores the soft limit of CPU time (`ulimit -S -t`) in a process with many applications, and prints a note once.
/// At the hard limit the system kills the process.
pub fn survive_cpu_limit() {
    extern "C" fn say_once(_: libc::c_int) {
        static SAID: AtomicBool = AtomicBool::new(false);
        const TEXT: &str = "this host has reached its soft limit of CPU time (ulimit -t) and continues; \
                            at the hard limit the system kills it\n";
        if !SAID.swap(true, Ordering::Relaxed) {
            // SAFETY: async-signal-safe.
            unsafe { libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len()) };
        }
    }
    handle(libc::SIGXCPU, say_once);
}

fn handle(signal: i32, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a zeroed action is valid, and the handlers are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

#[derive(Debug)]
pub struct Interrupt {
    signal: Arc<AtomicI32>,
    handle: Handle,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Exits with the status that a shell reports for a program ended by this signal.
pub fn exit(signal: i32) -> ! {
    std::process::exit(128 + signal)
}

impl Interrupt {
    /// Calls `stop` on a thread of its own when a signal arrives. `prepared` is called first on this thread and on
    /// the one that waits for signals: with real-time workers, both need a priority above the workers'.
    pub fn watch(
        prepared: impl Fn() + Send + Sync + 'static,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Interrupt> {
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU];
        Interrupt::watch_for(&signals, prepared, stop, exit)
    }

    /// Like [`Interrupt::watch`], but ignores SIGPIPE, and calls `end` for the second signal to end the process.
    pub fn watch_without_pipe(
        prepared: impl Fn() + Send + Sync + 'static,
        stop: impl Fn() + Send + Sync + 'static,
        end: fn(i32) -> !,
    ) -> std::io::Result<Interrupt> {
        // SAFETY: the signal is ignored from here on.
        unsafe { libc::signal(SIGPIPE, libc::SIG_IGN) };
        Interrupt::watch_for(&[SIGINT, SIGTERM, SIGHUP], prepared, stop, end)
    }

    fn watch_for(
        numbers: &[i32],
        prepared: impl Fn() + Send + Sync + 'static,
        stop: impl Fn() + Send + Sync + 'static,
        end: fn(i32) -> !,
    ) -> std::io::Result<Interrupt> {
        let both = Arc::new((prepared, stop));
        let mut signals = Signals::new(numbers)?;
        let handle = signals.handle();
        let signal = Arc::new(AtomicI32::new(0));
        let seen = signal.clone();
        let thread = std::thread::Builder::new()
            .name("signals".to_string())
            .spawn(move || {
                let mut stopping = None;
                both.0();
                for number in signals.forever() {
                    if seen.swap(number, Ordering::Relaxed) != 0 {
                        if number == SIGPIPE || number == SIGXCPU {
                            // These signals repeat: one per write to a closed pipe, one per second of CPU time.
                            continue;
                        }
                        // The second signal ends the process, even if something in it hangs.
                        end(number);
                    }
                    // Stopping waits for running actions; handling the next signal must not.
                    let both = both.clone();
                    stopping = Some(std::thread::spawn(move || {
                        both.0();
                        both.1();
                    }));
                }
                // All references to the application must be dropped before its natives can finish their files.
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

    /// The first signal, if one has arrived.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|s| *s != 0)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // The thread may have closed its pipe before it is woken through it. That must not raise SIGPIPE, which would
        // be written to the same pipe, and so on without end.
        // SAFETY: the signal is ignored or has its previous action; no code of the application runs any more.
        unsafe { libc::signal(SIGPIPE, libc::SIG_IGN) };
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // SAFETY: as above.
        unsafe { libc::signal(SIGPIPE, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_woken_for_nothing() {
        let mut watch = Interrupt::watch(|| (), || ()).unwrap();
        watch.handle.close();
        watch.thread.take().unwrap().join().unwrap();
        drop(watch);
    }
}
