//! The workspace, as teams see it.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use protocol::workspace::{ProjectId, SessionId, SessionInfo, SessionMode, SessionStatus, TeamId};
use workspace::{
    Audit, Event, Events, Facts, NewSession, Projects, Receipt, Refusal, Sessions, WeakSessions,
    Workspace,
};

use crate::{core::now, outposts::Outposts, team_host::TeamHost};

/// The most sessions that are ended at the same time.
const ENDED_AT_ONCE: usize = 16;

/// The workspace itself. It holds the sessions weakly, since the task of the teams owns such a value and
/// must not keep the sessions of a workspace that is dropped.
#[derive(Clone)]
pub(crate) struct WorkspaceHost {
    sessions: WeakSessions,
    events: Events,
    audit: Arc<Audit>,
    projects: Arc<Projects>,
    outposts: Arc<Outposts>,
}

impl WorkspaceHost {
    pub(crate) fn new(workspace: &Workspace, outposts: &Arc<Outposts>) -> Self {
        Self {
            sessions: workspace.sessions.downgrade(),
            events: workspace.events.clone(),
            audit: Arc::clone(&workspace.audit),
            projects: Arc::clone(&workspace.projects),
            outposts: Arc::clone(outposts),
        }
    }

    fn sessions(&self) -> Result<Sessions, Refusal> {
        let gone = || Refusal::Failed("the workspace is shutting down".to_owned());
        self.sessions.upgrade().ok_or_else(gone)
    }

    /// Ends the sessions of teams that no longer exist: the daemon died before it had ended them.
    /// Sessions with a seat in the outpost stay, since they work for teams of other members.
    pub(crate) fn end_orphans(&self, teams: &[TeamId], seats: &[SessionId]) {
        let Ok(sessions) = self.sessions() else { return };
        let all = sessions.list(true).into_iter().filter(|session| !seats.contains(&session.id));
        let orphans = all.filter(|session| session.team_id.is_some_and(|id| !teams.contains(&id)));
        let orphans: Vec<_> = orphans.map(|session| session.id).collect();
        if !orphans.is_empty() {
            // The daemon's start does not wait for this.
            tokio::spawn(self.kill(orphans));
        }
    }
}

impl TeamHost for WorkspaceHost {
    fn tell(&self, event: Event) {
        self.events.send(event);
    }

    fn deliver(&self, session: SessionId, text: String, receipt: Receipt) -> Result<(), Refusal> {
        self.sessions()?.deliver(session, text, receipt)
    }

    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<SessionInfo, Refusal>> {
        let sessions = self.sessions();
        async move { sessions?.create(new).await }.boxed()
    }

    fn create_as(
        &self,
        id: SessionId,
        new: NewSession,
    ) -> BoxFuture<'static, Result<SessionInfo, Refusal>> {
        let sessions = self.sessions();
        async move { sessions?.create_as(id, new).await }.boxed()
    }

    fn info(&self, session: SessionId) -> Option<SessionInfo> {
        self.sessions().ok()?.info(session).ok()
    }

    fn has_project(&self, project: ProjectId) -> bool {
        self.projects.get(project).is_ok()
    }

    fn kill(&self, ids: Vec<SessionId>) -> BoxFuture<'static, ()> {
        let sessions = self.sessions();
        async move {
            let Ok(sessions) = sessions else { return };
            let all = stream::iter(ids);
            all.for_each_concurrent(ENDED_AT_ONCE, |id| kill(&sessions, id)).await;
        }
        .boxed()
    }

    fn facts(&self, session: SessionId) -> Option<Facts> {
        self.sessions().ok()?.facts(session).ok()
    }

    fn name(&self, session: SessionId) -> Option<String> {
        match self.facts(session) {
            Some(facts) => facts.name,
            None => self.outposts.session(session)?.name,
        }
    }

    fn is_known(&self, session: SessionId) -> bool {
        self.facts(session).is_some() || self.outposts.session(session).is_some()
    }

    fn is_idle(&self, session: SessionId) -> bool {
        let info = self.sessions().and_then(|sessions| sessions.info(session));
        info.is_ok_and(|info| info.mode == SessionMode::Sdk && info.status == SessionStatus::Idle)
    }

    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        self.sessions()?.check_args(args, administrator)
    }

    fn note(&self, who: &str, what: &'static str, target: &str) {
        self.audit.note(who, what, target, "done");
    }

    fn note_typing(&self, who: &str, session: SessionId) {
        self.audit.typed(who, session, now().now);
    }
}

async fn kill(sessions: &Sessions, session: SessionId) {
    match sessions.kill(session).await {
        // Another caller has killed it meanwhile.
        Ok(()) | Err(Refusal::UnknownSession(_)) => {}
        Err(refusal) => tracing::error!(%session, %refusal, "a session of a team does not end"),
    }
}
