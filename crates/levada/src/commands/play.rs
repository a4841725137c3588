// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada run --play`: pipes the output of a network to a video viewer.

use crate::common::output::{Failure, failure, failure_with};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The viewers that are tried, in this order.
const VIEWERS: [&str; 2] = ["ffplay", "mpv"];

/// Arguments that make the viewer show its standard input in a window with this title.
fn words(viewer: &str, title: &str) -> Vec<String> {
    let titled = format!("--title={title}");
    let words: &[&str] = match viewer {
        "mpv" => &["--really-quiet", "--force-window", &titled, "-"],
        _ => &[
            "-loglevel",
            "error",
            "-autoexit",
            "-window_title",
            title,
            "-i",
            "-",
        ],
    };
    words.iter().map(|w| w.to_string()).collect()
}

pub struct Viewer {
    name: &'static str,
    child: Child,
    /// The write end of the pipe; natives open it again by its name.
    end: File,
}

fn installed(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Finds a viewer; called before anything is compiled.
pub fn viewer() -> Result<(&'static str, PathBuf), Failure> {
    match VIEWERS.iter().find_map(|v| Some((*v, installed(v)?))) {
        Some(found) => Ok(found),
        None => failure_with(
            "--play: no viewer is installed",
            "install ffplay (Debian: apt-get install ffmpeg) or mpv; or write the video to a file \
             with --out FILE.y4m",
        ),
    }
}

impl Viewer {
    /// Starts the viewer, with a window of this title.
    pub fn start(title: &str) -> Result<Viewer, Failure> {
        let (name, path) = viewer()?;
        let (read, end) = pipe()?;
        // The viewer's standard output is discarded: the network prints on ours.
        let started = Command::new(&path)
            .args(words(name, title))
            .stdin(read)
            .stdout(Stdio::null())
            .spawn();
        match started {
            Ok(child) => Ok(Viewer { name, child, end }),
            Err(e) => failure(format!("--play: cannot start {}: {e}", path.display())),
        }
    }

    /// The path to which the network writes.
    pub fn file(&self) -> String {
        format!("/dev/fd/{}", self.end.as_raw_fd())
    }

    /// The write end of the pipe.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Waits until the viewer has shown everything, or the window is closed.
    pub fn finish(mut self) -> Result<(), Failure> {
        drop(self.end);
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            failure_with(
                format!("--play: {} fails ({status})", self.name),
                "without a screen, write the video to a file with --out FILE.y4m",
            )
        }
    }
}

/// A pipe with close-on-exec set on both ends.
fn pipe() -> Result<(File, File), Failure> {
    let mut ends = [0; 2];
    // SAFETY: both descriptors are new and owned by this function.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}
