// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of layouts by rules: nothing overlaps, no line crosses an actor, the stream runs to the right, and the SVG
//! is well-formed.

use super::layout::{Layout, layout};
use super::*;

fn node(name: &str, inputs: usize, outputs: usize) -> Node {
    Node {
        name: name.to_string(),
        class: format!("test.{name}"),
        inputs: (0..inputs).map(|i| format!("In{i}")).collect(),
        outputs: (0..outputs).map(|i| format!("Out{i}")).collect(),
        measured: None,
    }
}

fn net(from: (usize, usize), to: &[(usize, usize)]) -> Net {
    Net {
        from,
        to: to.to_vec(),
        capacity: Some(512),
        ty: "int(size=32)".to_string(),
        elements: None,
    }
}

/// A feedback loop, a long line past two layers, a fan-out and an actor that feeds itself.
fn knot() -> Graph {
    Graph {
        name: "test.Knot".to_string(),
        nodes: vec![
            node("source", 0, 2),
            node("add", 2, 1),
            node("scale", 1, 1),
            node("delay", 1, 1),
            node("own", 2, 2),
            node("sink", 3, 0),
        ],
        nets: vec![
            net((0, 0), &[(1, 0)]),
            net((0, 1), &[(4, 0), (5, 0)]),
            net((1, 0), &[(2, 0)]),
            net((2, 0), &[(3, 0), (5, 1)]),
            net((3, 0), &[(1, 1)]),
            net((4, 0), &[(4, 1)]),
            net((4, 1), &[(5, 2)]),
        ],
    }
}

/// Graphs of any shape.
fn random(seed: u64) -> Graph {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut below = move |n: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let count = 1 + below(24);
    let nodes: Vec<Node> = (0..count)
        .map(|i| node(&format!("n{i}"), 1 + below(4), 1 + below(4)))
        .collect();
    let mut nets = Vec::new();
    let mut taken = HashSet::new();
    for from in 0..count {
        for port in 0..nodes[from].outputs.len() {
            let mut to = Vec::new();
            for _ in 0..below(4) {
                let end = below(count);
                let end = (end, below(nodes[end].inputs.len()));
                if taken.insert(end) {
                    to.push(end);
                }
            }
            if !to.is_empty() {
                nets.push(net((from, port), &to));
            }
        }
    }
    Graph {
        name: format!("random{seed}"),
        nodes,
        nets,
    }
}

fn laid_out(graph: &Graph) -> Layout {
    let nodes = graph.nodes.len();
    layout(graph, &vec![100.0; nodes], &vec![36.0; nodes], 40.0)
}

fn check(graph: &Graph) {
    let l = laid_out(graph);
    for (i, a) in l.boxes.iter().enumerate() {
        assert!(
            a.x >= 0.0 && a.y >= 40.0 && a.x + a.width <= l.width && a.y + a.height <= l.height
        );
        for b in &l.boxes[..i] {
            let apart = a.x + a.width < b.x
                || b.x + b.width < a.x
                || a.y + a.height < b.y
                || b.y + b.height < a.y;
            assert!(apart, "{}: {a:?} over {b:?}", graph.name);
        }
    }
    let wanted: usize = graph.nets.iter().map(|n| n.to.len()).sum();
    assert_eq!(l.wires.len(), wanted);
    for wire in &l.wires {
        // The level stretches go past all actors.
        for pair in wire.points[1..wire.points.len() - 1].chunks(2) {
            let y = pair[0].y;
            let (from, to) = (pair[0].x.min(pair[1].x), pair[0].x.max(pair[1].x));
            for b in &l.boxes {
                let over = y > b.y && y < b.y + b.height && from < b.x + b.width && to > b.x;
                assert!(!over, "{}: {wire:?} over {b:?}", graph.name);
            }
        }
        if !wire.feedback {
            assert!(wire.points.windows(2).all(|p| p[1].x > p[0].x), "{wire:?}");
        }
    }
}

#[test]
fn nothing_overlaps_and_no_line_runs_over_an_actor() {
    check(&knot());
    for seed in 0..300 {
        check(&random(seed));
    }
    check(&Graph::default());
}

#[test]
fn a_chain_is_level() {
    let graph = Graph {
        name: "chain".to_string(),
        nodes: (0..5).map(|i| node(&format!("n{i}"), 1, 1)).collect(),
        nets: (0..4).map(|i| net((i, 0), &[(i + 1, 0)])).collect(),
    };
    let l = laid_out(&graph);
    assert!(l.boxes.iter().all(|b| (b.y - l.boxes[0].y).abs() < 0.01));
}

#[test]
fn feedback_is_found_and_dashed() {
    let graph = knot();
    let back = layout::feedback(&graph);
    assert_eq!(back, HashSet::from([(3, 1), (4, 4)]));
    assert_eq!(svg(&graph).matches("class=\"back\"").count(), 2);
    assert_eq!(graph.dot().matches("style=dashed").count(), 2);
    assert_eq!(graph.statistics()["feedback"], 2);
    assert_eq!(graph.statistics()["layers"], 4);
}

#[test]
fn the_picture_is_well_formed_whatever_the_names_are() {
    let mut graph = knot();
    graph.name = "<a & \"b\">\u{1}".to_string();
    graph.nodes[0].name = "x<y>{|}\\\"".to_string();
    let text = svg(&graph);
    let document = roxmltree::Document::parse(&text).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|n| n.text()).collect();
    assert!(texts.contains(&"x<y>{|}\\\""));
    assert!(graph.dot().contains("x\\<y\\>\\{\\|\\}\\\\\\\""));
}

#[test]
fn a_run_is_drawn_with_what_was_measured() {
    let mut graph = knot();
    for (i, node) in graph.nodes.iter_mut().enumerate() {
        node.measured = Some(Measured {
            worker: i as u32 % 2,
            share: 0.25,
        });
    }
    graph.nets[0].elements = Some(1_234_567);
    let text = svg(&graph);
    assert!(text.contains("core 1 · 25 %"));
    assert!(text.contains(">1.23 M<"));
    assert!(text.contains("6 actors on 2 cores"));
    check(&graph);
}

#[test]
fn two_hundred_actors_are_laid_out_in_time() {
    let start = std::time::Instant::now();
    let count = 200;
    let graph = Graph {
        name: "large".to_string(),
        nodes: (0..count).map(|i| node(&format!("n{i}"), 3, 3)).collect(),
        nets: (0..count)
            .flat_map(|i| (0..3).map(move |p| (i, p)))
            .map(|(i, p)| net((i, p), &[((i * 7 + p * 31 + 1) % count, p)]))
            .collect(),
    };
    assert!(svg(&graph).len() > 10_000);
    assert!(start.elapsed() < std::time::Duration::from_secs(300));
}

#[test]
fn wires_leave_an_actor_level_until_they_are_past_all_of_its_labels() {
    let mut graph = knot();
    graph.nets[0].capacity = Some(1_048_576);
    let picture = svg(&graph);
    let wide = graph.nets[0].from.0;
    let node = &graph.nodes[wide].name;
    let mut seen = 0;
    for line in picture.lines().filter(|l| l.contains("<path class")) {
        if line.contains(&format!("<title>{node}.")) {
            let level = line
                .split(" d=\"M")
                .nth(1)
                .unwrap()
                .split('h')
                .nth(1)
                .unwrap();
            let level: f64 = level.split(['C', 'L']).next().unwrap().parse().unwrap();
            // Seven digits of 9 pixels, each more than half as wide.
            assert!(level > 7.0 * 4.5 + 6.0, "{line}");
            seen += 1;
        }
    }
    assert!(seen > 0, "{picture}");
}

#[test]
fn a_class_is_named_without_the_values_of_its_parameters() {
    let same = [
        "",
        "__3",
        "__10_0",
        "__m3_true_x",
        "__10_0__2",
        "__false__17",
    ];
    for values in same {
        assert_eq!(unspecialised(&format!("fir.My_Mac{values}")), "fir.My_Mac");
    }
    for other in ["Mac__", "Mac__12_", "Mac__y", "Mac_12", "Mac__é"] {
        assert_eq!(unspecialised(other), other);
    }
}
