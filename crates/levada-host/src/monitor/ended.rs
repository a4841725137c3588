// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handles the end of an application: stores its profile, records the outcome, and emits the event.

use crate::context::HostContext;
use crate::model::app_state::State;
use crate::model::events::EventKind;
use crate::model::outcome::{Ended, Outcome};
use crate::model::unconsumed::Unconsumed;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl HostContext {
    /// Handles the end of the application with this number; false: it has not ended yet.
    pub fn ended(&self, number: u64) -> bool {
        let hosted = self
            .lock_registry()
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
        // A reader of the event may look for its output.
        let printed = *hosted.flush_request.get_or_init(|| self.stdio.ask());
        if app.network().is_program() && !self.stdio.is_done(printed) {
            return false;
        }
        if !self.notify_ended(&hosted.name, number) {
            return false;
        }
        let outcome = Outcome::of(app, app.wait(None));
        let counters = app.counters().unwrap_or_default();
        self.save_profile(&hosted, &outcome, &counters);
        if hosted.versions.announced.load(Ordering::Relaxed) {
            hosted.emit_growth(&counters, &self.events);
        }
        let shapes = app.network().describe();
        // What is stopped or fails leaves elements in any case.
        let unconsumed = match outcome {
            Outcome::Done => Unconsumed::of(&shapes, &counters),
            _ => Unconsumed::default(),
        };
        let ended = Ended {
            number,
            seconds: hosted.uptime_s(),
            shapes,
            unconsumed: unconsumed.clone(),
            counters,
            progress: hosted.progress(),
            moves: hosted.moves(),
            outcome,
        };
        let (event, text) = if ended.outcome.is_good() {
            (EventKind::Ended, ended.outcome.text())
        } else {
            (EventKind::Failed, ended.outcome.text())
        };
        let state = match event {
            EventKind::Failed => State::Failed,
            _ => State::Ended,
        };
        // Other threads may still hold a reference, and a reader of the event may want the core.
        let own = |_: &u32| !hosted.versions.core_passed.load(Ordering::Relaxed);
        if let Some(worker) = hosted.exclusive.filter(own) {
            let _ = self.runtime.release_core(worker);
        }
        self.lock_registry().record_end(ended, state);
        if hosted.versions.announced.load(Ordering::Relaxed) {
            self.events.emit_end(event, &hosted.name, text, unconsumed);
        }
        self.changed.notify_all();
        true
    }
}
