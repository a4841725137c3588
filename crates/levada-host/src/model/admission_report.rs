// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a load does to the promises, as it is told: with the numbers, and in words; and of whom nothing is known.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// So many are named where something is so of many.
const NAMED: usize = 3;

/// What a load does to the promises, its own and those of others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Admission {
    pub verdict: Verdict,
    /// The same in words.
    pub text: String,
    /// Each promise, as far as it could be foreseen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promise: Vec<Promise>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It breaks none.
    Kept,
    /// It breaks one, and was loaded anyway, or refused.
    Broken,
    /// Something has not been measured yet: who has less than it was promised then is late. Or it counts nothing that
    /// could be promised.
    #[default]
    Unknown,
}

/// What an application is promised, and what it can have, in units a second.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Promise {
    pub application: String,
    pub unit: String,
    pub promised: f64,
    /// Without the load; none: it is promised with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
    /// With it.
    pub after: f64,
}

impl Admission {
    /// Nobody knows what becomes of the promises, and why.
    pub fn unknown(why: &str) -> Admission {
        let text = format!(
            "whether promises can be kept is not known: {why}; if one is not, levada top and the event late say so"
        );
        Admission {
            verdict: Verdict::Unknown,
            text,
            promise: Vec::new(),
        }
    }

    /// Of one that was promised something and counts nothing: it runs as if without, whatever else there is to be said.
    pub fn uncounted(name: &str, promised: f64, rest: Option<Admission>) -> Admission {
        let own = format!("{name} {}, and runs as if without", no_units(promised));
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
            promise: rest.promise,
        }
    }
}

/// Of whom it is not known what they will do.
#[derive(Default)]
pub(crate) struct Unknown {
    pub unmeasured: Vec<String>,
    /// Until now, nor in an earlier run.
    pub uncounted: Vec<String>,
    /// In an earlier run, by which it would be judged.
    pub uncounted_before: Vec<String>,
    pub programs: Vec<String>,
    pub other: Option<String>,
}

impl Unknown {
    pub fn text(self) -> Option<String> {
        let (is, are) = ("is", "are each");
        let all = [
            (self.unmeasured, is, are, "not measured yet"),
            (
                self.uncounted,
                "has",
                "have each",
                "counted nothing yet that could be promised",
            ),
            (
                self.uncounted_before,
                "was",
                "were each",
                "measured in an earlier run that counted nothing that could be promised",
            ),
            (self.programs, is, are, "a C program, which is not measured"),
        ];
        let all = all.into_iter().filter(|(who, ..)| !who.is_empty());
        let reasons = all.map(|(who, one, several, what)| {
            let verb = if who.len() == 1 { one } else { several };
            format!("{} {verb} {what}", named(&who))
        });
        let reasons: Vec<String> = reasons.chain(self.other).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// These names, or the first of them and how many more there are.
fn named(who: &[String]) -> String {
    let more = who.len().saturating_sub(NAMED);
    let shown = who[..who.len() - more].join(", ");
    match more {
        0 => shown,
        _ => format!("{shown} and {more} more"),
    }
}

/// What is told of a promise to what counts nothing.
pub fn no_units(promised: f64) -> String {
    format!("has no units of which {promised:.1} a second could be promised")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_nothing_is_said_before_all_else() {
        let alone = Admission::uncounted("a", 25.0, None);
        let own = "a has no units of which 25.0 a second could be promised, and runs as if without";
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
                promise: Vec::new(),
            };
            let both = Admission::uncounted("a", 25.0, Some(rest));
            assert_eq!(
                (both.verdict, both.text),
                (told, format!("{own}; b is kept"))
            );
        }
    }

    #[test]
    fn of_whom_nothing_is_known_is_said_in_one_sentence() {
        let who = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(Unknown::default().text(), None);
        let unknown = Unknown {
            unmeasured: who(&["a"]),
            uncounted: who(&["r", "s"]),
            uncounted_before: who(&["t"]),
            programs: who(&["b", "c", "d", "e", "f"]),
            ..Unknown::default()
        };
        let text = unknown.text().unwrap();
        let programs = "b, c, d and 2 more are each a C program, which is not measured";
        let uncounted = "r, s have each counted nothing yet that could be promised";
        let before = "t was measured in an earlier run that counted nothing that could be promised";
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
