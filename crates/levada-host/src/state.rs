// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a host remembers of what was loaded, for the one that comes after it: a file for each
//! application, written before it starts and taken away when it has ended. A host that is killed at any
//! moment leaves what ran then; a file appears and goes as a whole.

use crate::api::types::LoadRequest;
use crate::host::{Kind, Refusal};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of these files.
#[derive(Clone, Debug)]
pub struct Memory {
    folder: PathBuf,
}

/// `$XDG_STATE_HOME/levada/host`, `~/.local/state/levada/host`, or `/var/lib/levada/host` for root; none
/// where none of these can be.
pub fn usual_folder() -> Option<PathBuf> {
    // SAFETY: has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        return Some(PathBuf::from("/var/lib/levada/host"));
    }
    let folder = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|h| h.join(".local/state")))
        .map(|s| s.join("levada/host"))
}

impl Memory {
    pub fn open(folder: &Path) -> Result<Memory, Refusal> {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|e| {
            let what = format!("{}: {e}", folder.display());
            Refusal::new(Kind::Conflict, what).help("name another folder with --state DIR")
        })?;
        Ok(Memory {
            folder: folder.to_path_buf(),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Keeps how an application of this name was loaded.
    pub fn keep(&self, name: &str, request: &LoadRequest) -> std::io::Result<()> {
        let named = LoadRequest {
            name: Some(name.to_string()),
            ..request.clone()
        };
        let text = serde_json::to_vec_pretty(&named)?;
        // A name does not begin with a dot, so this is nobody's.
        let new = self.folder.join(format!(".{name}.new"));
        std::fs::write(&new, text)?;
        std::fs::rename(&new, self.file(name))
    }

    pub fn forget(&self, name: &str) {
        let _ = std::fs::remove_file(self.file(name));
    }

    /// All that are kept, by name; what cannot be read is said.
    pub fn kept(&self) -> Vec<(String, Result<LoadRequest, String>)> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(".json").filter(|n| !n.starts_with('.')) else {
                if file.starts_with('.') && file.ends_with(".new") {
                    // Half of something that a killed host had begun to keep.
                    let _ = std::fs::remove_file(&path);
                }
                continue;
            };
            let read = std::fs::read(&path).map_err(|e| e.to_string());
            let request = read.and_then(|text| {
                let mut request: LoadRequest =
                    serde_json::from_slice(&text).map_err(|e| e.to_string())?;
                request.name = Some(name.to_string());
                Ok(request)
            });
            all.push((name.to_string(), request));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(&folder.path().join("a/b")).unwrap();
        assert!(memory.kept().is_empty());
        let request = LoadRequest {
            network: "x.xdf".to_string(),
            directory: "/tmp".into(),
            priority: -3,
            ..LoadRequest::default()
        };
        memory.keep("one", &request).unwrap();
        memory.keep("two", &request).unwrap();
        memory.forget("two");
        std::fs::write(memory.file("bad"), "{").unwrap();
        std::fs::write(memory.folder.join(".half.new"), "{").unwrap();
        let kept = memory.kept();
        assert_eq!(kept.len(), 2);
        assert!(kept[0].0 == "bad" && kept[0].1.is_err());
        let one = kept[1].1.as_ref().unwrap();
        assert_eq!((one.name.as_deref(), one.priority), (Some("one"), -3));
        assert!(!memory.folder.join(".half.new").exists());
        assert!(Memory::open(&memory.file("bad")).is_err());
    }
}
