// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks a network against the classes that it uses: ports, parameters, connections.
//!
//! This needs only the file and the interfaces of its classes, before any parameter has a value. Types are checked
//! when the network is flattened.

use super::expr::Expr;
use super::interface::{ClassInterface, NameTable};
use super::note;
use super::read::{self, Connection, End, Instance, Name, Port, Xdf};
use crate::diag::{Diagnostic, Diagnostics};
use crate::ir::Span;
use crate::workspace::{ClassFile, Workspace};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Reads each file and each interface once.
pub struct Loader<'a> {
    pub ws: &'a mut Workspace,
    pub diags: &'a mut Diagnostics,
    files: HashMap<PathBuf, Option<Rc<Xdf>>>,
    interfaces: HashMap<String, Option<Rc<ClassInterface>>>,
    checked: HashSet<PathBuf>,
}

impl<'a> Loader<'a> {
    pub fn new(ws: &'a mut Workspace, diags: &'a mut Diagnostics) -> Loader<'a> {
        Loader {
            ws,
            diags,
            files: HashMap::new(),
            interfaces: HashMap::new(),
            checked: HashSet::new(),
        }
    }

    pub fn file(&mut self, path: &Path) -> Option<Rc<Xdf>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let xdf = match self.ws.text(path) {
            Some(text) => read::read_unsaved(path, &text, &mut self.ws.sources, self.diags),
            None => read::read_file(path, &mut self.ws.sources, self.diags),
        };
        let xdf = xdf.map(Rc::new);
        self.files.insert(path.to_path_buf(), xdf.clone());
        xdf
    }

    /// The interface of the class `name`; an unknown class is reported at each place.
    pub fn interface(&mut self, name: &Name) -> Option<Rc<ClassInterface>> {
        if let Some(Some(known)) = self.interfaces.get(&name.text) {
            return Some(known.clone());
        }
        if let Some(rivals) = self.ws.rivals(&name.text) {
            self.diags.push(rivals.label(name.span, "which of them?"));
            return None;
        }
        let interface = match self.ws.find(&name.text) {
            None => {
                self.unknown_class(name);
                None
            }
            Some(ClassFile::Cal(_)) => {
                if self.interfaces.contains_key(&name.text) {
                    None
                } else {
                    self.actor_interface(&name.text)
                }
            }
            Some(ClassFile::Xdf(path)) => self
                .file(&path)
                .map(|xdf| network_interface(name, path, xdf)),
        };
        let interface = interface.map(Rc::new);
        self.interfaces.insert(name.text.clone(), interface.clone());
        interface
    }

    fn actor_interface(&mut self, class: &str) -> Option<ClassInterface> {
        let interface = self.ws.interface(class, self.diags)?;
        let ports = |list: &[crate::workspace::PortDecl]| {
            let list = list.iter().map(|p| (p.name.clone(), p.span));
            NameTable::new(list.collect(), |p| &p.0)
        };
        let params = interface.params.iter();
        let params = params.map(|p| (p.name.clone(), p.has_default, p.span));
        Some(ClassInterface {
            class: class.to_string(),
            span: interface.span,
            network: None,
            inputs: ports(&interface.inputs),
            outputs: ports(&interface.outputs),
            params: NameTable::new(params.collect(), |p| &p.0),
            broken: interface.broken,
        })
    }

    fn unknown_class(&mut self, name: &Name) {
        let relative = name.text.replace('.', "/");
        let roots: Vec<String> = self
            .ws
            .roots()
            .iter()
            .map(|r| crate::diag::Sources::display_path(r))
            .map(|r| if r.is_empty() { ".".to_string() } else { r })
            .collect();
        self.diags.push_once(
            Diagnostic::error(
                "unknown-class",
                format!("no actor or network is called {}", name.text),
            )
            .label(name.span, "")
            .help(format!(
                "looked for {relative}.cal and {relative}.xdf in {}; add a folder of sources with \
                 --path",
                if roots.is_empty() {
                    "no folder".to_string()
                } else {
                    roots.join(", ")
                }
            )),
        );
    }

    fn error(&mut self, code: &'static str, span: Span, message: String, help: Option<String>) {
        let mut diag = Diagnostic::error(code, message).label(span, "");
        diag.help = help;
        self.diags.push_once(diag);
    }

    /// Checks everything about the network at `path` that does not depend on parameters.
    pub fn check(&mut self, path: &Path, xdf: &Xdf) {
        if !self.checked.insert(path.to_path_buf()) {
            return;
        }
        self.unique(xdf.instances.iter().map(|i| &i.id), "instance");
        self.unique(
            xdf.inputs.iter().chain(&xdf.outputs).map(|p| &p.name),
            "port",
        );
        let decls = || xdf.params.iter().chain(&xdf.variables);
        self.unique(decls().map(|d| &d.name), "parameter or variable");
        let known: HashSet<&str> = decls().map(|d| d.name.text.as_str()).collect();
        for value in decls().filter_map(|d| d.value.as_ref()) {
            self.names(value, &known);
        }
        for size in xdf
            .connections
            .iter()
            .filter_map(|c| c.buffer_size.as_ref())
        {
            self.names(size, &known);
        }
        let mut interfaces: HashMap<&str, Option<Rc<ClassInterface>>> = HashMap::new();
        for instance in &xdf.instances {
            let interface = self.interface(&instance.class);
            if let Some(interface) = &interface {
                self.parameters(instance, interface);
            }
            for (_, value) in &instance.params {
                self.names(value, &known);
            }
            let id = instance.id.text.as_str();
            // Of two instances with one name, it is unknown which is meant; this was reported.
            let interface = if interfaces.contains_key(id) {
                None
            } else {
                interface
            };
            interfaces.insert(id, interface);
        }
        self.connections(xdf, &interfaces);
        if let Some(index) = &mut self.ws.index {
            note::network(index, xdf, &interfaces);
        }
    }

    fn unique<'n>(&mut self, names: impl Iterator<Item = &'n Name>, what: &str) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for name in names {
            match seen.get(name.text.as_str()) {
                Some(first) => self.diags.push(
                    Diagnostic::error(
                        "duplicate-name",
                        format!("two of the network's {what}s are called {}", name.text),
                    )
                    .label(name.span, "the second")
                    .label(*first, "the first"),
                ),
                None => {
                    seen.insert(&name.text, name.span);
                }
            }
        }
    }

    fn names(&mut self, value: &Expr, known: &HashSet<&str>) {
        let mut used = Vec::new();
        value.names(&mut used);
        for (name, span) in used {
            if !known.contains(name.as_str()) {
                let help = closest(&name, known.iter().copied());
                self.error(
                    "unknown-name",
                    span,
                    format!("no parameter or variable `{name}` in this network"),
                    help,
                );
            }
        }
    }

    fn parameters(&mut self, instance: &Instance, interface: &ClassInterface) {
        if interface.broken {
            return;
        }
        let mut given: HashSet<&str> = HashSet::new();
        for (name, _) in &instance.params {
            if !interface.params.contains(&name.text) {
                let help = closest(&name.text, interface.params.iter().map(|p| p.0.as_str()));
                let diag = Diagnostic::warning(
                    "unknown-parameter",
                    format!("{} has no parameter `{}`", interface.class, name.text),
                )
                .label(name.span, "this is left out");
                self.diags.push(match help {
                    Some(help) => diag.help(help),
                    None => diag,
                });
            }
            if !given.insert(&name.text) {
                self.error(
                    "duplicate-name",
                    name.span,
                    format!("the parameter `{}` is given twice", name.text),
                    None,
                );
            }
        }
        for (name, optional, place) in interface.params.iter() {
            if !optional && !given.contains(name.as_str()) {
                let then = match interface.network {
                    Some(_) => "",
                    None => ": it is 0",
                };
                self.diags.push(
                    Diagnostic::warning(
                        "missing-parameter",
                        format!(
                            "the instance {} gives no value to the parameter `{name}` of {}{then}",
                            instance.id.text, interface.class
                        ),
                    )
                    .label(instance.id.span, "")
                    .label(*place, "declared here, without a default")
                    .help(format!(
                        "add <Parameter name=\"{name}\"><Expr .../></Parameter> to the instance"
                    )),
                );
            }
        }
    }

    /// Checks that an end of a connection exists.
    fn end(
        &mut self,
        xdf: &Xdf,
        interfaces: &HashMap<&str, Option<Rc<ClassInterface>>>,
        end: &End,
        source: bool,
    ) -> bool {
        let Some(instance) = &end.instance else {
            // Inside, an input of the network is a source.
            let ports = if source { &xdf.inputs } else { &xdf.outputs };
            if ports.iter().any(|p| p.name.text == end.port.text) {
                return true;
            }
            let kind = if source { "input" } else { "output" };
            let help = closest(&end.port.text, ports.iter().map(|p| p.name.text.as_str()));
            self.error(
                "unknown-port",
                end.port.span,
                format!("this network has no {kind} port {}", end.port.text),
                help,
            );
            return false;
        };
        match interfaces.get(instance.text.as_str()) {
            None => {
                let help = closest(&instance.text, interfaces.keys().copied());
                self.error(
                    "unknown-instance",
                    instance.span,
                    format!("no instance is called {}", instance.text),
                    help,
                );
                false
            }
            // The error about its class was reported.
            Some(None) => false,
            Some(Some(interface)) if interface.broken => true,
            Some(Some(interface)) => {
                let (ports, others, kind, other) = if source {
                    (&interface.outputs, &interface.inputs, "output", "input")
                } else {
                    (&interface.inputs, &interface.outputs, "input", "output")
                };
                if ports.contains(&end.port.text) {
                    return true;
                }
                let help = if others.contains(&end.port.text) {
                    Some(format!("{} is an {other} port", end.port.text))
                } else {
                    closest(&end.port.text, ports.iter().map(|p| p.0.as_str()))
                };
                self.error(
                    "unknown-port",
                    end.port.span,
                    format!("{} has no {kind} port {}", interface.class, end.port.text),
                    help,
                );
                false
            }
        }
    }

    fn connections(&mut self, xdf: &Xdf, interfaces: &HashMap<&str, Option<Rc<ClassInterface>>>) {
        type Key<'k> = (Option<&'k str>, &'k str);
        fn key(end: &End) -> Key<'_> {
            (
                end.instance.as_ref().map(|n| n.text.as_str()),
                end.port.text.as_str(),
            )
        }
        let mut written: HashMap<Key, &Connection> = HashMap::new();
        let mut read: HashSet<Key> = HashSet::new();
        let mut wrong = false;
        for connection in &xdf.connections {
            let from = self.end(xdf, interfaces, &connection.from, true);
            let to = self.end(xdf, interfaces, &connection.to, false);
            if from {
                read.insert(key(&connection.from));
            }
            wrong |= !from || !to;
            if !to {
                continue;
            }
            if let Some(first) = written.insert(key(&connection.to), connection) {
                self.diags.push(
                    Diagnostic::error(
                        "two-writers",
                        format!("{} has two writers", shown(&connection.to)),
                    )
                    .label(connection.span, "the second")
                    .label(first.span, "the first")
                    .help("a channel has one producer: merge the two with an actor"),
                );
            }
        }
        // A port that seems unconnected may be the one that is misspelled in a connection.
        if wrong {
            return;
        }
        for instance in &xdf.instances {
            let known = interfaces.get(instance.id.text.as_str());
            let Some(interface) = known.into_iter().flatten().find(|i| !i.broken) else {
                continue;
            };
            let id = instance.id.text.as_str();
            for (port, _) in interface.inputs.iter() {
                if !written.contains_key(&(Some(id), port.as_str())) {
                    self.warn(
                        "unconnected-input",
                        instance.id.span,
                        format!("nothing feeds {id}.{port}: what needs it never fires"),
                    );
                }
            }
            for (port, _) in interface.outputs.iter() {
                if !read.contains(&(Some(id), port.as_str())) {
                    self.warn(
                        "unconnected-output",
                        instance.id.span,
                        format!("nothing consumes {id}.{port}: its elements are dropped"),
                    );
                }
            }
        }
        let unused = |ports: &[Port], used: &dyn Fn(&str) -> bool| -> Vec<(String, Span)> {
            let unused = ports.iter().filter(|p| !used(&p.name.text));
            unused.map(|p| (p.name.text.clone(), p.name.span)).collect()
        };
        for (port, span) in unused(&xdf.inputs, &|p| read.contains(&(None, p))) {
            self.warn(
                "unconnected-input",
                span,
                format!("nothing in this network consumes its input {port}"),
            );
        }
        for (port, span) in unused(&xdf.outputs, &|p| written.contains_key(&(None, p))) {
            self.warn(
                "unconnected-output",
                span,
                format!("nothing in this network feeds its output {port}"),
            );
        }
    }

    fn warn(&mut self, code: &'static str, span: Span, message: String) {
        self.diags
            .push(Diagnostic::warning(code, message).label(span, ""));
    }
}

fn network_interface(name: &Name, path: PathBuf, xdf: Rc<Xdf>) -> ClassInterface {
    let ports = |list: &[Port]| {
        let list = list.iter().map(|p| (p.name.text.clone(), p.name.span));
        NameTable::new(list.collect(), |p| &p.0)
    };
    let params = xdf.params.iter();
    let params = params.map(|p| (p.name.text.clone(), p.value.is_some(), p.name.span));
    ClassInterface {
        class: name.text.clone(),
        span: xdf.name.span,
        inputs: ports(&xdf.inputs),
        outputs: ports(&xdf.outputs),
        params: NameTable::new(params.collect(), |p| &p.0),
        broken: false,
        network: Some((path, xdf)),
    }
}

/// The text of an end in messages.
pub fn shown(end: &End) -> String {
    match &end.instance {
        Some(instance) => format!("{}.{}", instance.text, end.port.text),
        None => format!("the network's port {}", end.port.text),
    }
}

/// "did you mean `x`?" for the nearest name, or the list of names if they are few.
fn closest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let near = known
        .iter()
        .map(|k| (distance(name, k), *k))
        .min()
        .filter(|(d, _)| *d <= 1 + name.chars().count() / 4);
    match near {
        Some((_, near)) => Some(format!("did you mean `{near}`?")),
        None if !known.is_empty() && known.len() <= 8 => {
            Some(format!("there are: {}", known.join(", ")))
        }
        None => None,
    }
}

/// The edit distance of two words, ignoring case; long words are never near.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(64).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
