// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eclipse projects, as Orcc uses them: `.project` names a project, `.classpath` lists its source folders and the
//! projects that it depends on.
//!
//! Packages of different projects may clash, so the order matters: the project's own source folders as listed, then
//! those of its dependencies as listed, each followed by its own dependencies. A dependency is searched near the
//! project that needs it: in a neighbouring folder, or at most two levels away.

use crate::diag::Diagnostic;
use crate::fs_deps;
use crate::workspace::read_source;
use std::path::{Path, PathBuf};

/// How many levels up and down a dependency is searched.
const PARENT_LEVELS_MAX: usize = 2;
/// Maximum number of folders that are searched for one project.
const FOLDERS_MAX: usize = 4096;

/// A project and its source roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    pub folder: PathBuf,
    /// In order of preference; its own roots come first.
    pub roots: Vec<PathBuf>,
    /// The number of its own roots.
    pub own: usize,
    /// Missing dependencies, with the folder of the project that needs them.
    pub missing: Vec<(String, PathBuf)>,
}

impl Project {
    /// Reads the project in this folder.
    pub fn read(folder: &Path) -> Result<Project, String> {
        let folder = fs_deps::canonicalize(folder).map_err(|e| {
            let shown = folder.display();
            format!("cannot read the project folder {shown}: {e}")
        })?;
        let mut project = Project {
            folder: folder.clone(),
            ..Project::default()
        };
        let mut seen = Vec::new();
        project.gather(&folder, &mut seen)?;
        Ok(project)
    }

    /// The project of a file or folder, if any.
    pub fn around(path: &Path) -> Result<Option<Project>, String> {
        let Ok(full) = fs_deps::canonicalize(path) else {
            return Ok(None);
        };
        match full.ancestors().find(|folder| is_project(folder)) {
            Some(folder) => Project::read(folder).map(Some),
            None => Ok(None),
        }
    }

    fn gather(&mut self, folder: &Path, seen: &mut Vec<PathBuf>) -> Result<(), String> {
        seen.push(folder.to_path_buf());
        let stated = Stated::read(folder)?;
        for root in stated.sources {
            if !self.roots.contains(&root) {
                self.roots.push(root);
            }
        }
        if seen.len() == 1 {
            self.own = self.roots.len();
        }
        for name in stated.needs {
            match find_near(folder, &name) {
                Some(found) if seen.contains(&found) => {}
                Some(found) => self.gather(&found, seen)?,
                None => self.missing.push((name, folder.to_path_buf())),
            }
        }
        Ok(())
    }

    /// Warnings about the project.
    pub fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        self.missing.iter().map(|(name, folder)| {
            let message = format!(
                "the project {} needs the project {name}, which was not found",
                folder.display()
            );
            Diagnostic::warning("project", message).help(format!(
                "put a folder {name} with its .project next to it, or name its sources with --path"
            ))
        })
    }
}

pub fn is_project(folder: &Path) -> bool {
    fs_deps::is_file(&folder.join(".project")) || fs_deps::is_file(&folder.join(".classpath"))
}

/// The folders of all projects in and below `folder`, by name; a project within another counts, too.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut ahead = vec![(folder.to_path_buf(), 0)];
    let mut looked = 0;
    while let Some((folder, depth)) = ahead.pop() {
        looked += 1;
        if is_project(&folder) {
            found.push(folder.clone());
        }
        if depth <= PARENT_LEVELS_MAX && looked < FOLDERS_MAX {
            ahead.extend(folders_in(&folder).into_iter().map(|f| (f, depth + 1)));
        }
    }
    found.sort();
    found
}

/// The content of the two files of a project.
struct Stated {
    sources: Vec<PathBuf>,
    needs: Vec<String>,
}

impl Stated {
    fn read(folder: &Path) -> Result<Stated, String> {
        let mut stated = Stated {
            sources: Vec::new(),
            needs: Vec::new(),
        };
        let classpath = folder.join(".classpath");
        if fs_deps::is_file(&classpath) {
            with_elements(&classpath, "classpathentry", |entry| {
                if entry.attribute("kind") != Some("src") {
                    return;
                }
                let path = entry.attribute("path").unwrap_or_default();
                match path.strip_prefix('/') {
                    Some(other) => stated.needs.push(other.to_string()),
                    None => stated.sources.push(folder.join(path)),
                }
            })?;
        } else if fs_deps::is_dir(&folder.join("src")) {
            stated.sources.push(folder.join("src"));
        } else {
            stated.sources.push(folder.to_path_buf());
        }
        let project = folder.join(".project");
        if fs_deps::is_file(&project) {
            // References that occur only in .project come last.
            with_elements(&project, "project", |element| {
                let name = element.text().unwrap_or_default().trim();
                if !name.is_empty() && !stated.needs.iter().any(|n| n == name) {
                    stated.needs.push(name.to_string());
                }
            })?;
        }
        Ok(stated)
    }
}

fn with_elements(
    path: &Path,
    name: &str,
    mut each: impl FnMut(roxmltree::Node),
) -> Result<(), String> {
    let shown = path.display();
    let text = read_source(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let text = String::from_utf8_lossy(&text);
    let document = roxmltree::Document::parse(&text)
        .map_err(|e| format!("{shown} is no project file of Eclipse: {e}"))?;
    for node in document.descendants().filter(|n| n.has_tag_name(name)) {
        each(node);
    }
    Ok(())
}

/// The name of the project in `folder`.
fn name_of(folder: &Path) -> Option<String> {
    let text = read_source(&folder.join(".project")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let document = roxmltree::Document::parse(&text).ok()?;
    let mut names = document.root_element().children();
    let name = names.find(|n| n.has_tag_name("name"))?.text()?;
    Some(name.trim().to_string())
}

fn is_called(folder: &Path, name: &str) -> bool {
    match name_of(folder) {
        Some(own) => own == name,
        None => is_project(folder) && folder.file_name().is_some_and(|f| f == name),
    }
}

/// The nearest project `name`, searched from `folder`.
fn find_near(folder: &Path, name: &str) -> Option<PathBuf> {
    for above in folder.ancestors().skip(1).take(PARENT_LEVELS_MAX) {
        let sibling = above.join(name);
        if is_called(&sibling, name) {
            return Some(sibling);
        }
        let mut level = folders_in(above);
        for depth in 0..PARENT_LEVELS_MAX {
            if let Some(found) = level.iter().find(|f| is_called(f, name)) {
                return Some(found.clone());
            }
            if depth + 1 < PARENT_LEVELS_MAX {
                level = level.iter().flat_map(|f| folders_in(f)).collect();
                level.truncate(FOLDERS_MAX);
            }
        }
    }
    None
}

/// Sorted by name. Hidden folders are omitted, and so are links, which may form cycles.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    fs_deps::content(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter(|e| !e.file_name().to_string_lossy().starts_with('.'))
        .map(|e| e.path())
        .collect();
    found.sort();
    found.truncate(FOLDERS_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("levada-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Folder(path.canonicalize().unwrap())
        }

        fn project(&self, folder: &str, name: &str, entries: &[&str], refers: &[&str]) -> PathBuf {
            let at = self.0.join(folder);
            std::fs::create_dir_all(&at).unwrap();
            let entries: String = entries
                .iter()
                .map(|p| format!("<classpathentry kind=\"src\" path=\"{p}\"/>"))
                .collect();
            std::fs::write(
                at.join(".classpath"),
                format!(
                    "<classpath>{entries}<classpathentry kind=\"output\" path=\"bin\"/></classpath>"
                ),
            )
            .unwrap();
            let refers: String = refers
                .iter()
                .map(|p| format!("<project>{p}</project>"))
                .collect();
            std::fs::write(
                at.join(".project"),
                format!(
                    "<projectDescription><name>{name}</name><projects>{refers}</projects>\
                     </projectDescription>"
                ),
            )
            .unwrap();
            at
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn roots_come_in_the_order_of_the_projects() {
        let at = Folder::new("project-order");
        // A dependency that is listed before the project's own sources comes after them all the same.
        let top = at.project(
            "deep/top",
            "Top",
            &["/Lib", "a", "b"],
            &["Far", "Lib", "Gone"],
        );
        let lib = at.project("lib", "Lib", &["src", "/Base"], &[]);
        // Its folder has another name; it has a reference back.
        let base = at.project("other/base-folder", "Base", &["code", "/Lib"], &[]);
        let far = at.project("deep/Far", "Far", &["src"], &[]);
        let project = Project::read(&top).unwrap();
        let expected = [
            top.join("a"),
            top.join("b"),
            lib.join("src"),
            base.join("code"),
            far.join("src"),
        ];
        assert_eq!(project.roots, expected);
        assert_eq!(project.own, 2);
        assert_eq!(project.missing, [("Gone".to_string(), top.clone())]);
        assert_eq!(project.warnings().count(), 1);

        let file = top.join("a/x/Y.cal");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!(Project::around(&file).unwrap(), Some(project));
        assert_eq!(Project::around(&at.0).unwrap(), None);
        let all = below(&at.0);
        assert_eq!(all, [far, top, lib, base]);
    }

    #[test]
    fn a_project_without_a_classpath_has_its_folder_or_src() {
        let at = Folder::new("project-plain");
        std::fs::write(at.0.join(".project"), "<projectDescription/>").unwrap();
        assert_eq!(
            Project::read(&at.0).unwrap().roots,
            std::slice::from_ref(&at.0)
        );
        std::fs::create_dir(at.0.join("src")).unwrap();
        assert_eq!(Project::read(&at.0).unwrap().roots, [at.0.join("src")]);
    }

    #[test]
    fn files_that_are_no_xml_are_named() {
        let at = Folder::new("project-bad");
        std::fs::write(at.0.join(".classpath"), "<classpath>").unwrap();
        let what = Project::read(&at.0).unwrap_err();
        assert!(
            what.contains(".classpath") && what.contains("no project file"),
            "{what}"
        );
        assert!(
            Project::read(&at.0.join("none"))
                .unwrap_err()
                .contains("none")
        );
    }
}
