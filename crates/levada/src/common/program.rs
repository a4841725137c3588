// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C programs as applications: shared objects with a `main` function (`levada/program.h`).

use crate::cli::{CompileArgs, GivenArgs, NetworkArgs, PrepareArgs, RunArgs};
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::prepare_cache::CompiledSources;
use crate::common::runnable::Runnable;
use crate::common::trial_open;
use levada_sys::Network;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Whether the name is that of a shared object. Files of networks have other names.
pub fn is_program(network: &str) -> bool {
    let name = Path::new(network).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

/// `levada prepare` for a C program, which needs no compilation.
pub fn prepare(args: &PrepareArgs) -> Result<ExitCode, Failure> {
    refuse(&args.network, &args.given, &args.compile, &[])?;
    let file = std::path::absolute(&args.network.network)?;
    if args.open {
        trial_open::open(&file)?;
    }
    let said = json!({
        "object": file,
        "network": name(&args.network.network),
        "program": true,
        "options": [],
    });
    output::line(&said.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Opens a C program for `levada run`.
pub fn open(args: &RunArgs) -> Result<Runnable, Failure> {
    let only = [
        ("play", args.play),
        ("placement", args.placement.is_some()),
        ("record", args.record.is_some()),
        ("graph", args.graph.is_some()),
        ("fixed-buffers", args.fixed_buffers),
    ];
    refuse(&args.network, &args.given, &args.compile, &only)?;
    let file = std::path::absolute(&args.network.network)?;
    // SAFETY: the user asked to run this program, and so trusts its code.
    let network = unsafe { Network::program(&file, &args.arguments) };
    Ok(Runnable {
        name: name(&args.network.network),
        network: Arc::new(network.map_err(Failure::new)?),
        sources: CompiledSources::None,
        object: None,
        diagnostics: Vec::new(),
    })
}

/// Refuses options that apply to networks only, and files that do not exist.
fn refuse(
    network: &NetworkArgs,
    given: &GivenArgs,
    compile: &CompileArgs,
    more: &[(&str, bool)],
) -> Result<(), Failure> {
    let all = [
        ("set", !network.set.is_empty()),
        ("path", !network.path.is_empty()),
        ("project", network.project.is_some()),
        ("in", given.input.is_some()),
        ("out", given.output.is_some()),
        ("option", !given.option.is_empty()),
        ("native", !compile.native.is_empty()),
        ("unchecked", compile.unchecked),
        ("out-of-bounds", compile.out_of_bounds.is_some()),
        ("random-buffer-sizes", compile.random_buffer_sizes.is_some()),
        ("no-fuse", compile.no_fuse),
    ];
    if let Some((option, _)) = all.iter().chain(more).find(|o| o.1) {
        return failure_with(
            format!(
                "--{option} is for networks, and {} is a C program",
                network.network
            ),
            "what is for the program stands behind --, and is what its main is given",
        );
    }
    if Path::new(&network.network).exists() {
        Ok(())
    } else {
        failure(format!("there is no file {}", network.network))
    }
}

/// The application's name: `work` for libwork.so.1.
fn name(file: &str) -> String {
    let name = Path::new(file).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let name = name.split(".so").next().unwrap_or_default();
    name.strip_prefix("lib").unwrap_or(name).to_string()
}
