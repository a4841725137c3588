// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parsers for argument values that several commands share, with their error messages.

pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("write NAME=VALUE".to_string()),
    }
}

pub fn workers(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("write a whole number from 1 to 1024".to_string()),
    }
}

/// A spinning worker checks no timers, so the spin time is limited.
pub fn microseconds(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 0..=1_000_000) => Ok(n),
        _ => Err("write a whole number from 0 to 1000000".to_string()),
    }
}

/// Parses the amount of a limit.
pub fn amount(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(n) if (1e-3..=1e9).contains(&n) => Ok(n),
        _ => Err("write a number from 0.001 to 1000000000".to_string()),
    }
}

pub use levada_host::protocol::lenient::size;

pub fn domain(text: &str) -> Result<u32, String> {
    const LAST: u32 = 0x7fff_ffff;
    match text.parse() {
        Ok(n @ 0..=LAST) => Ok(n),
        _ => Err(format!("write a whole number from 0 to {LAST}")),
    }
}

pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.05..=3600.0).contains(&s) => Ok(s),
        _ => Err("write a number from 0.05 to 3600".to_string()),
    }
}
