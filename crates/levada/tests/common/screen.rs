// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A command on a terminal of its own: what stands on its screen, and keys.

use super::what_it_does;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const COLUMNS: usize = 100;
const LINES: usize = 24;

pub struct Screen {
    child: Child,
    keys: File,
    comes: Receiver<Vec<u8>>,
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// What has come of a character, or of a command to the terminal, that is not whole.
    begun: Vec<u8>,
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    pub fn begin(mut command: Command) -> Screen {
        let (mut own, mut theirs) = (0, 0);
        let (name, modes) = (std::ptr::null_mut(), std::ptr::null());
        let size = libc::winsize {
            ws_row: LINES as u16,
            ws_col: COLUMNS as u16,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: two descriptors are written, and the size is read.
        let (own, theirs) = unsafe {
            let done = libc::openpty(&mut own, &mut theirs, name, modes, &size);
            assert_eq!(done, 0);
            libc::fcntl(own, libc::F_SETFD, libc::FD_CLOEXEC);
            (OwnedFd::from_raw_fd(own), OwnedFd::from_raw_fd(theirs))
        };
        let end = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: calls without memory, between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().unwrap();
        // It has the other end, too.
        drop((command, theirs));
        let keys = File::from(own);
        let mut shown = keys.try_clone().unwrap();
        let (tell, comes) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                if tell.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Screen {
            child,
            keys,
            comes,
            cells: vec![vec![' '; COLUMNS]; LINES],
            at: (0, 0),
            begun: Vec::new(),
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this stands there, for a minute at most.
    pub fn until(&mut self, what: &str) {
        let start = Instant::now();
        while !self.text().contains(what) {
            let long = start.elapsed() > Duration::from_secs(60);
            assert!(!long, "no {what:?} on\n{}", self.text());
            self.wait(Duration::from_millis(100));
        }
    }

    /// Presses no key for this time.
    pub fn rest(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            self.wait(Duration::from_millis(100));
        }
    }

    /// Waits for its end, at most `within`.
    pub fn ends(&mut self, within: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            // Its output must be read, or it would block.
            self.wait(Duration::from_millis(10));
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let long = start.elapsed() > within;
            let threads = || what_it_does(self.child.id());
            assert!(!long, "it does not end:\n{}\n{}", self.text(), threads());
        }
    }

    pub fn text(&self) -> String {
        let lines = self.cells.iter().map(|line| line.iter().collect());
        lines.collect::<Vec<String>>().join("\n")
    }

    fn wait(&mut self, within: Duration) {
        match self.comes.recv_timeout(within) {
            Ok(bytes) => {
                self.begun.extend(bytes);
                while let Some(length) = self.take_one() {
                    self.begun.drain(..length);
                }
            }
            // It has ended.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Consumes one character or one command and returns its length in bytes. Only commands that change the visible
    /// text are executed.
    fn take_one(&mut self) -> Option<usize> {
        if self.begun.first()? == &0x1b {
            let end = |b: &u8| b.is_ascii_alphabetic();
            let length = 2 + self.begun.get(2..)?.iter().position(end)? + 1;
            let command = String::from_utf8_lossy(&self.begun[2..length]).into_owned();
            if let Some(to) = command.strip_suffix('H') {
                let mut to = to.split(';').map(|n| n.parse().map_or(0, |n: usize| n - 1));
                self.at = (to.next().unwrap_or(0), to.next().unwrap_or(0));
            } else if command == "2J" {
                self.cells = vec![vec![' '; COLUMNS]; LINES];
            }
            return Some(length);
        }
        let length = match self.begun[0] {
            0..0xc0 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        let text = String::from_utf8_lossy(self.begun.get(..length)?).into_owned();
        let line = self.cells.get_mut(self.at.0);
        if let Some(cell) = line.and_then(|line| line.get_mut(self.at.1)) {
            *cell = text.chars().next()?;
        }
        self.at.1 += 1;
        Some(length)
    }
}
