// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada load` and `levada replace`: start an application, or a new version of one in its place.

use super::format::{as_text, loaded_all};
use super::manifest::load_manifest;
use super::{CommandResult, application_path, client_for_load, request_load};
use crate::cli::{LoadArgs, ReplaceArgs};
use crate::common::output::{self, Failure};
use levada_host::protocol::{
    COMPILE_TIMEOUT_S, Details, LoadRequest, REQUEST_TIMEOUT_S, ReplaceRequest,
};
use serde_json::json;
use std::path::PathBuf;

pub fn load(args: &LoadArgs) -> CommandResult {
    if args.network.network.ends_with(".toml") {
        return load_manifest(args);
    }
    let request = request(args)?;
    let client = client_for_load(&args.at, request.timeout.unwrap_or(COMPILE_TIMEOUT_S))?;
    let quiet = args.compile.quiet;
    request_load(
        &args.at,
        quiet,
        client,
        "/applications",
        &json!(request),
        loaded,
    )
}

/// The request for a load.
fn request(args: &LoadArgs) -> Result<LoadRequest, Failure> {
    let text = |path: &PathBuf| as_text(path).map(str::to_string);
    let all = |paths: &[PathBuf]| paths.iter().map(text).collect::<Result<Vec<_>, _>>();
    let directory = std::env::current_dir()?;
    as_text(&directory)?;
    Ok(LoadRequest {
        network: args.network.network.clone(),
        arguments: args.arguments.clone(),
        directory,
        name: args.name.clone(),
        set: args.network.set.iter().cloned().collect(),
        input: args.given.input.as_ref().map(text).transpose()?,
        output: args.given.output.as_ref().map(text).transpose()?,
        option: args.given.option.iter().cloned().collect(),
        priority: args.priority,
        path: all(&args.network.path)?,
        project: args.network.project.as_ref().map(text).transpose()?,
        native: all(&args.compile.native)?,
        unchecked: args.compile.unchecked,
        out_of_bounds: args.compile.out_of_bounds.map(|o| o.name().to_string()),
        random_buffer_sizes: args.compile.random_buffer_sizes,
        no_fuse: args.compile.no_fuse,
        fixed_buffers: args.fixed_buffers,
        memory: args.memory,
        rate: args.rate,
        cpus: args.cpus,
        force: args.force,
        exclusive: args.exclusive,
        placement: args.placement.as_ref().map(text).transpose()?,
        core_usage_by_others: Vec::new(),
        isolate: args.isolate,
        paused: args.paused,
        timeout: args.at.timeout,
    })
}

pub fn replace(args: &ReplaceArgs) -> CommandResult {
    if args.load.name.is_some() || args.load.paused {
        return output::failure_with(
            "a new version has the name of the old one, and runs",
            "leave out --name and --paused",
        );
    }
    if args.load.network.network.ends_with(".toml") {
        return output::failure_with(
            "a new version is one network or program, and a manifest may hold several",
            "replace each by itself; levada load takes manifests",
        );
    }
    // The timeout limits how long the old version drains; the new one is compiled before.
    let drains = args.load.at.timeout.unwrap_or(REQUEST_TIMEOUT_S);
    let load = LoadRequest {
        timeout: None,
        ..request(&args.load)?
    };
    let request = ReplaceRequest {
        load,
        timeout: Some(drains),
    };
    let address = application_path(&args.old, "/replace");
    request_load(
        &args.load.at,
        args.load.compile.quiet,
        client_for_load(&args.load.at, COMPILE_TIMEOUT_S + drains)?,
        &address,
        &json!(request),
        |made: &Details| {
            for what in &made.state_reset {
                say!("note: {what}");
            }
            loaded(made).replacen("loaded", "replaced", 1)
        },
    )
}

fn loaded(made: &Details) -> String {
    loaded_all(std::slice::from_ref(made))
}
