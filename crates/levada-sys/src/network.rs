// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network of a shared object that the compiler made, and what its tables say.

use crate::convert::{slice, text};
use crate::ffi;
use crate::program::Program;
use std::path::Path;
use std::ptr::NonNull;

/// A compiled network, or a C program as one: constant tables in a shared object, which stays loaded as
/// long as this or any application of it lives.
#[derive(Debug)]
pub struct Network {
    raw: NonNull<ffi::lvd_network>,
    object: Object,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is kept loaded")]
enum Object {
    Network(libloading::Library),
    Program(Program),
}

// SAFETY: the tables are constant.
unsafe impl Send for Network {}
unsafe impl Sync for Network {}

/// An actor as a network names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorShape {
    pub name: String,
    pub class: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
}

/// The symbol of a shared object that is its `lvd_network`.
pub const NETWORK_SYMBOL: &[u8] = b"levada_network\0";

impl Network {
    /// Loads a shared object that the compiler made.
    ///
    /// # Safety
    /// The object's code runs in this process: it must come from the compiler (or be trusted as if).
    pub unsafe fn open(path: &Path) -> Result<Network, String> {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // What it lacks is found now, not when an actor calls it: that would end the process.
        // SAFETY: the caller vouches for the object.
        let object = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let object = object.map(libloading::Library::from).map_err(|e| {
            // What the loader says is the cause of what the crate says.
            let why = std::error::Error::source(&e).map_or(e.to_string(), |s| s.to_string());
            let path = path.display();
            match why.rsplit_once("undefined symbol: ") {
                Some((_, name)) => format!(
                    "cannot load {path}: nothing defines {name} (what is native in C++ is extern \"C\")"
                ),
                None => format!("cannot load {path}: {why}"),
            }
        })?;
        // SAFETY: the symbol is data of this type in every object that the compiler makes.
        let raw = unsafe { object.get::<*mut ffi::lvd_network>(NETWORK_SYMBOL) }
            .ok()
            .and_then(|symbol| NonNull::new(*symbol))
            .ok_or_else(|| format!("{} holds no network", path.display()))?;
        // SAFETY: points to the object's table.
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
        })
    }

    /// Loads a copy of a C program: a shared object with a `main`, which gets the arguments, the first of
    /// them its path. Can be loaded as an application once.
    ///
    /// # Safety
    /// The program's code runs in this process: it must be trusted.
    pub unsafe fn program(path: &Path, arguments: &[String]) -> Result<Network, String> {
        // SAFETY: the caller vouches for the program.
        let program = unsafe { Program::open(path, arguments) }?;
        match program.network() {
            Some(raw) => Ok(Network {
                raw,
                object: Object::Program(program),
            }),
            None => Err(format!("{} is no program", path.to_string_lossy())),
        }
    }

    /// A C program, and no network of actors.
    pub fn is_program(&self) -> bool {
        matches!(self.object, Object::Program(_))
    }

    pub(crate) fn raw(&self) -> *mut ffi::lvd_network {
        self.raw.as_ptr()
    }

    fn table(&self) -> &ffi::lvd_network {
        // SAFETY: lives as long as the object.
        unsafe { self.raw.as_ref() }
    }

    pub fn actors(&self) -> usize {
        self.table().actors as usize
    }

    /// The names of the instances, in order.
    pub fn actor_names(&self) -> Vec<String> {
        // SAFETY: the table says how many there are.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter().map(|a| text(a.name)).collect()
    }

    /// All actors with the names of their ports, in order.
    pub fn describe(&self) -> Vec<ActorShape> {
        // SAFETY: the tables say how many there are.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter()
            .map(|actor| {
                // SAFETY: every actor has a class.
                let class = unsafe { &*actor.cls };
                let names = |ports: *const ffi::lvd_port_class, count: u32| {
                    // SAFETY: the class says how many there are.
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

    /// For each channel and consumer: producer, consumer, bytes of an element, in the order of
    /// [`Counters::channels`].
    pub fn links(&self) -> Vec<(u32, u32, u32)> {
        // SAFETY: the table says how many there are.
        let channels = unsafe { slice(self.table().channel, self.table().channels) };
        let mut links = Vec::new();
        for channel in channels {
            // SAFETY: likewise.
            for to in unsafe { slice(channel.to, channel.consumers) } {
                links.push((channel.from.actor, to.actor, channel.elem_size));
            }
        }
        links
    }
}
