//! A rename that overwrites nothing.

use std::{ffi::CStr, os::fd::BorrowedFd};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags, linkat, mkdirat, renameat, renameat_with, unlinkat},
    io::Errno,
};

/// Renames, and fails with `EXIST` if anything has the new name, by one step of the kernel.
pub(crate) fn exclusively(
    from_dir: BorrowedFd<'_>,
    from: &CStr,
    to_dir: BorrowedFd<'_>,
    to: &CStr,
) -> Result<(), Errno> {
    match renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        // Network file systems may not know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => by_hand(from_dir, from, to_dir, to),
        other => other,
    }
}

/// The same from older means: a link is never made over anything, and a directory only ever takes
/// the place of an empty one, which is our own.
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
        // It is empty, or it is no longer ours; then this does nothing.
        let _ = unlinkat(to_dir, to, AtFlags::REMOVEDIR);
    }
    match renamed {
        Err(Errno::NOTEMPTY | Errno::NOTDIR) => Err(Errno::EXIST),
        other => other,
    }
}
