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
    /// Choose so many that are the cheapest to empty
    #[arg(long = "cores", value_name = "N", allow_negative_numbers = true, value_parser = workers, conflicts_with = "cores")]
    pub count: Option<u32>,
    /// Give the cores to this process, which runs already, with all its threads; until it ends, or
    /// Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "program")]
    pub pid: Option<i32>,
    /// Give them to this thread of the process only; not by the method `cgroup-v2-partition`
    #[arg(long, value_name = "TID", requires = "pid")]
    pub thread: Option<i32>,
    /// A socket by which the C library controls the shield; its end ends the shield
    #[arg(long, value_name = "DESCRIPTOR", requires = "pid", hide = true)]
    pub control_fd: Option<i32>,
    /// Move what was on the cores to the single most lightly loaded other one
    #[arg(long)]
    pub single_target: bool,
    /// Leave these processes where they are (names or process ids)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// Use this method only [default: the first that works]
    #[arg(long, value_name = "METHOD", value_parser = ["cgroup-v2-partition", "cpuset-v1", "affinity", "self"])]
    pub method: Option<String>,
    /// Run the program at this real-time priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=99), conflicts_with = "pid")]
    pub fifo: Option<u32>,
    /// Run the program with this weight against others, 1 to 10000; the normal one is 100
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10000), conflicts_with_all = ["fifo", "pid"])]
    pub weight: Option<u32>,
    /// Let the program have so much time in each period, such as 2ms/10ms
    #[arg(long, value_name = "TIME/PERIOD", value_parser = deadline, conflicts_with_all = ["fifo", "weight", "pid"])]
    pub deadline: Option<(u64, u64)>,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The program and its arguments, behind --
    #[arg(value_name = "PROGRAM", last = true)]
    pub program: Vec<OsString>,
}

#[derive(Subcommand, Debug)]
pub enum ShieldCommand {
    /// Show the cores, what is on them, and the shields that there are
    Status(ShieldStatusArgs),
    /// End a shield; its program goes on
    Release(ShieldReleaseArgs),
    /// Make as it was what a shield changed whose processes were all killed
    Restore(ShieldRestoreArgs),
}

#[derive(Args, Debug)]
pub struct ShieldReleaseArgs {
    /// The shield on these cores [default: every one]
    #[arg(value_name = "CORES")]
    pub cores: Option<CoreSet>,
    /// Print which were released as JSON
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
    /// Say what is on these cores, and where it would go
    #[arg(value_name = "CORES")]
    pub cores: Option<CoreSet>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Two times in nanoseconds, the first no longer than the second.
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
