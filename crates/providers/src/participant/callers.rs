//! One caller for each endpoint of a participant.

use std::sync::Arc;

use base::RoomId;
use tokio::task::JoinSet;

use super::{Participants, endpoint};
use crate::{claims::Claims, member::Member};

impl Participants {
    /// Calls the endpoints of all participants that have one, until this is dropped.
    pub async fn call_endpoints(self) {
        // One caller for each participant of a room: there are never more callers than
        // participants.
        let callers = Arc::new(Claims::<(RoomId, String)>::default());
        let mut calls = JoinSet::new();
        loop {
            for (room, id) in self.rooms.unserved_endpoints() {
                if let Some(claim) = callers.take_free((room.id().clone(), id.clone())) {
                    let member = Member::new(room, id);
                    calls.spawn(endpoint::serve(self.scheduler.clone(), member, claim));
                }
            }
            tokio::select! {
                () = self.rooms.endpoint_joined() => {}
                // A participant may have joined again while its old caller was about to end.
                Some(_) = calls.join_next() => {}
            }
        }
    }
}
