//! Moves and renames, which never overwrite.

use std::{ffi::CStr, os::fd::BorrowedFd};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags, linkat, mkdirat, renameat, renameat_with, unlinkat},
    io::Errno,
};

use super::create::new_place;
use crate::{error::FileError, path::RelPath, root::Root};

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

/// [`exclusively`] with older calls, in more than one step. A new hard link never replaces an entry. A renamed
/// directory can only replace an empty directory, which is the one created here.
pub(super) fn by_hand(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    match linkat(from_dir, from, to_dir, to, AtFlags::empty()) {
        Ok(()) => unlinkat(from_dir, from, AtFlags::empty()),
        Err(Errno::PERM | Errno::ISDIR) => directory_by_hand(from_dir, from, to_dir, to),
        other => other,
    }
}

fn directory_by_hand(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    mkdirat(to_dir, to, Mode::from_raw_mode(0o700))?;
    let renamed = renameat(from_dir, from, to_dir, to);
    if renamed.is_err() {
        // Removes the empty directory created here. If others have filled it, the call fails and
        // removes nothing.
        let _ = unlinkat(to_dir, to, AtFlags::REMOVEDIR);
    }
    match renamed {
        Err(Errno::NOTEMPTY | Errno::NOTDIR) => Err(Errno::EXIST),
        other => other,
    }
}
