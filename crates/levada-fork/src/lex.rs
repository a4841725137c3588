// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lexer: tokens and directives of a C file, and the forks among the tokens.
//!
//! A token is a range of bytes of the file. Blanks, comments and directives are the gaps between tokens, so copying all
//! tokens and gaps gives the same file. Any bytes are accepted: a byte that begins no token of C is a token of its own.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    Number,
    /// A string literal, with its prefix.
    String,
    Char,
    /// A punctuator; a digraph is given as the punctuator that it stands for.
    Punct(&'static str),
    /// A byte that begins no token.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// A whole line that begins with `#`, without its end of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Default)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub directives: Vec<Directive>,
}

/// The spelling of each punctuator, and the punctuator that it stands for. A longer one comes before its prefixes.
const PUNCTUATORS: [(&str, &str); 53] = [
    ("%:%:", "##"),
    ("...", "..."),
    ("<<=", "<<="),
    (">>=", ">>="),
    ("->", "->"),
    ("++", "++"),
    ("--", "--"),
    ("<<", "<<"),
    (">>", ">>"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("&&", "&&"),
    ("||", "||"),
    ("*=", "*="),
    ("/=", "/="),
    ("%=", "%="),
    ("+=", "+="),
    ("-=", "-="),
    ("&=", "&="),
    ("^=", "^="),
    ("|=", "|="),
    ("##", "##"),
    ("<:", "["),
    (":>", "]"),
    ("<%", "{"),
    ("%>", "}"),
    ("%:", "#"),
    ("::", "::"),
    ("[", "["),
    ("]", "]"),
    ("(", "("),
    (")", ")"),
    ("{", "{"),
    ("}", "}"),
    (".", "."),
    ("&", "&"),
    ("*", "*"),
    ("+", "+"),
    ("-", "-"),
    ("~", "~"),
    ("!", "!"),
    ("/", "/"),
    ("%", "%"),
    ("<", "<"),
    (">", ">"),
    ("^", "^"),
    ("|", "|"),
    ("?", "?"),
    (":", ":"),
    (";", ";"),
    ("=", "="),
];

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    /// The line has only blanks and comments before `at`, so `#` begins a directive.
    fresh: bool,
    lexed: Lexed,
}

/// The tokens and directives of `text`.
pub fn lex(text: &[u8]) -> Lexed {
    let mut lexer = Lexer {
        text,
        // A byte order mark counts as a blank.
        at: if text.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        },
        fresh: true,
        lexed: Lexed::default(),
    };
    while lexer.at < text.len() {
        lexer.next();
    }
    lexer.lexed
}

/// Length in bytes of the line splice at `at` (a backslash, blanks, an end of line), or 0 if there is none.
fn splice(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\\') {
        return 0;
    }
    let mut i = at + 1;
    while matches!(text.get(i), Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c)) {
        i += 1;
    }
    match text.get(i) {
        Some(b'\n') => i + 1 - at,
        _ => 0,
    }
}

fn is_word_start(c: u8) -> bool {
    c.is_ascii_alphabetic() || c == b'_' || c == b'$' || c >= 0x80
}

fn is_word(c: u8) -> bool {
    is_word_start(c) || c.is_ascii_digit()
}

impl Lexer<'_> {
    /// The index of the `n`th byte after `from`, without counting line splices.
    fn place(&self, from: usize, n: usize) -> usize {
        let mut at = from;
        for i in 0.. {
            loop {
                match splice(self.text, at) {
                    0 => break,
                    len => at += len,
                }
            }
            if i == n {
                break;
            }
            at += 1;
        }
        at
    }

    fn peek(&self, n: usize) -> Option<u8> {
        self.text.get(self.place(self.at, n)).copied()
    }

    /// Skips one byte and the splices before it.
    fn bump(&mut self) {
        self.at = (self.place(self.at, 0) + 1).min(self.text.len());
    }

    fn token(&mut self, kind: Kind, start: usize) {
        self.fresh = false;
        self.lexed.tokens.push(Token {
            kind,
            start: start as u32,
            end: self.at as u32,
        });
    }

    fn next(&mut self) {
        self.at = self.place(self.at, 0);
        let start = self.at;
        let Some(&c) = self.text.get(start) else {
            return;
        };
        match c {
            b'\n' => {
                self.at += 1;
                self.fresh = true;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
            b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
            b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
            b'#' if self.fresh => self.directive(start),
            b'%' if self.fresh && self.peek(1) == Some(b':') => self.directive(start),
            b'"' => self.quoted(b'"', Kind::String, start),
            b'\'' => self.quoted(b'\'', Kind::Char, start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.peek(1).is_some_and(|d| d.is_ascii_digit()) => self.number(start),
            b'\\' if matches!(self.peek(1), Some(b'u' | b'U')) => self.word(start),
            c if is_word_start(c) => self.word(start),
            _ => self.punctuator(start),
        }
    }

    fn line_comment(&mut self) {
        while let Some(c) = self.peek(0) {
            if c == b'\n' {
                // The end of line is not part of the comment.
                self.at = self.place(self.at, 0);
                return;
            }
            self.bump();
        }
        self.at = self.text.len();
    }

    fn block_comment(&mut self) {
        self.bump();
        self.bump();
        while let Some(c) = self.peek(0) {
            if c == b'*' && self.peek(1) == Some(b'/') {
                self.bump();
                self.bump();
                return;
            }
            self.bump();
        }
        self.at = self.text.len();
    }

    /// A directive ends with its line, but a comment in it may span lines.
    fn directive(&mut self, start: usize) {
        while let Some(c) = self.peek(0) {
            match c {
                b'\n' => break,
                b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
                b'"' | b'\'' => self.skip_quoted(c),
                _ => self.bump(),
            }
        }
        self.at = self.place(self.at, 0).min(self.text.len());
        self.lexed.directives.push(Directive {
            start: start as u32,
            end: self.at as u32,
        });
    }

    /// Skips to after the closing quote, or to the end of the line if there is none.
    fn skip_quoted(&mut self, quote: u8) {
        self.bump();
        while let Some(c) = self.peek(0) {
            match c {
                b'\n' => {
                    self.at = self.place(self.at, 0);
                    return;
                }
                b'\\' => {
                    self.bump();
                    if self.peek(0).is_some_and(|c| c != b'\n') {
                        self.bump();
                    }
                }
                c => {
                    self.bump();
                    if c == quote {
                        return;
                    }
                }
            }
        }
        self.at = self.text.len();
    }

    fn quoted(&mut self, quote: u8, kind: Kind, start: usize) {
        self.skip_quoted(quote);
        self.token(kind, start);
    }

    fn number(&mut self, start: usize) {
        self.bump();
        let mut last = self.text[start];
        while let Some(c) = self.peek(0) {
            let exponent = matches!(last, b'e' | b'E' | b'p' | b'P') && matches!(c, b'+' | b'-');
            // Digit separators of C23.
            let separator = c == b'\'' && self.peek(1).is_some_and(|d| d.is_ascii_alphanumeric());
            if !(is_word(c) || c == b'.' || exponent || separator) {
                break;
            }
            last = c;
            self.bump();
        }
        self.token(Kind::Number, start);
    }

    fn word(&mut self, start: usize) {
        while let Some(c) = self.peek(0) {
            let named = c == b'\\' && matches!(self.peek(1), Some(b'u' | b'U'));
            if !is_word(c) && !named {
                break;
            }
            self.bump();
        }
        let quote = match self.peek(0) {
            Some(q @ (b'"' | b'\'')) => q,
            _ => return self.token(Kind::Word, start),
        };
        match (self.spelled(start).as_slice(), quote) {
            (b"L" | b"u" | b"U" | b"u8", b'\'') => self.quoted(quote, Kind::Char, start),
            (b"L" | b"u" | b"U" | b"u8", b'"') => self.quoted(quote, Kind::String, start),
            (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", b'"') if self.raw_string() => {
                self.token(Kind::String, start);
            }
            _ => self.token(Kind::Word, start),
        }
    }

    fn spelled(&self, start: usize) -> Vec<u8> {
        spelling(&self.text[start..self.at])
    }

    /// Reads `R"mark( ... )mark"` from its quote. Returns false and reads nothing if it is not a raw string.
    fn raw_string(&mut self) -> bool {
        let text = self.text;
        let open = self.place(self.at, 0) + 1;
        let Some(length) = text[open..].iter().take(17).position(|&c| c == b'(') else {
            return false;
        };
        let mark = &text[open..open + length];
        if mark.iter().any(|c| b" )\\\t\x0b\x0c\n\"".contains(c)) {
            return false;
        }
        let close = [b")", mark, b"\""].concat();
        let body = open + length + 1;
        match text[body..].windows(close.len()).position(|w| w == close) {
            Some(found) => self.at = body + found + close.len(),
            None => return false,
        }
        true
    }

    fn punctuator(&mut self, start: usize) {
        let ahead = [0, 1, 2, 3].map(|n| self.peek(n));
        let fits = |p: &str| p.bytes().zip(ahead).all(|(a, b)| Some(a) == b);
        let found = PUNCTUATORS.iter().find(|(written, _)| fits(written));
        match found {
            Some((written, means)) => {
                for _ in 0..written.len() {
                    self.bump();
                }
                self.token(Kind::Punct(means), start);
            }
            None if self.text[start] == b',' => {
                self.bump();
                self.token(Kind::Punct(","), start);
            }
            None => {
                self.bump();
                self.token(Kind::Other, start);
            }
        }
    }
}

/// The bytes of a token without line splices.
pub fn spelling(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match splice(bytes, at) {
            0 => {
                out.push(bytes[at]);
                at += 1;
            }
            len => at += len,
        }
    }
    out
}

/// Whether `!! {` stands at `at`, after the end of an operand, which may be a call or not. It is valid in no C program.
pub fn is_fork(tokens: &[Token], at: usize) -> bool {
    let is = |i: usize, p| tokens.get(i).is_some_and(|t| t.kind == Kind::Punct(p));
    let ends_operand = |t: &Token| match t.kind {
        Kind::Punct(p) => matches!(p, ")" | "]" | "++" | "--"),
        kind => kind != Kind::Other,
    };
    is(at, "!") && is(at + 1, "!") && is(at + 2, "{") && at > 0 && ends_operand(&tokens[at - 1])
}

/// The opening parenthesis that matches the closing one at `close`.
pub fn opening(tokens: &[Token], close: usize) -> Option<usize> {
    let mut depth = 0;
    for at in (0..=close).rev() {
        match tokens[at].kind {
            Kind::Punct(")") => depth += 1,
            Kind::Punct("(") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Words that are followed by parentheses and are not calls: `!!x` after them is an operand or a statement.
const NO_CALL: [&[u8]; 20] = [
    b"if",
    b"while",
    b"for",
    b"switch",
    b"return",
    b"case",
    b"else",
    b"do",
    b"sizeof",
    b"goto",
    b"typeof",
    b"__typeof__",
    b"__typeof",
    b"typeof_unqual",
    b"_Alignof",
    b"alignof",
    b"__extension__",
    b"__real__",
    b"__imag__",
    b"__attribute__",
];

/// The places where `!!` follows a call and no block follows: it is not valid C, so a fork was meant. Returns the index
/// of the called name (or of its last bracket) and of the first `!`.
pub fn forks_without_block(text: &[u8], tokens: &[Token]) -> Vec<(usize, usize)> {
    let is = |i: usize, p| tokens.get(i).is_some_and(|t| t.kind == Kind::Punct(p));
    let misses = |i: usize| is(i - 1, ")") && is(i, "!") && is(i + 1, "!") && !is(i + 2, "{");
    let named = |i: usize| match tokens[i].kind {
        Kind::Word => !NO_CALL.contains(&&text[tokens[i].start as usize..tokens[i].end as usize]),
        kind => kind == Kind::Punct("]"),
    };
    let found = (2..tokens.len()).filter(|&i| misses(i));
    found
        .filter_map(|i| {
            let callee = opening(tokens, i - 1)?.checked_sub(1)?;
            named(callee).then_some((callee, i))
        })
        .collect()
}

/// The forks among the tokens: the index of the first `!` of each.
pub fn forks(tokens: &[Token]) -> Vec<usize> {
    (1..tokens.len()).filter(|&i| is_fork(tokens, i)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let lexed = lex(text.as_bytes());
        let spelled = |t: &Token| {
            let bytes = spelling(&text.as_bytes()[t.start as usize..t.end as usize]);
            String::from_utf8(bytes).unwrap()
        };
        lexed.tokens.iter().map(spelled).collect()
    }

    #[test]
    fn splices_join_tokens() {
        assert_eq!(words("a\\\nb +\\\n+ c"), ["ab", "++", "c"]);
        assert_eq!(words("// a \\\n b\nc"), ["c"]);
        assert_eq!(words("/\\\n* a *\\\n/ c"), ["c"]);
    }

    #[test]
    fn strings_hide_what_looks_like_a_fork() {
        for text in [
            "\"f() !! {\"",
            "'f() !! {'",
            "/* f() !! { */",
            "// f() !! {",
            "R\"x(f() !! {\")x\"",
            "#define F f() !! {",
            "#define F \\\n f() !! {",
            "if (x) !!y;",
        ] {
            assert!(forks(&lex(text.as_bytes()).tokens).is_empty(), "{text}");
        }
        for text in [
            "if (x) !!y;",
            "x = (int)!!y;",
            "return (int) !!y;",
            "f(!!x);",
            "f(x) != !y;",
            "(a)(b) !!c",
            "f() !! {",
            "a[1] !!b",
            "while (x) !!y;",
        ] {
            let bytes = text.as_bytes();
            assert!(
                forks_without_block(bytes, &lex(bytes).tokens).is_empty(),
                "{text}"
            );
        }
        for text in [
            "f() !! ;",
            "y = f(1) !! g(2);",
            "p->f((x)) !! x",
            "a[i](x) !! return",
        ] {
            let bytes = text.as_bytes();
            assert_eq!(
                forks_without_block(bytes, &lex(bytes).tokens).len(),
                1,
                "{text}"
            );
        }
        for text in ["f() !! {", "f()!!{", "f() ! /* */ ! <%", "f() !\\\n! {"] {
            assert_eq!(forks(&lex(text.as_bytes()).tokens).len(), 1, "{text}");
        }
    }

    #[test]
    fn directives_are_whole_lines() {
        let text = "#define A /* x\n y */ z \\\n w\nb # c\n  %: d\n# 3 \"x\"";
        let lexed = lex(text.as_bytes());
        let of = |d: &Directive| &text[d.start as usize..d.end as usize];
        let found: Vec<&str> = lexed.directives.iter().map(of).collect();
        assert_eq!(
            found,
            ["#define A /* x\n y */ z \\\n w", "%: d", "# 3 \"x\""]
        );
        assert_eq!(words(text), ["b", "#", "c"]);
        let marked = lex(b"\xef\xbb\xbf#if 1\r\nx\r\n");
        assert_eq!((marked.directives.len(), marked.tokens.len()), (1, 1));
    }

    #[test]
    fn numbers_and_prefixes() {
        assert_eq!(
            words("1e+5 .5p-3f 0x1'000 L\"a\" u8'b' L x...y"),
            [
                "1e+5", ".5p-3f", "0x1'000", "L\"a\"", "u8'b'", "L", "x", "...", "y"
            ]
        );
        assert_eq!(words("'a\n b \"c\n d"), ["'a", "b", "\"c", "d"]);
    }
}
