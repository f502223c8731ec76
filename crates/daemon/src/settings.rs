//! The settings of a server: their defaults and checks.

mod cluster;
mod fleet;
mod mesh;
mod prices;
mod values;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use access::{LocalRules, Prices, TrustedProxies};
use anyhow::{Context, bail};
use api::Aliases;
use base::{Fingerprint, Live, ResumeAnswers, Secret, system::is_administrator};
use rustls::ServerConfig;

use crate::{
    configuration::Configuration,
    options::{
        AliasOptions, LogFormat, RoomEndpoints, Routing, Seconds, ServeOptions, WorkspaceOptions,
        home_directory,
    },
    system::DATA_HOME,
    telemetry::tracing_export::TraceSettings,
    workspace_settings::{self, WorkspaceSettings},
};

pub use self::cluster::ClusterSettings;
pub use self::fleet::FleetSettings;
pub use self::mesh::{MESH_PORT, MeshSettings};
pub(crate) use self::prices::prices;

/// The default port of a server, for HTTP and WebSockets alike.
pub const PORT: u16 = wire::server_url::PORT;

/// The default of `--max-body-mib`.
const MAX_BODY_MIB: usize = 100;
/// The default of `--usage-retention-days`.
const RETENTION_DAYS: u32 = 365;
/// The default of `--keep-responses-days`.
const KEPT_RESPONSES_DAYS: u32 = 30;
/// The default of `--heartbeat-interval-secs`.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The default of `--sse-keepalive-secs`.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// The default of `--drain-timeout-secs`, for servers and workers.
pub const DRAIN: Duration = Duration::from_secs(30);
/// The default of `--room-idle-secs`.
const ROOM_IDLE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The default of `--log`.
pub const LOG: &str = "info";

/// All settings of a server, each with its value.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the database and the tokens are.
    pub data_dir: PathBuf,
    /// The database that it shares with other servers.
    pub database: Option<Secret>,
    /// The fleet, if it acts as one with other servers.
    pub fleet: Option<FleetSettings>,
    /// The secret that workers present, unless it is the data directory's.
    pub worker_secret: Option<Secret>,
    /// A token for model nodes, beside keys.
    pub node_token: Option<Secret>,
    /// The ready-made key of consumers.
    pub client_token: Option<Secret>,
    /// Whether a key for consumers is made and kept in the data directory if none is given.
    pub keep_client_token: bool,
    /// The administrator's token, unless it is the data directory's.
    pub admin_token: Option<Secret>,
    /// Bounds and delays of the dispatcher.
    pub dispatch: dispatch::Config,
    /// How a worker is chosen.
    pub routing: Routing,
    /// How often workers are pinged.
    pub heartbeat: Duration,
    /// Whether a streamed answer is resumed when its provider is lost.
    pub resume_answers: ResumeAnswers,
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// How long a stop of the server, or the drain of a worker, waits.
    pub drain: Duration,
    /// A stream that is silent for this long gets a comment; zero: never.
    pub keepalive: Duration,
    /// Which requests are local. The parts share this handle.
    pub local: Live<LocalRules>,
    /// Names that stand for models.
    pub aliases: Aliases,
    /// The prices of models.
    pub prices: Arc<Prices>,
    /// How long usage is kept; zero: for ever.
    pub usage_retention: Duration,
    /// How long stored responses and conversations are kept; zero: none are kept.
    pub kept_responses: Duration,
    /// Whether responses are kept if their requests do not say `store`.
    pub keep_unasked: bool,
    /// Whether usage is recorded.
    pub ledger: bool,
    /// Whether local consumers need a key.
    pub require_key: bool,
    /// Whether consumers on other machines need no key.
    pub open: bool,
    /// Whether anybody may make rooms.
    pub open_rooms: bool,
    /// Which endpoints are called for participants.
    pub room_endpoints: rooms::Endpoints,
    /// How long a room may be unused before it ends.
    pub room_idle: Duration,
    /// Whether the server is announced on the local network; `None`: while machines may be looking for it.
    pub mdns: Option<bool>,
    /// The mesh.
    pub mesh: MeshSettings,
    /// The workspace, unless it is turned off.
    pub workspace: Option<WorkspaceSettings>,
    /// The workspace cluster.
    pub cluster: ClusterSettings,
    /// The loaded certificate chain and key. The listeners share this handle.
    pub tls: Option<Live<ServerConfig>>,
    /// The file of the certificate chain.
    pub tls_certificate: Option<PathBuf>,
    /// The file of its key.
    pub tls_key: Option<PathBuf>,
    /// The fingerprint of the server's certificate.
    pub fingerprint: Option<Fingerprint>,
    /// How log lines look.
    pub log_format: LogFormat,
    /// The log filter.
    pub log: String,
    /// Whether requests are traced, and where their spans go.
    pub tracing: Option<TraceSettings>,
    /// The settings as they were given, and where each is from. Empty unless the caller sets it.
    pub configuration: Configuration,
}

impl Settings {
    /// Whether it shares rooms with other servers: for that, they need the same database and a way to each other.
    pub(crate) fn shares_rooms(&self) -> bool {
        self.fleet.is_some() && self.database.is_some()
    }

    /// Fills in defaults and checks the options. `keep_client_token`: if no key for consumers is given, one is made
    /// and kept in the data directory.
    ///
    /// # Errors
    /// When options contradict each other, the TLS files cannot be used, or other machines would be served
    /// without credentials.
    pub fn new(options: ServeOptions, keep_client_token: bool) -> anyhow::Result<Self> {
        let listen = options.listen.unwrap_or((Ipv4Addr::LOCALHOST, PORT).into());
        let open = options.open.unwrap_or(false);
        // With --require-key the server is safe even before the first key is made.
        let require_key = options.require_key.unwrap_or(false);
        let has_key = options.client_token.is_some() || keep_client_token || require_key;
        refuse_defenceless(listen, has_key, open)?;
        let data_dir = data_dir(options.data_dir.clone())?;
        Ok(Self {
            listen,
            tracing: TraceSettings::of(&options)?,
            tls: tls(options.tls_cert.as_deref(), options.tls_key.as_deref())?.map(Live::new),
            tls_certificate: options.tls_cert.clone(),
            tls_key: options.tls_key.clone(),
            fingerprint: options.tls_cert.as_deref().map(wire::tls::fingerprint).transpose()?,
            workspace: workspace(options.workspace.clone(), &data_dir)?,
            dispatch: dispatch_config(&options)?,
            routing: options.routing.unwrap_or_default(),
            heartbeat: heartbeat(options.heartbeat_interval_secs)?,
            resume_answers: options.resume_answers.unwrap_or_default().into(),
            max_body: options.max_body_mib.unwrap_or(MAX_BODY_MIB).saturating_mul(1024 * 1024),
            drain: seconds(options.drain_timeout_secs, DRAIN),
            keepalive: seconds(options.sse_keepalive_secs, KEEPALIVE),
            local: Live::new(LocalRules {
                allowed_hosts: options.allow_host.unwrap_or_default(),
                allowed_origins: options.allow_origin.unwrap_or_default(),
                trusted_proxies: TrustedProxies::new(options.trusted_proxies.unwrap_or_default()),
            }),
            aliases: aliases(options.models.unwrap_or_default())?,
            prices: Arc::new(prices(options.currency, options.prices.as_ref())?),
            ledger: options.ledger.unwrap_or(true),
            usage_retention: days(options.usage_retention_days.unwrap_or(RETENTION_DAYS)),
            kept_responses: days(options.keep_responses_days.unwrap_or(KEPT_RESPONSES_DAYS)),
            keep_unasked: options.store_responses.unwrap_or(false),
            require_key,
            open,
            mdns: options.mdns,
            mesh: MeshSettings::new(options.mesh, open, &data_dir)?,
            data_dir,
            cluster: ClusterSettings::new(options.cluster, listen)?,
            open_rooms: options.open_rooms.unwrap_or(false),
            room_endpoints: room_endpoints(options.room_endpoints.unwrap_or_default()),
            room_idle: room_idle(options.room_idle_secs)?,
            fleet: FleetSettings::new(options.fleet, options.fleet_group, options.server_name)?,
            database: secret(options.database, "database")?,
            worker_secret: secret(options.worker_secret, "worker-secret")?,
            node_token: secret(options.node_token, "node-token")?,
            client_token: secret(options.client_token, "client-token")?,
            keep_client_token,
            admin_token: secret(options.admin_token, "admin-token")?,
            log_format: options.log_format.unwrap_or_default(),
            log: options.log.unwrap_or_else(|| LOG.to_owned()),
            configuration: Configuration::default(),
        })
    }
}

fn workspace(
    options: WorkspaceOptions,
    data_dir: &Path,
) -> anyhow::Result<Option<WorkspaceSettings>> {
    let token = secret(options.token, "workspace-token")?;
    workspace_settings::settings(WorkspaceOptions { token, ..options }, data_dir)
}

fn aliases(models: BTreeMap<String, AliasOptions>) -> anyhow::Result<Aliases> {
    let named = models.into_iter().map(|(name, alias)| (name, alias.targets, alias.defaults));
    Aliases::new(named).context("in the configuration file")
}

/// The given data directory, or the default one.
///
/// # Errors
/// When there is no home directory to put it in.
pub fn data_dir(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given);
    }
    if is_administrator() && std::env::var_os("XDG_DATA_HOME").is_none() {
        return Ok(PathBuf::from("/var/lib/warren"));
    }
    home_directory("XDG_DATA_HOME", DATA_HOME)
        .context("there is no home directory for the data: give one with --data-dir")
}

fn refuse_defenceless(listen: SocketAddr, has_key: bool, open: bool) -> anyhow::Result<()> {
    if listen.ip().is_loopback() || has_key || open {
        return Ok(());
    }
    bail!(
        "{listen} can be reached from other machines, and no credentials are set: give consumers \
         a key with --client-token KEY, ask everybody for one of `warren key create` with \
         --require-key, or serve everybody with --open"
    )
}

/// The TLS configuration of a certificate chain and its key, PEM.
pub(crate) fn tls(
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> anyhow::Result<Option<Arc<ServerConfig>>> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(wire::tls::server_config(certificate, key)?)),
        _ => bail!("TLS needs both --tls-cert and --tls-key"),
    }
}

fn dispatch_config(options: &ServeOptions) -> anyhow::Result<dispatch::Config> {
    let defaults = dispatch::Config::default();
    let max_queued_bytes =
        options.max_queued_mib.map_or(defaults.max_queued_bytes, |mib| mib.saturating_mul(1 << 20));
    let config = dispatch::Config {
        max_queue_len: options.max_queue_len.unwrap_or(defaults.max_queue_len),
        max_queued_bytes,
        queue_timeout: seconds(options.queue_timeout_secs, defaults.queue_timeout),
        busy_timeout: seconds(options.busy_timeout_secs, defaults.busy_timeout),
        request_timeout: seconds(options.request_timeout_secs, defaults.request_timeout),
        idle_timeout: seconds(options.idle_timeout_secs, defaults.idle_timeout),
        max_requeue_count: options.max_requeue_count.unwrap_or(defaults.max_requeue_count),
        ..defaults
    };
    if config.request_timeout.is_zero() || config.idle_timeout.is_zero() {
        bail!("--request-timeout-secs and --idle-timeout-secs must be over 0");
    }
    Ok(config)
}

fn heartbeat(given: Option<Seconds>) -> anyhow::Result<Duration> {
    let heartbeat = seconds(given, HEARTBEAT);
    // A stock worker gives up a server that is silent for 90 s.
    if heartbeat.is_zero() || heartbeat > Duration::from_secs(60) {
        bail!("--heartbeat-interval-secs must be over 0 and at most 60");
    }
    Ok(heartbeat)
}

fn room_endpoints(given: RoomEndpoints) -> rooms::Endpoints {
    match given {
        RoomEndpoints::Off => rooms::Endpoints::Off,
        RoomEndpoints::Own => rooms::Endpoints::Own,
        RoomEndpoints::Any => rooms::Endpoints::Any,
    }
}

fn room_idle(given: Option<Seconds>) -> anyhow::Result<Duration> {
    let idle = seconds(given, ROOM_IDLE);
    if idle.is_zero() {
        bail!("--room-idle-secs must be over 0");
    }
    Ok(idle)
}

pub(crate) fn seconds(given: Option<Seconds>, default: Duration) -> Duration {
    given.map_or(default, |Seconds(duration)| duration)
}

fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

/// A secret from a flag, the environment or the file, if it can be presented.
///
/// # Errors
/// When it is empty, or has several lines.
pub fn secret(given: Option<Secret>, flag: &str) -> anyhow::Result<Option<Secret>> {
    given.map(Secret::usable).transpose().map_err(|why| anyhow::anyhow!("--{flag} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(address: &str) -> ServeOptions {
        let directory = Some(PathBuf::from("/tmp"));
        let listen = Some(address.parse().unwrap());
        ServeOptions { listen, data_dir: directory, ..ServeOptions::default() }
    }

    #[test]
    fn a_server_beyond_loopback_needs_credentials() {
        assert!(Settings::new(listening("127.0.0.1:0"), false).is_ok());
        assert!(Settings::new(listening("[::1]:0"), false).is_ok());
        let error = Settings::new(listening("0.0.0.0:0"), false).unwrap_err().to_string();
        assert!(error.contains("--client-token"), "{error}");
        assert!(Settings::new(listening("0.0.0.0:0"), true).is_ok());
        let keyed = ServeOptions { client_token: Some("k".into()), ..listening("0.0.0.0:0") };
        assert!(Settings::new(keyed, false).is_ok());
        let asking = ServeOptions { require_key: Some(true), ..listening("0.0.0.0:0") };
        assert!(Settings::new(asking, false).is_ok());
        let open = ServeOptions { open: Some(true), ..listening("0.0.0.0:0") };
        assert!(Settings::new(open, false).is_ok());
    }

    #[test]
    fn contradictions_are_refused() {
        let half = ServeOptions { tls_cert: Some("c.pem".into()), ..listening("127.0.0.1:0") };
        assert!(Settings::new(half, false).is_err());
        let missing = Some(PathBuf::from("/nowhere.pem"));
        let (tls_cert, tls_key) = (missing.clone(), missing);
        let unread = ServeOptions { tls_cert, tls_key, ..listening("127.0.0.1:0") };
        assert!(Settings::new(unread, false).is_err());
        let empty = ServeOptions { worker_secret: Some(" ".into()), ..listening("127.0.0.1:0") };
        let error = Settings::new(empty, false).unwrap_err().to_string();
        assert_eq!(error, "--worker-secret is empty");
        let workspace = WorkspaceOptions { token: Some(" ".into()), ..WorkspaceOptions::default() };
        let empty = ServeOptions { workspace, ..listening("127.0.0.1:0") };
        let error = Settings::new(empty, false).unwrap_err().to_string();
        assert_eq!(error, "--workspace-token is empty");
        let lines = ServeOptions { client_token: Some("a\nb".into()), ..listening("127.0.0.1:0") };
        let error = Settings::new(lines, false).unwrap_err().to_string();
        assert!(error.starts_with("--client-token has a line break"), "{error}");
        assert!(!error.contains("a\nb"), "{error}");
        let still = Some(Seconds(Duration::ZERO));
        let still = ServeOptions { heartbeat_interval_secs: still, ..listening("127.0.0.1:0") };
        assert!(Settings::new(still, false).is_err());
    }
}
