//! The audit log: who did what to the server, and when.

use crate::StoreError;

/// The most actions that are kept; the oldest are forgotten first.
pub const MAX_ACTIONS: usize = 100_000;

/// One administrative action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Who: a key's id, or a word for who needs none.
    pub who: String,
    /// What, such as `key.create`.
    pub what: String,
    /// To what: an id.
    pub target: String,
    /// `done`, or why it was not.
    pub outcome: String,
}

/// Where actions are kept.
pub trait AuditStore: Send + Sync {
    /// Adds an action, and forgets the oldest beyond [`MAX_ACTIONS`].
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn add_action(&self, action: &Action) -> Result<(), StoreError>;

    /// The newest actions first, so many at most.
    ///
    /// # Errors
    /// When they cannot be read.
    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError>;
}
