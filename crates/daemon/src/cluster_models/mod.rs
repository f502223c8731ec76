//! The models of a cluster's members, for the sessions of other members.
//!
//! An agent asks its own machine's server, with its session's key. If this server does not have the
//! model, the request goes over a circuit to a member that has it. That member makes a key of its own
//! for the session, for this model only, and counts the usage for it. The key lives as long as the
//! circuit by which it was asked for.
//!
//! - [`ClusterModels`]: both sides: models of other members for sessions here, and models here for their sessions
//! - `find`: which member has a model
//! - `borrow`: the key that another member has made for a session; `carry`: a request with it
//! - `lend`: keys for sessions of other members; `serve`: a request with such a key
//! - `messages`: the messages of the two sides

mod borrow;
mod carry;
mod find;
mod lend;
mod messages;
mod serve;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use access::Keys;
use api::{
    Api, ApiError,
    elsewhere::{Elsewhere, Way},
    error::Kind,
};
use axum::Router;
use base::{KeyId, ModelName};
use cluster::{Cluster, Service};
use futures_util::future::BoxFuture;
use http::StatusCode;
use protocol::workspace::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use workspace::SessionModels;

use self::{
    borrow::Borrower,
    carry::Carrier,
    find::{Place, find},
    lend::{KeyLender, KeyLenderHost},
};

/// The models of a cluster's members.
pub(crate) struct ClusterModels {
    offers: Arc<dyn Offers>,
    cluster: RwLock<Option<Cluster>>,
    borrowers: RwLock<HashMap<KeyId, Arc<Borrower>>>,
    places: Places,
    lender: Arc<KeyLender>,
}

impl ClusterModels {
    /// The models of a cluster, of which this server is not a member yet.
    pub(crate) fn of(api: &Api, keys: &Keys) -> Self {
        Self::new(Arc::new(api.clone()), api::consumers(api.clone()), keys)
    }

    fn new(offers: Arc<dyn Offers>, router: Router, keys: &Keys) -> Self {
        let lender = Arc::new(KeyLender::new(Arc::clone(&offers), router, keys.clone()));
        let (cluster, borrowers, places) = Default::default();
        Self { offers, cluster, borrowers, places, lender }
    }

    /// Notes that this machine is a member of a cluster from now on.
    pub(crate) fn join(self: &Arc<Self>, cluster: &Cluster) {
        cluster.serve(Service::Models, Arc::new(KeyLenderHost(Arc::downgrade(self))));
        *self.cluster.write().unwrap_or_else(PoisonError::into_inner) = Some(cluster.clone());
    }

    /// Notes that this machine is no longer a member.
    pub(crate) fn leave(&self) {
        *self.cluster.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn cluster(&self) -> Option<Cluster> {
        self.cluster.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn borrower(&self, key: &KeyId) -> Option<Arc<Borrower>> {
        self.borrowers.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

impl SessionModels for ClusterModels {
    fn find<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match find(self.cluster().as_ref(), &*self.offers, model).await {
                Place::Here | Place::Member(_) => Ok(()),
                Place::Nowhere { words, .. } => Err(words),
            }
        })
    }

    fn begin(&self, key: &KeyId, session: SessionId, model: &str) {
        let borrower = Arc::new(Borrower::new(session, model));
        let mut borrowers = self.borrowers.write().unwrap_or_else(PoisonError::into_inner);
        borrowers.insert(key.clone(), borrower);
    }

    fn end(&self, key: &KeyId) {
        let mut borrowers = self.borrowers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(borrower) = borrowers.remove(key) {
            borrower.end();
        }
    }
}

impl Elsewhere for ClusterModels {
    fn is_for(&self, key: &KeyId) -> bool {
        let borrowers = self.borrowers.read().unwrap_or_else(PoisonError::into_inner);
        borrowers.contains_key(key)
    }

    fn find(
        &self,
        key: &KeyId,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Box<dyn Way>>, ApiError>> + Send>> {
        let (borrower, cluster) = (self.borrower(key), self.cluster());
        let (offers, places) = (Arc::clone(&self.offers), self.places.clone());
        Box::pin(async move {
            let (Some(borrower), Some(cluster)) = (borrower, cluster) else { return Ok(None) };
            let Some(lent) = borrower.lent_key(&cluster, &*offers).await? else { return Ok(None) };
            let way: Box<dyn Way> = Box::new(Carrier { cluster, borrower, lent, places });
            Ok(Some(way))
        })
    }
}

/// The error for a model that no member has. If a member could not be asked, the status is one after which clients try
/// again.
fn not_found(words: String, may_be_away: bool) -> ApiError {
    let (status, kind) = match may_be_away {
        true => (StatusCode::SERVICE_UNAVAILABLE, Kind::Server),
        false => (StatusCode::NOT_FOUND, Kind::NotFound),
    };
    ApiError { code: Some("model_not_found"), ..ApiError::new(status, kind, words) }
}

/// The models of this server, aliases among them.
trait Offers: Send + Sync {
    /// The models that are served now.
    fn served(&self) -> Vec<String>;

    /// Whether this model is served now.
    fn serves(&self, model: &str) -> bool;

    /// Whether this model was served before, so that requests wait for its return.
    fn has_served(&self, model: &str) -> bool;
}

impl Offers for Api {
    fn served(&self) -> Vec<String> {
        Self::served(self).into_iter().map(|model| model.to_string()).collect()
    }

    fn serves(&self, model: &str) -> bool {
        Self::serves(self, &ModelName::from(model))
    }

    fn has_served(&self, model: &str) -> bool {
        Self::has_served(self, &ModelName::from(model))
    }
}

/// The most requests that are under way at a time from one member to another.
const MOST_REQUESTS: usize = 64;

/// The places for requests that are under way, by the member's node id. Clones share them.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>);

impl Places {
    /// A place for a request to or from this member; `None` if all are taken.
    fn take(&self, node: &str) -> Option<OwnedSemaphorePermit> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_node = places
            .entry(node.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(MOST_REQUESTS)));
        Arc::clone(of_node).try_acquire_owned().ok()
    }
}
