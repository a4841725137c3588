// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada graph`: draws a network as SVG or as Graphviz text (DOT); also draws the measured run for `levada run
//! --graph`.

use crate::cli::GraphArgs;
use crate::common::artifact::{self, Kind};
use crate::common::output::{self, Failure, failure_with};
use crate::common::resolve;
use levada_cal::graph::{Graph, Measured, Net, Node, svg, unspecialised};
use levada_sys::{Counters, Network};
use std::process::ExitCode;
use std::time::Duration;

pub fn graph(args: &GraphArgs) -> Result<ExitCode, Failure> {
    let standard = [&args.svg, &args.dot];
    let standard = standard.iter().filter_map(|f| f.as_deref());
    let standard = standard.filter(|f| output::is_standard(f)).count();
    if standard + usize::from(args.json) > 1 {
        return failure_with(
            "only one of --svg -, --dot - and --json can have the output",
            "name a file",
        );
    }
    for (file, kind) in [(&args.svg, Kind::Svg), (&args.dot, Kind::Dot)] {
        file.as_deref()
            .map_or(Ok(()), |file| artifact::check(file, kind))?;
    }
    let loaded = resolve::load(&args.network)?;
    let graph = Graph::new(&loaded.network);
    if let Some(file) = &args.svg {
        artifact::write(file, svg(&graph).as_bytes(), Kind::Svg)?;
    }
    if let Some(file) = &args.dot {
        artifact::write(file, graph.dot().as_bytes(), Kind::Dot)?;
    }
    if args.json {
        let mut statistics = graph.statistics();
        statistics["diagnostics"] = loaded.diagnostics.into();
        output::line(&statistics.to_string())?;
    } else if args.svg.is_none() && args.dot.is_none() {
        output::line(graph.dot().trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The drawing of a run: the actors that ran (some may have been fused), their final placement, how busy they were,
/// and the traffic of the channels.
pub fn of_run(name: &str, network: &Network, counters: &Counters, elapsed: Duration) -> String {
    let measured = |i: usize| {
        counters.actors.get(i).map(|a| Measured {
            worker: a.worker,
            share: a.busy.as_secs_f64() / elapsed.as_secs_f64().max(1e-9),
        })
    };
    let nodes: Vec<Node> = network
        .describe()
        .into_iter()
        .enumerate()
        .map(|(i, actor)| Node {
            class: unspecialised(&actor.class).to_string(),
            name: actor.name,
            inputs: actor.inputs,
            outputs: actor.outputs,
            measured: measured(i),
        })
        .collect();
    let mut nets: Vec<Net> = Vec::new();
    for channel in &counters.channels {
        let end = |p: levada_sys::ffi::lvd_port_ref| (p.actor as usize, p.port as usize);
        let (from, to) = (end(channel.from), end(channel.to));
        // Ends outside of the network are not drawn.
        let there = |(actor, port): (usize, usize), inputs: bool| {
            let list = nodes.get(actor);
            list.is_some_and(|n| {
                port < if inputs {
                    n.inputs.len()
                } else {
                    n.outputs.len()
                }
            })
        };
        if !there(from, false) || !there(to, true) {
            continue;
        }
        match nets.iter_mut().find(|n| n.from == from) {
            Some(net) => net.to.push(to),
            None => nets.push(Net {
                from,
                to: vec![to],
                capacity: Some(channel.capacity),
                ty: format!("{} elements", channel.put),
                elements: Some(channel.put),
            }),
        }
    }
    svg(&Graph {
        name: name.to_string(),
        nodes,
        nets,
    })
}
