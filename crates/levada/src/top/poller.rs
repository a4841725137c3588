// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to the host. Each kind of request has a thread of its own and at most one request in flight, so a slow
//! reply delays neither the display, nor the keys, nor other requests.

use super::Input;
use super::action::Action;
use crate::client::application_path;
use levada_host::State;
use levada_host::client::Client;
use levada_host::protocol::{Application, Details, Failed, Stats, Why};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Timeout for the details of one application; another one may be selected meanwhile.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);
/// A request that is pending for longer is shown.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// The details of one application.
pub struct More {
    pub name: String,
    /// The time of the reply, in seconds since the first request.
    pub at: f64,
    pub details: Option<Details>,
    pub why: String,
}

/// A reply.
pub enum Reply {
    Stats(Result<Stats, Failed>),
    /// `None`: the request failed.
    More(Option<Box<More>>),
    /// The result of a key.
    Done(String),
}

/// Sorts applications that have ended behind the others.
pub fn living_first(all: &mut [Application]) {
    all.sort_by_key(|a| matches!(a.state, State::Ended | State::Failed));
}

pub fn stats(client: &Client) -> Result<Stats, Failed> {
    let mut stats: Stats = client.get("/stats")?;
    living_first(&mut stats.application);
    Ok(stats)
}

fn more(client: &Client, begun: Instant, name: String) -> Option<More> {
    let details: Option<Details> = match client.get(&application_path(&name, "")) {
        Ok(details) => Some(details),
        Err(failed) if failed.unanswered => return None,
        // The application may end between two requests.
        Err(_) => None,
    };
    let at = begun.elapsed().as_secs_f64();
    // If its process does not respond, the host would wait long for the report.
    let answers = |d: &Details| d.application.silent_for().is_none();
    let why: Option<Why> = if details.as_ref().is_some_and(answers) {
        client.get(&application_path(&name, "/why")).ok()
    } else {
        None
    };
    Some(More {
        name,
        at,
        details,
        why: why.map_or(String::new(), |w| w.text),
    })
}

/// Sends requests, and knows which are pending.
pub struct Poller {
    client: Client,
    /// The client for the selected application, with a long timeout; the screen shows the wait.
    patient: Client,
    heard: Sender<Input>,
    begun: Instant,
    stats: Option<Instant>,
    more: bool,
    action: Option<String>,
}

impl Poller {
    pub fn new(client: Client, patient: Client, heard: Sender<Input>) -> Poller {
        Poller {
            client,
            patient,
            heard,
            begun: Instant::now(),
            stats: None,
            more: false,
            action: None,
        }
    }

    fn ask(&self, client: &Client, question: impl FnOnce(&Client) -> Reply + Send + 'static) {
        let (client, heard) = (client.clone(), self.heard.clone());
        // If `top` has ended meanwhile, the reply is dropped; the thread is not joined.
        std::thread::spawn(move || {
            let _ = heard.send(Input::Reply(question(&client)));
        });
    }

    pub fn stats(&mut self) {
        if !self.waits() {
            self.stats = Some(Instant::now());
            self.ask(&self.patient, |client| Reply::Stats(stats(client)));
        }
    }

    /// Requests details, unless a request is pending; returns whether it did.
    pub fn more(&mut self, name: &str) -> bool {
        if self.more {
            return false;
        }
        self.more = !name.is_empty();
        if self.more {
            let name = name.to_string();
            let begun = self.begun;
            let client = self.client.clone().timeout(DETAILS_TIMEOUT);
            self.ask(&client, move |client| {
                Reply::More(more(client, begun, name).map(Box::new))
            });
        }
        true
    }

    /// Sends an action and returns its text. While one is pending, further actions are refused, since their late
    /// execution would be a surprise.
    pub fn action(&mut self, action: Action) -> String {
        if let Some(words) = &self.action {
            return format!("{words}: that has not been answered, and is waited for first");
        }
        let words = action.words();
        self.action = Some(words.clone());
        self.ask(&self.client, move |client| Reply::Done(action.done(client)));
        words
    }

    pub fn answered(&mut self, reply: &Reply) {
        match reply {
            Reply::Stats(_) => self.stats = None,
            Reply::More(_) => self.more = false,
            Reply::Done(_) => self.action = None,
        }
    }

    /// Whether the status request is pending.
    pub fn waits(&self) -> bool {
        self.stats.is_some()
    }

    /// For how long the host's reply has been pending, if that is long.
    pub fn silent_for(&self) -> Option<Duration> {
        let since = self.stats?.elapsed();
        (since >= SILENT_AFTER).then_some(since)
    }
}
