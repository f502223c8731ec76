//! The free space on a disk.

pub use base::system::free_space;

#[cfg(test)]
mod tests {
    use std::{io, path::Path};

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
