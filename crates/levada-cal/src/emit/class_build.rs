// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds a [`Class`]: assigns names and homes of variables, and runs the passes that select inlined procedures,
//! registers, firing sequences and table walks.

use super::class::{Class, Home, prints};
use super::inline::inlined;
use super::large_locals::large_locals;
use super::writer::Names;
use super::{Options, register_promotion};
use crate::ir::visit::mentions;
use crate::ir::*;
use crate::ranges::Ranges;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

impl<'a> Class<'a> {
    pub fn new(actor: &'a Actor, prefix: String, options: &Options) -> Class<'a> {
        let mut members = Names::default();
        let mut globals = Names::default();
        // Names that every class uses; an actor's own names must differ.
        for own in [
            "run",
            "init",
            "end",
            "state",
            "registers",
            "class",
            "inputs",
            "outputs",
            "actions",
            "variables",
            "states",
            "memory",
            "texts",
        ] {
            globals.fresh(own);
        }
        let inlined = inlined(actor);
        let used = used_by_procs(actor, &inlined);
        let list = |g: &Var| matches!(g.ty, Type::List { .. });
        let may: Vec<bool> = (actor.globals.iter().zip(&used))
            .map(|(g, used)| !g.constant && !list(g) && !used)
            .collect();
        let mut registers = register_promotion::registers(actor, &inlined, &may);
        // While such an actor waits for input, all its variables must be in the state, since a new version may
        // replace it there.
        if actor.inputs.is_empty() && actor.procs.iter().any(|p| p.native) {
            registers.fill(false);
        }
        let homes = actor
            .globals
            .iter()
            .enumerate()
            .map(|(i, g)| {
                let list = list(g);
                match &g.init {
                    Init::Value(v) if g.constant && !list => Home::Literal(v.clone()),
                    Init::Zero if g.constant && !list => Home::Literal(zero(&g.ty)),
                    Init::Value(_) | Init::Zero if g.constant => {
                        Home::Table(format!("{prefix}_{}", globals.fresh(&g.name)))
                    }
                    _ if registers[i] => Home::Register(members.fresh(&g.name)),
                    _ => Home::State(members.fresh(&g.name)),
                }
            })
            .collect();
        let mut name = |n: &str| format!("{prefix}_{}", globals.fresh(n));
        let procs = actor.procs.iter().map(|p| name(&p.name)).collect();
        let all = actor.actions.iter().chain(&actor.initializers);
        let actions = all.map(|a| name(&a.name)).collect();
        let mut ports = Names::default();
        let inputs = actor
            .inputs
            .iter()
            .map(|p| format!("in_{}", ports.fresh(&p.name)))
            .collect();
        let mut ports = Names::default();
        let outputs = actor
            .outputs
            .iter()
            .map(|p| format!("out_{}", ports.fresh(&p.name)))
            .collect();
        let mut class = Class {
            actor,
            checks: options.checks,
            lenient: options.lenient,
            homes,
            procs,
            actions,
            inputs,
            outputs,
            ranges: Rc::new(Ranges::new(actor, options.checks, options.lenient)),
            inlined,
            sequences: Rc::default(),
            walks: Rc::default(),
            written: written_params(actor),
            large_locals: Rc::new(large_locals(actor, &mut members)),
            temporaries: Rc::default(),
            checked: Rc::default(),
            prints: prints(actor),
            whole_scan: Rc::default(),
            own_loops: Rc::default(),
            prefix,
        };
        class.sequences = Rc::new(class.plan_sequences());
        class.walks = Rc::new(class.plan_walks());
        class
    }
}

fn zero(ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(false),
        Type::Float { .. } => Value::Float(0.0),
        Type::String => Value::String(String::new()),
        _ => Value::Int(0),
    }
}

/// The variables that procedures use which stay functions.
fn used_by_procs(actor: &Actor, inlined: &[bool]) -> Vec<bool> {
    let mut used = vec![false; actor.globals.len()];
    for (p, _) in actor.procs.iter().zip(inlined).filter(|(_, i)| !**i) {
        mentions(&p.body.stmts, &|_, _| false, &mut |v, _| {
            if let VarRef::Global(g) = v {
                used[g] = true;
            }
        });
    }
    used
}

fn written_params(actor: &Actor) -> Vec<Vec<bool>> {
    let mut written: Vec<Vec<bool>> = actor
        .procs
        .iter()
        .map(|p| vec![p.native; p.body.locals.len()])
        .collect();
    // The lists that each procedure writes itself, and those that it passes on, by the parameter to which it passes
    // them.
    let mut open = Vec::new();
    let mut given: HashMap<(usize, usize), Vec<(usize, usize)>> = HashMap::new();
    for (p, proc) in actor.procs.iter().enumerate() {
        let to = Cell::new(None);
        let hands_on = |q: usize, i: usize| {
            to.set(Some((q, i)));
            false
        };
        mentions(&proc.body.stmts, &hands_on, &mut |v, writes| {
            let to = to.take();
            let VarRef::Local(l) = v else { return };
            match to {
                Some((q, i)) if written[q][i] => open.push((p, l)),
                Some(to) => given.entry(to).or_default().push((p, l)),
                None if writes => open.push((p, l)),
                None => {}
            }
        });
    }
    while let Some((p, l)) = open.pop() {
        if !std::mem::replace(&mut written[p][l], true) {
            open.extend(given.get(&(p, l)).into_iter().flatten());
        }
    }
    written
}
