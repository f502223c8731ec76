//! The free space on a disk.

use std::{io, path::Path};

/// The bytes that this user can still write to the file system that this path lies on: what is
/// kept for the administrator is not counted.
///
/// # Errors
///
/// The path is not there, or cannot be reached.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(path)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_tells_its_free_space_and_an_absent_one_that_it_is_absent() {
        let directory = tempfile::tempdir().unwrap();
        assert!(free_space(directory.path()).unwrap() > 0);
        let absent = free_space(&directory.path().join("absent")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_system_without_blocks_has_no_space() {
        if Path::new("/proc/self").exists() {
            assert_eq!(free_space(Path::new("/proc")).unwrap(), 0);
        }
    }
}
