// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing in a process of its own. Who asks for it waits for a time; what is told of the new version, and remembered, is what
//! has come of it, however long its process takes to say so.

use crate::isolated::Isolated;
use crate::lifecycle::replace::STOPS;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::protocol::{Details, Failed, LoadRequest, ReplaceRequest};
use crate::util::deadline::deadline;
use crate::util::lock::whole;
use hyper::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// So long the new version may take to begin where the old one has ended, and its process to say so.
const BEGINS: Duration = Duration::from_secs(5);

/// What a version of it was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// To its natives.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) limits: Limits,
    pub(crate) priority: i32,
}

impl Given {
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|o| o.0 == name);
        found.map(|o| o.1.as_str())
    }
}

/// A new version, of which its process has not said yet what has come.
#[derive(Debug)]
pub(crate) struct Coming {
    given: Given,
    /// When nobody waits for it any more.
    until: Instant,
}

impl Isolated {
    /// As it was said last.
    pub fn last_state(&self) -> State {
        self.known().last.application.state
    }

    /// Does a new version wait there for the end of the old one?
    pub fn has_next(&self) -> bool {
        self.known().before.is_some()
    }

    /// The files that it writes, that its new version is to write, and that the old one may not have finished.
    pub fn outputs(&self) -> Vec<String> {
        let known = self.known();
        let next = known.next.iter().map(|next| &next.given);
        let all = next.chain([&known.given]).chain(&known.before);
        let outputs = all.filter_map(|given| given.option("out"));
        outputs.map(str::to_string).collect()
    }

    /// A new version, which is given this, is to take its place within that time.
    pub(crate) fn begin_replacing(&self, given: Given, within: Duration) -> Result<(), Refusal> {
        let mut known = self.known();
        if known.next.is_some() {
            let what = format!(
                "{} is replaced already: its process has not said yet what has come of that",
                self.name
            );
            return Err(Refusal::new(Kind::Conflict, what).help("try again then"));
        }
        known.next = Some(Coming {
            given,
            until: deadline(waits(within)),
        });
        Ok(())
    }

    /// It has ended, and waits for a new version to be in its place, where one is to be: no longer than anybody does, since a
    /// constructor of that may not return, but for the moment that there is between the end of the old one and the beginning
    /// of the new one, however late that comes.
    pub(crate) fn until_replaced(&self) {
        let mut known = self.known();
        let moment = Instant::now() + BEGINS;
        while let Some(next) = &known.next {
            let left = next.until.max(moment);
            let left = left.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            known = whole(self.changed.wait_timeout(known, left)).0;
        }
    }

    /// And that is done now, `by` who is given what does it. Nobody waits for longer than for its process to have had the time
    /// for an answer.
    pub fn replace(
        self: &Arc<Self>,
        load: &LoadRequest,
        within: Duration,
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
            within: Some(within.as_secs_f64()),
        };
        let (sender, receiver) = mpsc::channel();
        let isolated = self.clone();
        let thread = std::thread::Builder::new().name("levada/replace".to_string());
        let spawned = thread.spawn(move || {
            let done = by(&|| isolated.answer_to_replace(&request));
            // It may be that nobody waits any more.
            let _ = sender.send(done);
        });
        if let Err(e) = spawned {
            let what = format!("a thread cannot be started: {e}");
            let failed = Err(Refusal::new(Kind::Limit, what).into());
            self.no_next(&failed);
            return failed;
        }
        match receiver.recv_timeout(waits(within)) {
            Ok(Err(failed)) => Err(self.explained(failed)),
            Ok(done) => done,
            Err(RecvTimeoutError::Timeout) => Err(self.silent_still()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Refusal::new(Kind::Conflict, "it has failed to be replaced").into())
            }
        }
    }

    fn answer_to_replace(&self, request: &ReplaceRequest) -> Result<Details, Failed> {
        let client = self.client.clone().within(FOR_EVER);
        let befores = self.befores();
        let done = match self.lives() {
            true => client.call(Method::POST, &self.address("/replace"), &json!(request)),
            false => Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into()),
        };
        let done = done.map(|details: Details| self.seen(details, befores));
        self.no_next(&done);
        done
    }

    /// This has come of the new version. What it writes is known all the time.
    fn no_next(&self, done: &Result<Details, Failed>) {
        let mut known = self.known();
        let next = known.next.take().map(|next| next.given);
        match (done, next) {
            (Ok(_), Some(next)) => known.given = next,
            (Err(failed), Some(next)) if failed.comes => {
                known.before = Some(std::mem::replace(&mut known.given, next));
                known.befores += 1;
            }
            _ => {}
        }
        drop(known);
        self.changed.notify_all();
    }

    /// What runs there is worth more than an answer: it is let be.
    fn silent_still(&self) -> Failed {
        let what = format!(
            "{} goes on as it was, and was not replaced in the time that its process had for an answer: a \
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

/// So long its process may take to say what has come of it, and who asks for it waits.
fn waits(within: Duration) -> Duration {
    within + STOPS + BEGINS
}

/// Until its process has ended.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolated::workers::tests::isolated;
    use crate::model::app_state::State;

    /// Nobody else is to write what either does, whatever comes of it.
    #[test]
    fn what_both_versions_write_is_known_as_long_as_they_do() {
        let out = |file: &str| Given {
            options: vec![("out".to_string(), file.to_string())],
            ..Given::default()
        };
        let comes = || -> Failed {
            let why = Refusal::new(Kind::Conflict, "takes long");
            Refusal { comes: true, ..why }.into()
        };
        let fails = || -> Failed { Refusal::new(Kind::Conflict, "fails").into() };
        for (done, then) in [
            (Ok(Details::default()), &["new"][..]),
            (Err(comes()), &["new", "old"]),
            (Err(fails()), &["old"]),
        ] {
            let one = isolated("a");
            let earlier = one.befores();
            one.known().given = out("old");
            one.begin_replacing(out("new"), BEGINS).unwrap();
            assert_eq!(one.outputs(), ["new", "old"]);
            one.no_next(&done);
            assert_eq!(one.outputs(), then);
            let mut said = Details::default();
            said.application.state = State::Ending;
            one.seen(said.clone(), one.befores());
            assert_eq!(one.outputs(), then);
            // As it was before.
            said.application.state = State::Running;
            one.seen(said.clone(), earlier);
            assert_eq!(one.outputs(), then);
            said.application.state = State::Loaded;
            one.seen(said, one.befores());
            assert_eq!(one.outputs(), then[..1]);
        }
    }
}
