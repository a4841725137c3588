// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of an application, as events and the HTTP interface name it.

#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Loaded, and not started.
    #[default]
    Loaded,
    Running,
    Paused,
    /// Its sources have ended; elements in flight are being processed.
    Draining,
    /// No new firing starts; a last firing runs, or natives finish their files.
    Ending,
    Ended,
    Failed,
    /// Quarantined: known from the previous host, and not loaded, because it crashed that host or cannot be loaded any
    /// more.
    Quarantined,
}

/// The name in JSON.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            State::Loaded => "loaded",
            State::Running => "running",
            State::Paused => "paused",
            State::Draining => "draining",
            State::Ending => "ending",
            State::Ended => "ended",
            State::Failed => "failed",
            State::Quarantined => "quarantined",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_name() {
        let all = [
            State::Loaded,
            State::Running,
            State::Paused,
            State::Draining,
            State::Ending,
            State::Ended,
            State::Failed,
            State::Quarantined,
        ];
        for state in all {
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state.to_string());
        }
    }
}
