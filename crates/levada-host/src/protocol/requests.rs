// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What clients ask for.

use crate::protocol::lenient;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use utoipa::{IntoParams, ToSchema};

/// So long, in seconds, is waited for what the host or an application does, if a request says nothing else.
pub const WITHIN: f64 = 30.0;

/// And so long for what is checked and compiled: large networks take minutes.
pub const COMPILES_WITHIN: f64 = 1800.0;

/// An application to be loaded: a network, or a C program. What is relative is relative to `directory`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadRequest {
    /// An .xdf file, or a class name such as a.b.Top; or a shared object (.so) with a main.
    pub network: String,
    /// What the main of a C program is given.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::texts"
    )]
    #[schema(value_type = Vec<lenient::Given>)]
    pub arguments: Vec<String>,
    /// Where the paths of this request begin: absolute. Isolated, its process begins in this folder.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// By which it is known then; else the last part of its network's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Values of the network's parameters and variables.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "lenient::settings"
    )]
    #[schema(value_type = BTreeMap<String, lenient::Given>)]
    pub set: BTreeMap<String, String>,
    /// What it reads.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Where it writes.
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Further options for its natives.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "lenient::settings"
    )]
    #[schema(value_type = BTreeMap<String, lenient::Given>)]
    pub option: BTreeMap<String, String>,
    /// Added to the priority of each of its actors; workers tell -4 to 3 apart, and what is beyond is the nearest.
    #[serde(deserialize_with = "lenient::number_or_none")]
    #[schema(value_type = lenient::Amount)]
    pub priority: i32,
    /// Folders where classes are looked for, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The project whose sources are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Native functions: files in C or C++, and shared objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<String>,
    /// Leave out the checks of array indices.
    pub unchecked: bool,
    /// What happens where a list is read that has no such element: fault or nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// Give channels sizes by chance, from this seed.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub any_sizes: Option<u64>,
    /// Do not join actors into one.
    pub no_fuse: bool,
    /// It is refused if it would claim more, in bytes; isolated, its process may claim no more when it runs.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::bytes"
    )]
    #[schema(value_type = Option<lenient::Bytes>)]
    pub memory: Option<u64>,
    /// It is promised so many units a second, such as frames, and gets no more.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub rate: Option<f64>,
    /// It may take so many cores: 0.5 is half of one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub share: Option<f64>,
    /// Load it even where that breaks a promise.
    pub anyway: bool,
    /// It has a core that nothing else of the host is on.
    pub exclusive: bool,
    /// A file that keeps actors of it on workers: a placement (TOML) or a mapping of Orcc's (XML).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// What others beside this host take of the core of each worker, as far as that is known: 0.5 is half of it, and
    /// what several want may be more than all. Its
    /// actors begin where most is left. Not in a manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<f64>,
    /// It has a process of its own: what it does there cannot harm the others.
    pub isolate: bool,
    /// Load it paused: nothing of it runs before it is resumed.
    pub paused: bool,
    /// So long, in seconds, checking and compiling it may take; 1800 if not said. Nothing is loaded then.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub within: Option<f64>,
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
    /// How the new version is loaded; its input and output are those of the old one if it names none.
    #[serde(deserialize_with = "lenient::named")]
    pub load: LoadRequest,
    /// So long, in seconds, it may take until the new one can take over; 30 if not said. Then this fails, and the old one goes on.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    #[schema(value_type = Option<lenient::Amount>)]
    pub within: Option<f64>,
}

/// How an application is taken away.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UnloadQuery {
    /// At once, and not when what is in flight has come out.
    pub now: bool,
    /// So long, in seconds, an answer may wait for that; 30 if not said. It goes on draining after it.
    pub within: Option<f64>,
}

/// How long what takes no time may take.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct AnswerQuery {
    /// Seconds. If not said, the process of an isolated application may take 2 to answer, and 30 are waited until one that is
    /// loaded still is there.
    pub within: Option<f64>,
}

/// How long an answer may wait.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct WithinQuery {
    /// Seconds; 30 if not said. What was asked for is done all the same.
    pub within: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// The number of the last event that is known already. Where some after that are not kept any more, the
    /// first line says how many.
    #[serde(deserialize_with = "lenient::event")]
    pub since: Option<u64>,
    /// Go on with what happens from now on.
    pub follow: bool,
}

/// An actor, and where it is to go, or that it may go anywhere.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    pub actor: String,
    /// It goes there, and stays: the mapper moves it no more. Either this is said, or `free`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// It stays nowhere: the mapper may move it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
}

/// For whom a core is left.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AwayRequest {
    /// When this process ends, the core comes back.
    pub process: i32,
    /// So long, in seconds, what runs there may take to leave; 30 if not said. All is as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

/// Processes by their numbers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Processes {
    pub process: BTreeSet<u32>,
}
