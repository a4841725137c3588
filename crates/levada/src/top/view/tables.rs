// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of what was measured between two replies: workers, applications, and the actors and channels of the
//! selected application.

use super::View;
use super::columns::Columns;
use super::layout::{cells_of, indented, lines};
use super::samples::busy;
use crate::common::output::{grouped, plural};
use crate::top::wrap::{ending, shortened};
use levada_host::protocol::{Channel, Worker};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell as Field, Paragraph, Row};

/// Lines of text below the channels.
const TEXT_LINES: usize = 4;
const BAR_CELLS: usize = 10;

impl View {
    pub(super) fn draw_workers(&self, frame: &mut Frame, area: Rect, columns: usize, lines: usize) {
        let before = self.stats.before();
        let all = &self.stats.now.worker;
        let shown = all.len().min(columns * lines);
        // Leaves room for the name, the share and the actors.
        let wide = usize::from(area.width).saturating_sub(30).clamp(8, 30);
        let one = |w: &Worker| {
            let busy = before.and_then(|(before, seconds)| {
                let was = before.worker.iter().find(|b| b.worker == w.worker)?;
                Some(busy(w.busy, was.busy, seconds, 1))
            });
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

    pub(super) fn draw_applications(&self, frame: &mut Frame, area: Rect) {
        let all = &self.stats.now.application;
        let columns = Columns::fitting(
            area.width,
            [
                ("application", 0, 0),
                ("state", 11, 1),
                ("rate", 18, 2),
                ("reserved", 13, 4),
                ("firings/s", 14, 5),
                ("cores", 8, 3),
                ("priority", 8, 7),
                ("memory", 12, 6),
            ],
        );
        let room = usize::from(area.height.saturating_sub(2)).max(1);
        let first = first_shown(self.app, all.len(), room);
        let rows = all.iter().enumerate().skip(first).take(room).map(|(i, a)| {
            // For an application that does not respond, the host repeats the last values.
            let before = self.stats.before().filter(|_| a.silent_for().is_none());
            let was = before.and_then(|(before, seconds)| {
                let mut all = before.application.iter();
                Some((all.find(|b| b.number == a.number)?, seconds))
            });
            let per = |now: u64, was: u64, seconds: f64| now.saturating_sub(was) as f64 / seconds;
            let firings = was.map(|(b, s)| per(a.firings, b.firings, s));
            let cores = self.stats.now.worker.len();
            let busy = was.map(|(b, s)| busy(a.busy, b.busy, s, cores));
            let done = a.progress.as_ref().zip(was).map(|(p, (b, s))| {
                let was = b.progress.as_ref().map_or(0, |b| b.done);
                (per(p.done, was, s), &p.unit)
            });
            let done = done.map_or("-".to_string(), |(r, unit)| format!("{r:.1} {unit}/s"));
            let missed = a.rate_missed == Some(true);
            let reserved = match a.reserved_rate {
                Some(p) if missed => format!("{p:.1} MISSED"),
                Some(p) => format!("{p:.1}"),
                None => "-".to_string(),
            };
            let cells = [
                a.name.clone(),
                a.state.to_string(),
                done,
                reserved,
                firings.map_or("-".to_string(), |f| grouped(f as u64)),
                share(busy),
                a.priority.to_string(),
                format!("{} KiB", grouped(a.memory >> 10)),
            ];
            let row = Row::new(columns.of(cells));
            match (i == self.app && !self.gone, missed) {
                (true, _) => row.reversed(),
                (false, true) => row.red(),
                (false, false) => row,
            }
        });
        frame.render_widget(columns.table(rows.collect()), area);
    }

    pub(super) fn draw_details(&self, frame: &mut Frame, area: Rect) {
        let looks = self.more.as_ref();
        let known = looks.and_then(|looks| Some((looks, looks.now.details.as_ref()?)));
        let Some((looks, details)) = known else {
            let words = match self.chosen() {
                "" if self.stats.now.application.is_empty() => {
                    " no application is loaded".to_string()
                }
                "" => " no application is chosen: up and down choose one".to_string(),
                name if looks.is_none() => format!(" {name} is asked for more"),
                name => format!(" {name} does not say more now"),
            };
            frame.render_widget(Paragraph::new(words).dim(), area);
            return;
        };
        let before = looks.before().and_then(|(before, seconds)| {
            let answers = details.application.silent_for().is_none();
            Some((before.details.as_ref().filter(|_| answers)?, seconds))
        });
        let why = shortened(&looks.now.why, cells_of(area), TEXT_LINES);
        let why: Vec<String> = why.into_iter().map(indented).collect();
        let height = why.len() as u16 + 1;
        let [upper, lower] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)])
                .areas(upper);
        let room = usize::from(left.height.saturating_sub(1)).max(1);
        let first = first_shown(self.actor, details.actor.len(), room);
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
            let busy = before.and_then(|(b, s)| Some(busy(a.busy, b.actor.get(i)?.busy, s, 1)));
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
        // If there are more channels than lines, shows which ones are visible.
        let all = details.channel.len();
        self.last.set(all.saturating_sub(room));
        self.page.set(room.saturating_sub(1).max(1));
        let first = self.channel.min(self.last.get());
        let head = if all > room {
            format!("channels {}-{}/{all}", first + 1, first + room)
        } else {
            "channel".to_string()
        };
        let columns = Columns::fitting(
            right.width,
            [
                (head.as_str(), 0, 0),
                ("fill", BAR_CELLS as u16, 1),
                ("elements/s", 13, 3),
                ("waiting", 12, 2),
            ],
        );
        let cells = usize::from(columns.first(right.width));
        let shown = details.channel.iter().enumerate().skip(first).take(room);
        let rows = shown.map(|(i, c)| {
            let was = before.and_then(|(b, s)| Some((b.channel.get(i)?, s)));
            // The counters of a new process start from zero.
            let rate = was.map(|(b, s)| c.got.saturating_sub(b.got) as f64 / s);
            Row::new(columns.of([
                Field::from(from_to(&c.from, &c.to, cells)),
                Field::from(bar(
                    f64::from(c.fill) / f64::from(c.capacity.max(1)),
                    BAR_CELLS,
                )),
                Field::from(rate.map_or("-".to_string(), |r| grouped(r as u64))),
                Field::from(blocks(c, was.map(|(b, _)| b))),
            ]))
        });
        frame.render_widget(columns.table(rows.collect()), right);
        frame.render_widget(Paragraph::new(lines(why)).dim(), lower);
    }
}

/// The first row to show if there are more rows than `room`: the selected row is visible, and no room is left unused.
fn first_shown(chosen: usize, all: usize, room: usize) -> usize {
    (chosen + 1).min(all).saturating_sub(room)
}

/// Both ends of a channel in `cells`. Names are shortened at the beginning, where they more often have a common
/// prefix.
fn from_to(from: &str, to: &str, cells: usize) -> String {
    const ARROW: &str = " -> ";
    let cells = cells.saturating_sub(ARROW.len());
    let [long, other] = [from, to].map(|name| Line::from(name).width());
    // Each name has half of the cells, and what the other one leaves.
    let half = cells / 2;
    let first = (cells - half).max(cells.saturating_sub(other));
    let second = half.max(cells.saturating_sub(long));
    format!("{}{ARROW}{}", ending(from, first), ending(to, second))
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |s| format!("{:.1}%", s * 100.0))
}

/// A bar, in eighths of a cell.
fn bar(part: f64, cells: usize) -> Span<'static> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let text = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    Span::raw(format!("{text:<cells$}"))
}

/// Which end had to wait more often since the last reply.
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
