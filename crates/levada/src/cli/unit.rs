// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada unit`: processors behind a memory window.

use super::values::seconds;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum UnitCommand {
    /// List the units, and the state of each
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
    /// The agent: the process that holds a unit
    #[command(hide = true)]
    Serve(BootArgs),
}

impl UnitCommand {
    pub fn json(&self) -> bool {
        match self {
            UnitCommand::List(at) => at.json,
            UnitCommand::Boot(args) | UnitCommand::Serve(args) => args.unit.at.json,
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
    /// A processor behind a device of UIO's, or behind /dev/mem: uio0, mem@ADDRESS+SIZE (see the guide)
    #[arg(long, group = "kind", value_name = "DEVICE", value_parser = device)]
    pub uio: Option<String>,
    /// A processor that Linux starts: remoteproc0,memory=... (see the guide)
    #[arg(long, group = "kind", value_name = "PROCESSOR", value_parser = device)]
    pub remoteproc: Option<String>,
}

impl BootArgs {
    /// What a unit's name begins with.
    pub fn board(&self) -> String {
        match self {
            BootArgs {
                uio: Some(device), ..
            } => format!("uio:{device}"),
            BootArgs {
                remoteproc: Some(processor),
                ..
            } => format!("remoteproc:{processor}"),
            BootArgs { qemu: true, .. } => "qemu".into(),
            BootArgs { qemu32: true, .. } => "qemu32".into(),
            _ => "native".into(),
        }
    }

    /// The option that says so.
    pub fn option(&self) -> String {
        match self.board().split_once(':') {
            Some((kind, device)) => format!("--{kind}={device}"),
            None => format!("--{}", self.board()),
        }
    }
}

/// What stands before an image's file, with a colon between: it has none.
fn device(text: &str) -> Result<String, String> {
    match text {
        "" => Err("name a device".into()),
        _ if text.contains(':') => {
            Err("a device has no colon in it, and no image behind it".into())
        }
        _ => Ok(text.into()),
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
    /// Stop the program when it has not ended by then [default: wait, whatever it does]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub timeout: Option<f64>,
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
