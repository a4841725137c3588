// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shadow memory: what every access of the instrumented C becomes under loom.
//!
//! The memory that threads share is registered as regions, after it is initialised and before a
//! thread is spawned. Each word of a region that the C accesses has a loom object: an atomic if it
//! is accessed atomically, a cell that reports races if it is accessed plainly. Which words those
//! are is *learned*: an access to a word that has no object yet goes to the real memory, is recorded,
//! and the exploration restarts (see `check`). So nothing has to be listed by hand, and nothing is
//! left out.
//!
//! All threads of an execution are coroutines of one operating-system thread, hence the
//! thread-local `World`. It is never borrowed across a loom operation.

use crate::check::Barrier;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread::{Thread, ThreadId};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Unit in which plain accesses are observed; single bytes where one is accessed alone.
const GRAIN_BYTES: usize = 4;

/// How a word is accessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Plain,
    Atomic32,
    Atomic64,
    /// In addition to its kind: read-modify-write operations change it (see `store`).
    Changed,
    /// In addition to its kind, which is plain: parts of it are accessed alone.
    Bytes,
}

/// Words seen so far: region, offset, kind.
pub type Learned = BTreeSet<(&'static str, usize, Kind)>;

enum Word {
    Plain(UnsafeCell<()>),
    Bytes([UnsafeCell<()>; GRAIN_BYTES]),
    Atomic32(AtomicU32, Cell<bool>),
    Atomic64(AtomicU64, Cell<bool>),
}

impl Word {
    fn kind(&self) -> Kind {
        match self {
            Word::Plain(_) | Word::Bytes(_) => Kind::Plain,
            Word::Atomic32(..) => Kind::Atomic32,
            Word::Atomic64(..) => Kind::Atomic64,
        }
    }
}

#[derive(Clone, Copy)]
struct Region {
    name: &'static str,
    base: usize,
    size: usize,
}

/// Where a thread of a check sleeps: 0 nothing, 1 rung, 2 asleep.
struct Bell {
    word: AtomicU32,
    sleeper: RefCell<Option<Thread>>,
}

#[derive(Clone)]
struct Event {
    thread: usize,
    what: What,
    pc: usize,
}

#[derive(Clone)]
enum What {
    Load(usize, u64, i32),
    Store(usize, u64, i32),
    Change(usize, u64, u64, i32),
    Read(usize, usize),
    Write(usize, usize),
    Fence(i32),
    Said(&'static str, u64),
}

#[derive(Default)]
struct World {
    learned: Learned,
    news: bool,
    regions: Vec<Region>,
    freed: Vec<(usize, usize)>,
    words: HashMap<usize, Rc<Word>>,
    bells: Vec<Rc<Bell>>,
    /// One word a thread: the model of a barrier on all cores (see `light`).
    cores: Vec<Rc<AtomicU32>>,
    threads: Vec<ThreadId>,
    sleepers: HashMap<usize, Vec<Thread>>,
    events: Vec<Event>,
    /// Stores that a thread may still make before it dies.
    life: HashMap<usize, usize>,
    asymmetric: bool,
    /// Sleepers with a time limit; and has it passed?
    timed: Vec<Thread>,
    late: bool,
    selves: HashMap<usize, usize>,
}

thread_local!(static WORLD: RefCell<World> = RefCell::new(World::default()));

fn world<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with(|w| f(&mut w.borrow_mut()))
}

thread_local!(static GLOBALS: Cell<(*const c_void, usize)> = const { Cell::new((std::ptr::null(), 0)) });

/// Where the globals of the sources under test lie; each execution watches them.
pub fn globals((base, size): (*const c_void, usize)) {
    GLOBALS.set((base, size));
}

/// The panic that ends a model thread in the middle, as a killed process ends.
pub struct Died;

/// Forgets the previous execution, but for what was learned.
pub fn begin(threads: usize, bells: usize, barrier: Barrier) {
    let old = world(|w| {
        let mut new = World {
            learned: std::mem::take(&mut w.learned),
            asymmetric: barrier == Barrier::Asymmetric,
            ..World::default()
        };
        std::mem::swap(w, &mut new);
        new
    });
    drop(old);
    let cores = (0..threads).map(|_| Rc::new(AtomicU32::new(0))).collect();
    let bells = (0..bells)
        .map(|_| {
            Rc::new(Bell {
                word: AtomicU32::new(0),
                sleeper: RefCell::new(None),
            })
        })
        .collect();
    world(|w| (w.cores, w.bells) = (cores, bells));
    has_spawned(loom::thread::current().id());
    let (base, size) = GLOBALS.get();
    // Safety: they are as long as the library is loaded.
    unsafe { region("globals", base, size) };
}

/// Threads are numbered in the order in which they are spawned; the check's own is 0.
pub fn has_spawned(id: ThreadId) {
    world(|w| w.threads.push(id));
}

/// Forgets everything, also what was learned: another check begins.
pub fn forget() {
    drop(world(std::mem::take));
}

/// Has this execution met words that were not known before?
pub fn news() -> bool {
    world(|w| w.news)
}

/// This thread dies when it is about to make its store (or wake) number `stores`, from 0.
pub fn dies_at(stores: usize) {
    let me = me();
    world(|w| w.life.insert(me, stores));
}

/// What follows is no longer done by what died, but by the system, on the same thread.
pub fn is_dead() {
    let me = me();
    world(|w| w.life.remove(&me));
}

/// Watches `size` bytes at `base` from now on. The bytes are their initial values.
///
/// # Safety
/// They must be readable, and outlive the execution.
pub unsafe fn region(name: &'static str, base: *const c_void, size: usize) {
    let base = base as usize;
    let known: Vec<(usize, Kind)> = world(|w| {
        w.regions.push(Region { name, base, size });
        let first = (name, 0, Kind::Plain);
        w.learned
            .range(first..)
            .take_while(|k| k.0 == name)
            .map(|k| (k.1, k.2))
            .collect()
    });
    for (offset, kind) in known {
        let at = base + offset;
        let word = match kind {
            Kind::Plain => Word::Plain(UnsafeCell::new(())),
            Kind::Atomic32 => {
                let value = unsafe { *(at as *const u32) };
                Word::Atomic32(AtomicU32::new(value), Cell::new(false))
            }
            Kind::Atomic64 => {
                let value = unsafe { *(at as *const u64) };
                Word::Atomic64(AtomicU64::new(value), Cell::new(false))
            }
            // These two are ordered after the word's own kind.
            Kind::Bytes => Word::Bytes(std::array::from_fn(|_| UnsafeCell::new(()))),
            Kind::Changed => {
                let word = world(|w| w.words.get(&at).cloned());
                if let Some(Word::Atomic32(_, changed) | Word::Atomic64(_, changed)) =
                    word.as_deref()
                {
                    changed.set(true);
                }
                continue;
            }
        };
        world(|w| w.words.insert(at, Rc::new(word)));
    }
}

fn me() -> usize {
    let id = loom::thread::current().id();
    world(|w| {
        w.threads
            .iter()
            .position(|t| *t == id)
            .expect("spawned by check::spawn")
    })
}

fn note(what: What, pc: *const c_void) {
    if std::thread::panicking() {
        return;
    }
    let thread = me();
    world(|w| {
        w.events.push(Event {
            thread,
            what,
            pc: pc as usize,
        })
    });
}

/// A remark of the check itself, in the trace of a failure.
pub fn say(what: &'static str, value: u64) {
    note(What::Said(what, value), std::ptr::null());
}

fn is_freed(p: usize) -> bool {
    world(|w| {
        let mut freed = w.freed.iter();
        freed.any(|(base, size)| p >= *base && p < base + size)
    })
}

/// No access to the `size` bytes at `p` is permitted from now on.
extern "C-unwind" fn freed(p: *mut c_void, size: usize) {
    note(What::Said("frees memory", 0), std::ptr::null());
    world(|w| w.freed.push((p as usize, size)));
}

/// No memory is below this address: an access there has read a pointer before it was set.
const FIRST_PAGE: usize = 4096;

/// The word at `p`, if it is watched and known. One that is watched and not known is noted.
fn word(p: usize, kind: Kind) -> Option<Rc<Word>> {
    assert!(p >= FIRST_PAGE, "a null pointer is followed: {p:#x}");
    assert!(!is_freed(p), "{} is touched after it was freed", place(p));
    let found = world(|w| {
        if let Some(found) = w.words.get(&p) {
            return Some(found.clone());
        }
        let r = *w
            .regions
            .iter()
            .find(|r| p >= r.base && p < r.base + r.size)?;
        w.learned.insert((r.name, p - r.base, kind));
        w.news = true;
        None
    });
    if let Some(found) = &found {
        let known = found.kind();
        if known != kind {
            panic!("one word, two ways: {} is {known:?} and {kind:?}", place(p));
        }
    }
    found
}

/// The word at `p`, which is about to be changed by read-modify-write.
fn changed_word(p: usize, kind: Kind) -> Option<Rc<Word>> {
    let found = word(p, kind)?;
    if let Word::Atomic32(_, changed) | Word::Atomic64(_, changed) = &*found
        && !changed.replace(true)
    {
        learn_more(p, Kind::Changed);
    }
    Some(found)
}

/// The word at `p` has another kind, too: the exploration restarts.
fn learn_more(p: usize, kind: Kind) {
    world(|w| {
        let mut regions = w.regions.iter();
        let r = regions.find(|r| p >= r.base && p < r.base + r.size);
        let r = r.expect("a word is in a region");
        w.learned.insert((r.name, p - r.base, kind));
        w.news = true;
    });
}

fn place(p: usize) -> String {
    world(|w| {
        w.regions
            .iter()
            .find(|r| p >= r.base && p < r.base + r.size)
            .map(|r| format!("{}+{}", r.name, p - r.base))
            .unwrap_or_else(|| format!("{p:#x}"))
    })
}

fn order(o: i32) -> Ordering {
    match o & 0xff {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    }
}

/// loom takes sequentially consistent accesses for acquire and release, so a protocol that needed
/// them would be reported wrong; ours have none.
fn access(o: i32) -> Ordering {
    let o = order(o);
    assert!(
        o != Ordering::SeqCst,
        "a seq_cst access: use a seq_cst fence"
    );
    o
}

fn kind(bytes: u32) -> Kind {
    if bytes == 4 {
        Kind::Atomic32
    } else {
        Kind::Atomic64
    }
}

/// The calling thread is about to store: does it live?
fn live() {
    let me = me();
    let dies = world(|w| match w.life.get_mut(&me) {
        Some(0) => true,
        Some(n) => {
            *n -= 1;
            false
        }
        None => false,
    });
    if dies {
        std::panic::panic_any(Died);
    }
}

unsafe fn raw_load(p: usize, bytes: u32) -> u64 {
    unsafe {
        if bytes == 4 {
            *(p as *const u32) as u64
        } else {
            *(p as *const u64)
        }
    }
}
unsafe fn raw_store(p: usize, bytes: u32, v: u64) {
    unsafe {
        if bytes == 4 {
            *(p as *mut u32) = v as u32
        } else {
            *(p as *mut u64) = v
        }
    }
}

extern "C-unwind" fn load(p: *const c_void, bytes: u32, o: i32, pc: *const c_void) -> u64 {
    let p = p as usize;
    let v = match word(p, kind(bytes)).as_deref() {
        Some(Word::Atomic32(a, _)) => a.load(access(o)) as u64,
        Some(Word::Atomic64(a, _)) => a.load(access(o)),
        _ => return unsafe { raw_load(p, bytes) },
    };
    note(What::Load(p, v, o), pc);
    v
}

/// A store to a word that others change by read-modify-write is made as an exchange. loom does not
/// know that a store never comes between the two halves of such a change: it would put the store
/// before a change that has already been made, and report what cannot happen.
extern "C-unwind" fn store(p: *mut c_void, bytes: u32, v: u64, o: i32, pc: *const c_void) {
    let p = p as usize;
    let word = word(p, kind(bytes));
    if word.is_none() {
        return unsafe { raw_store(p, bytes, v) };
    }
    live();
    note(What::Store(p, v, o), pc);
    match word.as_deref() {
        Some(Word::Atomic32(a, changed)) if changed.get() => _ = a.swap(v as u32, access(o)),
        Some(Word::Atomic64(a, changed)) if changed.get() => _ = a.swap(v, access(o)),
        Some(Word::Atomic32(a, _)) => a.store(v as u32, access(o)),
        Some(Word::Atomic64(a, _)) => a.store(v, access(o)),
        _ => {}
    }
    unsafe { raw_store(p, bytes, v) }; // for what is read unwatched (LVD_RACY_READ)
}

extern "C-unwind" fn rmw(
    p: *mut c_void,
    bytes: u32,
    op: u32,
    v: u64,
    o: i32,
    pc: *const c_void,
) -> u64 {
    macro_rules! apply {
        ($a:expr, $v:expr) => {
            match op {
                0 => $a.swap($v, access(o)),
                1 => $a.fetch_add($v, access(o)),
                2 => $a.fetch_sub($v, access(o)),
                3 => $a.fetch_and($v, access(o)),
                4 => $a.fetch_or($v, access(o)),
                _ => $a.fetch_xor($v, access(o)),
            }
        };
    }
    let p = p as usize;
    let word = changed_word(p, kind(bytes));
    if word.is_some() {
        live();
    }
    let old = match word.as_deref() {
        Some(Word::Atomic32(a, _)) => apply!(a, v as u32) as u64,
        Some(Word::Atomic64(a, _)) => apply!(a, v),
        _ => unsafe { raw_load(p, bytes) },
    };
    let new = match op {
        0 => v,
        1 => old.wrapping_add(v),
        2 => old.wrapping_sub(v),
        3 => old & v,
        4 => old | v,
        _ => old ^ v,
    };
    unsafe { raw_store(p, bytes, new) };
    if word.is_none() {
        return old;
    }
    note(What::Change(p, old, v, o), pc);
    old
}

extern "C-unwind" fn cas(
    p: *mut c_void,
    bytes: u32,
    expected: *mut u64,
    v: u64,
    o: i32,
    failure: i32,
    pc: *const c_void,
) -> u32 {
    let p = p as usize;
    let want = unsafe { *expected };
    let word = changed_word(p, kind(bytes));
    if word.is_some() {
        live();
    }
    let result = match word.as_deref() {
        Some(Word::Atomic32(a, _)) => a
            .compare_exchange(want as u32, v as u32, access(o), access(failure))
            .map(|x| x as u64)
            .map_err(|x| x as u64),
        Some(Word::Atomic64(a, _)) => a.compare_exchange(want, v, access(o), access(failure)),
        _ => match unsafe { raw_load(p, bytes) } {
            old if old == want => Ok(old),
            old => Err(old),
        },
    };
    match result {
        Ok(old) => {
            unsafe { raw_store(p, bytes, v) };
            note(What::Change(p, old, v, o), pc);
            1
        }
        Err(old) => {
            note(What::Load(p, old, failure), pc);
            unsafe { *expected = old };
            0
        }
    }
}

extern "C-unwind" fn full_fence(o: i32, pc: *const c_void) {
    note(What::Fence(o), pc);
    fence(order(o));
}

/// The cheap half of the asymmetric barrier, and `barrier` the dear one. Of each pair of the two, on
/// any two threads, one comes first and is seen by the other; two cheap ones order nothing. That is
/// what a barrier on all cores gives, and it is exactly a word for each core which the cheap half
/// changes on its own core and the dear half changes on every one.
extern "C-unwind" fn light(pc: *const c_void) {
    if !world(|w| w.asymmetric) {
        return; // the fences do it, and this is the compiler's business alone
    }
    note(What::Said("light barrier", 0), pc);
    let me = me();
    let core = world(|w| w.cores[me].clone());
    core.fetch_add(1, Ordering::AcqRel);
}

extern "C-unwind" fn barrier(pc: *const c_void) {
    note(What::Said("heavy barrier", 0), pc);
    fence(Ordering::SeqCst);
    if !world(|w| w.asymmetric) {
        return;
    }
    let cores = world(|w| w.cores.clone());
    for core in cores {
        core.fetch_add(1, Ordering::AcqRel);
    }
}

extern "C-unwind" fn plain(p: *const c_void, n: usize, write: u32, pc: *const c_void) {
    let p = p as usize;
    let mut noted = false;
    let mut at = p & !(GRAIN_BYTES - 1);
    while at < p + n {
        if let Some(found) = word(at, Kind::Plain) {
            if !noted {
                let what = if write != 0 {
                    live();
                    What::Write(p, n)
                } else {
                    What::Read(p, n)
                };
                note(what, pc);
                noted = true;
            }
            let (from, to) = (p.max(at), (p + n).min(at + GRAIN_BYTES));
            let cells = match &*found {
                Word::Plain(cell) => {
                    if to - from < GRAIN_BYTES {
                        learn_more(at, Kind::Bytes);
                    }
                    std::slice::from_ref(cell)
                }
                Word::Bytes(cells) => &cells[from - at..to - at],
                _ => &[],
            };
            for cell in cells {
                if write != 0 {
                    cell.with_mut(|_| ());
                } else {
                    cell.with(|_| ());
                }
            }
        }
        at += GRAIN_BYTES;
    }
}

/// A futex: the comparison sees the newest value, and nothing comes between it and the sleep.
extern "C-unwind" fn wait(p: *mut c_void, expected: u32, timed: u32, pc: *const c_void) {
    note(What::Said("sleeps while the word is", expected as u64), pc);
    let at = p as usize;
    let Some(word) = changed_word(at, Kind::Atomic32) else {
        // Not known yet: this execution only learns.
        loom::thread::yield_now();
        return;
    };
    let Word::Atomic32(a, _) = &*word else {
        return;
    };
    let thread = loom::thread::current();
    let value = a.fetch_add(0, Ordering::Relaxed);
    say("compares the word, which is", value as u64);
    if value == expected && !(timed != 0 && world(|w| w.late)) {
        world(|w| {
            if timed != 0 {
                w.timed.push(thread.clone());
            }
            w.sleepers.entry(at).or_default().push(thread.clone())
        });
        loom::thread::park();
        // Later wake-ups must not find it any more.
        let gone = |list: &mut Vec<Thread>| list.retain(|t| t.id() != thread.id());
        world(|w| {
            gone(&mut w.timed);
            w.sleepers.get_mut(&at).map(gone);
        });
    }
    say("is awake", 0);
}

/// All time limits pass.
extern "C-unwind" fn late() {
    say("it is late", 0);
    let clock = world(|w| w.cores[0].clone());
    clock.fetch_add(0, Ordering::Relaxed); // a point in time
    let timed = world(|w| {
        w.late = true;
        std::mem::take(&mut w.timed)
    });
    for thread in timed {
        thread.unpark();
    }
}

extern "C-unwind" fn number() -> u32 {
    me() as u32
}

extern "C-unwind" fn wake(p: *mut c_void, pc: *const c_void) {
    live();
    note(What::Said("wakes sleepers", 0), pc);
    let at = p as usize;
    // Only its address is used: the memory may be gone.
    if is_freed(at) {
        return;
    }
    if let Some(Word::Atomic32(a, _)) = changed_word(at, Kind::Atomic32).as_deref() {
        // A point in time, before or after a sleeper's comparison.
        let value = a.fetch_add(0, Ordering::Relaxed);
        say("looks for sleepers; the word is", value as u64);
    }
    let sleepers = world(|w| w.sleepers.remove(&at).unwrap_or_default());
    for thread in sleepers {
        thread.unpark();
    }
}

extern "C-unwind" fn relax() {
    loom::thread::yield_now();
}

/// What this thread is to the runtime.
extern "C-unwind" fn self_of() -> *mut c_void {
    // Asked as its stack is left: after a deadlock, which has been found with no thread running, that
    // would hide it.
    if std::thread::panicking() {
        return std::ptr::null_mut();
    }
    let me = me();
    world(|w| w.selves.get(&me).copied().unwrap_or(0)) as *mut c_void
}

extern "C-unwind" fn set_self(p: *mut c_void) {
    let me = me();
    world(|w| w.selves.insert(me, p as usize));
}

/// Rings a bell: its sleeper wakes, or will not sleep. The bell itself orders nothing (relaxed), so that
/// a protocol cannot rely on it.
extern "C-unwind" fn ring(bell: u32, pc: *const c_void) {
    live();
    note(What::Said("rings bell", bell as u64), pc);
    let bell = world(|w| w.bells[bell as usize].clone());
    if bell.word.swap(1, Ordering::Relaxed) == 2 {
        let sleeper = bell.sleeper.borrow_mut().take();
        sleeper.expect("asleep").unpark();
    }
}

/// Sleeps until the bell rings, or has rung since the last sleep.
pub fn sleep(bell: usize) {
    say("sleeps at bell", bell as u64);
    let b = world(|w| w.bells[bell].clone());
    *b.sleeper.borrow_mut() = Some(loom::thread::current());
    let asleep = b
        .word
        .compare_exchange(0, 2, Ordering::Relaxed, Ordering::Relaxed);
    if asleep.is_ok() {
        loom::thread::park();
    }
    b.word.swap(0, Ordering::Relaxed);
    say("is awake", 0);
}

extern "C-unwind" fn sleep_at(bell: u32) {
    sleep(bell as usize);
}

thread_local!(static FALLEN: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) });

/// Runs what lies at the bottom of a fiber's stack. Returns only when a panic has ended it: the
/// caller then goes to its thread's own stack, where `landed` goes on with the panic.
extern "C-unwind" fn guard(entry: extern "C-unwind" fn(*mut c_void), argument: *mut c_void) {
    let fallen = catch_unwind(AssertUnwindSafe(|| entry(argument)));
    let panic = fallen.expect_err("a fiber's procedure does not return");
    FALLEN.with(|f| *f.borrow_mut() = Some(panic));
}

/// A thread has come back to one of its stacks.
extern "C-unwind" fn landed() {
    if let Some(panic) = FALLEN.with(|f| f.borrow_mut().take()) {
        resume_unwind(panic);
    }
}

/// What the C calls; the fields as in c/trampoline.c.
#[repr(C)]
pub struct Calls {
    load: extern "C-unwind" fn(*const c_void, u32, i32, *const c_void) -> u64,
    store: extern "C-unwind" fn(*mut c_void, u32, u64, i32, *const c_void),
    rmw: extern "C-unwind" fn(*mut c_void, u32, u32, u64, i32, *const c_void) -> u64,
    cas: extern "C-unwind" fn(*mut c_void, u32, *mut u64, u64, i32, i32, *const c_void) -> u32,
    fence: extern "C-unwind" fn(i32, *const c_void),
    light: extern "C-unwind" fn(*const c_void),
    plain: extern "C-unwind" fn(*const c_void, usize, u32, *const c_void),
    barrier: extern "C-unwind" fn(*const c_void),
    wait: extern "C-unwind" fn(*mut c_void, u32, u32, *const c_void),
    wake: extern "C-unwind" fn(*mut c_void, *const c_void),
    relax: extern "C-unwind" fn(),
    ring: extern "C-unwind" fn(u32, *const c_void),
    sleep: extern "C-unwind" fn(u32),
    me: extern "C-unwind" fn() -> *mut c_void,
    set_me: extern "C-unwind" fn(*mut c_void),
    freed: extern "C-unwind" fn(*mut c_void, usize),
    guard: extern "C-unwind" fn(extern "C-unwind" fn(*mut c_void), *mut c_void),
    landed: extern "C-unwind" fn(),
    number: extern "C-unwind" fn() -> u32,
    late: extern "C-unwind" fn(),
}

pub static CALLS: Calls = Calls {
    load,
    store,
    rmw,
    cas,
    fence: full_fence,
    light,
    plain,
    barrier,
    wait,
    wake,
    relax,
    ring,
    sleep: sleep_at,
    me: self_of,
    set_me: set_self,
    freed,
    guard,
    landed,
    number,
    late,
};

/// The events of the execution that failed, one a line, with the lines of the C.
pub fn trace() -> String {
    let (events, threads) = world(|w| (w.events.clone(), w.threads.len()));
    let mut text = format!("  {threads} threads\n");
    for e in events {
        let what = match e.what {
            What::Load(p, v, o) => format!("load  {} -> {v:#x} {:?}", place(p), order(o)),
            What::Store(p, v, o) => format!("store {} := {v:#x} {:?}", place(p), order(o)),
            What::Change(p, old, v, o) => {
                format!("rmw   {} {old:#x}, {v:#x} {:?}", place(p), order(o))
            }
            What::Read(p, n) => format!("read  {} ({n} bytes)", place(p)),
            What::Write(p, n) => format!("write {} ({n} bytes)", place(p)),
            What::Fence(o) => format!("fence {:?}", order(o)),
            What::Said(what, v) => format!("{what} {v}"),
        };
        text += &format!("  thread {} {what:<44} {}\n", e.thread, source(e.pc));
    }
    text
}

/// Function, file and line of a return address: the innermost function that is not one of the named
/// orders themselves.
fn source(pc: usize) -> String {
    let mut at = String::new();
    if pc != 0 {
        backtrace::resolve((pc - 1) as *mut c_void, |symbol| {
            let file = symbol.filename().and_then(|f| f.file_name());
            let file = file.map_or("?".into(), |f| f.to_string_lossy().into_owned());
            if at.is_empty() && file != "atomic.h" {
                let name = symbol.name().map(|n| n.to_string()).unwrap_or_default();
                at = format!("{name} {file}:{}", symbol.lineno().unwrap_or(0));
            }
        });
    }
    at
}
