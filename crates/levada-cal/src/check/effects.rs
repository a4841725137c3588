// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Side effects of functions and procedures: which of their list parameters they write, and whether they change
//! anything that outlives the call.

use crate::hir::{
    Expr, ExprKind, Global, LocalId, Place, Proc, ProcBody, ProcId, Stmt, StmtKind, Var,
};

#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// For each list parameter, whether it is written.
    pub writes: Vec<bool>,
    /// Whether it calls a native, prints, or writes a global variable, directly or indirectly.
    pub effects: bool,
    /// Whether it reads a variable that may change.
    pub reads_state: bool,
}

/// The effects of all procedures, in order. Native procedures are assumed to write all lists that they get, or none.
pub fn of_all(procs: &[Proc], globals: &[Global], natives_write: bool) -> Vec<Effects> {
    let start = |proc: &Proc| Effects {
        writes: vec![natives_write && proc.native && proc.result.is_none(); proc.params],
        effects: proc.native,
        reads_state: proc.native,
    };
    let mut all: Vec<Effects> = procs.iter().map(start).collect();
    // A caller has its callees' effects: iterate to a fixed point.
    loop {
        let mut changed = false;
        for (id, proc) in procs.iter().enumerate() {
            let mut found = all[id].clone();
            walk_proc(proc, &mut |event| match event {
                Event::Write(Var::Local(local)) if local < proc.params => {
                    found.writes[local] = true
                }
                Event::Write(Var::Global(_)) | Event::Print => found.effects = true,
                Event::Read(Var::Global(g)) if !globals[g].constant => found.reads_state = true,
                Event::Call(callee, args) => {
                    found.effects |= all[callee].effects;
                    found.reads_state |= all[callee].reads_state;
                    for (var, _) in written_args(&all, callee, args) {
                        match var {
                            Var::Local(local) if local < proc.params => found.writes[local] = true,
                            Var::Local(_) => {}
                            Var::Global(_) => found.effects = true,
                        }
                    }
                }
                _ => {}
            });
            let old = &all[id];
            if found.writes != old.writes
                || found.effects != old.effects
                || found.reads_state != old.reads_state
            {
                all[id] = found;
                changed = true;
            }
        }
        if !changed {
            return all;
        }
    }
}

/// The variables that a call changes through its list parameters, with their places.
pub fn written_args<'e>(
    all: &'e [Effects],
    callee: ProcId,
    args: &'e [Expr],
) -> impl Iterator<Item = (Var, &'e Expr)> {
    args.iter()
        .zip(&all[callee].writes)
        .filter_map(|(arg, &written)| match &arg.kind {
            ExprKind::Load(place) if written && place.ty.is_list() => Some((place.var, arg)),
            _ => None,
        })
}

/// Whether `stmts` change `var` or a part of it.
pub fn changes(all: &[Effects], stmts: &[Stmt], var: Var) -> bool {
    let mut found = false;
    walk_stmts(stmts, &mut |event| match event {
        Event::Write(written) => found |= written == var,
        Event::Call(callee, args) => {
            found |= written_args(all, callee, args).any(|(written, _)| written == var);
        }
        _ => {}
    });
    found
}

pub enum Event<'e> {
    Read(Var),
    Write(Var),
    /// With list arguments that the callee may change.
    Call(ProcId, &'e [Expr]),
    Print,
}

type Visit<'v, 'e> = &'v mut dyn FnMut(Event<'e>);

pub fn walk_proc<'e>(proc: &'e Proc, visit: Visit<'_, 'e>) {
    match &proc.body {
        ProcBody::None => {}
        ProcBody::Function { inits, result } => {
            inits
                .iter()
                .for_each(|(_, value): &(LocalId, Expr)| walk_expr(value, visit));
            walk_expr(result, visit);
        }
        ProcBody::Procedure(stmts) => walk_stmts(stmts, visit),
    }
}

pub fn walk_stmts<'e>(stmts: &'e [Stmt], visit: Visit<'_, 'e>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign(place, value) => {
                place
                    .indices
                    .iter()
                    .for_each(|index| walk_expr(index, visit));
                walk_expr(value, visit);
                visit(Event::Write(place.var));
            }
            StmtKind::Call(id, args) => {
                args.iter().for_each(|arg| walk_expr(arg, visit));
                visit(Event::Call(*id, args));
            }
            StmtKind::Foreach { from, to, body, .. } => {
                walk_expr(from, visit);
                walk_expr(to, visit);
                walk_stmts(body, visit);
            }
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    walk_expr(cond, visit);
                    walk_stmts(body, visit);
                }
                walk_stmts(otherwise, visit);
            }
            StmtKind::While(cond, body) => {
                walk_expr(cond, visit);
                walk_stmts(body, visit);
            }
            StmtKind::Print { parts, .. } => {
                parts.iter().for_each(|part| walk_expr(part, visit));
                visit(Event::Print);
            }
        }
    }
}

pub fn walk_expr<'e>(expr: &'e Expr, visit: Visit<'_, 'e>) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Error => {}
        ExprKind::Load(Place { var, indices, .. }) => {
            indices.iter().for_each(|index| walk_expr(index, visit));
            visit(Event::Read(*var));
        }
        ExprKind::Unary(_, a) => walk_expr(a, visit),
        ExprKind::Binary(_, a, b) => {
            walk_expr(a, visit);
            walk_expr(b, visit);
        }
        ExprKind::If { arms, otherwise } => {
            for (cond, value) in arms {
                walk_expr(cond, visit);
                walk_expr(value, visit);
            }
            walk_expr(otherwise, visit);
        }
        ExprKind::Call(id, args) => {
            args.iter().for_each(|arg| walk_expr(arg, visit));
            visit(Event::Call(*id, args));
        }
        ExprKind::List { items, .. } => items.iter().for_each(|item| walk_expr(item, visit)),
    }
}
