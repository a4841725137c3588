// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada load FILE.toml`: loads the applications of a manifest, all or none.

use super::format::{as_text, loaded_all};
use super::{CommandResult, client_for_load, request_load};
use crate::cli::LoadArgs;
use crate::common::output::{self, Failure};
use levada_host::http::body::LARGEST_REQUEST;
use levada_host::protocol::{COMPILE_TIMEOUT_S, Details, Manifest, read_error};
use serde_json::json;

/// The first given option that applies to a single application; a manifest sets these for each.
fn not_for_manifests(args: &LoadArgs) -> Option<&'static str> {
    let (network, given, compile) = (&args.network, &args.given, &args.compile);
    let all = [
        ("name", args.name.is_some()),
        ("in", given.input.is_some()),
        ("out", given.output.is_some()),
        ("option", !given.option.is_empty()),
        ("set", !network.set.is_empty()),
        ("path", !network.path.is_empty()),
        ("project", network.project.is_some()),
        ("priority", args.priority != 0),
        ("fixed-buffers", args.fixed_buffers),
        ("memory", args.memory.is_some()),
        ("rate", args.rate.is_some()),
        ("cpus", args.cpus.is_some()),
        ("force", args.force),
        ("placement", args.placement.is_some()),
        ("exclusive", args.exclusive),
        ("isolate", args.isolate),
        ("paused", args.paused),
        ("native", !compile.native.is_empty()),
        ("unchecked", compile.unchecked),
        ("out-of-bounds", compile.out_of_bounds.is_some()),
        ("random-buffer-sizes", compile.random_buffer_sizes.is_some()),
        ("no-fuse", compile.no_fuse),
        ("fuse", compile.fuse),
        ("", !args.arguments.is_empty()),
    ];
    all.into_iter().find(|o| o.1).map(|o| o.0)
}

/// Loads all applications or none. Paths in the manifest are relative to its folder.
pub(super) fn load_manifest(args: &LoadArgs) -> CommandResult {
    if let Some(option) = not_for_manifests(args) {
        return output::failure_with(
            format!("--{option}: a manifest says itself how its applications are loaded"),
            "write it into the manifest, or load the network alone",
        );
    }
    let path = std::path::absolute(&args.network.network)?;
    let shown = path.display();
    let text = levada_host::util::text_file::read(&path);
    let text = text.map_err(|e| Failure::new(format!("{shown}: {e}")))?;
    let read: Result<Manifest, _> = toml::from_str(&text);
    let mut manifest = read.map_err(|e| {
        Failure::new(format!("{shown}: {}", read_error(&e).trim_end()))
            .help(
                "each [[application]] has a network, and what levada load knows: name, in, out, set, ...; \
                 core_usage_by_others is for one that is loaded alone",
            )
    })?;
    let folder = path
        .parent()
        .map(std::path::Path::to_path_buf)
        .unwrap_or_default();
    as_text(&folder)?;
    for one in &mut manifest.application {
        let numbers = [
            ("rate", one.rate),
            ("cpus", one.cpus),
            ("timeout", one.timeout),
        ];
        for (what, number) in numbers {
            // JSON has no such numbers; they would be dropped.
            if let Some(number) = number.filter(|n| !n.is_finite()) {
                return output::failure(format!("{shown}: {what} is {number}, which is no number"));
            }
        }
        one.directory = folder.join(&one.directory);
        one.timeout = one.timeout.or(args.at.timeout);
    }
    let request = json!(manifest);
    let size = request.to_string().len();
    if size > LARGEST_REQUEST {
        let most = LARGEST_REQUEST >> 20;
        return output::failure_with(
            format!(
                "{shown}: it is a request of {size} bytes, and a host takes {most} MiB at a time"
            ),
            "load what is in it by several manifests",
        );
    }
    let each = manifest.application.iter();
    let all = each
        .map(|one| one.timeout.unwrap_or(COMPILE_TIMEOUT_S))
        .sum::<f64>();
    request_load(
        &args.at,
        args.compile.quiet,
        client_for_load(&args.at, all.clamp(0.0, 1e9))?,
        "/manifest",
        &request,
        |all: &Vec<Details>| loaded_all(all),
    )
}
