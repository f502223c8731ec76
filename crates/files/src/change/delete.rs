//! Deletion of entries, with everything in them.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat},
    io::Errno,
};

use crate::{
    budget::Budget,
    error::{FileError, doing},
    path::RelPath,
    root::{Root, kind, stat},
};

/// The most times that a directory is emptied while other processes fill it.
const PASSES: usize = 8;

/// Deletes an entry; a directory with everything in it, by descriptors. Links are removed and never
/// followed. File systems mounted below are left alone.
///
/// # Errors
///
/// [`FileError::NotFound`], [`FileError::IsRoot`], [`FileError::Denied`],
/// [`FileError::OtherFileSystem`], [`FileError::TooDeep`], [`FileError::TooLong`], and as for every
/// path. What was deleted before the error stays deleted.
pub fn delete(root: &Root, path: &RelPath) -> Result<(), FileError> {
    let place = root.place(path)?;
    let removed = remove(place.dir(), place.name(), &mut Budget::time(), 0);
    removed.map_err(|error| path.explain(error))
}

/// Removes an entry of any kind from a directory.
pub(super) fn remove(
    dir: BorrowedFd<'_>,
    name: &CStr,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), FileError> {
    budget.take(depth)?;
    for _ in 0..PASSES {
        let tried = if kind(&stat(dir, name)?) == FileType::Directory {
            remove_directory(dir, name, budget, depth)
        } else {
            unlinkat(dir, name, AtFlags::empty()).map_err(doing("delete it"))
        };
        match tried {
            // Other processes have replaced the entry by a directory or a file, or have filled it
            // again.
            Err(FileError::IsADirectory | FileError::NotADirectory | FileError::Links) => {}
            Err(FileError::Exists) => {}
            other => return other,
        }
    }
    Err(FileError::Busy)
}

fn remove_directory(
    dir: BorrowedFd<'_>,
    name: &CStr,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), FileError> {
    let inner = enter(dir, name)?;
    let mut inner = Dir::new(inner).map_err(doing("delete it"))?;
    while let Some(entry) = inner.read() {
        let entry: CString = entry.map_err(doing("delete it"))?.file_name().to_owned();
        if matches!(entry.to_bytes(), b"." | b"..") {
            continue;
        }
        let at = inner.fd().map_err(doing("delete it"))?;
        match remove(at, &entry, budget, depth + 1) {
            Ok(()) | Err(FileError::NotFound) => {}
            Err(other) => return Err(other),
        }
    }
    unlinkat(dir, name, AtFlags::REMOVEDIR).map_err(|errno| match errno {
        Errno::NOTEMPTY => FileError::Exists,
        other => FileError::of("delete it", other),
    })
}

/// Opens a directory that is not a link and is on the file system of its parent.
fn enter(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = openat(dir, name, flags, Mode::empty()).map_err(doing("delete it"))?;
    let device =
        |fd: BorrowedFd<'_>| fstat(fd).map(|stat| stat.st_dev).map_err(doing("look at it"));
    if device(inner.as_fd())? == device(dir)? { Ok(inner) } else { Err(FileError::OtherFileSystem) }
}
