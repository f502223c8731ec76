//! `peer_hello` and its answer, for both ends. The dialling end shows the cluster's token.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base::{ClientAddress, Secret};
use protocol::workspace::peer::{
    FromPeer, PeerHello, PeerHelloAck, PeerMessage, Zero, decode_peer,
};
use replica::Kind;
use tokio::time::timeout;
use url::{Host, Url};
use wire::{Frame, Link, LinkError, Outbox};

use crate::shared::Shared;

/// A greeting must end within this time; otherwise the link ends.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// The longest message of a greeting, in bytes.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024;

/// A link whose ends have greeted each other.
pub(crate) struct Greeted {
    pub(crate) link: Link,
    pub(crate) outbox: Outbox,
    pub(crate) node: String,
    pub(crate) name: Option<String>,
    /// The token that was shown.
    pub(crate) token: Secret,
}

/// Why a greeting failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GreetingError {
    #[error("it did not greet within {DEADLINE:?}")]
    Timeout,
    /// The words with which the other end is refused.
    #[error("{0}")]
    Refused(String),
    #[error("the other end refused: {0}")]
    RefusedThere(String),
    #[error("it closed the link")]
    Closed,
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Whether the token may be shown to a plain peer at this address.
pub(crate) fn may_be_shown_to(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// Whether a plain peer may link from this address. Unless a setting allows more, only programs on
/// this machine may.
pub(crate) fn is_allowed(shared: &Shared, from: ClientAddress) -> bool {
    shared.settings.allow_plain || from.is_this_machine()
}

/// Answers the greeting of a peer that dialled.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    mut link: Link,
    outbox: Outbox,
) -> Result<Greeted, GreetingError> {
    link.set_max_message(MAX_MESSAGE);
    let greeted = match timeout(DEADLINE, next(&mut link)).await {
        Err(_) => Err(GreetingError::Timeout),
        Ok(Ok(PeerMessage::Hello(hello))) => admit(shared, hello),
        Ok(Ok(_)) => Err(refused("the first message must be peer_hello")),
        Ok(Err(error)) => Err(error),
    };
    match greeted {
        Ok(PeerHello { node_id: node, display_name: name, cluster_token: token, .. }) => {
            let _link_ended = outbox.push(acknowledgement(shared, None).encode());
            Ok(Greeted { link, outbox, node, name, token })
        }
        Err(error) => {
            let words = error.to_string();
            let _link_ended = outbox.push(acknowledgement(shared, Some(words.clone())).encode());
            link.close(1008, &words).await;
            Err(error)
        }
    }
}

/// Greets a peer that was dialled.
pub(crate) async fn open(
    shared: &Arc<Shared>,
    token: Secret,
    mut link: Link,
    outbox: Outbox,
) -> Result<Greeted, GreetingError> {
    link.set_max_message(MAX_MESSAGE);
    let member = shared.this.member();
    let hello = PeerHello {
        node_id: member.node_id,
        cluster_token: token.clone(),
        term: Zero,
        display_name: Some(member.name).filter(|name| !name.is_empty()),
    };
    let _link_ended = outbox.push(PeerMessage::Hello(hello).encode());
    let answer = timeout(DEADLINE, next(&mut link)).await.map_err(|_| GreetingError::Timeout)??;
    let PeerMessage::HelloAck(ack) = answer else {
        return Err(refused("its answer to peer_hello must be peer_hello_ack"));
    };
    if !ack.success {
        return Err(GreetingError::RefusedThere(ack.message.unwrap_or_default()));
    }
    check_id(shared, &ack.node_id)?;
    Ok(Greeted { link, outbox, node: ack.node_id, name: ack.display_name, token })
}

fn admit(shared: &Shared, hello: PeerHello) -> Result<PeerHello, GreetingError> {
    let tokens = shared.config().tokens;
    let token = tokens.present().ok_or_else(|| refused("this machine is in no cluster"))?;
    if !are_equal(&token.secret, &hello.cluster_token) {
        return Err(refused("invalid cluster token"));
    }
    check_id(shared, &hello.node_id)?;
    Ok(hello)
}

/// Refuses this machine's id, and the ids of members whose key is known.
fn check_id(shared: &Shared, node: &str) -> Result<(), GreetingError> {
    if node == shared.this.node_id {
        return Err(refused(&format!("this machine has the same node id, {node}")));
    }
    if shared.directory.get(Kind::MEMBER, node).is_some() {
        return Err(refused(&format!(
            "node {node} is known here as a member with a key: it must open a sealed link"
        )));
    }
    Ok(())
}

/// Compares tokens in a time that does not show where they differ. An empty token is equal to none.
fn are_equal(one: &Secret, other: &Secret) -> bool {
    match (seal::stock_hash(one.expose()), seal::stock_hash(other.expose())) {
        (Some(one), Some(other)) => seal::hashes_equal(&one, &other),
        _ => false,
    }
}

fn acknowledgement(shared: &Shared, refusal: Option<String>) -> PeerMessage {
    let member = shared.this.member();
    PeerMessage::HelloAck(PeerHelloAck {
        node_id: member.node_id,
        term: Zero,
        success: refusal.is_none(),
        message: refusal,
        display_name: Some(member.name).filter(|name| !name.is_empty()),
    })
}

/// The next message of a greeting. Messages without a meaning here are skipped.
async fn next(link: &mut Link) -> Result<PeerMessage, GreetingError> {
    loop {
        let frame = link.next().await?.ok_or(GreetingError::Closed)?;
        let Frame::Text(text) = frame else {
            return Err(refused("messages are text"));
        };
        match decode_peer(&text) {
            Ok(FromPeer::Message(message)) => return Ok(message),
            Ok(FromPeer::Legacy(_) | FromPeer::Unknown(_)) => {}
            Err(bad) => return Err(refused(&bad.to_string())),
        }
    }
}

fn refused(words: &str) -> GreetingError {
    GreetingError::Refused(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_leaves_this_machine_only_if_that_is_allowed() {
        let may = |url: &str| may_be_shown_to(&url.parse().unwrap());
        for near in ["ws://127.0.0.1:1", "ws://127.8.9.10", "ws://[::1]:1", "ws://localhost:1"] {
            assert!(may(near), "{near}");
        }
        for far in ["ws://192.168.0.7:1", "wss://box", "ws://localhost.box", "ws://[fe80::1]"] {
            assert!(!may(far), "{far}");
        }
    }

    #[test]
    fn tokens_are_equal_only_whole_and_never_empty() {
        let are = |one: &str, other: &str| are_equal(&Secret::from(one), &Secret::from(other));
        assert!(are("secret", "secret"));
        assert!(!are("secret", "Secret") && !are("secret", "secre") && !are("", ""));
    }
}
