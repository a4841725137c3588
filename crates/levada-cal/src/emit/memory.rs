// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The description of an actor's state for live upgrades: the table of its variables and of its schedule's states,
//! and whether a firing that waits for input can be restarted.

use super::class::{Class, Home};
use super::writer::{Writer, string_literal};
use crate::ir::visit::{any_stmt, exprs_of, mentions, walk};
use crate::ir::{type_name, *};
use crate::ranges::innermost;

impl<'a> Class<'a> {
    /// Emits the description as a static table of the class.
    pub fn emit_memory(&self, w: &mut Writer<'a>) {
        let p = &self.prefix;
        let mut count = 0;
        let mut row = |w: &mut Writer<'a>, name: &str, member: &str, ty: &str, text: bool| {
            if count == 0 {
                w.put(&format!("static const lvd_state_var {p}_variables[] = {{"));
            }
            count += 1;
            w.put(&format!(
                "{{{}, {}, offsetof({p}_state, {member}), sizeof(((const {p}_state *)0)->{member}), {text}}},",
                string_literal(name),
                string_literal(ty)
            ));
        };
        if self.prints() {
            row(w, "lvd_wait_info", "lvd_wait_info", "line", false);
        }
        // Variables that are computed once, perhaps from parameters, are computed again.
        let all = self.homes.iter().zip(&self.actor.globals);
        for (home, g) in all.filter(|(_, g)| !g.constant) {
            if let Home::State(member) | Home::Register(member) = home {
                let text = *innermost(&g.ty) == Type::String;
                // By its name in CAL if that is unique; in fused actors with the actor's name (`a.x`).
                let same = self.actor.globals.iter().filter(|o| o.name == g.name);
                let name = if same.count() == 1 { &g.name } else { member };
                row(w, name, member, &type_name(&g.ty), text);
            }
        }
        let variables = match count {
            0 => "NULL".to_string(),
            _ => {
                w.put("};");
                format!("{p}_variables")
            }
        };
        let one = [String::new()];
        let (states, initial) = match &self.actor.fsm {
            Some(fsm) => (&fsm.states[..], fsm.initial),
            None => (&one[..], 0),
        };
        let names: Vec<String> = states.iter().map(|s| string_literal(s)).collect();
        w.put(&format!(
            "static const char *const {p}_states[] = {{{}}};",
            names.join(", ")
        ));
        let text = |port: &Port| port.ty == Type::String;
        let texts = if self.actor.outputs.iter().any(text) {
            let each: Vec<String> = self
                .actor
                .outputs
                .iter()
                .map(|o| text(o).to_string())
                .collect();
            w.put(&format!(
                "static const bool {p}_texts[] = {{{}}};",
                each.join(", ")
            ));
            format!("{p}_texts")
        } else {
            "NULL".to_string()
        };
        w.put(&format!(
            "static const lvd_state_schema {p}_state_schema = {{"
        ));
        w.put(&format!(
            ".variables = {count}, .variable = {variables}, .states = {}, .first = {}, .initial = {initial},",
            states.len(),
            self.actor.initializers.len()
        ));
        w.put(&format!(".state = {p}_states, .texts = {texts},"));
        w.put("};");
    }

    /// Whether no firing that waits in a native has changed anything yet, for all actions.
    pub fn restarts(&self) -> bool {
        let a = self.actor;
        a.inputs.is_empty()
            && !self.has_registers()
            && a.procs.iter().any(|p| p.native)
            && a.globals.iter().all(|g| match &g.init {
                Init::Code(body) => self.calls(&body.stmts).is_empty(),
                _ => true,
            })
            && a.actions
                .iter()
                .chain(&a.initializers)
                .all(|x| self.can_restart(x))
    }

    /// Whether it may wait in a native. A source that waits before its firing has any effect ends there when its
    /// application drains, so it must record whether it has.
    pub fn looks(&self) -> bool {
        self.actor.inputs.is_empty() && self.actor.procs.iter().any(|p| p.native)
    }

    /// The number of leading statements of a firing without effects, except those of a native called before; `None`
    /// if the firing may have effects at once. An initializer produces nothing, whatever it does.
    pub fn done_nothing_until(&self, action: &Action, initializes: bool) -> Option<usize> {
        let stmts = &action.body.stmts;
        if initializes {
            return Some(stmts.len());
        }
        match stmts.iter().position(|s| self.does_anything(s)) {
            Some(i) => self.is_call_of_native(&stmts[i]).then_some(i + 1),
            None => self
                .calls_one_native(&self.late_calls(action))
                .then_some(stmts.len()),
        }
    }

    /// Whether each firing calls at most one native, once, before it changes anything.
    fn can_restart(&self, action: &Action) -> bool {
        let calls = self.calls(&action.body.stmts).len() + self.late_calls(action).len();
        calls == 0 || (calls == 1 && self.done_nothing_until(action, false).is_some())
    }

    /// Whether the statement has an external effect, or calls a function that may.
    fn does_anything(&self, s: &Stmt) -> bool {
        let s = std::slice::from_ref(s);
        let mut written = false;
        mentions(s, &|p, i| self.writes(p, i), &mut |v, writes| {
            written |= writes && matches!(v, VarRef::Global(_));
        });
        written
            || !self.calls(s).is_empty()
            || any_stmt(s, &mut |s| matches!(s.kind, StmtKind::Print { .. }))
    }

    fn is_call_of_native(&self, s: &Stmt) -> bool {
        matches!(s.kind, StmtKind::Assign(..) | StmtKind::Call(..))
            && self.calls_one_native(&self.calls(std::slice::from_ref(s)))
    }

    fn calls_one_native(&self, calls: &[usize]) -> bool {
        matches!(calls, [p] if self.actor.procs[*p].native)
    }

    /// The calls in output values, which follow all statements.
    fn late_calls(&self, action: &Action) -> Vec<usize> {
        let mut late = Vec::new();
        for value in action.outputs.iter().flat_map(|o| &o.values) {
            if let OutputValue::Scalar(e) = value {
                walk(e, &mut |e| self.effects_here(e, &mut late));
            }
        }
        late
    }

    /// The procedures and natives with effects that these statements call.
    fn calls(&self, stmts: &[Stmt]) -> Vec<usize> {
        let mut found = Vec::new();
        any_stmt(stmts, &mut |s| {
            if let StmtKind::Call(p, _) = s.kind
                && self.actor.procs[p].effects
            {
                found.push(p);
            }
            exprs_of(s, &mut |e| self.effects_here(e, &mut found));
            false
        });
        found
    }

    fn effects_here(&self, e: &Expr, found: &mut Vec<usize>) {
        if let ExprKind::Call(p, _) = e.kind
            && self.actor.procs[p].effects
        {
            found.push(p);
        }
    }
}
