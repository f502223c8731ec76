//! A server's data in one file, and back.
//!
//! A backup is made beside the server, not by it. SQLite copies a database while other processes write to it. All
//! other files are small and written whole, or only grow. So a backup needs no token, and works for a server that
//! hangs or is stopped.
//!
//! The file is a tar archive, compressed by gzip. Its first entry says which form the archive has. Its last one lists
//! all files with their sums, so that an archive that was cut is noticed.
//!
//! - `contents`: what is in a backup, and what is not
//! - `write`: makes a backup; `read`: lists and checks it; `restore`: puts it back
//! - `tar`: heads of entries, as bytes

mod contents;
pub mod read;
pub mod restore;
mod tar;
pub mod write;

use std::{
    fs::{self, DirBuilder},
    io,
    path::{Path, PathBuf},
};

use base::system::Rights;
use serde::{Deserialize, Serialize};

pub use self::{
    contents::{NOT_IN_IT, Source},
    read::check,
    restore::{Restoration, restore},
    write::{Backup, backup},
};

/// The form of archives that this version writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// The name of the first entry.
const HEAD: &str = "warren-backup.json";
/// The name of the last entry.
const MANIFEST: &str = "manifest.json";

/// The content of the first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The form of the archive.
    pub format: u32,
    /// The version of the Warren that made it.
    pub version: String,
    /// When it was made, in UTC.
    pub made_at: String,
}

/// The content of the last entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    files: Vec<FileEntry>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its path: below `data/` its place in the data directory, or below `outside/` the name of a file that was
    /// elsewhere.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hex.
    pub sha256: String,
}

/// The content of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The version that made it, and when.
    #[serde(flatten)]
    pub head: Head,
    /// Its files, in their order.
    pub files: Vec<FileEntry>,
}

/// A SHA-256 in hex, as manifests have it.
fn hex(sum: impl AsRef<[u8]>) -> String {
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A directory for unfinished files. Only its owner can enter it. It is removed when this is dropped.
struct PartialDir(PathBuf);

impl PartialDir {
    /// Makes the directory. Its name ends at random, so that the directory of a killed run is not in the way.
    fn new(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(format!(".{name}-{:08x}", rand::random::<u32>()));
        DirBuilder::new().private().create(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PartialDir {
    fn drop(&mut self) {
        // Finished files were moved out before. The rest is of no use.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
