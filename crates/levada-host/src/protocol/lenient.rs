// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lenient JSON values of requests: a number, or the text that the command line accepts for it.

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de::IntoDeserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Parses a number of bytes, such as 500000, 64K, 10M or 1G.
pub fn size(text: &str) -> Result<u64, String> {
    levada_text::parse_bytes(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "write a number of bytes, such as 500000, 64K, 10M or 1G".to_string())
}

/// Deserializes a `T`, or text that `parse` converts to one.
struct OrText<T> {
    parse: fn(&str) -> Result<T, String>,
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OrText<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or the text that the command line takes for it")
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Option<T>, D::Error> {
        value.deserialize_any(self)
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Option<T>, E> {
        T::deserialize(n.into_deserializer()).map(Some)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Option<T>, E> {
        T::deserialize(n.into_deserializer()).map(Some)
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Option<T>, E> {
        T::deserialize(n.into_deserializer()).map(Some)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<T>, E> {
        let parsed = (self.parse)(text);
        parsed
            .map(Some)
            .map_err(|why| E::custom(format_args!("{text:?}: {why}")))
    }
}

fn or_text<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let kind = PhantomData;
    value.deserialize_option(OrText { parse, kind })
}

pub fn bytes<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    or_text(value, size)
}

pub fn number<'de, D: Deserializer<'de>, T: Deserialize<'de> + FromStr>(
    value: D,
) -> Result<Option<T>, D::Error> {
    or_text(value, |text| {
        text.parse().map_err(|_| "write a number".to_string())
    })
}

/// The same, with 0 for null.
pub fn number_or_none<'de, D, T>(value: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromStr + Default,
{
    Ok(number(value)?.unwrap_or_default())
}

/// The number of an event, from a query string.
pub fn event<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value)?;
    text.parse().map(Some).map_err(|_| {
        serde::de::Error::custom(format!(
            "{text:?} is no number of an event: write the \"number\" of the last one that you know, or 0 for all"
        ))
    })
}

/// A value that becomes text, and may be written as text, a number or a boolean.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Text, D::Error> {
        value.deserialize_any(AnyText)
    }
}

struct AnyText;

impl Visitor<'_> for AnyText {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true or false")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_string()))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Text, E> {
        Ok(Text(n.to_string()))
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Text, E> {
        Ok(Text(n.to_string()))
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Text, E> {
        Ok(Text(format!("{n:?}")))
    }

    fn visit_bool<E: de::Error>(self, yes: bool) -> Result<Text, E> {
        Ok(Text(yes.to_string()))
    }
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut out = BTreeMap::new();
        while let Some((name, Text(value))) = all.next_entry::<String, Text>()? {
            out.insert(name, value);
        }
        Ok(out)
    }
}

pub fn settings<'de, D: Deserializer<'de>>(value: D) -> Result<BTreeMap<String, String>, D::Error> {
    value.deserialize_map(Texts)
}

pub fn texts<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let all = Vec::<Text>::deserialize(value)?;
    Ok(all.into_iter().map(|Text(text)| text).collect())
}

/// Deserializes a struct from a map only. Serde would also accept a list of values by position.
pub struct Named<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Named<T>, D::Error> {
        value.deserialize_map(ByName(PhantomData))
    }
}

struct ByName<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ByName<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, with values by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, all: A) -> Result<Named<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(all)).map(Named)
    }
}

pub fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Named::deserialize(value).map(|Named(one)| one)
}

pub fn all_named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Named<T>>::deserialize(value)?;
    Ok(all.into_iter().map(|Named(one)| one).collect())
}

// ---- schemas of the OpenAPI document -----------------------------------------------------------

/// A number of bytes; text may end in K, M or G.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
pub enum Bytes {
    Number(u64),
    Text(String),
}

/// A number, or its text.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
pub enum Amount {
    Number(f64),
    Text(String),
}

/// A value that is read as text.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
pub enum Given {
    Text(String),
    Number(f64),
    Truth(bool),
}

#[cfg(test)]
mod tests {
    use crate::protocol::lenient::Named;
    use crate::protocol::{LoadRequest, Manifest, MoveRequest, ReplaceRequest};
    use serde::de::DeserializeOwned;
    use serde_json::json;

    /// Values by position would be misread as soon as a field is added.
    #[test]
    fn a_list_is_no_request() {
        fn refused<T: DeserializeOwned>(text: &str) -> String {
            match serde_json::from_str::<Named<T>>(text) {
                Ok(_) => panic!("{text}"),
                Err(e) => e.to_string(),
            }
        }
        let wanted = "expected an object, with values by their names at line 1";
        let several = r#"{"application": [{"network": "a"}, ["b"]]}"#;
        for said in [
            refused::<LoadRequest>("[]"),
            refused::<LoadRequest>(r#"["a.xdf", [], "/tmp"]"#),
            refused::<LoadRequest>("null"),
            refused::<MoveRequest>(r#"["a", 1]"#),
            refused::<ReplaceRequest>(r#"{"load": ["a.xdf"]}"#),
            refused::<Manifest>("[[]]"),
            refused::<Manifest>(several),
        ] {
            assert!(said.contains(wanted), "{said}");
        }
        let all = several.replace("[\"b\"]", "{}");
        let read = serde_json::from_str::<Named<Manifest>>(&all);
        assert_eq!(read.unwrap().0.application[0].network, "a");
    }

    #[test]
    fn values_may_be_written_as_the_command_line_takes_them() {
        let read = |value| serde_json::from_value::<LoadRequest>(value);
        for memory in [json!("100M"), json!(100 << 20), json!("104857600")] {
            assert_eq!(
                read(json!({"memory": memory})).unwrap().memory,
                Some(100 << 20)
            );
        }
        let all = json!({"memory": null, "rate": "25", "cpus": "0.5", "timeout": "3", "random_buffer_sizes": "7",
            "set": {"n": 3, "on": true, "x": 0.5, "s": "text"}, "option": {"port": 80},
            "arguments": [1, "-v", -2.5]});
        let read_all = read(all).unwrap();
        assert_eq!(read_all.memory, None);
        assert_eq!((read_all.rate, read_all.cpus), (Some(25.0), Some(0.5)));
        assert_eq!(
            (read_all.timeout, read_all.random_buffer_sizes),
            (Some(3.0), Some(7))
        );
        let set: Vec<&str> = read_all.set.values().map(String::as_str).collect();
        assert_eq!(set, ["3", "true", "text", "0.5"]);
        assert_eq!(read_all.option["port"], "80");
        assert_eq!(read_all.arguments, ["1", "-v", "-2.5"]);
        assert_eq!(read(json!({"rate": 25})).unwrap().rate, Some(25.0));
        for (priority, is) in [(json!("-3"), -3), (json!(4), 4), (json!(null), 0)] {
            assert_eq!(read(json!({"priority": priority})).unwrap().priority, is);
        }
        for (wrong, why) in [
            (json!({"memory": "100X"}), "such as 500000"),
            (json!({"memory": -1}), "u64"),
            (json!({"memory": "99999999999G"}), "such as 500000"),
            (json!({"rate": "fast"}), "write a number"),
            (json!({"priority": "1.5"}), "write a number"),
            (json!({"priority": 1.5}), "i32"),
            (json!({"set": {"n": [1]}}), "a text, a number"),
            (json!({"memory": {}}), "command line"),
        ] {
            let said = read(wrong.clone()).unwrap_err().to_string();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
