// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mutants: copies of the runtime's sources in which one memory order is one step weaker.
//!
//! The orders are found by their names (levada/atomic.h), so that one added later is covered
//! automatically. One step suffices: what fails with a weaker order fails with none.

use std::fs;
use std::path::{Path, PathBuf};

/// One order, and what takes its place.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Relative to the runtime's folder.
    pub file: &'static str,
    pub line: usize,
    pub function: String,
    pub call: String,
    pub weaker: String,
    /// Where `call` stands in the file.
    at: usize,
}

/// What levada/atomic.h does with a word: lvd_, one of these, an order, a width.
const OPERATIONS: [&str; 5] = ["load", "store", "exchange", "cas", "add"];

/// Calls of these are orders, whatever their name says.
const FENCES: [(&str, &str); 5] = [
    ("lvd_fence_seq_cst", "weak_fence_seq_cst"),
    ("lvd_fence_compiler", "weak_fence_compiler"),
    ("lvd_membarrier_light", "weak_barrier_light"),
    ("lvd_os_barrier", "weak_os_barrier"),
    ("lvd_os_global_barrier", "weak_os_barrier"),
];

/// What weaker calls there are for `call`: none if it has no order to lose.
fn weaker(call: &str) -> Vec<String> {
    if let Some((_, weak)) = FENCES.iter().find(|f| f.0 == call) {
        return vec![weak.to_string()];
    }
    let Some(operation) = call.strip_prefix("lvd_") else {
        return vec![];
    };
    let parts: Vec<&str> = operation.split('_').collect();
    if !OPERATIONS.contains(&parts[0]) {
        return vec![];
    }
    let (what, width) = (parts[0], parts[parts.len() - 1]);
    // atomic.h has no additions with half of an order.
    let prefix = if what == "add" { "weak" } else { "lvd" };
    match &parts[1..parts.len() - 1] {
        ["acquire"] | ["release"] => vec![format!("lvd_{what}_relaxed_{width}")],
        ["acq", "rel"] => vec![
            format!("{prefix}_{what}_acquire_{width}"),
            format!("{prefix}_{what}_release_{width}"),
        ],
        _ => vec![],
    }
}

/// The text with its comments, strings and characters blanked, byte for byte.
fn code(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let end = match &bytes[i..] {
            [b'/', b'*', ..] => text[i + 2..].find("*/").map_or(bytes.len(), |n| i + n + 4),
            [b'/', b'/', ..] => text[i..].find('\n').map_or(bytes.len(), |n| i + n),
            [quote @ (b'"' | b'\''), ..] => {
                let mut j = i + 1;
                while j < bytes.len() && bytes[j] != *quote {
                    j += if bytes[j] == b'\\' { 2 } else { 1 };
                }
                (j + 1).min(bytes.len())
            }
            _ => {
                i += 1;
                continue;
            }
        };
        for b in &mut out[i..end] {
            if *b != b'\n' {
                *b = b' ';
            }
        }
        i = end;
    }
    String::from_utf8(out).expect("blanks are text")
}

/// All names, with their places and how deep in braces they stand. What `extern "C"` encloses is no
/// deeper for it; a macro's text is as deep as a function's.
fn names(code: &str) -> Vec<(usize, &str, usize)> {
    let bytes = code.as_bytes();
    let (mut found, mut open) = (vec![], vec![]);
    let (mut at, mut directive) = (0, false);
    let mut line_begins = true;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                directive &= at > 0 && bytes[at - 1] == b'\\';
                line_begins = true;
            }
            b'#' if line_begins => directive = true,
            b'{' if !directive => open.push(!code[..at].trim_end().ends_with("extern")),
            b'}' if !directive => _ = open.pop(),
            b if is_name(b) => {
                let from = at;
                while at < bytes.len() && is_name(bytes[at]) {
                    at += 1;
                }
                let depth = open.iter().filter(|inner| **inner).count();
                found.push((from, &code[from..at], depth + directive as usize));
                line_begins = false;
                continue;
            }
            b' ' | b'\t' => {}
            _ => line_begins = false,
        }
        at += 1;
    }
    found
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Every use of an order: wherever its name stands, called or not, but where it is itself declared
/// or defined. That is outside of all functions and macros, and behind a type.
fn uses(code: &str) -> Vec<(usize, &str)> {
    let is_declared = |at: usize, depth: usize| {
        let before = code[..at].trim_end().bytes().next_back();
        depth == 0 && before.is_some_and(|b| is_name(b) || b == b'*')
    };
    let names = names(code).into_iter();
    names
        .filter(|(at, name, depth)| !weaker(name).is_empty() && !is_declared(*at, *depth))
        .map(|(at, name, _)| (at, name))
        .collect()
}

/// The function around `at`: the last definition that begins a line before it.
fn function(code: &str, at: usize) -> String {
    let mut name = String::new();
    for line in code[..at].lines() {
        let line = line.trim_start_matches("__attribute__((noinline)) ");
        let begins = line.starts_with(|c: char| c.is_ascii_alphabetic());
        if let (true, Some(open)) = (begins, line.find('(')) {
            let head = &line[..open];
            let from = head.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            name = head[from.map_or(0, |n| n + 1)..].to_string();
        }
    }
    name
}

/// The mutants of one file, in its order.
pub fn of_file(runtime: &Path, file: &'static str) -> Vec<Mutant> {
    let path = runtime.join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    of_text(file, &text)
}

fn of_text(file: &'static str, text: &str) -> Vec<Mutant> {
    let code = code(text);
    let mut mutants = vec![];
    for (at, call) in uses(&code) {
        for weaker in weaker(call) {
            mutants.push(Mutant {
                file,
                line: text[..at].matches('\n').count() + 1,
                function: function(&code, at),
                call: call.to_string(),
                weaker,
                at,
            });
        }
    }
    mutants
}

/// Does the file reach memory by an order?
pub fn has_orders(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    !uses(&code(&text)).is_empty()
}

/// Atomics that are not reached by name, which the search for mutants would overlook.
pub fn unnamed(path: &Path) -> Option<String> {
    unnamed_in(&fs::read_to_string(path).unwrap_or_default())
}

fn unnamed_in(text: &str) -> Option<String> {
    let code = code(text);
    let others = [
        "__atomic_",
        "__sync_",
        "_Atomic",
        "atomic_thread_fence",
        "stdatomic.h",
    ];
    if let Some(other) = others.into_iter().find(|o| code.contains(o)) {
        return Some(other.to_string());
    }
    // A name that is pasted together of parts.
    let part = |name: &str| {
        let operation = name.strip_prefix("lvd_").and_then(|n| n.strip_suffix('_'));
        let first = operation.and_then(|o| o.split('_').next());
        first.is_some_and(|first| OPERATIONS.contains(&first))
    };
    let names = names(&code);
    let pasted = names.iter().find(|(_, name, _)| part(name));
    pasted.map(|(_, name, _)| format!("{name}##"))
}

/// Copies the sources under test (all of the runtime's C, and the harnesses) to `tree`.
pub fn copy_tree(runtime: &Path, tree: &Path) -> std::io::Result<()> {
    for folder in ["include", "src", "platform", "mcapi", "model/c"] {
        let from = runtime.join(folder);
        for file in sources(&from).into_iter().chain(ending(&from, &["S"])) {
            let to = tree.join(file.strip_prefix(runtime).expect("a file of the runtime"));
            fs::create_dir_all(to.parent().expect("a folder"))?;
            fs::copy(&file, to)?;
        }
    }
    Ok(())
}

/// The C files of a folder and the folders in it.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    ending(folder, &["c", "h"])
}

fn ending(folder: &Path, wanted: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = path.path();
        if path.is_dir() {
            files.extend(ending(&path, wanted));
        } else if path
            .extension()
            .is_some_and(|e| wanted.iter().any(|w| e == *w))
        {
            files.push(path);
        }
    }
    files.sort();
    files
}

impl Mutant {
    /// Lays out the sources with this mutation at `tree`.
    pub fn write(&self, runtime: &Path, tree: &Path) -> std::io::Result<()> {
        copy_tree(runtime, tree)?;
        let path = tree.join(self.file);
        let mut text = fs::read_to_string(&path)?;
        text.replace_range(self.at..self.at + self.call.len(), &self.weaker);
        fs::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/* lvd_load_acquire_u32(x) */
static inline void lvd_membarrier_light(uint32_t fenced) {
  if (fenced) lvd_fence_seq_cst();
}
static void two(lvd_a32 *a) {
  say(\"lvd_load_acquire_u32(\");
  lvd_store_release_u32(a, lvd_load_acquire_u32(a) + lvd_load_relaxed_u32(a));
  lvd_add_acq_rel_u32(a, 1); // lvd_fence_seq_cst()
  lvd_cas_acq_rel_ptr(a, b, c);
}
";

    #[test]
    fn every_order_and_nothing_else() {
        let found: Vec<_> = of_text("x.h", TEXT)
            .into_iter()
            .map(|m| (m.line, m.function, m.weaker))
            .collect();
        let two = |line, weaker: &str| (line, "two".to_string(), weaker.to_string());
        assert_eq!(
            found,
            [
                (
                    3,
                    "lvd_membarrier_light".into(),
                    "weak_fence_seq_cst".into()
                ),
                two(7, "lvd_store_relaxed_u32"),
                two(7, "lvd_load_relaxed_u32"),
                two(8, "weak_add_acquire_u32"),
                two(8, "weak_add_release_u32"),
                two(9, "lvd_cas_acquire_ptr"),
                two(9, "lvd_cas_release_ptr"),
            ]
        );
    }

    /// Where a function is one line, a macro, or not called but passed on.
    const ONE_LINERS: &str = "#ifdef __cplusplus
extern \"C\" {
#endif
void lvd_os_barrier(void);
static inline bool is_set(lvd_a32 *a) { return lvd_load_acquire_u32(a); }
#define SET(a) lvd_store_release_u32(a, 1)
#define TAKE(a) \\
lvd_exchange_acquire_u32(a, 0)
static void settle(void) { lvd_os_barrier(); }
static uint32_t (*const how)(const lvd_a32 *) = lvd_load_acquire_u32;
static const struct table t = {lvd_load_acquire_u32};
void lvd_os_barrier(void) { return; }
#ifdef __cplusplus
}
#endif
";

    #[test]
    fn wherever_it_stands() {
        let found: Vec<_> = of_text("x.h", ONE_LINERS)
            .into_iter()
            .map(|m| (m.line, m.weaker))
            .collect();
        assert_eq!(
            found,
            [
                (5, "lvd_load_relaxed_u32".to_string()),
                (6, "lvd_store_relaxed_u32".to_string()),
                (8, "lvd_exchange_relaxed_u32".to_string()),
                (9, "weak_os_barrier".to_string()),
                (10, "lvd_load_relaxed_u32".to_string()),
                (11, "lvd_load_relaxed_u32".to_string()),
            ]
        );
    }

    #[test]
    fn names_in_parts_are_refused() {
        let pasted = "#define LOAD(order, a) lvd_load_##order##_u32(a)";
        assert_eq!(unnamed_in(pasted).as_deref(), Some("lvd_load_##"));
        assert_eq!(unnamed_in(ONE_LINERS), None);
        assert_eq!(unnamed_in("_Atomic int a;").as_deref(), Some("_Atomic"));
    }

    #[test]
    fn one_place_changes() {
        let mutant = &of_text("x.h", TEXT)[2];
        let mut text = TEXT.to_string();
        text.replace_range(mutant.at..mutant.at + mutant.call.len(), &mutant.weaker);
        let differing = TEXT.lines().zip(text.lines()).filter(|(a, b)| a != b);
        assert_eq!(differing.count(), 1);
        assert!(text.contains("lvd_store_release_u32(a, lvd_load_relaxed_u32(a) + lvd_load"));
        assert!(text.starts_with("/* lvd_load_acquire_u32(x) */"));
    }
}
