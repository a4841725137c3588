// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The emitter: translates a network to readable C.
//!
//! Each actor class becomes one section: a struct with the state of an instance, constant tables, procedures, a
//! guard and a function for each action, and `run`. The network follows as constant tables; the last one,
//! `levada_network`, is the only exported symbol.
//!
//! The code is C17 with a few attributes of gcc and clang. Its meaning depends on no flag, except that
//! floating-point operations must not be contracted (`-ffp-contract=off`).

mod actor;
mod bounds_check_hoist;
mod branchless_select;
mod candidate_scan;
mod class;
mod class_build;
mod counted_loop;
mod expr;
mod firing_sequence;
mod inline;
mod large_locals;
mod memory;
mod native;
mod refire_loop;
mod register_promotion;
mod schedule;
mod stmt;
mod value;
mod vlc_walk;
mod writer;

pub use class::prints;
pub use stmt::needs_zero;

use crate::c_types::size_of;
use crate::diag::Diagnostic;
use crate::ir::action::{consumed, produced};
use crate::ir::*;
use crate::native_signature::NativeSignature;
use class::Class;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use writer::{Lines, Names, Writer, comment, string_literal};

#[derive(Clone, Debug)]
pub struct Options {
    /// Check list indices and divisors where they are not proven.
    pub checks: bool,
    /// Reading out of bounds gives the nearest element, writing out of bounds does nothing.
    pub lenient: bool,
    /// Seed for random channel sizes, with which the output must be the same.
    pub random_buffer_sizes: Option<u64>,
    /// The symbol of the network's record.
    pub symbol: String,
    /// If the code has more bytes than this, each actor class gets a file of its own.
    pub split: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            checks: true,
            lenient: false,
            random_buffer_sizes: None,
            symbol: "levada_network".to_string(),
            split: 400_000,
        }
    }
}

#[derive(Debug)]
pub struct File {
    pub name: String,
    pub text: String,
}

#[derive(Debug)]
pub struct Emitted {
    pub files: Vec<File>,
    /// Native functions that must be found when it is linked.
    pub natives: Vec<String>,
    /// The file and line of each declaration.
    pub declared: BTreeMap<String, String>,
    /// Native actor classes (`lvd_actor_class`) that must be found when it is linked.
    pub native_actors: Vec<String>,
    /// Their declarations in the actors; two actors may declare one function differently.
    pub signatures: Vec<NativeSignature>,
    pub warnings: Vec<Diagnostic>,
    /// The number of index checks that could not be omitted.
    pub checks: u32,
}

const PRELUDE: &str = include_str!("prelude.h");

/// The default size of a channel in bytes, and its minimum in elements. It lets stages that take turns being the
/// slowest run ahead of each other (docs/decisions/sizes-of-channels.md).
const CHANNEL_BYTES: u32 = 64 * 1024;
const CHANNEL_ELEMENTS_MIN: u32 = 512;

pub fn emit(net: &Network, options: &Options) -> Emitted {
    let lines = Lines::new(&net.files);
    let mut classes: Vec<(Arc<Actor>, String)> = Vec::new();
    let mut names = Names::default();
    let mut known = HashMap::new();
    let mut class_of = Vec::new();
    for i in &net.instances {
        let at = *known.entry(Arc::as_ptr(&i.actor)).or_insert(classes.len());
        if at == classes.len() {
            classes.push((i.actor.clone(), names.fresh(&i.actor.name)));
        }
        class_of.push(at);
    }
    let mut declared = BTreeMap::new();
    let procs = || classes.iter().flat_map(|(a, _)| &a.procs);
    for proc in procs().filter(|p| p.native) {
        let place = || format!("{}:{}", lines.path(proc.span), lines.line(proc.span));
        declared.entry(proc.name.clone()).or_insert_with(place);
    }
    let natives = declared.keys().cloned().collect();
    let mut native_actors: Vec<String> = classes
        .iter()
        .filter_map(|(a, _)| Some(a.native.as_ref()?.class.clone()))
        .collect();
    native_actors.sort();
    native_actors.dedup();
    let mut signatures: Vec<NativeSignature> = Vec::new();
    for proc in procs() {
        let is = NativeSignature::of(proc);
        if proc.native && !signatures.contains(&is) {
            signatures.push(is);
        }
    }

    let mut checks = 0;
    let mut texts = Vec::new();
    for (actor, prefix) in &classes {
        if let Some(native) = &actor.native {
            texts.push(native::declaration(native));
            continue;
        }
        let class = Class::new(actor, prefix.clone(), options);
        let file = format!("{}.c", short_name(net));
        let mut w = Writer::new(&file, &lines);
        // The first row of each section is known only when the sections are joined.
        class.emit(&mut w);
        checks += class.checks_emitted();
        texts.push(w.text);
    }
    let tables = network_tables(net, &classes, &class_of, options);
    let files = join_files(net, &classes, texts, &tables, options);
    Emitted {
        files,
        natives,
        declared,
        native_actors,
        signatures,
        warnings: Vec::new(),
        checks,
    }
}

/// The network's name without its package.
fn short_name(net: &Network) -> &str {
    net.name.rsplit('.').next().unwrap_or("network")
}

fn join_files(
    net: &Network,
    classes: &[(Arc<Actor>, String)],
    texts: Vec<String>,
    tables: &str,
    options: &Options,
) -> Vec<File> {
    let head = |what: &str| {
        format!(
            "/* {} of the network {}, compiled by Levada {}. */\n{PRELUDE}",
            what,
            comment(&net.name),
            env!("CARGO_PKG_VERSION")
        )
    };
    let short = short_name(net);
    let total: usize = texts.iter().map(String::len).sum();
    if total <= options.split || texts.len() < 2 {
        let mut text = head("All actors");
        for ((_, prefix), t) in classes.iter().zip(&texts) {
            let t = t.replace(
                &format!("\nconst lvd_actor_class {prefix}_class ="),
                &format!("\nstatic const lvd_actor_class {prefix}_class ="),
            );
            text += &t;
        }
        text += tables;
        return vec![File {
            name: format!("{short}.c"),
            text: renumber(text),
        }];
    }
    let mut files = Vec::new();
    let hidden = "__attribute__((visibility(\"hidden\")))";
    let mut externs = String::new();
    for ((actor, prefix), t) in classes.iter().zip(texts) {
        if actor.native.is_some() {
            externs += &t;
            continue;
        }
        let declaration = format!("extern const lvd_actor_class {prefix}_class {hidden};\n");
        let text = format!("{}\n{declaration}{t}", head("One actor"));
        externs += &declaration;
        files.push(File {
            name: format!("{prefix}.c"),
            text: renumber(text),
        });
    }
    let text = format!("{}\n{externs}{tables}", head("The connections"));
    // An actor may have the network's name.
    let mut name = short.to_string();
    while classes.iter().any(|(_, prefix)| *prefix == name) {
        name += "_network";
    }
    files.push(File {
        name: format!("{name}.c"),
        text: renumber(text),
    });
    files
}

/// Fills in `#line` directives that refer to the C file itself.
fn renumber(text: String) -> String {
    let mut out = String::with_capacity(text.len());
    for (row, line) in text.lines().enumerate() {
        match line.strip_prefix("#line ").and_then(|r| r.split_once(' ')) {
            Some((_, file)) if file.ends_with(".c\"") => {
                out += &format!("#line {} {file}\n", row + 2);
            }
            _ => {
                out += line;
                out.push('\n');
            }
        }
    }
    out
}

/// The default capacity of a channel with elements of `size` bytes, of which one firing moves at most `most`.
pub fn default_capacity(size: u32, most: u32) -> u32 {
    (CHANNEL_BYTES / size)
        .max(CHANNEL_ELEMENTS_MIN)
        .max(most.saturating_mul(4))
}

/// A random capacity at load, from `most`, which one firing moves, to the usual one; small ones are as frequent as
/// large ones. Channels that are too small grow.
fn random_capacity(seed: u64, most: u32, usual: u32) -> u32 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let least = most.max(1);
    let usual = usual.max(least);
    let doublings = (usual / least).ilog2().max(1);
    let low = least << (x % u64::from(doublings));
    usual.min(low + ((x >> 32) % u64::from(low)) as u32)
}

/// The maximum number of elements that one firing consumes from each input and produces for each output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bursts {
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
}

impl Bursts {
    pub fn of(actor: &Actor) -> Bursts {
        let mut most = Bursts {
            inputs: vec![0; actor.inputs.len()],
            outputs: vec![0; actor.outputs.len()],
        };
        for a in actor.actions.iter().chain(&actor.initializers) {
            for (port, n) in consumed(a) {
                most.inputs[port] = most.inputs[port].max(n);
            }
            for (port, n) in produced(a) {
                most.outputs[port] = most.outputs[port].max(n);
            }
        }
        most
    }
}

fn network_tables(
    net: &Network,
    classes: &[(Arc<Actor>, String)],
    class_of: &[usize],
    options: &Options,
) -> String {
    let mut t = format!("\n/* ---- network {} ---- */\n", comment(&net.name));
    let mut actors: Vec<String> = net
        .instances
        .iter()
        .zip(class_of)
        .map(|(i, c)| {
            format!(
                "  {{{}, &{}, {}, {}}},\n",
                string_literal(&i.name),
                class_name(&classes[*c]),
                if has_params(&classes[*c].0) {
                    format!("&levada_params_{c}")
                } else {
                    "NULL".to_string()
                },
                i.priority.clamp(-4, 3)
            )
        })
        .collect();
    for (k, (actor, _)) in classes.iter().enumerate() {
        let native = actor.native.as_ref();
        t.extend(native.and_then(|n| native::params(n, &format!("levada_params_{k}"))));
    }
    let bursts: Vec<Bursts> = classes.iter().map(|(a, _)| Bursts::of(a)).collect();
    let bursts = |instance: usize| &bursts[class_of[instance]];
    let mut channels = Vec::new();
    for (k, c) in net.channels.iter().enumerate() {
        let from = &net.instances[c.from.instance];
        let port = &from.actor.outputs[c.from.port];
        let size = size_of(&port.ty);
        let mut most = bursts(c.from.instance).outputs[c.from.port];
        for e in &c.to {
            most = most.max(bursts(e.instance).inputs[e.port]);
        }
        let capacity = match c.capacity {
            // A channel with less room than one firing needs would block for ever; `rates` warns about it.
            Some(n) => n.max(most).max(1),
            None => default_capacity(size, most),
        };
        let seed = options.random_buffer_sizes;
        let initial = seed.map_or(0, |seed| {
            random_capacity(seed.wrapping_add(k as u64), most, capacity)
        });
        t += &format!("static const lvd_port_ref levada_to_{k}[] = {{");
        for (i, e) in c.to.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            t += &format!("{comma}{{{}, {}}}", e.instance, e.port);
        }
        t += "};\n";
        channels.push(format!(
            "  {{{{{}, {}}}, {}, levada_to_{k}, {size}, {capacity}, 0, {initial}}}, /* {}.{} */\n",
            c.from.instance,
            c.from.port,
            c.to.len(),
            comment(&from.name),
            comment(&port.name),
        ));
    }

    // Unconnected ports are connected to an actor that consumes all elements, or to one that produces none.
    let fed: HashSet<Endpoint> = net.channels.iter().flat_map(|c| c.to.clone()).collect();
    let drained: HashSet<Endpoint> = net.channels.iter().map(|c| c.from).collect();
    let mut ends = String::new();
    for (i, inst) in net.instances.iter().enumerate() {
        let sides = [
            (&inst.actor.inputs, true, &fed),
            (&inst.actor.outputs, false, &drained),
        ];
        for (ports, input, connected) in sides {
            for (p, port) in ports.iter().enumerate() {
                if connected.contains(&Endpoint {
                    instance: i,
                    port: p,
                }) {
                    continue;
                }
                let (end, k) = (actors.len(), channels.len());
                let size = size_of(&port.ty);
                let (kind, from, to) = if input {
                    ("silence", (end, 0), (i, p))
                } else {
                    ("drain", (i, p), (end, 0))
                };
                let class = format!("levada_{kind}_{size}");
                if !ends.contains(&format!("{class} =")) {
                    ends += &end_class(kind, size);
                }
                actors.push(format!(
                    "  {{{}, &{class}, NULL, 0}},\n",
                    string_literal(&format!("({kind} of {}.{})", inst.name, port.name))
                ));
                t += &format!(
                    "static const lvd_port_ref levada_to_{k}[] = {{{{{}, {}}}}};\n",
                    to.0, to.1
                );
                let most = if input {
                    bursts(i).inputs[p]
                } else {
                    bursts(i).outputs[p]
                };
                let capacity = default_capacity(size, most);
                channels.push(format!(
                    "  {{{{{}, {}}}, 1, levada_to_{k}, {size}, {capacity}, 0, 0}},\n",
                    from.0, from.1
                ));
            }
        }
    }
    t.insert_str(0, &ends);

    let (n, m) = (actors.len(), channels.len());
    if m > 0 {
        t += "static const lvd_channel_desc levada_channels[] = {\n";
        t.extend(channels);
        t += "};\n";
    }
    t += "static const lvd_actor_desc levada_actors[] = {\n";
    t.extend(actors);
    t += "};\n";
    t += &format!(
        "extern LVD_API const lvd_network {0};\nconst lvd_network {0} = {{\n  LVD_ABI_VERSION, {1}, \
         {n}, {m}, levada_actors, {2}\n}};\n",
        options.symbol,
        string_literal(&net.name),
        if m > 0 { "levada_channels" } else { "NULL" }
    );
    t
}

fn class_name((actor, prefix): &(Arc<Actor>, String)) -> String {
    match &actor.native {
        Some(native) => native.class.clone(),
        None => format!("{prefix}_class"),
    }
}

fn has_params(actor: &Actor) -> bool {
    actor.native.as_ref().is_some_and(|n| !n.params.is_empty())
}

/// The class of an actor that is connected to an unconnected port.
fn end_class(kind: &str, size: u32) -> String {
    let class = format!("levada_{kind}_{size}");
    let (ports, run) = if kind == "drain" {
        (
            format!(".inputs = 1, .input = {class}_port"),
            "  uint32_t n = lvd_elements_refresh(&self->in[0]);\n  lvd_get_done(&self->in[0], n);\n  \
             self->in[0].await = 1;\n  return LVD_RUN_WAIT;\n",
        )
    } else {
        (
            format!(".outputs = 1, .output = {class}_port"),
            "  (void)self;\n  return LVD_RUN_DONE;\n",
        )
    };
    format!(
        "\nstatic lvd_run_result {class}_run(lvd_actor *self) {{\n{run}}}\n\
         static const lvd_port_class {class}_port[] = {{{{\"X\", {size}}}}};\n\
         static const lvd_actor_class {class} = {{\n  .name = \"levada.{kind}\", {ports}, \
         .run = {class}_run\n}};\n"
    )
}
