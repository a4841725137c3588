// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada completions` and `levada man`: both are generated from the definition of the command line.

use crate::cli::Cli;
use crate::common::artifact;
use crate::common::output::{self, Failure, failure, failure_with};
use clap::CommandFactory;
use clap_complete::Shell;
use levada_host::Kind;
use std::path::Path;
use std::process::ExitCode;

pub fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "levada", &mut text);
    output::raw_line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The section about exit statuses: 0, and the table of errors.
fn exit_status() -> String {
    let mut text =
        String::from(".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\nwhat was asked for was done\n");
    for kind in Kind::all() {
        let (status, code) = (kind.exit_status(), kind.code());
        let meaning = kind.meaning().replace('-', "\\-");
        text += &format!(".TP\n\\fB{status}\\fR (\\fB{code}\\fR)\n{meaning}\n");
    }
    text + ".PP\nThe reason is on the error output; with \\fB\\-\\-json\\fR the word in parentheses is the field \
            \\fBcode\\fR.\n"
}

/// Inserts this section before the last one, the version.
fn with_status(page: &str) -> String {
    let at = page.find(".SH VERSION\n").unwrap_or(page.len());
    [&page[..at], &exit_status(), &page[at..]].concat()
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
        output::raw_line(String::from_utf8_lossy(&text).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(e) = std::fs::create_dir_all(dir) {
        return failure(format!("cannot make the folder {}: {e}", dir.display()));
    }
    let mut pages = vec![(dir.join("levada.1"), page(&command, "levada")?)];
    for sub in command.get_subcommands() {
        if sub.get_name() != "help" && !sub.is_hide_set() {
            let name = format!("levada-{}", sub.get_name());
            pages.push((dir.join(format!("{name}.1")), page(sub, &name)?));
        }
    }
    for (file, _) in &pages {
        artifact::check(file, artifact::Kind::Roff)?;
    }
    for (file, text) in &pages {
        artifact::write(file, text, artifact::Kind::Roff)?;
    }
    Ok(ExitCode::SUCCESS)
}
