// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds networks from CAL text for tests.
#![allow(dead_code)]

use levada_cal::diag::{Diagnostics, render};
use levada_cal::ir::{Channel, Endpoint, Instance, Network, Span};
use levada_cal::workspace::Workspace;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// A folder of its own that goes when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("levada-back-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Actors by instance name, class and text; channels as `a.0 -> b.1 c.0` (port numbers).
pub fn network(classes: &[(&str, &str)], instances: &[(&str, &str)], wires: &[&str]) -> Network {
    let folder = Folder::new();
    for (name, text) in classes {
        std::fs::write(folder.0.join(format!("{name}.cal")), text).unwrap();
    }
    let mut ws = Workspace::new(vec![folder.0.clone()]);
    let mut diags = Diagnostics::new();
    let instances: Vec<Instance> = instances
        .iter()
        .map(|(name, class)| {
            let actor = ws.instantiate(class, &[], Span::default(), &mut diags);
            Instance {
                name: name.to_string(),
                actor: actor.unwrap_or_else(|| panic!("{}", render(&ws.sources, &diags, false))),
                priority: 0,
            }
        })
        .collect();
    assert!(
        !diags.has_errors(),
        "{}",
        render(&ws.sources, &diags, false)
    );
    let end = |text: &str| {
        let (name, port) = text.trim().split_once('.').expect("instance.port");
        let instance = instances.iter().position(|i| i.name == name).expect(name);
        Endpoint {
            instance,
            port: port.parse().unwrap(),
        }
    };
    let channels = wires
        .iter()
        .map(|w| {
            let (from, to) = w.split_once("->").expect("from -> to");
            Channel {
                from: end(from),
                to: to.split_whitespace().map(end).collect(),
                capacity: None,
            }
        })
        .collect();
    Network {
        name: "Test".into(),
        files: ws.sources.files().to_vec(),
        instances,
        channels,
    }
}

/// A network of one actor, `A`.
pub fn alone(text: &str) -> Network {
    network(&[("A", text)], &[("a", "A")], &[])
}

pub fn runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime")
}

/// The flag that asks for sanitizers, if they are asked for.
pub fn sanitizers() -> Option<String> {
    let kinds = std::env::var("LEVADA_SANITIZE").ok()?;
    Some(format!("-fsanitize={kinds}"))
}

/// All files below a folder.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The runner with the runtime in it: built once for what is in their files, by whichever test comes first.
pub fn runner() -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random");
    let mut files = vec![own.join("runner.c"), own.join("natives.c")];
    for folder in ["src", "platform", "include"] {
        files_below(&runtime().join(folder), &mut files);
    }
    files.sort();
    let mut hash = DefaultHasher::new();
    sanitizers().hash(&mut hash);
    for file in &files {
        (file, std::fs::read(file).unwrap()).hash(&mut hash);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = folder.join(format!("runner-{:016x}", hash.finish()));
    if out.exists() {
        return out;
    }
    let part = folder.join(format!("runner-{}", std::process::id()));
    let is_source = |file: &&PathBuf| file.extension().is_some_and(|x| x == "c" || x == "S");
    let built = Command::new("cc")
        .args([
            "-std=c17",
            "-O2",
            "-D_GNU_SOURCE",
            "-rdynamic",
            "-pthread",
            "-I",
        ])
        .arg(runtime().join("include"))
        .args(sanitizers())
        .args(files.iter().filter(is_source))
        .args(["-ldl", "-o"])
        .arg(&part)
        .output()
        .expect("cc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    std::fs::rename(&part, &out).unwrap();
    out
}
