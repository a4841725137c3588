// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A layered layout with ports (Sugiyama, Tagawa and Toda 1981).
//!
//! The usual steps: reverse feedback edges, assign each actor to a layer, insert a dummy wherever a line crosses a
//! layer, order each layer to reduce crossings, and move everything vertically until lines are as level as the
//! order allows. Dummies take space like actors, so no line crosses an actor. A feedback line has dummies in the
//! layers of both ends as well, so it leaves and arrives on the same sides as every other line.

use super::Graph;
use std::collections::HashSet;

pub const ROW: f64 = 17.0;
pub const HEAD: f64 = 40.0;
const FOOT: f64 = 8.0;
const BETWEEN: f64 = 26.0;
const LANE: f64 = 14.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Debug)]
pub struct Box {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// The route of a channel to one of its consumers.
#[derive(Clone, Debug)]
pub struct Wire {
    pub net: usize,
    pub to: (usize, usize),
    pub feedback: bool,
    /// From port to port. Each pair of points after the first is a horizontal segment through a layer.
    pub points: Vec<Point>,
}

#[derive(Clone, Debug)]
pub struct Layout {
    pub boxes: Vec<Box>,
    pub wires: Vec<Wire>,
    pub width: f64,
    pub height: f64,
}

/// The pairs of actors with channels against the direction of the stream.
pub fn feedback(graph: &Graph) -> HashSet<(usize, usize)> {
    let count = graph.nodes.len();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut fed = vec![false; count];
    for net in &graph.nets {
        for to in &net.to {
            successors[net.from.0].push(to.0);
            fed[to.0] |= to.0 != net.from.0;
        }
    }
    // Depth-first search from the sources: a channel to an actor on the current path closes a cycle.
    let roots = (0..count)
        .filter(|&n| !fed[n])
        .chain((0..count).filter(|&n| fed[n]));
    let mut state = vec![0u8; count];
    let mut back = HashSet::new();
    for root in roots {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            match successors[node].get(next) {
                None => state[node] = 2,
                Some(&to) => {
                    stack.push((node, next + 1));
                    match state[to] {
                        0 => {
                            state[to] = 1;
                            stack.push((to, 0));
                        }
                        1 => {
                            back.insert((node, to));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    back
}

/// The layer of each actor: one more than its deepest producer. Sources move up to their first consumer.
pub fn layers(graph: &Graph) -> Vec<usize> {
    let back = feedback(graph);
    let count = graph.nodes.len();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting = vec![0usize; count];
    for net in &graph.nets {
        for to in &net.to {
            if !back.contains(&(net.from.0, to.0)) {
                successors[net.from.0].push(to.0);
                waiting[to.0] += 1;
            }
        }
    }
    let is_source: Vec<bool> = waiting.iter().map(|w| *w == 0).collect();
    let mut layer = vec![0usize; count];
    let mut ready: Vec<usize> = (0..count).filter(|&n| waiting[n] == 0).collect();
    while let Some(node) = ready.pop() {
        for &to in &successors[node] {
            layer[to] = layer[to].max(layer[node] + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(to);
            }
        }
    }
    for node in 0..count {
        if is_source[node]
            && let Some(first) = successors[node].iter().map(|&to| layer[to]).min()
        {
            layer[node] = first.saturating_sub(1);
        }
    }
    layer
}

/// An actor, or a dummy where a wire crosses a layer.
struct Item {
    layer: usize,
    height: f64,
    y: f64,
    node: Option<usize>,
}

/// Between two items of neighbouring layers, or (for the ends of feedback) of the same one.
struct Segment {
    left: usize,
    left_dy: f64,
    right: usize,
    right_dy: f64,
}

/// Net, consumer, whether it is feedback, and the dummies on its way.
type Chain = (usize, (usize, usize), bool, Vec<usize>);

struct Sugiyama {
    items: Vec<Item>,
    segments: Vec<Segment>,
    /// For each layer, its items from top to bottom.
    order: Vec<Vec<usize>>,
}

pub fn port_dy(index: usize) -> f64 {
    HEAD + ROW * (index as f64 + 0.5)
}

pub fn layout(graph: &Graph, widths: &[f64], stubs: &[f64], title_height: f64) -> Layout {
    let back = feedback(graph);
    let layer = layers(graph);
    let depth = layer.iter().max().map_or(0, |l| l + 1);
    let mut s = Sugiyama {
        items: Vec::new(),
        segments: Vec::new(),
        order: vec![Vec::new(); depth],
    };
    for (i, node) in graph.nodes.iter().enumerate() {
        let rows = node.inputs.len().max(node.outputs.len());
        let height = HEAD + ROW * rows as f64 + FOOT;
        s.item(layer[i], height, Some(i));
    }
    // The dummies of each wire, in the direction of the stream.
    let mut chains: Vec<Chain> = Vec::new();
    for (n, net) in graph.nets.iter().enumerate() {
        // Forward wires of one channel share their route as far as possible.
        let mut trunk: Vec<usize> = Vec::new();
        let mut forward: Vec<(usize, usize)> = net.to.clone();
        forward.sort_by_key(|t| layer[t.0]);
        for to in forward {
            let (from_layer, to_layer) = (layer[net.from.0], layer[to.0]);
            let is_back = back.contains(&(net.from.0, to.0)) || to_layer <= from_layer;
            if is_back {
                let chain: Vec<usize> = (to_layer..=from_layer)
                    .map(|l| s.item(l, LANE, None))
                    .collect();
                for pair in chain.windows(2) {
                    s.segment(pair[0], LANE / 2.0, pair[1], LANE / 2.0);
                }
                // Near its ends, which are in its own layers.
                s.segment(chain[0], LANE / 2.0, to.0, port_dy(to.1));
                let last = chain[chain.len() - 1];
                s.segment(net.from.0, port_dy(net.from.1), last, LANE / 2.0);
                chains.push((n, to, true, chain));
                continue;
            }
            while trunk.len() < to_layer - from_layer - 1 {
                let dummy = s.item(from_layer + 1 + trunk.len(), LANE, None);
                match trunk.last() {
                    Some(&last) => s.segment(last, LANE / 2.0, dummy, LANE / 2.0),
                    None => s.segment(net.from.0, port_dy(net.from.1), dummy, LANE / 2.0),
                }
                trunk.push(dummy);
            }
            let chain = trunk[..to_layer - from_layer - 1].to_vec();
            match chain.last() {
                Some(&last) => s.segment(last, LANE / 2.0, to.0, port_dy(to.1)),
                None => s.segment(net.from.0, port_dy(net.from.1), to.0, port_dy(to.1)),
            }
            chains.push((n, to, false, chain));
        }
    }
    s.sort();
    s.level();

    // Columns are as wide as their widest actor; gaps have room for the wires that turn in them.
    let mut column = vec![0.0f64; depth];
    let mut level = vec![0.0f64; depth];
    for (node, l) in layer.iter().enumerate() {
        column[*l] = column[*l].max(widths[node]);
        level[*l] = level[*l].max(stubs[node]);
    }
    let mut busy = vec![0usize; depth + 1];
    for (_, _, is_back, chain) in &chains {
        if *is_back {
            busy[s.items[chain[0]].layer] += 1;
            busy[s.items[chain[chain.len() - 1]].layer + 1] += 1;
        }
    }
    for segment in &s.segments {
        let (a, b) = (s.items[segment.left].layer, s.items[segment.right].layer);
        if b == a + 1 {
            busy[b] += 1;
        }
    }
    let gap = |l: usize| match l {
        0 => 24.0 + 10.0 * busy[0] as f64,
        l if l == depth && busy[l] == 0 => 24.0,
        l if l == depth => 24.0 + level[l - 1] + 10.0 * busy[l] as f64,
        l => level[l - 1].max(24.0) + (60.0 + 4.0 * busy[l] as f64).min(170.0),
    };
    let mut left = vec![0.0; depth];
    let mut x = 0.0;
    for l in 0..depth {
        x += gap(l);
        left[l] = x;
        x += column[l];
    }
    let width = x + gap(depth);
    let top = s.items.iter().map(|i| i.y).fold(f64::INFINITY, f64::min);
    let lift = title_height + 16.0 - if top.is_finite() { top } else { 0.0 };
    for item in &mut s.items {
        item.y += lift;
    }
    let bottom = s
        .items
        .iter()
        .map(|i| i.y + i.height)
        .fold(title_height, f64::max);

    let boxes: Vec<Box> = (0..graph.nodes.len())
        .map(|n| Box {
            x: left[layer[n]] + (column[layer[n]] - widths[n]) / 2.0,
            y: s.items[n].y,
            width: widths[n],
            height: s.items[n].height,
        })
        .collect();
    let wires = chains
        .into_iter()
        .map(|(net, to, is_back, chain)| {
            let from = graph.nets[net].from;
            let mut points = vec![Point {
                x: boxes[from.0].x + boxes[from.0].width,
                y: boxes[from.0].y + port_dy(from.1),
            }];
            let mut through = |item: &Item, backwards: bool| {
                let y = item.y + item.height / 2.0;
                let (a, b) = (left[item.layer], left[item.layer] + column[item.layer]);
                let (a, b) = if backwards { (b, a) } else { (a, b) };
                points.extend([Point { x: a, y }, Point { x: b, y }]);
            };
            if is_back {
                chain.iter().rev().for_each(|&i| through(&s.items[i], true))
            } else {
                chain.iter().for_each(|&i| through(&s.items[i], false))
            }
            points.push(Point {
                x: boxes[to.0].x,
                y: boxes[to.0].y + port_dy(to.1),
            });
            Wire {
                net,
                to,
                feedback: is_back,
                points,
            }
        })
        .collect();
    Layout {
        boxes,
        wires,
        width,
        height: bottom + 20.0,
    }
}

impl Sugiyama {
    fn item(&mut self, layer: usize, height: f64, node: Option<usize>) -> usize {
        self.items.push(Item {
            layer,
            height,
            y: 0.0,
            node,
        });
        self.order[layer].push(self.items.len() - 1);
        self.items.len() - 1
    }

    fn segment(&mut self, left: usize, left_dy: f64, right: usize, right_dy: f64) {
        self.segments.push(Segment {
            left,
            left_dy,
            right,
            right_dy,
        });
    }

    fn positions(&self) -> Vec<usize> {
        let mut position = vec![0; self.items.len()];
        for layer in &self.order {
            for (p, &item) in layer.iter().enumerate() {
                position[item] = p;
            }
        }
        position
    }

    /// Orders the layers by barycentres in alternating sweeps, and keeps the order with the fewest crossings.
    fn sort(&mut self) {
        let mut best = (self.crossings(), self.order.clone());
        for round in 0..24 {
            let down = round % 2 == 0;
            let layers: Vec<usize> = if down {
                (1..self.order.len()).collect()
            } else {
                (0..self.order.len().saturating_sub(1)).rev().collect()
            };
            for l in layers {
                let position = self.positions();
                let mut sum = vec![(0.0f64, 0usize); self.items.len()];
                for s in &self.segments {
                    let (a, b) = (self.items[s.left].layer, self.items[s.right].layer);
                    // The position of a port on its actor counts as well.
                    let fine = |item: usize, dy: f64| {
                        position[item] as f64 + 0.9 * dy / self.items[item].height
                    };
                    if down && b == l && a + 1 == b {
                        let entry = &mut sum[s.right];
                        *entry = (entry.0 + fine(s.left, s.left_dy), entry.1 + 1);
                    } else if !down && a == l && a + 1 == b {
                        let entry = &mut sum[s.left];
                        *entry = (entry.0 + fine(s.right, s.right_dy), entry.1 + 1);
                    }
                }
                let key = |item: usize| match sum[item] {
                    (_, 0) => position[item] as f64,
                    (total, n) => total / n as f64,
                };
                self.order[l].sort_by(|&a, &b| key(a).total_cmp(&key(b)));
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
    }

    /// The number of crossings between neighbouring layers. Wires within a layer (the ends of feedback) count by
    /// their length.
    fn crossings(&self) -> usize {
        let position = self.positions();
        let mut by_layer: Vec<Vec<(f64, f64)>> = vec![Vec::new(); self.order.len()];
        let mut reach = 0;
        for s in &self.segments {
            let (a, b) = (self.items[s.left].layer, self.items[s.right].layer);
            if a == b {
                reach += position[s.left].abs_diff(position[s.right]);
                continue;
            }
            let at =
                |item: usize, dy: f64| position[item] as f64 + 0.9 * dy / self.items[item].height;
            by_layer[a].push((at(s.left, s.left_dy), at(s.right, s.right_dy)));
        }
        let mut count = 0;
        for list in &mut by_layer {
            // Count inversions; large layers are sampled by their size only.
            list.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)));
            for (i, p) in list.iter().enumerate() {
                count += list[..i].iter().filter(|q| q.1 > p.1 && q.0 < p.0).count();
            }
        }
        count * 2 + reach
    }

    /// Moves items vertically, in order, towards the ends of their wires.
    fn level(&mut self) {
        for l in 0..self.order.len() {
            let mut y = 0.0;
            for &item in &self.order[l] {
                self.items[item].y = y;
                y += self.items[item].height + BETWEEN;
            }
        }
        let mut near: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new(); self.items.len()];
        for s in &self.segments {
            let offset = s.left_dy - s.right_dy;
            // Long wires should be straight.
            let both = self.items[s.left].node.is_none() && self.items[s.right].node.is_none();
            let weight = if both { 4.0 } else { 1.0 };
            near[s.right].push((s.left, offset, weight));
            near[s.left].push((s.right, -offset, weight));
        }
        for round in 0..60 {
            let layers: Vec<usize> = match round % 2 {
                0 => (0..self.order.len()).collect(),
                _ => (0..self.order.len()).rev().collect(),
            };
            for l in layers {
                let wish: Vec<f64> = self.order[l]
                    .iter()
                    .map(|&item| {
                        let (mut sum, mut weights) = (0.0, 0.0);
                        for &(other, offset, weight) in &near[item] {
                            sum += weight * (self.items[other].y + offset);
                            weights += weight;
                        }
                        if weights > 0.0 {
                            sum / weights
                        } else {
                            self.items[item].y
                        }
                    })
                    .collect();
                self.settle(l, &wish);
            }
        }
    }

    /// The positions nearest to the desired ones that keep order and distance: overlapping neighbours are merged to
    /// blocks at the mean of their desired positions (pool adjacent violators).
    fn settle(&mut self, layer: usize, wish: &[f64]) {
        struct Block {
            sum: f64,
            count: f64,
            first: usize,
        }
        let order = &self.order[layer];
        // The offset of each item if all items before it are packed tightly.
        let mut offset = vec![0.0; order.len()];
        for i in 1..order.len() {
            let (above, here) = (&self.items[order[i - 1]], &self.items[order[i]]);
            let space = if above.node.is_none() && here.node.is_none() {
                4.0
            } else {
                BETWEEN
            };
            offset[i] = offset[i - 1] + above.height + space;
        }
        let mut blocks: Vec<Block> = Vec::new();
        for i in 0..order.len() {
            blocks.push(Block {
                sum: wish[i] - offset[i],
                count: 1.0,
                first: i,
            });
            while let [.., a, b] = &blocks[..] {
                if a.sum / a.count <= b.sum / b.count {
                    break;
                }
                let last = blocks.pop().map_or((0.0, 0.0), |b| (b.sum, b.count));
                if let Some(block) = blocks.last_mut() {
                    block.sum += last.0;
                    block.count += last.1;
                }
            }
        }
        for (b, block) in blocks.iter().enumerate() {
            let end = blocks.get(b + 1).map_or(order.len(), |n| n.first);
            for i in block.first..end {
                self.items[order[i]].y = block.sum / block.count + offset[i];
            }
        }
    }
}
