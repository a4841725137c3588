// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prepares the load of an application: compile, open, size its memory, and check the request. Errors are found
//! before anything is changed.

use crate::host::Host;
use crate::isolated::VersionSettings;
use crate::lifecycle::load::{Load, claims};
use crate::mapping::placement_file;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::ops::prepare_process::{Client, Prepared};
use crate::ops::state::ServerState;
use crate::ops::{memory_limit, prepare_process};
use crate::protocol::timeout::timeout_from;
use crate::protocol::{Failed, LoadRequest};
use levada_sys::Network;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An application with everything that its load needs. An isolated one is not opened here.
pub(crate) struct PreparedLoad {
    pub request: LoadRequest,
    pub prepared: Prepared,
    pub load: Option<Load>,
    /// What is left of the request's timeout.
    pub time_left: Option<Duration>,
}

impl PreparedLoad {
    /// The settings for a child process.
    pub fn settings(&self) -> VersionSettings {
        VersionSettings {
            options: self.prepared.options.clone(),
            limits: Limits {
                rate: self.request.rate,
                cpus: self.request.cpus,
            },
            priority: self.request.priority,
        }
    }

    /// Empty until a name is assigned.
    pub fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or_default()
    }
}

/// `remembered`: it is in the state folder, so it is written to the journal before it is opened.
pub(crate) fn prepare_load(
    served: &ServerState,
    request: LoadRequest,
    client: Option<&Client>,
    remembered: bool,
) -> Result<PreparedLoad, Failed> {
    let begun = Instant::now();
    let timeout = request
        .timeout
        .map(|timeout| timeout_from(Some(timeout), timeout));
    let timeout = timeout.transpose()?;
    let left = || timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
    let limits = Limits {
        rate: positive("rate", request.rate)?,
        cpus: positive("cpus", request.cpus)?,
    };
    check_neighbor_load(served, &request.core_usage_by_others)?;
    // Code of an isolated application may end its process, or block it.
    let opens = !request.isolate && !served.host.is_isolated();
    let prepare =
        || prepare_process::prepare(&served.command, &request, opens, &served.preparing, client);
    let mut prepared = prepare()?;
    if !request.arguments.is_empty() && !prepared.program {
        let what = format!("{} is a network, and takes no arguments", prepared.network);
        return Err(Refusal::new(Kind::Wrong, what)
            .help("--set gives its parameters values; arguments are for C programs (.so)")
            .into());
    }
    let kind = match (prepared.program, request.isolate) {
        (true, _) => Some("a C program: its forks and procedures run on all"),
        (_, true) => Some("isolated: its own process has workers on all"),
        _ => None,
    };
    for (given, feature, option) in [
        (request.placement.is_some(), "a placement", "--placement"),
        (request.exclusive, "a core for it alone", "--exclusive"),
    ] {
        if let Some(kind) = kind.filter(|_| given) {
            let network = &prepared.network;
            let what = format!("{feature} is for networks, and {network} is {kind}");
            return Err(Refusal::new(Kind::Wrong, what)
                .help(format!("leave out {option}"))
                .into());
        }
    }
    if request.isolate {
        return Ok(PreparedLoad {
            time_left: left(),
            request,
            prepared,
            load: None,
        });
    }
    // SAFETY: the compiler has just created the object, or has verified its content; a program that is not isolated is
    // trusted.
    let open = |prepared: &Prepared| unsafe {
        if prepared.program {
            Network::program(&prepared.object, &request.arguments)
        } else {
            Network::open(&prepared.object)
        }
    };
    // Constructors run when it is opened.
    if let (true, Some(memory), Some(name)) = (remembered, &served.store, &request.name) {
        memory.journal().record_start(name);
    }
    let mut opened = open(&prepared);
    if opened.is_err() && !prepared.program && is_removed(&prepared.object) {
        // A dependency has changed, such as a library: it is compiled again, once.
        prepared = prepare()?;
        opened = open(&prepared);
    }
    let network = opened.map_err(|what| Refusal::new(Kind::Wrong, what))?;
    let load = Load {
        name: String::new(),
        network_class: prepared.network.clone(),
        network: Arc::new(network),
        // The profile of a program depends on its arguments.
        object: (!prepared.program).then(|| prepared.object.clone()),
        options: prepared.options.clone(),
        priority: request.priority,
        pins: Vec::new(),
        initial_workers: None,
        load_by_others: request.core_usage_by_others.clone(),
        limits,
        fixed_buffers: request.fixed_buffers,
        memory: request.memory,
        can_count: prepared.counts,
        force: request.force,
        exclusive: request.exclusive,
        reserved_core: None,
    };
    Ok(PreparedLoad {
        time_left: left(),
        request,
        prepared,
        load: Some(load),
    })
}

/// Checks the value of a limit.
fn positive(what: &str, given: Option<f64>) -> Result<Option<f64>, Refusal> {
    match given {
        Some(n) if !(n.is_finite() && (1e-3..=1e9).contains(&n)) => {
            let n = levada_map::format_number(n);
            let what = format!("{what} is {n}: it is a number from 0.001 to 1000000000");
            Err(Refusal::new(Kind::Wrong, what))
        }
        given => Ok(given),
    }
}

/// Checks the reported load of others on the cores.
fn check_neighbor_load(served: &ServerState, usage: &[f64]) -> Result<(), Refusal> {
    let wrong = |what: String| Err(Refusal::new(Kind::Wrong, what));
    let workers = served.host.runtime().workers() as usize;
    // The parent host may have another number of cores than this child since its start.
    if usage.len() > workers && !served.host.is_isolated() {
        return wrong(format!(
            "core_usage_by_others has {} numbers, and there are {workers} workers",
            usage.len()
        ));
    }
    match usage.iter().find(|n| !(0.0..=1e3).contains(*n)) {
        Some(n) => {
            let n = levada_map::format_number(*n);
            wrong(format!(
                "core_usage_by_others has {n}: each is a number from 0 to 1000"
            ))
        }
        None => Ok(()),
    }
}

/// The name of an application in an error message.
pub(crate) fn label(request: &LoadRequest) -> String {
    let name = request.name.as_ref();
    name.unwrap_or(&request.network).clone()
}

/// Checks that there is memory for all of them.
pub(crate) fn check_memory(host: &Host, ready: &[PreparedLoad]) -> Result<(), Failed> {
    let left = memory_limit::bytes_left();
    let several = ready.len() > 1;
    let mut all = 0u64;
    for one in ready {
        // An isolated application is sized where it is opened.
        let Some(load) = &one.load else {
            continue;
        };
        let name = one.request.name.as_ref().unwrap_or(&load.network_class);
        let needs = host.check_memory(name, load).map_err(|refusal| {
            let owner = several.then(|| label(&one.request));
            Failed::from(refusal).of(owner)
        })?;
        all = all.saturating_add(needs);
        if let Some(left) = left
            && all > left
        {
            let what = format!("{}, and fewer are left", claims(name, needs));
            return Err(Refusal::new(Kind::Limit, what)
                .help(load.smaller_help("unload what is not needed"))
                .into());
        }
    }
    Ok(())
}

/// The pins from the placement file of the request.
pub(crate) fn pins(
    served: &ServerState,
    name: &str,
    request: &LoadRequest,
    load: &Load,
) -> Result<Vec<Option<u32>>, Failed> {
    let Some(file) = &request.placement else {
        return Ok(Vec::new());
    };
    let path = request.directory.join(file);
    let wrong = |what: String| Refusal::new(Kind::Wrong, format!("{}: {what}", path.display()));
    let text = crate::util::text_file::read_regular(&path).map_err(|e| wrong(e.to_string()))?;
    let workers = served.host.machine().workers();
    let pins = placement_file::pins(
        &text,
        name,
        &load.network_class,
        &load.network,
        workers,
        true,
    );
    Ok(pins.map_err(|p| wrong(p.what).help(p.help))?)
}

/// Removes a file; true if it is not there any more.
fn is_removed(path: &Path) -> bool {
    match std::fs::remove_file(path) {
        Ok(()) => true,
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}
