// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Crash record: one line in a file, and on standard error, when an application's code ends the process: by `abort`, an
//! uncontained fault, `exit` and similar, or a signal to its own process. SIGKILL leaves no record.
//!
//! A host that ends in this way exits with a failure status, whatever status the code has passed to `exit`, so that a
//! service manager restarts it. If the code sends a termination signal (SIGTERM and similar), the host shuts down as
//! usual, and then exits with the failure status.
//!
//! A signal may be handled on any thread, so the handler cannot tell which application has sent it. Therefore the
//! functions that end a process or send a signal report their caller (`levada_ends_watch`), as do those that set a
//! timer and those that start a process ([`descendants`]), both of which may send a signal later. Calls of `exec` in
//! the process of a host are refused.

mod descendants;

pub use descendants::started;

use levada_sys::Runtime;
use libc::{c_int, c_void, siginfo_t};
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};

/// The first word of a record: `died SIGNAL NAME`. The signal is 0 for `exit`; the name is `?` if the application
/// is not known.
pub const WORD: &str = "died";

/// A second line: the process had used almost all of the memory that it may allocate (`RLIMIT_DATA`).
pub const FULL: &str = "full";

/// A process with less memory left than this may fail to allocate something small, such as a thread's stack.
const HEADROOM_BYTES: u64 = 4 << 20;

/// Whether a process that has allocated `has` bytes of at most `most` is out of memory, or almost.
pub fn is_full(has: u64, most: u64) -> bool {
    has.saturating_add(HEADROOM_BYTES) >= most
}

/// The termination signals of a host. Its handlers for them are installed later, and call the handlers of this file.
const ENDS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Signals that an instruction raises on its own thread.
const OF_INSTRUCTIONS: [c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// All signals with a default action that ends the process.
const SIGNALS: [c_int; 18] = [
    libc::SIGABRT,
    OF_INSTRUCTIONS[0],
    OF_INSTRUCTIONS[1],
    OF_INSTRUCTIONS[2],
    OF_INSTRUCTIONS[3],
    OF_INSTRUCTIONS[4],
    OF_INSTRUCTIONS[5],
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    ENDS[0],
    ENDS[1],
    ENDS[2],
];

/// The events that `levada_ends_watch` reports.
const EXITS: c_int = 0;
const EXITS_AT_ONCE: c_int = 1;
const SENDS: c_int = 2;
const SETS: c_int = 3;
const CLEARS: c_int = 4;
const STARTS: c_int = 5;
const REPLACES: c_int = 6;

/// In place of a signal's number: the process exits.
const BY_EXIT: c_int = 0;

/// The exit status of a host that an application has ended.
const FAILED: c_int = 1;

struct CrashRecord {
    /// The record's descriptor; negative if there is none.
    file: c_int,
    /// True for a host, false for the process of an isolated application.
    host: bool,
    process: libc::pid_t,
    /// The previous action of each signal.
    before: [libc::sigaction; SIGNALS.len()],
    /// The record has been written.
    said: AtomicBool,
    /// The process is shutting down as requested: no record is written any more.
    ends: AtomicBool,
    /// Shutdown is complete: the exit status is not changed any more.
    over: AtomicBool,
}

// Signal handlers read these.
static WILL: OnceLock<CrashRecord> = OnceLock::new();
static RUNTIME: AtomicPtr<levada_sys::ffi::lvd_runtime> = AtomicPtr::new(std::ptr::null_mut());

/// The application that last called a function that ends this process, with the signal or exit status.
static CALLER: Caller = Caller {
    name: Name::empty(),
    signal: AtomicI32::new(-1),
    status: AtomicI32::new(0),
};

/// For each signal, the application that last set a timer that sends it.
static CLOCKS: [Name; 65] = [const { Name::empty() }; 65];

/// An application's name and its final zero.
const NAME_BYTES: usize = 65;

/// The name of an application, or empty. Any thread may write or read it, also in a signal handler.
struct Name([AtomicU8; NAME_BYTES]);

impl Name {
    const fn empty() -> Name {
        Name([const { AtomicU8::new(0) }; NAME_BYTES])
    }

    fn set(&self, name: &[u8]) {
        let bytes = name.iter().copied().chain(std::iter::repeat(0));
        for (to, from) in self.0.iter().zip(bytes) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Returns false if the name is empty.
    fn add_to(&self, line: &mut Line) -> bool {
        let bytes = self.0.iter().map(|b| b.load(Ordering::Relaxed));
        bytes.take_while(|b| *b != 0).for_each(|b| line.add(&[b]));
        self.0[0].load(Ordering::Relaxed) != 0
    }
}

struct Caller {
    name: Name,
    signal: AtomicI32,
    status: AtomicI32,
}

impl Caller {
    fn set(&self, signal: c_int, name: &[u8]) {
        self.signal.store(-1, Ordering::Relaxed);
        self.name.set(name);
        self.signal.store(signal, Ordering::Release);
    }

    /// Adds the name of the application that has sent this signal. Returns false if it is not known.
    fn add_to(&self, line: &mut Line, signal: c_int) -> bool {
        self.signal.load(Ordering::Acquire) == signal && self.name.add_to(line)
    }
}

/// The cause of a signal or exit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// A call in this process.
    Call,
    /// An instruction on this thread.
    Instruction,
    /// A timer, or the kernel for another reason; it is delivered to any thread.
    Kernel,
    /// A descendant of this process.
    Descendant(libc::pid_t),
    Others,
}

impl By {
    fn of(signal: c_int, info: &siginfo_t) -> By {
        // SAFETY: no preconditions; si_code determines which field is valid.
        let (own, process) = unsafe { (libc::getpid(), info.si_pid()) };
        match info.si_code {
            libc::SI_TIMER => By::Kernel,
            1.. if OF_INSTRUCTIONS.contains(&signal) => By::Instruction,
            1.. => By::Kernel,
            _ if process == own => By::Call,
            _ if descendants::is_one(process) => By::Descendant(process),
            _ => By::Others,
        }
    }

    /// Whether code in this process, or a process that it has started, is the cause.
    fn is_own(self) -> bool {
        self != By::Others
    }
}

/// Installs the crash record. Records are appended to `file`, if there is one; a `host` also prints them on standard
/// error. Call this before the runtime is created: its handlers contain the faults that they can, and pass on
/// the others.
pub fn leave_to(file: Option<File>, host: bool) {
    // SAFETY: all zeros is an action; those of the process are changed before there are other threads, and the
    // handlers live as long as it.
    unsafe {
        let mut before: [libc::sigaction; SIGNALS.len()] = std::mem::zeroed();
        for (signal, old) in SIGNALS.iter().zip(&mut before) {
            libc::sigaction(*signal, std::ptr::null(), old);
        }
        let will = CrashRecord {
            file: file.map_or(-1, IntoRawFd::into_raw_fd),
            host,
            process: libc::getpid(),
            before,
            said: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            over: AtomicBool::new(false),
        };
        if WILL.set(will).is_err() {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
        for (signal, old) in SIGNALS.iter().zip(&before) {
            // An ignored signal stays ignored, except termination signals, which the host handles in any case.
            if old.sa_sigaction != libc::SIG_IGN || ENDS.contains(signal) {
                libc::sigaction(*signal, &action, std::ptr::null_mut());
            }
        }
        libc::atexit(on_exit);
        if host {
            descendants::watch();
        }
        levada_sys::ffi::levada_ends_watch(on_call);
    }
}

/// Sets the runtime in which the applications run.
pub fn of(runtime: &Runtime) {
    RUNTIME.store(runtime.raw(), Ordering::Release);
}

/// Requested shutdown begins: nothing is recorded from now on. Returns true if an application's code had already ended
/// the process.
pub fn keep_silent() -> bool {
    WILL.get().is_some_and(|will| {
        will.ends.store(true, Ordering::Relaxed);
        will.said.load(Ordering::Relaxed)
    })
}

/// Shutdown is complete and no application runs any more: the exit status is no longer changed. Returns true if an
/// application's code has ended the process.
pub fn end() -> bool {
    RUNTIME.store(std::ptr::null_mut(), Ordering::Release);
    WILL.get().is_some_and(|will| {
        will.over.store(true, Ordering::Relaxed);
        will.said.load(Ordering::Relaxed)
    })
}

/// The crash record of this process until shutdown is complete. A child that a native has forked has none.
fn will() -> Option<&'static CrashRecord> {
    // SAFETY: has no preconditions.
    let own = |will: &&CrashRecord| will.process == unsafe { libc::getpid() };
    WILL.get()
        .filter(own)
        .filter(|will| !will.over.load(Ordering::Relaxed))
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // A signal from an unrelated process is not an application's fault.
    // SAFETY: the system's structure is valid while the handler runs.
    let by = By::of(signal, unsafe { &*info });
    let asks = ENDS.contains(&signal);
    if by.is_own() || !asks {
        say(signal, by);
    }
    // Restore the previous action. The instruction that raised the signal then raises it again.
    // SAFETY: the calls are async-signal-safe.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now);
        // The host's own handler called this one first, and continues.
        if asks && now.sa_sigaction != on_signal as *const () as usize {
            return;
        }
        let old = WILL.get().and_then(|will| {
            let at = SIGNALS.iter().position(|s| *s == signal)?;
            Some(&will.before[at])
        });
        libc::sigaction(
            signal,
            old.map_or(std::ptr::null(), |o| o),
            std::ptr::null_mut(),
        );
        // A signal that was sent, or a timer's, must be raised again; so must a breakpoint's on some processors.
        if by != By::Instruction || signal == libc::SIGTRAP {
            libc::raise(signal);
        }
    }
}

/// Called when code in this process exits, sends a signal, sets a timer, starts a process or execs. Returns true to
/// refuse the call.
extern "C" fn on_call(ends: c_int, value: c_int, caller: *const c_void) -> bool {
    let Some(will) = will() else { return false };
    let mut name = [0 as c_char; NAME_BYTES];
    // SAFETY: the name lives as long as its application, which runs here; the runtime lives, or is not there.
    let named = unsafe {
        let here = levada_sys::ffi::lvd_current_app_name();
        let runtime = RUNTIME.load(Ordering::Acquire);
        if here.is_null() && !runtime.is_null() {
            let into = name.as_mut_ptr();
            levada_sys::ffi::lvd_app_name_of_code(runtime, caller, into, NAME_BYTES)
                .then(|| CStr::from_ptr(into))
        } else {
            (!here.is_null()).then(|| CStr::from_ptr(here))
        }
    };
    let name = named.map_or(&[][..], CStr::to_bytes);
    match ends {
        EXITS | EXITS_AT_ONCE => {
            CALLER.set(BY_EXIT, name);
            CALLER.status.store(value, Ordering::Relaxed);
        }
        SENDS => CALLER.set(value, name),
        SETS | CLEARS => {
            if let Some(clock) = CLOCKS.get(value as usize) {
                clock.set(if ends == SETS { name } else { &[] });
            }
        }
        STARTS if !name.is_empty() => descendants::begins(name),
        REPLACES if will.host => {
            refuses_to_be_replaced(name);
            return true;
        }
        _ => {}
    }
    if ends == EXITS_AT_ONCE {
        exits_by_itself(will);
    }
    false
}

fn refuses_to_be_replaced(name: &[u8]) {
    let mut line = Line::default();
    line.add(b"error: ");
    line.add(if name.is_empty() { NAMELESS } else { name });
    line.add(b" called exec, which would replace the program of this host: refused\n");
    line.write(libc::STDERR_FILENO);
}

const NAMELESS: &[u8] = b"the code of an application";

extern "C" fn on_exit() {
    if let Some(will) = will() {
        exits_by_itself(will);
    }
}

/// An application's code exits: records it, and ends a host with the failure status.
fn exits_by_itself(will: &CrashRecord) {
    say(BY_EXIT, By::Call);
    if will.host {
        // SAFETY: flushes all streams, as exit does; the process then ends.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            levada_sys::ffi::levada_ends_now(FAILED);
        }
    }
}

/// Writes the record. Runs in signal context.
fn say(signal: c_int, by: By) {
    let Some(will) = will() else { return };
    if will.said.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut name = Line::default();
    let named = match by {
        By::Call => CALLER.add_to(&mut name, signal),
        By::Kernel => {
            if let Some(clock) = CLOCKS.get(signal as usize) {
                clock.add_to(&mut name);
            }
            true
        }
        By::Descendant(process) => {
            descendants::add_name_to(&mut name, process);
            true
        }
        By::Instruction => false,
        By::Others => true,
    };
    if !named {
        // SAFETY: the name lives as long as its application, which runs here.
        let here = unsafe { levada_sys::ffi::lvd_current_app_name() };
        if !here.is_null() {
            // SAFETY: as above.
            name.add(unsafe { CStr::from_ptr(here) }.to_bytes());
        }
    }
    if !will.ends.load(Ordering::Relaxed) && will.file >= 0 {
        let mut line = Line::default();
        line.add(WORD.as_bytes());
        line.add(b" ");
        line.add_number(signal);
        line.add(b" ");
        line.add(if name.used > 0 { name.bytes() } else { b"?" });
        line.add(b"\n");
        if memory_is_full() {
            line.add(FULL.as_bytes());
            line.add(b"\n");
        }
        line.write(will.file);
    }
    if will.host && by.is_own() {
        let mut line = Line::default();
        line.add(b"error: ");
        match name.used {
            0 => line.add(NAMELESS),
            _ => line.add(name.bytes()),
        }
        line.add(b" has ended this host: ");
        match signal {
            BY_EXIT => {
                line.add(b"exit(");
                line.add_number(CALLER.status.load(Ordering::Relaxed));
                line.add(b")");
            }
            _ => {
                line.add(b"signal ");
                line.add_number(signal);
            }
        }
        line.add(match by {
            By::Kernel => b" of a clock that it has set, or of the kernel\n",
            By::Descendant(_) => b" of a process that it has started\n",
            _ => b" in its code\n",
        });
        line.write(libc::STDERR_FILENO);
    }
}

/// Whether this process is out of memory, or almost (`is_full`). Runs in signal context.
fn memory_is_full() -> bool {
    let mut text = [0u8; 256];
    // SAFETY: async-signal-safe calls; the buffers are on this stack frame.
    let (most, read, page) = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_DATA, &mut limit) != 0 {
            return false;
        }
        let file = libc::open(
            c"/proc/self/statm".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        (limit.rlim_cur, read, libc::sysconf(libc::_SC_PAGESIZE))
    };
    // The fields, in pages: size, resident, shared, text, lib, data.
    let text = &text[..read.max(0) as usize];
    let pages = text.split(|b| *b == b' ').nth(5).unwrap_or_default();
    let pages = pages.iter().filter(|b| b.is_ascii_digit());
    let pages = pages.fold(0u64, |sum, b| {
        sum.wrapping_mul(10).wrapping_add(u64::from(b - b'0'))
    });
    most != libc::RLIM_INFINITY && is_full(pages.saturating_mul(page.max(0) as u64), most)
}

/// A line of text that is built without the allocator, since the allocator's lock may be held.
struct Line {
    text: [u8; 192],
    used: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            text: [0; 192],
            used: 0,
        }
    }
}

impl Line {
    fn add(&mut self, part: &[u8]) {
        for byte in part {
            if let Some(at) = self.text.get_mut(self.used) {
                *at = *byte;
                self.used += 1;
            }
        }
    }

    fn add_number(&mut self, number: c_int) {
        let (mut digits, mut at, mut left) = ([0; 12], 12, number.unsigned_abs());
        while at == 12 || left > 0 {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        if number < 0 {
            self.add(b"-");
        }
        self.add(&digits[at..]);
    }

    fn bytes(&self) -> &[u8] {
        &self.text[..self.used]
    }

    fn write(&self, to: c_int) {
        // SAFETY: it is this frame's, and as long as it says.
        unsafe { libc::write(to, self.text.as_ptr().cast(), self.used) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 134, -1, c_int::MIN, c_int::MAX] {
            let mut line = Line::default();
            line.add_number(number);
            assert_eq!(line.bytes(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn caller_is_named_only_for_the_signal_it_sent() {
        let caller = Caller {
            name: Name::empty(),
            signal: AtomicI32::new(-1),
            status: AtomicI32::new(0),
        };
        let named = |signal| {
            let mut line = Line::default();
            let named = caller.add_to(&mut line, signal);
            named.then(|| String::from_utf8_lossy(line.bytes()).into_owned())
        };
        assert_eq!(named(15), None);
        caller.set(15, b"one");
        assert_eq!((named(15).as_deref(), named(1)), (Some("one"), None));
        caller.set(15, b"");
        assert_eq!(named(15), None);
    }
}
