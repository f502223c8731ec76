//! A key in a file, which is read again when the file has changed.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use base::{
    Secret,
    system::{Stranger, stranger},
};

/// The longest file of a key, in bytes.
const MAX_FILE: u64 = 16 * 1024;

/// Why a file gives no key. The error contains no text of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key file {} cannot be used: {reason}", path.display())]
pub struct NoKey {
    path: PathBuf,
    reason: String,
}

/// Reads the key in a file: its text without white space around it. Blocks on the disk.
///
/// # Errors
/// [`NoKey`] when the file cannot be read, another user could have written it, or it holds no key.
pub fn read(path: &Path) -> Result<Secret, NoKey> {
    let failed = |reason: String| NoKey { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let facts = file.metadata().map_err(|error| failed(error.to_string()))?;
    match stranger(&facts) {
        Some(Stranger::Owns(user)) => {
            return Err(failed(format!("it belongs to user {user}, who may change the key")));
        }
        Some(Stranger::Writes(mode)) => {
            return Err(failed(format!("other users may write it (mode {mode:o}): chmod 600 it")));
        }
        None => {}
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(failed(format!("it is longer than {MAX_FILE} bytes")));
    }
    Secret::from(text.trim()).usable().map_err(|why| failed(format!("the key in it {why}")))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_key_is_read_without_its_line_end_and_bad_files_are_refused_by_name() {
        let directory = std::env::temp_dir().join(format!("warren-key-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("cloud.key");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read(&path).map(|key| key.expose().to_owned()).map_err(|error| error.to_string())
        };
        assert_eq!(write("sk-1\n", 0o600), Ok("sk-1".to_owned()));
        for (text, mode, words) in [
            ("sk-1", 0o620, "may write it (mode 620)"),
            ("sk-1", 0o602, "may write it (mode 602)"),
            (" \n", 0o600, "the key in it"),
            (&"k".repeat(20_000), 0o600, "longer than"),
        ] {
            let error = write(text, mode).unwrap_err();
            assert!(error.contains(words) && error.contains("cloud.key"), "{error}");
            assert!(!error.contains("sk-1"), "{error}");
        }
        fs::remove_dir_all(&directory).unwrap();
        assert!(read(&path).is_err());
    }
}
