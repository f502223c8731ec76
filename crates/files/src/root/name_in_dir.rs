//! A name in an opened directory.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat};

use crate::{
    error::{FileError, doing},
    write::TemporaryFiles,
};

/// The location of an entry, existing or not. Every operation on it is relative to the directory's
/// descriptor, and never follows a link of this name.
#[derive(Debug)]
pub(crate) struct NameInDir {
    dir: OwnedFd,
    name: CString,
    temporary_files: Option<Arc<TemporaryFiles>>,
}

impl NameInDir {
    pub(super) fn new(
        dir: OwnedFd,
        name: &str,
        temporary_files: Option<Arc<TemporaryFiles>>,
    ) -> Result<Self, FileError> {
        let name = CString::new(name).map_err(|_| FileError::BadPath("it has a NUL in it"))?;
        Ok(Self { dir, name, temporary_files })
    }

    /// The list in which temporary files are noted.
    pub(crate) fn temporary_files(&self) -> Option<&Arc<TemporaryFiles>> {
        self.temporary_files.as_ref()
    }

    /// The directory, the name, and the list in which temporary files are noted.
    pub(crate) fn into_parts(self) -> (OwnedFd, CString, Option<Arc<TemporaryFiles>>) {
        (self.dir, self.name, self.temporary_files)
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// The status of the entry with this name; a link is not followed.
    pub(crate) fn stat(&self) -> Result<Stat, FileError> {
        stat(self.dir(), &self.name)
    }

    pub(crate) fn stat_if_there(&self) -> Result<Option<Stat>, FileError> {
        match self.stat() {
            Err(FileError::NotFound) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Opens the entry. Fails on a link.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, FileError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.dir(), self.name(), flags, Mode::empty()).map_err(doing("open it"))
    }
}

/// The status of an entry in a directory; a link is not followed.
pub(crate) fn stat(dir: BorrowedFd<'_>, name: &CStr) -> Result<Stat, FileError> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(doing("look at it"))
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Identifies a file independently of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl From<&Stat> for Identity {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "their types differ between systems"
    )]
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }
}
