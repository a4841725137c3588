// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event log: numbered events of a host in order. The last ones are kept for late readers. A follower that is
//! too slow, or that asks for events that are no longer kept, is told how many it has missed.

use crate::model::unconsumed::{Unconsumed, UnconsumedChannel, is_zero};
use crate::util::lock::lock;
use levada_text::escaped;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;

/// Number of events that are kept, and that may wait for a slow follower.
const EVENTS_MAX: usize = 1024;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Loaded,
    Paused,
    Resumed,
    /// Its sources have been told to end.
    Draining,
    /// By itself, or by request.
    Ended,
    Failed,
    /// Quarantined: it crashed the previous host, and is not restored.
    Quarantined,
    Unloaded,
    /// By a new version, which continues where the old one ended.
    Replaced,
    /// Its measured rate is below the reserved rate.
    RateMissed,
    /// It has a reserved rate, and counts no units.
    RateUnmeasurable,
    /// An actor was moved to another worker.
    Moved,
    /// Channels have grown, since the application was deadlocked only because they were full.
    Grown,
}

/// An event.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Event {
    pub number: u64,
    /// Seconds since 1970.
    pub at: f64,
    pub event: EventKind,
    /// The application's name.
    pub application: String,
    /// Details as text, if the event alone does not say them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Of an application that is done: elements that were left over in its channels, of at most 64 channels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unconsumed: Vec<UnconsumedChannel>,
    /// Number of further channels with such elements.
    #[serde(skip_serializing_if = "is_zero")]
    pub unconsumed_omitted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Of a moved actor: its workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
}

impl Event {
    /// An event of now that has no number yet.
    fn new(event: EventKind, application: &str, detail: String) -> Event {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        Event {
            number: 0,
            at: at.map_or(0.0, |d| d.as_secs_f64()),
            event,
            application: application.to_string(),
            detail,
            unconsumed: Vec::new(),
            unconsumed_omitted: 0,
            actor: None,
            from: None,
            to: None,
        }
    }
}

/// In place of events that are no longer kept, or that came faster than they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Missed {
    pub event: MissedWord,
    /// Their number, as far as this host knows.
    pub count: u64,
    /// The known number that the client gave has not been assigned yet: it is from an earlier host, and numbering has
    /// restarted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequence_restarted: bool,
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
            sequence_restarted: false,
        }
    }
}

/// A line of the event stream.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Line {
    Event(Event),
    Missed(Missed),
}

#[derive(Debug)]
struct EventLog {
    next: u64,
    kept: VecDeque<Event>,
}

#[derive(Debug)]
pub struct Events {
    past: Mutex<EventLog>,
    sender: broadcast::Sender<Event>,
    /// Failures are also written to standard error.
    logs: AtomicBool,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            past: Mutex::new(EventLog {
                next: 1,
                kept: VecDeque::new(),
            }),
            sender: broadcast::channel(EVENTS_MAX).0,
            logs: AtomicBool::new(false),
        }
    }
}

impl Events {
    /// From now on each failure of an application is also written to standard error, where an administrator looks
    /// first.
    pub fn log_failures(&self) {
        self.logs.store(true, Ordering::Relaxed);
    }

    pub fn emit(&self, event: EventKind, application: &str, detail: impl Into<String>) {
        self.emit_end(event, application, detail.into(), Unconsumed::default());
    }

    /// The end of an application.
    pub(crate) fn emit_end(
        &self,
        event: EventKind,
        application: &str,
        detail: String,
        unconsumed: Unconsumed,
    ) {
        if event == EventKind::Failed && self.logs.load(Ordering::Relaxed) {
            let line = format!("{application} has failed: {detail}\n");
            let _ = std::io::stderr()
                .lock()
                .write_all(escaped(&line).as_bytes());
        }
        self.add(Event {
            unconsumed: unconsumed.channels,
            unconsumed_omitted: unconsumed.omitted,
            ..Event::new(event, application, detail)
        });
    }

    /// Only to followers: the caller writes to standard error itself.
    pub(crate) fn send_to_followers(
        &self,
        event: EventKind,
        application: &str,
        detail: impl Into<String>,
    ) {
        self.add(Event::new(event, application, detail.into()));
    }

    pub fn emit_moved(&self, application: &str, actor: &str, from: u32, to: u32) {
        self.add(Event {
            actor: Some(actor.to_string()),
            from: Some(from),
            to: Some(to),
            ..Event::new(EventKind::Moved, application, String::new())
        });
    }

    /// Adds an event, and numbers it.
    fn add(&self, event: Event) {
        let mut past = lock(&self.past);
        let event = Event {
            number: past.next,
            ..event
        };
        past.next += 1;
        past.kept.push_back(event.clone());
        if past.kept.len() > EVENTS_MAX {
            past.kept.pop_front();
        }
        // Under the lock, so that events are sent in order. It is no error if there is no follower.
        let _ = self.sender.send(event);
    }

    /// All kept events with a number above `since`, and a receiver of the later ones. If events after `since` are no
    /// longer kept, the first line says how many. If `since` has not been assigned yet, the numbers are from an
    /// earlier host: all events are returned.
    pub fn follow(&self, since: Option<u64>) -> (Vec<Line>, broadcast::Receiver<Event>) {
        let past = lock(&self.past);
        let first = past.kept.front().map_or(past.next, |e| e.number);
        let sequence_restarted = since.is_some_and(|since| since >= past.next);
        let since = since.map(|since| if sequence_restarted { 0 } else { since });
        let gone = since.map_or(0, |since| (first - 1).saturating_sub(since));
        let missed = Missed {
            sequence_restarted,
            ..Missed::of(gone)
        };
        let missed = (gone > 0 || sequence_restarted).then_some(Line::Missed(missed));
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
        events.emit(EventKind::Loaded, "a", "");
        let event = |line: &Line| match line {
            Line::Event(event) => (event.number, event.event),
            Line::Missed(missed) => panic!("{missed:?}"),
        };
        let (before, mut then) = events.follow(None);
        events.emit_moved("a", "x", 0, 1);
        assert_eq!(before.len(), 1);
        assert_eq!(event(&before[0]), (1, EventKind::Loaded));
        let moved = then.try_recv().unwrap();
        assert_eq!((moved.number, moved.from, moved.to), (2, Some(0), Some(1)));
        assert!(then.try_recv().is_err());
        let late = events.follow(Some(1)).0;
        assert_eq!(late.len(), 1);
        for _ in 0..2 * EVENTS_MAX {
            events.emit(EventKind::Paused, "a", "");
        }
        let kept = events.follow(None).0;
        let last = 2 * EVENTS_MAX as u64 + 2;
        assert_eq!(kept.len(), EVENTS_MAX);
        assert_eq!(event(&kept[EVENTS_MAX - 1]).0, last);
        // A client that knows some is told how many of the others are gone.
        let first = last - EVENTS_MAX as u64 + 1;
        for (since, gone) in [(0, first - 1), (1, first - 2), (first - 2, 1)] {
            let lines = events.follow(Some(since)).0;
            let Line::Missed(missed) = lines[0] else {
                panic!("{:?}", lines[0]);
            };
            assert_eq!((missed.count, lines.len()), (gone, EVENTS_MAX + 1));
            assert_eq!(event(&lines[1]).0, first);
        }
        for (since, left) in [(first - 1, EVENTS_MAX), (last, 0)] {
            assert_eq!(events.follow(Some(since)).0.len(), left);
        }
        // Numbers of an earlier host say nothing about this one.
        for (events, gone, left) in [(events, first - 1, EVENTS_MAX), (Events::default(), 0, 0)] {
            let lines = events.follow(Some(last + 1)).0;
            let Line::Missed(missed) = lines[0] else {
                panic!("{:?}", lines[0]);
            };
            assert_eq!((missed.sequence_restarted, missed.count), (true, gone));
            assert_eq!(lines.len(), 1 + left);
        }
    }
}
