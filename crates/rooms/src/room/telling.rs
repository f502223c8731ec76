//! The events of a room, for its watchers.

use std::sync::Arc;

use base::JobId;
use protocol::room::{RoomEvent, ServerMessage};

use super::Room;
use crate::{
    activity::{JobEnded, JobStarted},
    events::{Announcement, Form, Subscription},
};

impl Room {
    /// Subscribes in this form to new events, or to all kept events after this id.
    pub fn subscribe(&self, form: Form, after: Option<u64>) -> Subscription {
        self.log.subscribe(form, after)
    }

    /// Sends watchers a named event, a message of the spec, or both.
    pub fn tell(&self, event: Option<RoomEvent>, message: Option<ServerMessage>, now: u64) {
        self.tell_all([Announcement { event, message }], now);
    }

    /// Records that a job of the room was given to a provider. Tells watchers.
    pub fn started(&self, job: &JobStarted, now: u64) {
        let mut state = self.state();
        let announcements = state.started(job);
        self.tell_all(announcements, now);
    }

    /// Records that a job of the room has no provider for the moment: it will get another one.
    pub fn requeued(&self, job: JobId) {
        self.state().activity.requeued(job);
    }

    /// Records that a job of the room ended. Tells watchers.
    pub fn ended(&self, job: &JobEnded, now: u64) {
        self.use_at(now);
        let mut state = self.state();
        let announcements = state.activity.ended(job);
        self.tell_all(announcements, now);
    }

    /// Records that the whole answer to a job that came as a message was reported; `last` is its
    /// last message. Tells watchers.
    pub fn concluded(&self, job: JobId, last: ServerMessage, now: u64) {
        let mut state = self.state();
        let event = state.activity.conclude(job);
        self.tell_all([Announcement { event, message: Some(last) }], now);
    }

    /// The id of the participant that has a job now.
    pub fn holder(&self, job: JobId) -> Option<String> {
        self.state().activity.holder(job).map(str::to_owned)
    }

    /// Announces that the room was created.
    pub(crate) fn tell_created(&self, now: u64) {
        self.tell(Some(RoomEvent::RoomCreated(self.summary())), None, now);
    }

    /// Tells watchers, under the state's lock, so that changes reach them in order.
    pub(super) fn tell_all(&self, announcements: impl IntoIterator<Item = Announcement>, now: u64) {
        for announcement in announcements {
            let encoded = announcement.encode(now, Arc::clone(&self.short_code));
            // Both logs share the announcement; each makes its bytes when its first watcher reads them.
            self.log.append(&encoded);
            self.house.log.append_from(&encoded, &self.source);
        }
    }
}
