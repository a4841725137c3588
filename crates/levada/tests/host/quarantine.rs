// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of quarantine: an application that ended its host is not loaded by the next host, which loads all others
//! and reports it.

use crate::common;
use crate::common::host::{Host, compiled, rogues, sources};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Loads a rogue into the host itself, and waits until it has ended that.
fn ends(host: &mut Host, what: u32) -> String {
    let (file, name) = (format!("src/p/Rogue{what}.xdf"), format!("rogue{what}"));
    host.run(&["load", &file, "--name", &name, "--out=/dev/null"]);
    host.until_dead();
    name
}

fn outcome(seen: &Value) -> String {
    seen["outcome"].as_str().unwrap_or_default().to_string()
}

#[test]
fn an_application_that_ended_its_host_is_not_restored_and_all_others_are() {
    let mut host = Host::begin_in(rogues());
    host.many("good");
    let told = [
        (0, "signal 6 (Aborted) in its code"),
        (1, "exit() in its code"),
        (5, "exit() in its code"),
        // It has run well for longer than it takes to settle.
        (6, "signal 6 (Aborted) in its code"),
    ];
    for (what, how) in told {
        let name = ends(&mut host, what);
        host = host.again(&["--restore"]);
        host.until("good", |a| a["firings"].as_u64() > Some(1000));
        let held = host.seen(&name);
        assert_eq!(held["state"], "quarantined", "{held}");
        assert!(outcome(&held).contains(how), "{held}");
        for words in [
            host.run(&["list"]).succeeds().out.clone(),
            host.run(&["show", &name]).succeeds().out.clone(),
            host.said(),
        ] {
            let help = format!("levada resume {name} loads it");
            assert!(words.contains(how) && words.contains(&help), "{words}");
        }
        let events = host.run(&["events"]).succeeds().out.clone();
        assert!(
            events.contains(&format!("quarantined {name}: not restored")),
            "{events}"
        );
        assert!(host.place.exists(&format!("state/{name}.json")));
    }
    // No application is loaded twice, whatever happens in between.
    host = host.again(&[]);
    assert!(outcome(&host.seen("rogue0")).contains("signal 6"));
    // An explicit load succeeds; and it is quarantined again.
    host.run(&["unload", "rogue0"]).succeeds();
    assert!(host.seen("rogue0").is_null() && !host.place.exists("state/rogue0.quarantined"));
    for ask in ["resume", "--restore=all"] {
        match ask {
            "resume" => drop(host.run(&["resume", "rogue5"])),
            all => host = host.again(&[all]),
        }
        host.until_dead();
        host = host.again(&["--restore"]);
        host.until("good", |a| a["state"] == "running");
        let all = host.json(&["list"]);
        let held = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|a| a["state"] == "quarantined");
        assert_eq!(held.count(), 3, "{all}");
    }
    // Loaded again, in a process of its own, it is like all others.
    host.run(&[
        "load",
        "src/p/Rogue5.xdf",
        "--name=rogue5",
        "--isolate",
        "--out=/dev/null",
    ])
    .succeeds();
    let failed = host.until("rogue5", |a| a["state"] == "failed");
    assert!(outcome(&failed).contains("status 3"), "{failed}");
    assert!(!host.place.exists("state/rogue5.quarantined"));
}

/// A C program ends its host in each way that leaves a crash record, on its own thread or on one that it has started:
/// the host fails and names it, and the next one does not load it again.
#[test]
fn whatever_call_ends_a_host_it_fails_and_names_the_application() {
    let place = sources();
    compiled(
        &place,
        "ends",
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
         static void *end(void *how) {\n  if (!strcmp(how, \"exit\")) exit(0);\n  \
         if (!strcmp(how, \"quick_exit\")) quick_exit(0);\n  if (!strcmp(how, \"_exit\")) _exit(0);\n  \
         if (!strcmp(how, \"abort\")) abort();\n  if (!strcmp(how, \"kill\")) kill(getpid(), SIGTERM);\n  \
         if (!strcmp(how, \"raise\")) raise(SIGUSR1);\n  \
         if (!strcmp(how, \"pthread_kill\")) pthread_kill(pthread_self(), SIGINT);\n  \
         if (!strcmp(how, \"exit_group\")) syscall(SYS_exit_group, 0);\n  \
         if (!strcmp(how, \"tgkill\")) syscall(SYS_tgkill, getpid(), gettid(), SIGTERM);\n  \
         if (!strcmp(how, \"alarm\")) alarm(1);\n  \
         if (!strcmp(how, \"child\") && fork() == 0) kill(getppid(), SIGTERM), _exit(0);\n  \
         if (!strcmp(how, \"grandchild\") && fork() == 0) {\n    char line[99];\n    int host = getppid();\n    \
         sprintf(line, \"kill -TERM %d; while kill -0 %d 2>&-; do sleep 0.05; done\", host, host);\n    \
         system(line), _exit(0);\n  }\n  return 0;\n}\n\
         int main(int argc, char **argv) {\n  pthread_t thread;\n  if (argc < 3) return 1;\n  \
         if (!strcmp(argv[2], \"here\")) end(argv[1]);\n  \
         else if (pthread_create(&thread, 0, end, argv[1]) == 0) pthread_join(thread, 0);\n  for (;;) sleep(1);\n}\n",
    );
    let mut host = Host::begin_in(place);
    host.many("good");
    let own = "in its code";
    let clock = "of a clock that it has set, or of the kernel";
    let process = "of a process that it has started";
    let all = [
        ("exit", "here", "exit(0)", own),
        ("exit", "there", "exit(0)", own),
        ("quick_exit", "there", "exit(0)", own),
        ("_exit", "here", "exit(0)", own),
        ("abort", "there", "signal 6", own),
        ("kill", "here", "signal 15", own),
        ("kill", "there", "signal 15", own),
        ("raise", "there", "signal 10", own),
        ("pthread_kill", "here", "signal 2", own),
        ("exit_group", "there", "exit(0)", own),
        ("tgkill", "here", "signal 15", own),
        ("alarm", "here", "signal 14", clock),
        ("child", "here", "signal 15", process),
        ("child", "there", "signal 15", process),
        ("grandchild", "here", "signal 15", process),
    ];
    for (how, thread, word, whence) in all {
        let name = format!("{how}.{thread}");
        let load = ["load", "ends.so", "--name", &name, "--socket=h.sock"];
        host.place.run(&[&load[..], &["--", how, thread]].concat());
        host.until_dead();
        let ended = host.child.wait().unwrap();
        assert!(!ended.success(), "{name}: {ended}");
        let said = format!("error: {name} has ended this host: {word} {whence}");
        assert!(host.said().contains(&said), "{name}: {}", host.said());
        host = host.again(&["--restore"]);
        host.until("good", |a| a["state"] == "running");
        let held = host.seen(&name);
        let word = word.replace("(0)", "()");
        assert!(
            held["state"] == "quarantined" && outcome(&held).contains(&word),
            "{held}"
        );
        host.run(&["unload", &name]).succeeds();
    }
    // One that is told to end by another process ends well.
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    assert!(host.child.wait().unwrap().success());
}

/// `exec` in the host's process would end all applications: it fails there, and the host reports the application that
/// called it. In a child process and in an isolated application it works as usual.
#[test]
fn no_other_program_takes_the_place_of_a_host() {
    let place = sources();
    compiled(
        &place,
        "execs",
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static int execs(int how, char *file) {\n  char *args[] = {\"touch\", file, 0};\n  \
         char *path = \"/usr/bin/touch\";\n  int fd = open(path, O_RDONLY | O_CLOEXEC);\n  errno = 0;\n  \
         switch (how) {\n  \
         case 0: return execl(path, \"touch\", file, (char *)0);\n  \
         case 1: return execlp(\"touch\", \"touch\", file, (char *)0);\n  \
         case 2: return execle(path, \"touch\", file, (char *)0, environ);\n  \
         case 3: return execv(path, args);\n  \
         case 4: return execvp(\"touch\", args);\n  case 5: return execve(path, args, environ);\n  \
         case 6: return execvpe(\"touch\", args, environ);\n  case 7: return fexecve(fd, args, environ);\n  \
         case 8: return execveat(AT_FDCWD, path, args, environ, 0);\n  \
         case 9: return (int)syscall(SYS_execve, path, args, environ);\n  }\n  return 0;\n}\n\
         int main(int argc, char **argv) {\n  char file[] = \"made0\";\n  \
         for (int how = 0; how < 10; how++, file[4]++) {\n    \
         if (argc > 1) execs(atoi(argv[1]), argv[2]);\n    \
         if (execs(how, \"replaced\") != -1 || errno != EPERM) return 1;\n    \
         pid_t child = fork();\n    if (child == 0) execs(how, file), _exit(1);\n    int status;\n    \
         while (waitpid(child, &status, 0) < 0)\n      if (errno != EINTR) return 2;\n    \
         if (status) return 3;\n  }\n  return 0;\n}\n",
    );
    let host = Host::begin_in(place);
    host.many("good");
    host.run(&["load", "execs.so", "--name=bad"]).succeeds();
    let ended = host.until("bad", |a| a["state"] == "ended" || a["state"] == "failed");
    assert_eq!(ended["outcome"], "done", "{ended}");
    for how in 0..10 {
        assert!(host.place.exists(&format!("made{how}")), "{how}");
    }
    let said = "error: bad called exec, which would replace the program of this host";
    assert_eq!(host.said().matches(said).count(), 10, "{}", host.said());
    let args = [
        "load",
        "execs.so",
        "--name=own",
        "--isolate",
        "--socket=h.sock",
    ];
    host.place
        .run(&[&args[..], &["--", "5", "replaced"]].concat());
    host.until("own", |a| a["state"] == "ended" || a["state"] == "failed");
    assert!(host.place.exists("replaced"));
    assert_eq!(host.seen("good")["state"], "running");
}

/// Of `kill -9` nothing is left but what had begun: those are tried one by one.
#[test]
fn without_a_crash_record_the_started_applications_are_suspected() {
    for what in [2] {
        let mut host = Host::begin_in(rogues());
        for name in ["a", "b", "c"] {
            host.many(name);
        }
        let name = ends(&mut host, what);
        // It is begun once more, and alone, if others had just begun, too.
        let mut ends = 0;
        host = host.again(&["--restore"]);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(300) {
            if host.child.try_wait().unwrap().is_some() {
                host = host.again(&["--restore"]);
                ends += 1;
            } else if host.run(&["list"]).out.contains("had just begun") {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(ends <= 1, "{ends} ends more");
        let held = host.seen(&name);
        assert!(outcome(&held).contains("had just begun"), "{held}");
        for name in ["a", "b", "c"] {
            host.until(name, |a| a["firings"].as_u64() > Some(1000));
        }
    }
}

fn all_settled(host: &Host) {
    let start = Instant::now();
    let journal = host.place.path("state/.journal");
    while std::fs::read_to_string(&journal).unwrap().lines().count() > 1 {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An application that has run well and is resumed has not just started; one that was loaded paused has.
#[test]
fn a_resumed_application_is_not_blamed_for_the_end_of_its_host() {
    let mut host = Host::begin_in(rogues());
    host.many("good");
    let paused = ["load", "src/p/Rogue2.xdf", "--name=rogue2", "--paused"];
    host.run(&[&paused[..], &["--out=/dev/null"]].concat())
        .succeeds();
    all_settled(&host);
    for what in ["resume", "pause", "resume"] {
        host.run(&[what, "good"]).succeeds();
    }
    host.child.kill().unwrap();
    let mut host = host.again(&["--restore"]);
    host.until("good", |a| a["state"] == "running");
    host.until("rogue2", |a| a["state"] == "loaded");
    all_settled(&host);
    host.run(&["resume", "rogue2"]);
    host.until_dead();
    let host = host.again(&["--restore"]);
    let held = host.seen("rogue2");
    assert!(outcome(&held).contains("had just begun"), "{held}");
    host.until("good", |a| a["state"] == "running");
}

/// While a new version waits for its moment, the next host would load the one that has run well.
#[test]
fn an_application_that_is_to_be_replaced_is_not_blamed_for_the_end_of_its_host() {
    let place = sources();
    // It never asks whether it is to end.
    let text = "#include <levada/fiber.h>\nint main(void) {\n  \
                while (lvd_fiber_sleep(1000000) == LVD_OK) {}\n  return 0;\n}\n";
    compiled(&place, "deaf", text);
    let mut host = Host::begin_in(place);
    host.run(&["load", "deaf.so", "--name=deaf"]).succeeds();
    all_settled(&host);
    std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&["replace", "deaf", "deaf.so"]));
        host.until("deaf", |a| a["state"] == "draining");
        let pid = host.child.id();
        // SAFETY: it is ours, and has not been waited for.
        unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        replaces.join().unwrap();
    });
    host.until_dead();
    let host = host.again(&["--restore"]);
    host.until("deaf", |a| a["state"] == "running");
}

/// Those that are tried one by one are named before they are, and can be resumed or forgotten at once.
#[test]
fn what_is_still_to_come_is_listed() {
    let mut host = Host::begin_in(rogues());
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        host.many(name);
    }
    host.child.kill().unwrap();
    let host = host.again(&["--restore"]);
    let named = |why: &str| -> Vec<String> {
        let all = host.json(&["list"]);
        let all = all.as_array().unwrap().iter();
        let held = all.filter(|a| outcome(a).contains(why));
        held.map(|a| a["name"].as_str().unwrap().to_string())
            .collect()
    };
    let to_come = named("to be loaded again");
    assert!(to_come.len() >= 3, "{to_come:?}");
    let (resumed, forgotten) = (&to_come[1], &to_come[2]);
    host.run(&["resume", resumed]).succeeds();
    host.run(&["unload", forgotten]).succeeds();
    for name in names.iter().filter(|name| **name != forgotten) {
        host.until(name, |a| a["state"] == "running");
    }
    assert!(host.seen(forgotten).is_null());
    // An application for which the host did not wait is not reported as failed.
    let events = host.run(&["events"]).succeeds().out.clone();
    assert!(!events.contains("cannot be loaded"), "{events}");
}

#[test]
fn failed_restores_are_shown_by_all_commands() {
    let host = Host::begin_in(rogues());
    for name in ["good", "gone"] {
        host.many(name);
    }
    let host = host.again(&[]);
    let of_one = std::fs::read_to_string(host.place.path("state/gone.json")).unwrap();
    host.place
        .write("state/gone.json", &of_one.replace("Many", "None"));
    let host = host.again(&["--restore=all"]);
    host.until("good", |a| a["state"] == "running");
    let held = host.until("gone", |a| a["state"] == "quarantined");
    let why = "cannot be loaded again: there is no file src/p/None.xdf";
    assert!(outcome(&held).contains(why), "{held}");
    assert!(
        host.said().contains(&format!("gone: {why}")),
        "{}",
        host.said()
    );
    let list = host.run(&["list"]).succeeds().out.clone();
    assert!(
        list.contains(why) && list.contains("levada unload gone"),
        "{list}"
    );
    host.run(&["resume", "gone"])
        .refuses(1, &["no file src/p/None.xdf"]);
    host.place.write("state/gone.json", &of_one);
    host.run(&["resume", "gone"]).succeeds();
    host.until("gone", |a| a["firings"].as_u64() > Some(1000));
}

/// Killed at any moment of a manifest's load, a host leaves all of its applications, or none.
#[test]
fn a_manifest_is_left_whole_or_not_at_all() {
    const APPLICATIONS: usize = 40;
    let mut host = Host::begin_in(rogues());
    let one = |i| {
        format!(
            "[[application]]\nnetwork = \"src/p/Many.xdf\"\nname = \"a{i}\"\nout = \"/dev/null\"\n"
        )
    };
    let text: String = (0..APPLICATIONS).map(one).collect();
    host.place.write("many.toml", &text);
    // Compiled already, it is soon there.
    host.run(&["load", "many.toml"]).succeeds();
    let states = |host: &Host| {
        let all = host.place.list("state").into_iter();
        all.filter(|f| f.ends_with(".json")).count()
    };
    let mut halves = 0;
    for _ in 0..5 {
        host.json(&["list"])
            .as_array()
            .unwrap()
            .iter()
            .for_each(|a| {
                let name = a["name"].as_str().unwrap();
                host.run(&["unload", name, "--now"]).succeeds();
            });
        assert_eq!(states(&host), 0);
        let loads = host
            .place
            .command(&["load", "many.toml", "--socket", "h.sock"]);
        let mut loads = { loads }
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while states(&host) == 0 {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "nothing is loaded"
            );
        }
        host.child.kill().unwrap();
        loads.wait().unwrap();
        halves += usize::from(states(&host) < APPLICATIONS);
        host = host.again(&[]);
        let left = host.json(&["stats"])["host"]["not_restored"]
            .as_array()
            .map_or(0, Vec::len);
        assert!(
            left == 0 || left == APPLICATIONS,
            "{left} of {APPLICATIONS}"
        );
        host = host.again(&["--restore=all"]);
        for i in 0..left {
            host.until(&format!("a{i}"), |a| a["state"] == "running");
        }
    }
    println!("{halves} hosts were killed with half of them written");
}

/// An application that was being unloaded when the host was killed, or ended, is not restored.
#[test]
fn an_unloading_application_is_not_restored() {
    let mut host = Host::begin_with(rogues(), &["--action-time-limit=0"]);
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let ways = [("at-once", "--now"), ("drains", ""), ("apart", "--isolate")];
        for (name, how) in ways {
            let out = format!("--out={name}.txt");
            let mut load = vec!["load", "src/p/Rogue3.xdf", "--name", name, &out];
            load.extend((how == "--isolate").then_some(how));
            host.run(&load).succeeds();
            // Its last firing never ends.
            host.until(name, |a| a["firings"].as_u64() > Some(9));
            let mut unload = vec!["unload", name, "--timeout=0.1"];
            unload.extend((how == "--now").then_some(how));
            host.run(&unload).refuses(8, &["still after 100ms"]);
        }
        host.many("stays");
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(host.child.id() as i32, signal) };
        host.until_dead();
        host = host.again(&["--restore=all", "--timeout=0.5"]);
        host.until("stays", |a| a["state"] == "running");
        let events = host.run(&["events"]).succeeds().out.clone();
        for (name, _) in ways {
            assert!(host.seen(name).is_null());
            assert!(!host.place.exists(&format!("state/{name}.json")));
            let told = format!("{name}: it had been told to go when the last host ended");
            assert!(host.said().contains(&told), "{}", host.said());
            assert!(events.contains(&told), "{events}");
        }
        host.run(&["unload", "stays", "--now"]).succeeds();
    }
    // One that cannot be drained stays, and is restored.
    for (name, isolate) in [("ring", false), ("ring-apart", true)] {
        host.place.write(
            "src/p/Ring.xdf",
            &common::network(
                &[("around", "p.Around", &[])],
                &[("around.Out", "around.In")],
            )
            .replace("\"Top\"", "\"Ring\""),
        );
        host.place.write(
            "src/p/Around.cal",
            "package p;\nactor Around () int In ==> int Out :\n  bool first := true;\n  go: action ==> Out:[1] \
             guard first do first := false; end\n  on: action In:[x] ==> Out:[x] end\nend\n",
        );
        let mut load = vec!["load", "src/p/Ring.xdf", "--name", name];
        load.extend(isolate.then_some("--isolate"));
        host.run(&load).succeeds();
        host.run(&["unload", name]).refuses(5, &["no source"]);
    }
    host.child.kill().unwrap();
    host = host.again(&["--restore=all"]);
    for name in ["ring", "ring-apart"] {
        host.until(name, |a| a["state"] == "running");
    }
}
