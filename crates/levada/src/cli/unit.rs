// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada unit`: processors behind a memory window.

use super::values::seconds;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum UnitCommand {
    /// List the units and their states
    List(UnitsArgs),
    /// Boot a processor as a unit with this name
    Boot(BootArgs),
    /// Load an image, ELF or raw, for `run`
    Load(UnitLoadArgs),
    /// Run the loaded image to its end, or call a procedure; the exit status is the program's
    Run(UnitRunArgs),
    /// Print the log of a unit, also after it has ended
    Log(UnitArgs),
    /// End a unit, whatever it is doing
    Stop(UnitArgs),
    /// Run the agent: the process that holds a unit
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
    /// The folder of the units' sockets and logs [default: /run/levada/units, or
    /// $XDG_RUNTIME_DIR/levada/units]
    #[arg(long, value_name = "DIR", env = "LEVADA_UNITS", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct UnitArgs {
    /// The name of the unit
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
    /// Boot a riscv64 machine in QEMU
    #[arg(long, group = "kind")]
    pub qemu: bool,
    /// Boot a riscv32 machine in QEMU
    #[arg(long, group = "kind")]
    pub qemu32: bool,
    /// Boot a machine that is a process of this system
    #[arg(long, group = "kind")]
    pub native: bool,
    /// Boot a processor behind a UIO device or /dev/mem: uio0, mem@ADDRESS+SIZE (docs/guide-window.md)
    #[arg(long, group = "kind", value_name = "DEVICE", value_parser = device)]
    pub uio: Option<String>,
    /// Boot a processor that Linux starts: remoteproc0,memory=... (docs/guide-window.md)
    #[arg(long, group = "kind", value_name = "PROCESSOR", value_parser = device)]
    pub remoteproc: Option<String>,
}

impl BootArgs {
    /// The board's name, with which the name of its machine begins.
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

    /// The command-line option that selects this board.
    pub fn option(&self) -> String {
        match self.board().split_once(':') {
            Some((kind, device)) => format!("--{kind}={device}"),
            None => format!("--{}", self.board()),
        }
    }
}

/// Parses a device's name. It contains no colon, since a colon separates it from an image's file.
fn device(text: &str) -> Result<String, String> {
    match text {
        "" => Err("name a device".into()),
        _ if text.contains(':') => {
            Err("a device name has no colon, and no image follows it".into())
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
    /// Call this procedure of a serving program [default: run the program to its end]
    pub procedure: Option<String>,
    /// The procedure's argument, as concatenated parts: u32:7, i64:-3, f64:2.5 (8, 16, 32 or 64 bits), text:WORDS,
    /// hex:0a0b, file:PATH
    #[arg(value_name = "TYPE:VALUE", requires = "procedure")]
    pub arguments: Vec<String>,
    /// Feed a stream of the procedure from a file, in elements of BYTES bytes; "-" is standard input
    #[arg(long = "in", value_name = "STREAM:BYTES=FILE", requires = "procedure")]
    pub inputs: Vec<String>,
    /// Write the elements of a stream into a file; "-" is standard output
    #[arg(long = "out", value_name = "STREAM:BYTES=FILE", requires = "procedure")]
    pub outputs: Vec<String>,
    /// The type of the result: hex, u8 to u64, i8 to i64, f32, f64, text
    #[arg(
        long,
        value_name = "TYPE",
        default_value = "hex",
        requires = "procedure"
    )]
    pub result: String,
    /// Stop the program if it has not ended after this time [default: wait without limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub timeout: Option<f64>,
}

/// Parses a unit's name, which is part of file names.
fn unit_name(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=40).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(known)
    {
        true => Ok(text.to_string()),
        false => Err(
            "use 1 to 40 letters, digits, '-', '_' or '.', beginning with a letter or digit".into(),
        ),
    }
}
