// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading an application: the options, and the memory that it needs.

use crate::convert::{c_string, text};
use crate::{App, Error, Network, Runtime, Status, ffi};
use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::Arc;

/// How an application is loaded.
#[derive(Clone, Debug, Default)]
pub struct AppOptions {
    pub name: Option<String>,
    /// The worker of each actor, in the order of the network.
    pub placement: Option<Vec<u32>>,
    /// Names and values that natives can read.
    pub options: Vec<(String, String)>,
    pub priority: i32,
    /// Capacity of channels for which the network has none, in elements; 0: the runtime's default.
    pub capacity: u32,
    /// Channels keep their capacity. Otherwise the smallest full channel of a cycle of waits grows where that resolves
    /// a deadlock.
    pub fixed_buffers: bool,
    /// Bytes of state and channels above which no channel grows; 0: what is allocated at load, and 64 MiB more.
    pub memory_max: u64,
}

impl AppOptions {
    /// Calls `f` with the options as a C structure, which is valid during the call. Fails if a text contains a zero
    /// byte, or if the placement does not have one worker for each actor of `network`.
    fn with_raw<T>(
        &self,
        network: &Network,
        f: impl FnOnce(&ffi::lvd_app_options) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = self;
        let name = options.name.as_deref().map(c_string).transpose()?;
        let mut strings = Vec::new();
        for (name, value) in &options.options {
            strings.push((c_string(name)?, c_string(value)?));
        }
        let list: Vec<ffi::lvd_option> = strings
            .iter()
            .map(|(name, value)| ffi::lvd_option {
                name: name.as_ptr(),
                value: value.as_ptr(),
            })
            .collect();
        if let Some(placement) = &options.placement
            && placement.len() != network.actors()
        {
            return Err(Error {
                status: Status(ffi::LVD_E_ARGUMENT),
                why: format!(
                    "the placement has {} workers for {} actors",
                    placement.len(),
                    network.actors()
                ),
            });
        }
        let raw = ffi::lvd_app_options {
            name: name.as_ref().map_or(std::ptr::null(), |n| n.as_ptr()),
            placement: options
                .placement
                .as_ref()
                .map_or(std::ptr::null(), |p| p.as_ptr()),
            option: list.as_ptr(),
            option_count: list.len() as u32,
            priority: options.priority,
            capacity: options.capacity,
            fixed_buffers: options.fixed_buffers,
            memory_max: options.memory_max,
        };
        f(&raw)
    }
}

impl App {
    /// Memory in bytes that an application with these options would have: the state of its actors, and the rings of
    /// its channels.
    pub fn size(runtime: &Runtime, network: &Network, options: &AppOptions) -> Result<u64, Error> {
        options.with_raw(network, |raw| {
            let mut bytes = 0;
            let mut why = [0 as c_char; 512];
            // SAFETY: everything pointed to outlives the call.
            let status = Status(unsafe {
                ffi::lvd_app_size(
                    runtime.raw(),
                    network.raw(),
                    raw,
                    &mut bytes,
                    why.as_mut_ptr(),
                    why.len(),
                )
            });
            match status {
                Status::OK => Ok(bytes),
                status => Err(Error {
                    status,
                    why: text(why.as_ptr()),
                }),
            }
        })
    }

    /// Loads the network as an application, which is not started. Channels with an open port are closed at the open
    /// end.
    pub fn load(
        runtime: &Runtime,
        network: &Arc<Network>,
        options: &AppOptions,
    ) -> Result<App, Error> {
        options.with_raw(network, |raw| App::load_raw(runtime, network, raw))
    }

    fn load_raw(
        runtime: &Runtime,
        network: &Arc<Network>,
        raw: &ffi::lvd_app_options,
    ) -> Result<App, Error> {
        let mut out = std::ptr::null_mut();
        let mut why = [0 as c_char; 512];
        // SAFETY: everything pointed to outlives the call; `App` holds the network, so it outlives the application.
        let status = Status(unsafe {
            ffi::lvd_app_load(
                runtime.raw(),
                network.raw(),
                raw,
                &mut out,
                why.as_mut_ptr(),
                why.len(),
            )
        });
        match (status, NonNull::new(out)) {
            (Status::OK, Some(app)) => {
                // SAFETY: the application is loaded and not started, so nothing else uses these channel ends.
                unsafe { ffi::lvd_sys_close_external(app.as_ptr(), network.raw()) };
                Ok(App {
                    raw: app,
                    network: network.clone(),
                    runtime: runtime.clone(),
                })
            }
            (status, _) => {
                why[why.len() - 1] = 0;
                Err(Error {
                    status,
                    why: text(why.as_ptr()),
                })
            }
        }
    }
}
