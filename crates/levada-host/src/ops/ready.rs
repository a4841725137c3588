// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making ready: from a request to an application with all that its load needs. What is wrong with it is told
//! here, before anything is touched: it is prepared, opened, and looked at whether there is memory for it.

use crate::host::Host;
use crate::isolated::Given;
use crate::lifecycle::load::Load;
use crate::mapping::placement_file;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::ops::prepare_process::{Client, Prepared};
use crate::ops::state::Served;
use crate::ops::{memory_limit, prepare_process};
use crate::protocol::timeout::limit;
use crate::protocol::{Failed, LoadRequest};
use levada_sys::Network;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An application with all that its load needs. One that is isolated is not even opened here.
pub(crate) struct Ready {
    pub request: LoadRequest,
    pub prepared: Prepared,
    pub load: Option<Load>,
    /// What making it ready has left of the time that its request gives it.
    pub left: Option<Duration>,
}

impl Ready {
    /// What a process of its own is given for it.
    pub fn given(&self) -> Given {
        Given {
            options: self.prepared.options.clone(),
            limits: Limits {
                rate: self.request.rate,
                share: self.request.share,
            },
            priority: self.request.priority,
        }
    }

    /// Empty as long as it has none.
    pub fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or_default()
    }
}

/// The end of this host would be laid at the door of what is `remembered`, once it is opened.
pub(crate) fn make_ready(
    served: &Served,
    request: LoadRequest,
    client: Option<&Client>,
    remembered: bool,
) -> Result<Ready, Failed> {
    let begun = Instant::now();
    let within = request.within.map(|within| limit(Some(within), within));
    let within = within.transpose()?;
    let left = || within.map(|within| within.saturating_sub(begun.elapsed()));
    let limits = Limits {
        rate: positive("rate", request.rate)?,
        share: positive("share", request.share)?,
    };
    beside_of_cores(served, &request.beside)?;
    // What has a process of its own may end it, or hold it up.
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
        (true, _) => Some("a C program, whose forks and procedures run on all"),
        (_, true) => Some("isolated: its own process has workers on all"),
        _ => None,
    };
    if let Some(kind) = kind.filter(|_| request.placement.is_some()) {
        let what = format!(
            "a placement is for networks, and {} is {kind}",
            prepared.network
        );
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out --placement")
            .into());
    }
    if let Some(kind) = kind.filter(|_| request.exclusive) {
        let what = format!(
            "a core for it alone is for networks, and {} is {kind}",
            prepared.network
        );
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out --exclusive")
            .into());
    }
    if request.isolate {
        return Ok(Ready {
            left: left(),
            request,
            prepared,
            load: None,
        });
    }
    // SAFETY: the compiler has just made it, or vouches for it by its content; a program is trusted where
    // it is not isolated.
    let open = |prepared: &Prepared| unsafe {
        match prepared.program {
            true => Network::program(&prepared.object, &request.arguments),
            false => Network::open(&prepared.object),
        }
    };
    // Some of its code may run at once.
    if let (true, Some(memory), Some(name)) = (remembered, &served.memory, &request.name) {
        memory.journal().begins(name);
    }
    let mut opened = open(&prepared);
    if opened.is_err() && !prepared.program && std::fs::remove_file(&prepared.object).is_ok() {
        // Something has changed around it, such as a library: it is made anew, once.
        prepared = prepare()?;
        opened = open(&prepared);
    }
    let network = opened.map_err(|what| Refusal::new(Kind::Wrong, what))?;
    let load = Load {
        name: String::new(),
        class: prepared.network.clone(),
        network: Arc::new(network),
        // What is measured of a program depends on what it is told to do.
        object: (!prepared.program).then(|| prepared.object.clone()),
        options: prepared.options.clone(),
        priority: request.priority,
        pins: Vec::new(),
        seats: None,
        beside: request.beside.clone(),
        limits,
        counts: prepared.counts,
        anyway: request.anyway,
        exclusive: request.exclusive,
        core: None,
    };
    Ok(Ready {
        left: left(),
        request,
        prepared,
        load: Some(load),
    })
}

/// A number that a limit can have.
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

/// What others take of cores can be no other numbers than these.
fn beside_of_cores(served: &Served, beside: &[f64]) -> Result<(), Refusal> {
    let wrong = |what: String| Err(Refusal::new(Kind::Wrong, what));
    let workers = served.host.runtime().workers() as usize;
    // The host that has started this one may have been given more cores, or fewer, since it began itself.
    if beside.len() > workers && !served.host.is_isolated() {
        return wrong(format!(
            "beside has {} numbers, and there are {workers} workers",
            beside.len()
        ));
    }
    match beside.iter().find(|n| !(0.0..=1e3).contains(*n)) {
        Some(n) => {
            let n = levada_map::format_number(*n);
            wrong(format!("beside has {n}: each is a number from 0 to 1000"))
        }
        None => Ok(()),
    }
}

/// What one of several is called when something is wrong with it.
pub(crate) fn whose(request: &LoadRequest) -> String {
    let name = request.name.as_ref();
    name.unwrap_or(&request.network).clone()
}

/// Is there memory for them?
pub(crate) fn fits(host: &Host, ready: &[Ready]) -> Result<(), Failed> {
    let left = memory_limit::bytes_left();
    let several = ready.len() > 1;
    let mut all = 0u64;
    for one in ready {
        // What is isolated is sized where it is opened.
        let Some(load) = &one.load else {
            continue;
        };
        let needs = host.size(load).map_err(|refusal| {
            let whose = several.then(|| whose(&one.request));
            Failed::from(refusal).of(whose)
        })?;
        all = all.saturating_add(needs);
        let name = one.request.name.as_ref().unwrap_or(&load.class);
        let claims = format!("{name} claims {needs} bytes for its state and its channels");
        if let Some(limit) = one.request.memory
            && needs > limit
        {
            let what = format!("{claims}, and may have {limit}");
            return Err(Refusal::new(Kind::Limit, what)
                .help(less(load, "allow it more with --memory"))
                .into());
        }
        if let Some(left) = left
            && all > left
        {
            let what = format!("{claims}, and there are not so many left");
            return Err(Refusal::new(Kind::Limit, what)
                .help(less(load, "unload what is not needed"))
                .into());
        }
    }
    Ok(())
}

/// What helps where it claims too much; what a C program claims here does not depend on it.
fn less(load: &Load, other: &str) -> String {
    match load.network.is_program() {
        true => other.to_string(),
        false => format!("smaller channels (bufferSize) take less, or {other}"),
    }
}

/// Where the file that the request names keeps its actors.
pub(crate) fn pins(
    served: &Served,
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
    let pins = placement_file::pins(&text, name, &load.class, &load.network, workers, true);
    Ok(pins.map_err(|p| wrong(p.what).help(p.help))?)
}
