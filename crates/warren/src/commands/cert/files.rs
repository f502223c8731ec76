//! A certificate and its key as files.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use base::system::Rights;

use super::generate::Certificate;

/// The paths of both files.
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Files {
    pub(super) fn within(directory: &Path) -> Self {
        let file = |name| match directory == Path::new(".") {
            true => PathBuf::from(name),
            false => directory.join(name),
        };
        Self { certificate: file("cert.pem"), key: file("key.pem") }
    }

    /// Writes both, the key for its owner alone. Existing files stay, unless `force` is set.
    ///
    /// # Errors
    /// When a file already exists or cannot be written.
    pub(super) fn write(&self, made: &Certificate, force: bool) -> anyhow::Result<()> {
        // A secret has no line break at its end, a file of PEM has.
        let key = format!("{}\n", made.key.expose());
        let all = [
            (&self.key, key.as_str(), true),
            (&self.certificate, made.certificate.as_str(), false),
        ];
        for (path, ..) in &all {
            if force {
                remove(path).with_context(|| format!("{} cannot be replaced", path.display()))?;
            } else if path.symlink_metadata().is_ok() {
                bail!("{} is there already: --force replaces it", path.display());
            }
        }
        if let Some(directory) = self.key.parent().filter(|path| !path.as_os_str().is_empty()) {
            fs::create_dir_all(directory)
                .with_context(|| format!("{} cannot be made", directory.display()))?;
        }
        for (path, text, is_secret) in all {
            write(path, text, is_secret)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Creates a new file, because an existing one would keep its mode.
fn write(path: &Path, text: &str, is_secret: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let options = if is_secret { options.private() } else { options.readable() };
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn made() -> Certificate {
        Certificate::new(&["localhost".to_owned()], jiff::Timestamp::now(), 1).unwrap()
    }

    #[test]
    fn the_key_is_its_owners_and_neither_is_replaced_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::within(directory.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        files.write(&made(), false).unwrap();
        assert_eq!((mode(&files.key), mode(&files.certificate) & 0o600), (0o600, 0o600));
        let old = fs::read_to_string(&files.key).unwrap();
        for path in [&files.certificate, &files.key] {
            let error = files.write(&made(), false).unwrap_err().to_string();
            assert!(error.contains("--force"), "{error}");
            fs::remove_file(path).unwrap();
            fs::write(path, &old).unwrap();
        }
        fs::remove_file(&files.certificate).unwrap();
        assert!(files.write(&made(), false).is_err(), "a key alone is one, too");
        assert!(!files.certificate.exists());
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
        files.write(&made(), true).unwrap();
        assert_eq!(mode(&files.key), 0o600, "whatever the old one's mode");
        assert_ne!(fs::read_to_string(&files.key).unwrap(), old);
    }

    #[test]
    fn links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::within(directory.path());
        let elsewhere = directory.path().join("elsewhere");
        symlink(&elsewhere, &files.key).unwrap();
        assert!(files.write(&made(), false).is_err());
        files.write(&made(), true).unwrap();
        assert!(!elsewhere.exists());
    }
}
