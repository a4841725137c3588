// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key bindings: each key selects, opens a page, or sends a request to the host.

use super::{Action, Page, View};
use ratatui::crossterm::event::KeyCode;

/// Each key with a word for the bottom line, and its description.
pub(super) const KEYS: [(&str, &str, &str); 10] = [
    ("q", "quit", "end; so do Escape, Ctrl-C"),
    ("up/down", "application", "choose an application"),
    ("left/right", "actor", "choose an actor of it"),
    ("w", "words", "all that is said of it"),
    ("p", "pause", "pause it, or let it go on"),
    ("m", "move", "move the actor to stay"),
    ("u", "unload", "let it drain, unload it"),
    ("U", "now", "unload it at once"),
    ("?", "keys", "what keys do"),
    ("PageUp/Down", "", "more channels, or read on"),
];
/// The keys on a text page.
pub(super) const KEYS_READING: [(&str, &str, &str); 3] = [
    ("Escape", "back", ""),
    ("PageUp/Down", "more", ""),
    ("up/down", "application", ""),
];

impl View {
    /// Escape first cancels the pending input of a key.
    pub fn keys_are_free(&mut self) -> bool {
        self.moves.take().is_none() && self.reads.take().is_none()
    }

    pub fn key(&mut self, key: KeyCode) -> Option<Action> {
        let all = self.stats.now.application.len();
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
        // The result of a key can be read as a whole; while reading, keys have no effect on applications.
        let reads = matches!(key, KeyCode::Char('w' | '?')) || self.reads.is_some();
        if reads && !matches!(key, KeyCode::Up | KeyCode::Down) {
            return None;
        }
        self.said.clear();
        match key {
            KeyCode::Up | KeyCode::Down if self.gone && all > 0 => {
                // Moves to a neighbour; the lower one has taken the row.
                self.gone = false;
                let lower = usize::from(key == KeyCode::Down);
                self.choose((self.app + lower).saturating_sub(1).min(all - 1));
            }
            KeyCode::Up if self.app > 0 => self.choose(self.app - 1),
            KeyCode::Down if self.app + 1 < all => self.choose(self.app + 1),
            KeyCode::Left => self.actor = self.actor.saturating_sub(1),
            KeyCode::Right if self.actor + 1 < self.actors().len() => self.actor += 1,
            KeyCode::PageUp => {
                let first = self.channel.min(self.last.get());
                self.channel = first.saturating_sub(self.page.get());
            }
            KeyCode::PageDown => {
                self.channel = (self.channel + self.page.get()).min(self.last.get());
            }
            KeyCode::Char('m') if !self.actors().is_empty() => {
                self.moves = Some(String::new());
            }
            KeyCode::Char('p') => {
                return Some(Action::Turn(name, self.application()?.state));
            }
            KeyCode::Char(key @ ('u' | 'U')) if !name.is_empty() => {
                return Some(Action::Unload(name, key == 'U'));
            }
            _ => {}
        }
        None
    }

    fn wish_to_move(&self, worker: Option<u32>) -> Option<Action> {
        let actor = self.actors().get(self.actor)?.name.clone();
        Some(Action::Move(self.chosen().to_string(), actor, worker))
    }

    /// Handles a digit of the worker's number, or its end.
    fn type_worker(&mut self, mut typed: String, key: KeyCode) -> Option<Action> {
        typed.extend(key.as_char());
        let worker: u32 = typed.parse().ok()?;
        // Complete: with another digit the worker would not exist, or Enter was pressed.
        let workers = self.stats.now.worker.len();
        if key == KeyCode::Enter || worker as usize * 10 >= workers || worker == 0 {
            return self.wish_to_move(Some(worker));
        }
        self.moves = Some(typed);
        None
    }
}

/// The keys that fit in the line; if not all do, the last one opens the list of keys.
pub(super) fn keys_in(all: &[(&str, &str, &str)], width: u16) -> String {
    let named = all.iter().filter(|(_, word, _)| !word.is_empty());
    let mut keys: Vec<String> = named
        .map(|(key, word, _)| format!("{key} {word}"))
        .collect();
    let line = |keys: &[String]| format!(" {}", keys.join("  "));
    let rest = keys.iter().position(|key| key.starts_with('?'));
    while line(&keys).len() > usize::from(width) && keys.len() > 1 {
        // The key before it is omitted, or else the last.
        keys.remove(keys.len() - if rest.is_some() { 2 } else { 1 });
    }
    line(&keys)
}

/// One line per key.
pub(super) fn what_keys_do() -> Vec<String> {
    let wide = KEYS.iter().map(|(key, _, _)| key.len()).max().unwrap_or(0);
    let one = |(key, _, does): &(&str, &str, &str)| format!("{key:<wide$}  {does}");
    KEYS.iter().map(one).collect()
}
