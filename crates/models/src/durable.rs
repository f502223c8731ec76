//! Files written so that they are there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Writes a file beside its place and renames it into it. With `sync` it outlives a loss of power.
pub(crate) fn write(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    if sync {
        file.sync_all()?;
    }
    fs::rename(&beside, path)
}

/// Removes a file or a directory with all in it, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
