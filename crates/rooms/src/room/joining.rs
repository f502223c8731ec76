//! Joins, connections and departures of participants.

use std::{net::SocketAddr, sync::Arc};

use base::{ClientAddress, ParticipantId, ProviderId, Secret};
use protocol::room::Status;
use store::StoreError;

use super::Room;
use crate::{
    error::RoomError,
    member::Member,
    participant::{Connection, ConnectionEnd, JoinAnswer, JoinRequest, Kind},
    state::RoomState,
    stored, token,
};

const NOT_YOURS: &str = "this participant is somebody else's: send its session token, or the \
     room's host token";

impl Room {
    /// Adds a participant, or changes a present one. Tells watchers. Blocks on the disk.
    ///
    /// A participant that exists is changed only with its session token. Two exceptions: stock
    /// participants have no token and are recognised by the address that they joined from; and once
    /// a participant has not been connected for 30 s, any join may take its id.
    ///
    /// # Errors
    /// [`RoomError`] when the join is invalid, the room is full, or the id belongs to another
    /// participant.
    pub fn join(
        &self,
        request: JoinRequest,
        from: impl Into<ClientAddress>,
        now: u64,
    ) -> Result<JoinAnswer, RoomError> {
        self.use_at(now);
        let is_called = matches!(request.kind, Kind::Endpoint(_));
        let shown = request.session.clone().map(Secret::from);
        let new = token::new_token(token::SESSION);
        // Held from the plan to the join: another join could else take the id, or the last place, in between.
        let writing = self.writing();
        let plan = self.open()?.plan(request, token::digest(new.expose()), from.into(), now)?;
        let id = plan.id.clone();
        let record = stored::record(self.id(), &id, plan.session, &plan.stored);
        // The disk first: a participant that is shown and not stored would be gone after a restart.
        self.house.store.save_participant(&record)?;
        if let Some(leaves) = &plan.leaves {
            self.forget(leaves.as_str())?;
        }
        // Only the digest of a session is stored, so its text can be given back only to who has shown it.
        let session = shown.filter(|_| plan.known).unwrap_or(new);
        let mut state = self.state();
        let (created, announcements) = state.join(plan, now);
        self.tell_all(announcements, now);
        let participant = state.participant(&id);
        drop((state, writing));
        if is_called {
            // After the locks: the woken task asks the room at once.
            self.house.uncalled.notify_one();
        }
        let participant = participant.ok_or(RoomError::NoParticipant(id))?;
        Ok(JoinAnswer { participant, created, session })
    }

    /// Removes a participant and ends its connection. Allowed with its session token or the host's
    /// token; a participant that has never shown its token can also be removed from the address
    /// that it joined from. Tells watchers. Blocks on the disk.
    ///
    /// # Errors
    /// [`RoomError`] when there is no such participant, or the caller may not remove it.
    pub fn leave(
        &self,
        id: &str,
        shown: Option<&str>,
        from: impl Into<ClientAddress>,
    ) -> Result<(), RoomError> {
        let (writing, from) = (self.writing(), from.into());
        let may = |member: &Member| {
            member.is_session(shown) || self.is_host(shown) || member.is_neighbour(from)
        };
        match self.state().member(id).map(may) {
            None => return Err(RoomError::NoParticipant(id.to_owned())),
            Some(false) => return Err(RoomError::NotAllowed(NOT_YOURS)),
            Some(true) => {}
        }
        self.forget(id)?;
        let mut state = self.state();
        let announcements = state.remove(id, ConnectionEnd::Removed);
        self.tell_all(announcements, self.house.clock.now());
        drop((state, writing));
        Ok(())
    }

    /// Records that a participant is there. Returns its status.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn heartbeat(&self, id: &str, now: u64) -> Result<Status, RoomError> {
        self.house.clock.hear(now);
        let mut state = self.state();
        state.member_mut(id).ok_or_else(|| no_participant(id))?.heard(now);
        state.status(id).ok_or_else(|| no_participant(id))
    }

    /// Creates a token for a tunnel of this participant, valid once, within 60 s.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn tunnel_token(&self, id: &str, now: u64) -> Result<Secret, RoomError> {
        let mut state = self.state();
        let member = state.member_mut(id).ok_or_else(|| no_participant(id))?;
        Ok(member.tunnel_token(now))
    }

    /// Checks a tunnel token without using it up.
    ///
    /// # Errors
    /// [`RoomError`] when there is no such participant, or the token is not valid.
    pub fn check_tunnel_token(&self, id: &str, token: &str, now: u64) -> Result<(), RoomError> {
        let state = self.state();
        let member = state.member(id).ok_or_else(|| no_participant(id))?;
        if member.has_tunnel_token(token, now) { Ok(()) } else { Err(RoomError::BadTunnelToken) }
    }

    /// Uses up a tunnel token.
    ///
    /// # Errors
    /// [`RoomError`] when there is no such participant, or the token is not valid.
    pub fn redeem(&self, id: &str, token: &str, now: u64) -> Result<(), RoomError> {
        let mut state = self.state();
        let member = state.member_mut(id).ok_or_else(|| no_participant(id))?;
        if member.redeem(token, now) { Ok(()) } else { Err(RoomError::BadTunnelToken) }
    }

    /// Connects a participant as this provider, until the returned connection is dropped. Its older
    /// connection ends. Tells watchers.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn connect(
        self: &Arc<Self>,
        id: &str,
        provider: ProviderId,
        now: u64,
    ) -> Result<Connection, RoomError> {
        self.connected(&mut self.state(), id, provider, now)
    }

    /// Like [`Room::connect`], for a participant that the server calls at this address. A
    /// participant that has meanwhile joined again by a tunnel, or with another address, keeps its
    /// connection.
    ///
    /// # Errors
    /// [`RoomError::NoParticipant`].
    pub fn connect_endpoint(
        self: &Arc<Self>,
        id: &str,
        address: SocketAddr,
        provider: ProviderId,
        now: u64,
    ) -> Result<Connection, RoomError> {
        let mut state = self.state();
        if !state.member(id).is_some_and(|member| member.is_called_at(address)) {
            return Err(no_participant(id));
        }
        self.connected(&mut state, id, provider, now)
    }

    fn connected(
        self: &Arc<Self>,
        state: &mut RoomState,
        id: &str,
        provider: ProviderId,
        now: u64,
    ) -> Result<Connection, RoomError> {
        self.use_at(now);
        let (linked, announcement) =
            state.link(id, provider, now).ok_or_else(|| no_participant(id))?;
        self.tell_all([announcement], now);
        Ok(Connection::new(Arc::clone(self), id.to_owned(), linked))
    }

    pub(crate) fn set_models(&self, id: &str, serial: u64, models: Vec<String>, now: u64) {
        let mut state = self.state();
        let announcements = state.set_models(id, serial, models, now);
        self.tell_all(announcements, now);
    }

    /// Handles a dropped connection.
    pub(crate) fn disconnect(&self, id: &str, serial: u64) {
        let now = self.house.clock.now();
        let mut state = self.state();
        let announcements = state.disconnect(id, serial, now);
        self.tell_all(announcements, now);
        let is_uncalled = state.member(id).is_some_and(Member::is_uncalled);
        drop(state);
        if is_uncalled {
            self.house.uncalled.notify_one();
        }
    }

    /// Participants with an endpoint that no connection calls yet.
    pub(crate) fn uncalled(&self) -> Vec<String> {
        self.state().uncalled()
    }

    /// Adds a participant from an earlier run.
    pub(crate) fn add_stored(&self, member: Member) {
        self.state().add_stored(member);
    }

    pub(super) fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.house.store.forget_participant(self.id(), &ParticipantId::from(id))
    }
}

fn no_participant(id: &str) -> RoomError {
    RoomError::NoParticipant(id.to_owned())
}
