// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the interface's description, `/openapi.json`: the host has what it describes.
//!
//! Requests are generated from it: each path and method, with parameters and bodies as described, and with parts of
//! other types. Each reply must have a described status, and be JSON where described; the host must keep running.
//!
//! `LEVADA_FUZZ=N` sends N requests; `LEVADA_SEED` selects others.

use crate::common::chance::Chance;
use crate::common::host::Host;
use serde_json::{Value, json};

/// Anything, and what numbers and names have at their ends.
fn anything(chance: &mut Chance) -> Value {
    chance.of(&[
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(4294967296u64),
        json!(1e300),
        json!(0.5),
        json!(""),
        json!("other"),
        json!("\u{0}\u{202e}"),
        json!("x".repeat(5000)),
        json!([]),
        json!({}),
    ])
}

/// A value of this schema, mostly.
fn value(chance: &mut Chance, all: &Value, schema: &Value, depth: usize) -> Value {
    if depth > 6 || chance.below(12) == 0 {
        return anything(chance);
    }
    if let Some(path) = schema["$ref"].as_str() {
        let to = all.pointer(path.trim_start_matches('#')).unwrap();
        return value(chance, all, to, depth + 1);
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = schema[several].as_array() {
            let one = chance.of(list);
            return value(chance, all, &one, depth + 1);
        }
    }
    if let Some(list) = schema["enum"].as_array() {
        return chance.of(list);
    }
    let kind = match &schema["type"] {
        Value::Array(list) => chance.of(list),
        one => one.clone(),
    };
    match kind.as_str() {
        Some("object") => {
            let mut object = serde_json::Map::new();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, of) in schema["properties"].as_object().into_iter().flatten() {
                let must = required.iter().any(|r| r == name);
                if must || chance.below(3) == 0 {
                    object.insert(name.clone(), value(chance, all, of, depth + 1));
                }
            }
            if chance.below(10) == 0 {
                object.insert("unheard_of".to_string(), anything(chance));
            }
            Value::Object(object)
        }
        Some("array") => (0..chance.below(3))
            .map(|_| value(chance, all, &schema["items"], depth + 1))
            .collect(),
        Some("integer") => json!(chance.of(&[0, 1, 2, 7, -1, 1i64 << 40])),
        Some("number") => json!(chance.of(&[0.0, 0.01, 1.0, 25.0, -2.0])),
        Some("boolean") => json!(chance.below(2) == 0),
        Some("string") => json!(chance.of(&[
            "other",
            "src/p/Top.xdf",
            "src/p/None.xdf",
            "source",
            "/",
            "a b",
            "none",
            ".."
        ])),
        _ => Value::Null,
    }
}

fn percent(text: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    text.bytes()
        .map(|b| {
            if plain(&b) {
                (b as char).to_string()
            } else {
                format!("%{b:02x}")
            }
        })
        .collect()
}

/// A request by the description: its first line, and the whole.
fn request(chance: &mut Chance, all: &Value, path: &str, method: &str) -> (String, Vec<u8>) {
    let operation = &all["paths"][path][method];
    let (mut to, mut query) = (path.to_string(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let given = match value(chance, all, &parameter["schema"], 0) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match parameter["in"].as_str() {
            Some("path") => to = to.replace(&format!("{{{name}}}"), &percent(&given)),
            _ if parameter["required"] == true || chance.below(2) == 0 => {
                query.push(format!("{name}={}", percent(&given)));
            }
            _ => {}
        }
    }
    if !query.is_empty() {
        to += &format!("?{}", query.join("&"));
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body = match schema {
        Value::Null => String::new(),
        schema => value(chance, all, schema, 0).to_string(),
    };
    let line = format!("{} {to}", method.to_uppercase());
    let whole = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    (format!("{line} {body}"), whole.into_bytes())
}

#[test]
fn every_answer_is_one_that_is_described() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (many, seed) = (
        number("LEVADA_FUZZ").unwrap_or(300),
        number("LEVADA_SEED").unwrap_or(7),
    );
    let mut chance = Chance(seed.max(1));
    let mut host = Host::begin();
    host.many("good");
    let answer = host.get("/openapi.json");
    let all: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let operations: Vec<(String, String)> = all["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, of)| {
            let methods = of.as_object().unwrap().keys().cloned();
            methods.map(|m| (path.clone(), m)).collect::<Vec<_>>()
        })
        .collect();
    assert!(operations.len() > 12, "{operations:?}");
    for i in 0..many {
        let (path, method) = operations[(i as usize) % operations.len()].clone();
        let (line, whole) = request(&mut chance, &all, &path, &method);
        // What follows does not end by itself; and the one that is watched is left alone.
        if line.contains("follow=") || line.contains("/good") {
            continue;
        }
        let answer = host.raw(&whole);
        let status = answer.split(' ').nth(1).unwrap_or_default().to_string();
        let described = &all["paths"][&path][&method]["responses"];
        assert!(
            described.get(&status).is_some(),
            "seed {seed}, request {i}: {line}\n{answer}"
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(method != "head" || body.is_empty(), "{line}\n{answer}");
        if head
            .to_lowercase()
            .contains("content-type: application/json")
            && method != "head"
        {
            let parsed: Result<Value, _> = serde_json::from_str(body);
            assert!(parsed.is_ok(), "seed {seed}, request {i}: {line}\n{answer}");
        }
        assert!(host.child.try_wait().unwrap().is_none(), "{line}");
        if i % 20 == 0 {
            host.run(&["unload", "other", "--now"]);
            host.many("other");
        }
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}

#[test]
fn documented_paths_exist() {
    let host = Host::begin();
    host.many("one");
    let answer = host.get("/openapi.json");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 11, "{paths:?}");
    for (path, methods) in paths {
        let real = path.replace("{name}", "one");
        for method in methods
            .as_object()
            .unwrap()
            .keys()
            .filter(|m| *m != "parameters")
        {
            let method = method.to_uppercase();
            if method == "DELETE" {
                continue; // It would be gone.
            }
            let request = format!(
                "{method} {real} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = host.raw(request.as_bytes());
            for none in ["HTTP/1.1 404", "HTTP/1.1 405", "HTTP/1.1 5"] {
                assert!(!answer.starts_with(none), "{method} {path}: {answer}");
            }
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    // Every schema that is referred to is there, and what a request answers has its fields.
    for name in body.split("#/components/schemas/").skip(1) {
        let name = name.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let answer = host.get("/applications");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let all: Value = serde_json::from_str(body).unwrap();
    let documented = schemas["Application"]["properties"].as_object().unwrap();
    for field in all[0].as_object().unwrap().keys() {
        assert!(documented.contains_key(field), "{field}");
    }
    // A line of events is one, or says how many were missed.
    let line = schemas["Line"].to_string();
    assert!(
        line.contains("/Event\"") && line.contains("/Missed\""),
        "{line}"
    );
    assert_eq!(schemas["MissedWord"]["enum"][0], "missed");
    let metrics = host.get("/metrics");
    let answers = &document["paths"]["/metrics"]["get"]["responses"]["200"];
    for kind in answers["content"].as_object().unwrap().keys() {
        let (head, _) = metrics.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-type: {kind}\r\n")),
            "{head}"
        );
    }
    assert!(
        metrics.contains("levada_actor_firings_total{application=\"one\",actor="),
        "{metrics}"
    );
    for line in metrics
        .split("\r\n\r\n")
        .nth(1)
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let value = line.rsplit_once(' ').map(|l| l.1.parse::<f64>());
        assert!(matches!(value, Some(Ok(_))), "{line}");
    }
}
