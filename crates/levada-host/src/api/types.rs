// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes over the socket, as JSON. The OpenAPI document is made of these types.

use super::given;
use crate::admission::Admission;
use crate::hosted::{Seen, State};
use crate::outcome::Ended;
use crate::refusal::{Kind, Refusal};
use levada_sys::{ActorCounters, ActorShape, ChannelCounters, Counters};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};
use utoipa::{IntoParams, ToSchema};

/// An application to be loaded: a network, or a C program. What is relative is relative to `directory`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadRequest {
    /// An .xdf file, or a class name such as a.b.Top; or a shared object (.so) with a main.
    pub network: String,
    /// What the main of a C program is given.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "given::texts"
    )]
    #[schema(value_type = Vec<given::Given>)]
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
        deserialize_with = "given::settings"
    )]
    #[schema(value_type = BTreeMap<String, given::Given>)]
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
        deserialize_with = "given::settings"
    )]
    #[schema(value_type = BTreeMap<String, given::Given>)]
    pub option: BTreeMap<String, String>,
    /// Added to the priority of each of its actors; workers tell -4 to 3 apart, and what is beyond is the nearest.
    #[serde(deserialize_with = "given::number_or_none")]
    #[schema(value_type = given::Amount)]
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
        deserialize_with = "given::number"
    )]
    #[schema(value_type = Option<given::Amount>)]
    pub any_sizes: Option<u64>,
    /// Do not join actors into one.
    pub no_fuse: bool,
    /// It is refused if it would claim more, in bytes; isolated, its process may claim no more when it runs.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given::bytes"
    )]
    #[schema(value_type = Option<given::Bytes>)]
    pub memory: Option<u64>,
    /// It is promised so many units a second, such as frames, and gets no more.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given::number"
    )]
    #[schema(value_type = Option<given::Amount>)]
    pub rate: Option<f64>,
    /// It may take so many cores: 0.5 is half of one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given::number"
    )]
    #[schema(value_type = Option<given::Amount>)]
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
        deserialize_with = "given::number"
    )]
    #[schema(value_type = Option<given::Amount>)]
    pub within: Option<f64>,
}

/// Several applications.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(default, deserialize_with = "given::all_named")]
    pub application: Vec<LoadRequest>,
}

/// A new version of an application.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest {
    /// How the new version is loaded; its input and output are those of the old one if it names none.
    #[serde(deserialize_with = "given::named")]
    pub load: LoadRequest,
    /// So long, in seconds, it may take until the new one can take over; 30 if not said. Then this fails, and the old one goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(deserialize_with = "given::event")]
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

/// The host itself.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct HostInfo {
    pub version: String,
    pub pid: u32,
    /// Seconds since it was started.
    pub seconds: f64,
    pub workers: u32,
    /// The real-time priority of the workers, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<u32>,
    /// How many applications are loaded and have not ended.
    pub applications: usize,
    /// How many are checked and compiled at this moment, to be loaded.
    #[serde(default)]
    pub preparing: usize,
    /// What the host before this one had loaded when it ended, and this one has not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// An application, in short.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Application {
    pub name: String,
    pub number: u64,
    /// The name of its network.
    pub network: String,
    pub state: State,
    pub priority: i32,
    /// When it was loaded: seconds since 1970.
    pub loaded: f64,
    /// Seconds since it was started, or that it ran.
    pub seconds: f64,
    /// Of an isolated one that does not answer, or whose process has ended without a word: after how many of these seconds it
    /// said what stands here of what it has done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_after: Option<f64>,
    /// What it claims, in bytes: state and channels. Nothing any more when it has ended; of a load what it has begun with.
    pub memory: u64,
    pub actors: usize,
    pub firings: u64,
    /// Seconds that its actors computed, and its fibers.
    pub busy: f64,
    /// How often the mapper has moved one of its actors.
    pub moves: usize,
    /// What it says that it has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Units a second that it is promised, and that it had lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<f64>,
    /// Whether it has less than that, and does not wait for its own input, or for who takes its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_late: Option<bool>,
    /// How often that began: the event `late`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Cores that it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How it ended, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The process that it has for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<u32>,
    /// The worker whose core it has to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Progress {
    pub done: u64,
    pub unit: String,
}

/// An application with its actors and channels.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Details {
    #[serde(flatten)]
    pub application: Application,
    pub actor: Vec<Actor>,
    pub channel: Vec<Channel>,
    /// What it does to the promises, where anything is promised a rate: of a load only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub admission: Option<Admission>,
    /// What actors begin anew that the version before it has had, too, and why: of a replacement only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub anew: Vec<String>,
    /// Warnings of the compiler: of a load only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(value_type = Vec<Object>)]
    pub diagnostics: Vec<Value>,
    /// The same as text.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub text: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Actor {
    pub name: String,
    pub class: String,
    pub worker: u32,
    /// The worker that it must stay on, since it was moved there by hand or by a placement; it is elsewhere
    /// only while that one is away, or held up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<u32>,
    pub firings: u64,
    pub activations: u64,
    /// Seconds that it computed, and the longest without a break.
    pub busy: f64,
    pub longest: f64,
}

/// A channel, once for each of its consumers.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Channel {
    pub from: String,
    pub to: String,
    pub capacity: u32,
    /// Elements in it.
    pub fill: u32,
    pub put: u64,
    pub got: u64,
    /// Times that its producer found it full, that its consumer found it empty, and waited.
    pub full: u64,
    pub empty: u64,
    pub wakes: u64,
}

/// How an application ended that was taken away.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Unloaded {
    pub name: String,
    pub outcome: String,
    pub seconds: f64,
    /// As of an `Application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_after: Option<f64>,
    pub firings: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// A worker, and who sits there.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Worker {
    pub worker: u32,
    /// The core that it is pinned to; -1: none.
    pub cpu: i32,
    /// It is for all; else for one application alone, or given away.
    pub open: bool,
    /// Seconds that it ran actors, and that it slept.
    pub busy: f64,
    pub asleep: f64,
    /// For which an actor ran there and other programs had the core: in neither of these.
    #[serde(default)]
    pub lost: f64,
    pub activations: u64,
    pub sleeps: u64,
    /// Of its core; none: no program beside the host ever wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    pub actor: Vec<Placed>,
    /// Actors of applications that have a process of their own; in `/map` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<Placed>,
    /// Applications whose fibers computed there lately: C programs, with their forks and procedures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Computes>,
}

/// The right to run a worker on a core, which one process at a time has.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Lease {
    /// The process that has it; none: nobody runs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Processes that wait for it.
    pub waiting: u32,
    /// Times it went from one that had it to one that waited.
    pub given: u64,
    /// Times it was taken from one that did not answer.
    pub seized: u64,
    /// Times it was taken from one that waited for something else, or had ended.
    pub left: u64,
    /// Times that a thread waited for it; in seconds, how long in all, and the longest.
    pub waits: u64,
    pub waited: f64,
    pub longest: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Placed {
    pub application: String,
    pub actor: String,
    /// The share of a core that it took lately; none: it has not been measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The worker that it must stay on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<u32>,
}

/// An application whose fibers compute on a core.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Computes {
    pub application: String,
    /// The share of the core that they took lately.
    pub share: f64,
}

/// Totals of everything.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Stats {
    pub host: HostInfo,
    pub worker: Vec<Worker>,
    pub application: Vec<Application>,
}

/// Who waits for whom.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Why {
    pub application: String,
    pub text: String,
}

/// Why something was not done.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Failed {
    pub error: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// What is wrong in the sources.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(value_type = Vec<Object>)]
    pub diagnostics: Vec<Value>,
    /// The same with the lines that are meant, as text.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub text: String,
    /// It is as asked for all the same, but later: a new version is there as soon as the old one has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub comes: bool,
    /// What it would have done to the promises, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Box<Admission>>,
    #[serde(skip)]
    pub kind: Option<Kind>,
    /// Nothing was heard in all the time that there was for an answer.
    #[serde(skip)]
    pub silent: bool,
}

impl Failed {
    /// Says of whom, where there are several.
    pub(super) fn of(self, whose: Option<String>) -> Failed {
        let error = match whose {
            Some(whose) => format!("{whose}: {}", self.error),
            None => self.error,
        };
        Failed { error, ..self }
    }
}

impl From<Refusal> for Failed {
    fn from(r: Refusal) -> Failed {
        Failed {
            error: r.what,
            help: r.help,
            comes: r.comes,
            admission: r.admission,
            kind: Some(r.kind),
            ..Failed::default()
        }
    }
}

fn progress((unit, done): (String, u64)) -> Progress {
    Progress { done, unit }
}

impl From<&Seen> for Application {
    fn from(seen: &Seen) -> Application {
        let counters = counters(seen);
        let (seconds, moves, told) = match (&seen.hosted, &seen.ended) {
            (Some(h), _) => (h.seconds(), h.moves(), h.progress()),
            (None, Some(e)) => (e.seconds, e.moves, e.progress.clone()),
            (None, None) => (0.0, 0, None),
        };
        let limits = seen.hosted.as_ref().map(|h| h.limits).unwrap_or_default();
        let promised = seen.hosted.as_ref().filter(|h| h.limits.rate.is_some());
        let loaded = seen.loaded.duration_since(UNIX_EPOCH);
        Application {
            name: seen.name.clone(),
            number: seen.number,
            network: seen.class.clone(),
            state: seen.state,
            priority: seen.priority,
            loaded: loaded.map_or(0.0, |d| d.as_secs_f64()),
            seconds,
            told_after: None,
            // Given back with its end.
            memory: if seen.ended.is_some() { 0 } else { seen.bytes },
            actors: counters.actors.len(),
            firings: counters.actors.iter().map(|a| a.firings).sum(),
            busy: counters.busy().as_secs_f64(),
            moves,
            progress: told.map(progress),
            promised: limits.rate,
            pace: seen.hosted.as_ref().and_then(|h| h.pace()),
            is_late: promised.map(|h| h.is_late()),
            late: promised.map(|h| h.lately.late.load(Ordering::Relaxed)),
            share: limits.share,
            outcome: seen.ended.as_ref().map(|e| e.outcome.text()),
            isolated: None,
            exclusive: seen.hosted.as_ref().and_then(|h| h.exclusive),
        }
    }
}

/// The counters of an application as they are, or as they were in the end.
pub fn counters(seen: &Seen) -> Counters {
    match (&seen.hosted, &seen.ended) {
        (Some(hosted), _) => hosted.app.counters().unwrap_or_default(),
        (None, Some(ended)) => ended.counters.clone(),
        (None, None) => Counters::default(),
    }
}

/// The names of actors and ports.
fn ends(shapes: &[ActorShape], c: &ChannelCounters) -> (String, String) {
    let end = |actor: u32, port: u32, input: bool| match shapes.get(actor as usize) {
        None => "(the program)".to_string(),
        Some(shape) => {
            let ports = if input { &shape.inputs } else { &shape.outputs };
            let port = ports.get(port as usize).cloned().unwrap_or_default();
            format!("{}.{port}", shape.name)
        }
    };
    (
        end(c.from.actor, c.from.port, false),
        end(c.to.actor, c.to.port, true),
    )
}

impl From<&Seen> for Details {
    fn from(seen: &Seen) -> Details {
        let counters = counters(seen);
        let hosted = seen.hosted.as_ref();
        let shapes = match (hosted, &seen.ended) {
            (Some(hosted), _) => hosted.app.network().describe(),
            (None, Some(ended)) => ended.shapes.clone(),
            (None, None) => Vec::new(),
        };
        let class = |i: usize| {
            let shape = shapes.get(i);
            shape.map_or(String::new(), |s| s.class.clone())
        };
        let pins = hosted.map_or_else(Vec::new, |h| h.seats.pins());
        let actor = |(i, a): (usize, &ActorCounters)| Actor {
            name: a.name.clone(),
            class: class(i),
            worker: a.worker,
            pin: pins.get(i).copied().flatten(),
            firings: a.firings,
            activations: a.activations,
            busy: a.busy.as_secs_f64(),
            longest: a.longest.as_secs_f64(),
        };
        let channel = |c: &ChannelCounters| {
            let (from, to) = ends(&shapes, c);
            Channel {
                from,
                to,
                capacity: c.capacity,
                fill: c.fill,
                put: c.put,
                got: c.got,
                full: c.full,
                empty: c.empty,
                wakes: c.wakes,
            }
        };
        Details {
            anew: Vec::new(),
            application: seen.into(),
            actor: counters.actors.iter().enumerate().map(actor).collect(),
            channel: counters.channels.iter().map(channel).collect(),
            admission: None,
            diagnostics: Vec::new(),
            text: String::new(),
        }
    }
}

impl Application {
    /// It has said nothing since it said that, so long ago. Its seconds are known all the same.
    pub(super) fn has_been_silent(&mut self, ago: Duration) {
        if self.state != State::Loaded {
            self.told_after.get_or_insert(self.seconds);
            self.seconds += ago.as_secs_f64();
        }
    }

    /// Seconds for which its process has not answered, where it does not, and has not ended.
    pub fn silent_for(&self) -> Option<f64> {
        let after = self.told_after.filter(|_| self.outcome.is_none())?;
        Some(self.seconds - after)
    }
}

impl Unloaded {
    /// Of one that did not run any more.
    pub fn forgotten(name: String) -> Unloaded {
        Unloaded {
            name,
            outcome: "forgotten".to_string(),
            seconds: 0.0,
            told_after: None,
            firings: 0,
            progress: None,
        }
    }

    pub fn new(name: String, ended: Ended) -> Unloaded {
        Unloaded {
            name,
            outcome: ended.outcome.text(),
            seconds: ended.seconds,
            told_after: None,
            firings: ended.counters.actors.iter().map(|a| a.firings).sum(),
            progress: ended.progress.map(progress),
        }
    }
}
