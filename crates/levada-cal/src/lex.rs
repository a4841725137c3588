// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lexer. Spaces and comments are tokens too, so the concatenation of all tokens is the file.

use logos::Logos;

/// The kinds of tokens, and of the nodes of the syntax tree.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum SyntaxKind {
    #[regex(r"[ \t\r\n\x0c\u{feff}\u{a0}]+")]
    Space,
    #[regex(r"//[^\n\r]*", allow_greedy = true)]
    LineComment,
    #[token("/*", block_comment)]
    BlockComment,
    /// A block comment that never ends.
    OpenComment,

    #[regex(r"[A-Za-z_][A-Za-z_0-9]*")]
    Ident,
    /// A word with letters that names cannot have.
    #[regex(r"[\p{XID_Start}_]\p{XID_Continue}*", priority = 1)]
    ForeignIdent,
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    Int,
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+", priority = 10)]
    Real,
    /// `0..`: an integer with a range after it, split in two by [`tokens`].
    #[regex(r"[0-9]+\.\.")]
    IntDotDot,
    #[regex(r#""([^"\\\n\r]|\\[^\n\r])*""#)]
    #[regex(r"'([^'\\\n\r]|\\[^\n\r])*'")]
    Str,
    /// A string without its closing quote; it ends with its line.
    #[regex(r#""([^"\\\n\r]|\\[^\n\r])*"#)]
    #[regex(r"'([^'\\\n\r]|\\[^\n\r])*")]
    OpenStr,

    #[token("==>")]
    FatArrow,
    #[token("-->")]
    Arrow,
    #[token("=>")]
    Becomes,
    #[token(":=")]
    Assign,
    #[token("==")]
    EqEq,
    #[token("=")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<=")]
    Le,
    #[token(">=")]
    Ge,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("<")]
    Lt,
    #[token(">")]
    Gt,
    #[token("||")]
    #[token("or")]
    Or,
    #[token("&&")]
    #[token("and")]
    And,
    #[token("|")]
    Pipe,
    #[token("^")]
    Caret,
    #[token("&")]
    Amp,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("**")]
    Power,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("div")]
    Div,
    #[token("mod")]
    Mod,
    #[token("~")]
    Tilde,
    #[token("not")]
    Not,
    #[token("#")]
    Hash,
    #[token("?")]
    Question,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token("..")]
    DotDot,
    #[token(".")]
    Dot,
    #[token("@")]
    At,

    #[token("package")]
    KwPackage,
    #[token("import")]
    KwImport,
    #[token("actor")]
    KwActor,
    #[token("unit")]
    KwUnit,
    #[token("end")]
    KwEnd,
    #[token("function")]
    KwFunction,
    #[token("procedure")]
    KwProcedure,
    #[token("var")]
    KwVar,
    #[token("begin")]
    KwBegin,
    #[token("action")]
    KwAction,
    #[token("initialize")]
    KwInitialize,
    #[token("guard")]
    KwGuard,
    #[token("do")]
    KwDo,
    #[token("repeat")]
    KwRepeat,
    #[token("priority")]
    KwPriority,
    #[token("schedule")]
    KwSchedule,
    #[token("if")]
    KwIf,
    #[token("then")]
    KwThen,
    #[token("elsif")]
    KwElsif,
    #[token("else")]
    KwElse,
    #[token("while")]
    KwWhile,
    #[token("foreach")]
    KwForeach,
    #[token("for")]
    KwFor,
    #[token("in")]
    KwIn,
    #[token("true")]
    KwTrue,
    #[token("false")]
    KwFalse,
    #[token("bool")]
    KwBool,
    #[token("int")]
    KwInt,
    #[token("uint")]
    KwUint,
    #[token("half")]
    KwHalf,
    #[token("float")]
    KwFloat,
    #[token("double")]
    KwDouble,
    #[token("String")]
    KwString,
    #[token("List")]
    KwList,

    /// A character that is not part of the language.
    Unknown,
    /// What the parser sees past the last token.
    Eof,

    // Nodes.
    File,
    Package,
    Import,
    /// Names joined by dots, perhaps with `.*` behind them.
    Path,
    /// The name of a declaration.
    Name,
    Annotation,
    AnnotationArg,
    Actor,
    Unit,
    Params,
    Ports,
    Port,
    Type,
    VarDecl,
    Dim,
    Init,
    Locals,
    Function,
    Procedure,
    StateVar,
    Action,
    Initialize,
    Tag,
    InputPattern,
    OutputPattern,
    Repeat,
    Guard,
    Block,
    Schedule,
    LocalFsm,
    Transition,
    ExternalTarget,
    RegExp,
    RegExpOr,
    RegExpSeq,
    RegExpPost,
    Priority,
    Inequality,
    AssignStmt,
    CallStmt,
    ForeachStmt,
    IfStmt,
    WhileStmt,
    Elsif,
    Else,
    Literal,
    NameExpr,
    IndexExpr,
    CallExpr,
    Args,
    UnaryExpr,
    BinaryExpr,
    IfExpr,
    ListExpr,
    Generator,
    ParenExpr,
    /// Unexpected tokens.
    Error,
}

fn block_comment(lex: &mut logos::Lexer<SyntaxKind>) -> Result<(), ()> {
    let end = lex.remainder().find("*/").ok_or(())?;
    lex.bump(end + 2);
    Ok(())
}

impl SyntaxKind {
    pub fn is_trivia(self) -> bool {
        use SyntaxKind::*;
        matches!(self, Space | LineComment | BlockComment | OpenComment)
    }

    pub fn is_keyword(self) -> bool {
        use SyntaxKind::*;
        (KwPackage..=KwList).contains(&self) || matches!(self, Or | And | Div | Mod | Not)
    }

    pub fn is_token(self) -> bool {
        self < SyntaxKind::Eof
    }

    /// The text for messages: what the user has to type, or the name of the kind.
    pub fn describe(self) -> &'static str {
        use SyntaxKind::*;
        match self {
            Ident | ForeignIdent => "a name",
            Int | Real => "a number",
            Str => "a string",
            FatArrow => "`==>`",
            Arrow => "`-->`",
            Becomes => "`=>`",
            Assign => "`:=`",
            Eq => "`=`",
            Gt => "`>`",
            LParen => "`(`",
            RParen => "`)`",
            LBracket => "`[`",
            RBracket => "`]`",
            Comma => "`,`",
            Semi => "`;`",
            Colon => "`:`",
            DotDot => "`..`",
            Dot => "`.`",
            KwEnd => "`end`",
            KwThen => "`then`",
            KwElse => "`else`",
            KwDo => "`do`",
            KwIn => "`in`",
            KwBegin => "`begin`",
            KwAction => "`action`",
            Eof => "the end of the file",
            _ => "something else",
        }
    }
}

/// Splits `text` into tokens; the concatenation of their texts is `text`.
pub fn tokens(text: &str) -> Vec<(SyntaxKind, &str)> {
    let mut out: Vec<(SyntaxKind, &str)> = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    let mut lexer = SyntaxKind::lexer(text);
    while let Some(found) = lexer.next() {
        let span = lexer.span();
        let piece = &text[span.clone()];
        debug_assert_eq!(span.start, at, "the lexer left something out");
        at = span.end;
        match found {
            Ok(SyntaxKind::IntDotDot) => {
                let (int, dots) = piece.split_at(piece.len() - 2);
                out.push((SyntaxKind::Int, int));
                out.push((SyntaxKind::DotDot, dots));
            }
            Ok(kind) => out.push((kind, piece)),
            Err(()) if piece == "/*" => {
                // Everything after it is a comment: one token for the rest.
                out.push((SyntaxKind::OpenComment, &text[span.start..]));
                return out;
            }
            Err(()) => match out.last_mut() {
                // One error for a run of such characters.
                Some((SyntaxKind::Unknown, last)) => {
                    let start = span.start - last.len();
                    *last = &text[start..span.end];
                }
                _ => out.push((SyntaxKind::Unknown, piece)),
            },
        }
    }
    out
}
