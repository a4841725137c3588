// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Table-driven decoding of variable-length codes (VLC): an action that walks through a code table bit by bit is
//! executed for several bits at a time.
//!
//! A parser of variable-length codes has an action that consumes one bit, looks up `table[place + bit]`, and fires
//! again until the code is complete. Each firing depends on the load of the previous one. But the place after k
//! bits depends only on the place before and on these bits: this function is tabulated here at compile time. A few
//! loads then replace a chain of firings. An entry holds the number of firings, whether the walk continues, and the
//! values of the variables afterwards.
//!
//! Such an action consumes one Boolean, produces nothing, and computes all that it assigns from the element,
//! constants and one variable, the *key*; it may also increment counters. Its guard depends on what it has
//! assigned. Where the table has no entry (a key beyond the end of a list, too few elements), it fires in the usual
//! way.

use super::class::{Class, VlcEntry, VlcWalk};
use super::counted_loop::state_variable;
use super::refire_loop::guard_reads_state_only;
use super::value::scalar;
use super::writer::Writer;
use crate::c_types::{c_type, size_of};
use crate::interp::Trial;
use crate::ir::action::{consumed, produced};
use crate::ir::visit::{expr_mentions, walk};
use crate::ir::*;
use crate::ranges::is_int;

/// Maximum number of keys.
const KEYS_MAX: usize = 4096;

/// Maximum number of entries of a table.
const ENTRIES_MAX: usize = 1 << 14;

/// Bits per table lookup, if the table does not become too large.
const BITS_PER_STEP: u32 = 4;

impl<'a> Class<'a> {
    pub fn plan_walks(&self) -> Vec<VlcWalk> {
        let ids = 0..self.actor.actions.len();
        ids.filter_map(|id| self.walk(id)).collect()
    }

    fn walk(&self, id: ActionId) -> Option<VlcWalk> {
        let a = self.actor;
        let action = &a.actions[id];
        let [(port, 1)] = consumed(action)[..] else {
            return None;
        };
        let lists = action.inputs.iter().any(|i| i.is_list);
        let plain = a.inputs[port].ty == Type::Bool && !lists && produced(action).is_empty();
        if !plain || !guard_reads_state_only(action) || !self.is_light(action) {
            return None;
        }
        let (key, vars, counts) = self.computes(action)?;
        let mut asks = Vec::new();
        for c in &action.guard.conditions {
            reads(c, &mut |v| asks.push(v))?;
        }
        let known = |v: &VarRef| match v {
            VarRef::Global(g) => a.globals[*g].constant || vars.contains(g),
            VarRef::Local(_) => false,
        };
        if !asks.iter().all(known) {
            return None;
        }

        let mut trial = Trial::new(a);
        let mut step = |at: i64, bit: bool| {
            trial.set(key, at);
            trial.fire(action, bit)?;
            let values = vars.iter().map(|v| i64::try_from(trial.get(*v)?).ok());
            let values = values.collect::<Option<Vec<i64>>>()?;
            Some((values, trial.holds(action)?))
        };
        let steps: Vec<[_; 2]> = (0..KEYS_MAX as i64)
            .map_while(|at| Some([step(at, false)?, step(at, true)?]))
            .collect();
        let bits = (2..=BITS_PER_STEP)
            .rev()
            .find(|b| steps.len() << b <= ENTRIES_MAX)?;
        if steps.is_empty() {
            return None;
        }
        let place = vars.iter().position(|v| *v == key);
        let entry = |at: usize, path: usize| {
            let (mut at, mut n) = (at, 0);
            loop {
                let bit = path >> (bits - 1 - n) & 1;
                let (values, more) = &steps[at][bit];
                n += 1;
                let next = place.map_or(at as i64, |p| values[p]);
                match usize::try_from(next) {
                    Ok(next) if *more && n < bits && next < steps.len() => at = next,
                    _ => {
                        return VlcEntry {
                            values: values.clone(),
                            firings: n,
                            more: *more,
                        };
                    }
                }
            }
        };
        let all = (0..steps.len()).flat_map(|at| (0..1usize << bits).map(move |path| (at, path)));
        let entries = all.map(|(at, path)| entry(at, path)).collect();
        Some(VlcWalk {
            action: id,
            key,
            vars,
            counts,
            bits,
            entries,
        })
    }

    /// The key, the other assigned variables, and the counters.
    #[allow(clippy::type_complexity)]
    fn computes(&self, action: &Action) -> Option<(usize, Vec<usize>, Vec<(usize, i64)>)> {
        let a = self.actor;
        let (mut written, mut counts) = (Vec::new(), Vec::new());
        let mut needs: Vec<usize> = Vec::new();
        for s in &action.body.stmts {
            let StmtKind::Assign(to, e) = &s.kind else {
                return None;
            };
            if !to.indices.is_empty() || !is_int(&to.ty) {
                return None;
            }
            if let (VarRef::Global(g), Some(step)) = (to.var, step_of(to, e)) {
                counts.push((g, step));
                continue;
            }
            let mut read = Vec::new();
            reads(e, &mut |v| read.push(v))?;
            for v in read {
                if let VarRef::Global(g) = v
                    && !a.globals[g].constant
                    && !written.contains(&g)
                {
                    // Only a scalar can be the key.
                    let list = matches!(a.globals[g].ty, Type::List { .. });
                    if list {
                        return None;
                    }
                    needs.push(g);
                }
            }
            if let VarRef::Global(g) = to.var {
                written.push(g);
            }
        }
        needs.sort_unstable();
        needs.dedup();
        // The largest first, so that an entry has no gaps.
        let size = |g: &usize| std::cmp::Reverse(size_of(&a.globals[*g].ty));
        written.sort_unstable_by_key(|g| (size(g), *g));
        written.dedup();
        // Counters are used only as counters.
        let apart = |c: &(usize, i64)| !needs.contains(&c.0) && !written.contains(&c.0);
        let mut counted: Vec<usize> = counts.iter().map(|c| c.0).collect();
        counted.dedup();
        match needs[..] {
            [key] if counts.iter().all(apart) && counted.len() == counts.len() => {
                Some((key, written, counts))
            }
            _ => None,
        }
    }

    /// The walk for this action, if the actions `before` are tried before it.
    pub fn walk_of(&self, id: ActionId, before: &[ActionId]) -> Option<&VlcWalk> {
        let walk = self.walks.iter().find(|w| w.action == id)?;
        // Their guards do not change during the walk.
        let still = |h: &ActionId| {
            let h = &self.actor.actions[*h];
            let mut apart = guard_reads_state_only(h);
            for c in &h.guard.conditions {
                let found = reads(c, &mut |v| {
                    let moved =
                        |g: usize| walk.vars.contains(&g) || walk.counts.iter().any(|c| c.0 == g);
                    apart &= !matches!(v, VarRef::Global(g) if moved(g));
                });
                apart &= found.is_some() || !self.calls_mention(c, walk);
            }
            apart
        };
        before.iter().all(still).then_some(walk)
    }

    /// Whether a function called here may read variables that the walk changes.
    fn calls_mention(&self, e: &Expr, moved: &VlcWalk) -> bool {
        let mut found = false;
        walk(e, &mut |e| {
            if let ExprKind::Call(p, _) = &e.kind {
                let body = &self.actor.procs[*p].body;
                crate::ir::visit::any_stmt(&body.stmts, &mut |s| {
                    crate::ir::visit::exprs_of(s, &mut |e| {
                        found |= matches!(e.kind, ExprKind::Call(..));
                        expr_mentions(e, &|_, _| false, &mut |v, _| {
                            if let VarRef::Global(g) = v {
                                found |= moved.vars.contains(&g);
                                found |= moved.counts.iter().any(|c| c.0 == g);
                            }
                        });
                    });
                    false
                });
            }
        });
        found
    }

    pub fn emit_vlc_tables(&self, w: &mut Writer<'a>) {
        for k in self.walks.iter() {
            let name = &self.actions[k.action];
            w.own();
            w.put(&format!(
                "\n/* Where {name} is after up to {} elements. */",
                k.bits
            ));
            w.put("static const struct {");
            for (i, v) in k.vars.iter().enumerate() {
                w.put(&format!("{} v{i};", c_type(&self.actor.globals[*v].ty)));
            }
            w.put("uint8_t firings;");
            w.put("bool more;");
            w.put(&format!(
                "}} {name}_walk[{}] LEVADA_UNUSED = {{",
                k.entries.len()
            ));
            let mut row = String::new();
            for entry in &k.entries {
                row += "{";
                for (v, value) in k.vars.iter().zip(&entry.values) {
                    let ty = &self.actor.globals[*v].ty;
                    let value = match ty {
                        Type::Bool => Value::Bool(*value != 0),
                        _ => Value::Int(*value),
                    };
                    row += &scalar(&value, ty);
                    row += ",";
                }
                row += &format!("{},{}}}, ", entry.firings, u8::from(entry.more));
                if row.len() > 80 {
                    w.put(row.trim_end());
                    row.clear();
                }
            }
            w.put(row.trim_end());
            w.put("};");
        }
    }

    /// Emits code that fires the action, which can fire, until its guard is false or `lvd_n` elements are consumed;
    /// the number of firings is in `lvd_k`.
    pub fn emit_vlc_walk(&self, w: &mut Writer<'a>, k: &VlcWalk, fire: &str, chosen: &str) {
        let port = &self.inputs[consumed(&self.actor.actions[k.action])[0].0];
        let (name, key, bits) = (&self.actions[k.action], self.homes[k.key].text(), k.bits);
        let keys = k.entries.len() >> bits;
        w.put("bool lvd_more = true;");
        w.put(&format!(
            "while (lvd_more && lvd_n - lvd_k >= {bits} && (uint64_t){key} < {keys}) {{"
        ));
        w.put(&format!("const bool *const lvd_at = {port} + lvd_k;"));
        let path: Vec<String> = (0..bits)
            .map(|i| format!("(size_t)lvd_at[{i}] << {}", bits - 1 - i))
            .collect();
        w.put(&format!(
            "const size_t lvd_i = (size_t){key} << {bits} | {};",
            path.join(" | ")
        ));
        for (i, v) in k.vars.iter().enumerate() {
            w.put(&format!(
                "{} = {name}_walk[lvd_i].v{i};",
                self.homes[*v].text()
            ));
        }
        w.put(&format!("lvd_k += {name}_walk[lvd_i].firings;"));
        w.put(&format!("lvd_more = {name}_walk[lvd_i].more;"));
        w.put("}");
        for (g, step) in &k.counts {
            let (home, c) = (self.homes[*g].text(), c_type(&self.actor.globals[*g].ty));
            w.put(&format!(
                "{home} = ({c})({home} + (uint64_t)INT64_C({step}) * lvd_k);"
            ));
        }
        w.put("while (lvd_more && lvd_k < lvd_n) {");
        w.put(fire);
        w.put("lvd_k++;");
        w.put(&format!("lvd_more = lvd_k < lvd_n && {chosen};"));
        w.put("}");
    }
}

/// The increment, if the assignment increments its variable by a constant.
fn step_of(to: &Place, e: &Expr) -> Option<i64> {
    let ExprKind::Binary(BinOp::Add, x, y) = &e.kind else {
        return None;
    };
    let ExprKind::Const(Value::Int(n)) = y.kind else {
        return None;
    };
    let VarRef::Global(g) = to.var else {
        return None;
    };
    (state_variable(x) == Some(g)).then_some(n)
}

/// Calls `f` for all variables in an expression; `None` if it calls a function.
fn reads(e: &Expr, f: &mut dyn FnMut(VarRef)) -> Option<()> {
    let mut calls = false;
    walk(e, &mut |e| {
        calls |= matches!(e.kind, ExprKind::Call(..));
        expr_mentions(e, &|_, _| false, &mut |v, _| f(v));
    });
    (!calls).then_some(())
}
