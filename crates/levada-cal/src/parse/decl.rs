// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses files, actors, units and their declarations.

use super::{K, Parser};
use crate::diag::Diagnostic;

/// Maximum lookahead in tokens, so that pathological files are parsed in linear time.
const FAR: usize = 64;

/// Keywords that begin a declaration and cannot begin a statement or an expression.
fn begins_declaration(kind: K) -> bool {
    matches!(
        kind,
        K::KwAction
            | K::KwInitialize
            | K::KwFunction
            | K::KwProcedure
            | K::KwSchedule
            | K::KwPriority
    )
}

fn begins_type(kind: K) -> bool {
    matches!(
        kind,
        K::KwBool
            | K::KwInt
            | K::KwUint
            | K::KwHalf
            | K::KwFloat
            | K::KwDouble
            | K::KwString
            | K::KwList
    )
}

impl Parser<'_> {
    /// If token `n` begins the tag of an action, the index of the token after the tag's colon.
    fn after_tag(&self, mut n: usize) -> Option<usize> {
        while n < FAR && self.nth(n) == K::Ident && self.nth(n + 1) == K::Dot {
            n += 2;
        }
        (self.nth(n) == K::Ident && self.nth(n + 1) == K::Colon).then_some(n + 2)
    }

    /// If token `n` is an annotation, the index of the token after it and further annotations.
    fn after_annotations(&self, mut n: usize) -> usize {
        while n < FAR && self.nth(n) == K::At && self.nth(n + 1) == K::Ident {
            n += 2;
            if self.nth(n) == K::LParen {
                while n < FAR && !matches!(self.nth(n), K::RParen | K::Semi | K::Eof) {
                    n += 1;
                }
                n += 1;
            }
        }
        n
    }

    /// Whether an action, function or similar begins here, which is never part of a statement.
    pub(super) fn at_declaration(&self) -> bool {
        let n = match self.current() {
            K::At => self.after_annotations(0),
            _ => 0,
        };
        let n = self
            .after_tag(n)
            .filter(|&n| matches!(self.nth(n), K::KwAction | K::KwInitialize))
            .unwrap_or(n);
        begins_declaration(self.nth(n))
            || (self.at_word("local") && self.nth(1) == K::Ident && self.nth(2) == K::Ident)
    }

    /// Whether a member of an actor begins here: a declaration or a variable.
    fn at_member(&self) -> bool {
        self.at_declaration()
            || begins_type(self.current())
            || (self.at(K::At) && begins_type(self.nth(self.after_annotations(0))))
    }

    pub(super) fn file(&mut self) {
        self.builder.start_node(rowan::SyntaxKind(K::File as u16));
        if self.at(K::KwPackage) {
            self.start(K::Package);
            self.bump();
            self.path();
            self.expect(K::Semi);
            self.finish();
        }
        while self.at(K::KwImport) {
            self.import();
        }
        let mark = self.mark();
        self.annotations();
        match self.current() {
            K::KwActor => self.actor(mark),
            K::KwUnit => self.unit(mark),
            _ => {
                self.unexpected(
                    "`actor` or `unit`",
                    Some("a file holds one of them, after `package` and `import`"),
                );
                self.skip_until(|p| p.at_member() || matches!(p.current(), K::KwActor | K::KwUnit));
                match self.current() {
                    K::KwActor => self.actor(mark),
                    K::KwUnit => self.unit(mark),
                    _ => {}
                }
            }
        }
        if !self.at(K::Eof) {
            let diag =
                Diagnostic::error("syntax", "nothing may follow the end of the actor or unit")
                    .label(self.current_span(), "this is behind its `end`")
                    .help("there may be one `end` too many before it");
            // An earlier error may be the cause.
            if self.errors.is_empty() {
                self.report(diag);
            }
            // What follows is still checked for errors of its own.
            self.start(K::Error);
            self.members();
            while !self.at(K::Eof) {
                self.bump();
                self.members();
            }
            self.finish();
        }
        self.flush();
        self.finish();
    }

    fn import(&mut self) {
        self.start(K::Import);
        self.bump();
        self.start(K::Path);
        if self.ident(None) {
            while self.at(K::Dot) {
                self.bump();
                if self.eat(K::Star) {
                    break;
                }
                self.ident(Some(
                    "an import reads `import a.b.Unit.*;` or `import a.b.Unit.name;`",
                ));
            }
        }
        self.finish();
        if !self.eat(K::Semi) {
            self.expect(K::Semi);
            self.skip_until(|p| {
                matches!(
                    p.current(),
                    K::Semi | K::KwImport | K::KwActor | K::KwUnit | K::At
                )
            });
            self.eat(K::Semi);
        }
        self.finish();
    }

    pub(super) fn annotations(&mut self) {
        while self.at(K::At) {
            self.start(K::Annotation);
            self.bump();
            self.ident(None);
            if self.eat(K::LParen) {
                loop {
                    self.start(K::AnnotationArg);
                    self.ident(None);
                    if self.eat(K::Eq) && !self.eat(K::Str) {
                        self.unexpected("a string", None);
                    }
                    self.finish();
                    if !self.eat(K::Comma) {
                        break;
                    }
                }
                self.expect(K::RParen);
            }
            self.finish();
        }
    }

    fn unit(&mut self, mark: rowan::Checkpoint) {
        self.start_at(mark, K::Unit);
        self.bump();
        self.name();
        self.expect(K::Colon);
        self.members();
        self.expect(K::KwEnd);
        self.finish();
    }

    fn actor(&mut self, mark: rowan::Checkpoint) {
        self.start_at(mark, K::Actor);
        self.bump();
        self.name();
        self.start(K::Params);
        if self.expect(K::LParen) {
            while !matches!(self.current(), K::RParen | K::FatArrow | K::Colon | K::Eof) {
                self.valued_var_decl();
                if !self.eat(K::Comma) {
                    break;
                }
            }
            self.expect(K::RParen);
        }
        self.finish();
        self.ports();
        self.expect_for(
            K::FatArrow,
            Some("an actor begins `actor Name() int In ==> int Out :`"),
        );
        self.ports();
        if !self.eat(K::Colon) {
            self.expect(K::Colon);
            // The colon of `type:` is another one.
            let in_type = |p: &Self| p.previous_text() == "type";
            self.skip_until(|p| (p.at(K::Colon) && !in_type(p)) || p.at_declaration());
            self.eat(K::Colon);
        }
        self.quiet &= self.previous() != K::Colon;
        self.members();
        let help = "something before it may lack its `end`: `else if` needs one of its own, `elsif` does not";
        self.quiet |= !self.errors.is_empty();
        self.expect_for(K::KwEnd, Some(help));
        self.finish();
    }

    fn ports(&mut self) {
        self.start(K::Ports);
        // `foo x` is taken as a port, with an error about the type.
        let begins = |p: &Self| {
            let named = p.at(K::Ident) && matches!(p.nth(1), K::Ident);
            begins_type(p.current()) || p.at(K::At) || named
        };
        while begins(self) {
            self.start(K::Port);
            self.annotations();
            self.type_();
            self.name();
            self.finish();
            if !self.eat(K::Comma) {
                break;
            }
            if !begins(self) {
                self.unexpected("a port", Some("a port reads `int(size=8) Name`"));
            }
        }
        self.finish();
    }

    /// The members of an actor or a unit, up to its `end`.
    fn members(&mut self) {
        while !matches!(self.current(), K::KwEnd | K::Eof) {
            let before = self.at;
            let begins = self.at_member() || (self.at(K::Ident) && self.nth(1) == K::Ident);
            if self.at_declaration() || (begins && matches!(self.previous(), K::Semi | K::KwEnd)) {
                self.quiet = false;
            }
            self.member();
            if self.at == before {
                self.misplaced_member();
            }
        }
    }

    fn misplaced_member(&mut self) {
        // It may be the rest of a declaration with an error.
        self.quiet |= !self.errors.is_empty();
        self.unexpected(
            "an action, a function, a procedure or a variable",
            match self.current() {
                K::KwImport | K::KwPackage => {
                    Some("`package` and `import` stand at the top of the file")
                }
                K::Ident => Some("a variable begins with its type: `int x := 0;`"),
                _ => None,
            },
        );
        self.start(K::Error);
        self.bump();
        self.finish();
        self.skip_to_declaration(|p| p.previous() == K::Semi && p.at_member());
    }

    fn member(&mut self) {
        let mark = self.mark();
        self.annotations();
        match self.current() {
            K::KwFunction => self.function(mark),
            K::KwProcedure => self.procedure(mark),
            K::KwSchedule => self.schedule(),
            K::KwPriority => self.priority(),
            K::Ident if self.at_word("local") && self.nth(1) == K::Ident => self.local_fsm(),
            K::KwAction | K::KwInitialize => self.action(mark),
            // `foo x;` is taken as a declaration, with an error about the type.
            kind if begins_type(kind) || (kind == K::Ident && self.nth(1) == K::Ident) => {
                self.start_at(mark, K::StateVar);
                self.valued_var_decl();
                if !self.eat(K::Semi) {
                    self.expect(K::Semi);
                    if !self.at_member() {
                        self.skip_until(|p| {
                            matches!(p.current(), K::Semi | K::KwEnd) || p.at_member()
                        });
                        self.eat(K::Semi);
                    }
                }
                self.finish();
            }
            K::Ident if self.after_tag(0).is_some() => {
                self.start(K::Tag);
                self.path();
                self.bump();
                self.finish();
                if matches!(self.current(), K::KwAction | K::KwInitialize) {
                    self.action(mark);
                } else {
                    self.unexpected("`action` or `initialize`", None);
                }
            }
            _ => {}
        }
    }

    // Types and variables.

    fn type_(&mut self) {
        self.start(K::Type);
        match self.current() {
            K::KwInt | K::KwUint => {
                self.bump();
                if self.eat(K::LParen) {
                    self.type_word("size", K::Eq);
                    self.expression();
                    self.expect(K::RParen);
                }
            }
            K::KwList => {
                self.bump();
                if self.expect_for(
                    K::LParen,
                    Some("a list type reads `List(type: int, size=8)`"),
                ) {
                    // In either order.
                    let size_first = self.at_word("size");
                    if size_first {
                        self.list_size();
                        self.expect(K::Comma);
                    }
                    self.type_word("type", K::Colon);
                    self.nested(|p| p.type_());
                    if !size_first {
                        self.expect(K::Comma);
                        self.list_size();
                    }
                    self.expect(K::RParen);
                }
            }
            kind if begins_type(kind) => self.bump(),
            K::Ident => {
                let text = self.current_text();
                let help = match text {
                    "string" => "write `String`".to_owned(),
                    "list" => "write `List(type: int, size=8)`".to_owned(),
                    "boolean" => "write `bool`".to_owned(),
                    _ => "the types are bool, int, uint, half, float, double, String and List"
                        .to_owned(),
                };
                let diag = Diagnostic::error("syntax", format!("there is no type `{text}`"))
                    .label(self.current_span(), "expected a type")
                    .help(help);
                self.report(diag);
                // `foo x` is taken as a type and a name; `x` alone as a name.
                if matches!(self.nth(1), K::Ident | K::LParen) {
                    self.bump();
                }
            }
            _ => self.unexpected("a type", None),
        }
        self.finish();
    }

    fn list_size(&mut self) {
        self.type_word("size", K::Eq);
        self.expression();
    }

    /// `size=` or `type:` in a type.
    fn type_word(&mut self, word: &str, then: K) {
        if self.at(K::Ident) && self.current_text() == word {
            self.bump();
            self.expect(then);
        } else {
            let help = "types read `int(size=8)` and `List(type: int, size=8)`";
            self.unexpected(
                &format!("`{word}{}`", then.describe().trim_matches('`')),
                Some(help),
            );
        }
    }

    /// `int(size=8) x[3][4]`
    pub(super) fn var_decl(&mut self) {
        let mark = self.mark();
        self.annotations();
        self.start_at(mark, K::VarDecl);
        self.type_();
        self.name();
        self.indices();
        self.finish();
    }

    /// `int(size=8) x[3][4] := value`, or with `=`
    fn valued_var_decl(&mut self) {
        let mark = self.mark();
        self.annotations();
        self.start_at(mark, K::VarDecl);
        self.type_();
        self.name();
        self.indices();
        if matches!(self.current(), K::Eq | K::Assign) {
            self.start(K::Init);
            self.bump();
            self.expression();
            self.finish();
        }
        self.finish();
    }

    fn locals(&mut self) {
        self.start(K::Locals);
        if self.eat(K::KwVar) {
            self.valued_var_decl();
            loop {
                if self.eat(K::Comma) {
                    self.valued_var_decl();
                } else if (self.at(K::Semi) && begins_type(self.nth(1)))
                    || begins_type(self.current())
                {
                    self.expect_for(K::Comma, Some("variables at `var` are split by commas"));
                    self.eat(K::Semi);
                    self.valued_var_decl();
                } else {
                    break;
                }
            }
            if self.at(K::Semi) {
                let diag = Diagnostic::error("syntax", "no `;` after the variables")
                    .label(self.current_span(), "remove this");
                self.report(diag);
                self.bump();
            }
        }
        self.finish();
    }

    // Functions and procedures.

    fn formal_params(&mut self) {
        self.start(K::Params);
        if self.expect(K::LParen) {
            while !matches!(self.current(), K::RParen | K::Arrow | K::Eof) && !self.at_declaration()
            {
                self.var_decl();
                if !self.eat(K::Comma) {
                    break;
                }
            }
            self.expect(K::RParen);
        }
        self.finish();
    }

    fn function(&mut self, mark: rowan::Checkpoint) {
        let errors = self.errors.len();
        self.start_at(mark, K::Function);
        self.bump();
        self.name();
        self.formal_params();
        self.expect_for(
            K::Arrow,
            Some("a function reads `function f(int x) --> int : x + 1 end`"),
        );
        self.type_();
        self.locals();
        if self.eat(K::Colon) {
            self.expression();
        }
        self.end_of("function", errors);
        self.finish();
    }

    fn procedure(&mut self, mark: rowan::Checkpoint) {
        let errors = self.errors.len();
        self.start_at(mark, K::Procedure);
        self.bump();
        self.name();
        self.formal_params();
        self.locals();
        if self.eat(K::KwBegin) {
            self.block();
        }
        self.end_of("procedure", errors);
        self.finish();
    }

    /// The `end` of a construct; if it is missing, skips to the next declaration or an `end`. `errors`: the number of
    /// errors at the start of the construct.
    fn end_of(&mut self, what: &str, errors: usize) {
        if self.eat(K::KwEnd) {
            return;
        }
        // An error within the construct may be the cause.
        self.quiet |= self.errors.len() > errors;
        let help = format!("the {what} goes on until its `end`");
        self.expect_for(K::KwEnd, Some(&help));
        if !self.at_declaration() {
            self.skip_to_declaration(|_| false);
            self.eat(K::KwEnd);
        }
    }

    // Actions.

    fn action(&mut self, mark: rowan::Checkpoint) {
        let errors = self.errors.len();
        let initialize = self.at(K::KwInitialize);
        self.start_at(mark, if initialize { K::Initialize } else { K::Action });
        self.bump();
        if initialize && matches!(self.current(), K::Ident) && self.nth(1) == K::Colon {
            let diag = Diagnostic::error("syntax", "`initialize` reads no elements")
                .label(self.current_span(), "an input pattern")
                .help("it runs before anything fires");
            self.report(diag);
        }
        self.patterns(K::InputPattern);
        self.expect_for(
            K::FatArrow,
            Some("an action begins `action In:[x] ==> Out:[y]`"),
        );
        self.patterns(K::OutputPattern);
        if self.at(K::KwGuard) {
            self.start(K::Guard);
            self.bump();
            self.expression_list();
            self.finish();
        }
        self.locals();
        if self.at(K::KwGuard) {
            let diag = Diagnostic::error("syntax", "`guard` stands before `var`")
                .label(self.current_span(), "move this up")
                .help("a guard cannot read the action's own variables");
            self.report(diag);
            self.start(K::Guard);
            self.bump();
            self.expression_list();
            self.finish();
        }
        if self.eat(K::KwDo) {
            self.block();
        }
        self.end_of("action", errors);
        self.finish();
    }

    fn patterns(&mut self, kind: K) {
        while self.at(K::Ident) || self.at(K::LBracket) {
            self.start(kind);
            if self.at(K::LBracket) {
                self.unexpected("a port", Some("patterns name their port: `In:[x]`"));
            } else {
                self.name();
                self.expect(K::Colon);
            }
            if self.expect(K::LBracket) {
                if kind == K::InputPattern {
                    self.name();
                    while self.eat(K::Comma) {
                        self.name();
                    }
                    if !self.at(K::RBracket) {
                        self.unexpected(
                            "`,` or `]`",
                            Some("an input pattern only names variables; test values in a guard"),
                        );
                        self.skip_until(|p| {
                            matches!(p.current(), K::RBracket | K::FatArrow | K::KwDo | K::KwEnd)
                                || p.at_declaration()
                        });
                    }
                } else {
                    self.expression_list();
                }
                self.expect(K::RBracket);
            }
            if self.at(K::KwRepeat) {
                self.start(K::Repeat);
                self.bump();
                self.expression();
                self.finish();
            }
            self.finish();
            if !self.eat(K::Comma) {
                break;
            }
            if !self.at(K::Ident) {
                self.unexpected("a port", Some("patterns read `Port:[x]`"));
            }
        }
    }

    // The schedule.

    fn schedule(&mut self) {
        let errors = self.errors.len();
        self.start(K::Schedule);
        self.bump();
        if self.at_word("regexp") {
            self.bump();
            self.regexp();
        } else {
            self.expect_fsm();
            self.name();
            self.expect(K::Colon);
            self.transitions();
        }
        self.end_of("schedule", errors);
        self.finish();
    }

    /// The word `fsm`, which is an ordinary name elsewhere.
    fn expect_fsm(&mut self) {
        if self.at_word("fsm") {
            self.bump();
        } else {
            let help = "a schedule reads `schedule fsm start: ... end`";
            self.unexpected("`fsm`", Some(help));
        }
    }

    fn local_fsm(&mut self) {
        let errors = self.errors.len();
        self.start(K::LocalFsm);
        self.bump();
        self.expect_fsm();
        self.name();
        self.expect(K::Colon);
        self.transitions();
        self.end_of("schedule", errors);
        self.finish();
    }

    fn transitions(&mut self) {
        while !matches!(self.current(), K::KwEnd | K::Eof) && !self.at_declaration() {
            let before = self.at;
            self.settle();
            self.transition();
            if self.at == before {
                self.start(K::Error);
                self.bump();
                self.finish();
            }
        }
    }

    fn transition(&mut self) {
        let help = Some("a transition reads `state (action) --> next;`");
        self.start(K::Transition);
        let mut ok = self.ident(help) && self.expect_for(K::LParen, help);
        if ok {
            self.path();
            while self.at(K::Comma) {
                let diag = Diagnostic::error("syntax", "a transition names one action")
                    .label(self.current_span(), "a second one")
                    .help("write a transition for each");
                self.report(diag);
                self.bump();
                self.path();
            }
            ok = self.expect_for(K::RParen, help) && self.expect_for(K::Arrow, help);
        }
        if ok {
            if self.nth(1) == K::Dot {
                self.external_target();
            } else {
                ok = self.ident(help);
            }
        }
        if !ok || !self.eat(K::Semi) {
            self.expect(K::Semi);
            let next_line = self.at(K::Ident) && self.nth(1) == K::LParen;
            if !next_line {
                self.skip_until(|p| {
                    matches!(p.current(), K::Semi | K::KwEnd) || p.at_declaration()
                });
                self.eat(K::Semi);
            }
        }
        self.finish();
    }

    /// `fsm.state(from => to)`: through a local schedule.
    fn external_target(&mut self) {
        self.start(K::ExternalTarget);
        self.ident(None);
        self.bump();
        self.ident(None);
        self.expect(K::LParen);
        self.ident(None);
        self.expect(K::Becomes);
        self.ident(None);
        self.expect(K::RParen);
        self.finish();
    }

    fn regexp(&mut self) {
        let mark = self.mark();
        self.regexp_sequence();
        if self.at(K::Pipe) {
            self.start_at(mark, K::RegExpOr);
            let mut length = 1;
            while self.eat(K::Pipe) {
                length += 1;
                if self.too_long(length, "schedule") {
                    break;
                }
                self.regexp_sequence();
            }
            self.finish();
        }
    }

    fn regexp_sequence(&mut self) {
        self.start(K::RegExpSeq);
        let mut length = 0;
        while matches!(self.current(), K::Ident | K::LParen) {
            length += 1;
            if self.too_long(length, "schedule") {
                break;
            }
            self.regexp_item();
        }
        if length == 0 {
            self.unexpected("an action's tag or `(`", None);
        }
        self.finish();
    }

    fn regexp_item(&mut self) {
        let mark = self.mark();
        if self.at(K::LParen) {
            self.bump();
            self.nested(|p| p.regexp());
            self.expect(K::RParen);
        } else {
            self.start(K::RegExp);
            self.path();
            self.finish();
        }
        let mut length = 0;
        while matches!(self.current(), K::Star | K::Question) && length < 8 {
            length += 1;
            self.start_at(mark, K::RegExpPost);
            self.bump();
            self.finish();
        }
    }

    fn priority(&mut self) {
        let errors = self.errors.len();
        self.start(K::Priority);
        self.bump();
        while self.at(K::Ident) {
            self.settle();
            self.start(K::Inequality);
            self.path();
            if !self.at(K::Gt) {
                self.expect_for(K::Gt, Some("a priority reads `first > second;`"));
            }
            while self.eat(K::Gt) {
                self.path();
            }
            if !self.eat(K::Semi) {
                self.expect(K::Semi);
                self.skip_until(|p| {
                    matches!(p.current(), K::Semi | K::KwEnd) || p.at_declaration()
                });
                self.eat(K::Semi);
            }
            self.finish();
        }
        self.end_of("priority", errors);
        self.finish();
    }
}
