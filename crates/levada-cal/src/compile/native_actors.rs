// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actors that are written in C or C++: finds the files that define them, and reports those that none defines.

use crate::diag::Diagnostic;
use crate::{compile, ir};
use std::sync::Arc;

/// Whether this C or C++ text defines an actor class (`lvd_actor_class`) of this name.
fn defines(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split("lvd_actor_class").skip(1).any(|rest| {
        let rest = rest.trim_start().strip_prefix(name);
        rest.is_some_and(|r| !r.starts_with(word) && r.trim_start().starts_with(['=', '{']))
    })
}

/// The classes `wanted` that neither one of these texts nor an object defines.
pub fn missing(wanted: &[String], texts: &[String], object: impl Fn(&str) -> bool) -> Vec<String> {
    let defined = |n: &String| texts.iter().any(|t| defines(t, n)) || object(n);
    wanted.iter().filter(|n| !defined(n)).cloned().collect()
}

/// Applications for Orcc contain native actors without a definition. These are replaced by actors that never fire,
/// with a warning.
pub fn stand_ins(
    net: &ir::Network,
    options: &compile::Options,
) -> (Option<ir::Network>, Vec<Diagnostic>) {
    let any = net.instances.iter().any(|i| i.actor.native.is_some());
    if !options.lenient || !any {
        return (None, Vec::new());
    }
    let texts: Vec<String> = options
        .natives
        .iter()
        .flat_map(|p| compile::read(p))
        .collect();
    let defined = |n: &str| {
        let objects = || options.natives.iter().any(|p| compile::is_shared_object(p));
        let text = |t: &String| defines(t, n);
        texts.iter().any(text) || objects()
    };
    let mut net = net.clone();
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for instance in &mut net.instances {
        if let Some(native) = &instance.actor.native
            && !defined(&native.class)
        {
            let message = format!(
                "no C file defines the native actor {}: {} never fires",
                native.class, instance.name
            );
            warnings.push(Diagnostic::warning("native-actor", message));
            let actor = Arc::make_mut(&mut instance.actor);
            actor.native = None;
        }
    }
    (Some(net), warnings)
}

#[cfg(test)]
mod tests {
    use super::defines;

    #[test]
    fn classes_are_found_in_c_and_cpp() {
        assert!(defines("const lvd_actor_class Gain = {\n", "Gain"));
        assert!(defines(
            "extern \"C\" const lvd_actor_class Gain{\n",
            "Gain"
        ));
        assert!(!defines("extern const lvd_actor_class Gain;\n", "Gain"));
        assert!(!defines("const lvd_actor_class Gains = {\n", "Gain"));
        assert!(!defines("const lvd_actor_class *Gain = 0;\n", "Gain"));
    }
}
