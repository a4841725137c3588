// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strongly connected components (Tarjan 1972), in linear time and without recursion.

/// The number of the component that each of `n` nodes is in; `followers` are the nodes that its edges
/// lead to.
pub fn components<I: Iterator<Item = usize>>(
    n: usize,
    followers: impl Fn(usize) -> I,
) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (mut order, mut low, mut component) = (vec![NONE; n], vec![0; n], vec![NONE; n]);
    let (mut visited, mut found) = (0, 0);
    let mut open = Vec::new();
    for root in 0..n {
        if order[root] != NONE {
            continue;
        }
        let mut path = vec![(root, followers(root))];
        (order[root], low[root]) = (visited, visited);
        visited += 1;
        open.push(root);
        while let Some((i, ways)) = path.last_mut() {
            let i = *i;
            match ways.next() {
                Some(j) if order[j] == NONE => {
                    (order[j], low[j]) = (visited, visited);
                    visited += 1;
                    open.push(j);
                    path.push((j, followers(j)));
                }
                Some(j) if component[j] == NONE => low[i] = low[i].min(order[j]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        low[*parent] = low[*parent].min(low[i]);
                    }
                    if low[i] == order[i] {
                        while let Some(j) = open.pop() {
                            component[j] = found;
                            if j == i {
                                break;
                            }
                        }
                        found += 1;
                    }
                }
            }
        }
    }
    component
}
