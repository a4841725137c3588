// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada host`: runs a host until it is asked to end.

use crate::cli::{HostArgs, RestoreWhat};
use crate::common::output::{self, Failure, failure, plural};
use crate::common::realtime;
use crate::common::sd_notify;
use crate::common::signals::{self, Interrupt};
use levada_host::http::serve::serve;
use levada_host::http::socket::{Socket, usual_path};
use levada_host::isolated::{self, IsolatedSet, LaunchConfig, guard};
use levada_host::ops::inspect;
use levada_host::ops::prepare_process::Preparing;
use levada_host::ops::state::ServerState;
use levada_host::persist::crash_record;
use levada_host::persist::store::{self, Restore, StateStore};
use levada_host::util::fd_limit;
use levada_host::{EventKind, Host};
use levada_sys::Status;
use levada_sys::leases::Leases;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit of one action, in CPU time. Typical actions of signal processing take microseconds, those on pictures
/// some milliseconds.
const TIME_LIMIT_MS: u32 = 10_000;

fn socket(args: &HostArgs) -> Result<Socket, Failure> {
    if let Some(fd) = args.listener {
        // SAFETY: the parent process passed this descriptor to this process only.
        return Ok(unsafe { Socket::given(fd, "--listener") }?);
    }
    if let Some(socket) = Socket::inherited()? {
        // LEVADA_HOST is meant for commands that talk to a host, not for this one.
        let told = std::env::var_os("LEVADA_HOST").map(PathBuf::from);
        let option = match (&args.group, &args.socket) {
            (Some(_), _) => "--group",
            (None, given) if *given != told => "--socket",
            _ => return Ok(socket),
        };
        let what = format!(
            "{option} applies to a socket that the host creates, but it was started with one (LISTEN_FDS)"
        );
        return Err(Failure::new(what).help(
            "leave it out; in a systemd unit, set ListenStream for the path, SocketMode and SocketGroup for access",
        ));
    }
    let path = match &args.socket {
        Some(path) => path.clone(),
        None => usual_path()?,
    };
    Ok(Socket::bind(&path, args.group.as_deref())?)
}

impl From<RestoreWhat> for Restore {
    fn from(what: RestoreWhat) -> Restore {
        match what {
            RestoreWhat::Safe => Restore::Safe,
            RestoreWhat::All => Restore::All,
        }
    }
}

/// Manages the leases; if another host of the user does already, this host takes part in them.
fn give_leases() -> Option<Leases> {
    match Leases::begin() {
        Ok(leases) => Some(leases),
        Err(e) if [Status::STATE, Status::NOT_FOUND].contains(&e.status) => None,
        Err(e) => {
            say!(
                "core leases are not available, so other programs do not take turns with this host on its cores: {e}"
            );
            None
        }
    }
}

pub fn host(args: &HostArgs) -> Result<ExitCode, Failure> {
    let held = hold(args);
    let blamed = crash_record::end();
    match held? {
        Some(signal) => {
            // SAFETY: flushes all streams; code that prints has ended.
            unsafe { libc::fflush(std::ptr::null_mut()) };
            guard::end_by(signal)
        }
        None if blamed && args.listener.is_none() => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs the host until it is asked to end. Returns the signal by which the process has to end, if it is the process
/// of an isolated application: its parent host sees and reports what ended it.
fn hold(args: &HostArgs) -> Result<Option<i32>, Failure> {
    let isolated = args.listener.is_some();
    fd_limit::raise_to_max();
    // The process of an isolated application ends by this limit.
    if !isolated {
        signals::survive_cpu_limit();
    }
    levada_host::remember();
    let socket = socket(args)?;
    if let Some(socket) = args.listener {
        guard::part(socket).map_err(|e| Failure::new(format!("there can be no guard: {e}")))?;
    }
    socket.keep_from_children();
    let mut options = args.runtime.options();
    options.isolated = isolated;
    // Default, since applications share the workers.
    let limit_ms = args.runtime.action_time_limit.unwrap_or(TIME_LIMIT_MS);
    options.runtime.action_time_limit = Duration::from_millis(limit_ms.into());
    options.runtime.output_bytes_per_s = args.output_rate;
    // Before workers are created.
    let _leases = (!isolated).then(give_leases);
    let memory = if isolated { None } else { memory(args)? };
    // Before the runtime is created, so that its fault handlers run first.
    let words = match (&memory, isolated) {
        (Some(memory), _) => match memory.journal().file() {
            Ok(file) => Some(file),
            Err(e) => return failure(format!("cannot open the crash record: {e}")),
        },
        (None, true) => socket.open_sibling(isolated::LAST_WORDS).ok(),
        (None, false) => None,
    };
    crash_record::leave_to(words, !isolated);
    let host = realtime::start(&options)?;
    crash_record::of(host.runtime());
    let restore = args.restore.map_or(Restore::Nothing, Restore::from);
    if !isolated {
        host.events().log_failures();
    }
    if let Some(memory) = &memory {
        let kept = memory.clone();
        host.on_end(move |name, number| kept.try_forget_ended(name, number));
        tell_what_was_left(memory, &host, restore);
    }
    isolated::tidy();
    let served = Arc::new(served(args, host, memory, restore));
    let end = Arc::new(tokio::sync::Notify::new());
    let ended = end.clone();
    // The parent of an isolated application's process sees what ended it.
    let at_once = if isolated {
        guard::end_by
    } else {
        |signal| {
            crash_record::end();
            signals::exit(signal)
        }
    };
    let runtime = served.host.runtime().clone();
    let serve_it = move || runtime.serve();
    let stop = move || ended.notify_one();
    let interrupt = match Interrupt::watch_without_pipe(serve_it, stop, at_once) {
        Ok(interrupt) => interrupt,
        Err(e) => return failure(format!("cannot watch for signals: {e}")),
    };
    greet(&served, &socket, isolated);
    if let Some(note) = realtime::note(&options) {
        say!("{note}");
    }
    // It must answer whatever the workers compute. Long work is done on threads that it starts, which have the usual
    // class.
    served.host.runtime().serve();
    if args.json {
        output::line(&serde_json::json!(inspect::info(&served)).to_string())?;
    }
    // Clients are answered from now on. The parent of an isolated application's host asks it directly, so no
    // notification is sent.
    let tell = |what| (!isolated).then(|| sd_notify::tell(what));
    tell(sd_notify::READY);
    let done = serve(&socket, served.clone(), end);
    tell(sd_notify::STOPPING);
    let saved = match &served.store {
        Some(memory) => memory.close(),
        None => {
            crash_record::keep_silent();
            Ok(())
        }
    };
    drop(socket);
    let signal = interrupt.signal().filter(|_| isolated);
    end_all(&served, args.timeout(), isolated, signal);
    drop(interrupt);
    match done {
        Ok(()) => Ok(saved.map(|()| signal)?),
        Err(e) => output::failure(format!("cannot serve: {e}")),
    }
}

/// The host's state folder, if it has one.
fn memory(args: &HostArgs) -> Result<Option<Arc<StateStore>>, Failure> {
    let folder = match &args.state {
        // An absolute path, since an application may change the current folder.
        Some(folder) => Some(std::path::absolute(folder)?),
        None => store::usual_folder(),
    };
    let Some(folder) = folder else {
        return Ok(None);
    };
    Ok(Some(Arc::new(StateStore::open(&folder)?)))
}

/// Reports the applications of the previous host that are not restored.
fn tell_what_was_left(memory: &StateStore, host: &Host, restore: Restore) {
    let before = memory.unrestored();
    if !before.is_empty() && restore == Restore::Nothing {
        say!(
            "the last host had loaded {}: --restore loads that again, levada unload forgets it",
            before.join(", ")
        );
    }
    for name in memory.unloaded() {
        let why = "it had been told to go when the last host ended, and is not loaded again";
        host.events().emit(EventKind::Unloaded, name, why);
        say!("{name}: {why}");
    }
    for file in memory.foreign() {
        say!("the state folder holds {file}, which no host has made: it is left alone");
    }
    // A host that restores reports what it omits.
    if restore == Restore::Nothing {
        for (name, why) in memory.unrestored_reasons() {
            say!("{name}: not restored: {why}");
        }
    }
}

/// The state of the HTTP interface.
fn served(
    args: &HostArgs,
    host: Host,
    memory: Option<Arc<StateStore>>,
    restore: Restore,
) -> ServerState {
    // The running executable, even if another version is installed meanwhile.
    let command = PathBuf::from("/proc/self/exe");
    let isolated = IsolatedSet::of(&host);
    ServerState {
        host,
        command: command.clone(),
        started_at: Instant::now(),
        store: memory,
        restore,
        name_lock: Mutex::default(),
        pending: Default::default(),
        preparing: Preparing::default(),
        isolated,
        reservations: Default::default(),
        followers: Default::default(),
        launch: LaunchConfig {
            command,
            options: args.for_another(),
            timeout: args.timeout(),
        },
    }
}

/// Prints the number of workers and the socket.
fn greet(served: &ServerState, socket: &Socket, isolated: bool) {
    let runtime = served.host.runtime();
    let workers = plural(runtime.workers() as usize, "worker");
    let workers = match runtime.realtime() {
        Some(priority) => format!("{workers} at real-time priority {priority}"),
        None => workers,
    };
    match socket.path() {
        Some(path) => say!("{workers} on {}; Ctrl-C ends it", path.display()),
        None if isolated => {}
        None => say!("{workers}"),
    }
}

/// Ends all applications. If a firing does not end in time, this is reported and the process ends here, by `signal`
/// if given.
fn end_all(served: &ServerState, timeout: Duration, isolated: bool, signal: Option<i32>) {
    let left = served.live();
    if left > 0 && !isolated {
        say!("stopping {}", plural(left, "application"));
    }
    // Files that natives hold open are finished or removed when their applications are dropped.
    let lasting = served.stop_timeout(timeout);
    if lasting.is_empty() {
        return;
    }
    let names = lasting.join(", ");
    say!("not ended after {timeout:?}, as a firing lasts: {names}");
    served.host.flush();
    if let Some(signal) = signal {
        guard::end_by(signal);
    }
    crash_record::end();
    // SAFETY: exit handlers might wait for that firing, too, so they are skipped.
    unsafe { libc::_exit(1) };
}
