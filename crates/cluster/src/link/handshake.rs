//! Proves the shared secret and both keys, and seals the link. The secret is never sent.

use std::time::Duration;

use base::NodeId;
use bytes::Bytes;
use seal::{Identity, Opener, PeerSecret, SealError, Sealer};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    carrier::{Carrier, CarrierEnd},
    hello::{BadHello, Hello},
    sealed::{open_records, seal_frame},
};
use crate::{control::Control, link::frame::LinkFrame, tokens::book::Tag};

/// A handshake must end within this time; otherwise the link ends.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// The longest message of a handshake, in bytes.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024;

/// The words for both ends if their secrets differ.
const OTHER_TOKEN: &str = "the two machines have different cluster tokens";

/// A link whose other end has proven its key and the secret.
pub(crate) struct Proven {
    pub(crate) carrier: Carrier,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    pub(crate) hello: Hello,
    /// The other end's key.
    pub(crate) key: NodeId,
    /// The token that both ends have proven.
    pub(crate) token: Tag,
}

/// The choice that the answering end makes after it has read the other end's hello.
pub(crate) struct Choice {
    /// The secret that the other end proves, if it is not the expected one.
    pub(crate) other_secret: Option<PeerSecret>,
    /// The own hello, or the words of a refusal.
    pub(crate) answer: Result<Hello, String>,
}

impl From<Result<Hello, String>> for Choice {
    fn from(answer: Result<Hello, String>) -> Self {
        Self { other_secret: None, answer }
    }
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("it did not complete its handshake within {DEADLINE:?}")]
    Timeout,
    /// The words with which the other end is refused.
    #[error("{0}")]
    Refused(String),
    /// The other end proved another secret, or is not the machine whose key it shows.
    #[error("{OTHER_TOKEN}")]
    OtherToken,
    #[error("the other end refused: {0}")]
    RefusedThere(String),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Carrier(#[from] CarrierEnd),
    #[error(transparent)]
    Hello(#[from] BadHello),
    #[error("the link closed")]
    Closed(#[from] wire::OutboxClosed),
}

/// The answer inside the handshake.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    Refused { refused: String },
    Hello(Hello),
}

/// Opens a link to the member with this key.
pub(crate) async fn initiate(
    carrier: Carrier,
    identity: &Identity,
    key: NodeId,
    secret: &PeerSecret,
    hello: &Hello,
) -> Result<Proven, HandshakeError> {
    let initiating = initiate_now(carrier, identity, key, secret, hello);
    timeout(DEADLINE, initiating).await.map_err(|_| HandshakeError::Timeout)?
}

async fn initiate_now(
    mut carrier: Carrier,
    identity: &Identity,
    key: NodeId,
    secret: &PeerSecret,
    hello: &Hello,
) -> Result<Proven, HandshakeError> {
    let mut initiator = secret.initiator(identity, &key)?;
    let first = initiator.write(&hello.encode())?;
    carrier.outbox().push(Bytes::from(first))?;
    let message = carrier.next().await?;
    let (sealed, payload) = match initiator.finish(&message) {
        Ok(opened) => opened,
        Err(SealError::WrongPasscode(_)) => {
            carrier.close(1008, OTHER_TOKEN).await;
            return Err(HandshakeError::OtherToken);
        }
        Err(error) => return Err(error.into()),
    };
    let theirs = match serde_json::from_slice(&payload) {
        Ok(Answer::Refused { refused }) => {
            return Err(HandshakeError::RefusedThere(base::plain::line(&refused)));
        }
        _ => Hello::decode(&payload)?,
    };
    let (mut sealer, opener) = sealed.split();
    // The first record proves to the other end that this handshake is not a recording.
    let ready = LinkFrame::Control(Control::Ready.encode()).encode();
    let mut records = Vec::new();
    seal_frame(&mut sealer, &ready, &mut records)?;
    carrier.outbox().push(Bytes::from(records))?;
    Ok(Proven { carrier, sealer, opener, hello: theirs, key, token: hello.token })
}

/// Answers a link that a member with this key opens. `choose` returns this end's hello, or a
/// refusal.
pub(crate) async fn respond(
    carrier: Carrier,
    identity: &Identity,
    key: NodeId,
    secret: &PeerSecret,
    choose: impl AsyncFnOnce(&Hello) -> Choice,
) -> Result<Proven, HandshakeError> {
    let responding = respond_now(carrier, identity, key, secret, choose);
    timeout(DEADLINE, responding).await.map_err(|_| HandshakeError::Timeout)?
}

async fn respond_now(
    mut carrier: Carrier,
    identity: &Identity,
    key: NodeId,
    secret: &PeerSecret,
    choose: impl AsyncFnOnce(&Hello) -> Choice,
) -> Result<Proven, HandshakeError> {
    let mut responder = secret.responder(identity, &key)?;
    let message = carrier.next().await?;
    let theirs = Hello::decode(&responder.read(&message, &key)?)?;
    let Choice { other_secret, answer } = choose(&theirs).await;
    if let Some(other) = other_secret {
        responder = other.responder(identity, &key)?;
        responder.read(&message, &key)?;
    }
    let own = match answer {
        Ok(own) => own,
        Err(refused) => {
            let answer = Answer::Refused { refused: refused.clone() };
            let (message, _) =
                responder.finish(&serde_json::to_vec(&answer).unwrap_or_default())?;
            carrier.outbox().push(Bytes::from(message))?;
            carrier.close(1008, &refused).await;
            return Err(HandshakeError::Refused(refused));
        }
    };
    let (message, sealed) = responder.finish(&own.encode())?;
    carrier.outbox().push(Bytes::from(message))?;
    let (sealer, mut opener) = sealed.split();
    let first = carrier.next().await?;
    open_records(&mut opener, first)?;
    match opener.is_proven() {
        true => Ok(Proven { carrier, sealer, opener, token: own.token, hello: theirs, key }),
        false => Err(SealError::Unauthentic.into()),
    }
}
