//! A scan of a tree. Its result has a number that differs after a change.

use std::{
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::rules::{self, Rules};

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    /// A number that differs after a change.
    pub(super) fingerprint: u64,
    /// The directories that a watch of the tree would watch; `None` if not all entries were scanned.
    pub(super) directories: Option<usize>,
}

/// Scans at most `most` entries of a tree, and the files of its repository that tell of changes. `None` if the root is
/// missing.
pub(super) fn scan(root: &Path, most: usize) -> Option<Scan> {
    let git_dir = rules::git_dir(root);
    let (mut fingerprint, mut directories) = (0_u64, usize::from(git_dir.is_some()));
    let mut entries = Rules::of(root).walk(root);
    for entry in entries.by_ref().take(most) {
        let meta = entry.metadata();
        // The numbers are added up, since the entries of a directory have no fixed order.
        fingerprint = fingerprint.wrapping_add(of(entry.path(), meta.ok().as_ref()));
        directories += usize::from(entry.file_type().is_some_and(|kind| kind.is_dir()));
    }
    fingerprint = fingerprint.wrapping_add(git_dir.map_or(0, |dir| repository(&dir)));
    let directories = entries.next().is_none().then_some(directories);
    root.is_dir().then_some(Scan { fingerprint, directories })
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
