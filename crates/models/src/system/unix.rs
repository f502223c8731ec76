//! Linux and macOS.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::{
    fs::{CWD, OFlags, RenameFlags, renameat_with},
    io::Errno,
};

pub(crate) use std::os::unix::fs::FileExt;

/// Opens a file to be read. No symbolic link is followed, and a pipe is not waited for.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Lets two paths change places at once. Returns whether the file system can do that.
pub(crate) fn swap(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        swapped => Ok(swapped.map(|()| true)?),
    }
}

/// Makes what was renamed or created in a directory outlive a loss of power.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
