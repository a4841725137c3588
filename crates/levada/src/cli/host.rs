// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada host`, and of the commands that talk to a host.

use super::network::{CompileArgs, GivenArgs, NetworkArgs, RuntimeArgs, ScheduleHow};
use super::values::{amount, seconds, size};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct HostArgs {
    /// Listen here [default: $XDG_RUNTIME_DIR/levada/host.sock, or /run/levada/host.sock for root]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "LEVADA_HOST")]
    pub socket: Option<PathBuf>,
    /// Listen on this descriptor, remember nothing: for an application that a host isolates
    #[arg(long, value_name = "FD", hide = true, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(3..))]
    pub listener: Option<i32>,
    /// Let this group use it, too
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Remember here what is loaded [default: $XDG_STATE_HOME/levada/host, or /var/lib/levada/host for
    /// root]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Load what ran when the last host ended or was killed: without quarantined applications, or all
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "safe"
    )]
    pub restore: Option<RestoreWhat>,
    /// When it is to end, wait no longer than this for a firing that does not end
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds, default_value = "20")]
    pub timeout: f64,
    /// Limit what each application prints, in bytes per second (K, M, G); one that prints more waits
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size, default_value = "1M")]
    pub output_rate: u64,
    /// Print, once it answers, a line of JSON on the output: what GET /host says
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum RestoreWhat {
    /// All except quarantined applications, which have ended a host
    Safe,
    /// Quarantined applications, too
    All,
}

impl HostArgs {
    /// As arguments, for a host that is to work as this one does.
    pub fn for_another(&self) -> Vec<OsString> {
        let RuntimeArgs {
            workers,
            action_time_limit,
            spin,
            no_balance,
            schedule,
            // Isolated code gets no real-time priority, since it is not trusted.
            realtime: _,
        } = &self.runtime;
        let number = |name: &str, n: Option<u32>| n.map(|n| format!("--{name}={n}").into());
        let mut all = vec![
            OsString::from(format!("--timeout={}", self.timeout)),
            OsString::from(format!("--output-rate={}", self.output_rate)),
        ];
        all.extend(number("workers", *workers));
        all.extend(number("action-time-limit", *action_time_limit));
        all.extend(number("spin", *spin));
        all.extend(no_balance.then(|| "--no-balance".into()));
        let around = *schedule == ScheduleHow::RoundRobin;
        all.extend(around.then(|| "--schedule=round-robin".into()));
        all
    }

    pub fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.timeout)
    }
}

/// Which host, and how it is told what it says.
#[derive(Args, Debug)]
pub struct AtArgs {
    /// The host's socket [default: as for levada host]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "LEVADA_HOST")]
    pub socket: Option<PathBuf>,
    /// Print what the host says as JSON
    #[arg(long)]
    pub json: bool,
    /// Wait no longer than this for the result [default: 30; 1800 for load, which may compile]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub timeout: Option<f64>,
}

/// NETWORK may also be a C program, a shared object (.so) with a main, or a manifest (.toml): several
/// applications, all or none.
#[derive(Args, Debug)]
pub struct LoadArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    /// Know it by this name [default: the last part of the network's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add this to the priority of its actors (workers tell -4 to 3 apart; beyond, the nearest)
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub priority: i32,
    /// Refuse it if its state and channels take more than so many bytes (K, M, G)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size)]
    pub memory: Option<u64>,
    /// Reserve a rate: units per second (what it counts, such as frames); it gets no more
    #[arg(long, value_name = "FPS", allow_negative_numbers = true, value_parser = amount)]
    pub rate: Option<f64>,
    /// Limit it to this number of cores, such as 0.5
    #[arg(long, value_name = "CORES", allow_negative_numbers = true, value_parser = amount)]
    pub cpus: Option<f64>,
    /// Load it even if that breaks a reserved rate
    #[arg(long)]
    pub force: bool,
    /// Give it a core that nothing else of the host is on
    #[arg(long)]
    pub exclusive: bool,
    /// Keep the actors that this file names on the workers it gives them: a placement (TOML), or a
    /// mapping of Orcc's (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub placement: Option<PathBuf>,
    /// Give it a process of its own: for code that is not trusted
    #[arg(long)]
    pub isolate: bool,
    /// Do not start it yet: resume does
    #[arg(long)]
    pub paused: bool,
    #[command(flatten)]
    pub compile: CompileArgs,
    #[command(flatten)]
    pub at: AtArgs,
    /// What the main of a C program is given; behind -- also what looks like an option
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ReplaceArgs {
    /// The application that is replaced
    #[arg(value_name = "APPLICATION")]
    pub old: String,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args, Debug)]
pub struct UnloadArgs {
    #[arg(value_name = "NAME", required_unless_present = "ended")]
    pub name: Option<String>,
    /// All that have ended or failed: what `list` still shows of them is forgotten
    #[arg(long, conflicts_with_all = ["name", "now"])]
    pub ended: bool,
    /// At once: what is in flight is dropped
    #[arg(long)]
    pub now: bool,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct OneArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct AllArgs {
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct MoveArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
    #[arg(value_name = "ACTOR")]
    pub actor: String,
    /// Move it to this worker, and pin it there
    #[arg(
        value_name = "WORKER",
        allow_negative_numbers = true,
        required_unless_present = "unpin"
    )]
    pub worker: Option<u32>,
    /// Unpin it: the mapper may move it again
    #[arg(long, conflicts_with = "worker")]
    pub unpin: bool,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Go on with what happens, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Leave out events up to this number, and say how many after it are not kept any more
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub since: Option<u64>,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Time between two updates
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_negative_numbers = true, value_parser = seconds)]
    pub interval: f64,
    #[command(flatten)]
    pub at: AtArgs,
}

/// Without --simulate: of the host's applications.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// Map what this file describes instead: machine and applications as TOML, written by hand or by
    /// `levada run --record`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub simulate: Option<PathBuf>,
    #[command(flatten)]
    pub how: SimulateArgs,
    #[command(flatten)]
    pub at: AtArgs,
}

/// How a description is mapped.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// levada, partition, glb, lb, round-robin; all of them; or what was recorded
    #[arg(
        long,
        value_name = "NAME",
        default_value = "levada",
        requires = "simulate"
    )]
    pub strategy: String,
    /// Workers take their actors in turn, ready or not, instead of those that can fire
    #[arg(long, requires = "simulate")]
    pub round_robin: bool,
    /// Keep the actors that this file names on the cores it gives them: a placement (TOML), or a
    /// mapping of Orcc's (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "simulate")]
    pub placement: Option<PathBuf>,
    /// Write the placement into this file, of the first strategy where it is all; without --simulate that
    /// of what runs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub write: Option<PathBuf>,
}
