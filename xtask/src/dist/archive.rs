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

/// The shells whose completions the binary prints, and where they go.
pub(super) const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "warren.bash"), ("zsh", "_warren"), ("fish", "warren.fish")];

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
    let completions = packed.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, file) in COMPLETIONS {
        fs::write(completions.join(file), written(&packed, &["completions", shell])?)?;
    }
    written(&packed, &["man", "--dir", "man/man1"])?;
    let archive = format!("{name}.tar.gz");
    let archived = compress(directory, name, &archive);
    fs::remove_dir_all(&packed)?;
    archived.map(|()| archive)
}

/// The files that the packed binary writes itself.
pub(super) fn written(packed: &Path, arguments: &[&str]) -> Result<String> {
    let mut warren = Command::new(packed.join("warren"));
    warren.args(arguments).current_dir(packed).stdin(Stdio::null());
    command::output(warren)
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

    /// Knows `completions SHELL` and `man --dir DIR`.
    const WARREN: &str = "#!/bin/sh\n\
        if [ \"$1\" = completions ]; then echo \"$2\"; else mkdir -p \"$3\"; echo .TH > \"$3/warren-up.1\"; fi\n";

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
        let pages = ["completions/warren.bash", "completions/_warren", "man/man1/warren-up.1"];
        for file in ["warren"].into_iter().chain(FILES).chain(pages) {
            assert!(list.contains(&format!("warren-1-x86_64-linux/{file}\n")), "{list}");
        }
        assert_eq!(packed(root.path()).1, bytes, "the time of packing is in it");
    }
}
