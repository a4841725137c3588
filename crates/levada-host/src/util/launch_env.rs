// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host was started with, for what it starts itself. Applications share its process, and may set an
//! environment, leave its folder, or say that ended children are nobody's: compilers, and processes of isolated
//! applications, know nothing of that.

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

/// Remembers how it is now, before there is any application.
pub fn remember() {
    started();
}

/// The folder of temporary files, as a whole path.
pub(crate) fn temporary() -> &'static Path {
    &started().temporary
}

/// The environment of this command is the one that the host was started with, and its end can be waited for.
pub(crate) fn as_started(command: &mut Command) {
    let all = started().environment.iter();
    command
        .env_clear()
        .envs(all.map(|(name, value)| (name, value)));
    // SAFETY: both write into what is given, which may be all zeros.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut now);
        // Whoever handles it himself goes on doing so.
        let ignored = now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0;
        if ignored {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
