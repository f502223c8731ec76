//! Opens regular files, without blocking on other kinds of entries or disturbing them.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};

use crate::{
    error::{FileError, doing},
    path::RelPath,
    root::{LOOK, NameInDir, Root, kind},
};

/// Opens for reading, without waiting for the other end of a FIFO.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a regular file for reading, through links that stay inside the root.
///
/// The kind is checked before the open, since the writer of a FIFO would notice the open. It is
/// checked again afterwards, since another entry may have taken the name.
pub(crate) fn open(root: &Root, path: &RelPath) -> Result<(File, Stat), FileError> {
    checked(root.open_at(path, LOOK)?)?;
    checked(root.open_at(path, READ)?)
}

/// [`open`] for a name in a directory. The name may not be a link.
pub(crate) fn open_place(place: &NameInDir) -> Result<(File, Stat), FileError> {
    refuse_others(&place.stat()?)?;
    checked(place.open(READ)?)
}

/// Reads a small file in a directory to which others may write. Only a regular file is opened, and no link of that
/// name is followed. `None` if there is no such file, or it is larger than `most` bytes. Bytes that are not UTF-8 are
/// replaced, which may make the text longer than `most`.
pub(crate) fn small(path: &Path, most: u64) -> Option<String> {
    // The kind is checked before the open and after it, as in `open`.
    path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let flags = READ | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (file, _) = checked(rustix::fs::open(path, flags, Mode::empty()).ok()?).ok()?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    let fits = bytes.len() as u64 <= most;
    fits.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn checked(fd: OwnedFd) -> Result<(File, Stat), FileError> {
    let stat = fstat(fd.as_fd()).map_err(doing("look at it"))?;
    refuse_others(&stat)?;
    Ok((File::from(fd), stat))
}

fn refuse_others(stat: &Stat) -> Result<(), FileError> {
    match kind(stat) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::IsADirectory),
        FileType::Symlink => Err(FileError::Links),
        _ => Err(FileError::NotRegular),
    }
}

pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
