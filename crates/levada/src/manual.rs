// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completions and manual pages, both made from the definition of the command line.

use crate::cli::Cli;
use crate::output::{self, Failure, failure, failure_with};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;
use std::process::ExitCode;

pub fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "levada", &mut text);
    output::line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// How every command ends, as a section of its page.
const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
\fB0\fR
what was asked for was done
.TP
\fB1\fR
it was not; the reason is on the error output
.TP
\fB2\fR
the command line is wrong
.TP
\fB130\fR
interrupted (128 and the number of the signal: 143 when it was told to terminate)
"#;

/// The page with that section before its last one, the version.
fn with_status(page: &str) -> String {
    let at = page.find(".SH VERSION\n").unwrap_or(page.len());
    [&page[..at], EXIT_STATUS, &page[at..]].concat()
}

pub fn man(of: Option<&str>, dir: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    command.build();
    let page = |command: &clap::Command, name: &str| {
        let mut text = Vec::new();
        let version = command.get_version().unwrap_or_default();
        let source = format!("{name} {version}");
        let command = command.clone().display_name(name.to_string());
        let page = clap_mangen::Man::new(command).source(source);
        match page.render(&mut text) {
            Ok(()) => Ok(with_status(&String::from_utf8_lossy(&text)).into_bytes()),
            Err(e) => failure(format!("cannot make the page of {name}: {e}")),
        }
    };
    let Some(dir) = dir else {
        let text = match of.filter(|of| *of != "levada") {
            None => page(&command, "levada")?,
            Some(of) => match command.find_subcommand(of.trim_start_matches("levada-")) {
                Some(sub) => page(sub, &format!("levada-{}", sub.get_name()))?,
                None => {
                    return failure_with(
                        format!("there is no command {of}"),
                        "levada help lists them",
                    );
                }
            },
        };
        output::line(String::from_utf8_lossy(&text).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(e) = std::fs::create_dir_all(dir) {
        return failure(format!("cannot make the folder {}: {e}", dir.display()));
    }
    output::write_file(&dir.join("levada.1"), &page(&command, "levada")?)?;
    for sub in command.get_subcommands() {
        if sub.get_name() != "help" && !sub.is_hide_set() {
            let name = format!("levada-{}", sub.get_name());
            output::write_file(&dir.join(format!("{name}.1")), &page(sub, &name)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
