// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `levada top` knows: two answers of the host, between which everything is measured, and what of them
//! is chosen and read.

mod columns;
mod keys;
mod measured;
mod screen;
#[cfg(test)]
mod tests;

use super::{Look, Wish};
use levada_host::api::types::{Actor, Application};
use std::cell::Cell;

pub struct View {
    now: Look,
    before: Option<Look>,
    app: usize,
    actor: usize,
    /// The worker that the actor goes to is typed, and this is there of it.
    moves: Option<String>,
    /// What is read, from this line on, in the place of actors and channels.
    reads: Option<(Page, usize)>,
    /// The last line of it that may be the first, and the lines that a key goes on, as it was drawn.
    last: Cell<usize>,
    page: Cell<usize>,
    /// What came of the last key.
    pub said: String,
}

/// What can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    /// All that is said of an application, and of the last key.
    Words,
    /// What keys do.
    Keys,
}

impl View {
    pub fn new(now: Look) -> View {
        View {
            now,
            before: None,
            app: 0,
            actor: 0,
            moves: None,
            reads: None,
            last: Cell::new(0),
            page: Cell::new(1),
            said: String::new(),
        }
    }

    /// A new answer.
    pub fn take(&mut self, look: Look) {
        self.app = self.choice(&look.stats.application);
        self.before = Some(std::mem::replace(&mut self.now, look));
    }

    /// Which of these is chosen: what was, where it is there still, else what has come to its place.
    pub fn choice(&self, all: &[Application]) -> usize {
        match all.iter().position(|a| a.name == self.chosen()) {
            Some(at) => at,
            None => self.app.min(all.len().saturating_sub(1)),
        }
    }

    /// The name of the application that is chosen.
    fn chosen(&self) -> &str {
        self.application().map_or("", |a| &a.name)
    }

    fn application(&self) -> Option<&Application> {
        self.now.stats.application.get(self.app)
    }

    fn actors(&self) -> &[Actor] {
        self.now.details.as_ref().map_or(&[], |d| &d.actor)
    }

    /// Seconds between the two answers, as the host says.
    fn seconds(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        let seconds = self.now.stats.host.seconds - before.stats.host.seconds;
        (seconds > 0.0).then_some(seconds)
    }

    /// Of so many cores the part that was busy meanwhile. What is read at two moments may be a little more than
    /// there is.
    fn busy(&self, now: f64, was: f64, cores: usize) -> Option<f64> {
        let seconds = self.seconds()?;
        Some(((now - was) / seconds).clamp(0.0, cores as f64))
    }
}
