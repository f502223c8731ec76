//! The configuration of a worker: its servers and its backends.

use std::{fmt, sync::Arc, time::Duration};

use backend::{BackendConfig, DemoConfig, ModelEngines};
use base::{Fingerprint, Secret, redact_url};
use protocol::{node, room::tunnel::CANCELS};
use traces::Traces;
use url::Url;
use wire::server_url;

use crate::room::JoinRoom;

/// The configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Its name, for people. With several backends, the name of each link adds the backend.
    pub name: String,
    /// The servers to lend to, all at the same time.
    pub servers: Vec<ServerTarget>,
    /// The backends to lend.
    pub backends: Vec<Lend>,
    /// Further names for models. An alias is offered while the backend has one of its targets.
    pub aliases: Arc<[LentAlias]>,
    /// The protocol towards the servers.
    pub protocol: Protocol,
    /// How often each backend is asked for its models.
    pub poll_interval: Duration,
    /// How long requests in flight may take to finish when the worker is to end.
    pub drain_timeout: Duration,
    /// How often a tunnel into a room sends a heartbeat. Stock servers give a participant up after
    /// 30 s without one.
    pub heartbeat: Duration,
    /// How long a job waits for a backend that takes no requests, on links whose server cannot keep the job
    /// in its own queue. By default, as long as a server waits for an absent worker.
    pub patience: Duration,
    /// Where the spans go of jobs that their server traces; `None`: no spans are recorded.
    pub traces: Option<Traces>,
}

impl WorkerConfig {
    /// A worker without servers and backends, and with the default bounds.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            servers: Vec::new(),
            backends: Vec::new(),
            aliases: Arc::default(),
            protocol: Protocol::default(),
            poll_interval: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            traces: None,
        }
    }
}

/// A name that stands for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentAlias {
    /// The name.
    pub name: String,
    /// The models that serve it, by the names under which they are offered, the preferred one first.
    pub targets: Vec<String>,
}

/// The protocol by which a worker lends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// As a relay worker: one link for each server and backend, any API, any number of models.
    #[default]
    Relay,
    /// As model nodes: one connection for each server, backend, model and slot, chat only.
    Node,
    /// As a stock participant of a room: HTTP and a tunnel, one model.
    Tunnel,
    /// In a room: as a relay worker if the server is a Warren, else as a stock participant. Outside
    /// rooms: as a relay worker.
    Auto,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkProtocol {
    Relay,
    /// The node protocol, for one model.
    Node {
        model: String,
    },
    /// The protocol of a stock participant.
    Tunnel,
    /// In a room: the best protocol that the server understands.
    Any,
}

/// A backend to lend.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a machine has a handful of them")]
pub enum Lend {
    /// A model server.
    Http(BackendConfig),
    /// The built-in demo.
    Demo(DemoConfig),
    /// Model engines of this machine.
    Engines(LendEngines),
}

/// Model engines of this machine, to lend.
#[derive(Debug, Clone)]
pub struct LendEngines {
    /// The model engines.
    pub engines: Arc<dyn ModelEngines>,
    /// How many requests they serve at once, including those that wait for their model; 0 counts as
    /// 1.
    pub max_concurrent: u32,
}

impl Lend {
    /// The place that distinguishes it from other backends: its URL, `demo`, or the program that serves
    /// its models.
    pub fn place(&self) -> &str {
        match self {
            Self::Http(config) => &config.url,
            Self::Demo(_) => "demo",
            Self::Engines(lend) => lend.engines.label(),
        }
    }

    /// Whether it is a cloud, which is asked only if no worker's own machine can answer.
    pub fn is_cloud(&self) -> bool {
        matches!(self, Self::Http(config) if config.cloud)
    }
}

/// A server to lend to.
#[derive(Clone)]
pub struct ServerTarget {
    /// Its base URL: `http`, `https`, `ws` or `wss`; a path is kept as a prefix.
    pub url: Url,
    /// The secret that workers need at this server; to join a room, the room's password.
    pub secret: Option<Secret>,
    /// The room to join; `None`: the backends are lent to the whole server.
    pub room: Option<Arc<JoinRoom>>,
    /// The fingerprint of its certificate; `None`: it must show a certificate that this machine
    /// trusts.
    pub pin: Option<Fingerprint>,
    /// The name of the provider to lend under at a stock relay server; `None`: that server's
    /// default.
    pub provider: Option<Arc<str>>,
    client: ClientKind,
}

/// As what this machine connects to the server.
#[derive(Clone)]
enum ClientKind {
    /// A relay worker.
    Worker,
    /// A node. This query says all about it, including its secret.
    Node(String),
    /// A participant's tunnel at this URL, which includes the token.
    Tunnel(Url),
}

/// The text is not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no address of a server: write HOST:PORT, http://HOST:PORT or https://HOST")]
pub struct NotAServer(String);

impl ServerTarget {
    /// A server at an address, as people write it.
    ///
    /// # Errors
    /// [`NotAServer`] when it is neither a host nor an `http`, `https`, `ws` or `wss` URL with one.
    pub fn new(url: &str, secret: Option<Secret>) -> Result<Self, NotAServer> {
        let bad = || NotAServer(redact_url(url));
        let parsed = server_url(url).ok_or_else(bad)?;
        let known = matches!(parsed.scheme(), "http" | "https" | "ws" | "wss");
        if !known || !parsed.has_host() {
            return Err(bad());
        }
        let client = ClientKind::Worker;
        Ok(Self { url: parsed, secret, room: None, pin: None, provider: None, client })
    }

    /// The same server, for one of its rooms. Its secret is then the room's password; `None` if the
    /// room has none.
    #[must_use]
    pub fn in_room(self, room: JoinRoom) -> Self {
        Self { room: Some(Arc::new(room)), ..self }
    }

    /// The same server, known by its certificate's fingerprint.
    #[must_use]
    pub fn pinned(self, pin: Option<Fingerprint>) -> Self {
        Self { pin, ..self }
    }

    /// The same server at another address.
    #[must_use]
    pub fn at(&self, url: Url) -> Self {
        Self { url, ..self.clone() }
    }

    /// The same server, under one of its named providers. Only stock servers have such names; a
    /// Warren ignores the name.
    #[must_use]
    pub fn under_provider(self, name: &str) -> Self {
        Self { provider: Some(name.into()), ..self }
    }

    /// The same server, for a node of this model and name that takes one task at a time. Its
    /// token is the server's secret.
    #[must_use]
    pub fn for_node(&self, model: &str, name: &str) -> Self {
        let query = node::Query {
            token: self.secret.clone().unwrap_or_else(|| Secret::from("")),
            model: model.to_owned(),
            max_concurrency: 1,
            name: name.to_owned(),
        };
        Self { client: ClientKind::Node(query.encode()), ..self.clone() }
    }

    /// The same server, for a participant's tunnel that is opened with this token. `cancels` says
    /// that the participant stops a job when the server cancels it.
    pub(crate) fn for_tunnel(&self, mut url: Url, token: &str, cancels: bool) -> Self {
        url.query_pairs_mut().append_pair("token", token);
        if cancels {
            url.query_pairs_mut().append_pair(CANCELS, "true");
        }
        Self { secret: Some(token.into()), client: ClientKind::Tunnel(url), ..self.clone() }
    }

    /// The text with the server's secret masked, plain or URL-encoded.
    pub(crate) fn without_secret(&self, text: String) -> String {
        let Some(secret) = self.secret.as_ref().map(Secret::expose).filter(|s| !s.is_empty())
        else {
            return text;
        };
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        text.replace(secret, "***").replace(&encoded, "***")
    }

    /// Whether this machine connects there as a relay worker.
    pub fn is_for_worker(&self) -> bool {
        matches!(self.client, ClientKind::Worker)
    }

    /// Where to connect. For a node or a tunnel, the URL contains the token: log it only redacted.
    pub fn connect_url(&self) -> Url {
        let mut url = self.url.clone();
        match &self.client {
            ClientKind::Tunnel(url) => return url.clone(),
            ClientKind::Node(query) => {
                if matches!(url.path(), "" | "/") {
                    url.set_path("/ws");
                }
                url.set_query(Some(query));
            }
            ClientKind::Worker => {
                let path = format!("{}/v1/worker/connect", url.path().trim_end_matches('/'));
                url.set_path(&path);
                if let Some(provider) = &self.provider {
                    url.query_pairs_mut().append_pair("provider", provider);
                }
                if let Some(room) = &self.room {
                    url.query_pairs_mut().append_pair("room", &room.code);
                }
            }
        }
        url
    }
}

impl fmt::Display for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(redact_url(self.url.as_str()).trim_end_matches('/'))
    }
}

impl fmt::Debug for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prefix_is_kept() {
        let cases = [
            ("http://host:9178", "http://host:9178/v1/worker/connect"),
            ("https://host/", "https://host/v1/worker/connect"),
            ("wss://host/warren//", "wss://host/warren/v1/worker/connect"),
            ("host:9178", "http://host:9178/v1/worker/connect"),
            ("http://host:9178/v1", "http://host:9178/v1/worker/connect"),
        ];
        for (url, full) in cases {
            assert_eq!(ServerTarget::new(url, None).unwrap().connect_url().as_str(), full);
        }
    }

    #[test]
    fn a_provider_is_named_in_the_query() {
        let target = ServerTarget::new("http://host:9178/?a=b", None).unwrap();
        let target = target.under_provider("gpu box&co");
        let full = "http://host:9178/v1/worker/connect?a=b&provider=gpu+box%26co";
        assert_eq!(target.connect_url().as_str(), full);
    }

    #[test]
    fn a_node_says_all_in_its_url_and_keeps_a_path() {
        let cases = [
            ("http://host:8120", "http://host:8120/ws"),
            ("wss://host/", "wss://host/ws"),
            ("ws://host/gpu/nodes", "ws://host/gpu/nodes"),
        ];
        for (url, full) in cases {
            let target = ServerTarget::new(url, Some("t&k".into())).unwrap();
            let node = target.for_node("org/m:8b", "box 1-1");
            let query = "name=box+1-1&model=org%2Fm%3A8b&token=t%26k&max_concurrency=1";
            assert_eq!(node.connect_url().as_str(), format!("{full}?{query}"));
            assert!(!node.is_for_worker());
            assert!(!format!("{node} {node:?}").contains('k'), "{node:?}");
        }
    }

    #[test]
    fn a_room_is_named_in_the_query_and_a_tunnel_is_where_the_server_says() {
        let target = ServerTarget::new("http://host", Some("pw".into())).unwrap();
        let room = target.in_room(JoinRoom::new("swift eagle", "p1", "Ann"));
        assert_eq!(room.connect_url().as_str(), "http://host/v1/worker/connect?room=swift+eagle");
        let url = Url::parse("ws://other:1/v1/rooms/X/participants/p1/tunnel").unwrap();
        let cancels = room.for_tunnel(url.clone(), "t&k", true);
        assert_eq!(cancels.connect_url().query(), Some("token=t%26k&cancels=true"));
        let tunnel = room.for_tunnel(url, "t&k", false);
        assert_eq!(
            tunnel.connect_url().as_str(),
            "ws://other:1/v1/rooms/X/participants/p1/tunnel?token=t%26k"
        );
        assert!(!tunnel.is_for_worker());
        assert!(!format!("{tunnel} {tunnel:?}").contains('k'), "{tunnel:?}");
    }

    #[test]
    fn a_secret_that_a_server_repeats_is_not_shown() {
        let target = ServerTarget::new("http://host", Some("t&k".into())).unwrap();
        let shown = target.without_secret("404 /ws?token=t%26k or t&k".to_owned());
        assert_eq!(shown, "404 /ws?token=*** or ***");
        let open = ServerTarget::new("http://host", Some("".into())).unwrap();
        assert_eq!(open.without_secret("ab".to_owned()), "ab");
    }

    #[test]
    fn a_malformed_server_is_refused_and_secrets_are_not_shown() {
        for url in ["", "a b", "ftp://host", "http://", "/v1", "x://u:pw@h"] {
            let error = ServerTarget::new(url, None).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
        let target = ServerTarget::new("http://u:pw@host/?token=pw", Some("pw".into())).unwrap();
        assert!(!format!("{target} {target:?}").contains("pw"));
    }
}
