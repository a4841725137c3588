// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application of the host: what is known of it as long as it lives, its state, and its place in the table.

use crate::admission::Admission;
use crate::keep::Limits;
use crate::lock::lock;
use crate::measured::Measured;
use crate::outcome::Ended;
use crate::refusal::{Kind, Refusal};
use crate::seats::Seats;
use crate::stdio::Asked;
use levada_map::Graph;
use levada_sys::{App, Network};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant, SystemTime};

/// An application of the host, as long as anybody has it.
pub struct Hosted {
    pub number: u64,
    pub name: String,
    pub class: String,
    pub priority: i32,
    pub app: App,
    /// What it claims: state and channels.
    pub bytes: u64,
    pub loaded: SystemTime,
    pub(crate) object: Option<PathBuf>,
    pub seats: Seats,
    /// The worker whose core it has to itself.
    pub exclusive: Option<u32>,
    /// Which its next version has now.
    pub(crate) core_passed: AtomicBool,
    /// What an earlier run has measured, by which it was placed.
    pub(crate) known: Option<Measured>,
    /// What its load does to promises, where there were any.
    pub admission: Option<Admission>,
    /// Whose end it waits for, to go on from there.
    pub(crate) after: Option<u64>,
    /// The code of those before it, which knows how to end what they have left and nobody wants.
    pub(crate) before: Mutex<Vec<Arc<Network>>>,
    /// What its natives were given.
    pub(crate) options: Vec<(String, String)>,
    pub limits: Limits,
    /// Something in it may count what it does.
    pub(crate) counts: bool,
    /// What the one before it had counted when it took over: it counts on from there.
    pub(crate) inherited: AtomicU64,
    /// Who has it in hand may pause it, resume it, end its sources or replace it.
    pub(crate) hand: Mutex<()>,
    /// Its limits hold it, as if it were paused. In hand or not, that is locked for a moment only, or for a
    /// firing that is waited for: so the limits are kept whatever else is done to it.
    pub(crate) held: Mutex<bool>,
    /// A new version waits for its moment: it runs now and then, even if it is paused.
    pub(crate) sought: AtomicBool,
    /// Somebody takes it away, whether or not it has begun, and waits for its end.
    pub(crate) goes: AtomicBool,
    /// Its sources have been ended, whatever else is done to it.
    pub(crate) drains: AtomicBool,
    /// Units a second lately, where it is promised some.
    pub(crate) pace: Mutex<Option<f64>>,
    /// It had less than it is promised when that was last judged, and did not wait for its input or for who takes its
    /// output.
    pub(crate) is_late: AtomicBool,
    /// How often that began.
    pub(crate) late: AtomicU64,
    pub(crate) moves: AtomicUsize,
    /// When one of its actors was moved last, and what it had done until then.
    pub(crate) moved: Mutex<Option<(Instant, f64)>>,
    /// What it does in a second, as measured last.
    pub(crate) rate: Mutex<Option<Graph>>,
    /// The part of each core that its fibers take lately: of a C program, all that it computes there.
    pub(crate) fibers: Mutex<Vec<f64>>,
    pub(crate) started: OnceLock<Instant>,
    /// What actors of it do not have of the version before it, in words.
    pub(crate) anew: OnceLock<Vec<String>>,
    /// Since when what it has printed is written, as it has ended.
    pub(crate) printed: OnceLock<Asked>,
}

impl Hosted {
    /// How often one of its actors was moved by the mapper.
    pub fn moves(&self) -> usize {
        self.moves.load(Ordering::Relaxed)
    }

    pub(crate) fn count_move(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
        let done = self.done();
        let mut moved = lock(&self.moved);
        *moved = Some((Instant::now(), done));
    }

    /// Units that it has done itself, so without those of the versions before it.
    pub(crate) fn done(&self) -> f64 {
        let counted = self.app.progress();
        counted.map_or(0.0, |(_, counted)| beyond(&self.inherited, counted) as f64)
    }

    /// It goes on from where `old` has counted to.
    pub(crate) fn counts_on(&self, old: &Hosted) {
        let before = || old.inherited.load(Ordering::Relaxed);
        let counted = old.app.progress().map_or_else(before, |(_, done)| done);
        self.inherited.store(counted, Ordering::Relaxed);
    }

    /// When its actors came to where they are, if any was moved, and what it had done until then.
    pub fn moved(&self) -> Option<(Instant, f64)> {
        *lock(&self.moved)
    }

    /// What its natives were told.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Units a second lately, of what is promised a rate.
    pub fn pace(&self) -> Option<f64> {
        *lock(&self.pace)
    }

    pub fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Who waits for whom, in words.
    pub fn why(&self) -> String {
        // Who pauses it has that in hand as long as a firing lasts: nobody who only asks waits for it.
        match self.held.try_lock() {
            Ok(held) if *held => format!("{} waits until its limits let it go on\n", self.name),
            _ => self.app.why(),
        }
    }

    /// Takes it in hand.
    pub(crate) fn in_hand(&self, until: Instant) -> Result<MutexGuard<'_, ()>, Refusal> {
        loop {
            match self.hand.try_lock() {
                Ok(hand) => return Ok(hand),
                Err(TryLockError::Poisoned(hand)) => return Ok(hand.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let what =
                        format!("somebody else pauses {}, and waits for a firing", self.name);
                    return Err(
                        Refusal::new(Kind::Conflict, what).help("try again, or wait longer")
                    );
                }
            }
        }
    }

    /// Whether its limits hold it, which nobody changes meanwhile.
    pub(crate) fn held(&self) -> MutexGuard<'_, bool> {
        lock(&self.held)
    }

    pub(crate) fn seconds(&self) -> f64 {
        let started = self.started.get();
        started.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }
}

/// What is counted beyond what was inherited. If that is less, what counts has not come along, and began anew.
fn beyond(inherited: &AtomicU64, counted: u64) -> u64 {
    if counted < inherited.load(Ordering::Relaxed) {
        inherited.store(0, Ordering::Relaxed);
    }
    counted.saturating_sub(inherited.load(Ordering::Relaxed))
}

#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not started yet.
    #[default]
    Loaded,
    Running,
    Paused,
    /// Its sources have ended; what is in flight comes out.
    Draining,
    /// Nothing of it begins any more; a last firing lasts, or its natives finish their files.
    Ending,
    Ended,
    Failed,
    /// Remembered, and not loaded: it has ended the last host, or cannot be loaded any more.
    Held,
}

/// As JSON has it.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            State::Loaded => "loaded",
            State::Running => "running",
            State::Paused => "paused",
            State::Draining => "draining",
            State::Ending => "ending",
            State::Ended => "ended",
            State::Failed => "failed",
            State::Held => "held",
        })
    }
}

/// An application as the host's table has it.
#[derive(Clone)]
pub struct Seen {
    pub number: u64,
    pub name: String,
    pub class: String,
    pub priority: i32,
    pub bytes: u64,
    pub loaded: SystemTime,
    pub state: State,
    /// Until it has ended.
    pub hosted: Option<Arc<Hosted>>,
    /// From then on.
    pub ended: Option<Arc<Ended>>,
}

impl Seen {
    /// As it is told: what the runtime knows already counts, whether or not the table has heard of it.
    pub(crate) fn told(&self) -> Seen {
        let ending = self.hosted.as_ref().is_some_and(|h| h.app.is_ending());
        Seen {
            state: if ending { State::Ending } else { self.state },
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_done_what_it_counts_beyond_what_it_has_inherited() {
        let inherited = AtomicU64::new(6000);
        assert_eq!(beyond(&inherited, 6000), 0);
        assert_eq!(beyond(&inherited, 6010), 10);
        // It counts from its own beginning: so it does later on.
        let inherited = AtomicU64::new(6000);
        assert_eq!(beyond(&inherited, 3), 3);
        assert_eq!(beyond(&inherited, 7000), 7000);
    }

    #[test]
    fn a_state_has_one_name() {
        let all = [
            State::Loaded,
            State::Running,
            State::Paused,
            State::Draining,
            State::Ending,
            State::Ended,
            State::Failed,
            State::Held,
        ];
        for state in all {
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state.to_string());
        }
    }
}
