//! Opening regular files without blocking on, or disturbing, anything else.

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

/// Never waits for the other end of a FIFO.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a regular file for reading, through links that stay inside.
///
/// Its kind is checked before the open, which a FIFO's writer would notice, and after it,
/// since another entry may have taken its name.
pub(crate) fn open(root: &Root, path: &RelPath) -> Result<(File, Stat), FileError> {
    checked(root.open_at(path, LOOK)?)?;
    checked(root.open_at(path, READ)?)
}

/// The same for a name in a directory, which may not be a link.
pub(crate) fn open_place(place: &NameInDir) -> Result<(File, Stat), FileError> {
    refuse_others(&place.stat()?)?;
    checked(place.open(READ)?)
}

/// Reads a small file of a known name in a directory that others write to. No link is followed,
/// and only a regular file is opened. `None` also when it is larger than `most`.
pub(crate) fn small(path: &Path, most: u64) -> Option<String> {
    // Checked before the open and after it, as in `open`.
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
