//! The responses that this server makes in the background now.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::KeyId;
use tokio::sync::{Notify, watch};

use super::{failure, log::Log};
use crate::error::ApiError;

/// The most responses that this server makes in the background at once, for one key and in all.
const MOST_OF_KEY: usize = 16;
const MOST: usize = 256;

/// The responses that this server makes in the background now.
pub(crate) struct Background {
    running: Mutex<HashMap<String, RunningResponse>>,
    count: watch::Sender<usize>,
}

struct RunningResponse {
    owner: KeyId,
    end: Arc<Notify>,
    /// The events so far, if the response is a stream.
    log: Option<Arc<Log>>,
}

impl Default for Background {
    fn default() -> Self {
        Self { running: Mutex::default(), count: watch::Sender::new(0) }
    }
}

/// The place of one response among those that are being made, until this is dropped.
pub(crate) struct Place {
    background: Arc<Background>,
    id: String,
    /// Notified when the response was cancelled or deleted.
    pub(crate) end: Arc<Notify>,
    /// Where its events go, if it is a stream.
    pub(crate) log: Option<Arc<Log>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.background.lock();
        running.remove(&self.id);
        // Sent under the lock, as in `place`: otherwise an older count could be the last one sent.
        self.background.count.send_replace(running.len());
        if let Some(log) = &self.log {
            log.end();
        }
    }
}

impl Background {
    /// Ends the task that makes a response, if this server has it.
    pub(crate) fn end(&self, id: &str) {
        if let Some(running) = self.lock().get(id) {
            running.end.notify_one();
        }
    }

    /// The events so far of a response that this server makes as a stream.
    pub(crate) fn log(&self, id: &str) -> Option<Arc<Log>> {
        self.lock().get(id)?.log.clone()
    }

    /// Waits until no response is being made.
    pub(crate) async fn ended(&self) {
        // The wait fails only without a sender, which `self` has.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// A place for a response. If the response is a stream, the place has a log.
    ///
    /// # Errors
    /// 429 when too many responses are being made, for this key or in all.
    pub(crate) fn place(
        self: &Arc<Self>,
        id: &str,
        owner: &KeyId,
        streams: bool,
    ) -> Result<Place, ApiError> {
        let mut running = self.lock();
        let of_key = running.values().filter(|one| one.owner == *owner).count();
        if of_key >= MOST_OF_KEY {
            return Err(failure::too_many_in_background(true, MOST_OF_KEY));
        }
        if running.len() >= MOST {
            return Err(failure::too_many_in_background(false, MOST));
        }
        let (end, log) = (Arc::<Notify>::default(), streams.then(Arc::<Log>::default));
        let one = RunningResponse { owner: owner.clone(), end: Arc::clone(&end), log: log.clone() };
        running.insert(id.to_owned(), one);
        self.count.send_replace(running.len());
        Ok(Place { background: Arc::clone(self), id: id.to_owned(), end, log })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunningResponse>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::items::new_id;

    #[tokio::test]
    async fn no_more_are_made_at_once_than_the_bounds_allow() {
        let background = Arc::<Background>::default();
        let place = |owner: &str| background.place(&new_id("resp"), &owner.into(), false);
        let mut places: Vec<Place> = (0..MOST_OF_KEY).map(|_| place("k-0").unwrap()).collect();
        let refused = |owner| {
            let error = place(owner).err().unwrap();
            assert_eq!(
                (error.status.as_u16(), error.code),
                (429, Some("too_many_background_responses"))
            );
            error.message
        };
        assert!(refused("k-0").contains("16 responses of this key"));
        for at in MOST_OF_KEY..MOST {
            places.push(place(&format!("k-{at}")).unwrap());
        }
        assert!(refused("k-new").contains("256 responses of this server"));
        places.clear();
        background.ended().await;
        assert!(place("k-0").is_ok());
    }
}
