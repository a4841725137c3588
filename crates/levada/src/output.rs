// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the command says, and where: results on the output, everything else on the error output, in
//! colour only on a terminal that wants it.

use levada_cal::diag::{Diagnostics, Severity, Sources, render};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub help: Option<String>,
}

pub fn failure<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        what: what.into(),
        help: None,
    })
}

pub fn failure_with<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        what: what.into(),
        help: Some(help.into()),
    })
}

/// Whether the error output may be coloured.
pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        && std::io::stderr().is_terminal()
}

/// A word in a colour (an ANSI code), where colours are shown.
pub fn paint(code: &str, text: &str) -> String {
    match color() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_string(),
    }
}

pub const RED: &str = "1;31";
pub const GREEN: &str = "32";
pub const YELLOW: &str = "33";
pub const BLUE: &str = "1;34";
pub const BOLD: &str = "1";
pub const DIM: &str = "2";

pub fn error(what: &str, help: Option<&str>) {
    eprintln!("{}: {what}", paint(RED, "error"));
    if let Some(help) = help {
        eprintln!("  {}: {help}", paint(BLUE, "help"));
    }
}

/// All diagnostics with their lines on the error output.
pub fn diagnostics(sources: &Sources, diags: &Diagnostics) {
    let text = render(sources, diags, color());
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Counts of errors and warnings.
pub fn counts(diags: &Diagnostics) -> (usize, usize) {
    let of = |s: Severity| diags.iter().filter(|d| d.severity == s).count();
    (of(Severity::Error), of(Severity::Warning))
}

/// "1 error", "2 errors".
pub fn plural(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Prints a line on the output.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| {
        out.write_all(b"\n")?;
        out.flush()
    }) {
        Ok(()) => Ok(()),
        Err(e) => failure(format!("cannot write to the output: {e}")),
    }
}

/// Writes a file under a name of its own first, so that the final name never holds half of it.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let partial = partial_name(path);
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    match written {
        Ok(()) => Ok(()),
        Err(e) => {
            let _ = std::fs::remove_file(&partial);
            failure(format!("cannot write {}: {e}", path.display()))
        }
    }
}

/// Copies a file in the same way; its permissions come along.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), Failure> {
    let partial = partial_name(to);
    let copied = std::fs::copy(from, &partial).and_then(|_| std::fs::rename(&partial, to));
    match copied {
        Ok(()) => Ok(()),
        Err(e) => {
            let _ = std::fs::remove_file(&partial);
            failure(format!("cannot write {}: {e}", to.display()))
        }
    }
}

pub fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
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

/// A table: the first column to the left, the others to the right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut width: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (w, cell) in width.iter_mut().zip(row) {
            *w = (*w).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let mut put = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from(" ");
        for (i, (cell, w)) in cells.zip(&width).enumerate() {
            text += &match i {
                0 => format!(" {cell:<w$}"),
                _ => format!("  {cell:>w$}"),
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
