// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cache of the results of `levada prepare`, in the folder of the compiled objects. The key is the request and the
//! identity of this executable; the entry lists each file and folder that was read on the way. While these are
//! unchanged, a request is answered from the entry without reading or checking any source.

use crate::cli::{CompileArgs, NetworkArgs};
use crate::common::output;
use levada_cal::natives::Files;
use levada_cal::{compile, fs_deps};
use levada_files::read_private;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Bound on the size of an entry: the entries of the largest networks are a hundredth of it.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub object: PathBuf,
    /// The network's name.
    pub network: String,
    /// The options that its natives use; `any_name`: they may use any option.
    pub names: Vec<String>,
    pub any_name: bool,
    pub files: Files,
    /// Whether its natives may report progress.
    pub counts: bool,
    /// Warnings, as JSON and as they are shown.
    pub diagnostics: Vec<Value>,
    pub shown: String,
    pub seen: Vec<[String; 3]>,
}

/// The file of a cached result.
#[derive(Debug)]
pub struct Entry {
    file: PathBuf,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Entry {
    /// The entry for a request: its name is the hash of everything that determines the result besides the files.
    pub fn of(network: &NetworkArgs, how: &CompileArgs) -> Option<Entry> {
        let here = std::env::current_dir().ok()?;
        // The running executable: its file may have been replaced.
        let ours = std::fs::metadata("/proc/self/exe").ok()?;
        let ours = [
            ours.dev() as i64,
            ours.ino() as i64,
            ours.size() as i64,
            ours.mtime(),
            ours.mtime_nsec(),
            ours.ctime(),
            ours.ctime_nsec(),
        ];
        let set = ["CC", "CXX", "PATH"].map(std::env::var_os);
        let colors = output::color();
        let processor = compile::processor();
        let asked = format!("{network:?} {how:?} {here:?} {ours:?} {set:?} {colors} {processor}");
        let name = hex(&Sha256::digest(asked)[..20]);
        Some(Entry {
            file: compile::cache_dir().join(format!("{name}.prepared")),
        })
    }

    /// The cached result, if it is still valid.
    pub fn load(&self) -> Option<Answer> {
        compile::make_private(self.file.parent()?).ok()?;
        let text = String::from_utf8(read_private(&self.file, ANSWER_BYTES_MAX).ok()?).ok()?;
        // The hash detects entries that a full disk or a crash has damaged.
        let (hash, answer) = text.split_once('\n')?;
        if hash != hex(&Sha256::digest(answer)) {
            return None;
        }
        let answer: Answer = serde_json::from_str(answer).ok()?;
        let holds = fs_deps::holds(&answer.seen) && compile::is_kept(&answer.object);
        holds.then_some(answer)
    }

    /// Stores the result. Errors are ignored, since the cache only saves time.
    pub fn store(&self, answer: &Answer) {
        let Ok(answer) = serde_json::to_string(answer) else {
            return;
        };
        let text = format!("{}\n{answer}", hex(&Sha256::digest(&answer)));
        let own = format!("{}.prepared", std::process::id());
        let new = self.file.with_extension(own);
        let written = std::fs::write(&new, text);
        if written
            .and_then(|()| std::fs::rename(&new, &self.file))
            .is_err()
        {
            let _ = std::fs::remove_file(&new);
        }
    }
}
