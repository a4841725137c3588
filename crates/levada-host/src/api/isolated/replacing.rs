// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing in a process of its own. Who asks for it waits for a time; what is told of the new version, and remembered, is what
//! has come of it, however long its process takes to say so.

use super::{GRACE, Isolated};
use crate::api::types::{Details, Failed, LoadRequest, ReplaceRequest};
use crate::refusal::{Kind, Refusal};
use crate::replace::STOPS;
use hyper::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

impl Isolated {
    /// The files that it writes, that its new version is to write, and that the old one may not have finished.
    pub fn outputs(&self) -> Vec<String> {
        let known = self.known();
        let all = known.next.iter().chain([&known.options, &known.before]);
        let all = all.flatten();
        let outputs = all.filter(|o| o.0 == "out");
        outputs.map(|o| o.1.clone()).collect()
    }

    /// A new version, whose natives are given this, is to take its place.
    pub fn begin_replacing(&self, options: &[(String, String)]) -> Result<(), Refusal> {
        let mut known = self.known();
        if known.next.is_some() {
            let what = format!(
                "{} is replaced already: its process has not said yet what has come of that",
                self.name
            );
            return Err(Refusal::new(Kind::Conflict, what).help("try again then"));
        }
        known.next = Some(options.to_vec());
        Ok(())
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
        match receiver.recv_timeout(within + STOPS + GRACE) {
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
        let done = match self.lives() {
            true => client.call(Method::POST, &self.address("/replace"), &json!(request)),
            false => Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into()),
        };
        let done = done.map(|details: Details| self.seen(details));
        self.no_next(&done);
        done
    }

    /// This has come of the new version. What it writes is known all the time.
    fn no_next(&self, done: &Result<Details, Failed>) {
        let mut known = self.known();
        let next = known.next.take().unwrap_or_default();
        match done {
            Ok(_) => known.options = next,
            Err(failed) if failed.comes => {
                known.before = std::mem::replace(&mut known.options, next);
            }
            Err(_) => {}
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
        Refusal::new(Kind::Conflict, what).help(help).into()
    }
}

/// Until its process has ended.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::isolated::workers::tests::isolated;
    use crate::hosted::State;

    /// Nobody else is to write what either does, whatever comes of it.
    #[test]
    fn what_both_versions_write_is_known_as_long_as_they_do() {
        let out = |file: &str| vec![("out".to_string(), file.to_string())];
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
            one.known().options = out("old");
            one.begin_replacing(&out("new")).unwrap();
            assert_eq!(one.outputs(), ["new", "old"]);
            one.no_next(&done);
            assert_eq!(one.outputs(), then);
            let mut said = Details::default();
            said.application.state = State::Ending;
            one.seen(said.clone());
            assert_eq!(one.outputs(), then);
            said.application.state = State::Loaded;
            one.seen(said);
            assert_eq!(one.outputs(), then[..1]);
        }
    }
}
