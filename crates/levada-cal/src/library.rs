// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The units that come with the compiler. They are searched after all source roots.

use std::path::{Path, PathBuf};

/// Class names and source texts.
const FILES: &[(&str, &str)] = &[
    ("levada.io", include_str!("../lib/levada/io.cal")),
    // Units that applications for Orcc import.
    ("std.stdio.Exit", include_str!("../lib/std/stdio/Exit.cal")),
    (
        "std.stdio.Source",
        include_str!("../lib/std/stdio/Source.cal"),
    ),
    (
        "std.audio.Audio",
        include_str!("../lib/std/audio/Audio.cal"),
    ),
    (
        "std.util.Compare",
        include_str!("../lib/std/util/Compare.cal"),
    ),
    (
        "std.video.Display",
        include_str!("../lib/std/video/Display.cal"),
    ),
];

/// The prefix of paths of built-in files.
const PREFIX: &str = "<levada>";

pub fn find(class: &str) -> Option<PathBuf> {
    FILES
        .iter()
        .find(|(name, _)| *name == class)
        .map(|(name, _)| {
            let relative: PathBuf = name.split('.').collect();
            Path::new(PREFIX).join(relative).with_extension("cal")
        })
}

pub fn text(path: &Path) -> Option<&'static str> {
    let inner = path.strip_prefix(PREFIX).ok()?.with_extension("");
    let parts: Vec<_> = inner.iter().filter_map(|part| part.to_str()).collect();
    let class = parts.join(".");
    FILES
        .iter()
        .find(|(name, _)| *name == class)
        .map(|(_, text)| *text)
}
