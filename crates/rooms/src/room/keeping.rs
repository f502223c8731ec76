//! Storage, expiry and changes of a room.

use std::sync::{Arc, atomic::Ordering};

use protocol::room::{
    RoomEvent, RoomSummary, RuntimeConfig, ServerMessage, event::RoomClosed,
    message::RoomErrorMessage, plane::ChangeRoom,
};
use store::{RoomRecord, StoreError};

use super::Room;
use crate::{
    check,
    error::RoomError,
    events::Announcement,
    password::{Password, PasswordCheck},
    state::RoomEnd,
};

/// The least time between two writes of a room's last use, in milliseconds.
const USE_STORED_EVERY: u64 = 60_000;

const NOT_THE_HOST: &str = "only the room's host may do this: send the host token that was given \
     when the room was made";

impl Room {
    /// Changes the room. Hashes the password and writes to the disk: blocks. Tells watchers. A new
    /// password ends their streams, so that only clients that know it go on watching. Participants
    /// stay: the host may remove them.
    ///
    /// # Errors
    /// [`RoomError`] when the token is not the host's, or the change is invalid.
    pub fn change(
        &self,
        change: ChangeRoom,
        shown: Option<&str>,
    ) -> Result<RoomSummary, RoomError> {
        if !self.is_host(shown) {
            return Err(RoomError::NotAllowed(NOT_THE_HOST));
        }
        let name = change.name.map(|name| check::room_name(&name)).transpose()?;
        if let Some(defaults) = &change.defaults {
            check::config("defaults", defaults)?;
        }
        let password = change.password.map(|text| match text.is_empty() {
            true => Ok(None),
            false => Password::new(&text.into()).map(Some),
        });
        let password = password.transpose()?;
        let locks = matches!(password, Some(Some(_)));
        self.apply(name, password, change.defaults)?;
        if locks {
            self.log.let_go();
        }
        Ok(self.summary())
    }

    fn apply(
        &self,
        name: Option<String>,
        password: Option<Option<Password>>,
        defaults: Option<RuntimeConfig>,
    ) -> Result<(), RoomError> {
        let writing = self.writing();
        // The room may have ended while the password was hashed.
        let state = self.open()?;
        let name = name.unwrap_or_else(|| state.name.clone());
        let password = password.unwrap_or_else(|| state.password.clone());
        let defaults = defaults.unwrap_or_else(|| state.defaults.clone());
        // The state's lock is not held during the write: requests do not wait for the disk.
        drop(state);
        let record = self.record(&name, password.as_ref(), &defaults);
        // The store refuses the write of a former home, so a room that has moved is not changed here.
        if !self.house.store.change_room(&record)? {
            return Err(RoomError::Moved);
        }
        let mut state = self.state();
        // Before the event of it: from then on, watchers of all rooms see no more than the password allows.
        self.source.set_guarded(password.is_some());
        (state.name, state.password, state.defaults) = (name, password, defaults);
        let summary = self.summary_of(&state);
        self.tell_all(
            [Announcement::event(RoomEvent::RoomCreated(summary))],
            self.house.clock.now(),
        );
        drop((state, writing));
        Ok(())
    }

    /// Compares a text with the remembered password, without verifying it. Returns the hash too;
    /// `None` when the room has no password.
    pub(crate) fn known(&self, shown: &str) -> Option<(PasswordCheck, Arc<str>)> {
        let state = self.state();
        let password = state.password.as_ref()?;
        Some((password.known(shown), Arc::clone(password.phc())))
    }

    /// Remembers a text that was verified to be the password of this hash.
    pub(crate) fn remember(&self, shown: &str, phc: &str) {
        let mut state = self.state();
        if let Some(password) = state.password.as_mut().filter(|own| **own.phc() == *phc) {
            password.remember(shown);
        }
    }

    /// Marks silent participants and forgets old ones.
    pub(crate) fn sweep(&self, now: u64, aged: u64) -> Result<(), StoreError> {
        let _writing = self.writing();
        let mut state = self.state();
        let swept = state.sweep(now, aged);
        self.tell_all(swept.announcements, now);
        if state.is_used() {
            self.use_at(now);
        }
        drop(state);
        swept.stale.iter().try_for_each(|id| self.keep(id))?;
        swept.forgotten.iter().try_for_each(|id| self.forget(id))
    }

    fn keep(&self, id: &str) -> Result<(), StoreError> {
        let record = self.state().member(id).map(|member| member.record(self.id()));
        let Some(record) = record else { return Ok(()) };
        self.house.store.save_participant(&record)?;
        if let Some(member) = self.state().member_mut(id) {
            member.stale = false;
        }
        Ok(())
    }

    /// Whether it has been unused for long enough to end.
    pub(crate) fn is_expired(&self, aged: u64) -> bool {
        aged >= self.expires_at() && !self.state().is_used()
    }

    /// The time of its last use, if that must be written now: at most once a minute.
    pub(crate) fn use_to_keep(&self) -> Option<u64> {
        let used = self.used.load(Ordering::Relaxed);
        let stored = self.stored_use.load(Ordering::Relaxed);
        (used >= stored.saturating_add(USE_STORED_EVERY)).then_some(used)
    }

    /// Records that the time of its last use was written.
    pub(crate) fn use_is_kept(&self, used: u64) {
        self.stored_use.fetch_max(used, Ordering::Relaxed);
    }

    /// Ends everything in it and deletes it from the disk.
    pub(crate) fn close(&self, reason: &str) -> Result<(), StoreError> {
        // Waits for a write that has begun, and lets none begin before the end is noted.
        let _writing = self.writing();
        if !self.end(reason) {
            return Ok(());
        }
        self.house.store.forget_room(self.id())
    }

    /// Closes it and ends everything in it. The caller deletes it from the disk, or has done so. Returns whether it was
    /// open.
    pub(crate) fn end(&self, reason: &str) -> bool {
        let mut state = self.state();
        if !state.close(RoomEnd::Closed) {
            return false;
        }
        let event = RoomEvent::RoomClosed(RoomClosed { reason: reason.to_owned() });
        let error = format!("the room was closed: {reason}");
        let message = ServerMessage::RoomError(RoomErrorMessage { error });
        self.tell_all([Announcement::both(event, message)], self.house.clock.now());
        drop(state);
        self.log.close();
        self.closed.cancel();
        true
    }

    /// Ends its part at this server, after another one has taken it over: participants and watchers come back, and find
    /// it there.
    pub(crate) fn release(&self) {
        let _writing = self.writing();
        // Nothing is announced and nothing deleted: the room goes on, at its new home.
        if self.state().close(RoomEnd::Moved) {
            self.log.close();
            self.closed.cancel();
        }
    }

    /// Its record with this name, password and these defaults.
    pub(crate) fn record(
        &self,
        name: &str,
        password: Option<&Password>,
        defaults: &RuntimeConfig,
    ) -> RoomRecord {
        RoomRecord {
            id: self.id().clone(),
            short_code: self.short_code.to_string(),
            spoken_code: self.spoken_code.clone(),
            name: name.to_owned(),
            host_id: self.host_id.clone(),
            host_token: self.host_token,
            password: password.map(|password| password.phc().to_string()),
            defaults: write_defaults(defaults),
            public: self.is_public(),
            owner: self.owner().cloned(),
            idle_ms: self.idle,
            created: self.created,
            used: self.used.load(Ordering::Relaxed),
            home: self.house.home(),
            epoch: self.epoch,
        }
    }
}

/// Defaults as stored JSON.
pub(crate) fn write_defaults(defaults: &RuntimeConfig) -> Option<String> {
    if defaults.is_empty() {
        return None;
    }
    // Numbers, texts and lists of them always serialise.
    serde_json::to_string(defaults).ok()
}
