// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the cache of `levada prepare`: an entry is used exactly while it is valid.

use crate::common::host::{TOP, sources};
use crate::common::{Place, Run};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::time::Duration;

/// A network's sources, and a cache of their own.
struct Kept {
    place: Place,
    args: Vec<&'static str>,
}

fn ends(folder: &Place, with: &str) -> Vec<PathBuf> {
    let names = folder.list("cache/levada");
    let of = names.iter().filter(|n| n.ends_with(with));
    of.map(|n| folder.path("cache/levada").join(n)).collect()
}

impl Kept {
    fn new(args: &[&'static str]) -> Kept {
        Kept {
            place: sources(),
            args: args.to_vec(),
        }
    }

    fn run(&self, more: &[&str]) -> Run {
        let mut args = vec!["prepare"];
        args.extend(&self.args);
        args.extend(more);
        let mut command = self.place.command(&args);
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        Run::new(command.output().unwrap())
    }

    fn name(&self) -> String {
        let said = self.run(&[]).succeeds().json();
        said["network"].as_str().unwrap().to_string()
    }

    fn object(&self) -> String {
        let said = self.run(&[]).succeeds().json();
        said["object"].as_str().unwrap().to_string()
    }

    /// Creates the entry and renames the network in it to "marked", so that a result from the cache can be
    /// recognised.
    fn mark(&self) {
        // What was written a moment ago is not relied on.
        std::thread::sleep(Duration::from_millis(200));
        self.run(&[]).succeeds();
        let entries = ends(&self.place, ".prepared");
        assert_eq!(entries.len(), 1, "{entries:?}");
        let text = std::fs::read_to_string(&entries[0]).unwrap();
        let mut answer: serde_json::Value =
            serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
        answer["network"] = "marked".into();
        let answer = answer.to_string();
        let hash: String = Sha256::digest(&answer)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        std::fs::write(&entries[0], format!("{hash}\n{answer}")).unwrap();
        assert_eq!(self.name(), "marked");
    }
}

#[test]
fn a_file_that_was_written_is_read_again() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    let object = kept.object();
    // The same text.
    let top = std::fs::read_to_string(kept.place.path(TOP)).unwrap();
    kept.place.write(TOP, &top);
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
    kept.mark();
    let write = "src/p/Write.cal";
    let text = std::fs::read_to_string(kept.place.path(write)).unwrap();
    kept.place
        .write(write, &text.replace("number(x)", "number(x + 1)"));
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
    kept.mark();
    std::fs::remove_file(kept.place.path(write)).unwrap();
    let refused = kept.run(&[]);
    refused.refuses(1, &["p.Write"]);
    kept.place.write(write, &text);
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
}

#[test]
fn a_new_file_before_one_that_was_found_is_noticed() {
    let kept = Kept::new(&["p.Top", "--path=first", "--path=src"]);
    std::fs::create_dir(kept.place.path("first")).unwrap();
    kept.mark();
    let object = kept.object();
    let text = std::fs::read_to_string(kept.place.path("src/p/Write.cal")).unwrap();
    let other = text.replace("number(x)", "number(x + 1)");
    kept.place.write("first/p/Write.cal", &other);
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
    kept.mark();
    std::fs::remove_file(kept.place.path("first/p/Write.cal")).unwrap();
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
    kept.mark();
    // Natives are taken from a folder that was not there.
    kept.place
        .write("natives/more.c", "int more_of_them(void) { return 1; }\n");
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
}

#[test]
fn what_is_damaged_in_the_cache_is_made_again() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    let entry = &ends(&kept.place, ".prepared")[0];
    let whole = std::fs::read(entry).unwrap();
    let mut other = whole.clone();
    let last = other.len() - 10;
    other[last] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &other, b"", b"\xff\n{}", b"[]"] {
        std::fs::write(entry, damaged).unwrap();
        assert_ne!(kept.name(), "marked");
        kept.mark();
    }
    let object = PathBuf::from(kept.object());
    let whole = std::fs::read(&object).unwrap();
    std::fs::write(&object, &whole[..whole.len() / 2]).unwrap();
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object.to_str().unwrap());
    assert_eq!(
        std::fs::metadata(&object).unwrap().len(),
        whole.len() as u64
    );
    kept.mark();
    std::fs::remove_file(&object).unwrap();
    assert_ne!(kept.name(), "marked");
    assert!(object.exists());
}

#[test]
fn what_is_given_is_looked_at_each_time() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    kept.run(&["--in=none"]).refuses(1, &["--in none"]);
    kept.run(&["--option=speed=2"])
        .refuses(1, &["nothing in this network asks for speed"]);
    kept.place.write("some", "");
    let said = kept.run(&["--in=some", "--out=a.txt"]);
    let json = said.succeeds().json();
    assert_eq!(json["network"], "marked");
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1));
    assert!(said.err.contains("nothing in this network reads it"));
    let whole = kept.place.path("a.txt");
    assert!(
        json["options"]
            .to_string()
            .contains(whole.to_str().unwrap())
    );
    // Another question has another answer.
    let other = kept.run(&["--random-buffer-sizes=7"]);
    assert_ne!(other.succeeds().json()["network"], "marked");
}

/// Warnings are said each time.
#[test]
fn warnings_are_repeated_from_the_cache() {
    let kept = Kept::new(&[TOP, "--out-of-bounds=clamp"]);
    let warned = "package p;\n@native actor Write () int In ==> : end\n";
    kept.place.write("src/p/Write.cal", warned);
    let first = kept.run(&[]);
    let said = first.succeeds().json();
    kept.mark();
    let again = kept.run(&[]);
    assert_eq!(again.err, first.err);
    assert!(first.err.contains("never fires"), "{first:#?}");
    assert_eq!(again.json()["diagnostics"], said["diagnostics"]);
}
