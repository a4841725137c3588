// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The native functions that come with Levada, as C text that is compiled into the networks that use them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A C file of natives.
#[derive(Debug)]
pub struct BuiltIn {
    pub file: &'static str,
    pub text: &'static str,
    /// The options that it reads, and for each the functions that read it.
    options: &'static [(&'static str, &'static [&'static str])],
    /// The functions that report progress (`lvd_app_progress`).
    counts: &'static [&'static str],
}

pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        file: "levada_io.c",
        text: include_str!("../lib/natives/levada_io.c"),
        options: &[
            ("in", &["io_read", "io_more", "io_read_number"]),
            (
                "out",
                &[
                    "io_open",
                    "io_write",
                    "io_write_number",
                    "io_write_line",
                    "io_picture_begin",
                    "io_video_begin",
                ],
            ),
            ("rate", &["io_video_begin"]),
        ],
        counts: &["io_picture_end", "io_video_end"],
    },
    BuiltIn {
        file: "std.c",
        text: include_str!("../lib/natives/std.c"),
        options: &[
            ("in", SOURCE),
            ("loops", SOURCE),
            ("tail", SOURCE),
            (
                "out",
                &[
                    "Writer_init",
                    "displayYUV_displayPicture",
                    "displayYUV444_displayPicture",
                ],
            ),
            (
                "rate",
                &["displayYUV_displayPicture", "displayYUV444_displayPicture"],
            ),
            ("frames", &["displayYUV_getNbFrames"]),
            (
                "compare",
                &[
                    "compareYUV_comparePicture",
                    "compare_NBytes",
                    "compare_readByte",
                ],
            ),
        ],
        counts: &["fpsPrintNewPicDecoded"],
    },
    BuiltIn {
        file: "audio.c",
        text: include_str!("../lib/natives/audio.c"),
        options: &[(
            "out",
            &["audio_initAudioFormat", "audio_receive", "audio_play"],
        )],
        counts: &[],
    },
    BuiltIn {
        file: "camera.c",
        text: include_str!("../lib/natives/camera.c"),
        options: &[
            ("in", &["readCameraFrame"]),
            ("out", &["displayGray", "displayRGB"]),
            ("rate", &["displayGray", "displayRGB"]),
        ],
        counts: &["displayGray", "displayRGB"],
    },
    BuiltIn {
        file: "communication.c",
        text: include_str!("../lib/natives/communication.c"),
        options: &[],
        counts: &[],
    },
];

/// The C function for the native `name` of a unit, if it comes with Levada and has the unit's name as a prefix, since
/// several units have natives of that name.
pub fn of_unit(unit: &str, name: &str) -> Option<String> {
    let symbol = format!("{}_{name}", unit.replace('.', "_"));
    let ours = |b: &BuiltIn| defines(b.text, &symbol);
    BUILT_IN.iter().any(ours).then_some(symbol)
}

const SOURCE: &[&str] = &["source_init", "source_sizeOfFile", "source_readNBytes"];

/// The headers that the built-in files include.
pub const HEADERS: &[(&str, &str)] = &[
    ("files.h", include_str!("../lib/natives/files.h")),
    (
        "platform/linux/syscall.h",
        include_str!("../../../runtime/platform/linux/syscall.h"),
    ),
    ("tail.h", include_str!("../lib/natives/tail.h")),
    ("video.h", include_str!("../lib/natives/video.h")),
];

/// The built-in files that define a function of `wanted` which no file of the user (`own`) defines.
pub fn built_in<'w>(
    wanted: &'w [String],
    own: &'w [String],
) -> impl Iterator<Item = &'static BuiltIn> + 'w {
    let own = move |n: &str| own.iter().any(|text| defines(text, n));
    BUILT_IN.iter().filter(move |b| {
        let mut wanted = wanted.iter();
        wanted.any(|n| defines(b.text, n) && !own(n))
    })
}

/// Writes a built-in file and its headers into a folder.
pub fn write(built_in: &BuiltIn, folder: &Path) -> io::Result<()> {
    for (name, text) in HEADERS {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(path, text)?;
    }
    std::fs::write(folder.join(built_in.file), built_in.text)
}

/// The natives for which the option `out` may be a folder.
const PICTURES: &[&str] = &["io_picture_begin", "displayGray", "displayRGB"];

/// The options that the natives of a network read (`lvd_app_option`), and whether they report progress, as far as their
/// text shows.
#[derive(Clone, Debug, Default)]
pub struct OptionNames {
    names: BTreeSet<String>,
    /// A native may read an option of any name, since the name is computed or in another file.
    pub any: bool,
    pub files: Files,
    /// A native reports progress (`lvd_app_progress`), or may do so.
    pub counts: bool,
}

/// The use of input and output files by built-in natives.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, serde::Serialize)]
pub struct Files {
    /// They require the option `in`.
    pub reads: bool,
    /// The option `out` must be one file.
    pub writes_one: bool,
}

impl OptionNames {
    /// Restores the names from the result of [`OptionNames::all`].
    pub fn again(names: impl IntoIterator<Item = String>, any: bool, files: Files) -> OptionNames {
        OptionNames {
            names: names.into_iter().collect(),
            any,
            files,
            ..OptionNames::default()
        }
    }

    /// Adds the options of a built-in file; `used` are the functions that the network calls.
    pub fn add_built_in(&mut self, built_in: &BuiltIn, used: &[String]) {
        self.counts |= used.iter().any(|u| built_in.counts.contains(&u.as_str()));
        for (name, natives) in built_in.options {
            let mut asks = natives
                .iter()
                .filter(|n| used.iter().any(|u| u == *n))
                .peekable();
            if asks.peek().is_some() {
                self.names.insert(name.to_string());
                self.files.reads |= *name == "in";
            }
            self.files.writes_one |= *name == "out" && asks.any(|n| !PICTURES.contains(n));
        }
    }

    /// Adds the options of a C file.
    pub fn add(&mut self, text: &str) {
        // An included file may read any option.
        let includes = text
            .lines()
            .any(|row| row.trim_start().starts_with("#include \""));
        self.any |= includes;
        self.counts |= includes || text.contains("lvd_app_progress");
        for call in text.split("lvd_app_option").skip(1) {
            let literal = argument_after_comma(call)
                .and_then(|a| a.strip_prefix('"')?.strip_suffix('"'))
                .filter(|name| !name.contains(['"', '\\']));
            match literal {
                Some(name) => drop(self.names.insert(name.to_string())),
                None => self.any = true,
            }
        }
    }

    pub fn holds(&self, name: &str) -> bool {
        self.any || self.names.contains(name)
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The names without `in` and `out`, for which the command has options of its own.
    pub fn others(&self) -> Vec<&str> {
        self.all().filter(|n| !matches!(*n, "in" | "out")).collect()
    }
}

/// The last argument of a call with two arguments; `text` begins with the parentheses.
fn argument_after_comma(text: &str) -> Option<&str> {
    let (mut depth, mut begin) = (0, None);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(text[begin?..i].trim()),
            ')' => depth -= 1,
            ',' if depth == 1 => begin = Some(i + 1),
            _ if depth == 0 && !c.is_whitespace() => return None,
            _ => {}
        }
    }
    None
}

/// Whether a C text defines a non-static function of that name.
pub fn defines(text: &str, name: &str) -> bool {
    let is_static = |row: &str| row.split_whitespace().next() == Some("static");
    let mut rows = text.lines();
    rows.any(|row| defined_at(row, name).is_some() && !is_static(row))
}

/// The position of a name on a row, if a function definition begins there: a type, the name, and an opening parenthesis
/// on the same row.
pub fn defined_at(row: &str, name: &str) -> Option<usize> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if row.starts_with([' ', '\t', '#', '/']) || row.trim_end().ends_with(';') {
        return None;
    }
    let mut places = row.match_indices(name).map(|(at, _)| at);
    places.find(|at| {
        let (before, after) = (&row[..*at], &row[at + name.len()..]);
        after.trim_start().starts_with('(')
            && !before.ends_with(word)
            && (before.trim_end().ends_with(|c: char| word(c) || c == '*') || before.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> OptionNames {
        let mut names = OptionNames::default();
        names.add(text);
        names
    }

    #[test]
    fn the_options_of_a_file_are_found() {
        let two = of("x = lvd_app_option(lvd_current_app(), \"rate\");\n\
                      y = lvd_app_option (app,\n  \"size\" );");
        assert_eq!(two.all().collect::<Vec<_>>(), ["rate", "size"]);
        assert!(two.holds("rate") && !two.holds("rat") && !two.any);
        // Names that are not literals, or in another file, may be any.
        for text in [
            "lvd_app_option(app, name)",
            "lvd_app_option(app, \"a\" SUFFIX)",
            "f = lvd_app_option;",
            "#include \"options.h\"\n",
        ] {
            assert!(of(text).holds("any"), "{text}");
        }
        assert!(!of("#include <stdio.h>\nint x;").holds("any"));
    }

    #[test]
    fn natives_that_count_are_known() {
        assert!(of("void f(void) { lvd_app_progress(a, \"frames\", 1); }").counts);
        // An included file may report progress.
        assert!(of("#include \"frames.h\"\n").counts);
        assert!(!of("#include <stdio.h>\nint x;").counts);
        for built_in in BUILT_IN {
            let counts = built_in.text.contains("lvd_app_progress");
            assert_eq!(counts, !built_in.counts.is_empty(), "{}", built_in.file);
            for native in built_in.counts {
                assert!(defines(built_in.text, native), "{native}");
                let mut names = OptionNames::default();
                names.add_built_in(built_in, &[native.to_string()]);
                assert!(names.counts);
            }
            let mut names = OptionNames::default();
            names.add_built_in(built_in, &["io_write_number".to_string()]);
            assert!(!names.counts);
        }
        let mut headers = HEADERS.iter();
        assert!(headers.all(|h| !h.1.contains("lvd_app_progress")));
    }

    /// Except those that a host sets: their names begin with `levada.`.
    #[test]
    fn every_option_of_the_built_in_natives_is_listed() {
        let headers = || HEADERS.iter().map(|h| h.1);
        let all: Vec<_> = BUILT_IN.iter().flat_map(|b| b.options).collect();
        for text in BUILT_IN.iter().map(|b| b.text).chain(headers()) {
            for call in text.split("option(\"").skip(1) {
                let name = call.split('"').next().unwrap();
                let listed = all.iter().any(|o| o.0 == name);
                assert!(listed || name.starts_with("levada."), "{name}");
            }
        }
        for built_in in BUILT_IN {
            for native in built_in.options.iter().flat_map(|o| o.1) {
                assert!(defines(built_in.text, native), "{native}");
            }
        }
    }

    #[test]
    fn a_name_may_be_a_part_of_its_type() {
        assert!(defines("float f(void) {", "f"));
        assert_eq!(defined_at("if_t f(int f) {", "f"), Some(5));
        assert!(!defines("float g(float f) {", "f"));
        assert!(!defines("static float f(float g) {", "f"));
    }

    #[test]
    fn a_file_of_the_users_own_takes_the_place_of_one_that_comes_along() {
        let wanted = ["source_init".to_string(), "mine".to_string()];
        let files = |own: &str| -> Vec<_> {
            let own = [own.to_string()];
            built_in(&wanted, &own).map(|b| b.file).collect()
        };
        assert_eq!(files("void mine(void) {}"), ["std.c"]);
        assert!(files("void source_init(void) {}").is_empty());
    }
}
