//! Questions to peers whether they have a model, and the callers that wait for the answers. An
//! answer has no id and only names the model. So it goes to all callers that asked about that model
//! over its link.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use protocol::mesh::{
    ClusterMessage,
    cluster::{ModelQuery, ModelQueryResponse},
};
use tokio::{sync::oneshot, time::timeout};

use crate::link::{Carrier, Link};

/// The number of a link, and the name of a model.
type Question = (u64, String);

/// Questions that are not answered yet.
#[derive(Default)]
pub(super) struct Queries(Mutex<HashMap<Question, Vec<oneshot::Sender<u64>>>>);

impl Queries {
    /// Asks whether a peer passes on a model. Returns its size in bytes; `None` if the peer does
    /// not, or does not answer in time.
    pub(super) async fn ask(&self, link: &Arc<Link>, model: &str, within: Duration) -> Option<u64> {
        let (sender, answer) = oneshot::channel();
        let question = (link.number, model.to_owned());
        // Entered before the question is sent, since the answer may come at once.
        self.lock().entry(question.clone()).or_default().push(sender);
        let _waiting = CallerGuard { queries: self, question };
        let query = ModelQuery { model_id: model.to_owned() };
        link.tell(&ClusterMessage::ModelQuery(query)).ok()?;
        timeout(within, answer).await.ok()?.ok()
    }

    /// Handles an answer. Returns whether a caller waits for it.
    pub(super) fn answered(&self, link: &Link, answer: &ModelQueryResponse) -> bool {
        let question = (link.number, answer.model_id.clone());
        let Some(waiting) = self.lock().remove(&question) else { return false };
        let size = answer.total_size_bytes.filter(|_| answer.available);
        // Without a size, dropping the channels answers the callers.
        if let Some(size) = size {
            waiting.into_iter().for_each(|waiting| _ = waiting.send(size));
        }
        true
    }

    /// Handles the end of a link: no more answers come over it.
    pub(super) fn link_closed(&self, link: &Link) {
        self.lock().retain(|(number, _), _| *number != link.number);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Question, Vec<oneshot::Sender<u64>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits for an answer. Dropping this removes its entry.
struct CallerGuard<'a> {
    queries: &'a Queries,
    question: Question,
}

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        let mut questions = self.queries.lock();
        let Some(waiting) = questions.get_mut(&self.question) else { return };
        waiting.retain(|sender| !sender.is_closed());
        if waiting.is_empty() {
            questions.remove(&self.question);
        }
    }
}

/// Whether models may pass over a link: it must be sealed, or on the local network.
pub(super) fn carries_models(link: &Link) -> bool {
    link.sealed || matches!(link.carrier, Carrier::Lan(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kind, id, link as linked};

    fn answer(model: &str, size: Option<u64>) -> ModelQueryResponse {
        let available = size.is_some();
        ModelQueryResponse { model_id: model.to_owned(), available, total_size_bytes: size }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_reaches_all_who_asked_over_its_link() {
        let (link, _far) = linked(&id(1), Kind::WarrenNear);
        let (other, _other_far) = linked(&id(2), Kind::WarrenNear);
        let queries = Queries::default();
        let ask = |model| queries.ask(&link, model, Duration::from_secs(1));
        let answering = async {
            tokio::task::yield_now().await;
            assert!(!queries.answered(&other, &answer("m", Some(1))), "of another link");
            assert!(queries.answered(&link, &answer("m", Some(7))));
            assert!(queries.answered(&link, &answer("n", None)));
            assert!(!queries.answered(&link, &answer("m", Some(8))), "nobody waits any more");
        };
        let got = tokio::join!(ask("m"), ask("m"), ask("n"), answering);
        assert_eq!((got.0, got.1, got.2), (Some(7), Some(7), None));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_for_whoever_stops_waiting() {
        let (link, _far) = linked(&id(1), Kind::WarrenNear);
        let queries = Queries::default();
        assert_eq!(queries.ask(&link, "m", Duration::from_secs(1)).await, None);
        assert!(queries.lock().is_empty());
        let closing = async {
            tokio::task::yield_now().await;
            queries.link_closed(&link);
        };
        let (got, ()) = tokio::join!(queries.ask(&link, "m", Duration::from_secs(99)), closing);
        assert_eq!(got, None);
    }
}
