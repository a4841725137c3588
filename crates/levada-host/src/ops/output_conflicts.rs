// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that an application writes is its own: two that write the same one would spoil it for each other.
//! Pipes and devices may have several writers, and so may a folder.

use crate::app::output_file::Target;
use crate::model::error::{Kind, Refusal};
use crate::ops::ready::Ready;
use crate::ops::state::Served;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What makes two names those of one file.
#[derive(Debug, PartialEq)]
enum Same {
    There { device: u64, inode: u64 },
    NotYet { folder: PathBuf, name: OsString },
}

/// None: it may be shared, or nothing is known of it.
fn same(file: &Path) -> Option<Same> {
    match std::fs::metadata(file) {
        Ok(m) if m.is_file() => Some(Same::There {
            device: m.dev(),
            inode: m.ino(),
        }),
        Ok(_) => None,
        Err(_) => Some(Same::NotYet {
            folder: file.parent()?.canonicalize().ok()?,
            name: file.file_name()?.to_os_string(),
        }),
    }
}

/// Refuses what would write a file that another application writes, or another one of these; one of them may
/// take the place of `old`.
pub(crate) fn differs(served: &Served, ready: &[Ready], old: Option<&str>) -> Result<(), Refusal> {
    let out_of = |one: &Ready| {
        let out = one.prepared.options.iter().find(|o| o.0 == "out");
        out.map(|o| o.1.clone())
    };
    if ready.iter().all(|one| out_of(one).is_none()) {
        return Ok(());
    }
    let targets = ready
        .iter()
        .filter_map(out_of)
        .filter_map(|out| Target::of(&out));
    let targets: Vec<Target> = targets.collect();
    if targets.is_empty() {
        return Ok(());
    }
    let mut others: Vec<(String, Option<Same>)> = Vec::new();
    let mut these: Vec<(String, Option<Same>)> = Vec::new();
    let may_be = |earlier: &Target| targets.iter().any(|target| target.may_be(earlier));
    for hosted in served
        .host
        .hosted_where(|h| h.out.as_ref().is_some_and(may_be))
    {
        if let Some(out) = hosted.option("out") {
            others.push((hosted.name.clone(), same(Path::new(out))));
        }
    }
    for isolated in served.isolated.list().iter().filter(|i| i.lives()) {
        for out in isolated.outputs() {
            others.push((isolated.name.clone(), same(Path::new(&out))));
        }
    }
    others.retain(|(name, _)| Some(name.as_str()) != old);
    for one in ready {
        let Some(out) = out_of(one) else { continue };
        let wanted = same(Path::new(&out));
        let is_wanted = |o: &&(String, Option<Same>)| wanted.is_some() && o.1 == wanted;
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
