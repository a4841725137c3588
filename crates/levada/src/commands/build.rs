// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada build`: compiles a network to C, to a shared object, or to a program that includes the runtime.

use crate::cc::toolchain::LIBRARY;
use crate::cli::{BuildArgs, Emit};
use crate::common::artifact::{self, Kind};
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::resolve::{self, Loaded};
use levada_cal::natives::OptionNames;
use levada_cal::{compile, cpp, emit, headers, natives};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The main function of a program with one network.
const MAIN: &str = include_str!("../main.c.in");

pub fn build(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let mut loaded = resolve::load(&args.network)?;
    let options = resolve::compile_options(&loaded, &args.compile)?;
    let short = loaded.network.name.rsplit('.').next().unwrap_or("network");
    let output = args.output.clone().unwrap_or_else(|| match args.emit {
        Emit::C => PathBuf::from(format!("{short}.c")),
        Emit::So => PathBuf::from(format!("{short}.so")),
        Emit::Exe => PathBuf::from(short),
    });
    // Into a folder, C is written as several files, one for each actor class if there is much code.
    let folder = args.emit == Emit::C && args.output.is_some() && is_folder(&output);
    if let Ok(there) = std::fs::metadata(&output)
        && !there.is_file()
        && !folder
    {
        let what = if there.is_dir() {
            "is a folder"
        } else {
            "is no file that could be replaced"
        };
        return failure_with(
            format!("{} {what}", output.display()),
            "name the file with -o FILE",
        );
    }
    if output::is_standard(&output) && (args.emit != Emit::C || args.json) {
        return failure_with(
            "only C can go to the output, and not together with --json",
            "name the file with -o FILE",
        );
    }
    if args.emit != Emit::C {
        artifact::check(&output, Kind::Object)?;
    }
    let made = match args.emit {
        Emit::C => {
            let one_file = !folder;
            let options = compile::Options {
                one_file,
                ..options
            };
            let emitted = compile::emit_c(&loaded.network, &options);
            write_c(&emitted, &output, folder)?
        }
        Emit::So => {
            let object = resolve::compile(&mut loaded, &options)?.object;
            artifact::copy_object(&object, &output)?;
            vec![output.clone()]
        }
        Emit::Exe => {
            // The object is compiled first, since its errors are reported best.
            let made = resolve::compile(&mut loaded, &options)?;
            program(&loaded, &options, &made.options, &output)?;
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
            "diagnostics": loaded.diagnostics,
        });
        output::line(&files.to_string())?;
    } else {
        for file in made.iter().filter(|f| !output::is_standard(f)) {
            say!("made {}", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether `-o` names a folder: an existing one, or a name that ends with `/`.
fn is_folder(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Writes one file, or several files into a folder. Nothing is written unless all files can be written.
fn write_c(emitted: &emit::Emitted, output: &Path, folder: bool) -> Result<Vec<PathBuf>, Failure> {
    if folder && let Err(e) = std::fs::create_dir_all(output) {
        return failure(format!("cannot make the folder {}: {e}", output.display()));
    }
    let path = |file: &emit::File| {
        if folder {
            output.join(&file.name)
        } else {
            output.to_path_buf()
        }
    };
    let made: Vec<PathBuf> = emitted.files.iter().map(path).collect();
    for path in &made {
        artifact::check(path, Kind::C)?;
    }
    for (path, file) in made.iter().zip(&emitted.files) {
        artifact::write(path, file.text.as_bytes(), Kind::C)?;
    }
    Ok(made)
}

/// The names of the options that the network accepts, as C; NULL if it accepts any.
fn accepted(names: &OptionNames) -> String {
    let listed: String = names.all().map(|n| format!("\"{n}\", ")).collect();
    let table = if names.any { "NULL" } else { "levada_names" };
    format!(
        "#include <stddef.h>\nstatic const char *const levada_names[] = {{{listed}NULL}};\n\
         static const char *const *const levada_accepted = {table};\n"
    )
}

/// Compiles the network's C, its natives and a main function with the static library.
fn program(
    loaded: &Loaded,
    options: &compile::Options,
    names: &OptionNames,
    output: &Path,
) -> Result<(), Failure> {
    let cannot = |e| Failure::new(format!("cannot make {}: {e}", output.display()));
    let scratch = artifact::ScratchFolder::next_to(&output::followed(output)).map_err(cannot)?;
    let (work, partial) = (&scratch.0, scratch.0.join("program"));
    let made = (|| {
        headers::write(&work.join("include"))?;
        for (name, text) in natives::HEADERS {
            let path = work.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(work))?;
            std::fs::write(path, text)?;
        }
        let library = work.join("liblevada.a");
        std::fs::write(&library, LIBRARY)?;
        let emitted = compile::emit_c(&loaded.network, options);
        let mut sources = vec![work.join("main.c")];
        std::fs::write(&sources[0], format!("{}{MAIN}", accepted(names)))?;
        // Names of networks and actors are the user's, so their files have a folder of their own.
        let network = work.join("network");
        std::fs::create_dir(&network)?;
        for file in &emitted.files {
            let path = network.join(&file.name);
            std::fs::write(&path, &file.text)?;
            if path.extension().is_some_and(|e| e == "c") {
                sources.push(path);
            }
        }
        let texts = options.natives.iter();
        let texts = texts.filter(|p| !compile::is_shared_object(p));
        let of_users = texts.map(std::fs::read_to_string);
        let of_users = of_users.collect::<Result<Vec<_>, _>>()?;
        for built_in in natives::built_in(&emitted.natives, &of_users) {
            natives::write(built_in, work)?;
            sources.push(work.join(built_in.file));
        }
        let cc = compile::Compiler::new(options).map_err(std::io::Error::other)?;
        let mut cpp = None;
        for (i, file) in options.natives.iter().enumerate() {
            if !cpp::is_cpp(file) {
                sources.push(file.clone());
                continue;
            }
            cpp = Some(cpp::LIBRARY);
            let object = work.join(format!("{i}.o"));
            let done = cpp::compiler()
                .args(cc.options(true))
                .args(["-c", "-I"])
                .arg(work.join("include"))
                .arg(file)
                .arg("-o")
                .arg(&object)
                .output()?;
            if !done.status.success() {
                return Ok(done);
            }
            sources.push(object);
        }
        let may_fork = |path: &PathBuf| {
            !cpp::is_cpp(path) && std::fs::read_to_string(path).is_ok_and(|t| compile::may_fork(&t))
        };
        let mut command = match &options.forking {
            Some(forking) if options.natives.iter().any(may_fork) => {
                compile::wrapped(forking, &cc.name)
            }
            _ => cc.command(),
        };
        command
            .args(cc.options(false))
            .arg("-I")
            .arg(work.join("include"))
            .args(&sources)
            .arg(&library)
            .args(compile::run_paths(&sources))
            .args(["-lpthread", "-lm"])
            .args(cpp)
            .arg("-o")
            .arg(&partial)
            .output()
    })();
    match made {
        Err(e) => Err(cannot(e)),
        Ok(out) if !out.status.success() || !partial.is_file() => failure_with(
            format!(
                "the C compiler cannot make {}:\n{}",
                output.display(),
                String::from_utf8_lossy(&out.stderr).trim_end()
            ),
            "see whether there is room on the disk; levada doctor looks at the compiler",
        ),
        Ok(_) => artifact::move_object(&partial, output),
    }
}
