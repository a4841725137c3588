// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the display and the keys, on a terminal buffer in memory.

use super::keys::KEYS;
use super::*;
use crate::top::is_end;
use crate::top::poller::living_first;
use levada_host::State;
use levada_host::protocol::{Channel, Details, Worker};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

/// What a host says of all, and of one.
struct Look {
    stats: Stats,
    more: More,
}

impl View {
    fn look(&mut self, look: Look) {
        self.take(look.stats);
        self.learn(look.more);
    }

    fn why(&mut self) -> &mut String {
        &mut self.more.as_mut().unwrap().now.why
    }
}

/// The reply of a host that is up for `seconds`.
fn answer(seconds: f64, busy: f64, got: u64) -> Look {
    let app = |number: u64, name: &str, state: &str| {
        json!({"name": name, "number": number, "network": "p.Top", "state": state,
            "priority": 0, "loaded": 0.0, "seconds": 1.0, "memory": 65536, "actors": 2,
            "firings": got, "busy": busy, "moves": 0, "reserved_rate": 30.0, "measured_rate": 12.0,
            "rate_missed": state == "running", "progress": {"done": got / 100, "unit": "frames"}})
    };
    let actor = |name: &str| {
        json!({"name": name, "class": "p.X", "worker": 1, "firings": got, "activations": 1,
            "busy": busy, "longest": 0.0025})
    };
    let stats = json!({
        "host": {"version": "0.2.0", "pid": 1, "seconds": seconds, "workers": 1,
            "applications": 2},
        "worker": [{"worker": 0, "cpu": 3, "available": true, "busy": busy, "asleep": 0.0, "activations": 1,
            "sleeps": 0, "actor": []}],
        "application": [app(1, "radio", "running"), app(2, "clip", "paused")]});
    let mut details = app(1, "radio", "running");
    details["actor"] = json!([actor("tuner"), actor("filter")]);
    details["channel"] = json!([{"from": "tuner.Out", "to": "filter.In", "capacity": 100,
        "fill": 50, "put": got, "got": got, "full": got, "empty": 0, "wakes": 0}]);
    Look {
        stats: serde_json::from_value::<Stats>(stats).unwrap(),
        more: More {
            name: "radio".to_string(),
            at: seconds,
            details: Some(serde_json::from_value::<Details>(details).unwrap()),
            why: "filter waits for tuner\n".to_string(),
        },
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

/// Of a host that has said this.
fn first(look: Look) -> View {
    let mut view = View::new(look.stats, 1.0);
    view.learn(look.more);
    view
}

fn view() -> View {
    let mut view = first(answer(5.0, 0.0, 0));
    view.look(answer(7.0, 1.0, 2400));
    view
}

/// `count` workers like the first one.
fn alike(view: &View, count: u32) -> Vec<Worker> {
    let one = &view.stats.now.worker[0];
    let all = (0..count).map(|worker| Worker {
        worker,
        ..one.clone()
    });
    all.collect()
}

#[test]
fn rates_fill_levels_and_waits_are_shown() {
    let text = drawn(&view());
    for part in [
        "2 applications loaded",
        "core 3",
        "50.0%",
        "12.0 frames/s",
        "30.0 MISSED",
        "1 200",
        "tuner.Out -> filter.In",
        "█████ ",
        "its producer",
        "2.50 ms",
        "filter waits for tuner",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    // An application that is below its reserved rate for another reason is not late.
    assert_eq!(text.matches("MISSED").count(), 1, "{text}");
}

#[test]
fn names_are_shown_on_a_narrow_terminal_and_running_before_ended() {
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
    let mut view = first(many(5.0, 500));
    // The counters of a replaced application start from zero.
    view.look(many(6.0, 20));
    let text = drawn_on(&view, 80);
    for part in ["radio ", "clip ", "over-10", "tuner.Out -> f", "filter "] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!drawn_on(&view, 20).is_empty());
    view.stats.now.worker = alike(&view, 64);
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
    *view.why() = sentence.repeat(12) + "the end\n";
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
    // On a text page the key does not unload; Escape leaves the page first.
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
    // On the page of keys the key does not unload.
    assert_eq!(view.key(KeyCode::Char('U')), None);
    assert!(!view.keys_are_free() && view.keys_are_free());
    assert!(drawn(&view).contains("tuner.Out"));
}

/// The page of keys lists each key that leaves it.
#[test]
fn each_key_that_ends_it_is_told_of() {
    let mut view = view();
    view.key(KeyCode::Char('?'));
    let text = drawn_in(&view, 40, 12);
    let control = KeyModifiers::CONTROL;
    for (name, key, with) in [
        ("q ", KeyCode::Char('q'), KeyModifiers::NONE),
        ("Escape", KeyCode::Esc, KeyModifiers::NONE),
        ("Ctrl-C", KeyCode::Char('c'), control),
    ] {
        assert!(is_end(&KeyEvent::new(key, with)), "{name}");
        let line = text.lines().find(|line| line.contains("end;"));
        assert!(line.is_some_and(|line| line.contains(name)), "{text}");
    }
    for key in ['c', 'Q', 'p'] {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
        assert!(!is_end(&key), "{key:?}");
    }
}

/// What is read at two moments is no more than there is, and a pin is seen.
#[test]
fn shares_are_of_what_there_is() {
    let mut view = first(answer(5.0, 0.0, 0));
    let mut look = answer(6.0, 1.2, 100);
    look.more.details.as_mut().unwrap().actor[1].pin = Some(1);
    view.look(look);
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
    let turn = |name: &str, state| Some(Action::Turn(name.to_string(), state));
    assert_eq!(view.key(KeyCode::Char('p')), turn("radio", State::Running));
    assert_eq!(view.key(KeyCode::Right), None);
    assert_eq!(view.key(KeyCode::Char('m')), None);
    assert!(drawn(&view).contains("filter: to worker 0-0, or f for free?"));
    assert!(drawn_in(&view, 40, 12).contains(": to worker 0-0, or f for free?"));
    let to = |worker| Some(Action::Move("radio".into(), "filter".into(), worker));
    assert_eq!(view.key(KeyCode::Char('1')), to(Some(1)));
    assert_eq!(view.key(KeyCode::Char('1')), None);
    view.key(KeyCode::Char('m'));
    assert!(!view.keys_are_free() && view.keys_are_free());
    assert_eq!(view.key(KeyCode::Down), None);
    assert_eq!(view.key(KeyCode::Down), None);
    assert_eq!(view.key(KeyCode::Char('p')), turn("clip", State::Paused));
    let gone = Action::Unload("clip".into(), true);
    assert_eq!(view.key(KeyCode::Char('U')), Some(gone));
    // Of many workers some have two digits.
    view.key(KeyCode::Up);
    view.learn(answer(8.0, 1.0, 2400).more);
    view.key(KeyCode::Right);
    view.stats.now.worker = alike(&view, 64);
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
    let mut view = first(empty(answer(8.0, 0.0, 0)));
    for key in ['p', 'm', 'u', 'U', '1'] {
        assert_eq!(view.key(KeyCode::Char(key)), None);
    }
    assert!(drawn(&view).contains("no application is loaded"));
    // What comes then is chosen, and asked for more.
    view.look(answer(9.0, 0.0, 0));
    assert_eq!(view.chosen(), "radio");
    assert!(drawn(&view).contains("tuner"));
    let mut silent = answer(10.0, 0.0, 0);
    silent.more.details = None;
    view.look(silent);
    assert!(drawn(&view).contains("radio does not say more now"));
}

fn empty(mut look: Look) -> Look {
    look.stats.application.clear();
    look
}

/// The second press of a key applies to the selected application, not to one that has taken its row.
#[test]
fn nothing_is_chosen_when_what_was_has_gone() {
    let without = |seconds, name: &str| {
        let mut look = answer(seconds, 1.0, 2400);
        look.stats.application.retain(|a| a.name != name);
        look
    };
    for (gone, neighbour, key) in [
        ("radio", "clip", KeyCode::Down),
        ("radio", "clip", KeyCode::Up),
        ("clip", "radio", KeyCode::Down),
        ("clip", "radio", KeyCode::Up),
    ] {
        let mut view = view();
        if gone == "clip" {
            view.key(KeyCode::Down);
        }
        assert_eq!(view.chosen(), gone);
        view.key(KeyCode::Char('m'));
        view.look(without(8.0, gone));
        for key in ['u', 'U', 'p', 'm', '0', 'f'] {
            assert_eq!(view.key(KeyCode::Char(key)), None, "{key}");
        }
        assert!(drawn(&view).contains("no application is chosen"));
        assert_eq!(view.key(key), None);
        let unload = Action::Unload(neighbour.to_string(), false);
        assert_eq!(view.key(KeyCode::Char('u')), Some(unload));
    }
    // Of three the one in the middle has two neighbours.
    for (key, neighbour) in [(KeyCode::Up, "radio"), (KeyCode::Down, "last")] {
        let mut view = view();
        let mut look = answer(8.0, 1.0, 2400);
        let mut last = look.stats.application[1].clone();
        last.name = "last".to_string();
        look.stats.application.push(last.clone());
        view.look(look);
        view.key(KeyCode::Down);
        let mut look = without(9.0, "clip");
        look.stats.application.push(last);
        view.look(look);
        assert_eq!(view.chosen(), "");
        view.key(key);
        assert_eq!(view.chosen(), neighbour);
    }
    // Nor is it the next one that comes, where it was the only one.
    let mut view = view();
    view.look(empty(answer(8.0, 1.0, 2400)));
    assert_eq!(view.key(KeyCode::Up), None);
    view.look(answer(9.0, 1.0, 2400));
    assert_eq!(view.key(KeyCode::Char('u')), None);
}

/// What has not been measured is not told to be none.
#[test]
fn no_rate_is_shown_before_there_is_one() {
    let mut view = first(answer(5.0, 1.0, 100));
    let unmeasured = |view: &View| {
        let text = drawn(view);
        for none in ["0.0 frames/s", "0.0%"] {
            assert!(!text.contains(none), "{text}");
        }
        assert!(text.contains("   -   "), "{text}");
    };
    unmeasured(&view);
    // Nor by a key soon after.
    view.look(answer(5.1, 1.0, 100));
    unmeasured(&view);
    view.look(answer(6.0, 1.1, 2500));
    assert!(drawn(&view).contains("26.7 frames/s"), "{}", drawn(&view));
    // From then on such a key changes little.
    view.look(answer(6.1, 1.1, 2700));
    assert!(drawn(&view).contains("26.0 frames/s"), "{}", drawn(&view));
}

#[test]
fn missing_replies_are_reported_and_old_values_shown() {
    let mut view = view();
    view.host_is_silent_for(Some(Duration::from_millis(7200)));
    for width in [40, 110] {
        let text = drawn_on(&view, width);
        assert!(text.contains("the host has not answered for 7 s"), "{text}");
        assert!(text.contains("radio"), "{text}");
    }
    assert!(drawn(&view).contains("12.0 frames/s"));
    view.host_is_silent_for(None);
    assert!(!drawn(&view).contains("has not answered"));
    // One application, of which the host says again what it has said.
    let mut look = answer(8.0, 1.0, 2400);
    let radio = &mut look.stats.application[0];
    (radio.seconds, radio.last_report_s) = (9.0, Some(5.0));
    look.more.details.as_mut().unwrap().application = radio.clone();
    view.look(look);
    let text = drawn(&view);
    assert!(text.contains("radio has not answered for 4 s"), "{text}");
    assert!(text.contains("tuner.Out -> filter.In"), "{text}");
    assert!(!text.contains("12.0 frames/s"), "{text}");
    view.key(KeyCode::Down);
    assert!(!drawn(&view).contains("has not answered"));
}

#[test]
fn another_application_is_shown_when_the_selected_one_goes() {
    let mut view = View::new(answer(1.0, 0.1, 100).stats, 1.0);
    assert_eq!(view.key(KeyCode::Down), None);
    let mut then = answer(2.0, 0.2, 200).stats;
    then.application.truncate(1);
    view.take(then);
    assert_eq!(view.chosen(), "");
    assert!(drawn(&view).contains("radio"), "{}", drawn(&view));
}

#[test]
fn all_channels_can_be_seen_and_told_apart() {
    let mut look = answer(1.0, 0.1, 100);
    let details = look.more.details.as_mut().unwrap();
    let channel = details.channel[0].clone();
    details.channel = (0..25)
        .map(|i| Channel {
            from: format!("decoder.parser.a_long_name.Out{i}"),
            to: format!("decoder.texture.another_one.In{i}"),
            ..channel.clone()
        })
        .collect();
    let mut view = View::new(answer(1.0, 0.1, 100).stats, 1.0);
    view.look(look);
    let seen = |view: &View, i: usize| {
        let drawn = drawn_on(view, 100);
        drawn.contains(&format!("Out{i} ->")) && drawn.contains(&format!("In{i} "))
    };
    assert!(
        seen(&view, 0) && !seen(&view, 24),
        "{}",
        drawn_on(&view, 100)
    );
    assert!(drawn_on(&view, 100).contains("/25"));
    let mut shown = vec![false; 25];
    for _ in 0..10 {
        (0..25).for_each(|i| shown[i] |= seen(&view, i));
        assert_eq!(view.key(KeyCode::PageDown), None);
    }
    assert!(shown.iter().all(|s| *s), "{shown:?}");
    assert!(seen(&view, 24), "{}", drawn_on(&view, 100));
    for _ in 0..10 {
        assert_eq!(view.key(KeyCode::PageUp), None);
        drawn(&view);
    }
    assert!(seen(&view, 0));
}
