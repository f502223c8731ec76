//! Moves and renames, which never overwrite.

use std::{ffi::CStr, os::fd::BorrowedFd};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, linkat, mkdirat, openat, renameat,
        renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::create::new_place;
use crate::{
    error::FileError,
    path::RelPath,
    root::{Identity, Root, kind},
};

/// Moves or renames an entry, if the new name is free. A link is moved, not its target.
///
/// # Errors
///
/// [`FileError::NotFound`], [`FileError::Exists`], [`FileError::NoParent`],
/// [`FileError::IntoItself`], [`FileError::IsRoot`], [`FileError::OtherFileSystem`], and as for
/// every path.
pub fn move_entry(root: &Root, from: &RelPath, to: &RelPath) -> Result<(), FileError> {
    let source = root.place(from)?;
    let target = new_place(root, to)?;
    exclusively(source.dir(), source.name(), target.dir(), target.name()).map_err(|errno| {
        match errno {
            Errno::INVAL => FileError::IntoItself,
            Errno::XDEV => FileError::OtherFileSystem,
            other => from.explain(FileError::of("move it", other)),
        }
    })
}

/// Renames in one step of the kernel, and fails with `EXIST` if the new name is taken.
pub(crate) fn exclusively(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    match renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        // Network file systems may lack the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => by_hand(from_dir, from, to_dir, to),
        other => other,
    }
}

/// [`exclusively`] with older calls, in more than one step. A new hard link never replaces an entry. Directories, and
/// everything on file systems without hard links, replace a placeholder.
pub(super) fn by_hand(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    match linkat(from_dir, from, to_dir, to, AtFlags::empty()) {
        Ok(()) => remove_linked(from_dir, from, to_dir, to),
        Err(
            Errno::PERM | Errno::ISDIR | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL | Errno::MLINK,
        ) => onto_placeholder(from_dir, from, to_dir, to),
        other => other,
    }
}

/// Removes the old name of an entry that was linked to a new name. A file with which others have replaced it meanwhile
/// stays.
pub(super) fn remove_linked(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    let identity = |stat: Stat| Identity::from(&stat);
    let old = match look(from_dir, from) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map(identity)?,
    };
    if look(to_dir, to).map(identity) == Ok(old) {
        unlinkat(from_dir, from, AtFlags::empty())?;
    }
    Ok(())
}

/// Creates an empty entry of the same kind under the new name, and replaces that.
pub(super) fn onto_placeholder(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    let is_directory = kind(&look(from_dir, from)?) == FileType::Directory;
    let removal = if is_directory {
        mkdirat(to_dir, to, Mode::from_raw_mode(0o700))?;
        AtFlags::REMOVEDIR
    } else {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(to_dir, to, flags, Mode::from_raw_mode(0o600))?;
        AtFlags::empty()
    };
    let renamed = renameat(from_dir, from, to_dir, to);
    if renamed.is_err() {
        // Removes the placeholder. If others have filled the directory, the call fails and removes nothing.
        let _ = unlinkat(to_dir, to, removal);
    }
    match renamed {
        Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => Err(Errno::EXIST),
        other => other,
    }
}

fn look(dir: BorrowedFd<'_>, name: &CStr) -> Result<Stat, Errno> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}
