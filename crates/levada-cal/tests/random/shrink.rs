// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shrinks a failing program while it still fails: removes an actor, a block or a row of its text, or replaces an
//! expression by a number.

use super::{ActorText, Program, Wire};
use std::time::{Duration, Instant};

/// Rows that determine which action may fire, or that a source ends: without them the output would depend on
/// scheduling, or the program would not end.
const KEPT_ROWS: [&str; 10] = [
    "package", "actor", "action", "guard", "mode", "count", "schedule", "priority", "-->", " > c",
];

/// The smallest program found for which `fails` holds, as it does for `program`.
pub fn shrink(program: &Program, patience: Duration, fails: &dyn Fn(&Program) -> bool) -> Program {
    let start = Instant::now();
    let mut best = program.clone();
    loop {
        let mut smaller = false;
        for kind in [without_actor, without_rows, with_number] {
            // After a success the next candidate is the one at the same place.
            let mut at = 0;
            while let Some(next) = kind(&best, at) {
                if start.elapsed() > patience {
                    return best;
                }
                match next {
                    Some(next) if fails(&next) => {
                        best = next;
                        smaller = true;
                    }
                    _ => at += 1,
                }
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// `None` when `at` is beyond the last place; `Some(None)` where nothing can be done.
type Candidate = Option<Option<Program>>;

fn without_actor(p: &Program, at: usize) -> Candidate {
    if at >= p.actors.len() {
        return None;
    }
    // From the end: sinks first.
    let gone = p.actors.len() - 1 - at;
    let number = |(a, port): (usize, usize)| (a - usize::from(a > gone), port);
    let mut next = p.clone();
    next.actors.remove(gone);
    next.wires = Vec::new();
    for w in p.wires.iter().filter(|w| w.from.0 != gone) {
        let to: Vec<_> =
            w.to.iter()
                .filter(|t| t.0 != gone)
                .map(|t| number(*t))
                .collect();
        if !to.is_empty() {
            next.wires.push(Wire {
                from: number(w.from),
                to,
                capacity: w.capacity,
            });
        }
    }
    Some((!next.actors.is_empty()).then_some(next))
}

/// The actor and the place in it that number `at` means.
fn place(
    p: &Program,
    mut at: usize,
    places: &dyn Fn(&ActorText) -> usize,
) -> Option<(usize, usize)> {
    for (i, a) in p.actors.iter().enumerate() {
        let n = places(a);
        if at < n {
            return Some((i, at));
        }
        at -= n;
    }
    None
}

fn without_rows(p: &Program, at: usize) -> Candidate {
    let (actor, row) = place(p, at, &|a| a.text.lines().count())?;
    let rows: Vec<&str> = p.actors[actor].text.lines().collect();
    let indent = |r: &str| r.len() - r.trim_start().len();
    let opens = ["if ", "foreach ", "while ", "procedure "];
    let head = rows[row].trim_start();
    let mut end = row;
    if opens.iter().any(|o| head.starts_with(o)) && !head.ends_with("end") {
        let closes = |r: &&str| r.trim() == "end" && indent(r) == indent(rows[row]);
        end = row + rows[row..].iter().position(closes).unwrap_or(0);
    }
    let text = &rows[row..=end];
    if head.is_empty() || text.iter().any(|r| KEPT_ROWS.iter().any(|k| r.contains(k))) {
        return Some(None);
    }
    let mut next = p.clone();
    let left = rows[..row].iter().chain(&rows[end + 1..]);
    next.actors[actor].text = left.map(|r| format!("{r}\n")).collect();
    Some(Some(next))
}

fn with_number(p: &Program, at: usize) -> Candidate {
    let (actor, at) = place(p, at, &|a| a.text.matches('(').count() * 3)?;
    let text = &p.actors[actor].text;
    let open = text.match_indices('(').nth(at / 3)?.0;
    let mut depth = 0;
    let close = text[open..].char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    let close = open + close.map_or(0, |c| c.0);
    let row = text[..open].rfind('\n').map_or(0, |n| n + 1);
    let row = &text[row..row + text[row..].find('\n').unwrap_or(0)];
    let before = text[..open].chars().last().unwrap_or(' ');
    if close <= open + 2
        || before.is_alphanumeric()
        || KEPT_ROWS.iter().any(|k| row.contains(k) && *k != "action")
    {
        return Some(None);
    }
    let mut next = p.clone();
    let with = ["1", "0", "true"][at % 3];
    next.actors[actor].text.replace_range(open..=close, with);
    Some(Some(next))
}
