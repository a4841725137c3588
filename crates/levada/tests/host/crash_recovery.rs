// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that a host's persistent state is correct whenever the host is killed: a resumed application does not stay
//! paused, one that has ended is not loaded again, one that is being replaced is always present, and an unloaded
//! one stays unloaded.

use crate::common::Place;
use crate::common::host::{Host, TOP, compiled, pipe, sources};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// It is opened as soon as there is no file `shut`, waits for `go`, or until it is asked to end, and what it keeps
/// is finished when there is no file `lasts`. Where it returns from a sleep cannot be seen without SIGTRAP: no
/// pause holds it there.
const LASTS: &str = r#"
#include <levada/fiber.h>
#include <levada/native.h>
#include <levada/program.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static const char key;
static void finish(void *data, lvd_status outcome) {
  (void)data, (void)outcome;
  while (access("lasts", F_OK) == 0) usleep(1000);
}
__attribute__((constructor)) static void gate(void) {
  while (access("shut", F_OK) == 0) usleep(1000);
}
int main(void) {
  lvd_app_data(lvd_current_app(), &key, 1, finish);
  sigset_t traps;
  sigemptyset(&traps);
  sigaddset(&traps, SIGTRAP);
  pthread_sigmask(SIG_BLOCK, &traps, NULL);
  fclose(fopen("begun", "w"));
  while (access("go", F_OK) && !lvd_app_is_draining(lvd_current_app())) usleep(1000);
  return 0;
}
"#;

fn lasting() -> Host {
    let place = sources();
    compiled(&place, "lasts", LASTS);
    Host::begin_in(place)
}

fn load(host: &Host, more: &[&str]) {
    host.run(&[&["load", "lasts.so", "--name=a"][..], more].concat())
        .succeeds();
}

/// Waits for a file, and takes it away.
fn take(host: &Host, file: &str) {
    while !host.place.exists(file) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::remove_file(host.place.path(file)).unwrap();
}

fn killed(mut host: Host) -> Place {
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    std::mem::replace(&mut host.place, Place::new(&[]))
}

/// What the next host would read of `a`.
fn remembered(host: &Host) -> Value {
    let text = std::fs::read(host.place.path("state/a.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// It has come to its end while it was paused, and is told to go on while that end lasts.
#[test]
fn a_resumed_application_is_not_paused_in_the_next_host() {
    for more in [&[][..], &["--isolate"]] {
        let host = lasting();
        load(&host, more);
        take(&host, "begun");
        host.place.write("lasts", "");
        host.run(&["pause", "a", "--timeout=0.1"]).refuses(
            8,
            &["a is paused, but it has not come to where it can be held"],
        );
        assert_eq!(remembered(&host)["paused"], true);
        host.place.write("go", "");
        host.until("a", |a| a["state"] == "ending");
        host.run(&["resume", "a"])
            .refuses(5, &["a has ended, or is about to"]);
        assert_eq!(remembered(&host)["paused"], false);
        let place = killed(host);
        std::fs::remove_file(place.path("lasts")).unwrap();
        let host = Host::begin_with(place, &["--restore=all"]);
        let ended = host.until("a", |a| a["state"] == "ended");
        assert_eq!(ended["outcome"], "done");
    }
}

/// As soon as its end is visible, no later host loads it again.
#[test]
fn an_ended_application_is_not_restored() {
    let host = Host::begin();
    for more in [&[][..], &["--isolate"]] {
        for _ in 0..10 {
            let args = ["load", TOP, "--name=a", "--out=/dev/null"];
            host.run(&[&args[..], more].concat()).succeeds();
            host.until("a", |a| a["state"] == "ended");
            assert!(!host.place.exists("state/a.json"));
        }
    }
}

/// Between the end of the old version and the beginning of the new one the name is remembered.
#[test]
fn an_application_is_recorded_throughout_its_replacement() {
    let host = Host::begin();
    host.many("a");
    let (file, over) = (host.place.path("state/a.json"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert!(file.exists());
            }
        });
        for _ in 0..10 {
            host.run(&["replace", "a", "src/p/Many.xdf"]).succeeds();
        }
        over.store(true, Ordering::Relaxed);
        looks.join().unwrap();
    });
}

/// A new version may end before it was recorded.
#[test]
fn a_new_version_that_ends_at_once_does_not_come_again() {
    let host = lasting();
    host.place
        .write("quick.c", "int main(void) { return 0; }\n");
    host.place
        .run(&["cc", "--plugin", "-O2", "quick.c", "-o", "quick.so"])
        .succeeds();
    for more in [&[][..], &["--isolate"]] {
        for _ in 0..20 {
            load(&host, more);
            take(&host, "begun");
            host.run(&["replace", "a", "quick.so"]).succeeds();
            host.until("a", |a| a["state"] == "ended");
            assert!(!host.place.exists("state/a.json"), "{more:?}");
        }
    }
}

/// The old version takes longer to end than all timeouts: the new one is loaded, and is recorded.
#[test]
fn a_new_version_that_waits_for_its_turn_is_remembered() {
    for more in [&[][..], &["--isolate"]] {
        let host = lasting();
        takes_long(&host, more);
        assert_eq!(remembered(&host)["paused"], true);
        // Its own turn has not come by that.
        host.run(&["resume", "a"])
            .refuses(5, &["a has ended, or is about to"]);
        assert_eq!(remembered(&host)["paused"], true);
        resumed_in_the_end(&host);
        assert_eq!(remembered(&host)["paused"], false);
        let network = remembered(&host)["network"].to_string();
        assert!(network.contains("next.so"), "{network}");
        let host = Host::begin_with(killed(host), &["--restore=all"]);
        host.until("a", |a| a["state"] == "running");
    }
}

/// A new version takes over from `a`, which takes long to end.
fn takes_long(host: &Host, more: &[&str]) {
    let copied = std::fs::copy(host.place.path("lasts.so"), host.place.path("next.so"));
    copied.unwrap();
    load(host, more);
    take(host, "begun");
    host.place.write("lasts", "");
    let args = ["replace", "a", "next.so", "--timeout=1"];
    let why = "a was asked to exit and is still running";
    host.run(&args).refuses(8, &[why, "resume it"]);
}

fn resumed_in_the_end(host: &Host) {
    std::fs::remove_file(host.place.path("lasts")).unwrap();
    while host.run(&["resume", "a"]).code != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A constructor of the new version does not return, and the wait for it has timed out: the end of the old version is
/// final.
#[test]
fn an_end_during_a_blocked_replacement_is_final() {
    let host = lasting();
    std::fs::copy(host.place.path("lasts.so"), host.place.path("next.so")).unwrap();
    load(&host, &["--isolate"]);
    take(&host, "begun");
    // What has told of an end once can do so again while the loader is held.
    host.run(&["replace", "a", "lasts.so"]).succeeds();
    take(&host, "begun");
    host.place.write("shut", "");
    host.run(&["replace", "a", "next.so", "--timeout=0.1"])
        .refuses(8, &["a constructor of the new shared object"]);
    host.place.write("go", "");
    host.until("a", |a| a["state"] == "ended");
    // It is forgotten with the new one, which ends as its process does.
    let start = std::time::Instant::now();
    while host.place.exists("state/a.json") {
        assert!(start.elapsed().as_secs() < 300, "it is remembered");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The end of the old version lasts, so the new one is unloaded before it has begun, or later: no version is left over.
#[test]
fn an_unload_removes_all_versions() {
    let host = lasting();
    takes_long(&host, &[]);
    host.run(&["unload", "a", "--now", "--timeout=0.05"])
        .refuses(8, &["a is ending still"]);
    // One that waits for that end, and one that comes after it.
    for waits in [true, false] {
        std::thread::scope(|scope| {
            let unloads = waits.then(|| scope.spawn(|| host.run(&["unload", "a"])));
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::fs::remove_file(host.place.path("lasts")).unwrap();
            match unloads {
                Some(unloads) => drop(unloads.join().unwrap().succeeds()),
                None => {
                    host.until("a", |a| a["state"] == "ended");
                    host.run(&["unload", "a"]).succeeds();
                }
            }
        });
        assert!(host.seen("a").is_null());
        if waits {
            takes_long(&host, &[]);
            host.run(&["unload", "a", "--now", "--timeout=0.05"])
                .refuses(8, &["a is ending still"]);
        }
    }
    takes_long(&host, &[]);
    resumed_in_the_end(&host);
    host.run(&["unload", "a"]).succeeds();
    assert!(host.seen("a").is_null());
    // All that have ended are taken away, and with them what was before them.
    takes_long(&host, &[]);
    resumed_in_the_end(&host);
    host.place.write("go", "");
    host.until("a", |a| a["state"] == "ended");
    let delete = "DELETE /applications HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    host.raw(delete.as_bytes());
    assert!(host.seen("a").is_null());
}

/// The old version takes long to end, and is to be unloaded together with the new one, which has not been recorded
/// yet.
#[test]
fn an_application_unloaded_during_replacement_is_not_restored() {
    let host = lasting();
    for _ in 0..20 {
        load(&host, &[]);
        take(&host, "begun");
        host.place.write("lasts", "");
        std::thread::scope(|scope| {
            let replaces = scope.spawn(|| host.run(&["replace", "a", "lasts.so"]));
            host.until("a", |a| a["state"] == "ending");
            host.run(&["unload", "a", "--now", "--timeout=0.05"])
                .refuses(8, &["a is ending still"]);
            std::fs::remove_file(host.place.path("lasts")).unwrap();
            replaces
                .join()
                .unwrap()
                .refuses(5, &["a was unloaded before it started"]);
        });
        assert!(!host.place.exists("state/a.json"));
        host.run(&["unload", "a"]).succeeds();
        assert!(host.seen("a").is_null());
    }
}

/// Its process is there, and has not been loaded yet: it is forgotten, and not held as one that could not be loaded.
#[test]
fn an_application_unloaded_during_its_restore_stays_unloaded() {
    let mut host = lasting();
    for _ in 0..5 {
        load(&host, &["--isolate"]);
        take(&host, "begun");
        host.place.write("shut", "");
        host = Host::begin_with(killed(host), &["--restore=all"]);
        host.until("a", |a| !a["isolated"].is_null());
        host.run(&["unload", "a", "--now"]).succeeds();
        std::fs::remove_file(host.place.path("shut")).unwrap();
        // Whatever its restore has to say of it has been said.
        host.run(&["pause", "a"])
            .refuses(4, &["no application a is loaded"]);
        assert!(host.seen("a").is_null());
        assert!(!host.place.exists("state/a.json"));
        assert!(!host.said().contains("cannot be loaded again"));
    }
}

/// An application that is removed from the state writes no more, so its partial outputs are removed too, whichever
/// process left them.
#[test]
fn a_removed_application_leaves_no_partial_output() {
    for more in [&[][..], &["--isolate"]] {
        let host = Host::begin_in(sources());
        let halves = |host: &Host| {
            let names = host.place.list(".");
            names.iter().filter(|n| n.contains(".part-")).count()
        };
        let args = ["load", "src/p/Many.xdf", "--name=a", "--out=a.txt"];
        host.run(&[&args[..], more].concat()).succeeds();
        host.until("a", |_| halves(&host) == 1);
        let host = Host::begin_in(killed(host));
        assert_eq!(halves(&host), 1);
        host.run(&["unload", "a"]).succeeds();
        let start = std::time::Instant::now();
        while halves(&host) > 0 {
            assert!(
                start.elapsed().as_secs() < 300,
                "{:?}",
                host.place.list(".")
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// A child that an application has forked may live for longer than its host: it keeps nothing of that, also where
/// it was not forked by the C library, and has everything that the host had open. The next host begins at once.
#[test]
fn forked_process_holds_no_resource_of_an_ended_host() {
    const FORKS: &str = "#define _GNU_SOURCE\n#include <signal.h>\n#include <stdio.h>\n#include <string.h>\n\
        #include <sys/syscall.h>\n#include <unistd.h>\nint main(int argc, char **argv) {\n  \
        int bare = argc > 1 && !strcmp(argv[1], \"bare\");\n  \
        long child = bare ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();\n  if (child == 0) for (;;) pause();\n  \
        FILE *file = fopen(\"child.new\", \"w\");\n  if (!file || child < 0) return 1;\n  \
        fprintf(file, \"%ld\", child);\n  fclose(file);\n  return rename(\"child.new\", \"child\");\n}\n";
    let place = sources();
    compiled(&place, "forks", FORKS);
    let mut host = Host::begin_in(place);
    for how in ["fork", "bare"] {
        // A connection that the child may have, too.
        let socket = host.place.path("h.sock");
        let mut client = UnixStream::connect(&socket).unwrap();
        client
            .write_all(b"GET /host HTTP/1.1\r\nhost: levada\r\n\r\n")
            .unwrap();
        client.read_exact(&mut [0; 16]).unwrap();
        let load = ["load", "forks.so", "--name=f", "--socket=h.sock", "--", how];
        host.place.run(&load).succeeds();
        let start = Instant::now();
        while !host.place.exists("child") {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "nothing is forked"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let child: i32 = std::fs::read_to_string(host.place.path("child"))
            .unwrap()
            .parse()
            .unwrap();
        std::fs::remove_file(host.place.path("child")).unwrap();
        let place = killed(host);
        place
            .run(&["list", "--socket=h.sock"])
            .refuses(10, &["no host is running"]);
        if how == "fork" {
            // A client that waits for a reply gets an error.
            client
                .set_read_timeout(Some(Duration::from_secs(60)))
                .unwrap();
            let end = client.read_to_end(&mut Vec::new());
            assert!(!end.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock));
        }
        host = Host::begin_in(place);
        // Until then the child that has all may take connections.
        let start = Instant::now();
        while host.run(&["list"]).code != Some(0) {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "{}",
                host.said()
            );
        }
        // SAFETY: it was forked here, and lives.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    }
}

/// Opens and closes the files that it is given.
const TOUCHES: &str = "#include <fcntl.h>\n#include <unistd.h>\nint main(int argc, char **argv) {\n  \
    for (int i = 1; i < argc; i++) {\n    int fd = open(argv[i], O_RDWR);\n    if (fd < 0 || close(fd)) return 1;\n  \
    }\n  return 0;\n}\n";

/// A lock stays its host's when an application has opened its file, and closed it.
#[test]
fn an_application_that_reads_a_lock_takes_nothing_of_it() {
    let place = sources();
    compiled(&place, "touches", TOUCHES);
    let host = Host::begin_in(place);
    let load = ["load", "touches.so", "--name=t", "--socket=h.sock", "--"];
    let files = ["h.sock.lock", "state/.lock"].map(|file| host.place.path(file));
    let files = files.map(|file| file.to_string_lossy().into_owned());
    host.place
        .run(&[&load[..], &[&files[0], &files[1]]].concat())
        .succeeds();
    let ended = host.until("t", |t| t["state"] == "ended" || t["state"] == "failed");
    assert_eq!(ended["outcome"], "done", "{ended}");
    for (args, why) in [
        (
            ["host", "--socket=h.sock", "--state=state2"],
            "another host is running there",
        ),
        (
            ["host", "--socket=other.sock", "--state=state"],
            "another host remembers there",
        ),
    ] {
        let run = host.place.run(&args);
        assert!(run.code != Some(0) && run.err.contains(why), "{}", run.err);
    }
}

/// The state folder of Levada 0.1 stays as it is.
#[test]
fn a_state_folder_of_another_version_is_refused() {
    let place = sources();
    place.write("old/a.json", "{\"network\": \"p.Top\", \"share\": 0.5}");
    let args = ["host", "--socket=old.sock", "--state=old", "--restore"];
    let says = ["it is a state folder of Levada 0.1", "remove it and load"];
    place.run(&args).refuses(5, &says);
    assert_eq!(place.list("old"), ["a.json"]);
}

/// Forks a child that lives until it is killed, and says in a file which it is.
const FORKS_ONE: &str = "#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n  \
    int child = fork();\n  if (child == 0) for (;;) pause();\n  FILE *file = fopen(\"child.new\", \"w\");\n  \
    if (!file || child < 0) return 1;\n  fprintf(file, \"%d\", child);\n  fclose(file);\n  \
    return rename(\"child.new\", \"child\");\n}\n";

/// Nothing of what the host, its isolated applications or the networks in it have opened is in a child that another
/// application forks, so a reader of a pipe sees end of file.
#[test]
fn forked_process_has_no_descriptor_of_the_host_or_of_a_network() {
    let place = sources();
    compiled(&place, "forks", FORKS_ONE);
    let host = Host::begin_in(place);
    let path = pipe(&host.place, "fifo");
    let reader = std::thread::spawn(move || std::fs::read(path).unwrap().len());
    let many = "src/p/Many.xdf";
    for args in [
        ["load", many, "--name=pipe", "--out=fifo", "--timeout=300"],
        [
            "load",
            many,
            "--name=file",
            "--out=file.txt",
            "--timeout=300",
        ],
        ["load", many, "--name=own", "--isolate", "--out=/dev/null"],
    ] {
        host.run(&args).succeeds();
    }
    host.until("pipe", |a| a["firings"].as_u64() > Some(1000));
    host.until("file", |a| a["firings"].as_u64() > Some(1000));
    host.run(&["load", "forks.so", "--name=f"]).succeeds();
    host.until("f", |a| a["state"] == "ended");
    let child = std::fs::read_to_string(host.place.path("child")).unwrap();
    let child: i32 = child.parse().unwrap();
    let links = std::fs::read_dir(format!("/proc/{child}/fd")).unwrap();
    let links = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    let links: Vec<String> = links.map(|l| l.to_string_lossy().into_owned()).collect();
    let folder = host.place.path("").to_string_lossy().into_owned();
    let kinds = ["socket:", "/memfd:levada", "/dev/shm/levada"];
    let own = |link: &&String| {
        // The error output of the host is also the child's.
        let of_place = link.starts_with(&folder) && !link.ends_with("host.err");
        of_place || kinds.iter().any(|kind| link.starts_with(kind))
    };
    assert_eq!(links.iter().find(own), None, "{links:?}");
    host.run(&["unload", "pipe", "--now"]).succeeds();
    assert!(reader.join().unwrap() > 0);
    // SAFETY: it was forked here, and lives.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
}
