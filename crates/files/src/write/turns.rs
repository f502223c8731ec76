//! Writers of one file in this process wait for each other. So of two writers with the same base,
//! the second one gets a conflict.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::fstat;

use crate::{
    error::{FileError, doing},
    root::{Identity, NameInDir},
};

/// The number of locks. Files share locks by hash, so no map can grow.
const LOCKS: usize = 64;

static TURNS: [Mutex<()>; LOCKS] = [const { Mutex::new(()) }; LOCKS];

/// Waits for the file's turn. The wait is short, since a writer writes at most 1 MiB and computes
/// the digest of one other file.
pub(super) fn take(place: &NameInDir) -> Result<MutexGuard<'static, ()>, FileError> {
    let dir = fstat(place.dir()).map_err(doing("look at it"))?;
    let mut hasher = DefaultHasher::new();
    (Identity::from(&dir), place.name()).hash(&mut hasher);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of locks"
    )]
    let index = (hasher.finish() % LOCKS as u64) as usize;
    // The lock guards no data, so a panicked writer has broken nothing.
    Ok(TURNS[index].lock().unwrap_or_else(PoisonError::into_inner))
}
