// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a state folder. Each file appears or is removed atomically and is synced to disk. A change of
//! several files is recorded first, so that the next host completes it after a crash.

use crate::model::app_name::check_name;
use crate::persist::journal::quarantine_file;
use crate::persist::partial_outputs;
use crate::protocol::LoadRequest;
use levada_files::{create_private, read_private};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum size of a file; a request has at most 1 MiB.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// A state folder, found by its path and held open. After a rename or unmount its path leads to nothing or to another
/// folder: nothing is written there, and a file that is not found there has not been removed.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    /// While it is open no other folder has its inode number.
    opened: File,
}

impl StateFolder {
    pub(crate) fn open(path: &Path) -> std::io::Result<StateFolder> {
        Ok(StateFolder {
            path: path.to_path_buf(),
            opened: File::open(path)?,
        })
    }

    /// Its path, if that still leads to it. The kind of the error is never `NotFound`, which is for files.
    pub(crate) fn path(&self) -> std::io::Result<&Path> {
        let away = |what: &str| Err(std::io::Error::other(what.to_string()));
        let opened = self.opened.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (opened.dev(), opened.ino()) => {
                Ok(&self.path)
            }
            Ok(_) => {
                away("the state folder was renamed or unmounted, and another folder has its path")
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                away("the state folder was renamed, removed or unmounted")
            }
            Err(e) => Err(e),
        }
    }

    /// For messages.
    pub(crate) fn display(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

/// A change of several files, which the next host completes if it finds it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct BatchChange {
    pub(crate) keep: Vec<LoadRequest>,
    pub(crate) forget: Vec<String>,
}

pub(crate) const CHANGE: &str = ".change";

impl BatchChange {
    /// Once its file exists, the change will be made.
    pub(crate) fn make(&self, folder: &Path) -> std::io::Result<()> {
        // A single file changes atomically anyway.
        let several = self.keep.len() + self.forget.len() > 1;
        if several {
            write_whole(folder, CHANGE, &serde_json::to_vec(self)?)?;
        }
        for request in &self.keep {
            write_request(folder, request)?;
        }
        for name in &self.forget {
            remove_whole(folder, &request_file(name))?;
        }
        if several {
            std::fs::remove_file(folder.join(CHANGE))
        } else {
            Ok(())
        }
    }

    /// The present content of the files that it replaces.
    pub(crate) fn before(&self, folder: &Path) -> Vec<PreviousContent> {
        let names = self.keep.iter().filter_map(|r| r.name.as_deref());
        let files = names.map(|name| {
            let file = request_file(name);
            let text = read_private(&folder.join(&file), MAX_BYTES).ok();
            (file, text)
        });
        files.collect()
    }
}

/// A file and its content; none: there was no such file.
pub(crate) type PreviousContent = (String, Option<Vec<u8>>);

/// Completes the change that a killed host had begun.
pub(crate) fn finish(folder: &Path) -> std::io::Result<()> {
    let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{CHANGE}: {e}"));
    let text = match read_private(&folder.join(CHANGE), MAX_BYTES) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(named)?,
    };
    let change: BatchChange = serde_json::from_slice(&text).map_err(|e| {
        let what = format!(
            "{CHANGE} is damaged ({e}): it lists what the last host was loading or unloading together; remove it to \
             start the host with the other saved applications"
        );
        std::io::Error::other(what)
    })?;
    change.make(folder).map_err(named)?;
    // A change of a single file leaves this one.
    let _ = std::fs::remove_file(folder.join(CHANGE));
    Ok(())
}

pub(crate) fn named(name: &str, request: &LoadRequest) -> LoadRequest {
    LoadRequest {
        name: Some(name.to_string()),
        ..request.clone()
    }
}

pub(crate) fn write_request(folder: &Path, request: &LoadRequest) -> std::io::Result<()> {
    let name = request.name.as_deref().unwrap_or_default();
    let text = serde_json::to_vec_pretty(request)?;
    write_whole(folder, &request_file(name), &text)
}

/// Writes a file atomically, and syncs it.
pub(crate) fn write_whole(folder: &Path, name: &str, text: &[u8]) -> std::io::Result<()> {
    // A name does not begin with a dot, so this file belongs to no application.
    let new = folder.join(format!(".{name}.new"));
    let written = create_private(&new).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    let done = written
        .and_then(|()| std::fs::rename(&new, folder.join(name)))
        .and_then(|()| File::open(folder)?.sync_all());
    if done.is_err() {
        drop(std::fs::remove_file(&new));
    }
    done
}

/// The file that says how an application was loaded.
pub(crate) fn request_file(name: &str) -> String {
    format!("{name}.json")
}

/// The file that says that an application is being unloaded.
pub(crate) fn unloading_file(name: &str) -> String {
    format!("{name}.unloading")
}

/// The file with the load requests of both versions of an application that is being replaced.
pub(crate) fn replacing_file(name: &str) -> String {
    format!("{name}.replacing")
}

/// Removes partial outputs of both versions, if a host was killed during a replacement.
pub(crate) fn forget_replacing(folder: &Path) {
    let mut halves = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file
            .strip_suffix(".replacing")
            .is_none_or(|name| check_name(name).is_err())
        {
            continue;
        }
        let text = read_private(&entry.path(), MAX_BYTES).unwrap_or_default();
        let both: Vec<LoadRequest> = serde_json::from_slice(&text).unwrap_or_default();
        halves.extend(both.iter().filter_map(partial_outputs::output_of));
        let _ = remove_whole(folder, &file);
    }
    partial_outputs::remove_all_soon(halves);
}

/// Removes a file; it is no error if it does not exist.
pub(crate) fn remove_whole(folder: &Path, name: &str) -> std::io::Result<()> {
    let path = folder.join(name);
    // A read-only file system also refuses to remove a file that does not exist.
    let not_there = |e: &std::io::Error| e.kind() == std::io::ErrorKind::NotFound;
    if std::fs::symlink_metadata(&path).is_err_and(|e| not_there(&e)) {
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(e) if !not_there(&e) => Err(e),
        _ => Ok(()),
    }
}

/// The files of an application, in the order of their removal: the mark of an unload last, since it must be known as
/// long as the others exist.
pub(crate) fn all_of(name: &str) -> [String; 3] {
    [
        request_file(name),
        quarantine_file(name),
        unloading_file(name),
    ]
}

/// Removes the files of an application.
fn forget_file(folder: &Path, name: &str) {
    for file in all_of(name) {
        let _ = remove_whole(folder, &file);
    }
}

/// Forgets all applications that were being unloaded; returns their names.
pub(crate) fn forget_gone(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let names = files.filter_map(|f| f.strip_suffix(".unloading").map(str::to_string));
    let names = names.filter(|name| check_name(name).is_ok());
    let (mut gone, mut halves) = (Vec::new(), Vec::new());
    for name in names.collect::<Vec<_>>() {
        let was_kept = folder.join(request_file(&name)).exists();
        halves.extend(output_of(folder, &name));
        forget_file(folder, &name);
        gone.extend(was_kept.then_some(name));
    }
    partial_outputs::remove_all_soon(halves);
    gone.sort();
    gone
}

/// The output of a stored application, if it is a regular file.
pub(crate) fn output_of(folder: &Path, name: &str) -> Vec<PathBuf> {
    let text = read_private(&folder.join(request_file(name)), MAX_BYTES).unwrap_or_default();
    let request = serde_json::from_slice(&text).ok();
    Vec::from_iter(request.and_then(|r| partial_outputs::output_of(&r)))
}

/// The names of all stored applications, and of foreign files; temporary files of a killed host are removed.
pub(crate) fn tidy(folder: &Path) -> (Vec<String>, Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let (mut names, mut foreign) = (Vec::new(), Vec::new());
    for entry in entries.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with('.') && file.ends_with(".new") {
            let _ = std::fs::remove_file(entry.path());
        } else if let Some(name) = file.strip_suffix(".json").filter(|n| !n.starts_with('.')) {
            match check_name(name) {
                Ok(()) => names.push(name.to_string()),
                Err(_) => foreign.push(file),
            }
        }
    }
    names.sort();
    foreign.sort();
    (names, foreign)
}
