// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of applications: which are valid.

use crate::model::error::{Kind, Refusal};

/// Maximum length in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Checks a name given by a user; names are used in paths, commands and tables.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let starts = name
        .chars()
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '_');
    if starts && name.chars().all(good) && name.len() <= NAME_BYTES_MAX {
        Ok(())
    } else {
        Err(Refusal::new(
            Kind::Wrong,
            format!("{name:?} is not a valid name for an application"),
        )
        .help(format!(
            "use at most {NAME_BYTES_MAX} letters, digits, dots, dashes and underscores; begin with a letter, \
             a digit or an underscore"
        )))
    }
}
