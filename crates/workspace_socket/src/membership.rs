//! This machine as a member of a cluster: which member serves a request.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak},
    time::{Duration, Instant},
};

use cluster::{Cluster, Member};
use futures_util::future::BoxFuture;
use protocol::workspace::SessionInfo;
use replica::Kind;
use tokio_util::task::AbortOnDropHandle;
use workspace::Refusal;

use crate::{policy::Target, services::Services};

/// The most objects that are remembered until their owner announces them.
const LEARNT: usize = 4096;

/// The most sessions that are listed before their owners have announced them, and for how long.
const FRESH: usize = 256;
const FRESH_FOR: Duration = Duration::from_secs(2);

/// The member that serves a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Server {
    Here,
    /// The member with this node id.
    Member(String),
    /// This member knows no such object.
    Unknown,
}

/// Begins and ends this machine's membership, and owns the port for the other members. Errors are
/// words for people.
pub trait Memberships: Send + Sync {
    /// This machine as a member of its cluster. If it is in none, it begins one, which others may join.
    fn begin(&self) -> BoxFuture<'_, Result<Cluster, String>>;

    /// Joins a cluster by the code of an invitation. Returns the name of the inviting member.
    fn join<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<String, String>>;

    /// Leaves the cluster. This machine's sessions go on. Returns, in words, what is left to do.
    fn leave(&self) -> BoxFuture<'_, Result<String, String>>;
}

/// This machine in its cluster, if it is in one.
#[derive(Default)]
pub(crate) struct Membership {
    current: RwLock<Option<CurrentCluster>>,
    memberships: OnceLock<Weak<dyn Memberships>>,
    learnt: Mutex<UnreportedObjects>,
}

/// The cluster, and the task that announces this machine's objects in it.
struct CurrentCluster {
    cluster: Cluster,
    _object_sync: AbortOnDropHandle<()>,
}

/// Objects that were made through this member, and that their owner has not announced yet.
#[derive(Default)]
struct UnreportedObjects {
    owners: BTreeMap<(Kind, String), String>,
    /// The sessions among them, the newest last.
    sessions: VecDeque<(Instant, SessionInfo)>,
    order: VecDeque<(Kind, String)>,
}

impl Membership {
    /// The cluster, if this machine is in one.
    pub(crate) fn cluster(&self) -> Option<Cluster> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map(|current| current.cluster.clone())
    }

    /// The part that begins and ends memberships, if the server has it.
    pub(crate) fn memberships(&self) -> Result<Arc<dyn Memberships>, Refusal> {
        let memberships = self.memberships.get().and_then(Weak::upgrade);
        memberships.ok_or_else(|| Refusal::invalid("this server takes no part in clusters"))
    }

    /// Sets the part that begins and ends memberships. Called once.
    pub(crate) fn set_memberships(&self, memberships: Weak<dyn Memberships>) {
        let _set_before = self.memberships.set(memberships);
    }

    /// Whether there are other members.
    pub(crate) fn has_others(&self) -> bool {
        self.cluster().is_some_and(|cluster| !cluster.members().is_empty())
    }

    /// Makes this machine a member. `object_sync` is the task that announces its objects to the others.
    pub(crate) fn join(&self, cluster: Cluster, object_sync: AbortOnDropHandle<()>) {
        let current = CurrentCluster { cluster, _object_sync: object_sync };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(current);
    }

    /// Ends the membership, and the task that announces this machine's objects.
    pub(crate) fn leave(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
        *self.lock() = UnreportedObjects::default();
    }

    /// The member that serves requests about this object.
    ///
    /// # Errors
    /// A refusal when a name means no member, or several.
    pub(crate) fn server_of(
        &self,
        target: &Target,
        services: &Services,
    ) -> Result<Server, Refusal> {
        let Some(cluster) = self.cluster() else { return Ok(Server::Here) };
        let cluster = &cluster;
        Ok(match target {
            Target::Here => Server::Here,
            Target::Session(id) if services.sessions.has(*id) => Server::Here,
            Target::Project(id) if services.projects.get(*id).is_ok() => Server::Here,
            Target::Session(id) => self.owner(cluster, Kind::SESSION, &id.to_string()),
            Target::Project(id) => self.owner(cluster, Kind::PROJECT, &id.to_string()),
            Target::Team(id) => self.owner(cluster, Kind::TEAM, &id.to_string()),
            Target::Node(name) => named(cluster, name)?,
        })
    }

    /// Remembers the owner of an object that was made through this member.
    pub(crate) fn learn(&self, kind: Kind, id: &str, owner: &str) {
        let mut learnt = self.lock();
        let key = (kind, id.to_owned());
        if learnt.owners.insert(key.clone(), owner.to_owned()).is_none() {
            learnt.order.push_back(key);
        }
        while learnt.order.len() > LEARNT {
            if let Some(oldest) = learnt.order.pop_front() {
                learnt.owners.remove(&oldest);
            }
        }
    }

    /// Remembers a session that was made through this member.
    pub(crate) fn learn_session(&self, info: SessionInfo) {
        let mut learnt = self.lock();
        learnt.sessions.push_back((Instant::now(), info));
        while learnt.sessions.len() > FRESH {
            learnt.sessions.pop_front();
        }
    }

    /// The sessions that were made through this member a moment ago.
    pub(crate) fn fresh_sessions(&self) -> Vec<SessionInfo> {
        let mut learnt = self.lock();
        learnt.sessions.retain(|(at, _)| at.elapsed() < FRESH_FOR);
        learnt.sessions.iter().map(|(_, info)| info.clone()).collect()
    }

    fn owner(&self, cluster: &Cluster, kind: Kind, id: &str) -> Server {
        let owner = match cluster.directory().get(kind, id) {
            Some(entry) => Some(entry.owner.as_str().to_owned()),
            None => self.lock().owners.get(&(kind, id.to_owned())).cloned(),
        };
        match owner {
            // A session of this member that does not run here is on its way.
            Some(owner) if owner == cluster.node_id() && kind == Kind::SESSION => Server::Unknown,
            Some(owner) if owner == cluster.node_id() => Server::Here,
            Some(owner) => Server::Member(owner),
            None => Server::Unknown,
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnreportedObjects> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shortest beginning of a node id by which a member may be named, in characters.
const BEGINNING: usize = 4;

/// The member with this id, beginning of an id, or name.
pub(crate) fn named(cluster: &Cluster, name: &str) -> Result<Server, Refusal> {
    let this = cluster.this();
    if name == this.node_id {
        return Ok(Server::Here);
    }
    let others: Vec<Member> = cluster.members().into_iter().map(|member| member.member).collect();
    // First ids, then names, then beginnings of ids, because a name may look like a beginning.
    if others.iter().any(|member| member.node_id == name) {
        return Ok(Server::Member(name.to_owned()));
    }
    let mut called: Vec<&Member> = others.iter().filter(|member| member.name == name).collect();
    called.extend((this.name == name).then_some(&this));
    if called.is_empty() && name.len() >= BEGINNING {
        let all = others.iter().chain([&this]);
        called.extend(all.filter(|member| member.node_id.starts_with(name)));
    }
    match called[..] {
        [] => Err(Refusal::Invalid(format!("there is no node {name:?} in this cluster"))),
        [member] if member.node_id == this.node_id => Ok(Server::Here),
        [member] => Ok(Server::Member(member.node_id.clone())),
        _ => {
            let ids: Vec<&str> = called.iter().map(|member| &*member.node_id).collect();
            let ids = ids.join(", ");
            Err(Refusal::Invalid(format!("several nodes are called {name:?}, say which: {ids}")))
        }
    }
}
