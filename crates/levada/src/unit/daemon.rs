// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon of one unit. It holds the machine's memory and its doorbell, and serves commands over its socket (one
//! line of JSON in each direction). It has one thread, which blocks until a command connects or the doorbell rings.

use super::rundir::RunDir;
use super::{protocol, values};
use crate::cli::BootArgs;
use crate::common::output::{self, Failure, failure, failure_with};
use levada_sys::Status;
use levada_sys::machine::{Machine, State};
use levada_sys::served::{Flow, Served};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout for the loader: to start, to load an image, to stop.
const LOADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A program that has not stopped by then is ended with its machine.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which a machine with a running program is checked for being alive.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout for reading a command's request.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);

/// A command that waits for the program to end.
struct Waiting {
    stream: UnixStream,
    until: Option<Instant>,
}

/// The state of the unit.
enum Kept {
    /// A machine that runs programs to their end.
    Machine(Machine),
    /// A machine with a program that serves procedures; it stays until another program is loaded.
    Served(Arc<Served>),
    None,
}

/// A running procedure; a thread waits for it.
struct Calling {
    thread: JoinHandle<Value>,
    /// The thread closes the other end when it ends.
    over: UnixStream,
}

struct Daemon<'a> {
    name: &'a str,
    board: String,
    place: &'a RunDir,
    kept: Kept,
    calling: Option<Calling>,
    began: Instant,
    image: Option<PathBuf>,
    waiting: Option<Waiting>,
    /// A program was started and its end was not reported yet.
    open: bool,
    dead: Option<String>,
}

/// Started by `boot`: prints one line with the result.
pub fn serve(args: &BootArgs) -> Result<ExitCode, Failure> {
    output::keep_for_results()?;
    // If the reader of an output goes away, its call ends, and nothing else.
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let name = &args.unit.name;
    let place = RunDir::new(args.unit.at.dir.as_deref())?;
    let Some(held) = place.hold(name)? else {
        return failure_with(
            format!("there is a unit {name} already"),
            format!("levada unit stop {name}"),
        );
    };
    // Truncate the log.
    // SAFETY: no pointers.
    unsafe { libc::ftruncate(2, 0) };
    let done = begin(args, &place);
    let done = done.and_then(|(listener, mut daemon)| {
        output::line(&daemon.status().to_string())?;
        daemon.serve(&listener)
    });
    // The reply is sent only after the machine has ended and the name is free.
    place.give_back(name, held);
    answer(&done?, &json!({ "stopped": name }));
    Ok(ExitCode::SUCCESS)
}

fn begin<'a>(args: &'a BootArgs, place: &'a RunDir) -> Result<(UnixListener, Daemon<'a>), Failure> {
    let name = &args.unit.name;
    let board = args.board();
    place.end_machine(name);
    let socket = place.socket(name);
    let _ = std::fs::remove_file(&socket);
    let began = Instant::now();
    let machine = Machine::boot(&board, LOADER_TIMEOUT)?;
    place.note_machine(name, machine.process())?;
    let listener = UnixListener::bind(&socket)
        .map_err(|e| Failure::new(format!("cannot listen on {}: {e}", socket.display())))?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    let daemon = Daemon {
        name,
        board: board.clone(),
        place,
        kept: Kept::Machine(machine),
        calling: None,
        began,
        image: None,
        waiting: None,
        open: false,
        dead: None,
    };
    daemon.log(&format!(
        "booted {board}: process {}, its loader is ready",
        daemon.process()
    ));
    Ok((listener, daemon))
}

/// Waits until one of them can be read, or is closed.
fn wait(fds: &mut [libc::pollfd], time: Option<Duration>) -> io::Result<()> {
    let ms = time.map_or(-1, |t| t.as_millis().min(60_000) as i32 + 1);
    // SAFETY: as many as the slice has.
    match unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) } {
        0.. => Ok(()),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            e => Err(e),
        },
    }
}

fn readable(fd: Option<RawFd>) -> libc::pollfd {
    libc::pollfd {
        fd: fd.unwrap_or(-1), // negative descriptors are ignored by poll
        events: libc::POLLIN,
        revents: 0,
    }
}

fn refusal(what: &str, help: Option<&str>) -> Value {
    json!({ "refused": what, "help": help })
}

fn answer(mut stream: &UnixStream, value: &Value) {
    // Errors are ignored: a command that has disconnected needs no reply.
    let _ = writeln!(stream, "{value}");
}

impl Daemon<'_> {
    /// Writes to the log, which is standard error.
    fn log(&self, what: &str) {
        say!("{:10.3}  {what}", self.began.elapsed().as_secs_f64());
    }

    fn process(&self) -> i32 {
        match &self.kept {
            Kept::Machine(machine) => machine.process(),
            Kept::Served(served) => served.process(),
            Kept::None => 0,
        }
    }

    /// Sets the state and notes the machine's process, which has to be ended if this daemon is killed.
    fn set_state(&mut self, kept: Kept) {
        self.kept = kept;
        if let Err(e) = self.place.note_machine(self.name, self.process()) {
            self.log(&e.to_string());
        }
    }

    /// Boots a machine that waits for images, whatever the state was before.
    fn reboot(&mut self) -> Result<(), String> {
        self.kept = Kept::None; // first, since a board may allow only one machine
        match Machine::boot(&self.board, LOADER_TIMEOUT) {
            Ok(mut machine) => {
                // The image stays loaded for `run`.
                if let Some(image) = &self.image
                    && let Err(e) = machine.load(image)
                {
                    self.log(&e.to_string());
                }
                self.set_state(Kept::Machine(machine));
                self.log(&format!("rebooted: process {}", self.process()));
                Ok(())
            }
            Err(e) => {
                self.dead = Some(format!("it cannot be rebooted: {e}"));
                self.log(&e.to_string());
                Err(e.to_string())
            }
        }
    }

    /// Serves commands until one stops the unit; returns its stream.
    fn serve(&mut self, listener: &UnixListener) -> Result<UnixStream, Failure> {
        loop {
            let mut fds = [
                readable(Some(listener.as_raw_fd())),
                readable(match &self.kept {
                    Kept::Machine(machine) if self.dead.is_none() => Some(machine.bell()),
                    _ => None,
                }),
                readable(self.waiting.as_ref().map(|w| w.stream.as_raw_fd())),
                readable(self.calling.as_ref().map(|c| c.over.as_raw_fd())),
            ];
            let left = self.waiting.as_ref().and_then(|w| w.until);
            let left = left.map(|t| t.saturating_duration_since(Instant::now()));
            let time = if self.open {
                Some(left.map_or(LIVENESS_INTERVAL, |l| l.min(LIVENESS_INTERVAL)))
            } else {
                None
            };
            if let Err(e) = wait(&mut fds, time) {
                return failure(format!("cannot wait: {e}"));
            }
            self.look();
            if fds[3].revents != 0 {
                self.returned();
            }
            if let Some(waiting) = &self.waiting {
                // It has disconnected.
                if fds[2].revents != 0 {
                    self.cut("its command has disconnected");
                } else if waiting.until.is_some_and(|t| Instant::now() >= t) {
                    self.cut("its timeout has expired");
                }
            }
            if fds[0].revents != 0
                && let Ok((stream, _)) = listener.accept()
                && let Some(stops) = self.heed(stream)
            {
                return Ok(stops);
            }
        }
    }

    /// Handles events of the machine.
    fn look(&mut self) {
        if self.dead.is_some() {
            return;
        }
        let Kept::Machine(machine) = &mut self.kept else {
            return;
        };
        let state = machine.look(Duration::ZERO);
        let told = match state {
            State::Dead(why) => {
                self.log(&why);
                self.dead = Some(why.clone());
                refusal(
                    &format!("unit {}: {why}", self.name),
                    Some("stop and boot it again"),
                )
            }
            _ if !self.open => return,
            State::Runs | State::Waits => return,
            State::Serves => {
                let _ = machine.stop(LOADER_TIMEOUT);
                self.log(&format!("{SERVES}: stopped"));
                refusal(SERVES, Some(&call_help(self.name)))
            }
            State::Ended(status) => {
                self.log(&format!("the program has returned {status}"));
                json!({ "outcome": "ended", "status": status })
            }
            State::Failed(why) => {
                self.log(&why);
                json!({ "outcome": "failed", "why": why })
            }
        };
        self.open = false;
        if let Some(waiting) = self.waiting.take() {
            answer(&waiting.stream, &told);
        }
    }

    /// Ends the program that runs.
    fn cut(&mut self, why: &str) {
        self.log(&format!("{why}: the program is stopped"));
        self.open = false;
        // A waiting command has a timeout, and a program that masks interrupts does not react to a stop.
        if let Some(waiting) = self.waiting.take() {
            answer(
                &waiting.stream,
                &json!({ "outcome": "stopped", "why": why }),
            );
        }
        if let Kept::Machine(machine) = &mut self.kept {
            let Err(e) = machine.stop(STOP_TIMEOUT) else {
                return;
            };
            self.log(&format!("{e}: the machine is ended"));
        } else {
            self.end_call();
        }
        let _ = self.reboot();
    }

    fn status(&self) -> Value {
        let gone = match &self.kept {
            Kept::Served(served) if served.state() != Status::OK => Some("the machine has ended"),
            _ => None,
        };
        let why = self.dead.as_deref().or(gone);
        let state = match (why, &self.kept) {
            (Some(_), _) => "dead",
            (None, _) if self.open => "running",
            (None, Kept::Served(_)) => "serving",
            (None, _) => "idle",
        };
        json!({
            "name": self.name, "board": self.board, "state": state, "why": why,
            "image": self.image, "agent": std::process::id(), "machine": self.process(),
        })
    }

    /// Executes a command; returns the stream if it is the command that stops the unit.
    fn heed(&mut self, stream: UnixStream) -> Option<UnixStream> {
        let _ = stream.set_read_timeout(Some(COMMAND_TIMEOUT));
        let _ = stream.set_write_timeout(Some(COMMAND_TIMEOUT));
        let Ok((line, files)) = protocol::receive(&stream) else {
            return None;
        };
        let Ok(asked) = serde_json::from_str::<Value>(&line) else {
            return None;
        };
        match asked["verb"].as_str() {
            Some("status") => answer(&stream, &self.status()),
            Some("load") => {
                let file = PathBuf::from(asked["image"].as_str().unwrap_or_default());
                answer(&stream, &self.load(&file));
            }
            Some(verb @ ("run" | "call")) => {
                let begun = match verb {
                    "run" => self.run(),
                    _ => self.call(&asked, files),
                };
                match begun {
                    Ok(()) => {
                        let until = until(&asked["timeout"]);
                        self.waiting = Some(Waiting { stream, until });
                        self.open = true;
                        self.look(); // it may have ended, and no further doorbell comes
                    }
                    Err(told) => answer(&stream, &told),
                }
            }
            Some("stop") => {
                self.log("stopped");
                self.end_call();
                if let Some(waiting) = self.waiting.take() {
                    answer(
                        &waiting.stream,
                        &json!({ "outcome": "stopped", "why": "the unit is stopped" }),
                    );
                }
                return Some(stream);
            }
            _ => answer(
                &stream,
                &refusal("the unit's agent is of another version", None),
            ),
        }
        None
    }

    fn load(&mut self, file: &Path) -> Value {
        if let Some(told) = self.is_dead() {
            return told;
        }
        if self.calling.is_some() || self.open {
            let what = match self.calling {
                Some(_) => "a procedure runs there",
                None => "a program runs there",
            };
            let help = format!("it ends by itself, or by: levada unit stop {}", self.name);
            return refusal(what, Some(&help));
        }
        if !matches!(self.kept, Kept::Machine(_))
            && let Err(why) = self.reboot()
        {
            return refusal(&why, None);
        }
        let Kept::Machine(machine) = &mut self.kept else {
            return refusal("there is no machine", None);
        };
        match machine.load(file) {
            Ok(()) => {
                self.log(&format!("loaded {}", file.display()));
                self.image = Some(file.to_path_buf());
                json!({ "loaded": file })
            }
            Err(e) => {
                self.log(&format!("not loaded {}: {e}", file.display()));
                refusal(&e.to_string(), None)
            }
        }
    }

    fn is_dead(&self) -> Option<Value> {
        let why = self.dead.as_ref()?;
        let help = format!("levada unit stop {}, and boot it again", self.name);
        Some(refusal(&format!("unit {}: {why}", self.name), Some(&help)))
    }

    /// The image that can be run or called.
    fn ready(&self) -> Result<PathBuf, Value> {
        if let Some(told) = self.is_dead() {
            return Err(told);
        }
        self.image.clone().ok_or_else(|| {
            let help = format!("levada unit load {} IMAGE", self.name);
            refusal("no image has been loaded", Some(&help))
        })
    }

    fn run(&mut self) -> Result<(), Value> {
        let image = self.ready()?;
        let Kept::Machine(machine) = &mut self.kept else {
            return Err(refusal(SERVES, Some(&call_help(self.name))));
        };
        let begun = machine.run(LOADER_TIMEOUT);
        self.log(&match &begun {
            Ok(()) => format!("runs {}", image.display()),
            Err(e) => format!("does not run {}: {e}", image.display()),
        });
        begun.map_err(|e| refusal(&format!("unit {}: {e}", self.name), None))
    }

    /// The machine that serves, with the image in it.
    fn serving(&mut self, image: &Path) -> Result<Arc<Served>, Value> {
        match &self.kept {
            Kept::Served(served) if served.state() == Status::OK => return Ok(served.clone()),
            _ => self.kept = Kept::None,
        }
        match Served::load(&format!("{}:{}", self.board, image.display())) {
            Ok(served) => {
                let served = Arc::new(served);
                self.set_state(Kept::Served(served.clone()));
                self.log(&format!(
                    "serves {}: process {}",
                    image.display(),
                    self.process()
                ));
                Ok(served)
            }
            Err(e) => {
                self.log(&format!("does not serve {}: {e}", image.display()));
                let _ = self.reboot();
                let help = format!(
                    "a program that is run to its end: levada unit run {}",
                    self.name
                );
                Err(refusal(&format!("unit {}: {e}", self.name), Some(&help)))
            }
        }
    }

    fn call(&mut self, asked: &Value, files: Vec<File>) -> Result<(), Value> {
        let image = self.ready()?;
        if self.open {
            return Err(refusal("a program runs there already", None));
        }
        let flows = asked["flows"].as_array().into_iter().flatten();
        let flows: Vec<Flow> = flows.zip(files).map(flow_of).collect();
        let argument = asked["argument"].as_str().and_then(values::unhex);
        let argument = argument.unwrap_or_default();
        let procedure = asked["procedure"].as_str().unwrap_or_default().to_string();
        let served = self.serving(&image)?;
        self.log(&format!("calls {procedure}"));
        let pair = UnixStream::pair().map_err(|e| refusal(&e.to_string(), None))?;
        let (over, ends) = pair;
        let thread = std::thread::spawn(move || {
            let _ends = ends;
            match served.call(&procedure, &argument, &flows) {
                Ok((result, elements)) => json!({
                    "outcome": "returned", "result": values::hex(&result), "elements": elements,
                }),
                Err(e) => json!({ "outcome": "failed", "why": e.to_string() }),
            }
        });
        self.calling = Some(Calling { thread, over });
        Ok(())
    }

    /// Handles the end of a procedure.
    fn returned(&mut self) {
        let Some(calling) = self.calling.take() else {
            return;
        };
        let told = calling.thread.join();
        let told =
            told.unwrap_or_else(|_| json!({ "outcome": "failed", "why": "its thread is gone" }));
        match told["why"].as_str() {
            Some(why) => self.log(why),
            None => self.log("the procedure has returned"),
        }
        if matches!(&self.kept, Kept::Served(served) if served.state() != Status::OK) {
            let _ = self.reboot();
        }
        self.open = false;
        if let Some(waiting) = self.waiting.take() {
            answer(&waiting.stream, &told);
        }
    }

    /// Ends a call by ending its machine, since a procedure need not react to anything else.
    fn end_call(&mut self) {
        if let Some(calling) = self.calling.take() {
            // SAFETY: no pointers; it is a child that has not been waited for while the unit is there.
            unsafe { libc::kill(self.process(), libc::SIGKILL) };
            let _ = calling.thread.join();
        }
    }
}

const SERVES: &str = "the program serves procedures, and does not end by itself";

fn call_help(name: &str) -> String {
    format!("call one: levada unit run {name} PROCEDURE")
}

/// The deadline of a command. `None`: no timeout, also if the given value is invalid or too large.
fn until(timeout: &Value) -> Option<Instant> {
    let timeout = Duration::try_from_secs_f64(timeout.as_f64()?).ok()?;
    Instant::now().checked_add(timeout)
}

fn flow_of((flow, file): (&Value, File)) -> Flow {
    Flow {
        name: flow["stream"].as_str().unwrap_or_default().to_string(),
        file,
        size: flow["size"].as_u64().unwrap_or(0) as u32,
        input: flow["input"] == true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No input on its socket ends the daemon, since this would end the machine.
    #[test]
    fn invalid_time_is_no_limit() {
        let now = Instant::now();
        assert!(until(&json!(2.5)).is_some_and(|at| at > now));
        for wrong in [
            json!(null),
            json!("2"),
            json!(-1.0),
            json!(1e19),
            json!(1e300),
        ] {
            assert!(until(&wrong).is_none(), "{wrong}");
        }
        assert!(until(&json!(0)).is_some_and(|at| at >= now));
    }
}
