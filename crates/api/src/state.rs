//! What every handler needs.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use access::{ConsumerRules, LocalRules, Token};
use http::{Extensions, HeaderMap, Uri};
use scheduler::Scheduler;
use store::ModelMemory;

use crate::{refusals::Refusals, uploads::Uploads};

/// Bounds and delays of this crate.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// Bodies that are being read or wait for the head of their answer, all together, in bytes.
    pub bodies: u64,
    /// A stream silent for so long gets a sign of life; zero: never.
    pub keepalive: Duration,
    /// How long a drained worker may go on with what it has.
    pub drain: Duration,
    /// Whether prompts are hashed, for routing by prefix.
    pub affinity: bool,
}

/// The state of all handlers; clones share it.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    scheduler: Scheduler,
    rules: ConsumerRules,
    admin: Token,
    models: Arc<ModelMemory>,
    limits: Limits,
    uploads: Uploads,
    refusals: Refusals,
    version: &'static str,
    started: Instant,
    draining: AtomicBool,
}

/// The far end of a request's TCP connection, as a request extension.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// The peer of a request. Without one it counts as somebody far away.
    pub fn of(extensions: &Extensions) -> IpAddr {
        extensions.get::<Self>().map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0)
    }
}

impl Api {
    /// Handlers that post jobs to `scheduler`.
    pub fn new(
        scheduler: Scheduler,
        rules: ConsumerRules,
        admin: Token,
        models: Arc<ModelMemory>,
        limits: Limits,
        version: &'static str,
    ) -> Self {
        Self(Arc::new(Inner {
            scheduler,
            rules,
            admin,
            models,
            uploads: Uploads::new(limits.bodies),
            refusals: Refusals::default(),
            limits,
            version,
            started: Instant::now(),
            draining: AtomicBool::new(false),
        }))
    }

    /// From now on [`health`](crate::health) says that the server is going.
    pub fn start_draining(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Whether a request may see what only the server's own people should: local, or with any key.
    pub fn is_trusted(&self, extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.0.rules.local.is_local(Peer::of(extensions), uri, headers)
            || self.is_admin(headers)
            || self.0.rules.has_key(headers)
    }

    /// Whether a request is local, or carries the administrator's token: those may read
    /// `/metrics`.
    pub fn may_read_metrics(&self, ext: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.0.rules.local.is_local(Peer::of(ext), uri, headers) || self.is_admin(headers)
    }

    /// Requests that were refused before they became jobs: statuses, and how often each was told.
    pub fn refused(&self) -> Vec<(u16, u64)> {
        self.0.refusals.counts()
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    pub(crate) fn is_admin(&self, headers: &HeaderMap) -> bool {
        access::presented(headers).is_some_and(|given| self.0.admin.matches(given))
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    pub(crate) fn rules(&self) -> &ConsumerRules {
        &self.0.rules
    }

    pub(crate) fn local(&self) -> &LocalRules {
        &self.0.rules.local
    }

    pub(crate) fn models(&self) -> &ModelMemory {
        &self.0.models
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn version(&self) -> &'static str {
        self.0.version
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }
}
