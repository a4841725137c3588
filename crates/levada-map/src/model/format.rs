// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatting of numbers for messages.

/// Formats a number briefly: in exponent notation if it is very small or very large.
pub fn format_number(number: f64) -> String {
    let size = number.abs();
    if size > 0.0 && size.is_finite() && !(1e-6..1e16).contains(&size) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_formatted_briefly() {
        let all = [0.0, 1.5, -25.0, 1e9, 1e300, -1e-300, f64::INFINITY];
        let said = ["0", "1.5", "-25", "1000000000", "1e300", "-1e-300", "inf"];
        assert_eq!(all.map(super::format_number), said);
    }
}
