//! The binary as it is handed out.

use std::fs;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{
    command,
    workspace::{self, Workspace},
};

/// Builds the binary into `dist/`, beside a `SHA256SUMS` for it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    command::run(workspace.cargo(&["build", "--release", "--locked", "--package", "warren"]))?;
    let name = format!("warren-{}-{}", env!("CARGO_PKG_VERSION"), workspace::host()?);
    let built = workspace.binary()?;
    let directory = workspace.root().join("dist");
    fs::create_dir_all(&directory)?;
    fs::copy(&built, directory.join(&name))
        .with_context(|| format!("cannot copy {}", built.display()))?;
    let binary = fs::read(directory.join(&name))?;
    let sum = sha256(&binary);
    fs::write(directory.join("SHA256SUMS"), format!("{sum}  {name}\n"))?;
    println!("dist/{name}\n  {:.1} MiB\n  sha256 {sum}", mebibytes(binary.len()));
    Ok(())
}

fn mebibytes(bytes: usize) -> f64 {
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
