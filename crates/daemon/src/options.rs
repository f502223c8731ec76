//! Settings as they are written. A flag wins over an environment variable, which wins over the file.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use access::Network;
use backend::Continues;
use base::{Currency, Secret};
use clap::{Args, builder::BoolishValueParser};
use serde::Deserialize;

/// A key of the configuration file, as its struct declares it. The settings reference is made from these.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name; in the file it may have hyphens.
    pub name: &'static str,
    /// The type of its field.
    pub kind: &'static str,
    /// The attributes of its field, each ended by a NUL; its documentation is among them.
    pub attributes: &'static str,
}

/// The possible ids of a setting's flag, the likelier first, such as `mesh_route` and `route` for `mesh.route`.
/// `section`: the name of the section whose command has the flag, which is empty for the server. `None` for settings
/// in deeper tables, which have no flags, and for settings outside of the section.
pub fn flag_ids(section: &str, name: &str) -> Option<[String; 2]> {
    let name = match section {
        "" => name,
        section => name.strip_prefix(section)?.strip_prefix('.')?,
    };
    let (_, key) = name.rsplit_once('.').unwrap_or(("", name));
    (name.matches('.').count() < 2).then(|| [name.replace('.', "_"), key.to_owned()])
}

/// A section of the file: a struct that knows its own keys.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)+ }) => {
        $(#[$meta])*
        pub struct $name { $($(#[$field_meta])* pub $field: $kind,)+ }

        impl $name {
            /// The keys that may stand in this section of the file.
            pub const KEYS: &'static [$crate::options::Key] = &[$($crate::options::Key {
                name: stringify!($field),
                kind: stringify!($kind),
                attributes: concat!($(stringify!($field_meta), "\0"),+),
            }),+];
        }

        impl $crate::options::listed::Setting for $name {
            fn list(&self, name: &str, into: &mut Vec<$crate::options::listed::ListedSetting>) {
                $(self.$field.list(&$crate::options::listed::below(name, stringify!($field)), into);)+
            }

            fn list_absent(name: &str, into: &mut Vec<$crate::options::listed::ListedSetting>) {
                $(<$kind as $crate::options::listed::Setting>::list_absent(
                    &$crate::options::listed::below(name, stringify!($field)), into,
                );)+
            }
        }
    };
}

/// A section whose settings may each come from a flag, the environment or the file.
macro_rules! options {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)+ }) => {
        section! {
            $(#[$meta])*
            #[derive(Debug, Clone, Default, Args, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            $name { $($(#[$field_meta])* $field: $kind,)+ }
        }

        impl $name {
            /// Fills settings that are not given with those of `other`.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)+ }
            }
        }
    };
}

pub mod heading;
pub mod listed;
mod values;
// These modules use the macros above, so they come after them.
mod cluster;
pub mod engines;
mod file;
mod mesh;
mod prices;
mod workspace;

pub use cluster::ClusterOptions;
pub use engines::{EngineCommand, EngineModelOptions, EngineOptions};
pub use file::{ConfigFile, home_directory};
pub use mesh::{MeshOptions, MeshRelayServe, MeshRoute, MeshShare, ShareOptions};
pub use prices::{PriceOptions, ProviderPriceOptions};
pub use values::{
    LendAs, LogFormat, ResumeAnswers, RoomEndpoints, Routing, Seconds, Span, listen_address,
};
pub use workspace::{AgentOptions, WorkspaceOptions};

use values::deserialize_listen;

options! {
    /// Settings of `warren serve`, as they were given: the defaults are in
    /// [`settings`](crate::settings).
    ServeOptions {
        /// Address and port for everything: HTTP and WebSocket [default: 127.0.0.1:9178]
        #[arg(long, env = "WARREN_LISTEN", value_name = "ADDR:PORT",
            value_parser = listen_address)]
        #[serde(deserialize_with = "deserialize_listen")]
        listen: Option<SocketAddr>,
        /// Directory of the database and the tokens [default: $XDG_DATA_HOME/warren; as root
        /// /var/lib/warren]
        #[arg(long, env = "WARREN_DATA_DIR", value_name = "DIR", hide_short_help = true)]
        data_dir: Option<PathBuf>,
        /// A PostgreSQL database in which this server shares keys, usage and the audit log with others
        /// [default: the data directory's own]
        ///
        /// postgres://USER:PASSWORD@HOST/NAME. Better in the environment or the file than on a command line, which
        /// other users see.
        #[arg(long, env = "WARREN_DATABASE", value_name = "URL", hide_env_values = true,
            hide_short_help = true)]
        database: Option<Secret>,
        /// NATS servers over which this server and others act as one: each uses the workers of all
        /// [default: it works alone]
        ///
        /// nats://USER:PASSWORD@HOST:4222, or tls://…; several with commas between them. A path is the group.
        /// In the file it is called fleet: the table cluster there is the workspace's. Better in the environment or the file
        /// than on a command line, which other users see.
        #[arg(id = "fleet", long = "cluster", env = "WARREN_CLUSTER", value_name = "URL", hide_env_values = true,
            hide_short_help = true)]
        fleet: Option<Secret>,
        /// Which of the servers at these NATS servers act as one: those of this group [default: warren]
        #[arg(id = "fleet_group", long = "cluster-group", env = "WARREN_CLUSTER_GROUP", value_name = "NAME",
            hide_short_help = true)]
        fleet_group: Option<String>,
        /// The name of this server among those that act as one; each has its own, and keeps it
        /// [default: the host name and the port]
        #[arg(long, env = "WARREN_SERVER_NAME", value_name = "NAME", hide_short_help = true)]
        server_name: Option<String>,
        /// The secret that workers present [default: worker.secret in the data directory, made at
        /// the first start]
        #[arg(long, env = "WARREN_WORKER_SECRET", value_name = "SECRET", hide_env_values = true,
            help_heading = heading::ACCESS, hide_short_help = true)]
        worker_secret: Option<Secret>,
        /// A token that model nodes may present instead of a key of scope worker [default: none]
        #[arg(long, env = "WARREN_NODE_TOKEN", value_name = "TOKEN", hide_env_values = true,
            help_heading = heading::ACCESS, hide_short_help = true)]
        node_token: Option<Secret>,
        /// One ready-made key for consumers
        #[arg(long, env = "WARREN_CLIENT_TOKEN", value_name = "KEY", hide_env_values = true,
            help_heading = heading::ACCESS, hide_short_help = true)]
        client_token: Option<Secret>,
        /// The administrator's token, for /admin [default: admin.token in the data directory, made
        /// at the first start]
        #[arg(long, env = "WARREN_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true,
            help_heading = heading::ACCESS, hide_short_help = true)]
        admin_token: Option<Secret>,
        /// Jobs that may wait for one model; one key may fill half of these places [default: 100]
        #[arg(long, env = "WARREN_MAX_QUEUE_LEN", value_name = "N",
            help_heading = heading::LIMITS, hide_short_help = true)]
        max_queue_len: Option<usize>,
        /// How long a job may wait while no worker that can serve it is connected [default: 30]
        #[arg(long, env = "WARREN_QUEUE_TIMEOUT_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        queue_timeout_secs: Option<Seconds>,
        /// How long a job may wait for connected workers that are busy [default: 600]
        #[arg(long, env = "WARREN_BUSY_TIMEOUT_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        busy_timeout_secs: Option<Seconds>,
        /// How long a worker may take until its answer begins [default: 300]
        #[arg(long, env = "WARREN_REQUEST_TIMEOUT_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        request_timeout_secs: Option<Seconds>,
        /// How long an answer that has begun may pause [default: 300]
        #[arg(long, env = "WARREN_IDLE_TIMEOUT_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        idle_timeout_secs: Option<Seconds>,
        /// How often workers are pinged; three silent intervals are a lost worker [default: 15]
        #[arg(long, env = "WARREN_HEARTBEAT_INTERVAL_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        heartbeat_interval_secs: Option<Seconds>,
        /// How often a job may lose its worker and get another before it fails [default: 3]
        #[arg(long, env = "WARREN_MAX_REQUEUE_COUNT", value_name = "N",
            help_heading = heading::LIMITS, hide_short_help = true)]
        max_requeue_count: Option<u32>,
        /// What is done with a streamed answer whose worker is lost: another worker of the same model goes on
        /// with it, or it ends with an error [default: same-model]
        #[arg(long, env = "WARREN_RESUME_ANSWERS", value_name = "HOW",
            help_heading = heading::LIMITS, hide_short_help = true)]
        resume_answers: Option<ResumeAnswers>,
        /// The largest request body [default: 100]
        #[arg(long, env = "WARREN_MAX_BODY_MIB", value_name = "MIB",
            help_heading = heading::LIMITS, hide_short_help = true)]
        max_body_mib: Option<usize>,
        /// The size of all bodies of waiting jobs together [default: 1024]
        #[arg(long, env = "WARREN_MAX_QUEUED_MIB", value_name = "MIB",
            help_heading = heading::LIMITS, hide_short_help = true)]
        max_queued_mib: Option<u64>,
        /// How long a stop, or the drain of a worker, waits for what is in flight [default: 30]
        #[arg(long, env = "WARREN_DRAIN_TIMEOUT_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        drain_timeout_secs: Option<Seconds>,
        /// A host name by which this server is reached locally (repeatable)
        #[arg(long, env = "WARREN_ALLOW_HOST", value_name = "HOST", value_delimiter = ',',
            help_heading = heading::NETWORK, hide_short_help = true)]
        allow_host: Option<Vec<String>>,
        /// An origin whose web pages may use this server without a key (repeatable)
        #[arg(long, env = "WARREN_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',',
            help_heading = heading::NETWORK, hide_short_help = true)]
        allow_origin: Option<Vec<String>>,
        /// A reverse proxy, as an address or a network such as 10.0.0.0/8 (repeatable): the client that its
        /// X-Forwarded-For or Forwarded names is the one whose wrong tokens and codes are counted
        #[arg(long, env = "WARREN_TRUSTED_PROXIES", value_name = "ADDRESS", value_delimiter = ',',
            help_heading = heading::NETWORK, hide_short_help = true)]
        trusted_proxies: Option<Vec<Network>>,
        /// Certificate chain for TLS, PEM
        #[arg(long, env = "WARREN_TLS_CERT", value_name = "FILE", help_heading = heading::NETWORK,
            hide_short_help = true)]
        tls_cert: Option<PathBuf>,
        /// Private key for TLS, PEM
        #[arg(long, env = "WARREN_TLS_KEY", value_name = "FILE", help_heading = heading::NETWORK,
            hide_short_help = true)]
        tls_key: Option<PathBuf>,
        /// How log lines look [default: human]
        #[arg(long, env = "WARREN_LOG_FORMAT", value_name = "FORMAT",
            help_heading = heading::LOGGING, hide_short_help = true)]
        log_format: Option<LogFormat>,
        /// What is logged: a level, or a filter such as info,wire=debug [default: info]
        #[arg(long, env = "WARREN_LOG", value_name = "FILTER", help_heading = heading::LOGGING,
            hide_short_help = true)]
        log: Option<String>,
        /// A collector of OpenTelemetry that traces of requests are sent to, by OTLP over HTTP, such as http://localhost:4318
        /// [default: none]
        #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", help_heading = heading::LOGGING,
            hide_short_help = true)]
        otlp_endpoint: Option<String>,
        /// Headers for the collector: name=value, with commas between
        #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", value_name = "HEADERS", hide_env_values = true,
            help_heading = heading::LOGGING, hide_short_help = true)]
        otlp_headers: Option<Secret>,
        /// The share of requests that are traced, from 0 to 1, if their clients do not decide it [default: 1]
        #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", value_name = "SHARE", help_heading = heading::LOGGING,
            hide_short_help = true)]
        otlp_sample: Option<f64>,
        /// A stream that is silent for this long, its wait for a head included, gets a comment as a
        /// sign of life; 0: never [default: 15]
        #[arg(long, env = "WARREN_SSE_KEEPALIVE_SECS", value_name = "SECONDS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        sse_keepalive_secs: Option<Seconds>,
        /// How a worker is chosen among several that are free [default: prefix-affinity]
        #[arg(long, env = "WARREN_ROUTING", value_name = "POLICY", help_heading = heading::LIMITS,
            hide_short_help = true)]
        routing: Option<Routing>,
        /// Whether usage is recorded: a row for each request, without its content [default: true]
        #[arg(long, env = "WARREN_LEDGER", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new(), help_heading = heading::LOGGING,
            hide_short_help = true)]
        ledger: Option<bool>,
        /// How long usage is kept; 0: for ever [default: 365]
        #[arg(long, env = "WARREN_USAGE_RETENTION_DAYS", value_name = "DAYS",
            help_heading = heading::LOGGING, hide_short_help = true)]
        usage_retention_days: Option<u32>,
        /// How long responses and conversations are kept that clients ask to keep; 0: none is [default: 30]
        #[arg(long, env = "WARREN_KEEP_RESPONSES_DAYS", value_name = "DAYS",
            help_heading = heading::LIMITS, hide_short_help = true)]
        keep_responses_days: Option<u32>,
        /// Keep responses also if a request does not say `store`, as OpenAI does
        #[arg(long, env = "WARREN_STORE_RESPONSES", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new(), help_heading = heading::LIMITS,
            hide_short_help = true)]
        store_responses: Option<bool>,
        /// Require a key of local consumers, too
        #[arg(long, env = "WARREN_REQUIRE_KEY", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        require_key: Option<bool>,
        /// Let anybody on other machines make rooms, without a key of scope rooms
        #[arg(long, env = "WARREN_OPEN_ROOMS", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new(), help_heading = heading::ROOMS,
            hide_short_help = true)]
        open_rooms: Option<bool>,
        /// Which endpoints this server calls for participants of rooms [default: self]
        #[arg(long, env = "WARREN_ROOM_ENDPOINTS", value_name = "WHOSE",
            help_heading = heading::ROOMS, hide_short_help = true)]
        room_endpoints: Option<RoomEndpoints>,
        /// A room ends when nobody has used it for this long [default: 604800, a week]
        #[arg(long, env = "WARREN_ROOM_IDLE_SECS", value_name = "SECONDS",
            help_heading = heading::ROOMS, hide_short_help = true)]
        room_idle_secs: Option<Seconds>,
        /// Serve consumers beyond loopback without a key
        #[arg(long, env = "WARREN_OPEN", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new(), help_heading = heading::ACCESS,
            hide_short_help = true)]
        open: Option<bool>,
        /// Let this server be found on the local network, by mDNS; false: never
        /// [default: while machines may look for it]
        #[arg(hide_short_help = true)]
        #[arg(long, env = "WARREN_MDNS", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        mdns: Option<bool>,
        /// The mesh: `[mesh]` in the file
        #[command(flatten)]
        #[serde(skip)]
        mesh: MeshOptions,
        /// The workspace: `[workspace]` in the file
        #[command(flatten)]
        #[serde(skip)]
        workspace: WorkspaceOptions,
        /// The workspace cluster: `[cluster]` in the file
        #[command(flatten)]
        #[serde(skip)]
        cluster: ClusterOptions,
        /// The servers that commands speak to, unless --server or WARREN_SERVER names some: those of the
        /// workspace try each, the others the first [default: the one that runs here]
        #[arg(skip)]
        server: Option<Vec<String>>,
        /// Names that stand for models: `[models."NAME"]` in the file
        #[arg(skip)]
        models: Option<BTreeMap<String, AliasOptions>>,
        /// The currency of prices and of budgets in money [default: that of the prices, or USD]
        #[arg(long, env = "WARREN_CURRENCY", value_name = "CODE", help_heading = heading::LOGGING,
            hide_short_help = true)]
        currency: Option<Currency>,
        /// What models cost: `[prices."MODEL"]` in the file
        #[arg(skip)]
        prices: Option<BTreeMap<String, PriceOptions>>,
    }
}

options! {
    /// Settings of `warren worker` beside its [`ProcessOptions`], and of `[worker]` in the file.
    WorkerOptions {
        /// A server to lend to [default: the one that runs here]
        ///
        /// Its address, http(s):// or ws(s)://; repeatable.
        #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',',
            help_heading = heading::LENDING)]
        server: Option<Vec<String>>,
        /// The protocol to speak with the server [default: relay]
        #[arg(long, env = "WARREN_PROTOCOL", value_name = "PROTOCOL",
            help_heading = heading::LENDING, hide_short_help = true)]
        protocol: Option<LendAs>,
        /// The server's worker secret, or its node token [default: worker.secret in this machine's
        /// data directory]
        #[arg(long, env = "WARREN_SECRET", value_name = "SECRET", hide_env_values = true,
            help_heading = heading::LENDING, hide_short_help = true)]
        secret: Option<Secret>,
        /// The provider to lend under, on a stock relay server that has several [default: the
        /// server's own]
        #[arg(long, env = "WARREN_PROVIDER", value_name = "NAME", help_heading = heading::LENDING,
            hide_short_help = true)]
        provider: Option<String>,
        /// A model server to lend, such as http://127.0.0.1:11434 (repeatable) [default: those
        /// found on this machine]
        #[arg(long, env = "WARREN_BACKEND", value_name = "URL", value_delimiter = ',',
            help_heading = heading::MODELS)]
        backend: Option<Vec<String>>,
        /// A file of certificates that backends may show, beside those that this machine trusts
        #[arg(long, env = "WARREN_BACKEND_CA", value_name = "FILE",
            help_heading = heading::MODELS, hide_short_help = true)]
        backend_ca: Option<PathBuf>,
        /// The models to offer (a=b: b as a), or a folder of model files [default: all]
        ///
        /// A text that begins with ./, ../, ~/ or /, ends with /, or names a folder while no --backend is given, is
        /// a folder: Warren runs a model server for its files.
        #[arg(long, visible_alias = "model", env = "WARREN_MODELS", value_name = "MODEL,…",
            value_delimiter = ',', help_heading = heading::MODELS)]
        models: Option<Vec<String>>,
        /// Serve a model file, or a folder of them
        ///
        /// Repeatable.
        #[arg(long, env = "WARREN_GGUF", value_name = "FILE", value_delimiter = ',',
            help_heading = heading::MODELS)]
        gguf: Option<Vec<PathBuf>>,
        /// The program that serves model files [default: llama-server]
        #[arg(long, env = "WARREN_ENGINE", value_name = "COMMAND", help_heading = heading::MODELS,
            hide_short_help = true)]
        engine: Option<EngineCommand>,
        /// The APIs that the backend serves, such as /v1/chat/completions; others are translated
        /// [default: the backend is asked]
        #[arg(long, env = "WARREN_ENDPOINTS", value_name = "PATH,…", value_delimiter = ',',
            help_heading = heading::MODELS, hide_short_help = true)]
        endpoints: Option<Vec<String>>,
        /// How long a context an Ollama is to give its models, in tokens [default: Ollama's own]
        #[arg(long, env = "WARREN_CONTEXT", value_name = "TOKENS",
            help_heading = heading::MODELS, hide_short_help = true)]
        context: Option<u64>,
        /// Jobs that one backend takes at once [default: 4]
        #[arg(long, env = "WARREN_MAX_CONCURRENT", alias = "max-concurrency", value_name = "N",
            help_heading = heading::MODELS, hide_short_help = true)]
        max_concurrent: Option<u32>,
        /// The name that the server shows [default: the host name]
        #[arg(long, env = "WARREN_NAME", value_name = "NAME", help_heading = heading::MODELS,
            hide_short_help = true)]
        name: Option<String>,
        /// The backend's own API key
        #[arg(long, env = "WARREN_API_KEY", value_name = "KEY", hide_env_values = true,
            help_heading = heading::MODELS, hide_short_help = true)]
        api_key: Option<Secret>,
        /// Lend the built-in demo, which runs no model, instead of a backend
        #[arg(long, env = "WARREN_DEMO", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new(), help_heading = heading::MODELS)]
        demo: Option<bool>,
        /// Words a second of the demo; 0: as fast as it can [default: 30]
        #[arg(long, env = "WARREN_DEMO_PACE", value_name = "N", help_heading = heading::MODELS,
            hide_short_help = true)]
        demo_pace: Option<u32>,
        /// Backends with settings of their own: `[[worker.backends]]` in the file
        #[arg(skip)]
        backends: Option<Vec<BackendOptions>>,
        /// Model servers that this machine runs itself: `[[worker.engines]]` in the file
        #[arg(skip)]
        engines: Option<Vec<EngineOptions>>,
    }
}

/// The settings that `warren worker` shares with the server: one key of the file sets both.
#[derive(Debug, Clone, Default, Args)]
pub struct ProcessOptions {
    /// Directory of a server's data on this machine, where its worker secret is [default:
    /// $XDG_DATA_HOME/warren; as root /var/lib/warren]
    #[arg(long, env = "WARREN_DATA_DIR", value_name = "DIR", hide_short_help = true)]
    pub data_dir: Option<PathBuf>,
    /// How long a stop waits for what is in flight [default: 30]
    #[arg(long, env = "WARREN_DRAIN_TIMEOUT_SECS", value_name = "SECONDS",
        help_heading = heading::LIMITS, hide_short_help = true)]
    pub drain_timeout_secs: Option<Seconds>,
    /// How log lines look [default: human]
    #[arg(long, env = "WARREN_LOG_FORMAT", value_name = "FORMAT", help_heading = heading::LOGGING,
        hide_short_help = true)]
    pub log_format: Option<LogFormat>,
    /// What is logged: a level, or a filter such as info,wire=debug [default: info]
    #[arg(long, env = "WARREN_LOG", value_name = "FILTER", help_heading = heading::LOGGING,
        hide_short_help = true)]
    pub log: Option<String>,
    /// A collector of OpenTelemetry that traces of requests are sent to, by OTLP over HTTP, such as http://localhost:4318
    /// [default: none]
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", help_heading = heading::LOGGING,
        hide_short_help = true)]
    pub otlp_endpoint: Option<String>,
    /// Headers for the collector: name=value, with commas between
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", value_name = "HEADERS", hide_env_values = true,
        help_heading = heading::LOGGING, hide_short_help = true)]
    pub otlp_headers: Option<Secret>,
    /// The share of requests that are traced, from 0 to 1, if their clients do not decide it [default: 1]
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", value_name = "SHARE", help_heading = heading::LOGGING,
        hide_short_help = true)]
    pub otlp_sample: Option<f64>,
}

impl From<ProcessOptions> for ServeOptions {
    fn from(process: ProcessOptions) -> Self {
        Self {
            data_dir: process.data_dir,
            drain_timeout_secs: process.drain_timeout_secs,
            log_format: process.log_format,
            log: process.log,
            otlp_endpoint: process.otlp_endpoint,
            otlp_headers: process.otlp_headers,
            otlp_sample: process.otlp_sample,
            ..Self::default()
        }
    }
}

section! {
    /// One `[[worker.backends]]` of the file.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    BackendOptions {
        /// The URL of the backend.
        url: String,
        /// The backend's own API key.
        api_key: Option<Secret>,
        /// The variable of the environment that has the API key.
        api_key_env: Option<String>,
        /// A file that has the API key; it is read again when it changes. Others may not write it.
        api_key_file: Option<PathBuf>,
        /// Whether it is a provider of others: a last resort, for when no machine of one's own can answer.
        cloud: Option<bool>,
        /// A file of certificates that it may show, beside those that this machine trusts.
        ca: Option<PathBuf>,
        /// The models to offer; a=b offers the backend's b as a [default: all that the backend
        /// lists]
        models: Option<Vec<String>>,
        /// How long a context its models are to have, in tokens. It is for Ollama, which is then asked in its own
        /// API: others are started with one [default: Ollama's own]
        context: Option<u64>,
        /// Jobs that the backend takes at once; a cloud takes 64.
        max_concurrent: Option<u32>,
        /// The APIs that the backend serves, by their paths [default: the backend is asked]
        endpoints: Option<Vec<String>>,
        /// How the backend goes on with an answer that another one has begun: last-message, as llama.cpp does;
        /// final-message, as vLLM does; no [default: the backend is asked]
        continues: Option<Continues>,
    }
}

section! {
    /// One `[models."NAME"]` of the file.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    AliasOptions {
        /// The models that it stands for, the preferred one first.
        targets: Vec<String>,
        /// Parameters that a request gets unless it has one of that name.
        #[serde(default)]
        defaults: BTreeMap<String, serde_json::Value>,
    }
}

options! {
    /// Settings of `warren room`, and of `[room]` in the file.
    RoomOptions {
        /// A server of rooms [default: the one that runs here]
        ///
        /// Repeatable.
        #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',',
            help_heading = heading::SERVER)]
        server: Option<Vec<String>>,
        /// Look for servers on the local network, too, by mDNS; anybody there can answer
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
            value_name = "BOOL", value_parser = BoolishValueParser::new(), hide_short_help = true,
            help_heading = heading::SERVER)]
        mdns: Option<bool>,
        /// A key of the server, for making rooms and listing its own: of scope rooms or admin
        #[arg(long, env = "WARREN_TOKEN", value_name = "KEY", hide_env_values = true,
            hide_short_help = true, help_heading = heading::SERVER)]
        token: Option<Secret>,
    }
}

#[cfg(test)]
mod tests;
