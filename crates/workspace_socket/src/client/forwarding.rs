//! Requests of a client that other members of the cluster serve.

use std::{sync::Arc, time::Duration};

use protocol::workspace::{
    ClientMessage, Notice, NoticeLevel, ServerMessage,
    client::{ClientNotice, connection::CLUSTER_OWNER_LOOKUP},
};
use tokio::time::{Instant, sleep};
use wire::{Frame, Utf8Bytes};
use workspace::Refusal;

use super::{Client, End};
use crate::{
    allowed::allowed,
    membership::Server,
    policy::{Audience, Policy, Target},
    remotes::FromMember,
};

/// How long a request waits for an unknown object, and the interval of checks.
const LOOKUP: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

impl Client {
    /// Sends a request to the member that serves it. Returns `false` if this machine serves it.
    pub(super) async fn forward(
        &mut self,
        message: &ClientMessage,
        text: Utf8Bytes,
    ) -> Result<bool, End> {
        let policy = Policy::of(message);
        if matches!(message, ClientMessage::Detach) {
            return self.detach_from_member(text, policy);
        }
        let target = self.target(message, &policy);
        if target == Target::Here {
            return Ok(false);
        }
        let node = match self.server_of(&target).await {
            Ok(Server::Member(node)) => node,
            Ok(Server::Here | Server::Unknown) => return Ok(false),
            Err(refusal) => {
                self.say(&policy.family.refused(&refusal))?;
                return Ok(true);
            }
        };
        // Checked here, because the other member trusts this one about the client's role.
        if let Err(refusal) = allowed(&self.server.asker.me, message.kind(), &policy) {
            self.say(&policy.family.refused(&refusal))?;
            return Ok(true);
        }
        if let ClientMessage::Attach(attach) = message {
            // First, so that no output of the earlier session follows the answer.
            self.server.let_go().await;
            self.remotes.attach(&node, attach.session_id);
        }
        self.send_to(&node, text, policy, message)?;
        Ok(true)
    }

    /// The object whose member serves a request. An answer to an agent that names no session is for
    /// the session that the client sees.
    fn target(&self, message: &ClientMessage, policy: &Policy) -> Target {
        match (message, self.remotes.attachment()) {
            (ClientMessage::PermissionResponse(of), Some(attached)) if of.session_id.is_none() => {
                Target::Session(attached.session)
            }
            _ => policy.target.clone(),
        }
    }

    /// Passes messages of other members to the client.
    pub(super) fn hear_member(&mut self, heard: FromMember) -> Result<(), End> {
        match heard {
            FromMember::Frame(frame) => Ok(self.push(frame)?),
            FromMember::Lost(answers) => answers.iter().try_for_each(|answer| self.say(answer)),
        }
    }

    pub(super) fn attach_again(&mut self) -> Result<(), End> {
        let services = Arc::clone(&self.admission.services);
        if let Some(cluster) = services.membership.cluster() {
            self.remotes.attach_again(&cluster, &self.server.asker.me);
        }
        Ok(())
    }

    /// The member that serves requests about this object. Waits for an unknown session, which another
    /// member may have made a moment ago.
    async fn server_of(&mut self, target: &Target) -> Result<Server, Refusal> {
        let services = Arc::clone(&self.admission.services);
        let found = services.membership.server_of(target, &services)?;
        let is_session = matches!(target, Target::Session(_));
        if found != Server::Unknown || !is_session || !services.membership.has_others() {
            return Ok(found);
        }
        let _client_gone = self.say(&looking_up(target));
        let until = Instant::now() + LOOKUP;
        let looking = async {
            loop {
                sleep(LOOK).await;
                let found = services.membership.server_of(target, &services)?;
                if found != Server::Unknown || Instant::now() >= until {
                    return Ok(found);
                }
            }
        };
        self.meanwhile(looking).await
    }

    fn detach_from_member(&mut self, text: Utf8Bytes, policy: Policy) -> Result<bool, End> {
        let Some(attached) = self.remotes.attachment() else { return Ok(false) };
        let node = attached.node.clone();
        self.send_to(&node, text, policy, &ClientMessage::Detach)?;
        self.remotes.detached();
        Ok(true)
    }

    fn send_to(
        &mut self,
        node: &str,
        text: Utf8Bytes,
        policy: Policy,
        message: &ClientMessage,
    ) -> Result<(), End> {
        // The end of a session is an event, too.
        let is_event = policy.audience == Audience::Everyone
            || matches!(message, ClientMessage::KillSession(_));
        let pending = is_event.then(|| self.server.echoes.pending());
        let services = Arc::clone(&self.admission.services);
        let Some(cluster) = services.membership.cluster() else { return Ok(()) };
        let me = &self.server.asker.me;
        let sent = self.remotes.send(&cluster, me, node, text, policy.family.clone(), pending);
        match sent {
            Ok(()) => Ok(()),
            Err(refusal) => self.say(&policy.family.refused(&refusal)),
        }
    }

    fn push(&self, frame: Frame) -> Result<(), wire::OutboxClosed> {
        self.server.asker.outbox.push(frame)
    }
}

fn looking_up(target: &Target) -> ServerMessage {
    let session_id = match target {
        Target::Session(id) => Some(*id),
        _ => None,
    };
    let notice = Notice {
        level: NoticeLevel::Info,
        code: CLUSTER_OWNER_LOOKUP.to_owned(),
        message: "the machine that runs the session is being looked for".to_owned(),
        detail: None,
        session_id,
    };
    ServerMessage::ClientNotice(ClientNotice { notice })
}
