// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layout of the screen: the tables, or a text page in their place; the result of the last key; and the list of
//! keys.

use super::keys::{KEYS, KEYS_READING, keys_in, what_keys_do};
use super::{Page, View};
use crate::client::realtime;
use crate::common::output::plural;
use crate::top::wrap::{shortened, wrapped};
use levada_host::model::unconsumed;
use levada_host::protocol::Application;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Cells per worker, if there are several in a line.
const WORKER_CELLS: usize = 28;

impl View {
    pub fn draw(&self, frame: &mut Frame) {
        let stats = &self.stats.now;
        let columns = worker_columns(stats.worker.len(), frame.area().width);
        // At most a quarter and a third of the height, so that the selected application has room.
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
        let up = match self.silence() {
            Some(silence) => {
                let silence = shortened(&silence, cells_of(title), 1);
                let silence = lines(silence.into_iter().map(indented));
                Paragraph::new(silence).bold().yellow()
            }
            None => Paragraph::new(up).bold(),
        };
        frame.render_widget(up, title);
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

    /// Draws the result of the last key, or its prompt.
    fn draw_said(&self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        let text = match (&self.moves, self.actors().get(self.actor)) {
            (Some(typed), Some(actor)) => {
                let last = self.stats.now.worker.len().max(1) - 1;
                let poller = format!(": to worker 0-{last}, or f for free? {typed}");
                let room = width.saturating_sub(poller.len() + 1);
                let name = shortened(&actor.name, room, 1).pop().unwrap_or_default();
                format!(" {name}{poller}")
            }
            _ => format!(" {}", self.said.lines().next().unwrap_or_default()),
        };
        let text = lines(shortened(&text, width, 1));
        frame.render_widget(Paragraph::new(text).yellow(), area);
    }

    /// All text about the selected application and the last key.
    fn words(&self, area: Rect) -> Vec<String> {
        let outcome = self.application().and_then(|a| a.outcome.clone());
        let left_over = |a: &Application| unconsumed::text(&a.unconsumed, a.unconsumed_omitted);
        let left_over = self.application().and_then(left_over);
        let why = self.more.as_ref().map(|m| m.now.why.clone());
        let said = [
            self.said.clone(),
            outcome.unwrap_or_default(),
            left_over.unwrap_or_default(),
            why.unwrap_or_default(),
        ];
        let said = said.iter().map(|s| s.trim_end()).filter(|s| !s.is_empty());
        wrapped(&said.collect::<Vec<_>>().join("\n"), cells_of(area))
    }

    /// Draws as many of the lines as fit, beginning with the first one.
    fn draw_page(&self, frame: &mut Frame, area: Rect, all: Vec<String>, first: usize) {
        let height = usize::from(area.height);
        let last = all.len().saturating_sub(height);
        self.last.set(last);
        self.page.set(height.saturating_sub(1).max(1));
        let text = lines(all.into_iter().skip(first.min(last)).map(indented));
        frame.render_widget(Paragraph::new(text), area);
    }
}

/// The width of a line of text, which is indented by one cell.
pub(super) fn cells_of(area: Rect) -> usize {
    usize::from(area.width).saturating_sub(1)
}

pub(super) fn indented(line: String) -> String {
    format!(" {line}")
}

pub(super) fn lines(all: impl IntoIterator<Item = String>) -> Vec<Line<'static>> {
    all.into_iter().map(Line::from).collect()
}

/// One per line for few workers, else as many as fit.
fn worker_columns(workers: usize, width: u16) -> usize {
    if workers <= 8 {
        1
    } else {
        (usize::from(width) / WORKER_CELLS).max(1)
    }
}
