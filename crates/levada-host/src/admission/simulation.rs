// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What becomes of all promises, by the mapper's word, where some applications come to those that are there.

use crate::admission::candidate::{Coming, There};
use crate::context::Shared;
use crate::mapping::mix;
use crate::model::admission_report::{Admission, Promise, Verdict};
use crate::model::error::{Kind, Refusal};
use levada_map::{Admission as Found, Machine, Mix, PlacedMix, Problem};

/// Steps that are simulated at the least.
const STEPS: usize = 30_000;

pub struct Judged<'a> {
    pub shared: &'a Shared,
    pub there: Vec<There>,
    pub coming: Vec<Coming>,
}

/// Applications, and where the actors of each are; of whom some have cores to themselves.
struct Stage {
    mix: Mix,
    current: Vec<Option<u32>>,
}

impl Stage {
    fn scene(&self) -> PlacedMix<'_> {
        PlacedMix {
            mix: &self.mix,
            current: &self.current,
        }
    }
}

impl Judged<'_> {
    /// Whether anything is known of what comes, and somebody is promised something.
    pub fn says_something(&self) -> bool {
        let there = self.there.iter().filter(|t| !t.goes).map(|t| &t.app);
        let mut all = there.chain(self.coming.iter().map(|c| &c.app));
        !self.coming.is_empty() && all.any(|app| app.promise.is_some())
    }

    /// What becomes of the promises, or why those that come are refused: where they break one, unless it is broken by those of
    /// them alone that come anyway.
    pub fn told(&self) -> Result<Result<Admission, Refusal>, Problem> {
        let all = self.stage(false, |_| true);
        let left = self.left();
        let found = self.found(&self.stage(true, |_| false), &all, &left)?;
        let mut told = Admission {
            promise: found.promises.iter().map(|p| told(&all.mix, p)).collect(),
            verdict: Verdict::Kept,
            text: found.to_string(),
        };
        if found.fits() {
            return Ok(Ok(told));
        }
        told.verdict = Verdict::Broken;
        if let Some(broken) = self.refused(&found, &all, &left)? {
            told.text = format!("a promise would be broken: {broken}{}", told_left(&left));
            let refusal = Refusal::new(Kind::Promise, told.text.clone()).help(
                "promise less with --rate, unload what is not needed, or load it with --anyway",
            );
            return Ok(Err(Refusal {
                admission: Some(Box::new(told)),
                ..refusal
            }));
        }
        told.text = format!("a promise is broken: {}{}", told.text, told_left(&left));
        Ok(Ok(told))
    }

    /// What is held against those that do not come anyway, beside those that do.
    fn refused(&self, found: &Found, all: &Stage, left: &[f64]) -> Result<Option<Found>, Problem> {
        let anyway = self.coming.iter().filter(|c| c.anyway).count();
        if anyway == 0 {
            return Ok(Some(found.clone()));
        }
        if anyway == self.coming.len() {
            return Ok(None);
        }
        let beside = self.stage(false, |c| c.anyway);
        let rest = self.found(&beside, all, left)?;
        Ok((!rest.fits()).then_some(rest))
    }

    fn found(&self, before: &Stage, after: &Stage, left: &[f64]) -> Result<Found, Problem> {
        let machine = what_is_left(self.shared, left);
        levada_map::admit(before.scene(), after.scene(), &machine, STEPS)
    }

    /// What there is, with who `goes` or without, and those of them that come.
    fn stage(&self, goes: bool, comes: impl Fn(&Coming) -> bool) -> Stage {
        let (mut apps, mut current, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for one in self.there.iter().filter(|t| goes || !t.goes) {
            apps.push(one.app.clone());
            current.extend(&one.seats);
        }
        for one in self.coming.iter().filter(|c| comes(c)) {
            own.extend(one.exclusive.map(|core| (core, Some(apps.len()))));
            current.extend(one.app.actors.iter().map(|_| None));
            apps.push(one.app.clone());
        }
        let mut mix = mix(self.shared, apps);
        for (core, app) in own {
            mix.exclusive.retain(|(c, _)| *c != core);
            mix.exclusive.push((core, app));
        }
        Stage { mix, current }
    }

    /// What isolated applications leave of each core; of one that is emptied for somebody, all.
    fn left(&self) -> Vec<f64> {
        let mut left = self.shared.left_beside(true);
        for core in self.coming.iter().filter_map(|c| c.exclusive) {
            if let Some(core) = left.get_mut(core as usize) {
                *core = 1.0;
            }
        }
        left
    }
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
