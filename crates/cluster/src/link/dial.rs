//! Links that this member opens: to the configured addresses, and to those that members name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use base::NodeId;
use http::{HeaderMap, HeaderValue};
use replica::Kind;
use tokio::time::{Instant, sleep};
use tracing::Level;
use url::Url;
use wire::{Dial, DialError, DialedLink, Link, Outbox, Proxies, dial};

use super::{
    accept::{ITSELF, KEY, SUBPROTOCOL, admit},
    carrier::{Carrier, CarrierEnd},
    dials::{Dials, STOOD, backoff},
    handshake::{self, HandshakeError, MAX_MESSAGE},
    sealed::{COPIED, LinkEnd},
};
use crate::{
    member::Member,
    parting::{self, TAKEN_OUT, is_taken_out},
    plain::{self, greeting, greeting::GreetingError},
    shared::Shared,
    tokens::{self, OLD_TOKEN},
};

const DEADLINE: Duration = Duration::from_secs(5);
/// How often the targets are looked up.
const LOOK: Duration = Duration::from_secs(1);
/// The most targets that are dialled.
const MOST: usize = 512;

/// Why a dial brought no link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialFailure {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error("the peer speaks no sealed link, and the cluster's token is not sent to it in plain")]
    Plain,
    #[error(transparent)]
    Greeting(#[from] GreetingError),
    #[error("{ITSELF}")]
    Itself,
    #[error("{0} is no address of a peer: it must be HOST:PORT, or begin with ws:// or wss://")]
    Address(String),
    #[error("there is no cluster token yet")]
    NoToken,
    #[error("it is no member any more")]
    NoMember,
    #[error("what would carry the link is gone, or carries too much")]
    NoCarrier,
    #[error("this machine is leaving the cluster, or stopping")]
    Closed,
}

/// The address or the member that is dialled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A configured address. Its member is known once it was linked.
    Address(String),
    /// A member, at the addresses that it named.
    Member(String),
}

/// Keeps dialling, as long as it is not dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut dials = Dials::default();
    loop {
        if let Err(error) = parting::follow(&shared).await {
            let error = base::error::chain(&error);
            tracing::error!(error, "a machine that left the cluster cannot be barred");
        }
        dials.follow(targets(&shared), MOST, |target| keep(Arc::clone(&shared), target));
        tokio::select! {
            () = sleep(LOOK) => {}
            () = shared.targets_changed.notified() => {}
        }
    }
}

fn targets(shared: &Shared) -> BTreeSet<Target> {
    let config = shared.config();
    let configured = config.peers.into_iter().map(Target::Address);
    let learnt = config.discovery.then(|| shared.directory.list(Kind::MEMBER));
    let members = learnt.into_iter().flatten().map(|(key, _)| key.id.to_string());
    let others = members.filter(|node| *node != shared.this.node_id);
    configured.chain(others.map(Target::Member)).collect()
}

/// Dials a target again and again, while no link leads to it.
async fn keep(shared: Arc<Shared>, target: Target) {
    let mut backoff = backoff();
    let mut node = match &target {
        Target::Address(_) => None,
        Target::Member(node) => Some(node.clone()),
    };
    let mut failures = BTreeMap::<String, Failures>::new();
    // How many dials in a row met another token.
    let mut mismatches = 0;
    loop {
        if node.as_ref().is_some_and(|node| is_linked(&shared, node)) {
            sleep(LOOK).await;
            continue;
        }
        let addresses = addresses(&shared, &target);
        failures.retain(|address, _| addresses.contains(address));
        for address in addresses {
            let began = Instant::now();
            let dialled = once(&shared, &address, &mut node, mismatches).await;
            mismatches = mismatches_after(&dialled, mismatches);
            if tokens::are_all_tried(&shared, mismatches) {
                shared.notices.keep(format!("{address} belongs to a cluster with another token"));
            }
            match dialled {
                Ok(()) if began.elapsed() > STOOD => {
                    backoff.reset();
                    failures.remove(&address);
                }
                Ok(()) => {}
                // The address is this machine's own, and will stay so.
                Err(DialFailure::Itself) => return,
                Err(error) => {
                    let words = base::error::chain(&error);
                    failures.entry(address.clone()).or_default().tell(&address, &words);
                }
            }
        }
        sleep(backoff.next(rand::random())).await;
    }
}

/// The reasons why dials of one address failed.
#[derive(Debug, Default)]
struct Failures {
    words: String,
    in_a_row: u32,
}

/// How many times in a row a failure must occur to be a warning. A passing failure is no warning:
/// machines start and join at different moments.
const LASTS: u32 = 5;

impl Failures {
    fn tell(&mut self, address: &str, words: &str) {
        match self.told_as(words) {
            Some(Level::WARN) => tracing::warn!(address, error = words, "still no link to a peer"),
            Some(_) => tracing::info!(address, error = words, "no link to a peer"),
            None => {}
        }
    }

    /// How one more failure is reported, if at all: once when it is new, and once more when it
    /// lasts.
    fn told_as(&mut self, words: &str) -> Option<Level> {
        if self.words != words {
            (self.words, self.in_a_row) = (words.to_owned(), 0);
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        match self.in_a_row {
            1 => Some(Level::INFO),
            LASTS => Some(Level::WARN),
            _ => None,
        }
    }
}

fn is_linked(shared: &Shared, node: &str) -> bool {
    shared.links.has_direct(node) || shared.plain.is_linked(node)
}

fn addresses(shared: &Shared, target: &Target) -> Vec<String> {
    match target {
        Target::Address(address) => vec![address.clone()],
        Target::Member(node) => {
            let entry = shared.directory.get(Kind::MEMBER, node);
            let member = entry.and_then(|entry| Member::read(&entry.value));
            member.map(|member| member.addresses).unwrap_or_default()
        }
    }
}

/// How many dials in a row met another token, including this one.
pub(crate) fn mismatches_after(dialled: &Result<(), DialFailure>, before: usize) -> usize {
    match dialled {
        Err(DialFailure::Handshake(HandshakeError::OtherToken)) => before + 1,
        _ => 0,
    }
}

/// Dials once, and runs the link until it ends. `node` becomes the member that answered.
/// `mismatches` is the number of dials in a row that met another token.
async fn once(
    shared: &Arc<Shared>,
    address: &str,
    node: &mut Option<String>,
    mismatches: usize,
) -> Result<(), DialFailure> {
    if shared.is_closed.load(Ordering::Relaxed) {
        return Err(DialFailure::Closed);
    }
    if shared.this.token().is_none() {
        return Err(DialFailure::NoToken);
    }
    let (carrier, key) = match connect(shared, address).await? {
        FarEnd::Warren(carrier, key) => (carrier, key),
        FarEnd::Plain(link, outbox) => {
            return once_plain(shared, address, node, *link, outbox).await;
        }
    };
    over(shared, carrier, key, address, node, mismatches).await
}

/// Makes a link to the Warren with this key over this carrier, and runs it until it ends.
/// `mismatches` is as for [`once`].
pub(crate) async fn over(
    shared: &Arc<Shared>,
    carrier: Carrier,
    key: NodeId,
    address: &str,
    node: &mut Option<String>,
    mismatches: usize,
) -> Result<(), DialFailure> {
    let own = &shared.this;
    let token = tokens::to_prove(shared, &key, mismatches).await.ok_or(DialFailure::NoToken)?;
    let hello = own.hello(token.tag);
    let secret = &token.secret;
    let proven = match handshake::initiate(carrier, &own.identity, key, secret, &hello).await {
        Err(HandshakeError::RefusedThere(words)) if words == ITSELF => {
            return Err(DialFailure::Itself);
        }
        Err(HandshakeError::RefusedThere(words)) if words == TAKEN_OUT || words == OLD_TOKEN => {
            shared.notices.keep(words.clone());
            return Err(HandshakeError::RefusedThere(words).into());
        }
        Err(error) if key == own.identity.node_id() => {
            shared.doubled();
            return Err(error.into());
        }
        proven => proven?,
    };
    if let Err(refused) = admit(shared, &proven.hello, &key) {
        proven.carrier.close(1008, &refused).await;
        return Err(HandshakeError::Refused(refused).into());
    }
    if is_taken_out(shared, &proven.hello.node_id).await {
        proven.carrier.close(1008, TAKEN_OUT).await;
        return Err(HandshakeError::Refused("it was taken out of the cluster".to_owned()).into());
    }
    *node = Some(proven.hello.node_id.clone());
    let greet = |outbox: &_| tokens::hand_over(shared, &key, token.tag, outbox);
    let end = shared.links.run(proven, Some(hello.dial), greet).await;
    if let LinkEnd::Carrier(CarrierEnd::Refused(words)) = &end
        && words != COPIED
    {
        shared.notices.keep(words.clone());
        return Err(HandshakeError::RefusedThere(words.clone()).into());
    }
    shared.link_ended(address, &end);
    Ok(())
}

/// As [`over`], with a peer that showed no key. The greeting contains the token. So a member that
/// is known to have a key is never greeted like this, even if a machine in between hides the key.
async fn once_plain(
    shared: &Arc<Shared>,
    address: &str,
    node: &mut Option<String>,
    link: Link,
    outbox: Outbox,
) -> Result<(), DialFailure> {
    let has_key = |node: &String| shared.directory.get(Kind::MEMBER, node).is_some();
    let may_be_shown = greeting::may_be_shown_to(&peer_url(address)?);
    if node.as_ref().is_some_and(has_key) || !(may_be_shown || shared.settings.allow_plain) {
        return Err(DialFailure::Plain);
    }
    let token = shared.config().tokens.present().map(|token| token.secret.clone());
    let token = token.ok_or(DialFailure::NoToken)?;
    let greeted = greeting::open(shared, token, link, outbox).await?;
    *node = Some(greeted.node.clone());
    plain::link::run(shared, greeted).await;
    Ok(())
}

/// The far end of a connection.
pub(crate) enum FarEnd {
    /// A Warren with this key.
    Warren(Carrier, NodeId),
    /// A peer that showed no key.
    Plain(Box<Link>, Outbox),
}

/// Connects to a peer port, and learns the key of the Warren there.
pub(crate) async fn connect(shared: &Shared, address: &str) -> Result<FarEnd, DialFailure> {
    connect_with(shared, address, HeaderMap::new()).await
}

/// As [`connect`], with further headers.
pub(crate) async fn connect_with(
    shared: &Shared,
    address: &str,
    mut headers: HeaderMap,
) -> Result<FarEnd, DialFailure> {
    let url = peer_url(address)?;
    if let Ok(own) = HeaderValue::try_from(shared.this.identity.node_id().to_string()) {
        headers.insert(KEY, own);
    }
    // Members that are dialled without TLS are in the same network. A proxy would lead out of it.
    let proxies = if url.scheme() == "wss" { Proxies::of_environment() } else { Proxies::none() };
    let (subprotocols, deadline) = (&[SUBPROTOCOL], DEADLINE);
    let dialled =
        dial(Dial { url: &url, headers, subprotocols, proxies, pin: None, deadline }).await?;
    let DialedLink { mut link, outbox, headers, .. } = dialled;
    let key = headers.get(KEY).and_then(|key| key.to_str().ok()?.parse().ok());
    link.set_max_message(MAX_MESSAGE);
    Ok(match key {
        Some(key) => FarEnd::Warren(Carrier::new(link, outbox), key),
        None => FarEnd::Plain(Box::new(link), outbox),
    })
}

/// The URL of a peer port.
pub(crate) fn peer_url(address: &str) -> Result<Url, DialFailure> {
    let wrong = || DialFailure::Address(base::plain::line(address));
    let text = match address.contains("://") {
        true => address.to_owned(),
        false if has_port(address) => format!("ws://{address}"),
        false => return Err(wrong()),
    };
    let mut url = Url::parse(&text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none() {
        return Err(wrong());
    }
    if url.path() == "/" {
        url.set_path("/peer");
    }
    Ok(url)
}

fn has_port(address: &str) -> bool {
    let host = address.split('/').next().unwrap_or_default();
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_passes_is_no_warning() {
        let mut failures = Failures::default();
        let told: Vec<_> = (0..9).map(|_| failures.told_as("refused")).collect();
        let mut expected = vec![None; 9];
        (expected[0], expected[4]) = (Some(Level::INFO), Some(Level::WARN));
        assert_eq!(told, expected);
        assert_eq!(failures.told_as("no TLS"), Some(Level::INFO), "other words are news");
    }

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_url() {
        let url = |address| peer_url(address).map(|url| url.to_string()).ok();
        assert_eq!(url("box:9179").as_deref(), Some("ws://box:9179/peer"));
        assert_eq!(url("[::1]:9179").as_deref(), Some("ws://[::1]:9179/peer"));
        assert_eq!(url("wss://box/there").as_deref(), Some("wss://box/there"));
        assert_eq!(url("http://box:1"), None);
        for bad in ["", "box", "[::1]", "box:port"] {
            assert_eq!(url(bad), None, "{bad}");
        }
    }
}
