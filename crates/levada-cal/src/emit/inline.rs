// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects small procedures to inline into the actions that call them. The C compiler would inline most of them
//! itself; but only a procedure that is known to be inlined may use the actor's registers, so that variables which
//! only actions and such procedures use need not live in memory.

use crate::ir::visit::{any_stmt, calls, exprs_of};
use crate::ir::*;

/// Maximum number of statements and expressions of a small procedure.
const INLINED_NODES_MAX: usize = 60;

/// For each procedure, whether it is inlined into the actions that call it.
pub fn inlined(actor: &Actor) -> Vec<bool> {
    let mut inlined: Vec<bool> = actor.procs.iter().map(small).collect();
    // Initial values are computed before there are registers.
    for g in &actor.globals {
        if let Init::Code(body) = &g.init {
            calls(body, &mut |p| inlined[p] = false);
        }
    }
    // A procedure that is not inlined cannot pass registers on, and one that calls inlined ones is not small. So no
    // inlined procedure is recursive.
    loop {
        let before = inlined.clone();
        for (i, p) in actor.procs.iter().enumerate() {
            calls(&p.body, &mut |q| {
                if actor.procs[q].native {
                } else if before[i] {
                    inlined[i] = false;
                } else {
                    inlined[q] = false;
                }
            });
        }
        if inlined == before {
            return inlined;
        }
    }
}

fn small(p: &Proc) -> bool {
    let mut size = 0;
    let long = any_stmt(&p.body.stmts, &mut |s| {
        size += 1;
        exprs_of(s, &mut |_| size += 1);
        matches!(
            s.kind,
            StmtKind::While(..) | StmtKind::For { .. } | StmtKind::Print { .. }
        )
    });
    !p.native && !long && size <= INLINED_NODES_MAX
}
