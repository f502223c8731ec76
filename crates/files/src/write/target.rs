//! The file that a path leads to, through links, as a name in an opened directory.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{FileType, OFlags, readlinkat},
    io::Errno,
};

use crate::{
    error::FileError,
    path::RelPath,
    root::{LOOK, NameInDir, Root, kind},
};

/// The most links in a row; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Finds the directory and name of the file that a path leads to, existing or not.
///
/// Only the texts of links are joined here; the kernel resolves each result beneath the root. A
/// link that is swapped meanwhile may lead elsewhere inside the root, but never outside.
pub(super) fn find(root: &Root, path: &RelPath) -> Result<NameInDir, FileError> {
    let mut place = root.place(path)?;
    let mut text = path.as_str().to_owned();
    for _ in 0..MAX_LINKS {
        match place.stat_if_there()? {
            Some(stat) if kind(&stat) == FileType::Symlink => {}
            _ => return Ok(place),
        }
        if let Some(link) = link(&place)? {
            text = joined(&text, &link)?;
            place = place_of(root, &text)?;
        }
    }
    Err(FileError::Links)
}

/// The text of a link; `None` if the entry is no longer a link.
fn link(place: &NameInDir) -> Result<Option<String>, FileError> {
    match readlinkat(place.dir(), place.name(), Vec::new()) {
        Err(Errno::INVAL) => Ok(None),
        Err(other) => Err(FileError::of("follow it", other)),
        Ok(target) => target.into_string().map(Some).map_err(|_| FileError::Links),
    }
}

fn joined(path: &str, link: &str) -> Result<String, FileError> {
    if link.starts_with('/') {
        return Err(FileError::Escapes);
    }
    let joined = path.rsplit_once('/').map_or(link.to_owned(), |(dir, _)| format!("{dir}/{link}"));
    if joined.len() > crate::path::PATH_MAX { Err(FileError::Links) } else { Ok(joined) }
}

/// Opens the directory of a path. The path may contain `..`, which the kernel resolves; its last
/// part must be a plain name.
fn place_of(root: &Root, text: &str) -> Result<NameInDir, FileError> {
    let (dir, name) = text.rsplit_once('/').unwrap_or(("", text));
    if matches!(name, "" | "." | "..") {
        return Err(FileError::IsADirectory);
    }
    root.place_in(open(root, dir)?, name)
}

fn open(root: &Root, dir: &str) -> Result<OwnedFd, FileError> {
    root.open_text(dir, LOOK | OFlags::DIRECTORY).map_err(|error| match error {
        FileError::NotFound | FileError::NotADirectory => FileError::NoParent,
        other => other,
    })
}
