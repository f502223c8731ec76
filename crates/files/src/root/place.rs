//! A name in an opened directory.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat};

use crate::{
    error::{FileError, doing},
    write::Unfinished,
};

/// Where an entry is, or is to be. Whatever is done to it is done relative to the directory's
/// descriptor and never follows a link in the name's place.
#[derive(Debug)]
pub(crate) struct Place {
    dir: OwnedFd,
    name: CString,
    unfinished: Option<Arc<Unfinished>>,
}

impl Place {
    pub(super) fn new(
        dir: OwnedFd,
        name: &str,
        unfinished: Option<Arc<Unfinished>>,
    ) -> Result<Self, FileError> {
        let name = CString::new(name).map_err(|_| FileError::BadPath("it has a NUL in it"))?;
        Ok(Self { dir, name, unfinished })
    }

    /// Where temporary files are noted.
    pub(crate) fn unfinished(&self) -> Option<&Arc<Unfinished>> {
        self.unfinished.as_ref()
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// What is there now; of a link, the link.
    pub(crate) fn stat(&self) -> Result<Stat, FileError> {
        stat(self.dir(), &self.name)
    }

    /// What is there now, or none.
    pub(crate) fn stat_if_there(&self) -> Result<Option<Stat>, FileError> {
        match self.stat() {
            Err(FileError::NotFound) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Opens what is there. Fails on a link.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, FileError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.dir(), self.name(), flags, Mode::empty()).map_err(doing("open it"))
    }
}

/// What a name in a directory is; of a link, the link.
pub(crate) fn stat(dir: BorrowedFd<'_>, name: &CStr) -> Result<Stat, FileError> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(doing("look at it"))
}

/// Of which kind it is.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
