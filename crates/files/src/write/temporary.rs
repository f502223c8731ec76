//! A file that gets its name once it is complete, and is removed if it never gets one.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io::Write,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt,
    },
    sync::Arc,
};

use rand::RngExt;
use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, fsync, openat, unlinkat},
    io::Errno,
};

use super::temporary_files::{NotedFile, TemporaryFiles, name};
use crate::{
    change::rename,
    error::{FileError, doing},
    root::NameInDir,
};

/// The mode of a new file, before the umask.
pub(crate) const PLAIN: Mode = Mode::from_raw_mode(0o644);
/// The mode of a temporary file until it gets its final mode. It gets its name only after that.
pub(super) const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The most random names that are tried, if earlier ones are taken.
const DRAWS: usize = 8;

/// A new file in the directory of its final name. It is removed if it is dropped before it has that
/// name.
#[derive(Debug)]
pub(crate) struct Temporary<D: AsFd> {
    dir: D,
    name: CString,
    file: File,
    named: bool,
    /// The file's entry in the list, which is removed once the file has its name or is gone.
    noted: Option<NotedFile>,
}

impl<'a> Temporary<BorrowedFd<'a>> {
    pub(crate) fn create(place: &'a NameInDir, mode: Mode) -> Result<Self, FileError> {
        Self::create_in(place.dir(), place.temporary_files(), mode)
    }
}

impl<D: AsFd> Temporary<D> {
    pub(crate) fn create_in(
        dir: D,
        temporary_files: Option<&Arc<TemporaryFiles>>,
        mode: Mode,
    ) -> Result<Self, FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        for _ in 0..DRAWS {
            let name = draw()?;
            let noted = temporary_files.and_then(|list| list.note(dir.as_fd(), &name));
            match openat(&dir, &name, flags | OFlags::CLOEXEC, mode) {
                Err(Errno::EXIST) => {}
                Err(other) => return Err(FileError::of("write it", other)),
                Ok(fd) => {
                    return Ok(Self { dir, name, file: File::from(fd), named: false, noted });
                }
            }
        }
        Err(FileError::Busy)
    }

    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.write(bytes)?;
        self.sync()
    }

    /// Writes the bytes, gives the file the owner and mode of another one, and syncs it. Owner and mode are set after
    /// the write, since a write may clear bits of the mode.
    pub(super) fn fill_like(&mut self, bytes: &[u8], old: &Stat) -> Result<(), FileError> {
        self.write(bytes)?;
        self.own_like(old)?;
        self.sync()
    }

    /// Writes bytes at an offset of the file.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), FileError> {
        self.file.write_all_at(bytes, offset).map_err(|error| FileError::of_io("write it", error))
    }

    /// Cuts off the bytes beyond this length, which a write left that failed half way.
    pub(crate) fn cut(&self, length: u64) -> Result<(), FileError> {
        self.file.set_len(length).map_err(|error| FileError::of_io("write it", error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(|error| FileError::of_io("write it", error))
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.file.sync_all().map_err(|error| FileError::of_io("write it", error))
    }

    fn own_like(&self, old: &Stat) -> Result<(), FileError> {
        let ours = fstat(&self.file).map_err(doing("look at it"))?;
        if (ours.st_uid, ours.st_gid) != (old.st_uid, old.st_gid) {
            let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            fchown(&self.file, Some(user), Some(group)).map_err(|errno| match errno {
                Errno::PERM => FileError::Owner,
                other => FileError::of("keep its owner", other),
            })?;
        }
        let mode = Mode::from_raw_mode(old.st_mode & 0o7777);
        fchmod(&self.file, mode).map_err(doing("keep its mode"))
    }

    /// Gives the file a free name.
    pub(crate) fn publish(mut self, name: &CStr) -> Result<(), FileError> {
        let dir = self.dir.as_fd();
        rename::exclusively(dir, &self.name, dir, name).map_err(doing("name it"))?;
        self.mark_named();
        Ok(())
    }

    /// Gives the file a name, replacing the file that had the name.
    pub(super) fn replace(mut self, name: &CStr) -> Result<(), FileError> {
        let dir = self.dir.as_fd();
        rustix::fs::renameat(dir, &self.name, dir, name).map_err(doing("replace it"))?;
        self.mark_named();
        Ok(())
    }

    /// Syncs the directory, so that the name survives a power failure. The write has succeeded even
    /// if this fails.
    fn mark_named(&mut self) {
        self.named = true;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Err(errno) = openat(&self.dir, ".", flags, Mode::empty()).and_then(fsync) {
            tracing::debug!(%errno, "a directory could not be synced");
        }
    }
}

impl<D: AsFd> Drop for Temporary<D> {
    fn drop(&mut self) {
        if !self.named
            && let Err(errno) = unlinkat(&self.dir, &self.name, AtFlags::empty())
        {
            tracing::warn!(name = ?self.name, %errno, "a temporary file could not be removed");
            // The file stays on the list, so that the next start removes it.
            std::mem::forget(self.noted.take());
        }
    }
}

fn draw() -> Result<CString, FileError> {
    let bits: u128 = rand::rng().random();
    CString::new(name(bits)).map_err(|_| FileError::Busy)
}
