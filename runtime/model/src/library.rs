// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C under test, compiled with instrumentation into a shared object and loaded.

use crate::shadow::{CALLS, Calls};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

/// The folder of the runtime, which holds the sources under test.
pub fn runtime() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("runtime/model").to_path_buf()
}

/// Compiles sources (relative to the runtime's folder) into the shared object `out`. `tree` is a
/// folder laid out as the runtime's that holds them. A mutant names the one file that `changed`: its
/// other objects are taken from `whole`, the folder of what was compiled from the sources as they
/// are, unless it is a header.
pub fn compile(
    sources: &[&[&str]],
    tree: &Path,
    out: &Path,
    mutant: Option<(&str, &Path)>,
) -> Result<(), String> {
    let folder = out.parent().expect("a folder");
    let mut link = cc();
    // No sanitizer's library: the trampolines are it.
    link.args(["-shared", "-Wl,-Bsymbolic"]).arg("-o").arg(out);
    for source in sources.concat().into_iter().chain(["model/c/trampoline.c"]) {
        let name = format!("{}.o", source.replace(['/', '.'], "-"));
        // The trampolines are no part of what is tested, nor can assembly be watched.
        let watched = source != "model/c/trampoline.c" && !source.ends_with(".S");
        if let Some((changed, whole)) = mutant {
            let header = changed.ends_with(".h") && watched;
            if source != changed && !header {
                link.arg(whole.join(name));
                continue;
            }
        }
        let object = folder.join(name);
        if object.exists() {
            link.arg(object); // another suite has it, too
            continue;
        }
        let mut cc = cc();
        cc.args(["-O1", "-c"]);
        if watched {
            cc.args(["-fsanitize=thread", "-Wno-tsan"]);
            cc.args(["--param", "tsan-instrument-func-entry-exit=0"]);
        }
        cc.arg("-I").arg(tree.join("include")).arg("-I").arg(tree);
        if mutant.is_some() && watched {
            cc.arg("-I")
                .arg(tree.join("model/c"))
                .args(["-include", "weak.h"]);
        }
        // What the sources under test have as globals lies together: it is watched, and begins each
        // execution as it began the first (c/trampoline.c). What a harness has is its own.
        let shipped = watched && !source.starts_with("model/");
        cc.arg(tree.join(source)).arg("-o").arg(&object);
        execute(cc)?;
        if shipped {
            let mut objcopy = Command::new("objcopy");
            for section in [".data", ".data.rel.local", ".bss"] {
                let into = format!("{section}=model_globals,alloc,load,data,contents");
                objcopy.args(["--rename-section", &into]);
            }
            objcopy.arg(&object);
            execute(objcopy)?;
        }
        link.arg(object);
    }
    execute(link)
}

fn cc() -> Command {
    let mut cc = Command::new(std::env::var("LVD_MODEL_CC").unwrap_or_else(|_| "gcc".into()));
    cc.args([
        "-std=c17",
        "-g1", // lines and functions, for --trace
        "-fPIC",
        "-fexceptions",
        "-D_GNU_SOURCE",
        "-DLVD_FORK_THREAD=model_fork_thread()",
        "-DLVD_FORK_SELF=model_fork_self()",
        "-DLVD_OS_SELF=lvd_os_self()",
        "-DLVD_DEQUE_SLOTS=3",
        "-DMC_PROCESSES=3",
        "-DMC_NODES=32",
        "-DMC_ENDPOINTS=2",
        "-DMC_SLOTS=2",
        "-Wall",
        "-Wextra",
    ]);
    cc
}

fn execute(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}\n{said}"))
}

/// A loaded shared object.
pub struct Library {
    object: libloading::Library,
    globals: Globals,
}

type Globals = unsafe extern "C" fn(size: *mut usize) -> *mut c_void;

impl Library {
    pub fn load(path: &Path) -> Library {
        // Safety: made by `compile` just now; it runs nothing when loaded.
        let object = unsafe { libloading::Library::new(path) };
        let object = object.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // Safety: as it is in c/trampoline.c.
        let globals = unsafe {
            *object
                .get::<Globals>(b"model_globals_reset")
                .expect("a function")
        };
        let library = Library { object, globals };
        let bind: unsafe extern "C" fn(*const Calls) = library.symbol("model_bind");
        // Safety: the fields of Calls are those of model_calls.
        unsafe { bind(&CALLS) };
        library
    }

    /// The globals of the sources under test, as they were at first.
    pub fn globals(&self) -> (*const c_void, usize) {
        let mut size = 0;
        // Safety: no thread of a check runs.
        let base = unsafe { (self.globals)(&mut size) };
        (base, size)
    }

    /// A function of the harness.
    pub fn symbol<T: Copy>(&self, name: &str) -> T {
        // Safety: the caller names the type that the C has.
        let symbol = unsafe { self.object.get::<T>(name.as_bytes()) };
        *symbol.unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// What a harness has made; freed with its last reference.
pub struct Owned<C> {
    pub c: C,
    pub m: *mut c_void,
    free: fn(&C, *mut c_void),
}

impl<C> Owned<C> {
    pub fn new(c: C, m: *mut c_void, free: fn(&C, *mut c_void)) -> Rc<Owned<C>> {
        Rc::new(Owned { c, m, free })
    }
}

impl<C> Drop for Owned<C> {
    fn drop(&mut self) {
        (self.free)(&self.c, self.m);
    }
}

/// Declares the functions of a C harness, `model_NAME` each, as methods.
#[macro_export]
macro_rules! harness {
    ($(#[$doc:meta])* $name:ident {
        $(fn $function:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name { $($function: unsafe extern "C-unwind" fn($($type),*) $(-> $result)?),* }

        impl $name {
            pub fn of(library: &$crate::library::Library) -> $name {
                $name { $($function: library.symbol(concat!("model_", stringify!($function)))),* }
            }
            $(#[allow(dead_code)]
            pub fn $function(&self, $($arg: $type),*) $(-> $result)? {
                // Safety: the declaration is the C's, and the checks pass what it made.
                unsafe { (self.$function)($($arg),*) }
            })*
        }
    };
}
