// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process leaves in a file, and on its error output, when the code of an application ends it: by `abort`, by a
//! fault that nothing contains, by `exit` and its kin, or by a signal that it sends to its own process. The kernel
//! alone knows of `kill -9`: of that nothing is left.
//!
//! A host that is ended so ends with a failure, whatever status that code has asked for: a service manager starts it
//! again. A signal by which a host is told to end lets it end as ever, and then it fails, too.
//!
//! The functions that end a process, or send it a signal, tell who calls them (`levada_ends_watch`), since such a
//! signal is handled on any thread. So do those that set a clock, whose signal comes later, and those that start a
//! process, which may send one ([`descendants`]). What would put another program into the place of a host is refused.

mod descendants;

pub use descendants::started;

use levada_sys::Runtime;
use libc::{c_int, c_void, siginfo_t};
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};

/// What the file is told: `died SIGNAL NAME`. By `exit` the signal is 0; where it is not known whose code it was, the
/// name is `?`.
pub const WORD: &str = "died";

/// And by another line, that the process had all but all of the memory that it may claim (`RLIMIT_DATA`).
pub const FULL: &str = "full";

/// Who has no more left than this may be refused what the smaller parts of it are asked for, such as a thread's stack.
const ALL_BUT: u64 = 4 << 20;

/// Of what may be claimed, is that all but all?
pub fn is_full(has: u64, most: u64) -> bool {
    has.saturating_add(ALL_BUT) >= most
}

/// By these a host is told to end: who handles them comes later, and calls what was there before.
const ENDS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// What the code that runs on a thread brings upon itself there.
const OF_INSTRUCTIONS: [c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// All that end a process which does not handle them.
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

/// What `levada_ends_watch` tells.
const EXITS: c_int = 0;
const EXITS_AT_ONCE: c_int = 1;
const SENDS: c_int = 2;
const SETS: c_int = 3;
const CLEARS: c_int = 4;
const STARTS: c_int = 5;
const REPLACES: c_int = 6;

/// As no signal is numbered: it exits.
const BY_EXIT: c_int = 0;

/// The status of a host that is ended so.
const FAILED: c_int = 1;

struct CrashRecord {
    /// Below 0: there is none.
    file: c_int,
    /// It holds many applications, and not one alone in a process of its own.
    host: bool,
    process: libc::pid_t,
    /// What was to happen before, of each of the signals.
    before: [libc::sigaction; SIGNALS.len()],
    /// It has been said.
    said: AtomicBool,
    /// The process ends on purpose: nothing is written any more.
    ends: AtomicBool,
    /// It has, and its status is its own.
    over: AtomicBool,
}

// Signal handlers find it there.
static WILL: OnceLock<CrashRecord> = OnceLock::new();
static RUNTIME: AtomicPtr<levada_sys::ffi::lvd_runtime> = AtomicPtr::new(std::ptr::null_mut());

/// Who has called what ends this process last, with which signal, and the status.
static CALLER: Caller = Caller {
    name: Name::empty(),
    signal: AtomicI32::new(-1),
    status: AtomicI32::new(0),
};

/// Of each signal: the application that has last set a timer that sends it.
static CLOCKS: [Name; 65] = [const { Name::empty() }; 65];

const LONGEST: usize = 65;

/// The name of an application, or nothing: written and read on any thread, also in a signal's handler.
struct Name([AtomicU8; LONGEST]);

impl Name {
    const fn empty() -> Name {
        Name([const { AtomicU8::new(0) }; LONGEST])
    }

    fn set(&self, name: &[u8]) {
        let bytes = name.iter().copied().chain(std::iter::repeat(0));
        for (to, from) in self.0.iter().zip(bytes) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// False: there is none.
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

    /// Adds the name of who has sent that; false: it is not known.
    fn add_to(&self, line: &mut Line, signal: c_int) -> bool {
        self.signal.load(Ordering::Acquire) == signal && self.name.add_to(line)
    }
}

/// How a signal has come, or `exit`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// This process has sent it, or exits.
    Call,
    /// The code that runs on this thread has brought it about.
    Instruction,
    /// A clock, or the kernel for another reason: it comes on any thread.
    Kernel,
    /// A process that this one, or one of those, has started.
    Descendant(libc::pid_t),
    Others,
}

impl By {
    fn of(signal: c_int, info: &siginfo_t) -> By {
        // SAFETY: has no preconditions; which field is there the code says.
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

    /// Of code that runs, or was started, here.
    fn is_own(self) -> bool {
        self != By::Others
    }
}

/// From now on such an end is written to `file`, if there is one, which was opened to append; of a `host` also to its
/// error output. To be called before there is a runtime: it contains the faults that it can, and hands on the others.
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
            // What was to be ignored stays so; those that tell a host to end it handles all the same.
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

/// Its applications run here.
pub fn of(runtime: &Runtime) {
    RUNTIME.store(runtime.raw(), Ordering::Release);
}

/// The process ends on purpose: whatever happens from now on is not written. True: the code of an application has ended
/// it before, and that is.
pub fn keep_silent() -> bool {
    WILL.get().is_some_and(|will| {
        will.ends.store(true, Ordering::Relaxed);
        will.said.load(Ordering::Relaxed)
    })
}

/// It is over, and nothing of an application runs any more: from now on it exits with what status it likes. True: the
/// code of an application has ended it.
pub fn end() -> bool {
    RUNTIME.store(std::ptr::null_mut(), Ordering::Release);
    WILL.get().is_some_and(|will| {
        will.over.store(true, Ordering::Relaxed);
        will.said.load(Ordering::Relaxed)
    })
}

/// The will of this process, as long as its end is not its own. What a native has forked is not the host.
fn will() -> Option<&'static CrashRecord> {
    // SAFETY: has no preconditions.
    let own = |will: &&CrashRecord| will.process == unsafe { libc::getpid() };
    WILL.get()
        .filter(own)
        .filter(|will| !will.over.load(Ordering::Relaxed))
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // What another process has sent has nothing to do with what runs here.
    // SAFETY: it is the system's, and there as long as the handler runs.
    let by = By::of(signal, unsafe { &*info });
    let asks = ENDS.contains(&signal);
    if by.is_own() || !asks {
        say(signal, by);
    }
    // As if we had never been here: what comes of an instruction comes again.
    // SAFETY: what is called may be called in a signal's handler.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now);
        // Whoever handles it has called us first.
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
        // One that was sent does not, nor one of a clock; nor do some processors stop at a breakpoint again.
        if by != By::Instruction || signal == libc::SIGTRAP {
            libc::raise(signal);
        }
    }
}

/// Some code calls what ends this process, or sends it a signal, and so on. True: that is refused.
extern "C" fn on_call(ends: c_int, value: c_int, caller: *const c_void) -> bool {
    let Some(will) = will() else { return false };
    let mut name = [0 as c_char; LONGEST];
    // SAFETY: the name lives as long as its application, which runs here; the runtime lives, or is not there.
    let named = unsafe {
        let here = levada_sys::ffi::lvd_current_app_name();
        let runtime = RUNTIME.load(Ordering::Acquire);
        if here.is_null() && !runtime.is_null() {
            let into = name.as_mut_ptr();
            levada_sys::ffi::lvd_app_name_of_code(runtime, caller, into, LONGEST)
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
    line.add(
        b" would have put another program into the place of this host (exec): that is refused\n",
    );
    line.write(libc::STDERR_FILENO);
}

const NAMELESS: &[u8] = b"the code of an application";

extern "C" fn on_exit() {
    if let Some(will) = will() {
        exits_by_itself(will);
    }
}

/// Nothing but the code of an application exits now: a host fails by that.
fn exits_by_itself(will: &CrashRecord) {
    say(BY_EXIT, By::Call);
    if will.host {
        // SAFETY: all streams, as exit writes them; and then this process has nothing more to do.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            levada_sys::ffi::levada_ends_now(FAILED);
        }
    }
}

/// In signal context.
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
        if has_all() {
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

/// In signal context: has this process all but all of the memory that it may claim?
fn has_all() -> bool {
    let mut text = [0u8; 256];
    // SAFETY: calls that may be made in a signal's handler; what is written to is this frame's.
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
    // In pages: all, resident, shared, code, libraries, and what is its own to write.
    let text = &text[..read.max(0) as usize];
    let pages = text.split(|b| *b == b' ').nth(5).unwrap_or_default();
    let pages = pages.iter().filter(|b| b.is_ascii_digit());
    let pages = pages.fold(0u64, |sum, b| {
        sum.wrapping_mul(10).wrapping_add(u64::from(b - b'0'))
    });
    most != libc::RLIM_INFINITY && is_full(pages.saturating_mul(page.max(0) as u64), most)
}

/// One that is made without the allocator, whose lock may be held.
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
    fn numbers_are_written_as_they_are() {
        for number in [0, 7, 10, 134, -1, c_int::MIN, c_int::MAX] {
            let mut line = Line::default();
            line.add_number(number);
            assert_eq!(line.bytes(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn who_has_sent_another_signal_is_not_named() {
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
