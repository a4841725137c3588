// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host answers.

use crate::model::admission_report::Admission;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::outcome::Ended;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

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
    /// Which sort of error it is, as the guide's table of errors names it.
    #[serde(
        rename = "code",
        default,
        serialize_with = "code::serialize",
        deserialize_with = "code::deserialize"
    )]
    #[schema(value_type = String)]
    pub kind: Option<Kind>,
    /// It is no answer: the client says it, since it has none.
    #[serde(skip)]
    pub unanswered: bool,
    /// Nothing was heard in all the time that there was for an answer.
    #[serde(skip)]
    pub silent: bool,
}

impl From<(String, u64)> for Progress {
    fn from((unit, done): (String, u64)) -> Progress {
        Progress { done, unit }
    }
}

impl Application {
    /// It has said nothing since it said that, so long ago. Its seconds are known all the same.
    pub(crate) fn has_been_silent(&mut self, ago: Duration) {
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
            progress: ended.progress.map(Progress::from),
        }
    }
}

/// A core that is left.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Away {
    pub cpu: i32,
    pub worker: u32,
}

/// A [`Kind`] as its code. One of another version is none of ours.
mod code {
    use crate::model::error::Kind;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.unwrap_or(Kind::Internal).code())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Kind>, D::Error> {
        Ok(Kind::of_code(&String::deserialize(from)?))
    }
}

impl Failed {
    /// Says of whom, where there are several.
    pub(crate) fn of(self, whose: Option<String>) -> Failed {
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
