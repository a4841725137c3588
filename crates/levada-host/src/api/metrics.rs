// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/metrics`: all counters as Prometheus reads them.

use super::types::{Details, Stats};
use crate::hosted::State;
use std::fmt::Write;

/// One metric: its name, what it is, and its samples.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

impl Metric {
    fn new(name: &'static str, kind: &'static str, help: &'static str) -> Metric {
        Metric {
            name,
            kind,
            help,
            samples: String::new(),
        }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        // Writing to a string cannot fail.
        let _ = match labels.is_empty() {
            true => writeln!(self.samples, "{} {value}", self.name),
            false => writeln!(
                self.samples,
                "{}{{{}}} {value}",
                self.name,
                labels.join(",")
            ),
        };
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The text of version 0.0.4 of the format.
pub fn text(stats: &Stats, applications: &[Details]) -> String {
    let counter = |name, help| Metric::new(name, "counter", help);
    let gauge = |name, help| Metric::new(name, "gauge", help);
    let mut up = gauge("levada_up_seconds", "Time since the host was started");
    up.add(&[], stats.host.seconds);
    let mut realtime = gauge(
        "levada_host_realtime_priority",
        "Real-time priority of the workers; 0 is the usual class",
    );
    realtime.add(&[], stats.host.realtime.unwrap_or(0));
    let mut busy = counter("levada_worker_busy_seconds_total", "Time running actors");
    let mut asleep = counter("levada_worker_asleep_seconds_total", "Time asleep");
    let mut lost = counter(
        "levada_worker_lost_seconds_total",
        "Time for which an actor ran and other programs had the core",
    );
    let mut activations = counter("levada_worker_activations_total", "Activations of actors");
    let mut leases = counter(
        "levada_lease_passed_total",
        "Times the core's lease went on",
    );
    for w in &stats.worker {
        let (worker, cpu) = (w.worker.to_string(), w.cpu.to_string());
        let labels = [("worker", worker.as_str()), ("cpu", cpu.as_str())];
        busy.add(&labels, w.busy);
        asleep.add(&labels, w.asleep);
        lost.add(&labels, w.lost);
        activations.add(&labels, w.activations);
        if let Some(lease) = &w.lease {
            let ways = [
                ("given", lease.given),
                ("seized", lease.seized),
                ("left", lease.left),
            ];
            for (how, times) in ways {
                leases.add(&[("cpu", cpu.as_str()), ("how", how)], times);
            }
        }
    }
    let mut state = gauge("levada_application_state", "1 for the state that it is in");
    let mut memory = gauge("levada_application_memory_bytes", "State and channels");
    let mut moves = counter(
        "levada_application_moves_total",
        "Actors moved by the mapper",
    );
    let mut done = counter("levada_application_progress_total", "Done, in its own unit");
    let mut promised = gauge(
        "levada_application_promised_units_per_second",
        "Rate that it is promised, in its own unit",
    );
    let mut pace = gauge(
        "levada_application_pace_units_per_second",
        "Rate that it had in the last second or longer, where it is promised one",
    );
    let mut late = counter(
        "levada_application_late_total",
        "Times it began to have less than it is promised",
    );
    let mut firings = counter("levada_actor_firings_total", "Firings");
    let mut actor = counter("levada_actor_busy_seconds_total", "Time computing");
    let mut longest = gauge("levada_actor_longest_seconds", "The longest activation");
    let mut put = counter("levada_channel_put_elements_total", "Elements put");
    let mut got = counter("levada_channel_got_elements_total", "Elements got");
    let mut fill = gauge("levada_channel_fill_elements", "Elements in it");
    let mut capacity = gauge("levada_channel_capacity_elements", "Elements that it holds");
    for details in applications {
        let a = &details.application;
        let name = a.name.as_str();
        let of = a.state.to_string();
        state.add(&[("application", name), ("state", &of)], 1);
        memory.add(&[("application", name)], a.memory);
        moves.add(&[("application", name)], a.moves);
        if let Some(p) = &a.progress {
            done.add(&[("application", name), ("unit", &p.unit)], p.done);
        }
        for (metric, value) in [(&mut promised, a.promised), (&mut pace, a.pace)] {
            if let Some(value) = value {
                metric.add(&[("application", name)], value);
            }
        }
        if let Some(times) = a.late {
            late.add(&[("application", name)], times);
        }
        // What has ended has no ports any more that would tell its channels apart.
        if matches!(a.state, State::Ended | State::Failed) {
            continue;
        }
        for x in &details.actor {
            let labels = [("application", name), ("actor", x.name.as_str())];
            firings.add(&labels, x.firings);
            actor.add(&labels, x.busy);
            longest.add(&labels, x.longest);
        }
        for c in &details.channel {
            let labels = [
                ("application", name),
                ("from", c.from.as_str()),
                ("to", c.to.as_str()),
            ];
            put.add(&labels, c.put);
            got.add(&labels, c.got);
            fill.add(&labels, c.fill);
            capacity.add(&labels, c.capacity);
        }
    }
    let all = [
        up,
        realtime,
        busy,
        asleep,
        lost,
        activations,
        leases,
        state,
        memory,
        moves,
        done,
        promised,
        pace,
        late,
        firings,
        actor,
        longest,
        put,
        got,
        fill,
        capacity,
    ];
    let mut out = String::new();
    for m in all {
        let _ = write!(
            out,
            "# HELP {} {}.\n# TYPE {} {}\n{}",
            m.name, m.help, m.name, m.kind, m.samples
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::types::{Channel, Details, HostInfo, Stats};
    use crate::hosted::State;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(super::escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }

    /// Two channels between the same actors, whose ports are not known any more.
    #[test]
    fn no_series_comes_twice() {
        let channel = serde_json::json!({"from": "a", "to": "b", "capacity": 1, "fill": 0, "put": 1,
            "got": 1, "full": 0, "empty": 0, "wakes": 0});
        let channel: Channel = serde_json::from_value(channel).unwrap();
        let application = serde_json::json!({"name": "x", "number": 1, "network": "X",
            "state": State::Ended, "priority": 0, "loaded": 0.0, "seconds": 1.0, "memory": 1,
            "actors": 2, "firings": 2, "busy": 0.5, "moves": 0, "actor": [],
            "channel": [channel.clone(), channel]});
        let details: Details = serde_json::from_value(application).unwrap();
        let host = serde_json::json!({"version": "", "pid": 1, "seconds": 1.0, "workers": 1,
            "applications": 0});
        let host: HostInfo = serde_json::from_value(host).unwrap();
        let stats = Stats {
            host,
            worker: Vec::new(),
            application: Vec::new(),
        };
        let text = super::text(&stats, &[details]);
        let series = text.lines().filter(|l| !l.starts_with('#'));
        let mut series: Vec<&str> = series.map(|l| l.rsplit_once(' ').unwrap().0).collect();
        series.sort_unstable();
        let all = series.len();
        series.dedup();
        assert_eq!(series.len(), all, "{text}");
        assert!(text.contains("state=\"ended\""));
        assert!(text.contains("\nlevada_host_realtime_priority 0\n"));
    }
}
