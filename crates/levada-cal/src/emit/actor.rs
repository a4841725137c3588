// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Emits an actor class: its state, tables, procedures, actions, `init` and class record. `schedule.rs` emits the
//! scheduling of its actions.

use super::class::{Class, Home};
use super::expr::Code;
use super::stmt::{convert_text, locals_of, used_locals};
use super::value::{flatten, lie_alike, scalar, zero_of};
use super::writer::{Names, Writer, comment, string_literal};
use crate::c_types::{c_type, const_type, size_of};
use crate::ir::action::{UNKNOWN_WEIGHT, consumed, is_light_with, produced, size, weight_with};
use crate::ir::visit::walk;
use crate::ir::*;
use crate::ranges::{Range, dimensions, hidden_param, innermost};
use std::cell::OnceCell;
use std::collections::HashSet;

impl<'a> Class<'a> {
    /// Everything of the class but its `run`.
    pub fn emit(&self, w: &mut Writer<'a>) {
        w.own();
        w.put(&format!(
            "\n/* ---- actor {} ---- */\n",
            comment(&self.actor.name)
        ));
        self.emit_natives(w);
        self.emit_tables(w);
        self.emit_state(w);
        self.emit_procs(w);
        for (i, a) in self.all_actions().enumerate() {
            self.emit_action(w, i, a);
        }
        self.without_registers().emit_init(w);
        self.emit_run(w);
        self.emit_record(w);
    }

    /// Whether an action of this class is light; natives are assumed to be called rarely.
    pub fn is_light(&self, a: &Action) -> bool {
        is_light_with(a, &|p| self.cost(p))
    }

    /// The weight of an action with its inlined procedures.
    pub fn weight(&self, a: &Action) -> usize {
        weight_with(a, &|p| self.cost(p))
    }

    fn cost(&self, p: usize) -> usize {
        // An inlined procedure calls no other inlined procedure.
        let inner = |p: usize| {
            if self.actor.procs[p].native {
                1
            } else {
                UNKNOWN_WEIGHT
            }
        };
        if self.inlined[p] {
            size(&self.actor.procs[p].body.stmts, &inner)
        } else {
            inner(p)
        }
    }

    pub fn all_actions(&self) -> impl Iterator<Item = &'a Action> {
        self.actor.actions.iter().chain(&self.actor.initializers)
    }

    fn emit_natives(&self, w: &mut Writer<'a>) {
        for (i, p) in self
            .actor
            .procs
            .iter()
            .enumerate()
            .filter(|(_, p)| p.native)
        {
            let names: Vec<_> = (0..p.body.locals.len()).map(|k| format!("a{k}")).collect();
            // Under a name of our own, so that two actors may declare one native differently.
            w.put(&format!(
                "extern {} __asm__({});",
                self.prototype(i, &names),
                string_literal(&p.name)
            ));
        }
    }

    fn emit_tables(&self, w: &mut Writer<'a>) {
        for (h, g) in self.homes.iter().zip(&self.actor.globals) {
            if let Home::Table(name) = h {
                self.emit_table(w, name, g);
            }
        }
    }

    fn emit_table(&self, w: &mut Writer<'a>, name: &str, g: &Var) {
        let dims = dimensions(&g.ty);
        let n: u64 = dims.iter().map(|n| u64::from(*n)).product::<u64>().max(1);
        let mut items = Vec::new();
        match &g.init {
            Init::Value(v) => flatten(v, &dims, innermost(&g.ty), &mut items),
            _ if *innermost(&g.ty) == Type::String => {
                items.resize(n as usize, zero_of(innermost(&g.ty)).to_string())
            }
            _ => items.push("0".to_string()),
        }
        w.put(&format!(
            "static {} {name}[{n}] LEVADA_UNUSED = {{",
            const_type(&g.ty)
        ));
        let mut row = String::new();
        for i in items {
            if row.len() + i.len() > 92 {
                w.put(row.trim_end());
                row.clear();
            }
            row += &i;
            row += ", ";
        }
        w.put(row.trim_end());
        w.put("};");
    }

    fn emit_state(&self, w: &mut Writer<'a>) {
        w.put(&format!("typedef struct {}_state {{", self.prefix));
        w.put("uint32_t lvd_state; /* of the schedule; before it, the initializers' */");
        if self.prints() {
            w.put("levada_line lvd_wait_info;");
        }
        if self.texts() > 0 {
            w.put(&format!("levada_text lvd_text[{}];", self.texts()));
        }
        if self.has_concatenations() {
            w.put("levada_kept lvd_kept;");
        }
        for (h, g) in self.homes.iter().zip(&self.actor.globals) {
            if let Home::State(name) | Home::Register(name) = h {
                let n = dimensions(&g.ty)
                    .iter()
                    .map(|n| u64::from(*n))
                    .product::<u64>()
                    .max(1);
                let size = if matches!(g.ty, Type::List { .. }) {
                    format!("[{n}]")
                } else {
                    String::new()
                };
                w.put(&format!("{} {name}{size};", c_type(&g.ty)));
            }
        }
        self.emit_large_locals(w);
        w.put(&format!("}} {}_state;", self.prefix));
        if self.has_registers() {
            w.put("/* The part of the state that is kept in registers while the actor runs. */");
            w.put(&format!("typedef struct {}_registers {{", self.prefix));
            for (name, ty) in self.registers() {
                w.put(&format!("{} {name};", c_type(ty)));
            }
            w.put(&format!("}} {}_registers;", self.prefix));
        }
        w.put("");
    }

    fn emit_procs(&self, w: &mut Writer<'a>) {
        let bodies: Vec<_> = self
            .actor
            .procs
            .iter()
            .enumerate()
            .filter(|(_, p)| !p.native)
            .collect();
        let names = |p: &Proc| -> Vec<String> {
            let mut names = Names::default();
            p.body.locals.iter().map(|l| names.fresh(&l.name)).collect()
        };
        let how = |p: usize| {
            if self.inlined[p] {
                "LEVADA_INLINE"
            } else {
                "static LEVADA_UNUSED"
            }
        };
        for (i, p) in &bodies {
            w.put(&format!("{} {};", how(*i), self.prototype(*i, &names(p))));
        }
        for (i, p) in &bodies {
            let locals = names(p);
            let env = self.ranges.enter_proc(*i).unwrap_or_else(|| {
                let mut env = self.ranges.enter(&p.body);
                env.locals = p.body.locals.iter().map(|l| Range::of(&l.ty)).collect();
                env
            });
            w.at(p.span);
            w.put(&format!("{} {} {{", how(*i), self.prototype(*i, &locals)));
            let mut code = Code {
                class: self,
                w,
                body: &p.body,
                locals: locals_of(locals),
                env,
                proc: Some(*i),
                file: self.actor.span.file,
                read_after: HashSet::new(),
                in_map: false,
                mentioned: OnceCell::new(),
            };
            for l in 0..p.params {
                if matches!(p.body.locals[l].ty, Type::List { .. }) && !self.writes(*i, l) {
                    code.locals[l].read_only = true;
                }
            }
            code.declare(p.params + usize::from(hidden_param(p)), &[]);
            code.stmts(&p.body.stmts);
            w.put("}");
        }
    }

    /// The parameters of the functions of an action; `outputs`: also its output ports.
    fn action_params(&self, a: &Action, outputs: bool) -> String {
        let mut params = vec![
            "lvd_actor *self LEVADA_UNUSED".to_string(),
            format!("{}_state *S LEVADA_UNUSED", self.prefix),
        ];
        if self.has_registers() {
            params.push(format!("{}_registers *R LEVADA_UNUSED", self.prefix));
        }
        for (port, _) in consumed(a) {
            params.push(format!(
                "{} *restrict {} LEVADA_UNUSED",
                const_type(&self.actor.inputs[port].ty),
                self.inputs[port]
            ));
        }
        if outputs {
            for (port, _) in produced(a) {
                params.push(format!(
                    "{} *restrict {} LEVADA_UNUSED",
                    c_type(&self.actor.outputs[port].ty),
                    self.outputs[port]
                ));
            }
        }
        params.join(", ")
    }

    fn emit_action(&self, w: &mut Writer<'a>, index: usize, a: &'a Action) {
        let name = &self.actions[index];
        let kind = if index < self.actor.actions.len() {
            "action"
        } else {
            "initialize action"
        };
        w.own();
        w.put(&format!("\n/* {kind} {} */", comment(&a.name)));
        let how = if self.is_light(a) {
            "LEVADA_INLINE"
        } else {
            "static LEVADA_UNUSED"
        };

        if !a.guard.conditions.is_empty() {
            w.at(a.span);
            w.put(&format!(
                "{how} bool {name}_guard({}) {{",
                self.action_params(a, false)
            ));
            if self.looks() {
                w.put("self->in_guard = true;");
            }
            let body = &a.guard.body;
            let mut used = used_locals(body);
            for c in &a.guard.conditions {
                mark_used(c, &mut used);
            }
            let mut code = self.code(w, body, a);
            code.env = self.ranges.enter_guard(a);
            code.read_after = (0..body.locals.len()).collect();
            let inputs = code.bind_inputs(a, &used);
            code.declare_used_but(inputs, &used, &[]);
            code.stmts(&body.stmts);
            for (i, c) in a.guard.conditions.iter().enumerate() {
                code.w.at(c.span);
                let text = code.condition(c).text;
                if i + 1 < a.guard.conditions.len() {
                    code.w.put(&format!("if (!({text})) return false;"));
                } else {
                    code.w.put(&format!("return {text};"));
                }
                code.assume(c);
            }
            w.put("}");
        }

        w.at(a.span);
        w.put(&format!(
            "{how} void {name}({}) {{",
            self.action_params(a, true)
        ));
        let initializes = index >= self.actor.actions.len();
        let nothing = self
            .looks()
            .then(|| self.done_nothing_until(a, initializes));
        if let Some(until) = nothing {
            w.put(&format!("self->in_guard = {};", until.is_some()));
        }
        let body = &a.body;
        let mut used = used_locals(body);
        for v in a.outputs.iter().flat_map(|o| &o.values) {
            match v {
                OutputValue::Scalar(e) => mark_used(e, &mut used),
                OutputValue::List(VarRef::Local(l)) => used[*l] = true,
                OutputValue::List(_) => {}
            }
        }
        let mut code = self.code(w, body, a);
        code.env = self.ranges.enter_body(a);
        let inputs = code.bind_inputs(a, &used);
        let placed = code.place_outputs(a, inputs);
        code.declare_used_but(inputs, &used, &placed);
        let (before, after) = body.stmts.split_at(nothing.flatten().unwrap_or(0));
        code.stmts(before);
        if !before.is_empty() && !initializes {
            code.w.put("self->in_guard = false;");
        }
        code.stmts(after);
        code.write_outputs(a, &placed);
        w.own();
        w.put("}");
    }

    fn code<'w>(&'w self, w: &'w mut Writer<'a>, body: &'a Body, a: &Action) -> Code<'a, 'w> {
        let mut names = Names::default();
        let locals = body.locals.iter().map(|l| names.fresh(&l.name)).collect();
        let mut read = vec![false; a.body.locals.len().max(body.locals.len())];
        for v in a.outputs.iter().flat_map(|o| &o.values) {
            match v {
                OutputValue::Scalar(e) => mark_used(e, &mut read),
                OutputValue::List(VarRef::Local(l)) => read[*l] = true,
                OutputValue::List(_) => {}
            }
        }
        let read_after = (0..read.len()).filter(|l| read[*l]).collect();
        Code {
            class: self,
            w,
            body,
            locals: locals_of(locals),
            env: self.ranges.enter(body),
            proc: None,
            file: self.actor.span.file,
            read_after,
            in_map: false,
            mentioned: OnceCell::new(),
        }
    }

    fn emit_init(&self, w: &mut Writer<'a>) {
        w.own();
        w.put("\n/* The state that an instance begins with; what is not set is zero. */");
        let consts: Vec<_> = self.actor.globals.iter().enumerate().collect();
        for (i, g) in &consts {
            if let (Home::State(name), Init::Value(Value::List(_))) = (&self.homes[*i], &g.init) {
                self.emit_table(w, &format!("{}_{name}_init", self.prefix), g);
            }
        }
        w.put(&format!(
            "static void {}_init(lvd_actor *self) {{",
            self.prefix
        ));
        w.put(&format!(
            "{}_state *const S LEVADA_UNUSED = self->state;",
            self.prefix
        ));
        let initial = self.actor.fsm.as_ref().map_or(0, |f| f.initial);
        if self.actor.initializers.is_empty() && initial > 0 {
            w.put(&format!("S->lvd_state = {initial};"));
        }
        for (i, g) in consts {
            let Home::State(name) = &self.homes[i] else {
                continue;
            };
            match &g.init {
                Init::Zero if g.ty == Type::String => w.put(&format!("S->{name} = \"\";")),
                Init::Zero if *innermost(&g.ty) == Type::String => {
                    let n: u64 = dimensions(&g.ty).iter().map(|n| u64::from(*n)).product();
                    w.put(&format!(
                        "for (uint32_t i = 0; i < {n}; i++) S->{name}[i] = \"\";"
                    ));
                }
                Init::Zero => {}
                Init::Value(Value::List(_)) => {
                    let n: u64 = dimensions(&g.ty).iter().map(|n| u64::from(*n)).product();
                    let bytes = n * u64::from(size_of(&g.ty));
                    w.put(&format!(
                        "memcpy(S->{name}, {}_{name}_init, {bytes});",
                        self.prefix
                    ));
                }
                Init::Value(v) => {
                    let text = scalar(v, &g.ty);
                    w.put(&format!("S->{name} = {text};"));
                }
                Init::Code(body) => {
                    w.at(g.span);
                    w.put("{");
                    let mut names = Names::default();
                    let locals = body.locals.iter().map(|l| names.fresh(&l.name)).collect();
                    let mut code = Code {
                        class: self,
                        w,
                        body,
                        locals: locals_of(locals),
                        env: self.ranges.enter(body),
                        proc: None,
                        file: self.actor.span.file,
                        read_after: HashSet::new(),
                        in_map: false,
                        mentioned: OnceCell::new(),
                    };
                    code.declare(0, &[]);
                    code.stmts(&body.stmts);
                    w.put("}");
                }
            }
        }
        w.own();
        w.put("}");
        if self.ends() {
            w.put(&format!(
                "static void {}_end(lvd_actor *self) {{",
                self.prefix
            ));
            w.put(&format!("{}_state *const S = self->state;", self.prefix));
            if self.prints() {
                w.put("levada_print_last(&S->lvd_wait_info);");
            }
            for i in 0..self.texts() {
                w.put(&format!("free(S->lvd_text[{i}].text);"));
            }
            if self.has_concatenations() {
                w.put("levada_keep_end(&S->lvd_kept);");
            }
            w.put("}");
        }
    }

    fn emit_record(&self, w: &mut Writer<'a>) {
        let (a, p) = (self.actor, &self.prefix);
        let file = string_literal(w.lines.path(a.span));
        w.own();
        w.put("");
        for (kind, ports) in [("inputs", &a.inputs), ("outputs", &a.outputs)] {
            if ports.is_empty() {
                continue;
            }
            w.put(&format!("static const lvd_port_class {p}_{kind}[] = {{"));
            for port in ports {
                w.put(&format!(
                    "{{{}, {}}},",
                    string_literal(&port.name),
                    size_of(&port.ty)
                ));
            }
            w.put("};");
        }
        let count = self.all_actions().count();
        if count > 0 {
            w.put(&format!("static const lvd_action_class {p}_actions[] = {{"));
            for action in self.all_actions() {
                w.put(&format!(
                    "{{{}, {}, {}}},",
                    string_literal(&action.name),
                    string_literal(w.lines.path(action.span)),
                    w.lines.line(action.span)
                ));
            }
            w.put("};");
        }
        let table = |n: usize, name: &str| {
            if n == 0 {
                "NULL".into()
            } else {
                format!("{p}_{name}")
            }
        };
        self.emit_memory(w);
        w.put(&format!("const lvd_actor_class {p}_class = {{"));
        w.put(&format!(".name = {},", string_literal(&a.name)));
        w.put(&format!(".file = {file},"));
        w.put(&format!(".state_size = sizeof({p}_state),"));
        let waits = if self.may_wait() {
            " | LVD_CLASS_CAN_BLOCK"
        } else {
            ""
        };
        let restarts = if self.restarts() {
            " | LVD_CLASS_RESTARTABLE"
        } else {
            ""
        };
        w.put(&format!(".flags = LVD_CLASS_ABANDONABLE{waits}{restarts},"));
        w.put(&format!(
            ".inputs = {}, .outputs = {}, .actions = {count},",
            a.inputs.len(),
            a.outputs.len()
        ));
        w.put(&format!(".input = {},", table(a.inputs.len(), "inputs")));
        w.put(&format!(".output = {},", table(a.outputs.len(), "outputs")));
        w.put(&format!(".action = {},", table(count, "actions")));
        let end = if self.ends() {
            format!("{p}_end")
        } else {
            "NULL".to_string()
        };
        w.put(&format!(".init = {p}_init, .run = {p}_run, .end = {end},"));
        w.put(&format!(".state_schema = &{p}_state_schema,"));
        w.put("};");
    }
}

fn mark_used(e: &Expr, used: &mut [bool]) {
    walk(e, &mut |e| {
        crate::ir::visit::expr_mentions(e, &|_, _| false, &mut |v, _| {
            if let VarRef::Local(l) = v {
                used[l] = true;
            }
        });
    });
}

impl<'a, 'w> Code<'a, 'w> {
    fn assume(&mut self, c: &Expr) {
        self.class.ranges.assume(&mut self.env, c, true);
    }

    fn declare_used_but(&mut self, first: usize, used: &[bool], placed: &[usize]) {
        // A local that only an output uses must be declared, too.
        let in_body = used_locals(self.body);
        for (l, on) in used.iter().enumerate().skip(first) {
            if *on && !in_body[l] && !placed.contains(&l) {
                let ty = &self.body.locals[l].ty;
                let name = self.locals[l].name.clone();
                let n: u64 = dimensions(ty).iter().map(|n| u64::from(*n)).product();
                let text = match ty {
                    Type::List { .. } => match self.class.member_of(self.body, l) {
                        Some(member) => {
                            let text = *innermost(ty) == Type::String;
                            self.in_state(c_type(ty), &name, member, n, true, text);
                            continue;
                        }
                        None => format!("{} {name}[{}] = {{0}};", c_type(ty), n.max(1)),
                    },
                    _ => format!("{} {name} = 0;", c_type(ty)),
                };
                self.w.put(&text);
            }
        }
        self.declare(first, placed);
    }

    /// Declares the variables of the input patterns with their values; returns the number of locals.
    fn bind_inputs(&mut self, a: &'a Action, used: &[bool]) -> usize {
        let mut written = vec![false; self.body.locals.len()];
        let class = self.class;
        crate::ir::visit::mentions(&self.body.stmts, &|p, i| class.writes(p, i), &mut |v, w| {
            if let (VarRef::Local(l), true) = (v, w) {
                written[l] = true;
            }
        });
        let mut offsets = vec![0u32; class.actor.inputs.len()];
        let mut bound = 0;
        for input in &a.inputs {
            let port = &class.actor.inputs[input.port];
            let (span, stride) = (&class.inputs[input.port], input.vars.len() as u32);
            for (j, l) in input.vars.iter().enumerate() {
                bound = bound.max(l + 1);
                let at = offsets[input.port] + j as u32;
                if !used.get(*l).copied().unwrap_or(false) {
                    continue;
                }
                let (ty, name) = (&self.body.locals[*l].ty, self.locals[*l].name.clone());
                let (c, same) = (c_type(ty), lie_alike(&port.ty, ty));
                let text = if !input.is_list {
                    let value = convert_text(&format!("{span}[{at}]"), &port.ty, ty);
                    if written[*l] || c.ends_with('*') {
                        format!("{c} {name} = {value};")
                    } else {
                        format!("const {c} {name} = {value};")
                    }
                } else if same && stride == 1 && !written[*l] {
                    self.locals[*l].read_only = true;
                    format!("{} *const {name} = {span} + {at};", const_type(ty))
                } else {
                    let n = input.repeat;
                    match class.member_of(self.body, *l) {
                        Some(member) => self.in_state(c, &name, member, n.into(), false, false),
                        None => self.w.put(&format!("{c} {name}[{n}];")),
                    }
                    if same && stride == 1 {
                        format!("memcpy({name}, {span} + {at}, {n} * sizeof *{name});")
                    } else {
                        let k = class.temporary();
                        let from = format!("{span}[{at} + {k} * {stride}]");
                        let value = convert_text(&from, &port.ty, ty);
                        format!("for (size_t {k} = 0; {k} < {n}; {k}++) {name}[{k}] = {value};")
                    }
                };
                self.w.put(&text);
            }
            offsets[input.port] += input.count();
        }
        bound
    }

    /// Lists that only the body writes and that one output sends are placed in its channel's buffer directly, since
    /// it is not visible before the push. Declares them and returns them.
    fn place_outputs(&mut self, a: &'a Action, inputs: usize) -> Vec<usize> {
        let mut placed = Vec::new();
        let mut offset = vec![0u32; self.class.actor.outputs.len()];
        let leaving: Vec<usize> = a
            .outputs
            .iter()
            .flat_map(|o| &o.values)
            .filter_map(|v| match v {
                OutputValue::List(VarRef::Local(l)) => Some(*l),
                _ => None,
            })
            .collect();
        for o in &a.outputs {
            let at = offset[o.port];
            offset[o.port] += o.count();
            let [OutputValue::List(VarRef::Local(l))] = &o.values[..] else {
                continue;
            };
            let ty = &self.body.locals[*l].ty;
            let port = &self.class.actor.outputs[o.port];
            let once = leaving.iter().filter(|x| *x == l).count() == 1;
            let fits = dimensions(ty) == [o.repeat] && lie_alike(ty, &port.ty);
            if *l < inputs || !once || !fits {
                continue;
            }
            let (c, name) = (c_type(ty), self.locals[*l].name.clone());
            self.w.put(&format!(
                "{c} *const {name} = {} + {at};",
                self.class.outputs[o.port]
            ));
            if self.needs_zero(*l) && *innermost(ty) == Type::String {
                let n = o.repeat;
                self.w.put(&format!(
                    "for (uint32_t i = 0; i < {n}; i++) {name}[i] = \"\";"
                ));
            } else if self.needs_zero(*l) {
                self.w
                    .put(&format!("memset({name}, 0, {});", o.repeat * size_of(ty)));
            }
            placed.push(*l);
        }
        placed
    }

    fn write_outputs(&mut self, a: &'a Action, placed: &[usize]) {
        let mut offset = vec![0u32; self.class.actor.outputs.len()];
        for o in &a.outputs {
            let port = &self.class.actor.outputs[o.port];
            let (span, stride) = (self.class.outputs[o.port].clone(), o.values.len() as u32);
            for (j, v) in o.values.iter().enumerate() {
                let at = offset[o.port] + j as u32;
                self.w.at(o.span);
                match v {
                    OutputValue::Scalar(e) => {
                        let x = self.stored(e, &port.ty);
                        self.w.put(&format!("{span}[{at}] = {};", x.text));
                    }
                    OutputValue::List(VarRef::Local(l)) if placed.contains(l) => {}
                    OutputValue::List(var) => {
                        let ty = self.var_type(*var);
                        let name = match var {
                            VarRef::Local(l) => self.locals[*l].name.clone(),
                            VarRef::Global(g) => self.class.homes[*g].text(),
                        };
                        let n = o.repeat;
                        if stride == 1 && lie_alike(ty, &port.ty) {
                            let bytes = n * size_of(ty);
                            self.w
                                .put(&format!("memcpy({span} + {at}, {name}, {bytes});"));
                        } else {
                            let k = self.class.temporary();
                            let value = convert_text(&format!("{name}[{k}]"), ty, &port.ty);
                            self.w.put(&format!(
                                "for (size_t {k} = 0; {k} < {n}; {k}++) {span}[{at} + {k} * {stride}] = {value};"
                            ));
                        }
                    }
                }
            }
            offset[o.port] += o.count();
        }
    }
}
