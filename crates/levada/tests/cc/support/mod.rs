// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers for the tests of forks: compilers, the command, and programs that are run.
#![allow(dead_code)] // each test file uses some of it

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const LEVADA: &str = env!("CARGO_BIN_EXE_levada");

/// The compilers that are installed.
pub fn compilers() -> Vec<&'static str> {
    let there = |cc: &&str| Command::new(cc).arg("--version").output().is_ok();
    let gcc = ["gcc", "cc"].into_iter().find(there);
    let clang = ["clang", "clang-19", "clang-16", "clang-14"]
        .into_iter()
        .find(there);
    let found: Vec<&str> = gcc.into_iter().chain(clang).collect();
    assert!(!found.is_empty(), "there is a C compiler");
    if found.len() == 1 {
        eprintln!("skipped: with clang, which this machine has not, or with gcc");
    }
    found
}

pub fn levada(cc: &str, words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(LEVADA);
    command.args(words).current_dir(folder).env("CC", cc);
    command
        .env_remove("LEVADA_CC")
        .output()
        .expect("levada runs")
}

pub fn said(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

pub fn works(cc: &str, words: &[&str], folder: &Path) -> String {
    let out = levada(cc, words, folder);
    assert!(out.status.success(), "{cc} {words:?}: {}", said(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The output of a program on `workers` workers.
pub fn run(program: &Path, workers: u32) -> String {
    let out = Command::new("timeout")
        .arg("60")
        .arg(program)
        .env("LEVADA_WORKERS", workers.to_string())
        .output()
        .expect("it runs");
    assert!(
        out.status.success(),
        "{}: {:?}\n{}",
        program.display(),
        out.status,
        said(&out)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cc/support")
}
