// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission: what a load does to the promises, by what was measured of all that runs and of what is to be
//! loaded. A load that breaks one is refused, with the numbers, or accepted by a flag; where that cannot be known,
//! since something was not measured, it is accepted, and that is said.
//!
//! What was measured is what actors took of a core, whoever else had it meanwhile; so it is the same beside other
//! programs. What those will take of the cores nobody knows, and they come and go: a promise is judged by cores of which
//! they take nothing, and who has less than that then is late. It is otherwise with isolated applications, which this
//! host has loaded, too: what they take now is not there.

use crate::hosted::Hosted;
use crate::keep::Limits;
use crate::mapping::mix;
use crate::measured::Measured;
use crate::pace::no_units;
use crate::refusal::{Kind, Refusal};
use crate::table::Shared;
use crate::weights::{is_guessed, mapped, unmeasured};
use levada_map::{App, Machine, Mix, Scene};
use levada_sys::Network;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Steps that are simulated at the least.
const STEPS: usize = 30_000;
/// So many are named where something is so of many.
const NAMED: usize = 3;

/// What is to be loaded.
pub struct New<'a> {
    pub name: &'a str,
    pub network: &'a Network,
    pub known: Option<&'a Measured>,
    pub pins: &'a [Option<u32>],
    pub priority: i32,
    pub limits: Limits,
    /// Something in it may count what it does.
    pub counts: bool,
    /// The worker whose core it is to have to itself.
    pub exclusive: Option<u32>,
    /// In whose place it comes.
    pub old: Option<&'a Hosted>,
}

/// What a load does to the promises, its own and those of others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Admission {
    pub verdict: Verdict,
    /// The same in words.
    pub text: String,
    /// Each promise, as far as it could be foreseen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promise: Vec<Promise>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It breaks none.
    Kept,
    /// It breaks one, and was loaded anyway.
    Broken,
    /// Something has not been measured yet: who has less than it was promised then is late. Or it counts nothing that
    /// could be promised.
    #[default]
    Unknown,
}

/// What an application is promised, and what it can have, in units a second.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Promise {
    pub application: String,
    pub unit: String,
    pub promised: f64,
    /// Without the load; none: it is promised with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
    /// With it.
    pub after: f64,
}

impl Admission {
    /// Nobody knows what becomes of the promises, and why.
    pub fn unknown(why: &str) -> Admission {
        let text = format!(
            "whether promises can be kept is not known: {why}; if one is not, levada top and the event late say so"
        );
        Admission {
            verdict: Verdict::Unknown,
            text,
            promise: Vec::new(),
        }
    }

    /// Of one that was promised something and counts nothing: it runs as if without, whatever else there is to be said.
    pub fn uncounted(name: &str, promised: f64, rest: Option<Admission>) -> Admission {
        let own = format!("{name} {}, and runs as if without", no_units(promised));
        let rest = rest.unwrap_or_default();
        Admission {
            text: match rest.text.as_str() {
                "" => own,
                text => format!("{own}; {text}"),
            },
            verdict: match rest.verdict {
                Verdict::Kept => Verdict::Unknown,
                other => other,
            },
            promise: rest.promise,
        }
    }
}

/// Refuses what would break a promise, with the numbers, unless it is to be loaded `anyway`; none: nothing is
/// promised to anybody, and that has cost no time.
pub fn admit(shared: &Shared, new: &New, anyway: bool) -> Result<Option<Admission>, Refusal> {
    let Some(promised) = new.limits.rate.filter(|_| !new.counts) else {
        return judge(shared, new, anyway);
    };
    let limits = Limits {
        rate: None,
        ..new.limits
    };
    let rest = judge(shared, &New { limits, ..*new }, anyway)?;
    Ok(Some(Admission::uncounted(new.name, promised, rest)))
}

/// The same, of one whose promise can be judged.
fn judge(shared: &Shared, new: &New, anyway: bool) -> Result<Option<Admission>, Refusal> {
    let live = shared.sharing();
    let goes = |h: &Hosted| new.old.is_some_and(|old| old.number == h.number);
    let promises = new.limits.rate.is_some();
    let mut stays = live.iter().filter(|h| !goes(h));
    if !promises && !stays.any(|h| h.is_promised()) {
        return Ok(None);
    }
    let mut unknown = Unknown::default();
    let (mut before, mut after) = (Apps::default(), Apps::default());
    for hosted in &live {
        let counters = hosted.app.counters().unwrap_or_default();
        // What a program's fibers will do is not described.
        if hosted.app.network().is_program() {
            if !goes(hosted) {
                unknown.programs.push(hosted.name.clone());
            }
            continue;
        }
        let app = mapped(hosted, &shared.machine, &counters);
        let seats = counters.actors.iter().map(|a| Some(a.target));
        if !goes(hosted) {
            if is_guessed(hosted, &counters) {
                unknown.unmeasured.push(hosted.name.clone());
            } else if hosted.is_promised() && app.promise.is_none() {
                unknown.uncounted.push(hosted.name.clone());
            }
            after.push(app.clone(), seats.clone());
        }
        before.push(app, seats);
    }
    let (limits, priority) = (new.limits, new.priority);
    let app = unmeasured(new.name, new.network, new.known, new.pins, limits, priority);
    let seats = app.actors.iter().map(|_| None).collect::<Vec<_>>();
    match (new.network.is_program(), new.known) {
        (true, _) => unknown.programs.push(new.name.to_string()),
        (false, None) => unknown.unmeasured.push(new.name.to_string()),
        (false, Some(_)) => {
            if promises && app.promise.is_none() {
                unknown.uncounted_before.push(new.name.to_string());
            }
            after.push(app, seats.into_iter());
        }
    }
    let judges = new.known.is_some() && after.apps.iter().any(|a| a.promise.is_some());
    let mut admission = Admission::default();
    if judges {
        let before_mix = mix(shared, before.apps);
        let own = after.apps.len() - 1;
        let mut after_mix = mix(shared, after.apps);
        if let Some(core) = new.exclusive {
            after_mix.exclusive.retain(|(c, _)| *c != core);
            after_mix.exclusive.push((core, Some(own)));
        }
        let left = left_of(shared, new.exclusive);
        let (before, after) = (
            scene(&before_mix, &before.current),
            scene(&after_mix, &after.current),
        );
        match levada_map::admit(before, after, &what_is_left(shared, &left), STEPS) {
            Ok(found) if !found.fits() && !anyway => {
                let what = format!("a promise would be broken: {found}{}", told_left(&left));
                return Err(Refusal::new(Kind::Limit, what).help(
                    "promise less with --rate, unload what is not needed, or load it with --anyway",
                ));
            }
            Ok(found) => {
                admission.promise = found.promises.iter().map(|p| told(&after_mix, p)).collect();
                if !found.fits() {
                    admission.verdict = Verdict::Broken;
                    admission.text = format!("a promise is broken: {found}{}", told_left(&left));
                    return Ok(Some(admission));
                }
                admission.verdict = Verdict::Kept;
                admission.text = found.to_string();
            }
            Err(problem) => unknown.other = Some(problem.to_string()),
        }
    }
    match unknown.text() {
        Some(why) => {
            let promise = admission.promise;
            Ok(Some(Admission {
                promise,
                ..Admission::unknown(&why)
            }))
        }
        None => Ok(Some(admission)),
    }
}

/// What isolated applications leave of each core; of one that is emptied for somebody, all.
fn left_of(shared: &Shared, emptied: Option<u32>) -> Vec<f64> {
    let mut left = shared.left_beside(true);
    if let Some(core) = emptied.and_then(|core| left.get_mut(core as usize)) {
        *core = 1.0;
    }
    left
}

/// The cores by that. No part of that is rounded away here: by it numbers are told.
fn what_is_left(shared: &Shared, left: &[f64]) -> Machine {
    let mut machine = shared.machine.clone();
    let cores = machine.cores.iter_mut().zip(left);
    cores.for_each(|(core, left)| core.speed *= left);
    machine
}

fn told_left(left: &[f64]) -> String {
    let (all, left) = (left.len() as f64, left.iter().sum::<f64>());
    match left < all {
        true => format!(" (isolated applications leave {left:.1} of {all:.0} cores)"),
        false => String::new(),
    }
}

/// Whether anything that shares the cores is promised a rate.
pub fn any_promised(shared: &Shared) -> bool {
    shared.sharing().iter().any(|h| h.is_promised())
}

#[derive(Default)]
struct Apps {
    apps: Vec<App>,
    current: Vec<Option<u32>>,
}

impl Apps {
    fn push(&mut self, app: App, seats: impl Iterator<Item = Option<u32>>) {
        self.apps.push(app);
        self.current.extend(seats);
    }
}

fn scene<'a>(mix: &'a Mix, current: &'a [Option<u32>]) -> Scene<'a> {
    Scene { mix, current }
}

fn told(mix: &Mix, promise: &levada_map::Promise) -> Promise {
    let app = &mix.apps[promise.app];
    Promise {
        application: app.name.clone(),
        unit: app.unit.clone(),
        promised: promise.promised,
        before: promise.before,
        after: promise.expected,
    }
}

/// Of whom it is not known what they will do.
#[derive(Default)]
struct Unknown {
    unmeasured: Vec<String>,
    /// Until now, nor in an earlier run.
    uncounted: Vec<String>,
    /// In an earlier run, by which it would be judged.
    uncounted_before: Vec<String>,
    programs: Vec<String>,
    other: Option<String>,
}

impl Unknown {
    fn text(self) -> Option<String> {
        let (is, are) = ("is", "are each");
        let all = [
            (self.unmeasured, is, are, "not measured yet"),
            (
                self.uncounted,
                "has",
                "have each",
                "counted nothing yet that could be promised",
            ),
            (
                self.uncounted_before,
                "was",
                "were each",
                "measured in an earlier run that counted nothing that could be promised",
            ),
            (self.programs, is, are, "a C program, which is not measured"),
        ];
        let all = all.into_iter().filter(|(who, ..)| !who.is_empty());
        let reasons = all.map(|(who, one, several, what)| {
            let verb = if who.len() == 1 { one } else { several };
            format!("{} {verb} {what}", named(&who))
        });
        let reasons: Vec<String> = reasons.chain(self.other).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// These names, or the first of them and how many more there are.
fn named(who: &[String]) -> String {
    let more = who.len().saturating_sub(NAMED);
    let shown = who[..who.len() - more].join(", ");
    match more {
        0 => shown,
        _ => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_nothing_is_said_before_all_else() {
        let alone = Admission::uncounted("a", 25.0, None);
        let own = "a has no units of which 25.0 a second could be promised, and runs as if without";
        assert_eq!(
            (alone.verdict, alone.text.as_str()),
            (Verdict::Unknown, own)
        );
        for (verdict, told) in [
            (Verdict::Kept, Verdict::Unknown),
            (Verdict::Broken, Verdict::Broken),
        ] {
            let rest = Admission {
                verdict,
                text: "b is kept".to_string(),
                promise: Vec::new(),
            };
            let both = Admission::uncounted("a", 25.0, Some(rest));
            assert_eq!(
                (both.verdict, both.text),
                (told, format!("{own}; b is kept"))
            );
        }
    }

    #[test]
    fn of_whom_nothing_is_known_is_said_in_one_sentence() {
        let who = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(Unknown::default().text(), None);
        let unknown = Unknown {
            unmeasured: who(&["a"]),
            uncounted: who(&["r", "s"]),
            uncounted_before: who(&["t"]),
            programs: who(&["b", "c", "d", "e", "f"]),
            ..Unknown::default()
        };
        let text = unknown.text().unwrap();
        let programs = "b, c, d and 2 more are each a C program, which is not measured";
        let uncounted = "r, s have each counted nothing yet that could be promised";
        let before = "t was measured in an earlier run that counted nothing that could be promised";
        assert_eq!(
            text,
            format!("a is not measured yet; {uncounted}; {before}; {programs}")
        );
        let said = Admission::unknown(&text);
        assert_eq!(said.verdict, Verdict::Unknown);
        assert!(
            said.text.contains("is not known: a is not measured yet"),
            "{said:?}"
        );
    }
}
