//! How much room there is on a disk.

pub use base::system::free_space as free;

/// Left free beside what arrives, in bytes: the disk belongs to others too.
pub const SPARE: u64 = 64 << 20;

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
