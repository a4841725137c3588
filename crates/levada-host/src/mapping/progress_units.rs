// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress of each actor in units of the application, such as frames: the units that have left it at its end, plus
//! those that wait in the channels behind the actor. Where an actor has had no turn, the actors before it have done
//! more than it; without this correction a unit would seem to cost more than it does.

/// A channel, or one consumer's part of it.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    pub put: u64,
    pub got: u64,
}

/// The units done by each actor when `done` units have left the application; none: nothing has reached the actor yet.
/// If nothing has left it at all, the unit is arbitrary.
pub fn units_done(actors: usize, flows: &[Flow], done: f64) -> Vec<Option<f64>> {
    let (mut units, mut is_end) = (vec![None; actors], vec![true; actors]);
    let passes = |f: &&Flow| f.from < actors && f.to < actors && f.from != f.to;
    let flows: Vec<&Flow> = flows.iter().filter(passes).collect();
    for flow in &flows {
        is_end[flow.from] = false;
    }
    // Of several ends, the one that is least behind; if nothing has reached any, start from the channel with the most
    // elements.
    let behind = |f: &&&Flow| f.put.saturating_sub(f.got) as f64 / f.put as f64;
    let ends = flows.iter().filter(|f| is_end[f.to] && f.got > 0);
    let first = ends.min_by(|a, b| behind(a).total_cmp(&behind(b)));
    let most = || flows.iter().max_by_key(|f| f.put).filter(|f| f.put > 0);
    match first.map(|f| f.to).or_else(|| most().map(|f| f.from)) {
        Some(first) => units[first] = Some(done),
        None => return vec![Some(done); actors],
    }
    loop {
        let mut found = Vec::new();
        for flow in flows.iter().filter(|f| f.got > 0) {
            let (put, got) = (flow.put.max(flow.got) as f64, flow.got as f64);
            match (units[flow.from], units[flow.to]) {
                (None, Some(to)) => found.push((flow.from, to * put / got)),
                (Some(from), None) => found.push((flow.to, from * got / put)),
                _ => {}
            }
        }
        if found.is_empty() {
            return units;
        }
        // If several channels tell, the one that is least behind.
        for (actor, is) in found {
            units[actor] = Some(units[actor].map_or(is, |other: f64| other.min(is)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: usize, to: usize, put: u64, got: u64) -> Flow {
        Flow { from, to, put, got }
    }

    #[test]
    fn what_waits_in_channels_is_done_before_them() {
        let pipeline = [flow(0, 1, 120, 100), flow(1, 2, 50, 25)];
        let all = units_done(3, &pipeline, 5.0);
        assert_eq!(all, [Some(12.0), Some(10.0), Some(5.0)]);
        // A fork to two actors, one of which gets no turn; and a loop.
        let forked = [flow(0, 1, 40, 40), flow(0, 2, 40, 10)];
        assert_eq!(
            units_done(3, &forked, 4.0),
            [Some(4.0), Some(4.0), Some(1.0)]
        );
        let round = [flow(0, 1, 40, 20), flow(1, 0, 20, 20), flow(1, 2, 20, 20)];
        assert_eq!(
            units_done(3, &round, 2.0),
            [Some(2.0), Some(2.0), Some(2.0)]
        );
    }

    #[test]
    fn where_nothing_has_come_nothing_is_known() {
        let all = units_done(3, &[flow(0, 1, 64, 16), flow(1, 2, 16, 0)], 1.0);
        assert_eq!(all, [Some(1.0), Some(0.25), None]);
        assert_eq!(units_done(2, &[flow(0, 1, 64, 0)], 1.0), [Some(1.0), None]);
        assert_eq!(units_done(2, &[flow(0, 1, 0, 0)], 2.0), [Some(2.0); 2]);
        assert_eq!(units_done(1, &[], 2.0), [Some(2.0)]);
        // An end outside of the application is ignored.
        assert_eq!(units_done(1, &[flow(0, 7, 3, 3)], 2.0), [Some(2.0)]);
    }
}
