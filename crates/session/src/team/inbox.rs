//! Messages: sent, delivered one after the other, read again from any place.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Called, Effect, Membership, TeamError, Teams, check_length,
    effect::{Delivery, Out},
    record::{Key, Kind, Message},
};

/// A page of one member's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The messages, in order of their seqs.
    pub messages: Vec<Message>,
    /// The `since` of the next call, which then reports all messages before it as read.
    pub next_seq: u64,
    /// Whether there are more messages now.
    pub more: bool,
}

/// A message before it is stored.
struct Draft {
    from: Uuid,
    to: Vec<Uuid>,
    kind: Kind,
    payload: Arc<str>,
}

impl Teams {
    /// Sends a message from one member to another. Without `to`, a team worker's message goes to
    /// the leader, and the leader's to all team workers. Returns the message's seq, which
    /// acknowledges it.
    ///
    /// # Errors
    /// When the sender or the recipient is not in this team or has ended, or the message does not
    /// fit.
    pub fn relay(
        &mut self,
        team: Uuid,
        from: Uuid,
        to: Option<Uuid>,
        payload: impl Into<Arc<str>>,
        at: u64,
    ) -> Called<u64> {
        let to = self.team(team)?.addressees(from, to)?;
        let draft = Draft { from, to, kind: Kind::Message, payload: payload.into() };
        self.post(team, draft, at)
    }

    /// Gives a team worker work, in the leader's name. The prompt is sent as a message, so it is stored
    /// as messages are. The team worker is pending until the turn that the prompt begins has a result.
    ///
    /// # Errors
    /// When there is no such team worker, the team worker or the leader has ended, or the prompt
    /// does not fit.
    pub fn assign(
        &mut self,
        team: Uuid,
        worker: Uuid,
        prompt: impl Into<Arc<str>>,
        at: u64,
    ) -> Called<u64> {
        let found = self.team(team)?;
        // A team without its leader has nobody who would read the result.
        found.check_active()?;
        found.worker(worker)?;
        found.living(worker)?;
        let (from, to) = (found.record.leader, vec![worker]);
        let draft = Draft { from, to, kind: Kind::Assignment, payload: prompt.into() };
        self.post(team, draft, at)
    }

    /// The messages to a member from `since` on, or all of them. `since` also reports all messages
    /// before it as read. A message that was only shown is shown again.
    ///
    /// # Errors
    /// When the session is not in this team.
    pub fn inbox(&mut self, team: Uuid, session: Uuid, since: Option<u64>) -> Called<Page> {
        self.team(team)?.member(session)?;
        let mut out = Out::default();
        self.mark_read(Membership { team, session }, since.unwrap_or(0), &mut out);
        Ok((self.page(team, session, since.unwrap_or(0))?, self.finish(out)))
    }

    /// Notes that a message has reached its recipient. Repeating the call has no effect.
    ///
    /// # Errors
    /// When the message was not being delivered to the session, or the session is not in this team.
    pub fn delivered(
        &mut self,
        team: Uuid,
        seq: u64,
        session: Uuid,
    ) -> Result<Vec<Effect>, TeamError> {
        let member = self.team(team)?.member(session)?;
        // A repeated call, for example after a lost connection.
        if member.is_gone() || seq <= member.record.reached {
            return Ok(Vec::new());
        }
        if member.offered != Some(seq) {
            return Err(TeamError::NotOffered { seq, session });
        }
        let mut out = Out::default();
        self.reach(Membership { team, session }, seq, &mut out);
        Ok(self.finish(out))
    }

    /// Notes that the recipient had no room for the message that was being delivered. The message
    /// is offered again when a turn of the recipient ends, or when the recipient [has
    /// room](Self::note_room).
    pub fn not_taken(&mut self, team: Uuid, seq: u64, session: Uuid) {
        let member = self.member_mut(Membership { team, session });
        if let Some(member) = member.filter(|member| member.offered == Some(seq)) {
            member.offered = None;
            member.full = true;
        }
    }

    /// Notes that a session can take messages again: for example, a client attached to its
    /// terminal.
    pub fn note_room(&mut self, session: Uuid) -> Vec<Effect> {
        let mut out = Out::default();
        self.offer_again(session, &mut out);
        self.finish(out)
    }

    pub(super) fn offer_again(&mut self, session: Uuid, out: &mut Out) {
        let Some(&team) = self.team_of.get(&session) else { return };
        let membership = Membership { team, session };
        if let Some(member) = self.member_mut(membership) {
            member.full = false;
        }
        self.offer(membership, out);
    }

    /// Offers a member its next message, unless one is being delivered to it.
    pub(super) fn offer(&mut self, membership: Membership, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&membership.team) else { return };
        let Some(member) = team.members.get_mut(&membership.session) else { return };
        // One at a time, so that the order holds: the next message is delivered when this one has reached the
        // session.
        if member.full || member.offered.is_some() || member.is_gone() {
            return;
        }
        let next = member.waiting.first().and_then(|seq| team.messages.get(seq));
        if let Some(message) = next {
            member.offered = Some(message.seq);
            out.say(Effect::Deliver(Delivery::new(membership.team, membership.session, message)));
        }
    }

    fn post(&mut self, id: Uuid, draft: Draft, at: u64) -> Called<u64> {
        let size = draft.payload.len();
        check_length("message", size, self.limits.payload)?;
        // Before anything is forgotten: a message that is refused changes nothing.
        let to_go = self.team(id)?.to_go(size, self.held, &self.limits)?;
        let mut out = Out::default();
        self.forget(id, to_go, &mut out);
        let Draft { from, to, kind, payload } = draft;
        let team = self.team_mut(id)?;
        let message = Message { seq: team.record.next_seq, from, to, kind, payload, at };
        team.record.last_active = at;
        team.add(message.clone());
        self.held += size;
        self.announce(id, &message, &mut out);
        Ok((message.seq, self.finish(out)))
    }

    fn announce(&mut self, id: Uuid, message: &Message, out: &mut Out) {
        out.change(Key::team(id));
        out.change(Key::message(id, message.seq));
        for &to in &message.to {
            // Clients see a message at once, even if its recipient takes it later.
            out.say(Effect::Show(Delivery::new(id, to, message)));
        }
        for &session in &message.to {
            self.offer(Membership { team: id, session }, out);
        }
    }

    fn forget(&mut self, id: Uuid, to_go: Vec<u64>, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&id) else { return };
        for seq in to_go {
            self.held -= team.forget(seq);
            out.change(Key::message(id, seq));
        }
    }

    fn mark_read(&mut self, membership: Membership, below: u64, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&membership.team) else { return };
        // A seq that is not assigned yet cannot have been read.
        let below = below.min(team.record.next_seq);
        let Some(member) = team.members.get_mut(&membership.session) else { return };
        if below > member.record.read_below {
            member.record.read_below = below;
            out.change(Key::member(membership.team, membership.session));
        }
    }

    fn page(&self, id: Uuid, session: Uuid, since: u64) -> Result<Page, TeamError> {
        let team = self.team(id)?;
        let mut page = Page { messages: Vec::new(), next_seq: team.record.next_seq, more: false };
        let mut bytes = 0;
        let after = team.messages.range(since..).map(|(_, message)| message);
        for message in after.filter(|message| message.to.contains(&session)) {
            bytes += message.payload.len();
            let full =
                page.messages.len() >= self.limits.page_messages || bytes > self.limits.page_bytes;
            // A page has one message at least: otherwise a long one would never be read.
            if full && !page.messages.is_empty() {
                return Ok(Page { next_seq: message.seq, more: true, ..page });
            }
            page.messages.push(message.clone());
        }
        Ok(page)
    }

    pub(super) fn reach(&mut self, membership: Membership, seq: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership) else { return };
        member.waiting.remove(&seq);
        member.offered = None;
        member.record.reached = seq;
        out.change(Key::member(membership.team, membership.session));
        self.offer(membership, out);
    }
}
