// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that compute without end next to what is tested.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A program that computes without end. It is killed when this is dropped, or when the thread that started it ends.
pub struct Busy(Child);

impl Busy {
    /// Starts it on any core.
    pub fn anywhere() -> Busy {
        Busy::start(None)
    }

    /// Starts it on the core `cpu`.
    pub fn on(cpu: i64) -> Busy {
        Busy::start(Some(cpu as usize))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns when it computes.
    fn start(cpu: Option<usize>) -> Busy {
        let mut command = Command::new("sh");
        command.args(["-c", "echo; while :; do :; done"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let prepare = move || {
            // SAFETY: async-signal-safe system calls on memory of this function; zeros are a valid set of cores.
            let done = unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                let pinned = cpu.is_none_or(|cpu| {
                    libc::CPU_SET(cpu, &mut set);
                    libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
                });
                pinned && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            };
            if done {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        };
        // SAFETY: `prepare` makes async-signal-safe calls only.
        let mut child = unsafe { command.pre_exec(prepare) }.spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        Busy(child)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
