//! Builds the parts of a server from its settings.

use std::{path::PathBuf, sync::Arc};

use access::{ConsumerRules, Keys, LenderRules, LocalRules, Moment, PageSessions, Prices, Token};
use api::{Limits, MessageJobs, Names, RoomPermissions, RoomRules};
use base::{KeyId, KeyScope, Live, Secret};
use dispatch::route::{LeastLoaded, Policy, PrefixAffinity};
use providers::{ModelNodes, NodeSettings, RelaySettings, RelayWorkers};
use rooms::Rooms;
use scheduler::{Observer, Scheduler};
use store::{RoomStore, SqliteStore, StoreError};

use crate::{
    data::{ADMIN_TOKEN, CLIENT_TOKEN, DataDir, WORKER_SECRET},
    key_keeper::KeySettlement,
    known_models::KnownModels,
    ledger::Ledger,
    options::Routing,
    own_jobs::OwnJobs,
    settings::Settings,
    stores::Stores,
    telemetry::request_log::RequestLog,
};

/// Where a secret of the server comes from.
#[derive(Debug, Clone)]
pub enum SecretSource {
    /// From a flag, the environment or the configuration.
    Given,
    /// Made at this start.
    New {
        /// The secret.
        secret: Secret,
        /// The file that keeps it.
        file: PathBuf,
    },
    /// Made at an earlier start.
    Before {
        /// The file that keeps it.
        file: PathBuf,
    },
}

/// Where the secrets that other machines need come from.
#[derive(Debug, Clone)]
pub struct SecretSources {
    /// The ready-made key of consumers, if there is one.
    pub client: Option<SecretSource>,
    /// The secret that workers present.
    pub worker: SecretSource,
}

/// The secrets that a server accepts beside its keys.
pub(crate) struct Tokens {
    pub(crate) worker: Secret,
    pub(crate) admin: Secret,
    pub(crate) client: Option<Secret>,
    pub(crate) sources: SecretSources,
    #[cfg(feature = "nats")]
    pub(crate) admin_source: SecretSource,
}

impl Tokens {
    /// Takes the secrets that the settings have, and the others from the data directory, which makes missing ones.
    pub(crate) fn load(settings: &Settings, data: &DataDir) -> anyhow::Result<Self> {
        let load = |given: &Option<Secret>, name, prefix| match given {
            Some(secret) => anyhow::Ok((secret.clone(), SecretSource::Given)),
            None => {
                let file = data.path().join(name);
                let was_there = file.exists();
                let secret = data.token(name, prefix)?;
                let source = match was_there {
                    true => SecretSource::Before { file },
                    false => SecretSource::New { secret: secret.clone(), file },
                };
                Ok((secret, source))
            }
        };
        let client = match (settings.keep_client_token, &settings.client_token) {
            (false, None) => None,
            (_, given) => Some(load(given, CLIENT_TOKEN, "wk_")?),
        };
        let (client, of_client) = client.unzip();
        let (worker, of_worker) = load(&settings.worker_secret, WORKER_SECRET, "ws_")?;
        let (admin, _admin_source) = load(&settings.admin_token, ADMIN_TOKEN, "wa_")?;
        Ok(Self {
            worker,
            admin,
            client,
            sources: SecretSources { client: of_client, worker: of_worker },
            #[cfg(feature = "nats")]
            admin_source: _admin_source,
        })
    }
}

/// The stored keys, with the ready-made key of consumers.
pub(crate) fn keys(
    stores: &Stores,
    client_token: Option<&Secret>,
    prices: &Arc<Prices>,
) -> anyhow::Result<Keys> {
    let now = Moment::now();
    let store = Arc::clone(&stores.keys);
    let keys = match &stores.desk {
        Some(desk) => Keys::open_shared(store, desk.clone(), now)?,
        None => Keys::open(store, now)?,
    };
    keys.set_prices(Arc::clone(prices));
    if stores.desk.is_none() {
        keys.restore_budgets(&*stores.usage, now)?;
    }
    if let Some(token) = client_token {
        keys.add_ready_made(KeyId::from("client-token"), token, &[KeyScope::Inference], now);
    }
    Ok(keys)
}

/// Adds the sessions of the page to the keys: a session stands for a key, or for the administrator's token.
pub(crate) fn add_page_sessions(
    keys: &Keys,
    stores: &Stores,
    admin_token: &Secret,
) -> Result<(), StoreError> {
    let (store, owner) = (Arc::clone(&stores.page_sessions), Token::new(admin_token));
    let sessions = match stores.shared.is_some() {
        true => PageSessions::open_shared(store, owner)?,
        false => PageSessions::open(store, owner)?,
    };
    keys.set_page_sessions(sessions);
    Ok(())
}

/// The observers of jobs, in the order in which they are called. `counting`: observers that see this server's own jobs
/// only.
pub(crate) fn observers(
    settings: &Settings,
    keys: &Keys,
    models: &Arc<KnownModels>,
    ledger: &Arc<Ledger>,
    counting: [Arc<dyn Observer>; 4],
) -> Vec<Arc<dyn Observer>> {
    let mut own: Vec<Arc<dyn Observer>> = vec![Arc::new(KeySettlement(keys.clone()))];
    own.extend(counting);
    if settings.ledger {
        own.push(Arc::<Ledger>::clone(ledger));
    }
    let known = Arc::<KnownModels>::clone(models);
    vec![Arc::new(OwnJobs::new(keys.clone(), own)), known, Arc::new(RequestLog)]
}

pub(crate) fn scheduler(settings: &Settings, observers: Vec<Arc<dyn Observer>>) -> Scheduler {
    let policy: Box<dyn Policy> = match settings.routing {
        Routing::LeastLoaded => Box::new(LeastLoaded),
        Routing::PrefixAffinity => Box::new(PrefixAffinity::default()),
    };
    Scheduler::new(settings.dispatch.clone(), policy, observers)
}

/// The secrets that lenders present instead of a key.
#[derive(Clone, Default)]
pub(crate) struct LenderSecrets {
    /// The worker secret.
    pub(crate) worker: Live<Option<Token>>,
    /// The node token.
    pub(crate) node: Live<Option<Token>>,
}

impl LenderSecrets {
    /// Sets both. Lenders that are connected stay.
    pub(crate) fn set(&self, settings: &Settings, worker: &Secret) {
        self.worker.set(Some(Token::new(worker)));
        self.node.set(settings.node_token.as_ref().map(Token::new));
    }
}

pub(crate) fn relay_workers(
    settings: &Settings,
    secrets: &LenderSecrets,
    keys: Keys,
    scheduler: &Scheduler,
    rooms: &Rooms,
) -> RelayWorkers {
    let lenders = LenderRules { secret: secrets.worker.clone(), keys };
    let relay = RelaySettings { lenders, heartbeat: settings.heartbeat };
    RelayWorkers::new(relay, scheduler.clone(), rooms.clone())
}

pub(crate) fn model_nodes(
    secrets: &LenderSecrets,
    keys: Keys,
    scheduler: &Scheduler,
) -> ModelNodes {
    let secret = secrets.node.clone();
    ModelNodes::new(NodeSettings { lenders: LenderRules { secret, keys } }, scheduler.clone())
}

/// The rooms: for servers that act as one those of the shared database, otherwise those of this machine's database.
pub(crate) fn rooms(settings: &Settings, stores: &Stores) -> anyhow::Result<Rooms> {
    let (of_rooms, now) = (room_settings(settings), Moment::now().wall_ms);
    if settings.shares_rooms() {
        return Ok(Rooms::open_in_fleet(Arc::clone(&stores.rooms), of_rooms, now));
    }
    let own: Arc<dyn RoomStore> = Arc::<SqliteStore>::clone(&stores.own);
    Ok(Rooms::open(own, of_rooms, now)?)
}

pub(crate) fn room_settings(settings: &Settings) -> rooms::Settings {
    rooms::Settings { idle: settings.room_idle }
}

pub(crate) fn room_permissions(settings: &Settings) -> RoomPermissions {
    RoomPermissions { open: settings.open_rooms, endpoints: settings.room_endpoints }
}

pub(crate) fn names(
    settings: &Settings,
    models: &KnownModels,
    rooms: &Rooms,
    by_message: Arc<MessageJobs>,
) -> Names {
    let rooms = RoomRules {
        rooms: rooms.clone(),
        permissions: Live::new(room_permissions(settings)),
        tls: settings.tls.is_some(),
        by_message,
    };
    let aliases = Live::new(settings.aliases.clone());
    Names { models: Arc::clone(&models.memory), aliases, rooms }
}

pub(crate) fn consumer_rules(settings: &Settings, keys: Keys) -> ConsumerRules {
    let Settings { require_key, open, local, .. } = settings;
    let local = LocalRules::clone(&local.get());
    ConsumerRules { keys, require_key: *require_key, open: *open, local }
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        max_body: settings.max_body,
        keepalive: settings.keepalive,
        drain: settings.drain,
        bodies: settings.dispatch.max_queued_bytes.saturating_mul(2),
        affinity: settings.routing == Routing::PrefixAffinity,
        route: settings.mesh.route,
        keep_responses: !settings.kept_responses.is_zero(),
        keep_unasked: settings.keep_unasked,
        resume_answers: settings.resume_answers,
    }
}
