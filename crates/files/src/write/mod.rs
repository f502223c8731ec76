//! Writes a text atomically, unless the file has changed since it was read.
//!
//! The new text is written to a file beside the old one, synced, and renamed to the old name. So
//! readers see either the old text or the new one. Mode and owner are kept. Other hard links keep
//! the old text; access lists beyond the mode are lost. A link is followed to the file inside the
//! root that it leads to.
//!
//! - `target`: the file that a path leads to, through links
//! - `temporary`: the new file beside it
//! - `turn`: the writers of one file, one after the other
//! - [`TemporaryFiles`]: the list of temporary files, by which the start after a kill removes them
//!
//! Writers of one file in this process wait for each other. So of two writers with the same base, the
//! second one gets a conflict.

mod target;
mod temporary;
mod temporary_files;
#[cfg(test)]
mod tests;
mod turn;

use std::fs::File;

use protocol::workspace::limits::TEXT_FILE_MAX;
use rustix::{
    fs::{Access, AtFlags, Stat, accessat},
    io::Errno,
};

pub use self::temporary_files::{LeftFile, TemporaryFiles};
use self::turn::Turn;
pub(crate) use self::{
    temporary::{PLAIN, Temporary},
    temporary_files::is_temporary,
};
use crate::{
    error::{FileError, doing},
    path::RelPath,
    read::{digest, digest_of, within},
    regular,
    root::{Identity, NameInDir, Root},
};

/// The largest file whose digest a conflict contains, in bytes.
pub const DIGESTED_MAX: u64 = 64 << 20;
/// The most tries of a write: it is repeated when others have changed the file meanwhile.
const TRIES: usize = 8;

/// Writes a text file and returns the digest of its new content.
///
/// With `base_sha256` the write is refused unless the file has that digest, which is checked for the last time just
/// before the rename. Without it, any file is replaced, or a new one is created with the mode
/// 0644, before the umask.
///
/// # Errors
///
/// [`FileError::Conflict`]; [`FileError::TooLarge`] over 1 MiB; [`FileError::Owner`];
/// [`FileError::NoSpace`], and as for every path. After an error the old file is unchanged.
pub fn text(
    root: &Root,
    path: &RelPath,
    content: &str,
    base_sha256: Option<&str>,
) -> Result<String, FileError> {
    within(content.len() as u64, TEXT_FILE_MAX as u64)?;
    let place = target::find(root, path)?;
    let _turn = Turn::take(&place)?;
    for _ in 0..TRIES {
        match attempt(&place, content.as_bytes(), base_sha256)? {
            Attempt::Written => return Ok(digest(content.as_bytes())),
            Attempt::Disturbed => {}
        }
    }
    Err(FileError::Busy)
}

enum Attempt {
    Written,
    /// Others have created, removed or replaced the file meanwhile: the write must be tried again.
    Disturbed,
}

fn attempt(place: &NameInDir, content: &[u8], base: Option<&str>) -> Result<Attempt, FileError> {
    match place.stat_if_there()? {
        None if base.is_some() => Err(FileError::Conflict { current_sha256: None }),
        None => create(place, content),
        Some(_) => match OldFile::open(place) {
            Err(FileError::NotFound) => Ok(Attempt::Disturbed),
            old => replace(place, content, base, old?),
        },
    }
}

fn create(place: &NameInDir, content: &[u8]) -> Result<Attempt, FileError> {
    let mut beside = Temporary::create(place, PLAIN)?;
    beside.fill(content)?;
    match beside.publish(place.name()) {
        Err(FileError::Exists) => Ok(Attempt::Disturbed),
        other => other.map(|()| Attempt::Written),
    }
}

fn replace(
    place: &NameInDir,
    content: &[u8],
    base: Option<&str>,
    mut old: OldFile,
) -> Result<Attempt, FileError> {
    may_write(place)?;
    old.check_digest(base)?;
    let mut beside = Temporary::create(place, temporary::PRIVATE)?;
    beside.fill_like(content, &old.stat)?;
    if !old.check_name(place, base)? {
        return Ok(Attempt::Disturbed);
    }
    beside.replace(place.name())?;
    Ok(Attempt::Written)
}

/// Refuses to replace a read-only file. The rename alone would replace it, since it needs only a
/// writable directory.
fn may_write(place: &NameInDir) -> Result<(), FileError> {
    match accessat(place.dir(), place.name(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
        other => other.map_err(doing("write it")),
    }
}

/// The file to replace. It is held open so that no new file gets its inode number, by which it is recognised.
struct OldFile {
    file: File,
    stat: Stat,
}

impl OldFile {
    fn open(place: &NameInDir) -> Result<Self, FileError> {
        let (file, stat) = regular::open_place(place)?;
        Ok(Self { file, stat })
    }

    fn check_digest(&mut self, base: Option<&str>) -> Result<(), FileError> {
        let Some(base) = base else { return Ok(()) };
        let current = digest_of(&mut self.file, DIGESTED_MAX)?;
        if current.eq_ignore_ascii_case(base) {
            return Ok(());
        }
        Err(FileError::Conflict { current_sha256: Some(current) })
    }

    /// Checks whether the name still leads to this file. Fails with a conflict if there is a base and
    /// the bytes no longer match it.
    fn check_name(&mut self, place: &NameInDir, base: Option<&str>) -> Result<bool, FileError> {
        self.check_digest(base)?;
        let now = place.stat_if_there()?;
        Ok(now.is_some_and(|now| Identity::from(&now) == Identity::from(&self.stat)))
    }
}
