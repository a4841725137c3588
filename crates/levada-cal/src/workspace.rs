// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The workspace: where classes are found, and what has been read, checked and specialised.

use crate::diag::{Diagnostic, Diagnostics, Sources};
use crate::ir;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a class lives. A path that begins with `<levada>/` is of the built-in library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassFile {
    Cal(PathBuf),
    Xdf(PathBuf),
}

/// What a network needs to know of an actor class before its parameters have values. (The types of
/// ports may depend on them: they are in [`ir::Actor`].)
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub inputs: Vec<PortDecl>,
    pub outputs: Vec<PortDecl>,
    pub params: Vec<ParamDecl>,
    pub span: ir::Span,
}

#[derive(Clone, Debug)]
pub struct PortDecl {
    pub name: String,
    pub span: ir::Span,
}

#[derive(Clone, Debug)]
pub struct ParamDecl {
    pub name: String,
    /// `None` when the type depends on another parameter.
    pub ty: Option<ir::Type>,
    /// Whether it may be left out.
    pub has_default: bool,
    /// The default, where it does not depend on another parameter.
    pub default: Option<ir::Value>,
    pub span: ir::Span,
}

pub struct Workspace {
    pub sources: Sources,
    roots: Vec<PathBuf>,
}

impl Workspace {
    /// Source roots in order of preference; the built-in library comes after them.
    pub fn new(roots: Vec<PathBuf>) -> Workspace {
        Workspace {
            sources: Sources::new(),
            roots,
        }
    }

    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Where `a.b.C` lives: the first root that has a/b/C.cal or a/b/C.xdf.
    pub fn find(&self, class: &str) -> Option<ClassFile> {
        let relative: PathBuf = class.split('.').collect();
        for root in &self.roots {
            let cal = root.join(&relative).with_extension("cal");
            if cal.is_file() {
                return Some(ClassFile::Cal(cal));
            }
            let xdf = root.join(&relative).with_extension("xdf");
            if xdf.is_file() {
                return Some(ClassFile::Xdf(xdf));
            }
        }
        None
    }

    /// Parse and type-check one file (without parameter values); reports every error.
    pub fn check_file(&mut self, path: &Path, diags: &mut Diagnostics) {
        diags.push(Diagnostic::error(
            "cannot-read",
            format!("cannot read {}", path.display()),
        ));
    }

    /// Ports and parameters of an actor class.
    pub fn interface(&mut self, class: &str, diags: &mut Diagnostics) -> Option<Interface> {
        diags.push(Diagnostic::error(
            "cannot-read",
            format!("cannot read the class {class}"),
        ));
        None
    }

    /// The actor with these parameter values, lowered; equal parameters share one `Arc`. Values are
    /// converted to the parameters' types. `at` is where the instance is asked for.
    pub fn instantiate(
        &mut self,
        class: &str,
        params: &[(String, ir::Value)],
        at: ir::Span,
        diags: &mut Diagnostics,
    ) -> Option<Arc<ir::Actor>> {
        let _ = params;
        diags.push(
            Diagnostic::error("cannot-read", format!("cannot read the class {class}"))
                .label(at, ""),
        );
        None
    }
}
