//! Keeps the cluster's entries of this machine's objects equal to the objects: announces changes that
//! were made here, and makes the changes of other members here.
//!
//! The workspace's own store is the truth. An entry that differs from it is written again, so no
//! change of this machine is lost on its way to the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::Duration,
};

use cluster::{Cluster, WriteError};
use protocol::workspace::{
    Project, ProjectId, Role, ServerMessage, SessionId, SessionInfo, Team, TeamId,
    client::{OfProject, UpdateProject},
};
use replica::{Entry, Key, Kind, Refused};
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        mpsc,
    },
    time::{Instant, MissedTickBehavior, interval},
};
use wire::until;
use workspace::{Event, Identity, Refusal};

use crate::{
    admission::Admission,
    moving,
    others::{is_same_but_for_activity, session_event, sessions_of},
    services::Services,
    shown_reach::ShownReach,
};

/// The shortest time between two announcements of one session. Other objects are announced at once.
const PAUSE: Duration = Duration::from_millis(100);
/// The interval of comparisons of all objects, for changes that have no event of their own.
const ROUND: Duration = Duration::from_secs(30);
/// The interval of checks whether members can be reached.
const LOOK: Duration = Duration::from_millis(500);
/// The author of a change that another member made, for the audit log.
const CLUSTER: &str = "cluster";

/// Keeps the cluster's entries of this machine's objects equal to the objects.
pub(crate) struct ObjectSync {
    cluster: Cluster,
    admission: Weak<Admission>,
    services: Arc<Services>,
    /// The objects that may differ from their entries, and when each is due.
    due: BTreeMap<Key, Instant>,
    /// When each session was written last.
    written: BTreeMap<Arc<str>, Instant>,
    teams: BTreeMap<String, Team>,
    /// The projects that this machine has, or had since its start. The entry of one that is gone is deleted.
    /// An entry of this machine whose project is not in this set means that the disk has lost the project.
    projects: BTreeSet<Arc<str>>,
    reach: Arc<ShownReach>,
}

impl ObjectSync {
    pub(crate) fn new(
        cluster: Cluster,
        admission: &Arc<Admission>,
        reach: Arc<ShownReach>,
    ) -> Self {
        let stored = cluster.own_at_start().iter().filter(|key| key.kind == Kind::PROJECT);
        Self {
            projects: stored.map(|key| Arc::clone(&key.id)).collect(),
            cluster,
            services: Arc::clone(&admission.services),
            admission: Arc::downgrade(admission),
            due: BTreeMap::new(),
            written: BTreeMap::new(),
            teams: BTreeMap::new(),
            reach,
        }
    }

    /// Runs until the workspace ends.
    pub(crate) async fn run(
        mut self,
        mut events: Receiver<Event>,
        mut elsewhere: mpsc::Receiver<Key>,
    ) {
        let Some(closing) = self.admission.upgrade().map(|whole| whole.closing.clone()) else {
            return;
        };
        let (mut rounds, mut looks) = (interval(ROUND), interval(LOOK));
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = self.due.values().min().copied();
            tokio::select! {
                () = closing.cancelled() => return,
                event = events.recv() => match event {
                    Ok(event) => self.event(&event.message),
                    Err(RecvError::Lagged(_)) => rounds.reset_immediately(),
                    Err(RecvError::Closed) => return,
                },
                Some(changed) = elsewhere.recv() => self.soon(changed),
                _ = rounds.tick() => self.round().await,
                _ = looks.tick() => self.look(),
                () = until(next) => self.write_due().await,
            }
        }
    }

    fn event(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::SessionStatusChanged(of) if self.is_own(of.session.id) => {
                self.changed(Kind::SESSION, &of.session.id);
            }
            ServerMessage::SessionKilled(of) => self.changed(Kind::SESSION, &of.session_id),
            ServerMessage::ProjectSaved(of) => self.changed(Kind::PROJECT, &of.project.id),
            ServerMessage::ProjectRemoved(of) => self.changed(Kind::PROJECT, &of.project_id),
            ServerMessage::TeamUpdated(of) if self.is_own(of.team.leader_session_id) => {
                self.teams.insert(of.team.id.to_string(), of.team.clone());
                self.changed(Kind::TEAM, &of.team.id);
            }
            ServerMessage::TeamDeleted(of) => {
                self.teams.remove(&of.team_id.to_string());
                self.changed(Kind::TEAM, &of.team_id);
                self.end_seats(of.team_id);
            }
            _ => {}
        }
    }

    fn is_own(&self, session: SessionId) -> bool {
        self.services.sessions.has(session)
    }

    fn changed(&mut self, kind: Kind, id: &impl ToString) {
        self.soon(Key { kind, id: id.to_string().into() });
    }

    fn soon(&mut self, object: Key) {
        let now = Instant::now();
        let earliest = self.written.get(&object.id).map_or(now, |at| (*at + PAUSE).max(now));
        // The earlier time stays. Otherwise constant changes would delay the write for ever.
        self.due.entry(object).or_insert(earliest);
    }

    /// Makes all objects and all entries of this member due.
    async fn round(&mut self) {
        let listed = self.services.teams.desk(&cluster_itself()).list().await;
        if let Ok(Some(ServerMessage::TeamList(list))) = listed {
            let own = list.teams.into_iter().map(|team| (team.id.to_string(), team));
            self.teams = own.collect();
        }
        for info in self.services.sessions.list(true) {
            self.changed(Kind::SESSION, &info.id);
        }
        for project in self.services.projects.list() {
            self.changed(Kind::PROJECT, &project.id);
        }
        let teams: Vec<String> = self.teams.keys().cloned().collect();
        teams.iter().for_each(|id| self.changed(Kind::TEAM, id));
        for kind in [Kind::SESSION, Kind::PROJECT, Kind::TEAM] {
            for (key, entry) in self.cluster.directory().list(kind) {
                if entry.owner.as_str() == self.cluster.node_id() {
                    self.soon(Key { kind, id: key.id });
                }
            }
        }
        for team in self.services.teams.seated().await {
            self.end_seats(team);
        }
        let known = |id: &Arc<str>| id.parse().is_ok_and(|id| self.services.sessions.has(id));
        self.written.retain(|id, _| known(id));
    }

    /// Ends the sessions here that work for a team of another member, if that team was deleted. This machine
    /// checks for itself, because the team's owner may be out of reach.
    fn end_seats(&self, team: TeamId) {
        let (cluster, teams) = (self.cluster.clone(), self.services.teams.clone());
        tokio::spawn(async move {
            if cluster.is_deleted(Kind::TEAM, &team.to_string()).await {
                teams.end_seats(team).await;
            }
        });
    }

    async fn write_due(&mut self) {
        let now = Instant::now();
        let due = self.due.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Key> = due.map(|(object, _)| object.clone()).collect();
        for object in due {
            // Removed before the write, so that a change during the write becomes due.
            self.due.remove(&object);
            let entry = self.cluster.directory().get(object.kind, &object.id);
            let entry = entry.filter(|entry| entry.owner.as_str() == self.cluster.node_id());
            let written = match object.kind {
                Kind::SESSION => self.session(&object.id, entry.as_deref()).await,
                Kind::PROJECT => self.project(&object.id, entry.as_deref()).await,
                _ => self.team(&object.id, entry.as_deref()).await,
            };
            if let Err(error) = written {
                let (error, id) = (base::error::chain(&error), &object.id);
                tracing::warn!(error, %id, "the other members cannot be told of a change");
            }
        }
    }

    async fn session(&mut self, id: &Arc<str>, entry: Option<&Entry>) -> Result<(), WriteError> {
        let session = id.parse().ok();
        let info = session.and_then(|id| self.services.sessions.info(id).ok());
        // The entry of a session that moves here is this member's before the session runs here. It
        // must not be deleted.
        if let Some(coming) = session.filter(|id| self.services.moves.is_coming(*id)) {
            moving::look(&self.services, &self.cluster, coming);
            return Ok(());
        }
        let Some(info) = info else { return self.gone(Kind::SESSION, id, entry).await };
        let info = SessionInfo { attached_clients: 0, ..info };
        let in_cluster: Option<SessionInfo> =
            entry.and_then(|entry| serde_json::from_str(&entry.value).ok());
        // If only the time of the last activity differs, it is written once in a round.
        let is_current = in_cluster.is_some_and(|in_cluster| {
            let quiet = info.last_active.duration_since(in_cluster.last_active);
            is_same_but_for_activity(&in_cluster, &info) && quiet.unsigned_abs() < ROUND
        });
        if is_current {
            return Ok(());
        }
        self.written.insert(Arc::clone(id), Instant::now());
        self.cluster.write(Kind::SESSION, id, text(&info)).await
    }

    async fn project(&mut self, id: &Arc<str>, entry: Option<&Entry>) -> Result<(), WriteError> {
        let Ok(project_id) = id.parse::<ProjectId>() else { return Ok(()) };
        let in_cluster: Option<Project> =
            entry.and_then(|entry| serde_json::from_str(&entry.value).ok());
        match (self.services.projects.get(project_id), in_cluster) {
            (Ok(own), Some(in_cluster))
                if in_cluster.updated_at > own.updated_at && self.wrote(entry) =>
            {
                self.take_back(in_cluster).await;
                Ok(())
            }
            (Ok(own), in_cluster) => {
                self.projects.insert(Arc::clone(id));
                self.own_project(own, in_cluster).await
            }
            (Err(_), Some(in_cluster)) if !self.projects.contains(id) => {
                self.take_back(in_cluster).await;
                Ok(())
            }
            (Err(_), _) => {
                self.gone(Kind::PROJECT, id, entry).await?;
                self.projects.remove(id);
                Ok(())
            }
        }
    }

    fn wrote(&self, entry: Option<&Entry>) -> bool {
        let writer = entry.and_then(Entry::writer);
        writer.is_some_and(|writer| writer.as_str() == self.cluster.node_id())
    }

    /// Restores a version of a project that this machine wrote, and that its disk has lost.
    async fn take_back(&self, project: Project) {
        log(self.services.projects.take_back(CLUSTER, project).await);
    }

    /// Writes the entry of a project. If another member has renamed or deleted the project, the newer
    /// change counts.
    async fn own_project(
        &self,
        own: Project,
        in_cluster: Option<Project>,
    ) -> Result<(), WriteError> {
        let project_id = own.id;
        match in_cluster {
            Some(in_cluster) if in_cluster == own => Ok(()),
            Some(in_cluster) if in_cluster.updated_at > own.updated_at => {
                let (working_dir, run_as_user, env) = (None, None, None);
                let name = Some(in_cluster.name);
                let update = UpdateProject { project_id, name, working_dir, run_as_user, env };
                log(self.services.projects.update(CLUSTER, update).await);
                Ok(())
            }
            _ => match self.cluster.write(Kind::PROJECT, &project_id.to_string(), text(&own)).await
            {
                Err(WriteError::Refused(Refused::Deleted)) => {
                    let delete = OfProject { project_id };
                    log(self.services.projects.delete(CLUSTER, delete).await);
                    Ok(())
                }
                written => written,
            },
        }
    }

    async fn team(&self, id: &str, entry: Option<&Entry>) -> Result<(), WriteError> {
        let Some(team) = self.teams.get(id) else {
            return self.gone(Kind::TEAM, id, entry).await;
        };
        let value = text(team);
        if entry.is_some_and(|entry| *entry.value == *value) {
            return Ok(());
        }
        match self.cluster.write(Kind::TEAM, id, value).await {
            // Another member deleted it.
            Err(WriteError::Refused(Refused::Deleted)) => {
                log(self.services.teams.desk(&cluster_itself()).delete(team.id).await);
                Ok(())
            }
            written => written,
        }
    }

    async fn gone(&self, kind: Kind, id: &str, entry: Option<&Entry>) -> Result<(), WriteError> {
        match entry {
            Some(_) => self.cluster.delete(kind, id).await,
            None => Ok(()),
        }
    }

    /// Shows sessions as out of reach, or as reachable again.
    fn look(&self) {
        let members = self.cluster.members().into_iter();
        let now: BTreeSet<String> =
            members.filter(|member| member.reachable).map(|member| member.member.node_id).collect();
        for node in self.reach.update(&now) {
            for info in sessions_of(&self.cluster, &node, now.contains(&node)) {
                self.services.events.send(session_event(info));
            }
        }
    }
}

/// The identity that changes teams on behalf of another member.
fn cluster_itself() -> Identity {
    Identity { who: CLUSTER.to_owned(), role: Role::Admin, member: None }
}

/// Logs that a change of another member failed here. The entry keeps the change only until this
/// member writes the entry again.
fn log<T>(result: Result<T, Refusal>) {
    if let Err(refusal) = result {
        tracing::warn!(%refusal, "another member's change cannot be made here");
    }
}

fn text(object: &impl serde::Serialize) -> String {
    // Objects of the protocol are always JSON.
    serde_json::to_string(object).unwrap_or_default()
}
