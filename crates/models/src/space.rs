//! How much room there is on a disk.

use std::{io, path::Path};

/// Left free beside what arrives, in bytes: the disk belongs to others too.
pub const SPARE: u64 = 64 << 20;

/// How many bytes a plain user may still write to the file system of this path.
///
/// # Errors
///
/// The system's error, as when the path does not exist.
pub fn free(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_disk_is_told_and_a_missing_path_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free(dir.path()).unwrap() > 0);
        assert!(free(&dir.path().join("nowhere")).is_err());
    }
}
