// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CAL's `half`: IEEE 754 binary16. A `float` represents each of its values exactly, so a `half` is stored as a
//! `float`, and rounded to binary16 when it is stored.

/// The nearest number of 16 bits; of two equally near ones, the one with last bit 0.
pub fn nearest(x: f32) -> f32 {
    let (sign, rest) = (x.to_bits() & 0x8000_0000, x.to_bits() & 0x7fff_ffff);
    let magnitude = f32::from_bits(rest);
    let rounded = if x.is_nan() {
        return x;
    } else if magnitude >= 65520.0 {
        // More than half way to the successor of the largest number.
        f32::INFINITY
    } else if magnitude < 6.103_515_6e-5 {
        // Subnormal numbers have a spacing of 2^-24, like floats at 0.5.
        (magnitude + 0.5) - 0.5
    } else {
        // The 13 lowest bits of a float's fraction are rounded away.
        f32::from_bits((rest + 0xfff + (rest >> 13 & 1)) & !0x1fff)
    };
    f32::from_bits(rounded.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    /// The value of a finite positive binary16 number, by definition.
    fn value(bits: u16) -> f32 {
        let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
        match exponent {
            0 => fraction * 2f32.powi(-24),
            _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
        }
    }

    #[test]
    fn each_is_its_own_nearest_and_all_between_go_to_the_nearer() {
        for bits in 0..0x7c00 {
            let this = value(bits);
            assert_eq!(nearest(this), this, "{bits:#x}");
            assert_eq!(nearest(-this).to_bits(), (-this).to_bits(), "{bits:#x}");
            // The successor of the largest number would be 65536.
            let (next, reached) = match bits {
                0x7bff => (65536.0, f32::INFINITY),
                _ => (value(bits + 1), value(bits + 1)),
            };
            let middle = (this + next) / 2.0;
            let even = if bits % 2 == 0 { this } else { reached };
            assert_eq!(nearest(middle), even, "{bits:#x}");
            let (below, above) = (
                f32::from_bits(middle.to_bits() - 1),
                f32::from_bits(middle.to_bits() + 1),
            );
            assert_eq!(nearest(below), this, "{bits:#x}");
            assert_eq!(nearest(above), reached, "{bits:#x}");
        }
        assert!(nearest(f32::NAN).is_nan());
        assert_eq!(nearest(f32::INFINITY), f32::INFINITY);
        assert_eq!(nearest(f32::NEG_INFINITY), f32::NEG_INFINITY);
    }
}
