// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors: kind, text, help, and the exit and HTTP status of each kind.

use crate::model::admission_report::Admission;

/// The kinds of errors: the one definition of the error codes. Each has a name in JSON, an exit status and an HTTP
/// status; docs/errors.md and the manual pages show the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A failure without a code of its own: errors in the sources, a file that cannot be read.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The request is invalid.
    Wrong,
    /// There is no such application, actor or worker.
    Unknown,
    /// Not possible in the present state.
    Conflict,
    /// Not enough of a resource.
    Limit,
    /// A reserved rate would be broken.
    Reservation,
    /// The timeout of the request has expired.
    Timeout,
    /// Done, but the state folder could not be updated: the next host would not know it.
    NotSaved,
    /// No host listens at the socket.
    NoHost,
    /// The connection to the host ended before its answer did.
    HostGone,
    /// The socket's permissions do not let this user in.
    Denied,
    /// The host has no room for one more connection or follower.
    Busy,
    /// `levada run --strict`: elements were left over in channels.
    Unconsumed,
    /// An error in Levada itself.
    Internal,
    /// A signal ended the command.
    Interrupted,
}

/// A row of the table of error codes.
struct Row {
    kind: Kind,
    code: &'static str,
    exit_status: u8,
    http_status: Option<u16>,
    meaning: &'static str,
}

const fn row(
    kind: Kind,
    code: &'static str,
    exit_status: u8,
    http_status: Option<u16>,
    meaning: &'static str,
) -> Row {
    Row {
        kind,
        code,
        exit_status,
        http_status,
        meaning,
    }
}

/// In the order of the exit statuses. For a response without a code, the first row with its HTTP status applies.
const TABLE: [Row; 16] = [
    row(
        Kind::Failed,
        "failed",
        1,
        Some(400),
        "it failed for a reason that has no code of its own: errors in the sources, a file that is not there",
    ),
    row(Kind::Usage, "usage", 2, None, "the command line is wrong"),
    row(
        Kind::Wrong,
        "invalid",
        3,
        Some(400),
        "the host was asked for something that cannot be: a bad name, an unknown field, a number out of range",
    ),
    row(
        Kind::Unknown,
        "not_found",
        4,
        Some(404),
        "there is no such application, actor, worker or core",
    ),
    row(
        Kind::Conflict,
        "conflict",
        5,
        Some(409),
        "the present state does not allow it: the name is taken, the application has ended",
    ),
    row(
        Kind::Limit,
        "limit",
        6,
        Some(507),
        "there is not enough of something: memory, cores, threads, requests that may wait",
    ),
    row(
        Kind::Reservation,
        "reservation_broken",
        7,
        Some(507),
        "a reserved rate would not be kept",
    ),
    row(
        Kind::Timeout,
        "timeout",
        8,
        Some(409),
        "the time limit (--timeout) is over",
    ),
    row(
        Kind::NotSaved,
        "not_saved",
        9,
        Some(507),
        "it was done, but the state folder cannot be written, so the next host does not know it",
    ),
    row(
        Kind::NoHost,
        "no_host",
        10,
        None,
        "no host listens at the socket",
    ),
    row(
        Kind::HostGone,
        "host_gone",
        11,
        None,
        "the connection to the host ended before its answer was complete",
    ),
    row(
        Kind::Denied,
        "access_denied",
        12,
        None,
        "this user may not use the socket",
    ),
    row(
        Kind::Busy,
        "busy",
        13,
        Some(503),
        "the host has too many connections, or too many followers of events",
    ),
    row(
        Kind::Unconsumed,
        "unconsumed",
        14,
        None,
        "levada run --strict: elements were left over in channels",
    ),
    row(
        Kind::Internal,
        "internal",
        70,
        Some(500),
        "an error in Levada itself",
    ),
    row(
        Kind::Interrupted,
        "interrupted",
        130,
        None,
        "a signal ended it: 128 and the number of the signal, 130 for Ctrl-C",
    ),
];

impl Kind {
    fn row(self) -> &'static Row {
        let found = TABLE.iter().find(|row| row.kind == self);
        found.unwrap_or(&TABLE[0])
    }

    /// All kinds, in the order of the exit statuses.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The name in JSON: the field `code`.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    /// The kind with this name.
    pub fn of_code(code: &str) -> Option<Kind> {
        TABLE
            .iter()
            .find(|row| row.code == code)
            .map(|row| row.kind)
    }

    /// The exit status of a command that fails with it.
    pub fn exit_status(self) -> u8 {
        self.row().exit_status
    }

    /// The HTTP status; none: only commands fail with it.
    pub fn http_status(self) -> Option<u16> {
        self.row().http_status
    }

    /// The kind of a response without a code.
    pub fn of_http_status(status: u16) -> Kind {
        let status = match status {
            405 | 413 => 400,
            408 => return Kind::Timeout,
            status => status,
        };
        let found = TABLE.iter().find(|row| row.http_status == Some(status));
        match found.map(|row| row.kind) {
            // Errors in the sources have a code of their own.
            Some(Kind::Failed) => Kind::Wrong,
            found => found.unwrap_or(Kind::Internal),
        }
    }

    /// The meaning, as text.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }
}

/// An error: what was not done, why, and what to do about it.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub kind: Kind,
    pub what: String,
    pub help: Option<String>,
    /// The request will take effect later: the new version starts when the old one has ended.
    pub pending: bool,
    /// The result of the admission check, if that is the reason.
    pub admission: Option<Box<Admission>>,
}

impl Refusal {
    pub fn new(kind: Kind, what: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            what: what.into(),
            help: None,
            pending: false,
            admission: None,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_and_exit_statuses_are_distinct() {
        let all: Vec<Kind> = Kind::all().collect();
        let codes: BTreeSet<_> = all.iter().map(|kind| kind.code()).collect();
        let statuses: BTreeSet<_> = all.iter().map(|kind| kind.exit_status()).collect();
        assert_eq!((codes.len(), statuses.len()), (all.len(), all.len()));
        for kind in all {
            assert_eq!(Kind::of_code(kind.code()), Some(kind));
            // 124 to 127 belong to timeout, env and their like.
            assert!(kind.exit_status() > 0 && !(124..128).contains(&kind.exit_status()));
        }
        assert_eq!(Kind::of_http_status(404), Kind::Unknown);
        assert_eq!(Kind::of_http_status(400), Kind::Wrong);
        assert_eq!(Kind::of_http_status(507), Kind::Limit);
        assert_eq!(Kind::of_http_status(418), Kind::Internal);
    }

    /// The guide's table of errors is this one.
    #[test]
    fn the_guide_shows_the_same_table() {
        let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let mut table =
            String::from("| code | exit | HTTP | meaning |\n| --- | --- | --- | --- |\n");
        for kind in Kind::all() {
            let http = kind.http_status().map_or(String::new(), |s| s.to_string());
            let (code, exit, meaning) = (kind.code(), kind.exit_status(), kind.meaning());
            table += &format!("| `{code}` | {exit} | {http} | {meaning} |\n");
        }
        assert!(guide.contains(&table), "docs/errors.md is to show\n{table}");
    }
}
