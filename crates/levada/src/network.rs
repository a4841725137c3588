// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From what the user typed to an elaborated network.

use crate::cli::{CompileArgs, NetworkArgs};
use crate::output::{self, Failure, failure, failure_with};
use levada_cal::compile;
use levada_cal::diag::{Diagnostics, Sources};
use levada_cal::ir;
use levada_cal::workspace::{ClassFile, Workspace};
use levada_cal::xdf::{self, NetworkFile};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub struct Loaded {
    pub network: ir::Network,
    pub sources: Sources,
    /// Where the top network's classes begin.
    pub root: Option<PathBuf>,
    /// Warnings, as JSON; they have been shown.
    pub diagnostics: Vec<Value>,
}

/// Elaborates the network that the arguments name; diagnostics go to the error output.
pub fn load(args: &NetworkArgs) -> Result<Loaded, Failure> {
    for dir in &args.path {
        if !dir.is_dir() {
            return failure(format!("--path {}: there is no such folder", dir.display()));
        }
    }
    let Named { class, root, file } = resolve(args)?;
    let mut roots: Vec<PathBuf> = root.iter().cloned().collect();
    roots.extend(args.path.iter().cloned());
    let mut workspace = Workspace::new(roots);
    let mut diags = Diagnostics::new();
    let network = match file {
        Some(file) => xdf::load_file(&mut workspace, &class, &file, &args.set, &mut diags),
        None => xdf::load_network(&mut workspace, &class, &args.set, &mut diags),
    };
    output::diagnostics(&workspace.sources, &diags);
    let diagnostics = output::list(&workspace.sources, &diags);
    match network {
        Some(network) => Ok(Loaded {
            network,
            sources: workspace.sources,
            root,
            diagnostics,
        }),
        None => {
            let what = match output::counts(&diags).0 {
                0 => format!("{class} cannot be elaborated"),
                n => format!("{class}: {}", output::plural(n, "error")),
            };
            Err(Failure::new(what).found(diagnostics))
        }
    }
}

/// What the user named: a class, and the file where that was named.
struct Named {
    class: String,
    root: Option<PathBuf>,
    file: Option<ClassFile>,
}

fn resolve(args: &NetworkArgs) -> Result<Named, Failure> {
    let typed = args.network.as_str();
    let path = Path::new(typed);
    let is_file_name = typed.contains('/') || typed.ends_with(".xdf") || typed.ends_with(".cal");
    if path.is_dir() {
        return failure_with(
            format!("{typed} is a folder, not a network"),
            "name the .xdf file of the top network",
        );
    }
    if is_file_name {
        if !path.exists() {
            return failure(format!("there is no file {typed}"));
        }
        return match xdf::locate(path) {
            Ok(NetworkFile { root, class, file }) => Ok(Named {
                class,
                root: Some(root),
                file: Some(file),
            }),
            Err(what) => failure(what),
        };
    }
    let roots = match args.path.is_empty() {
        true => vec![PathBuf::from(".")],
        false => args.path.clone(),
    };
    // A file of the name, but no class: the file was meant.
    if path.exists() && Workspace::new(roots.clone()).find(typed).is_none() {
        return failure_with(
            format!("{typed} is neither a network (.xdf) nor an actor (.cal)"),
            "name the .xdf file of the top network",
        );
    }
    let name = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || "_$".contains(c))
    };
    if !typed.split('.').all(name) {
        return failure_with(
            format!("{typed:?} names no network"),
            "write the path of an .xdf file, or a class name such as a.b.Top",
        );
    }
    Ok(Named {
        class: typed.to_string(),
        root: roots.into_iter().next(),
        file: None,
    })
}

/// The C files that go into the network's shared object: those named, and those in a folder
/// `natives` beside the source root.
fn natives(loaded: &Loaded, args: &CompileArgs) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    if let Some(folder) = loaded
        .root
        .as_ref()
        .and_then(|r| r.canonicalize().ok())
        .and_then(|r| Some(r.parent()?.join("natives")))
        && let Ok(entries) = std::fs::read_dir(&folder)
    {
        files = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "c"))
            .collect();
        files.sort();
    }
    for file in &args.native {
        match file.canonicalize() {
            Ok(full) if full.is_file() => files.push(full),
            _ => {
                return failure(format!(
                    "--native {}: there is no such file",
                    file.display()
                ));
            }
        }
    }
    files.dedup();
    Ok(files)
}

pub fn compile_options(loaded: &Loaded, args: &CompileArgs) -> Result<compile::Options, Failure> {
    Ok(compile::Options {
        checks: !args.unchecked,
        fuse: !args.no_fuse,
        natives: natives(loaded, args)?,
        forking: std::env::current_exe().ok(),
        ..compile::Options::default()
    })
}

/// The shared object of a network, from the cache or made now.
pub fn compile(
    loaded: &mut Loaded,
    options: &compile::Options,
) -> Result<compile::Compiled, Failure> {
    match compile::compile(&loaded.network, options) {
        Err(e) => Err(Failure::new(e.to_string()).found(loaded.diagnostics.clone())),
        Ok(mut made) => {
            let mut diags = Diagnostics::new();
            diags.extend(std::mem::take(&mut made.warnings));
            output::diagnostics(&loaded.sources, &diags);
            let found = output::list(&loaded.sources, &diags);
            loaded.diagnostics.extend(found);
            Ok(made)
        }
    }
}
