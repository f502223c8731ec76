//! Joins: the id of a new participant, and the participant that it evicts from a full room.

use base::ClientAddress;
use store::KeyDigest;

use super::{MAX_PARTICIPANTS, RoomEnd, RoomState, joined, left, updated};
use crate::{
    check,
    error::RoomError,
    events::Announcement,
    member::{Link, Member},
    participant::{ConnectionEnd, JoinRequest},
    stored::{About, StoredKind, StoredParticipant},
};

/// An accepted join, to be stored before it takes effect.
pub(crate) struct Plan {
    pub(crate) id: String,
    pub(crate) session: KeyDigest,
    pub(crate) stored: StoredParticipant,
    /// Whether the join showed the token of its existing session.
    pub(crate) known: bool,
    /// The participant that is evicted.
    pub(crate) leaves: Option<String>,
}

impl RoomState {
    /// Checks a join and plans it. It gets the session of this token, unless it showed its own
    /// token.
    pub(crate) fn plan(
        &mut self,
        request: JoinRequest,
        new_session: KeyDigest,
        from: impl Into<ClientAddress>,
        now: u64,
    ) -> Result<Plan, RoomError> {
        let from = from.into();
        check::join_request(&request)?;
        let (id, shown) = (request.id.clone(), request.session.clone());
        let about = About::of(request);
        let is_new = self.member(&id).is_none();

        let leaves = if is_new { self.participant_to_evict(now)? } else { None };
        let there = self.member(&id);
        let known = there.is_some_and(|member| member.is_session(shown.as_deref()));
        if there.is_some_and(|member| !known && !may_replace(member, &about, from, now)) {
            return Err(RoomError::Conflict(id));
        }
        let session = there.filter(|_| known).map_or(new_session, |member| member.session);
        let joined_at = there.map_or(now, |member| member.stored.joined_at);
        let stored = StoredParticipant {
            about,
            from: from.ip(),
            by_proxy: from.is_by_proxy(),
            proven: known,
            joined_at,
            updated_at: now,
            seen: now,
        };
        Ok(Plan { id, session, stored, known, leaves })
    }

    /// The participant to evict from a full room: the one that has been silent the longest.
    fn participant_to_evict(&mut self, now: u64) -> Result<Option<String>, RoomError> {
        if self.members.len() < MAX_PARTICIPANTS {
            return Ok(None);
        }
        let full = || {
            RoomError::TooMany(format!("the room is full: it has {MAX_PARTICIPANTS} participants"))
        };
        // Nobody can be evicted before this time, so a flood of joins does not search the room each time.
        if now < self.full_until {
            return Err(full());
        }
        let gone = self.members.values().filter(|member| !member.holds_id(now));
        if let Some(longest) = gone.min_by_key(|member| (member.seen(), member.order)) {
            return Ok(Some(longest.id.clone()));
        }
        self.full_until = self.members.values().map(Member::held_until).min().unwrap_or(0);
        Err(full())
    }

    /// Applies a join. Returns whether the participant is new, and the announcements.
    pub(crate) fn join(&mut self, plan: Plan, now: u64) -> (bool, Vec<Announcement>) {
        let Plan { id, session, stored, known, leaves } = plan;
        let mut announcements = Vec::new();
        announcements.extend(leaves.and_then(|id| self.remove(&id, ConnectionEnd::Removed)));
        if self.members.contains_key(&id) {
            announcements.extend(self.renew(&id, session, stored, known, now));
            return (false, announcements);
        }
        self.counted += 1;
        let member = Member::new(id.clone(), self.counted, session, stored, now);
        announcements.push(joined(self.info(&member)));
        self.members.insert(id, member);
        (true, announcements)
    }

    /// Renews the join of a present participant. Its connection ends if its kind changed, or if the
    /// join comes from another participant.
    fn renew(
        &mut self,
        id: &str,
        session: KeyDigest,
        stored: StoredParticipant,
        known: bool,
        now: u64,
    ) -> Option<Announcement> {
        let member = self.member(id)?;
        let moved = member.stored.about.kind != stored.about.kind;
        let stranger = !known && !member.is_neighbour(stored.from());
        if moved || stranger {
            member.end(ConnectionEnd::Superseded);
            self.unlink(id, now);
        }
        let old = self.member(id).filter(|member| member.is_up());
        let old = old.map(|member| member.stored.about.models.clone());
        // The counts are of connected participants: they must not keep the models of before.
        if let Some(old) = old {
            self.count_out(&old);
            self.count_in(&stored.about.models);
        }
        let member = self.members.get_mut(id)?;
        // Somebody else took the id over. A token of the former one must not open a tunnel for this one.
        if stranger {
            member.forget_tunnel_tokens();
        }
        // A join is a sign of life: the id is reserved again.
        if let Link::Down { since } = &mut member.link {
            *since = now;
        }
        let changed = member.stored.about != stored.about;
        (member.session, member.stored, member.stale) = (session, stored, false);
        if let Link::Up { end, .. } = &member.link
            && changed
        {
            end.change();
        }
        let info = self.participant(id)?;
        Some(updated(info, false))
    }

    /// Removes a participant and ends its connection.
    pub(crate) fn remove(&mut self, id: &str, why: ConnectionEnd) -> Option<Announcement> {
        let member = self.members.get(id)?;
        member.end(why);
        // The time does not matter: the participant is removed in the same call.
        self.unlink(id, 0);
        let member = self.members.remove(id)?;
        self.activity.forget(id);
        Some(left(id, member.is_shown_offline))
    }

    /// Ends every connection, unless the room has ended before.
    pub(crate) fn close(&mut self, end: RoomEnd) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.end = Some(end);
        let why = match end {
            RoomEnd::Closed => ConnectionEnd::RoomClosed,
            RoomEnd::Moved => ConnectionEnd::Moved,
        };
        self.members.values().for_each(|member| member.end(why));
        self.members.clear();
        self.providers.clear();
        self.models.clear();
        self.answering = 0;
        true
    }
}

/// Whether a join without a session token may take the id of a participant. Warrens show their
/// tokens; stock participants have none and are recognised by their address.
fn may_replace(member: &Member, by: &About, from: ClientAddress, now: u64) -> bool {
    let is_worker = |about: &About| about.kind == StoredKind::Worker;
    let stock = !is_worker(&member.stored.about) && !is_worker(by);
    !member.holds_id(now) || (stock && member.is_neighbour(from))
}
