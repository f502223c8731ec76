//! Ids that nobody can guess.

use rand::RngExt;

/// A new id: these letters, and 128 random bits.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{:032x}", rand::rng().random::<u128>())
}
