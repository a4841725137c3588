// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes before an application is loaded is done by a process of its own, `levada prepare`: it
//! reads the sources, compiles what is not in the cache, checks natives, options and files, and says
//! what is wrong. So neither a compiler's memory nor its faults are the host's, and the system shares
//! the cores between it and the workers.

use super::types::{Failed, LoadRequest};
use crate::host::Kind;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What it says when all is well.
#[derive(Clone, Debug, Deserialize)]
pub struct Prepared {
    pub object: PathBuf,
    pub network: String,
    /// For natives, with paths that are whole.
    pub options: Vec<(String, String)>,
    #[serde(default)]
    pub diagnostics: Vec<Value>,
    /// Warnings, as text.
    #[serde(default)]
    pub text: String,
}

/// And when it is not.
#[derive(Debug, Deserialize)]
struct Refused {
    message: String,
    help: Option<String>,
    #[serde(default)]
    diagnostics: Vec<Value>,
}

fn wrong(what: impl Into<String>) -> Failed {
    Failed {
        error: what.into(),
        kind: Some(Kind::Wrong),
        ..Failed::default()
    }
}

/// Calls `program prepare` with what was asked for.
pub fn prepare(program: &PathBuf, request: &LoadRequest) -> Result<Prepared, Failed> {
    if !request.directory.is_absolute() || !request.directory.is_dir() {
        let shown = request.directory.display();
        return Err(wrong(format!(
            "directory {shown:?} is no whole path of a folder: paths are relative to it"
        )));
    }
    if request.network.is_empty() {
        return Err(wrong("network names none"));
    }
    let mut command = Command::new(program);
    command.arg("prepare").current_dir(&request.directory);
    // In one word each, so that no value is taken for an option.
    let mut option = |name: &str, value: &str| {
        command.arg(format!("--{name}={value}"));
    };
    for (name, value) in &request.set {
        option("set", &format!("{name}={value}"));
    }
    for (name, value) in &request.option {
        option("option", &format!("{name}={value}"));
    }
    request.input.iter().for_each(|v| option("in", v));
    request.output.iter().for_each(|v| option("out", v));
    request.project.iter().for_each(|v| option("project", v));
    request.path.iter().for_each(|v| option("path", v));
    request.native.iter().for_each(|v| option("native", v));
    if request.unchecked {
        command.arg("--unchecked");
    }
    if request.no_fuse {
        command.arg("--no-fuse");
    }
    command.arg("--").arg(&request.network);
    command.stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|e| wrong(format!("{} cannot be started: {e}", program.display())))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.lines().last().unwrap_or("");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let made: Result<Prepared, _> = serde_json::from_str(said);
        return match made {
            Ok(made) => Ok(Prepared { text, ..made }),
            Err(e) => Err(wrong(format!(
                "levada prepare says what is not understood: {e}"
            ))),
        };
    }
    let Ok(refused) = serde_json::from_str::<Refused>(said) else {
        // It has not come so far: the command line was wrong, or it was ended.
        let what = match text.trim() {
            "" => format!("levada prepare has failed: {}", output.status),
            text => text.trim_start_matches("error: ").to_string(),
        };
        return Err(wrong(what));
    };
    // The last lines are the message and the help, which are told apart.
    let head = format!("error: {}", refused.message);
    let text = match text.rfind(&head) {
        Some(at) => text[..at].to_string(),
        None => text,
    };
    Err(Failed {
        error: refused.message,
        help: refused.help,
        diagnostics: refused.diagnostics,
        text,
        kind: Some(Kind::Wrong),
    })
}
