// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of the checks in README.md: written from the tables of the suites, and compared with them
//! at every run, so that it does not go stale.

use crate::check::{Barrier, Check};
use crate::library;
use crate::suite::{SUITES, Suite};
use std::path::PathBuf;

pub fn heading() -> String {
    format!(
        "{:<8} {:<34} {:<8} {:<10} {:>6} {:>11}",
        "suite", "check", "shows", "barrier", "bound", "executions"
    )
}

pub fn row(s: &Suite, c: &Check, executions: u64) -> String {
    let barrier = match c.barrier {
        Barrier::Fences => "fences",
        Barrier::Asymmetric => "all cores",
    };
    let bound = c.bound.map_or("none".to_string(), |b| b.to_string());
    format!(
        "{:<8} {:<34} {:<8} {barrier:<10} {bound:>6} {executions:>11}",
        s.name, c.name, c.shows
    )
}

/// What the short form prints, without the times.
fn table() -> String {
    let mut text = heading() + "\n";
    for s in SUITES {
        for c in s.checks.iter().filter(|c| !c.soak) {
            text += &(row(s, c, c.executions) + "\n");
        }
    }
    text
}

fn path() -> PathBuf {
    library::runtime().join("model/README.md")
}

/// The page with the table as it should be, and as it is.
fn pages() -> Result<(String, String), String> {
    let is = std::fs::read_to_string(path()).map_err(|e| format!("{}: {e}", path().display()))?;
    let from = is.find(&heading());
    let from = from.ok_or("README.md: no table of the checks")?;
    let to = is[from..].find("```").map(|n| from + n);
    let to = to.ok_or("README.md: the table of the checks has no end")?;
    let should = format!("{}{}{}", &is[..from], table(), &is[to..]);
    Ok((should, is))
}

/// How many pages do not say what is so: one, or none.
pub fn stale() -> usize {
    match pages() {
        Ok((should, is)) if should == is => return 0,
        Ok(_) => println!("README.md: its table of the checks is stale: runtime/model/run --docs"),
        Err(e) => println!("{e}"),
    }
    1
}

pub fn renew() -> Result<(), String> {
    let (should, is) = pages()?;
    if should != is {
        std::fs::write(path(), should).map_err(|e| format!("{}: {e}", path().display()))?;
    }
    Ok(())
}
