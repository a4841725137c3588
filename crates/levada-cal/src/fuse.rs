// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fusion: small static actors that are connected become one, and the channels between them
//! variables. Five actors that do one operation on each element become one loop.
//!
//! Two actors `a` and `b` are merged where this changes nothing but speed:
//! * each has one action, without schedule; only `a` may have a guard;
//! * every channel from `a` to `b` has `b` as its only consumer and moves as many elements at a
//!   firing of `a` as at one of `b`, and none begins with elements;
//! * no other way leads from `a` to `b` (it would become a cycle without elements in it);
//! * what one does alone is not held up by the other: `b` is fed by `a` alone, or `a` feeds `b`
//!   alone;
//! * neither prints or calls native functions;
//! * the result is still small: a large one gains nothing, and two large actors are better off on
//!   two workers.
//!
//! The merged instance is called `a+b`, its action `a.x+b.y`.

use crate::emit::{consumed, is_light, produced};
use crate::ir::*;
use std::sync::Arc;

/// The network with its small static regions merged.
pub fn fuse(net: &Network) -> Network {
    let mut net = net.clone();
    while let Some((a, b, merged)) = find(&net) {
        net = replace(&net, a, b, merged);
    }
    net
}

/// Two instances that can be merged, and what they become.
fn find(net: &Network) -> Option<(usize, usize, Merged)> {
    let simple: Vec<bool> = net.instances.iter().map(|i| is_simple(&i.actor)).collect();
    net.channels.iter().find_map(|c| {
        let [to] = &c.to[..] else { return None };
        let (a, b) = (c.from.instance, to.instance);
        if a == b || !simple[a] || !simple[b] || !may_merge(net, a, b) {
            return None;
        }
        let merged = merge(net, a, b);
        is_light(&merged.actor.actions[0]).then_some((a, b, merged))
    })
}

fn is_simple(actor: &Actor) -> bool {
    actor.fsm.is_none()
        && actor.outside == [0]
        && actor.actions.len() == 1
        && is_light(&actor.actions[0])
        && !actor.actions[0].schedule_outputs
        && !actor.procs.iter().any(|p| p.effects || p.native)
        && !actor.initializers.iter().any(|i| !is_light(i))
}

fn may_merge(net: &Network, a: usize, b: usize) -> bool {
    let (first, second) = (&net.instances[a].actor, &net.instances[b].actor);
    let (x, y) = (&first.actions[0], &second.actions[0]);
    if !y.guard.conditions.is_empty() || !x.guard.body.stmts.is_empty() && x.inputs.is_empty() {
        return false;
    }
    let (mut others_out, mut reaches) = (false, false);
    for c in net.channels.iter().filter(|c| c.from.instance == a) {
        if c.to.iter().all(|t| t.instance == b) && c.to.len() == 1 {
            let rate = |list: Vec<(usize, u32)>, port: usize| {
                list.iter().find(|r| r.0 == port).map_or(0, |r| r.1)
            };
            let n = rate(produced(x), c.from.port);
            if n == 0 || n != rate(consumed(y), c.to[0].port) {
                return false;
            }
            let begins = first
                .initializers
                .iter()
                .any(|i| i.outputs.iter().any(|o| o.port == c.from.port));
            if begins {
                return false;
            }
        } else {
            others_out = true;
            reaches |= c.to.iter().any(|t| reach(net, t.instance, b, a));
        }
    }
    // Ports of `b` that something else feeds, or nothing.
    let fed_by_a = |port: usize| {
        net.channels
            .iter()
            .any(|c| c.from.instance == a && c.to.iter().any(|t| t.instance == b && t.port == port))
    };
    let others_in = (0..second.inputs.len()).any(|p| !fed_by_a(p));
    // A firing of both needs at once what each needs; a loop back may not provide that.
    let loops = reach(net, b, a, usize::MAX);
    !(reaches || (others_out && others_in) || loops)
}

/// Does a way lead from one instance to another, not through `not`?
fn reach(net: &Network, from: usize, to: usize, not: usize) -> bool {
    let mut seen = vec![false; net.instances.len()];
    let mut open = vec![from];
    while let Some(i) = open.pop() {
        if i == to {
            return true;
        }
        if i == not || std::mem::replace(&mut seen[i], true) {
            continue;
        }
        let next = net.channels.iter().filter(|c| c.from.instance == i);
        open.extend(next.flat_map(|c| c.to.iter().map(|t| t.instance)));
    }
    false
}

/// One actor made of two, and where their ports went.
struct Merged {
    actor: Actor,
    inputs: [Vec<Option<usize>>; 2],
    outputs: [Vec<Option<usize>>; 2],
}

/// How one actor's indices change in the merged one.
struct Moves {
    locals: Vec<usize>,
    globals: usize,
    procs: usize,
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn merge(net: &Network, a: usize, b: usize) -> Merged {
    let (ia, ib) = (&net.instances[a], &net.instances[b]);
    let (first, second) = (&*ia.actor, &*ib.actor);
    let (x, y) = (&first.actions[0], &second.actions[0]);
    // The port of `a` behind each input of `b` that disappears.
    let inner = |port: usize| {
        net.channels
            .iter()
            .find(|c| c.from.instance == a && c.to[0].instance == b && c.to[0].port == port)
            .map(|c| c.from.port)
    };
    let number = |keep: Vec<bool>, from: usize| -> Vec<Option<usize>> {
        let mut next = from;
        keep.iter()
            .map(|k| {
                k.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect()
    };
    let in_a = number(vec![true; first.inputs.len()], 0);
    let in_b = number(
        (0..second.inputs.len())
            .map(|p| inner(p).is_none())
            .collect(),
        first.inputs.len(),
    );
    let gone: Vec<usize> = (0..second.inputs.len()).filter_map(inner).collect();
    let out_a = number(
        (0..first.outputs.len())
            .map(|p| !gone.contains(&p))
            .collect(),
        0,
    );
    let kept = out_a.iter().flatten().count();
    let out_b = number(vec![true; second.outputs.len()], kept);

    // Locals: the variables of input patterns first.
    let bound = |action: &Action| action.inputs.iter().map(|i| i.vars.len()).sum::<usize>();
    let outer: Vec<usize> = y
        .inputs
        .iter()
        .filter(|i| in_b[i.port].is_some())
        .flat_map(|i| i.vars.clone())
        .collect();
    let na = bound(x);
    let rest_a = x.body.locals.len() - na;
    let locals_a: Vec<usize> = (0..x.body.locals.len())
        .map(|l| if l < na { l } else { l + outer.len() })
        .collect();
    let mut next = na + outer.len() + rest_a;
    let locals_b: Vec<usize> = (0..y.body.locals.len())
        .map(|l| match outer.iter().position(|o| *o == l) {
            Some(k) => na + k,
            None => {
                next += 1;
                next - 1
            }
        })
        .collect();
    let move_a = Moves {
        locals: locals_a,
        globals: 0,
        procs: 0,
    };
    let move_b = Moves {
        locals: locals_b,
        globals: first.globals.len(),
        procs: first.procs.len(),
    };

    let empty = || Local {
        name: String::new(),
        ty: Type::Bool,
        span: x.span,
    };
    let mut locals: Vec<Local> = (0..next).map(|_| empty()).collect();
    for (from, moves) in [(x, &move_a), (y, &move_b)] {
        for (l, local) in from.body.locals.iter().enumerate() {
            locals[moves.locals[l]] = local.clone();
        }
    }

    let mut stmts: Vec<Stmt> = x.body.stmts.iter().map(|s| move_a.stmt(s)).collect();
    for input in y.inputs.iter() {
        if let Some(port) = inner(input.port) {
            let output = x
                .outputs
                .iter()
                .find(|o| o.port == port)
                .expect("rates agree");
            hand_over(&mut stmts, output, input, first, &move_a, &move_b, &locals);
        }
    }
    stmts.extend(y.body.stmts.iter().map(|s| move_b.stmt(s)));

    let mut inputs: Vec<Input> = x.inputs.iter().map(|i| move_a.input(i, &in_a)).collect();
    inputs.extend(
        y.inputs
            .iter()
            .filter(|i| in_b[i.port].is_some())
            .map(|i| move_b.input(i, &in_b)),
    );
    let mut outputs: Vec<Output> = x
        .outputs
        .iter()
        .filter(|o| out_a[o.port].is_some())
        .map(|o| move_a.output(o, &out_a))
        .collect();
    outputs.extend(y.outputs.iter().map(|o| move_b.output(o, &out_b)));

    let in_guard = Moves {
        locals: (0..x.guard.body.locals.len())
            .map(|l| if l < na { l } else { l + outer.len() })
            .collect(),
        globals: 0,
        procs: 0,
    };
    let mut guard_locals: Vec<Local> = x.guard.body.locals.clone();
    let at = na.min(guard_locals.len());
    for (k, l) in outer.iter().enumerate() {
        guard_locals.insert(at + k, y.body.locals[*l].clone());
    }
    let action = Action {
        name: format!("{}+{}", qualified(&ia.name, x), qualified(&ib.name, y)),
        inputs,
        outputs,
        guard: Guard {
            body: Body {
                locals: guard_locals,
                stmts: x
                    .guard
                    .body
                    .stmts
                    .iter()
                    .map(|s| in_guard.stmt(s))
                    .collect(),
            },
            conditions: x
                .guard
                .conditions
                .iter()
                .map(|e| in_guard.expr(e))
                .collect(),
        },
        body: Body { locals, stmts },
        schedule_outputs: false,
        span: x.span,
    };

    let own = |i: &Instance, name: &str| format!("{}.{name}", short(&i.name));
    let mut globals = Vec::new();
    let mut procs = Vec::new();
    let mut initializers = Vec::new();
    let sides = [
        (ia, first, &move_a, &in_a, &out_a),
        (ib, second, &move_b, &in_b, &out_b),
    ];
    for (inst, actor, moves, ins, outs) in sides {
        for g in &actor.globals {
            let init = match &g.init {
                Init::Code(body) => Init::Code(moves.body_of_its_own(body)),
                other => other.clone(),
            };
            globals.push(Var {
                name: own(inst, &g.name),
                init,
                ..g.clone()
            });
        }
        for p in &actor.procs {
            let body = moves.body_of_its_own(&p.body);
            procs.push(Proc {
                name: own(inst, &p.name),
                body,
                ..p.clone()
            });
        }
        for i in &actor.initializers {
            let alone = Moves {
                locals: (0..i.body.locals.len()).collect(),
                ..*moves
            };
            let guard = Moves {
                locals: (0..i.guard.body.locals.len()).collect(),
                ..*moves
            };
            initializers.push(Action {
                name: qualified(&inst.name, i),
                inputs: i.inputs.iter().map(|p| alone.input(p, ins)).collect(),
                outputs: i.outputs.iter().map(|o| alone.output(o, outs)).collect(),
                guard: Guard {
                    body: guard.body(&i.guard.body),
                    conditions: i.guard.conditions.iter().map(|e| guard.expr(e)).collect(),
                },
                body: alone.body(&i.body),
                ..i.clone()
            });
        }
    }
    let ports = |of: &[Port], inst: &Instance, kept: &[Option<usize>]| -> Vec<Port> {
        of.iter()
            .zip(kept)
            .filter(|(_, k)| k.is_some())
            .map(|(p, _)| Port {
                name: own(inst, &p.name),
                ..p.clone()
            })
            .collect()
    };
    let both = |x: Vec<Port>, y: Vec<Port>| x.into_iter().chain(y).collect();
    let actor = Actor {
        name: format!("{}+{}", first.name, second.name),
        inputs: both(
            ports(&first.inputs, ia, &in_a),
            ports(&second.inputs, ib, &in_b),
        ),
        outputs: both(
            ports(&first.outputs, ia, &out_a),
            ports(&second.outputs, ib, &out_b),
        ),
        globals,
        procs,
        actions: vec![action],
        initializers,
        outside: vec![0],
        fsm: None,
        span: first.span,
    };
    Merged {
        actor,
        inputs: [in_a, in_b],
        outputs: [out_a, out_b],
    }
}

/// `a.x`; an action that is a merged one's has its actors' names already.
fn qualified(instance: &str, action: &Action) -> String {
    if instance.contains('+') {
        action.name.clone()
    } else {
        format!("{}.{}", short(instance), action.name)
    }
}

/// The elements that `output` would have put, given to the variables of `input`.
fn hand_over(
    stmts: &mut Vec<Stmt>,
    output: &Output,
    input: &Input,
    first: &Actor,
    move_a: &Moves,
    move_b: &Moves,
    locals: &[Local],
) {
    let ty = &first.outputs[output.port].ty;
    let span = output.span;
    let number = |v: u32| Expr {
        kind: ExprKind::Const(Value::Int(i64::from(v))),
        ty: Type::Int {
            bits: 32,
            signed: true,
        },
        span,
    };
    for t in 0..output.count() {
        let (i, j) = (
            t / output.values.len() as u32,
            t as usize % output.values.len(),
        );
        let value = match &output.values[j] {
            OutputValue::Scalar(e) => move_a.expr(e),
            OutputValue::List(v) => {
                let var = move_a.var(*v);
                let list = match var {
                    VarRef::Local(l) => &locals[l].ty,
                    VarRef::Global(g) => &first.globals[g].ty,
                };
                let elem = crate::ranges::innermost(list).clone();
                let place = Place {
                    var,
                    indices: vec![number(i)],
                    ty: elem.clone(),
                    span,
                };
                Expr {
                    kind: ExprKind::Load(place),
                    ty: elem,
                    span,
                }
            }
        };
        let cast = Expr {
            kind: ExprKind::Cast(Box::new(value)),
            ty: ty.clone(),
            span,
        };
        let (i, j) = (t / input.vars.len() as u32, t as usize % input.vars.len());
        let l = move_b.locals[input.vars[j]];
        let (indices, ty) = match &locals[l].ty {
            Type::List { elem, .. } => (vec![number(i)], (**elem).clone()),
            ty => (Vec::new(), ty.clone()),
        };
        let place = Place {
            var: VarRef::Local(l),
            indices,
            ty,
            span,
        };
        stmts.push(Stmt {
            kind: StmtKind::Assign(place, cast),
            span,
        });
    }
}

impl Moves {
    fn var(&self, v: VarRef) -> VarRef {
        match v {
            VarRef::Local(l) => VarRef::Local(self.locals[l]),
            VarRef::Global(g) => VarRef::Global(g + self.globals),
        }
    }

    fn place(&self, p: &Place) -> Place {
        Place {
            var: self.var(p.var),
            indices: p.indices.iter().map(|i| self.expr(i)).collect(),
            ..p.clone()
        }
    }

    fn args(&self, args: &[Arg]) -> Vec<Arg> {
        args.iter()
            .map(|a| match a {
                Arg::Value(e) => Arg::Value(self.expr(e)),
                Arg::List(p) => Arg::List(self.place(p)),
            })
            .collect()
    }

    fn expr(&self, e: &Expr) -> Expr {
        let boxed = |e: &Expr| Box::new(self.expr(e));
        let kind = match &e.kind {
            ExprKind::Const(v) => ExprKind::Const(v.clone()),
            ExprKind::Load(p) => ExprKind::Load(self.place(p)),
            ExprKind::Unary(op, x) => ExprKind::Unary(*op, boxed(x)),
            ExprKind::Binary(op, x, y) => ExprKind::Binary(*op, boxed(x), boxed(y)),
            ExprKind::If(c, x, y) => ExprKind::If(boxed(c), boxed(x), boxed(y)),
            ExprKind::Call(p, args) => ExprKind::Call(p + self.procs, self.args(args)),
            ExprKind::Cast(x) => ExprKind::Cast(boxed(x)),
        };
        Expr { kind, ..e.clone() }
    }

    fn stmts(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&self, s: &Stmt) -> Stmt {
        let kind = match &s.kind {
            StmtKind::Assign(p, e) => StmtKind::Assign(self.place(p), self.expr(e)),
            StmtKind::Copy { to, from } => StmtKind::Copy {
                to: self.place(to),
                from: self.place(from),
            },
            StmtKind::Call(p, args) => StmtKind::Call(p + self.procs, self.args(args)),
            StmtKind::If(c, yes, no) => StmtKind::If(self.expr(c), self.stmts(yes), self.stmts(no)),
            StmtKind::While(c, body) => StmtKind::While(self.expr(c), self.stmts(body)),
            StmtKind::For {
                var,
                from,
                to,
                body,
            } => StmtKind::For {
                var: self.locals[*var],
                from: self.expr(from),
                to: self.expr(to),
                body: self.stmts(body),
            },
            StmtKind::Return(e) => StmtKind::Return(self.expr(e)),
            StmtKind::Print { parts, newline } => StmtKind::Print {
                parts: parts.iter().map(|e| self.expr(e)).collect(),
                newline: *newline,
            },
        };
        Stmt { kind, span: s.span }
    }

    /// A body whose locals keep their numbers.
    fn body(&self, b: &Body) -> Body {
        Body {
            locals: b.locals.clone(),
            stmts: self.stmts(&b.stmts),
        }
    }

    fn body_of_its_own(&self, b: &Body) -> Body {
        Moves {
            locals: (0..b.locals.len()).collect(),
            ..*self
        }
        .body(b)
    }

    fn input(&self, i: &Input, ports: &[Option<usize>]) -> Input {
        Input {
            port: ports[i.port].expect("a port that stays"),
            vars: i.vars.iter().map(|v| self.locals[*v]).collect(),
            ..i.clone()
        }
    }

    fn output(&self, o: &Output, ports: &[Option<usize>]) -> Output {
        let values = o
            .values
            .iter()
            .map(|v| match v {
                OutputValue::Scalar(e) => OutputValue::Scalar(self.expr(e)),
                OutputValue::List(v) => OutputValue::List(self.var(*v)),
            })
            .collect();
        Output {
            port: ports[o.port].expect("a port that stays"),
            values,
            ..o.clone()
        }
    }
}

/// The network with the merged actor in the place of `a`, and without `b`.
fn replace(net: &Network, a: usize, b: usize, merged: Merged) -> Network {
    let new = |i: usize| {
        if i == b {
            a - usize::from(a > b)
        } else {
            i - usize::from(i > b)
        }
    };
    let end = |e: Endpoint, ports: &[Vec<Option<usize>>; 2]| {
        let port = match e.instance {
            i if i == a => ports[0][e.port],
            i if i == b => ports[1][e.port],
            _ => Some(e.port),
        };
        port.map(|port| Endpoint {
            instance: new(e.instance),
            port,
        })
    };
    let mut instances = net.instances.clone();
    instances[a] = Instance {
        name: format!("{}+{}", net.instances[a].name, net.instances[b].name),
        actor: Arc::new(merged.actor),
        priority: net.instances[a].priority.max(net.instances[b].priority),
    };
    instances.remove(b);
    let channels = net
        .channels
        .iter()
        .filter_map(|c| {
            let from = end(c.from, &merged.outputs)?;
            let to =
                c.to.iter()
                    .filter_map(|t| end(*t, &merged.inputs))
                    .collect();
            Some(Channel {
                from,
                to,
                capacity: c.capacity,
            })
        })
        .collect();
    Network {
        instances,
        channels,
        ..net.clone()
    }
}
