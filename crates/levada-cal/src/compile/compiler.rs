// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the C compiler: selects it, passes the flags, and turns its messages into diagnostics.

use super::cache::{Scratch, is_kept, seal};
use super::included_files::ENVIRONMENT;
use super::{CompileError, Options, jobs_of, read, run_paths};
use crate::{cpp, fs_deps, headers};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub struct Compiler {
    pub name: String,
    words: Vec<String>,
    forking: Option<PathBuf>,
    flags: Vec<String>,
    pub version: String,
    progress: Option<fn(usize, usize)>,
}

/// A file that was compiled.
pub struct Object {
    pub path: PathBuf,
    /// The compiler's messages, if it was compiled now.
    pub said: String,
    /// The rule with the files that it read, for a user's native.
    pub rule: Option<PathBuf>,
}

impl From<PathBuf> for Object {
    fn from(path: PathBuf) -> Object {
        Object {
            path,
            said: String::new(),
            rule: None,
        }
    }
}

/// The undefined symbols of this shared object; empty if its format is unknown.
pub fn undefined(path: &Path) -> BTreeSet<String> {
    use object::{Object, ObjectSymbol};
    let bytes = std::fs::read(path).unwrap_or_default();
    let Ok(file) = object::File::parse(&*bytes) else {
        return BTreeSet::new();
    };
    let wanted = file.dynamic_symbols().filter(|s| s.is_undefined());
    let names = wanted.filter_map(|s| Some(s.name().ok()?.to_string()));
    names.collect()
}

/// Whether a part of this shared object that the loader would map is missing, for example because it is being copied.
/// Access to that part would raise SIGBUS. Files that are not objects are refused by the loader.
pub fn is_cut(path: &Path) -> bool {
    use object::{Object, ObjectSegment};
    let bytes = std::fs::read(path).unwrap_or_default();
    if !bytes.starts_with(&object::elf::ELFMAG) {
        return false;
    }
    let there = |(at, size): (u64, u64)| at.saturating_add(size) <= bytes.len() as u64;
    match object::File::parse(&*bytes) {
        Ok(file) => !file.segments().all(|s| there(s.file_range())),
        Err(_) => true,
    }
}

impl Compiler {
    pub fn new(options: &Options) -> Result<Compiler, CompileError> {
        let name = options
            .cc
            .clone()
            .or_else(|| std::env::var("CC").ok().filter(|c| !c.trim().is_empty()))
            .unwrap_or_else(|| "cc".to_string());
        // CC may have arguments, as in "ccache gcc".
        let words: Vec<String> = name.split_whitespace().map(str::to_string).collect();
        let mut flags: Vec<String> = [
            "-std=c17",
            "-O3",
            "-g1",
            "-fPIC",
            "-fvisibility=hidden",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-Wall",
            "-Wno-unused",
            "-D_GNU_SOURCE",
        ]
        .map(str::to_string)
        .to_vec();
        flags.extend(for_this_processor().map(str::to_string));
        flags.extend(touches_each_page().map(str::to_string));
        flags.extend(options.flags.iter().cloned());
        let mut cc = Compiler {
            name,
            words,
            forking: options.forking.clone(),
            flags,
            version: String::new(),
            progress: options.progress,
        };
        cc.words.iter().for_each(|word| fs_deps::program(word));
        let out = cc.output(cc.command(), |c| {
            c.arg("--version");
        })?;
        if !out.status.success() {
            return Err(cc.failing(&out));
        }
        cc.version = String::from_utf8_lossy(&out.stdout).into_owned();
        // GCC has no such limit, and not this flag; a row of `elsif` nests as many blocks.
        if cc.version.contains("clang") {
            cc.flags.push("-fbracket-depth=16384".into());
        }
        Ok(cc)
    }

    /// The options that this file is compiled with, whether it goes into an object or into a program. One of a
    /// user's may be C++.
    pub fn options(&self, is_cpp: bool) -> impl Iterator<Item = &str> {
        self.flags.iter().map(move |f| match is_cpp {
            true if f.starts_with("-std=") => cpp::STANDARD,
            _ => f.as_str(),
        })
    }

    /// The compiler's command line and flags.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().chain(&self.flags).map(String::as_str)
    }

    pub fn command(&self) -> Command {
        let mut c = Command::new(self.words.first().map_or("cc", String::as_str));
        c.args(self.words.iter().skip(1));
        c
    }

    /// The command that compiles a file; natives may contain forks.
    fn command_for(&self, path: &Path, is_native: bool) -> Result<Command, CompileError> {
        match &self.forking {
            _ if is_native && cpp::is_cpp(path) => Ok(cpp::compiler()),
            Some(forking) if is_native && may_fork(&read(path)?) => {
                Ok(wrapped(forking, &self.words.join(" ")))
            }
            _ => Ok(self.command()),
        }
    }

    /// The hash of everything besides the text that determines the compiler's output.
    pub fn key(&self) -> Sha256 {
        let mut key = Sha256::new();
        for part in [self.name.as_str(), &self.version, &processor()] {
            key.update(part);
            key.update([0]);
        }
        for f in &self.flags {
            key.update(f);
            key.update([0]);
        }
        let set = ENVIRONMENT.iter().filter(|name| **name != "PATH");
        let set: Vec<_> = set
            .filter_map(|name| Some((name, std::env::var_os(name)?)))
            .collect();
        for (name, value) in &set {
            key.update(name);
            key.update(value.as_encoded_bytes());
            key.update([0]);
        }
        // Their relative paths.
        if self.words.len() > 1 || !set.is_empty() {
            let here = std::env::current_dir().unwrap_or_default();
            key.update(here.as_os_str().as_encoded_bytes());
        }
        for (name, text) in headers::FILES.iter().chain(crate::natives::HEADERS) {
            key.update(name);
            key.update(text);
        }
        key
    }

    fn output(
        &self,
        mut c: Command,
        set: impl FnOnce(&mut Command),
    ) -> Result<Output, CompileError> {
        set(&mut c);
        c.stdin(Stdio::null());
        c.output().map_err(|why| CompileError::NoCompiler {
            cc: self.name.clone(),
            why,
        })
    }

    /// Runs the compiler to create `out`; returns its messages. The inner error is an error in its input.
    fn run(
        &self,
        command: Command,
        out: &Path,
        set: impl FnOnce(&mut Command),
    ) -> Result<Result<String, String>, CompileError> {
        let done = self.output(command, |c| {
            set(c);
            c.arg("-o").arg(out);
        })?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() && out.is_file() {
            return Ok(Ok(said));
        }
        // It is an error in the input if the message names a place in it, or a symbol.
        let at_place = |line: &str, error: &str| {
            line.split_once(error).is_some_and(|(place, _)| {
                place.ends_with(|c: char| c.is_ascii_digit()) && place.contains(':')
            })
        };
        // A place is also named when the disk is full; a missing part of the compiler is reported without one.
        let missing = |line: &str| {
            line.ends_with(": No such file or directory") || line.ends_with(" file not found")
        };
        let placed = |line: &str| {
            at_place(line, ": error: ")
                || line.contains("undefined reference")
                || line.starts_with("error[")
                || at_place(line, ": fatal error: ") && missing(line)
        };
        if said.lines().any(placed) {
            Ok(Err(said))
        } else {
            Err(self.failing(&done))
        }
    }

    pub fn link(
        &self,
        objects: &[PathBuf],
        out: &Path,
        cpp: bool,
    ) -> Result<Result<String, String>, CompileError> {
        self.run(self.command(), out, |c| {
            c.args(["-shared", BINDS_OWN]).args(objects).arg("-lm");
            c.args(cpp.then_some(cpp::LIBRARY));
            c.args(run_paths(objects));
        })
    }

    fn failing(&self, done: &Output) -> CompileError {
        let mut output = String::from_utf8_lossy(&done.stderr).into_owned();
        if output.trim().is_empty() {
            output = String::from_utf8_lossy(&done.stdout).into_owned();
        }
        CompileError::Failing {
            cc: self.name.clone(),
            how: match (done.status.code(), done.status.signal()) {
                (Some(0), _) => "ends well, and makes nothing".to_string(),
                (Some(code), _) => format!("fails with status {code}"),
                (None, signal) => format!("was killed by signal {}", signal.unwrap_or(0)),
            },
            output,
        }
    }

    /// The external symbols that the C files among these natives define.
    pub fn defined(
        &self,
        natives: &[PathBuf],
        cache: &Path,
    ) -> Result<BTreeSet<String>, CompileError> {
        use object::{Object, ObjectSymbol};
        let jobs: Vec<_> = jobs_of(natives).collect();
        let work = Scratch::new(cache)?;
        let mut names = BTreeSet::new();
        for path in self
            .objects(&jobs, &work.path, cache)?
            .into_iter()
            .map(|o| o.path)
        {
            let bytes = std::fs::read(&path).map_err(|why| CompileError::File {
                path: path.clone(),
                why,
            })?;
            // Unknown formats are ignored.
            if let Ok(file) = object::File::parse(&*bytes) {
                let given = file
                    .symbols()
                    .filter(|s| s.is_global() && s.is_definition());
                names.extend(given.filter_map(|s| Some(s.name().ok()?.to_string())));
            }
        }
        Ok(names)
    }

    /// Compiles the files that are not cached, in parallel on all processors.
    pub fn objects(
        &self,
        jobs: &[(PathBuf, Option<PathBuf>)],
        work: &Path,
        cache: &Path,
    ) -> Result<Vec<Object>, CompileError> {
        headers::write(&work.join("include")).map_err(|why| CompileError::Cache {
            path: cache.to_path_buf(),
            why,
        })?;
        // The largest first: the last one to be finished then is a small one.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        let bytes = |i: &usize| fs::metadata(&jobs[*i].0).map_or(0, |meta| meta.len());
        order.sort_by_cached_key(|i| std::cmp::Reverse(bytes(i)));
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let report = |done: usize| {
            if let Some(report) = self.progress {
                report(done, jobs.len());
            }
        };
        report(0);
        let one = |i: usize| {
            let kept = if jobs.len() > 1 { Some(cache) } else { None };
            self.object(&jobs[i], &work.join(format!("{i}.o")), cache, kept)
        };
        let threads = std::thread::available_parallelism()
            .map_or(1, |n| n.get())
            .min(jobs.len());
        let mut results: Vec<(usize, Result<Object, CompileError>)> = Vec::new();
        std::thread::scope(|s| {
            let worker = || {
                let mut mine = Vec::new();
                while let Some(&i) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    mine.push((i, one(i)));
                    report(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
                mine
            };
            let handles: Vec<_> = (0..threads).map(|_| s.spawn(worker)).collect();
            for h in handles {
                results.extend(h.join().expect("compiling does not panic"));
            }
        });
        results.sort_by_key(|r| r.0);
        results.into_iter().map(|r| r.1).collect()
    }

    /// Compiles one file to `out`. A native has a folder, of which it may include files. The object of another file is
    /// taken from the folder `kept`, and put there.
    fn object(
        &self,
        (path, folder): &(PathBuf, Option<PathBuf>),
        out: &Path,
        cache: &Path,
        kept: Option<&Path>,
    ) -> Result<Object, CompileError> {
        let kept = match kept.filter(|_| folder.is_none()) {
            Some(kept) => {
                let mut key = self.key();
                key.update(read(path)?);
                Some(kept.join(format!("{}.o", hex(key))))
            }
            None => None,
        };
        // A link of our own, since another process may remove that file before it is linked.
        if let Some(kept) = &kept
            && is_kept(kept)
            && linked(kept, out).is_ok()
        {
            return Ok(out.to_path_buf().into());
        }
        let command = self.command_for(path, folder.is_some())?;
        let rule = folder.as_ref().map(|_| out.with_extension("d"));
        let result = self.run(command, out, |c| {
            if let Some(rule) = &rule {
                c.args(["-MD", "-MF"]).arg(rule);
            }
            c.args(self.options(folder.is_some() && cpp::is_cpp(path)));
            c.arg("-I").arg(out.parent().unwrap_or(out).join("include"));
            c.arg("-c").arg(path);
        })?;
        let said = result.map_err(|output| match folder {
            Some(_) => CompileError::Native {
                path: path.clone(),
                output,
            },
            None => CompileError::Internal {
                file: keep_c(path, cache),
                output,
            },
        })?;
        if let Some(kept) = &kept {
            // The object itself stays for the linker, which ignores its seal.
            seal(out)
                .and_then(|()| publish(out, kept))
                .map_err(|why| CompileError::File {
                    path: kept.clone(),
                    why,
                })?;
            return Ok(out.to_path_buf().into());
        }
        Ok(Object {
            path: out.to_path_buf(),
            said,
            rule,
        })
    }
}

/// Puts a sealed file into the cache and keeps it, too.
fn publish(made: &Path, kept: &Path) -> std::io::Result<()> {
    let new = made.with_extension("new");
    linked(made, &new)?;
    fs::rename(&new, kept)?;
    // The names of one file are not exchanged: rename does nothing then.
    let _ = fs::remove_file(&new);
    Ok(())
}

/// Gives a file of the cache a second name; where there are no such links, copies it.
fn linked(kept: &Path, name: &Path) -> std::io::Result<()> {
    fs::hard_link(kept, name).or_else(|_| fs::copy(kept, name).map(drop))
}

/// Whether there may be forks in a C file.
pub fn may_fork(text: &str) -> bool {
    text.contains("!!")
}

/// The compiler driver for forks, wrapped around another compiler.
pub fn wrapped(forking: &Path, cc: &str) -> Command {
    let mut c = Command::new(forking);
    c.arg("cc").env("LEVADA_CC", cc);
    c
}

/// Copies a refused C file out of the scratch folder.
fn keep_c(path: &Path, cache: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = cache.join(format!("refused-{name}"));
    match fs::copy(path, &kept) {
        Ok(_) => kept,
        Err(_) => path.to_path_buf(),
    }
}

/// The flag that optimises for the processor of this machine; GCC has none for riscv64.
pub fn for_this_processor() -> Option<&'static str> {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")).then_some("-march=native")
}

/// The flag for stack probes: a frame that is larger than the guard page touches each of its pages, so that it cannot
/// jump over the guard into other memory. For processors other than x86-64 not every compiler supports it: there the
/// compiler that CC names is tested.
pub fn touches_each_page() -> Option<&'static str> {
    const FLAG: &str = "-fstack-clash-protection";
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let known = *KNOWN.get_or_init(|| {
        cfg!(target_arch = "x86_64") || {
            // CC may be `levada cc`, which would run the same test.
            let cc = std::env::var("CC").ok().filter(|c| !c.contains("levada"));
            let cc = cc.unwrap_or_else(|| "cc".to_string());
            let mut words = cc.split_whitespace();
            Command::new(words.next().unwrap_or("cc"))
                .args(words)
                .args(["-Werror", FLAG, "-fsyntax-only", "-x", "c", "/dev/null"])
                .output()
                .is_ok_and(|out| out.status.success())
        }
    });
    known.then_some(FLAG)
}

/// The flag that lets a shared object call its own functions, whatever else in the process has the same name.
pub const BINDS_OWN: &str = "-Wl,-Bsymbolic";

/// What `-march=native` depends on.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let wanted = ["model name", "flags", "Features", "CPU part", "isa"];
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|l| wanted.iter().any(|w| l.starts_with(w)))
        .collect();
    lines.sort();
    lines.dedup();
    format!("{} {}", std::env::consts::ARCH, lines.join("\n"))
}

pub fn hex(key: Sha256) -> String {
    key.finalize()
        .iter()
        .take(20)
        .map(|b| format!("{b:02x}"))
        .collect()
}
