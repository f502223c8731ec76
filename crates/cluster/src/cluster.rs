//! This machine as a member of a cluster: the whole crate's interface.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base::{ClientAddress, NodeId};
use bytes::Bytes;
use http::{Request, Response};
use replica::{Change, Config as ReplicaConfig, Incarnation, Key, Kind};
use seal::Identity;
use store::WorkspaceStore;
use tokio::{
    sync::{Notify, Semaphore},
    task::{self, AbortHandle},
};

use crate::{
    barred::Barred,
    carried::{self, Carrying, MeshWay, Through},
    circuit::{Caller, Circuit, Circuits, Host, Service},
    config::Config,
    directory::{Directory, Watcher},
    driver::{Driver, WriteError},
    error::ClusterError,
    facts::Facts,
    handover,
    invite::{self, Invited, Invites, JoinError, OpenInvite},
    link::{
        accept,
        dial::{self, peer_url},
    },
    links::Links,
    member::Member,
    notices::Notices,
    parting,
    plain::{
        link::MOST_STRANGERS,
        outbound::{self, Hops},
    },
    settings::Settings,
    shared::Shared,
    strangers::Strangers,
    this_member::ThisMember,
    tokens::{self, Tokens},
};

/// The parts that a member needs.
pub struct Parts {
    /// The id of this machine.
    pub node_id: String,
    /// The key of this machine.
    pub identity: Identity,
    /// The store of facts.
    pub store: Arc<dyn WorkspaceStore>,
}

/// This machine as a member of a cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Whole>);

struct Whole {
    shared: Arc<Shared>,
    own_at_start: BTreeSet<Key>,
    tasks: [AbortHandle; 3],
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.close();
    }
}

impl Whole {
    fn close(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.shared.is_closed.store(true, Ordering::Relaxed);
        self.shared.links.close();
        self.shared.plain.close();
    }
}

/// Another member, as this one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its description of itself.
    pub member: Member,
    /// Whether a link leads to it, and it gives signs of life.
    pub reachable: bool,
    /// The first carrier of the link to it. `None` if the link is a direct one.
    pub through: Option<Through>,
}

impl Cluster {
    /// Starts the member: loads the objects, and begins to dial.
    ///
    /// # Errors
    /// [`ClusterError`] if what is stored cannot be used.
    pub async fn start(settings: Settings, parts: Parts) -> Result<Self, ClusterError> {
        let facts = Facts::new(parts.store);
        let config = load(&settings, &facts).await?;
        let this = ThisMember::new(
            parts.node_id,
            parts.identity,
            config.name.clone(),
            settings.addresses.clone(),
        );
        let (directory, notices) = (Arc::<Directory>::default(), Notices::default());
        let replica = ReplicaConfig {
            tombstone_age: settings.tombstone_age,
            ..ReplicaConfig::new(this.node_id.as_str().into())
        };
        let incarnation = Incarnation(this.incarnation);
        let driver = Driver::start(
            replica,
            incarnation,
            facts.clone(),
            Arc::clone(&directory),
            notices.clone(),
        )
        .await?;
        let own_at_start = directory.of_owner(&this.node_id);
        handover::expect_staged(&driver, &facts).await?;
        let circuits = Arc::new(Circuits::new(settings.patience));
        let carrying = Arc::new(Carrying::new(this.node_id.clone()));
        let barred = Arc::new(Barred::load(&facts).await?);
        let (tokens, heard) = Tokens::new();
        let links = Links::new(
            this.node_id.clone(),
            settings.heartbeat,
            driver.clone(),
            Arc::clone(&circuits),
            Arc::clone(&carrying),
            Arc::clone(&barred),
            tokens.heard(),
        );
        let invites = Invites::load(&facts).await?;
        let shared = Arc::new(Shared {
            invites,
            barred,
            tokens,
            this,
            directory,
            links: Arc::new(links),
            carrying,
            plain: Arc::default(),
            followed: tokio::sync::Mutex::default(),
            introducing: tokio::sync::Mutex::default(),
            plain_strangers: Arc::new(Semaphore::new(MOST_STRANGERS)),
            strangers: Strangers::default(),
            targets_changed: Notify::new(),
            is_closed: AtomicBool::new(false),
            driver,
            circuits,
            notices,
            facts,
            settings,
            config: Mutex::new(config),
            reconfiguring: tokio::sync::Mutex::default(),
        });
        tokens::start(&shared).await?;
        shared.introduce().await?;
        let onward = Arc::downgrade(&shared);
        shared.circuits.set_onward(Box::new(move |to, served| match onward.upgrade() {
            Some(shared) => outbound::serve(&shared, to, served),
            None => served.done.cancel(),
        }));
        carried::dial::answer_others(&shared);
        let dialling = tokio::spawn(dial::run(Arc::clone(&shared))).abort_handle();
        let linking = tokio::spawn(carried::dial::run(Arc::clone(&shared))).abort_handle();
        let telling = tokio::spawn(tokens::run(Arc::clone(&shared), heard)).abort_handle();
        let tasks = [dialling, linking, telling];
        Ok(Self(Arc::new(Whole { shared, own_at_start, tasks })))
    }

    /// Answers a request for an upgrade at `/peer`, and runs the link in a task of its own.
    pub fn accept<B>(&self, request: &mut Request<B>, from: ClientAddress) -> Response<String> {
        accept::accept(&self.0.shared, request, from)
    }

    /// Ends all links, and takes no new ones.
    pub fn shut_down(&self) {
        self.0.close();
    }

    /// The id of this machine.
    pub fn node_id(&self) -> &str {
        &self.0.shared.this.node_id
    }

    /// The objects of all members.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.0.shared.directory
    }

    /// The objects of this machine that were stored here at the start, before any other member was
    /// linked.
    pub fn own_at_start(&self) -> &BTreeSet<Key> {
        &self.0.own_at_start
    }

    /// Sets what serves circuits of other members to this service.
    pub fn serve(&self, service: Service, host: Arc<dyn Host>) {
        self.0.shared.circuits.set_host(service, host);
    }

    /// Sets the watcher of the directory's changes. Called once.
    pub fn watch(&self, watcher: Arc<dyn Watcher>) {
        self.0.shared.directory.set_watcher(watcher);
    }

    /// Opens a circuit to a service of a member that is a Warren.
    pub fn open_service(&self, node: &str, service: Service, caller: Caller) -> Circuit {
        self.0.shared.circuits.open(node, service, caller)
    }

    /// Writes an object of this machine. It is stored when this returns.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn write(&self, kind: Kind, id: &str, value: String) -> Result<(), WriteError> {
        let owner = self.node_id().into();
        self.0.shared.driver.write(Key::new(kind, id), owner, value.into(), Change::Update).await
    }

    /// Writes an object that another member owns.
    ///
    /// # Errors
    /// [`WriteError`].
    #[cfg(any(test, feature = "testing"))]
    pub async fn write_for(
        &self,
        owner: &str,
        kind: Kind,
        id: &str,
        value: String,
    ) -> Result<(), WriteError> {
        let key = Key::new(kind, id);
        self.0.shared.driver.write(key, owner.into(), value.into(), Change::Update).await
    }

    /// Deletes an object. It is stored when this returns.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn delete(&self, kind: Kind, id: &str) -> Result<(), WriteError> {
        self.0.shared.driver.delete(Key::new(kind, id)).await
    }

    /// Whether an object is known to have been deleted. False for an unknown object.
    pub async fn is_deleted(&self, kind: Kind, id: &str) -> bool {
        let deleted = self.0.shared.driver.which_deleted(vec![Key::new(kind, id)]).await;
        deleted.is_ok_and(|deleted| !deleted.is_empty())
    }

    /// Opens a circuit to a member for a client. A plain peer serves only what concerns the
    /// sessions that it runs.
    pub fn open(&self, node: &str, caller: Caller) -> Circuit {
        let shared = &self.0.shared;
        if !shared.is_plain(node) {
            return shared.circuits.open(node, Service::Workspace, caller);
        }
        match shared.via(node).filter(|_| !shared.plain.is_linked(node)) {
            Some(member) => {
                shared.circuits.open_to(&member, caller, Service::Workspace, Some(node.to_owned()))
            }
            None => outbound::open(shared, node, caller.role, Hops::default()),
        }
    }

    /// Whether a link leads to a member, and it gives signs of life.
    pub fn is_reachable(&self, node: &str) -> bool {
        let shared = &self.0.shared;
        let is_linked = shared.links.get(node).is_some_and(|link| link.is_alive());
        is_linked || shared.plain.is_alive(node) || shared.via(node).is_some()
    }

    /// The first carrier of the link to a member; `None` for a direct link, and for a member without a link.
    fn through(&self, node: &str) -> Option<Through> {
        self.0.shared.links.get(node)?.through().cloned()
    }

    /// Links to members over the mesh from now on, if nothing else leads to them.
    pub fn use_mesh(&self, mesh: Arc<dyn MeshWay>) {
        self.0.shared.carrying.use_mesh(mesh);
    }

    /// Takes in bytes that a machine of the mesh sent to this member. A machine that is no member
    /// is ignored.
    pub fn received_over_mesh(&self, from: NodeId, bytes: Bytes) {
        carried::dial::received_over_mesh(&self.0.shared, from, bytes);
    }

    /// Notes that the last bytes sent to a machine over the mesh may be lost.
    pub fn mesh_lost(&self, to: NodeId) {
        self.0.shared.carrying.mesh_lost(to);
    }

    /// Whether this machine has a cluster token, and so may share it with others.
    pub fn has_token(&self) -> bool {
        self.0.shared.this.token().is_some()
    }

    /// Invites one machine, once and for an hour. A cluster that has no token yet gets one.
    ///
    /// # Errors
    /// [`JoinError`] if too many invitations are open, or the invitation cannot be stored.
    pub async fn invite(&self) -> Result<Invited, JoinError> {
        invite::host::invite(&self.0.shared).await
    }

    /// The invitations that may still be used.
    pub async fn invites(&self) -> Vec<OpenInvite> {
        self.0.shared.invites.open_ones().await
    }

    /// Withdraws an invitation. Returns whether it existed.
    ///
    /// # Errors
    /// [`ClusterError`] if that cannot be stored.
    pub async fn revoke_invite(&self, id: &str) -> Result<bool, ClusterError> {
        self.0.shared.invites.withdraw(&self.0.shared.facts, id).await
    }

    /// Joins the cluster of the member that made this invitation. Returns that member's name.
    ///
    /// # Errors
    /// [`JoinError`], in words that say what to do.
    pub async fn join(&self, code: &str) -> Result<String, JoinError> {
        invite::guest::join(&self.0.shared, code).await
    }

    /// Leaves the cluster: deletes this member's entry and those of its sessions, and forgets
    /// everything that is stored of the cluster. After that no member may write these objects.
    ///
    /// # Errors
    /// [`ClusterError`] if the server is stopping.
    pub async fn leave(&self) -> Result<(), ClusterError> {
        parting::leave(&self.0.shared).await?;
        self.forget_all().await
    }

    /// Leaves without telling the others, and forgets everything that is stored of the cluster.
    ///
    /// # Errors
    /// [`ClusterError`] if the server is stopping.
    pub async fn forget_all(&self) -> Result<(), ClusterError> {
        self.0.close();
        Ok(self.0.shared.driver.forget().await?)
    }

    /// Takes another member out of the cluster, by its id or name. Returns its name.
    ///
    /// # Errors
    /// [`ClusterError`] if there is no such member, or the change cannot be stored.
    pub async fn forget(&self, member: &str) -> Result<String, ClusterError> {
        parting::forget(&self.0.shared, member).await
    }

    /// This machine's description of itself.
    pub fn this(&self) -> Member {
        self.0.shared.this.member()
    }

    /// The other members: those with a key by id, then the plain peers by id.
    pub fn members(&self) -> Vec<MemberStatus> {
        let members = self.0.shared.members();
        let mut others: Vec<Member> =
            members.filter(|member| member.node_id != self.node_id()).collect();
        let elsewhere = others.iter().flat_map(|member| &member.plain).cloned();
        let plain = self.0.shared.plain.list().into_iter().chain(elsewhere);
        let plain: BTreeMap<_, _> = plain.map(|peer| (peer.node_id.clone(), peer)).collect();
        let is_new = |node: &String| others.iter().all(|other| other.node_id != *node);
        let plain = plain.into_iter().filter(|(node, _)| *node != self.node_id() && is_new(node));
        let plain: Vec<Member> = plain.map(|(_, peer)| Member::plain(peer)).collect();
        others.extend(plain);
        let status = |member: Member| MemberStatus {
            reachable: self.is_reachable(&member.node_id),
            through: self.through(&member.node_id),
            member,
        };
        others.into_iter().map(status).collect()
    }

    /// The name of a member, or its id if it has none.
    pub fn name_of(&self, node: &str) -> String {
        let entry = self.0.shared.directory.get(Kind::MEMBER, node);
        let member = entry.and_then(|entry| Member::read(&entry.value));
        let name = member.map(|member| member.name).or_else(|| self.0.shared.plain_name(node));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| node.to_owned())
    }

    /// The configured addresses that are dialled.
    pub fn peers(&self) -> Vec<String> {
        self.0.shared.config().peers
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn cut(&self) {
        self.0.shared.links.close();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    #[cfg(test)]
    pub(crate) fn has_refused(&self) -> bool {
        self.0.shared.strangers.has_failures()
    }

    /// The peer port.
    pub fn port(&self) -> u16 {
        self.0.shared.settings.port
    }

    /// How often each end of a link gives a sign of life.
    pub fn heartbeat(&self) -> Duration {
        self.0.shared.settings.heartbeat
    }

    /// The bytes that wait for plain peers.
    #[cfg(test)]
    pub(crate) fn plain_waiting(&self) -> usize {
        self.0.shared.plain.waiting()
    }

    /// The notices for the operator, the oldest first.
    pub fn notices(&self) -> Vec<String> {
        self.0.shared.notices.list()
    }

    /// From now on dials these addresses, and closes links to addresses that are not among them.
    ///
    /// # Errors
    /// [`ClusterError`] if a text is no address, or the change cannot be stored.
    pub async fn set_peers(&self, peers: Vec<String>) -> Result<(), ClusterError> {
        for peer in &peers {
            peer_url(peer).map_err(|error| ClusterError::Address(error.to_string()))?;
        }
        self.0.shared.reconfigure(|config| config.peers = peers).await
    }

    /// Gives this machine another name.
    ///
    /// # Errors
    /// [`ClusterError`] if the change cannot be stored.
    pub async fn rename(&self, name: String) -> Result<(), ClusterError> {
        self.0.shared.rename(name).await
    }
}

async fn load(settings: &Settings, facts: &Facts) -> Result<Config, ClusterError> {
    let (settings, facts) = (settings.clone(), facts.clone());
    let loaded = task::spawn_blocking(move || Config::load(&settings, &facts)).await;
    Ok(loaded.map_err(|_| ClusterError::Failed)??)
}
