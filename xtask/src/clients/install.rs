//! Installs one part: a Python environment, or a directory of npm's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::TESTS;
use crate::{command, workspace::Workspace};

/// The part that is no directory of npm's.
pub(super) const PYTHON: &str = "python";

/// Holds the digest of the list that a part was installed from.
const DONE: &str = ".installed";

/// Installs a part, unless it is there as its list of packages says.
pub(super) fn part(workspace: &Workspace, part: &str) -> Result<()> {
    if is_done(workspace, part) {
        return Ok(());
    }
    let place = place(workspace, part);
    if part == PYTHON {
        python(&list(workspace, part)[0], &place)?;
    } else {
        node(workspace, part, &place)?;
    }
    fs::write(place.join(DONE), digest(workspace, part)?)?;
    Ok(())
}

/// Whether a part is there as its list of packages says.
pub(super) fn is_done(workspace: &Workspace, part: &str) -> bool {
    let done = fs::read_to_string(place(workspace, part).join(DONE));
    matches!((done, digest(workspace, part)), (Ok(done), Ok(wanted)) if done == wanted)
}

/// A digest of a part's list of packages.
pub(super) fn digest(workspace: &Workspace, part: &str) -> Result<String> {
    let mut sum = Sha256::new();
    for path in list(workspace, part) {
        sum.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(hex::encode(sum.finalize()))
}

fn place(workspace: &Workspace, part: &str) -> PathBuf {
    workspace.root().join("target/clients").join(part)
}

/// The files that say which packages make up a part.
fn list(workspace: &Workspace, part: &str) -> Vec<PathBuf> {
    let packages = workspace.root().join(TESTS).join("packages");
    if part == PYTHON {
        return vec![packages.join("python.txt")];
    }
    ["package.json", "package-lock.json"].map(|name| packages.join(part).join(name)).to_vec()
}

fn python(list: &Path, place: &Path) -> Result<()> {
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv", "--clear"]).arg(place);
    command::run(environment).context("the clients need python3 with its venv module")?;
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--only-binary", ":all:", "--requirement"]).arg(list);
    command::run(pip)
}

fn node(workspace: &Workspace, part: &str, place: &Path) -> Result<()> {
    // What is left of an older version must not take part.
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place)?;
    for path in list(workspace, part) {
        fs::copy(&path, place.join(path.file_name().unwrap_or_default()))?;
    }
    // Not `npm ci`: it refuses a list without the other platforms' packages, which not every
    // registry has.
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]);
    npm.current_dir(place);
    command::run(npm).context("the clients need node and npm, version 20 or newer")?;
    starts(part, place)
}

/// A package may come without its platform's binary; then its command does not start.
fn starts(part: &str, place: &Path) -> Result<()> {
    let name = if part == "claude-code" { "claude" } else { part };
    let binary = place.join("node_modules/.bin").join(name);
    if !binary.exists() && matches!(part, "sdks" | "xterm") {
        return Ok(());
    }
    let mut version = Command::new(binary);
    version.arg("--version").env("HOME", place);
    command::output(version).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(list: &str) -> (tempfile::TempDir, Workspace) {
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join(TESTS).join("packages");
        fs::create_dir_all(&packages).unwrap();
        fs::write(packages.join("python.txt"), list).unwrap();
        let workspace = Workspace::at(root.path());
        (root, workspace)
    }

    #[test]
    fn a_part_is_there_until_its_list_changes() {
        let (root, workspace) = workspace("openai==1\n");
        assert!(!is_done(&workspace, PYTHON));
        let place = place(&workspace, PYTHON);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(DONE), digest(&workspace, PYTHON).unwrap()).unwrap();
        assert!(is_done(&workspace, PYTHON));
        // What is there is not installed again: pip would not find such a package.
        part(&workspace, PYTHON).unwrap();
        fs::write(root.path().join(TESTS).join("packages/python.txt"), "openai==2\n").unwrap();
        assert!(!is_done(&workspace, PYTHON));
    }

    #[test]
    fn a_part_without_its_list_is_an_error_that_names_the_file() {
        let (_root, workspace) = workspace("");
        let error = format!("{:#}", digest(&workspace, "codex").unwrap_err());
        assert!(error.contains("codex/package.json"), "{error}");
    }
}
