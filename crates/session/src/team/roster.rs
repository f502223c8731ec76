//! One team: its members, its messages, its results.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use uuid::Uuid;

use super::{
    error::TeamError,
    limits::Limits,
    member::{Member, MemberRecord},
    record::{Message, TeamRecord, TeamResult},
};

#[derive(Debug)]
pub(super) struct Team {
    pub(super) record: TeamRecord,
    pub(super) members: BTreeMap<Uuid, Member>,
    pub(super) messages: BTreeMap<u64, Message>,
    /// The bytes of the messages.
    pub(super) bytes: usize,
    /// The results that are kept, by team worker and number.
    pub(super) results: BTreeMap<(Uuid, u64), TeamResult>,
}

impl Team {
    pub(super) fn new(record: TeamRecord) -> Self {
        let (members, messages, results) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { record, members, messages, bytes: 0, results }
    }

    pub(super) fn add_member(&mut self, session: Uuid, at: u64) {
        self.members.insert(session, Member::new(MemberRecord::new(session, at)));
    }

    /// Notes which other machine runs a member's session.
    pub(super) fn place(&mut self, session: Uuid, node: Option<String>) {
        if let Some(member) = self.members.get_mut(&session) {
            member.record.node = node;
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.members.get(&self.record.leader).is_some_and(|leader| !leader.is_gone())
    }

    pub(super) fn check_active(&self) -> Result<(), TeamError> {
        if self.is_active() { Ok(()) } else { Err(TeamError::Inactive(self.record.id)) }
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| member.record.session != self.record.leader)
    }

    pub(super) fn any_pending(&self) -> bool {
        self.workers().any(Member::is_pending)
    }

    /// A member, whether or not its session has ended.
    pub(super) fn member(&self, session: Uuid) -> Result<&Member, TeamError> {
        let team = self.record.id;
        self.members.get(&session).ok_or(TeamError::NotMember { session, team })
    }

    /// A member whose session is still running.
    pub(super) fn living(&self, session: Uuid) -> Result<&Member, TeamError> {
        let member = self.member(session)?;
        if member.is_gone() { Err(TeamError::Gone(session)) } else { Ok(member) }
    }

    /// A member that is not the leader.
    pub(super) fn worker(&self, session: Uuid) -> Result<&Member, TeamError> {
        let team = self.record.id;
        if session == self.record.leader {
            return Err(TeamError::NotAWorker { session, team });
        }
        self.member(session)
    }

    /// The recipients of a message. With `to`, that member; without it, the leader for a message of
    /// a team worker, and all living team workers for a message of the leader.
    pub(super) fn addressees(&self, from: Uuid, to: Option<Uuid>) -> Result<Vec<Uuid>, TeamError> {
        self.living(from)?;
        match to {
            Some(to) if to == from => Err(TeamError::ToItself(from)),
            Some(to) => self.living(to).map(|_| vec![to]),
            None if from == self.record.leader => self.all_workers(),
            None => self.check_active().map(|()| vec![self.record.leader]),
        }
    }

    fn all_workers(&self) -> Result<Vec<Uuid>, TeamError> {
        let living = self.workers().filter(|member| !member.is_gone());
        let all: Vec<_> = living.map(|member| member.record.session).collect();
        if all.is_empty() { Err(TeamError::NoWorkers(self.record.id)) } else { Ok(all) }
    }

    /// The team worker that ended first, of those that have ended.
    pub(super) fn oldest_gone(&self) -> Option<Uuid> {
        let gone = self
            .workers()
            .filter_map(|member| Some((member.record.gone_at?, member.record.session)));
        gone.min().map(|(_, session)| session)
    }

    /// The messages to forget, so that a message of `size` bytes fits: the oldest of those that no
    /// recipient needs any more. `held` is the number of bytes that all teams hold.
    pub(super) fn to_go(
        &self,
        size: usize,
        held: usize,
        limits: &Limits,
    ) -> Result<Vec<u64>, TeamError> {
        let mut freed = 0;
        let mut to_go = Vec::new();
        let mut settled = self.messages.values().filter(|message| self.is_settled(message));
        loop {
            let fits = self.messages.len() - to_go.len() < limits.messages
                && self.bytes + size - freed <= limits.inbox_bytes
                && held + size - freed <= limits.held_bytes;
            if fits {
                return Ok(to_go);
            }
            // Unread messages are never dropped: the sender is refused instead.
            let unread = self.messages.len() - to_go.len();
            let full = TeamError::InboxFull { team: self.record.id, unread };
            let message = settled.next().ok_or(full)?;
            freed += message.payload.len();
            to_go.push(message.seq);
        }
    }

    fn is_settled(&self, message: &Message) -> bool {
        let through = |member: &Member| {
            member.is_through_with(message.seq, member.record.session == self.record.leader)
        };
        message.to.iter().all(|to| self.members.get(to).is_none_or(through))
    }

    /// Stores a message, and queues it for those recipients that it has not reached.
    pub(super) fn add(&mut self, message: Message) {
        for to in &message.to {
            let member = self.members.get_mut(to).filter(|member| !member.is_gone());
            if let Some(member) = member.filter(|member| message.seq > member.record.reached) {
                member.waiting.insert(message.seq);
            }
        }
        self.bytes += message.payload.len();
        // A restore may bring a message that is newer than the stored record of its team.
        self.record.next_seq = self.record.next_seq.max(message.seq + 1);
        self.messages.insert(message.seq, message);
    }

    /// Forgets a message. Returns its bytes, 0 if there is no such message.
    pub(super) fn forget(&mut self, seq: u64) -> usize {
        let Some(message) = self.messages.remove(&seq) else { return 0 };
        for to in &message.to {
            if let Some(member) = self.members.get_mut(to) {
                member.waiting.remove(&seq);
            }
        }
        self.bytes -= message.payload.len();
        message.payload.len()
    }

    /// The newest result of a team worker. The newest result is always kept, so `None` means that
    /// there was none.
    pub(super) fn newest_result(&self, worker: Uuid) -> Option<&TeamResult> {
        let member = self.members.get(&worker)?;
        self.results.get(&(worker, member.record.results))
    }

    /// The bytes of all messages and results.
    pub(super) fn held(&self) -> usize {
        self.bytes + self.results.values().map(|result| result.text.len()).sum::<usize>()
    }

    /// The team workers that a new wait covers if it names none: those with pending work or a
    /// result.
    pub(super) fn with_work(&self) -> BTreeSet<Uuid> {
        let with_work =
            self.workers().filter(|member| member.is_pending() || member.record.results > 0);
        with_work.map(|member| member.record.session).collect()
    }

    /// Whether a result is a success, and its text, which is shared.
    pub(super) fn text_of(&self, worker: Uuid, number: u64) -> Option<(bool, Arc<str>)> {
        let result = self.results.get(&(worker, number))?;
        Some((result.success, Arc::clone(&result.text)))
    }
}
