//! A model as it is listed.

use base::ModelName;

use super::details::Details;

/// A model as it is listed.
pub(super) struct Listed {
    pub(super) id: ModelName,
    /// When it was first seen, in seconds since 1970.
    pub(super) created: u64,
    pub(super) details: Details,
}
