// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes before an application is loaded is done by a process of its own, `levada prepare`: it
//! reads the sources, compiles what is not in the cache, checks natives, options and files, and says
//! what is wrong. So neither a compiler's memory nor its faults are the host's, and the system shares
//! the cores between it and the workers. It ends, with all that it has started, when nobody waits for
//! it any more: its client goes, the host ends, or it takes too long.

use crate::model::error::{Kind, Refusal};
use crate::protocol::{COMPILES_WITHIN, Failed, LoadRequest};
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

/// So much it may say: what a compiler finds in the largest networks is a hundredth of it.
const MOST: usize = 64 << 20;

/// The connection of who has asked for it.
#[derive(Clone, Debug)]
pub struct Client(Arc<OwnedFd>);

impl Client {
    pub fn new(stream: &impl AsFd) -> std::io::Result<Client> {
        Ok(Client(Arc::new(stream.as_fd().try_clone_to_owned()?)))
    }

    /// Waits until it has closed both sides: nobody waits for an answer any more.
    pub async fn gone(&self) -> std::io::Result<()> {
        // SAFETY: has no preconditions.
        let told = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if told < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it is new, and ours.
        let told = unsafe { OwnedFd::from_raw_fd(told) };
        // That is told always, and nothing else is asked for.
        let mut nothing = libc::epoll_event { events: 0, u64: 0 };
        let (add, client) = (libc::EPOLL_CTL_ADD, self.0.as_raw_fd());
        // SAFETY: both are open, and what is asked for is there.
        if unsafe { libc::epoll_ctl(told.as_raw_fd(), add, client, &raw mut nothing) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it stays open for as long as it is owned.
        let told = unsafe { AsyncFd::register_with_interest(told, Interest::READABLE) };
        let told = told.map_err(|e| e.into_parts().1)?;
        told.readable().await.map(drop)
    }
}

/// The process groups that prepare something now; none any more once the host ends.
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

    /// How many there are.
    pub fn count(&self) -> usize {
        self.groups().all.len()
    }

    /// Ends all of them, and those that would begin.
    pub fn end(&self) {
        let mut groups = self.groups();
        groups.ended = true;
        groups.all.iter().for_each(|group| kill(*group));
    }

    /// Runs a command in a group of its own, as long as somebody waits for it.
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
            crate::util::fd_limit::as_before(child.id());
            groups.all.insert(child.id() as i32);
            child
        };
        let group = child.id() as i32;
        let read = both(&mut child, client, Instant::now() + longest);
        let mut groups = self.groups();
        // Until it is waited for the number is its own.
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

/// The system has too little of something for it.
fn lacks(what: impl ToString) -> Refusal {
    Refusal::new(Kind::Limit, what.to_string())
}

fn kill(group: i32) {
    // SAFETY: a group that we have made, whose leader has not been waited for.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// All that a child writes to its two outputs.
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
                        return? --within allows more";
            return Err(Refusal::new(Kind::Timeout, what));
        }
        // A negative number is passed over.
        let want = |open: bool, fd: RawFd, events| libc::pollfd {
            fd: if open { fd } else { -1 },
            events,
            revents: 0,
        };
        let mut polled = [
            want(out_open, out.as_raw_fd(), libc::POLLIN),
            want(err_open, err.as_raw_fd(), libc::POLLIN),
            // Only whether it is closed, on both sides.
            want(client.is_some(), client.map_or(-1, |c| c.0.as_raw_fd()), 0),
        ];
        let ms = left.as_millis().clamp(1, 60_000) as i32;
        // SAFETY: three of them, ours.
        if unsafe { libc::poll(polled.as_mut_ptr(), 3, ms) } < 0 {
            let e = std::io::Error::last_os_error();
            if e.kind() != std::io::ErrorKind::Interrupted {
                return Err(lacks(e));
            }
            continue;
        }
        if polled[2].revents != 0 {
            let what = "has been ended: nobody waits for it";
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
        if all.0.len() + all.1.len() > MOST {
            let what = format!("says more than {} MiB", MOST >> 20);
            return Err(Refusal::new(Kind::Wrong, what));
        }
    }
    Ok(all)
}

/// What it says when all is well.
#[derive(Clone, Debug, Deserialize)]
pub struct Prepared {
    pub object: PathBuf,
    pub network: String,
    /// The object is a C program.
    #[serde(default)]
    pub program: bool,
    /// For natives, with paths that are whole.
    pub options: Vec<(String, String)>,
    /// Something in it may count what it does.
    #[serde(default = "may_count")]
    pub counts: bool,
    #[serde(default)]
    pub diagnostics: Vec<Value>,
    /// Warnings, as text.
    #[serde(default)]
    pub text: String,
}

/// Of a program nobody knows.
fn may_count() -> bool {
    true
}

/// And when it is not.
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

/// The system gives a process no argument that is longer: with its name before it.
const LONGEST_TEXT: usize = (128 << 10) - 4096;

/// What cannot be an argument of a process, of which the system would say only that something is wrong: and why.
fn no_argument(request: &LoadRequest) -> Option<(&'static str, &'static str)> {
    let why = |text: &String| match (text.contains('\0'), text.len() > LONGEST_TEXT) {
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
        ("outside", request.outside.as_ref().and_then(why)),
        ("placement", request.placement.as_ref().and_then(why)),
        ("arguments", request.arguments.iter().find_map(why)),
    ];
    all.into_iter().find_map(|(name, why)| Some((name, why?)))
}

/// Calls `program prepare` with what was asked for. `opens`: a C program is opened there first, so that what comes of
/// that is known before it is opened where others are.
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
    // In one word each, so that no value is taken for an option.
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
    request.outside.iter().for_each(|v| option("outside", v));
    if let Some(seed) = request.any_sizes {
        option("any-sizes", &seed.to_string());
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
            crate::protocol::timeout::limit(request.within, COMPILES_WITHIN)?,
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
                "levada prepare says what is not understood: {e}"
            ))),
        };
    }
    let Ok(refused) = serde_json::from_str::<Refused>(said) else {
        if output.status.signal() == Some(libc::SIGKILL) {
            // The system had too little memory, say; what its code does by itself is another signal.
            let what = format!("levada prepare was ended: {}", output.status);
            return Err(Refusal::new(Kind::Limit, what).into());
        }
        // It has not come so far: the command line was wrong.
        let what = match text.trim() {
            "" => format!("levada prepare has failed: {}", output.status),
            text => text.trim_start_matches("error: ").to_string(),
        };
        return Err(wrong(what));
    };
    // The last lines are the message and the help, which are told apart.
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

    const LONG: Duration = Duration::from_secs(100);

    /// A shell that starts another program, and would be there for long.
    fn sleeping(place: &Path) -> Command {
        let mut command = Command::new("sh");
        let note = "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait";
        command.args(["-c", note]).current_dir(place);
        command
    }

    fn ends_within(place: &Path, run: impl FnOnce() -> Result<Output, Refusal>) -> Refusal {
        let begin = Instant::now();
        let why = run().unwrap_err();
        assert!(begin.elapsed() < LONG / 2, "{why}");
        let pid = std::fs::read_to_string(place.join("pid")).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // Gone, or dead and not waited for yet.
        while std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z ")) {
            assert!(begin.elapsed() < LONG / 2, "it sleeps still");
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
    fn what_is_said_comes_whole() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero; echo no >&2; exit 3"]);
        let output = Preparing::default().run(&mut command, None, LONG).unwrap();
        assert_eq!(output.stdout.len(), 300_000);
        assert_eq!(output.stderr, b"no\n");
        assert_eq!(output.status.code(), Some(3));
    }

    /// As the constructor of a program may that is opened there.
    #[test]
    fn who_says_too_much_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat /dev/zero >&2"]);
        let ended = Preparing::default().run(&mut command, None, LONG);
        let why = ended.unwrap_err();
        assert!(why.what.contains("says more than 64 MiB"));
        assert_eq!(why.kind, Kind::Wrong);
    }

    #[test]
    fn nobody_prepares_for_a_client_that_has_gone() {
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let client = Client::new(&ours).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until_it_sleeps(place.path());
                // Half closed, it waits for the answer still.
                theirs.shutdown(std::net::Shutdown::Write).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                drop(theirs);
            });
            let preparing = Preparing::default();
            let mut command = sleeping(place.path());
            let why = ends_within(place.path(), || {
                preparing.run(&mut command, Some(&client), LONG)
            });
            assert!(why.what.contains("nobody waits"), "{why}");
            assert!(preparing.groups().all.is_empty());
        });
    }

    #[test]
    fn nobody_prepares_for_ever_or_for_a_host_that_ends() {
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
            let ended = preparing.run(&mut command, None, LONG).unwrap_err();
            assert_eq!(ended.kind, Kind::Conflict, "{ended}");
        });
        let ended = preparing.run(&mut Command::new("true"), None, LONG);
        assert_eq!(ended.unwrap_err().kind, Kind::Conflict);
        let none = Preparing::default().run(&mut Command::new("/no/such"), None, LONG);
        assert_eq!(none.unwrap_err().kind, Kind::Limit);
    }
}
