// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The version of the interface: hosts and commands understand each other if the first two numbers of their versions
//! are equal.

/// The header `server` of all responses.
pub(crate) const SERVER: &str = concat!("levada/", env!("CARGO_PKG_VERSION"));

/// The first two numbers of a version.
fn first_two(version: &str) -> &str {
    let end = version.match_indices('.').nth(1);
    end.map_or(version, |(at, _)| &version[..at])
}

/// The versions with which this one is compatible.
pub(crate) fn compatible() -> &'static str {
    first_two(env!("CARGO_PKG_VERSION"))
}

/// Checks the header `server` of a response; the error is the version of the host, which was 0.1 if it says none.
pub(crate) fn check(server: Option<&str>) -> Result<(), String> {
    let theirs = server.and_then(|server| server.strip_prefix("levada/"));
    match theirs {
        Some(theirs) if first_two(theirs) == compatible() => Ok(()),
        theirs => Err(theirs.unwrap_or("0.1").to_string()),
    }
}
