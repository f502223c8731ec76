//! All links together, from start to drain.

use std::sync::Arc;

use backend::NotABackend;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Protocol, WorkerConfig},
    dialer::Dialer,
    event::{Observer, Teller},
    lent::Lent,
    link::{LinkLoop, Speaks},
    models,
    node::slots,
};

/// Why a worker cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAWorker {
    /// No server is given.
    #[error("a worker needs at least one server to lend to")]
    NoServer,
    /// No backend is given.
    #[error("a worker needs at least one backend to lend")]
    NoBackend,
    /// A backend cannot be used.
    #[error(transparent)]
    Backend(#[from] NotABackend),
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How many requests were not finished when the time to drain was over.
    pub cut_off: usize,
}

/// Lends backends to servers.
pub struct Worker {
    config: WorkerConfig,
    lent: Vec<Arc<Lent>>,
    dialer: Arc<dyn Dialer>,
    teller: Teller,
}

impl Worker {
    /// A worker that has not begun. `dialer` gives it its links; usually [`crate::NetDialer`].
    ///
    /// # Errors
    /// [`NotAWorker`] when there is no server or no backend, or a backend cannot be used.
    pub fn new(config: WorkerConfig, dialer: impl Dialer) -> Result<Self, NotAWorker> {
        if config.servers.is_empty() {
            return Err(NotAWorker::NoServer);
        }
        if config.backends.is_empty() {
            return Err(NotAWorker::NoBackend);
        }
        let lent = config.backends.iter().map(|lend| Lent::new(lend).map(Arc::new));
        let lent = lent.collect::<Result<_, _>>()?;
        Ok(Self { config, lent, dialer: Arc::new(dialer), teller: Teller::default() })
    }

    /// Has this observer told of each event, beside the log.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        Self { teller: Teller(Some(observer)), ..self }
    }

    /// Lends until `shutdown`; then takes nothing new, finishes what is in flight within the
    /// drain time-out, and returns. Dropping this future cuts everything off at once.
    pub async fn run(self, shutdown: CancellationToken) -> Ended {
        // Dropped, and so ended, when the links are.
        let mut keepers = JoinSet::new();
        for lent in &self.lent {
            let (lent, teller) = (Arc::clone(lent), self.teller.clone());
            keepers.spawn(models::watch(lent, self.config.poll_interval, teller));
        }
        let mut links = JoinSet::new();
        for link in self.links(&shutdown) {
            match self.config.protocol {
                Protocol::Relay => links.spawn(link.run()),
                Protocol::Node => links.spawn(slots::run(link)),
            };
        }
        let mut cut_off = 0;
        while let Some(link) = links.join_next().await {
            // A link that has failed must not take the others down.
            cut_off += link.unwrap_or_default();
        }
        Ended { cut_off }
    }

    fn links(&self, shutdown: &CancellationToken) -> impl Iterator<Item = LinkLoop> {
        let pairs = self
            .config
            .servers
            .iter()
            .flat_map(|server| self.lent.iter().map(move |l| (server, l)));
        pairs.map(|(server, lent)| LinkLoop {
            server: server.clone(),
            speaks: Speaks::Relay,
            name: self.link_name(lent),
            lent: Arc::clone(lent),
            dialer: Arc::clone(&self.dialer),
            teller: self.teller.clone(),
            drain_timeout: self.config.drain_timeout,
            shutdown: shutdown.clone(),
        })
    }

    /// The worker's name; with several backends also which one it is.
    fn link_name(&self, lent: &Lent) -> String {
        match self.lent.len() {
            1 => self.config.name.clone(),
            _ => format!("{}/{}", self.config.name, lent.backend().label()),
        }
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("config", &self.config).finish_non_exhaustive()
    }
}
