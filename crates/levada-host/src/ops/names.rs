// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assigns names to applications: the requested one, or a free one.

use crate::lifecycle::load::name_taken;
use crate::model::app_name::NAME_BYTES_MAX;
use crate::ops::load::is_live;
use crate::ops::pending::PendingLoad;
use crate::ops::ready::{PreparedLoad, pins};
use crate::ops::state::ServerState;
use crate::protocol::Failed;
use std::collections::BTreeSet;

/// Assigns the name of each, and what depends on it.
pub(crate) fn assign_names(
    served: &ServerState,
    ready: &mut [PreparedLoad],
    names: &BTreeSet<String>,
    coming: &mut PendingLoad,
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
        let owner = || several.then(|| name.clone());
        if is_live(served, &name) {
            return Err(Failed::from(name_taken(&name)).of(owner()));
        }
        // Pending before other requests can find it, and during the admission check.
        coming.add(&name);
        let Some(load) = &mut one.load else {
            continue;
        };
        let pins = pins(served, &name, &one.request, load);
        load.pins = pins.map_err(|failed| failed.of(owner()))?;
        load.name = name;
    }
    Ok(())
}

/// The requested name, or the one that it gets if the name of its network is free.
pub(crate) fn likely_name(one: &PreparedLoad) -> String {
    let name = one.request.name.clone();
    name.unwrap_or_else(|| short_name(&one.prepared.network))
}

/// The last part of a network's name.
fn short_name(class: &str) -> String {
    // A suffix with a number must fit into the longest name.
    const BASE_NAME_BYTES_MAX: usize = NAME_BYTES_MAX - 16;
    let short = class.rsplit('.').next().unwrap_or(class);
    let mut name = String::new();
    for c in short.chars().filter(|c| c.is_alphanumeric() || *c == '_') {
        if name.len() + c.len_utf8() > BASE_NAME_BYTES_MAX {
            break;
        }
        name.push(c);
    }
    if name.is_empty() {
        "app".to_string()
    } else {
        name
    }
}

/// That name, with a number if it is taken or in `wanted`.
fn free_name(served: &ServerState, class: &str, wanted: &BTreeSet<String>) -> String {
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
