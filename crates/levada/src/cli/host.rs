// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada host`, and of the commands that talk to a host.

use super::network::{CompileArgs, GivenArgs, NetworkArgs, RuntimeArgs, ScheduleHow};
use super::values::{amount, seconds, size};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct HostArgs {
    /// The socket on which the host listens [default: $XDG_RUNTIME_DIR/levada/host.sock, or
    /// /run/levada/host.sock for root]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "LEVADA_HOST")]
    pub socket: Option<PathBuf>,
    /// Listen on this descriptor and save no state: for an isolated application
    #[arg(
        long,
        value_name = "FD",
        hide = true,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(3..)
    )]
    pub listener: Option<i32>,
    /// Also permit this group to use the host
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// The state folder, in which the host saves its loaded applications [default: $XDG_STATE_HOME/levada/host, or
    /// /var/lib/levada/host for root]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Load the applications that the last host had loaded when it ended or was killed
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "safe"
    )]
    pub restore: Option<RestoreWhat>,
    /// The longest time that the host waits for firings when it ends
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds, default_value = "20")]
    pub timeout: f64,
    /// Limit console output per application, in bytes per second (K, M, G); writers block above it
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size, default_value = "1M")]
    pub output_rate: u64,
    /// When the host is ready, print the reply of GET /host as a line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum RestoreWhat {
    /// All except quarantined applications, which have ended a host
    Safe,
    /// All applications, with quarantined ones
    All,
}

impl HostArgs {
    /// These options as arguments, for the host of an isolated application.
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

/// Selects a host, and the form of its reply.
#[derive(Args, Debug)]
pub struct AtArgs {
    /// The host's socket [default: as for levada host]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "LEVADA_HOST")]
    pub socket: Option<PathBuf>,
    /// Print the host's reply as JSON
    #[arg(long)]
    pub json: bool,
    /// The longest time to wait for the result [default: 30; 1800 for load and replace, which may compile]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub timeout: Option<f64>,
}

/// NETWORK may also be a C program (a shared object, .so, with a `main` function) or a manifest (.toml) of several
/// applications, which are all loaded, or none.
#[derive(Args, Debug)]
pub struct LoadArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    /// The application's name [default: the last part of the network's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add this to the priority of its actors (workers distinguish -4 to 3; other values are clamped)
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub priority: i32,
    /// Do not let channels grow: a deadlock in which a channel is full ends the application
    #[arg(long)]
    pub fixed_buffers: bool,
    /// Refuse to load it if its state and channels take more memory than this, and let no channel grow beyond it
    /// (bytes; K, M, G) [default: channels may grow by 64 MiB]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size)]
    pub memory: Option<u64>,
    /// Reserve this rate for it, and limit it to it, in units per second (frames, or what it counts)
    #[arg(long, value_name = "FPS", allow_negative_numbers = true, value_parser = amount)]
    pub rate: Option<f64>,
    /// Limit its CPU time to this number of cores, such as 0.5
    #[arg(long, value_name = "CORES", allow_negative_numbers = true, value_parser = amount)]
    pub cpus: Option<f64>,
    /// Load it even if a reserved rate would be broken
    #[arg(long)]
    pub force: bool,
    /// Give it a core that no other application of the host uses
    #[arg(long)]
    pub exclusive: bool,
    /// Pin actors to the cores that this file assigns: a placement (TOML), or a mapping of Orcc (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub placement: Option<PathBuf>,
    /// Run it in a process of its own, for untrusted code
    #[arg(long)]
    pub isolate: bool,
    /// Load it paused; `levada resume` starts it
    #[arg(long)]
    pub paused: bool,
    #[command(flatten)]
    pub compile: CompileArgs,
    #[command(flatten)]
    pub at: AtArgs,
    /// Arguments of a C program's `main` function; those that look like options after --
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ReplaceArgs {
    /// The application to replace
    #[arg(value_name = "APPLICATION")]
    pub old: String,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Args, Debug)]
pub struct UnloadArgs {
    #[arg(value_name = "NAME", required_unless_present = "ended")]
    pub name: Option<String>,
    /// Remove all applications that have ended or failed from the list
    #[arg(long, conflicts_with_all = ["name", "now"])]
    pub ended: bool,
    /// Unload at once and drop the elements in flight
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
    /// Unpin it, so that the mapper may move it again
    #[arg(long, conflicts_with = "worker")]
    pub unpin: bool,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Print new events until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Print only events after this number, and how many of them are no longer stored
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

/// Without --simulate, shows the placement of the host's applications.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// Instead, map the machine and applications that this TOML file describes, written by hand or by
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
    /// The strategy: levada, partition, glb, lb, round-robin, recorded, or all
    #[arg(
        long,
        value_name = "NAME",
        default_value = "levada",
        requires = "simulate"
    )]
    pub strategy: String,
    /// Simulate workers that run their actors in turn, ready or not
    #[arg(long, requires = "simulate")]
    pub round_robin: bool,
    /// Keep the actors that this file names on the cores it gives them: a placement (TOML), or a
    /// mapping of Orcc's (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "simulate")]
    pub placement: Option<PathBuf>,
    /// Write the placement into this file: with --simulate that of the first strategy, else that of the host
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub write: Option<PathBuf>,
}
