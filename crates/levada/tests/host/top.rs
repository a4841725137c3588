// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada top` while replies are missing: an application that is stopped, the host itself; and when the
//! selected application has gone.

use crate::common::host::Host;
use crate::common::screen::Screen;
use std::time::Duration;

const DOWN: &str = "\x1b[B";
const UP: &str = "\x1b[A";
/// Longer than an end takes on any machine, and shorter than what is waited for.
const AT_ONCE: Duration = Duration::from_secs(6);

fn top(host: &Host) -> Screen {
    Screen::begin(host.place.command(&["top", "--socket", "h.sock"]))
}

fn signal(pid: u32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: a host of this test, or its child, which has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn an_application_that_does_not_answer_holds_up_no_screen_and_no_key() {
    let host = Host::begin();
    host.many("here");
    let args = ["load", "src/p/Many.xdf", "--name=mute", "--out=/dev/null"];
    host.run(&[&args[..], &["--isolate"]].concat()).succeeds();
    let pid = host.seen("mute")["isolated"].as_u64().unwrap() as u32;
    host.until("mute", |a| a["firings"].as_u64() > Some(0));
    signal(pid, libc::SIGSTOP);
    let mut screen = top(&host);
    screen.until("source.Out -> write.In");
    screen.press(DOWN);
    screen.until("mute has not answered for");
    // The other one answers, and says more.
    screen.press(UP);
    screen.until("2 applications loaded");
    screen.press(DOWN);
    screen.until("mute has not answered for");
    screen.press("q");
    assert!(screen.ends(AT_ONCE).success());
    signal(pid, libc::SIGCONT);
}

#[test]
fn each_key_that_ends_it_does_so_while_the_host_is_stopped() {
    let host = Host::begin();
    host.many("here");
    for key in ["q", "\x1b", "\x03"] {
        let mut screen = top(&host);
        screen.until("source.Out -> write.In");
        signal(host.child.id(), libc::SIGSTOP);
        screen.until("the host has not answered for");
        // Known values are shown, also after the request for one application has timed out; and nothing waits for
        // an action that is not answered.
        screen.rest(Duration::from_secs(3));
        screen.until("source.Out -> write.In");
        screen.press("p");
        screen.until("here is to be paused");
        screen.press("u");
        screen.until("that has not been answered");
        screen.press(key);
        let ended = screen.ends(AT_ONCE);
        signal(host.child.id(), libc::SIGCONT);
        assert!(ended.success(), "{key:?}");
        host.until("here", |a| a["state"] == "paused");
        host.run(&["resume", "here"]).succeeds();
    }
}

#[test]
fn a_host_that_answers_again_is_shown_again() {
    let host = Host::begin();
    host.many("here");
    let mut screen = top(&host);
    screen.until("source.Out -> write.In");
    signal(host.child.id(), libc::SIGSTOP);
    screen.until("the host has not answered for");
    signal(host.child.id(), libc::SIGCONT);
    screen.until("1 application loaded");
    screen.press("q");
    assert!(screen.ends(AT_ONCE).success());
}

#[test]
fn a_key_that_is_pressed_again_unloads_no_other() {
    let host = Host::begin();
    host.many("first");
    host.many("second");
    let mut screen = top(&host);
    screen.until("source.Out -> write.In");
    screen.press("U");
    screen.until("no application is chosen");
    screen.until("first is unloaded");
    screen.press("U");
    screen.press(DOWN);
    screen.until("source.Out -> write.In");
    assert_eq!(host.seen("second")["state"], "running");
    screen.press("q");
    assert!(screen.ends(AT_ONCE).success());
}
