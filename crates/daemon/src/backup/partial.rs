//! Files and directories that are removed unless they are kept: what a failure leaves is nothing.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// A directory that only its owner can enter, beside or below something that is being made.
pub(super) struct PartialDir(PathBuf);

impl PartialDir {
    /// Makes the directory. Its name is a new one, so that a killed run does not stand in the way.
    pub(super) fn new(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(format!(".{name}-{:08x}", rand::random::<u32>()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PartialDir {
    fn drop(&mut self) {
        // Its contents may have been moved away; what is left is of no use.
        let _ = fs::remove_dir_all(&self.0);
    }
}
