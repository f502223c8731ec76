//! The loads and unloads of models that a worker has begun and not ended.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use protocol::{
    json::clip,
    relay::{ModelDone, ModelMessage, ServerMessage},
};
use scheduler::provider::{ModelChange, ModelChangeError};

use super::codec::MAX_WORDS;

/// The most loads and unloads that a worker is given at once.
const MAX_CHANGES: usize = 64;

/// The loads and unloads of one link, by the numbers of their messages.
#[derive(Default)]
pub(super) struct ModelChanges(Mutex<Changes>);

#[derive(Default)]
struct Changes {
    last: u32,
    open: BTreeMap<u32, ModelChange>,
}

impl ModelChanges {
    /// Keeps a load or unload until it has ended. Returns the message for the worker; `None` if there
    /// are too many, and then the change has ended with that error.
    pub(super) fn begin(&self, change: ModelChange) -> Option<ServerMessage> {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.open.retain(|_, change| !change.is_forgotten());
        if changes.open.len() >= MAX_CHANGES {
            change.end(Err(ModelChangeError::TooMany));
            return None;
        }
        changes.last = changes.last.wrapping_add(1);
        let (number, loads) = (changes.last, change.loads);
        let message = ModelMessage { number, model: change.model.clone() };
        changes.open.insert(number, change);
        Some(match loads {
            true => ServerMessage::LoadModel(message),
            false => ServerMessage::UnloadModel(message),
        })
    }

    /// Takes the worker's report that a load or unload has ended.
    pub(super) fn end(&self, done: ModelDone) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(change) = changes.open.remove(&done.number) {
            let words = |text: String| base::plain::line(clip(&text, MAX_WORDS));
            change
                .end(done.error.map_or(Ok(()), |text| Err(ModelChangeError::Failed(words(text)))));
        }
    }
}
