//! An opened project root, and the resolution of paths beneath it.
//!
//! - `resolve`: `openat2`, and its replacement on systems without it
//! - `name_in_dir`: a name in an opened directory, which operations create, move and remove

mod name_in_dir;
mod resolve;
#[cfg(test)]
mod tests;

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags, openat};

pub(crate) use self::{
    name_in_dir::{Identity, NameInDir, kind, stat},
    resolve::{LOOK, beneath, path_of},
};
use crate::{error::FileError, path::RelPath, write::TemporaryFiles};

/// A project's directory, opened once. Every path is resolved beneath this descriptor, even if
/// the directory is renamed.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
    temporary_files: Option<Arc<TemporaryFiles>>,
}

impl Root {
    /// Opens a directory. Links on the way to it are followed: the path is the owner's choice.
    ///
    /// # Errors
    ///
    /// [`FileError::Root`] when the directory is missing, is not a directory or may not be entered.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let flags = LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(rustix::fs::CWD, path, flags, Mode::empty())
            .map_err(|errno| FileError::Root(errno.into()))?;
        Ok(Self { dir, path: path.to_owned(), temporary_files: None })
    }

    /// Notes the temporary files of writes in this root in `temporary_files`, until they have their final names or are
    /// removed.
    #[must_use]
    pub fn noting(mut self, temporary_files: &Arc<TemporaryFiles>) -> Self {
        self.temporary_files = Some(Arc::clone(temporary_files));
        self
    }

    /// The path with which the root was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the entry at a path. Links that stay inside the root are followed. If the path itself is a
    /// link, it is followed, too, unless the flags forbid that.
    pub(crate) fn open_at(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, FileError> {
        self.open_text(path.as_str(), flags).map_err(|error| path.explain(error))
    }

    /// The same for the text of a path, which may come from a link.
    pub(crate) fn open_text(&self, path: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
        beneath(self.dir.as_fd(), path, flags)
    }

    /// The opened parent directory of a path, and the name in it.
    pub(crate) fn place(&self, path: &RelPath) -> Result<NameInDir, FileError> {
        let (parent, name) = path.split().ok_or(FileError::IsRoot)?;
        let dir =
            self.open_text(parent, LOOK | OFlags::DIRECTORY).map_err(|error| match error {
                FileError::NotFound | FileError::NotADirectory => FileError::NoParent,
                other => other,
            })?;
        self.place_in(dir, name)
    }

    /// A name in an opened directory of this root.
    pub(crate) fn place_in(&self, dir: OwnedFd, name: &str) -> Result<NameInDir, FileError> {
        NameInDir::new(dir, name, self.temporary_files.clone())
    }
}
