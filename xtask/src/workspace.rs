//! Where the workspace lies, and what `cargo` says of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The checkout that this tool was built from.
    pub(crate) fn here() -> Self {
        let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::at(manifest_dir.parent().unwrap_or(manifest_dir))
    }

    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The text of a file, by its path from the root.
    pub(crate) fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.args(arguments).current_dir(&self.root);
        cargo
    }

    /// The output of `cargo metadata`, for this machine's platform only: a fresh clone has fetched
    /// nothing for the others.
    pub(crate) fn metadata(&self) -> Result<Value> {
        let host = host()?;
        let arguments = ["metadata", "--format-version", "1", "--filter-platform", &host];
        Ok(serde_json::from_str(&command::output(self.cargo(&arguments))?)?)
    }

    /// Where `warren` is once it is built with `--release`.
    pub(crate) fn binary(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let target = metadata["target_directory"].as_str().context("no target directory")?;
        Ok(Path::new(target).join("release").join("warren"))
    }

    /// Every file under some of its directories whose name ends so, sorted, as paths from the
    /// root. Directories that are missing, hidden or made by builds are left out.
    pub(crate) fn files(&self, directories: &[&str], ending: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for directory in directories {
            walk(&self.root.join(directory), ending, &mut found)?;
        }
        let mut names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(&self.root).unwrap_or(path).display().to_string())
            .collect();
        names.sort();
        Ok(names)
    }
}

/// The platform that this machine's compiler builds for when it is not told another.
pub(crate) fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let told = command::output(rustc)?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn walk(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let skipped = name.starts_with('.') || ["target", "book", "dist"].contains(&name.as_str());
        if path.is_dir() && !skipped {
            walk(&path, ending, found)?;
        } else if path.is_file() && name.ends_with(ending) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_run_knows_which_program_is_meant() {
        let metadata = Workspace::here().metadata().unwrap();
        let defaults = metadata["workspace_default_members"].as_array().unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let targets = packages.iter().filter(|package| defaults.contains(&package["id"]));
        let targets = targets.flat_map(|package| package["targets"].as_array().unwrap());
        let programs = targets.filter(|target| target["kind"][0] == "bin");
        let names: Vec<_> = programs.map(|target| target["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["warren"]);
    }
}
