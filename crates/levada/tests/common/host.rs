// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that a test starts, and applications to load into it.

use super::{Place, Run, SOURCE, network};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const TOP: &str = "src/p/Top.xdf";
/// An actor that reads numbers.
pub const READ: &str = "package p;\nimport levada.io.*;\nactor Read () ==> int Out :\n  action ==> \
                        Out:[io_read_number()] guard io_more() end\nend\n";
/// What hosts of a place have written to their error output.
const SAID: &str = "host.err";
/// And what one has written to its output.
const PRINTED: &str = "host.out";

/// A host with a socket in a place of its own.
pub struct Host {
    pub place: Place,
    pub child: Child,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers from 1 on, as many as `n`, written to --out; `Bad` divides by zero at 1000.
pub fn sources() -> Place {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Write.cal",
        "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  action In:[x] ==> do \
         io_write_number(x); end\nend\n",
    );
    place.write(
        "src/p/Fail.cal",
        "package p;\nactor Fail () int In ==> int Out :\n  action In:[x] ==> Out:[1000 / (1000 - x)] \
         end\nend\n",
    );
    let write = ("write", "p.Write", &[][..]);
    let few = network(
        &[("source", "p.Source", &[("n", "3")]), write],
        &[("source.Out", "write.In")],
    );
    place.write(TOP, &few);
    let many = network(
        &[("source", "p.Source", &[("n", "2000000000")]), write],
        &[("source.Out", "write.In")],
    );
    place.write("src/p/Many.xdf", &many.replace("\"Top\"", "\"Many\""));
    let bad = network(
        &[
            ("source", "p.Source", &[("n", "2000000000")]),
            ("fail", "p.Fail", &[]),
            write,
        ],
        &[("source.Out", "fail.In"), ("fail.Out", "write.In")],
    );
    place.write("src/p/Bad.xdf", &bad.replace("\"Top\"", "\"Bad\""));
    place
}

/// An actor with a first action that does not end.
pub const ENDLESS: &str = "package p;\nactor Endless () ==> :\n  int n := 1;\n  action ==> do while n > 0 do n := \
    if n = 7 then 1 else n + 1 end; end end\nend\n";

/// Compiles the C program `text` to `name`.so, which a host can load.
pub fn compiled(place: &Place, name: &str, text: &str) {
    let (from, to) = (format!("{name}.c"), format!("{name}.so"));
    place.write(&from, text);
    place
        .run(&["cc", "--plugin", "-O2", &from, "-o", &to])
        .succeeds();
}

/// `Rogue`: does what its parameter says when it has fired ten times, and writes numbers until then.
pub fn rogues() -> Place {
    let place = sources();
    place.write(
        "src/p/Rogue.cal",
        "package p;\nactor Rogue (int what) int In ==> int Out :\n  @native function harm(int x, int what) --> int \
         end\n  action In:[x] ==> Out:[if x = 10 then harm(x, what) else x end] end\nend\n",
    );
    place.write(
        "natives/harm.c",
        "#include <fcntl.h>\n#include <signal.h>\n#include <sys/wait.h>\n#include <stdint.h>\n\
         #include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         int32_t harm(int32_t x, int32_t what);\n\
         static void leaves(void) {\n  pid_t child = fork();\n  if (child) { waitpid(child, 0, 0); return; }\n  \
         setsid();\n  child = fork();\n  if (child) _exit(0);\n  child = getpid();\n  \
         int file = open(\"left\", O_WRONLY | O_CREAT | O_APPEND, 0600);\n  \
         if (write(file, &child, sizeof child) < 0) _exit(1);\n  for (;;) pause();\n}\n\
         int32_t harm(int32_t x, int32_t what) {\n  switch (what) {\n  case 0: abort();\n  case 1: _exit(3);\n  \
         case 2: raise(SIGKILL); break;\n  case 3: for (;;) pause();\n  \
         case 4: for (;;) { void *p = malloc(1 << 20); if (!p) abort(); memset(p, 1, 1 << 20); }\n  \
         case 5: exit(3);\n   case 6: sleep(4); abort();\n  case 7: leaves(); break;\n  \
         }\n  return x;\n}\n",
    );
    for what in 0..8 {
        let text = network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("rogue", "p.Rogue", &[("what", &what.to_string())]),
                ("write", "p.Write", &[]),
            ],
            &[("source.Out", "rogue.In"), ("rogue.Out", "write.In")],
        );
        let name = format!("Rogue{what}");
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    place
}

pub fn pipe(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}

/// A pipe of which both ends are open as long as this file is: there is no end of file, and opening either end does
/// not block.
pub fn held_pipe(place: &Place, name: &str) -> File {
    let both = File::options()
        .read(true)
        .write(true)
        .open(pipe(place, name));
    both.unwrap()
}

impl Host {
    pub fn begin() -> Host {
        Host::begin_in(sources())
    }

    pub fn begin_in(place: Place) -> Host {
        Host::begin_with(place, &[])
    }

    /// What it and its applications print is kept.
    pub fn begin_printing(place: Place, more: &[&str]) -> Host {
        let out = std::fs::File::create(place.path(PRINTED)).unwrap();
        Host::begin_to(place, env!("CARGO_BIN_EXE_levada"), more, out.into())
    }

    pub fn printed(&self) -> String {
        std::fs::read_to_string(self.place.path(PRINTED)).unwrap()
    }

    pub fn begin_with(place: Place, more: &[&str]) -> Host {
        Host::begin_as(place, env!("CARGO_BIN_EXE_levada"), more)
    }

    /// By another file of the command.
    pub fn begin_as(place: Place, program: &str, more: &[&str]) -> Host {
        Host::begin_to(place, program, more, Stdio::null())
    }

    fn begin_to(place: Place, program: &str, more: &[&str], out: Stdio) -> Host {
        let mut args = vec!["host", "--socket", "h.sock", "--state", "state"];
        args.extend(more);
        if !more.iter().any(|option| option.starts_with("--workers")) {
            args.push("--workers=2");
        }
        let usual = place.command(&args);
        let mut command = Command::new(program);
        let mut host = std::fs::File::options();
        host.create(true);
        command
            .args(&args)
            .current_dir(place.path(""))
            .envs(usual.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(host.append(true).open(place.path(SAID)).unwrap());
        let child = command.spawn().unwrap();
        Host::of(place, child)
    }

    /// One that has been begun, when it serves.
    pub fn of(place: Place, child: Child) -> Host {
        let mut host = Host { place, child };
        let start = Instant::now();
        while UnixStream::connect(host.place.path("h.sock")).is_err() {
            let ended = host.child.try_wait().unwrap();
            assert!(ended.is_none(), "the host does not start: {ended:?}");
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "the host has no socket"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        host
    }

    /// What all hosts of this place have written to their error output.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.place.path(SAID)).unwrap()
    }

    /// Waits until it has ended by itself.
    pub fn until_dead(&mut self) {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(300), "the host lives");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The next host in its place, which is told to end if it lives.
    pub fn again(mut self, more: &[&str]) -> Host {
        if self.child.try_wait().unwrap().is_none() {
            // SAFETY: the child has not been waited for.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        }
        self.child.wait().unwrap();
        let place = std::mem::replace(&mut self.place, Place::new(&[]));
        Host::begin_with(place, more)
    }

    pub fn run(&self, args: &[&str]) -> Run {
        let mut all = args.to_vec();
        all.extend(["--socket", "h.sock"]);
        self.place.run(&all)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.push("--json");
        self.run(&all).succeeds().json()
    }

    /// Loads one that runs until it is ended.
    pub fn many(&self, name: &str) {
        let args = ["load", "src/p/Many.xdf", "--name", name];
        self.run(&[&args[..], &["--out", "/dev/null"]].concat())
            .succeeds();
    }

    /// Loads one that fails, and waits until it has.
    pub fn bad(&self, name: &str) -> Value {
        let args = ["load", "src/p/Bad.xdf", "--name", name];
        self.run(&[&args[..], &["--out", "/dev/null"]].concat())
            .succeeds();
        self.until(name, |a| a["state"] == "failed")
    }

    /// Whether none of its threads wakes up in that time.
    pub fn sleeps(&self, long: Duration) -> bool {
        let before = self.wake_ups();
        std::thread::sleep(long);
        self.wake_ups() == before
    }

    /// How often threads of it have gone to sleep.
    fn wake_ups(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let status = threads.map(|t| std::fs::read_to_string(t.unwrap().path().join("status")));
        let slept = |status: String| {
            let mut lines = status.lines();
            let line = lines.find(|l| l.starts_with("voluntary_ctxt_switches:"));
            line.unwrap().split_whitespace().nth(1).unwrap().parse()
        };
        // A thread may end meanwhile.
        status.flatten().map(|s| slept(s).unwrap_or(0_u64)).sum()
    }

    /// What `list` says of an application; null if it does not know it.
    pub fn seen(&self, name: &str) -> Value {
        let all = self.json(&["list"]);
        let found = all.as_array().unwrap().iter().find(|a| a["name"] == name);
        found.cloned().unwrap_or_default()
    }

    pub fn until(&self, name: &str, good: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let seen = self.seen(name);
            if good(&seen) {
                return seen;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{seen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends bytes, and reads what comes until the host closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.place.path("h.sock")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // It may be refused before all has been sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    }

    pub fn post(&self, path: &str, body: &str) -> String {
        self.raw(
            format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    }

    pub fn get(&self, path: &str) -> String {
        self.raw(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
    }
}
