// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiled networks by the command line that names them, for `levada run` and `levada prepare`. The cache is in the
//! folder of the compiled objects. The key is the request and the identity of this executable; the entry lists each
//! file and folder that was read on the way. While these are unchanged, a request is answered from the entry without
//! reading or checking any source.

use crate::cli::{CompileArgs, NetworkArgs};
use crate::common::output::{self, Failure};
use crate::common::resolve;
use levada_cal::ir::SourceFile;
use levada_cal::natives::{Files, OptionNames};
use levada_cal::workspace::source_text;
use levada_cal::{compile, fs_deps};
use levada_files::read_private;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
    /// The texts that were compiled; `None` if the answer is from the cache.
    #[serde(skip)]
    pub texts: Option<Vec<SourceFile>>,
    /// Whether no C compiler ran.
    #[serde(skip)]
    pub is_cached: bool,
}

impl Answer {
    pub fn option_names(&mut self) -> OptionNames {
        let names = std::mem::take(&mut self.names);
        OptionNames::again(names, self.any_name, self.files)
    }
}

/// The sources of a network that runs, for the report of a fault.
#[derive(Debug, Default)]
pub enum CompiledSources {
    /// A C program has none.
    #[default]
    None,
    /// As compiled.
    Texts(Vec<SourceFile>),
    /// In their files, while these dependencies are unchanged.
    Files(Vec<[String; 3]>),
}

impl CompiledSources {
    /// The text of a file as it was compiled, if it is known.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        let file = || source_text(Path::new(path)).ok();
        match self {
            CompiledSources::None => file(),
            CompiledSources::Texts(all) => match all.iter().find(|f| f.path == path) {
                Some(known) => Some(known.text.clone()),
                None => file(),
            },
            CompiledSources::Files(seen) => fs_deps::holds(seen).then(file)?,
        }
    }
}

/// The compiled network, from the cache if nothing that it depends on has changed. Diagnostics are printed in either
/// case, the progress of compiling if it is not `quiet`. `before` is called before a C compiler runs.
pub fn prepared(
    network: &NetworkArgs,
    how: &CompileArgs,
    quiet: bool,
    before: Option<fn()>,
) -> Result<Answer, Failure> {
    let entry = Entry::of(network, how);
    if let Some(made) = entry.as_ref().and_then(Entry::load) {
        // It is escaped already, and may have colours.
        output::say_text(&made.shown);
        return Ok(made);
    }
    fs_deps::begin();
    let mut loaded = resolve::load(network)?;
    let mut options = resolve::compile_options(&loaded, how)?;
    options.before = before;
    options.progress = options.progress.filter(|_| !quiet);
    let made = resolve::compile(&mut loaded, &options)?;
    let mut answer = Answer {
        object: made.object,
        network: loaded.network.name,
        names: made.options.all().map(str::to_string).collect(),
        any_name: made.options.any,
        files: made.options.files,
        counts: made.options.counts,
        diagnostics: loaded.diagnostics,
        shown: loaded.shown,
        seen: Vec::new(),
        texts: Some(loaded.network.files),
        is_cached: made.cached,
    };
    if let (Some(seen), Some(entry)) = (fs_deps::taken(), entry) {
        answer.seen = seen;
        entry.store(&answer);
    }
    Ok(answer)
}

/// The file of a cached result.
#[derive(Debug)]
struct Entry {
    file: PathBuf,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Entry {
    /// The entry for a request: its name is the hash of everything that determines the result besides the files.
    fn of(network: &NetworkArgs, how: &CompileArgs) -> Option<Entry> {
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
        let set = compile::ENVIRONMENT.map(std::env::var_os);
        let colors = output::color();
        let processor = compile::processor();
        // What is shown on the way makes no difference.
        let how = CompileArgs {
            quiet: false,
            ..how.clone()
        };
        let asked = format!("{network:?} {how:?} {here:?} {ours:?} {set:?} {colors} {processor}");
        let name = hex(&Sha256::digest(asked)[..20]);
        Some(Entry {
            file: compile::cache_dir().join(format!("{name}.prepared")),
        })
    }

    /// The cached result, if it is still valid.
    fn load(&self) -> Option<Answer> {
        compile::make_private(self.file.parent()?).ok()?;
        let text = String::from_utf8(read_private(&self.file, ANSWER_BYTES_MAX).ok()?).ok()?;
        // The hash detects entries that a full disk or a crash has damaged.
        let (hash, answer) = text.split_once('\n')?;
        if hash != hex(&Sha256::digest(answer)) {
            return None;
        }
        let answer: Answer = serde_json::from_str(answer).ok()?;
        let holds = fs_deps::holds(&answer.seen) && compile::is_kept(&answer.object);
        if holds && let Ok(file) = std::fs::File::open(&self.file) {
            // The cache removes first what was used least recently.
            let _ = file.set_modified(SystemTime::now());
        }
        holds.then_some(Answer {
            is_cached: true,
            ..answer
        })
    }

    /// Stores the result. Errors are ignored, since the cache only saves time.
    fn store(&self, answer: &Answer) {
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
