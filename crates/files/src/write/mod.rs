//! A text written atomically, unless it has changed since it was read.
//!
//! The new text goes into a file beside the old one, to the disk, and then takes its name: whoever
//! reads sees the old text or the new one. Mode and owner stay. Other hard links keep the old text;
//! access lists beyond the mode are not carried over. A link is written through, to the file inside
//! of the root that it leads to.
//!
//! - `target`: where a path leads, through links
//! - `temporary`: the file beside it
//! - [`Unfinished`]: the list of them, for the next start after a kill
//! - `turns`: our own writers of one file go one after the other

mod target;
mod temporary;
#[cfg(test)]
mod tests;
mod turns;
mod unfinished;

use std::fs::File;

use protocol::workspace::limits::TEXT_FILE_MAX;
use rustix::{
    fs::{Access, AtFlags, Stat, accessat},
    io::Errno,
};

pub use self::unfinished::{Left, Unfinished};
pub(crate) use self::{
    temporary::{PLAIN, Temporary},
    unfinished::is_temporary,
};
use crate::{
    error::{FileError, doing},
    path::RelPath,
    read::{digest, digest_of, within},
    regular,
    root::{Identity, Place, Root},
};

/// The largest file whose digest is told in a conflict, in bytes.
pub const DIGESTED_MAX: u64 = 64 << 20;
/// How often a write begins again when others change the file in between.
const TRIES: usize = 8;

/// Writes a text file and gives the digest of what is in it now.
///
/// With `base_sha256` the write is refused unless the file has that digest, until the very moment
/// that the new text takes its place. Without, whatever is there is replaced, or a file is created
/// (mode 0644 as far as the umask lets it).
///
/// # Errors
///
/// [`FileError::Conflict`]; [`FileError::TooLarge`] over 1 MiB; [`FileError::Owner`];
/// [`FileError::NoSpace`], and as for every path. The old file is as it was then.
pub fn text(
    root: &Root,
    path: &RelPath,
    content: &str,
    base_sha256: Option<&str>,
) -> Result<String, FileError> {
    within(content.len() as u64, TEXT_FILE_MAX as u64)?;
    let place = target::find(root, path)?;
    let _turn = turns::take(&place)?;
    for _ in 0..TRIES {
        match attempt(&place, content.as_bytes(), base_sha256)? {
            Attempt::Written => return Ok(digest(content.as_bytes())),
            Attempt::Disturbed => {}
        }
    }
    Err(FileError::Busy)
}

/// How one try ended.
enum Attempt {
    Written,
    /// Somebody else changed the file's name or content in between: look again.
    Disturbed,
}

fn attempt(place: &Place, content: &[u8], base: Option<&str>) -> Result<Attempt, FileError> {
    match place.stat_if_there()? {
        None if base.is_some() => Err(FileError::Conflict { current_sha256: None }),
        None => create(place, content),
        Some(_) => match Old::open(place) {
            Err(FileError::NotFound) => Ok(Attempt::Disturbed),
            old => replace(place, content, base, old?),
        },
    }
}

fn create(place: &Place, content: &[u8]) -> Result<Attempt, FileError> {
    let mut beside = Temporary::create(place, PLAIN)?;
    beside.fill(content)?;
    match beside.publish(place.name()) {
        Err(FileError::Exists) => Ok(Attempt::Disturbed),
        other => other.map(|()| Attempt::Written),
    }
}

fn replace(
    place: &Place,
    content: &[u8],
    base: Option<&str>,
    mut old: Old,
) -> Result<Attempt, FileError> {
    may_write(place)?;
    old.has_digest(base)?;
    let mut beside = Temporary::create(place, temporary::PRIVATE)?;
    beside.fill_like(content, &old.stat)?;
    if !old.is_still(place, base)? {
        return Ok(Attempt::Disturbed);
    }
    beside.replace(place.name())?;
    Ok(Attempt::Written)
}

/// A file that may be replaced in its directory may still forbid to be written.
fn may_write(place: &Place) -> Result<(), FileError> {
    match accessat(place.dir(), place.name(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
        other => other.map_err(doing("write it")),
    }
}

/// The file that is to be replaced, held open, so that it stays the one that was looked at.
struct Old {
    file: File,
    stat: Stat,
}

impl Old {
    fn open(place: &Place) -> Result<Self, FileError> {
        let (file, stat) = regular::open_place(place)?;
        Ok(Self { file, stat })
    }

    fn has_digest(&mut self, base: Option<&str>) -> Result<(), FileError> {
        let Some(base) = base else { return Ok(()) };
        let current = digest_of(&mut self.file, DIGESTED_MAX)?;
        if current.eq_ignore_ascii_case(base) {
            return Ok(());
        }
        Err(FileError::Conflict { current_sha256: Some(current) })
    }

    /// Whether the name still leads to this file, and (where that matters) to the same bytes.
    fn is_still(&mut self, place: &Place, base: Option<&str>) -> Result<bool, FileError> {
        self.has_digest(base)?;
        let now = place.stat_if_there()?;
        Ok(now.is_some_and(|now| Identity::from(&now) == Identity::from(&self.stat)))
    }
}
