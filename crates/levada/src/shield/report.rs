// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Report of a shield: which threads were on the cores, their load, where they were moved, and which could not be
//! moved; at the end, which threads appeared later and were moved.

use crate::common::output::{DIM, paint, plain, plural};
use levada_cores::shield::cores;
use levada_cores::{CoreSet, Load, Raised, Restored, Topology};
use serde_json::{Value, json};

/// The threads with the most work on these cores, as a phrase.
pub fn heaviest(load: &Load, on: &CoreSet) -> String {
    let busy = load.on(on).filter(|w| w.share >= 0.005);
    let list: Vec<String> = busy
        .take(4)
        .map(|w| format!("{} ({}) {:.2}", w.name, w.tid, w.share))
        .collect();
    if list.is_empty() {
        "nothing that works".into()
    } else {
        list.join(", ")
    }
}

pub fn work(load: &Load, on: &CoreSet) -> f64 {
    on.iter().map(|c| load.busy_of(c)).sum()
}

fn some(list: &[String]) -> String {
    const NAMES_SHOWN_MAX: usize = 4;
    let shown = list
        .iter()
        .take(NAMES_SHOWN_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if list.len() > NAMES_SHOWN_MAX {
        format!("{shown} and {} more", list.len() - NAMES_SHOWN_MAX)
    } else {
        shown
    }
}

/// Printed on standard error after the shield was raised.
pub fn raised(
    raised: &Raised,
    load: &Load,
    shield: &CoreSet,
    topology: &Topology,
    lightest: Option<u32>,
) {
    let say = |text: String| say_painted!("{} {}", paint(DIM, "shield:"), plain(&text));
    let mut by = format!("{} by {}", cores(shield), raised.method.sentence());
    if let Some((rung, why)) = raised.reasons.last() {
        by += &format!("; no {}: {why}", rung.name());
    }
    say(by);
    let on_them = load.on(shield).count();
    say(format!(
        "on it: {}, {:.2} of a core busy: {}",
        plural(on_them, "thread"),
        work(load, shield),
        heaviest(load, shield)
    ));
    let lightly = load.lightest(&raised.others);
    say(match (lightest, lightly) {
        (Some(one), _) => format!(
            "went to core {one}, the most lightly loaded ({:.2} busy)",
            load.busy_of(one)
        ),
        (None, Some(one)) => format!(
            "went to {}; the most lightly loaded is {one} ({:.2} busy)",
            cores(&raised.others),
            load.busy_of(one)
        ),
        (None, None) => format!("went to {}", cores(&raised.others)),
    });
    let mut moved = Vec::new();
    let swept = &raised.swept;
    if swept.moved() > 0 {
        moved.push(plural(swept.threads as usize, "thread"));
    }
    if swept.kernel_threads > 0 {
        moved.push(plural(swept.kernel_threads as usize, "kernel thread"));
    }
    if raised.steered.interrupts > 0 {
        moved.push(plural(raised.steered.interrupts as usize, "interrupt"));
    }
    if raised.steered.work_queues {
        moved.push("work queues".into());
    }
    if moved.is_empty() {
        moved.push("nothing one by one".into());
    }
    say(format!(
        "moved {} in {:.0} ms",
        moved.join(", "),
        raised.took.as_secs_f64() * 1e3
    ));
    for (why, threads) in &swept.stays {
        say(format!("stays, {why}: {}", some(threads)));
    }
    if !raised.steered.stays.is_empty() {
        say(format!(
            "stays, interrupts: {}",
            some(&raised.steered.stays)
        ));
    }
    let threads = topology.other_threads(shield);
    if !threads.is_empty() {
        say(format!(
            "{} is another hardware thread of the same core: what works there slows the program; to have \
             it, too, shield {}",
            cores(&threads),
            shield.or(&threads)
        ));
    }
}

/// Printed before: a host's work on a core is more than its threads.
pub fn left(said: &[String]) {
    for one in said {
        say_painted!("{} {}", paint(DIM, "shield:"), plain(one));
    }
}

/// The report of [`restored`] as JSON.
pub fn restored_json(done: &Restored) -> Value {
    json!({
        "cores": done.cores.to_string(), "threads": done.threads, "widened": done.widened,
        "changed": done.changed, "reused": done.reused, "evicted": done.evicted, "failed": done.failed,
    })
}

/// Printed at the end.
pub fn restored(done: &Restored) -> String {
    let mut text = format!("{} restored", cores(&done.cores));
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    };
    add(done.evicted, "came onto it and were sent away");
    add(done.widened, "born meanwhile have all their cores");
    add(
        done.changed,
        "changed their own cores meanwhile and were left alone",
    );
    add(done.reused, "ids belong to others by now");
    for failed in &done.failed {
        text += &format!("; not restored: {failed}");
    }
    text
}
