// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada graph`: a network as a picture (SVG) or as Graphviz text (DOT).

use crate::cli::GraphArgs;
use crate::network;
use crate::output::{self, Failure};
use levada_cal::graph::{Graph, svg};
use std::process::ExitCode;

pub fn graph(args: &GraphArgs) -> Result<ExitCode, Failure> {
    let loaded = network::load(&args.network)?;
    let graph = Graph::new(&loaded.network);
    if let Some(file) = &args.svg {
        output::write_file(file, svg(&graph).as_bytes())?;
    }
    if let Some(file) = &args.dot {
        output::write_file(file, graph.dot().as_bytes())?;
    }
    if args.json {
        output::line(&graph.statistics().to_string())?;
    } else if args.svg.is_none() && args.dot.is_none() {
        output::line(graph.dot().trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}
