// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Request types.

use crate::protocol::lenient;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use utoipa::{IntoParams, ToSchema};

/// Default timeout of a request, in seconds.
pub const REQUEST_TIMEOUT_S: f64 = 30.0;

/// Default timeout of checking and compiling, in seconds: large networks take minutes.
pub const COMPILE_TIMEOUT_S: f64 = 1800.0;

/// Keys of requests and manifests that had another name in Levada 0.1.
const RENAMED: [(&str, &str); 7] = [
    ("share", "cpus"),
    ("anyway", "force"),
    ("within", "timeout"),
    ("outside", "out_of_bounds"),
    ("any_sizes", "random_buffer_sizes"),
    ("beside", "core_usage_by_others"),
    ("free", "unpin"),
];

/// The error of reading a request or a manifest as text.
pub fn read_error(error: &impl std::fmt::Display) -> String {
    levada_map::io::with_present_key(&error.to_string(), &RENAMED)
}

/// An application to be loaded: a network, or a C program. Relative paths start at `directory`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadRequest {
    /// An .xdf file, a class name such as a.b.Top, or a shared object (.so) with a `main`.
    pub network: String,
    /// Arguments of a C program's `main`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::texts"
    )]
    #[schema(value_type = Vec<lenient::Given>)]
    pub arguments: Vec<String>,
    /// The folder that relative paths of this request start at: absolute. An isolated application has it as working
    /// directory.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// Name of the application; default: the last part of the network's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Values of the network's parameters and variables.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "lenient::settings"
    )]
    #[schema(value_type = BTreeMap<String, lenient::Given>)]
    pub set: BTreeMap<String, String>,
    /// Input file.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Output file.
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Further options for natives.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "lenient::settings"
    )]
    #[schema(value_type = BTreeMap<String, lenient::Given>)]
    pub option: BTreeMap<String, String>,
    /// Added to the priority of each actor. Workers distinguish -4 to 3; other values are clamped.
    #[serde(deserialize_with = "lenient::number_or_none")]
    #[schema(value_type = lenient::Amount)]
    pub priority: i32,
    /// Additional folders that classes are searched in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The project with the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Native functions: files in C or C++, and shared objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<String>,
    /// Omit the checks of array indices.
    pub unchecked: bool,
    /// Action on an out-of-range list index: fault or clamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_bounds: Option<String>,
    /// Choose random channel sizes from this seed.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub random_buffer_sizes: Option<u64>,
    /// Do not fuse actors.
    pub no_fuse: bool,
    /// Channels keep their capacity. Otherwise a channel grows where the application is deadlocked only because that
    /// channel is full.
    pub fixed_buffers: bool,
    /// Memory limit in bytes. The load is refused if it needs more; no channel grows beyond it; an isolated
    /// application's process is limited to it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::bytes"
    )]
    #[schema(value_type = Option<lenient::Bytes>)]
    pub memory: Option<u64>,
    /// Reserved rate in units per second, such as frames; also the maximum rate.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub rate: Option<f64>,
    /// CPU quota in cores: 0.5 is half of one core.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub cpus: Option<f64>,
    /// Load it even if that breaks a reserved rate.
    pub force: bool,
    /// Give it a core that no other application of the host uses.
    pub exclusive: bool,
    /// A file with workers for its actors: a placement (TOML) or a mapping of Orcc (XML).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Load that other processes put on the core of each worker, if known: 0.5 is half of the core; the sum of several
    /// may exceed 1. Its actors start where most capacity is left. Not allowed in a manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_usage_by_others: Vec<f64>,
    /// Run it in a child process, where it cannot harm the others.
    pub isolate: bool,
    /// Load it paused: it starts when it is resumed.
    pub paused: bool,
    /// Timeout of checking and compiling, in seconds; default 1800. On timeout nothing is loaded.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub timeout: Option<f64>,
}

/// Several applications.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(default, deserialize_with = "lenient::all_named")]
    pub application: Vec<LoadRequest>,
}

/// A new version of an application.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest {
    /// How the new version is loaded. Input and output default to those of the old version.
    #[serde(deserialize_with = "lenient::named")]
    pub load: LoadRequest,
    /// Timeout of the replacement, in seconds; default 30. On timeout the old version continues.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub timeout: Option<f64>,
}

/// How an application is unloaded.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UnloadQuery {
    /// End it immediately instead of draining it.
    pub now: bool,
    /// Timeout of the response, in seconds; default 30. Draining continues after it.
    pub timeout: Option<f64>,
}

/// Timeout of a request that takes no time itself.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct AnswerQuery {
    /// In seconds. Default: 2 for the response of an isolated application's process, and 30 for an application that is
    /// still being loaded.
    pub timeout: Option<f64>,
}

/// Timeout of a response.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct TimeoutQuery {
    /// In seconds; default 30. The request takes effect even if it expires.
    pub timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Number of the last event that is already known. If later ones are no longer kept, the first line says how many.
    #[serde(deserialize_with = "lenient::event")]
    pub since: Option<u64>,
    /// Continue with events as they happen.
    pub follow: bool,
}

/// An actor, and the worker that it is moved to, or that it is unpinned.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    pub actor: String,
    /// Move the actor to this worker and pin it there. Either this or `unpin` must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// Unpin the actor: the mapper may move it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpin: bool,
}

/// The process that a core is reserved for.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreReservationRequest {
    /// The core is returned when this process ends.
    pub process: i32,
    /// Timeout for vacating the core, in seconds; default 30. On timeout nothing has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Processes by their numbers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Processes {
    pub process: BTreeSet<u32>,
}
