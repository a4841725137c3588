// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Summary of a run: its outcome, the work done, and the use of each core and each actor.

use crate::common::output::{
    self, BLUE, BOLD, DIM, GREEN, RED, YELLOW, bytes, grouped, paint, plain, plural, table, unit_of,
};
use crate::common::prepare_cache::CompiledSources;
use levada_cal::diag::{Diagnostic, Diagnostics, Sources};
use levada_cal::ir;
use levada_host::model::unconsumed;
use levada_host::{GrownChannel, Kind, UnconsumedChannel};
use levada_sys::{ActorShape, App, Counters, Fault, Runtime};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Maximum numbers of channels with unconsumed elements, and of those that have grown, that are listed; JSON has all.
const UNCONSUMED_SHOWN_MAX: usize = 10;
const GROWN_SHOWN_MAX: usize = 10;

#[derive(Clone, Debug)]
pub enum Outcome {
    Done,
    /// Interrupted by this signal.
    Interrupted(i32),
    Deadlock(String),
    /// A fault, with the columns of the failed expression.
    Fault(Fault, Columns),
    Failed(String),
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done)
    }
}

#[derive(Debug)]
pub struct Core {
    pub cpu: i32,
    pub busy: Duration,
    /// The fraction of its time that other programs used, from 0 to 1; `None` if the run was too short to measure it.
    pub others: Option<f64>,
    pub actors: usize,
}

#[derive(Debug)]
pub struct Summary {
    pub network: String,
    pub outcome: Outcome,
    pub elapsed: Duration,
    pub done: Option<(String, u64)>,
    /// Bytes of the input that were consumed, and its size; 0 if unknown.
    pub input: Option<(u64, u64)>,
    pub cores: Vec<Core>,
    pub counters: Counters,
    pub actors: Vec<ActorShape>,
    pub moves: usize,
    pub output: Option<Written>,
    /// The file of --out, if nothing was written.
    pub unwritten: Option<PathBuf>,
    /// Diagnostics of the compiler as JSON.
    pub diagnostics: Vec<Value>,
    /// Set if the run ended and nothing ever fired: what each actor waits for.
    pub idle: Option<String>,
    /// Channels that have grown.
    pub grown: Vec<GrownChannel>,
    /// Channels with unconsumed elements at the end.
    pub unconsumed: Vec<UnconsumedChannel>,
    /// Whether unconsumed elements make the run fail.
    pub strict: bool,
}

/// The output that a run wrote to the path of --out.
#[derive(Clone, Debug)]
pub struct Written {
    pub path: PathBuf,
    files: usize,
    bytes: u64,
}

impl Written {
    /// The file, or the files in the folder, that were written since `began`.
    pub fn since(began: SystemTime, path: &Path) -> Option<Written> {
        // File systems' clocks are coarse.
        let began = began - Duration::from_millis(20);
        let new = |m: &std::fs::Metadata| m.is_file() && m.modified().is_ok_and(|at| at >= began);
        let meta = std::fs::metadata(path).ok()?;
        let found: Vec<_> = if meta.is_dir() {
            std::fs::read_dir(path)
                .ok()?
                .filter_map(|e| std::fs::metadata(e.ok()?.path()).ok())
                .filter(new)
                .collect()
        } else {
            Some(meta).filter(new).into_iter().collect()
        };
        let written = Written {
            path: path.to_path_buf(),
            files: found.len(),
            bytes: found.iter().map(std::fs::Metadata::len).sum(),
        };
        (written.files > 0).then_some(written)
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = bytes(self.bytes);
        let shown = self.path.display();
        if self.path.is_dir() {
            write!(f, "{shown} ({}, {size})", plural(self.files, "file"))
        } else {
            write!(f, "{shown} ({size})")
        }
    }
}

impl Summary {
    /// Reads all counters of an application that has ended.
    pub fn new(
        app: &App,
        runtime: &Runtime,
        elapsed: Duration,
        others: &HashMap<i32, f64>,
        moves: usize,
    ) -> Summary {
        let counters = app.counters().unwrap_or_default();
        let cores = (0..runtime.workers()).map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            Core {
                cpu: read.cpu,
                busy: Duration::from_nanos(read.busy_ns),
                others: others.get(&read.cpu).copied(),
                actors: counters
                    .actors
                    .iter()
                    .filter(|a| a.worker == worker)
                    .count(),
            }
        });
        let actors = app.network().describe();
        Summary {
            grown: GrownChannel::find(&actors, &counters),
            unconsumed: UnconsumedChannel::find(&actors, &counters).collect(),
            strict: false,
            network: String::new(),
            outcome: Outcome::Done,
            elapsed,
            done: app.progress(),
            input: app.input_progress(),
            cores: cores.collect(),
            actors,
            counters,
            moves,
            output: None,
            unwritten: None,
            diagnostics: Vec::new(),
            idle: None,
        }
    }

    /// The outcome for a fault, with its source location. A fault without an actor is not the network's: a native
    /// could not read or write its files.
    pub fn fault(fault: Fault) -> Outcome {
        if fault.actor.is_empty() {
            Outcome::Failed(fault.message)
        } else {
            let (fault, columns) = placed(fault);
            Outcome::Fault(fault, columns)
        }
    }

    /// Which error the run ends with; none: it has done all that it was to do.
    fn error(&self) -> Option<Kind> {
        match self.outcome {
            Outcome::Done if self.strict && !self.unconsumed.is_empty() => Some(Kind::Unconsumed),
            Outcome::Done => None,
            Outcome::Interrupted(_) => Some(Kind::Interrupted),
            Outcome::Deadlock(_) | Outcome::Fault(..) | Outcome::Failed(_) => Some(Kind::Failed),
        }
    }

    /// In JSON.
    fn outcome_word(&self) -> &'static str {
        match &self.outcome {
            Outcome::Done if self.error() == Some(Kind::Unconsumed) => "unconsumed",
            Outcome::Done => "done",
            Outcome::Interrupted(_) => "interrupted",
            Outcome::Deadlock(_) => "deadlock",
            Outcome::Fault(..) => "fault",
            Outcome::Failed(_) => "failed",
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        match (&self.outcome, self.error()) {
            (Outcome::Interrupted(signal), _) => ExitCode::from(128 + *signal as u8),
            (_, Some(kind)) => ExitCode::from(kind.exit_status()),
            (_, None) => ExitCode::SUCCESS,
        }
    }

    fn share(&self, busy: Duration) -> f64 {
        (busy.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)).min(1.0)
    }

    fn rate(&self, done: u64) -> f64 {
        done as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The number of elements that passed through channels: for each channel, those that its first consumer has
    /// taken.
    fn elements(&self) -> u64 {
        let channels = &self.counters.channels;
        let first = |i: &usize| *i == 0 || channels[*i].from != channels[*i - 1].from;
        let firsts = (0..channels.len()).filter(first);
        firsts.map(|i| channels[i].got).sum()
    }

    fn say_unconsumed(&self) {
        if self.unconsumed.is_empty() || !self.outcome.is_done() {
            return;
        }
        let mark = if self.strict {
            paint(RED, "error")
        } else {
            paint(BLUE, "note")
        };
        say_painted!("{mark}: elements were left over");
        let shown = self.unconsumed.len().min(UNCONSUMED_SHOWN_MAX);
        let (shown, others) = self.unconsumed.split_at(shown);
        for line in unconsumed::lines(shown, others.len()) {
            say!("  {}", plain(&line));
        }
    }

    fn say_grown(&self) {
        if self.grown.is_empty() {
            return;
        }
        say_painted!(
            "{}: channels were too small, and have grown so that the network could continue",
            paint(BLUE, "note")
        );
        for channel in self.grown.iter().take(GROWN_SHOWN_MAX) {
            say!("  {}", plain(&channel.to_string()));
        }
        if let Some(more @ 1..) = self.grown.len().checked_sub(GROWN_SHOWN_MAX) {
            say!("  and {}", plural(more, "other channel"));
        }
        say_painted!(
            "  {}: with these sizes as their bufferSize they need not grow",
            paint(BLUE, "help")
        );
    }

    /// Prints the summary on standard error, with source lines for faults; `brief` omits what was printed as JSON.
    pub fn say(&self, compiled: &CompiledSources, stats: bool, brief: bool) {
        match &self.outcome {
            // With colours; escaped by the renderer.
            Outcome::Fault(fault, columns) => {
                output::say_text(&fault_report(compiled, fault, *columns));
            }
            Outcome::Deadlock(why) => {
                let what = match self.idle {
                    Some(_) => "nothing ever fired, and nothing can",
                    None => "nothing can move any more",
                };
                say_painted!("{}: {what}", paint(RED, "error"));
                for line in why.lines() {
                    say!("  {line}");
                }
                say_painted!("  {}: {}", paint(BLUE, "help"), plain(deadlock_help(why)));
            }
            Outcome::Failed(what) => say_painted!("{}: {}", paint(RED, "error"), plain(what)),
            Outcome::Interrupted(libc::SIGXCPU) => {
                say_painted!(
                    "{}: the limit of CPU time is reached (ulimit -t)",
                    paint(RED, "error")
                );
            }
            Outcome::Interrupted(_) | Outcome::Done => {}
        }
        if let (Outcome::Done, Some(why)) = (&self.outcome, &self.idle) {
            say_painted!("{}: nothing ever fired", paint(YELLOW, "warning"));
            for line in why.lines() {
                say!("  {line}");
            }
        }
        if let (Outcome::Done, Some(file)) = (&self.outcome, &self.unwritten) {
            let file = file.display().to_string();
            let (mark, file) = (paint(YELLOW, "warning"), plain(&file));
            say_painted!(
                "{mark}: nothing was written to {file}: is the input what the network reads?"
            );
        }
        self.say_grown();
        self.say_unconsumed();
        if brief {
            return;
        }
        let (mark, how) = match self.outcome {
            Outcome::Done => (paint(GREEN, "done"), ""),
            Outcome::Interrupted(_) => (paint(RED, "interrupted"), " was stopped"),
            Outcome::Deadlock(_) => (paint(RED, "deadlock"), " was stopped"),
            Outcome::Fault(..) => (paint(RED, "fault"), " was stopped"),
            Outcome::Failed(_) => (paint(RED, "failed"), " was stopped"),
        };
        let seconds = self.elapsed.as_secs_f64();
        let network = paint(BOLD, &plain(&self.network));
        match how {
            "" => say_painted!("{mark}: {network} in {seconds:.2} s"),
            how => say_painted!("{mark}: {network}{how} after {seconds:.2} s"),
        }
        if let Some((unit, done)) = &self.done {
            let (rate, count) = (self.rate(*done), unit_of(*done, unit));
            say!("  {} {count}, {rate:.1} {unit}/s", grouped(*done));
        }
        let elements = self.elements();
        if elements > 0 {
            let (rate, count) = (self.rate(elements) as u64, unit_of(elements, "elements"));
            say!(
                "  {} {count} through channels, {}/s",
                grouped(elements),
                grouped(rate)
            );
        }
        if let Some((taken, total)) = self.input {
            match total {
                0 => say!("  input     {} taken", bytes(taken)),
                _ => say!(
                    "  input     {} of {} taken ({:.0} %)",
                    bytes(taken),
                    bytes(total),
                    100.0 * taken as f64 / total as f64
                ),
            }
        }
        for (worker, core) in self.cores.iter().enumerate() {
            let share = self.share(core.busy);
            let full = (share * 20.0).round() as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(20 - full));
            let name = match core.cpu {
                cpu if cpu >= 0 => format!("core {cpu}"),
                _ => format!("worker {worker}"),
            };
            let others = match core.others.map(|share| share * 100.0) {
                Some(percent) if percent >= 0.5 => {
                    format!(", {percent:.0} % taken by other programs")
                }
                _ => String::new(),
            };
            say_painted!(
                "  {name:<9} {} {:3.0} % busy, {}{others}",
                paint(DIM, &bar),
                share * 100.0,
                plural(core.actors, "actor")
            );
        }
        if stats {
            self.tables();
        }
        match (&self.output, &self.outcome) {
            (Some(output), Outcome::Done) => say!("  output    {output}"),
            (Some(output), _) => say!("  kept      {output}, complete before that"),
            (None, _) => {}
        }
    }

    fn tables(&self) {
        let total: f64 = self
            .counters
            .actors
            .iter()
            .map(|a| a.computed().as_secs_f64())
            .sum();
        let rows: Vec<Vec<String>> = self
            .counters
            .actors
            .iter()
            .map(|a| {
                let busy = a.computed().as_secs_f64();
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
        say_on!("\n{}", table(&head, &rows));
        let rows: Vec<Vec<String>> = self
            .counters
            .channels
            .iter()
            .map(|c| {
                let name = |end: Option<(&str, &str)>| match end {
                    None => "-".to_string(),
                    Some((actor, port)) => format!("{actor}.{port}"),
                };
                vec![
                    format!(
                        "{} -> {}",
                        name(c.producer(&self.actors)),
                        name(c.consumer(&self.actors))
                    ),
                    grouped(u64::from(c.capacity)),
                    grouped(c.got),
                    grouped(u64::from(c.fill)),
                    grouped(c.full),
                    grouped(c.empty),
                    grouped(c.wakes),
                ]
            })
            .collect();
        let head = [
            "channel", "capacity", "elements", "left", "full", "empty", "wakes",
        ];
        say_on!("\n{}", table(&head, &rows));
        if self.moves > 0 {
            say!("\n  {} moved between cores", plural(self.moves, "actor"));
        }
    }

    pub fn json(&self, stats: bool) -> Value {
        let mut out = json!({
            "network": self.network,
            "outcome": self.outcome_word(),
            "seconds": self.elapsed.as_secs_f64(),
            "moves": self.moves,
            "cores": self.cores.iter().map(|c| json!({
                "cpu": c.cpu,
                "busy_seconds": c.busy.as_secs_f64(),
                "busy_share": self.share(c.busy),
                "others_share": c.others,
                "actors": c.actors,
            })).collect::<Vec<_>>(),
            "output": self.output.as_ref().map(|o| &o.path),
            "output_files": self.output.as_ref().map_or(0, |o| o.files),
            "diagnostics": self.diagnostics,
            "elements": {
                "done": self.elements(), "per_second": self.rate(self.elements()),
            },
            "grown": self.grown,
            "unconsumed": self.unconsumed,
        });
        if let Some(kind) = self.error() {
            out["code"] = kind.code().into();
        }
        if let Some((taken, total)) = self.input {
            out["input"] = json!({
                "done_bytes": taken, "total_bytes": Some(total).filter(|n| *n > 0),
            });
        }
        if let Some(why) = &self.idle {
            out["never_fired"] = why.as_str().into();
        }
        if let Some((unit, done)) = &self.done {
            out["progress"] = json!({
                "unit": unit, "done": done, "per_second": self.rate(*done),
            });
        }
        match &self.outcome {
            Outcome::Fault(f, columns) => {
                out["fault"] = json!({
                    "kind": f.kind, "actor": f.actor, "action": f.action, "file": f.file,
                    "line": f.line, "message": f.message,
                });
                if let Some((first, last)) = columns {
                    out["fault"]["column"] = (*first).into();
                    out["fault"]["last_column"] = (*last).into();
                }
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
                    "busy_seconds": a.computed().as_secs_f64(),
                    "longest_seconds": a.longest.as_secs_f64(),
                })
            });
            out["actors"] = actors.collect();
            let channels = self.counters.channels.iter().map(|c| {
                let from = c.producer(&self.actors).unwrap_or_default();
                let to = c.consumer(&self.actors).unwrap_or_default();
                json!({
                    "from": from.0, "from_port": from.1, "to": to.0, "to_port": to.1,
                    "capacity": c.capacity, "loaded_capacity": c.loaded_capacity,
                    "put": c.put, "got": c.got, "left": c.fill,
                    "wakes": c.wakes, "full": c.full, "empty": c.empty,
                })
            });
            out["channels"] = channels.collect();
        }
        out
    }
}

/// Help for a deadlock: a larger channel, or an initial element.
fn deadlock_help(why: &str) -> &'static str {
    if why.contains("buffers are fixed") {
        "without --fixed-buffers the channel grows; a larger bufferSize may be enough, too"
    } else if why.contains("would have to grow") {
        "if it needs that much, allow it more with --memory; else an actor puts more there than is ever taken"
    } else if why.contains("waits for room") {
        "a larger bufferSize on one of these channels may be enough"
    } else {
        "a cycle needs a first element: an actor in it has to give one before it takes any \
             (an initialize action does)"
    }
}

/// The first and the last column of an expression, in characters, counted from one.
type Columns = Option<(u32, u32)>;

/// Parses the columns behind the last comma of a fault's message: "at column 3", or "columns 3 to 7".
fn columns_of(message: &str) -> Option<(&str, (u32, u32))> {
    let (rest, place) = message.rsplit_once(", ")?;
    let place = place.strip_prefix("at ").unwrap_or(place);
    if let Some(column) = place.strip_prefix("column ") {
        let column = column.parse().ok()?;
        return Some((rest, (column, column)));
    }
    let (first, last) = place.strip_prefix("columns ")?.split_once(" to ")?;
    Some((rest, (first.parse().ok()?, last.parse().ok()?)))
}

/// Splits the location off the message: ", at columns 3 to 7", or for fused actors ", at FILE:LINE, columns 3 to 7".
fn placed(mut fault: Fault) -> (Fault, Columns) {
    let columns = columns_of(&fault.message).map(|(rest, columns)| (rest.to_owned(), columns));
    let columns = columns.map(|(rest, columns)| {
        fault.message = rest;
        columns
    });
    let place = fault.message.rsplit_once(", at ").and_then(|(what, at)| {
        let (file, line) = at.rsplit_once(':')?;
        Some((what.to_string(), file.to_string(), line.parse().ok()?))
    });
    if let Some((message, file, line)) = place {
        fault.message = message;
        fault.file = file;
        fault.line = line;
    }
    (fault, columns)
}

/// Renders a fault with its source line, in which the failed expression, or else the whole line, is marked.
fn fault_report(compiled: &CompiledSources, fault: &Fault, columns: Columns) -> String {
    let mut sources = Sources::new();
    let mut diags = Diagnostics::new();
    let text = compiled.text(&fault.file);
    let where_ = format!("in {}", levada_host::action_of(fault));
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
        let end = line.trim_end().len().max(indent);
        // The byte offset of the character with this number.
        let place = |number: u32| {
            let mut places = line.char_indices().map(|(at, _)| at);
            places.nth(number as usize).unwrap_or(line.len())
        };
        let (first, last) = match columns {
            Some((first, last)) => (place(first.saturating_sub(1)), place(last)),
            None => (indent, end),
        };
        let span = ir::Span {
            file,
            start: (start + first) as u32,
            end: (start + last.max(first)) as u32,
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
    levada_cal::diag::render(&sources, &diags, crate::common::output::color())
}
