// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A compiled network: loads its shared object, or a C program, and reads its tables.

use crate::convert::{slice, text};
use crate::program::Program;
use crate::{ffi, object_in_use};
use std::fs::File;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

/// A compiled network, or a C program that is loaded as one: constant tables in a shared object. The object stays
/// loaded until this and all applications made from it are dropped.
#[derive(Debug)]
pub struct Network {
    raw: NonNull<ffi::lvd_network>,
    object: Object,
    /// Says that the object is used, so that it is not removed from the cache.
    _in_use: Option<Arc<File>>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held so that the code stays loaded")]
enum Object {
    Network(libloading::Library),
    Program(Program),
}

// SAFETY: the tables are constant, so threads can read them at the same time.
unsafe impl Send for Network {}
unsafe impl Sync for Network {}

/// The names of an actor, its class and its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorShape {
    pub name: String,
    pub class: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
}

/// The symbol that points to the `lvd_network` of a shared object; ends with a zero byte.
pub const NETWORK_SYMBOL: &[u8] = b"levada_network\0";

impl Network {
    /// Loads a shared object that the compiler made. The error is a sentence that names the file.
    ///
    /// # Safety
    /// The object's code runs in this process: it must come from the compiler or be trusted equally.
    pub unsafe fn open(path: &Path) -> Result<Network, String> {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        let in_use = object_in_use::lock(path);
        // RTLD_NOW: a missing function is an error here. With lazy binding the first call would end the process.
        // SAFETY: the caller guarantees that the object's code can be trusted.
        let object = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let object = object.map(libloading::Library::from).map_err(|e| {
            // The text of the dynamic loader is the source of libloading's error.
            let why = std::error::Error::source(&e).map_or(e.to_string(), |s| s.to_string());
            let path = path.display();
            match why.rsplit_once("undefined symbol: ") {
                Some((_, name)) => format!(
                    "cannot load {path}: nothing defines {name} (a native in C++ must be declared extern \"C\")"
                ),
                None => format!("cannot load {path}: {why}"),
            }
        })?;
        // SAFETY: the caller guarantees an object of the compiler, in which the symbol has this type.
        let raw = unsafe { object.get::<*mut ffi::lvd_network>(NETWORK_SYMBOL) }
            .ok()
            .and_then(|symbol| NonNull::new(*symbol))
            .ok_or_else(|| format!("{} contains no network", path.display()))?;
        // SAFETY: `raw` points to a table of the object, which is loaded.
        let version = unsafe { raw.as_ref() }.abi_version;
        if version != ffi::LVD_ABI_VERSION {
            return Err(format!(
                "{} is made for ABI version {version} of the runtime, which has ABI version {}",
                path.display(),
                ffi::LVD_ABI_VERSION
            ));
        }
        Ok(Network {
            raw,
            object: Object::Network(object),
            _in_use: in_use,
        })
    }

    /// Loads a copy of a C program, a shared object with a `main`. Its `argv` is `path` followed by `arguments`. The
    /// network can be loaded as an application once.
    ///
    /// # Safety
    /// The program's code runs in this process: it must be trusted.
    pub unsafe fn program(path: &Path, arguments: &[String]) -> Result<Network, String> {
        // SAFETY: the caller guarantees that the program can be trusted.
        let program = unsafe { Program::open(path, arguments) }?;
        match program.network() {
            Some(raw) => Ok(Network {
                raw,
                object: Object::Program(program),
                _in_use: None,
            }),
            None => Err(format!("{} is not a program", path.to_string_lossy())),
        }
    }

    /// Whether this is a C program instead of a network of actors.
    pub fn is_program(&self) -> bool {
        matches!(self.object, Object::Program(_))
    }

    pub(crate) fn raw(&self) -> *mut ffi::lvd_network {
        self.raw.as_ptr()
    }

    fn table(&self) -> &ffi::lvd_network {
        // SAFETY: the table is part of the object, which `self` keeps loaded.
        unsafe { self.raw.as_ref() }
    }

    /// Number of actors.
    pub fn actors(&self) -> usize {
        self.table().actors as usize
    }

    /// The names of the actor instances, in the order of the network.
    pub fn actor_names(&self) -> Vec<String> {
        // SAFETY: the network has `actors` of them.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter().map(|a| text(a.name)).collect()
    }

    /// The names of all actors and their ports, in the order of the network.
    pub fn describe(&self) -> Vec<ActorShape> {
        // SAFETY: the network has `actors` of them.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter()
            .map(|actor| {
                // SAFETY: every actor of a network has a class, in the same object.
                let class = unsafe { &*actor.cls };
                let names = |ports: *const ffi::lvd_port_class, count: u32| {
                    // SAFETY: `count` is the class's number of these ports.
                    let ports = unsafe { slice(ports, count) };
                    ports.iter().map(|p| text(p.name)).collect()
                };
                ActorShape {
                    name: text(actor.name),
                    class: text(class.name),
                    inputs: names(class.input, class.inputs),
                    outputs: names(class.output, class.outputs),
                }
            })
            .collect()
    }

    /// For each consumer of each channel: the producing actor, the consuming actor, and the size of an element in
    /// bytes. In the order of [`crate::Counters::channels`].
    pub fn links(&self) -> Vec<(u32, u32, u32)> {
        // SAFETY: the network has `channels` of them.
        let channels = unsafe { slice(self.table().channel, self.table().channels) };
        let mut links = Vec::new();
        for channel in channels {
            // SAFETY: the channel has `consumers` of them.
            for to in unsafe { slice(channel.to, channel.consumers) } {
                links.push((channel.from.actor, to.actor, channel.elem_size));
            }
        }
        links
    }
}
