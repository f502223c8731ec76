//! The parts that every handler needs.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

use access::{ConsumerRules, Keys};
use base::{ClientAddress, Live, ModelName, ResumeAnswers, Scope, trace::Sampler};
use http::{Extensions, HeaderValue};
use protocol::via::Marks;
use rooms::Rooms;
use scheduler::{Route, Scheduler};
use store::{ModelMemory, ResponseStore};
use tokio::sync::watch;

use crate::{
    admin::administration::Administration,
    aliases::Aliases,
    condition::Condition,
    elsewhere::Elsewhere,
    joining::Joining,
    models::served,
    refusals::Refusals,
    response_makers::ResponseMakers,
    responses::keeping::Keeping,
    room::{homes::way::RoomHomes, message_jobs::MessageJobs, watchers::Watchers},
    uploads::Uploads,
    web::{cookie::SessionCookie, state::Web},
};

/// Bounds and delays of this crate.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// The memory for all bodies that are being read, wait for the head of their answer, or are kept because another
    /// provider may have to go on with it; in bytes.
    pub bodies: u64,
    /// The silence after which a stream gets a sign of life; zero: never.
    pub keepalive: Duration,
    /// How long a drained worker may continue with its current jobs.
    pub drain: Duration,
    /// Whether prompts are hashed, for routing by prefix.
    pub affinity: bool,
    /// How far requests go without the header `x-warren-route`.
    pub route: Route,
    /// Whether responses and conversations are kept if clients ask for that.
    pub keep_responses: bool,
    /// Whether a response is kept if its request does not say `store`.
    pub keep_unasked: bool,
    /// What is done with a streamed answer whose provider is lost, if neither the header `x-warren-resume` nor the key
    /// says it.
    pub resume_answers: ResumeAnswers,
}

/// The state of all handlers; clones share it.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    scheduler: Scheduler,
    keys: Keys,
    rules: Live<ConsumerRules>,
    administration: Administration,
    condition: Arc<dyn Condition>,
    names: Names,
    limits: Live<Limits>,
    marks: Marks,
    /// The [`VIA`](protocol::via::VIA) header of requests in the server's own scope that have passed no other server.
    via: Option<HeaderValue>,
    address: OnceLock<SocketAddr>,
    elsewhere: OnceLock<Weak<dyn Elsewhere>>,
    room_homes: OnceLock<Weak<dyn RoomHomes>>,
    keeping: OnceLock<Keeping>,
    uploads: Uploads,
    refusals: Refusals,
    version: &'static str,
    sampler: Option<Sampler>,
    started: Instant,
    watchers: Arc<Watchers>,
    response_makers: Arc<ResponseMakers>,
    draining: watch::Sender<bool>,
    web: Web,
}

/// The server's identity, as others see it.
pub struct Identity {
    /// The marks that the server puts on requests that pass through it.
    pub marks: Marks,
    /// The server's version.
    pub version: &'static str,
    /// Decides which requests are traced; `None` if no requests are.
    pub sampler: Option<Sampler>,
}

/// The names that a request may use.
pub struct Names {
    /// The models seen so far.
    pub models: Arc<ModelMemory>,
    /// The names that stand for others.
    pub aliases: Live<Aliases>,
    /// The rooms, and who may do what with them.
    pub rooms: RoomRules,
}

/// The rooms, and who may do what with them.
pub struct RoomRules {
    /// The rooms.
    pub rooms: Rooms,
    /// The permissions for rooms that the owner of the server gives.
    pub permissions: Live<RoomPermissions>,
    /// Whether clients reach the server over TLS.
    pub tls: bool,
    /// The jobs that came as messages, for the observer that tells rooms of jobs.
    pub by_message: Arc<MessageJobs>,
}

/// The permissions for rooms that the owner of the server gives.
#[derive(Debug, Clone, Copy)]
pub struct RoomPermissions {
    /// Whether anybody may make a room without a key, even from another machine.
    pub open: bool,
    /// Which participants' endpoints the server calls.
    pub endpoints: rooms::Endpoints,
}

/// The settings of the handlers that may change while the server runs. A request that has begun keeps the settings
/// that it began with.
pub struct Changeable {
    /// The rights of consumers. They must have the keys that the API was made with.
    pub rules: ConsumerRules,
    /// The names that stand for models.
    pub aliases: Aliases,
    /// Bounds and delays. The memory for bodies stays as it was.
    pub limits: Limits,
    /// The permissions for rooms.
    pub rooms: RoomPermissions,
}

/// The far end of a request's TCP connection, as a request extension.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// The peer of a request. A request without one counts as coming from another machine.
    pub fn of(extensions: &Extensions) -> IpAddr {
        // `Client` has the peer as well, because each extension costs an allocation.
        let of_client = extensions.get::<Client>().map(|client| client.peer);
        let peer = of_client.or_else(|| Some(extensions.get::<Self>()?.0));
        peer.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into())
    }
}

/// Where a request's client is, as a request extension: for everything that is counted by address.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// The client's address; for a request through a trusted proxy, the one that the proxy states.
    pub address: ClientAddress,
    /// The far end of the connection, as in [`Peer`].
    pub peer: IpAddr,
}

impl Client {
    /// The client's address of a request; the peer's, if the request has no [`Client`].
    pub fn of(extensions: &Extensions) -> ClientAddress {
        extensions
            .get::<Self>()
            .map_or_else(|| Peer::of(extensions).into(), |client| client.address)
    }
}

impl Api {
    /// The state of handlers that submit jobs to `scheduler`.
    pub fn new(
        scheduler: Scheduler,
        rules: ConsumerRules,
        administration: Administration,
        condition: Arc<dyn Condition>,
        names: Names,
        limits: Limits,
        identity: Identity,
    ) -> Self {
        let Identity { marks, version, sampler } = identity;
        let via = marks.pass(&Scope::server(), []).ok();
        let via = via.and_then(|via| HeaderValue::try_from(via).ok());
        let web = Web::new(administration.joining.server_id());
        Self(Arc::new(Inner {
            scheduler,
            keys: rules.keys.clone(),
            rules: Live::new(rules),
            administration,
            condition,
            names,
            uploads: Uploads::new(limits.bodies),
            refusals: Refusals::default(),
            limits: Live::new(limits),
            marks,
            via,
            address: OnceLock::new(),
            elsewhere: OnceLock::new(),
            room_homes: OnceLock::new(),
            keeping: OnceLock::new(),
            version,
            sampler,
            started: Instant::now(),
            watchers: Arc::default(),
            response_makers: Arc::default(),
            draining: watch::Sender::new(false),
            web,
        }))
    }

    /// Replaces the settings that may change. New requests follow them.
    pub fn change(&self, to: Changeable) {
        let Changeable { rules, aliases, limits, rooms } = to;
        self.0.rules.set(rules);
        self.0.names.aliases.set(aliases);
        self.0.limits.set(limits);
        self.0.names.rooms.permissions.set(rooms);
    }

    /// Sets the address at which the server listens: it must not be the endpoint of a participant.
    pub fn listening(&self, address: SocketAddr) {
        // The server listens at one address, so this is set only once.
        let _ = self.0.address.set(address);
    }

    /// Sets what says where the models of some keys are. Weak, because it refers back to this. Called once.
    pub fn set_elsewhere(&self, elsewhere: Weak<dyn Elsewhere>) {
        let _set_before = self.0.elsewhere.set(elsewhere);
    }

    /// Sets the way to the fellows of this server. Weak, because it refers back to this. Called once.
    pub fn set_room_homes(&self, homes: Weak<dyn RoomHomes>) {
        let _set_before = self.0.room_homes.set(homes);
    }

    /// Sets where responses and conversations are kept. Called once; without it, nothing is kept.
    pub fn keep_responses(&self, store: Arc<dyn ResponseStore>) {
        let _set_before = self.0.keeping.set(Keeping::new(store));
    }

    /// Waits until no response is being made in the background.
    pub async fn background_ended(&self) {
        if let Some(keeping) = self.keeping() {
            keeping.background().ended().await;
        }
    }

    /// Where responses and conversations are kept; `None` if none are.
    pub(crate) fn keeping(&self) -> Option<&Keeping> {
        self.0.keeping.get()
    }

    /// The models and aliases that are served now, sorted.
    pub fn served(&self) -> Vec<ModelName> {
        served::served(self).into_keys().collect()
    }

    /// Whether this model or alias is served now.
    pub fn serves(&self, name: &ModelName) -> bool {
        served::served_since(self, name).is_some()
    }

    /// Whether this model or alias was served before, so that requests wait for its return.
    pub fn has_served(&self, name: &ModelName) -> bool {
        served::has_served(self, name)
    }

    /// From now on [`health`](crate::health) reports that the server drains, and streams of events end.
    pub fn start_draining(&self) {
        self.0.draining.send_replace(true);
    }

    /// Requests refused before they became jobs: their statuses, each with its count.
    pub fn refused(&self) -> Vec<(u16, u64)> {
        self.0.refusals.counts()
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(crate) fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        self.0.elsewhere.get().and_then(Weak::upgrade)
    }

    pub(crate) fn room_homes(&self) -> Option<Arc<dyn RoomHomes>> {
        self.0.room_homes.get().and_then(Weak::upgrade)
    }

    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    pub(crate) fn administration(&self) -> &Administration {
        &self.0.administration
    }

    pub(crate) fn condition(&self) -> &dyn Condition {
        &*self.0.condition
    }

    /// How machines join.
    pub fn joining(&self) -> &Joining {
        &self.0.administration.joining
    }

    /// The cookie of sessions of the page at this server.
    pub fn session_cookie(&self) -> SessionCookie {
        self.0.web.cookie.clone()
    }

    pub(crate) fn web(&self) -> &Web {
        &self.0.web
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn rules(&self) -> Arc<ConsumerRules> {
        self.0.rules.get()
    }

    pub(crate) fn models(&self) -> &ModelMemory {
        &self.0.names.models
    }

    pub(crate) fn aliases(&self) -> Arc<Aliases> {
        self.0.names.aliases.get()
    }

    pub(crate) fn rooms(&self) -> &RoomRules {
        &self.0.names.rooms
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.limits.copied()
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.0.marks
    }

    /// The header of a request in the server's own scope that has passed no other server.
    pub(crate) fn via(&self) -> Option<&HeaderValue> {
        self.0.via.as_ref()
    }

    /// Where the server listens, once it does.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.address.get().copied()
    }

    pub(crate) fn version(&self) -> &'static str {
        self.0.version
    }

    pub(crate) fn sampler(&self) -> Option<Sampler> {
        self.0.sampler
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// A receiver whose value becomes true when the server begins to drain.
    pub fn draining(&self) -> watch::Receiver<bool> {
        self.0.draining.subscribe()
    }

    pub(crate) fn response_makers(&self) -> &Arc<ResponseMakers> {
        &self.0.response_makers
    }

    pub(crate) fn watchers(&self) -> &Arc<Watchers> {
        &self.0.watchers
    }
}
