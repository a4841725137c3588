// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of an application: what is kept of it, and who hears of it.

use crate::context::Shared;
use crate::model::app_state::State;
use crate::model::events::What;
use crate::model::outcome::{Ended, Outcome};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Shared {
    /// The application with this number is about to have ended; false: it has not yet.
    pub fn ended(&self, number: u64) -> bool {
        let hosted = self
            .table()
            .apps
            .get(&number)
            .and_then(|a| a.hosted.clone());
        let Some(hosted) = hosted else {
            return true;
        };
        let app = &hosted.app;
        app.wait(Some(Duration::from_millis(1)));
        if !app.has_ended() {
            return false;
        }
        // Who hears of the end may look for what it has printed.
        let printed = *hosted.printed.get_or_init(|| self.stdio.ask());
        if app.network().is_program() && !self.stdio.is_done(printed) {
            return false;
        }
        if !self.is_over(&hosted.name, number) {
            return false;
        }
        let outcome = Outcome::of(app, app.wait(None));
        let counters = app.counters().unwrap_or_default();
        self.keep_measured(&hosted, &outcome, &counters);
        let ended = Ended {
            number,
            seconds: hosted.seconds(),
            shapes: app.network().describe(),
            counters,
            progress: hosted.progress(),
            moves: hosted.moves(),
            outcome,
        };
        let (event, text) = match ended.outcome.is_good() {
            true => (What::Ended, ended.outcome.text()),
            false => (What::Failed, ended.outcome.text()),
        };
        let state = match event {
            What::Failed => State::Failed,
            _ => State::Ended,
        };
        // Somebody may still have it in hand, and who is told of the end may want the core.
        let own = |_: &u32| !hosted.lineage.core_passed.load(Ordering::Relaxed);
        if let Some(worker) = hosted.exclusive.filter(own) {
            let _ = self.runtime.give_core(worker);
        }
        self.table().end(ended, state);
        if hosted.lineage.heard_of.load(Ordering::Relaxed) {
            self.events.tell(event, &hosted.name, text);
        }
        self.changed.notify_all();
        true
    }
}
