// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Refuses a load if another application writes its output file. Pipes, devices and folders may have several
//! writers.

use crate::app::output_file::OutputFile;
use crate::model::error::{Kind, Refusal};
use crate::ops::ready::PreparedLoad;
use crate::ops::state::ServerState;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What identifies a file.
#[derive(Debug, PartialEq)]
enum FileIdentity {
    There { device: u64, inode: u64 },
    NotYet { folder: PathBuf, name: OsString },
}

/// None: the file may be shared, or nothing is known of it.
fn identity(file: &Path) -> Option<FileIdentity> {
    match std::fs::metadata(file) {
        Ok(m) if m.is_file() => Some(FileIdentity::There {
            device: m.dev(),
            inode: m.ino(),
        }),
        Ok(_) => None,
        Err(_) => Some(FileIdentity::NotYet {
            folder: file.parent()?.canonicalize().ok()?,
            name: file.file_name()?.to_os_string(),
        }),
    }
}

/// Refuses a load if another application, or another one of these, writes the same file; one of these may replace
/// `old`.
pub(crate) fn check_outputs(
    served: &ServerState,
    ready: &[PreparedLoad],
    old: Option<&str>,
) -> Result<(), Refusal> {
    let out_of = |one: &PreparedLoad| {
        let out = one.prepared.options.iter().find(|o| o.0 == "out");
        out.map(|o| o.1.clone())
    };
    if ready.iter().all(|one| out_of(one).is_none()) {
        return Ok(());
    }
    let targets = ready
        .iter()
        .filter_map(out_of)
        .filter_map(|out| OutputFile::resolve(&out));
    let targets: Vec<OutputFile> = targets.collect();
    if targets.is_empty() {
        return Ok(());
    }
    let mut others: Vec<(String, Option<FileIdentity>)> = Vec::new();
    let mut these: Vec<(String, Option<FileIdentity>)> = Vec::new();
    let may_be = |earlier: &OutputFile| targets.iter().any(|target| target.may_be_same_as(earlier));
    for hosted in served
        .host
        .apps_where(|h| h.output_file.as_ref().is_some_and(may_be))
    {
        if let Some(out) = hosted.option("out") {
            others.push((hosted.name.clone(), identity(Path::new(out))));
        }
    }
    for isolated in served.isolated.list().iter().filter(|i| i.lives()) {
        for out in isolated.outputs() {
            others.push((isolated.name.clone(), identity(Path::new(&out))));
        }
    }
    others.retain(|(name, _)| Some(name.as_str()) != old);
    for one in ready {
        let Some(out) = out_of(one) else { continue };
        let wanted = identity(Path::new(&out));
        let is_wanted = |o: &&(String, Option<FileIdentity>)| wanted.is_some() && o.1 == wanted;
        let own = one.request.name.as_ref().unwrap_or(&one.prepared.network);
        if let Some((name, _)) = these.iter().find(is_wanted) {
            let what = format!("--out {out}: {name} and {own} are both to write that file");
            return Err(Refusal::new(Kind::Wrong, what).help("name another file for one of them"));
        }
        if let Some((name, _)) = others.iter().find(is_wanted) {
            let what = format!("--out {out}: the application {name} writes that file");
            return Err(Refusal::new(Kind::Conflict, what)
                .help(format!("name another file, or unload {name} first")));
        }
        these.push((own.clone(), wanted));
    }
    Ok(())
}
