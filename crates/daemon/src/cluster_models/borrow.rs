//! The key that another member has made for a session here.

use std::{sync::Arc, time::Duration};

use api::{ApiError, elsewhere::lost};
use cluster::{Circuit, Cluster};
use protocol::workspace::SessionId;
use tokio::{sync::Mutex, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Offers,
    find::{Place, find, first_reply},
    messages::{Ask, Reply},
    not_found,
};

/// How long a member may take to make a key.
const WITHIN: Duration = Duration::from_secs(10);

/// A session that uses a model which may be at another member.
pub(super) struct Borrower {
    pub(super) session: SessionId,
    pub(super) model: String,
    /// The key of the session at another member, if it has one. Locked while a member is looked for, so that several
    /// requests together make one key.
    lent: Mutex<Option<Arc<LentKey>>>,
    /// Cancelled when the session's own key has ended.
    ended: CancellationToken,
}

/// A key of the session at another member. It ends when this is dropped.
pub(super) struct LentKey {
    /// The member's node id.
    pub(super) node: String,
    /// The member's name, for people.
    pub(super) name: String,
    /// The task that keeps the circuit open, and ends when the circuit does.
    holding: AbortOnDropHandle<()>,
    /// Cancelled when the key must not be used any more.
    over: CancellationToken,
}

impl Borrower {
    pub(super) fn new(session: SessionId, model: &str) -> Self {
        let (lent, ended) = Default::default();
        Self { session, model: model.to_owned(), lent, ended }
    }

    /// Notes that the session's own key has ended.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// The session's name for other members.
    pub(super) fn who(&self) -> String {
        format!("session:{}", self.session)
    }

    /// The key that the session has at another member. If it has none, it is made now. `None` if this server has the
    /// model, or should wait for it.
    ///
    /// # Errors
    /// The error for the client, if no member has the model, or the member that has it makes no key.
    pub(super) async fn lent_key(
        &self,
        cluster: &Cluster,
        offers: &dyn Offers,
    ) -> Result<Option<Arc<LentKey>>, ApiError> {
        if offers.serves(&self.model) {
            return Ok(None);
        }
        let mut lent = self.lent.lock().await;
        if let Some(lent) = lent.as_ref().filter(|lent| lent.is_live()) {
            return Ok(Some(Arc::clone(lent)));
        }
        *lent = None;
        match find(Some(cluster), offers, &self.model).await {
            Place::Here => Ok(None),
            Place::Nowhere { words, may_be_away } => Err(not_found(words, may_be_away)),
            Place::Member(node) => {
                let made = Arc::new(self.borrow(cluster, node).await?);
                *lent = Some(Arc::clone(&made));
                Ok(Some(made))
            }
        }
    }

    async fn borrow(&self, cluster: &Cluster, node: String) -> Result<LentKey, ApiError> {
        let name = cluster.name_of(&node);
        let lend = Ask::Lend { session: self.session, model: self.model.clone() };
        let (who, model) = (self.who(), &self.model);
        let asking = timeout(WITHIN, first_reply(cluster, &node, &who, &lend));
        let refused = match asking.await {
            Ok(Ok((circuit, Reply::Lent))) => {
                tracing::info!(session = %self.session, model, member = name,
                    "a session uses a model of another machine");
                let over = CancellationToken::new();
                let holding = tokio::spawn(hold(circuit, self.ended.clone()));
                let holding = AbortOnDropHandle::new(holding);
                return Ok(LentKey { node, name, holding, over });
            }
            Ok(Ok((_, Reply::Refused { message }))) | Ok(Err(message)) => message,
            Ok(Ok(_)) => "its answer makes no sense".to_owned(),
            Err(_) => format!("it did not answer within {} s", WITHIN.as_secs()),
        };
        Err(lost(format!("{name} has the model {model}, but makes no key for it: {refused}")))
    }
}

impl LentKey {
    /// Notes that the member no longer serves the model: the next request looks for another member.
    pub(super) fn give_up(&self) {
        self.over.cancel();
    }

    fn is_live(&self) -> bool {
        !self.holding.is_finished() && !self.over.is_cancelled()
    }
}

/// Keeps a circuit open until it ends, or the session does.
async fn hold(mut circuit: Circuit, ended: CancellationToken) {
    let ending = async { while circuit.next().await.is_ok() {} };
    tokio::select! {
        () = ending => {}
        () = ended.cancelled() => {}
    }
}
