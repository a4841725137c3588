// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Networks: XDF files are read, checked and flattened to one [`ir::Network`].
//!
//! [`read`] parses one file to a tree, [`structure`] checks it against the classes that it uses, and [`flatten`]
//! elaborates it: parameters get values and are passed down, nested networks are expanded, and every output port
//! becomes one channel to all input ports that it reaches.

pub mod expr;
mod flatten;
mod interface;
mod locate;
mod note;
pub mod read;
mod structure;
pub(crate) mod types;

pub use crate::ir::type_name;
pub use locate::{NetworkFile, locate, locate_in};

use crate::diag::{Diagnostic, Diagnostics};
use crate::ir;
use crate::workspace::{ClassFile, Workspace, rivals_of};
use std::path::{Path, PathBuf};

/// Elaborates the network class `top` (an actor without ports stands for a network of itself).
/// `params` give values to its parameters and variables, as text.
///
/// A name that means two files is refused; [`load_file`] is told which.
pub fn load_network(
    ws: &mut Workspace,
    top: &str,
    params: &[(String, String)],
    diags: &mut Diagnostics,
) -> Option<ir::Network> {
    if let Some(rivals) = ws.rivals(top) {
        diags.push(rivals);
        return None;
    }
    match ws.find(top) {
        Some(file) => load_file(ws, top, &file, params, diags),
        None => {
            let shown: Vec<String> = ws.roots().iter().map(|r| r.display().to_string()).collect();
            let help = if shown.is_empty() {
                "name a folder of sources with --path".to_string()
            } else {
                format!(
                    "looked in: {}; add a folder of sources with --path",
                    shown.join(", ")
                )
            };
            diags.push(
                Diagnostic::error(
                    "unknown-class",
                    format!("no network or actor is called {top}"),
                )
                .help(help),
            );
            None
        }
    }
}

/// Elaborates the class `top` in `file`, even if another file has the same class name.
pub fn load_file(
    ws: &mut Workspace,
    top: &str,
    file: &ClassFile,
    params: &[(String, String)],
    diags: &mut Diagnostics,
) -> Option<ir::Network> {
    let errors = diags.error_count();
    let mut loader = structure::Loader::new(ws, diags);
    let network = match file {
        ClassFile::Xdf(path) => flatten::network(&mut loader, top, path, params),
        ClassFile::Cal(_) => flatten::single_actor(&mut loader, top, params),
    };
    network.filter(|_| diags.error_count() == errors)
}

/// Checks one network file: the file itself, the classes, ports and parameters that it names, and,
/// where it has neither ports nor open parameters, the whole network under it with all types.
pub fn check_xdf(ws: &mut Workspace, path: &Path, diags: &mut Diagnostics) {
    let errors = diags.error_count();
    diags.extend(rivals_of(path));
    let mut loader = structure::Loader::new(ws, diags);
    let path: PathBuf = path.to_path_buf();
    let Some(xdf) = loader.file(&path) else {
        return;
    };
    loader.check(&path, &xdf);
    let closed = xdf.inputs.is_empty()
        && xdf.outputs.is_empty()
        && xdf.params.iter().all(|p| p.value.is_some());
    if closed && loader.diags.error_count() == errors {
        let name = xdf.name.text.clone();
        flatten::network(&mut loader, &name, &path, &[]);
    }
}
