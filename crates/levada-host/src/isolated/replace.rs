// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing an isolated application. The request has a timeout; what is recorded and persisted is the actual
//! result, however late the child reports it.

use crate::isolated::Isolated;
use crate::lifecycle::replace::STOP_TIMEOUT;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::protocol::{Details, Failed, LoadRequest, ReplaceRequest};
use crate::util::deadline::deadline;
use crate::util::lock::ignore_poison;
use hyper::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time for the start of the new version after the end of the old one, and for its report.
const NEW_VERSION_START_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings that a version was loaded with.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersionSettings {
    /// Options of its natives.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) priority: i32,
}

impl VersionSettings {
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|o| o.0 == name);
        found.map(|o| o.1.as_str())
    }
}

/// A new version; the child has not reported the result yet.
#[derive(Debug)]
pub(crate) struct PendingVersion {
    settings: VersionSettings,
    /// When the request that waits for it expires.
    until: Instant,
}

impl Isolated {
    /// The last reported state.
    pub fn last_state(&self) -> State {
        self.record().last.application.state
    }

    /// Whether a new version is loaded there that waits for the end of the old one.
    pub fn has_next(&self) -> bool {
        self.record().previous_settings.is_some()
    }

    /// Output files: of this version, of a pending new one, and of an old one that may not have closed its file.
    pub fn outputs(&self) -> Vec<String> {
        let known = self.record();
        let next = known.pending_version.iter().map(|next| &next.settings);
        let all = next
            .chain([&known.settings])
            .chain(&known.previous_settings);
        let outputs = all.filter_map(|given| given.option("out"));
        outputs.map(str::to_string).collect()
    }

    /// Registers a new version with these settings, to be loaded within that time.
    pub(crate) fn begin_replacing(
        &self,
        given: VersionSettings,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        let mut known = self.record();
        if known.pending_version.is_some() {
            let what = format!(
                "{} is replaced already: its process has not said yet what has come of that",
                self.name
            );
            return Err(Refusal::new(Kind::Conflict, what).help("try again then"));
        }
        known.pending_version = Some(PendingVersion {
            settings: given,
            until: deadline(waits(timeout)),
        });
        Ok(())
    }

    /// After an end: waits until a pending new version has replaced the old one. At most as long as the request waits,
    /// since a constructor may not return; at least for the moment between the end of the old version and the start of
    /// the new one.
    pub(crate) fn wait_replaced(&self) {
        let mut known = self.record();
        let moment = Instant::now() + NEW_VERSION_START_TIMEOUT;
        while let Some(next) = &known.pending_version {
            let left = next.until.max(moment);
            let left = left.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            known = ignore_poison(self.changed.wait_timeout(known, left)).0;
        }
    }

    /// Replaces it. The thread calls `by` with a function that sends the request and waits for its result; the caller
    /// waits at most as long as the child has for its response.
    pub fn replace(
        self: &Arc<Self>,
        load: &LoadRequest,
        timeout: Duration,
        by: impl FnOnce(&dyn Fn() -> Result<Details, Failed>) -> Result<Details, Failed>
        + Send
        + 'static,
    ) -> Result<Details, Failed> {
        let request = ReplaceRequest {
            load: LoadRequest {
                name: None,
                isolate: false,
                ..load.clone()
            },
            timeout: Some(timeout.as_secs_f64()),
        };
        let (sender, receiver) = mpsc::channel();
        let isolated = self.clone();
        let thread = std::thread::Builder::new().name("levada/replace".to_string());
        let spawned = thread.spawn(move || {
            let done = by(&|| isolated.answer_to_replace(&request));
            // The caller may not wait any more.
            let _ = sender.send(done);
        });
        if let Err(e) = spawned {
            let what = format!("a thread cannot be started: {e}");
            let failed = Err(Refusal::new(Kind::Limit, what).into());
            self.finish_replacing(&failed);
            return failed;
        }
        match receiver.recv_timeout(waits(timeout)) {
            Ok(Err(failed)) => Err(self.explained(failed)),
            Ok(done) => done,
            Err(RecvTimeoutError::Timeout) => Err(self.replace_timeout()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Refusal::new(Kind::Conflict, "it has failed to be replaced").into())
            }
        }
    }

    fn answer_to_replace(&self, request: &ReplaceRequest) -> Result<Details, Failed> {
        let client = self.client.clone().timeout(UNLIMITED);
        let befores = self.befores();
        let done = if self.lives() {
            client.call(Method::POST, &self.address("/replace"), &json!(request))
        } else {
            Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into())
        };
        let done = done.map(|details: Details| self.record_answer(details, befores));
        self.finish_replacing(&done);
        done
    }

    /// Records the result of a replacement. Output files are known at all times.
    fn finish_replacing(&self, done: &Result<Details, Failed>) {
        let mut known = self.record();
        let next = known.pending_version.take().map(|next| next.settings);
        match (done, next) {
            (Ok(_), Some(next)) => known.settings = next,
            (Err(failed), Some(next)) if failed.pending => {
                known.previous_settings = Some(std::mem::replace(&mut known.settings, next));
                known.previous_versions += 1;
            }
            _ => {}
        }
        drop(known);
        self.changed.notify_all();
    }

    /// The running application is not ended because a response is missing.
    fn replace_timeout(&self) -> Failed {
        let what = format!(
            "{} continues unchanged: it was not replaced in the time that its process had for an answer: a \
             constructor of the new shared object does not return, and nothing is answered before it does, or \
             the machine is busy",
            self.name
        );
        let help = format!(
            "levada list shows whether it is replaced after all; levada unload {} --now ends it",
            self.name
        );
        Refusal::new(Kind::Timeout, what).help(help).into()
    }
}

/// Maximum time for the result, and for the caller's wait.
fn waits(timeout: Duration) -> Duration {
    timeout + STOP_TIMEOUT + NEW_VERSION_START_TIMEOUT
}

/// Until the process has ended.
const UNLIMITED: Duration = Duration::from_secs(1 << 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolated::workers::tests::isolated;
    use crate::model::app_state::State;

    /// No other application may write the output of either version, whatever the result.
    #[test]
    fn what_both_versions_write_is_known_as_long_as_they_do() {
        let out = |file: &str| VersionSettings {
            options: vec![("out".to_string(), file.to_string())],
            ..VersionSettings::default()
        };
        let pending = || -> Failed {
            let why = Refusal::new(Kind::Conflict, "takes long");
            Refusal {
                pending: true,
                ..why
            }
            .into()
        };
        let fails = || -> Failed { Refusal::new(Kind::Conflict, "fails").into() };
        for (done, then) in [
            (Ok(Details::default()), &["new"][..]),
            (Err(pending()), &["new", "old"]),
            (Err(fails()), &["old"]),
        ] {
            let one = isolated("a");
            let earlier = one.befores();
            one.record().settings = out("old");
            one.begin_replacing(out("new"), NEW_VERSION_START_TIMEOUT)
                .unwrap();
            assert_eq!(one.outputs(), ["new", "old"]);
            one.finish_replacing(&done);
            assert_eq!(one.outputs(), then);
            let mut said = Details::default();
            said.application.state = State::Ending;
            one.record_answer(said.clone(), one.befores());
            assert_eq!(one.outputs(), then);
            // As before.
            said.application.state = State::Running;
            one.record_answer(said.clone(), earlier);
            assert_eq!(one.outputs(), then);
            said.application.state = State::Loaded;
            one.record_answer(said, one.befores());
            assert_eq!(one.outputs(), then[..1]);
        }
    }
}
