// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Readiness notification of a host, by the protocol of systemd's `Type=notify` units (sd_notify(3)): READY when
//! the host answers requests, STOPPING when it ends. `systemctl start` returns when the host is ready or has
//! failed.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sent when the host answers requests.
pub const READY: &str = "READY=1";
/// Sent when the host has been asked to end.
pub const STOPPING: &str = "STOPPING=1";

/// Sends a notification. Does nothing if `NOTIFY_SOCKET` is not set; errors are ignored.
pub fn tell(what: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_encoded_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let told = address.and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(what.as_bytes(), &address)
    });
    let _ = told;
}
