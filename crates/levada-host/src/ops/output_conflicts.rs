// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that an application writes is its own: two that write the same one would spoil it for each other.
//! Pipes and devices may have several writers, and so may a folder.

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

/// Where an output is: its whole path without links, and the file that was there, if there was one, when it was looked at.
/// What does not match that now is another file, without a look at the disk for each application that is loaded.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    file: Option<(u64, u64)>,
    /// The file has other names, too.
    linked: bool,
}

impl Target {
    /// None: it may be shared, or nothing is known of it.
    pub(crate) fn of(out: &str) -> Option<Target> {
        let out = Path::new(out);
        match std::fs::metadata(out) {
            Ok(m) if m.is_file() => Some(Target {
                path: out.canonicalize().ok()?,
                file: Some((m.dev(), m.ino())),
                linked: m.nlink() > 1,
            }),
            Ok(_) => None,
            Err(_) => Some(Target {
                path: out.parent()?.canonicalize().ok()?.join(out.file_name()?),
                file: None,
                linked: false,
            }),
        }
    }

    /// May this be the file of one that was looked at earlier?
    fn may_be(&self, earlier: &Target) -> bool {
        self.path == earlier.path || self.linked || self.file.is_some() && self.file == earlier.file
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_match_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let target = |name: &str| Target::of(&at(name)).unwrap();
        let (new, other) = (target("new"), target("other"));
        assert!(target("new").may_be(&new) && !target("new").may_be(&other));
        std::os::unix::fs::symlink(folder.path(), at("link")).unwrap();
        assert!(target("link/new").may_be(&new));
        // It is there since.
        std::fs::write(at("new"), "").unwrap();
        assert!(target("new").may_be(&new) && target("link/new").may_be(&new));
        let there = target("new");
        std::fs::hard_link(at("new"), at("same")).unwrap();
        assert!(target("same").may_be(&there) && target("same").may_be(&new));
        std::os::unix::fs::symlink(at("new"), at("points")).unwrap();
        assert!(target("points").may_be(&there) && !target("other").may_be(&there));
        assert!(Target::of("/dev/null").is_none() && Target::of(&at("link")).is_none());
    }
}
