// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada unit`: loads and runs code on processors behind a memory window, by hand.

mod daemon;
mod protocol;
mod rundir;
mod values;

use crate::cli::{BootArgs, UnitArgs, UnitCommand, UnitLoadArgs, UnitRunArgs, UnitsArgs};
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::std_streams;
use levada_host::Kind;
use rundir::RunDir;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

impl From<levada_sys::Error> for Failure {
    fn from(e: levada_sys::Error) -> Failure {
        Failure::new(e.to_string())
    }
}

pub fn unit(command: &UnitCommand) -> Result<ExitCode, Failure> {
    match command {
        UnitCommand::List(args) => list(args),
        UnitCommand::Boot(args) => boot(args),
        UnitCommand::Load(args) => load(args),
        UnitCommand::Run(args) => run(args),
        UnitCommand::Log(unit) => log(unit),
        UnitCommand::Stop(unit) => stop(unit),
        UnitCommand::Serve(args) => match daemon::serve(args) {
            // The process that boots prints the failure.
            Err(failure) => {
                let told = json!({ "refused": failure.what, "help": failure.help });
                output::line(&told.to_string())?;
                Ok(ExitCode::FAILURE)
            }
            done => done,
        },
    }
}

/// Starts the daemon, and waits for its result.
fn boot(args: &BootArgs) -> Result<ExitCode, Failure> {
    let (name, at) = (&args.unit.name, &args.unit.at);
    let place = RunDir::new(at.dir.as_deref())?;
    place.make()?;
    // Also the log of a unit after its daemon was killed.
    match place.hold(name)? {
        None => {
            return Err(Failure::new(format!("there is a unit {name} already"))
                .kind(Kind::Conflict)
                .help(format!("levada unit stop {name}")));
        }
        Some(held) => {
            place.end_machine(name);
            place.give_back(name, held);
        }
    }
    let path = place.log(name);
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
    let dir = std::path::absolute(place.dir())?;
    let mut daemon = Command::new("/proc/self/exe");
    daemon
        .args(["unit", "serve", name, &args.option()])
        .arg("--dir")
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    // SAFETY: the call may be made between fork and exec.
    unsafe {
        daemon.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    };
    let mut daemon = daemon.spawn()?;
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().expect("it is piped")).read_line(&mut line)?;
    let told = judge(name, &line)?;
    if at.json {
        output::line(&told.to_string())?
    } else {
        say!("{name} is booted ({})", text(&told["board"]))
    }
    Ok(ExitCode::SUCCESS)
}

/// The daemon's reply, unless it is an error.
fn judge(name: &str, line: &str) -> Result<Value, Failure> {
    let told: Value = match serde_json::from_str(line) {
        Ok(told) => told,
        Err(_) => {
            return failure_with(
                format!("the agent of unit {name} has ended before it answered"),
                format!("levada unit log {name}"),
            );
        }
    };
    match told["refused"].as_str() {
        None => Ok(told),
        Some(what) => Err(Failure {
            help: told["help"].as_str().map(String::from),
            ..Failure::new(what)
        }),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), String::from)
}

enum Found {
    Answers(UnixStream),
    /// Its daemon was killed. Its remains are removed.
    Left,
}

fn find(place: &RunDir, name: &str) -> Result<Found, Failure> {
    if !place.has(name) {
        return Err(Failure::new(format!("there is no unit {name}"))
            .kind(Kind::Unknown)
            .help("levada unit list shows those that there are, levada unit boot starts one"));
    }
    if let Ok(stream) = UnixStream::connect(place.socket(name)) {
        return Ok(Found::Answers(stream));
    }
    match place.hold(name)? {
        None => failure(format!(
            "unit {name} is just being booted, or stopped: try again"
        )),
        Some(held) => {
            place.end_machine(name);
            place.give_back(name, held);
            Ok(Found::Left)
        }
    }
}

/// Timeouts for the daemon's reply: to a status request, to a stop, and to a load, which may have to boot first.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Kills a daemon that does not respond, and its machine with it.
fn end_daemon(place: &RunDir, name: &str, stream: &UnixStream) -> Result<(), Failure> {
    let daemon = rustix::net::sockopt::socket_peercred(stream).map_err(io::Error::from)?;
    let _ = rustix::process::kill_process(daemon.pid, rustix::process::Signal::KILL);
    // The lock is released when it has ended.
    for _ in 0..500 {
        if let Some(held) = place.hold(name)? {
            place.end_machine(name);
            place.give_back(name, held);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    failure(format!("the agent of unit {name} cannot be ended"))
}

fn killed(name: &str) -> Failure {
    Failure::new(format!(
        "the agent of unit {name} was killed, and its machine with it"
    ))
    .help("boot it again")
}

/// Sends a request and returns the reply; `None`: without a timeout.
fn ask(
    name: &str,
    stream: &UnixStream,
    what: &Value,
    files: &[File],
    timeout: Option<Duration>,
) -> Result<Value, Failure> {
    // A stopped process will not reply.
    if let Some(process) = levada_host::peer(stream).filter(|p| levada_host::is_stopped(*p)) {
        return Err(Failure::new(format!(
            "the agent of unit {name} does not answer: its process {process} is stopped"
        ))
        .kind(Kind::Timeout)
        .help(format!(
            "kill -CONT {process} lets it go on; levada unit stop {name} ends it all the same"
        )));
    }
    let timed = stream
        .set_read_timeout(timeout)
        .and(stream.set_write_timeout(timeout));
    timed.map_err(|e| Failure::new(e.to_string()))?;
    // If it has ended meanwhile, there is no reply.
    let asked = protocol::send(stream, what, files);
    let answer = asked.and_then(|()| protocol::receive(stream));
    match answer {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(Failure::new(format!(
            "the agent of unit {name} does not answer"
        ))
        .kind(Kind::Timeout)
        .help(format!("levada unit stop {name} ends it all the same"))),
        Err(e) if e.kind() == io::ErrorKind::Other => failure(e.to_string()),
        answer => judge(name, &answer.unwrap_or_default().0),
    }
}

fn ask_unit(
    unit: &UnitArgs,
    what: &Value,
    files: &[File],
    timeout: Option<Duration>,
) -> Result<Value, Failure> {
    let place = RunDir::new(unit.at.dir.as_deref())?;
    match find(&place, &unit.name)? {
        Found::Answers(stream) => ask(&unit.name, &stream, what, files, timeout),
        Found::Left => Err(killed(&unit.name)),
    }
}

fn list(args: &UnitsArgs) -> Result<ExitCode, Failure> {
    let place = RunDir::new(args.dir.as_deref())?;
    let mut units = Vec::new();
    for name in place.names()? {
        match find(&place, &name) {
            Ok(Found::Answers(stream)) => {
                // Units that end meanwhile are omitted.
                let status = json!({ "verb": "status" });
                match ask(&name, &stream, &status, &[], Some(STATUS_TIMEOUT)) {
                    Ok(told) => units.push(told),
                    Err(e) if e.help.is_some() => {
                        units.push(json!({ "name": name, "state": "does not answer" }));
                    }
                    Err(_) => {}
                }
            }
            Ok(Found::Left) => say!("{}", killed(&name).what),
            Err(_) => units.push(json!({ "name": name, "state": "begins or ends" })),
        }
    }
    if args.json {
        output::line(&json!({ "units": units }).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if units.is_empty() {
        say!("no units");
    }
    for u in units {
        let image = u["image"].as_str().unwrap_or("no image");
        let why = u["why"]
            .as_str()
            .map(|w| format!(": {w}"))
            .unwrap_or_default();
        let board = u["board"].as_str().unwrap_or("-");
        output::line(&format!(
            "{}  {board}  {}{why}  {image}",
            text(&u["name"]),
            text(&u["state"])
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn load(args: &UnitLoadArgs) -> Result<ExitCode, Failure> {
    let image = std::path::absolute(&args.image)?;
    let told = ask_unit(
        &args.unit,
        &json!({ "verb": "load", "image": image }),
        &[],
        Some(LOAD_TIMEOUT),
    )?;
    if args.unit.at.json {
        output::line(&told.to_string())?
    } else {
        say!("{} has {}", args.unit.name, text(&told["loaded"]))
    }
    Ok(ExitCode::SUCCESS)
}

fn opened(file: &str, input: bool) -> Result<File, Failure> {
    let done = match (file, input) {
        ("-", true) => std_streams::input()
            .and_then(|input| input.as_fd().try_clone_to_owned())
            .map(File::from),
        ("-", false) => std::io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map(File::from),
        (_, true) => File::open(file),
        (_, false) => File::create(file),
    };
    done.map_err(|e| Failure::new(format!("{file}: {e}")))
}

/// The descriptions of the streams, and their files.
fn flows(specs: &[String], input: bool) -> Result<Vec<(Value, File)>, Failure> {
    let flow = |spec: &String| {
        let (name, size, file) = values::flow(spec)?;
        let flow = json!({ "stream": name, "size": size, "input": input });
        Ok((flow, opened(&file, input)?))
    };
    specs.iter().map(flow).collect()
}

/// One procedure of a program that serves.
fn call(args: &UnitRunArgs, procedure: &str) -> Result<ExitCode, Failure> {
    values::result(&args.result, &[])?;
    let argument = values::hex(&values::argument(&args.arguments)?);
    // Checked first, since opening an output truncates it.
    let place = RunDir::new(args.unit.at.dir.as_deref())?;
    if let Found::Left = find(&place, &args.unit.name)? {
        return Err(killed(&args.unit.name));
    }
    let mut all = flows(&args.inputs, true)?;
    all.extend(flows(&args.outputs, false)?);
    let (flows, files): (Vec<Value>, Vec<File>) = all.into_iter().unzip();
    let to_output = args.outputs.iter().any(|o| o.ends_with("=-"));
    let what = json!({
        "verb": "call", "procedure": procedure, "timeout": args.timeout, "flows": flows,
        "argument": argument,
    });
    let told = ask_unit(&args.unit, &what, &files, None)?;
    if told["outcome"] != "returned" {
        let why = text(&told["why"]);
        // The text of a fault begins with the procedure's name.
        let why = why.strip_prefix(&format!("{procedure}: ")).unwrap_or(&why);
        return failure(format!("unit {}: {procedure}: {why}", args.unit.name));
    }
    let bytes = values::unhex(told["result"].as_str().unwrap_or_default()).unwrap_or_default();
    let result = values::result(&args.result, &bytes)?;
    let line = match &result {
        _ if args.unit.at.json => {
            json!({ "outcome": "returned", "result": result, "elements": told["elements"] })
                .to_string()
        }
        Value::Array(all) => all
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        other => text(other),
    };
    // Standard output may be used by a stream.
    match to_output {
        true if line.is_empty() => {}
        true => say!("{line}"),
        false if line.is_empty() => output::line("returned")?,
        false => output::line(&line)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run(args: &UnitRunArgs) -> Result<ExitCode, Failure> {
    if let Some(procedure) = &args.procedure {
        return call(args, procedure);
    }
    let name = &args.unit.name;
    let told = ask_unit(
        &args.unit,
        &json!({ "verb": "run", "timeout": args.timeout }),
        &[],
        None,
    );
    let told = told.map_err(Failure::of_ours)?;
    if told["outcome"] != "ended" {
        let why = text(&told["why"]);
        return Err(Failure::new(format!("unit {name}: {why}")).of_ours());
    }
    let status = told["status"].as_u64().unwrap_or(0);
    if args.unit.at.json {
        output::line(&told.to_string())?
    } else {
        output::line(&format!("returned {status}"))?
    }
    Ok(ExitCode::from((status & 0xff) as u8))
}

fn log(unit: &UnitArgs) -> Result<ExitCode, Failure> {
    let place = RunDir::new(unit.at.dir.as_deref())?;
    let mut bytes = Vec::new();
    match std::fs::File::open(place.log(&unit.name)) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(_) => {
            let what = format!("there is no unit {}, and was none", unit.name);
            return Err(Failure::new(what).kind(Kind::Unknown));
        }
    };
    let all = String::from_utf8_lossy(&bytes);
    if unit.at.json {
        output::line(&json!({ "log": all.lines().collect::<Vec<_>>() }).to_string())?
    } else {
        output::line(all.trim_end())?
    }
    Ok(ExitCode::SUCCESS)
}

fn stop(unit: &UnitArgs) -> Result<ExitCode, Failure> {
    let place = RunDir::new(unit.at.dir.as_deref())?;
    let name = &unit.name;
    match find(&place, name)? {
        Found::Answers(stream) => {
            let told = ask(
                name,
                &stream,
                &json!({ "verb": "stop" }),
                &[],
                Some(STOP_TIMEOUT),
            );
            match told {
                Err(e) if e.help.is_some() => end_daemon(&place, name, &stream)?,
                told => drop(told?),
            }
        }
        Found::Left => say!("{}", killed(name).what),
    }
    if unit.at.json {
        output::line(&json!({ "stopped": name }).to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
