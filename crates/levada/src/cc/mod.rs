// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada cc`: a C compiler driver that supports forks (`!!`).
//!
//! The system's compiler does the work. Each C file is preprocessed first. If it contains forks, the translated
//! text is compiled in its place; otherwise the compiler is run with the original arguments.

pub mod line;
pub mod toolchain;

use crate::cli::Cli;
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::std_streams;
use clap::CommandFactory;
use levada_cal::diag::{Diagnostic, Diagnostics, Sources, Span};
use levada_fork::emit::Style;
use levada_fork::lex;
use levada_fork::preprocessed::{self, Prelude, Refused};
use levada_fork::report;
use line::{Goal, Input, Language, Line};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// The C compiler that is wrapped: `$LEVADA_CC`, else `$CC`, else `cc`. Makefiles and CMake export `CC`, so it may
/// name this command, which is ignored.
pub fn compiler() -> Vec<OsString> {
    for variable in ["LEVADA_CC", "CC"] {
        let words: Vec<OsString> = std::env::var_os(variable)
            .map(|v| line::response(v.as_encoded_bytes()))
            .unwrap_or_default();
        let name = words.first().map(Path::new).and_then(Path::file_name);
        let ours = matches!(name.and_then(OsStr::to_str), Some("levada" | "levada-cc"));
        if !words.is_empty() && !ours {
            return words;
        }
    }
    vec!["cc".into()]
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn cannot_run(cc: &[OsString], why: &std::io::Error) -> Failure {
    let name = cc[0].to_string_lossy();
    Failure::new(format!("cannot run the C compiler `{name}`: {why}"))
        .help("install one (Debian: apt-get install gcc libc6-dev), or set CC")
}

/// `levada cc` with these arguments.
pub fn cc(words: &[OsString]) -> Result<ExitCode, Failure> {
    if words == ["--help"] {
        let mut command = Cli::command();
        command.build();
        if let Some(cc) = command.find_subcommand_mut("cc") {
            cc.print_long_help()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (serial, words) = line::without(words, "--serial");
    let style = if serial {
        Style::Serial
    } else {
        Style::Parallel
    };
    let (hosted, words) = line::without(&words, "--plugin");
    let words = if hosted { for_a_host(words) } else { words };
    let mut line = Line::new(&words);
    line.hosted = hosted;
    let cc = compiler();
    let sources: Vec<&Input> = line
        .inputs
        .iter()
        .filter(|i| i.language != Language::Other)
        .collect();
    if sources.is_empty() {
        return pass_on(&cc, &words, &line, None);
    }
    let mut session = Session {
        cc: &cc,
        line: &line,
        headers: None,
        asked: false,
        stdin: None,
    };
    if line.goal == Goal::Other {
        // Whether it needs Levada's headers is known after preprocessing.
        for input in &sources {
            session.preprocess(input)?;
        }
        return pass_on(&cc, &words, &line, Some(&session));
    }
    let mut texts = Vec::new();
    for input in &sources {
        match session.preprocess(input)? {
            Some(text) => {
                if line.goal != Goal::Preprocess
                    && let Some(why) = preprocessed::without_block(&text.output)
                {
                    session.refused(input, &why)?;
                    return Ok(ExitCode::FAILURE);
                }
                texts.push(text);
            }
            // The compiler reports the error, unless the file has forks, which it does not support.
            None if session.holds_forks(input)? => return session.complain(input),
            None => return pass_on(&cc, &words, &line, Some(&session)),
        }
    }
    if !texts.iter().any(|t| preprocessed::has_forks(&t.output)) {
        session.asked = texts.iter().any(|t| preprocessed::includes_ours(&t.output));
        return pass_on(&cc, &words, &line, Some(&session));
    }
    session.translated(&sources, texts, style)
}

/// Finds forks in C++ files, for which the compiler's errors would not tell the reason.
fn forks_in_cpp(line: &Line) -> Option<(Sources, Diagnostics)> {
    let mut found = Diagnostics::new();
    let mut sources = Sources::new();
    for input in line.inputs.iter().filter(|i| i.is_cpp()) {
        let Ok(text) = std::fs::read(&input.path) else {
            continue;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let tokens = lex::lex(text.as_bytes()).tokens;
        if let Some(&bang) = lex::forks(&tokens).first() {
            let shown = Sources::display_path(Path::new(&input.path));
            let span = Span {
                file: sources.add(shown, text.clone()),
                start: tokens[bang].start,
                end: tokens[bang + 1].end,
            };
            found.push(
                Diagnostic::error("fork-cpp", "`!!` is an operator of C, and this is C++")
                    .label(span, "a fork")
                    .help(
                        "in C++, write LVD_FORKABLE once for the function and LVD_FORK and LVD_JOIN for \
                         the call (<levada/fork.h>), or put the forks into a file of C",
                    ),
            );
        }
    }
    found.has_errors().then_some((sources, found))
}

/// Code for a host is a shared object. It must not overflow its fiber's stack, since other stacks lie next to it.
/// It is linked with -Bsymbolic so that it calls its own functions. Otherwise the loader would resolve a name such as
/// `pipe` or `kill` to the C library's or the host's function first.
fn for_a_host(words: Vec<OsString>) -> Vec<OsString> {
    let links = Line::new(&words).goal == Goal::Link;
    let how = std::iter::once("-fPIC").chain(levada_cal::compile::touches_each_page());
    let linked = ["-shared", levada_cal::compile::BINDS_OWN];
    how.chain(linked.into_iter().filter(|_| links))
        .map(OsString::from)
        .chain(words)
        .collect()
}

/// Executes the compiler with the original arguments.
fn pass_on(
    cc: &[OsString],
    words: &[OsString],
    line: &Line,
    session: Option<&Session>,
) -> Result<ExitCode, Failure> {
    let mut command = command(cc);
    command.args(words);
    if let Some(session) = session {
        if let Some(headers) = &session.headers {
            command.arg("-idirafter").arg(headers);
        }
        if let Some(mut input) = session.stdin.as_ref().and_then(|f| f.try_clone().ok()) {
            // The input is read again from the start.
            input.rewind()?;
            command.stdin(input);
        }
    }
    let asked = session.is_some_and(|s| s.asked);
    if line.links_objects() || (asked && line.links()) {
        note_thread_sanitizer(line, asked);
        command.args(library(line)?);
    }
    let Some((files, found)) = forks_in_cpp(line) else {
        return Err(cannot_run(cc, &command.exec()));
    };
    let status = command.status().map_err(|e| cannot_run(cc, &e))?;
    if !status.success() {
        output::diagnostics(&files, &found);
    }
    Ok(exit_code(status))
}

/// The library with the runtime for forks; without forks nothing of it is linked. A host contains it already.
fn library(line: &Line) -> Result<Vec<OsString>, Failure> {
    if line.hosted {
        return Ok(Vec::new());
    }
    let library = toolchain::folder()?.join("lib/liblevada.a");
    let mut words: Vec<OsString> = Vec::new();
    if line
        .words
        .iter()
        .any(|w| w.as_encoded_bytes().starts_with(b"-x"))
    {
        words.extend(["-x".into(), "none".into()]);
    }
    words.extend([library.into(), "-lpthread".into(), "-lm".into()]);
    Ok(words)
}

/// Warns that the library is not built for the thread sanitizer, which therefore does not know the runtime's
/// synchronisation. `forks`: it is known to be used; otherwise an object may use it.
fn note_thread_sanitizer(line: &Line, forks: bool) {
    let uses = |i: &Input| {
        let text = std::fs::read(&i.path).unwrap_or_default();
        text.windows(8).any(|w| w == b"lvd_fork")
    };
    if line.hosted || !line.sanitizes_threads() || line.names_our_library() {
        return;
    }
    if forks || line.inputs.iter().any(uses) {
        let note = "note: the thread sanitizer does not see into the runtime that is linked, and will report \
                    races that are none; build the runtime for it (cmake -S runtime -B tsan \
                    -DLVD_SANITIZE=thread), and name tsan/liblevada.a on the command line\n";
        let _ = std::io::stderr().lock().write_all(note.as_bytes());
    }
}

/// A preprocessed file.
struct Text {
    output: Vec<u8>,
    /// The messages of the preprocessor.
    said: Vec<u8>,
}

struct Session<'a> {
    cc: &'a [OsString],
    line: &'a Line,
    /// The folder of Levada's headers, if a file needs them.
    headers: Option<PathBuf>,
    /// Whether a file has included some of them, from this folder or from another that the compiler found.
    asked: bool,
    /// A copy of the standard input.
    stdin: Option<std::fs::File>,
}

/// A temporary folder; removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Failure> {
        for n in 0.. {
            let name = format!("levada-cc-{}-{n}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && n < 1000 => {}
                Err(e) => {
                    return failure_with(
                        format!("cannot make a folder for temporary files: {e}"),
                        "set TMPDIR to a folder of yours that has room",
                    );
                }
            }
        }
        failure("cannot make a folder for temporary files")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Session<'_> {
    /// Copies the standard input to a file, so that it can be read several times.
    fn standard_input(&mut self) -> Result<std::fs::File, Failure> {
        if self.stdin.is_none() {
            let mut text = Vec::new();
            std_streams::input()
                .and_then(|mut f| f.read_to_end(&mut text))
                .map_err(|e| Failure::new(format!("cannot read the input: {e}")))?;
            let scratch = Scratch::new()?;
            let path = scratch.0.join("input");
            std::fs::write(&path, &text)?;
            self.stdin = Some(std::fs::File::open(&path)?);
        }
        let kept = self.stdin.as_ref().expect("just set");
        // A duplicated descriptor would share the file position; opening the path does not.
        Ok(std::fs::File::open(format!(
            "/proc/self/fd/{}",
            kept.as_raw_fd()
        ))?)
    }

    /// The preprocessor's output; `None` if it fails.
    fn preprocess(&mut self, input: &Input) -> Result<Option<Text>, Failure> {
        if input.language == Language::Preprocessed {
            let mut output = Vec::new();
            let read = if input.path == "-" {
                self.standard_input()?.read_to_end(&mut output)
            } else {
                std::fs::File::open(&input.path).and_then(|mut f| f.read_to_end(&mut output))
            };
            let said = Vec::new();
            return Ok(read.ok().map(|_| Text { output, said }));
        }
        if let Some(text) = self.preprocess_once(input)? {
            return Ok(Some(text));
        }
        if self.headers.is_none() {
            // It may need Levada's headers.
            self.headers = Some(toolchain::folder()?.join("include"));
            if let Some(text) = self.preprocess_once(input)? {
                return Ok(Some(text));
            }
            self.headers = None;
        }
        Ok(None)
    }

    fn preprocessor(&mut self, input: &Input, goal: &[&OsStr]) -> Result<Command, Failure> {
        let mut command = command(self.cc);
        command.args(self.line.preprocessing());
        if let Some(headers) = &self.headers {
            command.arg("-idirafter").arg(headers);
        }
        command.args(goal);
        match &input.named {
            Some(named) => command.arg("-x").arg(named),
            None => command.args(["-x", "c"]),
        };
        command.arg(&input.path);
        if input.path == "-" {
            command.stdin(self.standard_input()?)
        } else {
            command.stdin(Stdio::null())
        };
        Ok(command)
    }

    fn preprocess_once(&mut self, input: &Input) -> Result<Option<Text>, Failure> {
        let mut command = self.preprocessor(input, &[OsStr::new("-E")])?;
        let done = command.output().map_err(|e| cannot_run(self.cc, &e))?;
        Ok(done.status.success().then_some(Text {
            output: done.stdout,
            said: done.stderr,
        }))
    }

    /// Whether there are forks in a file that cannot be preprocessed.
    fn holds_forks(&mut self, input: &Input) -> Result<bool, Failure> {
        let mut text = Vec::new();
        let read = if input.path == "-" {
            self.standard_input()?.read_to_end(&mut text)
        } else {
            std::fs::File::open(&input.path).and_then(|mut f| f.read_to_end(&mut text))
        };
        Ok(read.is_ok() && preprocessed::has_forks(&text))
    }

    /// Runs the preprocessor so that it reports its error.
    fn complain(&mut self, input: &Input) -> Result<ExitCode, Failure> {
        let mut command = self.preprocessor(input, &[OsStr::new("-E")])?;
        let status = command.stdout(Stdio::null()).status();
        let status = status.map_err(|e| cannot_run(self.cc, &e))?;
        Ok(if status.success() {
            ExitCode::FAILURE
        } else {
            exit_code(status)
        })
    }

    /// Prints the error for a refused construct.
    fn refused(&mut self, input: &Input, why: &Refused) -> Result<(), Failure> {
        let mut kept = Vec::new();
        if input.path == "-" {
            self.standard_input()?.read_to_end(&mut kept)?;
        }
        let stdin = (input.path == "-").then_some(("<stdin>", kept.as_slice()));
        let (files, found) = report::of_preprocessed(why, stdin);
        output::diagnostics(&files, &found);
        Ok(())
    }

    /// Translates the forks again, with the called functions protected from macros of the same name: some functions
    /// of the C library are also macros, depending on options (`-O`). Returns the remaining error, or `why` if macros
    /// are not the cause.
    fn without_macros(
        &mut self,
        input: &Input,
        mut why: Refused,
        style: Style,
        scratch: &Scratch,
    ) -> Result<Result<Vec<u8>, Refused>, Failure> {
        let path = input.path.to_str().filter(|p| *p != "-");
        let Some(path) = path.filter(|_| input.language == Language::C) else {
            return Ok(Err(why));
        };
        let folder = scratch.0.join(format!("bracketed-{}", input.at));
        std::fs::create_dir(&folder)?;
        let copy = folder.join("copy.c");
        let text = std::fs::read(path)?;
        let (mut lines, mut before) = (Vec::new(), None);
        // Only the first call of each function is reported.
        loop {
            let refused = why.lines_without_call(path);
            if refused.iter().any(|l| lines.contains(l)) {
                // There is no function of that name: the macro is the cause.
                return Ok(Err(before.unwrap_or(why)));
            }
            if refused.is_empty() {
                return Ok(Err(why));
            }
            lines.extend(refused);
            let Some(bracketed) = preprocessed::with_bracketed_calls(&text, &lines) else {
                return Ok(Err(why));
            };
            let mut named = format!("#line 1 {path:?}\n").into_bytes();
            named.extend_from_slice(&bracketed);
            std::fs::write(&copy, named)?;
            let Some(output) = self.preprocess_copy(input, path, &copy)? else {
                return Ok(Err(why));
            };
            match preprocessed::rewrite(&output, style, || self.prelude(scratch))? {
                Ok(made) => return Ok(Ok(made.into_owned())),
                Err(still) => before = Some(std::mem::replace(&mut why, still)),
            }
        }
    }

    /// The preprocessor's output for a copy of the file at `path`, as if it were that file; `None` if it fails.
    fn preprocess_copy(
        &mut self,
        input: &Input,
        path: &str,
        copy: &Path,
    ) -> Result<Option<Vec<u8>>, Failure> {
        // Included files are searched next to the original, not next to the copy.
        let folder = Path::new(path)
            .parent()
            .filter(|p| *p != Path::new(""))
            .unwrap_or(Path::new("."));
        let copied = Input {
            path: copy.into(),
            ..input.clone()
        };
        let goal = [OsStr::new("-E"), OsStr::new("-iquote"), folder.as_os_str()];
        let mut command = self.preprocessor(&copied, &goal)?;
        let done = command.output().map_err(|e| cannot_run(self.cc, &e))?;
        if !done.status.success() {
            return Ok(None);
        }
        let (mut rest, name) = (done.stdout.as_slice(), copy.as_os_str().as_bytes());
        let mut output = Vec::with_capacity(rest.len());
        while let Some(at) = rest.windows(name.len()).position(|w| w == name) {
            output.extend_from_slice(&rest[..at]);
            output.extend_from_slice(path.as_bytes());
            rest = &rest[at + name.len()..];
        }
        output.extend_from_slice(rest);
        Ok(Some(output))
    }

    /// Compiles the translated text.
    fn translated(
        &mut self,
        sources: &[&Input],
        texts: Vec<Text>,
        style: Style,
    ) -> Result<ExitCode, Failure> {
        let scratch = Scratch::new()?;
        let mut replaced = Vec::new();
        let mut refused = false;
        let mut preprocessed_all = Vec::new();
        for (input, text) in sources.iter().zip(texts) {
            let done = preprocessed::rewrite(&text.output, style, || self.prelude(&scratch))?;
            let made = match done {
                Ok(made) => made,
                Err(why) => match self.without_macros(input, why, style, &scratch)? {
                    Ok(made) => made.into(),
                    Err(why) => {
                        self.refused(input, &why)?;
                        refused = true;
                        continue;
                    }
                },
            };
            let has_forks = matches!(made, std::borrow::Cow::Owned(_));
            if has_forks || self.line.goal == Goal::Preprocess {
                let _ = std::io::stderr().write_all(&text.said);
            }
            if self.line.goal == Goal::Preprocess {
                preprocessed_all.extend_from_slice(&made);
            } else if has_forks {
                let folder = scratch.0.join(input.at.to_string());
                std::fs::create_dir(&folder)?;
                let stem = Path::new(&input.path)
                    .file_stem()
                    .unwrap_or(OsStr::new("-"));
                let mut name = stem.to_os_string();
                name.push(".i");
                let path = folder.join(name);
                std::fs::write(&path, &made)?;
                replaced.push((input.at, path));
            }
        }
        if refused {
            return Ok(ExitCode::FAILURE);
        }
        for input in sources {
            let ours = replaced.iter().any(|(at, _)| *at == input.at);
            if ours || self.line.goal == Goal::Preprocess {
                self.dependencies(input)?;
            }
        }
        if self.line.goal == Goal::Preprocess {
            // Our method needs the line markers that -P omits.
            return if self.line.words.iter().any(|w| w == "-P") {
                self.print(&preprocessed::without_markers(&preprocessed_all))
            } else {
                self.print(&preprocessed_all)
            };
        }
        let mut command = command(self.cc);
        // Code with forks runs on fiber stacks.
        command.args(levada_cal::compile::touches_each_page());
        command.args(self.line.replaced(&replaced));
        if let Some(headers) = &self.headers
            && replaced.len() < sources.len()
        {
            command.arg("-idirafter").arg(headers);
        }
        if self.line.links() {
            note_thread_sanitizer(self.line, true);
            command.args(library(self.line)?);
        }
        if self.stdin.is_some() {
            command.stdin(self.standard_input()?);
        }
        let status = command.status().map_err(|e| cannot_run(self.cc, &e))?;
        if let Some(file) = self.line.database.as_deref().filter(|_| status.success()) {
            self.database(sources, Path::new(file))?;
        }
        Ok(exit_code(status))
    }

    /// Writes a compilation database (clang's `-MJ`). The command it records is `levada cc`, which supports the
    /// operator.
    fn database(&self, sources: &[&Input], file: &Path) -> Result<(), Failure> {
        let (directory, us) = (std::env::current_dir()?, std::env::current_exe()?);
        let mut text = String::new();
        for input in sources {
            let mut arguments = vec![us.to_string_lossy().into_owned(), "cc".into()];
            let words = self.line.of_one(input);
            arguments.extend(words.iter().map(|w| w.to_string_lossy().into_owned()));
            let entry = serde_json::json!({
                "directory": directory.to_string_lossy(),
                "file": input.path.to_string_lossy(),
                "arguments": arguments,
            });
            text += &format!("{entry},\n");
        }
        output::write_file(file, text.as_bytes())
    }

    fn print(&self, text: &[u8]) -> Result<ExitCode, Failure> {
        match self.line.output.as_deref().filter(|o| *o != "-") {
            Some(path) => {
                let file = Path::new(path);
                let is = |input: &Input| same_file(Path::new(&input.path), file);
                if self.line.inputs.iter().any(is) {
                    let what = format!("{} is the input, and the output", file.display());
                    return failure_with(what, "name another file with -o");
                }
                output::write_file(file, text)?;
            }
            None => output::raw(text)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The expansion of `<levada/fork.h>` for the target machine.
    fn prelude(&self, scratch: &Scratch) -> Result<Prelude, Failure> {
        let headers = toolchain::folder()?.join("include");
        let file = scratch.0.join("prelude.c");
        std::fs::write(&file, preprocessed::PRELUDE)?;
        // The C library's headers are not included, so nothing is declared twice; old dialects have another keyword
        // for `inline`.
        let done = command(self.cc)
            .args(self.line.machine())
            .args([
                "-E",
                "-ffreestanding",
                "-std=gnu99",
                "-Dinline=__inline__",
                "-I",
            ])
            .arg(headers)
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| cannot_run(self.cc, &e))?;
        if !done.status.success() {
            return failure_with(
                format!(
                    "the C compiler cannot read <levada/fork.h>:\n{}",
                    String::from_utf8_lossy(&done.stderr).trim_end()
                ),
                "forks need gcc or clang; set CC",
            );
        }
        Prelude::new(&done.stdout).map_err(Failure::new)
    }

    /// Writes the requested makefile rules, since the compiler compiles another file.
    fn dependencies(&mut self, input: &Input) -> Result<(), Failure> {
        let asked = &self.line.dependencies;
        let has = |w: &str| {
            asked
                .iter()
                .any(|d| d.as_encoded_bytes().starts_with(w.as_bytes()))
        };
        if input.language == Language::Preprocessed || !(has("-MD") || has("-MMD")) {
            return Ok(());
        }
        let stem = Path::new(&input.path)
            .file_stem()
            .unwrap_or(OsStr::new("-"));
        // The names of the file and of the rule's target are derived from the output.
        let made = self.line.output.as_ref().filter(|o| *o != "-");
        let made = made.map(PathBuf::from);
        let made = made.unwrap_or_else(|| Path::new(stem).with_extension("o"));
        let mut goal: Vec<OsString> = Vec::new();
        goal.push(if has("-MMD") {
            "-MM".into()
        } else {
            "-M".into()
        });
        let kept = asked.iter().filter(|d| *d != "-MD" && *d != "-MMD");
        goal.extend(kept.cloned());
        if !has("-MF") {
            goal.extend(["-MF".into(), made.with_extension("d").into()]);
        }
        if !has("-MT") && !has("-MQ") {
            goal.extend(["-MQ".into(), made.into()]);
        }
        let goal: Vec<&OsStr> = goal.iter().map(OsString::as_os_str).collect();
        let mut command = self.preprocessor(input, &goal)?;
        let done = command.status().map_err(|e| cannot_run(self.cc, &e))?;
        if done.success() {
            Ok(())
        } else {
            failure("the C compiler cannot write the dependencies")
        }
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino()));
    id(a).is_ok_and(|a| id(b).is_ok_and(|b| a == b))
}

/// The exit status of a program in the shell's convention.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
