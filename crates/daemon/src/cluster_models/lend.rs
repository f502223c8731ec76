//! Keys of this server for sessions of other members.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use access::{Keys, Moment, new_token};
use axum::Router;
use base::{KeyId, Secret};
use cluster::{Host, Served};
use protocol::workspace::SessionId;
use tokio::time::timeout;
use wire::OutboxReader;

use super::{
    ClusterModels, Offers, Places,
    messages::{Ask, MAX_FRAME, Reply, frame, read},
    serve,
};

/// How long a member may take to say what it wants, and to close the circuit after the answer.
pub(super) const WITHIN: Duration = Duration::from_secs(10);
/// The most keys for sessions of one member.
pub(super) const MOST_KEYS: usize = 1024;
/// The most models in an answer to a member.
const MOST_MODELS: usize = 1024;
/// The prefix of a session's key.
const PREFIX: &str = "ws_";

/// Makes keys for sessions of other members, and serves requests with them.
pub(super) struct KeyLender {
    offers: Arc<dyn Offers>,
    pub(super) router: Router,
    pub(super) keys: Keys,
    pub(super) places: Places,
    lent: Mutex<HashMap<Borrower, SessionKey>>,
    next: AtomicU64,
}

/// A session of another member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Borrower {
    pub(super) node: String,
    pub(super) session: SessionId,
}

/// The key of such a session.
#[derive(Clone)]
pub(super) struct SessionKey {
    /// Tells the key from the one that replaces it if the member asks again.
    number: u64,
    pub(super) id: KeyId,
    pub(super) secret: Secret,
}

impl KeyLender {
    pub(super) fn new(offers: Arc<dyn Offers>, router: Router, keys: Keys) -> Self {
        let (places, lent, next) = Default::default();
        Self { offers, router, keys, places, lent, next }
    }

    /// The key of a session, if it has one.
    pub(super) fn get(&self, borrowing: &Borrower) -> Option<SessionKey> {
        self.lock().get(borrowing).cloned()
    }

    async fn serve(self: Arc<Self>, mut served: Served, member: String) {
        let request = timeout(WITHIN, served.requests.next()).await.ok().flatten();
        match request.as_ref().and_then(read) {
            Some(Ask::Find { model }) => {
                let _gone = served.answers.push(frame(&self.models(&model)));
                let _in_vain = timeout(WITHIN, until_left(&mut served.requests)).await;
            }
            Some(Ask::Lend { session, model }) => {
                let borrowing = Borrower { node: served.from.clone(), session };
                self.lend_while_open(&mut served, borrowing, &member, &model).await;
            }
            Some(Ask::Request { session, path, headers }) => {
                let borrowing = Borrower { node: served.from.clone(), session };
                let Served { requests, answers, .. } = served;
                serve::request(&self, &borrowing, (&path, &headers), requests, answers).await;
            }
            Some(Ask::End) | None => {
                let _gone = served.answers.push(frame(&Reply::refused("this makes no sense")));
                let _in_vain = timeout(WITHIN, until_left(&mut served.requests)).await;
            }
        }
        served.done.cancel();
    }

    fn models(&self, model: &str) -> Reply {
        let mut models = self.offers.served();
        models.truncate(MOST_MODELS);
        Reply::Models { has: self.offers.serves(model), models }
    }

    /// Makes a key for a session. The key lives until the session's member closes the circuit, or the circuit ends
    /// because the member stays away.
    async fn lend_while_open(
        &self,
        served: &mut Served,
        borrowing: Borrower,
        member: &str,
        model: &str,
    ) {
        let lent = match self.lend(&borrowing, member, model) {
            Ok(lent) => lent,
            Err(refused) => {
                let _gone = served.answers.push(frame(&refused));
                let _in_vain = timeout(WITHIN, until_left(&mut served.requests)).await;
                return;
            }
        };
        let _ends = Ends { lender: self, borrowing: &borrowing, number: lent.number };
        tracing::info!(key = %lent.id, model, "a session of another machine uses a model");
        let _gone = served.answers.push(frame(&Reply::Lent));
        until_left(&mut served.requests).await;
    }

    /// Makes a key for a session. It replaces an earlier key of the session.
    pub(super) fn lend(
        &self,
        borrowing: &Borrower,
        member: &str,
        model: &str,
    ) -> Result<SessionKey, Reply> {
        if !self.offers.serves(model) {
            return Err(Reply::refused(format!("it does not have the model {model} any more")));
        }
        let mut all = self.lock();
        let of_member = all.keys().filter(|known| known.node == borrowing.node).count();
        if of_member >= MOST_KEYS && !all.contains_key(borrowing) {
            return Err(Reply::refused(format!("{MOST_KEYS} sessions have one already")));
        }
        let id = KeyId::from(format!("session:{}@{member}", borrowing.session));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let lent = SessionKey { number, id, secret: new_token(PREFIX) };
        self.keys.add_for_model(lent.id.clone(), &lent.secret, model, Moment::now());
        all.insert(borrowing.clone(), lent.clone());
        Ok(lent)
    }

    fn end(&self, borrowing: &Borrower, number: u64) {
        let mut all = self.lock();
        if all.get(borrowing).is_some_and(|lent| lent.number == number)
            && let Some(lent) = all.remove(borrowing)
        {
            self.keys.remove_ready_made(&lent.id);
            tracing::info!(key = %lent.id, "the key of another machine's session has ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Borrower, SessionKey>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a key when this is dropped, so also if its task panics or is aborted.
struct Ends<'a> {
    lender: &'a KeyLender,
    borrowing: &'a Borrower,
    number: u64,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.lender.end(self.borrowing, self.number);
    }
}

/// Serves the sessions of a cluster's members. The reference is weak, because [`ClusterModels`] has the cluster, and
/// the cluster has this.
pub(super) struct KeyLenderHost(pub(super) Weak<ClusterModels>);

impl Host for KeyLenderHost {
    fn serve(&self, served: Served) {
        let models = self.0.upgrade();
        let Some((models, cluster)) = models.and_then(|models| {
            let cluster = models.cluster()?;
            Some((models, cluster))
        }) else {
            // The member hears at once that there will be no answer.
            return served.done.cancel();
        };
        let member = cluster.name_of(&served.from);
        tokio::spawn(Arc::clone(&models.lender).serve(served, member));
    }

    fn max_request(&self) -> usize {
        MAX_FRAME
    }
}

/// Waits until the member has closed the circuit. What the member sends meanwhile is ignored.
pub(super) async fn until_left(requests: &mut OutboxReader) {
    while requests.next().await.is_some() {}
}
