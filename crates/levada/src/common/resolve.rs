// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resolves the network that the command line names: finds it, checks it, binds its parameters and compiles it.

use crate::cli::{CompileArgs, NetworkArgs, OutOfBounds};
use crate::common::compile_progress;
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::program;
use levada_cal::diag::{Diagnostic, Diagnostics, LineCol, Sources, Span};
use levada_cal::ir;
use levada_cal::project::{self, Project};
use levada_cal::workspace::{ClassFile, Workspace};
use levada_cal::xdf::{self, NetworkFile};
use levada_cal::{compile, cpp, fs_deps};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub struct Loaded {
    pub network: ir::Network,
    pub sources: Sources,
    /// The source root of the top network.
    pub root: Option<PathBuf>,
    /// Whether it belongs to an Eclipse project, as Orcc's applications do.
    pub in_project: bool,
    /// Warnings as JSON; they were already printed.
    pub diagnostics: Vec<Value>,
    /// The warnings as printed.
    pub shown: String,
}

/// Elaborates the network that the arguments name; prints diagnostics on standard error.
pub fn load(args: &NetworkArgs) -> Result<Loaded, Failure> {
    if program::is_program(&args.network) {
        return failure_with(
            format!("{} is a shared object, not a network", args.network),
            "a C program is run as it is, by levada run, or in a host, by levada load",
        );
    }
    for dir in &args.path {
        if !fs_deps::is_dir(dir) {
            return failure(format!("--path {}: there is no such folder", dir.display()));
        }
    }
    let Named {
        class,
        roots,
        root,
        in_project,
        file,
        mut diags,
    } = resolve(args)?;
    let mut workspace = Workspace::new(roots);
    let network = match file {
        Some(file) => xdf::load_file(&mut workspace, &class, &file, &args.set, &mut diags),
        None => xdf::load_network(&mut workspace, &class, &args.set, &mut diags),
    };
    let shown = output::diagnostics(&workspace.sources, &diags);
    let diagnostics = output::list(&workspace.sources, &diags);
    match network {
        Some(network) => Ok(Loaded {
            network,
            sources: workspace.sources,
            root,
            in_project,
            diagnostics,
            shown,
        }),
        None => {
            let what = match output::counts(&diags).0 {
                0 => format!("{class} cannot be elaborated"),
                n => format!("{class}: {}", output::plural(n, "error")),
            };
            Err(Failure::new(what).found(diagnostics))
        }
    }
}

/// A resolved name: the class, the file if one was named, and the source roots.
struct Named {
    class: String,
    roots: Vec<PathBuf>,
    /// The root of the top network.
    root: Option<PathBuf>,
    in_project: bool,
    file: Option<ClassFile>,
    diags: Diagnostics,
}

fn resolve(args: &NetworkArgs) -> Result<Named, Failure> {
    let typed = args.network.as_str();
    let path = Path::new(typed);
    let is_file_name = typed.contains('/') || typed.ends_with(".xdf") || typed.ends_with(".cal");
    if fs_deps::is_dir(path) {
        return failure_with(
            format!("{typed} is a folder, not a network"),
            "name the .xdf file of the top network",
        );
    }
    if is_file_name && !fs_deps::exists(path) {
        return failure(format!("there is no file {typed}"));
    }
    if path.extension().is_some_and(|e| e == "c") && fs_deps::is_file(path) {
        return failure_with(
            format!("{typed} is a C source, not a network (.xdf)"),
            format!(
                "a C program is loaded, or run, as a shared object: levada cc --plugin -O2 {typed} -o {}",
                path.with_extension("so").display()
            ),
        );
    }
    let project = match &args.project {
        Some(folder) => Some(project(folder, (!is_file_name).then_some(typed))?),
        None if is_file_name => Project::around(path).map_err(Failure::new)?,
        // The project of the current folder, if it has such a class.
        None if args.path.is_empty() => Project::around(Path::new("."))
            .map_err(Failure::new)?
            .filter(|p| Workspace::new(p.roots.clone()).find(typed).is_some()),
        None => None,
    };
    let mut diags = Diagnostics::new();
    diags.extend(project.iter().flat_map(Project::warnings));
    let in_project = project.is_some();
    let of_project = project.map(|p| p.roots).unwrap_or_default();
    if is_file_name {
        let NetworkFile { root, class, file } =
            xdf::locate_in(path, &of_project).map_err(Failure::new)?;
        let mut roots = of_project;
        if !roots.contains(&root) {
            roots.insert(0, root.clone());
        }
        roots.extend(args.path.iter().cloned());
        return Ok(Named {
            class,
            roots,
            root: Some(root),
            in_project,
            file: Some(file),
            diags,
        });
    }
    let mut roots = of_project;
    roots.extend(args.path.iter().cloned());
    if roots.is_empty() {
        roots.push(PathBuf::from("."));
    }
    let found = Workspace::new(roots.clone()).find(typed);
    // There is a file of this name but no class: the file is meant.
    if found.is_none() && fs_deps::exists(path) {
        return failure_with(
            format!("{typed} is neither a network (.xdf) nor an actor (.cal)"),
            "name the .xdf file of the top network",
        );
    }
    let name = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || "_$".contains(c))
    };
    if !typed.split('.').all(name) {
        return failure_with(
            format!("{typed:?} names no network"),
            "write the path of an .xdf file, or a class name such as a.b.Top",
        );
    }
    let of_file = found.as_ref().and_then(|file| {
        let (ClassFile::Cal(path) | ClassFile::Xdf(path)) = file;
        roots.iter().find(|root| path.starts_with(root))
    });
    Ok(Named {
        class: typed.to_string(),
        root: of_file.or(roots.first()).cloned(),
        roots,
        in_project,
        file: None,
        diags,
    })
}

/// The project that `--project` names: the folder itself, or the one in it that has the class.
fn project(folder: &Path, class: Option<&str>) -> Result<Project, Failure> {
    let shown = folder.display();
    if !fs_deps::is_dir(folder) {
        return failure(format!("--project {shown}: there is no such folder"));
    }
    if project::is_project(folder) {
        return Project::read(folder).map_err(Failure::new);
    }
    let all = project::below(folder);
    if all.is_empty() {
        return failure_with(
            format!("--project {shown} is no project folder: it has no .project and no .classpath"),
            "name the folders of its sources with --path",
        );
    }
    let Some(class) = class else {
        return failure_with(
            format!("--project {shown} holds {} projects", all.len()),
            "leave it out: the project is found by the file's place",
        );
    };
    let mut holding = Vec::new();
    for folder in all {
        let project = Project::read(&folder).map_err(Failure::new)?;
        let own = project.roots[..project.own].to_vec();
        if Workspace::new(own).find(class).is_some() {
            holding.push(project);
        }
    }
    match holding.len() {
        1 => Ok(holding.remove(0)),
        0 => failure_with(
            format!("no project in {shown} has a network {class}"),
            "write the name as it stands in the sources, packages first: a.b.Top",
        ),
        _ => {
            let names: Vec<String> = holding
                .iter()
                .map(|p| p.folder.display().to_string())
                .collect();
            failure_with(
                format!(
                    "{class} is in {} projects: {}",
                    names.len(),
                    names.join(", ")
                ),
                "name one of them with --project",
            )
        }
    }
}

fn read_folder(folder: &Path) -> std::io::Result<std::fs::ReadDir> {
    fs_deps::content(folder);
    std::fs::read_dir(folder)
}

/// The C and C++ files that are compiled into the network's shared object: those named, and those in the folder
/// `natives` next to the source root.
fn natives(loaded: &Loaded, args: &CompileArgs) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    if let Some(folder) = loaded
        .root
        .as_ref()
        .and_then(|r| fs_deps::canonicalize(r).ok())
        .and_then(|r| Some(r.parent()?.join("natives")))
        && let Ok(entries) = read_folder(&folder)
    {
        files = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "c") || cpp::is_cpp(p))
            .collect();
        files.sort();
    }
    for file in &args.native {
        match fs_deps::canonicalize(file) {
            Ok(full) if fs_deps::is_file(&full) => files.push(full),
            _ => {
                return failure(format!(
                    "--native {}: there is no such file",
                    file.display()
                ));
            }
        }
    }
    files.dedup();
    Ok(files)
}

/// The path of this executable. Its file may have been replaced since it was started; /proc/PID/exe refers to the
/// running one.
fn ourselves() -> PathBuf {
    let file = std::env::current_exe().ok().filter(|f| f.exists());
    file.unwrap_or_else(|| PathBuf::from(format!("/proc/{}/exe", std::process::id())))
}

pub fn compile_options(loaded: &Loaded, args: &CompileArgs) -> Result<compile::Options, Failure> {
    Ok(compile::Options {
        checks: !args.unchecked,
        lenient: match args.out_of_bounds {
            Some(out_of_bounds) => out_of_bounds == OutOfBounds::Clamp,
            None => loaded.in_project,
        },
        random_buffer_sizes: args.random_buffer_sizes,
        fuse: !args.no_fuse,
        natives: natives(loaded, args)?,
        forking: Some(ourselves()),
        progress: (!args.quiet).then_some(compile_progress::report),
        ..compile::Options::default()
    })
}

/// The shared object of a network, from the cache or newly compiled.
pub fn compile(
    loaded: &mut Loaded,
    options: &compile::Options,
) -> Result<compile::Compiled, Failure> {
    let shown = options.progress.and_then(|_| compile_progress::start());
    let made = compile::compile(&loaded.network, options);
    drop(shown);
    match made {
        Err(e) => Err(Failure::new(e.to_string()).found(loaded.diagnostics.clone())),
        Ok(mut made) => {
            let mut diags = Diagnostics::new();
            diags.extend(std::mem::take(&mut made.warnings));
            let implicit_decls = std::mem::take(&mut made.implicit_decls).into_iter();
            diags.extend(implicit_decls.map(|one| call_of(&mut loaded.sources, &one)));
            loaded.shown += &output::diagnostics(&loaded.sources, &diags);
            let found = output::list(&loaded.sources, &diags);
            loaded.diagnostics.extend(found);
            Ok(made)
        }
    }
}

/// The warning for a call of an undeclared function in a native file.
fn call_of(sources: &mut Sources, one: &compile::ImplicitDecl) -> Diagnostic {
    let name = &one.name;
    let shown = Sources::display_path(&one.path);
    let file = sources.find(&shown).or_else(|| {
        let text = std::fs::read_to_string(&one.path).ok()?;
        Some(sources.add(shown.clone(), text))
    });
    let at = LineCol {
        line: one.line,
        column: 1,
    };
    let line = file.and_then(|file| Some((file, sources.offset(file, at)?)));
    let found = line.and_then(|(file, start)| {
        let line = sources.file(file).text[start as usize..].lines().next()?;
        // In the expansion of a macro the name may differ.
        let start = start + line.find(name.as_str()).unwrap_or(0) as u32;
        let end = start + name.len().min(line.len()) as u32;
        Some(Span { file, start, end })
    });
    let help = "include the header that declares it, or declare it with the types that it has";
    let called = Diagnostic::warning(
        "undeclared-native",
        format!("nothing declares `{name}`: it is taken to give back an `int`, whatever it does"),
    );
    match found {
        Some(span) => called.label(span, "is called here").help(help),
        None => {
            let place = format!("{shown}, line {}: {}", one.line, called.message);
            Diagnostic {
                message: place,
                ..called.help(help)
            }
        }
    }
}
