// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the syntax tree ([`super`]) from the lossless tree.

use super::*;
use crate::diag::Diagnostic;
use crate::ir;
use crate::lex::SyntaxKind as K;
use crate::syntax::{SyntaxNode, SyntaxToken};

/// Builds the syntax tree of source file number `file`. `diags` has the syntax errors; errors in single tokens (a
/// number that is too large, escapes in a string) are added.
pub fn build(file: u32, root: &SyntaxNode, diags: &mut Vec<Diagnostic>) -> File {
    let broken = !diags.is_empty();
    let mut builder = Builder { file, diags };
    let read = builder.file(root);
    File {
        broken,
        flawed: !diags.is_empty(),
        ..read
    }
}

struct Builder<'d> {
    file: u32,
    diags: &'d mut Vec<Diagnostic>,
}

fn child(node: &SyntaxNode, kind: K) -> Option<SyntaxNode> {
    node.children().find(|c| c.kind() == kind)
}

fn all(node: &SyntaxNode, kind: K) -> impl Iterator<Item = SyntaxNode> {
    node.children().filter(move |c| c.kind() == kind)
}

fn is_expr(node: &SyntaxNode) -> bool {
    matches!(
        node.kind(),
        K::Literal
            | K::NameExpr
            | K::IndexExpr
            | K::CallExpr
            | K::UnaryExpr
            | K::BinaryExpr
            | K::IfExpr
            | K::ListExpr
            | K::ParenExpr
    )
}

/// The direct tokens of `node`, without spaces and comments.
fn tokens(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> {
    node.children_with_tokens()
        .filter_map(|e| e.into_token())
        .filter(|t| !t.kind().is_trivia())
}

impl Builder<'_> {
    fn range(&self, range: rowan::TextRange) -> Span {
        Span {
            file: self.file,
            start: range.start().into(),
            end: range.end().into(),
        }
    }

    fn span(&self, node: &SyntaxNode) -> Span {
        self.range(node.text_range())
    }

    /// The direct names, dots and stars of `node`, as written.
    fn ident(&self, node: &SyntaxNode) -> Ident {
        let mut text = String::new();
        for token in tokens(node).filter(|t| t.kind() != K::Caret) {
            text.push_str(token.text());
        }
        Ident {
            text,
            span: self.span(node),
        }
    }

    fn name(&self, node: &SyntaxNode) -> Ident {
        child(node, K::Name).map_or_else(|| self.no_name(node), |n| self.ident(&n))
    }

    fn path(&self, node: &SyntaxNode) -> Path {
        child(node, K::Path).map_or_else(|| self.no_name(node), |n| self.ident(&n))
    }

    fn no_name(&self, node: &SyntaxNode) -> Ident {
        Ident {
            text: String::new(),
            span: self.span(node),
        }
    }

    fn file(&mut self, root: &SyntaxNode) -> File {
        let package = child(root, K::Package).map(|n| self.path(&n));
        let imports = all(root, K::Import).map(|n| self.import(&n)).collect();
        let entity = root
            .children()
            .find(|c| matches!(c.kind(), K::Actor | K::Unit))
            .map(|n| self.entity(&n, root));
        let mut qualified: Vec<String> = root
            .descendants()
            .filter(|n| {
                n.kind() == K::Path
                    && n.children_with_tokens().any(|e| e.kind() == K::Dot)
                    && n.parent().is_some_and(|p| {
                        is_expr(&p) || matches!(p.kind(), K::CallStmt | K::AssignStmt)
                    })
            })
            .map(|n| self.ident(&n).text)
            .collect();
        qualified.sort_unstable();
        qualified.dedup();
        File {
            package,
            imports,
            qualified,
            entity,
            broken: false,
            flawed: false,
        }
    }

    fn import(&self, node: &SyntaxNode) -> Import {
        let mut path = self.path(node);
        let all = path.text.ends_with(".*");
        if all {
            path.text.truncate(path.text.len() - 2);
        }
        Import {
            path,
            all,
            span: self.span(node),
        }
    }

    fn annotations(&self, node: &SyntaxNode) -> Vec<Annotation> {
        all(node, K::Annotation)
            .map(|n| {
                let token = tokens(&n).find(|t| t.kind() == K::Ident);
                let name = token.map_or_else(
                    || self.no_name(&n),
                    |t| Ident {
                        text: t.text().into(),
                        span: self.range(t.text_range()),
                    },
                );
                Annotation { name }
            })
            .collect()
    }

    fn entity(&mut self, node: &SyntaxNode, root: &SyntaxNode) -> Entity {
        let is_actor = node.kind() == K::Actor;
        let mut annotations = self.annotations(root);
        annotations.extend(self.annotations(node));
        let ports: Vec<SyntaxNode> = all(node, K::Ports).collect();
        let mut entity = Entity {
            is_actor,
            name: self.name(node),
            annotations,
            params: self.params(node),
            inputs: ports.first().map_or(Vec::new(), |n| self.ports(n)),
            outputs: ports.get(1).map_or(Vec::new(), |n| self.ports(n)),
            vars: Vec::new(),
            functions: Vec::new(),
            procedures: Vec::new(),
            actions: Vec::new(),
            initializers: Vec::new(),
            schedules: Vec::new(),
            local_fsms: Vec::new(),
            priorities: Vec::new(),
            span: self.span(node),
        };
        for member in node.children() {
            match member.kind() {
                K::StateVar => {
                    if let Some(decl) = child(&member, K::VarDecl) {
                        entity.vars.push(self.var_decl(&decl));
                    }
                }
                K::Function => entity.functions.push(self.function(&member)),
                K::Procedure => entity.procedures.push(self.procedure(&member)),
                K::Action => entity.actions.push(self.action(&member)),
                K::Initialize => entity.initializers.push(self.action(&member)),
                K::Schedule => entity.schedules.extend(self.schedule(&member)),
                K::LocalFsm => entity.local_fsms.push(self.fsm(&member)),
                K::Priority => {
                    for inequality in all(&member, K::Inequality) {
                        let tags = all(&inequality, K::Path).map(|n| self.ident(&n));
                        entity
                            .priorities
                            .push(tags.filter(|t| !t.text.is_empty()).collect());
                    }
                }
                _ => {}
            }
        }
        entity
    }

    fn params(&mut self, node: &SyntaxNode) -> Vec<VarDecl> {
        child(node, K::Params).map_or(Vec::new(), |n| self.var_decls(&n))
    }

    fn var_decls(&mut self, node: &SyntaxNode) -> Vec<VarDecl> {
        all(node, K::VarDecl).map(|n| self.var_decl(&n)).collect()
    }

    fn ports(&mut self, node: &SyntaxNode) -> Vec<Port> {
        all(node, K::Port)
            .map(|n| Port {
                ty: self.type_of(&n),
                name: self.name(&n),
            })
            .collect()
    }

    fn type_of(&mut self, node: &SyntaxNode) -> Type {
        match child(node, K::Type) {
            Some(n) => self.type_(&n),
            None => Type {
                kind: TypeKind::Error,
                span: self.span(node),
            },
        }
    }

    fn type_(&mut self, node: &SyntaxNode) -> Type {
        let word = tokens(node).next().map(|t| t.kind());
        let kind = match word {
            Some(K::KwBool) => TypeKind::Bool,
            Some(K::KwInt | K::KwUint) => TypeKind::Int {
                signed: word == Some(K::KwInt),
                size: self.exprs(node).into_iter().next().map(Box::new),
            },
            Some(K::KwHalf) => TypeKind::Float { bits: 16 },
            Some(K::KwFloat) => TypeKind::Float { bits: 32 },
            Some(K::KwDouble) => TypeKind::Float { bits: 64 },
            Some(K::KwString) => TypeKind::String,
            Some(K::KwList) => TypeKind::List {
                elem: Box::new(self.type_of(node)),
                size: Box::new(self.expr_of(node)),
            },
            _ => TypeKind::Error,
        };
        Type {
            kind,
            span: self.span(node),
        }
    }

    fn var_decl(&mut self, node: &SyntaxNode) -> VarDecl {
        VarDecl {
            ty: self.type_of(node),
            name: self.name(node),
            dims: self.indices(node),
            init: child(node, K::Init).map(|n| Init {
                constant: tokens(&n).next().is_some_and(|t| t.kind() == K::Eq),
                value: self.expr_of(&n),
            }),
            span: self.span(node),
        }
    }

    fn indices(&mut self, node: &SyntaxNode) -> Vec<Expr> {
        all(node, K::Dim).map(|n| self.expr_of(&n)).collect()
    }

    fn is_native(&self, node: &SyntaxNode) -> bool {
        has_annotation(&self.annotations(node), "native")
    }

    fn locals(&mut self, node: &SyntaxNode) -> Vec<VarDecl> {
        child(node, K::Locals).map_or(Vec::new(), |n| self.var_decls(&n))
    }

    fn function(&mut self, node: &SyntaxNode) -> Function {
        Function {
            native: self.is_native(node),
            name: self.name(node),
            params: self.params(node),
            result: self.type_of(node),
            locals: self.locals(node),
            body: tokens(node)
                .any(|t| t.kind() == K::Colon)
                .then(|| self.expr_of(node)),
            span: self.span(node),
        }
    }

    fn procedure(&mut self, node: &SyntaxNode) -> Procedure {
        Procedure {
            native: self.is_native(node),
            name: self.name(node),
            params: self.params(node),
            locals: self.locals(node),
            body: child(node, K::Block).map(|n| self.block(&n)),
            span: self.span(node),
        }
    }

    fn action(&mut self, node: &SyntaxNode) -> Action {
        let tag = child(node, K::Tag)
            .map(|n| self.path(&n))
            .filter(|t| !t.text.is_empty());
        let word = tokens(node)
            .next()
            .map_or(self.span(node), |t| self.range(t.text_range()));
        let head = tag.as_ref().map_or(word, |t| t.span);
        Action {
            annotations: self.annotations(node),
            tag,
            inputs: all(node, K::InputPattern).map(|n| self.input(&n)).collect(),
            outputs: all(node, K::OutputPattern)
                .map(|n| self.output(&n))
                .collect(),
            guards: all(node, K::Guard).flat_map(|n| self.exprs(&n)).collect(),
            locals: self.locals(node),
            body: child(node, K::Block).map_or(Vec::new(), |n| self.block(&n)),
            span: self.span(node),
            head,
        }
    }

    fn repeat(&mut self, node: &SyntaxNode) -> Option<Expr> {
        child(node, K::Repeat).map(|n| self.expr_of(&n))
    }

    fn input(&mut self, node: &SyntaxNode) -> InputPattern {
        let mut names = all(node, K::Name)
            .map(|n| self.ident(&n))
            .collect::<Vec<_>>();
        let port = if names.is_empty() {
            self.no_name(node)
        } else {
            names.remove(0)
        };
        InputPattern {
            port,
            vars: names,
            repeat: self.repeat(node),
            span: self.span(node),
        }
    }

    fn output(&mut self, node: &SyntaxNode) -> OutputPattern {
        OutputPattern {
            port: self.name(node),
            values: self.exprs(node),
            repeat: self.repeat(node),
            span: self.span(node),
        }
    }

    // Schedules.

    fn schedule(&mut self, node: &SyntaxNode) -> Option<Schedule> {
        if !tokens(node).any(|t| t.text() == "regexp") {
            return Some(Schedule::Fsm(self.fsm(node)));
        }
        let exp = node.children().find_map(|n| self.regexp(&n))?;
        Some(Schedule::RegExp {
            exp,
            span: self.span(node),
        })
    }

    fn fsm(&mut self, node: &SyntaxNode) -> Fsm {
        Fsm {
            name: self.name(node),
            transitions: all(node, K::Transition)
                .filter_map(|n| self.transition(&n))
                .collect(),
            span: self.span(node),
        }
    }

    fn transition(&mut self, node: &SyntaxNode) -> Option<Transition> {
        let names: Vec<Ident> = tokens(node)
            .filter(|t| t.kind() == K::Ident || t.kind().is_keyword())
            .map(|t| Ident {
                text: t.text().into(),
                span: self.range(t.text_range()),
            })
            .collect();
        let to = match child(node, K::ExternalTarget) {
            Some(n) => Target::Local {
                span: self.span(&n),
            },
            None => Target::State(names.get(1)?.clone()),
        };
        Some(Transition {
            from: names.first()?.clone(),
            tag: self.path(node),
            to,
            span: self.span(node),
        })
    }

    fn regexp(&mut self, node: &SyntaxNode) -> Option<RegExp> {
        let below = |me: &mut Self| {
            node.children()
                .filter_map(|n| me.regexp(&n))
                .collect::<Vec<_>>()
        };
        Some(match node.kind() {
            K::RegExp => RegExp::Tag(self.path(node)),
            K::RegExpOr => RegExp::Or(below(self)),
            K::RegExpSeq => RegExp::Seq(below(self)),
            K::RegExpPost => {
                let inner = Box::new(below(self).into_iter().next()?);
                let star = tokens(node).any(|t| t.kind() == K::Star);
                if star {
                    RegExp::Star(inner)
                } else {
                    RegExp::Optional(inner)
                }
            }
            _ => return None,
        })
    }

    // Statements.

    fn block(&mut self, node: &SyntaxNode) -> Vec<Stmt> {
        node.children().filter_map(|n| self.stmt(&n)).collect()
    }

    fn block_of(&mut self, node: &SyntaxNode) -> Vec<Stmt> {
        child(node, K::Block).map_or(Vec::new(), |n| self.block(&n))
    }

    fn stmt(&mut self, node: &SyntaxNode) -> Option<Stmt> {
        let kind = match node.kind() {
            K::AssignStmt => StmtKind::Assign {
                target: self.path(node),
                indices: self.indices(node),
                value: self.expr_of(node),
            },
            K::CallStmt => StmtKind::Call {
                name: self.path(node),
                args: self.args(node),
            },
            K::ForeachStmt => {
                let mut bounds = self.exprs(node).into_iter();
                let error = || Expr {
                    kind: ExprKind::Error,
                    span: self.span(node),
                };
                let from = bounds.next().unwrap_or_else(error);
                let to = bounds.next().unwrap_or_else(error);
                StmtKind::Foreach {
                    var: Box::new(self.var_decl(&child(node, K::VarDecl)?)),
                    from,
                    to,
                    body: self.block_of(node),
                }
            }
            K::IfStmt => {
                let mut arms = vec![(self.expr_of(node), self.block_of(node))];
                for elsif in all(node, K::Elsif) {
                    arms.push((self.expr_of(&elsif), self.block_of(&elsif)));
                }
                let otherwise = child(node, K::Else).map_or(Vec::new(), |n| self.block_of(&n));
                StmtKind::If { arms, otherwise }
            }
            K::WhileStmt => StmtKind::While {
                cond: self.expr_of(node),
                body: self.block_of(node),
            },
            _ => return None,
        };
        Some(Stmt {
            kind,
            span: self.span(node),
        })
    }

    // Expressions.

    fn exprs(&mut self, node: &SyntaxNode) -> Vec<Expr> {
        node.children()
            .filter(is_expr)
            .map(|n| self.expr(&n))
            .collect()
    }

    /// The first direct expression of `node`.
    fn expr_of(&mut self, node: &SyntaxNode) -> Expr {
        match node.children().find(is_expr) {
            Some(n) => self.expr(&n),
            None => Expr {
                kind: ExprKind::Error,
                span: self.span(node),
            },
        }
    }

    fn args(&mut self, node: &SyntaxNode) -> Vec<Expr> {
        child(node, K::Args).map_or(Vec::new(), |n| self.exprs(&n))
    }

    fn expr(&mut self, node: &SyntaxNode) -> Expr {
        let kind = match node.kind() {
            K::Literal => match tokens(node).next() {
                Some(token) => self.literal(&token),
                None => ExprKind::Error,
            },
            K::NameExpr => ExprKind::Var(self.path(node)),
            K::IndexExpr => ExprKind::Index {
                base: self.path(node),
                indices: self.indices(node),
            },
            K::CallExpr => ExprKind::Call {
                name: self.path(node),
                args: self.args(node),
            },
            K::UnaryExpr => {
                let op = match tokens(node).next().map(|t| t.kind()) {
                    Some(K::Minus) => UnOp::Neg,
                    Some(K::Not) => UnOp::Not,
                    Some(K::Hash) => UnOp::Count,
                    _ => UnOp::BitNot,
                };
                ExprKind::Unary(op, Box::new(self.expr_of(node)))
            }
            K::BinaryExpr => self.chain(node),
            K::IfExpr => {
                let mut exprs = self.exprs(node);
                if exprs.len() < 3 || exprs.len().is_multiple_of(2) {
                    ExprKind::Error
                } else {
                    let otherwise = Box::new(exprs.pop().expect("at least three"));
                    let mut arms = Vec::new();
                    let mut parts = exprs.into_iter();
                    while let (Some(cond), Some(value)) = (parts.next(), parts.next()) {
                        arms.push((cond, value));
                    }
                    ExprKind::If { arms, otherwise }
                }
            }
            K::ListExpr => {
                let generators = all(node, K::Generator).filter_map(|n| self.generator(&n));
                let generators = generators.collect();
                ExprKind::List {
                    items: self.exprs(node),
                    generators,
                }
            }
            K::ParenExpr => {
                let inner = self.expr_of(node);
                return Expr {
                    kind: inner.kind,
                    span: self.span(node),
                };
            }
            _ => ExprKind::Error,
        };
        Expr {
            kind,
            span: self.span(node),
        }
    }

    fn generator(&mut self, node: &SyntaxNode) -> Option<Generator> {
        let var = self.var_decl(&child(node, K::VarDecl)?);
        let mut bounds = self.exprs(node).into_iter();
        Some(Generator {
            var,
            from: bounds.next()?,
            to: bounds.next()?,
        })
    }

    fn chain(&mut self, node: &SyntaxNode) -> ExprKind {
        let operands: Vec<Expr> = self.exprs(node);
        let ops: Vec<(BinOp, Span)> = tokens(node)
            .filter_map(|t| Some((binary_operator(t.kind())?, self.range(t.text_range()))))
            .collect();
        if operands.len() != ops.len() + 1 {
            return ExprKind::Error;
        }
        let mut operands = operands.into_iter();
        let first = Box::new(operands.next().expect("one more than operators"));
        let rest = ops
            .into_iter()
            .zip(operands)
            .map(|((op, at), e)| (op, at, e))
            .collect();
        ExprKind::Chain { first, rest }
    }

    fn literal(&mut self, token: &SyntaxToken) -> ExprKind {
        let text = token.text();
        match token.kind() {
            K::KwTrue => ExprKind::Bool(true),
            K::KwFalse => ExprKind::Bool(false),
            K::Real => text.parse().map_or(ExprKind::Error, ExprKind::Real),
            K::Int => self.integer(token),
            K::Str => self.string(token),
            _ => ExprKind::Error,
        }
    }

    fn integer(&mut self, token: &SyntaxToken) -> ExprKind {
        let text = token.text();
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
            None => (text, 10),
        };
        if let Ok(value) = u64::from_str_radix(digits, radix) {
            return ExprKind::Int(value);
        }
        let bad = digits.chars().find(|c| !c.is_digit(radix));
        let mut diag = match bad {
            Some(c) => Diagnostic::error("number", format!("`{c}` is no digit of this number")),
            None if digits.is_empty() => Diagnostic::error("number", "this number has no digits"),
            None => Diagnostic::error("number", "this number is too large")
                .help("integers have at most 64 bits"),
        };
        if bad.is_some() && radix == 8 {
            diag = diag.help("a number that begins with 0 is octal: leave the 0 out");
        }
        self.diags
            .push(diag.label(self.range(token.text_range()), "here"));
        ExprKind::Error
    }

    fn string(&mut self, token: &SyntaxToken) -> ExprKind {
        let text = token.text();
        let inner = &text[1..text.len() - 1];
        let mut out = String::with_capacity(inner.len());
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '\0' {
                let start = u32::from(token.text_range().start()) + 1 + at as u32;
                let span = Span {
                    file: self.file,
                    start,
                    end: start + 1,
                };
                let diag = Diagnostic::error("string", "a string cannot hold the character NUL")
                    .label(span, "here")
                    .help("strings end at a NUL, as in C: remove it");
                self.diags.push(diag);
                continue;
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, 'r')) => out.push('\r'),
                Some((_, 'b')) => out.push('\u{8}'),
                Some((_, 'f')) => out.push('\u{c}'),
                Some((_, c @ ('"' | '\'' | '\\'))) => out.push(c),
                Some((at, c)) => {
                    let start = u32::from(token.text_range().start()) + at as u32;
                    let end = start + 1 + c.len_utf8() as u32;
                    let diag = Diagnostic::error("string", format!("`\\{c}` means nothing"))
                        .label(
                            Span {
                                file: self.file,
                                start,
                                end,
                            },
                            "here",
                        )
                        .help("the escapes are \\n \\t \\r \\b \\f \\\" \\' and \\\\");
                    self.diags.push(diag);
                }
                None => {}
            }
        }
        ExprKind::Str(out)
    }
}

fn binary_operator(kind: K) -> Option<BinOp> {
    use ir::BinOp as B;
    Some(BinOp::Op(match kind {
        K::Or => B::Or,
        K::And => B::And,
        K::Pipe => B::BitOr,
        K::Caret => B::BitXor,
        K::Amp => B::BitAnd,
        K::Eq | K::EqEq => B::Eq,
        K::Ne => B::Ne,
        K::Lt => B::Lt,
        K::Le => B::Le,
        K::Gt => B::Gt,
        K::Ge => B::Ge,
        K::Shl => B::Shl,
        K::Shr => B::Shr,
        K::Plus => B::Add,
        K::Minus => B::Sub,
        K::Star => B::Mul,
        K::Slash | K::Div => B::Div,
        K::Mod => B::Mod,
        K::Power => return Some(BinOp::Power),
        _ => return None,
    }))
}
