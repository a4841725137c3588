// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares the hand-written declarations of `ffi.rs` with the C headers: a C program prints every size, offset and
//! constant.

use levada_sys::ffi;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

/// The C expressions to print, and the values that Rust has for them.
struct Check {
    c: String,
    rust: Vec<(String, usize)>,
}

impl Check {
    fn value(&mut self, c: &str, rust: usize) {
        writeln!(self.c, "  printf(\"%zu\\n\", (size_t)({c}));").unwrap();
        self.rust.push((c.to_string(), rust));
    }
}

macro_rules! check {
    ($check:ident, $($ty:ident { $($field:ident),* })*) => {$(
        $check.value(concat!("sizeof(", stringify!($ty), ")"), size_of::<ffi::$ty>());
        $($check.value(
            concat!("offsetof(", stringify!($ty), ", ", stringify!($field), ")"),
            offset_of!(ffi::$ty, $field),
        );)*
    )*};
}

macro_rules! constants {
    ($check:ident, $($name:ident)*) => {$(
        $check.value(stringify!($name), ffi::$name as usize);
    )*};
}

#[test]
fn declarations_match_the_headers() {
    let mut all = Check {
        c: String::new(),
        rust: Vec::new(),
    };
    check!(all,
        lvd_runtime_options {
            workers, spin_us, no_spin, no_pin, round_robin, action_time_limit_ns, entities, realtime,
            output_bytes_per_s, on_wakeup, argument
        }
        lvd_option { name, value }
        lvd_app_options {
            name, placement, option, option_count, priority, capacity, fixed_buffers, memory_max
        }
        lvd_port_class { name, elem_size }
        lvd_action_class { name, file, line }
        lvd_actor_class {
            name, file, state_size, flags, inputs, outputs, actions, input, output, action, init, run, end,
            state_schema
        }
        lvd_actor_desc { name, cls, params, priority }
        lvd_port_ref { actor, port }
        lvd_channel_desc { from, consumers, to, elem_size, capacity, threshold, initial }
        lvd_network { abi_version, name, actors, channels, actor, channel }
        lvd_actor_counters { name, worker, target, firings, activations, busy_ns, longest_ns }
        lvd_channel_counters { from, to, capacity, fill, loaded_capacity, put, got, wakes, full, empty }
        lvd_worker_counters {
            cpu, available, busy_ns, sleep_ns, activations, sleeps, wakes_sent, runs_ns, preempted_ns
        }
        lvd_lease_core { cpu, waiting, thread, transfers, preempted, reclaimed_idle, waits, waited_ns, longest_ns }
        lvd_fault { kind, actor, action, file, line, message }
        lvd_mcapi_node_info { id, process, alive }
        lvd_mcapi_endpoint_info {
            handle, node, port, alive, kind, sends, connected, opened, closed, peer, peer_node, peer_port,
            receivers, messages, elements, received, received_bytes
        }
        lvd_mcapi_domain_info { number, transport, processes, dead, node_count, endpoint_count, node, endpoint }
        lvd_mcapi_cleanup_result { processes, nodes, endpoints, gone }
        lvd_machine_report { state, result, text }
    );
    all.value("sizeof(lvd_status)", size_of::<ffi::lvd_status>());
    all.value("sizeof(lvd_fault_kind)", size_of::<ffi::lvd_fault_kind>());
    all.value("LVD_STATUS_COUNT", ffi::LVD_E_MAPPINGS as usize + 1);
    constants!(all, LVD_ABI_VERSION LVD_EXTERNAL LVD_OK LVD_E_ARGUMENT LVD_E_MEMORY LVD_E_LIMIT
        LVD_E_SYSTEM LVD_E_ABI LVD_E_STATE LVD_E_TIMEOUT LVD_E_EOF LVD_E_PEER_GONE LVD_E_FAULT
        LVD_E_DEADLOCK LVD_E_STOPPED LVD_E_CORRUPT LVD_E_CANCELLED LVD_E_NOT_FOUND LVD_E_MAPPINGS
        LVD_MCAPI_MESSAGES LVD_MCAPI_PACKETS LVD_MCAPI_SCALARS
        LVD_MACHINE_IDLE LVD_MACHINE_RUNNING LVD_MACHINE_EXITED LVD_MACHINE_FAILED LVD_MACHINE_SERVING
        LVD_MACHINE_DEAD);

    let printed = printed(&all.c);
    assert_eq!(printed.len(), all.rust.len());
    for ((what, rust), c) in all.rust.iter().zip(&printed) {
        assert_eq!(rust, c, "{what}");
    }
}

/// The numbers that a C program with `body` as its `main` prints; it includes the public headers.
fn printed(body: &str) -> Vec<usize> {
    let dir = std::env::temp_dir().join(format!("levada-layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, program) = (dir.join("layout.c"), dir.join("layout"));
    std::fs::write(
        &source,
        format!(
            "#include <levada/levada.h>\n#include <levada/lease.h>\n#include <levada/machine.h>\n\
             #include <levada/mcapi_observe.h>\n#include <stdio.h>\n\
             int main(void) {{\n{body}  return 0;\n}}\n"
        ),
    )
    .unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let compiled = Command::new("cc")
        .args(["-std=c17", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-I")
        .arg(include)
        .status()
        .unwrap();
    assert!(compiled.success());
    let printed = Command::new(&program).output().unwrap().stdout;
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8(printed).unwrap();
    text.lines().map(|l| l.parse().unwrap()).collect()
}
