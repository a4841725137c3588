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
    /// The details of the selected application, once they have arrived.
    more: Option<Samples<More>>,
    app: usize,
    /// The selected application is gone: keys do not apply to the one in its row.
    gone: bool,
    actor: usize,
    /// The first channel that is shown, if not all fit.
    channel: usize,
    /// The number of the worker to which the actor is to move, as far as it was typed.
    moves: Option<String>,
    /// The text page that is shown instead of actors and channels, and its first visible line.
    reads: Option<(Page, usize)>,
    /// Scroll limits of the page or the channels, and the lines per key, as drawn last.
    last: Cell<usize>,
    page: Cell<usize>,
    /// The result of the last key.
    pub said: String,
    /// Seconds for which the host's reply has been pending.
    silent: Option<u64>,
    /// See `Samples`.
    shortest: f64,
}

/// Text pages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    /// All text about an application and the last key.
    Words,
    /// The list of keys.
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

    /// Takes a new reply. The selection stays, if the application still exists.
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

    /// Takes the details of an application. Another one may have been selected meanwhile.
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

    /// Selects an application; its details are unknown yet, and typed input is discarded.
    fn choose(&mut self, app: usize) {
        (self.app, self.actor, self.channel) = (app, 0, 0);
        (self.more, self.moves) = (None, None);
    }

    /// The name of the selected application.
    pub fn chosen(&self) -> &str {
        self.application().map_or("", |a| &a.name)
    }

    fn application(&self) -> Option<&Application> {
        if self.gone {
            None
        } else {
            self.stats.now.application.get(self.app)
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
