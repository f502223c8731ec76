//! Who calls which endpoint.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::RoomId;
use tokio::{sync::Notify, task::JoinSet};

use super::{Participants, endpoint};
use crate::member::Member;

/// A participant of a room.
type Key = (RoomId, String);

/// The endpoints that have a caller. There is one entry for each, so that there are no more of them
/// than participants.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<Key, Arc<Notify>>>);

/// Being an endpoint's only caller, until this is dropped.
pub(super) struct Place {
    callers: Arc<Callers>,
    key: Key,
    hurry: Arc<Notify>,
}

impl Participants {
    /// Calls the endpoints of participants that have one, for ever. When this is dropped, they are
    /// called no more.
    pub async fn call_endpoints(self) {
        let callers = Arc::new(Callers::default());
        let mut calls = JoinSet::new();
        loop {
            for (room, id) in self.rooms.unserved_endpoints() {
                if let Some(place) = callers.take((room.id().clone(), id.clone())) {
                    let member = Member::new(room, id);
                    calls.spawn(endpoint::serve(self.scheduler.clone(), member, place));
                }
            }
            tokio::select! {
                () = self.rooms.endpoint_joined() => {}
                // It may have joined anew when its caller was about to end.
                Some(_) = calls.join_next() => {}
            }
        }
    }
}

impl Callers {
    /// A place for a new caller. Where there is one, it is told to try again now.
    fn take(self: &Arc<Self>, key: Key) -> Option<Place> {
        match self.lock().entry(key.clone()) {
            Entry::Occupied(caller) => {
                caller.get().notify_one();
                None
            }
            Entry::Vacant(free) => {
                let hurry = Arc::clone(free.insert(Arc::default()));
                Some(Place { callers: Arc::clone(self), key, hurry })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until there is a reason to try again now.
    pub(super) async fn hurried(&self) {
        self.hurry.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.callers.lock().remove(&self.key);
    }
}
