//! Builds the binary.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    glibc::{Glibc, newest},
    tools,
};
use crate::{command, workspace, workspace::Workspace};

/// The oldest glibc that Rust supports.
const OLDEST: Glibc = Glibc(2, 17);

/// How the binary is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    /// The processor's name, as in `x86_64`.
    processor: String,
    library: Library,
    profile: String,
}

/// The C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    /// musl, linked statically: the binary runs on every Linux.
    Musl,
    /// [`OLDEST`], linked dynamically.
    OldGlibc,
    /// This machine's.
    Own,
}

impl Build {
    /// The build that suits this machine: with musl if Rust's target for it is installed, else with the oldest glibc.
    pub(super) fn chosen(native: bool, profile: &str) -> Result<Self> {
        let host = workspace::host()?;
        let (processor, system) = host.split_once('-').context("rustc's host has no parts")?;
        if !system.contains("linux") {
            bail!("archives are made on Linux, and this is {host}");
        }
        let musl = sysroot()?.join(format!("lib/rustlib/{processor}-unknown-linux-musl/lib"));
        let library = library(native, musl.is_dir());
        Ok(Self { processor: processor.to_owned(), library, profile: profile.to_owned() })
    }

    pub(super) fn describe(&self) -> String {
        let with = match self.library {
            Library::Musl => "musl, static".to_owned(),
            Library::OldGlibc => format!("{OLDEST}, as Rust's target {} is not here", self.musl()),
            Library::Own => "this machine's own C library".to_owned(),
        };
        format!("for {} with {with}; profile {}", self.processor, self.profile)
    }

    /// The processor that it is for.
    pub(super) fn processor(&self) -> &str {
        &self.processor
    }

    /// The machine that it is for, as the archive's name has it.
    pub(super) fn machine(&self) -> String {
        format!("{}-linux", self.processor)
    }

    /// Builds it, and gives its path.
    pub(super) fn run(&self, workspace: &Workspace) -> Result<PathBuf> {
        let target = match self.library {
            Library::Musl => Some(self.musl()),
            Library::OldGlibc => Some(self.gnu()),
            Library::Own => None,
        };
        let mut build = workspace.cargo(&self.arguments(target.as_deref()));
        if target.is_some() {
            build.env("PATH", tools::path_with(&tools::install(workspace)?)?);
        }
        if let Some(commit) = commit(workspace) {
            build.env("WARREN_COMMIT", commit);
        }
        command::run(build)?;
        self.built(workspace, target.as_deref())
    }

    fn arguments<'a>(&'a self, target: Option<&'a str>) -> Vec<&'a str> {
        let build = if target.is_some() { "zigbuild" } else { "build" };
        let mut all = vec![build, "--locked", "--package", "warren", "--bin", "warren"];
        all.extend(["--profile", &self.profile]);
        all.extend(target.into_iter().flat_map(|target| ["--target", target]));
        all
    }

    fn built(&self, workspace: &Workspace, target: Option<&str>) -> Result<PathBuf> {
        let metadata = workspace.metadata()?;
        let directory = metadata["target_directory"].as_str().context("no target directory")?;
        // Only zigbuild knows a version of glibc behind the target; the directory is named without it.
        let triple = target.and_then(|target| target.split('.').next()).unwrap_or_default();
        let profile = if self.profile == "dev" { "debug" } else { &self.profile };
        Ok(Path::new(directory).join(triple).join(profile).join("warren"))
    }

    /// Checks which C library the binary needs, and says it.
    ///
    /// # Errors
    /// When it needs a newer one than this build promises.
    pub(super) fn check(&self, binary: &[u8]) -> Result<String> {
        match (self.library, newest(binary)) {
            (Library::OldGlibc, Some(needed)) => {
                ensure!(needed <= OLDEST, "the binary needs {needed}, and {OLDEST} was promised");
                Ok(format!("needs {needed}; {OLDEST} and newer are promised"))
            }
            (Library::Musl, Some(needed)) => {
                bail!("the binary needs {needed}, and should need nothing")
            }
            (_, Some(needed)) => Ok(format!("needs {needed} or newer")),
            (_, None) => Ok("needs no C library".to_owned()),
        }
    }

    fn musl(&self) -> String {
        format!("{}-unknown-linux-musl", self.processor)
    }

    fn gnu(&self) -> String {
        format!("{}-unknown-linux-gnu.{}.{}", self.processor, OLDEST.0, OLDEST.1)
    }
}

fn library(native: bool, has_musl: bool) -> Library {
    match (native, has_musl) {
        (true, _) => Library::Own,
        (false, true) => Library::Musl,
        (false, false) => Library::OldGlibc,
    }
}

fn sysroot() -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]);
    Ok(PathBuf::from(command::output(rustc)?.trim()))
}

/// The commit of the checkout, marked if files differ from it; `None` without git.
fn commit(workspace: &Workspace) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    git.current_dir(workspace.root());
    command::output(git).ok().map(|commit| commit.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(library: Library) -> Build {
        Build { processor: "x86_64".to_owned(), library, profile: "release".to_owned() }
    }

    #[test]
    fn musl_is_used_where_it_is_installed_and_the_oldest_glibc_elsewhere() {
        assert_eq!(library(false, true), Library::Musl);
        assert_eq!(library(false, false), Library::OldGlibc);
        assert_eq!(library(true, true), Library::Own);
    }

    #[test]
    fn a_binary_that_needs_a_newer_library_than_promised_is_refused() {
        let old = build(Library::OldGlibc);
        let promise = "needs glibc 2.16; glibc 2.17 and newer are promised";
        assert_eq!(old.check(b"GLIBC_2.16\0").unwrap(), promise);
        let error = old.check(b"GLIBC_2.18\0").unwrap_err().to_string();
        assert_eq!(error, "the binary needs glibc 2.18, and glibc 2.17 was promised");
        assert!(build(Library::Musl).check(b"GLIBC_2.2\0").is_err());
        assert_eq!(build(Library::Musl).check(b"").unwrap(), "needs no C library");
        let own = build(Library::Own).check(b"GLIBC_2.36\0").unwrap();
        assert_eq!(own, "needs glibc 2.36 or newer");
    }

    #[test]
    fn only_a_build_for_another_library_takes_zig() {
        let old = build(Library::OldGlibc);
        let target = old.gnu();
        assert_eq!(target, "x86_64-unknown-linux-gnu.2.17");
        let arguments = old.arguments(Some(&target));
        assert!(arguments.starts_with(&["zigbuild"]));
        assert!(arguments.ends_with(&["--target", &target]));
        assert!(build(Library::Own).arguments(None).starts_with(&["build"]));
    }
}
