//! Invitations: how a machine becomes a member without a token that people pass on.
//!
//! - [`book`]: which invitations may be used, and by whom
//! - [`host`]: makes them, and answers machines that come with one
//! - [`guest`]: this machine, when it joins by one

use std::time::{Duration, SystemTime};

use base::NodeId;
use seal::PeerSecret;
use store::{Change, Fact, StoreError};
use tokio::{sync::Mutex, task};

use self::book::{Book, Invite, InviteId, NotTaken};
use crate::{
    error::ClusterError,
    facts::{Facts, INVITES as KIND},
};

pub(crate) mod book;
pub(crate) mod guest;
pub(crate) mod host;

#[cfg(test)]
mod tests;

/// An invitation that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invited {
    /// Its id, which is no secret.
    pub id: String,
    /// The code by which a machine joins.
    pub code: String,
    /// When it ends, since 1970.
    pub until: Duration,
    /// The addresses at which the joining machine reaches this one.
    pub addresses: Vec<String>,
}

/// An invitation that may still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenInvite {
    /// Its id.
    pub id: String,
    /// When it ends, since 1970.
    pub until: Duration,
}

/// Why no invitation is made, or this machine does not join. The words say what to do.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The text is not a code.
    #[error(transparent)]
    Code(#[from] protocol::workspace::peer::sealed::BadInvitation),
    /// The invitation is not accepted, or none is made.
    #[error("{0}")]
    Refused(String),
    /// The invitation names no address.
    #[error("the invitation names no address: the inviting machine is in no network")]
    NoAddress,
    /// This machine is in a cluster.
    #[error("this machine is in a cluster already: run `warren cluster leave` first")]
    Member,
    /// The inviting machine could not be reached, at none of its addresses.
    #[error(
        "the inviting machine cannot be reached: {0}; check that it runs and that its peer port is \
         open to this machine (--peer-listen there), and run the same line again"
    )]
    Unreachable(String),
    /// The change cannot be stored.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl From<NotTaken> for JoinError {
    fn from(words: NotTaken) -> Self {
        Self::Refused(words.to_string())
    }
}

/// The invitations of this member, in memory just as they are stored.
#[derive(Default)]
pub(crate) struct Invites(Mutex<Book>);

impl Invites {
    pub(crate) async fn load(facts: &Facts) -> Result<Self, ClusterError> {
        let facts = facts.clone();
        let loaded = task::spawn_blocking(move || facts.all(KIND)).await;
        let mut book = Book::default();
        let rows = loaded.map_err(|_| ClusterError::Failed)??;
        let invites = rows.iter().filter_map(|row| serde_json::from_str(&row.json).ok());
        invites.for_each(|invite| book.restore(invite));
        Ok(Self(Mutex::new(book)))
    }

    /// The secret of an invitation, even of one that may no longer be used: only a machine that has
    /// the secret is told why.
    pub(crate) async fn secret(&self, id: InviteId) -> Result<PeerSecret, NotTaken> {
        self.0.lock().await.secret(id)
    }

    async fn is_used(&self, id: InviteId) -> bool {
        self.0.lock().await.is_used(id)
    }

    /// Adds an invitation with this secret. It is stored when this returns.
    async fn open(&self, facts: &Facts, secret: [u8; 16]) -> Result<OpenInvite, JoinError> {
        let mut book = self.0.lock().await;
        let (id, invite, dropped) = book.open(secret, now_ms())?;
        let mut changes: Vec<Change> = dropped.into_iter().map(forgotten).collect();
        changes.push(kept(id, &invite));
        if let Err(error) = keep(facts, changes).await {
            book.withdraw(id);
            return Err(error.into());
        }
        Ok(shown(id, &invite))
    }

    pub(crate) async fn open_ones(&self) -> Vec<OpenInvite> {
        let book = self.0.lock().await;
        book.open_ones(now_ms()).map(|(id, invite)| shown(id, invite)).collect()
    }

    pub(crate) async fn withdraw(&self, facts: &Facts, id: &str) -> Result<bool, ClusterError> {
        let Some(id) = InviteId::read(id) else { return Ok(false) };
        let mut book = self.0.lock().await;
        keep(facts, vec![forgotten(id)]).await?;
        Ok(book.withdraw(id))
    }

    /// Makes all of them older, as if this time had passed.
    #[cfg(test)]
    pub(crate) async fn age(&self, by: Duration) {
        self.0.lock().await.age(by);
    }

    /// Uses an invitation. `store` must store the given change together with the new member. Two
    /// machines that come at once are taken in one after the other.
    async fn spend<E: From<NotTaken>>(
        &self,
        id: InviteId,
        key: NodeId,
        store: impl AsyncFnOnce(Change) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut book = self.0.lock().await;
        let used = book.used(id, key, now_ms())?;
        store(kept(id, &used)).await?;
        book.keep(id, used);
        Ok(())
    }
}

async fn keep(facts: &Facts, changes: Vec<Change>) -> Result<(), ClusterError> {
    let facts = facts.clone();
    let kept = task::spawn_blocking(move || facts.keep_settings(&changes)).await;
    let kept: Result<(), StoreError> = kept.map_err(|_| ClusterError::Failed)?;
    Ok(kept?)
}

fn kept(id: InviteId, invite: &Invite) -> Change {
    // Numbers and a key are always JSON.
    let json = serde_json::to_string(invite).unwrap_or_default();
    Change::Keep(Fact { kind: KIND.to_owned(), id: id.to_string(), json })
}

fn forgotten(id: InviteId) -> Change {
    Change::Forget { kind: KIND.to_owned(), id: id.to_string() }
}

fn shown(id: InviteId, invite: &Invite) -> OpenInvite {
    OpenInvite { id: id.to_string(), until: Duration::from_millis(invite.until_ms) }
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    base::unix_ms(SystemTime::now())
}
