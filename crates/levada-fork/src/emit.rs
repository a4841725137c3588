// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes the C that forks become, as pieces: text of our own, and text of the user's that is copied
//! as it stands, with the forks in it written in turn.

use crate::parse::{Access, External, Form, Jump, Kept, Parsed, Place, Range, Refusal, STACK};
use crate::site::{Site, declared, site};
use crate::types::{self, Type};
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

/// How the words of `<levada/fork.h>` are written: as its macros, or as what they stand for.
pub trait Words {
    fn push(&self, handle: &str, record: &str, variable: &str, run: &str) -> String;
    fn record(&self, slot: &str, record: &str) -> String;
    fn out(&self, handle: &str, record: &str, variable: &str) -> String;
    fn likely(&self, condition: &str) -> String;
}

/// The macros themselves.
#[derive(Debug)]
pub struct Macros;

impl Words for Macros {
    fn push(&self, handle: &str, record: &str, variable: &str, run: &str) -> String {
        format!("LVD_FORK_PUSH({handle}, {record}, {variable}, {run});")
    }

    fn record(&self, slot: &str, record: &str) -> String {
        format!("LVD_FORK_RECORD({slot}, {record})")
    }

    fn out(&self, handle: &str, record: &str, variable: &str) -> String {
        format!("LVD_FORK_OUT({handle}, {record}, {variable})")
    }

    fn likely(&self, condition: &str) -> String {
        format!("LVD_LIKELY({condition})")
    }
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
    /// The types and functions of the forks in a function, to stand before it.
    fn file_scope(&self, external: &External, order: &[usize]) -> Option<Edit> {
        let mut pieces = Vec::new();
        let needs = self.needs.borrow_mut().remove(&external.start);
        if self.style == Style::Serial && needs.is_none() {
            return None;
        }
        let here = order.iter().map(|&i| (i, &self.parsed.forks[i]));
        let here: Vec<_> = here.filter(|(_, f)| f.external == external.start).collect();
        let calls_itself = here
            .iter()
            .any(|(_, f)| f.name.as_ref() == Some(&external.name));
        if calls_itself && !external.known {
            match &external.old_style {
                Some(declaration) => text(&mut pieces, declaration),
                None => pieces.push(Piece::Copy {
                    from: external.head.start,
                    to: external.head.end,
                    lead: false,
                    gap: false,
                }),
            }
            text(&mut pieces, ";\n");
        }
        for (i, _) in here {
            let site = &self.sites[i];
            if self.style == Style::Serial {
                continue;
            }
            text(&mut pieces, site.typedefs.concat());
            let (record, run) = (site.record(), site.run());
            let members: Vec<String> = site.members.iter().map(|m| format!("{m}; ")).collect();
            let out = match &site.out {
                Some(out) => format!(" {out};"),
                None => String::new(),
            };
            text(
                &mut pieces,
                format!(
                    "typedef union {record} {{ struct {{ {}}} lvd_in;{out} }} {record};\n",
                    members.concat()
                ),
            );
            let target = &external.target;
            let head = format!("static {target}void {run}(lvd_fork *lvd_slot) {{");
            let call = site.call("lvd_r->");
            let keep = if site.out.is_some() {
                "lvd_r->lvd_out = "
            } else {
                ""
            };
            text(&mut pieces, head);
            pieces.push(Piece::Indent(1));
            let named = match site.args == 0 && site.callee.is_some() && site.out.is_none() {
                true => "\n(void)lvd_slot;".to_string(),
                false => {
                    let from = self.words.record("lvd_slot", &record);
                    format!("\n{record} *lvd_r = {from};")
                }
            };
            text(&mut pieces, format!("{named}\n{keep}"));
            pieces.push(self.called_at(i));
            text(&mut pieces, format!("{call};"));
            pieces.push(Piece::Indent(-1));
            text(&mut pieces, "\n}\n");
        }
        pieces.extend(needs.into_iter().flatten().flat_map(|(_, pieces)| pieces));
        text(&mut pieces, "\n");
        Some(Edit {
            range: Range {
                start: external.start,
                end: external.start,
            },
            pieces,
        })
    }

    /// Something that stands before a function, under a name of ours.
    fn need(&self, external: usize, name: String, pieces: impl FnOnce() -> Vec<Piece>) {
        let mut needs = self.needs.borrow_mut();
        let of = needs.entry(external).or_default();
        of.entry(name).or_insert_with(pieces);
    }

    /// Declares a variable in a function. Where a word of its type means something else there, the type
    /// gets a name before the function.
    fn variable(
        &self,
        external: usize,
        hidden: &HashSet<String>,
        ty: Option<&Type>,
        type_name: String,
        name: &str,
    ) -> String {
        let Some(ty) = ty else {
            return format!("__extension__ __auto_type {name}");
        };
        let words = declared(self.parsed, ty, name);
        let identifiers = words.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        if !identifiers.into_iter().any(|w| hidden.contains(w)) {
            return words;
        }
        let named = format!("{type_name} {name}");
        let declaration = format!("typedef {};\n", declared(self.parsed, ty, &type_name));
        self.need(external, type_name, || vec![Piece::Text(declaration)]);
        named
    }

    /// A variable of a fork, beside the block.
    fn own(&self, fork: usize, ty: Option<&Type>, kind: &str, name: &str) -> String {
        let of = &self.parsed.forks[fork];
        let type_name = format!("lvd_{kind}_{}", self.sites[fork].name);
        self.variable(of.external, &of.hidden, ty, type_name, name)
    }

    /// The user's text, with what is to be written in it.
    fn copy(&self, range: Range, pieces: &mut Vec<Piece>) {
        let first = self
            .constructs
            .partition_point(|(r, _)| r.start < range.start);
        let inner = self.constructs[first..].iter();
        let inner = inner.take_while(|(r, _)| r.start < range.end);
        let inner = inner.map(|(r, what)| (*r, *what));
        self.copy_with(
            range,
            inner,
            |what, pieces| {
                pieces.push(Piece::Begin(what.0.start));
                self.construct(what.1, None, pieces);
                pieces.push(Piece::End);
            },
            pieces,
        );
    }

    /// The same with some parts of it replaced.
    fn copy_instead(&self, range: Range, but: What, instead: &[Instead], pieces: &mut Vec<Piece>) {
        let first = self
            .constructs
            .partition_point(|(r, _)| r.start < range.start);
        let inner = self.constructs[first..].iter();
        let inner = inner.take_while(|(r, _)| r.start < range.end);
        let inner = inner.filter(|(_, what)| *what != but);
        let mut all: Vec<(Range, Result<What, usize>)> =
            inner.map(|(r, what)| (*r, Ok(*what))).collect();
        all.extend(instead.iter().enumerate().map(|(i, (r, _))| (*r, Err(i))));
        all.sort_by_key(|(r, what)| (r.start, std::cmp::Reverse(r.end), what.is_ok()));
        self.copy_with(
            range,
            all.into_iter(),
            |what, pieces| match what.1 {
                Ok(construct) => {
                    pieces.push(Piece::Begin(what.0.start));
                    self.construct(construct, None, pieces);
                    pieces.push(Piece::End);
                }
                Err(i) => pieces.extend_from_slice(&instead[i].1),
            },
            pieces,
        );
    }

    fn copy_with<T>(
        &self,
        range: Range,
        inner: impl Iterator<Item = (Range, T)>,
        write: impl Fn((Range, T), &mut Vec<Piece>),
        pieces: &mut Vec<Piece>,
    ) {
        let mut at = range.start;
        for (place, what) in inner {
            if place.start < at || place.end > range.end {
                continue;
            }
            if place.start > at {
                pieces.push(Piece::Copy {
                    from: at,
                    to: place.start,
                    lead: at > range.start,
                    gap: true,
                });
            }
            write((place, what), pieces);
            at = place.end;
        }
        if at < range.end {
            pieces.push(Piece::Copy {
                from: at,
                to: range.end,
                lead: at > range.start,
                gap: false,
            });
        }
    }

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

    /// Step by step, in order.
    fn sequence(&self, number: usize, pieces: &mut Vec<Piece>) {
        let sequence = &self.parsed.sequences[number];
        let statement = sequence.statement.is_some();
        let open = match (statement, sequence.place) {
            (true, _) => "{",
            (false, false) => "__extension__({",
            (false, true) => "(*__extension__({",
        };
        text(pieces, open);
        pieces.push(Piece::Indent(1));
        let mut instead: Vec<Instead> = Vec::new();
        // What a fork is joined by are statements, and behind those nothing is declared in the C of 1990.
        let mut deeper = 0;
        for (i, step) in sequence.steps.iter().enumerate() {
            let name = format!("lvd_o{}_{}", number + 1, i + 1);
            let before = i.checked_sub(1).map(|i| &sequence.steps[i].what);
            if matches!(before, Some(Kept::Fork(_))) {
                text(
                    pieces,
                    if statement {
                        "\n{"
                    } else {
                        "\n__extension__({"
                    },
                );
                pieces.push(Piece::Indent(1));
                deeper += 1;
            }
            let mut keep = |begin: &str, end: &str| {
                text(
                    pieces,
                    format!("\n__extension__ __auto_type {name} = {begin}"),
                );
                self.copy(step.range, pieces);
                text(pieces, format!("{end};"));
                vec![Piece::Text(name.clone())]
            };
            let kept = match &step.what {
                Kept::Value => keep("", ""),
                Kept::Member { arithmetic: true } => keep("+(", ")"),
                Kept::Member { .. } => keep("((void)0, ", ")"),
                Kept::Object => {
                    keep("&(", ")");
                    vec![Piece::Text(format!("(*{name})"))]
                }
                Kept::Place(place) => {
                    let (before, after) = self.keep(step.range, place, &name);
                    text(pieces, "\n");
                    pieces.extend(before);
                    after
                }
                Kept::Fork(fork) => {
                    let value = self.value(*fork, &[], pieces);
                    vec![Piece::Text(value.unwrap_or("(void)0".into()))]
                }
            };
            instead.push((step.range, kept));
        }
        text(pieces, if sequence.place { "\n&(" } else { "\n" });
        self.copy_instead(sequence.range, What::Sequence(number), &instead, pieces);
        text(pieces, if sequence.place { ");" } else { ";" });
        for _ in 0..deeper {
            pieces.push(Piece::Indent(-1));
            text(pieces, if statement { "\n}" } else { "\n});" });
        }
        pieces.push(Piece::Indent(-1));
        let close = match statement {
            true => "\n}",
            false if sequence.place => "\n}))",
            false if self.closing.contains(&number) => "\n});",
            false => "\n})",
        };
        text(pieces, close);
    }

    fn asks(&self, fork: usize) -> bool {
        let external = self.parsed.forks[fork].external;
        self.asks.get(&external).copied().unwrap_or(false)
    }

    /// Joins a fork: `keep` begins the statement that takes the result.
    fn join(&self, fork: usize, keep: Option<&[Piece]>, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let keep = keep.filter(|_| site.out.is_some());
        if self.style == Style::Serial {
            text(pieces, "\n");
            pieces.extend_from_slice(keep.unwrap_or_default());
            pieces.push(self.called_at(fork));
            return text(pieces, format!("{};", self.call(fork)));
        }
        let (handle, variable) = (format!("lvd_h{n}"), format!("lvd_r{n}"));
        let asks = self.asks(fork);
        let taking = |value: &str, stolen: u32| {
            let mut body = keep.unwrap_or_default().to_vec();
            body.push(self.called_at(fork));
            text(&mut body, format!("{value};"));
            if asks {
                text(&mut body, format!("\nlvd_stolen_set({stolen});"));
            }
            body
        };
        let call = taking(&self.call(fork), 0);
        let pop = self.words.likely(&format!("lvd_fork_pop({handle})"));
        // The call stands there twice, since compilers then make the common way much better.
        let mut branches = vec![
            (format!("if ({pop})"), call.clone()),
            (format!("else if (lvd_fork_join_seldom({handle}))"), call),
        ];
        if keep.is_some() {
            let out = self.words.out(&handle, &site.record(), &variable);
            branches.push(("else".into(), taking(&format!("{out}->lvd_out"), 1)));
        } else if asks {
            let told = Piece::Text("lvd_stolen_set(1);".into());
            branches.push(("else".into(), vec![told]));
        }
        for (i, (head, body)) in branches.into_iter().enumerate() {
            let before = if asks && i > 0 { "\n} " } else { "\n" };
            text(
                pieces,
                format!("{before}{head}{}", if asks { " {" } else { "" }),
            );
            pieces.push(Piece::Indent(1));
            text(pieces, "\n");
            pieces.extend(body);
            pieces.push(Piece::Indent(-1));
        }
        if asks {
            text(pieces, "\n}");
        }
    }

    /// The arguments, the fork, and the block. `before` goes between the variables and the arguments.
    fn open(&self, fork: usize, before: &[Piece], pieces: &mut Vec<Piece>) {
        self.open_with(fork, None, before, pieces);
    }

    /// The same with a variable for the result, and its join; none where there is no result.
    fn value(&self, fork: usize, before: &[Piece], pieces: &mut Vec<Piece>) -> Option<String> {
        let site = &self.sites[fork];
        if site.out.is_none() {
            self.open(fork, before, pieces);
            self.join(fork, None, pieces);
            return None;
        }
        let name = format!("lvd_v{}", site.number);
        let declared = self.own(fork, site.type_of_result(), "result", &name);
        self.open_with(fork, Some(declared), before, pieces);
        self.join(fork, Some(&[Piece::Text(format!("{name} = "))]), pieces);
        Some(name)
    }

    fn open_with(
        &self,
        fork: usize,
        result: Option<String>,
        before: &[Piece],
        pieces: &mut Vec<Piece>,
    ) {
        let site = &self.sites[fork];
        let n = site.number;
        let of = &self.parsed.forks[fork];
        let serial = self.style == Style::Serial;
        text(pieces, "\n");
        if !serial {
            let record = site.record();
            text(pieces, format!("{record} lvd_r{n};\nlvd_fork *lvd_h{n};\n"));
        }
        if let Some(result) = result {
            text(pieces, format!("{result};\n"));
        }
        pieces.extend_from_slice(before);
        if !before.is_empty() {
            text(pieces, "\n");
        }
        if site.callee.is_none() {
            match serial {
                true => {
                    let name = format!("lvd_f{n}");
                    let declared = self.own(fork, site.type_of_callee(), "callee", &name);
                    text(pieces, format!("{declared} = "));
                }
                false => text(pieces, format!("lvd_r{n}.lvd_in.lvd_call = ")),
            }
            self.copy(of.callee, pieces);
            text(pieces, ";\n");
        }
        for (i, &arg) in of.args.iter().enumerate().filter(|(i, _)| site.is_kept(*i)) {
            let (begin, end) = match serial {
                true => {
                    let (ty, kind) = (site.type_of_argument(i), format!("argument{i}"));
                    let declared = self.own(fork, ty, &kind, &site.argument(i));
                    (format!("{declared} = "), ";".into())
                }
                false => site.keep_argument(i),
            };
            text(pieces, begin);
            self.copy(arg, pieces);
            text(pieces, end + "\n");
        }
        if !serial {
            if site.keeps_nothing() {
                text(pieces, format!("lvd_r{n}.lvd_in.lvd_none = 0;\n"));
            }
            let (handle, variable) = (format!("lvd_h{n}"), format!("lvd_r{n}"));
            let push = self
                .words
                .push(&handle, &site.record(), &variable, &site.run());
            text(pieces, push + "\n");
        }
        self.copy(of.block, pieces);
    }

    /// The place of the call that was written.
    fn called_at(&self, fork: usize) -> Piece {
        Piece::At(self.parsed.forks[fork].callee.start)
    }

    /// The call, in the function that forks.
    fn call(&self, fork: usize) -> String {
        let site = &self.sites[fork];
        match self.style {
            Style::Parallel => site.call(&format!("lvd_r{}.", site.number)),
            Style::Serial => site.serial_call(),
        }
    }

    /// Keeps the left side of an assignment: what to write before the fork, and the left side after it.
    fn keep(&self, left: Range, place: &Place, name: &str) -> (Vec<Piece>, Vec<Piece>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut keep = |name: &str, address: &str, of: Range| {
            if !before.is_empty() {
                text(&mut before, "\n");
            }
            let declared = format!("__extension__ __auto_type {name} = {address}(");
            text(&mut before, declared);
            self.copy(of, &mut before);
            text(&mut before, ");");
        };
        match place {
            Place::Plain => self.copy(left, &mut after),
            Place::Address => {
                keep(name, "&", left);
                text(&mut after, format!("*{name}"));
            }
            Place::Path {
                base,
                pointer,
                steps,
            } => {
                let mut before_member = "->";
                if !pointer && base.end == base.start + 1 {
                    // A variable is the same whenever it is named; and it may be one without address.
                    self.copy(*base, &mut after);
                    before_member = ".";
                } else {
                    keep(name, if *pointer { "" } else { "&" }, *base);
                    match steps.first() {
                        Some(Access::Index(_)) => text(&mut after, format!("(*{name})")),
                        _ => text(&mut after, name),
                    }
                }
                for (i, step) in steps.iter().enumerate() {
                    match *step {
                        Access::Member(member) => {
                            text(&mut after, before_member);
                            let (start, end) = (member, member + 1);
                            self.copy(Range { start, end }, &mut after);
                        }
                        Access::Index(index) => {
                            let at = format!("{name}_i{i}");
                            keep(&at, "+", index); // of a bit-field, too
                            text(&mut after, format!("[{at}]"));
                        }
                    }
                    before_member = ".";
                }
            }
        }
        (before, after)
    }

    fn assign(&self, op: usize, after: &mut Vec<Piece>) {
        text(after, " ");
        after.push(Piece::Copy {
            from: op,
            to: op + 1,
            lead: false,
            gap: false,
        });
        text(after, " ");
    }

    fn fork(&self, fork: usize, form: &Form, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let closing = self.closing(fork);
        let begin = |pieces: &mut Vec<Piece>, open: &str| {
            text(pieces, open);
            pieces.push(Piece::Indent(1));
        };
        let end = |pieces: &mut Vec<Piece>, close: &str| {
            pieces.push(Piece::Indent(-1));
            text(pieces, close);
        };
        match form {
            Form::Statement(_) => {
                begin(pieces, "{");
                self.open(fork, &[], pieces);
                self.join(fork, None, pieces);
                // The result of a stolen call is left where it is.
                end(pieces, "\n}");
            }
            Form::Assignment {
                left,
                place,
                op,
                statement: Some(_),
                ..
            } => {
                let (before, mut after) = self.keep(*left, place, &format!("lvd_p{n}"));
                self.assign(*op, &mut after);
                begin(pieces, "{");
                self.open(fork, &before, pieces);
                self.join(fork, Some(&after), pieces);
                end(pieces, "\n}");
            }
            Form::Assignment {
                left, place, op, ..
            } => {
                let (before, mut after) = self.keep(*left, place, &format!("lvd_p{n}"));
                self.assign(*op, &mut after);
                begin(pieces, "__extension__({");
                self.value(fork, &before, pieces);
                text(pieces, "\n");
                pieces.extend(after);
                text(pieces, format!("lvd_v{n};"));
                end(pieces, &format!("\n}}){closing}"));
            }
            Form::Declaration { name, .. } => {
                begin(pieces, ";\n{");
                self.open(fork, &[], pieces);
                let keep = [Piece::Text(format!("{name} = "))];
                self.join(fork, Some(&keep), pieces);
                end(pieces, "\n}");
            }
            Form::Return(_) => {
                begin(pieces, "{");
                let value = self.value(fork, &[], pieces);
                let value = value.map_or(String::new(), |v| format!(" {v}"));
                text(pieces, format!("\nreturn{value};"));
                end(pieces, "\n}");
            }
            Form::Operand => {
                begin(pieces, "__extension__({");
                let value = self.value(fork, &[], pieces);
                // No compiler says of an assignment that nobody uses its value.
                let value = value.map(|v| match self.parsed.forks[fork].unused {
                    true => format!("{v} = *&{v}"),
                    false => v,
                });
                text(pieces, format!("\n{};", value.unwrap_or("(void)0".into())));
                end(pieces, &format!("\n}}){closing}"));
            }
        }
    }

    /// What ends the statement, where a fork that is only a part of it does.
    fn closing(&self, fork: usize) -> &'static str {
        match self.parsed.forks[fork].closes && !self.closed.contains(&fork) {
            true => ";",
            false => "",
        }
    }

    /// A jump that leaves forks: they are joined first, and their results dropped.
    fn jump(&self, number: usize, pieces: &mut Vec<Piece>) {
        let jump = &self.parsed.jumps[number];
        let variable = format!("lvd_back{}", number + 1);
        text(pieces, "{");
        pieces.push(Piece::Indent(1));
        let mut back = None;
        if let Some(value) = jump.value {
            let ty = jump.result.as_ref().map(types::unqualified);
            let here = self.parsed.externals.iter();
            let here = here.filter(|e| e.start == jump.external).map(|e| &e.name);
            let type_name = format!("lvd_back_{}", here.cloned().collect::<String>());
            let (external, hidden) = (jump.external, &jump.hidden);
            let declared = self.variable(external, hidden, ty.as_ref(), type_name, &variable);
            match jump.void {
                true => text(pieces, "\n"),
                false => {
                    text(pieces, format!("\n{declared} = "));
                    text(pieces, if jump.comma { "(" } else { "" });
                    back = Some(&variable);
                }
            }
            // A fork that is all that is returned is a part of this now.
            let whole = |w: &What| match w {
                What::Fork(i) => self.parsed.forks[*i].range() == value,
                What::Jump(_) | What::Sequence(_) => false,
            };
            match self.constructs.iter().find(|(_, w)| whole(w)) {
                Some((_, what)) => self.construct(*what, Some(&Form::Operand), pieces),
                None => self.copy(value, pieces),
            }
            text(
                pieces,
                if jump.comma && back.is_some() {
                    ");"
                } else {
                    ";"
                },
            );
        }
        for &fork in &jump.forks {
            let site = &self.sites[fork];
            let keep = Piece::Text(format!("lvd_r{}.lvd_out = ", site.number));
            self.leave(fork, jump, &keep, pieces);
        }
        text(pieces, "\n");
        match (jump.value, back) {
            (Some(_), Some(back)) => text(pieces, format!("return {back};")),
            (Some(_), None) => text(pieces, "return;"),
            (None, _) => pieces.push(Piece::Copy {
                from: jump.range.start,
                to: jump.range.end,
                lead: false,
                gap: false,
            }),
        }
        pieces.push(Piece::Indent(-1));
        text(pieces, "\n}");
    }

    /// Joins a fork whose result nobody wants.
    fn leave(&self, fork: usize, jump: &Jump, keep: &Piece, pieces: &mut Vec<Piece>) {
        let site = &self.sites[fork];
        let n = site.number;
        let call = self.call_from(fork, jump);
        if self.style == Style::Serial {
            text(pieces, if site.out.is_some() { "\n(void)" } else { "\n" });
            pieces.push(self.called_at(fork));
            return text(pieces, format!("{call};"));
        }
        let join = self.words.likely(&format!("lvd_fork_join(lvd_h{n})"));
        text(pieces, format!("\nif ({join}) {{"));
        pieces.push(Piece::Indent(1));
        text(pieces, "\n");
        if site.out.is_some() {
            pieces.push(keep.clone());
        }
        pieces.push(self.called_at(fork));
        text(pieces, format!("{call};"));
        pieces.push(Piece::Indent(-1));
        text(pieces, "\n}");
    }

    /// The call, from inside the block: there its name may mean something else.
    fn call_from(&self, fork: usize, jump: &Jump) -> String {
        let site = &self.sites[fork];
        let hidden = site
            .callee
            .as_ref()
            .is_some_and(|n| jump.hidden.contains(n));
        if !hidden {
            return self.call(fork);
        }
        let name = site.called_elsewhere();
        self.need(self.parsed.forks[fork].external, name.clone(), || {
            let (head, call) = site.elsewhere(self.parsed);
            let mut pieces = Vec::new();
            let external = self.parsed.forks[fork].external;
            let mut externals = self.parsed.externals.iter();
            let target = externals
                .find(|e| e.start == external)
                .map_or("", |e| e.target.as_str());
            text(&mut pieces, format!("{target}{head} {{"));
            pieces.push(Piece::Indent(1));
            text(&mut pieces, "\n");
            pieces.push(self.called_at(fork));
            text(&mut pieces, format!("{call};"));
            pieces.push(Piece::Indent(-1));
            text(&mut pieces, "\n}\n");
            pieces
        });
        match self.style {
            Style::Parallel => site.call_elsewhere(&format!("lvd_r{}.", site.number)),
            Style::Serial => site.serial_call_elsewhere(),
        }
    }
}
