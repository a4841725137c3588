// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses one XDF file to a tree; every part has its place in the text.
//!
//! The parser reports all errors of the file itself and continues; it omits what it cannot interpret. Files may
//! come from anywhere: sizes and depths are bounded, and entities are not expanded.

use super::expr::{Expr, Op, by_precedence};
use crate::diag::{Diagnostic, Diagnostics, Sources};
use crate::ir::{Span, Value};
use crate::workspace::read_source;
use roxmltree::{Attribute, Document, Node, ParsingOptions, TextPos};
use std::path::Path;

/// A name with its span.
#[derive(Clone, Debug)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Xdf {
    /// Without its package.
    pub name: Name,
    pub package: Option<String>,
    pub params: Vec<Decl>,
    pub variables: Vec<Decl>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub instances: Vec<Instance>,
    pub connections: Vec<Connection>,
}

#[derive(Clone, Debug)]
pub struct Decl {
    pub name: Name,
    pub ty: Option<Type>,
    /// A variable has a value; a parameter may have a default.
    pub value: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub name: Name,
    pub ty: Option<Type>,
}

#[derive(Clone, Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub size: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    Bool,
    Int,
    Uint,
    Half,
    Float,
    Double,
    String,
    List(Box<Type>),
}

#[derive(Clone, Debug)]
pub struct Instance {
    pub id: Name,
    pub class: Name,
    pub params: Vec<(Name, Expr)>,
}

#[derive(Clone, Debug)]
pub struct Connection {
    pub from: End,
    pub to: End,
    /// In elements.
    pub buffer_size: Option<Expr>,
    pub span: Span,
}

/// A port of an instance, or of the network itself.
#[derive(Clone, Debug)]
pub struct End {
    pub instance: Option<Name>,
    pub port: Name,
}

/// Maximum number of XML nodes of a file.
const NODES_MAX: u32 = 4 << 20;
/// Maximum nesting of XML elements.
const ELEMENT_DEPTH_MAX: usize = 100;
/// Maximum number of operands of an expression.
const OPERANDS_MAX: usize = 1000;

/// Reads the file at `path`; `None` if it is unusable.
pub fn read_file(path: &Path, sources: &mut Sources, diags: &mut Diagnostics) -> Option<Xdf> {
    let shown = Sources::display_path(path);
    let problem = |what: String| Diagnostic::error("cannot-read", what);
    let text = match read_source(path).map(String::from_utf8) {
        Err(e) => {
            diags.push(problem(format!("cannot read {shown}: {e}")));
            return None;
        }
        Ok(Err(e)) => {
            diags.push(problem(format!(
                "{shown} is not text: byte {} is not UTF-8",
                e.utf8_error().valid_up_to()
            )));
            return None;
        }
        Ok(Ok(text)) => text,
    };
    read_unsaved(path, &text, sources, diags)
}

/// Like [`read`], with `text` as the file's content.
pub fn read_unsaved(
    path: &Path,
    text: &str,
    sources: &mut Sources,
    diags: &mut Diagnostics,
) -> Option<Xdf> {
    let file = sources.add(Sources::display_path(path), text);
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    read_text(text, file, stem.as_deref().unwrap_or(""), diags)
}

/// Reads a network from `text`; `file` is its number in spans. `stem` is the file's name without extension: the
/// network's name if the text has none.
pub fn read_text(text: &str, file: u32, stem: &str, diags: &mut Diagnostics) -> Option<Xdf> {
    let start = Span {
        file,
        start: 0,
        end: 0,
    };
    if text.trim().is_empty() {
        diags.push(
            Diagnostic::error("empty-file", "the file is empty")
                .label(start, "a network begins with <XDF name=\"...\">"),
        );
        return None;
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let at = match error {
                // roxmltree reports the beginning as its position.
                roxmltree::Error::UnexpectedEndOfStream | roxmltree::Error::UnclosedRootNode => {
                    text.trim_end().len() as u32
                }
                _ => offset_of(text, error.pos()),
            };
            let span = Span {
                file,
                start: at,
                end: at,
            };
            let diag = match error {
                roxmltree::Error::DtdDetected => {
                    Diagnostic::error("xml-dtd", "a network file has no document type declaration")
                        .help("remove <!DOCTYPE ...>: entities are not expanded")
                }
                error => {
                    let said = error.to_string();
                    // The position is shown by the label.
                    let said = said.rsplit_once(" at ").map_or(said.as_str(), |(m, _)| m);
                    Diagnostic::error("malformed-xml", format!("malformed XML: {said}"))
                }
            };
            diags.push(diag.label(span, "here"));
            return None;
        }
    };
    let root = document.root_element();
    let mut reader = Reader { file, text, diags };
    if root.tag_name().name() != "XDF" {
        let found = root.tag_name().name();
        reader.error(
            "not-a-network",
            reader.tag(root),
            format!("this is <{found}>, not a network: it should begin with <XDF name=\"...\">"),
        );
        return None;
    }
    Some(reader.network(root, stem))
}

/// The byte offset of a position that roxmltree gives (rows and characters from 1).
fn offset_of(text: &str, pos: TextPos) -> u32 {
    let row = pos.row.max(1) as usize - 1;
    let mut start = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        if i == row {
            let within = line.char_indices().nth(pos.col.max(1) as usize - 1);
            return (start + within.map_or(line.trim_end().len(), |(at, _)| at)) as u32;
        }
        start += line.len();
    }
    text.trim_end().len() as u32
}

struct Reader<'a> {
    file: u32,
    text: &'a str,
    diags: &'a mut Diagnostics,
}

type El<'a, 'i> = Node<'a, 'i>;

impl Reader<'_> {
    fn span(&self, range: std::ops::Range<usize>) -> Span {
        Span {
            file: self.file,
            start: range.start as u32,
            end: range.end as u32,
        }
    }

    /// The span of the element's start tag: all of it if it is on one line, else up to its name.
    fn tag(&self, node: El) -> Span {
        let range = node.range();
        let whole = &self.text[range.clone()];
        if !whole.contains('\n') {
            return self.span(range);
        }
        let end = whole.find(['>', '\n']).map_or(whole.len(), |i| i + 1);
        self.span(range.start..range.start + whole[..end].trim_end().len())
    }

    fn value_span(&self, attribute: &Attribute) -> Span {
        self.span(attribute.range_value())
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diags
            .push(Diagnostic::error(code, message).label(span, ""));
    }

    /// A required attribute that must not be empty.
    fn name(&mut self, node: El, attribute: &str) -> Option<Name> {
        let name = self.name_or_empty(node, attribute)?;
        if name.text.is_empty() {
            let tag = node.tag_name().name();
            self.error(
                "missing-attribute",
                name.span,
                format!("{attribute}=\"\" of <{tag}> is empty"),
            );
            return None;
        }
        Some(name)
    }

    fn name_or_empty(&mut self, node: El, attribute: &str) -> Option<Name> {
        match node.attribute_node(attribute) {
            Some(a) => Some(Name {
                text: a.value().trim().to_string(),
                span: self.value_span(&a),
            }),
            None => {
                let tag = node.tag_name().name();
                self.error(
                    "missing-attribute",
                    self.tag(node),
                    format!("<{tag}> has no attribute {attribute}=\"...\""),
                );
                None
            }
        }
    }

    fn unknown(&mut self, node: El, within: &str) {
        let tag = node.tag_name().name();
        self.diags.push(
            Diagnostic::error(
                "unknown-element",
                format!("<{tag}> has no meaning within <{within}>"),
            )
            .label(self.tag(node), ""),
        );
    }

    /// The `kind` attribute, if it is one of `kinds`.
    fn kind<'k>(&mut self, node: El, kinds: &[&'k str]) -> Option<&'k str> {
        let name = self.name(node, "kind")?;
        let known = kinds.iter().find(|k| **k == name.text).copied();
        if known.is_none() {
            let tag = node.tag_name().name();
            self.error(
                "unknown-kind",
                name.span,
                format!(
                    "<{tag}> of kind \"{}\"; there are: {}",
                    name.text,
                    kinds.join(", ")
                ),
            );
        }
        known
    }

    fn network(&mut self, root: El, stem: &str) -> Xdf {
        let given = root.attribute_node("name").map(|a| Name {
            text: a.value().trim().to_string(),
            span: self.value_span(&a),
        });
        let name = given.filter(|n| !n.text.is_empty()).unwrap_or(Name {
            text: stem.to_string(),
            span: self.tag(root),
        });
        let (package, short) = match name.text.rsplit_once('.') {
            Some((package, short)) => (Some(package.to_string()), short.to_string()),
            None => (None, name.text.clone()),
        };
        let mut xdf = Xdf {
            name: Name {
                text: short,
                span: name.span,
            },
            package,
            params: Vec::new(),
            variables: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            instances: Vec::new(),
            connections: Vec::new(),
        };
        for node in root.children().filter(|n| n.is_element()) {
            match node.tag_name().name() {
                "Package" => {
                    let ids: Vec<&str> = node
                        .descendants()
                        .filter(|n| n.has_tag_name("ID"))
                        .filter_map(|n| n.attribute("id"))
                        .collect();
                    if !ids.is_empty() {
                        xdf.package = Some(ids.join("."));
                    }
                }
                "Decl" => self.decl(node, &mut xdf),
                "Port" => self.port(node, &mut xdf),
                "Instance" => {
                    if let Some(instance) = self.instance(node) {
                        xdf.instances.push(instance);
                    }
                }
                "Connection" => {
                    if let Some(connection) = self.connection(node) {
                        xdf.connections.push(connection);
                    }
                }
                // Annotations for other tools.
                "Attribute" | "Note" | "Documentation" => {}
                _ => self.unknown(node, "XDF"),
            }
        }
        xdf
    }

    fn decl(&mut self, node: El, xdf: &mut Xdf) {
        let kind = self.kind(node, &["Param", "Variable"]);
        let name = self.name(node, "name");
        let (mut ty, mut value) = (None, None);
        for child in node.children().filter(|n| n.is_element()) {
            match child.tag_name().name() {
                "Type" => ty = self.ty(child, 0),
                "Expr" => value = self.expr(child, 0),
                _ => self.unknown(child, "Decl"),
            }
        }
        let (Some(kind), Some(name)) = (kind, name) else {
            return;
        };
        let has_expr = node.children().any(|n| n.has_tag_name("Expr"));
        if kind == "Variable" && !has_expr {
            self.error(
                "missing-value",
                name.span,
                format!("the variable `{}` has no value (<Expr>)", name.text),
            );
            return;
        }
        let decl = Decl { name, ty, value };
        match kind {
            "Param" => xdf.params.push(decl),
            _ => xdf.variables.push(decl),
        }
    }

    fn port(&mut self, node: El, xdf: &mut Xdf) {
        let kind = self.kind(node, &["Input", "Output"]);
        let name = self.name(node, "name");
        let mut ty = None;
        for child in node.children().filter(|n| n.is_element()) {
            match child.tag_name().name() {
                "Type" => ty = self.ty(child, 0),
                "Attribute" => {}
                _ => self.unknown(child, "Port"),
            }
        }
        if let (Some(kind), Some(name)) = (kind, name) {
            let port = Port { name, ty };
            match kind {
                "Input" => xdf.inputs.push(port),
                _ => xdf.outputs.push(port),
            }
        }
    }

    fn instance(&mut self, node: El) -> Option<Instance> {
        let id = self.name(node, "id");
        let mut class = None;
        let mut params = Vec::new();
        for child in node.children().filter(|n| n.is_element()) {
            match child.tag_name().name() {
                "Class" => class = self.name(child, "name").filter(|n| self.class_name(n)),
                "Parameter" => {
                    let name = self.name(child, "name");
                    let mut exprs = child.children().filter(|n| n.has_tag_name("Expr"));
                    match exprs.next() {
                        None => self.error(
                            "missing-value",
                            self.tag(child),
                            "this parameter has no value (<Expr>)",
                        ),
                        Some(e) => {
                            if let (Some(value), Some(name)) = (self.expr(e, 0), name) {
                                params.push((name, value));
                            }
                        }
                    }
                }
                // Placement hints and flags of other tools.
                "Attribute" | "Note" => {}
                _ => self.unknown(child, "Instance"),
            }
        }
        if class.is_none() && !node.children().any(|n| n.has_tag_name("Class")) {
            self.error(
                "missing-class",
                self.tag(node),
                "this instance has no class (<Class name=\"...\"/>)",
            );
        }
        Some(Instance {
            id: id?,
            class: class?,
            params,
        })
    }

    /// A class name becomes a path below a source root, so it may contain only names and dots.
    fn class_name(&mut self, name: &Name) -> bool {
        let part = |p: &str| {
            !p.is_empty()
                && p.chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        };
        let good = name.text.split('.').all(part);
        if !good {
            self.error(
                "bad-name",
                name.span,
                format!("`{}` is not a class name (a.b.Name)", name.text),
            );
        }
        good
    }

    fn connection(&mut self, node: El) -> Option<Connection> {
        let end = |reader: &mut Self, instance: &str, port: &str| {
            let owner = reader.name_or_empty(node, instance);
            let port = reader.name(node, port);
            Some(End {
                instance: owner.map(|n| (!n.text.is_empty()).then_some(n))?,
                port: port?,
            })
        };
        let from = end(self, "src", "src-port");
        let to = end(self, "dst", "dst-port");
        let mut buffer_size = None;
        for child in node.children().filter(|n| n.is_element()) {
            match child.tag_name().name() {
                "Attribute" if child.attribute("name") == Some("bufferSize") => {
                    match child.children().find(|n| n.has_tag_name("Expr")) {
                        Some(e) => buffer_size = self.expr(e, 0),
                        None => self.error(
                            "missing-value",
                            self.tag(child),
                            "bufferSize has no value (<Expr>)",
                        ),
                    }
                }
                "Attribute" => {}
                _ => self.unknown(child, "Connection"),
            }
        }
        Some(Connection {
            from: from?,
            to: to?,
            buffer_size,
            span: self.tag(node),
        })
    }

    fn too_deep(&mut self, node: El, depth: usize) -> bool {
        if depth > ELEMENT_DEPTH_MAX {
            self.error(
                "too-deep",
                self.tag(node),
                format!("nested more than {ELEMENT_DEPTH_MAX} deep"),
            );
        }
        depth > ELEMENT_DEPTH_MAX
    }

    fn ty(&mut self, node: El, depth: usize) -> Option<Type> {
        if self.too_deep(node, depth) {
            return None;
        }
        let name = self.name(node, "name")?;
        let (mut size, mut elem) = (None, None);
        for entry in node.children().filter(|n| n.is_element()) {
            if !entry.has_tag_name("Entry") {
                self.unknown(entry, "Type");
                continue;
            }
            match entry.attribute("kind") {
                Some("Expr") => {
                    if let Some(e) = entry.children().find(|n| n.has_tag_name("Expr")) {
                        size = self.expr(e, depth + 1);
                    }
                }
                Some("Type") => {
                    if let Some(t) = entry.children().find(|n| n.has_tag_name("Type")) {
                        elem = self.ty(t, depth + 1);
                    }
                }
                _ => {
                    let _ = self.kind(entry, &["Expr", "Type"]);
                }
            }
        }
        let kind = match name.text.as_str() {
            "bool" => TypeKind::Bool,
            "int" => TypeKind::Int,
            "uint" => TypeKind::Uint,
            "half" => TypeKind::Half,
            "float" => TypeKind::Float,
            "double" => TypeKind::Double,
            "String" => TypeKind::String,
            "List" => TypeKind::List(Box::new(elem?)),
            other => {
                self.error(
                    "unknown-type",
                    name.span,
                    format!(
                        "no type is called `{other}`; there are: bool, int, uint, half, float, \
                         double, String, List"
                    ),
                );
                return None;
            }
        };
        Some(Type {
            kind,
            size,
            span: name.span,
        })
    }

    fn expr(&mut self, node: El, depth: usize) -> Option<Expr> {
        if self.too_deep(node, depth) {
            return None;
        }
        let span = self.tag(node);
        let kinds = ["Literal", "Var", "UnaryOp", "BinOpSeq", "List"];
        match self.kind(node, &kinds)? {
            "Literal" => self.literal(node, span),
            "Var" => self.name(node, "name").map(|n| Expr::Var(n.text, n.span)),
            "UnaryOp" => {
                let (mut op, mut operand) = (None, None);
                for child in node.children().filter(|n| n.is_element()) {
                    match child.tag_name().name() {
                        "Op" => op = self.name(child, "name"),
                        "Expr" => operand = self.expr(child, depth + 1),
                        _ => self.unknown(child, "Expr"),
                    }
                }
                let (op, operand) = (op?, Box::new(operand?));
                match op.text.as_str() {
                    "-" => Some(Expr::Neg(operand, span)),
                    "not" | "!" => Some(Expr::Not(operand, span)),
                    "~" => Some(Expr::BitNot(operand, span)),
                    other => {
                        self.error(
                            "unknown-operator",
                            op.span,
                            format!("no operator `{other}` takes one operand"),
                        );
                        None
                    }
                }
            }
            "BinOpSeq" => self.sequence(node, span, depth),
            _ => {
                let children = node.children().filter(|n| n.has_tag_name("Expr"));
                let list: Vec<Option<Expr>> = children.map(|n| self.expr(n, depth + 1)).collect();
                Some(Expr::List(list.into_iter().collect::<Option<_>>()?, span))
            }
        }
    }

    fn literal(&mut self, node: El, span: Span) -> Option<Expr> {
        let kinds = ["Integer", "Boolean", "String", "Real"];
        let kind = self.name(node, "literal-kind")?;
        let value = self.name_or_empty(node, "value")?;
        let text = value.text.as_str();
        let bad = |reader: &mut Self, what: &str| {
            reader.error("bad-literal", value.span, format!("`{text}` is not {what}"));
            None
        };
        let value = match kind.text.as_str() {
            "Integer" => match integer(text) {
                Some(i) => Value::Int(i),
                None => return bad(self, "an integer of 64 bits"),
            },
            "Boolean" => match text {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                _ => return bad(self, "true or false"),
            },
            "Real" => match text.parse::<f64>() {
                Ok(f) => Value::Float(f),
                Err(_) => return bad(self, "a number"),
            },
            // Spaces within a string are kept.
            "String" => Value::String(node.attribute("value").unwrap_or("").to_string()),
            other => {
                self.error(
                    "unknown-kind",
                    kind.span,
                    format!(
                        "a literal of kind \"{other}\"; there are: {}",
                        kinds.join(", ")
                    ),
                );
                return None;
            }
        };
        Some(Expr::Literal(value, span))
    }

    /// `e op e op e ...`
    fn sequence(&mut self, node: El, span: Span, depth: usize) -> Option<Expr> {
        let mut operands = Vec::new();
        let mut operators = Vec::new();
        let mut whole = true;
        for child in node.children().filter(|n| n.is_element()) {
            match child.tag_name().name() {
                "Expr" => {
                    let e = self.expr(child, depth + 1);
                    whole &= e.is_some();
                    operands.extend(e);
                }
                "Op" => {
                    let Some(name) = self.name(child, "name") else {
                        whole = false;
                        continue;
                    };
                    match Op::from_name(&name.text) {
                        Some(op) => operators.push(op),
                        None => {
                            whole = false;
                            self.error(
                                "unknown-operator",
                                name.span,
                                format!("no operator is called `{}`", name.text),
                            );
                        }
                    }
                }
                _ => self.unknown(child, "Expr"),
            }
        }
        if !whole {
            return None;
        }
        if operands.len() != operators.len() + 1 {
            self.error(
                "bad-sequence",
                span,
                format!(
                    "{} operands and {} operators do not make an expression",
                    operands.len(),
                    operators.len()
                ),
            );
            return None;
        }
        if operands.len() > OPERANDS_MAX {
            self.error(
                "too-deep",
                span,
                format!("an expression of more than {OPERANDS_MAX} operands"),
            );
            return None;
        }
        let first = operands.remove(0);
        Some(by_precedence(
            first,
            operators.into_iter().zip(operands).collect(),
            span,
        ))
    }
}

/// An integer as CAL writes it: decimal, `0x...`, with a sign in front.
pub fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(h) => i128::from(u64::from_str_radix(h, 16).ok()?),
        None => i128::from(digits.parse::<u64>().ok()?),
    };
    i64::try_from(if negative { -value } else { value }).ok()
}
