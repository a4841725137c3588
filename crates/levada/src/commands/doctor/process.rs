// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada doctor --pid`: shows what the workers and fibers of a running process do. The runtime has no listener
//! for this, so that it costs nothing: gdb stops the process, reads its state with the commands of
//! runtime/gdb/levada.py, and lets it continue.

use super::install_line;
use crate::common::output::{self, Failure, failure_with};
use std::io::{ErrorKind, Write};
use std::process::{Command, ExitCode, Stdio};

const COMMANDS: &str = include_str!("../../../../../runtime/gdb/levada.py");
/// Marks the output of our commands; what gdb prints before is ignored.
const MARK: &str = "@levada";

pub fn look(pid: u32) -> Result<ExitCode, Failure> {
    let said = ask_gdb(pid)?;
    let ours = said.out.split_once(MARK).map_or("", |(_, ours)| ours);
    let lines: Vec<&str> = ours
        .lines()
        .skip(1)
        .filter(|l| !l.starts_with("[Inferior ") && !l.starts_with("Detaching from "))
        .collect();
    if !lines.iter().any(|l| l.starts_with("worker")) {
        return refused(pid, &said);
    }
    for line in lines {
        output::line(line)?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Said {
    out: String,
    err: String,
}

fn ask_gdb(pid: u32) -> Result<Said, Failure> {
    let mark = format!("echo {MARK}\\n");
    let gdb = Command::new("gdb")
        .args(["-batch", "-nx", "-p", &pid.to_string()])
        .args([
            "-ex",
            "python import sys; exec(sys.stdin.read(), globals())",
        ])
        .args(["-ex", &mark, "-ex", "levada workers"])
        .args(["-ex", "echo \\n", "-ex", "levada fibers"])
        .env("DEBUGINFOD_URLS", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut gdb = match gdb {
        Ok(gdb) => gdb,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            return failure_with(
                "gdb, which looks into the process, is not installed",
                install_line("gdb"),
            );
        }
        Err(why) => return Err(why.into()),
    };
    // gdb may exit before it has read everything.
    let written = gdb
        .stdin
        .take()
        .map(|mut to| to.write_all(COMMANDS.as_bytes()));
    let output = gdb.wait_with_output()?;
    let said = Said {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    match written {
        Some(Err(why)) if why.kind() != ErrorKind::BrokenPipe => Err(why.into()),
        _ => Ok(said),
    }
}

fn refused(pid: u32, said: &Said) -> Result<ExitCode, Failure> {
    let all = format!("{}{}", said.out, said.err);
    if all.contains("No such process") {
        return failure_with(
            format!("there is no process {pid}"),
            "`pgrep -f NAME` finds a program's number",
        );
    }
    if all.contains("is a zombie") {
        return failure_with(
            format!("process {pid} has ended, and its parent has not taken note of it"),
            "nothing of it is left to look into",
        );
    }
    if let Some((_, by)) = all.split_once("already traced by process ") {
        let by: String = by.chars().take_while(char::is_ascii_digit).collect();
        return failure_with(
            format!("process {pid} is being debugged by process {by}"),
            "one debugger at a time: end that one, or `source levada.py` there",
        );
    }
    if all.contains("not permitted") || all.contains("Could not attach") {
        return failure_with(
            format!("the system does not let you look into process {pid}"),
            "it must be yours, and kernel.yama.ptrace_scope 0; or be root (in a container: \
             --cap-add=SYS_PTRACE)",
        );
    }
    if all.contains("is a worker of Levada's") || all.contains("No symbol") {
        return failure_with(
            format!("process {pid} has no workers of Levada's"),
            "a library without debug information (stripped) hides them, too",
        );
    }
    let last = said.err.lines().last().unwrap_or("gdb said nothing");
    failure_with(
        format!("gdb could not look into process {pid}: {last}"),
        "`gdb -p PID` says more",
    )
}
