//! One mesh relay: it is dialled, and dialled again when its connection has ended; and its status
//! for the administrator.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::NodeId;
use http::HeaderMap;
use protocol::mesh::relay::{SUBPROTOCOL, relay_host};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};
use url::{Position, Url};
use wire::{Dial, DialedLink, Proxies, dial};

use super::{
    connection::{Ask, Connection, ConnectionEnd, Parts},
    registration::Registration,
    retry::Retry,
    sort::Sort,
};
use crate::link::{Link, NoLink};

/// The time limit for dialling a mesh relay.
const DIALLED_WITHIN: Duration = Duration::from_secs(10);

/// The most requests for links that wait.
pub(super) const MAX_ASKS: usize = 256;

/// A connection that lasts this long shows that no other machine uses this node's key at the mesh
/// relay.
const ALONE: Duration = Duration::from_secs(300);

const SAME_KEY: &str = "another machine is registered there with this node's key: two machines cannot \
                        be one node. Move `mesh.key` away on one of them";

/// A handle to one mesh relay.
#[derive(Debug)]
pub(super) struct Relay {
    /// For people; also the name under which a peer notes which mesh relays list it.
    pub(super) host: Arc<str>,
    pub(super) status: Arc<LiveStatus>,
    asks: mpsc::Sender<Ask>,
}

impl Relay {
    /// A mesh relay, and the queue of requests for links through it.
    pub(super) fn new(url: &Url) -> (Self, mpsc::Receiver<Ask>) {
        let host: Arc<str> = url[Position::BeforeHost..Position::AfterPort].into();
        let status = LiveStatus::new(base::redact_url(url.as_str()), Arc::clone(&host));
        let (asks, queue) = mpsc::channel(MAX_ASKS);
        (Self { host, status: Arc::new(status), asks }, queue)
    }

    /// The state of this machine at the mesh relay.
    pub(super) fn status(&self) -> RelayStatus {
        self.status.get()
    }

    /// A link to a peer through this mesh relay. It is opened if there is none.
    pub(super) async fn link(&self, peer: NodeId) -> Result<Arc<Link>, NoLink> {
        let gone = || NoLink(format!("the connection to the relay {} has ended", self.host));
        let (answer, answered) = oneshot::channel();
        self.asks.send(Ask { peer, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// The URL of a mesh relay. Its path is `/ws` unless another is given. The node's id is in its
/// query, so that a proxy does not mistake two nodes for one.
///
/// # Errors
/// Text that says what is wrong with the URL.
pub(super) fn address(text: &str, own: &NodeId) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "ws" | "wss") || !url.has_host() {
        return Err("it must begin with ws:// or wss://".to_owned());
    }
    if matches!(url.path(), "" | "/") {
        url.set_path("/ws");
    }
    url.set_fragment(None);
    url.query_pairs_mut().append_pair("node", &own.to_string());
    Ok(url)
}

/// Keeps a connection to a mesh relay, until the node stops.
pub(super) async fn run(url: Url, parts: Parts, mut asks: mpsc::Receiver<Ask>) {
    let mut retry = Retry::new();
    loop {
        let begun = Instant::now();
        let ended = connect(&url, &parts, &mut asks).await;
        let (replaced, why) = match ended {
            ConnectionEnd::Stopped => return,
            ConnectionEnd::Replaced => (true, SAME_KEY.to_owned()),
            ConnectionEnd::Broken(why) => (false, why),
        };
        let stood = begun.elapsed();
        report(&parts, replaced, &why, stood);
        let delay = retry.after(stood, replaced, wire::dial::jitter());
        // Meanwhile callers are refused at once, so that they can try another mesh relay.
        let wait = deny(&mut asks, &why, sleep(delay));
        if parts.machine.stop.run_until_cancelled(wait).await.is_none() {
            return;
        }
    }
}

fn report(parts: &Parts, replaced: bool, why: &str, stood: Duration) {
    parts.status.down(why);
    let relay = &*parts.relay;
    if replaced {
        tracing::error!(relay, "{SAME_KEY}");
        parts.status.set(|status| status.problem = Some(SAME_KEY.to_owned()));
        return;
    }
    tracing::warn!(relay, why, "no connection to a relay");
    if stood >= ALONE {
        parts.status.set(|status| status.problem = None);
    }
}

async fn connect(url: &Url, parts: &Parts, asks: &mut mpsc::Receiver<Ask>) -> ConnectionEnd {
    let dialling = dial(Dial {
        url,
        headers: HeaderMap::new(),
        subprotocols: &[SUBPROTOCOL],
        proxies: Proxies::of_environment(),
        pin: None,
        deadline: DIALLED_WITHIN,
    });
    let dialled = deny(asks, "the relay is not connected", dialling);
    let dialled = match parts.machine.stop.run_until_cancelled(dialled).await {
        None => return ConnectionEnd::Stopped,
        Some(Ok(dialled)) => dialled,
        Some(Err(error)) => return ConnectionEnd::Broken(base::error::chain(&error)),
    };
    let DialedLink { link, outbox, subprotocol, headers } = dialled;
    parts.status.set(|status| {
        status.connected_since_ms = Some(access::Moment::now().wall_ms);
    });
    let remembered = parts.memory.relay(&parts.relay);
    let sort = Sort::of(subprotocol.as_deref(), &headers, remembered);
    let host = relay_host(&url[Position::BeforeHost..Position::AfterPort]);
    let registration = Registration::new(sort, host);
    Connection::run(parts, link, outbox, registration, asks).await
}

/// Waits for a future. Meanwhile it refuses every request for a link.
async fn deny<T>(asks: &mut mpsc::Receiver<Ask>, why: &str, wait: impl Future<Output = T>) -> T {
    tokio::pin!(wait);
    loop {
        tokio::select! {
            biased;
            done = &mut wait => return done,
            Some(ask) = asks.recv() => {
                // The caller may have stopped waiting.
                let _ = ask.answer.send(Err(NoLink(why.to_owned())));
            }
        }
    }
}

/// The state of this machine at a mesh relay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RelayStatus {
    /// Its URL, without credentials.
    pub(crate) url: String,
    /// Its host, for people.
    pub(crate) host: Arc<str>,
    /// Since when it is connected, in milliseconds since 1970; `None` if it is not.
    pub(crate) connected_since_ms: Option<u64>,
    /// Whether this machine is registered there.
    pub(crate) registered: bool,
    /// Whether the mesh relay sent a challenge, so that the registration cannot be replayed.
    pub(crate) challenged: bool,
    /// How many peers it lists.
    pub(crate) listed: usize,
    /// How many relay sessions go through it.
    pub(crate) sessions: usize,
    /// The last error.
    pub(crate) last_error: Option<String>,
    /// A problem that a person has to solve, such as another machine with the same key.
    pub(crate) problem: Option<String>,
}

/// A [`RelayStatus`] that can be changed.
#[derive(Debug)]
pub(super) struct LiveStatus(Mutex<RelayStatus>);

impl LiveStatus {
    pub(super) fn new(url: String, host: Arc<str>) -> Self {
        Self(Mutex::new(RelayStatus { url, host, ..RelayStatus::default() }))
    }

    pub(super) fn get(&self) -> RelayStatus {
        self.lock().clone()
    }

    /// Whether this machine is registered there.
    pub(super) fn is_registered(&self) -> bool {
        self.lock().registered
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut RelayStatus)) {
        change(&mut self.lock());
    }

    /// Notes that the connection has ended, or could not be opened.
    pub(super) fn down(&self, why: &str) {
        self.set(|status| {
            status.connected_since_ms = None;
            (status.registered, status.challenged) = (false, false);
            (status.listed, status.sessions) = (0, 0);
            status.last_error = Some(why.to_owned());
        });
    }

    fn lock(&self) -> MutexGuard<'_, RelayStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialled(text: &str) -> Result<String, String> {
        address(text, &NodeId::new([0xab; 32])).map(String::from)
    }

    #[test]
    fn a_relay_without_a_path_is_at_ws_and_hears_who_dials() {
        let node = "ab".repeat(32);
        assert_eq!(
            dialled("wss://relay.example").unwrap(),
            format!("wss://relay.example/ws?node={node}")
        );
        assert_eq!(
            dialled("ws://relay.example:9/own?key=1#x").unwrap(),
            format!("ws://relay.example:9/own?key=1&node={node}")
        );
    }

    #[test]
    fn an_address_that_is_not_a_relay_s_is_reported() {
        for text in ["relay.example:9", "https://relay.example", "", "ws://"] {
            assert!(dialled(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_relay_shows_its_host_and_not_what_its_address_keeps_secret() {
        let url = address("wss://relay.example:9/ws?token=abc", &NodeId::new([1; 32])).unwrap();
        let (relay, _) = Relay::new(&url);
        assert_eq!(&*relay.host, "relay.example:9");
        assert!(!relay.status().url.contains("abc"), "{}", relay.status().url);
    }
}
