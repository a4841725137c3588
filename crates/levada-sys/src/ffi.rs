// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declarations of the part of the C interface (`runtime/include/levada/*.h`) that the tools use. The headers describe
//! each function and field.
//!
//! They are written by hand; `tests/layout.rs` compares every size, offset and constant with the C compiler's.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

pub const LVD_ABI_VERSION: u32 = 10;
pub const LVD_EXTERNAL: u32 = u32::MAX;

pub type lvd_status = c_int;
pub const LVD_OK: lvd_status = 0;
pub const LVD_E_ARGUMENT: lvd_status = 1;
pub const LVD_E_MEMORY: lvd_status = 2;
pub const LVD_E_LIMIT: lvd_status = 3;
pub const LVD_E_SYSTEM: lvd_status = 4;
pub const LVD_E_ABI: lvd_status = 5;
pub const LVD_E_STATE: lvd_status = 6;
pub const LVD_E_TIMEOUT: lvd_status = 7;
pub const LVD_E_EOF: lvd_status = 8;
pub const LVD_E_PEER_GONE: lvd_status = 9;
pub const LVD_E_FAULT: lvd_status = 10;
pub const LVD_E_DEADLOCK: lvd_status = 11;
pub const LVD_E_STOPPED: lvd_status = 12;
pub const LVD_E_CORRUPT: lvd_status = 13;
pub const LVD_E_CANCELLED: lvd_status = 14;
pub const LVD_E_NOT_FOUND: lvd_status = 15;
pub const LVD_E_MAPPINGS: lvd_status = 16;

pub const LVD_APP_ENDED: c_int = 3;
pub const LVD_APP_ENDING: c_int = 4;

#[repr(C)]
pub struct lvd_runtime {
    _private: [u8; 0],
}

#[repr(C)]
pub struct lvd_program {
    _private: [u8; 0],
}

#[repr(C)]
pub struct lvd_app {
    _private: [u8; 0],
}

#[repr(C)]
pub struct lvd_runtime_options {
    pub workers: u32,
    pub spin_us: u32,
    pub no_spin: bool,
    pub no_pin: bool,
    pub round_robin: bool,
    pub action_time_limit_ns: u64,
    pub entities: u32,
    pub realtime: u32,
    pub output_bytes_per_s: u64,
    pub on_wakeup: Option<unsafe extern "C" fn(*mut c_void)>,
    pub argument: *mut c_void,
}

#[repr(C)]
pub struct lvd_option {
    pub name: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
pub struct lvd_app_options {
    pub name: *const c_char,
    pub placement: *const u32,
    pub option: *const lvd_option,
    pub option_count: u32,
    pub priority: i32,
    pub capacity: u32,
    pub fixed_buffers: bool,
    pub memory_max: u64,
}

#[repr(C)]
pub struct lvd_port_class {
    pub name: *const c_char,
    pub elem_size: u32,
}

#[repr(C)]
pub struct lvd_action_class {
    pub name: *const c_char,
    pub file: *const c_char,
    pub line: u32,
}

#[repr(C)]
pub struct lvd_actor_class {
    pub name: *const c_char,
    pub file: *const c_char,
    pub state_size: usize,
    pub flags: u32,
    pub inputs: u32,
    pub outputs: u32,
    pub actions: u32,
    pub input: *const lvd_port_class,
    pub output: *const lvd_port_class,
    pub action: *const lvd_action_class,
    pub init: Option<unsafe extern "C" fn(*mut c_void)>,
    pub run: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub end: Option<unsafe extern "C" fn(*mut c_void)>,
    pub state_schema: *const c_void,
}

#[repr(C)]
pub struct lvd_actor_desc {
    pub name: *const c_char,
    pub cls: *const lvd_actor_class,
    pub params: *const c_void,
    pub priority: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lvd_port_ref {
    pub actor: u32,
    pub port: u32,
}

#[repr(C)]
pub struct lvd_channel_desc {
    pub from: lvd_port_ref,
    pub consumers: u32,
    pub to: *const lvd_port_ref,
    pub elem_size: u32,
    pub capacity: u32,
    pub threshold: u32,
    pub initial: u32,
}

#[repr(C)]
pub struct lvd_network {
    pub abi_version: u32,
    pub name: *const c_char,
    pub actors: u32,
    pub channels: u32,
    pub actor: *const lvd_actor_desc,
    pub channel: *const lvd_channel_desc,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct lvd_actor_counters {
    pub name: *const c_char,
    pub worker: u32,
    pub target: u32,
    pub firings: u64,
    pub activations: u64,
    pub busy_ns: u64,
    pub longest_ns: u64,
    pub runs_ns: u64,
    pub waits: bool,
    pub waits_external: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lvd_channel_counters {
    pub from: lvd_port_ref,
    pub to: lvd_port_ref,
    pub capacity: u32,
    pub fill: u32,
    /// Its capacity at load; less than `capacity`: it has grown.
    pub loaded_capacity: u32,
    /// Number of elements for which the consumer waits on this channel; 0: it does not wait here.
    pub awaited: u32,
    pub put: u64,
    pub got: u64,
    pub wakes: u64,
    pub full: u64,
    pub empty: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lvd_worker_counters {
    pub cpu: i32,
    pub available: bool,
    pub busy_ns: u64,
    pub sleep_ns: u64,
    pub activations: u64,
    pub sleeps: u64,
    pub wakes_sent: u64,
    pub runs_ns: u64,
    pub preempted_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lvd_lease_core {
    pub cpu: u32,
    pub waiting: u32,
    pub thread: u32,
    pub transfers: u64,
    pub preempted: u64,
    pub reclaimed_idle: u64,
    pub waits: u64,
    pub waited_ns: u64,
    pub longest_ns: u64,
}

pub type lvd_fault_kind = c_int;

#[repr(C)]
pub struct lvd_fault {
    pub kind: lvd_fault_kind,
    pub actor: *const c_char,
    pub action: *const c_char,
    pub file: *const c_char,
    pub line: u32,
    pub message: [c_char; 256],
}

unsafe extern "C" {
    pub fn lvd_status_name(status: lvd_status) -> *const c_char;
    pub fn lvd_status_text(status: lvd_status) -> *const c_char;

    pub fn lvd_runtime_create(
        options: *const lvd_runtime_options,
        out: *mut *mut lvd_runtime,
    ) -> lvd_status;
    pub fn lvd_runtime_destroy(rt: *mut lvd_runtime);
    pub fn lvd_realtime_allowed(realtime: u32) -> bool;
    pub fn lvd_thread_set_service_priority(rt: *const lvd_runtime);
    pub fn lvd_worker_count(rt: *const lvd_runtime) -> u32;
    pub fn lvd_runtime_is_idle(rt: *const lvd_runtime) -> bool;
    pub fn lvd_worker_counters_read(
        rt: *mut lvd_runtime,
        worker: u32,
        out: *mut lvd_worker_counters,
    ) -> lvd_status;

    pub fn lvd_app_fibers_busy_on(app: *mut lvd_app, worker: u32) -> u64;

    pub fn lvd_leases_begin() -> lvd_status;
    pub fn lvd_leases_end();
    pub fn lvd_leases_read(core: *mut lvd_lease_core, count: *mut u32) -> lvd_status;

    pub fn lvd_program_open(
        path: *const c_char,
        argc: c_int,
        argv: *const *const c_char,
        out: *mut *mut lvd_program,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_program_network(program: *const lvd_program) -> *const lvd_network;
    pub fn lvd_program_close(program: *mut lvd_program);

    pub fn lvd_app_load(
        rt: *mut lvd_runtime,
        net: *const lvd_network,
        options: *const lvd_app_options,
        out: *mut *mut lvd_app,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_app_start(app: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_start_paused(app: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_reserve_rate(app: *mut lvd_app, reserved: bool) -> lvd_status;
    pub fn lvd_app_pause_timeout(app: *mut lvd_app, timeout_ns: i64) -> lvd_status;
    pub fn lvd_app_resume(app: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_size(
        rt: *mut lvd_runtime,
        net: *const lvd_network,
        options: *const lvd_app_options,
        bytes: *mut u64,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_app_memory(app: *mut lvd_app) -> u64;
    pub fn lvd_app_drain(app: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_cancel_drain(app: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_set_data_successor(app: *mut lvd_app, old: *mut lvd_app) -> lvd_status;
    pub fn lvd_app_has_unclaimed_data(app: *mut lvd_app) -> bool;
    pub fn lvd_app_hold_sources(app: *mut lvd_app, held: bool) -> lvd_status;
    pub fn lvd_app_reset_report(
        app: *const lvd_app,
        old: *const lvd_app,
        text: *mut c_char,
        size: usize,
    ) -> usize;
    pub fn lvd_app_upgrade_from(
        app: *mut lvd_app,
        old: *mut lvd_app,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_app_data(
        app: *mut lvd_app,
        key: *const c_void,
        size: usize,
        end: Option<unsafe extern "C" fn(*mut c_void, lvd_status)>,
    ) -> *mut c_void;
    pub fn lvd_app_stop_timeout(app: *mut lvd_app, timeout_ns: i64) -> lvd_status;
    pub fn lvd_app_get_state(app: *mut lvd_app) -> c_int;
    pub fn lvd_app_wait(app: *mut lvd_app, timeout_ns: i64) -> lvd_status;
    pub fn lvd_app_unload(app: *mut lvd_app);
    pub fn lvd_app_get_progress(app: *mut lvd_app, unit: *mut *const c_char) -> u64;
    pub fn lvd_app_get_input_progress(app: *mut lvd_app, total_bytes: *mut u64) -> u64;
    pub fn lvd_close_on_fork(fd: c_int, on: bool);
    pub fn lvd_os_close_in_child();
    pub fn lvd_app_name_of_code(
        rt: *mut lvd_runtime,
        code: *const c_void,
        name: *mut c_char,
        size: usize,
    ) -> bool;
    pub fn lvd_current_app_name() -> *const c_char;
    pub fn lvd_app_move(app: *mut lvd_app, actor: u32, worker: u32) -> lvd_status;
    pub fn lvd_core_reserve_for(app: *mut lvd_app, worker: u32) -> lvd_status;
    pub fn lvd_core_transfer(app: *mut lvd_app, worker: u32) -> lvd_status;
    pub fn lvd_core_reserve_timeout(
        rt: *mut lvd_runtime,
        worker: u32,
        timeout_ns: i64,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_core_reserve(rt: *mut lvd_runtime, worker: u32) -> lvd_status;
    pub fn lvd_core_release(rt: *mut lvd_runtime, worker: u32) -> lvd_status;
    pub fn lvd_app_counters(
        app: *mut lvd_app,
        actor: *mut lvd_actor_counters,
        actors: *mut u32,
        channel: *mut lvd_channel_counters,
        channels: *mut u32,
    ) -> lvd_status;
    pub fn lvd_app_fault(app: *mut lvd_app, out: *mut lvd_fault) -> bool;
    pub fn lvd_app_wait_report(app: *mut lvd_app, text: *mut c_char, size: usize) -> usize;
    pub fn lvd_app_exit(app: *mut lvd_app);
    pub fn lvd_app_set_quiescent_ok(app: *mut lvd_app);
}

// ---- ends.c, external.c of this crate --------------------------------------------------------

unsafe extern "C" {
    /// Closes all channel ends that no actor has. Call it before the application starts.
    pub fn lvd_sys_close_external(app: *mut lvd_app, net: *const lvd_network);
    /// Ends the process at once, without a report to the observer.
    pub fn levada_ends_now(status: c_int) -> !;
    /// Sets the function that is called before a call that ends the process, replaces its program or sends it a signal;
    /// its arguments are the kind of call, a value and the caller's address. It must be async-signal-safe.
    pub fn levada_ends_watch(observer: extern "C" fn(c_int, c_int, *const c_void) -> bool);
}

// ---- <levada/mcapi_observe.h> ----------------------------------------------------------------

pub const LVD_MCAPI_TRANSPORT_PMQ: u32 = 2;
pub const LVD_MCAPI_MESSAGES: u32 = 0;
pub const LVD_MCAPI_PACKETS: u32 = 1;
pub const LVD_MCAPI_SCALARS: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lvd_mcapi_node_info {
    pub id: u32,
    pub process: u32,
    pub alive: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lvd_mcapi_endpoint_info {
    pub handle: u32,
    pub node: u32,
    pub port: u32,
    pub alive: bool,
    pub kind: u32,
    pub sends: bool,
    pub connected: bool,
    pub opened: bool,
    pub closed: bool,
    pub peer: u32,
    pub peer_node: u32,
    pub peer_port: u32,
    pub receivers: u32,
    pub messages: u32,
    pub elements: u32,
    pub received: u64,
    pub received_bytes: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct lvd_mcapi_domain_info {
    pub number: u32,
    pub transport: u32,
    pub processes: u32,
    pub dead: u32,
    pub node_count: u32,
    pub endpoint_count: u32,
    pub node: *mut lvd_mcapi_node_info,
    pub endpoint: *mut lvd_mcapi_endpoint_info,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lvd_mcapi_cleanup_result {
    pub processes: u32,
    pub nodes: u32,
    pub endpoints: u32,
    pub gone: bool,
}

unsafe extern "C" {
    pub fn lvd_mcapi_domains(number: *mut u32, room: u32, count: *mut u32) -> lvd_status;
    pub fn lvd_mcapi_domain_snapshot(number: u32, out: *mut lvd_mcapi_domain_info) -> lvd_status;
    pub fn lvd_mcapi_domain_forget(seen: *mut lvd_mcapi_domain_info);
    pub fn lvd_mcapi_domain_clean(number: u32, out: *mut lvd_mcapi_cleanup_result) -> lvd_status;
}

// ---- <levada/machine.h>, <levada/process.h> --------------------------------------------------

pub const LVD_MACHINE_IDLE: c_int = 0;
pub const LVD_MACHINE_RUNNING: c_int = 1;
pub const LVD_MACHINE_EXITED: c_int = 2;
pub const LVD_MACHINE_FAILED: c_int = 3;
pub const LVD_MACHINE_SERVING: c_int = 4;
pub const LVD_MACHINE_DEAD: c_int = 5;

#[repr(C)]
pub struct lvd_machine {
    _private: [u8; 0],
}

#[repr(C)]
pub struct lvd_machine_report {
    pub state: c_int,
    pub result: u32,
    pub text: [c_char; 200],
}

unsafe extern "C" {
    pub fn lvd_window_error_text() -> *const c_char;
    pub fn lvd_machine_boot(
        kind: *const c_char,
        timeout_ns: i64,
        out: *mut *mut lvd_machine,
    ) -> lvd_status;
    pub fn lvd_machine_load(machine: *mut lvd_machine, file: *const c_char) -> lvd_status;
    pub fn lvd_machine_run(machine: *mut lvd_machine, timeout_ns: i64) -> lvd_status;
    pub fn lvd_machine_look(
        machine: *mut lvd_machine,
        timeout_ns: i64,
        out: *mut lvd_machine_report,
    );
    pub fn lvd_machine_stop(machine: *mut lvd_machine, timeout_ns: i64) -> lvd_status;
    pub fn lvd_machine_bell(machine: *const lvd_machine) -> c_int;
    pub fn lvd_machine_process(machine: *const lvd_machine) -> i32;
    pub fn lvd_machine_end(machine: *mut lvd_machine);
}

// ---- served.c of this crate ------------------------------------------------------------------

/// A booted unit with an application of its own.
#[repr(C)]
pub struct lvd_sys_served {
    _private: [u8; 0],
}

/// A stream of a call, and the file that is its other end.
#[repr(C)]
pub struct lvd_sys_flow {
    pub name: *const c_char,
    pub file: c_int,
    /// Size of an element in bytes.
    pub size: u32,
    /// True: from the file to the procedure.
    pub r#in: bool,
    pub status: lvd_status,
    /// `errno` of the file, or 0.
    pub error: c_int,
    /// Number of elements copied.
    pub count: u64,
}

unsafe extern "C" {
    pub fn lvd_sys_served_load(unit: *const c_char, out: *mut *mut lvd_sys_served) -> lvd_status;
    pub fn lvd_sys_served_state(served: *const lvd_sys_served) -> lvd_status;
    pub fn lvd_sys_served_process(served: *const lvd_sys_served) -> i32;
    pub fn lvd_sys_served_call(
        served: *mut lvd_sys_served,
        procedure: *const c_char,
        argument: *const c_void,
        size: usize,
        flow: *mut lvd_sys_flow,
        flows: u32,
        result: *mut c_void,
        result_size: *mut usize,
        error_text: *mut c_char,
        error_text_size: usize,
    ) -> lvd_status;
    pub fn lvd_sys_served_end(served: *mut lvd_sys_served);
}
