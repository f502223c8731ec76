//! The staged files of a session that moves here: they lie aside until the session is taken or refused.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use protocol::workspace::limits::MOVED_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::NotTaken;
use crate::{refusal::Refusal, sessions::output::history::remove_all};

/// The file that lists the staged files. It is written last.
const MANIFEST: &str = "manifest.json";

/// Everything that goes along with a session that moves here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The session's facts, as they will be stored here.
    pub facts: String,
    /// The number of its newest output.
    pub last_seq: u64,
    /// The prompts that wait, the oldest first.
    pub queue: Vec<String>,
    /// The ids of the inputs that were applied, the oldest first.
    pub applied: Vec<String>,
    /// The files. The name of each staged file is its place in this list, counted from 0.
    pub files: Vec<ManifestFile>,
}

/// A file that goes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The kind of the file as a directory, and the file's name in it.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A session whose files arrive piece by piece.
#[derive(Debug)]
pub struct Staging {
    dir: PathBuf,
    manifest: Manifest,
    /// How much of each file has arrived, in bytes.
    received: Vec<u64>,
}

impl Staging {
    /// Makes room for a session. It blocks.
    pub(super) fn create(dir: PathBuf, manifest: Manifest) -> Result<Self, Refusal> {
        let bytes = manifest.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.size));
        if bytes.is_none_or(|bytes| bytes > MOVED_BYTES_MAX) {
            return Err(Refusal::Invalid(format!("more than {MOVED_BYTES_MAX} bytes cannot move")));
        }
        // An attempt that broke off may have left pieces.
        remove(&dir);
        let received = vec![0; manifest.files.len()];
        let staging = Self { dir, manifest, received };
        staging.make().map_err(|error| staging.failed(&error))?;
        Ok(staging)
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        (0..self.received.len()).try_for_each(|file| new_file(&self.path(file)).map(drop))
    }

    /// Takes the next piece of a file: `file` is the file's place in the manifest, `offset` is in bytes. It blocks.
    ///
    /// # Errors
    /// When the piece is not the next one, is longer than the rest of the file, or cannot be written.
    pub fn write(&mut self, file: u32, offset: u64, piece: &[u8]) -> Result<(), Refusal> {
        let file = usize::try_from(file).unwrap_or(usize::MAX);
        let (Some(received), Some(of)) = (self.received.get(file), self.manifest.files.get(file))
        else {
            return Err(Refusal::invalid("a piece of no file"));
        };
        let end = offset.saturating_add(piece.len() as u64);
        if offset != *received || end > of.size {
            return Err(Refusal::Invalid(format!("a piece of {} is not the next one", of.name)));
        }
        let mut options = OpenOptions::new();
        let appended = options.append(true).open(self.path(file));
        let appended = appended.and_then(|mut file| file.write_all(piece));
        appended.map_err(|error| self.failed(&error))?;
        self.received[file] = end;
        Ok(())
    }

    /// Whether every file has arrived whole.
    pub fn is_whole(&self) -> bool {
        let sizes = self.manifest.files.iter().map(|file| file.size);
        sizes.eq(self.received.iter().copied())
    }

    /// Syncs all files to the disk, then writes the manifest. It blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&self) -> Result<(), Refusal> {
        self.sync().map_err(|error| self.failed(&error))
    }

    fn sync(&self) -> io::Result<()> {
        // The manifest comes last: if it is there, all files are whole.
        for file in 0..self.received.len() {
            File::open(self.path(file))?.sync_all()?;
        }
        let mut manifest = new_file(&self.dir.join(MANIFEST))?;
        serde_json::to_writer(&mut manifest, &self.manifest)?;
        manifest.sync_all()?;
        File::open(&self.dir)?.sync_all()?;
        let parent = self.dir.parent().unwrap_or(Path::new("/"));
        File::open(parent)?.sync_all()
    }

    fn path(&self, file: usize) -> PathBuf {
        path(&self.dir, file)
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        Refusal::Failed(format!("cannot write what comes along to {}: {error}", self.dir.display()))
    }
}

/// The manifest of the staged files, if all of them are there. It blocks.
pub(super) fn read(dir: &Path) -> Result<Manifest, NotTaken> {
    let lost = |error: &dyn std::fmt::Display| NotTaken::Lost(error.to_string());
    let bytes = fs::read(dir.join(MANIFEST)).map_err(|error| lost(&error))?;
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| lost(&error))?;
    for (number, file) in manifest.files.iter().enumerate() {
        let found = fs::metadata(path(dir, number)).map_err(|error| lost(&error))?;
        if found.len() != file.size {
            return Err(lost(&format!("{} has {} bytes", file.name, found.len())));
        }
    }
    Ok(manifest)
}

pub(super) fn path(dir: &Path, file: usize) -> PathBuf {
    dir.join(file.to_string())
}

/// Removes the staged files. It blocks.
pub(super) fn remove(dir: &Path) {
    if let Err(error) = remove_all(dir) {
        tracing::warn!(dir = %dir.display(), %error, "what a move has left remains");
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(sizes: &[u64]) -> Manifest {
        let file = |size: &u64| ManifestFile { name: format!("history/{size}.log"), size: *size };
        let files = sizes.iter().map(file).collect();
        Manifest {
            facts: "{}".to_owned(),
            last_seq: 0,
            queue: Vec::new(),
            applied: Vec::new(),
            files,
        }
    }

    #[test]
    fn what_has_come_whole_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let aside = dir.path().join("moves/1");
        let mut staging = Staging::create(aside.clone(), manifest(&[3, 0])).unwrap();
        staging.write(0, 0, b"ab").unwrap();
        assert!(!staging.is_whole());
        staging.write(0, 2, b"c").unwrap();
        assert!(staging.is_whole());
        assert!(matches!(read(&aside), Err(NotTaken::Lost(_))), "it is not finished");
        staging.finish().unwrap();
        assert_eq!(read(&aside).unwrap(), manifest(&[3, 0]));
        assert_eq!(fs::read(path(&aside, 0)).unwrap(), b"abc");
        fs::write(path(&aside, 0), b"ab").unwrap();
        assert!(matches!(read(&aside), Err(NotTaken::Lost(_))), "a piece is lost");
        remove(&aside);
        assert!(matches!(read(&aside), Err(NotTaken::Lost(_))));
    }

    #[test]
    fn pieces_come_in_order_and_within_the_files_sizes() {
        let dir = tempfile::tempdir().unwrap();
        let mut staging = Staging::create(dir.path().join("1"), manifest(&[3])).unwrap();
        assert!(staging.write(0, 1, b"a").is_err(), "a gap");
        assert!(staging.write(0, 0, b"abcd").is_err(), "too long");
        assert!(staging.write(1, 0, b"a").is_err(), "no such file");
        staging.write(0, 0, b"ab").unwrap();
        assert!(staging.write(0, 0, b"ab").is_err(), "twice");
    }

    #[test]
    fn more_than_the_bound_is_refused_before_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        for (sizes, fits) in [
            (vec![MOVED_BYTES_MAX], true),
            (vec![MOVED_BYTES_MAX, 1], false),
            (vec![u64::MAX, u64::MAX], false),
        ] {
            let made = Staging::create(dir.path().join("1"), manifest(&sizes));
            assert_eq!(made.is_ok(), fits, "{sizes:?}");
        }
    }
}
