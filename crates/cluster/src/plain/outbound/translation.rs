//! Puts a client's messages into the peers' protocol, and a plain peer's answers into the clients'.
//! A plain peer serves only what concerns the sessions that it runs; other requests are refused
//! with words.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use protocol::workspace::{
    ClientMessage, ProjectId, RequestKind, Role, ServerMessage, SessionId,
    client::{
        Attach, ClientNotice, ClusterActionAck, Notice, NoticeLevel, OfProject, OfSession,
        SessionHistory, connection::OUTPUT_LAGGED,
    },
    decode_reply, decode_request,
    limits::HOPS_MAX,
    peer::{
        ForwardedRequest, NodeName, OfSubscriber, PeerMessage, SubscribeOutput,
        SubscribeProjectFiles,
    },
};

use super::requests::{completion, role};
use crate::plain::inbound::session_of;

/// A request must be answered within this time.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);
/// The most requests of one client that wait for their answers.
const MOST_WAITING: usize = 256;

/// One step for the circuit, to be carried out in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Send this to the peer.
    Send(PeerMessage),
    /// Send the client this.
    Answer(ServerMessage),
    /// Send the client this message of the peer unchanged.
    Pass(String),
    /// This circuit waits for the response with this id.
    Expect(String),
    /// This circuit no longer waits for that response.
    Forget(String),
    /// This circuit takes the output of this session after this number.
    Follow(SessionId, u64),
    /// This circuit takes no more output.
    Unfollow,
    /// This circuit takes the file changes of the subscription with this id.
    Watch(String),
    /// This circuit takes no more file changes of that subscription.
    Unwatch(String),
    /// The peer does not run this session.
    Dead(SessionId),
}

/// How far the requests of a client may still go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hops {
    pub(crate) left: u8,
    /// The members that they have passed.
    pub(crate) visited: Vec<String>,
}

impl Default for Hops {
    fn default() -> Self {
        Self { left: HOPS_MAX, visited: Vec::new() }
    }
}

/// The translation for one client.
pub(super) struct Translation {
    /// The peer's name, for people.
    peer: String,
    role: Role,
    hops: Hops,
    /// Random bits, so that no other circuit makes the same ids.
    seed: u128,
    made: u128,
    waiting: BTreeMap<String, Waiting>,
    attached: Option<(SessionId, String)>,
    watched: Option<(ProjectId, String)>,
    actions: VecDeque<Action>,
}

struct Waiting {
    request: ClientMessage,
    deadline: Instant,
}

impl Translation {
    /// A translation for one client. `seed` is random.
    pub(super) fn new(peer: String, role: Role, hops: Hops, seed: u128) -> Self {
        let (waiting, attached, watched, actions) = Default::default();
        Self { peer, role, hops, seed, made: 0, waiting, attached, watched, actions }
    }

    /// The next step; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Handles a message of the client.
    pub(super) fn request(&mut self, now: Instant, text: &str) {
        let message = match decode_request(text) {
            Ok(message) => message,
            Err(bad) => return self.refuse(bad.to_string()),
        };
        let kind = message.kind();
        match role(kind) {
            Some(needed) if self.role < needed => {
                return self.refuse(format!("`{}` needs the role {needed}", kind.name()));
            }
            _ => {}
        }
        match message {
            ClientMessage::Keepalive => self.answer(ServerMessage::KeepaliveAck),
            ClientMessage::Attach(of) => self.attach(&of),
            ClientMessage::Detach => self.detach(),
            ClientMessage::WatchProjectFiles(of) => self.watch(of.project_id),
            ClientMessage::UnwatchProjectFiles(_) => self.unwatch(),
            ClientMessage::RenameNode(of) => self.rename(of.name),
            message if role(kind).is_some() => self.forward(now, message, text),
            _ => self.refuse(format!(
                "{} is a peer that takes no `{}` from here: connect to it",
                self.peer,
                kind.name()
            )),
        }
    }

    fn forward(&mut self, now: Instant, request: ClientMessage, text: &str) {
        if self.waiting.len() >= MOST_WAITING {
            return self.refuse(format!("{} takes no more requests for now", self.peer));
        }
        let request_id = self.new_id();
        let payload = text.to_owned();
        let Hops { left: hops, visited } = self.hops.clone();
        let forwarded = ForwardedRequest { request_id, payload, hops, visited };
        let id = forwarded.request_id.clone();
        self.actions.push_back(Action::Expect(id.clone()));
        self.actions.push_back(Action::Send(PeerMessage::ForwardedRequest(forwarded)));
        self.waiting.insert(id, Waiting { request, deadline: now + DEADLINE });
    }

    /// Handles the peer's response to a request.
    pub(super) fn response(&mut self, id: &str, payload: String) {
        let Some(Waiting { request, .. }) = self.waiting.remove(id) else { return };
        match decode_reply(&payload) {
            Ok(ServerMessage::SessionUnknown(of)) => self.unknown(of.session_id),
            Ok(ServerMessage::Error(_)) => self.actions.push_back(Action::Pass(payload)),
            Ok(reply) => {
                let completion = completion(&request, &reply);
                self.actions.push_back(Action::Pass(payload));
                completion.into_iter().for_each(|reply| self.answer(reply));
            }
            Err(_) if request.kind() == RequestKind::GetHistory => {
                self.refuse(format!("the answer of {} cannot be read", self.peer));
            }
            // It is an answer and no error, so the peer carried the request out.
            Err(_) => completion(&request, &ServerMessage::KeepaliveAck)
                .into_iter()
                .for_each(|reply| self.answer(reply)),
        }
    }

    /// Handles the peer's answer that it does not run a session: the client is told that the
    /// session has ended.
    pub(super) fn unknown(&mut self, session_id: SessionId) {
        if self.attached.as_ref().is_some_and(|(attached, _)| *attached == session_id) {
            self.let_go();
        }
        self.answer(ServerMessage::SessionKilled(OfSession { session_id }));
        self.actions.push_back(Action::Dead(session_id));
    }

    /// Handles the peer's own message that it does not run a session.
    pub(super) fn disclaimed(&mut self, session_id: SessionId) {
        let is_attached = self.attached.as_ref().is_some_and(|(id, _)| *id == session_id);
        let is_about = |waiting: &Waiting| session_of(&waiting.request) == Some(session_id);
        let ids = self.waiting.iter().filter(|(_, waiting)| is_about(waiting));
        let ids: Vec<_> = ids.map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.waiting.remove(id);
            self.actions.push_back(Action::Forget(id.clone()));
        }
        if is_attached || !ids.is_empty() {
            self.unknown(session_id);
        }
    }

    /// Handles a change of files in a project.
    pub(super) fn files_changed(&mut self, subscriber: &str) {
        if let Some((project_id, id)) = &self.watched
            && id == subscriber
        {
            let project_id = *project_id;
            self.answer(ServerMessage::ProjectFilesChanged(OfProject { project_id }));
        }
    }

    /// The client has room again, after it missed the output that followed this number.
    pub(super) fn lagged(&mut self, last_seq: u64) {
        let Some((session_id, _)) = self.attached else { return };
        let notice = Notice {
            level: NoticeLevel::Warning,
            code: OUTPUT_LAGGED.to_owned(),
            message: "This client is falling behind on live session output.".to_owned(),
            detail: Some(format!("{} is asked for what was left out", self.peer)),
            session_id: Some(session_id),
        };
        self.answer(ServerMessage::ClientNotice(ClientNotice { notice }));
        self.subscribe_again(last_seq);
    }

    /// The link to the peer has ended, so no request that waits will be answered.
    pub(super) fn unlinked(&mut self) {
        for id in std::mem::take(&mut self.waiting).into_keys() {
            self.actions.push_back(Action::Forget(id));
            let words = format!(
                "the link to {}, which runs it, broke; whether it was done is not known",
                self.peer
            );
            self.refuse(words);
        }
    }

    /// Another link leads to the peer. `last_seq` is the number of the last output that the client
    /// got.
    pub(super) fn linked_again(&mut self, last_seq: u64) {
        if self.attached.is_some() {
            self.subscribe_again(last_seq);
        }
        if let Some((project_id, id)) = self.watched.take() {
            self.actions.push_back(Action::Unwatch(id));
            self.watch(project_id);
        }
    }

    /// The client leaves. Requests that it made are not withdrawn.
    pub(super) fn leave(&mut self) {
        self.let_go();
        self.unwatch();
    }

    /// The earliest deadline of a waiting request.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.deadline).min()
    }

    /// Ends the requests whose deadline has passed.
    pub(super) fn overdue(&mut self, now: Instant) {
        let late = self.waiting.iter().filter(|(_, waiting)| waiting.deadline <= now);
        let late: Vec<_> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            self.waiting.remove(&id);
            self.actions.push_back(Action::Forget(id));
            let seconds = DEADLINE.as_secs();
            self.refuse(format!("{}, which runs it, did not answer within {seconds} s", self.peer));
        }
    }

    fn attach(&mut self, of: &Attach) {
        self.let_go();
        let Attach { session_id, after_seq } = *of;
        let last_seq = after_seq.unwrap_or_default();
        self.answer(ServerMessage::Attached(OfSession { session_id }));
        let history = SessionHistory { session_id, last_seq, snapshot: None };
        self.answer(ServerMessage::SessionHistory(history));
        self.subscribe(session_id, after_seq);
    }

    fn detach(&mut self) {
        match self.let_go() {
            Some(session_id) => self.answer(ServerMessage::Detached(OfSession { session_id })),
            None => self.refuse("this connection is attached to no session".to_owned()),
        }
    }

    fn subscribe(&mut self, session_id: SessionId, after_seq: Option<u64>) {
        let subscriber_id = self.new_id();
        self.attached = Some((session_id, subscriber_id.clone()));
        self.actions.push_back(Action::Follow(session_id, after_seq.unwrap_or_default()));
        let subscribe = SubscribeOutput { subscriber_id, session_id, after_seq };
        self.actions.push_back(Action::Send(PeerMessage::SubscribeOutput(subscribe)));
    }

    fn subscribe_again(&mut self, last_seq: u64) {
        if let Some(session_id) = self.let_go() {
            self.subscribe(session_id, Some(last_seq).filter(|seq| *seq > 0));
        }
    }

    fn let_go(&mut self) -> Option<SessionId> {
        let (session_id, subscriber_id) = self.attached.take()?;
        self.actions.push_back(Action::Unfollow);
        let unsubscribe = PeerMessage::UnsubscribeOutput(OfSubscriber { subscriber_id });
        self.actions.push_back(Action::Send(unsubscribe));
        Some(session_id)
    }

    fn watch(&mut self, project_id: ProjectId) {
        self.unwatch();
        let subscriber_id = self.new_id();
        self.watched = Some((project_id, subscriber_id.clone()));
        self.actions.push_back(Action::Watch(subscriber_id.clone()));
        let subscribe = SubscribeProjectFiles { subscriber_id, project_id };
        self.actions.push_back(Action::Send(PeerMessage::SubscribeProjectFiles(subscribe)));
    }

    fn unwatch(&mut self) {
        let Some((_, subscriber_id)) = self.watched.take() else { return };
        self.actions.push_back(Action::Unwatch(subscriber_id.clone()));
        let unsubscribe = PeerMessage::UnsubscribeProjectFiles(OfSubscriber { subscriber_id });
        self.actions.push_back(Action::Send(unsubscribe));
    }

    /// Renames the peer. A peer does not answer that, so the client gets an answer at once.
    fn rename(&mut self, name: String) {
        self.actions.push_back(Action::Send(PeerMessage::RenameNode(NodeName { name })));
        self.answer(ServerMessage::ClusterActionAck(ClusterActionAck {
            action: RequestKind::RenameNode.name().to_owned(),
            ok: true,
            message: format!("{} was asked to take the name", self.peer),
        }));
    }

    /// An id in the form in which other programs make them: some read no other form.
    fn new_id(&mut self) -> String {
        self.made += 1;
        SessionId::from_random(self.seed.wrapping_add(self.made)).to_string()
    }

    fn answer(&mut self, reply: ServerMessage) {
        self.actions.push_back(Action::Answer(reply));
    }

    fn refuse(&mut self, words: String) {
        self.answer(ServerMessage::error(words));
    }
}

#[cfg(test)]
mod tests;
