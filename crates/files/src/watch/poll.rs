//! A scan of a tree. Its result is a number that differs after a change.

use std::{
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::rules::{self, Rules};

/// Scans at most `most` entries of a tree, and the files of its repository that tell of changes. `None` if the root is
/// missing.
pub(super) fn fingerprint(root: &Path, most: usize) -> Option<u64> {
    let entries = Rules::of(root).walk(root).take(most).map(|entry| {
        let meta = entry.metadata();
        of(entry.path(), meta.ok().as_ref())
    });
    // The numbers are added up, since the entries of a directory have no fixed order.
    let files = entries.fold(0, u64::wrapping_add);
    let git = rules::git_dir(root).map_or(0, |dir| repository(&dir));
    root.is_dir().then(|| files.wrapping_add(git))
}

fn repository(git_dir: &Path) -> u64 {
    let telling = rules::telling(git_dir);
    telling.map(|path| of(&path, path.symlink_metadata().ok().as_ref())).fold(0, u64::wrapping_add)
}

fn of(path: &Path, meta: Option<&Metadata>) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let what =
        meta.map(|m| (m.ino(), m.size(), m.mode(), m.mtime(), m.mtime_nsec(), m.ctime_nsec()));
    what.hash(&mut hasher);
    hasher.finish()
}
