// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generates the C code of forks as edits: ranges of tokens, and the pieces that replace them. A piece is generated
//! text, or a copied part of the user's text; forks within a copied part are translated in turn.

mod copy;
mod fork;
mod jump;
mod order;
mod scope;
mod words;

pub use words::{Macros, Words};

use crate::fork_site::{Site, site};
use crate::parse::{External, Form, Parsed, Range, Refusal, STACK_BYTES};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A part of the generated code.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Copy of the user's tokens in `from..to`.
    Copy {
        from: usize,
        to: usize,
        /// Includes the blanks and comments before the first token.
        lead: bool,
        /// Includes the blanks and comments after the last token.
        gap: bool,
    },
    /// Generated text. An end of line may be written as a blank.
    Text(String),
    /// Changes the indentation of the following lines by a number of steps.
    Indent(i32),
    /// The following generated text gets the line of this token, for errors and debuggers.
    At(usize),
    /// The pieces up to `End` replace the construct that begins at this token, and are indented as that was.
    Begin(usize),
    End,
}

/// Replaces a range of tokens by pieces; with an empty range, inserts the pieces before its token.
#[derive(Debug)]
pub struct Edit {
    pub range: Range,
    pub pieces: Vec<Piece>,
}

/// The code that is generated for a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A fork: another worker may take its call.
    Parallel,
    /// The block, and then the call.
    Serial,
}

/// A construct of the user's text that is replaced, by its index in `Parsed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Fork(usize),
    Jump(usize),
    Sequence(usize),
}

/// The pieces that replace a range of the user's text.
type Instead = (Range, Vec<Piece>);

struct Writer<'a> {
    parsed: &'a Parsed,
    words: &'a dyn Words,
    style: Style,
    sites: Vec<Site>,
    /// Sorted by their beginning; an outer construct comes before the inner ones.
    constructs: Vec<(Range, What)>,
    /// For each external declaration, by its first token: whether it uses `lvd_stolen`.
    asks: HashMap<usize, bool>,
    /// Sequences after which the semicolon of the statement is written, since the user's statement ends with a block.
    closing: HashSet<usize>,
    /// Forks at the end of these sequences, after which none is written.
    closed: HashSet<usize>,
    /// Types and functions to insert before an external declaration, by its first token and their name.
    needs: RefCell<BTreeMap<usize, BTreeMap<String, Vec<Piece>>>>,
}

/// All edits of a file, sorted by place, or what was refused. `asks` tells whether an external declaration uses
/// `lvd_stolen`.
pub fn edits(
    parsed: &Parsed,
    words: &dyn Words,
    style: Style,
    asks: &dyn Fn(&External) -> bool,
) -> Result<Vec<Edit>, Vec<Refusal>> {
    stacker::grow(STACK_BYTES, || written(parsed, words, style, asks))
}

fn written(
    parsed: &Parsed,
    words: &dyn Words,
    style: Style,
    asks: &dyn Fn(&External) -> bool,
) -> Result<Vec<Edit>, Vec<Refusal>> {
    let mut sites = Vec::new();
    let mut refusals = Vec::new();
    let mut order: Vec<usize> = (0..parsed.forks.len()).collect();
    order.sort_by_key(|&i| parsed.forks[i].bang);
    let mut ordinals: HashMap<&str, usize> = HashMap::new();
    let mut names = HashMap::new();
    for (number, &i) in order.iter().enumerate() {
        let fork = &parsed.forks[i];
        let ordinal = ordinals.entry(&fork.function).or_insert(0);
        *ordinal += 1;
        names.insert(i, (number + 1, *ordinal));
    }
    for (i, fork) in parsed.forks.iter().enumerate() {
        let (number, ordinal) = names[&i];
        match site(parsed, fork, number, ordinal) {
            Ok(site) => sites.push(site),
            Err(refusal) => refusals.push(*refusal),
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let jumps = parsed.jumps.iter().enumerate();
    let mut constructs: Vec<(Range, What)> = jumps.map(|(i, j)| (j.range, What::Jump(i))).collect();
    for (i, fork) in parsed.forks.iter().enumerate() {
        let range = match &fork.form {
            Form::Operand => fork.range(),
            Form::Statement(range) | Form::Return(range) => *range,
            Form::Assignment {
                whole, statement, ..
            } => statement.unwrap_or(*whole),
            Form::Declaration { assign, whole, .. } => Range {
                start: *assign,
                end: whole.end,
            },
        };
        constructs.push((range, What::Fork(i)));
    }
    for (i, sequence) in parsed.sequences.iter().enumerate() {
        constructs.push((
            sequence.statement.unwrap_or(sequence.range),
            What::Sequence(i),
        ));
    }
    // A `return` comes before the fork that is its whole value.
    constructs.sort_by_key(|(r, what)| {
        let later = matches!(what, What::Fork(_));
        (r.start, std::cmp::Reverse(r.end), later)
    });
    let (mut closing, mut closed) = (HashSet::new(), HashSet::new());
    for (i, fork) in parsed.forks.iter().enumerate().filter(|(_, f)| f.closes) {
        let sequences = parsed.sequences.iter().enumerate();
        let ending = sequences
            .filter(|(_, s)| s.range.end == fork.block.end && s.range.start <= fork.callee.start);
        if let Some((outermost, _)) = ending.min_by_key(|(_, s)| s.range.start) {
            closing.insert(outermost);
            closed.insert(i);
        }
    }
    let asks = parsed.externals.iter().map(|e| (e.start, asks(e)));
    let writer = Writer {
        parsed,
        words,
        style,
        sites,
        constructs,
        asks: asks.collect(),
        closing,
        closed,
        needs: RefCell::default(),
    };
    let mut edits = Vec::new();
    let mut behind = 0;
    for &(range, what) in &writer.constructs {
        if range.start >= behind {
            behind = range.end;
            let mut pieces = Vec::new();
            writer.construct(what, None, &mut pieces);
            edits.push(Edit { range, pieces });
        }
    }
    for external in &parsed.externals {
        edits.extend(writer.file_scope(external, &order));
    }
    edits.sort_by_key(|e| (e.range.start, e.range.end));
    Ok(edits)
}

fn text(pieces: &mut Vec<Piece>, words: impl Into<String>) {
    pieces.push(Piece::Text(words.into()));
}

impl Writer<'_> {
    fn construct(&self, what: What, form: Option<&Form>, pieces: &mut Vec<Piece>) {
        match what {
            What::Jump(i) => self.jump(i, pieces),
            What::Sequence(i) => self.sequence(i, pieces),
            What::Fork(i) => {
                let form = form.unwrap_or(&self.parsed.forks[i].form);
                self.fork(i, form, pieces);
            }
        }
    }
}
