// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada mcapi`.

use super::values::{domain, seconds};
use clap::{Args, Subcommand};

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
    #[arg(value_name = "DOMAIN", allow_negative_numbers = true, value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print JSON, a line for each look
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Time between two updates
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_negative_numbers = true, value_parser = seconds)]
    pub interval: f64,
}

#[derive(Args, Debug)]
pub struct CleanArgs {
    /// Only these domains [default: all of yours]
    #[arg(value_name = "DOMAIN", allow_negative_numbers = true, value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print what was taken away as JSON
    #[arg(long)]
    pub json: bool,
}
