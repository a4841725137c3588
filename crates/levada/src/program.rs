// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C programs in a host: shared objects with a `main` (`levada/program.h`).

use crate::cli::PrepareArgs;
use crate::output::{self, Failure, failure, failure_with};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// A network's file is never called so.
pub fn is_one(network: &str) -> bool {
    let name = Path::new(network).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

/// There is nothing to compile; it is opened where it runs.
pub fn prepare(args: &PrepareArgs) -> Result<ExitCode, Failure> {
    let (network, given, compile) = (&args.network, &args.given, &args.compile);
    let given = [
        ("set", !network.set.is_empty()),
        ("path", !network.path.is_empty()),
        ("project", network.project.is_some()),
        ("in", given.input.is_some()),
        ("out", given.output.is_some()),
        ("option", !given.option.is_empty()),
        ("native", !compile.native.is_empty()),
        ("unchecked", compile.unchecked),
        ("outside", compile.outside.is_some()),
        ("any-sizes", compile.any_sizes.is_some()),
        ("no-fuse", compile.no_fuse),
    ];
    if let Some((option, _)) = given.into_iter().find(|o| o.1) {
        return failure_with(
            format!(
                "--{option} is for networks, and {} is a C program",
                network.network
            ),
            "what is for the program stands behind --, and is what its main is given",
        );
    }
    let file = Path::new(&network.network);
    if !file.exists() {
        return failure(format!("there is no file {}", network.network));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split(".so").next().unwrap_or_default();
    let said = json!({
        "object": std::path::absolute(file)?,
        "network": name.strip_prefix("lib").unwrap_or(name),
        "program": true,
        "options": [],
    });
    output::line(&said.to_string())?;
    Ok(ExitCode::SUCCESS)
}
