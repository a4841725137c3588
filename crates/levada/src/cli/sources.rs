// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of the commands on CAL and C sources: check, build, format, draw, translate.

use super::network::{CompileArgs, NetworkArgs};
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// C source
    C,
    /// A shared object, as `levada run` loads it
    So,
    /// A program that contains the network and the runtime, for this machine's type of processor
    Exe,
}

#[derive(Args, Debug)]
pub struct BuildArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    /// The output file [default: the network's name, in the current folder]. C is written as several files if this is a
    /// folder. Only files that Levada has written are replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "exe")]
    pub emit: Emit,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Print the names of the output files as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files (.cal, .xdf), or folders that contain them
    #[arg(required_unless_present = "explain", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Also search this folder for classes
    #[arg(long = "path", short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub path: Vec<PathBuf>,
    /// Instead, explain what is at this place: the type of an expression, the width in which it is computed and the
    /// rule for it, or the declaration of a name
    #[arg(long, value_name = "FILE:LINE:COLUMN", conflicts_with = "paths", value_parser = place)]
    pub explain: Option<Place>,
    /// Also report where the result depends on what the language leaves open, and what Levada does there: which of two
    /// actions fires first if that depends on when elements arrive, and values that may not fit an odd width
    #[arg(long, conflicts_with = "explain")]
    pub portability_notes: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct FmtArgs {
    /// Files (.cal), or folders that contain them; - formats standard input to standard output
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Change nothing: print the names of unformatted files, and fail if there are any
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Debug)]
pub struct GraphArgs {
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Write an SVG picture (- is standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Write a Graphviz file (- is standard output) [default: - if no other output is requested]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dot: Option<PathBuf>,
    /// Print the graph's statistics as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CcArgs {
    /// Erase !! and compile the sequential program
    #[arg(long)]
    pub serial: bool,
    /// Make a shared object for `levada load`, which uses the host's runtime (-fPIC -shared -Wl,-Bsymbolic)
    #[arg(long)]
    pub plugin: bool,
    /// Arguments of the C compiler
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct TranslateArgs {
    /// The C file (- is standard input)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The output file (- is standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// Erase !! and print the sequential program
    #[arg(long)]
    pub serial: bool,
    /// Options that the C compiler needs to preprocess the file, such as -I and -D, after --
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
