// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What whoever has started a host is told of it, in the way of systemd's units of `Type=notify`: that it answers, and
//! that it ends. So `systemctl start` comes back when there is a host, or says that there is none.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It answers from now on.
pub const READY: &str = "READY=1";
/// It has been told to end.
pub const STOPPING: &str = "STOPPING=1";

/// Where nobody asks for it, or listens any more, nothing is told.
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
