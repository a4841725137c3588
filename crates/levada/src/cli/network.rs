// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments that select a network, and options for compiling and running it.

use super::values::{amount, microseconds, setting, size, workers};
use clap::{Args, ValueEnum, ValueHint};
use levada_host::HostOptions;
use levada_sys::{REALTIME_MAX, RuntimeOptions, Schedule};
use std::path::PathBuf;
use std::time::Duration;

/// Selects a network and sets its parameters.
#[derive(Args, Debug)]
pub struct NetworkArgs {
    /// An .xdf file (or the .cal file of an actor without ports), or a class name such as a.b.Top
    #[arg(value_name = "NETWORK", value_hint = ValueHint::FilePath)]
    pub network: String,
    /// Set a parameter or variable of the network
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Use the sources of this project and of those that it depends on (.project, .classpath), or of the project in
    /// this folder that contains the network [default: the project that contains the network's file]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub project: Option<PathBuf>,
    /// Also search this folder for classes
    #[arg(long = "path", short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// Stop the network
    Fault,
    /// Read the nearest element and drop a write, with a warning; applications made for Orcc rely on that
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

/// How a network is compiled.
#[derive(Args, Clone, Debug)]
pub struct CompileArgs {
    /// Omit the checks of list indices (an out-of-range index then corrupts memory)
    #[arg(long)]
    pub unchecked: bool,
    /// What an out-of-range list index does
    /// [default: clamp in a project, which has a .project file; else fault]
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "unchecked")]
    pub out_of_bounds: Option<OutOfBounds>,
    /// Give channels random capacities from this seed, small ones among them, for tests: the output must not change
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub random_buffer_sizes: Option<u64>,
    /// Do not fuse actors
    #[arg(long, overrides_with = "fuse")]
    pub no_fuse: bool,
    /// Fuse actors where that is faster (the default)
    #[arg(long)]
    pub fuse: bool,
    /// Compile this C or C++ file of natives into the network, or link this shared object with it
    #[arg(long = "native", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub native: Vec<PathBuf>,
    /// Do not show the progress of compiling, which is shown on a terminal only
    #[arg(long)]
    pub quiet: bool,
}

/// Options for a network's natives.
#[derive(Args, Debug)]
pub struct GivenArgs {
    /// The file that the network reads
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,
    /// The file that the network writes
    #[arg(long = "out", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Set another option of the network's natives
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = setting)]
    pub option: Vec<(String, String)>,
}

/// Options of the runtime.
#[derive(Args, Debug)]
pub struct RuntimeArgs {
    /// Number of workers [default: as affinity and the CPU quota permit]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = workers)]
    pub workers: Option<u32>,
    /// Stop an application if one of its actions takes more CPU time than this, in milliseconds; 0: no limit
    /// [default: 0; in a host 10000]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub action_time_limit: Option<u32>,
    /// Time for which an idle worker polls for work before it sleeps, in microseconds; 0: it sleeps at once
    /// [default: 30]
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    pub spin: Option<u32>,
    /// Keep actors on the workers where they were first placed
    #[arg(long)]
    pub no_balance: bool,
    /// The order in which a worker runs ready actors of equal priority
    #[arg(long, value_name = "HOW", value_enum, default_value = "event-driven")]
    pub schedule: ScheduleHow,
    /// Run the workers at this real-time priority, 1 to 97, before all other programs on their cores [1 if no number is
    /// given]
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
    /// The actor that became ready first
    EventDriven,
    /// The next actor in loading order; each has one turn per round
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
    /// Show the video that the network writes in a window (with ffplay or mpv)
    #[arg(long, conflicts_with = "output")]
    pub play: bool,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Pin actors to the cores that this file assigns: a placement (TOML), or a mapping of Orcc (XML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub placement: Option<PathBuf>,
    /// Write the network and its measurements into this file, for `levada map --simulate`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// Do not let channels grow: a deadlock in which a channel is full ends the run
    #[arg(long)]
    pub fixed_buffers: bool,
    /// Limit the memory of state and channels, up to which channels may grow (bytes; K, M, G) [default: 64 MiB more
    /// than they take at first]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size)]
    pub memory: Option<u64>,
    /// Limit progress to this rate, in units per second (frames, or what the network counts)
    #[arg(long, value_name = "FPS", allow_negative_numbers = true, value_parser = amount)]
    pub rate: Option<f64>,
    /// Draw the network and its measurements into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub graph: Option<PathBuf>,
    /// Exit with status 14 if elements are left over in channels at the end
    #[arg(long)]
    pub strict: bool,
    /// Print a table of all actors and channels at the end
    #[arg(long)]
    pub stats: bool,
    /// Show progress even if the output is not a terminal
    #[arg(long, overrides_with = "no_progress")]
    pub progress: bool,
    /// Do not show progress
    #[arg(long)]
    pub no_progress: bool,
    /// Print the summary as one line of JSON; what the network prints then goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Arguments of a C program's `main` function
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
    /// Also check, in a process of its own, that a C program can be opened
    #[arg(long)]
    pub open: bool,
}
