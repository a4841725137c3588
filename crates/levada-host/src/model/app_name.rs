// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of applications.

use crate::model::error::{Kind, Refusal};

/// Longer names would fit nowhere.
pub(crate) const LONGEST_NAME: usize = 64;

/// The names that users give stand in paths, in commands and in tables.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let starts = name
        .chars()
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '_');
    match starts && name.chars().all(good) && name.len() <= LONGEST_NAME {
        true => Ok(()),
        false => Err(Refusal::new(
            Kind::Wrong,
            format!("{name:?} is no name for an application"),
        )
        .help(format!(
            "use at most {LONGEST_NAME} letters, digits, dots, dashes and underscores, a letter, digit or underscore first"
        ))),
    }
}
