//! The cluster as teams use it: team workers on other members, and team workers of other members here. Two
//! members talk about team workers over a line, which is a circuit.

use std::sync::Weak;

use cluster::{Caller, Circuit, Cluster, Host, Served, Service};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{SessionId, SessionInfo, limits::MAX_MESSAGE};
use replica::Kind;
use tracing::Instrument as _;
use wire::{Frame, Outbox, OutboxReader};
use workspace::Refusal;
use workspace_teams::{Line, Members};

use crate::{
    admission::Admission,
    membership::{Server, named},
    others,
};

/// The other members of a cluster.
pub(crate) struct TeamMembers(pub(crate) Cluster);

impl Members for TeamMembers {
    fn find(&self, name: &str) -> Result<Option<String>, Refusal> {
        let Server::Member(node) = named(&self.0, name)? else { return Ok(None) };
        let members = self.0.members().into_iter().map(|member| member.member);
        let is_warren =
            members.into_iter().any(|member| member.node_id == node && member.key.is_some());
        if !is_warren {
            return Err(Refusal::Invalid(format!(
                "{} is no Warren: team workers cannot be made there",
                self.0.name_of(&node)
            )));
        }
        Ok(Some(node))
    }

    fn name_of(&self, node: &str) -> String {
        self.0.name_of(node)
    }

    fn is_reachable(&self, node: &str) -> bool {
        self.0.is_reachable(node)
    }

    fn has_left<'a>(&'a self, node: &'a str) -> BoxFuture<'a, bool> {
        self.0.is_deleted(Kind::MEMBER, node).boxed()
    }

    fn open(&self, node: &str) -> Box<dyn Line> {
        Box::new(OutgoingLine(self.0.open_service(node, Service::Teams, Caller::member_itself())))
    }

    fn session(&self, session: SessionId) -> Option<SessionInfo> {
        others::session_of_member(&self.0, session)
    }
}

/// Serves the lines that other members begin.
pub(crate) struct TeamLines(pub(crate) Weak<Admission>);

impl Host for TeamLines {
    fn serve(&self, served: Served) {
        let Some(admission) = self.0.upgrade() else { return };
        let Served { from, requests, answers, done, .. } = served;
        let (teams, closing) = (admission.services.teams.clone(), admission.closing.clone());
        let span = tracing::info_span!(parent: None, "team_workers", from);
        let serving = async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = teams.serve(&from, Box::new(IncomingLine { requests, answers })) => {}
            }
            done.cancel();
        };
        admission.links.spawn(serving.instrument(span));
    }

    fn max_request(&self) -> usize {
        MAX_MESSAGE
    }
}

/// A line that began here.
struct OutgoingLine(Circuit);

impl Line for OutgoingLine {
    fn send(&self, text: String) {
        // A circuit that has ended says so when it is read.
        let _ended = self.0.send(Frame::from(text));
    }

    fn next(&mut self) -> BoxFuture<'_, Result<String, String>> {
        async {
            loop {
                let frame = self.0.next().await.map_err(|ended| ended.to_string())?;
                if let Some(text) = text(&frame) {
                    return Ok(text);
                }
            }
        }
        .boxed()
    }
}

/// A line that another member began.
struct IncomingLine {
    requests: OutboxReader,
    answers: Outbox,
}

impl Line for IncomingLine {
    fn send(&self, text: String) {
        let _ended = self.answers.push(Frame::from(text));
    }

    fn next(&mut self) -> BoxFuture<'_, Result<String, String>> {
        async {
            while let Some(frame) = self.requests.next().await {
                if let Some(text) = text(&frame) {
                    return Ok(text);
                }
            }
            Err("the other end has closed it".to_owned())
        }
        .boxed()
    }
}

/// The text of a frame. A line carries only text; anything else is skipped.
fn text(frame: &Frame) -> Option<String> {
    match frame {
        Frame::Text(text) => Some(text.as_str().to_owned()),
        Frame::Binary(_) => None,
    }
}
