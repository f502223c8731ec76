//! Regular files, opened so that nothing else blocks or is disturbed.

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
    root::{LOOK, Place, Root, kind},
};

/// Reads without waiting for whoever might be at the other end.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a regular file for reading, through links that stay inside.
///
/// It is looked at before it is opened, for a FIFO's writer would notice the opening; and after,
/// for something else may have taken its place.
pub(crate) fn open(root: &Root, path: &RelPath) -> Result<(File, Stat), FileError> {
    checked(root.open_at(path, LOOK)?)?;
    checked(root.open_at(path, READ)?)
}

/// The same for a name in a directory, which may not be a link.
pub(crate) fn open_place(place: &Place) -> Result<(File, Stat), FileError> {
    refuse_others(&place.stat()?)?;
    checked(place.open(READ)?)
}

/// Reads a small file of a known name that lies where others write: no link in its place is followed,
/// and nothing else opened. None, too, when it is larger than that.
pub(crate) fn small(path: &Path, most: u64) -> Option<String> {
    // Looked at before it is opened and after, as in `open`.
    path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let flags = READ | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (file, _) = checked(rustix::fs::open(path, flags, Mode::empty()).ok()?).ok()?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    let fits = bytes.len() as u64 <= most;
    fits.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Passes on what is a regular file.
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

/// The size of a file, in bytes.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
