// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The environment that this process was started with, for processes that it starts, whatever applications have
//! changed since.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[derive(Debug)]
struct Started {
    environment: Vec<(OsString, OsString)>,
    temporary: PathBuf,
}

static STARTED: OnceLock<Started> = OnceLock::new();

fn started() -> &'static Started {
    STARTED.get_or_init(|| {
        let temporary = std::env::temp_dir();
        Started {
            environment: std::env::vars_os().collect(),
            temporary: std::path::absolute(&temporary).unwrap_or(temporary),
        }
    })
}

/// Stores the present environment, before there is any application.
pub fn remember() {
    started();
}

/// The folder for temporary files, as an absolute path.
pub(crate) fn temporary() -> &'static Path {
    &started().temporary
}

/// Gives a command the environment that the host was started with; SIGCHLD is reset so that its end can be awaited.
pub(crate) fn as_started(command: &mut Command) {
    let all = started().environment.iter();
    command
        .env_clear()
        .envs(all.map(|(name, value)| (name, value)));
    // SAFETY: both write into a variable that may be all zeros.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut now);
        // A handler stays installed.
        let ignored = now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0;
        if ignored {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
