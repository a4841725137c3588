// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada unit`: processors behind a window, by hand.

mod keeper;
mod place;
mod values;

use crate::cli::{BootArgs, UnitArgs, UnitCommand, UnitLoadArgs, UnitRunArgs, UnitsArgs};
use crate::output::{self, Failure, failure, failure_with};
use place::Place;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

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
        UnitCommand::Keep(args) => match keeper::keep(args) {
            // For whoever boots, who says it.
            Err(failure) => {
                let told = json!({ "refused": failure.what, "help": failure.help });
                output::line(&told.to_string())?;
                Ok(ExitCode::FAILURE)
            }
            done => done,
        },
    }
}

/// Starts the keeper, and waits until it says how that went.
fn boot(args: &BootArgs) -> Result<ExitCode, Failure> {
    let (name, at) = (&args.unit.name, &args.unit.at);
    let place = Place::new(at.dir.as_deref())?;
    place.make()?;
    // Also of one whose keeper was killed: with what it was holding.
    match place.hold(name)? {
        None => {
            return failure_with(
                format!("there is a unit {name} already"),
                format!("levada unit stop {name}"),
            );
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
    let mut keeper = Command::new("/proc/self/exe");
    keeper
        .args(["unit", "keep", name, &args.option()])
        .arg("--dir")
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    // SAFETY: the call may be made between fork and exec.
    unsafe {
        keeper.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    };
    let mut keeper = keeper.spawn()?;
    let mut line = String::new();
    BufReader::new(keeper.stdout.take().expect("it is piped")).read_line(&mut line)?;
    let told = judge(name, &line)?;
    match at.json {
        true => output::line(&told.to_string())?,
        false => eprintln!("{name} is booted ({})", text(&told["board"])),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a keeper said, unless it refuses.
fn judge(name: &str, line: &str) -> Result<Value, Failure> {
    let told: Value = match serde_json::from_str(line) {
        Ok(told) => told,
        Err(_) => {
            return failure_with(
                format!("the keeper of unit {name} has ended before it answered"),
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
    /// Its keeper was killed. What it has left is taken away.
    Left,
}

fn find(place: &Place, name: &str) -> Result<Found, Failure> {
    if !place.has(name) {
        return failure_with(
            format!("there is no unit {name}"),
            "levada unit list shows those that there are, levada unit boot starts one",
        );
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

fn killed(name: &str) -> Failure {
    Failure::new(format!(
        "the keeper of unit {name} was killed, and its machine with it"
    ))
    .help("boot it again")
}

fn ask(name: &str, mut stream: UnixStream, what: &Value) -> Result<Value, Failure> {
    // Where it has ended meanwhile, there is no answer.
    let _ = writeln!(stream, "{what}");
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    judge(name, &line)
}

fn ask_unit(unit: &UnitArgs, what: &Value) -> Result<Value, Failure> {
    let place = Place::new(unit.at.dir.as_deref())?;
    match find(&place, &unit.name)? {
        Found::Answers(stream) => ask(&unit.name, stream, what),
        Found::Left => Err(killed(&unit.name)),
    }
}

fn list(args: &UnitsArgs) -> Result<ExitCode, Failure> {
    let place = Place::new(args.dir.as_deref())?;
    let mut units = Vec::new();
    for name in place.names()? {
        match find(&place, &name) {
            Ok(Found::Answers(stream)) => {
                // One that ends meanwhile is none.
                units.extend(ask(&name, stream, &json!({ "verb": "about" })));
            }
            Ok(Found::Left) => eprintln!("{}", killed(&name).what),
            Err(_) => units.push(json!({ "name": name, "state": "begins or ends" })),
        }
    }
    if args.json {
        output::line(&json!({ "units": units }).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if units.is_empty() {
        eprintln!("no units");
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
    let told = ask_unit(&args.unit, &json!({ "verb": "load", "image": image }))?;
    match args.unit.at.json {
        true => output::line(&told.to_string())?,
        false => eprintln!("{} has {}", args.unit.name, text(&told["loaded"])),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the keeper, another process of this user, finds it.
fn path_of(file: &str, input: bool) -> Result<PathBuf, Failure> {
    match file {
        "-" => Ok(format!("/proc/{}/fd/{}", std::process::id(), u8::from(!input)).into()),
        _ => Ok(std::path::absolute(file)?),
    }
}

fn flows(specs: &[String], input: bool) -> Result<Vec<Value>, Failure> {
    let flow = |spec: &String| {
        let (name, size, file) = values::flow(spec)?;
        let file = path_of(&file, input)?;
        Ok(json!({ "stream": name, "size": size, "file": file, "input": input }))
    };
    specs.iter().map(flow).collect()
}

/// One procedure of a program that serves.
fn call(args: &UnitRunArgs, procedure: &str) -> Result<ExitCode, Failure> {
    values::result(&args.result, &[])?;
    let mut flows_of_it = flows(&args.inputs, true)?;
    flows_of_it.extend(flows(&args.outputs, false)?);
    let to_output = args.outputs.iter().any(|o| o.ends_with("=-"));
    let what = json!({
        "verb": "call", "procedure": procedure, "within": args.within, "flows": flows_of_it,
        "argument": values::hex(&values::argument(&args.arguments)?),
    });
    let told = ask_unit(&args.unit, &what)?;
    if told["outcome"] != "returned" {
        let why = text(&told["why"]);
        // A fault is told with the procedure that it happened in.
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
    // The output may be a stream's.
    match to_output {
        true if line.is_empty() => {}
        true => eprintln!("{line}"),
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
    let told = ask_unit(&args.unit, &json!({ "verb": "run", "within": args.within }));
    let told = told.map_err(Failure::of_ours)?;
    if told["outcome"] != "ended" {
        let why = text(&told["why"]);
        return Err(Failure::new(format!("unit {name}: {why}")).of_ours());
    }
    let status = told["status"].as_u64().unwrap_or(0);
    match args.unit.at.json {
        true => output::line(&told.to_string())?,
        false => output::line(&format!("returned {status}"))?,
    }
    Ok(ExitCode::from((status & 0xff) as u8))
}

fn log(unit: &UnitArgs) -> Result<ExitCode, Failure> {
    let place = Place::new(unit.at.dir.as_deref())?;
    let mut bytes = Vec::new();
    match std::fs::File::open(place.log(&unit.name)) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(_) => return failure(format!("there is no unit {}, and was none", unit.name)),
    };
    let all = String::from_utf8_lossy(&bytes);
    match unit.at.json {
        true => output::line(&json!({ "log": all.lines().collect::<Vec<_>>() }).to_string())?,
        false => output::line(all.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn stop(unit: &UnitArgs) -> Result<ExitCode, Failure> {
    let place = Place::new(unit.at.dir.as_deref())?;
    let name = &unit.name;
    match find(&place, name)? {
        Found::Answers(stream) => {
            ask(name, stream, &json!({ "verb": "stop" }))?;
        }
        Found::Left => eprintln!("{}", killed(name).what),
    }
    if unit.at.json {
        output::line(&json!({ "stopped": name }).to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
