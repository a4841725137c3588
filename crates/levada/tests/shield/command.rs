// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada shield` on this machine: a program in a shield, running processes, a user without privileges,
//! scheduling classes, status; and errors: no such core, the last core, no such program or process, wrong options.

use crate::common;
use crate::common::shield::*;
use crate::common::skipped;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_program_is_alone_and_all_is_as_before_afterwards() {
    let Some(bench) = Bench::new("shields") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let script = format!(
            "grep Cpus_allowed_list /proc/$$/status /proc/{}/status; exit 7",
            other.id()
        );
        let done = bench.run(&["--method", way], &["sh", "-c", &script]);
        assert_eq!(done.status.code(), Some(7), "{done:?}");
        assert_eq!(
            masks(&done),
            [bench.core.to_string(), bench.others()],
            "{way}: {done:?}"
        );
        let said = err(&done);
        assert!(
            said.contains("of a core busy") && said.contains("went to core"),
            "{said}"
        );
        assert!(
            said.contains(&format!("core {} restored", bench.core)),
            "{said}"
        );
        assert_eq!(mask(other.id()), bench.all);
        bench.same();
    }
}

#[test]
fn status_signals_and_surroundings_are_as_if_started_plainly() {
    let Some(bench) = Bench::new("signals") else {
        return;
    };
    let quiet = &["-q"][..];
    let mut command = bench.shield(
        quiet,
        &["sh", "-c", "echo \"$0 $1 $LVD_TEST\"; cat", "a b", "c"],
    );
    let mut child = command
        .env("LVD_TEST", "kept")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"typed").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(out(&done), "a b c kept\ntyped");

    let done = bench.run(quiet, &["sh", "-c", "kill -KILL $$"]);
    assert_eq!(done.status.signal(), Some(libc::SIGKILL), "{done:?}");
    assert_eq!(err(&done), "", "quiet is quiet");

    // A signal for the tool is the program's, and its end is the tool's.
    let (child, pid) = bench.start(quiet, "trap 'exit 3' USR1; while :; do sleep 0.02; done");
    let tool = child.id() as i32;
    assert_eq!(
        stat(&format!("/proc/{pid}/stat"), 5),
        stat(&format!("/proc/{tool}/stat"), 5),
        "one process group"
    );
    kill(tool, libc::SIGUSR1);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(3));

    // When the program is stopped, so is the tool; when that goes on, so does the program.
    let (child, pid) = bench.start(quiet, "exec sleep 30");
    let tool = child.id() as i32;
    kill(pid, libc::SIGSTOP);
    until("the tool stops, too", 2, || {
        stat(&format!("/proc/{tool}/stat"), 3) == "T"
    });
    kill(tool, libc::SIGCONT);
    until("the program goes on", 2, || {
        stat(&format!("/proc/{pid}/stat"), 3) == "S"
    });
    kill(tool, libc::SIGTERM);
    assert_eq!(
        child.wait_with_output().unwrap().status.signal(),
        Some(libc::SIGTERM)
    );

    // What was ignored or blocked before is so in the program, and nothing else.
    let plain = Command::new("sh")
        .args(["-c", "grep Sig[BI] /proc/self/status"])
        .output()
        .unwrap();
    let inside = bench.run(quiet, &["sh", "-c", "grep Sig[BI] /proc/self/status"]);
    assert_eq!(out(&inside), out(&plain));
    bench.same();
}

/// The shield is effective even if the reader of the tool's messages is gone.
#[test]
fn a_tool_that_cannot_say_anything_goes_on() {
    let Some(bench) = Bench::new("unheard tools") else {
        return;
    };
    let script = "sleep 0.3; grep Cpus_allowed_list /proc/self/status; exit 3";
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let deaf = [Stdio::from(writer), Stdio::from(full.unwrap())];
    for error in deaf {
        let mut command = bench.shield(&[], &["sh", "-c", script]);
        let done = command.stderr(error).output().unwrap();
        assert_eq!(done.status.code(), Some(3), "{done:?}");
        assert_eq!(masks(&done), [bench.core.to_string()]);
        bench.same();
    }
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = bench.shield_on(99, &[], &["true"]);
    let done = command.stderr(full.unwrap()).status().unwrap();
    assert_eq!(done.code(), Some(125));
}

#[test]
fn a_terminal_that_goes_away_is_heard_by_the_program() {
    let Some(bench) = Bench::new("a hang-up") else {
        return;
    };
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::process::CommandExt;
    let (mut own, mut theirs) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: two descriptors are written, nothing else is asked for or given.
    let (own, theirs) = unsafe {
        assert_eq!(
            libc::openpty(&mut own, &mut theirs, null, null.cast(), null.cast()),
            0
        );
        // A process with this end open would keep the terminal alive.
        libc::fcntl(own, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(own), OwnedFd::from_raw_fd(theirs))
    };
    let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
    let script = "trap 'exit 3' HUP; echo up; while :; do sleep 0.02; done";
    let mut command = bench.shield(&["-q"], &["sh", "-c", script]);
    command
        .stdin(end(&theirs))
        .stdout(end(&theirs))
        .stderr(end(&theirs));
    // SAFETY: calls without memory, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // What is ignored at its start a shell cannot trap: these tests may run under nohup.
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            libc::setsid();
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().unwrap();
    // It has the other end, too.
    drop((command, theirs));
    let mut terminal = fs::File::from(own);
    let mut said = [0; 2];
    terminal.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"up");
    drop(terminal);
    let mut status = None;
    let id = child.id() as i32;
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("the program has heard it", 5, || {
            status = child.try_wait().unwrap();
            status.is_some()
        })
    }));
    if ended.is_err() {
        kill(id, libc::SIGTERM);
    }
    assert_eq!(status.and_then(|s| s.code()), Some(3));
    bench.same();
}

#[test]
fn a_process_that_runs_gets_the_core_with_all_its_threads() {
    let Some(bench) = Bench::new("--pid") else {
        return;
    };
    for way in bench.ways() {
        let mut process = Sleeper::new(&["sleep", "20"]);
        let id = process.id().to_string();
        let mut command = bench.shield(&["--method", way, "--pid", &id], &[]);
        let tool = command.stderr(Stdio::piped()).spawn().unwrap();
        until("inside", 2, || mask(process.id()) == bench.core.to_string());
        // Ctrl-C ends the shield, not the process.
        std::thread::sleep(Duration::from_millis(30));
        kill(tool.id() as i32, libc::SIGINT);
        let done = tool.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{done:?}");
        assert_eq!(
            err(&done).contains("when their parents end"),
            way == "affinity",
            "{done:?}"
        );
        assert_eq!(mask(process.id()), bench.all, "{way}");
        let tool = bench
            .shield(&["--method", way, "--pid", &id, "-q"], &[])
            .spawn()
            .unwrap();
        until("inside", 2, || mask(process.id()) == bench.core.to_string());
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        assert_eq!(tool.wait_with_output().unwrap().status.code(), Some(0));
        bench.same();
    }
}

#[test]
fn an_unprivileged_user_moves_own_threads() {
    let Some(bench) = Bench::new("a user without rights") else {
        return;
    };
    let probe = ["--reuid=65534", "--regid=65534", "--clear-groups", "true"];
    let probed = Command::new("setpriv").args(probe).output();
    if !probed.is_ok_and(|done| done.status.success()) {
        return skipped(
            "a user without rights",
            "there is no setpriv that changes users",
        );
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let levada = folder.path().join("levada");
    common::copy_program(LEVADA, &levada);
    let runtime = folder.path().join("runtime");
    fs::create_dir(&runtime).unwrap();
    std::os::unix::fs::chown(&runtime, Some(65534), Some(65534)).unwrap();
    let unprivileged = |words: &[&str]| {
        let mut all = vec![
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        all.extend(words);
        all.iter().map(|w| w.to_string()).collect::<Vec<_>>()
    };
    let as_unprivileged_user = |words: &[&str]| {
        let words = unprivileged(words);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("XDG_RUNTIME_DIR", &runtime)
            .stdin(Stdio::null());
        command.output().unwrap()
    };
    let words = unprivileged(&["sleep", "20"]);
    let own = Sleeper::new(&words.iter().map(String::as_str).collect::<Vec<_>>());
    until("its process", 2, || {
        text(format!("/proc/{}/comm", own.id())) == "sleep"
    });
    let foreign = Sleeper::new(&["sleep", "20"]);
    let core = bench.core.to_string();
    let show = format!(
        "grep Cpus_allowed_list /proc/$$/status /proc/{}/status /proc/{}/status",
        own.id(),
        foreign.id()
    );
    let levada = levada.to_str().unwrap();
    let done = as_unprivileged_user(&[levada, "shield", &core, "--", "sh", "-c", &show]);
    assert_eq!(
        masks(&done),
        [core.clone(), bench.others(), bench.all.clone()],
        "{done:?}"
    );
    assert!(err(&done).contains("your own processes only"), "{done:?}");
    assert_eq!(mask(own.id()), bench.all);
    for (options, said) in [
        (vec!["--method", "affinity"], "CAP_SYS_NICE"),
        (vec!["--fifo", "10"], "cannot have real-time priority"),
        (vec!["--weight", "1000"], "cannot have the weight"),
        (vec!["--deadline", "2ms/10ms"], "deadlines need"),
    ] {
        let mut words = vec![levada, "shield", &core, "-q"];
        words.extend(options);
        words.extend(["--", "true"]);
        let refused = as_unprivileged_user(&words);
        assert_eq!(refused.status.code(), Some(125), "{refused:?}");
        assert!(err(&refused).contains(said), "{refused:?}");
    }
    // The undo log must be in a folder that no other user can write.
    let nowhere = unprivileged(&[
        "env",
        "-u",
        "XDG_RUNTIME_DIR",
        levada,
        "shield",
        &core,
        "--",
        "true",
    ]);
    let refused = Command::new(&nowhere[0]).args(&nowhere[1..]).output();
    let refused = refused.unwrap();
    assert!(err(&refused).contains("set XDG_RUNTIME_DIR"), "{refused:?}");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_dir_all(runtime.join("levada")).unwrap();
    fs::create_dir(runtime.join("levada")).unwrap();
    fs::write(runtime.join("levada/shield"), "shield\t0\t1\n").unwrap();
    std::os::unix::fs::chown(runtime.join("levada/shield"), Some(1), None).unwrap();
    let refused = as_unprivileged_user(&[levada, "shield", &core, "--", "true"]);
    assert!(err(&refused).contains("belongs to another"), "{refused:?}");
    fs::remove_dir_all(runtime.join("levada")).unwrap();
    let id = foreign.id().to_string();
    let refused = as_unprivileged_user(&[levada, "shield", &core, "--pid", &id]);
    assert!(err(&refused).contains("another user's"), "{refused:?}");
    bench.same();
}

#[test]
fn classes_are_given() {
    let Some(bench) = Bench::new("classes") else {
        return;
    };
    // Class and priority of the program: fields 41 and 40; its nice value: 19.
    let fields = |options: &[&str]| {
        let script = "cut -d' ' -f19,40,41 /proc/self/stat; cat /proc/self/autogroup 2>/dev/null";
        let done = bench.run(options, &["sh", "-c", script]);
        if done.status.success() {
            Ok(out(&done).lines().next().unwrap_or("").to_string())
        } else {
            Err(err(&done))
        }
    };
    let group = text("/proc/self/autogroup");
    match fields(&["--fifo", "20"]) {
        Ok(got) => assert!(got.ends_with(" 20 1"), "{got}"),
        Err(why) => assert!(why.contains("cpu.rt_runtime_us"), "{why}"),
    }
    assert_eq!(fields(&["--weight", "10000"]).unwrap(), "-20 0 0");
    assert_eq!(
        text("/proc/self/autogroup"),
        group,
        "the session's weight is as it was"
    );
    // The shell has the deadline; what it forks has not, so it is asked by a builtin.
    let script = "read -r line < /proc/$$/stat; echo ${line##*)}";
    let done = bench.run(&["-q", "--deadline", "5ms/10ms"], &["sh", "-c", script]);
    if done.status.success() {
        assert_eq!(out(&done).split(' ').nth(41 - 3), Some("6"), "{done:?}")
    } else {
        assert!(err(&done).contains("deadline"), "{done:?}")
    }
    bench.same();
}

#[test]
fn errors_are_reported_and_nothing_is_changed() {
    let Some(bench) = Bench::new("wrong shields") else {
        return;
    };
    let core = bench.core.to_string();
    for (words, code, said) in [
        (vec!["4711", "--", "true"], 125, "there is no core 4711"),
        (
            vec![bench.all.as_str(), "--", "true"],
            125,
            "would leave no core",
        ),
        (
            vec!["--cores", "1000", "--", "true"],
            125,
            "one must remain",
        ),
        (vec!["--", "true"], 125, "which core?"),
        (vec!["x", "--", "true"], 2, "no list of cores"),
        (vec!["1-0", "--", "true"], 2, "no list of cores"),
        (vec![&core], 1, "what is to run there?"),
        (
            vec![&core, "--", "levada-no-such"],
            127,
            "there is no program levada-no-such",
        ),
        (
            vec![&core, "--", "/nowhere/x"],
            127,
            "there is no program /nowhere/x",
        ),
        (vec![&core, "--", "/etc/passwd"], 126, "may not be executed"),
        (vec![&core, "--", "/etc"], 126, "is a folder"),
        (vec![&core, "--pid", "4194304"], 1, "there is no process"),
        (vec![&core, "--pid", "2"], 1, "is a thread of the kernel"),
        (
            vec![&core, "--pid", "1", "--", "true"],
            2,
            "cannot be used with",
        ),
        (vec![&core, "--fifo", "100", "--", "true"], 2, "1..=99"),
        (
            vec![&core, "--deadline", "20ms/10ms", "--", "true"],
            2,
            "TIME/PERIOD",
        ),
        (
            vec![&core, "--method", "magic", "--", "true"],
            2,
            "invalid value",
        ),
        (vec!["status", "4711"], 1, "there is no core 4711"),
        (
            vec!["release", "4711"],
            1,
            "there is no shield on core 4711",
        ),
    ] {
        let done = levada_shield(&words);
        assert_eq!(done.status.code(), Some(code), "{words:?}: {done:?}");
        assert!(err(&done).contains(said), "{words:?}: {done:?}");
        assert!(!err(&done).contains("panicked"), "{done:?}");
    }
    // Found, may be executed, and is none: the shield is up by then.
    let folder = tempfile::tempdir().unwrap();
    let rubbish = folder.path().join("rubbish");
    fs::write(&rubbish, b"\x7fELFrubbish").unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&rubbish, fs::Permissions::from_mode(0o755)).unwrap();
    let done = bench.run(&["-q"], &[rubbish.to_str().unwrap()]);
    assert!(
        matches!(done.status.code(), Some(126 | 127 | 2)),
        "{done:?}"
    );
    bench.same();
}

#[test]
fn status_shows_cores_and_load() {
    let Some(bench) = Bench::new("status") else {
        return;
    };
    let done = levada_shield(&["status", &bench.core.to_string()]);
    let said = out(&done);
    for part in [
        "busy",
        "same cache",
        "cheapest to empty",
        "it would go to core",
        "no shield",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (child, pid) = bench.start(&["--cores", "1"][..0], "exec sleep 20");
    let json = status();
    assert_eq!(json["shields"][0]["cores"], bench.core.to_string());
    assert_eq!(json["shields"][0]["program"][0], pid);
    assert_eq!(json["shields"][0]["holder"], child.id());
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    bench.same();
}
