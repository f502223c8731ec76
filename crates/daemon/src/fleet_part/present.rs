//! This server as one of several that act as one, over NATS.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use api::Api;
use axum::Router;
use base::Secret;
use fellows::{Announcements, Fellow, FellowTasks, Fellows, NatsAddress};
use protocol::admin::status::{FellowJson, FleetHealth};
use rooms::Rooms;
use scheduler::{Observer, Scheduler};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::FleetCounts;
pub(crate) use crate::room_homes::RoomsOfFleet;
use crate::{
    VERSION,
    parts::{SecretSource, Tokens},
    running,
    settings::{FleetSettings, Settings},
    stores::Stores,
};

/// The least length of an administrator's token, in bytes. A shorter one can be guessed by anybody who sees the
/// servers' messages.
const SAFE_TOKEN: usize = 16;

/// Observes the scheduler's workers, for the fellows.
#[derive(Clone, Default)]
pub(crate) struct FleetObserver(Announcements);

impl FleetObserver {
    /// The observers for the scheduler: this one, if the server acts with others, or none.
    pub(crate) fn observers(&self, settings: &Settings) -> Vec<Arc<dyn Observer>> {
        settings.fleet.iter().map(|_| Arc::new(self.0.clone()) as Arc<dyn Observer>).collect()
    }
}

/// This server as one of several.
#[derive(Clone)]
pub(crate) struct FleetPart {
    fellows: Fellows,
    running: Arc<Mutex<Option<FellowTasks>>>,
}

impl FleetPart {
    /// Joins the fleet, if the settings say so. NATS need not be reachable yet.
    ///
    /// # Errors
    /// When the URL of NATS or the group makes no sense.
    pub(crate) fn start(
        settings: &Settings,
        tokens: &Tokens,
        scheduler: &Scheduler,
        fleet_observer: FleetObserver,
        listening: SocketAddr,
    ) -> anyhow::Result<Option<Self>> {
        let Some(fleet) = &settings.fleet else { return Ok(None) };
        let address = NatsAddress::parse(&fleet.nats, fleet.group.as_deref())
            .context("--cluster cannot be used")?;
        warn(settings, tokens, &address);
        let started = fellows::Settings {
            address,
            name: name(fleet, listening),
            admin_token: tokens.admin.clone(),
            version: VERSION,
            url: url(settings, listening),
            max_body: settings.max_body,
        };
        let running = Fellows::start(started, scheduler, fleet_observer.0)
            .context("the cipher for messages between servers cannot be used")?;
        let fellows = running.fellows();
        Ok(Some(Self { fellows, running: Arc::new(Mutex::new(Some(running))) }))
    }

    /// The problem and what to do; `None` while all is well.
    pub(crate) fn problem(&self) -> Option<String> {
        self.fellows.problem()
    }

    pub(crate) fn health(&self) -> FleetHealth {
        let status = self.fellows.status();
        let mut servers: Vec<_> = status.fellows.iter().map(fellow).collect();
        servers.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        FleetHealth {
            name: status.name.to_string(),
            group: status.group,
            connected: status.is_connected,
            servers,
            slots_lent: status.slots.lent,
            slots_borrowed: status.slots.borrowed,
            requests_sent: status.jobs.asking,
            requests_served: status.jobs.serving,
        }
    }

    pub(crate) fn counts(&self) -> FleetCounts {
        let status = self.fellows.status();
        let (messages, unsent) = status.messages;
        FleetCounts {
            servers: status.fellows.len() + 1,
            connected: status.is_connected,
            lent: status.slots.lent,
            borrowed: status.slots.borrowed,
            asking: status.jobs.asking,
            asked: status.jobs.asked,
            serving: status.jobs.serving,
            served: status.jobs.served,
            messages,
            unsent,
        }
    }

    /// Shares the rooms with the fellows. `router` has all paths, and serves what fellows pass on.
    pub(crate) async fn share_rooms(
        &self,
        api: &Api,
        router: Router,
        stored: (&Rooms, &Stores),
        scheduler: &Scheduler,
        links: TaskTracker,
    ) -> RoomsOfFleet {
        RoomsOfFleet::start(api, router, stored, (self.fellows.clone(), scheduler), links).await
    }

    /// Tells the fellows that this server stops soon, so that they send it no new jobs.
    pub(crate) fn drain(&self) {
        self.fellows.drain();
    }

    /// Leaves the fleet.
    pub(crate) async fn shut_down(&self) {
        if let Some(running) = self.running.lock().await.take() {
            running.shut_down().await;
        }
    }
}

fn fellow(fellow: &Fellow) -> FellowJson {
    let facts = fellow.facts();
    FellowJson {
        name: fellow.name.to_string(),
        id: fellow.id.to_string(),
        version: facts.version.clone(),
        state: if fellow.is_draining { "draining" } else { "active" }.to_owned(),
        url: facts.url.clone(),
        workers: facts.workers.len() as u64,
    }
}

/// The URL by which other machines reach this server; `None` if it listens for its own machine alone.
fn url(settings: &Settings, listening: SocketAddr) -> Option<String> {
    let is_reached = !listening.ip().is_loopback();
    is_reached.then(|| running::urls(listening, settings.tls.is_some()).pop()).flatten()
}

fn name(fleet: &FleetSettings, listening: SocketAddr) -> String {
    let usual = || format!("{}:{}", hardware::host_name(), listening.port());
    fleet.name.clone().unwrap_or_else(usual)
}

/// Warns of settings that are allowed and seldom meant.
fn warn(settings: &Settings, tokens: &Tokens, address: &NatsAddress) {
    if address.is_exposed() {
        tracing::warn!(
            "NATS is on another machine and is spoken to without TLS: others on the network see its password, and which \
             servers speak when. Use tls://"
        );
    }
    if address.is_open() {
        tracing::warn!(
            "NATS asks for no password, as far as this server knows: whoever reaches it can disturb the servers. Give \
             it users, and a URL with USER:PASSWORD@"
        );
    }
    if settings.database.is_none() {
        tracing::warn!(
            "--cluster without --database: the servers use each other's workers, and each has its own keys, budgets and \
             usage. A key that is made at one is unknown to the others"
        );
    }
    if let Some(words) = weak(&tokens.admin, &tokens.admin_source) {
        tracing::warn!("{words}");
    }
}

fn weak(token: &Secret, source: &SecretSource) -> Option<&'static str> {
    if token.expose().len() < SAFE_TOKEN {
        return Some(
            "the administrator's token is short, and from it follow the keys by which servers seal what they say: give \
             all servers one of 16 characters or more, as `openssl rand -hex 16` makes",
        );
    }
    matches!(source, SecretSource::New { .. }).then_some(
        "the administrator's token was made just now, and all servers that act as one need the same: give it with \
         --admin-token or WARREN_ADMIN_TOKEN",
    )
}
