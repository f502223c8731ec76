//! The full lists of the models that Warrens pass on. Stock peers have no such list: they can only
//! be asked about one model by its name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use models::Library;
use protocol::mesh::{
    ClusterMessage, WireId,
    cluster::{ListedModel, ModelList, ModelListRequest},
};
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};

use crate::{
    link::Link,
    peer::{PeerId, Peers},
    share::Asker,
    this_machine::ThisMachine,
};

/// How long a peer may take to list its models.
const PATIENCE: Duration = Duration::from_secs(3);

/// The most models of one peer that are listed.
const MAX_LISTED: usize = 4_096;

/// The most peers that are asked at once.
const MAX_ASKED: usize = 256;

/// The most scans of this machine's directories at a time.
const SCANS: usize = 2;

/// The most requests for a list that are answered at a time. Further ones get no answer.
const MAX_ASKING: usize = 64;

/// Asks peers for their lists of models, and answers with this machine's list.
pub(crate) struct Catalog {
    library: Arc<Library>,
    scans: Semaphore,
    askers: Arc<Semaphore>,
    waiting: Mutex<HashMap<WireId, ListCaller>>,
}

/// A caller that waits for a list, and the number of the link over which its request went.
struct ListCaller {
    link: u64,
    answer: oneshot::Sender<Vec<ListedModel>>,
}

impl Catalog {
    pub(crate) fn new(library: Arc<Library>) -> Self {
        Self {
            library,
            scans: Semaphore::new(SCANS),
            askers: Arc::new(Semaphore::new(MAX_ASKING)),
            waiting: Mutex::default(),
        }
    }

    /// Takes in a peer's list. It counts only if that peer was asked for it.
    pub(crate) fn listed(&self, link: &Link, list: ModelList) {
        let mut waiting = self.lock();
        if waiting.get(&list.request_id).is_none_or(|waiting| waiting.link != link.number) {
            return;
        }
        if let Some(waiting) = waiting.remove(&list.request_id) {
            let mut models = list.models;
            models.truncate(MAX_LISTED);
            // The caller may have stopped waiting.
            let _ = waiting.answer.send(models);
        }
    }

    /// Asks one peer for its list. The list is empty if none comes in time.
    async fn ask(&self, link: &Link) -> Vec<ListedModel> {
        let id = WireId::from_random(rand::random());
        let (answer, answered) = oneshot::channel();
        // Entered before the request is sent, since the answer may come at once.
        self.lock().insert(id.clone(), ListCaller { link: link.number, answer });
        let request = ModelListRequest { request_id: id.clone() };
        let sent = link.tell(&ClusterMessage::ModelListRequest(request));
        let listed = match sent {
            Ok(()) => timeout(PATIENCE, answered).await.ok().and_then(Result::ok),
            Err(_) => None,
        };
        self.lock().remove(&id);
        listed.unwrap_or_default()
    }

    /// The models that this machine offers.
    async fn own(&self) -> Vec<ListedModel> {
        // Scans read whole directories, and peers must not be able to start hundreds. The semaphore
        // is never closed, so this never fails.
        let _scan = self.scans.acquire().await;
        let library = Arc::clone(&self.library);
        let offered = tokio::task::spawn_blocking(move || library.scan()).await.unwrap_or_default();
        let mut models: Vec<ListedModel> = offered
            .iter()
            .map(|model| ListedModel {
                model_id: model.id.to_string(),
                total_size_bytes: model.size(),
            })
            .collect();
        models.sort_by(|a, b| a.model_id.cmp(&b.model_id));
        models
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WireId, ListCaller>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks all Warrens with a sealed link at the same time.
pub(crate) async fn ask_all(catalog: &Catalog, peers: &Peers) -> Vec<(PeerId, Vec<ListedModel>)> {
    let linked = peers.all().into_iter().filter_map(|peer| {
        let link = peer.link().filter(|link| link.warren && link.sealed)?;
        Some((peer.id.clone(), link))
    });
    // At the same time, so that a peer that stays silent delays no other.
    let asking = linked.take(MAX_ASKED).map(async |(peer, link)| {
        let models = catalog.ask(&link).await;
        (peer, models)
    });
    futures_util::future::join_all(asking).await
}

/// Sends a peer the list of this machine's models; an empty list if the peer may not have it.
pub(crate) fn answer(
    catalog: &Arc<Catalog>,
    machine: &Arc<ThisMachine>,
    link: &Arc<Link>,
    request_id: WireId,
) {
    let Ok(permit) = Arc::clone(&catalog.askers).try_acquire_owned() else {
        return machine.counts.bad("a list of models too many");
    };
    let (catalog, own, link) = (Arc::clone(catalog), Arc::clone(machine), Arc::clone(link));
    machine.tasks.spawn(async move {
        let _permit = permit;
        let models = if may_have(&own, &link) { catalog.own().await } else { Vec::new() };
        let list = ClusterMessage::ModelList(ModelList { request_id, models });
        // If the link is closed, the peer needs no list.
        let _ = link.say(&list).await;
    });
}

fn may_have(machine: &ThisMachine, link: &Link) -> bool {
    let share = &machine.settings.share;
    let asker = Asker { peer: &link.peer, proved: link.proved, sealed: link.sealed };
    link.sealed && share.models_offered && share.lets_in(asker).is_ok()
}
