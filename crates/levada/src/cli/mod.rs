// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: its grammar, and the texts of the help, the completions and the manual pages.

mod host;
mod mcapi;
mod network;
mod shield;
mod sources;
mod unit;
mod values;

pub use host::*;
pub use mcapi::*;
pub use network::*;
pub use shield::*;
pub use sources::*;
pub use unit::*;

use clap::{Args, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// Runs streaming programs on the cores of this machine: one worker per core, one kind of channel.
#[derive(Parser, Debug)]
#[command(
    name = "levada",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Compile a network to native code and run it
    ///
    /// NETWORK may also be a C program: a shared object (.so) with a `main` function.
    Run(RunArgs),
    /// Run a host: a process in which applications are loaded and unloaded while others run
    Host(HostArgs),
    /// Load an application into a host, and start it
    ///
    /// NETWORK may also be a C program (a shared object, .so, with a `main` function) or a manifest: a .toml file with
    /// one [[application]] table per application, which are all loaded, or none. The keys of a table are `network` and
    /// the names of the options of this command: name, in, out, option, set, path, project, arguments, priority, rate,
    /// cpus, memory, force, exclusive, placement (a TOML file, or an XML mapping of Orcc), isolate, paused, timeout,
    /// native, unchecked, out_of_bounds, no_fuse, random_buffer_sizes.
    Load(LoadArgs),
    /// Replace an application by a new version, which continues from its state with the next element
    Replace(ReplaceArgs),
    /// Unload an application after the elements in flight have left it
    Unload(UnloadArgs),
    /// Pause an application; its channels keep their contents
    Pause(OneArgs),
    /// Resume a paused application
    Resume(OneArgs),
    /// List the host's applications
    List(AllArgs),
    /// Show an application with its actors and channels
    Show(OneArgs),
    /// Show the placement of a host's actors; or map a description and predict its rates
    Map(MapArgs),
    /// Move an actor to a worker and pin it there, or unpin it
    Move(MoveArgs),
    /// Show counters of a host's workers and applications
    Stats(AllArgs),
    /// Show what each actor, fiber and thread of an application waits for, and deadlocks
    Why(OneArgs),
    /// Show a host's cores, applications, actors and channels, updated continuously
    Top(TopArgs),
    /// Print the events of a host
    Events(EventsArgs),
    /// Check and compile an application before a host loads it (the host's helper process)
    #[command(hide = true)]
    Prepare(PrepareArgs),
    /// Compile a network to C, a shared object or a program
    Build(BuildArgs),
    /// Parse and type-check CAL and XDF files
    Check(CheckArgs),
    /// Format CAL files
    ///
    /// Replaces indentation and spaces; keeps line breaks and comments. Prints the names of the files that it changes.
    /// A file with errors is not changed.
    Fmt(FmtArgs),
    /// Language server for CAL and XDF: errors, definitions, types, renaming
    ///
    /// An editor starts it; it uses the Language Server Protocol on standard input and output.
    Lsp,
    /// Draw a network as SVG or Graphviz
    Graph(GraphArgs),
    /// Compile C with forks: f(x) !! { ... }
    ///
    /// A compiler driver that calls $LEVADA_CC, $CC or cc (gcc or clang) with all given options. It can be the CC of a
    /// Makefile and the C compiler of CMake. Files without !! are compiled unchanged.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Cc(CcArgs),
    /// Translate C with forks to plain C, and print it
    Translate(TranslateArgs),
    /// List, watch and clean the MCAPI domains of this machine
    #[command(subcommand)]
    Mcapi(McapiCommand),
    /// Run a program alone on cores of its own
    ///
    /// Moves all other threads off the cores and starts the program there. When the program or this command ends, for
    /// any reason, the previous state is restored. The exit status is the program's; 125 if the shield cannot be
    /// raised, 126 if the program cannot be started, 127 if it is not found.
    Shield(ShieldArgs),
    /// Control a processor behind a memory window: boot it, load and run images
    ///
    /// A unit keeps running after the command has ended, until it is stopped: another process, its agent, holds it.
    #[command(subcommand)]
    Unit(UnitCommand),
    /// Report what this machine supports, what is missing, and what to do about it
    Doctor(DoctorArgs),
    /// Print the completion script of a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write the pages of all commands
    Man {
        /// The page of this command [default: levada itself]
        #[arg(value_name = "COMMAND", conflicts_with = "dir")]
        command: Option<String>,
        /// Write one page per command into this folder
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether the command prints its results as JSON.
    pub fn json(&self) -> bool {
        match self {
            Command::Run(args) => args.json,
            Command::Host(args) => args.json,
            Command::Top(args) => args.at.json,
            Command::Load(args) => args.at.json,
            Command::Replace(args) => args.load.at.json,
            Command::Unload(args) => args.at.json,
            Command::Move(args) => args.at.json,
            Command::Events(args) => args.at.json,
            Command::Pause(args)
            | Command::Resume(args)
            | Command::Show(args)
            | Command::Why(args) => args.at.json,
            Command::List(args) | Command::Stats(args) => args.at.json,
            Command::Map(args) => args.at.json,
            Command::Prepare(_) => true,
            Command::Build(args) => args.json,
            Command::Check(args) => args.json,
            Command::Graph(args) => args.json,
            Command::Doctor(args) => args.json,
            Command::Mcapi(McapiCommand::List(args)) => args.json,
            Command::Mcapi(McapiCommand::Watch(args)) => args.look.json,
            Command::Mcapi(McapiCommand::Clean(args)) => args.json,
            Command::Unit(command) => command.json(),
            Command::Shield(args) => match &args.command {
                Some(ShieldCommand::Status(args)) => args.json,
                Some(ShieldCommand::Release(args)) => args.json,
                Some(ShieldCommand::Restore(args)) => args.json,
                None => false,
            },
            Command::Cc(_) | Command::Translate(_) => false,
            Command::Fmt(_) | Command::Lsp | Command::Completions { .. } | Command::Man { .. } => {
                false
            }
        }
    }
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long, conflicts_with = "pid")]
    pub json: bool,
    /// Instead, list the workers and fibers of this process and what each waits for (needs gdb)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}
