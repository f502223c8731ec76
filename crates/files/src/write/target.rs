//! Where a path leads, through links, as a name in an opened directory.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{FileType, OFlags, readlinkat},
    io::Errno,
};

use crate::{
    error::FileError,
    path::RelPath,
    root::{LOOK, Place, Root, kind},
};

/// How many links may lead to each other. The kernel's own number.
const MAX_LINKS: usize = 40;

/// Finds the place of the file that a path leads to, or would.
///
/// The texts of links are only joined here; each time the kernel resolves the whole beneath the
/// root. What is swapped in between may lead to another place inside, never outside.
pub(super) fn find(root: &Root, path: &RelPath) -> Result<Place, FileError> {
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

/// The text of a link. None: it is one no longer.
fn link(place: &Place) -> Result<Option<String>, FileError> {
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

/// The text may have `..` in it, which the kernel resolves; its last name must be a name.
fn place_of(root: &Root, text: &str) -> Result<Place, FileError> {
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
