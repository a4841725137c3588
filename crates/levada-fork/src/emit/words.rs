// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How generated code uses `<levada/fork.h>`: by its macros, or by their expansions.

/// Writes the uses of the macros of `<levada/fork.h>`. [`Macros`] writes the macros; a prelude writes their expansions,
/// since the preprocessor has already run.
pub trait Words {
    fn push(&self, handle: &str, record: &str, variable: &str, run: &str) -> String;
    fn record(&self, slot: &str, record: &str) -> String;
    fn out(&self, handle: &str, record: &str, variable: &str) -> String;
    fn likely(&self, condition: &str) -> String;
}

/// Writes the macros as such.
#[derive(Debug)]
pub struct Macros;

impl Words for Macros {
    fn push(&self, handle: &str, record: &str, variable: &str, run: &str) -> String {
        format!("LVD_FORK_PUSH({handle}, {record}, {variable}, {run});")
    }

    fn record(&self, slot: &str, record: &str) -> String {
        format!("LVD_FORK_RECORD({slot}, {record})")
    }

    fn out(&self, handle: &str, record: &str, variable: &str) -> String {
        format!("LVD_FORK_OUT({handle}, {record}, {variable})")
    }

    fn likely(&self, condition: &str) -> String {
        format!("LVD_LIKELY({condition})")
    }
}
