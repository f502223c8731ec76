//! Directories read within bounds, and links followed only where they may lead.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::OfferedFile;
use crate::{
    disk_name::from_disk,
    manifest::MAX_FILES,
    name::{FileName, MAX_FILE_SEGMENTS},
};

/// The most entries of one directory that are looked at.
pub(crate) const MAX_ENTRIES: usize = 4 * MAX_FILES;

/// The entries of a directory, in the order of names: without hidden ones, and without names that are not
/// Unicode. Empty when there is no such directory.
pub(crate) fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let Ok(read) = fs::read_dir(directory) else { return Vec::new() };
    let shown = |entry: fs::DirEntry| {
        let name = from_disk(entry.file_name().into_string().ok()?);
        (!name.starts_with('.')).then(|| (name, entry.path()))
    };
    let mut entries: Vec<_> =
        read.take(MAX_ENTRIES).filter_map(Result::ok).filter_map(shown).collect();
    entries.sort();
    entries
}

/// The directories among them. A link to one is followed only to within `within`, which is resolved.
pub(super) fn directories(directory: &Path, within: &Path) -> Vec<(String, PathBuf)> {
    let resolved = |(name, path): (String, PathBuf)| {
        let path = inside(&path, within)?;
        path.is_dir().then_some((name, path))
    };
    entries(directory).into_iter().filter_map(resolved).collect()
}

/// The path with its links resolved, if it lies within `within`, which is resolved already.
pub(super) fn inside(path: &Path, within: &Path) -> Option<PathBuf> {
    let resolved = path.canonicalize().ok()?;
    resolved.starts_with(within).then_some(resolved)
}

/// All files below a directory, by their names from there. Links to files are followed to within
/// `within`, links to directories are not. `None` when there are more than [`MAX_FILES`].
pub(super) fn files(directory: &Path, within: &Path) -> Option<Vec<OfferedFile>> {
    let mut files = Vec::new();
    let mut open = vec![(String::new(), directory.to_owned(), 1)];
    let mut seen = 0;
    while let Some((prefix, directory, depth)) = open.pop() {
        for (name, path) in entries(&directory) {
            seen += 1;
            if seen > MAX_ENTRIES || files.len() > MAX_FILES {
                tracing::warn!(directory = %directory.display(), "too many files: not offered");
                return None;
            }
            let name = format!("{prefix}{name}");
            if !path.is_symlink() && path.is_dir() {
                if depth < MAX_FILE_SEGMENTS {
                    open.push((format!("{name}/"), path, depth + 1));
                }
            } else if let Some(path) = inside(&path, within) {
                files.extend(file(&name, &path));
            }
        }
    }
    Some(files)
}

/// A file whose path is resolved; `None` when it is no plain file, or has a name that no peer takes.
pub(super) fn file(name: &str, path: &Path) -> Option<OfferedFile> {
    let name = FileName::try_from(name).ok()?;
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(OfferedFile { name, size: meta.len(), path: path.to_owned() })
}
