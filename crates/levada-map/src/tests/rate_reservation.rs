// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Promises: kept while the machine can, and what a load would do to them.

use super::mix::{app, of, rates};
use crate::place::bounds::UpperBound;
use crate::*;

/// As in the runtime: who is promised more than it can have leaves others of its priority a sixteenth of the core, which
/// they share; and nobody of a lower one anything.
#[test]
fn a_promise_out_of_reach_leaves_others_a_part() {
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.05, "{got} {wanted}");
    let machine = Machine::new(1);
    let mut apps = vec![app("a", &[5.0]), app("b", &[5.0])];
    apps[0].promise = Some(1000.0);
    let made = rates(&of(apps.clone()), &machine, &[0; 2], 100_000);
    near(made[0], 200.0 * 16.0 / 17.0);
    near(made[1], 200.0 / 17.0);
    // Also who hands on little, beside who always has something to do.
    let mut little = app("c", &[0.1; 4]);
    for c in &mut little.channels {
        c.capacity = c.elements / 8.0;
    }
    apps.push(little);
    let made = rates(&of(apps.clone()), &machine, &[0; 6], 200_000);
    near(made[0], 200.0 * 16.0 / 17.0);
    near(made[1] / 200.0 + made[2] * 0.4e-3, 1.0 / 17.0);
    assert!(made[1] > 3.0 && made[2] > 40.0, "{made:?}");
    // Two such promises share the rest.
    apps[2] = app("d", &[5.0]);
    apps[2].promise = Some(1000.0);
    let made = rates(&of(apps.clone()), &machine, &[0; 3], 100_000);
    near(made[0] + made[2], 200.0 * 16.0 / 17.0);
    near(made[0], made[2]);
    apps[1].priority = -1;
    let made = rates(&of(apps), &machine, &[0; 3], 100_000);
    assert!(made[1] < 1.0, "{made:?}");
}

/// As in the host: what it could do beyond that is for the others.
#[test]
fn who_is_promised_a_rate_gets_no_more() {
    let machine = Machine::with_topology(1, 1, 2, 2);
    for scheduling in [Scheduling::EventDriven, Scheduling::RoundRobin] {
        let mut held = app("held", &[0.5, 0.5]);
        (held.promise, held.priority) = (Some(10.0), 5);
        let mix = of(vec![held, app("free", &[5.0])]);
        let made = simulate(&mix, &machine, &[0, 0, 0], scheduling, 100_000);
        assert!(
            (made.rates[0] / 10.0 - 1.0).abs() < 0.01,
            "{:?}",
            made.rates
        );
        let rest = (1.0 - 10.0 * 0.001) / 0.005;
        assert!(
            (made.rates[1] / rest - 1.0).abs() < 0.01,
            "{:?}",
            made.rates
        );
    }
    // Alone, too; and what is promised more than there is gets what there is.
    let mut held = app("held", &[0.5, 0.5]);
    held.promise = Some(10.0);
    let mix = of(vec![held.clone()]);
    let made = simulate(&mix, &machine, &[0, 0], Scheduling::EventDriven, 100_000);
    assert_eq!(made.rates, [10.0]);
    held.promise = Some(5000.0);
    let mix = of(vec![held]);
    let made = simulate(&mix, &machine, &[0, 0], Scheduling::EventDriven, 100_000);
    assert!(
        (made.rates[0] / 1000.0 - 1.0).abs() < 0.02,
        "{:?}",
        made.rates
    );
}

/// As in the host: who has a share of the cores leaves the rest, also to a lower priority, and beside his own promise.
#[test]
fn who_has_a_share_leaves_the_rest() {
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.03, "{got} {wanted}");
    let mut machine = Machine::new(1);
    for speed in [1.0, 0.5] {
        machine.cores[0].speed = speed;
        let (mut first, second) = (app("first", &[2.0, 3.0]), app("second", &[5.0]));
        (first.share, first.priority) = (Some(0.3), 1);
        for promise in [None, Some(1000.0)] {
            first.promise = promise;
            let made = rates(
                &of(vec![first.clone(), second.clone()]),
                &machine,
                &[0; 3],
                100_000,
            );
            near(made[0], 60.0 * speed);
            near(made[1], 140.0 * speed);
        }
        first.promise = Some(20.0);
        let made = rates(
            &of(vec![first.clone(), second.clone()]),
            &machine,
            &[0; 3],
            100_000,
        );
        near(made[0], 20.0);
        // A load is judged by that: 150 a second are more than is left.
        let mut second = second;
        (first.promise, machine.cores[0].speed) = (None, 1.0);
        for (promise, fits) in [(130.0, true), (150.0, false)] {
            second.promise = Some(promise);
            let found = admitted(&of(vec![first.clone(), second.clone()]), &machine);
            assert_eq!(found.fits(), fits, "{found}");
        }
    }
}

#[test]
fn promises_are_kept_while_the_machine_can_and_then_the_lower_priority_yields() {
    let machine = Machine::new(2);
    // One core makes 100 a second of each.
    let mut mix = of(vec![
        app("a", &[5.0, 5.0]),
        app("b", &[5.0, 5.0]),
        app("c", &[5.0, 5.0]),
    ]);
    let placed = |mix: &Mix| {
        let placement = map(mix, &machine, Strategy::Levada).unwrap();
        rates(mix, &machine, &placement, 120_000)
    };
    mix.apps[2].promise = Some(100.0);
    let got = placed(&mix);
    assert!(got[2] >= 98.0, "{got:?}");
    assert!(got[0] > 20.0 && got[1] > 20.0, "{got:?}");
    // 100 + 120 are more than 200: the lower priority yields.
    mix.apps[0].promise = Some(120.0);
    mix.apps[0].priority = 1;
    let got = placed(&mix);
    assert!(got[0] >= 117.0, "{got:?}");
    assert!(got[2] < 98.0, "{got:?}");
}

/// What the last application of the mix does to the promises of the others, which are where they are.
fn admitted(mix: &Mix, machine: &Machine) -> Admission {
    let mut before = mix.clone();
    before.apps.pop();
    let settled = match before.apps.is_empty() {
        true => Vec::new(),
        false => map(&before, machine, Strategy::Levada).unwrap(),
    };
    let settled: Vec<Option<u32>> = settled.into_iter().map(Some).collect();
    let mut current = settled.clone();
    current.resize(mix.actors(), None);
    let before = PlacedMix {
        mix: &before,
        current: &settled,
    };
    let after = PlacedMix {
        mix,
        current: &current,
    };
    admit(before, after, machine, 60_000).unwrap()
}

/// Both of its actors on one core, and another application comes to two cores.
#[test]
fn who_is_promised_something_is_moved_only_where_that_keeps_it() {
    let machine = Machine::new(2);
    let mut mix = of(vec![app("a", &[5.0, 5.0]), app("b", &[0.5, 0.5])]);
    let of_mix = |mix: &Mix| {
        let mut old = mix.clone();
        old.apps.pop();
        let before = PlacedMix {
            mix: &old,
            current: &[Some(0), Some(0)],
        };
        let after = PlacedMix {
            mix,
            current: &[Some(0), Some(0), None, None],
        };
        admit(before, after, &machine, 60_000).unwrap()
    };
    mix.apps[0].promise = Some(60.0);
    let stays = of_mix(&mix);
    assert!(stays.fits(), "{stays}");
    assert_eq!(stays.placement[..2], [0, 0]);
    mix.apps[0].promise = Some(120.0);
    let moved = of_mix(&mix);
    assert!(moved.fits() && moved.missed.is_empty(), "{moved}");
    assert_ne!(moved.placement[0], moved.placement[1]);
}

#[test]
fn a_load_that_would_break_a_promise_is_told_with_its_numbers() {
    let machine = Machine::new(2);
    let mut mix = of(vec![app("a", &[5.0, 5.0]), app("b", &[5.0, 5.0])]);
    mix.apps[0].promise = Some(120.0);
    mix.apps[1].promise = Some(60.0);
    let fits = admitted(&mix, &machine);
    assert!(fits.fits(), "{fits}");
    assert_eq!(fits.promises.len(), 2);
    // Nobody has what another is to have: the higher priority makes the first one yield.
    mix.apps[1].promise = Some(120.0);
    mix.apps[1].priority = 1;
    let broken = admitted(&mix, &machine);
    let said = broken.to_string();
    let now = "a was promised 120.0 frames/s, can have 120.0 frames/s now, and would get ";
    assert!(said.starts_with(now), "{said}");
    assert_eq!(broken.broken.len(), 1, "{said}");
    // And without it, the one that comes.
    mix.apps[1].priority = 0;
    let said = admitted(&mix, &machine).to_string();
    assert!(
        said.contains("b is to be promised 120.0 frames/s and would get "),
        "{said}"
    );
    // An actor that is heavier than a core: no placement helps.
    mix.apps[1] = app("h", &[1.0, 50.0]);
    mix.apps[1].promise = Some(25.0);
    let heavy = admitted(&mix, &machine).to_string();
    assert!(
        heavy.contains("h1 alone takes a core 50.00 ms for each"),
        "{heavy}"
    );
}

/// A promise that nobody can keep is no reason against who takes nothing from it.
/// However far out of reach a promise is, who has it goes before who has none.
#[test]
fn what_is_promised_out_of_reach_has_what_can_be_had() {
    let machine = Machine::new(2);
    let promised = |name| App {
        promise: Some(1e5),
        ..app(name, &[1.2])
    };
    let plain = |name| app(name, &[1.2]);
    let apps = vec![promised("a"), promised("b"), plain("c"), plain("d")];
    let current = [0, 0, 1, 1].map(Some);
    let seats = remap(&of(apps), &machine, &current).unwrap();
    assert_ne!(seats[0], seats[1], "{seats:?}");
}

#[test]
fn a_load_is_held_to_what_it_changes() {
    let machine = Machine::new(2);
    let mut hopeless = app("hopeless", &[1.0, 50.0]);
    hopeless.promise = Some(500.0);
    let alone = admitted(&of(vec![hopeless.clone()]), &machine);
    assert!(!alone.fits(), "{alone}");
    let free = app("free", &[2.0]);
    let beside = admitted(&of(vec![hopeless.clone(), free.clone()]), &machine);
    assert!(beside.fits(), "{beside}");
    let said = beside.to_string();
    assert!(
        said.starts_with("no promise is broken by this; hopeless was promised"),
        "{said}"
    );
    assert!(!beside.promises[0].kept());
    // What takes from it is refused all the same, with what it had.
    let mut first = app("first", &[15.0, 15.0]);
    first.priority = 1;
    first.actors[0].pin = Some(0);
    first.actors[1].pin = Some(1);
    let beside = admitted(&of(vec![hopeless.clone(), first]), &machine);
    let said = beside.to_string();
    assert!(
        said.starts_with("hopeless was promised 500.0 frames/s, can have "),
        "{said}"
    );
    // Another promise that can be kept beside it, and one that cannot.
    let mut other = free;
    other.promise = Some(20.0);
    let beside = admitted(&of(vec![hopeless.clone(), other.clone()]), &machine);
    assert!(beside.fits(), "{beside}");
    other.promise = Some(2000.0);
    let beside = admitted(&of(vec![hopeless, other]), &machine);
    assert_eq!(beside.broken.len(), 1, "{beside}");
    assert!(beside.broken[0].starts_with("free is to be"), "{beside}");
}

/// A new version is the same application: it is promised no more than the old one was.
#[test]
fn a_new_version_is_held_to_what_the_old_one_had() {
    let machine = Machine::new(1);
    let admitted = |old: f64, new: f64| {
        let of_it = |promise| {
            let mut one = app("a", &[10.0]);
            one.promise = Some(promise);
            of(vec![one])
        };
        let (old, new) = (of_it(old), of_it(new));
        let before = PlacedMix {
            mix: &old,
            current: &[Some(0)],
        };
        let after = PlacedMix {
            mix: &new,
            current: &[None],
        };
        admit(before, after, &machine, 60_000).unwrap()
    };
    assert!(admitted(500.0, 500.0).fits());
    assert!(!admitted(50.0, 500.0).fits());
    assert!(admitted(500.0, 50.0).fits());
}

/// One actor, of which each firing lasts so many milliseconds, and so many of them are a unit.
fn fires(name: &str, ms: f64, firings: f64) -> App {
    let mut one = app(name, &[ms * firings]);
    one.actors[0].firings = firings;
    one
}

/// No firing is interrupted: who is promised a rate waits for those of others, and what it could not do meanwhile
/// is lost but for a little.
#[test]
fn a_promise_beside_long_firings_is_seen_to_be_broken() {
    let machine = Machine::new(2);
    let mut short = fires("short", 1.0, 1.0);
    short.promise = Some(60.0);
    for (ms, fits) in [(5.0, true), (50.0, true), (280.0, true), (700.0, false)] {
        let long = |name| fires(name, ms, 1.0);
        let mix = of(vec![long("long"), long("longer"), short.clone()]);
        let found = admitted(&mix, &machine);
        assert_eq!(found.fits(), fits, "{ms} ms: {found}");
        let why = format!("last {ms:.0} ms, and no firing is interrupted");
        assert_eq!(found.to_string().contains(&why), !fits, "{found}");
    }
    // However they are counted: in milliseconds of work, or ten by a firing.
    for firings in [0.00125, 0.1] {
        let long = |name| fires(name, 800.0, firings);
        let mix = of(vec![long("long"), long("longer"), short.clone()]);
        let found = admitted(&mix, &machine);
        let why = found.to_string().contains("last 800 ms");
        assert!(!found.fits() && why, "{found}");
        let shares = found.rates[..2].iter().map(|r| r * 0.8 * firings);
        assert!(shares.into_iter().all(|s| s > 0.8), "{found:?}");
    }
    // A channel that takes for a minute what its source gives hides nobody who does not keep up.
    let mut pipeline = app("short", &[0.001, 1.0]);
    pipeline.promise = Some(60.0);
    pipeline.actors.iter_mut().for_each(|a| a.firings = 1.0);
    (pipeline.channels[0].elements, pipeline.channels[0].capacity) = (1.0, 4096.0);
    pipeline.actors[0].pin = Some(0);
    pipeline.actors[1].pin = Some(1);
    let mut first = fires("first", 100.0, 1.0);
    (first.actors[0].pin, first.priority) = (Some(1), 1);
    assert!(!admitted(&of(vec![first, pipeline]), &machine).fits());
    // Where one core is left by them it is kept there; and one that runs is not to be held up by who comes.
    let mix = of(vec![fires("long", 800.0, 1.0), short.clone()]);
    assert!(admitted(&mix, &machine).fits());
    let mix = of(vec![short, fires("long", 800.0, 1.0)]);
    assert!(admitted(&mix, &machine).fits());
}

/// Where workers wait for their turn, what hands over from core to core again and again does not keep its promise; on one core
/// it waits once.
#[test]
fn who_hands_over_often_is_kept_together_where_workers_wait_for_cores() {
    let mut one = app("a", &[1.0; 4]);
    one.promise = Some(60.0);
    for c in &mut one.channels {
        c.capacity = c.elements / 8.0;
    }
    let mix = of(vec![one]);
    let apart = [0, 0, 1, 1];
    let current = apart.map(Some);
    let mut machine = Machine::new(2);
    assert_eq!(remap(&mix, &machine, &current).unwrap(), apart);
    machine.costs.wake += 6e6;
    machine.costs.asleep += 6e6;
    let rate = |placement: &[u32]| expected(&mix, &machine, placement, machine.scheduling).rates[0];
    assert!(rate(&apart) < 50.0, "{}", rate(&apart));
    let together = remap(&mix, &machine, &current).unwrap();
    assert!(
        together.iter().all(|core| *core == together[0]),
        "{together:?}"
    );
    assert!(rate(&together) > 59.0, "{}", rate(&together));
    assert_eq!(remap(&mix, &machine, &[Some(1); 4]).unwrap(), [1; 4]);
}

/// A core of speed 4 makes four times as much as one that times are measured on, and a slow one less.
#[test]
fn what_a_fast_core_can_make_is_within_reach() {
    for (speed, most) in [(4.0, 3000.0), (0.5, 500.0)] {
        let mut machine = Machine::new(2);
        machine.cores[1].speed = speed;
        machine.cores[0].speed = speed / 4.0;
        let mut mix = of(vec![app("a", &[1.0])]);
        mix.apps[0].promise = Some(3000.0);
        let missing = |rate: f64| Score::of(&mix, &machine, &[rate]).shortfall()[0];
        assert_eq!(missing(most), 0.0);
        assert!((missing(most / 2.0) - 0.49).abs() < 0.02, "{speed}");
        let least = |core| UpperBound::of(&mix, &machine, &[core]).shortfall[0];
        assert_eq!(least(1), 0.0);
        let lacks = 1.0 - speed / 4.0 * 1000.0 / most;
        assert!((least(0) - lacks).abs() < 0.1, "{}", least(0));
    }
}
