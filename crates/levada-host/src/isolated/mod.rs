// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Isolated applications: each runs in a child process, for code that is not trusted.
//!
//! The child is a host with this one application, and is called through the same HTTP interface; there is no other
//! protocol. However the child ends, only this application ends. When the parent ends, even by SIGKILL, the kernel
//! ends the child. Between parent and child is a guard process (`guard.rs`), which ends everything that the
//! application has forked.
//!
//! One supervisor thread per child starts it (the kernel ties the child's life to that thread), follows its events,
//! and records its end.

pub(crate) mod core_exclusion;
pub(crate) mod cpu_usage;
pub mod guard;
pub(crate) mod memory;
pub(crate) mod neighbor_updates;
pub(crate) mod process;
pub(crate) mod replace;
pub(crate) mod set;
pub(crate) mod supervisor;
pub(crate) mod workers;

use crate::client::{Client, encoded};
use crate::isolated::core_exclusion::CoreExclusion;
use crate::isolated::neighbor_updates::NeighborUpdates;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::{EventKind, Events};
use crate::model::unconsumed;
use crate::protocol::{
    Application, Details, Failed, LoadRequest, MoveRequest, Unloaded, Why, Worker,
};
use crate::util::lock::{ignore_poison, lock};
use crate::util::process::is_stopped;
use hyper::Method;
pub use process::{LAST_WORDS, LaunchConfig, tidy};
pub(crate) use replace::VersionSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
pub use set::{IsolatedSet, details_of};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Timeout of a status request; on timeout the last known status is returned.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of requests that take no time, and of the child's end after its application's end.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// For an immediate end: time for the last firing, and timeout of the response.
const IMMEDIATE_END_TIMEOUT: Duration = Duration::from_millis(500);
const IMMEDIATE_END_REPLY_TIMEOUT: Duration = Duration::from_millis(800);
/// Time that a guard has to kill all processes.
const GUARD_TIMEOUT: Duration = Duration::from_secs(3);
/// Additional time for the response that reports a timeout.
const TIMEOUT_REPLY_MARGIN: Duration = Duration::from_secs(1);

/// An isolated application.
#[derive(Debug)]
pub struct Isolated {
    pub name: String,
    /// Its number among all applications of this host.
    pub number: u64,
    pub process: u32,
    pub(crate) client: Client,
    /// The reserved cores that it was told of.
    pub(crate) exclusion: CoreExclusion,
    /// The neighbor processes that it was told of.
    pub(crate) neighbor_updates: NeighborUpdates,
    record: Mutex<ProcessRecord>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct ProcessRecord {
    /// The guard process. None: it has ended and was waited for.
    child: Option<Child>,
    /// The last status that its process has reported.
    last: Details,
    /// The time of that.
    answered_at: Instant,
    /// The last report about its workers.
    workers: Vec<Worker>,
    settings: VersionSettings,
    /// Memory at its load, in bytes.
    memory_bytes: u64,
    /// Memory limit of its process in bytes, if there is one.
    memory_limit_bytes: Option<u64>,
    /// Its load has been announced by an event.
    announced: bool,
    /// It is about to start.
    starting: bool,
    /// It is being unloaded, whether or not it has started.
    unloading: bool,
    /// Its process has been killed for that; such an end is no failure.
    killed: bool,
    /// Its process was told to end (SIGTERM), because this host ends; such an end is no failure.
    told_to_end: bool,
    /// The new version that is to replace it: an end may then be the end of the old version only.
    pending_version: Option<replace::PendingVersion>,
    /// Settings of an old version that has not been seen to end, although the new version is loaded.
    previous_settings: Option<VersionSettings>,
    /// Number of times that this has happened.
    previous_versions: u64,
    /// How it has ended.
    outcome: Option<String>,
}

impl ProcessRecord {
    /// The record before any report.
    fn new(name: &str, number: u64, network: &str, given: VersionSettings) -> ProcessRecord {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let application = Application {
            name: name.to_string(),
            number,
            network: network.to_string(),
            loaded: now.map_or(0.0, |d| d.as_secs_f64()),
            ..Application::default()
        };
        ProcessRecord {
            child: None,
            last: Details {
                application,
                ..Details::default()
            },
            answered_at: Instant::now(),
            workers: Vec::new(),
            settings: given,
            memory_bytes: 0,
            memory_limit_bytes: None,
            announced: false,
            starting: false,
            unloading: false,
            killed: false,
            told_to_end: false,
            pending_version: None,
            previous_settings: None,
            previous_versions: 0,
            outcome: None,
        }
    }

    /// The last known status of a process that does not answer.
    fn silent(&self) -> Details {
        let mut last = self.last.clone();
        if self.outcome.is_none() {
            last.application.mark_silent(self.answered_at.elapsed());
        }
        last
    }
}

impl Isolated {
    fn record(&self) -> MutexGuard<'_, ProcessRecord> {
        lock(&self.record)
    }

    fn address(&self, rest: &str) -> String {
        format!("/applications/{}{rest}", encoded(&self.name))
    }

    /// Loads the application paused, and limits the memory of its process. `load_by_others` is the load of others on
    /// each worker's core. The process may never answer, for example if a constructor of its code does not return.
    pub fn load(
        self: &Arc<Self>,
        request: &LoadRequest,
        load_by_others: Vec<f64>,
        timeout: Duration,
        events: &Events,
    ) -> Result<(), Failed> {
        // It starts on cores that are not reserved.
        let left = self
            .exclude_reserved_cores(REPLY_TIMEOUT)
            .recv_timeout(timeout);
        let left = left.unwrap_or_else(|_| Err(format!("{} does not answer", self.name)));
        left.map_err(|reason| Refusal::new(Kind::Conflict, reason))?;
        let inner = LoadRequest {
            name: Some(self.name.clone()),
            isolate: false,
            paused: true,
            core_usage_by_others: load_by_others,
            ..request.clone()
        };
        let befores = self.befores();
        let client = self.client.clone().timeout(timeout + STATUS_TIMEOUT);
        let loaded = client.call(Method::POST, "/applications", &json!(inner));
        let loaded: Details = loaded.map_err(|failed| {
            if failed.silent && self.lives() {
                self.silent()
            } else {
                self.explained(failed)
            }
        })?;
        let claims = loaded.application.memory;
        let network = self.record_answer(loaded, befores).application.network;
        if let Some(more) = request.memory {
            self.limit_memory(more);
        }
        let mut known = self.record();
        (known.announced, known.memory_bytes) = (true, claims);
        drop(known);
        let detail = format!("{network} as {} in process {}", self.name, self.process);
        events.emit(EventKind::Loaded, &self.name, detail);
        Ok(())
    }

    fn silent(&self) -> Failed {
        let what = format!(
            "{} has not been loaded in the time that it has for that: its process does not answer, since a \
             constructor of its shared object does not return, or the machine is busy",
            self.name
        );
        let help = "--timeout SECONDS gives it more";
        Refusal::new(Kind::Timeout, what).help(help).into()
    }

    /// Starts a loaded application. On a busy machine the child waits for CPU time as long as the load did: a process
    /// that has not ended is not given up before that.
    pub fn start(&self, timeout: Duration) -> Result<(), Failed> {
        self.record().starting = true;
        self.change("resume", timeout).map(drop)
    }

    /// Its settings, as this host has given them; its process is not trusted to report them.
    pub(crate) fn given(&self) -> VersionSettings {
        self.record().settings.clone()
    }

    /// Number of new versions that were loaded there and waited for the old one.
    fn befores(&self) -> u64 {
        self.record().previous_versions
    }

    /// Records a status report. `befores` is the value of `befores()` when it was requested: a response that was on
    /// its way when a new version was loaded does not describe that version.
    fn record_answer(&self, mut details: Details, befores: u64) -> Details {
        details.application.name.clone_from(&self.name);
        details.application.number = self.number;
        details.application.isolated = Some(self.process);
        if details.application.state == State::Failed {
            let how = details.application.outcome.take();
            details.application.outcome = how.map(|how| self.with_memory_note(how));
        }
        let application = &mut details.application;
        unconsumed::cut(
            &mut application.unconsumed,
            &mut application.unconsumed_omitted,
        );
        let mut known = self.record();
        match &known.outcome {
            // Its process may have ended since, and what the supervisor has found out is more precise.
            Some(how) => details.application.outcome = Some(how.clone()),
            None => {
                let ends = matches!(details.application.state, State::Draining | State::Ending);
                if !ends && known.previous_versions == befores {
                    known.previous_settings = None;
                }
                known.last = details.clone();
                known.answered_at = Instant::now();
            }
        }
        details
    }

    /// Replaces the error of a process that does not answer by the reason: it has ended, or is stopped.
    pub(crate) fn explained(&self, failed: Failed) -> Failed {
        if !failed.unanswered {
            return failed;
        }
        // A broken connection means that the process has ended, which is noticed soon. After a timeout there is no
        // time left to wait.
        let seen = if failed.silent {
            Duration::ZERO
        } else {
            GUARD_TIMEOUT + REPLY_TIMEOUT
        };
        match self.wait_over(seen) {
            Some(how) => Refusal::new(Kind::Conflict, self.end_text(&how)).into(),
            None if self.is_stopped() => self.stopped(failed),
            None => failed,
        }
    }

    /// The end as text: whether it was a failure, and the outcome.
    fn end_text(&self, how: &str) -> String {
        let verb = match self.record().last.application.state {
            State::Failed => "failed",
            _ => "ended",
        };
        format!("{} has {verb}: {how}", self.name)
    }

    /// A stopped process does not answer, however long one waits.
    fn is_stopped(&self) -> bool {
        is_stopped(self.process)
    }

    fn stopped(&self, failed: Failed) -> Failed {
        let (name, process) = (&self.name, self.process);
        Failed {
            error: format!("{}: it is stopped", failed.error),
            help: Some(format!(
                "kill -CONT {process} lets it go on, and what was asked may be done then; levada unload {name} --now \
                 ends it"
            )),
            ..failed
        }
    }

    /// Waits for its end; returns the outcome.
    fn wait_over(&self, timeout: Duration) -> Option<String> {
        let known = self.record();
        let waits = |k: &mut ProcessRecord| k.outcome.is_none();
        let (known, _) = ignore_poison(self.changed.wait_timeout_while(known, timeout, waits));
        known.outcome.clone()
    }

    pub fn lives(&self) -> bool {
        self.record().outcome.is_none()
    }

    /// Memory at its load, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.record().memory_bytes
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.record().announced
    }

    /// `timeout` is the timeout of the response.
    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        rest: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<T, Failed> {
        if !self.lives() {
            return Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into());
        }
        let client = self.client.clone().timeout(timeout);
        let answer = client.call(method, &self.address(rest), body);
        answer.map_err(|failed| self.explained(failed))
    }

    /// Its status; the last known one if it does not answer soon. A stopped process is not asked.
    pub fn details(&self) -> Details {
        if self.lives() && !self.is_stopped() {
            let client = self.client.clone().timeout(STATUS_TIMEOUT);
            let befores = self.befores();
            match client.get::<Details>(&self.address("")) {
                Ok(details) => {
                    return self.not_before_its_end(self.record_answer(details, befores));
                }
                // Its process has ended, which is noticed soon.
                Err(failed) if failed.unanswered && !failed.silent => {
                    self.wait_over(STATUS_TIMEOUT);
                }
                Err(_) => {}
            }
        }
        self.record().silent()
    }

    /// Its process has reported the end, which this host handles by an event: until then the application still has its
    /// name and is persisted.
    fn not_before_its_end(&self, details: Details) -> Details {
        let state = details.application.state;
        if !matches!(state, State::Ended | State::Failed) {
            return details;
        }
        match self.wait_over(STATUS_TIMEOUT) {
            Some(_) => self.record().last.clone(),
            None => {
                let mut details = details;
                details.application.state = State::Ending;
                details
            }
        }
    }

    /// Pauses or resumes it; `what` is the last part of the path.
    pub fn change(&self, what: &str, timeout: Duration) -> Result<Application, Failed> {
        let rest = format!("/{what}?timeout={}", timeout.as_secs_f64());
        let changed: Application = self.ask(
            Method::POST,
            &rest,
            &Value::Null,
            timeout + TIMEOUT_REPLY_MARGIN,
        )?;
        let mut known = self.record();
        if known.last.application.state == State::Loaded {
            // It has started, whether or not it reports more.
            known.last.application.state = changed.state;
            known.answered_at = Instant::now();
        }
        drop(known);
        let mut details = self.details();
        details.application.state = changed.state;
        Ok(details.application)
    }

    pub fn move_actor(
        &self,
        request: &MoveRequest,
        timeout: Option<Duration>,
    ) -> Result<Application, Failed> {
        let timeout = timeout.unwrap_or(REPLY_TIMEOUT);
        let _: Application = self.ask(Method::POST, "/move", &json!(request), timeout)?;
        Ok(self.details().application)
    }

    pub fn wait_report(&self, timeout: Option<Duration>) -> Result<Why, Failed> {
        let (name, over) = (&self.name, self.record().outcome.clone());
        let text = match over {
            Some(how) => format!("{}\n", self.end_text(&how)),
            // A stopped process cannot report its wait state; being stopped is the reason.
            None if self.is_stopped() => {
                let process = self.process;
                format!(
                    "{name}: its process {process} is stopped; kill -CONT {process} lets it go on\n"
                )
            }
            None => {
                let timeout = timeout.unwrap_or(REPLY_TIMEOUT);
                let said: Why = self.ask(Method::GET, "/why", &Value::Null, timeout)?;
                said.text
            }
        };
        Ok(Why {
            application: name.clone(),
            text,
        })
    }

    /// Whether it is being unloaded immediately; a concurrent load of it fails.
    pub(crate) fn is_unloading(&self) -> bool {
        self.record().unloading
    }

    /// Unloads it. With `now` its process is ended in any case.
    fn unload(&self, now: bool, timeout: Duration) -> Result<Unloaded, Failed> {
        // Before its end.
        self.record().unloading |= now;
        if self.lives() {
            let (timeout, answers) = if now {
                (
                    timeout.min(IMMEDIATE_END_TIMEOUT),
                    IMMEDIATE_END_REPLY_TIMEOUT,
                )
            } else {
                (timeout, timeout + TIMEOUT_REPLY_MARGIN)
            };
            let rest = format!("?now={now}&timeout={}", timeout.as_secs_f64());
            let client = self.client.clone().timeout(answers);
            let done = client.call(Method::DELETE, &self.address(&rest), &Value::Null);
            // With `now`, a process that does not answer is not waited for.
            let done: Result<Unloaded, Failed> = if now {
                done
            } else {
                done.map_err(|failed| self.explained(failed))
            };
            match done {
                // Its end is announced before it is removed.
                Ok(mut unloaded) => {
                    unconsumed::cut(&mut unloaded.unconsumed, &mut unloaded.unconsumed_omitted);
                    self.wait_over(REPLY_TIMEOUT);
                    self.kill_unloaded();
                    return Ok(Unloaded {
                        name: self.name.clone(),
                        ..unloaded
                    });
                }
                Err(failed) if self.lives() && !now => return Err(failed),
                Err(_) => {}
            }
            self.kill_unloaded();
            if self.wait_over(GUARD_TIMEOUT).is_none() {
                self.kill_guard();
                self.wait_over(REPLY_TIMEOUT);
            }
        }
        let known = self.record();
        let last = known.silent().application;
        Ok(Unloaded {
            name: self.name.clone(),
            outcome: known.outcome.clone().unwrap_or_default(),
            seconds: last.seconds,
            last_report_s: last.last_report_s,
            firings: last.firings,
            progress: last.progress,
            unconsumed: last.unconsumed,
            unconsumed_omitted: last.unconsumed_omitted,
        })
    }

    /// Kills its process for an unload.
    fn kill_unloaded(&self) {
        self.record().killed = true;
        self.kill();
    }

    /// Kills its process, and everything that it has forked.
    fn kill(&self) {
        self.signal_guard(guard::END);
    }

    /// Kills the guard if that does not respond; the process ends with it.
    fn kill_guard(&self) {
        self.signal_guard(libc::SIGKILL);
    }

    fn signal_guard(&self, signal: i32) {
        if let Some(child) = &self.record().child {
            // The guard may have been stopped with its process.
            for signal in [libc::SIGCONT, signal] {
                // SAFETY: a child of ours, which is waited for only under this lock.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
        }
    }

    /// Tells the child's host to end, as Ctrl-C does.
    fn stop(&self) {
        self.record().told_to_end = true;
        self.signal_guard(libc::SIGTERM);
    }
}
