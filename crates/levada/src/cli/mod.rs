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
    /// In place of a network it takes a C program, a shared object (.so) with a main.
    Run(RunArgs),
    /// Hold applications: load and unload them while others run
    Host(HostArgs),
    /// Load an application into the host, and start it
    ///
    /// In place of a network it takes a manifest, a .toml file with an [[application]] for each: all of
    /// them are loaded, or none. Each has a network, and what the options are called that load it alone: name, in,
    /// out, option, set, path, project, arguments, priority, rate, cpus, memory, force, exclusive, placement (a
    /// file: TOML, or a mapping of Orcc's, XML), isolate, paused, timeout, native, unchecked, out_of_bounds,
    /// no_fuse, random_buffer_sizes.
    Load(LoadArgs),
    /// Let a new version take an application's place, between two elements
    Replace(ReplaceArgs),
    /// Take an application away, when what is in flight has come out
    Unload(UnloadArgs),
    /// Let nothing of an application run
    Pause(OneArgs),
    /// Let an application go on, from where it was paused
    Resume(OneArgs),
    /// List the host's applications
    List(AllArgs),
    /// Show an application with its actors and channels
    Show(OneArgs),
    /// Show which actor sits on which core; or map a description, and say which rates to expect
    Map(MapArgs),
    /// Put an actor on a worker
    Move(MoveArgs),
    /// Show what cores and applications have done
    Stats(AllArgs),
    /// Say who waits for whom in an application
    Why(OneArgs),
    /// Watch the host on the whole screen: cores, applications, actors, channels
    Top(TopArgs),
    /// Show what has happened in the host
    Events(EventsArgs),
    /// Check and compile what is to be loaded, and say what it needs: the host's own helper
    #[command(hide = true)]
    Prepare(PrepareArgs),
    /// Compile a network
    Build(BuildArgs),
    /// Parse and type-check CAL and XDF files
    Check(CheckArgs),
    /// Format CAL files
    ///
    /// Indents and spaces are normalized; lines break where they did, and comments stay. Prints the files
    /// that it changes. A file with errors is left alone.
    Fmt(FmtArgs),
    /// Serve editors: what is wrong, what is where, of which type, and renaming, in CAL and XDF
    ///
    /// Speaks the Language Server Protocol on its input and output; an editor starts it.
    Lsp,
    /// Draw a network
    Graph(GraphArgs),
    /// Compile C with forks: a C compiler that knows f(x) !! { ... }
    ///
    /// Wraps cc, or $LEVADA_CC, or $CC (gcc and clang), and hands every option on to it, so it can be set
    /// as CC in a Makefile and as the C compiler of CMake. Files without !! are compiled as they are.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Cc(CcArgs),
    /// Print C with its forks written out
    Translate(TranslateArgs),
    /// See and clean the MCAPI domains of this machine
    #[command(subcommand)]
    Mcapi(McapiCommand),
    /// Run a program alone on cores of its own
    ///
    /// Moves everything else away from the cores, starts the program there, and makes all as it was
    /// when the program ends, or when this command does, in whatever way. The exit status is the
    /// program's; 125 when there is no shield, 126 when the program cannot be started, 127 when it is not
    /// found.
    Shield(ShieldArgs),
    /// Use a processor behind a window by hand: boot it, load and run images
    ///
    /// A unit goes on when the command has ended, until it is stopped: a process of its own, its agent, holds it.
    #[command(subcommand)]
    Unit(UnitCommand),
    /// Say what this machine offers, what is missing, and what to do
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write those of all commands
    Man {
        /// The page of this command [default: levada itself]
        #[arg(value_name = "COMMAND", conflicts_with = "dir")]
        command: Option<String>,
        /// Write one page a command into this folder
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether results are to be JSON.
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
    /// Print what was found as JSON
    #[arg(long, conflicts_with = "pid")]
    pub json: bool,
    /// List the workers and fibers of this process, and what each waits for, instead (with gdb)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}
