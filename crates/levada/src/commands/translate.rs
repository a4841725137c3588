// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada translate`: prints a C file with its forks translated to plain C, for reading or shipping.

use crate::cc::{self, toolchain};
use crate::cli::TranslateArgs;
use crate::common::artifact::{self, Kind};
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::std_streams;
use levada_fork::emit::Style;
use levada_fork::preprocessed::has_forks;
use levada_fork::source::{self, Translated};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

pub fn translate(args: &TranslateArgs) -> Result<ExitCode, Failure> {
    let shown = args.file.display().to_string();
    let mut text = Vec::new();
    let read = if output::is_standard(&args.file) {
        std_streams::input().and_then(|mut f| f.read_to_end(&mut text))
    } else {
        std::fs::File::open(&args.file).and_then(|mut f| f.read_to_end(&mut text))
    };
    if let Err(why) = read {
        return failure(format!("cannot read {shown}: {why}"));
    }
    let style = if args.serial {
        Style::Serial
    } else {
        Style::Parallel
    };
    let folder = args.file.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let in_folder = |name: &str| {
        let path = folder.as_ref().ok()?.join(name);
        path.is_file().then(|| path.display().to_string())
    };
    let spread = source::spread(&text, &in_folder);
    let preprocessed = match preprocess(args, &spread.text) {
        Ok(preprocessed) => preprocessed,
        // A file without forks need not be parsed.
        Err(_) if !has_forks(&text) => return print(&args.output, &text),
        Err(why) => return Err(why),
    };
    let (files, left_out) = source::left_out(&shown, &text, &spread, &preprocessed);
    match source::translate(&shown, &text, &spread, &preprocessed, style) {
        Translated::Same => {
            output::diagnostics(&files, &left_out);
            print(&args.output, &text)
        }
        Translated::Text(out) => {
            output::diagnostics(&files, &left_out);
            print(&args.output, &out)
        }
        Translated::Refused(files, found) => {
            output::diagnostics(&files, &found);
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print(path: &Path, text: &[u8]) -> Result<ExitCode, Failure> {
    if output::is_standard(path) {
        output::raw(text)?
    } else {
        artifact::write(path, text, Kind::C)?
    }
    Ok(ExitCode::SUCCESS)
}

fn preprocess(args: &TranslateArgs, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let cc = cc::compiler();
    let failed = |why: std::io::Error| {
        Failure::new(format!(
            "cannot run the C compiler `{}`: {why}",
            cc[0].to_string_lossy()
        ))
    };
    let mut child = Command::new(&cc[0])
        .args(&cc[1..])
        .args(&args.options)
        .arg("-idirafter")
        .arg(toolchain::folder()?.join("include"))
        .args(["-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take().expect("it is piped");
    let done = std::thread::scope(|s| {
        s.spawn(move || {
            // A compiler that stops reading reports an error.
            let _ = input.write_all(text);
        });
        child.wait_with_output()
    })?;
    if !done.status.success() {
        return failure_with(
            format!(
                "the C compiler cannot preprocess {}:\n{}",
                args.file.display(),
                String::from_utf8_lossy(&done.stderr).trim_end()
            ),
            "give it the options that it needs behind --, as in: levada translate x.c -- -Iinclude",
        );
    }
    Ok(done.stdout)
}
