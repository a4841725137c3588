// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a state folder, and how they change: each appears or goes as a whole, and is on the disk then; of
//! several that change together all do, since the next host finishes what one that was killed has begun.

use crate::api::types::LoadRequest;
use crate::halves;
use crate::journal::held;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is changed of several files, which a next host finishes if it finds it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Change {
    pub(super) keep: Vec<LoadRequest>,
    pub(super) forget: Vec<String>,
}

pub(super) const CHANGE: &str = ".change";

impl Change {
    /// From the moment that its file is there it will be made, whatever happens.
    pub(super) fn make(&self, folder: &Path) -> std::io::Result<()> {
        // One file appears or goes as a whole anyway.
        let several = self.keep.len() + self.forget.len() > 1;
        if several {
            write_whole(folder, CHANGE, &serde_json::to_vec(self)?)?;
        }
        for request in &self.keep {
            write_request(folder, request)?;
        }
        for name in &self.forget {
            match std::fs::remove_file(folder.join(kept(name))) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        match several {
            true => std::fs::remove_file(folder.join(CHANGE)),
            false => Ok(()),
        }
    }

    /// What is kept under the names that it is to keep.
    pub(super) fn before(&self, folder: &Path) -> Vec<Before> {
        let names = self.keep.iter().filter_map(|r| r.name.as_deref());
        let files = names.map(|name| {
            let file = kept(name);
            let text = std::fs::read(folder.join(&file)).ok();
            (file, text)
        });
        files.collect()
    }
}

/// A file, and what was in it; none: there was no such file.
pub(super) type Before = (String, Option<Vec<u8>>);

/// Of what a change was to keep nothing is left, where it could not be made: what an earlier host has kept of the same
/// names is there as it was.
pub(super) fn take_back(folder: &Path, before: Vec<Before>) {
    for (file, was) in before {
        if std::fs::read(folder.join(&file)).ok() == was {
            continue;
        }
        let _ = match was {
            Some(text) => write_whole(folder, &file, &text),
            None => std::fs::remove_file(folder.join(&file)),
        };
    }
    let _ = std::fs::remove_file(folder.join(CHANGE));
}

/// Makes the change in whose midst the host before was ended.
pub(super) fn finish(folder: &Path) -> std::io::Result<()> {
    let text = match std::fs::read(folder.join(CHANGE)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{CHANGE}: {e}"));
    let change: Change = serde_json::from_slice(&text).map_err(|e| {
        let what = format!(
            "{CHANGE} is damaged ({e}): it says what the last host was about to load or unload together; once it is \
             removed, a host starts with what is kept beside it"
        );
        std::io::Error::other(what)
    })?;
    change.make(folder).map_err(named)?;
    // One alone needs no such file, and has left it.
    let _ = std::fs::remove_file(folder.join(CHANGE));
    Ok(())
}

pub(super) fn named(name: &str, request: &LoadRequest) -> LoadRequest {
    LoadRequest {
        name: Some(name.to_string()),
        ..request.clone()
    }
}

pub(super) fn write_request(folder: &Path, request: &LoadRequest) -> std::io::Result<()> {
    let name = request.name.as_deref().unwrap_or_default();
    let text = serde_json::to_vec_pretty(request)?;
    write_whole(folder, &kept(name), &text)
}

/// The file is there with all of the text, or as it was.
pub(super) fn write_whole(folder: &Path, name: &str, text: &[u8]) -> std::io::Result<()> {
    // A name does not begin with a dot, so this is nobody's.
    let new = folder.join(format!(".{name}.new"));
    let written = File::create(&new).and_then(|mut file| {
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
pub(super) fn kept(name: &str) -> String {
    format!("{name}.json")
}

/// The file that says that an application has been told to go.
pub(super) fn going(name: &str) -> String {
    format!("{name}.going")
}

/// Takes away what is kept of one; that it was to go last, so that it is known as long as it matters.
pub(super) fn forget_file(folder: &Path, name: &str) {
    let _ = std::fs::remove_file(folder.join(kept(name)));
    let _ = std::fs::remove_file(folder.join(going(name)));
}

/// Forgets all that had been told to go: their names.
pub(super) fn forget_gone(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let names = files.filter_map(|f| f.strip_suffix(".going").map(str::to_string));
    let (mut gone, mut halves) = (Vec::new(), Vec::new());
    for name in names.collect::<Vec<_>>() {
        let was_kept = folder.join(kept(&name)).exists();
        halves.extend(output_of(folder, &name));
        forget_file(folder, &name);
        let _ = std::fs::remove_file(folder.join(held(&name)));
        gone.extend(was_kept.then_some(name));
    }
    halves::remove_all_soon(halves);
    gone.sort();
    gone
}

/// Where one that is kept wrote, if that is a file.
pub(super) fn output_of(folder: &Path, name: &str) -> Vec<PathBuf> {
    let text = std::fs::read(folder.join(kept(name))).unwrap_or_default();
    let request = serde_json::from_slice(&text).ok();
    Vec::from_iter(request.and_then(|r| halves::output_of(&r)))
}

/// The names of all that are kept; halves that a killed host had begun to keep are removed.
pub(super) fn tidy(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with('.') && file.ends_with(".new") {
            let _ = std::fs::remove_file(entry.path());
        } else if let Some(name) = file.strip_suffix(".json").filter(|n| !n.starts_with('.')) {
            names.push(name.to_string());
        }
    }
    names.sort();
    names
}
