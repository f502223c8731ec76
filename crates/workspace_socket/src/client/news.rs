//! Events for all clients, sent to one client.

use std::sync::Arc;

use futures_util::FutureExt as _;
use protocol::workspace::{
    ClientMessage, ServerMessage, SessionId,
    client::{Attach, ListSessions, OfTeam},
};
use tokio::sync::broadcast::error::RecvError;
use workspace::Event;

use super::{Client, End};
use crate::{
    answers::asker::Asker,
    lanes::{Job, Lane},
    membership::Server,
    policy::{Policy, Target},
    request_server::send,
    table::{self, Work},
};

impl Client {
    pub(super) async fn event(&mut self, event: Result<Event, RecvError>) -> Result<(), End> {
        match event {
            Ok(event) => {
                self.pass_on(&event)?;
                self.follow_moved(&event.message).await
            }
            Err(RecvError::Lagged(_)) => {
                self.has_missed = true;
                self.make_up();
                Ok(())
            }
            Err(RecvError::Closed) => Err(End::Goodbye(1001, "the server is stopping")),
        }
    }

    fn pass_on(&mut self, event: &Event) -> Result<(), End> {
        let is_heard = self.hears(event);
        // Also if the client knows it already, as the answer to its own request.
        self.forget_killed(&event.message);
        if !is_heard || !self.server.echoes.admit_event(&event.message) {
            return Ok(());
        }
        self.say(&event.message)?;
        match (&event.message, self.server.asker.me.member) {
            (ServerMessage::TeamDeleted(of), Some(member)) if of.team_id == member.team => {
                Err(End::Goodbye(1000, "the team is deleted"))
            }
            _ => Ok(()),
        }
    }

    /// Follows the attached session if it may have moved to another member.
    async fn follow_moved(&mut self, message: &ServerMessage) -> Result<(), End> {
        match message {
            ServerMessage::SessionStatusChanged(of) if self.sees(of.session.id) => {
                self.follow_attached().await
            }
            _ => Ok(()),
        }
    }

    fn sees(&self, session: SessionId) -> bool {
        let remote = self.remotes.attachment().map(|attached| attached.session);
        self.server.asker.attached == Some(session) || remote == Some(session)
    }

    /// Attaches the client where its session runs now, after the last output that it got.
    pub(super) async fn follow_attached(&mut self) -> Result<(), End> {
        let services = Arc::clone(&self.admission.services);
        let there = self.remotes.attachment().map(|it| (it.node.clone(), it.session));
        let Some(id) = there.as_ref().map(|(_, id)| *id).or(self.server.asker.attached) else {
            return Ok(());
        };
        let now = services.membership.server_of(&Target::Session(id), &services);
        match (there, now) {
            (None, Ok(Server::Member(node))) => {
                // The number is final once the stream has ended.
                let seq = self.server.let_go().await;
                self.remotes.follow(&node, id, seq);
            }
            (Some((before, _)), Ok(Server::Member(node))) if before != node => {
                let seq = self.remotes.seq();
                self.remotes.follow(&node, id, seq);
            }
            (Some(_), Ok(Server::Here)) => {
                let after_seq = self.remotes.seq();
                self.remotes.let_go();
                let attach = Attach { session_id: id, after_seq };
                self.server.attach_again(&attach).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the attachment to a session of another member that was killed.
    fn forget_killed(&mut self, message: &ServerMessage) {
        if let ServerMessage::SessionKilled(of) = message
            && self.remotes.attachment().is_some_and(|attached| attached.session == of.session_id)
        {
            self.remotes.detached();
        }
    }

    fn hears(&self, event: &Event) -> bool {
        if let Some(member) = self.server.asker.me.member {
            return event.team == Some(member.team);
        }
        let Some(hidden) = event.only_viewers_of else { return true };
        // The member that runs a hidden session sends all of its events to the viewers here, except its end.
        let is_end = matches!(event.message, ServerMessage::SessionKilled(_));
        self.server.asker.attached == Some(hidden) || (is_end && self.sees(hidden))
    }

    /// Sends the whole state to a client that has missed events.
    pub(super) fn make_up(&mut self) {
        if !self.has_missed {
            return;
        }
        let asker = self.server.asker.clone();
        // If the lane is full, the next tick tries again.
        self.has_missed = self.server.lanes.put(Lane::Look, whole_state(asker)).is_err();
    }
}

fn whole_state(asker: Asker) -> Job {
    let questions = match asker.me.member {
        Some(member) => vec![ClientMessage::GetTeam(OfTeam { team_id: member.team })],
        None => vec![
            ClientMessage::ListSessions(ListSessions::default()),
            ClientMessage::ListProjects,
            ClientMessage::ListTeams,
        ],
    };
    async move {
        for question in questions {
            let memory = Policy::of(&question).memory;
            let Ok(share) = asker.shares.of(memory, &asker.outbox).await else { return };
            let Work::Later(_, answering) = table::serve(&asker, question) else { continue };
            if let Ok(Some(answer)) = answering.await {
                send(&asker.outbox, answer, share).await;
            }
        }
    }
    .boxed()
}
