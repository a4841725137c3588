// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/metrics`: all counters in the Prometheus text format.

use crate::model::app_state::State;
use crate::protocol::{Application, Details, Stats, Worker};
use std::fmt::{Display, Write};

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// All metrics: name, type, and help text.
#[rustfmt::skip]
const METRICS: [(&str, &str, &str); 21] = [
    ("levada_uptime_seconds", GAUGE, "Time since the host was started"),
    ("levada_host_realtime_priority", GAUGE, "Real-time priority of the workers; 0 is the usual class"),
    ("levada_worker_busy_seconds_total", COUNTER, "Time running actors"),
    ("levada_worker_asleep_seconds_total", COUNTER, "Time asleep"),
    ("levada_worker_preempted_seconds_total", COUNTER, "Steal time: an actor ran, and other programs had the core"),
    ("levada_worker_activations_total", COUNTER, "Activations of actors"),
    ("levada_lease_transfers_total", COUNTER, "Times that the core's lease changed hands"),
    ("levada_application_state", GAUGE, "1 for the state that it is in"),
    ("levada_application_memory_bytes", GAUGE, "State and channels"),
    ("levada_application_moves_total", COUNTER, "Actors moved by the mapper"),
    ("levada_application_progress_total", COUNTER, "Done, in its own unit"),
    ("levada_application_reserved_rate_units_per_second", GAUGE, "Reserved rate, in its own unit"),
    ("levada_application_measured_rate_units_per_second", GAUGE,
        "Rate of the last second or longer, if a rate is reserved"),
    ("levada_application_rate_misses_total", COUNTER, "Times that it began to have less than its reserved rate"),
    ("levada_actor_firings_total", COUNTER, "Firings"),
    ("levada_actor_busy_seconds_total", COUNTER, "Time computing"),
    ("levada_actor_longest_seconds", GAUGE, "The longest activation"),
    ("levada_channel_put_elements_total", COUNTER, "Elements put"),
    ("levada_channel_got_elements_total", COUNTER, "Elements got"),
    ("levada_channel_fill_elements", GAUGE, "Elements in it"),
    ("levada_channel_capacity_elements", GAUGE, "Elements that it holds"),
];

/// The samples of each metric.
#[derive(Default)]
struct Samples([String; METRICS.len()]);

type Labels<'a> = [(&'a str, &'a str)];

impl Samples {
    /// `metric` is the name without `levada_`.
    fn add(&mut self, metric: &str, labels: &Labels, value: impl Display) {
        let is = |name: &str| name.strip_prefix("levada_") == Some(metric);
        let Some(at) = METRICS.iter().position(|(name, ..)| is(name)) else {
            unreachable!("{metric} is in no list");
        };
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0[at], "levada_{metric}{labels} {value}");
    }

    fn add_worker(&mut self, w: &Worker) {
        let (worker, cpu) = (w.worker.to_string(), w.cpu.to_string());
        let labels = [("worker", worker.as_str()), ("cpu", cpu.as_str())];
        self.add("worker_busy_seconds_total", &labels, w.busy);
        self.add("worker_asleep_seconds_total", &labels, w.asleep);
        self.add("worker_preempted_seconds_total", &labels, w.preempted);
        self.add("worker_activations_total", &labels, w.activations);
        let Some(lease) = &w.lease else {
            return;
        };
        let ways = [
            ("transferred", lease.transfers),
            ("preempted", lease.preempted),
            ("reclaimed_idle", lease.reclaimed_idle),
        ];
        for (how, times) in ways {
            let labels = [("cpu", cpu.as_str()), ("how", how)];
            self.add("lease_transfers_total", &labels, times);
        }
    }

    fn add_application(&mut self, a: &Application) {
        let of = [("application", a.name.as_str())];
        let with = |name, value| [of[0], (name, value)];
        let state = a.state.to_string();
        self.add("application_state", &with("state", &state), 1);
        self.add("application_memory_bytes", &of, a.memory);
        self.add("application_moves_total", &of, a.moves);
        if let Some(p) = &a.progress {
            let labels = with("unit", &p.unit);
            self.add("application_progress_total", &labels, p.done);
        }
        if let Some(reserved) = a.reserved_rate {
            self.add("application_reserved_rate_units_per_second", &of, reserved);
        }
        if let Some(measured) = a.measured_rate {
            self.add("application_measured_rate_units_per_second", &of, measured);
        }
        if let Some(times) = a.rate_miss_count {
            self.add("application_rate_misses_total", &of, times);
        }
    }

    fn add_parts(&mut self, details: &Details) {
        let name = ("application", details.application.name.as_str());
        for x in &details.actor {
            let labels = [name, ("actor", x.name.as_str())];
            self.add("actor_firings_total", &labels, x.firings);
            self.add("actor_busy_seconds_total", &labels, x.busy);
            self.add("actor_longest_seconds", &labels, x.longest);
        }
        for c in &details.channel {
            let labels = [name, ("from", c.from.as_str()), ("to", c.to.as_str())];
            self.add("channel_put_elements_total", &labels, c.put);
            self.add("channel_got_elements_total", &labels, c.got);
            self.add("channel_fill_elements", &labels, c.fill);
            self.add("channel_capacity_elements", &labels, c.capacity);
        }
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The text in format version 0.0.4.
pub fn text(stats: &Stats, applications: &[Details]) -> String {
    let mut samples = Samples::default();
    samples.add("uptime_seconds", &[], stats.host.seconds);
    let realtime = stats.host.realtime.unwrap_or(0);
    samples.add("host_realtime_priority", &[], realtime);
    stats.worker.iter().for_each(|w| samples.add_worker(w));
    for details in applications {
        samples.add_application(&details.application);
        // Ended applications have no ports any more that would distinguish channels.
        if !matches!(details.application.state, State::Ended | State::Failed) {
            samples.add_parts(details);
        }
    }
    let mut out = String::new();
    for ((name, kind, help), samples) in METRICS.iter().zip(&samples.0) {
        let _ = write!(
            out,
            "# HELP {name} {help}.\n# TYPE {name} {kind}\n{samples}"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::model::app_state::State;
    use crate::protocol::{Channel, Details, HostInfo, Stats};

    #[test]
    fn labels_are_escaped() {
        assert_eq!(
            crate::http::metrics::escaped("a\\b\"c\nd"),
            "a\\\\b\\\"c\\nd"
        );
    }

    /// Two channels between the same actors; the ports are not known any more.
    #[test]
    fn each_series_of_the_metrics_is_unique() {
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
        let text = crate::http::metrics::text(&stats, &[details]);
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
