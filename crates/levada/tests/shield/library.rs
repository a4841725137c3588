// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `lvd_shield_*` of the C library with the real command: a program with a core of its own, one of its
//! threads, a core that is already shielded, and the end of either side.

use crate::common::shield::*;
use crate::common::{Place, skipped};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Does what it is told line by line, and says what came of it.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <levada/shield.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int other;

static void *sleeps(void *none) {
  other = (int)syscall(SYS_gettid);
  for (;;) pause();
  return none;
}

int main(int count, char **argv) {
  char line[64];
  lvd_shield *s = NULL;
  lvd_shield_report r;
  pthread_t thread;
  pthread_create(&thread, NULL, sleeps, NULL);
  while (!other) usleep(1000);
  printf("%d %d\n", (int)getpid(), other);
  for (;;) {
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 0;
    if (strncmp(line, "begin", 5) == 0 || strncmp(line, "thread", 6) == 0) {
      const lvd_shield_options o = {.cores = argv[1], .command = argv[2],
                                    .method = count > 3 ? argv[3] : NULL,
                                    .thread = *line == 't' ? other : 0, .timeout_ns = 60000000000};
      lvd_status status = lvd_shield_raise(&o, &s);
      printf("%s %s\n", lvd_status_name(status), lvd_shield_error_text());
    } else if (strncmp(line, "ask", 3) == 0) {
      lvd_status status = lvd_shield_status(s, &r);
      printf("%s %s %s %d\n", lvd_status_name(status), r.cores, r.method, r.took_ns > 0);
    } else {
      printf("%s\n", lvd_status_name(lvd_shield_lower(s)));
      s = NULL;
    }
  }
}
"#;

struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pid: i32,
    thread: i32,
}

impl Program {
    fn new(place: &Place, core: u32, by: Option<&str>) -> Program {
        let mut command = Command::new(place.path("program"));
        let mut child = command
            .args([&core.to_string(), LEVADA])
            .args(by)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program {
            child,
            input,
            output,
            pid: 0,
            thread: 0,
        };
        let ids = program.line();
        let (pid, thread) = ids.split_once(' ').unwrap();
        program.pid = pid.parse().unwrap();
        program.thread = thread.parse().unwrap();
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    fn does(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").unwrap();
        self.line()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn place() -> Place {
    let place = Place::new(&[("program.c", PROGRAM)]);
    place
        .run(&["cc", "-O1", "program.c", "-o", "program"])
        .succeeds();
    place
}

#[test]
fn a_program_takes_a_core_and_gives_it_back() {
    let Some(bench) = Bench::new("shields of the library") else {
        return;
    };
    let place = place();
    for way in bench.ways() {
        let mut program = Program::new(&place, bench.core, Some(way));
        assert_eq!(program.does("begin"), "LVD_OK", "{way}");
        let core = bench.core.to_string();
        assert_eq!(
            (mask(program.pid), mask(program.thread)),
            (core.clone(), core.clone()),
            "{way}"
        );
        assert_eq!(
            mask(std::process::id() as i32),
            bench.others(),
            "{way}: all else is away"
        );
        assert_eq!(program.does("ask"), format!("LVD_OK {core} {way} 1"));
        // Another is refused, and says why.
        let mut second = Program::new(&place, bench.core, Some(way));
        let refused = second.does("begin");
        assert!(
            refused.starts_with("LVD_E_SYSTEM ") && refused.len() > 20,
            "{refused}"
        );
        drop(second);
        assert_eq!(program.does("end"), "LVD_OK");
        assert_eq!(mask(program.pid), bench.all);
        bench.same();
    }
}

#[test]
fn one_thread_is_alone_and_the_rest_of_its_process_is_not() {
    let Some(bench) = Bench::new("a shield for a thread") else {
        return;
    };
    let place = place();
    for way in bench.ways() {
        let mut program = Program::new(&place, bench.core, Some(way));
        let said = program.does("thread");
        if way == "cgroup-v2-partition" {
            assert!(said.contains("whole processes"), "{said}");
            continue;
        }
        assert_eq!(said, "LVD_OK", "{way}");
        assert_eq!(
            (mask(program.thread), mask(program.pid)),
            (bench.core.to_string(), bench.others()),
            "{way}"
        );
        assert_eq!(program.does("end"), "LVD_OK");
        assert_eq!(mask(program.thread), bench.all);
        bench.same();
    }
}

#[test]
fn either_side_may_end_first() {
    let Some(bench) = Bench::new("ends of the library's shields") else {
        return;
    };
    let place = place();
    if bench.ways().is_empty() {
        skipped("ends of the library's shields", "no way works here");
        return;
    }
    // The program is killed.
    let mut program = Program::new(&place, bench.core, None);
    assert_eq!(program.does("begin"), "LVD_OK");
    drop(program);
    bench.same();
    // Another process releases it.
    let mut program = Program::new(&place, bench.core, None);
    assert_eq!(program.does("begin"), "LVD_OK");
    assert!(levada_shield(&["release"]).status.success());
    let mut said = String::new();
    until("the program is told", 10, || {
        said = program.does("ask");
        !said.starts_with("LVD_OK")
    });
    assert!(said.starts_with("LVD_E_EOF "), "{said}");
    assert_eq!(program.does("end"), "LVD_OK");
    bench.same();
    // The command is killed: its guard restores.
    assert_eq!(program.does("begin"), "LVD_OK");
    let holder = status()["shields"][0]["holder"].as_i64().unwrap() as i32;
    kill(holder, libc::SIGKILL);
    assert_eq!(program.does("end"), "LVD_E_PEER_GONE");
    until("the guard restores", 10, || {
        std::thread::sleep(Duration::from_millis(5));
        mask(program.pid) == bench.all
    });
    bench.same();
}
