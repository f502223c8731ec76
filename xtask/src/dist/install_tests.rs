//! `deploy/install.sh`, run on made-up archives.

use std::{
    env::consts::ARCH,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use super::{INSTALLER, sums};
use crate::{command, workspace::Workspace};

/// A place with the script, an archive and its sums.
struct Place(TempDir);

impl Place {
    fn with(version: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.add(version);
        let script = Workspace::here().root().join(INSTALLER);
        fs::copy(script, place.dist().join("install.sh")).unwrap();
        place
    }

    /// A blank in its path must not matter.
    fn dist(&self) -> PathBuf {
        self.0.path().join("the dist")
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("the bin")
    }

    /// Adds the archive of a version, whose sum alone is in the list then.
    fn add(&self, version: &str) {
        let name = format!("warren-{version}-{ARCH}-linux");
        self.add_binary(&name, &format!("echo warren {version}"));
    }

    fn add_binary(&self, name: &str, script: &str) {
        let packed = self.dist().join(name);
        fs::create_dir_all(&packed).unwrap();
        let warren = packed.join("warren");
        fs::write(&warren, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&warren, fs::Permissions::from_mode(0o755)).unwrap();
        let archive = format!("{name}.tar.gz");
        let mut tar = Command::new("tar");
        tar.args(["-czf", &archive, name]).current_dir(self.dist());
        command::run(tar).unwrap();
        fs::remove_dir_all(packed).unwrap();
        fs::write(self.dist().join("SHA256SUMS"), sums(&self.dist(), &[&archive]).unwrap())
            .unwrap();
    }

    fn archive(&self, version: &str) -> PathBuf {
        self.dist().join(format!("warren-{version}-{ARCH}-linux.tar.gz"))
    }

    fn install(&self, to: &Path) -> Output {
        let mut script = Command::new("sh");
        script.arg(self.dist().join("install.sh")).arg("--to").arg(to);
        script.env_remove("WARREN_INSTALL_FROM").env("TMPDIR", self.0.path());
        script.output().unwrap()
    }

    /// The names in the target directory, those of hidden files too.
    fn installed(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.target()) else { return Vec::new() };
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn installed_text(&self) -> String {
        fs::read_to_string(self.target().join("warren")).unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[track_caller]
fn assert_refused(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", text(output));
    assert!(text(output).contains(words), "{}", text(output));
}

#[test]
fn a_good_archive_is_installed_and_replaced_by_the_next_version() {
    let place = Place::with("1.0.0");
    let first = place.install(&place.target());
    assert!(first.status.success(), "{}", text(&first));
    assert!(text(&first).contains("installed warren 1.0.0"), "{}", text(&first));
    assert!(text(&first).contains("is not on your PATH"), "{}", text(&first));
    place.add("1.1.0");
    let second = place.install(&place.target());
    assert!(text(&second).contains("replaced warren 1.0.0 by warren 1.1.0"), "{}", text(&second));
    assert_eq!(place.installed(), ["warren"]);
    let mode = fs::metadata(place.target().join("warren")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn an_archive_with_a_wrong_sum_is_refused_and_the_old_version_stays() {
    let place = Place::with("1.0.0");
    assert!(place.install(&place.target()).status.success());
    place.add("1.1.0");
    let mut bytes = fs::read(place.archive("1.1.0")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(place.archive("1.1.0"), bytes).unwrap();
    assert_refused(&place.install(&place.target()), "is wrong, so nothing was installed");
    assert!(place.installed_text().contains("1.0.0"));
    assert_eq!(place.installed(), ["warren"]);
}

#[test]
fn a_missing_archive_or_list_of_sums_is_named() {
    let place = Place::with("1.0.0");
    fs::remove_file(place.archive("1.0.0")).unwrap();
    assert_refused(&place.install(&place.target()), "there is no warren-1.0.0-");
    fs::remove_file(place.dist().join("SHA256SUMS")).unwrap();
    assert_refused(&place.install(&place.target()), "there is no SHA256SUMS in");
    assert!(place.installed().is_empty());
}

#[test]
fn sums_for_other_machines_only_are_refused() {
    let place = Place::with("1.0.0");
    let sums = place.dist().join("SHA256SUMS");
    let others = fs::read_to_string(&sums).unwrap().replace(ARCH, "vax");
    fs::write(&sums, others).unwrap();
    assert_refused(&place.install(&place.target()), "there is no archive for");
}

#[test]
fn a_binary_that_does_not_run_here_replaces_nothing() {
    let place = Place::with("1.0.0");
    assert!(place.install(&place.target()).status.success());
    place.add_binary(&format!("warren-1.1.0-{ARCH}-linux"), "exit 127");
    assert_refused(&place.install(&place.target()), "does not run on this machine");
    assert!(place.installed_text().contains("1.0.0"));
    assert_eq!(place.installed(), ["warren"]);
}

/// Not even root may make a directory in `/proc`.
#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_says_what_to_do() {
    let place = Place::with("1.0.0");
    let refused = place.install(Path::new("/proc/warren"));
    assert_refused(&refused, "name another directory with --to DIR");
    let left = fs::read_dir(place.0.path()).unwrap().count();
    assert_eq!(left, 1, "its own working directory is left");
}

#[test]
fn an_address_that_is_not_protected_is_refused() {
    let place = Place::with("1.0.0");
    let mut script = Command::new("sh");
    script.arg(place.dist().join("install.sh")).args(["--from", "http://example.org/warren"]);
    let refused = script.arg("--to").arg(place.target()).output().unwrap();
    assert_refused(&refused, "use https://");
    assert!(place.installed().is_empty());
}
