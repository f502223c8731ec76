//! The writes of a session's hand-over into the replica. `replica::handover` decides on them.

use replica::{Change, Input, Key, Kind, Refused};
use store::{Change as Row, Fact};

use crate::{
    Cluster, WriteError,
    driver::Driver,
    facts::{Facts, FactsError},
};

/// The kind of the stored facts about sessions that move here, by the session's id.
pub const ARRIVAL: &str = "arrival";

/// A fact of this machine about a session, which is stored in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its kind.
    pub kind: &'static str,
    /// Its content as JSON; `None` if the fact is to be forgotten.
    pub json: Option<String>,
}

impl Note {
    fn row(self, id: &str) -> Row {
        let (kind, id) = (self.kind.to_owned(), id.to_owned());
        match self.json {
            Some(json) => Row::Keep(Fact { kind, id, json }),
            None => Row::Forget { kind, id },
        }
    }
}

impl Cluster {
    /// Gives a session to another member. The write is stored, together with `note`, when this
    /// returns.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing is changed.
    pub async fn give_session(
        &self,
        id: &str,
        to: &str,
        value: String,
        note: Note,
    ) -> Result<(), WriteError> {
        let (key, value) = (Key::new(Kind::SESSION, id), value.into());
        let write = Input::Write { key, owner: to.into(), value, change: Change::Move };
        self.shared().driver.ask_with(write, vec![note.row(id)]).await
    }

    /// Takes back a session that another member has refused. The write is stored, together with
    /// `note`, when this returns.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing is changed.
    pub async fn take_session_back(
        &self,
        id: &str,
        value: String,
        note: Note,
    ) -> Result<(), WriteError> {
        let moved = self.give_session(id, self.node_id(), value.clone(), note.clone()).await;
        let Err(WriteError::Refused(Refused::Unknown)) = moved else { return moved };
        // The other member lost what was staged, took the session for one that it forgot, and
        // deleted it.
        let (key, owner) = (Key::new(Kind::SESSION, id), self.node_id().into());
        let write = Input::Write { key, owner, value: value.into(), change: Change::Update };
        self.shared().driver.ask_with(write, vec![note.row(id)]).await
    }

    /// A session is staged here. It becomes this member's when its entry names this member as
    /// owner.
    ///
    /// # Errors
    /// [`WriteError`] if the server is stopping.
    pub async fn expect_session(&self, id: &str) -> Result<(), WriteError> {
        self.shared().driver.ask(Input::Expect { key: Key::new(Kind::SESSION, id) }).await
    }

    /// The session does not move here after all.
    ///
    /// # Errors
    /// [`WriteError`] if the server is stopping.
    pub async fn unexpect_session(&self, id: &str) -> Result<(), WriteError> {
        self.shared().driver.ask(Input::Unexpect { key: Key::new(Kind::SESSION, id) }).await
    }

    /// How often a session has moved, and its owner; `None` if the session is not known.
    pub fn session_moves(&self, id: &str) -> Option<(u64, String)> {
        let entry = self.directory().get(Kind::SESSION, id)?;
        Some((entry.rank.moves, entry.owner.as_str().to_owned()))
    }

    /// Whether a member speaks the protocol of Warrens.
    pub fn is_warren(&self, node: &str) -> bool {
        self.directory().get(Kind::MEMBER, node).is_some()
    }
}

/// Tells the replica which sessions were staged before this start. That must happen before the
/// first link.
pub(crate) async fn expect_staged(driver: &Driver, facts: &Facts) -> Result<(), FactsError> {
    let facts = facts.clone();
    let staged = tokio::task::spawn_blocking(move || facts.all(ARRIVAL)).await;
    for fact in staged.map_err(|_| FactsError::Unreadable)?? {
        let key = Key::new(Kind::SESSION, fact.id);
        // This cannot fail, since the driver has just been started.
        let _stopping = driver.ask(Input::Expect { key }).await;
    }
    Ok(())
}
