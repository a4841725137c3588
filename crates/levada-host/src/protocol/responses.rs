// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Response types.

use crate::model::admission_report::Admission;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::outcome::Ended;
use crate::model::unconsumed::{UnconsumedChannel, is_zero};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

/// The host.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct HostInfo {
    pub version: String,
    pub pid: u32,
    /// Uptime in seconds.
    pub seconds: f64,
    pub workers: u32,
    /// The real-time priority of the workers, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<u32>,
    /// Number of applications that are loaded and have not ended.
    pub applications: usize,
    /// Number of loads that are being checked and compiled.
    #[serde(default)]
    pub preparing: usize,
    /// Applications that the previous host had loaded and this one has not restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<String>,
}

/// An application, without its actors and channels.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Application {
    pub name: String,
    pub number: u64,
    /// The name of its network.
    pub network: String,
    pub state: State,
    pub priority: i32,
    /// Time of the load, in seconds since 1970.
    pub loaded: f64,
    /// Seconds since its start, or from its start to its end.
    pub seconds: f64,
    /// Of an isolated application that does not answer, or has ended without a report: seconds from its
    /// start to the last report, from which the other values are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report_s: Option<f64>,
    /// Memory for state and channels, in bytes; 0 when it has ended. After a load: the initial size.
    pub memory: u64,
    pub actors: usize,
    pub firings: u64,
    /// CPU time of its actors and fibers, in seconds.
    pub busy: f64,
    /// Number of times that the mapper has moved one of its actors.
    pub moves: usize,
    /// Progress that it reports itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Reserved rate, and measured rate, in units per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_rate: Option<f64>,
    /// Whether the measured rate is below the reserved rate while it does not wait for its own input or output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_missed: Option<bool>,
    /// Number of times that this began: the event `rate_missed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_miss_count: Option<u64>,
    /// CPU quota in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// How it ended, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of an application that is done: elements that were left over in its channels, of at most 64 channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconsumed: Vec<UnconsumedChannel>,
    /// Number of further channels with such elements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unconsumed_omitted: usize,
    /// The process that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<u32>,
    /// The worker with the core that is reserved for it.
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
    /// The result of the admission check, if any rate is reserved; after a load only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub admission: Option<Admission>,
    /// State that actors could not take over from the previous version, and why; after a replacement only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub state_reset: Vec<String>,
    /// Warnings of the compiler; after a load only.
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
    /// The worker that it is pinned to, by a move or a placement. It is elsewhere only while that worker is reserved
    /// or overrun by a long firing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<u32>,
    pub firings: u64,
    pub activations: u64,
    /// CPU time in seconds, and the longest firing.
    pub busy: f64,
    pub longest: f64,
}

/// A channel, once for each consumer.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Channel {
    pub from: String,
    pub to: String,
    pub capacity: u32,
    /// Its capacity at load; less than `capacity`: it has grown.
    #[serde(default)]
    pub loaded_capacity: u32,
    /// Number of elements in it.
    pub fill: u32,
    pub put: u64,
    pub got: u64,
    /// Times that its producer found it full, and that its consumer found it empty, and waited.
    pub full: u64,
    pub empty: u64,
    pub wakes: u64,
}

/// How an unloaded application ended.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Unloaded {
    pub name: String,
    pub outcome: String,
    pub seconds: f64,
    /// As in `Application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report_s: Option<f64>,
    pub firings: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Of an application that is done: elements that were left over in its channels, of at most 64 channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconsumed: Vec<UnconsumedChannel>,
    /// Number of further channels with such elements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unconsumed_omitted: usize,
}

/// A worker, and the actors on it.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Worker {
    pub worker: u32,
    /// The core that it is pinned to; -1: none.
    pub cpu: i32,
    /// Whether its core is shared by all applications; otherwise it is reserved.
    pub available: bool,
    /// Seconds that it ran actors, and that it slept.
    pub busy: f64,
    pub asleep: f64,
    /// Steal time in seconds: an actor was running, but other programs had the core. Not included in `busy` or
    /// `asleep`.
    #[serde(default)]
    pub preempted: f64,
    pub activations: u64,
    pub sleeps: u64,
    /// The lease of its core; none: no other program has ever requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    pub actor: Vec<Placed>,
    /// Actors of isolated applications; in `/map` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<Placed>,
    /// Applications with fibers that recently ran there: C programs, with their forks and procedures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Computes>,
}

/// The lease of a core: the right to run a worker there, which one process has at a time.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Lease {
    /// The process that holds it; none: no process runs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Number of processes that wait for it.
    pub waiting: u32,
    /// Times that a holder passed it to a waiting process.
    pub transfers: u64,
    /// Times that it was taken from a holder that did not respond.
    pub preempted: u64,
    /// Times that it was taken from a holder that was idle or had ended.
    pub reclaimed_idle: u64,
    /// Times that a thread waited for it; total and longest wait in seconds.
    pub waits: u64,
    pub waited_s: f64,
    pub longest_s: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Placed {
    pub application: String,
    pub actor: String,
    /// Recent CPU usage as a fraction of a core; none: not measured yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The worker that it is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<u32>,
}

/// An application with fibers that run on a core.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Computes {
    pub application: String,
    /// Recent CPU usage of the fibers, as a fraction of the core.
    pub share: f64,
}

/// Totals of the host, its workers and its applications.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Stats {
    pub host: HostInfo,
    pub worker: Vec<Worker>,
    pub application: Vec<Application>,
}

/// The wait report of an application.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Why {
    pub application: String,
    pub text: String,
}

/// An error.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Failed {
    pub error: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Errors in the sources.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(value_type = Vec<Object>)]
    pub diagnostics: Vec<Value>,
    /// The same as text, with the source lines.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub text: String,
    /// The request will take effect later: the new version starts when the old one has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// The result of the admission check, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Box<Admission>>,
    /// The code of the error, as in the table of errors.
    #[serde(
        rename = "code",
        default,
        serialize_with = "code::serialize",
        deserialize_with = "code::deserialize"
    )]
    #[schema(value_type = String)]
    pub kind: Option<Kind>,
    /// Made by the client: there was no response.
    #[serde(skip)]
    pub unanswered: bool,
    /// The timeout expired without any response.
    #[serde(skip)]
    pub silent: bool,
}

impl From<(String, u64)> for Progress {
    fn from((unit, done): (String, u64)) -> Progress {
        Progress { done, unit }
    }
}

impl Application {
    /// Its process has not reported for `ago`. The elapsed seconds are known anyway.
    pub(crate) fn mark_silent(&mut self, ago: Duration) {
        if self.state != State::Loaded {
            self.last_report_s.get_or_insert(self.seconds);
            self.seconds += ago.as_secs_f64();
        }
    }

    /// Seconds since its process has last reported, if the process does not answer and has not ended.
    pub fn silent_for(&self) -> Option<f64> {
        let after = self.last_report_s.filter(|_| self.outcome.is_none())?;
        Some(self.seconds - after)
    }
}

impl Unloaded {
    /// Of an application that did not run any more.
    pub fn never_ran(name: String) -> Unloaded {
        Unloaded {
            name,
            outcome: "forgotten".to_string(),
            seconds: 0.0,
            last_report_s: None,
            firings: 0,
            progress: None,
            unconsumed: Vec::new(),
            unconsumed_omitted: 0,
        }
    }

    pub fn new(name: String, ended: Ended) -> Unloaded {
        Unloaded {
            name,
            outcome: ended.outcome.text(),
            seconds: ended.seconds,
            last_report_s: None,
            firings: ended.counters.actors.iter().map(|a| a.firings).sum(),
            progress: ended.progress.map(Progress::from),
            unconsumed: ended.unconsumed.channels,
            unconsumed_omitted: ended.unconsumed.omitted,
        }
    }
}

/// A core that is reserved for another process.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CoreReservation {
    pub cpu: i32,
    pub worker: u32,
}

/// Serializes a [`Kind`] as its code. Unknown codes of other versions become none.
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
    /// Names the application in the text, if a request has several.
    pub(crate) fn of(self, owner: Option<String>) -> Failed {
        let error = match owner {
            Some(owner) => format!("{owner}: {}", self.error),
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
            pending: r.pending,
            admission: r.admission,
            kind: Some(r.kind),
            ..Failed::default()
        }
    }
}
