// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shield that the C library raises: this process is a child of the program and talks to it over a descriptor,
//! one line of JSON per message. The first message reports how the shield was raised, or why it was not. Each byte
//! received is answered with the current status. The last message reports what was restored. End of file, the end
//! of either process, or a signal lowers the shield.

use super::run::{Signals, descriptor_of};
use super::{Plan, plan};
use crate::cli::RaiseArgs;
use crate::common::output::{self, Failure, failure};
use levada_cores::shield::guard::{GuardMessage, wait};
use levada_cores::{Restored, Shield};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// The descriptor as a stream. A descriptor that is not a socket is a usage error.
fn stream(descriptor: i32) -> Result<UnixStream, Failure> {
    // SAFETY: the memory is in this frame; no other code in this process uses the descriptor.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let there = descriptor > 2 && libc::fstat(descriptor, &mut stat) == 0;
        if there && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK {
            Ok(UnixStream::from(OwnedFd::from_raw_fd(descriptor)))
        } else {
            failure(format!("descriptor {descriptor} is no socket"))
        }
    }
}

pub fn serve(args: &RaiseArgs, descriptor: i32) -> Result<ExitCode, Failure> {
    let mut wire = stream(descriptor)?;
    // Leaves the terminal's foreground group: Ctrl-C there is for the program, which may handle it.
    // SAFETY: no memory is passed.
    unsafe {
        libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::setpgid(0, 0);
    }
    let signals = Signals::take(true)?;
    let held = plan(args).and_then(|plan| {
        let process = descriptor_of(args.pid.unwrap_or(0))?;
        let shield = Shield::raise(plan.request.clone())?;
        Ok((plan, process, shield))
    });
    let (plan, process, shield) = match held {
        Ok(held) => held,
        Err(e) => {
            let help = e.help.unwrap_or_default();
            say(
                &mut wire,
                &json!({"is": "refused", "why": e.what, "help": help}),
            );
            return Ok(ExitCode::from(output::FAILURE_STATUS));
        }
    };
    let (restored, released) = hold(&plan, &mut wire, &process, &signals, shield)?;
    let failed = restored.failed.first().cloned().unwrap_or_default();
    say(
        &mut wire,
        &json!({
            "is": "over", "released": u8::from(released), "evicted": restored.evicted,
            "failed": restored.failed.len(), "why": failed,
        }),
    );
    Ok(if restored.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Errors are ignored: the end of file on the stream is noticed soon.
fn say(wire: &mut UnixStream, what: &Value) {
    let _ = wire.write_all(format!("{what}\n").as_bytes());
}

fn stands(plan: &Plan, shield: &Shield, is_full: bool) -> Value {
    let raised = &shield.raised;
    json!({
        "is": "up", "cores": plan.request.cores.to_string(), "method": raised.method.name(),
        "took_ns": u64::try_from(raised.took.as_nanos()).unwrap_or(u64::MAX),
        "threads": raised.swept.threads, "kernel_threads": raised.swept.kernel_threads,
        "interrupts": raised.steered.interrupts, "evicted": shield.evicted(),
        "full": u8::from(is_full),
    })
}

/// Holds the shield until it is to end. Returns what was restored, and whether another process released it.
fn hold(
    plan: &Plan,
    wire: &mut UnixStream,
    process: &OwnedFd,
    signals: &Signals,
    mut shield: Shield,
) -> Result<(Restored, bool), Failure> {
    let mut is_full = false;
    say(wire, &stands(plan, &shield, is_full));
    loop {
        let mut list = vec![
            wire.as_raw_fd(),
            process.as_raw_fd(),
            signals.descriptor.as_raw_fd(),
        ];
        list.extend(shield.guard_descriptor());
        let ready = wait(&list, None);
        if ready[1] {
            break;
        }
        if ready.get(3) == Some(&true) {
            match shield.receive_guard_message() {
                GuardMessage::Released => return Ok((shield.lower()?, true)),
                GuardMessage::Full => is_full = true,
                GuardMessage::None | GuardMessage::Dead => {}
            }
        }
        if ready[0] {
            let mut bytes = [0; 64];
            match wire.read(&mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    for _ in 0..n {
                        say(wire, &stands(plan, &shield, is_full));
                    }
                }
            }
        }
        let mut ends = false;
        while let Some(info) = signals.next() {
            match info.ssi_signo as i32 {
                libc::SIGCHLD => {
                    // The guard has ended; its successor was started, or will be.
                    // SAFETY: no status is wanted.
                    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
                }
                libc::SIGTERM => ends = true,
                _ => {}
            }
        }
        if ends {
            break;
        }
    }
    Ok((shield.lower()?, false))
}
