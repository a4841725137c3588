// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission: what a load does to the promises, by what was measured of all that runs and of what is to be
//! loaded. A load that breaks one is refused, with the numbers, or accepted by a flag; where that cannot be known,
//! since something was not measured, it is accepted, and that is said. Several that are loaded at once are judged as one:
//! what counts is what all of them do together, and to map and simulate each with those before it would take as long for each.
//!
//! What was measured is what actors took of a core, whoever else had it meanwhile; so it is the same beside other
//! programs. What those will take of the cores nobody knows, and they come and go: a promise is judged by cores of which
//! they take nothing, and who has less than that then is late. It is otherwise with isolated applications, which this
//! host has loaded, too: what they take now is not there.

use crate::admission::candidate::{Coming, New, There};
use crate::admission::simulation::Judged;
use crate::app::Hosted;
use crate::context::{Shared, Sharing};
use crate::mapping::weights::{as_paced, is_guessed, mapped};
use crate::model::admission_report::{Admission, Unknown, Verdict};
use crate::model::error::Refusal;
use crate::model::limits::Limits;

/// Refuses all of these where together they would break a promise, with the numbers, unless they are to be loaded anyway; else
/// what there is to be said of each. None: nothing is promised to anybody, and that has cost no time.
pub fn admit(shared: &Shared, news: &[New]) -> Result<Vec<Option<Admission>>, Refusal> {
    let uncounted = |new: &New| new.limits.rate.filter(|_| !new.counts);
    let judged = news.iter().map(|new| {
        let rate = new.limits.rate.filter(|_| new.counts);
        let limits = Limits { rate, ..new.limits };
        New { limits, ..*new }
    });
    let all = judge(shared, &judged.collect::<Vec<_>>())?;
    let told = news.iter().map(|new| match uncounted(new) {
        Some(promised) => Some(Admission::uncounted(new.name, promised, all.clone())),
        None => all.clone(),
    });
    Ok(told.collect())
}

/// The same, of those whose promises can be judged.
fn judge(shared: &Shared, news: &[New]) -> Result<Option<Admission>, Refusal> {
    let promises = news.iter().any(|new| new.limits.rate.is_some());
    if !promises && !any_promised(shared) {
        return Ok(None);
    }
    let live = shared.sharing();
    let goes = |h: &Hosted| {
        let mut old = news.iter().filter_map(|new| new.old);
        old.any(|old| old.number == h.number)
    };
    let stays = |one: &Sharing| !goes(&one.hosted) && one.promised.is_some();
    if !promises && !live.iter().any(stays) {
        return Ok(None);
    }
    let mut unknown = Unknown::default();
    let mut there = Vec::new();
    for Sharing { hosted, promised } in &live {
        let counters = hosted.app.counters().unwrap_or_default();
        let goes = goes(hosted);
        // What a program's fibers will do is not described.
        if hosted.app.network().is_program() {
            if !goes {
                unknown.programs.push(hosted.name.clone());
            }
            continue;
        }
        let app = mapped(hosted, *promised, &shared.machine, &counters);
        if goes {
            // What is known of it makes no difference.
        } else if is_guessed(hosted, *promised, &counters) {
            unknown.unmeasured.push(hosted.name.clone());
        } else if promised.is_some() && app.promise.is_none() {
            unknown.uncounted.push(hosted.name.clone());
        }
        let seats = counters.actors.iter().map(|a| Some(a.target)).collect();
        there.push(There { app, seats, goes });
    }
    let mut coming = Vec::new();
    for new in news {
        let name = || new.name.to_string();
        if new.network.is_program() {
            unknown.programs.push(name());
        } else if new.known.is_none() {
            unknown.unmeasured.push(name());
        } else {
            let mut one = Coming::of(new);
            if let Some(old) = new.old {
                one.app = as_paced(old, one.app);
            }
            if new.limits.rate.is_some() && one.app.promise.is_none() {
                unknown.uncounted_before.push(name());
            }
            coming.push(one);
        }
    }
    let judged = Judged {
        shared,
        there,
        coming,
    };
    let told = match judged.says_something().then(|| judged.told()) {
        Some(Ok(told)) => told?,
        Some(Err(problem)) => {
            unknown.other = Some(problem.to_string());
            Admission::default()
        }
        None => Admission::default(),
    };
    match unknown.text().filter(|_| told.verdict != Verdict::Broken) {
        Some(why) => {
            let promise = told.promise;
            Ok(Some(Admission {
                promise,
                ..Admission::unknown(&why)
            }))
        }
        None => Ok(Some(told)),
    }
}

/// Whether anything that shares the cores is promised a rate.
pub fn any_promised(shared: &Shared) -> bool {
    // A list of all is made only where there is any promise.
    let any = {
        let table = shared.table();
        let mut all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        all.any(|hosted| hosted.is_promised())
    };
    any && shared.sharing().iter().any(|one| one.promised.is_some())
}
