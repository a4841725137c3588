// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Draws a network that has been laid out.

use super::layout::{HEAD, Layout, Point, Wire, layout, port_dy};
use super::{Graph, Net};
use std::collections::HashSet;
use std::fmt::Write as _;

const TITLE: f64 = 38.0;

/// Fill colours by outermost network, so that related actors can be recognised.
const FILLS: [(&str, &str); 8] = [
    ("#eaf2fb", "#4a7fb5"),
    ("#eaf7ee", "#4b9a66"),
    ("#fdf3e3", "#c08a30"),
    ("#f6ecf8", "#9160a0"),
    ("#fdecea", "#bb6258"),
    ("#e7f6f6", "#3c9292"),
    ("#f3f3e4", "#8a8a3c"),
    ("#eeeef8", "#6a6ab0"),
];

const STYLE: &str = "text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#1d2733}\
.name{font-size:12px;font-weight:600}.class{font-size:9.5px;fill:#5b6b7a}\
.port{font-size:9.5px;fill:#36434f}.cap{font-size:9px;fill:#36434f;paint-order:stroke;\
stroke:#ffffff;stroke-width:3px}.title{font-size:15px;font-weight:600}\
.sub{font-size:10.5px;fill:#5b6b7a}.wire{fill:none;stroke:#5b6b7a;stroke-width:1.4}\
.back{fill:none;stroke:#d2691e;stroke-width:1.6;stroke-dasharray:6 3}";

/// The picture of a network.
pub fn svg(graph: &Graph) -> String {
    let widths: Vec<f64> = graph
        .nodes
        .iter()
        .map(|node| {
            let widest =
                |list: &[String]| list.iter().map(|p| text_width(p, 9.5)).fold(0.0, f64::max);
            let name = text_width(&node.name, 12.0) * 1.08 + 24.0;
            let class = text_width(&node.class, 9.5) + 24.0;
            let ports = widest(&node.inputs) + widest(&node.outputs) + 40.0;
            name.max(class).max(ports).max(90.0)
        })
        .collect();
    let stubs: Vec<f64> = (0..graph.nodes.len()).map(|n| stub(graph, n)).collect();
    let layout = layout(graph, &widths, &stubs, TITLE);
    let subtitle = subtitle(graph);
    let title_width = text_width(&graph.name, 15.0) * 1.1 + text_width(&subtitle, 10.5) + 80.0;
    let width = layout.width.max(title_width);
    let shift = (width - layout.width) / 2.0;
    let height = layout.height;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n<defs>{}{}</defs>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"#ffffff\"/>\n",
        escape(&graph.name),
        arrow("tip", "#5b6b7a"),
        arrow("tipback", "#d2691e"),
    );
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"20\" y=\"26\">{}<tspan class=\"sub\" dx=\"12\">{}</tspan></text>",
        escape(&graph.name),
        escape(&subtitle)
    );
    let _ = writeln!(out, "<g transform=\"translate({shift:.1} 0)\">");
    for wire in &layout.wires {
        let stub = stubs[graph.nets[wire.net].from.0];
        draw_wire(&mut out, graph, wire, stub);
    }
    draw_boxes(&mut out, graph, &layout);
    draw_capacities(&mut out, graph, &layout);
    out.push_str("</g>\n</svg>\n");
    out
}

fn subtitle(graph: &Graph) -> String {
    let feedback = super::layout::feedback(graph).len();
    let plural = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let workers: HashSet<u32> = graph
        .nodes
        .iter()
        .filter_map(|n| Some(n.measured?.worker))
        .collect();
    let on = match workers.len() {
        0 => String::new(),
        n => format!(" on {}", plural(n, "core")),
    };
    let mut text = format!(
        "{}{on}, {}",
        plural(graph.nodes.len(), "actor"),
        plural(graph.nets.len(), "channel")
    );
    if feedback > 0 {
        text += ", feedback dashed";
    }
    if graph.nets.iter().any(|n| n.elements.is_some()) {
        text += "; numbers are elements carried, bars shares of a core";
    } else if graph.nets.iter().any(|n| n.capacity.is_some()) {
        text += "; numbers are capacities in elements";
    }
    text
}

fn arrow(id: &str, color: &str) -> String {
    format!(
        "<marker id=\"{id}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 1L10 5L0 9z\" \
         fill=\"{color}\"/></marker>"
    )
}

fn draw_wire(out: &mut String, graph: &Graph, wire: &Wire, stub: f64) {
    let net = &graph.nets[wire.net];
    let (class, tip) = if wire.feedback {
        ("back", "tipback")
    } else {
        ("wire", "tip")
    };
    let (from, to) = (&graph.nodes[net.from.0], &graph.nodes[wire.to.0]);
    let capacity = net
        .capacity
        .map_or(String::new(), |c| format!(", capacity {c}"));
    let _ = writeln!(
        out,
        "<path class=\"{class}\" marker-end=\"url(#{tip})\" d=\"{}\"><title>{}</title></path>",
        path(&wire.points, stub),
        escape(&format!(
            "{}.{} → {}.{}: {}{capacity}",
            from.name, from.outputs[net.from.1], to.name, to.inputs[wire.to.1], net.ty
        ))
    );
}

/// Wires leave an actor horizontally for the length of its longest label, so that no wire crosses a label.
fn stub(graph: &Graph, node: usize) -> f64 {
    let nets = graph.nets.iter().filter(|n| n.from.0 == node);
    let widths = nets.filter_map(|n| Some(LABEL_DX + text_width(&label(n)?, 9.0) + 4.0));
    widths.fold(0.0, f64::max)
}

/// Distance of a label from its port.
const LABEL_DX: f64 = 6.0;

/// The elements that a channel carried, or its capacity.
fn label(net: &Net) -> Option<String> {
    match (net.elements, net.capacity) {
        (Some(elements), _) => Some(short(elements)),
        (None, capacity) => Some(capacity?.to_string()),
    }
}

/// Horizontal along the label and at every point: straight through layers, S-shaped between them, and a loop where it
/// reverses.
fn path(points: &[Point], stub: f64) -> String {
    let mut d = format!("M{:.1} {:.1}h{stub}", points[0].x, points[0].y);
    let mut heading = 1.0;
    for (i, pair) in points.windows(2).enumerate() {
        let (mut a, b) = (pair[0], pair[1]);
        if i == 0 {
            a.x += stub;
        }
        // Points 1-2, 3-4, ... are horizontal segments; the others turn in the gaps.
        let level = i % 2 == 1;
        if level {
            heading = if b.x >= a.x { 1.0 } else { -1.0 };
            let _ = write!(d, "L{:.1} {:.1}", b.x, b.y);
            continue;
        }
        let leave = heading;
        // The direction in which the next segment, or the port, is entered.
        let enter = match points.get(i + 2) {
            Some(next) if next.x < b.x => -1.0,
            _ => 1.0,
        };
        let reach = if leave == enter {
            (b.x - a.x).abs() * 0.5
        } else {
            18.0 + ((b.y - a.y).abs() * 0.12).min(26.0)
        };
        let _ = write!(
            d,
            "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            a.x + leave * reach,
            a.y,
            b.x - enter * reach,
            b.y,
            b.x,
            b.y
        );
        heading = enter;
    }
    d
}

fn draw_boxes(out: &mut String, graph: &Graph, layout: &Layout) {
    let mut groups: Vec<&str> = Vec::new();
    for (node, b) in graph.nodes.iter().zip(&layout.boxes) {
        let group = node.name.split_once('.').map_or("", |(g, _)| g);
        let color = match (node.measured, groups.iter().position(|g| *g == group)) {
            (Some(measured), _) => measured.worker as usize,
            (None, Some(i)) => i,
            (None, None) => {
                groups.push(group);
                groups.len() - 1
            }
        };
        let under = match node.measured {
            Some(m) => format!("core {} · {:.0} %", m.worker, m.share * 100.0),
            None => node.class.clone(),
        };
        let (fill, stroke) = FILLS[color % FILLS.len()];
        let middle = b.x + b.width / 2.0;
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"7\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.3\"/>",
            escape(&format!("{}: {}", node.name, node.class)),
            b.x,
            b.y,
            b.width,
            b.height
        );
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"class\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            b.y + 17.0,
            escape(&node.name),
            b.y + 30.0,
            escape(&under)
        );
        if let Some(measured) = node.measured {
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"3\" fill=\"{stroke}\"/>",
                b.x,
                b.y + HEAD - 5.0,
                b.width * measured.share.clamp(0.0, 1.0)
            );
        }
        if !node.inputs.is_empty() || !node.outputs.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {:.1}h{:.1}\" stroke=\"{stroke}\" stroke-width=\"0.6\" \
                 opacity=\"0.6\"/>",
                b.x,
                b.y + HEAD - 3.0,
                b.width
            );
        }
        for (list, x, dx, anchor) in [
            (&node.inputs, b.x, 9.0, "start"),
            (&node.outputs, b.x + b.width, -9.0, "end"),
        ] {
            for (i, port) in list.iter().enumerate() {
                let y = b.y + port_dy(i);
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{stroke}\"/>\
                     <text class=\"port\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                    x + dx,
                    y + 3.4,
                    escape(port)
                );
            }
        }
        out.push_str("</g>\n");
    }
}

/// Draws the capacity of each channel, or the number of elements that it carried, next to its output port.
fn draw_capacities(out: &mut String, graph: &Graph, layout: &Layout) {
    for net in &graph.nets {
        let Some(number) = label(net) else { continue };
        let b = &layout.boxes[net.from.0];
        let _ = writeln!(
            out,
            "<text class=\"cap\" x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
            b.x + b.width + LABEL_DX,
            b.y + port_dy(net.from.1) - 3.5
        );
    }
}

/// 1234567 as "1.23 M".
fn short(n: u64) -> String {
    let x = n as f64;
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{:.1} k", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} M", x / 1e6),
        _ => format!("{:.2} G", x / 1e9),
    }
}

/// The approximate width of a text, for drawing boxes around it.
fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | '\'' | '|' | ' ' => 0.36,
            'f' | 't' | 'r' | '(' | ')' | '-' => 0.43,
            'm' | 'w' | 'M' | 'W' | '@' => 0.96,
            'A'..='Z' | '_' => 0.72,
            c if c.is_ascii() => 0.63,
            _ => 1.0,
        })
        .sum();
    em * size
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
