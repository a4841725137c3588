// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada mcapi`: shows the MCAPI domains of this machine. Two snapshots of each domain are taken a moment apart:
//! the first gives the state, the difference gives the rates.

use crate::cli::{CleanArgs, LookArgs, McapiCommand, WatchArgs};
use crate::common::output::{self, DIM, Failure, RED, failure, failure_with, paint, plain, plural};
use levada_sys::mcapi::{self, Domain, Endpoint};
use levada_sys::{Error, Status, ffi};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time between the two snapshots of `list`.
const SAMPLE_TIME: Duration = Duration::from_millis(200);

pub fn mcapi(command: &McapiCommand) -> Result<ExitCode, Failure> {
    match command {
        McapiCommand::List(args) => list(args),
        McapiCommand::Watch(args) => watch(args),
        McapiCommand::Clean(args) => clean(args),
    }
}

// ---- looking -----------------------------------------------------------------------------------

/// A domain and its state.
struct Seen {
    number: u32,
    domain: Result<Domain, Error>,
}

/// The requested domains at one moment.
struct Snapshot {
    at: Instant,
    domains: Vec<Seen>,
}

impl Snapshot {
    /// Domains that disappear meanwhile are omitted.
    fn now(wanted: &[u32]) -> Result<Snapshot, Failure> {
        let numbers = match mcapi::domains() {
            Ok(numbers) => numbers,
            Err(e) => {
                return failure_with(
                    format!("cannot look for domains: {e}"),
                    "levada doctor says whether /dev/shm can be used",
                );
            }
        };
        let at = Instant::now();
        let domains = numbers
            .into_iter()
            .filter(|n| wanted.is_empty() || wanted.contains(n))
            .map(|number| {
                let mut domain = mcapi::look(number);
                if let Ok(domain) = &mut domain {
                    domain.nodes.sort_by_key(|n| (n.id, n.process));
                    domain.endpoints.sort_by_key(|e| (e.node, e.port));
                }
                Seen { number, domain }
            })
            .filter(|s| !matches!(&s.domain, Err(e) if e.status == Status::NOT_FOUND))
            .collect();
        Ok(Snapshot { at, domains })
    }

    fn is_busy(&self) -> bool {
        let busy = |s: &Seen| s.domain.as_ref().is_ok_and(|d| !d.endpoints.is_empty());
        self.domains.iter().any(busy)
    }

    /// The nodes of each readable domain.
    fn nodes(&self) -> impl Iterator<Item = (u32, &[mcapi::Node])> {
        let seen = self.domains.iter();
        seen.filter_map(|s| Some((s.number, s.domain.as_ref().ok()?.nodes.as_slice())))
    }

    /// The same endpoint in an earlier snapshot, and the seconds since then.
    fn earlier(&self, before: &Snapshot, number: u32, handle: u32) -> Option<(Endpoint, f64)> {
        let seconds = (self.at - before.at).as_secs_f64();
        let seen = before.domains.iter().find(|s| s.number == number)?;
        let domain = seen.domain.as_ref().ok()?;
        let endpoint = domain.endpoints.iter().find(|e| e.handle == handle)?;
        Some((*endpoint, seconds)).filter(|_| seconds > 0.0)
    }

    /// Receptions and bytes per second.
    fn rates(&self, before: &Snapshot, number: u32, endpoint: &Endpoint) -> (f64, f64) {
        match self.earlier(before, number, endpoint.handle) {
            Some((old, seconds)) => (
                endpoint.received.saturating_sub(old.received) as f64 / seconds,
                endpoint.received_bytes.saturating_sub(old.received_bytes) as f64 / seconds,
            ),
            None => (0.0, 0.0),
        }
    }
}

/// A node that was in an earlier snapshot. Other processes remove what a dead node leaves, often between two
/// snapshots.
struct Departed {
    at: Instant,
    domain: u32,
    node: u32,
    process: u32,
    /// Whether its process has ended.
    ended: bool,
}

/// Nodes that have disappeared within the last ten seconds.
#[derive(Default)]
struct DepartedList(Vec<Departed>);

impl DepartedList {
    const DEPARTED_SHOWN: Duration = Duration::from_secs(10);

    fn note(&mut self, before: &Snapshot, now: &Snapshot) {
        for (number, nodes) in before.nodes() {
            for n in nodes {
                let mut still = now.nodes().filter(|(d, _)| *d == number);
                let same = |m: &mcapi::Node| (m.id, m.process) == (n.id, n.process);
                if !still.any(|(_, nodes)| nodes.iter().any(same)) {
                    self.0.push(Departed {
                        at: now.at,
                        domain: number,
                        node: n.id,
                        process: n.process,
                        ended: levada_host::has_ended(n.process as i32),
                    });
                }
            }
        }
        self.0.retain(|l| now.at - l.at < Self::DEPARTED_SHOWN);
    }

    fn text(&self) -> String {
        let line = |l: &Departed| {
            let (domain, node, process) = (l.domain, l.node, l.process);
            let what = format!("node {node} of domain {domain} has left: process {process}");
            if l.ended {
                paint(RED, &format!("{what}, which has ended")) + "\n"
            } else {
                what + "\n"
            }
        };
        let lines: String = self.0.iter().map(line).collect();
        if lines.is_empty() {
            lines
        } else {
            format!("\n{lines}")
        }
    }

    fn json(&self) -> Value {
        let one = |l: &Departed| json!({"domain": l.domain, "node": l.node, "process": l.process, "ended": l.ended});
        self.0.iter().map(one).collect()
    }
}

/// Fails if a domain that was requested by number does not exist.
fn all_there(wanted: &[u32], look: &Snapshot) -> Result<(), Failure> {
    let missing = |n: &&u32| !look.domains.iter().any(|s| s.number == **n);
    match wanted.iter().find(missing) {
        None => Ok(()),
        Some(n) => failure_with(
            format!("there is no domain {n}"),
            "levada mcapi list shows those of yours that there are",
        ),
    }
}

fn list(args: &LookArgs) -> Result<ExitCode, Failure> {
    let before = Snapshot::now(&args.domains)?;
    all_there(&args.domains, &before)?;
    if before.is_busy() {
        std::thread::sleep(SAMPLE_TIME);
    }
    let now = Snapshot::now(&args.domains)?;
    if args.json {
        output::line(&to_json(&before, &now).to_string())?
    } else {
        output::raw_line(to_text(&before, &now).trim_end())?
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let mut before = Snapshot::now(&args.look.domains)?;
    let terminal = std::io::stdout().is_terminal() && !args.look.json;
    if terminal {
        output::raw(b"\x1b[2J")?;
    }
    // The first snapshot is shown at once; rates are known from the second one.
    let mut pause = Duration::ZERO;
    let mut leavers = DepartedList::default();
    loop {
        std::thread::sleep(pause);
        pause = Duration::from_secs_f64(args.interval);
        let now = Snapshot::now(&args.look.domains)?;
        leavers.note(&before, &now);
        if args.look.json {
            let mut said = to_json(&before, &now);
            said["left"] = leavers.json();
            output::line(&said.to_string())?;
        } else {
            let text = to_text(&before, &now) + &leavers.text();
            if terminal {
                redraw(&text)?
            } else {
                output::raw_line(&text)?
            }
        }
        before = now;
    }
}

/// Redraws over the previous text, limited to the height of the terminal.
fn redraw(text: &str) -> Result<(), Failure> {
    // SAFETY: the call fills in the size; it stays zero on errors.
    let height = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(1, libc::TIOCGWINSZ, &mut size);
        match size.ws_row {
            0 => usize::MAX,
            rows => usize::from(rows),
        }
    };
    let mut out = std::io::stdout().lock();
    let mut lines: Vec<&str> = text.trim_end().lines().collect();
    let more = format!("... {} more lines", lines.len().saturating_sub(height - 1));
    if lines.len() > height {
        lines.truncate(height - 1);
        lines.push(&more);
    }
    let drawn = lines.join("\x1b[K\r\n");
    write!(out, "\x1b[H{drawn}\x1b[K\x1b[J")?;
    Ok(out.flush()?)
}

// ---- what is shown -----------------------------------------------------------------------------

fn kind(endpoint: &Endpoint) -> &'static str {
    match endpoint.kind {
        ffi::LVD_MCAPI_PACKETS => "packets",
        ffi::LVD_MCAPI_SCALARS => "scalars",
        _ => "messages",
    }
}

/// The state of its channel.
fn state(endpoint: &Endpoint) -> &'static str {
    match (endpoint.connected, endpoint.opened, endpoint.closed) {
        (_, _, true) => "closing",
        (true, true, _) => "open",
        (false, true, _) => "opening",
        (true, ..) => "connected",
        _ => "",
    }
}

fn channel(e: &Endpoint) -> String {
    match (state(e), e.sends) {
        ("", _) => String::new(),
        (state, true) if e.connected && e.peer == 0 => {
            let receivers = plural(e.receivers as usize, "receiver");
            format!("{} to {receivers} {state}", kind(e))
        }
        (state, _) if e.peer == 0 => format!("{} {state}", kind(e)),
        (state, true) => format!("{} to {}:{} {state}", kind(e), e.peer_node, e.peer_port),
        (state, false) => format!("{} from {}:{} {state}", kind(e), e.peer_node, e.peer_port),
    }
}

fn alive(alive: bool) -> &'static str {
    if alive { "alive" } else { "dead" }
}

fn count(n: u64) -> String {
    match n {
        0 => "-".to_string(),
        n => output::grouped(n),
    }
}

/// 1234567.8 as "1 234 568", 12.34 as "12.3".
fn rate(n: f64) -> String {
    match n {
        n if n <= 0.0 => "-".to_string(),
        n if n < 100.0 => format!("{n:.1}"),
        n => output::grouped(n.round() as u64),
    }
}

/// Rows of dead nodes are coloured red, after the table is aligned.
fn table(head: &[&str], rows: &[(bool, Vec<String>)]) -> String {
    let cells: Vec<Vec<String>> = rows.iter().map(|(_, row)| row.clone()).collect();
    let text = output::table(head, &cells);
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        out += &match i {
            0 => paint(DIM, &plain(line)),
            i if !rows[i - 1].0 => paint(RED, &plain(line)),
            _ => plain(line).into_owned(),
        };
        out.push('\n');
    }
    out
}

fn to_text(before: &Snapshot, now: &Snapshot) -> String {
    if now.domains.is_empty() {
        return "no domains\n".to_string();
    }
    let mut out = String::new();
    for (i, seen) in now.domains.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        match &seen.domain {
            Err(e) => out += &format!("domain {}: {}\n", seen.number, problem(e)),
            Ok(domain) => out += &domain_text(before, now, domain),
        }
    }
    out
}

fn problem(e: &Error) -> String {
    match e.status {
        Status::ABI => "of another version, or damaged".to_string(),
        _ => e.to_string(),
    }
}

fn domain_text(before: &Snapshot, now: &Snapshot, domain: &Domain) -> String {
    let mut out = format!("domain {}: ", domain.number);
    out += &match domain.processes {
        1 => "1 process".to_string(),
        n => format!("{n} processes"),
    };
    out += &format!(", {}", domain.transport);
    if domain.dead > 0 {
        out += &format!(
            ", {} dead (levada mcapi clean {})",
            domain.dead, domain.number
        );
    }
    out.push('\n');
    let rows: Vec<_> = domain
        .nodes
        .iter()
        .map(|n| {
            let cells = [
                n.id.to_string(),
                n.process.to_string(),
                alive(n.alive).into(),
            ];
            (n.alive, cells.to_vec())
        })
        .collect();
    if !rows.is_empty() {
        out += &table(&["node", "process", "state"], &rows);
    }
    let rows: Vec<_> = domain
        .endpoints
        .iter()
        .map(|e| {
            let (per_second, bytes) = now.rates(before, domain.number, e);
            let cells = [
                format!("{}:{}", e.node, e.port),
                alive(e.alive).into(),
                channel(e),
                count(e.messages.into()),
                count(e.elements.into()),
                count(e.received),
                rate(per_second),
                rate(bytes / 1e6),
            ];
            (e.alive, cells.to_vec())
        })
        .collect();
    if !rows.is_empty() {
        let head = [
            "endpoint", "state", "channel", "messages", "elements", "received", "per s", "MB/s",
        ];
        out += &table(&head, &rows);
    }
    out
}

fn to_json(before: &Snapshot, now: &Snapshot) -> Value {
    let domains: Vec<Value> = now
        .domains
        .iter()
        .map(|seen| match &seen.domain {
            Err(e) => json!({"domain": seen.number, "problem": problem(e)}),
            Ok(domain) => domain_json(before, now, domain),
        })
        .collect();
    json!({ "domains": domains })
}

fn domain_json(before: &Snapshot, now: &Snapshot, domain: &Domain) -> Value {
    let node = |n: &mcapi::Node| json!({"node": n.id, "process": n.process, "alive": n.alive});
    let endpoint = |e: &Endpoint| {
        let (rate, bytes) = now.rates(before, domain.number, e);
        let channel = (!state(e).is_empty()).then(|| {
            let peer = (e.peer != 0).then(|| json!({"node": e.peer_node, "port": e.peer_port}));
            json!({
                "kind": kind(e),
                "direction": if e.sends {
"send"
} else {
"receive"
},
                "state": state(e),
                "peer": peer,
                "receivers": (e.sends && e.connected && e.peer == 0).then_some(e.receivers),
                "waiting": e.elements,
            })
        });
        json!({
            "handle": e.handle,
            "node": e.node,
            "port": e.port,
            "alive": e.alive,
            "waiting": e.messages,
            "channel": channel,
            "received": e.received,
            "received_bytes": e.received_bytes,
            "per_second": rate,
            "bytes_per_second": bytes,
        })
    };
    json!({
        "domain": domain.number,
        "transport": domain.transport,
        "processes": domain.processes,
        "dead": domain.dead,
        "nodes": domain.nodes.iter().map(node).collect::<Vec<_>>(),
        "endpoints": domain.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

// ---- cleaning ----------------------------------------------------------------------------------

fn clean(args: &CleanArgs) -> Result<ExitCode, Failure> {
    let numbers = match mcapi::domains() {
        Ok(numbers) => numbers,
        Err(e) => return failure(format!("cannot look for domains: {e}")),
    };
    if let Some(n) = args.domains.iter().find(|n| !numbers.contains(n)) {
        return failure_with(
            format!("there is no domain {n}"),
            "levada mcapi list shows those of yours that there are",
        );
    }
    let wanted = |n: &u32| args.domains.is_empty() || args.domains.contains(n);
    let mut done = Vec::new();
    let mut refused = false;
    for number in numbers.into_iter().filter(wanted) {
        let cleared = mcapi::clean(number);
        refused |= cleared.is_err();
        if !args.json {
            output::line(&clean_text(number, &cleared))?;
        }
        done.push(clean_json(number, &cleared));
    }
    if args.json {
        output::report(json!({ "domains": done }), refused)?;
    } else if done.is_empty() {
        output::line("no domains")?;
    }
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn clean_problem(e: &Error) -> String {
    match e.status {
        Status::ABI => {
            "left alone: a process of another version of Levada is at work in it".to_string()
        }
        _ => format!("left alone: {e}"),
    }
}

fn clean_text(number: u32, cleared: &Result<mcapi::Cleared, Error>) -> String {
    let cleared = match cleared {
        Ok(cleared) => cleared,
        Err(e) => return format!("domain {number}: {}", clean_problem(e)),
    };
    let what = match cleared.processes {
        0 if cleared.gone => "removed: no process used it".to_string(),
        0 => "nothing to remove".to_string(),
        n => {
            let processes = match n {
                1 => "1 dead process".to_string(),
                n => format!("{n} dead processes"),
            };
            let rest = if cleared.gone {
                "; domain removed, as no other process used it"
            } else {
                "; other processes continue"
            };
            format!(
                "{processes} with {} and {}{rest}",
                plural(cleared.nodes as usize, "node"),
                plural(cleared.endpoints as usize, "endpoint"),
            )
        }
    };
    format!("domain {number}: {what}")
}

fn clean_json(number: u32, cleared: &Result<mcapi::Cleared, Error>) -> Value {
    match cleared {
        Err(e) => json!({"domain": number, "problem": clean_problem(e)}),
        Ok(c) => json!({
            "domain": number,
            "processes": c.processes,
            "nodes": c.nodes,
            "endpoints": c.endpoints,
            "gone": c.gone,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint {
            handle: 1024,
            node: 1,
            port: 2,
            alive: true,
            kind: ffi::LVD_MCAPI_PACKETS,
            sends: true,
            connected: true,
            opened: true,
            closed: false,
            peer: 2049,
            peer_node: 3,
            peer_port: 4,
            receivers: 1,
            messages: 0,
            elements: 0,
            received: 0,
            received_bytes: 0,
        }
    }

    fn look(at: Instant, endpoint: Endpoint) -> Snapshot {
        let domain = Domain {
            number: 7,
            transport: "shm",
            processes: 1,
            dead: 0,
            nodes: Vec::new(),
            endpoints: vec![endpoint],
        };
        let seen = Seen {
            number: 7,
            domain: Ok(domain),
        };
        Snapshot {
            at,
            domains: vec![seen],
        }
    }

    #[test]
    fn channels_say_where_they_lead_and_how_far_they_are() {
        let mut e = endpoint();
        assert_eq!(channel(&e), "packets to 3:4 open");
        e.sends = false;
        e.opened = false;
        assert_eq!(channel(&e), "packets from 3:4 connected");
        e.closed = true;
        assert_eq!(channel(&e), "packets from 3:4 closing");
        (e.closed, e.connected, e.opened, e.peer) = (false, false, true, 0);
        assert_eq!(channel(&e), "packets opening");
        e.opened = false;
        assert_eq!(channel(&e), "");
    }

    #[test]
    fn rates_are_what_has_come_between_two_looks() {
        let start = Instant::now();
        let mut e = endpoint();
        let before = look(start, e);
        (e.received, e.received_bytes) = (1000, 64_000);
        let now = look(start + Duration::from_millis(500), e);
        assert_eq!(now.rates(&before, 7, &e), (2000.0, 128_000.0));
        // Another endpoint has taken its slot.
        e.handle += 1024;
        assert_eq!(now.rates(&before, 7, &e), (0.0, 0.0));
    }
}
