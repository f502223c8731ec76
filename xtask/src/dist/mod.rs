//! The release: an archive with a binary for old systems too, a package for Debian, a bill of materials, their
//! checksums, and the script that installs the archive.
//!
//! - `build`: builds the binary, by default against the oldest C library that Rust supports
//! - `tools`: what that takes, under `target/tools`
//! - `glibc`: which version of the C library a binary needs
//! - `archive`: packs it with its licences, completions and manual pages; `deb`: the same as a package for Debian
//! - `sbom`: what it is made of

mod archive;
mod build;
mod deb;
mod glibc;
#[cfg(test)]
mod install_tests;
mod sbom;
mod tools;

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result};
use clap::Args;
use sha2::{Digest, Sha256};

use self::{build::Build, deb::Package, glibc::Glibc};
use crate::workspace::Workspace;

/// The script that installs the archive.
const INSTALLER: &str = "deploy/install.sh";

/// The parts to build.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Build with this machine's own C library: needs no Python, and runs here and on newer systems
    #[arg(long)]
    native: bool,
    /// The profile; `dev` builds in a fraction of the time, for a trial
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
}

/// Makes `dist/`: the archive, the package, the bill of materials, `install.sh`, and `SHA256SUMS` of all.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let began = Instant::now();
    let build = Build::chosen(arguments.native, &arguments.profile)?;
    println!("dist: {}", build.describe());
    let binary = build.run(workspace)?;
    let bytes = fs::read(&binary)?;
    let needs = build.check(&bytes)?;
    let name = format!("warren-{}-{}", env!("CARGO_PKG_VERSION"), build.machine());
    let directory = workspace.root().join("dist");
    fs::create_dir_all(&directory)?;
    let archive = archive::pack(workspace, &binary, &name, &directory)?;
    fs::copy(workspace.root().join(INSTALLER), directory.join("install.sh"))?;
    let sbom = sbom::make(workspace)?;
    let of_sbom = format!("{name}.cdx.json");
    fs::write(directory.join(&of_sbom), &sbom)?;
    let package = Package {
        workspace,
        binary: &binary,
        processor: build.processor(),
        glibc: glibc::newest(&bytes).map(|Glibc(major, minor)| format!("{major}.{minor}")),
        sbom: &sbom,
    };
    let package = package.make(env!("CARGO_PKG_VERSION"), &directory)?;
    let sums = sums(&directory, &[&archive, &package, &of_sbom, "install.sh"])?;
    fs::write(directory.join("SHA256SUMS"), &sums)?;
    let size = |path: &Path| fs::metadata(path).map(|file| mebibytes(file.len()));
    println!(
        "dist/{archive}\n  {:.1} MiB, the binary in it {:.1} MiB\n  {needs}\n  made in {} s",
        size(&directory.join(&archive))?,
        size(&binary)?,
        began.elapsed().as_secs()
    );
    println!("dist/{package}\ndist/{of_sbom}");
    print!("dist/SHA256SUMS\n{sums}");
    println!("dist/install.sh installs the archive that lies beside it");
    Ok(())
}

fn sums(directory: &Path, names: &[&str]) -> Result<String> {
    let line = |name: &&str| {
        let content = fs::read(directory.join(name)).with_context(|| format!("cannot read {name}"));
        Ok(format!("{}  {name}\n", sha256(&content?)))
    };
    names.iter().map(line).collect()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_the_well_known_one() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
