// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The emitter with hand-made networks: the C code compiles without a warning.

use levada_cal::emit::{Options, emit};
use levada_cal::ir::*;
use std::process::Command;
use std::sync::Arc;

const SPAN: Span = Span {
    file: 0,
    start: 0,
    end: 1,
};

fn int(bits: u8, signed: bool) -> Type {
    Type::Int { bits, signed }
}

fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr {
        kind,
        ty,
        span: SPAN,
    }
}

fn num(v: i64) -> Expr {
    expr(ExprKind::Const(Value::Int(v)), int(32, true))
}

fn place(var: VarRef, ty: Type) -> Place {
    Place {
        var,
        indices: Vec::new(),
        ty,
        span: SPAN,
    }
}

fn load(var: VarRef, ty: Type) -> Expr {
    expr(ExprKind::Load(place(var, ty.clone())), ty)
}

fn binary(op: BinOp, a: Expr, b: Expr, ty: Type) -> Expr {
    expr(ExprKind::Binary(op, Box::new(a), Box::new(b)), ty)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: SPAN }
}

fn local(name: &str, ty: Type) -> Local {
    Local {
        name: name.into(),
        ty,
        span: SPAN,
    }
}

fn port(name: &str, ty: Type) -> Port {
    Port {
        name: name.into(),
        ty,
        span: SPAN,
    }
}

fn actor(name: &str) -> Actor {
    Actor {
        name: name.into(),
        inputs: vec![],
        outputs: vec![],
        globals: vec![],
        procs: vec![],
        actions: vec![],
        initializers: vec![],
        outside: vec![0],
        fsm: None,
        native: None,
        span: SPAN,
    }
}

fn action(name: &str) -> Action {
    Action {
        name: name.into(),
        inputs: vec![],
        outputs: vec![],
        guard: Guard::default(),
        body: Body::default(),
        schedule_outputs: false,
        span: SPAN,
    }
}

fn u32t() -> Type {
    int(32, false)
}

/// `action ==> Y:[n] guard n < limit do n := n + 1; end`
fn source(limit: i64) -> Actor {
    let n = VarRef::Global(0);
    let mut a = action("emit");
    a.guard
        .conditions
        .push(binary(BinOp::Lt, load(n, u32t()), num(limit), Type::Bool));
    a.body.stmts.push(stmt(StmtKind::Assign(
        place(n, u32t()),
        binary(BinOp::Add, load(n, u32t()), num(1), int(33, true)),
    )));
    a.outputs.push(Output {
        port: 0,
        values: vec![OutputValue::Scalar(load(n, u32t()))],
        repeat: 1,
        span: SPAN,
    });
    Actor {
        outputs: vec![port("Y", u32t())],
        globals: vec![Var {
            name: "n".into(),
            ty: u32t(),
            init: Init::Zero,
            constant: false,
            span: SPAN,
        }],
        actions: vec![a],
        ..actor("Source")
    }
}

/// `action X:[x] ==> Y:[x + 3]`
fn add() -> Actor {
    let x = VarRef::Local(0);
    let mut a = action("add");
    a.inputs.push(Input {
        port: 0,
        vars: vec![0],
        repeat: 1,
        is_list: false,
        span: SPAN,
    });
    a.body.locals.push(local("x", u32t()));
    a.guard.body.locals.push(local("x", u32t()));
    a.outputs.push(Output {
        port: 0,
        values: vec![OutputValue::Scalar(binary(
            BinOp::Add,
            load(x, u32t()),
            num(3),
            int(33, true),
        ))],
        repeat: 1,
        span: SPAN,
    });
    Actor {
        inputs: vec![port("X", u32t())],
        outputs: vec![port("Y", u32t())],
        actions: vec![a],
        ..actor("Add")
    }
}

/// `action X:[x] ==> do s := s ^ x; end`
fn sink() -> Actor {
    let (s, x) = (VarRef::Global(0), VarRef::Local(0));
    let mut a = action("take");
    a.inputs.push(Input {
        port: 0,
        vars: vec![0],
        repeat: 1,
        is_list: false,
        span: SPAN,
    });
    a.body.locals.push(local("x", u32t()));
    a.body.stmts.push(stmt(StmtKind::Assign(
        place(s, u32t()),
        binary(BinOp::BitXor, load(s, u32t()), load(x, u32t()), u32t()),
    )));
    Actor {
        inputs: vec![port("X", u32t())],
        globals: vec![Var {
            name: "s".into(),
            ty: u32t(),
            init: Init::Zero,
            constant: false,
            span: SPAN,
        }],
        actions: vec![a],
        ..actor("Sink")
    }
}

fn chain() -> Network {
    let add = Arc::new(add());
    let actors = [
        Arc::new(source(1000)),
        add.clone(),
        add.clone(),
        add,
        Arc::new(sink()),
    ];
    Network {
        name: "Chain".into(),
        files: vec![SourceFile {
            path: "Chain.cal".into(),
            text: "actor\n".into(),
        }],
        instances: actors
            .into_iter()
            .enumerate()
            .map(|(i, actor)| Instance {
                name: format!("a{i}"),
                actor,
                priority: 0,
            })
            .collect(),
        channels: (0..4)
            .map(|i| Channel {
                from: Endpoint {
                    instance: i,
                    port: 0,
                },
                to: vec![Endpoint {
                    instance: i + 1,
                    port: 0,
                }],
                capacity: None,
            })
            .collect(),
    }
}

/// What gcc has to say about a C text under the strictest eye that generated code should stand.
fn complaints(text: &str, path: &std::path::Path) -> Option<String> {
    std::fs::write(path, text).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/include");
    let gcc = Command::new("gcc")
        .args([
            "-std=c17",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_GNU_SOURCE",
        ])
        // Unused results are the programmer's responsibility.
        .args([
            "-Wno-unused",
            "-Wno-type-limits",
            "-Wno-sign-compare",
            "-Wno-tautological-compare",
        ])
        .args(["-c", "-o", "/dev/null", "-I", include])
        .arg(path)
        .output()
        .unwrap();
    (!gcc.status.success()).then(|| String::from_utf8_lossy(&gcc.stderr).into_owned())
}

/// Every feature of the language that the front has a test file for.
#[test]
fn all_features_compile_without_warnings() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cal/good");
    let folder = std::env::temp_dir().join(format!("levada-features-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut ws = levada_cal::workspace::Workspace::new(vec![root.clone()]);
    let mut diags = levada_cal::diag::Diagnostics::new();
    let mut wrong = String::new();
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for path in files {
        let class = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_none_or(|e| e != "cal") {
            continue;
        }
        // Units, and actors with parameters that have no defaults, are not for this test.
        let Some(actor) = ws.instantiate(class, &[], SPAN, &mut diags) else {
            continue;
        };
        let net = Network {
            name: class.into(),
            files: ws.sources.files().to_vec(),
            instances: vec![Instance {
                name: "it".into(),
                actor,
                priority: 0,
            }],
            channels: vec![],
        };
        for checks in [true, false] {
            let out = emit(
                &net,
                &Options {
                    checks,
                    ..Options::default()
                },
            );
            let c = folder.join(format!("{class}.c"));
            if let Some(text) = complaints(&out.files[0].text, &c) {
                wrong += &format!("== {class}, checks {checks}\n{text}\n");
            }
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 20, "only {count} files");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_chain_compiles_without_warnings() {
    for split in [0, usize::MAX] {
        let out = emit(
            &chain(),
            &Options {
                split,
                ..Options::default()
            },
        );
        let dir =
            std::env::temp_dir().join(format!("levada-emit-{}-{}", std::process::id(), split & 1));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(out.files.len(), if split == 0 { 4 } else { 1 });
        for f in &out.files {
            let path = dir.join(&f.name);
            std::fs::write(&path, &f.text).unwrap();
            let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/include");
            let gcc = Command::new("gcc")
                .args([
                    "-std=c17",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-fsyntax-only",
                    "-I",
                    include,
                ])
                .arg(&path)
                .output()
                .unwrap();
            assert!(
                gcc.status.success(),
                "{}",
                String::from_utf8_lossy(&gcc.stderr)
            );
        }
        if std::env::var_os("LEVADA_KEEP").is_none() {
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}

/// What a loop of firings writes is asked for slice by slice, the four lines of 64 elements at a
/// time; the sink's writes nothing, and goes in one piece.
#[test]
fn loops_ask_for_the_lines_that_they_will_write() {
    let text = emit(&chain(), &Options::default()).files.remove(0).text;
    let loops: Vec<&str> = text.split("_many(lvd_actor").skip(1).collect();
    assert!(loops.len() >= 2);
    for one in loops {
        let (head, rest) = one.split_once('\n').unwrap();
        let body = rest.split_once("\n}").unwrap().0;
        let asks = body.contains("levada_ahead(out_") && body.contains("64 * sizeof");
        assert_eq!(asks, head.contains("out_"), "{one}");
    }
}
