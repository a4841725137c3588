// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of an admission check as data and text, and the reasons why a prediction is not possible.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of applications that are named in a list.
const NAMES_MAX: usize = 3;

/// Result of an admission check: the effect of a load on all reserved rates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Admission {
    pub verdict: Verdict,
    /// The same as text.
    pub text: String,
    /// Each reservation, as far as its rate could be predicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_reservations: Vec<RateReservation>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All reservations are met.
    Kept,
    /// A reservation is broken: the load was refused, or forced.
    Broken,
    /// Not predictable: something has not been measured yet, or counts no units. An application that then gets less
    /// raises the event `rate_missed`.
    #[default]
    Unknown,
}

/// A reserved rate and the predicted rates, in units per second.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct RateReservation {
    pub application: String,
    pub unit: String,
    pub reserved_rate: f64,
    /// Predicted rate without the load; none: the reservation is part of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_before: Option<f64>,
    /// Predicted rate with the load.
    pub expected_after: f64,
}

impl Admission {
    /// The effect cannot be predicted; `why` says the reason.
    pub fn unknown(why: &str) -> Admission {
        let text = format!(
            "whether reserved rates can be kept is not known: {why}; if one is not, levada top and the event \
             rate_missed say so"
        );
        Admission {
            verdict: Verdict::Unknown,
            text,
            rate_reservations: Vec::new(),
        }
    }

    /// For an application with a reserved rate that counts no units: it runs as without a reservation. `rest` is the
    /// result for the others.
    pub fn uncounted(name: &str, reserved_rate: f64, rest: Option<Admission>) -> Admission {
        let own = format!(
            "{name} {}, and runs as if without",
            no_units_text(reserved_rate)
        );
        let rest = rest.unwrap_or_default();
        Admission {
            text: match rest.text.as_str() {
                "" => own,
                text => format!("{own}; {text}"),
            },
            verdict: match rest.verdict {
                Verdict::Kept => Verdict::Unknown,
                other => other,
            },
            rate_reservations: rest.rate_reservations,
        }
    }
}

/// Applications with behaviour that cannot be predicted, by reason.
#[derive(Default)]
pub(crate) struct UnknownReasons {
    pub unmeasured: Vec<String>,
    /// Neither in this run nor in an earlier one.
    pub uncounted: Vec<String>,
    /// In the earlier run that the prediction would use.
    pub uncounted_before: Vec<String>,
    pub programs: Vec<String>,
    pub other: Option<String>,
}

impl UnknownReasons {
    pub fn text(self) -> Option<String> {
        let (is, are) = ("is", "are each");
        let all = [
            (self.unmeasured, is, are, "not measured yet"),
            (self.uncounted, "has", "have each", "counted no units yet"),
            (
                self.uncounted_before,
                "was",
                "were each",
                "measured in an earlier run that counted no units",
            ),
            (self.programs, is, are, "a C program, which is not measured"),
        ];
        let all = all.into_iter().filter(|(names, ..)| !names.is_empty());
        let reasons = all.map(|(names, one, several, what)| {
            let verb = if names.len() == 1 { one } else { several };
            format!("{} {verb} {what}", named(&names))
        });
        let reasons: Vec<String> = reasons.chain(self.other).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// The first names, and the number of the others.
fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let shown = names[..names.len() - more].join(", ");
    match more {
        0 => shown,
        _ => format!("{shown} and {more} more"),
    }
}

/// The text for a reserved rate of an application that counts no units.
pub fn no_units_text(reserved_rate: f64) -> String {
    format!("has no units of which {reserved_rate:.1} a second could be reserved")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_without_units_are_reported_first() {
        let alone = Admission::uncounted("a", 25.0, None);
        let own = "a has no units of which 25.0 a second could be reserved, and runs as if without";
        assert_eq!(
            (alone.verdict, alone.text.as_str()),
            (Verdict::Unknown, own)
        );
        for (verdict, told) in [
            (Verdict::Kept, Verdict::Unknown),
            (Verdict::Broken, Verdict::Broken),
        ] {
            let rest = Admission {
                verdict,
                text: "b is kept".to_string(),
                rate_reservations: Vec::new(),
            };
            let both = Admission::uncounted("a", 25.0, Some(rest));
            assert_eq!(
                (both.verdict, both.text),
                (told, format!("{own}; b is kept"))
            );
        }
    }

    #[test]
    fn unknown_applications_are_named_in_one_sentence() {
        let names_of = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(UnknownReasons::default().text(), None);
        let unknown = UnknownReasons {
            unmeasured: names_of(&["a"]),
            uncounted: names_of(&["r", "s"]),
            uncounted_before: names_of(&["t"]),
            programs: names_of(&["b", "c", "d", "e", "f"]),
            ..UnknownReasons::default()
        };
        let text = unknown.text().unwrap();
        let programs = "b, c, d and 2 more are each a C program, which is not measured";
        let uncounted = "r, s have each counted no units yet";
        let before = "t was measured in an earlier run that counted no units";
        assert_eq!(
            text,
            format!("a is not measured yet; {uncounted}; {before}; {programs}")
        );
        let said = Admission::unknown(&text);
        assert_eq!(said.verdict, Verdict::Unknown);
        assert!(
            said.text.contains("is not known: a is not measured yet"),
            "{said:?}"
        );
    }
}
