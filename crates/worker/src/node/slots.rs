//! The connections of one backend to one server: for each model that it offers, one connection for
//! each slot.

use std::collections::HashMap;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{config::LinkProtocol, context::LinkContext, link, outcome::WorkerEnd};

/// The most connections of one backend to one server.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// Keeps the connections of one backend until its shutdown. `backend` is the context from which each
/// connection's own is made. Returns how many tasks were cut off.
pub(crate) async fn run(backend: LinkContext) -> WorkerEnd {
    let mut offers = backend.lent.offers();
    let mut slots = Slots { backend, models: HashMap::new(), tasks: JoinSet::new() };
    let mut cut_off = 0;
    loop {
        let models = offers.borrow_and_update().models.clone();
        // Before the wait, so that the first offer is lent as well.
        slots.lend(&models);
        tokio::select! {
            biased;
            () = slots.backend.shutdown.cancelled() => break,
            Some(ended) = slots.tasks.join_next() => cut_off += ended.unwrap_or_default().cut_off,
            changed = offers.changed() => if changed.is_err() { break },
        }
    }
    while let Some(ended) = slots.tasks.join_next().await {
        // A slot whose task has panicked must not end the others.
        cut_off += ended.unwrap_or_default().cut_off;
    }
    WorkerEnd { cut_off, gave_up: None }
}

struct Slots {
    backend: LinkContext,
    /// The models that are lent, each with the token that ends its connections.
    models: HashMap<String, CancellationToken>,
    tasks: JoinSet<WorkerEnd>,
}

impl Slots {
    /// Lends exactly these models. The connections of a model that is no longer among them finish
    /// their tasks and end.
    fn lend(&mut self, models: &[String]) {
        self.models.retain(|model, stop| {
            let stays = models.contains(model);
            if !stays {
                stop.cancel();
            }
            stays
        });
        let each = slots_of_a_model(self.backend.lent.max_concurrent());
        for model in models {
            if self.models.contains_key(model) {
                continue;
            }
            // Each model takes a connection for each slot, so a long list would flood the server.
            if (self.models.len() + 1) * each > MAX_CONNECTIONS {
                tracing::warn!(model, "not lent: more than {MAX_CONNECTIONS} connections");
                return;
            }
            self.open(model, each);
        }
    }

    fn open(&mut self, model: &str, slots: usize) {
        let stop = self.backend.shutdown.child_token();
        for number in 1..=slots {
            self.tasks.spawn(link::run(self.slot(model, number, stop.clone())));
        }
        self.models.insert(model.to_owned(), stop);
    }

    fn slot(&self, model: &str, number: usize, shutdown: CancellationToken) -> LinkContext {
        let name = format!("{}-{number}", self.backend.name);
        LinkContext {
            server: self.backend.server.for_node(model, &name),
            protocol: LinkProtocol::Node { model: model.to_owned() },
            name,
            shutdown,
            ..self.backend.clone()
        }
    }
}

fn slots_of_a_model(max_concurrent: u32) -> usize {
    usize::try_from(max_concurrent).map_or(MAX_CONNECTIONS, |slots| slots.min(MAX_CONNECTIONS))
}
