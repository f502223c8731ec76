//! The package for Debian and what comes of it: an `ar` archive of two `tar` archives.
//!
//! Written by our own few lines, since the binary is built by our own linker, and the package is to be the same each time; `dpkg`
//! reads it in the tests.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::archive::{COMPLETIONS, written};
use crate::{command, workspace::Workspace};

/// Where the scripts and the example of the configuration are.
const FILES: &str = "deploy/debian";

/// The scripts, and the moment of each.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// The configuration that people may change, and an upgrade leaves alone.
const CONFIGURATION: &str = "etc/warren/warren.toml";

/// The units. They name the program at another place.
const UNITS: [&str; 2] = ["warren.service", "warren-worker.service"];

/// A package that is being made.
pub(super) struct Package<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) binary: &'a Path,
    /// The processor's name, as in `x86_64`.
    pub(super) processor: &'a str,
    /// The newest version of glibc that the binary needs, such as `2.17`; `None`: none.
    pub(super) glibc: Option<String>,
    /// The bill of materials.
    pub(super) sbom: &'a str,
}

impl Package<'_> {
    /// Writes the package into a directory, and gives its name.
    pub(super) fn make(&self, version: &str, directory: &Path) -> Result<String> {
        let architecture = architecture(self.processor)?;
        let name = format!("warren_{version}_{architecture}.deb");
        let work = directory.join(".deb");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        let made = self.within(&work, version, architecture);
        let packed = made.and_then(|members| Ok(fs::write(directory.join(&name), ar(&members)?)?));
        fs::remove_dir_all(&work)?;
        packed.map(|()| name)
    }

    /// The members of the package, made in a directory of their own.
    fn within(&self, work: &Path, version: &str, architecture: &str) -> Result<Vec<Member>> {
        let (data, control) = (work.join("data"), work.join("control"));
        self.fill(&data)?;
        fs::create_dir_all(&control)?;
        let size = size(&data)? / 1024 + 1;
        fs::write(control.join("control"), self.control(version, architecture, size))?;
        fs::write(control.join("conffiles"), format!("/{CONFIGURATION}\n"))?;
        fs::write(control.join("md5sums"), sums(&data)?)?;
        for script in SCRIPTS {
            let text = self.workspace.read(&format!("{FILES}/{script}"))?;
            put(&control.join(script), text.as_bytes(), 0o755)?;
        }
        tar(work, "control")?;
        tar(work, "data")?;
        let member = |name: &str| -> Result<Member> {
            Ok(Member { name: name.to_owned(), bytes: fs::read(work.join(name))? })
        };
        let format = Member { name: "debian-binary".to_owned(), bytes: b"2.0\n".to_vec() };
        Ok(vec![format, member("control.tar.gz")?, member("data.tar.gz")?])
    }

    /// Puts the files where they are on a machine.
    fn fill(&self, data: &Path) -> Result<()> {
        let place = |path: &str| data.join(path);
        put(&place("usr/bin/warren"), &fs::read(self.binary)?, 0o755)?;
        for unit in UNITS {
            let text = self.workspace.read(&format!("deploy/{unit}"))?;
            let text = text.replace("/usr/local/bin/warren", "/usr/bin/warren");
            put(&place(&format!("usr/lib/systemd/system/{unit}")), text.as_bytes(), 0o644)?;
        }
        let example = self.workspace.read(&format!("{FILES}/warren.toml"))?;
        put(&place(CONFIGURATION), example.as_bytes(), 0o644)?;
        let doc = "usr/share/doc/warren";
        let copyright = self.workspace.read(&format!("{FILES}/copyright"))?;
        put(&place(&format!("{doc}/copyright")), copyright.as_bytes(), 0o644)?;
        put(&place(&format!("{doc}/sbom.cdx.json")), self.sbom.as_bytes(), 0o644)?;
        let changes = self.workspace.read("CHANGELOG.md")?;
        put(&place(&format!("{doc}/changelog")), changes.as_bytes(), 0o644)?;
        gzip(&place(&format!("{doc}/changelog")))?;
        self.pages(data)
    }

    /// The completions and manual pages, which the program writes itself.
    fn pages(&self, data: &Path) -> Result<()> {
        let (programs, bin) = (data.join("usr/bin"), data.join("usr/share"));
        for (shell, _) in COMPLETIONS {
            let place = match shell {
                "bash" => "bash-completion/completions/warren",
                "zsh" => "zsh/vendor-completions/_warren",
                _ => "fish/vendor_completions.d/warren.fish",
            };
            let text = written(&programs, &["completions", shell])?;
            put(&bin.join(place), text.as_bytes(), 0o644)?;
        }
        let pages = bin.join("man/man1");
        let shown = pages.to_str().context("a path that is no text")?;
        written(&programs, &["man", "--dir", shown])?;
        for page in fs::read_dir(&pages)? {
            gzip(&page?.path())?;
        }
        Ok(())
    }

    fn control(&self, version: &str, architecture: &str, size: u64) -> String {
        let needs = self.glibc.as_ref().map(|glibc| format!("Depends: libc6 (>= {glibc})\n"));
        format!(
            "Package: warren\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
             Maintainer: The Warren contributors <warren@users.noreply.github.com>\nInstalled-Size: {size}\n{}\
             Recommends: ca-certificates\nSuggests: git\nHomepage: https://github.com/warren-project/warren\n\
             Description: language models and coding agents on the machines that people own\n \
             A server that queues requests of OpenAI's, Anthropic's, Gemini's and Ollama's APIs and gives\n \
             them to the machines that lend their models, rooms in which friends share models, and terminals\n \
             and agents that people attach to and leave.\n",
            needs.unwrap_or_default()
        )
    }
}

/// A processor by Debian's name.
fn architecture(processor: &str) -> Result<&'static str> {
    match processor {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no Debian has the processor {other} that a package could be made for"),
    }
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

/// Compresses a file in its place, without its name and time.
fn gzip(path: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.arg("-9nf").arg(path);
    command::output(gzip).map(drop)
}

/// Every file below a directory, sorted.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => all.extend(files(&path)?),
            false => all.push(path),
        }
    }
    all.sort();
    Ok(all)
}

fn size(directory: &Path) -> Result<u64> {
    let sizes = files(directory)?.into_iter().map(|path| Ok(fs::metadata(path)?.len()));
    sizes.sum()
}

/// The sums by which `dpkg --verify` finds changed files.
fn sums(data: &Path) -> Result<String> {
    let all = files(data)?;
    let own =
        |path: &PathBuf| -> Result<String> { Ok(path.strip_prefix(data)?.display().to_string()) };
    let names = all.iter().map(own).collect::<Result<Vec<_>>>()?;
    let mut md5sum = Command::new("md5sum");
    md5sum.args(names.iter().filter(|name| *name != CONFIGURATION)).current_dir(data);
    command::output(md5sum)
}

fn tar(work: &Path, name: &str) -> Result<()> {
    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", "--format=gnu", "--use-compress-program=gzip -9n"]);
    tar.args(["-cf", &archive, "-C", name, "."]).current_dir(work);
    command::output(tar).map(drop)
}

/// A file in an `ar` archive.
struct Member {
    name: String,
    bytes: Vec<u8>,
}

/// The members one after another, each with a head of 60 bytes.
fn ar(members: &[Member]) -> Result<Vec<u8>> {
    let mut archive = b"!<arch>\n".to_vec();
    for Member { name, bytes } in members {
        if name.len() > 16 {
            bail!("{name} is too long for an archive");
        }
        let head =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", bytes.len());
        archive.extend(head.as_bytes());
        archive.extend(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows `completions SHELL` and `man --dir DIR`.
    const WARREN: &str = "#!/bin/sh\n\
        if [ \"$1\" = completions ]; then echo \"$2\"; else mkdir -p \"$3\"; echo .TH > \"$3/warren-up.1\"; fi\n";

    /// A package of a made-up binary: its path, and its bytes.
    fn made(root: &Path) -> (PathBuf, Vec<u8>) {
        let binary = root.join("built");
        put(&binary, WARREN.as_bytes(), 0o755).unwrap();
        let workspace = Workspace::here();
        let (processor, glibc) = ("x86_64", Some("2.17".to_owned()));
        let package =
            Package { workspace: &workspace, binary: &binary, processor, glibc, sbom: "{}" };
        let name = package.make("1.2.3", root).unwrap();
        assert_eq!(name, "warren_1.2.3_amd64.deb");
        assert!(!root.join(".deb").exists());
        let path = root.join(name);
        (path.clone(), fs::read(path).unwrap())
    }

    /// The output of `dpkg-deb`; `None` where there is none.
    fn dpkg(arguments: &[&str]) -> Option<String> {
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.args(arguments);
        Command::new("dpkg-deb")
            .arg("--version")
            .output()
            .ok()
            .map(|_| command::output(dpkg).unwrap())
    }

    #[test]
    fn dpkg_reads_what_is_in_it_and_unpacks_it() {
        let root = tempfile::tempdir().unwrap();
        let (path, _) = made(root.path());
        let path = path.to_str().unwrap();
        let Some(told) = dpkg(&["-I", path]) else { return };
        for line in
            ["Package: warren", "Version: 1.2.3", "Architecture: amd64", "Depends: libc6 (>= 2.17)"]
        {
            assert!(told.contains(line), "{told}");
        }
        let list = dpkg(&["-c", path]).unwrap();
        for file in [
            "usr/bin/warren",
            "usr/lib/systemd/system/warren.service",
            "usr/share/man/man1/warren-up.1.gz",
            "usr/share/bash-completion/completions/warren",
            "usr/share/zsh/vendor-completions/_warren",
            "usr/share/fish/vendor_completions.d/warren.fish",
            "usr/share/doc/warren/copyright",
            "usr/share/doc/warren/changelog.gz",
            "usr/share/doc/warren/sbom.cdx.json",
            CONFIGURATION,
        ] {
            assert!(
                list.lines().any(|line| line.ends_with(&format!(" ./{file}"))),
                "{file}: {list}"
            );
        }
        assert!(
            list.lines().all(|line| line.contains(" root/root ") || line.contains(" 0/0 ")),
            "{list}"
        );
        assert_eq!(dpkg(&["-I", path, "conffiles"]).unwrap(), format!("/{CONFIGURATION}\n"));
        let to = root.path().join("root");
        dpkg(&["-x", path, to.to_str().unwrap()]).unwrap();
        let unit = fs::read_to_string(to.join("usr/lib/systemd/system/warren.service")).unwrap();
        assert!(
            unit.contains("ExecStart=/usr/bin/warren serve") && unit.contains("DynamicUser=yes")
        );
        assert!(unit.contains("ExecReload=") && unit.contains("KillMode=process"));
        let mut warren = Command::new(to.join("usr/bin/warren"));
        warren.args(["completions", "bash"]);
        assert_eq!(command::output(warren).unwrap(), "bash\n");
    }

    #[test]
    fn the_same_binary_makes_the_same_package() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(made(one.path()).1, made(other.path()).1);
    }

    /// With systemd's `systemctl` replaced by one that notes what it is told.
    #[test]
    fn the_scripts_stop_a_server_only_for_a_removal() {
        for script in SCRIPTS {
            let text = Workspace::here().read(&format!("{FILES}/{script}")).unwrap();
            assert!(text.starts_with("#!/bin/sh\n") && text.contains("set -e\n"), "{script}");
            let stops = text.contains("systemctl stop");
            assert_eq!(stops, script == "prerm", "{script}");
            if stops {
                assert!(text.contains("[ \"$1\" = remove ]"), "{text}");
            }
            assert!(!text.contains("kill"), "{script}: sessions have processes of their own");
        }
    }

    #[test]
    fn only_processors_of_debian_have_packages() {
        assert_eq!(architecture("aarch64").unwrap(), "arm64");
        assert!(architecture("riscv32").is_err());
    }
}
