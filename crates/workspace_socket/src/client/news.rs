//! Events for all clients, sent to one client.

use futures_util::FutureExt as _;
use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::{ListSessions, OfTeam},
};
use tokio::sync::broadcast::error::RecvError;
use workspace::Event;

use super::{Client, End};
use crate::{
    answers::asker::Asker,
    lanes::{Job, Lane},
    policy::Policy,
    serving::send,
    table::{self, Work},
};

impl Client {
    pub(super) fn event(&mut self, event: Result<Event, RecvError>) -> Result<(), End> {
        match event {
            Ok(event) => self.told(&event),
            Err(RecvError::Lagged(_)) => {
                self.has_missed = true;
                self.make_up();
                Ok(())
            }
            Err(RecvError::Closed) => Err(End::Goodbye(1001, "the server is stopping")),
        }
    }

    fn told(&mut self, event: &Event) -> Result<(), End> {
        if !self.hears(event) || !self.serving.echoes.admit_event(&event.message) {
            return Ok(());
        }
        self.say(&event.message)?;
        self.forget_killed(&event.message);
        match (&event.message, self.serving.asker.me.member) {
            (ServerMessage::TeamDeleted(of), Some(member)) if of.team_id == member.team => {
                Err(End::Goodbye(1000, "the team is deleted"))
            }
            _ => Ok(()),
        }
    }

    /// A session of another member is gone: there is nothing to detach from any more.
    fn forget_killed(&mut self, message: &ServerMessage) {
        if let ServerMessage::SessionKilled(of) = message
            && self.remotes.attachment().is_some_and(|attached| attached.session == of.session_id)
        {
            self.remotes.detached();
        }
    }

    fn hears(&self, event: &Event) -> bool {
        if let Some(member) = self.serving.asker.me.member {
            return event.team == Some(member.team);
        }
        event.only_viewers_of.is_none_or(|hidden| self.serving.asker.attached == Some(hidden))
    }

    /// Sends the whole state to a client that has missed events.
    pub(super) fn make_up(&mut self) {
        if !self.has_missed {
            return;
        }
        let asker = self.serving.asker.clone();
        // If the lane is full, the next tick tries again.
        self.has_missed = self.serving.lanes.put(Lane::Look, whole_state(asker)).is_err();
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
