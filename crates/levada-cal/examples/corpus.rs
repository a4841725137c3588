// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks all CAL files of a folder of Orcc projects, and lowers each actor that needs no parameters:
//! `cargo run -p levada-cal --example corpus -- FOLDER`. A tool and not a test, since the projects are not part of this
//! one.

use levada_cal::diag::{self, Diagnostics, Severity};
use levada_cal::ir;
use levada_cal::workspace::Workspace;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The text of each `name="..."` in `text`.
fn attributes<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let start = format!("{name}=\"");
    text.split(&start)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

fn walk(folder: &Path, found: &mut dyn FnMut(PathBuf)) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, found);
        } else {
            found(path);
        }
    }
}

/// A project: its own source roots, and the projects it needs.
#[derive(Default)]
struct Project {
    roots: Vec<PathBuf>,
    needs: Vec<String>,
}

fn projects(corpus: &Path) -> HashMap<PathBuf, (String, Project)> {
    let mut out = HashMap::new();
    walk(corpus, &mut |path| {
        if path.file_name().is_none_or(|n| n != ".classpath") {
            return;
        }
        let folder = path.parent().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = std::fs::read_to_string(folder.join(".project"))
            .ok()
            .and_then(|t| Some(t.split("<name>").nth(1)?.split('<').next()?.to_owned()))
            .unwrap_or_default();
        let mut project = Project::default();
        for entry in text.split("<classpathentry").skip(1) {
            let entry = entry.split('>').next().unwrap_or("");
            if attributes(entry, "kind") != ["src"] {
                continue;
            }
            for target in attributes(entry, "path") {
                match target.strip_prefix('/') {
                    Some(other) => project.needs.push(other.to_owned()),
                    None => project.roots.push(folder.join(target)),
                }
            }
        }
        out.insert(folder, (name, project));
    });
    out
}

/// The project's roots, then those of what it needs, each once.
fn all_roots(of: &str, by_name: &HashMap<&str, &Project>, out: &mut Vec<PathBuf>, depth: u32) {
    let Some(project) = by_name.get(of).filter(|_| depth < 20) else {
        return;
    };
    for root in &project.roots {
        if !out.contains(root) {
            out.push(root.clone());
        }
    }
    for need in &project.needs {
        all_roots(need, by_name, out, depth + 1);
    }
}

fn main() {
    let corpus = std::env::args_os().nth(1).map(PathBuf::from);
    let Some(corpus) = corpus.filter(|folder| folder.is_dir()) else {
        eprintln!("usage: corpus FOLDER");
        std::process::exit(2);
    };
    let projects = projects(&corpus);
    let by_name: HashMap<&str, &Project> = projects
        .values()
        .map(|(name, project)| (name.as_str(), project))
        .collect();
    let mut workspaces: HashMap<PathBuf, Workspace> = HashMap::new();
    let (mut files, mut good, mut lowered, mut actors) = (0, 0, 0, 0);
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut paths = Vec::new();
    walk(&corpus, &mut |path| {
        if path.extension().is_some_and(|e| e == "cal") {
            paths.push(path);
        }
    });
    for path in paths {
        files += 1;
        let home = path.ancestors().find(|a| projects.contains_key(*a));
        let home = home.map_or_else(|| corpus.clone(), Path::to_owned);
        let ws = workspaces.entry(home.clone()).or_insert_with(|| {
            let mut roots = Vec::new();
            if let Some((name, _)) = projects.get(&home) {
                all_roots(name, &by_name, &mut roots, 0);
            }
            Workspace::new(roots)
        });
        let mut diags = Diagnostics::new();
        ws.check_file(&path, &mut diags);
        let mut only_errors = Diagnostics::new();
        for diag in diags.iter().filter(|d| d.severity == Severity::Error) {
            *codes.entry(diag.code).or_default() += 1;
            only_errors.push(diag.clone());
        }
        if diags.has_errors() {
            println!("==== {}", path.strip_prefix(&corpus).unwrap().display());
            println!("{}", diag::render(&ws.sources, &only_errors, false));
            continue;
        }
        good += 1;
        let root = ws.roots().iter().find(|r| path.starts_with(r)).cloned();
        let Some(root) = root else { continue };
        let class = path.strip_prefix(root).unwrap().with_extension("");
        let class = class
            .iter()
            .map(|p| p.to_str().unwrap())
            .collect::<Vec<_>>()
            .join(".");
        let mut quiet = Diagnostics::new();
        let Some(interface) = ws.interface(&class, &mut quiet) else {
            continue;
        };
        if interface.params.iter().all(|p| p.has_default) {
            actors += 1;
            let mut diags = Diagnostics::new();
            match ws.instantiate(&class, &[], ir::Span::default(), &mut diags) {
                Some(_) => lowered += 1,
                None => println!("{class}: {}", diag::render(&ws.sources, &diags, false)),
            }
        }
    }
    println!("{files} files, {good} without errors; {lowered} of {actors} actors lowered");
    assert!(files > 0, "there are CAL files in it");
    println!("errors by code: {codes:?}");
    assert_eq!(lowered, actors, "what is checked can be lowered");
    let messages: usize = codes.values().sum();
    assert!(good == files || messages > 0, "refused without a word");
}
