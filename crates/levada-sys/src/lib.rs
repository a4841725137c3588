// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Safe bindings of liblevada: a [`Runtime`], the [`Network`] of a shared object, and the [`App`]s
//! loaded from it.
//!
//! This is the one narrow place between the tools (Rust) and the runtime (C17). It adds lifetimes
//! and names, and no behaviour.

pub mod ffi;
pub mod leases;
pub mod machine;
pub mod mcapi;
pub mod served;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Why a call failed, or how an application ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub ffi::lvd_status);

impl Status {
    pub const OK: Status = Status(ffi::LVD_OK);
    pub const STATE: Status = Status(ffi::LVD_E_STATE);
    pub const TIME: Status = Status(ffi::LVD_E_TIME);
    pub const FAULT: Status = Status(ffi::LVD_E_FAULT);
    pub const DEADLOCK: Status = Status(ffi::LVD_E_DEADLOCK);
    pub const STOPPED: Status = Status(ffi::LVD_E_STOPPED);
    pub const LAYOUT: Status = Status(ffi::LVD_E_LAYOUT);
    pub const UNKNOWN: Status = Status(ffi::LVD_E_UNKNOWN);
    pub const ARGUMENT: Status = Status(ffi::LVD_E_ARGUMENT);

    pub fn name(self) -> &'static str {
        // SAFETY: never null, constant text.
        let text = unsafe { CStr::from_ptr(ffi::lvd_status_name(self.0)) };
        text.to_str().unwrap_or("?")
    }

    pub fn text(self) -> &'static str {
        // SAFETY: never null, constant text.
        let text = unsafe { CStr::from_ptr(ffi::lvd_status_text(self.0)) };
        text.to_str().unwrap_or("?")
    }

    fn check(self) -> Result<(), Error> {
        match self {
            Status::OK => Ok(()),
            status => Err(Error {
                status,
                why: String::new(),
            }),
        }
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A call that failed: its status, and the sentence that came with it, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub why: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.why.is_empty() {
            true => write!(f, "{} ({})", self.status.text(), self.status.name()),
            false => write!(f, "{}", self.why),
        }
    }
}

impl std::error::Error for Error {}

/// How a runtime is set up; zeros are the runtime's own choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeOptions {
    pub workers: u32,
    pub no_pin: bool,
    pub no_spin: bool,
    pub spin_us: u32,
    pub time_limit_ms: u32,
    pub schedule: Schedule,
}

/// Which of the actors that can fire on a worker goes next, where priorities and promises leave a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// The one that could fire first.
    #[default]
    EventDriven,
    /// The next one in the order of loading, behind the one that ran last, and round.
    RoundRobin,
}

#[derive(Debug)]
struct RuntimeHandle(NonNull<ffi::lvd_runtime>);

// SAFETY: all calls on a runtime are thread-safe.
unsafe impl Send for RuntimeHandle {}
unsafe impl Sync for RuntimeHandle {}

impl Drop for RuntimeHandle {
    fn drop(&mut self) {
        // SAFETY: made by lvd_runtime_create; applications hold an Arc of this, so none is left.
        unsafe { ffi::lvd_runtime_destroy(self.0.as_ptr()) }
    }
}

/// One worker per core. Cheap to clone; ends with the last clone and the last application.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<RuntimeHandle>);

/// What a worker did so far.
pub type WorkerCounters = ffi::lvd_worker_counters;
/// What a channel carried so far, for one of its consumers.
pub type ChannelCounters = ffi::lvd_channel_counters;

impl Runtime {
    pub fn new(options: &RuntimeOptions) -> Result<Runtime, Error> {
        let raw = ffi::lvd_runtime_options {
            workers: options.workers,
            spin_us: options.spin_us,
            no_spin: options.no_spin,
            no_pin: options.no_pin,
            round_robin: options.schedule == Schedule::RoundRobin,
            time_limit_ms: options.time_limit_ms,
            entities: 0,
        };
        let mut out = std::ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        Status(unsafe { ffi::lvd_runtime_create(&raw, &mut out) }).check()?;
        let handle = NonNull::new(out).ok_or(Error {
            status: Status::OK,
            why: "the runtime gave nothing".to_string(),
        })?;
        Ok(Runtime(Arc::new(RuntimeHandle(handle))))
    }

    pub fn workers(&self) -> u32 {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_workers(self.0.0.as_ptr()) }
    }

    /// Nothing runs on the core of `worker` any more when this returns. `Status::STATE`: it was taken
    /// already, or is the last one.
    pub fn take_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the handle is live.
        Status(unsafe { ffi::lvd_core_take(self.0.0.as_ptr(), worker) }).check()
    }

    /// The same, waiting no longer than that. `Status::TIME`: somebody is there still, as the error says, and all
    /// is as it was.
    pub fn take_core_within(&self, worker: u32, timeout: Duration) -> Result<(), Error> {
        let mut why = [0 as c_char; 256];
        // SAFETY: the handle is live, the buffer as large as is said.
        let status = Status(unsafe {
            ffi::lvd_core_take_within(
                self.0.0.as_ptr(),
                worker,
                milliseconds(Some(timeout)),
                why.as_mut_ptr(),
                why.len(),
            )
        });
        status.check().map_err(|e| match status {
            Status::TIME => Error {
                status,
                why: text(why.as_ptr()),
            },
            _ => e,
        })
    }

    pub fn give_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the handle is live.
        Status(unsafe { ffi::lvd_core_give(self.0.0.as_ptr(), worker) }).check()
    }

    /// The workers whose core is for all.
    pub fn open(&self) -> Vec<u32> {
        let given = |&w: &u32| self.worker_counters(w).is_ok_and(|c| c.given);
        (0..self.workers()).filter(given).collect()
    }

    pub fn worker_counters(&self, worker: u32) -> Result<WorkerCounters, Error> {
        let mut out = WorkerCounters::default();
        // SAFETY: the handle is live, `out` valid.
        Status(unsafe { ffi::lvd_worker_counters_read(self.0.0.as_ptr(), worker, &mut out) })
            .check()?;
        Ok(out)
    }
}

/// A compiled network, or a C program as one: constant tables in a shared object, which stays loaded as
/// long as this or any application of it lives.
#[derive(Debug)]
pub struct Network {
    raw: NonNull<ffi::lvd_network>,
    object: Object,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is kept loaded")]
enum Object {
    Network(libloading::Library),
    Program(Program),
}

/// A C program that is loaded (`levada/program.h`).
#[derive(Debug)]
struct Program(NonNull<ffi::lvd_program>);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: its network goes with it, and applications of that have gone before.
        unsafe { ffi::lvd_program_close(self.0.as_ptr()) }
    }
}

impl Network {
    /// A C program, and no network of actors.
    pub fn is_program(&self) -> bool {
        matches!(self.object, Object::Program(_))
    }
}

// SAFETY: the tables are constant.
unsafe impl Send for Network {}
unsafe impl Sync for Network {}

/// An actor as a network names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorShape {
    pub name: String,
    pub class: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
}

/// The symbol of a shared object that is its `lvd_network`.
pub const NETWORK_SYMBOL: &[u8] = b"levada_network\0";

impl Network {
    /// Loads a shared object that the compiler made.
    ///
    /// # Safety
    /// The object's code runs in this process: it must come from the compiler (or be trusted as if).
    pub unsafe fn open(path: &Path) -> Result<Network, String> {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // What it lacks is found now, not when an actor calls it: that would end the process.
        // SAFETY: the caller vouches for the object.
        let object = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let object = object.map(libloading::Library::from).map_err(|e| {
            // What the loader says is the cause of what the crate says.
            let why = std::error::Error::source(&e).map_or(e.to_string(), |s| s.to_string());
            let path = path.display();
            match why.rsplit_once("undefined symbol: ") {
                Some((_, name)) => format!(
                    "cannot load {path}: nothing defines {name} (what is native in C++ is extern \"C\")"
                ),
                None => format!("cannot load {path}: {why}"),
            }
        })?;
        // SAFETY: the symbol is data of this type in every object that the compiler makes.
        let raw = unsafe { object.get::<*mut ffi::lvd_network>(NETWORK_SYMBOL) }
            .ok()
            .and_then(|symbol| NonNull::new(*symbol))
            .ok_or_else(|| format!("{} holds no network", path.display()))?;
        // SAFETY: points to the object's table.
        let layout = unsafe { raw.as_ref() }.layout;
        if layout != ffi::LVD_LAYOUT {
            return Err(format!(
                "{} is made for layout {layout} of the runtime, this is layout {}",
                path.display(),
                ffi::LVD_LAYOUT
            ));
        }
        Ok(Network {
            raw,
            object: Object::Network(object),
        })
    }

    /// Loads a copy of a C program: a shared object with a `main`, which gets the arguments, the first of
    /// them its path. Can be loaded as an application once.
    ///
    /// # Safety
    /// The program's code runs in this process: it must be trusted.
    pub unsafe fn program(path: &Path, arguments: &[String]) -> Result<Network, String> {
        let wrong = |e: Error| e.why;
        let file = path.to_string_lossy();
        let argv = std::iter::once(file.as_ref()).chain(arguments.iter().map(String::as_str));
        let argv: Result<Vec<CString>, Error> = argv.map(c_string).collect();
        let argv = argv.map_err(wrong)?;
        let raw: Vec<*const c_char> = argv.iter().map(|a| a.as_ptr()).collect();
        let path = CString::new(path.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| format!("{file:?} holds a zero byte"))?;
        let mut out = std::ptr::null_mut();
        let mut why = [0 as c_char; 512];
        let argc = std::ffi::c_int::try_from(raw.len()).map_err(|e| e.to_string())?;
        // SAFETY: everything pointed to outlives the call; the caller vouches for the program.
        let status = Status(unsafe {
            ffi::lvd_program_open(
                path.as_ptr(),
                argc,
                raw.as_ptr(),
                &mut out,
                why.as_mut_ptr(),
                why.len(),
            )
        });
        why[why.len() - 1] = 0;
        let Some(program) = NonNull::new(out).map(Program) else {
            let why = text(why.as_ptr());
            return Err(match why.is_empty() {
                true => format!("{file}: {}", Error { status, why }),
                false => why,
            });
        };
        // SAFETY: it is open.
        let network = unsafe { ffi::lvd_program_network(program.0.as_ptr()) };
        match NonNull::new(network.cast_mut()) {
            Some(raw) => Ok(Network {
                raw,
                object: Object::Program(program),
            }),
            None => Err(format!("{file} is no program")),
        }
    }

    fn table(&self) -> &ffi::lvd_network {
        // SAFETY: lives as long as the object.
        unsafe { self.raw.as_ref() }
    }

    pub fn actors(&self) -> usize {
        self.table().actors as usize
    }

    /// The names of the instances, in order.
    pub fn actor_names(&self) -> Vec<String> {
        // SAFETY: the table says how many there are.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter().map(|a| text(a.name)).collect()
    }

    /// All actors with the names of their ports, in order.
    pub fn describe(&self) -> Vec<ActorShape> {
        // SAFETY: the tables say how many there are.
        let list = unsafe { slice(self.table().actor, self.table().actors) };
        list.iter()
            .map(|actor| {
                // SAFETY: every actor has a class.
                let class = unsafe { &*actor.cls };
                let names = |ports: *const ffi::lvd_port_class, count: u32| {
                    // SAFETY: the class says how many there are.
                    let ports = unsafe { slice(ports, count) };
                    ports.iter().map(|p| text(p.name)).collect()
                };
                ActorShape {
                    name: text(actor.name),
                    class: text(class.name),
                    inputs: names(class.input, class.inputs),
                    outputs: names(class.output, class.outputs),
                }
            })
            .collect()
    }

    /// For each channel and consumer: producer, consumer, bytes of an element, in the order of
    /// [`Counters::channels`].
    pub fn links(&self) -> Vec<(u32, u32, u32)> {
        // SAFETY: the table says how many there are.
        let channels = unsafe { slice(self.table().channel, self.table().channels) };
        let mut links = Vec::new();
        for channel in channels {
            // SAFETY: likewise.
            for to in unsafe { slice(channel.to, channel.consumers) } {
                links.push((channel.from.actor, to.actor, channel.elem_size));
            }
        }
        links
    }
}

/// # Safety
/// `data` points to `len` values that live as long as the result, or `len` is 0.
unsafe fn slice<'a, T>(data: *const T, len: u32) -> &'a [T] {
    match data.is_null() || len == 0 {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(data, len as usize) },
    }
}

/// A C string of the runtime's; empty for null.
fn text(s: *const c_char) -> String {
    match s.is_null() {
        true => String::new(),
        // SAFETY: the runtime's strings are terminated and live.
        false => unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned(),
    }
}

/// How an application is loaded.
#[derive(Clone, Debug, Default)]
pub struct AppOptions {
    pub name: Option<String>,
    /// A worker for each actor.
    pub placement: Option<Vec<u32>>,
    /// What natives can ask for.
    pub options: Vec<(String, String)>,
    pub priority: i32,
    /// For channels that ask for none, in elements.
    pub capacity: u32,
}

/// One loaded network with its own state.
pub struct App {
    raw: NonNull<ffi::lvd_app>,
    // In this order: the application goes first, then what it stands on.
    network: Arc<Network>,
    runtime: Runtime,
}

// SAFETY: all calls on an application that are used here are thread-safe.
unsafe impl Send for App {}
unsafe impl Sync for App {}

#[derive(Clone, Debug, Default)]
pub struct ActorCounters {
    pub name: String,
    /// Where it is.
    pub worker: u32,
    /// Where it shall be: by the last move, or by the runtime's, from a worker that is stuck.
    pub target: u32,
    pub firings: u64,
    pub activations: u64,
    pub busy: Duration,
    pub longest: Duration,
    /// At the moment: for a channel, or for what is outside; or it has ended.
    pub waits: bool,
    /// For what is outside, in the middle of a firing.
    pub outside: bool,
}

/// All counters of an application at one moment.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub actors: Vec<ActorCounters>,
    /// One for each consumer of each channel.
    pub channels: Vec<ChannelCounters>,
    /// CPU time of its fibers on each worker: of a C program, all that it computes there.
    pub fibers: Vec<Duration>,
}

impl Counters {
    /// CPU time of all of it.
    pub fn busy(&self) -> Duration {
        let actors = self.actors.iter().map(|a| a.busy);
        actors.chain(self.fibers.iter().copied()).sum()
    }
}

/// What ended an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: &'static str,
    pub actor: String,
    pub action: String,
    pub file: String,
    pub line: u32,
    pub message: String,
}

fn c_string(s: &str) -> Result<CString, Error> {
    CString::new(s).map_err(|_| Error {
        status: Status(ffi::LVD_E_ARGUMENT),
        why: format!("{s:?} holds a zero byte"),
    })
}

impl AppOptions {
    /// Calls `f` with the options as C has them.
    fn with_raw<T>(
        &self,
        network: &Network,
        f: impl FnOnce(&ffi::lvd_app_options) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = self;
        let name = options.name.as_deref().map(c_string).transpose()?;
        let mut strings = Vec::new();
        for (name, value) in &options.options {
            strings.push((c_string(name)?, c_string(value)?));
        }
        let list: Vec<ffi::lvd_option> = strings
            .iter()
            .map(|(name, value)| ffi::lvd_option {
                name: name.as_ptr(),
                value: value.as_ptr(),
            })
            .collect();
        if let Some(placement) = &options.placement
            && placement.len() != network.actors()
        {
            return Err(Error {
                status: Status(ffi::LVD_E_ARGUMENT),
                why: "a placement names a worker for each actor".to_string(),
            });
        }
        let raw = ffi::lvd_app_options {
            name: name.as_ref().map_or(std::ptr::null(), |n| n.as_ptr()),
            placement: options
                .placement
                .as_ref()
                .map_or(std::ptr::null(), |p| p.as_ptr()),
            option: list.as_ptr(),
            option_count: list.len() as u32,
            priority: options.priority,
            capacity: options.capacity,
        };
        f(&raw)
    }
}

/// As the runtime takes a limit: negative is none.
fn milliseconds(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, |t| {
        i64::try_from(t.as_millis()).map_or(i64::from(i32::MAX), |ms| ms.min(i64::from(i32::MAX)))
    })
}

impl App {
    /// The bytes that it would have: its state, and the rings of its channels.
    pub fn size(runtime: &Runtime, network: &Network, options: &AppOptions) -> Result<u64, Error> {
        options.with_raw(network, |raw| {
            let mut bytes = 0;
            let mut why = [0 as c_char; 512];
            // SAFETY: everything pointed to outlives the call.
            let status = Status(unsafe {
                ffi::lvd_app_size(
                    runtime.0.0.as_ptr(),
                    network.raw.as_ptr(),
                    raw,
                    &mut bytes,
                    why.as_mut_ptr(),
                    why.len(),
                )
            });
            match status {
                Status::OK => Ok(bytes),
                status => Err(Error {
                    status,
                    why: text(why.as_ptr()),
                }),
            }
        })
    }

    pub fn load(
        runtime: &Runtime,
        network: &Arc<Network>,
        options: &AppOptions,
    ) -> Result<App, Error> {
        options.with_raw(network, |raw| App::load_raw(runtime, network, raw))
    }

    fn load_raw(
        runtime: &Runtime,
        network: &Arc<Network>,
        raw: &ffi::lvd_app_options,
    ) -> Result<App, Error> {
        let mut out = std::ptr::null_mut();
        let mut why = [0 as c_char; 512];
        // SAFETY: everything pointed to outlives the call, the network the application.
        let status = Status(unsafe {
            ffi::lvd_app_load(
                runtime.0.0.as_ptr(),
                network.raw.as_ptr(),
                raw,
                &mut out,
                why.as_mut_ptr(),
                why.len(),
            )
        });
        match (status, NonNull::new(out)) {
            (Status::OK, Some(app)) => {
                // SAFETY: just loaded, and not started: nobody else holds these ends.
                unsafe { ffi::lvd_sys_close_outside(app.as_ptr(), network.raw.as_ptr()) };
                Ok(App {
                    raw: app,
                    network: network.clone(),
                    runtime: runtime.clone(),
                })
            }
            (status, _) => {
                why[why.len() - 1] = 0;
                Err(Error {
                    status,
                    why: text(why.as_ptr()),
                })
            }
        }
    }

    fn call(
        &self,
        f: unsafe extern "C" fn(*mut ffi::lvd_app) -> ffi::lvd_status,
    ) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { f(self.raw.as_ptr()) }).check()
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The same, for who needs its code for longer than the application lives.
    pub fn network_arc(&self) -> Arc<Network> {
        self.network.clone()
    }

    pub fn start(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_start)
    }

    /// It goes before others of its priority, or does not any more.
    pub fn promise(&self, promised: bool) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_promise(self.raw.as_ptr(), promised) };
    }

    /// Nothing more of it begins. Fails with [`Status::TIME`] if a firing lasts longer than `timeout`;
    /// it is paused all the same.
    pub fn pause(&self, timeout: Duration) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_pause_within(self.raw.as_ptr(), milliseconds(Some(timeout))) })
            .check()
    }

    /// Told to end, or out of itself: nothing of it begins any more.
    pub fn is_ending(&self) -> bool {
        self.state() == ffi::LVD_APP_ENDING || self.has_ended()
    }

    /// [`App::wait`] would return at once.
    pub fn has_ended(&self) -> bool {
        self.state() == ffi::LVD_APP_ENDED
    }

    fn state(&self) -> std::ffi::c_int {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_get_state(self.raw.as_ptr()) }
    }

    pub fn resume(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_resume)
    }

    /// Ends its sources; what is in flight comes out, and then it ends by itself. Fails with
    /// [`Status::UNKNOWN`] if no actor is without inputs. A C program is asked to return.
    pub fn drain(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_drain)
    }

    /// Takes that back, of a C program that has not heard of it; fails with [`Status::STATE`] if it has.
    pub fn drain_no_more(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_drain_no_more)
    }

    /// What `old` leaves when it comes to a good end is for this one, which is not started yet. Both are
    /// kept until then, or until [`App::leaves_nothing`].
    pub fn inherit(&self, old: &App) -> Result<(), Error> {
        // SAFETY: both applications are live.
        Status(unsafe { ffi::lvd_app_inherit(self.raw.as_ptr(), old.raw.as_ptr()) }).check()
    }

    /// What it leaves ends with it, whoever was to have it.
    pub fn leaves_nothing(&self) {
        // SAFETY: the application is live; null is nobody.
        unsafe { ffi::lvd_app_inherit(std::ptr::null_mut(), self.raw.as_ptr()) };
    }

    /// What actors that both have do not take along from `old`, in words: one thing a line.
    pub fn anew(&self, old: &App) -> String {
        let ask = |text: &mut [u8]| {
            // SAFETY: both applications are live, the buffer as large as is said.
            unsafe {
                let (app, old) = (self.raw.as_ptr(), old.raw.as_ptr());
                ffi::lvd_app_anew(app, old, text.as_mut_ptr().cast(), text.len())
            }
        };
        let mut text = vec![0u8; ask(&mut []) + 1];
        ask(&mut text);
        text.pop();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// It goes on where `old` is, which is paused: what both have in common goes along. The old one is as it
    /// was, and is to be [finished](App::finish) before this one is started. Fails with [`Status::STATE`] where
    /// that is not possible at this moment.
    pub fn take_over(&self, old: &App) -> Result<(), Error> {
        let mut why = [0 as c_char; 512];
        // SAFETY: both applications are live, the buffer as large as is said.
        let status = Status(unsafe {
            ffi::lvd_app_take_over(
                self.raw.as_ptr(),
                old.raw.as_ptr(),
                why.as_mut_ptr(),
                why.len(),
            )
        });
        match status {
            Status::OK => Ok(()),
            status => Err(Error {
                status,
                why: text(why.as_ptr()),
            }),
        }
    }

    /// Whether natives of versions before it have left something that nobody has asked for: their code ends it.
    pub fn heirlooms_left(&self) -> bool {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_heirlooms_left(self.raw.as_ptr()) }
    }

    /// No source of it begins another firing for as long as it rests.
    pub fn rest(&self, rests: bool) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_rest(self.raw.as_ptr(), rests) }).check()
    }

    /// Ends it as if nothing more could fire; what is in flight is dropped.
    pub fn finish(&self) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_finish(self.raw.as_ptr()) }
    }

    /// Calls `then` once, from a thread of the runtime, when it has ended and nothing of it runs any
    /// more: [`App::wait`] returns soon after that. To be called before it is started, once.
    pub fn on_end(&self, then: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        type Then = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn ended(data: *mut c_void, _: ffi::lvd_status) {
            // SAFETY: the block holds what is put there below, or zero.
            let then = unsafe { (*data.cast::<*mut Then>()).as_mut() };
            if let Some(then) = then {
                // SAFETY: it came from Box::into_raw, and this runs once.
                let then = unsafe { Box::from_raw(then) };
                // A panic must not unwind into C.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(then));
            }
        }
        static KEY: u8 = 0;
        let key = (&raw const KEY).cast();
        let size = size_of::<*mut Then>();
        // SAFETY: the application is live, the key an address of ours.
        let block = unsafe { ffi::lvd_app_data(self.raw.as_ptr(), key, size, Some(ended)) };
        let Some(block) = NonNull::new(block.cast::<*mut Then>()) else {
            return Status(ffi::LVD_E_MEMORY).check();
        };
        // SAFETY: the block is of that size, and only `ended` reads it, later.
        unsafe { block.write(Box::into_raw(Box::new(Box::new(then)))) };
        Ok(())
    }

    /// Ends it between two firings, and waits until it has ended.
    pub fn stop(&self) -> Result<(), Error> {
        self.stop_within(None)
    }

    /// The same. Fails with [`Status::TIME`] if that lasts longer than `timeout`; it ends all the same.
    pub fn stop_within(&self, timeout: Option<Duration>) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_stop_within(self.raw.as_ptr(), milliseconds(timeout)) })
            .check()
    }

    /// How it ended; [`Status::TIME`] if it runs still after `timeout` (`None`: for ever).
    pub fn wait(&self, timeout: Option<Duration>) -> Status {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_wait(self.raw.as_ptr(), milliseconds(timeout)) })
    }

    /// What it has done, in its own unit; `None` if it never said.
    pub fn progress(&self) -> Option<(String, u64)> {
        let mut unit = std::ptr::null();
        // SAFETY: the application is live, `unit` valid.
        let done = unsafe { ffi::lvd_app_get_progress(self.raw.as_ptr(), &mut unit) };
        (!unit.is_null()).then(|| (text(unit), done))
    }

    pub fn move_actor(&self, actor: u32, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_move(self.raw.as_ptr(), actor, worker) }).check()
    }

    /// Nothing but this has the core of `worker` from now on, until it is unloaded. `Status::STATE`: the
    /// core is somebody's already, or the last one.
    pub fn take_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_take_for(self.raw.as_ptr(), worker) }).check()
    }

    /// The core of `worker`, which was taken for nobody, is its own in the same way.
    pub fn pass_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_pass(self.raw.as_ptr(), worker) }).check()
    }

    pub fn counters(&self) -> Result<Counters, Error> {
        let mut actors = self.network.actors() as u32;
        let mut channels = self.network.links().len() as u32;
        // SAFETY: zero is a value of every field.
        let zero: ffi::lvd_actor_counters = unsafe { std::mem::zeroed() };
        let mut actor = vec![zero; actors as usize];
        let mut channel = vec![ChannelCounters::default(); channels as usize];
        // SAFETY: both arrays hold as many as is said.
        Status(unsafe {
            ffi::lvd_app_counters(
                self.raw.as_ptr(),
                actor.as_mut_ptr(),
                &mut actors,
                channel.as_mut_ptr(),
                &mut channels,
            )
        })
        .check()?;
        actor.truncate(actors as usize);
        channel.truncate(channels as usize);
        let actors = actor.iter().map(|a| ActorCounters {
            name: text(a.name),
            worker: a.worker,
            target: a.target,
            firings: a.firings,
            activations: a.activations,
            busy: Duration::from_nanos(a.busy_ns),
            longest: Duration::from_nanos(a.longest_ns),
            waits: a.waits,
            outside: a.outside,
        });
        Ok(Counters {
            actors: actors.collect(),
            channels: channel,
            fibers: (0..self.runtime.workers())
                .map(|w| self.fibers_on(w))
                .collect(),
        })
    }

    /// CPU time of its fibers on a worker.
    fn fibers_on(&self, worker: u32) -> Duration {
        // SAFETY: the application is live.
        let ns = unsafe { ffi::lvd_app_fibers_busy_on(self.raw.as_ptr(), worker) };
        Duration::from_nanos(ns)
    }

    /// The fault that ended it.
    pub fn fault(&self) -> Option<Fault> {
        // SAFETY: zero is a value of every field.
        let mut raw: ffi::lvd_fault = unsafe { std::mem::zeroed() };
        // SAFETY: the application is live, `raw` valid.
        if !unsafe { ffi::lvd_app_fault(self.raw.as_ptr(), &mut raw) } {
            return None;
        }
        raw.message[raw.message.len() - 1] = 0;
        let kinds = [
            "none", "index", "division", "check", "memory", "illegal", "time", "native",
        ];
        Some(Fault {
            kind: kinds.get(raw.kind as usize).copied().unwrap_or("unknown"),
            actor: text(raw.actor),
            action: text(raw.action),
            file: text(raw.file),
            line: raw.line,
            message: text(raw.message.as_ptr()),
        })
    }

    /// Who waits for whom, in words.
    pub fn why(&self) -> String {
        let mut buffer = vec![0u8; 16 << 10];
        // SAFETY: the application is live, the buffer as large as is said.
        let len = unsafe {
            ffi::lvd_app_why(self.raw.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        buffer.truncate(len.min(buffer.len() - 1));
        String::from_utf8_lossy(&buffer).into_owned()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // SAFETY: loaded by lvd_app_load, unloaded once.
        unsafe { ffi::lvd_app_unload(self.raw.as_ptr()) }
    }
}
