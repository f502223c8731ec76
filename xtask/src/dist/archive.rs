//! Packs the binary with what belongs to it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::{command, workspace::Workspace};

/// The files of the project that go along.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Pages that the binary writes itself: its arguments, and where the answer goes.
const WRITTEN: [(&[&str], &str); 4] = [
    (&["completions", "bash"], "completions/warren.bash"),
    (&["completions", "zsh"], "completions/_warren"),
    (&["completions", "fish"], "completions/warren.fish"),
    (&["man"], "man/man1/warren.1"),
];

/// Packs it as `NAME.tar.gz` in `directory`, and gives that name. The same binary always makes the same archive.
pub(super) fn pack(
    workspace: &Workspace,
    binary: &Path,
    name: &str,
    directory: &Path,
) -> Result<String> {
    let packed = directory.join(name);
    if packed.exists() {
        fs::remove_dir_all(&packed)?;
    }
    fs::create_dir_all(&packed)?;
    let copied = fs::copy(binary, packed.join("warren"));
    copied.with_context(|| format!("cannot copy {}", binary.display()))?;
    for file in FILES {
        fs::copy(workspace.root().join(file), packed.join(file))
            .with_context(|| format!("cannot copy {file}"))?;
    }
    for (arguments, file) in WRITTEN {
        write_page(&packed, arguments, file)?;
    }
    let archive = format!("{name}.tar.gz");
    let archived = compress(directory, name, &archive);
    fs::remove_dir_all(&packed)?;
    archived.map(|()| archive)
}

/// A version without the command makes no page.
fn write_page(packed: &Path, arguments: &[&str], file: &str) -> Result<()> {
    let mut warren = Command::new(packed.join("warren"));
    warren.args(arguments).stdin(Stdio::null());
    let answer = warren.output().context("the binary that was built does not start")?;
    if !answer.status.success() || answer.stdout.is_empty() {
        println!("dist: without {file}: `warren {}` makes none", arguments.join(" "));
        return Ok(());
    }
    let path = packed.join(file);
    fs::create_dir_all(path.parent().unwrap_or(packed))?;
    Ok(fs::write(path, answer.stdout)?)
}

fn compress(directory: &Path, name: &str, archive: &str) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip -9n", "-cf", archive, name]);
    tar.current_dir(directory);
    command::run(tar)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Knows `man` alone.
    const WARREN: &str = "#!/bin/sh\n[ \"$1\" = man ] && echo .TH\n";

    /// The list of an archive's files, and its bytes.
    fn packed(root: &Path) -> (String, Vec<u8>) {
        for file in FILES {
            fs::write(root.join(file), file).unwrap();
        }
        let binary = root.join("built");
        fs::write(&binary, WARREN).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let dist = root.join("dist");
        fs::create_dir_all(&dist).unwrap();
        let name = pack(&Workspace::at(root), &binary, "warren-1-x86_64-linux", &dist).unwrap();
        let mut list = Command::new("tar");
        list.args(["-tzf", &name]).current_dir(&dist);
        (command::output(list).unwrap(), fs::read(dist.join(name)).unwrap())
    }

    #[test]
    fn an_archive_has_the_licences_and_the_pages_that_the_binary_writes() {
        let root = tempfile::tempdir().unwrap();
        let (list, bytes) = packed(root.path());
        for file in ["warren", "LICENSE-MIT", "LICENSE-APACHE", "README.md", "man/man1/warren.1"] {
            assert!(list.contains(&format!("warren-1-x86_64-linux/{file}\n")), "{list}");
        }
        assert!(!list.contains("completions"), "{list}");
        assert_eq!(packed(root.path()).1, bytes, "the time of packing is in it");
    }
}
