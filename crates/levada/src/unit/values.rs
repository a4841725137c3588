// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments and results of a procedure on the command line, as little-endian bytes: the format of processors
//! behind a window.

use crate::common::output::{Failure, failure_with};
use serde_json::{Value, json};
use std::str::FromStr;

/// The concatenated bytes of the arguments.
pub fn argument(parts: &[String]) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    for part in parts {
        match part
            .split_once(':')
            .and_then(|(kind, value)| one(kind, value))
        {
            Some(Ok(more)) => bytes.extend(more),
            Some(Err(why)) => return failure_with(format!("argument {part}: {why}"), HELP),
            None => return failure_with(format!("what is the argument {part}?"), HELP),
        }
    }
    Ok(bytes)
}

const HELP: &str = "write u32:7, i64:-3, f64:2.5, text:words, hex:0a0b or file:PATH";

fn number<T: FromStr>(value: &str, bytes: fn(T) -> Vec<u8>) -> Option<Result<Vec<u8>, String>> {
    Some(
        value
            .parse()
            .map(bytes)
            .map_err(|_| "that number it cannot be".to_string()),
    )
}

fn one(kind: &str, value: &str) -> Option<Result<Vec<u8>, String>> {
    match kind {
        "u8" => number(value, |x: u8| x.to_le_bytes().into()),
        "u16" => number(value, |x: u16| x.to_le_bytes().into()),
        "u32" => number(value, |x: u32| x.to_le_bytes().into()),
        "u64" => number(value, |x: u64| x.to_le_bytes().into()),
        "i8" => number(value, |x: i8| x.to_le_bytes().into()),
        "i16" => number(value, |x: i16| x.to_le_bytes().into()),
        "i32" => number(value, |x: i32| x.to_le_bytes().into()),
        "i64" => number(value, |x: i64| x.to_le_bytes().into()),
        "f32" => number(value, |x: f32| x.to_le_bytes().into()),
        "f64" => number(value, |x: f64| x.to_le_bytes().into()),
        "text" => Some(Ok(value.as_bytes().to_vec())),
        "hex" => Some(unhex(value).ok_or_else(|| "two digits a byte".to_string())),
        "file" => Some(std::fs::read(value).map_err(|e| e.to_string())),
        _ => None,
    }
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = |i| {
        text.get(i..i + 2)
            .and_then(|d| u8::from_str_radix(d, 16).ok())
    };
    match text.len() % 2 {
        0 if text.bytes().all(|b| b.is_ascii_hexdigit()) => {
            (0..text.len()).step_by(2).map(digits).collect()
        }
        _ => None,
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn each<const N: usize>(bytes: &[u8], value: fn([u8; N]) -> Value) -> Option<Vec<Value>> {
    let chunks = bytes.chunks_exact(N);
    let whole = chunks.remainder().is_empty();
    whole.then(|| {
        chunks
            .map(|c| value(c.try_into().expect("the bytes of a value")))
            .collect()
    })
}

/// Formats a result in the given kind; several numbers become a list.
pub fn result(kind: &str, bytes: &[u8]) -> Result<Value, Failure> {
    let all = match kind {
        "hex" => return Ok(json!(hex(bytes))),
        "text" => return Ok(json!(String::from_utf8_lossy(bytes))),
        "u8" => each(bytes, |x| json!(u8::from_le_bytes(x))),
        "u16" => each(bytes, |x| json!(u16::from_le_bytes(x))),
        "u32" => each(bytes, |x| json!(u32::from_le_bytes(x))),
        "u64" => each(bytes, |x| json!(u64::from_le_bytes(x))),
        "i8" => each(bytes, |x| json!(i8::from_le_bytes(x))),
        "i16" => each(bytes, |x| json!(i16::from_le_bytes(x))),
        "i32" => each(bytes, |x| json!(i32::from_le_bytes(x))),
        "i64" => each(bytes, |x| json!(i64::from_le_bytes(x))),
        "f32" => each(bytes, |x| json!(f32::from_le_bytes(x))),
        "f64" => each(bytes, |x| json!(f64::from_le_bytes(x))),
        _ => {
            return failure_with(
                format!("what is a result of {kind}?"),
                "write u32, f64, text or hex",
            );
        }
    };
    match all {
        Some(values) => Ok(Value::Array(values)),
        None => failure_with(
            format!(
                "the result has {} bytes, which are no row of {kind}",
                bytes.len()
            ),
            "without --result it is shown in hex",
        ),
    }
}

/// A stream's name, the bytes of its elements, and a file: NAME:BYTES=FILE.
pub fn flow(spec: &str) -> Result<(String, u32, String), Failure> {
    let parts = spec.split_once('=').and_then(|(stream, file)| {
        let (name, size) = stream.rsplit_once(':')?;
        let size: u32 = size.parse().ok().filter(|s| (1..=65536).contains(s))?;
        (!name.is_empty() && !file.is_empty()).then(|| (name.to_string(), size, file.to_string()))
    });
    match parts {
        Some(parts) => Ok(parts),
        None => failure_with(
            format!("what is the stream {spec}?"),
            "write its name, the bytes of an element and a file: samples:4=in.raw, or 1:4=-",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(parts: &[&str]) -> Vec<u8> {
        let parts: Vec<String> = parts.iter().map(|p| p.to_string()).collect();
        argument(&parts).unwrap_or_else(|e| panic!("{}", e.what))
    }

    #[test]
    fn arguments_lie_behind_each_other() {
        assert_eq!(
            bytes(&["u16:258", "i8:-1", "text:a:b", "hex:0A0b"]),
            b"\x02\x01\xffa:b\x0a\x0b"
        );
        assert_eq!(bytes(&["f64:1"]), 1f64.to_le_bytes());
    }

    #[test]
    fn invalid_arguments_are_reported() {
        for part in [
            "7",
            "u8:256",
            "u32:-1",
            "hex:abc",
            "hex:zz",
            "file:/nowhere/at/all",
            "v:1",
        ] {
            assert!(argument(&[part.to_string()]).is_err(), "{part}");
        }
    }

    #[test]
    fn results_are_rows() {
        assert_eq!(result("i16", &[255, 255, 2, 0]).ok(), Some(json!([-1, 2])));
        assert!(result("u32", &[1, 2, 3]).is_err());
        assert!(result("u7", &[]).is_err());
    }

    #[test]
    fn streams_have_a_name_a_size_and_a_file() {
        assert_eq!(
            flow("a:b:4=c=d").ok(),
            Some(("a:b".into(), 4, "c=d".into()))
        );
        for spec in ["a=f", "a:0=f", "a:x=f", ":4=f", "a:4=", "a:70000=f"] {
            assert!(flow(spec).is_err(), "{spec}");
        }
    }
}
