//! The replica's facts, and the cluster's settings, in the store.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD as BASE64};
use replica::{Fact, Stored};
use store::{Change, Fact as Row, StoreError, WorkspaceStore};

/// The kind of the replica's facts in the store.
const REPLICA: &str = "replica";
/// The kinds of the other facts: the setup, the invitations, the barred keys.
pub(crate) const CONFIG: &str = "cluster";
pub(crate) const INVITES: &str = "invite";
pub(crate) const BARRED: &str = "barred";

/// Why the facts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The store failed.
    #[error("cannot read what the cluster has stored")]
    Store(#[from] StoreError),
    /// The content is damaged, or of a newer Warren.
    #[error(
        "what the cluster has stored cannot be read: it is damaged, or of a newer Warren; going on \
         without it could delete objects on other machines"
    )]
    Unreadable,
}

/// The store, as the cluster uses it.
#[derive(Clone)]
pub(crate) struct Facts(Arc<dyn WorkspaceStore>);

impl Facts {
    pub(crate) fn new(store: Arc<dyn WorkspaceStore>) -> Self {
        Self(store)
    }

    /// All that the replica stored. Blocks.
    pub(crate) fn load(&self) -> Result<Stored, FactsError> {
        let rows = self.0.load_facts(REPLICA)?;
        let bytes = |text: &str| BASE64.decode(text).map_err(|_| FactsError::Unreadable);
        let facts = rows
            .iter()
            .map(|row| Ok((bytes(&row.id)?, bytes(&row.json)?)))
            .collect::<Result<Vec<_>, FactsError>>()?;
        let facts = facts.iter().map(|(name, value)| (&name[..], &value[..]));
        Stored::from_bytes(facts).map_err(|_| FactsError::Unreadable)
    }

    /// Stores the replica's facts, and other changes with them, in one transaction. Blocks.
    pub(crate) fn keep(&self, facts: &[Fact], others: &[Change]) -> Result<(), StoreError> {
        let changes: Vec<Change> = facts.iter().map(change).chain(others.iter().cloned()).collect();
        self.0.change_facts(&changes)
    }

    /// Forgets everything that the cluster stored. Blocks.
    pub(crate) fn forget(&self) -> Result<(), StoreError> {
        let mut changes = Vec::new();
        for kind in [REPLICA, CONFIG, INVITES, BARRED] {
            let rows = self.0.load_facts(kind)?;
            changes
                .extend(rows.into_iter().map(|Row { kind, id, .. }| Change::Forget { kind, id }));
        }
        self.0.change_facts(&changes)
    }

    /// A setting of the cluster. Blocks.
    pub(crate) fn setting(&self, kind: &str, id: &str) -> Result<Option<String>, StoreError> {
        let rows = self.0.load_facts(kind)?;
        Ok(rows.into_iter().find(|row| row.id == id).map(|row| row.json))
    }

    /// All facts of a kind. Blocks.
    pub(crate) fn all(&self, kind: &str) -> Result<Vec<Row>, StoreError> {
        self.0.load_facts(kind)
    }

    /// Stores settings in one transaction. Blocks.
    pub(crate) fn keep_settings(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.0.change_facts(changes)
    }
}

fn change(fact: &Fact) -> Change {
    let (name, value) = fact.to_bytes();
    let (kind, id) = (REPLICA.to_owned(), BASE64.encode(name));
    match value {
        Some(value) => Change::Keep(Row { kind, id, json: BASE64.encode(value) }),
        None => Change::Forget { kind, id },
    }
}
