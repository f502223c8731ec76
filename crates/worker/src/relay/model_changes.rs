//! Loads and unloads of models that a server asks for.

use std::{collections::HashMap, sync::Arc};

use protocol::{json::clip, relay::ModelDone};
use tokio::task::{Id, JoinSet};

use crate::lent::LentBackend;

/// The most loads and unloads that run at once on a link.
const MAX_CHANGES: usize = 64;

/// The most bytes of a reason that are sent.
const MAX_REASON: usize = 2_000;

/// The running loads and unloads of one link. Dropping this stops waiting for all of them.
#[derive(Default)]
pub(super) struct ModelChanges {
    tasks: JoinSet<Option<String>>,
    numbers: HashMap<Id, u32>,
}

impl ModelChanges {
    /// Begins to load or unload a model. Returns the refusal if too many run already.
    pub(super) fn start(
        &mut self,
        lent: &Arc<LentBackend>,
        (number, model, loads): (u32, String, bool),
    ) -> Option<ModelDone> {
        if self.tasks.len() >= MAX_CHANGES {
            let error = Some("too many models are being loaded and unloaded".to_owned());
            return Some(ModelDone { number, error });
        }
        let lent = Arc::clone(lent);
        let task = self.tasks.spawn(async move {
            let done = lent.change_model(&model, loads).await;
            done.err().map(|why| clip(&why, MAX_REASON).to_owned())
        });
        self.numbers.insert(task.id(), number);
        None
    }

    /// Waits for the end of a load or unload; for ever if none runs. Cancel safe.
    pub(super) async fn ended(&mut self) -> ModelDone {
        loop {
            let Some(ended) = self.tasks.join_next_with_id().await else {
                return std::future::pending().await;
            };
            // A task that panicked is answered as well, because the server waits for an answer.
            let (id, error) = match ended {
                Ok((id, error)) => (id, error),
                Err(error) => (error.id(), Some("the worker failed at this".to_owned())),
            };
            if let Some(number) = self.numbers.remove(&id) {
                return ModelDone { number, error };
            }
        }
    }
}
