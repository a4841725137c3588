// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a network to a shared object: emits C, runs the system's C compiler, keeps what it makes.
//!
//! Every object is kept in a cache under a name that is the hash of all that went into it: the C
//! text, the flags, the C compiler's version, the processor (code is made for this machine), the
//! runtime's headers. A file appears in the cache under its name by a rename, so that
//! processes may share it without locks; what has not been used for longest goes when it is full.
//! It ends with the hash of its content (linkers and loaders do not look behind an object's end): what
//! a full disk or a crash has damaged is made again, never loaded.

use crate::diag::Diagnostic;
use crate::natives::OptionNames;
use crate::{cpp, emit, fuse, headers, includes, ir, native_actors, seen};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug)]
pub struct Options {
    /// Check list indices and divisors (`--unchecked` leaves the checks out).
    pub checks: bool,
    /// What is read outside of a list is its nearest element, and what is written there is lost: no fault.
    pub lenient: bool,
    /// Give channels sizes by chance, from this seed.
    pub any_sizes: Option<u64>,
    /// Merge static actors that are connected into one.
    pub fuse: bool,
    /// C files with native functions.
    pub natives: Vec<PathBuf>,
    /// The C compiler; else `$CC`, else `cc`.
    pub cc: Option<String>,
    /// A command whose `cc` wraps `$LEVADA_CC` and knows `!!`, for natives that fork.
    pub forking: Option<PathBuf>,
    /// Where objects are kept; else [`cache_dir`].
    pub cache: Option<PathBuf>,
    /// More flags for the C compiler.
    pub flags: Vec<String>,
    /// Called before a C compiler is, for what is not in the cache.
    pub before: Option<fn()>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            checks: true,
            lenient: false,
            any_sizes: None,
            fuse: false,
            natives: Vec::new(),
            cc: None,
            forking: None,
            cache: None,
            flags: Vec::new(),
            before: None,
        }
    }
}

#[derive(Debug)]
pub enum CompileError {
    /// The C compiler cannot be started.
    NoCompiler { cc: String, why: io::Error },
    /// The C compiler fails, and not because of what it was given.
    Failing {
        cc: String,
        how: String,
        output: String,
    },
    /// A file cannot be read or written.
    File { path: PathBuf, why: io::Error },
    /// The folder where objects are kept cannot be used.
    Cache { path: PathBuf, why: io::Error },
    /// The C compiler refuses a user's native file.
    Native { path: PathBuf, output: String },
    /// A native function is not what it is declared as in CAL.
    Signature {
        path: PathBuf,
        line: usize,
        why: String,
        declaration: String,
    },
    /// Native functions that no file defines.
    Missing { names: Vec<String> },
    /// Native actors that no file defines.
    MissingActors { names: Vec<String> },
    /// The C compiler refuses what we wrote.
    Internal { file: PathBuf, output: String },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CompileError::NoCompiler { cc, why } => write!(
                f,
                "cannot run the C compiler `{cc}`: {why}\n  install one (Debian: apt-get install \
                 gcc libc6-dev), or set CC"
            ),
            CompileError::Failing { cc, how, output } => {
                let end = if output.trim().is_empty() { "" } else { ":" };
                write!(f, "the C compiler `{cc}` {how}{end}")?;
                for line in output.lines().take(20) {
                    write!(f, "\n  {line}")?;
                }
                write!(
                    f,
                    "\n  see whether CC names a C compiler, and whether there is room on the disk; \
                     `levada doctor` looks at both"
                )
            }
            CompileError::Cache { path, why } => write!(
                f,
                "compiled networks are kept in {}: {why}\n  set LEVADA_CACHE to a folder of yours \
                 that has room",
                path.display()
            ),
            CompileError::File { path, why } => write!(f, "{}: {why}", path.display()),
            CompileError::Native { path, output } => {
                write!(
                    f,
                    "{}: the C compiler refuses this file:\n{output}",
                    path.display()
                )
            }
            CompileError::Signature {
                path,
                line,
                why,
                declaration,
            } => write!(
                f,
                "{}:{line}: {why}\n  let it be as its declaration in CAL says:\n    {declaration};",
                path.display()
            ),
            CompileError::Missing { names } => write!(
                f,
                "no C file defines the native function{} {}\n  give the file with --native FILE, \
                 or put it into a folder `natives` beside the sources",
                if names.len() > 1 { "s" } else { "" },
                names.join(", ")
            ),
            CompileError::MissingActors { names } => write!(
                f,
                "no C file defines the native actor{} {}\n  a file has to have `const \
                 lvd_actor_class {} = {{...}}` (in C++: extern \"C\"): give it with --native FILE, or \
                 put it into a folder `natives` beside the sources",
                if names.len() > 1 { "s" } else { "" },
                names.join(", "),
                names[0]
            ),
            CompileError::Internal { file, output } => write!(
                f,
                "the C compiler refuses what was generated: this is an error in Levada, please \
                 report it\n  the C file: {}\n{output}",
                file.display()
            ),
        }
    }
}

impl std::error::Error for CompileError {}

/// What came of it.
#[derive(Debug)]
pub struct Compiled {
    /// The shared object, in the cache.
    pub object: PathBuf,
    pub warnings: Vec<Diagnostic>,
    /// It was there already.
    pub cached: bool,
    /// The options that its natives ask for.
    pub options: OptionNames,
}

/// The shared object of a network, made now or before.
pub fn compile(net: &ir::Network, options: &Options) -> Result<Compiled, CompileError> {
    let emitted = emit_c(net, options);
    let mut natives = Vec::new();
    for path in &options.natives {
        natives.push(read(path)?);
    }
    let builtin: Vec<_> = crate::natives::built_in(&emitted.natives, &natives).collect();
    let of_users = natives.iter().map(String::as_str);
    let all: Vec<&str> = of_users.chain(builtin.iter().map(|b| b.text)).collect();
    let objects = SharedObjects::open(&options.natives)?;
    let missing: Vec<String> = emitted
        .natives
        .iter()
        .filter(|n| !all.iter().any(|t| crate::natives::defines(t, n)))
        .filter(|n| !objects.define(n) && !in_process(n))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(CompileError::Missing { names: missing });
    }
    let missing = native_actors::missing(&emitted.native_actors, &natives, |n| objects.define(n));
    if !missing.is_empty() {
        return Err(CompileError::MissingActors { names: missing });
    }
    check_signatures(&emitted, &options.natives)?;

    let cc = Compiler::new(options)?;
    let cache = options.cache.clone().unwrap_or_else(cache_dir);
    make_private(&cache)?;
    let mut key = cc.key();
    for f in &emitted.files {
        key.update(&f.name);
        key.update(&f.text);
    }
    for (path, text) in options.natives.iter().zip(&natives) {
        key.update(path.as_os_str().as_encoded_bytes());
        key.update(text);
        for (included, content) in includes::quoted(path, text) {
            key.update(included.as_os_str().as_encoded_bytes());
            key.update(content);
        }
    }
    let mut names = OptionNames::default();
    for b in &builtin {
        key.update(b.text);
        names.add_built_in(b, &emitted.natives);
    }
    natives.iter().for_each(|text| names.add(text));
    names.any |= options.natives.iter().any(|p| is_shared_object(p));
    let object = cache.join(format!("{}.so", hex(key)));
    if is_kept(&object) {
        return Ok(Compiled {
            object,
            warnings: emitted.warnings,
            cached: true,
            options: names,
        });
    }

    if let Some(before) = options.before {
        before();
    }
    let work = Scratch::new(&cache)?;
    let mut jobs = Vec::new();
    for f in &emitted.files {
        let path = work.0.join(&f.name);
        write(&path, &f.text)?;
        jobs.push((path, None));
    }
    for b in &builtin {
        let path = work.0.join(b.file);
        let written = crate::natives::write(b, &work.0);
        written.map_err(|why| CompileError::File {
            path: path.clone(),
            why,
        })?;
        jobs.push((path, None));
    }
    for path in options.natives.iter().filter(|p| !is_shared_object(p)) {
        jobs.push((path.clone(), path.parent().map(Path::to_path_buf)));
    }
    let mut objects = cc.objects(&jobs, &work.0, &cache)?;
    objects.extend(
        options
            .natives
            .iter()
            .filter(|p| is_shared_object(p))
            .cloned(),
    );
    let out = work.0.join("network.so");
    let cpp = options.natives.iter().any(|p| cpp::is_cpp(p));
    if let Err(output) = cc.link(&objects, &out, cpp)? {
        return Err(CompileError::Internal {
            file: work.keep(),
            output,
        });
    }
    keep(&out, &object)?;
    prune(&cache);
    Ok(Compiled {
        object,
        warnings: emitted.warnings,
        cached: false,
        options: names,
    })
}

/// The C text alone (`levada build --emit c`).
pub fn emit_c(net: &ir::Network, options: &Options) -> emit::Emitted {
    let settings = emit::Options {
        checks: options.checks,
        lenient: options.lenient,
        any_sizes: options.any_sizes,
        ..emit::Options::default()
    };
    let (stand_ins, warnings) = native_actors::stand_ins(net, options);
    let net = stand_ins.as_ref().unwrap_or(net);
    let mut emitted = if options.fuse {
        emit::emit(&fuse::fuse(net), &settings)
    } else {
        emit::emit(net, &settings)
    };
    emitted.warnings.extend(warnings);
    emitted
}

/// Compiles next to nothing, with all flags and headers; what the compiler calls itself.
pub fn probe(options: &Options) -> Result<String, CompileError> {
    let cc = Compiler::new(options)?;
    let cache = options.cache.clone().unwrap_or_else(cache_dir);
    make_private(&cache)?;
    let work = Scratch::new(&cache)?;
    let file = work.0.join("probe.c");
    let text = "#include <levada/actor.h>\n#include <levada/native.h>\n#include <stdio.h>\n\
                #include <string.h>\nint levada_probe(void) { return printf(\"x\"); }\n";
    write(&file, text)?;
    let objects = cc.objects(&[(file, None)], &work.0, &cache)?;
    if let Err(output) = cc.link(&objects, &work.0.join("probe.so"), false)? {
        return Err(CompileError::Failing {
            cc: cc.name,
            how: "cannot link".to_string(),
            output,
        });
    }
    let version = cc.version.lines().next().unwrap_or("");
    Ok(format!("{}: {version}", cc.name))
}

/// Where compiled networks are kept: `$LEVADA_CACHE`, else `$XDG_CACHE_HOME/levada`, else
/// `~/.cache/levada`, else a folder of this user's among the temporary files.
pub fn cache_dir() -> PathBuf {
    let folder = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    folder("LEVADA_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|p| p.join("levada")))
        .or_else(|| folder("HOME").map(|p| p.join(".cache/levada")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("levada-{}", user())))
}

fn user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |m| m.uid())
}

/// What is in the cache is loaded into this process: nobody else may be able to put it there.
pub fn make_private(cache: &Path) -> Result<(), CompileError> {
    let refuse = |why: io::Error| CompileError::Cache {
        path: cache.to_path_buf(),
        why,
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(cache).map_err(refuse)?;
    let meta = fs::metadata(cache).map_err(refuse)?;
    if meta.uid() != user() || meta.mode() & 0o022 != 0 {
        return Err(refuse(io::Error::other(
            "others can write there, too; make it yours alone (chmod go-w)",
        )));
    }
    Ok(())
}

/// Removes everything from the cache; how many bytes that were.
pub fn clean_cache(dir: &Path) -> io::Result<u64> {
    let mut freed = 0;
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    for e in entries {
        let e = e?;
        let meta = e.metadata()?;
        if meta.is_dir() {
            if e.file_name().to_string_lossy().starts_with("tmp-") {
                fs::remove_dir_all(e.path())?;
            }
        } else if is_ours(&e.path()) {
            freed += meta.len();
            fs::remove_file(e.path())?;
        }
    }
    Ok(freed)
}

struct Compiler {
    name: String,
    words: Vec<String>,
    forking: Option<PathBuf>,
    flags: Vec<String>,
    version: String,
}

impl Compiler {
    fn new(options: &Options) -> Result<Compiler, CompileError> {
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
        flags.extend(options.flags.iter().cloned());
        let mut cc = Compiler {
            name,
            words,
            forking: options.forking.clone(),
            flags,
            version: String::new(),
        };
        cc.words.iter().for_each(|word| seen::program(word));
        let out = cc.output(cc.command(), |c| {
            c.arg("--version");
        })?;
        if !out.status.success() {
            return Err(cc.failing(&out));
        }
        cc.version = String::from_utf8_lossy(&out.stdout).into_owned();
        Ok(cc)
    }

    fn command(&self) -> Command {
        let mut c = Command::new(self.words.first().map_or("cc", String::as_str));
        c.args(self.words.iter().skip(1));
        c
    }

    /// What compiles a file: natives may fork.
    fn command_for(&self, path: &Path, is_native: bool) -> Result<Command, CompileError> {
        match &self.forking {
            _ if is_native && cpp::is_cpp(path) => Ok(cpp::compiler()),
            Some(forking) if is_native && may_fork(&read(path)?) => {
                Ok(wrapped(forking, &self.words.join(" ")))
            }
            _ => Ok(self.command()),
        }
    }

    /// Everything that decides what the compiler makes of a text.
    fn key(&self) -> Sha256 {
        let mut key = Sha256::new();
        for part in [self.name.as_str(), &self.version, &processor()] {
            key.update(part);
            key.update([0]);
        }
        for f in &self.flags {
            key.update(f);
            key.update([0]);
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

    /// Runs the compiler, which is to make `out`; the inner error is what it has against its input.
    fn run(
        &self,
        command: Command,
        out: &Path,
        set: impl FnOnce(&mut Command),
    ) -> Result<Result<(), String>, CompileError> {
        let done = self.output(command, |c| {
            set(c);
            c.arg("-o").arg(out);
        })?;
        if done.status.success() && out.is_file() {
            return Ok(Ok(()));
        }
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        // It has something against the input when it names a place there, or a symbol.
        let at_place = |line: &str, error: &str| {
            line.split_once(error).is_some_and(|(place, _)| {
                place.ends_with(|c: char| c.is_ascii_digit()) && place.contains(':')
            })
        };
        // A place is also named when the disk is full; and that a part of the compiler itself is not
        // there is said without one.
        let missing = |line: &str| {
            line.ends_with(": No such file or directory") || line.ends_with(" file not found")
        };
        let placed = |line: &str| {
            at_place(line, ": error: ")
                || line.contains("undefined reference")
                || line.starts_with("error[")
                || at_place(line, ": fatal error: ") && missing(line)
        };
        match said.lines().any(placed) {
            true => Ok(Err(said)),
            false => Err(self.failing(&done)),
        }
    }

    fn link(
        &self,
        objects: &[PathBuf],
        out: &Path,
        cpp: bool,
    ) -> Result<Result<(), String>, CompileError> {
        self.run(self.command(), out, |c| {
            c.arg("-shared").args(objects).arg("-lm");
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

    /// Compiles the files, each one once for ever, as many at a time as there are processors.
    fn objects(
        &self,
        jobs: &[(PathBuf, Option<PathBuf>)],
        work: &Path,
        cache: &Path,
    ) -> Result<Vec<PathBuf>, CompileError> {
        headers::write(&work.join("include")).map_err(|why| CompileError::Cache {
            path: cache.to_path_buf(),
            why,
        })?;
        let several = jobs.len() > 1;
        let next = AtomicU64::new(0);
        let threads = std::thread::available_parallelism()
            .map_or(1, |n| n.get())
            .min(jobs.len());
        let one = |i: usize| -> Result<PathBuf, CompileError> {
            let (path, folder) = &jobs[i];
            let mut key = self.key();
            key.update(read(path)?);
            if let Some(dir) = folder {
                // It may include files of its folder.
                key.update(path.as_os_str().as_encoded_bytes());
                key.update(dir.as_os_str().as_encoded_bytes());
            }
            let kept = cache.join(format!("{}.o", hex(key)));
            if several && folder.is_none() && is_sound(&kept) {
                touch(&kept);
                return Ok(kept);
            }
            let out = work.join(format!("{i}.o"));
            let command = self.command_for(path, folder.is_some())?;
            let result =
                self.run(command, &out, |c| {
                    c.args(self.flags.iter().map(|f| {
                        match folder.is_some() && cpp::is_cpp(path) {
                            true if f.starts_with("-std=") => cpp::STANDARD,
                            _ => f.as_str(),
                        }
                    }));
                    c.arg("-I").arg(work.join("include"));
                    c.arg("-c").arg(path);
                })?;
            if let Err(output) = result {
                return Err(match folder {
                    Some(_) => CompileError::Native {
                        path: path.clone(),
                        output,
                    },
                    None => CompileError::Internal {
                        file: keep_c(path, cache),
                        output,
                    },
                });
            }
            if several && folder.is_none() {
                keep(&out, &kept)?;
                return Ok(kept);
            }
            Ok(out)
        };
        let mut results: Vec<(usize, Result<PathBuf, CompileError>)> = Vec::new();
        std::thread::scope(|s| {
            let worker = || {
                let mut mine = Vec::new();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed) as usize;
                    if i >= jobs.len() {
                        return mine;
                    }
                    mine.push((i, one(i)));
                }
            };
            let handles: Vec<_> = (0..threads).map(|_| s.spawn(worker)).collect();
            for h in handles {
                results.extend(h.join().expect("compiling does not panic"));
            }
        });
        results.sort_by_key(|r| r.0);
        results.into_iter().map(|r| r.1).collect()
    }
}

/// Whether there may be forks in a C file.
pub fn may_fork(text: &str) -> bool {
    text.contains("!!")
}

/// The compiler that knows `!!`, around another.
pub fn wrapped(forking: &Path, cc: &str) -> Command {
    let mut c = Command::new(forking);
    c.arg("cc").env("LEVADA_CC", cc);
    c
}

/// The C file that was refused outlives the scratch folder.
fn keep_c(path: &Path, cache: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = cache.join(format!("refused-{name}"));
    match fs::copy(path, &kept) {
        Ok(_) => kept,
        Err(_) => path.to_path_buf(),
    }
}

/// A shared object among the natives, `.so` or `.so.1.2`: its functions are found by name.
pub fn is_shared_object(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let version = |v: &str| v.chars().all(|c| c.is_ascii_digit() || c == '.');
    name.ends_with(".so") || name.rsplit_once(".so.").is_some_and(|(_, v)| version(v))
}

/// What tells a program where the shared objects lie that it is linked with. (Each folder is an
/// argument of its own: in `-Wl` a comma ends one.)
pub fn run_paths(files: &[PathBuf]) -> Vec<OsString> {
    let objects = files.iter().filter(|p| is_shared_object(p));
    let folders: BTreeSet<&Path> = objects.filter_map(|p| p.parent()).collect();
    let path = |folder: &Path| {
        [
            "-Xlinker".into(),
            "-rpath".into(),
            "-Xlinker".into(),
            folder.into(),
        ]
    };
    folders.into_iter().flat_map(path).collect()
}

struct SharedObjects(Vec<libloading::Library>);

impl SharedObjects {
    fn open(natives: &[PathBuf]) -> Result<SharedObjects, CompileError> {
        let open = |path: &PathBuf| {
            // SAFETY: it is loaded with the network anyway; what runs when it is, is the user's.
            unsafe { libloading::Library::new(path) }.map_err(|e| {
                // What the loader says is the cause of what the crate says, and names the file first.
                let said = std::error::Error::source(&e).map_or(e.to_string(), |s| s.to_string());
                let named = format!("{}: ", path.display());
                let why = said.strip_prefix(&named).unwrap_or(&said);
                CompileError::File {
                    path: path.clone(),
                    why: io::Error::other(format!(
                        "this is no shared object that can be loaded: {why}"
                    )),
                }
            })
        };
        let files = natives.iter().filter(|p| is_shared_object(p));
        Ok(SharedObjects(files.map(open).collect::<Result<_, _>>()?))
    }

    fn define(&self, name: &str) -> bool {
        // SAFETY: the symbol is only looked up, never used.
        let has = |l: &libloading::Library| unsafe { l.get::<*const ()>(name.as_bytes()).is_ok() };
        self.0.iter().any(has)
    }
}

/// Are the natives in the C files what CAL takes them for?
pub fn check_signatures(emitted: &emit::Emitted, natives: &[PathBuf]) -> Result<(), CompileError> {
    for path in natives.iter().filter(|p| !is_shared_object(p)) {
        let text = read(path)?;
        for is in &emitted.signatures {
            if let Some((line, why)) = is.wrong_in(&text) {
                return Err(CompileError::Signature {
                    path: path.clone(),
                    line,
                    why,
                    declaration: is.declaration(),
                });
            }
        }
    }
    Ok(())
}

/// Is it a function that every program has, such as one of the C library's?
fn in_process(name: &str) -> bool {
    #[cfg(unix)]
    {
        let this = libloading::os::unix::Library::this();
        // SAFETY: the symbol is only looked up, never used.
        unsafe { this.get::<*const ()>(name.as_bytes()).is_ok() }
    }
    #[cfg(not(unix))]
    {
        let _ = name;
        false
    }
}

/// The flag that makes code for the processor of this machine; GCC has none for riscv64.
pub fn for_this_processor() -> Option<&'static str> {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")).then_some("-march=native")
}

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

fn hex(key: Sha256) -> String {
    key.finalize()
        .iter()
        .take(20)
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// The text of a file; of a shared object what looks like text, to tell one from another.
pub(crate) fn read(path: &Path) -> Result<String, CompileError> {
    seen::content(path);
    let text = match is_shared_object(path) {
        true => fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        false => fs::read_to_string(path),
    };
    text.map_err(|why| CompileError::File {
        path: path.to_path_buf(),
        why,
    })
}

fn write(path: &Path, text: &str) -> Result<(), CompileError> {
    fs::write(path, text).map_err(|why| CompileError::File {
        path: path.to_path_buf(),
        why,
    })
}

/// Puts what was made into the cache, with the hash of its content behind it: one that a crash of the
/// machine has torn is made anew, so nobody need wait for the disk.
fn keep(made: &Path, kept: &Path) -> Result<(), CompileError> {
    let seal = || -> io::Result<()> {
        let hash = Sha256::digest(fs::read(made)?);
        let mut file = fs::File::options().append(true).open(made)?;
        file.write_all(&hash)?;
        fs::rename(made, kept)
    };
    seal().map_err(|why| CompileError::File {
        path: kept.to_path_buf(),
        why,
    })
}

/// An object that [`compile`] has told of: is it in the cache still, as it was kept?
pub fn is_kept(object: &Path) -> bool {
    let is = is_sound(object);
    if is {
        touch(object);
    }
    is
}

/// Is it there, and as it was kept?
fn is_sound(kept: &Path) -> bool {
    let Ok(bytes) = fs::read(kept) else {
        return false;
    };
    let size = <Sha256 as Digest>::output_size();
    bytes.len() > size && {
        let (content, hash) = bytes.split_at(bytes.len() - size);
        Sha256::digest(content)[..] == *hash
    }
}

fn touch(path: &Path) {
    // The time of the last use orders the cache; if it cannot be set, it stays as it was.
    if let Ok(f) = fs::File::options().append(true).open(path) {
        let _ = f.set_modified(SystemTime::now());
    }
}

fn is_ours(path: &Path) -> bool {
    matches!(
        path.extension().and_then(|e| e.to_str()),
        Some("so" | "o" | "c" | "measured" | "prepared")
    )
}

/// The cache may grow to this, and nothing that was used a short while ago goes.
const CACHE_BYTES: u64 = 512 << 20;
const RECENT: Duration = Duration::from_secs(600);

fn prune(cache: &Path) {
    remove_abandoned(cache);
    let Ok(entries) = fs::read_dir(cache) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|e| is_ours(&e.path()))
        .filter_map(|e| {
            let meta = e.metadata().ok()?;
            Some((meta.modified().ok()?, meta.len(), e.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    files.sort();
    for (used, size, path) in files {
        let recent = used.elapsed().map_or(true, |age| age < RECENT);
        if total <= CACHE_BYTES || recent {
            return;
        }
        if fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}

/// Removes the scratch folders of processes that were killed.
fn remove_abandoned(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|n| n.strip_prefix("tmp-"));
        let process = of.and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder for one compilation, in the cache so that renames stay on one file system.
struct Scratch(PathBuf);

impl Scratch {
    fn new(cache: &Path) -> Result<Scratch, CompileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = cache.join(format!("tmp-{}-{n}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(|why| CompileError::Cache {
            path: cache.to_path_buf(),
            why,
        })?;
        Ok(Scratch(dir))
    }

    fn keep(&self) -> PathBuf {
        let kept = self.0.with_file_name("refused");
        let _ = fs::remove_dir_all(&kept);
        match fs::rename(&self.0, &kept) {
            Ok(()) => kept,
            Err(_) => self.0.clone(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
