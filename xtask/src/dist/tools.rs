//! The tools that link against an old C library: zig, and `cargo zigbuild`, in a Python environment.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{command, workspace::Workspace};

/// The packages to install, at fixed versions.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Holds the list that was installed.
const DONE: &str = ".installed";

/// Installs them under `target/tools`, unless they are there at these versions, and gives their directory.
pub(super) fn install(workspace: &Workspace) -> Result<PathBuf> {
    let place = workspace.root().join("target/tools/zig");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(place.join(DONE)).is_ok_and(|done| done == wanted) {
        return Ok(place.join("bin"));
    }
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv", "--clear"]).arg(&place);
    let advice = "this needs python3 with its venv module; with --native it does not";
    command::run(environment).context(advice)?;
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--only-binary", ":all:"]).args(PACKAGES);
    command::run(pip).context("zig cannot be had here; with --native it is not needed")?;
    fs::write(place.join(DONE), wanted)?;
    Ok(place.join("bin"))
}

/// The search path of programs with this directory before all others.
pub(super) fn path_with(directory: &Path) -> Result<OsString> {
    let rest = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(env::split_paths(&rest));
    Ok(env::join_paths(all)?)
}
