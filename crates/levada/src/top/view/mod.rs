// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The model of `levada top`: the last two replies of the host, two replies about the selected application, and the
//! view's own state. All rates are differences between two replies.

mod columns;
mod keys;
mod layout;
mod samples;
mod tables;
#[cfg(test)]
mod tests;

use super::action::Action;
use super::poller::More;
use levada_host::protocol::{Actor, Application, Stats};
use samples::Samples;
use std::cell::Cell;
use std::time::Duration;

pub struct View {
    stats: Samples<Stats>,
    /// Of the application that is chosen, when it has said something.
    more: Option<Samples<More>>,
    app: usize,
    /// The one that was chosen: what has come to its place is not meant by a key.
    gone: bool,
    actor: usize,
    /// The first of its channels that is shown, where there is no room for all.
    channel: usize,
    /// The worker that the actor goes to is typed, and this is there of it.
    moves: Option<String>,
    /// What is read, from this line on, in the place of actors and channels.
    reads: Option<(Page, usize)>,
    /// The last line that may be the first, of it or of the channels, and the lines that a key goes on, as it was drawn.
    last: Cell<usize>,
    page: Cell<usize>,
    /// What came of the last key.
    pub said: String,
    /// Seconds for which the host has not answered.
    silent: Option<u64>,
    /// As of `Samples`.
    shortest: f64,
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
    /// `stats`: the first reply; further replies arrive every `every` seconds.
    pub fn new(stats: Stats, every: f64) -> View {
        let shortest = (every / 2.0).min(0.5);
        View {
            stats: Samples::new(stats.host.seconds, stats, shortest),
            more: None,
            app: 0,
            gone: false,
            actor: 0,
            channel: 0,
            moves: None,
            reads: None,
            last: Cell::new(0),
            page: Cell::new(1),
            said: String::new(),
            silent: None,
            shortest,
        }
    }

    /// A new answer. What was chosen is chosen still, where it is there.
    pub fn take(&mut self, stats: Stats) {
        let all = &stats.application;
        match all.iter().position(|a| a.name == self.chosen()) {
            Some(at) => self.app = at,
            None if self.chosen().is_empty() => self.app = self.app.min(all.len()),
            None => {
                self.gone = true;
                self.choose(self.app.min(all.len()));
            }
        }
        self.stats.take(stats.host.seconds, stats);
    }

    /// What one has said of itself. Another may have been chosen meanwhile.
    pub fn learn(&mut self, more: More) {
        if more.name != self.chosen() {
            return;
        }
        let number = |m: &More| m.details.as_ref().map(|d| d.application.number);
        match &mut self.more {
            Some(looks) if number(&looks.now) == number(&more) => looks.take(more.at, more),
            _ => self.more = Some(Samples::new(more.at, more, self.shortest)),
        }
    }

    pub fn host_is_silent_for(&mut self, silent: Option<Duration>) {
        self.silent = silent.map(|s| s.as_secs());
    }

    /// Nothing is known of it yet, and nothing that was typed is for it.
    fn choose(&mut self, app: usize) {
        (self.app, self.actor, self.channel) = (app, 0, 0);
        (self.more, self.moves) = (None, None);
    }

    /// The name of the application that is chosen.
    pub fn chosen(&self) -> &str {
        self.application().map_or("", |a| &a.name)
    }

    fn application(&self) -> Option<&Application> {
        match self.gone {
            true => None,
            false => self.stats.now.application.get(self.app),
        }
    }

    fn actors(&self) -> &[Actor] {
        let details = self.more.as_ref().and_then(|m| m.now.details.as_ref());
        details.map_or(&[], |d| &d.actor)
    }

    /// Which request is pending and for how long: everything else on the screen is older.
    fn silence(&self) -> Option<String> {
        let of_it = || {
            let it = self.application()?;
            let seconds = it.silent_for().filter(|s| *s >= 1.0)?;
            Some(format!("{} has not answered for {seconds:.0} s", it.name))
        };
        let of_host = |seconds| format!("the host has not answered for {seconds} s");
        self.silent.map(of_host).or_else(of_it)
    }
}
