//! Team workers on other members. A team's owner has a *station* for each member that runs sessions
//! of its teams: it makes sessions there, sends their messages until they are stored there, and takes
//! the reports about them. The member's own part is its outpost.
//!
//! - [`Members`], [`Line`]: the cluster, as teams use it
//! - [`Outposts`]: all stations; `station`: one of them
//! - `hosting`: the outpost's end of a line, which serves the owner of a team that has sessions here
//! - `making`: the sessions that are being made for owners
//! - `message`: the messages of a line

pub(crate) mod hosting;
mod making;
pub(crate) mod message;
mod station;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ::session::team::Delivery;
use futures_util::future::BoxFuture;
use protocol::workspace::{SessionId, SessionInfo, TeamId};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use uuid::Uuid;
use workspace::{NewSession, Refusal};

use self::{
    hosting::{Lines, call_owners},
    making::Makings,
    message::{Recruit, ToOutpost},
    station::Station,
};
use crate::{
    delivery::Speaker,
    queue::{Queue, ask},
};

/// The other members of the cluster, as teams use them.
pub trait Members: Send + Sync {
    /// The member with this node id, beginning of a node id, or name; `None`: this machine.
    ///
    /// # Errors
    /// When there is no such member, or it has no outpost. The error is meant for the caller.
    fn find(&self, name: &str) -> Result<Option<String>, Refusal>;

    /// The name of a member.
    fn name_of(&self, node: &str) -> String;

    /// Whether a member can be reached now.
    fn is_reachable(&self, node: &str) -> bool;

    /// Whether a former member has left or was taken out.
    fn has_left<'a>(&'a self, node: &'a str) -> BoxFuture<'a, bool>;

    /// Opens a line to a member. The member serves the line with
    /// [`TeamRequests::serve`](crate::TeamRequests::serve).
    fn open(&self, node: &str) -> Box<dyn Line>;

    /// A session of another member, as it is shown here.
    fn session(&self, session: SessionId) -> Option<SessionInfo>;
}

/// Texts both ways between two members, each once and in order.
pub trait Line: Send + Sync {
    /// Sends a text. Never waits. Does nothing once the line has ended.
    fn send(&self, text: String);

    /// Waits for the next text. Cancel safe.
    ///
    /// # Errors
    /// Why the line has ended, in words.
    fn next(&mut self) -> BoxFuture<'_, Result<String, String>>;
}

/// The stations for all members that run sessions of this machine's teams.
#[derive(Default)]
pub(crate) struct Outposts {
    shared: Arc<StationContext>,
    stations: Mutex<BTreeMap<String, StationTask>>,
    /// The lines of the owners that have sessions here.
    pub(crate) lines: Arc<Lines>,
    /// The sessions that are being made for these owners.
    pub(crate) makings: Arc<Makings>,
    calling: Mutex<Option<AbortOnDropHandle<()>>>,
}

struct StationTask {
    station: Arc<Station>,
    _running: AbortOnDropHandle<()>,
}

/// The parts that all stations use.
#[derive(Default)]
pub(crate) struct StationContext {
    members: RwLock<Option<Arc<dyn Members>>>,
    queue: Arc<Queue>,
    /// The sessions that are being made, and the members that make them.
    making: Mutex<BTreeMap<Uuid, String>>,
    /// Whether not all records of teams could be read.
    is_incomplete: AtomicBool,
}

/// A session that is being made for a team and is not in the team yet. Until this is dropped, the roll names
/// the session: an outpost ends the sessions that the roll does not name.
pub(crate) struct PendingSession {
    shared: Arc<StationContext>,
    station: Arc<Station>,
    session: Uuid,
}

impl PendingSession {
    /// The member that runs the session.
    pub(crate) fn node(&self) -> &str {
        self.station.node()
    }
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        self.shared.making().remove(&self.session);
        self.station.call_roll();
    }
}

impl Outposts {
    pub(crate) fn new(queue: &Arc<Queue>) -> Self {
        let shared = StationContext { queue: Arc::clone(queue), ..StationContext::default() };
        Self { shared: Arc::new(shared), ..Self::default() }
    }

    /// Notes that this machine is a member of a cluster from now on. Begins a station for each member that runs
    /// sessions of this machine's teams, and begins to call owners.
    pub(crate) async fn join(&self, members: Arc<dyn Members>) {
        let (queue, lines) = (Arc::clone(&self.shared.queue), Arc::clone(&self.lines));
        let calling = tokio::spawn(call_owners(Arc::clone(&members), queue, lines));
        self.set_calling(Some(AbortOnDropHandle::new(calling)));
        *self.shared.members.write().unwrap_or_else(PoisonError::into_inner) = Some(members);
        let nodes = ask(&self.shared.queue, |core, _| (Ok(core.machine.nodes()), Vec::new())).await;
        match nodes {
            Ok(nodes) => nodes.iter().for_each(|node| drop(self.station(node))),
            Err(refusal) => tracing::error!(%refusal, "team workers on other machines"),
        }
    }

    /// Notes that this machine is in no cluster any more.
    pub(crate) fn leave(&self) {
        *self.shared.members.write().unwrap_or_else(PoisonError::into_inner) = None;
        // This aborts the tasks of the stations, and refuses the callers that wait for them.
        self.stations().clear();
        self.set_calling(None);
    }

    /// Notes that not all records of teams could be read. From now on, outposts are told to end no sessions.
    pub(crate) fn note_incomplete(&self) {
        self.shared.is_incomplete.store(true, Ordering::Relaxed);
    }

    pub(crate) fn members(&self) -> Option<Arc<dyn Members>> {
        self.shared.members()
    }

    /// A session of another member, as it is shown here.
    pub(crate) fn session(&self, session: SessionId) -> Option<SessionInfo> {
        self.members()?.session(session)
    }

    /// The member on which a team worker is to run; `None`: this machine.
    ///
    /// # Errors
    /// When there is no such member, or it cannot be reached. The error is meant for the caller.
    pub(crate) fn find(&self, name: &str) -> Result<Option<String>, Refusal> {
        let alone =
            || Refusal::Invalid(format!("there is no node {name:?}: this server is in no cluster"));
        let members = self.members().ok_or_else(alone)?;
        let Some(node) = members.find(name)? else { return Ok(None) };
        if !members.is_reachable(&node) {
            let name = members.name_of(&node);
            return Err(Refusal::Failed(format!(
                "{name} cannot be reached, so no worker can be made there"
            )));
        }
        Ok(Some(node))
    }

    /// Makes a session on a member, for a team of this machine.
    pub(crate) async fn create(
        &self,
        node: &str,
        team: TeamId,
        administrator: bool,
        new: NewSession,
    ) -> Result<(SessionInfo, PendingSession), Refusal> {
        let session = SessionId::from_random(rand::random());
        let no_agent = || Refusal::invalid("a member of a team is an agent");
        let recruit = Recruit::new(session, team, administrator, new).ok_or_else(no_agent)?;
        let station = self.station(node);
        // Noted before the session is requested: a roll in between would end it.
        self.shared.making().insert(session.uuid(), node.to_owned());
        let (shared, session) = (Arc::clone(&self.shared), session.uuid());
        let making = PendingSession { shared, station: Arc::clone(&station), session };
        let made = station.create(recruit).await;
        let name = self.members().map_or_else(|| node.to_owned(), |members| members.name_of(node));
        let info = made.map_err(|why| Refusal::Failed(format!("{name}: {why}")))?;
        Ok((info, making))
    }

    /// Sends a message to a session that another member runs, until it is stored there.
    pub(crate) fn deliver(&self, node: &str, delivery: Delivery, from: Speaker) {
        self.station(node).deliver(delivery, from);
    }

    /// Sends the roll to all outposts after sessions have left their teams: the outposts end those sessions.
    pub(crate) fn call_roll(&self) {
        self.stations().values().for_each(|running| running.station.call_roll());
    }

    /// Begins a station for a member that has called: it has sessions of this machine's teams, or of teams that
    /// are gone.
    pub(crate) fn called(&self, node: &str) {
        let _station = self.station(node);
    }

    fn set_calling(&self, calling: Option<AbortOnDropHandle<()>>) {
        *self.calling.lock().unwrap_or_else(PoisonError::into_inner) = calling;
    }

    /// The station for a member. If there is none, it begins.
    fn station(&self, node: &str) -> Arc<Station> {
        let mut stations = self.stations();
        if let Some(running) = stations.get(node) {
            return Arc::clone(&running.station);
        }
        let station = Arc::new(Station::new(node, &self.shared));
        // No parent: a station outlives the request that began it.
        let span = tracing::info_span!(parent: None, "outpost", node);
        let running = tokio::spawn(Arc::clone(&station).run().instrument(span));
        let _running = AbortOnDropHandle::new(running);
        let running = StationTask { station: Arc::clone(&station), _running };
        stations.insert(node.to_owned(), running);
        station
    }

    fn stations(&self) -> MutexGuard<'_, BTreeMap<String, StationTask>> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StationContext {
    fn members(&self) -> Option<Arc<dyn Members>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sessions that a member should run: those in teams, and those that are being made.
    async fn roll(&self, node: &str) -> Result<ToOutpost, Refusal> {
        // This list is read before the teams are. A session joins its team before it leaves the list, so it is in at
        // least one of the two.
        let made = self.made_at(node);
        let node = node.to_owned();
        let known =
            ask(&self.queue, move |core, _| (Ok(core.machine.sessions_at(&node)), Vec::new()));
        let mut sessions = known.await?;
        sessions.extend(made);
        let is_complete = !self.is_incomplete.load(Ordering::Relaxed);
        Ok(ToOutpost::Roll { sessions, is_complete })
    }

    fn made_at(&self, node: &str) -> Vec<Uuid> {
        let making = self.making();
        making.iter().filter(|(_, at)| *at == node).map(|(session, _)| *session).collect()
    }

    fn is_making(&self, session: Uuid) -> bool {
        self.making().contains_key(&session)
    }

    fn making(&self) -> MutexGuard<'_, BTreeMap<Uuid, String>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
