// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles a network to a shared object: emits C, runs the system's C compiler, and caches the result.
//!
//! The name of a cached object is the hash of all its inputs: the C text, the flags, the version of the C compiler,
//! the processor (code is optimised for this machine), and the runtime's headers. A file gets its name in the cache
//! by a rename, so processes share the cache; when it is full, the least recently used files that nothing uses are
//! removed ([`cache_size`]). A file ends with the hash of its content (linkers and loaders ignore what follows the end
//! of an object). A file that a full disk or a crash has damaged is therefore rebuilt and never loaded.

mod cache;
mod cache_size;
mod compiler;
mod implicit_decls;
mod included_files;
mod native_actors;

use crate::diag::Diagnostic;
use crate::natives::OptionNames;
use crate::workspace::read_source;
use crate::{cpp, emit, fs_deps, fuse, includes, ir};
use cache::{Scratch, keep};
pub use cache::{cache_dir, clean_cache, has_seal, hash_of, is_kept, make_private, seal};
pub use cache_size::{SIZE_VARIABLE, prune as prune_cache, size as cache_size, size_limit};
use compiler::hex;
pub use compiler::{
    BINDS_OWN, Compiler, for_this_processor, may_fork, processor, touches_each_page, wrapped,
};
pub use implicit_decls::ImplicitDecl;
pub use included_files::ENVIRONMENT;
use included_files::IncludedFiles;
use sha2::Digest;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fmt, fs, io};

#[derive(Clone, Debug)]
pub struct Options {
    /// Check list indices and divisors (`--unchecked` leaves the checks out).
    pub checks: bool,
    /// Reading out of bounds gives the nearest element, and writing out of bounds does nothing, instead of a fault.
    pub lenient: bool,
    /// Seed for random channel sizes.
    pub random_buffer_sizes: Option<u64>,
    /// Merge static actors that are connected into one.
    pub fuse: bool,
    /// Emit a single C file, whatever its size.
    pub one_file: bool,
    /// C files with native functions.
    pub natives: Vec<PathBuf>,
    /// The C compiler; else `$CC`, else `cc`.
    pub cc: Option<String>,
    /// The command with the subcommand `cc` that translates forks in natives.
    pub forking: Option<PathBuf>,
    /// The folder of the cache; default: [`cache_dir`].
    pub cache: Option<PathBuf>,
    /// The limit on its size in bytes; default: [`size_limit`].
    pub cache_bytes: Option<u64>,
    /// More flags for the C compiler.
    pub flags: Vec<String>,
    /// Called before a C compiler runs, if the object is not in the cache.
    pub before: Option<fn()>,
    /// Called with the number of C files that are compiled, and of all, whenever the first changes; by several
    /// threads.
    pub progress: Option<fn(usize, usize)>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            checks: true,
            lenient: false,
            random_buffer_sizes: None,
            fuse: false,
            one_file: false,
            natives: Vec::new(),
            cc: None,
            forking: None,
            cache: None,
            cache_bytes: None,
            flags: Vec::new(),
            before: None,
            progress: None,
        }
    }
}

/// A native function that no file defines.
#[derive(Debug)]
pub struct Undefined {
    pub name: String,
    /// File and line of its declaration in CAL.
    pub place: String,
    /// As a declaration in C.
    pub declaration: String,
}

#[derive(Debug)]
pub enum CompileError {
    /// The C compiler cannot be started.
    NoCompiler { cc: String, why: io::Error },
    /// The C compiler fails, but not because of an error in its input.
    Failing {
        cc: String,
        how: String,
        output: String,
    },
    /// A file cannot be read or written.
    File { path: PathBuf, why: io::Error },
    /// The cache folder cannot be used.
    Cache { path: PathBuf, why: io::Error },
    /// The C compiler refuses a user's native file.
    Native { path: PathBuf, output: String },
    /// The definition of a native function contradicts its declaration in CAL.
    NativeSignature {
        path: PathBuf,
        line: usize,
        why: String,
        declaration: String,
    },
    /// Native functions that no file defines.
    Missing { natives: Vec<Undefined> },
    /// A native function of a shared object would not be called: the C library or Levada has one of its name.
    Replaced { name: String },
    /// Native actors that no file defines.
    MissingActors { names: Vec<String> },
    /// The C compiler refuses emitted code.
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
            CompileError::NativeSignature {
                path,
                line,
                why,
                declaration,
            } => write!(
                f,
                "{}:{line}: {why}\n  let it be as its declaration in CAL says:\n    {declaration};",
                path.display()
            ),
            CompileError::Missing { natives } => {
                let s = if natives.len() > 1 { "s" } else { "" };
                let places = natives.iter().map(|n| format!("{} ({})", n.name, n.place));
                let places = places.collect::<Vec<_>>().join(", ");
                writeln!(
                    f,
                    "no C file defines the native function{s} {places}\n  give the file with --native FILE, or \
                     put it into a folder `natives` next to the sources; it has to have (in C++: extern \"C\")"
                )?;
                let rows = natives.iter().map(|n| format!("    {};", n.declaration));
                f.write_str(&rows.collect::<Vec<_>>().join("\n"))
            }
            CompileError::Replaced { name } => write!(
                f,
                "the native function {name} of a shared object would not be called: the C library or \
                 Levada has a function of the same name, which the loader finds first\n  give it another \
                 name, or give the C file that defines it with --native FILE"
            ),
            CompileError::MissingActors { names } => write!(
                f,
                "no C file defines the native actor{} {}\n  a file has to have `const \
                 lvd_actor_class {} = {{...}}` (in C++: extern \"C\"): give it with --native FILE, or \
                 put it into a folder `natives` next to the sources",
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

/// The result of a compilation.
#[derive(Debug)]
pub struct Compiled {
    /// The shared object, in the cache.
    pub object: PathBuf,
    pub warnings: Vec<Diagnostic>,
    /// Undeclared functions that its natives call.
    pub implicit_decls: Vec<ImplicitDecl>,
    /// Whether it was in the cache.
    pub cached: bool,
    /// The options that its natives use, and whether they report progress.
    pub options: OptionNames,
}

/// Compiles a network, or takes its shared object from the cache.
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
    let there = |n: &String| objects.find(n) == Found::Own;
    let mut missing: Vec<String> = emitted
        .natives
        .iter()
        .filter(|n| !all.iter().any(|t| crate::natives::defines(t, n)))
        .filter(|n| !there(n))
        .cloned()
        .collect();
    let cc = Compiler::new(options)?;
    let cache = options.cache.clone().unwrap_or_else(cache_dir);
    make_private(&cache)?;
    if !missing.is_empty() {
        // A macro or an included file may define it, so the compiled symbols are checked.
        let defined = cc.defined(&options.natives, &cache)?;
        missing.retain(|n| !defined.contains(n));
    }
    let replaced = missing.iter().find(|n| objects.find(n) == Found::Replaced);
    if let Some(name) = replaced {
        return Err(CompileError::Replaced { name: name.clone() });
    }
    if !missing.is_empty() {
        return Err(undefined(&emitted, &missing));
    }
    let own = |name: &str| objects.find(name) == Found::Own;
    let missing = native_actors::missing(&emitted.native_actors, &natives, own);
    if !missing.is_empty() {
        return Err(CompileError::MissingActors { names: missing });
    }
    check_signatures(&emitted, &options.natives)?;

    let mut key = cc.key();
    let cpp = options.natives.iter().any(|p| cpp::is_cpp(p));
    if cpp {
        key.update(cpp::version());
    }
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
    // Shared objects give no such information.
    if options.natives.iter().any(|p| is_shared_object(p)) {
        names.any = true;
        names.counts = true;
    }
    let object = cache.join(format!("{}.so", hex(key)));
    let has_sources = jobs_of(&options.natives).next().is_some();
    if is_kept(&object) && (!has_sources || IncludedFiles::are_unchanged(&object)) {
        return Ok(Compiled {
            warnings: emitted.warnings,
            implicit_decls: implicit_decls::again(&object),
            object,
            cached: true,
            options: names,
        });
    }

    if let Some(before) = options.before {
        before();
    }
    let begun = SystemTime::now();
    let work = Scratch::new(&cache)?;
    let mut jobs = Vec::new();
    // Names of networks and actors are the user's, so their files have a folder of their own.
    let network = work.path.join("network");
    fs::create_dir(&network).map_err(|why| CompileError::Cache {
        path: cache.clone(),
        why,
    })?;
    for f in &emitted.files {
        let path = network.join(&f.name);
        write(&path, &f.text)?;
        jobs.push((path, None));
    }
    for b in &builtin {
        let path = work.path.join(b.file);
        let written = crate::natives::write(b, &work.path);
        written.map_err(|why| CompileError::File {
            path: path.clone(),
            why,
        })?;
        jobs.push((path, None));
    }
    jobs.extend(jobs_of(&options.natives));
    let objects = cc.objects(&jobs, &work.path, &cache)?;
    let said: String = objects.iter().map(|made| made.said.as_str()).collect();
    let rules: Vec<PathBuf> = objects.iter().filter_map(|o| o.rule.clone()).collect();
    let mut linked: Vec<PathBuf> = objects.into_iter().map(|made| made.path).collect();
    linked.extend(
        options
            .natives
            .iter()
            .filter(|p| is_shared_object(p))
            .cloned(),
    );
    let out = work.path.join("network.so");
    if let Err(output) = cc.link(&linked, &out, cpp)? {
        return Err(CompileError::Internal {
            file: work.keep(),
            output,
        });
    }
    // A definition in the text may not exist in the object: it may be in a comment, excluded by the preprocessor, or
    // have a mangled name in C++.
    let lacks = compiler::undefined(&out);
    let missing = emitted.natives.iter().filter(|n| lacks.contains(*n));
    let missing: Vec<String> = missing.filter(|n| !there(n)).cloned().collect();
    if !missing.is_empty() {
        return Err(undefined(&emitted, &missing));
    }
    implicit_decls::keep(&object, &said);
    match IncludedFiles::read(&rules, &cc, begun) {
        Some(files) => files.append_to(&out).map_err(|why| CompileError::File {
            path: out.clone(),
            why,
        })?,
        // It runs now, and is compiled again next time.
        None => fs_deps::mark_unreliable(),
    }
    keep(&out, &object)?;
    let mut warnings = emitted.warnings;
    let limit = options.cache_bytes.map_or_else(size_limit, Ok);
    match limit {
        Ok(limit) => cache_size::prune(&cache, limit),
        Err(why) => warnings.push(
            Diagnostic::warning("cache-size", why)
                .help("until that is mended, nothing is removed from the cache"),
        ),
    }
    Ok(Compiled {
        implicit_decls: implicit_decls::all(&said),
        object,
        warnings,
        cached: false,
        options: names,
    })
}

fn undefined(emitted: &emit::Emitted, names: &[String]) -> CompileError {
    let native = |name: &String| {
        let mut known = emitted.signatures.iter();
        let signature = known.find(|s| s.name == *name);
        Undefined {
            name: name.clone(),
            place: emitted.declared.get(name).cloned().unwrap_or_default(),
            declaration: signature.map_or(name.clone(), |s| s.declaration()),
        }
    };
    CompileError::Missing {
        natives: names.iter().map(native).collect(),
    }
}

/// The C files among them, each with its folder.
fn jobs_of(natives: &[PathBuf]) -> impl Iterator<Item = (PathBuf, Option<PathBuf>)> {
    let files = natives.iter().filter(|p| !is_shared_object(p));
    files.map(|path| (path.clone(), path.parent().map(Path::to_path_buf)))
}

/// The C text alone (`levada build --emit c`).
pub fn emit_c(net: &ir::Network, options: &Options) -> emit::Emitted {
    crate::on_large_stack(|| emit_fused(net, options))
}

fn emit_fused(net: &ir::Network, options: &Options) -> emit::Emitted {
    let usual = emit::Options::default();
    let settings = emit::Options {
        checks: options.checks,
        lenient: options.lenient,
        random_buffer_sizes: options.random_buffer_sizes,
        split: if options.one_file {
            usize::MAX
        } else {
            usual.split
        },
        ..usual
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

/// Compiles a minimal file with all flags and headers; returns the compiler's version.
pub fn probe(options: &Options) -> Result<String, CompileError> {
    let cc = Compiler::new(options)?;
    let cache = options.cache.clone().unwrap_or_else(cache_dir);
    make_private(&cache)?;
    let work = Scratch::new(&cache)?;
    let file = work.path.join("probe.c");
    let text = "#include <levada/actor.h>\n#include <levada/native.h>\n#include <stdio.h>\n\
                #include <string.h>\nint levada_probe(void) { return printf(\"x\"); }\n";
    write(&file, text)?;
    let objects = cc.objects(&[(file, None)], &work.path, &cache)?;
    let objects: Vec<PathBuf> = objects.into_iter().map(|made| made.path).collect();
    if let Err(output) = cc.link(&objects, &work.path.join("probe.so"), false)? {
        return Err(CompileError::Failing {
            cc: cc.name,
            how: "cannot link".to_string(),
            output,
        });
    }
    let version = cc.version.lines().next().unwrap_or("");
    Ok(format!("{}: {version}", cc.name))
}

/// A shared object among the natives, `.so` or `.so.1.2`: its functions are found by name.
pub fn is_shared_object(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let version = |v: &str| v.chars().all(|c| c.is_ascii_digit() || c == '.');
    name.ends_with(".so") || name.rsplit_once(".so.").is_some_and(|(_, v)| version(v))
}

/// The linker arguments with the folders of the linked shared objects (run path). Each folder is an argument of its
/// own, since `-Wl` splits at commas.
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
            if compiler::is_cut(path) {
                let why = "the file is truncated: a segment is missing";
                return Err(CompileError::File {
                    path: path.clone(),
                    why: io::Error::other(why),
                });
            }
            // SAFETY: it is loaded with the network anyway; its constructors are the user's code.
            unsafe { libloading::Library::new(path) }.map_err(|e| {
                // The loader's message is the source of the crate's error, and begins with the file.
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

    /// Finds the definition that a network would call. A lookup in an object includes the libraries that it needs, such
    /// as the C library; the loader prefers the definitions of the process itself (the executable, the C library).
    fn find(&self, name: &str) -> Found {
        // SAFETY: the symbol is only looked up, never used.
        let address = |l: &libloading::Library| unsafe {
            l.get::<*const ()>(name.as_bytes()).ok().map(|s| *s)
        };
        let this: libloading::Library = libloading::os::unix::Library::this().into();
        let found: Vec<_> = self.0.iter().filter_map(address).collect();
        match address(&this) {
            None if found.is_empty() => Found::Nowhere,
            None => Found::Own,
            Some(first) if found.iter().all(|a| *a == first) => Found::Nowhere,
            Some(_) => Found::Replaced,
        }
    }
}

/// The definition of a function that no C file defines.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// No given shared object defines it; the C library may, but it defines no natives.
    Nowhere,
    /// A given shared object defines it.
    Own,
    /// A given shared object defines it, but the loader finds another function of the same name first.
    Replaced,
}

/// Checks the definitions of natives in C files against their declarations in CAL.
pub fn check_signatures(emitted: &emit::Emitted, natives: &[PathBuf]) -> Result<(), CompileError> {
    for path in natives.iter().filter(|p| !is_shared_object(p)) {
        let text = read(path)?;
        for is in &emitted.signatures {
            if let Some((line, why)) = is.wrong_in(&text) {
                return Err(CompileError::NativeSignature {
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

/// The text of a file; for a shared object, its printable parts, to distinguish versions.
pub(crate) fn read(path: &Path) -> Result<String, CompileError> {
    fs_deps::content(path);
    let text = if is_shared_object(path) {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    } else {
        read_source(path).and_then(|bytes| {
            let text = String::from_utf8(bytes);
            text.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.utf8_error()))
        })
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
