// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptions: a machine and a mix as TOML, written by hand or recorded from a run.

use super::{quoted, with_present_key};
use crate::model::cost_profile::CostProfile;
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Channel, Mix, clamp_priority};
use crate::model::problem::Problem;
use crate::random::{self, Random};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The content of a description file.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub machine: Machine,
    pub mix: Mix,
    /// The cores of the actors when the description was recorded.
    pub placement: Option<Placement>,
    /// Units per second of each application when the description was recorded.
    pub rates: Vec<Option<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptionFile {
    machine: MachineSpec,
    #[serde(default)]
    app: Vec<AppSpec>,
    /// Cores that no application may use.
    #[serde(default)]
    reserved: Vec<u32>,
    random: Option<RandomSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineSpec {
    cores: usize,
    threads: Option<usize>,
    cache: Option<usize>,
    socket: Option<usize>,
    speeds: Option<Vec<f64>>,
    byte_ns: Option<[f64; 4]>,
    turn_ns: Option<f64>,
    wake_ns: Option<f64>,
    spin_ns: Option<f64>,
    asleep_ns: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppSpec {
    name: String,
    #[serde(default = "one")]
    instances: usize,
    #[serde(default = "units")]
    unit: String,
    #[serde(default)]
    priority: i32,
    reserve_rate: Option<f64>,
    cpus: Option<f64>,
    rate: Option<f64>,
    #[serde(default)]
    exclusive: Vec<u32>,
    profile_units: Option<f64>,
    profile_start: Option<f64>,
    profile_spread: Option<f64>,
    #[serde(default)]
    actor: Vec<ActorSpec>,
    #[serde(default)]
    channel: Vec<ChannelSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActorSpec {
    name: String,
    time_ns: f64,
    #[serde(default = "some")]
    firings: f64,
    pin: Option<u32>,
    core: Option<u32>,
    #[serde(default)]
    cost_profile: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelSpec {
    from: String,
    to: String,
    elements: f64,
    bytes: f64,
    #[serde(default = "room")]
    capacity: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomSpec {
    #[serde(default)]
    seed: u64,
    apps: usize,
    actors: usize,
}

fn one() -> usize {
    1
}
fn units() -> String {
    "units".to_string()
}
fn some() -> f64 {
    100.0
}
fn room() -> f64 {
    512.0
}

/// Limits that no real machine exceeds.
const CORES_MAX: usize = 1 << 16;
const ACTORS_MAX: usize = 1 << 20;

/// Keys that had another name in Levada 0.1.
const RENAMED: [(&str, &str); 6] = [
    ("promise", "reserve_rate"),
    ("share", "cpus"),
    ("course", "cost_profile"),
    ("course_units", "profile_units"),
    ("course_begin", "profile_start"),
    ("course_scatter", "profile_spread"),
];

pub fn read_description(text: &str) -> Result<Description, Problem> {
    let file: DescriptionFile = toml::from_str(text).map_err(|e| {
        Problem::new(
            with_present_key(e.to_string().trim_end(), &RENAMED),
            "`levada map --help` and the guide show what a description holds",
        )
    })?;
    let machine = file.machine.machine()?;
    let mut read = Description {
        machine,
        mix: Mix::default(),
        placement: None,
        rates: Vec::new(),
    };
    let mut recorded: Vec<Option<u32>> = Vec::new();
    let mut names = HashSet::new();
    let mut named_apart = |name: &str| {
        if names.insert(name.to_string()) {
            Ok(())
        } else {
            Err(Problem::new(
                format!("there are two applications {name}"),
                "name them apart",
            ))
        }
    };
    for app in &file.app {
        // Checked before the instances are multiplied: without actors the loop would have no limit.
        if app.actor.is_empty() {
            return Err(Problem::new(
                format!("{} has no actors", app.name),
                "describe them as [[app.actor]], each with a name and time_ns",
            ));
        }
        let actors = app.instances.saturating_mul(app.actor.len());
        if read.mix.actors().saturating_add(actors) > ACTORS_MAX {
            return Err(too_many("actors", ACTORS_MAX));
        }
        let placed = app.app()?;
        for instance in 0..app.instances {
            let mut one = placed.clone();
            if app.instances > 1 {
                one.name = format!("{}-{}", app.name, instance + 1);
                // Instances of a running application are at different positions of the profile.
                let share = instance as f64 / app.instances as f64;
                one.cost_profile = one
                    .cost_profile
                    .map(|c| c.starting_at(c.start() + share * c.units()));
            }
            named_apart(&one.name)?;
            let number = read.mix.apps.len();
            let own = app.exclusive.iter().map(|&c| (c, Some(number)));
            read.mix.exclusive.extend(own);
            read.mix.apps.push(one);
            recorded.extend(app.actor.iter().map(|a| a.core));
            read.rates.push(app.rate);
        }
    }
    if let Some(invented) = file.random {
        let too_few = invented.apps == 0 || invented.actors < invented.apps;
        if too_few || invented.actors > ACTORS_MAX {
            return Err(Problem::new(
                format!(
                    "[random] asks for {} applications with {} actors",
                    invented.apps, invented.actors
                ),
                format!(
                    "at least one application and one actor per application, and at most {ACTORS_MAX} actors"
                ),
            ));
        }
        let mut random = Random::new(invented.seed);
        let mix = random::mix(&mut random, invented.apps, invented.actors);
        mix.apps.iter().try_for_each(|a| named_apart(&a.name))?;
        read.rates.extend(vec![None; mix.apps.len()]);
        recorded.extend(vec![None; mix.actors()]);
        read.mix.apps.extend(mix.apps);
    }
    let reserved = file.reserved.into_iter().map(|c| (c, None));
    read.mix.exclusive.extend(reserved);
    let mut said = HashSet::new();
    read.mix.exclusive.retain(|one| said.insert(*one));
    read.mix.check(&read.machine)?;
    let cores = read.machine.workers() as u32;
    read.placement = recorded
        .into_iter()
        .map(|c| c.filter(|&c| c < cores))
        .collect::<Option<Placement>>();
    Ok(read)
}

fn too_many(what: &str, most: usize) -> Problem {
    Problem::new(
        format!("more than {most} {what}"),
        "describe a smaller machine",
    )
}

impl MachineSpec {
    fn machine(&self) -> Result<Machine, Problem> {
        if self.cores > CORES_MAX {
            return Err(too_many("cores", CORES_MAX));
        }
        let all = self.cores.max(1);
        let mut machine = Machine::with_topology(
            self.cores,
            self.threads.unwrap_or(1),
            self.cache.unwrap_or(self.socket.unwrap_or(all)),
            self.socket.unwrap_or(all),
        );
        if let Some(speeds) = &self.speeds {
            if speeds.len() != self.cores {
                return Err(Problem::new(
                    format!("{} speeds for {} cores", speeds.len(), self.cores),
                    "write one per core, or none",
                ));
            }
            for (core, &speed) in machine.cores.iter_mut().zip(speeds) {
                core.speed = speed;
            }
        }
        let costs = &mut machine.costs;
        costs.byte = self.byte_ns.unwrap_or(costs.byte);
        costs.turn = self.turn_ns.unwrap_or(costs.turn);
        costs.wake = self.wake_ns.unwrap_or(costs.wake);
        costs.spin = self.spin_ns.unwrap_or(costs.spin);
        costs.asleep = self.asleep_ns.unwrap_or(costs.asleep);
        Ok(machine)
    }
}

impl AppSpec {
    fn app(&self) -> Result<App, Problem> {
        let mut numbers = HashMap::new();
        for (i, actor) in self.actor.iter().enumerate() {
            if numbers.insert(actor.name.as_str(), i).is_some() {
                return Err(Problem::new(
                    format!("{} has two actors {}", self.name, actor.name),
                    "name them apart",
                ));
            }
        }
        let end = |name: &str| {
            numbers.get(name).copied().ok_or_else(|| {
                Problem::new(
                    format!("a channel of {} ends at {name}", self.name),
                    "there is no such actor: check the spelling",
                )
            })
        };
        let mut channels = Vec::new();
        for c in &self.channel {
            channels.push(Channel {
                from: end(&c.from)?,
                to: end(&c.to)?,
                elements: c.elements,
                size: c.bytes,
                capacity: c.capacity,
            });
        }
        let actor = |a: &ActorSpec| Actor {
            name: a.name.clone(),
            time: a.time_ns,
            firings: a.firings,
            pin: a.pin,
        };
        Ok(App {
            name: self.name.clone(),
            unit: self.unit.clone(),
            priority: clamp_priority(self.priority),
            reserved_rate: self.reserve_rate,
            cpus: self.cpus,
            actors: self.actor.iter().map(actor).collect(),
            channels,
            cost_profile: self.cost_profile()?,
        })
    }

    fn cost_profile(&self) -> Result<Option<CostProfile>, Problem> {
        let wrong = |what: String, help: &str| Err(Problem::new(what, help));
        let Some(units) = self.profile_units else {
            let varies = self.actor.iter().any(|a| !a.cost_profile.is_empty());
            let more = self.profile_start.or(self.profile_spread).is_some();
            return if varies || more {
                wrong(
                    format!("{} has a cost profile without a number of units", self.name),
                    "write profile_units",
                )
            } else {
                Ok(None)
            };
        };
        let begin = self.profile_start.unwrap_or(0.0);
        if !(begin.is_finite() && begin >= 0.0) {
            return wrong(
                format!("{}: profile_start is {begin}", self.name),
                "write the unit of the cost profile at which the application starts",
            );
        }
        let scatter = self.profile_spread.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&scatter) {
            return wrong(
                format!("{}: profile_spread is {scatter}", self.name),
                "write the fraction by which costs vary between steps, from 0 to 1",
            );
        }
        let costs = self.actor.iter();
        let costs = costs.map(|a| (a.name.as_str(), a.cost_profile.clone()));
        let profile = CostProfile::new(units, costs.collect());
        let profile =
            profile.map_err(|p| Problem::new(format!("{}: {}", self.name, p.what), p.help));
        Ok(Some(profile?.starting_at(begin).with_spread(scatter)))
    }
}

/// The description as text, with one actor or channel per line.
pub fn description_text(described: &Description) -> String {
    let (machine, mix) = (&described.machine, &described.mix);
    let mut out = String::new();
    let run = |same: &dyn Fn(usize) -> bool| {
        (1..machine.cores.len()).take_while(|&i| same(i)).count() + 1
    };
    let cores = &machine.cores;
    let (threads, cache, socket) = (
        run(&|i| cores[i].physical == cores[0].physical),
        run(&|i| cores[i].cache == cores[0].cache),
        run(&|i| cores[i].socket == cores[0].socket),
    );
    let speeds: Vec<f64> = cores.iter().map(|c| c.speed).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "[machine]\ncores = {}\nthreads = {threads}\ncache = {cache}\nsocket = {socket}",
        cores.len()
    );
    if speeds.iter().any(|&s| s != 1.0) {
        let _ = writeln!(out, "speeds = {speeds:?}");
    }
    let _ = writeln!(
        out,
        "byte_ns = {:?}\nturn_ns = {:?}\nwake_ns = {:?}\nspin_ns = {:?}\nasleep_ns = {:?}",
        machine.costs.byte,
        machine.costs.turn,
        machine.costs.wake,
        machine.costs.spin,
        machine.costs.asleep
    );
    for (i, (app, range)) in mix.apps.iter().zip(mix.ranges()).enumerate() {
        let _ = writeln!(out, "\n[[app]]\nname = {}", quoted(&app.name));
        let _ = writeln!(out, "unit = {}", quoted(&app.unit));
        let _ = writeln!(out, "priority = {}", app.priority);
        let begin = app.cost_profile.as_ref().map(CostProfile::start);
        let scatter = app.cost_profile.as_ref().map(CostProfile::spread);
        for (name, value) in [
            ("reserve_rate", app.reserved_rate),
            ("cpus", app.cpus),
            ("rate", described.rates.get(i).copied().flatten()),
            (
                "profile_units",
                app.cost_profile.as_ref().map(CostProfile::units),
            ),
            ("profile_start", begin.filter(|&b| b > 0.0)),
            ("profile_spread", scatter.filter(|&s| s > 0.0)),
        ] {
            if let Some(value) = value {
                let _ = writeln!(out, "{name} = {value:?}");
            }
        }
        let own = mix.exclusive.iter().filter(|e| e.1 == Some(i));
        let own: Vec<u32> = own.map(|e| e.0).collect();
        if !own.is_empty() {
            let _ = writeln!(out, "exclusive = {own:?}");
        }
        let _ = writeln!(out, "actor = [");
        for (n, (actor, number)) in app.actors.iter().zip(range).enumerate() {
            let _ = write!(
                out,
                "  {{ name = {}, time_ns = {:?}, firings = {:?}",
                quoted(&actor.name),
                actor.time,
                actor.firings
            );
            if let Some(pin) = actor.pin {
                let _ = write!(out, ", pin = {pin}");
            }
            if let Some(placement) = &described.placement {
                let _ = write!(out, ", core = {}", placement[number]);
            }
            let costs = app.cost_profile.as_ref().map_or(&[][..], |c| c.costs(n));
            if !costs.is_empty() {
                // Without a decimal point, since there are many numbers.
                let costs: Vec<String> = costs.iter().map(f64::to_string).collect();
                let _ = write!(out, ", cost_profile = [{}]", costs.join(", "));
            }
            let _ = writeln!(out, " }},");
        }
        let _ = writeln!(out, "]\nchannel = [");
        for c in &app.channels {
            let _ = writeln!(
                out,
                "  {{ from = {}, to = {}, elements = {:?}, bytes = {:?}, capacity = {:?} }},",
                quoted(&app.actors[c.from].name),
                quoted(&app.actors[c.to].name),
                c.elements,
                c.size,
                c.capacity
            );
        }
        let _ = writeln!(out, "]");
    }
    let reserved = mix.exclusive.iter().filter(|e| e.1.is_none());
    let reserved: Vec<u32> = reserved.map(|e| e.0).collect();
    if reserved.is_empty() {
        return out;
    }
    // Before the first table header: a key after it would belong to that table.
    format!("reserved = {reserved:?}\n\n{out}")
}
