// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Output of the command: results go to standard output, everything else to standard error. Colours are used only
//! on a terminal that supports them.

use crate::common::std_streams;
use levada_cal::diag::{Diagnostics, Severity, Sources, render, to_json};
use levada_host::Kind;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Prints a line on standard error, with control characters escaped. Write errors are ignored.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::common::output::say_text(&$crate::common::output::plain(&format!("{}\n", format_args!($($text)*))))
    };
}

/// Like `say!`, without the newline.
macro_rules! say_on {
    ($($text:tt)*) => { $crate::common::output::say_text(&$crate::common::output::plain(&format!($($text)*))) };
}

/// Prints a line with colours ([`paint`]). Text from outside must be escaped with [`plain`] first.
macro_rules! say_painted {
    ($($text:tt)*) => {
        $crate::common::output::say_text(&format!("{}\n", format_args!($($text)*)))
    };
}

/// Exit status for failures of a command that otherwise passes on the status of a program.
pub const FAILURE_STATUS: u8 = 125;

/// An error of a command: what failed, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub help: Option<String>,
    /// Diagnostics of the sources as JSON; they were already printed.
    pub diagnostics: Vec<Value>,
    /// The admission report as JSON, if admission was refused.
    pub admission: Option<Box<Value>>,
    /// The kind of the error.
    pub kind: Kind,
    /// The exit status, if it is not that of the kind.
    pub status: Option<u8>,
}

impl Failure {
    pub fn new(what: impl Into<String>) -> Failure {
        Failure {
            what: shortened(what.into()),
            help: None,
            diagnostics: Vec::new(),
            admission: None,
            kind: Kind::Failed,
            status: None,
        }
    }

    pub fn kind(mut self, kind: Kind) -> Failure {
        self.kind = kind;
        self
    }

    pub fn status(mut self, status: u8) -> Failure {
        self.status = Some(status);
        self
    }

    pub fn exit_status(&self) -> u8 {
        self.status.unwrap_or(self.kind.exit_status())
    }

    /// Sets the status for a failure of a command that otherwise passes on a program's status, as `env` does for its
    /// own failures.
    pub fn of_ours(self) -> Failure {
        let status = self.status.unwrap_or(FAILURE_STATUS);
        self.status(status)
    }

    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    pub fn found(mut self, diagnostics: Vec<Value>) -> Failure {
        self.diagnostics = diagnostics;
        self
    }

    /// The output of a failed command with --json: one object, with at least one diagnostic.
    pub fn json(&self) -> Value {
        let mut diagnostics = self.diagnostics.clone();
        if !diagnostics.iter().any(|d| d["severity"] == "error") {
            diagnostics.push(json!({
                "severity": "error", "code": "refused", "message": self.what, "help": self.help,
            }));
        }
        let mut said = json!({
            "outcome": "refused",
            "code": self.kind.code(),
            "message": self.what,
            "help": self.help,
            "diagnostics": diagnostics,
        });
        if let Some(admission) = &self.admission {
            said["admission"] = admission.as_ref().clone();
        }
        said
    }
}

/// Limits the length of a line: quoted text may be a file of one line.
fn shortened(text: String) -> String {
    const LINE_CHARS_MAX: usize = 1000;
    if text.lines().all(|line| line.len() <= LINE_CHARS_MAX) {
        return text;
    }
    let line = |line: &str| match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_string(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

impl From<std::io::Error> for Failure {
    fn from(why: std::io::Error) -> Failure {
        Failure::new(why.to_string())
    }
}

impl From<levada_host::Refusal> for Failure {
    fn from(why: levada_host::Refusal) -> Failure {
        Failure {
            help: why.help,
            kind: why.kind,
            ..Failure::new(why.what)
        }
    }
}

pub fn failure<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::new(what))
}

pub fn failure_with<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::new(what).help(help))
}

/// A report in JSON; where the command fails by what it reports, with the code of that.
pub fn report(mut report: Value, failed: bool) -> Result<(), Failure> {
    if failed {
        report["code"] = Kind::Failed.code().into();
    }
    line(&report.to_string())
}

/// Diagnostics as a list of JSON objects.
pub fn list(sources: &Sources, diags: &Diagnostics) -> Vec<Value> {
    match to_json(sources, diags) {
        Value::Array(list) => list,
        other => vec![other],
    }
}

/// The original standard output, if [`keep_for_results`] has replaced it.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Redirects standard output to standard error for all other code in this process (networks print), so that only
/// results go to the original standard output.
pub fn keep_for_results() -> Result<(), Failure> {
    // SAFETY: both descriptors belong to this process; the copy is owned by the new `File`.
    let kept = unsafe {
        let copy = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        match copy {
            0.. if libc::dup2(2, 1) >= 0 => File::from_raw_fd(copy),
            _ => {
                let why = std::io::Error::last_os_error();
                return failure(format!("cannot keep the output apart: {why}"));
            }
        }
    };
    let _ = RESULTS.set(kept);
    Ok(())
}

/// Whether standard error may be coloured.
pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        && std::io::stderr().is_terminal()
}

/// Text in a colour (an ANSI code), if colours are enabled.
pub fn paint(code: &str, text: &str) -> String {
    if color() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}

pub const RED: &str = "1;31";
pub const GREEN: &str = "32";
pub const YELLOW: &str = "33";
pub const BLUE: &str = "1;34";
pub const BOLD: &str = "1";
pub const DIM: &str = "2";

pub fn error(what: &str, help: Option<&str>) {
    say_painted!("{}: {}", paint(RED, "error"), plain(what));
    if let Some(help) = help {
        say_painted!("  {}: {}", paint(BLUE, "help"), plain(help));
    }
}

/// Text from outside, with control characters escaped.
pub use levada_text::escaped as plain;
pub use levada_text::plural;

/// Writes to standard error unchanged. Write errors are ignored.
pub fn say_text(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints all diagnostics with their source lines on standard error; returns the text.
pub fn diagnostics(sources: &Sources, diags: &Diagnostics) -> String {
    let text = render(sources, diags, color());
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    text
}

/// Counts of errors and warnings.
pub fn counts(diags: &Diagnostics) -> (usize, usize) {
    let of = |s: Severity| diags.iter().filter(|d| d.severity == s).count();
    (of(Severity::Error), of(Severity::Warning))
}

/// A size in a suitable unit.
pub fn bytes(count: u64) -> String {
    match count {
        b if b >= 10 << 20 => format!("{} MiB", b >> 20),
        b if b >= 10 << 10 => format!("{} KiB", b >> 10),
        b => plural(b as usize, "byte"),
    }
}

/// The unit of natives ("frames", "pictures"), in singular or plural.
pub fn unit_of(count: u64, unit: &str) -> &str {
    match count {
        1 => unit.strip_suffix('s').unwrap_or(unit),
        _ => unit,
    }
}

/// Prints one or several lines on standard output, with control characters escaped. The value of a JSON text does not
/// change.
pub fn line(text: &str) -> Result<(), Failure> {
    raw_line(&plain(text))
}

/// Prints a line unchanged: a file's content, or coloured text. Text from outside must be escaped with [`plain`]
/// first.
pub fn raw_line(text: &str) -> Result<(), Failure> {
    raw(format!("{text}\n").as_bytes())
}

/// Writes all bytes to standard output without buffering: errors in writing a buffer at exit would not be reported.
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let written = match RESULTS.get() {
        Some(mut kept) => kept.write_all(bytes),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
    };
    written.map_err(not_written)
}

pub fn not_written(why: std::io::Error) -> Failure {
    let why = std_streams::not_written(why);
    Failure::new(format!("cannot write to the output: {why}"))
}

/// Reads all of standard input.
pub fn input() -> Result<Vec<u8>, Failure> {
    std_streams::input()
        .and_then(|input| levada_cal::workspace::read_all(input.lock()))
        .map_err(|why| Failure::new(format!("cannot read the input: {why}")))
}

/// Whether it is a pipe or similar that all readers have closed.
pub fn has_no_reader(end: BorrowedFd) -> bool {
    let mut polled = libc::pollfd {
        fd: end.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 && polled.revents & libc::POLLERR != 0 }
}

/// Whether a name stands for standard output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes a file and replaces an existing one: only for files that the user or the caller of a C compiler has named
/// for that, and for the cache; for all others see [`artifact`](super::artifact). The content is written to a
/// temporary file first, so that the final name never has incomplete content. Devices and pipes are written to
/// directly; `-` is standard output.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let special = |m: std::fs::Metadata| !m.is_file() && !m.is_dir();
    if is_standard(path) {
        return raw_line(String::from_utf8_lossy(bytes).trim_end());
    }
    if std::fs::metadata(path).is_ok_and(special) {
        let opened = File::options().write(true).open(path);
        return match opened.and_then(|mut f| f.write_all(bytes)) {
            Ok(()) => Ok(()),
            Err(e) => failure(format!("cannot write {}: {e}", path.display())),
        };
    }
    match replace(&followed(path), bytes, None) {
        Ok(()) => Ok(()),
        Err(e) => failure(format!("cannot write {}: {e}", path.display())),
    }
}

/// Replaces a file's content atomically.
pub fn replace(path: &Path, bytes: &[u8], mode: Option<std::fs::Permissions>) -> io::Result<()> {
    let (mut file, partial) = partial(path)?;
    let written = file.write_all(bytes).and_then(|()| {
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        std::fs::rename(&partial, path)
    });
    written.inspect_err(|_| drop(std::fs::remove_file(&partial)))
}

/// The target of a symbolic link, so that the target is replaced and not the link.
pub fn followed(path: &Path) -> PathBuf {
    if path.is_symlink() {
        std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
    } else {
        path.to_path_buf()
    }
}

/// Names that are tried for a temporary file.
pub const NAMES_TRIED_MAX: u32 = 1000;

/// The `n`-th temporary name of this process for `path`.
pub fn partial_name(path: &Path, n: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{n}.part", std::process::id()));
    path.with_file_name(name)
}

/// Creates a temporary file in the same folder, to be renamed to `path`.
pub fn partial(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut n = 0;
    loop {
        let partial = partial_name(path, n);
        match File::options().write(true).create_new(true).open(&partial) {
            Ok(file) => return Ok((file, partial)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && n < NAMES_TRIED_MAX => n += 1,
            Err(e) => return Err(e),
        }
    }
}

/// 1234567 as "1 234 567".
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// A table: the first column is aligned left, the others right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    // Width in columns of a terminal; some characters take two.
    let columns = |cell: &str| ratatui::text::Line::from(cell).width();
    let mut width: Vec<usize> = head.iter().map(|h| columns(h)).collect();
    for row in rows {
        for (w, cell) in width.iter_mut().zip(row) {
            *w = (*w).max(columns(cell));
        }
    }
    let mut out = String::new();
    let mut put = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from(" ");
        for (i, (cell, w)) in cells.zip(&width).enumerate() {
            let space = " ".repeat(w.saturating_sub(columns(cell)));
            text += &match i {
                0 => format!(" {cell}{space}"),
                _ => format!("  {space}{cell}"),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    put(&mut head.iter().copied());
    for row in rows {
        put(&mut row.iter().map(String::as_str));
    }
    out
}
