// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drawings of networks: Graphviz text, and SVG.
//!
//! In the SVG the stream runs from left to right. [`layout`] assigns actors to layers, orders them to reduce
//! crossings, and routes each channel around the actors; [`svg`] draws the result.

mod layout;
mod svg;

pub use svg::svg;

use crate::ir;
use crate::ir::type_name;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The parts of a network that a drawing needs.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub name: String,
    pub nodes: Vec<Node>,
    pub nets: Vec<Net>,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub class: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// Measurements, in the drawing of a run.
    pub measured: Option<Measured>,
}

/// Measurements of an actor in a run.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub worker: u32,
    /// Fraction of the run's time on one core, 0 to 1.
    pub share: f64,
}

/// A channel: one output port, one or more input ports.
#[derive(Clone, Debug)]
pub struct Net {
    pub from: (usize, usize),
    pub to: Vec<(usize, usize)>,
    pub capacity: Option<u32>,
    pub ty: String,
    /// Elements carried in a run.
    pub elements: Option<u64>,
}

impl Graph {
    pub fn new(network: &ir::Network) -> Graph {
        let ports = |list: &[ir::Port]| list.iter().map(|p| p.name.clone()).collect();
        let nodes = network.instances.iter().map(|i| Node {
            name: i.name.clone(),
            class: unspecialised(&i.actor.name).to_string(),
            inputs: ports(&i.actor.inputs),
            outputs: ports(&i.actor.outputs),
            measured: None,
        });
        let nets = network.channels.iter().map(|c| Net {
            from: (c.from.instance, c.from.port),
            to: c.to.iter().map(|t| (t.instance, t.port)).collect(),
            capacity: c.capacity,
            ty: type_name(&network.instances[c.from.instance].actor.outputs[c.from.port].ty),
            elements: None,
        });
        Graph {
            name: network.name.clone(),
            nodes: nodes.collect(),
            nets: nets.collect(),
        }
    }

    /// The graph in Graphviz's language.
    pub fn dot(&self) -> String {
        let feedback = layout::feedback(self);
        let mut out = format!(
            "digraph {} {{\n  rankdir=LR;\n  node [shape=record, fontname=\"sans-serif\", fontsize=10];\n  \
             edge [fontname=\"sans-serif\", fontsize=8];\n",
            quoted(&self.name)
        );
        for (i, node) in self.nodes.iter().enumerate() {
            let ports = |list: &[String], kind: char| {
                let cells: Vec<String> = list
                    .iter()
                    .enumerate()
                    .map(|(p, name)| format!("<{kind}{p}> {}", record(name)))
                    .collect();
                cells.join("|")
            };
            let label = format!(
                "{{{{{}}}|{}\\n{}|{{{}}}}}",
                ports(&node.inputs, 'i'),
                record(&node.name),
                record(&node.class),
                ports(&node.outputs, 'o')
            );
            let _ = writeln!(out, "  n{i} [label=\"{label}\"];");
        }
        for net in &self.nets {
            for to in &net.to {
                let mut attributes = Vec::new();
                if let Some(capacity) = net.capacity {
                    attributes.push(format!("label=\"{capacity}\""));
                }
                if feedback.contains(&(net.from.0, to.0)) {
                    attributes.push("style=dashed".to_string());
                }
                let attributes = if attributes.is_empty() {
                    String::new()
                } else {
                    format!(" [{}]", attributes.join(", "))
                };
                let _ = writeln!(
                    out,
                    "  n{}:o{} -> n{}:i{}{attributes};",
                    net.from.0, net.from.1, to.0, to.1
                );
            }
        }
        out.push_str("}\n");
        out
    }

    /// Figures about the graph.
    pub fn statistics(&self) -> serde_json::Value {
        let classes: HashSet<&str> = self.nodes.iter().map(|n| n.class.as_str()).collect();
        let feedback = layout::feedback(self);
        let sources = (0..self.nodes.len())
            .filter(|n| !self.nets.iter().any(|e| e.to.iter().any(|t| t.0 == *n)));
        let sinks = (0..self.nodes.len()).filter(|n| !self.nets.iter().any(|e| e.from.0 == *n));
        serde_json::json!({
            "network": self.name,
            "actors": self.nodes.len(),
            "classes": classes.len(),
            "channels": self.nets.len(),
            "consumers": self.nets.iter().map(|n| n.to.len()).sum::<usize>(),
            "largest_fan_out": self.nets.iter().map(|n| n.to.len()).max().unwrap_or(0),
            "sources": sources.count(),
            "sinks": sinks.count(),
            "layers": layout::layers(self).iter().max().map_or(0, |l| l + 1),
            "feedback": feedback.len(),
        })
    }
}

/// The class as the user wrote it: `fir.Mac__3_m1` is a specialised `fir.Mac`, and `fir.Mac__3_m1__2` another one.
pub fn unspecialised(class: &str) -> &str {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let value =
        |s: &str| matches!(s, "true" | "false" | "x") || digits(s.strip_prefix('m').unwrap_or(s));
    let values = |s: &str| {
        let (all, number) = s.split_once("__").unwrap_or((s, "2"));
        all.split('_').all(value) && digits(number)
    };
    let places = class.bytes().zip(class.bytes().skip(1)).enumerate();
    let mut ends = places.filter(|(_, two)| *two == (b'_', b'_'));
    let end = ends.find(|(i, _)| values(&class[i + 2..]));
    end.map_or(class, |(i, _)| &class[..i])
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Text within a record's label.
fn record(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\{}|<>\" ".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
