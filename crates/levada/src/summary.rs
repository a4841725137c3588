// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run did: how it ended, how much was done, how each core and each actor was used.

use crate::output::{BOLD, DIM, GREEN, RED, grouped, paint, plural, table};
use levada_cal::diag::{Diagnostic, Diagnostics, Sources};
use levada_cal::ir;
use levada_sys::{App, Counters, Fault, Runtime};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Outcome {
    Done,
    /// By this signal.
    Interrupted(i32),
    Deadlock(String),
    Fault(Fault),
    Failed(String),
}

#[derive(Debug)]
pub struct Core {
    pub cpu: i32,
    pub busy: Duration,
    pub actors: usize,
}

#[derive(Debug)]
pub struct Summary {
    pub network: String,
    pub outcome: Outcome,
    pub elapsed: Duration,
    pub done: Option<(String, u64)>,
    pub cores: Vec<Core>,
    pub counters: Counters,
    pub names: Vec<String>,
    pub moves: usize,
    pub output: Option<PathBuf>,
}

impl Summary {
    /// Reads all counters of an application that has ended.
    pub fn new(app: &App, runtime: &Runtime, elapsed: Duration, moves: usize) -> Summary {
        let counters = app.counters().unwrap_or_default();
        let cores = (0..runtime.workers()).map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            Core {
                cpu: read.cpu,
                busy: Duration::from_nanos(read.busy_ns),
                actors: counters
                    .actors
                    .iter()
                    .filter(|a| a.worker == worker)
                    .count(),
            }
        });
        Summary {
            network: String::new(),
            outcome: Outcome::Done,
            elapsed,
            done: app.progress(),
            cores: cores.collect(),
            names: app.network().actor_names(),
            counters,
            moves,
            output: None,
        }
    }

    /// A fault, with its place where the reader looks for it.
    pub fn fault(fault: Fault) -> Outcome {
        Outcome::Fault(placed(fault))
    }

    pub fn exit_code(&self) -> ExitCode {
        match self.outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Interrupted(signal) => ExitCode::from(128 + signal as u8),
            _ => ExitCode::FAILURE,
        }
    }

    fn share(&self, busy: Duration) -> f64 {
        (busy.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)).min(1.0)
    }

    fn rate(&self, done: u64) -> f64 {
        done as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The end of a channel as people call it.
    fn end(&self, actor: u32) -> &str {
        self.names.get(actor as usize).map_or("-", String::as_str)
    }

    /// On the error output; `brief` leaves out what JSON has said.
    pub fn say(&self, network: &ir::Network, stats: bool, brief: bool) {
        match &self.outcome {
            Outcome::Fault(fault) => eprint!("{}", fault_report(network, fault)),
            Outcome::Deadlock(why) => {
                eprintln!("{}: nothing can move any more", paint(RED, "error"));
                for line in why.lines() {
                    eprintln!("  {line}");
                }
                eprintln!("  help: a larger bufferSize on one of these channels may be enough");
            }
            Outcome::Failed(what) => eprintln!("{}: {what}", paint(RED, "error")),
            Outcome::Interrupted(_) | Outcome::Done => {}
        }
        if brief {
            return;
        }
        let (mark, how) = match self.outcome {
            Outcome::Done => (paint(GREEN, "done"), ""),
            Outcome::Interrupted(_) => (paint(RED, "interrupted"), " was stopped"),
            Outcome::Deadlock(_) => (paint(RED, "deadlock"), " was stopped"),
            Outcome::Fault(_) => (paint(RED, "fault"), " was stopped"),
            Outcome::Failed(_) => (paint(RED, "failed"), " was stopped"),
        };
        let seconds = self.elapsed.as_secs_f64();
        let network = paint(BOLD, &self.network);
        match how {
            "" => eprintln!("{mark}: {network} in {seconds:.2} s"),
            how => eprintln!("{mark}: {network}{how} after {seconds:.2} s"),
        }
        if let Some((unit, done)) = &self.done {
            let rate = self.rate(*done);
            eprintln!("  {} {unit}, {rate:.1} {unit}/s", grouped(*done));
        }
        for (worker, core) in self.cores.iter().enumerate() {
            let share = self.share(core.busy);
            let full = (share * 20.0).round() as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(20 - full));
            let name = match core.cpu {
                cpu if cpu >= 0 => format!("core {cpu}"),
                _ => format!("worker {worker}"),
            };
            eprintln!(
                "  {name:<9} {} {:3.0} % busy, {}",
                paint(DIM, &bar),
                share * 100.0,
                plural(core.actors, "actor")
            );
        }
        if stats {
            self.tables();
        }
        if let Some(output) = &self.output {
            eprintln!("  output    {}", describe(output));
        }
    }

    fn tables(&self) {
        let total: f64 = self
            .counters
            .actors
            .iter()
            .map(|a| a.busy.as_secs_f64())
            .sum();
        let rows: Vec<Vec<String>> = self
            .counters
            .actors
            .iter()
            .map(|a| {
                let busy = a.busy.as_secs_f64();
                vec![
                    a.name.clone(),
                    a.worker.to_string(),
                    grouped(a.firings),
                    grouped(a.activations),
                    format!("{:.1} ms", busy * 1e3),
                    format!("{:.1} %", busy / total.max(1e-12) * 100.0),
                    format!("{:.0} us", a.longest.as_secs_f64() * 1e6),
                ]
            })
            .collect();
        let head = [
            "actor", "worker", "firings", "calls", "time", "share", "longest",
        ];
        eprint!("\n{}", table(&head, &rows));
        let rows: Vec<Vec<String>> = self
            .counters
            .channels
            .iter()
            .map(|c| {
                vec![
                    format!("{} -> {}", self.end(c.from.actor), self.end(c.to.actor)),
                    grouped(u64::from(c.capacity)),
                    grouped(c.got),
                    grouped(c.full),
                    grouped(c.empty),
                    grouped(c.wakes),
                ]
            })
            .collect();
        let head = ["channel", "capacity", "elements", "full", "empty", "wakes"];
        eprint!("\n{}", table(&head, &rows));
        eprintln!("\n  {} moved between cores", plural(self.moves, "actor"));
    }

    pub fn json(&self, stats: bool) -> Value {
        let mut out = json!({
            "network": self.network,
            "outcome": match &self.outcome {
                Outcome::Done => "done",
                Outcome::Interrupted(_) => "interrupted",
                Outcome::Deadlock(_) => "deadlock",
                Outcome::Fault(_) => "fault",
                Outcome::Failed(_) => "failed",
            },
            "seconds": self.elapsed.as_secs_f64(),
            "moves": self.moves,
            "cores": self.cores.iter().map(|c| json!({
                "cpu": c.cpu,
                "busy_seconds": c.busy.as_secs_f64(),
                "busy_share": self.share(c.busy),
                "actors": c.actors,
            })).collect::<Vec<_>>(),
            "output": self.output,
        });
        if let Some((unit, done)) = &self.done {
            out["progress"] = json!({
                "unit": unit, "done": done, "per_second": self.rate(*done),
            });
        }
        match &self.outcome {
            Outcome::Fault(f) => {
                out["fault"] = json!({
                    "kind": f.kind, "actor": f.actor, "action": f.action, "file": f.file,
                    "line": f.line, "message": f.message,
                });
            }
            Outcome::Deadlock(why) => out["why"] = why.as_str().into(),
            Outcome::Failed(why) => out["why"] = why.as_str().into(),
            _ => {}
        }
        if stats {
            let actors = self.counters.actors.iter().map(|a| {
                json!({
                    "name": a.name, "worker": a.worker, "firings": a.firings,
                    "activations": a.activations,
                    "busy_seconds": a.busy.as_secs_f64(),
                    "longest_seconds": a.longest.as_secs_f64(),
                })
            });
            out["actors"] = actors.collect();
            let channels = self.counters.channels.iter().map(|c| {
                json!({
                    "from": self.end(c.from.actor), "to": self.end(c.to.actor),
                    "capacity": c.capacity, "put": c.put, "got": c.got, "wakes": c.wakes,
                    "full": c.full, "empty": c.empty,
                })
            });
            out["channels"] = channels.collect();
        }
        out
    }
}

/// A path with its size, or with what is in it.
fn describe(path: &std::path::Path) -> String {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let count = std::fs::read_dir(path).map_or(0, Iterator::count);
            format!("{shown} ({})", plural(count, "file"))
        }
        Ok(meta) if meta.len() >= 10 << 20 => format!("{shown} ({} MiB)", meta.len() >> 20),
        Ok(meta) if meta.len() >= 10 << 10 => format!("{shown} ({} KiB)", meta.len() >> 10),
        Ok(meta) => format!("{shown} ({})", plural(meta.len() as usize, "byte")),
        Err(_) => shown.to_string(),
    }
}

/// Where several actors run as one, the place is part of the message: ", at FILE:LINE".
fn placed(mut fault: Fault) -> Fault {
    let place = fault.message.rsplit_once(", at ").and_then(|(what, at)| {
        let (file, line) = at.rsplit_once(':')?;
        Some((what.to_string(), file.to_string(), line.parse().ok()?))
    });
    if let Some((message, file, line)) = place {
        fault.message = message;
        fault.file = file;
        fault.line = line;
    }
    fault
}

/// The fault with its source line.
fn fault_report(network: &ir::Network, fault: &Fault) -> String {
    let mut sources = Sources::new();
    let mut diags = Diagnostics::new();
    let known = network.files.iter().find(|f| f.path == fault.file);
    let text: Option<std::sync::Arc<str>> = match known {
        Some(file) => Some(file.text.clone()),
        None => std::fs::read_to_string(&fault.file).ok().map(Into::into),
    };
    let where_ = match fault.action.as_str() {
        "" => format!("in actor {}", fault.actor),
        action => format!("in action {action} of actor {}", fault.actor),
    };
    let mut diag = Diagnostic::error("fault", fault.message.clone());
    if let Some(text) = text {
        let file = sources.add(fault.file.as_str(), text.clone());
        let start: usize = text
            .split_inclusive('\n')
            .take(fault.line.saturating_sub(1) as usize)
            .map(str::len)
            .sum();
        let line = text[start..].lines().next().unwrap_or("");
        let indent = line.len() - line.trim_start().len();
        let span = ir::Span {
            file,
            start: (start + indent) as u32,
            end: (start + line.trim_end().len()).max(start + indent) as u32,
        };
        diag = diag.label(span, where_);
    } else {
        let place = match fault.file.as_str() {
            "" => String::new(),
            file => format!(" ({file}:{})", fault.line),
        };
        diag.message += &format!(", {where_}{place}");
    }
    diags.push(diag);
    levada_cal::diag::render(&sources, &diags, crate::output::color())
}
