//! The circuits of one client to the members that serve its requests, and its open requests there.

use std::{collections::VecDeque, future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use cluster::{Caller, Circuit, Cluster, Ended};
use protocol::workspace::{
    ClientMessage, Notice, NoticeLevel, ServerMessage, SessionId, SessionInfo,
    client::{Attach, ClientNotice, connection::OWNER_UNREACHABLE},
    decode_reply, frame,
};
use replica::Kind;
use tokio::time::Instant;
use wire::{Frame, Utf8Bytes};
use workspace::{Identity, Refusal};

use crate::{
    echoes::PendingAnswer,
    family::Family,
    guest::read_done,
    membership::Membership,
    quiet_requests::{QuietRequests, is},
};

/// The most requests of one client that wait for an answer of one member.
const WAITING: usize = 256;
/// The most bytes that wait for a member that does not take them.
const WAITING_BYTES: usize = 64 * 1024 * 1024;
/// The pause before a lost attachment is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// The circuits of one client.
#[derive(Default)]
pub(crate) struct Remotes {
    open: Vec<Remote>,
    attached: Option<RemoteAttachment>,
}

/// The circuit to one member.
struct Remote {
    node: String,
    circuit: Circuit,
    /// How many requests were sent.
    sent: u64,
    waiting: VecDeque<WaitingRequest>,
    quiet: QuietRequests,
}

/// A request without an answer.
pub(crate) struct WaitingRequest {
    number: u64,
    family: Family,
    /// Set if its answer may come as an event, too.
    pending: Option<PendingAnswer>,
}

/// The client's attachment to a session of another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteAttachment {
    pub(crate) node: String,
    pub(crate) session: SessionId,
    /// The newest output that the client was sent.
    seq: Option<u64>,
    /// When the attachment is tried again, if it was lost.
    retry_at: Option<Instant>,
}

/// A message from members.
pub(crate) enum FromMember {
    /// Something for the client.
    Frame(Frame),
    /// A member was lost. The client gets these answers.
    Lost(Vec<ServerMessage>),
}

impl Remotes {
    /// The attachment to a session of another member, if there is one.
    pub(crate) fn attachment(&self) -> Option<&RemoteAttachment> {
        self.attached.as_ref()
    }

    /// Sends a request of the client to a member.
    ///
    /// # Errors
    /// A refusal when too many requests wait for this member.
    pub(crate) fn send(
        &mut self,
        cluster: &Cluster,
        me: &Identity,
        node: &str,
        text: Utf8Bytes,
        family: Family,
        pending: Option<PendingAnswer>,
    ) -> Result<(), Refusal> {
        let remote = self.to(cluster, me, node);
        let is_full = remote.waiting.len() >= WAITING || remote.circuit.waiting() > WAITING_BYTES;
        if is_full {
            let name = cluster.name_of(node);
            return Err(Refusal::Invalid(format!("{name}, which runs it, takes no more requests")));
        }
        remote.sent += 1;
        remote.waiting.push_back(WaitingRequest { number: remote.sent, family, pending });
        // A circuit that has ended says so when it is read.
        let _ended = remote.circuit.send(Frame::Text(text));
        Ok(())
    }

    /// The client is attached to this session from now on, and to no other.
    pub(crate) fn attach(&mut self, node: &str, session: SessionId) {
        if self.attached.as_ref().is_some_and(|attached| attached.node != node) {
            self.let_go();
        }
        let node = node.to_owned();
        self.attached = Some(RemoteAttachment { node, session, seq: None, retry_at: None });
    }

    /// The session has moved to this member: the client is attached to it there, after the last
    /// output that it got.
    pub(crate) fn follow(&mut self, node: &str, session: SessionId, seq: Option<u64>) {
        self.let_go();
        let (node, retry_at) = (node.to_owned(), Some(Instant::now()));
        self.attached = Some(RemoteAttachment { node, session, seq, retry_at });
    }

    /// The newest output that the client was sent of the session that it is attached to.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.attached.as_ref()?.seq
    }

    /// Ends the attachment. The client gets no message about it.
    pub(crate) fn let_go(&mut self) {
        let Some(attached) = self.attached.take() else { return };
        // The member knows nothing of an attachment that was lost and not tried again.
        if attached.retry_at.is_some() {
            return;
        }
        let Some(remote) = self.open.iter_mut().find(|remote| remote.node == attached.node) else {
            return;
        };
        remote.sent += 1;
        remote.quiet.detach(remote.sent);
        let text = r#"{"type":"detach"}"#.to_owned();
        let _ended = remote.circuit.send(Frame::from(text));
    }

    /// Notes that the attachment has ended: the client itself sent `detach`, or the session is gone.
    pub(crate) fn detached(&mut self) {
        self.attached = None;
    }

    /// When the next attempt to attach is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.attached.as_ref()?.retry_at
    }

    /// Attaches again, if the member can be reached.
    pub(crate) fn attach_again(&mut self, cluster: &Cluster, me: &Identity) {
        let Some(attached) = &mut self.attached else { return };
        if !cluster.is_reachable(&attached.node) {
            attached.retry_at = Some(Instant::now() + AGAIN);
            return;
        }
        attached.retry_at = None;
        let RemoteAttachment { node, session, seq, .. } = attached.clone();
        let request = Attach { session_id: session, after_seq: seq };
        let text = ClientMessage::Attach(request).encode();
        let remote = self.to(cluster, me, &node);
        remote.sent += 1;
        remote.quiet.attach(remote.sent);
        let _ended = remote.circuit.send(Frame::from(text));
    }

    /// The next message from any member. Waits for ever while no circuit is open. Cancel safe.
    pub(crate) async fn next(&mut self, membership: &Membership) -> FromMember {
        loop {
            let (index, heard) = self.heard().await;
            match heard {
                Ok(frame) => {
                    if let Some(frame) = self.frame(index, frame, membership) {
                        return FromMember::Frame(frame);
                    }
                }
                Err(why) => {
                    return FromMember::Lost(self.lost(index, &why, membership.cluster().as_ref()));
                }
            }
        }
    }

    async fn heard(&mut self) -> (usize, Result<Frame, Ended>) {
        // A circuit keeps what has come when its wait is dropped.
        poll_fn(|context| {
            for (index, remote) in self.open.iter_mut().enumerate() {
                if let Poll::Ready(heard) = pin!(remote.circuit.next()).poll(context) {
                    return Poll::Ready((index, heard));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The part of a frame that the client gets; `None` if it gets nothing.
    fn frame(&mut self, index: usize, frame: Frame, membership: &Membership) -> Option<Frame> {
        match frame {
            Frame::Binary(bytes) => self.binary(index, bytes).map(Frame::Binary),
            Frame::Text(text) => {
                let is_for_client = self.text(index, &text, membership);
                is_for_client.then_some(Frame::Text(text))
            }
        }
    }

    fn binary(&mut self, index: usize, bytes: Bytes) -> Option<Bytes> {
        let remote = &mut self.open[index];
        if let Some(number) = read_done(&bytes) {
            remote.waiting.retain(|waiting| waiting.number != number);
            remote.quiet.answered(number);
            return None;
        }
        // Late output of a session from which the client has detached is dropped.
        let (session, seq) = frame::position(&bytes)?;
        let attached = self.attached.as_mut().filter(|attached| attached.session == session)?;
        attached.seq = Some(seq);
        Some(bytes)
    }

    fn text(&mut self, index: usize, text: &str, membership: &Membership) -> bool {
        let remote = &mut self.open[index];
        if remote.quiet.take(text) {
            return false;
        }
        if is(text, "session_history") {
            self.resumed(text);
        }
        let remote = &mut self.open[index];
        for kind in ["session_created", "terminal_opened", "team_created"] {
            if is(text, kind) {
                learn(text, &remote.node, membership);
            }
        }
        let mut pending = remote.waiting.iter().filter_map(|waiting| waiting.pending.as_ref());
        let Some(pending) = pending.next() else { return true };
        is_new(text, pending)
    }

    /// Notes up to which number the client has a session's output.
    fn resumed(&mut self, text: &str) {
        if let Ok(ServerMessage::SessionHistory(history)) = decode_reply(text)
            && let Some(attached) = &mut self.attached
            && attached.session == history.session_id
        {
            attached.seq = Some(history.last_seq);
        }
    }

    /// The answers to everything that a lost member has not answered.
    fn lost(&mut self, index: usize, why: &Ended, cluster: Option<&Cluster>) -> Vec<ServerMessage> {
        let remote = self.open.swap_remove(index);
        let name = cluster.map(|cluster| cluster.name_of(&remote.node));
        let name = name.unwrap_or_else(|| remote.node.clone());
        let words = match why {
            Ended::Unreachable => format!("{name}, which runs it, cannot be reached"),
            why => format!("{name}, which runs it, was lost: {why}"),
        };
        let attached = self.attached.as_mut().filter(|attached| attached.node == remote.node);
        let mut said: Vec<ServerMessage> =
            remote.waiting.into_iter().map(|waiting| waiting.family.error(words.clone())).collect();
        if let Some(attached) = attached {
            attached.retry_at = Some(Instant::now() + AGAIN);
            said.push(unreachable(&name, attached.session));
        }
        said
    }

    fn to(&mut self, cluster: &Cluster, me: &Identity, node: &str) -> &mut Remote {
        let known = self.open.iter().position(|remote| remote.node == node);
        let index = known.unwrap_or_else(|| {
            let member = me.member.map(|member| (member.team, member.session));
            let caller = Caller { who: me.who.clone(), role: me.role, member };
            self.open.push(Remote {
                node: node.to_owned(),
                circuit: cluster.open(node, caller),
                sent: 0,
                waiting: VecDeque::new(),
                quiet: QuietRequests::default(),
            });
            self.open.len() - 1
        });
        &mut self.open[index]
    }
}

fn unreachable(name: &str, session: SessionId) -> ServerMessage {
    let notice = Notice {
        level: NoticeLevel::Warning,
        code: OWNER_UNREACHABLE.to_owned(),
        message: format!("{name}, which runs the session, cannot be reached"),
        detail: Some("the session is shown again as soon as it can be".to_owned()),
        session_id: Some(session),
    };
    ServerMessage::ClientNotice(ClientNotice { notice })
}

/// Whether the client does not have this answer as an event yet.
fn is_new(text: &str, pending: &PendingAnswer) -> bool {
    // A newer Warren may send messages that this one does not know: the client may know them.
    let Ok(message) = decode_reply(text) else { return true };
    pending.admit_answer(&message)
}

/// Remembers where an object was made, for requests that come before its owner has announced it.
fn learn(text: &str, node: &str, membership: &Membership) {
    let session = |info: &SessionInfo| membership.learn(Kind::SESSION, &info.id.to_string(), node);
    match decode_reply(text) {
        Ok(ServerMessage::SessionCreated(made) | ServerMessage::TerminalOpened(made)) => {
            session(&made.session);
            membership.learn_session(*made.session);
        }
        Ok(ServerMessage::TeamCreated(made)) => {
            session(&made.leader_session);
            membership.learn(Kind::TEAM, &made.team.id.to_string(), node);
            membership.learn_session(*made.leader_session);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echoes::Echoes;

    #[test]
    fn a_message_of_a_newer_warren_passes_while_an_answer_is_pending() {
        let echoes = Echoes::default();
        let pending = echoes.pending();
        assert!(is_new(r#"{"type":"from_the_future"}"#, &pending));
        let known = ServerMessage::error("no");
        assert!(echoes.admit_event(&known));
        assert!(!is_new(&known.encode(), &pending), "the client has it already");
    }
}
