// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the program in a shield as a shell would: it shares the terminal's foreground with this process, receives
//! the signals that this process receives, stops and continues with it, and passes on its exit status.

use super::{Plan, class, report};
use crate::common::output::{self, DIM, Failure, failure, paint, plain};
use levada_cores::Shield;
use levada_cores::shield::guard::{GuardMessage, RealtimeScope, wait};
use std::ffi::{CString, OsStr};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const CANNOT_START: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The action of SIGPIPE when the process began, before Rust's runtime and this command's main changed it.
static PIPE_WAS_IGNORED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "C" fn remember() {
    // SAFETY: asks only; the memory is of this frame.
    unsafe {
        let mut now: libc::sigaction = zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut now);
        let ignored = now.sa_sigaction == libc::SIG_IGN;
        PIPE_WAS_IGNORED.store(ignored, std::sync::atomic::Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

// ---- signals -----------------------------------------------------------------------------------

/// Receives signals through a descriptor while this exists; the program gets the original actions.
pub(super) struct Signals {
    pub descriptor: OwnedFd,
    before: libc::sigset_t,
    /// The original action of SIGCHLD: a process that ignores it cannot wait for children.
    children: libc::sighandler_t,
}

impl Signals {
    /// Fault signals are not taken; with `stops`, neither are those that stop and continue.
    pub fn take(stops: bool) -> io::Result<Signals> {
        // SAFETY: all sets are of this frame.
        unsafe {
            let mut set: libc::sigset_t = zeroed();
            libc::sigfillset(&mut set);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGABRT,
                // Caused by our own output, and not the program's.
                libc::SIGPIPE,
            ] {
                libc::sigdelset(&mut set, fault);
            }
            if !stops {
                for stop in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGCONT] {
                    libc::sigdelset(&mut set, stop);
                }
            }
            let mut before = MaybeUninit::uninit();
            if libc::sigprocmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals {
                descriptor: OwnedFd::from_raw_fd(fd),
                before: before.assume_init(),
                children: libc::signal(libc::SIGCHLD, libc::SIG_DFL),
            })
        }
    }

    pub fn next(&self) -> Option<libc::signalfd_siginfo> {
        // SAFETY: no more than the size is written, and only whole ones are read.
        unsafe {
            let mut info: libc::signalfd_siginfo = zeroed();
            let size = size_of_val(&info);
            let got = libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), size);
            (got == size as isize).then_some(info)
        }
    }
}

fn reset(signal: i32) {
    // SAFETY: the default action, unblocked.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        unblock(signal);
    }
}

fn unblock(signal: i32) {
    // SAFETY: the set is of this frame.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

/// Stops this process like the program, so that the shell sees it; returns when it is continued.
fn stop_as(signal: i32) {
    // SAFETY: the sets are of this frame; the action is the default one while it is unblocked.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        let action = libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, &mut before);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if signal != libc::SIGSTOP {
            libc::signal(signal, action);
        }
    }
}

// ---- the program -------------------------------------------------------------------------------

/// The path of the program, by the shell's rules.
fn find(program: &OsStr) -> Result<PathBuf, Failure> {
    let shown = program.display();
    let usable = |path: &Path| {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the name is terminated.
        let may = unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0;
        Some(may && path.is_file())
    };
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match path.metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Failure::new(format!("there is no program {shown}")).status(NOT_FOUND))
            }
            Err(e) => {
                Err(Failure::new(format!("{shown} cannot be started: {e}")).status(CANNOT_START))
            }
            Ok(m) if m.is_dir() => {
                Err(Failure::new(format!("{shown} is a folder")).status(CANNOT_START))
            }
            Ok(_) if usable(&path) != Some(true) => {
                Err(Failure::new(format!("{shown} may not be executed")).status(CANNOT_START))
            }
            Ok(_) => Ok(path),
        };
    }
    let list = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut found = std::env::split_paths(&list).map(|dir| dir.join(program));
    match found.find(|p| usable(p) == Some(true)) {
        Some(path) if !program.is_empty() => Ok(path),
        _ => Err(Failure::new(format!("there is no program {shown} (in PATH)")).status(NOT_FOUND)),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: both were initialised by the call and are owned by this function.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn read_number(fd: RawFd) -> Option<i32> {
    let mut bytes = [0u8; 4];
    loop {
        // SAFETY: no more than the buffer's size is written.
        let got = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), 4) };
        if got == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        return (got == 4).then(|| i32::from_ne_bytes(bytes));
    }
}

fn write_number(fd: RawFd, number: i32) {
    let bytes = number.to_ne_bytes();
    // SAFETY: the bytes are of this frame.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// A child process that executes the program on request.
struct Program {
    pid: i32,
    go: OwnedFd,
    failed: OwnedFd,
}

impl Program {
    fn fork(path: &Path, words: &[std::ffi::OsString], signals: &Signals) -> io::Result<Program> {
        let text = |t: &OsStr| {
            CString::new(t.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
        };
        let path = text(path.as_os_str())?;
        let words: Vec<CString> = words.iter().map(|w| text(w)).collect::<io::Result<_>>()?;
        let mut list: Vec<*const libc::c_char> = words.iter().map(|w| w.as_ptr()).collect();
        list.push(std::ptr::null());
        let (wait_for_go, go) = pipe()?;
        let (failed, tell) = pipe()?;
        // SAFETY: there is one thread, and the child does nothing but what is here.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(go);
                // The parent is gone, so there is no shield.
                if read_number(wait_for_go.as_raw_fd()).is_some() {
                    let ignored = PIPE_WAS_IGNORED.load(std::sync::atomic::Ordering::Relaxed);
                    let pipe = if ignored {
                        libc::SIG_IGN
                    } else {
                        libc::SIG_DFL
                    };
                    // SAFETY: path and words are terminated and live.
                    unsafe {
                        libc::signal(libc::SIGPIPE, pipe);
                        libc::signal(libc::SIGCHLD, signals.children);
                        libc::sigprocmask(libc::SIG_SETMASK, &signals.before, std::ptr::null_mut());
                        libc::execvp(path.as_ptr(), list.as_ptr());
                    }
                    let why = io::Error::last_os_error().raw_os_error().unwrap_or(0);
                    write_number(tell.as_raw_fd(), why);
                }
                // SAFETY: ends the child without what its parent would do at its end.
                unsafe { libc::_exit(i32::from(CANNOT_START)) }
            }
            pid => Ok(Program { pid, go, failed }),
        }
    }

    /// Starts the program.
    fn go(&mut self) -> Result<(), io::Error> {
        write_number(self.go.as_raw_fd(), 1);
        match read_number(self.failed.as_raw_fd()) {
            None => Ok(()),
            Some(why) => Err(io::Error::from_raw_os_error(why)),
        }
    }

    fn give_up(self) {
        let pid = self.pid;
        drop(self);
        // SAFETY: waits for a child of this process.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

fn say(plan: &Plan, text: &str) {
    if !plan.args.quiet {
        say_painted!("{} {}", paint(DIM, "shield:"), plain(text));
    }
}

fn announce(plan: &Plan, shield: &Shield) {
    if !plan.args.quiet {
        let request = &plan.request;
        report::left(plan.left.said());
        report::raised(
            &shield.raised,
            &plan.load,
            &request.cores,
            &plan.topology,
            request.lightest,
        );
    }
}

/// Printed even with --quiet: the shield is no longer effective.
fn heard(news: GuardMessage) {
    if news == GuardMessage::Full {
        let help = "release the shield and raise it again, if possible with --method cgroup-v2-partition or cpuset-v1";
        let what = "the undo log of moved threads is full: threads that appear on the core from now on stay there";
        output::error(what, Some(help));
    }
}

fn lower(plan: &Plan, shield: Shield, released: bool) -> Result<(), Failure> {
    let restored = shield.lower()?;
    match (released, restored.failed.is_empty()) {
        (true, _) => {}
        (false, true) => say(plan, &report::restored(&restored)),
        (false, false) => say!("{}", report::restored(&restored)),
    }
    Ok(())
}

pub fn run(plan: &Plan) -> Result<ExitCode, Failure> {
    let words = &plan.args.program;
    let path = find(&words[0])?;
    let signals = Signals::take(true)?;
    let mut shield = Shield::raise(plan.request.clone())?;
    if shield.raised.method.is_watched() {
        // Orphaned descendants of the program become children of this process, and so remain known.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    }
    let started = start(plan, &path, &signals, &mut shield);
    let program = match started {
        Ok(program) => program,
        Err(e) => {
            let lowered = shield.lower().map_err(Failure::from);
            if let Err(e) = lowered {
                output::error(&e.what, None);
            }
            return Err(e);
        }
    };
    let mut released = false;
    // The core is free as soon as the program has ended; this process must not delay the work that waits for it.
    let _urgent = RealtimeScope::now();
    let status = follow(plan, program.pid, &signals, &mut shield, &mut released);
    // A failed restoration is reported, but the exit status is the program's.
    if let Err(e) = lower(plan, shield, released) {
        output::error(&e.what, e.help.as_deref());
    }
    if libc::WIFSIGNALED(status) {
        end_by(libc::WTERMSIG(status));
    }
    Ok(ExitCode::from(libc::WEXITSTATUS(status) as u8))
}

fn start(
    plan: &Plan,
    path: &Path,
    signals: &Signals,
    shield: &mut Shield,
) -> Result<Program, Failure> {
    let mut program = Program::fork(path, &plan.args.program, signals)
        .map_err(|e| Failure::new(format!("no process can be started: {e}")))?;
    let ready = shield
        .take_in(program.pid)
        .map_err(|e| Failure::new(format!("the program cannot be put onto its cores: {e}")))
        .and_then(|()| class::give(plan.args, shield, program.pid));
    if let Err(e) = ready {
        program.give_up();
        return Err(e);
    }
    announce(plan, shield);
    if let Err(e) = program.go() {
        let code = match e.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => CANNOT_START,
        };
        program.give_up();
        let what = format!("{} cannot be started: {e}", path.display());
        return Err(Failure::new(what).status(code));
    }
    Ok(program)
}

/// Forwards signals to the program, and stops and continues with it, until it ends; returns its wait status.
fn follow(
    plan: &Plan,
    program: i32,
    signals: &Signals,
    shield: &mut Shield,
    released: &mut bool,
) -> i32 {
    // SAFETY: no memory is passed.
    let is_first = unsafe { libc::getsid(0) == libc::getpid() };
    loop {
        let mut ready = vec![signals.descriptor.as_raw_fd()];
        ready.extend(shield.guard_descriptor().filter(|_| !*released));
        let ready = wait(&ready, None);
        if ready.get(1) == Some(&true) {
            match shield.receive_guard_message() {
                GuardMessage::Released => {
                    *released = true;
                    say(plan, "released; the program goes on without");
                }
                news => heard(news),
            }
        }
        while let Some(info) = signals.next() {
            let signal = info.ssi_signo as i32;
            if signal == libc::SIGCHLD {
                continue;
            }
            // The program has also received signals from the terminal, but not those that were sent to this process
            // only. The hangup of a terminal is sent to its session leader only.
            let sent = info.ssi_code <= 0 && info.ssi_pid != program as u32;
            let hung_up = is_first && matches!(signal, libc::SIGHUP | libc::SIGCONT);
            if sent || hung_up && info.ssi_code > 0 {
                // SAFETY: the program is not waited for yet, so its id is its own.
                unsafe { libc::kill(program, signal) };
            }
        }
        loop {
            let mut status = 0;
            let which = libc::WNOHANG | libc::WUNTRACED;
            // SAFETY: the status is of this frame.
            let pid = unsafe { libc::waitpid(-1, &mut status, which) };
            match pid {
                _ if pid <= 0 => break,
                // The guard, or a grandchild.
                _ if pid != program => continue,
                _ if libc::WIFSTOPPED(status) => {
                    stop_as(libc::WSTOPSIG(status));
                    // A shell continues the whole group; a SIGCONT for this process only is meant for both.
                    // SAFETY: as above.
                    unsafe { libc::kill(program, libc::SIGCONT) };
                }
                _ => return status,
            }
        }
    }
}

/// Ends this process by the program's signal, without a second core file.
fn end_by(signal: i32) -> ! {
    // SAFETY: the limit is of this frame.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    reset(signal);
    // SAFETY: ends this process.
    unsafe {
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}

/// A descriptor that becomes readable when the process ends.
pub fn descriptor_of(pid: i32) -> Result<OwnedFd, Failure> {
    // SAFETY: no memory is passed; the descriptor is new.
    let process = unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as RawFd))
    };
    process.map_or_else(|| failure(format!("there is no process {pid}")), Ok)
}

/// Shields a running process until it ends or the shield is released.
pub fn attach(plan: &Plan) -> Result<ExitCode, Failure> {
    let pid = plan.args.pid.unwrap_or(0);
    let signals = Signals::take(false)?;
    let process = descriptor_of(pid)?;
    let mut shield = Shield::raise(plan.request.clone())?;
    announce(plan, &shield);
    if shield.raised.method.is_watched() {
        say(
            plan,
            "children are not known as the process's any more when their parents end",
        );
    }
    let mut code = ExitCode::SUCCESS;
    let mut released = false;
    'hold: loop {
        let mut list = vec![signals.descriptor.as_raw_fd(), process.as_raw_fd()];
        list.extend(shield.guard_descriptor());
        let ready = wait(&list, None);
        if ready[1] {
            break;
        }
        if ready.get(2) == Some(&true) {
            match shield.receive_guard_message() {
                GuardMessage::Released => {
                    released = true;
                    break;
                }
                news => heard(news),
            }
        }
        while let Some(info) = signals.next() {
            match info.ssi_signo as i32 {
                libc::SIGCHLD => {
                    // The guard has ended; its successor was started, or will be.
                    // SAFETY: no status is wanted.
                    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
                }
                signal @ (libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT) => {
                    code = ExitCode::from(128 + signal as u8);
                    break 'hold;
                }
                _ => {}
            }
        }
    }
    lower(plan, shield, released)?;
    Ok(code)
}
