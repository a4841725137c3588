// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of one check of `levada doctor`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Works, but could be better.
    Advice,
    /// A feature does not work.
    Missing,
}

#[derive(Debug)]
pub struct Finding {
    pub state: State,
    pub what: &'static str,
    pub found: String,
    /// What to do.
    pub help: Option<String>,
}

pub fn ok(what: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        state: State::Ok,
        what,
        found: found.into(),
        help: None,
    }
}

pub fn problem(
    state: State,
    what: &'static str,
    found: impl Into<String>,
    help: impl Into<String>,
) -> Finding {
    Finding {
        state,
        what,
        found: found.into(),
        help: Some(help.into()),
    }
}
