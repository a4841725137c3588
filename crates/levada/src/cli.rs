// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: what can be typed, and what the help, the completions and the manual say of it.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use levada_cores::CoreSet;
use levada_host::HostOptions;
use levada_sys::RuntimeOptions;
use std::ffi::OsString;
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
    /// them are loaded, or none.
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
    /// Indents and spaces are made anew; lines break where they did, and comments stay. Prints the files
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
    /// A unit goes on when the command has ended, until it is stopped: a process of its own keeps it.
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
            Command::Host(_) | Command::Top(_) => false,
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
            Command::Shield(args) => {
                matches!(&args.command, Some(ShieldCommand::Status(s)) if s.json)
            }
            Command::Cc(_) | Command::Translate(_) => false,
            Command::Fmt(_) | Command::Lsp | Command::Completions { .. } | Command::Man { .. } => {
                false
            }
        }
    }
}

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
pub enum Outside {
    /// The network stops
    Fault,
    /// Its nearest element is read, and what is written is lost, with a warning: applications made
    /// for Orcc rely on it that nothing happens
    Nearest,
}

impl Outside {
    pub fn name(self) -> &'static str {
        match self {
            Outside::Fault => "fault",
            Outside::Nearest => "nearest",
        }
    }
}

/// How it is compiled.
#[derive(Args, Debug)]
pub struct CompileArgs {
    /// Leave out the checks of array indices (a wrong index then spoils memory)
    #[arg(long)]
    pub unchecked: bool,
    /// What happens where a list is read or written that has no such element
    /// [default: nearest in a project, which has a .project file, or else fault]
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "unchecked")]
    pub outside: Option<Outside>,
    /// Give channels sizes by chance, from this seed: what comes out must be the same
    #[arg(long, value_name = "SEED")]
    pub any_sizes: Option<u64>,
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
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<u32>,
    /// Stop an application when one action of it computes for longer than this; 0: never [default: 0;
    /// in a host 10000]
    #[arg(long, value_name = "MS")]
    pub time_limit: Option<u32>,
    /// An idle worker looks for work for so many microseconds before it sleeps; 0: it sleeps at once
    /// [default: 30]
    #[arg(long, value_name = "US", value_parser = microseconds)]
    pub spin: Option<u32>,
    /// Keep actors where they were placed first
    #[arg(long)]
    pub no_balance: bool,
}

impl RuntimeArgs {
    pub fn options(&self) -> HostOptions {
        HostOptions {
            runtime: RuntimeOptions {
                workers: self.workers.unwrap_or(0),
                time_limit_ms: self.time_limit.unwrap_or(0),
                // To the runtime, zero microseconds are its own choice.
                no_spin: self.spin == Some(0),
                spin_us: self.spin.unwrap_or(0),
                ..RuntimeOptions::default()
            },
            balance: !self.no_balance,
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
    #[arg(long, value_name = "FPS", value_parser = amount)]
    pub rate: Option<f64>,
    /// Draw the network with what was measured into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub graph: Option<PathBuf>,
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
pub struct HostArgs {
    /// Listen here [default: $XDG_RUNTIME_DIR/levada/host.sock, or /run/levada/host.sock for root]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "LEVADA_HOST")]
    pub socket: Option<PathBuf>,
    /// Listen on this descriptor, remember nothing: for an application that a host isolates
    #[arg(long, value_name = "FD", hide = true, value_parser = clap::value_parser!(i32).range(3..))]
    pub listener: Option<i32>,
    /// Let this group use it, too
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Remember here what is loaded [default: $XDG_STATE_HOME/levada/host, or /var/lib/levada/host for
    /// root]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Load what ran when the last host ended, or was killed
    #[arg(long)]
    pub restore: bool,
    /// Told to end, wait no longer than this for a firing that does not end
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "20")]
    pub within: f64,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

impl HostArgs {
    /// As arguments, for a host that is to work as this one does.
    pub fn for_another(&self) -> Vec<OsString> {
        let RuntimeArgs {
            workers,
            time_limit,
            spin,
            no_balance,
        } = &self.runtime;
        let number = |name: &str, n: Option<u32>| n.map(|n| format!("--{name}={n}").into());
        let mut all = vec![OsString::from(format!("--within={}", self.within))];
        all.extend(number("workers", *workers));
        all.extend(number("time-limit", *time_limit));
        all.extend(number("spin", *spin));
        all.extend(no_balance.then(|| "--no-balance".into()));
        all
    }

    pub fn within(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.within)
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
    /// Wait no longer than this for what is asked for [default: 30; 1800 for load, which may compile]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub within: Option<f64>,
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
    /// Add this to the priority of its actors
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub priority: i32,
    /// Refuse it if its state and channels take more than so many bytes (K, M, G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Promise it so many units a second (what it counts, such as frames); it gets no more
    #[arg(long, value_name = "FPS", value_parser = amount)]
    pub rate: Option<f64>,
    /// Let it take no more than so many cores, such as 0.5
    #[arg(long, value_name = "CORES", value_parser = amount)]
    pub share: Option<f64>,
    /// Load it even where that breaks a promise
    #[arg(long)]
    pub anyway: bool,
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
    #[arg(value_name = "NAME")]
    pub name: String,
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
    #[arg(value_name = "WORKER")]
    pub worker: u32,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Go on with what happens, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Leave out events up to this number
    #[arg(long, value_name = "N", default_value = "0")]
    pub since: u64,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Ask the host so often
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub every: f64,
    #[command(flatten)]
    pub at: AtArgs,
}

#[derive(Args, Debug)]
pub struct PrepareArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub compile: CompileArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// The C source
    C,
    /// A shared object, which `levada run` could load
    So,
    /// A program that holds the network and the runtime, for processors such as this machine has
    Exe,
}

#[derive(Args, Debug)]
pub struct BuildArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Where to [default: the network's name in the current folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "exe")]
    pub emit: Emit,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Print what was made as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files (.cal, .xdf) and folders of them
    #[arg(required_unless_present = "explain", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Look for classes in this folder, too
    #[arg(long = "path", short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
    /// Instead, say what stands at a place: the type of an expression, what it is computed in and by
    /// which rule, or what a name is
    #[arg(long, value_name = "FILE:LINE:COLUMN", conflicts_with = "paths", value_parser = place)]
    pub explain: Option<Place>,
    /// Also note where the language leaves something open, and what Levada does there: which of two
    /// actions goes first, and values that may not fit an odd width
    #[arg(long, conflicts_with = "explain")]
    pub notes: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct FmtArgs {
    /// Files (.cal) and folders of them; - formats the input to the output
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Change nothing: print the files that are not formatted, and fail if there are any
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Debug)]
pub struct GraphArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Write a picture (- is the output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Write a Graphviz file (- is the output) [default: - where nothing else is asked for]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dot: Option<PathBuf>,
    /// Print the graph's statistics as JSON
    #[arg(long)]
    pub json: bool,
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

#[derive(Args, Debug)]
pub struct CcArgs {
    /// Erase !!: compile the sequential program
    #[arg(long)]
    pub serial: bool,
    /// Make a shared object for `levada load`: its runtime is the host's (-fPIC -shared)
    #[arg(long)]
    pub hosted: bool,
    /// What the C compiler is called with
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct TranslateArgs {
    /// The C file (- is the input)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where to (- is the output)
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// Erase !!: print the sequential program
    #[arg(long)]
    pub serial: bool,
    /// What the C compiler needs to read the file, such as -I and -D, behind --
    #[arg(value_name = "OPTION", last = true)]
    pub options: Vec<OsString>,
}

#[derive(Subcommand, Debug)]
pub enum McapiCommand {
    /// List domains: nodes, endpoints, channels, what waits and what goes through
    List(LookArgs),
    /// The same again and again, until Ctrl-C
    Watch(WatchArgs),
    /// Take away what dead programs have left, while others go on
    Clean(CleanArgs),
}

#[derive(Args, Debug)]
pub struct LookArgs {
    /// Only these domains [default: all of yours]
    #[arg(value_name = "DOMAIN", value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print JSON, a line for each look
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Look so often
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub every: f64,
}

#[derive(Args, Debug)]
pub struct CleanArgs {
    /// Only these domains [default: all of yours]
    #[arg(value_name = "DOMAIN", value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print what was taken away as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand, Debug)]
pub enum UnitCommand {
    /// List the units that there are, and what each is about
    List(UnitsArgs),
    /// Start a machine, which is then a unit of this name
    Boot(BootArgs),
    /// Give it an image, ELF or raw, which stays there for run
    Load(UnitLoadArgs),
    /// Run its image to the end; the exit status is the program's
    Run(UnitRunArgs),
    /// Print what has happened there; also of a unit that is no more
    Log(UnitArgs),
    /// End it, whatever it does
    Stop(UnitArgs),
    /// The process that a unit is kept by
    #[command(hide = true)]
    Keep(BootArgs),
}

impl UnitCommand {
    fn json(&self) -> bool {
        match self {
            UnitCommand::List(at) => at.json,
            UnitCommand::Boot(args) | UnitCommand::Keep(args) => args.unit.at.json,
            UnitCommand::Load(args) => args.unit.at.json,
            UnitCommand::Run(args) => args.unit.at.json,
            UnitCommand::Log(unit) | UnitCommand::Stop(unit) => unit.at.json,
        }
    }
}

#[derive(Args, Debug)]
pub struct UnitsArgs {
    /// Where the units' sockets and logs are [default: /run/levada/units, or
    /// $XDG_RUNTIME_DIR/levada/units]
    #[arg(long, value_name = "DIR", env = "LEVADA_UNITS", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct UnitArgs {
    /// The unit
    #[arg(value_name = "NAME", value_parser = unit_name)]
    pub name: String,
    #[command(flatten)]
    pub at: UnitsArgs,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("kind").required(true))]
pub struct BootArgs {
    #[command(flatten)]
    pub unit: UnitArgs,
    /// A riscv64 machine in QEMU
    #[arg(long, group = "kind")]
    pub qemu: bool,
    /// A riscv32 machine in QEMU
    #[arg(long, group = "kind")]
    pub qemu32: bool,
    /// A machine that is a process of this system
    #[arg(long, group = "kind")]
    pub native: bool,
}

impl BootArgs {
    /// What a unit's name begins with.
    pub fn board(&self) -> &'static str {
        match (self.qemu, self.qemu32) {
            (true, _) => "qemu",
            (_, true) => "qemu32",
            _ => "native",
        }
    }
}

#[derive(Args, Debug)]
pub struct UnitLoadArgs {
    #[command(flatten)]
    pub unit: UnitArgs,
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: PathBuf,
}

#[derive(Args, Debug)]
pub struct UnitRunArgs {
    #[command(flatten)]
    pub unit: UnitArgs,
    /// Call this procedure of a program that serves; else the program is run to its end
    pub procedure: Option<String>,
    /// Its argument, one part behind the other: u32:7, i64:-3, f64:2.5 (8, 16, 32, 64 bits), text:words,
    /// hex:0a0b, file:PATH
    #[arg(value_name = "TYPE:VALUE", requires = "procedure")]
    pub arguments: Vec<String>,
    /// Feed a stream of the procedure's from a file, in elements of so many bytes; "-": the input
    #[arg(long = "in", value_name = "STREAM:BYTES=FILE", requires = "procedure")]
    pub inputs: Vec<String>,
    /// Write what comes on a stream into a file; "-": the output
    #[arg(long = "out", value_name = "STREAM:BYTES=FILE", requires = "procedure")]
    pub outputs: Vec<String>,
    /// What the result is: u8 to u64, i8 to i64, f32, f64, text
    #[arg(
        long,
        value_name = "TYPE",
        default_value = "hex",
        requires = "procedure"
    )]
    pub result: String,
    /// Stop the program when it has not ended by then [default: wait]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub within: Option<f64>,
}

/// It is a part of files' names.
fn unit_name(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=40).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(known)
    {
        true => Ok(text.to_string()),
        false => {
            Err("write 1 to 40 letters, digits, '-', '_' or '.', a letter or digit first".into())
        }
    }
}

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
    #[arg(long = "cores", value_name = "N", value_parser = workers, conflicts_with = "cores")]
    pub count: Option<u32>,
    /// Give the cores to this process, which runs already, with all its threads; until it ends, or
    /// Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "program")]
    pub pid: Option<i32>,
    /// Give them to this thread of the process only, and not in the way `partition`
    #[arg(long, value_name = "TID", requires = "pid")]
    pub thread: Option<i32>,
    /// A descriptor on which the C library asks and is answered; its end ends the shield
    #[arg(long, value_name = "DESCRIPTOR", requires = "pid", hide = true)]
    pub wire: Option<i32>,
    /// Move what was on the cores to the single most lightly loaded other one
    #[arg(long)]
    pub pin_lightest: bool,
    /// Leave these processes where they are (names or process ids)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub protect: Vec<String>,
    /// Shield in this way only [default: the first that works]
    #[arg(long, value_name = "WAY", value_parser = ["partition", "cpusets", "affinity", "own"])]
    pub by: Option<String>,
    /// Run the program at this real-time priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u32).range(1..=99), conflicts_with = "pid")]
    pub fifo: Option<u32>,
    /// Run the program with this weight against others, 1 to 10000; the normal one is 100
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u32).range(1..=10000), conflicts_with_all = ["fifo", "pid"])]
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
    Release {
        /// The shield on these cores [default: every one]
        #[arg(value_name = "CORES")]
        cores: Option<CoreSet>,
    },
    /// Make as it was what a shield changed whose processes were all killed
    Restore,
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

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Print what was found as JSON
    #[arg(long, conflicts_with = "pid")]
    pub json: bool,
    /// List the workers and fibers of this process, and what each waits for, instead (with gdb)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

/// A place in a file; both numbers count from 1.
#[derive(Clone, Debug)]
pub struct Place {
    pub file: PathBuf,
    pub line: u32,
    pub column: u32,
}

fn place(text: &str) -> Result<Place, String> {
    let mut parts = text.rsplitn(3, ':');
    let mut number = || parts.next()?.parse().ok().filter(|n: &u32| *n > 0);
    let (column, line) = (number(), number());
    match (parts.next(), line, column) {
        (Some(file), Some(line), Some(column)) if !file.is_empty() => Ok(Place {
            file: file.into(),
            line,
            column,
        }),
        _ => Err("write FILE:LINE:COLUMN, such as src/Top.cal:12:8; both count from 1".to_string()),
    }
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

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("write NAME=VALUE".to_string()),
    }
}

fn workers(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("write a whole number from 1 to 1024".to_string()),
    }
}

/// Who looks for work looks at no timer, so that there is a limit.
fn microseconds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 0..=1_000_000) => Ok(n),
        _ => Err("write a whole number from 0 to 1000000".to_string()),
    }
}

/// Of something that there is a limit of.
fn amount(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(n) if (1e-3..=1e9).contains(&n) => Ok(n),
        _ => Err("write a number from 0.001 to 1000000000".to_string()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().filter(|n| *n > 0);
    bytes
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| "write a number of bytes, such as 500000, 64K, 10M or 1G".to_string())
}

fn domain(text: &str) -> Result<u32, String> {
    const LAST: u32 = 0x7fff_ffff;
    match text.parse() {
        Ok(n @ 0..=LAST) => Ok(n),
        _ => Err(format!("write a whole number from 0 to {LAST}")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.05..=3600.0).contains(&s) => Ok(s),
        _ => Err("write a number from 0.05 to 3600".to_string()),
    }
}
