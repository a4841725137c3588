// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `levada top` shows, from two answers of the host, and what its keys mean.

use super::words::{shortened, wrapped};
use super::{Look, Wish};
use crate::output::{grouped, plural};
use crate::remote::realtime;
use levada_host::api::types::{Actor, Application, Channel, Worker};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell as Field, Paragraph, Row, Table};
use std::cell::Cell;

pub struct View {
    now: Look,
    before: Option<Look>,
    app: usize,
    actor: usize,
    /// The worker that the actor goes to is typed, and this is there of it.
    moves: Option<String>,
    /// What is read, from this line on, in the place of actors and channels.
    reads: Option<(Page, usize)>,
    /// The last line of it that may be the first, and the lines that a key goes on, as it was drawn.
    last: Cell<usize>,
    page: Cell<usize>,
    /// What came of the last key.
    pub said: String,
}

/// What can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    /// All that is said of an application, and of the last key.
    Words,
    /// What keys do.
    Keys,
}

/// Each key with a word for the line at the bottom, and what it does.
const KEYS: [(&str, &str, &str); 10] = [
    ("q", "quit", "end this; so does Ctrl-C"),
    ("up/down", "application", "choose an application"),
    ("left/right", "actor", "choose an actor of it"),
    ("w", "words", "all that is said of it"),
    ("p", "pause", "pause it, or let it go on"),
    ("m", "move", "move the actor to stay"),
    ("u", "unload", "let it drain, unload it"),
    ("U", "now", "unload it at once"),
    ("?", "keys", "what keys do"),
    ("PageUp/Down", "", "read on"),
];
/// While something is read.
const KEYS_READING: [(&str, &str, &str); 3] = [
    ("Escape", "back", ""),
    ("PageUp/Down", "more", ""),
    ("up/down", "application", ""),
];
/// Lines of the words below the channels.
const WORDS: usize = 4;
const BAR: usize = 10;
/// Cells of a name, at least: before that columns are left out.
const NAME: u16 = 16;
/// The cells that a worker takes where there is more than one in a line.
const WORKER: usize = 28;

impl View {
    pub fn new(now: Look) -> View {
        View {
            now,
            before: None,
            app: 0,
            actor: 0,
            moves: None,
            reads: None,
            last: Cell::new(0),
            page: Cell::new(1),
            said: String::new(),
        }
    }

    /// A new answer.
    pub fn take(&mut self, look: Look) {
        self.app = self.choice(&look.stats.application);
        self.before = Some(std::mem::replace(&mut self.now, look));
    }

    /// Which of these is chosen: what was, where it is there still, else what has come to its place.
    pub fn choice(&self, all: &[Application]) -> usize {
        match all.iter().position(|a| a.name == self.chosen()) {
            Some(at) => at,
            None => self.app.min(all.len().saturating_sub(1)),
        }
    }

    /// The name of the application that is chosen.
    fn chosen(&self) -> &str {
        self.application().map_or("", |a| &a.name)
    }

    fn application(&self) -> Option<&Application> {
        self.now.stats.application.get(self.app)
    }

    fn actors(&self) -> &[Actor] {
        self.now.details.as_ref().map_or(&[], |d| &d.actor)
    }

    /// Escape first ends what a key has begun.
    pub fn keys_are_free(&mut self) -> bool {
        self.moves.take().is_none() && self.reads.take().is_none()
    }

    pub fn key(&mut self, key: KeyCode) -> Option<Wish> {
        let all = self.now.stats.application.len();
        let name = self.chosen().to_string();
        if let Some(typed) = self.moves.take() {
            match key {
                KeyCode::Char('f') => return self.wish_to_move(None),
                KeyCode::Char('0'..='9') | KeyCode::Enter => return self.type_worker(typed, key),
                _ => {}
            }
        }
        let reads = |page| self.reads.is_some_and(|(read, _)| read == page);
        self.reads = match (key, self.reads) {
            (KeyCode::Char('w'), _) if !reads(Page::Words) => Some((Page::Words, 0)),
            (KeyCode::Char('?'), _) if !reads(Page::Keys) => Some((Page::Keys, 0)),
            (KeyCode::Char('w' | '?'), _) => None,
            (KeyCode::PageUp, Some((page, at))) => Some((page, at.saturating_sub(self.page.get()))),
            (KeyCode::PageDown, Some((page, at))) => {
                Some((page, (at + self.page.get()).min(self.last.get())))
            }
            (KeyCode::Up | KeyCode::Down, Some((page, _))) => Some((page, 0)),
            (_, reads) => reads,
        };
        // What came of a key can be read whole, and who reads presses no key by chance.
        let reads = matches!(key, KeyCode::Char('w' | '?')) || self.reads.is_some();
        if reads && !matches!(key, KeyCode::Up | KeyCode::Down) {
            return None;
        }
        self.said.clear();
        match key {
            KeyCode::Up if self.app > 0 => (self.app, self.actor) = (self.app - 1, 0),
            KeyCode::Down if self.app + 1 < all => (self.app, self.actor) = (self.app + 1, 0),
            KeyCode::Left => self.actor = self.actor.saturating_sub(1),
            KeyCode::Right if self.actor + 1 < self.actors().len() => self.actor += 1,
            KeyCode::Char('m') if !self.actors().is_empty() => {
                self.moves = Some(String::new());
            }
            KeyCode::Char('p') => {
                return Some(Wish::Turn(name, self.application()?.state));
            }
            KeyCode::Char(key @ ('u' | 'U')) if !name.is_empty() => {
                return Some(Wish::Unload(name, key == 'U'));
            }
            _ => {}
        }
        None
    }

    fn wish_to_move(&self, worker: Option<u32>) -> Option<Wish> {
        let actor = self.actors().get(self.actor)?.name.clone();
        Some(Wish::Move(self.chosen().to_string(), actor, worker))
    }

    /// Another digit of the worker that the actor is to go to, or the end of it.
    fn type_worker(&mut self, mut typed: String, key: KeyCode) -> Option<Wish> {
        typed.extend(key.as_char());
        let worker: u32 = typed.parse().ok()?;
        // Another digit would make it one that is not there, or it is to be this one.
        let workers = self.now.stats.worker.len();
        if key == KeyCode::Enter || worker as usize * 10 >= workers || worker == 0 {
            return self.wish_to_move(Some(worker));
        }
        self.moves = Some(typed);
        None
    }

    /// Seconds between the two answers, as the host says.
    fn seconds(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        let seconds = self.now.stats.host.seconds - before.stats.host.seconds;
        (seconds > 0.0).then_some(seconds)
    }

    /// Of so many cores the part that was busy meanwhile. What is read at two moments may be a little more than
    /// there is.
    fn busy(&self, now: f64, was: f64, cores: usize) -> Option<f64> {
        let seconds = self.seconds()?;
        Some(((now - was) / seconds).clamp(0.0, cores as f64))
    }

    pub fn draw(&self, frame: &mut Frame) {
        let stats = &self.now.stats;
        let columns = worker_columns(stats.worker.len(), frame.area().width);
        // At most a quarter of it, and a third: there is to be room for what is chosen.
        let height = frame.area().height;
        let cores = stats.worker.len().div_ceil(columns) as u16;
        let cores = cores.min((height / 4).max(2));
        let apps = stats.application.len().max(1) as u16;
        let apps = apps.min((height / 3).max(2)).min(20);
        let [title, workers, applications, details, said, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(cores + 1),
            Constraint::Length(apps + 2),
            Constraint::Fill(1),
            Constraint::Length(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let up = format!(
            " levada {}   {} loaded   up for {:.0} s{}",
            stats.host.version,
            plural(stats.host.applications, "application"),
            stats.host.seconds,
            realtime(&stats.host)
        );
        frame.render_widget(Paragraph::new(up).bold(), title);
        if let Some((Page::Keys, first)) = self.reads {
            let all = workers.union(applications).union(details).union(said);
            self.draw_page(frame, all, what_keys_do(), first);
        } else {
            self.draw_workers(frame, workers, columns, usize::from(cores));
            self.draw_applications(frame, applications);
            match self.reads {
                Some((_, first)) => self.draw_page(frame, details, self.words(details), first),
                None => self.draw_details(frame, details),
            }
            self.draw_said(frame, said);
        }
        let all = match self.reads {
            Some(_) => &KEYS_READING[..],
            None => &KEYS[..],
        };
        frame.render_widget(Paragraph::new(keys_in(all, keys.width)).dim(), keys);
    }

    /// What came of the last key, or what it asks for.
    fn draw_said(&self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        let text = match (&self.moves, self.actors().get(self.actor)) {
            (Some(typed), Some(actor)) => {
                let last = self.now.stats.worker.len().max(1) - 1;
                let asks = format!(": to worker 0-{last}, or f for free? {typed}");
                let room = width.saturating_sub(asks.len() + 1);
                let name = shortened(&actor.name, room, 1).pop().unwrap_or_default();
                format!(" {name}{asks}")
            }
            _ => format!(" {}", self.said.lines().next().unwrap_or_default()),
        };
        let text = lines(shortened(&text, width, 1));
        frame.render_widget(Paragraph::new(text).yellow(), area);
    }

    /// Of what is chosen, and of the last key, all that is said.
    fn words(&self, area: Rect) -> Vec<String> {
        let outcome = self.application().and_then(|a| a.outcome.clone());
        let said = [
            self.said.clone(),
            outcome.unwrap_or_default(),
            self.now.why.clone(),
        ];
        let said = said.iter().map(|s| s.trim_end()).filter(|s| !s.is_empty());
        wrapped(&said.collect::<Vec<_>>().join("\n"), cells_of(area))
    }

    /// As many of these lines as there is room for, from one on.
    fn draw_page(&self, frame: &mut Frame, area: Rect, all: Vec<String>, first: usize) {
        let height = usize::from(area.height);
        let last = all.len().saturating_sub(height);
        self.last.set(last);
        self.page.set(height.saturating_sub(1).max(1));
        let text = lines(all.into_iter().skip(first.min(last)).map(indented));
        frame.render_widget(Paragraph::new(text), area);
    }

    fn draw_workers(&self, frame: &mut Frame, area: Rect, columns: usize, lines: usize) {
        let before = self.before.as_ref().map(|b| &b.stats.worker);
        let all = &self.now.stats.worker;
        let shown = all.len().min(columns * lines);
        // With its name, its share and its actors beside it.
        let wide = usize::from(area.width).saturating_sub(30).clamp(8, 30);
        let one = |w: &Worker| {
            let was = before.and_then(|all| all.iter().find(|b| b.worker == w.worker));
            let busy = was.and_then(|b| self.busy(w.busy, b.busy, 1));
            let core = match w.cpu {
                0.. => format!(" core {:<3}", w.cpu),
                _ => format!(" worker {:<3}", w.worker),
            };
            let (cells, rest) = match columns {
                1 => (wide, format!("   {}", plural(w.actor.len(), "actor"))),
                _ => (10, String::new()),
            };
            [
                Span::raw(core),
                bar(busy.unwrap_or(0.0), cells).green(),
                Span::raw(format!(" {:>6}{rest}", share(busy))),
            ]
        };
        let line = |i: usize| {
            let of = (i..shown).step_by(lines.max(1));
            let mut spans: Vec<Span> = of.flat_map(|at| one(&all[at])).collect();
            if i + 1 == lines && shown < all.len() {
                spans.push(format!("  and {} more", all.len() - shown).into());
            }
            Line::from(spans)
        };
        let lines: Vec<Line> = (0..lines).map(line).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_applications(&self, frame: &mut Frame, area: Rect) {
        let all = &self.now.stats.application;
        let columns = Columns::fitting(
            area.width,
            [
                ("application", 0, 0),
                ("state", 9, 1),
                ("rate", 18, 2),
                ("promised", 13, 4),
                ("firings/s", 14, 5),
                ("cores", 8, 3),
                ("priority", 8, 7),
                ("memory", 12, 6),
            ],
        );
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let first = (self.app + 1).saturating_sub(room);
        let rows = all.iter().enumerate().skip(first).take(room).map(|(i, a)| {
            let was = self.before.as_ref().and_then(|b| {
                let all = b.stats.application.iter();
                all.clone().find(|b| b.number == a.number)
            });
            let per = |now: f64, was: f64| self.seconds().map(|s| (now - was).max(0.0) / s);
            let firings = was.and_then(|b| per(a.firings as f64, b.firings as f64));
            let cores = self.now.stats.worker.len();
            let busy = was.and_then(|b| self.busy(a.busy, b.busy, cores));
            let done = a.progress.as_ref().and_then(|p| {
                let was = was?.progress.as_ref().map_or(0, |b| b.done);
                Some((per(p.done as f64, was as f64)?, &p.unit))
            });
            let done = done.map_or("-".to_string(), |(r, unit)| format!("{r:.1} {unit}/s"));
            let late = a.is_late == Some(true);
            let promised = match a.promised {
                Some(p) if late => format!("{p:.1} LATE"),
                Some(p) => format!("{p:.1}"),
                None => "-".to_string(),
            };
            let cells = [
                a.name.clone(),
                a.state.to_string(),
                done,
                promised,
                firings.map_or("-".to_string(), |f| grouped(f as u64)),
                share(busy),
                a.priority.to_string(),
                format!("{} KiB", grouped(a.memory >> 10)),
            ];
            let row = Row::new(columns.of(cells));
            match (i == self.app, late) {
                (true, _) => row.reversed(),
                (false, true) => row.red(),
                (false, false) => row,
            }
        });
        frame.render_widget(columns.table(rows.collect()), area);
    }

    fn draw_details(&self, frame: &mut Frame, area: Rect) {
        let Some(details) = &self.now.details else {
            let words = match self.chosen() {
                "" => " no application is loaded".to_string(),
                name => format!(" {name} does not say more now"),
            };
            frame.render_widget(Paragraph::new(words).dim(), area);
            return;
        };
        let before = self.before.as_ref().and_then(|b| b.details.as_ref());
        let before = before.filter(|b| b.application.number == details.application.number);
        let why = shortened(&self.now.why, cells_of(area), WORDS);
        let why: Vec<String> = why.into_iter().map(indented).collect();
        let height = why.len() as u16 + 1;
        let [upper, lower] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)])
                .areas(upper);
        let seconds = self.seconds();
        let room = usize::from(left.height.saturating_sub(1)).max(1);
        let first = (self.actor + 1).saturating_sub(room);
        let columns = Columns::fitting(
            left.width,
            [
                ("actor", 0, 0),
                ("worker", 6, 2),
                ("of core", 8, 1),
                ("longest", 11, 3),
            ],
        );
        let actors = details.actor.iter().enumerate().skip(first).take(room);
        let rows = actors.map(|(i, a)| {
            let was = before.and_then(|b| b.actor.get(i));
            let busy = was.and_then(|b| self.busy(a.busy, b.busy, 1));
            let pin = if a.pin.is_some() { " pin" } else { "" };
            let row = Row::new(columns.of([
                a.name.clone(),
                format!("{}{pin}", a.worker),
                share(busy),
                format!("{:.2} ms", a.longest * 1e3),
            ]));
            if i == self.actor { row.reversed() } else { row }
        });
        frame.render_widget(columns.table(rows.collect()), left);
        let columns = Columns::fitting(
            right.width,
            [
                ("channel", 0, 0),
                ("fill", BAR as u16, 1),
                ("elements/s", 13, 3),
                ("who waits", 12, 2),
            ],
        );
        let rows = details.channel.iter().enumerate().map(|(i, c)| {
            let was = before.and_then(|b| b.channel.get(i));
            // A new process counts anew.
            let rate = was
                .zip(seconds)
                .map(|(b, s)| c.got.saturating_sub(b.got) as f64 / s);
            Row::new(columns.of([
                Field::from(format!("{} -> {}", c.from, c.to)),
                Field::from(bar(f64::from(c.fill) / f64::from(c.capacity.max(1)), BAR)),
                Field::from(rate.map_or("-".to_string(), |r| grouped(r as u64))),
                Field::from(blocks(c, was)),
            ]))
        });
        frame.render_widget(columns.table(rows.collect()), right);
        frame.render_widget(Paragraph::new(lines(why)).dim(), lower);
    }
}

/// The cells of a line of words, which begins one cell in.
fn cells_of(area: Rect) -> usize {
    usize::from(area.width).saturating_sub(1)
}

/// The keys for which there is room, each whole; where that is not all, the last one tells of the others.
fn keys_in(all: &[(&str, &str, &str)], width: u16) -> String {
    let named = all.iter().filter(|(_, word, _)| !word.is_empty());
    let mut keys: Vec<String> = named
        .map(|(key, word, _)| format!("{key} {word}"))
        .collect();
    let line = |keys: &[String]| format!(" {}", keys.join("  "));
    let rest = keys.iter().position(|key| key.starts_with('?'));
    while line(&keys).len() > usize::from(width) && keys.len() > 1 {
        // The one before it goes, or else the last.
        keys.remove(keys.len() - if rest.is_some() { 2 } else { 1 });
    }
    line(&keys)
}

/// A line a key.
fn what_keys_do() -> Vec<String> {
    let wide = KEYS.iter().map(|(key, _, _)| key.len()).max().unwrap_or(0);
    let one = |(key, _, does): &(&str, &str, &str)| format!("{key:<wide$}  {does}");
    KEYS.iter().map(one).collect()
}

fn indented(line: String) -> String {
    format!(" {line}")
}

fn lines(all: impl IntoIterator<Item = String>) -> Vec<Line<'static>> {
    all.into_iter().map(Line::from).collect()
}

/// One in a line where that is little, else as many as there is room for.
fn worker_columns(workers: usize, width: u16) -> usize {
    match workers <= 8 {
        true => 1,
        false => (usize::from(width) / WORKER).max(1),
    }
}

/// The columns of a table for which there is room, the first of which takes what the others leave.
struct Columns<const N: usize> {
    kept: [bool; N],
    all: [(&'static str, u16, u8); N],
}

impl<const N: usize> Columns<N> {
    /// Each with its head, its cells, and its rank: the lowest is left out last.
    fn fitting(width: u16, all: [(&'static str, u16, u8); N]) -> Columns<N> {
        let mut order: Vec<usize> = (1..N).collect();
        order.sort_by_key(|&i| all[i].2);
        let mut kept = [false; N];
        kept[0] = true;
        let mut taken = NAME;
        for i in order {
            let with = taken + all[i].1 + 1;
            if with > width {
                break;
            }
            (kept[i], taken) = (true, with);
        }
        Columns { kept, all }
    }

    fn of<T>(&self, cells: [T; N]) -> Vec<T> {
        let cells = cells.into_iter().zip(self.kept);
        cells
            .filter_map(|(cell, kept)| kept.then_some(cell))
            .collect()
    }

    fn table<'a>(&self, rows: Vec<Row<'a>>) -> Table<'a> {
        let widths = self.of(self.all).into_iter().enumerate();
        let widths = widths.map(|(i, (_, cells, _))| match i {
            0 => Constraint::Fill(1),
            _ => Constraint::Length(cells),
        });
        let head = self.of(self.all).into_iter().map(|(head, _, _)| head);
        Table::new(rows, widths).header(Row::new(head).style(Style::new().bold()))
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |s| format!("{:.1}%", s * 100.0))
}

/// So full, in eighths of a cell.
fn bar(part: f64, cells: usize) -> Span<'static> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let text = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    Span::raw(format!("{text:<cells$}"))
}

/// Who of the two ends had to wait more often since the last answer.
fn blocks(c: &Channel, was: Option<&Channel>) -> &'static str {
    let (full, empty) = match was {
        Some(was) => (
            c.full - was.full.min(c.full),
            c.empty - was.empty.min(c.empty),
        ),
        None => (0, 0),
    };
    match () {
        () if c.capacity > 0 && c.fill == c.capacity => "its producer",
        () if full > empty => "its producer",
        () if empty > full => "its consumer",
        () => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::living_first;
    use super::*;
    use levada_host::State;
    use levada_host::api::types::{Details, Stats};
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;

    /// What a host says that is up for so many seconds.
    fn answer(seconds: f64, busy: f64, got: u64) -> Look {
        let app = |number: u64, name: &str, state: &str| {
            json!({"name": name, "number": number, "network": "p.Top", "state": state,
                "priority": 0, "loaded": 0.0, "seconds": 1.0, "memory": 65536, "actors": 2,
                "firings": got, "busy": busy, "moves": 0, "promised": 30.0, "pace": 12.0,
                "is_late": state == "running", "progress": {"done": got / 100, "unit": "frames"}})
        };
        let actor = |name: &str| {
            json!({"name": name, "class": "p.X", "worker": 1, "firings": got, "activations": 1,
                "busy": busy, "longest": 0.0025})
        };
        let stats = json!({
            "host": {"version": "0.1.0", "pid": 1, "seconds": seconds, "workers": 1,
                "applications": 2},
            "worker": [{"worker": 0, "cpu": 3, "open": true, "busy": busy, "asleep": 0.0, "activations": 1,
                "sleeps": 0, "actor": []}],
            "application": [app(1, "radio", "running"), app(2, "clip", "paused")]});
        let mut details = app(1, "radio", "running");
        details["actor"] = json!([actor("tuner"), actor("filter")]);
        details["channel"] = json!([{"from": "tuner.Out", "to": "filter.In", "capacity": 100,
            "fill": 50, "put": got, "got": got, "full": got, "empty": 0, "wakes": 0}]);
        Look {
            stats: serde_json::from_value::<Stats>(stats).unwrap(),
            details: Some(serde_json::from_value::<Details>(details).unwrap()),
            why: "filter waits for tuner\n".to_string(),
        }
    }

    fn drawn(view: &View) -> String {
        drawn_on(view, 110)
    }

    fn drawn_on(view: &View, width: u16) -> String {
        drawn_in(view, width, 24)
    }

    fn drawn_in(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = (0..height).map(|y| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn view() -> View {
        let mut view = View::new(answer(5.0, 0.0, 0));
        view.take(answer(7.0, 1.0, 2400));
        view
    }

    #[test]
    fn rates_fill_and_who_waits_are_shown() {
        let text = drawn(&view());
        for part in [
            "2 applications loaded",
            "core 3",
            "50.0%",
            "12.0 frames/s",
            "30.0 LATE",
            "1 200",
            "tuner.Out -> filter.In",
            "█████ ",
            "its producer",
            "2.50 ms",
            "filter waits for tuner",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        // Who has less than it was promised for another reason is not late.
        assert_eq!(text.matches("LATE").count(), 1, "{text}");
    }

    #[test]
    fn names_are_shown_on_a_narrow_terminal_and_who_runs_before_who_has_ended() {
        let many = |at, got| {
            let mut look = answer(at, 0.0, got);
            let ended = look.stats.application[1].clone();
            let ended = (10..30).map(|number| Application {
                number,
                name: format!("over-{number}"),
                state: State::Ended,
                ..ended.clone()
            });
            look.stats.application.splice(0..0, ended);
            living_first(&mut look.stats.application);
            look
        };
        let mut view = View::new(many(5.0, 500));
        // What has been replaced counts anew.
        view.take(many(6.0, 20));
        let text = drawn_on(&view, 80);
        for part in ["radio ", "clip ", "over-10", "tuner.Out -> f", "filter "] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(!drawn_on(&view, 20).is_empty());
        let one = view.now.stats.worker[0].clone();
        view.now.stats.worker = (0..64)
            .map(|worker| Worker {
                worker,
                ..one.clone()
            })
            .collect();
        let text = drawn_on(&view, 80);
        assert!(
            text.contains("and 52 more") && text.contains("tuner.Out"),
            "{text}"
        );
    }

    #[test]
    fn sentences_end_at_a_word_and_can_be_read_whole() {
        let mut view = view();
        let sentence = "filter waits for 1 element on its input In: the channel tuner.Out -> \
                        filter.In is empty (0 of 100); tuner has to fill it\n";
        view.now.why = sentence.repeat(12) + "the end\n";
        let text = drawn_on(&view, 60);
        assert!(
            text.contains("the channel\n") && text.contains("channel …\n"),
            "{text}"
        );
        assert!(!text.contains("the end"), "{text}");
        view.said = "radio cannot be unloaded, for a reason that has no room in a line of a \
                     terminal; and so on\nwait"
            .to_string();
        assert!(drawn_on(&view, 60).contains(" …\n"));
        assert_eq!(view.key(KeyCode::Char('w')), None);
        let text = drawn_on(&view, 60);
        assert!(
            text.contains("so on\n") && text.contains("Escape back"),
            "{text}"
        );
        for _ in 0..9 {
            assert_eq!(view.key(KeyCode::PageDown), None);
            drawn_on(&view, 60);
        }
        assert!(drawn_on(&view, 60).contains("the end"));
        // Who reads unloads nothing; Escape first goes back.
        assert_eq!(view.key(KeyCode::Char('U')), None);
        assert!(!view.keys_are_free() && view.keys_are_free());
        assert!(drawn_on(&view, 60).contains("tuner.Out"));
    }

    /// Each key is there, or where one finds it.
    #[test]
    fn no_key_is_lost_on_a_narrow_terminal() {
        let mut view = view();
        let bottom = |view: &View, width, height| {
            let text = drawn_in(view, width, height);
            text.lines().last().unwrap().to_string()
        };
        for (width, whole) in [(40, false), (60, false), (100, true)] {
            let line = bottom(&view, width, 12);
            assert!(
                line.starts_with(" q quit  up/down") && line.ends_with("? keys"),
                "{line}"
            );
            assert_eq!(line.contains("U now"), whole, "{line}");
            assert!(drawn_in(&view, width, 12).contains("50.0%   0 actors"));
        }
        assert_eq!(view.key(KeyCode::Char('?')), None);
        let text = drawn_in(&view, 40, 12);
        for (key, _, does) in KEYS {
            assert!(
                text.contains(key) && text.contains(does),
                "no {key}:\n{text}"
            );
        }
        assert!(bottom(&view, 40, 12).contains("Escape back"));
        // Also where only a few have room at a time.
        let mut seen = String::new();
        for _ in 0..6 {
            seen += &drawn_in(&view, 60, 8);
            assert_eq!(view.key(KeyCode::PageDown), None);
        }
        for (key, _, does) in KEYS {
            assert!(seen.contains(does), "no {key}:\n{seen}");
        }
        // Who reads of keys unloads nothing.
        assert_eq!(view.key(KeyCode::Char('U')), None);
        assert!(!view.keys_are_free() && view.keys_are_free());
        assert!(drawn(&view).contains("tuner.Out"));
    }

    /// What is read at two moments is no more than there is, and a pin is seen.
    #[test]
    fn shares_are_of_what_there_is() {
        let mut view = View::new(answer(5.0, 0.0, 0));
        let mut look = answer(6.0, 1.2, 100);
        look.details.as_mut().unwrap().actor[1].pin = Some(1);
        view.take(look);
        let text = drawn(&view);
        assert!(
            text.contains("100.0%") && !text.contains("120.0%"),
            "{text}"
        );
        assert!(text.contains("1 pin"), "{text}");
    }

    #[test]
    fn keys_choose_pause_move_and_unload() {
        let mut view = view();
        let turn = |name: &str, state| Some(Wish::Turn(name.to_string(), state));
        assert_eq!(view.key(KeyCode::Char('p')), turn("radio", State::Running));
        assert_eq!(view.key(KeyCode::Right), None);
        assert_eq!(view.key(KeyCode::Char('m')), None);
        assert!(drawn(&view).contains("filter: to worker 0-0, or f for free?"));
        assert!(drawn_in(&view, 40, 12).contains(": to worker 0-0, or f for free?"));
        let to = |worker| Some(Wish::Move("radio".into(), "filter".into(), worker));
        assert_eq!(view.key(KeyCode::Char('1')), to(Some(1)));
        assert_eq!(view.key(KeyCode::Char('1')), None);
        view.key(KeyCode::Char('m'));
        assert!(!view.keys_are_free() && view.keys_are_free());
        assert_eq!(view.key(KeyCode::Down), None);
        assert_eq!(view.key(KeyCode::Down), None);
        assert_eq!(view.key(KeyCode::Char('p')), turn("clip", State::Paused));
        let gone = Wish::Unload("clip".into(), true);
        assert_eq!(view.key(KeyCode::Char('U')), Some(gone));
        // Of many workers some have two digits.
        view.key(KeyCode::Up);
        view.key(KeyCode::Right);
        let one = view.now.stats.worker[0].clone();
        view.now.stats.worker = (0..64)
            .map(|worker| Worker {
                worker,
                ..one.clone()
            })
            .collect();
        for (keys, worker) in [("12", 12), ("7", 7), ("0", 0), ("1\n", 1), ("63", 63)] {
            view.key(KeyCode::Char('m'));
            let mut said = None;
            for key in keys.chars() {
                assert_eq!(said, None);
                said = view.key(match key {
                    '\n' => KeyCode::Enter,
                    digit => KeyCode::Char(digit),
                });
            }
            assert_eq!(said, to(Some(worker)), "{keys}");
        }
        view.key(KeyCode::Char('m'));
        assert_eq!(view.key(KeyCode::Char('f')), to(None));
        assert_eq!(view.key(KeyCode::Char('f')), None);
        view.key(KeyCode::Down);
        // Where nothing is loaded no key asks for anything.
        let mut empty = answer(8.0, 0.0, 0);
        (empty.details, empty.stats.application) = (None, Vec::new());
        view.take(empty);
        for key in ['p', 'm', 'u', 'U', '1'] {
            assert_eq!(view.key(KeyCode::Char(key)), None);
        }
        assert!(drawn(&view).contains("no application is loaded"));
        // What comes then is chosen, and asked for more.
        let next = answer(9.0, 0.0, 0);
        assert_eq!(view.choice(&next.stats.application), 0);
        view.take(next);
        assert_eq!(view.chosen(), "radio");
        assert!(drawn(&view).contains("tuner"));
        let mut silent = answer(10.0, 0.0, 0);
        silent.details = None;
        view.take(silent);
        assert!(drawn(&view).contains("radio does not say more now"));
    }
}
