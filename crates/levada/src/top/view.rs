// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `levada top` shows, from two answers of the host, and what its keys mean.

use super::{Look, Wish};
use crate::output::{grouped, plural};
use levada_host::api::types::{Actor, Application, Channel};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

pub struct View {
    now: Look,
    before: Option<Look>,
    app: usize,
    actor: usize,
    /// The next digit is a worker that the actor goes to.
    moves: bool,
    /// What came of the last key.
    pub said: String,
}

const KEYS: &str =
    " up/down application   left/right actor   p pause   m 0-9 move   u unload   U now   q quit";
const BAR: usize = 10;

impl View {
    pub fn new(now: Look) -> View {
        View {
            now,
            before: None,
            app: 0,
            actor: 0,
            moves: false,
            said: String::new(),
        }
    }

    /// A new answer: what is chosen stays chosen where it is there still.
    pub fn take(&mut self, look: Look) {
        let name = self.chosen().to_string();
        let all = &look.stats.application;
        self.app = match all.iter().position(|a| a.name == name) {
            Some(at) => at,
            None => self.app.min(all.len().saturating_sub(1)),
        };
        self.before = Some(std::mem::replace(&mut self.now, look));
    }

    /// The name of the application that is chosen.
    pub fn chosen(&self) -> &str {
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
        let free = !self.moves;
        self.moves = false;
        free
    }

    pub fn key(&mut self, key: KeyCode) -> Option<Wish> {
        let all = self.now.stats.application.len();
        let name = self.chosen().to_string();
        if let (true, KeyCode::Char(digit @ '0'..='9')) = (self.moves, key) {
            self.moves = false;
            let actor = self.actors().get(self.actor)?.name.clone();
            return Some(Wish::Move(name, actor, digit as u32 - '0' as u32));
        }
        self.moves = false;
        self.said.clear();
        match key {
            KeyCode::Up if self.app > 0 => (self.app, self.actor) = (self.app - 1, 0),
            KeyCode::Down if self.app + 1 < all => (self.app, self.actor) = (self.app + 1, 0),
            KeyCode::Left => self.actor = self.actor.saturating_sub(1),
            KeyCode::Right if self.actor + 1 < self.actors().len() => self.actor += 1,
            KeyCode::Char('m') if !self.actors().is_empty() => self.moves = true,
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

    /// Seconds between the two answers.
    fn seconds(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        let seconds = (self.now.at - before.at).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }

    pub fn draw(&self, frame: &mut Frame) {
        let stats = &self.now.stats;
        let cores = stats.worker.len().min(16) as u16;
        let apps = stats.application.len().clamp(1, 12) as u16;
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
            " levada {}   {} loaded   up for {:.0} s",
            stats.host.version,
            plural(stats.host.applications, "application"),
            stats.host.seconds
        );
        frame.render_widget(Paragraph::new(up).bold(), title);
        self.draw_workers(frame, workers);
        self.draw_applications(frame, applications);
        self.draw_details(frame, details);
        let text = match (self.moves, self.actors().get(self.actor)) {
            (true, Some(actor)) => format!(" move {} to worker (0-9)?", actor.name),
            _ => format!(" {}", self.said),
        };
        frame.render_widget(Paragraph::new(text).yellow(), said);
        frame.render_widget(Paragraph::new(KEYS).dim(), keys);
    }

    fn draw_workers(&self, frame: &mut Frame, area: Rect) {
        let before = self.before.as_ref().map(|b| &b.stats.worker);
        let lines = self.now.stats.worker.iter().map(|w| {
            let was = before.and_then(|all| all.iter().find(|b| b.worker == w.worker));
            let busy = was.zip(self.seconds()).map(|(b, s)| (w.busy - b.busy) / s);
            let core = match w.cpu {
                0.. => format!(" core {:<3}", w.cpu),
                _ => format!(" worker {:<3}", w.worker),
            };
            Line::from(vec![
                Span::raw(core),
                bar(busy.unwrap_or(0.0), 30).green(),
                Span::raw(format!(" {:>6}   ", share(busy))),
                Span::raw(plural(w.actor.len(), "actor")),
            ])
        });
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
    }

    fn draw_applications(&self, frame: &mut Frame, area: Rect) {
        let all = &self.now.stats.application;
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let first = (self.app + 1).saturating_sub(room);
        let rows = all.iter().enumerate().skip(first).take(room).map(|(i, a)| {
            let was = self.before.as_ref().and_then(|b| {
                let all = b.stats.application.iter();
                all.clone().find(|b| b.number == a.number)
            });
            let per = |now: f64, was: f64| self.seconds().map(|s| (now - was).max(0.0) / s);
            let firings = was.and_then(|b| per(a.firings as f64, b.firings as f64));
            let busy = was.and_then(|b| per(a.busy, b.busy));
            let done = a.progress.as_ref().and_then(|p| {
                let was = was?.progress.as_ref().map_or(0, |b| b.done);
                Some((per(p.done as f64, was as f64)?, &p.unit))
            });
            let done = done.map_or("-".to_string(), |(r, unit)| format!("{r:.1} {unit}/s"));
            let late = matches!((a.promised, a.pace), (Some(p), Some(is)) if is < 0.98 * p);
            let promised = match a.promised {
                Some(p) if late => format!("{p:.1} LATE"),
                Some(p) => format!("{p:.1}"),
                None => "-".to_string(),
            };
            let row = Row::new([
                a.name.clone(),
                format!("{:?}", a.state).to_lowercase(),
                done,
                promised,
                firings.map_or("-".to_string(), |f| grouped(f as u64)),
                share(busy),
                a.priority.to_string(),
                format!("{} KiB", grouped(a.memory >> 10)),
            ]);
            match (i == self.app, late) {
                (true, _) => row.reversed(),
                (false, true) => row.red(),
                (false, false) => row,
            }
        });
        let head = [
            "application",
            "state",
            "rate",
            "promised",
            "firings/s",
            "cores",
            "priority",
            "memory",
        ];
        let widths = [
            Constraint::Fill(2),
            Constraint::Length(9),
            Constraint::Length(18),
            Constraint::Length(13),
            Constraint::Length(14),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(12),
        ];
        let table = Table::new(rows, widths).header(Row::new(head).style(Style::new().bold()));
        frame.render_widget(table, area);
    }

    fn draw_details(&self, frame: &mut Frame, area: Rect) {
        let Some(details) = &self.now.details else {
            frame.render_widget(Paragraph::new(" no application is chosen").dim(), area);
            return;
        };
        let before = self.before.as_ref().and_then(|b| b.details.as_ref());
        let before = before.filter(|b| b.application.number == details.application.number);
        let why = self.now.why.lines().count().min(4) as u16 + 1;
        let [upper, lower] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(why)]).areas(area);
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)])
                .areas(upper);
        let seconds = self.seconds();
        let room = usize::from(left.height.saturating_sub(1)).max(1);
        let first = (self.actor + 1).saturating_sub(room);
        let actors = details.actor.iter().enumerate().skip(first).take(room);
        let rows = actors.map(|(i, a)| {
            let was = before.and_then(|b| b.actor.get(i));
            let busy = was.zip(seconds).map(|(b, s)| (a.busy - b.busy) / s);
            let row = Row::new([
                a.name.clone(),
                a.worker.to_string(),
                share(busy),
                format!("{:.2} ms", a.longest * 1e3),
            ]);
            if i == self.actor { row.reversed() } else { row }
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(6),
            Constraint::Length(8),
            Constraint::Length(11),
        ];
        let head = Row::new(["actor", "worker", "of core", "longest"]).bold();
        frame.render_widget(Table::new(rows, widths).header(head), left);
        let rows = details.channel.iter().enumerate().map(|(i, c)| {
            let was = before.and_then(|b| b.channel.get(i));
            let rate = was.zip(seconds).map(|(b, s)| (c.got - b.got) as f64 / s);
            Row::new([
                Cell::from(format!("{} -> {}", c.from, c.to)),
                Cell::from(bar(f64::from(c.fill) / f64::from(c.capacity.max(1)), BAR)),
                Cell::from(rate.map_or("-".to_string(), |r| grouped(r as u64))),
                Cell::from(blocks(c, was)),
            ])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(BAR as u16),
            Constraint::Length(13),
            Constraint::Length(16),
        ];
        let head = Row::new(["channel", "fill", "elements/s", "who waits"]).bold();
        frame.render_widget(Table::new(rows, widths).header(head), right);
        let text: Vec<Line> = self
            .now
            .why
            .lines()
            .take(4)
            .map(|l| format!(" {l}").into())
            .collect();
        frame.render_widget(Paragraph::new(text).dim(), lower);
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
    use super::*;
    use levada_host::State;
    use levada_host::api::types::{Details, Stats};
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;
    use std::time::{Duration, Instant};

    fn answer(at: Instant, busy: f64, got: u64) -> Look {
        let app = |number: u64, name: &str, state: &str| {
            json!({"name": name, "number": number, "network": "p.Top", "state": state,
                "priority": 0, "loaded": 0.0, "seconds": 1.0, "memory": 65536, "actors": 2,
                "firings": got, "busy": busy, "moves": 0, "promised": 30.0, "pace": 12.0,
                "progress": {"done": got / 100, "unit": "frames"}})
        };
        let actor = |name: &str| {
            json!({"name": name, "class": "p.X", "worker": 1, "firings": got, "activations": 1,
                "busy": busy, "longest": 0.0025})
        };
        let stats = json!({
            "host": {"version": "0.1.0", "pid": 1, "seconds": 5.0, "workers": 1,
                "applications": 2},
            "worker": [{"worker": 0, "cpu": 3, "open": true, "busy": busy, "asleep": 0.0, "activations": 1,
                "sleeps": 0, "actor": []}],
            "application": [app(1, "radio", "running"), app(2, "clip", "paused")]});
        let mut details = app(1, "radio", "running");
        details["actor"] = json!([actor("tuner"), actor("filter")]);
        details["channel"] = json!([{"from": "tuner.Out", "to": "filter.In", "capacity": 100,
            "fill": 50, "put": got, "got": got, "full": got, "empty": 0, "wakes": 0}]);
        Look {
            at,
            stats: serde_json::from_value::<Stats>(stats).unwrap(),
            details: Some(serde_json::from_value::<Details>(details).unwrap()),
            why: "filter waits for tuner\n".to_string(),
        }
    }

    fn drawn(view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 24)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = (0..24).map(|y| {
            let cells = (0..110).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn view() -> View {
        let start = Instant::now();
        let mut view = View::new(answer(start, 0.0, 0));
        view.take(answer(start + Duration::from_secs(2), 1.0, 2400));
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
    }

    #[test]
    fn keys_choose_pause_move_and_unload() {
        let mut view = view();
        let turn = |name: &str, state| Some(Wish::Turn(name.to_string(), state));
        assert_eq!(view.key(KeyCode::Char('p')), turn("radio", State::Running));
        assert_eq!(view.key(KeyCode::Right), None);
        assert_eq!(view.key(KeyCode::Char('m')), None);
        assert!(drawn(&view).contains("move filter to worker"));
        let to = Wish::Move("radio".into(), "filter".into(), 1);
        assert_eq!(view.key(KeyCode::Char('1')), Some(to));
        assert_eq!(view.key(KeyCode::Char('1')), None);
        view.key(KeyCode::Char('m'));
        assert!(!view.keys_are_free() && view.keys_are_free());
        assert_eq!(view.key(KeyCode::Down), None);
        assert_eq!(view.key(KeyCode::Down), None);
        assert_eq!(view.key(KeyCode::Char('p')), turn("clip", State::Paused));
        let gone = Wish::Unload("clip".into(), true);
        assert_eq!(view.key(KeyCode::Char('U')), Some(gone));
        // Where nothing is loaded no key asks for anything.
        let mut empty = answer(Instant::now(), 0.0, 0);
        (empty.details, empty.stats.application) = (None, Vec::new());
        view.take(empty);
        for key in ['p', 'm', 'u', 'U', '1'] {
            assert_eq!(view.key(KeyCode::Char(key)), None);
        }
        assert!(drawn(&view).contains("no application is chosen"));
    }
}
