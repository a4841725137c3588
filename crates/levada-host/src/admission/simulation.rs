// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The simulation of an admission check: reserved and expected rates before and after a load, by the mapper.

use crate::admission::candidate::{Candidate, Resident};
use crate::context::HostContext;
use crate::mapping::mix;
use crate::model::admission_report::{Admission, RateReservation, Verdict};
use crate::model::error::{Kind, Refusal};
use levada_map::{Admission as Found, Machine, Mix, PlacedMix, Problem};

/// Minimum number of simulated steps.
const STEPS_MIN: usize = 30_000;

pub struct AdmissionCheck<'a> {
    pub host: &'a HostContext,
    pub residents: Vec<Resident>,
    pub candidates: Vec<Candidate>,
}

/// Applications and the workers of their actors; some have reserved cores.
struct Scenario {
    mix: Mix,
    current: Vec<Option<u32>>,
}

impl Scenario {
    fn scene(&self) -> PlacedMix<'_> {
        PlacedMix {
            mix: &self.mix,
            current: &self.current,
        }
    }
}

impl AdmissionCheck<'_> {
    /// Whether there is a candidate with a profile, and any rate is reserved.
    pub fn has_reservations(&self) -> bool {
        let there = self
            .residents
            .iter()
            .filter(|t| !t.is_replaced)
            .map(|t| &t.app);
        let mut all = there.chain(self.candidates.iter().map(|c| &c.app));
        !self.candidates.is_empty() && all.any(|app| app.reserved_rate.is_some())
    }

    /// The report, or the refusal if the candidates break a reservation, unless those that are forced break it by
    /// themselves.
    pub fn report(&self) -> Result<Result<Admission, Refusal>, Problem> {
        let all = self.scenario(false, |_| true);
        let left = self.available();
        let found = self.predict(&self.scenario(true, |_| false), &all, &left)?;
        let mut told = Admission {
            rate_reservations: found
                .reservations
                .iter()
                .map(|p| reservation_report(&all.mix, p))
                .collect(),
            verdict: Verdict::Kept,
            text: found.to_string(),
        };
        if found.fits() {
            return Ok(Ok(told));
        }
        told.verdict = Verdict::Broken;
        if let Some(broken) = self.violations(&found, &all, &left)? {
            told.text = format!(
                "a reserved rate would be broken: {broken}{}",
                available_text(&left)
            );
            let refusal = Refusal::new(Kind::Reservation, told.text.clone()).help(
                "reserve less with --rate, unload what is not needed, or load it with --force",
            );
            return Ok(Err(Refusal {
                admission: Some(Box::new(told)),
                ..refusal
            }));
        }
        told.text = format!(
            "a reserved rate is broken: {}{}",
            told.text,
            available_text(&left)
        );
        Ok(Ok(told))
    }

    /// The prediction that refuses the candidates which are not forced; none if those that are forced break the
    /// reservation alone.
    fn violations(
        &self,
        found: &Found,
        all: &Scenario,
        left: &[f64],
    ) -> Result<Option<Found>, Problem> {
        let forced = self.candidates.iter().filter(|c| c.force).count();
        if forced == 0 {
            return Ok(Some(found.clone()));
        }
        if forced == self.candidates.len() {
            return Ok(None);
        }
        let forced_only = self.scenario(false, |c| c.force);
        let rest = self.predict(&forced_only, all, left)?;
        Ok((!rest.fits()).then_some(rest))
    }

    fn predict(&self, before: &Scenario, after: &Scenario, left: &[f64]) -> Result<Found, Problem> {
        let machine = available_machine(self.host, left);
        levada_map::admit(before.scene(), after.scene(), &machine, STEPS_MIN)
    }

    /// The residents, with or without those that are replaced, and the candidates that `comes` selects.
    fn scenario(&self, goes: bool, comes: impl Fn(&Candidate) -> bool) -> Scenario {
        let (mut apps, mut current, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for one in self.residents.iter().filter(|t| goes || !t.is_replaced) {
            apps.push(one.app.clone());
            current.extend(&one.workers);
        }
        for one in self.candidates.iter().filter(|c| comes(c)) {
            own.extend(one.exclusive.map(|core| (core, Some(apps.len()))));
            current.extend(one.app.actors.iter().map(|_| None));
            apps.push(one.app.clone());
        }
        let mut mix = mix(self.host, apps);
        for (core, app) in own {
            mix.exclusive.retain(|(c, _)| *c != core);
            mix.exclusive.push((core, app));
        }
        Scenario { mix, current }
    }

    /// The capacity that isolated applications leave of each core; a core that is reserved for a candidate is fully
    /// available.
    fn available(&self) -> Vec<f64> {
        let mut left = self.host.left_by_isolated(true);
        for core in self.candidates.iter().filter_map(|c| c.exclusive) {
            if let Some(core) = left.get_mut(core as usize) {
                *core = 1.0;
            }
        }
        left
    }
}

/// The machine with these capacities. They are not rounded, because the reported numbers depend on them.
fn available_machine(shared: &HostContext, left: &[f64]) -> Machine {
    let mut machine = shared.machine.clone();
    let cores = machine.cores.iter_mut().zip(left);
    cores.for_each(|(core, left)| core.speed *= left);
    machine
}

fn available_text(left: &[f64]) -> String {
    let (all, left) = (left.len() as f64, left.iter().sum::<f64>());
    if left < all {
        format!(" (isolated applications leave {left:.1} of {all:.0} cores)")
    } else {
        String::new()
    }
}

fn reservation_report(mix: &Mix, reservation: &levada_map::RateReservation) -> RateReservation {
    let app = &mix.apps[reservation.app];
    RateReservation {
        application: app.name.clone(),
        unit: app.unit.clone(),
        reserved_rate: reservation.reserved_rate,
        expected_before: reservation.before,
        expected_after: reservation.expected,
    }
}
