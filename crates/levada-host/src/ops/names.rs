// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The names of those that are loaded: the wanted ones, or ones that are free.

use crate::lifecycle::load::taken;
use crate::model::app_name::LONGEST_NAME;
use crate::ops::load::is_live;
use crate::ops::pending::Coming;
use crate::ops::ready::{Ready, pins};
use crate::ops::state::Served;
use crate::protocol::Failed;
use std::collections::BTreeSet;

/// Gives each its name, and what depends on that.
pub(crate) fn name_all(
    served: &Served,
    ready: &mut [Ready],
    names: &BTreeSet<String>,
    coming: &mut Coming,
) -> Result<(), Failed> {
    let several = ready.len() > 1;
    let mut names = names.clone();
    for one in ready {
        let name = match one.request.name.take() {
            Some(name) => name,
            None => free_name(served, &one.prepared.network, &names),
        };
        names.insert(name.clone());
        one.request.name = Some(name.clone());
        let whose = || several.then(|| name.clone());
        if is_live(served, &name) {
            return Err(Failed::from(taken(&name)).of(whose()));
        }
        // Before anybody finds it, and while it is judged.
        coming.add(&name);
        let Some(load) = &mut one.load else {
            continue;
        };
        let pins = pins(served, &name, &one.request, load);
        load.pins = pins.map_err(|failed| failed.of(whose()))?;
        load.name = name;
    }
    Ok(())
}

/// The one that it asks for, or has if that of its network is free.
pub(crate) fn likely_name(one: &Ready) -> String {
    let name = one.request.name.clone();
    name.unwrap_or_else(|| short_name(&one.prepared.network))
}

/// The last part of a network's name.
fn short_name(class: &str) -> String {
    // A number behind it must find room in the longest name.
    const LONGEST: usize = LONGEST_NAME - 16;
    let short = class.rsplit('.').next().unwrap_or(class);
    let mut name = String::new();
    for c in short.chars().filter(|c| c.is_alphanumeric() || *c == '_') {
        if name.len() + c.len_utf8() > LONGEST {
            break;
        }
        name.push(c);
    }
    match name.is_empty() {
        true => "app".to_string(),
        false => name,
    }
}

/// That, and a number if it is taken, or `wanted` by another.
fn free_name(served: &Served, class: &str, wanted: &BTreeSet<String>) -> String {
    let short = short_name(class);
    let is_free = |name: &str| !wanted.contains(name) && !is_live(served, name);
    let numbered = (2..).map(|n| format!("{short}-{n}"));
    std::iter::once(short.clone())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::model::app_name::check_name;
    use crate::ops::names::short_name;

    #[test]
    fn what_is_named_by_its_network_has_a_good_name() {
        for class in [
            "p.Top",
            "p.__",
            "-",
            &"p.x".repeat(99),
            &"\u{6f22}".repeat(40),
        ] {
            let name = short_name(class);
            assert!(check_name(&format!("{name}-1234567")).is_ok(), "{name}");
        }
        assert_eq!(short_name("p.Top"), "Top");
    }
}
