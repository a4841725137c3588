// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ranges of many variables as a persistent vector: a tree of wide nodes, in which copies share unchanged
//! nodes. The analysis copies the environment at each branch and loop and joins the copies afterwards. A copy takes
//! constant time, and a join time proportional to the differences.

use super::Range;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

/// The children of a node, and the ranges of a leaf.
const WIDTH: usize = 16;

#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Range>),
    Inner(Vec<Rc<Node>>),
}

#[derive(Clone, Debug)]
pub struct Slots {
    root: Rc<Node>,
    /// The number of ranges below one child of the root; 1 if the root is a leaf.
    step: usize,
    len: usize,
    /// Ranges that were pushed after construction.
    pushed: Vec<Range>,
}

impl Slots {
    pub fn filled(range: Range, len: usize) -> Slots {
        std::iter::repeat_n(range, len).collect()
    }

    pub fn len(&self) -> usize {
        self.len + self.pushed.len()
    }

    pub fn get(&self, at: usize) -> Option<&Range> {
        (at < self.len()).then(|| &self[at])
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut Range> {
        (at < self.len()).then(|| &mut self[at])
    }

    pub fn push(&mut self, range: Range) {
        self.pushed.push(range);
    }

    /// Removes pushed ranges, down to `len` in total.
    pub fn truncate(&mut self, len: usize) {
        self.pushed.truncate(len - self.len);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Range> {
        (0..self.len()).map(|at| &self[at])
    }

    /// Replaces each range by `f` of it and the range at the same position in `o`, which has the same length. For
    /// equal ranges `f` must return the same range.
    pub fn merge(&mut self, o: &Slots, f: &dyn Fn(Range, Range) -> Range) {
        merge(&mut self.root, &o.root, f);
        for (a, b) in self.pushed.iter_mut().zip(&o.pushed) {
            *a = f(*a, *b);
        }
    }
}

fn merge(a: &mut Rc<Node>, b: &Rc<Node>, f: &dyn Fn(Range, Range) -> Range) {
    if Rc::ptr_eq(a, b) {
        return;
    }
    if let (Node::Leaf(x), Node::Leaf(y)) = (&**a, &**b)
        && x.iter().zip(y).all(|(x, y)| f(*x, *y) == *x)
    {
        return;
    }
    match (Rc::make_mut(a), &**b) {
        (Node::Leaf(x), Node::Leaf(y)) => {
            x.iter_mut().zip(y).for_each(|(x, y)| *x = f(*x, *y));
        }
        (Node::Inner(x), Node::Inner(y)) => {
            x.iter_mut().zip(y).for_each(|(x, y)| merge(x, y, f));
        }
        _ => unreachable!("both have as many"),
    }
}

fn same(a: &Rc<Node>, b: &Rc<Node>) -> bool {
    Rc::ptr_eq(a, b)
        || match (&**a, &**b) {
            (Node::Leaf(x), Node::Leaf(y)) => x == y,
            (Node::Inner(x), Node::Inner(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
            }
            _ => false,
        }
}

impl PartialEq for Slots {
    fn eq(&self, o: &Slots) -> bool {
        self.len == o.len && self.pushed == o.pushed && same(&self.root, &o.root)
    }
}

impl FromIterator<Range> for Slots {
    fn from_iter<I: IntoIterator<Item = Range>>(all: I) -> Slots {
        let all: Vec<Range> = all.into_iter().collect();
        let len = all.len();
        let leaves = all.chunks(WIDTH).map(|c| Rc::new(Node::Leaf(c.to_vec())));
        let mut nodes: Vec<Rc<Node>> = leaves.collect();
        let mut step = 1;
        while nodes.len() > 1 {
            let inner = nodes
                .chunks(WIDTH)
                .map(|c| Rc::new(Node::Inner(c.to_vec())));
            (nodes, step) = (inner.collect(), step * WIDTH);
        }
        let root = nodes
            .pop()
            .unwrap_or_else(|| Rc::new(Node::Leaf(Vec::new())));
        Slots {
            root,
            step,
            len,
            pushed: Vec::new(),
        }
    }
}

impl Index<usize> for Slots {
    type Output = Range;

    fn index(&self, at: usize) -> &Range {
        if at >= self.len {
            return &self.pushed[at - self.len];
        }
        let (mut node, mut step, mut at) = (&self.root, self.step, at);
        loop {
            match &**node {
                Node::Leaf(ranges) => return &ranges[at],
                Node::Inner(nodes) => {
                    node = &nodes[at / step];
                    (at, step) = (at % step, step / WIDTH);
                }
            }
        }
    }
}

impl IndexMut<usize> for Slots {
    fn index_mut(&mut self, at: usize) -> &mut Range {
        if at >= self.len {
            return &mut self.pushed[at - self.len];
        }
        let (mut node, mut step, mut at) = (&mut self.root, self.step, at);
        loop {
            match Rc::make_mut(node) {
                Node::Leaf(ranges) => return &mut ranges[at],
                Node::Inner(nodes) => {
                    node = &mut nodes[at / step];
                    (at, step) = (at % step, step / WIDTH);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_its_own_ranges() {
        let number = |n: usize| Range::exactly(n as i128);
        for len in [0, 1, 15, 16, 17, 255, 256, 257, 5000] {
            let first: Slots = (0..len).map(number).collect();
            let mut second = first.clone();
            assert!(first == second && first.len() == len);
            for at in (0..len).step_by(7) {
                second[at] = number(at + 1);
            }
            assert_eq!(first == second, len == 0);
            let mut joined = first.clone();
            joined.merge(&second, &Range::join);
            for at in 0..len {
                let other = if at % 7 == 0 { at + 1 } else { at };
                assert_eq!((first[at], second[at]), (number(at), number(other)));
                assert_eq!(joined[at], number(at).join(number(other)));
            }
            joined.push(number(1));
            assert_eq!(joined[len], number(1));
            assert!(joined.get(len).is_some() && joined.get(len + 1).is_none());
            joined.truncate(len);
            assert_eq!(joined.len(), len);
        }
    }
}
