//! Our own writers of one file go one after the other, so that of two with the same base the
//! second gets a conflict.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::fstat;

use crate::{
    error::{FileError, doing},
    root::{Identity, Place},
};

/// Files share a lock by chance: a fixed number of them needs no map that grows.
const LOCKS: usize = 64;

static TURNS: [Mutex<()>; LOCKS] = [const { Mutex::new(()) }; LOCKS];

/// Waits for the file's turn. A writer does little under it: one file of at most 1 MiB, and the
/// digest of another.
pub(super) fn take(place: &Place) -> Result<MutexGuard<'static, ()>, FileError> {
    let dir = fstat(place.dir()).map_err(doing("look at it"))?;
    let mut hasher = DefaultHasher::new();
    (Identity::from(&dir), place.name()).hash(&mut hasher);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of locks"
    )]
    let index = (hasher.finish() % LOCKS as u64) as usize;
    // It guards no data: a writer that panicked leaves nothing broken behind it.
    Ok(TURNS[index].lock().unwrap_or_else(PoisonError::into_inner))
}
