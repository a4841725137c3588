// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Placement files: a table per application that maps actor names to cores.

use super::{orcc, quoted};
use crate::model::mix::{App, Mix};
use crate::model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Application (none if the file names none), actor, core.
pub type NamedPlacement = Vec<(Option<String>, String, u32)>;

pub fn placement_text(mix: &Mix, placement: &[u32]) -> String {
    let mut out =
        "# A core for each actor; actors that are left out are placed by the mapper.\n".to_string();
    for (app, range) in mix.apps.iter().zip(mix.ranges()) {
        let _ = writeln!(out, "\n[{}]", quoted(&app.name));
        for (actor, core) in app.actors.iter().zip(&placement[range]) {
            let _ = writeln!(out, "{} = {core}", quoted(&actor.name));
        }
    }
    out
}

/// Reads a placement file or one of Orcc's mappings (XML).
pub fn read_placement(text: &str) -> Result<NamedPlacement, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('<') {
        return orcc::read(text);
    }
    let file: BTreeMap<String, BTreeMap<String, u32>> = toml::from_str(text).map_err(|e| {
        Problem::new(
            e.to_string().trim_end().to_string(),
            "a placement has a table per application with lines ACTOR = CORE, or is a mapping of Orcc's (XML)",
        )
    })?;
    let lines = file.into_iter().flat_map(|(app, actors)| {
        actors
            .into_iter()
            .map(move |(actor, core)| (Some(app.clone()), actor, core))
    });
    Ok(lines.collect())
}

/// Replaces the separators of hierarchical names by one character.
fn normalized(name: &str) -> String {
    name.replace(['/', '.', ':'], "_")
}

/// The names of an actor. Each part of a fused actor (`a+b`) names the whole.
fn names(actor: &str) -> BTreeSet<String> {
    let all = std::iter::once(actor).chain(actor.split('+'));
    all.map(normalized).collect()
}

/// The number of names that a message lists.
const NAMES_MAX: usize = 20;

/// The names, or the first of them and the number of the others.
fn listed(names: &[impl AsRef<str>], between: &str) -> String {
    let shown = names.iter().take(NAMES_MAX).map(AsRef::as_ref);
    let shown = shown.collect::<Vec<&str>>().join(between);
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Mix {
    /// Pins the actors that a placement names.
    pub fn pin(&mut self, named: &NamedPlacement, cores: usize) -> Result<(), Problem> {
        let before: Vec<Vec<Option<u32>>> = self.apps.iter().map(App::pins).collect();
        // An index by name, since a placement may name many actors, and repeatedly.
        let mut by_name = BTreeMap::<_, Vec<(usize, usize)>>::new();
        for (i, one) in self.apps.iter().enumerate() {
            for (j, a) in one.actors.iter().enumerate() {
                for name in names(&a.name) {
                    let of_this = (Some(one.name.as_str()), name.clone());
                    by_name.entry(of_this).or_default().push((i, j));
                    by_name.entry((None, name)).or_default().push((i, j));
                }
            }
        }
        let (mut pins, mut said) = (before.clone(), BTreeSet::new());
        for (app, actor, core) in named {
            if *core as usize >= cores {
                return Err(Problem::new(
                    format!(
                        "{actor} is placed on core {core}, and the cores are 0 to {}",
                        cores.max(1) - 1
                    ),
                    "place it on one of these, or ask for more workers",
                ));
            }
            let named = (app.as_deref(), normalized(actor));
            let found = by_name.get(&named);
            if !said.insert((named, core)) {
                continue;
            }
            for &(i, j) in found.into_iter().flatten() {
                let name = &self.apps[i].actors[j].name;
                if let Some(pin) = before[i][j].filter(|pin| pin != core) {
                    return Err(Problem::new(
                        format!("{name} is placed on core {core}, and its pin is {pin}"),
                        "remove the pin from the description, or place the actor there",
                    ));
                }
                if let Some(pin) = pins[i][j].filter(|pin| pin != core) {
                    return Err(Problem::new(
                        format!("{name} is placed on core {core} and on core {pin}"),
                        "fused actors are on one core: place them so, or compile with --no-fuse",
                    ));
                }
                pins[i][j] = Some(*core);
            }
            if found.is_none() {
                let apps: Vec<&str> = self.apps.iter().map(|one| one.name.as_str()).collect();
                let (what, there) = match app.as_deref() {
                    Some(app) if !apps.contains(&app) => {
                        (format!("application {app}"), listed(&apps, ", "))
                    }
                    Some(app) if apps.len() > 1 => {
                        (format!("actor {actor} of {app}"), self.actors_of(Some(app)))
                    }
                    app => (format!("actor {actor}"), self.actors_of(app)),
                };
                return Err(Problem::new(
                    format!("the placement names {what}, which does not exist"),
                    format!("it may name {there}"),
                ));
            }
        }
        let actors = self.apps.iter_mut().flat_map(|one| &mut one.actors);
        for (a, pin) in actors.zip(pins.into_iter().flatten()) {
            a.pin = pin;
        }
        Ok(())
    }

    /// The actors of one application or of all, for a message. Applications with the same actors
    /// are listed together.
    fn actors_of(&self, app: Option<&str>) -> String {
        // Applications, and the actors that they have in common.
        let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        let of = |one: &&App| app.is_none_or(|app| app == one.name);
        for one in self.apps.iter().filter(of) {
            let actors: Vec<&str> = one.actors.iter().map(|a| a.name.as_str()).collect();
            match groups.iter_mut().find(|(_, all)| *all == actors) {
                Some((apps, _)) => apps.push(&one.name),
                None => groups.push((vec![&one.name], actors)),
            }
        }
        let alone = self.apps.len() == 1;
        let groups = groups.iter().map(|(apps, actors)| {
            if alone {
                listed(actors, ", ")
            } else {
                format!("{}: {}", listed(apps, ", "), listed(actors, ", "))
            }
        });
        listed(&groups.collect::<Vec<_>>(), "; ")
    }
}
