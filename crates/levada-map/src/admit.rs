// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission: what would become of the promises if this were loaded, too.

use crate::machine::Machine;
use crate::mix::{Mix, Problem};
use crate::place::Placement;
use crate::sim::{Scheduling, simulate};
use crate::strategy::{KEPT, remap};
use std::fmt;

/// A promise, and what the application would get.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    pub app: usize,
    pub promised: f64,
    pub expected: f64,
}

impl Promise {
    pub fn kept(&self) -> bool {
        self.expected >= self.promised * (1.0 - KEPT)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    pub placement: Placement,
    /// Units a second of each application.
    pub rates: Vec<f64>,
    pub promises: Vec<Promise>,
    /// In words, one for each promise that would be broken.
    pub broken: Vec<String>,
}

impl Admission {
    pub fn fits(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fits() {
            true => write!(f, "all promises can be kept"),
            false => write!(f, "{}", self.broken.join("; ")),
        }
    }
}

/// Maps the mix, in which what is to be loaded has no cores yet, and says what that does to each
/// promise.
pub fn admit(
    mix: &Mix,
    machine: &Machine,
    current: &[Option<u32>],
    steps: usize,
) -> Result<Admission, Problem> {
    let placement = remap(mix, machine, current)?;
    let rates = simulate(mix, machine, &placement, Scheduling::EventDriven, steps).rates;
    let fastest = machine.cores.iter().map(|c| c.speed).fold(0.0, f64::max);
    let mut promises = Vec::new();
    let mut broken = Vec::new();
    for (i, app) in mix.apps.iter().enumerate() {
        let Some(promised) = app.promise else {
            continue;
        };
        let promise = Promise {
            app: i,
            promised,
            expected: rates[i],
        };
        if !promise.kept() {
            let mut said = format!(
                "{} was promised {promised:.1} {unit}/s and would get {:.1} {unit}/s",
                app.name,
                rates[i],
                unit = app.unit
            );
            let heavy = app.actors.iter().find(|a| a.time == app.heaviest());
            if let Some(heavy) = heavy
                && 1e9 * fastest / heavy.time < promised
            {
                said += &format!(
                    ": {} alone takes a core {:.2} ms for each",
                    heavy.name,
                    heavy.time / fastest / 1e6
                );
            }
            broken.push(said);
        }
        promises.push(promise);
    }
    Ok(Admission {
        placement,
        rates,
        promises,
        broken,
    })
}
