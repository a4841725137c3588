// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of a host as a service: its own socket, a removed one, an inherited one, closed standard streams, and
//! notifications to the service manager.

use crate::common;
use crate::common::host::{Host, TOP, sources};
use crate::common::{Place, Run, without};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_socket_has_one_host_and_a_dead_one_is_followed() {
    let mut host = Host::begin();
    let mode = std::fs::metadata(host.place.path("h.sock"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = host
        .place
        .run(&["host", "--socket=h.sock", "--state=second"]);
    second.refuses(5, &["another host is running there"]);
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    host.run(&["list"])
        .refuses(10, &["no host is running at h.sock", "levada host"]);
    let place = std::mem::replace(&mut host.place, Place::new(&[]));
    drop(host);
    let mut host = Host::begin_in(place);
    host.run(&["load", "src/p/Many.xdf", "--out", "m.txt"])
        .succeeds();
    host.until("Many", |a| a["firings"].as_u64() > Some(1000));
    // Told to end, it ends what runs first, and leaves no socket.
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    assert!(host.child.wait().unwrap().success());
    assert!(!host.place.exists("h.sock"));
    host.place.write("file", "kept");
    host.place
        .run(&["host", "--socket=file", "--state=second"])
        .refuses(5, &["no socket"]);
    let group = host.place.run(&[
        "host",
        "--socket=g.sock",
        "--state=second",
        "--group=no such group",
    ]);
    group.refuses(3, &["there is no such group"]);
}

/// A group that is let in may use the socket.
#[test]
fn a_socket_may_be_a_groups() {
    let place = sources();
    let opened = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(""), opened).unwrap();
    // SAFETY: has no preconditions.
    let group = unsafe { libc::getegid() };
    let host = Host::begin_with(place, &["--group", &group.to_string()]);
    let socket = std::fs::metadata(host.place.path("h.sock")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o660);
    assert_eq!(socket.gid(), group);
    host.run(&["list"]).succeeds();
}

/// What a script waits for, and what it is told where there can be no host.
#[test]
fn a_host_says_in_json_that_it_answers() {
    let host = Host::begin_printing(sources(), &["--json"]);
    host.run(&["list"]).succeeds();
    let said: Value = serde_json::from_str(host.printed().lines().next().unwrap()).unwrap();
    assert_eq!(said["pid"], host.child.id());
    assert_eq!(said["workers"], 2);
    let second = host.run(&["host", "--json"]);
    second.refuses(5, &["another host is running there"]);
    assert_eq!(second.json()["outcome"], "refused");
}

/// As a descriptor, in the way that systemd has: the socket is not the host's, and stays when it ends.
#[test]
fn an_inherited_listening_socket_is_taken_over() {
    let place = sources();
    let listens = || OwnedFd::from(UnixListener::bind(place.path("s.sock")).unwrap());
    let host_with = |given: &str, socket: OwnedFd, more: &str| {
        let script = format!(
            "exec 3<&0; export LISTEN_PID=$$ {given}; exec \"$0\" host --state state {more}"
        );
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_levada")]);
        command.current_dir(place.path("")).stdin(socket);
        command
    };
    let host = |given: &str, socket| host_with(given, socket, "");
    let mut child = host("LISTEN_FDS=1", listens())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let list = place.run(&["list", "--json", "--socket", "s.sock"]); // it waits until the host is there
    assert_eq!(list.succeeds().json(), serde_json::json!([]));
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
    assert!(place.exists("s.sock"));
    std::fs::remove_file(place.path("s.sock")).unwrap();
    let two = Run::new(host("LISTEN_FDS=2", listens()).output().unwrap());
    two.refuses(
        3,
        &["2 sockets are handed over (LISTEN_FDS), and one is wanted"],
    );
    // Its path and permissions are determined by the process that listens.
    std::fs::remove_file(place.path("s.sock")).unwrap();
    for option in ["--socket=other.sock", "--group=0"] {
        let both = Run::new(
            host_with("LISTEN_FDS=1", listens(), option)
                .output()
                .unwrap(),
        );
        let name = option.split('=').next().unwrap();
        both.refuses(1, &[name, "started with one (LISTEN_FDS)"]);
        std::fs::remove_file(place.path("s.sock")).unwrap();
    }
    let deaf = [
        UnixDatagram::bind(place.path("d.sock")).unwrap().into(),
        UnixStream::pair().unwrap().0.into(),
    ];
    for socket in deaf {
        let deaf = Run::new(host("LISTEN_FDS=1", socket).output().unwrap());
        deaf.refuses(3, &["not a listening stream socket", "ListenStream"]);
    }
}

/// In the way of units of `Type=notify`: by a path, or by a name that is in no folder.
#[test]
fn the_service_manager_is_notified_of_start_and_end() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let place = sources();
    let path = place.path("notify.sock");
    let hidden = format!("levada-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&hidden).unwrap();
    for (name, hears) in [
        (
            path.to_str().unwrap().to_string(),
            UnixDatagram::bind(&path).unwrap(),
        ),
        (
            format!("@{hidden}"),
            UnixDatagram::bind_addr(&address).unwrap(),
        ),
    ] {
        hears
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let heard = || {
            let mut text = [0; 100];
            let n = hears.recv(&mut text).unwrap();
            String::from_utf8_lossy(&text[..n]).into_owned()
        };
        let mut command = place.command(&["host", "--socket=n.sock", "--state=state"]);
        command.env("NOTIFY_SOCKET", &name);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        assert_eq!(heard(), "READY=1");
        // Of what it starts nothing is heard.
        place
            .run(&[
                "load",
                "src/p/Many.xdf",
                "--isolate",
                "--out=/dev/null",
                "--socket=n.sock",
            ])
            .succeeds();
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        assert_eq!(heard(), "STOPPING=1");
        assert!(child.wait().unwrap().success());
    }
    // No process listens there, or it is not the name of a socket.
    for name in ["", "/nowhere/at/all", "@"] {
        let mut command = place.command(&["host", "--socket=n.sock", "--state=state"]);
        let mut child = command.env("NOTIFY_SOCKET", name).spawn().unwrap();
        let start = std::time::Instant::now();
        while UnixStream::connect(place.path("n.sock")).is_err() {
            assert!(start.elapsed() < Duration::from_secs(300));
            std::thread::sleep(Duration::from_millis(5));
        }
        // It has all that it needs to end well when it answers.
        place.run(&["list", "--socket=n.sock"]).succeeds();
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        assert!(child.wait().unwrap().success());
    }
}

/// As `make install` has them, where there is something that can tell.
#[test]
fn systemd_has_nothing_against_the_units() {
    let place = Place::new(&[]);
    let levada = env!("CARGO_BIN_EXE_levada");
    let service = include_str!("../../../levada-host/systemd/levada-host.service");
    let begins = format!("ExecStart=\"{levada}\" ");
    let service = service.replace("ExecStart=levada ", &begins);
    place.write("levada-host.service", &service);
    let socket = include_str!("../../../levada-host/systemd/levada-host.socket");
    place.write("levada-host.socket", socket);
    let mut verify = std::process::Command::new("systemd-analyze");
    verify.args([
        "verify",
        "--user",
        "--man=no",
        "levada-host.service",
        "levada-host.socket",
    ]);
    verify.current_dir(place.path(""));
    match verify.env("XDG_RUNTIME_DIR", place.path("")).output() {
        Ok(done) => assert!(done.status.success() && done.stderr.is_empty(), "{done:?}"),
        Err(_) => common::skipped("the units", "there is no systemd-analyze"),
    }
}

/// As a program does that cleans folders of temporary files.
#[test]
fn a_socket_that_is_removed_is_made_again() {
    let host = Host::begin();
    host.many("a");
    let answers = || host.run(&["list"]).code == Some(0);
    for names in [&["h.sock"][..], &["h.sock", "h.sock.lock"]] {
        for name in names {
            std::fs::remove_file(host.place.path(name)).unwrap();
        }
        let start = Instant::now();
        while !answers() || !host.place.exists("h.sock.lock") {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "no command finds it"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(host.seen("a")["state"], "running");
    assert!(
        host.said()
            .contains("h.sock was removed: this host listens there again")
    );
    // It is one host's still.
    let second = host
        .place
        .run(&["host", "--socket=h.sock", "--state=other"]);
    second.refuses(5, &["another host is running there"]);
    // Where something else is, the host ends and says so.
    let mut host = host;
    host.place.write("h.new", "");
    std::fs::rename(host.place.path("h.new"), host.place.path("h.sock")).unwrap();
    host.until_dead();
    assert!(
        host.said().contains("no command can find this host"),
        "{}",
        host.said()
    );
    assert!(host.place.exists("h.sock"));
}

#[test]
fn a_host_without_standard_streams_puts_nothing_in_their_place() {
    for closed in 1..8 {
        let place = sources();
        let args = ["host", "--socket=h.sock", "--state=state", "--workers=2"];
        let mut command = place.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        without(&mut command, closed);
        let child = command.spawn().unwrap();
        let host = Host::of(place, child);
        host.run(&["load", TOP, "--out", "n.txt"]).succeeds();
        host.until("Top", |a| a["state"] == "ended");
        let numbers = std::fs::read_to_string(host.place.path("n.txt"));
        assert_eq!(numbers.unwrap(), "1\n2\n3\n");
        for stream in 0..=2 {
            let link = format!("/proc/{}/fd/{stream}", host.child.id());
            let file = std::fs::read_link(link).unwrap();
            let file = file.to_string_lossy();
            assert!(
                ["/dev/null", "/dev/full"].contains(&&*file),
                "{closed}: {file}"
            );
        }
    }
}
