// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reserved rates: met while the machine can, and the effect of a load on them.

use super::mix::{app, of, rates};
use crate::place::bounds::UpperBound;
use crate::*;

/// As in the runtime: an unreachable reservation leaves the others of its priority 1/16 of the
/// core, which they share; lower priorities get nothing.
#[test]
fn an_unreachable_reservation_leaves_others_a_part() {
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.05, "{got} {wanted}");
    let machine = Machine::new(1);
    let mut apps = vec![app("a", &[5.0]), app("b", &[5.0])];
    apps[0].reserved_rate = Some(1000.0);
    let made = rates(&of(apps.clone()), &machine, &[0; 2], 100_000);
    near(made[0], 200.0 * 16.0 / 17.0);
    near(made[1], 200.0 / 17.0);
    // The same for a pipeline with little traffic next to an application that is always ready.
    let mut little = app("c", &[0.1; 4]);
    for c in &mut little.channels {
        c.capacity = c.elements / 8.0;
    }
    apps.push(little);
    let made = rates(&of(apps.clone()), &machine, &[0; 6], 200_000);
    near(made[0], 200.0 * 16.0 / 17.0);
    near(made[1] / 200.0 + made[2] * 0.4e-3, 1.0 / 17.0);
    assert!(made[1] > 3.0 && made[2] > 40.0, "{made:?}");
    // Two such reservations share the remainder.
    apps[2] = app("d", &[5.0]);
    apps[2].reserved_rate = Some(1000.0);
    let made = rates(&of(apps.clone()), &machine, &[0; 3], 100_000);
    near(made[0] + made[2], 200.0 * 16.0 / 17.0);
    near(made[0], made[2]);
    apps[1].priority = -1;
    let made = rates(&of(apps), &machine, &[0; 3], 100_000);
    assert!(made[1] < 1.0, "{made:?}");
}

/// As in the host: an application gets no more than its reserved rate; the remaining capacity is
/// for the others.
#[test]
fn an_application_gets_no_more_than_its_reserved_rate() {
    let machine = Machine::with_topology(1, 1, 2, 2);
    for scheduling in [Scheduling::EventDriven, Scheduling::RoundRobin] {
        let mut held = app("held", &[0.5, 0.5]);
        (held.reserved_rate, held.priority) = (Some(10.0), 5);
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
    // The same if it runs alone; and an unreachable reservation gets the whole machine.
    let mut held = app("held", &[0.5, 0.5]);
    held.reserved_rate = Some(10.0);
    let mix = of(vec![held.clone()]);
    let made = simulate(&mix, &machine, &[0, 0], Scheduling::EventDriven, 100_000);
    assert_eq!(made.rates, [10.0]);
    held.reserved_rate = Some(5000.0);
    let mix = of(vec![held]);
    let made = simulate(&mix, &machine, &[0, 0], Scheduling::EventDriven, 100_000);
    assert!(
        (made.rates[0] / 1000.0 - 1.0).abs() < 0.02,
        "{:?}",
        made.rates
    );
}

/// As in the host: a CPU limit leaves the rest to others, including lower priorities, and applies
/// in addition to a reserved rate.
#[test]
fn a_cpu_limit_leaves_the_rest_to_others() {
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.03, "{got} {wanted}");
    let mut machine = Machine::new(1);
    for speed in [1.0, 0.5] {
        machine.cores[0].speed = speed;
        let (mut first, second) = (app("first", &[2.0, 3.0]), app("second", &[5.0]));
        (first.cpus, first.priority) = (Some(0.3), 1);
        for reserved_rate in [None, Some(1000.0)] {
            first.reserved_rate = reserved_rate;
            let made = rates(
                &of(vec![first.clone(), second.clone()]),
                &machine,
                &[0; 3],
                100_000,
            );
            near(made[0], 60.0 * speed);
            near(made[1], 140.0 * speed);
        }
        first.reserved_rate = Some(20.0);
        let made = rates(
            &of(vec![first.clone(), second.clone()]),
            &machine,
            &[0; 3],
            100_000,
        );
        near(made[0], 20.0);
        // The admission test respects it: 150 units per second exceed the remaining capacity.
        let mut second = second;
        (first.reserved_rate, machine.cores[0].speed) = (None, 1.0);
        for (reserved_rate, fits) in [(130.0, true), (150.0, false)] {
            second.reserved_rate = Some(reserved_rate);
            let found = admitted(&of(vec![first.clone(), second.clone()]), &machine);
            assert_eq!(found.fits(), fits, "{found}");
        }
    }
}

#[test]
fn reservations_are_met_by_priority() {
    let machine = Machine::new(2);
    // One core does 100 units per second of each.
    let mut mix = of(vec![
        app("a", &[5.0, 5.0]),
        app("b", &[5.0, 5.0]),
        app("c", &[5.0, 5.0]),
    ]);
    let placed = |mix: &Mix| {
        let placement = map(mix, &machine, Strategy::Levada).unwrap();
        rates(mix, &machine, &placement, 120_000)
    };
    mix.apps[2].reserved_rate = Some(100.0);
    let got = placed(&mix);
    assert!(got[2] >= 98.0, "{got:?}");
    assert!(got[0] > 20.0 && got[1] > 20.0, "{got:?}");
    // 100 + 120 exceed 200: the lower priority yields.
    mix.apps[0].reserved_rate = Some(120.0);
    mix.apps[0].priority = 1;
    let got = placed(&mix);
    assert!(got[0] >= 117.0, "{got:?}");
    assert!(got[2] < 98.0, "{got:?}");
}

/// The effect of the last application of the mix on the reservations of the others, which stay in
/// place.
fn admitted(mix: &Mix, machine: &Machine) -> Admission {
    let mut before = mix.clone();
    before.apps.pop();
    let settled = if before.apps.is_empty() {
        Vec::new()
    } else {
        map(&before, machine, Strategy::Levada).unwrap()
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

/// Both actors are on one core, and another application is loaded on two cores.
#[test]
fn an_application_is_moved_only_to_meet_its_reservation() {
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
    mix.apps[0].reserved_rate = Some(60.0);
    let stays = of_mix(&mix);
    assert!(stays.fits(), "{stays}");
    assert_eq!(stays.placement[..2], [0, 0]);
    mix.apps[0].reserved_rate = Some(120.0);
    let moved = of_mix(&mix);
    assert!(moved.fits() && moved.missed.is_empty(), "{moved}");
    assert_ne!(moved.placement[0], moved.placement[1]);
}

#[test]
fn a_load_that_breaks_a_reservation_is_refused_with_numbers() {
    let machine = Machine::new(2);
    let mut mix = of(vec![app("a", &[5.0, 5.0]), app("b", &[5.0, 5.0])]);
    mix.apps[0].reserved_rate = Some(120.0);
    mix.apps[1].reserved_rate = Some(60.0);
    let fits = admitted(&mix, &machine);
    assert!(fits.fits(), "{fits}");
    assert_eq!(fits.reservations.len(), 2);
    // Not enough for both: the higher priority makes the first one yield.
    mix.apps[1].reserved_rate = Some(120.0);
    mix.apps[1].priority = 1;
    let broken = admitted(&mix, &machine);
    let said = broken.to_string();
    let now = "a has reserved 120.0 frames/s, can have 120.0 frames/s now, and would get ";
    assert!(said.starts_with(now), "{said}");
    assert_eq!(broken.broken.len(), 1, "{said}");
    // Without it, the new one misses its rate.
    mix.apps[1].priority = 0;
    let said = admitted(&mix, &machine).to_string();
    assert!(
        said.contains("b is to reserve 120.0 frames/s and would get "),
        "{said}"
    );
    // An actor that needs more than a core: no placement helps.
    mix.apps[1] = app("h", &[1.0, 50.0]);
    mix.apps[1].reserved_rate = Some(25.0);
    let heavy = admitted(&mix, &machine).to_string();
    assert!(
        heavy.contains("h1 alone takes a core 50.00 ms for each"),
        "{heavy}"
    );
}

/// An unreachable reservation is no reason against a load that takes nothing from it. It still
/// precedes applications without one.
#[test]
fn an_unreachable_reservation_gets_the_achievable_rate() {
    let machine = Machine::new(2);
    let reserved = |name| App {
        reserved_rate: Some(1e5),
        ..app(name, &[1.2])
    };
    let plain = |name| app(name, &[1.2]);
    let apps = vec![reserved("a"), reserved("b"), plain("c"), plain("d")];
    let current = [0, 0, 1, 1].map(Some);
    let seats = remap(&of(apps), &machine, &current).unwrap();
    assert_ne!(seats[0], seats[1], "{seats:?}");
}

#[test]
fn a_load_is_judged_by_what_it_changes() {
    let machine = Machine::new(2);
    let mut hopeless = app("hopeless", &[1.0, 50.0]);
    hopeless.reserved_rate = Some(500.0);
    let alone = admitted(&of(vec![hopeless.clone()]), &machine);
    assert!(!alone.fits(), "{alone}");
    let free = app("free", &[2.0]);
    let admission = admitted(&of(vec![hopeless.clone(), free.clone()]), &machine);
    assert!(admission.fits(), "{admission}");
    let said = admission.to_string();
    assert!(
        said.starts_with("no reserved rate is broken by this; hopeless has reserved"),
        "{said}"
    );
    assert!(!admission.reservations[0].kept());
    // A load that takes from it is refused, with the rates before and after.
    let mut first = app("first", &[15.0, 15.0]);
    first.priority = 1;
    first.actors[0].pin = Some(0);
    first.actors[1].pin = Some(1);
    let admission = admitted(&of(vec![hopeless.clone(), first]), &machine);
    let said = admission.to_string();
    assert!(
        said.starts_with("hopeless has reserved 500.0 frames/s, can have "),
        "{said}"
    );
    // Another reservation that can be met at the same time, and one that cannot.
    let mut other = free;
    other.reserved_rate = Some(20.0);
    let admission = admitted(&of(vec![hopeless.clone(), other.clone()]), &machine);
    assert!(admission.fits(), "{admission}");
    other.reserved_rate = Some(2000.0);
    let admission = admitted(&of(vec![hopeless, other]), &machine);
    assert_eq!(admission.broken.len(), 1, "{admission}");
    assert!(
        admission.broken[0].starts_with("free is to reserve"),
        "{admission}"
    );
}

/// A new version is the same application, with the reservation of the old one.
#[test]
fn a_new_version_keeps_the_reservation_of_the_old_one() {
    let machine = Machine::new(1);
    let admitted = |old: f64, new: f64| {
        let of_it = |reserved_rate| {
            let mut one = app("a", &[10.0]);
            one.reserved_rate = Some(reserved_rate);
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

/// One actor with firings of `ms` milliseconds and this number of firings per unit.
fn fires(name: &str, ms: f64, firings: f64) -> App {
    let mut one = app(name, &[ms * firings]);
    one.actors[0].firings = firings;
    one
}

/// Firings are not preempted: an application with a reserved rate waits for those of others, and
/// most of the rate that it misses meanwhile is lost.
#[test]
fn long_firings_break_a_reservation() {
    let machine = Machine::new(2);
    let mut short = fires("short", 1.0, 1.0);
    short.reserved_rate = Some(60.0);
    for (ms, fits) in [(5.0, true), (50.0, true), (280.0, true), (700.0, false)] {
        let long = |name| fires(name, ms, 1.0);
        let mix = of(vec![long("long"), long("longer"), short.clone()]);
        let found = admitted(&mix, &machine);
        assert_eq!(found.fits(), fits, "{ms} ms: {found}");
        let why = format!("last {ms:.0} ms, and no firing is interrupted");
        assert_eq!(found.to_string().contains(&why), !fits, "{found}");
    }
    // For any unit: a millisecond of work, or ten units per firing.
    for firings in [0.00125, 0.1] {
        let long = |name| fires(name, 800.0, firings);
        let mix = of(vec![long("long"), long("longer"), short.clone()]);
        let found = admitted(&mix, &machine);
        let why = found.to_string().contains("last 800 ms");
        assert!(!found.fits() && why, "{found}");
        let shares = found.rates[..2].iter().map(|r| r * 0.8 * firings);
        assert!(shares.into_iter().all(|s| s > 0.8), "{found:?}");
    }
    // A channel that stores a minute of the source's output does not hide an actor that is too
    // slow.
    let mut pipeline = app("short", &[0.001, 1.0]);
    pipeline.reserved_rate = Some(60.0);
    pipeline.actors.iter_mut().for_each(|a| a.firings = 1.0);
    (pipeline.channels[0].elements, pipeline.channels[0].capacity) = (1.0, 4096.0);
    pipeline.actors[0].pin = Some(0);
    pipeline.actors[1].pin = Some(1);
    let mut first = fires("first", 100.0, 1.0);
    (first.actors[0].pin, first.priority) = (Some(1), 1);
    assert!(!admitted(&of(vec![first, pipeline]), &machine).fits());
    // With a core without such firings the reservation is met there; and a running application must
    // not be delayed by a new one.
    let mix = of(vec![fires("long", 800.0, 1.0), short.clone()]);
    assert!(admitted(&mix, &machine).fits());
    let mix = of(vec![short, fires("long", 800.0, 1.0)]);
    assert!(admitted(&mix, &machine).fits());
}

/// If workers wait for the CPU, a pipeline that is spread over cores misses its rate; on one core
/// it waits once.
#[test]
fn pipelines_stay_together_if_workers_wait_for_the_cpu() {
    let mut one = app("a", &[1.0; 4]);
    one.reserved_rate = Some(60.0);
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
    let rate = |placement: &[u32]| {
        simulate_steady_state(&mix, &machine, placement, machine.scheduling).rates[0]
    };
    assert!(rate(&apart) < 50.0, "{}", rate(&apart));
    let together = remap(&mix, &machine, &current).unwrap();
    assert!(
        together.iter().all(|core| *core == together[0]),
        "{together:?}"
    );
    assert!(rate(&together) > 59.0, "{}", rate(&together));
    assert_eq!(remap(&mix, &machine, &[Some(1); 4]).unwrap(), [1; 4]);
}

/// A core of speed 4 does four times as much as the reference core, a slow one less.
#[test]
fn the_achievable_rate_depends_on_the_core_speed() {
    for (speed, most) in [(4.0, 3000.0), (0.5, 500.0)] {
        let mut machine = Machine::new(2);
        machine.cores[1].speed = speed;
        machine.cores[0].speed = speed / 4.0;
        let mut mix = of(vec![app("a", &[1.0])]);
        mix.apps[0].reserved_rate = Some(3000.0);
        let missing = |rate: f64| Score::of(&mix, &machine, &[rate]).shortfall()[0];
        assert_eq!(missing(most), 0.0);
        assert!((missing(most / 2.0) - 0.49).abs() < 0.02, "{speed}");
        let least = |core| UpperBound::of(&mix, &machine, &[core]).shortfall[0];
        assert_eq!(least(1), 0.0);
        let lacks = 1.0 - speed / 4.0 * 1000.0 / most;
        assert!((least(0) - lacks).abs() < 0.1, "{}", least(0));
    }
}
