// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada shield`.

use super::values::workers;
use clap::{Args, Subcommand};
use levada_cores::CoreSet;
use std::ffi::OsString;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ShieldArgs {
    #[command(subcommand)]
    pub command: Option<ShieldCommand>,
    #[command(flatten)]
    pub raise: RaiseArgs,
}

#[derive(Args, Debug)]
pub struct RaiseArgs {
    /// The cores, such as 3 or 2,3 or 4-7
    #[arg(value_name = "CORES")]
    pub cores: Option<CoreSet>,
    /// Choose this number of cores: those with the load that is cheapest to move
    #[arg(
        long = "cores",
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = workers,
        conflicts_with = "cores"
    )]
    pub count: Option<u32>,
    /// Shield this running process with all its threads, until it ends or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "program")]
    pub pid: Option<i32>,
    /// Shield only this thread of the process; not with the method `cgroup-v2-partition`
    #[arg(long, value_name = "TID", requires = "pid")]
    pub thread: Option<i32>,
    /// The socket by which the C library controls the shield; closing it ends the shield
    #[arg(long, value_name = "DESCRIPTOR", requires = "pid", hide = true)]
    pub control_fd: Option<i32>,
    /// Move the threads on the cores to the one other core with the least load
    #[arg(long)]
    pub single_target: bool,
    /// Do not move these processes (names or process ids)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// Use this method only [default: the first that works]
    #[arg(long, value_name = "METHOD", value_parser = ["cgroup-v2-partition", "cpuset-v1", "affinity", "self"])]
    pub method: Option<String>,
    /// Run the program at this real-time priority, 1 to 99
    #[arg(
        long,
        value_name = "PRIORITY",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=99),
        conflicts_with = "pid"
    )]
    pub fifo: Option<u32>,
    /// Run the program with this CPU weight, 1 to 10000; the default weight is 100
    #[arg(
        long,
        value_name = "WEIGHT",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=10000),
        conflicts_with_all = ["fifo", "pid"]
    )]
    pub weight: Option<u32>,
    /// Reserve CPU time for the program in each period, such as 2ms/10ms (SCHED_DEADLINE)
    #[arg(long, value_name = "TIME/PERIOD", value_parser = deadline, conflicts_with_all = ["fifo", "weight", "pid"])]
    pub deadline: Option<(u64, u64)>,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments, after --
    #[arg(value_name = "PROGRAM", last = true)]
    pub program: Vec<OsString>,
}

#[derive(Subcommand, Debug)]
pub enum ShieldCommand {
    /// Show the cores, the threads on them, and all shields
    Status(ShieldStatusArgs),
    /// End a shield; its program continues
    Release(ShieldReleaseArgs),
    /// Restore what a shield has changed, after all of its processes were killed
    Restore(ShieldRestoreArgs),
}

#[derive(Args, Debug)]
pub struct ShieldReleaseArgs {
    /// The shield on these cores [default: all shields]
    #[arg(value_name = "CORES")]
    pub cores: Option<CoreSet>,
    /// Print the released shields as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ShieldRestoreArgs {
    /// Print what was restored as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ShieldStatusArgs {
    /// Show the threads on these cores and where they would be moved
    #[arg(value_name = "CORES")]
    pub cores: Option<CoreSet>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses runtime and period, in nanoseconds; the runtime is at most the period.
fn deadline(text: &str) -> Result<(u64, u64), String> {
    let time = |t: &str| {
        let split = t.find(|c: char| c.is_alphabetic()).unwrap_or(t.len());
        let number: f64 = t[..split].trim().parse().ok()?;
        let unit = match &t[split..] {
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
        Some((number * unit) as u64).filter(|n| *n >= 1024)
    };
    text.split_once('/')
        .and_then(|(a, b)| Some((time(a)?, time(b)?)))
        .filter(|(runtime, period)| runtime <= period)
        .ok_or_else(|| {
            "write TIME/PERIOD, as in 2ms/10ms, with the time no longer than the period".into()
        })
}
