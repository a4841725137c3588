// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Declares actors that are written in C or C++ in the C code of a network.

use super::value::flatten;
use super::writer::Names;
use crate::c_types::c_type;
use crate::ir::*;
use crate::ranges::{dimensions, innermost};

/// The extern declaration of its class.
pub fn declaration(actor: &NativeActor) -> String {
    format!("extern const lvd_actor_class {};\n", actor.class)
}

/// Its parameters as a struct of that name; `None` if it has none.
pub fn params(actor: &NativeActor, name: &str) -> Option<String> {
    if actor.params.is_empty() {
        return None;
    }
    let mut names = Names::default();
    let (mut members, mut values) = (String::new(), Vec::new());
    for param in &actor.params {
        let dims = dimensions(&param.ty);
        let n: u64 = dims.iter().map(|n| u64::from(*n)).product();
        let size = if dims.is_empty() {
            String::new()
        } else {
            format!("[{}]", n.max(1))
        };
        let member = names.fresh(&param.name);
        members += &format!("  {} {member}{size};\n", c_type(&param.ty));
        let mut items = Vec::new();
        flatten(&param.value, &dims, innermost(&param.ty), &mut items);
        values.push(if dims.is_empty() {
            items.concat()
        } else {
            format!("{{{}}}", items.join(", "))
        });
    }
    Some(format!(
        "static const struct {{\n{members}}} {name} = {{{}}};\n",
        values.join(", ")
    ))
}
