// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events: what happened in a host, in order, numbered. The last ones are kept, so that who comes late
//! sees how it came to this; who follows and is too slow, or asks for what is not kept any more, is told how
//! many he has missed.

use crate::util::lock::lock;
use levada_text::escaped;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;

/// So many are kept, and so many may wait for a slow follower.
const KEPT: usize = 1024;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    Loaded,
    Paused,
    Resumed,
    /// Its sources have been told to end.
    Draining,
    /// By itself, or since it was told to.
    Ended,
    Failed,
    /// It has ended the host before this one, and is not loaded again.
    Held,
    Unloaded,
    /// By a new version, which goes on where the old one has ended.
    Replaced,
    /// It does less than it was promised.
    Late,
    /// It is promised a rate, and counts nothing that it could be of.
    Uncounted,
    /// An actor, to another worker.
    Moved,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Event {
    pub number: u64,
    /// Seconds since 1970.
    pub at: f64,
    pub event: What,
    /// The application's name.
    pub application: String,
    /// In words, where the event alone does not say it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Of an actor that moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
}

/// Some that happened and are not kept any more, or have come faster than they were read: in the place of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Missed {
    pub event: MissedWord,
    /// So many, as far as this host knows.
    pub count: u64,
    /// The number that was said to be known has not been given yet: it is of an earlier host, and numbers have begun
    /// anew since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissedWord {
    Missed,
}

impl Missed {
    pub fn of(count: u64) -> Missed {
        Missed {
            event: MissedWord::Missed,
            count,
            anew: false,
        }
    }
}

/// What is told of events, in a line.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Line {
    Event(Event),
    Missed(Missed),
}

#[derive(Debug)]
struct Past {
    next: u64,
    kept: VecDeque<Event>,
}

#[derive(Debug)]
pub struct Events {
    past: Mutex<Past>,
    sender: broadcast::Sender<Event>,
    /// What has failed is told on the error output, too.
    logs: AtomicBool,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            past: Mutex::new(Past {
                next: 1,
                kept: VecDeque::new(),
            }),
            sender: broadcast::channel(KEPT).0,
            logs: AtomicBool::new(false),
        }
    }
}

impl Events {
    /// From now on each application that fails is told on the error output, where whoever looks after the host looks
    /// first.
    pub fn log_failures(&self) {
        self.logs.store(true, Ordering::Relaxed);
    }

    pub fn tell(&self, event: What, application: &str, detail: impl Into<String>) {
        let detail = detail.into();
        if event == What::Failed && self.logs.load(Ordering::Relaxed) {
            let line = format!("{application} has failed: {detail}\n");
            let _ = std::io::stderr()
                .lock()
                .write_all(escaped(&line).as_bytes());
        }
        self.add(event, application, detail, None);
    }

    /// Where that is told on the error output in other words.
    pub(crate) fn tell_followers(&self, event: What, application: &str, detail: impl Into<String>) {
        self.add(event, application, detail.into(), None);
    }

    pub fn moved(&self, application: &str, actor: &str, from: u32, to: u32) {
        let between = Some((actor.to_string(), from, to));
        self.add(What::Moved, application, String::new(), between);
    }

    fn add(
        &self,
        event: What,
        application: &str,
        detail: String,
        moved: Option<(String, u32, u32)>,
    ) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut past = lock(&self.past);
        let (from, to) = moved.as_ref().map(|m| (m.1, m.2)).unzip();
        let event = Event {
            number: past.next,
            at: at.map_or(0.0, |d| d.as_secs_f64()),
            event,
            application: application.to_string(),
            detail,
            actor: moved.map(|m| m.0),
            from,
            to,
        };
        past.next += 1;
        past.kept.push_back(event.clone());
        if past.kept.len() > KEPT {
            past.kept.pop_front();
        }
        // Under the lock, so that they are sent in order. Nobody may follow: that is no error.
        let _ = self.sender.send(event);
    }

    /// All that are kept with a number above `since`, and what comes from now on. Who knows that number is told
    /// first how many he has missed; who knows one that is still to come, that it is not of this host: he is told all.
    pub fn follow(&self, since: Option<u64>) -> (Vec<Line>, broadcast::Receiver<Event>) {
        let past = lock(&self.past);
        let first = past.kept.front().map_or(past.next, |e| e.number);
        let anew = since.is_some_and(|since| since >= past.next);
        let since = since.map(|since| if anew { 0 } else { since });
        let gone = since.map_or(0, |since| (first - 1).saturating_sub(since));
        let missed = Missed {
            anew,
            ..Missed::of(gone)
        };
        let missed = (gone > 0 || anew).then_some(Line::Missed(missed));
        let above = |e: &&Event| e.number > since.unwrap_or(0);
        let kept = past.kept.iter().filter(above).cloned().map(Line::Event);
        (
            missed.into_iter().chain(kept).collect(),
            self.sender.subscribe(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_kept_and_sent_in_order() {
        let events = Events::default();
        events.tell(What::Loaded, "a", "");
        let event = |line: &Line| match line {
            Line::Event(event) => (event.number, event.event),
            Line::Missed(missed) => panic!("{missed:?}"),
        };
        let (before, mut then) = events.follow(None);
        events.moved("a", "x", 0, 1);
        assert_eq!(before.len(), 1);
        assert_eq!(event(&before[0]), (1, What::Loaded));
        let moved = then.try_recv().unwrap();
        assert_eq!((moved.number, moved.from, moved.to), (2, Some(0), Some(1)));
        assert!(then.try_recv().is_err());
        let late = events.follow(Some(1)).0;
        assert_eq!(late.len(), 1);
        for _ in 0..2 * KEPT {
            events.tell(What::Paused, "a", "");
        }
        let kept = events.follow(None).0;
        let last = 2 * KEPT as u64 + 2;
        assert_eq!(kept.len(), KEPT);
        assert_eq!(event(&kept[KEPT - 1]).0, last);
        // Who knows some is told how many of the others are gone.
        let first = last - KEPT as u64 + 1;
        for (since, gone) in [(0, first - 1), (1, first - 2), (first - 2, 1)] {
            let lines = events.follow(Some(since)).0;
            let Line::Missed(missed) = lines[0] else {
                panic!("{:?}", lines[0]);
            };
            assert_eq!((missed.count, lines.len()), (gone, KEPT + 1));
            assert_eq!(event(&lines[1]).0, first);
        }
        for (since, left) in [(first - 1, KEPT), (last, 0)] {
            assert_eq!(events.follow(Some(since)).0.len(), left);
        }
        // Numbers of an earlier host say nothing of this one.
        for (events, gone, left) in [(events, first - 1, KEPT), (Events::default(), 0, 0)] {
            let lines = events.follow(Some(last + 1)).0;
            let Line::Missed(missed) = lines[0] else {
                panic!("{:?}", lines[0]);
            };
            assert_eq!((missed.anew, missed.count), (true, gone));
            assert_eq!(lines.len(), 1 + left);
        }
    }
}
