// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission check: predicts, before a load, whether every reserved rate can still be met.
//!
//! The prediction maps and simulates all running applications together with the new ones, from measured costs. A
//! load that would break a reservation is refused with the numbers, or accepted with `anyway`. If a cost is unknown
//! because something was not measured, the load is accepted and the report says so. Applications that are loaded
//! together are checked together: their combined effect counts, and one simulation takes less time than one for
//! each.
//!
//! Costs are CPU time of actors, which does not depend on other programs on the same cores. Other programs come and
//! go, so the check assumes that they use nothing; an application that then gets less raises the event `late`.
//! Isolated applications are loaded by this host: what they use now is subtracted from the cores.

use crate::admission::candidate::{Candidate, LoadCandidate, Resident};
use crate::admission::simulation::AdmissionCheck;
use crate::app::HostedApp;
use crate::context::{HostContext, SharingApp};
use crate::mapping::weights::{app_for_mapper, cap_to_paced, is_guessed};
use crate::model::admission_report::{Admission, UnknownReasons, Verdict};
use crate::model::error::Refusal;
use crate::model::limits::Limits;

/// Refuses these loads if together they would break a reserved rate, unless they are forced; otherwise returns the
/// report of each. None: no rate is reserved; that answer is cheap.
pub fn admit(
    shared: &HostContext,
    news: &[LoadCandidate],
) -> Result<Vec<Option<Admission>>, Refusal> {
    let uncounted = |new: &LoadCandidate| new.limits.rate.filter(|_| !new.can_count);
    let judged = news.iter().map(|new| {
        let rate = new.limits.rate.filter(|_| new.can_count);
        let limits = Limits { rate, ..new.limits };
        LoadCandidate { limits, ..*new }
    });
    let all = check_reservations(shared, &judged.collect::<Vec<_>>())?;
    let told = news.iter().map(|new| match uncounted(new) {
        Some(reserved) => Some(Admission::uncounted(new.name, reserved, all.clone())),
        None => all.clone(),
    });
    Ok(told.collect())
}

/// The same, for applications with reservations that can be checked.
fn check_reservations(
    shared: &HostContext,
    news: &[LoadCandidate],
) -> Result<Option<Admission>, Refusal> {
    let reserves = news.iter().any(|new| new.limits.rate.is_some());
    if !reserves && !any_rate_reserved(shared) {
        return Ok(None);
    }
    let live = shared.apps_sharing_cores();
    let goes = |h: &HostedApp| {
        let mut old = news.iter().filter_map(|new| new.old);
        old.any(|old| old.number == h.number)
    };
    let stays = |one: &SharingApp| !goes(&one.hosted) && one.reserved_rate.is_some();
    if !reserves && !live.iter().any(stays) {
        return Ok(None);
    }
    let mut unknown = UnknownReasons::default();
    let mut there = Vec::new();
    for SharingApp {
        hosted,
        reserved_rate: reserved,
    } in &live
    {
        let counters = hosted.app.counters().unwrap_or_default();
        let goes = goes(hosted);
        // The behaviour of a program's fibers cannot be predicted.
        if hosted.app.network().is_program() {
            if !goes {
                unknown.programs.push(hosted.name.clone());
            }
            continue;
        }
        let app = app_for_mapper(hosted, *reserved, &shared.machine, &counters);
        if goes {
            // It does not matter whether it is known.
        } else if is_guessed(hosted, *reserved, &counters) {
            unknown.unmeasured.push(hosted.name.clone());
        } else if reserved.is_some() && app.reserved_rate.is_none() {
            unknown.uncounted.push(hosted.name.clone());
        }
        let seats = counters.actors.iter().map(|a| Some(a.target)).collect();
        there.push(Resident {
            app,
            workers: seats,
            is_replaced: goes,
        });
    }
    let coming = candidates_of(news, &mut unknown);
    let judged = AdmissionCheck {
        host: shared,
        residents: there,
        candidates: coming,
    };
    let told = match judged.has_reservations().then(|| judged.report()) {
        Some(Ok(told)) => told?,
        Some(Err(problem)) => {
            unknown.other = Some(problem.to_string());
            Admission::default()
        }
        None => Admission::default(),
    };
    match unknown.text().filter(|_| told.verdict != Verdict::Broken) {
        Some(why) => {
            let rate_reservations = told.rate_reservations;
            Ok(Some(Admission {
                rate_reservations,
                ..Admission::unknown(&why)
            }))
        }
        None => Ok(Some(told)),
    }
}

/// The loads that can be predicted; the others are added to `unknown`.
fn candidates_of(news: &[LoadCandidate], unknown: &mut UnknownReasons) -> Vec<Candidate> {
    let mut coming = Vec::new();
    for new in news {
        let name = || new.name.to_string();
        if new.network.is_program() {
            unknown.programs.push(name());
        } else if new.profile.is_none() {
            unknown.unmeasured.push(name());
        } else {
            let mut one = Candidate::of(new);
            if let Some(old) = new.old {
                one.app = cap_to_paced(old, one.app);
            }
            if new.limits.rate.is_some() && one.app.reserved_rate.is_none() {
                unknown.uncounted_before.push(name());
            }
            coming.push(one);
        }
    }
    coming
}

/// Whether any application that shares the cores has a reserved rate.
pub fn any_rate_reserved(shared: &HostContext) -> bool {
    // The list of all is made only if there is a reservation.
    let any = {
        let table = shared.lock_registry();
        let mut all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        all.any(|hosted| hosted.has_reserved_rate())
    };
    any && shared
        .apps_sharing_cores()
        .iter()
        .any(|one| one.reserved_rate.is_some())
}
