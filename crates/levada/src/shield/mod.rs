// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada shield`: runs a program alone on cores of its own.

mod class;
mod hosts;
mod report;
mod run;
mod status;
mod wire;

use crate::cli::{RaiseArgs, ShieldArgs, ShieldCommand};
use crate::common::output::{self, Failure, failure_with, plural};
use levada_cores::core_load::measure;
use levada_cores::shield::guard::RealtimeScope;
use levada_cores::shield::{self as shields, cores};
use levada_cores::{CoreSet, Load, Machine, Method, Request, Topology};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

impl From<levada_cores::Error> for Failure {
    fn from(e: levada_cores::Error) -> Failure {
        Failure {
            help: e.help,
            ..Failure::new(e.what)
        }
    }
}

pub fn shield(args: &ShieldArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => raise(&args.raise),
        Some(ShieldCommand::Status(args)) => status::status(args),
        Some(ShieldCommand::Release(args)) => release(args.cores.as_ref(), args.json),
        Some(ShieldCommand::Restore(args)) => restore(args.json),
    }
}

fn raise(args: &RaiseArgs) -> Result<ExitCode, Failure> {
    // The shield must survive the end of the reader of its messages. The program gets the original action.
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    if let Some(descriptor) = args.control_fd {
        return wire::serve(args, descriptor);
    }
    let done = plan(args).and_then(|plan| match args.pid {
        Some(_) => run::attach(&plan),
        None => run::run(&plan),
    });
    match args.pid {
        None if !args.program.is_empty() => done.map_err(Failure::of_ours),
        _ => done,
    }
}

/// Everything that is determined before anything is changed.
struct Plan<'a> {
    args: &'a RaiseArgs,
    request: Request,
    load: Load,
    topology: Topology,
    /// Declared last: hosts take the cores back after the shield has been lowered.
    left: hosts::VacatedCores,
}

fn plan(args: &RaiseArgs) -> Result<Plan<'_>, Failure> {
    let _urgent = RealtimeScope::now();
    /// A named core is emptied whatever runs on it; choosing a core needs a longer sample.
    const SAMPLE_SHORT: Duration = Duration::from_millis(20);
    const SAMPLE_LONG: Duration = Duration::from_millis(200);
    if args.program.is_empty() && args.pid.is_none() {
        return failure_with(
            "what is to run there?",
            "name a program, as in: levada shield 3 -- ./program, or a process: --pid PID",
        );
    }
    let machine = Machine::this();
    // First, since an existing shield restricts this process.
    shields::check_available(&machine, &args.cores.clone().unwrap_or_default())?;
    let topology = Topology::of(&machine);
    let shielded = shields::shielded_cores(&shields::list_shields());
    let wanted = match (&args.cores, args.count) {
        (Some(named), _) => {
            shields::check(named, &topology, &shielded)?;
            Some(named.clone())
        }
        (None, Some(n)) => {
            let usable = topology.online.and(&topology.allowed);
            let free = usable.without(&shielded).len();
            if n as usize >= free {
                let all = plural(n as usize, "core");
                let but = if shielded.is_empty() {
                    String::new()
                } else {
                    format!(" but {}, which shields have", cores(&shielded))
                };
                return failure_with(
                    format!("{all} cannot be shielded: there are {free}{but}"),
                    "one must remain",
                );
            }
            None
        }
        (None, None) => {
            return failure_with(
                "which core?",
                "name it, as in: levada shield 3 -- ./program, or let one be chosen: --cores 1",
            );
        }
    };
    // If nothing is printed about the evicted threads, they need not be measured.
    let is_silent = args.quiet || args.control_fd.is_some();
    let load = match &wanted {
        Some(_) if is_silent && !args.single_target => Load::default(),
        Some(_) => measure(SAMPLE_SHORT),
        None => measure(SAMPLE_LONG),
    };
    let wanted = wanted
        .unwrap_or_else(|| load.cheapest(args.count.unwrap_or(1) as usize, &topology, &shielded));
    let others = shields::check(&wanted, &topology, &shielded)?;
    let request = Request {
        lightest: args.single_target.then(|| load.lightest(&others)).flatten(),
        cores: wanted,
        method: args.method.as_deref().and_then(Method::from_name),
        exclude: args.exclude.clone(),
        pid: args.pid,
        thread: args.thread,
        apart: args.deadline.is_some(),
    };
    Ok(Plan {
        args,
        left: hosts::leave(&request.cores),
        request,
        load,
        topology,
    })
}

fn release(wanted: Option<&CoreSet>, json: bool) -> Result<ExitCode, Failure> {
    let released = shields::release(wanted)?;
    if json {
        let all: Vec<String> = released.iter().map(CoreSet::to_string).collect();
        output::line(&json!({ "released": all }).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if released.is_empty() {
        output::line("there is no shield")?
    } else {
        for one in released {
            output::line(&format!("released {}", cores(&one)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn restore(json: bool) -> Result<ExitCode, Failure> {
    let machine = Machine::this();
    let restored = shields::restore_abandoned(&machine)?;
    for one in restored.iter().filter(|_| !json) {
        output::line(&report::restored(one))?;
    }
    let there = shields::list_shields().into_iter();
    let held: Vec<_> = there
        .filter(|(_, held)| held.holder(&machine).is_some())
        .collect();
    if restored.is_empty() && !held.is_empty() {
        let all = shields::shielded_cores(&held);
        let verb = if held.len() == 1 { "holds" } else { "hold" };
        return failure_with(
            format!(
                "the shield{} on {} still {verb}",
                if held.len() == 1 { "" } else { "s" },
                cores(&all)
            ),
            format!("levada shield release {all} ends that"),
        );
    }
    let failed = restored.iter().any(|r| !r.failed.is_empty());
    if json {
        let all: Vec<Value> = restored.iter().map(report::restored_json).collect();
        output::report(json!({ "restored": all }), failed)?;
    } else if restored.is_empty() {
        output::line("nothing to restore")?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
