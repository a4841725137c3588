// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records a network in the index: classes, ports, parameters and instances, with their declarations.

use super::expr::Expr;
use super::interface::ClassInterface;
use super::read::{Decl, End, Name, Xdf};
use crate::index::{Index, Kind, Named};
use crate::ir::Span;
use std::collections::HashMap;
use std::rc::Rc;

type Interfaces<'x> = HashMap<&'x str, Option<Rc<ClassInterface>>>;

pub fn network(index: &mut Index, xdf: &Xdf, interfaces: &Interfaces) {
    let mut notes = Notes { index, xdf };
    notes.name(&xdf.name, xdf.name.span, Kind::Class, || {
        format!("`{}`: this network", xdf.name.text)
    });
    for (ports, kind) in [(&xdf.inputs, "an input"), (&xdf.outputs, "an output")] {
        for port in ports {
            notes.name(&port.name, port.name.span, Kind::Port, || {
                format!("`{}`: {kind} port of this network", port.name.text)
            });
        }
    }
    for decl in xdf.params.iter().chain(&xdf.variables) {
        notes.decl(decl, &decl.name);
        notes.values(decl.value.iter());
    }
    for instance in &xdf.instances {
        notes.instance(&instance.id, &instance.id);
        notes.values(instance.params.iter().map(|(_, value)| value));
        let Some(Some(interface)) = interfaces.get(instance.id.text.as_str()) else {
            continue;
        };
        notes.name(&instance.class, interface.span, Kind::Class, || {
            about_class(interface)
        });
        for (name, _) in &instance.params {
            if let Some((_, _, declared)) = interface.params.find(&name.text) {
                notes.name(name, *declared, Kind::Parameter, || {
                    format!("`{}`: a parameter of `{}`", name.text, interface.class)
                });
            }
        }
    }
    for connection in &xdf.connections {
        notes.values(connection.buffer_size.iter());
        notes.end(&connection.from, interfaces, true);
        notes.end(&connection.to, interfaces, false);
    }
}

fn about_class(interface: &ClassInterface) -> String {
    let what = match interface.network {
        Some(_) => "a network",
        None => "an actor",
    };
    format!("`{}`: {what}", interface.class)
}

struct Notes<'n> {
    index: &'n mut Index,
    xdf: &'n Xdf,
}

impl Notes<'_> {
    fn name(&mut self, name: &Name, declared: Span, kind: Kind, about: impl FnOnce() -> String) {
        self.index.names.push(Named {
            span: name.span,
            declared,
            kind,
            about: about(),
        });
    }

    fn decl(&mut self, decl: &Decl, used: &Name) {
        self.name(used, decl.name.span, Kind::Variable, || {
            format!(
                "`{}`: a parameter or variable of this network",
                decl.name.text
            )
        });
    }

    fn instance(&mut self, declared: &Name, used: &Name) {
        self.name(used, declared.span, Kind::Instance, || {
            format!("`{}`: an instance", declared.text)
        });
    }

    fn values<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) {
        let mut used = Vec::new();
        values.for_each(|value| value.names(&mut used));
        for (text, span) in used {
            let mut decls = self.xdf.params.iter().chain(&self.xdf.variables);
            if let Some(decl) = decls.find(|d| d.name.text == text) {
                self.decl(decl, &Name { text, span });
            }
        }
    }

    fn end(&mut self, end: &End, interfaces: &Interfaces, source: bool) {
        let Some(instance) = &end.instance else {
            let ports = if source {
                &self.xdf.inputs
            } else {
                &self.xdf.outputs
            };
            if let Some(port) = ports.iter().find(|p| p.name.text == end.port.text) {
                self.name(&end.port, port.name.span, Kind::Port, || {
                    format!("`{}`: a port of this network", port.name.text)
                });
            }
            return;
        };
        if let Some(found) = self
            .xdf
            .instances
            .iter()
            .find(|i| i.id.text == instance.text)
        {
            self.instance(&found.id, instance);
        }
        let Some(Some(interface)) = interfaces.get(instance.text.as_str()) else {
            return;
        };
        let ports = if source {
            &interface.outputs
        } else {
            &interface.inputs
        };
        if let Some((name, declared)) = ports.iter().find(|(n, _)| *n == end.port.text) {
            self.name(&end.port, *declared, Kind::Port, || {
                format!("`{name}`: a port of `{}`", interface.class)
            });
        }
    }
}
