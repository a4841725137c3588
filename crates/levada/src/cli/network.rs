// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments that select a network, and options for compiling and running it.

use super::values::{amount, microseconds, setting, workers};
use clap::{Args, ValueEnum, ValueHint};
use levada_host::HostOptions;
use levada_sys::{REALTIME_MAX, RuntimeOptions, Schedule};
use std::path::PathBuf;
use std::time::Duration;

/// Which network, and with what values.
#[derive(Args, Debug)]
pub struct NetworkArgs {
    /// An .xdf file (or the .cal file of an actor without ports), or a class name such as a.b.Top
    #[arg(value_name = "NETWORK", value_hint = ValueHint::FilePath)]
    pub network: String,
    /// Give a parameter or variable of the network a value
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Use the sources of this project, and of those that it needs (.project, .classpath), or of the
    /// project in this folder that has the network [default: the one that the network lies in]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub project: Option<PathBuf>,
    /// Look for classes in this folder, too
    #[arg(long = "path", short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// The network stops
    Fault,
    /// The nearest element is read, and a write is dropped, with a warning: applications made for
    /// Orcc rely on that
    Clamp,
}

impl OutOfBounds {
    pub fn name(self) -> &'static str {
        match self {
            OutOfBounds::Fault => "fault",
            OutOfBounds::Clamp => "clamp",
        }
    }
}

/// How it is compiled.
#[derive(Args, Debug)]
pub struct CompileArgs {
    /// Leave out the checks of array indices (a wrong index then spoils memory)
    #[arg(long)]
    pub unchecked: bool,
    /// What an out-of-range list index does
    /// [default: clamp in a project, which has a .project file; else fault]
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "unchecked")]
    pub out_of_bounds: Option<OutOfBounds>,
    /// Give channels random capacities, from this seed, for tests: the output must be the same
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub random_buffer_sizes: Option<u64>,
    /// Do not join actors into one, even where that is faster
    #[arg(long, overrides_with = "fuse")]
    pub no_fuse: bool,
    /// Join actors where that is faster (the default)
    #[arg(long)]
    pub fuse: bool,
    /// Compile this C or C++ file of native functions and actors into the network, or link this shared
    /// object with it
    #[arg(long = "native", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub native: Vec<PathBuf>,
}

/// What its natives are given.
#[derive(Args, Debug)]
pub struct GivenArgs {
    /// What the network reads
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,
    /// Where the network writes
    #[arg(long = "out", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Tell the network's natives another option
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = setting)]
    pub option: Vec<(String, String)>,
}

/// What runs it.
#[derive(Args, Debug)]
pub struct RuntimeArgs {
    /// Workers [default: as many as affinity and the CPU quota leave]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = workers)]
    pub workers: Option<u32>,
    /// Stop an application when one action of it takes more CPU time than this; 0: never [default: 0;
    /// in a host 10000]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub action_time_limit: Option<u32>,
    /// An idle worker looks for work for so many microseconds before it sleeps; 0: it sleeps at once
    /// [default: 30]
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    pub spin: Option<u32>,
    /// Keep actors where they were placed first
    #[arg(long)]
    pub no_balance: bool,
    /// Which of the actors that can fire on a worker goes next, where priorities and rates leave a choice
    #[arg(long, value_name = "HOW", value_enum, default_value = "event-driven")]
    pub schedule: ScheduleHow,
    /// Let the workers go before all other programs on their cores, at this real-time priority, 1 to 97 [1 if not said]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(REALTIME_MAX))
    )]
    pub realtime: Option<u32>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleHow {
    /// The one that could fire first
    EventDriven,
    /// The next one in the order of loading, behind the one that ran last, and round: each has one turn a round
    RoundRobin,
}

impl RuntimeArgs {
    pub fn options(&self) -> HostOptions {
        HostOptions {
            runtime: RuntimeOptions {
                workers: self.workers.unwrap_or(0),
                action_time_limit: Duration::from_millis(
                    self.action_time_limit.unwrap_or(0).into(),
                ),
                // The runtime takes zero microseconds as "use the default".
                no_spin: self.spin == Some(0),
                spin_us: self.spin.unwrap_or(0),
                schedule: match self.schedule {
                    ScheduleHow::EventDriven => Schedule::EventDriven,
                    ScheduleHow::RoundRobin => Schedule::RoundRobin,
                },
                realtime: self.realtime.unwrap_or(0),
                ..RuntimeOptions::default()
            },
            balance: !self.no_balance,
            isolated: false,
        }
    }
}

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    /// Show in a window what the network writes (by ffplay or mpv)
    #[arg(long, conflicts_with = "output")]
    pub play: bool,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Keep the actors that this file names on the cores it gives them: a placement (TOML), or a
    /// mapping of Orcc's (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub placement: Option<PathBuf>,
    /// Write the network with what was measured into this file, for `levada map --simulate`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// Run at so many units a second (what it counts, such as frames) and no more
    #[arg(long, value_name = "FPS", allow_negative_numbers = true, value_parser = amount)]
    pub rate: Option<f64>,
    /// Draw the network with what was measured into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub graph: Option<PathBuf>,
    /// Exit with status 14 if elements are left over in channels at the end
    #[arg(long)]
    pub strict: bool,
    /// At the end, a table of all actors and channels
    #[arg(long)]
    pub stats: bool,
    /// Show progress even where the output is no terminal
    #[arg(long, overrides_with = "no_progress")]
    pub progress: bool,
    /// Show no progress
    #[arg(long)]
    pub no_progress: bool,
    /// Print the summary as one line of JSON, which is then all of the output: what the network
    /// prints goes to the error output
    #[arg(long)]
    pub json: bool,
    /// What the main of a C program is given
    #[arg(value_name = "ARGUMENT", last = true)]
    pub arguments: Vec<String>,
}

#[derive(Args, Debug)]
pub struct PrepareArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// See that a C program can be opened, too: by a process of its own
    #[arg(long)]
    pub open: bool,
}
