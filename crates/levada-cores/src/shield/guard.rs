// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The guard: a separate process per shield, started before any change. It waits on one end of a
//! socket pair, of which only the tool holds the other, and restores the state when that end closes
//! for whatever reason. With methods that are not enforced by the kernel it also sweeps the cores
//! periodically.
//!
//! Messages to the guard: "watch METHOD PROGRAM" starts sweeping; "stop" ends it and is answered by
//! "stopped". Messages from the guard: "released" after a signal asked it to end the shield; "full"
//! if the log has reached its limit.

use super::method::Method;
use super::request::{Request, sweeper_for};
use super::restore;
use super::sweep::{SweepReport, Sweeper};
use crate::cpu_set::CoreSet;
use crate::machine::Machine;
use crate::undo_log::UndoLog;
use crate::undo_log::format::{Entry, LogState, ProcessId};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// Interval between sweeps. A thread that arrives right after a sweep is moved by the next one,
/// together in less than 0.1 s including the sweep itself.
const SWEEP_PERIOD: Duration = Duration::from_millis(40);

#[derive(Debug, PartialEq, Eq)]
pub enum GuardMessage {
    None,
    Released,
    /// The log is full: threads that arrive from now on are not moved.
    Full,
    Dead,
}

pub struct Guard {
    pub process: ProcessId,
    socket: OwnedFd,
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the call writes the two descriptors, and no one else owns them.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn send(socket: &OwnedFd, text: &str) -> bool {
    // SAFETY: the text is only read. MSG_NOSIGNAL: no SIGPIPE if the other end is closed.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            text.as_ptr().cast(),
            text.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    sent >= 0
}

/// The next message; blocks unless `flags` say otherwise. None if the other end is closed.
fn receive(socket: &OwnedFd, flags: i32) -> io::Result<Option<String>> {
    let mut bytes = [0u8; 256];
    loop {
        // SAFETY: at most the size of the buffer is written.
        let got = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                flags,
            )
        };
        match got {
            0 => return Ok(None),
            n @ 1.. => {
                return Ok(Some(
                    String::from_utf8_lossy(&bytes[..n as usize]).into_owned(),
                ));
            }
            _ => {
                let e = io::Error::last_os_error();
                if e.kind() != io::ErrorKind::Interrupted {
                    return Err(e);
                }
            }
        }
    }
}

/// Waits until one of the descriptors is readable or the time is over; returns which are.
pub fn wait(descriptors: &[RawFd], time: Option<Duration>) -> Vec<bool> {
    let mut polls: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let time = time.map_or(-1, |t| t.as_millis().max(1) as i32);
    // SAFETY: the count is that of the array.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, time) };
    polls.iter().map(|p| ready > 0 && p.revents != 0).collect()
}

impl Guard {
    /// Forks the guard. The caller must have only one thread.
    pub fn start(undo_log: &mut UndoLog, request: &Request, others: &CoreSet) -> io::Result<Guard> {
        let (own, theirs) = pair()?;
        let tool = std::process::id() as i32;
        // SAFETY: the process has only one thread, so the child may call any function.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(own);
                detach(theirs.as_raw_fd());
                run(theirs, undo_log, request, others, tool);
                // SAFETY: ends the child without the exit handlers of its parent.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop(theirs);
                let start = Machine::this().process(pid).map_or(0, |s| s.start);
                let guard = Guard {
                    process: ProcessId { pid, start },
                    socket: own,
                };
                undo_log.add(&[Entry::Guard(guard.process)])?;
                Ok(guard)
            }
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn watch(&self, method: Method, is_program: bool) {
        send(
            &self.socket,
            &format!("watch {} {is_program}", method.name()),
        );
    }

    /// Stops the sweeps, so that they do not undo a restoration.
    pub fn stop(&self) {
        if send(&self.socket, "stop") {
            while let Ok(Some(text)) = receive(&self.socket, 0) {
                if text == "stopped" {
                    break;
                }
            }
        }
    }

    /// Ends the guard.
    pub fn end(self) {
        let Guard { process, socket } = self;
        drop(socket);
        // The guard performs a final check, which is not awaited.
        // SAFETY: waits for a child of this process; nothing is written.
        unsafe { libc::waitpid(process.pid, std::ptr::null_mut(), libc::WNOHANG) };
    }

    pub fn receive(&self) -> GuardMessage {
        match receive(&self.socket, libc::MSG_DONTWAIT) {
            Ok(Some(text)) if text == "released" => GuardMessage::Released,
            Ok(Some(text)) if text == "full" => GuardMessage::Full,
            Ok(Some(_)) => GuardMessage::None,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => GuardMessage::None,
            Ok(None) | Err(_) => GuardMessage::Dead,
        }
    }
}

/// Real-time scheduling of this process while the value lives, if permitted: it does little work,
/// but on a loaded machine it would wait long for the CPU. The drop restores the scheduling policy.
pub struct RealtimeScope(Option<(i32, libc::sched_param)>);

impl RealtimeScope {
    pub fn now() -> RealtimeScope {
        let own = libc::sched_param { sched_priority: 0 };
        let urgent = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters are local variables.
        let before = unsafe { libc::sched_getscheduler(0) };
        let plain = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
        // SAFETY: as above.
        let done = plain.contains(&before)
            && unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &urgent) } == 0;
        RealtimeScope(done.then_some((before, own)))
    }
}

impl Drop for RealtimeScope {
    fn drop(&mut self) {
        if let Some((before, own)) = &self.0 {
            // SAFETY: the parameter lives.
            unsafe { libc::sched_setscheduler(0, *before, own) };
        }
    }
}

/// Detaches the process from the tool's terminal, process group, signals and open files.
fn detach(keep: RawFd) {
    // SAFETY: calls without memory arguments, or with local variables.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"levada-guard".as_ptr());
        libc::setpriority(libc::PRIO_PROCESS, 0, -10);
        libc::chdir(c"/".as_ptr());
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(nowhere, fd);
        }
    }
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open {
        if fd > 2 && fd != keep {
            // SAFETY: the owner of the descriptor in this process never runs again.
            unsafe { libc::close(fd) };
        }
    }
}

/// A descriptor that becomes readable on SIGTERM; all other signals are blocked.
fn termination_fd() -> RawFd {
    // SAFETY: the sets are local variables.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC)
    }
}

fn run(socket: OwnedFd, undo_log: &mut UndoLog, request: &Request, others: &CoreSet, tool: i32) {
    let machine = Machine::this();
    let asked = termination_fd();
    let _urgent = RealtimeScope::now();
    let mut watch: Option<SweepWatch> = None;
    let mut stopped: Option<LogState> = None;
    loop {
        let time = watch.as_ref().map(|_| SWEEP_PERIOD);
        let ready = wait(&[socket.as_raw_fd(), asked], time);
        if ready[1] {
            let record = LogState::read(&undo_log.path).ok();
            let _ = restore::restore_shield(&machine, undo_log);
            send(&socket, "released");
            final_widening(&machine, &undo_log.path, record);
            return;
        }
        if ready[0] {
            let text = match receive(&socket, 0) {
                Ok(Some(text)) => text,
                _ => {
                    let record = stopped.or_else(|| LogState::read(&undo_log.path).ok());
                    let _ = restore::restore_shield(&machine, undo_log);
                    final_widening(&machine, &undo_log.path, record);
                    return;
                }
            };
            let mut words = text.split(' ');
            match words.next() {
                Some("stop") => {
                    watch = None;
                    stopped = LogState::read(&undo_log.path).ok();
                    send(&socket, "stopped");
                }
                Some("watch") if stopped.is_none() => {
                    let method = words.next().and_then(Method::from_name);
                    let is_program = words.next() == Some("true");
                    watch = method.filter(|r| r.is_watched()).map(|method| {
                        let mut sweeper = sweeper_for(&machine, request, others, method, tool);
                        sweeper.guard = std::process::id() as i32;
                        if is_program {
                            sweeper.inside.push(tool);
                        }
                        SweepWatch::new(sweeper, undo_log)
                    });
                }
                _ => {}
            }
            continue;
        }
        if let Some(watch) = &mut watch {
            watch.sweep(&machine, undo_log, &socket);
        }
    }
}

/// A fork copies the affinity mask long before the child becomes visible, so inherited masks are
/// checked once more after a delay.
fn final_widening(machine: &Machine, undo_log: &Path, record: Option<LogState>) {
    std::thread::sleep(2 * SWEEP_PERIOD);
    if let Some(record) = record {
        let now = LogState::read(undo_log).unwrap_or_default();
        restore::widen_inherited(machine, &record, &restore::RemainingShields::of(&now));
    }
}

/// Periodic sweeps.
struct SweepWatch {
    sweeper: Sweeper,
    swept: SweepReport,
    evicted: u64,
    is_full: bool,
}

impl SweepWatch {
    fn new(sweeper: Sweeper, undo_log: &UndoLog) -> SweepWatch {
        SweepWatch {
            sweeper,
            swept: SweepReport::default(),
            is_full: false,
            // Includes the count of an earlier guard that was killed.
            evicted: undo_log.own().map_or(0, |own| own.evicted),
        }
    }

    fn sweep(&mut self, machine: &Machine, undo_log: &mut UndoLog, tool: &OwnedFd) {
        let before = self.evicted;
        // Repeated until no thread is moved: a thread may fork while it is moved, and the child
        // should not wait for the next sweep.
        for _ in 0..5 {
            self.swept = SweepReport::default();
            match self.sweeper.sweep(machine, undo_log, &mut self.swept) {
                Ok(0) => break,
                Err(e) => {
                    if e.kind() == io::ErrorKind::FileTooLarge && !self.is_full {
                        self.is_full = send(tool, "full");
                    }
                    break;
                }
                Ok(_) => self.evicted += self.swept.moved(),
            }
        }
        if self.evicted != before {
            let _ = undo_log.add(&[Entry::Evicted(self.evicted)]);
        }
    }
}
