// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada top`: the host on the whole screen. It asks the host now and then, and shows what changed
//! between two answers; keys pause, move and unload.

mod view;
mod words;

use crate::cli::TopArgs;
use crate::output::{Failure, failure_with};
use crate::remote::client;
use levada_host::State;
use levada_host::api::types::{Application, Details, Failed, MoveRequest, Stats, Unloaded, Why};
use levada_host::client::{Client, encoded};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::View;

/// One answer of the host.
pub struct Look {
    stats: Stats,
    /// Of the application that is chosen.
    details: Option<Details>,
    why: String,
}

/// The rest of a text with an application's name in it.
fn one(name: &str, rest: &str) -> String {
    format!("/applications/{}{rest}", encoded(name))
}

/// Who has ended is not what one looks for.
fn living_first(all: &mut [Application]) {
    all.sort_by_key(|a| matches!(a.state, State::Ended | State::Failed));
}

/// Asks for all, and for more of the one that `choose` chooses.
fn look(client: &Client, choose: impl FnOnce(&[Application]) -> usize) -> Result<Look, Failed> {
    let mut stats: Stats = client.get("/stats")?;
    living_first(&mut stats.application);
    let (details, why) = match stats.application.get(choose(&stats.application)) {
        // It may go between two questions.
        Some(Application { name, .. }) => (
            client.get(&one(name, "")).ok(),
            client.get::<Why>(&one(name, "/why")).ok(),
        ),
        None => (None, None),
    };
    Ok(Look {
        stats,
        details,
        why: why.map_or(String::new(), |w| w.text),
    })
}

pub fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    if args.at.json {
        return crate::remote::stats(&args.at);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return failure_with(
            "levada top needs a terminal",
            "levada stats --json says the same to programs",
        );
    }
    let client = client(&args.at)?;
    let mut view = View::new(look(&client, |_| 0)?);
    let mut terminal = ratatui::try_init()?;
    let done = show(&mut terminal, &client, &mut view, args.every);
    ratatui::restore();
    done.map(|()| ExitCode::SUCCESS)
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    client: &Client,
    view: &mut View,
    every: f64,
) -> Result<(), Failure> {
    let every = Duration::from_secs_f64(every);
    let mut next = Instant::now();
    loop {
        let mut asked = false;
        if Instant::now() >= next {
            view.take(look(client, |all| view.choice(all))?);
            next = Instant::now() + every;
        }
        terminal.draw(|frame| view.draw(frame))?;
        if event::poll(next.saturating_duration_since(Instant::now()))?
            && let Event::Key(key) = event::read()?
        {
            if key.kind != KeyEventKind::Release && is_end(&key) && view.keys_are_free() {
                return Ok(());
            }
            if let Some(wish) = view.key(key.code) {
                view.said = told(do_it(client, &wish));
                asked = true;
            }
            // What is chosen now is shown at once.
            asked |= matches!(key.code, KeyCode::Up | KeyCode::Down);
        }
        if asked {
            next = Instant::now();
        }
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

/// What a key asks for.
#[derive(Debug, PartialEq)]
pub enum Wish {
    /// Pause it, or let it go on.
    Turn(String, State),
    /// To a worker, where it stays; or to none: the mapper may move it again.
    Move(String, String, Option<u32>),
    /// At once?
    Unload(String, bool),
}

fn do_it(client: &Client, wish: &Wish) -> Result<String, Failed> {
    let post = |address: String, body: &Value| -> Result<Application, Failed> {
        client.call("POST".parse().unwrap_or_default(), &address, body)
    };
    Ok(match wish {
        Wish::Turn(name, State::Paused | State::Loaded | State::Held) => {
            post(one(name, "/resume?within=1"), &Value::Null)?;
            format!("{name} goes on")
        }
        Wish::Turn(name, _) => {
            post(one(name, "/pause?within=1"), &Value::Null)?;
            format!("{name} is paused")
        }
        Wish::Move(name, actor, worker) => {
            let to = MoveRequest {
                actor: actor.clone(),
                worker: *worker,
                free: worker.is_none(),
            };
            post(one(name, "/move"), &json!(to))?;
            match worker {
                Some(worker) => format!("{name}.{actor} is on worker {worker}, and stays there"),
                None => format!("{name}.{actor} is where the mapper puts it"),
            }
        }
        Wish::Unload(name, now) => {
            // What takes longer goes on by itself.
            let how = if *now {
                "?now=true&within=1"
            } else {
                "?within=0.2"
            };
            let gone: Unloaded = client.call(
                "DELETE".parse().unwrap_or_default(),
                &one(name, how),
                &Value::Null,
            )?;
            format!("{} is unloaded: {}", gone.name, gone.outcome)
        }
    })
}

fn told(done: Result<String, Failed>) -> String {
    match done {
        Ok(said) => said,
        Err(failed) => match failed.help {
            Some(help) => format!("{}\nhelp: {help}", failed.error),
            None => failed.error,
        },
    }
}
