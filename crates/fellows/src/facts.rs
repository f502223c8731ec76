//! The facts that a server reports to its fellows about itself.

use std::sync::Arc;

use base::{Endpoint, Endpoints, FactsByModel, ModelName, ProviderId};
use bytes::Bytes;
use scheduler::{Distance, Status, WorkerStatus};
use serde::{Deserialize, Serialize};

/// The most bytes of a record: NATS takes messages of a MiB.
pub(crate) const MAX_RECORD: usize = 512 * 1024;

/// The bytes of a record that are not facts, at most.
const ROOM_FOR_HEAD: usize = 4 * 1024;

/// The facts that a server reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of its program.
    pub version: String,
    /// Where workers and clients reach it, as far as it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its own workers, which fellows may use.
    pub workers: Vec<WorkerFacts>,
    /// How many more it has than fit into its record.
    #[serde(default)]
    pub left_out: usize,
}

/// A worker of a fellow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// Its id, as text.
    pub id: String,
    /// The name that it gave itself.
    pub name: String,
    /// Its models.
    pub models: Vec<ModelName>,
    /// The known facts about them.
    #[serde(default)]
    pub facts: FactsByModel,
    /// The endpoints that it serves, by their paths.
    pub endpoints: Vec<String>,
    /// How many jobs it takes at once.
    pub slots: u32,
    /// How many it has, of whatever server.
    #[serde(default)]
    pub in_use: u32,
    /// The largest job that it can be sent, in bytes.
    pub max_size: u64,
    /// Whether it is a provider of others, the last resort of a job.
    #[serde(default)]
    pub cloud: bool,
}

/// Facts with the bytes that are sent of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncodedFacts {
    pub(crate) facts: Facts,
    pub(crate) json: Bytes,
}

impl WorkerFacts {
    /// Its id; `None` for another text.
    pub fn provider(&self) -> Option<ProviderId> {
        self.id.parse().ok()
    }

    /// The endpoints that it serves, as far as this version knows them.
    pub fn endpoints(&self) -> Endpoints {
        let known = self.endpoints.iter().filter_map(|path| Endpoint::of_path(path));
        known.fold(Endpoints::NONE, Endpoints::with)
    }

    fn of(worker: WorkerStatus) -> Self {
        let paths = worker.endpoints.iter().map(|endpoint| endpoint.path().to_owned());
        Self {
            id: worker.id.to_string(),
            models: worker.models.iter().cloned().collect(),
            facts: (*worker.model_facts).clone(),
            endpoints: paths.collect(),
            // A worker that drains or rests lends no slots, and is shown none the less.
            slots: worker.max_concurrent,
            in_use: worker.reported_load.max(worker.in_flight),
            max_size: worker.max_size,
            cloud: worker.distance == Distance::Cloud,
            name: worker.name,
        }
    }
}

impl Facts {
    /// Those of this server now: its workers, without those of rooms, of peers and of fellows.
    pub(crate) fn of(version: &str, url: Option<String>, status: Status) -> Self {
        let own = status.workers.into_iter().filter(is_lendable);
        let workers = own.map(WorkerFacts::of).collect();
        Self { version: version.to_owned(), url, workers, left_out: 0 }
    }

    /// Whether fellows need not hear of the difference at once: only the use of the workers differs.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let same = |(a, b): (&WorkerFacts, &WorkerFacts)| {
            (&a.id, &a.models, &a.facts, &a.endpoints, a.slots)
                == (&b.id, &b.models, &b.facts, &b.endpoints, b.slots)
        };
        self.workers.len() == other.workers.len()
            && self.url == other.url
            && self.workers.iter().zip(&other.workers).all(same)
    }
}

/// Whether fellows may use a worker.
pub(crate) fn is_lendable(worker: &WorkerStatus) -> bool {
    let is_own = matches!(worker.distance, Distance::Here | Distance::Cloud);
    is_own && worker.fellow.is_none() && worker.scope == base::Scope::server()
}

impl EncodedFacts {
    /// The facts as they are sent. If they are too long, what is known of the models goes first, then the workers
    /// with the longest lists.
    pub(crate) fn new(mut facts: Facts) -> Arc<Self> {
        let room = MAX_RECORD - ROOM_FOR_HEAD;
        let mut json = encoded(&facts);
        if json.len() > room {
            facts.workers.iter_mut().for_each(|worker| worker.facts.clear());
            json = encoded(&facts);
        }
        while json.len() > room && !facts.workers.is_empty() {
            // Halves take few steps, whatever there is.
            let keep = facts.workers.len() / 2;
            facts.workers.sort_by_key(|worker| worker.models.len());
            facts.left_out += facts.workers.len() - keep;
            facts.workers.truncate(keep);
            json = encoded(&facts);
        }
        Arc::new(Self { facts, json: json.into() })
    }

    /// Reads what a fellow says.
    pub(crate) fn read(json: Bytes) -> Result<Arc<Self>, serde_json::Error> {
        Ok(Arc::new(Self { facts: serde_json::from_slice(&json)?, json }))
    }
}

/// Nothing in it can fail to be encoded.
fn encoded(facts: &Facts) -> Vec<u8> {
    serde_json::to_vec(facts).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn worker(id: u64, models: usize) -> WorkerFacts {
        WorkerFacts {
            id: ProviderId::from_random(id).to_string(),
            name: format!("w{id}"),
            models: (0..models).map(|at| ModelName::from(format!("org/a-model-{at:06}"))).collect(),
            facts: FactsByModel::default(),
            endpoints: vec!["/v1/chat/completions".to_owned(), "/v9/new".to_owned()],
            slots: 4,
            in_use: 0,
            max_size: 1,
            cloud: false,
        }
    }

    fn encoded(workers: Vec<WorkerFacts>) -> Arc<EncodedFacts> {
        EncodedFacts::new(Facts { version: "1".into(), workers, ..Facts::default() })
    }

    #[test]
    fn facts_are_read_as_they_are_told_and_unknown_paths_passed_over() {
        let encoded = encoded(vec![worker(1, 3)]);
        let read = EncodedFacts::read(encoded.json.clone()).unwrap();
        assert_eq!(read, encoded);
        let worker = &read.facts.workers[0];
        assert_eq!(worker.endpoints(), Endpoints::only(Endpoint::ChatCompletions));
        assert_eq!(worker.provider(), Some(ProviderId::from_random(1)));
    }

    #[test]
    fn facts_that_are_too_long_lose_what_is_known_of_models_first_and_then_workers() {
        let room = MAX_RECORD - ROOM_FOR_HEAD;
        let mut known = worker(1, 9_000);
        let about = |name: &ModelName| {
            (
                name.to_string(),
                base::ModelFacts {
                    parameters: Some(7_000_000_000),
                    memory_bytes: Some(u64::MAX),
                    ..base::ModelFacts::default()
                },
            )
        };
        known.facts = known.models.iter().map(about).collect();
        let without_facts = encoded(vec![known]);
        assert_eq!((without_facts.facts.workers.len(), without_facts.facts.left_out), (1, 0));
        assert!(
            without_facts.facts.workers[0].facts.is_empty() && without_facts.json.len() <= room
        );
        let few = encoded((0..40).map(|id| worker(id, 100 * id as usize)).collect());
        assert!(few.json.len() <= room && few.facts.left_out >= 1);
        assert_eq!(few.facts.workers.len() + few.facts.left_out, 40);
        assert!(few.facts.workers.iter().any(|worker| worker.models.is_empty()), "short ones stay");
    }

    #[test]
    fn the_use_of_a_worker_alone_is_no_news() {
        let facts = |worker| Facts { workers: vec![worker], ..Facts::default() };
        let (base, busy) = (worker(1, 1), WorkerFacts { in_use: 3, ..worker(1, 1) });
        assert!(facts(base.clone()).is_like(&facts(busy)));
        assert!(!facts(base.clone()).is_like(&facts(worker(1, 2))));
        assert!(!facts(base).is_like(&Facts::default()));
    }
}
