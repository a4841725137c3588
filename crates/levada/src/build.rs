// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada build`: a network as C, as a shared object, or as a program that holds the runtime too.

use crate::cli::{BuildArgs, Emit};
use crate::network::{self, Loaded};
use crate::output::{self, Failure, failure, failure_with};
use levada_cal::{compile, emit, natives};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The main function of a program that holds one network.
const MAIN: &str = include_str!("main.c.in");

pub fn build(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let loaded = network::load(&args.network)?;
    let options = network::compile_options(&loaded, &args.compile)?;
    let short = loaded.network.name.rsplit('.').next().unwrap_or("network");
    let output = args.output.clone().unwrap_or_else(|| match args.emit {
        Emit::C => PathBuf::from(format!("{short}.c")),
        Emit::So => PathBuf::from(format!("{short}.so")),
        Emit::Exe => PathBuf::from(short),
    });
    if output.is_dir() {
        return failure_with(
            format!("{} is a folder", output.display()),
            "name the file with -o FILE",
        );
    }
    let made = match args.emit {
        Emit::C => write_c(&compile::emit_c(&loaded.network, &options), &output)?,
        Emit::So => {
            let object = network::compile(&loaded, &options)?;
            output::copy_file(&object, &output)?;
            vec![output.clone()]
        }
        Emit::Exe => {
            // The object is made first: its errors are told best there.
            network::compile(&loaded, &options)?;
            program(&loaded, &options, &output)?;
            vec![output.clone()]
        }
    };
    if args.json {
        let kind = match args.emit {
            Emit::C => "c",
            Emit::So => "so",
            Emit::Exe => "exe",
        };
        let files = json!({
            "network": loaded.network.name,
            "emit": kind,
            "files": made,
            "actors": loaded.network.instances.len(),
            "channels": loaded.network.channels.len(),
        });
        output::line(&files.to_string())?;
    } else {
        for file in &made {
            eprintln!("made {}", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One file under the name that was asked for; a large network comes in several, beside it.
fn write_c(emitted: &emit::Emitted, output: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut made = Vec::new();
    for (i, file) in emitted.files.iter().enumerate() {
        let path = match (emitted.files.len(), i) {
            (1, _) => output.to_path_buf(),
            // They name each other, so they keep their names.
            _ => output.with_file_name(&file.name),
        };
        output::write_file(&path, file.text.as_bytes())?;
        made.push(path);
    }
    Ok(made)
}

/// Compiles the network's C, its natives and a main function with the static library.
fn program(loaded: &Loaded, options: &compile::Options, output: &Path) -> Result<(), Failure> {
    let include = match compile::include_dir(options) {
        Ok(include) => include,
        Err(e) => return failure(e.to_string()),
    };
    let library = library()?;
    let partial = output::partial_name(output);
    let work = partial.with_extension("d");
    let made = (|| {
        std::fs::create_dir(&work)?;
        let emitted = compile::emit_c(&loaded.network, options);
        let mut sources = vec![work.join("main.c")];
        std::fs::write(&sources[0], MAIN)?;
        for file in &emitted.files {
            let path = work.join(&file.name);
            std::fs::write(&path, &file.text)?;
            if path.extension().is_some_and(|e| e == "c") {
                sources.push(path);
            }
        }
        for (name, text) in natives::BUILT_IN {
            if emitted.natives.iter().any(|n| natives::defines(text, n)) {
                let path = work.join(name);
                std::fs::write(&path, text)?;
                sources.push(path);
            }
        }
        sources.extend(options.natives.iter().cloned());
        let cc = std::env::var("CC").ok().filter(|c| !c.trim().is_empty());
        let cc = cc.unwrap_or_else(|| "cc".to_string());
        let mut words = cc.split_whitespace();
        Command::new(words.next().unwrap_or("cc"))
            .args(words)
            .args(["-std=c17", "-O3", "-g1", "-march=native", "-D_GNU_SOURCE"])
            .args(["-ffp-contract=off", "-fno-math-errno", "-Wno-unused"])
            .arg("-I")
            .arg(&include)
            .args(&sources)
            .arg(&library)
            .args(["-lpthread", "-lm", "-o"])
            .arg(&partial)
            .output()
    })();
    let _ = std::fs::remove_dir_all(&work);
    let done = match made {
        Err(e) => failure(format!("cannot make {}: {e}", output.display())),
        Ok(out) if !out.status.success() => failure(format!(
            "the C compiler refuses the program:\n{}",
            String::from_utf8_lossy(&out.stderr)
        )),
        Ok(_) => match std::fs::rename(&partial, output) {
            Ok(()) => Ok(()),
            Err(e) => failure(format!("cannot write {}: {e}", output.display())),
        },
    };
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    done
}

/// The static library: beside an installed program, or where this was built.
fn library() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|exe| {
        let exe = exe.canonicalize().ok()?;
        Some(exe.parent()?.parent()?.join("lib/liblevada.a"))
    });
    let built = Path::new(env!("LEVADA_STATIC_LIBRARY")).to_path_buf();
    let mut tried = Vec::new();
    for path in [beside, Some(built)].into_iter().flatten() {
        if path.is_file() {
            return Ok(path);
        }
        tried.push(path.display().to_string());
    }
    failure_with(
        format!(
            "cannot find the static library; looked for {}",
            tried.join(", ")
        ),
        "install Levada with make install PREFIX=...",
    )
}
