// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an application ended, as text, and what is kept of it.

use crate::model::unconsumed::Unconsumed;
use levada_sys::{ActorShape, App, Counters, Fault, Status};

/// How an application ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Stopped,
    Deadlock(String),
    Fault(Fault),
    Failed(String),
}

impl Outcome {
    pub(crate) fn of(app: &App, status: Status) -> Outcome {
        match status {
            Status::OK => Outcome::Done,
            Status::STOPPED => Outcome::Stopped,
            Status::DEADLOCK => Outcome::Deadlock(app.wait_report()),
            status => match app.fault() {
                Some(fault) => Outcome::Fault(fault),
                None => Outcome::Failed(format!("{} ({})", status.text(), status.name())),
            },
        }
    }

    /// In one sentence.
    pub fn text(&self) -> String {
        match self {
            Outcome::Done => "done".to_string(),
            Outcome::Stopped => "stopped".to_string(),
            Outcome::Deadlock(why) => format!("deadlock: {}", why.trim_end()),
            Outcome::Fault(f) => {
                let place = match f.file.as_str() {
                    "" => String::new(),
                    file => format!(" ({file}:{})", f.line),
                };
                if f.actor.is_empty() {
                    f.message.clone()
                } else {
                    format!("{}, in {}{place}", f.message, action_of(f))
                }
            }
            Outcome::Failed(why) => why.clone(),
        }
    }

    pub fn is_good(&self) -> bool {
        matches!(self, Outcome::Done | Outcome::Stopped)
    }
}

/// The action and the actor of a fault. A firing of fused actors consists of actions of several actors; the fault was
/// in one of them.
pub fn action_of(fault: &Fault) -> String {
    let action = fault.action.as_str();
    match action.rsplit_once('+') {
        _ if action.is_empty() => format!("actor {}", fault.actor),
        Some((others, last)) => {
            let others = others.replace('+', ", ");
            format!("a firing of {others} and {last} (their actors are joined into one)")
        }
        // An action without a tag is named by its line.
        None if action.starts_with("the ") => format!("{action} of actor {}", fault.actor),
        None => format!("action {action} of actor {}", fault.actor),
    }
}

/// What is kept of an application that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub number: u64,
    pub outcome: Outcome,
    pub seconds: f64,
    pub counters: Counters,
    /// The shapes of its actors, with the names of their ports.
    pub shapes: Vec<ActorShape>,
    pub progress: Option<(String, u64)>,
    pub moves: usize,
    /// Empty unless it is done.
    pub unconsumed: Unconsumed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_report_their_place() {
        let at = |actor: &str, action: &str| {
            let fault = Fault {
                kind: "time",
                actor: actor.to_string(),
                action: action.to_string(),
                file: "A.cal".to_string(),
                line: 7,
                message: "it does not end".to_string(),
            };
            Outcome::Fault(fault).text()
        };
        assert_eq!(at("", ""), "it does not end");
        for (actor, action, says) in [
            ("a", "", "actor a"),
            ("a", "go", "action go of actor a"),
            (
                "a",
                "the action in line 7",
                "the action in line 7 of actor a",
            ),
            (
                "a+b+c",
                "a.go+b.on+c.out",
                "a firing of a.go, b.on and c.out (their actors are joined into one)",
            ),
        ] {
            let whole = format!("it does not end, in {says} (A.cal:7)");
            assert_eq!(at(actor, action), whole);
        }
    }
}
