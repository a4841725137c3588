// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flattening: a hierarchy of networks becomes one [`ir::Network`] of specialised actors.
//!
//! Every port of an actor or of a nested network is a node, every connection an edge. After expansion, each output
//! port of an actor becomes a channel to all input ports of actors that it reaches through ports of networks.
//! Errors are reported and the part is left out, so that one run finds all errors.

use super::expr::{Env, EvalError};
use super::interface::ClassInterface;
use super::read::{self, End, Instance, Name, Xdf};
use super::structure::Loader;
use super::types::{convert, converter, convertible, fits, same_element, type_of};
use crate::diag::Diagnostic;
use crate::ir::{self, Span, Value, type_name};
use crate::rates;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Maximum number of actors: the runtime's default. Bounds the expansion of nested networks, since the number of actors
/// can grow exponentially with the nesting.
const INSTANCES_MAX: usize = 65536;
/// Maximum nesting of networks.
const NESTING_MAX: usize = 64;
/// Maximum capacity of a channel, in elements (`LVD_CHANNEL_CAPACITY`).
const CAPACITY_ELEMENTS_MAX: i64 = 1 << 30;

type NodeId = usize;

struct Edge {
    to: NodeId,
    capacity: Option<u32>,
    span: Span,
}

struct Node {
    /// An input or output port of an actor, or `None` for a port of a network.
    actor: Option<ir::Endpoint>,
    /// Its name in messages.
    shown: String,
    /// The type that a network's port declares.
    declared: Option<(ir::Type, Span)>,
    edges: Vec<Edge>,
}

/// The nodes of an instance's or network's ports, in the order of its interface.
struct Ports {
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

struct Flattener<'l, 'a> {
    loader: &'l mut Loader<'a>,
    instances: Vec<ir::Instance>,
    nodes: Vec<Node>,
    /// The networks being expanded, outermost first.
    within: Vec<PathBuf>,
    /// The number of expanded networks.
    networks: usize,
    full: bool,
    /// Parameters of networks without a value: an error only if one is read.
    valueless: Vec<String>,
    /// The place in the text of the connection of each input port.
    spans: HashMap<ir::Endpoint, Span>,
    /// The number of earlier errors.
    errors: usize,
}

/// Elaborates the network in the file at `path`; `given` are values for its parameters and
/// variables.
pub fn network(
    loader: &mut Loader,
    class: &str,
    path: &Path,
    given: &[(String, String)],
) -> Option<ir::Network> {
    let xdf = loader.file(path)?;
    let set = settings(loader, &xdf, given);
    for port in xdf.inputs.iter().chain(&xdf.outputs) {
        loader.diags.push(
            Diagnostic::error(
                "open-network",
                format!(
                    "{class} has the port {}: only a network without ports can be run",
                    port.name.text
                ),
            )
            .label(port.name.span, "")
            .help("use it as an instance of a network that feeds and drains it"),
        );
    }
    if xdf.instances.is_empty() {
        loader.diags.push(
            Diagnostic::error("empty-network", format!("{class} has no instances"))
                .label(xdf.name.span, ""),
        );
    }
    let mut flattener = Flattener::new(loader);
    flattener.expand(path, &xdf, "", set);
    Some(flattener.finish(class))
}

/// A network of one actor, which must have no ports.
pub fn single_actor(
    loader: &mut Loader,
    class: &str,
    given: &[(String, String)],
) -> Option<ir::Network> {
    let interface = loader.ws.interface(class, loader.diags)?;
    for port in interface.inputs.iter().chain(&interface.outputs) {
        loader.diags.push(
            Diagnostic::error(
                "open-network",
                format!(
                    "{class} has the port {}: only an actor without ports runs by itself",
                    port.name
                ),
            )
            .label(port.span, "")
            .help("write a network (.xdf) that feeds and drains it"),
        );
    }
    let mut values = Vec::new();
    for (name, text) in given {
        match interface.params.iter().find(|p| p.name == *name) {
            None => unknown_setting(
                loader,
                class,
                name,
                interface.params.iter().map(|p| p.name.as_str()),
            ),
            Some(param) => match parse_setting(text, param.ty.as_ref()) {
                Ok(value) => values.push((name.clone(), value)),
                Err(what) => bad_setting(loader, name, text, &what),
            },
        }
    }
    for param in &interface.params {
        if !param.has_default && !given.iter().any(|(n, _)| *n == param.name) {
            let name = &param.name;
            loader.diags.push(
                Diagnostic::error(
                    "missing-parameter",
                    format!("the parameter `{name}` of {class} has no value"),
                )
                .label(param.span, "")
                .help(format!("give it one with --set {name}=VALUE")),
            );
        }
    }
    let actor = loader
        .ws
        .instantiate(class, &values, interface.span, loader.diags)?;
    let name = class.rsplit('.').next().unwrap_or(class).to_string();
    Some(ir::Network {
        name: class.to_string(),
        files: loader.ws.sources.files().to_vec(),
        instances: vec![ir::Instance {
            name,
            actor,
            priority: 0,
        }],
        channels: Vec::new(),
    })
}

/// The values of `--set`, converted to the types of what they set.
fn settings(loader: &mut Loader, xdf: &Xdf, given: &[(String, String)]) -> Env {
    let mut env = Env::new();
    for (name, text) in given {
        let mut decls = xdf.params.iter().chain(&xdf.variables);
        let Some(decl) = decls.find(|d| d.name.text == *name) else {
            let all = xdf.params.iter().chain(&xdf.variables);
            let known: Vec<String> = all.map(|d| d.name.text.clone()).collect();
            unknown_setting(
                loader,
                &xdf.name.text,
                name,
                known.iter().map(String::as_str),
            );
            continue;
        };
        // Widths of parameters seldom depend on others; those that do are checked when used.
        let ty = decl.ty.as_ref().and_then(|t| type_of(t, &Env::new()).ok());
        match parse_setting(text, ty.as_ref()) {
            Ok(value) => {
                env.insert(name.clone(), value);
            }
            Err(what) => bad_setting(loader, name, text, &what),
        }
    }
    env
}

fn unknown_setting<'n>(
    loader: &mut Loader,
    class: &str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) {
    let known: Vec<&str> = known.collect();
    let help = if known.is_empty() {
        "it has none".to_string()
    } else {
        format!("there are: {}", known.join(", "))
    };
    loader.diags.push(
        Diagnostic::error(
            "unknown-parameter",
            format!("--set {name}: {class} has no parameter or variable `{name}`"),
        )
        .help(help),
    );
}

fn bad_setting(loader: &mut Loader, name: &str, text: &str, what: &str) {
    loader.diags.push(Diagnostic::error(
        "bad-value",
        format!("--set {name}={text}: `{text}` is not {what}"),
    ));
}

/// Parses a value of the command line; the error names the expected type.
fn parse_setting(text: &str, ty: Option<&ir::Type>) -> Result<Value, String> {
    match ty {
        Some(ir::Type::Bool) => match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("true or false".to_string()),
        },
        Some(ty @ ir::Type::Int { .. }) => match read::integer(text) {
            Some(i) if fits(i, ty) => Ok(Value::Int(i)),
            _ => Err(format!("an {}", type_name(ty))),
        },
        Some(ir::Type::Float { .. }) => match text.parse::<f64>() {
            Ok(f) => Ok(Value::Float(f)),
            Err(_) => Err("a number".to_string()),
        },
        Some(ir::Type::String) => Ok(Value::String(text.to_string())),
        Some(ir::Type::List { .. }) => {
            Err("something that can be set from the command line (it is a List)".to_string())
        }
        // No type is declared: the form of the value decides.
        None => Ok(match (text, read::integer(text), text.parse::<f64>()) {
            ("true", ..) => Value::Bool(true),
            ("false", ..) => Value::Bool(false),
            (_, Some(i), _) => Value::Int(i),
            (_, None, Ok(f)) => Value::Float(f),
            _ => Value::String(text.to_string()),
        }),
    }
}

impl<'l, 'a> Flattener<'l, 'a> {
    fn new(loader: &'l mut Loader<'a>) -> Flattener<'l, 'a> {
        let errors = loader.diags.error_count();
        Flattener {
            errors,
            loader,
            instances: Vec::new(),
            nodes: Vec::new(),
            within: Vec::new(),
            networks: 0,
            full: false,
            valueless: Vec::new(),
            spans: HashMap::new(),
        }
    }

    fn error(&mut self, error: EvalError) {
        let quoted = |name: &&String| error.message.contains(&format!("`{name}`"));
        let without = self.valueless.iter().find(quoted);
        let diag = match without.filter(|_| error.code == "unknown-name") {
            Some(name) => Diagnostic::error(
                "missing-parameter",
                format!("the parameter `{name}` has no value"),
            )
            .help(format!(
                "give it one where its network is used, or with --set {name}=VALUE"
            )),
            None => Diagnostic::error(error.code, error.message),
        };
        let diag = diag.label(error.span, "");
        self.loader.diags.push_once(diag);
    }

    fn node(&mut self, shown: String) -> NodeId {
        self.nodes.push(Node {
            actor: None,
            shown,
            declared: None,
            edges: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// The parameters and variables of one network, with the values of its instance.
    fn environment(&mut self, xdf: &Xdf, given: Env) -> Env {
        let mut env = Env::new();
        let mut waiting: Vec<_> = xdf.params.iter().chain(&xdf.variables).collect();
        let mut cut: Vec<(i64, i64, ir::Type, Name)> = Vec::new();
        // A value may refer to later declarations: iterate until nothing new is found.
        loop {
            let before = waiting.len();
            let mut failed = None;
            waiting.retain(|decl| {
                let value = match (given.get(&decl.name.text), &decl.value) {
                    (Some(value), _) => Ok(value.clone()),
                    (None, Some(value)) => value.eval(&env),
                    (None, None) => {
                        self.valueless.push(decl.name.text.clone());
                        return false;
                    }
                };
                let value = value.and_then(|value| match &decl.ty {
                    None => Ok(value),
                    Some(ty) => {
                        let ty = type_of(ty, &env)?;
                        let before = value.clone();
                        let value = convert(value, &ty).map_err(|message| EvalError {
                            span: decl.name.span,
                            code: "type-mismatch",
                            message: format!("the value of `{}`: {message}", decl.name.text),
                        })?;
                        if let (Value::Int(from), Value::Int(to)) = (&before, &value)
                            && from != to
                        {
                            cut.push((*from, *to, ty, decl.name.clone()));
                        }
                        Ok(value)
                    }
                });
                match value {
                    Ok(value) => {
                        env.insert(decl.name.text.clone(), value);
                        false
                    }
                    Err(error) => {
                        failed.get_or_insert(error);
                        true
                    }
                }
            });
            if waiting.len() == before {
                if let Some(error) = failed {
                    self.error(error);
                    // Report the next one, too.
                    waiting.remove(0);
                    continue;
                }
                break;
            }
        }
        for (from, to, ty, name) in cut {
            let message = format!(
                "the value of `{}`: {from} does not fit {}",
                name.text,
                type_name(&ty)
            );
            self.loader.diags.push(
                Diagnostic::warning("value-cut", message)
                    .label(name.span, format!("it becomes {to} here")),
            );
        }
        env
    }

    fn expand(&mut self, path: &Path, xdf: &Rc<Xdf>, prefix: &str, given: Env) -> Ports {
        self.loader.check(path, xdf);
        self.within.push(path.to_path_buf());
        let env = self.environment(xdf, given);
        let mut boundary = |ports: &[read::Port]| {
            let mut nodes = Vec::new();
            for port in ports {
                let node = self.node(format!("{prefix}{}", port.name.text));
                if let Some(ty) = &port.ty {
                    match type_of(ty, &env) {
                        Ok(known) => self.nodes[node].declared = Some((known, ty.span)),
                        Err(error) => self.error(error),
                    }
                }
                nodes.push(node);
            }
            nodes
        };
        let own = Ports {
            inputs: boundary(&xdf.inputs),
            outputs: boundary(&xdf.outputs),
        };
        let mut instances: HashMap<&str, (Rc<ClassInterface>, Ports)> = HashMap::new();
        for instance in &xdf.instances {
            if let Some(ports) = self.instance(instance, prefix, &env) {
                instances.entry(&instance.id.text).or_insert(ports);
            }
        }
        for connection in &xdf.connections {
            let capacity = self.capacity(connection.buffer_size.as_ref(), &env);
            let find = |end: &End, source: bool| -> Option<NodeId> {
                let port = end.port.text.as_str();
                match &end.instance {
                    None => {
                        let (list, nodes) = if source {
                            (&xdf.inputs, &own.inputs)
                        } else {
                            (&xdf.outputs, &own.outputs)
                        };
                        let index = list.iter().position(|p| p.name.text == port)?;
                        Some(nodes[index])
                    }
                    Some(instance) => {
                        let (interface, ports) = instances.get(instance.text.as_str())?;
                        if source {
                            ports.outputs.get(interface.output(port)?).copied()
                        } else {
                            ports.inputs.get(interface.input(port)?).copied()
                        }
                    }
                }
            };
            if let (Some(from), Some(to)) =
                (find(&connection.from, true), find(&connection.to, false))
            {
                self.nodes[from].edges.push(Edge {
                    to,
                    capacity,
                    span: connection.span,
                });
            }
        }
        self.within.pop();
        own
    }

    /// The capacity of a connection by its `bufferSize`; an error is reported.
    fn capacity(&mut self, buffer_size: Option<&super::expr::Expr>, env: &Env) -> Option<u32> {
        let size = buffer_size?;
        match size.eval(env) {
            Ok(Value::Int(n)) if (1..=CAPACITY_ELEMENTS_MAX).contains(&n) => return Some(n as u32),
            Ok(_) => self.error(EvalError {
                span: size.span(),
                code: "range",
                message: format!(
                    "bufferSize must be an integer between 1 and {CAPACITY_ELEMENTS_MAX}"
                ),
            }),
            Err(error) => self.error(error),
        }
        None
    }

    fn instance(
        &mut self,
        instance: &Instance,
        prefix: &str,
        env: &Env,
    ) -> Option<(Rc<ClassInterface>, Ports)> {
        let interface = self.loader.interface(&instance.class)?;
        let mut values = Vec::new();
        let mut whole = true;
        for (name, value) in &instance.params {
            match value.eval(env) {
                Ok(value) if interface.params.contains(&name.text) => {
                    values.push((name.text.clone(), value));
                }
                // Reported by the check of the structure.
                Ok(_) => {}
                Err(error) => {
                    whole = false;
                    self.error(error);
                }
            }
        }
        let name = format!("{prefix}{}", instance.id.text);
        if let Some((path, xdf)) = interface.network.clone() {
            if !self.may_nest(&path, &instance.class) {
                return None;
            }
            let given: Env = values.into_iter().collect();
            let ports = self.expand(&path, &xdf, &format!("{name}."), given);
            return Some((interface, ports));
        }
        if !whole || !self.zero_missing(instance, &interface, &mut values) {
            return None;
        }
        let ports = self.actor(instance, &interface, name, &values)?;
        Some((interface, ports))
    }

    /// A parameter of an actor without a value becomes 0, like a static variable in C. Returns false if its type has
    /// no such value.
    fn zero_missing(
        &mut self,
        instance: &Instance,
        interface: &ClassInterface,
        values: &mut Vec<(String, Value)>,
    ) -> bool {
        let given: HashSet<&str> = values.iter().map(|v| v.0.as_str()).collect();
        let open = |p: &&(String, bool, ir::Span)| !p.1 && !given.contains(p.0.as_str());
        let missing: Vec<String> = interface
            .params
            .iter()
            .filter(open)
            .map(|p| p.0.clone())
            .collect();
        if missing.is_empty() {
            return true;
        }
        let Some(actor) = self
            .loader
            .ws
            .interface(&interface.class, self.loader.diags)
        else {
            return false;
        };
        let types = actor
            .params
            .iter()
            .map(|p| (p.name.as_str(), p.ty.as_ref()));
        let types: HashMap<&str, Option<&ir::Type>> = types.collect();
        for name in missing {
            let zero = match types.get(name.as_str()).copied().flatten() {
                Some(ir::Type::Bool) => Value::Bool(false),
                Some(ir::Type::Int { .. }) => Value::Int(0),
                Some(ir::Type::Float { .. }) => Value::Float(0.0),
                Some(ir::Type::String) => Value::String(String::new()),
                _ => {
                    let diag = Diagnostic::error(
                        "missing-parameter",
                        format!(
                            "the parameter `{name}` of {} needs a value",
                            interface.class
                        ),
                    );
                    self.loader.diags.push(diag.label(instance.id.span, ""));
                    return false;
                }
            };
            values.push((name, zero));
        }
        true
    }

    fn may_nest(&mut self, path: &Path, class: &Name) -> bool {
        if let Some(first) = self.within.iter().position(|p| p == path) {
            let chain: Vec<String> = self.within[first..]
                .iter()
                .chain([&path.to_path_buf()])
                .filter_map(|p| p.file_stem())
                .map(|s| s.to_string_lossy().into_owned())
                .collect();
            self.loader.diags.push(
                Diagnostic::error("recursive-network", "a network within itself")
                    .label(class.span, chain.join(" contains "))
                    .help("networks are expanded before they run, so they cannot recur"),
            );
            return false;
        }
        if self.within.len() >= NESTING_MAX {
            self.error(EvalError {
                span: class.span,
                code: "limit",
                message: format!("networks nested more than {NESTING_MAX} deep"),
            });
            return false;
        }
        self.networks += 1;
        !self.is_full(self.networks, class.span)
    }

    /// Whether there are too many instances or networks; reported once.
    fn is_full(&mut self, count: usize, span: Span) -> bool {
        if count > INSTANCES_MAX && !self.full {
            self.full = true;
            self.error(EvalError {
                span,
                code: "limit",
                message: format!("the network has more than {INSTANCES_MAX} instances"),
            });
        }
        self.full
    }

    fn actor(
        &mut self,
        instance: &Instance,
        interface: &ClassInterface,
        name: String,
        values: &[(String, Value)],
    ) -> Option<Ports> {
        if self.is_full(self.instances.len() + 1, instance.id.span) {
            return None;
        }
        let actor = self.loader.ws.instantiate(
            &interface.class,
            values,
            instance.class.span,
            self.loader.diags,
        )?;
        let index = self.instances.len();
        let mut ports = |list: &[ir::Port]| {
            let mut nodes = Vec::new();
            for (port, declared) in list.iter().enumerate() {
                let node = self.node(format!("{name}.{}", declared.name));
                self.nodes[node].actor = Some(ir::Endpoint {
                    instance: index,
                    port,
                });
                nodes.push(node);
            }
            nodes
        };
        // The interface's ports are in the order of the actor's.
        let ports = Ports {
            inputs: ports(&actor.inputs),
            outputs: ports(&actor.outputs),
        };
        self.instances.push(ir::Instance {
            name,
            actor,
            priority: 0,
        });
        Some(ports)
    }

    fn finish(mut self, name: &str) -> ir::Network {
        let mut channels = Vec::new();
        let sources: Vec<NodeId> = (0..self.nodes.len())
            .filter(|&n| self.nodes[n].actor.is_some() && !self.nodes[n].edges.is_empty())
            .collect();
        for source in sources {
            channels.extend(self.channel(source));
        }
        let network = ir::Network {
            name: name.to_string(),
            files: self.loader.ws.sources.files().to_vec(),
            instances: self.instances,
            channels,
        };
        // Rates are checked only without errors.
        if self.loader.diags.error_count() == self.errors {
            let warnings = rates::warnings(&network, &self.spans);
            self.loader.diags.extend(warnings);
        }
        network
    }

    /// The channel from an output port of an actor to all that it reaches; where elements are
    /// converted on the way, one more from each converter.
    fn channel(&mut self, source: NodeId) -> Vec<ir::Channel> {
        let Some(from) = self.nodes[source].actor else {
            return Vec::new();
        };
        let carried = self.instances[from.instance].actor.outputs[from.port]
            .ty
            .clone();
        let mut to = Vec::new();
        let mut converted: Vec<(ir::Type, Span, Vec<ir::Endpoint>)> = Vec::new();
        let mut capacity: Option<u32> = None;
        let mut seen: HashSet<NodeId> = HashSet::from([source]);
        let mut ahead: Vec<NodeId> = vec![source];
        let mut found = Vec::new();
        let mut spans = Vec::new();
        while let Some(node) = ahead.pop() {
            for edge in &self.nodes[node].edges {
                capacity = capacity.max(edge.capacity);
                if !seen.insert(edge.to) {
                    continue;
                }
                let target = &self.nodes[edge.to];
                let Some(endpoint) = target.actor else {
                    ahead.push(edge.to);
                    if let Some((declared, span)) = &target.declared
                        && !same_element(&carried, declared)
                    {
                        let what = format!(
                            "the port {} is declared as {}, but carries the {} of {}",
                            target.shown,
                            type_name(declared),
                            type_name(&carried),
                            self.nodes[source].shown
                        );
                        found.push(Diagnostic::warning("type-mismatch", what).label(*span, ""));
                    }
                    continue;
                };
                let port = &self.instances[endpoint.instance].actor.inputs[endpoint.port];
                if same_element(&carried, &port.ty) {
                    spans.push((endpoint, edge.span));
                    to.push(endpoint);
                    continue;
                }
                let what = format!(
                    "{} gives {}, but {} takes {}",
                    self.nodes[source].shown,
                    type_name(&carried),
                    target.shown,
                    type_name(&port.ty)
                );
                if !convertible(&carried, &port.ty) {
                    found.push(Diagnostic::error("type-mismatch", what).label(edge.span, ""));
                    continue;
                }
                if port.ty.container() < carried.container() {
                    found.push(
                        Diagnostic::warning("type-mismatch", what)
                            .label(edge.span, "elements are cut to the width on their way"),
                    );
                }
                match converted.iter_mut().find(|c| same_element(&c.0, &port.ty)) {
                    Some((_, span, list)) => {
                        spans.push((endpoint, *span));
                        list.push(endpoint);
                    }
                    None => converted.push((port.ty.clone(), edge.span, vec![endpoint])),
                }
            }
        }
        self.loader.diags.extend(found);
        self.spans.extend(spans);
        let mut channels = Vec::new();
        for (ty, span, mut list) in converted {
            let instance = self.instances.len();
            let actor = converter(&carried, &ty, span);
            let class = actor.name.rsplit('.').next().unwrap_or("").to_lowercase();
            self.instances.push(ir::Instance {
                name: format!("{}.{class}", self.nodes[source].shown),
                actor: std::sync::Arc::new(actor),
                priority: 0,
            });
            to.push(ir::Endpoint { instance, port: 0 });
            self.spans.insert(ir::Endpoint { instance, port: 0 }, span);
            for endpoint in &list {
                self.spans.entry(*endpoint).or_insert(span);
            }
            list.sort_by_key(|e| (e.instance, e.port));
            channels.push(ir::Channel {
                from: ir::Endpoint { instance, port: 0 },
                to: list,
                capacity,
            });
        }
        if !to.is_empty() {
            to.sort_by_key(|e| (e.instance, e.port));
            channels.insert(0, ir::Channel { from, to, capacity });
        }
        channels
    }
}
