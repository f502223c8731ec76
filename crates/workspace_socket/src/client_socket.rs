//! The clients' socket, as the server sees it.

use std::{
    path::Path,
    sync::{Arc, Weak, atomic::Ordering},
};

use access::LocalRules;
use base::{ClientAddress, Live};
use cluster::{Cluster, Service};
use files::{Git, write::TemporaryFiles};
use http::{Request, Response};
use tokio::{sync::mpsc, task};
use tokio_util::task::AbortOnDropHandle;
use workspace::Workspace;
use workspace_teams::TeamRequests;

use crate::{
    accept,
    admission::Admission,
    guest::Guests,
    membership::Memberships,
    moving::{self, MoveHost},
    node_id::node_id,
    object_sync::ObjectSync,
    others::OtherObjects,
    project_files::ProjectFiles,
    services::{Node, Services, WatchBudget},
    shown_reach::ShownReach,
    team_members::{TeamLines, TeamMembers},
};

/// The name of the file that lists the files being written.
const UNFINISHED: &str = "unfinished";

/// The most changes to wait that other members have made to this member's objects.
const CHANGES: usize = 1024;

/// The socket by which clients reach the workspace. Clones share its connections.
#[derive(Clone)]
pub struct ClientSocket(pub(crate) Arc<Admission>);

impl ClientSocket {
    /// A socket without connections. `local` says which web pages may connect. Blocks: it reads small
    /// files in the workspace's directory.
    pub fn new(workspace: &Workspace, teams: TeamRequests, local: Live<LocalRules>) -> Self {
        let Workspace { settings, keys, projects, .. } = workspace;
        let services = Services {
            sessions: workspace.sessions.clone(),
            projects: Arc::clone(projects),
            teams,
            member_tokens: Arc::clone(&workspace.member_tokens),
            audit: Arc::clone(&workspace.audit),
            events: workspace.events.clone(),
            files: Arc::new(ProjectFiles::new(
                Arc::clone(projects),
                temporary_files(&settings.dir),
            )),
            git: Git::default(),
            watches: WatchBudget::default(),
            node: Node { id: node_id(&settings.dir), gateway: workspace.gateway.clone() },
            membership: Arc::default(),
            moves: Arc::default(),
            shown_node: workspace.node.clone(),
        };
        Self(Arc::new(Admission::new(settings, keys, local, services)))
    }

    /// Answers a request for an upgrade with `101`, and serves the connection in a task of its own.
    /// Pages of other origins and improper upgrades are refused.
    pub fn connect<B>(&self, request: &mut Request<B>, from: ClientAddress) -> Response<String> {
        accept::connect(&self.0, request, from)
    }

    /// Makes this machine a member of a cluster: its objects are announced to the other members, theirs are
    /// shown here, and each member serves the clients of the others.
    pub fn join(&self, cluster: &Cluster) {
        let services = &self.0.services;
        let (sender, elsewhere) = mpsc::channel(CHANGES);
        let reach = Arc::<ShownReach>::default();
        services.shown_node.set(Some(cluster.node_id().to_owned()));
        let own = ObjectSync::new(cluster.clone(), &self.0, Arc::clone(&reach));
        let events = services.events.subscribe();
        let (moved, member) = (Arc::clone(services), cluster.clone());
        let own = tokio::spawn(async move {
            // Before any announcement: a session that has left must not be announced as this machine's.
            moving::restore(&moved, &member).await;
            own.run(events, elsewhere).await;
        });
        moving::begin(services, cluster, self.0.closing.clone());
        services.membership.join(cluster.clone(), AbortOnDropHandle::new(own));
        let others = OtherObjects {
            node: cluster.node_id().to_owned(),
            admission: Arc::downgrade(&self.0),
            reach,
            events: services.events.clone(),
            elsewhere: sender,
        };
        let admission = || Arc::downgrade(&self.0);
        cluster.watch(Arc::new(others));
        cluster.serve(Service::Workspace, Arc::new(Guests(admission())));
        cluster.serve(Service::Teams, Arc::new(TeamLines(admission())));
        cluster.serve(Service::Moves, Arc::new(MoveHost(admission())));
        let (teams, members) = (services.teams.clone(), Arc::new(TeamMembers(cluster.clone())));
        tokio::spawn(async move { teams.join(members).await });
    }

    /// Ends the membership on this side: nothing more is announced to the other members, and this machine's
    /// objects are shown without its node id.
    pub fn leave(&self) {
        let services = &self.0.services;
        services.teams.leave();
        services.moves.leave();
        services.membership.leave();
        services.shown_node.set(None);
    }

    /// Sets the part that begins and ends memberships when clients ask for it. Called once.
    pub fn set_memberships(&self, memberships: Weak<dyn Memberships>) {
        self.0.services.membership.set_memberships(memberships);
    }

    /// The number of authenticated connections.
    pub fn clients(&self) -> usize {
        self.0.connected.load(Ordering::Relaxed)
    }

    /// Closes all connections, and accepts no new ones. Waits a few seconds at most for clients that
    /// have to close their end.
    pub async fn close(&self) {
        accept::close(&self.0).await;
    }
}

/// The list of files that are being written. Files left behind by an earlier process are removed in
/// the background, because some directories may lie on machines that are gone.
fn temporary_files(dir: &Path) -> Option<Arc<TemporaryFiles>> {
    let opened = TemporaryFiles::open(&dir.join(UNFINISHED));
    let opened = opened.inspect_err(|error| {
        tracing::warn!(%error, "files that are being written cannot be noted: a server that is \
            killed leaves them behind");
    });
    let (temporary_files, left) = opened.ok()?;
    let temporary_files = Arc::new(temporary_files);
    if !left.is_empty() {
        let list = Arc::clone(&temporary_files);
        drop(task::spawn_blocking(move || {
            let removed = list.remove(left);
            tracing::info!(removed, "files that were being written when the server was killed");
        }));
    }
    Some(temporary_files)
}
