// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the C that forks become, as pieces: text of our own, and text of the user's that is copied
//! as it stands, with the forks in it written in turn.

mod copy;
mod fork;
mod jump;
mod order;
mod scope;
mod words;

pub use words::{Macros, Words};

use crate::parse::{External, Form, Parsed, Range, Refusal, STACK};
use crate::site::{Site, site};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Clone, Debug)]
pub enum Piece {
    /// The user's text: the tokens from one to before another. With what stands before the first
    /// (`lead`) and behind the last (`gap`).
    Copy {
        from: usize,
        to: usize,
        lead: bool,
        gap: bool,
    },
    /// Ours. An end of line may be written as a blank.
    Text(String),
    /// Further lines are indented by so many steps more or less.
    Indent(i32),
    /// What follows is ours, but belongs to where this token stands: errors and debuggers point there.
    At(usize),
    /// What follows, up to `End`, stands for what begins at this token: it is indented as that was.
    Begin(usize),
    End,
}

/// Some tokens become pieces; with none, the pieces go before them.
#[derive(Debug)]
pub struct Edit {
    pub range: Range,
    pub pieces: Vec<Piece>,
}

/// What forks are turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Into forks.
    Parallel,
    /// Into the block, and then the call: what a fork does that nobody takes.
    Serial,
}

/// What stands in the text instead of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Fork(usize),
    Jump(usize),
    Sequence(usize),
}

/// What stands for a part of the user's text, and where.
type Instead = (Range, Vec<Piece>);

struct Writer<'a> {
    parsed: &'a Parsed,
    words: &'a dyn Words,
    style: Style,
    sites: Vec<Site>,
    /// By where they begin; the larger before what is in it.
    constructs: Vec<(Range, What)>,
    /// Functions that ask lvd_stolen, by where they begin.
    asks: HashMap<usize, bool>,
    /// Which sequences end their statement, in the place of the fork at their end.
    closing: HashSet<usize>,
    /// Forks that do so no more.
    closed: HashSet<usize>,
    /// What the functions with forks need before them besides, by name: by where they begin.
    needs: RefCell<BTreeMap<usize, BTreeMap<String, Vec<Piece>>>>,
}

/// All edits of a file, in their order. `asks` says whether an external declaration mentions lvd_stolen.
pub fn edits(
    parsed: &Parsed,
    words: &dyn Words,
    style: Style,
    asks: &dyn Fn(&External) -> bool,
) -> Result<Vec<Edit>, Vec<Refusal>> {
    stacker::grow(STACK, || written(parsed, words, style, asks))
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
    // A jump comes before the fork that is all of it.
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
