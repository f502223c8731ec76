//! The audit log: who did what to the server, and when.

use crate::StoreError;

/// The most actions that are kept; the oldest are forgotten first.
pub const MAX_ACTIONS: usize = 100_000;

/// One administrative action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The actor: a key's id, or a name such as `admin-token`.
    pub who: String,
    /// The action, such as `key.create`.
    pub what: String,
    /// The id of its target.
    pub target: String,
    /// `done`, or the reason of the failure.
    pub outcome: String,
}

/// A store of actions.
pub trait AuditStore: Send + Sync {
    /// Adds an action, and deletes the oldest beyond [`MAX_ACTIONS`].
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn add_action(&self, action: &Action) -> Result<(), StoreError>;

    /// At most `most` actions, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError>;
}
