//! Facts of the workspace: projects, sessions, teams and their parts. The store itself has facts of its own kinds
//! here, too.

use crate::StoreError;

/// The most changes that should be written in one step: callers with more split them.
pub const MAX_CHANGES: usize = 4096;

/// A fact of the workspace. Its content means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its kind: `project`, `session`, `team`, …
    pub kind: String,
    /// The id within its kind.
    pub id: String,
    /// The content, as JSON.
    pub json: String,
}

/// A change of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Stores a fact, or replaces the one with its kind and id.
    Keep(Fact),
    /// Deletes a fact. An unknown one is no error.
    Forget {
        /// Its kind.
        kind: String,
        /// The id within its kind.
        id: String,
    },
}

/// A store of facts.
pub trait WorkspaceStore: Send + Sync {
    /// All facts of a kind, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load_facts(&self, kind: &str) -> Result<Vec<Fact>, StoreError>;

    /// Applies these changes in order, all of them or none.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    fn change_facts(&self, changes: &[Change]) -> Result<(), StoreError>;
}
