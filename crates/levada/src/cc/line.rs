// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the command line of a C compiler: its inputs, its outputs, and which arguments belong to the
//! preprocessor.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The requested output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// `-E`
    Preprocess,
    /// `-S`, `-c`, `-fsyntax-only`
    Compile,
    Link,
    /// Only dependencies, macros, or versions: passed to the compiler.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    /// Preprocessed C.
    Preprocessed,
    /// Another language, an object, a library.
    Other,
}

#[derive(Clone, Debug)]
pub struct Input {
    /// Its index among the arguments.
    pub at: usize,
    pub path: OsString,
    pub language: Language,
    /// The `-x` that applies to it.
    pub named: Option<OsString>,
}

impl Input {
    /// Whether it is C++, preprocessed or not.
    pub fn is_cpp(&self) -> bool {
        match self.named.as_deref().and_then(OsStr::to_str) {
            Some(named) => matches!(named, "c++" | "c++-cpp-output"),
            None => Path::new(&self.path)
                .extension()
                .and_then(OsStr::to_str)
                .is_some_and(|e| ["cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii"].contains(&e)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Line {
    pub words: Vec<OsString>,
    pub inputs: Vec<Input>,
    pub goal: Goal,
    pub output: Option<OsString>,
    /// `-MD`, `-MMD` and related options.
    pub dependencies: Vec<OsString>,
    /// The file of `-MJ`, the compilation database.
    pub database: Option<OsString>,
    /// Whether the output is for a host.
    pub hosted: bool,
    /// The role of each argument.
    roles: Vec<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Input,
    /// `-o file`, `-c`, `-S`, `-E`, `-shared`: the requested output.
    Goal,
    Dependency,
    /// For the preprocessor alone.
    Preprocessor,
    Language,
    /// For the linker alone.
    Linker,
    Other,
}

/// Options with the value in the next argument, and the part of the compiler that they are for.
const SEPARATE: &[(&str, Role)] = &[
    ("-o", Role::Goal),
    ("-x", Role::Language),
    ("-I", Role::Preprocessor),
    ("-D", Role::Preprocessor),
    ("-U", Role::Preprocessor),
    ("-A", Role::Preprocessor),
    ("-include", Role::Preprocessor),
    ("-include-pch", Role::Preprocessor),
    ("-imacros", Role::Preprocessor),
    ("-iquote", Role::Preprocessor),
    ("-isystem", Role::Preprocessor),
    ("-idirafter", Role::Preprocessor),
    ("-iprefix", Role::Preprocessor),
    ("-iwithprefix", Role::Preprocessor),
    ("-iwithprefixbefore", Role::Preprocessor),
    ("-imultilib", Role::Preprocessor),
    ("-Xpreprocessor", Role::Preprocessor),
    ("-MF", Role::Dependency),
    ("-MT", Role::Dependency),
    ("-MQ", Role::Dependency),
    ("-MJ", Role::Dependency),
    ("-isysroot", Role::Other),
    ("--sysroot", Role::Other),
    ("-Xassembler", Role::Other),
    ("-Xlinker", Role::Linker),
    ("-Xclang", Role::Other),
    ("-L", Role::Linker),
    ("-l", Role::Linker),
    ("-T", Role::Linker),
    ("-u", Role::Linker),
    ("-z", Role::Linker),
    ("-e", Role::Linker),
    ("-rpath", Role::Linker),
    ("-framework", Role::Linker),
    ("-aux-info", Role::Other),
    ("-arch", Role::Other),
    ("-target", Role::Other),
    ("--param", Role::Other),
    ("-wrapper", Role::Other),
    ("-dumpdir", Role::Other),
    ("-dumpbase", Role::Other),
    ("-dumpbase-ext", Role::Other),
    ("-B", Role::Other),
    ("-G", Role::Other),
    ("-mllvm", Role::Other),
    ("-gcc-toolchain", Role::Other),
];

/// Options with the value in the same argument.
const JOINED: &[(&str, Role)] = &[
    ("-Wp,", Role::Preprocessor),
    ("-I", Role::Preprocessor),
    ("-D", Role::Preprocessor),
    ("-U", Role::Preprocessor),
    ("-include", Role::Preprocessor),
    ("-imacros", Role::Preprocessor),
    ("-iquote", Role::Preprocessor),
    ("-isystem", Role::Preprocessor),
    ("-idirafter", Role::Preprocessor),
    ("-iprefix", Role::Preprocessor),
    ("-iwithprefix", Role::Preprocessor),
    ("-nostdinc", Role::Preprocessor),
    ("-fmacro-prefix-map=", Role::Preprocessor),
    ("-undef", Role::Preprocessor),
    ("-MF", Role::Dependency),
    ("-MT", Role::Dependency),
    ("-MQ", Role::Dependency),
    ("-fuse-ld=", Role::Goal),
    ("-o", Role::Goal),
    ("-x", Role::Language),
    ("-Wl,", Role::Linker),
    ("-L", Role::Linker),
    ("-l", Role::Linker),
    ("-T", Role::Linker),
];

/// The arguments of a response file: separated by blanks; quotes and backslashes protect blanks.
pub fn response(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(c) = bytes.next() {
        match (c, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            (b'"' | b'\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_ascii_whitespace() => {
                words.extend(word.take().map(OsString::from_vec));
            }
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

/// The arguments with response files expanded; a file that cannot be read is left unchanged.
fn expanded(words: &[OsString], depth: u32, out: &mut Vec<OsString>) {
    for word in words {
        let named = word.as_bytes().strip_prefix(b"@");
        match named.and_then(|n| std::fs::read(OsStr::from_bytes(n)).ok()) {
            Some(text) if depth < 32 => expanded(&response(&text), depth + 1, out),
            _ => out.push(word.clone()),
        }
    }
}

/// Removes an option of ours, which may be in a response file, too; returns whether it was there.
pub fn without(given: &[OsString], ours: &str) -> (bool, Vec<OsString>) {
    let mut words = Vec::new();
    expanded(given, 0, &mut words);
    if !words.iter().any(|w| w == ours) {
        return (false, given.to_vec());
    }
    words.retain(|w| w != ours);
    (true, words)
}

/// CMake's arguments for clang's precompiled headers, after `-Xclang`.
fn is_included(option: &OsStr) -> bool {
    option == "-include" || option == "-include-pch"
}

fn is_header(input: &Input) -> bool {
    let named = input.named.as_deref().and_then(OsStr::to_str);
    let extension = Path::new(&input.path).extension().and_then(OsStr::to_str);
    named.map_or(extension == Some("h"), |n| n.ends_with("-header"))
}

fn language_of(named: Option<&OsStr>, path: &OsStr) -> Language {
    match named.and_then(OsStr::to_str) {
        Some("c") => return Language::C,
        Some("cpp-output") => return Language::Preprocessed,
        Some("none") | None => {}
        Some(_) => return Language::Other,
    }
    match Path::new(path).extension().and_then(OsStr::to_str) {
        Some("c") => Language::C,
        Some("i") => Language::Preprocessed,
        _ => Language::Other,
    }
}

impl Line {
    pub fn new(given: &[OsString]) -> Line {
        let mut words = Vec::new();
        expanded(given, 0, &mut words);
        let mut line = Line {
            inputs: Vec::new(),
            goal: Goal::Link,
            output: None,
            dependencies: Vec::new(),
            database: None,
            hosted: false,
            roles: Vec::new(),
            words,
        };
        let mut named: Option<OsString> = None;
        let mut at = 0;
        while at < line.words.len() {
            let word = line.words[at].clone();
            let text = word.to_string_lossy();
            if text == "-" || !text.starts_with('-') {
                line.inputs.push(Input {
                    at,
                    language: language_of(named.as_deref(), &word),
                    path: word.clone(),
                    named: named.clone(),
                });
                line.roles.push(Role::Input);
                at += 1;
                continue;
            }
            let separate = SEPARATE.iter().find(|(o, _)| *o == text);
            if let Some((option, role)) = separate
                && let Some(value) = line.words.get(at + 1).cloned()
            {
                match *option {
                    "-o" => line.output = Some(value.clone()),
                    "-x" => named = Some(value.clone()).filter(|n| n != "none"),
                    _ => {}
                }
                if *option == "-MJ" {
                    line.database = Some(value.clone());
                } else if *role == Role::Dependency {
                    line.dependencies.push(word.clone());
                    line.dependencies.push(value.clone());
                }
                if *option == "-Xclang" && is_included(&value) {
                    // The name of the header follows in the same way: four words.
                    let end = line.words.len().min(at + 4);
                    line.roles.resize(end, Role::Preprocessor);
                    at = end;
                    continue;
                }
                line.roles.push(*role);
                line.roles.push(*role);
                at += 2;
                continue;
            }
            let joined = JOINED.iter().find(|(o, _)| text.starts_with(o));
            let role = match text.as_ref() {
                "-c" | "-S" | "-fsyntax-only" => {
                    if line.goal == Goal::Link {
                        line.goal = Goal::Compile;
                    }
                    Role::Goal
                }
                "-E" => {
                    if line.goal != Goal::Other {
                        line.goal = Goal::Preprocess;
                    }
                    Role::Goal
                }
                "-shared" | "-static" | "-static-pie" | "-pie" | "-no-pie" | "-rdynamic" | "-s"
                | "-r" | "-P" | "-nostdlib" | "-nostartfiles" | "-nodefaultlibs"
                | "-static-libgcc" => Role::Goal,
                "-M" | "-MM" | "-###" | "--version" | "-dM" | "--analyze" => {
                    line.goal = Goal::Other;
                    Role::Other
                }
                "-MD" | "-MMD" | "-MP" | "-MG" => {
                    line.dependencies.push(word.clone());
                    Role::Dependency
                }
                t if t.starts_with("-Wp,-M") => {
                    line.written_through(t);
                    Role::Dependency
                }
                t => match joined {
                    Some(("-o", _)) if t.starts_with("-o") => {
                        line.output = Some(OsStr::from_bytes(&word.as_bytes()[2..]).into());
                        Role::Goal
                    }
                    Some(("-x", _)) => {
                        let n = OsStr::from_bytes(&word.as_bytes()[2..]).to_os_string();
                        named = Some(n).filter(|n| n != "none");
                        Role::Language
                    }
                    Some((_, Role::Dependency)) => {
                        line.dependencies.push(word.clone());
                        Role::Dependency
                    }
                    Some((_, role)) => *role,
                    None => Role::Other,
                },
            };
            line.roles.push(role);
            at += 1;
        }
        // Headers are precompiled, and nothing is linked.
        if line.goal == Goal::Link && line.inputs.iter().any(is_header) {
            line.goal = Goal::Other;
        }
        line
    }

    /// `-Wp,-MMD,file`: the form in which the kernel's makefiles request dependencies.
    fn written_through(&mut self, word: &str) {
        let mut parts = word.split(',').skip(1);
        while let Some(part) = parts.next() {
            self.dependencies.push(part.into());
            if matches!(part, "-MD" | "-MMD")
                && let Some(file) = parts.next()
            {
                self.dependencies.push("-MF".into());
                self.dependencies.push(file.into());
            }
        }
    }

    /// The arguments that compile one of the inputs as the whole line would: without other inputs and additional
    /// outputs.
    pub fn of_one(&self, input: &Input) -> Vec<OsString> {
        let words = self.words.iter().zip(&self.roles).enumerate();
        words
            .filter(|(at, (_, role))| match role {
                Role::Input => *at == input.at,
                role => **role != Role::Dependency,
            })
            .map(|(_, (word, _))| word.clone())
            .collect()
    }

    /// The arguments for the preprocessor: without inputs, outputs and dependencies.
    pub fn preprocessing(&self) -> Vec<OsString> {
        let kept = [Role::Preprocessor, Role::Other];
        self.with(|role| kept.contains(&role))
    }

    fn with(&self, keep: impl Fn(Role) -> bool) -> Vec<OsString> {
        let words = self.words.iter().zip(&self.roles);
        words
            .filter(|(_, r)| keep(**r))
            .map(|(w, _)| w.clone())
            .collect()
    }

    /// All arguments, with some inputs replaced by preprocessed texts. If no input remains to be preprocessed, the
    /// arguments for the preprocessor are omitted.
    pub fn replaced(&self, by: &[(usize, PathBuf)]) -> Vec<OsString> {
        let is_replaced = |at: usize| by.iter().find(|(i, _)| *i == at);
        let others = self.inputs.iter().any(|i| {
            let object = ["o", "a", "so", "lo"].iter().any(|e| {
                i.named.is_none() && Path::new(&i.path).extension().is_some_and(|x| x == *e)
            });
            is_replaced(i.at).is_none() && !object && i.language != Language::Preprocessed
        });
        let mut out: Vec<OsString> = Vec::new();
        for (at, (word, role)) in self.words.iter().zip(&self.roles).enumerate() {
            match role {
                Role::Input => match is_replaced(at) {
                    Some((_, path)) => {
                        // The next argument keeps its meaning.
                        let here = self.inputs.iter().position(|i| i.at == at);
                        let last = here.is_none_or(|i| i + 1 == self.inputs.len());
                        let named = here.and_then(|i| self.inputs[i].named.clone());
                        let then = named.filter(|_| !last).unwrap_or("none".into());
                        out.extend(["-x".into(), "cpp-output".into(), path.into()]);
                        out.extend(["-x".into(), then]);
                    }
                    None => out.push(word.clone()),
                },
                Role::Dependency | Role::Preprocessor if !others => {}
                _ => out.push(word.clone()),
            }
        }
        out
    }

    /// Whether something is linked.
    pub fn links(&self) -> bool {
        let kept = |w: &OsString| matches!(w.to_str(), Some("-r" | "-nostdlib" | "-nodefaultlibs"));
        self.goal == Goal::Link && !self.inputs.is_empty() && !self.words.iter().any(kept)
    }

    /// Whether the thread sanitizer is enabled: the last option counts.
    pub fn sanitizes_threads(&self) -> bool {
        let mut does = false;
        for word in self.words.iter().filter_map(|w| w.to_str()) {
            let list = |o| word.strip_prefix(o).map(|l: &str| l.split(','));
            if let Some(mut list) = list("-fsanitize=") {
                does |= list.any(|s| s == "thread");
            } else if let Some(mut list) = list("-fno-sanitize=") {
                does &= !list.any(|s| s == "thread" || s == "all");
            }
        }
        does
    }

    /// Whether the arguments name a library of Levada's runtime.
    pub fn names_our_library(&self) -> bool {
        let names = |w: &OsString| {
            let file = Path::new(w).file_name().and_then(OsStr::to_str);
            file.is_some_and(|f| {
                f == "-llevada" || f == "liblevada.a" || f.starts_with("liblevada.so")
            })
        };
        self.words.iter().any(names)
    }

    /// Whether objects may be linked that were compiled before.
    pub fn links_objects(&self) -> bool {
        let linker = self.roles.contains(&Role::Linker);
        let source = |i: &Input| i.language == Language::C;
        self.links() && (linker || !self.inputs.iter().all(source))
    }

    /// The arguments that select the machine and sanitizers: the expansion of `<levada/fork.h>` depends on them.
    pub fn machine(&self) -> Vec<OsString> {
        let mut out = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            if matches!(
                text.as_ref(),
                "-target" | "-arch" | "--sysroot" | "-isysroot"
            ) {
                out.push(word.clone());
                out.extend(words.next().cloned());
            } else if ["-m", "-fsanitize", "-fno-sanitize", "--target", "--sysroot"]
                .iter()
                .any(|o| text.starts_with(o))
                && text != "-mllvm"
            {
                out.push(word.clone());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn inputs_are_told_from_values() {
        let line = Line::new(&words(
            "-O2 -I inc -D A=1 -o x.o -c a.c -x c b.txt -x none c.o -",
        ));
        let of = |i: &Input| (i.path.to_str().unwrap().to_string(), i.language);
        let found: Vec<_> = line.inputs.iter().map(of).collect();
        let expected = [
            ("a.c", Language::C),
            ("b.txt", Language::C),
            ("c.o", Language::Other),
            ("-", Language::Other),
        ];
        assert_eq!(found, expected.map(|(p, l)| (p.to_string(), l)));
        assert_eq!(line.goal, Goal::Compile);
        assert_eq!(line.output.as_deref(), Some(OsStr::new("x.o")));
        assert_eq!(line.preprocessing(), words("-O2 -I inc -D A=1"));
    }

    #[test]
    fn the_preprocessor_is_not_told_what_comes_after_it() {
        let line = Line::new(&words("-fsyntax-only -fmacro-prefix-map=a=b -Wall a.c"));
        assert_eq!(line.preprocessing(), words("-fmacro-prefix-map=a=b -Wall"));
        let by = [(line.inputs[0].at, PathBuf::from("a.i"))];
        let expected = words("-fsyntax-only -Wall -x cpp-output a.i -x none");
        assert_eq!(line.replaced(&by), expected);
    }

    #[test]
    fn command_lines_that_only_preprocess_link_nothing() {
        for text in [
            "pre.h",
            "-O2 a.h -o a.h.gch",
            "-x c-header a -o a.gch",
            "--analyze a.c",
        ] {
            assert_eq!(Line::new(&words(text)).goal, Goal::Other, "{text}");
        }
        for text in ["a.c", "-include pre.h a.c", "-include-pch x.pch a.c"] {
            let line = Line::new(&words(text));
            assert_eq!((line.goal, line.inputs.len()), (Goal::Link, 1), "{text}");
        }
    }

    #[test]
    fn precompiled_headers_of_clang_are_the_preprocessors() {
        let line = Line::new(&words(
            "-O2 -Xclang -include-pch -Xclang a.pch -Xclang -include -Xclang a.h -Xclang -x -c a.c",
        ));
        let by = [(line.inputs[0].at, PathBuf::from("a.i"))];
        let expected = words("-O2 -Xclang -x -c -x cpp-output a.i -x none");
        assert_eq!(line.replaced(&by), expected);
    }

    #[test]
    fn replaced_inputs_leave_the_preprocessor_out() {
        let line = Line::new(&words("-Wall -DX -MMD -MF d -c a.c -oa.o"));
        let by = [(line.inputs[0].at, PathBuf::from("/t/a.i"))];
        let out = line.replaced(&by);
        assert_eq!(out, words("-Wall -c -x cpp-output /t/a.i -x none -oa.o"));
        assert_eq!(line.dependencies, words("-MMD -MF d"));
    }

    #[test]
    fn response_files_are_split_as_the_compiler_does() {
        let split = response(b"-DX=\"a b\" 'c d'\n e\\ f \"\" g");
        assert_eq!(
            split,
            ["-DX=a b", "c d", "e f", "", "g"].map(OsString::from)
        );
    }
}
