//! Files of one crate that use each other in a loop.
//!
//! A file of a module uses another when a path in it leads there: `use` items and the paths of expressions and types, with
//! re-exports followed to the file that defines the name. Declaring a child module is no use of it; tests do not count.

mod graph;
mod paths;

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// The most files that may use each other in a loop.
const MOST_FILES: usize = 8;

/// Checks every crate's own files, and names the circles that are too large with what ties them.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut wrong = Vec::new();
    let crates = crates(workspace)?;
    for (name, files) in &crates {
        let uses = paths::uses(files)?;
        let circles = graph::circles(&uses);
        let large = circles.iter().filter(|circle| circle.len() > MOST_FILES);
        wrong.extend(large.map(|circle| tell(name, circle, &uses)));
    }
    if !wrong.is_empty() {
        bail!("more than {MOST_FILES} files use each other in a loop:\n{}", wrong.join("\n"));
    }
    println!("layers: {} crates have no large circle of files", crates.len());
    Ok(())
}

/// A crate's name, with the text of each of its source files by path.
type Crates = BTreeMap<String, BTreeMap<String, String>>;

fn crates(workspace: &Workspace) -> Result<Crates> {
    let mut crates = Crates::new();
    for path in workspace.files(&["crates", "xtask", "benches"], ".rs")? {
        if let Some((home, file)) = path.split_once("/src/") {
            let name = home.rsplit('/').next().unwrap_or(home);
            crates
                .entry(name.to_owned())
                .or_default()
                .insert(file.to_owned(), workspace.read(&path)?);
        }
    }
    Ok(crates)
}

fn tell(name: &str, circle: &[String], uses: &graph::Uses) -> String {
    let ties = circle.iter().flat_map(|file| {
        let used = uses[file].iter().filter(|used| circle.contains(used));
        used.map(move |used| format!("    {file} uses {used}"))
    });
    let ties: Vec<_> = ties.collect();
    format!("  {} files of {name}:\n{}", circle.len(), ties.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_circle_of_the_workspace_is_too_large() {
        if let Err(error) = run(&Workspace::here()) {
            panic!("{error:?}");
        }
    }
}
