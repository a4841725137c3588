// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cache of the results of `levada prepare`, stored beside the compiled object. The key is the request and the
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

/// No answer is longer: what a compiler finds in the largest networks is a hundredth of it.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub object: PathBuf,
    /// The network's name.
    pub network: String,
    /// The options that its natives ask for, or any.
    pub names: Vec<String>,
    pub any_name: bool,
    pub files: Files,
    /// Its natives may count what it does.
    pub counts: bool,
    /// Warnings, as JSON and as they are shown.
    pub diagnostics: Vec<Value>,
    pub shown: String,
    pub seen: Vec<[String; 3]>,
}

/// Where an answer is kept.
#[derive(Debug)]
pub struct Entry {
    file: PathBuf,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Entry {
    /// Under all that decides what comes of what is seen.
    pub fn of(network: &NetworkArgs, how: &CompileArgs) -> Option<Entry> {
        let here = std::env::current_dir().ok()?;
        // This very program: its file may have been replaced.
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

    /// The answer, if it holds still.
    pub fn load(&self) -> Option<Answer> {
        compile::make_private(self.file.parent()?).ok()?;
        let text = String::from_utf8(read_private(&self.file, ANSWER_BYTES_MAX).ok()?).ok()?;
        // The hash tells what a full disk or a crash has damaged.
        let (hash, answer) = text.split_once('\n')?;
        if hash != hex(&Sha256::digest(answer)) {
            return None;
        }
        let answer: Answer = serde_json::from_str(answer).ok()?;
        let holds = fs_deps::holds(&answer.seen) && compile::is_kept(&answer.object);
        holds.then_some(answer)
    }

    /// Keeps it; without it the way is only longer.
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
