// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens and closes a C program in a child process before a host with other applications opens it. The dynamic
//! loader trusts the file's contents, and constructors and destructors are code of the program: a crash or an
//! endless loop there ends or blocks the child instead of the host.

use crate::common::output::{Failure, failure_with};
use levada_sys::Network;
use std::fs::OpenOptions;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// The child's reply on success; any other reply is an error text.
const OPENED: &str = "opened";

/// Fails unless the file can be opened. Must be called while the process has one thread.
pub fn open(file: &Path) -> Result<(), Failure> {
    let (mut said, says) = std::io::pipe()?;
    // SAFETY: there is one thread, so no lock is held in the child.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(std::io::Error::last_os_error().into()),
        0 => open_and_end(file, says),
        child => child,
    };
    drop(says);
    let status = ended(child)?;
    let said = said_by_now(&mut said)?;
    let how = match (status.code(), status.signal()) {
        (_, Some(signal)) => {
            let name = levada_host::signal_name(signal);
            format!("was ended by signal {signal} ({name})")
        }
        _ if said == OPENED => return Ok(()),
        _ if !said.is_empty() => return Err(Failure::new(said)),
        (code, _) => format!("has exited with status {}", code.unwrap_or_default()),
    };
    failure_with(
        format!(
            "{} cannot be opened: the process that tried it {how}",
            file.display()
        ),
        "the file is damaged or incomplete, or one of its constructors or destructors fails; --isolate loads it in a \
         process of its own",
    )
}

/// Runs in the child. Output of constructors is discarded.
fn open_and_end(file: &Path, mut says: PipeWriter) -> ! {
    // SAFETY: affects this process only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let none = std::mem::zeroed();
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            // SAFETY: both are open.
            unsafe { libc::dup2(nowhere.as_raw_fd(), output) };
        }
    }
    // SAFETY: the user's code runs in this child process only.
    let opened = unsafe { Network::program(file, &[]) };
    let text = match opened.map(drop) {
        Ok(()) => OPENED.to_string(),
        Err(why) => why,
    };
    let _ = says.write_all(text.as_bytes());
    // SAFETY: no exit handlers have to run.
    unsafe { libc::_exit(0) }
}

fn ended(child: libc::pid_t) -> std::io::Result<ExitStatus> {
    let mut status = 0;
    // SAFETY: a child of this process for which no other thread waits.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
    Ok(ExitStatus::from_raw(status))
}

/// Does not read to the end of file: a process that a constructor has started may hold the pipe open.
fn said_by_now(from: &mut PipeReader) -> std::io::Result<String> {
    let mut said = [0; 4096];
    // SAFETY: the descriptor is open.
    unsafe { libc::fcntl(from.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    match from.read(&mut said) {
        Ok(length) => Ok(String::from_utf8_lossy(&said[..length]).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(String::new()),
        Err(e) => Err(e),
    }
}
