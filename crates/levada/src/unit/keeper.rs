// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process that keeps a unit: it has the machine's memory and its bell, and does what commands ask
//! it for over its socket, a line of JSON each way. One thread, which sleeps until somebody calls or the
//! machine rings.

use super::place::Place;
use crate::cli::BootArgs;
use crate::output::{self, Failure, failure, failure_with};
use levada_sys::machine::{Machine, State};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// For what the loader does by itself: to begin, to take an image, to heed a stop.
const LOADER: Duration = Duration::from_secs(10);
/// A machine whose program runs is asked so often whether it is there.
const LOOK: Duration = Duration::from_millis(500);
/// A command says what it wants at once.
const ASK: Duration = Duration::from_secs(2);

/// Who waits for the program to end.
struct Waiting {
    stream: UnixStream,
    until: Option<Instant>,
}

struct Keeper<'a> {
    name: &'a str,
    board: &'static str,
    machine: Machine,
    began: Instant,
    image: Option<PathBuf>,
    waiting: Option<Waiting>,
    /// A program was begun, and its end has not been told.
    open: bool,
    dead: Option<String>,
}

/// Begins as the other process of `boot`: says on its output how that went, in one line.
pub fn keep(args: &BootArgs) -> Result<ExitCode, Failure> {
    output::keep_for_results()?;
    let name = &args.unit.name;
    let place = Place::new(args.unit.at.dir.as_deref())?;
    let Some(held) = place.hold(name)? else {
        return failure_with(
            format!("there is a unit {name} already"),
            format!("levada unit stop {name}"),
        );
    };
    // The log begins anew.
    // SAFETY: no pointers.
    unsafe { libc::ftruncate(2, 0) };
    let done = begin(args, &place);
    let done = done.and_then(|(listener, mut keeper)| {
        output::line(&keeper.about().to_string())?;
        keeper.serve(&listener)
    });
    // The machine has ended, and now the name is free: only then is that said.
    place.give_back(name, held);
    answer(&done?, &json!({ "stopped": name }));
    Ok(ExitCode::SUCCESS)
}

fn begin<'a>(args: &'a BootArgs, place: &Place) -> Result<(UnixListener, Keeper<'a>), Failure> {
    let name = &args.unit.name;
    let board = if args.qemu { "qemu" } else { "native" };
    place.end_machine(name);
    let socket = place.socket(name);
    let _ = std::fs::remove_file(&socket);
    let began = Instant::now();
    let machine = Machine::boot(board, LOADER)?;
    place.note_machine(name, machine.process())?;
    let listener = UnixListener::bind(&socket)
        .map_err(|e| Failure::new(format!("cannot listen on {}: {e}", socket.display())))?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    let keeper = Keeper {
        name,
        board,
        machine,
        began,
        image: None,
        waiting: None,
        open: false,
        dead: None,
    };
    keeper.log(&format!(
        "booted {board}: process {}, its loader is ready",
        keeper.machine.process()
    ));
    Ok((listener, keeper))
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
        fd: fd.unwrap_or(-1), // which is passed over
        events: libc::POLLIN,
        revents: 0,
    }
}

fn refusal(what: &str, help: Option<&str>) -> Value {
    json!({ "refused": what, "help": help })
}

fn answer(mut stream: &UnixStream, value: &Value) {
    // Who does not listen any more has what he wanted.
    let _ = writeln!(stream, "{value}");
}

impl Keeper<'_> {
    /// Into the log: the error output is that.
    fn log(&self, what: &str) {
        eprintln!("{:10.3}  {what}", self.began.elapsed().as_secs_f64());
    }

    /// Until somebody stops the unit: who that is.
    fn serve(&mut self, listener: &UnixListener) -> Result<UnixStream, Failure> {
        loop {
            let mut fds = [
                readable(Some(listener.as_raw_fd())),
                readable(self.dead.is_none().then(|| self.machine.bell())),
                readable(self.waiting.as_ref().map(|w| w.stream.as_raw_fd())),
            ];
            let left = self.waiting.as_ref().and_then(|w| w.until);
            let left = left.map(|t| t.saturating_duration_since(Instant::now()));
            let time = match self.open {
                true => Some(left.map_or(LOOK, |l| l.min(LOOK))),
                false => None,
            };
            if let Err(e) = wait(&mut fds, time) {
                return failure(format!("cannot wait: {e}"));
            }
            self.look();
            if let Some(waiting) = &self.waiting {
                // It says nothing more: it has ended, or was interrupted.
                if fds[2].revents != 0 {
                    self.cut("whoever ran it is gone");
                } else if waiting.until.is_some_and(|t| Instant::now() >= t) {
                    self.cut("its time is over");
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

    /// What the machine has to say.
    fn look(&mut self) {
        if self.dead.is_some() {
            return;
        }
        let state = self.machine.look(Duration::ZERO);
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
                let _ = self.machine.stop(LOADER);
                let what = "the program serves procedures, and ends not by itself";
                self.log(&format!("{what}: stopped"));
                refusal(
                    what,
                    Some("call them from a program: lvd_unit_load, pb_load"),
                )
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
        let stopped = self.machine.stop(LOADER);
        self.log(&format!("{why}: the program is stopped"));
        if let Err(e) = stopped {
            self.log(&e.to_string());
        }
        self.open = false;
        if let Some(waiting) = self.waiting.take() {
            answer(
                &waiting.stream,
                &json!({ "outcome": "stopped", "why": why }),
            );
        }
    }

    fn about(&self) -> Value {
        let state = match &self.dead {
            Some(_) => "dead",
            None if self.open => "runs",
            None => "waits",
        };
        json!({
            "name": self.name, "board": self.board, "state": state, "why": self.dead,
            "image": self.image, "keeper": std::process::id(), "machine": self.machine.process(),
        })
    }

    /// Does what a command wants, but for the last: who wants that.
    fn heed(&mut self, stream: UnixStream) -> Option<UnixStream> {
        let _ = stream.set_read_timeout(Some(ASK));
        let _ = stream.set_write_timeout(Some(ASK));
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line).is_err() {
            return None;
        }
        let Ok(asked) = serde_json::from_str::<Value>(&line) else {
            return None;
        };
        match asked["verb"].as_str() {
            Some("about") => answer(&stream, &self.about()),
            Some("load") => {
                let file = PathBuf::from(asked["image"].as_str().unwrap_or_default());
                answer(&stream, &self.load(&file));
            }
            Some("run") => match self.run() {
                Ok(()) => {
                    let within = asked["within"].as_f64().map(Duration::from_secs_f64);
                    let until = within.map(|t| Instant::now() + t);
                    self.waiting = Some(Waiting { stream, until });
                    self.open = true;
                    self.look(); // it may be over: no other ring comes
                }
                Err(told) => answer(&stream, &told),
            },
            Some("stop") => {
                self.log("stopped");
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
                &refusal("the unit's keeper is of another version", None),
            ),
        }
        None
    }

    fn load(&mut self, file: &Path) -> Value {
        match self.machine.load(file) {
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

    fn run(&mut self) -> Result<(), Value> {
        if let Some(why) = &self.dead {
            let help = format!("levada unit stop {}, and boot it again", self.name);
            return Err(refusal(&format!("unit {}: {why}", self.name), Some(&help)));
        }
        let Some(image) = &self.image else {
            let help = format!("levada unit load {} IMAGE", self.name);
            return Err(refusal("no image has been loaded", Some(&help)));
        };
        let begun = self.machine.run(LOADER);
        self.log(&match &begun {
            Ok(()) => format!("runs {}", image.display()),
            Err(e) => format!("does not run {}: {e}", image.display()),
        });
        begun.map_err(|e| refusal(&format!("unit {}: {e}", self.name), None))
    }
}
