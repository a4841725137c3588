// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the events of a host: to a follower until the host ends, and in the host's log.

use crate::common::host::Host;

#[test]
fn a_follower_of_events_gets_the_end_and_the_log_names_what_failed() {
    let mut host = Host::begin();
    let follow = host
        .place
        .command(&["events", "--follow", "--socket", "h.sock"]);
    let mut follow = { follow }
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(follow.stdout.take().unwrap());
    host.bad("bad");
    let mut line = String::new();
    while !line.contains("failed") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0);
    }
    let said = host.said();
    assert!(said.contains("bad has failed: division by zero"), "{said}");
    assert!(
        host.run(&["why", "bad"])
            .succeeds()
            .out
            .contains("bad has failed: ")
    );
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    let ended = follow.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the host has ended"));
}
