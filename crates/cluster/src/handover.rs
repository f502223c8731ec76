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
    /// Its content as JSON; `None`: it is forgotten.
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
    /// Gives a session to another member. It is stored, together with `note`, when this returns.
    ///
    /// # Errors
    /// [`WriteError`]; nothing is changed then.
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

    /// Takes a session back that another member has refused. It is stored, together with `note`, when
    /// this returns.
    ///
    /// # Errors
    /// [`WriteError`]; nothing is changed then.
    pub async fn take_session_back(
        &self,
        id: &str,
        value: String,
        note: Note,
    ) -> Result<(), WriteError> {
        let moved = self.give_session(id, self.node_id(), value.clone(), note.clone()).await;
        let Err(WriteError::Refused(Refused::Unknown)) = moved else { return moved };
        // The other member has lost what was staged, and taken the session for one that it forgot.
        let (key, owner) = (Key::new(Kind::SESSION, id), self.node_id().into());
        let write = Input::Write { key, owner, value: value.into(), change: Change::Update };
        self.shared().driver.ask_with(write, vec![note.row(id)]).await
    }

    /// A session is staged here: when its version says that it is this member's, it is.
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

    /// How often a session has moved, and its owner; `None` if it is not known.
    pub fn session_moves(&self, id: &str) -> Option<(u64, String)> {
        let entry = self.directory().get(Kind::SESSION, id)?;
        Some((entry.rank.moves, entry.owner.as_str().to_owned()))
    }

    /// Whether a member speaks the protocol of Warrens.
    pub fn is_warren(&self, node: &str) -> bool {
        self.directory().get(Kind::MEMBER, node).is_some()
    }
}

/// Tells the replica of the sessions that were staged before this start. It must hear of them before
/// the first link.
pub(crate) async fn expect_staged(driver: &Driver, facts: &Facts) -> Result<(), FactsError> {
    let facts = facts.clone();
    let staged = tokio::task::spawn_blocking(move || facts.all(ARRIVAL)).await;
    for fact in staged.map_err(|_| FactsError::Unreadable)?? {
        let key = Key::new(Kind::SESSION, fact.id);
        // The driver has just been started.
        let _stopping = driver.ask(Input::Expect { key }).await;
    }
    Ok(())
}
