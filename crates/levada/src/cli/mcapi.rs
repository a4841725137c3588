// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments of `levada mcapi`.

use super::values::{domain, seconds};
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub enum McapiCommand {
    /// List domains: nodes, endpoints, channels, pending operations, throughput
    List(LookArgs),
    /// Repeat the list until Ctrl-C
    Watch(WatchArgs),
    /// Remove what programs that died have left, while others continue
    Clean(CleanArgs),
}

#[derive(Args, Debug)]
pub struct LookArgs {
    /// Only these domains [default: all of this user]
    #[arg(value_name = "DOMAIN", allow_negative_numbers = true, value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print JSON, one line per sample
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
    /// Only these domains [default: all of this user]
    #[arg(value_name = "DOMAIN", allow_negative_numbers = true, value_parser = domain)]
    pub domains: Vec<u32>,
    /// Print what was removed as JSON
    #[arg(long)]
    pub json: bool,
}
