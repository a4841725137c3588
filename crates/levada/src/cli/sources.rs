// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of the commands on CAL and C sources: check, build, format, draw, translate.

use super::network::{CompileArgs, NetworkArgs};
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

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
    /// Where to [default: the network's name in the current folder]. C goes into several files if this is a folder.
    /// Only a file that Levada made is replaced
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
    /// Also report where the language leaves something open, and what Levada does there: which of two
    /// actions goes first, where that depends on the time at which elements come, and values that may
    /// not fit an odd width
    #[arg(long, conflicts_with = "explain")]
    pub portability_notes: bool,
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

#[derive(Args, Debug)]
pub struct CcArgs {
    /// Erase !!: compile the sequential program
    #[arg(long)]
    pub serial: bool,
    /// Make a shared object for `levada load`: its runtime is the host's (-fPIC -shared -Wl,-Bsymbolic)
    #[arg(long)]
    pub plugin: bool,
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
