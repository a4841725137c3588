// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The schedule of a chain of static and cyclo-static actors, computed from rates alone.
//!
//! A chain is a sequence of members; each feeds only the next one, through one or more links. The firings are known
//! beforehand: they form *phases*, which repeat. In a phase the first member fires at most once, then those in
//! between as often as they can, then the last one at most once. So a phase consumes at most the elements of one
//! firing and produces at most those of one firing, and no firing that is possible without more input is left out:
//! when the input ends, the chain has produced exactly what its members would have produced separately.

use crate::classify::{most_firings, moved};

/// The elements that a member consumes from each link before it and produces for each link behind it, step by step.
#[derive(Clone, Debug)]
pub struct Member {
    pub takes: Vec<Vec<u32>>,
    pub gives: Vec<Vec<u32>>,
    /// The step that follows the last one.
    pub back: usize,
}

impl Member {
    fn after(&self, step: usize) -> usize {
        if step + 1 < self.takes.len() {
            step + 1
        } else {
            self.back
        }
    }
}

#[derive(Clone, Debug)]
pub struct Firing {
    pub member: usize,
    pub step: usize,
    /// The offsets of its elements in the buffers of the links before it, and of those behind it.
    pub reads: Vec<u32>,
    pub writes: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The required capacity in elements, and the size of a buffer without wrap-around.
    pub most: u32,
    pub length: u32,
    /// Whether there are ever elements in it between two phases.
    pub crosses: bool,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    pub phases: Vec<Vec<Firing>>,
    /// The phase that follows the last one; all links are empty before it.
    pub back: usize,
    /// By the member that they follow.
    pub links: Vec<Vec<Link>>,
}

/// Maximum numbers of phases and firings; more would make a large actor.
const PHASES_MAX: usize = 32;
const FIRINGS_MAX: usize = 64;
/// The room of a channel with more elements is not moved to another channel.
const MOVED_ROOM_MAX: u32 = 1 << 16;

/// The state of a chain.
struct State<'a> {
    members: &'a [Member],
    at: Vec<usize>,
    held: Vec<Vec<u32>>,
}

impl State<'_> {
    fn new(members: &[Member]) -> State<'_> {
        State {
            members,
            at: vec![0; members.len()],
            held: members.iter().map(|m| vec![0; m.gives[0].len()]).collect(),
        }
    }

    /// Whether member `m` has its elements. The first member consumes none from links.
    fn ready(&self, m: usize) -> bool {
        let needs = &self.members[m].takes[self.at[m]];
        m > 0 && needs.iter().zip(&self.held[m - 1]).all(|(n, h)| n <= h)
    }

    fn fire(&mut self, m: usize) {
        let (member, step) = (&self.members[m], self.at[m]);
        if m > 0 {
            for (h, n) in self.held[m - 1].iter_mut().zip(&member.takes[step]) {
                *h -= n;
            }
        }
        for (h, n) in self.held[m].iter_mut().zip(&member.gives[step]) {
            *h += n;
        }
        self.at[m] = member.after(step);
    }

    fn is_empty(&self) -> bool {
        self.held.iter().flatten().all(|h| *h == 0)
    }
}

/// The phases of a chain, if they repeat soon.
pub fn schedule(members: &[Member]) -> Option<Schedule> {
    let moves = |m: &Member, steps: &[Vec<u32>]| {
        let links = steps[0].len();
        (0..links).all(|l| steps[m.back..].iter().any(|s| s[l] > 0))
    };
    if !members
        .iter()
        .all(|m| moves(m, &m.takes) && moves(m, &m.gives))
    {
        return None;
    }
    let last = members.len() - 1;
    let mut state = State::new(members);
    let zero = |s: &State| -> Vec<Vec<u32>> { s.held.iter().map(|l| vec![0; l.len()]).collect() };
    let (mut read, mut written) = (zero(&state), zero(&state));
    let links = |s: &State| -> Vec<Vec<Link>> {
        let each = s.held.iter().map(|l| vec![Link::default(); l.len()]);
        each.collect()
    };
    let mut links = links(&state);
    let mut phases: Vec<Vec<Firing>> = Vec::new();
    let mut seen: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut firings = 0;
    loop {
        if state.is_empty() {
            (read, written) = (zero(&state), zero(&state));
            if let Some((back, _)) = seen.iter().find(|(_, at)| *at == state.at) {
                let back = *back;
                return Some(Schedule {
                    phases,
                    back,
                    links,
                });
            }
            seen.push((phases.len(), state.at.clone()));
        }
        let mut phase = Vec::new();
        let mut next = if (1..=last).any(|m| state.ready(m)) {
            None
        } else {
            Some(0)
        };
        loop {
            let m = match next.take() {
                Some(m) => m,
                None => match (1..last).find(|m| state.ready(*m)) {
                    Some(m) => m,
                    None if state.ready(last) => last,
                    None => break,
                },
            };
            let step = state.at[m];
            let reads = if m > 0 {
                read[m - 1].clone()
            } else {
                Vec::new()
            };
            phase.push(Firing {
                member: m,
                step,
                reads,
                writes: written[m].clone(),
            });
            state.fire(m);
            if m > 0 {
                for (r, n) in read[m - 1].iter_mut().zip(&members[m].takes[step]) {
                    *r += n;
                }
            }
            for (l, link) in links[m].iter_mut().enumerate() {
                written[m][l] += members[m].gives[step][l];
                link.length = link.length.max(written[m][l]);
                link.most = link.most.max(state.held[m][l]);
            }
            firings += 1;
            if firings > FIRINGS_MAX {
                return None;
            }
            if m == last {
                break;
            }
        }
        for (link, held) in links.iter_mut().flatten().zip(state.held.iter().flatten()) {
            link.crosses |= *held > 0;
        }
        phases.push(phase);
        if phases.len() > PHASES_MAX {
            return None;
        }
    }
}

/// How many firings further the first member gets separately than in the merged actor while the last one is blocked;
/// `None` if that depends on the state of the last one.
pub fn lead(members: &[Member], schedule: &Schedule, capacities: &[Vec<u32>]) -> Option<u32> {
    if capacities.iter().flatten().any(|c| *c > MOVED_ROOM_MAX) {
        return None;
    }
    let last = members.len() - 1;
    let fires = |phase: &[Firing], m| phase.iter().filter(|f| f.member == m).count();
    let total: usize = schedule.phases.iter().map(|p| fires(p, last)).sum();
    let mut found = None;
    for allowed in 0..=total {
        let (mut merged, mut done) = (0, 0);
        let round = schedule
            .phases
            .iter()
            .chain(&schedule.phases[schedule.back..]);
        for phase in round {
            if done + fires(phase, last) > allowed {
                break;
            }
            done += fires(phase, last);
            merged += fires(phase, 0);
        }
        let ahead = alone(members, capacities, allowed).checked_sub(merged)?;
        let ahead = u32::try_from(ahead).ok()?;
        if *found.get_or_insert(ahead) != ahead {
            return None;
        }
    }
    found
}

/// The number of firings of the first member if the last one fires at most `allowed` times. Since the schedule fits,
/// no two neighbours block each other: each member continues until a link behind it is full.
fn alone(members: &[Member], capacities: &[Vec<u32>], allowed: usize) -> usize {
    let column =
        |steps: &[Vec<u32>], l: usize| -> Vec<u32> { steps.iter().map(|s| s[l]).collect() };
    let mut fired = allowed as u64;
    for m in (0..members.len() - 1).rev() {
        let (member, next) = (&members[m], &members[m + 1]);
        let most = |(l, capacity): (usize, &u32)| {
            let room = moved(&column(&next.takes, l), next.back, fired) + u64::from(*capacity);
            most_firings(&column(&member.gives, l), member.back, room)
        };
        let each = capacities[m].iter().enumerate();
        fired = each.filter_map(most).min().unwrap_or(fired);
    }
    fired as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Like `alone`, simulated firing by firing.
    fn played(members: &[Member], capacities: &[Vec<u32>], mut allowed: usize) -> usize {
        let last = members.len() - 1;
        let mut state = State::new(members);
        let mut first = 0;
        loop {
            let room = |m: usize| {
                let gives = &members[m].gives[state.at[m]];
                let each = gives.iter().zip(&state.held[m]).zip(&capacities[m]);
                { each }.all(|((n, h), c)| n + h <= *c)
            };
            let able = |m: &usize| match *m {
                m if m == last => allowed > 0 && state.ready(m),
                m => (m == 0 || state.ready(m)) && room(m),
            };
            let Some(m) = (0..=last).rev().find(able) else {
                return first;
            };
            first += usize::from(m == 0);
            allowed -= usize::from(m == last);
            state.fire(m);
        }
    }

    #[test]
    fn how_far_the_first_gets_alone_is_what_it_is_when_it_is_played() {
        let mut seed = 7u64;
        let mut random = |n: u32| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as u32 % n
        };
        let mut compared = 0;
        for _ in 0..20_000 {
            let n = 2 + random(4) as usize;
            let links: Vec<usize> = (1..n).map(|_| 1 + random(2) as usize).collect();
            let mut members = Vec::new();
            for m in 0..n {
                let steps = 1 + random(3) as usize;
                let mut rates = |links: usize| -> Vec<Vec<u32>> {
                    let step = |_| (0..links).map(|_| random(4)).collect();
                    (0..steps).map(step).collect()
                };
                let takes = rates(if m > 0 { links[m - 1] } else { 0 });
                let gives = rates(links.get(m).copied().unwrap_or(0));
                let back = random(steps as u32) as usize;
                members.push(Member { takes, gives, back });
            }
            let Some(schedule) = schedule(&members) else {
                continue;
            };
            let mut capacities = Vec::new();
            for links in &schedule.links {
                capacities.push(links.iter().map(|l| l.most + random(20)).collect());
            }
            for allowed in 0..10 {
                let far = alone(&members, &capacities, allowed);
                assert_eq!(
                    far,
                    played(&members, &capacities, allowed),
                    "{members:?} {capacities:?}"
                );
                compared += 1;
            }
        }
        assert!(compared > 5000, "{compared}");
    }
}
