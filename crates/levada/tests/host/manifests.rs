// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of manifests: all of their applications are loaded, or none.
//!
//! Wrong input: names that are taken or given twice, files that do not exist, limits that are too low, unknown fields,
//! invalid numbers, text that is no TOML, endless nesting, no application, options that only a single network takes.

use crate::common::host::Host;

#[test]
fn a_manifest_is_loaded_whole_or_not_at_all() {
    let host = Host::begin();
    let manifest = |last: &str| {
        format!(
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"one\"\nout = \"one.txt\"\n\n\
             [[application]]\nnetwork = \"p/Many.xdf\"\nname = \"two\"\nout = \"/dev/null\"\n\
             priority = \"-1\"\n{last}"
        )
    };
    for (last, parts) in [
        (
            "[[application]]\nnetwork = \"p/None.xdf\"\n",
            &["p/None.xdf: there is no file p/None.xdf"][..],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"one\"\n",
            &["two of these applications are named one"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"three\"\nin = \"none\"\n",
            &["three: --in none: No such file"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nmemory = 10\n",
            &["p.Top claims ", "may have 10"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nname = \"three\"\nmemory = \"1K\"\n",
            &["three claims ", "may have 1024"],
        ),
        (
            "[[application]]\nnetwork = \"p/Top.xdf\"\nrate = nan\n",
            &["apps.toml: rate is NaN"],
        ),
        ("oops = 1\n", &["apps.toml", "unknown field", "oops"]),
        (
            "share = 0.5\n",
            &["apps.toml", "unknown key `share`; since 0.2 it is `cpus`"],
        ),
        ("[[application]\n", &["apps.toml", "[[application]]"]),
    ] {
        host.place.write("src/apps.toml", &manifest(last));
        let run = host.run(&["load", "src/apps.toml"]);
        assert!(matches!(run.code, Some(1 | 3 | 6)), "{run:#?}");
        run.refuses(run.code.unwrap(), parts);
        assert!(host.json(&["list"]).as_array().unwrap().is_empty());
    }
    host.place
        .write("src/apps.toml", &format!("x = {}", "[".repeat(2_000_000)));
    let long = host.run(&["load", "src/apps.toml"]);
    long.refuses(1, &["apps.toml", "..."]);
    assert!(long.err.len() < 10_000, "{}", long.err.len());
    host.place.write("src/apps.toml", &manifest(""));
    for option in [
        "--name=x",
        "--priority=1",
        "--memory=1G",
        "--path=src",
        "--unchecked",
        "--no-fuse",
        "--out-of-bounds=clamp",
        "--random-buffer-sizes=1",
    ] {
        let name = option.split('=').next().unwrap();
        host.run(&["load", "src/apps.toml", option])
            .refuses(1, &[name, "says itself"]);
    }
    let loaded = host.run(&["load", "src/apps.toml"]);
    assert_eq!(loaded.succeeds().out.lines().count(), 2, "{loaded:?}");
    host.until("one", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("src/one.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
    assert_eq!(
        host.until("two", |a| a["firings"].as_u64() > Some(0))["priority"],
        -1
    );
    host.run(&["load", "src/none.toml"])
        .refuses(1, &["none.toml"]);
    host.place.write("src/empty.toml", "# None yet.\n");
    host.run(&["load", "src/empty.toml"])
        .refuses(3, &["there is no application in the manifest"]);
    host.run(&["replace", "two", "src/apps.toml"]).refuses(
        1,
        &["a manifest may hold several", "replace each by itself"],
    );
}

/// Where a name stands in a manifest, an option gives no other one.
#[test]
fn a_taken_name_is_refused_with_help() {
    let host = Host::begin();
    host.many("a");
    let many = "[[application]]\nnetwork = \"p/Many.xdf\"\nout = \"/dev/null\"\n";
    for names in [&["a"][..], &["b", "a"]] {
        let named = names
            .iter()
            .map(|name| format!("{many}name = \"{name}\"\n"));
        host.place
            .write("src/apps.toml", &named.collect::<String>());
        host.run(&["load", "src/apps.toml"]).refuses(
            5,
            &[
                "a is loaded already",
                "name = \"NAME\" in a manifest",
                "unload that one",
            ],
        );
        assert_eq!(host.json(&["list"]).as_array().unwrap().len(), 1);
    }
}
