// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of cores in the formats of the kernel: lists ("0-2,5") and hexadecimal masks ("27").

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Above the limit of any kernel: a list with a larger number is a mistake.
const CORES_MAX: u32 = 8192;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreSet(BTreeSet<u32>);

impl CoreSet {
    pub fn one(core: u32) -> CoreSet {
        CoreSet(BTreeSet::from([core]))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, core: u32) -> bool {
        self.0.contains(&core)
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    pub fn without(&self, other: &CoreSet) -> CoreSet {
        CoreSet(self.0.difference(&other.0).copied().collect())
    }

    pub fn and(&self, other: &CoreSet) -> CoreSet {
        CoreSet(self.0.intersection(&other.0).copied().collect())
    }

    pub fn or(&self, other: &CoreSet) -> CoreSet {
        CoreSet(self.0.union(&other.0).copied().collect())
    }

    pub fn intersects(&self, other: &CoreSet) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    pub fn is_subset(&self, other: &CoreSet) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Parses a mask as in the kernel's files: hexadecimal, in groups of 32 bits.
    pub fn from_mask(text: &str) -> Option<CoreSet> {
        let digits: Vec<u32> = text
            .trim()
            .chars()
            .filter(|c| *c != ',')
            .map(|c| c.to_digit(16))
            .collect::<Option<_>>()?;
        let mut set = CoreSet::default();
        for (i, digit) in digits.iter().rev().enumerate() {
            for bit in 0..4 {
                if digit >> bit & 1 == 1 {
                    set.0.insert(4 * i as u32 + bit);
                }
            }
        }
        Some(set).filter(|_| !digits.is_empty())
    }

    pub fn to_mask(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let mut bits = vec![0u32; words as usize];
        for core in self.iter() {
            bits[core as usize / 32] |= 1 << (core % 32);
        }
        let mut parts: Vec<String> = bits.iter().rev().map(|w| format!("{w:08x}")).collect();
        let first = parts[0].trim_start_matches('0').to_string();
        parts[0] = if first.is_empty() { "0".into() } else { first };
        parts.join(",")
    }
}

impl FromIterator<u32> for CoreSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cores: I) -> CoreSet {
        CoreSet(cores.into_iter().collect())
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for CoreSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CoreSet, String> {
        let wrong = || {
            format!(
                "{:?} is no list of cores such as 3 or 2,3 or 0-2,5",
                text.trim()
            )
        };
        let number = |t: &str| {
            let n: u32 = t.trim().parse().map_err(|_| wrong())?;
            Some(n).filter(|n| *n < CORES_MAX).ok_or_else(wrong)
        };
        let mut set = CoreSet::default();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(wrong());
            }
            set.0.extend(first..=last);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, shown) in [
            ("3", "3"),
            ("0-2,5", "0-2,5"),
            ("5,0,1,2\n", "0-2,5"),
            ("", ""),
            ("63-64", "63-64"),
        ] {
            assert_eq!(text.parse::<CoreSet>().unwrap().to_string(), shown);
        }
        for wrong in ["a", "1-", "-1", "3-2", "1,,2", "8192", "0-99999999", "1 2"] {
            assert!(wrong.parse::<CoreSet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn masks_are_read_and_written() {
        for (mask, list) in [
            ("3", "0-1"),
            ("27", "0-2,5"),
            ("1,00000000", "32"),
            ("ffffffff,ffffffff", "0-63"),
            ("0", ""),
        ] {
            let set = CoreSet::from_mask(mask).unwrap();
            assert_eq!(set.to_string(), list);
            assert_eq!(set.to_mask(), mask);
        }
        assert_eq!(CoreSet::from_mask("00000003"), CoreSet::from_mask("3"));
        assert_eq!(CoreSet::from_mask("x"), None);
        assert_eq!(CoreSet::from_mask(""), None);
    }

    #[test]
    fn sets_are_joined_and_parted() {
        let set = |t: &str| t.parse::<CoreSet>().unwrap();
        assert_eq!(set("0-3").without(&set("3")), set("0-2"));
        assert_eq!(set("0-3").and(&set("2-5")), set("2-3"));
        assert_eq!(set("0").or(&set("2")), set("0,2"));
        assert!(set("0-3").intersects(&set("3")) && !set("0-2").intersects(&set("3")));
        assert!(set("1").is_subset(&set("0-1")) && !set("0-1").is_subset(&set("1")));
    }
}
