//! What the workspace keeps: projects, sessions, teams and what belongs to them.

use crate::StoreError;

/// The most that is written in one step.
pub const MAX_CHANGES: usize = 4096;

/// Something that the workspace knows. What it says is for the workspace to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What sort of thing: `project`, `session`, `team`, …
    pub kind: String,
    /// Which one of its kind.
    pub id: String,
    /// All else, as JSON.
    pub json: String,
}

/// A change of what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This holds, in place of what was kept under its kind and id.
    Keep(Fact),
    /// Nothing is known of this any more. What is not there is no error.
    Forget {
        /// What sort of thing.
        kind: String,
        /// Which one of its kind.
        id: String,
    },
}

/// Where the facts of the workspace are kept.
pub trait WorkspaceStore: Send + Sync {
    /// All facts of a kind, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_facts(&self, kind: &str) -> Result<Vec<Fact>, StoreError>;

    /// Makes these changes in this order, all of them or none.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    fn change_facts(&self, changes: &[Change]) -> Result<(), StoreError>;
}
