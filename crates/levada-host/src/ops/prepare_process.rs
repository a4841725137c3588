// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Preparation in a separate process, `levada prepare`: it reads the sources, compiles what is not in the cache,
//! checks natives, options and files, and reports errors.
//!
//! So the compiler's memory and crashes do not affect the host, and the system schedules it along with the workers. The
//! process and all its descendants are ended when the client disconnects, the host ends, or the timeout expires.

use crate::model::error::{Kind, Refusal};
use crate::protocol::{COMPILE_TIMEOUT_S, Failed, LoadRequest};
use crate::util::launch_env::as_started;
use crate::util::lock::lock;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::io::{Interest, unix::AsyncFd};

/// Maximum size of its output, in bytes: a hundred times what a compiler reports for the largest networks.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The connection of the client that waits for the result.
#[derive(Clone, Debug)]
pub struct Client(Arc<OwnedFd>);

impl Client {
    pub fn new(stream: &impl AsFd) -> std::io::Result<Client> {
        Ok(Client(Arc::new(stream.as_fd().try_clone_to_owned()?)))
    }

    /// Waits until the client has closed both directions: it does not wait for a response any more.
    pub async fn gone(&self) -> std::io::Result<()> {
        // SAFETY: has no preconditions.
        let told = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if told < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it is new, and owned by this value only.
        let told = unsafe { OwnedFd::from_raw_fd(told) };
        // EPOLLHUP is always reported; nothing else is requested.
        let mut nothing = libc::epoll_event { events: 0, u64: 0 };
        let (add, client) = (libc::EPOLL_CTL_ADD, self.0.as_raw_fd());
        // SAFETY: both descriptors are open, and the event exists.
        if unsafe { libc::epoll_ctl(told.as_raw_fd(), add, client, &raw mut nothing) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it stays open as long as it is owned.
        let told = unsafe { AsyncFd::register_with_interest(told, Interest::READABLE) };
        let told = told.map_err(|e| e.into_parts().1)?;
        told.readable().await.map(drop)
    }
}

/// The process groups of running preparations; none any more once the host ends.
#[derive(Debug, Default)]
pub struct Preparing(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    all: BTreeSet<i32>,
    ended: bool,
}

impl Preparing {
    fn groups(&self) -> MutexGuard<'_, Groups> {
        lock(&self.0)
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.groups().all.len()
    }

    /// Ends all of them, and those that would start.
    pub fn end(&self) {
        let mut groups = self.groups();
        groups.ended = true;
        groups.all.iter().for_each(|group| kill(*group));
    }

    /// Runs a command in its own process group, as long as a client waits for it.
    fn run(
        &self,
        command: &mut Command,
        client: Option<&Client>,
        longest: Duration,
    ) -> Result<Output, Refusal> {
        command.stdin(Stdio::null()).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = {
            let mut groups = self.groups();
            if groups.ended {
                return Err(ends());
            }
            let child = command
                .spawn()
                .map_err(|e| lacks(format!("cannot be started: {e}")))?;
            crate::util::fd_limit::inherited(child.id());
            groups.all.insert(child.id() as i32);
            child
        };
        let group = child.id() as i32;
        let read = both(&mut child, client, Instant::now() + longest);
        let mut groups = self.groups();
        // The group's number is not reused until the leader is reaped.
        groups.all.remove(&group);
        if read.is_err() {
            kill(group);
        }
        let ended = groups.ended;
        drop(groups);
        let status = child.wait().map_err(lacks)?;
        let (stdout, stderr) = read?;
        if ended && !status.success() {
            return Err(ends());
        }
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }
}

fn ends() -> Refusal {
    Refusal::new(Kind::Conflict, "is not waited for: the host ends")
}

/// The error for a lack of system resources.
fn lacks(what: impl ToString) -> Refusal {
    Refusal::new(Kind::Limit, what.to_string())
}

fn kill(group: i32) {
    // SAFETY: a group that this process has created, with a leader that has not been reaped.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Reads both outputs of a child.
fn both(
    child: &mut Child,
    client: Option<&Client>,
    until: Instant,
) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(lacks("has no output"));
    };
    let mut all = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    let mut buffer = vec![0; 64 << 10];
    while out_open || err_open {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let what = "has taken too long: does it read from a pipe, or does a constructor of a C program not \
                        return? --timeout allows more";
            return Err(Refusal::new(Kind::Timeout, what));
        }
        // A negative descriptor is ignored.
        let want = |open: bool, fd: RawFd, events| libc::pollfd {
            fd: if open { fd } else { -1 },
            events,
            revents: 0,
        };
        let mut polled = [
            want(out_open, out.as_raw_fd(), libc::POLLIN),
            want(err_open, err.as_raw_fd(), libc::POLLIN),
            // Only to see whether both directions are closed.
            want(client.is_some(), client.map_or(-1, |c| c.0.as_raw_fd()), 0),
        ];
        let ms = left.as_millis().clamp(1, 60_000) as i32;
        // SAFETY: an array of three, owned by this frame.
        if unsafe { libc::poll(polled.as_mut_ptr(), 3, ms) } < 0 {
            let e = std::io::Error::last_os_error();
            if e.kind() != std::io::ErrorKind::Interrupted {
                return Err(lacks(e));
            }
            continue;
        }
        if polled[2].revents != 0 {
            let what = "has been ended: its client has disconnected";
            return Err(Refusal::new(Kind::Conflict, what));
        }
        let mut take = |polled: &libc::pollfd, from: &mut dyn Read, to: &mut Vec<u8>| {
            if polled.revents == 0 {
                return true;
            }
            let n = from.read(&mut buffer).unwrap_or(0);
            to.extend_from_slice(&buffer[..n]);
            n > 0
        };
        out_open = out_open && take(&polled[0], &mut out, &mut all.0);
        err_open = err_open && take(&polled[1], &mut err, &mut all.1);
        if all.0.len() + all.1.len() > OUTPUT_BYTES_MAX {
            let what = format!("says more than {} MiB", OUTPUT_BYTES_MAX >> 20);
            return Err(Refusal::new(Kind::Wrong, what));
        }
    }
    Ok(all)
}

/// Its output on success.
#[derive(Clone, Debug, Deserialize)]
pub struct Prepared {
    pub object: PathBuf,
    pub network: String,
    /// The object is a C program.
    #[serde(default)]
    pub program: bool,
    /// Options for natives, with absolute paths.
    pub options: Vec<(String, String)>,
    /// Whether it contains a native that can report progress.
    #[serde(default = "may_count")]
    pub counts: bool,
    #[serde(default)]
    pub diagnostics: Vec<Value>,
    /// Warnings, as text.
    #[serde(default)]
    pub text: String,
}

/// Unknown for a C program.
fn may_count() -> bool {
    true
}

/// Its output on failure.
#[derive(Debug, Deserialize)]
struct Refused {
    message: String,
    help: Option<String>,
    #[serde(default)]
    diagnostics: Vec<Value>,
}

fn wrong(what: impl Into<String>) -> Failed {
    Failed {
        error: what.into(),
        kind: Some(Kind::Wrong),
        ..Failed::default()
    }
}

/// Maximum length of a process argument in Linux, less the option's name.
const ARGUMENT_BYTES_MAX: usize = (128 << 10) - 4096;

/// A value that cannot be passed as a process argument, and why; the system's error would not name it.
fn no_argument(request: &LoadRequest) -> Option<(&'static str, &'static str)> {
    let why = |text: &String| match (text.contains('\0'), text.len() > ARGUMENT_BYTES_MAX) {
        (true, _) => Some(
            "has a NUL character (\\u0000) in it, and neither a path nor an option can have one",
        ),
        (_, true) => Some("is longer than a path or an option can be"),
        _ => None,
    };
    let each = |all: &BTreeMap<String, String>| {
        all.iter().find_map(|(name, text)| why(name).or(why(text)))
    };
    let all = [
        ("network", why(&request.network)),
        ("in", request.input.as_ref().and_then(why)),
        ("out", request.output.as_ref().and_then(why)),
        ("set", each(&request.set)),
        ("option", each(&request.option)),
        ("path", request.path.iter().find_map(why)),
        ("project", request.project.as_ref().and_then(why)),
        ("native", request.native.iter().find_map(why)),
        (
            "out_of_bounds",
            request.out_of_bounds.as_ref().and_then(why),
        ),
        ("placement", request.placement.as_ref().and_then(why)),
        ("arguments", request.arguments.iter().find_map(why)),
    ];
    all.into_iter().find_map(|(name, why)| Some((name, why?)))
}

/// Runs `program prepare` for a request. `opens`: a C program is opened there first, so that a failure is known before
/// it is opened in this process.
pub fn prepare(
    program: &Path,
    request: &LoadRequest,
    opens: bool,
    preparing: &Preparing,
    client: Option<&Client>,
) -> Result<Prepared, Failed> {
    if request
        .directory
        .as_os_str()
        .as_encoded_bytes()
        .contains(&0)
    {
        return Err(wrong(
            "directory has a NUL character (\\u0000) in it, and no path can have one",
        ));
    }
    if !request.directory.is_absolute() || !request.directory.is_dir() {
        let shown = request.directory.display();
        return Err(wrong(format!(
            "directory {shown:?} is no whole path of a folder: paths are relative to it"
        )));
    }
    if request.network.is_empty() {
        return Err(Failed {
            help: Some("network is an .xdf file, a class name, or a program (.so)".to_string()),
            ..wrong("it names no network")
        });
    }
    if let Some((name, why)) = no_argument(request) {
        return Err(wrong(format!("{name} {why}")));
    }
    let mut command = Command::new(program);
    as_started(&mut command);
    command.arg("prepare").current_dir(&request.directory);
    // Option and value in one argument, so that no value is taken for an option.
    let mut option = |name: &str, value: &str| {
        command.arg(format!("--{name}={value}"));
    };
    for (name, value) in &request.set {
        option("set", &format!("{name}={value}"));
    }
    for (name, value) in &request.option {
        option("option", &format!("{name}={value}"));
    }
    request.input.iter().for_each(|v| option("in", v));
    request.output.iter().for_each(|v| option("out", v));
    request.project.iter().for_each(|v| option("project", v));
    request.path.iter().for_each(|v| option("path", v));
    request.native.iter().for_each(|v| option("native", v));
    request
        .out_of_bounds
        .iter()
        .for_each(|v| option("out-of-bounds", v));
    if let Some(seed) = request.random_buffer_sizes {
        option("random-buffer-sizes", &seed.to_string());
    }
    if request.unchecked {
        command.arg("--unchecked");
    }
    if request.no_fuse {
        command.arg("--no-fuse");
    }
    if opens {
        command.arg("--open");
    }
    command.arg("--").arg(&request.network);
    let output = preparing
        .run(
            &mut command,
            client,
            crate::protocol::timeout::timeout_from(request.timeout, COMPILE_TIMEOUT_S)?,
        )
        .map_err(|why| Refusal {
            what: format!("levada prepare {why}"),
            ..why
        })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.lines().last().unwrap_or("");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let made: Result<Prepared, _> = serde_json::from_str(said);
        return match made {
            Ok(made) => Ok(Prepared { text, ..made }),
            Err(e) => Err(wrong(format!(
                "levada prepare sent a reply that cannot be parsed: {e}"
            ))),
        };
    }
    let Ok(refused) = serde_json::from_str::<Refused>(said) else {
        if output.status.signal() == Some(libc::SIGKILL) {
            // For example for lack of memory; a signal caused by the code itself is reported differently.
            let what = format!("levada prepare was ended: {}", output.status);
            return Err(Refusal::new(Kind::Limit, what).into());
        }
        // The command line was wrong.
        let what = match text.trim() {
            "" => format!("levada prepare has failed: {}", output.status),
            text => text.trim_start_matches("error: ").to_string(),
        };
        return Err(wrong(what));
    };
    // The last lines are the message and the help, which are returned separately.
    let head = format!("error: {}", refused.message);
    let text = match text.rfind(&head) {
        Some(at) => text[..at].to_string(),
        None => text,
    };
    Err(Failed {
        error: refused.message,
        help: refused.help,
        diagnostics: refused.diagnostics,
        text,
        kind: Some(Kind::Failed),
        ..Failed::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const LONG_TIMEOUT: Duration = Duration::from_secs(100);

    /// A shell that starts another program, which would run for long.
    fn sleeping(place: &Path) -> Command {
        let mut command = Command::new("sh");
        let note = "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait";
        command.args(["-c", note]).current_dir(place);
        command
    }

    fn ends_within(place: &Path, run: impl FnOnce() -> Result<Output, Refusal>) -> Refusal {
        let begin = Instant::now();
        let why = run().unwrap_err();
        assert!(begin.elapsed() < LONG_TIMEOUT / 2, "{why}");
        let pid = std::fs::read_to_string(place.join("pid")).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // Ended, or a zombie.
        while std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z ")) {
            assert!(begin.elapsed() < LONG_TIMEOUT / 2, "it sleeps still");
            std::thread::sleep(Duration::from_millis(5));
        }
        why
    }

    fn until_it_sleeps(place: &Path) {
        while !place.join("pid").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn long_replies_arrive_complete() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero; echo no >&2; exit 3"]);
        let output = Preparing::default()
            .run(&mut command, None, LONG_TIMEOUT)
            .unwrap();
        assert_eq!(output.stdout.len(), 300_000);
        assert_eq!(output.stderr, b"no\n");
        assert_eq!(output.status.code(), Some(3));
    }

    /// As a constructor of a program may do that is opened there.
    #[test]
    fn too_much_output_ends_the_process() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat /dev/zero >&2"]);
        let ended = Preparing::default().run(&mut command, None, LONG_TIMEOUT);
        let why = ended.unwrap_err();
        assert!(why.what.contains("says more than 64 MiB"));
        assert_eq!(why.kind, Kind::Wrong);
    }

    #[test]
    fn preparation_ends_with_its_client() {
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let client = Client::new(&ours).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until_it_sleeps(place.path());
                // A half-closed connection still waits for the response.
                theirs.shutdown(std::net::Shutdown::Write).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                drop(theirs);
            });
            let preparing = Preparing::default();
            let mut command = sleeping(place.path());
            let why = ends_within(place.path(), || {
                preparing.run(&mut command, Some(&client), LONG_TIMEOUT)
            });
            assert!(why.what.contains("disconnected"), "{why}");
            assert!(preparing.groups().all.is_empty());
        });
    }

    #[test]
    fn preparation_ends_with_its_timeout_and_with_the_host() {
        let place = tempfile::tempdir().unwrap();
        let preparing = Preparing::default();
        let mut command = sleeping(place.path());
        let why = ends_within(place.path(), || {
            preparing.run(&mut command, None, Duration::from_secs(2))
        });
        assert!(why.what.contains("too long"), "{why}");
        assert_eq!(why.kind, Kind::Timeout);
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until_it_sleeps(place.path());
                preparing.end();
            });
            let mut command = sleeping(place.path());
            let ended = preparing.run(&mut command, None, LONG_TIMEOUT).unwrap_err();
            assert_eq!(ended.kind, Kind::Conflict, "{ended}");
        });
        let ended = preparing.run(&mut Command::new("true"), None, LONG_TIMEOUT);
        assert_eq!(ended.unwrap_err().kind, Kind::Conflict);
        let none = Preparing::default().run(&mut Command::new("/no/such"), None, LONG_TIMEOUT);
        assert_eq!(none.unwrap_err().kind, Kind::Limit);
    }
}
