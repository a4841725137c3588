// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada top`: a full-screen view of a host. It polls the host periodically and shows the differences between two
//! replies; keys pause, move and unload applications. Neither the display nor the keys wait for a reply.

mod action;
mod poller;
mod view;
mod wrap;

use crate::cli::TopArgs;
use crate::client::client;
use crate::common::output::{Failure, failure_with};
use poller::{Poller, Reply, stats};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use view::View;

/// The screen is redrawn at least this often, since it shows for how long a request has been pending.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Events that cause a redraw.
enum Input {
    Key(KeyEvent),
    Resized,
    /// The terminal is gone.
    Lost(std::io::Error),
    Reply(Reply),
}

pub fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    if args.at.json {
        return crate::client::stats(&args.at);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return failure_with(
            "levada top needs a terminal",
            "levada stats --json says the same to programs",
        );
    }
    let client = client(&args.at)?;
    // A missing host is reported before the screen is taken over.
    let mut view = View::new(stats(&client)?, args.interval);
    let patient = match args.at.timeout {
        Some(_) => client.clone(),
        None => client.clone().timeout(Duration::MAX),
    };
    let (happens, happenings) = channel();
    let poller = Poller::new(client, patient, happens.clone());
    let mut terminal = ratatui::try_init()?;
    std::thread::spawn(move || hear_terminal(&happens));
    let every = Duration::from_secs_f64(args.interval);
    let done = show(&mut terminal, poller, &happenings, &mut view, every);
    ratatui::restore();
    done.map(|()| ExitCode::SUCCESS)
}

/// Keys arrive on the same channel as replies, so that both can be waited for.
fn hear_terminal(happens: &Sender<Input>) {
    loop {
        let happening = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Input::Key(key),
            Ok(Event::Resize(..)) => Input::Resized,
            Ok(_) => continue,
            Err(e) => Input::Lost(e),
        };
        let lost = matches!(happening, Input::Lost(_));
        if happens.send(happening).is_err() || lost {
            return;
        }
    }
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut poller: Poller,
    happenings: &Receiver<Input>,
    view: &mut View,
    every: Duration,
) -> Result<(), Failure> {
    // Rates are known from the second reply.
    let mut next = Instant::now() + every;
    let mut wants_more = true;
    loop {
        if Instant::now() >= next && !poller.waits() {
            poller.stats();
            next = Instant::now() + every;
            wants_more = true;
        }
        if wants_more {
            wants_more = !poller.more(view.chosen());
        }
        view.host_is_silent_for(poller.silent_for());
        terminal.draw(|frame| view.draw(frame))?;
        let due = if poller.waits() {
            REDRAW_INTERVAL
        } else {
            next.saturating_duration_since(Instant::now())
                .min(REDRAW_INTERVAL)
        };
        let Ok(happening) = happenings.recv_timeout(due) else {
            continue;
        };
        let chosen = view.chosen().to_string();
        match happening {
            Input::Key(key) if is_end(&key) && view.keys_are_free() => return Ok(()),
            Input::Key(key) => {
                if let Some(action) = view.key(key.code) {
                    view.said = poller.action(action);
                }
            }
            Input::Resized => {}
            Input::Lost(e) => return Err(e.into()),
            Input::Reply(reply) => {
                poller.answered(&reply);
                match reply {
                    Reply::Stats(stats) => view.take(stats?),
                    Reply::More(more) => more.into_iter().for_each(|more| view.learn(*more)),
                    Reply::Done(words) => {
                        view.said = words;
                        next = Instant::now();
                    }
                }
            }
        }
        // The newly selected application is shown at once.
        wants_more |= view.chosen() != chosen;
    }
}

fn is_end(key: &KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    }
}
