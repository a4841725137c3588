// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Isolated applications: each has a process of its own, for code that is not trusted. That process is
//! a host with this one application, a child of ours: what is asked of the application is asked there,
//! in the words of this same interface, and there is no other protocol. What ends that process, in
//! whatever way, ends the one application; when we end, killed or not, the kernel ends it. Between that
//! process and us is its guard (`guard.rs`), which ends what it has forked.
//!
//! One thread for each stands by: it starts the process (which the kernel ends with the thread that has
//! started it), follows its events, and remembers how it went.

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
use crate::isolated::core_exclusion::Leaving;
use crate::isolated::neighbor_updates::Telling;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::{Events, What};
use crate::protocol::{
    Application, Details, Failed, LoadRequest, MoveRequest, Unloaded, Why, Worker,
};
use crate::util::lock::{lock, whole};
use crate::util::process::is_stopped;
use hyper::Method;
pub use process::{LAST_WORDS, Starts, tidy};
pub(crate) use replace::Given;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
pub use set::{AllIsolated, details_of};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So long it may take to say how its application is; what it said last is told instead.
const ANSWERS: Duration = Duration::from_millis(500);
/// So long it may take to do what takes no time, and to end when its application has.
const SOON: Duration = Duration::from_secs(2);
/// Of what is to end at once, so long the last firing may take, and so long its process may take to answer.
const AT_ONCE: Duration = Duration::from_millis(500);
const AT_ONCE_ANSWERS: Duration = Duration::from_millis(800);
/// So long a guard may take to end all that there is to be ended.
const GUARDED: Duration = Duration::from_secs(3);
/// So much longer than its application may take it has to say that this has taken too long.
const GRACE: Duration = Duration::from_secs(1);

/// One of them.
#[derive(Debug)]
pub struct Isolated {
    pub name: String,
    /// As the applications of this host are numbered.
    pub number: u64,
    pub process: u32,
    pub(crate) client: Client,
    /// Which cores it has been told to leave.
    pub(crate) leaving: Leaving,
    /// Who computes beside it, as it has been told.
    pub(crate) telling: Telling,
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct Known {
    /// The guard of its process. None: it has ended, and somebody has seen how.
    child: Option<Child>,
    /// What it said last of its application.
    last: Details,
    /// When.
    said: Instant,
    /// And of its workers.
    workers: Vec<Worker>,
    given: Given,
    /// What it claimed when it was loaded, in bytes.
    claims: u64,
    /// All that its process may claim, in bytes, if it has a limit.
    most: Option<u64>,
    /// Others have heard of it.
    told: bool,
    /// It is about to begin.
    begins: bool,
    /// Somebody has it taken away, whether or not it has begun.
    goes: bool,
    /// And its process has been killed for that: such an end is no failure.
    killed: bool,
    /// Its process was told to end (SIGTERM), since this host ends: nor is such an end.
    told_to_end: bool,
    /// The new version which is to take its place: its end may not be the end of it.
    next: Option<replace::Coming>,
    /// What an old version was given, which is not seen to have ended, though the new one is loaded.
    before: Option<Given>,
    /// How often that has been so.
    befores: u64,
    /// How that has ended.
    over: Option<String>,
}

impl Known {
    /// Nothing has been heard of it yet.
    fn new(name: &str, number: u64, network: &str, given: Given) -> Known {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let application = Application {
            name: name.to_string(),
            number,
            network: network.to_string(),
            loaded: now.map_or(0.0, |d| d.as_secs_f64()),
            ..Application::default()
        };
        Known {
            child: None,
            last: Details {
                application,
                ..Details::default()
            },
            said: Instant::now(),
            workers: Vec::new(),
            given,
            claims: 0,
            most: None,
            told: false,
            begins: false,
            goes: false,
            killed: false,
            told_to_end: false,
            next: None,
            before: None,
            befores: 0,
            over: None,
        }
    }

    /// How it is, of one that does not say so.
    fn silent(&self) -> Details {
        let mut last = self.last.clone();
        if self.over.is_none() {
            last.application.has_been_silent(self.said.elapsed());
        }
        last
    }
}

impl Isolated {
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    fn address(&self, rest: &str) -> String {
        format!("/applications/{}{rest}", encoded(&self.name))
    }

    /// Loads the application, paused, and limits what its process may claim. `beside` is what others take of each
    /// worker's core. Its process may answer nothing at all, as in a constructor of its code that does not return.
    pub fn load(
        self: &Arc<Self>,
        request: &LoadRequest,
        beside: Vec<f64>,
        within: Duration,
        events: &Events,
    ) -> Result<(), Failed> {
        // It begins on cores that are for all.
        let left = self.leave(SOON).recv_timeout(within);
        let left = left.unwrap_or_else(|_| Err(format!("{} does not answer", self.name)));
        left.map_err(|who| Refusal::new(Kind::Conflict, who))?;
        let inner = LoadRequest {
            name: Some(self.name.clone()),
            isolate: false,
            paused: true,
            beside,
            ..request.clone()
        };
        let befores = self.befores();
        let client = self.client.clone().within(within + ANSWERS);
        let loaded = client.call(Method::POST, "/applications", &json!(inner));
        let loaded: Details = loaded.map_err(|failed| match failed.silent && self.lives() {
            true => self.silent(),
            false => self.explained(failed),
        })?;
        let claims = loaded.application.memory;
        let network = self.seen(loaded, befores).application.network;
        if let Some(more) = request.memory {
            self.limit_memory(more);
        }
        let mut known = self.known();
        (known.told, known.claims) = (true, claims);
        drop(known);
        let detail = format!("{network} as {} in process {}", self.name, self.process);
        events.tell(What::Loaded, &self.name, detail);
        Ok(())
    }

    fn silent(&self) -> Failed {
        let what = format!(
            "{} has not been loaded in the time that it has for that: its process does not answer, since a \
             constructor of its shared object does not return, or the machine is busy",
            self.name
        );
        let help = "--within SECONDS gives it more";
        Refusal::new(Kind::Timeout, what).help(help).into()
    }

    /// It is loaded, and shall run. On a busy machine that takes no time of its own, but waits for its turn as the load
    /// did: a process that has not ended is not given up sooner than that.
    pub fn start(&self, within: Duration) -> Result<(), Failed> {
        self.known().begins = true;
        self.change("resume", within).map(drop)
    }

    /// What it was given, by this host: what its process says of that may be anything.
    pub(crate) fn given(&self) -> Given {
        self.known().given.clone()
    }

    /// How often a new version has been loaded there that waits for the old one, until now.
    fn befores(&self) -> u64 {
        self.known().befores
    }

    /// As this host tells it; and it is what was said last. `befores`: when that was asked for. An answer that was on its way
    /// when a new version was loaded there says nothing of that.
    fn seen(&self, mut details: Details, befores: u64) -> Details {
        details.application.name.clone_from(&self.name);
        details.application.number = self.number;
        details.application.isolated = Some(self.process);
        if details.application.state == State::Failed {
            let how = details.application.outcome.take();
            details.application.outcome = how.map(|how| self.with_memory(how));
        }
        let mut known = self.known();
        match &known.over {
            // Its process may have gone since it has said this, and what was known by looking at it with it.
            Some(how) => details.application.outcome = Some(how.clone()),
            None => {
                let ends = matches!(details.application.state, State::Draining | State::Ending);
                if !ends && known.befores == befores {
                    known.before = None;
                }
                known.last = details.clone();
                known.said = Instant::now();
            }
        }
        details
    }

    /// Who does not answer since its process has ended is told to have ended, and who is stopped to be so.
    pub(crate) fn explained(&self, failed: Failed) -> Failed {
        if !failed.unanswered {
            return failed;
        }
        // A connection that breaks is the end of its process, which is seen soon. Who was silent has had all the time that
        // there was.
        let seen = match failed.silent {
            true => Duration::ZERO,
            false => GUARDED + SOON,
        };
        match self.until_over(seen) {
            Some(how) => Refusal::new(Kind::Conflict, self.ended_in_words(&how)).into(),
            None if self.is_stopped() => self.stopped(failed),
            None => failed,
        }
    }

    /// Of one that has ended: whether that was a failure, and how it was.
    fn ended_in_words(&self, how: &str) -> String {
        let verb = match self.known().last.application.state {
            State::Failed => "failed",
            _ => "ended",
        };
        format!("{} has {verb}: {how}", self.name)
    }

    /// Its process answers nothing then, however long it is waited for.
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

    /// How it has ended, if it does before `within` is over.
    fn until_over(&self, within: Duration) -> Option<String> {
        let known = self.known();
        let waits = |k: &mut Known| k.over.is_none();
        let (known, _) = whole(self.changed.wait_timeout_while(known, within, waits));
        known.over.clone()
    }

    pub fn lives(&self) -> bool {
        self.known().over.is_none()
    }

    /// What it claimed when it was loaded, in bytes.
    pub(crate) fn claims(&self) -> u64 {
        self.known().claims
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.known().told
    }

    /// `within` is all that it has for an answer.
    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        rest: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, Failed> {
        if !self.lives() {
            return Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into());
        }
        let client = self.client.clone().within(within);
        let answer = client.call(method, &self.address(rest), body);
        answer.map_err(|failed| self.explained(failed))
    }

    /// How it is; if it does not say so soon, how it was. Who cannot say so is not waited for.
    pub fn details(&self) -> Details {
        if self.lives() && !self.is_stopped() {
            let client = self.client.clone().within(ANSWERS);
            let befores = self.befores();
            match client.get::<Details>(&self.address("")) {
                Ok(details) => return self.not_before_its_end(self.seen(details, befores)),
                // Its process has ended, and that is seen soon.
                Err(failed) if failed.unanswered && !failed.silent => {
                    self.until_over(ANSWERS);
                }
                Err(_) => {}
            }
        }
        self.known().silent()
    }

    /// Its process has said that it has ended, which this host learns by an event: until then it is still remembered, and
    /// has its name.
    fn not_before_its_end(&self, details: Details) -> Details {
        let state = details.application.state;
        if !matches!(state, State::Ended | State::Failed) {
            return details;
        }
        match self.until_over(ANSWERS) {
            Some(_) => self.known().last.clone(),
            None => {
                let mut details = details;
                details.application.state = State::Ending;
                details
            }
        }
    }

    /// Pauses it, or lets it go on: what stands behind its name in the address.
    pub fn change(&self, what: &str, within: Duration) -> Result<Application, Failed> {
        let rest = format!("/{what}?within={}", within.as_secs_f64());
        let changed: Application = self.ask(Method::POST, &rest, &Value::Null, within + GRACE)?;
        let mut known = self.known();
        if known.last.application.state == State::Loaded {
            // It has begun just now, whether or not it says more.
            known.last.application.state = changed.state;
            known.said = Instant::now();
        }
        drop(known);
        let mut details = self.details();
        details.application.state = changed.state;
        Ok(details.application)
    }

    pub fn move_actor(
        &self,
        request: &MoveRequest,
        within: Option<Duration>,
    ) -> Result<Application, Failed> {
        let within = within.unwrap_or(SOON);
        let _: Application = self.ask(Method::POST, "/move", &json!(request), within)?;
        Ok(self.details().application)
    }

    pub fn why(&self, within: Option<Duration>) -> Result<Why, Failed> {
        let (name, over) = (&self.name, self.known().over.clone());
        let text = match over {
            Some(how) => format!("{}\n", self.ended_in_words(&how)),
            // That is why, and its process cannot say so.
            None if self.is_stopped() => {
                let process = self.process;
                format!(
                    "{name}: its process {process} is stopped; kill -CONT {process} lets it go on\n"
                )
            }
            None => {
                let within = within.unwrap_or(SOON);
                let said: Why = self.ask(Method::GET, "/why", &Value::Null, within)?;
                said.text
            }
        };
        Ok(Why {
            application: name.clone(),
            text,
        })
    }

    /// Whether somebody has it taken away at once. Who loads it meanwhile fails then.
    pub(crate) fn goes(&self) -> bool {
        self.known().goes
    }

    /// Takes it away. With `now`, whatever it does then, its process ends.
    fn unload(&self, now: bool, within: Duration) -> Result<Unloaded, Failed> {
        // Before it ends by that.
        self.known().goes |= now;
        if self.lives() {
            let (within, answers) = match now {
                true => (within.min(AT_ONCE), AT_ONCE_ANSWERS),
                false => (within, within + GRACE),
            };
            let rest = format!("?now={now}&within={}", within.as_secs_f64());
            let client = self.client.clone().within(answers);
            let done = client.call(Method::DELETE, &self.address(&rest), &Value::Null);
            // A process that does not answer has no right to be waited for where it is to end at once.
            let done: Result<Unloaded, Failed> = match now {
                true => done,
                false => done.map_err(|failed| self.explained(failed)),
            };
            match done {
                // Its end is told before it is away.
                Ok(unloaded) => {
                    self.until_over(SOON);
                    self.take_away();
                    return Ok(Unloaded {
                        name: self.name.clone(),
                        ..unloaded
                    });
                }
                Err(failed) if self.lives() && !now => return Err(failed),
                Err(_) => {}
            }
            self.take_away();
            if self.until_over(GUARDED).is_none() {
                self.kill_guard();
                self.until_over(SOON);
            }
        }
        let known = self.known();
        let last = known.silent().application;
        Ok(Unloaded {
            name: self.name.clone(),
            outcome: known.over.clone().unwrap_or_default(),
            seconds: last.seconds,
            told_after: last.told_after,
            firings: last.firings,
            progress: last.progress,
        })
    }

    /// Ends its process where it is, since it is to be there no longer.
    fn take_away(&self) {
        self.known().killed = true;
        self.kill();
    }

    /// Ends its process, and what that has forked.
    fn kill(&self) {
        self.tell_guard(guard::END);
    }

    /// Where the guard does not do that: its process ends with it.
    fn kill_guard(&self) {
        self.tell_guard(libc::SIGKILL);
    }

    fn tell_guard(&self, signal: i32) {
        if let Some(child) = &self.known().child {
            // It may have been stopped with its process.
            for signal in [libc::SIGCONT, signal] {
                // SAFETY: it is ours, and is waited for only under the lock.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
        }
    }

    /// Tells its host to end, as a terminal does.
    fn stop(&self) {
        self.known().told_to_end = true;
        self.tell_guard(libc::SIGTERM);
    }
}
