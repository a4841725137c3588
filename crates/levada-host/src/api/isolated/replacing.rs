// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing in a process of its own. Who asks for it waits for a time; what is told of the new version, and remembered, is what
//! has come of it, however long its process takes to say so.

use super::{GRACE, Isolated};
use crate::api::types::{Details, Failed, LoadRequest, ReplaceRequest};
use crate::refusal::{Kind, Refusal};
use hyper::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

impl Isolated {
    /// The files that it writes, and that its new version is to write.
    pub fn outputs(&self) -> Vec<String> {
        let known = self.known();
        let all = known.next.iter().chain([&known.options]).flatten();
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
            self.known().next = None;
            let what = format!("a thread cannot be started: {e}");
            return Err(Refusal::new(Kind::Limit, what).into());
        }
        match receiver.recv_timeout(within + GRACE) {
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
        let next = self.known().next.take();
        let done = done.map(|details: Details| {
            self.known().options = next.unwrap_or_default();
            self.seen(details)
        });
        self.changed.notify_all();
        done
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
